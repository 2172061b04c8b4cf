//! What the threads of a step share, what the clients of an engine thread share, and what of a client
//! outlives its task.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::connect::Connector;
use super::errors::{Failures, OpError};
use super::job::{Job, Pick};
use super::ledger::{Account, Pending};
use super::outages::{OutageWatch, Report};
use super::pacing::{Pacing, PacingCounts, Window};
use super::turn_delay::{SelfWatch, ThreadUsage};
use crate::error::{Error, Result};
use crate::mysql::session::Failure;
use crate::observe::recorder::{Ns, Phases, RecordedInterval, Recorder};
use crate::plan::StatementMode;

pub(crate) struct StepSetup {
    pub job: Job,
    pub connector: Connector,
    pub phases: Phases,
    pub outages: Mutex<OutageWatch>,
    pub opening: Instant,
    pub go: watch::Receiver<Go>,
    pub ticks: watch::Receiver<()>,
    pub window: SharedWindow,
    pub threads: usize,
    pub warmup: Ns,
    /// With an open loop and a warm-up: when its queues are looked at.
    pub judged: Ns,
    pub events: mpsc::UnboundedSender<ThreadEvent>,
}

/// The window on the step's clock, as far as it is decided while threads run.
#[derive(Debug)]
pub(crate) struct SharedWindow {
    start: AtomicU64,
    end: AtomicU64,
    early: AtomicBool,
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
    Ready,
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
    pub accounts: Vec<Account>,
    pub failures: Failures,
    pub usage: Vec<ThreadUsage>,
    pub ended: Ns,
    pub paced: Option<PacingCounts>,
}

impl ThreadCounts {
    pub(crate) fn merge(&mut self, other: ThreadCounts) {
        self.ops_by_client.extend(other.ops_by_client);
        for (sum, account) in self.accounts.iter_mut().zip(&other.accounts) {
            sum.merge(account);
        }
        self.failures.merge(other.failures);
        self.usage.extend(other.usage);
        self.ended = self.ended.max(other.ended);
        if let (Some(sum), Some(counts)) = (&mut self.paced, &other.paced) {
            sum.merge(counts);
        }
    }
}

impl SharedWindow {
    /// Either may be [`super::pacing::NEVER`]: not decided.
    pub(crate) fn new(start: Ns, end: Ns) -> SharedWindow {
        let (start, end) = (AtomicU64::new(start), AtomicU64::new(end));
        SharedWindow { start, end, early: AtomicBool::new(false) }
    }

    pub(crate) fn end(&self) -> Ns {
        self.end.load(Ordering::Acquire)
    }

    /// Decides both: who sees the start sees the end, too.
    pub(crate) fn set(&self, start: Ns, end: Ns) {
        self.end.store(end, Ordering::Release);
        self.start.store(start, Ordering::Release);
    }

    pub(crate) fn cut(&self, end: Ns) {
        self.early.store(true, Ordering::Release);
        self.end.store(end, Ordering::Release);
    }

    fn read(&self) -> Window {
        let start = self.start.load(Ordering::Acquire);
        let end = self.end();
        Window { start, end, early: self.early.load(Ordering::Acquire) }
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
    pub window_start: Cell<Ns>,
    pub window_end: Cell<Ns>,
    pub recorder: RefCell<Recorder>,
    pub accounts: RefCell<Vec<Account>>,
    pub failures: RefCell<Failures>,
    pub watch: RefCell<SelfWatch>,
    pub picks: Vec<Vec<Pick>>,
    /// By table: SQL of each statement around its parameters; empty unless in text mode.
    pub texts: Vec<Vec<Vec<String>>>,
    pub pacing: Option<Pacing>,
    pub clients: Vec<Rc<ClientState>>,
}

/// The part of a client that outlives its task.
#[derive(Debug, Default)]
pub(crate) struct ClientState {
    pub client: u32,
    pub place: usize,
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

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WorkEnd<T> {
    Done(T),
    GivenUp,
    Panicked(String),
}

impl ThreadState {
    /// Makes that of a thread with these clients; within its runtime only.
    pub(crate) fn new(
        setup: &Arc<StepSetup>,
        index: usize,
        origin: Instant,
        clients: &[u32],
    ) -> Result<ThreadState> {
        let (window, job) = (setup.window.read(), &setup.job);
        let events = setup.events.clone();
        let sink = move |interval| {
            let _ = events.send(ThreadEvent::Interval(index, Box::new(interval)));
        };
        let recorder = Recorder::new(setup.phases, job.timed_statements(), Box::new(sink));
        let pacing =
            job.rate.map(|_| Pacing::new(job, clients, setup.threads, window, setup.warmup));
        let tables = 0..job.places();
        let client = |(place, client): (usize, &u32)| {
            Rc::new(ClientState { client: *client, place, ..ClientState::default() })
        };
        let account = |table| Account::new(job.tables.schema, table);
        Ok(ThreadState {
            setup: Arc::clone(setup),
            index,
            origin,
            window_start: Cell::new(window.start),
            window_end: Cell::new(window.end),
            recorder: RefCell::new(recorder),
            accounts: RefCell::new(tables.clone().map(account).collect()),
            failures: RefCell::default(),
            watch: RefCell::new(SelfWatch::new()),
            picks: tables.clone().map(|t| job.picks(t)).collect(),
            pacing: pacing.transpose()?,
            texts: if job.plan.statements == StatementMode::Text {
                tables.map(|t| job.text_pieces(t)).collect()
            } else {
                Vec::new()
            },
            clients: (0..).zip(clients).map(client).collect(),
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

    pub(crate) fn window(&self) -> (Ns, Ns) {
        (self.window_start.get(), self.window_end.get())
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
        let window = self.setup.window.read();
        if self.window_start.replace(window.start) != window.start {
            self.recorder.borrow_mut().start_window(window.start);
        }
        if self.window_end.replace(window.end) != window.end {
            self.recorder.borrow_mut().end_window(window.end);
        }
        if let Some(pacing) = &self.pacing {
            pacing.set_window(window);
        }
    }

    /// Tells the watch over outages what happened up to now; the drain has none.
    fn report(&self, now: Ns) {
        let mut recorder = self.recorder.borrow_mut();
        let (ops, successes) = (recorder.ops(), recorder.take_successes());
        let errors = std::mem::take(&mut self.failures.borrow_mut().new);
        let report = Report { now, ops, successes, errors }.within(self.window_end.get());
        self.setup.outages.lock().expect("nobody panics with it").report(self.index, report);
    }

    pub(crate) fn look(&self, now: Ns) {
        let spun = self.pacing.as_ref().map_or(0, Pacing::spun);
        self.watch.borrow_mut().look(now, self.window(), spun);
    }

    /// Gives up ops that are in flight for too long, and after the window's end also connections
    /// that are not open again.
    fn give_up(&self, now: Ns) {
        let limit = self.job().plan.policy.op_timeout.map(|limit| limit.as_nanos() as Ns);
        let over = now >= self.window_end.get();
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
        failures.new.add(now, error.code(), &error.to_string());
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

    /// Counts an op that ended without its client, which could not account for it; returns its error.
    pub(crate) fn failed_outside(&self, client: &ClientState, error: OpError) -> OpError {
        let now = self.now();
        self.failed(client, client.issued.get().unwrap_or(now), now, &error);
        error
    }

    pub(crate) fn refused(&self, failure: Failure) {
        self.failures.borrow_mut().refused(self.now(), failure);
    }

    /// Gives up at the end of the drain what is in flight or waits: the connections went with the tasks.
    fn abandon(&self) {
        let now = self.now();
        for client in &self.clients {
            let Some(issued) = client.issued.get() else { continue };
            self.doubt(client);
            let (intended, measured) = (client.intended.get(), client.measured.get());
            self.failures.borrow_mut().give_up(measured);
            self.recorder.borrow_mut().abandoned(intended, issued, measured, now);
        }
        if let Some(pacing) = &self.pacing {
            pacing.abandon(now, &mut self.recorder.borrow_mut());
        }
    }

    /// Counts the writes that a lost or abandoned answer leaves in doubt; returns whether there are
    /// any.
    fn doubt(&self, client: &ClientState) -> bool {
        let pending = client.pending.replace(Pending::Nothing);
        let Some((table, writes, doubt)) = pending.doubt(self.job()) else { return false };
        self.failures.borrow_mut().in_doubt += 1;
        self.accounts.borrow_mut()[table as usize].doubt(writes, &doubt);
        true
    }

    pub(crate) fn into_counts(self) -> ThreadCounts {
        self.abandon();
        self.report(Ns::MAX);
        let ended = self.now();
        self.recorder.into_inner().finish(ended);
        ThreadCounts {
            ops_by_client: self.clients.iter().map(|client| client.ops.get()).collect(),
            accounts: self.accounts.into_inner(),
            failures: self.failures.into_inner(),
            usage: vec![self.watch.into_inner().into_usage(self.pacing.is_some())],
            ended,
            paced: self.pacing.map(Pacing::into_counts),
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

    /// Works until the work ends, is given up, or panics. What is given up is dropped where it
    /// waits: what it borrowed, such as a session, must not be used again.
    ///
    /// No timer an op: the engine thread looks at the instants of all ops in flight every tick.
    pub(crate) async fn watch<T>(&self, work: impl Future<Output = T>) -> WorkEnd<T> {
        // A task has one waker for life.
        self.waker.replace(Some(poll_fn(|context| Poll::Ready(context.waker().clone())).await));
        let mut work = pin!(work);
        poll_fn(|context| {
            if self.given_up.get() && self.given_up.replace(false) {
                return Poll::Ready(WorkEnd::GivenUp);
            }
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(Poll::Ready(done)) => Poll::Ready(WorkEnd::Done(done)),
                Ok(Poll::Pending) => Poll::Pending,
                Err(payload) => Poll::Ready(WorkEnd::Panicked(panic_text(payload.as_ref()))),
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

    fn run<T: 'static>(work: impl Future<Output = T> + 'static) -> WorkEnd<T> {
        let client = Rc::new(ClientState::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build_local(tokio::runtime::LocalOptions::default());
        let watching = Rc::clone(&client);
        runtime.expect("a runtime").block_on(async move {
            let ended = tokio::task::spawn_local(async move { watching.watch(work).await });
            tokio::task::yield_now().await;
            client.give_up();
            ended.await.expect("it ends")
        })
    }

    #[test]
    fn work_is_given_up_when_it_waits_and_done_when_it_ends() {
        assert_eq!(run(std::future::pending::<()>()), WorkEnd::GivenUp);
        assert_eq!(run(async { 7 }), WorkEnd::Done(7));
    }

    #[test]
    fn work_that_panics_ends_with_its_text() {
        let ended = run(async { panic!("no {}", "good") });
        assert_eq!(ended, WorkEnd::<()>::Panicked("no good".to_owned()));
    }
}
