//! Threads, connections, phases, the closed and the open loop, stopping.
//!
//! One `current_thread` runtime on one operating system thread a core, connections dealt out round robin; no
//! lock, no atomic and no channel an operation; one recorder a thread, merged at the end.

mod alarm;
mod answer;
mod client;
mod compiled;
mod connection;
mod errors;
mod group;
mod job;
mod jobs;
mod op_share;
mod operation;
mod pacing;
mod part;
mod program;
mod reading;
#[cfg(feature = "lua")]
mod requests;
#[cfg(feature = "lua")]
mod script;
mod self_watch;
mod setup;
mod silence;
#[cfg(feature = "lua")]
mod sleeps;
mod state;
mod step;
mod summarise;
mod thread;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::error::{Error, Kind, Result};
use crate::mysql::{ServerLink, Tables};
use crate::observe::{ClientUse, Cost, IntervalLog, Probe, RecordedInterval, Timeline};
use crate::plan::{Plan, ScriptLog, Spread, Step};
use crate::summary::{
    ClientHost, ErrorCount, LedgerEntry, Outage, Outcome, Probed, Server, SettingChange, Status,
    TableOps,
};
use crate::terms::{ErrorClass, GroupName};

pub use errors::{ClientAction, EndReason};
pub(crate) use errors::{OutageWatch, add_class, name_host};
pub(crate) use pacing::StepWindow;
pub use part::Elsewhere;
pub(crate) use part::{GroupPart, OrderedPlan, Part, PartOrder};
pub(crate) use reading::{ServerReading, changes, run_on_thread};
#[cfg(feature = "lua")]
pub(crate) use script::{Runner, begin_main, end_main};
pub use setup::QueueLength;
pub(crate) use setup::{
    DealtCounts, Go, MEASURED, ServiceReport, StepSetup, ThreadCounts, ThreadEvent, ThreadMessage,
};
pub use step::run_step;
pub(crate) use step::{describe_queues, next_event};
pub(crate) use summarise::{
    describe_group, findings, latency, plan, program, share, totals, workload,
};

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
    /// Other processes that run the threads.
    pub elsewhere: Option<&'a Elsewhere<'a>>,
    /// The time of the steps after this one, where it can be guessed.
    pub later: Option<Duration>,
}

/// A listener to a running step, called on the thread that runs it.
pub trait Observer {
    fn started(&self);

    fn interval(&self, interval: &RecordedInterval, queue: QueueLength);

    /// Takes an interval of one host, where several have the clients.
    fn host_interval(&self, _group: u8, _host: &str, _interval: &RecordedInterval) {}

    /// Takes an interval of a group beside, by its place among all groups.
    fn group_interval(&self, _group: u8, _interval: &RecordedInterval) {}

    /// Takes the errors of a group so far in one thread or on one host.
    fn errors(&self, _group: u8, _source: usize, _by_class: &[(ErrorClass, u64)]) {}

    fn end(&self, reason: &EndReason);

    /// Returns the log of scripts, which threads write by themselves.
    fn script_log(&self) -> Option<ScriptLog> {
        None
    }
}

pub struct MeasuredStep {
    pub outcome: Outcome,
    pub error: Option<Error>,
    pub counted: Counted,
    /// The writes of all groups.
    pub ledger: Vec<LedgerEntry>,
    pub(crate) counts: ThreadCounts,
    pub outages: Vec<Outage>,
    /// The groups beside.
    pub(crate) groups: Vec<MeasuredGroup>,
    pub(crate) readings: Readings,
    /// The hosts of the clients, where they are not all of this process.
    pub(crate) hosts: Vec<ClientHost>,
    /// Threads or hosts that are gone with what they counted, by their places, whatever ended the step.
    pub(crate) lost: Vec<usize>,
}

#[derive(Default)]
pub struct Counted {
    pub started_at: jiff::Timestamp,
    pub measured_s: f64,
    pub(crate) cost: Cost,
    pub timeline: Timeline,
    pub errors: Vec<ErrorCount>,
    pub(crate) per_table: Vec<TableOps>,
}

/// The results of a group beside.
pub(crate) struct MeasuredGroup {
    pub name: GroupName,
    /// The plan of the group, as if it were alone.
    pub plan: Plan,
    pub step: Step,
    pub spread: Spread,
    pub counted: Counted,
    pub counts: ThreadCounts,
    pub outages: Vec<Outage>,
}

/// Readings of this host, of the server and of its host, from the window's start to its end.
pub(crate) struct Readings {
    pub client: ClientUse,
    /// Peak resident size of this process, bytes.
    pub max_rss_bytes: u64,
    pub status: Option<Status>,
    pub probed: Option<Probed>,
    pub changed: Option<Vec<SettingChange>>,
}

/// Returns a rate; 0 where there was no time.
pub(crate) fn per_s(n: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { n as f64 / seconds } else { 0.0 }
}

impl MeasuredStep {
    /// Makes that of a job of one client which the engine did not run.
    pub(crate) fn timed(counted: Counted, readings: Readings, error: Option<Error>) -> Self {
        let outcome = match error.as_ref().map(Error::kind) {
            None => Outcome::Completed,
            Some(Kind::Interrupted | Kind::Terminated) => Outcome::Interrupted,
            Some(_) => Outcome::Aborted,
        };
        let ops_by_client = vec![counted.timeline.window.ops];
        let counts = ThreadCounts { ops_by_client, ..ThreadCounts::default() };
        MeasuredStep::new((outcome, error), counted, counts, readings)
    }

    /// Makes one without outages and without other hosts.
    fn new(
        (outcome, error): (Outcome, Option<Error>),
        counted: Counted,
        mut counts: ThreadCounts,
        readings: Readings,
    ) -> Self {
        MeasuredStep {
            outcome,
            error,
            counted,
            ledger: std::mem::take(&mut counts.ledger),
            counts,
            outages: Vec::new(),
            groups: Vec::new(),
            readings,
            hosts: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Ops of the window that were given up while they were in flight.
    pub(crate) fn unfinished(&self) -> u64 {
        self.counts.failures.window_abandoned
    }
}

#[cfg(test)]
mod tests;
