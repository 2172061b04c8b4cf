//! Threads, connections, phases, the closed and the open loop, stopping.
//!
//! One `current_thread` runtime on one operating system thread a core, connections dealt out
//! round robin; no lock, no atomic and no channel an operation; one recorder a thread, merged
//! at the end.

mod alarm;
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
pub use setup::{During, Refused};
pub use step::run_step;
pub(crate) use step::{ServerReading, aside, changes, queues_told};
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
    /// Is called when all clients are connected, before the first statement of any.
    pub first_write: &'a dyn Fn() -> Result<()>,
    /// Is told the instant of the window's start as soon as it is known.
    pub window: watch::Sender<Option<Instant>>,
    pub observer: Option<&'a dyn Observer>,
    /// The time of the steps after this one, where it can be guessed.
    pub later: Option<Duration>,
}

/// Somebody who follows a step as it runs, from the thread that runs it.
pub trait Observer {
    /// All clients are connected.
    fn started(&self);

    /// No thread adds to this interval any more. The queue is that of an open loop, about: arrivals that
    /// wait, and clients at work.
    fn interval(&self, interval: &RecordedInterval, queue: [u64; 2]);

    /// Something was refused, and the step ends.
    fn refused(&self, refused: &Refused);
}

/// What one step produced in memory.
pub struct Run {
    pub outcome: Outcome,
    pub error: Option<Error>,
    pub started_at: jiff::Timestamp,
    pub measured_s: f64,
    pub timeline: Timeline,
    /// What the tables must hold more.
    pub ledger: Vec<LedgerEntry>,
    pub errors: Vec<ErrorCount>,
    pub(crate) counts: ThreadCounts,
    pub outages: Vec<Outage>,
    pub(crate) client: ClientUse,
    pub status: Option<Status>,
    /// What of the server is another's, or another, after lost connections were opened again.
    pub changed: Option<Vec<SettingChange>>,
    pub probed: Option<Probed>,
}

impl Run {
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
