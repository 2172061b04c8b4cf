//! Checks that the tables hold what prepare and the runs since left there.
//!
//! ```text
//! marks in the tables ─┐
//! ledgers, records ────┼─▶ history of each table ─▶ judge ─▶ ok | LOST n | DAMAGED n | INDEX n
//! every row, read ─────┘                                       | undecided
//! ```
//!
//! The original rows follow from the mark, whose identity is new for each fill: ledgers that name it are of this
//! content. What cannot be known is reported as such: `docs/reference/verify.md`.
//!
//! No snapshot spans connections: the server counts and sums before and after, by each index, and a table that
//! changed meanwhile is not judged.

mod queries;
mod verdict;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mysql_async::{Row, Value};

pub(crate) use self::queries::{Answered, Found as AnswerFound};
use self::verdict::{Known, judge_beside_scripts};
use crate::error::{Error, Result, VALUE_MAX, clip};
use crate::load::{Numbers, default_jobs, named};
use crate::mysql::{
    Asked, Failure, LOST, Liveness, ServerLink, Session, Threads, Tried, control, discover,
    exposure, hint, limit_lock_wait, number, optional, query_single, rows,
};
use crate::progress::Progress;
use crate::stop::{COURTESY, SILENCE, Stop, locked};
use crate::summary::{Location, VerifyQuery};
use crate::terms::{add, counted, named as named_some, units};
use crate::workload::{Filler, Mark, PAD_LEN, Rows, Schema, State, is_digits, proves, quoted};

pub use self::verdict::{Evidence, Found, History, Verdict, judge};

const EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checked {
    pub table: String,
    pub verdict: Verdict,
    pub found: Found,
    pub history: History,
}

pub(crate) async fn verify(
    link: &ServerLink,
    evidence: &Evidence<'_>,
    progress: &mut Progress,
) -> Result<(Vec<Checked>, Vec<Answered>)> {
    let server = Arc::new(Liveness::new(link));
    let looking = find_tables(&server, evidence, progress);
    let (tables, missing, asked) = server.during(looking).await?;
    let answers = if asked.is_empty() {
        Vec::new()
    } else {
        let asking = async {
            let mut session = open(&server).await?;
            let _waits = server.waits(&session);
            let answers = queries::ask(&mut session, &asked, progress).await;
            session.close(COURTESY).await;
            answers.map_err(|failure| explain(&failure, "asking the queries"))
        };
        server.during(Box::pin(asking)).await?
    };
    let hold =
        !answers.is_empty() && answers.iter().all(|answer| answer.found == AnswerFound::Expected);
    let gone = missing.into_iter().map(|(table, step)| {
        let verdict = Verdict::Undecided(format!(
            "it is not here, or not as prepare made it, and step {step} wrote to it: dropped, \
             renamed or lost"
        ));
        Checked { table, verdict, found: Found::default(), history: History::default() }
    });
    if tables.is_empty() {
        return Ok((gone.collect(), answers));
    }
    let reading = Arc::new(Reading {
        server,
        tasks: Mutex::default(),
        seen: Mutex::new(vec![TableScan::default(); tables.len()]),
        read: AtomicU64::new(0),
        tables,
    });
    let found = read(&reading, progress).await?;
    progress.clear();
    let checked = reading.tables.iter().cloned().zip(found).map(|(table, found)| {
        let Table { name: table, mark, history, .. } = table;
        let verdict = judge_beside_scripts(mark.rows, &history, &found, hold);
        Checked { table, verdict, found, history }
    });
    Ok((checked.chain(gone).collect(), answers))
}

/// Begins once all rollbacks are over. Returns missing tables, too, with a step that wrote to each, and the queries
/// of the steps here.
async fn find_tables(
    server: &Liveness,
    evidence: &Evidence<'_>,
    progress: &mut Progress,
) -> Result<(Vec<Table>, BTreeMap<String, String>, Vec<VerifyQuery>)> {
    let target = &server.link.target;
    let mut session = Session::open(&server.link, None).await?;
    let _waits = server.waits(&session);
    if let Some(warning) = exposure(&mut session, target).await? {
        progress.warn_once(&warning.to_string());
    }
    let location = read_location(&mut session).await?;
    let (mut tables, mut foreign) = (Vec::new(), Numbers::new());
    for schema in Schema::ALL {
        let mut indexes = indexes(&mut session, schema).await?;
        for (number, seen) in discover(&mut session, &target.database, schema).await?.tables {
            let Some(mark) = seen.mark else {
                foreign.entry(schema).or_default().push(number);
                continue;
            };
            let name = schema.name(number);
            let mut history = evidence.find_history(&location, &name, &mark);
            let engine = seen.engine_without_rollback().filter(|_| history.steps > 0);
            history.unknown.extend(engine.map(|engine| {
                format!("its engine is {engine}, which keeps parts of failed writes")
            }));
            let primary = vec![("PRIMARY".to_owned(), schema != Schema::Phptest)];
            let indexes = [primary, indexes.remove(&number).unwrap_or_default()].concat();
            tables.push(Table { schema, number, name, mark, history, indexes });
        }
    }
    let others = match named(&foreign) {
        foreign if foreign.is_empty() => foreign,
        foreign => format!("; not made by loadgen prepare: {foreign}"),
    };
    let (queries, elsewhere) = evidence.find_queries(&location);
    if elsewhere > 0 {
        progress.warn(&format!(
            "{elsewhere} of the steps with queries ran on another server or in another database: \
             --elsewhere asks theirs here"
        ));
    }
    if tables.is_empty() && queries.is_empty() {
        return Err(no_tables(&target.database, &others));
    }
    if !others.is_empty() {
        progress.note(&format!("left out{others}"));
    }
    let known = |table: &Table| Some((table.name.clone(), format!("{:x}", table.mark.id?)));
    let known: Vec<Known> = tables.iter().filter_map(known).collect();
    let unseen = !evidence.names_any(&known);
    for table in &mut tables {
        table.history.unseen = unseen;
    }
    let n = evidence.count_other_steps(&known);
    if n > 0 {
        progress.note(&format!(
            "{n} of the steps wrote to other tables: of another database or server, dropped, or \
             prepared again since"
        ));
    }
    let unjudged = evidence.name_unjudged();
    if !unjudged.is_empty() {
        let steps = named_some(unjudged, 1, " and ");
        progress
            .note(&format!("tables that are not loadgen's are not judged: {steps} wrote to some"));
    }
    wait_for_rollbacks(&mut session, progress).await?;
    session.close(COURTESY).await;
    Ok((tables, evidence.missing(&location, &known), queries))
}

async fn read_location(session: &mut Session) -> Result<Location> {
    let variables = control::variables(session).await;
    let variables = variables.map_err(|f| control::explain(&f, "read the server's variables"))?;
    let database = control::database(session).await;
    let database = database.map_err(|f| control::explain(&f, "ask which database it is"))?;
    Ok(Location::from_variables(&variables, database.as_deref()))
}

fn no_tables(database: &str, others: &str) -> Error {
    let hint = if others.is_empty() {
        "verify needs what prepare fills: --database names where the runs wrote to"
    } else {
        "the first content of such tables is not known: verify needs those that prepare makes"
    };
    Error::data(format!("there is no table of prepare's in `{database}`{others}")).hint(hint)
}

/// A killed server rolls back after it lets clients in. XA's prepared ones stay, so the wait has an end.
async fn wait_for_rollbacks(session: &mut Session, progress: &mut Progress) -> Result<()> {
    let (began, mut told) = (Instant::now(), false);
    loop {
        let left = recovered(session).await;
        let left = left.map_err(|f| control::explain(&f, "ask what the server rolls back"))?;
        let over = began.elapsed() > SILENCE;
        if left > 0 && (over || !std::mem::replace(&mut told, true)) {
            let what = if over { "going on" } else { "waiting" };
            progress.note(&format!("{what}: {}", still_open(left)));
        }
        if left == 0 || over {
            return Ok(());
        }
        tokio::time::sleep(EVERY).await;
    }
}

const CHUNK: std::ops::RangeInclusive<u64> = 10_000..=1_000_000;

/// The content of a table, as far as it was read.
#[derive(Debug, Clone, Default)]
struct TableScan {
    found: Found,
    /// The server's counts, before the rows were read.
    counts: Counts,
    /// The greatest filled id: a mark may name any number of rows.
    last: u64,
}

type Task = (usize, What);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Count,
    Rows(u64, u64),
    /// Read the rows outside of the filled ids.
    Others,
    /// Count again, and check once more if the counts disagree.
    Settle,
}

fn chunks(tables: &[(usize, u64)], jobs: usize) -> Vec<Task> {
    let all: u64 = tables.iter().map(|(_, last)| last).sum();
    let chunk = (all / (jobs as u64 * 8)).clamp(*CHUNK.start(), *CHUNK.end());
    let rows = |&(slot, last): &(usize, u64)| {
        let firsts = (0..last.div_ceil(chunk)).map(move |number| number * chunk + 1);
        let ids = firsts.map(move |first| What::Rows(first, last.min(first + chunk - 1)));
        ids.chain([What::Others]).map(move |what| (slot, what))
    };
    tables.iter().flat_map(rows).collect()
}

struct Reading {
    server: Arc<Liveness>,
    tables: Vec<Table>,
    tasks: Mutex<VecDeque<Task>>,
    seen: Mutex<Vec<TableScan>>,
    read: AtomicU64,
}

async fn read(reading: &Arc<Reading>, progress: &mut Progress) -> Result<Vec<Found>> {
    let (jobs, server) = (default_jobs() as usize, &reading.server);
    let phases: [(&str, &str, Option<What>); 3] = [
        ("the server counts and sums", "tables", Some(What::Count)),
        ("reading", "chunks", None),
        ("the server counts and sums again", "tables", Some(What::Settle)),
    ];
    for (doing, pieces, what) in phases {
        // A table with a fault is not read further.
        let mut still: Vec<(usize, u64)> =
            locked(&reading.seen).iter().map(|seen| seen.last).enumerate().collect();
        still.retain(|(slot, _)| {
            let found = &locked(&reading.seen)[*slot].found;
            reading.tables[*slot].mark.state == State::Ready && found.finding.is_none()
        });
        let whole = |what| still.iter().map(|(slot, _)| (*slot, what)).collect();
        let tasks = what.map_or_else(|| chunks(&still, jobs), whole);
        let (count, halt) = (jobs.min(tasks.len()), &Stop::default());
        let again = "give the same command again";
        let threads = Threads { name: "verify", count, halt, liveness: server, again };
        *locked(&reading.tasks) = tasks.into();
        progress.restart();
        let look = || {
            progress.update(|| {
                let n = reading.read.load(Ordering::Relaxed);
                let rows = (n > 0).then(|| format!("{} rows, ", units::count(n)));
                let (rows, wait) = (rows.unwrap_or_default(), locked(&reading.tasks).len());
                format!("{doing}: {rows}{wait} {pieces} wait")
            });
        };
        let theirs = Arc::clone(reading);
        let done = threads.run(move || work(Arc::clone(&theirs)), look).await;
        server.link.stop.check()?;
        done?;
    }
    Ok(std::mem::take(&mut *locked(&reading.seen)).into_iter().map(|seen| seen.found).collect())
}

async fn work(reading: Arc<Reading>) -> Result<()> {
    let mut session = open(&reading.server).await?;
    let waits = reading.server.waits(&session);
    loop {
        let Some((slot, what)) = locked(&reading.tasks).pop_front() else { break };
        match reading.check_table(&mut session, slot, what).await {
            Ok(()) => {}
            Err(Ended::Found(finding)) => {
                locked(&reading.seen)[slot].found.finding = Some(finding);
            }
            Err(Ended::Failed(failure)) => {
                let name = &reading.tables[slot].name;
                return Err(explain(&failure, &format!("reading {name}")));
            }
        }
    }
    drop(waits);
    session.close(COURTESY).await;
    Ok(())
}

/// Opens a session that reads committed data at one instant a statement.
async fn open(server: &Liveness) -> Result<Session> {
    let mut session = Session::open(&server.link, None).await?;
    let failed = |f: Failure| explain(&f, "setting up a connection");
    let isolation = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    session.execute(isolation).await.map_err(failed)?;
    limit_lock_wait(&mut session).await.map_err(failed)?;
    Ok(session)
}

fn explain(failure: &Failure, doing: &str) -> Error {
    match failure {
        Failure::Lost(_) => Error::server(format!("{doing}: {failure}")).hint(LOST),
        Failure::Server { code, message, .. } => {
            let hint = hint(*code, message, Tried::Verify);
            Error::failed(format!("{doing}: {failure}")).add_hints(hint)
        }
    }
}

fn still_open(n: u64) -> String {
    format!("{} of before the server's start still open", counted(n, "transaction"))
}

impl Reading {
    async fn check_table(&self, session: &mut Session, slot: usize, what: What) -> Read<()> {
        let table = &self.tables[slot];
        let (range, k_start) = match what {
            What::Count => {
                snapshot(session).await?;
                let counts = Counts::take(session, table).await?;
                session.execute("COMMIT").await?;
                let sql = format!("SELECT MAX(id) FROM {}", quoted(&table.name));
                let last = parse_whole("MAX(id)", query_single(session, &sql).await?)?;
                let last = last.clamp(0, table.mark.rows.into()) as u64;
                self.check_unchanged(session, table, &counts).await?;
                let seen = &mut locked(&self.seen)[slot];
                (seen.counts, seen.last) = (counts, last);
                return Ok(());
            }
            What::Settle => return self.settle(session, slot).await,
            What::Rows(first, last) => {
                (format!("id BETWEEN {first} AND {last}"), table.k_start(first, last))
            }
            What::Others => (format!("id < 1 OR id > {}", table.mark.rows), 0),
        };
        let found = table.read(session, &range, &self.read).await?;
        locked(&self.seen)[slot].found.add(&Found { k_start, ..found });
        Ok(())
    }

    /// Reads a table that disagrees with the server's count in one piece: a row may have gained between pieces.
    async fn settle(&self, session: &mut Session, slot: usize) -> Read<()> {
        let (table, TableScan { mut found, counts: before, .. }) =
            (&self.tables[slot], locked(&self.seen)[slot].clone());
        self.check_unchanged(session, table, &before).await?;
        if before.find_torn_index(&found.count()).is_none() {
            return Ok(());
        }
        snapshot(session).await?;
        let counts = Counts::take(session, table).await?;
        if !counts.rows().agrees(&found.count()) {
            let again = table.read(session, "1 = 1", &AtomicU64::new(0)).await?;
            found = Found { k_start: found.k_start, ..again };
        }
        session.execute("COMMIT").await?;
        if counts.rows() != before.rows() {
            return Err(self.describe_activity(session).await?);
        }
        let torn = counts.find_torn_index(&found.count());
        locked(&self.seen)[slot].found = found;
        let Some((by, what)) = torn else { return Ok(()) };
        Err(Ended::Found(match recovered(session).await? {
            0 => {
                let report = check_table(session, &table.name).await?;
                Verdict::Index(by, format!("{what}; {report}"))
            }
            left => Verdict::Undecided(format!("{what}, but {}", still_open(left))),
        }))
    }

    async fn check_unchanged(
        &self,
        session: &mut Session,
        table: &Table,
        counts: &Counts,
    ) -> Read<()> {
        let (index, before) = counts.narrow();
        if count(index, before.k.is_some(), session, &table.name).await? == *before {
            return Ok(());
        }
        Err(self.describe_activity(session).await?)
    }

    /// Names who is active in the database, for a table that changes.
    async fn describe_activity(&self, session: &mut Session) -> Asked<Ended> {
        let active = match self.server.list_others(session).await?.join(", ") {
            others if others.is_empty() => String::new(),
            others => format!("; active in this database: {others}"),
        };
        let what = "it changed while it was read: something else writes to it";
        Ok(Ended::Found(Verdict::Undecided(format!("{what}{active}"))))
    }
}

/// The server's error number for a missing or unusable index.
const NO_INDEX: u16 = 1176;

enum Ended {
    Failed(Failure),
    Found(Verdict),
}

type Read<T> = Result<T, Ended>;

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::Failed(failure)
    }
}

/// Rows, and the sum of `k` if the index has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    rows: u64,
    k: Option<i128>,
}

impl Count {
    fn agrees(&self, other: &Count) -> bool {
        let same_k = self.k.zip(other.k).is_none_or(|(one, other)| one == other);
        self.rows == other.rows && same_k
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows", self.rows)?;
        self.k.map_or(Ok(()), |k| write!(f, " with a sum of k of {k}"))
    }
}

/// Counts by index; the rows' own, with all columns, is the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Counts(Vec<(String, Count)>);

/// Parses a whole number of the server; 0 if there are no rows.
fn parse_whole(what: &str, text: Option<String>) -> Read<i128> {
    let text = text.unwrap_or_else(|| "0".to_owned());
    text.parse().map_err(|_| {
        let quote = clip(&text, VALUE_MAX);
        Ended::Found(Verdict::Damaged(1, format!("{what} is '{quote}', no whole number")))
    })
}

/// Counts and sums by one index; the server chooses if none is named.
async fn count(index: &str, has_k: bool, session: &mut Session, table: &str) -> Read<Count> {
    let force = || format!(" FORCE INDEX ({})", quoted(index));
    let by = if index.is_empty() { String::new() } else { force() };
    // COUNT(*) alone may not read the index.
    let sum = if has_k { "SUM(k)" } else { "SUM(1)" };
    let sql = format!("SELECT COUNT(*), {sum} FROM {}{by}", quoted(table));
    let [count, k] = rows(session, &sql).await?.pop().unwrap_or_default();
    let (rows, k) = (parse_whole("COUNT(*)", count)?.max(0) as u64, parse_whole(sum, k)?);
    Ok(Count { rows, k: has_k.then_some(k) })
}

impl Counts {
    /// Counts by all indexes at one instant, despite writes and rollbacks: within [`snapshot`].
    async fn take(session: &mut Session, table: &Table) -> Read<Counts> {
        let mut counts = Vec::with_capacity(table.indexes.len());
        for (index, has_k) in &table.indexes {
            match count(index, *has_k, session, &table.name).await {
                // Dropped meanwhile, or hidden from the optimizer.
                Err(Ended::Failed(Failure::Server { code: NO_INDEX, .. })) => {}
                counted => counts.push((index.clone(), counted?)),
            }
        }
        if counts.is_empty() {
            let any = count("", table.indexes[0].1, session, &table.name).await?;
            counts.push((String::new(), any));
        }
        Ok(Counts(counts))
    }

    /// Finds the index with most information that is cheapest to read again: the last ones are narrow.
    fn narrow(&self) -> &(String, Count) {
        let narrow = self.0.iter().rfind(|(_, count)| count.k.is_some()).or(self.0.last());
        narrow.expect("counted by one index at least")
    }

    fn rows(&self) -> Count {
        self.0[0].1
    }

    /// The first index that disagrees with the rows, or rows with the server's count: by how many, in words.
    fn find_torn_index(&self, read: &Count) -> Option<(u64, String)> {
        let rows = self.rows();
        let (other, what) = match self.0.iter().find(|(_, count)| !count.agrees(&rows)) {
            Some((index, count)) => {
                (count, format!("index {index} has {count}, the table has {rows}"))
            }
            None if rows.agrees(read) => return None,
            None => (read, format!("the server counts {rows}, and returns {read}")),
        };
        Some((rows.rows.abs_diff(other.rows).max(1), what))
    }
}

/// Freezes what is read until COMMIT.
async fn snapshot(session: &mut Session) -> Asked<()> {
    session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT").await.map(drop)
}

async fn check_table(session: &mut Session, table: &str) -> Asked<String> {
    let report = match rows::<4>(session, &format!("CHECK TABLE {}", quoted(table))).await {
        Ok(lines) => lines.into_iter().filter_map(|[.., text]| text).collect::<Vec<_>>().join("; "),
        Err(refused @ Failure::Server { .. }) => refused.to_string(),
        Err(lost) => return Err(lost),
    };
    Ok(format!("CHECK TABLE: {report}"))
}

/// Transactions of before the server's start, but XA's: it rolls them back in the background. 0 if not reported.
async fn recovered(session: &mut Session) -> Asked<u64> {
    let sql = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0";
    Ok(optional(number(session, sql).await)?.unwrap_or(0))
}

/// Digits of a password that phptest's update sets.
const PASSWORD_LEN: usize = 32;

#[derive(Debug, Clone)]
struct Table {
    schema: Schema,
    number: u32,
    name: String,
    mark: Mark,
    history: History,
    indexes: Indexes,
}

/// Names of a table's indexes, the rows' own first, and whether `k` is in each.
type Indexes = Vec<(String, bool)>;

async fn indexes(session: &mut Session, schema: Schema) -> Result<BTreeMap<u32, Indexes>> {
    let sql = format!(
        "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS \
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE '{}%' AND INDEX_TYPE = 'BTREE' \
         AND SEQ_IN_INDEX = 1 AND INDEX_NAME <> 'PRIMARY'",
        schema.prefix()
    );
    let rows = rows::<3>(session, &sql).await;
    let mut indexes: BTreeMap<u32, Indexes> = BTreeMap::new();
    for [table, name, column] in rows.map_err(|f| control::explain(&f, "list the indexes"))? {
        // An index on an expression has no column.
        let k = column.is_some_and(|column| column.eq_ignore_ascii_case("k"));
        if let (Some(number), Some(name)) = (table.and_then(|t| schema.number(&t)), name) {
            indexes.entry(number).or_default().push((name, k));
        }
    }
    Ok(indexes)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Filled,
    Rewritten,
    Wrong,
}

impl Table {
    /// Sums the original `k` of the rows of these ids.
    fn k_start(&self, first: u64, last: u64) -> i128 {
        if self.schema != Schema::Sbtest {
            return 0;
        }
        let rows = Rows::new(self.mark.seed, self.number, self.mark.rows);
        (first..=last).map(|id| i128::from(rows.k(id))).sum()
    }

    async fn read(&self, session: &mut Session, range: &str, read: &AtomicU64) -> Asked<Found> {
        let columns = self.schema.columns().join(", ");
        let sql = format!("SELECT {columns} FROM {} WHERE {range}", quoted(&self.name));
        let mut judge = Contents::new(self);
        let mut found = Found { k: self.indexes[0].1.then_some(0), ..Found::default() };
        let take = |row| {
            read.fetch_add(1, Ordering::Relaxed);
            judge.take(&row, &mut found);
        };
        session.read(&sql, take).await?;
        Ok(found)
    }
}

struct Contents<'a> {
    table: &'a Table,
    columns: Vec<&'static str>,
    /// True if all steps that wrote to it are known and built in.
    known: bool,
    inserted: bool,
    /// None if tables are empty when they are made.
    filler: Option<Filler>,
    line: Vec<u8>,
}

impl Contents<'_> {
    fn new(table: &Table) -> Contents<'_> {
        let Table { schema, number, mark: Mark { seed, rows, .. }, ref history, .. } = *table;
        let inserts = [history.inserts, history.doubt.rows_added, history.doubt.rows_unknown];
        Contents {
            table,
            columns: schema.columns(),
            known: history.unknown.is_empty() && !history.custom,
            inserted: inserts.iter().any(|n| *n > 0),
            filler: Filler::new(schema, seed, number, rows),
            line: Vec::new(),
        }
    }

    fn take(&mut self, row: &Row, found: &mut Found) {
        let Table { schema, ref mark, ref history, .. } = *self.table;
        // Some SQL modes pad a CHAR that they return.
        let own = |column| match row.as_ref(column) {
            Some(Value::Bytes(bytes)) if schema == Schema::Sbtest => bytes.trim_ascii_end(),
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        };
        let number = |column| std::str::from_utf8(own(column)).ok()?.parse::<i64>().ok();
        found.rows += 1;
        if let Some(k) = &mut found.k {
            *k += i128::from(number(1).unwrap_or(0));
        }
        let number = number(0);
        let id = number.and_then(|id| u64::try_from(id).ok());
        let Some(id) = id.filter(|id| (1..=mark.rows).contains(id)) else {
            // A row that a workload inserted proves itself; sysbench's may have an id below 0.
            let inserted = number.is_some_and(|_| match schema {
                Schema::Sbtest => self.proves(id.unwrap_or(0), own(2), true) && is_pad(own(3)),
                Schema::Bulk => own(0) == own(1),
                Schema::Phptest => false,
            });
            found.strange += u64::from(self.known && !inserted);
            return;
        };
        found.filled += 1;
        if let Some(Filler { schema: Schema::Sbtest, rows }) = &self.filler {
            found.k_filled += i128::from(rows.k(id));
        }
        // One write in doubt may have set passwords in any number of rows.
        let any = schema == Schema::Phptest && history.in_doubt > 0;
        match self.content(id, own) {
            Content::Filled => {}
            Content::Rewritten => found.rewritten += u64::from(self.known && !any),
            Content::Wrong => {
                found.wrong += 1;
                found.first_wrong = Some(found.first_wrong.map_or(id, |first| first.min(id)));
            }
        }
    }

    /// All but `k`, which is summed. A `c` proves itself; only built-in workloads keep its form.
    fn content<'r>(&mut self, id: u64, own: impl Fn(usize) -> &'r [u8]) -> Content {
        let Some(filler) = self.filler else { return Content::Filled };
        self.line.clear();
        filler.line(&mut self.line, id);
        let line = self.line.strip_suffix(b"\n").expect("a line ends");
        let mut content = Content::Filled;
        let filled = line.split(|byte| *byte == b'\t');
        for (at, (column, filled)) in self.columns.iter().zip(filled).enumerate() {
            let own = own(at);
            if own == filled {
                continue;
            }
            let explained = match *column {
                "id" | "k" => continue,
                "c" => self.proves(id, own, self.inserted),
                _ if !self.known => true,
                "pad" => is_pad(own),
                "password" => own.len() == PASSWORD_LEN && is_digits(own),
                _ => false,
            };
            if !explained {
                return Content::Wrong;
            }
            content = Content::Rewritten;
        }
        content
    }

    /// With AUTO_INCREMENT `c` is made before its id is known. Servers that forget their counter continue
    /// after the greatest id left, even a filled one's.
    fn proves(&self, id: u64, c: &[u8], inserted: bool) -> bool {
        let proves = |id| proves(self.table.number, id, c);
        proves(id) || (inserted && proves(0))
    }
}

fn is_pad(pad: &[u8]) -> bool {
    let group = |group: &[u8]| group.len() == 11 && is_digits(group);
    pad.len() == PAD_LEN && pad.split(|byte| *byte == b'-').all(group)
}

impl Found {
    fn count(&self) -> Count {
        Count { rows: self.rows, k: self.k }
    }

    fn add(&mut self, part: &Found) {
        add!(self, part; rows, filled, k_filled, k_start, wrong, rewritten, strange);
        self.k = self.k.into_iter().chain(part.k).reduce(|sum, k| sum + k);
        self.first_wrong = self.first_wrong.into_iter().chain(part.first_wrong).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_all_ids_once() {
        let of =
            |slot, what: &[What]| -> Vec<Task> { what.iter().map(|what| (slot, *what)).collect() };
        let mut expected = of(
            0,
            &[
                What::Rows(1, 10_000),
                What::Rows(10_001, 20_000),
                What::Rows(20_001, 25_000),
                What::Others,
            ],
        );
        expected.extend(of(2, &[What::Others]));
        expected.extend(of(5, &[What::Rows(1, 10_000), What::Rows(10_001, 20_000), What::Others]));
        assert_eq!(chunks(&[(0, 25_000), (2, 0), (5, 20_000)], 4), expected);
        assert_eq!(chunks(&[(0, 16_000_000_000)], 16).len(), 16_001, "as bounded");
    }

    fn counts(all: &[(&str, u64, Option<i128>)]) -> Counts {
        let of = |(name, rows, k): &(&str, u64, Option<i128>)| {
            ((*name).to_owned(), Count { rows: *rows, k: *k })
        };
        Counts(all.iter().map(of).collect())
    }

    #[test]
    fn an_index_that_disagrees_is_named() {
        let whole = counts(&[("PRIMARY", 9, Some(50)), ("k_1", 9, Some(50)), ("c", 9, None)]);
        let torn = |counts: &Counts| counts.find_torn_index(&counts.rows());
        assert_eq!(torn(&whole), None);
        let more = counts(&[("PRIMARY", 9, Some(50)), ("k_1", 12, Some(70))]);
        let (by, what) = torn(&more).expect("found");
        assert_eq!(by, 3);
        assert_eq!(
            what,
            "index k_1 has 12 rows with a sum of k of 70, the table has 9 rows with a sum of k of 50"
        );
        assert_eq!(whole.narrow().0, "k_1");
        let moved = counts(&[("PRIMARY", 9, Some(50)), ("k_1", 9, Some(51))]);
        assert_eq!(torn(&moved).map(|(by, _)| by), Some(1));
        assert_eq!(
            torn(&counts(&[("PRIMARY", 9, None), ("email", 8, None)])).map(|t| t.0),
            Some(1)
        );
    }

    #[test]
    fn rows_that_are_not_returned_are_counted() {
        let counts = counts(&[("PRIMARY", 9, Some(50))]);
        assert_eq!(counts.find_torn_index(&Count { rows: 9, k: Some(50) }), None);
        let (by, what) = counts.find_torn_index(&Count { rows: 7, k: Some(40) }).expect("found");
        assert!(by == 2 && what.contains(" 7 "), "{what}");
    }
}

#[cfg(test)]
mod content_tests {
    use super::*;
    use crate::summary::Doubt;
    use crate::workload::rows::{pad, proven};

    #[test]
    fn an_inserted_row_may_have_the_id_of_a_filled_one() {
        let mark = Mark::ready(7, 100, None);
        let of = |history: &History| Table {
            schema: Schema::Sbtest,
            number: 1,
            name: "sbtest1".to_owned(),
            mark,
            history: history.clone(),
            indexes: Vec::new(),
        };
        let inserted = History { inserts: 1, ..History::default() };
        let filled = Rows::new(7, 1, 100).row(100);
        let (k, pad) = (filled.k.to_string(), pad(|| 5));
        let content = |history: &History, c: &[u8]| {
            Contents::new(&of(history)).content(100, |at| [b"100", k.as_bytes(), c, &pad][at])
        };
        // The id is 0: AUTO_INCREMENT gives it.
        let free = proven(1, 0, || 9);
        assert_eq!(content(&inserted, &free), Content::Rewritten);
        assert_eq!(content(&History::default(), &free), Content::Wrong, "nobody inserted");
        assert_eq!(content(&inserted, &proven(1, 99, || 9)), Content::Wrong);
        let doubt = Doubt { rows_added: 1, ..Doubt::default() };
        let maybe = History { in_doubt: 1, doubt, ..History::default() };
        assert_eq!(content(&maybe, &free), Content::Rewritten);
    }

    #[test]
    fn a_pad_is_five_groups_of_digits() {
        let mut pad = pad(|| 7_777_777_777_777_777_777);
        assert!(is_pad(&pad));
        for (at, byte) in [(0, b'x'), (11, b'0'), (58, b'-')] {
            let before = std::mem::replace(&mut pad[at], byte);
            assert!(!is_pad(&pad), "{at}");
            pad[at] = before;
        }
        assert!(!is_pad(&pad[..58]) && !is_pad(b""));
    }
}
