//! The context between a client's loop and its program: what an operation tells of itself.

use super::errors::{Change, Pending};
use super::job::{Job, TableShare};
use super::state::{ClientState, ThreadState};
use crate::mysql::wire::LeanSession;
use crate::observe::{EventCounts, Ns};
use crate::plan::Rules;
use crate::workload::Effect;

/// One operation on its way: the session that it works over, and those who take note of it.
pub(crate) struct OpContext<'a> {
    pub thread: &'a ThreadState,
    pub state: &'a ClientState,
    pub session: &'a mut LeanSession,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OpDone {
    /// Its table (index from 0), of several the first.
    pub table: u32,
    pub statements: u32,
    pub rows: u64,
    /// Statements among these that were to change rows, and found none.
    pub unmatched: u32,
}

impl<'a> OpContext<'a> {
    #[inline]
    pub(crate) fn job(&self) -> &'a Job {
        self.thread.job()
    }

    #[inline]
    pub(crate) fn rules(&self) -> &'a Rules {
        &self.job().plan.rules
    }

    #[inline]
    pub(crate) fn table(&self, table: u32) -> &'a TableShare {
        &self.thread.tables[table as usize]
    }

    /// Takes the instant of a request, which follows an answer at once; the first one is the operation's.
    #[inline]
    pub(crate) fn issue(&self) -> Ns {
        let answered = self.state.answered.take();
        match self.state.issued.get() {
            Some(issued) if self.job().timed_statements == 0 => issued,
            began => {
                let now = answered.unwrap_or_else(|| self.thread.now());
                self.state.issued.set(Some(began.unwrap_or(now)));
                now
            }
        }
    }

    #[inline]
    pub(crate) fn time_statement(&self, index: usize, sent: Ns) {
        let times = (sent, self.thread.answered(self.state));
        self.thread.recorder.borrow_mut().statement(index, self.state.measured.get(), times);
    }

    /// Replaces what is in doubt if the next answer never comes.
    #[inline]
    pub(crate) fn doubt(&self, writes: impl IntoIterator<Item = Pending>) {
        let mut pending = self.state.pending.borrow_mut();
        pending.clear();
        for (table, more, doubt) in writes {
            match pending.iter_mut().find(|(there, ..)| *there == table) {
                Some((_, writes, sum)) => {
                    *writes += more;
                    sum.add(&doubt);
                }
                None => pending.push((table, more, doubt)),
            }
        }
    }

    /// Takes the doubt of a write that failed away, if it never left this program.
    #[cold]
    pub(crate) fn drop_unsent_doubt(&self) {
        if !self.session.has_sent() {
            self.doubt(None);
        }
    }

    #[inline]
    pub(crate) fn settle(&self, table: u32, change: Change) {
        if change.effect != Effect::None {
            change.enter(&mut self.thread.ledger.borrow_mut()[table as usize]);
        }
    }

    #[inline]
    pub(crate) fn count(&self, add: impl FnOnce(&mut EventCounts)) {
        self.thread.count(self.thread.answered(self.state), add);
    }
}
