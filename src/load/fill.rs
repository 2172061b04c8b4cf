//! The connections of a fill: each takes chunks and finished tables until nothing is left.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::Opts;

use super::chunks::{Chunk, Chunks, Task, chunk_rows};
use super::connect::{AGAIN, Doing, claim, explain, number, open};
use super::set_up::{Method, Ready, Unfinished};
use super::throughput::{Throughput, short};
use super::{Job, ready_mark, text};
use crate::error::{Error, Result};
use crate::mysql::control::{Asked, one, optional, rows};
use crate::mysql::liveness::{Liveness, Threads};
use crate::mysql::options::ConnectOptions;
use crate::mysql::session::{Failure, Session};
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop, within};
use crate::workload::Schema;
use crate::workload::filler::Filler;
use crate::workload::table::quoted;

/// Attempts at a chunk before a conflict with other connections counts as an error.
const ATTEMPTS: u32 = 10;
/// The wait before a further attempt, times the attempts so far.
const BREATH: Duration = Duration::from_millis(20);

/// What filling came to.
pub(super) struct Filled {
    /// When the last row was in.
    pub(super) rows_after: Duration,
    /// Rows that were there before.
    pub(super) found: u64,
}

/// What all connections of a fill share.
struct Filling {
    target: ConnectOptions,
    opts: Opts,
    liveness: Liveness,
    job: Job,
    /// The chunks' slots are places in here.
    tables: Vec<Unfinished>,
    method: Method,
    /// The largest packet that both ends take, bytes.
    packet: usize,
    chunks: Mutex<Chunks>,
    /// Rows in the tables or on their way.
    sent: Arc<AtomicU64>,
    /// Rows that an interrupted fill had left.
    found: AtomicU64,
    /// Connections that build an index.
    indexing: Mutex<Vec<u32>>,
    /// Tables whose rows are being counted.
    counting: AtomicU64,
    /// Threads that have begun.
    begun: AtomicU32,
    finished: AtomicU64,
}

/// Locks also what a panicking thread left: the data are plain numbers.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fills, indexes and marks the tables.
pub(super) async fn fill(
    target: &ConnectOptions,
    opts: &Opts,
    job: &Job,
    ready: Ready,
    liveness: Liveness,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Filled> {
    let Ready { control, tables, choice, jobs, packet } = ready;
    let chunk_rows = chunk_rows(tables.len() as u64, job.rows, u64::from(jobs));
    let filling = Arc::new(Filling {
        chunks: Mutex::new(Chunks::new(tables.len(), job.rows, chunk_rows, choice.crowd)),
        target: target.clone(),
        opts: opts.clone(),
        liveness,
        job: job.clone(),
        tables,
        method: choice.method,
        packet,
        sent: Arc::default(),
        found: AtomicU64::new(0),
        indexing: Mutex::default(),
        counting: AtomicU64::new(0),
        begun: AtomicU32::new(0),
        finished: AtomicU64::new(0),
    });
    let why = choice.why.map_or_else(String::new, |why| format!(" ({why})"));
    progress.note(&format!(
        "filling by {} over {jobs} connection{}{why}",
        choice.method,
        if jobs == 1 { "" } else { "s" }
    ));
    let threads = Threads {
        name: "fill",
        count: jobs as usize,
        halt: &Stop::default(),
        stop,
        liveness: &filling.liveness,
        again: AGAIN,
    };
    let began = Instant::now();
    let mut all_sent = None;
    let mut throughput = Throughput::new(filling.total(), began);
    progress.restart();
    let look = || {
        let rows = filling.sent.load(Ordering::Relaxed).min(filling.total());
        throughput.at(Instant::now(), rows);
        if rows == filling.total() {
            all_sent.get_or_insert_with(|| began.elapsed());
        }
        progress.update(|| filling.shown(rows, &throughput, began));
    };
    let theirs = Arc::clone(&filling);
    let done = threads.run(move || work(Arc::clone(&theirs)), look).await;
    let rows_after = all_sent.unwrap_or_else(|| began.elapsed());
    let outcome = done.and_then(|()| filling.verdict(stop));
    if outcome.is_err() {
        let indexing = locked(&filling.indexing).clone();
        end_indexing(control, job.schema, &indexing).await;
    } else {
        control.close(COURTESY).await;
    }
    outcome.map(|()| Filled { rows_after, found: filling.found.load(Ordering::Relaxed) })
}

/// Works until nothing is left. Whoever is dropped meanwhile drops the connection in the middle of a
/// statement, and the server rolls the chunk back.
async fn work(filling: Arc<Filling>) -> Result<()> {
    let job = filling.begun.fetch_add(1, Ordering::Relaxed);
    let mut session = filling.open(job).await?;
    let mut mine = None;
    loop {
        let Some(task) = locked(&filling.chunks).next(mine) else { break };
        session = match task {
            Task::Fill(chunk) => {
                let session = filling.fill(session, job, chunk).await?;
                locked(&filling.chunks).done(chunk);
                mine = Some(chunk.slot);
                session
            }
            Task::Finish(slot) => filling.finish(session, slot).await?,
        };
    }
    session.close(COURTESY).await;
    Ok(())
}

/// Rows on their way, of the whole fill and of one chunk.
#[derive(Debug, Clone)]
struct Sent {
    all: Arc<AtomicU64>,
    chunk: Arc<AtomicU64>,
}

impl Sent {
    fn add(&self, rows: u64) {
        self.all.fetch_add(rows, Ordering::Relaxed);
        self.chunk.fetch_add(rows, Ordering::Relaxed);
    }

    fn take_back(&self) {
        self.all.fetch_sub(self.chunk.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Why a chunk is not in.
struct Trouble {
    error: Error,
    /// A deadlock or a wait for a lock: the chunk is rolled back.
    conflict: bool,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        let conflict = matches!(failure, Failure::Server { code: 1205 | 1213, .. });
        Trouble { error: explain(&failure), conflict }
    }
}

impl Filling {
    fn total(&self) -> u64 {
        self.job.rows * self.tables.len() as u64
    }

    /// Opens the connection of a thread.
    async fn open(&self, job: u32) -> Result<Session> {
        let mut session = open(&self.target, &self.opts).await?;
        claim(&mut session, &self.target.database, job).await?;
        Ok(session)
    }

    /// Fills a chunk, again if the server gave other connections the right of way: deleting the
    /// rests of an interrupted fill locks the seams to the neighbouring chunks too.
    async fn fill(&self, mut session: Session, job: u32, chunk: Chunk) -> Result<Session> {
        let Unfinished { number, mut begun } = self.tables[chunk.slot];
        let mut attempt = 1;
        loop {
            let sent = Sent { all: Arc::clone(&self.sent), chunk: Arc::default() };
            let waits = self.liveness.waits(&session);
            match self.try_fill(session, number, chunk, begun, &sent).await {
                Ok(session) => return Ok(session),
                Err(trouble) if trouble.conflict && attempt < ATTEMPTS => sent.take_back(),
                Err(trouble) => {
                    let (name, Chunk { first, last, .. }) = (self.job.schema.name(number), chunk);
                    let at = format!("filling {name} (ids {first} to {last})");
                    return Err(trouble.error.context(at));
                }
            }
            drop(waits);
            tokio::time::sleep(BREATH * attempt).await;
            (begun, attempt) = (true, attempt + 1);
            // The old one went with its statement, and what it held is rolled back.
            session = self.open(job).await?;
        }
    }

    async fn try_fill(
        &self,
        mut session: Session,
        table: u32,
        chunk: Chunk,
        begun: bool,
        sent: &Sent,
    ) -> std::result::Result<Session, Trouble> {
        if begun && self.is_there(&mut session, table, chunk).await? {
            sent.add(chunk.rows());
            self.found.fetch_add(chunk.rows(), Ordering::Relaxed);
            return Ok(session);
        }
        let Job { schema, data_seed, rows, .. } = self.job;
        let rows = Filler::new(schema, data_seed, table, rows)
            .expect("tables that stay empty are not filled");
        match self.method {
            Method::LoadData => self.load(session, table, rows, chunk, sent).await,
            Method::Insert => self.insert(session, table, rows, chunk, sent).await,
        }
    }

    /// Whether an interrupted fill left this chunk whole; what is left of a broken one is
    /// deleted. Counting what is there is many times faster than filling it.
    async fn is_there(&self, session: &mut Session, table: u32, chunk: Chunk) -> Asked<bool> {
        let named = quoted(&self.job.schema.name(table));
        let range = format!("WHERE id BETWEEN {} AND {}", chunk.first, chunk.last);
        // The index on k holds the ids too, and a scan of all of it might look cheaper.
        let sql = format!("SELECT COUNT(*) FROM {named} FORCE INDEX (PRIMARY) {range}");
        let count = number(session, &sql).await?;
        if count > 0 && count != chunk.rows() {
            session.execute(&format!("DELETE FROM {named} {range}")).await?;
        }
        Ok(count == chunk.rows())
    }

    /// One statement, and so one transaction.
    async fn load(
        &self,
        session: Session,
        table: u32,
        rows: Filler,
        chunk: Chunk,
        sent: &Sent,
    ) -> std::result::Result<Session, Trouble> {
        let counted = sent.clone();
        let count = move |rows, _| counted.add(rows);
        let lines = text::lines(rows, chunk.first, chunk.last, self.packet, count);
        let sql = text::load_data(self.job.schema, table, "latin1");
        let (mut session, affected) = session.load_data(&sql, lines).await?;
        // LOCAL turns errors in the data and duplicate ids into warnings.
        complete(&mut session, affected, chunk.rows()).await?;
        Ok(session)
    }

    /// Several statements in one transaction.
    async fn insert(
        &self,
        mut session: Session,
        table: u32,
        rows: Filler,
        chunk: Chunk,
        sent: &Sent,
    ) -> std::result::Result<Session, Trouble> {
        session.execute("START TRANSACTION").await?;
        let (head, room) = text::insert(&rows, table, self.packet);
        let mut sql = Vec::with_capacity(room);
        let mut next = chunk.first;
        while next <= chunk.last {
            sql.clear();
            let after = text::extended(&mut sql, &head, rows, next, chunk.last, room);
            let affected = session.run_bytes(&sql).await?.affected;
            complete(&mut session, affected, after - next).await?;
            sent.add(affected);
            next = after;
        }
        session.execute("COMMIT").await?;
        Ok(session)
    }

    /// Builds the index, counts, and makes the mark that says so.
    async fn finish(&self, mut session: Session, slot: usize) -> Result<Session> {
        let _waits = self.liveness.waits(&session);
        let table = self.tables[slot];
        let name = self.job.schema.name(table.number);
        if let Some(index) = self.job.schema.index(table.number) {
            let at = format!("building the index of {name}");
            let there =
                table.begun && has_index(&mut session, &name, &index.name).await.doing(&at)?;
            if !there {
                locked(&self.indexing).push(session.id());
                session.execute(&index.sql).await.doing(&at)?;
                locked(&self.indexing).retain(|id| *id != session.id());
            }
        }
        let (at, named) = (format!("finishing {name}"), quoted(&name));
        // In one statement, so that the server scans the smallest index.
        let sql = format!("SELECT COUNT(*), MIN(id), MAX(id) FROM {named}");
        self.counting.fetch_add(1, Ordering::Relaxed);
        let counted = rows::<3>(&mut session, &sql).await.doing(&at)?;
        self.counting.fetch_sub(1, Ordering::Relaxed);
        let counted: Vec<String> = counted.into_iter().flatten().flatten().collect();
        self.check(&name, &counted)?;
        let mark = ready_mark(self.job.data_seed, self.job.rows);
        let sql = format!("ALTER TABLE {named} COMMENT = '{mark}'");
        session.execute(&sql).await.doing(&at)?;
        // Until then MySQL 5.6 and later tell the size that the table had while it was empty.
        let sql = format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {named}");
        optional(session.query(&sql).await).doing(&at)?;
        self.finished.fetch_add(1, Ordering::Relaxed);
        Ok(session)
    }

    /// Holds the count and the ends of the ids, if there are any, against what was sent.
    fn check(&self, name: &str, counted: &[String]) -> Result<()> {
        let rows = self.job.rows.to_string();
        if counted == [rows.as_str(), "1", rows.as_str()] {
            return Ok(());
        }
        let count = counted.first().map_or("?", String::as_str);
        let ends = counted.get(1..).map_or_else(String::new, |ends| ends.join(" to "));
        let lacks = count.parse().is_ok_and(|count: u64| count < self.job.rows);
        Err(Error::data(format!(
            "{name} holds {count} rows (ids {ends}), not {rows} (ids 1 to {rows}): something else \
             wrote to it"
        ))
        .hint(if lacks { AGAIN } else { "--force drops it and fills it again" }))
    }

    /// The live line.
    fn shown(&self, rows: u64, throughput: &Throughput, began: Instant) -> String {
        let indexing = match locked(&self.indexing).len() {
            0 => String::new(),
            n => format!("; building {n} indexes"),
        };
        let counting = match self.counting.load(Ordering::Relaxed) {
            0 => String::new(),
            n => format!("; counting {n} tables"),
        };
        let beside = indexing + &counting;
        if rows < self.total() {
            return format!("filling: {}{beside}", throughput.text("rows"));
        }
        let (finished, tables) = (self.finished.load(Ordering::Relaxed), self.tables.len());
        let seconds = began.elapsed().as_secs();
        format!("filled; {finished} of {tables} tables ready, {seconds} s{beside}")
    }

    fn verdict(&self, stop: &Stop) -> Result<()> {
        let finished = self.finished.load(Ordering::Relaxed);
        if finished == self.tables.len() as u64 {
            return Ok(());
        }
        let sent = self.sent.load(Ordering::Relaxed);
        let so_far = format!("{} of {} rows", short(sent as f64), short(self.total() as f64));
        Err(match stop.asked() {
            Some(kind) => Error::new(kind, format!("interrupted after {so_far}")),
            None => Error::failed(format!(
                "{finished} of {} tables are finished, {so_far}",
                self.tables.len()
            )),
        }
        .hint(AGAIN))
    }
}

/// Checks that the server took all rows as they were sent.
async fn complete(
    session: &mut Session,
    affected: u64,
    rows: u64,
) -> std::result::Result<(), Trouble> {
    if affected == rows && session.warnings() == 0 {
        return Ok(());
    }
    // The connection may be lost just now: then the reason is missing.
    let warnings = session.query("SHOW WARNINGS LIMIT 1").await.unwrap_or_default();
    let warning = warnings.into_iter().flatten().nth(2).flatten();
    let why = warning.map_or_else(String::new, |text| format!(": {text}"));
    let error = Error::failed(format!("the server took {affected} of {rows} rows{why}"))
        .hint("does something else write to these tables?")
        .hint(AGAIN);
    Err(Trouble { error, conflict: false })
}

async fn has_index(session: &mut Session, table: &str, index: &str) -> Asked<bool> {
    let sql = format!(
        "SELECT 1 FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME = '{table}' AND INDEX_NAME = '{index}'"
    );
    Ok(one(session, &sql).await?.is_some())
}

/// Ends building indexes: a server goes on when the connection is gone, and the next prepare would
/// wait for it. Kills only what is our own statement without doubt.
async fn end_indexing(mut control: Session, schema: Schema, connections: &[u32]) {
    let built = match schema {
        Schema::Sbtest => "CREATE INDEX `k_",
        Schema::Phptest | Schema::Bulk => "ALTER TABLE `phptest",
    };
    if connections.is_empty() {
        return;
    }
    // The fill has failed already: what fails here has nobody to tell.
    let killing = async {
        for row in control.query("SHOW FULL PROCESSLIST").await.unwrap_or_default() {
            let field = |i: usize| row.get(i).and_then(Option::as_deref);
            let id = field(0).and_then(|id| id.parse::<u32>().ok());
            let ours = field(7).is_some_and(|sql| sql.starts_with(built));
            if let Some(id) = id.filter(|id| ours && connections.contains(id)) {
                // It may have ended just now.
                let _ = control.execute(&format!("KILL {id}")).await;
            }
        }
    };
    let _ = within(COURTESY, killing).await;
}
