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
    let untied: Vec<usize> = (1..=n + m).map(|rank| 2 * rank).collect();
    let (p, p_least, outside) = if n + m <= EXACT_MAX {
        let tail = tail(&sums(&untied, m));
        let tied = sums(&ranks, m);
        (two_sided(&tied, sum), (2.0 * tail[0].1).min(1.0), {
            // U counts pairs: the sum of the ranks above its least.
            let least = m * (m + 1);
            outside(tail.iter().map(|(s, p)| ((s - least) / 2, *p)))
        })
    } else {
        let (mean, deviation) = moments(n, m, &ranks);
        let z = ((sum as f64 / 2.0 - mean).abs() - 0.5).max(0.0) / deviation;
        let plain = (n as f64 * m as f64 * (n + m + 1) as f64 / 12.0).sqrt();
        let rank = n as f64 * m as f64 / 2.0 - Z_975 * plain;
        (2.0 * above(z), 0.0, rank.max(0.0) as usize)
    };
    Some(Shift {
        estimate: quantile(&differences, 0.5)?,
        interval: between(differences, outside),
        p,
        p_least,
    })
}

/// Tells how far pairs differ from nothing: the Wilcoxon signed-rank test, and the median of the
/// averages of all two differences (Walsh) with its interval (Hollander and Wolfe, section 3.3).
/// Differences of exactly nothing say nothing about the sign and are left out of the test.
pub(crate) fn pairs(differences: &[f64]) -> Option<Shift> {
    let n = differences.len();
    let averages: Vec<f64> = (0..n)
        .flat_map(|i| {
            differences[i..].iter().map(move |other| f64::midpoint(differences[i], *other))
        })
        .collect();
    let estimate = quantile(&averages, 0.5)?;
    let moved: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let magnitudes: Vec<f64> = moved.iter().map(|d| d.abs()).collect();
    let ranks = doubled_ranks(&magnitudes);
    let sum: usize = ranks.iter().zip(&moved).filter(|(_, d)| **d > 0.0).map(|(r, _)| r).sum();
    let untied: Vec<usize> = (1..=n).map(|rank| 2 * rank).collect();
    let (p, p_least, outside) = if n <= EXACT_MAX {
        let tail = tail(&signed_sums(&untied));
        let p = two_sided(&signed_sums(&ranks), sum);
        let least = (2.0 * tail[0].1).min(1.0);
        (p, least, outside(tail.iter().map(|(s, p)| (s / 2, *p))))
    } else {
        let squares: f64 = ranks.iter().map(|r| (*r as f64 / 2.0).powi(2)).sum();
        let mean = ranks.iter().sum::<usize>() as f64 / 4.0;
        let z = ((sum as f64 / 2.0 - mean).abs() - 0.5).max(0.0) / (squares / 4.0).sqrt();
        let (all, n) = (averages.len() as f64, n as f64);
        let rank = all / 2.0 - Z_975 * (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let p = if moved.is_empty() { 1.0 } else { 2.0 * above(z) };
        (p, 0.0, rank.max(0.0) as usize)
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
        outside(tail(&signed_sums(&vec![1; n])).into_iter())
    } else {
        (((n + 1) as f64 - Z_975 * (n as f64).sqrt()) / 2.0).max(0.0) as usize
    };
    between(values.to_vec(), outside)
}

/// Standard normal quantile of 0.975.
const Z_975: f64 = 1.959_963_984_540_054;

/// Ranks from 1 of values in any order, doubled, so that those of ties are whole, too.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    values
        .iter()
        .map(|v| {
            let below = values.iter().filter(|o| o.total_cmp(v).is_lt()).count();
            let same = values.iter().filter(|o| o.total_cmp(v).is_eq()).count();
            2 * below + same + 1
        })
        .collect()
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

/// Twice the smaller tail, the value included.
fn two_sided(probabilities: &[f64], sum: usize) -> f64 {
    let low: f64 = probabilities.iter().take(sum + 1).sum();
    let high: f64 = probabilities.iter().skip(sum).sum();
    (2.0 * low.min(high)).min(1.0)
}

/// Returns the sums that can be, ascending, with the probability of each or a smaller one.
fn tail(probabilities: &[f64]) -> Vec<(usize, f64)> {
    let mut below = 0.0;
    let mut tail = Vec::new();
    for (sum, p) in probabilities.iter().enumerate().filter(|(_, p)| **p > 0.0) {
        below += p;
        tail.push((sum, below));
    }
    tail
}

/// Tells how many of the sorted values lie outside of the 95 % interval on either side; of so many
/// steps of the statistic each tail has 2.5 % at most. 0: there is no such interval.
fn outside(tail: impl Iterator<Item = (usize, f64)>) -> usize {
    // The least value of the statistic leaves one value outside.
    tail.take_while(|(_, p)| *p <= 0.025 + 1e-12).last().map_or(0, |(value, _)| value + 1)
}

/// Returns the interval that leaves so many values outside on either side, less one for its ends.
fn between(mut values: Vec<f64>, outside: usize) -> Option<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let low = outside.checked_sub(1)?;
    Some((*values.get(low)?, *values.get(values.len().checked_sub(outside)?)?))
}

/// Mean and deviation of the rank sum of the second sample, ties included.
fn moments(n: usize, m: usize, ranks: &[usize]) -> (f64, f64) {
    let (n, m) = (n as f64, m as f64);
    let all = n + m;
    let middle = f64::midpoint(all, 1.0);
    let squares: f64 = ranks.iter().map(|r| (*r as f64 / 2.0 - middle).powi(2)).sum();
    (m * middle, (n * m * squares / (all * (all - 1.0))).sqrt().max(f64::MIN_POSITIVE))
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
