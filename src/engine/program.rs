//! The program of a client: what one operation does, over one session. The loop around it
//! (`client.rs`) paces, records and reconnects, and knows no program.

use std::sync::Arc;

use super::compiled::CompiledProgram;
use super::errors::{OpError, OpenError};
use super::job::Job;
use super::operation::{OpContext, OpDone};
#[cfg(feature = "lua")]
use super::script::ScriptProgram;
use super::setup::StepSetup;
#[cfg(feature = "lua")]
use super::setup::ThreadEvent;
use crate::error;
#[cfg(feature = "lua")]
use crate::lua::Vm;
use crate::mysql::Failure;
use crate::mysql::wire::{Inbox, LeanSession};
#[cfg(feature = "lua")]
use crate::plan::{Script, ScriptValue};
#[cfg(feature = "lua")]
use crate::workload::seed_of;

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

/// What the programs of a thread share: the VM of a script.
#[derive(Clone)]
pub(crate) struct ThreadPrograms {
    #[cfg(feature = "lua")]
    vm: Option<Vm>,
}

impl ThreadPrograms {
    #[cfg(feature = "lua")]
    pub(super) fn new(setup: &Arc<StepSetup>, thread: usize) -> error::Result<ThreadPrograms> {
        let job = &setup.job;
        let make = |script: &Arc<Script>| {
            let setup = Arc::clone(setup);
            let said = move |line| setup.tell(thread, ThreadEvent::Said(line));
            let mut script = Script::clone(script);
            // Each step of a sweep has its own.
            script.set_option("threads", ScriptValue::Number(job.step.clients.into()));
            Vm::new(&Arc::new(script), seed_of(&job.seed_parts(0, true)), Box::new(said))
        };
        Ok(ThreadPrograms { vm: job.plan.script.as_ref().map(make).transpose()? })
    }

    #[cfg(not(feature = "lua"))]
    pub(super) fn new(setup: &Arc<StepSetup>, _: usize) -> error::Result<ThreadPrograms> {
        assert!(setup.job.plan.script.is_none(), "no script gets here without Lua");
        Ok(ThreadPrograms {})
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

    /// Opens that of a script, which connects by itself; None if the job has none.
    #[cfg(feature = "lua")]
    pub(super) async fn open_script(
        setup: &StepSetup,
        programs: &ThreadPrograms,
        inbox: &Inbox,
        client: u32,
    ) -> Option<Result<(Program, LeanSession), OpenError>> {
        let vm = programs.vm.as_ref()?;
        let opened = ScriptProgram::open(&setup.job, vm, client, (&setup.link, inbox)).await;
        Some(opened.map(|(script, session)| (Program::Script(Box::new(script)), session)))
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
        either!(self, compiled => compiled.reopen(job, session).await, script => {
            script.reopen();
            Ok(())
        })
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
            // Boxed: else every client keeps room for it.
            Box::pin(script.operation(op)).await
        })
    }

    /// Returns whether it goes on after the last error, whichever that was.
    pub(super) fn restarts(&self) -> bool {
        either!(self, _ => false, script => script.restarts())
    }

    /// Returns whether operations need the client's own session: a script may have others.
    pub(super) fn uses_session(&self) -> bool {
        either!(self, _ => true, script => script.uses_session())
    }

    /// Returns whether no operation follows: the last one was none.
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

    /// Ends with the statements that can be closed before the session.
    pub(super) fn close(self) -> Vec<u32> {
        either!(self, compiled => compiled.close(), _ => Vec::new())
    }
}
