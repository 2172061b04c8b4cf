//! Outages: times in which no op succeeds on any client while errors occur.
//!
//! Each engine thread reports its first and its last success since its last report, and its errors.
//! They do so one after the other: the watch goes no further than all of them have reported.

use std::sync::Arc;

use crate::observe::recorder::Ns;
use crate::observe::timeline::seconds;
use crate::summary::{Interval, Outage, Phase};

/// A shorter time without success is no outage, whatever failed in it.
const GAP_MIN: Ns = 100_000_000;
/// Nor is one of fewer than so many mean distances between two successes: slow ops, and low
/// rates, have such times every now and then.
const DISTANCES_MIN: u64 = 10;
const OUTAGES_MAX: usize = 1000;
/// More errors than this do not wait for a thread that does not report.
const PENDING_MAX: usize = 1 << 14;
/// A server is as fast as before at this part of its earlier rate.
const RECOVERED: f64 = 0.95;
const EARLIER: usize = 10;

/// An observation of one thread, from an instant on.
#[derive(Debug)]
pub(crate) enum Event {
    /// Successes, the last one at another instant.
    Success(Ns),
    /// An error, with its code and text. Those that follow each other with the same text share it.
    Error(Option<u16>, Arc<str>),
}

pub(crate) type Events = Vec<(Ns, Event)>;

pub(crate) fn add_error(events: &mut Events, at: Ns, code: Option<u16>, text: &str) {
    let text = match events.last() {
        Some((_, Event::Error(_, last))) if **last == *text => Arc::clone(last),
        _ => Arc::from(text),
    };
    events.push((at, Event::Error(code, text)));
}

#[derive(Debug, Default)]
pub(crate) struct OutageWatch {
    /// By thread: how far it has reported, and its ops so far.
    reported: Vec<(Ns, u64)>,
    events: Events,
    reached: Ns,
    /// `--think`: clients that pause together leave such gaps.
    pause: Ns,
    last_success: Ns,
    open: Option<Outage>,
    /// Each with the last success before it.
    found: Vec<(Ns, Outage)>,
}

impl OutageWatch {
    pub(crate) fn new(threads: usize, pause: Ns) -> OutageWatch {
        OutageWatch { reported: vec![(0, 0); threads], pause, ..OutageWatch::default() }
    }

    /// Takes what a thread saw up to an instant (`Ns::MAX` when it has ended), and its ops so far.
    /// What came after the window's end is left out.
    pub(crate) fn report(&mut self, thread: usize, (now, ops): (Ns, u64), events: Events, end: Ns) {
        self.reported[thread] = (now, ops);
        self.events.extend(events.into_iter().filter(|(at, _)| *at <= end));
        let all = self.reported.iter().map(|(now, _)| *now).min().expect("a step has threads");
        let mut errors = self.events.iter().filter(|(_, event)| matches!(event, Event::Error(..)));
        let through = if errors.nth(PENDING_MAX).is_some() { now } else { all };
        self.proceed(through);
    }

    /// Ends with the window; when a server was as fast as before comes from the timeline.
    pub(crate) fn finish(&mut self, end: Ns, timeline: &[Interval]) -> Vec<Outage> {
        self.proceed(end);
        self.close(None, end);
        let found = std::mem::take(&mut self.found).into_iter().map(|(since, outage)| {
            let until_s = outage.first_success_s;
            let recovered_s = until_s.and_then(|until| recovered(timeline, seconds(since), until));
            Outage { recovered_s, ..outage }
        });
        found.collect()
    }

    fn proceed(&mut self, through: Ns) {
        if through <= self.reached {
            return;
        }
        self.reached = through;
        let mut events: Vec<_> = self.events.extract_if(.., |(at, _)| *at <= through).collect();
        // Who fails at the instant of a success was served with it. Those of one thread come in
        // their order.
        events.sort_by_key(|(at, event)| (*at, matches!(event, Event::Error(..))));
        for (at, event) in events {
            match event {
                Event::Success(last) => {
                    if at > self.last_success {
                        self.close(Some(at), at);
                    }
                    self.last_success = self.last_success.max(last);
                }
                Event::Error(code, text) if at > self.last_success => self.error(at, code, &text),
                Event::Error(..) => {}
            }
        }
    }

    fn error(&mut self, at: Ns, code: Option<u16>, text: &str) {
        let at_s = seconds(at);
        let open = self.open.get_or_insert_with(|| Outage {
            first_error_s: at_s,
            last_error_s: at_s,
            gap_s: 0.0,
            first_success_s: None,
            recovered_s: None,
            code,
            errors: 0,
            first_error: text.to_owned(),
            last_error: String::new(),
        });
        open.errors += 1;
        open.last_error_s = at_s;
        text.clone_into(&mut open.last_error);
    }

    fn close(&mut self, until: Option<Ns>, now: Ns) {
        let Some(open) = self.open.take() else { return };
        let since = self.last_success;
        let gap = now.saturating_sub(since);
        let done: u64 = self.reported.iter().map(|(_, ops)| ops).sum();
        let distance = since / done.max(1);
        if gap >= GAP_MIN.max(distance.saturating_mul(DISTANCES_MIN)).saturating_add(self.pause)
            && self.found.len() < OUTAGES_MAX
        {
            let first_success_s = until.map(seconds);
            self.found.push((since, Outage { gap_s: seconds(gap), first_success_s, ..open }));
        }
    }
}

/// Finds the start of the first whole interval after an outage in which the rate was that of before.
fn recovered(timeline: &[Interval], since_s: f64, until_s: f64) -> Option<f64> {
    let rate = |i: &Interval| i.ops as f64 / i.length_s;
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
    use proptest::prelude::*;

    const MS: Ns = 1_000_000;

    /// A report up to an instant in milliseconds: ops so far, the first and the last success since
    /// the one before, errors.
    type Report = (u64, u64, Option<(u64, u64)>, Vec<u64>);

    fn tell(watch: &mut OutageWatch, thread: usize, (now, ops, successes, errors): Report) {
        let success = |(first, last)| (first * MS, Event::Success(last * MS));
        let mut events: Events = successes.map(success).into_iter().collect();
        for ms in errors {
            add_error(&mut events, ms * MS, Some(2013), &format!("at {ms}"));
        }
        watch.report(thread, (now * MS, ops), events, 10_000 * MS);
    }

    /// Two threads that do an op a millisecond, as their reports tell, until 1000 ms.
    fn busy() -> OutageWatch {
        let mut watch = OutageWatch::new(2, 0);
        for tick in 1..=50 {
            for thread in 0..2 {
                let successes = Some((tick * 20 - 19, tick * 20));
                tell(&mut watch, thread, (tick * 20, tick * 20, successes, vec![]));
            }
        }
        watch
    }

    fn all(watch: &mut OutageWatch, end: u64) -> Vec<Outage> {
        for thread in 0..2 {
            watch.report(thread, (Ns::MAX, 1000), Vec::new(), Ns::MAX);
        }
        watch.finish(end * MS, &[])
    }

    #[test]
    fn an_outage_is_from_success_to_success_with_its_errors() {
        let mut watch = busy();
        tell(&mut watch, 0, (1020, 1000, None, vec![1010]));
        tell(&mut watch, 1, (1021, 1000, None, vec![1005]));
        tell(&mut watch, 0, (2000, 1000, None, vec![1990]));
        tell(&mut watch, 1, (3000, 1001, Some((2995, 2995)), vec![]));
        let found = all(&mut watch, 4000);
        assert_eq!(found.len(), 1);
        let told = &found[0];
        assert_eq!((told.first_error_s, told.last_error_s), (1.005, 1.99));
        assert_eq!((told.gap_s, told.first_success_s, told.errors), (1.995, Some(2.995), 3));
        assert_eq!((told.first_error.as_str(), told.code), ("at 1005", Some(2013)));
    }

    #[test]
    fn what_another_thread_saw_before_the_success_belongs_to_the_outage() {
        let mut watch = busy();
        // The first success after it is reported before the errors of the other thread, and before
        // that thread's own success of before it.
        tell(&mut watch, 0, (1020, 1005, Some((1001, 1005)), vec![1008]));
        tell(&mut watch, 0, (2000, 1005, None, vec![1500]));
        tell(&mut watch, 0, (2020, 1010, Some((2010, 2015)), vec![]));
        tell(&mut watch, 1, (1021, 1003, Some((1001, 1003)), vec![1006]));
        tell(&mut watch, 1, (2001, 1003, None, vec![1900]));
        tell(&mut watch, 1, (2021, 1004, Some((2018, 2018)), vec![2009, 2012]));
        let found = all(&mut watch, 3000);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].first_error.as_str(), found[0].last_error.as_str()),
            ("at 1006", "at 2009")
        );
        assert_eq!(
            (found[0].errors, found[0].gap_s, found[0].first_success_s),
            (5, 1.005, Some(2.01))
        );
    }

    #[test]
    fn errors_and_successes_of_one_tick_are_told_apart() {
        let mut watch = busy();
        // Within one tick: an error, a success, an error, and then nothing for a second.
        tell(&mut watch, 0, (1020, 1010, Some((1001, 1010)), vec![1004, 1012]));
        tell(&mut watch, 0, (2010, 1011, Some((2005, 2005)), vec![2004, 2006]));
        let found = all(&mut watch, 3000);
        assert_eq!((found.len(), found[0].errors, found[0].gap_s), (2, 2, 0.995));
        assert_eq!((found[0].first_error_s, found[0].last_error_s), (1.012, 2.004));
    }

    #[test]
    fn errors_among_successes_and_silence_without_errors_are_none() {
        let mut watch = busy();
        tell(&mut watch, 0, (1020, 1020, Some((1001, 1020)), vec![1010]));
        tell(&mut watch, 1, (1021, 1020, Some((1001, 1020)), vec![]));
        // Nobody asks for a while.
        tell(&mut watch, 0, (3000, 1021, Some((2990, 2990)), vec![]));
        assert_eq!(all(&mut watch, 3020), []);
    }

    #[test]
    fn one_that_lasts_to_the_end_has_no_success_after_it() {
        let mut watch = busy();
        tell(&mut watch, 0, (1020, 1000, None, vec![1010]));
        tell(&mut watch, 0, (10_010, 1001, Some((10_005, 10_005)), vec![9995, 10_003]));
        let found = all(&mut watch, 10_000);
        let told = &found[0];
        assert_eq!((told.gap_s, told.first_success_s, told.recovered_s), (9.0, None, None));
        assert_eq!((told.errors, told.last_error_s), (2, 9.995), "none of after the window");
    }

    #[test]
    fn slow_ops_fail_without_an_outage() {
        // One op a second; one of them fails.
        let mut watch = OutageWatch::new(1, 0);
        (1..=10).for_each(|s| {
            tell(&mut watch, 0, (s * 1000, s, Some((s * 1000, s * 1000)), vec![]));
        });
        tell(&mut watch, 0, (11_000, 10, None, vec![11_000]));
        tell(&mut watch, 0, (12_000, 11, Some((12_000, 12_000)), vec![]));
        assert_eq!(watch.finish(13_000 * MS, &[]), []);
    }

    #[test]
    fn a_pause_of_all_clients_is_no_outage() {
        // Eight ops every two seconds, and an error between two rounds.
        let found = |pause| {
            let mut watch = OutageWatch::new(1, pause);
            (1..=4).for_each(|round| {
                let at = round * 2000;
                tell(&mut watch, 0, (at, round * 8, Some((at, at)), vec![]));
            });
            tell(&mut watch, 0, (9000, 32, None, vec![9000]));
            tell(&mut watch, 0, (10_000, 40, Some((10_000, 10_000)), vec![]));
            watch.finish(10_000 * MS, &[]).len()
        };
        assert_eq!((found(0), found(2000 * MS)), (1, 0));
    }

    #[test]
    fn a_thread_that_does_not_report_does_not_fill_memory() {
        let mut watch = OutageWatch::new(2, 0);
        let mut events = Events::new();
        (0..=PENDING_MAX as u64).for_each(|ns| add_error(&mut events, 1 + ns, None, "the same"));
        watch.report(0, (2000 * MS, 0), events, Ns::MAX);
        assert!(watch.events.is_empty());
        assert_eq!(watch.finish(2000 * MS, &[])[0].errors, PENDING_MAX as u64 + 1);
        // Successes, of which each thread has one a tick, wait.
        let mut watch = OutageWatch::new(2, 0);
        let events = (0..=PENDING_MAX as u64).map(|ns| (1 + ns, Event::Success(1 + ns)));
        watch.report(0, (2000 * MS, 0), events.collect(), Ns::MAX);
        assert_eq!(watch.reached, 0);
    }

    /// What a thread saw: when, in milliseconds, and whether it succeeded.
    type Seen = (u64, bool);

    /// Outages as they are: errors, the first and the last of them, the first success after them.
    fn as_it_was(threads: &[Vec<Seen>]) -> Vec<(u64, u64, u64, Option<u64>)> {
        let mut events: Vec<Seen> = threads.iter().flatten().copied().collect();
        // A success is at an instant before an error.
        events.sort_by_key(|(at, good)| (*at, !good));
        let (mut last, mut errors, mut found) = (0, Vec::new(), Vec::new());
        let ended = |errors: &[u64], gap: u64| gap >= 100 && !errors.is_empty();
        for (at, good) in events {
            match good {
                false if at > last => errors.push(at),
                false => {}
                true => {
                    errors.retain(|error| *error < at);
                    if ended(&errors, at - last) {
                        let n = errors.len() as u64;
                        found.push((n, errors[0], errors[errors.len() - 1], Some(at)));
                    }
                    errors.clear();
                    last = at;
                }
            }
        }
        if ended(&errors, 5000 - last) {
            found.push((errors.len() as u64, errors[0], errors[errors.len() - 1], None));
        }
        found
    }

    /// Ticks of a thread from an instant on: reports of its events.
    fn reports(events: &[Seen], offset: u64) -> Vec<Report> {
        let mut events = events.to_vec();
        events.sort_by_key(|(at, good)| (*at, !good));
        let ends: Vec<u64> = (0..300).map(|tick| offset + tick * 20).collect();
        let (mut from, mut ops) = (0, 0);
        ends.into_iter()
            .map(|to| {
                let here = || events.iter().filter(|(at, _)| *at > from && *at <= to);
                let good: Vec<u64> = here().filter(|e| e.1).map(|e| e.0).collect();
                let bad: Vec<u64> = here().filter(|e| !e.1).map(|e| e.0).collect();
                // Many, so that the mean distance is short.
                ops += 1000 * good.len() as u64;
                let span = good.first().copied().zip(good.last().copied());
                from = to;
                (to, ops, span, bad)
            })
            .collect()
    }

    proptest! {
        /// However the ticks of the threads lie.
        #[test]
        fn any_outage_is_told_as_it_was(
            threads in prop::collection::vec(
                prop::collection::vec((1_u64..5000, prop::bool::weighted(0.3)), 0..40), 1..5),
            offsets in prop::collection::vec(1_u64..20, 5),
        ) {
            let mut watch = OutageWatch::new(threads.len(), 0);
            let mut all: Vec<(usize, Report)> = Vec::new();
            for (thread, events) in threads.iter().enumerate() {
                for report in reports(events, offsets[thread]) {
                    all.push((thread, report));
                }
            }
            all.sort_by_key(|(thread, report)| (report.0, *thread));
            for (thread, report) in all {
                tell(&mut watch, thread, report);
            }
            let ms = |s: f64| (s * 1e3).round() as u64;
            let found: Vec<_> = watch
                .finish(5000 * MS, &[])
                .iter()
                .map(|o| (o.errors, ms(o.first_error_s), ms(o.last_error_s), o.first_success_s.map(ms)))
                .collect();
            prop_assert_eq!(found, as_it_was(&threads));
        }
    }

    #[test]
    fn a_server_has_recovered_at_the_rate_of_before() {
        let entry = |start: u32, ops| Interval {
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
