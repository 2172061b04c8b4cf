//! One client: one connection, one op after the other. Connections are opened before a step, and
//! again where the policy has lost ones reopened.

use std::rc::Rc;

use super::answer::find_fault;
use super::connection::{ClosedSession, Connection, Control, Handles, open_again, pauses};
use super::errors::{Change, OpError};
use super::job::{CompiledStatement, Generator, RowsOf, TableDraws, literals_into, number};
use super::pacing::Pacing;
use super::setup::{ClientAction, EndReason, ThreadEvent};
use super::state::{ClientState, ThreadState};
use crate::mysql::wire::{Answer, LeanSession, Params, Want};
use crate::observe::{EventCounts, Ns, Op};
use crate::plan::{AfterError, AtEnd, Ignored, Rules, Spread, limits};
use crate::workload::Effect;

/// Checks the content of one answer in 16: a check costs a tenth of an op.
const CONTENT_EVERY: u64 = 16;
/// The error of a deadlock: the server has rolled the whole transaction back.
const DEADLOCK: u16 = 1213;

/// Runs ops until the window ends, or an error ends the step; returns the session, if there is one
/// then.
pub(crate) async fn run(
    thread: Rc<ThreadState>,
    state: Rc<ClientState>,
    connection: Connection,
) -> Option<ClosedSession> {
    let mut client = Client::new(&thread, &state, connection);
    let plan = &thread.job().plan;
    let is_reconnectable = |error: &OpError| match &plan.rules.after_error {
        AfterError::Policy => plan.policy.reconnects(),
        AfterError::Restart(ignored) => ignored.has_lost() && !error.keeps_session(),
    };
    loop {
        let error = match state.watch(thread.op_timeout(), client.work()).await {
            Ok(Ok(NextStep::End)) => return Some(client.into_closed()),
            Ok(Ok(NextStep::Reconnect)) => None,
            Ok(Err(error)) => Some(error),
            // The op ended without its client, which could not account for it.
            Err(error) => {
                let now = thread.now();
                thread.failed(&state, state.issued.get().unwrap_or(now), now, &error);
                Some(error)
            }
        };
        if let Some(error) = error.as_ref().filter(|error| !is_reconnectable(error)) {
            client.report_end(error);
            thread.setup.tell(ThreadEvent::Abort(state.client, error.clone()));
            return None;
        }
        // First the old connection goes: the server may have none to spare.
        drop(client.session);
        let Some(reopened) = reopen(&thread, &state, error.is_none()).await else {
            if let (Some(began), Some(error)) = (client.resumed, &error) {
                thread.failed(&state, began, thread.now(), error);
            }
            return None;
        };
        (client.session, client.handles) = reopened;
        client.unsettled.clear();
        client.since_opened = 0;
    }
}

/// The fate of an op after an attempt that may be repeated.
enum Attempt {
    Over(Result<(), OpError>),
    Again,
    /// It goes on over another connection.
    Resumes(OpError),
    /// The time ended before it succeeded.
    Expired,
}

/// The reason why `work` returned without an error.
enum NextStep {
    End,
    Reconnect,
}

/// Opens the client's connection again, however long it takes; None if the thread gives it up. At once
/// where the old one was not lost.
async fn reopen(
    thread: &ThreadState,
    state: &ClientState,
    mut at_once: bool,
) -> Option<(LeanSession, Handles)> {
    state.offline.set(true);
    let mut pauses = pauses(state.client, thread.failures.borrow().reconnects);
    let reopened = loop {
        let opening = async {
            if !std::mem::take(&mut at_once) {
                tokio::time::sleep(pauses()).await;
            }
            open_again(&thread.setup, &thread.inbox, state.client).await
        };
        // Boxed: else every client keeps room for a log-in while it works.
        let failure = match state.watch(thread.op_timeout(), Box::pin(opening)).await {
            Ok(Ok(reopened)) => break reopened,
            Ok(Err(failure)) => failure,
            Err(_) => return None,
        };
        thread.failures.borrow_mut().count_refused_reconnect(thread.now(), failure);
    };
    thread.setup.reopened.notify_one();
    state.offline.set(false);
    thread.failures.borrow_mut().reconnects += 1;
    if let Some(events) = thread.recorder.borrow_mut().events(thread.now()) {
        events.reconnects += 1;
    }
    Some(reopened)
}

struct Client<'a> {
    thread: &'a ThreadState,
    state: &'a ClientState,
    session: LeanSession,
    handles: Handles,
    generator: Generator,
    quota: Option<u64>,
    values: Params,
    count: u64,
    unsettled: Vec<(u32, Change)>,
    done: OpProgress,
    /// By statement: its table, where each kind draws its own.
    tables: Vec<u32>,
    /// The start of an op that goes on over another connection.
    resumed: Option<Ns>,
    since_opened: u64,
    failed_request: Option<FailedRequest>,
    bulk: BulkRows,
}

#[derive(Default)]
struct OpProgress {
    table: u32,
    statements: u32,
    rows: u64,
}

/// The last request of the client, which failed.
#[derive(Debug, Clone, Copy)]
enum FailedRequest {
    Control {
        which: Control,
        prepared: bool,
    },
    Statement {
        index: usize,
        table: u32,
    },
    Rows,
    /// The last of them, when the run is over.
    Rest,
}

/// A bulk statement that grows by a row an event, and the next row.
#[derive(Default)]
struct BulkRows {
    sql: Vec<u8>,
    row: Vec<u8>,
}

impl<'a> Client<'a> {
    fn new(thread: &'a ThreadState, state: &'a ClientState, connection: Connection) -> Self {
        let (job, measured) = (thread.job(), thread.window.get().start == 0);
        state.measured.set(measured);
        Client {
            thread,
            state,
            quota: job.quota(state.client),
            generator: Generator {
                stream: job.stream(state.client, measured),
                slices: job.slices(state.client),
                serials: connection.serials,
                previous: Params::default(),
            },
            session: connection.session,
            handles: connection.handles,
            values: Params::default(),
            count: 0,
            unsettled: Vec::new(),
            done: OpProgress::default(),
            tables: vec![0; job.statements.len()],
            resumed: None,
            since_opened: 0,
            failed_request: None,
            bulk: BulkRows::default(),
        }
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
            if now >= thread.window.get().start {
                self.measure();
            }
            if self.wants_reconnect() {
                return Ok(NextStep::Reconnect);
            }
            // An op that goes on over another connection has begun already.
            if self.state.measured.get() && self.resumed.is_none() {
                if let Some(quota) = &mut self.quota {
                    let Some(rest) = quota.checked_sub(1) else { break };
                    *quota = rest;
                }
                if !thread.may_begin() {
                    break;
                }
            }
            now = self.op().await?;
            if let Some((pause, pauses)) = thread.job().plan.think.zip(thread.pauses.as_ref()) {
                // None follows the last op of a step with --ops: the window ends with its answer.
                if self.state.measured.get() && self.quota == Some(0) {
                    break;
                }
                let until = now.saturating_add(pause.as_nanos() as Ns);
                now = pauses.until(until, || thread.now()).await;
            }
        }
        self.send_rows(FailedRequest::Rest).await?;
        Ok(NextStep::End)
    }

    /// Tells whether it is time for a new connection (sysbench's `--reconnect`).
    fn wants_reconnect(&self) -> bool {
        (1..=self.since_opened).contains(&self.rules().reconnect_every)
    }

    #[inline]
    fn measure(&mut self) {
        if !self.state.measured.replace(true) {
            self.generator.stream = self.thread.job().stream(self.state.client, true);
        }
    }

    /// Does one op an arrival in an open loop, until there are none.
    async fn paced(&mut self, pacing: &Pacing) -> Result<NextStep, OpError> {
        // Threads take the clients in turn.
        let slot = self.state.client as usize / self.thread.job().threads;
        if self.resumed.is_some() {
            self.op().await?;
        }
        while let Some(arrival) = pacing.next(slot, || self.thread.now()).await {
            if arrival.measured {
                self.measure();
            }
            if arrival.measured && !self.thread.may_begin() {
                break;
            }
            self.state.intended.set(Some(arrival.intended));
            self.op().await?;
            if self.wants_reconnect() {
                return Ok(NextStep::Reconnect);
            }
        }
        self.send_rows(FailedRequest::Rest).await?;
        Ok(NextStep::End)
    }

    /// Does one op; returns when it completed. An error that the policy lives with is counted, another
    /// one is returned as well.
    async fn op(&mut self) -> Result<Ns, OpError> {
        let (thread, state) = (self.thread, self.state);
        let job = thread.job();
        self.count += 1;
        let transaction = self.pick();
        if let Some(began) = self.resumed.take() {
            state.issued.set(Some(began));
        }
        self.since_opened += 1;
        let (outcome, completed) = loop {
            let outcome = self.attempt(transaction).await;
            let now = thread.now();
            // An op that ends in the window counts there, even if the warm-up began it.
            if self.rules().at_end != AtEnd::Drain && now >= thread.window.get().start {
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
        match outcome {
            Ok(()) => {
                let OpProgress { table, statements, rows, .. } = self.done;
                let (intended, measured) = (state.intended.get(), state.measured.get());
                let op = Op { intended, issued, measured, completed, statements, rows };
                if self.rules().count_answers {
                    let took = completed.saturating_sub(intended.unwrap_or(issued));
                    self.count(completed, |events| events.event(state.client, took));
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

    /// Does a transaction, with tables and keys of its own.
    async fn attempt(&mut self, index: usize) -> Result<(), OpError> {
        let job = self.thread.job();
        let transaction = &job.transactions[index];
        let stream = &mut self.generator.stream;
        let mut draw = || stream.below(u64::from(job.places())) as u32;
        let table = match (job.spread, transaction.tables.is_empty()) {
            (Spread::Pinned, _) => self.state.client % job.places(),
            (Spread::Random, true) => draw(),
            (Spread::Random, false) => {
                let mut before = 0;
                for (at, follows) in &transaction.tables {
                    before = if *follows { before } else { draw() };
                    self.tables[*at] = before;
                }
                self.tables[transaction.tables[0].0]
            }
        };
        if job.table_each && transaction.tables.is_empty() {
            self.tables.fill(table);
        }
        self.done = OpProgress { table, ..OpProgress::default() };
        match transaction.rows_of {
            Some(statement) => self.row(statement).await,
            None => self.transaction(index).await,
        }
    }

    /// Decides whether an op begins again: after an error that is to be ignored it does until it succeeds,
    /// or the time is over for long.
    fn after_attempt(
        &mut self,
        ignored: &Ignored,
        outcome: Result<(), OpError>,
        now: Ns,
    ) -> Attempt {
        let (thread, state) = (self.thread, self.state);
        let began = state.issued.get().unwrap_or(now);
        let Err(error) = outcome else { return Attempt::Over(Ok(())) };
        if !error.keeps_session() {
            if !ignored.has_lost() {
                return Attempt::Over(Err(error));
            }
            self.resumed = Some(began);
            thread.note_error(state, now, &error);
            return Attempt::Resumes(error);
        }
        let is_ignored = error.code().is_some_and(|code| ignored.has(code));
        // Without a time, it would go on for ever.
        let endless = ends_by_ops(thread) && now - began > limits::SILENCE.as_nanos() as Ns;
        if !is_ignored || endless || !self.session.is_usable() {
            return Attempt::Over(Err(error));
        }
        self.count(now, |events| events.ignored += 1);
        if now >= thread.ends_at() {
            thread.failed(state, began, now, &error);
            return Attempt::Expired;
        }
        thread.note_error(state, now, &error);
        if error.code() != Some(DEADLOCK) {
            // The next BEGIN commits what the server has not rolled back.
            self.doubt_the_commit();
            thread.enter_doubt(state);
        }
        state.issued.set(Some(began));
        Attempt::Again
    }

    /// Adds a row to the bulk statement, which goes when the row does not fit into it.
    async fn row(&mut self, index: usize) -> Result<(), OpError> {
        let (job, table) = (self.thread.job(), self.done.table);
        let statement = &job.statements[index];
        let bulk = statement.bulk.as_ref().expect("the caller has looked");
        let from = TableDraws { table, slot: 0, picks: &self.thread.picks[table as usize] };
        self.issue();
        self.generator.draw(&mut self.values, &statement.sources, from);
        self.bulk.row.clear();
        literals_into(&mut self.bulk.row, &statement.pieces, &self.values);
        if self.bulk.sql.len() + bulk.join.len() + self.bulk.row.len() > bulk.bytes_max {
            self.send_rows(FailedRequest::Rows).await?;
        }
        if self.bulk.sql.is_empty() {
            self.bulk.sql.extend_from_slice(job.with_table(&bulk.head, table).as_bytes());
        } else {
            self.bulk.sql.extend_from_slice(bulk.join.as_bytes());
        }
        self.bulk.sql.extend_from_slice(&self.bulk.row);
        self.done.rows += 1;
        Ok(())
    }

    /// Sends the bulk statement, if there is one.
    async fn send_rows(&mut self, request: FailedRequest) -> Result<(), OpError> {
        if self.bulk.sql.is_empty() {
            return Ok(());
        }
        self.session.text().extend_from_slice(&self.bulk.sql);
        self.bulk.sql.clear();
        let answer = self.session.query(Want::Count).await.map_err(|failure| {
            self.failed_request = Some(request);
            OpError::Failure(failure)
        })?;
        self.count(self.thread.now(), |events| events.writes += u64::from(answer.affected > 0));
        Ok(())
    }

    /// Tells what of a client ended the step, where somebody shows it.
    fn report_end(&mut self, error: &OpError) {
        let job = self.thread.job();
        if !job.plan.rules.raw_refusals {
            return;
        }
        let sent = || self.session.sent_text();
        if let (Some(asked), OpError::Failure(failure)) = (self.failed_request.take(), error) {
            let during = match asked {
                FailedRequest::Control { which, prepared: true } => {
                    ClientAction::Execute(which.sql().to_owned())
                }
                FailedRequest::Statement { index, table } if !job.statements[index].text => {
                    ClientAction::Execute(job.sql(index, table))
                }
                FailedRequest::Control { .. } | FailedRequest::Statement { .. } => {
                    ClientAction::Query(sent())
                }
                FailedRequest::Rows => ClientAction::Rows(sent()),
                FailedRequest::Rest => ClientAction::Rest(sent()),
            };
            let refused = EndReason::Client(during, failure.clone());
            self.thread.setup.tell(ThreadEvent::Ending(refused));
        }
    }

    fn into_closed(self) -> ClosedSession {
        let closes = self.rules().close_statements;
        ClosedSession::new(self.session, self.handles, closes)
    }

    fn pick(&mut self) -> usize {
        let job = self.thread.job();
        if job.transactions.len() == 1 {
            return 0;
        }
        let mut at = self.generator.stream.below(job.weights);
        for (i, transaction) in job.transactions.iter().enumerate() {
            match at.checked_sub(transaction.weight) {
                Some(rest) => at = rest,
                None => return i,
            }
        }
        unreachable!("the weights add up to {}", job.weights)
    }

    async fn transaction(&mut self, index: usize) -> Result<(), OpError> {
        let transaction = &self.thread.job().transactions[index];
        if !transaction.begin {
            for statement in &transaction.passes {
                let (table, change) = self.statement(*statement, true).await?;
                self.settle(table, change);
            }
            return Ok(());
        }
        self.unsettled.clear();
        self.control(Control::Begin).await?;
        for statement in &transaction.passes {
            match self.statement(*statement, false).await {
                Ok(change) => self.unsettled.push(change),
                // A deadlock has rolled back already, a lock wait timeout has not.
                Err(error) => return Err(self.roll_back(error).await),
            }
        }
        // Only a lost COMMIT leaves a doubt: before it, the server rolls back.
        self.doubt_the_commit();
        if let Err(error) = self.control(Control::Commit).await {
            self.doubt_what_was_sent();
            // The next BEGIN must not commit the rest.
            return Err(self.roll_back(error).await);
        }
        self.state.pending.borrow_mut().clear();
        for (table, change) in &self.unsettled {
            self.settle(*table, *change);
        }
        Ok(())
    }

    /// Rolls back after an error, which becomes another one if that fails, too.
    async fn roll_back(&mut self, error: OpError) -> OpError {
        // Without it, the next BEGIN commits what the server has not rolled back.
        if !error.keeps_session() || !self.rules().roll_back {
            return error;
        }
        match self.control(Control::Rollback).await {
            Ok(()) => error,
            Err(rollback) => error.left_open(rollback),
        }
    }

    async fn control(&mut self, which: Control) -> Result<(), OpError> {
        let prepared = self.handles.control.get(which as usize).copied().flatten();
        self.issue();
        let outcome = if let Some(handle) = prepared {
            self.session.execute(handle, &Params::default(), Want::Count).await
        } else {
            self.session.text().extend_from_slice(which.sql().as_bytes());
            self.session.query(Want::Count).await
        };
        self.done.statements += 1;
        if let Err(failure) = outcome {
            self.failed_request =
                Some(FailedRequest::Control { which, prepared: prepared.is_some() });
            return Err(OpError::Failure(failure));
        }
        if self.rules().count_answers {
            self.count(self.thread.now(), |events| events.others += 1);
        }
        Ok(())
    }

    /// Notes what COMMIT leaves in doubt if its answer never comes.
    fn doubt_the_commit(&self) {
        let mut pending = self.state.pending.borrow_mut();
        pending.clear();
        for (table, change) in self.unsettled.iter().filter(|(_, one)| one.effect != Effect::None) {
            match pending.iter_mut().find(|(there, ..)| there == table) {
                Some((_, writes, unknown)) => {
                    *writes += 1;
                    unknown.add(&change.doubt());
                }
                None => pending.push((*table, 1, change.doubt())),
            }
        }
    }

    /// Takes the doubt of a write that failed away, if it never left this program.
    #[cold]
    fn doubt_what_was_sent(&self) {
        if !self.session.has_sent() {
            self.state.pending.borrow_mut().clear();
        }
    }

    /// Takes the instant just before a call; the first one is the op's.
    #[inline]
    fn issue(&self) -> Ns {
        let now = self.thread.now();
        if self.state.issued.get().is_none() {
            self.state.issued.set(Some(now));
        }
        now
    }

    fn settle(&self, table: u32, change: Change) {
        if change.effect != Effect::None {
            change.enter(&mut self.thread.ledger.borrow_mut()[table as usize]);
        }
    }

    /// Makes one round trip, checks the answer, and returns what it changed in which table.
    async fn statement(
        &mut self,
        index: usize,
        autocommit: bool,
    ) -> Result<(u32, Change), OpError> {
        let (thread, state) = (self.thread, self.state);
        let job = thread.job();
        let table = if job.table_each { self.tables[index] } else { self.done.table };
        let statement = &job.statements[index];
        let slot = if job.spread == Spread::Pinned { 0 } else { table as usize };
        let from = TableDraws { table, slot, picks: &thread.picks[table as usize] };
        if autocommit {
            let mut pending = state.pending.borrow_mut();
            pending.clear();
            pending.extend(statement.doubt(table, 0));
        }
        let mut key = 0;
        let k = if let Some(bulk) = &statement.bulk {
            let head = job.with_table(&bulk.head, table);
            self.generator.bulk_into(self.session.text(), statement, &head, from)
        } else {
            self.generator.draw(&mut self.values, &statement.sources, from);
            key = statement.key.map_or(0, |i| number(self.values.get(i)));
            if statement.text {
                let pieces = &thread.texts[table as usize][index];
                literals_into(self.session.text(), pieces, &self.values);
            }
            statement.k_of(&self.values)
        };
        let own = job.tables.own && self.count.is_multiple_of(CONTENT_EVERY);
        let content = own && statement.check.content;
        let first = content || statement.check.value.is_some();
        let want = if first { Want::First } else { Want::Count };
        let handle = slot * job.prepared.len() + statement.prepared;
        let called = self.issue();
        let outcome = if statement.text {
            self.session.query(want).await
        } else {
            self.session.execute(self.handles.statements[handle], &self.values, want).await
        };
        self.done.statements += 1;
        if job.timed_statements > 0 {
            let took = thread.now() - called;
            thread.recorder.borrow_mut().statement(index, state.measured.get(), took);
        }
        let answer = outcome.map_err(|failure| {
            self.doubt_what_was_sent();
            self.failed_request = Some(FailedRequest::Statement { index, table });
            OpError::Failure(failure)
        })?;
        let known = statement.range.map_or(0, |range| range.rows(&self.values));
        state.pending.borrow_mut().clear();
        if statement.keeps_values {
            std::mem::swap(&mut self.generator.previous, &mut self.values);
        }
        self.done.rows += answer.rows + answer.more_rows;
        if statement.rows == RowsOf::Insert {
            self.done.rows += answer.affected;
        }
        // RETURNING sends rows instead of their number.
        let affected = answer.affected.max(answer.rows);
        let change = Change { effect: statement.effect, affected, k };
        let value = statement.check.value.and_then(|_| self.session.number());
        let content = content.then(|| (table, key, self.session.first()));
        let wrong = find_fault(&statement.check, answer, value, content);
        if job.plan.rules.count_answers {
            self.count_answer(statement, answer, wrong.is_some());
        } else if let Some(wrong) = wrong {
            // It may be in the table for all that.
            if autocommit {
                state.pending.borrow_mut().extend(statement.doubt(table, answer.affected));
            }
            return Err(OpError::Wrong(format!("{}: {wrong}", job.sql(index, table))));
        }
        let lacks = known.saturating_sub(answer.rows);
        if lacks > thread.lacking[table as usize].get() {
            // Boxed: no answer of a sound server comes here.
            Box::pin(self.refuse_part((index, table), answer.rows, lacks)).await?;
        }
        Ok((table, change))
    }

    /// Refuses an answer that is shorter than its range if the server counts more rows there than it gives,
    /// also when it is asked again, as another process may have put rows back. Else the table has lost rows
    /// on purpose: ranges that lack as many are not asked about again.
    #[cold]
    async fn refuse_part(
        &mut self,
        at: (usize, u32),
        mut rows: u64,
        lacks: u64,
    ) -> Result<(), OpError> {
        let ((index, table), mut counted) = (at, None);
        for _ in 0..3 {
            // A LIMIT of the answer does not limit the count. In a transaction both see one snapshot.
            self.query_again(at, [b"SELECT COUNT(*) FROM (", b") AS answer"]).await?;
            counted = self.session.number();
            if counted.is_some_and(|counted| counted <= rows) {
                self.thread.lacking[table as usize].set(lacks);
                return Ok(());
            }
            rows = self.query_again(at, [b"", b""]).await?.rows;
            if counted.is_some_and(|counted| counted <= rows) {
                return Ok(());
            }
        }
        let counted = counted.map_or("an unknown number".to_owned(), |n| n.to_string());
        let sql = self.thread.job().sql(index, table);
        Err(OpError::Wrong(format!("{sql}: {rows} rows of the {counted} that the range has")))
    }

    /// Sends the last statement again as text, between two other texts.
    async fn query_again(
        &mut self,
        (index, table): (usize, u32),
        [before, after]: [&[u8]; 2],
    ) -> Result<Answer, OpError> {
        let job = self.thread.job();
        let statement = &job.statements[index];
        let pieces: Vec<String> =
            statement.pieces.iter().map(|piece| job.with_table(piece, table)).collect();
        let kept = statement.keeps_values;
        let values = if kept { &self.generator.previous } else { &self.values };
        let sql = self.session.text();
        sql.extend_from_slice(before);
        literals_into(sql, &pieces, values);
        sql.extend_from_slice(after);
        self.session.query(Want::First).await.map_err(OpError::Failure)
    }

    /// Counts an answer by its kind, when it is there.
    fn count_answer(&self, statement: &CompiledStatement, answer: Answer, unexpected: bool) {
        self.count(self.thread.now(), |events| {
            let counted = match (statement.rows == RowsOf::Select, answer.affected) {
                (true, _) => &mut events.reads,
                (false, 1..) => &mut events.writes,
                (false, 0) => &mut events.others,
            };
            *counted += 1;
            events.unexpected += u64::from(unexpected);
        });
    }

    /// Adds to the counts of answers at an instant, where there are any.
    fn count(&self, now: Ns, add: impl FnOnce(&mut EventCounts)) {
        if let Some(events) = self.thread.recorder.borrow_mut().events(now) {
            add(events);
        }
    }
}

/// Tells whether only the number of ops ends the run.
fn ends_by_ops(thread: &ThreadState) -> bool {
    thread.job().plan.stop.time().is_none_or(|time| time >= limits::PHASE_MAX)
}
