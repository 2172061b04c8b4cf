//! What a table shows: one number of each step.

use std::fmt;
use std::str::FromStr;

use super::figure::{FIGURES, Figure, named};
use super::{histogram, number};
use crate::error::{Error, Result};
use crate::stats::{is_scarce, rank};
use crate::summary::{Distribution, Latency, Summary};
use crate::terms::{self, Percentile, Property};

/// The number that fills the cells.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Metric {
    /// What the workload is measured in: statements a second, or seconds for what ran to its
    /// end, such as a load.
    #[default]
    Natural,
    /// Statements a second.
    Qps,
    /// Ops a second.
    Tps,
    /// A property of a time, microseconds.
    Time(Time, Property),
    /// Errors, all phases.
    Errors,
    /// A cost of the server or the client, and the like.
    Figure(&'static Figure),
}

/// A time of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// The service time of closed loops, as nobody asked for another.
    Unnamed,
    /// From the call to its return.
    Service,
    /// From the intended instant to the return of the call; only an open loop has it.
    Response,
    /// From the intended instant to the call, likewise.
    Wait,
    /// The response time of open loops and the service time of closed ones, where a table has both.
    Own,
}

impl Time {
    /// Gives what stands before a metric's name.
    fn prefix(self) -> &'static str {
        match self {
            Time::Service => "service-",
            Time::Response => "response-",
            Time::Wait => "wait-",
            Time::Unnamed | Time::Own => "",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Time::Unnamed | Time::Service => "service time",
            Time::Response => "response time",
            Time::Wait => "waiting time",
            Time::Own => "latency",
        }
    }

    fn times(self, latency: &Latency) -> Option<&Distribution> {
        match self {
            Time::Service => Some(&latency.service),
            Time::Response => latency.response.as_ref(),
            Time::Wait => latency.wait.as_ref(),
            Time::Unnamed | Time::Own => Some(latency.own()),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Metric::Natural => "natural",
            Metric::Qps => "qps",
            Metric::Tps => "tps",
            Metric::Time(of, property) => return write!(f, "{}{property}", of.prefix()),
            Metric::Errors => "errors",
            Metric::Figure(figure) => figure.name,
        })
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Metric> {
        let name = text.to_ascii_lowercase();
        for of in [Time::Service, Time::Response, Time::Wait] {
            if let Some(name) = name.strip_prefix(of.prefix()) {
                let property = Property::parse(name).ok_or_else(|| unknown(text))?;
                return Ok(Metric::Time(of, property));
            }
        }
        Ok(match name.as_str() {
            "natural" => Metric::Natural,
            "qps" => Metric::Qps,
            "tps" => Metric::Tps,
            "errors" => Metric::Errors,
            other => match named(other) {
                Some(figure) => Metric::Figure(figure),
                None => {
                    let property = Property::parse(other).ok_or_else(|| unknown(text))?;
                    Metric::Time(Time::Unnamed, property)
                }
            },
        })
    }
}

fn unknown(text: &str) -> Error {
    let figures: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
    // In the message, because a parser of command lines shows no hints of its values' errors.
    Error::usage(format!(
        "no metric is called '{text}'; there are qps, tps, percentiles above p0 and below p100 such \
         as p50 or p99.9, mean, min, max, stddev, also service-p99 and, of an open loop, \
         response-p99, wait-mean and so on, errors, {}",
        figures.join(", ")
    ))
}

impl Metric {
    /// Itself, or what the steps of one workload are measured in: of a time, which one.
    pub(crate) fn of<'a>(self, mut steps: impl Iterator<Item = &'a Summary> + Clone) -> Metric {
        if let Metric::Time(Time::Unnamed, property) = self {
            let open = |step: &Summary| step.latency.response.is_some();
            return match (steps.clone().any(open), steps.all(open)) {
                (true, false) => Metric::Time(Time::Own, property),
                (any, _) => self.in_loop(any),
            };
        }
        if self != Metric::Natural {
            return self;
        }
        let to_its_end = |step: &Summary| step.plan.time_s.is_none() && step.plan.ops.is_none();
        match (steps.next().is_some_and(to_its_end), named("seconds")) {
            (true, Some(seconds)) => Metric::Figure(seconds),
            _ => Metric::Qps,
        }
    }

    /// Gives what a column of open or of closed loops holds.
    pub(crate) fn in_loop(self, open: bool) -> Metric {
        match self {
            Metric::Time(Time::Unnamed | Time::Own, property) => {
                let of = if open { Time::Response } else { Time::Unnamed };
                Metric::Time(of, property)
            }
            other => other,
        }
    }

    /// Whether more of it is better.
    pub(crate) fn higher_is_better(&self) -> bool {
        match self {
            Metric::Natural | Metric::Qps | Metric::Tps => true,
            Metric::Figure(figure) => figure.higher_is_better,
            _ => false,
        }
    }

    /// What a reader must know of a time where closed loops stand beside open ones.
    pub(crate) fn of_closed_loops(&self) -> Option<&'static str> {
        let Metric::Time(of, _) = self else { return None };
        Some(match of {
            Time::Unnamed => return None,
            Time::Own => "response times of the open loops (with @), service times of the others",
            Time::Service => "service times, also of the open loops (with @)",
            Time::Response | Time::Wait => {
                "only open loops (with @) have this time: closed ones have none before the call"
            }
        })
    }

    /// Digits after the point with which such values are shown.
    pub(crate) fn decimals(&self, values: impl IntoIterator<Item = f64>) -> usize {
        match self {
            Metric::Natural | Metric::Qps | Metric::Tps => 0,
            Metric::Errors => number::count_decimals(values),
            _ => number::decimals(values),
        }
    }

    /// The unit, for files.
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Metric::Natural | Metric::Qps => "statements/s",
            Metric::Tps => "ops/s",
            Metric::Errors => "errors",
            Metric::Figure(figure) => figure.unit,
            Metric::Time(..) => "us",
        }
    }

    /// The name, for headings.
    pub(crate) fn name(&self) -> String {
        match self {
            Metric::Natural | Metric::Qps => "QPS".to_owned(),
            Metric::Tps => "TPS".to_owned(),
            Metric::Time(of, property) => {
                let of = of.heading();
                match property {
                    Property::Max => format!("largest {of}"),
                    Property::Min => format!("smallest {of}"),
                    Property::Stddev => format!("standard deviation of the {of}"),
                    other => format!("{other} {of}"),
                }
            }
            Metric::Errors => "errors".to_owned(),
            Metric::Figure(figure) => figure.heading.to_owned(),
        }
    }

    /// The name above a column of numbers, and behind a number in a list.
    pub(crate) fn short(&self) -> (String, &'static str) {
        match self {
            Metric::Figure(figure) if figure.name == "seconds" => ("Seconds".to_owned(), "s"),
            Metric::Figure(figure) => (figure.name.to_owned(), figure.unit),
            Metric::Natural | Metric::Qps => ("QPS".to_owned(), "QPS"),
            Metric::Tps => ("TPS".to_owned(), "TPS"),
            other => (other.to_string(), other.unit()),
        }
    }

    /// The unit, for headings.
    pub(crate) fn unit_in_words(&self) -> &'static str {
        match self {
            Metric::Natural | Metric::Qps => "statements a second",
            Metric::Tps => "ops a second",
            Metric::Errors => "a step, all phases",
            Metric::Figure(figure) => figure.unit_in_words,
            Metric::Time(..) => "microseconds",
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
        Ok(match self {
            Metric::Natural | Metric::Qps => Some(summary.totals.qps),
            Metric::Tps => Some(summary.totals.tps),
            Metric::Errors => Some(errors(summary) as f64),
            Metric::Figure(figure) => (figure.value)(summary),
            Metric::Time(of, property) => match of.times(&summary.latency) {
                Some(times) => property_of(*property, times, summary)?,
                None => None,
            },
        })
    }

    /// Gives the percentile that a step has too few values for, and how many it has.
    pub(crate) fn scarce(&self, summary: &Summary) -> Option<(Percentile, u64)> {
        let Metric::Time(of, Property::Percentile(percentile)) = self else { return None };
        let count = of.times(&summary.latency)?.count;
        (count > 0 && is_scarce(percentile.0, count)).then_some((*percentile, count))
    }
}

fn property_of(property: Property, times: &Distribution, step: &Summary) -> Result<Option<f64>> {
    Ok(match property {
        Property::Percentile(percentile) => return percentile_of(percentile, times, step),
        Property::Mean => times.mean_us,
        Property::Max => times.max_us,
        Property::Min => times.min_us,
        Property::Stddev => times.stddev_us,
    })
}

/// Reads a percentile from the field where there is one, else from the histogram.
fn percentile_of(p: Percentile, of: &Distribution, step: &Summary) -> Result<Option<f64>> {
    if is_scarce(p.0, of.count) {
        return Ok(None);
    }
    Ok(match p.to_string().as_str() {
        "p50" => of.p50_us,
        "p75" => of.p75_us,
        "p90" => of.p90_us,
        "p95" => of.p95_us,
        "p99" => of.p99_us,
        "p99.9" => of.p99_9_us,
        "p99.99" => of.p99_99_us,
        _ => return of_histogram(p, p.0, of, step),
    })
}

/// Gives a percentile of a step's own times and so many more that are longer than any of these, as
/// are those that were given up, which are among them: infinite, where it is one of both.
pub(crate) fn with_longer(
    percentile: Percentile,
    longer: u64,
    given_up: u64,
    step: &Summary,
) -> Result<Option<f64>> {
    let of = step.latency.own();
    let all = of.count.saturating_add(longer);
    if is_scarce(percentile.0, all) {
        return Ok(None);
    }
    let rank = rank(percentile.0, all);
    if rank > of.count.saturating_sub(given_up) {
        return Ok(Some(f64::INFINITY));
    }
    let at = |rank: u64| of_histogram(percentile, rank as f64 * 100.0 / of.count as f64, of, step);
    let value = at(rank)?;
    // Their age is this limit at least: above it, they may be among the shorter ones.
    let limit_us = step.plan.op_timeout_s.map_or(f64::INFINITY, |limit| limit * 1e6);
    if value.is_some_and(|value| value >= limit_us) { at(rank + given_up) } else { Ok(value) }
}

fn of_histogram(
    asked: Percentile,
    percentile: f64,
    of: &Distribution,
    step: &Summary,
) -> Result<Option<f64>> {
    let value = histogram::percentile_us(&of.histogram, percentile).map_err(|why| {
        Error::data(format!(
            "{asked} of '{}' at {}: the histogram of step {} is damaged: {why}",
            step.label,
            terms::clients(step.plan.clients),
            step.step_id
        ))
        .hint("p50, p75, p90, p95, p99, p99.9 and p99.99 do without the histogram")
    })?;
    // A bucket's upper edge may lie above the largest time there was.
    Ok(value.map(|value| of.max_us.map_or(value, |max| value.min(max))))
}

/// Errors and ops without an answer, all phases.
pub(crate) fn errors(step: &Summary) -> u64 {
    let errors: u64 = step.totals.errors.iter().map(|e| e.count).sum();
    // What is given up has no error of its own.
    errors + step.totals.abandoned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        let figures = FIGURES.iter().map(|figure| figure.name);
        let others = [
            "natural",
            "qps",
            "tps",
            "mean",
            "max",
            "min",
            "stddev",
            "errors",
            "p50",
            "p99.9",
            "service-p99",
            "response-p99",
            "response-max",
            "wait-mean",
        ];
        for name in others.into_iter().chain(figures) {
            let metric: Metric = name.parse().expect(name);
            assert_eq!(metric.to_string(), name);
        }
        let same: Metric = "P99.90".parse().expect("case and zeros do not matter");
        assert_eq!(same.to_string(), "p99.9");
        assert_eq!("client-CPU".parse::<Metric>().expect("an alias").to_string(), "cpu");
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
        for text in ["p99.12345678", "response", "response-", "response-qps", "wait-wait-p50"] {
            assert!(text.parse::<Metric>().is_err(), "{text}");
        }
    }
}
