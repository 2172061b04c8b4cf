//! What the threads of a step share, what the clients of an engine thread share, and what of a client
//! outlives its task.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::connect::Connector;
use super::errors::{Failures, OpError};
use super::job::Job;
use super::ledger::{self, Pending};
use super::outages::{Event, Events, OutageWatch, add_error};
use super::pacing::{Pacing, PacingCounts, Window};
use super::turn_delay::{SelfWatch, ThreadUsage};
use crate::error::{Error, Result};
use crate::mysql::Failure;
use crate::observe::recorder::{Ns, Phases, RecordedInterval, Recorder};
use crate::plan::{StatementMode, StopAt, limits};
use crate::summary::LedgerEntry;
use crate::workload::distribution::Sampler;

pub(crate) struct StepSetup {
    pub job: Job,
    pub connector: Connector,
    pub interval: Ns,
    pub outages: Mutex<OutageWatch>,
    pub opening: Instant,
    pub go: watch::Receiver<Go>,
    /// Also tells every thread to look at what changed, now and then.
    pub window: watch::Sender<Window>,
    /// With an open loop and a warm-up: when its queues are looked at.
    pub judged: Ns,
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
    NotOpened(Error),
    /// An open loop's queues are not late, or drained: the window may begin.
    Warm,
    Interval(usize, Box<RecordedInterval>),
    /// The step cannot go on, after what happened to a client (from 0).
    Abort(u32, OpError),
    Done(usize, Box<ThreadCounts>),
    Broken(Error),
}

#[derive(Debug)]
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
    pub(crate) fn merge(&mut self, other: ThreadCounts) {
        self.ops_by_client.extend(other.ops_by_client);
        self.ops_by_table.iter_mut().zip(other.ops_by_table).for_each(|(sum, ops)| *sum += ops);
        for (sum, entry) in self.ledger.iter_mut().zip(&other.ledger) {
            ledger::merge(sum, entry);
        }
        self.failures.merge(other.failures);
        self.usage.extend(other.usage);
        self.ended = self.ended.max(other.ended);
        if let (Some(sum), Some(counts)) = (&mut self.paced, &other.paced) {
            sum.merge(counts);
        }
    }
}

impl StepSetup {
    pub(crate) fn tell(&self, event: ThreadEvent) {
        // Nobody listens only when the step is over.
        let _ = self.events.send(event);
    }
}

/// The state that the clients of one engine thread share. Nothing here is borrowed across an await.
pub(crate) struct ThreadState {
    pub setup: Arc<StepSetup>,
    pub index: usize,
    pub origin: Instant,
    pub window: Cell<Window>,
    pub recorder: RefCell<Recorder>,
    pub ops_by_table: Vec<Cell<u64>>,
    pub ledger: RefCell<Vec<LedgerEntry>>,
    pub failures: RefCell<Failures>,
    pub watch: RefCell<SelfWatch>,
    pub picks: Vec<Vec<Sampler>>,
    /// By table: SQL of each statement around its parameters; empty unless in text mode.
    pub texts: Vec<Vec<Vec<String>>>,
    pub pacing: Option<Pacing>,
    pub clients: Vec<Rc<ClientState>>,
}

/// The part of a client that outlives its task.
#[derive(Debug, Default)]
pub(crate) struct ClientState {
    pub client: u32,
    pub intended: Cell<Option<Ns>>,
    /// When the op in flight was issued.
    pub issued: Cell<Option<Ns>>,
    /// The client is in the window: decided before an op, and the op's for all of it.
    pub measured: Cell<bool>,
    /// What is in doubt if the answer never comes.
    pub pending: Cell<Pending>,
    pub ops: Cell<u64>,
    /// Its connection is lost and not open again.
    pub offline: Cell<bool>,
    given_up: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl ThreadState {
    /// Makes that of a thread with these clients; within its runtime only.
    pub(crate) fn new(
        setup: &Arc<StepSetup>,
        index: usize,
        origin: Instant,
        clients: &[u32],
    ) -> Result<ThreadState> {
        let (window, job) = (*setup.window.borrow(), &setup.job);
        let events = setup.events.clone();
        let sink = move |interval| {
            let _ = events.send(ThreadEvent::Interval(index, Box::new(interval)));
        };
        let phases = Phases {
            window_start: window.start,
            window_end: window.end,
            by_issue: matches!(job.plan.stop, StopAt::Ops(_)),
            interval: setup.interval,
        };
        let pacing = job.step.rate.map(|_| Pacing::new(job, clients, window));
        let tables = 0..job.places();
        let text = job.plan.statements == StatementMode::Text;
        let client =
            |client: &u32| Rc::new(ClientState { client: *client, ..ClientState::default() });
        let entry = |table| {
            let table = job.tables.schema.name(table + 1);
            LedgerEntry { table, ..LedgerEntry::default() }
        };
        Ok(ThreadState {
            setup: Arc::clone(setup),
            index,
            origin,
            window: Cell::new(window),
            recorder: RefCell::new(Recorder::new(phases, job.timed_statements, Box::new(sink))),
            ops_by_table: tables.clone().map(|_| Cell::default()).collect(),
            ledger: RefCell::new(tables.clone().map(entry).collect()),
            failures: RefCell::default(),
            watch: RefCell::new(SelfWatch::new()),
            picks: tables.clone().map(|t| job.picks(t)).collect(),
            pacing: pacing.transpose()?,
            texts: tables.filter(|_| text).map(|t| job.text_pieces(t)).collect(),
            clients: clients.iter().map(client).collect(),
        })
    }

    #[inline]
    pub(crate) fn job(&self) -> &Job {
        &self.setup.job
    }

    #[inline]
    pub(crate) fn now(&self) -> Ns {
        self.origin.elapsed().as_nanos() as Ns
    }

    pub(crate) fn op_timeout(&self) -> Duration {
        self.job().plan.policy.op_timeout.unwrap_or(Duration::MAX)
    }

    pub(crate) fn tick(&self, now: Ns) {
        self.follow();
        self.give_up(now);
        self.report(now);
        self.look(now);
        self.recorder.borrow_mut().roll(now);
    }

    fn follow(&self) {
        let window = *self.setup.window.borrow();
        self.window.set(window);
        self.recorder.borrow_mut().set_window(window.start, window.end);
        if let Some(pacing) = &self.pacing {
            pacing.set_window(window);
        }
    }

    /// Tells the watch over outages what happened up to now; the drain has none.
    fn report(&self, now: Ns) {
        let mut recorder = self.recorder.borrow_mut();
        let mut events: Events = std::mem::take(&mut self.failures.borrow_mut().new);
        events.extend(recorder.take_successes().map(|s| (s.first, Event::Success(s.last))));
        let so_far = (now, recorder.ops());
        let mut outages = self.setup.outages.lock().expect("nobody panics with it");
        outages.report(self.index, so_far, events, self.window.get().end);
    }

    pub(crate) fn look(&self, now: Ns) {
        let spun = self.pacing.as_ref().map_or(0, |pacing| pacing.spun.get());
        self.watch.borrow_mut().look(now, self.window.get(), spun);
    }

    /// Gives up ops that are in flight for too long, and after the window's end also connections
    /// that are not open again.
    fn give_up(&self, now: Ns) {
        let limit = self.job().plan.policy.op_timeout.map(|limit| limit.as_nanos() as Ns);
        let over = now >= self.window.get().end;
        if limit.is_none() && !over {
            return;
        }
        for client in &self.clients {
            let age = client.issued.get().map(|issued| now.saturating_sub(issued));
            let late = age.zip(limit).is_some_and(|(age, limit)| age >= limit);
            if late || (over && client.offline.get()) {
                client.give_up();
            }
        }
    }

    pub(crate) fn failed(&self, client: &ClientState, issued: Ns, now: Ns, error: &OpError) {
        let in_doubt = error.leaves_doubt() && self.doubt(client);
        // Else the server has refused the writes.
        client.pending.set(Pending::Nothing);
        client.issued.set(None);
        let measured = client.measured.get();
        let mut recorder = self.recorder.borrow_mut();
        let mut failures = self.failures.borrow_mut();
        add_error(&mut failures.new, now, error.code(), &error.to_string());
        if matches!(error, OpError::Timeout(_)) {
            failures.give_up(measured);
            return recorder.abandoned(client.intended.get(), issued, measured, now);
        }
        failures.add(error);
        if in_doubt {
            failures.window_in_doubt += u64::from(measured);
            recorder.unresolved(now);
        } else {
            recorder.failed(issued, measured, now);
        }
    }

    pub(crate) fn refused(&self, failure: Failure) {
        self.failures.borrow_mut().refused(self.now(), failure);
    }

    /// Gives up at the end of the drain what is in flight or waits: the connections went with the tasks.
    fn abandon(&self) {
        let now = self.now();
        for client in &self.clients {
            if let Some(issued) = client.issued.get() {
                self.failed(client, issued, now, &OpError::Timeout(limits::DRAIN));
            }
        }
        if let Some(pacing) = &self.pacing {
            pacing.queues.borrow_mut().abandon(now, &mut self.recorder.borrow_mut());
        }
    }

    /// Counts the writes that a lost or abandoned answer leaves in doubt; returns whether there are
    /// any.
    fn doubt(&self, client: &ClientState) -> bool {
        let pending = client.pending.replace(Pending::Nothing);
        let Some((table, writes, doubt)) = pending.doubt(self.job()) else { return false };
        self.failures.borrow_mut().in_doubt += 1;
        ledger::add_doubt(&mut self.ledger.borrow_mut()[table as usize], writes, &doubt);
        true
    }

    pub(crate) fn into_counts(self) -> ThreadCounts {
        self.abandon();
        self.report(Ns::MAX);
        let ended = self.now();
        self.recorder.into_inner().finish(ended);
        ThreadCounts {
            ops_by_client: self.clients.iter().map(|client| client.ops.get()).collect(),
            ops_by_table: self.ops_by_table.into_iter().map(Cell::into_inner).collect(),
            ledger: self.ledger.into_inner(),
            failures: self.failures.into_inner(),
            usage: vec![self.watch.into_inner().into_usage(self.pacing.is_some())],
            ended,
            paced: self.pacing.map(|pacing| pacing.queues.into_inner().counts),
        }
    }
}

impl ClientState {
    fn give_up(&self) {
        self.given_up.set(true);
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Works until the work ends, is given up after `limit`, or panics. What is given up is dropped
    /// where it waits: what it borrowed, such as a session, must not be used again.
    ///
    /// No timer an op: the engine thread looks at the instants of all ops in flight every tick.
    pub(crate) async fn watch<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> std::result::Result<T, OpError> {
        // A task has one waker for life.
        self.waker.replace(Some(poll_fn(|context| Poll::Ready(context.waker().clone())).await));
        let mut work = pin!(work);
        poll_fn(|context| {
            if self.given_up.get() && self.given_up.replace(false) {
                return Poll::Ready(Err(OpError::Timeout(limit)));
            }
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(polled) => polled.map(Ok),
                Err(payload) => Poll::Ready(Err(OpError::Driver(panic_text(payload.as_ref())))),
            }
        })
        .await
    }
}

pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no text").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    fn run<T: 'static>(work: impl Future<Output = T> + 'static) -> std::result::Result<T, OpError> {
        let client = Rc::new(ClientState::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build_local(tokio::runtime::LocalOptions::default());
        let watching = Rc::clone(&client);
        runtime.expect("a runtime").block_on(async move {
            let ended = tokio::task::spawn_local(async move { watching.watch(LIMIT, work).await });
            tokio::task::yield_now().await;
            client.give_up();
            ended.await.expect("it ends")
        })
    }

    #[test]
    fn work_is_given_up_when_it_waits_and_done_when_it_ends() {
        assert_eq!(run(std::future::pending::<()>()), Err(OpError::Timeout(LIMIT)));
        assert_eq!(run(async { 7 }), Ok(7));
    }

    #[test]
    fn work_that_panics_ends_with_its_text() {
        let ended = run(async { panic!("no {}", "good") });
        assert_eq!(ended, Err::<(), _>(OpError::Driver("no good".to_owned())));
    }
}
