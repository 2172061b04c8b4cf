//! The shared set-up of a step's threads, and the events that they send to the step.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore, mpsc, watch};

use super::errors::{Failures, OpError, OpenError, OutageWatch, add_entry};
use super::job::Job;
use super::pacing::{PacingCounts, StepWindow};
use super::self_watch::ThreadUsage;
use crate::error::Error;
use crate::mysql::ServerLink;
use crate::observe::{Ns, RecordedInterval};
use crate::summary::LedgerEntry;

/// The interval at which a thread checks for an early end; clients see the regular end themselves.
///
/// One timer ticks for all threads: one in a thread's own runtime would be looked at in every turn,
/// that is, with few clients, in every operation (2.7 us of it with one client).
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// The lead with which an end of the window is set: every thread sees it within this time.
pub(crate) const NOTICE: Duration = Duration::from_millis(50);

pub(crate) struct StepSetup {
    pub job: Job,
    pub link: ServerLink,
    /// Bounds the logins under way over all threads.
    pub logins: Semaphore,
    /// A lost connection is open again.
    pub reopened: Notify,
    pub interval: Ns,
    pub outages: Mutex<OutageWatch>,
    pub opening: Instant,
    /// Ops that are still to begin, where all clients share a number of them.
    pub left: Option<AtomicU64>,
    /// The approximate queue of an open loop, for display: waiting arrivals and busy clients.
    pub queue: [AtomicU64; 2],
    pub go: watch::Receiver<Go>,
    /// Also wakes every thread each tick.
    pub window: watch::Sender<StepWindow>,
    /// The instant from which an open loop checks whether its warm-up has a backlog.
    pub warm_check: Ns,
    pub events: mpsc::UnboundedSender<ThreadEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    Wait,
    Start(Instant),
    Cancel,
}

pub(crate) enum ThreadEvent {
    Opened,
    Waiting(Error),
    NotOpened(OpenError),
    /// An open loop's queues are not late, or drained: the window may begin.
    Warm,
    Interval(usize, Box<RecordedInterval>),
    /// The step cannot go on, after what happened to a client (from 0).
    Abort(u32, OpError),
    /// More arrivals wait than the queue holds.
    QueueFull,
    Done(usize, Box<ThreadCounts>),
    Broken(Error),
}

#[derive(Default)]
pub(crate) struct ThreadCounts {
    pub ops_by_client: Vec<u64>,
    pub ops_by_table: Vec<u64>,
    pub ledger: Vec<LedgerEntry>,
    pub failures: Failures,
    pub usage: Vec<ThreadUsage>,
    pub ended: Ns,
    pub paced: Option<PacingCounts>,
}

impl ThreadCounts {
    pub(crate) fn merge(mut self, other: ThreadCounts) -> ThreadCounts {
        self.ops_by_client.extend(other.ops_by_client);
        self.ops_by_table.iter_mut().zip(other.ops_by_table).for_each(|(sum, ops)| *sum += ops);
        for (sum, entry) in self.ledger.iter_mut().zip(&other.ledger) {
            add_entry(sum, entry);
        }
        self.failures.merge(other.failures);
        self.usage.extend(other.usage);
        self.ended = self.ended.max(other.ended);
        if let (Some(sum), Some(counts)) = (&mut self.paced, &other.paced) {
            sum.merge(counts);
        }
        self
    }
}

impl StepSetup {
    pub(crate) fn tell(&self, event: ThreadEvent) {
        // Nobody listens only when the step is over.
        let _ = self.events.send(event);
    }
}

pub(crate) async fn tick<T>(setup: Arc<StepSetup>) -> T {
    loop {
        tokio::time::sleep(TICK).await;
        setup.window.send_modify(|_| {});
    }
}
