//! Reads every row of some tables, over several connections.
//!
//! The rows that prepare filled are read in chunks of ids, the others of a table in one piece.
//! No snapshot would span connections: instead the server counts and sums before and after, and
//! a table that changed meanwhile is not judged; it is not even read if it changes before that.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::counts::{Count, Counts, snapshot};
use super::table::Table;
use super::verdict::Found;
use crate::error::{Error, Result};
use crate::mysql::control::{Asked, impatient};
use crate::mysql::errors::{Failure, LOST};
use crate::mysql::liveness::{Liveness, Threads};
use crate::mysql::session::Session;
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop};
use crate::terms::units;

const JOBS_MAX: usize = 16;

const CHUNK: std::ops::RangeInclusive<u64> = 10_000..=1_000_000;

/// What is known of a table, as far as it was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) found: Found,
    /// The server's counts, before the rows were read.
    pub(super) counts: Counts,
    /// The greatest id, of those that prepare filled.
    last: u64,
    /// Who may have written to it meanwhile, if it changed.
    pub(super) changed: Option<Vec<String>>,
}

impl Seen {
    pub(super) fn read(&self) -> Count {
        Count { rows: self.found.rows, k: self.found.k }
    }
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
    Again,
}

/// Cuts all rows of tables, given with their greatest ids, into chunks for so many connections.
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

/// Reads the tables at these places; returns what is seen of each table, in order.
pub(super) async fn read(
    server: &Arc<Liveness>,
    tables: &Arc<Vec<Table>>,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Vec<Seen>> {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let jobs = (2 * cores).min(JOBS_MAX);
    let reading = Arc::new(Reading {
        server: Arc::clone(server),
        tables: Arc::clone(tables),
        tasks: Mutex::default(),
        seen: Mutex::new(vec![Seen::default(); tables.len()]),
        read: AtomicU64::new(0),
    });
    let whole =
        |slots: Vec<usize>, what| slots.into_iter().map(|slot| Task { slot, what }).collect();
    let ready = (0..tables.len()).filter(|slot| tables[*slot].is_ready()).collect();
    let counting = ("the server counts and sums", "tables");
    run(&reading, whole(ready, What::Count), jobs, counting, stop, progress).await?;
    let still: Vec<(usize, u64)> = locked(&reading.seen)
        .iter()
        .enumerate()
        .filter(|(slot, seen)| tables[*slot].is_ready() && seen.changed.is_none())
        .map(|(slot, seen)| (slot, seen.last))
        .collect();
    run(&reading, chunks(&still, jobs), jobs, ("reading", "chunks"), stop, progress).await?;
    let again = whole(still.iter().map(|(slot, _)| *slot).collect(), What::Again);
    let counting = ("the server counts and sums again", "tables");
    run(&reading, again, jobs, counting, stop, progress).await?;
    Ok(std::mem::take(&mut *locked(&reading.seen)))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does all of these, which it calls so while they wait.
async fn run(
    reading: &Arc<Reading>,
    tasks: Vec<Task>,
    jobs: usize,
    (doing, pieces): (&str, &str),
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    let threads = Threads {
        name: "verify",
        count: jobs.min(tasks.len()),
        halt: &Stop::default(),
        stop,
        liveness: &reading.server,
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
    let theirs = Arc::clone(reading);
    let done = threads.run(move || work(Arc::clone(&theirs)), look).await;
    stop.check()?;
    done
}

async fn work(reading: Arc<Reading>) -> Result<()> {
    let mut session = open(&reading.server).await?;
    let waits = reading.server.waits(&session);
    loop {
        let Some(task) = locked(&reading.tasks).pop_front() else { break };
        let done = reading.one(&mut session, task).await;
        let name = &reading.tables[task.slot].name;
        done.map_err(|f| explain(&f, &format!("reading {name}")))?;
    }
    drop(waits);
    session.close(COURTESY).await;
    Ok(())
}

/// Opens a session that sees what is committed, and nothing of what others do while a statement runs.
pub(super) async fn open(server: &Liveness) -> Result<Session> {
    let mut session = Session::open(&server.target, &server.opts, None).await?;
    let failed = |f: Failure| explain(&f, "setting up a connection");
    let isolation = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    session.execute(isolation).await.map_err(failed)?;
    impatient(&mut session).await.map_err(failed)?;
    Ok(session)
}

pub(super) fn explain(failure: &Failure, doing: &str) -> Error {
    match failure {
        Failure::Lost(_) => Error::server(format!("{doing}: {failure}")).hint(LOST),
        Failure::Server { .. } => Error::failed(format!("{doing}: {failure}"))
            .hint("verify needs SELECT on the tables, and a server that can read them"),
    }
}

impl Reading {
    async fn one(&self, session: &mut Session, Task { slot, what }: Task) -> Asked<()> {
        let table = &self.tables[slot];
        let range = match what {
            What::Count => {
                snapshot(session).await?;
                let counts = Counts::take(session, &table.name, &table.indexes).await?;
                session.execute("COMMIT").await?;
                let last = table.last(session).await?;
                let changed = self.changed(session, &counts, table).await?;
                let seen = &mut locked(&self.seen)[slot];
                (seen.counts, seen.last, seen.changed) = (counts, last, changed);
                return Ok(());
            }
            What::Again => {
                let counts = locked(&self.seen)[slot].counts.clone();
                let changed = self.changed(session, &counts, table).await?;
                locked(&self.seen)[slot].changed = changed;
                return Ok(());
            }
            What::Rows(first, last) => format!("id BETWEEN {first} AND {last}"),
            What::Others => format!("id < 1 OR id > {}", table.mark.rows),
        };
        let mut found = Found::default();
        if let What::Rows(first, last) = what {
            found.k_start = table.k_start(first, last);
        }
        table.read(session, &range, &self.read, &mut found).await?;
        locked(&self.seen)[slot].found.add(&found);
        Ok(())
    }

    /// Tells who is active in the database, if the table is not what it was.
    async fn changed(
        &self,
        session: &mut Session,
        counts: &Counts,
        table: &Table,
    ) -> Asked<Option<Vec<String>>> {
        let (index, before) = counts.narrow();
        if index.count(session, &table.name).await? == *before {
            return Ok(None);
        }
        self.server.others(session).await.map(Some)
    }
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
}
