//! Conditions on numbers: `p99<2ms`, `qps>=10k`, `errors==0`. Gates and service levels are conditions.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;

use super::GroupName;
use super::units::{parse_count, parse_percent, parse_thousandths, parse_time};

/// Upper limit on the decimals of a percentile: `p99.9999` needs ten million ops already.
const PERCENTILE_DECIMALS_MAX: usize = 6;
const METRICS: &str = "p50, p99, p99.9 and other percentiles, mean, max, min, connect.p99 and so on, qps, tps or \
                       errors";
/// The name before a property of log-ins, which no group beside has.
pub(crate) const LOG_INS: &str = "connect";

/// A condition on a number of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    pub text: String,
    /// The group beside whose number it is; None for the measured clients.
    pub group: Option<GroupName>,
    pub quantity: Quantity,
    /// The values for which it holds: microseconds, per second, a count, or a share of one.
    pub range: (Bound<f64>, Bound<f64>),
}

/// The number of a gate; of several repeats the median, of errors the sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    Qps,
    Tps,
    /// A property of the response time in an open loop, else of the service time.
    Latency(Property),
    /// A property of the time of log-ins.
    Connect(Property),
    /// Errors and ops without an answer, all phases.
    Errors,
    /// Ops of the window that failed, are in doubt or were given up, as a share of them.
    ErrorShare,
}

/// A property of a distribution of times, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Property {
    Percentile(Percentile),
    Mean,
    Max,
    Min,
    Stddev,
}

/// A percentile between 0 and 100, without both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile(pub(crate) f64);

impl Percentile {
    /// Lists the usual percentiles below it, the highest first.
    pub(crate) fn lower(self) -> impl Iterator<Item = Percentile> {
        let usual = [99.9, 99.0, 95.0, 90.0, 75.0, 50.0];
        usual.into_iter().filter(move |lower| *lower < self.0).map(Percentile)
    }

    /// Reads `p99.9`; plain digits only, so that neither `pNaN` nor `p1e1` passes.
    fn parse(text: &str) -> Option<Percentile> {
        let digits = text.strip_prefix('p')?;
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !plain(whole) || !plain(decimals) || decimals.len() > PERCENTILE_DECIMALS_MAX {
            return None;
        }
        let value: f64 = digits.parse().ok()?;
        (value > 0.0 && value < 100.0).then_some(Percentile(value))
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// The names of properties. The first one of a meaning is shown.
const PROPERTIES: [(&str, Property); 6] = [
    ("mean", Property::Mean),
    ("avg", Property::Mean),
    ("median", Property::Percentile(Percentile(50.0))),
    ("max", Property::Max),
    ("min", Property::Min),
    ("stddev", Property::Stddev),
];

impl Property {
    pub(crate) fn parse(name: &str) -> Option<Property> {
        let known = PROPERTIES.iter().find(|(known, _)| *known == name).map(|(_, known)| *known);
        known.or_else(|| Percentile::parse(name).map(Property::Percentile))
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Property::Percentile(percentile) = self {
            return percentile.fmt(f);
        }
        let known = PROPERTIES.iter().find(|(_, known)| known == self);
        f.write_str(known.expect("all others are there").0)
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Gate, String> {
        // Quote the text behind the mistake.
        let at = |rest: &str, what: &str| {
            let column = text[..text.len() - rest.len()].chars().count() + 1;
            format!("'{text}', column {column}: {what}")
        };
        let Some(from) = text.find(['<', '>', '=', '!']) else {
            return Err(at("", "a comparison is missing: < <= > >= or ==, such as p99<2ms"));
        };
        let (name, comparison) = text.split_at(from);
        let sign =
            ["<=", ">=", "==", "<", ">", "="].into_iter().find(|s| comparison.starts_with(s));
        let Some(sign) = sign else {
            let what = "!= is no comparison here: < <= > >= or ==";
            return Err(at(comparison, what));
        };
        let (name, value) = (name.trim(), comparison[sign.len()..].trim_start());
        let named = quantity_of(name).map_err(|what| at(text.trim_start(), &what));
        let (group, quantity) = named?;
        // Blanks may separate a value and its unit.
        let compact: String = value.split_whitespace().collect();
        let (quantity, limit) = threshold(quantity, &compact).map_err(|what| at(value, &what))?;
        let range = match sign {
            "<" => (Bound::Unbounded, Bound::Excluded(limit)),
            "<=" => (Bound::Unbounded, Bound::Included(limit)),
            ">" => (Bound::Excluded(limit), Bound::Unbounded),
            ">=" => (Bound::Included(limit), Bound::Unbounded),
            _ => (Bound::Included(limit), Bound::Included(limit)),
        };
        let sign = if sign == "=" { "==" } else { sign };
        Ok(Gate { text: format!("{name}{sign}{compact}"), group, quantity, range })
    }
}

/// Parses a service level, which a search for the highest rate can hold: an upper bound on latency or errors.
pub(crate) fn parse_level(text: &str) -> Result<Gate, String> {
    let gate: Gate = text.parse()?;
    if gate.group.is_some() {
        return Err(format!(
            "'{gate}' is of a group beside, and a search is for the measured clients"
        ));
    }
    let other = matches!(gate.quantity, Quantity::Qps | Quantity::Tps | Quantity::Connect(_));
    if other || gate.range.1 == Bound::Unbounded || !gate.range.contains(&0.0) {
        return Err(format!(
            "'{gate}' is no service level: these bound a latency or errors from above, such as \
             p99<2ms, errors<0.1% or errors==0"
        ));
    }
    Ok(gate)
}

/// Reads a metric, or GROUP.METRIC; percentiles have dots, too.
fn quantity_of(name: &str) -> Result<(Option<GroupName>, Quantity), String> {
    let own = quantity(name);
    let of_group = || {
        let (group, metric) =
            name.split_once('.').filter(|(name, _)| own.is_err() && *name != LOG_INS)?;
        Some((Some(group.parse().ok()?), quantity(metric).ok()?))
    };
    of_group().map_or_else(|| own.clone().map(|quantity| (None, quantity)), Ok)
}

fn quantity(name: &str) -> Result<Quantity, String> {
    let time = |name: &str| Property::parse(name).filter(|_| !["stddev", "avg"].contains(&name));
    let connect = || time(name.strip_prefix(LOG_INS)?.strip_prefix('.')?).map(Quantity::Connect);
    let unknown = || format!("'{name}' is no metric of a condition: {METRICS}");
    match name {
        "" => Err(format!("a metric is missing: {METRICS}")),
        "qps" => Ok(Quantity::Qps),
        "tps" => Ok(Quantity::Tps),
        "errors" => Ok(Quantity::Errors),
        _ => time(name).map(Quantity::Latency).or_else(connect).ok_or_else(unknown),
    }
}

/// Parses the value in the quantity's unit; a share of errors changes the quantity.
fn threshold(quantity: Quantity, text: &str) -> Result<(Quantity, f64), String> {
    let limit = match quantity {
        _ if text.is_empty() => return Err("a value is missing, such as 2ms, 10k or 0".to_owned()),
        Quantity::Latency(_) | Quantity::Connect(_)
            if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') =>
        {
            return Err(format!("a time needs its unit: {text}ms or {text}us?"));
        }
        Quantity::Latency(_) | Quantity::Connect(_) => parse_time(text)? as f64 / 1e3,
        Quantity::Errors if text.ends_with('%') => {
            return Ok((Quantity::ErrorShare, parse_percent(text)?));
        }
        Quantity::Errors | Quantity::ErrorShare => parse_count(text)? as f64,
        Quantity::Qps | Quantity::Tps => parse_thousandths(text)? as f64 / 1e3,
    };
    Ok((quantity, limit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gate(text: &str) -> Gate {
        text.parse().unwrap_or_else(|what| panic!("{what}"))
    }

    struct Side {
        text: &'static str,
        shown: &'static str,
        quantity: Quantity,
        holds: f64,
        fails: f64,
    }

    #[test]
    fn conditions_hold_on_their_side_of_the_value() {
        for Side { text, shown, quantity, holds, fails } in [
            Side {
                text: "p99<2ms",
                shown: "p99<2ms",
                quantity: Quantity::Latency(Property::Percentile(Percentile(99.0))),
                holds: 1999.9,
                fails: 2000.0,
            },
            Side {
                text: "p99.9 <= 500us",
                shown: "p99.9<=500us",
                quantity: Quantity::Latency(Property::Percentile(Percentile(99.9))),
                holds: 500.0,
                fails: 500.1,
            },
            Side {
                text: "median<500µs",
                shown: "median<500µs",
                quantity: Quantity::Latency(Property::Percentile(Percentile(50.0))),
                holds: 1.0,
                fails: 501.0,
            },
            Side {
                text: "qps>=10k",
                shown: "qps>=10k",
                quantity: Quantity::Qps,
                holds: 10_000.0,
                fails: 9_999.9,
            },
            Side {
                text: "tps>0.5",
                shown: "tps>0.5",
                quantity: Quantity::Tps,
                holds: 0.6,
                fails: 0.5,
            },
            Side {
                text: "errors==0",
                shown: "errors==0",
                quantity: Quantity::Errors,
                holds: 0.0,
                fails: 1.0,
            },
            Side {
                text: "errors<0.1 %",
                shown: "errors<0.1%",
                quantity: Quantity::ErrorShare,
                holds: 0.0009,
                fails: 0.001,
            },
            Side {
                text: " mean < 1ms ",
                shown: "mean<1ms",
                quantity: Quantity::Latency(Property::Mean),
                holds: 0.0,
                fails: 1000.0,
            },
            Side {
                text: "max < 1 s",
                shown: "max<1s",
                quantity: Quantity::Latency(Property::Max),
                holds: 999_999.0,
                fails: 1e6,
            },
            Side {
                text: "errors=0",
                shown: "errors==0",
                quantity: Quantity::Errors,
                holds: 0.0,
                fails: 1.0,
            },
            Side {
                text: "min>100ns",
                shown: "min>100ns",
                quantity: Quantity::Latency(Property::Min),
                holds: 0.2,
                fails: 0.1,
            },
        ] {
            let gate = gate(text);
            assert_eq!(gate.to_string(), shown);
            assert_eq!(gate.quantity, quantity, "{text}");
            let range = gate.range;
            assert!(range.contains(&holds) && !range.contains(&fails), "{text}");
            assert!(!range.contains(&f64::NAN), "{text}: what is no number holds nothing");
        }
    }

    #[test]
    fn condition_is_of_a_group_when_its_metric_has_a_name_before_it() {
        let named = gate("writer-2.p99.9 < 50ms");
        assert_eq!(named.group, "writer-2".parse().ok());
        assert_eq!(
            (named.text.as_str(), named.quantity),
            ("writer-2.p99.9<50ms", gate("p99.9<1s").quantity)
        );
        assert_eq!(gate("p99.9<1s").group, None);
        for text in ["writer.p100<2ms", "writer.<2ms", "Writer.p99<2ms", "writer.speed>1"] {
            assert!(text.parse::<Gate>().is_err(), "{text}");
        }
        let log_ins = gate("connect.p99.9 < 50ms");
        let quantity = Quantity::Connect(Property::Percentile(Percentile(99.9)));
        assert_eq!((log_ins.group, log_ins.quantity), (None, quantity));
        assert!(
            "connect.qps>1".parse::<Gate>().is_err() && parse_level("connect.p99<2ms").is_err()
        );
        assert!(parse_level("p99<2ms").is_ok() && parse_level("writer.p99<2ms").is_err());
    }

    #[test]
    fn errors_say_where_and_what_would_be_right() {
        for (text, column, says) in [
            ("p99", 4, "comparison is missing"),
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
            let error = text.parse::<Gate>().expect_err(text);
            assert!(error.contains(&format!("column {column}:")), "{error}");
            assert!(error.contains(says), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,30}", like in "(p99|errors|qps)? ?[<>=!]{0,2} ?[0-9.%a-zµ]{0,6}") {
            for text in [text, like] {
                if let Ok(gate) = text.parse::<Gate>() {
                    prop_assert_eq!(gate.to_string().parse::<Gate>(), Ok(gate));
                }
            }
        }
    }
}
