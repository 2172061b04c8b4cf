//! One engine thread: a `current_thread` runtime, its share of the clients, one recorder.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::client;
use super::desk::{Desk, Seat};
use super::errors::{Errors, OpError};
use super::job::Job;
use super::ledger::Account;
use super::mirror::{Mirror, Seen, probe};
use super::mishap::{Lost, Mishaps};
use super::opening::{Doors, Ready, close_all, open_all};
use super::outages::{Report, Watch};
use super::pace::{self, NEVER, Pace};
use crate::error::{Error, Result};
use crate::mysql::session::Session;
use crate::observe::recorder::{Interval, Ns, Phases, Recorder};
use crate::plan::limits;

/// How often a thread looks whether the step was ended early; clients see the regular end by
/// themselves. Whoever ends a step sets the end so far ahead (see [`NOTICE`]).
///
/// The conductor ticks for all of them: a timer in a thread's own runtime would be looked at in
/// every turn, that is, with few clients, in every operation (2.7 us of it with one client).
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// In this time every thread has seen a new end of the window.
pub(crate) const NOTICE: Duration = Duration::from_millis(50);

/// What an engine thread needs; all of it can cross threads.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) job: Arc<Job>,
    pub(crate) doors: Doors,
    pub(crate) phases: Phases,
    pub(crate) outages: Arc<Mutex<Watch>>,
    /// Logins are spread from here on, by [`limits::CONNECTS_PER_S`].
    pub(crate) opening: Instant,
    pub(crate) go: watch::Receiver<Go>,
    /// Changes every [`TICK`].
    pub(crate) ticks: watch::Receiver<()>,
    /// The window, as far as it is decided.
    pub(crate) window: Arc<Window>,
    /// Engine threads of the step.
    pub(crate) threads: usize,
    /// Planned length of the warm-up.
    pub(crate) warmup: Ns,
    /// With an open loop and a warm-up: when its queues are looked at.
    pub(crate) judged: Ns,
    pub(crate) news: mpsc::UnboundedSender<News>,
}

/// The window on the step's clock, as the conductor decides it while threads run.
#[derive(Debug)]
pub(crate) struct Window {
    start: AtomicU64,
    end: AtomicU64,
    early: AtomicBool,
}

impl Window {
    /// Either may be [`NEVER`]: not decided.
    pub(crate) fn new(start: Ns, end: Ns) -> Window {
        let (start, end) = (AtomicU64::new(start), AtomicU64::new(end));
        Window { start, end, early: AtomicBool::new(false) }
    }

    pub(crate) fn end(&self) -> Ns {
        self.end.load(Ordering::Acquire)
    }

    /// Who sees the start sees the end, too.
    pub(crate) fn set(&self, start: Ns, end: Ns) {
        self.end.store(end, Ordering::Release);
        self.start.store(start, Ordering::Release);
    }

    /// Ends the step before its time.
    pub(crate) fn cut(&self, end: Ns) {
        self.early.store(true, Ordering::Release);
        self.end.store(end, Ordering::Release);
    }

    pub(crate) fn read(&self) -> pace::Window {
        let start = self.start.load(Ordering::Acquire);
        let end = self.end();
        pace::Window { start, end, early: self.early.load(Ordering::Acquire) }
    }
}

/// From the conductor to the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    /// Open connections and wait.
    Wait,
    /// The step's clock starts at this instant.
    Start(Instant),
    /// Close everything.
    Cancel,
}

/// From a thread to the conductor.
pub(crate) enum News {
    /// A client is connected and prepared.
    Opened,
    /// A client waits for a server that is gone.
    Waiting(Error),
    /// A client could not be.
    NotOpened(Error),
    /// All clients of a thread are.
    Ready,
    /// An open loop's queues are not late, or drained: the window may begin.
    Warm,
    /// A finished interval of a thread.
    Interval(usize, Box<Interval>),
    /// The step cannot go on.
    Abort {
        /// From 0.
        client: u32,
        error: OpError,
    },
    /// The thread is done, its connections still open.
    Done(usize, Box<End>),
    /// The thread could not go on for its own reasons.
    Broken(Error),
}

/// What a thread counted.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) ops_by_client: Vec<u64>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) errors: Errors,
    pub(crate) abandoned: u64,
    /// Ops with writes that may have been done or not.
    pub(crate) in_doubt: u64,
    /// Those of the window, and those given up.
    pub(crate) lost: Lost,
    /// Connections opened again.
    pub(crate) reconnects: u64,
    /// What it saw of itself.
    pub(crate) seen: Seen,
    /// When its last op ended.
    pub(crate) ended: Ns,
    /// What became of the arrivals, in an open loop.
    pub(crate) paced: Option<pace::Counts>,
}

/// The body of an engine thread; `clients` are its share, numbered over all threads.
pub(crate) fn run(order: &Order, index: usize, clients: &[u32]) {
    let news = order.news.clone();
    let runtime =
        match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => runtime,
            Err(e) => {
                let error = Error::failed(format!("cannot make an engine thread's runtime: {e}"))
                    .hint("raise the limits on descriptors and processes (ulimit -n, -u)");
                let _ = news.send(News::Broken(error));
                return;
            }
        };
    let ended = runtime.block_on(step(order, index, clients));
    // What hangs in a goodbye is left behind.
    runtime.shutdown_timeout(Duration::ZERO);
    if let Err(error) = ended {
        // Nobody listens only when the conductor is gone, and the process with it.
        let _ = news.send(News::Broken(error));
    }
}

async fn step(order: &Order, index: usize, clients: &[u32]) -> Result<()> {
    let seats: Vec<Rc<Seat>> =
        clients.iter().zip(0..).map(|(c, place)| Rc::new(Seat::new(*c, place))).collect();
    let ready = open_all(order, &seats).await;
    let mut go = order.go.clone();
    if ready.len() == seats.len() {
        let _ = order.news.send(News::Ready);
    }
    let start = go.wait_for(|go| *go != Go::Wait).await.map(|go| *go);
    let Ok(Go::Start(origin)) = start else {
        close_all(ready.into_iter().map(|ready| ready.session).collect()).await;
        return Ok(());
    };
    let desk = Rc::new(desk(order, index, origin, clients)?);
    let sessions = work(order, &desk, &seats, ready, index).await?;
    let ended = desk.now();
    let desk = Rc::into_inner(desk)
        .ok_or_else(|| Error::failed("a client outlived its step; please report this"))?;
    desk.recorder.into_inner().finish(ended)?;
    let end = End {
        ops_by_client: seats.iter().map(|s| s.ops.get()).collect(),
        accounts: desk.accounts.into_inner(),
        errors: desk.mishaps.errors.into_inner(),
        abandoned: desk.mishaps.abandoned.get(),
        in_doubt: desk.mishaps.in_doubt.get(),
        lost: desk.mishaps.lost.get(),
        reconnects: desk.mishaps.reconnects.get(),
        seen: desk.mirror.into_inner().into_seen(desk.pace.is_some()),
        ended,
        paced: desk.pace.map(Pace::into_counts),
    };
    let _ = order.news.send(News::Done(index, Box::new(end)));
    // Not while the server's counters are read: what a connection has counted, MySQL 5.6 counts
    // twice while it is being closed.
    let _ = go.wait_for(|go| *go == Go::Cancel).await;
    close_all(sessions).await;
    Ok(())
}

fn desk(order: &Order, index: usize, origin: Instant, clients: &[u32]) -> Result<Desk> {
    let window = order.window.read();
    let paced = order.job.rate.is_some();
    let job = Arc::clone(&order.job);
    let news = order.news.clone();
    let recorder = Recorder::new(
        order.phases,
        job.timed_statements(),
        Box::new(move |interval| {
            let _ = news.send(News::Interval(index, Box::new(interval)));
        }),
    )?;
    let tables = 0..job.places();
    Ok(Desk {
        origin,
        window_start: Cell::new(window.start),
        window_end: Cell::new(window.end),
        recorder: RefCell::new(recorder),
        accounts: RefCell::new(vec![Account::default(); job.places() as usize]),
        mishaps: Mishaps::default(),
        mirror: RefCell::new(Mirror::new()?),
        doors: order.doors.clone(),
        picks: tables.clone().map(|t| job.picks(t)).collect(),
        pace: paced
            .then(|| Pace::new(&job, clients, order.threads, window, order.warmup))
            .transpose()?,
        texts: if job.text { tables.map(|t| job.text_pieces(t)).collect() } else { Vec::new() },
        job,
    })
}

type Ended = Result<std::result::Result<Option<Session>, OpError>>;

/// Runs the clients to the end of the drain: the sessions that are left.
async fn work(
    order: &Order,
    desk: &Rc<Desk>,
    seats: &[Rc<Seat>],
    ready: Vec<Ready>,
    index: usize,
) -> Result<Vec<Session>> {
    tokio::time::sleep_until(desk.origin.into()).await;
    let mut tasks: JoinSet<(u32, Ended)> = JoinSet::new();
    for (seat, ready) in seats.iter().zip(ready) {
        let run = client::run(Rc::clone(desk), Rc::clone(seat), ready);
        let client = seat.client;
        tasks.spawn_local(async move { (client, run.await) });
    }
    let mut aside = aside(desk);
    let mut warm = desk.window_start.get() != NEVER;
    let mut ticks = order.ticks.clone();
    let mut sessions = Vec::with_capacity(seats.len());
    loop {
        tokio::select! {
            ended = tasks.join_next() => match ended {
                None => break,
                Some(Ok((client, ended))) => match ended? {
                    Ok(session) => sessions.extend(session),
                    Err(error) => { let _ = order.news.send(News::Abort { client, error }); }
                },
                // What the driver does is caught by the client.
                Some(Err(panic)) => return Err(Error::failed(format!("a client: {panic}"))),
            },
            // Without it an open loop would issue nothing more, and a probe see nothing.
            Some(ended) = aside.join_next() => return Err(ended.unwrap_or_else(|panic| {
                Error::failed(format!("what runs beside the clients: {panic}"))
            })),
            Ok(()) = ticks.changed() => {
                let now = desk.now();
                follow(order, desk);
                desk.give_up(seats, now);
                report(order, desk, index, now);
                if !warm && now >= order.judged && desk.pace.as_ref().is_none_or(|p| p.is_warm(now))
                {
                    warm = true;
                    let _ = order.news.send(News::Warm);
                }
                look(now, desk);
                desk.recorder.borrow_mut().roll(now)?;
                if now > desk.window_end.get().saturating_add(limits::DRAIN.as_nanos() as Ns) {
                    break;
                }
            }
        }
    }
    look(desk.now(), desk);
    aside.shutdown().await;
    abandon(&mut tasks, desk, seats).await?;
    report(order, desk, index, Ns::MAX);
    Ok(sessions)
}

/// What the watch over outages needs to know, up to now; the drain has none.
fn report(order: &Order, desk: &Desk, index: usize, now: Ns) {
    let mut recorder = desk.recorder.borrow_mut();
    let (ops, successes) = (recorder.ops(), recorder.take_successes());
    let errors = desk.mishaps.fresh.take();
    let report = Report { now, ops, successes, errors }.within(desk.window_end.get());
    if let Ok(mut watch) = order.outages.lock() {
        watch.report(index, report);
    }
}

/// What runs beside the clients: probes of the turn delay, and what wakes the clients of an open
/// loop. They end only with an error.
fn aside(desk: &Rc<Desk>) -> JoinSet<Error> {
    let no_timer = |e| Error::failed(format!("cannot wait for a kernel timer: {e}"));
    let mut tasks = JoinSet::new();
    let probed = Rc::clone(desk);
    tasks.spawn_local(async move {
        match probe(&probed).await {
            Err(e) => no_timer(e),
            Ok(never) => match never {},
        }
    });
    if desk.pace.is_some() {
        let paced = Rc::clone(desk);
        tasks.spawn_local(async move {
            match &paced.pace {
                Some(pace) => match pace.dispatch(paced.origin).await {
                    Err(e) => no_timer(e),
                    Ok(never) => match never {},
                },
                None => std::future::pending().await,
            }
        });
    }
    tasks
}

fn look(now: Ns, desk: &Desk) {
    let window = (desk.window_start.get(), desk.window_end.get());
    let spun = desk.pace.as_ref().map_or(0, Pace::spun);
    desk.mirror.borrow_mut().look(now, window, spun);
}

/// Takes over a start and an end that were decided or moved.
fn follow(order: &Order, desk: &Desk) {
    let window = order.window.read();
    if window.start != desk.window_start.get() {
        desk.window_start.set(window.start);
        desk.recorder.borrow_mut().start_window(window.start);
    }
    if window.end != desk.window_end.get() {
        desk.window_end.set(window.end);
        desk.recorder.borrow_mut().end_window(window.end);
    }
    if let Some(pace) = &desk.pace {
        pace.set_window(window);
    }
}

/// Gives up what is still in flight: the connections go with the tasks, nothing is used again.
async fn abandon(tasks: &mut JoinSet<(u32, Ended)>, desk: &Desk, seats: &[Rc<Seat>]) -> Result<()> {
    tasks.abort_all();
    while tasks.join_next().await.is_some() {}
    let now = desk.now();
    for seat in seats {
        desk.abandon(seat, now)?;
    }
    match &desk.pace {
        Some(pace) => pace.abandon(now, &mut desk.recorder.borrow_mut()),
        None => Ok(()),
    }
}
