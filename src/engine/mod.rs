//! Threads, connections, phases, the closed and the open loop, stopping.
//!
//! One `current_thread` runtime on one operating system thread a core, connections dealt out
//! round robin; no lock, no atomic and no channel an operation; one recorder a thread, merged
//! at the end. A step connects and prepares, waits until all have, warms up, measures, and
//! drains.
//!
//! | file | job |
//! |---|---|
//! | `job` | what every client does, compiled from the plan |
//! | `arrivals` | when ops of an open loop are due |
//! | `pace` | its queues: which client takes which arrival, and when |
//! | `compile` | statements and parameters with every name looked up |
//! | `values` | what stands for each `?` |
//! | `client` | one client's loop, and what an answer is held against |
//! | `errors` | what the policy makes of an error (what it means: `mysql::class`) |
//! | `mishap` | what is written down of ops without a result |
//! | `opening`, `pauses` | connections: before a step, and again after they were lost |
//! | `watched` | a client's work that the thread may give up: `--op-timeout` |
//! | `outages` | times in which nobody is served |
//! | `spans` | times of a step that follow from its plan |
//! | `tally` | `--max-errors` |
//! | `gather` | what the threads counted, added up |
//! | `thread` | one engine thread: opening, phases, drain |
//! | `conductor` | the step from the outside: go, edges of the window, early ends |
//! | `edge` | what is read of server and client at both edges of the window |
//! | `mirror` | what a thread sees of itself: busy, descheduled, late |
//! | `display` | the live line |
//! | `summarise` | Run → Summary |
//! | `share` | the client's share of a step, for the summary |
//! | `sustained` | whether an open loop kept its rate |

mod arrivals;
mod client;
mod compile;
mod conductor;
mod crew;
mod desk;
mod display;
pub(crate) mod edge;
mod errors;
mod gather;
mod job;
mod ledger;
mod mirror;
mod mishap;
mod opening;
mod outages;
mod pace;
mod pauses;
mod share;
mod spans;
mod summarise;
mod sustained;
mod tally;
mod thread;
mod values;
mod watched;

use std::time::Duration;

use crate::error::Error;
use crate::observe::cores::Used;
use crate::observe::timeline::Timeline;
use crate::summary::{ErrorCount, LedgerEntry, Outage, Outcome, Probed, SettingChange, Status};

pub use conductor::{Stage, run_step};
pub(crate) use crew::queues_told;
pub(crate) use display::millis;
pub use job::Tables;
pub(crate) use share::calibrated;
pub(crate) use summarise::{Identity, summary};
pub(crate) use summarise::{host_facts, program};

/// What one step produced in memory.
#[derive(Debug)]
pub struct Run {
    /// How it ended.
    pub outcome: Outcome,
    /// The error that ended it early.
    pub error: Option<Error>,
    /// Start of the warm-up.
    pub started_at: jiff::Timestamp,
    /// Length of the window, seconds.
    pub measured_s: f64,
    /// Intervals, histograms and counts of all threads.
    pub timeline: Timeline,
    /// Ops of the window by client.
    pub ops_by_client: Vec<u64>,
    /// Ops of the window by table.
    pub ops_by_table: Vec<u64>,
    /// What the tables must hold more.
    pub ledger: Vec<LedgerEntry>,
    /// Errors of all phases by code.
    pub errors: Vec<ErrorCount>,
    /// Ops that `--op-timeout` or the drain gave up, also those that were never issued.
    pub abandoned: u64,
    /// Ops with writes that may have been done or not, abandoned ones included.
    pub in_doubt: u64,
    /// Those of the window.
    pub(crate) lost: mishap::Lost,
    /// Connections opened again.
    pub reconnects: u64,
    /// Times in which no op succeeded while errors occurred.
    pub outages: Vec<Outage>,
    /// What became of the arrivals of an open loop.
    pub(crate) paced: Option<pace::Counts>,
    /// What the engine threads saw of themselves in the window.
    pub(crate) threads: Vec<mirror::Seen>,
    /// Who used this host's cores over the window.
    pub(crate) cores: Used,
    /// User CPU of this process over the window.
    pub user: Duration,
    /// System CPU of this process over the window.
    pub sys: Duration,
    /// Bytes that this host received and sent over the window.
    pub traffic: Option<(u64, u64)>,
    /// The server's counters over the window.
    pub status: Option<Status>,
    /// What of the server is another's, or another, after lost connections were opened again.
    pub changed: Vec<SettingChange>,
    /// Its process and host.
    pub probed: Option<Probed>,
}
