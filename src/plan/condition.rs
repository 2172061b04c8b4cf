//! What a number must be: `p99<2ms`, `qps>=10k`, `errors==0`. A gate and a service level are
//! such conditions.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

use super::units::{parse_count, parse_percent, parse_thousandths, parse_time};

const NS_PER_US: f64 = 1e3;
/// Most digits after the point of a percentile, as of a report's.
const PERCENTILE_DECIMALS_MAX: usize = 6;
/// Metrics, as an error names them.
const METRICS: &str = "p50, p99, p99.9 and other percentiles, mean, max, min, qps, tps or errors";
/// The signs, the longer ones first.
const SIGNS: [&str; 5] = ["<=", ">=", "==", "<", ">"];

#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    metric: Metric,
    range: (Bound<f64>, Bound<f64>),
}

/// The subject of a condition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Metric {
    /// Statements a second.
    Qps,
    /// Ops a second.
    Tps,
    /// A percentile of the latency, microseconds: between 0 and 100, without both.
    Percentile(f64),
    /// Mean latency, microseconds.
    Mean,
    /// Largest latency, microseconds.
    Max,
    /// Smallest latency, microseconds.
    Min,
    /// Errors, all phases.
    Errors,
    /// Errors as a share of the ops of the window.
    ErrorShare,
}

impl Metric {
    /// Tells whether it is a time, of which an open loop has two.
    pub(crate) fn is_latency(self) -> bool {
        matches!(self, Metric::Percentile(_) | Metric::Mean | Metric::Max | Metric::Min)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Metric::Qps => "qps",
            Metric::Tps => "tps",
            Metric::Percentile(percentile) => return write!(f, "p{percentile}"),
            Metric::Mean => "mean",
            Metric::Max => "max",
            Metric::Min => "min",
            Metric::Errors | Metric::ErrorShare => "errors",
        })
    }
}

impl Condition {
    pub(crate) fn metric(&self) -> Metric {
        self.metric
    }

    /// The values for which it holds, in the metric's unit: microseconds, a second, a count, or
    /// a share of one.
    pub(crate) fn range(&self) -> (Bound<f64>, Bound<f64>) {
        self.range
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    /// The place in the text, the mistake, and the remedy.
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let at = |byte: usize, what: &str| {
            let column = text.get(..byte).unwrap_or(text).chars().count() + 1;
            format!("'{text}', column {column}: {what}")
        };
        let begin = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
        let Some(from) = text.find(['<', '>', '=', '!']) else {
            let what = "a comparison is missing: < <= > >= or ==, such as p99<2ms";
            return Err(at(text.len(), what));
        };
        let (name, rest) = text.split_at(from);
        let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) else {
            let what = if rest.starts_with('!') {
                "!= is no comparison here: < <= > >= or =="
            } else {
                "a single = is no comparison: == is"
            };
            return Err(at(from, what));
        };
        let value = rest.get(sign.len()..).unwrap_or_default();
        let metric = metric(name.trim())
            .ok_or_else(|| at(begin(name.trim_start()), &unknown(name.trim())))?;
        let wanted = value.trim();
        let place = begin(value.trim_start());
        let (metric, limit) = threshold(metric, wanted).map_err(|what| at(place, &what))?;
        let range = match sign {
            "<" => (Bound::Unbounded, Bound::Excluded(limit)),
            "<=" => (Bound::Unbounded, Bound::Included(limit)),
            ">" => (Bound::Excluded(limit), Bound::Unbounded),
            ">=" => (Bound::Included(limit), Bound::Unbounded),
            _ => (Bound::Included(limit), Bound::Included(limit)),
        };
        let text = format!("{}{sign}{wanted}", name.trim());
        Ok(Condition { text, metric, range })
    }
}

/// A service level: what a search for the highest rate can hold.
///
/// # Errors
///
/// Those of a condition; what bounds no latency and no errors from above.
pub(crate) fn parse_level(text: &str) -> Result<Condition, String> {
    let condition: Condition = text.parse()?;
    let rate = matches!(condition.metric, Metric::Qps | Metric::Tps);
    let bounded = condition.range.1 != Bound::Unbounded && condition.range.contains(&0.0);
    if rate || !bounded {
        return Err(format!(
            "'{condition}' is no service level: these bound a latency or errors from above, such as \
             p99<2ms, errors<0.1% or errors==0"
        ));
    }
    Ok(condition)
}

fn metric(name: &str) -> Option<Metric> {
    Some(match name {
        "qps" => Metric::Qps,
        "tps" => Metric::Tps,
        "mean" => Metric::Mean,
        "median" => Metric::Percentile(50.0),
        "max" => Metric::Max,
        "min" => Metric::Min,
        "errors" => Metric::Errors,
        other => Metric::Percentile(percentile(other)?),
    })
}

/// `p99.9`, plain digits only.
fn percentile(name: &str) -> Option<f64> {
    let digits = name.strip_prefix('p')?;
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if !plain || decimals > PERCENTILE_DECIMALS_MAX {
        return None;
    }
    digits.parse().ok().filter(|value| *value > 0.0 && *value < 100.0)
}

fn unknown(name: &str) -> String {
    match name {
        "" => format!("a metric is missing: {METRICS}"),
        name => format!("'{name}' is no metric of a condition: {METRICS}"),
    }
}

/// The value that is compared with, in the metric's unit; a share makes errors one.
fn threshold(metric: Metric, text: &str) -> Result<(Metric, f64), String> {
    if text.is_empty() {
        return Err("a value is missing, such as 2ms, 10k or 0".to_owned());
    }
    if metric.is_latency() {
        if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return Err(format!("a time needs its unit: {text}ms or {text}us?"));
        }
        return Ok((metric, parse_time(text)? as f64 / NS_PER_US));
    }
    match metric {
        Metric::Errors if text.ends_with('%') => Ok((Metric::ErrorShare, parse_percent(text)?)),
        Metric::Errors => Ok((metric, parse_count(text)? as f64)),
        _ => Ok((metric, parse_thousandths(text)? as f64 / 1e3)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn condition(text: &str) -> Condition {
        text.parse().unwrap_or_else(|what| panic!("{what}"))
    }

    #[test]
    fn conditions_hold_on_their_side_of_the_value() {
        for (text, shown, metric, holds, fails) in [
            ("p99<2ms", "p99<2ms", Metric::Percentile(99.0), 1999.9, 2000.0),
            ("p99.9 <= 500us", "p99.9<=500us", Metric::Percentile(99.9), 500.0, 500.1),
            ("median<500µs", "median<500µs", Metric::Percentile(50.0), 1.0, 501.0),
            ("qps>=10k", "qps>=10k", Metric::Qps, 10_000.0, 9_999.9),
            ("tps>0.5", "tps>0.5", Metric::Tps, 0.6, 0.5),
            ("errors==0", "errors==0", Metric::Errors, 0.0, 1.0),
            ("errors<0.1%", "errors<0.1%", Metric::ErrorShare, 0.0009, 0.001),
            (" mean < 1ms ", "mean<1ms", Metric::Mean, 0.0, 1000.0),
            ("max<1s", "max<1s", Metric::Max, 999_999.0, 1e6),
            ("min>100ns", "min>100ns", Metric::Min, 0.2, 0.1),
        ] {
            let condition = condition(text);
            assert_eq!(condition.to_string(), shown);
            assert_eq!(condition.metric(), metric, "{text}");
            let range = condition.range();
            assert!(range.contains(&holds) && !range.contains(&fails), "{text}");
            assert!(!range.contains(&f64::NAN), "{text}: what is no number holds nothing");
        }
    }

    #[test]
    fn errors_say_where_and_what_would_be_right() {
        for (text, column, says) in [
            ("p99", 4, "comparison is missing"),
            ("p99=2ms", 4, "== is"),
            ("p99!=2ms", 4, "!="),
            ("<2ms", 1, "metric is missing"),
            ("p100<2ms", 1, "'p100'"),
            ("pNaN<2ms", 1, "'pNaN'"),
            ("p1.2.3<2ms", 1, "'p1.2.3'"),
            (" speed>1", 2, "'speed'"),
            ("p99<", 5, "value is missing"),
            ("p99< 2", 6, "2ms or 2us?"),
            ("p99<2h", 5, "unit 'h'"),
            ("µs<2ms", 1, "'µs'"),
            ("qps>=fast", 6, "'fast'"),
            ("qps>=10%", 6, "'10%'"),
            ("errors<x%", 8, "'x%'"),
            ("errors<1.5", 8, "'1.5'"),
        ] {
            let error = text.parse::<Condition>().expect_err(text);
            assert!(error.contains(&format!("column {column}:")), "{error}");
            assert!(error.contains(says), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,30}", like in "(p99|errors|qps)? ?[<>=!]{0,2} ?[0-9.%a-zµ]{0,6}") {
            for text in [text, like] {
                if let Ok(condition) = text.parse::<Condition>() {
                    prop_assert_eq!(condition.to_string().parse::<Condition>(), Ok(condition));
                }
            }
        }
    }
}
