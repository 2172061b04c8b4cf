//! Two samples compared by their ranks: the Mann–Whitney test and the Hodges–Lehmann shift.
//!
//! Sources: H. B. Mann, D. R. Whitney, "On a test of whether one of two random variables is
//! stochastically larger than the other", Ann. Math. Statist. 18 (1947); J. L. Hodges,
//! E. L. Lehmann, "Estimates of location based on rank tests", Ann. Math. Statist. 34 (1963);
//! interval: M. Hollander, D. A. Wolfe, "Nonparametric Statistical Methods", section 4.3.

use super::quantile;

/// Up to so many values together the distribution is counted, above it is approximated.
const EXACT_MAX: usize = 60;

/// An estimate, its 95 % interval, and the test against "no difference".
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shift {
    /// By how much the second sample lies above the first.
    pub estimate: f64,
    /// Covers the true shift with at least 95 %; none where so few values cannot.
    pub interval: Option<(f64, f64)>,
    /// Two-sided.
    pub p: f64,
    /// The smallest `p` that samples of these sizes can have.
    pub p_least: f64,
}

/// How far the second of two independent samples lies above the first; nothing without values.
///
/// `p` is exact, given the ties, up to 60 values together, and the normal approximation with
/// tie and continuity correction above.
pub(crate) fn two_samples(first: &[f64], second: &[f64]) -> Option<Shift> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let differences: Vec<f64> =
        second.iter().flat_map(|b| first.iter().map(move |a| b - a)).collect();
    let (n, m) = (first.len(), second.len());
    let ranks = doubled_ranks(&[first, second].concat());
    let sum: usize = ranks.iter().skip(n).sum();
    let (p, p_least, outside) = if n + m <= EXACT_MAX {
        exact(&sums(&untied(n + m), m), &sums(&ranks, m), sum)
    } else {
        let (n, m) = (n as f64, m as f64);
        let all = n + m;
        let middle = f64::midpoint(all, 1.0);
        let squares: f64 = ranks.iter().map(|r| (*r as f64 / 2.0 - middle).powi(2)).sum();
        let deviation = (n * m * squares / (all * (all - 1.0))).sqrt();
        let plain = (n * m * (all + 1.0) / 12.0).sqrt();
        approximate(sum as f64 / 2.0 - m * middle, deviation, n * m, plain)
    };
    let estimate = quantile(&differences, 0.5)?;
    Some(Shift { estimate, interval: between(differences, outside), p, p_least })
}

/// Tells how far pairs differ from nothing: the Wilcoxon signed-rank test, and the median of the
/// averages of all two differences (Walsh) with its interval (Hollander and Wolfe, section 3.3).
/// Differences of exactly nothing say nothing about the sign and are left out of the test.
pub(crate) fn pairs(differences: &[f64]) -> Option<Shift> {
    let n = differences.len();
    let from = |i: usize| differences[i..].iter().map(move |b| f64::midpoint(differences[i], *b));
    let averages: Vec<f64> = (0..n).flat_map(from).collect();
    let estimate = quantile(&averages, 0.5)?;
    let moved: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let ranks = doubled_ranks(&moved.iter().map(|d| d.abs()).collect::<Vec<f64>>());
    let sum: usize = ranks.iter().zip(&moved).filter(|(_, d)| **d > 0.0).map(|(r, _)| r).sum();
    let (p, p_least, outside) = if n <= EXACT_MAX {
        exact(&signed_sums(&untied(n)), &signed_sums(&ranks), sum)
    } else {
        let squares: f64 = ranks.iter().map(|r| (*r as f64 / 2.0).powi(2)).sum();
        let mean = ranks.iter().sum::<usize>() as f64 / 4.0;
        let (all, n) = (averages.len() as f64, n as f64);
        let plain = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        approximate(sum as f64 / 2.0 - mean, (squares / 4.0).sqrt(), all, plain)
    };
    Some(Shift { estimate, interval: between(averages, outside), p, p_least })
}

/// Returns an interval that covers the median of what the values are drawn from with at least 95 %,
/// whatever their distribution: order statistics, by the sign test (Hollander and Wolfe, section
/// 3.6). Fewer than six values have none.
pub(crate) fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len();
    let outside = if n <= EXACT_MAX {
        // As many values lie above the median as a coin shows heads.
        outside(&signed_sums(&vec![1; n]))
    } else {
        (((n + 1) as f64 - Z_975 * (n as f64).sqrt()) / 2.0).max(0.0) as usize
    };
    between(values.to_vec(), outside)
}

/// Returns p of a sum of ranks, the least that there can be, and how many of the sorted values lie
/// outside of the interval, by the probabilities of sums without ties and of these ranks' sums.
fn exact(untied: &[f64], tied: &[f64], sum: usize) -> (f64, f64, usize) {
    let low: f64 = tied.iter().take(sum + 1).sum();
    let high: f64 = tied.iter().skip(sum).sum();
    let two_sided = |tail: f64| (2.0 * tail).min(1.0);
    let least = untied.iter().copied().find(|p| *p > 0.0).unwrap_or(1.0);
    (two_sided(low.min(high)), two_sided(least), outside(untied))
}

/// Returns the same by the normal distribution: of a sum that is so far off its mean, of `all`
/// values, `plain` being the deviation without ties.
fn approximate(off: f64, deviation: f64, all: f64, plain: f64) -> (f64, f64, usize) {
    let z = (off.abs() - 0.5).max(0.0) / deviation;
    let p = if deviation > 0.0 { (2.0 * above(z)).min(1.0) } else { 1.0 };
    (p, 0.0, (all / 2.0 - Z_975 * plain).max(0.0) as usize)
}

/// Standard normal quantile of 0.975.
const Z_975: f64 = 1.959_963_984_540_054;

/// Ranks from 1 of values in any order, doubled, so that those of ties are whole, too.
pub(super) fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let count = |is: &dyn Fn(&f64) -> bool| values.iter().filter(|other| is(other)).count();
    let rank = |value: &f64| {
        2 * count(&|o| o.total_cmp(value).is_lt()) + count(&|o| o.total_cmp(value).is_eq()) + 1
    };
    values.iter().map(rank).collect()
}

fn untied(n: usize) -> Vec<usize> {
    (1..=n).map(|rank| 2 * rank).collect()
}

/// Tells how probable each sum of `size` of the ranks is, when every choice of them is alike.
fn sums(ranks: &[usize], size: usize) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0_f64; total + 1]; size + 1];
    ways[0][0] = 1.0;
    for (seen, rank) in ranks.iter().enumerate() {
        for taken in (1..=size.min(seen + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(taken);
            for (sum, count) in fewer[taken - 1].iter().enumerate().take(total + 1 - rank) {
                more[0][sum + rank] += count;
            }
        }
    }
    let mut ways = ways.swap_remove(size);
    let all: f64 = ways.iter().sum();
    for way in &mut ways {
        *way /= all;
    }
    ways
}

/// Tells how probable each sum of ranks with a positive sign is, when both signs are alike.
fn signed_sums(ranks: &[usize]) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    let mut ways = vec![0.0_f64; total + 1];
    ways[0] = 1.0;
    for rank in ranks {
        for sum in (0..=total).rev() {
            let with = sum.checked_sub(*rank).map_or(0.0, |from| ways[from]);
            ways[sum] = f64::midpoint(ways[sum], with);
        }
    }
    ways
}

/// Tells how many of the sorted values lie outside of the 95 % interval on either side: as many
/// values of the statistic, which has no gaps, make up 2.5 % at most. 0: there is no such interval.
fn outside(probabilities: &[f64]) -> usize {
    let below = probabilities.iter().filter(|p| **p > 0.0).scan(0.0, |below, p| {
        *below += p;
        Some(*below)
    });
    below.take_while(|below| *below <= 0.025 + 1e-12).count()
}

/// Returns the interval that leaves so many values outside on either side, less one for its ends.
fn between(mut values: Vec<f64>, outside: usize) -> Option<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let low = outside.checked_sub(1)?;
    Some((*values.get(low)?, *values.get(values.len().checked_sub(outside)?)?))
}

/// The standard normal's probability above `z` ≥ 0, to 1e-7: Abramowitz and Stegun, 26.2.17.
fn above(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429]
        .iter()
        .rev()
        .fold(0.0, |sum, b| (sum + b) * t);
    series * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

#[cfg(test)]
#[expect(clippy::approx_constant, reason = "random numbers, two of them near constants")]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        0.346, 0.822, 0.33, -1.303, 0.905, 0.446, -0.537, 0.581, 0.365, 0.294, 0.028, 0.547,
        -0.736, -0.163, -0.482, 0.599, 0.04, -0.292, -0.782, -0.257, 0.008, -0.276, 1.294, 1.007,
        -2.711, -1.889, -0.175, -0.422, 0.214, 0.217, 2.118, -1.112, -0.378, 2.043, 0.647, 0.663,
        -0.514, -1.648, 0.167, 0.109,
    ];
    const B: [f64; 35] = [
        -0.727, -0.183, 0.428, -0.445, 0.402, 0.595, 0.536, -0.006, 1.094, 1.391, 0.821, -0.318,
        1.232, -0.001, 1.379, -0.572, 1.414, 0.48, -0.749, 0.186, 0.554, 0.773, -0.482, -0.607,
        0.7, 0.033, 0.736, 1.26, -1.149, 0.754, 1.725, 0.202, -0.311, 1.252, 0.753,
    ];
}
