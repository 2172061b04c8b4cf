//! The best number of each column, and those that its runs do not tell from it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::compare::{interval, is_asked_for};
use super::super::pivot::{Cell, Column, Table};
use crate::error::Result;

/// What is marked as the best of each column.
pub(super) struct Best {
    /// Positions of lines; none where there is no choice, or where the number is what was asked for.
    lines: BTreeMap<Column, BTreeSet<usize>>,
    /// Columns in which the runs are too few to tell the best from all others.
    untold: Vec<Column>,
}

impl Best {
    /// Of a table of plain numbers.
    pub(super) fn of(table: &Table) -> Result<Best> {
        let mut best = Best { lines: BTreeMap::new(), untold: Vec::new() };
        let found = table.columns.iter().enumerate().filter(|(_, c)| !is_asked_for(table, c));
        for (at, column) in found {
            let cells = table.lines.iter().enumerate().filter_map(|(line, of)| {
                let cell = of.cells.get(at)?.as_ref()?;
                cell.spread.median.is_finite().then_some((line, cell))
            });
            let cells: Vec<(usize, &Cell)> = cells.collect();
            let top = cells.iter().max_by(|(_, a), (_, b)| {
                let (a, b) = (a.spread.median, b.spread.median);
                if table.metric.higher_is_better() { a.total_cmp(&b) } else { b.total_cmp(&a) }
            });
            if let (Some((_, top)), true) = (top, cells.len() > 1) {
                let (lines, told) = level(table, top, &cells)?;
                best.lines.insert(*column, lines);
                best.untold.extend((!told).then_some(*column));
            }
        }
        Ok(best)
    }

    pub(super) fn holds(&self, column: &Column, line: usize) -> bool {
        self.lines.get(column).is_some_and(|lines| lines.contains(&line))
    }

    /// What the mark means in a table.
    pub(super) fn legend(&self, columns: &[Column]) -> Option<String> {
        let marked = columns.iter().filter(|column| self.lines.contains_key(column)).count();
        let untold: Vec<String> =
            columns.iter().filter(|c| self.untold.contains(c)).map(ToString::to_string).collect();
        let all =
            "and all that its runs do not tell from it (the 95 % interval of their ratio holds 1)";
        Some(match (marked, untold.len()) {
            (0, _) => return None,
            (_, 0) => format!("Bold on grey: the best median of a column, {all}."),
            (marked, untold) if marked == untold => {
                "Bold on grey: the best median of a column; the \
                runs are too few to tell whether it is more than chance."
                    .to_owned()
            }
            _ => format!(
                "Bold on grey: the best median of a column, {all}; at {} the runs are too few to tell.",
                untold.join(", ")
            ),
        })
    }
}

/// The lines that are not told from the best, and whether there were runs enough to tell.
fn level(table: &Table, top: &Cell, cells: &[(usize, &Cell)]) -> Result<(BTreeSet<usize>, bool)> {
    let (mut lines, mut told) = (BTreeSet::new(), true);
    for (line, cell) in cells {
        let interval = interval(top, cell, &table.metric, 1.0)?;
        told &= interval.is_some();
        let equal = cell.spread.median.total_cmp(&top.spread.median).is_eq();
        if equal || interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high) {
            lines.insert(*line);
        }
    }
    Ok((lines, told))
}
