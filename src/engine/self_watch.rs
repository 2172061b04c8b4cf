//! A thread's watch over itself: how busy it was in the window, how long it waited for a core, and how
//! late it came to a socket that was ready. The last by probes: a kernel timer becomes ready at a known
//! instant, as a socket would. It needs no other thread, which would itself be late when cores are full.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::alarm::{NEVER, Spun};
use super::pacing::StepWindow;
use crate::observe::{Ns, Scheduled, ThreadClock, Times};
use crate::stats;
use crate::summary::{ThreadShare, TurnDelay};

/// Time between probes. Not a divisor of a round number, so that probes do not fall on timer ticks.
pub(super) const EVERY: Ns = 10_300_000;

pub(crate) struct SelfWatch {
    clock: Option<ThreadClock>,
    samples: Option<[ThreadSample; 2]>,
    delays: TurnDelays,
    probed: Scheduled,
    /// The end of the thread's last client, where the window has nothing of what follows.
    ended: Ns,
}

/// The watch of a thread over itself, which the groups of its clients share.
pub(crate) struct SharedWatch {
    watch: RefCell<Option<SelfWatch>>,
    pub spun: Rc<Spun>,
    /// Groups that have not ended.
    groups: Cell<usize>,
    /// Clients of all groups that have not ended.
    clients: Cell<usize>,
    is_shared: bool,
}

impl SharedWatch {
    pub(super) fn new(groups: usize, clients: usize) -> SharedWatch {
        let watch = RefCell::new(Some(SelfWatch::new()));
        let (is_shared, spun) = (groups > 1, Rc::default());
        let [groups, clients] = [groups, clients].map(Cell::new);
        SharedWatch { watch, spun, groups, clients, is_shared }
    }

    /// Ends a client: what a script does after the last one is no delay of any.
    pub(super) fn end_client(&self, now: Ns) {
        self.clients.set(self.clients.get() - 1);
        if let Some(watch) = self.watch.borrow_mut().as_mut().filter(|_| self.clients.get() == 0) {
            watch.ended = now;
        }
    }

    pub(super) fn sample(&self, now: Ns, window: StepWindow) {
        if let Some(watch) = &mut *self.watch.borrow_mut() {
            watch.sample(now, self.window(window), self.spun.total.get());
        }
    }

    /// Returns the window of the measured clients: with `--ops` the groups beside end later.
    fn window(&self, window: StepWindow) -> StepWindow {
        let end = if self.is_shared { window.end.min(window.last) } else { window.end };
        StepWindow { end, ..window }
    }

    /// Takes a turn of its probe; None when all groups have ended.
    pub(super) fn turn(&self, due: Ns, now: Ns, window: StepWindow, parked: bool) -> Option<Ns> {
        Some(self.watch.borrow_mut().as_mut()?.turn(due, now, self.window(window), parked))
    }

    /// Ends a group; the last one has the usage of the thread.
    pub(super) fn end_group(&self) -> Vec<ThreadUsage> {
        self.groups.set(self.groups.get() - 1);
        let watch = self.watch.borrow_mut().take_if(|_| self.groups.get() == 0);
        Vec::from_iter(watch.map(|watch| watch.into_usage(self.spun.is_on.get())))
    }
}

/// Delays, and what is left of them without the time that the thread waited for a core.
type TurnDelays = [Times; 2];

#[derive(Debug, Clone, Copy, Default)]
struct ThreadSample {
    at: Ns,
    /// Not parked, since its start.
    busy: Duration,
    scheduled: Option<Scheduled>,
    /// Looking for work, since its start, where clients are woken at their instants.
    spun: Ns,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ThreadUsage {
    pub share: ThreadShare,
    delays: TurnDelays,
}

fn describe_delays([delay, own]: &TurnDelays) -> TurnDelay {
    let tail = stats::highest_known(delay.count());
    let at = |times: &Times| times.percentile_us(f64::from(tail?));
    TurnDelay {
        probes: delay.count(),
        turn_delay_p50_us: delay.percentile_us(50.0),
        turn_delay_p99_us: delay.percentile_us(99.0),
        turn_delay_max_us: delay.max_us(),
        own_delay_p99_us: own.percentile_us(99.0),
        tail_percentile: tail,
        turn_delay_tail_us: at(delay),
        own_delay_tail_us: at(own),
    }
}

pub(crate) fn turns_of_all(threads: &[ThreadUsage]) -> TurnDelay {
    let mut all = [Times::new(), Times::new()];
    for thread in threads {
        all.iter_mut().zip(&thread.delays).for_each(|(sum, times)| sum.merge(times));
    }
    describe_delays(&all)
}

impl SelfWatch {
    pub(crate) fn new() -> SelfWatch {
        let clock = ThreadClock::own();
        // A kernel that keeps no account leaves all delays to the thread.
        let probed = clock.as_ref().and_then(ThreadClock::read).unwrap_or_default();
        let delays = [Times::new(), Times::new()];
        SelfWatch { clock, samples: None, delays, probed, ended: NEVER }
    }

    /// Looks, from the window's start to its end; within the thread's runtime.
    pub(crate) fn sample(&mut self, now: Ns, window: StepWindow, spun: Ns) {
        if now < window.start {
            return;
        }
        let busy = Handle::current().metrics().worker_total_busy_duration(0);
        let scheduled = self.clock.as_ref().and_then(ThreadClock::read);
        let sample = ThreadSample { at: now, busy, scheduled, spun };
        // The last one is the first after the end: a thread that did not look for long at the end was busy or waited.
        let [_, last] = self.samples.get_or_insert([sample; 2]);
        if last.at <= window.end.min(self.ended) {
            *last = sample;
        }
    }

    /// Counts the instants from `due` on that have passed; returns the next one.
    /// `parked` says that the thread had nothing to do at some time since the probe before.
    pub(super) fn turn(&mut self, mut due: Ns, now: Ns, window: StepWindow, parked: bool) -> Ns {
        let probed = self.clock.as_ref().and_then(ThreadClock::read).unwrap_or(self.probed);
        let since = probed.since(&self.probed);
        self.probed = probed;
        while due <= now {
            if (window.start..window.end.min(self.ended)).contains(&due) {
                let (late, [delay, own]) = (now.min(self.ended) - due, &mut self.delays);
                delay.record(late);
                own.record(own_delay(late, since, parked));
            }
            due = due.saturating_add(EVERY);
        }
        due
    }

    pub(crate) fn into_usage(self, spins: bool) -> ThreadUsage {
        // Without a window there was nothing to see.
        let [first, last] = self.samples.unwrap_or_default();
        let wall = Duration::from_nanos(last.at.saturating_sub(first.at));
        let scheduled = first.scheduled.zip(last.scheduled).map(|(first, last)| last.since(&first));
        let (ran, waited) = (scheduled.map(|s| s.ran), scheduled.map(|s| s.waited));
        let spun = Duration::from_nanos(last.spun.saturating_sub(first.spun));
        let (work, of) = match ran.zip(waited) {
            Some((ran, waited)) if spins => (ran.saturating_sub(spun), wall.saturating_sub(waited)),
            // The runtime's account lacks the system calls that ask for ready sockets, also those
            // that find some at once; the scheduler's lacks the time that the thread was stopped.
            _ => (last.busy.saturating_sub(first.busy).max(ran.unwrap_or(Duration::ZERO)), wall),
        };
        let busy = if of.is_zero() { 0.0 } else { work.as_secs_f64() / of.as_secs_f64() };
        let share = ThreadShare {
            busy: busy.min(1.0),
            wall_s: wall.as_secs_f64(),
            cpu_s: ran.as_ref().map(Duration::as_secs_f64),
            spun_s: spun.as_secs_f64(),
            descheduled_s: waited.as_ref().map(Duration::as_secs_f64),
            turns: describe_delays(&self.delays),
        };
        ThreadUsage { share, delays: self.delays }
    }
}

/// Takes waiting for a core off a delay, by what the thread did since the probe before.
///
/// Not all that it waited lies in the delay. A thread that always had something to do waited as much
/// in it as in the rest of the time; one that had nothing to do ran before the instant was due.
fn own_delay(delay: Ns, since: Scheduled, parked: bool) -> Ns {
    let (ran, waited) = (since.ran.as_nanos() as Ns, since.waited.as_nanos() as Ns);
    if parked {
        return delay.saturating_sub(waited);
    }
    let part = ran as f64 / (ran + waited).max(1) as f64;
    let shared = if waited > 0 { (delay as f64 * part) as Ns } else { delay };
    shared.max(delay.saturating_sub(waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> SelfWatch {
        SelfWatch { clock: None, ..SelfWatch::new() }
    }

    fn window(start: Ns, end: Ns) -> StepWindow {
        StepWindow { start, end, early: false, last: end }
    }

    #[test]
    fn every_instant_of_a_stall_counts_with_its_own_delay() {
        let mut watch = watch();
        let due = watch.turn(EVERY, 3 * EVERY, window(0, Ns::MAX), false);
        assert_eq!(due, 4 * EVERY);
        let delay = watch.delays[0].distribution();
        assert_eq!((delay.count, delay.max_us), (3, Some(20_600.0)));
        assert_eq!(delay.mean_us, Some(10_300.0));
        assert_eq!(watch.turn(due, due - 1, window(0, Ns::MAX), false), due, "woken early");
        assert_eq!(watch.delays[0].count(), 3);
    }

    #[test]
    fn only_instants_inside_the_window_count() {
        let mut watch = watch();
        watch.turn(EVERY, 10 * EVERY, window(3 * EVERY, 5 * EVERY), false);
        assert_eq!(watch.delays[0].count(), 2);
    }

    #[test]
    fn instants_after_the_measured_clients_end_count_only_where_no_group_is_beside() {
        let window = StepWindow { start: 0, end: Ns::MAX, early: false, last: 5 * EVERY };
        let counted = |groups| {
            let shared = SharedWatch::new(groups, 1);
            shared.turn(EVERY, 10 * EVERY, window, false);
            shared.watch.take().map(|watch| watch.delays[0].count())
        };
        assert_eq!([counted(1), counted(2)], [Some(10), Some(4)]);
    }

    #[test]
    fn time_after_the_last_client_of_the_thread_is_no_delay() {
        let counted = |ends: &[Ns]| {
            let shared = SharedWatch::new(1, 2);
            for end in ends {
                shared.end_client(*end);
            }
            shared.turn(EVERY, 10 * EVERY, window(0, Ns::MAX), false);
            let delay = shared.watch.take().map(|watch| watch.delays[0].distribution());
            delay.map(|delay| (delay.count, delay.max_us))
        };
        assert_eq!(counted(&[3 * EVERY]), Some((10, Some(92_700.0))));
        assert_eq!(counted(&[3 * EVERY, 5 * EVERY]), Some((4, Some(41_200.0))));
    }

    #[test]
    fn waiting_for_a_core_is_no_delay_of_its_own_delay() {
        let since = |ran, waited| {
            let us = Duration::from_micros;
            Scheduled { ran: us(ran), waited: us(waited) }
        };
        assert_eq!(
            own_delay(6_000_000, since(20, 0), false),
            6_000_000,
            "stopped, or its core was"
        );
        assert_eq!(
            own_delay(6_000_000, since(0, 6_000), false),
            0,
            "idle, woken, and another one had the core"
        );
        assert_eq!(own_delay(500_000, since(5_000, 5_000), false), 250_000, "busy on half a core");
        assert_eq!(
            own_delay(90_000_000, since(300, 1_000), false),
            89_000_000,
            "stopped, then waiting"
        );
        assert_eq!(own_delay(5_200_000, since(400, 5_200), true), 0, "ran before it was due");
    }

    fn sample(at_ms: Ns, busy: u64, ran: u64, waited: u64, spun: Ns) -> ThreadSample {
        let ms = Duration::from_millis;
        ThreadSample {
            at: at_ms * 1_000_000,
            busy: ms(busy),
            scheduled: Some(Scheduled { ran: ms(ran), waited: ms(waited) }),
            spun: spun * 1_000_000,
        }
    }

    /// A thread between half a second, 10 ms on a core until then, and a last look.
    fn usage(last: ThreadSample, spins: bool) -> ThreadShare {
        let first = sample(500, 0, 10, 0, 0);
        SelfWatch { samples: Some([first, last]), ..watch() }.into_usage(spins).share
    }

    #[test]
    fn looking_for_work_is_no_work() {
        let open = usage(sample(1500, 600, 910, 100, 720), true);
        // 180 ms of work in the 900 ms in which it could run.
        assert!((open.busy - 0.2).abs() < 1e-9, "{}", open.busy);
        assert_eq!((open.cpu_s, open.descheduled_s), (Some(0.9), Some(0.1)));
        assert!(watch().into_usage(true).share.busy.abs() < 1e-12, "there was no window");
    }

    #[test]
    fn a_closed_loop_is_busy_by_the_larger_of_both_accounts() {
        let busy = |last| usage(last, false).busy;
        assert!(
            (busy(sample(1500, 600, 910, 50, 0)) - 0.9).abs() < 1e-9,
            "asking for ready sockets"
        );
        assert!((busy(sample(1500, 600, 210, 50, 0)) - 0.6).abs() < 1e-9, "stopped under way");
        let untold = ThreadSample { scheduled: None, ..sample(1500, 600, 0, 0, 0) };
        assert!((busy(untold) - 0.6).abs() < 1e-9);
    }
}
