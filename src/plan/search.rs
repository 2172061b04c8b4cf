//! The search for the highest rate at which a service level holds. Pure: it gets answers, and returns rates.
//!
//! It doubles the rate until the level fails (or halves it if it fails at once), then takes the geometric middle
//! of both edges until they are near enough, then measures both again. Of contrary answers the majority counts.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use super::value::RATE_MAX;
use crate::stats::enough;
use crate::terms::{Gate, Property, Quantity, Rate};

pub(crate) const STEPS_MAX: usize = 30;
/// Lowest rate of a search, ops a second.
const RATE_MIN: f64 = 0.01;
const DIGITS: i32 = 4;
/// Share of the expected arrivals: fewer may come by chance.
const LUCK: f64 = 0.9;

/// Counts the operations that the percentiles of a level need, and names the most demanding condition.
pub(crate) fn operations_needed(level: &[Gate]) -> (u64, Option<&str>) {
    let needed = level.iter().filter_map(|gate| match gate.quantity {
        Quantity::Latency(Property::Percentile(p)) => {
            Some((enough(p.0) as u64, gate.text.as_str()))
        }
        _ => None,
    });
    needed.max().map_or((0, None), |(count, text)| (count, Some(text)))
}

/// Counts of held, failed and unknown answers; unknown ones let the search go up.
type Answers = [usize; 3];

fn majority([held, failed, unknown]: Answers) -> Ordering {
    (held + unknown).cmp(&failed)
}

pub(crate) struct Search {
    start: f64,
    /// Edges are near enough if their ratio is at most one more than this.
    resolution: f64,
    /// A window of a lower rate has too few operations to show that the level holds.
    least: f64,
    tries: BTreeMap<Rate, Answers>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub rate: Option<f64>,
    pub failed: Option<f64>,
    /// True if both edges were measured again.
    pub confirmed: bool,
    /// A higher rate, below the one that failed, with an unknown answer.
    pub unknown: Option<f64>,
    /// True if answers contradict each other: two for one rate, or a rate that held above one that failed.
    pub noisy: bool,
}

impl Search {
    /// Begins at `start`, above 0; `resolution` is a share such as 0.05.
    pub(crate) fn new(start: f64, resolution: f64) -> Search {
        Search { start: rounded(start), resolution, least: 0.0, tries: BTreeMap::new() }
    }

    pub(crate) fn of_level(
        start: f64,
        resolution: f64,
        level: &[Gate],
        time: Option<Duration>,
    ) -> Search {
        let needed = operations_needed(level).0 as f64;
        let least = time.map_or(0.0, |time| LUCK * needed / time.as_secs_f64());
        Search { least, ..Search::new(start, resolution) }
    }

    pub(crate) fn tell(&mut self, rate: f64, held: Option<bool>) {
        let answer = held.map_or(2, |held| usize::from(!held));
        self.tries.entry(Rate::new(rate)).or_default()[answer] += 1;
    }

    pub(crate) fn next(&self) -> Option<f64> {
        let steps: usize = self.tries.values().flatten().sum();
        if steps >= STEPS_MAX { None } else { self.wanted() }
    }

    fn wanted(&self) -> Option<f64> {
        if let Some((split, _)) = self.tries.iter().find(|(_, all)| majority(**all).is_eq()) {
            return Some(split.per_s());
        }
        let unsettled =
            |rate: f64| (self.tries[&Rate::new(rate)].iter().sum::<usize>() < 2).then_some(rate);
        let most = RATE_MAX as f64;
        match self.edges() {
            (None, None) => Some(self.start),
            (Some(low), None) if low < most => Some(rounded(low * 2.0).min(most)),
            (Some(low), None) => unsettled(low),
            (None, Some(high)) => (high / 2.0 >= RATE_MIN).then(|| rounded(high / 2.0)),
            // No rate below it can be known to hold; a hiccup must not decide that.
            (Some(_), Some(high)) if high < self.least => unsettled(high),
            (Some(low), Some(high)) => {
                let middle = rounded((low * high).sqrt());
                if high / low > 1.0 + self.resolution && middle > low && middle < high {
                    return Some(middle);
                }
                unsettled(low).or_else(|| unsettled(high))
            }
        }
    }

    pub(crate) fn found(&self) -> Found {
        let (low, high) = self.edges();
        let known = |[held, failed, _]: &Answers| held > failed;
        let noisy = |(rate, answers): (&Rate, &Answers)| {
            let above = high.is_some_and(|high| rate.per_s() > high) && majority(*answers).is_gt();
            above || answers[..2].iter().all(|count| *count > 0)
        };
        // An unknown answer allows higher rates, but does not hold.
        let mut held =
            self.tries.iter().rev().filter(|(rate, answers)| {
                known(answers) && low.is_some_and(|low| rate.per_s() <= low)
            });
        Found {
            rate: held.next().map(|(rate, _)| rate.per_s()),
            failed: high,
            confirmed: self.wanted().is_none(),
            unknown: low.filter(|low| !known(&self.tries[&Rate::new(*low)])),
            noisy: self.tries.iter().any(noisy),
        }
    }

    /// Finds the highest rate that held below the lowest that failed, and the latter.
    fn edges(&self) -> (Option<f64>, Option<f64>) {
        let mut tries = self.tries.iter();
        let high = tries.find(|(_, all)| majority(**all).is_lt()).map(|(rate, _)| rate.per_s());
        let below = |rate: &Rate| high.is_none_or(|high| rate.per_s() < high);
        let mut held = self.tries.iter().rev().filter(|(_, all)| majority(**all).is_gt());
        (held.find(|(rate, _)| below(rate)).map(|(rate, _)| rate.per_s()), high)
    }
}

fn rounded(rate: f64) -> f64 {
    let digits = DIGITS - 1 - rate.log10().floor() as i32;
    // Dividing by a power of ten is exact where multiplying by its inverse is not.
    let scale = 10_f64.powi(digits.abs());
    if digits >= 0 { (rate * scale).round() / scale } else { (rate / scale).round() * scale }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs a search; `answer` knows the rate and how often it was asked before.
    fn run(start: f64, mut answer: impl FnMut(f64, usize) -> Option<bool>) -> (Vec<f64>, Found) {
        let mut search = Search::new(start, 0.05);
        let mut path: Vec<f64> = Vec::new();
        while let Some(rate) = search.next() {
            let before = path.iter().filter(|tried| (**tried - rate).abs() < 1e-9).count();
            path.push(rate);
            search.tell(rate, answer(rate, before));
        }
        (path, search.found())
    }

    fn up_to(limit: f64) -> impl Fn(f64, usize) -> Option<bool> {
        move |rate, _| Some(rate <= limit)
    }

    #[test]
    fn it_doubles_then_bisects_and_measures_both_edges_again() {
        let (path, found) = run(1000.0, up_to(5000.0));
        let expected =
            [1000.0, 2000.0, 4000.0, 8000.0, 5657.0, 4757.0, 5188.0, 4968.0, 4968.0, 5188.0];
        assert_eq!(path, expected);
        let clear = Found {
            rate: Some(4968.0),
            failed: Some(5188.0),
            confirmed: true,
            unknown: None,
            noisy: false,
        };
        assert_eq!(found, clear);
    }

    #[test]
    fn it_halves_where_the_start_fails_and_ends_where_nothing_holds() {
        let (path, found) = run(1000.0, up_to(90.0));
        assert_eq!(path[..5], [1000.0, 500.0, 250.0, 125.0, 62.5]);
        assert!(found.rate.is_some_and(|rate| (85.0..=90.0).contains(&rate)), "{found:?}");
        let (path, found) = run(1.0, |_, _| Some(false));
        assert!(path.len() < STEPS_MAX, "{path:?}");
        assert_eq!((found.rate, found.confirmed), (None, true));
    }

    #[test]
    fn one_wrong_answer_is_outvoted_and_said() {
        // A hiccup of the machine at 2000: by itself it would halve the answer.
        let hiccup = |rate: f64, before: usize| match (rate, before) {
            (2000.0, 0) => Some(false),
            _ => up_to(5000.0)(rate, before),
        };
        let (_, found) = run(1000.0, hiccup);
        assert!(found.noisy && found.confirmed, "{found:?}");
        assert!(found.rate.is_some_and(|rate| (4750.0..=5000.0).contains(&rate)), "{found:?}");
        // Luck at the upper edge does not survive the second measurement.
        let luck = |rate: f64, before: usize| match (rate, before) {
            (5188.0, 0) => Some(true),
            _ => up_to(5000.0)(rate, before),
        };
        let (_, found) = run(1000.0, luck);
        assert!(found.noisy && found.rate.is_some_and(|rate| rate <= 5000.0), "{found:?}");
    }

    #[test]
    fn what_is_not_known_is_looked_for_above_and_said_at_the_end() {
        let few = |rate: f64, _| match rate {
            r if r < 100.0 => None,
            r if r <= 5000.0 => Some(true),
            _ => Some(false),
        };
        let (_, found) = run(1.0, few);
        assert!(
            found.unknown.is_none() && found.rate.is_some_and(|rate| rate > 4500.0),
            "{found:?}"
        );
        let (_, found) = run(1.0, |rate, _| (rate >= 50.0).then_some(false));
        assert!(found.unknown.is_some_and(|rate| rate < 50.0), "{found:?}");
        assert_eq!((found.rate, found.confirmed), (None, true), "none was seen to hold");
    }

    #[test]
    fn a_rate_is_not_the_answer_when_it_held_no_more_often_than_it_failed() {
        let answers = |rate: f64, before: usize| match (rate, before) {
            (4968.0, 1) => Some(false),
            (4968.0, 2) => None,
            _ => up_to(5000.0)(rate, before),
        };
        let (_, found) = run(1000.0, answers);
        assert_eq!((found.rate, found.unknown), (Some(4757.0), Some(4968.0)), "{found:?}");
    }

    #[test]
    fn it_ends_at_the_highest_rate_there_is() {
        let (path, found) = run(1e6, |_, _| Some(true));
        assert_eq!(path, [1e6, 2e6, 4e6, 8e6, 1e7, 1e7]);
        assert!(found.confirmed);
    }

    #[test]
    fn a_search_ends_when_what_failed_is_below_what_can_be_known() {
        let level: Vec<Gate> = vec!["p99.9<5ms".parse().expect("a gate")];
        assert_eq!(operations_needed(&level), (10_000, Some("p99.9<5ms")));
        // A server of 4,000 a second, and windows of a second.
        let mut search = Search::of_level(1000.0, 0.05, &level, Some(Duration::from_secs(1)));
        let mut steps = 0;
        while let Some(rate) = search.next() {
            steps += 1;
            search.tell(rate, (rate > 4000.0).then_some(false));
        }
        let found = search.found();
        assert_eq!((steps, found.rate, found.unknown), (5, None, Some(4000.0)), "{found:?}");
        assert_eq!(found.failed, Some(8000.0));
    }

    proptest! {
        #[test]
        fn any_server_is_found_within_the_resolution(limit in 1.0_f64..1e6, start in 1.0_f64..1e5) {
            let (path, found) = run(start, up_to(limit));
            prop_assert!(path.len() < STEPS_MAX, "{path:?}");
            let rate = found.rate.expect("something holds");
            prop_assert!(rate <= limit && rate * 1.0505 >= limit, "{rate} of {limit}: {path:?}");
            prop_assert!(found.confirmed && !found.noisy);
        }

        #[test]
        fn any_answers_end(answers in prop::collection::vec(0_u8..3, STEPS_MAX), start in 0.01_f64..1e7) {
            let mut answers = answers.into_iter();
            let (path, _) = run(start, |_, _| match answers.next() {
                Some(0) => Some(true),
                Some(1) => None,
                _ => Some(false),
            });
            prop_assert!(path.len() <= STEPS_MAX && path.iter().all(|rate| *rate > 0.0));
        }
    }
}
