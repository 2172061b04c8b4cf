//! One engine thread: a `current_thread` runtime, its share of the clients, one recorder. It opens
//! connections, waits for the start, runs its clients through all phases, and drains.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::client;
use super::connect::{Connection, Connector, close_all};
use super::errors::{Failures, OpError};
use super::job::Job;
use super::ledger::Account;
use super::outages::{OutageWatch, Report};
use super::pacing::{NEVER, Pacing, PacingCounts, Window};
use super::state::{ClientState, ThreadState, panic_text};
use super::turn_delay::{SelfWatch, ThreadUsage, probe};
use crate::error::{Error, Result};
use crate::mysql::session::Session;
use crate::observe::recorder::{Ns, Phases, RecordedInterval, Recorder};
use crate::plan::limits;

/// How often a thread looks whether the step was ended early; clients see the regular end by
/// themselves. Whoever ends a step sets the end so far ahead (see [`NOTICE`]).
///
/// One timer ticks for all threads: one in a thread's own runtime would be looked at in every turn,
/// that is, with few clients, in every operation (2.7 us of it with one client).
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// In this time every thread has seen a new end of the window.
pub(crate) const NOTICE: Duration = Duration::from_millis(50);

/// What an engine thread needs; all of it can cross threads.
#[derive(Clone)]
pub(crate) struct ThreadSetup {
    pub job: Arc<Job>,
    pub connector: Connector,
    pub phases: Phases,
    pub outages: Arc<Mutex<OutageWatch>>,
    /// Logins are spread from here on, by [`limits::CONNECTS_PER_S`].
    pub opening: Instant,
    pub go: watch::Receiver<Go>,
    pub ticks: watch::Receiver<()>,
    pub window: Arc<SharedWindow>,
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
    /// The step's clock starts at this instant.
    Start(Instant),
    Cancel,
}

pub(crate) enum ThreadEvent {
    Opened,
    /// A client waits for a server that is gone.
    Waiting(Error),
    NotOpened(Error),
    Ready,
    /// An open loop's queues are not late, or drained: the window may begin.
    Warm,
    Interval(usize, Box<RecordedInterval>),
    /// The step cannot go on, after what happened to a client (from 0).
    Abort {
        client: u32,
        error: OpError,
    },
    /// The thread is done, its connections still open.
    Done(usize, Box<ThreadCounts>),
    /// The thread could not go on for its own reasons.
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
    /// Either may be [`NEVER`]: not decided.
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

impl ThreadSetup {
    fn tell(&self, event: ThreadEvent) {
        // Nobody listens only when the step is over.
        let _ = self.events.send(event);
    }

    /// Opens a connection for each client; fewer come back when one fails or the step is cancelled.
    async fn open_all(&self, clients: &[u32]) -> Vec<Connection> {
        let opening: Vec<JoinHandle<Option<Connection>>> = clients
            .iter()
            .map(|client| tokio::task::spawn_local(self.clone().open_one(*client)))
            .collect();
        let mut opened = Vec::with_capacity(opening.len());
        for task in opening {
            match task.await {
                Ok(connection) => opened.extend(connection),
                Err(panic) => {
                    let text = panic_text(panic.into_panic().as_ref());
                    let text = format!("the driver panicked on a login: {text}");
                    self.tell(ThreadEvent::NotOpened(Error::server(text)));
                }
            }
        }
        opened
    }

    async fn open_one(self, client: u32) -> Option<Connection> {
        let mut go = self.go.clone();
        let turn = self.opening + Duration::from_secs(1) * client / limits::CONNECTS_PER_S;
        tokio::time::sleep_until(turn.into()).await;
        if *go.borrow_and_update() == Go::Cancel {
            return None;
        }
        let waiting = |error| self.tell(ThreadEvent::Waiting(error));
        // A cancelled step must not wait for a server that hangs.
        let opened = tokio::select! {
            opened = self.connector.open(&self.job, client, waiting) => opened,
            _ = go.wait_for(|go| *go == Go::Cancel) => return None,
        };
        let (event, connection) = match opened {
            Ok(connection) => (ThreadEvent::Opened, Some(connection)),
            Err(error) => (ThreadEvent::NotOpened(error), None),
        };
        self.tell(event);
        connection
    }

    fn state(&self, index: usize, origin: Instant, clients: &[u32]) -> Result<ThreadState> {
        let window = self.window.read();
        let job = &self.job;
        let events = self.events.clone();
        let recorder = Recorder::new(
            self.phases,
            job.timed_statements(),
            Box::new(move |interval| {
                let _ = events.send(ThreadEvent::Interval(index, Box::new(interval)));
            }),
        );
        let pacing = match job.rate {
            Some(_) => Some(Pacing::new(job, clients, self.threads, window, self.warmup)?),
            None => None,
        };
        let tables = 0..job.places();
        Ok(ThreadState {
            origin,
            window_start: Cell::new(window.start),
            window_end: Cell::new(window.end),
            recorder: RefCell::new(recorder),
            accounts: RefCell::new(vec![Account::default(); job.places() as usize]),
            failures: RefCell::default(),
            watch: RefCell::new(SelfWatch::new()),
            connector: self.connector.clone(),
            picks: tables.clone().map(|t| job.picks(t)).collect(),
            pacing,
            texts: if job.text { tables.map(|t| job.text_pieces(t)).collect() } else { Vec::new() },
            job: Arc::clone(job),
        })
    }
}

/// Runs as the body of an engine thread; `clients` are its share, numbered over all threads.
pub(crate) fn run(setup: &ThreadSetup, index: usize, clients: &[u32]) {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(step(setup, index, clients));
            // What hangs in a goodbye is left behind.
            runtime.shutdown_timeout(Duration::ZERO);
            ended
        }
        Err(e) => Err(Error::failed(format!("cannot make an engine thread's runtime: {e}"))
            .hint("raise the limits on descriptors and processes (ulimit -n, -u)")),
    };
    if let Err(error) = ended {
        setup.tell(ThreadEvent::Broken(error));
    }
}

async fn step(setup: &ThreadSetup, index: usize, clients: &[u32]) -> Result<()> {
    let connections = setup.open_all(clients).await;
    let mut go = setup.go.clone();
    if connections.len() == clients.len() {
        setup.tell(ThreadEvent::Ready);
    }
    let start = go.wait_for(|go| *go != Go::Wait).await.map(|go| *go);
    let Ok(Go::Start(origin)) = start else {
        close_all(connections.into_iter().map(|one| one.session).collect()).await;
        return Ok(());
    };
    let thread = EngineThread {
        setup,
        index,
        state: Rc::new(setup.state(index, origin, clients)?),
        clients: clients.iter().zip(0..).map(|(c, at)| Rc::new(ClientState::new(*c, at))).collect(),
    };
    let sessions = thread.work(connections).await?;
    setup.tell(ThreadEvent::Done(index, Box::new(thread.into_counts())));
    // Not while the server's counters are read: what a connection has counted, MySQL 5.6 counts
    // twice while it is being closed.
    let _ = go.wait_for(|go| *go == Go::Cancel).await;
    close_all(sessions).await;
    Ok(())
}

struct EngineThread<'a> {
    setup: &'a ThreadSetup,
    index: usize,
    state: Rc<ThreadState>,
    clients: Vec<Rc<ClientState>>,
}

impl EngineThread<'_> {
    /// Runs the clients to the end of the drain; returns the sessions that are left.
    async fn work(&self, connections: Vec<Connection>) -> Result<Vec<Session>> {
        let state = &self.state;
        tokio::time::sleep_until(state.origin.into()).await;
        let mut tasks: JoinSet<(u32, std::result::Result<Option<Session>, OpError>)> =
            JoinSet::new();
        for (client, connection) in self.clients.iter().zip(connections) {
            let run = client::run(Rc::clone(state), Rc::clone(client), connection);
            let client = client.client;
            tasks.spawn_local(async move { (client, run.await) });
        }
        let mut helpers = helpers(state);
        let mut warm = state.window_start.get() != NEVER;
        let mut ticks = self.setup.ticks.clone();
        let mut sessions = Vec::with_capacity(self.clients.len());
        loop {
            tokio::select! {
                ended = tasks.join_next() => match ended {
                    None => break,
                    Some(Ok((_, Ok(session)))) => sessions.extend(session),
                    Some(Ok((client, Err(error)))) => {
                        self.setup.tell(ThreadEvent::Abort { client, error });
                    }
                    // What the driver does is caught by the client.
                    Some(Err(panic)) => return Err(Error::failed(format!("a client: {panic}"))),
                },
                // Without it an open loop would issue nothing more, and a probe see nothing.
                Some(ended) = helpers.join_next() => return Err(ended.unwrap_or_else(|panic| {
                    Error::failed(format!("what runs beside the clients: {panic}"))
                })),
                Ok(()) = ticks.changed() => {
                    let now = state.now();
                    self.tick(now);
                    let judged = now >= self.setup.judged;
                    if !warm && judged && state.pacing.as_ref().is_none_or(|p| p.is_warm(now)) {
                        warm = true;
                        self.setup.tell(ThreadEvent::Warm);
                    }
                    let drained = limits::DRAIN.as_nanos() as Ns;
                    if now > state.window_end.get().saturating_add(drained) {
                        break;
                    }
                }
            }
        }
        self.look(state.now());
        helpers.shutdown().await;
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        self.abandon();
        self.report(Ns::MAX);
        Ok(sessions)
    }

    fn tick(&self, now: Ns) {
        self.follow();
        self.state.give_up(&self.clients, now);
        self.report(now);
        self.look(now);
        self.state.recorder.borrow_mut().roll(now);
    }

    /// Takes over a start and an end that were decided or moved.
    fn follow(&self) {
        let (state, window) = (&self.state, self.setup.window.read());
        if window.start != state.window_start.get() {
            state.window_start.set(window.start);
            state.recorder.borrow_mut().start_window(window.start);
        }
        if window.end != state.window_end.get() {
            state.window_end.set(window.end);
            state.recorder.borrow_mut().end_window(window.end);
        }
        if let Some(pacing) = &state.pacing {
            pacing.set_window(window);
        }
    }

    /// Tells the watch over outages what happened up to now; the drain has none.
    fn report(&self, now: Ns) {
        let mut recorder = self.state.recorder.borrow_mut();
        let (ops, successes) = (recorder.ops(), recorder.take_successes());
        let errors = std::mem::take(&mut self.state.failures.borrow_mut().new);
        let report = Report { now, ops, successes, errors }.within(self.state.window_end.get());
        self.setup.outages.lock().expect("nobody panics with it").report(self.index, report);
    }

    fn look(&self, now: Ns) {
        let spun = self.state.pacing.as_ref().map_or(0, Pacing::spun);
        self.state.watch.borrow_mut().look(now, self.state.window(), spun);
    }

    /// Gives up what is still in flight: the connections went with the tasks.
    fn abandon(&self) {
        let now = self.state.now();
        for client in &self.clients {
            self.state.abandon(client, now);
        }
        if let Some(pacing) = &self.state.pacing {
            pacing.abandon(now, &mut self.state.recorder.borrow_mut());
        }
    }

    fn into_counts(self) -> ThreadCounts {
        let state = Rc::into_inner(self.state).expect("all tasks have ended");
        let ended = state.now();
        state.recorder.into_inner().finish(ended);
        ThreadCounts {
            ops_by_client: self.clients.iter().map(|client| client.ops.get()).collect(),
            accounts: state.accounts.into_inner(),
            failures: state.failures.into_inner(),
            usage: vec![state.watch.into_inner().into_usage(state.pacing.is_some())],
            ended,
            paced: state.pacing.map(Pacing::into_counts),
        }
    }
}

/// Starts what runs beside the clients: probes of the turn delay, and what wakes the clients of an
/// open loop. They end only with an error.
fn helpers(state: &Rc<ThreadState>) -> JoinSet<Error> {
    let no_timer = |e| Error::failed(format!("cannot wait for a kernel timer: {e}"));
    let mut tasks = JoinSet::new();
    let probed = Rc::clone(state);
    tasks.spawn_local(async move {
        match probe(&probed.watch, probed.origin, || probed.window()).await {
            Err(e) => no_timer(e),
            Ok(never) => match never {},
        }
    });
    let paced = Rc::clone(state);
    tasks.spawn_local(async move {
        let Some(pacing) = &paced.pacing else { return std::future::pending().await };
        match pacing.dispatch(paced.origin).await {
            Err(e) => no_timer(e),
            Ok(never) => match never {},
        }
    });
    tasks
}
