//! Two labels compared with statistics instead of eyes: the unit is the run, never the op.

mod ratio;
mod show;
mod verdict;

use std::collections::HashMap;

use self::ratio::logs;
pub(super) use self::ratio::shift;
pub(crate) use self::ratio::{interval, intervals};
pub(super) use self::show::chance;
use self::show::{doubt, line, page};
use self::verdict::{Verdict, verdict};
use super::baseline::known;
use super::layout::{at_clients, noted};
use super::page::{self, Page};
use super::pivot::{self, Cell, Column, Table};
use super::{Doubt, Format, Metric, Options, escape, settings};
use crate::error::{Error, Result};
use crate::stats::{self, Shift, benjamini_hochberg, holm};
use crate::summary::Summary;

/// Conditions without which two numbers are of different things.
const SAME: &[&str] = &["tables", "rows", "distribution", "statements", "SQL"];

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
    verdict: Verdict,
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
    /// What cannot be known whatever the number of runs, a line each: cells that the new label has
    /// not measured, or that have no ratio.
    pub unknown: Vec<String>,
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
    if tables.iter().all(|table| common(table).is_empty()) {
        let labels = labels.map(escape::line).join(" and ");
        let text = format!("{labels} have no workload and number of clients in common");
        return Err(Error::data(text).hint("loadgen report shows what each of them has"));
    }
    let mut unknown: Vec<String> =
        tables.iter().flat_map(|table| absent(table, question)).collect();
    let judged = judged(&tables, question.floor, question.repeats_max)?;
    let (stopped, without): (Vec<_>, Vec<_>) =
        judged.without_ratio.into_iter().partition(|(_, fell)| *fell);
    let stopped: Vec<String> = stopped.into_iter().map(|(what, _)| what).collect();
    unknown.extend(without.into_iter().map(|(what, _)| what));
    let found: Vec<(Table, Vec<Pair>)> =
        tables.into_iter().zip(judged.pairs).filter(|(_, pairs)| !pairs.is_empty()).collect();
    if let (true, Some(first)) = (found.is_empty(), stopped.first().or(unknown.first())) {
        return Err(Error::data(first.clone()).hint("another --metric"));
    }
    let mut asked_for =
        found.iter().flat_map(|(table, pairs)| pairs.iter().map(move |p| (table, p)));
    if asked_for.all(|(table, pair)| is_asked_for(table, &pair.column)) {
        unknown.push(ASKED_FOR.to_owned());
    }
    let told = |verdict: Verdict| -> Vec<String> {
        let all = found.iter().flat_map(|(table, pairs)| pairs.iter().map(move |p| (table, p)));
        let those = all.filter(|(_, pair)| pair.verdict == verdict);
        those.map(|(table, pair)| line(table, pair)).collect()
    };
    let pages: Vec<Page> =
        found.iter().map(|(table, pairs)| page(table, pairs, question, judged.looks)).collect();
    let mut worse = told(Verdict::Worse);
    worse.extend(stopped);
    Ok(Comparison {
        worse,
        unknown,
        too_few: told(Verdict::TooFew),
        open: found
            .iter()
            .flat_map(|(table, pairs)| pairs.iter().filter_map(|p| doubt(table, p)))
            .collect(),
        text: page::render(&pages, "compare", question.format)?,
    })
}

/// Refuses labels that were measured on other data or by other statements.
pub(super) fn comparable(table: &Table) -> Result<()> {
    let [base, new] = table.lines.as_slice() else { return Ok(()) };
    for (column, one, other) in common(table) {
        let (Some(one), Some(other)) = (one.steps.first(), other.steps.first()) else { continue };
        let conditions = settings::conditions(one).into_iter().zip(settings::conditions(other));
        let differing: Vec<String> = conditions
            .filter(|((name, a), (_, b))| SAME.contains(name) && a != b)
            .map(|((name, a), (_, b))| format!("{name} {a} and {b}"))
            .collect();
        if differing.is_empty() {
            continue;
        }
        return Err(Error::data(format!(
            "{} at {}: {} and {} were not measured on the same: {}",
            escape::line(table.workload),
            at_clients(&column),
            escape::line(base.label),
            escape::line(new.label),
            escape::line(&differing.join("; "))
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

/// What the base has measured and the new label has not, a line each.
fn absent(table: &Table, question: &Question) -> Vec<String> {
    let cells = |label: &str| {
        let line = table.lines.iter().find(|line| line.label == label);
        line.map_or(&[][..], |line| line.cells.as_slice())
    };
    let (base, new) = (cells(&question.base), cells(&question.new));
    let mut lines = Vec::new();
    for (at, (column, cell)) in table.columns.iter().zip(base).enumerate() {
        if cell.is_some() && new.get(at).is_none_or(Option::is_none) {
            lines.push(format!(
                "{} at {} was not measured by {}",
                escape::line(table.workload),
                at_clients(column),
                escape::line(&question.new)
            ));
        }
    }
    lines
}

/// A number that an open loop is told, not one that it finds.
pub(crate) fn is_asked_for(table: &Table, column: &Column) -> bool {
    column.rate.is_some() && matches!(table.metric, Metric::Natural | Metric::Qps | Metric::Tps)
}

/// Said where there is nothing but such numbers.
pub(crate) const ASKED_FOR: &str =
    "at a given rate QPS is what was asked for, not what was found: --metric response-p99";

/// The cells of some tables of two labels, with their verdicts.
pub(super) struct Judged {
    /// Of each table.
    pub(super) pairs: Vec<Vec<Pair>>,
    /// What has no ratio, a line each, and whether that is because the new label did nothing at all.
    without_ratio: Vec<(String, bool)>,
    /// Looks that chance has, those that are planned among them.
    looks: u32,
}

/// Compares every cell that both labels have.
pub(super) fn judged(tables: &[Table], floor: f64, repeats_max: u32) -> Result<Judged> {
    let rows = tables.iter().filter(|table| !common(table).is_empty()).count();
    let looks = tables.iter().map(|table| looks(table, repeats_max)).max().unwrap_or(1);
    let mut judged = Judged { pairs: Vec::new(), without_ratio: Vec::new(), looks };
    for table in tables {
        let cells = common(table);
        // What the clearest p is multiplied by.
        let times = (cells.len() * rows) as f64 * f64::from(looks);
        let mut pairs = Vec::new();
        for (column, one, other) in cells {
            let (a, b) = (logs(one, &table.metric)?, logs(other, &table.metric)?);
            let Some((shift, blocks)) = shift((one, &a), (other, &b), times) else {
                let what = format!(
                    "{} at {}: {} of 0 or less have no ratio",
                    escape::line(table.workload),
                    at_clients(&column),
                    table.metric.name()
                );
                let fell = table.metric.higher_is_better() && !a.is_empty();
                judged.without_ratio.push((what, fell));
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
                verdict: Verdict::NotShown,
            });
        }
        judged.pairs.push(pairs);
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
/// the first two, times the looks.
fn judge(tables: &mut [Vec<Pair>], floor: f64, looks: u32) {
    let mut tables: Vec<&mut Vec<Pair>> =
        tables.iter_mut().filter(|pairs| !pairs.is_empty()).collect();
    let rows: Vec<Vec<f64>> = tables
        .iter()
        .map(|pairs| holm(&pairs.iter().map(|p| p.shift.p).collect::<Vec<f64>>()))
        .collect();
    let least = |row: &Vec<f64>| row.iter().copied().fold(1.0, f64::min);
    let over_all = benjamini_hochberg(&rows.iter().map(least).collect::<Vec<f64>>());
    let looks = f64::from(looks);
    for ((pairs, row), over_all) in tables.iter_mut().zip(&rows).zip(over_all) {
        // What the clearest cell's p is multiplied by where nothing else differs.
        let times = (pairs.len() * rows.len()) as f64 * looks;
        for (pair, p) in pairs.iter_mut().zip(row) {
            pair.p = (p.max(over_all) * looks).min(1.0);
            pair.verdict = verdict(&pair.shift, pair.p, times, floor);
        }
    }
}
