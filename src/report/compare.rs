//! Two labels compared with statistics instead of eyes: the unit is the run, never the op.

use std::collections::HashMap;
use std::fmt;

use jiff::Timestamp;

use super::gate::{quantity_shown, share};
use super::notes::{
    self, at_clients, both_values, codes, footing, label, marked, noted, push_new, some,
};
use super::page::{Page, Rows, Sheet, number};
use super::table::{Cell, Column, Line, Table, among, known, missing, tables};
use super::{Doubt, Format, Metric, Options, escape, write};
use crate::error::{Error, Result};
use crate::judge::{self, Weight};
use crate::stats::{self, Shift, benjamini_hochberg, holm};
use crate::summary::Summary;
use crate::terms::Quantity;

/// Labels whose failed ops differ by more are not the same, whatever the times of the others are.
const FAILED_MAX: f64 = 0.01;

pub(crate) const ASKED_FOR: &str =
    "at a given rate QPS is what was asked for, not what was found: --metric p99";

#[derive(Debug, Clone, Default)]
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
    pub latest: bool,
    pub format: Format,
}

#[derive(Debug, Clone)]
pub struct Comparison {
    pub text: String,
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

/// A cell of both labels, or of one of them.
pub(super) struct Row<'t, 's> {
    pub table: &'t Table<'s>,
    pub column: Column,
    pub cells: [Option<&'t Cell<'s>>; 2],
    pub runs: [usize; 2],
    pub ratio: Option<Ratio>,
    /// An open loop was told this number: it is corrected among its like only.
    asked_for: bool,
    verdict: Verdict,
    what: Option<String>,
}

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

pub(super) fn of_two<'a>(
    all: &[Table<'a>],
    flags: [&str; 2],
    labels: [&str; 2],
) -> Result<Vec<Table<'a>>> {
    flags.iter().zip(labels).try_for_each(|(flag, label)| known(all, flag, label))?;
    Ok(all.iter().map(|table| noted(table.of_labels(&labels))).collect())
}

pub(super) fn nothing_in_common(labels: [&str; 2], but: &str) -> Error {
    let labels = labels.map(escape::line).join(" and ");
    let text = format!("{labels} have no workload and number of clients in common{but}");
    Error::data(text).hint("loadgen report shows what each of them has")
}

pub(super) fn common<'t, 's>(table: &'t Table<'s>) -> Vec<(Column, [&'t Cell<'s>; 2])> {
    let [base, new] = table.lines.as_slice() else { return Vec::new() };
    let cells = base.cells.iter().zip(&new.cells);
    let both = table
        .columns
        .iter()
        .zip(cells)
        .filter_map(|(column, (one, other))| Some((*column, [one.as_ref()?, other.as_ref()?])));
    both.collect()
}

/// Compares the new label with the base, for every workload and number of clients that both have.
pub fn compare(steps: &[&Summary], question: &Question) -> Result<Comparison> {
    let (metric, latest) = (question.metric, question.latest);
    let all = tables(steps, &Options { metric, latest, ..Options::default() })?;
    let labels = [question.base.as_str(), question.new.as_str()];
    let tables = of_two(&all, ["--base", "--new"], labels)?;
    if !question.force {
        tables.iter().try_for_each(comparable)?;
    }
    if tables.iter().all(|table| common(table).is_empty() && !crashed(table)) {
        return Err(nothing_in_common(labels, ""));
    }
    let (mut rows, looks) = rows(&tables, labels, question.floor, question.repeats_max)?;
    for row in rows.iter_mut().filter(|row| row.ratio.is_some()) {
        row.what = row.incomplete(question.floor);
        if row.what.is_some() && row.verdict != Verdict::Worse {
            row.verdict = Verdict::Incomplete;
        }
    }
    let said = |pick: &dyn Fn(&Row) -> bool| -> Vec<String> {
        rows.iter().filter(|row| pick(row)).filter_map(|row| row.what.clone()).collect()
    };
    let stopped = said(&|row| row.verdict == Verdict::Stopped);
    let mut unknown = said(&|row| row.ratio.is_none() && row.verdict != Verdict::Stopped);
    let pages = pages(&rows, question.floor, looks);
    if pages.is_empty() {
        let why = stopped.first().or(unknown.first()).expect("a row without a ratio says why");
        return Err(Error::data(why).hint("another --metric"));
    }
    unknown.extend(said(&|row| row.ratio.is_some()));
    // What was asked for is no finding, and none is missed there, unless it is all there is.
    let pairs = || rows.iter().filter(|row| row.ratio.is_some());
    let all_asked_for = pairs().all(|row| row.asked_for);
    unknown.extend((all_asked_for && pairs().next().is_some()).then(|| ASKED_FOR.to_owned()));
    let found_out = || pairs().filter(|row| all_asked_for || !row.asked_for);
    let lines = |verdict| found_out().filter(move |row| row.verdict == verdict).map(Row::line);
    let too_few = found_out().filter(|row| row.verdict == Verdict::TooFew);
    let times = too_few.filter_map(|row| Some(row.ratio.as_ref()?.times)).fold(1.0, f64::max);
    let worse = pairs().filter(|row| row.verdict == Verdict::Worse).map(Row::line);
    let absent = rows.iter().filter(|row| row.verdict == Verdict::NotMeasured);
    Ok(Comparison {
        worse: worse.chain(stopped).collect(),
        unknown,
        inconclusive: lines(Verdict::Inconclusive).collect(),
        too_few: lines(Verdict::TooFew).collect(),
        repeats_needed: repeats_needed(times),
        open: found_out().chain(absent).filter_map(|row| row.doubt(labels)).collect(),
        text: write(&pages, "compare", question.format, None),
    })
}

fn crashed(table: &Table) -> bool {
    table.lines.len() == 2 && table.lines.iter().any(|line| !line.left_out.is_empty())
}

pub(super) fn comparable(table: &Table) -> Result<()> {
    for (column, cells) in common(table) {
        let [one, other] = cells.map(|cell| judge::by_knowledge(&cell.steps));
        let mut differing: Vec<String> = Vec::new();
        for (one, other) in one.iter().flat_map(|(a, _)| other.iter().map(move |(b, _)| (a, b))) {
            let found = judge::differences(one, other).into_iter();
            let found = found.filter(|d| d.weight == Weight::Operation);
            found.for_each(|d| push_new(&mut differing, both_values(&d)));
        }
        if differing.is_empty() {
            continue;
        }
        return Err(Error::data(format!(
            "{} at {}: {} and {} were not measured on the same: {}",
            escape::line(table.workload),
            at_clients(&column),
            escape::line(table.lines[0].label),
            escape::line(table.lines[1].label),
            some(differing, "; ")
        ))
        .hint("--force compares them all the same, and says so"));
    }
    Ok(())
}

pub(crate) fn is_asked_for(table: &Table, column: &Column) -> bool {
    column.is_open() && table.metric.is_rate()
}

/// Returns the cells of two labels with their verdicts, and the looks that chance has, those that are
/// planned among them. What one of both has measured, or begun, and the other has not, has a row, too:
/// no table may seem to be all there is.
pub(super) fn rows<'t, 's>(
    tables: &'t [Table<'s>],
    labels: [&str; 2],
    floor: f64,
    repeats_max: u32,
) -> Result<(Vec<Row<'t, 's>>, u32)> {
    let looks = tables.iter().map(|table| looks(table, repeats_max)).max().unwrap_or(1);
    let mut rows = Vec::new();
    for table in tables {
        for (at, column) in table.columns.iter().enumerate() {
            let lines = labels.map(|label| table.line(label));
            let cells = lines.map(|line| line.and_then(|line| line.cells[at].as_ref()));
            let asked_for = is_asked_for(table, column);
            let mut row = Row {
                table,
                column: *column,
                cells,
                runs: cells.map(|cell| cell.map_or(0, |cell| cell.spread.n)),
                ratio: None,
                asked_for,
                verdict: Verdict::NotMeasured,
                what: None,
            };
            if let [Some(one), Some(other)] = cells {
                let alike = |table: &Table| {
                    let cells = common(table).into_iter();
                    cells.filter(|(column, _)| is_asked_for(table, column) == asked_for).count()
                };
                let with_such = tables.iter().filter(|table| alike(table) > 0).count();
                let times = (alike(table) * with_such) as f64 * f64::from(looks);
                row.relate([one, other], times)?;
            } else {
                let lost =
                    lines.map(|line| line.map_or(0, |line| among(column, &line.left_out).len()));
                // Columns that only other labels have are not asked for.
                if cells.iter().all(Option::is_none) && lost == [0, 0] {
                    continue;
                }
                let why = (0..2).filter(|of| cells[*of].is_none()).map(|of| {
                    let label = escape::line(labels[of]);
                    match lost[of] {
                        0 => format!("not measured by {label}"),
                        lost => format!("none of {lost} runs of {label} completed"),
                    }
                });
                row.what = Some(row.at(&why.collect::<Vec<String>>()));
            }
            rows.push(row);
        }
    }
    judge(&mut rows, floor, looks);
    Ok((rows, looks))
}

/// Counts the looks at the cells of a table: where one run (or what continues it) has steps that were
/// planned with fewer repeats and steps that were planned with more, somebody looked and went on.
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
    common(table).iter().flat_map(|(_, cells)| cells.map(of_cell)).max().unwrap_or(1)
}

/// Corrects: by Holm within the row of a workload, by Benjamini and Hochberg over the workloads,
/// each with its clearest cell, by Bonferroni over the looks. A cell's corrected p is the larger of
/// the first two, times the looks. What was asked for does not make it harder to find the others.
fn judge(rows: &mut [Row], floor: f64, looks: u32) {
    let looks = f64::from(looks);
    for asked_for in [false, true] {
        let mut alike: Vec<Vec<(&mut Ratio, &mut Verdict)>> = Vec::new();
        for rows in rows.chunk_by_mut(|one, other| std::ptr::eq(one.table, other.table)) {
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

impl Row<'_, '_> {
    pub(super) fn median(&self, of: usize) -> Option<f64> {
        self.cells[of].map(|cell| cell.spread.median)
    }

    fn at(&self, said: &[String]) -> String {
        let workload = escape::line(self.table.workload);
        format!("{workload} at {}: {}", at_clients(&self.column), said.join(", "))
    }

    fn relate(&mut self, cells: [&Cell; 2], times: f64) -> Result<()> {
        let metric = &self.table.metric;
        let logs = [logs(cells[0], metric)?, logs(cells[1], metric)?];
        if let Some((shift, blocks)) = shift(cells, [&logs[0], &logs[1]], times) {
            self.runs = [logs[0].len(), logs[1].len()];
            self.ratio = Some(Ratio { p: shift.p, shift, blocks, times });
            return Ok(());
        }
        // The new label did nothing where the base did something.
        let fell = metric.higher_is_better() && !logs[0].is_empty();
        self.verdict = if fell { Verdict::Stopped } else { Verdict::NoRatio };
        let name = metric.name();
        let did = metric.is_rate();
        let had = if did { format!("did 0 {name}") } else { format!("had no {name} above 0") };
        let mut why = Vec::new();
        for (line, cell) in self.table.lines.iter().zip(cells) {
            let values = metric.values(&cell.steps)?;
            let none = values.iter().filter(|value| **value <= 0.0 || !value.is_finite()).count();
            let (label, of) = (escape::line(line.label), values.len());
            why.extend((none > 0).then(|| format!("{none} of {of} runs of {label} {had}")));
        }
        self.what = Some(self.at(&why));
        Ok(())
    }

    /// Tells how many runs of a cell did not complete, of each label that has such; or the ops that
    /// failed, where those of one label did and the number does not show it.
    fn incomplete(&self, floor: f64) -> Option<String> {
        let of_label = |line: &Line| {
            let left_out = among(&self.column, &line.left_out);
            let (missing, all) = missing(&among(&self.column, &line.steps), &left_out);
            let label = escape::line(line.label);
            (missing > 0).then(|| format!("{missing} of {all} runs of {label} did not complete"))
        };
        let lines = &self.table.lines;
        let mut said: Vec<String> = lines.iter().filter_map(of_label).collect();
        let failed = |line: &Line| share(&among(&self.column, &line.steps)).unwrap_or(0.0);
        let failed: Vec<f64> = lines.iter().map(failed).collect();
        let told = self.table.metric.is_rate() || self.table.metric == Metric::ERRORS;
        if !told && (failed[0] - failed[1]).abs() > floor.max(FAILED_MAX) {
            said.extend(lines.iter().zip(failed).map(|(line, failed)| {
                let share = quantity_shown(Quantity::ErrorShare, failed);
                format!("{share} of the ops of {} failed", escape::line(line.label))
            }));
        }
        (!said.is_empty()).then(|| self.at(&said))
    }

    fn line(&self) -> String {
        let why = match (&self.ratio, self.verdict) {
            (Some(ratio), verdict) if verdict != Verdict::TooFew => ratio.found(),
            _ => format!("{} and {} repeats", self.runs[0], self.runs[1]),
        };
        self.at(&[format!("{} {why}", self.table.metric.name())])
    }

    pub(super) fn chance(&self, what: &str) -> Option<String> {
        let ratio = self.ratio.as_ref()?;
        Some(match (self.verdict, self.runs) {
            (Verdict::TooFew, [0 | 1, 0 | 1]) => {
                format!("one run each: whether {what} changed by more than chance is not known")
            }
            (Verdict::TooFew, [one, other]) => format!(
                "{one} and {other} runs: too few to know whether {what} changed by more than chance"
            ),
            _ => format!("{what} new/base as `loadgen compare` has it: {}", ratio.found()),
        })
    }

    fn doubt(&self, of: [&str; 2]) -> Option<Doubt> {
        let why = match self.verdict {
            Verdict::TooFew => format!("{}, {} and {}", self.verdict, self.runs[0], self.runs[1]),
            // More runs tell whether it matters, too.
            Verdict::NotShown
            | Verdict::Inconclusive
            | Verdict::SlightlyBetter
            | Verdict::SlightlyWorse => {
                format!("{}, {}", self.verdict, self.ratio.as_ref()?.found())
            }
            Verdict::Incomplete | Verdict::NotMeasured => self.what.clone()?,
            _ => return None,
        };
        let [base, new] = of.map(label);
        let why = match self.verdict {
            Verdict::NotMeasured => why,
            _ => format!("{new} against {base} at {}: {why}", at_clients(&self.column)),
        };
        let labels = of.map(str::to_owned).into();
        Some(Doubt { workload: self.table.workload.to_owned(), labels, cell: self.column, why })
    }
}

impl Ratio {
    fn found(&self) -> String {
        let interval = self.interval().unwrap_or_else(|| "-".to_owned());
        let estimate = number(self.shift.estimate.exp(), 3);
        format!("{estimate} ({interval}), p {}", p_text(self.p))
    }

    fn interval(&self) -> Option<String> {
        let [low, high] = self.bounds()?.map(|bound| number(bound, 3));
        Some(format!("{low} to {high}"))
    }

    pub(super) fn bounds(&self) -> Option<[f64; 2]> {
        self.shift.interval.map(|(low, high)| [low.exp(), high.exp()])
    }
}

fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { number(p, 3) }
}

/// Returns one of all tables with its ratios to a label, and their intervals, without the columns
/// whose number was asked for; nothing where it has no such label.
pub(crate) fn related<'a>(
    table: &Table<'a>,
    all: &[Table],
    label: &str,
) -> Result<Option<Table<'a>>> {
    let Some(base) = table.line(label) else { return Ok(None) };
    let mut related = table.clone();
    related.relate(label);
    // Each by itself, from the same runs or blocks of runs as a comparison over all tables.
    for line in related.lines.iter_mut().filter(|line| line.label != label) {
        let labels = [label, line.label];
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
    related.keep(&|at| !is_asked_for(table, &table.columns[at]));
    Ok(Some(related))
}

/// Returns the 95 % interval of the ratio of a cell to a base, higher being better, where p is
/// multiplied by so much; none where the runs are too few, or have no ratio.
pub(crate) fn interval(
    base: &Cell,
    cell: &Cell,
    metric: &Metric,
    times: f64,
) -> Result<Option<(f64, f64)>> {
    let logs = [logs(base, metric)?, logs(cell, metric)?];
    let shift = shift([base, cell], [&logs[0], &logs[1]], times);
    let interval = shift.and_then(|(shift, _)| shift.interval);
    Ok(interval.map(|(low, high)| (low.exp(), high.exp())))
}

fn logs(cell: &Cell, metric: &Metric) -> Result<Vec<f64>> {
    let values = metric.values(&cell.steps)?;
    if values.iter().any(|value| *value <= 0.0 || !value.is_finite()) {
        return Ok(Vec::new());
    }
    let turn = if metric.higher_is_better() { 1.0 } else { -1.0 };
    Ok(values.into_iter().map(|value| value.ln() * turn).collect())
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
    let mut last: Option<Timestamp> = None;
    // The steps of a cell are sorted by time.
    one.steps.iter().zip(&other.steps).all(|(a, b)| {
        let (Some(first), Some(second)) = (at(a), at(b)) else { return false };
        let after = last.is_none_or(|last| first.min(second) > last);
        last = Some(first.max(second));
        after && a.plan.repeat_index == b.plan.repeat_index
    })
}

fn pages(rows: &[Row], floor: f64, looks: u32) -> Vec<Page> {
    let all = rows.chunk_by(|one, other| std::ptr::eq(one.table, other.table));
    let (found, bare): (Vec<&[Row]>, Vec<&[Row]>) =
        all.partition(|rows| rows.iter().any(|row| row.ratio.is_some()) || crashed(rows[0].table));
    let mut pages: Vec<Page> = found.iter().map(|rows| page(rows[0].table, rows)).collect();
    let Some((last, others)) = pages.split_last_mut() else { return pages };
    // Conditions that are those of all tables are left to the last.
    let mut shared = notes::below(found[found.len() - 1][0].table);
    shared.retain(|line| others.iter().all(|page| page.below.contains(line)));
    for page in others {
        page.below.retain(|line| !shared.contains(line));
    }
    // Workloads without a table of their own.
    last.below.extend(bare.iter().copied().flatten().filter_map(|row| row.what.clone()));
    let ratios = found.iter().copied().flatten().filter_map(|row| row.ratio.as_ref());
    last.below.push(method(ratios, floor, looks));
    pages
}

fn page(table: &Table, rows: &[Row]) -> Page {
    let how = if table.metric.higher_is_better() { "new/base" } else { "base/new" };
    let asked_for = rows.iter().any(|row| row.asked_for && row.ratio.is_some());
    let mut lines: Vec<String> = asked_for.then(|| ASKED_FOR.to_owned()).into_iter().collect();
    for without in [true, false] {
        let rows = rows.iter().filter(|row| row.ratio.is_none() == without);
        lines.extend(rows.filter_map(|row| row.what.clone()));
    }
    lines.extend(footing(table));
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
    let values = rows.iter().flat_map(|row| [row.median(0), row.median(1)]).flatten();
    let decimals = table.metric.decimals(values);
    let bound = |row: &Row, at: usize| Some((row.ratio.as_ref()?.bounds()?[at], 3));
    Rows::new(rows)
        .shown("clients", |row| row.column.to_string())
        .place_and_metric(table, |row| row.column)
        .filed("base", |_| table.lines[0].label)
        .filed("new", |_| table.lines[1].label)
        .both(marked(table, 0), "base_value", |row| row.median(0).map(|v| (v, decimals)))
        .both(marked(table, 1), "new_value", |row| row.median(1).map(|v| (v, decimals)))
        .shown("runs", |row| match row.runs {
            [one, other] if one == other => one.to_string(),
            [one, other] => format!("{one}:{other}"),
        })
        .filed("base_runs", |row| row.runs[0])
        .filed("new_runs", |row| row.runs[1])
        .both(how, "ratio", |row| row.ratio.as_ref().map(|r| (r.shift.estimate.exp(), 3)))
        .shown("95 % interval", |row| row.ratio.as_ref()?.interval())
        .left()
        .filed("ratio_low", |row| bound(row, 0))
        .filed("ratio_high", |row| bound(row, 1))
        .filed("p", |row| row.ratio.as_ref().map(|ratio| ratio.shift.p))
        .shown("p", |row| row.ratio.as_ref().map(|ratio| p_text(ratio.p)))
        .filed("p_corrected", |row| row.ratio.as_ref().map(|ratio| ratio.p))
        .filed("in_blocks", |row| row.ratio.as_ref().is_some_and(|ratio| ratio.blocks))
        .both("verdict", "verdict", |row| row.verdict.to_string())
        .left()
        .filed("notes", |row| codes(table, &[0, 1], &row.column))
        .sheet()
}

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

/// A finding may be false with this probability, after correction.
pub(super) const ALPHA: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not by chance, and by the floor or more.
    Better,
    Worse,
    /// Not by chance, but perhaps by less than the floor: the interval reaches beyond it.
    SlightlyBetter,
    SlightlyWorse,
    /// The interval lies within the floor: whatever differs does not matter.
    Same,
    /// Nothing that chance does not do; one side stays within the floor.
    NotShown,
    /// Likewise, and the interval is wider than the floor on both sides: anything may be.
    Inconclusive,
    /// Nothing is shown, and by so few runs not even the clearest difference could be where no
    /// other cell differs.
    TooFew,
    /// Runs did not complete: what is left of them shows nothing, unless it is worse.
    Incomplete,
    NoRatio,
    Stopped,
    NotMeasured,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::SlightlyBetter => "slightly better",
            Verdict::SlightlyWorse => "slightly worse",
            Verdict::Same => "same",
            Verdict::NotShown => "no difference shown",
            Verdict::Inconclusive => "inconclusive",
            Verdict::TooFew => "too few repeats",
            Verdict::Incomplete => "incomplete",
            Verdict::NoRatio | Verdict::Stopped => "no ratio",
            Verdict::NotMeasured => "not measured",
        })
    }
}

/// The verdict on a shift of logarithms whose corrected p this is. `times` is what the least p that
/// so few runs can have is multiplied by where no other cell differs.
pub(super) fn verdict(shift: &Shift, p: f64, times: f64, floor: f64) -> Verdict {
    let off = |log: f64| (log.exp() - 1.0).abs();
    let open = |(low, high): (f64, f64)| low.exp() - 1.0 < -floor && high.exp() - 1.0 > floor;
    let within = shift.interval.is_some_and(|(low, high)| off(low) < floor && off(high) < floor);
    let better = shift.estimate > 0.0;
    if p > ALPHA && is_too_few(shift, times) {
        Verdict::TooFew
    } else if within {
        Verdict::Same
    } else if p > ALPHA {
        if shift.interval.is_none_or(open) { Verdict::Inconclusive } else { Verdict::NotShown }
    } else if off(shift.estimate) >= floor {
        if better { Verdict::Better } else { Verdict::Worse }
    } else if better {
        Verdict::SlightlyBetter
    } else {
        Verdict::SlightlyWorse
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

    #[test]
    fn a_difference_that_may_matter_is_never_the_same() {
        use Verdict::{
            Better, Inconclusive, NotShown, Same, SlightlyBetter, SlightlyWorse, TooFew, Worse,
        };
        let of = |low: f64, estimate: f64, high: f64, p: f64| {
            let (interval, estimate) = (Some((low.ln(), high.ln())), estimate.ln());
            verdict(&Shift { estimate, interval, p, p_least: 0.002 }, p, 1.0, 0.02)
        };
        for (low, estimate, high, p, expected) in [
            (0.93, 0.95, 0.97, 0.01, Worse),
            (1.03, 1.05, 1.07, 0.01, Better),
            // Certain, and at most by the floor.
            (0.985, 0.99, 0.995, 0.01, Same),
            // Certain, and perhaps by more than the floor.
            (0.96, 0.985, 0.995, 0.01, SlightlyWorse),
            (1.005, 1.015, 1.03, 0.01, SlightlyBetter),
            // Perhaps by less than it: the estimate decides.
            (0.96, 0.975, 0.995, 0.01, Worse),
            (0.985, 1.0, 1.015, 0.7, Same),
            (0.97, 0.99, 1.01, 0.2, NotShown),
            (0.5, 0.7, 0.9, 0.06, NotShown),
            (0.99, 1.0, 1.05, 0.2, NotShown),
            (0.36, 0.99, 1.63, 0.8, Inconclusive),
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
                if matches!(verdict, Verdict::Better | Verdict::Worse) {
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
