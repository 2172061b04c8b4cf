//! Which steps a table counts, and in which order its lines stand.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::Options;
use crate::summary::{Outcome, Summary};

/// The steps of one label in one workload.
pub(crate) struct Row<'a> {
    pub(crate) label: &'a str,
    /// The steps that fill cells.
    pub(crate) steps: Vec<&'a Summary>,
    /// Those that did not complete.
    pub(crate) left_out: Vec<&'a Summary>,
}

/// The rows of each workload, workloads and labels by the time of their first step.
pub(crate) fn workloads<'a>(
    steps: &[&'a Summary],
    options: &Options,
) -> Vec<(&'a str, Vec<Row<'a>>)> {
    let mut by_workload: BTreeMap<&str, BTreeMap<&str, Vec<&Summary>>> = BTreeMap::new();
    for step in steps {
        let labels = by_workload.entry(step.workload.name.as_str()).or_default();
        labels.entry(step.label.as_str()).or_default().push(step);
    }
    let mut found = Vec::new();
    for (workload, labels) in by_workload {
        let mut rows: Vec<(Timestamp, Row)> = labels
            .into_iter()
            .map(|(label, steps)| {
                let row = row(label, steps, options);
                (first(&row), row)
            })
            .collect();
        // The maps have sorted the names: what starts at the same instant stays in their order.
        let first = rows.iter().map(|(first, _)| *first).min();
        rows.sort_by_key(|(first, row)| (place(row.label, options), *first));
        let first = first.unwrap_or(Timestamp::MAX);
        found.push((first, workload, rows.into_iter().map(|(_, row)| row).collect()));
    }
    found.sort_by_key(|(first, _, _)| *first);
    found.into_iter().map(|(_, workload, rows)| (workload, rows)).collect()
}

/// Where a label stands: as it was asked for, the others behind.
fn place(label: &str, options: &Options) -> usize {
    options.order.iter().position(|wanted| wanted == label).unwrap_or(usize::MAX)
}

/// Sorts the steps of a label into those that count and the others.
fn row<'a>(label: &'a str, steps: Vec<&'a Summary>, options: &Options) -> Row<'a> {
    let counts = |step: &&Summary| options.partial || step.outcome == Outcome::Completed;
    let (steps, left_out): (Vec<&Summary>, Vec<&Summary>) = steps.into_iter().partition(counts);
    let mut row = Row { label, steps, left_out };
    row.steps.sort_by_key(|step| in_time(step));
    row.left_out.sort_by_key(|step| in_time(step));
    if options.latest {
        // Also where nothing of it completed: then that is the result.
        let last = row.steps.last().into_iter().chain(row.left_out.last());
        let newest = last.max_by_key(|step| in_time(step)).map(|step| step.run_id.as_str());
        row.steps.retain(|step| Some(step.run_id.as_str()) == newest);
        row.left_out.retain(|step| Some(step.run_id.as_str()) == newest);
    }
    row
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

/// The repeats of a cell in one run.
#[derive(Default)]
struct Repeats {
    planned: BTreeSet<u32>,
    begun: BTreeSet<u32>,
    done: BTreeSet<u32>,
}

/// The first instant of a row.
fn first(row: &Row) -> Timestamp {
    let both = row.steps.first().into_iter().chain(row.left_out.first());
    both.map(|step| started(step)).min().unwrap_or(Timestamp::MAX)
}

/// The order of steps. Those of one instant have one too: that of the files says nothing.
pub(crate) fn in_time(step: &Summary) -> (Timestamp, &str) {
    (started(step), &step.step_id)
}

/// When a step began; what is no instant comes last.
fn started(step: &Summary) -> Timestamp {
    step.started_at.parse().unwrap_or(Timestamp::MAX)
}
