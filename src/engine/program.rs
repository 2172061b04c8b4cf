//! The program of a client: what one operation does, over one session. The loop around it
//! (`client.rs`) paces, records and reconnects, and knows no program.

use super::compiled::CompiledProgram;
use super::errors::{OpError, OpenError};
use super::job::Job;
use super::operation::{OpContext, OpDone};
use crate::mysql::Failure;
use crate::mysql::wire::LeanSession;

/// Matched once an operation.
pub(crate) enum Program {
    Compiled(CompiledProgram),
}

impl Program {
    pub(super) async fn open(
        job: &Job,
        client: u32,
        session: &mut LeanSession,
    ) -> Result<Program, OpenError> {
        CompiledProgram::open(job, client, session).await.map(Program::Compiled)
    }

    /// Prepares the same over another session, which knows nothing of the one before.
    pub(super) async fn reopen(
        &mut self,
        job: &Job,
        session: &mut LeanSession,
    ) -> Result<(), Failure> {
        match self {
            Program::Compiled(compiled) => compiled.reopen(job, session).await,
        }
    }

    /// Begins the values of a phase: those of the window are the same after any warm-up.
    pub(super) fn begin_phase(&mut self, job: &Job, measured: bool) {
        match self {
            Program::Compiled(compiled) => compiled.begin_phase(job, measured),
        }
    }

    #[inline]
    pub(super) fn choose(&mut self, job: &Job) {
        match self {
            Program::Compiled(compiled) => compiled.choose(job),
        }
    }

    /// Does the operation that was chosen; it may be done again after an error.
    #[inline]
    pub(super) async fn operation(&mut self, op: &mut OpContext<'_>) -> Result<OpDone, OpError> {
        match self {
            Program::Compiled(compiled) => compiled.operation(op).await,
        }
    }

    /// Puts in doubt what an operation that failed has left open in its session.
    pub(super) fn doubt_what_is_open(&self, op: &OpContext<'_>) {
        match self {
            Program::Compiled(compiled) => compiled.doubt_the_commit(op),
        }
    }

    pub(super) async fn finish(&mut self, op: &mut OpContext<'_>) -> Result<(), OpError> {
        match self {
            Program::Compiled(compiled) => compiled.finish(op).await,
        }
    }

    /// Ends with the statements that can be closed before the session.
    pub(super) fn close(self) -> Vec<u32> {
        match self {
            Program::Compiled(compiled) => compiled.close(),
        }
    }
}
