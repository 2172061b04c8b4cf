//! What the runs of a cell come to, held against chance and against what matters.

use std::fmt;

use crate::stats::Shift;

/// A finding may be false with this probability, after correction.
pub(super) const ALPHA: f64 = 0.05;

/// An answer of the runs of one cell.
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
    /// Runs have no logarithm.
    NoRatio,
    /// Likewise, because the new label did nothing where the base did something.
    Stopped,
    /// One of both labels has nothing.
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

/// Tells whether not even the clearest difference could be a finding by itself.
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
    use crate::stats::{looks, next_look, pairs, two_samples};
    use crate::workload::random::{Stream, seed_of};

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
