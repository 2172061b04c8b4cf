//! Steps, loads and suites as they are told when they have ended, and a sweep's table while it
//! fills up.

use std::collections::BTreeSet;

use crate::engine;
use crate::plan::{Plan, Step, units};
use crate::progress::Table;
use crate::stats::{self, is_scarce};
use crate::summary::{Distribution, Outcome, Summary, VerdictKind};
use crate::terms::{self, Cell, counted};

const TO_COME: &str = "·";

/// Writes the line that stays of what has ended.
pub(super) fn line(summary: &Summary) -> String {
    let (name, client, mark) = (&summary.workload.name, &summary.client, summary.outcome.mark());
    let (measured_s, user_s, sys_s) = (summary.measured_s, client.user_s, client.sys_s);
    let cpu = format!("CPU {user_s:.2} s user {sys_s:.2} s system");
    if let Some(load) = &summary.load {
        let (rows, per_s) = (units::count(summary.totals.rows), load.rows_per_s);
        let statements = load.statements;
        return format!(
            "{name}: {rows} rows in {measured_s:.3} s, {per_s:.0} rows/s, {statements} statements, \
             client {cpu}{mark}"
        );
    }
    if let Some(suite) = &summary.suite {
        let (good, of) = (summary.totals.ops, suite.tests.len());
        return format!("{name}: {good} of {of} tests in {measured_s:.3} s, {cpu}{mark}");
    }
    format!("{}{mark}", step(summary))
}

/// Tells an open loop with the response time: a closed one has no other than the service time.
fn step(summary: &Summary) -> String {
    let (totals, plan) = (&summary.totals, &summary.plan);
    let rate = plan.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
    let name = if summary.latency.response.is_some() { "response" } else { "service" };
    let ms = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), engine::millis);
    let outages = summary.outages.len() as u64;
    let mut text = format!(
        "{} {}{rate}: {:.0} QPS, {name} time p50 {}, p99 {}, max {}, {}",
        summary.workload.name,
        terms::clients(plan.clients),
        totals.qps,
        ms(percentile(summary, 50.0, |times| times.p50_us)),
        ms(percentile(summary, 99.0, |times| times.p99_us)),
        ms(summary.latency.own().max_us),
        counted(errors(summary), "error"),
    );
    for (n, told) in [
        (totals.abandoned, format!("{} abandoned", totals.abandoned)),
        (totals.in_doubt, format!("{} in doubt", totals.in_doubt)),
        (totals.reconnects, counted(totals.reconnects, "reconnect")),
        (outages, counted(outages, "outage")),
    ] {
        if n > 0 {
            text.extend([", ", &told]);
        }
    }
    let verdict = summary.verdict.as_ref().map(|verdict| verdict.kind);
    if let Some(kind) = verdict.filter(|kind| *kind != VerdictKind::Ok) {
        text.extend([", ", kind.name()]);
    }
    text
}

fn errors(summary: &Summary) -> u64 {
    summary.totals.errors.iter().map(|e| e.count).sum()
}

/// Takes a percentile that enough values tell.
fn percentile(step: &Summary, p: f64, of: fn(&Distribution) -> Option<f64>) -> Option<f64> {
    let times = step.latency.own();
    of(times).filter(|_| !is_scarce(p, times.count))
}

/// Makes one column a cell of the plan: what was measured there so far, medians over its repeats.
pub(super) fn table(plan: &Plan, current: &Step, done: &[Summary]) -> Table {
    let cells: BTreeSet<Cell> = plan.steps().iter().map(Step::cell).collect();
    let here = current.cell();
    let column = |cell: &Cell| {
        let of = done.iter().filter(|s| s.outcome == Outcome::Completed && s.cell() == *cell);
        let mark = if *cell == here { "▸" } else { "" };
        let mut texts = vec![format!("{mark}{cell}")];
        texts.extend(numbers(&of.collect::<Vec<&Summary>>()));
        texts
    };
    Table {
        heads: ["clients", "QPS", "p50 ms", "p99 ms", "errors"].map(str::to_owned).to_vec(),
        columns: cells.iter().map(column).collect(),
        // A search measures cells that no plan has.
        current: cells.iter().position(|cell| *cell == here).unwrap_or(0),
    }
}

fn numbers(steps: &[&Summary]) -> [String; 4] {
    let median = |of: fn(&Summary) -> Option<f64>, text: fn(f64) -> String| {
        let values: Vec<f64> = steps.iter().filter_map(|step| of(step)).collect();
        stats::median(&values).map_or_else(|| TO_COME.to_owned(), text)
    };
    let ms = |us: f64| engine::millis(us).trim_end_matches(" ms").to_owned();
    [
        median(|step| Some(step.totals.qps), |qps| format!("{qps:.0}")),
        median(|step| percentile(step, 50.0, |times| times.p50_us), ms),
        median(|step| percentile(step, 99.0, |times| times.p99_us), ms),
        median(|step| Some(errors(step) as f64), |errors| format!("{errors:.0}")),
    ]
}
