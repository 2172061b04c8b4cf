//! Run → Summary.

use std::collections::BTreeMap;

use super::Run;
use super::conductor::Stage;
use super::crew::engine_threads;
use super::job::queues;
use super::{edge, share, sustained};
use crate::error::Result;
use crate::observe::host::{self, Host};
use crate::observe::probe::Probe;
use crate::observe::process::peak_resident_bytes;
use crate::observe::recorder::Paced;
use crate::observe::times::Times;
use crate::plan::{Step, StopAt, units};
use crate::summary::identity::after;
use crate::summary::{self, Summary};

/// What a summary says besides the step: the same for all steps of a sweep, but for the server.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// 16 hexadecimal digits, one invocation.
    pub run_id: String,
    /// The row of the table.
    pub label: String,
    /// `--note K=V`.
    pub notes: BTreeMap<String, String>,
    /// Seed of the rows, for tables that loadgen made.
    pub data_seed: Option<u32>,
    /// The server before the step.
    pub server: summary::Server,
    /// The client library.
    pub driver: summary::Driver,
    /// Whether the server runs on this host.
    pub same_host: bool,
    /// Median round trip of an empty query, microseconds.
    pub rtt_us: Option<f64>,
    /// This host.
    pub host: Host,
}

impl Identity {
    /// A step's name.
    pub(crate) fn step_id(&self, step: &Step) -> String {
        format!("{}-{}", self.run_id, step.number)
    }
}

/// The program, as it writes itself into summaries.
pub(crate) fn program() -> summary::Program {
    let debug = cfg!(debug_assertions);
    summary::Program {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("LOADGEN_REVISION").map(str::to_owned),
        profile: if debug { "debug" } else { "release" }.to_owned(),
    }
}

/// The JSON contract's object of a step. `changed` are the server's settings that differ after
/// the step; None where that is not known.
pub(crate) fn summary(
    run: &Run,
    stage: &Stage<'_>,
    step: &Step,
    identity: &Identity,
    changed: Option<Vec<summary::SettingChange>>,
) -> Result<Summary> {
    let mut warnings = warnings(run, stage);
    warnings.extend(after(changed.as_deref()));
    warnings.extend(sustained::warnings(run, stage, step));
    warnings.extend(edge::late(run.probed.as_ref(), run.measured_s));
    let mut summary = Summary {
        schema: summary::SCHEMA.to_owned(),
        loadgen: program(),
        run_id: identity.run_id.clone(),
        step_id: identity.step_id(step),
        label: identity.label.clone(),
        notes: identity.notes.clone(),
        outcome: run.outcome,
        reason: run.error.as_ref().map(ToString::to_string),
        workload: workload(stage),
        plan: plan(stage, step, identity.data_seed),
        server: summary::Server {
            settings_changed: changed.unwrap_or_default(),
            status: run.status.clone(),
            probed: run.probed.clone(),
            host_facts: host_facts(identity, stage.probe.as_ref()),
            ..identity.server.clone()
        },
        driver: identity.driver.clone(),
        client: client(run, identity)?,
        started_at: run.started_at.to_string(),
        measured_s: run.measured_s,
        totals: totals(run, stage),
        latency: summary::Latency {
            service: run.timeline.service.distribution()?,
            response: from_intended(run, |paced| &paced.response)?,
            wait: from_intended(run, |paced| &paced.wait)?,
            failed: run.timeline.failed.distribution()?,
            in_doubt: Some(run.lost.in_doubt),
            abandoned: Some(run.lost.abandoned),
            by_statement: (0..)
                .zip(&run.timeline.by_statement)
                .map(|(statement, times)| {
                    Ok(summary::StatementLatency { statement, service: times.distribution()? })
                })
                .collect::<Result<_>>()?,
        },
        timeline: run.timeline.entries.clone(),
        outages: run.outages.clone(),
        ledger: run.ledger.clone(),
        record: None,
        load: None,
        suite: None,
        warnings,
        verdict: None,
        experiment: None,
        conditions: None,
    };
    summary.classify();
    Ok(summary)
}

/// A time that only an open loop has.
fn from_intended(run: &Run, times: fn(&Paced) -> &Times) -> Result<Option<summary::Distribution>> {
    match (&run.timeline.paced, run.paced) {
        (_, None) => Ok(None),
        (Some(paced), Some(_)) => times(paced).distribution().map(Some),
        (None, Some(_)) => Times::new()?.distribution().map(Some),
    }
}

/// The server's host: this one, or the one that the probe reads.
pub(crate) fn host_facts(identity: &Identity, probe: Option<&Probe>) -> Option<summary::HostFacts> {
    identity.server.host_facts.clone().or_else(|| probe?.facts().cloned())
}

fn workload(stage: &Stage<'_>) -> summary::Workload {
    let workload = &stage.plan.workload;
    let running = workload.transactions.iter().flat_map(|t| workload.running(t));
    let statements = running
        .map(|(statement, repeat)| summary::StatementText {
            kind: statement.kind.name().to_owned(),
            sql: statement.expanded(&workload.options).sql,
            repeat,
        })
        .collect();
    summary::Workload {
        name: workload.name.clone(),
        built_in: workload.built_in,
        statements,
        schema: workload.schema.to_string(),
        options: workload.options.iter().map(|(name, s)| (name.clone(), s.value)).collect(),
        option_defaults: Some(
            workload.options.iter().map(|(name, s)| (name.clone(), s.default)).collect(),
        ),
        transactions: Some(workload.definition()),
        unfollowed: workload.unfollowed(),
        mode: stage.plan.statements,
        distribution: stage.plan.distribution.to_string(),
        spread: stage.spread,
    }
}

fn plan(stage: &Stage<'_>, step: &Step, data_seed: Option<u32>) -> summary::Plan {
    let (time_s, ops) = match stage.plan.stop {
        StopAt::Time(time) => (Some(time.as_secs_f64()), None),
        StopAt::Ops(ops) => (None, Some(ops)),
    };
    let threads = engine_threads(stage.plan, step.clients);
    summary::Plan {
        tables: stage.tables.count,
        rows: stage.tables.rows,
        data_seed: data_seed.map(u64::from),
        clients: step.clients,
        engine_threads: threads as u32,
        warmup_s: stage.plan.warmup.as_secs_f64(),
        time_s,
        ops,
        rate: step.rate,
        arrival: step.rate.map(|_| stage.plan.arrival),
        queues: step.rate.map(|_| queues(threads, stage.spread, stage.tables.count, step.clients)),
        seed: stage.plan.seed,
        charset: stage.plan.charset.clone(),
        on_error: stage.plan.policy.on_error,
        max_errors: stage.plan.policy.errors_max.map(|max| max.to_string()),
        op_timeout_s: stage.plan.policy.op_timeout.map(|limit| limit.as_secs_f64()),
        repeat_index: step.repeat,
        repeats: stage.plan.repeats,
    }
}

fn client(run: &Run, identity: &Identity) -> Result<summary::Client> {
    let host = &identity.host;
    let (user_s, sys_s) = (run.user.as_secs_f64(), run.sys.as_secs_f64());
    let ops = run.timeline.window.ops;
    Ok(summary::Client {
        host: host.name.clone(),
        kernel: host.kernel.clone(),
        cpu: host.cpu.clone(),
        cores: host.cores_usable,
        same_host: identity.same_host,
        user_s,
        sys_s,
        us_per_op: (ops > 0).then(|| (user_s + sys_s) * 1e6 / ops as f64),
        threads: run.threads.iter().map(|t| summary::Thread { busy: t.busy }).collect(),
        max_rss_bytes: peak_resident_bytes(),
        rtt_us: identity.rtt_us,
        net_rx_bytes: run.traffic.map(|(received, _)| received),
        net_tx_bytes: run.traffic.map(|(_, sent)| sent),
        share: Some(share::share(run, host)?),
    })
}

fn totals(run: &Run, stage: &Stage<'_>) -> summary::Totals {
    let window = run.timeline.window;
    let rate = |n: u64| if run.measured_s > 0.0 { n as f64 / run.measured_s } else { 0.0 };
    let mut by_client = run.ops_by_client.clone();
    by_client.sort_unstable();
    summary::Totals {
        ops: window.ops,
        statements: window.statements,
        tps: rate(window.ops),
        qps: rate(window.statements),
        rows: window.rows,
        errors: run.errors.clone(),
        reconnects: run.reconnects,
        in_doubt: run.in_doubt,
        abandoned: run.abandoned,
        backlog: run.paced.map(|counts| counts.backlog),
        intended: run.paced.map(|counts| counts.intended),
        warmup_left: run.paced.map(|counts| counts.warmup_left),
        warmup_late_us: run.paced.map(|counts| counts.warmup_late as f64 / 1e3),
        per_table: (1..)
            .zip(&run.ops_by_table)
            .map(|(n, ops)| summary::TableOps { table: stage.tables.schema.name(n), ops: *ops })
            .collect(),
        per_client: summary::PerClient {
            ops_min: by_client.first().copied().unwrap_or(0),
            ops_median: median(&by_client),
            ops_max: by_client.last().copied().unwrap_or(0),
        },
    }
}

fn median(sorted: &[u64]) -> f64 {
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (None, _) => 0.0,
        (Some(upper), 1) => *upper as f64,
        (Some(upper), _) => {
            let lower = sorted.get(middle - 1).copied().unwrap_or(*upper);
            f64::midpoint(lower as f64, *upper as f64)
        }
    }
}

fn warnings(run: &Run, stage: &Stage<'_>) -> Vec<summary::Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, message: String| {
        warnings.push(summary::Warning { code: code.to_owned(), message });
    };
    if cfg!(debug_assertions) {
        warn("debug_build", "measured with a debug build of loadgen".to_owned());
    }
    if let Some(root) = host::recorded() {
        let root = crate::error::plain(&root.display().to_string());
        warn(
            "recorded_host",
            format!("{} is set: the client's host was read below {root}", host::ROOT_VARIABLE),
        );
    }
    let of_ops = run.errors.iter().filter(|e| e.class != "connect");
    let errors: u64 = of_ops.map(|e| e.count).sum();
    if errors > 0 {
        warn("errors", format!("{errors} ops failed; they are not in the rates"));
    }
    if run.abandoned > 0 {
        let when = match stage.plan.policy.op_timeout {
            Some(limit) => format!("within {} or ", units::duration(limit)),
            None => String::new(),
        };
        let text = format!("{} ops got no answer {when}by the end of the drain", run.abandoned);
        warn("abandoned", text);
    }
    if run.reconnects > 0 {
        warn("reconnects", format!("{} connections were lost and opened again", run.reconnects));
    }
    if !run.outages.is_empty() {
        let longest = run.outages.iter().map(|o| o.gap_s).fold(0.0, f64::max);
        let (n, noun) = (run.outages.len(), if run.outages.len() == 1 { "time" } else { "times" });
        let text = format!("nobody was served {n} {noun}, for up to {longest:.1} s");
        warn("outages", text);
    }
    if run.status.is_none() {
        warn("no_status", "the server's status counters could not be read".to_owned());
    }
    if stage.tables.count > 1 && run.ops_by_table.contains(&0) && run.timeline.window.ops > 0 {
        warn("unused_tables", "some tables were not touched in the window".to_owned());
    }
    warnings
}
