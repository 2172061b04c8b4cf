//! One client: one connection, one op after the other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use mysql_async::{Opts, Value};

use super::errors::{Errors, OpError};
use super::job::{Job, Statement};
use super::ledger::Account;
use super::pace::Pace;
use crate::error::{Error, Result};
use crate::measure::recorder::{Ns, Op, Recorder};
use crate::mysql::session::{Answer, Failure, Session};
use crate::mysql::target::Target;
use crate::plan::Spread;
use crate::workload::distribution::Sampler;
use crate::workload::random::Stream;
use crate::workload::{Content, Effect, Expect, Param, rows};

/// Of so many answers that could prove themselves one is checked: the check costs about a
/// tenth of an op.
const CONTENT_EVERY: u64 = 16;
/// In no call.
const IDLE: Ns = Ns::MAX;

/// What the clients of one engine thread share. Nothing here is borrowed across an await.
pub(crate) struct Desk {
    pub(crate) job: std::sync::Arc<Job>,
    pub(crate) origin: Instant,
    /// `Ns::MAX` while it is not decided.
    pub(crate) window_start: Cell<Ns>,
    /// Set by the clock or by whoever ends the step early.
    pub(crate) window_end: Cell<Ns>,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) accounts: RefCell<Vec<Account>>,
    pub(crate) errors: RefCell<Errors>,
    /// By table: samplers of each statement's parameters.
    pub(crate) samplers: Vec<Vec<Vec<Option<Sampler>>>>,
    /// By table: SQL of each statement around its parameters; empty unless in text mode.
    pub(crate) texts: Vec<Vec<Vec<String>>>,
    /// The open loop's queues; None is a closed loop.
    pub(crate) pace: Option<Pace>,
}

impl Desk {
    /// Now on the step's clock.
    #[inline]
    pub(crate) fn now(&self) -> Ns {
        self.origin.elapsed().as_nanos() as Ns
    }
}

/// The part of a client that outlives its task.
#[derive(Debug)]
pub(crate) struct Seat {
    /// From 0, over all threads.
    pub(crate) client: u32,
    /// From 0, in its thread.
    pub(crate) place: usize,
    /// When the op in flight was due; None in a closed loop.
    pub(crate) intended: Cell<Option<Ns>>,
    /// When the op in flight was issued.
    pub(crate) issued: Cell<Ns>,
    /// Whether the client is in the window: decided before an op, and the op's for all of it.
    pub(crate) measured: Cell<bool>,
    /// What is in doubt if the answer never comes: table and effect.
    pub(crate) pending: Cell<(u32, Effect)>,
    /// Ops of the window.
    pub(crate) ops: Cell<u64>,
}

impl Seat {
    pub(crate) fn new(client: u32, place: usize) -> Seat {
        Seat {
            client,
            place,
            intended: Cell::new(None),
            issued: Cell::new(IDLE),
            measured: Cell::new(false),
            pending: Cell::new((0, Effect::None)),
            ops: Cell::new(0),
        }
    }

    /// When the op in flight was issued, if there is one.
    pub(crate) fn in_flight(&self) -> Option<Ns> {
        Some(self.issued.get()).filter(|issued| *issued != IDLE)
    }

    /// The op in flight is accounted for.
    pub(crate) fn settle(&self) {
        self.issued.set(IDLE);
    }
}

/// A connection with everything prepared.
pub(crate) struct Ready {
    session: Session,
    /// Handle of a statement: by table of this client, then by statement.
    handles: Vec<usize>,
}

impl Ready {
    pub(crate) fn into_session(self) -> Session {
        self.session
    }
}

/// Connects and prepares: before the window, never inside it.
pub(crate) async fn open(job: &Job, client: u32, target: &Target, opts: &Opts) -> Result<Ready> {
    let mut session = Session::open(target, opts, job.charset.as_deref()).await?;
    let limit = target.connect_timeout;
    let preparing = async {
        let mut handles = Vec::new();
        if !job.text {
            let tables = match job.pinned_table(client) {
                Some(table) => table..table + 1,
                None => 0..job.tables.count,
            };
            for table in tables {
                for statement in 0..job.statements.len() {
                    let sql = job.sql(statement, table);
                    let prepared = session.prepare(&sql).await;
                    handles.push(prepared.map_err(|f| Error::server(format!("{sql}: {f}")))?);
                }
            }
        }
        Ok(Ready { session, handles })
    };
    // The connection goes with the future when it takes too long.
    #[expect(clippy::disallowed_methods, reason = "the connection goes with the future")]
    let prepared = tokio::time::timeout(limit, preparing).await;
    prepared.unwrap_or_else(|_| {
        let text = format!("no answer within {limit:?} while preparing statements");
        Err(Error::server(text).hint("--connect-timeout waits longer"))
    })
}

/// Runs ops until the window ends; returns the session, or the error that ends the step.
pub(crate) async fn run(
    desk: Rc<Desk>,
    seat: Rc<Seat>,
    ready: Ready,
) -> Result<std::result::Result<Session, OpError>> {
    let mut client = Client {
        quota: desk.job.quota(seat.client),
        stream: desk.job.stream(seat.client, desk.window_start.get() == 0),
        session: ready.session,
        handles: ready.handles,
        sql: String::new(),
        count: 0,
        unsettled: Vec::new(),
    };
    seat.measured.set(desk.window_start.get() == 0);
    if let Some(pace) = &desk.pace {
        let ended = client.paced(&desk, &seat, pace).await?;
        return Ok(ended.map(|()| client.session));
    }
    // The clock is read once between two ops: the end of one decides on the next.
    let mut now = desk.now();
    while now < desk.window_end.get() {
        if !seat.measured.get() && now >= desk.window_start.get() {
            seat.measured.set(true);
            client.stream = desk.job.stream(seat.client, true);
        }
        if seat.measured.get()
            && let Some(quota) = &mut client.quota
        {
            match quota.checked_sub(1) {
                Some(rest) => *quota = rest,
                None => break,
            }
        }
        match client.op(&desk, &seat).await? {
            Ok(completed) => now = completed,
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(client.session))
}

struct Client {
    session: Session,
    handles: Vec<usize>,
    stream: Stream,
    quota: Option<u64>,
    sql: String,
    count: u64,
    /// Effects of an open transaction.
    unsettled: Vec<(Effect, u64)>,
}

/// How far an op got.
struct Pass {
    issued: Option<Ns>,
    statements: u32,
    rows: u64,
}

impl Client {
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
                self.stream = desk.job.stream(seat.client, true);
            }
            seat.intended.set(Some(arrival.intended));
            if let Err(error) = self.op(desk, seat).await? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    /// One op; when it completed. An error that the session survives is counted, another one
    /// is returned.
    async fn op(&mut self, desk: &Desk, seat: &Seat) -> Result<std::result::Result<Ns, OpError>> {
        let job = &desk.job;
        self.count += 1;
        let table = match job.spread {
            Spread::Pinned => seat.client % job.tables.count,
            Spread::Random => self.stream.below(u64::from(job.tables.count)) as u32,
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
                    if let Some(account) = desk.accounts.borrow_mut().get_mut(table as usize) {
                        account.ops += 1;
                    }
                }
                Ok(Ok(completed))
            }
            Err(error) => {
                desk.recorder.borrow_mut().failed(issued, seat.measured.get(), completed)?;
                desk.errors.borrow_mut().add(&error);
                if matches!(error, OpError::Failure(Failure::Lost(_))) {
                    doubt(desk, seat);
                }
                Ok(if error.keeps_session() { Ok(completed) } else { Err(error) })
            }
        }
    }

    fn pick(&mut self, job: &Job) -> usize {
        if job.transactions.len() == 1 {
            return 0;
        }
        let mut at = self.stream.below(job.weights);
        for (i, transaction) in job.transactions.iter().enumerate() {
            match at.checked_sub(transaction.weight) {
                Some(rest) => at = rest,
                None => return i,
            }
        }
        0
    }

    async fn transaction(
        &mut self,
        desk: &Desk,
        seat: &Seat,
        table: u32,
        index: usize,
        pass: &mut Pass,
    ) -> std::result::Result<(), OpError> {
        let Some(transaction) = desk.job.transactions.get(index) else { return Ok(()) };
        if !transaction.begin {
            for statement in transaction.statements.clone() {
                let (effect, affected) =
                    self.statement(desk, seat, table, statement, pass, true).await?;
                settle(desk, table, effect, affected);
            }
            return Ok(());
        }
        self.unsettled.clear();
        self.control(desk, seat, "BEGIN", pass).await?;
        for statement in transaction.statements.clone() {
            match self.statement(desk, seat, table, statement, pass, false).await {
                Ok(change) => self.unsettled.push(change),
                Err(error) => {
                    // A deadlock has rolled back already, a lock wait timeout has not.
                    if error.keeps_session() {
                        self.control(desk, seat, "ROLLBACK", pass).await?;
                    }
                    return Err(error);
                }
            }
        }
        // Only a lost COMMIT leaves a doubt: before it, the server rolls back.
        let change = self.unsettled.iter().find(|(effect, _)| *effect != Effect::None);
        seat.pending.set((table, change.map_or(Effect::None, |(effect, _)| *effect)));
        self.control(desk, seat, "COMMIT", pass).await?;
        seat.pending.set((table, Effect::None));
        for (effect, affected) in self.unsettled.drain(..) {
            settle(desk, table, effect, affected);
        }
        Ok(())
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
    ) -> std::result::Result<(Effect, u64), OpError> {
        let job = &desk.job;
        let Some(statement) = job.statements.get(index) else { return Ok((Effect::None, 0)) };
        let (values, key) = self.draw(desk, table, index, statement);
        if autocommit {
            seat.pending.set((table, statement.effect));
        }
        let (called, outcome) = if job.text {
            self.sql.clear();
            if let Some(pieces) = desk.texts.get(table as usize).and_then(|t| t.get(index)) {
                literals_into(&mut self.sql, pieces, &values);
            }
            let called = issue(desk, seat, pass);
            (called, self.session.run_text(&self.sql).await)
        } else {
            let slot = if job.spread == Spread::Pinned { 0 } else { table as usize };
            let handle = self.handles.get(slot * job.statements.len() + index).copied();
            let called = issue(desk, seat, pass);
            (called, self.session.run_prepared(handle.unwrap_or(usize::MAX), values).await)
        };
        pass.statements += 1;
        if job.statements.len() > 1 {
            let took = desk.now() - called;
            desk.recorder.borrow_mut().statement(index, seat.measured.get(), took);
        }
        let answer = outcome.map_err(OpError::Failure)?;
        seat.pending.set((table, Effect::None));
        pass.rows += answer.rows;
        let content = job.tables.own && self.count.is_multiple_of(CONTENT_EVERY);
        match check(statement, &answer, content.then_some((table, key))) {
            None => Ok((statement.effect, answer.affected)),
            Some(wrong) => Err(OpError::Wrong(format!("{}: {wrong}", job.sql(index, table)))),
        }
    }

    /// The parameters' values, and the first key among them.
    fn draw(
        &mut self,
        desk: &Desk,
        table: u32,
        index: usize,
        statement: &Statement,
    ) -> (Vec<Value>, u64) {
        let of_params = desk.samplers.get(table as usize).and_then(|t| t.get(index));
        let mut values: Vec<Value> = Vec::with_capacity(statement.params.len());
        for (i, _) in statement.params.iter().enumerate() {
            let sampler = of_params.and_then(|s| s.get(i)).and_then(Option::as_ref);
            let value = sampler.map_or(Value::NULL, |s| Value::UInt(s.draw(&mut self.stream)));
            values.push(value);
        }
        // Values of c prove themselves for an id, so they come after the ids.
        for (i, param) in statement.params.iter().enumerate() {
            if let Param::COf(of) = param {
                let id = key_of(values.get(of - 1));
                let c = rows::proven(table + 1, id, || self.stream.bits());
                values[i] = Value::Bytes(c.to_vec());
            }
        }
        let key = statement.key.map_or(0, |i| key_of(values.get(i)));
        (values, key)
    }
}

fn key_of(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::UInt(id)) => *id,
        _ => 0,
    }
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

/// Counts the write that a lost or abandoned answer leaves in doubt.
pub(crate) fn doubt(desk: &Desk, seat: &Seat) {
    let (table, effect) = seat.pending.replace((0, Effect::None));
    if let Some(account) = desk.accounts.borrow_mut().get_mut(table as usize) {
        account.doubt(effect);
    }
}

fn settle(desk: &Desk, table: u32, effect: Effect, affected: u64) {
    if effect != Effect::None
        && let Some(account) = desk.accounts.borrow_mut().get_mut(table as usize)
    {
        account.apply(effect, affected);
    }
}

/// Holds an answer against the workload; what is wrong with it.
fn check(statement: &Statement, answer: &Answer, content: Option<(u32, u64)>) -> Option<String> {
    match statement.expect {
        Expect::Affected { affected } if affected == answer.affected => None,
        Expect::Affected { affected } => {
            Some(format!("{} rows affected instead of {affected}", answer.affected))
        }
        Expect::Rows { rows, .. } if rows != answer.rows => {
            Some(format!("{} rows instead of {rows}", answer.rows))
        }
        Expect::Rows { content: Some(Content::C), rows } if rows > 0 => {
            let (table, id) = content?;
            let c = answer.content().unwrap_or_default();
            (!rows::proves(table + 1, id, c))
                .then(|| format!("the content is not that of id {id}: '{}'", c.escape_ascii()))
        }
        Expect::Rows { .. } => None,
    }
}

/// SQL with literals in place of the parameters. The bytes are digits and dashes.
fn literals_into(sql: &mut String, pieces: &[String], values: &[Value]) {
    use std::fmt::Write as _;
    for (i, piece) in pieces.iter().enumerate() {
        sql.push_str(piece);
        match values.get(i) {
            Some(Value::UInt(id)) => {
                // Writing into a String cannot fail.
                let _ = write!(sql, "{id}");
            }
            Some(other) => sql.push_str(&other.as_sql(true)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_stand_where_the_parameters_were() {
        let mut sql = String::new();
        let pieces = ["UPDATE t SET c=".to_owned(), " WHERE id=".to_owned(), String::new()];
        literals_into(&mut sql, &pieces, &[Value::Bytes(b"1-2".to_vec()), Value::UInt(7)]);
        assert_eq!(sql, "UPDATE t SET c='1-2' WHERE id=7");
    }
}
