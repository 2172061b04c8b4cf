//! A cell of two labels: their ratio, the verdict on it, and what lacks.

use std::collections::BTreeSet;

use super::doubt::Doubt;
use super::gate::quantity_in_words;
use super::metric::Metric;
use super::names::{at_clients, cell_named, label};
use super::question::{ComparedTables, Question};
use super::ratio::{
    Family, Pairs, Ratio, are_blocks, has_log, in_both, is_asked_for, is_too_few, p_text,
};
use super::table::{
    LabelRow, TableCell, WorkloadTable, among, is_comparable, missing, not_comparable,
};
use super::value::{number, small_number};
use crate::judge::thresholds::{ALPHA, FAILED_MAX};
use crate::stats::{Shift, benjamini_hochberg, holm};
use crate::summary::Summary;
use crate::terms::{Cell, Compared, Quantity, counted};

/// The least distance of a ratio from that of the medians at which a reader sees a contradiction.
const OPPOSITE_LEAST: f64 = 0.01;

pub(super) struct ComparedCell<'t, 's> {
    pub table: &'t WorkloadTable<'s>,
    pub labels: [&'t str; 2],
    pub column: Cell,
    pub cells: [Option<&'t TableCell<'s>>; 2],
    pub ratio: Option<Ratio>,
    pub verdict: Compared,
    /// Why there is no ratio, or why it shows nothing.
    pub lack: Option<String>,
}

impl ComparedCell<'_, '_> {
    pub(super) fn is_asked_for(&self) -> bool {
        is_asked_for(self.table, &self.column)
    }

    pub(super) fn has_stopped(&self) -> bool {
        let did = |cell: &TableCell| cell.values.iter().all(|value| has_log(*value));
        let lost = self.verdict == Compared::NoRatio && self.table.metric.higher_is_better();
        let [base, new] = self.cells.map(|cell| cell.is_some_and(did));
        lost && base && !new
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
        (!self.has_scarce_runs() && self.labels.into_iter().all(all_done)).then_some(lacking)
    }

    /// Returns the ratio of the medians, turned as its own is, where one is above 1 and the other below.
    pub(super) fn opposite(&self) -> Option<f64> {
        let (ratio, base, new) = (self.ratio.as_ref()?, self.median(0)?, self.median(1)?);
        let medians = if self.table.metric.higher_is_better() { new / base } else { base / new };
        let (one, other) = (ratio.known_estimate()? - 1.0, medians - 1.0);
        (one * other < 0.0 && (one - other).abs() >= OPPOSITE_LEAST).then_some(medians)
    }

    pub(super) fn explain_opposite(&self) -> Option<String> {
        let pairs = if self.ratio.as_ref()?.blocks {
            "of runs that were measured one after the other"
        } else {
            "of each run of one label and each run of the other"
        };
        let medians = small_number(self.opposite()?, 3);
        Some(self.at(&format!(
            "the ratio is the middle one of the ratios {pairs}; that of the two medians is {medians}"
        )))
    }

    /// Measured one after the other: a drift of the host looks like a difference.
    pub(super) fn is_apart(&self) -> bool {
        match self.cells {
            [Some(one), Some(other)] => one.spread.n > 1 && !are_blocks([one, other]),
            _ => false,
        }
    }

    pub(super) fn runs(&self) -> [usize; 2] {
        self.cells.map(|cell| cell.map_or(0, |cell| cell.spread.n))
    }

    pub(super) fn median(&self, of: usize) -> Option<f64> {
        self.cells[of].map(|cell| cell.spread.median)
    }

    /// Words why there is no ratio; or that runs of a label did not complete, or that ops of one label failed and the
    /// number does not show it.
    fn find_lack(&self, floor: f64) -> Option<String> {
        let (metric, both) = (self.table.metric, self.cells.iter().all(Option::is_some));
        let failed = self.cells.map(|cell| metric.failed_share(&cell?.steps().collect::<Vec<_>>()));
        let apart = (failed[0].unwrap_or(0.0) - failed[1].unwrap_or(0.0)).abs();
        let of_errors = [Metric::ERRORS, Metric::ERROR_SHARE].contains(&metric.split().1);
        let is_shown = metric.is_rate() || of_errors;
        let failing = both && !is_shown && apart > floor.max(FAILED_MAX);
        let is_comparable = self.verdict != Compared::NotComparable;
        let mut lacks = Vec::new();
        lacks.extend(metric.by_work().filter(|_| !is_comparable).map(not_comparable));
        for (at, named) in self.labels.iter().enumerate() {
            let left_out = self.table.line(named).map_or(&[][..], |line| &line.left_out);
            let (left_out, label) = (among(&self.column, left_out), label(named));
            let cell = self.cells[at];
            let steps: Vec<&Summary> = cell.iter().flat_map(|cell| cell.steps()).collect();
            let values = cell.map_or(&[][..], |cell| &cell.values);
            let [short, silent] = self.count_scarce_runs(self.labels[at]);
            let not_measured = cell.is_none() && left_out.is_empty() && short + silent == 0;
            lacks.extend(not_measured.then(|| format!("not measured by {label}")));
            let short_for = format!("too short for {}", self.table.metric_at(&self.column).name());
            for (runs, why) in [(short, &*short_for), (silent, "without an answer")] {
                let runs = (runs > 0).then(|| counted(runs, "run"));
                lacks.extend(runs.map(|runs| format!("{runs} of {label} {why}")));
            }
            let mut of_runs = |count: usize, of: usize, what: &str| {
                lacks
                    .extend((count > 0).then(|| format!("{count} of {of} runs of {label} {what}")));
            };
            let (missing, all) = missing(&steps, &left_out);
            of_runs(missing, all, "did not complete");
            let may_be_none = !metric.begins_at_zero();
            let is_none = |value: &&f64| may_be_none && both && is_comparable && !has_log(**value);
            let none = values.iter().filter(is_none).count();
            of_runs(none, values.len(), &format!("had no {} above 0", metric.name()));
            let share = quantity_in_words(Quantity::ErrorShare, failed[at].unwrap_or(0.0));
            lacks.extend(failing.then(|| format!("{share} of the ops of {label} failed")));
        }
        if lacks.is_empty() && both && is_comparable && self.ratio.is_none() {
            lacks.push("too far apart for a ratio".to_owned());
        }
        (!lacks.is_empty()).then(|| lacks.join(", "))
    }

    /// Counts the runs whose answers are too few for the percentile, and those without any.
    fn count_scarce_runs(&self, label: &str) -> [u64; 2] {
        let runs = self.table.line(label).map_or(&[][..], |line| &line.runs);
        let runs = runs.iter().filter(|run| run.cell() == self.column);
        let scarce = runs.filter_map(|run| self.table.metric.scarce(run.measured()?));
        let (silent, short): (Vec<_>, Vec<_>) = scarce.partition(|(_, answers)| *answers == 0);
        [short.len() as u64, silent.len() as u64]
    }

    pub(super) fn at(&self, text: &str) -> String {
        format!("{}: {text}", cell_named(self.table.workload, &self.column))
    }

    pub(super) fn lack_in_words(&self) -> Option<String> {
        self.lack.as_ref().map(|lack| self.at(lack))
    }

    /// Words the ratio with its interval and p; none without a ratio.
    pub(super) fn found(&self) -> Option<String> {
        let ([one, other], ratio) = (self.runs(), self.ratio.as_ref()?);
        if self.verdict == Compared::TooFew {
            return Some(format!("{one} and {other} runs are too few to tell a difference"));
        }
        let p = p_text(ratio.p);
        let Some(estimate) = ratio.known_estimate() else {
            return Some(format!("{}, p {p}", self.medians_in_words()?));
        };
        let interval = ratio.interval().unwrap_or_else(|| "-".to_owned());
        Some(format!("{} ({interval}), p {p}", small_number(estimate, 3)))
    }

    /// Words the two medians where one may be 0: `0 and 512 errors`, `failed ops 0.00 and 1.25 %`.
    pub(super) fn medians_in_words(&self) -> Option<String> {
        let (metric, medians) = (self.table.metric, [self.median(0)?, self.median(1)?]);
        let decimals = metric.decimals(medians);
        let [base, new] = medians.map(|median| number(median, decimals));
        let words = if metric == Metric::ERRORS {
            format!("{base} and {new} errors")
        } else {
            let unit = if metric.is_count() { "" } else { metric.unit().1 };
            format!("{} {base} and {new} {unit}", metric.name())
        };
        Some(words.trim_end().to_owned())
    }

    fn has_scarce_runs(&self) -> bool {
        self.labels.into_iter().any(|label| self.count_scarce_runs(label) != [0, 0])
    }

    /// Returns the doubt that more runs may end; where runs are too short more of them decide nothing.
    pub(super) fn doubt(&self) -> Option<Doubt> {
        use Compared::{Better, Incomplete, NoRatio, NotComparable, NotMeasured, Same, Worse};
        let why = match self.verdict {
            Better | Worse | Same | NoRatio | NotComparable => return None,
            NotMeasured if self.has_scarce_runs() => return None,
            Incomplete | NotMeasured => self.lack_in_words()?,
            found => {
                let ([base, new], at) = (self.labels.map(label), at_clients(&self.column));
                format!("{new} against {base} at {at}: {found}, {}", self.found()?)
            }
        };
        let labels = self.labels.map(str::to_owned).into();
        Some(Doubt { workload: self.table.workload.to_owned(), labels, cell: self.column, why })
    }
}

/// A cell that only one of both has measured, or begun, has a row, too: no table may seem to be all there is.
pub(super) fn rows<'t, 's>(
    contrasts: &'t ComparedTables<'_, 's>,
    of: &Question,
) -> Vec<Vec<ComparedCell<'t, 's>>> {
    let both = |table: &'t WorkloadTable<'s>| match table.lines.as_slice() {
        [base, new] => Some((table, [base, new])),
        _ => None,
    };
    let family = Family::new(contrasts.tables.iter().filter_map(both), of.repeats_max);
    let row =
        |table: &'t WorkloadTable<'s>, labels: [&'t str; 2], shared: &Pairs, column: &Cell| {
            let lines = labels.map(|label| table.line(label));
            let cells = lines.map(|line| line.and_then(|line| line.at(column)));
            let mut lost = lines.iter().flatten().flat_map(|line| &line.left_out);
            let any = cells.iter().any(Option::is_some) || lost.any(|step| step.cell() == *column);
            let (mut ratio, mut verdict) = (None, Compared::NotMeasured);
            if let [Some(one), Some(other)] = cells {
                let times = family.times(table, shared, column);
                ratio = Ratio::between_counts([one, other], table.metric, times);
                let is_comparable = is_comparable(table.metric, [one, other]);
                verdict = if is_comparable { Compared::NoRatio } else { Compared::NotComparable };
            }
            let column = *column;
            let mut row = ComparedCell { table, labels, column, cells, ratio, verdict, lack: None };
            row.lack = row.find_lack(of.floor);
            (any || row.has_scarce_runs()).then_some(row)
        };
    let of_table = |(table, labels): (&'t WorkloadTable<'s>, &[&'t str; 2])| {
        let shared = both(table).map_or_else(Vec::new, |(_, lines)| in_both(lines));
        // Columns that only other labels have are not asked for, and may be many.
        let here: BTreeSet<Cell> = table.lines.iter().flat_map(LabelRow::columns).collect();
        let columns = table.columns.iter().filter(|column| here.contains(column));
        columns.filter_map(|of| row(table, *labels, &shared, of)).collect()
    };
    let mut rows: Vec<Vec<ComparedCell>> =
        contrasts.tables.iter().zip(&contrasts.labels).map(of_table).collect();
    rows.retain(|rows| !rows.is_empty());
    judge(&mut rows, of.floor, family.looks);
    rows
}

/// Corrects: by Holm within a table, by Benjamini and Hochberg over the tables of all workloads, labels
/// and metrics, each with its clearest cell, by Bonferroni over the looks. A cell's corrected p is the
/// larger of the first two, times the looks. What was asked for does not make it harder to find the others.
fn judge(tables: &mut [Vec<ComparedCell>], floor: f64, looks: u32) {
    let looks = f64::from(looks);
    for asked_for in [false, true] {
        let is_such =
            |row: &&mut ComparedCell| row.ratio.is_some() && row.is_asked_for() == asked_for;
        let rows = tables.iter_mut().map(|rows| rows.iter_mut().filter(is_such).collect());
        let rows: Vec<Vec<&mut ComparedCell>> =
            rows.filter(|rows: &Vec<_>| !rows.is_empty()).collect();
        let p = |row: &&mut ComparedCell| row.ratio.as_ref().expect("filtered").shift.p;
        let within: Vec<Vec<f64>> =
            rows.iter().map(|rows| holm(&rows.iter().map(p).collect::<Vec<f64>>())).collect();
        let least = |row: &Vec<f64>| row.iter().copied().fold(1.0, f64::min);
        let over_all = benjamini_hochberg(&within.iter().map(least).collect::<Vec<f64>>());
        for ((rows, of_table), over_all) in rows.into_iter().zip(&within).zip(over_all) {
            for (row, p) in rows.into_iter().zip(of_table) {
                let ratio = row.ratio.as_mut().expect("filtered");
                ratio.p = (p.max(over_all) * looks).min(1.0);
                ratio.times = (of_table.len() * within.len()) as f64 * looks;
                row.verdict = judge_ratio(ratio, floor);
            }
        }
    }
}

/// Judges a ratio by the floor; where a run has 0 by p and the direction alone.
fn judge_ratio(ratio: &Ratio, floor: f64) -> Compared {
    let Ratio { shift, p, times, .. } = ratio;
    if !ratio.is_from_zero() {
        return verdict(shift, *p, *times, floor);
    }
    let is_open = *p > ALPHA;
    if is_open && is_too_few(shift, *times) {
        Compared::TooFew
    } else if is_open && shift.estimate == 0.0 {
        // Most runs have the same number.
        Compared::Same
    } else if is_open {
        Compared::Inconclusive
    } else if shift.estimate > 0.0 {
        Compared::Better
    } else {
        Compared::Worse
    }
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
    // The least p of n against n runs is 2 / C(2n, n).
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
    use crate::stats::{looks, next_look, pairs, two_samples};
    use crate::workload::random::{Stream, seed_of};

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

    /// Counts the simulated experiments with nothing to find that, looked at after 6, 12 and 24
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
