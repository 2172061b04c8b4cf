//! Cells of the base without a ratio: a row each, so that no table seems to be all there is.

use super::super::layout::at_clients;
use super::super::pivot::{Cell, Column, Table};
use super::super::{Metric, escape};
use crate::error::Result;

/// A cell that has no ratio.
pub(super) struct Without {
    pub(super) column: Column,
    /// The base's median.
    pub(super) base: f64,
    /// The new label's; none where it has not measured.
    pub(super) new: Option<f64>,
    pub(super) runs: (usize, usize),
    /// What is the matter, in a line.
    pub(super) what: String,
    /// Whether the new label did nothing where the base did something.
    pub(super) fell: bool,
}

impl Without {
    pub(super) fn verdict(&self) -> &'static str {
        if self.new.is_some() { "no ratio" } else { "not measured" }
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
            base: one.spread.median,
            new: Some(other.spread.median),
            runs: (one.spread.n, other.spread.n),
            what: format!("{}: {}", place(table, &column), why.join(", ")),
            fell,
        })
    }
}

/// What the base has measured and the new label has not.
pub(super) fn absent(table: &Table, base: &str, new: &str) -> Vec<Without> {
    let cells = |label: &str| {
        let line = table.lines.iter().find(|line| line.label == label);
        line.map_or(&[][..], |line| line.cells.as_slice())
    };
    let (base, others) = (cells(base), cells(new));
    let mut absent = Vec::new();
    for (at, (column, cell)) in table.columns.iter().zip(base).enumerate() {
        if let (Some(cell), None) = (cell, others.get(at).and_then(Option::as_ref)) {
            absent.push(Without {
                column: *column,
                base: cell.spread.median,
                new: None,
                runs: (cell.spread.n, 0),
                what: format!("{} was not measured by {}", place(table, column), escape::line(new)),
                fell: false,
            });
        }
    }
    absent
}

fn place(table: &Table, column: &Column) -> String {
    format!("{} at {}", escape::line(table.workload), at_clients(column))
}
