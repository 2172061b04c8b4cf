//! Reads every row of some tables, over several connections.
//!
//! The rows that prepare filled are read in chunks of ids, the others of a table in one piece.
//! No snapshot would span connections: instead the server counts and sums before and after, and
//! a table that changed meanwhile is not judged; it is not even read if it changes before that. They
//! count by each index, and the indexes must agree.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::table::{Count, Index, Table};
use super::verdict::{Finding, Found};
use crate::error::{Error, Result, VALUE_MAX, clip};
use crate::mysql::{
    Asked, Failure, LOST, Liveness, Session, Threads, impatient, number, one, optional, rows,
};
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop, locked};
use crate::terms::{counted, units};
use crate::workload::table::quoted;

const JOBS_MAX: usize = 16;

const CHUNK: std::ops::RangeInclusive<u64> = 10_000..=1_000_000;

/// What is known of a table, as far as it was read.
#[derive(Debug, Clone, Default)]
struct Seen {
    found: Found,
    /// The server's counts, before the rows were read.
    counts: Counts,
    /// The greatest id of those that prepare filled: a mark may speak of any number of rows.
    last: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Task {
    slot: usize,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Count,
    /// Rows of these ids are read.
    Rows(u64, u64),
    /// Rows of the ids that prepare filled none with are read.
    Others,
    /// Counts again, and looks once more where they disagree.
    Settle,
}

/// Cuts the ids that prepare filled, given by table, into chunks for so many connections.
fn chunks(tables: &[(usize, u64)], jobs: usize) -> Vec<Task> {
    let all: u64 = tables.iter().map(|(_, last)| last).sum();
    let chunk = (all / (jobs as u64 * 8)).clamp(*CHUNK.start(), *CHUNK.end());
    let rows = |&(slot, last): &(usize, u64)| {
        let firsts = (0..last.div_ceil(chunk)).map(move |number| number * chunk + 1);
        let ids = firsts.map(move |first| What::Rows(first, last.min(first + chunk - 1)));
        ids.chain([What::Others]).map(move |what| Task { slot, what })
    };
    tables.iter().flat_map(rows).collect()
}

struct Reading {
    server: Arc<Liveness>,
    tables: Arc<Vec<Table>>,
    tasks: Mutex<VecDeque<Task>>,
    seen: Mutex<Vec<Seen>>,
    read: AtomicU64,
}

/// Reads the tables that are ready; returns what is found in each table, in order.
pub(super) async fn read(
    server: &Arc<Liveness>,
    tables: &Arc<Vec<Table>>,
    progress: &mut Progress,
) -> Result<Vec<Found>> {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let jobs = (2 * cores).min(JOBS_MAX);
    let reading = Arc::new(Reading {
        server: Arc::clone(server),
        tables: Arc::clone(tables),
        tasks: Mutex::default(),
        seen: Mutex::new(vec![Seen::default(); tables.len()]),
        read: AtomicU64::new(0),
    });
    let phases: [(&str, &str, Option<What>); 3] = [
        ("the server counts and sums", "tables", Some(What::Count)),
        ("reading", "chunks", None),
        ("the server counts and sums again", "tables", Some(What::Settle)),
    ];
    for (doing, pieces, what) in phases {
        // Of a table of which something was found nothing more is asked.
        let still: Vec<(usize, u64)> = locked(&reading.seen)
            .iter()
            .enumerate()
            .filter(|(slot, seen)| tables[*slot].is_ready() && seen.found.finding.is_none())
            .map(|(slot, seen)| (slot, seen.last))
            .collect();
        let whole = |what| still.iter().map(|(slot, _)| Task { slot: *slot, what }).collect();
        let tasks = what.map_or_else(|| chunks(&still, jobs), whole);
        let threads = Threads {
            name: "verify",
            count: jobs.min(tasks.len()),
            halt: &Stop::default(),
            liveness: server,
            again: "give the same command again",
        };
        *locked(&reading.tasks) = tasks.into();
        progress.restart();
        let look = || {
            progress.update(|| {
                let rows = match reading.read.load(Ordering::Relaxed) {
                    0 => String::new(),
                    rows => format!("{} rows, ", units::count(rows)),
                };
                format!("{doing}: {rows}{} {pieces} wait", locked(&reading.tasks).len())
            });
        };
        let theirs = Arc::clone(&reading);
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
        let Some(task) = locked(&reading.tasks).pop_front() else { break };
        match reading.one(&mut session, task).await {
            Ok(()) => {}
            Err(Ended::Found(finding)) => {
                locked(&reading.seen)[task.slot].found.finding = Some(finding);
            }
            Err(Ended::Failed(failure)) => {
                let name = &reading.tables[task.slot].name;
                return Err(explain(&failure, &format!("reading {name}")));
            }
        }
    }
    drop(waits);
    session.close(COURTESY).await;
    Ok(())
}

/// Opens a session that sees what is committed, and nothing of what others do while a statement runs.
async fn open(server: &Liveness) -> Result<Session> {
    let mut session = Session::open(&server.link, None).await?;
    let failed = |f: Failure| explain(&f, "setting up a connection");
    let isolation = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    session.execute(isolation).await.map_err(failed)?;
    impatient(&mut session).await.map_err(failed)?;
    Ok(session)
}

fn explain(failure: &Failure, doing: &str) -> Error {
    match failure {
        Failure::Lost(_) => Error::server(format!("{doing}: {failure}")).hint(LOST),
        Failure::Server { .. } => Error::failed(format!("{doing}: {failure}"))
            .hint("verify needs SELECT on the tables, and a server that can read them"),
    }
}

/// Writes transactions of before the server's start that are open still.
pub(super) fn still_open(n: u64) -> String {
    format!("{} of before the server's start still open", counted(n, "transaction"))
}

impl Reading {
    async fn one(&self, session: &mut Session, Task { slot, what }: Task) -> Result<(), Ended> {
        let table = &self.tables[slot];
        let (range, k_start) = match what {
            What::Count => {
                snapshot(session).await?;
                let counts = Counts::take(session, table).await?;
                session.execute("COMMIT").await?;
                let sql = format!("SELECT MAX(id) FROM {}", quoted(&table.name));
                let last = whole("MAX(id)", one(session, &sql).await?)?;
                let last = last.clamp(0, table.mark.rows.into()) as u64;
                self.unchanged(session, table, &counts).await?;
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
        let mut found = Found { k_start, ..Found::default() };
        table.read(session, &range, &self.read, &mut found).await?;
        locked(&self.seen)[slot].found.add(&found);
        Ok(())
    }

    /// Looks once more at a table of which an index, or what was read, disagrees with the server's
    /// own count of its rows. What was read in pieces is read again in one: between two of them a row
    /// may have lost what another one gained.
    async fn settle(&self, session: &mut Session, slot: usize) -> Result<(), Ended> {
        let (table, Seen { mut found, counts: before, .. }) =
            (&self.tables[slot], locked(&self.seen)[slot].clone());
        self.unchanged(session, table, &before).await?;
        if before.torn(&found.count()).is_none() {
            return Ok(());
        }
        snapshot(session).await?;
        let counts = Counts::take(session, table).await?;
        if !counts.rows().agrees(&found.count()) {
            found = Found { k_start: found.k_start, ..Found::default() };
            table.read(session, "1 = 1", &AtomicU64::new(0), &mut found).await?;
        }
        session.execute("COMMIT").await?;
        if counts.rows() != before.rows() {
            return Err(self.moving(session).await?);
        }
        let torn = counts.torn(&found.count());
        locked(&self.seen)[slot].found = found;
        let Some((by, what)) = torn else { return Ok(()) };
        Err(Ended::Found(match recovered(session).await? {
            0 => {
                let said = check_table(session, &table.name).await?;
                Finding::Index(by, format!("{what}; {said}"))
            }
            left => Finding::Unsettled(format!("{what}, but {}", still_open(left))),
        }))
    }

    /// Checks that the table is what it was.
    async fn unchanged(
        &self,
        session: &mut Session,
        table: &Table,
        counts: &Counts,
    ) -> Result<(), Ended> {
        let (index, before) = counts.narrow();
        if count(index, session, &table.name).await? == *before {
            return Ok(());
        }
        Err(self.moving(session).await?)
    }

    /// Tells who is active in the database, of a table that is not what it was.
    async fn moving(&self, session: &mut Session) -> Asked<Ended> {
        let active = match self.server.others(session).await?.join(", ") {
            others if others.is_empty() => String::new(),
            others => format!("; active in this database: {others}"),
        };
        let what = "it changed while it was read: something else writes to it";
        Ok(Ended::Found(Finding::Unsettled(format!("{what}{active}"))))
    }
}

/// The server's number for "there is no such index", or none that may be used.
const NO_INDEX: u16 = 1176;

/// Why a table is looked at no further.
pub(super) enum Ended {
    Failed(Failure),
    Found(Finding),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::Failed(failure)
    }
}

/// By each index; the rows' own, which has all columns, is the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts(pub(super) Vec<(Index, Count)>);

/// Reads a whole number of the server's; there is none where there are no rows.
fn whole(what: &str, text: Option<String>) -> Result<i128, Ended> {
    let text = text.unwrap_or_else(|| "0".to_owned());
    text.parse().map_err(|_| {
        let shown = clip(&text, VALUE_MAX);
        Ended::Found(Finding::Damaged(format!("{what} is '{shown}', no whole number")))
    })
}

/// Counts and sums by one index.
async fn count(index: &Index, session: &mut Session, table: &str) -> Result<Count, Ended> {
    let by = match index.name.as_str() {
        "" => String::new(),
        name => format!(" FORCE INDEX ({})", quoted(name)),
    };
    // A COUNT(*) alone may be answered without the index.
    let sum = if index.k { "SUM(k)" } else { "SUM(1)" };
    let sql = format!("SELECT COUNT(*), {sum} FROM {}{by}", quoted(table));
    let [count, k] = rows(session, &sql).await?.pop().unwrap_or_default();
    let (rows, k) = (whole("COUNT(*)", count)?.max(0) as u64, whole(sum, k)?);
    Ok(Count { rows, k: index.k.then_some(k) })
}

impl Counts {
    /// Counts by all indexes as they are at one instant, whatever is written or rolled back
    /// meanwhile: within [`snapshot`].
    pub(super) async fn take(session: &mut Session, table: &Table) -> Result<Counts, Ended> {
        let mut counts = Vec::with_capacity(table.indexes.len());
        for index in &table.indexes {
            match count(index, session, &table.name).await {
                // Dropped meanwhile, or hidden from the optimizer.
                Err(Ended::Failed(Failure::Server { code: NO_INDEX, .. })) => {}
                counted => counts.push((index.clone(), counted?)),
            }
        }
        if counts.is_empty() {
            let any = Index { name: String::new(), k: table.indexes[0].k };
            let count = count(&any, session, &table.name).await?;
            counts.push((any, count));
        }
        Ok(Counts(counts))
    }

    /// Finds the index that tells most and is the cheapest to read again: the last ones are narrow.
    pub(super) fn narrow(&self) -> &(Index, Count) {
        let narrow = self.0.iter().rfind(|(index, _)| index.k).or(self.0.last());
        narrow.expect("counted by one index at least")
    }

    pub(super) fn rows(&self) -> Count {
        self.0[0].1
    }

    /// Finds the first index that disagrees with the rows, or that what was read is not what the server
    /// counts: by how many rows, and in words.
    pub(super) fn torn(&self, read: &Count) -> Option<(u64, String)> {
        let rows = self.rows();
        if let Some((index, count)) = self.0.iter().find(|(_, count)| !count.agrees(&rows)) {
            let what = format!("index {} has {count}, the table has {rows}", index.name);
            return Some((count.differs_by(&rows), what));
        }
        let what = || format!("the server counts {rows}, and returns {read}");
        (!rows.agrees(read)).then(|| (rows.differs_by(read), what()))
    }
}

/// What is read until COMMIT is as it was at this instant.
pub(super) async fn snapshot(session: &mut Session) -> Asked<()> {
    session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT").await.map(drop)
}

pub(super) async fn check_table(session: &mut Session, table: &str) -> Asked<String> {
    let said = match rows::<4>(session, &format!("CHECK TABLE {}", quoted(table))).await {
        Ok(lines) => lines.into_iter().filter_map(|[.., text]| text).collect::<Vec<_>>().join("; "),
        Err(refused @ Failure::Server { .. }) => refused.to_string(),
        Err(lost) => return Err(lost),
    };
    Ok(format!("CHECK TABLE: {said}"))
}

/// Counts transactions that were open when the server started: it rolls them back beside its work, but
/// for those that XA prepared. 0 where it does not say.
pub(super) async fn recovered(session: &mut Session) -> Asked<u64> {
    let sql = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0";
    Ok(optional(number(session, sql).await)?.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_all_ids_once() {
        let of = |slot, what: &[What]| -> Vec<Task> {
            what.iter().map(|what| Task { slot, what: *what }).collect()
        };
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
            (Index { name: (*name).to_owned(), k: k.is_some() }, Count { rows: *rows, k: *k })
        };
        Counts(all.iter().map(of).collect())
    }

    #[test]
    fn an_index_that_disagrees_is_named() {
        let whole = counts(&[("PRIMARY", 9, Some(50)), ("k_1", 9, Some(50)), ("c", 9, None)]);
        let torn = |counts: &Counts| counts.torn(&counts.rows());
        assert_eq!(torn(&whole), None);
        let more = counts(&[("PRIMARY", 9, Some(50)), ("k_1", 12, Some(70))]);
        let (by, what) = torn(&more).expect("found");
        assert_eq!(by, 3);
        assert_eq!(
            what,
            "index k_1 has 12 rows with a sum of k of 70, the table has 9 rows with a sum of k of 50"
        );
        assert_eq!(whole.narrow().0.name, "k_1");
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
        assert_eq!(counts.torn(&Count { rows: 9, k: Some(50) }), None);
        let (by, what) = counts.torn(&Count { rows: 7, k: Some(40) }).expect("found");
        assert!(by == 2 && what.contains("returns 7 rows"), "{what}");
    }
}
