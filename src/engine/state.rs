//! What the clients of an engine thread share, and what of a client outlives its task.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use super::connect::Connector;
use super::errors::{Failures, OpError};
use super::job::{Job, Pick};
use super::ledger::{Account, Pending};
use super::pacing::Pacing;
use super::turn_delay::SelfWatch;
use crate::mysql::session::Failure;
use crate::observe::recorder::{Ns, Recorder};

const IDLE: Ns = Ns::MAX;

/// The state that the clients of one engine thread share. Nothing here is borrowed across an await.
pub(crate) struct ThreadState {
    pub job: Arc<Job>,
    pub origin: Instant,
    pub window_start: Cell<Ns>,
    /// Set by the clock or by whoever ends the step early.
    pub window_end: Cell<Ns>,
    pub recorder: RefCell<Recorder>,
    pub accounts: RefCell<Vec<Account>>,
    pub failures: RefCell<Failures>,
    pub watch: RefCell<SelfWatch>,
    pub connector: Connector,
    /// By table: what ids are drawn from.
    pub picks: Vec<Vec<Pick>>,
    /// By table: SQL of each statement around its parameters; empty unless in text mode.
    pub texts: Vec<Vec<Vec<String>>>,
    /// The open loop's queues; None is a closed loop.
    pub pacing: Option<Pacing>,
}

/// The part of a client that outlives its task.
#[derive(Debug)]
pub(crate) struct ClientState {
    /// From 0, over all threads.
    pub client: u32,
    pub place: usize,
    /// When the op in flight was due; None in a closed loop.
    pub intended: Cell<Option<Ns>>,
    pub issued: Cell<Ns>,
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
    #[inline]
    pub(crate) fn now(&self) -> Ns {
        self.origin.elapsed().as_nanos() as Ns
    }

    pub(crate) fn window(&self) -> (Ns, Ns) {
        (self.window_start.get(), self.window_end.get())
    }

    pub(crate) fn op_timeout(&self) -> Duration {
        self.job.policy.op_timeout.unwrap_or(Duration::MAX)
    }

    /// Gives up ops that are in flight for too long, and after the window's end also connections
    /// that are not open again.
    pub(crate) fn give_up(&self, clients: &[std::rc::Rc<ClientState>], now: Ns) {
        let limit = self.job.policy.op_timeout.map(|limit| limit.as_nanos() as Ns);
        let over = now >= self.window_end.get();
        if limit.is_none() && !over {
            return;
        }
        for client in clients {
            let age = client.in_flight().map(|issued| now.saturating_sub(issued));
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
        client.settle();
        let measured = client.measured.get();
        let mut recorder = self.recorder.borrow_mut();
        let mut failures = self.failures.borrow_mut();
        failures.new.add(now, error.code(), &error.to_string());
        if matches!(error, OpError::Timeout(_)) {
            failures.give_up(measured);
            return recorder.abandoned(client.intended.get(), issued, measured, now);
        }
        failures.errors.add(error);
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
        self.failed(client, client.in_flight().unwrap_or(now), now, &error);
        error
    }

    pub(crate) fn refused(&self, failure: Failure) {
        self.failures.borrow_mut().refused(self.now(), failure);
    }

    /// Gives up at the end of the drain what is in flight.
    pub(crate) fn abandon(&self, client: &ClientState, now: Ns) {
        let Some(issued) = client.in_flight() else { return };
        self.doubt(client);
        let (intended, measured) = (client.intended.get(), client.measured.get());
        self.failures.borrow_mut().give_up(measured);
        self.recorder.borrow_mut().abandoned(intended, issued, measured, now);
    }

    /// Counts the writes that a lost or abandoned answer leaves in doubt; returns whether there are
    /// any.
    fn doubt(&self, client: &ClientState) -> bool {
        let pending = client.pending.replace(Pending::Nothing);
        let Some((table, writes, doubt)) = pending.doubt(&self.job) else { return false };
        self.failures.borrow_mut().in_doubt += 1;
        self.accounts.borrow_mut()[table as usize].doubt(writes, &doubt);
        true
    }
}

impl ClientState {
    pub(crate) fn new(client: u32, place: usize) -> ClientState {
        ClientState {
            client,
            place,
            intended: Cell::new(None),
            issued: Cell::new(IDLE),
            measured: Cell::new(false),
            pending: Cell::new(Pending::Nothing),
            ops: Cell::new(0),
            offline: Cell::new(false),
            given_up: Cell::new(false),
            waker: RefCell::new(None),
        }
    }

    fn give_up(&self) {
        self.given_up.set(true);
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    pub(crate) fn in_flight(&self) -> Option<Ns> {
        Some(self.issued.get()).filter(|issued| *issued != IDLE)
    }

    /// Says that the op in flight is accounted for.
    pub(crate) fn settle(&self) {
        self.issued.set(IDLE);
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
    use std::rc::Rc;

    fn run<T: 'static>(work: impl Future<Output = T> + 'static) -> WorkEnd<T> {
        let client = Rc::new(ClientState::new(0, 0));
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
