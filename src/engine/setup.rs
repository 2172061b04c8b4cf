//! The set-up of a step's threads, and the messages between them and the step: plain values, of which
//! events are written down for another process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, mpsc, watch};

use super::errors::{Events, Failures, OpError, OpenError, add_entry};
use super::job::Job;
use super::pacing::{PacingCounts, StepWindow};
use super::self_watch::ThreadUsage;
use crate::error::Error;
use crate::mysql::ServerLink;
use crate::observe::{Ns, RecordedInterval, TransactionNames};
use crate::plan::ScriptLog;
use crate::summary::LedgerEntry;
use crate::terms::{ErrorClass, add};

/// The interval at which a thread checks for an early end. One timer ticks for all threads: one in each
/// thread's own runtime costs 2.7 us an operation with one client.
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// The lead with which an end of the window is set: every thread sees it within this time.
pub(crate) const NOTICE: Duration = Duration::from_millis(50);
pub(crate) const MEASURED: u8 = 0;

/// The set-up of a group's clients in all threads. Each group has one; the channels are the step's.
#[derive(Clone)]
pub(crate) struct StepSetup {
    /// Its place among the groups; the measured one is the first.
    pub group: u8,
    pub job: Arc<Job>,
    /// The number of those that send events: threads, or other processes with threads.
    pub sources: usize,
    pub link: ServerLink,
    /// Bounds the logins under way over all threads.
    pub logins: Arc<Semaphore>,
    pub interval: Ns,
    pub opening: Instant,
    /// The instant from which an open loop checks whether its warm-up has a backlog.
    pub warm_check: Ns,
    pub go: watch::Receiver<Go>,
    /// Also wakes every thread each tick.
    pub window: watch::Receiver<StepWindow>,
    /// By thread: its part of the ops, where all clients share a number of them.
    pub grants: Vec<watch::Receiver<OpGrant>>,
    pub events: mpsc::UnboundedSender<ThreadMessage>,
    /// Those that a script gives its ops.
    pub names: Arc<TransactionNames>,
    /// Keeps the order of a script's lines with what it prints.
    #[cfg_attr(not(feature = "lua"), expect(dead_code, reason = "scripts alone write it"))]
    pub script_log: Option<ScriptLog>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    Wait,
    /// The origin of the step's clock, from [`StepSetup::opening`] on.
    Start(Ns),
    Cancel,
}

/// The ops that a thread may begin, of those that all clients share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OpGrant {
    /// All since the start.
    pub ops: u64,
    /// No more follow.
    pub last: bool,
}

/// An event of a thread, and the group of its clients, where it concerns clients.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ThreadMessage {
    pub thread: usize,
    pub group: u8,
    pub event: ThreadEvent,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum ThreadEvent {
    Opened,
    Waiting(Error),
    NotOpened(OpenError),
    Reopened,
    /// An open loop's queues are not late, or drained: the window may begin.
    Warm,
    /// The thread's part of the ops that all clients share comes to its end.
    NeedsOps,
    Service(ServiceReport),
    Interval(Box<RecordedInterval>),
    /// The step cannot go on, after what happened to a client (from 0).
    Abort(u32, OpError),
    Done(Box<ThreadCounts>),
    Broken(Error),
    /// The threads of another process heard of the start or the window's edge after it.
    Late(Error),
    /// Another process with threads is gone, and what they counted.
    Lost(Error),
    /// A line of a script about a request that failed.
    Said(String),
}

/// The successes and errors that a thread saw since its last report, one a tick.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServiceReport {
    /// It saw all until then; `Ns::MAX` when it has ended.
    pub until: Ns,
    /// Its ops so far.
    pub ops: u64,
    pub seen: Events,
    /// None in a closed loop.
    pub queue: Option<QueueLength>,
    /// A client sleeps because its script says so: no server is silent then.
    pub asleep: bool,
    /// Its errors so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<(ErrorClass, u64)>,
}

/// The approximate queue of an open loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueLength {
    /// Arrivals that wait.
    pub waiting: u64,
    /// Clients with an op in flight.
    pub busy: u64,
}

impl QueueLength {
    pub(super) fn sum(all: &[QueueLength]) -> QueueLength {
        let mut sum = QueueLength::default();
        for queue in all {
            add!(sum, queue; waiting, busy);
        }
        sum
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ThreadCounts {
    pub ops_by_client: Vec<u64>,
    /// By the address that the clients are dealt to.
    pub by_address: Vec<DealtCounts>,
    pub ops_by_table: Vec<u64>,
    pub ledger: Vec<LedgerEntry>,
    pub failures: Failures,
    pub usage: Vec<ThreadUsage>,
    /// The end of the last op, or of all that followed it.
    pub ended: Ns,
    /// The script has ended all its clients: none of them waits for the window's end.
    pub ended_by_script: bool,
    pub paced: Option<PacingCounts>,
}

/// Counts of the clients that are dealt to one address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DealtCounts {
    pub clients: u32,
    pub ops: u64,
    pub errors: u64,
}

impl DealtCounts {
    pub(crate) fn add(&mut self, more: &DealtCounts) {
        add!(self, more; clients, ops, errors);
    }
}

impl ThreadCounts {
    /// Ops that `--op-timeout` or the drain gave up, also those that were never issued.
    pub(crate) fn abandoned(&self) -> u64 {
        self.failures.abandoned + self.paced.map_or(0, |paced| paced.unissued)
    }

    pub(crate) fn merge(mut self, other: ThreadCounts) -> ThreadCounts {
        self.ops_by_client.extend(other.ops_by_client);
        self.ops_by_table.iter_mut().zip(other.ops_by_table).for_each(|(sum, ops)| *sum += ops);
        let dealt = self.by_address.iter_mut().zip(&other.by_address);
        dealt.for_each(|(sum, more)| sum.add(more));
        add_entries(&mut self.ledger, &other.ledger);
        self.failures.merge(other.failures);
        self.usage.extend(other.usage);
        self.ended = self.ended.max(other.ended);
        self.ended_by_script &= other.ended_by_script;
        if let (Some(sum), Some(counts)) = (&mut self.paced, &other.paced) {
            sum.merge(counts);
        }
        self
    }
}

pub(crate) fn add_entries(sums: &mut [LedgerEntry], more: &[LedgerEntry]) {
    sums.iter_mut().zip(more).for_each(|(sum, entry)| add_entry(sum, entry));
}

impl StepSetup {
    /// Makes those of all groups from that of the measured one.
    pub(super) fn of_all(self, jobs: &[Arc<Job>]) -> Vec<Arc<StepSetup>> {
        let of_group = |(group, job): (u8, &Arc<Job>)| {
            // Only the measured clients share a number of ops.
            let grants = if group == MEASURED { self.grants.clone() } else { Vec::new() };
            let (job, names) = (Arc::clone(job), Arc::default());
            Arc::new(StepSetup { group, job, grants, names, ..self.clone() })
        };
        (MEASURED..).zip(jobs).map(of_group).collect()
    }

    /// Returns the place of the address that a client of the group is dealt to.
    pub(crate) fn address_of(&self, client: u32) -> usize {
        self.job.deal(client, self.link.addresses())
    }

    pub(crate) fn link_of(&self, client: u32) -> &ServerLink {
        self.link.at(self.address_of(client))
    }

    pub(crate) fn tell(&self, thread: usize, event: ThreadEvent) {
        // Nobody listens only when the step is over.
        let _ = self.events.send(ThreadMessage { thread, group: self.group, event });
    }
}

pub(crate) async fn tick<T>(window: watch::Sender<StepWindow>) -> T {
    loop {
        tokio::time::sleep(TICK).await;
        window.send_modify(|_| {});
    }
}

#[cfg(test)]
mod tests {
    use super::super::errors::{ClientAction, Event, add_error};
    use super::super::self_watch::SelfWatch;
    use super::*;
    use crate::mysql::Failure;
    use crate::observe::{Op, Phases, Recorder, Times};
    use crate::summary::Doubt;

    fn refusal() -> Failure {
        Failure::Server {
            code: 1213,
            sqlstate: "40001".to_owned(),
            message: "Deadlock \u{1f}".to_owned(),
        }
    }

    fn interval() -> RecordedInterval {
        let phases =
            Phases { window_start: 0, window_end: Ns::MAX, by_issue: false, interval: Ns::MAX };
        let (mut recorder, intervals) = Recorder::listing(phases, 2);
        recorder.count_events(3);
        for name in ["payment", "new order"] {
            recorder.names.number(name.as_bytes()).expect("a name");
        }
        // The second time is longer than a histogram holds.
        for (issued, completed) in [(2_000, 70_000), (80_000, 5_000_000_000_000)] {
            let (intended, measured) = (Some(1_000), true);
            let (statements, rows, unmatched, name) = (2, 7, 1, Some(1));
            let op =
                Op { intended, issued, measured, completed, statements, rows, unmatched, name };
            recorder.succeeded(op);
            recorder.retried(1, 3);
            recorder.statement(1, true, (issued, completed));
            recorder.failed(issued, true, completed);
            recorder.events(completed).expect("counts").event(1, completed - issued);
        }
        recorder.finish(5_000_000_000_000);
        intervals.take().remove(0)
    }

    fn counts() -> ThreadCounts {
        let mut failures = Failures::default();
        (failures.reconnects, failures.in_doubt) = (1, 2);
        failures.count(OpError::from(refusal()).count());
        failures.count_named("new order".to_owned(), OpError::from(refusal()).count());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut watch = SelfWatch::new();
        let window = StepWindow { start: 0, end: Ns::MAX, early: false, last: Ns::MAX };
        runtime.block_on(async { watch.sample(1_000, window, 10) });
        watch.turn(1_000, 3_000, window, true);
        ThreadCounts {
            ops_by_client: vec![3, 4],
            by_address: vec![DealtCounts { clients: 2, ops: 3, errors: 1 }, DealtCounts::default()],
            ops_by_table: vec![7],
            ledger: vec![LedgerEntry {
                table: "sbtest1".to_owned(),
                k_added: -5,
                doubt: Some(Doubt { k_removed: u64::MAX, ..Doubt::default() }),
                ..LedgerEntry::default()
            }],
            failures,
            usage: vec![watch.into_usage(true)],
            ended: 9,
            ended_by_script: true,
            paced: Some(PacingCounts { intended: 8, behind: 0.1 + 0.2, ..Default::default() }),
        }
    }

    /// One of each, and its number.
    fn events() -> Vec<(usize, ThreadEvent)> {
        let error = Error::server("no room").hint("wait").passing(true);
        let mut seen = vec![(1, Event::Success(5)), (6, Event::Refused(None, "gone".into()))];
        add_error(&mut seen, 7, Some(1213), "Deadlock");
        add_error(&mut seen, 8, Some(1213), "Deadlock");
        let queue = Some(QueueLength { waiting: 3, busy: 2 });
        let asked = Some(Box::new(ClientAction::Execute("COMMIT".to_owned())));
        let events = vec![
            ThreadEvent::Opened,
            ThreadEvent::Waiting(error.clone()),
            ThreadEvent::NotOpened(OpenError::refused(ClientAction::Connect, refusal())),
            ThreadEvent::Reopened,
            ThreadEvent::Warm,
            ThreadEvent::NeedsOps,
            ThreadEvent::Service(ServiceReport {
                until: Ns::MAX,
                ops: 12,
                seen,
                queue,
                asleep: true,
                errors: vec![(ErrorClass::Lost, 2)],
            }),
            ThreadEvent::Interval(Box::new(interval())),
            ThreadEvent::Abort(7, OpError::Failure(refusal(), asked)),
            ThreadEvent::Abort(7, OpError::Timeout(Duration::from_millis(1500))),
            ThreadEvent::Abort(7, OpError::Unanswered),
            ThreadEvent::Abort(7, OpError::Wrong("0 rows".to_owned()).left_open(refusal().into())),
            ThreadEvent::Done(Box::new(counts())),
            ThreadEvent::Broken(error.clone()),
            ThreadEvent::Late(error.clone()),
            ThreadEvent::Lost(error),
            ThreadEvent::Said("error 2002".to_owned()),
        ];
        let number = |event: &ThreadEvent| match event {
            ThreadEvent::Opened => 0,
            ThreadEvent::Waiting(_) => 1,
            ThreadEvent::NotOpened(_) => 2,
            ThreadEvent::Reopened => 3,
            ThreadEvent::Warm => 4,
            ThreadEvent::NeedsOps => 5,
            ThreadEvent::Service(_) => 6,
            ThreadEvent::Interval(_) => 7,
            ThreadEvent::Abort(..) => 8,
            ThreadEvent::Done(_) => 9,
            ThreadEvent::Broken(_) => 10,
            ThreadEvent::Late(_) => 11,
            ThreadEvent::Lost(_) => 12,
            ThreadEvent::Said(_) => 13,
        };
        events.into_iter().map(|event| (number(&event), event)).collect()
    }

    fn assert_is_read_back<T>(message: &T)
    where
        T: Serialize + for<'de> Deserialize<'de> + PartialEq + std::fmt::Debug,
    {
        let json = serde_json::to_string(message).expect("plain data");
        assert_eq!(serde_json::from_str::<T>(&json).expect(&json), *message);
    }

    #[test]
    fn every_event_is_read_back_as_equal_when_it_is_written_down() {
        let mut numbers: Vec<usize> = events().iter().map(|(number, _)| *number).collect();
        numbers.dedup();
        assert_eq!(numbers, (0..14).collect::<Vec<_>>(), "one is missing");
        for (_, event) in events() {
            assert_is_read_back(&event);
        }
        assert_is_read_back(&StepWindow { start: 1, end: Ns::MAX, early: true, last: 4 });
    }

    #[test]
    fn times_that_were_written_down_take_longer_ones() {
        let mut times = Times::new();
        times.record(1_000);
        let json = serde_json::to_string(&times).expect("plain data");
        let mut read: Times = serde_json::from_str(&json).expect("times");
        times.record(1_000_000_000);
        read.record(1_000_000_000);
        assert_eq!(read, times);
    }
}
