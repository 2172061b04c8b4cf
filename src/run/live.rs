//! The table that fills up on a terminal while a sweep runs, and the numbers that it and the lines of steps
//! have in common.

use std::collections::BTreeSet;

use crate::plan::{Plan, Step};
use crate::progress::Table;
use crate::stats::{self, is_scarce};
use crate::summary::{Distribution, Outcome, Summary};
use crate::terms::{Cell, Value};

/// The class of attempts to open a lost connection again.
pub(super) const CONNECT: &str = "connect";

/// Counts events of all kinds but attempts to open a connection again.
pub(super) fn errors(summary: &Summary) -> u64 {
    let all = summary.totals.errors.iter().filter(|error| error.class != CONNECT);
    all.map(|error| error.count).sum()
}

/// Takes a percentile that enough values tell.
pub(super) fn percentile(
    step: &Summary,
    p: f64,
    of: fn(&Distribution) -> Option<f64>,
) -> Option<f64> {
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
        stats::median(&values).map_or_else(|| "·".to_owned(), text)
    };
    let ms = |us: f64| Value::Micros(us).to_string().trim_end_matches(" ms").to_owned();
    [
        median(|step| Some(step.totals.qps), |qps| format!("{qps:.0}")),
        median(|step| percentile(step, 50.0, |times| times.p50_us), ms),
        median(|step| percentile(step, 99.0, |times| times.p99_us), ms),
        median(|step| Some(errors(step) as f64), |errors| format!("{errors:.0}")),
    ]
}
