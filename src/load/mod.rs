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
mod crew;
pub mod dump;
mod fault;
mod fill;
mod method;
mod pace;
pub(crate) mod reload;
mod set_up;
mod survey;
mod text;
mod worker;

use std::time::{Duration, Instant};

use mysql_async::Opts;

use self::crew::{Filled, fill};
use self::pace::{rate, short};
use self::set_up::set_up;
use crate::error::{Error, Result};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::plan::{defaults, limits, units};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::workload::Schema;
use crate::workload::table::{Mark, ROWS_MAX, TABLES_MAX};

pub use self::clean::{Cleaned, Numbers, cleanup, marked, named};
pub use self::method::{Fill, Method};

/// Connections at most, as a limit on nonsense: each has a thread.
const JOBS_MAX: u32 = 256;

/// The mark of a table that is finished now. Without a source of random bits it has no identity,
/// and verify says that it cannot judge it.
fn ready_mark(seed: u32, rows: u64) -> Mark {
    Mark::ready(seed, rows, getrandom::u32().ok())
}

/// What prepare makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The tables' kind.
    pub schema: Schema,
    /// `sbtest1` to this.
    pub tables: u32,
    /// Rows of each; 0, and nothing else, where the schema's tables stay empty.
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
    /// Whether the data goes away with loadgen, and an interrupted fill with it.
    pub passing: bool,
}

impl Default for Job {
    fn default() -> Self {
        Job {
            schema: Schema::default(),
            tables: defaults::TABLES,
            rows: 10_000,
            data_seed: defaults::DATA_SEED,
            fill: Fill::Auto,
            jobs: None,
            charset: None,
            force: false,
            passing: false,
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
    /// Rows that were put in now.
    pub rows: u64,
    /// Rows that an interrupted fill had left.
    pub found: u64,
    /// From the first row to the last mark.
    pub elapsed: Duration,
    /// How the rows went in; None if all was finished before.
    pub method: Option<Method>,
}

/// Makes the tables and fills them, or completes what an interrupted fill left. Runs on a
/// `current_thread` runtime; every connection of the fill gets a thread of its own. `opts` are
/// [`ConnectOptions::opts`] of `target`.
///
/// # Errors
///
/// Usage: numbers out of range, an unknown character set. Data: tables in the way, all named.
/// Server: none, silence, or `--fill load-data` where it is not allowed. Failed: DDL or a chunk; what
/// is in stays in, and the same call again completes it, unless the data is passing. Interrupted,
/// with the same promise.
pub async fn prepare(
    target: &ConnectOptions,
    opts: &Opts,
    job: &Job,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Prepared> {
    let prepared = prepare_lasting(target, opts, job, stop, progress).await;
    prepared.map_err(|e| if job.passing { e.instead(fault::AGAIN, fault::ANEW) } else { e })
}

async fn prepare_lasting(
    target: &ConnectOptions,
    opts: &Opts,
    job: &Job,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Prepared> {
    check(job)?;
    let liveness = Liveness::new(target, opts);
    let ready = tokio::select! {
        biased;
        kind = stop.wait() => Err(Error::new(kind, "interrupted").hint(fault::AGAIN)),
        ready = set_up(target, opts, job, &liveness, progress) => ready,
        silent = liveness.ends() => Err(silent),
    }?;
    let filled = ready.tables.len() as u32;
    let mut prepared = Prepared {
        tables: job.tables,
        filled,
        rows: 0,
        found: 0,
        elapsed: Duration::ZERO,
        method: None,
    };
    if filled == 0 {
        progress.note(&if job.schema.filled() {
            "nothing to do (--force fills the tables again)".to_owned()
        } else {
            format!("{} tables, empty: the workload fills them", job.tables)
        });
        ready.control.close(limits::COURTESY).await;
        return Ok(prepared);
    }
    prepared.method = Some(ready.choice.method);
    let began = Instant::now();
    let Filled { rows_after, found } =
        fill(target, opts, job, ready, liveness, stop, progress).await?;
    prepared.elapsed = began.elapsed();
    prepared.found = found;
    prepared.rows = job.rows.saturating_mul(u64::from(filled)).saturating_sub(found);
    progress.clear();
    progress.note(&closing(job, &prepared, rows_after));
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
    match (job.schema.filled(), job.rows) {
        (false, 0) => {}
        (false, _) => {
            let text = format!("--rows, but tables of the schema {} stay empty", job.schema);
            return Err(Error::usage(text).hint("leave --rows away"));
        }
        (true, rows) => range("--rows", rows, ROWS_MAX)?,
    }
    range("--jobs", u64::from(job.jobs.unwrap_or(1)), u64::from(JOBS_MAX))
}

/// The line at the end; the rows took `rows_after`, the last indexes the rest of the time.
fn closing(job: &Job, done: &Prepared, rows_after: Duration) -> String {
    let tables = if done.filled == 1 { "table" } else { "tables" };
    let rows = units::count(job.rows);
    let seconds = done.elapsed.as_secs_f64();
    let pace = match done.method {
        Some(method) if done.rows > 0 => format!(
            " by {method}: {} rows/s, {} rows/s with the indexes",
            short(rate(done.rows, rows_after)),
            short(rate(done.rows, done.elapsed))
        ),
        _ => String::new(),
    };
    let found = match done.found {
        0 => String::new(),
        found => format!("; {} rows were there before", short(found as f64)),
    };
    format!("{} {tables} of {rows} rows in {seconds:.1} s{pace}{found}", done.filled)
}
