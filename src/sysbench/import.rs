//! Parses outputs of sysbench 0.4, 0.5, 1.0 and 1.1 into runs.
//!
//! A run begins at `Number of threads:`. Lines before it, such as an echoed command line or those of
//! prepare, describe it.

mod command;
mod files;
mod lines;

pub(crate) use command::native;
use command::{Command, Verb, commands};
use lines::{BEGIN, Line, split_outputs, without_escapes};

use crate::error::{VALUE_MAX, clip};
use crate::summary::{
    Fairness, Imported, ImportedBucket, ImportedInterval, ImportedLatency, ImportedPercentile,
    ImportedTotals, TextSource, Warning,
};
use crate::terms::{StatementMode, finding, joined};
use crate::workload::Distribution;
pub(crate) use files::import;

/// Printed rates cover a time that ends a little after the total time: by a millisecond, or more on a busy host.
const RATE_OFF: f64 = 0.01;
const RATE_LATER_S: f64 = 0.01;
const PER_SECOND: &str = " per sec.)";
/// Units of time in microseconds; a number without one is in milliseconds.
const TIMES: [(&str, f64); 4] = [("", 1e3), ("us", 1.0), ("ms", 1e3), ("s", 1e6)];
/// Upper limit of numbers: they stay finite when units change.
const NUMBER_MAX: f64 = 1e15;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundRun {
    pub line: usize,
    /// loadgen's name of the test, if a command line names one.
    pub test: Option<String>,
    /// The name of a script that loadgen does not have.
    pub script: Option<String>,
    /// The only workload with as many statements an op, if there is one.
    pub alike: Option<&'static str>,
    pub run: Imported,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub line: usize,
    pub what: String,
}

fn broken<T>(line: usize, what: impl Into<String>) -> Result<T, Unreadable> {
    Err(Unreadable { line, what: what.into() })
}

/// Reads files, one at least; unreadable ones are errors in their place. `told` holds the user's facts about them.
pub(crate) fn runs(bytes: &[u8], told: &Imported) -> Vec<Result<FoundRun, Unreadable>> {
    let text = decode(bytes);
    let text = without_escapes(&text);
    let outputs = split_outputs(&text);
    let echoed = Echoed::new(&outputs);
    let mut found = Vec::new();
    for (at, lines) in outputs.iter().enumerate() {
        let mut before = Preamble::new(lines);
        for part in split_runs(lines) {
            let (begin, first) = part[0];
            if first.starts_with(BEGIN) {
                before.reach(begin);
                // A shell's own lines lack the program's prefix.
                let other = echoed.before(begin).filter(|_| at > 0);
                found.push((begin, Lines(part).run(&before, other, told)));
            }
            for (number, text) in part {
                before.reach(*number);
                before.take(text);
            }
        }
    }
    // Restores the order of the text after mixed outputs.
    found.sort_by_key(|(begin, _)| *begin);
    if found.is_empty() {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        return vec![Lines(&outputs[0]).no_run(text)];
    }
    found.into_iter().map(|(_, run)| run).collect()
}

/// Decodes UTF-8, or UTF-16 with its mark, which some shells write; tabs become blanks.
fn decode(bytes: &[u8]) -> String {
    let units = |read: fn([u8; 2]) -> u16, bytes: &[u8]| -> String {
        let units = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => units(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => units(u16::from_be_bytes, rest),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    text.replace('\t', " ")
}

fn split_runs<'a, 'l>(lines: &'a [Line<'l>]) -> impl Iterator<Item = &'a [Line<'l>]> {
    lines.chunk_by(|_, (_, next)| !next.starts_with(BEGIN) && version(next).is_none())
}

/// Command lines beside outputs, and the lines in which runs begin.
struct Echoed {
    commands: Vec<Command>,
    begins: Vec<usize>,
}

impl Echoed {
    fn new(outputs: &[Vec<Line>]) -> Echoed {
        let mut commands = if outputs.len() == 1 { Vec::new() } else { commands(&outputs[0]) };
        commands.retain(|command| command.verb == Verb::Run);
        let lines = outputs.iter().flatten().filter(|(_, text)| text.starts_with(BEGIN));
        let mut begins: Vec<usize> = lines.map(|(number, _)| *number).collect();
        begins.sort_unstable();
        Echoed { commands, begins }
    }

    /// Finds the only command line between the run that begins in a line and the one before it.
    fn before(&self, begin: usize) -> Option<&Command> {
        let run = self.begins.partition_point(|other| *other < begin);
        let last = run.checked_sub(1).map_or(0, |last| self.begins[last]);
        let [from, to] = [last, begin].map(|at| self.commands.partition_point(|of| of.end < at));
        let [command] = &self.commands[from..to] else { return None };
        Some(command)
    }
}

fn version(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("sysbench ")?;
    let rest = Some(rest).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
    let ours = rest.contains("(using loadgen").then_some(rest);
    ours.or_else(|| rest.split([' ', ':']).next())
}

struct Preamble {
    /// Command lines still to come, the next one last.
    next: Vec<Command>,
    version: Option<String>,
    command: Option<Command>,
    /// Tables that prepare made, and the rows of each.
    tables: Option<u64>,
    rows: Option<u64>,
}

impl Preamble {
    fn new(lines: &[Line]) -> Preamble {
        let next = commands(lines).into_iter().rev().collect();
        Preamble { next, version: None, command: None, tables: None, rows: None }
    }

    fn reach(&mut self, line: usize) {
        while let Some(command) = self.next.pop_if(|command| command.end < line) {
            match command.verb {
                Verb::Run => self.command = Some(command),
                Verb::Prepare => {
                    self.tables = command.number("tables").or(self.tables);
                    self.rows = command.number("table-size").or(self.rows);
                }
                Verb::Cleanup => (self.tables, self.rows) = (None, None),
                Verb::Other => {}
            }
        }
    }

    fn take(&mut self, line: &str) {
        if let Some(version) = version(line) {
            self.version = Some(version.to_owned());
        } else if let Some(name) = line.strip_prefix("Creating table 'sbtest") {
            self.tables = self.tables.max(Some(number(name).map_or(1, |(table, _)| table as u64)));
        } else if let Some(rest) = line.strip_prefix("Inserting ") {
            self.rows = number(rest).map(|(rows, _)| rows as u64).or(self.rows);
        } else if line.starts_with("Dropping table '") {
            (self.tables, self.rows) = (None, None);
        }
    }
}
#[derive(Clone, Copy)]
struct Lines<'a>(&'a [(usize, &'a str)]);

impl<'a> Lines<'a> {
    /// Reads a run from its first line on; `echoed` is a command line beside its output.
    fn run(
        self,
        before: &Preamble,
        echoed: Option<&Command>,
        told: &Imported,
    ) -> Result<FoundRun, Unreadable> {
        let (line, begin) = self.0[0];
        let clients = begin[BEGIN.len()..].trim().parse().ok();
        let Some(clients) = clients.filter(|clients: &u32| *clients > 0) else {
            return broken(line, "there is no number of threads");
        };
        let report = self.report()?;
        let of_0_4 = |text: &str| {
            let name = text.strip_prefix("Using ")?.split_once(' ')?.0.to_lowercase();
            Some(name.parse::<Distribution>().ok()?.to_string())
        };
        let distribution = self.0.iter().find_map(|(_, text)| of_0_4(text));
        let command = echoed.into_iter().chain(&before.command).max_by_key(|command| command.end);
        let command = command.filter(|command| command.fits(clients));
        let number = |option, made| command.map_or(made, |of| of.number(option).or(made));
        let tables = number("tables", before.tables);
        let (timeline, unread) = self.timeline();
        let histogram = self.0.iter().filter_map(|(_, text)| bucket(text)).collect();
        let mut run = Imported {
            source: TextSource { version: before.version.clone(), ..told.source.clone() },
            clients,
            tables: told.tables.or(tables.and_then(|tables| tables.try_into().ok())),
            rows: told.rows.or(number("table-size", before.rows)),
            distribution: told
                .distribution
                .clone()
                .or(distribution)
                .or(command.and_then(Command::distribution)),
            statements: command.is_some_and(Command::is_text).then_some(StatementMode::Text),
            options: command.and_then(Command::options),
            rate: self.printed("Target transaction rate").filter(|rate| *rate > 0.0),
            warmup_s: self.printed("Warmup time"),
            seed: self.printed("number generator from seed").map(|seed| seed as u64),
            totals: report.totals()?,
            measured_s: report.value("time elapsed|total time")?,
            latency: ImportedLatency { histogram, ..report.latency()? },
            fairness: report.fairness(),
            timeline,
            ..told.clone()
        };
        run.warnings = report.warnings(&run, self, unread)?;
        let hidden =
            joined(command.map(Command::unreadable_options).into_iter().flatten().map(Some), ", ");
        let hidden = hidden.map(|names| format!("{names} of its command line"));
        run.warnings.extend(hidden.map(|what| finding!(ImportedCut, what).into()));
        let test = command.and_then(Command::workload);
        let script = command.and_then(Command::script);
        Ok(FoundRun { line, test, script, alike: only_workload(&run.totals), run })
    }

    fn report(self) -> Result<Lines<'a>, Unreadable> {
        let start = self.0.iter().rposition(|(_, text)| *text == "queries performed:");
        let checkpoint = self.0.iter().find(|(_, text)| text.contains("] Checkpoint report:"));
        let fatal = self.find("FATAL").map(|(line, why)| (line, clip(why, VALUE_MAX)));
        match (start, checkpoint.map(|(line, _)| *line), fatal) {
            (Some(start), None, _) => Ok(Lines(&self.0[start..])),
            (_, Some(line), _) => {
                broken(line, "it has checkpoints: its last report is of what came after them")
            }
            (.., Some((line, why))) => broken(line, format!("the run failed: {why}")),
            _ if self.has("time elapsed|total time") => {
                self.incomplete("it has no SQL statistics: it is no test of a database server")
            }
            _ => self.incomplete("it is cut off: the run that begins in it has no report"),
        }
    }

    fn no_run<T>(self, text: &str) -> Result<T, Unreadable> {
        // An array begins like an interval line.
        let json = text.starts_with('{') || text.starts_with('[') && text.contains('{');
        match text {
            "" => broken(1, "it is empty"),
            _ if text.contains('\0') => broken(1, "it is no text"),
            _ if json => broken(1, "it is JSON, and not the text that sysbench prints"),
            _ => self.incomplete(format!("it has no line '{BEGIN}', with which a run begins")),
        }
    }

    /// Returns an error at the last line: something is missing.
    fn incomplete<T>(self, what: impl Into<String>) -> Result<T, Unreadable> {
        broken(self.0.last().map_or(1, |(line, _)| *line), what)
    }

    /// Finds the value of the first line with one of these keys: other programs' lines may follow the report.
    fn find(self, keys: &str) -> Option<(usize, &'a str)> {
        let value = |text: &'a str, key| text.strip_prefix(key)?.strip_prefix(':').map(str::trim);
        let any = |text| keys.split('|').find_map(|key| value(text, key));
        self.0.iter().find_map(|(line, text)| Some((*line, any(text)?)))
    }

    fn printed(self, words: &str) -> Option<f64> {
        self.0.iter().find_map(|(_, text)| number_after(text, words))
    }

    fn has(self, keys: &str) -> bool {
        self.find(keys).is_some()
    }

    fn read<T>(self, keys: &str, read: fn(&str) -> Option<T>) -> Result<T, Unreadable> {
        let key = keys.rsplit('|').next().unwrap_or(keys);
        let Some((line, text)) = self.find(keys) else {
            return self.incomplete(format!("it is cut off: the report has no '{key}:'"));
        };
        read(text).map_or_else(|| broken(line, format!("'{key}:' has no number")), Ok)
    }

    fn count(self, keys: &str) -> Result<u64, Unreadable> {
        self.read(keys, |text| text.split(' ').next()?.parse().ok())
    }

    /// Reads the last number of a value, such as X of `N (X per sec.)`.
    fn value(self, keys: &str) -> Result<f64, Unreadable> {
        self.read(keys, |text| decimal(text.rsplit('(').next()?))
    }

    fn totals(self) -> Result<ImportedTotals, Unreadable> {
        let (reads, writes) = (self.count("read")?, self.count("write")?);
        let (others, total) = (self.count("other")?, self.count("total")?);
        if reads.saturating_add(writes).saturating_add(others) != total {
            let what = format!("read, write and other do not add up to the total of {total}");
            return broken(self.find("total").map_or(1, |(line, _)| line), what);
        }
        let is_old = self.has("deadlocks");
        let mut qps = self.value("queries|read/write requests")?;
        if !is_old && !self.has("queries") {
            qps += self.value("other operations")?;
        }
        Ok(ImportedTotals {
            ops: self.count("transactions")?,
            // 0.4 counts a BEGIN even where it sends none.
            statements: if is_old { total - others } else { total },
            tps: self.value("transactions")?,
            qps,
            reads,
            writes,
            others,
            errors: 0,
            retried: Some(self.count("deadlocks|ignored errors")?),
            reconnects: self.has("reconnects").then(|| self.count("reconnects")).transpose()?,
        })
    }

    fn latency(self) -> Result<ImportedLatency, Unreadable> {
        let old = "total time taken by event execution";
        let sum_s = if self.has(old) { self.value(old)? } else { self.read("sum", micros)? / 1e6 };
        let (min_us, max_us) = (self.read("min", micros)?, self.read("max", micros)?);
        let events = self.count("total number of events")?;
        let any = events > 0;
        let mut behind_max = self.0.iter().skip_while(|(_, text)| !text.starts_with("max:"));
        let printed = behind_max.nth(1).filter(|(_, text)| text.contains(" percentile:"));
        let read = |(line, text): &(usize, &str)| {
            percentile(text).map_or_else(|| broken(*line, "'percentile:' has no number"), Ok)
        };
        Ok(ImportedLatency {
            mean_us: any.then(|| sum_s * 1e6 / events as f64),
            min_us: any.then_some(min_us),
            max_us: any.then_some(max_us),
            sum_s,
            percentile: printed.map(read).transpose()?.filter(|_| any),
            histogram: Vec::new(),
        })
    }

    fn fairness(self) -> Option<Fairness> {
        let pair = |key| {
            let (average, deviation) = self.find(key)?.1.split_once('/')?;
            Some((decimal(average)?, decimal(deviation)?))
        };
        let (ops_mean, ops_stddev) = pair("events (avg/stddev)")?;
        let (time_mean_s, time_stddev_s) = pair("execution time (avg/stddev)")?;
        Some(Fairness { ops_mean, ops_stddev, time_mean_s, time_stddev_s })
    }

    fn timeline(self) -> (Vec<ImportedInterval>, u64) {
        let (mut timeline, mut unread) = (Vec::<ImportedInterval>::new(), 0);
        for (end_s, rest) in self.0.iter().filter_map(|(_, text)| seconds(text)) {
            let count = |word| number_after(rest, word).map(|count| count as u64);
            let (queued, running) = (count("queue length"), count("concurrency"));
            if let (Some(last), Some(_)) = (timeline.last_mut(), queued) {
                (last.queued, last.running) = (queued, running);
            } else if let Some(interval) = interval(end_s, rest) {
                timeline.push(interval);
            } else {
                unread += 1;
            }
        }
        (timeline, unread)
    }

    fn warnings(self, run: &Imported, all: Lines, unread: u64) -> Result<Vec<Warning>, Unreadable> {
        let Imported { measured_s, clients, rate, .. } = run;
        let ImportedTotals { ops, statements, tps, qps, .. } = run.totals;
        let (sum_s, events) = (run.latency.sum_s, self.count("total number of events")?);
        let off = |what, count: u64, rate: f64| {
            let bound = rate * (RATE_OFF + RATE_LATER_S / measured_s);
            let is_off = (count as f64 / measured_s - rate).abs() > bound.max(0.01);
            let told = format!("{count} {what} in {measured_s} s, and {rate} a second");
            is_off.then(|| finding!(Contradiction, told))
        };
        let most_s = f64::from(*clients) * measured_s * (1.0 + RATE_OFF);
        let unfinished = all.printed("unfinished transactions on forced shutdown");
        let other = || format!("{ops} transactions, and {events} events");
        let long = || format!("{sum_s} s of latency in {measured_s} s of {clients} threads");
        let found = [
            (ops != events).then(|| finding!(Contradiction, other())),
            off("events", events, tps),
            off("statements", statements, qps),
            (rate.is_none() && sum_s > most_s).then(|| finding!(Contradiction, long())),
            all.find("FATAL").map(|(_, why)| {
                finding!(ImportedFatal, clip(why, VALUE_MAX), unfinished.unwrap_or(0.0))
            }),
            self.has("deadlocks").then(|| finding!(ImportedRequests)),
            run.fairness.is_none().then(|| finding!(ImportedCut, "the fairness of threads")),
            (unread > 0).then(|| finding!(ImportedCut, format!("{unread} lines of intervals"))),
        ];
        Ok(found.into_iter().flatten().map(Warning::from).collect())
    }
}

/// Returns the workload with as many statements an op, if there is only one.
fn only_workload(totals: &ImportedTotals) -> Option<&'static str> {
    match candidates(totals) {
        [only] => Some(only),
        _ => None,
    }
}

fn candidates(totals: &ImportedTotals) -> &'static [&'static str] {
    match totals.each_op() {
        Some([14, 0, 0 | 2]) => &["read-only"],
        // 0.4 and 0.5 have a write more.
        Some([14, 4 | 5, 0 | 2]) => &["read-write"],
        Some([0, 4, 0 | 2]) => &["write-only"],
        Some([1, 0, 0]) => &["point-select", "random-points", "random-ranges"],
        Some([0, 1, 0]) => &["update-index", "update-non-index", "insert", "delete"],
        _ if reads_of_attempts(totals) == Some(14) => &["read-write"],
        _ => &[],
    }
}

/// Returns the reads of an attempt, where errors were ignored: each attempt read before a write of it failed.
fn reads_of_attempts(totals: &ImportedTotals) -> Option<u64> {
    let began_again = totals.retried.filter(|count| *count > 0)?;
    let attempts = totals.ops.checked_add(began_again)?;
    (totals.writes > 0 && totals.reads.is_multiple_of(attempts)).then_some(totals.reads / attempts)
}

/// Reads an interval line of any version.
fn interval(end_s: f64, rest: &str) -> Option<ImportedInterval> {
    let of = |word| number_after(rest, word);
    let parts = rest.split_once("(r/w/o: ").map_or("", |(_, parts)| parts).split(['/', ')']);
    let mut parts = parts.map_while(|part| Some(number(part)?.0));
    // `lat (ms,95%): 9.91`, or `response time: 9.91ms (95%)`.
    let which = rest.split_once('%').and_then(|(of, _)| of.rsplit([',', '(']).next()?.parse().ok());
    let unit = rest.split_once("lat (").and_then(|(_, unit)| factor(unit.split(',').next()?));
    let new = || Some(of("%)")? * unit?);
    let old = || time(rest.split_once("response time:")?.1);
    let value = new().or_else(old).filter(|us| *us > 0.0);
    let percentile = |(percentile, value_us)| ImportedPercentile { percentile, value_us };
    Some(ImportedInterval {
        end_s,
        clients: of(" thds").or_else(|| of(" threads"))? as u32,
        tps: of(" tps")?,
        qps: of(" qps"),
        reads_per_s: parts.next().or_else(|| of(" reads")),
        writes_per_s: parts.next().or_else(|| of(" writes")),
        others_per_s: parts.next(),
        percentile: which.zip(value).map(percentile).filter(|of| of.percentile <= 100),
        errors_per_s: of(" err"),
        reconnects_per_s: of(" reconn"),
        ..ImportedInterval::default()
    })
}

/// Reads `95th percentile:  1.23` or `approx.  95 percentile:  1.23ms`.
fn percentile(text: &str) -> Option<ImportedPercentile> {
    let (words, value) = text.split_once(':')?;
    let number = words.strip_suffix(" percentile")?.rsplit(' ').next()?.trim_end_matches("th");
    let percentile = number.parse().ok().filter(|of| (1..=100).contains(of))?;
    Some(ImportedPercentile { percentile, value_us: micros(value.trim())? })
}

/// Reads a line of the histogram: `VALUE |STARS COUNT`.
fn bucket(text: &str) -> Option<ImportedBucket> {
    let (value, rest) = text.split_once('|')?;
    let count = rest.trim_start_matches('*').trim().parse().ok()?;
    Some(ImportedBucket { value_us: micros(value.trim())?, count })
}

/// Reads the number after a word: `err/s: 1`, `err/s 1`, `errors: 1`.
fn number_after(text: &str, word: &str) -> Option<f64> {
    let (_, number_on) = text.split_once(word)?.1.split_once(' ')?;
    Some(number(number_on)?.0)
}

/// Reads a leading number; also returns the rest.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start_matches([' ', '(']);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].parse().ok().filter(|number| *number < NUMBER_MAX)?;
    Some((number, &text[end..]))
}

/// Reads an interval's end, and the rest: `[  10s] threads: 4, …`. A time stamp may come before it.
fn seconds(text: &str) -> Option<(f64, &str)> {
    let words = [" thds:", " threads:", " queue length:"];
    let last = words.iter().filter_map(|word| text.rfind(word)).max();
    text.match_indices('[').find_map(|(at, _)| {
        let (end_s, rest) = number(&text[at + 1..]).filter(|(_, rest)| rest.starts_with('s'))?;
        (at == 0 || last > Some(at)).then_some((end_s, rest))
    })
}

/// Reads a whole text as a number. A cut one lacks two decimals or a whole unit.
fn decimal(text: &str) -> Option<f64> {
    let (number, unit) = number(text)?;
    let (_, decimals) = text.strip_suffix(unit)?.split_once('.')?;
    (decimals.len() >= 2 && (unit == PER_SECOND || factor(unit).is_some())).then_some(number)
}

fn factor(unit: &str) -> Option<f64> {
    TIMES.iter().find(|(known, _)| *known == unit).map(|(_, factor)| *factor)
}

/// Reads a leading time, in microseconds.
fn time(text: &str) -> Option<f64> {
    let (number, rest) = number(text)?;
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    Some(number * factor(&rest[..end])?)
}

/// Reads a whole text as a time, in microseconds.
fn micros(text: &str) -> Option<f64> {
    decimal(text).and_then(|_| time(text))
}

#[cfg(test)]
mod tests;
