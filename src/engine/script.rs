//! The program of a client that runs a script: an operation is one call of `event`, with all that it asks.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;

use super::errors::{ClientAction, OpError, OpenError, ScriptPart};
use super::operation::{OpContext, OpDone};
use super::requests::{AnswersSeen, Connections, Server};
use super::setup::{StepSetup, ThreadEvent};
use super::sleeps::Sleeps;
use super::state::SleepsEnd;
use crate::error::{self, Error};
use crate::lua::{Entry, Reply, Request, State, Turn, Vm, say_line, share_unique, unique_start};
use crate::mysql::wire::{Inbox, LeanSession};
use crate::mysql::{Failure, ServerLink};
use crate::plan::{Ignored, Plan, Script, ScriptLine};
use crate::stop::within;
use crate::workload::seed_of;

/// No script's error is ignored where the policy decides.
static NONE: Ignored = Ignored::Codes(Vec::new());
/// Replies without a wait, such as rows, after which others get their turn.
const REPLIES: u32 = 64;
/// Errors without a wait after which `thread_done` is cut off.
const LATE_ERRORS: u32 = 1000;

/// The parts that the programs of a thread share: the VM of a script, and its timers.
#[derive(Clone)]
pub(crate) struct ThreadPrograms {
    pub vm: Option<Vm>,
    pub sleeps: Rc<Sleeps>,
}

impl ThreadPrograms {
    pub(super) fn new(setup: &Arc<StepSetup>, thread: usize) -> error::Result<ThreadPrograms> {
        let job = &setup.job;
        let make = |script: &Arc<Script>| {
            let (setup, names) = (Arc::clone(setup), Arc::clone(&setup.names));
            let seed = seed_of(&job.seed_parts(0, true));
            let take = move |line| match (&setup.script_log, line) {
                (Some(log), line) => log(line),
                (None, ScriptLine::Fatal(text) | ScriptLine::Alert(text)) => {
                    setup.tell(thread, ThreadEvent::Said(text));
                }
                (None, ScriptLine::Driver) => {}
            };
            let mut script = Script::clone(script);
            // Each step of a sweep has its own.
            script.set_of_step("threads", job.step.clients.into());
            if script.is_native {
                script.set_of_step("rate", job.step.rate.unwrap_or(0.0));
            }
            Vm::of_step(&Arc::new(script), seed, Box::new(take), names)
        };
        let vm = job.plan.script.as_ref().map(make).transpose()?;
        Ok(ThreadPrograms { vm, sleeps: Rc::default() })
    }
}

pub(crate) struct ScriptProgram {
    state: State,
    connections: Connections,
    sleeps: Rc<Sleeps>,
    /// The coroutine waits for it at the begin of an operation.
    next: WaitsFor,
    /// The last operation waited for something.
    waited: bool,
    /// It was an event that counts.
    counts: bool,
    ended: bool,
    /// Statements and rows since the last event that counted.
    done: OpDone,
    /// Errors of `thread_init`, which are none of the first event's.
    errors_before: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitsFor {
    Event,
    /// Behind an event that the script has timed itself, or at the begin of one.
    Timer,
    /// It failed, is over, or was given up while it waited.
    Nothing,
}

/// Runs a state over connections until it comes to an event's begin or end, or ends; says whether it waited.
pub(crate) async fn drive(
    state: &mut State,
    connections: &mut Connections,
    server: &Server<'_>,
    mut reply: Reply,
    waited: &mut bool,
) -> Turn {
    let (mut at_once, mut late) = (0, 0);
    loop {
        let turn = state.resume(reply);
        server.client.iter().for_each(|(_, client)| client.name.set(state.transaction));
        let request = match turn {
            turn @ Turn::Request(
                Request::Next { .. } | Request::Start | Request::Stop | Request::Restart(_),
            ) => return turn,
            Turn::Request(request) => request,
            turn => return turn,
        };
        let pended;
        let arguments = &mut state.arguments;
        (reply, pended) = with_wait(pin!(connections.perform(server, request, arguments))).await;
        *waited |= pended;
        at_once = if pended { 0 } else { at_once + 1 };
        if let Reply::Failed { text, .. } = &reply
            && !pended
        {
            // A script may try again and again over a connection that is gone: as if it began its event again.
            // `thread_done` may close what is closed already, but not try for ever.
            late += u32::from(server.is_over());
            if late > if server.defers_goodbyes { LATE_ERRORS } else { 0 } {
                return Turn::Request(Request::Restart(text.clone()));
            }
            at_once = REPLIES;
        }
        if at_once >= REPLIES {
            tokio::task::yield_now().await;
            at_once = 0;
        }
    }
}

/// Does something, which is not moved for it; says whether it had to wait.
async fn with_wait<T>(mut work: Pin<&mut impl Future<Output = T>>) -> (T, bool) {
    let mut waited = false;
    let done = poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        waited |= polled.is_pending();
        polled
    });
    let done = done.await;
    (done, waited)
}

/// A state outside a step, as a command of a script runs.
pub(crate) struct Runner<'a> {
    pub state: State,
    connections: Connections,
    sleeps: Sleeps,
    link: &'a ServerLink,
    inbox: &'a Inbox,
    ignored: &'a Ignored,
    text_statements: bool,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(
        state: State,
        (link, inbox): (&'a ServerLink, &'a Inbox),
        ignored: &'a Ignored,
        text_statements: bool,
    ) -> Runner<'a> {
        let (connections, sleeps) = (Connections::default(), Sleeps::default());
        Runner { state, connections, sleeps, link, inbox, ignored, text_statements }
    }

    /// Runs something to its end; false where it returned false, and an error with its words where it failed.
    pub(crate) async fn run(&mut self, entry: Entry<'_>) -> Result<bool, String> {
        self.state.begin(entry).map_err(|error| error.to_string())?;
        let server = Server {
            link: self.link,
            inbox: self.inbox,
            ignored: self.ignored,
            text_statements: self.text_statements,
            sleeps: &self.sleeps,
            sleeps_end: SleepsEnd::ByThemselves,
            logins: None,
            client: None,
            defers_goodbyes: false,
        };
        let mut reply = Reply::Nothing;
        loop {
            let (state, connections) = (&mut self.state, &mut self.connections);
            match drive(state, connections, &server, reply, &mut false).await {
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

/// Makes the server of the requests of a step's clients.
fn server_of<'a>(
    setup: &'a StepSetup,
    client: u32,
    inbox: &'a Inbox,
    sleeps: &'a Sleeps,
) -> Server<'a> {
    let plan = &setup.job.plan;
    Server {
        link: setup.link_of(client),
        inbox,
        ignored: plan.rules.ignored().unwrap_or(&NONE),
        text_statements: plan.script.as_ref().is_some_and(|script| script.text_statements),
        sleeps,
        sleeps_end: SleepsEnd::ByThemselves,
        logins: Some(&setup.logins),
        client: None,
        defers_goodbyes: false,
    }
}

impl ScriptProgram {
    /// Runs the file and `thread_init`, for a time that sysbench allows.
    pub(super) async fn open(
        setup: &StepSetup,
        (vm, sleeps): (&Vm, &Rc<Sleeps>),
        client: u32,
        inbox: &Inbox,
    ) -> Result<ScriptProgram, OpenError> {
        let mut state = vm.state(client)?;
        state.begin(Entry::Thread(client))?;
        let mut connections = Connections::default();
        let server = server_of(setup, client, inbox, sleeps);
        let mut waited = false;
        let opening = drive(&mut state, &mut connections, &server, Reply::Nothing, &mut waited);
        let script = setup.job.plan.script.as_ref().expect("a VM has one");
        let turn = within(script.init_limit(), opening).await;
        let turn = turn.unwrap_or_else(|| Turn::Failed(script.init_too_long()));
        let (next, ended) = match turn {
            Turn::Request(Request::Next { ends, .. }) => (WaitsFor::Event, ends),
            Turn::Request(_) => (WaitsFor::Timer, false),
            Turn::Done(_) => (WaitsFor::Nothing, true),
            Turn::Failed(words) => {
                let none = Failure::lost("");
                return Err(OpenError::refused(ClientAction::Script(ScriptPart::Run, words), none));
            }
        };
        if !setup.job.plan.rules.count_answers {
            // No operation has asked it.
            connections.seen = AnswersSeen::default();
        }
        Ok(ScriptProgram {
            state,
            connections,
            sleeps: Rc::clone(sleeps),
            next,
            waited,
            counts: false,
            ended,
            done: OpDone::default(),
            errors_before: 0,
        })
    }

    /// Returns whether the last operation was an event of the script.
    pub(super) fn counts(&self) -> bool {
        self.counts
    }

    /// Returns whether the script has ended its thread: no event follows.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns whether the script does something between two events.
    pub(super) fn has_rest(&self) -> bool {
        self.next == WaitsFor::Timer && !self.ended
    }

    pub(super) async fn operation(&mut self, op: &mut OpContext<'_>) -> Result<OpDone, OpError> {
        self.forget_name(op);
        self.errors_before = self.connections.seen.errors;
        if !self.waited {
            // The other clients of the thread get their turn.
            tokio::task::yield_now().await;
            op.state.answered.set(None);
        }
        (self.waited, self.counts) = (false, false);
        self.connections.failure = None;
        op.issue();
        let mut reply = self.first_reply(true);
        loop {
            match self.go_on(op, reply, (false, SleepsEnd::ByThemselves)).await {
                Turn::Request(Request::Start) => {
                    op.state.issued.set(Some(op.thread.now()));
                    reply = Reply::Nothing;
                }
                Turn::Request(Request::Restart(words)) => {
                    if let Some(ended) = self.may_not_restart(op, words) {
                        return ended;
                    }
                    if !self.waited {
                        tokio::task::yield_now().await;
                    }
                    reply = Reply::Nothing;
                }
                Turn::Request(Request::Next { ends, counts }) => {
                    (self.next, self.ended) = (WaitsFor::Event, ends);
                    self.counts = counts && !ends;
                    return Ok(self.count_event(op));
                }
                Turn::Request(_) => {
                    (self.next, self.counts) = (WaitsFor::Timer, true);
                    return Ok(self.count_event(op));
                }
                Turn::Done(_) => {
                    self.ended = true;
                    self.count(op);
                    return Ok(OpDone::default());
                }
                Turn::Failed(words) => {
                    self.count(op);
                    return Err(OpError::Script(ScriptPart::Run, words));
                }
            }
        }
    }

    fn forget_name(&mut self, op: &OpContext<'_>) {
        self.state.transaction = None;
        op.state.name.set(None);
    }

    /// Takes what the coroutine waits for, and whether an event follows; it waits for nothing while a request is out.
    fn first_reply(&mut self, follows: bool) -> Reply {
        match std::mem::replace(&mut self.next, WaitsFor::Nothing) {
            WaitsFor::Event => Reply::Switch(follows),
            WaitsFor::Timer | WaitsFor::Nothing => Reply::Nothing,
        }
    }

    /// Ends an event that would begin again after the time is over, or for ever; None while it may.
    fn may_not_restart(
        &mut self,
        op: &OpContext<'_>,
        words: String,
    ) -> Option<Result<OpDone, OpError>> {
        self.count(op);
        let (thread, now) = (op.thread, op.thread.answered(op.state));
        let began = op.state.issued.get().unwrap_or(now);
        let failure = self.connections.failure.take();
        if now >= thread.ends_at() {
            let error = failure.unwrap_or(OpError::Script(ScriptPart::Run, words));
            thread.failed(op.state, began, now, &error);
            self.ended = true;
            return Some(Ok(OpDone::default()));
        }
        let endless = thread.is_endless(began, now);
        let error = OpError::Script(ScriptPart::Run, words);
        if !endless && !op.rules().count_answers {
            // Else it is counted where it is answered.
            thread.count_error(op.state, &failure.unwrap_or(error));
            return None;
        }
        endless.then_some(Err(error))
    }

    /// Runs what the script does between two events.
    pub(super) async fn rest(
        &mut self,
        op: &mut OpContext<'_>,
        sleeps_end: SleepsEnd,
    ) -> Result<(), OpError> {
        self.forget_name(op);
        let reply = self.first_reply(true);
        let turn = self.go_on(op, reply, (false, sleeps_end)).await;
        self.count(op);
        match turn {
            Turn::Request(Request::Next { ends, .. }) => {
                (self.next, self.ended) = (WaitsFor::Event, ends);
            }
            Turn::Request(Request::Restart(words)) => {
                if let Some(ended) = self.may_not_restart(op, words) {
                    return ended.map(drop);
                }
                // The next operation begins the event again.
                self.next = WaitsFor::Timer;
            }
            Turn::Done(_) => self.ended = true,
            Turn::Request(_) => self.next = WaitsFor::Timer,
            Turn::Failed(words) => return Err(OpError::Script(ScriptPart::Run, words)),
        }
        op.state.answered.set(None);
        Ok(())
    }

    async fn go_on(
        &mut self,
        op: &mut OpContext<'_>,
        reply: Reply,
        (ends, sleeps_end): (bool, SleepsEnd),
    ) -> Turn {
        let client = Some((op.thread, op.state));
        let server = server_of(&op.thread.setup, op.state.client, &op.thread.inbox, &self.sleeps);
        let server = Server { client, defers_goodbyes: ends, sleeps_end, ..server };
        op.state.answered.set(None);
        drive(&mut self.state, &mut self.connections, &server, reply, &mut self.waited).await
    }

    /// Takes what was answered since the last event that counts: attempts before it and rests are among it.
    fn count_event(&mut self, op: &OpContext<'_>) -> OpDone {
        self.count(op);
        if self.counts { std::mem::take(&mut self.done) } else { OpDone::default() }
    }

    /// Counts what was answered since the last time.
    fn count(&mut self, op: &OpContext<'_>) {
        let seen = std::mem::take(&mut self.connections.seen);
        let errors_before = std::mem::take(&mut self.errors_before);
        let AnswersSeen { reads, writes, others, rows, .. } = seen;
        if op.rules().count_answers {
            op.count(|events| {
                events.reads += reads;
                events.writes += writes;
                events.others += others;
                events.ignored += seen.errors;
                events.reconnects += seen.reconnects;
                events.events += seen.events;
            });
            if let Some(name) = op.state.name.get() {
                op.thread.recorder.borrow_mut().retried(name, seen.errors - errors_before);
            }
        }
        let statements = (reads + writes + others) as u32;
        self.done.statements = self.done.statements.saturating_add(statements);
        self.done.rows = self.done.rows.saturating_add(rows);
    }

    /// Lets the script leave its loop, and runs `thread_done`.
    pub(super) async fn finish(&mut self, op: &mut OpContext<'_>) -> Result<(), OpError> {
        if self.next == WaitsFor::Nothing {
            return Ok(());
        }
        let mut reply = self.first_reply(false);
        self.forget_name(op);
        loop {
            match self.go_on(op, reply, (true, SleepsEnd::ByThemselves)).await {
                // It would begin its event again, without end.
                Turn::Request(Request::Restart(_)) | Turn::Done(_) => break,
                Turn::Request(_) => reply = Reply::Switch(false),
                Turn::Failed(words) => {
                    self.count(op);
                    return Err(OpError::Script(ScriptPart::End, words));
                }
            }
        }
        self.count(op);
        Ok(())
    }

    pub(super) fn into_sessions(self) -> impl Iterator<Item = LeanSession> {
        self.connections.into_sessions()
    }
}

/// Runs the file and `init` of each group's script before the first step; the states live until [`end_main`].
pub(crate) async fn begin_main<'a>(
    plan: &'a Plan,
    server: (&'a ServerLink, &'a Inbox),
) -> error::Result<Vec<Runner<'a>>> {
    if !plan.host_threads.is_empty() {
        share_unique((unique_start(), plan.host_threads.len() as u32 + 1));
    }
    let measured = plan.script.iter().map(|script| (None, script, &plan.rules.after_error));
    let read = plan.groups.iter().filter_map(|group| Some((group.name, group.read.as_ref()?)));
    let beside = read.map(|(name, read)| (Some(name), &read.script, &read.after_error));
    let mut all = Vec::new();
    for (group, script, after_error) in measured.chain(beside) {
        let vm = Vm::new(script, plan.seed, Box::new(say_line))?;
        let ignored = after_error.ignored().unwrap_or(&NONE);
        let mut main = Runner::new(vm.state(0)?, server, ignored, script.text_statements);
        let begun = async {
            main.run(Entry::Chunk).await.map_err(Error::failed)?;
            call(&mut main, "init").await
        };
        begun.await.map_err(|error: Error| match group {
            Some(name) => error.context(format!("group {name}")),
            None => error,
        })?;
        all.push(main);
    }
    Ok(all)
}

/// Runs `done` of each after the last step; returns the first error.
pub(crate) async fn end_main(all: Vec<Runner<'_>>) -> error::Result<()> {
    let mut ended = Ok(());
    for mut main in all {
        let done = call(&mut main, "done").await;
        ended = ended.and(done);
        main.close().await;
    }
    ended
}

async fn call(main: &mut Runner<'_>, name: &str) -> error::Result<()> {
    if main.state.has(name)? {
        main.run(Entry::Call(name)).await.map_err(Error::failed)?;
    }
    Ok(())
}
#[cfg(test)]
mod tests;
