//! Sorts runs into tables: which of a label count, and which share a cell.

use std::collections::{BTreeMap, BTreeSet};

use super::imported;
use super::metric::Metric;
use super::note::Footnotes;
use super::options::Options;
use super::pool::{Pool, agree};
use super::table::{LabelRow, TableCell, WorkloadTable, imported_at, in_time};
use crate::error::{Error, Result};
use crate::judge::{self, Difference, Weight};
use crate::stats;
use crate::summary::{Imported, Outcome, Reported, Summary};
use crate::terms::{Cell, Layout};

pub(super) fn counted<'a>(
    steps: &Reported<'a>,
    options: &Options,
) -> Result<Vec<WorkloadTable<'a>>> {
    options.check()?;
    let metrics = std::iter::once(&options.metric).chain(&options.also);
    let of_metric =
        |metric: &Metric| tables(steps, &Options { metric: *metric, ..options.clone() });
    let tables: Vec<WorkloadTable> =
        metrics.map(of_metric).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    // Where invocations clash, the newest is the result, also if nothing of it completed.
    let shows = |line: &LabelRow| line.is_shown() || line.clashing > 0;
    let shown = tables.iter().flat_map(|table| &table.lines).any(shows);
    if !shown && !matches!(options.layout, Layout::Outages | Layout::Slo) {
        let began = steps.measured.len();
        return Err(Error::data(format!("no step completed, of {began} that began"))
            .hint("--partial shows what they measured before they ended"));
    }
    let printed = options.layout.has_metric() && !steps.imported.is_empty();
    if printed && tables.iter().all(|table| table.items().next().is_none()) {
        return Err(imported::not_printed(&tables, &steps.imported));
    }
    Ok(tables)
}

/// Makes the tables of all workloads, cells filled, without footnotes: workloads and labels by the
/// time of their first step, and what starts at the same instant by name.
pub(crate) fn tables<'a>(
    steps: &Reported<'a>,
    options: &Options,
) -> Result<Vec<WorkloadTable<'a>>> {
    let Reported { mut measured, mut imported } = steps.clone();
    measured.sort_by_cached_key(|step| in_time(step));
    imported.sort_by_cached_key(|run| imported_at(run));
    let mut found: BTreeMap<&str, BTreeMap<&str, Reported>> = BTreeMap::new();
    for step in measured {
        let of_workload = found.entry(&step.workload.name).or_default();
        of_workload.entry(&step.label).or_default().measured.push(step);
    }
    for run in imported {
        found.entry(&run.workload).or_default().entry(&run.label).or_default().imported.push(run);
    }
    // As it was asked for, the others behind.
    let place = |label: &str| options.order.iter().position(|wanted| wanted == label);
    let first = LabelRow::start;
    let of_workload = |(workload, labels): (&'a str, BTreeMap<&'a str, Reported<'a>>)| {
        let lines = labels.into_iter().map(|(label, steps)| line(label, steps, options));
        let mut lines: Vec<LabelRow> = lines.collect::<Result<_>>()?;
        lines.sort_by_cached_key(|line| (place(line.label).unwrap_or(usize::MAX), first(line)));
        Ok((workload, lines))
    };
    let mut found: Vec<(&str, Vec<LabelRow>)> =
        found.into_iter().map(of_workload).collect::<Result<_>>()?;
    found.sort_by_cached_key(|(_, lines)| lines.iter().map(first).min());
    found.into_iter().map(|(workload, lines)| table(workload, lines, &options.metric)).collect()
}

/// Sorts the steps of a label into those that count and the others.
fn line<'a>(label: &'a str, of: Reported<'a>, options: &Options) -> Result<LabelRow<'a>> {
    let Reported { measured: mut steps, mut imported } = of;
    if let Some(newest) = imported.last().filter(|_| options.latest).map(|run| &run.import_id) {
        imported.retain(|run| run.import_id == *newest);
    }
    let cells = Vec::new();
    if steps.is_empty() {
        let (left_out, clashes) = (Vec::new(), Vec::new());
        return Ok(LabelRow { label, cells, steps, left_out, imported, clashing: 0, clashes });
    }
    let all = steps.clone();
    let counts = |step: &&Summary| options.partial || step.outcome == Outcome::Completed;
    let newest = steps.iter().max_by_key(|step| in_time(step)).expect("a label has steps");
    let newest = newest.run_id.as_str();
    let lenient = !options.latest && !options.strict;
    let mut clashing = if lenient { clashing(&steps, newest, counts)? } else { 0 };
    if options.latest {
        // Also where nothing of it completed: then that is the result.
        steps.retain(|step| step.run_id == newest);
        if !options.strict {
            clashing = usize::from(keep_newest_settings(&mut steps, counts));
        }
    } else if clashing > 0 {
        let kept = agreeing(&steps, counts);
        steps.retain(|step| kept.contains(step.run_id.as_str()));
    }
    let clashes = if clashing > 0 { list_clashes(&all, &steps) } else { Vec::new() };
    let (steps, left_out) = steps.into_iter().partition(counts);
    Ok(LabelRow { label, cells, steps, left_out, imported, clashing, clashes })
}

/// Lists what the steps that are not kept differ in from those of the same cell that are, each once.
fn list_clashes(all: &[&Summary], kept: &[&Summary]) -> Vec<Difference> {
    let is_kept: BTreeSet<*const Summary> = kept.iter().map(|step| &raw const **step).collect();
    let cells: BTreeMap<Cell, &Summary> = kept.iter().map(|step| (step.cell(), *step)).collect();
    let dropped = all.iter().filter(|step| !is_kept.contains(&(&raw const ***step)));
    let pairs = dropped.filter_map(|step| Some((step, cells.get(&step.cell())?)));
    let mut found: Vec<Difference> = Vec::new();
    for difference in pairs.flat_map(|(one, newest)| judge::differences(one, newest)) {
        if difference.weight > Weight::Noted && !found.contains(&difference) {
            found.push(difference);
        }
    }
    found
}

/// Leaves of each cell of an invocation the steps that agree with its newest one; tells whether there are
/// others.
fn keep_newest_settings(steps: &mut Vec<&Summary>, counts: impl Fn(&&Summary) -> bool) -> bool {
    let mut cells: BTreeMap<Cell, Pool> = BTreeMap::new();
    let before = steps.len();
    steps.reverse();
    steps.retain(|step| {
        !counts(step) || cells.entry(step.cell()).or_default().add(&[*step]).is_ok()
    });
    steps.reverse();
    steps.len() < before
}

/// Returns the invocations, from the newest on, that clash with no newer one of them.
fn agreeing<'a>(steps: &[&'a Summary], counts: impl Fn(&&Summary) -> bool) -> BTreeSet<&'a str> {
    let mut order: Vec<&str> = Vec::new();
    let mut runs: BTreeMap<&str, BTreeMap<Cell, Vec<&Summary>>> = BTreeMap::new();
    for step in steps.iter().rev() {
        let run = runs.entry(&step.run_id).or_insert_with(|| {
            order.push(&step.run_id);
            BTreeMap::new()
        });
        // The newest one's settings count also where it failed.
        let failed = order[0] == step.run_id && step.outcome != Outcome::ServerChanged;
        if counts(step) || failed {
            run.entry(step.cell()).or_default().push(step);
        }
    }
    let mut pools: BTreeMap<Cell, Pool> = BTreeMap::new();
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    for run in order {
        let cells = &runs[run];
        let agrees = |(column, steps): (&Cell, &Vec<_>)| {
            pools.get(column).is_none_or(|pool| pool.check(steps).is_ok())
        };
        if kept.is_empty() || cells.iter().all(agrees) {
            for (column, steps) in cells {
                pools.entry(*column).or_default().take(steps);
            }
            kept.insert(run);
        }
    }
    kept
}

/// Counts the invocations of a label where two of them have other settings in one cell; else 0. One that
/// clashes with itself is refused: its label does not tell what was measured.
fn clashing(steps: &[&Summary], newest: &str, counts: impl Fn(&&Summary) -> bool) -> Result<usize> {
    let invocations: BTreeSet<&str> = steps.iter().map(|step| step.run_id.as_str()).collect();
    if invocations.len() == 1 {
        return Ok(0);
    }
    let mut cells: BTreeMap<Cell, BTreeMap<&str, Vec<&Summary>>> = BTreeMap::new();
    for step in steps.iter().filter(|step| counts(step)) {
        cells.entry(step.cell()).or_default().entry(&step.run_id).or_default().push(step);
    }
    for run in cells.values().flat_map(BTreeMap::values) {
        agree(run)?;
    }
    // What the newest one began and did not end has settings, too; a server that changed has several.
    let failed = |step: &&&Summary| {
        step.run_id == newest && !counts(step) && step.outcome != Outcome::ServerChanged
    };
    for step in steps.iter().filter(failed) {
        let runs = cells.entry(step.cell()).or_default();
        runs.entry(&step.run_id).or_insert_with(|| vec![*step]);
    }
    let differ = |runs: &BTreeMap<&str, Vec<&Summary>>| {
        let mut pool = Pool::default();
        runs.values().any(|run| pool.add(run).is_err())
    };
    Ok(if cells.values().any(differ) { invocations.len() } else { 0 })
}

fn table<'a>(
    workload: &'a str,
    mut lines: Vec<LabelRow<'a>>,
    metric: &Metric,
) -> Result<WorkloadTable<'a>> {
    // A column that a run has begun is shown even where nothing in it completed.
    let columns: BTreeSet<Cell> = lines.iter().flat_map(LabelRow::columns).collect();
    let columns: Vec<Cell> = columns.into_iter().collect();
    let imported = lines.iter().flat_map(|line| line.imported.iter().copied());
    let metric = metric.of(lines.iter().flat_map(|line| line.steps.iter().copied()), imported);
    for line in &mut lines {
        let columns = line.by_column();
        line.cells.reserve_exact(columns.len());
        for (column, LabelRow { steps, imported, .. }) in columns {
            let cell = cell(steps, imported, &metric)?;
            line.cells.extend(cell.map(|cell| (column, cell)));
        }
    }
    Ok(WorkloadTable {
        workload,
        metric,
        columns,
        lines,
        notes: Footnotes::default(),
        baseline: None,
    })
}

pub(crate) fn cell<'a>(
    steps: Vec<&'a Summary>,
    runs: Vec<&'a Imported>,
    metric: &Metric,
) -> Result<Option<TableCell<'a>>> {
    agree(&steps)?;
    imported::agree(&steps, &runs)?;
    let values = metric.values(&steps, &runs)?;
    let interval = stats::median_interval(&values);
    let (relative, relative_interval, spread) = (None, None, stats::spread(&values));
    let cell = |spread| TableCell {
        values,
        spread,
        interval,
        relative,
        relative_interval,
        steps,
        imported: runs,
    };
    Ok(spread.map(cell))
}
