//! The alarm clock of an engine thread's clients, exact to a few microseconds: for the arrivals of an open
//! loop and the pauses of a closed one. tokio's own timers tick once a millisecond.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::error::{Error, Result};
use crate::observe::{Ns, Timer};

/// An instant that does not come, or is not decided.
pub(crate) const NEVER: Ns = Ns::MAX;
/// Nearer instants are waited for by yielding: to be woken by the kernel takes up to so long.
const NEAR: Ns = 100_000;
/// A turn as short as this many of the shortest found no work: an answer takes several times as long.
const IDLE: Ns = 3;

pub(crate) struct Alarm {
    timer: Timer,
    /// Somebody waits for an earlier instant than the timer does.
    earlier: Notify,
    /// The instant that the timer waits for; 0 while it waits for none.
    armed: Cell<Ns>,
    spun: Rc<Spun>,
}

/// The time that a thread has looked for work in vain, instead of waiting for it, for all of its alarms.
#[derive(Debug, Default)]
pub(crate) struct Spun {
    pub total: Cell<Ns>,
    until: Cell<Ns>,
    /// There is an alarm.
    pub is_on: Cell<bool>,
}

impl Spun {
    /// Adds a turn that ends now; two alarms may have looked in the same one.
    fn add(&self, turn: Ns, now: Ns) {
        if turn > 0 {
            let from = now.saturating_sub(turn).max(self.until.get());
            self.total.set(self.total.get() + now.saturating_sub(from));
            self.until.set(now);
        }
    }
}

impl Alarm {
    /// Within a runtime only.
    pub(super) fn new(spun: &Rc<Spun>) -> Result<Alarm> {
        spun.is_on.set(true);
        let timer =
            Timer::new().map_err(|e| Error::failed(format!("cannot make a kernel timer: {e}")))?;
        Ok(Alarm { timer, earlier: Notify::new(), armed: Cell::new(0), spun: Rc::clone(spun) })
    }

    pub(super) fn expect(&self, at: Ns) {
        if at < self.armed.get() {
            self.check_now();
        }
    }

    pub(super) fn check_now(&self) {
        self.armed.set(0);
        self.earlier.notify_one();
    }

    /// Runs for ever; `wake_due` wakes all whose instant has come, and returns the next one.
    pub(super) async fn run(
        &self,
        origin: Instant,
        wake_due: impl Fn(Ns) -> Ns,
    ) -> io::Result<Infallible> {
        let mut spin = Spin::NONE;
        loop {
            let now = origin.elapsed().as_nanos() as Ns;
            self.spun.add(spin.idle(now), now);
            let next = wake_due(now);
            if next != NEVER && next <= now.saturating_add(NEAR) {
                // The runtime looks at the sockets in between.
                tokio::task::yield_now().await;
                continue;
            }
            spin.since = NEVER;
            self.armed.set(next);
            if next == NEVER {
                self.earlier.notified().await;
            } else {
                self.timer.set(origin + Duration::from_nanos(next - NEAR));
                tokio::select! {
                    expired = self.timer.expired() => expired?,
                    () = self.earlier.notified() => {}
                }
            }
            self.armed.set(0);
        }
    }
}

struct Spin {
    /// The last one's start; [`NEVER`] after a park.
    since: Ns,
    last: Ns,
    /// Two in a row were no longer than this. It holds for the whole step: of a saturated thread, which
    /// has no idle turn, the shortest of its work would pass for one.
    shortest: Ns,
}

impl Spin {
    const NONE: Spin = Spin { since: NEVER, last: NEVER, shortest: NEVER };

    /// Ends a turn; returns its length if nothing was to do in it, else 0.
    fn idle(&mut self, now: Ns) -> Ns {
        let turn = now.saturating_sub(self.since);
        self.since = now;
        if turn == 0 {
            return 0;
        }
        self.shortest = self.shortest.min(turn.max(self.last));
        self.last = turn;
        let known = self.shortest != NEVER;
        if known && turn <= self.shortest.saturating_mul(IDLE) { turn } else { 0 }
    }
}

/// The pauses of a thread's clients after their ops (`--think`, and sleeps of a script between two events).
pub(crate) struct Pauses {
    pub alarm: Alarm,
    /// Clients that pause, those that end first in front.
    waiting: RefCell<VecDeque<(Ns, Waker)>>,
    /// The window's end, which ends every pause.
    end: Cell<Ns>,
    moved: Cell<u64>,
}

impl Pauses {
    /// Within the thread's runtime only.
    pub(crate) fn new(end: Ns, spun: &Rc<Spun>) -> Result<Pauses> {
        let (waiting, moved) = (RefCell::default(), Cell::new(0));
        Ok(Pauses { alarm: Alarm::new(spun)?, waiting, end: Cell::new(end), moved })
    }

    /// Pauses until then, or to the window's end; returns when it is over.
    pub(crate) async fn until(&self, at: Ns, now: impl Fn() -> Ns) -> Ns {
        let mut waits = None;
        poll_fn(|context| {
            let (now, at) = (now(), at.min(self.end.get()));
            if now >= at {
                return Poll::Ready(now);
            }
            // A client that a moved end has woken waits again.
            if waits.replace(self.moved.get()) != Some(self.moved.get()) {
                let mut waiting = self.waiting.borrow_mut();
                let place = waiting.partition_point(|(other, _)| *other <= at);
                waiting.insert(place, (at, context.waker().clone()));
                self.alarm.expect(at);
            }
            Poll::Pending
        })
        .await
    }

    pub(crate) async fn dispatch(&self, origin: Instant) -> io::Result<Infallible> {
        self.alarm.run(origin, |now| self.wake_due(now)).await
    }

    pub(crate) fn set_end(&self, end: Ns) {
        if self.end.replace(end) != end {
            self.moved.set(self.moved.get() + 1);
            self.waiting.borrow_mut().drain(..).for_each(|(_, waker)| waker.wake());
        }
    }

    fn wake_due(&self, now: Ns) -> Ns {
        let mut waiting = self.waiting.borrow_mut();
        let due = waiting.partition_point(|(at, _)| *at <= now);
        waiting.drain(..due).for_each(|(_, waker)| waker.wake());
        waiting.front().map_or(NEVER, |(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tokio::runtime::{Builder, LocalOptions};

    use super::*;

    const MS: Ns = 1_000_000;

    /// Runs this on an engine thread's kind of runtime, with the pauses of a step that ends at `end`.
    fn run<T, F>(end: Ns, work: impl FnOnce(Rc<Pauses>, Instant) -> F) -> T
    where
        F: Future<Output = T>,
    {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        runtime.expect("a runtime").block_on(async {
            let (pauses, origin) = (
                Rc::new(Pauses::new(end, &Rc::default()).expect("a kernel timer")),
                Instant::now(),
            );
            let of = Rc::clone(&pauses);
            tokio::task::spawn_local(async move { of.dispatch(origin).await });
            work(pauses, origin).await
        })
    }

    fn clock(origin: Instant) -> impl Fn() -> Ns + Copy {
        move || origin.elapsed().as_nanos() as Ns
    }

    #[test]
    fn a_pause_is_as_long_as_it_says_when_it_is_shorter_than_a_tick() {
        let pause = MS / 5;
        let lengths = run(NEVER, async |pauses, origin| {
            let (now, mut lengths) = (clock(origin), Vec::new());
            for _ in 0..500 {
                let from = now();
                lengths.push(pauses.until(from + pause, now).await - from);
            }
            lengths
        });
        assert!(lengths.iter().all(|length| *length >= pause), "{lengths:?}");
        // A busy host makes some of them longer; a timer of whole milliseconds all.
        assert!(lengths.iter().any(|length| *length < MS / 2), "{lengths:?}");
    }

    #[test]
    fn pauses_end_in_their_order_whoever_began_first() {
        let order = run(NEVER, async |pauses, origin| {
            let order = Rc::new(RefCell::new(Vec::new()));
            let waiting: Vec<_> = [30, 10, 20]
                .into_iter()
                .map(|ms| {
                    let (pauses, order) = (Rc::clone(&pauses), Rc::clone(&order));
                    tokio::task::spawn_local(async move {
                        pauses.until(ms * MS, clock(origin)).await;
                        order.borrow_mut().push(ms);
                    })
                })
                .collect();
            for one in waiting {
                one.await.expect("it ends");
            }
            order.take()
        });
        assert_eq!(order, [10, 20, 30]);
    }

    #[test]
    fn a_pause_ends_with_the_window_also_when_that_ends_early() {
        let hour = 3_600_000 * MS;
        let ended = run(10 * MS, async |pauses, origin| pauses.until(hour, clock(origin)).await);
        assert!((10 * MS..hour).contains(&ended), "{ended}");
        let ended = run(2 * hour, async |pauses, origin| {
            let of = Rc::clone(&pauses);
            let waits =
                tokio::task::spawn_local(async move { of.until(hour, clock(origin)).await });
            tokio::task::yield_now().await;
            // Once more, before the first end has come.
            let end = clock(origin)() + 20 * MS;
            pauses.set_end(end + hour / 2);
            tokio::task::yield_now().await;
            pauses.set_end(end);
            (waits.await.expect("it ends"), end)
        });
        assert!((ended.1..hour / 2).contains(&ended.0), "{ended:?}");
    }

    #[test]
    fn one_turn_that_a_clock_made_short_makes_no_work_of_the_idle_ones() {
        let mut spin = Spin::NONE;
        let mut now = 5 * MS;
        let mut turn = |length: Ns| {
            now += length;
            spin.idle(now)
        };
        assert_eq!(turn(1_000), 0, "the first one after a park has no start");
        assert_eq!([turn(1_000), turn(1_100)], [0, 1_100], "two tell how long an idle one takes");
        assert_eq!(turn(20_000), 0, "work");
        assert_eq!(turn(3), 3);
        assert_eq!([turn(1_000), turn(20_000), turn(3_000)], [1_000, 0, 3_000]);
    }
}
