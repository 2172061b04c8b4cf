//! What an engine thread sees of itself: how busy it was in the window, how long it waited for
//! a core, and how late it came to a socket that was ready.
//!
//! The last by probes: a kernel timer becomes ready at a known instant, as a socket would, and the
//! thread finds it among its sockets. A timer needs no other thread, which would itself be late
//! when cores are full, and not run at all when the process is held back. Instants that pass while
//! the thread does not look count as well, each with its own delay.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use tokio::runtime::Handle;

use super::desk::Desk;
use crate::error::Result;
use crate::observe::recorder::Ns;
use crate::observe::scheduler::{Scheduled, ThreadClock};
use crate::observe::timer::Timer;
use crate::observe::times::Times;

/// Between two probes: some 97 a second, at most 30 us of an idle thread each. No part of a round number,
/// so that they meet nothing that ticks.
const EVERY: Ns = 10_300_000;

/// See the module.
pub(crate) struct Mirror {
    clock: Option<ThreadClock>,
    first: Option<Look>,
    last: Option<Look>,
    turns: Turns,
    /// The thread at the last probe.
    probed: Scheduled,
}

/// The thread at one instant.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Ns,
    /// Not parked, since its start.
    busy: Duration,
    scheduled: Option<Scheduled>,
    /// Of an open loop: looking for work, since its start.
    spun: Ns,
}

/// How late it came.
#[derive(Debug)]
pub(crate) struct Turns {
    pub(crate) delay: Times,
    /// Without the time that it waited for a core.
    pub(crate) own: Times,
}

/// What a thread saw of itself in the window.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) busy: f64,
    pub(crate) wall: Duration,
    pub(crate) ran: Option<Duration>,
    pub(crate) spun: Duration,
    pub(crate) waited: Option<Duration>,
    pub(crate) turns: Turns,
}

impl Turns {
    pub(crate) fn new() -> Result<Turns> {
        Ok(Turns { delay: Times::new()?, own: Times::new()? })
    }

    pub(crate) fn merge(&mut self, other: &Turns) {
        self.delay.merge(&other.delay);
        self.own.merge(&other.own);
    }
}

impl Mirror {
    /// Of the calling thread.
    pub(crate) fn new() -> Result<Mirror> {
        let clock = ThreadClock::own();
        let probed = clock.as_ref().and_then(ThreadClock::read).unwrap_or_default();
        Ok(Mirror { clock, first: None, last: None, turns: Turns::new()?, probed })
    }

    /// Looks, from the window's start to its end; within the thread's runtime.
    pub(crate) fn look(&mut self, now: Ns, window: (Ns, Ns), spun: Ns) {
        if now < window.0 {
            return;
        }
        let look = Look {
            at: now,
            busy: Handle::current().metrics().worker_total_busy_duration(0),
            scheduled: self.scheduled(),
            spun,
        };
        if self.first.is_none() {
            self.first = Some(look);
        }
        // The last one is the first after the end: a thread that did not look for long at the end
        // was busy or waited.
        if self.last.is_none_or(|last| last.at <= window.1) {
            self.last = Some(look);
        }
    }

    fn scheduled(&self) -> Option<Scheduled> {
        self.clock.as_ref()?.read()
    }

    /// Counts the instants from `due` on that have passed; the next one.
    /// `parked` says that the thread had nothing to do at some time since the probe before.
    fn turn(&mut self, mut due: Ns, now: Ns, window: (Ns, Ns), parked: bool) -> Ns {
        let probed = self.scheduled().unwrap_or(self.probed);
        let since = probed.since(&self.probed);
        self.probed = probed;
        while due <= now {
            if due >= window.0 && due < window.1 {
                self.turns.delay.record(now - due);
                self.turns.own.record(own(now - due, since, parked));
            }
            due = due.saturating_add(EVERY);
        }
        due
    }

    /// What was seen; `paced` in an open loop.
    pub(crate) fn into_seen(self, paced: bool) -> Seen {
        let nothing = Look { at: 0, busy: Duration::ZERO, scheduled: None, spun: 0 };
        let (first, last) = (self.first.unwrap_or(nothing), self.last.unwrap_or(nothing));
        let wall = Duration::from_nanos(last.at.saturating_sub(first.at));
        let scheduled = first.scheduled.zip(last.scheduled).map(|(first, last)| last.since(&first));
        let (ran, waited) = (scheduled.map(|s| s.ran), scheduled.map(|s| s.waited));
        let spun = Duration::from_nanos(last.spun.saturating_sub(first.spun));
        let (work, of) = match ran.zip(waited) {
            Some((ran, waited)) if paced => (ran.saturating_sub(spun), wall.saturating_sub(waited)),
            // The runtime's account lacks the system calls that ask for ready sockets, also those
            // that find some at once; the scheduler's lacks the time that the thread was stopped.
            _ => (last.busy.saturating_sub(first.busy).max(ran.unwrap_or_default()), wall),
        };
        let busy = if of.is_zero() { 0.0 } else { work.as_secs_f64() / of.as_secs_f64() };
        Seen { busy: busy.min(1.0), wall, ran, spun, waited, turns: self.turns }
    }
}

/// The part of a delay that was not waiting for a core, by what the thread did since the probe
/// before. Not all that it waited lies in the delay: of a thread that always had something to do
/// a delay holds as much waiting as the rest of the time; one that had nothing to do ran before the
/// instant was due.
fn own(delay: Ns, since: Scheduled, parked: bool) -> Ns {
    let (ran, waited) = (since.ran.as_nanos() as Ns, since.waited.as_nanos() as Ns);
    if parked {
        return delay.saturating_sub(waited);
    }
    let part = ran as f64 / (ran + waited).max(1) as f64;
    let shared = if waited > 0 { (delay as f64 * part) as Ns } else { delay };
    shared.max(delay.saturating_sub(waited))
}

/// Probes for ever.
pub(crate) async fn probe(desk: &Desk) -> io::Result<Infallible> {
    let timer = Timer::new()?;
    let mut due = desk.now().saturating_add(EVERY);
    let mut parks = Handle::current().metrics().worker_park_count(0);
    loop {
        timer.set(desk.origin + Duration::from_nanos(due));
        timer.expired().await?;
        let window = (desk.window_start.get(), desk.window_end.get());
        let parks_now = Handle::current().metrics().worker_park_count(0);
        // Once is for this timer.
        let parked = parks_now > parks + 1;
        parks = parks_now;
        due = desk.mirror.borrow_mut().turn(due, desk.now(), window, parked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror() -> Mirror {
        Mirror { clock: None, ..Mirror::new().expect("memory") }
    }

    #[test]
    fn every_instant_of_a_stall_counts_with_its_own_delay() {
        let mut mirror = mirror();
        let due = mirror.turn(EVERY, 3 * EVERY, (0, Ns::MAX), false);
        assert_eq!(due, 4 * EVERY);
        let delay = mirror.turns.delay.distribution().expect("encodes");
        assert_eq!((delay.count, delay.max_us), (3, Some(20_600.0)));
        assert_eq!(delay.mean_us, Some(10_300.0));
        assert_eq!(mirror.turn(due, due - 1, (0, Ns::MAX), false), due, "woken early");
        assert_eq!(mirror.turns.delay.count(), 3);
    }

    #[test]
    fn only_instants_inside_the_window_count() {
        let mut mirror = mirror();
        mirror.turn(EVERY, 10 * EVERY, (3 * EVERY, 5 * EVERY), false);
        assert_eq!(mirror.turns.delay.count(), 2);
    }

    #[test]
    fn waiting_for_a_core_is_no_delay_of_its_own() {
        let since = |ran, waited| {
            let us = Duration::from_micros;
            Scheduled { ran: us(ran), waited: us(waited) }
        };
        assert_eq!(own(6_000_000, since(20, 0), false), 6_000_000, "stopped, or its core was");
        assert_eq!(
            own(6_000_000, since(0, 6_000), false),
            0,
            "idle, woken, and another one had the core"
        );
        assert_eq!(own(500_000, since(5_000, 5_000), false), 250_000, "busy on half a core");
        assert_eq!(own(90_000_000, since(300, 1_000), false), 89_000_000, "stopped, then waiting");
        assert_eq!(own(5_200_000, since(400, 5_200), true), 0, "ran before it was due");
    }

    fn look(at_ms: Ns, busy: u64, ran: u64, waited: u64, spun: Ns) -> Look {
        let ms = Duration::from_millis;
        Look {
            at: at_ms * 1_000_000,
            busy: ms(busy),
            scheduled: Some(Scheduled { ran: ms(ran), waited: ms(waited) }),
            spun: spun * 1_000_000,
        }
    }

    /// A thread between half a second, 10 ms on a core until then, and a last look.
    fn seen(last: Look, paced: bool) -> Seen {
        let first = look(500, 0, 10, 0, 0);
        Mirror { first: Some(first), last: Some(last), ..mirror() }.into_seen(paced)
    }

    #[test]
    fn looking_for_work_is_no_work() {
        let open = seen(look(1500, 600, 910, 100, 720), true);
        // 180 ms of work in the 900 ms in which it could run.
        assert!((open.busy - 0.2).abs() < 1e-9, "{}", open.busy);
        assert_eq!(
            (open.ran, open.waited),
            (Some(Duration::from_millis(900)), Some(Duration::from_millis(100)))
        );
        assert!(mirror().into_seen(true).busy.abs() < 1e-12, "there was no window");
    }

    #[test]
    fn a_closed_loop_is_busy_by_the_larger_of_both_accounts() {
        let busy = |last| seen(last, false).busy;
        assert!((busy(look(1500, 600, 910, 50, 0)) - 0.9).abs() < 1e-9, "asking for ready sockets");
        assert!((busy(look(1500, 600, 210, 50, 0)) - 0.6).abs() < 1e-9, "stopped under way");
        let untold = Look { scheduled: None, ..look(1500, 600, 0, 0, 0) };
        assert!((busy(untold) - 0.6).abs() < 1e-9);
    }
}
