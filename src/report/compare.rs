//! Two labels compared with statistics instead of eyes: the unit is the run, never the op.

mod verdict;

use std::collections::HashMap;

use jiff::Timestamp;

use self::verdict::{Verdict, is_too_few, repeats_needed, verdict};
use super::baseline::{known, relate};
use super::gate::{quantity_shown, share};
use super::layout::{at_clients, below, codes, label, marked, noted, place_and_metric};
use super::number::number;
use super::page::{Page, Sheet, Value, both, filed, shown};
use super::table::{Cell, Column, Line, Table, among, missing, tables};
use super::{Doubt, Format, Metric, Options, caption, escape, notes, settings, write};
use crate::error::{Error, Result};
use crate::judge::{self, Weight};
use crate::stats::{self, Shift, benjamini_hochberg, holm};
use crate::summary::Summary;
use crate::terms::Quantity;

/// Labels whose failed ops differ by more are not the same, whatever the times of the others are.
const FAILED_MAX: f64 = 0.01;

/// A question for two labels.
#[derive(Debug, Clone)]
pub struct Question {
    pub base: String,
    pub new: String,
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
    pub format: Format,
}

/// A cell of both labels, or of one of them.
pub(super) struct Row {
    pub column: Column,
    /// The medians; none where a label has not measured.
    base: Option<f64>,
    new: Option<f64>,
    pub runs: (usize, usize),
    /// None where runs have no logarithm.
    pub ratio: Option<Ratio>,
    /// An open loop was told this number: it is corrected among its like only.
    asked_for: bool,
    verdict: Verdict,
    /// A line that says why: runs did not complete, or there is no ratio.
    what: Option<String>,
}

/// The distance of the runs of both labels.
pub(super) struct Ratio {
    /// The shift of the logarithms, turned so that more is better.
    pub shift: Shift,
    /// Runs were compared with those beside them.
    blocks: bool,
    /// Corrected within the workload, over all of them, and for the looks.
    pub p: f64,
    /// What the clearest p of a cell is multiplied by where no other cell differs.
    times: f64,
}

#[derive(Debug, Clone)]
pub struct Comparison {
    /// Ends with a line end.
    pub text: String,
    pub worse: Vec<String>,
    pub too_few: Vec<String>,
    /// So many of each label would be enough for them.
    pub repeats_needed: usize,
    /// Cells that no number of runs decides: one label has not measured them, runs did not complete,
    /// or there is no ratio.
    pub unknown: Vec<String>,
    /// Cells that may be better or worse by more than the floor.
    pub inconclusive: Vec<String>,
    /// Cells that more runs could decide.
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
        metric: question.metric,
        format: question.format,
        latest: question.latest,
        ..Options::default()
    };
    let all = tables(steps, &options)?;
    known(&all, "--base", &question.base)?;
    known(&all, "--new", &question.new)?;
    let labels = [question.base.as_str(), question.new.as_str()];
    let tables: Vec<Table> = all.iter().map(|table| noted(table.of_labels(&labels))).collect();
    if !question.force {
        tables.iter().try_for_each(comparable)?;
    }
    if tables.iter().all(|table| common(table).is_empty() && !crashed(table)) {
        let labels = labels.map(escape::line).join(" and ");
        let text = format!("{labels} have no workload and number of clients in common");
        return Err(Error::data(text).hint("loadgen report shows what each of them has"));
    }
    let mut judged = judged(&tables, question.floor, question.repeats_max)?;
    for (table, rows) in tables.iter().zip(&mut judged.rows) {
        rows.extend(absent(table, labels));
        rows.sort_by_key(|row| row.column);
        for row in rows.iter_mut().filter(|row| row.ratio.is_some()) {
            row.what = incomplete(table, row, question.floor);
            if row.what.is_some() && row.verdict != Verdict::Worse {
                row.verdict = Verdict::Incomplete;
            }
        }
    }
    Found { tables: &tables, judged: &judged, labels }.comparison(question)
}

/// Tells whether a label of both began something that did not complete.
fn crashed(table: &Table) -> bool {
    table.lines.len() == 2 && table.lines.iter().any(|line| !line.left_out.is_empty())
}

struct Found<'a> {
    tables: &'a [Table<'a>],
    judged: &'a Judged,
    labels: [&'a str; 2],
}

impl<'a> Found<'a> {
    fn rows(&self) -> impl Iterator<Item = (&'a Table<'a>, &'a Row)> {
        let all = self.tables.iter().zip(&self.judged.rows);
        all.flat_map(|(table, rows)| rows.iter().map(move |row| (table, row)))
    }

    /// Tells what rows without a ratio, or with one, have to say.
    fn said(&self, pick: impl Fn(&Row) -> bool) -> Vec<String> {
        self.rows().filter(|(_, row)| pick(row)).filter_map(|(_, row)| row.what.clone()).collect()
    }

    fn comparison(&self, question: &Question) -> Result<Comparison> {
        let pairs = || self.rows().filter(|(_, row)| row.ratio.is_some());
        let stopped = self.said(|row| row.verdict == Verdict::Stopped);
        let without = |row: &Row| row.ratio.is_none() && row.verdict != Verdict::Stopped;
        let mut unknown = self.said(without);
        let pages = self.pages(question);
        if let (true, Some(first)) = (pages.is_empty(), stopped.first().or(unknown.first())) {
            return Err(Error::data(first.clone()).hint("another --metric"));
        }
        unknown.extend(self.said(|row| row.ratio.is_some()));
        // What was asked for is no finding, and none is missed there, unless it is all there is.
        let all_asked_for = pairs().all(|(_, row)| row.asked_for);
        if all_asked_for && pairs().next().is_some() {
            unknown.push(ASKED_FOR.to_owned());
        }
        let found_out = || pairs().filter(|(_, row)| all_asked_for || !row.asked_for);
        let too_few = || found_out().filter(|(_, row)| row.verdict == Verdict::TooFew);
        let inconclusive = found_out().filter(|(_, row)| row.verdict == Verdict::Inconclusive);
        let worse = pairs().filter(|(_, row)| row.verdict == Verdict::Worse);
        let line = |(table, row): (&Table, &Row)| line(table, row);
        let times = too_few().filter_map(|(_, row)| Some(row.ratio.as_ref()?.times));
        let absent = self.rows().filter(|(_, row)| row.verdict == Verdict::NotMeasured);
        Ok(Comparison {
            worse: worse.map(line).chain(stopped).collect(),
            unknown,
            inconclusive: inconclusive.map(line).collect(),
            too_few: too_few().map(line).collect(),
            repeats_needed: repeats_needed(times.fold(1.0, f64::max)),
            open: found_out()
                .chain(absent)
                .filter_map(|(t, row)| doubt(t, row, self.labels))
                .collect(),
            text: write(&pages, "compare", question.format)?,
        })
    }

    /// Returns a table for each workload that has ratios, or a label that did not complete.
    fn pages(&self, question: &Question) -> Vec<Page> {
        let all = self.tables.iter().zip(&self.judged.rows);
        let (found, bare): (Vec<_>, Vec<_>) = all.partition(|(table, rows)| {
            rows.iter().any(|row| row.ratio.is_some()) || crashed(table)
        });
        let mut pages: Vec<Page> = found.iter().map(|(table, rows)| page(table, rows)).collect();
        say_once(&mut pages, found.last().map(|(table, _)| *table));
        if let Some(last) = pages.last_mut() {
            // Workloads without a table of their own.
            let bare = bare.iter().flat_map(|(_, rows)| *rows);
            last.below.extend(bare.filter_map(|row| row.what.clone()));
            let ratios =
                found.iter().flat_map(|(_, rows)| *rows).filter_map(|row| row.ratio.as_ref());
            last.below.push(method(ratios, question.floor, self.judged.looks));
        }
        pages
    }
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

/// Returns the cells that both labels have: the base's, and the new label's.
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

/// Tells how many runs of a cell did not complete, of each label that has such; or the ops that failed,
/// where those of one label did and the number does not show it.
fn incomplete(table: &Table, row: &Row, floor: f64) -> Option<String> {
    let column = &row.column;
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
            let share = quantity_shown(Quantity::ErrorShare, failed(line));
            format!("{share} of the ops of {} failed", escape::line(line.label))
        }));
    }
    (!labels.is_empty()).then(|| format!("{}: {}", place(table, column), labels.join(", ")))
}

/// Tells of which runs of a cell that both labels have there is no logarithm.
fn no_ratio(table: &Table, cells: [&Cell; 2], place: &str) -> Result<String> {
    let mut why = Vec::new();
    for (line, cell) in table.lines.iter().zip(cells) {
        let values = cell.steps.iter().map(|step| table.metric.value(step));
        let values: Vec<f64> = values.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        let none = values.iter().filter(|value| **value <= 0.0 || !value.is_finite()).count();
        if none > 0 {
            let name = table.metric.name();
            let had = match table.metric {
                Metric::Natural | Metric::Qps | Metric::Tps => format!("did 0 {name}"),
                _ => format!("had no {name} above 0"),
            };
            let label = escape::line(line.label);
            why.push(format!("{none} of {} runs of {label} {had}", values.len()));
        }
    }
    Ok(format!("{place}: {}", why.join(", ")))
}

/// Rows of what one of both labels has measured, or begun, and the other has not: no table may seem to
/// be all there is.
fn absent(table: &Table, labels: [&str; 2]) -> Vec<Row> {
    let of = |at: usize, column: &Column| {
        labels.map(|label| {
            let line = table.line(label);
            let cell = line.and_then(|line| line.cells[at].as_ref());
            (
                cell.map(|cell| cell.spread),
                line.map_or(0, |line| among(column, &line.left_out).len()),
            )
        })
    };
    let mut absent = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let found = of(at, column);
        // Columns that only other labels have are not asked for.
        let both = found.iter().all(|(spread, _)| spread.is_some());
        if both || found.iter().all(|(spread, lost)| spread.is_none() && *lost == 0) {
            continue;
        }
        let why = labels.iter().zip(&found).filter_map(|(label, (spread, lost))| {
            let label = escape::line(label);
            match (spread, lost) {
                (Some(_), _) => None,
                (None, 0) => Some(format!("not measured by {label}")),
                (None, lost) => Some(format!("none of {lost} runs of {label} completed")),
            }
        });
        let why: Vec<String> = why.collect();
        let [base, new] = found.map(|(spread, _)| spread);
        let runs = |spread: Option<stats::Spread>| spread.map_or(0, |spread| spread.n);
        absent.push(Row {
            column: *column,
            base: base.map(|spread| spread.median),
            new: new.map(|spread| spread.median),
            runs: (runs(base), runs(new)),
            ratio: None,
            asked_for: false,
            verdict: Verdict::NotMeasured,
            what: Some(format!("{}: {}", place(table, column), why.join(", "))),
        });
    }
    absent
}

fn place(table: &Table, column: &Column) -> String {
    format!("{} at {}", escape::line(table.workload), at_clients(column))
}

/// Returns a number that an open loop is told, not one that it finds.
pub(crate) fn is_asked_for(table: &Table, column: &Column) -> bool {
    column.rate.is_some() && matches!(table.metric, Metric::Natural | Metric::Qps | Metric::Tps)
}

/// Said where there is nothing but such numbers.
pub(crate) const ASKED_FOR: &str =
    "at a given rate QPS is what was asked for, not what was found: --metric p99";

/// The cells of some tables of two labels, with their verdicts.
pub(super) struct Judged {
    pub rows: Vec<Vec<Row>>,
    /// Looks that chance has, those that are planned among them.
    looks: u32,
}

pub(super) fn judged(tables: &[Table], floor: f64, repeats_max: u32) -> Result<Judged> {
    let looks = tables.iter().map(|table| looks(table, repeats_max)).max().unwrap_or(1);
    let mut judged = Judged { rows: Vec::new(), looks };
    for table in tables {
        let mut rows = Vec::new();
        for (column, one, other) in common(table) {
            let asked_for = is_asked_for(table, &column);
            let alike = |table: &&Table| {
                let cells = common(table).into_iter();
                cells.filter(|(column, ..)| is_asked_for(table, column) == asked_for).count()
            };
            let with_such = tables.iter().filter(|table| alike(table) > 0).count();
            let times = (alike(&table) * with_such) as f64 * f64::from(looks);
            let (a, b) = (logs(one, &table.metric)?, logs(other, &table.metric)?);
            let ratio = shift((one, &a), (other, &b), times);
            let ratio = ratio.map(|(shift, blocks)| Ratio { p: shift.p, shift, blocks, times });
            let (mut verdict, mut what) = (Verdict::NotShown, None);
            let mut runs = (a.len(), b.len());
            if ratio.is_none() {
                // The new label did nothing where the base did something.
                let fell = table.metric.higher_is_better() && !a.is_empty();
                verdict = if fell { Verdict::Stopped } else { Verdict::NoRatio };
                what = Some(no_ratio(table, [one, other], &place(table, &column))?);
                runs = (one.spread.n, other.spread.n);
            }
            let (base, new) = (Some(one.spread.median), Some(other.spread.median));
            rows.push(Row { column, base, new, runs, ratio, asked_for, verdict, what });
        }
        judged.rows.push(rows);
    }
    judge(&mut judged.rows, floor, looks);
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
fn judge(tables: &mut [Vec<Row>], floor: f64, looks: u32) {
    let looks = f64::from(looks);
    for asked_for in [false, true] {
        let mut alike: Vec<Vec<(&mut Ratio, &mut Verdict)>> = Vec::new();
        for rows in tables.iter_mut() {
            let rows = rows.iter_mut().filter(|row| row.asked_for == asked_for);
            let rows = rows.filter_map(|row| Some((row.ratio.as_mut()?, &mut row.verdict)));
            alike.extend(Some(rows.collect::<Vec<_>>()).filter(|rows| !rows.is_empty()));
        }
        let corrected: Vec<Vec<f64>> = alike
            .iter()
            .map(|rows| holm(&rows.iter().map(|(ratio, _)| ratio.shift.p).collect::<Vec<f64>>()))
            .collect();
        let least = |row: &Vec<f64>| row.iter().copied().fold(1.0, f64::min);
        let over_all = benjamini_hochberg(&corrected.iter().map(least).collect::<Vec<f64>>());
        for ((rows, corrected_row), over_all) in alike.into_iter().zip(&corrected).zip(over_all) {
            let times = (corrected_row.len() * corrected.len()) as f64 * looks;
            for ((ratio, found), p) in rows.into_iter().zip(corrected_row) {
                ratio.p = (p.max(over_all) * looks).min(1.0);
                ratio.times = times;
                *found = verdict(&ratio.shift, ratio.p, times, floor);
            }
        }
    }
}

/// One of all tables with its ratios to a label, and their intervals, without the columns whose
/// number was asked for; nothing where it has no such label.
pub(crate) fn related<'a>(
    table: &Table<'a>,
    all: &[Table],
    label: &str,
) -> Result<Option<Table<'a>>> {
    if !table.lines.iter().any(|line| line.label == label) {
        return Ok(None);
    }
    let mut tables = [table.clone()];
    relate(&mut tables, label)?;
    let [mut table] = tables;
    intervals(&mut table, all)?;
    let found: Vec<bool> =
        table.columns.iter().map(|column| !is_asked_for(&table, column)).collect();
    table.keep(&found);
    Ok(Some(table))
}

/// Fills in the 95 % intervals of the ratios of a table that relates to a baseline: each by itself,
/// from the same runs or blocks of runs as a comparison of the label with it over all tables.
fn intervals(table: &mut Table, all: &[Table]) -> Result<()> {
    let of_base = table.lines.iter().find(|line| Some(line.label) == table.baseline.as_deref());
    let Some(base) = of_base.cloned() else { return Ok(()) };
    for line in table.lines.iter_mut().filter(|line| line.label != base.label) {
        let labels = [base.label, line.label];
        let compared: Vec<Table> = all.iter().map(|table| table.of_labels(&labels)).collect();
        let rows = compared.iter().filter(|table| !common(table).is_empty()).count();
        let looks = compared.iter().map(|table| looks(table, 0)).max().unwrap_or(1);
        let both = line.cells.iter().zip(&base.cells);
        let cells = both.filter(|(one, other)| one.is_some() && other.is_some()).count();
        let times = (cells * rows) as f64 * f64::from(looks);
        for (cell, base) in line.cells.iter_mut().zip(&base.cells) {
            if let (Some(cell), Some(base)) = (cell, base) {
                cell.relative_interval = interval(base, cell, &table.metric, times)?;
            }
        }
    }
    Ok(())
}

/// The 95 % interval of the ratio of a cell to a base, higher being better, where p is multiplied
/// by so much; none where the runs are too few, or have no ratio.
pub(crate) fn interval(
    base: &Cell,
    cell: &Cell,
    metric: &Metric,
    times: f64,
) -> Result<Option<(f64, f64)>> {
    let (a, b) = (logs(base, metric)?, logs(cell, metric)?);
    let shift = shift((base, &a), (cell, &b), times);
    let interval = shift.and_then(|(shift, _)| shift.interval);
    Ok(interval.map(|(low, high)| (low.exp(), high.exp())))
}

fn logs(cell: &Cell, metric: &Metric) -> Result<Vec<f64>> {
    let mut logs = Vec::new();
    for step in &cell.steps {
        let Some(value) = metric.value(step)? else { continue };
        if value <= 0.0 || !value.is_finite() {
            return Ok(Vec::new());
        }
        logs.push(if metric.higher_is_better() { value.ln() } else { -value.ln() });
    }
    Ok(logs)
}

/// Tells how far the new runs lie above those of the base. Interleaved ones are compared in blocks,
/// where there are enough of them for p times so much to decide: a difference between two runs
/// beside each other does not hold what drifts over an hour.
pub(crate) fn shift(
    one: (&Cell, &[f64]),
    other: (&Cell, &[f64]),
    times: f64,
) -> Option<(Shift, bool)> {
    if let Some(differences) = blocks(one, other)
        && let Some(shift) = stats::pairs(&differences)
        && !is_too_few(&shift, times)
    {
        return Some((shift, true));
    }
    Some((stats::two_samples(one.1, other.1)?, false))
}

/// The differences of runs beside each other, where each repeat has one of both and ends before
/// the next begins.
fn blocks(one: (&Cell, &[f64]), other: (&Cell, &[f64])) -> Option<Vec<f64>> {
    let (a, b) = (&one.0.steps, &other.0.steps);
    if a.len() != b.len() || one.1.len() != a.len() || other.1.len() != b.len() {
        return None;
    }
    let at = |step: &Summary| step.started_at.parse::<Timestamp>().ok();
    let mut last: Option<Timestamp> = None;
    // The steps of a cell are sorted by time.
    for (a, b) in a.iter().zip(b) {
        if a.plan.repeat_index != b.plan.repeat_index {
            return None;
        }
        let (a, b) = (at(a)?, at(b)?);
        if last.is_some_and(|last| a.min(b) <= last) {
            return None;
        }
        last = Some(a.max(b));
    }
    Some(one.1.iter().zip(other.1).map(|(a, b)| b - a).collect())
}

fn found(ratio: &Ratio) -> String {
    let interval = Value::from(interval_text(&ratio.shift)).text();
    format!("{} ({interval}), p {}", number(ratio.shift.estimate.exp(), 3), p_text(ratio.p))
}

fn interval_text(shift: &Shift) -> Option<String> {
    let text =
        |(low, high): (f64, f64)| format!("{} to {}", number(low.exp(), 3), number(high.exp(), 3));
    shift.interval.map(text)
}

fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { number(p, 3) }
}

/// Tells whether a change is more than chance, as far as that is known.
pub(super) fn chance(what: &str, row: &Row) -> Option<String> {
    let ratio = row.ratio.as_ref()?;
    let (one, other) = row.runs;
    Some(match row.verdict {
        Verdict::TooFew if one.max(other) == 1 => {
            format!("one run each: whether {what} changed by more than chance is not known")
        }
        Verdict::TooFew => {
            format!(
                "{one} and {other} runs: too few to know whether {what} changed by more than chance"
            )
        }
        _ => format!("{what} new/base as `loadgen compare` has it: {}", found(ratio)),
    })
}

/// Returns a row with a ratio in one line, for a gate.
fn line(table: &Table, row: &Row) -> String {
    let why = match (&row.ratio, row.verdict) {
        (Some(ratio), verdict) if verdict != Verdict::TooFew => found(ratio),
        _ => format!("{} and {} repeats", row.runs.0, row.runs.1),
    };
    format!("{}: {} {why}", place(table, &row.column), table.metric.name())
}

/// Returns a cell that is not decided, or not measured by one of both.
fn doubt(table: &Table, row: &Row, of: [&str; 2]) -> Option<Doubt> {
    let shown = || of.map(label).into_iter().rev().collect::<Vec<String>>().join(" against ");
    let at = || format!("{} at {}", shown(), at_clients(&row.column));
    let why = match row.verdict {
        Verdict::TooFew => format!("{}: {}, {} and {}", at(), row.verdict, row.runs.0, row.runs.1),
        // More runs tell whether it matters, too.
        Verdict::NotShown
        | Verdict::Inconclusive
        | Verdict::SlightlyBetter
        | Verdict::SlightlyWorse => {
            format!("{}: {}, {}", at(), row.verdict, found(row.ratio.as_ref()?))
        }
        Verdict::Incomplete => format!("{}: {}", at(), row.what.clone()?),
        Verdict::NotMeasured => row.what.clone()?,
        Verdict::Better | Verdict::Worse | Verdict::Same | Verdict::NoRatio | Verdict::Stopped => {
            return None;
        }
    };
    Some(Doubt {
        workload: table.workload.to_owned(),
        labels: of.map(str::to_owned).into(),
        cell: row.column,
        why,
    })
}

fn page(table: &Table, rows: &[Row]) -> Page {
    let how = if table.metric.higher_is_better() { "new/base" } else { "base/new" };
    let asked_for = rows.iter().any(|row| row.asked_for && row.ratio.is_some());
    let mut lines: Vec<String> = asked_for.then(|| ASKED_FOR.to_owned()).into_iter().collect();
    for without in [true, false] {
        let rows = rows.iter().filter(|row| row.ratio.is_none() == without);
        lines.extend(rows.filter_map(|row| row.what.clone()));
    }
    lines.extend(below(table));
    let title = format!(
        "{}: {} of {} against {}, medians; ratio {how}: above 1 is better",
        escape::line(table.workload),
        table.metric.name(),
        label(table.lines[1].label),
        label(table.lines[0].label),
    );
    Page::of(title, sheet(table, rows, how), lines)
}

fn sheet(table: &Table, rows: &[Row], how: &str) -> Sheet {
    type Of<'a> = &'a Row;
    let values = rows.iter().flat_map(|row| [row.base, row.new]).flatten();
    let decimals = table.metric.decimals(values);
    let log = |of: fn(&Shift) -> Option<f64>| {
        move |row: &Of| row.ratio.as_ref().and_then(|r| of(&r.shift)).map(|log| (log.exp(), 3))
    };
    let p = |of: fn(&Ratio) -> f64| move |row: &Of| row.ratio.as_ref().map(of);
    let mut columns = vec![shown("clients", |row: &Of| row.column.to_string())];
    columns.extend(place_and_metric(table, |row: &Of| row.column));
    columns.extend([
        filed("base", |_: &Of| table.lines[0].label),
        filed("new", |_: &Of| table.lines[1].label),
        both(marked(table, 0), "base_value", move |row: &Of| row.base.map(|v| (v, decimals))),
        both(marked(table, 1), "new_value", move |row: &Of| row.new.map(|v| (v, decimals))),
        shown("runs", |row: &Of| match row.runs {
            (one, other) if one == other => one.to_string(),
            (one, other) => format!("{one}:{other}"),
        }),
        filed("base_runs", |row: &Of| row.runs.0),
        filed("new_runs", |row: &Of| row.runs.1),
        both(how, "ratio", log(|shift| Some(shift.estimate))),
        shown("95 % interval", |row: &Of| interval_text(&row.ratio.as_ref()?.shift)).left(),
        filed("ratio_low", log(|shift| shift.interval.map(|i| i.0))),
        filed("ratio_high", log(|shift| shift.interval.map(|i| i.1))),
        filed("p", p(|ratio| ratio.shift.p)),
        shown("p", |row: &Of| row.ratio.as_ref().map(|ratio| p_text(ratio.p))),
        filed("p_corrected", p(|ratio| ratio.p)),
        filed("in_blocks", |row: &Of| Value::Bool(row.ratio.as_ref().is_some_and(|r| r.blocks))),
        both("verdict", "verdict", |row: &Of| row.verdict.to_string()).left(),
        filed("notes", |row: &Of| codes(table, &[0, 1], &row.column)),
    ]);
    Sheet::of(columns, rows)
}

/// Tells what stands behind the numbers of all tables.
fn method<'p>(ratios: impl Iterator<Item = &'p Ratio>, floor: f64, looks: u32) -> String {
    let (in_blocks, alone): (Vec<&Ratio>, Vec<&Ratio>) = ratios.partition(|ratio| ratio.blocks);
    let blocks = match (in_blocks.is_empty(), alone.is_empty()) {
        (true, _) => "runs as independent samples (Mann-Whitney)",
        (false, true) => "interleaved runs in blocks (Wilcoxon signed ranks)",
        _ => "runs as samples (Mann-Whitney) or, where interleaved, in blocks (Wilcoxon)",
    };
    let looks = match looks {
        1 => String::new(),
        looks => format!(", times the {looks} looks of a comparison that goes on while undecided"),
    };
    format!(
        "ratio and interval: Hodges-Lehmann on logarithms; {blocks}; p corrected by Holm within the \
         workload and Benjamini-Hochberg over all{looks}; differences below {} % do not matter; intervals \
         are not corrected",
        number(floor * 100.0, usize::from(floor < 0.01))
    )
}
