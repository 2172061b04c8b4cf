//! The live line of a step.

use super::pacing::{NEVER, Window};
use crate::observe::recorder::{Ns, Phase, RecordedInterval};
use crate::observe::timeline::seconds;
use crate::plan::{Plan, Step, StopAt};
use crate::stats::is_scarce;
use crate::terms;

pub(crate) struct LiveLine<'a> {
    plan: &'a Plan,
    step: &'a Step,
    seen: Option<RecordedInterval>,
    window_ops: u64,
}

impl LiveLine<'_> {
    pub(crate) fn new<'a>(plan: &'a Plan, step: &'a Step) -> LiveLine<'a> {
        LiveLine { plan, step, seen: None, window_ops: 0 }
    }

    fn head(&self) -> String {
        let Step { place, of, clients, rate, repeat, .. } = self.step;
        let repeat = match self.plan.repeats {
            1 => String::new(),
            n => format!(", repeat {repeat} of {n}"),
        };
        let rate = rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
        let (name, clients) = (&self.plan.workload.name, terms::clients(*clients));
        format!("[{place}/{of}] {name} {clients}{rate}{repeat}")
    }

    pub(crate) fn opening(&self, opened: u32) -> String {
        format!("{}: opened {opened} of {} connections", self.head(), self.step.clients)
    }

    pub(crate) fn add(&mut self, intervals: &[RecordedInterval]) {
        for interval in intervals {
            if interval.phase == Phase::Measure {
                self.window_ops += interval.ops;
            }
            match &mut self.seen {
                // A line never mixes phases.
                Some(seen) if seen.phase == interval.phase => seen.merge(interval),
                _ => self.seen = Some(interval.clone()),
            }
        }
    }

    /// Tells what was added since the last time; `window` is what is decided of it.
    pub(crate) fn line(&mut self, window: Window) -> String {
        let Some(seen) = self.seen.take() else { return format!("{}: starting", self.head()) };
        let left = |edge: Ns| format!("{} left", clock(edge.saturating_sub(seen.end)));
        let warmup = self.plan.warmup.as_nanos() as Ns;
        let start = if window.start == NEVER { warmup } else { window.start };
        let (phase, left) = match (seen.phase, self.plan.stop) {
            (Phase::Warmup, _) => ("warm-up", left(start)),
            (Phase::Measure, StopAt::Time(_)) => ("measuring", left(window.end)),
            (Phase::Measure, StopAt::Ops(ops)) => {
                ("measuring", format!("{} of {ops} ops", self.window_ops))
            }
            (Phase::Drain, _) => ("draining", "ending".to_owned()),
        };
        let per_s = |n: u64| n as f64 / seconds((seen.end - seen.start).max(1));
        // A closed loop has no other time than the call's; an open one counts from the instant
        // that was intended.
        let (done, name, times) = match self.step.rate {
            None => (format!("{:.0} QPS", per_s(seen.statements)), "service", Some(&seen.service)),
            Some(rate) => {
                let times = seen.paced.as_ref().map(|paced| &paced.response);
                (format!("{:.0} of {rate} ops/s", per_s(seen.ops)), "response", times)
            }
        };
        let time = |p: f64| {
            let enough = times.filter(|times| !is_scarce(p, times.count()));
            let us = enough.and_then(|times| times.percentile_us(p));
            us.map_or_else(|| "-".to_owned(), millis)
        };
        let (p50, p99) = (time(50.0), time(99.0));
        let (head, errors) = (self.head(), seen.errors);
        format!(
            "{head}: {phase}, {left}, {done}, {name} time p50 {p50}, p99 {p99}, {errors} errors"
        )
    }
}

/// Writes microseconds as milliseconds with three digits that say something.
pub(crate) fn millis(us: f64) -> String {
    let ms = us / 1e3;
    match ms {
        ms if ms < 10.0 => format!("{ms:.3} ms"),
        ms if ms < 100.0 => format!("{ms:.2} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

/// Writes minutes and seconds, rounded up, so that 0:00 means over.
fn clock(ns: Ns) -> String {
    let s = ns.div_ceil(1_000_000_000);
    format!("{}:{:02}", s / 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::job::tests::a_plan;
    use crate::observe::recorder::{Op, Phases, Recorder};
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    const MINUTE: Window = Window { start: 0, end: 60_000_000_000, early: false };

    fn intervals() -> Vec<RecordedInterval> {
        let second = 1_000_000_000;
        let phases =
            Phases { window_start: 0, window_end: 60 * second, by_issue: false, interval: second };
        let seen = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&seen);
        let mut recorder = Recorder::new(phases, 0, Box::new(move |i| sink.borrow_mut().push(i)));
        for i in 0..1500 {
            let issued = i * 1_000_000;
            let completed = issued + 500_000;
            let measured = true;
            let op = Op { intended: None, issued, measured, completed, statements: 1, rows: 1 };
            recorder.succeeded(op);
        }
        recorder.finish(2 * second);
        seen.take()
    }

    #[test]
    fn a_line_has_everything_of_its_intervals() {
        let plan = a_plan(0, 64, StopAt::Time(Duration::from_mins(1)));
        let step = Step { number: 12, place: 2, of: 6, clients: 64, rate: None, repeat: 1 };
        let mut line = LiveLine::new(&plan, &step);
        assert_eq!(line.opening(3), "[2/6] point-select 64 clients: opened 3 of 64 connections");
        line.add(&intervals()[..2]);
        assert_eq!(
            line.line(MINUTE),
            "[2/6] point-select 64 clients: measuring, 0:58 left, 750 QPS, service time p50 \
             0.500 ms, p99 0.500 ms, 0 errors"
        );
    }

    #[test]
    fn a_percentile_of_few_ops_is_no_number() {
        let plan = a_plan(0, 64, StopAt::Time(Duration::from_mins(1)));
        let step = Step { number: 1, place: 1, of: 1, clients: 64, rate: None, repeat: 1 };
        let mut line = LiveLine::new(&plan, &step);
        // The second second has 500 ops.
        line.add(&intervals()[1..2]);
        assert!(line.line(MINUTE).contains("p50 0.500 ms, p99 -,"), "too few beyond p99");
    }

    #[test]
    fn ops_show_how_many_are_done() {
        let plan = a_plan(0, 64, StopAt::Ops(9000));
        let step = Step { number: 1, place: 1, of: 1, clients: 64, rate: None, repeat: 1 };
        let mut line = LiveLine::new(&plan, &step);
        line.add(&intervals()[..1]);
        assert!(line.line(MINUTE).contains("1000 of 9000 ops"));
    }
}
