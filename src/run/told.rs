//! Steps, loads and suites as they are told when they have ended, and a sweep's table while it
//! fills up.

use std::collections::BTreeSet;

use crate::engine;
use crate::plan::{Plan, Step, units};
use crate::progress::Table;
use crate::stats::{self, is_scarce};
use crate::summary::{Outcome, Summary, VerdictKind};
use crate::terms::{self, Cell};

/// A cell that is still to come.
const TO_COME: &str = "·";

/// Writes the line that stays of what has ended.
pub(super) fn line(summary: &Summary) -> String {
    let mark = summary.outcome.mark();
    let (name, client) = (&summary.workload.name, &summary.client);
    let (measured_s, user_s, sys_s) = (summary.measured_s, client.user_s, client.sys_s);
    if let Some(load) = &summary.load {
        return format!(
            "{name}: {} rows in {measured_s:.3} s, {:.0} rows/s, {} statements, client CPU \
             {user_s:.2} s user {sys_s:.2} s system{mark}",
            units::count(summary.totals.rows),
            load.rows_per_s,
            load.statements,
        );
    }
    if let Some(suite) = &summary.suite {
        return format!(
            "{name}: {} of {} tests in {measured_s:.3} s, CPU {user_s:.2} s user {sys_s:.2} s \
             system{mark}",
            summary.totals.ops,
            suite.tests.len(),
        );
    }
    step(summary)
}

/// Of an open loop with the response time: a closed one has no other than the service time.
fn step(summary: &Summary) -> String {
    let (totals, plan) = (&summary.totals, &summary.plan);
    let ms = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), engine::millis);
    let errors: u64 = totals.errors.iter().map(|e| e.count).sum();
    let mark = summary.outcome.mark();
    let verdict = summary.verdict.as_ref().map(|verdict| verdict.kind);
    let verdict = match verdict.filter(|kind| *kind != VerdictKind::Ok) {
        Some(kind) => format!(", {}", kind.name()),
        None => String::new(),
    };
    let rate = plan.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
    let (name, times) = match &summary.latency.response {
        Some(response) => ("response", response),
        None => ("service", &summary.latency.service),
    };
    let percentile = |p: f64, us: Option<f64>| ms(us.filter(|_| !is_scarce(p, times.count)));
    let more = [
        (totals.abandoned, "abandoned"),
        (totals.in_doubt, "in doubt"),
        (totals.reconnects, "reconnects"),
        (summary.outages.len() as u64, "outages"),
    ];
    let more = more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {n} {what}"));
    let more: String = more.collect();
    format!(
        "{} {}{rate}: {:.0} QPS, {name} time p50 {}, p99 {}, max {}, {errors} errors{more}\
         {verdict}{mark}",
        summary.workload.name,
        terms::clients(plan.clients),
        totals.qps,
        percentile(50.0, times.p50_us),
        percentile(99.0, times.p99_us),
        ms(times.max_us),
    )
}

/// One column a cell of the plan: what was measured there so far, medians over its repeats.
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
        current: cells.iter().position(|cell| *cell == here).unwrap_or(0),
    }
}

/// QPS, p50, p99 and errors of a cell.
fn numbers(steps: &[&Summary]) -> [String; 4] {
    let median = |of: &dyn Fn(&Summary) -> Option<f64>| {
        stats::median(&steps.iter().filter_map(|step| of(step)).collect::<Vec<f64>>())
    };
    let shown = |value: Option<f64>, text: fn(f64) -> String| {
        value.map_or_else(|| TO_COME.to_owned(), text)
    };
    let ms: fn(f64) -> String = |us| engine::millis(us).trim_end_matches(" ms").to_owned();
    let errors =
        |step: &Summary| step.totals.errors.iter().fold(0.0, |sum, e| sum + e.count as f64);
    [
        shown(median(&|s| Some(s.totals.qps)), |qps| format!("{qps:.0}")),
        shown(
            median(&|s| s.latency.own().p50_us.filter(|_| !is_scarce(50.0, s.latency.own().count))),
            ms,
        ),
        shown(
            median(&|s| s.latency.own().p99_us.filter(|_| !is_scarce(99.0, s.latency.own().count))),
            ms,
        ),
        shown(median(&|s| Some(errors(s))), |errors| format!("{errors:.0}")),
    ]
}
