//! The parts of a summary that a step's run decides, with what its reader must know beside the numbers;
//! and the live line of a step.

use std::collections::BTreeMap;
use std::time::Duration;

use super::alarm::NEVER;
use super::job::{KINDS, engine_threads, queues};
use super::pacing::{LATE, PacingCounts, StepWindow};
use super::self_watch::turns_of_all;
use super::setup::ThreadCounts;
use super::{Counted, MeasuredGroup, MeasuredStep, per_s};
use crate::error::plain;
use crate::judge::changed_after;
use crate::judge::thresholds::{BACKLOG_MAX, LATE_READING, THIRD_MIN};
use crate::mysql::Tables;
use crate::observe::{
    ClientUse, EventCounts, NamedOps, Ns, Paced, RecordedInterval, Times, host, seconds,
};
use crate::plan::script::UNFOLLOWED;
use crate::plan::{Arrival, Group, Plan, ScriptIdentity, Spread, Step, StopAt, units};
use crate::progress::Measuring;
use crate::stats::{self, is_scarce};
use crate::summary::{self, Ceiling, ErrorCount, Interval, Outage, Phase, TurnDelay};
use crate::terms::{ErrorClass, Finding, finding, millis};
use crate::workload::{Setting, Statement};

pub(crate) fn program() -> summary::Program {
    let debug = cfg!(debug_assertions);
    summary::Program {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("LOADGEN_REVISION").map(str::to_owned),
        profile: if debug { "debug" } else { "release" }.to_owned(),
    }
}

pub(crate) fn workload(plan: &Plan, spread: Spread) -> summary::Workload {
    let workload = &plan.workload;
    let running = workload.transactions.iter().flat_map(|t| workload.running(t));
    let text = |(statement, repeat): (&Statement, u64)| summary::StatementText {
        kind: statement.kind().name().to_owned(),
        sql: statement.expanded(&workload.options).0,
        repeat,
    };
    let options = |value: fn(&Setting) -> u64| {
        workload.options.iter().map(|(name, option)| (name.clone(), value(option))).collect()
    };
    summary::Workload {
        name: workload.name.clone(),
        built_in: workload.built_in,
        statements: running.map(text).collect(),
        schema: workload.schema.to_string(),
        options: options(|option| option.value),
        option_defaults: Some(options(|option| option.default)),
        transactions: Some(workload.definition()),
        unfollowed: match &plan.script {
            Some(_) => Some(UNFOLLOWED.to_owned()),
            None => workload.unfollowed(),
        },
        script: plan.script.as_ref().map(|script| describe(&script.identity)),
        mode: plan.statements,
        distribution: plan.distribution.to_string(),
        spread,
    }
}

fn describe(script: &ScriptIdentity) -> summary::Script {
    let file = |(name, sha256): &(String, String)| summary::ScriptFile {
        name: name.clone(),
        sha256: sha256.clone(),
    };
    summary::Script {
        files: script.files.iter().map(file).collect(),
        options: script.options.clone(),
        texts: script.texts.clone(),
    }
}

/// Describes the plan of a step; `data_seed` is known of the tables alone, `search` of the job.
pub(crate) fn plan(
    plan: &Plan,
    step: &Step,
    spread: Spread,
    tables: Tables,
    data_seed: Option<u64>,
    search: Option<summary::RateSearch>,
) -> summary::Plan {
    let threads = engine_threads(plan, step.clients);
    summary::Plan {
        tables: tables.count,
        rows: tables.rows,
        data_seed,
        clients: step.clients,
        engine_threads: threads as u32,
        warmup_s: plan.warmup.as_secs_f64(),
        time_s: plan.stop.time().map(|time| time.as_secs_f64()),
        ops: plan.stop.ops(),
        rate: step.rate,
        arrival: step.rate.map(|_| plan.arrival),
        think_s: plan.think.map(|think| think.as_secs_f64()),
        reconnect_every: plan.reconnect_every,
        queues: step.rate.map(|_| queues(threads, spread, tables.count, step.clients)),
        seed: plan.seed,
        charset: plan.charset.clone(),
        on_error: plan.policy.on_error,
        begins_again: plan.rules.ignored().map(ToString::to_string),
        max_errors: plan.policy.errors_max.map(|max| max.to_string()),
        op_timeout_s: plan.policy.op_timeout.map(|limit| limit.as_secs_f64()),
        repeat_index: step.repeat,
        repeats: plan.repeats,
        search,
    }
}

pub(crate) fn totals(counted: &Counted, counts: &ThreadCounts) -> summary::Totals {
    let (window, paced) = (&counted.timeline.window, counts.paced);
    let events = window.events.as_deref();
    let statements = events.map_or(window.statements, EventCounts::statements);
    let by_client = || counts.ops_by_client.iter().copied();
    let ops: Vec<f64> = by_client().map(|ops| ops as f64).collect();
    summary::Totals {
        ops: window.ops,
        statements,
        tps: per_s(window.ops, counted.measured_s),
        qps: per_s(statements, counted.measured_s),
        rows: window.rows,
        unmatched: Some(window.unmatched),
        errors: counted.errors.clone(),
        retried: events.map(|events| events.ignored),
        reconnects: counts.failures.reconnects,
        in_doubt: counts.failures.in_doubt,
        abandoned: counts.abandoned(),
        backlog: paced.map(|counts| counts.backlog),
        intended: paced.map(|counts| counts.intended),
        warmup_left: paced.map(|counts| counts.warmup_left),
        warmup_late_us: paced.map(|counts| counts.warmup_late as f64 / 1e3),
        per_table: counted.per_table.clone(),
        per_client: summary::PerClient {
            ops_min: by_client().min().expect("a group has clients"),
            ops_median: stats::median(&ops).expect("a group has clients"),
            ops_max: by_client().max().expect("a group has clients"),
        },
    }
}

/// `of_script`: the statements are those of a script, of which the kinds are known alone.
pub(crate) fn latency(
    counted: &Counted,
    counts: &ThreadCounts,
    of_script: bool,
) -> summary::Latency {
    let window = &counted.timeline.window;
    // An open loop has them even where nothing was issued.
    let paced = |times: fn(&Paced) -> &Times| {
        let known = window.paced.as_ref().map(|paced| times(paced).distribution());
        counts.paced.map(|_| known.unwrap_or_else(|| Times::new().distribution()))
    };
    let of_statement = |(statement, times): (u32, &Times)| summary::StatementLatency {
        statement,
        service: times.distribution(),
    };
    let of_kind = |(kind, times): (&str, &Times)| summary::KindLatency {
        kind: kind.to_owned(),
        service: times.distribution(),
    };
    let (all, none) = (&window.by_statement[..], &[][..]);
    let (statements, kinds) = if of_script { (none, all) } else { (all, none) };
    summary::Latency {
        service: window.service.distribution(),
        response: paced(|paced| &paced.response),
        wait: paced(|paced| &paced.wait),
        failed: window.failed.distribution(),
        connect: window.connect.as_ref().map(|times| times.distribution()),
        in_doubt: Some(counts.failures.window_in_doubt),
        abandoned: Some(counts.failures.window_abandoned),
        by_statement: (0..).zip(statements).map(of_statement).collect(),
        by_kind: KINDS.into_iter().zip(kinds).map(of_kind).collect(),
    }
}

/// Lists the ops that a script gave a name, by name.
fn transactions(counted: &Counted, counts: &ThreadCounts) -> Vec<summary::Transaction> {
    let window = &counted.timeline.window;
    let mut errors = counts.failures.list_named();
    // One may have errors alone; one of the warm-up alone is not there.
    let mut all: BTreeMap<String, NamedOps> =
        errors.keys().map(|name| (name.clone(), NamedOps::new(name))).collect();
    let used = window.named.iter().filter(|of| of.ops + of.retried + of.service.count() > 0);
    all.extend(used.map(|of| (of.name.clone(), of.clone())));
    let transaction = |of: NamedOps| summary::Transaction {
        ops: of.ops,
        tps: per_s(of.ops, counted.measured_s),
        errors: errors.remove(&of.name).unwrap_or_default(),
        retried: window.events.as_ref().map(|_| of.retried),
        latency: summary::TransactionLatency {
            service: of.service.distribution(),
            response: counts.paced.map(|_| of.response.unwrap_or_default().distribution()),
        },
        name: of.name,
    };
    all.into_values().map(transaction).collect()
}

pub(crate) fn describe_group(group: &MeasuredGroup) -> summary::Group {
    let MeasuredGroup { plan, step, counted, counts, .. } = group;
    summary::Group {
        name: group.name.to_string(),
        workload: workload(plan, group.spread).into(),
        clients: step.clients,
        rate: step.rate,
        arrival: step.rate.map(|_| plan.arrival),
        think_s: plan.think.map(|think| think.as_secs_f64()),
        reconnect_every: plan.reconnect_every,
        addresses: Vec::new(),
        measured_s: counted.measured_s,
        totals: totals(counted, counts),
        latency: latency(counted, counts, plan.script.is_some()),
        transactions: transactions(counted, counts),
        timeline: counted.timeline.entries.clone(),
        outages: group.outages.clone(),
    }
}

impl MeasuredStep {
    pub(crate) fn transactions(&self) -> Vec<summary::Transaction> {
        transactions(&self.counted, &self.counts)
    }

    pub(crate) fn share(&self, host_cores: u32, ceiling: Option<Ceiling>) -> summary::Share {
        let mut all = share(&self.counts, &self.readings.client, host_cores, ceiling);
        let delays = self.hosts.iter().filter_map(|host| Some(&host.share.as_ref()?.turns));
        let late = |turns: &TurnDelay| turns.turn_delay_tail_us.unwrap_or(0.0);
        if let Some(worst) = delays.max_by(|one, other| late(one).total_cmp(&late(other))) {
            all.turns.clone_from(worst);
        }
        all
    }
}

pub(crate) fn share(
    counts: &ThreadCounts,
    client: &ClientUse,
    host_cores: u32,
    ceiling: Option<Ceiling>,
) -> summary::Share {
    summary::Share {
        threads: counts.usage.iter().map(|thread| thread.share.clone()).collect(),
        turns: turns_of_all(&counts.usage),
        host_cores: (host_cores > 0).then_some(host_cores),
        host_busy: client.busy,
        other_load: client.others,
        steal: client.steal,
        server_cpu_s: client.server_s,
        throttled_s: client.throttled_s,
        ceiling,
    }
}

pub(crate) fn findings(run: &MeasuredStep, plan: &Plan, step: &Step) -> Vec<Finding> {
    let (window, readings) = (&run.counted.timeline.window, &run.readings);
    let retried = window.events.as_ref().map_or(0, |events| events.ignored);
    // By sysbench's rules such an answer is no error.
    let unexpected = window.events.as_ref().map_or(0, |events| events.unexpected);
    let incomplete = "not the number of rows that complete tables give";
    let has_wrong = run.counted.errors.iter().any(|error| error.class == ErrorClass::Wrong);
    let [errors, abandoned, reconnects, outages] =
        failures(&run.counted, &run.counts, &run.outages, None);
    let untouched = run.counted.per_table.iter().any(|table| table.ops == 0);
    let all = [
        cfg!(debug_assertions).then(|| finding!(DebugBuild)),
        host::recorded().map(|root| {
            finding!(RecordedHost, host::ROOT_VARIABLE, plain(&root.to_string_lossy()))
        }),
        errors,
        (retried > 0).then(|| finding!(Retried, retried)),
        (unexpected > 0 && !has_wrong).then(|| finding!(WrongAnswers, unexpected, incomplete)),
        abandoned,
        reconnects,
        outages,
        readings.status.is_none().then(|| finding!(NoStatus)),
        (run.counted.per_table.len() > 1 && untouched && window.ops > 0)
            .then(|| finding!(UnusedTables)),
    ];
    let mut found: Vec<Finding> = all.into_iter().flatten().collect();
    found.extend(changed_after(readings.changed.as_deref()));
    found.extend(of_pacing(&run.counted, &run.counts, (plan, step), None));
    found.extend(run.groups.iter().flat_map(findings_of_group));
    // The cost of an op on the server's host is known from its first reading on.
    let first_s = readings.probed.as_ref().map(|probed| probed.first_s);
    if let Some(first_s) = first_s.filter(|s| *s > LATE_READING * run.counted.measured_s) {
        found.push(finding!(LateReading, first_s));
    }
    found
}

fn findings_of_group(group: &MeasuredGroup) -> Vec<Finding> {
    let MeasuredGroup { counted, counts, plan, step, outages, .. } = group;
    let name = Some(group.name.as_str());
    let failures = failures(counted, counts, outages, name).into_iter().flatten();
    failures.chain(of_pacing(counted, counts, (plan, step), name)).collect()
}

/// Finds errors, ops without an answer, connections that were opened again and outages.
fn failures(
    counted: &Counted,
    counts: &ThreadCounts,
    outages: &[Outage],
    group: Option<&str>,
) -> [Option<Finding>; 4] {
    let of_ops = counted.errors.iter().filter(|error| error.is_of_op());
    let errors: u64 = of_ops.map(|error| error.count).sum();
    let (reconnects, abandoned) = (counts.failures.reconnects, counts.abandoned());
    let longest = outages.iter().map(|outage| outage.gap_s).fold(0.0, f64::max);
    let all = || most_frequent(&counted.errors);
    [
        (errors > 0).then(|| finding!(Errors, errors, all(), group)),
        (abandoned > 0).then(|| finding!(Abandoned, abandoned, group)),
        (reconnects > 0).then(|| finding!(Reconnects, reconnects, group)),
        (!outages.is_empty()).then(|| finding!(Outages, outages.len(), longest, group)),
    ]
}

/// Finds that a paced group did not reach its rate, or began its window late.
fn of_pacing(
    counted: &Counted,
    counts: &ThreadCounts,
    (plan, step): (&Plan, &Step),
    group: Option<&str>,
) -> Vec<Finding> {
    let Some((rate, counts)) = step.rate.zip(counts.paced.as_ref()) else { return Vec::new() };
    let (window, measured_s) = (&counted.timeline.window, counted.measured_s);
    let most = rate * plan.warmup.as_secs_f64() / LATE as f64;
    let usual_us = window.paced.as_ref().and_then(|paced| paced.response.percentile_us(99.0));
    let most = most.max(f64::from(step.clients));
    let late = warmup_finding(counts, most, usual_us, group);
    let waiting = counts.behind.max(counts.backlog as f64);
    let grew = grew(&counted.timeline.entries);
    let even = plan.arrival == Arrival::Uniform;
    let missed = measured_s > 0.0 && backlog(waiting, counts.intended, step.clients, even, grew);
    // The last one's wait supposes that others follow: no more wait than there were.
    let queued = waiting.min(counts.intended as f64);
    let missed =
        missed.then(|| finding!(NotSustained, per_s(window.ops, measured_s), rate, queued, group));
    late.into_iter().chain(missed).collect()
}

fn most_frequent(errors: &[ErrorCount]) -> String {
    let of_ops = || errors.iter().filter(|error| error.is_of_op());
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for error in of_ops() {
        let name = error.code.map_or_else(|| format!("'{}'", error.class), |n| n.to_string());
        *counts.entry(format!("error {name}")).or_default() += error.count;
    }
    let (all, is_one) = (counts.values().sum::<u64>(), counts.len() == 1);
    let most = counts.into_iter().find(|(_, count)| count * 2 > all).map(|(name, _)| name);
    most.map_or_else(
        || "several errors".to_owned(),
        |name| if is_one { name } else { format!("{name} and others") },
    )
}

/// Finds what the window took over from its warm-up, if that is worth a word: some arrivals always wait
/// by chance, so it takes more than `most` of them, or a wait that is longer than is usual later.
fn warmup_finding(
    counts: &PacingCounts,
    most: f64,
    usual_us: Option<f64>,
    group: Option<&str>,
) -> Option<Finding> {
    let left = counts.warmup_left as f64;
    let late_us = counts.warmup_late as f64 / 1e3;
    let late = usual_us.is_some_and(|usual_us| late_us > usual_us);
    let late = late.then(|| finding!(WarmupLate, left, late_us, group));
    if left > most { Some(finding!(WarmupBacklog, left, group)) } else { late }
}

/// Decides whether so many arrivals wait for another reason than chance. Random ones come in bursts of the
/// root of their number; evenly spaced ones do not, nor do waits that grow follow from bursts.
fn backlog(waiting: f64, intended: u64, clients: u32, even: bool, grew: bool) -> bool {
    let part = BACKLOG_MAX * intended as f64;
    let chance = 3.0 * (intended as f64).sqrt();
    let more = part.max(f64::from(clients));
    (waiting > part && waiting > chance)
        || (even && waiting > more)
        || (grew && waiting > more.min(chance))
}

fn grew(timeline: &[Interval]) -> bool {
    let measured = timeline.iter().filter(|entry| entry.phase == Phase::Measure);
    let medians: Vec<f64> = measured.filter_map(|entry| entry.response_p50_us).collect();
    let third = medians.len() / 3;
    if third < THIRD_MIN {
        return false;
    }
    let (first, last) = (medians.iter().take(third), medians.iter().rev().take(third));
    let largest = first.copied().fold(0.0, f64::max);
    last.copied().fold(f64::INFINITY, f64::min) > largest
}

pub(crate) struct LiveLine<'a> {
    plan: &'a Plan,
    step: &'a Step,
    later: Option<Duration>,
    /// The hosts of the clients and their clocks, where there are several.
    pub hosts: Option<String>,
    /// All that came since the line before; where nothing did, what that showed.
    seen: Option<RecordedInterval>,
    is_shown: bool,
    /// The last interval of each group beside.
    beside: Vec<Option<RecordedInterval>>,
    window_ops: u64,
}

impl LiveLine<'_> {
    pub(crate) fn new<'a>(plan: &'a Plan, step: &'a Step, later: Option<Duration>) -> LiveLine<'a> {
        let beside = vec![None; plan.groups.len()];
        let (seen, is_shown) = (None, false);
        LiveLine { plan, step, later, hosts: None, seen, is_shown, beside, window_ops: 0 }
    }

    fn head(&self) -> String {
        let (Step { place, of, repeat, .. }, n) = (self.step, self.plan.repeats);
        let repeat = if n == 1 { String::new() } else { format!(", repeat {repeat} of {n}") };
        let (name, cell) = (&self.plan.workload.name, self.step.cell().told());
        let hosts = self.hosts.as_ref().map_or_else(String::new, |hosts| format!(" on {hosts}"));
        format!("[{place}/{of}] {name} {cell}{repeat}{hosts}")
    }

    pub(crate) fn opening(&self, opened: u32) -> String {
        let all = self.step.clients + self.plan.clients_beside();
        format!("{}: opened {opened} of {all} connections", self.head())
    }

    pub(crate) fn add(&mut self, group: u8, intervals: &[RecordedInterval]) {
        if let Some(at) = usize::from(group).checked_sub(1) {
            let last = intervals.iter().rfind(|interval| interval.end > interval.start);
            self.beside[at] = last.cloned().or_else(|| self.beside[at].take());
            return;
        }
        for interval in intervals {
            if interval.phase == Phase::Measure {
                self.window_ops += interval.ops;
            }
            match &mut self.seen {
                // A line never mixes phases.
                Some(seen) if seen.phase == interval.phase && !self.is_shown => {
                    seen.merge(interval);
                }
                _ if interval.end > interval.start => {
                    (self.seen, self.is_shown) = (Some(interval.clone()), false);
                }
                // A thread that heard late of the window ended it: it has no rate.
                _ => {}
            }
        }
    }

    /// Returns what was added since the last time; where nothing was, what was shown then. `window` is what is decided of it.
    pub(crate) fn state(&mut self, window: StepWindow) -> Measuring {
        let head = self.head();
        self.is_shown = true;
        let Some(seen) = &self.seen else {
            let line = format!("{head}: starting");
            return Measuring { short: line.clone(), line, cells: Vec::new() };
        };
        let (doing, left) = self.doing(seen, window);
        let per_s = |n: u64| write_rate(seen, n);
        // A closed loop has no other time than the call's; an open one counts from the instant that was intended.
        let (done, name, times) = match self.step.rate {
            None => (format!("{} QPS", per_s(seen.statements)), "service", Some(&seen.service)),
            Some(rate) => {
                let times = seen.paced.as_ref().map(|paced| &paced.response);
                (format!("{} of {rate} ops/s", per_s(seen.ops)), "response", times)
            }
        };
        let time = |p: f64| {
            let enough = times.filter(|times| !is_scarce(p, times.count()));
            let us = enough.and_then(|times| times.percentile_us(p));
            us.map_or_else(|| "-".to_owned(), millis)
        };
        let (p50, p99, n) = (time(50.0), time(99.0), seen.errors);
        let open = self.step.rate.map_or_else(String::new, |_| format!(", {done}"));
        let beside = self.beside_in_words();
        let ms = |text: &str| text.trim_end_matches(" ms").to_owned();
        let qps = per_s(seen.statements);
        Measuring {
            short: format!("{head}: {doing}, {left}{open}{beside}"),
            cells: vec![qps, ms(&p50), ms(&p99), n.to_string()],
            line: format!(
                "{head}: {doing}, {left}, {done}, {name} time p50 {p50}, p99 {p99}, {n} errors{beside}"
            ),
        }
    }

    /// Words the last interval of each group beside.
    fn beside_in_words(&self) -> String {
        let of = |(group, seen): (&Group, &Option<RecordedInterval>)| {
            let seen = seen.as_ref()?;
            let per_s = write_rate(seen, seen.ops);
            let errors =
                if seen.errors > 0 { format!(", {} errors", seen.errors) } else { String::new() };
            Some(format!("; {} {per_s} ops/s{errors}", group.name))
        };
        self.plan.groups.iter().zip(&self.beside).filter_map(of).collect()
    }

    /// Names the phase, and what is left of it and of all steps.
    fn doing(&self, seen: &RecordedInterval, window: StepWindow) -> (&'static str, String) {
        let until = |edge: Ns| edge.saturating_sub(seen.end);
        let left = |edge: Ns| format!("{} left", clock(until(edge)));
        let warmup = self.plan.warmup.as_nanos() as Ns;
        let start = if window.start == NEVER { warmup } else { window.start };
        let of_window = self.plan.stop.time().map_or(0, |time| time.as_nanos() as Ns);
        let (doing, left, here) = match (seen.phase, self.plan.stop) {
            (Phase::Warmup, _) => ("warm-up", left(start), until(start) + of_window),
            (Phase::Measure, StopAt::Time(_)) => ("measuring", left(window.end), until(window.end)),
            (Phase::Measure, StopAt::Ops(ops)) => {
                ("measuring", format!("{} of {ops} ops", self.window_ops), 0)
            }
            (Phase::Drain, _) => ("draining", "ending".to_owned(), 0),
        };
        let later =
            self.later.and_then(|later| here.checked_add(Ns::try_from(later.as_nanos()).ok()?));
        let all = later.map_or_else(String::new, |all| format!(", all steps {}", clock(all)));
        (doing, left + &all)
    }
}

/// Writes a rate; none of the drain, of which no op counts.
fn write_rate(seen: &RecordedInterval, n: u64) -> String {
    if seen.phase == Phase::Drain {
        return "-".to_owned();
    }
    units::rate(n as f64 / seconds((seen.end - seen.start).max(1)))
}

/// Writes hours, minutes and seconds, rounded up, so that 0:00 means over.
fn clock(ns: Ns) -> String {
    let s = ns.div_ceil(1_000_000_000);
    let (h, m, s) = (s / 3600, s / 60 % 60, s % 60);
    if h > 0 { format!("{h}:{m:02}:{s:02}") } else { format!("{m}:{s:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::engine::job::tests::a_plan;
    use crate::observe::recorder::{Op, Phases, Recorder};

    #[test]
    fn what_a_warm_up_leaves_is_told_where_it_is_much_or_late() {
        let of = |warmup_left, late_ms: u64| {
            let warmup_late = late_ms * 1_000_000;
            let counts = PacingCounts { warmup_left, warmup_late, ..PacingCounts::default() };
            warmup_finding(&counts, 64.0, Some(2_000.0), None)
        };
        assert_eq!(of(0, 0), None);
        assert_eq!(of(5, 1), None, "as others do");
        let late = of(5, 80).expect("later than they");
        assert_eq!(late, finding!(WarmupLate, 5.0, 80_000.0, None::<&str>));
        assert_eq!(of(65, 80), Some(finding!(WarmupBacklog, 65.0, None::<&str>)));
    }

    #[test]
    fn most_frequent_error_is_named_and_whether_there_are_others() {
        let counted = |code, count| ErrorCount {
            code: Some(code),
            sqlstate: None,
            class: ErrorClass::Session,
            message: String::new(),
            count,
        };
        assert_eq!(most_frequent(&[counted(1213, 3)]), "error 1213");
        assert_eq!(most_frequent(&[counted(1213, 3), counted(1205, 1)]), "error 1213 and others");
        assert_eq!(most_frequent(&[counted(1213, 3), counted(1205, 3)]), "several errors");
    }

    fn entry(response_p50_us: f64) -> Interval {
        let response_p50_us = Some(response_p50_us);
        Interval { response_p50_us, ..Interval::counted(Phase::Measure, 0.0, 1) }
    }

    #[test]
    fn what_waits_is_no_chance_where_it_is_even_or_grows() {
        // Ten seconds at 106 a second of a server that does 98.
        assert!(backlog(78.0, 1_060, 8, true, false));
        assert!(backlog(78.0, 1_060, 8, false, true));
        assert!(!backlog(78.0, 1_060, 8, false, false), "a burst may do that");
        assert!(backlog(98.0, 1_060, 8, false, false));
        assert!(!backlog(10.0, 1_060, 8, true, true), "less than a hundredth");
        assert!(!backlog(78.0, 1_060, 80, true, true), "one a client");
        assert!(!backlog(990.0, 100_000, 8, true, false));
        assert!(backlog(990.0, 100_000, 8, true, true), "more than by chance, and growing");
    }

    #[test]
    fn no_more_ops_are_queued_than_the_step_has() {
        let plan = a_plan(0, 2, StopAt::Ops(50));
        let step = Step::new(1, 1, (2, Some(5_000.0)), 1);
        let counted = Counted { measured_s: 1.0, ..Counted::default() };
        let queued = |behind| {
            let paced = Some(PacingCounts { intended: 50, behind, ..PacingCounts::default() });
            let counts = ThreadCounts { paced, ..ThreadCounts::default() };
            of_pacing(&counted, &counts, (&plan, &step), None)
        };
        let told = |queued: f64| vec![finding!(NotSustained, 0.0, 5_000.0, queued, None::<&str>)];
        assert_eq!([queued(5_422.0), queued(30.0)], [told(50.0), told(30.0)]);
    }

    #[test]
    fn a_backlog_grows_only_where_the_end_is_worse_than_all_of_the_beginning() {
        let growing: Vec<Interval> = (1..=12).map(|i| entry(f64::from(i))).collect();
        assert!(grew(&growing));
        assert!(grew(&growing[..6]));
        assert!(!grew(&growing[..5]), "too few to tell");
        let mut stall = vec![entry(1.0); 12];
        stall[10] = entry(1e6);
        assert!(!grew(&stall), "one stall that was made good");
    }

    const M: Ns = 60_000_000_000;
    const MINUTE: StepWindow = StepWindow { start: 0, end: M, early: false, last: M };
    const STEP: Step = Step::new(1, 1, (64, None), 1);

    fn intervals() -> Vec<RecordedInterval> {
        let second = 1_000_000_000;
        let phases =
            Phases { window_start: 0, window_end: 60 * second, by_issue: false, interval: second };
        let (mut recorder, seen) = Recorder::listing(phases, 0);
        for i in 0..1500 {
            let issued = i * 1_000_000;
            let completed = issued + 500_000;
            let measured = true;
            let op = Op { issued, measured, completed, statements: 1, rows: 1, ..Op::default() };
            recorder.succeeded(op);
        }
        recorder.finish(2 * second);
        seen.take()
    }

    #[test]
    fn a_line_has_everything_of_its_intervals() {
        let plan = a_plan(0, 64, StopAt::Time(Duration::from_mins(1)));
        let step = Step { number: 12, place: 2, of: 6, ..STEP };
        let mut line = LiveLine::new(&plan, &step, None);
        assert_eq!(line.opening(3), "[2/6] point-select 64 clients: opened 3 of 64 connections");
        let hosts =
            LiveLine { hosts: Some("c1, c2".to_owned()), ..LiveLine::new(&plan, &step, None) };
        assert!(hosts.opening(3).starts_with("[2/6] point-select 64 clients on c1, c2: "));
        line.add(0, &intervals()[..2]);
        assert_eq!(
            line.state(MINUTE).line,
            "[2/6] point-select 64 clients: measuring, 0:58 left, 750 QPS, service time p50 \
             0.500 ms, p99 0.500 ms, 0 errors"
        );
    }

    #[test]
    fn a_terminal_has_the_numbers_in_the_table_and_the_time_of_all_steps() {
        let plan = a_plan(0, 64, StopAt::Time(Duration::from_mins(1)));
        let step = Step { number: 12, place: 2, of: 6, ..STEP };
        let mut line = LiveLine::new(&plan, &step, Some(Duration::from_mins(4)));
        line.add(0, &intervals()[..2]);
        let state = line.state(MINUTE);
        assert_eq!(
            state.short,
            "[2/6] point-select 64 clients: measuring, 0:58 left, all steps 4:58"
        );
        assert_eq!(state.cells, ["750", "0.500", "0.500", "0"]);
        assert!(state.line.contains("4:58"), "{}", state.line);
    }

    #[test]
    fn a_percentile_of_few_ops_is_no_number() {
        let plan = a_plan(0, 64, StopAt::Time(Duration::from_mins(1)));
        let mut line = LiveLine::new(&plan, &STEP, None);
        // The second second has 500 ops.
        line.add(0, &intervals()[1..2]);
        assert_eq!(line.state(MINUTE).cells[1..3], ["0.500", "-"], "too few beyond p99");
    }

    #[test]
    fn line_stays_when_nothing_new_has_come() {
        let plan = a_plan(0, 64, StopAt::Time(Duration::from_mins(1)));
        let mut line = LiveLine::new(&plan, &STEP, None);
        line.add(0, &intervals()[..1]);
        let first = line.state(MINUTE).line;
        assert_eq!(line.state(MINUTE).line, first);
        line.add(0, &intervals()[1..2]);
        assert_eq!(line.state(MINUTE).cells[0], "500", "of what came since");
    }

    #[test]
    fn drain_has_no_rate() {
        let plan = a_plan(0, 64, StopAt::Time(Duration::from_mins(1)));
        let mut line = LiveLine::new(&plan, &STEP, None);
        line.add(0, &[RecordedInterval { phase: Phase::Drain, ..intervals()[0].clone() }]);
        assert_eq!(line.state(MINUTE).cells[0], "-");
    }

    #[test]
    fn interval_without_a_length_has_no_rate() {
        let plan = a_plan(0, 64, StopAt::Time(Duration::from_mins(1)));
        let mut line = LiveLine::new(&plan, &STEP, None);
        line.add(0, &[RecordedInterval { statements: 1, ..RecordedInterval::default() }]);
        assert!(line.state(MINUTE).cells.is_empty());
    }

    #[test]
    fn ops_show_how_many_are_done() {
        let plan = a_plan(0, 64, StopAt::Ops(9000));
        let mut line = LiveLine::new(&plan, &STEP, None);
        line.add(0, &intervals()[..1]);
        assert!(line.state(MINUTE).line.contains("1000 of 9000"));
    }
}
