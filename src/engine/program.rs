//! The program of a client: what one operation does, over one session. The loop around it
//! (`client.rs`) paces, records and reconnects, and knows no program.

use super::compiled::CompiledProgram;
use super::errors::{OpError, OpenError};
use super::job::Job;
use super::operation::{OpContext, OpDone};
#[cfg(feature = "lua")]
pub(super) use super::script::{ScriptProgram, ThreadPrograms};
use super::setup::StepSetup;
use super::state::SleepsEnd;
use crate::mysql::Failure;
use crate::mysql::wire::{Inbox, LeanSession};

/// Matched once an operation.
#[cfg_attr(
    feature = "lua",
    expect(clippy::large_enum_variant, reason = "the hot path is the large one")
)]
pub(crate) enum Program {
    Compiled(CompiledProgram),
    #[cfg(feature = "lua")]
    Script(Box<ScriptProgram>),
}

/// A session that is over, and what is to be closed before it.
pub(crate) struct Goodbye {
    pub session: LeanSession,
    pub statements: Vec<u32>,
}

#[cfg(not(feature = "lua"))]
#[derive(Clone)]
pub(crate) struct ThreadPrograms;

#[cfg(not(feature = "lua"))]
impl ThreadPrograms {
    pub(super) fn new(setup: &StepSetup, _: usize) -> crate::error::Result<ThreadPrograms> {
        assert!(setup.job.plan.script.is_none(), "no script gets here without Lua");
        Ok(ThreadPrograms)
    }
}

/// Does something with the program, whichever it is.
macro_rules! either {
    ($program:expr, $compiled:pat => $first:expr, $script:pat => $second:expr) => {
        match $program {
            Program::Compiled($compiled) => $first,
            #[cfg(feature = "lua")]
            Program::Script($script) => $second,
        }
    };
}

impl Program {
    pub(super) async fn open(
        job: &Job,
        client: u32,
        session: &mut LeanSession,
    ) -> Result<Program, OpenError> {
        CompiledProgram::open(job, client, session).await.map(Program::Compiled)
    }

    /// Opens the program of a script, which connects by itself; None if the job has no script.
    #[cfg(feature = "lua")]
    pub(super) async fn open_script(
        setup: &StepSetup,
        programs: &ThreadPrograms,
        inbox: &Inbox,
        client: u32,
    ) -> Option<Result<(Program, LeanSession), OpenError>> {
        let vm = programs.vm.as_ref()?;
        let opened = ScriptProgram::open(setup, (vm, &programs.sleeps), client, inbox).await;
        let with_session =
            |script| (Program::Script(Box::new(script)), LeanSession::unconnected(inbox));
        Some(opened.map(with_session))
    }

    #[cfg(not(feature = "lua"))]
    #[expect(clippy::unused_async, reason = "as that of a build with Lua")]
    pub(super) async fn open_script(
        _: &StepSetup,
        _: &ThreadPrograms,
        _: &Inbox,
        _: u32,
    ) -> Option<Result<(Program, LeanSession), OpenError>> {
        None
    }

    /// Prepares the same over another session, which knows nothing of the one before.
    pub(super) async fn reopen(
        &mut self,
        job: &Job,
        session: &mut LeanSession,
    ) -> Result<(), Failure> {
        either!(self, compiled => compiled.reopen(job, session).await, _ => Ok(()))
    }

    /// Begins the values of a phase: those of the window are the same after any warm-up.
    pub(super) fn begin_phase(&mut self, job: &Job, measured: bool) {
        either!(self, compiled => compiled.begin_phase(job, measured), _ => {});
    }

    #[inline]
    pub(super) fn choose(&mut self, job: &Job) {
        either!(self, compiled => compiled.choose(job), _ => {});
    }

    /// Does the operation that was chosen; it may be done again after an error.
    #[inline]
    pub(super) async fn operation(&mut self, op: &mut OpContext<'_>) -> Result<OpDone, OpError> {
        either!(self, compiled => compiled.operation(op).await, script => {
            script.operation(op).await
        })
    }

    /// Returns whether it works over one session that the client opens again; a script has its own.
    pub(super) fn opens_again(&self) -> bool {
        either!(self, _ => true, _ => false)
    }

    /// Returns whether the last operation counts: an event that ends its thread does not.
    #[inline]
    pub(super) fn counts(&self) -> bool {
        either!(self, _ => true, script => script.counts())
    }

    /// Returns whether it does something before the next operation.
    #[inline]
    pub(super) fn has_rest(&self) -> bool {
        either!(self, _ => false, script => script.has_rest())
    }

    #[cfg_attr(not(feature = "lua"), expect(unused_variables, reason = "scripts alone do so"))]
    pub(super) async fn rest(
        &mut self,
        op: &mut OpContext<'_>,
        sleeps_end: SleepsEnd,
    ) -> Result<(), OpError> {
        either!(self, _ => Ok(()), script => Box::pin(script.rest(op, sleeps_end)).await)
    }

    /// Returns whether no operation follows.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        either!(self, _ => false, script => script.has_ended())
    }

    /// Puts in doubt what an operation that failed has left open in its session.
    pub(super) fn doubt_what_is_open(&self, op: &OpContext<'_>) {
        either!(self, compiled => compiled.doubt_the_commit(op), _ => {});
    }

    pub(super) async fn finish(&mut self, op: &mut OpContext<'_>) -> Result<(), OpError> {
        either!(self, compiled => compiled.finish(op).await, script => {
            Box::pin(script.finish(op)).await
        })
    }

    /// Ends with the sessions that are to be closed, and the statements before them.
    pub(super) fn close(self, session: LeanSession, closes_statements: bool) -> Vec<Goodbye> {
        either!(self, compiled => {
            let statements = if closes_statements { compiled.close() } else { Vec::new() };
            vec![Goodbye { session, statements }]
        }, script => {
            let goodbye = |session| Goodbye { session, statements: Vec::new() };
            script.into_sessions().map(goodbye).collect()
        })
    }
}
