//! Fills the tables over several connections, each with a thread of its own.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::chunks::{Chunk, Chunks, Task};
use super::connect::{AGAIN, Doing, claim, give_up, open};
use super::throughput::{Throughput, rate, short};
use super::{Choice, Prepared, ready_mark, text};
use crate::error::{Error, Result};
use crate::mysql::{Failure, Liveness, Session, Threads, number, optional, rows};
use crate::plan::experiment::{Dataset, Method};
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop, locked};
use crate::terms::{counted, units};
use crate::workload::{Filler, quoted};

/// Attempts at a chunk before a conflict with other connections counts as an error.
const ATTEMPTS: u32 = 10;
/// The server's number for an index of a name that is taken.
const DUPLICATE_INDEX: u16 = 1061;
/// The wait before a further attempt, times the attempts so far.
const BREATH: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy)]
pub(super) struct Unfinished {
    pub(super) number: u32,
    /// Whether an interrupted fill left rows in it.
    pub(super) begun: bool,
}

/// Tables that are there, of which some have no rows yet, or not all.
pub(super) struct Filling {
    pub(super) server: Arc<Liveness>,
    pub(super) job: Dataset,
    /// The chunks' slots are places in here.
    pub(super) tables: Vec<Unfinished>,
    pub(super) choice: Choice,
    pub(super) jobs: u32,
    /// The largest packet that both ends take, bytes.
    pub(super) packet: usize,
    pub(super) chunks: Mutex<Chunks>,
    pub(super) so_far: Mutex<SoFar>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SoFar {
    /// Rows in the tables, in whole chunks.
    filled: u64,
    /// Those of them that an interrupted fill had left.
    found: u64,
    /// Indexes that are being built.
    indexing: u32,
    /// Threads that have begun.
    begun: u32,
    finished: usize,
}

/// Fills, indexes and marks the tables. `control` holds the lock against a second prepare.
pub(super) async fn fill(
    filling: Filling,
    control: Session,
    progress: &mut Progress,
) -> Result<Prepared> {
    let filling = Arc::new(filling);
    let Choice { method, why, .. } = &filling.choice;
    let why = why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    let connections = counted(filling.jobs, "connection");
    progress.note(&format!("filling by {method} over {connections}{why}"));
    let threads = Threads {
        name: "fill",
        count: filling.jobs as usize,
        halt: &Stop::default(),
        liveness: &filling.server,
        again: AGAIN,
    };
    let (began, mut rows_after) = (Instant::now(), None);
    let mut throughput = Throughput::new(filling.total(), began);
    progress.restart();
    let look = || {
        let so_far = *locked(&filling.so_far);
        throughput.at(Instant::now(), so_far.filled);
        if so_far.filled == filling.total() {
            rows_after.get_or_insert_with(|| began.elapsed());
        }
        progress.update(|| filling.shown(so_far, &throughput, began));
    };
    let theirs = Arc::clone(&filling);
    let done = threads.run(move || work(Arc::clone(&theirs)), look).await;
    if let Err(error) = done.and_then(|()| filling.verdict()) {
        give_up(control, &filling.server.link.target.database).await;
        return Err(error);
    }
    control.close(COURTESY).await;
    let (elapsed, found) = (began.elapsed(), locked(&filling.so_far).found);
    let (tables, rows) = (filling.tables.len() as u32, filling.total() - found);
    let (each, seconds) = (units::count(filling.job.rows), elapsed.as_secs_f64());
    let mut closing = format!("{} of {each} rows in {seconds:.1} s", counted(tables, "table"));
    if rows > 0 {
        let of_rows = short(rate(rows, rows_after.unwrap_or(elapsed)));
        let all = short(rate(rows, elapsed));
        closing += &format!(" by {method}: {of_rows} rows/s, {all} rows/s with the indexes");
    }
    if found > 0 {
        closing += &format!("; {} rows were there before", short(found as f64));
    }
    progress.clear();
    progress.note(&closing);
    let method = Some(*method);
    Ok(Prepared { tables: filling.job.tables, filled: tables, rows, found, method })
}

/// Works until nothing is left. Whoever is dropped meanwhile drops the connection in the middle of a
/// statement, and the server rolls the chunk back.
async fn work(filling: Arc<Filling>) -> Result<()> {
    let job = {
        let mut so_far = locked(&filling.so_far);
        so_far.begun += 1;
        so_far.begun - 1
    };
    let mut session = filling.open(job).await?;
    let mut mine = None;
    loop {
        let Some(task) = locked(&filling.chunks).next(mine) else { break };
        session = match task {
            Task::Fill(chunk) => {
                let session = filling.fill(session, job, chunk).await?;
                locked(&filling.so_far).filled += chunk.rows();
                locked(&filling.chunks).done(chunk);
                mine = Some(chunk.slot);
                session
            }
            Task::Finish(slot) => filling.finish(session, filling.tables[slot]).await?,
        };
    }
    session.close(COURTESY).await;
    Ok(())
}

impl Filling {
    fn total(&self) -> u64 {
        self.job.rows * self.tables.len() as u64
    }

    async fn open(&self, job: u32) -> Result<Session> {
        let mut session = open(&self.server).await?;
        claim(&mut session, &self.server.link.target.database, job).await?;
        Ok(session)
    }

    /// Fills a chunk, again if the server gave other connections the right of way: deleting the
    /// rests of an interrupted fill locks the seams to the neighbouring chunks too.
    async fn fill(&self, mut session: Session, job: u32, chunk: Chunk) -> Result<Session> {
        let Unfinished { number, mut begun } = self.tables[chunk.slot];
        let (name, Chunk { first, last, .. }) = (self.job.schema.name(number), chunk);
        let at = format!("filling {name} (ids {first} to {last})");
        let mut attempt = 1;
        loop {
            let waits = self.server.waits(&session);
            match self.try_fill(session, number, chunk, begun, &at).await {
                Err(error) if error.may_pass() && attempt < ATTEMPTS => {}
                done => return done,
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
        chunk: Chunk,
        begun: bool,
        at: &str,
    ) -> Result<Session> {
        let (Dataset { schema, data_seed, rows, .. }, Chunk { first, last, .. }) =
            (&self.job, chunk);
        if begun {
            let named = quoted(&schema.name(table));
            let range = format!("WHERE id BETWEEN {first} AND {last}");
            // The index on k holds the ids too, and a scan of all of it might look cheaper.
            let sql = format!("SELECT COUNT(*) FROM {named} FORCE INDEX (PRIMARY) {range}");
            let count = number(&mut session, &sql).await.doing(at)?;
            if count == chunk.rows() {
                locked(&self.so_far).found += count;
                return Ok(session);
            }
            if count > 0 {
                session.execute(&format!("DELETE FROM {named} {range}")).await.doing(at)?;
            }
        }
        let rows = Filler::new(*schema, *data_seed, table, *rows);
        let rows = rows.expect("tables that stay empty are not filled");
        if self.choice.method == Method::LoadData {
            let lines = text::lines(rows, first, last, self.packet, |_, _| {});
            let sql = text::load_data(*schema, table, "latin1");
            let (mut session, affected) = session.load_data(&sql, lines).await.doing(at)?;
            // LOCAL turns errors in the data and duplicate ids into warnings.
            complete(&mut session, affected, chunk.rows(), at).await?;
            return Ok(session);
        }
        session.execute("START TRANSACTION").await.doing(at)?;
        let (head, room) = text::insert(&rows, table, self.packet);
        let (mut sql, mut next) = (Vec::with_capacity(room), first);
        while next <= last {
            sql.clear();
            let after = text::extended(&mut sql, &head, rows, next, last, room);
            let affected = session.run_text(&sql).await.doing(at)?.affected;
            complete(&mut session, affected, after - next, at).await?;
            next = after;
        }
        session.execute("COMMIT").await.doing(at)?;
        Ok(session)
    }

    /// Builds the index, counts, and makes the mark that says so.
    async fn finish(&self, mut session: Session, table: Unfinished) -> Result<Session> {
        let _waits = self.server.waits(&session);
        let Dataset { schema, data_seed, rows: count, .. } = self.job;
        let (name, named) = (schema.name(table.number), quoted(&schema.name(table.number)));
        if let Some(index) = schema.index(table.number) {
            locked(&self.so_far).indexing += 1;
            match session.execute(&index.sql).await {
                // An interrupted fill had built it.
                Err(Failure::Server { code: DUPLICATE_INDEX, .. }) if table.begun => {}
                built => drop(built.doing(&format!("building the index of {name}"))?),
            }
            locked(&self.so_far).indexing -= 1;
        }
        let at = format!("finishing {name}");
        // In one statement, so that the server scans the smallest index.
        let sql = format!("SELECT COUNT(*), MIN(id), MAX(id) FROM {named}");
        let row = rows::<3>(&mut session, &sql).await.doing(&at)?.pop().unwrap_or_default();
        self.check(&name, row.map(|text| text.unwrap_or_else(|| "none".to_owned())))?;
        let mark = ready_mark(data_seed, count);
        let sql = format!("ALTER TABLE {named} COMMENT = '{mark}'");
        session.execute(&sql).await.doing(&at)?;
        // Until then MySQL 5.6 and later tell the size that the table had while it was empty.
        let sql = format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {named}");
        optional(session.query(&sql).await).doing(&at)?;
        locked(&self.so_far).finished += 1;
        Ok(session)
    }

    /// Holds the count and the ends of the ids against what was sent.
    fn check(&self, name: &str, [count, first, last]: [String; 3]) -> Result<()> {
        let rows = self.job.rows.to_string();
        if [&*count, &*first, &*last] == [&*rows, "1", &*rows] {
            return Ok(());
        }
        let lacks = count.parse().is_ok_and(|count: u64| count < self.job.rows);
        Err(Error::data(format!(
            "{name} holds {count} rows (ids {first} to {last}), not {rows} (ids 1 to {rows}): \
             something else wrote to it"
        ))
        .hint(if lacks { AGAIN } else { "--force drops it and fills it again" }))
    }

    fn shown(&self, so_far: SoFar, throughput: &Throughput, began: Instant) -> String {
        let SoFar { filled, indexing, finished, .. } = so_far;
        let beside = match indexing {
            0 => String::new(),
            n => format!("; building {n} indexes"),
        };
        if filled < self.total() {
            return format!("filling: {}{beside}", throughput.text("rows"));
        }
        let (tables, seconds) = (self.tables.len(), began.elapsed().as_secs());
        format!("filled; {finished} of {tables} tables ready, {seconds} s{beside}")
    }

    fn verdict(&self) -> Result<()> {
        let SoFar { filled, finished, .. } = *locked(&self.so_far);
        let tables = self.tables.len();
        if finished == tables {
            return Ok(());
        }
        let so_far = format!("{} of {} rows", short(filled as f64), short(self.total() as f64));
        let error = match self.server.link.stop.asked() {
            Some(kind) => Error::new(kind, format!("interrupted after {so_far}")),
            None => Error::failed(format!("{finished} of {tables} tables are finished, {so_far}")),
        };
        Err(error.hint(AGAIN))
    }
}

/// Checks that the server took all rows as they were sent.
async fn complete(session: &mut Session, affected: u64, rows: u64, at: &str) -> Result<()> {
    if affected == rows && session.warnings() == 0 {
        return Ok(());
    }
    // The connection may be lost just now: then the reason is missing.
    let warnings = session.query("SHOW WARNINGS LIMIT 1").await.unwrap_or_default();
    let warning = warnings.into_iter().flatten().nth(2).flatten();
    let why = warning.map_or_else(String::new, |text| format!(": {text}"));
    Err(Error::failed(format!("{at}: the server took {affected} of {rows} rows{why}"))
        .hint("does something else write to these tables?")
        .hint(AGAIN))
}
