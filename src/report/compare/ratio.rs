//! The ratio of two cells, from their runs.

use jiff::Timestamp;

use super::super::metric::Metric;
use super::super::pivot::{Cell, Table};
use super::verdict::is_too_few;
use super::{common, looks};
use crate::error::Result;
use crate::stats::{self, Shift};
use crate::summary::Summary;

/// Fills in the 95 % intervals of the ratios of a table that relates to a baseline: each by itself,
/// from the same runs or blocks of runs as a comparison of the label with it over all tables.
pub(crate) fn intervals(table: &mut Table, all: &[Table]) -> Result<()> {
    let of_base = table.lines.iter().find(|line| Some(line.label) == table.baseline.as_deref());
    let Some(base) = of_base.cloned() else { return Ok(()) };
    for line in table.lines.iter_mut().filter(|line| line.label != base.label) {
        let labels = [base.label, line.label];
        let compared: Vec<Table> = all.iter().map(|table| table.of_labels(&labels)).collect();
        let rows = compared.iter().filter(|table| !common(table).is_empty()).count();
        let looks = compared.iter().map(|table| looks(table, 0)).max().unwrap_or(1);
        let both = line.cells.iter().zip(&base.cells);
        let cells = both.filter(|(one, other)| one.is_some() && other.is_some()).count();
        let times = (cells * rows) as f64 * f64::from(looks);
        for (cell, base) in line.cells.iter_mut().zip(&base.cells) {
            if let (Some(cell), Some(base)) = (cell, base) {
                cell.relative_interval = interval(base, cell, &table.metric, times)?;
            }
        }
    }
    Ok(())
}

/// The 95 % interval of the ratio of a cell to a base, higher being better, where p is multiplied
/// by so much; none where the runs are too few, or have no ratio.
pub(crate) fn interval(
    base: &Cell,
    cell: &Cell,
    metric: &Metric,
    times: f64,
) -> Result<Option<(f64, f64)>> {
    let (a, b) = (logs(base, metric)?, logs(cell, metric)?);
    let shift = shift((base, &a), (cell, &b), times);
    let interval = shift.and_then(|(shift, _)| shift.interval);
    Ok(interval.map(|(low, high)| (low.exp(), high.exp())))
}

/// The logarithms of a cell's runs, turned so that more is better; empty where one has none.
pub(super) fn logs(cell: &Cell, metric: &Metric) -> Result<Vec<f64>> {
    let mut logs = Vec::new();
    for step in &cell.steps {
        let Some(value) = metric.value(step)? else { continue };
        if value <= 0.0 || !value.is_finite() {
            return Ok(Vec::new());
        }
        logs.push(if metric.higher_is_better() { value.ln() } else { -value.ln() });
    }
    Ok(logs)
}

/// How far the new runs lie above those of the base. Interleaved ones are compared in blocks,
/// where there are enough of them for p times so much to decide: a difference between two runs
/// beside each other does not hold what drifts over an hour.
pub(crate) fn shift(
    one: (&Cell, &[f64]),
    other: (&Cell, &[f64]),
    times: f64,
) -> Option<(Shift, bool)> {
    if let Some(differences) = blocks(one, other)
        && let Some(shift) = stats::pairs(&differences)
        && !is_too_few(&shift, times)
    {
        return Some((shift, true));
    }
    Some((stats::two_samples(one.1, other.1)?, false))
}

/// The differences of runs beside each other, where each repeat has one of both and ends before
/// the next begins.
fn blocks(one: (&Cell, &[f64]), other: (&Cell, &[f64])) -> Option<Vec<f64>> {
    let (a, b) = (&one.0.steps, &other.0.steps);
    if a.len() != b.len() || one.1.len() != a.len() || other.1.len() != b.len() {
        return None;
    }
    let at = |step: &Summary| step.started_at.parse::<Timestamp>().ok();
    let mut last: Option<Timestamp> = None;
    // The steps of a cell are sorted by time.
    for (a, b) in a.iter().zip(b) {
        if a.plan.repeat_index != b.plan.repeat_index {
            return None;
        }
        let (a, b) = (at(a)?, at(b)?);
        if last.is_some_and(|last| a.min(b) <= last) {
            return None;
        }
        last = Some(a.max(b));
    }
    Some(one.1.iter().zip(other.1).map(|(a, b)| b - a).collect())
}
