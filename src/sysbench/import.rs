//! Outputs of sysbench 0.4, 0.5, 1.0 and 1.1, read: a text in, the runs that are whole in it out.
//!
//! A run begins at `Number of threads:`. What stands before it, such as a command line that a script
//! echoed or the lines of prepare, tells more of it.

mod files;

use std::collections::BTreeSet;

use super::options::{self, Values, plain};
use crate::error::{VALUE_MAX, clip};
use crate::summary::{
    Fairness, Imported, ImportedBucket, ImportedInterval, ImportedLatency, ImportedPercentile,
    ImportedTotals, TextSource, Warning,
};
use crate::terms::{StatementMode, finding};
use crate::workload::{Distribution, builtin};
pub(crate) use files::import;

/// A run begins with it.
const BEGIN: &str = "Number of threads:";
/// Printed rates are over a time that ends a little later than the total time.
const RATE_OFF: f64 = 0.01;
/// Statements an op, as a fork or an ignored error makes them differ from those of a workload.
const STATEMENTS_OFF: f64 = 0.02;
/// Workloads by their reads and writes an op: 0.4 and 0.5 have a write more.
const ALIKE: [(&str, f64, f64); 4] = [
    ("read-only", 14.0, 0.0),
    ("read-write", 14.0, 4.0),
    ("read-write", 14.0, 5.0),
    ("write-only", 0.0, 4.0),
];
/// What stands behind numbers of a report.
const UNITS: [&str; 4] = ["", "s", "ms", " per sec.)"];
/// Numbers of a text are below it: they stay finite when units change.
const NUMBER_MAX: f64 = 1e15;
const MS: f64 = 1e3;

/// A run of a text that is whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundRun {
    /// The line that it begins in, from 1.
    pub line: usize,
    /// loadgen's name of the test, where a command line before it names one.
    pub test: Option<String>,
    /// The workload that has so many statements an op, where there is one only.
    pub alike: Option<&'static str>,
    /// The text's part of it: the rest is the importer's.
    pub run: Imported,
}

/// A run, or a text, that says too little or contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// From 1.
    pub line: usize,
    pub what: String,
}

fn broken<T>(line: usize, what: impl Into<String>) -> Result<T, Unreadable> {
    Err(Unreadable { line, what: what.into() })
}

/// Finds the runs of a text, one at least: what is broken is told in its place.
pub(crate) fn runs(bytes: &[u8]) -> Vec<Result<FoundRun, Unreadable>> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, text)| !text.is_empty());
    let lines: Vec<(usize, &str)> = lines.collect();
    let (mut found, mut before) = (Vec::new(), Preamble::default());
    let goes_on = |next: &str| !next.starts_with(BEGIN) && version(next).is_none();
    for part in lines.chunk_by(|_, (_, next)| goes_on(next)) {
        if part[0].1.starts_with(BEGIN) {
            found.push(Lines(part).run(&before));
        }
        part.iter().for_each(|(_, text)| before.take(text));
    }
    if found.is_empty() {
        let last = lines.last().map_or(1, |(line, _)| *line);
        found.push(no_run(text.trim_start(), last));
    }
    found
}

/// Says why a text has no run.
fn no_run<T>(text: &str, last: usize) -> Result<T, Unreadable> {
    // An array begins like an interval line.
    let json = text.starts_with('{') || text.starts_with('[') && text.contains('{');
    match text {
        "" => broken(1, "it is empty"),
        _ if text.contains('\0') => broken(1, "it is no text"),
        _ if json => broken(1, "it is JSON, and not the text that sysbench prints"),
        _ => broken(last, format!("it has no line '{BEGIN}', with which a run begins")),
    }
}

/// Reads the version of a header line.
fn version(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("sysbench ")?;
    let rest = Some(rest).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
    let ours = rest.contains("(using loadgen").then_some(rest);
    ours.or_else(|| rest.split([' ', ':']).next())
}

/// What stands before a run and tells of it.
#[derive(Default)]
struct Preamble {
    version: Option<String>,
    /// Test and options of the last command line that was echoed.
    test: Option<String>,
    options: Values,
    /// Tables that prepare made, and the rows that it put into them.
    made: BTreeSet<String>,
    rows: Option<u64>,
}

impl Preamble {
    fn take(&mut self, line: &str) {
        let inserted = || number(line.strip_prefix("Inserting ")?);
        if let Some(version) = version(line) {
            self.version = Some(version.to_owned());
        } else if let Some(name) = line.strip_prefix("Creating table '") {
            self.made.insert(name.split('\'').next().unwrap_or_default().to_owned());
        } else if line.starts_with("Dropping table '") {
            (self.made, self.rows) = Default::default();
        } else if let Some((rows, rest)) = inserted()
            && rest.starts_with(" records into ")
        {
            self.rows = Some(rows as u64);
        } else if line.contains("sysbench ") {
            self.command(line);
        }
    }

    /// Takes a command line, as a script echoes it.
    fn command(&mut self, line: &str) {
        let mut words = line.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        if !words.any(|word| word.rsplit('/').next() == Some("sysbench")) {
            return;
        }
        let (given, others): (Vec<&str>, Vec<&str>) =
            words.partition(|word| word.starts_with("--"));
        let does = |word| others.contains(&word);
        if given.is_empty() || !does("run") && !does("prepare") {
            return;
        }
        self.test = others.first().copied().map(str::to_owned);
        self.options = Values::default();
        for (name, value) in
            given.iter().map(|word| word[2..].split_once('=').unwrap_or((word, "")))
        {
            if name == "test" {
                self.test = Some(value.to_owned());
            } else if let Some(option) = options::find(name) {
                self.options.set(option, value.to_owned());
            }
        }
    }

    /// Gives a number that a command line or prepare told.
    fn told(&self, option: &str, made: Option<u64>) -> Option<u64> {
        let given = self.options.is_given(option).then(|| self.options.count(option));
        given.or(made).filter(|number| *number > 0)
    }

    fn distribution(&self) -> Option<String> {
        if !self.options.is_given("rand-type") {
            return None;
        }
        let of = |option| self.options.text(option);
        let [iterations, band, within] =
            ["rand-spec-iter", "rand-spec-pct", "rand-spec-res"].map(of);
        let text = match of("rand-type") {
            "pareto" => format!("pareto:{}", of("rand-pareto-h")),
            "zipfian" => format!("zipf-adjacent:{}", of("rand-zipfian-exp")),
            "gaussian" => format!("gaussian:{iterations}"),
            "special" => format!("special:{iterations}/{band}/{within}"),
            other => other.to_owned(),
        };
        known(&text)
    }
}

/// Writes a distribution as loadgen does, where it knows it.
fn known(distribution: &str) -> Option<String> {
    Some(distribution.parse::<Distribution>().ok()?.to_string())
}

/// Gives loadgen's name of a test, or of the path of its script, where it has one.
pub(crate) fn native(test: &str) -> Option<String> {
    let name = test.rsplit('/').next()?.trim_end_matches(".lua");
    let name = plain(if name == "select" { "point-select" } else { name });
    let is = |known: &String| plain(known) == name;
    Some(builtin().into_iter().find(|of| is(&of.name) || of.aliases.iter().any(is))?.name)
}

/// Lines of a run, each with its number; none is empty.
#[derive(Clone, Copy)]
struct Lines<'a>(&'a [(usize, &'a str)]);

impl<'a> Lines<'a> {
    /// Reads a run from its first line on.
    fn run(self, before: &Preamble) -> Result<FoundRun, Unreadable> {
        let (line, begin) = self.0[0];
        let threads = begin[BEGIN.len()..].trim();
        let Some(clients) = threads.parse().ok().filter(|clients: &u32| *clients > 0) else {
            let threads = clip(threads, VALUE_MAX);
            return broken(line, format!("there is no number of threads in '{threads}'"));
        };
        let report = self.report()?;
        let number = |key| number(self.find(key)?.1).map(|(number, _)| number);
        let behind = |words| self.0.iter().find_map(|(_, text)| Some(text.split_once(words)?.1));
        let seed = behind("number generator from seed (").and_then(|of| of.split(')').next());
        let printed = self.0.iter().find_map(|(_, text)| {
            known(&text.strip_prefix("Using ")?.split(' ').next()?.to_lowercase())
        });
        let text = before.options.text("db-ps-mode") == "disable";
        let (timeline, unread) = self.timeline();
        let totals = report.totals()?;
        let mut run = Imported {
            source: TextSource { version: before.version.clone(), ..TextSource::default() },
            clients,
            tables: before
                .told("tables", Some(before.made.len() as u64))
                .map(|tables| tables as u32),
            rows: before.told("table-size", before.rows),
            distribution: printed.or_else(|| before.distribution()),
            statements: text.then_some(StatementMode::Text),
            rate: number("Target transaction rate").filter(|rate| *rate > 0.0),
            warmup_s: number("Warmup time"),
            seed: seed.and_then(|seed| seed.parse().ok()),
            measured_s: report.value(report.time())?,
            totals,
            latency: ImportedLatency { histogram: self.histogram(), ..report.latency()? },
            fairness: report.fairness(),
            timeline,
            ..Imported::default()
        };
        run.warnings = report.warnings(&run, self, unread)?;
        let test = before.test.as_deref().and_then(native);
        Ok(FoundRun { line, test, alike: alike(&run.totals), run })
    }

    /// Gives the lines from the report on: no line before it is taken for one of it.
    fn report(self) -> Result<Lines<'a>, Unreadable> {
        let is_checkpoint =
            |text: &str| text.starts_with('[') && text.contains("Checkpoint report:");
        let Some(start) = self.0.iter().rposition(|(_, text)| *text == "queries performed:") else {
            return match (self.find("FATAL"), self.find(self.time())) {
                (Some((line, why)), _) => {
                    broken(line, format!("the run failed: {}", clip(why, VALUE_MAX)))
                }
                (_, Some(_)) => {
                    self.cut("it has no SQL statistics: it is no test of a database server")
                }
                _ => self.cut("it is cut off: the run that begins in it has no report"),
            };
        };
        match self.0.iter().find(|(_, text)| is_checkpoint(text)) {
            Some((line, _)) => {
                broken(*line, "it has checkpoints: its last report is of what came after them")
            }
            None => Ok(Lines(&self.0[start..])),
        }
    }

    /// Says of the last line what is missing.
    fn cut<T>(self, what: impl Into<String>) -> Result<T, Unreadable> {
        broken(self.0.last().map_or(1, |(line, _)| *line), what)
    }

    /// Finds the value behind `key:`. What follows a report, such as another program's, has later lines.
    fn find(self, key: &str) -> Option<(usize, &'a str)> {
        let value = |text: &'a str| text.strip_prefix(key)?.strip_prefix(':').map(str::trim);
        self.0.iter().find_map(|(line, text)| Some((*line, value(text)?)))
    }

    /// Gives a value of the report, or says that it is none.
    fn read<T>(self, key: &str, read: fn(&str) -> Option<T>) -> Result<T, Unreadable> {
        let Some((line, text)) = self.find(key) else {
            return self.cut(format!("it is cut off: the report has no '{key}:'"));
        };
        let none =
            || broken(line, format!("'{key}:' has no number in '{}'", clip(text, VALUE_MAX)));
        read(text).map_or_else(none, Ok)
    }

    fn count(self, key: &str) -> Result<u64, Unreadable> {
        self.read(key, |text| text.split(' ').next()?.parse().ok())
    }

    /// Reads the last number of a value, such as the rate in `N (X per sec.)`.
    fn value(self, key: &str) -> Result<f64, Unreadable> {
        self.read(key, |text| decimal(text.rsplit('(').next()?))
    }

    /// Reads a time: milliseconds, or seconds where it says so.
    fn micros(self, key: &str) -> Result<f64, Unreadable> {
        let seconds = |text: &str| text.ends_with('s') && !text.ends_with("ms");
        let unit = if self.find(key).is_some_and(|(_, text)| seconds(text)) { 1e6 } else { MS };
        Ok(self.value(key)? * unit)
    }

    fn has(self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Names the line with the length of the run.
    fn time(self) -> &'static str {
        if self.has("time elapsed") { "time elapsed" } else { "total time" }
    }

    fn totals(self) -> Result<ImportedTotals, Unreadable> {
        let [reads, writes, others, total] =
            ["read", "write", "other", "total"].map(|key| self.count(key));
        let (reads, writes, others, total) = (reads?, writes?, others?, total?);
        if reads.saturating_add(writes).saturating_add(others) != total {
            let line = self.find("total").map_or(1, |(line, _)| line);
            let what = format!("read, write and other do not add up to the total of {total}");
            return broken(line, what);
        }
        let is_old = self.has("deadlocks");
        let (statements, qps) = if self.has("queries") {
            (total, self.value("queries")?)
        } else if is_old {
            // 0.4 counts a BEGIN also where it sends none.
            (total - others, self.value("read/write requests")?)
        } else {
            (total, self.value("read/write requests")? + self.value("other operations")?)
        };
        Ok(ImportedTotals {
            ops: self.count("transactions")?,
            statements,
            tps: self.value("transactions")?,
            qps,
            reads,
            writes,
            others,
            errors: self.count(if is_old { "deadlocks" } else { "ignored errors" })?,
            reconnects: self.has("reconnects").then(|| self.count("reconnects")).transpose()?,
        })
    }

    /// Reads the times but for the histogram.
    fn latency(self) -> Result<ImportedLatency, Unreadable> {
        let old = "total time taken by event execution";
        let sum_s = if self.has(old) { self.value(old)? } else { self.micros("sum")? / 1e6 };
        let [min, avg, max] = ["min", "avg", "max"].map(|key| self.micros(key));
        let (min_us, _, max_us) = (min?, avg?, max?);
        let events = self.count("total number of events")?;
        let any = events > 0;
        Ok(ImportedLatency {
            mean_us: any.then(|| sum_s * 1e6 / events as f64),
            min_us: any.then_some(min_us),
            max_us: any.then_some(max_us),
            sum_s,
            percentile: self.percentile()?.filter(|_| any),
            histogram: Vec::new(),
        })
    }

    /// Reads `95th percentile:  1.23` and `approx.  95 percentile:  1.23ms`.
    fn percentile(self) -> Result<Option<ImportedPercentile>, Unreadable> {
        let mut keys = self.0.iter().filter_map(|(_, text)| Some(text.split_once(':')?.0));
        let of = |key: &'a str| Some((key, key.strip_suffix(" percentile")?.rsplit(' ').next()?));
        let Some((key, number)) = keys.find_map(of) else { return Ok(None) };
        let value_us = self.micros(key)?;
        let percentile = number.trim_end_matches("th").parse().ok();
        let percentile = percentile.filter(|of| (1..=100).contains(of));
        Ok(percentile.map(|percentile| ImportedPercentile { percentile, value_us }))
    }

    /// Reads two lines of averages and deviations.
    fn fairness(self) -> Option<Fairness> {
        let pair = |key| {
            let (average, deviation) = self.find(key)?.1.split_once('/')?;
            Some((decimal(average)?, decimal(deviation)?))
        };
        let (ops_mean, ops_stddev) = pair("events (avg/stddev)")?;
        let (time_mean_s, time_stddev_s) = pair("execution time (avg/stddev)")?;
        Some(Fairness { ops_mean, ops_stddev, time_mean_s, time_stddev_s })
    }

    /// Reads lines of the histogram: `VALUE |STARS COUNT`.
    fn histogram(self) -> Vec<ImportedBucket> {
        let bucket = |text: &str| {
            let (value, rest) = text.split_once('|')?;
            let count = rest.trim_start_matches('*').trim().parse().ok()?;
            Some(ImportedBucket { value_us: decimal(value.trim())? * MS, count })
        };
        let is_head = |text: &str| text.starts_with("Latency histogram");
        let lines = self.0.iter().skip_while(|(_, text)| !is_head(text));
        lines.filter_map(|(_, text)| bucket(text)).collect()
    }

    /// Reads the lines of intervals, and counts those that cannot be read.
    fn timeline(self) -> (Vec<ImportedInterval>, u64) {
        let (mut timeline, mut unread) = (Vec::<ImportedInterval>::new(), 0);
        let at = |text: &'a str| {
            let (end_s, rest) = number(text.strip_prefix('[')?)?;
            Some((end_s, rest.strip_prefix('s')?.trim_start().strip_prefix(']')?))
        };
        for (end_s, rest) in self.0.iter().filter_map(|(_, text)| at(text)) {
            if rest.contains("queue length:") {
                if let Some(interval) = timeline.last_mut() {
                    let count = |word| behind(rest, word).map(|count| count as u64);
                    (interval.queued, interval.running) =
                        (count("queue length"), count("concurrency"));
                }
            } else if let Some(interval) = interval(end_s, rest) {
                timeline.push(interval);
            } else {
                unread += 1;
            }
        }
        (timeline, unread)
    }

    /// Says what does not fit together, and what is missing.
    fn warnings(self, run: &Imported, all: Lines, unread: u64) -> Result<Vec<Warning>, Unreadable> {
        let Imported { measured_s, latency, clients, .. } = run;
        let mut found = Vec::<Warning>::new();
        let mut doubt = |what: String| found.push(finding!(Contradiction, what).into());
        let (events, tps) = (self.count("total number of events")?, run.totals.tps);
        if (events as f64 / measured_s - tps).abs() > (tps * RATE_OFF).max(0.01) {
            doubt(format!("{events} events in {measured_s} s, and {tps} a second"));
        }
        let (sum_s, most_s) = (latency.sum_s, f64::from(*clients) * measured_s);
        if run.rate.is_none() && sum_s > most_s * (1.0 + RATE_OFF) {
            doubt(format!("{sum_s} s of latency in {measured_s} s of {clients} threads"));
        }
        if let Some((_, why)) = all.find("FATAL") {
            let unfinished = all.find("Number of unfinished transactions on forced shutdown");
            let but = unfinished
                .map_or_else(String::new, |(_, of)| format!(" ({of} unfinished transactions)"));
            found.push(
                finding!(ImportedFatal, clip(why, VALUE_MAX) + &clip(&but, VALUE_MAX)).into(),
            );
        }
        if self.has("deadlocks") {
            found.push(finding!(ImportedRequests).into());
        }
        if run.fairness.is_none() {
            found.push(finding!(ImportedCut, "the fairness of threads").into());
        }
        if unread > 0 {
            found.push(finding!(ImportedCut, format!("{unread} lines of intervals")).into());
        }
        Ok(found)
    }
}

/// Names the workload that has so many statements an op, where there is one only.
fn alike(totals: &ImportedTotals) -> Option<&'static str> {
    let is = |count: u64, each: f64| {
        let found = count as f64 / totals.ops as f64;
        (found - each).abs() <= each * STATEMENTS_OFF
    };
    let others = totals.others == 0 || is(totals.others, 2.0);
    let mut known = ALIKE.iter().filter(|_| others);
    let found =
        known.find(|(_, reads, writes)| is(totals.reads, *reads) && is(totals.writes, *writes));
    found.map(|(name, ..)| *name)
}

/// Reads a line of an interval of any version.
fn interval(end_s: f64, rest: &str) -> Option<ImportedInterval> {
    let of = |word| behind(rest, word);
    let parts = rest.split_once("(r/w/o: ").map_or("", |(_, parts)| parts).split(['/', ')']);
    let parts: Vec<f64> = parts.map_while(|part| Some(number(part)?.0)).collect();
    let part = |at: usize| parts.get(at).copied();
    // `lat (ms,95%): 9.91`, or `response time: 9.91ms (95%)`.
    let value = of("%)").or_else(|| of("response time")).filter(|value| *value > 0.0);
    let percentile = rest.split_once('%').and_then(|(before, _)| before.rsplit([',', '(']).next());
    let percentile = percentile.and_then(|percentile| percentile.parse().ok()).zip(value);
    Some(ImportedInterval {
        end_s,
        clients: of(" thds").or_else(|| of(" threads"))? as u32,
        tps: of(" tps")?,
        qps: of(" qps"),
        reads_per_s: part(0).or_else(|| of(" reads")),
        writes_per_s: part(1).or_else(|| of(" writes")),
        others_per_s: part(2),
        percentile: percentile
            .map(|(percentile, ms)| ImportedPercentile { percentile, value_us: ms * MS }),
        errors_per_s: of(" err"),
        reconnects_per_s: of(" reconn"),
        queued: None,
        running: None,
    })
}

/// Reads the number behind a word that begins so: `err/s: 1`, `err/s 1` and `errors: 1` are alike.
fn behind(text: &str, word: &str) -> Option<f64> {
    let (_, number_on) = text.split_once(word)?.1.split_once(' ')?;
    Some(number(number_on)?.0)
}

/// Reads the number that a text begins with; gives what follows, too.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].parse().ok().filter(|number| *number < NUMBER_MAX)?;
    Some((number, &text[end..]))
}

/// Reads a number that is nothing else. What is cut has no two decimals, or no whole unit.
fn decimal(text: &str) -> Option<f64> {
    let (number, unit) = number(text)?;
    let (_, decimals) = text.strip_suffix(unit)?.split_once('.')?;
    (decimals.len() >= 2 && UNITS.contains(&unit)).then_some(number)
}

#[cfg(test)]
mod tests;
