//! The sleeps of the scripts of one thread: short ones by kernel timers, because tokio's tick once a millisecond.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use crate::observe::Timer;

/// Longer sleeps are tokio's: a tick does not matter to them.
const SHORT: Duration = Duration::from_millis(10);
/// Timers made at most: each has two descriptors.
const TIMERS: usize = 64;

#[derive(Default)]
pub(crate) struct Sleeps {
    idle: RefCell<Vec<Timer>>,
    made: Cell<usize>,
}

impl Sleeps {
    pub(super) async fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        let timer = if time < SHORT { self.take() } else { None };
        if let Some(timer) = timer {
            // It may expire a little early.
            while Instant::now() < until {
                timer.set(until);
                if timer.expired().await.is_err() {
                    return tokio::time::sleep_until(until.into()).await;
                }
            }
            return self.idle.borrow_mut().push(timer);
        }
        tokio::time::sleep_until(until.into()).await;
    }

    /// Takes a timer; None where there are enough, or the system gives no more.
    fn take(&self) -> Option<Timer> {
        let idle = self.idle.borrow_mut().pop();
        idle.or_else(|| {
            let made = self.made.get();
            let timer = if made < TIMERS { Timer::new().ok() } else { None };
            self.made.set(made + usize::from(timer.is_some()));
            timer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sleeps_take_their_time_and_use_a_timer_again() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let sleeps = Sleeps::default();
            for _ in 0..200 {
                let (began, time) = (Instant::now(), Duration::from_micros(30));
                sleeps.sleep(time).await;
                assert!(began.elapsed() >= time);
            }
            assert_eq!((sleeps.made.get(), sleeps.idle.borrow().len()), (1, 1));
            sleeps.sleep(SHORT).await;
            assert_eq!(sleeps.made.get(), 1);
        });
    }
}
