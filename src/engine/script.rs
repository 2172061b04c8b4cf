//! The program of a client that runs a script: an operation is one call of `event`, with all that it asks.

use super::errors::{ClientAction, OpError, OpenError};
use super::job::Job;
use super::operation::{OpContext, OpDone};
use super::requests::{AnswersSeen, Connections, Server};
use crate::error::{self, Error};
use crate::lua::{Entry, Reply, Request, State, Turn, Vm};
use crate::mysql::wire::{Inbox, LeanSession};
use crate::mysql::{Failure, ServerLink};
use crate::plan::{AfterError, Ignored, Plan};
use crate::progress::say;

/// No script's error is ignored where the policy decides.
static NONE: Ignored = Ignored::Codes(Vec::new());

pub(crate) struct ScriptProgram {
    state: State,
    connections: Connections,
    /// What the coroutine waits for at the begin of an operation.
    next: WaitsFor,
    /// The event began again of its own will, whatever the error.
    restarts: bool,
    ended: bool,
    text_statements: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitsFor {
    Event,
    /// Before the hook, which may use the connection.
    Restart,
    /// It failed, or is over.
    Nothing,
}

/// Runs a state over connections until it wants the next event, begins one again, or ends.
pub(crate) async fn drive(
    state: &mut State,
    connections: &mut Connections,
    server: &mut Server<'_>,
    mut reply: Reply,
    asked: &mut bool,
) -> Turn {
    loop {
        match state.resume(reply) {
            Turn::Request(request @ (Request::Next(_) | Request::Restart)) => {
                return Turn::Request(request);
            }
            Turn::Request(request) => {
                *asked = true;
                reply = connections.perform(server, request).await;
            }
            turn => return turn,
        }
    }
}

/// A state outside a step, as a command of a script runs: all its connections are its own.
pub(crate) struct Runner<'a> {
    pub state: State,
    connections: Connections,
    server: Server<'a>,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(
        state: State,
        (link, inbox): (&'a ServerLink, &'a Inbox),
        ignored: &'a Ignored,
        text_statements: bool,
    ) -> Runner<'a> {
        let server = Server { link, inbox, ignored, text_statements, first: None };
        Runner { state, connections: Connections::default(), server }
    }

    /// Runs something to its end; false where it returned false, and an error with its words where it failed.
    pub(crate) async fn run(&mut self, entry: Entry<'_>) -> Result<bool, String> {
        self.state.begin(entry).map_err(|error| error.to_string())?;
        let mut reply = Reply::Nothing;
        loop {
            let Runner { state, connections, server } = self;
            match drive(state, connections, server, reply, &mut false).await {
                // There are no events here.
                Turn::Request(_) => reply = Reply::Switch(false),
                Turn::Done(value) => return Ok(value),
                Turn::Failed(words) => return Err(words),
            }
        }
    }

    pub(crate) async fn close(self) {
        self.connections.close_all().await;
    }
}

fn ignored(job: &Job) -> &Ignored {
    match &job.plan.rules.after_error {
        AfterError::Policy => &NONE,
        AfterError::Restart(ignored) => ignored,
    }
}

impl ScriptProgram {
    /// Runs the file and `thread_init`; the first connection that is open then has the client's own session.
    pub(super) async fn open(
        job: &Job,
        vm: &Vm,
        client: u32,
        (link, inbox): (&ServerLink, &Inbox),
    ) -> Result<(ScriptProgram, LeanSession), OpenError> {
        let text_statements = job.plan.script.as_ref().is_some_and(|script| script.text_statements);
        let mut state = vm.state(client)?;
        state.begin(Entry::Thread(client))?;
        let mut connections = Connections::default();
        let mut server =
            Server { link, inbox, ignored: ignored(job), text_statements, first: None };
        let turn =
            drive(&mut state, &mut connections, &mut server, Reply::Nothing, &mut false).await;
        let next = match turn {
            Turn::Request(Request::Next(false)) => WaitsFor::Event,
            Turn::Request(_) | Turn::Done(_) => WaitsFor::Nothing,
            Turn::Failed(words) => {
                let none = Failure::Lost(String::new());
                return Err(OpenError::refused(ClientAction::Script(words), none));
            }
        };
        connections.failure = None;
        let session = match connections.take_first() {
            Some(session) => session,
            None => LeanSession::unconnected(inbox).map_err(|error| {
                Error::failed(format!("a client without a connection: {error}"))
                    .hint("raise the limit on descriptors (ulimit -n)")
            })?,
        };
        let ended = next == WaitsFor::Nothing;
        let restarts = false;
        Ok((ScriptProgram { state, connections, next, restarts, ended, text_statements }, session))
    }

    /// Takes another session; the script prepares its statements again in a hook.
    pub(super) fn reopen(&mut self) {
        self.connections.forget_first();
    }

    /// Returns whether the last error is one that the script goes on after.
    pub(super) fn restarts(&self) -> bool {
        self.restarts
    }

    /// Returns whether the script uses the client's own session.
    pub(super) fn uses_session(&self) -> bool {
        self.connections.has_first()
    }

    /// Returns whether the script has ended its thread: no event follows.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) async fn operation(&mut self, op: &mut OpContext<'_>) -> Result<OpDone, OpError> {
        self.restarts = false;
        self.connections.failure = None;
        let reply = match self.next {
            WaitsFor::Event => Reply::Switch(true),
            WaitsFor::Restart => Reply::Nothing,
            WaitsFor::Nothing => return Ok(OpDone::default()),
        };
        op.issue();
        let mut asked = false;
        let turn = self.go_on(op, reply, &mut asked).await;
        let done = self.count(op);
        if !asked {
            // Nothing was waited for: the other clients of the thread get their turn.
            tokio::task::yield_now().await;
        }
        self.next = WaitsFor::Nothing;
        match turn {
            Turn::Request(Request::Next(ended)) => {
                (self.next, self.ended) = (WaitsFor::Event, ended);
                Ok(done)
            }
            Turn::Request(_) => {
                self.next = WaitsFor::Restart;
                Err(self.restart(op).await)
            }
            Turn::Done(_) => {
                self.ended = true;
                Ok(done)
            }
            Turn::Failed(words) => Err(OpError::Script(words)),
        }
    }

    async fn go_on(&mut self, op: &mut OpContext<'_>, reply: Reply, asked: &mut bool) -> Turn {
        let mut server = Server {
            link: &op.thread.setup.link,
            inbox: &op.thread.inbox,
            ignored: ignored(op.job()),
            text_statements: self.text_statements,
            first: Some(&mut *op.session),
        };
        op.state.answered.set(None);
        drive(&mut self.state, &mut self.connections, &mut server, reply, asked).await
    }

    /// Returns the error of the event that begins again; opens the connections that it lost, but the client's own.
    async fn restart(&mut self, op: &mut OpContext<'_>) -> OpError {
        self.restarts = true;
        let mut server = Server {
            link: &op.thread.setup.link,
            inbox: &op.thread.inbox,
            ignored: ignored(op.job()),
            text_statements: self.text_statements,
            first: None,
        };
        self.connections.reopen_lost(&mut server).await;
        match self.connections.failure.take() {
            Some((Failure::Lost(why), false)) => OpError::Script(why),
            Some((failure, _)) => failure.into(),
            None => OpError::Script("the script begins the event again".to_owned()),
        }
    }

    /// Counts what was answered since the last time.
    fn count(&mut self, op: &OpContext<'_>) -> OpDone {
        let AnswersSeen { reads, writes, others, rows, reconnects } =
            std::mem::take(&mut self.connections.seen);
        if op.rules().count_answers {
            op.count(|events| {
                events.reads += reads;
                events.writes += writes;
                events.others += others;
                events.reconnects += reconnects;
            });
        }
        let statements = (reads + writes + others) as u32;
        OpDone { statements, rows, ..OpDone::default() }
    }

    /// Runs `thread_done`.
    pub(super) async fn finish(&mut self, op: &mut OpContext<'_>) -> Result<(), OpError> {
        if self.next == WaitsFor::Nothing && !self.ended {
            return Ok(());
        }
        let mut reply = Reply::Switch(false);
        loop {
            match self.go_on(op, reply, &mut false).await {
                Turn::Request(_) => reply = Reply::Switch(false),
                Turn::Failed(words) => return Err(OpError::Script(words)),
                Turn::Done(_) => break,
            }
        }
        self.count(op);
        std::mem::take(&mut self.connections).close_all().await;
        Ok(())
    }
}

/// Runs the file and `init` of a script before its first step; the state lives until [`end_main`].
pub(crate) async fn begin_main<'a>(
    plan: &'a Plan,
    server: (&'a ServerLink, &'a Inbox),
) -> error::Result<Option<Runner<'a>>> {
    let Some(script) = &plan.script else { return Ok(None) };
    let vm = Vm::new(script, plan.seed, Box::new(|line| say(&line)))?;
    let ignored = plan.rules.ignored().unwrap_or(&NONE);
    let mut main = Runner::new(vm.state(0)?, server, ignored, script.text_statements);
    main.run(Entry::Chunk).await.map_err(Error::failed)?;
    call(&mut main, "init").await?;
    Ok(Some(main))
}

/// Runs `done` after the last step.
pub(crate) async fn end_main(main: Option<Runner<'_>>) -> error::Result<()> {
    let Some(mut main) = main else { return Ok(()) };
    let ended = call(&mut main, "done").await;
    main.close().await;
    ended
}

async fn call(main: &mut Runner<'_>, name: &str) -> error::Result<()> {
    if main.state.has(name) {
        main.run(Entry::Call(name)).await.map_err(Error::failed)?;
    }
    Ok(())
}
