//! What one engine thread writes down: no lock, no atomic and no channel an operation.
//!
//! Ops land in the interval that their completion falls into; a finished interval is swapped
//! out whole and merged elsewhere (`timeline`). QPS counts what *completes* inside the
//! measured window; latency covers what was *issued* inside it, including what finishes in
//! the drain.

use crate::error::{Error, Result};
use crate::observe::times::Times;
use crate::summary::Phase;

/// Nanoseconds since the step's origin, the start of the warm-up.
pub type Ns = u64;

/// The phases of a step on its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// End of the warm-up, start of the window; `Ns::MAX` while it is open.
    pub window_start: Ns,
    /// End of the window, start of the drain; `Ns::MAX` while it is open.
    pub window_end: Ns,
    /// With `--ops`: count what was issued in the window, so that exactly N are counted.
    pub by_issue: bool,
    /// Length of a timeline's interval.
    pub interval: Ns,
}

impl Phases {
    /// The phase of an instant.
    pub(crate) fn at(&self, now: Ns) -> Phase {
        if now < self.window_start {
            Phase::Warmup
        } else if now < self.window_end {
            Phase::Measure
        } else {
            Phase::Drain
        }
    }

    /// Where the interval that starts at `start` ends: phases never share one.
    fn interval_end(&self, start: Ns) -> Ns {
        let edge = match self.at(start) {
            Phase::Warmup => self.window_start,
            Phase::Measure => self.window_end,
            Phase::Drain => Ns::MAX,
        };
        start.saturating_add(self.interval.max(1)).min(edge)
    }
}

/// What happened between two instants of one phase.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Its phase.
    pub phase: Phase,
    /// First instant.
    pub start: Ns,
    /// First instant after it.
    pub end: Ns,
    /// Ops that count.
    pub ops: u64,
    /// Statements of these.
    pub statements: u64,
    /// Rows that these returned or inserted.
    pub rows: u64,
    /// Ops that failed, and those of which nobody knows.
    pub errors: u64,
    /// Service time of ops issued in this phase (in the drain: in the window).
    pub service: Times,
    /// Service time of failed ops.
    pub failed: Times,
    /// Service time of each statement, for workloads with several.
    pub by_statement: Vec<Times>,
    /// What only an open loop has; none before the first op.
    pub paced: Option<Box<Paced>>,
}

/// Times from the intended instant.
#[derive(Debug, Clone)]
pub struct Paced {
    /// To the return of the call.
    pub response: Times,
    /// To the call.
    pub wait: Times,
}

impl Paced {
    /// Nothing counted yet. Fails only if memory is not to be had.
    pub(crate) fn new() -> Result<Self> {
        Ok(Paced { response: Times::new()?, wait: Times::new()? })
    }

    /// Adds what another one counted.
    pub(crate) fn merge(&mut self, other: &Paced) {
        self.response.merge(&other.response);
        self.wait.merge(&other.wait);
    }

    /// Adds what another one counted, where there may be none of either.
    pub(crate) fn merge_into(sum: &mut Option<Box<Paced>>, other: Option<&Paced>) {
        match (sum, other) {
            (_, None) => {}
            (Some(sum), Some(other)) => sum.merge(other),
            (sum @ None, Some(other)) => *sum = Some(Box::new(other.clone())),
        }
    }
}

impl Interval {
    fn new(phases: &Phases, start: Ns, statements: usize) -> Result<Self> {
        Ok(Interval {
            phase: phases.at(start),
            start,
            end: phases.interval_end(start),
            ops: 0,
            statements: 0,
            rows: 0,
            errors: 0,
            service: Times::new()?,
            failed: Times::new()?,
            by_statement: (0..statements).map(|_| Times::new()).collect::<Result<_>>()?,
            paced: None,
        })
    }

    /// Adds what another thread saw in the same interval.
    pub(crate) fn merge(&mut self, other: &Interval) {
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
        Paced::merge_into(&mut self.paced, other.paced.as_deref());
    }

    fn paced(&mut self) -> Result<&mut Paced> {
        if self.paced.is_none() {
            self.paced = Some(Box::new(Paced::new()?));
        }
        self.paced.as_deref_mut().ok_or_else(|| Error::failed("no histogram"))
    }
}

/// One op as it ended well.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    /// When it was due; None in a closed loop.
    pub intended: Option<Ns>,
    /// Just before the call.
    pub issued: Ns,
    /// Whether it was issued in the window: decided once, by whoever issued it.
    pub measured: bool,
    /// Just after its return.
    pub completed: Ns,
    /// Round trips.
    pub statements: u32,
    /// Rows returned or inserted.
    pub rows: u64,
}

/// The first and the last op that succeeded in some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Successes {
    /// When the first one completed.
    pub first: Ns,
    /// When the last one did.
    pub last: Ns,
}

impl Successes {
    const NONE: Successes = Successes { first: Ns::MAX, last: 0 };
}

/// See the module.
pub struct Recorder {
    phases: Phases,
    current: Interval,
    /// Ops of the intervals before the current one.
    before: u64,
    successes: Successes,
    finished: Box<dyn FnMut(Interval)>,
}

impl Recorder {
    /// `finished` takes each interval as it ends; `statements` is how many statements have
    /// times of their own (0 where an op is one statement).
    pub fn new(
        phases: Phases,
        statements: usize,
        finished: Box<dyn FnMut(Interval)>,
    ) -> Result<Self> {
        Ok(Recorder {
            current: Interval::new(&phases, 0, statements)?,
            before: 0,
            successes: Successes::NONE,
            phases,
            finished,
        })
    }

    /// Sets the window's start, where it was open: it lies ahead.
    pub(crate) fn start_window(&mut self, start: Ns) {
        self.phases.window_start = start;
        if self.current.phase == Phase::Warmup {
            self.current.end = self.current.end.min(start.max(self.current.start));
        }
    }

    /// Moves the window's end, for a step that ends early.
    pub(crate) fn end_window(&mut self, end: Ns) {
        self.phases.window_end = end;
        if self.current.phase == Phase::Measure {
            self.current.end = self.current.end.min(end.max(self.current.start));
        }
    }

    /// Ends the intervals that lie before `now`. Idle threads call it too.
    #[inline]
    pub(crate) fn roll(&mut self, now: Ns) -> Result<()> {
        while now >= self.current.end {
            let statements = self.current.by_statement.len();
            let next = Interval::new(&self.phases, self.current.end, statements)?;
            self.before += self.current.ops;
            (self.finished)(std::mem::replace(&mut self.current, next));
        }
        Ok(())
    }

    /// Ops so far, of the warm-up and of the window.
    pub(crate) fn ops(&self) -> u64 {
        self.before + self.current.ops
    }

    /// The first and the last success since it was asked before.
    pub(crate) fn take_successes(&mut self) -> Option<Successes> {
        let seen = std::mem::replace(&mut self.successes, Successes::NONE);
        (seen != Successes::NONE).then_some(seen)
    }

    /// Writes down an op that succeeded; whether it counts toward QPS.
    #[inline]
    pub fn succeeded(&mut self, op: Op) -> Result<bool> {
        self.roll(op.completed)?;
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
                self.paced(intended, op.issued, op.completed)?;
            }
        }
        Ok(counts)
    }

    fn paced(&mut self, intended: Ns, issued: Ns, completed: Ns) -> Result<()> {
        let paced = self.current.paced()?;
        paced.response.record(completed.saturating_sub(intended));
        paced.wait.record(issued.saturating_sub(intended));
        Ok(())
    }

    /// Writes down the time of one statement of an op.
    #[inline]
    pub(crate) fn statement(&mut self, index: usize, measured: bool, ns: u64) {
        if self.in_latency(measured)
            && let Some(times) = self.current.by_statement.get_mut(index)
        {
            times.record(ns);
        }
    }

    /// Writes down an op that failed.
    pub(crate) fn failed(&mut self, issued: Ns, measured: bool, completed: Ns) -> Result<()> {
        self.roll(completed)?;
        self.current.errors += 1;
        if self.in_latency(measured) {
            self.current.failed.record(completed.saturating_sub(issued));
        }
        Ok(())
    }

    /// Writes down an op of which nobody knows whether it was done: neither done nor failed, it is
    /// an error of the timeline alone.
    pub(crate) fn unresolved(&mut self, now: Ns) -> Result<()> {
        self.roll(now)?;
        self.current.errors += 1;
        Ok(())
    }

    /// Writes down an op that was given up: its age is a lower bound of its time, and
    /// leaving it out would make a stalled server look fast.
    pub(crate) fn abandoned(
        &mut self,
        intended: Option<Ns>,
        issued: Ns,
        measured: bool,
        now: Ns,
    ) -> Result<()> {
        self.unresolved(now)?;
        if self.in_latency(measured) {
            self.current.service.record(now.saturating_sub(issued));
            if let Some(intended) = intended {
                self.paced(intended, issued, now)?;
            }
        }
        Ok(())
    }

    /// Writes down an arrival of the window that was never issued, likewise.
    pub(crate) fn unissued(&mut self, intended: Ns, now: Ns) -> Result<()> {
        self.roll(now)?;
        self.paced(intended, now, now)
    }

    /// Hands over the last interval, which ends now.
    pub(crate) fn finish(mut self, now: Ns) -> Result<()> {
        self.roll(now)?;
        self.current.end = now.max(self.current.start);
        (self.finished)(self.current);
        Ok(())
    }

    fn counts(&self, measured: bool) -> bool {
        self.current.phase == Phase::Measure && (!self.phases.by_issue || measured)
    }

    /// Whether an op belongs to the times of the current interval: what the warm-up issued does
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

    fn record(phases: Phases, ops: &[(Ns, Ns)], until: Ns) -> Vec<Interval> {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&seen);
        let mut recorder =
            Recorder::new(phases, 0, Box::new(move |i| sink.borrow_mut().push(i))).expect("memory");
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
            recorder.succeeded(op).expect("memory");
        }
        recorder.finish(until).expect("memory");
        seen.take()
    }

    fn shape(intervals: &[Interval]) -> Vec<(Phase, Ns, Ns, u64, u64)> {
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
        let mut recorder =
            Recorder::new(PHASES, 0, Box::new(move |i| sink.borrow_mut().push(i))).expect("memory");
        recorder.roll(260).expect("memory");
        recorder.end_window(300);
        let late = Op {
            intended: None,
            issued: 290,
            measured: true,
            completed: 310,
            statements: 1,
            rows: 1,
        };
        assert!(!recorder.succeeded(late).expect("memory"));
        recorder.finish(320).expect("memory");
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
