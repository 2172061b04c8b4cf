//! Outputs of sysbench 0.4, 0.5, 1.0 and 1.1, read: a text in, the runs that are whole in it out.
//!
//! A run begins at `Number of threads:`. What stands before it, such as a command line that a script
//! echoed or the lines of prepare, tells more of it.

mod files;

use std::collections::{BTreeMap, BTreeSet};

use crate::error::clip;
use crate::summary::{
    Fairness, Imported, ImportedBucket, ImportedInterval, ImportedLatency, ImportedPercentile,
    ImportedTotals, TextSource, Warning,
};
use crate::terms::{StatementMode, finding};
use crate::workload::{Distribution, builtin};
pub(crate) use files::{ToImport, import};

/// Longest foreign text in a message, characters.
const TEXT_MAX: usize = 80;
/// Printed rates are over a time that ends a little later than the total time.
const RATE_OFF: f64 = 0.01;
/// Statements an op, as a fork or an ignored error makes them differ from those of a workload.
const STATEMENTS_OFF: f64 = 0.02;
const MS: f64 = 1e3;

/// The values of a report, by the words before the colon.
const KEYS: &str = "read|write|other|total|transactions|queries|deadlocks|read/write requests|\
                    other operations|ignored errors|reconnects|total time|total number of events|\
                    total time taken by event execution|min|avg|max|sum|events (avg/stddev)|\
                    execution time (avg/stddev)|percentile|percentile stats|\
                    Number of unfinished transactions on forced shutdown";
/// The key of the line with the percentile, whose words hold its number.
const PERCENTILE: &str = "percentile";

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
    if let Some(what) = no_text(text) {
        return vec![broken(1, what)];
    }
    let (mut found, mut before, mut open) = (Vec::new(), Preamble::default(), None::<OpenRun>);
    let mut last = 1;
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        last = line;
        let version = version(text);
        let threads = text.strip_prefix("Number of threads:");
        if version.is_some() || threads.is_some() {
            found.extend(open.take().map(OpenRun::ended));
        }
        before.take(text);
        before.version = version.or(before.version);
        if let Some(threads) = threads {
            open = Some(OpenRun::new(line, threads, before.clone()));
        } else if let Some(open) = &mut open {
            open.take(line, text);
        }
    }
    found.extend(open.map(OpenRun::ended));
    if found.is_empty() {
        found.push(broken(last, "it has no line 'Number of threads:', with which a run begins"));
    }
    found
}

/// Says why a text cannot be sysbench's.
fn no_text(text: &str) -> Option<&'static str> {
    let start = text.trim_start();
    // An array begins like an interval line.
    let array = start.strip_prefix('[').map(str::trim_start);
    let json = start.starts_with('{') || array.is_some_and(|of| of.starts_with(['{', ']']));
    let whys = [
        (start.is_empty(), "it is empty"),
        (text.contains('\0'), "it is no text"),
        (json, "it is JSON, and not the text that sysbench prints"),
    ];
    whys.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why)
}

/// Reads the version of a header line.
fn version(line: &str) -> Option<String> {
    let rest = line.strip_prefix("sysbench ")?;
    let version = rest.split_whitespace().next()?.trim_end_matches(':');
    let is_one = version.starts_with(|c: char| c.is_ascii_digit()) && rest.len() > version.len();
    let ours = rest.contains("(using loadgen").then(|| rest.to_owned());
    is_one.then(|| ours.unwrap_or_else(|| version.to_owned()))
}

/// What stands before a run and tells of it.
#[derive(Debug, Clone, Default)]
struct Preamble {
    version: Option<String>,
    test: Option<String>,
    /// Options of the last command line that was echoed, written with `-`.
    options: BTreeMap<String, String>,
    /// Tables that prepare made, and the rows that it put into them.
    made: BTreeSet<String>,
    rows: BTreeSet<u64>,
}

impl Preamble {
    fn take(&mut self, line: &str) {
        let quoted = || line.split('\'').nth(1).unwrap_or_default().to_owned();
        if line.starts_with("Creating table '") {
            self.made.insert(quoted());
        } else if line.starts_with("Dropping table '") {
            (self.made, self.rows) = Default::default();
        } else if let Some(rest) = line.strip_prefix("Inserting ") {
            let rows = rest.split(' ').next().and_then(|word| word.parse::<u64>().ok());
            self.rows.extend(rows.filter(|_| rest.contains(" records into ")));
        } else if line.contains("sysbench ") && version(line).is_none() {
            self.command(line);
        }
    }

    /// Takes a command line, as a script echoes it.
    fn command(&mut self, line: &str) {
        let mut words = line.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        let name = |word: &str| word.rsplit('/').next().map(str::to_owned);
        if !words.any(|word| name(word).is_some_and(|name| name == "sysbench")) {
            return;
        }
        let (mut options, mut others) = (BTreeMap::new(), Vec::new());
        for word in words {
            match word.strip_prefix("--").map(|word| word.split_once('=').unwrap_or((word, ""))) {
                Some((name, value)) => {
                    options.insert(name.replace('_', "-"), value.to_owned());
                }
                None => others.push(word),
            }
        }
        let does = |word: &str| others.contains(&word);
        if does("run") || does("prepare") {
            let test = options.get("test").map(String::as_str).or(others.first().copied());
            self.test = test.and_then(name).map(|name| name.trim_end_matches(".lua").to_owned());
            self.options = options;
        }
    }

    /// Finds an option by its names in all versions.
    fn option(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.options.get(*name)).map(String::as_str)
    }

    fn tables(&self) -> Option<u32> {
        let given = self.option(&["tables", "oltp-tables-count"]).and_then(|n| n.parse().ok());
        given.or_else(|| u32::try_from(self.made.len()).ok()).filter(|tables| *tables > 0)
    }

    fn rows(&self) -> Option<u64> {
        let given = self.option(&["table-size", "oltp-table-size"]).and_then(|n| n.parse().ok());
        let made = self.rows.first().filter(|_| self.rows.len() == 1).copied();
        given.or(made).filter(|rows| *rows > 0)
    }

    fn distribution(&self) -> Option<String> {
        let kind = self.option(&["rand-type", "oltp-dist-type"])?;
        // What these change has no short form.
        if self.options.keys().any(|name| name.contains("-spec-")) {
            return None;
        }
        let with = |name, usual| format!(":{}", self.option(&[name]).unwrap_or(usual));
        let text = match kind {
            "pareto" => "pareto".to_owned() + &with("rand-pareto-h", "0.2"),
            "zipfian" => "zipf-adjacent".to_owned() + &with("rand-zipfian-exp", "0.8"),
            other => other.to_owned(),
        };
        Some(text.parse::<Distribution>().ok()?.to_string())
    }
}

/// Gives loadgen's name of a test, where it has one.
pub(crate) fn native(test: &str) -> Option<String> {
    let test = if test == "select" { "oltp_point_select" } else { test };
    let is = |name: &String| name == test || name.replace('-', "_") == test;
    let known = builtin().into_iter().find(|of| is(&of.name) || of.aliases.iter().any(is));
    known.map(|workload| workload.name)
}

/// A run that is being read.
#[derive(Default)]
struct OpenRun {
    line: usize,
    last: usize,
    before: Preamble,
    run: Imported,
    /// The lines of the last report.
    report: BTreeMap<&'static str, (usize, String)>,
    statements: bool,
    checkpoint: Option<usize>,
    fatal: Option<(usize, String)>,
    /// Lines that look like those of intervals.
    unread: u64,
    wrong: Option<Unreadable>,
}

impl OpenRun {
    fn new(line: usize, threads: &str, before: Preamble) -> OpenRun {
        let statements = before.option(&["db-ps-mode"]) == Some("disable");
        let clients = threads.trim().parse().ok().filter(|clients: &u32| *clients > 0);
        let wrong =
            Unreadable { line, what: format!("there is no number of threads in{threads:?}") };
        let run = Imported {
            source: TextSource { version: before.version.clone(), ..TextSource::default() },
            clients: clients.unwrap_or_default(),
            tables: before.tables(),
            rows: before.rows(),
            distribution: before.distribution(),
            statements: statements.then_some(StatementMode::Text),
            ..Imported::default()
        };
        let wrong = clients.is_none().then_some(wrong);
        OpenRun { line, last: line, before, run, wrong, ..OpenRun::default() }
    }

    fn take(&mut self, line: usize, text: &str) {
        if !text.is_empty() {
            self.last = line;
        }
        let run = &mut self.run;
        if text.starts_with('[') {
            self.in_brackets(line, text);
        } else if let Some(why) = text.strip_prefix("FATAL:") {
            self.fatal.get_or_insert((line, why.trim().to_owned()));
        } else if text == "SQL statistics:" || text == "OLTP test statistics:" {
            self.report.clear();
            self.statements = true;
        } else if text.starts_with("Latency histogram") {
            run.latency.histogram.clear();
        } else if let Some(rate) = text.strip_prefix("Target transaction rate:") {
            run.rate = number(rate).filter(|rate| *rate > 0.0);
        } else if let Some(time) = text.strip_prefix("Warmup time:") {
            run.warmup_s = number(time);
        } else if let Some((_, seed)) = text.split_once("number generator from seed (") {
            run.seed = seed.split(')').next().and_then(|seed| seed.parse().ok());
        } else if let Some(kind) = text.strip_prefix("Using ").filter(|of| of.contains("istribut"))
        {
            let kind = kind.split(' ').next().expect("one word at least").to_lowercase();
            let known = kind.parse::<Distribution>().ok().map(|known| known.to_string());
            run.distribution = known.or(run.distribution.take());
        } else if let Some((value, count)) = bucket(text) {
            run.latency.histogram.push(ImportedBucket { value_us: value * MS, count });
        } else if let Some((words, value)) = text.split_once(':') {
            let words = match words {
                "time elapsed" => "total time",
                words if words.ends_with(PERCENTILE) => PERCENTILE,
                words => words,
            };
            if let Some(key) = KEYS.split('|').find(|key| *key == words) {
                let value = if key == PERCENTILE { text } else { value.trim() };
                // What follows a report, such as another program's, changes nothing in it.
                self.report.entry(key).or_insert_with(|| (line, value.to_owned()));
            }
        }
    }

    /// Takes a line of an interval, or of what else is told at an instant.
    fn in_brackets(&mut self, line: usize, text: &str) {
        let Some((end, rest)) = text[1..].split_once(']') else { return };
        let Some(end_s) = end.trim().strip_suffix('s').and_then(decimal) else { return };
        if rest.contains("Checkpoint report:") {
            self.checkpoint.get_or_insert(line);
        } else if rest.contains("queue length:") {
            let count = |name| number_after(rest, name).map(|count| count as u64);
            if let Some(interval) = self.run.timeline.last_mut() {
                interval.queued = count("queue length");
                interval.running = count("concurrency");
            }
        } else if let Some(interval) = interval(end_s, rest) {
            self.run.timeline.push(interval);
        } else {
            self.unread += 1;
        }
    }

    fn ended(mut self) -> Result<FoundRun, Unreadable> {
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        if !self.statements {
            return self.without_report();
        }
        if let Some(line) = self.checkpoint {
            return broken(line, "it has checkpoints: its last report is of what came after them");
        }
        self.figures()?;
        self.check()?;
        let test = self.before.test.as_deref().and_then(native);
        Ok(FoundRun { line: self.line, test, alike: alike(&self.run.totals), run: self.run })
    }

    fn without_report(&self) -> Result<FoundRun, Unreadable> {
        if let Some((line, why)) = &self.fatal {
            return broken(*line, format!("the run failed: {}", clip(why, TEXT_MAX)));
        }
        if self.report.contains_key("total time") {
            let what = "it has no SQL statistics: it is no test of a database server";
            return broken(self.last, what);
        }
        broken(self.last, "it is cut off: the run that begins in it has no report")
    }

    fn text(&self, key: &str) -> Result<(usize, &str), Unreadable> {
        let Some((line, text)) = self.report.get(key) else {
            return broken(self.last, format!("it is cut off: the report has no '{key}:'"));
        };
        Ok((*line, text))
    }

    /// Gives a value of the report, or says that it is none.
    fn value<T>(&self, key: &str, read: fn(&str) -> Option<T>) -> Result<T, Unreadable> {
        let (line, text) = self.text(key)?;
        let none = || broken(line, format!("'{key}:' has no number in '{}'", clip(text, TEXT_MAX)));
        read(text).map_or_else(none, Ok)
    }

    /// Gives a value that some versions do not print.
    fn maybe<T>(&self, key: &str, read: fn(&str) -> Option<T>) -> Result<Option<T>, Unreadable> {
        self.report.contains_key(key).then(|| self.value(key, read)).transpose()
    }

    /// Fills in what the report says.
    fn figures(&mut self) -> Result<(), Unreadable> {
        let [reads, writes, others, total] =
            ["read", "write", "other", "total"].map(|key| self.value(key, count));
        let (reads, writes, others, total) = (reads?, writes?, others?, total?);
        let ((ops, tps), queries) =
            (self.value("transactions", rated)?, self.maybe("queries", rated)?);
        let deadlocks = self.maybe("deadlocks", rated)?;
        // 0.4 counts a BEGIN also where it sends none.
        let (statements, qps) = match (queries, deadlocks) {
            (Some((_, qps)), _) => (total, qps),
            (None, Some(_)) => (reads + writes, self.value("read/write requests", rated)?.1),
            (None, None) => {
                let parts = ["read/write requests", "other operations"];
                let [requests, others] = parts.map(|key| self.value(key, rated));
                (total, requests?.1 + others?.1)
            }
        };
        let errors = self.maybe("ignored errors", rated)?.or(deadlocks);
        let reconnects = self.maybe("reconnects", rated)?.map(|(count, _)| count);
        let Some((errors, _)) = errors else { return self.text("ignored errors").map(|_| ()) };
        let (line, _) = self.text("total")?;
        let sum = reads.checked_add(writes).and_then(|sum| sum.checked_add(others));
        if sum != Some(total) {
            let what = format!("read, write and other do not add up to the total of {total}");
            return broken(line, what);
        }
        self.run.measured_s = self.value("total time", seconds)?;
        let totals = ImportedTotals { ops, statements, tps, qps, ..ImportedTotals::default() };
        self.run.totals = ImportedTotals { reads, writes, others, errors, reconnects, ..totals };
        self.times()
    }

    fn times(&mut self) -> Result<(), Unreadable> {
        let old = "total time taken by event execution";
        let sum_s = match self.maybe(old, sum_of_old)? {
            Some(sum_s) => sum_s,
            None => self.value("sum", micros)? / 1e6,
        };
        let [min, avg, max] = ["min", "avg", "max"].map(|key| self.value(key, micros));
        let (min_us, _, max_us) = (min?, avg?, max?);
        let events = self.value("total number of events", count)?;
        let any = events > 0;
        let percentile = self.maybe(PERCENTILE, percentile)?.filter(|_| any);
        self.run.latency = ImportedLatency {
            mean_us: any.then(|| sum_s * 1e6 / events as f64),
            min_us: any.then_some(min_us),
            max_us: any.then_some(max_us),
            sum_s,
            percentile,
            histogram: std::mem::take(&mut self.run.latency.histogram),
        };
        let [ops, times] = ["events (avg/stddev)", "execution time (avg/stddev)"]
            .map(|key| self.value(key, pair).ok());
        self.run.fairness = ops.zip(times).map(|(ops, times)| Fairness {
            ops_mean: ops.0,
            ops_stddev: ops.1,
            time_mean_s: times.0,
            time_stddev_s: times.1,
        });
        Ok(())
    }

    /// Notes what does not fit together, and what is missing.
    fn check(&mut self) -> Result<(), Unreadable> {
        let (run, mut found) = (&self.run, Vec::<Warning>::new());
        let ImportedTotals { ops, tps, .. } = run.totals;
        let events = self.value("total number of events", count)?;
        let mut doubt = |what: String| found.push(finding!(Contradiction, what).into());
        if ops != events {
            doubt(format!("{ops} transactions, and {events} events"));
        }
        let rate = events as f64 / run.measured_s;
        if (rate - tps).abs() > (tps * RATE_OFF).max(0.01) {
            doubt(format!("{events} events in {} s, and {tps} a second", run.measured_s));
        }
        let most_s = f64::from(run.clients) * run.measured_s;
        if run.rate.is_none() && run.latency.sum_s > most_s * (1.0 + RATE_OFF) {
            doubt(format!(
                "{} s of latency in {} s of {} threads",
                run.latency.sum_s, run.measured_s, run.clients
            ));
        }
        let shutdown = "Number of unfinished transactions on forced shutdown";
        let unfinished = self.maybe(shutdown, count)?;
        let but =
            unfinished.map_or_else(String::new, |of| format!(" ({of} unfinished transactions)"));
        let fatal = self.fatal.iter().map(|(_, why)| clip(why, TEXT_MAX) + &but);
        found.extend(fatal.map(|why| finding!(ImportedFatal, why).into()));
        if run.fairness.is_none() {
            found.push(finding!(ImportedCut, "the fairness of threads").into());
        }
        if self.unread > 0 {
            found.push(finding!(ImportedCut, format!("{} lines of intervals", self.unread)).into());
        }
        self.run.warnings = found;
        Ok(())
    }
}

/// Names the workload that has so many statements an op, where there is one only.
fn alike(totals: &ImportedTotals) -> Option<&'static str> {
    let is = |count: u64, each: f64| {
        let found = count as f64 / totals.ops as f64;
        (found - each).abs() <= each * STATEMENTS_OFF
    };
    let [reads, writes, others] = [totals.reads, totals.writes, totals.others];
    // 0.4 and 0.5 have a write more.
    let some = is(writes, 4.0) || is(writes, 5.0);
    let name = match (reads, writes) {
        (1.., 0) if is(reads, 14.0) => "read-only",
        (1.., 1..) if is(reads, 14.0) && some => "read-write",
        (0, 1..) if is(writes, 4.0) => "write-only",
        _ => return None,
    };
    (others == 0 || is(others, 2.0)).then_some(name)
}

/// Reads a line of an interval of any version.
fn interval(end_s: f64, rest: &str) -> Option<ImportedInterval> {
    let any = |names: &[&str]| names.iter().find_map(|name| number_after(rest, name));
    let parts = rest.split_once("(r/w/o:").and_then(|(_, rest)| rest.split_once(')'));
    let parts = parts.map(|(parts, _)| parts.split('/').map(number).collect::<Vec<_>>());
    let part = |at: usize| parts.as_ref().and_then(|parts| parts.get(at).copied().flatten());
    let new = rest.split_once("lat (ms,").and_then(|(_, of)| of.split_once("%):"));
    let old = rest.split_once("response time:").and_then(|(_, of)| of.split_once("ms ("));
    let times = match (new, old) {
        (Some((percentile, rest)), _) => Some((percentile, rest)),
        (None, Some((value, rest))) => {
            rest.split_once('%').map(|(percentile, _)| (percentile, value))
        }
        (None, None) => None,
    };
    let percentile = times.and_then(|(percentile, value)| {
        let (percentile, value_us) = (percentile.trim().parse().ok()?, number(value)? * MS);
        (value_us > 0.0).then_some(ImportedPercentile { percentile, value_us })
    });
    Some(ImportedInterval {
        end_s,
        clients: any(&["thds", "threads"])? as u32,
        tps: any(&["tps"])?,
        qps: any(&["qps"]),
        reads_per_s: part(0).or_else(|| any(&["reads/s", "reads"])),
        writes_per_s: part(1).or_else(|| any(&["writes/s", "writes"])),
        others_per_s: part(2),
        percentile,
        errors_per_s: any(&["err/s", "errors"]),
        reconnects_per_s: any(&["reconn/s", "reconnects"]),
        queued: None,
        running: None,
    })
}

/// Reads the number behind a name, with or without a colon.
fn number_after(text: &str, name: &str) -> Option<f64> {
    // `threads` ends like `reads`.
    let starts = |at: &usize| text[..*at].ends_with([' ', '(']);
    let at = text.match_indices(name).map(|(at, _)| at).find(starts)? + name.len();
    number(text[at..].trim_start_matches(':'))
}

/// Reads the number at the beginning of a text.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().ok().filter(|number: &f64| number.is_finite())
}

fn count(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Reads a number that is nothing else: neither a sign nor an exponent.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|number: &f64| plain && number.is_finite())
}

/// Reads `N (X per sec.)`.
fn rated(text: &str) -> Option<(u64, f64)> {
    let (number, rate) = text.split_once('(')?;
    Some((
        count(number.trim_end())?,
        decimal(rate.trim_end_matches(')').strip_suffix(" per sec.")?)?,
    ))
}

fn seconds(text: &str) -> Option<f64> {
    decimal(text.strip_suffix('s')?)
}

/// Reads the sum of times as 0.4 and 0.5 print it, whose unit came later.
fn sum_of_old(text: &str) -> Option<f64> {
    decimal(text.trim_end_matches('s'))
}

/// Reads a time: milliseconds, or as its unit says. What is cut has fewer decimals.
fn micros(text: &str) -> Option<f64> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, MS),
        (None, Some(number)) => (number, 1e6),
        (None, None) => (text, MS),
    };
    let (_, decimals) = number.split_once('.')?;
    Some(decimal(number.trim())? * unit).filter(|_| decimals.len() >= 2)
}

/// Reads ` 95th percentile:  1.23` and `approx.  95 percentile:  1.23ms`.
fn percentile(text: &str) -> Option<ImportedPercentile> {
    let (words, value) = text.split_once(':')?;
    let number = words.split_whitespace().rev().nth(1)?.trim_end_matches("th");
    let percentile = number.parse().ok().filter(|of| (1..=100).contains(of))?;
    Some(ImportedPercentile { percentile, value_us: micros(value.trim())? })
}

/// Reads `AVG/STDDEV`.
fn pair(text: &str) -> Option<(f64, f64)> {
    let (average, deviation) = text.split_once('/')?;
    let whole = deviation.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 2);
    Some((decimal(average)?, decimal(deviation)?)).filter(|_| whole)
}

/// Reads a line of the histogram: `VALUE |STARS COUNT`.
fn bucket(text: &str) -> Option<(f64, u64)> {
    let (value, rest) = text.split_once('|')?;
    let stars = rest.trim_start_matches('*').trim();
    Some((decimal(value.trim())?, count(stars)?))
}

#[cfg(test)]
mod tests;
