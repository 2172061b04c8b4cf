//! Pure statistics over repeats. The run is the unit: nothing here looks inside one.

mod change;
mod correct;
mod rank;

pub(crate) use change::{Change, change, relative_error};
pub(crate) use correct::{benjamini_hochberg, holm, looks, next_look};
pub(crate) use rank::{Shift, median_interval, pairs, two_samples};

/// How the runs of a cell spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub n: usize,
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

pub(crate) fn spread(values: &[f64]) -> Option<Spread> {
    Some(Spread {
        n: values.len(),
        min: quantile(values, 0.0)?,
        median: median(values)?,
        max: quantile(values, 1.0)?,
    })
}

/// Gives the median: of an even number of values the middle of the two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Gives the quantile `q` (0 to 1, clamped) of some values in any order, interpolated linearly
/// between the two nearest (R's type 7); nothing without values.
pub(crate) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let position = last as f64 * q.clamp(0.0, 1.0);
    let below = *sorted.get(position.floor() as usize)?;
    let above = *sorted.get(position.ceil() as usize)?;
    let share = position.fract();
    // Weights and not a difference: that of two huge values would overflow.
    Some(if share == 0.0 { below } else { below * (1.0 - share) + above * share })
}

/// Values beyond a percentile from which on it is a number: fewer tell chance.
pub(crate) const BEYOND_MIN: u64 = 10;

/// Tells whether fewer than [`BEYOND_MIN`] of `count` values lie beyond a percentile.
pub(crate) fn is_scarce(percentile: f64, count: u64) -> bool {
    count.saturating_sub(rank(percentile.max(100.0 - percentile), count)) < BEYOND_MIN
}

/// Finds the highest whole percentile, from 50 to 99, that is not scarce among `count` values.
pub(crate) fn highest_known(count: u64) -> Option<u32> {
    (50..=99).rev().find(|percentile| !is_scarce(f64::from(*percentile), count))
}

/// Counts the values that a percentile needs not to be scarce.
pub(crate) fn enough(percentile: f64) -> f64 {
    let beyond = percentile.min(100.0 - percentile) / 100.0;
    (BEYOND_MIN as f64 / beyond * (1.0 - 1e-9)).ceil()
}

pub(crate) use crate::observe::recorder::{nearest_rank, rank};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_highest_percentile_with_ten_values_beyond_it() {
        for (count, percentile) in [
            (0, None),
            (19, None),
            (20, Some(50)),
            (50, Some(80)),
            (100, Some(90)),
            (999, Some(98)),
            (1_000, Some(99)),
            (u64::MAX, Some(99)),
        ] {
            assert_eq!(highest_known(count), percentile, "{count}");
        }
    }

    #[test]
    fn medians_of_odd_and_even_numbers_of_runs() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
    }

    #[test]
    fn ranks_are_exact_where_binary_fractions_are_not() {
        let ranked = |percentile: f64, count: u64, rank: u64| {
            let asked = (nearest_rank(percentile, count) * count as f64).ceil() as u64;
            assert_eq!(asked, rank, "p{percentile} of {count}");
        };
        ranked(99.9, 5_000, 4_995);
        ranked(99.9, 1_000, 999);
        ranked(99.9, 1_001, 1_000);
        ranked(50.0, 2, 1);
        ranked(50.0, 3, 2);
        ranked(99.99, 10_000_000, 9_999_000);
        ranked(1.0, 7, 1);
        ranked(100.0, 7, 7);
        ranked(0.0, 7, 1);
    }

    #[test]
    fn ten_values_beyond_make_a_number() {
        for (percentile, least) in
            [(50.0, 20), (90.0, 100), (99.0, 1_000), (99.9, 10_000), (99.99, 100_000), (1.0, 1_000)]
        {
            assert!(!is_scarce(percentile, least), "p{percentile} of {least}");
            assert!(is_scarce(percentile, least - 1), "p{percentile} of {}", least - 1);
            assert!((enough(percentile) - least as f64).abs() < 0.5, "{}", enough(percentile));
        }
        assert!(is_scarce(50.0, 0));
    }

    #[test]
    fn quantiles_interpolate_like_r() {
        // quantile(c(1, 2, 4, 8), c(0.25, 0.9)) in R is 1.75 and 6.8.
        let values = [8.0, 1.0, 4.0, 2.0];
        assert_eq!(quantile(&values, 0.25), Some(1.75));
        assert!((quantile(&values, 0.9).expect("values") - 6.8).abs() < 1e-12);
        assert_eq!(quantile(&values, -1.0), Some(1.0));
        assert_eq!(quantile(&values, 2.0), Some(8.0));
    }

    #[test]
    fn absurd_values_do_not_overflow() {
        assert_eq!(median(&[f64::MIN, f64::MAX]), Some(0.0));
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }

    #[test]
    fn a_spread_needs_a_value() {
        assert_eq!(spread(&[]), None);
        assert_eq!(
            spread(&[3.0, 1.0, 2.0]),
            Some(Spread { n: 3, min: 1.0, median: 2.0, max: 3.0 })
        );
    }

    proptest! {
        #[test]
        fn a_quantile_lies_between_the_extremes(
            values in prop::collection::vec(-1e9_f64..1e9, 1..40),
            q in 0.0_f64..=1.0,
        ) {
            let spread = spread(&values).expect("values");
            let value = quantile(&values, q).expect("values");
            // Weights round: an ulp or so beyond the neighbours is none of the data's.
            prop_assert!(value >= spread.min - 1e-6 && value <= spread.max + 1e-6);
            prop_assert_eq!(spread.n, values.len());
        }
    }
}
