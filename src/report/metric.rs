//! What a table shows: one number of each step.

use std::fmt;
use std::str::FromStr;

use super::histogram;
use crate::error::{Error, Result};
use crate::summary::{Distribution, Summary};

/// Most digits after the point of a percentile: `p99.9999` needs ten million ops already.
const PERCENTILE_DECIMALS_MAX: usize = 6;

/// The number that fills the cells. Times are service times: from the call to its return.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Metric {
    /// Statements a second.
    #[default]
    Qps,
    /// Ops a second.
    Tps,
    /// A percentile, microseconds.
    Percentile(Percentile),
    /// Mean, microseconds.
    Mean,
    /// Largest, microseconds.
    Max,
    /// Smallest, microseconds.
    Min,
    /// Standard deviation, microseconds.
    Stddev,
    /// Errors, all phases.
    Errors,
    /// CPU of the client an op, microseconds.
    Cpu,
}

/// A percentile between 0 and 100, without both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile(f64);

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Metric::Qps => "qps",
            Metric::Tps => "tps",
            Metric::Percentile(percentile) => return percentile.fmt(f),
            Metric::Mean => "mean",
            Metric::Max => "max",
            Metric::Min => "min",
            Metric::Stddev => "stddev",
            Metric::Errors => "errors",
            Metric::Cpu => "cpu",
        })
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Metric> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "qps" => Metric::Qps,
            "tps" => Metric::Tps,
            "mean" | "avg" => Metric::Mean,
            "median" => Metric::Percentile(Percentile(50.0)),
            "max" => Metric::Max,
            "min" => Metric::Min,
            "stddev" => Metric::Stddev,
            "errors" => Metric::Errors,
            "cpu" => Metric::Cpu,
            other => Metric::Percentile(percentile(other).ok_or_else(|| unknown(text))?),
        })
    }
}

/// `p99.9` as a number; plain digits only, so that neither `pNaN` nor `p1e1` passes.
fn percentile(text: &str) -> Option<Percentile> {
    let digits = text.strip_prefix('p')?;
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(decimals) || decimals.len() > PERCENTILE_DECIMALS_MAX {
        return None;
    }
    let value: f64 = digits.parse().ok()?;
    (value > 0.0 && value < 100.0).then_some(Percentile(value))
}

fn unknown(text: &str) -> Error {
    // In the message, because a parser of command lines shows no hints of its values' errors.
    Error::usage(format!(
        "no metric is called '{text}'; there are qps, tps, percentiles above p0 and below p100 such \
         as p50 or p99.9, mean, min, max, stddev, errors, cpu"
    ))
}

impl Metric {
    /// Whether more of it is better.
    pub(crate) fn higher_is_better(&self) -> bool {
        matches!(self, Metric::Qps | Metric::Tps)
    }

    /// Whether it is a count, of which a table shows whole numbers.
    pub(crate) fn is_count(&self) -> bool {
        matches!(self, Metric::Errors)
    }

    /// The unit, for files.
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Metric::Qps => "statements/s",
            Metric::Tps => "ops/s",
            Metric::Errors => "errors",
            Metric::Cpu => "us/op",
            _ => "us",
        }
    }

    /// The name, for headings.
    pub(crate) fn name(&self) -> String {
        match self {
            Metric::Qps => "QPS".to_owned(),
            Metric::Tps => "TPS".to_owned(),
            Metric::Percentile(_) | Metric::Mean => format!("{self} service time"),
            Metric::Max => "largest service time".to_owned(),
            Metric::Min => "smallest service time".to_owned(),
            Metric::Stddev => "standard deviation of the service time".to_owned(),
            Metric::Errors => "errors".to_owned(),
            Metric::Cpu => "client CPU an op".to_owned(),
        }
    }

    /// The unit, for headings.
    pub(crate) fn unit_in_words(&self) -> &'static str {
        match self {
            Metric::Qps => "statements a second",
            Metric::Tps => "ops a second",
            Metric::Errors => "a step, all phases",
            _ => "microseconds",
        }
    }

    /// The number of one step; nothing where it has none, such as a time without ops.
    ///
    /// # Errors
    ///
    /// A percentile that the summary has no field for, from a damaged histogram.
    pub(crate) fn value(&self, summary: &Summary) -> Result<Option<f64>> {
        // Without a window there is no rate, and a latency of nothing.
        if summary.measured_s <= 0.0 {
            return Ok(None);
        }
        let service = &summary.latency.service;
        Ok(match self {
            Metric::Qps => Some(summary.totals.qps),
            Metric::Tps => Some(summary.totals.tps),
            Metric::Percentile(percentile) => return percentile.value(service, summary),
            Metric::Mean => service.mean_us,
            Metric::Max => service.max_us,
            Metric::Min => service.min_us,
            Metric::Stddev => service.stddev_us,
            Metric::Errors => Some(summary.totals.errors.iter().map(|e| e.count as f64).sum()),
            Metric::Cpu => summary.client.us_per_op,
        })
    }
}

impl Percentile {
    /// From the field where there is one, else from the histogram.
    fn value(self, of: &Distribution, summary: &Summary) -> Result<Option<f64>> {
        if of.count == 0 {
            return Ok(None);
        }
        Ok(match self.to_string().as_str() {
            "p50" => of.p50_us,
            "p75" => of.p75_us,
            "p90" => of.p90_us,
            "p95" => of.p95_us,
            "p99" => of.p99_us,
            "p99.9" => of.p99_9_us,
            "p99.99" => of.p99_99_us,
            _ => {
                let value = histogram::percentile_us(&of.histogram, self.0).map_err(|why| {
                    Error::data(format!(
                        "{self} of '{}' at {} clients: the histogram of step {} is damaged: {why}",
                        summary.label, summary.plan.clients, summary.step_id
                    ))
                    .hint("p50, p75, p90, p95, p99, p99.9 and p99.99 do without the histogram")
                })?;
                // A bucket's upper edge may lie above the largest time there was.
                value.map(|value| of.max_us.map_or(value, |max| value.min(max)))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        for name in ["qps", "tps", "mean", "max", "min", "stddev", "errors", "cpu", "p50", "p99.9"]
        {
            let metric: Metric = name.parse().expect(name);
            assert_eq!(metric.to_string(), name);
        }
        let same: Metric = "P99.90".parse().expect("case and zeros do not matter");
        assert_eq!(same.to_string(), "p99.9");
        assert_eq!("median".parse::<Metric>().expect("an alias").to_string(), "p50");
    }

    #[test]
    fn what_is_no_percentile_is_refused_with_the_names_there_are() {
        for text in
            ["", "p", "p0", "p100", "p-1", "p+5", "pNaN", "pinf", "p1e1", "p9.", "p.9", "p1.2.3"]
        {
            let error = text.parse::<Metric>().expect_err(text);
            assert_eq!(error.kind().exit_code(), 2);
            assert!(error.to_string().contains("p99.9"), "{error}");
        }
        assert!("p99.12345678".parse::<Metric>().is_err());
    }
}
