//! The compiled program of a client: an operation is a transaction of statements that the job has
//! compiled. Nothing is allocated per operation.

use super::answer::find_fault;
use super::errors::{Change, ClientAction, OpError, OpenError};
use super::job::{CompiledStatement, Generator, Job, RowsOf, TableDraws, literals_into, number};
use super::operation::{OpContext, OpDone};
use crate::error::{Error, Result, clip};
use crate::mysql::wire::{Answer, LeanSession, Params, Want};
use crate::mysql::{Failure, Tried, hint};
use crate::plan::Spread;
use crate::workload::{Effect, Workload};

/// Checks the content of one answer in 16: a check costs a tenth of an op.
const CONTENT_EVERY: u64 = 16;
const ID_MAX: usize = 40;

pub(crate) struct CompiledProgram {
    client: u32,
    handles: Handles,
    generator: Generator,
    values: Params,
    count: u64,
    transaction: usize,
    /// Its statements that were answered, and last if COMMIT is.
    unsettled: Vec<(u32, Change)>,
    done: OpDone,
    tables: Vec<u32>,
    bulk: BulkRows,
}

struct Handles {
    /// By table of the client, then by prepared statement.
    statements: Vec<u32>,
    /// BEGIN and COMMIT, as far as the server has prepared them.
    control: Vec<Option<u32>>,
}

/// A bulk statement that grows by a row an event, and the next row.
#[derive(Default)]
struct BulkRows {
    sql: Vec<u8>,
    row: Vec<u8>,
}

/// The statements around those of a transaction.
#[derive(Debug, Clone, Copy)]
enum Control {
    Begin,
    Commit,
    Rollback,
}

impl Control {
    fn sql(self) -> &'static str {
        ["BEGIN", "COMMIT", "ROLLBACK"][self as usize]
    }
}

impl CompiledProgram {
    pub(super) async fn open(
        job: &Job,
        client: u32,
        session: &mut LeanSession,
    ) -> Result<CompiledProgram, OpenError> {
        let handles = prepare(job, client, session).await.map_err(|unprepared| {
            if job.plan.rules.raw_refusals {
                return OpenError::refused(ClientAction::Prepare, unprepared.1);
            }
            not_prepared(&job.plan.workload, unprepared).into()
        })?;
        let mut serials = Vec::new();
        for table in job.tables_of(client).filter(|_| job.serial) {
            let from_one = job.plan.rules.ids_from_one;
            let max = if from_one { 0 } else { id_max(job, session, table).await? };
            serials.push(job.serial(client, max));
        }
        Ok(CompiledProgram {
            client,
            handles,
            generator: Generator {
                stream: job.stream(client, false),
                slices: job.slices(client),
                serials,
                previous: Params::default(),
            },
            values: Params::default(),
            count: 0,
            transaction: 0,
            unsettled: Vec::new(),
            done: OpDone::default(),
            tables: vec![0; job.statements.len()],
            bulk: BulkRows::default(),
        })
    }

    pub(super) async fn reopen(
        &mut self,
        job: &Job,
        session: &mut LeanSession,
    ) -> Result<(), Failure> {
        self.handles = prepare(job, self.client, session).await.map_err(|(_, failure)| failure)?;
        self.unsettled.clear();
        Ok(())
    }

    pub(super) fn close(self) -> Vec<u32> {
        let control = self.handles.control.into_iter().flatten();
        self.handles.statements.into_iter().chain(control).collect()
    }

    pub(super) fn begin_phase(&mut self, job: &Job, measured: bool) {
        self.generator.stream = job.stream(self.client, measured);
    }

    #[inline]
    pub(super) fn choose(&mut self, job: &Job) {
        self.count += 1;
        self.transaction = self.pick(job);
    }

    fn pick(&mut self, job: &Job) -> usize {
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

    #[inline]
    pub(super) async fn operation(&mut self, op: &mut OpContext<'_>) -> Result<OpDone, OpError> {
        self.done = OpDone { table: self.draw_tables(op.job()), ..OpDone::default() };
        match op.job().transactions[self.transaction].rows_of {
            Some(statement) => self.row(op, statement).await?,
            None => self.transaction(op).await?,
        }
        Ok(self.done)
    }

    #[inline]
    fn draw_tables(&mut self, job: &Job) -> u32 {
        let transaction = &job.transactions[self.transaction];
        let stream = &mut self.generator.stream;
        let mut draw = || stream.below(u64::from(job.places())) as u32;
        let table = match (job.spread, transaction.tables.is_empty()) {
            (Spread::Pinned, _) => self.client % job.places(),
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
        table
    }

    /// Adds a row to the bulk statement, which goes when the row does not fit into it.
    async fn row(&mut self, op: &mut OpContext<'_>, index: usize) -> Result<(), OpError> {
        let (job, table) = (op.job(), self.done.table);
        let statement = &job.statements[index];
        let bulk = statement.bulk.as_ref().expect("the caller has looked");
        let from = TableDraws { table, slot: 0, picks: &op.table(table).picks };
        op.issue();
        self.generator.draw(&mut self.values, &statement.sources, from);
        self.bulk.row.clear();
        literals_into(&mut self.bulk.row, &statement.pieces, &self.values);
        if self.bulk.sql.len() + bulk.join.len() + self.bulk.row.len() > bulk.bytes_max {
            self.send_rows(op, ClientAction::Rows).await?;
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

    pub(super) async fn finish(&mut self, op: &mut OpContext<'_>) -> Result<(), OpError> {
        let sent = self.send_rows(op, ClientAction::Rest).await;
        let code = sent.as_ref().err().and_then(OpError::code);
        if code.zip(op.rules().ignored()).is_some_and(|(code, ignored)| ignored.has(code)) {
            op.count(|events| events.ignored += 1);
        }
        sent
    }

    async fn send_rows(
        &mut self,
        op: &mut OpContext<'_>,
        action: fn(String) -> ClientAction,
    ) -> Result<(), OpError> {
        if self.bulk.sql.is_empty() {
            return Ok(());
        }
        op.session.text().extend_from_slice(&self.bulk.sql);
        self.bulk.sql.clear();
        op.state.answered.set(None);
        let sent = op.session.query(Want::Count).await;
        // Always with the request: by it the loop knows that the events of the rows have ended.
        let answer = sent.map_err(|failure| {
            OpError::Failure(failure, Some(Box::new(action(op.session.sent_text()))))
        })?;
        op.count(|events| events.writes += u64::from(answer.affected > 0));
        Ok(())
    }

    #[inline]
    async fn transaction(&mut self, op: &mut OpContext<'_>) -> Result<(), OpError> {
        let transaction = &op.job().transactions[self.transaction];
        if !transaction.begin {
            for statement in &transaction.passes {
                let (table, change) = self.statement(op, *statement, true).await?;
                op.settle(table, change);
            }
            return Ok(());
        }
        self.unsettled.clear();
        self.control(op, Control::Begin).await?;
        for statement in &transaction.passes {
            match self.statement(op, *statement, false).await {
                Ok(change) => self.unsettled.push(change),
                // A deadlock has rolled back already, a lock wait timeout has not.
                Err(error) => return Err(self.roll_back(op, error).await),
            }
        }
        // Only a lost COMMIT leaves a doubt: before it, the server rolls back.
        self.doubt_the_commit(op);
        if let Err(error) = self.control(op, Control::Commit).await {
            op.drop_unsent_doubt();
            // The next BEGIN must not commit the rest.
            return Err(self.roll_back(op, error).await);
        }
        op.doubt(None);
        for (table, change) in &self.unsettled {
            op.settle(*table, *change);
        }
        Ok(())
    }

    /// Rolls back after an error, which becomes another one if that fails, too.
    async fn roll_back(&mut self, op: &mut OpContext<'_>, error: OpError) -> OpError {
        // Without it, the next BEGIN commits what the server has not rolled back.
        if !error.keeps_session() || !op.rules().roll_back {
            return error;
        }
        match self.control(op, Control::Rollback).await {
            Ok(()) => error,
            Err(rollback) => error.left_open(rollback),
        }
    }

    async fn control(&mut self, op: &mut OpContext<'_>, which: Control) -> Result<(), OpError> {
        let prepared = self.handles.control.get(which as usize).copied().flatten();
        op.issue();
        let outcome = if let Some(handle) = prepared {
            op.session.execute(handle, &Params::default(), Want::Count).await
        } else {
            op.session.text().extend_from_slice(which.sql().as_bytes());
            op.session.query(Want::Count).await
        };
        self.done.statements += 1;
        outcome.map_err(|failure| {
            failed_request(op, failure, |session| match prepared {
                Some(_) => ClientAction::Execute(which.sql().to_owned()),
                None => ClientAction::Query(session.sent_text()),
            })
        })?;
        if op.rules().count_answers {
            op.count(|events| events.others += 1);
        }
        Ok(())
    }

    /// Notes what COMMIT leaves in doubt if its answer never comes.
    pub(super) fn doubt_the_commit(&self, op: &OpContext<'_>) {
        let writes = self.unsettled.iter().filter(|(_, one)| one.effect != Effect::None);
        op.doubt(writes.map(|(table, change)| (*table, 1, change.doubt())));
    }

    /// Makes one round trip, checks the answer, and returns what it changed in which table.
    #[inline]
    async fn statement(
        &mut self,
        op: &mut OpContext<'_>,
        index: usize,
        autocommit: bool,
    ) -> Result<(u32, Change), OpError> {
        let job = op.job();
        let table = if job.table_each { self.tables[index] } else { self.done.table };
        let statement = &job.statements[index];
        let slot = if job.spread == Spread::Pinned { 0 } else { table as usize };
        if autocommit {
            op.doubt(statement.doubt(table, 0));
        }
        let (key, k) =
            self.draw(op, index, TableDraws { table, slot, picks: &op.table(table).picks });
        let own = job.tables.own && self.count.is_multiple_of(CONTENT_EVERY);
        let content = own && statement.check.content;
        let first = content || statement.check.value.is_some();
        let want = if first { Want::First } else { Want::Count };
        let handle = slot * job.prepared.len() + statement.prepared;
        let sent = op.issue();
        let outcome = if statement.text {
            op.session.query(want).await
        } else {
            op.session.execute(self.handles.statements[handle], &self.values, want).await
        };
        self.done.statements += 1;
        let answer = outcome.map_err(|failure| {
            op.drop_unsent_doubt();
            failed_request(op, failure, |session| {
                if statement.text {
                    ClientAction::Query(session.sent_text())
                } else {
                    ClientAction::Execute(job.sql(index, table))
                }
            })
        })?;
        if job.timed_statements > 0 {
            op.time_statement(index, sent);
        }
        let known = statement.range.map_or(0, |range| range.rows(&self.values));
        op.doubt(None);
        if statement.keeps_values {
            std::mem::swap(&mut self.generator.previous, &mut self.values);
        }
        self.done.rows += answer.rows + answer.more_rows;
        if statement.rows == RowsOf::Insert {
            self.done.rows += answer.affected;
        }
        // RETURNING sends rows instead of their number.
        let affected = answer.affected.max(answer.rows);
        self.done.unmatched += u32::from(statement.rows == RowsOf::Existing && affected == 0);
        let change = Change { effect: statement.effect, affected, k };
        let value = statement.check.value.and_then(|_| op.session.number());
        let content = content.then(|| (table, key, op.session.first()));
        let wrong = find_fault(&statement.check, answer, value, content);
        if job.plan.rules.count_answers {
            count_answer(op, statement, answer, wrong.is_some());
        } else if let Some(wrong) = wrong {
            // It may be in the table for all that.
            if autocommit {
                op.doubt(statement.doubt(table, answer.affected));
            }
            return Err(OpError::Wrong(format!("{}: {wrong}", job.sql(index, table))));
        }
        let lacks = known.saturating_sub(answer.rows);
        if lacks > op.table(table).lacking.get() {
            // Boxed: no answer of a sound server comes here.
            Box::pin(self.refuse_part(op, (index, table), answer.rows, lacks)).await?;
        }
        Ok((table, change))
    }

    /// Writes SQL where it is sent as text; returns the first key and the sum of `k` of the rows that it inserts.
    #[inline]
    fn draw(&mut self, op: &mut OpContext<'_>, index: usize, from: TableDraws<'_>) -> (u64, i64) {
        let statement = &op.job().statements[index];
        if let Some(bulk) = &statement.bulk {
            let head = op.job().with_table(&bulk.head, from.table);
            return (0, self.generator.bulk_into(op.session.text(), statement, &head, from));
        }
        self.generator.draw(&mut self.values, &statement.sources, from);
        if statement.text {
            let pieces = &op.table(from.table).texts[index];
            literals_into(op.session.text(), pieces, &self.values);
        }
        let key = statement.key.map_or(0, |i| number(self.values.get(i)));
        (key, statement.k_of(&self.values))
    }

    /// Refuses an answer that is shorter than its range if the server counts more rows there than it gives,
    /// also when it is asked again, as another process may have put rows back. Else the table has lost rows
    /// on purpose: ranges that lack as many are not asked about again.
    #[cold]
    async fn refuse_part(
        &mut self,
        op: &mut OpContext<'_>,
        at: (usize, u32),
        mut rows: u64,
        lacks: u64,
    ) -> Result<(), OpError> {
        let ((index, table), mut counted) = (at, None);
        op.state.answered.set(None);
        for _ in 0..3 {
            // A LIMIT of the answer does not limit the count. In a transaction both see one snapshot.
            self.query_again(op, at, [b"SELECT COUNT(*) FROM (", b") AS answer"]).await?;
            counted = op.session.number();
            if counted.is_some_and(|counted| counted <= rows) {
                op.table(table).lacking.set(lacks);
                return Ok(());
            }
            rows = self.query_again(op, at, [b"", b""]).await?.rows;
            if counted.is_some_and(|counted| counted <= rows) {
                return Ok(());
            }
        }
        let counted = counted.map_or("an unknown number".to_owned(), |n| n.to_string());
        let sql = op.job().sql(index, table);
        Err(OpError::Wrong(format!("{sql}: {rows} rows of the {counted} that the range has")))
    }

    async fn query_again(
        &mut self,
        op: &mut OpContext<'_>,
        (index, table): (usize, u32),
        [before, after]: [&[u8]; 2],
    ) -> Result<Answer, OpError> {
        let job = op.job();
        let statement = &job.statements[index];
        let kept = statement.keeps_values;
        let values = if kept { &self.generator.previous } else { &self.values };
        let sql = op.session.text();
        sql.extend_from_slice(before);
        literals_into(sql, &job.pieces(statement, table), values);
        sql.extend_from_slice(after);
        let sent = op.session.query(Want::First).await;
        sent.map_err(|failure| {
            failed_request(op, failure, |session| ClientAction::Query(session.sent_text()))
        })
    }
}

fn count_answer(op: &OpContext<'_>, statement: &CompiledStatement, answer: Answer, wrong: bool) {
    op.count(|events| {
        let counted = match (statement.rows == RowsOf::Select, answer.affected) {
            (true, _) => &mut events.reads,
            (false, 1..) => &mut events.writes,
            (false, 0) => &mut events.others,
        };
        *counted += 1;
        events.unexpected += u64::from(wrong);
    });
}

/// Adds the request, made of the text that was sent, where somebody shows it.
#[cold]
fn failed_request(
    op: &OpContext<'_>,
    failure: Failure,
    request: impl FnOnce(&LeanSession) -> ClientAction,
) -> OpError {
    let shown = op.rules().raw_refusals;
    OpError::Failure(failure, shown.then(|| Box::new(request(op.session))))
}

/// The SQL that the server did not take, and why.
type Unprepared = (String, Failure);
const PARSE_ERROR: u16 = 1064;
/// A statement that the server runs as text only, as MySQL does BEGIN.
const UNPREPARABLE: u16 = 1295;
const AS_TEXT: &str = "--statements text, in a profile statements = \"text\"";

fn statement_error((sql, failure): Unprepared) -> Error {
    let text = format!("{sql}: {failure}");
    // The author of the SQL can correct it; the server is not at fault.
    let unparsed = matches!(failure, Failure::Server { code: PARSE_ERROR, .. });
    let error = if unparsed { Error::usage(text) } else { Error::server(text) };
    let hint = match &failure {
        Failure::Server { code, message, .. } => hint(*code, message, Tried::Statement),
        Failure::Lost(loss) => Some(loss.hint()),
    };
    error.passing(failure.may_pass()).add_hints(hint)
}

fn not_prepared(workload: &Workload, unprepared: Unprepared) -> Error {
    let unpreparable = matches!(unprepared.1, Failure::Server { code: UNPREPARABLE, .. });
    let refused = matches!(unprepared.1, Failure::Server { .. });
    let error = statement_error(unprepared);
    match () {
        () if unpreparable => error.hint(format!("{AS_TEXT}: the server does not prepare it")),
        () if refused && workload.defines() => error
            .hint(format!("{AS_TEXT}: all statements are prepared before the first of them runs")),
        () => error,
    }
}

async fn prepare(job: &Job, client: u32, session: &mut LeanSession) -> Result<Handles, Unprepared> {
    let mut handles = Vec::new();
    for table in job.tables_of(client) {
        for sql in job.prepared.iter().map(|sql| job.with_table(sql, table)) {
            let prepared = session.prepare(&sql).await;
            handles.push(prepared.map_err(|failure| (sql, failure))?);
        }
    }
    let mut control = Vec::new();
    let begins = !job.prepared.is_empty() && job.transactions.iter().any(|t| t.begin);
    let both = [Control::Begin, Control::Commit].map(Control::sql);
    for sql in both.into_iter().filter(|_| begins && job.plan.rules.prepare_all) {
        match session.prepare(sql).await {
            Ok(handle) => control.push(Some(handle)),
            Err(Failure::Server { code: UNPREPARABLE, .. }) => control.push(None),
            Err(failure) => return Err((sql.to_owned(), failure)),
        }
    }
    Ok(Handles { statements: handles, control })
}

/// Reads the largest id of a table: new rows come after it. Nobody writes before all are ready.
async fn id_max(job: &Job, session: &mut LeanSession, table: u32) -> Result<u64> {
    if job.tables.count == 0 {
        return Ok(0);
    }
    let sql = job.with_table("SELECT MAX(id) FROM {table}", table);
    session.run_text(&sql).await.map_err(|failure| statement_error((sql.clone(), failure)))?;
    let Some(cell) = session.first() else { return Ok(0) };
    session.number().ok_or_else(|| {
        let text = clip(&String::from_utf8_lossy(cell), ID_MAX);
        Error::server(format!("{sql}: '{text}' is no number"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_that_cannot_be_prepared_has_the_hint_of_its_failure() {
        let hints = |failure| statement_error(("SELECT 1".to_owned(), failure)).hints().len();
        let refused = |code| {
            let (sqlstate, message) = ("42000".to_owned(), "no".to_owned());
            Failure::Server { code, sqlstate, message }
        };
        let failures = [refused(1142), refused(9999), Failure::lost("gone")];
        assert_eq!(failures.map(hints), [1, 0, 1]);
    }
}
