//! A sweep's table while it fills up, for a terminal.

use std::collections::BTreeSet;

use crate::engine;
use crate::plan::{Plan, Step};
use crate::progress::Board;
use crate::stats::{self, is_scarce};
use crate::summary::{Outcome, Summary};
use crate::terms::Cell;

/// A cell that is still to come.
const TO_COME: &str = "·";

/// One column a cell of the plan: what was measured there so far, medians over its repeats.
pub(super) fn board(plan: &Plan, current: &Step, done: &[Summary]) -> Board {
    let cells: BTreeSet<Cell> = plan.steps().iter().map(Step::cell).collect();
    let here = current.cell();
    let column = |cell: &Cell| {
        let of = done.iter().filter(|s| s.outcome == Outcome::Completed && s.cell() == *cell);
        let mark = if *cell == here { "▸" } else { "" };
        let mut texts = vec![format!("{mark}{cell}")];
        texts.extend(numbers(&of.collect::<Vec<&Summary>>()));
        texts
    };
    Board {
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
