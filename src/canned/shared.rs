//! What all connections of a server share: the script, the counts, the clock, a common stall.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use super::Counts;
use super::fault::{Action, Event, Faults};
use super::replies::Replies;
use super::script::{Script, Service};
use crate::observe::timer::Timer;

pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) replies: Replies,
    pub(crate) faults: Faults,
    pub(crate) clock: Clock,
    /// No fault and no service time: nothing ever waits.
    pub(crate) calm: bool,
    counts: Arc<Mutex<Counts>>,
    stalled_until: Cell<Option<Instant>>,
}

impl Shared {
    pub(crate) fn new(script: Script, counts: Arc<Mutex<Counts>>) -> io::Result<Self> {
        let faults = Faults::new(&script.faults);
        Ok(Shared {
            replies: Replies::new(&script),
            calm: faults.is_empty() && script.service == Service::Instant,
            faults,
            counts,
            clock: Clock::new()?,
            stalled_until: Cell::new(None),
            script,
        })
    }

    /// Counts something; readers are rare, so that the lock is free.
    pub(crate) fn count<T>(&self, count: impl FnOnce(&mut Counts) -> T) -> T {
        count(&mut self.counts.lock().expect("no count panics"))
    }

    /// Tells which fault an event fires.
    pub(crate) fn fault(&self, event: Event<'_>) -> Option<Action> {
        let action = self.faults.fire(event);
        if action.is_some() {
            self.count(|counts| counts.faults += 1);
        }
        action
    }

    pub(crate) fn stall(&self, time: Duration) {
        self.stalled_until.set(Instant::now().checked_add(time));
    }

    pub(crate) async fn wait_for_stall(&self) {
        while let Some(until) = self.stalled_until.get() {
            if Instant::now() >= until {
                self.stalled_until.set(None);
                return;
            }
            tokio::time::sleep_until(until.into()).await;
        }
    }
}

type Key = (Instant, u64);

/// Sleeping to a tenth of a millisecond: one kernel timer serves all sleepers.
pub(crate) struct Clock {
    timer: Timer,
    sleepers: RefCell<BTreeMap<Key, Waker>>,
    names: Cell<u64>,
}

/// Takes a sleeper that is dropped out of the list.
struct Place<'a> {
    clock: &'a Clock,
    key: Key,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.clock.sleepers.borrow_mut().remove(&self.key);
    }
}

impl Clock {
    fn new() -> io::Result<Self> {
        Ok(Clock { timer: Timer::new()?, sleepers: RefCell::default(), names: Cell::new(0) })
    }

    /// Sleeps; needs [`Clock::run`] running beside it.
    pub(crate) async fn sleep_until(&self, deadline: Instant) {
        let place = Place { clock: self, key: (deadline, self.names.get()) };
        self.names.set(self.names.get() + 1);
        poll_fn(|context| {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            let mut sleepers = self.sleepers.borrow_mut();
            sleepers.insert(place.key, context.waker().clone());
            if sleepers.first_key_value().is_some_and(|(first, _)| *first == place.key) {
                self.timer.set(deadline);
            }
            Poll::Pending
        })
        .await;
    }

    pub(crate) async fn run(&self) -> io::Result<()> {
        loop {
            self.timer.expired().await?;
            let now = Instant::now();
            let mut sleepers = self.sleepers.borrow_mut();
            while let Some(entry) = sleepers.first_entry() {
                if entry.key().0 > now {
                    self.timer.set(entry.key().0);
                    break;
                }
                entry.remove().wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tokio::runtime::LocalOptions;

    use super::*;

    #[test]
    fn sleepers_wake_in_the_order_of_their_deadlines() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default());
        runtime.unwrap().block_on(async {
            let clock = Rc::new(Clock::new().unwrap());
            let runner = Rc::clone(&clock);
            tokio::task::spawn_local(async move { runner.run().await });
            let woken = Rc::new(RefCell::new(Vec::new()));
            // Late enough for all of them to sleep before the first one is due.
            let start = Instant::now() + Duration::from_millis(300);
            let sleeper = |us: u64| {
                let (clock, woken) = (Rc::clone(&clock), Rc::clone(&woken));
                tokio::task::spawn_local(async move {
                    let deadline = start + Duration::from_micros(us);
                    clock.sleep_until(deadline).await;
                    assert!(Instant::now() >= deadline);
                    woken.borrow_mut().push(us);
                })
            };
            let dropped = sleeper(1_000);
            let tasks = [sleeper(30_000), sleeper(0), sleeper(10_000), sleeper(20_000)];
            tokio::task::yield_now().await;
            dropped.abort();
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*woken.borrow(), [0, 10_000, 20_000, 30_000]);
            assert!(clock.sleepers.borrow().is_empty());
        });
    }
}
