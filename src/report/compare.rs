//! Labels compared with a baseline by statistics instead of eyes: the unit is the run, never the op; and cells that
//! more runs would tell more about.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::answer::{self, Several, answer};
use super::doubt::Doubt;
use super::gate::quantity_shown;
use super::metric::failed_share;
use super::notes::{
    at_clients, both_values, cell_named, codes, label, marked, noted, push_new, some,
};
use super::page::{Page, Rows, Sheet, number};
use super::ratio::{
    Family, Pairs, Ratio, are_blocks, common, has_log, in_both, is_asked_for, is_too_few,
};
use super::table::{
    self, Cell, Column, Table, among, imported_at, in_time, is_comparable, known, missing,
    not_comparable, tables,
};
use super::{Format, Metric, Notes, Options, brief, escape, imported, write};
use crate::error::{Error, Result};
use crate::judge::thresholds::{ALPHA, FAILED_MAX};
use crate::judge::{self, Weight};
use crate::stats::{Shift, benjamini_hochberg, holm};
use crate::summary::Reported;
use crate::terms::{self, Compared, Quantity, joined};

/// The floor where none is given.
const FLOOR: f64 = 0.02;

pub(crate) const ASKED_FOR: &str =
    "at a given rate QPS is what was asked for, not what was found: --metric p99";

/// Between a ratio and that of the medians, which is less is no contradiction that a reader sees.
const OPPOSITE_LEAST: f64 = 0.01;

/// Workloads that a line names with the cells that a label lacks.
const WORKLOADS_MAX: usize = 6;

/// Said where the runs of two labels are not interleaved.
const APART: &str = "The labels were not measured in turn. Run both commands again and again, in turn, \
                     with the same --out.";

/// The same of a label that was imported, which nobody measures again.
const IMPORTED_APART: &str = "An imported label was not measured in turn with the other: host and \
                              settings may be the reason of a difference.";

#[derive(Debug, Clone, Default)]
pub struct Question {
    pub base: String,
    pub new: String,
    /// Further labels that are compared with the base: tables of their own, behind those of the first.
    pub others: Vec<String>,
    pub metric: Metric,
    /// Further metrics, behind all tables of the first.
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
    /// The paths of the summaries, as they were typed.
    pub source: String,
    pub notes: Notes,
}

#[derive(Debug, Clone)]
pub struct Comparison {
    pub text: String,
    /// What the text begins with, by lines.
    pub answer: Vec<String>,
    pub worse: Vec<String>,
    pub too_few: Vec<String>,
    pub repeats_needed: usize,
    /// Cells that no number of runs decides: one label has not measured them, runs did not complete,
    /// or there is no ratio.
    pub unknown: Vec<String>,
    /// Cells that may be better or worse by more than the floor.
    pub inconclusive: Vec<String>,
    /// Cells that more runs could decide.
    pub open: Vec<Doubt>,
}

/// Tables of two labels each, without footnotes: by metric, workload, and new label.
#[derive(Default)]
pub(super) struct Contrasts<'q, 's> {
    pub tables: Vec<Table<'s>>,
    /// The base and the new label of each; a table has no line of one that has not measured its workload.
    labels: Vec<[&'q str; 2]>,
}

/// A cell of both labels, or of one of them.
pub(super) struct Row<'t, 's> {
    pub table: &'t Table<'s>,
    pub labels: [&'t str; 2],
    pub column: Column,
    pub cells: [Option<&'t Cell<'s>>; 2],
    pub ratio: Option<Ratio>,
    pub verdict: Compared,
    /// Why there is no ratio, or why it shows nothing.
    pub what: Option<String>,
}

impl<'q, 's> Contrasts<'q, 's> {
    pub(super) fn noted(self) -> Contrasts<'q, 's> {
        Contrasts { tables: self.tables.into_iter().map(noted).collect(), ..self }
    }
}

impl Question {
    pub(super) fn base_and_new(&self) -> [&str; 2] {
        [&self.base, &self.new]
    }

    /// Returns the labels that are compared with the base.
    pub(super) fn new_labels(&self) -> Vec<&str> {
        std::iter::once(&self.new).chain(&self.others).map(String::as_str).collect()
    }

    fn metrics(&self) -> impl Iterator<Item = Metric> {
        std::iter::once(self.metric).chain(self.also.iter().copied())
    }

    /// Returns the tables of each new label beside the base, where they are comparable.
    pub(super) fn contrasts<'q, 'a>(
        &'q self,
        steps: &Reported<'a>,
        metric: Metric,
    ) -> Result<Contrasts<'q, 'a>> {
        let of_metric = |metric| {
            let options =
                Options { metric, latest: self.latest, strict: !self.latest, ..Options::default() };
            self.beside_base(&tables(steps, &options)?)
        };
        let mut found = of_metric(metric)?;
        if metric == Metric::ERRORS {
            // Errors of unequal work are compared as a share of the ops.
            let shares = of_metric(Metric::ERROR_SHARE)?.tables;
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

    /// Puts each new label beside the base, in each table.
    fn beside_base<'a>(&self, all: &[Table<'a>]) -> Result<Contrasts<'_, 'a>> {
        let (known_labels, new_labels) = (table::labels(all), self.new_labels());
        known(&known_labels, FLAGS[0], &self.base)?;
        new_labels.iter().try_for_each(|label| known(&known_labels, FLAGS[1], label))?;
        let mut found = Contrasts::default();
        for table in all {
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
    fn all_contrasts<'q, 'a>(&'q self, steps: &Reported<'a>) -> Result<Contrasts<'q, 'a>> {
        let (mut all, mut seen) = (Contrasts::default(), BTreeSet::new());
        for metric in self.metrics() {
            let found = self.contrasts(steps, metric)?;
            if found.tables.iter().all(|table| common(table).is_empty() && !crashed(table)) {
                if imported::any_lacks(&found.tables) {
                    return Err(imported::not_printed(&found.tables, &steps.imported));
                }
                let but = format!(" where there is a number of {metric}");
                let but = if self.also.is_empty() { "" } else { &but };
                return Err(nothing_in_common(&self.base, &self.new_labels(), but));
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

pub(super) fn of_two<'a>(all: &[Table<'a>], labels: [&str; 2]) -> Result<Vec<Table<'a>>> {
    let known = |(flag, label): (&str, &str)| known(&table::labels(all), flag, label);
    FLAGS.into_iter().zip(labels).try_for_each(known)?;
    Ok(all.iter().map(|table| noted(table.of_labels(&labels))).collect())
}

/// The flags that name two labels.
const FLAGS: [&str; 2] = ["--baseline", "--new"];

/// Decides which two labels are held against each other: those that are given, else the only two that
/// there are, of which the first by time is the baseline.
pub fn pair<'a>(steps: impl Into<Reported<'a>>, given: [Option<&str>; 2]) -> Result<[String; 2]> {
    let labels = labels_by_time(steps.into());
    for (flag, label) in FLAGS.into_iter().zip(given) {
        label.map_or(Ok(()), |label| known(&labels, flag, label))?;
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
    Ok(found.map(str::to_owned))
}

/// Decides which labels are compared with which baseline: those that are given, else the first by time
/// that is not among the new ones, and all others.
pub fn base_and_new<'a>(
    steps: impl Into<Reported<'a>>,
    base: Option<&str>,
    new: &[String],
) -> Result<(String, Vec<String>)> {
    let labels = labels_by_time(steps.into());
    base.map_or(Ok(()), |label| known(&labels, FLAGS[0], label))?;
    new.iter().try_for_each(|label| known(&labels, FLAGS[1], label))?;
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
    Ok((base.to_owned(), found.into_iter().map(str::to_owned).collect()))
}

fn labels_by_time(Reported { measured, imported }: Reported<'_>) -> Vec<&str> {
    let measured = measured.into_iter().map(|step| (in_time(step).0, step.label.as_str()));
    let imported = imported.into_iter().map(|run| (imported_at(run).0, run.label.as_str()));
    let mut steps: Vec<(Timestamp, &str)> = measured.chain(imported).collect();
    steps.sort_by_key(|(at, _)| *at);
    let mut labels: Vec<&str> = Vec::new();
    for (_, label) in steps {
        push_new(&mut labels, label);
    }
    labels
}

/// Refuses new labels that leave none to compare with.
fn no_base(labels: &[&str]) -> Error {
    match labels {
        [] | [_] => no_pair(labels),
        _ => Error::usage("--new names every label: there is no other one to compare with")
            .hint("--baseline LABEL names the one that the others are compared with"),
    }
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

pub fn compare<'a>(steps: impl Into<Reported<'a>>, question: &Question) -> Result<Comparison> {
    let contrasts = question.all_contrasts(&steps.into())?.noted();
    let rows = complete_rows(&contrasts, question);
    let (related, without): (Vec<&Row>, Vec<&Row>) =
        rows.iter().flatten().partition(|row| row.ratio.is_some());
    let (one_sided, without): (Vec<_>, Vec<_>) =
        without.into_iter().partition(|row| row.lacking_label().is_some());
    let (stopped, lacking): (Vec<_>, Vec<_>) = without.into_iter().partition(|of| of.has_stopped());
    let several = Several::among(&rows, question);
    let what = |rows: &[&Row]| {
        rows.iter().filter_map(|row| row.told_apart(several)).collect::<Vec<String>>()
    };
    let one_sided_lines = not_measured(&one_sided);
    let pages = pages(&rows, &one_sided_lines, question);
    let lines = brief::below(&contrasts.tables, &question.notes, &question.source);
    if pages.is_empty() {
        let why = [what(&stopped), what(&lacking), one_sided_lines].concat().swap_remove(0);
        return Err(Error::data(why).hint("another --metric"));
    }
    // What was asked for is no finding, and none is missed there, unless it is all there is.
    let all_asked_for = related.iter().all(|row| row.is_asked_for());
    let found_out = || related.iter().filter(|row| all_asked_for || !row.is_asked_for());
    let nothing_found = all_asked_for && !related.is_empty();
    let asked_for = nothing_found.then(|| ASKED_FOR.to_owned()).into_iter().collect();
    let is = |verdict| move |row: &&&Row| row.verdict == verdict;
    let line = |row: &&Row| row.line(several);
    let times = |row: &&Row| Some(row.ratio.as_ref()?.times);
    let too_few = || found_out().filter(is(Compared::TooFew));
    let worse = related.iter().filter(is(Compared::Worse)).filter_map(line);
    let answer = answer(&rows, several, question);
    Ok(Comparison {
        worse: once(worse.chain(what(&stopped))),
        unknown: once(
            [what(&lacking), what(&related), one_sided_lines, asked_for].into_iter().flatten(),
        ),
        inconclusive: found_out().filter(is(Compared::Inconclusive)).filter_map(line).collect(),
        too_few: too_few().filter_map(line).collect(),
        repeats_needed: repeats_needed(too_few().filter_map(times).fold(1.0, f64::max)),
        open: found_out().chain(&lacking).chain(&one_sided).filter_map(|row| row.doubt()).collect(),
        text: answer::above(
            &answer,
            write(&pages, "compare", question.format, None, (&question.notes, &lines)),
            question.format,
        ),
        answer,
    })
}

/// Returns the rows with the verdict `incomplete` where runs lack and the others are not worse.
fn complete_rows<'t, 's>(contrasts: &'t Contrasts<'_, 's>, of: &Question) -> Vec<Vec<Row<'t, 's>>> {
    let mut rows = rows(contrasts, of);
    let lacks = |row: &&mut Row| row.what.is_some() && row.verdict != Compared::Worse;
    let lacking = rows.iter_mut().flatten().filter(|row| row.ratio.is_some()).filter(lacks);
    lacking.for_each(|row| row.verdict = Compared::Incomplete);
    rows
}

/// Lists the cells that only one label of a comparison has, a line for each label that lacks some.
fn not_measured(rows: &[&Row]) -> Vec<String> {
    let mut labels: Vec<&str> = Vec::new();
    rows.iter().filter_map(|row| row.lacking_label()).for_each(|of| push_new(&mut labels, of));
    let line = |lacking: &&str| {
        let mut workloads: Vec<Vec<&Row>> = Vec::new();
        for row in rows.iter().filter(|row| row.lacking_label() == Some(*lacking)) {
            let is_its = |of: &&mut Vec<&Row>| of[0].table.workload == row.table.workload;
            match workloads.iter_mut().find(is_its) {
                Some(of) if of.iter().any(|other| other.column == row.column) => {}
                Some(of) => of.push(row),
                None => workloads.push(vec![row]),
            }
        }
        let cells = |of: &Vec<&Row>| {
            format!("{} {}", escape::line(of[0].table.workload), answer::place(of))
        };
        let cells = terms::named(workloads.iter().map(cells).collect(), WORKLOADS_MAX, "; ");
        format!("not measured by {}: {cells}", escape::line(lacking))
    };
    labels.iter().map(line).collect()
}

/// Leaves out lines that were there before: a run that did not complete is in the tables of all metrics.
fn once(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    lines.filter(|line| seen.insert(line.clone())).collect()
}

/// Returns what a comparison of all labels with the baseline begins with; nothing where there is none.
pub(crate) fn answers(steps: &Reported, options: &Options) -> Vec<String> {
    let compared = || {
        let (base, new) = base_and_new(steps.clone(), options.baseline.as_deref(), &[]).ok()?;
        let (new, others) = new.split_first()?;
        let (new, others) = (new.clone(), others.to_vec());
        let (metric, also, latest) = (options.metric, options.also.clone(), options.latest);
        let floor = FLOOR;
        let of = Question { base, new, others, metric, also, floor, latest, ..Question::default() };
        let contrasts = of.all_contrasts(steps).ok()?;
        let rows = complete_rows(&contrasts, &of);
        rows.iter()
            .any(|rows| has_table(rows))
            .then(|| answer(&rows, Several::among(&rows, &of), &of))
    };
    compared().unwrap_or_default()
}

/// Tells whether rows of a contrast have a table of their own.
fn has_table(rows: &[Row]) -> bool {
    let is_told = |row: &Row| row.ratio.is_some() || row.verdict == Compared::NotComparable;
    rows.iter().any(is_told) || crashed(rows[0].table)
}

fn crashed(table: &Table) -> bool {
    table.lines.len() == 2 && table.lines.iter().any(|line| !line.left_out.is_empty())
}

fn comparable(table: &Table, hint: &str) -> Result<()> {
    for (column, cells) in common(table) {
        let [one, other] = cells.map(|cell| judge::by_knowledge(&cell.steps));
        let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
        let mut differing: Vec<String> = Vec::new();
        let imported = imported::differences(cells[0], cells[1]);
        for found in pairs.flat_map(|(a, b)| judge::differences(a, b)).chain(imported) {
            if found.weight == Weight::Operation {
                push_new(&mut differing, both_values(&found));
            }
        }
        if !differing.is_empty() {
            let [one, other] = [0, 1].map(|at| escape::line(table.lines[at].label));
            let (cell, found) = (cell_named(table, &column), some(differing, "; "));
            let text = format!("{cell}: {one} and {other} were not measured on the same: {found}");
            let force = format!("--force compares them all the same, and says so{hint}");
            return Err(Error::data(text).hint(force));
        }
    }
    Ok(())
}

/// Returns the cells of two labels with their verdicts, by their tables. What one of both has measured,
/// or begun, and the other has not, has a row, too: no table may seem to be all there is.
pub(super) fn rows<'t, 's>(
    contrasts: &'t Contrasts<'_, 's>,
    of: &Question,
) -> Vec<Vec<Row<'t, 's>>> {
    let both = |table: &'t Table<'s>| match table.lines.as_slice() {
        [base, new] => Some((table, [base, new])),
        _ => None,
    };
    let family = Family::new(contrasts.tables.iter().filter_map(both), of.repeats_max);
    let row = |table: &'t Table<'s>, labels: [&'t str; 2], shared: &Pairs, column: &Column| {
        let lines = labels.map(|label| table.line(label));
        let cells = lines.map(|line| line.and_then(|line| line.at(column)));
        let mut lost = lines.iter().flatten().flat_map(|line| &line.left_out);
        // Columns that only other labels have are not asked for.
        if !cells.iter().any(Option::is_some) && !lost.any(|step| step.cell() == *column) {
            return None;
        }
        let verdict = Compared::NotMeasured;
        let mut row =
            Row { table, labels, column: *column, cells, ratio: None, verdict, what: None };
        if let [Some(one), Some(other)] = cells {
            let times = family.times(table, shared, column);
            row.ratio = Ratio::of([one, other], table.metric, times);
            row.verdict = if is_comparable(table.metric, [one, other]) {
                Compared::NoRatio
            } else {
                Compared::NotComparable
            };
        }
        row.what = row.what(of.floor);
        Some(row)
    };
    let of_table = |(table, labels): (&'t Table<'s>, &[&'t str; 2])| {
        let shared = both(table).map_or_else(Vec::new, |(_, lines)| in_both(lines));
        table.columns.iter().filter_map(|of| row(table, *labels, &shared, of)).collect()
    };
    let mut rows: Vec<Vec<Row>> =
        contrasts.tables.iter().zip(&contrasts.labels).map(of_table).collect();
    rows.retain(|rows| !rows.is_empty());
    judge(&mut rows, of.floor, family.looks);
    rows
}

/// Corrects: by Holm within a table, by Benjamini and Hochberg over the tables of all workloads, labels
/// and metrics, each with its clearest cell, by Bonferroni over the looks. A cell's corrected p is the
/// larger of the first two, times the looks. What was asked for does not make it harder to find the others.
fn judge(tables: &mut [Vec<Row>], floor: f64, looks: u32) {
    let looks = f64::from(looks);
    for asked_for in [false, true] {
        let is_such = |row: &&mut Row| row.ratio.is_some() && row.is_asked_for() == asked_for;
        let rows = tables.iter_mut().map(|rows| rows.iter_mut().filter(is_such).collect());
        let rows: Vec<Vec<&mut Row>> = rows.filter(|rows: &Vec<_>| !rows.is_empty()).collect();
        let p = |row: &&mut Row| row.ratio.as_ref().expect("filtered").shift.p;
        let within: Vec<Vec<f64>> =
            rows.iter().map(|rows| holm(&rows.iter().map(p).collect::<Vec<f64>>())).collect();
        let least = |row: &Vec<f64>| row.iter().copied().fold(1.0, f64::min);
        let over_all = benjamini_hochberg(&within.iter().map(least).collect::<Vec<f64>>());
        for ((rows, of_table), over_all) in rows.into_iter().zip(&within).zip(over_all) {
            for (row, p) in rows.into_iter().zip(of_table) {
                let ratio = row.ratio.as_mut().expect("filtered");
                ratio.p = (p.max(over_all) * looks).min(1.0);
                ratio.times = (of_table.len() * within.len()) as f64 * looks;
                row.verdict = verdict(&ratio.shift, ratio.p, ratio.times, floor);
            }
        }
    }
}

impl Row<'_, '_> {
    pub(super) fn is_asked_for(&self) -> bool {
        is_asked_for(self.table, &self.column)
    }

    /// Tells whether the new label did nothing where the base did something.
    pub(super) fn has_stopped(&self) -> bool {
        let did = |cell: &Cell| cell.values.iter().all(|value| has_log(*value));
        let lost = self.verdict == Compared::NoRatio && self.table.metric.higher_is_better();
        lost && self.cells[0].is_some_and(did)
    }

    /// Returns the label that has not measured the cell, where the other one has and completed all runs.
    pub(super) fn lacking_label(&self) -> Option<&str> {
        let lacking = match self.cells {
            [Some(_), None] => self.labels[1],
            [None, Some(_)] => self.labels[0],
            _ => return None,
        };
        let left_out = |label| self.table.line(label).map_or(&[][..], |line| &line.left_out);
        let all_done = |label| among(&self.column, left_out(label)).is_empty();
        self.labels.into_iter().all(all_done).then_some(lacking)
    }

    /// Returns the ratio of the medians, turned as its own is, where one is above 1 and the other below.
    fn opposite(&self) -> Option<f64> {
        let (ratio, base, new) = (self.ratio.as_ref()?, self.median(0)?, self.median(1)?);
        let medians = if self.table.metric.higher_is_better() { new / base } else { base / new };
        let (one, other) = (ratio.estimate() - 1.0, medians - 1.0);
        (one * other < 0.0 && (one - other).abs() >= OPPOSITE_LEAST).then_some(medians)
    }

    /// Explains a ratio that the medians beside it seem to contradict.
    fn explain_opposite(&self) -> Option<String> {
        let pairs = if self.ratio.as_ref()?.blocks {
            "of runs that were measured one after the other"
        } else {
            "of each run of one label and each run of the other"
        };
        let medians = number(self.opposite()?, 3);
        Some(self.at(&format!(
            "the ratio is the middle one of the ratios {pairs}; that of the two medians is {medians}"
        )))
    }

    /// Tells whether its labels were measured one after the other: a drift of the host looks like a
    /// difference.
    pub(super) fn is_apart(&self) -> bool {
        match self.cells {
            [Some(one), Some(other)] => one.spread.n > 1 && !are_blocks([one, other]),
            _ => false,
        }
    }

    pub(super) fn runs(&self) -> [usize; 2] {
        self.cells.map(|cell| cell.map_or(0, |cell| cell.spread.n))
    }

    fn median(&self, of: usize) -> Option<f64> {
        self.cells[of].map(|cell| cell.spread.median)
    }

    /// Tells why there is no ratio; or that runs of a label did not complete, or that ops of one label
    /// failed and the number does not show it.
    fn what(&self, floor: f64) -> Option<String> {
        let (metric, both) = (self.table.metric, self.cells.iter().all(Option::is_some));
        let failed = self.cells.map(|cell| failed_share(&cell?.steps));
        let apart = (failed[0].unwrap_or(0.0) - failed[1].unwrap_or(0.0)).abs();
        let of_errors = [Metric::ERRORS, Metric::ERROR_SHARE].contains(&metric);
        let is_shown = metric.is_rate() || of_errors;
        let failing = both && !is_shown && apart > floor.max(FAILED_MAX);
        let is_comparable = self.verdict != Compared::NotComparable;
        let mut said = Vec::new();
        said.extend(metric.by_work().filter(|_| !is_comparable).map(not_comparable));
        for (at, label) in self.labels.iter().enumerate() {
            let left_out = self.table.line(label).map_or(&[][..], |line| &line.left_out);
            let (left_out, label) = (among(&self.column, left_out), escape::line(label));
            let cell = self.cells[at];
            let (steps, values) = cell.map_or((&[][..], &[][..]), |of| (&of.steps, &of.values));
            let not_measured = cell.is_none() && left_out.is_empty();
            said.extend(not_measured.then(|| format!("not measured by {label}")));
            let mut of_runs = |count: usize, of: usize, what: &str| {
                said.extend((count > 0).then(|| format!("{count} of {of} runs of {label} {what}")));
            };
            let (missing, all) = missing(steps, &left_out);
            of_runs(missing, all, "did not complete");
            let is_none = |value: &&f64| both && is_comparable && !has_log(**value);
            let none = values.iter().filter(is_none).count();
            of_runs(none, values.len(), &format!("had no {} above 0", metric.name()));
            let share = quantity_shown(Quantity::ErrorShare, failed[at].unwrap_or(0.0));
            said.extend(failing.then(|| format!("{share} of the ops of {label} failed")));
        }
        joined(said.into_iter().map(Some), ", ")
    }

    fn at(&self, said: &str) -> String {
        format!("{}: {said}", cell_named(self.table, &self.column))
    }

    fn told(&self) -> Option<String> {
        self.what.as_ref().map(|what| self.at(what))
    }

    /// Says the same, and of which metric and label where nothing in it does.
    fn told_apart(&self, several: Several) -> Option<String> {
        let is_named = self.verdict != Compared::NotComparable;
        let told = self.told()?;
        Some(if is_named { told } else { several.metric_and_label(self) + &told })
    }

    /// Says what the comparison found; nothing without a ratio.
    pub(super) fn found(&self) -> Option<String> {
        let ([one, other], ratio) = (self.runs(), self.ratio.as_ref()?);
        if self.verdict == Compared::TooFew {
            return Some(format!("{one} and {other} runs are too few to tell a difference"));
        }
        let interval = ratio.interval().unwrap_or_else(|| "-".to_owned());
        let estimate = number(ratio.estimate(), 3);
        Some(format!("{estimate} ({interval}), p {}", p_text(ratio.p)))
    }

    /// Says the same in percent, and in which cell.
    fn line(&self, several: Several) -> Option<String> {
        if self.verdict == Compared::TooFew {
            let found = self.found()?;
            return Some(several.metric_and_label(self) + &self.at(&found));
        }
        let change = answer::change(self)?;
        let named = several.workload_and_label(self);
        Some(format!("{named}{change} at {}", at_clients(&self.column)))
    }

    /// Returns what more runs may decide, or tell whether it matters.
    fn doubt(&self) -> Option<Doubt> {
        use Compared::{Better, Incomplete, NoRatio, NotComparable, NotMeasured, Same, Worse};
        let why = match self.verdict {
            Better | Worse | Same | NoRatio | NotComparable => return None,
            Incomplete | NotMeasured => self.told()?,
            found => {
                let ([base, new], at) = (self.labels.map(label), at_clients(&self.column));
                format!("{new} against {base} at {at}: {found}, {}", self.found()?)
            }
        };
        let labels = self.labels.map(str::to_owned).into();
        Some(Doubt { workload: self.table.workload.to_owned(), labels, cell: self.column, why })
    }
}

pub(super) fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { number(p, 3) }
}

fn pages(rows: &[Vec<Row>], one_sided: &[String], of: &Question) -> Vec<Page> {
    let (found, bare): (Vec<&Vec<Row>>, Vec<&Vec<Row>>) =
        rows.iter().partition(|rows| has_table(rows));
    let mut pages: Vec<Page> = found.iter().map(|rows| page(rows[0].table, rows, of)).collect();
    let Some(last) = pages.last_mut() else { return pages };
    // Workloads without a table of their own.
    let bare = bare.into_iter().flatten().filter(|row| row.lacking_label().is_none());
    last.below.extend(once(bare.filter_map(Row::told).chain(one_sided.to_vec())));
    pages
}

fn page(table: &Table, rows: &[Row], of: &Question) -> Page {
    let how = if table.metric.higher_is_better() { "new/base" } else { "base/new" };
    // Files have a row of every cell; people get a list of those that one label lacks.
    let is_for_people = matches!(of.format, Format::Text | Format::Markdown);
    let shown = |row: &&Row| !is_for_people || row.lacking_label().is_none();
    let rows: Vec<&Row> = rows.iter().filter(shown).collect();
    let (related, without): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.ratio.is_some());
    let asked_for = related.iter().any(|row| row.is_asked_for()).then(|| ASKED_FOR.to_owned());
    let opposite = related.iter().filter_map(|row| row.explain_opposite());
    let whats = without.iter().chain(&related).filter_map(|row| row.told());
    let imported =
        rows.iter().flat_map(|row| row.cells).flatten().any(|of| !of.imported.is_empty());
    let apart = if imported { IMPORTED_APART } else { APART };
    let apart = rows.iter().any(|row| row.is_apart()).then(|| apart.to_owned());
    let lines = asked_for.into_iter().chain(whats).chain(opposite).chain(apart).collect();
    let title = format!(
        "{}: {} of {} against {}, medians; ratio {how} over all pairs of runs: above 1 is better",
        escape::line(table.workload),
        table.metric.name(),
        label(table.lines[1].label),
        label(table.lines[0].label),
    );
    Page::of(title, sheet(table, rows, how, of.floor), lines).footed(table)
}

fn sheet(table: &Table, rows: Vec<&Row>, how: &str, floor: f64) -> Sheet {
    let values = rows.iter().flat_map(|row| [row.median(0), row.median(1)]).flatten();
    let decimals = table.metric.decimals(values);
    let bounds = |row: &Row| row.ratio.as_ref()?.bounds();
    let shown = |value| table.metric.shown(value, decimals);
    Rows::new(rows)
        .shown("clients", |row| row.column.to_string())
        .place_and_metric(table, |row| row.column)
        .filed("base", |_| table.lines[0].label)
        .filed("new", |_| table.lines[1].label)
        .both(&marked(table, 0), "base_value", |row| row.median(0).map(shown))
        .both(&marked(table, 1), "new_value", |row| row.median(1).map(shown))
        .shown("runs", |row| match row.runs() {
            [one, other] if one == other => one.to_string(),
            [one, other] => format!("{one}:{other}"),
        })
        .filed("base_runs", |row| row.runs()[0])
        .filed("new_runs", |row| row.runs()[1])
        .both(how, "ratio", |row| row.ratio.as_ref().map(|r| (r.estimate(), 3)))
        .text("95 % interval", |row| row.ratio.as_ref()?.interval())
        .filed("ratio_low", |row| bounds(row).map(|(low, _)| low))
        .filed("ratio_high", |row| bounds(row).map(|(_, high)| high))
        .filed("p", |row| row.ratio.as_ref().map(|ratio| ratio.shift.p))
        .shown("p", |row| row.ratio.as_ref().map(|ratio| p_text(ratio.p)))
        .filed("p_corrected", |row| row.ratio.as_ref().map(|ratio| ratio.p))
        .filed("in_blocks", |row| row.ratio.as_ref().is_some_and(|ratio| ratio.blocks))
        .both("verdict", "verdict", |row| row.verdict.to_string())
        .filed("notes", |row| codes(table, &[0, 1], &row.column))
        .filed("sentence", |row| answer::cell_sentence(row, floor))
        .sheet()
}

/// Judges a shift of logarithms whose corrected p this is; `times` is that of a [`Ratio`].
pub(super) fn verdict(shift: &Shift, p: f64, times: f64, floor: f64) -> Compared {
    let off = |log: f64| (log.exp() - 1.0).abs();
    let open = |(low, high): (f64, f64)| low.exp() - 1.0 < -floor && high.exp() - 1.0 > floor;
    let within = shift.interval.is_some_and(|(low, high)| off(low) < floor && off(high) < floor);
    let better = shift.estimate > 0.0;
    if p > ALPHA && is_too_few(shift, times) {
        Compared::TooFew
    } else if within {
        Compared::Same
    } else if p > ALPHA {
        if shift.interval.is_none_or(open) { Compared::Inconclusive } else { Compared::NotShown }
    } else if off(shift.estimate) >= floor {
        if better { Compared::Better } else { Compared::Worse }
    } else if better {
        Compared::SlightlyBetter
    } else {
        Compared::SlightlyWorse
    }
}

/// Returns the least repeats of each label by which a cell could be a finding by itself.
pub(super) fn repeats_needed(times: f64) -> usize {
    // Of n against n runs the least p is 2 / C(2n, n).
    let (mut repeats, mut ways) = (1, 2.0);
    while 2.0 / ways * times > ALPHA {
        ways *= (4 * repeats + 2) as f64 / (repeats + 1) as f64;
        repeats += 1;
    }
    repeats
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::looks;
    use crate::stats::next_look;
    use crate::stats::pairs;
    use crate::stats::two_samples;
    use crate::workload::random::Stream;
    use crate::workload::random::seed_of;

    /// Experiments that are simulated.
    const MANY: u64 = 1000;

    struct Case {
        low: f64,
        estimate: f64,
        high: f64,
        p: f64,
        expected: Compared,
    }

    #[test]
    fn a_difference_that_may_matter_is_never_the_same() {
        use Compared::{
            Better, Inconclusive, NotShown, Same, SlightlyBetter, SlightlyWorse, TooFew, Worse,
        };
        let of = |low: f64, estimate: f64, high: f64, p: f64| {
            let (interval, estimate) = (Some((low.ln(), high.ln())), estimate.ln());
            verdict(&Shift { estimate, interval, p, p_least: 0.002 }, p, 1.0, 0.02)
        };
        for Case { low, estimate, high, p, expected } in [
            Case { low: 0.93, estimate: 0.95, high: 0.97, p: 0.01, expected: Worse },
            Case { low: 1.03, estimate: 1.05, high: 1.07, p: 0.01, expected: Better },
            // Certain, and at most by the floor.
            Case { low: 0.985, estimate: 0.99, high: 0.995, p: 0.01, expected: Same },
            // Certain, and perhaps by more than the floor.
            Case { low: 0.96, estimate: 0.985, high: 0.995, p: 0.01, expected: SlightlyWorse },
            Case { low: 1.005, estimate: 1.015, high: 1.03, p: 0.01, expected: SlightlyBetter },
            // Perhaps by less than it: the estimate decides.
            Case { low: 0.96, estimate: 0.975, high: 0.995, p: 0.01, expected: Worse },
            Case { low: 0.985, estimate: 1.0, high: 1.015, p: 0.7, expected: Same },
            Case { low: 0.97, estimate: 0.99, high: 1.01, p: 0.2, expected: NotShown },
            Case { low: 0.5, estimate: 0.7, high: 0.9, p: 0.06, expected: NotShown },
            Case { low: 0.99, estimate: 1.0, high: 1.05, p: 0.2, expected: NotShown },
            Case { low: 0.36, estimate: 0.99, high: 1.63, p: 0.8, expected: Inconclusive },
        ] {
            assert_eq!(of(low, estimate, high, p), expected, "{low} {estimate} {high} {p}");
        }
        let none = Shift { estimate: -0.01, interval: None, p: 0.01, p_least: 0.01 };
        assert_eq!(verdict(&none, 0.01, 1.0, 0.02), SlightlyWorse);
        assert_eq!(verdict(&none, 0.06, 6.0, 0.02), TooFew);
        assert_eq!(verdict(&none, 0.02, 6.0, 0.02), SlightlyWorse, "other cells differ, too");
        let close = Shift { interval: Some((-0.001, 0.001)), ..none };
        assert_eq!(verdict(&close, 0.06, 6.0, 0.02), TooFew, "not the same by so few");
        let nothing = Shift { interval: Some((-0.001, 0.001)), ..none };
        assert_eq!(verdict(&nothing, 0.01, 1.0, 0.0), Worse, "without a floor everything matters");
    }

    /// How many of the simulated experiments with nothing to find, looked at after 6, 12 and 24
    /// interleaved repeats until something is found, find something; p times so much.
    fn false_findings(times: f64) -> usize {
        let found = |experiment: u64| {
            let mut stream = Stream::new(seed_of(&[experiment]));
            // Nearly normal, by the sum of twelve.
            let mut run = || (0..12).map(|_| stream.unit()).sum::<f64>() / 100.0;
            let (mut old, mut new) = (Vec::new(), Vec::new());
            let mut repeats = 6;
            loop {
                old.resize_with(repeats as usize, &mut run);
                new.resize_with(repeats as usize, &mut run);
                let differences: Vec<f64> = old.iter().zip(&new).map(|(a, b)| b - a).collect();
                let shift = pairs(&differences).filter(|shift| !is_too_few(shift, times));
                let shift = shift.or_else(|| two_samples(&old, &new)).expect("runs");
                let verdict = verdict(&shift, (shift.p * times).min(1.0), times, 0.0);
                if matches!(verdict, Compared::Better | Compared::Worse) {
                    return true;
                }
                if repeats >= 24 {
                    return false;
                }
                repeats = next_look(repeats);
            }
        };
        (0..MANY).filter(|experiment| found(*experiment)).count()
    }

    #[test]
    fn the_repeats_needed_are_those_whose_least_p_is_small_enough() {
        for (times, repeats) in [(1.0, 4), (1.7, 4), (6.0, 5), (23.0, 6), (24.0, 7), (36.0, 7)] {
            assert_eq!(repeats_needed(times), repeats, "{times}");
            let least = |n: usize| two_samples(&vec![0.0; n], &vec![1.0; n]).expect("runs");
            assert!(!is_too_few(&least(repeats), times), "{times}");
            assert!(is_too_few(&least(repeats - 1), times), "{times}");
        }
    }

    #[test]
    fn looking_again_finds_nothing_more_by_chance() {
        let (once, counted) = (false_findings(1.0), false_findings(f64::from(looks(6, 24))));
        let percent = |found: usize| 100.0 * found as f64 / MANY as f64;
        assert!(percent(counted) <= 5.0, "{} %", percent(counted));
        assert!(percent(once) > 7.0, "without it there are more: {} %", percent(once));
    }
}
