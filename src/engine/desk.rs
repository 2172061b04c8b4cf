//! What the clients of an engine thread share, and what of a client outlives its task.

use std::cell::{Cell, RefCell};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::compile::Pick;
use super::job::Job;
use super::ledger::{Account, Pending};
use super::mirror::Mirror;
use super::mishap::Mishaps;
use super::opening::Doors;
use super::pace::Pace;
use crate::observe::recorder::{Ns, Recorder};

/// In no call.
const IDLE: Ns = Ns::MAX;

/// What the clients of one engine thread share. Nothing here is borrowed across an await.
pub(crate) struct Desk {
    pub(crate) job: std::sync::Arc<Job>,
    pub(crate) origin: Instant,
    /// `Ns::MAX` while it is not decided.
    pub(crate) window_start: Cell<Ns>,
    /// Set by the clock or by whoever ends the step early.
    pub(crate) window_end: Cell<Ns>,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) accounts: RefCell<Vec<Account>>,
    pub(crate) mirror: RefCell<Mirror>,
    pub(crate) mishaps: Mishaps,
    /// For connections that are lost.
    pub(crate) doors: Doors,
    /// By table: what ids are drawn from.
    pub(crate) picks: Vec<Vec<Pick>>,
    /// By table: SQL of each statement around its parameters; empty unless in text mode.
    pub(crate) texts: Vec<Vec<Vec<String>>>,
    /// The open loop's queues; None is a closed loop.
    pub(crate) pace: Option<Pace>,
}

impl Desk {
    /// Now on the step's clock.
    #[inline]
    pub(crate) fn now(&self) -> Ns {
        self.origin.elapsed().as_nanos() as Ns
    }

    /// Gives up ops that are in flight for too long, and after the window's end also connections
    /// that are not open again.
    pub(crate) fn give_up(&self, seats: &[std::rc::Rc<Seat>], now: Ns) {
        let limit = self.job.policy.op_timeout.map(|limit| limit.as_nanos() as Ns);
        let over = now >= self.window_end.get();
        if limit.is_none() && !over {
            return;
        }
        for seat in seats {
            let age = seat.in_flight().map(|issued| now.saturating_sub(issued));
            let late = age.zip(limit).is_some_and(|(age, limit)| age >= limit);
            if late || (over && seat.offline.get()) {
                seat.give_up();
            }
        }
    }

    /// The longest that an op may take.
    pub(crate) fn op_timeout(&self) -> Duration {
        self.job.policy.op_timeout.unwrap_or(Duration::MAX)
    }
}

/// The part of a client that outlives its task.
#[derive(Debug)]
pub(crate) struct Seat {
    /// From 0, over all threads.
    pub(crate) client: u32,
    /// From 0, in its thread.
    pub(crate) place: usize,
    /// When the op in flight was due; None in a closed loop.
    pub(crate) intended: Cell<Option<Ns>>,
    /// When the op in flight was issued.
    pub(crate) issued: Cell<Ns>,
    /// Whether the client is in the window: decided before an op, and the op's for all of it.
    pub(crate) measured: Cell<bool>,
    /// What is in doubt if the answer never comes.
    pub(crate) pending: Cell<Pending>,
    /// Ops of the window.
    pub(crate) ops: Cell<u64>,
    /// Its connection is lost and not open again.
    pub(crate) offline: Cell<bool>,
    given_up: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Seat {
    pub(crate) fn new(client: u32, place: usize) -> Seat {
        Seat {
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

    /// Ends what its client waits for (see `watched`).
    pub(crate) fn give_up(&self) {
        self.given_up.set(true);
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Whom to wake for that.
    pub(crate) fn sits(&self, waker: Waker) {
        self.waker.replace(Some(waker));
    }

    /// Whether somebody asked for that; once.
    #[inline]
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.get() && self.given_up.replace(false)
    }

    /// When the op in flight was issued, if there is one.
    pub(crate) fn in_flight(&self) -> Option<Ns> {
        Some(self.issued.get()).filter(|issued| *issued != IDLE)
    }

    /// The op in flight is accounted for.
    pub(crate) fn settle(&self) {
        self.issued.set(IDLE);
    }
}
