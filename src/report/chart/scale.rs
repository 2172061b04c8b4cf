//! Values onto an axis, and the values that an axis names.

use super::super::page::number;

/// Ticks that an axis from zero aims at.
const TICKS: f64 = 5.0;

/// The way in which values lie along an axis. Bounds are finite, and the first is below the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    /// Equal differences are equal lengths.
    Linear(f64, f64),
    /// Equal ratios are equal lengths; bounds above zero.
    Log(f64, f64),
    /// Shares of all values below 1, as in HDR plots: log(1/(1-share)), from 0 up to this share.
    Tail(f64),
}

impl Scale {
    /// Tells where a value lies, 0 at the axis's start and 1 at its end.
    pub(crate) fn at(self, value: f64) -> f64 {
        let tail = |share: f64| -(1.0 - share.clamp(0.0, 1.0)).max(f64::MIN_POSITIVE).log10();
        let at = match self {
            Scale::Linear(from, to) => (value - from) / (to - from),
            Scale::Log(from, to) => {
                (value.max(f64::MIN_POSITIVE) / from).log10() / (to / from).log10()
            }
            Scale::Tail(to) => tail(value) / tail(to),
        };
        if at.is_nan() { 0.0 } else { at.clamp(0.0, 1.0) }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) text: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// With the unit.
    pub(crate) name: String,
    pub(crate) scale: Scale,
    pub(crate) ticks: Vec<Tick>,
}

impl Axis {
    /// From zero to a round number above all values.
    pub(crate) fn from_zero(name: impl Into<String>, values: impl Iterator<Item = f64>) -> Axis {
        let max = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let max = if max > 0.0 { max } else { 1.0 };
        Axis::round(name, 0.0, max)
    }

    /// Every other tick, for a low chart; the first and the last stay.
    pub(crate) fn sparse(mut self) -> Axis {
        let last = self.ticks.len().saturating_sub(1);
        // So many steps between ticks as divide the axis evenly, else only its ends.
        let every = [2, 3].into_iter().find(|n| last.is_multiple_of(*n)).unwrap_or(last).max(1);
        let mut at = 0..;
        if last > 2 {
            self.ticks.retain(|_| at.next().is_some_and(|at: usize| at.is_multiple_of(every)));
        }
        self
    }

    /// Round numbers around all values, without zero: for ratios, whose zero is 1.
    pub(crate) fn around(
        name: impl Into<String>,
        centre: f64,
        values: impl Iterator<Item = f64>,
    ) -> Axis {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((centre, centre), |(low, high), value| (low.min(value), high.max(value)));
        let room = ((high - low) / 10.0).max(centre * 0.02);
        Axis::round(name, (low - room).max(0.0), high + room)
    }

    fn round(name: impl Into<String>, low: f64, high: f64) -> Axis {
        let step = nice((high - low) / TICKS);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let decimals = if step >= 1.0 { 0 } else { (-step.log10()).ceil() as usize };
        // A handful whatever the values, because the step is their range over five.
        let count = (last - first).clamp(1.0, 4.0 * TICKS) as u32;
        let ticks = (0..=count).map(|i| {
            let at = (first + f64::from(i)) * step;
            Tick { at, text: short(at, decimals) }
        });
        let scale = Scale::Linear(first * step, (first + f64::from(count)) * step);
        Axis { name: name.into(), scale, ticks: ticks.collect() }
    }

    /// Logarithmic, from a power of ten to another, around all values above zero.
    pub(crate) fn decades(name: impl Into<String>, values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let last = last.max(first + 1);
        let decade = |power: i32| 10_f64.powi(power);
        // Within three decades 2 and 5 help to read.
        let between: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut ticks = Vec::new();
        for power in first..=last {
            let decimals = usize::try_from(-power).unwrap_or(0);
            let values = between.iter().map(|m| m * decade(power));
            let values = values.filter(|at| *at <= decade(last));
            ticks.extend(values.map(|at| Tick { at, text: short(at, decimals) }));
        }
        Axis { name: name.into(), scale: Scale::Log(decade(first), decade(last)), ticks }
    }

    /// Logarithmic, ticks where something was measured.
    pub(crate) fn doublings(name: impl Into<String>, values: &[f64]) -> Axis {
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(*v), high.max(*v)));
        // A single value stands in the middle.
        let scale = match (low, high) {
            (low, high) if low < high => Scale::Log(low, high),
            (low, _) if low.is_finite() => Scale::Log(low / 2.0, low * 2.0),
            _ => Scale::Log(1.0, 2.0),
        };
        let decimals = usize::from(values.iter().any(|value| value.fract() != 0.0));
        let ticks = values.iter().map(|at| Tick { at: *at, text: short(*at, decimals) });
        Axis { name: name.into(), scale, ticks: ticks.collect() }
    }

    /// Percentiles up to the share that so many values can tell.
    pub(crate) fn percentiles(name: impl Into<String>, share: f64) -> Axis {
        const NAMED: [(f64, &str); 9] = [
            (0.0, "0"),
            (0.5, "50"),
            (0.9, "90"),
            (0.99, "99"),
            (0.999, "99.9"),
            (0.9999, "99.99"),
            (0.99999, "99.999"),
            (0.999_999, "99.9999"),
            (0.999_999_9, "99.99999"),
        ];
        let ticks = NAMED.iter().filter(|(at, _)| *at <= share);
        let ticks = ticks.map(|(at, text)| Tick { at: *at, text: (*text).to_owned() });
        Axis { name: name.into(), scale: Scale::Tail(share), ticks: ticks.collect() }
    }

    /// From zero, ending where the values end: for times.
    pub(crate) fn elapsed(name: impl Into<String>, end: f64) -> Axis {
        let end = if end.is_finite() && end > 0.0 { end } else { 1.0 };
        let round = Axis::round(name, 0.0, end);
        let ticks = round.ticks.into_iter().filter(|tick| tick.at <= end);
        Axis { scale: Scale::Linear(0.0, end), ticks: ticks.collect(), ..round }
    }
}

/// Returns the next of 1, 2, 5, 10 … times a power of ten.
fn nice(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let power = if power.is_finite() && power > 0.0 { power } else { 1.0 };
    let of = |factor: f64| factor * power;
    [1.0, 2.0, 5.0].map(of).into_iter().find(|nice| *nice >= step * 0.999).unwrap_or(of(10.0))
}

/// Returns a number with `k`, `M` or `G` where that leaves it short.
pub(crate) fn short(value: f64, decimals: usize) -> String {
    for (unit, suffix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        let scaled = value / unit;
        if scaled.abs() >= 1.0 {
            let whole = |digits: i32| (scaled * 10_f64.powi(digits)).fract().abs() < 1e-9;
            let fits = (0..=2).find(|digits| whole(*digits));
            // As 1024 is: digits say more than a unit.
            return fits.map_or_else(
                || number(value, decimals),
                |digits| format!("{}{suffix}", number(scaled, digits as usize)),
            );
        }
    }
    number(value, decimals)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers_that_reach_around_the_values() {
        let axis = Axis::from_zero("QPS", [26747.0, 114_046.0].into_iter());
        assert_eq!(texts(&axis), ["0", "50k", "100k", "150k"]);
        assert_eq!(axis.scale, Scale::Linear(0.0, 150_000.0));
        let small = Axis::from_zero("ms", [0.31, 0.07].into_iter());
        assert_eq!(texts(&small), ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        let ratio = Axis::around("ratio", 1.0, [0.93, 1.02].into_iter());
        assert_eq!(texts(&ratio), ["0.90", "0.95", "1.00", "1.05"]);
        assert_eq!(texts(&axis.sparse()), ["0", "150k"]);
        assert_eq!(texts(&small.sparse()), ["0.0", "0.2", "0.4"]);
        assert_eq!(texts(&Axis::from_zero("errors", std::iter::empty()))[0], "0.0");
    }

    #[test]
    fn doublings_name_what_was_measured() {
        let axis = Axis::doublings("clients", &[8.0, 16.0, 256.0, 4096.0, 10_000.0]);
        assert_eq!(texts(&axis), ["8", "16", "256", "4096", "10k"]);
        let at = axis.scale.at(16.0);
        assert!((at - 1.0 / (10_000_f64 / 8.0).log2()).abs() < 1e-12, "{at}");
        assert!((Axis::doublings("clients", &[64.0]).scale.at(64.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn each_nine_of_a_percentile_takes_the_same_length() {
        let scale = Scale::Tail(0.9999);
        let at = [0.0, 0.9, 0.99, 0.999, 0.9999].map(|share| (scale.at(share) * 4.0).round());
        assert_eq!(
            at.map(|at: f64| (at * 1e9).round() as i64),
            [0, 1, 2, 3, 4].map(|at| at * 1_000_000_000)
        );
        assert_eq!(texts(&Axis::percentiles("percentile", 0.9999)).last(), Some(&"99.99"));
    }

    #[test]
    fn decades_hold_their_values() {
        let axis = Axis::decades("ms", [0.07, 9.0].into_iter());
        assert_eq!(axis.scale, Scale::Log(0.01, 10.0));
        assert_eq!(texts(&axis), ["0.01", "0.1", "1", "10"]);
        let close = Axis::decades("ms", [0.2, 3.0].into_iter());
        assert_eq!(texts(&close), ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
    }

    #[test]
    fn a_time_axis_ends_with_the_time() {
        let axis = Axis::elapsed("s", 70.2);
        assert_eq!(axis.scale, Scale::Linear(0.0, 70.2));
        assert_eq!(texts(&axis), ["0", "20", "40", "60"]);
    }

    proptest! {
        #[test]
        fn no_value_leaves_the_axis(values in prop::collection::vec(any::<f64>(), 0..9), at: f64) {
            let all = || values.iter().copied();
            let positive: Vec<f64> = all().filter(|v| *v > 0.0 && v.is_finite()).collect();
            for axis in [
                Axis::from_zero("", all()),
                Axis::around("", 1.0, all()),
                Axis::decades("", all()),
                Axis::doublings("", &positive),
                Axis::elapsed("", at),
                Axis::percentiles("", 1.0 - 1e-6),
            ] {
                let on = axis.scale.at(at);
                prop_assert!((0.0..=1.0).contains(&on), "{axis:?} {on}");
                prop_assert!(axis.ticks.len() < 800);
            }
        }
    }
}
