//! Run → Summary.

use std::collections::BTreeMap;
use std::time::Duration;

use super::job::queues;
use super::step::{StepContext, engine_threads};
use super::turn_delay::{ThreadUsage, TurnDelays};
use super::{Run, findings};
use crate::judge::{self, CalibrationStep};
use crate::observe::host::Host;
use crate::observe::probe::Probe;
use crate::observe::process::peak_resident_bytes;
use crate::observe::recorder::Paced;
use crate::observe::times::Times;
use crate::plan::{Plan, Step, StopAt};
use crate::stats;
use crate::summary::{self, Share, Summary, ThreadShare, TurnDelay};

/// What a summary says besides the step: the same for all steps of a sweep, but for the server.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub run_id: String,
    pub label: String,
    pub notes: BTreeMap<String, String>,
    pub data_seed: Option<u32>,
    pub server: summary::Server,
    pub driver: summary::Driver,
    pub same_host: bool,
    /// Median round trip of an empty query, microseconds.
    pub rtt_us: Option<f64>,
    pub host: Host,
}

impl Identity {
    pub(crate) fn step_id(&self, step: &Step) -> String {
        format!("{}-{}", self.run_id, step.number)
    }
}

/// Names the program, as it writes itself into summaries.
pub(crate) fn program() -> summary::Program {
    let debug = cfg!(debug_assertions);
    summary::Program {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("LOADGEN_REVISION").map(str::to_owned),
        profile: if debug { "debug" } else { "release" }.to_owned(),
    }
}

/// Makes the JSON contract's object of a step. `changed` are the server's settings that differ after
/// the step; None where that is not known.
pub(crate) fn summary(
    run: &Run,
    context: &StepContext<'_>,
    step: &Step,
    identity: &Identity,
    changed: Option<Vec<summary::SettingChange>>,
) -> Summary {
    let mut summary = Summary {
        schema: summary::SCHEMA.to_owned(),
        loadgen: program(),
        run_id: identity.run_id.clone(),
        step_id: identity.step_id(step),
        label: identity.label.clone(),
        notes: identity.notes.clone(),
        outcome: run.outcome,
        reason: run.error.as_ref().map(ToString::to_string),
        workload: workload(context),
        plan: plan(context, step, identity.data_seed),
        warnings: findings::of_step(run, context, step, changed.as_deref())
            .into_iter()
            .map(Into::into)
            .collect(),
        server: summary::Server {
            settings_changed: changed.unwrap_or_default(),
            status: run.status.clone(),
            probed: run.probed.clone(),
            host_facts: host_facts(identity, context.probe.as_ref()),
            ..identity.server.clone()
        },
        driver: identity.driver.clone(),
        client: client(run, identity),
        started_at: run.started_at.to_string(),
        measured_s: run.measured_s,
        totals: totals(run),
        latency: latency(run),
        timeline: run.timeline.entries.clone(),
        outages: run.outages.clone(),
        ledger: run.ledger.clone(),
        record: None,
        load: None,
        suite: None,
        verdict: None,
        experiment: None,
        conditions: None,
    };
    summary.server.class = judge::class(&summary);
    summary
}

/// Describes the server's host: this one, or the one that the probe reads.
pub(crate) fn host_facts(identity: &Identity, probe: Option<&Probe>) -> Option<summary::HostFacts> {
    identity.server.host_facts.clone().or_else(|| probe?.facts().cloned())
}

fn workload(context: &StepContext<'_>) -> summary::Workload {
    let workload = &context.plan.workload;
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
        mode: context.plan.statements,
        distribution: context.plan.distribution.to_string(),
        spread: context.spread,
    }
}

fn plan(context: &StepContext<'_>, step: &Step, data_seed: Option<u32>) -> summary::Plan {
    let StepContext { plan, tables, spread, .. } = context;
    let (time_s, ops) = match plan.stop {
        StopAt::Time(time) => (Some(time.as_secs_f64()), None),
        StopAt::Ops(ops) => (None, Some(ops)),
    };
    let threads = engine_threads(plan, step.clients);
    summary::Plan {
        tables: tables.count,
        rows: tables.rows,
        data_seed: data_seed.map(u64::from),
        clients: step.clients,
        engine_threads: threads as u32,
        warmup_s: plan.warmup.as_secs_f64(),
        time_s,
        ops,
        rate: step.rate,
        arrival: step.rate.map(|_| plan.arrival),
        queues: step.rate.map(|_| queues(threads, *spread, tables.count, step.clients)),
        seed: plan.seed,
        charset: plan.charset.clone(),
        on_error: plan.policy.on_error,
        max_errors: plan.policy.errors_max.map(|max| max.to_string()),
        op_timeout_s: plan.policy.op_timeout.map(|limit| limit.as_secs_f64()),
        repeat_index: step.repeat,
        repeats: plan.repeats,
    }
}

fn totals(run: &Run) -> summary::Totals {
    let (window, paced) = (&run.timeline.window, run.counts.paced);
    let mut by_client = run.counts.ops_by_client.clone();
    by_client.sort_unstable();
    summary::Totals {
        ops: window.ops,
        statements: window.statements,
        tps: run.per_s(window.ops),
        qps: run.per_s(window.statements),
        rows: window.rows,
        errors: run.errors.clone(),
        reconnects: run.counts.failures.reconnects,
        in_doubt: run.counts.failures.in_doubt,
        abandoned: run.abandoned(),
        backlog: paced.map(|counts| counts.backlog),
        intended: paced.map(|counts| counts.intended),
        warmup_left: paced.map(|counts| counts.warmup_left),
        warmup_late_us: paced.map(|counts| counts.warmup_late as f64 / 1e3),
        per_table: (run.counts.accounts.iter())
            .map(|one| summary::TableOps { table: one.entry.table.clone(), ops: one.ops })
            .collect(),
        per_client: summary::PerClient {
            ops_min: by_client[0],
            ops_median: median(&by_client),
            ops_max: by_client[by_client.len() - 1],
        },
    }
}

fn median(sorted: &[u64]) -> f64 {
    let (lower, upper) = ((sorted.len() - 1) / 2, sorted.len() / 2);
    f64::midpoint(sorted[lower] as f64, sorted[upper] as f64)
}

fn latency(run: &Run) -> summary::Latency {
    let of_statement = |(statement, times): (u32, &Times)| summary::StatementLatency {
        statement,
        service: times.distribution(),
    };
    summary::Latency {
        service: run.timeline.window.service.distribution(),
        response: from_intended(run, |paced| &paced.response),
        wait: from_intended(run, |paced| &paced.wait),
        failed: run.timeline.window.failed.distribution(),
        in_doubt: Some(run.counts.failures.window_in_doubt),
        abandoned: Some(run.counts.failures.window_abandoned),
        by_statement: (0..).zip(&run.timeline.window.by_statement).map(of_statement).collect(),
    }
}

/// A time that only an open loop has.
fn from_intended(run: &Run, times: fn(&Paced) -> &Times) -> Option<summary::Distribution> {
    run.counts.paced?;
    let known = run.timeline.window.paced.as_ref().map(|paced| times(paced).distribution());
    Some(known.unwrap_or_else(|| Times::new().distribution()))
}

fn client(run: &Run, identity: &Identity) -> summary::Client {
    let host = &identity.host;
    let cost = run.client.cost;
    let ops = run.timeline.window.ops;
    let (user_s, sys_s) = (cost.user.as_secs_f64(), cost.sys.as_secs_f64());
    summary::Client {
        host: host.name.clone(),
        kernel: host.kernel.clone(),
        cpu: host.cpu.clone(),
        cores: host.cores_usable,
        same_host: identity.same_host,
        user_s,
        sys_s,
        us_per_op: (ops > 0).then(|| (user_s + sys_s) * 1e6 / ops as f64),
        threads: run.counts.usage.iter().map(|t| summary::Thread { busy: t.busy }).collect(),
        max_rss_bytes: peak_resident_bytes(),
        rtt_us: identity.rtt_us,
        net_rx_bytes: run.client.traffic.map(|[received, _]| received),
        net_tx_bytes: run.client.traffic.map(|[_, sent]| sent),
        share: Some(share(run, host)),
    }
}

/// Tells the client's share of a step: what its threads saw of themselves, and who used the host.
fn share(run: &Run, host: &Host) -> Share {
    let used = &run.client;
    Share {
        threads: run.counts.usage.iter().map(thread).collect(),
        turns: all_turns(run),
        host_cores: Some(host.cores_online).filter(|cores| *cores > 0),
        host_busy: used.busy,
        other_load: used.others,
        steal: used.steal,
        server_cpu_s: used.server_s,
        throttled_s: used.throttled_s,
        ceiling: None,
    }
}

fn thread(usage: &ThreadUsage) -> ThreadShare {
    ThreadShare {
        busy: usage.busy,
        wall_s: usage.wall.as_secs_f64(),
        cpu_s: usage.ran.as_ref().map(Duration::as_secs_f64),
        spun_s: usage.spun.as_secs_f64(),
        descheduled_s: usage.waited.as_ref().map(Duration::as_secs_f64),
        turns: turn_delay(&usage.delays),
    }
}

fn all_turns(run: &Run) -> TurnDelay {
    let mut all = TurnDelays::new();
    for thread in &run.counts.usage {
        all.merge(&thread.delays);
    }
    turn_delay(&all)
}

fn turn_delay(turns: &TurnDelays) -> TurnDelay {
    let probes = turns.delay.count();
    let tail = stats::highest_known(probes);
    let at = |times: &Times| times.percentile_us(f64::from(tail?));
    TurnDelay {
        probes,
        turn_delay_p50_us: turns.delay.percentile_us(50.0),
        turn_delay_p99_us: turns.delay.percentile_us(99.0),
        turn_delay_max_us: turns.delay.max_us(),
        own_delay_p99_us: turns.own.percentile_us(99.0),
        tail_percentile: tail,
        turn_delay_tail_us: at(&turns.delay),
        own_delay_tail_us: at(&turns.own),
    }
}

/// Tells what a step against canned answers says about this host.
pub(crate) fn calibrated(run: &Run, plan: &Plan, step: &Step) -> CalibrationStep {
    let window = &run.timeline.window;
    let cpu_us = (run.client.cost.user + run.client.cost.sys).as_secs_f64() * 1e6;
    let us_per_op = if window.ops > 0 { cpu_us / window.ops as f64 } else { 0.0 };
    let threads = engine_threads(plan, step.clients);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at_most = threads.min(cores) as f64 * 1e6;
    let turns = all_turns(run);
    CalibrationStep {
        clients: step.clients,
        engine_threads: threads as u32,
        measured_s: run.measured_s,
        qps: run.per_s(window.statements),
        us_per_op,
        busy: run.counts.usage.iter().map(|t| t.busy).fold(0.0, f64::max),
        tail_percentile: turns.tail_percentile,
        turn_delay_tail_us: turns.turn_delay_tail_us,
        other_load: run.client.others,
        steal: run.client.steal,
        ceiling_qps: if us_per_op > 0.0 { at_most / us_per_op } else { 0.0 },
    }
}
