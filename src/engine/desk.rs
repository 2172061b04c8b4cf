//! What the clients of an engine thread share, and what of a client outlives its task.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use super::compile::Pick;
use super::errors::Errors;
use super::job::Job;
use super::ledger::Account;
use super::mirror::Mirror;
use super::pace::Pace;
use crate::measure::recorder::{Ns, Recorder};

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
    pub(crate) errors: RefCell<Errors>,
    pub(crate) mirror: RefCell<Mirror>,
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
    /// What is in doubt if the answer never comes: so many writes of a table.
    pub(crate) pending: Cell<(u32, u32)>,
    /// Ops of the window.
    pub(crate) ops: Cell<u64>,
}

impl Seat {
    pub(crate) fn new(client: u32, place: usize) -> Seat {
        Seat {
            client,
            place,
            intended: Cell::new(None),
            issued: Cell::new(IDLE),
            measured: Cell::new(false),
            pending: Cell::new((0, 0)),
            ops: Cell::new(0),
        }
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
