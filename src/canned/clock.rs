//! Sleeping to a tenth of a millisecond: one kernel timer serves all sleepers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::task::{Poll, Waker};
use std::time::Instant;

use crate::observe::timer::Timer;

type Key = (Instant, u64);

/// The timer and who waits for it.
#[derive(Debug)]
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
    /// A clock; within a runtime only.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Clock { timer: Timer::new()?, sleepers: RefCell::default(), names: Cell::new(0) })
    }

    /// Sleeps; needs [`Clock::run`] running beside it.
    pub(crate) async fn sleep_until(&self, deadline: Instant) {
        let name = self.names.get();
        self.names.set(name.wrapping_add(1));
        let place = Place { clock: self, key: (deadline, name) };
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

    /// Wakes sleepers for ever.
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
    use std::time::Duration;

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
