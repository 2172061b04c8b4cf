//! One client: one connection, one op after the other.

use std::rc::Rc;
use std::time::Duration;

use super::connect::Connection;
use super::errors::{AfterError, OpError};
use super::job::{Check, CompiledStatement, Counted, Job};
use super::ledger::{Change, Pending, in_doubt};
use super::pacing::Pacing;
use super::state::{ClientState, ThreadState, WorkEnd};
use super::values::{Generator, TableDraws, literals_into, number, signed};
use crate::mysql::session::{Answer, Failure, Session};
use crate::observe::recorder::{Ns, Op};
use crate::plan::Spread;
use crate::summary::Doubt;
use crate::workload::{Effect, rows};

/// Of so many answers that could prove themselves one is checked: the check costs about a
/// tenth of an op.
const CONTENT_EVERY: u64 = 16;
/// A client that pauses looks so often whether the step was ended.
const END_SEEN: Ns = 100_000_000;

/// Runs ops until the window ends; returns the session, if there is one then, or the error that
/// ends the step.
pub(crate) async fn run(
    thread: Rc<ThreadState>,
    state: Rc<ClientState>,
    connection: Connection,
) -> Result<Option<Session>, OpError> {
    let mut client = Client::new(&thread, &state, connection);
    state.measured.set(thread.window_start.get() == 0);
    loop {
        let error = match state.watch(client.work(&thread, &state)).await {
            WorkEnd::Done(Ok(())) => return Ok(Some(client.session)),
            WorkEnd::Done(Err(error)) => error,
            WorkEnd::GivenUp => {
                thread.failed_outside(&state, OpError::Timeout(thread.op_timeout()))
            }
            WorkEnd::Panicked(text) => thread.failed_outside(&state, OpError::Driver(text)),
        };
        if error.then(thread.job().plan.policy.on_error) != AfterError::Reopen {
            return Err(error);
        }
        // First the old connection goes: the server may have none to spare.
        match error {
            OpError::Timeout(_) | OpError::Driver(_) => client.session.abandon(),
            OpError::Failure(_) | OpError::Wrong(_) | OpError::LeftOpen(_) => drop(client.session),
        }
        let Some((session, handles)) = reopen(&thread, &state).await else { return Ok(None) };
        (client.session, client.handles) = (session, handles);
        client.unsettled.clear();
    }
}

/// Opens the client's connection again; None if the thread gives it up.
async fn reopen(thread: &ThreadState, state: &ClientState) -> Option<(Session, Vec<usize>)> {
    state.offline.set(true);
    let reopened = loop {
        let before = thread.failures.borrow().reconnects;
        let refused = |failure| thread.refused(failure);
        let opening = thread.setup.connector.reopen(thread.job(), state.client, before, refused);
        // Boxed: else every client keeps room for a log-in while it works.
        match state.watch(Box::pin(opening)).await {
            WorkEnd::Done(reopened) => break reopened,
            WorkEnd::GivenUp => return None,
            WorkEnd::Panicked(text) => {
                thread.refused(Failure::Lost(format!("the driver panicked: {text}")));
            }
        }
    };
    state.offline.set(false);
    thread.failures.borrow_mut().reconnects += 1;
    Some(reopened)
}

struct Client {
    session: Session,
    handles: Vec<usize>,
    generator: Generator,
    quota: Option<u64>,
    sql: String,
    count: u64,
    unsettled: Vec<Change>,
    done: OpProgress,
}

#[derive(Default)]
struct OpProgress {
    statements: u32,
    rows: u64,
}

/// Who does an op, and on which table.
#[derive(Clone, Copy)]
struct OpContext<'a> {
    thread: &'a ThreadState,
    state: &'a ClientState,
    table: u32,
}

impl Client {
    fn new(thread: &ThreadState, state: &ClientState, connection: Connection) -> Client {
        let job = thread.job();
        Client {
            quota: job.quota(state.client),
            generator: Generator {
                stream: job.stream(state.client, thread.window_start.get() == 0),
                slices: job.slices(state.client),
                serials: connection.serials,
                previous: Vec::new(),
            },
            session: connection.session,
            handles: connection.handles,
            sql: String::new(),
            count: 0,
            unsettled: Vec::new(),
            done: OpProgress::default(),
        }
    }

    async fn work(&mut self, thread: &ThreadState, state: &ClientState) -> Result<(), OpError> {
        if let Some(pacing) = &thread.pacing {
            return self.paced(thread, state, pacing).await;
        }
        // The clock is read once between two ops: the end of one decides on the next.
        let mut now = thread.now();
        while now < thread.window_end.get() {
            if now >= thread.window_start.get() {
                self.measure(thread, state);
            }
            if state.measured.get()
                && let Some(quota) = &mut self.quota
            {
                match quota.checked_sub(1) {
                    Some(rest) => *quota = rest,
                    None => break,
                }
            }
            now = self.op(thread, state).await?;
            if let Some(pause) = thread.job().plan.think {
                // None follows the last op of a step with --ops: the window ends with its answer.
                if state.measured.get() && self.quota == Some(0) {
                    break;
                }
                now = think(thread, now, pause).await;
            }
        }
        Ok(())
    }

    #[inline]
    fn measure(&mut self, thread: &ThreadState, state: &ClientState) {
        if !state.measured.replace(true) {
            self.generator.stream = thread.job().stream(state.client, true);
        }
    }

    /// Does one op an arrival in an open loop, until there are none.
    async fn paced(
        &mut self,
        thread: &ThreadState,
        state: &ClientState,
        pacing: &Pacing,
    ) -> Result<(), OpError> {
        while let Some(arrival) = pacing.next(state.place, || thread.now()).await {
            if arrival.measured {
                self.measure(thread, state);
            }
            state.intended.set(Some(arrival.intended));
            self.op(thread, state).await?;
        }
        Ok(())
    }

    /// Does one op; returns when it completed. An error that the policy lives with is counted, another
    /// one is returned as well.
    async fn op(&mut self, thread: &ThreadState, state: &ClientState) -> Result<Ns, OpError> {
        let job = thread.job();
        self.count += 1;
        let table = match job.spread {
            Spread::Pinned => state.client % job.places(),
            Spread::Random => self.generator.stream.below(u64::from(job.places())) as u32,
        };
        let transaction = self.pick(job);
        self.done = OpProgress::default();
        let outcome = self.transaction(OpContext { thread, state, table }, transaction).await;
        let issued = state.issued.take();
        let completed = thread.now();
        let issued = issued.unwrap_or(completed);
        match outcome {
            Ok(()) => {
                let OpProgress { statements, rows } = self.done;
                let (intended, measured) = (state.intended.get(), state.measured.get());
                let op = Op { intended, issued, measured, completed, statements, rows };
                if thread.recorder.borrow_mut().succeeded(op) {
                    state.ops.set(state.ops.get() + 1);
                    thread.accounts.borrow_mut()[table as usize].ops += 1;
                }
                Ok(completed)
            }
            Err(error) => {
                thread.failed(state, issued, completed, &error);
                let goes_on = error.then(job.plan.policy.on_error) == AfterError::GoOn;
                if goes_on { Ok(completed) } else { Err(error) }
            }
        }
    }

    fn pick(&mut self, job: &Job) -> usize {
        if job.compiled.transactions.len() == 1 {
            return 0;
        }
        let mut at = self.generator.stream.below(job.weights);
        for (i, transaction) in job.compiled.transactions.iter().enumerate() {
            match at.checked_sub(transaction.weight) {
                Some(rest) => at = rest,
                None => return i,
            }
        }
        unreachable!("the weights add up to {}", job.weights)
    }

    async fn transaction(&mut self, at: OpContext<'_>, index: usize) -> Result<(), OpError> {
        let transaction = &at.thread.job().compiled.transactions[index];
        if !transaction.begin {
            for statement in &transaction.passes {
                let change = self.statement(at, *statement, true).await?;
                at.settle(change);
            }
            return Ok(());
        }
        self.unsettled.clear();
        self.control(at, "BEGIN").await?;
        for statement in &transaction.passes {
            match self.statement(at, *statement, false).await {
                Ok(change) => self.unsettled.push(change),
                // A deadlock has rolled back already, a lock wait timeout has not.
                Err(error) => return Err(self.roll_back(at, error).await),
            }
        }
        // Only a lost COMMIT leaves a doubt: before it, the server rolls back.
        let (mut writes, mut unknown) = (0, Doubt::default());
        for change in self.unsettled.iter().filter(|change| change.effect != Effect::None) {
            writes += 1;
            unknown.add(&change.doubt());
        }
        at.state.pending.set(Pending::Known(at.table, writes, unknown));
        if let Err(error) = self.control(at, "COMMIT").await {
            // What is left of it must not be committed by the next BEGIN.
            return Err(self.roll_back(at, error).await);
        }
        at.state.pending.set(Pending::Nothing);
        for change in self.unsettled.drain(..) {
            at.settle(change);
        }
        Ok(())
    }

    /// Rolls back after an error, which becomes another one if that fails, too.
    async fn roll_back(&mut self, at: OpContext<'_>, error: OpError) -> OpError {
        if !error.keeps_session() {
            return error;
        }
        match self.control(at, "ROLLBACK").await {
            Ok(()) => error,
            Err(rollback) => error.left_open(rollback),
        }
    }

    async fn control(&mut self, at: OpContext<'_>, sql: &str) -> Result<(), OpError> {
        at.issue();
        let outcome = self.session.run_text(sql).await;
        self.done.statements += 1;
        outcome.map(|_| ()).map_err(OpError::Failure)
    }

    /// Makes one round trip, checks the answer, and returns what it changed.
    async fn statement(
        &mut self,
        at: OpContext<'_>,
        index: usize,
        autocommit: bool,
    ) -> Result<Change, OpError> {
        let OpContext { thread, state, table } = at;
        let job = thread.job();
        let statement = &job.compiled.statements[index];
        let slot = if job.spread == Spread::Pinned { 0 } else { table as usize };
        let from = TableDraws { table, slot, picks: &thread.picks[table as usize] };
        if autocommit {
            state.pending.set(Pending::Statement(table, index));
        }
        let (called, outcome, key, k) = if statement.text {
            let (key, k) = self.write(thread, index, statement, from);
            let called = at.issue();
            (called, self.session.run_text(&self.sql).await, key, k)
        } else {
            let values = self.generator.draw(&statement.values, from);
            let key = statement.key.map_or(0, |i| number(&values[i]));
            let k = k_of(statement, &values);
            if statement.keeps_values {
                self.generator.previous.clone_from(&values);
            }
            let handle = self.handles[slot * job.compiled.prepared.len() + statement.prepared];
            let called = at.issue();
            (called, self.session.run_prepared(handle, values).await, key, k)
        };
        self.done.statements += 1;
        if job.timed {
            let took = thread.now() - called;
            thread.recorder.borrow_mut().statement(index, state.measured.get(), took);
        }
        let answer = outcome.map_err(OpError::Failure)?;
        state.pending.set(Pending::Nothing);
        self.done.rows += answer.rows;
        if matches!(statement.effect, Effect::Insert | Effect::InsertK(_)) {
            self.done.rows += answer.affected;
        }
        let content = job.tables.own && self.count.is_multiple_of(CONTENT_EVERY);
        // Of RETURNING, rows come instead of their number.
        let affected = answer.affected.max(answer.rows);
        let change = Change { effect: statement.effect, affected, k };
        match check(&statement.check, &answer, content.then_some((table, key))) {
            None => Ok(change),
            Some(wrong) => {
                // It may be in the table for all that.
                if autocommit && statement.effect != Effect::None {
                    let doubt =
                        in_doubt(statement.effect, statement.check.affected_max(answer.affected));
                    state.pending.set(Pending::Known(table, 1, doubt));
                }
                Err(OpError::Wrong(format!("{}: {wrong}", job.sql(index, table))))
            }
        }
    }

    /// Writes a statement as text into `self.sql`; returns its first key, and the sum of `k` in it.
    fn write(
        &mut self,
        thread: &ThreadState,
        index: usize,
        statement: &CompiledStatement,
        from: TableDraws<'_>,
    ) -> (u64, i64) {
        self.sql.clear();
        if let Some(bulk) = &statement.bulk {
            let summed = match statement.effect {
                Effect::InsertK(of) => Some(of - 1),
                _ => None,
            };
            let head = thread.job().with_table(&bulk.head, from.table);
            return (0, self.generator.bulk_into(&mut self.sql, bulk, &head, summed, from));
        }
        let values = self.generator.draw(&statement.values, from);
        let pieces = &thread.texts[from.table as usize][index];
        literals_into(&mut self.sql, pieces, &values);
        let key = statement.key.map_or(0, |i| number(&values[i]));
        let k = k_of(statement, &values);
        if statement.keeps_values {
            self.generator.previous = values;
        }
        (key, k)
    }
}

#[inline]
fn k_of(statement: &CompiledStatement, values: &[mysql_async::Value]) -> i64 {
    let k = |at: &usize| signed(&values[*at]);
    statement.inserted_k.iter().map(k).fold(0, i64::saturating_add)
}

/// Pauses from an instant on, but not beyond the window's end; returns when it is over.
async fn think(thread: &ThreadState, from: Ns, pause: Duration) -> Ns {
    let until = from.saturating_add(pause.as_nanos() as Ns);
    let mut now = from;
    while now < until.min(thread.window_end.get()) {
        // The end may move meanwhile.
        let next = until.min(thread.window_end.get()).min(now + END_SEEN);
        tokio::time::sleep_until((thread.origin + Duration::from_nanos(next)).into()).await;
        now = thread.now();
    }
    now
}

impl OpContext<'_> {
    /// Takes the instant just before a call; the first one is the op's.
    #[inline]
    fn issue(self) -> Ns {
        let now = self.thread.now();
        if self.state.issued.get().is_none() {
            self.state.issued.set(Some(now));
        }
        now
    }

    fn settle(self, change: Change) {
        if change.effect != Effect::None {
            self.thread.accounts.borrow_mut()[self.table as usize].apply(change);
        }
    }
}

/// Holds an answer against the workload; returns what is wrong with it.
fn check(expected: &Check, answer: &Answer, content: Option<(u32, u64)>) -> Option<String> {
    let (number, what) = match expected.counted {
        Counted::Rows => (answer.rows, "rows"),
        Counted::Affected => (answer.affected, "rows affected"),
        Counted::Nothing => return None,
    };
    if number < expected.min || number > expected.max {
        return Some(match (expected.min, expected.max) {
            (min, u64::MAX) => format!("{number} {what} instead of {min} or more"),
            (min, max) if min == max => format!("{number} {what} instead of {min}"),
            (min, max) => format!("{number} {what} instead of {min} to {max}"),
        });
    }
    if let Some(wanted) = expected.value
        && answer.number() != Some(wanted)
        && answer.rows > 0
    {
        let got = answer.number().map_or_else(|| "no number".to_owned(), |n| n.to_string());
        return Some(format!("the value is {got} instead of {wanted}"));
    }
    if !expected.content || answer.rows == 0 {
        return None;
    }
    let (table, id) = content?;
    // PAD_CHAR_TO_FULL_LENGTH pads what is returned.
    let c = answer.content().unwrap_or(b"").trim_ascii_end();
    (!rows::proves(table + 1, id, c))
        .then(|| format!("the content is not that of id {id}: '{}'", c.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: u64, affected: u64) -> Answer {
        Answer { rows, affected, first: None }
    }

    #[test]
    fn answers_are_held_against_bounds() {
        let expected = |counted, min, max| Check { counted, min, max, content: false, value: None };
        let wrong = |expected: &Check, answer: &Answer| check(expected, answer, None);
        let exactly = expected(Counted::Rows, 1, 1);
        assert_eq!(wrong(&exactly, &answer(1, 0)), None);
        assert_eq!(wrong(&exactly, &answer(0, 1)).as_deref(), Some("0 rows instead of 1"));
        let range = expected(Counted::Rows, 1, 100);
        assert_eq!(wrong(&range, &answer(100, 0)), None);
        assert_eq!(wrong(&range, &answer(101, 0)).as_deref(), Some("101 rows instead of 1 to 100"));
        let some = expected(Counted::Affected, 1, u64::MAX);
        let text = "0 rows affected instead of 1 or more";
        assert_eq!(wrong(&some, &answer(9, 0)).as_deref(), Some(text));
        assert_eq!(wrong(&expected(Counted::Nothing, 5, 5), &answer(0, 0)), None);
        let value = Check { value: Some(101), ..exactly };
        let text = "the value is no number instead of 101";
        assert_eq!(wrong(&value, &answer(1, 0)).as_deref(), Some(text));
    }
}
