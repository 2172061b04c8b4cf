//! What is written down of ops without a result: off the path of those that have one.

use std::cell::{Cell, RefCell};

use super::desk::{Desk, Seat};
use super::errors::{Errors, OpError};
use super::ledger::Pending;
use super::outages::Fresh;
use crate::error::Result;
use crate::mysql::session::Failure;
use crate::observe::recorder::Ns;

/// Of one engine thread.
#[derive(Debug, Default)]
pub(crate) struct Mishaps {
    pub(crate) errors: RefCell<Errors>,
    /// Since the last report to the watch over outages.
    pub(crate) fresh: RefCell<Fresh>,
    /// Connections opened again.
    pub(crate) reconnects: Cell<u64>,
    /// Ops with writes that may have been done or not.
    pub(crate) in_doubt: Cell<u64>,
    /// Ops given up.
    pub(crate) abandoned: Cell<u64>,
    /// Those of the window.
    pub(crate) lost: Cell<Lost>,
}

/// Ops that were issued in the window, and of which nobody knows what became.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lost {
    /// Not those given up.
    pub(crate) in_doubt: u64,
    pub(crate) abandoned: u64,
}

impl std::ops::Add for Lost {
    type Output = Lost;

    fn add(self, other: Lost) -> Lost {
        Lost {
            in_doubt: self.in_doubt + other.in_doubt,
            abandoned: self.abandoned + other.abandoned,
        }
    }
}

impl Mishaps {
    fn lose(&self, measured: bool, lost: Lost) {
        if measured {
            self.lost.set(self.lost.get() + lost);
        }
    }
}

fn one_more(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

impl Desk {
    /// An op that was issued at an instant ended now with an error.
    pub(crate) fn failed(&self, seat: &Seat, issued: Ns, now: Ns, error: &OpError) -> Result<()> {
        let in_doubt = error.leaves_doubt() && self.doubt(seat);
        // Else the server has refused the writes.
        seat.pending.set(Pending::Nothing);
        seat.settle();
        let measured = seat.measured.get();
        let mut recorder = self.recorder.borrow_mut();
        if matches!(error, OpError::Timeout(_)) {
            one_more(&self.mishaps.abandoned);
            self.mishaps.lose(measured, Lost { abandoned: 1, ..Lost::default() });
            recorder.abandoned(seat.intended.get(), issued, measured, now)?;
        } else {
            self.mishaps.errors.borrow_mut().add(error);
            if in_doubt {
                self.mishaps.lose(measured, Lost { in_doubt: 1, ..Lost::default() });
                recorder.unresolved(now)?;
            } else {
                recorder.failed(issued, measured, now)?;
            }
        }
        self.mishaps.fresh.borrow_mut().add(now, error.code(), &error.to_string());
        Ok(())
    }

    /// A connection could not be opened again.
    pub(crate) fn refused(&self, failure: Failure) {
        let code = match &failure {
            Failure::Server { code, .. } => Some(*code),
            Failure::Lost(_) => None,
        };
        let text = format!("cannot connect: {failure}");
        self.mishaps.fresh.borrow_mut().add(self.now(), code, &text);
        self.mishaps.errors.borrow_mut().refused(failure);
    }

    /// A lost connection is open again.
    pub(crate) fn reconnected(&self) {
        one_more(&self.mishaps.reconnects);
    }

    /// The drain gives up what is in flight.
    pub(crate) fn abandon(&self, seat: &Seat, now: Ns) -> Result<()> {
        let Some(issued) = seat.in_flight() else { return Ok(()) };
        one_more(&self.mishaps.abandoned);
        self.doubt(seat);
        let (intended, measured) = (seat.intended.get(), seat.measured.get());
        self.mishaps.lose(measured, Lost { abandoned: 1, ..Lost::default() });
        self.recorder.borrow_mut().abandoned(intended, issued, measured, now)
    }

    /// Counts the writes that a lost or abandoned answer leaves in doubt; whether there are any.
    fn doubt(&self, seat: &Seat) -> bool {
        let pending = seat.pending.replace(Pending::Nothing);
        let Some((table, writes, doubt)) = pending.doubt(&self.job) else { return false };
        one_more(&self.mishaps.in_doubt);
        self.accounts.borrow_mut()[table as usize].doubt(writes, &doubt);
        true
    }
}
