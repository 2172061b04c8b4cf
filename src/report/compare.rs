//! Labels compared with a baseline by statistics instead of eyes: the unit is the run, never the op; and cells that
//! more runs would tell more about.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::answer::{self, Several, answer};
use super::gate::quantity_shown;
use super::metric::failed_share;
use super::notes::{
    at_clients, both_values, cell_named, codes, label, marked, noted, push_new, some,
};
use super::page::{Page, Rows, Sheet, number};
use super::table::{
    self, Cell, Column, Line, Table, among, imported_at, in_time, is_comparable, known, missing,
    not_comparable, speed, tables,
};
use super::{Format, Metric, Notes, Options, brief, escape, imported, write};
use crate::error::{Error, Result};
use crate::judge::thresholds::{ALPHA, FAILED_MAX};
use crate::judge::{self, Weight};
use crate::stats::{self, Shift, benjamini_hochberg, holm};
use crate::summary::{Reported, Summary, VerdictKind};
use crate::terms::{self, Code, Compared, Quantity, joined};

/// The floor where none is given.
const FLOOR: f64 = 0.02;

pub(crate) const ASKED_FOR: &str =
    "at a given rate QPS is what was asked for, not what was found: --metric p99";

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

/// Tables of two labels each: by metric, workload, and new label.
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

/// How a label relates to a base: above 1 where it is better.
pub(crate) struct Ratio {
    estimate: f64,
    /// The shift of the logarithms, turned so that more is better.
    pub shift: Shift,
    /// Runs were compared with those beside them.
    blocks: bool,
    /// Corrected within the workload, over all of them, and for the looks.
    pub p: f64,
    /// What the clearest p of a cell is multiplied by where no other cell differs.
    pub times: f64,
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
                    found.tables.push(noted(pair));
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

pub(super) fn common<'t, 's>(table: &'t Table<'s>) -> Pairs<'t, 's> {
    let [base, new] = table.lines.as_slice() else { return Vec::new() };
    in_both([base, new])
}

/// Returns the cells of the columns that two lines have.
fn in_both<'t, 's>([one, other]: [&'t Line<'s>; 2]) -> Pairs<'t, 's> {
    let both = one.cells.iter().filter_map(|(at, cell)| Some((*at, [cell, other.cells.get(at)?])));
    both.collect()
}

pub fn compare<'a>(steps: impl Into<Reported<'a>>, question: &Question) -> Result<Comparison> {
    let contrasts = question.all_contrasts(&steps.into())?;
    let mut rows = rows(&contrasts, question);
    let lacks = |row: &&mut Row| row.what.is_some() && row.verdict != Compared::Worse;
    let lacking = rows.iter_mut().flatten().filter(|row| row.ratio.is_some()).filter(lacks);
    lacking.for_each(|row| row.verdict = Compared::Incomplete);
    let (related, without): (Vec<&Row>, Vec<&Row>) =
        rows.iter().flatten().partition(|row| row.ratio.is_some());
    let (stopped, lacking): (Vec<_>, Vec<_>) = without.into_iter().partition(|of| of.has_stopped());
    let several = Several::among(&rows, question);
    let what = |rows: &[&Row]| {
        rows.iter().filter_map(|row| row.told_apart(several)).collect::<Vec<String>>()
    };
    let pages = pages(&rows, question.floor);
    let lines = brief::below(&contrasts.tables, &question.notes, &question.source);
    if pages.is_empty() {
        let why = [what(&stopped), what(&lacking)].concat().swap_remove(0);
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
        unknown: once([what(&lacking), what(&related), asked_for].into_iter().flatten()),
        inconclusive: found_out().filter(is(Compared::Inconclusive)).filter_map(line).collect(),
        too_few: too_few().filter_map(line).collect(),
        repeats_needed: repeats_needed(too_few().filter_map(times).fold(1.0, f64::max)),
        open: found_out().chain(&lacking).filter_map(|row| row.doubt()).collect(),
        text: answer::above(
            &answer,
            write(&pages, "compare", question.format, None, (&question.notes, &lines)),
            question.format,
        ),
        answer,
    })
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
        Some(compare(steps.clone(), &of).ok()?.answer)
    };
    compared().unwrap_or_default()
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

pub(crate) fn is_asked_for(table: &Table, column: &Column) -> bool {
    column.is_open() && table.metric.is_rate()
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
        let cells = lines.map(|line| line.and_then(|line| line.cells.get(column)));
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

/// The cells of two labels, by the columns that both have.
type Pairs<'t, 's> = Vec<(Column, [&'t Cell<'s>; 2])>;

/// What is corrected together: all that a comparison shows, over workloads, new labels and metrics.
#[derive(Clone, Copy)]
struct Family {
    /// Tables of two labels with a cell whose number was not asked for, and with one whose was.
    tables: [usize; 2],
    /// Looks at the cells.
    looks: u32,
}

impl Family {
    fn new<'t, 's: 't>(
        contrasts: impl Iterator<Item = (&'t Table<'s>, [&'t Line<'s>; 2])>,
        repeats_max: u32,
    ) -> Family {
        let mut family = Family { tables: [0, 0], looks: 1 };
        for (table, lines) in contrasts {
            let shared = in_both(lines);
            for asked_for in [false, true] {
                let has = shared.iter().any(|(of, _)| is_asked_for(table, of) == asked_for);
                family.tables[usize::from(asked_for)] += usize::from(has);
            }
            let looks = shared.iter().flat_map(|(_, cells)| *cells);
            let looks = looks.map(|cell| looks_at(cell, repeats_max)).max();
            family.looks = family.looks.max(looks.unwrap_or(1));
        }
        family
    }

    /// Returns what the p of a cell is multiplied by at most: the cells of its kind in its table, the tables
    /// with such, the looks.
    fn times(&self, table: &Table, shared: &Pairs, column: &Column) -> f64 {
        let asked_for = is_asked_for(table, column);
        let alike = shared.iter().filter(|(of, _)| is_asked_for(table, of) == asked_for).count();
        (alike * self.tables[usize::from(asked_for)]) as f64 * f64::from(self.looks)
    }
}

/// Counts the looks at a cell: where one run (or what continues it) has steps that were planned with
/// fewer repeats and steps that were planned with more, somebody looked and went on.
fn looks_at(cell: &Cell, repeats_max: u32) -> u32 {
    let mut planned: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for step in &cell.steps {
        planned.entry(&step.run_id).or_default().insert(step.plan.repeats);
    }
    let ends = planned.values().map(|all| all.first().zip(all.last()).expect("a step"));
    let looks = ends.map(|(least, most)| stats::looks(*least, repeats_max.max(*most)));
    // What was imported was looked at once.
    looks.max().unwrap_or(1)
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

impl Ratio {
    /// Relates a cell to a base, p being multiplied by so much; nothing where a run has no logarithm.
    pub(super) fn of(cells: [&Cell; 2], metric: Metric, times: f64) -> Option<Ratio> {
        if !is_comparable(metric, cells) {
            return None;
        }
        let runs = cells.map(|cell| cell.values.as_slice());
        Ratio::of_runs(cells, runs, metric.higher_is_better(), times)
    }

    /// Relates numbers of the runs of two cells.
    pub(super) fn of_runs(
        cells: [&Cell; 2],
        [base, new]: [&[f64]; 2],
        higher_is_better: bool,
        times: f64,
    ) -> Option<Ratio> {
        let turn = if higher_is_better { 1.0 } else { -1.0 };
        let log = |value: &f64| has_log(*value).then(|| value.ln() * turn);
        let logs = |runs: &[f64]| runs.iter().map(log).collect::<Option<Vec<f64>>>();
        let (shift, blocks) = shift(cells, [&logs(base)?, &logs(new)?], times)?;
        let estimate = match (base, new) {
            // Without the rounding of logarithms: half of it is 0.5.
            ([one], [other]) if higher_is_better => other / one,
            ([one], [other]) => one / other,
            _ => shift.estimate.exp(),
        };
        Some(Ratio { estimate, p: shift.p, shift, blocks, times })
    }

    pub(super) fn estimate(&self) -> f64 {
        self.estimate
    }

    fn interval(&self) -> Option<String> {
        self.bounds().map(|(low, high)| format!("{} to {}", number(low, 3), number(high, 3)))
    }

    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        self.shift.interval.map(|(low, high)| (low.exp(), high.exp()))
    }
}

fn has_log(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

pub(super) fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { number(p, 3) }
}

/// The ratios of some tables, each as a comparison of all their labels with a base has it.
pub(crate) struct Ratios<'t, 's> {
    tables: &'t [Table<'s>],
    lines: Vec<BTreeMap<&'s str, &'t Line<'s>>>,
    /// By the base, as they were wanted.
    families: RefCell<BTreeMap<String, Family>>,
}

impl<'t, 's> Ratios<'t, 's> {
    pub(crate) fn new(tables: &'t [Table<'s>]) -> Ratios<'t, 's> {
        let lines =
            |table: &'t Table<'s>| table.lines.iter().map(|line| (line.label, line)).collect();
        let families = RefCell::default();
        Ratios { tables, lines: tables.iter().map(lines).collect(), families }
    }

    fn family(&self, base: &str) -> Family {
        if let Some(family) = self.families.borrow().get(base) {
            return *family;
        }
        let of_table = |(table, lines): (&'t Table<'s>, &BTreeMap<&str, &'t Line<'s>>)| {
            let one = lines.get(base).copied();
            let others = table.lines.iter().filter(|line| line.label != base);
            one.into_iter()
                .flat_map(|one| others.clone().map(move |other| (table, [one, other])))
                .collect::<Vec<_>>()
        };
        let family = Family::new(self.tables.iter().zip(&self.lines).flat_map(of_table), 0);
        self.families.borrow_mut().insert(base.to_owned(), family);
        family
    }

    fn shared(&self, at: usize, labels: [&str; 2]) -> Pairs<'t, 's> {
        let [one, other] = labels.map(|label| self.lines[at].get(label).copied());
        one.zip(other).map_or_else(Vec::new, |(one, other)| in_both([one, other]))
    }

    /// Returns what decides whether runs of two labels are compared in blocks, for a column of a table.
    pub(crate) fn times(&self, at: usize, labels: [&str; 2], column: &Column) -> f64 {
        self.family(labels[0]).times(&self.tables[at], &self.shared(at, labels), column)
    }

    /// Gives the ratios of a label to a base in one table, by columns.
    pub(crate) fn between(&self, at: usize, labels: [&str; 2]) -> BTreeMap<Column, Ratio> {
        let (table, family) = (&self.tables[at], self.family(labels[0]));
        let shared = self.shared(at, labels);
        let ratio = |(column, cells): &(Column, [&Cell; 2])| {
            let times = family.times(table, &shared, column);
            Some((*column, Ratio::of(*cells, table.metric, times)?))
        };
        shared.iter().filter_map(ratio).collect()
    }

    /// Fills the ratios of the cells of a table, which is one of all or a part of it, to a label. Of
    /// numbers without logarithms they are those of the medians.
    pub(crate) fn relate(&self, at: usize, table: &mut Table, label: &str) {
        let Some(base) = self.lines[at].get(label) else { return };
        for line in &mut table.lines {
            let is_base = line.label == label;
            let ratios =
                if is_base { BTreeMap::new() } else { self.between(at, [label, line.label]) };
            for (column, cell) in &mut line.cells {
                let base = base.cells.get(column);
                let base = base.filter(|base| is_comparable(table.metric, [base, cell]));
                let of_medians = || speed(&table.metric, base?.spread.median, cell.spread.median);
                let ratio = ratios.get(column);
                cell.relative = ratio.map(Ratio::estimate).or_else(of_medians);
                cell.relative_interval = ratio.and_then(Ratio::bounds);
            }
        }
        table.baseline = Some(label.to_owned());
    }

    /// Returns a table with its ratios to a label, without the columns whose number was asked for;
    /// nothing where it has no such label.
    pub(crate) fn related(&self, at: usize, table: &Table<'s>, base: &str) -> Option<Table<'s>> {
        table.line(base)?;
        let mut related = table.clone();
        self.relate(at, &mut related, base);
        related.keep(|column| !is_asked_for(table, column));
        Some(related)
    }
}

/// Tells how far the new runs lie above those of the base. Interleaved ones are compared in blocks,
/// where there are enough of them for p times so much to decide: a difference between two runs
/// beside each other does not hold what drifts over an hour.
pub(crate) fn shift(cells: [&Cell; 2], runs: [&[f64]; 2], times: f64) -> Option<(Shift, bool)> {
    let [one, other] = runs;
    let whole = cells.iter().zip(runs).all(|(cell, runs)| cell.steps.len() == runs.len());
    if whole && one.len() == other.len() && are_blocks(cells) {
        let differences: Vec<f64> = one.iter().zip(other).map(|(a, b)| b - a).collect();
        if let Some(shift) = stats::pairs(&differences).filter(|shift| !is_too_few(shift, times)) {
            return Some((shift, true));
        }
    }
    Some((stats::two_samples(one, other)?, false))
}

fn are_blocks([one, other]: [&Cell; 2]) -> bool {
    let at = |step: &Summary| step.started_at.parse::<Timestamp>().ok();
    let ends = |(a, b): (&&Summary, &&Summary)| {
        let (first, second) = (at(a)?, at(b)?);
        let same = a.plan.repeat_index == b.plan.repeat_index;
        same.then(|| (first.min(second), first.max(second)))
    };
    if !one.imported.is_empty() || !other.imported.is_empty() {
        return false;
    }
    // The steps of a cell are sorted by time.
    let blocks: Option<Vec<_>> = one.steps.iter().zip(&other.steps).map(ends).collect();
    blocks.is_some_and(|blocks| blocks.windows(2).all(|two| two[1].0 > two[0].1))
}

fn pages(rows: &[Vec<Row>], floor: f64) -> Vec<Page> {
    let is_told = |row: &Row| row.ratio.is_some() || row.verdict == Compared::NotComparable;
    let (found, bare): (Vec<&Vec<Row>>, Vec<&Vec<Row>>) =
        rows.iter().partition(|rows| rows.iter().any(is_told) || crashed(rows[0].table));
    let mut pages: Vec<Page> = found.iter().map(|rows| page(rows[0].table, rows, floor)).collect();
    let Some(last) = pages.last_mut() else { return pages };
    // Workloads without a table of their own.
    last.below.extend(once(bare.into_iter().flatten().filter_map(Row::told)));
    pages
}

fn page(table: &Table, rows: &[Row], floor: f64) -> Page {
    let how = if table.metric.higher_is_better() { "new/base" } else { "base/new" };
    let (related, without): (Vec<&Row>, Vec<_>) = rows.iter().partition(|row| row.ratio.is_some());
    let asked_for = related.iter().any(|row| row.is_asked_for()).then(|| ASKED_FOR.to_owned());
    let whats = without.iter().chain(&related).filter_map(|row| row.told());
    let imported =
        rows.iter().flat_map(|row| row.cells).flatten().any(|of| !of.imported.is_empty());
    let apart = if imported { IMPORTED_APART } else { APART };
    let apart = rows.iter().any(Row::is_apart).then(|| apart.to_owned());
    let lines = asked_for.into_iter().chain(whats).chain(apart).collect();
    let title = format!(
        "{}: {} of {} against {}, medians; ratio {how} over all pairs of runs: above 1 is better",
        escape::line(table.workload),
        table.metric.name(),
        label(table.lines[1].label),
        label(table.lines[0].label),
    );
    Page::of(title, sheet(table, rows, how, floor), lines).footed(table)
}

fn sheet(table: &Table, rows: &[Row], how: &str, floor: f64) -> Sheet {
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

pub(super) fn is_too_few(shift: &Shift, times: f64) -> bool {
    shift.p_least * times > ALPHA
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

/// Warnings of steps that another run may be free of: something disturbed it.
const DISTURBED: [Code; 10] = [
    Code::Abandoned,
    Code::CpuFrequency,
    Code::CpuThrottled,
    Code::Drift,
    Code::Errors,
    Code::LevelChange,
    Code::Outages,
    Code::Perturbed,
    Code::SettingsChanged,
    Code::Swapping,
];

/// A cell in doubt.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    pub workload: String,
    pub labels: Vec<String>,
    pub cell: terms::Cell,
    pub why: String,
}

/// Returns the cells whose median is not known to `widest`, a share of it, or whose runs were
/// disturbed more often than not.
pub fn doubtful(steps: &[&Summary], options: &Options, widest: f64) -> Result<Vec<Doubt>> {
    let tables = tables(&steps.into(), options)?;
    let doubts = tables.iter().flat_map(|table| {
        table.items().filter_map(|item| {
            let (cell, workload) = (item.column, table.workload.to_owned());
            let why = wide(item.cell, widest).or_else(|| disturbed(&item.cell.steps))?;
            let why = format!("{} at {}: {why}", label(item.line.label), at_clients(&cell));
            Some(Doubt { workload, labels: vec![item.line.label.to_owned()], cell, why })
        })
    });
    Ok(doubts.collect())
}

/// More runs make the interval narrow, and never the range: it counts as long as there is no
/// interval.
fn wide(cell: &Cell, widest: f64) -> Option<String> {
    let spread = cell.spread;
    let (what, (low, high)) = match cell.interval {
        Some(interval) => ("the 95 % interval of the median", interval),
        None => ("the range of the runs", (spread.min, spread.max)),
    };
    let width = (high - low) / spread.median;
    (spread.median > 0.0 && width > widest).then(|| {
        let percent = number(width * 100.0, 1);
        format!("{what} is {percent} % of it, over {} runs", spread.n)
    })
}

/// A median tolerates some disturbed runs, and not half of them.
fn disturbed(steps: &[&Summary]) -> Option<String> {
    let found = steps.iter().filter_map(|step| {
        let noisy = step.verdict.iter().find(|verdict| verdict.kind == VerdictKind::Noisy);
        let warned = step.warnings.iter().find(|w| DISTURBED.iter().any(|code| w.is(*code)));
        noisy.map(|verdict| verdict.kind.name()).or(warned.map(|warning| warning.code.as_str()))
    });
    let found: Vec<&str> = found.collect();
    let first = found.first()?;
    (found.len() * 2 >= steps.len())
        .then(|| format!("{} of {} runs were disturbed ({first})", found.len(), steps.len()))
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
