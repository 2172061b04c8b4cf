//! Intervals of all engine threads, merged off the hot path into the timeline and the totals.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::measure::recorder::{Interval, Ns};
use crate::measure::times::Times;
use crate::summary::{self, Phase};

/// What all threads measured so far.
#[derive(Debug)]
pub struct Timeline {
    /// Threads that still deliver.
    threads: usize,
    /// Intervals that some thread has not delivered yet, with how many have.
    open: BTreeMap<Ns, (Interval, usize)>,
    /// The timeline of the summary.
    pub entries: Vec<summary::Interval>,
    /// The window's ops, statements, rows.
    pub window: Counts,
    /// Failed ops of all phases.
    pub errors: u64,
    /// Service time of what was issued in the window.
    pub service: Times,
    /// Service time of failed ops.
    pub failed: Times,
    /// Service time by statement.
    pub by_statement: Vec<Times>,
}

/// Counts of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ops that count.
    pub ops: u64,
    /// Their statements.
    pub statements: u64,
    /// Rows that they returned.
    pub rows: u64,
}

impl Timeline {
    /// For so many threads and so many statements with times of their own.
    pub fn new(threads: usize, statements: usize) -> Result<Self> {
        Ok(Timeline {
            threads,
            open: BTreeMap::new(),
            entries: Vec::new(),
            window: Counts::default(),
            errors: 0,
            service: Times::new()?,
            failed: Times::new()?,
            by_statement: (0..statements).map(|_| Times::new()).collect::<Result<_>>()?,
        })
    }

    /// Takes one thread's interval; returns those that are complete by it, oldest first.
    pub fn add(&mut self, interval: Interval) -> Vec<Interval> {
        match self.open.get_mut(&interval.start) {
            Some((merged, delivered)) => {
                merged.merge(&interval);
                *delivered += 1;
            }
            None => {
                self.open.insert(interval.start, (interval, 1));
            }
        }
        self.take_complete()
    }

    /// One thread is done and delivers no more.
    pub fn thread_done(&mut self) -> Vec<Interval> {
        self.threads = self.threads.saturating_sub(1);
        self.take_complete()
    }

    fn take_complete(&mut self) -> Vec<Interval> {
        let mut complete = Vec::new();
        while let Some(entry) = self.open.first_entry() {
            if entry.get().1 < self.threads {
                break;
            }
            let (interval, _) = entry.remove();
            self.count(&interval);
            complete.push(interval);
        }
        complete
    }

    fn count(&mut self, interval: &Interval) {
        self.errors += interval.errors;
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
        }
        // An empty drain says nothing.
        if interval.phase == Phase::Drain && interval.service.count() + interval.errors == 0 {
            return;
        }
        self.entries.push(summary::Interval {
            phase: interval.phase,
            start_s: seconds(interval.start),
            length_s: seconds(interval.end.saturating_sub(interval.start)),
            ops: interval.ops,
            errors: interval.errors,
            p50_us: interval.service.percentile_us(50.0),
            p99_us: interval.service.percentile_us(99.0),
            max_us: interval.service.max_us(),
        });
    }
}

/// Nanoseconds as seconds.
pub fn seconds(ns: Ns) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::recorder::{Op, Phases, Recorder};
    use std::cell::RefCell;
    use std::rc::Rc;

    fn thread(ops: &[(Ns, Ns)], until: Ns) -> Vec<Interval> {
        let phases = Phases { window_start: 100, window_end: 300, by_issue: false, interval: 100 };
        let seen = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&seen);
        let mut recorder =
            Recorder::new(phases, 0, Box::new(move |i| sink.borrow_mut().push(i))).expect("memory");
        for (issued, completed) in ops {
            let op = Op { issued: *issued, completed: *completed, statements: 2, rows: 3 };
            recorder.succeeded(op).expect("memory");
        }
        recorder.finish(until).expect("memory");
        seen.take()
    }

    #[test]
    fn threads_add_up_and_an_interval_waits_for_all_of_them() {
        let (a, b) = (thread(&[(0, 50), (110, 120)], 310), thread(&[(150, 160), (290, 305)], 350));
        let mut timeline = Timeline::new(2, 0).expect("memory");
        let early: usize = a.into_iter().map(|i| timeline.add(i).len()).sum();
        assert_eq!(early, 0, "the other thread has delivered nothing");
        let complete: Vec<Interval> = b.into_iter().flat_map(|i| timeline.add(i)).collect();
        assert_eq!(complete.len(), 4);
        assert_eq!(timeline.window, Counts { ops: 2, statements: 4, rows: 6 });
        // The warm-up's op is not in the latency, the drain's is.
        assert_eq!(timeline.service.count(), 3);
        let phases: Vec<Phase> = timeline.entries.iter().map(|e| e.phase).collect();
        assert_eq!(phases, [Phase::Warmup, Phase::Measure, Phase::Measure, Phase::Drain]);
    }

    #[test]
    fn a_thread_that_ends_early_holds_nothing_up() {
        let mut timeline = Timeline::new(2, 0).expect("memory");
        for interval in thread(&[(110, 120)], 250) {
            timeline.add(interval);
        }
        assert!(timeline.entries.is_empty());
        timeline.thread_done();
        assert_eq!(timeline.window.ops, 1);
        assert_eq!(timeline.entries.len(), 3);
    }
}
