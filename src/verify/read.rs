//! Reads every row of some tables, over several connections.
//!
//! The rows that prepare filled are read in chunks of ids, the others of a table in one piece.
//! No snapshot would span connections: instead the server counts and sums before and after, and
//! a table that changed meanwhile is not judged; it is not even read if it changes before that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mysql_async::Opts;

use super::counts::{Count, Counts, snapshot};
use super::judge::Found;
use super::table::Table;
use super::tasks::{Task, Tasks};
use crate::error::{Error, Result};
use crate::mysql::control::impatient;
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::session::{Failure, LOST, Session};
use crate::mysql::threads::Threads;
use crate::plan::{limits, units};
use crate::progress::Progress;
use crate::stop::Stop;

/// Connections at most.
const JOBS_MAX: usize = 16;

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
    /// What was read of it.
    pub(super) fn read(&self) -> Count {
        Count { rows: self.found.rows, k: self.found.k }
    }
}

struct Shared {
    target: ConnectOptions,
    opts: Opts,
    liveness: Liveness,
    tables: Vec<Table>,
    tasks: Mutex<Tasks>,
    seen: Mutex<Vec<Seen>>,
    read: AtomicU64,
}

/// What is seen of each of the tables, in order. Takes the liveness over, and gives it back.
///
/// # Errors
///
/// Server: no answer. Failed: a statement, a thread. Interrupted.
pub(super) async fn read(
    target: &ConnectOptions,
    opts: &Opts,
    tables: &[Table],
    liveness: Liveness,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<(Vec<Seen>, Liveness)> {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let jobs = (2 * cores).min(JOBS_MAX);
    let shared = Arc::new(Shared {
        target: target.clone(),
        opts: opts.clone(),
        liveness,
        tables: tables.to_vec(),
        tasks: Mutex::default(),
        seen: Mutex::new(vec![Seen::default(); tables.len()]),
        read: AtomicU64::new(0),
    });
    let slots = 0..tables.len();
    *locked(&shared.tasks) = Tasks::whole(slots.clone().map(Task::Count));
    run(&shared, jobs, "the server counts and sums", stop, progress).await?;
    let seen = locked(&shared.seen).clone();
    let still = |slot: usize| {
        let seen = seen.get(slot).filter(|seen| seen.changed.is_none())?;
        Some((slot, seen.last))
    };
    let lasts: Vec<(usize, u64)> = slots.filter_map(still).collect();
    *locked(&shared.tasks) = Tasks::chunks(&lasts, jobs as u64);
    run(&shared, jobs, "reading", stop, progress).await?;
    *locked(&shared.tasks) = Tasks::whole(lasts.iter().map(|(slot, _)| Task::Again(*slot)));
    run(&shared, jobs, "the server counts and sums again", stop, progress).await?;
    let shared = Arc::into_inner(shared)
        .ok_or_else(|| Error::failed("a thread outlived its work; please report this"))?;
    Ok((shared.seen.into_inner().unwrap_or_else(PoisonError::into_inner), shared.liveness))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does all tasks.
async fn run(
    shared: &Arc<Shared>,
    jobs: usize,
    doing: &str,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    let left = locked(&shared.tasks).left();
    let crew = Threads {
        name: "verify",
        count: jobs.min(usize::try_from(left).unwrap_or(jobs)),
        halt: &Stop::default(),
        stop,
        liveness: &shared.liveness,
        again: "give the same command again",
    };
    progress.restart();
    let theirs = Arc::clone(shared);
    let look = || {
        progress.update(|| {
            let wait = locked(&shared.tasks).waiting();
            match shared.read.load(Ordering::Relaxed) {
                0 => format!("{doing}: {wait}"),
                rows => format!("{doing}: {} rows, {wait}", units::count(rows)),
            }
        });
    };
    let done = crew.run(move || work(Arc::clone(&theirs)), look).await;
    stop.check()?;
    done
}

async fn work(shared: Arc<Shared>) -> Result<()> {
    let mut session = open(&shared.target, &shared.opts).await?;
    let waits = shared.liveness.waits(&session);
    loop {
        let Some(task) = locked(&shared.tasks).next() else { break };
        let slot = task.slot();
        let Some(table) = shared.tables.get(slot) else { continue };
        let done = shared.one(&mut session, task, slot, table).await;
        done.map_err(|f| explain(&f, &format!("reading {}", table.name)))?;
    }
    drop(waits);
    session.close(limits::COURTESY).await;
    Ok(())
}

/// A session that sees what is committed, and nothing of what others do while a statement runs.
pub(super) async fn open(target: &ConnectOptions, opts: &Opts) -> Result<Session> {
    let mut session = Session::open(target, opts, None).await?;
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

impl Shared {
    async fn one(
        &self,
        session: &mut Session,
        task: Task,
        slot: usize,
        table: &Table,
    ) -> std::result::Result<(), Failure> {
        let mut found = Found::default();
        match task {
            Task::Count(_) => {
                snapshot(session).await?;
                let counts = Counts::take(session, &table.name, &table.indexes).await?;
                session.execute("COMMIT").await?;
                let last = table.last(session).await?;
                let changed = self.changed(session, &counts, table).await?;
                self.note(slot, |seen| {
                    (seen.counts, seen.last, seen.changed) = (counts, last, changed);
                });
            }
            Task::Again(_) => {
                let counts = locked(&self.seen).get(slot).map(|seen| seen.counts.clone());
                let changed = self.changed(session, &counts.unwrap_or_default(), table).await?;
                self.note(slot, |seen| seen.changed = changed);
            }
            Task::Rows(_, first, last) => {
                found.k_start = table.k_start(first, last);
                let range = format!("id BETWEEN {first} AND {last}");
                table.read(session, &range, &self.read, &mut found).await?;
                self.note(slot, |seen| seen.found.add(&found));
            }
            Task::Others(_) => {
                let range = format!("id < 1 OR id > {}", table.rows);
                table.read(session, &range, &self.read, &mut found).await?;
                self.note(slot, |seen| seen.found.add(&found));
            }
        }
        Ok(())
    }

    fn note(&self, slot: usize, note: impl FnOnce(&mut Seen)) {
        if let Some(seen) = locked(&self.seen).get_mut(slot) {
            note(seen);
        }
    }

    /// Who is active in the database, if the table is not what it was.
    async fn changed(
        &self,
        session: &mut Session,
        counts: &Counts,
        table: &Table,
    ) -> std::result::Result<Option<Vec<String>>, Failure> {
        let Some((index, before)) = counts.narrow() else { return Ok(None) };
        if index.count(session, &table.name).await? == *before {
            return Ok(None);
        }
        self.liveness.others(session).await.map(Some)
    }
}
