//! Counts and times of one engine thread: no lock, atomic or channel an operation.
//!
//! QPS counts what *completes* in the measured window; latency covers what was *issued* in it, also if
//! it finishes in the drain. The intervals of all threads are merged off the hot path into the
//! timeline, the totals and `--interval-log`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::named::{NamedOps, TransactionNames, merge_named};
use super::times::Times;
use crate::error::{Error, Result, line};
use crate::stop::locked;
use crate::terms::add;

/// Nanoseconds since the step's origin, the start of the warm-up.
pub type Ns = u64;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the window; not counted.
    #[default]
    Warmup,
    /// The window.
    Measure,
    /// Ops in flight at the window's end.
    Drain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    pub window_start: Ns,
    /// End of the window, start of the drain; `Ns::MAX` while it is open.
    pub window_end: Ns,
    /// With `--ops`: count what was issued in the window, so that exactly N are counted.
    pub by_issue: bool,
    pub interval: Ns,
}

impl Phases {
    pub(crate) fn at(&self, now: Ns) -> Phase {
        if now < self.window_start {
            Phase::Warmup
        } else if now < self.window_end {
            Phase::Measure
        } else {
            Phase::Drain
        }
    }

    /// Begins an interval at `start`: phases never share one.
    fn interval(&self, start: Ns, statements: usize) -> RecordedInterval {
        let phase = self.at(start);
        let end = start.saturating_add(self.interval.max(1)).min(self.edge(phase));
        RecordedInterval::new(phase, start, end, statements)
    }

    fn edge(&self, phase: Phase) -> Ns {
        match phase {
            Phase::Warmup => self.window_start,
            Phase::Measure => self.window_end,
            Phase::Drain => Ns::MAX,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedInterval {
    pub phase: Phase,
    pub start: Ns,
    pub end: Ns,
    pub ops: u64,
    pub statements: u64,
    pub rows: u64,
    /// Statements that were to change rows, and found none.
    pub unmatched: u64,
    /// Failed ops and those in doubt.
    pub errors: u64,
    /// Service time of ops issued in this phase (in the drain: in the window).
    pub service: Times,
    pub failed: Times,
    /// Those of a script by the kinds of its statements.
    pub by_statement: Vec<Times>,
    /// Ops that a script gave a name.
    pub named: Vec<NamedOps>,
    /// Only in an open loop; None before the first op.
    pub paced: Option<Box<Paced>>,
    /// Times of log-ins that began in the window, where clients log in again; None before the first.
    pub connect: Option<Box<Times>>,
    /// sysbench's counts; None in a run by loadgen's own rules.
    pub events: Option<Box<EventCounts>>,
}

/// Ops as sysbench counts them, its events: attempts that begin again count with their statements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventCounts {
    /// Statements with a result set.
    pub reads: u64,
    /// Statements without one that affected rows.
    pub writes: u64,
    pub others: u64,
    pub events: u64,
    /// Ignored errors.
    pub ignored: u64,
    pub reconnects: u64,
    pub unexpected: u64,
    /// Times of events, from the first attempt or, in an open loop, from the intended instant on.
    pub times: Times,
    pub by_client: Vec<ClientEvents>,
}

/// The events of one client, and the sum of their times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEvents {
    pub events: u64,
    pub busy_ns: u64,
}

impl EventCounts {
    pub(crate) fn new(clients: usize) -> EventCounts {
        let by_client = vec![ClientEvents::default(); clients];
        EventCounts { by_client, ..EventCounts::default() }
    }

    pub(crate) fn merge(&mut self, other: &EventCounts) {
        add!(self, other; reads, writes, others, events, ignored, reconnects, unexpected);
        self.times.merge(&other.times);
        let clients = self.by_client.len().max(other.by_client.len());
        self.by_client.resize(clients, ClientEvents::default());
        for (mine, theirs) in self.by_client.iter_mut().zip(&other.by_client) {
            add!(mine, theirs; events, busy_ns);
        }
    }

    pub(crate) fn statements(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    pub(crate) fn answers(&self) -> u64 {
        self.statements() + self.ignored
    }

    #[inline]
    pub(crate) fn event(&mut self, client: u32, ns: u64) {
        self.events += 1;
        self.times.record(ns);
        let of = &mut self.by_client[client as usize];
        of.events += 1;
        of.busy_ns += ns;
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Paced {
    pub response: Times,
    pub wait: Times,
}

impl RecordedInterval {
    pub(super) fn new(phase: Phase, start: Ns, end: Ns, statements: usize) -> RecordedInterval {
        let by_statement = vec![Times::new(); statements];
        RecordedInterval { phase, start, end, by_statement, ..RecordedInterval::default() }
    }

    pub(crate) fn merge(&mut self, other: &RecordedInterval) {
        self.end = self.end.max(other.end);
        add!(self, other; ops, statements, rows, unmatched, errors);
        self.service.merge(&other.service);
        self.failed.merge(&other.failed);
        for (mine, theirs) in self.by_statement.iter_mut().zip(&other.by_statement) {
            mine.merge(theirs);
        }
        merge_named(&mut self.named, &other.named);
        if let Some(paced) = &other.paced {
            let mine = self.paced.get_or_insert_default();
            mine.response.merge(&paced.response);
            mine.wait.merge(&paced.wait);
        }
        if let Some(connect) = &other.connect {
            self.connect.get_or_insert_default().merge(connect);
        }
        if let Some(events) = &other.events {
            self.events.get_or_insert_default().merge(events);
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Op {
    pub intended: Option<Ns>,
    pub issued: Ns,
    pub measured: bool,
    pub completed: Ns,
    pub statements: u32,
    pub rows: u64,
    pub unmatched: u32,
    /// The number of its name, where a script gave it one.
    pub name: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Successes {
    pub first: Ns,
    pub last: Ns,
}

impl Successes {
    const NONE: Successes = Successes { first: Ns::MAX, last: 0 };
}

pub struct Recorder {
    phases: Phases,
    current: RecordedInterval,
    before: u64,
    successes: Successes,
    /// Those of [`Op::name`].
    pub(crate) names: Arc<TransactionNames>,
    finished: Sink,
}

type Sink = Box<dyn FnMut(RecordedInterval)>;

impl Recorder {
    /// `finished` gets each interval at its end; `statements` have times of their own (0 where an op is one).
    pub fn new(phases: Phases, statements: usize, finished: Sink) -> Recorder {
        let (current, successes) = (phases.interval(0, statements), Successes::NONE);
        Recorder { phases, current, before: 0, successes, names: Arc::default(), finished }
    }

    /// Starts to count as sysbench does, too, for the clients of all threads.
    pub(crate) fn count_events(&mut self, clients: u32) {
        self.current.events = Some(Box::new(EventCounts::new(clients as usize)));
    }

    /// Returns the current interval's sysbench counts; None after the window.
    #[inline]
    pub(crate) fn events(&mut self, now: Ns) -> Option<&mut EventCounts> {
        self.roll(now);
        let counts = self.current.phase != Phase::Drain;
        self.current.events.as_deref_mut().filter(|_| counts)
    }

    /// Moves the window's edges; the current interval ends with its phase.
    pub(crate) fn set_window(&mut self, start: Ns, end: Ns) {
        (self.phases.window_start, self.phases.window_end) = (start, end);
        let edge = self.phases.edge(self.current.phase);
        self.current.end = self.current.end.min(edge.max(self.current.start));
    }

    /// Ends the intervals before `now`; idle threads call it, too.
    #[inline]
    pub(crate) fn roll(&mut self, now: Ns) {
        while now >= self.current.end {
            let statements = self.current.by_statement.len();
            let mut next = self.phases.interval(self.current.end, statements);
            let events = self.current.events.as_deref();
            next.events = events.map(|of| Box::new(EventCounts::new(of.by_client.len())));
            // Here, so that no op allocates.
            next.named = self.current.named.iter().map(|of| NamedOps::new(&of.name)).collect();
            self.before += self.current.ops;
            (self.finished)(std::mem::replace(&mut self.current, next));
        }
    }

    pub(crate) fn ops(&self) -> u64 {
        self.before + self.current.ops
    }

    pub(crate) fn take_successes(&mut self) -> Option<Successes> {
        let seen = std::mem::replace(&mut self.successes, Successes::NONE);
        (seen != Successes::NONE).then_some(seen)
    }

    /// Records a successful op; returns whether it counts toward QPS.
    #[inline]
    pub fn succeeded(&mut self, op: Op) -> bool {
        self.roll(op.completed);
        self.successes.first = self.successes.first.min(op.completed);
        self.successes.last = op.completed;
        let counts = self.counts(op.measured);
        let current = &mut self.current;
        if counts || current.phase == Phase::Warmup {
            current.ops += 1;
            current.statements += u64::from(op.statements);
            current.rows += op.rows;
            current.unmatched += u64::from(op.unmatched);
            if let Some(named) = op.name.and_then(|name| self.named(name)) {
                named.ops += 1;
            }
        }
        self.time(op);
        counts
    }

    #[inline]
    fn time(&mut self, op: Op) {
        if !self.in_latency(op.measured) {
            return;
        }
        let took = op.completed.saturating_sub(op.issued);
        self.current.service.record(took);
        if let Some(intended) = op.intended {
            self.paced(intended, op.issued, op.completed);
        }
        if let Some(named) = op.name.and_then(|name| self.named(name)) {
            named.time(took, op.intended.map(|intended| op.completed.saturating_sub(intended)));
        }
    }

    /// Returns the current interval's counts of a name; those of a new name are made.
    fn named(&mut self, number: u32) -> Option<&mut NamedOps> {
        let named = &mut self.current.named;
        if number as usize >= named.len() {
            let names = self.names.list_from(named.len());
            named.extend(names.iter().map(|name| NamedOps::new(name)));
        }
        named.get_mut(number as usize)
    }

    /// Counts errors after which an op of this name began again.
    #[cfg_attr(not(feature = "lua"), allow(dead_code, reason = "only scripts name ops"))]
    pub(crate) fn retried(&mut self, name: u32, errors: u64) {
        if self.current.phase != Phase::Drain
            && let Some(named) = self.named(name)
        {
            named.retried += errors;
        }
    }

    fn paced(&mut self, intended: Ns, issued: Ns, completed: Ns) {
        let paced = self.current.paced.get_or_insert_default();
        paced.response.record(completed.saturating_sub(intended));
        paced.wait.record(issued.saturating_sub(intended));
    }

    /// Records a statement of an op that is not over.
    #[inline]
    pub(crate) fn statement(&mut self, index: usize, measured: bool, (sent, answered): (Ns, Ns)) {
        self.roll(answered);
        if self.in_latency(measured) {
            self.current.by_statement[index].record(answered.saturating_sub(sent));
        }
    }

    pub(crate) fn failed(&mut self, issued: Ns, measured: bool, completed: Ns) {
        self.roll(completed);
        self.current.errors += 1;
        if self.in_latency(measured) {
            self.current.failed.record(completed.saturating_sub(issued));
        }
    }

    /// Records a log-in that a client does after so many ops, if it began in the window.
    pub(crate) fn connected(&mut self, began: Ns, now: Ns) {
        self.roll(now);
        if (self.phases.window_start..self.phases.window_end).contains(&began) {
            self.current.connect.get_or_insert_default().record(now.saturating_sub(began));
        }
    }

    /// Records an op in doubt, neither done nor failed: an error of the timeline alone.
    pub(crate) fn unresolved(&mut self, now: Ns) {
        self.roll(now);
        self.current.errors += 1;
    }

    /// The age of an op that was given up is a lower bound of its time: else a stalled server would look fast.
    pub(crate) fn abandoned(&mut self, op: Op) {
        self.unresolved(op.completed);
        self.time(op);
    }

    /// Records arrivals of the window that were never issued, in the same way.
    pub(crate) fn unissued(&mut self, intended: Ns, now: Ns, count: u64) {
        self.roll(now);
        let age = now.saturating_sub(intended);
        let paced = self.current.paced.get_or_insert_default();
        paced.response.record_n(age, count);
        paced.wait.record_n(age, count);
    }

    pub(crate) fn finish(&mut self, now: Ns) {
        self.roll(now);
        self.current.end = now.max(self.current.start);
        self.roll(self.current.end);
    }

    fn counts(&self, measured: bool) -> bool {
        self.current.phase == Phase::Measure && (!self.phases.by_issue || measured)
    }

    /// Ops that the warm-up issued do not count in the window.
    fn in_latency(&self, measured: bool) -> bool {
        self.current.phase == Phase::Warmup || measured
    }
}

#[cfg(test)]
type SeenIntervals = std::rc::Rc<std::cell::RefCell<Vec<RecordedInterval>>>;

#[cfg(test)]
impl Recorder {
    /// Makes one that lists the intervals which have ended.
    pub(crate) fn listing(phases: Phases, statements: usize) -> (Recorder, SeenIntervals) {
        let seen = SeenIntervals::default();
        let sink = std::rc::Rc::clone(&seen);
        let list = move |interval| sink.borrow_mut().push(interval);
        (Recorder::new(phases, statements, Box::new(list)), seen)
    }
}

/// One interval of the timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interval {
    /// Its phase.
    pub phase: Phase,
    /// Start, seconds from the start of the warm-up.
    pub start_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// Ops completed in it.
    pub ops: u64,
    /// Ops that failed in it, those in doubt or given up included.
    pub errors: u64,
    /// Ignored errors in it; not there in a run by loadgen's own rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<u64>,
    /// Median service time, microseconds; null without ops.
    pub p50_us: Option<f64>,
    /// 99th percentile of the service time, microseconds.
    pub p99_us: Option<f64>,
    /// Largest service time, microseconds.
    pub max_us: Option<f64>,
    /// Median response time, microseconds; null in a closed loop.
    pub response_p50_us: Option<f64>,
    /// 99th percentile of the response time, microseconds.
    pub response_p99_us: Option<f64>,
    /// Largest response time, microseconds.
    pub response_max_us: Option<f64>,
}

#[cfg(test)]
impl Interval {
    /// Makes an interval of a second with ops and no times.
    pub(crate) fn counted(phase: Phase, start_s: f64, ops: u64) -> Interval {
        Interval {
            phase,
            start_s,
            length_s: 1.0,
            ops,
            errors: 0,
            retried: None,
            p50_us: None,
            p99_us: None,
            max_us: None,
            response_p50_us: None,
            response_p99_us: None,
            response_max_us: None,
        }
    }
}

/// The merged measurements of all threads so far.
#[derive(Default)]
pub struct Timeline {
    delivered: Vec<Ns>,
    /// Intervals that some thread may still add to, by their start and phase. A thread that learns late where the
    /// window begins closes the earlier phase with an interval of no length.
    open: BTreeMap<(Ns, Phase), RecordedInterval>,
    entry: Ns,
    growing: Option<RecordedInterval>,
    pub entries: Vec<Interval>,
    /// Ops done in the window, and the times of those issued in it, also from the drain.
    pub window: RecordedInterval,
    pub log: Option<Arc<Mutex<IntervalLog>>>,
}

impl Timeline {
    pub(crate) fn new(threads: usize, statements: usize, entry: Ns) -> Timeline {
        let window = RecordedInterval::new(Phase::Measure, 0, 0, statements);
        Timeline { delivered: vec![0; threads], entry, window, ..Timeline::default() }
    }

    /// Returns the intervals that no thread can add to any more, oldest first.
    pub(crate) fn add(&mut self, thread: usize, more: RecordedInterval) -> Vec<RecordedInterval> {
        self.delivered[thread] = more.end;
        let key = (more.start, more.phase);
        match self.open.get_mut(&key) {
            Some(merged) => merged.merge(&more),
            None => drop(self.open.insert(key, more)),
        }
        self.take_complete()
    }

    pub(crate) fn thread_done(&mut self, thread: usize) -> Vec<RecordedInterval> {
        self.delivered[thread] = Ns::MAX;
        let complete = self.take_complete();
        if self.delivered.iter().all(|to| *to == Ns::MAX) {
            self.flush();
        }
        complete
    }

    fn take_complete(&mut self) -> Vec<RecordedInterval> {
        let mut complete = Vec::new();
        while let Some(entry) = self.open.first_entry() {
            let (start, _) = *entry.key();
            if self.delivered.iter().any(|to| *to <= start) {
                break;
            }
            let interval = entry.remove();
            self.count(&interval);
            complete.push(interval);
        }
        complete
    }

    fn count(&mut self, interval: &RecordedInterval) {
        if interval.phase != Phase::Warmup {
            self.window.merge(interval);
        }
        match &mut self.growing {
            Some(entry)
                if entry.phase == interval.phase
                    && interval.end.saturating_sub(entry.start) <= self.entry =>
            {
                entry.merge(interval);
            }
            _ => {
                self.flush();
                self.growing = Some(interval.clone());
            }
        }
    }

    fn flush(&mut self) {
        let Some(entry) = self.growing.take() else { return };
        // An empty drain is left out.
        let unissued = entry.paced.as_ref().is_some_and(|paced| paced.wait.count() > 0);
        if entry.phase == Phase::Drain && entry.service.count() + entry.errors == 0 && !unissued {
            return;
        }
        if let Some(log) = &self.log {
            locked(log).interval(&entry);
        }
        let times = |of: fn(&Times) -> Option<f64>| {
            (of(&entry.service), entry.paced.as_ref().and_then(|paced| of(&paced.response)))
        };
        let (p50_us, response_p50_us) = times(|times| times.percentile_us(50.0));
        let (p99_us, response_p99_us) = times(|times| times.percentile_us(99.0));
        let (max_us, response_max_us) = times(Times::max_us);
        self.entries.push(Interval {
            phase: entry.phase,
            start_s: seconds(entry.start),
            length_s: seconds(entry.end.saturating_sub(entry.start)),
            ops: entry.ops,
            errors: entry.errors,
            retried: entry.events.as_ref().map(|events| events.ignored),
            p50_us,
            p99_us,
            max_us,
            response_p50_us,
            response_p99_us,
            response_max_us,
        });
    }
}

pub(crate) fn seconds(ns: Ns) -> f64 {
    ns as f64 / 1e9
}

/// HdrHistogram's interval log (format 1.3): all steps of an invocation, one V2 histogram an interval,
/// nanoseconds. Java's `HistogramLogProcessor` reads the lines without a tag by default, so the main
/// time of a log of one step has none.
pub struct IntervalLog {
    path: PathBuf,
    out: BufWriter<File>,
    base: Timestamp,
    /// The beginning of tags; empty in a log of one step.
    prefix: String,
    paced: bool,
    step_s: f64,
    /// The first write error: it must not end a measurement, but a line after a cut one would be read
    /// as whole.
    written: io::Result<()>,
}

impl IntervalLog {
    pub(crate) fn create(path: &Path, base: Timestamp) -> Result<IntervalLog> {
        let file = File::create_new(path).map_err(|e| {
            Error::usage(format!("--interval-log {}: {e}", path.display()))
                .hint("a new file in a directory that is there: nothing is written over")
        })?;
        let (path, out, written) = (path.to_owned(), BufWriter::new(file), Ok(()));
        let (prefix, paced, step_s) = (String::new(), false, 0.0);
        let mut log = IntervalLog { path, out, base, prefix, paced, step_s, written };
        let since_epoch = epoch_s(base);
        let version = env!("CARGO_PKG_VERSION");
        log.write(&format!(
            "#[Logged with loadgen {version}]\n\
             #[Histogram log format version 1.3]\n\
             #[StartTime: {since_epoch:.3} (seconds since epoch), {base}]\n\
             #[BaseTime: {since_epoch:.3} (seconds since epoch)]\n\
             #[values in nanoseconds, Interval_Max in milliseconds]\n"
        ));
        Ok(log)
    }

    /// Begins a step: its description, whether it is an open loop, the beginning of its tags.
    pub(crate) fn step(&mut self, about: &str, paced: bool, prefix: &str) {
        self.paced = paced;
        prefix.clone_into(&mut self.prefix);
        self.write(&format!("#[{}]\n", line(&about.replace('\n', " "))));
    }

    pub(crate) fn origin(&mut self, started_at: Timestamp) {
        self.step_s = epoch_s(started_at) - epoch_s(self.base);
    }

    /// Writes an interval, except the warm-up's, so that the log adds up to the summary's histograms.
    fn interval(&mut self, interval: &RecordedInterval) {
        if interval.phase == Phase::Warmup {
            return;
        }
        let start_s = self.step_s + seconds(interval.start);
        let length_s = seconds(interval.end.saturating_sub(interval.start));
        let response = interval.paced.as_ref().map(|paced| &paced.response);
        let main = if self.paced { "response" } else { "service" };
        for (name, times) in [("service", Some(&interval.service)), ("response", response)] {
            let Some(times) = times else { continue };
            let tag = match self.prefix.as_str() {
                "" if name == main => String::new(),
                prefix => format!("Tag={prefix}{name},"),
            };
            let (max_ms, times) = (times.max_us().unwrap_or(0.0) / 1e3, times.encoded());
            self.write(&format!("{tag}{start_s:.3},{length_s:.3},{max_ms:.3},{times}\n"));
        }
    }

    fn write(&mut self, text: &str) {
        if self.written.is_ok() {
            self.written = self.out.write_all(text.as_bytes());
        }
    }

    /// Ends a step: everything so far is in the file.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let written = std::mem::replace(&mut self.written, Ok(()));
        written.and_then(|()| self.out.flush()).map_err(|error| {
            Error::failed(format!("--interval-log {}: {error}", self.path.display())).hint(
                "the summary has the timeline all the same; name a file on a disk with more room",
            )
        })
    }
}

fn epoch_s(at: Timestamp) -> f64 {
    at.as_nanosecond() as f64 / 1e9
}

#[cfg(test)]
mod recorder_tests {
    use super::*;

    fn record(phases: Phases, ops: &[(Ns, Ns)], until: Ns) -> Vec<RecordedInterval> {
        let (mut recorder, seen) = Recorder::listing(phases, 0);
        for (issued, completed) in ops {
            let measured = *issued >= phases.window_start;
            let (issued, completed) = (*issued, *completed);
            let op = Op { issued, measured, completed, statements: 1, rows: 1, ..Op::default() };
            recorder.succeeded(op);
        }
        recorder.finish(until);
        seen.take()
    }

    fn shape(intervals: &[RecordedInterval]) -> Vec<(Phase, Ns, Ns, u64, u64)> {
        intervals.iter().map(|i| (i.phase, i.start, i.end, i.ops, i.service.count())).collect()
    }

    const PHASES: Phases =
        Phases { window_start: 150, window_end: 400, by_issue: false, interval: 100 };

    #[test]
    fn qps_counts_completions_and_latency_what_was_issued() {
        // One op in each phase, one across the first edge, one across the second.
        let intervals = record(PHASES, &[(10, 20), (140, 160), (200, 210), (390, 420)], 430);
        assert_eq!(
            shape(&intervals),
            [
                (Phase::Warmup, 0, 100, 1, 1),
                (Phase::Warmup, 100, 150, 0, 0),
                // Completed in the window, issued before it: counts for QPS, not for latency.
                (Phase::Measure, 150, 250, 2, 1),
                (Phase::Measure, 250, 350, 0, 0),
                (Phase::Measure, 350, 400, 0, 0),
                // Issued in the window, completed after it: the other way round.
                (Phase::Drain, 400, 430, 0, 1),
            ]
        );
    }

    #[test]
    fn with_ops_what_was_issued_counts() {
        let phases = Phases { window_end: Ns::MAX, by_issue: true, ..PHASES };
        let intervals = record(phases, &[(140, 160), (200, 210), (390, 420)], 430);
        assert_eq!(
            intervals.iter().filter(|i| i.phase == Phase::Measure).map(|i| i.ops).sum::<u64>(),
            2
        );
    }

    #[test]
    fn ops_with_a_name_count_as_all_do() {
        let (mut recorder, seen) = Recorder::listing(PHASES, 0);
        let [a, b] = ["a", "b"].map(|name| recorder.names.number(name.as_bytes()).ok());
        let ops = [(10, 20, a), (140, 160, a), (200, 210, b), (220, 230, None), (390, 420, a)];
        for (issued, completed, name) in ops {
            let measured = issued >= PHASES.window_start;
            recorder.succeeded(Op { issued, measured, completed, name, ..Op::default() });
        }
        recorder.retried(1, 5);
        recorder.finish(430);
        let mut window = RecordedInterval::default();
        for interval in seen.take().iter().filter(|interval| interval.phase != Phase::Warmup) {
            window.merge(interval);
        }
        let named = window.named.iter().map(|of| (of.name.as_str(), of.ops, of.service.count()));
        assert_eq!(named.collect::<Vec<_>>(), [("a", 1, 1), ("b", 1, 1)]);
        assert!(window.named.iter().all(|of| of.retried == 0), "not those of the drain");
    }

    #[test]
    fn statement_counts_in_the_window_when_it_is_the_first_answer_there() {
        let (mut recorder, seen) = Recorder::listing(PHASES, 1);
        // The warm-up's op is still under way in the window.
        for (measured, times) in
            [(false, (140, 145)), (false, (145, 155)), (true, (155, 165)), (true, (390, 410))]
        {
            recorder.statement(0, measured, times);
        }
        recorder.finish(430);
        let counts = |phase: Phase| {
            let seen = seen.borrow();
            let times = seen.iter().filter(|of| of.phase == phase).map(|of| &of.by_statement[0]);
            times.map(Times::count).sum::<u64>()
        };
        assert_eq!([Phase::Warmup, Phase::Measure, Phase::Drain].map(counts), [1, 1, 1]);
    }

    #[test]
    fn log_ins_count_that_begin_in_the_window() {
        let (mut recorder, seen) = Recorder::listing(PHASES, 0);
        for (began, ended) in [(140, 160), (150, 170), (390, 410), (400, 420)] {
            recorder.connected(began, ended);
        }
        recorder.finish(430);
        let log_ins = seen.take().into_iter().filter_map(|interval| interval.connect);
        assert_eq!(log_ins.map(|times| times.count()).sum::<u64>(), 2);
    }

    #[test]
    fn an_early_end_cuts_the_window() {
        let (mut recorder, seen) = Recorder::listing(PHASES, 0);
        recorder.roll(260);
        recorder.set_window(PHASES.window_start, 300);
        let late = Op {
            issued: 290,
            measured: true,
            completed: 310,
            statements: 1,
            rows: 1,
            ..Op::default()
        };
        assert!(!recorder.succeeded(late));
        recorder.finish(320);
        let seen = seen.take();
        assert_eq!(
            shape(&seen)[2..],
            [
                (Phase::Measure, 150, 250, 0, 0),
                (Phase::Measure, 250, 300, 0, 0),
                (Phase::Drain, 300, 320, 0, 1)
            ]
        );
    }
}

#[cfg(test)]
mod timeline_tests {
    use super::*;
    use base64::Engine as _;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use std::time::Duration;

    fn thread(ops: &[(Ns, Ns)], until: Ns) -> Vec<RecordedInterval> {
        let phases = Phases { window_start: 100, window_end: 300, by_issue: false, interval: 100 };
        let (mut recorder, seen) = Recorder::listing(phases, 0);
        for (issued, completed) in ops {
            let (issued, completed, measured) = (*issued, *completed, *issued >= 100);
            let (statements, rows, unmatched) = (2, 3, 1);
            let op =
                Op { issued, measured, completed, statements, rows, unmatched, ..Op::default() };
            recorder.succeeded(op);
        }
        recorder.finish(until);
        seen.take()
    }

    fn shape(timeline: &Timeline) -> Vec<(Phase, u64, u64)> {
        let ms = |s: f64| (s * 1e9).round() as u64;
        timeline.entries.iter().map(|e| (e.phase, ms(e.start_s), e.ops)).collect()
    }

    #[test]
    fn threads_add_up_and_an_interval_waits_for_all_of_them() {
        let a = thread(&[(0, 50), (110, 120)], 310);
        let b = thread(&[(150, 160), (290, 305)], 350);
        let mut timeline = Timeline::new(2, 0, 100);
        let early: usize = a.into_iter().map(|i| timeline.add(0, i).len()).sum();
        assert_eq!(early, 0, "the other thread has delivered nothing");
        let complete: Vec<RecordedInterval> =
            b.into_iter().flat_map(|i| timeline.add(1, i)).collect();
        assert_eq!(complete.len(), 4);
        let window = &timeline.window;
        assert_eq!((window.ops, window.statements, window.rows), (2, 4, 6));
        // The warm-up's op is not in the latency, the drain's is.
        assert_eq!(window.service.count(), 3);
        timeline.thread_done(0);
        timeline.thread_done(1);
        assert_eq!(
            shape(&timeline),
            [
                (Phase::Warmup, 0, 1),
                (Phase::Measure, 100, 2),
                (Phase::Measure, 200, 0),
                (Phase::Drain, 300, 0)
            ]
        );
    }

    #[test]
    fn a_thread_that_ends_early_holds_nothing_up_and_splits_nothing() {
        // The first thread is done before the second delivers the same last interval.
        let (a, b) = (thread(&[(110, 120), (210, 220)], 250), thread(&[(215, 230)], 290));
        let mut timeline = Timeline::new(2, 0, 100);
        for interval in a {
            timeline.add(0, interval);
        }
        assert!(timeline.thread_done(0).is_empty());
        for interval in b {
            timeline.add(1, interval);
        }
        timeline.thread_done(1);
        assert_eq!(timeline.window.ops, 3);
        assert_eq!(
            shape(&timeline),
            [(Phase::Warmup, 0, 0), (Phase::Measure, 100, 1), (Phase::Measure, 200, 2)]
        );
    }

    #[test]
    fn a_thread_that_hears_late_of_the_window_takes_nothing_from_it() {
        let undecided =
            Phases { window_start: Ns::MAX, window_end: Ns::MAX, by_issue: false, interval: 100 };
        let (mut late, seen) = Recorder::listing(undecided, 0);
        late.succeeded(Op { issued: 105, completed: 110, ..Op::default() });
        late.set_window(100, 300);
        late.succeeded(Op { issued: 120, measured: true, completed: 130, ..Op::default() });
        late.finish(310);
        let mut timeline = Timeline::new(2, 0, 100);
        for interval in seen.take() {
            timeline.add(0, interval);
        }
        for interval in thread(&[(110, 120), (210, 220)], 310) {
            timeline.add(1, interval);
        }
        timeline.thread_done(0);
        timeline.thread_done(1);
        assert_eq!((timeline.window.ops, timeline.window.service.count()), (3, 3));
        assert_eq!(
            shape(&timeline),
            [(Phase::Warmup, 0, 1), (Phase::Measure, 100, 2), (Phase::Measure, 200, 1)]
        );
    }

    #[test]
    fn long_entries_are_made_of_short_reports() {
        let mut timeline = Timeline::new(1, 0, 200);
        for interval in thread(&[(110, 120), (210, 220), (250, 310)], 320) {
            timeline.add(0, interval);
        }
        timeline.thread_done(0);
        assert_eq!(
            shape(&timeline),
            [(Phase::Warmup, 0, 0), (Phase::Measure, 100, 2), (Phase::Drain, 300, 0)]
        );
    }

    /// Two windows of 100 ms after a warm-up, an op each 10 ms that is answered 1 ms later, and
    /// which was due 2 ms before it.
    fn intervals() -> Vec<RecordedInterval> {
        let ms = 1_000_000;
        let phases = Phases {
            window_start: 100 * ms,
            window_end: 300 * ms,
            by_issue: false,
            interval: 100 * ms,
        };
        let (mut recorder, seen) = Recorder::listing(phases, 0);
        for i in 0..30 {
            let issued = i * 10 * ms + 5 * ms;
            let op = Op {
                intended: Some(issued - 2 * ms),
                issued,
                measured: i >= 10,
                completed: issued + ms,
                statements: 1,
                rows: 1,
                ..Op::default()
            };
            recorder.succeeded(op);
        }
        recorder.finish(310 * ms);
        seen.take()
    }

    /// Tag, start, number of values and median (ms) of each line.
    fn lines(path: &Path, base: Timestamp) -> Vec<(String, Duration, u64, u64)> {
        let text = std::fs::read_to_string(path).expect("there");
        let mut lines = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            match entry.expect("well formed") {
                LogEntry::StartTime(at) | LogEntry::BaseTime(at) => {
                    assert_eq!(at.as_secs(), base.as_second().unsigned_abs());
                }
                LogEntry::Interval(entry) => {
                    let bytes = base64::engine::general_purpose::STANDARD
                        .decode(entry.encoded_histogram())
                        .expect("base64");
                    let histogram: Histogram<u64> =
                        Deserializer::new().deserialize(&mut bytes.as_slice()).expect("V2");
                    let tag = entry.tag().map_or("", |tag| tag.as_str()).to_owned();
                    let median = histogram.value_at_quantile(0.5) / 1_000_000;
                    lines.push((tag, entry.start_timestamp(), histogram.len(), median));
                }
            }
        }
        lines
    }

    #[test]
    fn the_library_of_the_format_reads_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.hlog");
        let base: Timestamp = "2026-11-20T10:00:00Z".parse().expect("an instant");
        let mut log = IntervalLog::create(&path, base).expect("a file");
        assert!(IntervalLog::create(&path, base).is_err(), "nothing is written over");
        log.step("step 2 of 3: point-select\n8 clients", true, "step2.");
        log.origin("2026-11-20T10:01:00.5Z".parse().expect("an instant"));
        for interval in &intervals() {
            log.interval(interval);
        }
        log.flush().expect("written");
        let at = Duration::from_millis;
        let expected = [
            ("step2.service", at(60_600), 10, 1),
            ("step2.response", at(60_600), 10, 3),
            ("step2.service", at(60_700), 10, 1),
            ("step2.response", at(60_700), 10, 3),
            ("step2.service", at(60_800), 0, 0),
        ];
        let expected: Vec<_> =
            expected.into_iter().map(|(tag, at, n, ms)| (tag.to_owned(), at, n, ms)).collect();
        assert_eq!(lines(&path, base), expected);
    }

    #[test]
    fn what_a_single_step_is_about_has_no_tag() {
        let dir = tempfile::tempdir().expect("a directory");
        let base: Timestamp = "2026-11-20T10:00:00Z".parse().expect("an instant");
        for (paced, expected) in
            [(true, [("", 3), ("service", 1)]), (false, [("", 1), ("response", 3)])]
        {
            let path = dir.path().join(paced.to_string());
            let mut log = IntervalLog::create(&path, base).expect("a file");
            log.step("step 1 of 1", paced, "");
            log.origin(base);
            intervals().iter().take(2).for_each(|interval| log.interval(interval));
            log.flush().expect("written");
            let mut told: Vec<_> =
                lines(&path, base).into_iter().map(|(tag, _, _, ms)| (tag, ms)).collect();
            told.sort();
            assert_eq!(told, expected.map(|(tag, ms)| (tag.to_owned(), ms)));
        }
    }
}
