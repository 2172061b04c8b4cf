//! The ratio of two labels over all pairs of their runs, and how many ratios its p is corrected over.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::metric::Metric;
use super::run::Run;
use super::table::{
    LabelRow, TableCell, WorkloadTable, is_comparable, merit, own_ratio, ratio, speed,
};
use super::value::{number, small_number};
use crate::judge::thresholds::ALPHA;
use crate::stats::{self, Shift};
use crate::summary::{Group, Summary};
use crate::terms::Cell;

/// The ratio of a label to a base: above 1 where it is better.
pub(crate) struct Ratio {
    estimate: f64,
    /// The shift of the logarithms, turned so that more is better.
    pub shift: Shift,
    /// Runs were compared with those beside them.
    pub(super) blocks: bool,
    /// Corrected within the workload, over all of them, and for the looks.
    pub p: f64,
    /// Multiplies the clearest p of a cell where no other cell differs.
    pub times: f64,
    /// A run has 0, for which another number stands in the shift.
    from_zero: bool,
}

impl Ratio {
    /// Relates a cell to a base, p being multiplied by so much; nothing where a run has no logarithm.
    pub(super) fn between(cells: [&TableCell; 2], metric: Metric, times: f64) -> Option<Ratio> {
        if !is_comparable(metric, cells) {
            return None;
        }
        let runs = cells.map(|cell| cell.values.as_slice());
        Ratio::of_values(cells, runs, metric, times)
    }

    /// Does the same where 0 is a usual number of the metric: only p is known where a run has 0.
    pub(super) fn between_counts(
        cells: [&TableCell; 2],
        metric: Metric,
        times: f64,
    ) -> Option<Ratio> {
        let runs = cells.map(|cell| cell.values.as_slice());
        let has_zero = metric.begins_at_zero() && runs.iter().any(|runs| runs.contains(&0.0));
        if !has_zero || !is_comparable(metric, cells) {
            return Ratio::between(cells, metric, times);
        }
        let lifted = above_zero(runs);
        let lifted = lifted.each_ref().map(Vec::as_slice);
        let ratio = Ratio::of_values(cells, lifted, metric, times)?;
        Some(Ratio { from_zero: true, ..ratio })
    }

    /// Returns true if a run has 0: then p and the direction alone are known.
    pub(super) fn is_from_zero(&self) -> bool {
        self.from_zero
    }

    pub(super) fn known_estimate(&self) -> Option<f64> {
        (!self.from_zero).then_some(self.estimate)
    }

    pub(super) fn log_interval(&self) -> Option<(f64, f64)> {
        self.shift.interval.filter(|_| !self.from_zero)
    }

    pub(super) fn of_values(
        cells: [&TableCell; 2],
        [base, new]: [&[f64]; 2],
        metric: Metric,
        times: f64,
    ) -> Option<Ratio> {
        let log = |value: &f64| has_log(*value).then(|| merit(&metric, value.ln()));
        let logs = |runs: &[f64]| runs.iter().map(log).collect::<Option<Vec<f64>>>();
        let (shift, blocks) = shift(cells, [&logs(base)?, &logs(new)?], times)?;
        let estimate = match (base, new) {
            // Without the rounding of logarithms: half of it is 0.5.
            ([one], [other]) => speed(&metric, *one, *other)?,
            _ => shift.estimate.exp(),
        };
        let ratio = Ratio { estimate, p: shift.p, shift, blocks, times, from_zero: false };
        has_log(estimate).then_some(ratio)
    }

    pub(super) fn estimate(&self) -> f64 {
        self.estimate
    }

    pub(super) fn interval(&self) -> Option<String> {
        let (low, high) = self.bounds()?;
        Some(format!("{} to {}", small_number(low, 3), small_number(high, 3)))
    }

    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        self.log_interval().map(|(low, high)| (low.exp(), high.exp()))
    }
}

/// Returns number / number of the base, also where less is better; none of totals of unequal work.
pub(super) fn number_over_base(pair: [&TableCell; 2], metric: Metric, times: f64) -> Option<f64> {
    let turned = Ratio::between(pair, metric, times).map(|ratio| ratio.estimate());
    let of_medians = || ratio(pair[1].spread.median, pair[0].spread.median);
    let own = turned.map(|turned| own_ratio(metric, turned)).or_else(of_medians);
    own.filter(|_| is_comparable(metric, pair))
}

/// Puts half of the least number above 0 of all runs in the place of each 0: it has a logarithm and ranks
/// below the others, so p is right. The ratio says nothing.
fn above_zero(runs: [&[f64]; 2]) -> [Vec<f64>; 2] {
    let numbers = runs.iter().flat_map(|runs| runs.iter().copied());
    let least = numbers.filter(|number| *number > 0.0).min_by(f64::total_cmp).unwrap_or(2.0);
    let lifted = |number: &f64| if *number == 0.0 { least / 2.0 } else { *number };
    runs.map(|runs| runs.iter().map(lifted).collect())
}

pub(super) fn has_log(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// The cells of two labels, by the columns that both have.
pub(super) type Pairs<'t, 's> = Vec<(Cell, [&'t TableCell<'s>; 2])>;

pub(super) fn common<'t, 's>(table: &'t WorkloadTable<'s>) -> Pairs<'t, 's> {
    let [base, new] = table.lines.as_slice() else { return Vec::new() };
    in_both([base, new])
}

pub(super) fn in_both<'t, 's>([one, other]: [&'t LabelRow<'s>; 2]) -> Pairs<'t, 's> {
    let both = one.cells.iter().filter_map(|(at, cell)| Some((*at, [cell, other.at(at)?])));
    both.collect()
}

/// Returns true if the column's number is a rate that was given: the sweep's, or the group's own.
pub(crate) fn is_asked_for(table: &WorkloadTable, column: &Cell) -> bool {
    let Some(name) = table.metric.split().0 else {
        return column.is_open() && table.metric.is_rate();
    };
    let is_paced = |group: &Group| group.name == name.as_str() && group.rate.is_some();
    let cells = table.lines.iter().filter_map(|line| line.at(column));
    let mut steps = cells.flat_map(TableCell::steps);
    table.metric.is_rate() && steps.any(|step| step.groups.iter().any(is_paced))
}

/// The ratios that are corrected together: all of a comparison, over workloads, new labels and metrics.
#[derive(Clone, Copy)]
pub(super) struct Family {
    /// Tables of two labels with a cell whose number was not asked for, and with one whose was.
    tables: [usize; 2],
    pub(super) looks: u32,
}

impl Family {
    pub(super) fn new<'t, 's: 't>(
        contrasts: impl Iterator<Item = (&'t WorkloadTable<'s>, [&'t LabelRow<'s>; 2])>,
        repeats_max: u32,
    ) -> Family {
        let mut family = Family { tables: [0, 0], looks: 1 };
        for (table, lines) in contrasts {
            let pairs = in_both(lines);
            for asked_for in [false, true] {
                let has = pairs.iter().any(|(of, _)| is_asked_for(table, of) == asked_for);
                family.tables[usize::from(asked_for)] += usize::from(has);
            }
            let cells = pairs.iter().flat_map(|(_, cells)| *cells);
            let looks = cells.map(|cell| count_looks(cell, repeats_max)).max();
            family.looks = family.looks.max(looks.unwrap_or(1));
        }
        family
    }

    /// The cells of its kind in its table, the tables with such, the looks: p is multiplied by that at most.
    pub(super) fn times(&self, table: &WorkloadTable, pairs: &Pairs, column: &Cell) -> f64 {
        let asked_for = is_asked_for(table, column);
        let alike = pairs.iter().filter(|(of, _)| is_asked_for(table, of) == asked_for).count();
        (alike * self.tables[usize::from(asked_for)]) as f64 * f64::from(self.looks)
    }
}

/// Counts the looks at a cell: where one run (or what continues it) has steps that were planned with
/// fewer repeats and steps that were planned with more, somebody looked and went on.
pub(super) fn count_looks(cell: &TableCell, repeats_max: u32) -> u32 {
    let mut planned: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for step in cell.steps() {
        planned.entry(&step.run_id).or_default().insert(step.plan.repeats);
    }
    let ends = planned.values().map(|all| all.first().zip(all.last()).expect("a step"));
    let looks = ends.map(|(least, most)| stats::looks(*least, repeats_max.max(*most)));
    // An imported run was looked at once.
    looks.max().unwrap_or(1)
}

/// The ratios of some tables, each as a comparison of all their labels with a base has it.
pub(crate) struct Ratios<'t, 's> {
    tables: &'t [WorkloadTable<'s>],
    lines: Vec<BTreeMap<&'s str, &'t LabelRow<'s>>>,
    /// By the base, as they were wanted.
    families: RefCell<BTreeMap<String, Family>>,
}

impl<'t, 's> Ratios<'t, 's> {
    pub(crate) fn new(tables: &'t [WorkloadTable<'s>]) -> Ratios<'t, 's> {
        let lines = |table: &'t WorkloadTable<'s>| {
            table.lines.iter().map(|line| (line.label, line)).collect()
        };
        let families = RefCell::default();
        Ratios { tables, lines: tables.iter().map(lines).collect(), families }
    }

    fn family(&self, base: &str) -> Family {
        if let Some(family) = self.families.borrow().get(base) {
            return *family;
        }
        let mut contrasts = Vec::new();
        for (table, lines) in self.tables.iter().zip(&self.lines) {
            let Some(one) = lines.get(base) else { continue };
            let others = table.lines.iter().filter(|line| line.label != base);
            contrasts.extend(others.map(|other| (table, [*one, other])));
        }
        let family = Family::new(contrasts.into_iter(), 0);
        self.families.borrow_mut().insert(base.to_owned(), family);
        family
    }

    fn pairs(&self, at: usize, labels: [&str; 2]) -> Pairs<'t, 's> {
        let [one, other] = labels.map(|label| self.lines[at].get(label).copied());
        one.zip(other).map_or_else(Vec::new, |(one, other)| in_both([one, other]))
    }

    /// Returns what decides whether runs of two labels are compared in blocks, for a column of a table.
    pub(crate) fn times(&self, at: usize, labels: [&str; 2], column: &Cell) -> f64 {
        self.family(labels[0]).times(&self.tables[at], &self.pairs(at, labels), column)
    }

    pub(crate) fn between(&self, at: usize, labels: [&str; 2]) -> BTreeMap<Cell, Ratio> {
        let (table, family) = (&self.tables[at], self.family(labels[0]));
        let pairs = self.pairs(at, labels);
        let ratio = |(column, cells): &(Cell, [&TableCell; 2])| {
            let times = family.times(table, &pairs, column);
            Some((*column, Ratio::between(*cells, table.metric, times)?))
        };
        pairs.iter().filter_map(ratio).collect()
    }

    /// Numbers without logarithms have the ratios of the medians.
    pub(crate) fn relate(&self, at: usize, table: &mut WorkloadTable, label: &str) {
        let Some(base) = self.lines[at].get(label) else { return };
        for line in &mut table.lines {
            let is_base = line.label == label;
            let ratios =
                if is_base { BTreeMap::new() } else { self.between(at, [label, line.label]) };
            for (column, cell) in &mut line.cells {
                let base = base.at(column);
                let base = base.filter(|base| is_comparable(table.metric, [base, cell]));
                let of_medians = || speed(&table.metric, base?.spread.median, cell.spread.median);
                cell.relative = ratios.get(column).map(Ratio::estimate).or_else(of_medians);
                cell.relative_interval = ratios.get(column).and_then(Ratio::bounds);
            }
        }
        table.baseline = Some(label.to_owned());
    }

    /// Without the columns whose number was asked for; none where the table has no such label.
    pub(crate) fn related(
        &self,
        at: usize,
        table: &WorkloadTable<'s>,
        base: &str,
    ) -> Option<WorkloadTable<'s>> {
        table.line(base)?;
        let mut related = table.clone();
        self.relate(at, &mut related, base);
        related.keep(|column| !is_asked_for(table, column));
        Some(related)
    }
}

/// Returns how far the new runs lie above those of the base. Interleaved ones are compared in blocks,
/// where there are enough of them for p times so much to decide: a difference between two runs
/// beside each other does not hold what drifts over an hour.
pub(crate) fn shift(
    cells: [&TableCell; 2],
    runs: [&[f64]; 2],
    times: f64,
) -> Option<(Shift, bool)> {
    let [one, other] = runs;
    let whole = cells.iter().zip(runs).all(|(cell, runs)| cell.runs.len() == runs.len());
    if whole && one.len() == other.len() && are_blocks(cells) {
        let differences: Vec<f64> = one.iter().zip(other).map(|(a, b)| b - a).collect();
        if let Some(shift) = stats::pairs(&differences).filter(|shift| !is_too_few(shift, times)) {
            return Some((shift, true));
        }
    }
    Some((stats::two_samples(one, other)?, false))
}

pub(super) fn are_blocks([one, other]: [&TableCell; 2]) -> bool {
    let at = |step: &Summary| step.started_at.parse::<Timestamp>().ok();
    let ends = |(a, b): (&Run, &Run)| {
        let (a, b) = (a.measured()?, b.measured()?);
        let (first, second) = (at(a)?, at(b)?);
        let same = a.plan.repeat_index == b.plan.repeat_index;
        same.then(|| (first.min(second), first.max(second)))
    };
    // The steps of a cell are sorted by time; imported runs are in no order.
    let blocks: Option<Vec<_>> = one.runs.iter().zip(&other.runs).map(ends).collect();
    blocks.is_some_and(|blocks| blocks.windows(2).all(|two| two[1].0 > two[0].1))
}

pub(super) fn is_too_few(shift: &Shift, times: f64) -> bool {
    shift.p_least * times > ALPHA
}

pub(super) fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { number(p, 3) }
}

/// Explains why a rate that was given decides nothing. A group beside has a latency of its own.
pub(crate) fn explain_asked_for(metric: Metric) -> String {
    let group = metric.split().0.map_or_else(String::new, |group| format!("{group}."));
    format!("at a given rate QPS is what was asked for, not what was found: --metric {group}p99")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_group_when_its_rate_was_given() {
        for (name, advice) in [("qps", "--metric p99"), ("writer.tps", "--metric writer.p99")] {
            let told = explain_asked_for(name.parse().expect(name));
            assert!(told.ends_with(advice), "{told}");
        }
    }
}
