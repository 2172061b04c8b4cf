//! Outages: times in which no op succeeds on any client while errors occur.
//!
//! Nothing is done an op for it. Each engine thread reports every [`super::thread::TICK`] how many
//! ops it has done so far, and which errors there were since its last report: so successes are
//! known to within a tick, errors to the instant.

use crate::measure::recorder::Ns;
use crate::measure::timeline::seconds;
use crate::summary::{self, Phase};

/// A shorter time without success is no outage, whatever failed in it.
const GAP_MIN: Ns = 100_000_000;
/// Nor is one of fewer than so many mean distances between two successes: slow ops, and low
/// rates, have such times every now and then.
const DISTANCES_MIN: u64 = 10;
/// More outages of one step than this are not told apart.
const OUTAGES_MAX: usize = 1000;
/// A server is as fast as before at this part of its earlier rate.
const RECOVERED: f64 = 0.95;
/// The earlier rate is the median of so many intervals.
const EARLIER: usize = 10;

/// Errors of a thread since its last report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fresh {
    count: u64,
    first: Seen,
    last: Seen,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    at: Ns,
    code: Option<u16>,
    text: String,
}

impl Fresh {
    pub(crate) fn add(&mut self, at: Ns, code: Option<u16>, text: String) {
        self.count += 1;
        self.last = Seen { at, code, text };
        if self.count == 1 {
            self.first = self.last.clone();
        }
    }

    fn merge(&mut self, other: Fresh) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 || other.first.at < self.first.at {
            self.first = other.first;
        }
        if self.count == 0 || other.last.at >= self.last.at {
            self.last = other.last;
        }
        self.count += other.count;
    }
}

/// One outage on the step's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outage {
    errors: Fresh,
    /// From the last success before it.
    since: Ns,
    /// To the first one after it; None if there was none.
    until: Option<Ns>,
    /// Or to the end of the window.
    gap: Ns,
}

/// Puts the reports of all threads together.
#[derive(Debug)]
pub(crate) struct Watch {
    /// By thread: ops so far.
    ops: Vec<u64>,
    /// When a success was seen last.
    last_success: Ns,
    /// Errors since then.
    open: Fresh,
    found: Vec<Outage>,
}

impl Watch {
    pub(crate) fn new(threads: usize) -> Watch {
        let (ops, found) = (vec![0; threads], Vec::new());
        Watch { ops, last_success: 0, open: Fresh::default(), found }
    }

    /// A thread's report: its ops so far, and its errors since the last one.
    pub(crate) fn report(&mut self, thread: usize, now: Ns, ops: u64, fresh: Fresh) {
        let Some(known) = self.ops.get_mut(thread) else { return };
        if ops > std::mem::replace(known, ops) {
            let errors = std::mem::take(&mut self.open);
            self.close(errors, Some(now), now);
            self.last_success = self.last_success.max(now);
        }
        // Which of them came after the success is not known; if all came before it, the next
        // success is near and makes it too short for an outage.
        self.open.merge(fresh);
    }

    /// At the end of the window.
    pub(crate) fn finish(&mut self, end: Ns) -> Vec<Outage> {
        let errors = std::mem::take(&mut self.open);
        self.close(errors, None, end);
        std::mem::take(&mut self.found)
    }

    fn close(&mut self, errors: Fresh, until: Option<Ns>, now: Ns) {
        // A success is seen up to a tick after it was, maybe after the first error.
        let since = self.last_success.min(errors.first.at);
        let gap = now.saturating_sub(since);
        let done: u64 = self.ops.iter().sum();
        let distance = self.last_success / done.max(1);
        let long = gap >= GAP_MIN.max(distance.saturating_mul(DISTANCES_MIN));
        if errors.count > 0 && long && self.found.len() < OUTAGES_MAX {
            self.found.push(Outage { errors, since, until, gap });
        }
    }
}

/// The summary's form; when a server was as fast as before comes from the timeline.
pub(super) fn told(outage: &Outage, timeline: &[summary::Interval]) -> summary::Outage {
    let Fresh { count, first, last } = &outage.errors;
    summary::Outage {
        first_error_s: seconds(first.at),
        last_error_s: seconds(last.at),
        gap_s: seconds(outage.gap),
        first_success_s: outage.until.map(seconds),
        recovered_s: outage
            .until
            .and_then(|until| recovered(timeline, seconds(outage.since), seconds(until))),
        code: first.code,
        errors: *count,
        first_error: first.text.clone(),
        last_error: last.text.clone(),
    }
}

/// The start of the first whole interval after an outage in which the rate was that of before.
fn recovered(timeline: &[summary::Interval], since_s: f64, until_s: f64) -> Option<f64> {
    let rate = |i: &summary::Interval| i.ops as f64 / i.length_s;
    let usable = || timeline.iter().filter(|i| i.length_s > 0.0 && i.phase != Phase::Drain);
    let mut earlier: Vec<f64> =
        usable().filter(|i| i.start_s + i.length_s <= since_s).map(rate).collect();
    let mut earlier = earlier.split_off(earlier.len().saturating_sub(EARLIER));
    earlier.sort_by(f64::total_cmp);
    let usual = *earlier.get(earlier.len() / 2)?;
    let after = usable().filter(|i| i.start_s >= until_s);
    after.filter(|i| rate(i) >= usual * RECOVERED).map(|i| i.start_s).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    fn error(at: Ns) -> Fresh {
        let mut fresh = Fresh::default();
        fresh.add(at, Some(2013), format!("at {at}"));
        fresh
    }

    /// Two threads that do an op a millisecond, as their reports tell, until 1000 ms.
    fn busy() -> Watch {
        let mut watch = Watch::new(2);
        for tick in 1..=50 {
            for thread in 0..2 {
                watch.report(thread, tick * 20 * MS, tick * 20, Fresh::default());
            }
        }
        watch
    }

    #[test]
    fn an_outage_is_from_success_to_success_with_its_errors() {
        let mut watch = busy();
        watch.report(0, 1020 * MS, 1000, error(1010 * MS));
        watch.report(1, 1021 * MS, 1000, error(1005 * MS));
        watch.report(0, 2000 * MS, 1000, error(1990 * MS));
        watch.report(1, 3000 * MS, 1001, Fresh::default());
        let found = watch.finish(4000 * MS);
        assert_eq!(found.len(), 1);
        let told = told(&found[0], &[]);
        assert_eq!((told.first_error_s, told.last_error_s), (1.005, 1.99));
        assert_eq!((told.gap_s, told.first_success_s, told.errors), (2.0, Some(3.0), 3));
        assert_eq!((told.first_error.as_str(), told.code), ("at 1005000000", Some(2013)));
    }

    #[test]
    fn the_last_success_lies_before_the_first_error() {
        let mut watch = busy();
        // Within one tick: a success, then the end.
        watch.report(0, 1020 * MS, 1010, error(1010 * MS));
        watch.report(0, 2010 * MS, 1011, Fresh::default());
        let found = watch.finish(3000 * MS);
        assert_eq!((found[0].since, found[0].gap), (1010 * MS, 1000 * MS));
    }

    #[test]
    fn errors_among_successes_and_silence_without_errors_are_none() {
        let mut watch = busy();
        watch.report(0, 1020 * MS, 1020, error(1010 * MS));
        watch.report(1, 1021 * MS, 1020, Fresh::default());
        // Nobody asks for a while.
        watch.report(0, 3000 * MS, 1021, Fresh::default());
        assert_eq!(watch.finish(3020 * MS), []);
    }

    #[test]
    fn one_that_lasts_to_the_end_has_no_success_after_it() {
        let mut watch = busy();
        watch.report(0, 1020 * MS, 1000, error(1010 * MS));
        let found = watch.finish(5000 * MS);
        let told = told(&found[0], &[]);
        assert_eq!((told.gap_s, told.first_success_s, told.recovered_s), (4.0, None, None));
    }

    #[test]
    fn slow_ops_fail_without_an_outage() {
        // One op a second; one of them fails.
        let mut watch = Watch::new(1);
        (1..=10).for_each(|s| watch.report(0, s * 1000 * MS, s, Fresh::default()));
        watch.report(0, 11_000 * MS, 10, error(11_000 * MS));
        watch.report(0, 12_000 * MS, 11, Fresh::default());
        assert_eq!(watch.finish(13_000 * MS), []);
    }

    #[test]
    fn a_server_has_recovered_at_the_rate_of_before() {
        let entry = |start: u32, ops| summary::Interval {
            phase: Phase::Measure,
            start_s: f64::from(start),
            length_s: 1.0,
            ops,
            errors: 0,
            p50_us: None,
            p99_us: None,
            max_us: None,
            response_p50_us: None,
            response_p99_us: None,
            response_max_us: None,
        };
        let ops = [100, 110, 90, 40, 0, 30, 94, 95, 120];
        let timeline: Vec<_> = (0..).zip(ops).map(|(start, ops)| entry(start, ops)).collect();
        assert_eq!(recovered(&timeline, 3.4, 5.2), Some(7.0));
        assert_eq!(recovered(&timeline, 3.4, 8.5), None);
        assert_eq!(recovered(&timeline, 0.5, 1.5), None, "there is no earlier rate");
    }
}
