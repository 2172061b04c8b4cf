//! Steps into cells, a table for each workload: clients across, one label a line; and the ratios to
//! one label, turned so that higher is always better.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Deref;

use jiff::Timestamp;

use super::escape::clip;
use super::notes::Footnotes;
use super::pool::{Pool, agree};
use super::{Metric, Options, imported};
use crate::error::{Error, Result};
use crate::judge::CONDITIONS;
use crate::judge::{self, Difference, Weight};
use crate::stats::{self, Spread};
use crate::summary::{Imported, Outcome, Reported, Summary};
pub(crate) use crate::terms::Cell as Column;
use crate::terms::named;

/// Said below a table in which a number has no ratio.
pub(crate) const NO_RATIO: &str = "no ratio where it would be a division by 0";
/// The same of numbers that are related to the first, which may lack one.
pub(crate) const OF_ZERO: &str = "- among the relative numbers: the first is 0 or was not measured";
/// Labels that an error lists, and the longest of them, characters.
const NAMED_MAX: usize = 20;
const LABEL_MAX: usize = 60;

#[derive(Debug, Clone)]
pub(crate) struct Cell<'a> {
    /// The metric of each step that has it.
    pub values: Vec<f64>,
    pub spread: Spread,
    /// Covers the median of such runs with 95 %; none where there are too few of them.
    pub interval: Option<(f64, f64)>,
    /// The ratio to the baseline, as [`super::compare::Ratios`] has it; none without one.
    pub relative: Option<f64>,
    /// The same for the ratio.
    pub relative_interval: Option<(f64, f64)>,
    /// The steps of the cell, by time; empty where it was imported.
    pub steps: Vec<&'a Summary>,
    /// The imported runs of the cell; empty where it was measured.
    pub imported: Vec<&'a Imported>,
}

impl Cell<'_> {
    /// Gives a condition of its runs by its name, and the server's version.
    pub(crate) fn condition(&self, name: &str) -> Option<String> {
        let known = || CONDITIONS.iter().find(|known| known.name == name);
        match self.steps.first() {
            Some(step) if name == "version" => Some(step.server.version.clone()),
            Some(step) => (known()?.value)(step),
            None => self.imported.iter().find_map(|run| run.condition(name)),
        }
    }

    /// Returns how well the median of repeats is known: half of its 95 % interval, and half of the range of
    /// the runs where there are too few for one.
    pub(crate) fn uncertainty(&self) -> Option<f64> {
        let range = || (self.spread.n > 1).then_some((self.spread.min, self.spread.max));
        self.interval.or_else(range).map(|(low, high)| (high - low) / 2.0)
    }

    pub(crate) fn started_at(&self) -> &str {
        let measured = self.steps.first().map(|step| step.started_at.as_str());
        measured.unwrap_or_else(|| self.imported[0].started_at.as_str())
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    pub label: &'a str,
    /// By their columns, no more room than there are: most lines have one.
    pub cells: Vec<(Column, Cell<'a>)>,
    pub steps: Vec<&'a Summary>,
    /// Steps that did not complete and fill no cell.
    pub left_out: Vec<&'a Summary>,
    /// What was imported, by time.
    pub imported: Vec<&'a Imported>,
    /// Invocations that clash, of which the newest is here; 1 that clashes with itself, of which the
    /// newest settings are here; 0 where none do.
    pub clashing: usize,
    /// What they differ in: a name, the value of one that is not here, and that of the newest.
    pub clashes: Vec<Difference>,
}

impl<'a> Line<'a> {
    pub(crate) fn cell(&self) -> Option<&Cell<'a>> {
        self.cells().next()
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell<'a>> {
        self.cells.iter().map(|(_, cell)| cell)
    }

    /// Returns its cell of a column.
    pub(crate) fn at(&self, column: &Column) -> Option<&Cell<'a>> {
        let at = self.cells.binary_search_by_key(column, |(column, _)| *column).ok()?;
        Some(&self.cells[at].1)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &'a Summary> {
        self.steps.iter().chain(&self.left_out).copied()
    }

    /// Tells whether it has anything that may fill a cell.
    pub(crate) fn is_shown(&self) -> bool {
        !self.steps.is_empty() || !self.imported.is_empty()
    }

    /// Returns its steps that count, by their columns.
    pub(crate) fn steps_by_column(&self) -> BTreeMap<Column, Vec<&'a Summary>> {
        let mut columns: BTreeMap<Column, Vec<&Summary>> = BTreeMap::new();
        for step in &self.steps {
            columns.entry(step.cell()).or_default().push(step);
        }
        columns
    }

    /// Returns what it has in each column, as a line of that column alone.
    pub(crate) fn by_column(&self) -> BTreeMap<Column, Line<'a>> {
        let mut lines: BTreeMap<Column, Line> = BTreeMap::new();
        let empty = || Line {
            label: self.label,
            cells: Vec::new(),
            steps: Vec::new(),
            left_out: Vec::new(),
            imported: Vec::new(),
            clashing: self.clashing,
            clashes: self.clashes.clone(),
        };
        for step in &self.steps {
            lines.entry(step.cell()).or_insert_with(empty).steps.push(step);
        }
        for step in &self.left_out {
            lines.entry(step.cell()).or_insert_with(empty).left_out.push(step);
        }
        for run in &self.imported {
            lines.entry(run.cell()).or_insert_with(empty).imported.push(run);
        }
        for (column, cell) in &self.cells {
            let line = lines.entry(*column).or_insert_with(empty);
            line.cells.push((*column, cell.clone()));
        }
        lines
    }

    /// Returns the columns of all its runs.
    fn columns(&self) -> impl Iterator<Item = Column> {
        self.all().map(Summary::cell).chain(self.imported.iter().map(|run| run.cell()))
    }

    /// Returns the beginning of its first run.
    fn start(&self) -> Option<Timestamp> {
        let imported = self.imported.iter().map(|run| imported_at(run).0);
        self.all().map(|step| in_time(step).0).chain(imported).min()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Table<'a> {
    pub workload: &'a str,
    /// The number in the cells; never [`Metric::Natural`].
    pub metric: Metric,
    pub columns: Vec<Column>,
    pub lines: Vec<Line<'a>>,
    pub notes: Footnotes,
    /// Cells show the ratio to this label.
    pub baseline: Option<String>,
}

/// A cell and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Item<'t, 's> {
    pub at: usize,
    pub line: &'t Line<'s>,
    pub column: Column,
    pub cell: &'t Cell<'s>,
}

impl<'a> Table<'a> {
    pub(crate) fn items(&self) -> impl Iterator<Item = Item<'_, 'a>> {
        self.lines.iter().enumerate().flat_map(|(at, line)| {
            line.cells.iter().map(move |(column, cell)| Item { at, line, column: *column, cell })
        })
    }

    /// Returns a table of each column, without the lines that were not measured there. One that was
    /// may have no number all the same, such as a percentile of too few ops.
    pub(crate) fn by_column(&self) -> Vec<Table<'a>> {
        let mut lines: BTreeMap<Column, Vec<Line>> = BTreeMap::new();
        for (column, line) in self.lines.iter().flat_map(Line::by_column) {
            if line.is_shown() {
                lines.entry(column).or_default().push(line);
            }
        }
        let table = |(column, lines): (Column, Vec<Line<'a>>)| Table {
            metric: self.metric_at(&column),
            columns: vec![column],
            lines,
            notes: Footnotes::default(),
            baseline: self.baseline.clone(),
            workload: self.workload,
        };
        lines.into_iter().map(table).collect()
    }

    pub(crate) fn keep(&mut self, kept: impl Fn(&Column) -> bool) {
        self.columns.retain(&kept);
        self.lines.iter_mut().for_each(|line| line.cells.retain(|(column, _)| kept(column)));
    }

    pub(crate) fn of_labels(&self, labels: &[&str]) -> Table<'a> {
        let lines = labels.iter().filter_map(|label| self.line(label).cloned()).collect();
        self.of_lines(lines)
    }

    /// Returns the table with other lines, which have no notes yet.
    pub(crate) fn of_lines(&self, lines: Vec<Line<'a>>) -> Table<'a> {
        let Table { workload, metric, .. } = *self;
        let (columns, baseline) = (self.columns.clone(), self.baseline.clone());
        Table { workload, metric, columns, lines, notes: Footnotes::default(), baseline }
    }

    pub(crate) fn metric_at(&self, column: &Column) -> Metric {
        self.metric.in_loop(column.is_open())
    }

    pub(crate) fn line(&self, label: &str) -> Option<&Line<'a>> {
        self.lines.iter().find(|line| line.label == label)
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell<'a>> {
        self.lines.iter().flat_map(Line::cells)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &'a Summary> {
        self.lines.iter().flat_map(Line::all)
    }

    /// Returns all its runs, measured and imported.
    pub(crate) fn runs(&self) -> Reported<'a> {
        let imported = self.lines.iter().flat_map(|line| line.imported.iter().copied()).collect();
        Reported { measured: self.all().collect(), imported }
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = f64> {
        self.cells().filter_map(|cell| self.number(cell))
    }

    pub(crate) fn number(&self, cell: &Cell) -> Option<f64> {
        if self.baseline.is_some() { cell.relative } else { Some(cell.spread.median) }
    }
}

pub(crate) fn among<'a>(column: &Column, steps: &[&'a Summary]) -> Vec<&'a Summary> {
    steps.iter().filter(|step| step.cell() == *column).copied().collect()
}

/// Makes the tables of all workloads, cells filled, without footnotes: workloads and labels by the
/// time of their first step, and what starts at the same instant by name.
pub(crate) fn tables<'a>(steps: &Reported<'a>, options: &Options) -> Result<Vec<Table<'a>>> {
    let Reported { mut measured, mut imported } = steps.clone();
    measured.sort_by_cached_key(|step| in_time(step));
    imported.sort_by_cached_key(|run| imported_at(run));
    let mut found: BTreeMap<&str, BTreeMap<&str, Reported>> = BTreeMap::new();
    for step in measured {
        let of_workload = found.entry(&step.workload.name).or_default();
        of_workload.entry(&step.label).or_default().measured.push(step);
    }
    for run in imported {
        found.entry(&run.workload).or_default().entry(&run.label).or_default().imported.push(run);
    }
    // As it was asked for, the others behind.
    let place = |label: &str| options.order.iter().position(|wanted| wanted == label);
    let first = Line::start;
    let of_workload = |(workload, labels): (&'a str, BTreeMap<&'a str, Reported<'a>>)| {
        let lines = labels.into_iter().map(|(label, steps)| line(label, steps, options));
        let mut lines: Vec<Line> = lines.collect::<Result<_>>()?;
        lines.sort_by_cached_key(|line| (place(line.label).unwrap_or(usize::MAX), first(line)));
        Ok((workload, lines))
    };
    let mut found: Vec<(&str, Vec<Line>)> =
        found.into_iter().map(of_workload).collect::<Result<_>>()?;
    found.sort_by_cached_key(|(_, lines)| lines.iter().map(first).min());
    found.into_iter().map(|(workload, lines)| table(workload, lines, &options.metric)).collect()
}

/// Sorts the steps of a label into those that count and the others.
fn line<'a>(label: &'a str, of: Reported<'a>, options: &Options) -> Result<Line<'a>> {
    let Reported { measured: mut steps, mut imported } = of;
    if let Some(newest) = imported.last().filter(|_| options.latest).map(|run| &run.import_id) {
        imported.retain(|run| run.import_id == *newest);
    }
    let cells = Vec::new();
    if steps.is_empty() {
        let (left_out, clashes) = (Vec::new(), Vec::new());
        return Ok(Line { label, cells, steps, left_out, imported, clashing: 0, clashes });
    }
    let all = steps.clone();
    let counts = |step: &&Summary| options.partial || step.outcome == Outcome::Completed;
    let newest = steps.iter().max_by_key(|step| in_time(step)).expect("a label has steps");
    let newest = newest.run_id.as_str();
    let lenient = !options.latest && !options.strict;
    let mut clashing = if lenient { clashing(&steps, newest, counts)? } else { 0 };
    if options.latest {
        // Also where nothing of it completed: then that is the result.
        steps.retain(|step| step.run_id == newest);
        if !options.strict {
            clashing = usize::from(keep_newest_settings(&mut steps, counts));
        }
    } else if clashing > 0 {
        let kept = agreeing(&steps, counts);
        steps.retain(|step| kept.contains(step.run_id.as_str()));
    }
    let clashes = if clashing > 0 { list_clashes(&all, &steps) } else { Vec::new() };
    let (steps, left_out) = steps.into_iter().partition(counts);
    Ok(Line { label, cells, steps, left_out, imported, clashing, clashes })
}

/// Lists what the steps that are not kept differ in from those of the same cell that are, each once.
fn list_clashes(all: &[&Summary], kept: &[&Summary]) -> Vec<Difference> {
    let is_kept: BTreeSet<*const Summary> = kept.iter().map(|step| &raw const **step).collect();
    let cells: BTreeMap<Column, &Summary> = kept.iter().map(|step| (step.cell(), *step)).collect();
    let dropped = all.iter().filter(|step| !is_kept.contains(&(&raw const ***step)));
    let pairs = dropped.filter_map(|step| Some((step, cells.get(&step.cell())?)));
    let mut found: Vec<Difference> = Vec::new();
    for difference in pairs.flat_map(|(one, newest)| judge::differences(one, newest)) {
        if difference.weight > Weight::Noted && !found.contains(&difference) {
            found.push(difference);
        }
    }
    found
}

/// Leaves of each cell of an invocation the steps that agree with its newest one; tells whether there are
/// others.
fn keep_newest_settings(steps: &mut Vec<&Summary>, counts: impl Fn(&&Summary) -> bool) -> bool {
    let mut cells: BTreeMap<Column, Pool> = BTreeMap::new();
    let before = steps.len();
    steps.reverse();
    steps.retain(|step| {
        !counts(step) || cells.entry(step.cell()).or_default().add(&[*step]).is_ok()
    });
    steps.reverse();
    steps.len() < before
}

/// Returns the invocations, from the newest on, that clash with no newer one of them.
fn agreeing<'a>(steps: &[&'a Summary], counts: impl Fn(&&Summary) -> bool) -> BTreeSet<&'a str> {
    let mut order: Vec<&str> = Vec::new();
    let mut runs: BTreeMap<&str, BTreeMap<Column, Vec<&Summary>>> = BTreeMap::new();
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
    let mut pools: BTreeMap<Column, Pool> = BTreeMap::new();
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    for run in order {
        let cells = &runs[run];
        let agrees = |(column, steps): (&Column, &Vec<_>)| {
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

/// Counts the invocations of a label where two of them have other settings in one cell; else 0. One that
/// clashes with itself is refused: its label does not tell what was measured.
fn clashing(steps: &[&Summary], newest: &str, counts: impl Fn(&&Summary) -> bool) -> Result<usize> {
    let invocations: BTreeSet<&str> = steps.iter().map(|step| step.run_id.as_str()).collect();
    if invocations.len() == 1 {
        return Ok(0);
    }
    let mut cells: BTreeMap<Column, BTreeMap<&str, Vec<&Summary>>> = BTreeMap::new();
    for step in steps.iter().filter(|step| counts(step)) {
        cells.entry(step.cell()).or_default().entry(&step.run_id).or_default().push(step);
    }
    for run in cells.values().flat_map(BTreeMap::values) {
        agree(run)?;
    }
    // What the newest one began and did not end has settings, too; a server that changed has several.
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

fn table<'a>(workload: &'a str, mut lines: Vec<Line<'a>>, metric: &Metric) -> Result<Table<'a>> {
    // A column that a run has begun is shown even where nothing in it completed.
    let columns: BTreeSet<Column> = lines.iter().flat_map(Line::columns).collect();
    let columns: Vec<Column> = columns.into_iter().collect();
    let imported = lines.iter().flat_map(|line| line.imported.iter().copied());
    let metric = metric.of(lines.iter().flat_map(|line| line.steps.iter().copied()), imported);
    for line in &mut lines {
        let columns = line.by_column();
        line.cells.reserve_exact(columns.len());
        for (column, Line { steps, imported, .. }) in columns {
            let cell = cell(steps, imported, &metric)?;
            line.cells.extend(cell.map(|cell| (column, cell)));
        }
    }
    Ok(Table { workload, metric, columns, lines, notes: Footnotes::default(), baseline: None })
}

pub(crate) fn cell<'a>(
    steps: Vec<&'a Summary>,
    runs: Vec<&'a Imported>,
    metric: &Metric,
) -> Result<Option<Cell<'a>>> {
    agree(&steps)?;
    imported::agree(&steps, &runs)?;
    let values = metric.values(&steps, &runs)?;
    let interval = stats::median_interval(&values);
    let (relative, relative_interval, spread) = (None, None, stats::spread(&values));
    let cell = |spread| Cell {
        values,
        spread,
        interval,
        relative,
        relative_interval,
        steps,
        imported: runs,
    };
    Ok(spread.map(cell))
}

/// Counts the runs of a cell that did not complete, and how many there are in all. One that was
/// measured again is not missed; one that was planned and never begun is. `counted` are those of
/// the cell, which also `--partial` makes no completed ones.
pub(crate) fn missing(counted: &[&Summary], left_out: &[&Summary]) -> (usize, usize) {
    // What is planned at first, begun and done; more repeats are given where they are needed only.
    type Run = (u32, BTreeSet<u32>, BTreeSet<u32>);
    let mut runs: BTreeMap<&str, Run> = BTreeMap::new();
    let mut done = 0;
    for step in counted.iter().chain(left_out) {
        // The repeats of a profile may be given by several invocations.
        let of = step.experiment.as_ref().map_or(&step.run_id, |experiment| &experiment.profile);
        let run = runs.entry(of).or_insert((u32::MAX, BTreeSet::new(), BTreeSet::new()));
        run.0 = run.0.min(step.plan.repeats);
        run.1.insert(step.plan.repeat_index);
        if step.outcome == Outcome::Completed {
            run.2.insert(step.plan.repeat_index);
            done += 1;
        }
    }
    let missed = |(planned, begun, ended): &Run| {
        let within = begun.iter().filter(|repeat| *repeat <= planned).count();
        (*planned as usize).saturating_sub(within) + begun.difference(ended).count()
    };
    let missing = runs.values().map(missed).sum();
    (missing, done + missing)
}

/// Returns the order of steps: by their beginning, what is no instant last.
pub(crate) fn in_time(step: &Summary) -> (Timestamp, &str) {
    (step.started_at.parse().unwrap_or(Timestamp::MAX), &step.step_id)
}

/// The same of imported runs: those of one file have one time.
pub(crate) fn imported_at(run: &Imported) -> (Timestamp, &str, u32) {
    let at = run.started_at.parse().unwrap_or(Timestamp::MAX);
    (at, &run.source.sha256, run.source.run)
}

/// Says why a total has no ratio; `instead` is what has one.
pub(crate) fn not_comparable(instead: &str) -> String {
    format!("a total has no ratio where the work is not the same (use --metric {instead})")
}

/// Tells whether a metric of two cells has a ratio: a total has none where the work is not the same.
pub(crate) fn is_comparable(metric: Metric, cells: [&Cell; 2]) -> bool {
    if metric.by_work().is_none() {
        return true;
    }
    let measured = cells.iter().flat_map(|cell| &cell.steps).map(|step| fixed_work(step));
    // What was imported does not tell what it was asked for.
    let imported = cells.iter().flat_map(|cell| &cell.imported).map(|run| Some(run.totals.ops));
    let amounts: Option<BTreeSet<u64>> = measured.chain(imported).collect();
    amounts.is_some_and(|amounts| amounts.len() == 1)
}

/// Returns the work of a step that did what it was asked for, in ops, or in rows of a load; none where
/// the time ended it.
fn fixed_work(step: &Summary) -> Option<u64> {
    let whole = step.plan.time_s.is_none() && step.outcome == Outcome::Completed;
    whole.then(|| step.plan.ops.unwrap_or(step.totals.rows))
}

/// Returns a number that is the higher, the better a value is.
pub(crate) fn merit(metric: &Metric, value: f64) -> f64 {
    if metric.higher_is_better() { value } else { -value }
}

pub(crate) fn speed(metric: &Metric, base: f64, value: f64) -> Option<f64> {
    if metric.higher_is_better() { ratio(value, base) } else { ratio(base, value) }
}

/// Returns a ratio; two zeros (no errors here, none there) are equal. There is none of a division
/// by 0.
pub(crate) fn ratio(over: f64, under: f64) -> Option<f64> {
    let ratio = if over == 0.0 && under == 0.0 { 1.0 } else { over / under };
    ratio.is_finite().then_some(ratio)
}

/// The labels of some tables, each once, in the order of their lines: a label's position decides its
/// colour, its marker and its dashes everywhere.
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

/// Turns a ratio that is above 1 where it is better into that of the numbers themselves.
pub(crate) fn own_ratio(metric: Metric, ratio: f64) -> f64 {
    if metric.higher_is_better() { ratio } else { 1.0 / ratio }
}

pub(crate) fn labels<'a>(tables: &[Table<'a>]) -> Labels<'a> {
    let mut labels = Labels::default();
    for line in tables.iter().flat_map(|table| &table.lines) {
        let next = labels.all.len();
        if *labels.positions.entry(line.label).or_insert(next) == next {
            labels.all.push(line.label);
        }
    }
    labels
}

/// Returns a label's position; they come from the same tables.
pub(crate) fn position(labels: &Labels, label: &str) -> usize {
    *labels.positions.get(label).expect("a label of these tables")
}

pub(crate) fn known(labels: &[&str], flag: &str, label: &str) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_1_when_both_values_are_zero() {
        let ratios = [ratio(0.0, 0.0), ratio(3.0, 2.0), ratio(3.0, 0.0), ratio(f64::NAN, 1.0)];
        let shown = |ratio: Option<f64>| ratio.map_or_else(|| "none".to_owned(), |r| r.to_string());
        assert_eq!(ratios.map(shown), ["1", "1.5", "none", "none"]);
    }
}
