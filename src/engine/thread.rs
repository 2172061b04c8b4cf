//! One engine thread: a `current_thread` runtime, its share of the clients, one recorder. It opens
//! connections, waits for the start, runs its clients through all phases, and drains.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::runtime::{Builder, Handle, LocalOptions};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use super::alarm::NEVER;
use super::client;
use super::connection::{self, Connection, close_all, pauses};
use super::pacing::Pacing;
use super::program::{Goodbye, ThreadPrograms};
use super::self_watch::{EVERY, SharedWatch};
use super::setup::{Go, StepSetup, ThreadEvent};
use super::state::ThreadState;
use crate::error::{Error, Result};
use crate::mysql::wire::Inbox;
use crate::observe::{Ns, Timer};
use crate::plan::limits;

/// The clients of a group that a thread has, by their numbers in the group.
pub(crate) struct GroupShare {
    pub setup: Arc<StepSetup>,
    pub clients: Vec<u32>,
}

/// Runs as the body of an engine thread, with its share of every group's clients, the measured ones first.
pub(crate) fn run(groups: &[GroupShare], index: usize) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = runtime.map_err(|e| {
        Error::failed(format!("cannot make an engine thread's runtime: {e}"))
            .hint("raise the limits on descriptors and processes (ulimit -n, -u)")
    })?;
    let ended = runtime.block_on(step(groups, index));
    // A goodbye that hangs is left behind.
    runtime.shutdown_timeout(Duration::ZERO);
    ended
}

async fn step(groups: &[GroupShare], index: usize) -> Result<()> {
    let (inbox, setup) = (Inbox::default(), &groups[0].setup);
    let opening = groups.iter().map(|group| group.open_all(&inbox, index));
    let opened = try_join_all(opening).await?;
    let mut go = setup.go.clone();
    let start = go.wait_for(|go| *go != Go::Wait).await.map(|go| *go);
    let Ok(Go::Start(start)) = start else {
        let opened = opened.into_iter().flatten();
        let goodbyes = opened.flat_map(|opened| opened.program.close(opened.session, false));
        close_all(goodbyes.collect()).await;
        return Ok(());
    };
    let origin = setup.opening + Duration::from_nanos(start);
    let clients = groups.iter().map(|group| group.clients.len()).sum();
    let watch = Rc::new(SharedWatch::new(groups.len(), clients));
    let state = |group: &GroupShare| {
        let shared = (inbox.clone(), &watch);
        ThreadState::new(&group.setup, shared, index, origin, &group.clients).map(Rc::new)
    };
    let states = groups.iter().map(state).collect::<Result<Vec<_>>>()?;
    let mut probing = tokio::task::spawn_local(probe(watch, Arc::clone(setup), origin));
    let working = states.into_iter().zip(opened).map(|(state, opened)| end(state, opened));
    let mut working = pin!(try_join_all(working));
    let sessions = tokio::select! {
        sessions = &mut working => sessions?,
        ended = &mut probing => match ended {
            // All groups have ended.
            Ok(Ok(())) => working.await?,
            Ok(Err(e)) => return Err(no_timer(&e)),
            Err(panic) => return Err(helper_panic(&panic)),
        },
    };
    // Not while the server's counters are read: what a connection has counted, MySQL 5.6 counts
    // twice while it is being closed.
    let _ = go.wait_for(|go| *go == Go::Cancel).await;
    close_all(sessions.into_iter().flatten().collect()).await;
    Ok(())
}

/// Runs a group's clients to their end, and tells what they counted.
async fn end(state: Rc<ThreadState>, connections: Vec<Connection>) -> Result<Vec<Goodbye>> {
    let sessions = work(&state, connections).await?;
    let state = Rc::into_inner(state).expect("all tasks have ended");
    let (setup, index) = (Arc::clone(&state.setup), state.index);
    setup.tell(index, ThreadEvent::Done(Box::new(state.into_counts())));
    Ok(sessions)
}

impl GroupShare {
    /// Opens a connection for each client; fewer come back when one fails or the step is cancelled.
    async fn open_all(&self, inbox: &Inbox, index: usize) -> Result<Vec<Connection>> {
        let programs = ThreadPrograms::new(&self.setup, index)?;
        let open = |client: &u32| {
            let (setup, inbox, programs) =
                (Arc::clone(&self.setup), inbox.clone(), programs.clone());
            tokio::task::spawn_local(open_one(setup, inbox, programs, index, *client))
        };
        let opening: Vec<JoinHandle<Option<Connection>>> = self.clients.iter().map(open).collect();
        let mut opened = Vec::with_capacity(opening.len());
        for task in opening {
            opened.extend(task.await.expect("a log-in does not panic"));
        }
        Ok(opened)
    }
}

/// Waits for a server that is just gone, where lost connections are opened again; never for a lasting refusal.
async fn open_one(
    setup: Arc<StepSetup>,
    inbox: Inbox,
    programs: ThreadPrograms,
    index: usize,
    client: u32,
) -> Option<Connection> {
    let mut go = setup.go.clone();
    let turn = setup.job.first_client + client;
    let turn = setup.opening + Duration::from_secs(1) * turn / limits::CONNECTS_PER_S;
    let waits = setup.job.plan.policy.reconnects();
    let opening = async {
        tokio::time::sleep_until(turn.into()).await;
        let (began, mut pauses) = (Instant::now(), pauses(client, 0));
        loop {
            match connection::open(&setup, &inbox, &programs, client).await {
                Err(e) if waits && e.error.may_pass() && began.elapsed() < limits::OUTAGE => {
                    setup.tell(index, ThreadEvent::Waiting(e.error));
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
    let (event, opened) = match opened {
        Ok(opened) => (ThreadEvent::Opened, Some(opened)),
        Err(error) => (ThreadEvent::NotOpened(error), None),
    };
    setup.tell(index, event);
    opened
}

async fn work(state: &Rc<ThreadState>, connections: Vec<Connection>) -> Result<Vec<Goodbye>> {
    // Without a warm-up the window opens here: tokio's timers would be a millisecond or two late.
    let start = Timer::new().map_err(|e| no_timer(&e))?;
    while state.origin > Instant::now() {
        start.set(state.origin);
        start.expired().await.map_err(|e| no_timer(&e))?;
    }
    let mut tasks: JoinSet<Vec<Goodbye>> = JoinSet::new();
    for (client, connection) in state.clients.iter().zip(connections) {
        tasks.spawn_local(client::run(Rc::clone(state), Rc::clone(client), connection));
    }
    let mut helpers = helpers(state);
    let mut warm = state.window.get().start != NEVER;
    let mut ticks = state.setup.window.clone();
    ticks.mark_unchanged();
    let mut sessions = Vec::with_capacity(state.clients.len());
    loop {
        tokio::select! {
            ended = tasks.join_next() => match ended {
                None => break,
                Some(Ok(goodbyes)) => sessions.extend(goodbyes),
                Some(Err(panic)) => return Err(Error::failed(format!("a client: {panic}"))),
            },
            // Without it an open loop would issue nothing more, and a probe see nothing.
            Some(ended) = helpers.join_next() => return Err(match ended {
                Ok(Err(e)) => no_timer(&e),
                Err(panic) => helper_panic(&panic),
            }),
            Ok(()) = ticks.changed() => {
                let now = state.now();
                state.tick(now);
                let judged = now >= state.setup.warm_check;
                let is_warm = |pacing: &Pacing| pacing.queues.borrow_mut().is_warm(now);
                if !warm && judged && state.pacing.as_ref().is_none_or(is_warm) {
                    warm = true;
                    state.tell(ThreadEvent::Warm);
                }
                if now > state.gives_up_at() {
                    break;
                }
            }
        }
    }
    if !warm {
        // A thread without clients of an open loop has no queue.
        state.tell(ThreadEvent::Warm);
    }
    state.sample(state.now());
    helpers.shutdown().await;
    tasks.abort_all();
    while tasks.join_next().await.is_some() {}
    Ok(sessions)
}

fn helper_panic(panic: &JoinError) -> Error {
    Error::failed(format!("what runs beside the clients: {panic}"))
}

fn no_timer(e: &io::Error) -> Error {
    Error::failed(format!("cannot wait for a kernel timer: {e}"))
}

/// The alarm clocks: they end only with an error.
fn helpers(state: &Rc<ThreadState>) -> JoinSet<io::Result<Infallible>> {
    let mut tasks = JoinSet::new();
    if state.pacing.is_some() {
        let of = Rc::clone(state);
        tasks.spawn_local(async move {
            of.pacing.as_ref().expect("an open loop").dispatch(of.origin).await
        });
    }
    if state.pauses.is_some() {
        let of = Rc::clone(state);
        tasks.spawn_local(async move {
            of.pauses.as_ref().expect("clients that pause").dispatch(of.origin).await
        });
    }
    tasks
}

/// Probes the turn delay until all groups of the thread have ended.
async fn probe(watch: Rc<SharedWatch>, setup: Arc<StepSetup>, origin: Instant) -> io::Result<()> {
    let timer = Timer::new()?;
    let now = || origin.elapsed().as_nanos() as Ns;
    let mut due = now().saturating_add(EVERY);
    let mut parks = Handle::current().metrics().worker_park_count(0);
    loop {
        timer.set(origin + Duration::from_nanos(due));
        timer.expired().await?;
        let parks_now = Handle::current().metrics().worker_park_count(0);
        // Once is for this timer.
        let parked = parks_now > parks + 1;
        parks = parks_now;
        let window = *setup.window.borrow();
        match watch.turn(due, now(), window, parked) {
            Some(next) => due = next,
            None => return Ok(()),
        }
    }
}
