//! The loop of one client, over one connection, whatever its program does: pacing, recording, doubt and
//! reconnects. Connections are opened before a step, and again where the policy has lost ones reopened, or after
//! so many ops.

use std::pin::pin;
use std::rc::Rc;

use super::connection::{Connection, pauses, reconnect};
use super::errors::{ClientAction, OpError};
use super::operation::{OpContext, OpDone};
use super::pacing::Pacing;
use super::program::{Goodbye, Program};
use super::setup::ThreadEvent;
use super::state::{ClientState, SleepsEnd, ThreadState};
use crate::mysql::Failure;
use crate::mysql::wire::LeanSession;
use crate::observe::{Ns, Op};
use crate::plan::{AfterError, Ignored, OnError, Rules, limits};

/// The error of a deadlock: the server has rolled the whole transaction back.
const DEADLOCK: u16 = 1213;

/// Runs ops until the window ends, or an error ends the step; returns the sessions that are left.
pub(crate) async fn run(
    thread: Rc<ThreadState>,
    state: Rc<ClientState>,
    connection: Connection,
) -> Vec<Goodbye> {
    let mut client = Client::new(&thread, &state, connection);
    let plan = &thread.job().plan;
    let opens_again = client.program.opens_again();
    let is_reconnectable = |error: &OpError| match &plan.rules.after_error {
        _ if !opens_again => false,
        AfterError::Policy => plan.policy.reconnects(),
        AfterError::Restart(ignored) => {
            ignored.has_lost() && !error.keeps_session() && !error.is_of_rows()
        }
    };
    loop {
        // Pinned here: else each client keeps room for it twice.
        let worked = state.watch(thread.op_timeout(), pin!(client.work())).await;
        let error = match worked {
            Ok(Ok(NextStep::End)) => {
                let Client { session, program, .. } = client;
                return program.close(session, plan.rules.close_statements);
            }
            Ok(Ok(NextStep::Reconnect)) => None,
            Ok(Err(error)) => Some(error),
            // The op ended without its client, which could not account for it.
            Err(error) => {
                let now = thread.now();
                // A script's connection was away until after the end.
                let away = state.offline.get() && now >= thread.ends_at();
                let lost = || Failure::lost("no connection until the end");
                let error = if away { lost().into() } else { error };
                thread.failed(&state, state.issued.get().unwrap_or(now), now, &error);
                if away {
                    return Vec::new();
                }
                Some(error)
            }
        };
        if let Some(error) = error.as_ref().filter(|error| !is_reconnectable(error)) {
            thread.tell(ThreadEvent::Abort(state.client, error.clone()));
            return Vec::new();
        }
        // A step of `--ops` ends with its last answer, not when a lost server is back.
        if error.is_some() && client.resumed.is_none() && client.has_begun_all() {
            return Vec::new();
        }
        // First the old connection goes: the server may have none to spare.
        let reopened = if error.is_none() {
            renew(&thread, &state, client.session, &mut client.program).await
        } else {
            drop(client.session);
            reopen(&thread, &state, &mut client.program).await
        };
        let Some(session) = reopened else {
            if let (Some(began), Some(error)) = (client.resumed, &error) {
                thread.failed(&state, began, thread.now(), error);
            }
            return Vec::new();
        };
        client.session = session;
        client.ops_left = client.ops_a_connection();
    }
}

enum Attempt {
    Over(Result<OpDone, OpError>),
    Again,
    Resumes(OpError),
    Expired,
}

enum NextStep {
    End,
    Reconnect,
}

/// Closes a connection that has done its ops, and opens another; None if an error ends the step, or the thread
/// gives it up.
async fn renew(
    thread: &ThreadState,
    state: &ClientState,
    session: LeanSession,
    program: &mut Program,
) -> Option<LeanSession> {
    Box::pin(session.close(limits::COURTESY)).await;
    let plan = &thread.job().plan;
    let ends = plan.rules.after_error == AfterError::Policy;
    match log_in(thread, state, program).await {
        Ok(session) => {
            // sysbench counts them among its reconnects.
            thread.failures.borrow_mut().reconnects += u64::from(!ends);
            Some(session)
        }
        Err(refused) if ends && plan.policy.on_error == OnError::Abort => {
            // No later log-in ends its time.
            state.login.set(None);
            let error = OpError::Failure(refused, Some(Box::new(ClientAction::Connect)));
            thread.tell(ThreadEvent::Abort(state.client, error));
            None
        }
        Err(_) => reopen(thread, state, program).await,
    }
}

/// Logs in again after so many ops. The drain waits for it, as for an op. The time of one that was refused goes on
/// until a later attempt succeeds.
async fn log_in(
    thread: &ThreadState,
    state: &ClientState,
    program: &mut Program,
) -> Result<LeanSession, Failure> {
    state.answered.set(None);
    let began = thread.now();
    state.login.set(Some(began));
    // Boxed: else every client keeps room for a log-in while it works.
    let opened = Box::pin(reconnect(&thread.setup, &thread.inbox, program, state.client)).await;
    match &opened {
        Ok(_) => {
            let now = thread.now();
            thread.logged_in(state, now);
            thread.count(now, |events| events.reconnects += 1);
        }
        Err(refused) => thread.refused_reconnect(state, refused.clone()),
    }
    opened
}

/// Opens it again, however long that takes; None if the thread gives it up.
async fn reopen(
    thread: &ThreadState,
    state: &ClientState,
    program: &mut Program,
) -> Option<LeanSession> {
    state.offline.set(true);
    state.answered.set(None);
    let mut pauses = pauses(state.client, thread.failures.borrow().reconnects);
    let reopened = loop {
        let opening = async {
            tokio::time::sleep(pauses()).await;
            let _permit = thread.setup.logins.acquire().await.expect("nobody closes it");
            reconnect(&thread.setup, &thread.inbox, program, state.client).await
        };
        // Boxed: else every client keeps room for a log-in while it works.
        let mut opening = Box::pin(opening);
        let failure = match state.watch(thread.op_timeout(), opening.as_mut()).await {
            Ok(Ok(reopened)) => break reopened,
            Ok(Err(failure)) => failure,
            Err(_) => return None,
        };
        thread.refused_reconnect(state, failure);
    };
    thread.tell(ThreadEvent::Reopened);
    state.offline.set(false);
    thread.failures.borrow_mut().reconnects += 1;
    let now = thread.now();
    thread.logged_in(state, now);
    thread.count(now, |events| events.reconnects += 1);
    Some(reopened)
}

struct Client<'a> {
    thread: &'a ThreadState,
    state: &'a ClientState,
    session: LeanSession,
    program: Program,
    quota: Option<u64>,
    /// The start of an op that goes on over another connection.
    resumed: Option<Ns>,
    /// Ops until it logs in again.
    ops_left: u64,
}

impl<'a> Client<'a> {
    fn new(thread: &'a ThreadState, state: &'a ClientState, connection: Connection) -> Self {
        let (job, measured) = (thread.job(), thread.window.get().start == 0);
        let Connection { session, mut program } = connection;
        state.measured.set(measured);
        program.begin_phase(job, measured);
        let quota = job.quota(state.client);
        let mut client =
            Client { thread, state, session, program, quota, resumed: None, ops_left: 0 };
        client.ops_left = client.ops_of_first_connection();
        client
    }

    #[inline]
    fn rules(&self) -> &'a Rules {
        &self.thread.job().plan.rules
    }

    async fn work(&mut self) -> Result<NextStep, OpError> {
        let thread = self.thread;
        if let Some(pacing) = &thread.pacing {
            return self.paced(pacing).await;
        }
        // The clock is read once between two ops: the end of one decides on the next.
        let mut now = thread.now();
        while now < thread.window.get().last || self.resumed.is_some() {
            if self.program.has_ended() {
                break;
            }
            if now >= thread.window.get().start {
                self.measure();
            }
            if self.wants_reconnect(now) {
                return Ok(NextStep::Reconnect);
            }
            // An op that goes on over another connection has begun already.
            if self.state.measured.get() && self.resumed.is_none() {
                if let Some(quota) = &mut self.quota {
                    let Some(rest) = quota.checked_sub(1) else { break };
                    *quota = rest;
                }
                if !thread.may_begin(self.state).await {
                    break;
                }
            }
            now = self.op().await?;
            if self.program.has_rest() {
                now = self.rest().await?;
            }
            if let Some((pause, pauses)) = thread.job().plan.think.zip(thread.pauses.as_ref()) {
                // None follows the last op of a step with --ops: the window ends with its answer.
                if self.state.measured.get() && self.quota == Some(0) {
                    break;
                }
                let until = now.saturating_add(pause.as_nanos() as Ns);
                now = pauses.until(until, || thread.now()).await;
                self.state.answered.set(None);
            }
        }
        self.finish().await
    }

    /// Returns the ops of a connection; a script opens its own.
    fn ops_a_connection(&self) -> u64 {
        let every = self.thread.job().plan.reconnect_every;
        every.filter(|_| self.program.opens_again()).unwrap_or(u64::MAX)
    }

    /// Returns the ops of the first connection: each client has another number, or all would log in at once.
    fn ops_of_first_connection(&self) -> u64 {
        if self.rules().log_in_together {
            return self.ops_a_connection();
        }
        let (every, clients) = (self.ops_a_connection(), self.thread.job().step.clients);
        let part = u128::from(every) * (u128::from(self.state.client) + 1);
        part.div_ceil(u128::from(clients)) as u64
    }

    /// Returns whether the connection has done its ops, and others may follow.
    #[inline]
    fn wants_reconnect(&self, now: Ns) -> bool {
        self.ops_left == 0 && now < self.thread.window.get().last && !self.has_begun_all()
    }

    /// Returns whether no op of `--ops` is left for it.
    #[inline]
    fn has_begun_all(&self) -> bool {
        match &self.thread.pacing {
            Some(pacing) => !pacing.may_follow(self.place()),
            None => self.state.measured.get() && self.quota == Some(0),
        }
    }

    /// Returns its place in the thread: threads take the clients in turn.
    fn place(&self) -> usize {
        self.state.client as usize / self.thread.job().threads
    }

    /// Does what the program does between two ops. As with `--think`, a pause ends with the window, and none follows
    /// the last op.
    async fn rest(&mut self) -> Result<Ns, OpError> {
        let Client { thread, state, .. } = *self;
        let sleeps_end = if self.rules().counts_by_end() {
            SleepsEnd::ByThemselves
        } else if self.has_begun_all() {
            SleepsEnd::AtOnce
        } else {
            SleepsEnd::WithWindow
        };
        let mut context = OpContext { thread, state, session: &mut self.session };
        self.program.rest(&mut context, sleeps_end).await?;
        Ok(thread.now())
    }

    #[inline]
    fn measure(&mut self) {
        if !self.state.measured.replace(true) {
            self.program.begin_phase(self.thread.job(), true);
        }
    }

    async fn paced(&mut self, pacing: &Pacing) -> Result<NextStep, OpError> {
        let place = self.place();
        if self.resumed.is_some() {
            self.op().await?;
        }
        while let Some(arrival) = pacing.next(place, || self.thread.now()).await {
            if arrival.measured {
                self.measure();
            }
            if arrival.measured && !self.thread.may_begin(self.state).await {
                // Others would learn of it at their next arrivals.
                pacing.end();
                break;
            }
            self.state.intended.set(Some(arrival.intended));
            self.state.answered.set(None);
            let mut now = self.op().await?;
            if self.program.has_rest() {
                now = self.rest().await?;
            }
            if self.wants_reconnect(now) {
                return Ok(NextStep::Reconnect);
            }
            if self.program.has_ended() {
                break;
            }
        }
        self.finish().await
    }

    async fn finish(&mut self) -> Result<NextStep, OpError> {
        let Client { thread, state, .. } = *self;
        state.ended_by_script.set(self.program.has_ended());
        if !self.rules().counts_by_end() {
            // sysbench's time has what a script does at its end.
            thread.end_client(state);
        }
        let mut context = OpContext { thread, state, session: &mut self.session };
        self.program.finish(&mut context).await?;
        Ok(NextStep::End)
    }

    /// Returns the instant of its end. An error that the policy allows is counted, another one is returned as well.
    async fn op(&mut self) -> Result<Ns, OpError> {
        let (thread, state) = (self.thread, self.state);
        let job = thread.job();
        self.program.choose(job);
        if let Some(began) = self.resumed.take() {
            state.issued.set(Some(began));
        }
        self.ops_left = self.ops_left.saturating_sub(1);
        let (outcome, completed) = loop {
            let mut context = OpContext { thread, state, session: &mut self.session };
            let outcome = self.program.operation(&mut context).await;
            let now = thread.answered(state);
            // An op that ends in the window counts there, even if the warm-up began it.
            if self.rules().counts_by_end() && now >= thread.window.get().start {
                self.measure();
            }
            let AfterError::Restart(ignored) = &job.plan.rules.after_error else {
                break (outcome, now);
            };
            match self.after_attempt(ignored, outcome, now) {
                Attempt::Over(outcome) => break (outcome, now),
                Attempt::Again => {}
                Attempt::Resumes(error) => return Err(error),
                Attempt::Expired => return Ok(now),
            }
        };
        let issued = state.issued.take().unwrap_or(completed);
        if outcome.is_ok() && !self.program.counts() {
            return Ok(completed);
        }
        match outcome {
            Ok(OpDone { table, statements, rows, unmatched }) => {
                let (intended, measured) = (state.intended.get(), state.measured.get());
                let name = state.name.get();
                let op =
                    Op { intended, issued, measured, completed, statements, rows, unmatched, name };
                if self.rules().count_answers {
                    let took = completed.saturating_sub(intended.unwrap_or(issued));
                    thread.count(completed, |events| events.event(state.client, took));
                }
                if thread.recorder.borrow_mut().succeeded(op) {
                    state.ops.set(state.ops.get() + 1);
                    let ops = &thread.ops_by_table[table as usize];
                    ops.set(ops.get() + 1);
                }
                Ok(completed)
            }
            Err(error) => {
                thread.failed(state, issued, completed, &error);
                let goes_on = self.rules().after_error == AfterError::Policy
                    && error.goes_on(job.plan.policy.on_error)
                    && self.session.is_usable();
                if goes_on { Ok(completed) } else { Err(error) }
            }
        }
    }

    /// After an error that is to be ignored an op begins again until it succeeds, or the time is over for long.
    fn after_attempt(
        &mut self,
        ignored: &Ignored,
        outcome: Result<OpDone, OpError>,
        now: Ns,
    ) -> Attempt {
        let (thread, state) = (self.thread, self.state);
        let began = state.issued.get().unwrap_or(now);
        let error = match outcome {
            Ok(done) => return Attempt::Over(Ok(done)),
            Err(error) => error,
        };
        // The events of the rows have ended: none of them can begin again.
        if error.is_of_rows() {
            return Attempt::Over(Err(error));
        }
        if !error.keeps_session() {
            if !ignored.has_lost() || !self.program.opens_again() {
                return Attempt::Over(Err(error));
            }
            self.resumed = Some(began);
            thread.note_error(state, now, &error);
            return Attempt::Resumes(error);
        }
        let is_ignored = error.code().is_some_and(|code| ignored.has(code));
        if !is_ignored || thread.is_endless(began, now) || !self.session.is_usable() {
            return Attempt::Over(Err(error));
        }
        thread.count(now, |events| events.ignored += 1);
        if now >= thread.ends_at() {
            thread.failed(state, began, now, &error);
            return Attempt::Expired;
        }
        thread.note_error(state, now, &error);
        if error.code() != Some(DEADLOCK) {
            // The next BEGIN commits what the server has not rolled back.
            let context = OpContext { thread, state, session: &mut self.session };
            self.program.doubt_what_is_open(&context);
            thread.enter_doubt(state);
        }
        state.issued.set(Some(began));
        Attempt::Again
    }
}
