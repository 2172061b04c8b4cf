//! Fills the tables over several connections, each with its own thread. Chunks of ids, each one transaction,
//! are dealt out one at a time: memory does not grow with the rows, and an interruption costs a chunk.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;

use super::connect::{AGAIN, Doing, give_up, lock_connection, open};
use crate::engine::per_s;
use crate::error::{Error, Result};
use crate::mysql::{Failure, Infile, Liveness, Session, Threads, number, optional, rows};
use crate::plan::experiment::{Dataset, Method};
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop, locked};
use crate::terms::{counted, units};
use crate::workload::{Filler, Mark, Schema, quoted};

/// Attempts at a chunk before a conflict with other connections counts as an error.
const ATTEMPTS: u32 = 10;
const DUPLICATE_INDEX: u16 = 1061;
/// Wait before another attempt, multiplied by the attempts so far.
const BREATH: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filled {
    pub tables: u32,
    /// Tables that this call filled or completed, or made where they stay empty.
    pub filled: u32,
    pub rows: u64,
    pub found: u64,
    /// Method of the fill; None if all tables were finished before.
    pub method: Option<Method>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) method: Method,
    /// Upper limit on connections of one table.
    pub(super) crowd: u32,
    /// Reason for this method, or a hint for a faster one.
    pub(super) why: Option<String>,
}

/// Makes the mark of a finished table. Without random bits it has no identity, and verify cannot judge it.
pub(super) fn ready_mark(seed: u32, rows: u64) -> Mark {
    Mark::ready(seed, rows, getrandom::u32().ok())
}

pub(super) struct Filling {
    pub(super) server: Arc<Liveness>,
    pub(super) job: Dataset,
    /// Table numbers, and whether an interrupted fill left rows in them; a chunk's slot is an index here.
    pub(super) tables: Vec<(u32, bool)>,
    pub(super) choice: Choice,
    pub(super) jobs: u32,
    /// Largest packet that both ends take, bytes.
    pub(super) packet: usize,
    pub(super) chunks: Mutex<Chunks>,
    pub(super) so_far: Mutex<SoFar>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SoFar {
    /// Rows in the tables, in whole chunks.
    filled: u64,
    /// Those that an interrupted fill had left.
    found: u64,
    indexing: u32,
    /// Tables whose rows are counted.
    counting: u32,
    begun: u32,
    finished: usize,
}

/// Fills, indexes and marks the tables. The session `lock` keeps a second prepare out.
pub(super) async fn fill(of: Filling, lock: Session, progress: &mut Progress) -> Result<Filled> {
    let filling = Arc::new(of);
    let Choice { method, why, .. } = &filling.choice;
    let why = why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    let connections = counted(filling.jobs, "connection");
    progress.note(&format!("filling by {method} over {connections}{why}"));
    let (count, halt, liveness) = (filling.jobs as usize, &Stop::default(), &*filling.server);
    let threads = Threads { name: "fill", count, halt, liveness, again: AGAIN };
    let (began, mut rows_after) = (Instant::now(), None);
    let mut throughput = Throughput::new(filling.total(), began);
    progress.restart();
    let look = || {
        let so_far = *locked(&filling.so_far);
        throughput.at(Instant::now(), so_far.filled);
        if so_far.filled == filling.total() {
            rows_after.get_or_insert_with(|| began.elapsed());
        }
        progress.update(|| filling.progress_line(so_far, &throughput, began));
    };
    let theirs = Arc::clone(&filling);
    let done = threads.run(move || work(Arc::clone(&theirs)), look).await;
    if let Err(error) = done.and_then(|()| filling.verdict()) {
        give_up(lock, &filling.server.link.target.database).await;
        return Err(error);
    }
    lock.close(COURTESY).await;
    let (elapsed, found) = (began.elapsed(), locked(&filling.so_far).found);
    let (tables, rows) = (filling.tables.len() as u32, filling.total() - found);
    let (each, seconds) = (units::count(filling.job.rows), elapsed.as_secs_f64());
    let mut closing = format!("{} of {each} rows in {seconds:.1} s", counted(tables, "table"));
    if rows > 0 {
        let of_rows = short_rate(per_s(rows, rows_after.unwrap_or(elapsed).as_secs_f64()));
        let all = short_rate(per_s(rows, seconds));
        closing += &format!(" by {method}: {of_rows} rows/s, {all} rows/s with the indexes");
    }
    if found > 0 {
        closing += &format!("; {} rows were there before", short(found as f64));
    }
    progress.clear();
    progress.note(&closing);
    let method = Some(*method);
    Ok(Filled { tables: filling.job.tables, filled: tables, rows, found, method })
}

/// Works until nothing is left. Dropping the future drops its connection: the server rolls back.
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
        lock_connection(&mut session, &self.server.link.target.database, job).await?;
        Ok(session)
    }

    /// Again if the server preferred others: deleting an interrupted fill's rests locks the next chunks' edges, too.
    async fn fill(&self, mut session: Session, job: u32, chunk: Chunk) -> Result<Session> {
        let (number, mut begun) = self.tables[chunk.slot];
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
            // The old session is dropped with its statement, and the server rolls back.
            session = self.open(job).await?;
        }
    }

    /// Fills a chunk in one transaction. Keeps a complete chunk, and deletes the rest of a broken one.
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
            // The server might choose a full scan of the index on k.
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
            let lines = lines(rows, first, last, self.packet, |_, _| {});
            let sql = load_data(*schema, table, "latin1");
            let (mut session, affected) = session.load_data(&sql, lines).await.doing(at)?;
            // LOCAL turns errors in the data and duplicate ids into warnings.
            complete(&mut session, affected, chunk.rows(), at).await?;
            return Ok(session);
        }
        session.execute("START TRANSACTION").await.doing(at)?;
        let (head, room) = insert(&rows, table, self.packet);
        let (mut sql, mut next) = (Vec::with_capacity(room), first);
        while next <= last {
            sql.clear();
            let after = extended(&mut sql, &head, rows, next, last, room);
            let affected = session.execute(&sql).await.doing(at)?;
            complete(&mut session, affected, after - next, at).await?;
            next = after;
        }
        session.execute("COMMIT").await.doing(at)?;
        Ok(session)
    }

    async fn finish(&self, mut session: Session, (table, begun): (u32, bool)) -> Result<Session> {
        let _waits = self.server.waits(&session);
        let Dataset { schema, data_seed, rows: count, .. } = self.job;
        let (name, named) = (schema.name(table), quoted(&schema.name(table)));
        if let Some(sql) = schema.index(table) {
            locked(&self.so_far).indexing += 1;
            match session.execute(&sql).await {
                Err(Failure::Server { code: DUPLICATE_INDEX, .. }) if begun => {}
                built => drop(built.doing(&format!("building the index of {name}"))?),
            }
            locked(&self.so_far).indexing -= 1;
        }
        let at = format!("finishing {name}");
        // The server scans the smallest index, which is the one on k. But that is newer than the transactions of other
        // connections: it would look each entry up in the primary key, which takes minutes of random reads. With one
        // table no other connection fills by then.
        let hint = if self.tables.len() > 1 { " FORCE INDEX (PRIMARY)" } else { "" };
        let sql = format!("SELECT COUNT(*), MIN(id), MAX(id) FROM {named}{hint}");
        locked(&self.so_far).counting += 1;
        let row = rows::<3>(&mut session, &sql).await.doing(&at)?.pop().unwrap_or_default();
        locked(&self.so_far).counting -= 1;
        self.check(&name, row.map(|text| text.unwrap_or_else(|| "none".to_owned())))?;
        let mark = ready_mark(data_seed, count);
        let sql = format!("ALTER TABLE {named} COMMENT = '{mark}'");
        session.execute(&sql).await.doing(&at)?;
        // MySQL 5.6 and later report the size of the empty table until then.
        let sql = format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {named}");
        optional(session.query(&sql).await).doing(&at)?;
        locked(&self.so_far).finished += 1;
        Ok(session)
    }

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

    fn progress_line(&self, so_far: SoFar, throughput: &Throughput, began: Instant) -> String {
        let SoFar { filled, indexing, counting, finished, .. } = so_far;
        let mut beside = String::new();
        if indexing > 0 {
            beside += &format!("; building the index of {}", counted(indexing, "table"));
        }
        if counting > 0 {
            beside += &format!("; counting the rows of {}", counted(counting, "table"));
        }
        if filled < self.total() {
            return format!("filling: {}{beside}", throughput.text("rows", !beside.is_empty()));
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

async fn complete(session: &mut Session, affected: u64, rows: u64, at: &str) -> Result<()> {
    if affected == rows && session.warnings() == 0 {
        return Ok(());
    }
    // The connection may be lost: then the reason is missing.
    let warnings = session.query("SHOW WARNINGS LIMIT 1").await.unwrap_or_default();
    let warning = warnings.into_iter().flatten().nth(2).flatten();
    let why = warning.map_or_else(String::new, |text| format!(": {text}"));
    Err(Error::failed(format!("{at}: the server took {affected} of {rows} rows{why}"))
        .hint("does something else write to these tables?")
        .hint(AGAIN))
}

/// Upper limit on the rows of a chunk: below the transaction limits of Galera (131,072 rows in old versions)
/// and Group Replication (150 MB), and about half a second of one connection.
const ROWS_MAX: u64 = 100_000;
/// Lower limit on the rows of a chunk: below it round trips and commits cost too much.
const ROWS_MIN: u64 = 5_000;
/// Chunks for each connection, so that all end at about the same time.
const CHUNKS_A_JOB: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chunk {
    /// Index of its table in the list given to [`Chunks`].
    slot: usize,
    first: u64,
    last: u64,
}

impl Chunk {
    fn rows(&self) -> u64 {
        self.last - self.first + 1
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Fill(Chunk),
    /// All rows of this table are in: index, check and mark it.
    Finish(usize),
}

pub(super) fn chunk_rows(tables: u64, rows: u64, jobs: u64) -> u64 {
    (tables * rows / (jobs * CHUNKS_A_JOB)).clamp(ROWS_MIN, ROWS_MAX)
}

struct Begun {
    slot: usize,
    given: u64,
    /// Chunks that are dealt out and not done, one a connection.
    open: u32,
}

/// Assigns chunks to connections. A connection stays with its table (ids in order, pages still cached for the
/// index), then takes a fresh table, then helps with another.
pub(super) struct Chunks {
    tables: usize,
    rows: u64,
    chunk_rows: u64,
    crowd: u32,
    fresh: usize,
    /// At most one a connection.
    begun: Vec<Begun>,
}

impl Chunks {
    pub(super) fn new(tables: usize, rows: u64, chunk_rows: u64, crowd: u32) -> Chunks {
        Chunks { tables, rows, chunk_rows, crowd, fresh: 0, begun: Vec::new() }
    }

    /// Deals out work to a connection whose last chunk was of slot `mine`; None if it can do nothing more.
    fn next(&mut self, mine: Option<usize>) -> Option<Task> {
        let chunks = self.rows.div_ceil(self.chunk_rows);
        if let Some(at) = self.begun.iter().position(|it| it.open == 0 && it.given == chunks) {
            return Some(Task::Finish(self.begun.swap_remove(at).slot));
        }
        let room = |it: &&mut Begun| it.given < chunks && it.open < self.crowd;
        let table = match self.begun.iter_mut().filter(room).find(|it| Some(it.slot) == mine) {
            Some(own) => own,
            None if self.fresh < self.tables => {
                self.begun.push(Begun { slot: self.fresh, given: 0, open: 0 });
                self.fresh += 1;
                self.begun.last_mut()?
            }
            None => self.begun.iter_mut().filter(room).min_by_key(|it| it.open)?,
        };
        let first = table.given * self.chunk_rows + 1;
        table.given += 1;
        table.open += 1;
        let last = (first + self.chunk_rows - 1).min(self.rows);
        Some(Task::Fill(Chunk { slot: table.slot, first, last }))
    }

    fn done(&mut self, chunk: Chunk) {
        let table = self.begun.iter_mut().find(|it| it.slot == chunk.slot);
        table.expect("a table is begun while a chunk of it is open").open -= 1;
    }
}

/// Bytes of a packet of LOAD DATA: larger ones gain nothing, and every connection holds some.
const PACKET_MAX: usize = 128 * 1024;
/// Bytes of an INSERT, as in sysbench.
const INSERT_MAX: usize = 512 * 1024;

/// The lines are ASCII: latin1 converts to every character set without a check for multi-byte characters.
pub(super) fn load_data(schema: Schema, table: u32, charset: &str) -> String {
    format!(
        "LOAD DATA LOCAL INFILE 'loadgen' INTO TABLE {} CHARACTER SET {charset} \
         FIELDS TERMINATED BY '\t' ENCLOSED BY '' LINES TERMINATED BY '\n' ({})",
        quoted(&schema.name(table)),
        schema.columns().join(", ")
    )
}

/// Calls `sent` with the rows and bytes of each packet. `packet` is the server's max_allowed_packet.
pub(super) fn lines(
    rows: Filler,
    first: u64,
    last: u64,
    packet: usize,
    sent: impl Fn(u64, usize) + Send + 'static,
) -> Infile {
    let row_max = rows.row_max();
    let room = (packet / 2).clamp(row_max, PACKET_MAX);
    let mut next = first;
    let packets = std::iter::from_fn(move || {
        let from = next;
        let mut out = Vec::with_capacity(room);
        while next <= last && out.len() + row_max <= room {
            rows.line(&mut out, next);
            next += 1;
        }
        sent(next - from, out.len());
        (next > from).then(|| Ok(Bytes::from(out)))
    });
    futures_util::stream::iter(packets).boxed()
}

/// Begins the INSERTs of a table. Returns the longest size for this max_allowed_packet, too.
fn insert(rows: &Filler, table: u32, packet: usize) -> (String, usize) {
    let schema = rows.schema;
    let (named, columns) = (quoted(&schema.name(table)), schema.columns().join(", "));
    let head = format!("INSERT INTO {named} ({columns}) VALUES ");
    let room = (packet / 2).clamp(head.len() + rows.row_max(), INSERT_MAX);
    (head, room)
}

/// Writes one row or more, from `first` to `last`, below `bytes`; returns the next id. Ends where mysqldump's would.
pub(super) fn extended(
    out: &mut Vec<u8>,
    head: &str,
    rows: Filler,
    first: u64,
    last: u64,
    bytes: usize,
) -> u64 {
    let from = out.len();
    out.extend_from_slice(head.as_bytes());
    rows.tuple(out, first);
    let mut next = first + 1;
    while next <= last && out.len() - from < bytes {
        let before = out.len();
        out.push(b',');
        rows.tuple(out, next);
        if out.len() - from >= bytes {
            out.truncate(before);
            break;
        }
        next += 1;
    }
    next
}

const RECENT: Duration = Duration::from_secs(10);

pub(super) struct Throughput {
    total: u64,
    /// Instants and rows so far, oldest first.
    seen: VecDeque<(Instant, u64)>,
}

impl Throughput {
    pub(super) fn new(total: u64, now: Instant) -> Throughput {
        Throughput { total, seen: VecDeque::from([(now, 0)]) }
    }

    pub(super) fn at(&mut self, now: Instant, rows: u64) {
        self.seen.push_back((now, rows));
        while self.seen.len() > 2 && now.duration_since(self.seen[1].0) >= RECENT {
            self.seen.pop_front();
        }
    }

    /// Describes progress: `1.23M of 1.60M rows (76 %), 212k rows/s, 2 s left`. Without the rate if there is none while
    /// all connections do `other` work.
    pub(super) fn text(&self, what: &str, other: bool) -> String {
        let ends = self.seen.front().zip(self.seen.back());
        let ((begin, from), (end, rows)) = ends.expect("it begins with one");
        let rate = per_s(rows.saturating_sub(*from), end.duration_since(*begin).as_secs_f64());
        let percent = (*rows as f64 / self.total.max(1) as f64 * 100.0).floor();
        let left = match self.total.saturating_sub(*rows) {
            0 => String::new(),
            missing if rate > 0.0 => format!(", {} left", span(missing as f64 / rate)),
            _ => ", standing still".to_owned(),
        };
        let (rows, total) = (short(*rows as f64), short(self.total as f64));
        let so_far = format!("{rows} of {total} {what} ({percent} %)");
        if other && rate <= 0.0 {
            return so_far;
        }
        format!("{so_far}, {} {what}/s{left}", short_rate(rate))
    }
}

/// Formats three digits: `999`, `1.23M`, `45.6k`.
pub(super) fn short(n: f64) -> String {
    for (unit, size) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        // A number that rounds to 1000 belongs to the next unit.
        if n >= size * 0.9995 {
            let value = n / size;
            let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
            return format!("{value:.decimals$}{unit}");
        }
    }
    format!("{n:.0}")
}

/// Formats a rate with three digits: `0.450`, `7.00`, `45.6k`.
pub(super) fn short_rate(per_s: f64) -> String {
    if per_s < 999.5 { units::rate(per_s) } else { short(per_s) }
}

fn span(seconds: f64) -> String {
    match seconds {
        ..99.5 => format!("{seconds:.0} s"),
        ..5970.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod chunk_tests {
    use super::*;
    use crate::workload::table::{ROWS_MAX as TABLE_ROWS_MAX, TABLES_MAX};

    /// Deals chunks out to connections that each finish their task in turn.
    fn play(chunks: &mut Chunks, jobs: usize) -> Vec<Task> {
        let mut at: Vec<Option<Task>> = vec![None; jobs];
        let mut mine = vec![None; jobs];
        let mut log = Vec::new();
        loop {
            let mut idle = true;
            for job in 0..jobs {
                if let Some(Task::Fill(chunk)) = at[job].take() {
                    mine[job] = Some(chunk.slot);
                    chunks.done(chunk);
                }
                at[job] = chunks.next(mine[job]);
                log.extend(at[job]);
                idle &= at[job].is_none();
            }
            if idle {
                return log;
            }
        }
    }

    fn check_complete(log: &[Task], tables: usize, rows: u64) {
        for table in 0..tables {
            let mut chunks: Vec<Chunk> = log
                .iter()
                .filter_map(|t| match t {
                    Task::Fill(c) if c.slot == table => Some(*c),
                    _ => None,
                })
                .collect();
            chunks.sort_by_key(|c| c.first);
            let mut next = 1;
            for chunk in chunks {
                assert_eq!(chunk.first, next, "no gap and no overlap");
                next = chunk.last + 1;
            }
            assert_eq!(next, rows + 1);
            let at = |wanted: &Task| log.iter().filter(|t| *t == wanted).count();
            assert_eq!(at(&Task::Finish(table)), 1);
        }
    }

    #[test]
    fn every_row_is_filled_once_and_every_table_finished_once() {
        for tables in [1, 2, 3, 8] {
            for jobs in [1, 2, 3, 5, 16] {
                for rows in [1, 9, 10, 11, 100, 101] {
                    for crowd in [1, 2, u32::MAX] {
                        let mut chunks = Chunks::new(tables, rows, 10, crowd);
                        check_complete(&play(&mut chunks, jobs), tables, rows);
                    }
                }
            }
        }
    }

    #[test]
    fn connections_spread_over_tables_and_keep_to_theirs() {
        let mut chunks = Chunks::new(4, 100, 10, u32::MAX);
        let tasks: Vec<_> = (0..6).filter_map(|_| chunks.next(None)).collect();
        let slots: Vec<usize> =
            tasks.iter().map(|t| if let Task::Fill(c) = t { c.slot } else { 99 }).collect();
        assert_eq!(slots[..4], [0, 1, 2, 3]);
        assert_ne!(slots[4], slots[5], "helpers spread too");
        let Some(Task::Fill(chunk)) = chunks.next(Some(2)) else { panic!("there is work") };
        assert_eq!(chunk.slot, 2);
    }

    #[test]
    fn no_more_connections_than_allowed_meet_in_a_table() {
        let mut chunks = Chunks::new(2, 1000, 10, 2);
        let given = (0..9).filter_map(|_| chunks.next(None)).count();
        assert_eq!(given, 4);
    }

    #[test]
    fn the_index_comes_before_other_tables_and_after_the_last_open_chunk() {
        let mut chunks = Chunks::new(2, 20, 10, u32::MAX);
        let (Some(Task::Fill(a)), Some(Task::Fill(other))) = (chunks.next(None), chunks.next(None))
        else {
            panic!("two tables")
        };
        let Some(Task::Fill(b)) = chunks.next(Some(a.slot)) else { panic!("a second chunk") };
        assert_eq!(b.slot, a.slot);
        chunks.done(b);
        assert!(!matches!(chunks.next(Some(other.slot)), Some(Task::Finish(_))), "a is open");
        chunks.done(a);
        assert_eq!(chunks.next(Some(a.slot)), Some(Task::Finish(a.slot)));
    }

    #[test]
    fn ten_billion_rows_in_every_table_take_no_memory() {
        let tables = u64::from(TABLES_MAX);
        let chunk = chunk_rows(tables, TABLE_ROWS_MAX, 16);
        assert_eq!(chunk, ROWS_MAX);
        let mut chunks = Chunks::new(TABLES_MAX as usize, TABLE_ROWS_MAX, chunk, 1);
        let mut last = 0;
        for _ in 0..TABLE_ROWS_MAX.div_ceil(chunk) {
            let Some(Task::Fill(c)) = chunks.next(Some(0)) else { panic!("more chunks") };
            last = c.last;
            chunks.done(c);
        }
        assert_eq!(last, TABLE_ROWS_MAX);
        assert_eq!(chunks.next(Some(0)), Some(Task::Finish(0)));
        assert!(matches!(chunks.next(Some(0)), Some(Task::Fill(c)) if c.slot == 1));
    }

    #[test]
    fn chunks_shrink_so_that_every_connection_has_work() {
        assert_eq!(chunk_rows(8, 200_000, 4), 50_000);
        assert_eq!(chunk_rows(1, 200_000, 4), 6_250);
        assert_eq!(chunk_rows(1, 10_000, 4), 5_000);
        assert_eq!(chunk_rows(1, 1, 1), ROWS_MIN);
    }
}

#[cfg(test)]
mod text_tests {
    use super::*;
    use crate::workload::rows::Rows;
    use futures_util::FutureExt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).expect("ASCII")
    }

    fn all(infile: Infile) -> Vec<Bytes> {
        infile
            .map(|packet| packet.expect("the stream never fails: the server would keep a part"))
            .collect()
            .now_or_never()
            .expect("never waits")
    }

    #[test]
    fn lines_hold_every_row_in_order_in_packets_of_bounded_size() {
        let rows = Rows::new(1, 1, 3000);
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let count = move |n, _| {
            counted.fetch_add(n, Ordering::Relaxed);
        };
        let packets = all(lines(Filler::sbtest(rows), 11, 3000, 1 << 30, count));
        assert!(packets.len() > 1 && packets.iter().all(|p| p.len() <= PACKET_MAX));
        assert_eq!(sent.load(Ordering::Relaxed), 2990);
        let whole = packets.concat();
        for (line, id) in text(&whole).lines().zip(11..) {
            let row = rows.row(id);
            let expected = format!("{id}\t{}\t{}\t{}", row.k, text(&row.c), text(&row.pad));
            assert_eq!(line, expected);
        }
        assert_eq!(text(&whole).lines().count(), 2990);
    }

    #[test]
    fn extended_inserts_hold_every_row_once_below_their_length() {
        let rows = Rows::new(1, 1, 1000);
        for bytes in [0, 1024, 10_000, 1 << 20] {
            let (mut next, mut values, mut statements) = (1, 0, 0);
            while next <= 1000 {
                let mut out = b"before".to_vec();
                let after = extended(
                    &mut out,
                    "INSERT INTO t VALUES ",
                    Filler::sbtest(rows),
                    next,
                    1000,
                    bytes,
                );
                let sql = text(&out).strip_prefix("before").expect("appended");
                assert!(
                    sql.starts_with(&format!("INSERT INTO t VALUES ({next},"))
                        && sql.ends_with(')')
                );
                assert!(sql.len() < bytes || after == next + 1, "{} bytes", sql.len());
                // The next row would not have fitted: a row has 200 bytes at most.
                assert!(after == 1001 || bytes == 0 || sql.len() + 200 >= bytes);
                values += sql.matches("),(").count() as u64 + 1;
                (next, statements) = (after, statements + 1);
            }
            assert_eq!((values, bytes == 0), (1000, statements == 1000));
        }
    }

    #[test]
    fn small_packets_of_a_server_are_kept() {
        let rows = Rows::new(1, 1, 100);
        let largest = Rows::new(1, 1, 10_000_000_000);
        // The smallest max_allowed_packet that a server takes.
        for packet in [1024, 4096] {
            let packets = all(lines(Filler::sbtest(rows), 1, 100, packet, |_, _| {}));
            assert!(packets.iter().all(|p| p.len() < packet));
            for (rows, first) in [(rows, 1), (largest, 10_000_000_000)] {
                let (head, room) = insert(&Filler::sbtest(rows), 2, packet);
                assert_eq!(head, "INSERT INTO `sbtest2` (id, k, c, pad) VALUES ");
                let mut sql = Vec::new();
                let next = extended(&mut sql, &head, Filler::sbtest(rows), first, first + 99, room);
                assert!(sql.len() < packet && next > first);
            }
        }
    }
}

#[cfg(test)]
mod throughput_tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (n, text) in [
            (0.0, "0"),
            (7.0, "7"),
            (999.0, "999"),
            (999.6, "1.00k"),
            (1000.0, "1.00k"),
            (9994.0, "9.99k"),
            (9996.0, "10.0k"),
            (212_345.0, "212k"),
            (999_900.0, "1.00M"),
            (1_600_000.0, "1.60M"),
            (1e10, "10.0G"),
        ] {
            assert_eq!(short(n), text, "{n}");
        }
        for (per_s, text) in
            [(0.0, "0"), (0.45, "0.450"), (7.0, "7.00"), (999.4, "999"), (999.6, "1.00k")]
        {
            assert_eq!(short_rate(per_s), text, "{per_s}");
        }
        assert_eq!(span(2.0), "2 s");
        assert_eq!(span(600.0), "10 min");
        assert_eq!(span(50_000.0), "13.9 h");
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let start = Instant::now();
        let mut throughput = Throughput::new(100_000, start);
        for second in 1..=20 {
            // 100 rows a second at first, 1000 from the tenth on.
            let rows = if second <= 10 { second * 100 } else { 1000 + (second - 10) * 1000 };
            throughput.at(start + Duration::from_secs(second), rows);
        }
        assert_eq!(
            throughput.text("rows", false),
            "11.0k of 100k rows (11 %), 1.00k rows/s, 89 s left"
        );
        assert!(throughput.seen.len() <= 12);
        throughput.at(start + Duration::from_secs(21), 100_000);
        assert!(
            throughput.text("rows", false).starts_with("100k of 100k rows (100 %)"),
            "{}",
            throughput.text("rows", false)
        );
        assert!(!throughput.text("rows", false).contains("left"));
    }

    #[test]
    fn a_rate_of_nothing_yet_is_no_division_by_zero() {
        let throughput = Throughput::new(10, Instant::now());
        assert_eq!(throughput.text("rows", false), "0 of 10 rows (0 %), 0 rows/s, standing still");
        assert_eq!(throughput.text("rows", true), "0 of 10 rows (0 %)");
    }
}
