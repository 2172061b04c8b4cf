//! Threads, connections, phases, the closed and the open loop, stopping.
//!
//! One `current_thread` runtime on one operating system thread a core, connections dealt out
//! round robin; no lock, no atomic and no channel an operation; one recorder a thread, merged
//! at the end.

mod client;
mod errors;
mod job;
mod pacing;
mod step;
mod summarise;
mod thread;

use crate::error::Error;
use crate::observe::Timeline;
use crate::summary::{ErrorCount, LedgerEntry, Outage, Outcome, Probed, SettingChange, Status};

pub(crate) use step::{ServerReading, aside, changes, queues_told};
pub use step::{StepContext, run_step};
pub(crate) use summarise::{begin, host_facts, program, step_id, summary};

/// What one step produced in memory.
#[derive(Debug)]
pub struct Run {
    pub outcome: Outcome,
    pub error: Option<Error>,
    pub started_at: jiff::Timestamp,
    pub measured_s: f64,
    pub timeline: Timeline,
    /// What the tables must hold more.
    pub ledger: Vec<LedgerEntry>,
    pub errors: Vec<ErrorCount>,
    pub(crate) counts: thread::ThreadCounts,
    pub outages: Vec<Outage>,
    pub(crate) client: crate::observe::process::ClientUse,
    pub status: Option<Status>,
    /// What of the server is another's, or another, after lost connections were opened again.
    pub changed: Vec<SettingChange>,
    pub probed: Option<Probed>,
}

impl Run {
    /// Ops that `--op-timeout` or the drain gave up, also those that were never issued.
    fn abandoned(&self) -> u64 {
        self.counts.failures.abandoned + self.counts.paced.map_or(0, |paced| paced.unissued)
    }

    /// A rate of the window; 0 where there was none.
    fn per_s(&self, n: u64) -> f64 {
        if self.measured_s > 0.0 { n as f64 / self.measured_s } else { 0.0 }
    }
}
