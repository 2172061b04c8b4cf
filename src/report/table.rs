//! Tables: one a workload, clients across, one label a row.

use std::collections::{BTreeMap, BTreeSet};

use super::distinct::push_new;
use super::metric::Metric;
use super::note::Footnotes;
use super::run::{Run, Runs, by_knowledge, differences, steps_among};
use crate::judge::Difference;
use crate::stats::Spread;
use crate::summary::{Outcome, Summary};
use crate::terms::Cell;

/// Stands below a table in which a number has no ratio.
pub(crate) const NO_RATIO: &str = "no ratio where it would be a division by 0";
/// Stands below numbers that are related to a base, which may lack one.
pub(crate) const OF_ZERO: &str = "- among the relative numbers: the base is 0 or was not measured";

#[derive(Debug, Clone)]
pub(crate) struct TableCell<'a> {
    pub values: Vec<f64>,
    pub spread: Spread,
    /// Covers the median of such runs with 95 %; none where there are too few of them.
    pub interval: Option<(f64, f64)>,
    /// The ratio to the baseline, as [`super::ratio::Ratios`] has it; none without one.
    pub relative: Option<f64>,
    pub relative_interval: Option<(f64, f64)>,
    /// Steps by time, or imported runs: never both.
    pub runs: Vec<Run<'a>>,
}

impl<'a> TableCell<'a> {
    pub(crate) fn steps(&self) -> impl Iterator<Item = &'a Summary> + Clone {
        steps_among(&self.runs)
    }

    pub(crate) fn is_imported(&self) -> bool {
        self.runs.iter().any(|run| run.imported().is_some())
    }

    /// Returns a condition of the first step, or of the first imported run that knows it.
    pub(crate) fn condition(&self, name: &str) -> Option<String> {
        let runs = if self.is_imported() { &self.runs[..] } else { &self.runs[..1] };
        runs.iter().find_map(|run| run.condition(name))
    }

    pub(crate) fn differences(&self, second: &TableCell) -> Vec<Difference> {
        let [ours, theirs] = [&self.runs, &second.runs].map(|runs| by_knowledge(runs));
        let pairs = ours.iter().flat_map(|first| theirs.iter().map(move |second| (first, second)));
        let mut found = Vec::new();
        for difference in pairs.flat_map(|(first, second)| differences(*first, *second)) {
            push_new(&mut found, difference);
        }
        found
    }

    /// The 95 % interval of the median of repeats; the range of the runs where there are too few for one.
    pub(crate) fn bounds(&self) -> Option<(f64, f64)> {
        let range = || (self.spread.n > 1).then_some((self.spread.min, self.spread.max));
        self.interval.or_else(range)
    }

    /// Returns half of these bounds; none if it would reach below zero, where no such value is.
    pub(crate) fn uncertainty(&self) -> Option<f64> {
        let (low, high) = self.bounds()?;
        let half = (high - low) / 2.0;
        (half <= self.spread.median || low < 0.0).then_some(half)
    }

    /// Words how well the median is known: `±88`; both bounds where half of them is more than it.
    pub(crate) fn uncertainty_in_words(&self, metric: Metric, decimals: usize) -> Option<String> {
        let shown = |value| metric.page_value(value, decimals).shown;
        let (low, high) = self.bounds()?;
        let whole = || format!("[{}–{}]", shown(low), shown(high));
        Some(self.uncertainty().map_or_else(whole, |half| format!("±{}", shown(half))))
    }

    pub(crate) fn started_at(&self) -> &str {
        self.runs[0].started_at()
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct LabelRow<'a> {
    pub label: &'a str,
    /// By their columns, no more room than there are: most lines have one.
    pub cells: Vec<(Cell, TableCell<'a>)>,
    /// Runs that may fill a cell: steps by time, then imported ones by time.
    pub runs: Vec<Run<'a>>,
    /// Steps that did not complete and fill no cell.
    pub left_out: Vec<&'a Summary>,
    /// Tries that a later one replaced.
    pub replaced: Vec<&'a Summary>,
    /// Invocations that clash, of which the newest is here; 1 that clashes with itself, of which the
    /// newest settings are here; 0 where none do.
    pub clashing: usize,
    /// Their differences: a name, the value of one that is not here, and that of the newest.
    pub clashes: Vec<Difference>,
}

impl<'a> LabelRow<'a> {
    pub(crate) fn cell(&self) -> Option<&TableCell<'a>> {
        self.cells().next()
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = &TableCell<'a>> {
        self.cells.iter().map(|(_, cell)| cell)
    }

    pub(crate) fn at(&self, column: &Cell) -> Option<&TableCell<'a>> {
        let at = self.cells.binary_search_by_key(column, |(column, _)| *column).ok()?;
        Some(&self.cells[at].1)
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &'a Summary> + Clone {
        steps_among(&self.runs)
    }

    pub(crate) fn all_steps(&self) -> impl Iterator<Item = &'a Summary> {
        self.steps().chain(self.left_out.iter().copied())
    }

    fn all_runs(&self) -> impl Iterator<Item = Run<'a>> {
        let others = self.left_out.iter().chain(&self.replaced).copied();
        self.runs.iter().copied().chain(others.map(Run::Measured))
    }

    pub(crate) fn steps_by_column(&self) -> BTreeMap<Cell, Vec<&'a Summary>> {
        let mut columns: BTreeMap<Cell, Vec<&Summary>> = BTreeMap::new();
        for step in self.steps() {
            columns.entry(step.cell()).or_default().push(step);
        }
        columns
    }

    /// Returns what it has in each column, as a line of that column alone.
    pub(crate) fn by_column(&self) -> BTreeMap<Cell, LabelRow<'a>> {
        let mut lines: BTreeMap<Cell, LabelRow> = BTreeMap::new();
        let empty = || LabelRow {
            label: self.label,
            clashing: self.clashing,
            clashes: self.clashes.clone(),
            ..LabelRow::default()
        };
        for run in &self.runs {
            lines.entry(run.cell()).or_insert_with(empty).runs.push(*run);
        }
        for step in &self.left_out {
            lines.entry(step.cell()).or_insert_with(empty).left_out.push(step);
        }
        for step in &self.replaced {
            lines.entry(step.cell()).or_insert_with(empty).replaced.push(step);
        }
        for (column, cell) in &self.cells {
            lines.entry(*column).or_insert_with(empty).cells.push((*column, cell.clone()));
        }
        lines
    }

    fn has_begun(&self) -> bool {
        !self.runs.is_empty() || !self.left_out.is_empty()
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = Cell> {
        self.all_runs().map(Run::cell)
    }

    pub(crate) fn start(&self) -> Option<jiff::Timestamp> {
        self.all_runs().map(|run| run.sort_key().0).min()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct WorkloadTable<'a> {
    pub workload: &'a str,
    /// The number in the cells; never [`Metric::Natural`].
    pub metric: Metric,
    pub columns: Vec<Cell>,
    pub lines: Vec<LabelRow<'a>>,
    pub notes: Footnotes,
    pub baseline: Option<String>,
    /// The label with which notes compare the others; without one the first.
    pub reference: Option<String>,
}

#[derive(Clone, Copy)]
pub(crate) struct Item<'t, 's> {
    pub at: usize,
    pub line: &'t LabelRow<'s>,
    pub column: Cell,
    pub cell: &'t TableCell<'s>,
}

impl<'a> WorkloadTable<'a> {
    pub(crate) fn items(&self) -> impl Iterator<Item = Item<'_, 'a>> {
        self.lines.iter().enumerate().flat_map(|(at, line)| {
            line.cells.iter().map(move |(column, cell)| Item { at, line, column: *column, cell })
        })
    }

    pub(crate) fn has_runs(&self) -> bool {
        self.first_with_runs().is_some()
    }

    pub(crate) fn first_with_runs(&self) -> Option<usize> {
        self.lines.iter().position(|line| !line.runs.is_empty())
    }

    /// Without the lines not measured there. One that was may have no number, such as a percentile of too few ops,
    /// or have no step that completed.
    pub(crate) fn by_column(&self) -> Vec<WorkloadTable<'a>> {
        let mut lines: BTreeMap<Cell, Vec<LabelRow>> = BTreeMap::new();
        for (column, line) in self.lines.iter().flat_map(LabelRow::by_column) {
            if line.has_begun() {
                lines.entry(column).or_default().push(line);
            }
        }
        let table = |(column, lines): (Cell, Vec<LabelRow<'a>>)| WorkloadTable {
            metric: self.metric_at(&column),
            columns: vec![column],
            ..self.of_lines(lines)
        };
        lines.into_iter().map(table).collect()
    }

    pub(crate) fn keep(&mut self, kept: impl Fn(&Cell) -> bool) {
        self.columns.retain(&kept);
        self.lines.iter_mut().for_each(|line| line.cells.retain(|(column, _)| kept(column)));
    }

    pub(crate) fn of_labels(&self, labels: &[&str]) -> WorkloadTable<'a> {
        let lines = labels.iter().filter_map(|label| self.line(label).cloned()).collect();
        self.of_lines(lines)
    }

    pub(crate) fn of_lines(&self, lines: Vec<LabelRow<'a>>) -> WorkloadTable<'a> {
        let WorkloadTable { workload, metric, .. } = *self;
        let (columns, notes) = (self.columns.clone(), Footnotes::default());
        let (baseline, reference) = (self.baseline.clone(), self.reference.clone());
        WorkloadTable { workload, metric, columns, lines, notes, baseline, reference }
    }

    pub(crate) fn metric_at(&self, column: &Cell) -> Metric {
        self.metric.in_loop(column.is_open())
    }

    pub(crate) fn line(&self, label: &str) -> Option<&LabelRow<'a>> {
        self.lines.iter().find(|line| line.label == label)
    }

    /// The line that the caption describes: the reference's if it has what it takes, else the first that has.
    pub(crate) fn reference_line(&self, has: fn(&LabelRow) -> bool) -> Option<&LabelRow<'a>> {
        let wanted = self.reference.iter().filter_map(|label| self.line(label));
        wanted.chain(&self.lines).find(|line| has(line))
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = &TableCell<'a>> {
        self.lines.iter().flat_map(LabelRow::cells)
    }

    pub(crate) fn all_steps(&self) -> impl Iterator<Item = &'a Summary> {
        self.lines.iter().flat_map(LabelRow::all_steps)
    }

    /// Lists all steps with the places of their lines, those of a line by time.
    pub(crate) fn steps_of_lines(&self) -> Vec<(usize, &'a Summary)> {
        let lines = self.lines.iter().enumerate();
        let steps = lines.flat_map(|(at, line)| line.all_steps().map(move |step| (at, step)));
        let mut steps: Vec<(usize, &Summary)> = steps.collect();
        steps.sort_by_cached_key(|(at, step)| (*at, Run::Measured(step).sort_key()));
        steps
    }

    pub(crate) fn runs(&self) -> Runs<'a> {
        self.lines.iter().flat_map(LabelRow::all_runs).collect()
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = f64> {
        self.cells().filter_map(|cell| self.number(cell))
    }

    pub(crate) fn number(&self, cell: &TableCell) -> Option<f64> {
        if self.baseline.is_some() { cell.relative } else { Some(cell.spread.median) }
    }
}

pub(crate) fn among<'a>(column: &Cell, steps: &[&'a Summary]) -> Vec<&'a Summary> {
    steps.iter().filter(|step| step.cell() == *column).copied().collect()
}

/// Counts the runs of a cell that did not complete, and how many there are in all. One that was
/// measured again is not missed; one that was planned and never begun is. `counted` are those of
/// the cell, which also `--partial` makes no completed ones.
pub(crate) fn missing(counted: &[&Summary], left_out: &[&Summary]) -> (usize, usize) {
    // Repeats planned at first, begun and done; more are given only where they are needed.
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

pub(crate) fn not_comparable(instead: Metric) -> String {
    format!("a total has no ratio where the work is not the same (use --metric {instead})")
}

/// Returns true if a metric of two cells has a ratio: a total has none where the work is not the same.
pub(crate) fn is_comparable(metric: Metric, cells: [&TableCell; 2]) -> bool {
    if metric.by_work().is_none() {
        return true;
    }
    // The work of a group beside ends with the measured clients' own.
    let runs = cells.iter().flat_map(|cell| &cell.runs).filter(|_| metric.split().0.is_none());
    let amounts: Option<BTreeSet<u64>> = runs.map(|run| run.fixed_work()).collect();
    amounts.is_some_and(|amounts| amounts.len() == 1)
}

pub(crate) fn merit(metric: &Metric, value: f64) -> f64 {
    if metric.higher_is_better() { value } else { -value }
}

pub(crate) fn speed(metric: &Metric, base: f64, value: f64) -> Option<f64> {
    if metric.higher_is_better() { ratio(value, base) } else { ratio(base, value) }
}

/// Returns a ratio; two zeros (no errors here, none there) are equal. There is none of a division by 0.
pub(crate) fn ratio(over: f64, under: f64) -> Option<f64> {
    let ratio = if over == 0.0 && under == 0.0 { 1.0 } else { over / under };
    ratio.is_finite().then_some(ratio)
}

/// Turns a ratio that is above 1 where it is better into that of the numbers themselves.
pub(crate) fn own_ratio(metric: Metric, ratio: f64) -> f64 {
    if metric.higher_is_better() { ratio } else { 1.0 / ratio }
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
