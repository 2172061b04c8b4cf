//! Cells of the base without a ratio: a row each, so that no table seems to be all there is.

use super::super::layout::at_clients;
use super::super::pivot::{Cell, Column, Line, Table, among};
use super::super::{Metric, escape};
use crate::error::Result;

/// A cell that has no ratio.
pub(super) struct Without {
    pub(super) column: Column,
    /// The base's median; none where it has not measured.
    pub(super) base: Option<f64>,
    /// The new label's, likewise.
    pub(super) new: Option<f64>,
    pub(super) runs: (usize, usize),
    /// What is the matter, in a line.
    pub(super) what: String,
    /// Whether the new label did nothing where the base did something.
    pub(super) fell: bool,
}

impl Without {
    pub(super) fn verdict(&self) -> &'static str {
        if self.base.is_some() && self.new.is_some() { "no ratio" } else { "not measured" }
    }

    /// A cell of both labels of which runs have no logarithm.
    pub(super) fn of(
        table: &Table,
        column: Column,
        (one, other): (&Cell, &Cell),
        fell: bool,
    ) -> Result<Without> {
        let mut why = Vec::new();
        for (line, cell) in table.lines.iter().zip([one, other]) {
            let values = cell.steps.iter().map(|step| table.metric.value(step));
            let values: Vec<f64> =
                values.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
            let none = values.iter().filter(|value| **value <= 0.0 || !value.is_finite()).count();
            if none > 0 {
                let name = table.metric.name();
                let had = match table.metric {
                    Metric::Natural | Metric::Qps | Metric::Tps => format!("did 0 {name}"),
                    _ => format!("had no {name} above 0"),
                };
                let label = escape::line(line.label);
                why.push(format!("{none} of {} runs of {label} {had}", values.len()));
            }
        }
        Ok(Without {
            column,
            base: Some(one.spread.median),
            new: Some(other.spread.median),
            runs: (one.spread.n, other.spread.n),
            what: format!("{}: {}", place(table, &column), why.join(", ")),
            fell,
        })
    }
}

/// What one of both labels has measured, or begun, and the other has not.
pub(super) fn absent(table: &Table, base: &str, new: &str) -> Vec<Without> {
    let line = |label: &str| table.lines.iter().find(|line| line.label == label);
    let (one, other) = (line(base), line(new));
    let mut absent = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let cell = |line: Option<&'_ Line>| line?.cells.get(at)?.as_ref().map(|cell| cell.spread);
        let (of_base, of_new) = (cell(one), cell(other));
        let left_out =
            |line: Option<&Line>| line.map_or(0, |line| among(column, &line.left_out).len());
        let lost = (left_out(one), left_out(other));
        // Columns that only other labels have are not asked for.
        let both = of_base.is_some() && of_new.is_some();
        if both || (of_base.is_none() && of_new.is_none() && lost == (0, 0)) {
            continue;
        }
        let mut why = Vec::new();
        for (label, there, lost) in [(base, of_base, lost.0), (new, of_new, lost.1)] {
            let label = escape::line(label);
            match (there, lost) {
                (Some(_), _) => {}
                (None, 0) => why.push(format!("not measured by {label}")),
                (None, lost) => why.push(format!("none of {lost} runs of {label} completed")),
            }
        }
        absent.push(Without {
            column: *column,
            base: of_base.map(|spread| spread.median),
            new: of_new.map(|spread| spread.median),
            runs: (of_base.map_or(0, |spread| spread.n), of_new.map_or(0, |spread| spread.n)),
            what: format!("{}: {}", place(table, column), why.join(", ")),
            fell: false,
        });
    }
    absent
}

fn place(table: &Table, column: &Column) -> String {
    format!("{} at {}", escape::line(table.workload), at_clients(column))
}
