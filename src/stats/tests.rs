//! Statistics against values of other programs, and by their properties.
#![expect(clippy::approx_constant, reason = "random numbers, two of them near constants")]

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
    assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { n: 3, min: 1.0, median: 2.0, max: 3.0 }));
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

fn is(one: f64, other: f64) {
    assert!((one - other).abs() < 1e-9, "{one} is not {other}");
}

fn interval(shift: &Shift, low: f64, high: f64) {
    interval_is(shift.interval, low, high);
}

fn interval_is(interval: Option<(f64, f64)>, low: f64, high: f64) {
    let (l, h) = interval.expect("enough values");
    is(l, low);
    is(h, high);
}

// Permeability of membranes, Hollander and Wolfe, table 4.1; R's `wilcox.test` prints these.
#[test]
fn two_samples_are_those_of_the_textbook() {
    let y = [1.15, 0.88, 0.90, 0.74, 1.21];
    let x = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    let shift = two_samples(&y, &x).expect("values");
    is(shift.p, 0.254_412_254_412_254_4);
    is(shift.estimate, 0.305);
    interval(&shift, -0.15, 0.76);
}

// Depression scores, Hollander and Wolfe, table 3.1; R's `wilcox.test(paired = TRUE)`.
#[test]
fn pairs_are_those_of_the_textbook() {
    let x = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
    let y = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
    let differences: Vec<f64> = x.iter().zip(y).map(|(x, y)| x - y).collect();
    let shift = pairs(&differences).expect("values");
    is(shift.p, 0.039_062_5);
    is(shift.estimate, 0.46);
    interval(&shift, 0.010, 0.786);
}

// Ranks of the table of order statistics in W. J. Conover, "Practical Nonparametric
// Statistics", and of B. Arnold, N. Balakrishnan, "A First Course in Order Statistics".
#[test]
fn a_median_lies_between_two_order_statistics() {
    for (n, low) in [(6, 1), (8, 1), (9, 2), (10, 2), (15, 4), (20, 6), (25, 8), (60, 22)] {
        let values: Vec<f64> = (1..=n).rev().map(f64::from).collect();
        interval_is(median_interval(&values), f64::from(low), f64::from(n + 1 - low));
    }
    assert_eq!(median_interval(&[1.0; 5]), None);
    assert_eq!(median_interval(&[]), None);
    let many: Vec<f64> = (1..=101).map(f64::from).collect();
    interval_is(median_interval(&many), 41.0, 61.0);
}

// Every choice of 6 of the 12 ranks, counted by another program.
#[test]
fn ties_are_counted_exactly() {
    let first = [1.0, 2.0, 2.0, 3.0, 5.0, 5.0];
    let second = [2.0, 3.0, 5.0, 6.0, 7.0, 7.0];
    is(two_samples(&first, &second).expect("values").p, 0.112_554_112_554_112_56);
}

// scipy.stats.mannwhitneyu(method = "asymptotic") of scipy 1.17.1.
#[test]
fn many_values_are_approximated() {
    let shift = two_samples(&A, &B).expect("values");
    assert!((shift.p - 0.079_723_358_587_331_55).abs() < 1e-6, "{}", shift.p);
    let (low, high) = shift.interval.expect("many values");
    assert!(low < shift.estimate && shift.estimate < high, "{shift:?}");
}

#[test]
fn few_values_cannot_show_anything() {
    for (n, least) in [(3, 0.1), (4, 2.0 / 70.0), (5, 2.0 / 252.0), (6, 2.0 / 924.0)] {
        let first: Vec<f64> = (0..n).map(f64::from).collect();
        let second: Vec<f64> = (100..100 + n).map(f64::from).collect();
        let shift = two_samples(&first, &second).expect("values");
        is(shift.p, least);
        is(shift.p_least, least);
        assert_eq!(shift.interval.is_none(), n == 3, "{n}");
        is(pairs(&vec![1.0; n as usize]).expect("values").p_least, 2.0 * 0.5_f64.powi(n));
    }
    assert_eq!(two_samples(&[], &[1.0]), None);
    assert_eq!(pairs(&[]), None);
    is(pairs(&[0.0; 7]).expect("values").p, 1.0);
}

proptest! {
    #[test]
    fn a_test_knows_no_sides(
        first in prop::collection::vec(0_u32..20, 1..12),
        second in prop::collection::vec(0_u32..20, 1..12),
    ) {
        let values = |v: &[u32]| v.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let (a, b) = (values(&first), values(&second));
        let there = two_samples(&a, &b).expect("values");
        let back = two_samples(&b, &a).expect("values");
        prop_assert!((there.p - back.p).abs() < 1e-9);
        prop_assert!((there.estimate + back.estimate).abs() < 1e-9);
        prop_assert!(there.p > 0.0 && there.p <= 1.0);
        if let Some((low, high)) = there.interval {
            prop_assert!(low <= there.estimate && there.estimate <= high);
        }
    }
}

const A: [f64; 40] = [
    0.346, 0.822, 0.33, -1.303, 0.905, 0.446, -0.537, 0.581, 0.365, 0.294, 0.028, 0.547, -0.736,
    -0.163, -0.482, 0.599, 0.04, -0.292, -0.782, -0.257, 0.008, -0.276, 1.294, 1.007, -2.711,
    -1.889, -0.175, -0.422, 0.214, 0.217, 2.118, -1.112, -0.378, 2.043, 0.647, 0.663, -0.514,
    -1.648, 0.167, 0.109,
];
const B: [f64; 35] = [
    -0.727, -0.183, 0.428, -0.445, 0.402, 0.595, 0.536, -0.006, 1.094, 1.391, 0.821, -0.318, 1.232,
    -0.001, 1.379, -0.572, 1.414, 0.48, -0.749, 0.186, 0.554, 0.773, -0.482, -0.607, 0.7, 0.033,
    0.736, 1.26, -1.149, 0.754, 1.725, 0.202, -0.311, 1.252, 0.753,
];

fn close(one: &[f64], other: &[f64]) {
    let same = one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(one.len() == other.len() && same, "{one:?} {other:?}");
}

// p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") and "BH" of R.
#[test]
fn corrections_are_those_of_r() {
    let p = [0.01, 0.04, 0.03, 0.005];
    close(&holm(&p), &[0.03, 0.06, 0.06, 0.02]);
    close(&benjamini_hochberg(&p), &[0.02, 0.04, 0.04, 0.02]);
}

#[test]
fn one_test_and_none_need_no_correction() {
    close(&holm(&[0.04]), &[0.04]);
    close(&benjamini_hochberg(&[0.04]), &[0.04]);
    assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
}

#[test]
fn doublings_are_counted_up_to_the_last() {
    let counted = |first: u32, last: u32, count: u32| {
        assert_eq!(looks(first, last), count, "{first} to {last}");
    };
    // 6 12 24, then 4 8 16 24, and 2 6 12 24, of which the first finds nothing.
    counted(6, 24, 3);
    counted(4, 24, 4);
    counted(2, 24, 3);
    counted(0, 24, 3);
    counted(24, 24, 1);
    counted(30, 24, 1);
    counted(1, 1, 1);
    counted(6, 7, 2);
    counted(6, u32::MAX, 31);
}

/// Around 1, by a few percent.
fn noise(seed: u64, n: usize) -> Vec<f64> {
    let mut stream = Stream::new(seed_of(&[seed]));
    (0..n).map(|_| 1.0 + 0.04 * (stream.unit() + stream.unit() - 1.0)).collect()
}

#[test]
fn chance_alone_is_seldom_a_change() {
    let clear =
        (0..200).filter(|seed| change(&noise(*seed, 60)).is_some_and(|change| change.p <= 0.01));
    // Two are expected; 8 or more happen once in a thousand.
    assert!(clear.count() < 8);
}

/// Around 1, with so much in common with the value before.
fn remembering(seed: u64, n: usize, memory: f64) -> Vec<f64> {
    let mut last = 0.0;
    let series = noise(seed, n + 50).into_iter().map(|value| {
        last = memory * last + (value - 1.0);
        1.0 + last
    });
    series.skip(50).collect()
}

#[test]
fn neighbours_that_are_alike_are_seldom_a_change() {
    // Without regard to it there were 8, 20 and 50 of a hundred.
    for (memory, most) in [(0.3, 5), (0.5, 7), (0.7, 10)] {
        let series = (0..100).map(|seed| remembering(seed, 60, memory));
        let clear = series.filter(|v| change(v).is_some_and(|change| change.p <= 0.01)).count();
        assert!(clear <= most, "{clear} with a memory of {memory}");
    }
}

#[test]
fn a_step_is_found_in_a_series_with_memory() {
    for n in [60, 600] {
        let mut values = remembering(11, n, 0.5);
        values.iter_mut().skip(n / 3).for_each(|value| *value *= 0.85);
        let change = change(&values).expect("a change");
        assert!(change.p <= 0.01 && !change.drift, "{n}: {change:?}");
    }
}

#[test]
fn a_step_is_found_where_it_is() {
    for n in [24, 60, 600] {
        let mut values = noise(3, n);
        values.iter_mut().skip(n / 3).for_each(|value| *value *= 0.8);
        let change = change(&values).expect("a change");
        assert!(change.p <= 0.01 && !change.drift, "{n}: {change:?}");
        assert!((change.at - 1.0 / 3.0).abs() < 0.03, "{n}: {change:?}");
        assert!((change.after / change.before - 0.8).abs() < 0.03, "{n}: {change:?}");
    }
}

#[test]
fn a_drift_is_no_step() {
    let values: Vec<f64> =
        noise(5, 120).iter().enumerate().map(|(i, x)| x * (1.0 + i as f64 / 400.0)).collect();
    let change = change(&values).expect("a change");
    assert!(change.p <= 0.01 && change.drift, "{change:?}");
}

#[test]
fn a_stall_is_no_level() {
    let mut values = noise(7, 60);
    values[30] = 0.0;
    values[31] = 0.0;
    assert!(change(&values).is_none_or(|change| change.p > 0.01));
    assert_eq!(change(&[1.0; 40]), None, "it does not vary");
    assert_eq!(change(&[1.0, 2.0, 3.0, 4.0, 5.0]), None, "too short");
}

#[test]
fn the_error_of_a_mean_is_student_s() {
    // Mean 10, deviation 1 of 4 values: 3.182 / 2 / 10.
    let values = [9.0, 10.0, 11.0, 10.0];
    let deviation = (2.0_f64 / 3.0).sqrt();
    let error = relative_error(&values).expect("enough");
    assert!((error - 3.182 * deviation / 2.0 / 10.0).abs() < 1e-9, "{error}");
    assert_eq!(relative_error(&[1.0, 2.0]), None);
    assert_eq!(relative_error(&[0.0, 0.0, 0.0]), None);
}

proptest! {
    #[test]
    fn no_series_is_too_odd(values in prop::collection::vec(-1e12_f64..1e12, 0..80)) {
        if let Some(change) = change(&values) {
            prop_assert!(change.at > 0.0 && change.at < 1.0 && change.p > 0.0);
        }
        let _ = relative_error(&values);
    }
}
