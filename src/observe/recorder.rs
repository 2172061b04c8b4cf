//! What one engine thread writes down: no lock, no atomic and no channel an operation.
//!
//! QPS counts what *completes* inside the measured window; latency covers what was *issued* inside
//! it, including what finishes in the drain.

use serde::{Deserialize, Serialize};

use crate::observe::times::Times;

/// Nanoseconds since the step's origin, the start of the warm-up.
pub type Ns = u64;

/// A phase of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the window; not counted.
    #[default]
    Warmup,
    /// The window.
    Measure,
    /// What was in flight at the window's end.
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

    /// Begins the interval that starts at `start`: phases never share one.
    fn interval(&self, start: Ns, statements: usize) -> RecordedInterval {
        let phase = self.at(start);
        let edge = match phase {
            Phase::Warmup => self.window_start,
            Phase::Measure => self.window_end,
            Phase::Drain => Ns::MAX,
        };
        let end = start.saturating_add(self.interval.max(1)).min(edge);
        RecordedInterval::new(phase, start, end, statements)
    }
}

#[derive(Debug, Clone, Default)]
pub struct RecordedInterval {
    pub phase: Phase,
    pub start: Ns,
    pub end: Ns,
    pub ops: u64,
    pub statements: u64,
    pub rows: u64,
    /// Ops that failed, and those of which nobody knows.
    pub errors: u64,
    /// Service time of ops issued in this phase (in the drain: in the window).
    pub service: Times,
    pub failed: Times,
    pub by_statement: Vec<Times>,
    /// What only an open loop has; none before the first op.
    pub paced: Option<Box<Paced>>,
}

#[derive(Debug, Clone, Default)]
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
        self.ops += other.ops;
        self.statements += other.statements;
        self.rows += other.rows;
        self.errors += other.errors;
        self.service.merge(&other.service);
        self.failed.merge(&other.failed);
        for (mine, theirs) in self.by_statement.iter_mut().zip(&other.by_statement) {
            mine.merge(theirs);
        }
        if let Some(paced) = &other.paced {
            let mine = self.paced.get_or_insert_default();
            mine.response.merge(&paced.response);
            mine.wait.merge(&paced.wait);
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Op {
    pub intended: Option<Ns>,
    pub issued: Ns,
    /// It was issued in the window: decided once, by whoever issued it.
    pub measured: bool,
    pub completed: Ns,
    pub statements: u32,
    pub rows: u64,
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
    finished: Box<dyn FnMut(RecordedInterval)>,
}

impl Recorder {
    /// `finished` takes each interval as it ends; `statements` is how many statements have
    /// times of their own (0 where an op is one statement).
    pub fn new(
        phases: Phases,
        statements: usize,
        finished: Box<dyn FnMut(RecordedInterval)>,
    ) -> Recorder {
        Recorder {
            current: phases.interval(0, statements),
            before: 0,
            successes: Successes::NONE,
            phases,
            finished,
        }
    }

    /// Moves the edges of the window; the current interval ends where its phase does.
    pub(crate) fn set_window(&mut self, start: Ns, end: Ns) {
        (self.phases.window_start, self.phases.window_end) = (start, end);
        let edge = match self.current.phase {
            Phase::Warmup => start,
            Phase::Measure => end,
            Phase::Drain => Ns::MAX,
        };
        self.current.end = self.current.end.min(edge.max(self.current.start));
    }

    /// Ends the intervals that lie before `now`. Idle threads call it too.
    #[inline]
    pub(crate) fn roll(&mut self, now: Ns) {
        while now >= self.current.end {
            let statements = self.current.by_statement.len();
            let next = self.phases.interval(self.current.end, statements);
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

    /// Writes down an op that succeeded; returns whether it counts toward QPS.
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
        }
        if self.in_latency(op.measured) {
            self.current.service.record(op.completed - op.issued);
            if let Some(intended) = op.intended {
                self.paced(intended, op.issued, op.completed);
            }
        }
        counts
    }

    fn paced(&mut self, intended: Ns, issued: Ns, completed: Ns) {
        let paced = self.current.paced.get_or_insert_default();
        paced.response.record(completed.saturating_sub(intended));
        paced.wait.record(issued.saturating_sub(intended));
    }

    #[inline]
    pub(crate) fn statement(&mut self, index: usize, measured: bool, ns: u64) {
        if self.in_latency(measured) {
            self.current.by_statement[index].record(ns);
        }
    }

    pub(crate) fn failed(&mut self, issued: Ns, measured: bool, completed: Ns) {
        self.roll(completed);
        self.current.errors += 1;
        if self.in_latency(measured) {
            self.current.failed.record(completed.saturating_sub(issued));
        }
    }

    /// Writes down an op of which nobody knows whether it was done: neither done nor failed, it is
    /// an error of the timeline alone.
    pub(crate) fn unresolved(&mut self, now: Ns) {
        self.roll(now);
        self.current.errors += 1;
    }

    /// Writes down an op that was given up: its age is a lower bound of its time, and
    /// leaving it out would make a stalled server look fast.
    pub(crate) fn abandoned(&mut self, intended: Option<Ns>, issued: Ns, measured: bool, now: Ns) {
        self.unresolved(now);
        if self.in_latency(measured) {
            self.current.service.record(now.saturating_sub(issued));
            if let Some(intended) = intended {
                self.paced(intended, issued, now);
            }
        }
    }

    /// Writes down an arrival of the window that was never issued, likewise.
    pub(crate) fn unissued(&mut self, intended: Ns, now: Ns) {
        self.roll(now);
        self.paced(intended, now, now);
    }

    pub(crate) fn finish(&mut self, now: Ns) {
        self.roll(now);
        self.current.end = now.max(self.current.start);
        self.roll(self.current.end);
    }

    fn counts(&self, measured: bool) -> bool {
        self.current.phase == Phase::Measure && (!self.phases.by_issue || measured)
    }

    /// Says whether an op belongs to the times of the current interval: what the warm-up issued does
    /// not count in the window.
    fn in_latency(&self, measured: bool) -> bool {
        self.current.phase == Phase::Warmup || measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    fn record(phases: Phases, ops: &[(Ns, Ns)], until: Ns) -> Vec<RecordedInterval> {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&seen);
        let mut recorder = Recorder::new(phases, 0, Box::new(move |i| sink.borrow_mut().push(i)));
        for (issued, completed) in ops {
            let measured = *issued >= phases.window_start;
            let op = Op {
                intended: None,
                issued: *issued,
                measured,
                completed: *completed,
                statements: 1,
                rows: 1,
            };
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
    fn an_early_end_cuts_the_window() {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&seen);
        let mut recorder = Recorder::new(PHASES, 0, Box::new(move |i| sink.borrow_mut().push(i)));
        recorder.roll(260);
        recorder.set_window(PHASES.window_start, 300);
        let late = Op {
            intended: None,
            issued: 290,
            measured: true,
            completed: 310,
            statements: 1,
            rows: 1,
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
