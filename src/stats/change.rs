//! Whether a series kept its level: a change-point by ranks, with a permutation test; and how far
//! a mean may be off, by means of batches.

use crate::workload::random::{Stream, seed_of};

use super::{median, quantile};

/// Values that a series is averaged down to: what a change-point needs, and short enough to
/// shuffle often. It also takes out what neighbours have in common.
const BLOCKS: usize = 60;
/// Values on each side of a change, at least: fewer are a stall, not a level.
const SIDE_MIN: usize = 3;
/// Shuffles of the permutation test.
const SHUFFLES: u32 = 999;
/// Batches for the error of a mean.
const BATCHES: usize = 10;
/// Student's t for 95 % on both sides, by degrees of freedom from 2 to 9.
const T95: [f64; 8] = [4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// A change of a series' level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Where it is, as a part of the series, 0 to 1.
    pub at: f64,
    /// The level before it (a median).
    pub before: f64,
    /// The level after it.
    pub after: f64,
    /// Whether a line from the beginning to the end describes it better than two levels do.
    pub drift: bool,
    /// How often chance makes one that is as clear, at most.
    pub p: f64,
}

/// The clearest change of level, whatever its size and its `p`; None of a series that is too
/// short to have one, or that does not vary.
///
/// The place is where the ranks of the values before differ most from those after: A. N. Pettitt,
/// "A non-parametric approach to the change-point problem" (1979). How likely chance makes such
/// a difference is counted among shuffles of the same values.
pub fn change(values: &[f64]) -> Option<Change> {
    let values = averaged(values, BLOCKS);
    if values.len() < 2 * SIDE_MIN {
        return None;
    }
    let ranks = ranks(&values);
    let (at, difference) = split(&ranks)?;
    if difference == 0.0 {
        return None;
    }
    let mut stream = Stream::new(seed_of(&[values.len() as u64]));
    let mut shuffled = ranks.clone();
    let mut as_clear = 0;
    for _ in 0..SHUFFLES {
        for i in (1..shuffled.len()).rev() {
            let j = stream.below(i as u64 + 1) as usize;
            shuffled.swap(i, j);
        }
        as_clear += u32::from(split(&shuffled).is_some_and(|(_, other)| other >= difference));
    }
    let (first, last) = values.split_at(at);
    let (before, after) = (median(first)?, median(last)?);
    let level = |i: usize| if i < at { before } else { after };
    let off = |model: &dyn Fn(usize) -> f64| -> f64 {
        values.iter().enumerate().map(|(i, value)| (value - model(i)).abs()).sum()
    };
    let line = line(&values)?;
    Some(Change {
        at: at as f64 / values.len() as f64,
        before,
        after,
        drift: off(&line) < off(&level),
        p: f64::from(as_clear + 1) / f64::from(SHUFFLES + 1),
    })
}

/// Neighbours averaged until there are so many values at most.
fn averaged(values: &[f64], most: usize) -> Vec<f64> {
    let size = values.len().div_ceil(most).max(1);
    // The rest at the end would be a shorter average, and noisier.
    let whole = values.chunks_exact(size);
    whole.map(|chunk| chunk.iter().sum::<f64>() / size as f64).collect()
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count() as f64;
    let equal =
        |value: f64| values.iter().filter(|other| other.total_cmp(&value).is_eq()).count() as f64;
    values.iter().map(|value| below(*value) + f64::midpoint(equal(*value), 1.0)).collect()
}

/// Where the sum of the ranks before is furthest from what chance makes it, and how far.
fn split(ranks: &[f64]) -> Option<(usize, f64)> {
    let n = ranks.len();
    let mut sum = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (i, rank) in ranks.iter().enumerate() {
        sum += rank;
        let before = i + 1;
        if before < SIDE_MIN || n - before < SIDE_MIN {
            continue;
        }
        let off = (2.0 * sum - (before * (n + 1)) as f64).abs();
        if best.is_none_or(|(_, most)| off > most) {
            best = Some((before, off));
        }
    }
    best
}

/// The line of the median slope through the medians (Theil and Sen).
fn line(values: &[f64]) -> Option<impl Fn(usize) -> f64> {
    let mut slopes = Vec::new();
    for (i, one) in values.iter().enumerate() {
        let later = values.iter().enumerate().skip(i + 1);
        slopes.extend(later.map(|(j, other)| (other - one) / (j - i) as f64));
    }
    let slope = median(&slopes)?;
    let at_zero: Vec<f64> =
        values.iter().enumerate().map(|(i, value)| value - slope * i as f64).collect();
    let start = quantile(&at_zero, 0.5)?;
    Some(move |i: usize| start + slope * i as f64)
}

/// Half of the width of the mean's 95 % interval as a part of the mean, by means of up to ten
/// batches (M. Schmeiser, "Batch size effects in the analysis of simulation output", 1982); None
/// of fewer than three values, which tell nothing.
pub fn relative_error(values: &[f64]) -> Option<f64> {
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
