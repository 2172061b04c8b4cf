//! Whether a series kept its level: a change-point by ranks, with a permutation test; and how far
//! a mean may be off, by means of batches.

use crate::workload::{Stream, seed_of};

use super::median;
use super::rank::doubled_ranks;

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
mod tests {
    use proptest::prelude::*;

    use super::*;

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
