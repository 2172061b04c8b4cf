//! Sleeping to a tenth of a millisecond: tokio's timers tick once a millisecond, longer than
//! most statements of a real server take. One kernel timer serves all sleepers.
//!
//! tokio waits for a foreign descriptor only through an unsafe `AsyncFd`; a timer is read as a
//! pipe is, and a pipe's end may be made of any descriptor.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::net::unix::pipe::Receiver;

type Key = (Instant, u64);

/// The timer and who waits for it.
#[derive(Debug)]
pub(crate) struct Clock {
    timer: TimerFd,
    /// The same timer, to wait for it.
    expired: Receiver,
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
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Clock {
            expired: Receiver::from_owned_fd_unchecked(timer.as_fd().try_clone_to_owned()?)?,
            timer,
            sleepers: RefCell::default(),
            names: Cell::new(0),
        })
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
                self.set(deadline);
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes sleepers for ever.
    pub(crate) async fn run(&self) -> io::Result<()> {
        loop {
            self.expired.readable().await?;
            // The count of expirations; there is none if the timer was set anew meanwhile.
            let mut count = [0; 8];
            while self.expired.try_read(&mut count).is_ok() {}
            let now = Instant::now();
            let mut sleepers = self.sleepers.borrow_mut();
            while let Some(entry) = sleepers.first_entry() {
                if entry.key().0 > now {
                    self.set(entry.key().0);
                    break;
                }
                entry.remove().wake();
            }
        }
    }

    fn set(&self, deadline: Instant) {
        // Zero would switch the timer off.
        let wait = deadline.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        // Can fail for times that no Duration holds only.
        let expiration = Expiration::OneShot(TimeSpec::from_duration(wait));
        let _ = self.timer.set(expiration, TimerSetTimeFlags::empty());
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
            let start = Instant::now();
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
