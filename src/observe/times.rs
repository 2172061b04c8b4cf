//! Times, nanoseconds: a histogram with exact sums, and its form in a summary.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::histogram::DIGITS;
use crate::terms::add;

/// The largest time that the histogram distinguishes: one hour, in nanoseconds.
const RANGE_NS: u64 = 3_600_000_000_000;

/// A distribution of times. Percentiles come from the histogram (3 significant digits);
/// min, max, mean and deviation from exact sums. All null when nothing was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Values counted, those above the histogram's range included.
    pub count: u64,
    /// Smallest, microseconds.
    pub min_us: Option<f64>,
    /// Mean, microseconds.
    pub mean_us: Option<f64>,
    /// Standard deviation (of the population), microseconds.
    pub stddev_us: Option<f64>,
    /// Median, microseconds.
    pub p50_us: Option<f64>,
    /// 75th percentile, microseconds.
    pub p75_us: Option<f64>,
    /// 90th percentile, microseconds.
    pub p90_us: Option<f64>,
    /// 95th percentile, microseconds.
    pub p95_us: Option<f64>,
    /// 99th percentile, microseconds.
    pub p99_us: Option<f64>,
    /// 99.9th percentile, microseconds.
    pub p99_9_us: Option<f64>,
    /// 99.99th percentile, microseconds.
    pub p99_99_us: Option<f64>,
    /// Largest, microseconds.
    pub max_us: Option<f64>,
    /// Values above the histogram's range of one hour; they count as one hour in percentiles.
    pub overflow: u64,
    /// `HdrHistogram` V2, deflated, base64; values in nanoseconds.
    pub histogram: String,
    /// The percentiles that a chart draws, for a reader that does not keep the histogram.
    #[serde(skip)]
    pub curve_us: Option<Box<[f64]>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    #[serde(with = "super::histogram")]
    histogram: Histogram<u64>,
    overflow: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
    sum_of_squares: u128,
}

impl Default for Times {
    /// Makes an empty one of 16 kB; it grows by 8 kB each time the largest time doubles.
    fn default() -> Times {
        Times {
            histogram: Histogram::new(DIGITS).expect("digits that it can have"),
            overflow: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
            sum_of_squares: 0,
        }
    }
}

impl Times {
    pub fn new() -> Times {
        Times::default()
    }

    /// Counts one time. Above one hour it is an overflow and, in percentiles, one hour.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts one time `n` times.
    #[inline]
    pub(super) fn record_n(&mut self, ns: u64, n: u64) {
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns) * u128::from(n);
        self.sum_of_squares += u128::from(ns) * u128::from(ns) * u128::from(n);
        if ns > RANGE_NS {
            self.overflow += n;
        }
        self.histogram.record_n(ns.clamp(1, RANGE_NS), n).expect("it grows");
    }

    pub(crate) fn merge(&mut self, other: &Times) {
        if other.count() == 0 {
            return;
        }
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        add!(self, other; sum_ns, sum_of_squares, overflow);
        self.histogram.add(&other.histogram).expect("it grows");
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the percentile (0 to 100), microseconds; None without times.
    pub(crate) fn percentile_us(&self, percentile: f64) -> Option<f64> {
        // A bucket's upper edge may lie above the largest time.
        let quantile = nearest_rank(percentile, self.count());
        (self.count() > 0).then(|| us(self.histogram.value_at_quantile(quantile).min(self.max_ns)))
    }

    pub(crate) fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    pub(crate) fn extremes_ns(&self) -> Option<(u64, u64)> {
        (self.count() > 0).then_some((self.min_ns, self.max_ns))
    }

    /// Lists the histogram's times, nanoseconds, ascending, with their counts.
    pub(crate) fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        let middle = |ns| self.histogram.median_equivalent(ns);
        self.histogram
            .iter_recorded()
            .map(move |step| (middle(step.value_iterated_to()), step.count_since_last_iteration()))
    }

    pub(crate) fn max_us(&self) -> Option<f64> {
        (self.count() > 0).then(|| us(self.max_ns))
    }

    pub(crate) fn distribution(&self) -> Distribution {
        let count = self.count();
        let some = |value: f64| (count > 0).then_some(value);
        let n = count as f64;
        let mean_ns = self.sum_ns as f64 / n;
        let variance = (self.sum_of_squares as f64 / n - mean_ns * mean_ns).max(0.0);
        Distribution {
            count,
            min_us: some(us(self.min_ns)),
            mean_us: some(mean_ns / 1e3),
            stddev_us: some(variance.sqrt() / 1e3),
            p50_us: self.percentile_us(50.0),
            p75_us: self.percentile_us(75.0),
            p90_us: self.percentile_us(90.0),
            p95_us: self.percentile_us(95.0),
            p99_us: self.percentile_us(99.0),
            p99_9_us: self.percentile_us(99.9),
            p99_99_us: self.percentile_us(99.99),
            max_us: self.max_us(),
            overflow: self.overflow,
            histogram: self.encoded(),
            curve_us: None,
        }
    }

    /// Encodes as HdrHistogram V2, deflated, base64: the exchange format of the HdrHistogram tools.
    pub(crate) fn encoded(&self) -> String {
        // Some tools add only histograms of one range.
        let mut whole = Histogram::new_with_bounds(1, RANGE_NS, DIGITS).expect("bounds that fit");
        whole.add(&self.histogram).expect("the range holds it");
        let mut bytes = Vec::new();
        let written = V2DeflateSerializer::new().serialize(&whole, &mut bytes);
        written.expect("a Vec takes everything");
        STANDARD.encode(bytes)
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Returns the quantile at which a histogram of `count` values gives the nearest-rank percentile
/// despite rounding (99.9 % of 5,000 is 4,995): the middle of the rank's step.
pub(crate) fn nearest_rank(percentile: f64, count: u64) -> f64 {
    (rank(percentile, count) as f64 - 0.5) / count.max(1) as f64
}

/// Returns the nearest rank, from 1: ceil(p% of count).
pub(crate) fn rank(percentile: f64, count: u64) -> u64 {
    let n = count.max(1) as f64;
    let exact = percentile * n / 100.0;
    let whole = exact.round();
    let rank = if (exact - whole).abs() <= whole * 1e-12 { whole } else { exact.ceil() };
    rank.clamp(1.0, n) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Times {
        let mut times = Times::new();
        for value in values {
            times.record(*value);
        }
        times
    }

    #[test]
    fn sums_are_exact_and_percentiles_have_three_digits() {
        let d = of(&[100_000, 200_000, 300_000, 400_000]).distribution();
        assert_eq!((d.count, d.min_us, d.max_us), (4, Some(100.0), Some(400.0)));
        assert_eq!(d.mean_us, Some(250.0));
        assert!((d.stddev_us.expect("counted") - 111.803_398_9).abs() < 1e-6);
        assert!((d.p50_us.expect("counted") / 200.0 - 1.0).abs() < 1e-3);
        assert_eq!(d.p99_99_us, Some(400.0));
    }

    #[test]
    fn nothing_counted_is_null_not_zero() {
        let d = of(&[]).distribution();
        assert_eq!((d.count, d.mean_us, d.p50_us, d.max_us), (0, None, None, None));
    }

    #[test]
    fn time_counts_as_often_as_it_is_said_to() {
        let mut times = of(&[1_000]);
        times.record_n(RANGE_NS + 1, 3);
        assert_eq!(times, of(&[1_000, RANGE_NS + 1, RANGE_NS + 1, RANGE_NS + 1]));
    }

    #[test]
    fn above_an_hour_is_counted_not_clipped_unnoticed() {
        let d = of(&[1_000, RANGE_NS, RANGE_NS + 1, u64::MAX / 4]).distribution();
        assert_eq!((d.count, d.overflow), (4, 2));
        assert_eq!(d.max_us, Some((u64::MAX / 4) as f64 / 1e3));
    }

    proptest! {
        #[test]
        fn merged_equals_recorded_together(
            a in prop::collection::vec(0_u64..10_000_000_000, 0..60),
            b in prop::collection::vec(0_u64..10_000_000_000, 0..60),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let together = of(&[a, b].concat());
            prop_assert_eq!(
                merged.distribution(),
                together.distribution()
            );
        }
    }
}
