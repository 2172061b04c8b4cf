//! Create, fill, index, verify and drop the tables.
//!
//! ```text
//! survey ─▶ decide ─▶ create (state=filling) ─▶ fill in chunks ─▶ index ─▶ check ─▶ state=ready
//! ```
//!
//! The mark in a table's COMMENT is the whole state: whatever ends a fill, the next one finds
//! there what was meant, counts what is in, and fills the rest. `docs/prepare.md` has the
//! measurements behind the choices.

mod chunks;
mod connect;
pub mod dump;
mod fill;
pub(crate) mod reload;
mod set_up;
mod tables;
mod text;
mod throughput;

use std::time::{Duration, Instant};

use mysql_async::Opts;

use self::connect::{AGAIN, ANEW, JOBS_MAX};
use self::fill::{Filled, fill};
use self::set_up::set_up;
use self::throughput::{rate, short};
use crate::error::{Error, Kind, Result};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::plan::defaults;
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop};
use crate::terms::units;
use crate::workload::Schema;
use crate::workload::table::{Mark, ROWS_MAX, TABLES_MAX};

pub use self::set_up::Method;
pub use self::tables::{Cleaned, Numbers, cleanup, marked, named};

/// Makes the mark of a table that is finished now. Without a source of random bits it has no identity,
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
    /// How to fill; None for LOAD DATA LOCAL where the server allows it and INSERT is not faster.
    pub fill: Option<Method>,
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
            fill: None,
            jobs: None,
            charset: None,
            force: false,
            passing: false,
        }
    }
}

/// What prepare did.
#[derive(Debug, Clone, Default, PartialEq)]
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
    prepared.map_err(|e| if job.passing { e.instead(AGAIN, ANEW) } else { e })
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
    let ready = liveness.during(stop, set_up(target, opts, job, &liveness, progress)).await;
    let ready = ready.map_err(|e| match e.kind() {
        Kind::Interrupted | Kind::Terminated => e.hint(AGAIN),
        _ => e,
    })?;
    let filled = ready.tables.len() as u32;
    if filled == 0 {
        progress.note(&if job.schema.filled() {
            "nothing to do (--force fills the tables again)".to_owned()
        } else {
            format!("{} tables, empty: the workload fills them", job.tables)
        });
        ready.control.close(COURTESY).await;
        return Ok(Prepared { tables: job.tables, ..Prepared::default() });
    }
    let (began, method) = (Instant::now(), ready.choice.method);
    let Filled { rows_after, found } =
        fill(target, opts, job, ready, liveness, stop, progress).await?;
    let elapsed = began.elapsed();
    let rows = job.rows * u64::from(filled) - found;
    progress.clear();
    let s = if filled == 1 { "" } else { "s" };
    let (each, seconds) = (units::count(job.rows), elapsed.as_secs_f64());
    let mut closing = format!("{filled} table{s} of {each} rows in {seconds:.1} s");
    if rows > 0 {
        let (all, of_rows) = (short(rate(rows, elapsed)), short(rate(rows, rows_after)));
        closing += &format!(" by {method}: {of_rows} rows/s, {all} rows/s with the indexes");
    }
    if found > 0 {
        closing += &format!("; {} rows were there before", short(found as f64));
    }
    progress.note(&closing);
    Ok(Prepared { tables: job.tables, filled, rows, found, elapsed, method: Some(method) })
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
