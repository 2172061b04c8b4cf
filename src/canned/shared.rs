//! State that all connections of a server share.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clock::Clock;
use super::counts::Counters;
use super::fault::Faults;
use super::replies::Replies;
use super::script::{Script, Service};

/// What all sessions of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) replies: Replies,
    pub(crate) faults: Faults,
    pub(crate) counters: Arc<Counters>,
    pub(crate) clock: Clock,
    /// No fault and no service time: nothing ever waits.
    pub(crate) calm: bool,
    stalled_until: Cell<Option<Instant>>,
}

impl Shared {
    pub(crate) fn new(script: Script, counters: Arc<Counters>) -> io::Result<Self> {
        let faults = Faults::new(&script.faults, Instant::now());
        Ok(Shared {
            replies: Replies::new(&script),
            calm: faults.is_empty() && script.service == Service::Instant,
            faults,
            counters,
            clock: Clock::new()?,
            stalled_until: Cell::new(None),
            script,
        })
    }

    /// Stops all answers for a time.
    pub(crate) fn stall(&self, time: Duration) {
        self.stalled_until.set(Instant::now().checked_add(time));
    }

    /// Waits while all answers are stopped.
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
