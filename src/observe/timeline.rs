//! Intervals of all engine threads, merged off the hot path into the timeline and the totals.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::observe::interval_log::IntervalLog;
use crate::observe::recorder::{Ns, Paced, Phase, RecordedInterval};
use crate::observe::times::Times;

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
    #[serde(default)]
    pub response_p50_us: Option<f64>,
    /// 99th percentile of the response time, microseconds.
    #[serde(default)]
    pub response_p99_us: Option<f64>,
    /// Largest response time, microseconds.
    #[serde(default)]
    pub response_max_us: Option<f64>,
}

/// What all threads measured so far.
#[derive(Debug)]
pub struct Timeline {
    /// By thread: everything before this instant is delivered.
    delivered: Vec<Ns>,
    /// Intervals that some thread may still add to, by their start.
    open: BTreeMap<Ns, RecordedInterval>,
    entry: Ns,
    /// The entry that grows.
    growing: Option<RecordedInterval>,
    /// The timeline of the summary, once [`Timeline::thread_done`] was called for all.
    pub entries: Vec<Interval>,
    pub window: Counts,
    pub service: Times,
    pub failed: Times,
    pub by_statement: Vec<Times>,
    /// Times from the intended instant, of an open loop.
    pub paced: Option<Box<Paced>>,
    pub log: Option<Arc<Mutex<IntervalLog>>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub ops: u64,
    pub statements: u64,
    pub rows: u64,
}

impl Timeline {
    /// For so many threads, so many statements with times of their own, and entries of a length.
    pub(crate) fn new(threads: usize, statements: usize, entry: Ns) -> Timeline {
        Timeline {
            delivered: vec![0; threads],
            open: BTreeMap::new(),
            entry,
            growing: None,
            entries: Vec::new(),
            window: Counts::default(),
            service: Times::new(),
            failed: Times::new(),
            by_statement: (0..statements).map(|_| Times::new()).collect(),
            paced: None,
            log: None,
        }
    }

    /// Takes an interval of a thread (from 0); returns those that no thread can add to any
    /// more, oldest first.
    pub(crate) fn add(
        &mut self,
        thread: usize,
        interval: RecordedInterval,
    ) -> Vec<RecordedInterval> {
        self.reach(thread, interval.end);
        match self.open.get_mut(&interval.start) {
            Some(merged) => merged.merge(&interval),
            None => {
                self.open.insert(interval.start, interval);
            }
        }
        self.take_complete()
    }

    /// A thread delivers no more.
    pub(crate) fn thread_done(&mut self, thread: usize) -> Vec<RecordedInterval> {
        self.reach(thread, Ns::MAX);
        let complete = self.take_complete();
        if self.open.is_empty() && self.delivered.iter().all(|to| *to == Ns::MAX) {
            self.flush();
        }
        complete
    }

    fn reach(&mut self, thread: usize, to: Ns) {
        self.delivered[thread] = to;
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
        if interval.phase == Phase::Measure {
            self.window.ops += interval.ops;
            self.window.statements += interval.statements;
            self.window.rows += interval.rows;
        }
        if interval.phase != Phase::Warmup {
            self.service.merge(&interval.service);
            self.failed.merge(&interval.failed);
            for (mine, theirs) in self.by_statement.iter_mut().zip(&interval.by_statement) {
                mine.merge(theirs);
            }
            Paced::merge_into(&mut self.paced, interval.paced.as_deref());
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

    /// Ends the entry that grows.
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
        let response =
            |of: fn(&Times) -> Option<f64>| entry.paced.as_ref().and_then(|p| of(&p.response));
        self.entries.push(Interval {
            phase: entry.phase,
            start_s: seconds(entry.start),
            length_s: seconds(entry.end.saturating_sub(entry.start)),
            ops: entry.ops,
            errors: entry.errors,
            p50_us: entry.service.percentile_us(50.0),
            p99_us: entry.service.percentile_us(99.0),
            max_us: entry.service.max_us(),
            response_p50_us: response(|r| r.percentile_us(50.0)),
            response_p99_us: response(|r| r.percentile_us(99.0)),
            response_max_us: response(Times::max_us),
        });
    }
}

pub(crate) fn seconds(ns: Ns) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::recorder::{Op, Phases, Recorder};
    use std::cell::RefCell;
    use std::rc::Rc;

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
        assert_eq!(timeline.window, Counts { ops: 2, statements: 4, rows: 6 });
        // The warm-up's op is not in the latency, the drain's is.
        assert_eq!(timeline.service.count(), 3);
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
}
