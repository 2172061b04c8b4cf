//! Sorts runs into tables: which of a label count, and which share a cell.

use std::collections::{BTreeMap, BTreeSet};

use super::distinct::push_new;
use super::imported::not_printed;
use super::labels::{labels, require_label};
use super::metric::Metric;
use super::note::Footnotes;
use super::options::Options;
use super::pool::{Pool, agree, agree_steps};
use super::run::{Run, Runs, steps_among};
use super::table::{LabelRow, TableCell, WorkloadTable};
use crate::error::{Error, Result};
use crate::judge::{self, Difference, Weight};
use crate::stats;
use crate::summary::{Imported, Outcome, Summary};
use crate::terms::{Cell, Layout};

/// Makes the tables of all metrics; refuses runs of which there would be nothing to show.
pub(super) fn tables_to_show<'a>(
    runs: &Runs<'a>,
    options: &Options,
) -> Result<Vec<WorkloadTable<'a>>> {
    options.check()?;
    let (mut found, mut seen): (Vec<WorkloadTable>, _) = (Vec::new(), BTreeSet::new());
    for metric in std::iter::once(options.metric).chain(options.also.iter().copied()) {
        for table in tables(runs, &Options { metric, ..options.clone() })? {
            // Two names may stand for one number: natural, and qps.
            if seen.insert((table.workload, table.metric.to_string())) {
                found.push(table);
            }
        }
    }
    let labels = labels(&found);
    options.order.iter().try_for_each(|label| require_label(&labels, "--order", label))?;
    // If invocations clash, the newest is the result, also if nothing of it completed.
    let has_result = |line: &LabelRow| !line.runs.is_empty() || line.clashing > 0;
    let any = found.iter().flat_map(|table| &table.lines).any(has_result);
    if !any && !matches!(options.layout, Layout::Hosts | Layout::Outages | Layout::Slo) {
        let text = format!("no step completed, of {} that began", steps_among(runs).count());
        return Err(Error::data(text).hint("--partial shows what they measured before they ended"));
    }
    let is_imported = runs.iter().any(|run| run.imported().is_some());
    let has_no_number = found.iter().all(|table| table.items().next().is_none());
    if options.layout.has_metric() && is_imported && has_no_number {
        return Err(not_printed(&found, runs));
    }
    options.baseline.iter().try_for_each(|label| require_label(&labels, "--baseline", label))?;
    Ok(found)
}

/// Workloads and labels by the time of their first run, and what starts at the same instant by name.
pub(crate) fn tables<'a>(runs: &Runs<'a>, options: &Options) -> Result<Vec<WorkloadTable<'a>>> {
    let mut runs = runs.to_vec();
    runs.sort_by_cached_key(|run| run.sort_key());
    let mut workloads: BTreeMap<&str, BTreeMap<&str, Vec<Run>>> = BTreeMap::new();
    for run in runs {
        workloads.entry(run.workload()).or_default().entry(run.label()).or_default().push(run);
    }
    // Labels in the order that was asked for, then the others.
    let position = |label: &str| options.order.iter().position(|wanted| wanted == label);
    let mut found: Vec<(&str, Vec<LabelRow>)> = Vec::new();
    for (workload, labels) in workloads {
        let rows = labels.into_iter().map(|(label, runs)| label_row(label, &runs, options));
        let mut rows: Vec<LabelRow> = rows.collect::<Result<_>>()?;
        rows.sort_by_cached_key(|row| (position(row.label).unwrap_or(usize::MAX), row.start()));
        found.push((workload, rows));
    }
    found.sort_by_cached_key(|(_, rows)| rows.iter().map(LabelRow::start).min());
    found.into_iter().map(|(workload, rows)| table(workload, rows, options)).collect()
}

fn label_row<'a>(label: &'a str, runs: &[Run<'a>], options: &Options) -> Result<LabelRow<'a>> {
    let mut imported: Vec<&Imported> = runs.iter().filter_map(|run| run.imported()).collect();
    if let Some(newest) = imported.last().filter(|_| options.latest).map(|run| &run.import_id) {
        imported.retain(|run| run.import_id == *newest);
    }
    let steps: Vec<&Summary> = steps_among(runs).collect();
    let mut row = LabelRow { label, ..LabelRow::default() };
    if !steps.is_empty() {
        add_steps(&mut row, &steps, options)?;
    }
    row.runs.extend(imported.into_iter().map(Run::Imported));
    Ok(row)
}

/// Adds the steps that count and those that do not: of invocations that clash the newest counts.
fn add_steps<'a>(row: &mut LabelRow<'a>, all: &[&'a Summary], options: &Options) -> Result<()> {
    let counts = |step: &&Summary| match step.outcome {
        Outcome::Completed => true,
        Outcome::MeasuredAgain => options.partial && !is_replaced(step, all),
        _ => options.partial,
    };
    let newest = all.last().expect("a label has steps").run_id.as_str();
    let lenient = !options.latest && !options.strict;
    row.clashing = if lenient { clashing(all, newest, counts)? } else { 0 };
    let mut steps = all.to_vec();
    if options.latest {
        // Also where nothing of it completed: then that is the result.
        steps.retain(|step| step.run_id == newest);
    }
    let asked = steps.clone();
    if options.latest && !options.strict {
        row.clashing = usize::from(keep_newest_settings(&mut steps, counts));
    } else if row.clashing > 0 {
        let kept = agreeing(&steps, counts);
        steps.retain(|step| kept.contains(step.run_id.as_str()));
    }
    row.clashes = if row.clashing > 0 { list_clashes(&asked, &steps) } else { Vec::new() };
    let (steps, left_out): (Vec<_>, Vec<_>) = steps.into_iter().partition(counts);
    row.runs = steps.into_iter().map(Run::Measured).collect();
    (row.replaced, row.left_out) = left_out.into_iter().partition(|step| is_replaced(step, all));
    Ok(())
}

/// Returns whether a later try of a step was measured, among steps by time. A run that is interrupted between two
/// tries may go on later.
fn is_replaced(step: &Summary, all: &[&Summary]) -> bool {
    let of = |step: &Summary| (step.cell(), step.plan.repeat_index);
    let mut later = all.iter().rev().take_while(|other| !std::ptr::eq(**other, step));
    step.outcome == Outcome::MeasuredAgain
        && later.any(|other| other.run_id == step.run_id && of(other) == of(step))
}

fn list_clashes(all: &[&Summary], kept: &[&Summary]) -> Vec<Difference> {
    let is_kept: BTreeSet<*const Summary> = kept.iter().map(|step| &raw const **step).collect();
    let cells: BTreeMap<Cell, &Summary> = kept.iter().map(|step| (step.cell(), *step)).collect();
    let dropped = all.iter().filter(|step| !is_kept.contains(&(&raw const ***step)));
    let pairs = dropped.filter_map(|step| Some((step, cells.get(&step.cell())?)));
    let mut found: Vec<Difference> = Vec::new();
    for (one, newest) in pairs {
        // The hosts of an invocation may change.
        let allowed = if one.run_id == newest.run_id { Weight::Host } else { Weight::Noted };
        let differences = judge::differences(one, newest).into_iter();
        differences.filter(|of| of.weight > allowed).for_each(|of| push_new(&mut found, of));
    }
    found
}

/// Keeps in each cell the steps that agree with the newest one of the invocation; returns true if it drops any.
fn keep_newest_settings(steps: &mut Vec<&Summary>, counts: impl Fn(&&Summary) -> bool) -> bool {
    let mut cells: BTreeMap<Cell, Pool> = BTreeMap::new();
    let before = steps.len();
    steps.reverse();
    steps.retain(|step| {
        if !counts(step) {
            return true;
        }
        let pool = cells.entry(step.cell()).or_default();
        let agrees = pool.check_settings(&[*step]).is_ok();
        if agrees {
            pool.take(&[*step]);
        }
        agrees
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

/// Counts the invocations of a label where two of them have other settings in one cell; else 0. One that clashes with
/// itself is refused: its label does not tell what was measured.
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
        agree_steps(run.iter().copied())?;
    }
    // Steps that the newest one began and did not end have settings, too; a server that changed has several.
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
    options: &Options,
) -> Result<WorkloadTable<'a>> {
    // A column that a run has begun is shown even where nothing in it completed.
    let columns: BTreeSet<Cell> = lines.iter().flat_map(LabelRow::columns).collect();
    let columns: Vec<Cell> = columns.into_iter().collect();
    let metric = options.metric.of_runs(lines.iter().flat_map(|line| line.runs.iter().copied()));
    for line in &mut lines {
        let columns = line.by_column();
        line.cells.reserve_exact(columns.len());
        for (column, LabelRow { runs, .. }) in columns {
            let cell = cell(runs, &metric)?;
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
        reference: options.baseline.clone(),
    })
}

pub(crate) fn cell<'a>(runs: Vec<Run<'a>>, metric: &Metric) -> Result<Option<TableCell<'a>>> {
    agree(&runs)?;
    let values = metric.values(&runs)?;
    Ok(stats::spread(&values).map(|spread| TableCell {
        interval: stats::median_interval(&values),
        relative: None,
        relative_interval: None,
        values,
        spread,
        runs,
    }))
}
