//! One engine thread: a `current_thread` runtime, its share of the clients, one recorder.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql_async::Opts;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use super::client::{self, Ready};
use super::desk::{Desk, Seat};
use super::errors::{Errors, OpError};
use super::job::Job;
use super::ledger::Account;
use super::mirror::{Mirror, Seen, probe};
use super::pace::{self, NEVER, Pace};
use crate::error::{Error, Result};
use crate::measure::recorder::{Interval, Ns, Phases, Recorder};
use crate::mysql::session::Session;
use crate::mysql::target::Target;
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
    pub(crate) target: Arc<Target>,
    pub(crate) opts: Opts,
    pub(crate) phases: Phases,
    /// Bounds the logins under way over all threads.
    pub(crate) logins: Arc<Semaphore>,
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
    /// The thread is done, connections closed.
    Done(usize, Box<End>),
    /// The thread could not go on for its own reasons.
    Broken(Error),
}

/// What a thread counted.
#[derive(Debug, Default)]
pub(crate) struct End {
    pub(crate) ops_by_client: Vec<u64>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) errors: Errors,
    pub(crate) abandoned: u64,
    /// What it saw of itself; None where there was no step.
    pub(crate) seen: Option<Seen>,
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
    let last = match runtime.block_on(step(order, index, clients)) {
        Ok(end) => News::Done(index, Box::new(end)),
        Err(error) => News::Broken(error),
    };
    // What hangs in a goodbye is left behind.
    runtime.shutdown_timeout(Duration::ZERO);
    // Nobody listens only when the conductor is gone, and the process with it.
    let _ = news.send(last);
}

async fn step(order: &Order, index: usize, clients: &[u32]) -> Result<End> {
    let seats: Vec<Rc<Seat>> =
        clients.iter().zip(0..).map(|(c, place)| Rc::new(Seat::new(*c, place))).collect();
    let ready = open_all(order, &seats).await;
    let mut go = order.go.clone();
    if ready.len() == seats.len() {
        let _ = order.news.send(News::Ready);
    }
    let start = go.wait_for(|go| *go != Go::Wait).await.map(|go| *go);
    let Ok(Go::Start(origin)) = start else {
        close_all(ready.into_iter().map(Ready::into_session).collect()).await;
        return Ok(End::default());
    };
    let desk = Rc::new(desk(order, index, origin, clients)?);
    let (sessions, abandoned) = work(order, &desk, &seats, ready).await?;
    let ended = desk.now();
    let desk = Rc::into_inner(desk)
        .ok_or_else(|| Error::failed("a client outlived its step; please report this"))?;
    desk.recorder.into_inner().finish(ended)?;
    close_all(sessions).await;
    Ok(End {
        ops_by_client: seats.iter().map(|s| s.ops.get()).collect(),
        accounts: desk.accounts.into_inner(),
        errors: desk.errors.into_inner(),
        abandoned,
        seen: Some(desk.mirror.into_inner().into_seen(desk.pace.is_some())),
        ended,
        paced: desk.pace.map(Pace::into_counts),
    })
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
    let tables = 0..job.tables.count;
    Ok(Desk {
        origin,
        window_start: Cell::new(window.start),
        window_end: Cell::new(window.end),
        recorder: RefCell::new(recorder),
        accounts: RefCell::new(vec![Account::default(); job.tables.count as usize]),
        errors: RefCell::default(),
        mirror: RefCell::new(Mirror::new()?),
        picks: tables.clone().map(|t| job.picks(t)).collect(),
        pace: paced
            .then(|| Pace::new(&job, clients, order.threads, window, order.warmup))
            .transpose()?,
        texts: if job.text { tables.map(|t| job.text_pieces(t)).collect() } else { Vec::new() },
        job,
    })
}

/// Opens a connection for each seat; fewer come back when one fails or the step is cancelled.
async fn open_all(order: &Order, seats: &[Rc<Seat>]) -> Vec<Ready> {
    let opening: Vec<JoinHandle<Option<Ready>>> =
        seats.iter().map(|s| tokio::task::spawn_local(open_one(order.clone(), s.client))).collect();
    let mut ready = Vec::with_capacity(opening.len());
    for task in opening {
        match task.await {
            Ok(Some(one)) => ready.push(one),
            Ok(None) => {}
            Err(panic) => {
                let text = format!("the driver panicked on a login: {}", panic_text(panic));
                let _ = order.news.send(News::NotOpened(Error::server(text)));
            }
        }
    }
    ready
}

async fn open_one(order: Order, client: u32) -> Option<Ready> {
    let mut go = order.go.clone();
    let turn = order.opening + Duration::from_secs(1) * client / limits::CONNECTS_PER_S;
    tokio::time::sleep_until(turn.into()).await;
    let _permit = order.logins.acquire().await.ok()?;
    if *go.borrow_and_update() == Go::Cancel {
        return None;
    }
    let opened = client::open(&order.job, client, &order.target, &order.opts);
    // A cancelled step must not wait for a server that hangs.
    let opened = tokio::select! {
        opened = opened => opened,
        _ = go.wait_for(|go| *go == Go::Cancel) => return None,
    };
    let (news, ready) = match opened {
        Ok(ready) => (News::Opened, Some(ready)),
        Err(error) => (News::NotOpened(error), None),
    };
    let _ = order.news.send(news);
    ready
}

type Ended = Result<std::result::Result<Session, OpError>>;

/// Runs the clients to the end of the drain: their sessions, what was given up.
async fn work(
    order: &Order,
    desk: &Rc<Desk>,
    seats: &[Rc<Seat>],
    ready: Vec<Ready>,
) -> Result<(Vec<Session>, u64)> {
    tokio::time::sleep_until(desk.origin.into()).await;
    let mut tasks: JoinSet<(u32, Ended)> = JoinSet::new();
    let mut seat_of = HashMap::with_capacity(seats.len());
    for (seat, ready) in seats.iter().zip(ready) {
        let run = client::run(Rc::clone(desk), Rc::clone(seat), ready);
        let client = seat.client;
        let task = tasks.spawn_local(async move { (client, run.await) });
        seat_of.insert(task.id(), Rc::clone(seat));
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
                    Ok(session) => sessions.push(session),
                    Err(error) => { let _ = order.news.send(News::Abort { client, error }); }
                },
                Some(Err(panic)) => {
                    let seat = seat_of.get(&panic.id());
                    let error = OpError::Driver(panic_text(panic));
                    driver_panic(order, desk, seat, error)?;
                }
            },
            Some(Ok(failed)) = aside.join_next() => return Err(failed),
            Ok(()) = ticks.changed() => {
                let now = desk.now();
                follow(order, desk)?;
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
    let abandoned = abandon(&mut tasks, desk, seats).await?;
    Ok((sessions, abandoned))
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
fn follow(order: &Order, desk: &Desk) -> Result<()> {
    let window = order.window.read();
    if window.start != desk.window_start.get() {
        desk.window_start.set(window.start);
        desk.recorder.borrow_mut().start_window(window.start);
    }
    if window.end != desk.window_end.get() {
        desk.window_end.set(window.end);
        desk.recorder.borrow_mut().end_window(window.end)?;
    }
    if let Some(pace) = &desk.pace {
        pace.set_window(window);
    }
    Ok(())
}

/// A client whose driver panicked: its op failed, and what it wrote is in doubt.
fn driver_panic(order: &Order, desk: &Desk, seat: Option<&Rc<Seat>>, error: OpError) -> Result<()> {
    desk.errors.borrow_mut().add(&error);
    let Some(seat) = seat else { return Ok(()) };
    let now = desk.now();
    let issued = seat.in_flight().unwrap_or(now);
    desk.recorder.borrow_mut().failed(issued, seat.measured.get(), now)?;
    client::doubt(desk, seat);
    seat.settle();
    let _ = order.news.send(News::Abort { client: seat.client, error });
    Ok(())
}

/// Gives up what is still in flight: the connections go with the tasks, nothing is used again.
async fn abandon(
    tasks: &mut JoinSet<(u32, Ended)>,
    desk: &Desk,
    seats: &[Rc<Seat>],
) -> Result<u64> {
    tasks.abort_all();
    while tasks.join_next().await.is_some() {}
    let now = desk.now();
    let mut abandoned = 0;
    for seat in seats {
        if let Some(issued) = seat.in_flight() {
            abandoned += 1;
            let (intended, measured) = (seat.intended.get(), seat.measured.get());
            desk.recorder.borrow_mut().abandoned(intended, issued, measured, now)?;
            client::doubt(desk, seat);
        }
    }
    if let Some(pace) = &desk.pace {
        pace.abandon(now, &mut desk.recorder.borrow_mut())?;
    }
    Ok(abandoned)
}

async fn close_all(sessions: Vec<Session>) {
    let mut goodbyes = JoinSet::new();
    for session in sessions {
        goodbyes.spawn_local(session.close(limits::COURTESY));
    }
    while goodbyes.join_next().await.is_some() {}
}

fn panic_text(panic: JoinError) -> String {
    let Ok(payload) = panic.try_into_panic() else { return "cancelled".to_owned() };
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no text".to_owned())
}
