//! The labels of a report: their order, and those that a flag names.

use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;

use super::escape::clip;
use super::table::WorkloadTable;
use crate::error::{Error, Result};
use crate::terms::named;

const NAMED_MAX: usize = 20;
const LABEL_MAX: usize = 60;

/// A label's position decides its colour, its marker and its dashes everywhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels<'a> {
    all: Vec<&'a str>,
    positions: HashMap<&'a str, usize>,
}

impl<'a> Deref for Labels<'a> {
    type Target = [&'a str];

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

pub(crate) fn labels<'a>(tables: &[WorkloadTable<'a>]) -> Labels<'a> {
    let mut labels = Labels::default();
    for line in tables.iter().flat_map(|table| &table.lines) {
        let next = labels.all.len();
        if *labels.positions.entry(line.label).or_insert(next) == next {
            labels.all.push(line.label);
        }
    }
    labels
}

/// Returns the label that the others are related to where no other is asked for.
pub(crate) fn first_measured<'a>(tables: &[WorkloadTable<'a>]) -> Option<&'a str> {
    let mut lines = tables.iter().flat_map(|table| &table.lines);
    lines.find(|line| !line.runs.is_empty()).map(|line| line.label)
}

/// Returns the base of a workload among others: theirs if it was measured here, else its own first label.
pub(crate) fn base_of<'a>(table: &WorkloadTable<'a>, shared: Option<&'a str>) -> Option<&'a str> {
    let is_measured = |base: &&str| table.line(base).is_some_and(|of| !of.runs.is_empty());
    shared.filter(is_measured).or_else(|| first_measured(std::slice::from_ref(table)))
}

/// Returns a label's position; they come from the same tables.
pub(crate) fn position(labels: &Labels, label: &str) -> usize {
    *labels.positions.get(label).expect("a label of these tables")
}

pub(crate) fn require_label(labels: &[&str], flag: &str, label: &str) -> Result<()> {
    let labels: BTreeSet<&str> = labels.iter().copied().collect();
    if labels.contains(label) {
        return Ok(());
    }
    let shown = |label: &str| format!("'{}'", clip(label, LABEL_MAX));
    let mut error = Error::usage(format!("{flag}: no label {} in these summaries", shown(label)));
    let distance = |other: &str| strsim::levenshtein(&shown(label), &shown(other));
    let nearest = labels.iter().map(|known| (distance(known), known)).min();
    if let Some((distance, known)) = nearest
        && distance <= 1 + label.chars().count() / 3
    {
        error = error.hint(format!("did you mean {}?", shown(known)));
    }
    let labels = labels.iter().map(|label| shown(label)).collect();
    Err(error.hint(format!("there are {}", named(labels, NAMED_MAX, ", "))))
}
