//! Threads, connections, phases, the closed and the open loop, stopping.
//!
//! One `current_thread` runtime on one operating system thread a core, connections dealt out
//! round robin; no lock, no atomic and no channel an operation; one recorder a thread, merged
//! at the end.

mod alarm;
mod answer;
mod client;
mod connection;
mod errors;
mod job;
mod pacing;
mod self_watch;
mod setup;
mod state;
mod step;
mod summarise;
mod thread;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::error::{Error, Result};
use crate::mysql::{ServerLink, Tables};
use crate::observe::{ClientUse, IntervalLog, Probe, RecordedInterval, Timeline};
use crate::plan::{Plan, Spread, Step};
use crate::summary::{
    ErrorCount, LedgerEntry, Outage, Outcome, Probed, Server, SettingChange, Status,
};

use setup::ThreadCounts;
pub use setup::{ClientAction, EndReason};
pub use step::run_step;
pub(crate) use step::{ServerReading, changes, describe_queues, run_on_thread};
pub(crate) use summarise::{begin, host_facts, program, step_id, summary};

/// A step and where it runs.
pub struct StepContext<'a> {
    pub plan: &'a Plan,
    pub step: &'a Step,
    pub spread: Spread,
    pub tables: Tables,
    pub link: &'a ServerLink,
    pub server: Option<&'a Server>,
    pub probe: Option<Probe>,
    pub log: Option<Arc<Mutex<IntervalLog>>>,
    /// Called when all clients are connected, before the first statement of any.
    pub first_write: &'a dyn Fn() -> Result<()>,
    /// Receives the instant of the window's start as soon as it is known.
    pub window: watch::Sender<Option<Instant>>,
    pub observer: Option<&'a dyn Observer>,
    /// The time of the steps after this one, where it can be guessed.
    pub later: Option<Duration>,
}

/// A listener to a running step, called on the thread that runs it.
pub trait Observer {
    /// Takes note that all clients are connected.
    fn started(&self);

    /// Takes a complete interval, and the approximate queue of an open loop: waiting arrivals, busy clients.
    fn interval(&self, interval: &RecordedInterval, queue: [u64; 2]);

    /// Takes the reason for which the step ends.
    fn end(&self, reason: &EndReason);
}

/// The results of one step in memory.
pub struct MeasuredStep {
    pub outcome: Outcome,
    pub error: Option<Error>,
    pub started_at: jiff::Timestamp,
    pub measured_s: f64,
    pub timeline: Timeline,
    /// The acknowledged changes of the tables.
    pub ledger: Vec<LedgerEntry>,
    pub errors: Vec<ErrorCount>,
    pub(crate) counts: ThreadCounts,
    pub outages: Vec<Outage>,
    pub(crate) client: ClientUse,
    pub status: Option<Status>,
    /// Settings of the server that differ after reconnects.
    pub changed: Option<Vec<SettingChange>>,
    pub probed: Option<Probed>,
}

impl MeasuredStep {
    /// Ops that `--op-timeout` or the drain gave up, also those that were never issued.
    fn abandoned(&self) -> u64 {
        self.counts.failures.abandoned + self.counts.paced.map_or(0, |paced| paced.unissued)
    }

    /// Ops of the window that were given up while they were in flight.
    pub(crate) fn unfinished(&self) -> u64 {
        self.counts.failures.window_abandoned
    }

    /// A rate of the window; 0 where there was none.
    fn per_s(&self, n: u64) -> f64 {
        if self.measured_s > 0.0 { n as f64 / self.measured_s } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
