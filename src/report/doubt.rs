//! Cells that more runs would tell more about.

use super::names::{at_clients, label};
use super::options::Options;
use super::table::TableCell;
use super::tables::tables;
use super::value::number;
use crate::error::Result;
use crate::summary::{Summary, VerdictKind};
use crate::terms::{self, Code};

/// Warnings of steps that another run may be free of: something disturbed it.
const DISTURBED: [Code; 10] = [
    Code::Abandoned,
    Code::CpuFrequency,
    Code::CpuThrottled,
    Code::Drift,
    Code::Errors,
    Code::LevelChange,
    Code::Outages,
    Code::Perturbed,
    Code::SettingsChanged,
    Code::Swapping,
];

#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    pub workload: String,
    pub labels: Vec<String>,
    pub cell: terms::Cell,
    pub why: String,
}

/// Cells whose median is not known to `widest`, a share of it, or of which most runs were disturbed.
pub fn doubtful(steps: &[&Summary], options: &Options, widest: f64) -> Result<Vec<Doubt>> {
    let tables = tables(&steps.into(), options)?;
    let doubts = tables.iter().flat_map(|table| {
        table.items().filter_map(|item| {
            let (cell, workload) = (item.column, table.workload.to_owned());
            let why = wide(item.cell, widest)
                .or_else(|| disturbed(&item.cell.steps().collect::<Vec<_>>()))?;
            let why = format!("{} at {}: {why}", label(item.line.label), at_clients(&cell));
            Some(Doubt { workload, labels: vec![item.line.label.to_owned()], cell, why })
        })
    });
    Ok(doubts.collect())
}

/// More runs make the interval narrow, and never the range: it counts as long as there is no interval.
fn wide(cell: &TableCell, widest: f64) -> Option<String> {
    let spread = cell.spread;
    let (what, (low, high)) = match cell.interval {
        Some(interval) => ("the 95 % interval", interval),
        None => ("the range of the runs", (spread.min, spread.max)),
    };
    let width = (high - low) / spread.median;
    (spread.median > 0.0 && width > widest).then(|| {
        let percent = number(width * 100.0, 1);
        format!("{what} is {percent} % of the median, over {} runs", spread.n)
    })
}

/// A median tolerates some disturbed runs, and not half of them.
fn disturbed(steps: &[&Summary]) -> Option<String> {
    let found = steps.iter().filter_map(|step| {
        let noisy = step.verdict.iter().find(|verdict| verdict.kind == VerdictKind::Noisy);
        let warned = step.warnings.iter().find(|w| DISTURBED.iter().any(|code| w.is(*code)));
        noisy.map(|verdict| verdict.kind.name()).or(warned.map(|warning| warning.code.as_str()))
    });
    let found: Vec<&str> = found.collect();
    let first = found.first()?;
    (found.len() * 2 >= steps.len())
        .then(|| format!("{} of {} runs were disturbed ({first})", found.len(), steps.len()))
}
