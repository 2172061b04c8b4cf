//! What loads and suites share: the server that they run on, what is read of it before and
//! after, and the summary's frame.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use mysql_async::Opts;

use crate::engine::edge::{self, Edge, Own};
use crate::engine::{Identity, host_facts, program};
use crate::error::{Error, Kind, Result};
use crate::mysql::dataset;
use crate::mysql::session::{Session, quoted_text};
use crate::mysql::target::{Address, Target};
use crate::mysql::{ask, tls};
use crate::mysql::{exposure, fingerprint};
use crate::observe::host;
use crate::observe::probe::Probe;
use crate::observe::process::peak_resident_bytes;
use crate::observe::times::Times;
use crate::plan::limits;
use crate::run::steps::{bounded, probe};
use crate::run::sweep::random;
use crate::stop::Stop;
use crate::stop::or_stop;
use crate::summary::identity::{after, no_result};
use crate::summary::{self, Outcome, Summary};
use crate::terms::{OnError, Spread, StatementMode};
use crate::workload::Schema;

/// The server, and how its summaries name it.
pub struct Scene<'a> {
    /// The server.
    pub target: Target,
    /// [`Target::opts`] of it.
    pub opts: Opts,
    /// What its summaries say of it.
    pub identity: Identity,
    /// How to look at its process and host, where that can be done.
    pub probe: Option<Probe>,
    /// Asks for an early end.
    pub stop: &'a Stop,
}

/// Which run of an invocation it is.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// Position among the invocation's steps, from 1.
    pub number: u32,
    /// From 1.
    pub repeat: u32,
    /// Repeats of the invocation.
    pub repeats: u32,
    /// The summary's workload, where it is not the usual name.
    pub title: Option<String>,
}

/// What was measured, and what ended it early.
#[derive(Debug)]
pub struct Measured {
    /// The summary, whatever ended it.
    pub summary: Summary,
    /// What ended it early.
    pub error: Option<Error>,
}

/// Read before the window.
pub(super) struct Start {
    server: summary::Server,
    edge: Edge,
    own: Own,
}

/// Read after it.
pub(super) struct Finish {
    status: Option<summary::Status>,
    probed: Option<summary::Probed>,
    traffic: Option<(u64, u64)>,
    /// None where the server did not tell.
    changed: Option<Vec<summary::SettingChange>>,
}

impl<'a> Scene<'a> {
    /// Connects, and takes the server's fingerprint. Without a label it is the server's version;
    /// `prefix` is how the server's host is read: empty for this one.
    ///
    /// # Errors
    ///
    /// Server: none, or no answer. Usage: contradictory options.
    pub async fn look(
        target: &Target,
        label: Option<&str>,
        notes: BTreeMap<String, String>,
        prefix: Vec<String>,
        stop: &'a Stop,
    ) -> Result<Scene<'a>> {
        let target = or_stop(stop, tls::settle(target)).await?;
        let opts = target.opts()?;
        let mut session = or_stop(stop, Session::open(&target, &opts, None)).await?;
        let (host, port) = match &target.address {
            Address::Tcp { host, port } => (host.as_str(), Some(*port)),
            Address::Socket(_) => ("localhost", None),
        };
        let looking = async {
            let exposed = exposure::look(&mut session, &target).await?;
            Ok((exposed, fingerprint::server(&mut session, host, port, None).await?))
        };
        let (exposed, seen) = bounded(limits::SILENCE, stop, &target.address, looking).await?;
        if let Some(warning) = exposed {
            super::warn(&warning.message);
        }
        session.close(limits::COURTESY).await;
        let identity = Identity {
            run_id: format!("{:016x}", random()?),
            label: label.map_or_else(|| seen.server.version.clone(), str::to_owned),
            notes,
            data_seed: None,
            server: seen.server,
            driver: seen.driver,
            same_host: seen.same_host,
            rtt_us: seen.rtt_us,
            host: host::facts(Path::new(host::ROOT)),
        };
        let probe = probe(prefix, seen.whereabouts, seen.same_host).await?;
        Ok(Scene { target, opts, identity, probe, stop })
    }

    /// Who the server is, and its counters, on a connection of its own.
    pub(super) async fn start(&self) -> Result<Start> {
        let mut session = or_stop(self.stop, Session::open(&self.target, &self.opts, None)).await?;
        let mut server = self.identity.server.clone();
        let reading = async { Ok(fingerprint::renew(&mut session, &mut server).await?) };
        bounded(limits::SILENCE, self.stop, &self.target.address, reading).await?;
        let (session, edge) = edge::read(Some(session), self.probe.clone()).await;
        if let Some(session) = session {
            session.close(limits::COURTESY).await;
        }
        Ok(Start { server, edge, own: Own::now() })
    }

    /// The same after the window that began then. A server that does not answer in time costs
    /// the reading, not the measurement.
    pub(super) async fn finish(&self, start: &Start, began: Instant) -> Finish {
        let own = Own::now();
        // Not the connection of before: a server drops one that was idle for hours.
        let session = courteous(Session::open(&self.target, &self.opts, None)).await;
        let (session, last) = edge::read(session, self.probe.clone()).await;
        let (session, changed) =
            edge::changes(&start.server, session, &self.target, &self.opts).await;
        if let Some(session) = session {
            session.close(limits::COURTESY).await;
        }
        Finish {
            status: edge::status(&start.edge, &last, began),
            probed: edge::probed(self.probe.as_ref(), &start.edge, &last, began),
            traffic: own.traffic_since(&start.own),
            changed,
        }
    }

    /// Size of some tables with their indexes, bytes, and their formats, each once; None where
    /// the server does not tell.
    pub(super) async fn table_facts(&self, tables: &[String]) -> Option<(u64, Vec<String>)> {
        let names: Vec<String> = tables.iter().map(|name| quoted_text(name)).collect();
        if names.is_empty() {
            return None;
        }
        let which = format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({})", names.join(","));
        let mut session = courteous(Session::open(&self.target, &self.opts, None)).await?;
        let asking = async {
            // MySQL 8 keeps sizes for a day otherwise; servers without the variable keep none.
            let fresh = "SET SESSION information_schema_stats_expiry = 0";
            ask::optional(session.execute(fresh).await)?;
            Ok(dataset::facts(&mut session, &which).await?)
        };
        courteous(asking).await
    }

    /// A summary in which only the run itself is missing. Of a server that changed meanwhile it is
    /// no result, which is an error then.
    pub(super) fn frame(
        &self,
        turn: &Turn,
        start: Start,
        finish: Finish,
        error: &mut Option<Error>,
    ) -> Result<Summary> {
        let identity = &self.identity;
        let mut outcome = outcome(error.as_ref());
        if error.is_none()
            && let Some(changed) = finish.changed.as_deref().and_then(no_result)
        {
            (outcome, *error) = (Outcome::ServerChanged, Some(changed));
        }
        let mut warnings = after(finish.changed.as_deref());
        let mut warn = |code: &str, message: String| {
            warnings.push(summary::Warning { code: code.to_owned(), message });
        };
        if cfg!(debug_assertions) {
            warn("debug_build", "measured with a debug build of loadgen".to_owned());
        }
        if finish.status.is_none() {
            warn("no_status", "the server's status counters could not be read".to_owned());
        }
        Ok(Summary {
            schema: summary::SCHEMA.to_owned(),
            loadgen: program(),
            run_id: identity.run_id.clone(),
            step_id: format!("{}-{}", identity.run_id, turn.number),
            label: identity.label.clone(),
            notes: identity.notes.clone(),
            outcome,
            reason: error.as_ref().map(ToString::to_string),
            workload: summary::Workload {
                name: turn.title.clone().unwrap_or_default(),
                built_in: false,
                statements: Vec::new(),
                mode: StatementMode::Text,
                distribution: "sequential".to_owned(),
                spread: Spread::Pinned,
                schema: Schema::Sbtest.to_string(),
                options: BTreeMap::new(),
                option_defaults: None,
                transactions: None,
                unfollowed: None,
            },
            plan: plan(turn),
            server: summary::Server {
                settings_changed: finish.changed.unwrap_or_default(),
                status: finish.status,
                probed: finish.probed,
                host_facts: host_facts(identity, self.probe.as_ref()),
                ..start.server
            },
            driver: identity.driver.clone(),
            client: self.client(finish.traffic),
            started_at: String::new(),
            measured_s: 0.0,
            totals: totals(),
            latency: nothing()?,
            timeline: Vec::new(),
            outages: Vec::new(),
            ledger: Vec::new(),
            record: None,
            load: None,
            suite: None,
            warnings,
            verdict: None,
            experiment: None,
            conditions: None,
        })
    }

    fn client(&self, traffic: Option<(u64, u64)>) -> summary::Client {
        let host = &self.identity.host;
        summary::Client {
            host: host.name.clone(),
            kernel: host.kernel.clone(),
            cpu: host.cpu.clone(),
            cores: host.cores_usable,
            same_host: self.identity.same_host,
            user_s: 0.0,
            sys_s: 0.0,
            us_per_op: None,
            threads: Vec::new(),
            max_rss_bytes: peak_resident_bytes(),
            rtt_us: self.identity.rtt_us,
            net_rx_bytes: traffic.map(|(received, _)| received),
            net_tx_bytes: traffic.map(|(_, sent)| sent),
            share: None,
        }
    }
}

/// Ops and rows of a run, and what follows from them once its time is known.
pub(super) fn count(summary: &mut Summary, ops: u64, rows: u64, user_s: f64, sys_s: f64) {
    let per_s = if summary.measured_s > 0.0 { ops as f64 / summary.measured_s } else { 0.0 };
    let totals = &mut summary.totals;
    (totals.ops, totals.statements, totals.rows) = (ops, ops, rows);
    (totals.tps, totals.qps) = (per_s, per_s);
    totals.per_client = summary::PerClient { ops_min: ops, ops_median: ops as f64, ops_max: ops };
    let client = &mut summary.client;
    (client.user_s, client.sys_s) = (user_s, sys_s);
    client.us_per_op = (ops > 0).then(|| (user_s + sys_s) * 1e6 / ops as f64);
}

fn outcome(error: Option<&Error>) -> Outcome {
    match error.map(Error::kind) {
        None => Outcome::Completed,
        Some(Kind::Interrupted | Kind::Terminated) => Outcome::Interrupted,
        Some(_) => Outcome::Aborted,
    }
}

fn plan(turn: &Turn) -> summary::Plan {
    summary::Plan {
        tables: 0,
        rows: 0,
        data_seed: None,
        clients: 1,
        engine_threads: 1,
        warmup_s: 0.0,
        time_s: None,
        ops: None,
        rate: None,
        arrival: None,
        queues: None,
        seed: 0,
        charset: None,
        on_error: OnError::default(),
        max_errors: None,
        op_timeout_s: None,
        repeat_index: turn.repeat,
        repeats: turn.repeats,
    }
}

fn totals() -> summary::Totals {
    summary::Totals {
        ops: 0,
        statements: 0,
        tps: 0.0,
        qps: 0.0,
        rows: 0,
        errors: Vec::new(),
        reconnects: 0,
        abandoned: 0,
        in_doubt: 0,
        backlog: None,
        intended: None,
        warmup_left: None,
        warmup_late_us: None,
        per_table: Vec::new(),
        per_client: summary::PerClient { ops_min: 0, ops_median: 0.0, ops_max: 0 },
    }
}

fn nothing() -> Result<summary::Latency> {
    let none = Times::new()?.distribution()?;
    Ok(summary::Latency {
        service: none.clone(),
        response: None,
        wait: None,
        failed: none,
        in_doubt: Some(0),
        abandoned: Some(0),
        by_statement: Vec::new(),
    })
}

/// What the server answers in a short time; a session that takes longer must not be used again.
async fn courteous<T>(asking: impl Future<Output = Result<T>>) -> Option<T> {
    tokio::select! {
        answer = asking => answer.ok(),
        () = tokio::time::sleep(limits::COURTESY) => None,
    }
}
