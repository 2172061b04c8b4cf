//! The connections of a fill: each takes chunks and finished tables until nothing is left.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::chunks::{Chunk, Chunks, Task, chunk_rows};
use super::connect::{AGAIN, Doing, claim, explain, give_up, number, open};
use super::throughput::{Throughput, short};
use super::{Job, Method, Ready, Unfinished, ready_mark, text};
use crate::error::{Error, Result};
use crate::mysql::control::{one, optional, rows};
use crate::mysql::liveness::{Liveness, Threads};
use crate::mysql::session::{Failure, Session};
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop};
use crate::workload::rows::Filler;
use crate::workload::table::quoted;

/// Attempts at a chunk before a conflict with other connections counts as an error.
const ATTEMPTS: u32 = 10;
/// The wait before a further attempt, times the attempts so far.
const BREATH: Duration = Duration::from_millis(20);

struct Filling {
    liveness: Liveness,
    job: Job,
    /// The chunks' slots are places in here.
    tables: Vec<Unfinished>,
    method: Method,
    packet: usize,
    chunks: Mutex<Chunks>,
    /// Rows in the tables, in whole chunks.
    filled: AtomicU64,
    /// Those of them that an interrupted fill had left.
    found: AtomicU64,
    /// Indexes that are being built.
    indexing: AtomicU64,
    /// Threads that have begun.
    begun: AtomicU32,
    finished: AtomicU64,
}

/// Fills, indexes and marks the tables; returns when the last row was in, and how many rows an
/// interrupted fill had left.
pub(super) async fn fill(
    job: &Job,
    ready: Ready,
    liveness: Liveness,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<(Duration, u64)> {
    let Ready { control, tables, choice, jobs, packet } = ready;
    let chunk_rows = chunk_rows(tables.len() as u64, job.rows, u64::from(jobs));
    let filling = Arc::new(Filling {
        chunks: Mutex::new(Chunks::new(tables.len(), job.rows, chunk_rows, choice.crowd)),
        liveness,
        job: job.clone(),
        tables,
        method: choice.method,
        packet,
        filled: AtomicU64::new(0),
        found: AtomicU64::new(0),
        indexing: AtomicU64::new(0),
        begun: AtomicU32::new(0),
        finished: AtomicU64::new(0),
    });
    let why = choice.why.map_or_else(String::new, |why| format!(" ({why})"));
    let s = if jobs == 1 { "" } else { "s" };
    progress.note(&format!("filling by {} over {jobs} connection{s}{why}", choice.method));
    let threads = Threads {
        name: "fill",
        count: jobs as usize,
        halt: &Stop::default(),
        stop,
        liveness: &filling.liveness,
        again: AGAIN,
    };
    let (began, mut rows_after) = (Instant::now(), None);
    let mut throughput = Throughput::new(filling.total(), began);
    progress.restart();
    let look = || {
        let rows = filling.filled.load(Ordering::Relaxed);
        throughput.at(Instant::now(), rows);
        if rows == filling.total() {
            rows_after.get_or_insert_with(|| began.elapsed());
        }
        progress.update(|| filling.shown(rows, &throughput, began));
    };
    let theirs = Arc::clone(&filling);
    let done = threads.run(move || work(Arc::clone(&theirs)), look).await;
    if let Err(error) = done.and_then(|()| filling.verdict(stop)) {
        give_up(control, &filling.liveness.target.database).await;
        return Err(error);
    }
    control.close(COURTESY).await;
    let rows_after = rows_after.unwrap_or_else(|| began.elapsed());
    Ok((rows_after, filling.found.load(Ordering::Relaxed)))
}

/// Works until nothing is left. Whoever is dropped meanwhile drops the connection in the middle of a
/// statement, and the server rolls the chunk back.
async fn work(filling: Arc<Filling>) -> Result<()> {
    let job = filling.begun.fetch_add(1, Ordering::Relaxed);
    let mut session = filling.open(job).await?;
    let mut mine = None;
    loop {
        let Some(task) = filling.chunks().next(mine) else { break };
        session = match task {
            Task::Fill(chunk) => {
                let session = filling.fill(session, job, chunk).await?;
                filling.chunks().done(chunk);
                mine = Some(chunk.slot);
                session
            }
            Task::Finish(slot) => filling.finish(session, slot).await?,
        };
    }
    session.close(COURTESY).await;
    Ok(())
}

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
    /// Locks also what a panicking thread left: the data are plain numbers.
    fn chunks(&self) -> MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn total(&self) -> u64 {
        self.job.rows * self.tables.len() as u64
    }

    async fn open(&self, job: u32) -> Result<Session> {
        let mut session = open(&self.liveness).await?;
        claim(&mut session, &self.liveness.target.database, job).await?;
        Ok(session)
    }

    /// Fills a chunk, again if the server gave other connections the right of way: deleting the
    /// rests of an interrupted fill locks the seams to the neighbouring chunks too.
    async fn fill(&self, mut session: Session, job: u32, chunk: Chunk) -> Result<Session> {
        let Unfinished { number, mut begun } = self.tables[chunk.slot];
        let mut attempt = 1;
        loop {
            let waits = self.liveness.waits(&session);
            match self.try_fill(session, number, chunk, begun).await {
                Ok(session) => {
                    self.filled.fetch_add(chunk.rows(), Ordering::Relaxed);
                    return Ok(session);
                }
                Err(trouble) if trouble.conflict && attempt < ATTEMPTS => {}
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

    /// Fills a chunk in one transaction. Of one that was begun, what is there whole stays, and the
    /// rests of a broken one go.
    async fn try_fill(
        &self,
        mut session: Session,
        table: u32,
        Chunk { first, last, .. }: Chunk,
        begun: bool,
    ) -> std::result::Result<Session, Trouble> {
        let Job { schema, data_seed, rows, .. } = self.job;
        let wanted = last - first + 1;
        if begun {
            let named = quoted(&schema.name(table));
            let range = format!("WHERE id BETWEEN {first} AND {last}");
            // The index on k holds the ids too, and a scan of all of it might look cheaper.
            let sql = format!("SELECT COUNT(*) FROM {named} FORCE INDEX (PRIMARY) {range}");
            let count = number(&mut session, &sql).await?;
            if count == wanted {
                self.found.fetch_add(count, Ordering::Relaxed);
                return Ok(session);
            }
            if count > 0 {
                session.execute(&format!("DELETE FROM {named} {range}")).await?;
            }
        }
        let rows = Filler::new(schema, data_seed, table, rows)
            .expect("tables that stay empty are not filled");
        if self.method == Method::LoadData {
            let lines = text::lines(rows, first, last, self.packet, |_, _| {});
            let sql = text::load_data(schema, table, "latin1");
            let (mut session, affected) = session.load_data(&sql, lines).await?;
            // LOCAL turns errors in the data and duplicate ids into warnings.
            complete(&mut session, affected, wanted).await?;
            return Ok(session);
        }
        session.execute("START TRANSACTION").await?;
        let (head, room) = text::insert(&rows, table, self.packet);
        let (mut sql, mut next) = (Vec::with_capacity(room), first);
        while next <= last {
            sql.clear();
            let after = text::extended(&mut sql, &head, rows, next, last, room);
            let affected = session.run_bytes(&sql).await?.affected;
            complete(&mut session, affected, after - next).await?;
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
            let sql = format!(
                "SELECT 1 FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
                 AND TABLE_NAME = '{name}' AND INDEX_NAME = '{}'",
                index.name
            );
            let there = table.begun && one(&mut session, &sql).await.doing(&at)?.is_some();
            if !there {
                self.indexing.fetch_add(1, Ordering::Relaxed);
                session.execute(&index.sql).await.doing(&at)?;
                self.indexing.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let (at, named) = (format!("finishing {name}"), quoted(&name));
        // In one statement, so that the server scans the smallest index.
        let sql = format!("SELECT COUNT(*), MIN(id), MAX(id) FROM {named}");
        let counted = rows::<3>(&mut session, &sql).await.doing(&at)?;
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

    fn shown(&self, rows: u64, throughput: &Throughput, began: Instant) -> String {
        let beside = match self.indexing.load(Ordering::Relaxed) {
            0 => String::new(),
            n => format!("; building {n} indexes"),
        };
        if rows < self.total() {
            return format!("filling: {}{beside}", throughput.text("rows"));
        }
        let (finished, tables) = (self.finished.load(Ordering::Relaxed), self.tables.len());
        let seconds = began.elapsed().as_secs();
        format!("filled; {finished} of {tables} tables ready, {seconds} s{beside}")
    }

    fn verdict(&self, stop: &Stop) -> Result<()> {
        let (finished, tables) = (self.finished.load(Ordering::Relaxed), self.tables.len());
        if finished == tables as u64 {
            return Ok(());
        }
        let filled = self.filled.load(Ordering::Relaxed);
        let so_far = format!("{} of {} rows", short(filled as f64), short(self.total() as f64));
        let error = match stop.asked() {
            Some(kind) => Error::new(kind, format!("interrupted after {so_far}")),
            None => Error::failed(format!("{finished} of {tables} tables are finished, {so_far}")),
        };
        Err(error.hint(AGAIN))
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
