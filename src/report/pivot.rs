//! Steps into cells: clients across, one label a line.

use std::collections::{BTreeMap, BTreeSet};

use super::notes::Note;
use super::select::{self, Row};
use super::{Metric, Options, settings};
use crate::error::Result;
use crate::stats::{self, Spread};
use crate::summary::Summary;
pub(crate) use crate::terms::Cell as Column;

/// What its cells hold.
pub(crate) fn metric_at(column: &Column, table: &Table) -> Metric {
    table.metric.in_loop(column.is_open())
}

/// The steps of a column, whether or not they have the number that a cell would show.
pub(crate) fn among<'a>(column: &Column, steps: &[&'a Summary]) -> Vec<&'a Summary> {
    steps.iter().filter(|step| step.cell() == *column).copied().collect()
}

/// One number of a table, and what it is of.
#[derive(Debug, Clone)]
pub(crate) struct Cell<'a> {
    /// Over the steps that have a value.
    pub(crate) spread: Spread,
    /// Covers the median of such runs with 95 %; none where there are too few of them.
    pub(crate) interval: Option<(f64, f64)>,
    /// The ratio to the baseline, higher being better; none without one.
    pub(crate) relative: Option<f64>,
    /// The same for the ratio; filled in by [`super::compare::intervals`].
    pub(crate) relative_interval: Option<(f64, f64)>,
    /// The steps of the cell, by time; never empty.
    pub(crate) steps: Vec<&'a Summary>,
}

/// One label of a table.
#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    pub(crate) label: &'a str,
    /// One a column; none where nothing was measured.
    pub(crate) cells: Vec<Option<Cell<'a>>>,
    /// The steps behind the cells, by time.
    pub(crate) steps: Vec<&'a Summary>,
    /// Steps that did not complete and fill no cell.
    pub(crate) left_out: Vec<&'a Summary>,
}

impl<'a> Line<'a> {
    /// The first cell: of a table of one column, the only one.
    pub(crate) fn cell(&self) -> Option<&Cell<'a>> {
        self.cells.first()?.as_ref()
    }

    /// Its steps, and those that did not complete.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'a Summary> {
        self.steps.iter().chain(&self.left_out).copied()
    }
}

/// The table of one workload.
#[derive(Debug, Clone)]
pub(crate) struct Table<'a> {
    pub(crate) workload: &'a str,
    /// The number in the cells; never [`Metric::Natural`].
    pub(crate) metric: Metric,
    pub(crate) columns: Vec<Column>,
    pub(crate) lines: Vec<Line<'a>>,
    /// What holds for some lines.
    pub(crate) notes: Vec<Note>,
    /// Whether cells show the ratio to this label.
    pub(crate) baseline: Option<String>,
}

impl<'a> Table<'a> {
    /// A table of each column, without the lines that were not measured there. One that was may
    /// have no number all the same, such as a percentile of too few ops.
    pub(crate) fn by_column(&self) -> Vec<Table<'a>> {
        let one = |(at, column): (usize, &Column)| {
            let lines = self.lines.iter().map(|line| Line {
                label: line.label,
                cells: vec![line.cells.get(at).cloned().flatten()],
                steps: among(column, &line.steps),
                left_out: among(column, &line.left_out),
            });
            Table {
                columns: vec![*column],
                lines: lines.filter(|line| !line.steps.is_empty()).collect(),
                metric: metric_at(column, self),
                notes: Vec::new(),
                baseline: self.baseline.clone(),
                ..*self
            }
        };
        let tables = self.columns.iter().enumerate().map(one);
        tables.filter(|table| !table.lines.is_empty()).collect()
    }

    /// The table of some labels only, in this order.
    pub(crate) fn of_labels(&self, labels: &[&str]) -> Table<'a> {
        let line = |label: &&str| self.lines.iter().find(|line| line.label == *label).cloned();
        Table {
            lines: labels.iter().filter_map(line).collect(),
            columns: self.columns.clone(),
            metric: self.metric.clone(),
            notes: Vec::new(),
            baseline: self.baseline.clone(),
            ..*self
        }
    }

    /// Keeps the columns for which this is true, by their positions.
    pub(crate) fn keep(&mut self, kept: &[bool]) {
        fn of<T>(all: &mut Vec<T>, kept: &[bool]) {
            let mut kept = kept.iter();
            all.retain(|_| kept.next().is_some_and(|kept| *kept));
        }
        of(&mut self.columns, kept);
        for line in &mut self.lines {
            of(&mut line.cells, kept);
        }
    }

    /// The numbers as they are shown: values, or ratios to the baseline.
    pub(crate) fn shown(&self) -> impl Iterator<Item = f64> {
        self.lines.iter().flat_map(|line| &line.cells).flatten().filter_map(|c| self.number(c))
    }

    /// The number that a cell shows.
    pub(crate) fn number(&self, cell: &Cell) -> Option<f64> {
        if self.baseline.is_some() { cell.relative } else { Some(cell.spread.median) }
    }
}

/// The tables of all workloads, cells filled, without footnotes.
pub(crate) fn tables<'a>(steps: &[&'a Summary], options: &Options) -> Result<Vec<Table<'a>>> {
    let workloads = select::workloads(steps, options);
    workloads.into_iter().map(|(name, rows)| table(name, rows, &options.metric)).collect()
}

fn table<'a>(workload: &'a str, rows: Vec<Row<'a>>, metric: &Metric) -> Result<Table<'a>> {
    // A column that a run has begun is shown even where nothing in it completed.
    let columns: BTreeSet<Column> = rows
        .iter()
        .flat_map(|row| row.steps.iter().chain(&row.left_out))
        .map(|step| step.cell())
        .collect();
    let columns: Vec<Column> = columns.into_iter().collect();
    let metric = metric.of(rows.iter().flat_map(|row| row.steps.iter().copied()));
    let lines: Result<Vec<Line>> =
        rows.into_iter().map(|row| line(row, &columns, &metric)).collect();
    Ok(Table { workload, metric, columns, lines: lines?, notes: Vec::new(), baseline: None })
}

fn line<'a>(row: Row<'a>, columns: &[Column], metric: &Metric) -> Result<Line<'a>> {
    let mut by_column: BTreeMap<Column, Vec<&Summary>> = BTreeMap::new();
    for step in &row.steps {
        by_column.entry(step.cell()).or_default().push(step);
    }
    let mut cells = Vec::with_capacity(columns.len());
    for column in columns {
        let steps = by_column.remove(column).unwrap_or_default();
        cells.push(cell(steps, metric)?);
    }
    Ok(Line { label: row.label, cells, steps: row.steps, left_out: row.left_out })
}

/// The cell of some steps; none when no step has a value.
fn cell<'a>(steps: Vec<&'a Summary>, metric: &Metric) -> Result<Option<Cell<'a>>> {
    settings::agree(&steps)?;
    let values: Result<Vec<Option<f64>>> = steps.iter().map(|step| metric.value(step)).collect();
    let values: Vec<f64> = values?.into_iter().flatten().collect();
    let interval = stats::median_interval(&values);
    Ok(stats::spread(&values).map(|spread| Cell {
        spread,
        interval,
        relative: None,
        relative_interval: None,
        steps,
    }))
}
