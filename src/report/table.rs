//! Steps into cells, a table for each workload: clients across, one label a line.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::notes::Note;
use super::{Metric, Options, settings};
use crate::error::Result;
use crate::stats::{self, Spread};
use crate::summary::{Outcome, Summary};
pub(crate) use crate::terms::Cell as Column;

pub(crate) fn metric_at(column: &Column, table: &Table) -> Metric {
    table.metric.in_loop(column.is_open())
}

/// Returns the steps of a column, whether or not they have the number that a cell would show.
pub(crate) fn among<'a>(column: &Column, steps: &[&'a Summary]) -> Vec<&'a Summary> {
    steps.iter().filter(|step| step.cell() == *column).copied().collect()
}

/// One number of a table, and what it is of.
#[derive(Debug, Clone)]
pub(crate) struct Cell<'a> {
    /// Over the steps that have a value.
    pub spread: Spread,
    /// Covers the median of such runs with 95 %; none where there are too few of them.
    pub interval: Option<(f64, f64)>,
    /// The ratio to the baseline, higher being better; none without one.
    pub relative: Option<f64>,
    /// The same for the ratio; filled in by [`super::compare::related`].
    pub relative_interval: Option<(f64, f64)>,
    /// The steps of the cell, by time; never empty.
    pub steps: Vec<&'a Summary>,
}

#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    pub label: &'a str,
    /// One a column; none where nothing was measured.
    pub cells: Vec<Option<Cell<'a>>>,
    /// The steps behind the cells, by time.
    pub steps: Vec<&'a Summary>,
    /// Steps that did not complete and fill no cell.
    pub left_out: Vec<&'a Summary>,
}

impl<'a> Line<'a> {
    pub(crate) fn cell(&self) -> Option<&Cell<'a>> {
        self.cells.first()?.as_ref()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &'a Summary> {
        self.steps.iter().chain(&self.left_out).copied()
    }
}

/// The table of one workload.
#[derive(Debug, Clone)]
pub(crate) struct Table<'a> {
    pub workload: &'a str,
    /// The number in the cells; never [`Metric::Natural`].
    pub metric: Metric,
    pub columns: Vec<Column>,
    pub lines: Vec<Line<'a>>,
    pub notes: Vec<Note>,
    /// Cells show the ratio to this label.
    pub baseline: Option<String>,
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
                workload: self.workload,
                metric: metric_at(column, self),
                columns: vec![*column],
                lines: lines.filter(|line| !line.steps.is_empty()).collect(),
                notes: Vec::new(),
                baseline: self.baseline.clone(),
            }
        };
        let tables = self.columns.iter().enumerate().map(one);
        tables.filter(|table| !table.lines.is_empty()).collect()
    }

    pub(crate) fn line(&self, label: &str) -> Option<&Line<'a>> {
        self.lines.iter().find(|line| line.label == label)
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell<'a>> {
        self.lines.iter().flat_map(|line| &line.cells).flatten()
    }

    /// Returns all steps, also those that did not complete.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'a Summary> {
        self.lines.iter().flat_map(Line::all)
    }

    /// Returns the table of some labels only, in this order.
    pub(crate) fn of_labels(&self, labels: &[&str]) -> Table<'a> {
        let lines = labels.iter().filter_map(|label| self.line(label).cloned()).collect();
        Table { lines, notes: Vec::new(), ..self.clone() }
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

    /// Returns the numbers as they are shown: values, or ratios to the baseline.
    pub(crate) fn shown(&self) -> impl Iterator<Item = f64> {
        self.cells().filter_map(|cell| self.number(cell))
    }

    pub(crate) fn number(&self, cell: &Cell) -> Option<f64> {
        if self.baseline.is_some() { cell.relative } else { Some(cell.spread.median) }
    }
}

/// Makes the tables of all workloads, cells filled, without footnotes: workloads and labels by the
/// time of their first step.
pub(crate) fn tables<'a>(steps: &[&'a Summary], options: &Options) -> Result<Vec<Table<'a>>> {
    // The maps sort the names: what starts at the same instant stays in their order.
    let mut by_workload: BTreeMap<&str, BTreeMap<&str, Vec<&Summary>>> = BTreeMap::new();
    for step in steps {
        let labels = by_workload.entry(step.workload.name.as_str()).or_default();
        labels.entry(step.label.as_str()).or_default().push(step);
    }
    // As it was asked for, the others behind.
    let place = |label: &str| options.order.iter().position(|wanted| wanted == label);
    let first = |line: &Line| line.all().map(started).min();
    let mut found: Vec<(&str, Vec<Line>)> = Vec::new();
    for (workload, labels) in by_workload {
        let lines = labels.into_iter().map(|(label, steps)| line(label, steps, options));
        let mut lines: Vec<Line> = lines.collect();
        lines.sort_by_key(|line| (place(line.label).unwrap_or(usize::MAX), first(line)));
        found.push((workload, lines));
    }
    found.sort_by_key(|(_, lines)| lines.iter().map(first).min());
    found.into_iter().map(|(name, lines)| table(name, lines, &options.metric)).collect()
}

/// Sorts the steps of a label into those that count and the others.
fn line<'a>(label: &'a str, steps: Vec<&'a Summary>, options: &Options) -> Line<'a> {
    let counts = |step: &&Summary| options.partial || step.outcome == Outcome::Completed;
    let (mut steps, mut left_out): (Vec<&Summary>, Vec<&Summary>) =
        steps.into_iter().partition(counts);
    steps.sort_by_key(|step| in_time(step));
    left_out.sort_by_key(|step| in_time(step));
    if options.latest {
        // Also where nothing of it completed: then that is the result.
        let last = steps.last().into_iter().chain(left_out.last());
        let newest = last.max_by_key(|step| in_time(step)).map(|step| step.run_id.as_str());
        steps.retain(|step| Some(step.run_id.as_str()) == newest);
        left_out.retain(|step| Some(step.run_id.as_str()) == newest);
    }
    Line { label, cells: Vec::new(), steps, left_out }
}

fn table<'a>(workload: &'a str, mut lines: Vec<Line<'a>>, metric: &Metric) -> Result<Table<'a>> {
    // A column that a run has begun is shown even where nothing in it completed.
    let columns: BTreeSet<Column> = lines.iter().flat_map(Line::all).map(Summary::cell).collect();
    let columns: Vec<Column> = columns.into_iter().collect();
    let metric = metric.of(lines.iter().flat_map(|line| line.steps.iter().copied()));
    for line in &mut lines {
        let cells = columns.iter().map(|column| cell(among(column, &line.steps), &metric));
        line.cells = cells.collect::<Result<_>>()?;
    }
    Ok(Table { workload, metric, columns, lines, notes: Vec::new(), baseline: None })
}

/// Returns the cell of some steps; none when no step has a value.
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

/// Runs of a cell that did not complete, and how many there are in all. One that was measured again
/// is not missed; one that was planned and never begun is. `counted` are those of the cell, which
/// also `--partial` makes no completed ones.
pub(crate) fn missing(counted: &[&Summary], left_out: &[&Summary]) -> (usize, usize) {
    let mut runs: BTreeMap<&str, Repeats> = BTreeMap::new();
    let mut done = 0;
    for step in counted.iter().chain(left_out) {
        // The repeats of a profile may be given by several invocations.
        let of = step.experiment.as_ref().map_or(&step.run_id, |experiment| &experiment.profile);
        let run = runs.entry(of).or_default();
        run.planned.insert(step.plan.repeats);
        run.begun.insert(step.plan.repeat_index);
        if step.outcome == Outcome::Completed {
            run.done.insert(step.plan.repeat_index);
            done += 1;
        }
    }
    let missed = |run: &Repeats| {
        // More repeats than at first are planned to be given where they are needed only.
        let planned = run.planned.first().copied().unwrap_or_default();
        let within = run.begun.iter().filter(|repeat| **repeat <= planned).count();
        (planned as usize).saturating_sub(within) + run.begun.difference(&run.done).count()
    };
    let missing = runs.values().map(missed).sum();
    (missing, done + missing)
}

#[derive(Default)]
struct Repeats {
    planned: BTreeSet<u32>,
    begun: BTreeSet<u32>,
    done: BTreeSet<u32>,
}

/// Returns the order of steps. Those of one instant have one too: that of the files says nothing.
pub(crate) fn in_time(step: &Summary) -> (Timestamp, &str) {
    (started(step), &step.step_id)
}

/// When a step began; what is no instant comes last.
fn started(step: &Summary) -> Timestamp {
    step.started_at.parse().unwrap_or(Timestamp::MAX)
}
