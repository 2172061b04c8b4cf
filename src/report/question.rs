//! The labels that a comparison is about, and their tables.

use std::collections::BTreeSet;

use super::distinct::push_new;
use super::labels::{self, require_label};
use super::metric::Metric;
use super::names::{both_values, cell_named, list_some};
use super::notes::noted;
use super::options::{Notes, Options};
use super::ratio::common;
use super::run::Runs;
use super::table::{WorkloadTable, is_comparable};
use super::tables::tables;
use super::{escape, imported};
use crate::error::{Error, Result};
use crate::judge::Weight;
use crate::terms::{self, Format};

#[derive(Debug, Clone, Default)]
pub struct Question {
    pub base: String,
    pub new: String,
    /// Further labels that are compared with the base: tables of their own, behind those of the first.
    pub others: Vec<String>,
    pub metric: Metric,
    pub also: Vec<Metric>,
    /// A difference below this share does not matter, 0.02 being 2 %.
    pub floor: f64,
    /// Repeats that what is not decided may still get: the looks on the way there count, too.
    /// 0: no more than there are.
    pub repeats_max: u32,
    /// Compare also what was measured under other conditions, and say so.
    pub force: bool,
    pub latest: bool,
    pub format: Format,
    pub source: String,
    pub notes: Notes,
}

/// Tables of two labels each, without footnotes: by metric, workload, and new label.
#[derive(Default)]
pub(super) struct ComparedTables<'q, 's> {
    pub tables: Vec<WorkloadTable<'s>>,
    /// The base and the new label of each; a table has no line of one that has not measured its workload.
    pub labels: Vec<[&'q str; 2]>,
}

impl<'q, 's> ComparedTables<'q, 's> {
    pub(super) fn noted(self) -> ComparedTables<'q, 's> {
        ComparedTables { tables: self.tables.into_iter().map(noted).collect(), ..self }
    }
}

impl Question {
    pub(super) fn base_and_new(&self) -> [&str; 2] {
        [&self.base, &self.new]
    }

    pub(super) fn new_labels(&self) -> Vec<&str> {
        std::iter::once(&self.new).chain(&self.others).map(String::as_str).collect()
    }

    fn metrics(&self) -> impl Iterator<Item = Metric> {
        std::iter::once(self.metric).chain(self.also.iter().copied())
    }

    /// Returns the tables of each new label beside the base, where they are comparable.
    pub(super) fn contrasts<'q, 'a>(
        &'q self,
        runs: &Runs<'a>,
        metric: Metric,
    ) -> Result<ComparedTables<'q, 'a>> {
        let of_metric = |metric| {
            let options =
                Options { metric, latest: self.latest, strict: !self.latest, ..Options::default() };
            self.beside_base(&tables(runs, &options)?)
        };
        let mut found = of_metric(metric)?;
        if metric.split().1 == Metric::ERRORS
            && let Some(share) = metric.by_work()
        {
            // Errors of unequal work are compared as a share of the ops.
            let shares = of_metric(share)?.tables;
            for (table, share) in found.tables.iter_mut().zip(shares) {
                if common(table).iter().any(|(_, cells)| !is_comparable(metric, *cells)) {
                    *table = share;
                }
            }
        }
        if !self.force {
            let hint = if self.others.is_empty() { "" } else { "; --new LABEL picks labels" };
            found.tables.iter().try_for_each(|table| comparable(table, hint))?;
        }
        Ok(found)
    }

    fn beside_base<'a>(&self, tables: &[WorkloadTable<'a>]) -> Result<ComparedTables<'_, 'a>> {
        let (known_labels, new_labels) = (labels::labels(tables), self.new_labels());
        require_label(&known_labels, FLAGS[0], &self.base)?;
        new_labels.iter().try_for_each(|label| require_label(&known_labels, FLAGS[1], label))?;
        let mut found = ComparedTables::default();
        for table in tables {
            for new in &new_labels {
                let labels = [self.base.as_str(), *new];
                let pair = table.of_labels(&labels);
                // A workload of other labels alone is not asked for.
                if !pair.lines.is_empty() {
                    found.tables.push(pair);
                    found.labels.push(labels);
                }
            }
        }
        Ok(found)
    }

    /// Returns the tables of all metrics, each once; refuses a metric of which there is nothing.
    pub(super) fn all_contrasts<'q, 'a>(
        &'q self,
        runs: &Runs<'a>,
    ) -> Result<ComparedTables<'q, 'a>> {
        let (mut all, mut seen) = (ComparedTables::default(), BTreeSet::new());
        for metric in self.metrics() {
            let found = self.contrasts(runs, metric)?;
            if found.tables.iter().all(|table| common(table).is_empty() && !crashed(table)) {
                if imported::any_lacks(&found.tables) {
                    return Err(imported::not_printed(&found.tables, runs));
                }
                let but = with_number_of(metric);
                return Err(nothing_in_common(&self.base, &self.new_labels(), &but));
            }
            for (table, labels) in found.tables.into_iter().zip(found.labels) {
                // Two names may stand for one number: natural, and qps.
                if seen.insert((table.workload, table.metric.to_string(), labels[1])) {
                    all.tables.push(table);
                    all.labels.push(labels);
                }
            }
        }
        Ok(all)
    }
}

pub(super) fn of_two<'a>(
    tables: &[WorkloadTable<'a>],
    labels: [&str; 2],
) -> Result<Vec<WorkloadTable<'a>>> {
    let known = labels::labels(tables);
    FLAGS.into_iter().zip(labels).try_for_each(|(flag, of)| require_label(&known, flag, of))?;
    Ok(tables.iter().map(|table| noted(table.of_labels(&labels))).collect())
}

const FLAGS: [&str; 2] = ["--baseline", "--new"];

/// Decides which two labels are held against each other: those that are given, else the only two that
/// there are, of which the first by time is the baseline.
pub fn pair<'a>(runs: impl Into<Runs<'a>>, given: [Option<&str>; 2]) -> Result<[String; 2]> {
    let labels = labels_by_time(&runs.into());
    for (flag, label) in FLAGS.into_iter().zip(given) {
        label.iter().try_for_each(|label| require_label(&labels, flag, label))?;
    }
    let others: Vec<&str> =
        labels.iter().copied().filter(|label| !given.contains(&Some(*label))).collect();
    let found = match (given, others.as_slice()) {
        ([Some(base), Some(new)], _) => [base, new],
        ([Some(base), None], [new]) => [base, *new],
        ([None, Some(new)], [base]) => [*base, new],
        ([None, None], [base, new]) => [*base, *new],
        _ => return Err(no_pair(&labels)),
    };
    if found[0] == found[1] {
        return Err(no_other(found[0]));
    }
    Ok(found.map(str::to_owned))
}

/// Decides which labels are compared with which baseline: those that are given, else the first by time
/// that is not among the new ones, and all others.
pub fn base_and_new<'a>(
    runs: impl Into<Runs<'a>>,
    base: Option<&str>,
    new: &[String],
) -> Result<(String, Vec<String>)> {
    let labels = labels_by_time(&runs.into());
    base.iter().try_for_each(|label| require_label(&labels, FLAGS[0], label))?;
    new.iter().try_for_each(|label| require_label(&labels, FLAGS[1], label))?;
    let is_free = |label: &&str| !new.iter().any(|new| new == label);
    let Some(base) = base.or_else(|| labels.iter().copied().find(is_free)) else {
        return Err(no_base(&labels));
    };
    let mut found: Vec<&str> = Vec::new();
    if new.is_empty() {
        found.extend(labels.iter().copied().filter(|label| *label != base));
    }
    for label in new {
        push_new(&mut found, label.as_str());
    }
    if found.is_empty() {
        return Err(no_pair(&labels));
    }
    if found.contains(&base) {
        return Err(no_other(base));
    }
    Ok((base.to_owned(), found.into_iter().map(str::to_owned).collect()))
}

fn labels_by_time<'a>(runs: &Runs<'a>) -> Vec<&'a str> {
    let mut runs = runs.to_vec();
    runs.sort_by_cached_key(|run| run.sort_key().0);
    let mut labels: Vec<&str> = Vec::new();
    for run in &runs {
        push_new(&mut labels, run.label());
    }
    labels
}

fn no_base(labels: &[&str]) -> Error {
    match labels {
        [] | [_] => no_pair(labels),
        _ => Error::usage("--new names every label: there is no other one to compare with")
            .hint("--baseline LABEL names the one that the others are compared with"),
    }
}

fn no_other(label: &str) -> Error {
    Error::usage(format!("{} is compared with itself", escape::line(label)))
        .hint("--baseline and --new name two labels")
}

fn no_pair(labels: &[&str]) -> Error {
    let named = terms::named(labels.iter().map(|label| escape::line(label)).collect(), 20, ", ");
    match labels {
        [] | [_] => Error::data(format!("there is one label only: {named}"))
            .hint("two are compared: measure another one under a --label of its own"),
        _ => Error::usage(format!("there are {} labels: {named}", labels.len()))
            .hint("--baseline LABEL and --new LABEL name the two that are compared"),
    }
}

/// Returns what cells must have besides: those that were measured may lack a number that was asked for.
pub(super) fn with_number_of(metric: Metric) -> String {
    if metric == Metric::Natural {
        return String::new();
    }
    format!(" where there is a number of {metric}")
}

pub(super) fn nothing_in_common(base: &str, new: &[&str], but: &str) -> Error {
    let base = escape::line(base);
    let all = terms::named(new.iter().map(|label| escape::line(label)).collect(), 20, ", ");
    let text = if new.len() == 1 {
        format!("{base} and {all} have no workload and number of clients in common{but}")
    } else {
        format!("{base} has no workload and number of clients in common with any of {all}{but}")
    };
    Error::data(text).hint("loadgen report shows what each of them has")
}

pub(super) fn crashed(table: &WorkloadTable) -> bool {
    table.lines.len() == 2 && table.lines.iter().any(|line| !line.left_out.is_empty())
}

fn comparable(table: &WorkloadTable, hint: &str) -> Result<()> {
    for (column, cells) in common(table) {
        let differences = cells[0].differences(cells[1]).into_iter();
        let differences = differences.filter(|found| found.weight == Weight::Operation);
        let mut differing: Vec<String> = Vec::new();
        differences.for_each(|found| push_new(&mut differing, both_values(&found)));
        if !differing.is_empty() {
            let [one, other] = [0, 1].map(|at| escape::line(table.lines[at].label));
            let (cell, found) = (cell_named(table.workload, &column), list_some(differing, "; "));
            let text = format!(
                "{cell}: {one} and {other} measured different tables or operations: {found}"
            );
            let force = format!("--force compares them anyway, and adds a note{hint}");
            return Err(Error::data(text).hint(force));
        }
    }
    Ok(())
}
