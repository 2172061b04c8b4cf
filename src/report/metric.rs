//! The number of a run that a table shows.

use std::fmt;
use std::str::FromStr;

use super::histogram::Curve;
use super::run::Run;
use super::value::{self, PageValue};
use crate::error::{Error, Result};
use crate::plan::limits;
use crate::stats::{enough, is_scarce, rank};
use crate::summary::{Distribution, HostCost, Imported, Latency, ProcessCost, Summary, counter};
use crate::terms::units::rate_decimals;
use crate::terms::{self, Finding, GroupName, LOG_INS, Percentile, Property, finding};

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Metric {
    /// The usual number of the workload: statements a second, or seconds for what ran to its
    /// end, such as a load.
    #[default]
    Natural,
    /// A property of a time, microseconds.
    Time(Time, Property),
    /// A rate, errors, a cost of the server or the client, and the like.
    Figure(&'static Figure),
    /// The same of a group beside, which has its own time and no costs.
    GroupTime(GroupName, Time, Property),
    GroupFigure(GroupName, &'static Figure),
}

/// The figures that a group beside has.
const OF_GROUPS: [&str; 5] = ["qps", "tps", "errors", "errors%", "rows"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// The service time of closed loops, as nobody asked for another.
    Unnamed,
    Service,
    /// From the intended instant to the return of the call; only an open loop has it.
    Response,
    /// From the intended instant to the call, likewise.
    Wait,
    /// The time of log-ins, where clients open new connections.
    Connect,
    /// The response time of open loops and the service time of closed ones, where a table has both.
    Own,
}

impl Time {
    /// Returns what stands before a metric's name, its name in headings, and what a table of closed and
    /// open loops says of it.
    fn names(self) -> (&'static str, &'static str, Option<&'static str>) {
        let open_only =
            "only open loops (with a rate) have this time: closed ones have none before the call";
        let all = "service times, also of the open loops (with a rate)";
        let own = "response times of the open loops (with a rate), service times of the others";
        match self {
            Time::Unnamed => ("", "service time", None),
            Time::Service => ("service-", "service time", Some(all)),
            Time::Response => ("response-", "response time", Some(open_only)),
            Time::Wait => ("wait-", "waiting time", Some(open_only)),
            Time::Connect => ("connect.", "log-in time", None),
            Time::Own => ("", "latency", Some(own)),
        }
    }

    fn times(self, latency: &Latency) -> Option<&Distribution> {
        match self {
            Time::Service => Some(&latency.service),
            Time::Response => latency.response.as_ref(),
            Time::Wait => latency.wait.as_ref(),
            Time::Connect => latency.connect.as_ref(),
            Time::Unnamed | Time::Own => Some(latency.own()),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Natural => f.write_str("natural"),
            Metric::Time(of, property) => write!(f, "{}{property}", of.names().0),
            Metric::Figure(figure) => f.write_str(figure.name),
            Metric::GroupTime(group, of, property) => {
                write!(f, "{group}.{}{property}", of.names().0)
            }
            Metric::GroupFigure(group, figure) => write!(f, "{group}.{}", figure.name),
        }
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Metric> {
        let name = text.to_ascii_lowercase();
        if name == "natural" {
            return Ok(Metric::Natural);
        }
        if let Some(figure) = find_figure(&name) {
            return Ok(Metric::Figure(figure));
        }
        let times = [Time::Service, Time::Response, Time::Wait, Time::Connect, Time::Unnamed];
        let property =
            |of: Time| Some(Metric::Time(of, Property::parse(name.strip_prefix(of.names().0)?)?));
        let of_group = || {
            let (group, metric) = name.split_once('.').filter(|(group, _)| *group != LOG_INS)?;
            let (group, figure) = (group.parse().ok()?, find_figure(metric));
            let figure = figure.filter(|figure| OF_GROUPS.contains(&figure.name));
            let figure = figure.map(|figure| Metric::GroupFigure(group, figure));
            let time = |of: Time| {
                let property = Property::parse(metric.strip_prefix(of.names().0)?)?;
                Some(Metric::GroupTime(group, of, property))
            };
            figure.or_else(|| [Time::Connect, Time::Own].into_iter().find_map(time))
        };
        // In the message, because a parser of command lines shows no hints of its values' errors.
        times.into_iter().find_map(property).or_else(of_group).ok_or_else(|| {
            let names = FIGURES.iter().map(|figure| figure.name).collect::<Vec<_>>().join(", ");
            Error::usage(format!(
                "no metric is called '{text}'; there are percentiles above p0 and below p100 such as \
                 p50 or p99.9, mean, min, max, stddev, also service-p99 and, of an open loop, \
                 response-p99, wait-mean and so on, with --reconnect-every connect.p99, {names}; of a \
                 group beside NAME.qps and so on"
            ))
        })
    }
}

impl Metric {
    pub const QPS: Metric = Metric::Figure(&FIGURES[0]);
    pub const TPS: Metric = Metric::Figure(&FIGURES[1]);
    pub const ERRORS: Metric = Metric::Figure(&FIGURES[2]);
    pub const ERROR_SHARE: Metric = Metric::Figure(&FIGURES[3]);
    const RETRIED: Metric = Metric::Figure(&FIGURES[4]);
    pub(crate) const SECONDS: Metric = Metric::Figure(&FIGURES[5]);

    /// Returns itself, or what the runs of one workload are measured in; of a time, which one.
    pub(crate) fn of_runs<'a>(self, mut runs: impl Iterator<Item = Run<'a>>) -> Metric {
        match self {
            Metric::Natural if runs.find_map(Run::measured).is_some_and(ran_to_its_end) => {
                Metric::SECONDS
            }
            Metric::Natural => Metric::QPS,
            Metric::Time(Time::Unnamed, property) => {
                let open: Vec<bool> = runs.map(Run::has_response_time).collect();
                match (open.contains(&true), !open.contains(&false)) {
                    (true, false) => Metric::Time(Time::Own, property),
                    (any, _) => self.in_loop(any),
                }
            }
            other => other,
        }
    }

    pub(crate) fn in_loop(self, open: bool) -> Metric {
        match self {
            Metric::Time(Time::Unnamed | Time::Own, of) if open => Metric::Time(Time::Response, of),
            Metric::Time(Time::Own, property) => Metric::Time(Time::Unnamed, property),
            other => other,
        }
    }

    /// Splits off the group beside whose number it is.
    pub(super) fn split(self) -> (Option<GroupName>, Metric) {
        match self {
            Metric::GroupTime(group, of, property) => (Some(group), Metric::Time(of, property)),
            Metric::GroupFigure(group, figure) => (Some(group), Metric::Figure(figure)),
            own => (None, own),
        }
    }

    /// Returns what is told of it in tables; of times, it is the same of all.
    pub(crate) fn figure(self) -> &'static Figure {
        match self {
            Metric::Natural => &FIGURES[0],
            Metric::Time(..) | Metric::GroupTime(..) => &TIMES[0],
            Metric::Figure(figure) | Metric::GroupFigure(_, figure) => figure,
        }
    }

    pub(crate) fn is_rate(self) -> bool {
        [Metric::Natural, Metric::QPS, Metric::TPS].contains(&self.split().1)
    }

    /// Returns what to use instead of a total, which more work has more of; none where it is none.
    pub(crate) fn by_work(self) -> Option<Metric> {
        let instead = find_figure(self.figure().by_work?)?;
        Some(match self.split().0 {
            Some(group) => Metric::GroupFigure(group, instead),
            None => Metric::Figure(instead),
        })
    }

    /// Returns the share of failed ops of the clients that it is of.
    pub(crate) fn failed_share(self, steps: &[&Summary]) -> Option<f64> {
        let Some(group) = self.split().0 else { return failed_share(steps) };
        let groups: Vec<Summary> = steps.iter().filter_map(|step| step.of_group(group)).collect();
        failed_share(&groups.iter().collect::<Vec<&Summary>>())
    }

    pub(crate) fn higher_is_better(self) -> bool {
        self.figure().higher_is_better
    }

    pub(crate) fn of_closed_loops(self) -> Option<&'static str> {
        let Metric::Time(of, _) = self else { return None };
        of.names().2
    }

    /// Returns the part of a number's unit that people see, and its name there: files keep microseconds.
    pub(crate) fn unit(self) -> (f64, &'static str, &'static str) {
        match self.figure() {
            figure if figure.unit == "us" => (MS, "ms", figure.unit_in_words),
            figure => (1.0, figure.unit, figure.unit_in_words),
        }
    }

    pub(crate) fn page_value(self, value: f64, decimals: usize) -> PageValue {
        // Half of a range of counts may lie between two.
        let decimals =
            if self.is_count() { decimals.max(self.decimals([value])) } else { decimals };
        (value, value::number(value / self.unit().0, decimals)).into()
    }

    /// Returns the decimals of numbers in the unit that people see.
    pub(crate) fn decimals(self, values: impl IntoIterator<Item = f64>) -> usize {
        let own = self.split().1;
        if self.is_count() {
            // A median of two may lie between counts.
            return usize::from(values.into_iter().any(|value| value.fract() != 0.0));
        }
        // One op of a million may have failed.
        if own.is_rate() || own == Metric::ERROR_SHARE {
            return rate_decimals(values);
        }
        let unit = self.unit().0;
        value::decimals(values.into_iter().map(|value| value / unit))
    }

    pub(crate) fn is_count(self) -> bool {
        [Metric::ERRORS, Metric::RETRIED].contains(&self.split().1)
    }

    pub(crate) fn name(self) -> String {
        match self.split() {
            (Some(group), own) => format!("{group} {}", own.name()),
            (_, Metric::Time(of, property)) => format!("{property} {}", of.names().1),
            _ => self.figure().heading.to_owned(),
        }
    }

    pub(crate) fn short(self) -> (String, &'static str) {
        match self.figure() {
            _ if self.split().0.is_some() => (self.to_string(), self.unit().1),
            figure if self.is_rate() => (figure.heading.to_owned(), figure.heading),
            _ if self == Metric::SECONDS => ("Seconds".to_owned(), "s"),
            _ => (self.to_string(), self.unit().1),
        }
    }

    pub(crate) fn value<'a>(self, run: impl Into<Run<'a>>) -> Result<Option<f64>> {
        match run.into() {
            Run::Measured(step) => self.measured(step),
            Run::Imported(run) => Ok(self.printed(run)),
        }
    }

    fn measured(self, summary: &Summary) -> Result<Option<f64>> {
        // Without a window there is no rate, and a latency of nothing.
        if summary.measured_s <= 0.0 {
            return Ok(None);
        }
        if let (Some(group), own) = self.split() {
            let of_group = summary.of_group(group);
            return of_group.map_or(Ok(None), |group| own.measured(&group));
        }
        let Metric::Time(of, property) = self else {
            return Ok((self.figure().value)(summary));
        };
        let Some(times) = of.times(&summary.latency) else { return Ok(None) };
        Ok(match property {
            Property::Percentile(percentile) => return percentile_of(percentile, times, summary),
            Property::Mean => times.mean_us,
            Property::Max => times.max_us,
            Property::Min => times.min_us,
            Property::Stddev => times.stddev_us,
        })
    }

    /// Returns the numbers of the runs. If one has too few ops for a time there are none: without
    /// the shortest repeats the number would be that of the fast ones.
    pub(crate) fn values(self, runs: &[Run]) -> Result<Vec<f64>> {
        let mut steps = runs.iter().filter_map(|run| run.measured());
        if steps.any(|step| self.scarce(step).is_some()) {
            return Ok(Vec::new());
        }
        runs.iter().filter_map(|run| self.value(*run).transpose()).collect()
    }

    fn printed(self, run: &Imported) -> Option<f64> {
        let (totals, latency) = (&run.totals, &run.latency);
        if run.measured_s <= 0.0 || self.split().0.is_some() {
            return None;
        }
        let Metric::Time(of, property) = self else {
            return Some(match self.figure().name {
                "qps" => totals.qps,
                "tps" => totals.tps,
                "errors" => totals.failed() as f64,
                "errors%" => {
                    let tried = totals.ops.saturating_add(totals.failed());
                    return (tried > 0).then(|| 100.0 * totals.failed() as f64 / tried as f64);
                }
                "retried" => totals.began_again() as f64,
                "seconds" => run.measured_s,
                _ => return None,
            });
        };
        let is_its_own = match of {
            Time::Unnamed | Time::Own => true,
            Time::Service => run.rate.is_none(),
            Time::Response => run.rate.is_some(),
            Time::Wait | Time::Connect => false,
        };
        match property {
            _ if !is_its_own => None,
            Property::Percentile(wanted) => {
                let is_it = |p: u32| wanted.0.total_cmp(&f64::from(p)).is_eq();
                latency.percentile.filter(|of| is_it(of.percentile)).map(|of| of.value_us)
            }
            Property::Mean => latency.mean_us,
            Property::Max => latency.max_us,
            Property::Min => latency.min_us,
            Property::Stddev => None,
        }
    }

    pub(crate) fn finding(self, run: Run) -> Option<Finding> {
        match run {
            Run::Measured(step) => self.scarce(step).map(|(property, count)| {
                finding!(Scarce, property.to_string(), count, answers_needed(property))
            }),
            Run::Imported(run) if self.printed(run).is_some() => None,
            Run::Imported(run) => {
                let instead = match run.latency.percentile {
                    _ if self.percentile().is_none() => "none".to_owned(),
                    Some(of) => format!("p{} alone", of.percentile),
                    None => "no percentile".to_owned(),
                };
                Some(finding!(NotPrinted, self.to_string(), instead))
            }
        }
    }

    /// Returns true of what the server spends on an op; the client's cost is unknown where groups are beside.
    pub(crate) fn is_cost(self) -> bool {
        self.figure().unit.ends_with("/op") && self.figure().name != "cpu"
    }

    pub(crate) fn percentile(self) -> Option<Percentile> {
        match self.split().1 {
            Metric::Time(_, Property::Percentile(percentile)) => Some(percentile),
            _ => None,
        }
    }

    /// Returns true if 0 is a usual number of it, and a good one.
    pub(crate) fn begins_at_zero(self) -> bool {
        [Metric::ERRORS, Metric::ERROR_SHARE, Metric::RETRIED].contains(&self.split().1)
    }

    pub(crate) fn scarce(self, summary: &Summary) -> Option<(Property, u64)> {
        if let (Some(group), own) = self.split() {
            return own.scarce(&summary.of_group(group)?);
        }
        let Metric::Time(of, property) = self else { return None };
        let count = of.times(&summary.latency)?.count;
        let is_few = match property {
            Property::Percentile(percentile) => is_scarce(percentile.0, count),
            // Log-ins are no answers: a window without one is not slow.
            _ => count == 0 && of != Time::Connect,
        };
        // A load has no answers to wait for. A window without a single one is the slowest of all.
        let is_asked = count > 0 || summary.measured_s > 0.0 && !ran_to_its_end(summary);
        (is_asked && is_few).then_some((property, count))
    }
}

pub(crate) fn answers_needed(property: Property) -> f64 {
    match property {
        Property::Percentile(percentile) => enough(percentile.0),
        _ => 1.0,
    }
}

fn ran_to_its_end(step: &Summary) -> bool {
    step.plan.time_s.is_none() && step.plan.ops.is_none()
}

fn percentile_of(p: Percentile, of: &Distribution, step: &Summary) -> Result<Option<f64>> {
    if is_scarce(p.0, of.count) {
        return Ok(None);
    }
    let kept = [
        (50.0, of.p50_us),
        (75.0, of.p75_us),
        (90.0, of.p90_us),
        (95.0, of.p95_us),
        (99.0, of.p99_us),
        (99.9, of.p99_9_us),
        (99.99, of.p99_99_us),
    ];
    let kept = kept.into_iter().find(|(known, _)| p.0.total_cmp(known).is_eq());
    kept.map_or_else(|| of_histogram(p, p.0, of, step), |(_, value)| Ok(value))
}

/// Returns a percentile of a step's own times and so many more that are longer than any of these, as
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
    // They waited for the sooner limit at least. Answers above it may have waited longer than they did.
    let drain_s = limits::DRAIN.as_secs_f64();
    let limit_us = step.plan.op_timeout_s.map_or(drain_s, |limit| limit.min(drain_s)) * US;
    if value.is_some_and(|value| value >= limit_us) { at(rank + given_up) } else { Ok(value) }
}

fn of_histogram(p: Percentile, at: f64, of: &Distribution, step: &Summary) -> Result<Option<f64>> {
    let curve = Curve::read(&of.histogram).map_err(|why| {
        Error::data(format!(
            "{p} of '{}' at {}: the histogram of step {} is damaged: {why}",
            step.label,
            terms::clients(step.plan.clients),
            step.step_id
        ))
        .hint("p50, p75, p90, p95, p99, p99.9 and p99.99 do without the histogram")
    })?;
    let value = curve.map(|curve| curve.percentile_us(at));
    // A bucket's upper edge may lie above the largest time there was.
    Ok(value.map(|value| of.max_us.map_or(value, |max| value.min(max))))
}

#[derive(Debug)]
pub struct Figure {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub unit: &'static str,
    pub heading: &'static str,
    pub unit_in_words: &'static str,
    pub higher_is_better: bool,
    /// The metric that compares runs of unequal work; a total does not.
    pub(crate) by_work: Option<&'static str>,
    pub(crate) value: fn(&Summary) -> Option<f64>,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

const US: f64 = 1e6;
/// Microseconds of a millisecond.
pub(super) const MS: f64 = 1e3;
const KB: f64 = 1024.0;

macro_rules! figures {
    ($($name:literal $aliases:tt, $unit:literal, $heading:literal, $words:literal, $higher:literal, $by_work:expr, $value:expr;)*) => {
        &[$(Figure {
            name: $name, aliases: &$aliases, unit: $unit, heading: $heading,
            unit_in_words: $words, higher_is_better: $higher, by_work: $by_work, value: $value,
        }),*]
    };
}

/// All of them, in the order in which errors and the help name them.
pub const FIGURES: &[Figure] = figures! {
    "qps" [], "statements/s", "QPS", "statements a second", true, None, |s| Some(s.totals.qps);
    "tps" [], "ops/s", "TPS", "ops a second", true, None, |s| Some(s.totals.tps);
    "errors" [], "errors", "errors", "a step, all phases", false, Some("errors%"), |s| Some(errors(s) as f64);
    "errors%" ["error-share"], "%", "failed ops", "percent of the window's ops", false, None,
        |s| Some(failed_share(&[s])? * 100.0);
    "retried" [], "errors", "retried", "ignored errors of the window", false, Some("qps"),
        |s| s.totals.retried.map(|n| n as f64);
    "seconds" [], "s", "seconds", "from the start to the end", false, Some("qps"), |s| Some(s.measured_s);
    "rows" ["rows/s"], "rows/s", "rows", "rows a second", true, None,
        |s| Some(s.totals.rows as f64 / s.measured_s);
    "iops" [], "reads/s", "IOPS", "InnoDB's reads a second", true, None,
        |s| s.counter_per_s("Innodb_data_reads");
    "innodb-reads" [], "reads/op", "InnoDB's reads an op", "reads", false, None,
        |s| s.counter_per_op("Innodb_data_reads");
    "miss" [], "pages/op", "misses an op", "pages read from storage", false, None,
        |s| s.counter_per_op("Innodb_buffer_pool_reads");
    "miss%" ["misspct"], "%", "misses", "percent of the pages asked of the buffer pool", false, None,
        miss_percent;
    "pages-written" [], "pages/op", "pages written an op", "pages", false, None,
        |s| s.counter_per_op("Innodb_buffer_pool_pages_flushed");
    "log-writes" [], "writes/op", "log writes an op", "writes to InnoDB's log", false, None,
        |s| s.counter_per_op("Innodb_log_writes");
    "log-bytes" [], "bytes/op", "log bytes an op", "bytes written to InnoDB's log", false, None,
        |s| s.counter_per_op("Innodb_os_log_written");
    "handlers" [], "calls/op", "handler calls an op", "calls of the storage engine", false, None, handlers;
    "ahi" [], "%", "adaptive hash index", "percent of the searches that it answered", true, None, ahi;
    "server-cpu" [], "us/op", "server CPU an op", "microseconds", false, None, server_cpu_us;
    "cs" [], "switches/op", "context switches an op", "of the server's process", false, None, switches;
    "reads" [], "reads/op", "disk reads an op", "of the server's host", false, None,
        |s| of_host(s, |h| Some(h.disk_reads? as f64));
    "read-time" [], "us/op", "disk read time an op", "microseconds, of the server's host", false, None,
        read_us;
    "rkb" [], "KB/op", "KB read an op", "by the server's process, from storage", false, None,
        |s| of_process(s, |p| Some(p.read_bytes? as f64 / KB));
    "wkb" [], "KB/op", "KB written an op", "by the server's process, to storage", false, None,
        |s| of_process(s, |p| Some(p.write_bytes? as f64 / KB));
    "cpu" ["client-cpu"], "us/op", "client CPU an op", "microseconds", false, None,
        |s| s.client.us_per_op;
    "client-seconds" [], "s", "client CPU", "seconds, user and system", false, Some("cpu"),
        |s| Some(s.client.user_s + s.client.sys_s);
    "rtt" [], "us", "round trip of an empty query", "milliseconds", false, None, |s| s.client.rtt_us;
};

const TIMES: &[Figure] = figures! { "times" [], "us", "", "milliseconds", false, None, |_| None; };

fn miss_percent(step: &Summary) -> Option<f64> {
    let status = step.status()?;
    let reads = counter(status, "Innodb_buffer_pool_reads")?;
    let requests = counter(status, "Innodb_buffer_pool_read_requests")?;
    (requests > 0.0).then(|| 100.0 * reads / requests)
}

fn handlers(step: &Summary) -> Option<f64> {
    let status = step.status()?;
    let mut names = status.deltas.keys().filter(|name| name.starts_with("Handler_")).peekable();
    names.peek()?;
    let calls: Option<f64> = names.map(|name| counter(status, name)).sum();
    step.per_op(calls?, status.first_s)
}

/// From the status, the metrics or the text, whichever the server has.
fn ahi(step: &Summary) -> Option<f64> {
    let status = step.status()?;
    let inside = status.innodb.as_ref();
    let own = |name: &str| Some(*status.deltas.get(name)? as f64);
    let counted = |name: &str| Some(*inside?.deltas.get(name)? as f64);
    let averaged = |name: &str| inside?.last.get(name).copied();
    let pairs = [
        ["Innodb_adaptive_hash_hash_searches", "Innodb_adaptive_hash_non_hash_searches"].map(own),
        ["hash_searches", "other_searches"].map(counted),
        ["hash_searches_per_s", "other_searches_per_s"].map(averaged),
    ];
    let found = pairs.into_iter().find(|pair| pair.iter().any(Option::is_some))?;
    let [hash, other] = found.map(|searches| searches.unwrap_or(0.0));
    (hash >= 0.0 && other >= 0.0 && hash + other > 0.0).then(|| 100.0 * hash / (hash + other))
}

pub(super) fn errors(step: &Summary) -> u64 {
    step.failed_ops().saturating_add(step.totals.abandoned)
}

pub fn failed_share(steps: &[&Summary]) -> Option<f64> {
    let count = |of: fn(&Summary) -> u64| steps.iter().map(|step| of(step) as f64).sum::<f64>();
    // An operation that was given up is among the times with its age.
    let all = count(failed) + count(|step| step.latency.own().count);
    let bad = count(failed) + count(given_up);
    (all > 0.0).then(|| (bad / all).min(1.0))
}

/// Ops that failed or are in doubt are not among the times. Older summaries know all phases' doubts only.
pub(super) fn failed(step: &Summary) -> u64 {
    let in_doubt = step.latency.in_doubt.unwrap_or(step.totals.in_doubt);
    step.latency.failed.count.saturating_add(in_doubt)
}

/// Ops given up, and arrivals never issued, are among the times. Older summaries know those of all phases only.
pub(super) fn given_up(step: &Summary) -> u64 {
    let issued = step.latency.abandoned;
    issued.map_or(step.totals.abandoned, |issued| issued.saturating_add(step.latency.unissued()))
}

fn of_process(step: &Summary, of: fn(&ProcessCost) -> Option<f64>) -> Option<f64> {
    let probed = step.server.probed.as_ref()?;
    step.per_op(of(probed.process.as_ref()?)?, probed.first_s)
}

/// Threads that the server may make for clients that log in again, as a part of the clients.
const THREADS_MADE_MAX: f64 = 0.05;

/// Those of threads that ended are lost: without a thread cache each connection has a new one.
fn switches(step: &Summary) -> Option<f64> {
    let every = step.groups.iter().map(|group| group.reconnect_every);
    let log_in_again = every.chain([step.plan.reconnect_every]).any(|every| every.is_some());
    let made = step.status().and_then(|status| counter(status, "Threads_created"));
    let most = THREADS_MADE_MAX * f64::from(step.clients_of_all());
    if log_in_again && made.is_some_and(|made| made > most) {
        return None;
    }
    of_process(step, |p| Some(p.voluntary_switches? as f64 + p.involuntary_switches? as f64))
}

fn of_host(step: &Summary, of: fn(&HostCost) -> Option<f64>) -> Option<f64> {
    let probed = step.server.probed.as_ref()?;
    step.per_op(of(probed.host.as_ref()?)?, probed.first_s)
}

pub(super) fn server_cpu_us(step: &Summary) -> Option<f64> {
    of_process(step, |process| Some((process.user_s + process.sys_s) * US))
}

/// Time that reads of the disks took, whoever for.
pub(super) fn read_us(step: &Summary) -> Option<f64> {
    of_host(step, |host| Some(host.disk_read_s? * US))
}

/// The server's own, by bytes: its process's, else InnoDB's. None where unknown: others read from the same disks.
pub(super) fn own_read_us(step: &Summary) -> Option<f64> {
    let own = of_process(step, |process| Some(process.read_bytes? as f64));
    let own = own.or_else(|| step.counter_per_op("Innodb_data_read"))?;
    let all = of_host(step, |host| Some(host.disk_read_bytes? as f64))?;
    let part = if own < all { own / all } else { 1.0 };
    Some(read_us(step)? * part)
}

pub(crate) fn find_figure(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name || figure.aliases.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Probed;

    #[test]
    fn names_are_read_and_written_alike() {
        let figures = FIGURES.iter().map(|figure| figure.name);
        let others = [
            "natural",
            "mean",
            "max",
            "min",
            "stddev",
            "p50",
            "p99.9",
            "service-p99",
            "response-p99",
            "response-max",
            "wait-mean",
            "writer.qps",
            "writer-2.p99.9",
            "connect.p99",
            "writer.connect.p99",
            "writer.errors%",
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
    fn mean_of_a_cell_is_not_known_when_a_repeat_has_no_answer() {
        let (full, mut silent) = (Summary::sound(), Summary::sound());
        silent.latency.service = Distribution::default();
        let values = |name: &str| {
            let runs = [Run::Measured(&full), Run::Measured(&silent)];
            let metric: Metric = name.parse().expect(name);
            (metric.values(&runs).expect("values").len(), metric.finding(runs[1]).is_some())
        };
        for (name, found) in [("mean", (0, true)), ("max", (0, true)), ("qps", (2, false))] {
            assert_eq!(values(name), found, "{name}");
        }
    }

    #[test]
    fn switches_are_not_known_when_the_threads_that_made_them_have_ended() {
        let mut step = Summary::sound();
        step.plan.reconnect_every = Some(20);
        let process = ProcessCost {
            voluntary_switches: Some(600_000),
            involuntary_switches: Some(0),
            ..ProcessCost::default()
        };
        step.server.probed = Some(Probed { process: Some(process), ..Probed::default() });
        let cs: Metric = "cs".parse().expect("a metric");
        for (made, known) in [(None, true), (Some(0), true), (Some(1), false)] {
            if let Some(made) = made {
                let status = step.server.status.as_mut().expect("there");
                status.deltas.insert("Threads_created".to_owned().into(), made);
            }
            let value = cs.value(Run::Measured(&step)).expect("a value");
            assert_eq!(value.is_some(), known, "{made:?} for 8 clients");
        }
    }

    #[test]
    fn half_of_a_range_of_counts_is_not_rounded() {
        for (value, shown) in [(3.5, "3.5"), (3.0, "3")] {
            assert_eq!(Metric::ERRORS.page_value(value, 0).shown, shown);
        }
        assert_eq!(Metric::ERRORS.page_value(3.0, 1).shown, "3.0", "as its column");
        assert_eq!(Metric::QPS.page_value(103.5, 0).shown, "104");
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
        for text in [
            "writer.iops",
            "writer.",
            ".qps",
            "p99.12345678",
            "response",
            "response-",
            "response-qps",
            "wait-wait-p50",
            "connect.qps",
            "writer.response-p99",
        ] {
            assert!(text.parse::<Metric>().is_err(), "{text}");
        }
    }
}
