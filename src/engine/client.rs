//! One client: one connection, one op after the other.

use std::rc::Rc;

use super::compile::{Check, Statement, What};
use super::desk::{Desk, Seat};
use super::errors::{OpError, Then};
use super::job::Job;
use super::ledger::{Change, Pending, in_doubt};
use super::opening::{Ready, reopen};
use super::pace::Pace;
use super::values::{Drawer, Place, literals_into, number, signed};
use super::watched::{Ended, watched};
use crate::error::Result;
use crate::mysql::session::{Answer, Failure, Session};
use crate::observe::recorder::{Ns, Op};
use crate::plan::Spread;
use crate::summary::Doubt;
use crate::workload::{Effect, rows};

/// Of so many answers that could prove themselves one is checked: the check costs about a
/// tenth of an op.
const CONTENT_EVERY: u64 = 16;

/// Runs ops until the window ends; returns the session, if there is one then, or the error that
/// ends the step.
pub(crate) async fn run(
    desk: Rc<Desk>,
    seat: Rc<Seat>,
    ready: Ready,
) -> Result<std::result::Result<Option<Session>, OpError>> {
    let mut client = Client {
        quota: desk.job.quota(seat.client),
        drawer: Drawer {
            stream: desk.job.stream(seat.client, desk.window_start.get() == 0),
            slices: desk.job.slices(seat.client),
            serials: ready.serials,
            previous: Vec::new(),
        },
        session: ready.session,
        handles: ready.handles,
        sql: String::new(),
        count: 0,
        unsettled: Vec::new(),
    };
    seat.measured.set(desk.window_start.get() == 0);
    loop {
        let ended = watched(&seat, client.work(&desk, &seat)).await;
        let error = match ended {
            Ended::Done(ended) => match ended? {
                Ok(()) => return Ok(Ok(Some(client.session))),
                Err(error) => error,
            },
            Ended::GivenUp => ended_outside(&desk, &seat, OpError::Timeout(desk.op_timeout()))?,
            Ended::Panicked(text) => ended_outside(&desk, &seat, OpError::Driver(text))?,
        };
        if error.then(desk.job.policy.on_error) != Then::Reopen {
            return Ok(Err(error));
        }
        // First the old connection goes: the server may have none to spare.
        let Client { session, quota, drawer, sql, count, .. } = client;
        match error {
            OpError::Timeout(_) | OpError::Driver(_) => session.abandon(),
            OpError::Failure(_) | OpError::Wrong(_) | OpError::LeftOpen(_) => drop(session),
        }
        seat.offline.set(true);
        let reopened = loop {
            match watched(&seat, reopen(&desk, &seat)).await {
                Ended::Done(Some(reopened)) => break reopened,
                Ended::Done(None) | Ended::GivenUp => return Ok(Ok(None)),
                Ended::Panicked(text) => {
                    desk.refused(Failure::Lost(format!("the driver panicked: {text}")));
                }
            }
        };
        seat.offline.set(false);
        desk.reconnected();
        let (session, handles) = reopened;
        client = Client { session, handles, drawer, quota, sql, count, unsettled: Vec::new() };
    }
}

/// The error of an op that its client could not account for.
fn ended_outside(desk: &Desk, seat: &Seat, error: OpError) -> Result<OpError> {
    let now = desk.now();
    desk.failed(seat, seat.in_flight().unwrap_or(now), now, &error)?;
    Ok(error)
}

struct Client {
    session: Session,
    handles: Vec<usize>,
    drawer: Drawer,
    quota: Option<u64>,
    sql: String,
    count: u64,
    /// Effects of an open transaction.
    unsettled: Vec<Change>,
}

/// How far an op got.
struct Pass {
    issued: Option<Ns>,
    statements: u32,
    rows: u64,
}

impl Client {
    /// One op after the other until the window ends.
    async fn work(&mut self, desk: &Desk, seat: &Seat) -> Result<std::result::Result<(), OpError>> {
        if let Some(pace) = &desk.pace {
            return self.paced(desk, seat, pace).await;
        }
        // The clock is read once between two ops: the end of one decides on the next.
        let mut now = desk.now();
        while now < desk.window_end.get() {
            if !seat.measured.get() && now >= desk.window_start.get() {
                seat.measured.set(true);
                self.drawer.stream = desk.job.stream(seat.client, true);
            }
            if seat.measured.get()
                && let Some(quota) = &mut self.quota
            {
                match quota.checked_sub(1) {
                    Some(rest) => *quota = rest,
                    None => break,
                }
            }
            match self.op(desk, seat).await? {
                Ok(completed) => now = completed,
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }

    /// The open loop: one op an arrival, until there are none.
    async fn paced(
        &mut self,
        desk: &Desk,
        seat: &Seat,
        pace: &Pace,
    ) -> Result<std::result::Result<(), OpError>> {
        while let Some(arrival) = pace.next(seat, || desk.now()).await {
            if arrival.measured && !seat.measured.get() {
                seat.measured.set(true);
                self.drawer.stream = desk.job.stream(seat.client, true);
            }
            seat.intended.set(Some(arrival.intended));
            if let Err(error) = self.op(desk, seat).await? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    /// One op; when it completed. An error that the policy lives with is counted, another one is
    /// returned as well.
    async fn op(&mut self, desk: &Desk, seat: &Seat) -> Result<std::result::Result<Ns, OpError>> {
        let job = &desk.job;
        self.count += 1;
        let table = match job.spread {
            Spread::Pinned => seat.client % job.places(),
            Spread::Random => self.drawer.stream.below(u64::from(job.places())) as u32,
        };
        let transaction = self.pick(job);
        let mut pass = Pass { issued: None, statements: 0, rows: 0 };
        let outcome = self.transaction(desk, seat, table, transaction, &mut pass).await;
        seat.settle();
        let completed = desk.now();
        let issued = pass.issued.unwrap_or(completed);
        match outcome {
            Ok(()) => {
                let Pass { statements, rows, .. } = pass;
                let (intended, measured) = (seat.intended.get(), seat.measured.get());
                let op = Op { intended, issued, measured, completed, statements, rows };
                if desk.recorder.borrow_mut().succeeded(op)? {
                    seat.ops.set(seat.ops.get() + 1);
                    desk.accounts.borrow_mut()[table as usize].ops += 1;
                }
                Ok(Ok(completed))
            }
            Err(error) => {
                desk.failed(seat, issued, completed, &error)?;
                let goes_on = error.then(job.policy.on_error) == Then::GoOn;
                Ok(if goes_on { Ok(completed) } else { Err(error) })
            }
        }
    }

    fn pick(&mut self, job: &Job) -> usize {
        if job.transactions().len() == 1 {
            return 0;
        }
        let mut at = self.drawer.stream.below(job.weights);
        for (i, transaction) in job.transactions().iter().enumerate() {
            match at.checked_sub(transaction.weight) {
                Some(rest) => at = rest,
                None => return i,
            }
        }
        unreachable!("the weights add up to {}", job.weights)
    }

    async fn transaction(
        &mut self,
        desk: &Desk,
        seat: &Seat,
        table: u32,
        index: usize,
        pass: &mut Pass,
    ) -> std::result::Result<(), OpError> {
        let transaction = &desk.job.transactions()[index];
        if !transaction.begin {
            for statement in &transaction.passes {
                let change = self.statement(desk, seat, table, *statement, pass, true).await?;
                settle(desk, table, change);
            }
            return Ok(());
        }
        self.unsettled.clear();
        self.control(desk, seat, "BEGIN", pass).await?;
        for statement in &transaction.passes {
            match self.statement(desk, seat, table, *statement, pass, false).await {
                Ok(change) => self.unsettled.push(change),
                // A deadlock has rolled back already, a lock wait timeout has not.
                Err(error) => return Err(self.roll_back(desk, seat, pass, error).await),
            }
        }
        // Only a lost COMMIT leaves a doubt: before it, the server rolls back.
        let (mut writes, mut unknown) = (0, Doubt::default());
        for change in self.unsettled.iter().filter(|change| change.effect != Effect::None) {
            writes += 1;
            unknown.add(&change.doubt());
        }
        seat.pending.set(Pending::Known(table, writes, unknown));
        if let Err(error) = self.control(desk, seat, "COMMIT", pass).await {
            // What is left of it must not be committed by the next BEGIN.
            return Err(self.roll_back(desk, seat, pass, error).await);
        }
        seat.pending.set(Pending::Nothing);
        for change in self.unsettled.drain(..) {
            settle(desk, table, change);
        }
        Ok(())
    }

    /// After an error, which becomes another one if that fails, too.
    async fn roll_back(
        &mut self,
        desk: &Desk,
        seat: &Seat,
        pass: &mut Pass,
        error: OpError,
    ) -> OpError {
        if !error.keeps_session() {
            return error;
        }
        match self.control(desk, seat, "ROLLBACK", pass).await {
            Ok(()) => error,
            Err(rollback) => error.left_open(rollback),
        }
    }

    async fn control(
        &mut self,
        desk: &Desk,
        seat: &Seat,
        sql: &str,
        pass: &mut Pass,
    ) -> std::result::Result<(), OpError> {
        issue(desk, seat, pass);
        let outcome = self.session.run_text(sql).await;
        pass.statements += 1;
        outcome.map(|_| ()).map_err(OpError::Failure)
    }

    /// One round trip, checked; what it changed.
    async fn statement(
        &mut self,
        desk: &Desk,
        seat: &Seat,
        table: u32,
        index: usize,
        pass: &mut Pass,
        autocommit: bool,
    ) -> std::result::Result<Change, OpError> {
        let job = &desk.job;
        let statement = &job.statements()[index];
        let slot = if job.spread == Spread::Pinned { 0 } else { table as usize };
        let place = Place { table, slot, picks: &desk.picks[table as usize] };
        if autocommit {
            seat.pending.set(Pending::Statement(table, index));
        }
        let (called, outcome, key, k) = if statement.text {
            let (key, k) = self.write(desk, index, statement, place);
            let called = issue(desk, seat, pass);
            (called, self.session.run_text(&self.sql).await, key, k)
        } else {
            let values = self.drawer.draw(&statement.values, place);
            let key = statement.key.map_or(0, |i| number(values.get(i)));
            let k = k_of(statement, &values);
            if statement.keeps_values {
                self.drawer.previous.clone_from(&values);
            }
            let handle = self.handles[slot * job.prepared_a_table() + statement.prepared];
            let called = issue(desk, seat, pass);
            (called, self.session.run_prepared(handle, values).await, key, k)
        };
        pass.statements += 1;
        if job.timed {
            let took = desk.now() - called;
            desk.recorder.borrow_mut().statement(index, seat.measured.get(), took);
        }
        let answer = outcome.map_err(OpError::Failure)?;
        seat.pending.set(Pending::Nothing);
        pass.rows += answer.rows;
        if matches!(statement.effect, Effect::Insert | Effect::InsertK(_)) {
            pass.rows += answer.affected;
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
                    seat.pending.set(Pending::Known(table, 1, doubt));
                }
                Err(OpError::Wrong(format!("{}: {wrong}", job.sql(index, table))))
            }
        }
    }

    /// Writes a statement as text into `self.sql`: its first key, and the sum of `k` in it.
    fn write(
        &mut self,
        desk: &Desk,
        index: usize,
        statement: &Statement,
        place: Place<'_>,
    ) -> (u64, i64) {
        self.sql.clear();
        if let Some(bulk) = &statement.bulk {
            let summed = match statement.effect {
                Effect::InsertK(of) => Some(of - 1),
                _ => None,
            };
            let head = desk.job.with_table(&bulk.head, place.table);
            let written = self.drawer.bulk_into(&mut self.sql, bulk, &head, summed, place);
            return (0, written.sum);
        }
        let values = self.drawer.draw(&statement.values, place);
        let pieces = &desk.texts[place.table as usize][index];
        literals_into(&mut self.sql, pieces, &values);
        let key = statement.key.map_or(0, |i| number(values.get(i)));
        let k = k_of(statement, &values);
        if statement.keeps_values {
            self.drawer.previous = values;
        }
        (key, k)
    }
}

/// The sum of `k` of the rows that a statement inserts.
#[inline]
fn k_of(statement: &Statement, values: &[mysql_async::Value]) -> i64 {
    let k = |at: &usize| signed(values.get(*at));
    statement.inserted_k.iter().map(k).fold(0, i64::saturating_add)
}

/// The instant just before a call; the first one is the op's.
#[inline]
fn issue(desk: &Desk, seat: &Seat, pass: &mut Pass) -> Ns {
    let now = desk.now();
    if pass.issued.is_none() {
        pass.issued = Some(now);
        seat.issued.set(now);
    }
    now
}

fn settle(desk: &Desk, table: u32, change: Change) {
    if change.effect != Effect::None {
        desk.accounts.borrow_mut()[table as usize].apply(change);
    }
}

/// Holds an answer against the workload; what is wrong with it.
fn check(expected: &Check, answer: &Answer, content: Option<(u32, u64)>) -> Option<String> {
    let (number, what) = match expected.what {
        What::Rows => (answer.rows, "rows"),
        What::Affected => (answer.affected, "rows affected"),
        What::Nothing => return None,
    };
    if number < expected.min || number > expected.max {
        return Some(match (expected.min, expected.max) {
            (min, u64::MAX) => format!("{number} {what} instead of {min} or more"),
            (min, max) if min == max => format!("{number} {what} instead of {min}"),
            (min, max) => format!("{number} {what} instead of {min} to {max}"),
        });
    }
    if expected.value.is_some() && expected.value != answer.number() && answer.rows > 0 {
        let (wanted, got) = (expected.value.unwrap_or_default(), answer.number());
        let got = got.map_or_else(|| "no number".to_owned(), |n| n.to_string());
        return Some(format!("the value is {got} instead of {wanted}"));
    }
    if !expected.content || answer.rows == 0 {
        return None;
    }
    let (table, id) = content?;
    // PAD_CHAR_TO_FULL_LENGTH pads what is returned.
    let c = answer.content().unwrap_or_default().trim_ascii_end();
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
        let expected = |what, min, max| Check { what, min, max, content: false, value: None };
        let wrong = |expected: &Check, answer: &Answer| check(expected, answer, None);
        let exactly = expected(What::Rows, 1, 1);
        assert_eq!(wrong(&exactly, &answer(1, 0)), None);
        assert_eq!(wrong(&exactly, &answer(0, 1)).as_deref(), Some("0 rows instead of 1"));
        let range = expected(What::Rows, 1, 100);
        assert_eq!(wrong(&range, &answer(100, 0)), None);
        assert_eq!(wrong(&range, &answer(101, 0)).as_deref(), Some("101 rows instead of 1 to 100"));
        let some = expected(What::Affected, 1, u64::MAX);
        let text = "0 rows affected instead of 1 or more";
        assert_eq!(wrong(&some, &answer(9, 0)).as_deref(), Some(text));
        assert_eq!(wrong(&expected(What::Nothing, 5, 5), &answer(0, 0)), None);
        let value = Check { value: Some(101), ..exactly };
        let text = "the value is no number instead of 101";
        assert_eq!(wrong(&value, &answer(1, 0)).as_deref(), Some(text));
    }
}
