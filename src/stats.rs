//! Pure statistics over repeats. The run is the unit: nothing here looks inside one.
//!
//! Two samples compared by ranks: the Mann–Whitney test (Ann. Math. Statist. 18, 1947) and the
//! Hodges–Lehmann shift (Ann. Math. Statist. 34, 1963); interval: Hollander and Wolfe, "Nonparametric
//! Statistical Methods", section 4.3.
//!
//! Many tests at once: corrected probabilities, and counted looks after more runs, so that a large
//! table does not find differences by chance. And series: a change-point by ranks with a permutation
//! test, and the error of a mean by batches.

pub(crate) use crate::observe::times::{nearest_rank, rank};
use crate::workload::{Stream, seed_of};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub n: usize,
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

pub(crate) fn spread(values: &[f64]) -> Option<Spread> {
    let (min, median, max) = (quantile(values, 0.0)?, median(values)?, quantile(values, 1.0)?);
    Some(Spread { n: values.len(), min, median, max })
}

pub(crate) fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Computes the quantile `q` (0 to 1, clamped) in any order, interpolated linearly between the two
/// nearest values (R's type 7).
pub(crate) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let position = last as f64 * q.clamp(0.0, 1.0);
    let below = *sorted.get(position.floor() as usize)?;
    let above = *sorted.get(position.ceil() as usize)?;
    let share = position.fract();
    // Weights, not a difference: that of two huge values would overflow.
    Some(if share == 0.0 { below } else { below * (1.0 - share) + above * share })
}

/// The fewest values beyond a percentile that make it more than chance.
pub(crate) const BEYOND_MIN: u64 = 10;

/// Returns whether fewer than [`BEYOND_MIN`] of `count` values lie beyond a percentile.
pub(crate) fn is_scarce(percentile: f64, count: u64) -> bool {
    count.saturating_sub(rank(percentile.max(100.0 - percentile), count)) < BEYOND_MIN
}

/// Finds the highest whole percentile, from 50 to 99, that is not scarce among `count` values.
pub(crate) fn highest_known(count: u64) -> Option<u32> {
    (50..=99).rev().find(|percentile| !is_scarce(f64::from(*percentile), count))
}

pub(crate) fn enough(percentile: f64) -> f64 {
    let beyond = percentile.min(100.0 - percentile) / 100.0;
    (BEYOND_MIN as f64 / beyond * (1.0 - 1e-9)).ceil()
}

/// Most values of both samples whose distribution is counted, not approximated.
const EXACT_MAX: usize = 60;

/// An estimate, its 95 % interval, and the test against "no difference".
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shift {
    pub estimate: f64,
    /// Covers the true shift with at least 95 %; None for too few values.
    pub interval: Option<(f64, f64)>,
    pub p: f64,
    /// The smallest possible `p` of samples of these sizes.
    pub p_least: f64,
}

/// Computes how far the second of two independent samples lies above the first; None without values.
/// `p` is exact, with ties, up to 60 values together, else normal with tie and continuity correction.
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
        exact(&sum_probabilities(&untied(n + m), m), &sum_probabilities(&ranks, m), sum)
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
    Some(Shift { estimate, interval: interval_without(differences, outside), p, p_least })
}

/// Computes how far pairs differ: the Wilcoxon signed-rank test, and the median of the Walsh averages
/// with its interval (Hollander and Wolfe, section 3.3). Zero differences are left out of the test.
pub(crate) fn pairs(differences: &[f64]) -> Option<Shift> {
    let n = differences.len();
    let from = |i: usize| differences[i..].iter().map(move |b| f64::midpoint(differences[i], *b));
    let averages: Vec<f64> = (0..n).flat_map(from).collect();
    let estimate = quantile(&averages, 0.5)?;
    let moved: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let ranks = doubled_ranks(&moved.iter().map(|d| d.abs()).collect::<Vec<f64>>());
    let sum: usize = ranks.iter().zip(&moved).filter(|(_, d)| **d > 0.0).map(|(r, _)| r).sum();
    let (p, p_least, outside) = if n <= EXACT_MAX {
        exact(&signed_sum_probabilities(&untied(n)), &signed_sum_probabilities(&ranks), sum)
    } else {
        let squares: f64 = ranks.iter().map(|r| (*r as f64 / 2.0).powi(2)).sum();
        let mean = ranks.iter().sum::<usize>() as f64 / 4.0;
        let (all, n) = (averages.len() as f64, n as f64);
        let plain = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        approximate(sum as f64 / 2.0 - mean, (squares / 4.0).sqrt(), all, plain)
    };
    Some(Shift { estimate, interval: interval_without(averages, outside), p, p_least })
}

/// Computes an interval that covers the median with at least 95 % for any distribution: order
/// statistics, by the sign test (Hollander and Wolfe, section 3.6). None below six values.
pub(crate) fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len();
    let outside = if n <= EXACT_MAX {
        // As many values lie above the median as a coin shows heads.
        count_outside(&signed_sum_probabilities(&vec![1; n]))
    } else {
        (((n + 1) as f64 - Z_975 * (n as f64).sqrt()) / 2.0).max(0.0) as usize
    };
    interval_without(values.to_vec(), outside)
}

/// Returns p of a sum of ranks, the least possible p, and how many sorted values lie outside the
/// interval, by the probabilities of sums without ties and of these ranks' sums.
fn exact(untied: &[f64], tied: &[f64], sum: usize) -> (f64, f64, usize) {
    let low: f64 = tied.iter().take(sum + 1).sum();
    let high: f64 = tied.iter().skip(sum).sum();
    let two_sided = |tail: f64| (2.0 * tail).min(1.0);
    let least = untied.iter().copied().find(|p| *p > 0.0).unwrap_or(1.0);
    (two_sided(low.min(high)), two_sided(least), count_outside(untied))
}

/// Returns the same by the normal distribution, of a sum so far `off` its mean, of `all` values;
/// `plain` is the deviation without ties.
fn approximate(off: f64, deviation: f64, all: f64, plain: f64) -> (f64, f64, usize) {
    let z = (off.abs() - 0.5).max(0.0) / deviation;
    let p = if deviation > 0.0 { (2.0 * above(z)).min(1.0) } else { 1.0 };
    (p, 0.0, (all / 2.0 - Z_975 * plain).max(0.0) as usize)
}

const Z_975: f64 = 1.959_963_984_540_054;

/// Ranks values in any order from 1, doubled so that those of ties are whole.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let count = |is: &dyn Fn(&f64) -> bool| values.iter().filter(|other| is(other)).count();
    let rank = |value: &f64| {
        2 * count(&|o| o.total_cmp(value).is_lt()) + count(&|o| o.total_cmp(value).is_eq()) + 1
    };
    values.iter().map(rank).collect()
}

fn untied(n: usize) -> Vec<usize> {
    (1..=n).map(|rank| 2 * rank).collect()
}

/// Computes the probability of each sum of `size` ranks, all choices being alike.
fn sum_probabilities(ranks: &[usize], size: usize) -> Vec<f64> {
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
    let ways = ways.swap_remove(size);
    let all: f64 = ways.iter().sum();
    ways.into_iter().map(|way| way / all).collect()
}

/// Computes the probability of each sum of ranks with a positive sign, both signs being alike.
fn signed_sum_probabilities(ranks: &[usize]) -> Vec<f64> {
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

/// Counts the sorted values outside the 95 % interval on either side: that many values of the
/// statistic make up 2.5 % at most. 0 means no interval.
fn count_outside(probabilities: &[f64]) -> usize {
    let below = probabilities.iter().filter(|p| **p > 0.0).scan(0.0, |below, p| {
        *below += p;
        Some(*below)
    });
    below.take_while(|below| *below <= 0.025 + 1e-12).count()
}

/// Returns the interval that leaves this many values outside on either side, less one for its ends.
fn interval_without(mut values: Vec<f64>, outside: usize) -> Option<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let low = outside.checked_sub(1)?;
    Some((*values.get(low)?, *values.get(values.len().checked_sub(outside)?)?))
}

/// Computes the standard normal's probability above `z` ≥ 0, to 1e-7: Abramowitz and Stegun, 26.2.17.
fn above(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429]
        .iter()
        .rev()
        .fold(0.0, |sum, b| (sum + b) * t);
    series * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// Corrects by Holm (Scand. J. Statist. 6, 1979): bounds the chance of a single false finding among all.
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

/// Corrects by Benjamini and Hochberg (J. R. Statist. Soc. B 57, 1995): bounds the expected share of false findings.
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

const REPEATS_LEAST: u32 = 6;
/// Fewer repeats cannot find anything: three against three have p 0.1 at least.
const FINDING_LEAST: u32 = 4;

/// Returns the repeats of the next look: twice as many, so that the looks stay few.
pub(crate) fn next_look(repeats: u32) -> u32 {
    repeats.saturating_mul(2).max(REPEATS_LEAST)
}

/// Counts the looks from the first number of repeats up to the last, both included: p times their
/// number (Bonferroni) corrects for them.
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

/// Values that a series is averaged down to: enough for a change-point, short enough to shuffle, and
/// with less memory between neighbours.
const BLOCKS: usize = 30;
/// Fewest values on each side of a change: fewer are a stall, not a level.
const SIDE_MIN: usize = 3;
/// Upper limit of a series' memory: so few values cannot tell more from a change.
const MEMORY_MAX: f64 = 0.9;
/// The bias of the memory of a fit's residuals: constant and factor over the number of values, by
/// simulation (see the tests).
const BIAS: (f64, f64) = (3.0, 4.0);
const SHUFFLES: u32 = 999;
const BATCHES: usize = 10;
/// Student's t for 95 % on both sides, by degrees of freedom from 2 to 9.
const T95: [f64; 8] = [4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// Position in the series, 0 to 1.
    pub at: f64,
    pub before: f64,
    pub after: f64,
    /// True if a line describes the series better than two levels do.
    pub drift: bool,
    /// The chance of one that is as clear.
    pub p: f64,
}

/// Finds the clearest change of level, whatever its size and `p`; None of a series that is too short
/// or does not vary.
///
/// The place is where the ranks before and after differ most (Pettitt, 1979). Its clearness is the
/// difference of the mean ranks by their spread, as Student's t; `p` counts shuffles that are as
/// clear. Shuffles have no memory, but servers do: their differences are scaled up as those of an
/// autoregressive series with the memory of the residuals (Bayley and Hammersley, 1946).
pub(crate) fn change(values: &[f64]) -> Option<Change> {
    let (all, block) = (values.len(), block(values.len(), BLOCKS));
    let values = averaged(values, BLOCKS);
    if values.len() < 2 * SIDE_MIN {
        return None;
    }
    let ranks = ranks(&values);
    let (at, clear) = clearest_split(&ranks)?;
    if clear == 0.0 {
        return None;
    }
    let (first, last) = values.split_at(at);
    let (before, after) = (median(first)?, median(last)?);
    let level = |i: usize| if i < at { before } else { after };
    let left = |model: &dyn Fn(usize) -> f64| -> Vec<f64> {
        values.iter().enumerate().map(|(i, value)| value - model(i)).collect()
    };
    let (of_levels, of_line) = (left(&level), left(&median_line(&values)?));
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
        as_clear +=
            u32::from(clearest_split(&shuffled).is_some_and(|(_, other)| other * chance >= clear));
    }
    let p = f64::from(as_clear + 1) / f64::from(SHUFFLES + 1);
    Some(Change { at: (at * block) as f64 / all as f64, before, after, drift, p })
}

/// Computes the factor by which this memory enlarges differences of means.
fn inflation(left: &[f64]) -> f64 {
    let n = left.len() as f64;
    let ranks = ranks(left);
    let mean = f64::midpoint(n, 1.0);
    let squares: f64 = ranks.iter().map(|rank| (rank - mean) * (rank - mean)).sum();
    let products: f64 = ranks.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
    if squares <= 0.0 {
        return 1.0;
    }
    // The fit took a part of the memory with it.
    let memory = (products / squares + BIAS.0 / n) / (1.0 - BIAS.1 / n);
    let memory = memory.clamp(0.0, MEMORY_MAX);
    ((1.0 + memory) / (1.0 - memory)).sqrt()
}

fn block(values: usize, most: usize) -> usize {
    values.div_ceil(most).max(1)
}

fn averaged(values: &[f64], most: usize) -> Vec<f64> {
    let size = block(values.len(), most);
    // A shorter last block would be noisier.
    let whole = values.chunks_exact(size);
    whole.map(|chunk| chunk.iter().sum::<f64>() / size as f64).collect()
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    doubled_ranks(values).into_iter().map(|rank| rank as f64 / 2.0).collect()
}

/// Finds where the sum of the ranks before is furthest from chance, and the distance of both means
/// there in standard errors.
fn clearest_split(ranks: &[f64]) -> Option<(usize, f64)> {
    let n = ranks.len();
    let add = |sum: &mut f64, rank: &f64| {
        *sum += rank;
        Some(*sum)
    };
    let sums: Vec<f64> = ranks.iter().scan(0.0, add).collect();
    let off = |at: usize| (2.0 * sums[at - 1] - (at * (n + 1)) as f64).abs();
    let places = SIDE_MIN..=n.checked_sub(SIDE_MIN)?;
    let at = places.reduce(|best, at| if off(at) > off(best) { at } else { best })?;
    let (sum, all, one, other) = (sums[at - 1], sums[n - 1], at as f64, (n - at) as f64);
    let means = (sum / one, (all - sum) / other);
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let within = squares - one * means.0 * means.0 - other * means.1 * means.1;
    let error = (within / (one + other - 2.0) * (1.0 / one + 1.0 / other)).sqrt();
    // Two values only have ranks without a spread on either side.
    let clear = (means.0 - means.1).abs() / error.max(f64::MIN_POSITIVE);
    Some((at, clear))
}

/// Returns the line of the median slope through the medians (Theil and Sen).
fn median_line(values: &[f64]) -> Option<impl Fn(usize) -> f64> {
    let slope = |i: usize, j: usize| (values[j] - values[i]) / (j - i) as f64;
    let slopes = (1..values.len()).flat_map(|j| (0..j).map(move |i| slope(i, j)));
    let slope = median(&slopes.collect::<Vec<f64>>())?;
    let at_zero = values.iter().enumerate().map(|(i, value)| value - slope * i as f64);
    let start = median(&at_zero.collect::<Vec<f64>>())?;
    Some(move |i: usize| start + slope * i as f64)
}

/// Computes half the width of the mean's 95 % interval as a part of the mean, by up to ten batches (M.
/// Schmeiser, 1982); None below three values.
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
mod tests;
