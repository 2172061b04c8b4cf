//! One engine thread: a `current_thread` runtime, its share of the clients, one recorder. It opens
//! connections, waits for the start, runs its clients through all phases, and drains. Here is also
//! what the threads of a step share, and what of a client outlives its task.
//!
//! It watches itself: how busy it was in the window, how long it waited for a core, and how late it
//! came to a socket that was ready. The last by probes: a kernel timer becomes ready at a known
//! instant, as a socket would. It needs no other thread, which would itself be late when cores are full.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, LocalOptions};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::Refused;
use super::alarm::{Alarm, Pauses};
use super::client;
use super::connection::{self, Connection, Leaving, close_all, pauses};
use super::errors::{Event, Events, Failures, OpError, OutageWatch, Pending, add_entry, add_error};
use super::job::Job;
use super::pacing::{NEVER, Pacing, PacingCounts, Window};
use crate::error::{Error, Result};
use crate::mysql::ServerLink;
use crate::mysql::wire::Inbox;
use crate::observe::{
    Ns, Phases, RecordedInterval, Recorder, Scheduled, ThreadClock, Timer, Times,
};
use crate::plan::{StatementMode, StopAt, limits};
use crate::stats;
use crate::summary::{LedgerEntry, ThreadShare, TurnDelay};
use crate::workload::Sampler;

/// How often a thread looks whether the step was ended early; clients see the regular end by
/// themselves. Whoever ends a step sets the end so far ahead (see [`NOTICE`]).
///
/// One timer ticks for all threads: one in a thread's own runtime would be looked at in every turn,
/// that is, with few clients, in every operation (2.7 us of it with one client).
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// sysbench's queue of events holds so many.
const QUEUE_MAX: u64 = 131_072;
/// In this time every thread has seen a new end of the window.
pub(crate) const NOTICE: Duration = Duration::from_millis(50);

pub(crate) async fn tick<T>(setup: Arc<StepSetup>) -> T {
    loop {
        tokio::time::sleep(TICK).await;
        setup.window.send_modify(|_| {});
    }
}

/// Runs as the body of an engine thread; `clients` are its share, numbered over all threads.
pub(crate) fn run(setup: &Arc<StepSetup>, index: usize, clients: &[u32]) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = runtime.map_err(|e| {
        Error::failed(format!("cannot make an engine thread's runtime: {e}"))
            .hint("raise the limits on descriptors and processes (ulimit -n, -u)")
    })?;
    let ended = runtime.block_on(step(setup, index, clients));
    // What hangs in a goodbye is left behind.
    runtime.shutdown_timeout(Duration::ZERO);
    ended
}

async fn step(setup: &Arc<StepSetup>, index: usize, clients: &[u32]) -> Result<()> {
    let inbox = Inbox::default();
    let connections = open_all(setup, &inbox, clients).await;
    let mut go = setup.go.clone();
    let start = go.wait_for(|go| *go != Go::Wait).await.map(|go| *go);
    let Ok(Go::Start(origin)) = start else {
        close_all(connections.into_iter().map(Connection::leaving).collect()).await;
        return Ok(());
    };
    let state = Rc::new(ThreadState::new(setup, inbox, index, origin, clients)?);
    let sessions = work(&state, connections).await?;
    let state = Rc::into_inner(state).expect("all tasks have ended");
    setup.tell(ThreadEvent::Done(index, Box::new(state.into_counts())));
    // Not while the server's counters are read: what a connection has counted, MySQL 5.6 counts
    // twice while it is being closed.
    let _ = go.wait_for(|go| *go == Go::Cancel).await;
    close_all(sessions).await;
    Ok(())
}

/// Opens a connection for each client; fewer come back when one fails or the step is cancelled.
async fn open_all(setup: &Arc<StepSetup>, inbox: &Inbox, clients: &[u32]) -> Vec<Connection> {
    let open = |client: &u32| {
        tokio::task::spawn_local(open_one(Arc::clone(setup), inbox.clone(), *client))
    };
    let opening: Vec<JoinHandle<Option<Connection>>> = clients.iter().map(open).collect();
    let mut opened = Vec::with_capacity(opening.len());
    for task in opening {
        opened.extend(task.await.expect("a log-in does not panic"));
    }
    opened
}

/// Opens a client's connection. Where lost ones are opened again, a server that is just gone is
/// waited for; one that is there and says no for good is not.
async fn open_one(setup: Arc<StepSetup>, inbox: Inbox, client: u32) -> Option<Connection> {
    let mut go = setup.go.clone();
    let turn = setup.opening + Duration::from_secs(1) * client / limits::CONNECTS_PER_S;
    let waits = setup.job.plan.policy.reconnects();
    let opening = async {
        tokio::time::sleep_until(turn.into()).await;
        let (began, mut pauses) = (Instant::now(), pauses(client, 0));
        loop {
            match connection::open(&setup, &inbox, client).await {
                Err(error) if waits && error.may_pass() && began.elapsed() < limits::OUTAGE => {
                    setup.tell(ThreadEvent::Waiting(error));
                }
                opened => break opened,
            }
            tokio::time::sleep(pauses()).await;
        }
    };
    // A cancelled step must not wait for a server that hangs.
    let opened = tokio::select! {
        opened = opening => opened,
        _ = go.wait_for(|go| *go == Go::Cancel) => return None,
    };
    setup.tell(match &opened {
        Ok(_) => ThreadEvent::Opened,
        Err(error) => ThreadEvent::NotOpened(error.clone()),
    });
    opened.ok()
}

async fn work(state: &Rc<ThreadState>, connections: Vec<Connection>) -> Result<Vec<Leaving>> {
    // Without a warm-up the window opens here: tokio's timers would be a millisecond or two late.
    let start = Timer::new().map_err(|e| no_timer(&e))?;
    while state.origin > Instant::now() {
        start.set(state.origin);
        start.expired().await.map_err(|e| no_timer(&e))?;
    }
    let mut tasks: JoinSet<Option<Leaving>> = JoinSet::new();
    for (client, connection) in state.clients.iter().zip(connections) {
        tasks.spawn_local(client::run(Rc::clone(state), Rc::clone(client), connection));
    }
    let mut helpers = helpers(state);
    let mut warm = state.window.get().start != NEVER;
    let mut ticks = state.setup.window.subscribe();
    let mut sessions = Vec::with_capacity(state.clients.len());
    loop {
        tokio::select! {
            ended = tasks.join_next() => match ended {
                None => break,
                Some(Ok(session)) => sessions.extend(session),
                Some(Err(panic)) => return Err(Error::failed(format!("a client: {panic}"))),
            },
            // Without it an open loop would issue nothing more, and a probe see nothing.
            Some(ended) = helpers.join_next() => return Err(match ended {
                Ok(Err(e)) => no_timer(&e),
                Err(panic) => Error::failed(format!("what runs beside the clients: {panic}")),
            }),
            Ok(()) = ticks.changed() => {
                let now = state.now();
                state.tick(now);
                let judged = now >= state.setup.judged;
                let is_warm = |pacing: &Pacing| pacing.queues.borrow_mut().is_warm(now);
                if !warm && judged && state.pacing.as_ref().is_none_or(is_warm) {
                    warm = true;
                    state.setup.tell(ThreadEvent::Warm);
                }
                if now > state.gives_up_at() {
                    break;
                }
            }
        }
    }
    state.look(state.now());
    helpers.shutdown().await;
    tasks.abort_all();
    while tasks.join_next().await.is_some() {}
    Ok(sessions)
}

fn no_timer(e: &io::Error) -> Error {
    Error::failed(format!("cannot wait for a kernel timer: {e}"))
}

/// Starts what runs beside the clients: probes of the turn delay, and what wakes clients at their
/// instants. They end only with an error.
fn helpers(state: &Rc<ThreadState>) -> JoinSet<io::Result<Infallible>> {
    let mut tasks = JoinSet::new();
    let of = Rc::clone(state);
    tasks.spawn_local(async move { probe(&of).await });
    if state.pacing.is_some() {
        let of = Rc::clone(state);
        tasks.spawn_local(async move {
            of.pacing.as_ref().expect("an open loop").dispatch(of.origin).await
        });
    }
    if state.pauses.is_some() {
        let of = Rc::clone(state);
        tasks.spawn_local(async move {
            of.pauses.as_ref().expect("a closed loop with pauses").dispatch(of.origin).await
        });
    }
    tasks
}

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
    /// Of an open loop, about: arrivals that wait, and clients at work, for who shows them.
    pub queue: [AtomicU64; 2],
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
    /// It comes before the end that follows from it.
    Refused(Refused),
    Done(usize, Box<ThreadCounts>),
    Broken(Error),
}

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

/// The state that the clients of one engine thread share. Nothing here is borrowed across an await.
pub(crate) struct ThreadState {
    pub setup: Arc<StepSetup>,
    pub index: usize,
    pub origin: Instant,
    pub inbox: Inbox,
    pub window: Cell<Window>,
    pub recorder: RefCell<Recorder>,
    pub ops_by_table: Vec<Cell<u64>>,
    pub ledger: RefCell<Vec<LedgerEntry>>,
    /// By table: the most rows that a range has lacked, as the server counts them.
    pub lacking: Vec<Cell<u64>>,
    pub failures: RefCell<Failures>,
    pub watch: RefCell<SelfWatch>,
    pub picks: Vec<Vec<Sampler>>,
    /// By table: SQL of each statement around its parameters; empty unless in text mode.
    pub texts: Vec<Vec<Vec<String>>>,
    pub pacing: Option<Pacing>,
    pub pauses: Option<Pauses>,
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
    pub pending: RefCell<Vec<Pending>>,
    pub ops: Cell<u64>,
    /// Its connection is lost and not open again.
    pub offline: Cell<bool>,
    given_up: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl ThreadState {
    /// Makes that of a thread with these clients; within its runtime only.
    fn new(
        setup: &Arc<StepSetup>,
        inbox: Inbox,
        index: usize,
        origin: Instant,
        clients: &[u32],
    ) -> Result<Self> {
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
        let mut recorder = Recorder::new(phases, job.timed_statements, Box::new(sink));
        if job.plan.as_sysbench.is_some() {
            recorder.count_events(job.step.clients);
        }
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
            inbox,
            window: Cell::new(window),
            recorder: RefCell::new(recorder),
            ops_by_table: tables.clone().map(|_| Cell::default()).collect(),
            ledger: RefCell::new(tables.clone().map(entry).collect()),
            lacking: tables.clone().map(|_| Cell::default()).collect(),
            failures: RefCell::default(),
            watch: RefCell::new(SelfWatch::new()),
            picks: tables.clone().map(|t| job.picks(t)).collect(),
            pacing: pacing.transpose()?,
            pauses: job.plan.think.map(|_| Pauses::new(window.end)).transpose()?,
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
        if let Some(pacing) = &self.pacing {
            let busy = self.clients.iter().filter(|client| client.issued.get().is_some()).count();
            let waiting = pacing.waiting(now);
            if waiting > QUEUE_MAX && self.job().plan.as_sysbench.is_some() {
                self.setup.tell(ThreadEvent::Refused(Refused::Queue));
            }
            self.setup.queue[0].store(waiting, Ordering::Relaxed);
            self.setup.queue[1].store(busy as u64, Ordering::Relaxed);
        }
        self.recorder.borrow_mut().roll(now);
    }

    /// Gives the instant from which no op goes on that met an error: sysbench lets it go on when the time
    /// is over, for ever.
    pub(crate) fn ends_at(&self) -> Ns {
        let more = self.job().plan.as_sysbench.as_ref().map_or(Duration::ZERO, |_| limits::DRAIN);
        self.window.get().last.saturating_add(more.as_nanos() as Ns)
    }

    /// Gives the instant at which what is still in flight is given up.
    fn gives_up_at(&self) -> Ns {
        let Window { end, last, .. } = self.window.get();
        match &self.job().plan.as_sysbench {
            None => end.saturating_add(limits::DRAIN.as_nanos() as Ns),
            Some(rules) => {
                rules.grace.map_or(end, |grace| last.saturating_add(grace.as_nanos() as Ns))
            }
        }
    }

    /// Takes one of the ops that all clients share; false after the last one.
    #[inline]
    pub(crate) fn may_begin(&self) -> bool {
        let Some(left) = &self.setup.left else { return true };
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn follow(&self) {
        let window = *self.setup.window.borrow();
        self.window.set(window);
        self.recorder.borrow_mut().set_window(window.start, window.end);
        if let Some(pacing) = &self.pacing {
            pacing.set_window(window);
        }
        if let Some(pauses) = &self.pauses {
            pauses.set_end(window.end);
        }
    }

    /// Gives what wakes clients at their instants; None where they only wait for answers.
    fn alarm(&self) -> Option<&Alarm> {
        let pacing = self.pacing.as_ref().map(|pacing| &pacing.alarm);
        pacing.or(self.pauses.as_ref().map(|pauses| &pauses.alarm))
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
        let spun = self.alarm().map_or(0, |alarm| alarm.spun.get());
        self.watch.borrow_mut().look(now, self.window.get(), spun);
    }

    /// Gives up ops that are in flight for too long, and after the window's end also connections
    /// that are not open again.
    fn give_up(&self, now: Ns) {
        let limit = self.job().plan.policy.op_timeout.map(|limit| limit.as_nanos() as Ns);
        let over = now >= self.ends_at();
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

    /// Counts an op that failed for good.
    pub(crate) fn failed(&self, client: &ClientState, issued: Ns, now: Ns, error: &OpError) {
        let in_doubt = self.begins_again(client, now, error);
        let measured = client.measured.get();
        let mut recorder = self.recorder.borrow_mut();
        let mut failures = self.failures.borrow_mut();
        failures.in_doubt += u64::from(in_doubt);
        if matches!(error, OpError::Timeout(_)) {
            failures.abandoned += 1;
            failures.window_abandoned += u64::from(measured);
            return recorder.abandoned(client.intended.get(), issued, measured, now);
        }
        failures.count(error.count());
        if in_doubt {
            failures.window_in_doubt += u64::from(measured);
            recorder.unresolved(now);
        } else {
            recorder.failed(issued, measured, now);
        }
    }

    /// Tells an error to the watch over outages, and the ledger what it leaves in doubt; returns whether
    /// it leaves something. No op has failed yet: it may begin again.
    pub(crate) fn begins_again(&self, client: &ClientState, now: Ns, error: &OpError) -> bool {
        if !error.leaves_doubt() {
            // The server has refused the writes.
            client.pending.borrow_mut().clear();
        }
        client.issued.set(None);
        add_error(&mut self.failures.borrow_mut().new, now, error.code(), &error.to_string());
        self.enter_doubt(client)
    }

    /// Enters in the ledger what a client's writes left in doubt; returns whether there is something.
    pub(crate) fn enter_doubt(&self, client: &ClientState) -> bool {
        let mut pending = client.pending.borrow_mut();
        for (table, writes, doubt) in pending.iter() {
            let entry = &mut self.ledger.borrow_mut()[*table as usize];
            entry.in_doubt += u64::from(*writes);
            entry.doubt.get_or_insert_default().add(doubt);
        }
        let any = !pending.is_empty();
        pending.clear();
        any
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
            let given_up = self.job().plan.as_sysbench.is_none();
            pacing.queues.borrow_mut().abandon(now, &mut self.recorder.borrow_mut(), given_up);
        }
    }

    pub(crate) fn into_counts(self) -> ThreadCounts {
        self.abandon();
        self.report(Ns::MAX);
        let ended = self.now();
        let spins = self.alarm().is_some();
        self.recorder.into_inner().finish(ended);
        ThreadCounts {
            ops_by_client: self.clients.iter().map(|client| client.ops.get()).collect(),
            ops_by_table: self.ops_by_table.into_iter().map(Cell::into_inner).collect(),
            ledger: self.ledger.into_inner(),
            failures: self.failures.into_inner(),
            usage: vec![self.watch.into_inner().into_usage(spins)],
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

    /// Works until the work ends or is given up after `limit`. What is given up is dropped
    /// where it waits: what it borrowed, such as a session, must not be used again.
    ///
    /// No timer an op: the engine thread looks at the instants of all ops in flight every tick.
    pub(crate) async fn watch<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, OpError> {
        // A task has one waker for life.
        self.waker.replace(Some(poll_fn(|context| Poll::Ready(context.waker().clone())).await));
        let mut work = pin!(work);
        poll_fn(|context| {
            if self.given_up.get() && self.given_up.replace(false) {
                return Poll::Ready(Err(OpError::Timeout(limit)));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await
    }
}

/// Between two probes: some 97 a second, at most 30 us of an idle thread each. No part of a round
/// number, so that they meet nothing that ticks.
const EVERY: Ns = 10_300_000;

pub(crate) struct SelfWatch {
    clock: Option<ThreadClock>,
    /// The first and the last one of the window.
    looks: Option<[Look; 2]>,
    delays: TurnDelays,
    probed: Scheduled,
}

/// Delays, and what is left of them without the time that the thread waited for a core.
type TurnDelays = [Times; 2];

#[derive(Debug, Clone, Copy, Default)]
struct Look {
    at: Ns,
    /// Not parked, since its start.
    busy: Duration,
    scheduled: Option<Scheduled>,
    /// Looking for work, since its start, where clients are woken at their instants.
    spun: Ns,
}

pub(crate) struct ThreadUsage {
    pub share: ThreadShare,
    delays: TurnDelays,
}

fn told([delay, own]: &TurnDelays) -> TurnDelay {
    let tail = stats::highest_known(delay.count());
    let at = |times: &Times| times.percentile_us(f64::from(tail?));
    TurnDelay {
        probes: delay.count(),
        turn_delay_p50_us: delay.percentile_us(50.0),
        turn_delay_p99_us: delay.percentile_us(99.0),
        turn_delay_max_us: delay.max_us(),
        own_delay_p99_us: own.percentile_us(99.0),
        tail_percentile: tail,
        turn_delay_tail_us: at(delay),
        own_delay_tail_us: at(own),
    }
}

pub(crate) fn turns_of_all(threads: &[ThreadUsage]) -> TurnDelay {
    let mut all = [Times::new(), Times::new()];
    for thread in threads {
        all.iter_mut().zip(&thread.delays).for_each(|(sum, times)| sum.merge(times));
    }
    told(&all)
}

impl SelfWatch {
    pub(crate) fn new() -> SelfWatch {
        let clock = ThreadClock::own();
        // A kernel that keeps no account leaves all delays to the thread.
        let probed = clock.as_ref().and_then(ThreadClock::read).unwrap_or_default();
        let delays = [Times::new(), Times::new()];
        SelfWatch { clock, looks: None, delays, probed }
    }

    /// Looks, from the window's start to its end; within the thread's runtime.
    pub(crate) fn look(&mut self, now: Ns, window: Window, spun: Ns) {
        if now < window.start {
            return;
        }
        let busy = Handle::current().metrics().worker_total_busy_duration(0);
        let scheduled = self.clock.as_ref().and_then(ThreadClock::read);
        let look = Look { at: now, busy, scheduled, spun };
        // The last one is the first after the end: a thread that did not look for long at the end
        // was busy or waited.
        let [_, last] = self.looks.get_or_insert([look; 2]);
        if last.at <= window.end {
            *last = look;
        }
    }

    /// Counts the instants from `due` on that have passed; returns the next one.
    /// `parked` says that the thread had nothing to do at some time since the probe before.
    fn turn(&mut self, mut due: Ns, now: Ns, window: Window, parked: bool) -> Ns {
        let probed = self.clock.as_ref().and_then(ThreadClock::read).unwrap_or(self.probed);
        let since = probed.since(&self.probed);
        self.probed = probed;
        while due <= now {
            if (window.start..window.end).contains(&due) {
                let [delay, own] = &mut self.delays;
                delay.record(now - due);
                own.record(own_delay(now - due, since, parked));
            }
            due = due.saturating_add(EVERY);
        }
        due
    }

    pub(crate) fn into_usage(self, spins: bool) -> ThreadUsage {
        // Without a window there was nothing to see.
        let [first, last] = self.looks.unwrap_or_default();
        let wall = Duration::from_nanos(last.at.saturating_sub(first.at));
        let scheduled = first.scheduled.zip(last.scheduled).map(|(first, last)| last.since(&first));
        let (ran, waited) = (scheduled.map(|s| s.ran), scheduled.map(|s| s.waited));
        let spun = Duration::from_nanos(last.spun.saturating_sub(first.spun));
        let (work, of) = match ran.zip(waited) {
            Some((ran, waited)) if spins => (ran.saturating_sub(spun), wall.saturating_sub(waited)),
            // The runtime's account lacks the system calls that ask for ready sockets, also those
            // that find some at once; the scheduler's lacks the time that the thread was stopped.
            _ => (last.busy.saturating_sub(first.busy).max(ran.unwrap_or(Duration::ZERO)), wall),
        };
        let busy = if of.is_zero() { 0.0 } else { work.as_secs_f64() / of.as_secs_f64() };
        let share = ThreadShare {
            busy: busy.min(1.0),
            wall_s: wall.as_secs_f64(),
            cpu_s: ran.as_ref().map(Duration::as_secs_f64),
            spun_s: spun.as_secs_f64(),
            descheduled_s: waited.as_ref().map(Duration::as_secs_f64),
            turns: told(&self.delays),
        };
        ThreadUsage { share, delays: self.delays }
    }
}

/// Takes waiting for a core off a delay, by what the thread did since the probe before.
///
/// Not all that it waited lies in the delay. A thread that always had something to do waited as much
/// in it as in the rest of the time; one that had nothing to do ran before the instant was due.
fn own_delay(delay: Ns, since: Scheduled, parked: bool) -> Ns {
    let (ran, waited) = (since.ran.as_nanos() as Ns, since.waited.as_nanos() as Ns);
    if parked {
        return delay.saturating_sub(waited);
    }
    let part = ran as f64 / (ran + waited).max(1) as f64;
    let shared = if waited > 0 { (delay as f64 * part) as Ns } else { delay };
    shared.max(delay.saturating_sub(waited))
}

/// Probes for ever.
async fn probe(thread: &ThreadState) -> io::Result<Infallible> {
    let timer = Timer::new()?;
    let mut due = thread.now().saturating_add(EVERY);
    let mut parks = Handle::current().metrics().worker_park_count(0);
    loop {
        timer.set(thread.origin + Duration::from_nanos(due));
        timer.expired().await?;
        let parks_now = Handle::current().metrics().worker_park_count(0);
        // Once is for this timer.
        let parked = parks_now > parks + 1;
        parks = parks_now;
        due = thread.watch.borrow_mut().turn(due, thread.now(), thread.window.get(), parked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    fn run<T: 'static>(work: impl Future<Output = T> + 'static) -> Result<T, OpError> {
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

    fn watch() -> SelfWatch {
        SelfWatch { clock: None, ..SelfWatch::new() }
    }

    fn window(start: Ns, end: Ns) -> Window {
        Window { start, end, early: false, last: end }
    }

    #[test]
    fn every_instant_of_a_stall_counts_with_its_own_delay() {
        let mut watch = watch();
        let due = watch.turn(EVERY, 3 * EVERY, window(0, Ns::MAX), false);
        assert_eq!(due, 4 * EVERY);
        let delay = watch.delays[0].distribution();
        assert_eq!((delay.count, delay.max_us), (3, Some(20_600.0)));
        assert_eq!(delay.mean_us, Some(10_300.0));
        assert_eq!(watch.turn(due, due - 1, window(0, Ns::MAX), false), due, "woken early");
        assert_eq!(watch.delays[0].count(), 3);
    }

    #[test]
    fn only_instants_inside_the_window_count() {
        let mut watch = watch();
        watch.turn(EVERY, 10 * EVERY, window(3 * EVERY, 5 * EVERY), false);
        assert_eq!(watch.delays[0].count(), 2);
    }

    #[test]
    fn waiting_for_a_core_is_no_delay_of_its_own_delay() {
        let since = |ran, waited| {
            let us = Duration::from_micros;
            Scheduled { ran: us(ran), waited: us(waited) }
        };
        assert_eq!(
            own_delay(6_000_000, since(20, 0), false),
            6_000_000,
            "stopped, or its core was"
        );
        assert_eq!(
            own_delay(6_000_000, since(0, 6_000), false),
            0,
            "idle, woken, and another one had the core"
        );
        assert_eq!(own_delay(500_000, since(5_000, 5_000), false), 250_000, "busy on half a core");
        assert_eq!(
            own_delay(90_000_000, since(300, 1_000), false),
            89_000_000,
            "stopped, then waiting"
        );
        assert_eq!(own_delay(5_200_000, since(400, 5_200), true), 0, "ran before it was due");
    }

    fn look(at_ms: Ns, busy: u64, ran: u64, waited: u64, spun: Ns) -> Look {
        let ms = Duration::from_millis;
        Look {
            at: at_ms * 1_000_000,
            busy: ms(busy),
            scheduled: Some(Scheduled { ran: ms(ran), waited: ms(waited) }),
            spun: spun * 1_000_000,
        }
    }

    /// A thread between half a second, 10 ms on a core until then, and a last look.
    fn usage(last: Look, spins: bool) -> ThreadShare {
        let first = look(500, 0, 10, 0, 0);
        SelfWatch { looks: Some([first, last]), ..watch() }.into_usage(spins).share
    }

    #[test]
    fn looking_for_work_is_no_work() {
        let open = usage(look(1500, 600, 910, 100, 720), true);
        // 180 ms of work in the 900 ms in which it could run.
        assert!((open.busy - 0.2).abs() < 1e-9, "{}", open.busy);
        assert_eq!((open.cpu_s, open.descheduled_s), (Some(0.9), Some(0.1)));
        assert!(watch().into_usage(true).share.busy.abs() < 1e-12, "there was no window");
    }

    #[test]
    fn a_closed_loop_is_busy_by_the_larger_of_both_accounts() {
        let busy = |last| usage(last, false).busy;
        assert!((busy(look(1500, 600, 910, 50, 0)) - 0.9).abs() < 1e-9, "asking for ready sockets");
        assert!((busy(look(1500, 600, 210, 50, 0)) - 0.6).abs() < 1e-9, "stopped under way");
        let untold = Look { scheduled: None, ..look(1500, 600, 0, 0, 0) };
        assert!((busy(untold) - 0.6).abs() < 1e-9);
    }
}
