//! Create, fill, index, verify and drop the tables.
//!
//! ```text
//! survey ─▶ decide ─▶ create (state=filling) ─▶ fill in chunks ─▶ index ─▶ check ─▶ state=ready
//! ```
//!
//! The mark in a table's COMMENT is the whole state: whatever ends a fill, the next one finds
//! there what was meant, counts what is in, and fills the rest. `docs/prepare.md` has the
//! measurements behind the choices.

mod chunk;
mod clean;
mod fault;
mod fill;
mod method;
mod pace;
mod set_up;
mod survey;
mod text;
mod worker;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mysql_async::Opts;
use tokio::sync::mpsc;

use self::chunk::Board;
use self::pace::{Pace, rate, short};
use self::set_up::{Ready, set_up};
use self::worker::{Shared, locked};
use crate::error::{Error, Result};
use crate::mysql::session::Session;
use crate::mysql::target::Target;
use crate::plan::{defaults, limits, units};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::workload::table::{ROWS_MAX, TABLES_MAX};

pub use self::clean::{Cleaned, cleanup, marked};
pub use self::method::{Fill, Method};

/// Connections at most, as a limit on nonsense: each has a thread.
const JOBS_MAX: u32 = 256;
/// How often the live line looks at the counters.
const LOOK: Duration = Duration::from_millis(100);

/// What prepare makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// `sbtest1` to this.
    pub tables: u32,
    /// Rows of each.
    pub rows: u64,
    /// Seed of their content.
    pub data_seed: u32,
    /// How to fill.
    pub fill: Fill,
    /// Connections; None for a sensible number.
    pub jobs: Option<u32>,
    /// Character set of the tables; None for the database's.
    pub charset: Option<String>,
    /// Whether tables that prepare made are dropped and filled again, whatever they hold.
    pub force: bool,
}

impl Default for Job {
    fn default() -> Self {
        Job {
            tables: defaults::TABLES,
            rows: 10_000,
            data_seed: defaults::DATA_SEED,
            fill: Fill::Auto,
            jobs: None,
            charset: None,
            force: false,
        }
    }
}

/// What prepare did.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Tables that are there now.
    pub tables: u32,
    /// Those of them that were filled or completed now.
    pub filled: u32,
    /// Rows that were put in or found by an interrupted fill.
    pub rows: u64,
    /// From the first row to the last mark.
    pub elapsed: Duration,
    /// How the rows went in; None if all was finished before.
    pub method: Option<Method>,
}

/// Makes the tables and fills them, or completes what an interrupted fill left. Runs on a
/// `current_thread` runtime; every connection of the fill gets a thread of its own. `opts` are
/// [`Target::opts`] of `target`.
///
/// # Errors
///
/// Usage: numbers out of range, an unknown character set. Data: tables in the way, all named.
/// Server: none, or `--fill load-data` where it is not allowed. Failed: DDL or a chunk; what is
/// in stays in, and the same call again completes it. Interrupted, with the same promise.
pub async fn prepare(
    target: &Target,
    opts: &Opts,
    job: &Job,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Prepared> {
    check(job)?;
    let ready = tokio::select! {
        biased;
        kind = stop.wait() => Err(Error::new(kind, "interrupted").hint(fault::AGAIN)),
        ready = set_up(target, opts, job, progress) => ready,
    }?;
    let filled = ready.tables.len() as u32;
    let mut prepared =
        Prepared { tables: job.tables, filled, rows: 0, elapsed: Duration::ZERO, method: None };
    if filled == 0 {
        progress.note("nothing to do (--force fills the tables again)");
        ready.control.close(limits::COURTESY).await;
        return Ok(prepared);
    }
    prepared.method = Some(ready.choice.method);
    prepared.rows = job.rows.saturating_mul(u64::from(filled));
    let began = Instant::now();
    let in_tables = fill(target, opts, job, ready, stop, progress).await?;
    prepared.elapsed = began.elapsed();
    progress.clear();
    progress.note(&closing(job, &prepared, in_tables));
    Ok(prepared)
}

fn check(job: &Job) -> Result<()> {
    let range = |flag: &str, n: u64, max: u64| {
        if (1..=max).contains(&n) {
            return Ok(());
        }
        Err(Error::usage(format!("{flag} {n} is not within 1 to {}", units::count(max))))
    };
    range("--tables", u64::from(job.tables), u64::from(TABLES_MAX))?;
    range("--rows", job.rows, ROWS_MAX)?;
    range("--jobs", u64::from(job.jobs.unwrap_or(1)), u64::from(JOBS_MAX))
}

/// The line at the end; `in_tables` is how long the rows took, without the last indexes.
fn closing(job: &Job, done: &Prepared, in_tables: Duration) -> String {
    let method = done.method.map(|m| m.to_string()).unwrap_or_default();
    format!(
        "{} {} of {} rows in {:.1} s: {method}, {} rows/s while filling, index included {} rows/s",
        done.filled,
        if done.filled == 1 { "table" } else { "tables" },
        units::count(job.rows),
        done.elapsed.as_secs_f64(),
        short(rate(done.rows, in_tables)),
        short(rate(done.rows, done.elapsed)),
    )
}

/// Fills, indexes and marks the tables. Returns how long it took until the last row was in.
async fn fill(
    target: &Target,
    opts: &Opts,
    job: &Job,
    ready: Ready,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Duration> {
    let Ready { control, tables, choice, jobs, packet } = ready;
    let count = tables.len() as u64;
    let chunk_rows = chunk::chunk_rows(count, job.rows, u64::from(jobs));
    let board = Board::new(tables.len(), job.rows, chunk_rows, choice.crowd);
    let shared = Arc::new(Shared {
        target: target.clone(),
        opts: opts.clone(),
        tables,
        rows: job.rows,
        data_seed: job.data_seed,
        method: choice.method,
        packet,
        board: Mutex::new(board),
        halt: Stop::default(),
        sent: Arc::default(),
        indexing: Mutex::default(),
        finished: AtomicU64::new(0),
    });
    let why = choice.why.map(|why| format!(" ({why})")).unwrap_or_default();
    progress.note(&format!(
        "filling by {} over {jobs} connection{}{why}",
        choice.method,
        if jobs == 1 { "" } else { "s" }
    ));
    let (alive, ended) = mpsc::unbounded_channel();
    let threads: Vec<_> = (0..jobs).map(|i| start(i, &shared, &alive)).collect();
    drop(alive);
    let in_tables = watch(&shared, count, ended, stop, progress).await;
    let outcome = join(threads).and_then(|()| verdict(&shared, count, stop));
    if outcome.is_err() {
        let indexing = locked(&shared.indexing).clone();
        end_indexing(control, &indexing).await;
    } else {
        control.close(limits::COURTESY).await;
    }
    outcome.map(|()| in_tables)
}

type Thread = std::io::Result<JoinHandle<Result<()>>>;

/// `alive` is dropped when the thread ends, however it does.
fn start(number: u32, shared: &Arc<Shared>, alive: &mpsc::UnboundedSender<()>) -> Thread {
    let (shared, alive) = (Arc::clone(shared), alive.clone());
    std::thread::Builder::new().name(format!("fill-{number}")).spawn(move || {
        let _alive = alive;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Error::failed(format!("cannot make a runtime: {e}")))?;
        runtime.block_on(worker::work(&shared))
    })
}

/// Shows how it goes until all threads are done. An interruption is handed on to them.
async fn watch(
    shared: &Shared,
    tables: u64,
    mut ended: mpsc::UnboundedReceiver<()>,
    stop: &Stop,
    progress: &mut Progress,
) -> Duration {
    let began = Instant::now();
    let total = shared.rows.saturating_mul(tables);
    let mut pace = Pace::new(total, began);
    let mut all_sent = None;
    progress.restart();
    loop {
        tokio::select! {
            biased;
            kind = stop.wait(), if shared.halt.asked().is_none() => shared.halt.ask(kind),
            // Nothing is ever sent: this is the last sender going away.
            _ = ended.recv() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        let rows = shared.sent.load(Ordering::Relaxed).min(total);
        pace.at(Instant::now(), rows);
        if rows == total && all_sent.is_none() {
            all_sent = Some(began.elapsed());
        }
        progress.update(|| {
            let finished = shared.finished.load(Ordering::Relaxed);
            let seconds = began.elapsed().as_secs();
            match locked(&shared.indexing).len() {
                _ if rows == total => {
                    format!("building indexes: {finished} of {tables} tables ready, {seconds} s")
                }
                0 => format!("filling: {}", pace.text()),
                n => format!("filling: {}; building {n} indexes", pace.text()),
            }
        });
    }
    all_sent.unwrap_or_else(|| began.elapsed())
}

/// The first error of a thread.
fn join(threads: Vec<Thread>) -> Result<()> {
    let mut first = Ok(());
    for thread in threads {
        let done =
            match thread.map(JoinHandle::join) {
                Ok(Ok(done)) => done,
                Ok(Err(_)) => Err(Error::failed("the driver panicked on an answer of the server")
                    .hint(fault::AGAIN)),
                Err(e) => Err(Error::failed(format!("cannot start a thread: {e}"))
                    .hint("fewer --jobs")
                    .hint(fault::AGAIN)),
            };
        first = first.and(done);
    }
    first
}

fn verdict(shared: &Shared, tables: u64, stop: &Stop) -> Result<()> {
    let finished = shared.finished.load(Ordering::Relaxed);
    if finished == tables {
        return Ok(());
    }
    let rows = shared.sent.load(Ordering::Relaxed);
    let total = shared.rows.saturating_mul(tables);
    let so_far = format!("{} of {} rows", short(rows as f64), short(total as f64));
    Err(match stop.asked() {
        Some(kind) => Error::new(kind, format!("interrupted after {so_far}")),
        None => Error::failed(format!("{finished} of {tables} tables are finished, {so_far}")),
    }
    .hint(fault::AGAIN))
}

/// A server goes on building an index when the connection is gone, and the next prepare would
/// wait for it. Kills only what is our own statement without doubt.
async fn end_indexing(mut control: Session, connections: &[u32]) {
    if connections.is_empty() {
        return;
    }
    let killing = async {
        let list = control.query("SHOW FULL PROCESSLIST").await.unwrap_or_default();
        for row in list {
            let field = |i: usize| row.get(i).and_then(Option::as_deref);
            let id = field(0).and_then(|id| id.parse::<u32>().ok());
            let ours = field(7).is_some_and(|sql| sql.starts_with("CREATE INDEX `k_"));
            if let Some(id) = id.filter(|id| ours && connections.contains(id)) {
                // It may have ended just now.
                let _ = control.execute(&format!("KILL {id}")).await;
            }
        }
    };
    tokio::select! {
        () = killing => {}
        () = tokio::time::sleep(limits::COURTESY) => {}
    }
}
