//! One client: one connection, one op after the other. Connections are opened before a step, and
//! again where the policy has lost ones reopened.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::errors::{Change, OpError};
use super::job::{Check, Generator, Job, Serial, TableDraws, literals_into, number};
use super::pacing::Pacing;
use super::thread::{ClientState, StepSetup, ThreadEvent, ThreadState};
use crate::error::{Error, Result, clip};
use crate::mysql::Failure;
use crate::mysql::wire::{Answer, Inbox, LeanSession, Params, Want};
use crate::observe::{Ns, Op};
use crate::plan::{Spread, limits, units};
use crate::stop::within;
use crate::summary::Doubt;
use crate::workload::{Effect, Stream, rows, seed_of};

/// Of so many answers that could prove themselves one is checked: the check costs about a
/// tenth of an op.
const CONTENT_EVERY: u64 = 16;
/// A client that pauses looks so often whether the step was ended.
const END_SEEN: Ns = 100_000_000;

/// Runs ops until the window ends, or an error ends the step; returns the session, if there is one
/// then.
pub(crate) async fn run(
    thread: Rc<ThreadState>,
    state: Rc<ClientState>,
    connection: Connection,
) -> Option<LeanSession> {
    let mut client = Client::new(&thread, &state, connection);
    loop {
        let error = match state.watch(thread.op_timeout(), client.work()).await {
            Ok(Ok(())) => return Some(client.session),
            Ok(Err(error)) => error,
            // The op ended without its client, which could not account for it.
            Err(error) => {
                let now = thread.now();
                thread.failed(&state, state.issued.get().unwrap_or(now), now, &error);
                error
            }
        };
        if !thread.job().plan.policy.reconnects() {
            thread.setup.tell(ThreadEvent::Abort(state.client, error));
            return None;
        }
        // First the old connection goes: the server may have none to spare.
        drop(client.session);
        (client.session, client.handles) = reopen(&thread, &state).await?;
        client.unsettled.clear();
    }
}

/// Opens the client's connection again, however long it takes; None if the thread gives it up.
async fn reopen(thread: &ThreadState, state: &ClientState) -> Option<(LeanSession, Vec<u32>)> {
    state.offline.set(true);
    let mut pauses = pauses(state.client, thread.failures.borrow().reconnects);
    let reopened = loop {
        let opening = async {
            tokio::time::sleep(pauses()).await;
            open_again(&thread.setup, &thread.inbox, state.client).await
        };
        // Boxed: else every client keeps room for a log-in while it works.
        let failure = match state.watch(thread.op_timeout(), Box::pin(opening)).await {
            Ok(Ok(reopened)) => break reopened,
            Ok(Err(failure)) => failure,
            Err(_) => return None,
        };
        thread.failures.borrow_mut().refused(thread.now(), failure);
    };
    thread.setup.reopened.notify_one();
    state.offline.set(false);
    thread.failures.borrow_mut().reconnects += 1;
    Some(reopened)
}

struct Client<'a> {
    thread: &'a ThreadState,
    state: &'a ClientState,
    session: LeanSession,
    handles: Vec<u32>,
    generator: Generator,
    quota: Option<u64>,
    values: Params,
    count: u64,
    unsettled: Vec<Change>,
    done: OpProgress,
}

#[derive(Default)]
struct OpProgress {
    table: u32,
    statements: u32,
    rows: u64,
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
        }
    }

    async fn work(&mut self) -> Result<(), OpError> {
        let thread = self.thread;
        if let Some(pacing) = &thread.pacing {
            return self.paced(pacing).await;
        }
        // The clock is read once between two ops: the end of one decides on the next.
        let mut now = thread.now();
        while now < thread.window.get().end {
            if now >= thread.window.get().start {
                self.measure();
            }
            if self.state.measured.get()
                && let Some(quota) = &mut self.quota
            {
                match quota.checked_sub(1) {
                    Some(rest) => *quota = rest,
                    None => break,
                }
            }
            now = self.op().await?;
            if let Some(pause) = thread.job().plan.think {
                // None follows the last op of a step with --ops: the window ends with its answer.
                if self.state.measured.get() && self.quota == Some(0) {
                    break;
                }
                now = think(thread, now, pause).await;
            }
        }
        Ok(())
    }

    #[inline]
    fn measure(&mut self) {
        if !self.state.measured.replace(true) {
            self.generator.stream = self.thread.job().stream(self.state.client, true);
        }
    }

    /// Does one op an arrival in an open loop, until there are none.
    async fn paced(&mut self, pacing: &Pacing) -> Result<(), OpError> {
        // Threads take the clients in turn.
        let place = self.state.client as usize / self.thread.job().threads;
        while let Some(arrival) = pacing.next(place, || self.thread.now()).await {
            if arrival.measured {
                self.measure();
            }
            self.state.intended.set(Some(arrival.intended));
            self.op().await?;
        }
        Ok(())
    }

    /// Does one op; returns when it completed. An error that the policy lives with is counted, another
    /// one is returned as well.
    async fn op(&mut self) -> Result<Ns, OpError> {
        let (thread, state) = (self.thread, self.state);
        let job = thread.job();
        self.count += 1;
        let table = match job.spread {
            Spread::Pinned => state.client % job.places(),
            Spread::Random => self.generator.stream.below(u64::from(job.places())) as u32,
        };
        let transaction = self.pick();
        self.done = OpProgress { table, ..OpProgress::default() };
        let outcome = self.transaction(transaction).await;
        let issued = state.issued.take();
        let completed = thread.now();
        let issued = issued.unwrap_or(completed);
        match outcome {
            Ok(()) => {
                let OpProgress { statements, rows, .. } = self.done;
                let (intended, measured) = (state.intended.get(), state.measured.get());
                let op = Op { intended, issued, measured, completed, statements, rows };
                if thread.recorder.borrow_mut().succeeded(op) {
                    state.ops.set(state.ops.get() + 1);
                    let ops = &thread.ops_by_table[table as usize];
                    ops.set(ops.get() + 1);
                }
                Ok(completed)
            }
            Err(error) => {
                thread.failed(state, issued, completed, &error);
                let goes_on = error.goes_on(job.plan.policy.on_error) && self.session.is_usable();
                if goes_on { Ok(completed) } else { Err(error) }
            }
        }
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
                let change = self.statement(*statement, true).await?;
                self.settle(change);
            }
            return Ok(());
        }
        self.unsettled.clear();
        self.control("BEGIN").await?;
        for statement in &transaction.passes {
            match self.statement(*statement, false).await {
                Ok(change) => self.unsettled.push(change),
                // A deadlock has rolled back already, a lock wait timeout has not.
                Err(error) => return Err(self.roll_back(error).await),
            }
        }
        // Only a lost COMMIT leaves a doubt: before it, the server rolls back.
        let (mut writes, mut unknown) = (0, Doubt::default());
        for change in self.unsettled.iter().filter(|change| change.effect != Effect::None) {
            writes += 1;
            unknown.add(&change.doubt());
        }
        self.state.pending.set((writes > 0).then_some((self.done.table, writes, unknown)));
        if let Err(error) = self.control("COMMIT").await {
            self.doubt_what_was_sent();
            // What is left of it must not be committed by the next BEGIN.
            return Err(self.roll_back(error).await);
        }
        self.state.pending.set(None);
        for at in 0..self.unsettled.len() {
            self.settle(self.unsettled[at]);
        }
        Ok(())
    }

    /// Rolls back after an error, which becomes another one if that fails, too.
    async fn roll_back(&mut self, error: OpError) -> OpError {
        if !error.keeps_session() {
            return error;
        }
        match self.control("ROLLBACK").await {
            Ok(()) => error,
            Err(rollback) => error.left_open(rollback),
        }
    }

    async fn control(&mut self, sql: &str) -> Result<(), OpError> {
        self.session.text().extend_from_slice(sql.as_bytes());
        self.issue();
        let outcome = self.session.query(Want::Count).await;
        self.done.statements += 1;
        outcome.map(|_| ()).map_err(OpError::Failure)
    }

    /// Takes the doubt of a write that failed away, if it never left this program.
    #[cold]
    fn doubt_what_was_sent(&self) {
        if !self.session.has_sent() {
            self.state.pending.set(None);
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

    fn settle(&self, change: Change) {
        if change.effect != Effect::None {
            change.enter(&mut self.thread.ledger.borrow_mut()[self.done.table as usize]);
        }
    }

    /// Makes one round trip, checks the answer, and returns what it changed.
    async fn statement(&mut self, index: usize, autocommit: bool) -> Result<Change, OpError> {
        let (thread, state, table) = (self.thread, self.state, self.done.table);
        let job = thread.job();
        let statement = &job.statements[index];
        let slot = if job.spread == Spread::Pinned { 0 } else { table as usize };
        let from = TableDraws { table, slot, picks: &thread.picks[table as usize] };
        if autocommit {
            state.pending.set(statement.doubt(table, 0));
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
            self.session.execute(self.handles[handle], &self.values, want).await
        };
        self.done.statements += 1;
        if job.timed_statements > 0 {
            let took = thread.now() - called;
            thread.recorder.borrow_mut().statement(index, state.measured.get(), took);
        }
        let answer = outcome.map_err(|failure| {
            self.doubt_what_was_sent();
            OpError::Failure(failure)
        })?;
        state.pending.set(None);
        if statement.keeps_values {
            std::mem::swap(&mut self.generator.previous, &mut self.values);
        }
        self.done.rows += answer.rows;
        if matches!(statement.effect, Effect::Insert | Effect::InsertK(_)) {
            self.done.rows += answer.affected;
        }
        // Of RETURNING, rows come instead of their number.
        let affected = answer.affected.max(answer.rows);
        let change = Change { effect: statement.effect, affected, k };
        let value = statement.check.value.and_then(|_| self.session.number());
        let content = content.then(|| (table, key, self.session.first()));
        match check(&statement.check, answer, value, content) {
            None => Ok(change),
            Some(wrong) => {
                // It may be in the table for all that.
                if autocommit {
                    state.pending.set(statement.doubt(table, answer.affected));
                }
                Err(OpError::Wrong(format!("{}: {wrong}", job.sql(index, table))))
            }
        }
    }
}

/// Pauses from an instant on, but not beyond the window's end; returns when it is over.
async fn think(thread: &ThreadState, from: Ns, pause: Duration) -> Ns {
    let until = from.saturating_add(pause.as_nanos() as Ns);
    let mut now = from;
    while now < until.min(thread.window.get().end) {
        // The end may move meanwhile.
        let next = until.min(thread.window.get().end).min(now + END_SEEN);
        tokio::time::sleep_until((thread.origin + Duration::from_nanos(next)).into()).await;
        now = thread.now();
    }
    now
}

/// Holds an answer against the workload; returns what is wrong with it.
fn check(
    expected: &Check,
    answer: Answer,
    value: Option<u64>,
    content: Option<(u32, u64, Option<&[u8]>)>,
) -> Option<String> {
    for (number, what, (min, max)) in [
        (answer.rows, "rows", expected.rows),
        (answer.affected, "rows affected", expected.affected),
    ] {
        if number < min || number > max {
            return Some(match max {
                u64::MAX => format!("{number} {what} instead of {min} or more"),
                max if min == max => format!("{number} {what} instead of {min}"),
                max => format!("{number} {what} instead of {min} to {max}"),
            });
        }
    }
    if let Some(wanted) = expected.value
        && value != Some(wanted)
        && answer.rows > 0
    {
        let got = value.map_or_else(|| "no number".to_owned(), |n| n.to_string());
        return Some(format!("the value is {got} instead of {wanted}"));
    }
    let (table, id, c) = content.filter(|_| answer.rows > 0)?;
    // PAD_CHAR_TO_FULL_LENGTH pads what is returned.
    let c = c.unwrap_or(b"").trim_ascii_end();
    (!rows::proves(table + 1, id, c))
        .then(|| format!("the content is not that of id {id}: '{}'", c.escape_ascii()))
}

/// The first pause between two attempts is at most so long.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// And no pause is longer: the time to the first success is measured with it.
const PAUSE_MAX: Duration = Duration::from_secs(1);
const ID_MAX: usize = 40;

pub(crate) struct Connection {
    pub session: LeanSession,
    /// The server's number of a statement: by table of this client, then by prepared statement.
    pub handles: Vec<u32>,
    /// By table of this client; empty where no statement numbers rows.
    pub serials: Vec<Serial>,
}

pub(crate) async fn open(setup: &StepSetup, inbox: &Inbox, client: u32) -> Result<Connection> {
    let (job, limit) = (&setup.job, setup.link.target.connect_timeout);
    let _permit = setup.logins.acquire().await.expect("nobody closes it");
    // Boxed: most clients wait for their turn, without room for a log-in.
    let charset = job.plan.charset.as_deref();
    let mut session = Box::pin(LeanSession::open(&setup.link, inbox, charset)).await?;
    let preparing = Box::pin(async {
        let handles = prepare(job, client, &mut session).await.map_err(of_statement)?;
        let mut serials = Vec::new();
        for table in job.tables_of(client).filter(|_| job.serial) {
            serials.push(job.serial(client, id_max(job, &mut session, table).await?));
        }
        Ok(Connection { session, handles, serials })
    });
    within(limit, preparing).await.unwrap_or_else(|| {
        let error = Error::server(too_slow(limit)).hint("--connect-timeout waits longer");
        Err(error.passing(true))
    })
}

/// Opens a client's lost connection again, with its statements prepared.
async fn open_again(
    setup: &StepSetup,
    inbox: &Inbox,
    client: u32,
) -> Result<(LeanSession, Vec<u32>), Failure> {
    let (job, limit) = (&setup.job, setup.link.target.connect_timeout);
    let _permit = setup.logins.acquire().await.expect("nobody closes it");
    let charset = job.plan.charset.as_deref();
    let mut session = LeanSession::open_again(&setup.link, inbox, charset).await?;
    match within(limit, prepare(job, client, &mut session)).await {
        Some(Ok(handles)) => Ok((session, handles)),
        Some(Err((_, failure))) => Err(failure),
        None => Err(Failure::Lost(too_slow(limit))),
    }
}

/// The SQL that the server did not take, and why.
type Refused = (String, Failure);

fn too_slow(limit: Duration) -> String {
    format!("no answer within {} while preparing statements", units::duration(limit))
}

fn of_statement((sql, failure): Refused) -> Error {
    Error::server(format!("{sql}: {failure}")).passing(failure.may_pass())
}

async fn prepare(job: &Job, client: u32, session: &mut LeanSession) -> Result<Vec<u32>, Refused> {
    let mut handles = Vec::new();
    for table in job.tables_of(client) {
        for sql in job.prepared.iter().map(|sql| job.with_table(sql, table)) {
            match session.prepare(&sql).await {
                Ok(handle) => handles.push(handle),
                Err(failure) => return Err((sql, failure)),
            }
        }
    }
    Ok(handles)
}

/// Reads the largest id of a table: new rows come after it. Nobody writes before all are ready.
async fn id_max(job: &Job, session: &mut LeanSession, table: u32) -> Result<u64> {
    if job.tables.count == 0 {
        return Ok(0);
    }
    let sql = job.with_table("SELECT MAX(id) FROM {table}", table);
    session.run_text(&sql).await.map_err(|failure| of_statement((sql.clone(), failure)))?;
    let Some(cell) = session.first() else { return Ok(0) };
    session.number().ok_or_else(|| {
        let text = clip(&String::from_utf8_lossy(cell), ID_MAX);
        Error::server(format!("{sql}: '{text}' is no number"))
    })
}

pub(crate) async fn close_all(sessions: Vec<LeanSession>) {
    let mut goodbyes = JoinSet::new();
    for session in sessions {
        goodbyes.spawn_local(session.close(limits::COURTESY));
    }
    while goodbyes.join_next().await.is_some() {}
}

/// Gives the pauses of one client in one outage: growing, each between a half and the whole of twice
/// the one before, so that those who lost a server together do not come back together.
pub(crate) fn pauses(client: u32, reconnects: u64) -> impl FnMut() -> Duration {
    let mut jitter = Stream::new(seed_of(&[u64::from(client), reconnects]));
    let mut most = PAUSE_FIRST;
    move || {
        let half = most / 2;
        most = (most * 2).min(PAUSE_MAX);
        half + Duration::from_nanos(jitter.below(half.as_nanos() as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: u64, affected: u64) -> Answer {
        Answer { rows, affected }
    }

    #[test]
    fn answers_are_held_against_bounds() {
        let all = (0, u64::MAX);
        let anything = Check { rows: all, affected: all, content: false, value: None };
        let wrong = |expected: &Check, answer| check(expected, answer, None, None);
        let exactly = Check { rows: (1, 1), ..anything };
        assert_eq!(wrong(&exactly, answer(1, 0)), None);
        assert_eq!(wrong(&exactly, answer(0, 1)).as_deref(), Some("0 rows instead of 1"));
        let range = Check { rows: (1, 100), ..anything };
        assert_eq!(wrong(&range, answer(100, 0)), None);
        assert_eq!(wrong(&range, answer(101, 0)).as_deref(), Some("101 rows instead of 1 to 100"));
        let some = Check { affected: (1, u64::MAX), ..anything };
        let text = "0 rows affected instead of 1 or more";
        assert_eq!(wrong(&some, answer(9, 0)).as_deref(), Some(text));
        assert_eq!(wrong(&anything, answer(0, 0)), None);
        let value = Check { value: Some(101), ..exactly };
        let text = "the value is no number instead of 101";
        assert_eq!(wrong(&value, answer(1, 0)).as_deref(), Some(text));
    }

    #[test]
    fn pauses_grow_to_a_limit_and_differ_between_clients() {
        let of = |client| {
            let mut pauses = pauses(client, 0);
            (0..12).map(|_| pauses()).collect::<Vec<_>>()
        };
        let (one, other) = (of(0), of(1));
        assert_ne!(one, other);
        let mut most = PAUSE_FIRST;
        for pause in one {
            assert!(pause >= most / 2 && pause <= most, "{pause:?} of {most:?}");
            most = (most * 2).min(PAUSE_MAX);
        }
        assert_eq!(most, PAUSE_MAX);
    }
}
