//! Intervals of all engine threads, merged off the hot path into the timeline, the totals and the log of
//! `--interval-log`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::recorder::{Ns, Phase, RecordedInterval};
use super::times::Times;
use crate::error::{Error, Result, line};

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

/// What all threads measured so far.
#[derive(Debug, Default)]
pub struct Timeline {
    delivered: Vec<Ns>,
    /// Intervals that some thread may still add to, by their start.
    open: BTreeMap<Ns, RecordedInterval>,
    entry: Ns,
    growing: Option<RecordedInterval>,
    /// The timeline of the summary, once [`Timeline::thread_done`] was called for all.
    pub entries: Vec<Interval>,
    /// What was done in the window, and the times of what was issued in it, those of the drain included.
    pub window: RecordedInterval,
    pub log: Option<Arc<Mutex<IntervalLog>>>,
}

impl Timeline {
    /// Begins one for so many threads, so many statements with times of their own, and entries of a
    /// length.
    pub(crate) fn new(threads: usize, statements: usize, entry: Ns) -> Timeline {
        let window = RecordedInterval::new(Phase::Measure, 0, 0, statements);
        Timeline { delivered: vec![0; threads], entry, window, ..Timeline::default() }
    }

    /// Takes an interval of a thread (from 0); returns those that no thread can add to any
    /// more, oldest first.
    pub(crate) fn add(
        &mut self,
        thread: usize,
        interval: RecordedInterval,
    ) -> Vec<RecordedInterval> {
        self.delivered[thread] = interval.end;
        match self.open.get_mut(&interval.start) {
            Some(merged) => merged.merge(&interval),
            None => drop(self.open.insert(interval.start, interval)),
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
            if self.delivered.iter().any(|to| to <= entry.key()) {
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
                if entry.phase == interval.phase && interval.end - entry.start <= self.entry =>
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
        // An empty drain says nothing.
        let unissued = entry.paced.as_ref().is_some_and(|paced| paced.wait.count() > 0);
        if entry.phase == Phase::Drain && entry.service.count() + entry.errors == 0 && !unissued {
            return;
        }
        if let Some(log) = &self.log {
            log.lock().unwrap_or_else(PoisonError::into_inner).interval(&entry);
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

/// HdrHistogram's interval log (format 1.3), as the Java tools and their ports read it: all steps of an
/// invocation, one histogram an interval, as V2, deflated, base64, in nanoseconds.
///
/// Java's `HistogramLogProcessor` takes the lines without a tag, unless it is told one. So the time
/// that a step is about has none where the log is of one step.
#[derive(Debug)]
pub struct IntervalLog {
    path: PathBuf,
    out: BufWriter<File>,
    base: Timestamp,
    /// What tags begin with; empty in a log of one step.
    prefix: String,
    paced: bool,
    step_s: f64,
    /// What went wrong first must not end a measurement; a line after one that was cut would be read
    /// as whole.
    written: io::Result<()>,
}

impl IntervalLog {
    /// Begins a log whose times count from `base`.
    pub(crate) fn create(path: &Path, base: Timestamp) -> Result<IntervalLog> {
        let file = File::create_new(path).map_err(|e| {
            Error::usage(format!("--interval-log {}: {e}", path.display()))
                .hint("a new file in a directory that is there: nothing is written over")
        })?;
        let mut log = IntervalLog {
            path: path.to_owned(),
            out: BufWriter::new(file),
            base,
            prefix: String::new(),
            paced: false,
            step_s: 0.0,
            written: Ok(()),
        };
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

    /// Begins a step: what it is, whether it is an open loop, and what its tags begin with.
    pub(crate) fn step(&mut self, about: &str, paced: bool, prefix: &str) {
        self.paced = paced;
        prefix.clone_into(&mut self.prefix);
        self.write(&format!("#[{}]\n", line(&about.replace('\n', " "))));
    }

    pub(crate) fn origin(&mut self, started_at: Timestamp) {
        self.step_s = epoch_s(started_at) - epoch_s(self.base);
    }

    /// Writes one interval of the timeline. Those of the warm-up are left out, so that the log adds up to
    /// the summary's histograms.
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

    /// Ends a step: everything up to here is in the file.
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
mod tests {
    use super::*;
    use crate::observe::recorder::{Op, Phases, Recorder};
    use base64::Engine as _;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    fn thread(ops: &[(Ns, Ns)], until: Ns) -> Vec<RecordedInterval> {
        let phases = Phases { window_start: 100, window_end: 300, by_issue: false, interval: 100 };
        let seen = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&seen);
        let mut recorder = Recorder::new(phases, 0, Box::new(move |i| sink.borrow_mut().push(i)));
        for (issued, completed) in ops {
            let (issued, completed, measured) = (*issued, *completed, *issued >= 100);
            let op = Op { intended: None, issued, measured, completed, statements: 2, rows: 3 };
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
        let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let sink = std::rc::Rc::clone(&seen);
        let mut recorder = Recorder::new(phases, 0, Box::new(move |i| sink.borrow_mut().push(i)));
        for i in 0..30 {
            let issued = i * 10 * ms + 5 * ms;
            let op = Op {
                intended: Some(issued - 2 * ms),
                issued,
                measured: i >= 10,
                completed: issued + ms,
                statements: 1,
                rows: 1,
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
