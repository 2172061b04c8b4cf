//! A sweep's table while it fills up, for a terminal.

use std::collections::BTreeSet;

use crate::engine;
use crate::plan::{Plan, Step};
use crate::progress::Board;
use crate::stats::{self, is_scarce};
use crate::summary::{Outcome, Summary};

/// A cell that is still to come.
const TO_COME: &str = "·";

/// One column a cell of the plan: what was measured there so far, medians over its repeats.
pub(super) fn board(plan: &Plan, current: &Step, done: &[Summary]) -> Board {
    // Rates are positive, so their bits are in their order.
    let key = |clients: u32, rate: Option<f64>| (clients, rate.unwrap_or(0.0).to_bits());
    let cells: BTreeSet<(u32, u64)> =
        plan.steps().iter().map(|step| key(step.clients, step.rate)).collect();
    let here = key(current.clients, current.rate);
    let column = |cell: &(u32, u64)| {
        let of = done.iter().filter(|s| {
            s.outcome == Outcome::Completed && key(s.plan.clients, s.plan.rate) == *cell
        });
        let rate = f64::from_bits(cell.1);
        let rate = if rate > 0.0 { format!("@{rate}") } else { String::new() };
        let mark = if *cell == here { "▸" } else { "" };
        let mut texts = vec![format!("{mark}{}{rate}", cell.0)];
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
