//! Loads and suites: what is read of the server before and after, and their summaries.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Instant;

use super::random;
use super::survey::{ServerLink, Surveyed};
use crate::commands::suite;
use crate::engine::host_facts;
use crate::engine::readings::{self, ServerReading};
use crate::error::{Error, Kind, Result};
use crate::judge::{changed_after, class_by_size, no_result};
use crate::load::reload::{LoadedTable, Reload, Reloaded};
use crate::mysql::control::optional;
use crate::mysql::dataset;
use crate::mysql::session::{Session, quoted_text};
use crate::observe::process::ClientReading;
use crate::observe::times::Times;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec, SuiteSpec};
use crate::plan::{Step, limits};
use crate::progress::Progress;
use crate::stop::within;
use crate::summary::{self, Outcome, Summary};
use crate::terms::{OnError, Spread, StatementMode, finding};
use crate::workload::Schema;

pub(super) struct Timed<'a> {
    pub(super) at: &'a Surveyed<'a>,
    pub(super) step: &'a Step,
    pub(super) repeats: u32,
    /// The summary's workload, where it is not the usual name.
    pub(super) title: Option<&'a str>,
}

type Ended = (Summary, Option<Error>);

struct Start {
    server: summary::Server,
    reading: ServerReading,
    own: ClientReading,
}

impl Timed<'_> {
    /// Loads once, and counts afterwards what is there; with `force` over tables that prepare made,
    /// too.
    pub(super) async fn load(
        &self,
        spec: &LoadSpec,
        force: bool,
        progress: &mut Progress,
    ) -> Result<Ended> {
        let ServerLink { target, opts, stop } = &self.at.link;
        let mut reload = Reload::open(target, opts, spec, force, stop, progress).await?;
        let start = self.start().await?;
        let mut loaded = reload.run(stop, progress).await?;
        let mut summary = self.finish(&spec.name(), start, loaded.began).await;
        let mut error = loaded.error.take();
        if error.is_none() {
            progress.update(|| "counting the rows".to_owned());
            error = reload.verify(&loaded, stop).await.err();
            progress.clear();
        }
        if error.is_none() && loaded.tables.is_empty() {
            // What feeds a pipe may have failed.
            let text = format!("{}: no table was loaded", spec.name());
            let hint = "is the dump whole? mysqldump writes nothing where it fails";
            error = Some(Error::data(text).hint(hint));
        }
        fill(&mut summary, spec, &loaded, error.is_none());
        let server = &mut summary.server;
        (server.data_bytes, server.table_formats) = self.table_facts(&loaded.tables).await.unzip();
        server.class = class_by_size(server.data_bytes, server.buffer_pool_bytes);
        Ok(ended(summary, error))
    }

    /// Runs the commands once; what they print goes to a new file in `dir`.
    pub(super) async fn suite(
        &self,
        spec: &SuiteSpec,
        dir: &Path,
        progress: &mut Progress,
    ) -> Result<Ended> {
        let start = self.start().await?;
        let (name, output) = output(dir, &self.at.identity.label, spec, self.step.repeat)?;
        let (began, started_at) = (Instant::now(), jiff::Timestamp::now());
        let ServerLink { target, stop, .. } = &self.at.link;
        // It blocks this thread, and there is nothing else for it to do.
        let (tests, error) = suite::run(spec, target, &output, stop, progress)?;
        let mut summary = self.finish(&format!("suite-{}", spec.name), start, began).await;
        let sum = |of: fn(&summary::SuiteTest) -> f64| tests.iter().map(of).sum::<f64>();
        summary.started_at = started_at.to_string();
        summary.measured_s = sum(|test| test.wall_s);
        let good = tests.iter().filter(|test| test.status == suite::OK).count() as u64;
        count(&mut summary, good, 0, sum(|test| test.user_s), sum(|test| test.sys_s));
        summary.suite = Some(summary::Suite { tests, output: Some(name) });
        Ok(ended(summary, error))
    }

    /// Reads who the server is, and its counters, on a connection of its own.
    async fn start(&self) -> Result<Start> {
        let probe = self.at.probe.as_ref();
        let mut session = self.at.link.open(None).await?;
        let server = self.at.renewed(&mut session).await?;
        let mut control = Some(session);
        let reading = ServerReading::take(&mut control, probe).await;
        close(control).await;
        Ok(Start { server, reading, own: ClientReading::now(probe) })
    }

    /// Reads the same after the window that began then, and makes a summary in which only the run
    /// itself is missing. A server that does not answer in time costs the reading, not the
    /// measurement.
    async fn finish(&self, usual: &str, start: Start, began: Instant) -> Summary {
        let Surveyed { link, identity, probe, .. } = self.at;
        let probe = probe.as_ref();
        let traffic = ClientReading::now(probe).since(&start.own).traffic;
        // Not the connection of before: a server drops one that was idle for hours.
        let session = within(limits::COURTESY, Session::open(&link.target, &link.opts, None)).await;
        let mut control = session.and_then(Result::ok);
        let last = ServerReading::take(&mut control, probe).await;
        let changed =
            readings::changes(&start.server, &mut control, &link.target, &link.opts).await;
        close(control).await;
        let status = last.status_since(&start.reading, began);
        let mut found = changed_after(changed.as_deref());
        found.extend(cfg!(debug_assertions).then(|| finding!(DebugBuild)));
        found.extend(status.is_none().then(|| finding!(NoStatus)));
        let none = Times::new().distribution();
        let begun = identity.summary(self.step);
        Summary {
            workload: self.workload(usual),
            plan: summary::Plan {
                clients: 1,
                engine_threads: 1,
                on_error: OnError::default(),
                repeat_index: self.step.repeat,
                repeats: self.repeats,
                ..summary::Plan::default()
            },
            server: summary::Server {
                settings_changed: changed.unwrap_or_default(),
                status,
                probed: last.probed_since(&start.reading, probe, began),
                host_facts: host_facts(identity, probe),
                ..start.server
            },
            client: summary::Client {
                net_rx_bytes: traffic.map(|[received, _]| received),
                net_tx_bytes: traffic.map(|[_, sent]| sent),
                ..begun.client.clone()
            },
            latency: summary::Latency {
                service: none.clone(),
                failed: none,
                in_doubt: Some(0),
                abandoned: Some(0),
                ..summary::Latency::default()
            },
            warnings: found.into_iter().map(Into::into).collect(),
            ..begun
        }
    }

    fn workload(&self, usual: &str) -> summary::Workload {
        summary::Workload {
            name: self.title.unwrap_or(usual).to_owned(),
            mode: StatementMode::Text,
            distribution: "sequential".to_owned(),
            spread: Spread::Pinned,
            schema: Schema::Sbtest.to_string(),
            ..summary::Workload::default()
        }
    }

    /// Reads the size of some tables with their indexes, bytes, and their formats, each once; None
    /// where the server does not tell.
    async fn table_facts(&self, tables: &[LoadedTable]) -> Option<(u64, Vec<String>)> {
        let names: Vec<String> = tables.iter().map(|table| quoted_text(&table.name)).collect();
        if names.is_empty() {
            return None;
        }
        let which = format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({})", names.join(","));
        let link = &self.at.link;
        let asking = async {
            let mut session = Session::open(&link.target, &link.opts, None).await?;
            // MySQL 8 keeps sizes for a day otherwise; servers without the variable keep none.
            let fresh = "SET SESSION information_schema_stats_expiry = 0";
            optional(session.execute(fresh).await)?;
            Ok::<_, Error>(dataset::facts(&mut session, &which).await?)
        };
        within(limits::COURTESY, asking).await?.ok()
    }
}

async fn close(control: Option<Session>) {
    if let Some(session) = control {
        session.close(limits::COURTESY).await;
    }
}

fn output(dir: &Path, label: &str, spec: &SuiteSpec, repeat: u32) -> Result<(String, File)> {
    let safe = |text: &str| -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "+-.=@".contains(c) { c } else { '_' };
        text.chars().take(64).map(safe).collect()
    };
    let (label, suite) = (safe(label), safe(&spec.name));
    let name = format!("{label}_suite-{suite}_n{repeat}_{:016x}.output", random()?);
    let file = OpenOptions::new().write(true).create_new(true).open(dir.join(&name));
    let file = file.map_err(|e| Error::failed(format!("{}: {e}", dir.join(&name).display())))?;
    Ok((name, file))
}

/// Says in the summary how it ended. Of a server that changed meanwhile it is no result, which is an
/// error then.
fn ended(mut summary: Summary, mut error: Option<Error>) -> Ended {
    summary.outcome = match error.as_ref().map(Error::kind) {
        None => Outcome::Completed,
        Some(Kind::Interrupted | Kind::Terminated) => Outcome::Interrupted,
        Some(_) => Outcome::Aborted,
    };
    if error.is_none()
        && let Some(changed) = no_result(&summary.server.settings_changed)
    {
        (summary.outcome, error) = (Outcome::ServerChanged, Some(changed));
    }
    summary.reason = error.as_ref().map(ToString::to_string);
    (summary, error)
}

/// Writes ops and rows of a run, and what follows from them once its time is known.
fn count(summary: &mut Summary, ops: u64, rows: u64, user_s: f64, sys_s: f64) {
    let per_s = if summary.measured_s > 0.0 { ops as f64 / summary.measured_s } else { 0.0 };
    let totals = &mut summary.totals;
    (totals.ops, totals.statements, totals.rows) = (ops, ops, rows);
    (totals.tps, totals.qps) = (per_s, per_s);
    totals.per_client = summary::PerClient { ops_min: ops, ops_median: ops as f64, ops_max: ops };
    let client = &mut summary.client;
    (client.user_s, client.sys_s) = (user_s, sys_s);
    client.us_per_op = (ops > 0).then(|| (user_s + sys_s) * 1e6 / ops as f64);
}

fn fill(summary: &mut Summary, spec: &LoadSpec, loaded: &Reloaded, verified: bool) {
    summary.started_at = loaded.started_at.to_string();
    summary.measured_s = loaded.measured_s;
    let cost = loaded.cost;
    count(summary, loaded.statements, loaded.rows, cost.user.as_secs_f64(), cost.sys.as_secs_f64());
    let (file, sql) = match (&spec.source, spec.insert) {
        (LoadSource::Dump { path }, _) => (Some(path.display().to_string()), "the dump's own"),
        (_, InsertMode::Extended { .. }) => (None, "INSERT INTO {table} VALUES (…),(…),…"),
        (_, InsertMode::Single) => (None, "INSERT INTO {table} VALUES (…)"),
        (_, InsertMode::LoadData) => (None, "LOAD DATA LOCAL INFILE … INTO TABLE {table}"),
    };
    let (kind, sql) = ("insert".to_owned(), sql.to_owned());
    summary.workload.statements = vec![summary::StatementText { kind, sql, repeat: 1 }];
    let tables = &loaded.tables;
    summary.plan.tables = tables.len() as u32;
    summary.plan.rows = tables.iter().map(|table| table.rows).max().unwrap_or(0);
    if let LoadSource::Generated { rows, data_seed } = spec.source {
        (summary.plan.tables, summary.plan.rows) = (spec.tables, rows);
        summary.plan.data_seed = Some(u64::from(data_seed));
    }
    summary.totals.errors.clone_from(&loaded.errors);
    let ops = |of: &LoadedTable| summary::TableOps { table: of.name.clone(), ops: of.inserts };
    summary.totals.per_table = tables.iter().map(ops).collect();
    summary.latency.service = loaded.timeline.window.service.distribution();
    summary.latency.failed = loaded.timeline.window.failed.distribution();
    summary.timeline.clone_from(&loaded.timeline.entries);
    if loaded.warnings > 0 {
        summary.warn([finding!(ServerWarnings, loaded.warnings)]);
    }
    if let (Some(file), Some(asked)) = (&file, &spec.charset)
        && !asked.eq_ignore_ascii_case(&loaded.charset)
    {
        let (file, set) = (file.clone(), loaded.charset.as_str());
        summary.warn([finding!(Charset, file, set, asked.as_str())]);
    }
    let rows = |of: &LoadedTable| summary::TableRows { table: of.name.clone(), rows: of.rows };
    let per_s = loaded.rows as f64 / loaded.measured_s;
    summary.load = Some(summary::Load {
        source: if file.is_none() { "generated" } else { "dump" }.to_owned(),
        mode: file.is_none().then(|| spec.insert.to_string()),
        insert_bytes: match spec.insert {
            InsertMode::Extended { bytes } if file.is_none() => Some(bytes),
            _ => None,
        },
        file,
        rows: loaded.rows,
        rows_per_s: if loaded.measured_s > 0.0 { per_s } else { 0.0 },
        statements: loaded.statements,
        bytes: loaded.bytes,
        charset: loaded.charset.clone(),
        character_sets: loaded.character_sets.clone(),
        tables: tables.iter().map(rows).collect(),
        verified,
    });
}
