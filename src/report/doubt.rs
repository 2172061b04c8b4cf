//! Cells that more runs would tell more about: those whose runs lie too far apart, and those that a
//! comparison leaves open.

use super::Options;
use super::layout::{at_clients, label as shown};
use super::number::number;
use super::table::{self, Column, Table};
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

/// A cell in doubt.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// The title of its table.
    pub workload: String,
    /// The labels that it is about.
    pub labels: Vec<String>,
    pub cell: terms::Cell,
    /// Why, for people.
    pub why: String,
}

/// Cells whose median is not known to `widest`, a share of it, or whose runs were disturbed more
/// often than not.
///
/// # Errors
///
/// Those of [`super::render`].
pub fn doubtful(steps: &[&Summary], options: &Options, widest: f64) -> Result<Vec<Doubt>> {
    let mut doubts = Vec::new();
    for table in table::tables(steps, options)? {
        for line in &table.lines {
            for (column, cell) in table.columns.iter().zip(&line.cells) {
                let Some(cell) = cell else { continue };
                let why = wide(cell, widest).or_else(|| disturbed(&cell.steps));
                doubts.extend(why.map(|why| doubt(&table, line.label, *column, &why)));
            }
        }
    }
    Ok(doubts)
}

fn doubt(table: &Table, label: &str, column: Column, why: &str) -> Doubt {
    Doubt {
        workload: table.workload.to_owned(),
        labels: vec![label.to_owned()],
        cell: column,
        why: format!("{} at {}: {why}", shown(label), at_clients(&column)),
    }
}

/// More runs make the interval narrow, and never the range: it counts as long as there is no
/// interval.
fn wide(cell: &table::Cell, widest: f64) -> Option<String> {
    let spread = cell.spread;
    let (what, (low, high)) = match cell.interval {
        Some(interval) => ("the 95 % interval of the median", interval),
        None => ("the range of the runs", (spread.min, spread.max)),
    };
    let width = (high - low) / spread.median;
    (spread.median > 0.0 && width > widest).then(|| {
        let percent = number(width * 100.0, 1);
        format!("{what} is {percent} % of it, over {} runs", spread.n)
    })
}

/// A median tolerates some disturbed runs, and not half of them.
fn disturbed(steps: &[&Summary]) -> Option<String> {
    let found: Vec<&str> = steps.iter().filter_map(|step| disturbance(step)).collect();
    let first = found.first()?;
    (found.len() * 2 >= steps.len())
        .then(|| format!("{} of {} runs were disturbed ({first})", found.len(), steps.len()))
}

/// What disturbed a run, that another one may be free of.
fn disturbance(step: &Summary) -> Option<&str> {
    let verdict = step.verdict.as_ref().filter(|verdict| verdict.kind == VerdictKind::Noisy);
    let noisy = verdict.map(|verdict| verdict.kind.name());
    let disturbed = step.warnings.iter().find(|w| DISTURBED.iter().any(|code| w.is(*code)));
    noisy.or_else(|| disturbed.map(|warning| warning.code.as_str()))
}
