//! Two labels compared with statistics instead of eyes: the unit is the run, never the op.

mod ratio;
mod show;
mod verdict;
mod without;

use std::collections::HashMap;

use self::ratio::logs;
pub(super) use self::ratio::shift;
pub(crate) use self::ratio::{interval, intervals};
pub(super) use self::show::chance;
use self::show::{absence, doubt, line, method, page};
use self::verdict::{Verdict, repeats_needed, verdict};
use self::without::{Without, absent};
use super::baseline::known;
use super::gate::{Quantity, share};
use super::layout::{at_clients, noted};
use super::page::{self, Page};
use super::pivot::{self, Cell, Column, Line, Table, among};
use super::select::missing;
use super::{Doubt, Format, Metric, Options, caption, escape, notes, settings};
use crate::error::{Error, Result};
use crate::judge::{self, Weight};
use crate::stats::{self, Shift, benjamini_hochberg, holm};
use crate::summary::Summary;

/// Labels whose failed ops differ by more are not the same, whatever the times of the others are.
const FAILED_MAX: f64 = 0.01;

/// What to compare and how.
#[derive(Debug, Clone)]
pub struct Question {
    /// The label that is compared against.
    pub base: String,
    /// The label that is compared.
    pub new: String,
    /// The number that is compared.
    pub metric: Metric,
    /// A difference below this share does not matter, 0.02 being 2 %.
    pub floor: f64,
    /// Repeats that what is not decided may still get: the looks on the way there count, too.
    /// 0: no more than there are.
    pub repeats_max: u32,
    /// Compare also what was measured under other conditions, and say so.
    pub force: bool,
    /// Of each label and workload only the newest invocation.
    pub latest: bool,
    /// The output format.
    pub format: Format,
}

/// One workload and number of clients.
pub(super) struct Pair {
    pub(super) column: Column,
    base: f64,
    new: f64,
    pub(super) runs: (usize, usize),
    /// Of the logarithms, turned so that more is better.
    pub(super) shift: Shift,
    /// Whether runs were compared with those beside them.
    blocks: bool,
    /// Corrected within the workload, over all of them, and for the looks.
    pub(super) p: f64,
    /// What the clearest p of a cell is multiplied by where no other cell differs.
    times: f64,
    /// Whether it is what an open loop was told: then it is corrected among its like only.
    asked_for: bool,
    verdict: Verdict,
    /// How many of its runs did not complete, where some did not.
    missing: Option<String>,
}

/// The comparison, written out, and what a gate asks of it.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Ends with a line end.
    pub text: String,
    /// What became worse, a line each.
    pub worse: Vec<String>,
    /// What too few runs were made of, a line each.
    pub too_few: Vec<String>,
    /// So many of each label would be enough for them.
    pub repeats_needed: usize,
    /// What cannot be known whatever the number of runs, a line each: cells that one label has not
    /// measured, of which runs did not complete, or that have no ratio.
    pub unknown: Vec<String>,
    /// What may be better or worse by more than the floor, a line each.
    pub inconclusive: Vec<String>,
    /// What more runs could tell.
    pub open: Vec<Doubt>,
}

/// Compares the new label with the base, for every workload and number of clients that both have.
///
/// # Errors
///
/// Usage for a label that is not there; data where the two were measured under other conditions
/// (without `force`), have nothing in common, or for what [`super::render`] refuses.
pub fn compare(steps: &[&Summary], question: &Question) -> Result<Comparison> {
    let options = Options {
        metric: question.metric.clone(),
        format: question.format,
        latest: question.latest,
        ..Options::default()
    };
    let all = pivot::tables(steps, &options)?;
    known(&all, "--base", &question.base)?;
    known(&all, "--new", &question.new)?;
    let labels = [question.base.as_str(), question.new.as_str()];
    let tables: Vec<Table> = all.iter().map(|table| noted(table.of_labels(&labels))).collect();
    if !question.force {
        tables.iter().try_for_each(comparable)?;
    }
    let crashed = |table: &Table| {
        table.lines.len() == 2 && table.lines.iter().any(|line| !line.left_out.is_empty())
    };
    if tables.iter().all(|table| common(table).is_empty() && !crashed(table)) {
        let labels = labels.map(escape::line).join(" and ");
        let text = format!("{labels} have no workload and number of clients in common");
        return Err(Error::data(text).hint("loadgen report shows what each of them has"));
    }
    let mut judged = judged(&tables, question.floor, question.repeats_max)?;
    for (at, table) in tables.iter().enumerate() {
        if let Some(without) = judged.without.get_mut(at) {
            without.extend(absent(table, &question.base, &question.new));
            without.sort_by_key(|cell| cell.column);
        }
        for pair in judged.pairs.get_mut(at).into_iter().flatten() {
            pair.missing = incomplete(table, pair, question.floor);
            if pair.missing.is_some() && pair.verdict != Verdict::Worse {
                pair.verdict = Verdict::Incomplete;
            }
        }
    }
    let absent = tables.iter().zip(&judged.without);
    let absent = absent.flat_map(|(table, cells)| cells.iter().map(move |cell| (table, cell)));
    let absent = absent.filter_map(|(table, cell)| absence(table, cell, labels));
    let (stopped, without): (Vec<&Without>, Vec<&Without>) =
        judged.without.iter().flatten().partition(|cell| cell.fell);
    let lines = |cells: &[&Without]| cells.iter().map(|cell| cell.what.clone()).collect();
    let (stopped, mut unknown): (Vec<String>, Vec<String>) = (lines(&stopped), lines(&without));
    let all = tables.iter().zip(&judged.pairs).zip(&judged.without);
    let (found, bare): (Vec<_>, Vec<_>) =
        all.partition(|((table, pairs), _)| !pairs.is_empty() || crashed(table));
    if let (true, Some(first)) = (found.is_empty(), stopped.first().or(unknown.first())) {
        return Err(Error::data(first.clone()).hint("another --metric"));
    }
    let pairs = || {
        let found = found.iter().copied();
        found.flat_map(|((table, pairs), _)| pairs.iter().map(move |pair| (table, pair)))
    };
    // What was asked for is no finding, and none is missed there, unless it is all there is.
    let all_asked_for = pairs().all(|(_, pair)| pair.asked_for);
    unknown.extend(pairs().filter_map(|(_, pair)| pair.missing.clone()));
    if all_asked_for && pairs().next().is_some() {
        unknown.push(ASKED_FOR.to_owned());
    }
    let found_out = || pairs().filter(|(_, pair)| all_asked_for || !pair.asked_for);
    let too_few = || found_out().filter(|(_, pair)| pair.verdict == Verdict::TooFew);
    let inconclusive = found_out().filter(|(_, pair)| pair.verdict == Verdict::Inconclusive);
    let mut pages: Vec<Page> =
        found.iter().map(|((table, pairs), without)| page(table, pairs, without)).collect();
    say_once(&mut pages, found.last().map(|((table, _), _)| *table));
    if let Some(last) = pages.last_mut() {
        // Workloads without a table of their own.
        last.below.extend(bare.iter().flat_map(|(_, cells)| *cells).map(|cell| cell.what.clone()));
        let all = pairs().map(|(_, pair)| pair);
        last.below.push(method(all, question.floor, judged.looks));
    }
    let became_worse = pairs().filter(|(_, pair)| pair.verdict == Verdict::Worse);
    let mut worse: Vec<String> = became_worse.map(|(table, pair)| line(table, pair)).collect();
    worse.extend(stopped);
    Ok(Comparison {
        worse,
        unknown,
        inconclusive: inconclusive.map(|(table, pair)| line(table, pair)).collect(),
        too_few: too_few().map(|(table, pair)| line(table, pair)).collect(),
        repeats_needed: repeats_needed(too_few().map(|(_, pair)| pair.times).fold(1.0, f64::max)),
        open: found_out().filter_map(|(table, pair)| doubt(table, pair)).chain(absent).collect(),
        text: page::render(&pages, "compare", question.format)?,
    })
}

/// Leaves conditions that are those of all tables to the last.
fn say_once(pages: &mut [Page], last: Option<&Table>) {
    let (Some(table), Some((_, others))) = (last, pages.split_last_mut()) else { return };
    let mut shared = caption::below(table);
    shared.retain(|line| others.iter().all(|page| page.below.contains(line)));
    for page in others {
        page.below.retain(|line| !shared.contains(line));
    }
}

/// Refuses labels that were measured on other data or by other statements.
pub(super) fn comparable(table: &Table) -> Result<()> {
    let [base, new] = table.lines.as_slice() else { return Ok(()) };
    for (column, one, other) in common(table) {
        let (one, other) = (judge::by_knowledge(&one.steps), judge::by_knowledge(&other.steps));
        let pairs =
            one.iter().flat_map(|(one, _)| other.iter().map(move |(other, _)| (one, other)));
        let differences = pairs.flat_map(|(one, other)| judge::differences(one, other));
        let mut differing: Vec<String> = Vec::new();
        for d in differences.filter(|d| d.weight == Weight::Operation) {
            let (a, b) = settings::told_apart(&d.first, &d.second);
            let text = format!("{} {a} and {b}", d.name);
            if !differing.contains(&text) {
                differing.push(text);
            }
        }
        if differing.is_empty() {
            continue;
        }
        return Err(Error::data(format!(
            "{} at {}: {} and {} were not measured on the same: {}",
            escape::line(table.workload),
            at_clients(&column),
            escape::line(base.label),
            escape::line(new.label),
            escape::line(&notes::some(differing, "; "))
        ))
        .hint("--force compares them all the same, and says so"));
    }
    Ok(())
}

/// The cells that both labels have: the base's, and the new label's.
fn common<'t, 's>(table: &'t Table<'s>) -> Vec<(Column, &'t Cell<'s>, &'t Cell<'s>)> {
    let [base, new] = table.lines.as_slice() else { return Vec::new() };
    let cells = base.cells.iter().zip(&new.cells);
    let both = table
        .columns
        .iter()
        .zip(cells)
        .filter_map(|(column, (one, other))| Some((*column, one.as_ref()?, other.as_ref()?)));
    both.collect()
}

/// How many runs of a cell did not complete, of each label that has such; or the ops that failed,
/// where those of one label did and the number does not show it.
fn incomplete(table: &Table, pair: &Pair, floor: f64) -> Option<String> {
    let column = &pair.column;
    let of_label = |line: &Line| {
        let (missing, all) = missing(&among(column, &line.steps), &among(column, &line.left_out));
        let label = escape::line(line.label);
        (missing > 0).then(|| format!("{missing} of {all} runs of {label} did not complete"))
    };
    let mut labels: Vec<String> = table.lines.iter().filter_map(of_label).collect();
    let rate = matches!(table.metric, Metric::Natural | Metric::Qps | Metric::Tps | Metric::Errors);
    let failed = |line: &Line| share(&among(column, &line.steps)).unwrap_or(0.0);
    if let ([base, new], false) = (table.lines.as_slice(), rate)
        && (failed(base) - failed(new)).abs() > floor.max(FAILED_MAX)
    {
        labels.extend([base, new].map(|line| {
            let share = Quantity::ErrorShare.shown(failed(line));
            format!("{share} of the ops of {} failed", escape::line(line.label))
        }));
    }
    let place = format!("{} at {}", escape::line(table.workload), at_clients(column));
    (!labels.is_empty()).then(|| format!("{place}: {}", labels.join(", ")))
}

/// A number that an open loop is told, not one that it finds.
pub(crate) fn is_asked_for(table: &Table, column: &Column) -> bool {
    column.rate.is_some() && matches!(table.metric, Metric::Natural | Metric::Qps | Metric::Tps)
}

/// Said where there is nothing but such numbers.
pub(crate) const ASKED_FOR: &str =
    "at a given rate QPS is what was asked for, not what was found: --metric p99";

/// The cells of some tables of two labels, with their verdicts.
pub(super) struct Judged {
    /// Of each table.
    pub(super) pairs: Vec<Vec<Pair>>,
    /// Of each table, what has no ratio.
    without: Vec<Vec<Without>>,
    /// Looks that chance has, those that are planned among them.
    looks: u32,
}

/// Compares every cell that both labels have.
pub(super) fn judged(tables: &[Table], floor: f64, repeats_max: u32) -> Result<Judged> {
    let looks = tables.iter().map(|table| looks(table, repeats_max)).max().unwrap_or(1);
    let mut judged = Judged { pairs: Vec::new(), without: Vec::new(), looks };
    for table in tables {
        let (mut pairs, mut without) = (Vec::new(), Vec::new());
        for (column, one, other) in common(table) {
            let asked_for = is_asked_for(table, &column);
            let alike = |table: &&Table| {
                let cells = common(table).into_iter();
                cells.filter(|(column, ..)| is_asked_for(table, column) == asked_for).count()
            };
            let rows = tables.iter().filter(|table| alike(table) > 0).count();
            let times = (alike(&table) * rows) as f64 * f64::from(looks);
            let (a, b) = (logs(one, &table.metric)?, logs(other, &table.metric)?);
            let Some((shift, blocks)) = shift((one, &a), (other, &b), times) else {
                let fell = table.metric.higher_is_better() && !a.is_empty();
                without.push(Without::of(table, column, (one, other), fell)?);
                continue;
            };
            pairs.push(Pair {
                column,
                base: one.spread.median,
                new: other.spread.median,
                runs: (a.len(), b.len()),
                shift,
                blocks,
                p: shift.p,
                times,
                asked_for,
                verdict: Verdict::NotShown,
                missing: None,
            });
        }
        judged.pairs.push(pairs);
        judged.without.push(without);
    }
    judge(&mut judged.pairs, floor, looks);
    Ok(judged)
}

/// Looks at the cells of a table: where one run (or what continues it) has steps that were planned
/// with fewer repeats and steps that were planned with more, somebody looked and went on.
fn looks(table: &Table, repeats_max: u32) -> u32 {
    let of_cell = |cell: &Cell| {
        let mut planned: HashMap<&str, (u32, u32)> = HashMap::new();
        for step in &cell.steps {
            let repeats = step.plan.repeats;
            let (least, most) = planned.entry(&step.run_id).or_insert((repeats, repeats));
            (*least, *most) = (repeats.min(*least), repeats.max(*most));
        }
        let looks =
            planned.values().map(|(least, most)| stats::looks(*least, repeats_max.max(*most)));
        looks.max().unwrap_or(1)
    };
    let cells = common(table);
    cells.iter().flat_map(|(_, one, other)| [*one, *other]).map(of_cell).max().unwrap_or(1)
}

/// Corrects: by Holm within the row of a workload, by Benjamini and Hochberg over the workloads,
/// each with its clearest cell, by Bonferroni over the looks. A cell's corrected p is the larger of
/// the first two, times the looks. What was asked for does not make it harder to find the others.
fn judge(tables: &mut [Vec<Pair>], floor: f64, looks: u32) {
    for asked_for in [false, true] {
        let alike = tables.iter_mut().map(|pairs| {
            let pairs = pairs.iter_mut().filter(|pair| pair.asked_for == asked_for);
            pairs.collect::<Vec<&mut Pair>>()
        });
        let alike = alike.filter(|pairs| !pairs.is_empty());
        judge_alike(alike.collect(), floor, f64::from(looks));
    }
}

fn judge_alike(tables: Vec<Vec<&mut Pair>>, floor: f64, looks: f64) {
    let rows: Vec<Vec<f64>> = tables
        .iter()
        .map(|pairs| holm(&pairs.iter().map(|p| p.shift.p).collect::<Vec<f64>>()))
        .collect();
    let least = |row: &Vec<f64>| row.iter().copied().fold(1.0, f64::min);
    let over_all = benjamini_hochberg(&rows.iter().map(least).collect::<Vec<f64>>());
    for ((pairs, row), over_all) in tables.into_iter().zip(&rows).zip(over_all) {
        let times = (row.len() * rows.len()) as f64 * looks;
        for (pair, p) in pairs.into_iter().zip(row) {
            pair.p = (p.max(over_all) * looks).min(1.0);
            pair.times = times;
            pair.verdict = verdict(&pair.shift, pair.p, times, floor);
        }
    }
}
