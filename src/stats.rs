//! Pure statistics over repeats. The run is the unit: nothing here looks inside one.
//!
//! Two samples compared by their ranks: the Mann–Whitney test and the Hodges–Lehmann shift. Sources:
//! H. B. Mann, D. R. Whitney, "On a test of whether one of two random variables is stochastically
//! larger than the other", Ann. Math. Statist. 18 (1947); J. L. Hodges, E. L. Lehmann, "Estimates of
//! location based on rank tests", Ann. Math. Statist. 34 (1963); interval: M. Hollander, D. A. Wolfe,
//! "Nonparametric Statistical Methods", section 4.3.
//!
//! Many tests at once: probabilities corrected, and looks after more runs counted, so that a table of
//! cells does not find by number what is not there.
//!
//! Whether a series kept its level: a change-point by ranks, with a permutation test; and how far
//! a mean may be off, by means of batches.

pub(crate) use crate::observe::recorder::{nearest_rank, rank};
use crate::workload::{Stream, seed_of};

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

/// Corrects by Holm: the chance of one false finding among all stays below what is asked ("A simple
/// sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979).
pub(crate) fn holm(p: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate() {
        let factor = (p.len() - rank) as f64;
        largest = largest.max((p[at] * factor).min(1.0));
        corrected[at] = largest;
    }
    corrected
}

/// Corrects by Benjamini and Hochberg: of what is found, the expected share of false findings stays
/// below what is asked ("Controlling the false discovery rate", J. R. Statist. Soc. B 57, 1995).
pub(crate) fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p.len()];
    let mut smallest = 1.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate().rev() {
        let factor = p.len() as f64 / (rank + 1) as f64;
        smallest = smallest.min(p[at] * factor);
        corrected[at] = smallest;
    }
    corrected
}

fn ascending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    order
}

/// Fewer repeats decide next to nothing.
const REPEATS_LEAST: u32 = 6;
/// Fewer than these cannot find anything: three against three have p 0.1 at least.
const FINDING_LEAST: u32 = 4;

/// Returns the repeats of the next look: twice as many, so that the looks stay few.
pub(crate) fn next_look(repeats: u32) -> u32 {
    repeats.saturating_mul(2).max(REPEATS_LEAST)
}

/// Counts the looks from the first number of repeats up to the last, both included: with p times
/// their number (Bonferroni) they find what is not there no more often than a single one.
pub(crate) fn looks(first: u32, last: u32) -> u32 {
    let (mut at, mut looks) = (first, 0);
    loop {
        looks += u32::from(at >= FINDING_LEAST);
        if at >= last {
            return looks.max(1);
        }
        at = next_look(at).min(last);
    }
}

/// Values that a series is averaged down to: what a change-point needs, and short enough to
/// shuffle often. It also takes out most of what neighbours have in common.
const BLOCKS: usize = 30;
/// Values on each side of a change, at least: fewer are a stall, not a level.
const SIDE_MIN: usize = 3;
/// More memory than this is none that so few values could tell from a change.
const MEMORY_MAX: f64 = 0.9;
/// By how much the memory of what a fit leaves is too small, as the constant and the factor over
/// the number of values: by simulation, see the tests.
const BIAS: (f64, f64) = (3.0, 4.0);
const SHUFFLES: u32 = 999;
const BATCHES: usize = 10;
/// Student's t for 95 % on both sides, by degrees of freedom from 2 to 9.
const T95: [f64; 8] = [4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// Its place, as a part of the series, 0 to 1.
    pub at: f64,
    /// The level before it (a median).
    pub before: f64,
    pub after: f64,
    /// A line from the beginning to the end describes it better than two levels do.
    pub drift: bool,
    /// Chance makes one that is as clear so often at most.
    pub p: f64,
}

/// The clearest change of level, whatever its size and its `p`; None of a series that is too
/// short to have one, or that does not vary.
///
/// The place is where the ranks of the values before differ most from those after: A. N. Pettitt,
/// "A non-parametric approach to the change-point problem" (1979). How clear it is tells the
/// difference of the mean ranks there by their spread around them, as Student's t. How likely
/// chance makes one that is as clear is counted among shuffles of the same values. Those have
/// no memory, and what happens to a server lasts for some intervals: their differences are as much
/// larger as those of an autoregressive series with the memory of what the change leaves
/// unexplained (G. V. Bayley and J. M. Hammersley, "The effective number of independent
/// observations in an autocorrelated time series", 1946).
pub(crate) fn change(values: &[f64]) -> Option<Change> {
    let (all, block) = (values.len(), block(values.len(), BLOCKS));
    let values = averaged(values, BLOCKS);
    if values.len() < 2 * SIDE_MIN {
        return None;
    }
    let ranks = ranks(&values);
    let (at, clear) = split(&ranks)?;
    if clear == 0.0 {
        return None;
    }
    let (first, last) = values.split_at(at);
    let (before, after) = (median(first)?, median(last)?);
    let level = |i: usize| if i < at { before } else { after };
    let left = |model: &dyn Fn(usize) -> f64| -> Vec<f64> {
        values.iter().enumerate().map(|(i, value)| value - model(i)).collect()
    };
    let (of_levels, of_line) = (left(&level), left(&line(&values)?));
    let size = |left: &[f64]| left.iter().map(|off| off.abs()).sum::<f64>();
    let drift = size(&of_line) < size(&of_levels);
    let chance = inflation(if drift { &of_line } else { &of_levels });
    let mut stream = Stream::new(seed_of(&[values.len() as u64]));
    let mut shuffled = ranks.clone();
    let mut as_clear = 0;
    for _ in 0..SHUFFLES {
        for i in (1..shuffled.len()).rev() {
            let j = stream.below(i as u64 + 1) as usize;
            shuffled.swap(i, j);
        }
        as_clear += u32::from(split(&shuffled).is_some_and(|(_, other)| other * chance >= clear));
    }
    Some(Change {
        at: (at * block) as f64 / all as f64,
        before,
        after,
        drift,
        p: f64::from(as_clear + 1) / f64::from(SHUFFLES + 1),
    })
}

/// How many times larger the differences of means are in a series with this memory than in one
/// without.
fn inflation(left: &[f64]) -> f64 {
    let n = left.len() as f64;
    let ranks = ranks(left);
    let mean = f64::midpoint(n, 1.0);
    let squares: f64 = ranks.iter().map(|rank| (rank - mean) * (rank - mean)).sum();
    let products: f64 = ranks.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
    if squares <= 0.0 {
        return 1.0;
    }
    // What was fitted took a part of the memory with it.
    let memory = (products / squares + BIAS.0 / n) / (1.0 - BIAS.1 / n);
    let memory = memory.clamp(0.0, MEMORY_MAX);
    ((1.0 + memory) / (1.0 - memory)).sqrt()
}

/// Tells how many of so many values make one of `most` averages.
fn block(values: usize, most: usize) -> usize {
    values.div_ceil(most).max(1)
}

/// Neighbours averaged until there are so many values at most.
fn averaged(values: &[f64], most: usize) -> Vec<f64> {
    let size = block(values.len(), most);
    // The rest at the end would be a shorter average, and noisier.
    let whole = values.chunks_exact(size);
    whole.map(|chunk| chunk.iter().sum::<f64>() / size as f64).collect()
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    doubled_ranks(values).into_iter().map(|rank| rank as f64 / 2.0).collect()
}

/// Where the sum of the ranks before is furthest from what chance makes it, and how far apart the
/// means of both sides are there, by their standard error.
fn split(ranks: &[f64]) -> Option<(usize, f64)> {
    let n = ranks.len();
    let mut sum = 0.0;
    let mut best: Option<(usize, f64, f64)> = None;
    for (i, rank) in ranks.iter().enumerate() {
        sum += rank;
        let before = i + 1;
        if before < SIDE_MIN || n - before < SIDE_MIN {
            continue;
        }
        let off = (2.0 * sum - (before * (n + 1)) as f64).abs();
        if best.is_none_or(|(_, _, most)| off > most) {
            best = Some((before, sum, off));
        }
    }
    let (at, sum, _) = best?;
    let (one, other) = (at as f64, (n - at) as f64);
    let all: f64 = ranks.iter().sum();
    let means = (sum / one, (all - sum) / other);
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let within = squares - one * means.0 * means.0 - other * means.1 * means.1;
    let error = (within / (one + other - 2.0) * (1.0 / one + 1.0 / other)).sqrt();
    // Ranks without a spread on either side: two values only.
    let clear = (means.0 - means.1).abs() / error.max(f64::MIN_POSITIVE);
    Some((at, clear))
}

/// Returns the line of the median slope through the medians (Theil and Sen).
fn line(values: &[f64]) -> Option<impl Fn(usize) -> f64> {
    let mut slopes = Vec::new();
    for (i, one) in values.iter().enumerate() {
        let later = values.iter().enumerate().skip(i + 1);
        slopes.extend(later.map(|(j, other)| (other - one) / (j - i) as f64));
    }
    let slope = median(&slopes)?;
    let at_zero: Vec<f64> =
        values.iter().enumerate().map(|(i, value)| value - slope * i as f64).collect();
    let start = median(&at_zero)?;
    Some(move |i: usize| start + slope * i as f64)
}

/// Half of the width of the mean's 95 % interval as a part of the mean, by means of up to ten
/// batches (M. Schmeiser, "Batch size effects in the analysis of simulation output", 1982); None
/// of fewer than three values, which tell nothing.
pub(crate) fn relative_error(values: &[f64]) -> Option<f64> {
    let batches = averaged(values, BATCHES);
    let n = batches.len() as f64;
    let t = T95.get(batches.len().checked_sub(3)?)?;
    let mean = batches.iter().sum::<f64>() / n;
    let squares: f64 = batches.iter().map(|value| (value - mean) * (value - mean)).sum();
    let deviation = (squares / (n - 1.0)).sqrt();
    (mean > 0.0).then(|| t * deviation / n.sqrt() / mean)
}

#[cfg(test)]
#[expect(clippy::approx_constant, reason = "random numbers, two of them near constants")]
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
        let clear = (0..200)
            .filter(|seed| change(&noise(*seed, 60)).is_some_and(|change| change.p <= 0.01));
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
}
