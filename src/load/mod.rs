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
mod tables;
mod text;
mod throughput;

use std::fmt;
use std::time::{Duration, Instant};

use mysql_async::Opts;

use self::connect::{AGAIN, ANEW, Doing, JOBS_MAX, control, drop_table, explain, open};
use self::fill::fill;
use self::tables::{Step, decide, notes, same_charset};
use self::throughput::{rate, short};
use crate::error::{Error, Kind, Result};
use crate::mysql::control::{one, pairs};
use crate::mysql::dataset::discover;
use crate::mysql::errors::Failure;
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::server::exposure;
use crate::mysql::session::Session;
use crate::plan::defaults;
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop};
use crate::terms::units;
use crate::workload::Schema;
use crate::workload::table::{Mark, ROWS_MAX, TABLES_MAX};

pub use self::tables::{Cleaned, Numbers, cleanup, marked, named};

/// Makes the mark of a table that is finished now. Without a source of random bits it has no identity,
/// and verify says that it cannot judge it.
fn ready_mark(seed: u32, rows: u64) -> Mark {
    Mark::ready(seed, rows, getrandom::u32().ok())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub schema: Schema,
    /// `sbtest1` to this.
    pub tables: u32,
    /// Rows of each; 0, and nothing else, where the schema's tables stay empty.
    pub rows: u64,
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
pub async fn prepare(
    target: &ConnectOptions,
    opts: &Opts,
    job: &Job,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Prepared> {
    check(job)?;
    let liveness = Liveness::new(target, opts);
    let prepared = async {
        let ready = liveness.during(stop, set_up(job, &liveness, progress)).await;
        let ready = ready.map_err(|e| match e.kind() {
            Kind::Interrupted | Kind::Terminated => e.hint(AGAIN),
            _ => e,
        })?;
        make(job, ready, liveness, stop, progress).await
    };
    prepared.await.map_err(|e| if job.passing { e.instead(AGAIN, ANEW) } else { e })
}

async fn make(
    job: &Job,
    ready: Ready,
    liveness: Liveness,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Prepared> {
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
    let (rows_after, found) = fill(job, ready, liveness, stop, progress).await?;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    LoadData,
    Insert,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::LoadData => "LOAD DATA LOCAL",
            Method::Insert => "multi-row INSERT",
        })
    }
}

/// Connections a table from which on INSERTs side by side are faster than LOAD DATA in turn:
/// an INSERT costs the server up to twice the CPU time, and by default there are two
/// connections a core.
const INSERT_PAYS: u64 = 8;

/// Connections a table where the server lets one LOAD DATA in at a time: the next one is ready
/// when the first one ends.
const IN_TURN: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    method: Method,
    /// Connections at most on one table.
    crowd: u32,
    /// Why not the other, or how to get the faster one.
    why: Option<String>,
}

/// Chooses. `refusal` is why the server does not take LOAD DATA LOCAL, if so; `autoinc_mode`
/// its innodb_autoinc_lock_mode: below 2 a LOAD DATA locks the table's AUTO_INCREMENT until
/// it ends, although it brings its ids. INSERTs of rows with ids do not take this lock.
fn choose(
    wanted: Option<Method>,
    refusal: Option<&str>,
    autoinc_mode: u64,
    tables: u64,
    jobs: u64,
) -> Result<Choice> {
    let in_turn = autoinc_mode < 2;
    let insert = |why| Ok(Choice { method: Method::Insert, crowd: u32::MAX, why });
    match (wanted, refusal) {
        (Some(Method::Insert), _) => insert(None),
        (Some(Method::LoadData), Some(refusal)) => {
            Err(Error::server(format!("--fill load-data: {refusal}"))
                .hint("SET GLOBAL local_infile = 1, or leave --fill away: INSERT does it too"))
        }
        (None, Some(refusal)) => insert(Some(format!(
            "{refusal}; SET GLOBAL local_infile = 1 allows LOAD DATA LOCAL, which is faster"
        ))),
        (None, None) if in_turn && jobs >= tables * INSERT_PAYS => insert(Some(format!(
            "innodb_autoinc_lock_mode = {autoinc_mode} lets LOAD DATA into a table over one \
             connection at a time"
        ))),
        (_, None) => {
            let crowd = if in_turn { IN_TURN } else { u32::MAX };
            Ok(Choice { method: Method::LoadData, crowd, why: None })
        }
    }
}

struct Facts {
    /// The largest packet that it takes, bytes.
    packet: usize,
    local_infile: bool,
    autoinc_mode: u64,
}

impl Facts {
    /// Asks it; without an answer the most careful assumption holds, of packets the smallest default
    /// that any of the servers has.
    async fn read(session: &mut Session) -> Result<Facts> {
        let sql = "SHOW VARIABLES WHERE Variable_name IN \
                   ('max_allowed_packet', 'local_infile', 'innodb_autoinc_lock_mode')";
        let found = pairs(session, sql).await.doing("reading variables")?;
        let number = |name: &str| found.get(name).and_then(|v| v.parse::<u64>().ok());
        Ok(Facts {
            packet: number("max_allowed_packet").unwrap_or(1 << 20) as usize,
            local_infile: found.get("local_infile").is_some_and(|v| v == "ON" || v == "1"),
            autoinc_mode: number("innodb_autoinc_lock_mode").unwrap_or(1),
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Unfinished {
    number: u32,
    /// Whether an interrupted fill left rows in it.
    begun: bool,
}

/// The tables are there; some have no rows yet, or not all.
struct Ready {
    /// Holds the lock against a second prepare.
    control: Session,
    /// What is to be filled; empty if all is finished.
    tables: Vec<Unfinished>,
    choice: Choice,
    jobs: u32,
    /// The largest packet that both ends take, bytes.
    packet: usize,
}

async fn set_up(job: &Job, server: &Liveness, progress: &mut Progress) -> Result<Ready> {
    let mut control = control(server, progress).await?;
    let waits = server.waits(&control);
    if let Some(warning) = exposure(&mut control, &server.target).await? {
        progress.warn(&warning.to_string());
    }
    let job = &Job { charset: charset(&mut control, job).await?, ..job.clone() };
    let found = discover(&mut control, &server.target.database, job.schema).await?;
    let steps = decide(&found, job)?;
    let database_charset = one(&mut control, "SELECT @@character_set_database").await;
    let database_charset = database_charset.doing("reading variables")?.unwrap_or_default();
    for note in notes(&found, &database_charset, &steps, job) {
        progress.note(&note);
    }
    let mut tables = Vec::new();
    for (number, step) in steps {
        create(&mut control, number, step, job, progress).await?;
        if step != Step::Keep && job.schema.filled() {
            tables.push(Unfinished { number, begun: step == Step::Complete });
        }
    }
    let facts = Facts::read(&mut control).await?;
    drop(waits);
    let refusal = match tables.first() {
        Some(_) if job.fill == Some(Method::Insert) => None,
        Some(_) if !facts.local_infile => Some("local_infile is OFF".to_owned()),
        Some(first) => refusal(server, job.schema, first.number).await?,
        None => None,
    };
    let (jobs, count) = (job.jobs.unwrap_or_else(default_jobs), tables.len() as u64);
    let choice = choose(job.fill, refusal.as_deref(), facts.autoinc_mode, count, u64::from(jobs))?;
    let jobs = u64::from(jobs).min(count.saturating_mul(u64::from(choice.crowd))) as u32;
    let packet = facts.packet.min(server.opts.max_allowed_packet().unwrap_or(usize::MAX));
    Ok(Ready { control, tables, choice, jobs, packet })
}

/// Connections by default: two a core keep the server busy while one of them makes rows, and
/// more than sixteen fight over the server's locks.
fn default_jobs() -> u32 {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    (2 * cores as u32).clamp(2, 16)
}

async fn charset(session: &mut Session, job: &Job) -> Result<Option<String>> {
    let Some(wanted) = &job.charset else { return Ok(None) };
    let sql = "SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS ORDER BY 1";
    let rows = session.query(sql).await.doing("listing character sets")?;
    let known: Vec<String> = rows.into_iter().flatten().flatten().collect();
    let is_name = |name: &&String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match known.iter().filter(is_name).find(|name| same_charset(name, wanted)) {
        Some(name) => Ok(Some(name.clone())),
        None => Err(Error::usage(format!("--charset '{wanted}' is none of this server's"))
            .hint(format!("it has {}", known.join(", ")))),
    }
}

/// Drops what begins again, and creates what is not there, with the mark of an open fill.
async fn create(
    session: &mut Session,
    number: u32,
    step: Step,
    job: &Job,
    progress: &mut Progress,
) -> Result<()> {
    let name = job.schema.name(number);
    progress.update(|| format!("creating {name} of {}", job.tables));
    match step {
        Step::Keep | Step::Complete => return Ok(()),
        Step::Restart | Step::Refill => drop_table(session, &name).await?,
        Step::Create => {}
    }
    let mark = if job.schema.filled() {
        Mark::filling(job.data_seed, job.rows)
    } else {
        ready_mark(job.data_seed, job.rows)
    };
    let sql = job.schema.create(number, job.rows, &mark, job.charset.as_deref());
    session.execute(&sql).await.doing(&format!("creating {name}")).map(drop)
}

/// Tries a LOAD DATA LOCAL without a row; returns what the server says against it.
async fn refusal(server: &Liveness, schema: Schema, table: u32) -> Result<Option<String>> {
    // A session of its own: the driver keeps the stream for a later statement if the server
    // does not ask for it now.
    let session = open(server).await?;
    let _waits = server.waits(&session);
    let nothing = Box::pin(futures_util::stream::empty());
    match session.load_data(&text::load_data(schema, table, "latin1"), nothing).await {
        Ok((session, _)) => {
            session.close(COURTESY).await;
            Ok(None)
        }
        Err(refused @ Failure::Server { .. }) => Ok(Some(refused.to_string())),
        Err(lost) => Err(explain(&lost).context("trying LOAD DATA LOCAL")),
    }
}

#[cfg(test)]
mod tests {
    use super::Method::{Insert, LoadData};
    use super::*;
    use crate::error::Kind;

    const OFF: Option<&str> = Some("local_infile is OFF");

    fn method(
        fill: Option<Method>,
        refusal: Option<&str>,
        mode: u64,
        tables: u64,
        jobs: u64,
    ) -> Method {
        choose(fill, refusal, mode, tables, jobs).expect("a choice").method
    }

    #[test]
    fn load_data_is_taken_where_it_is_allowed_and_fast() {
        assert_eq!(method(None, None, 2, 1, 16), LoadData);
        assert_eq!(method(None, None, 1, 8, 16), LoadData);
        assert_eq!(method(None, None, 1, 1, 4), LoadData);
        assert_eq!(method(None, None, 1, 1, 8), Insert);
        assert_eq!(method(None, OFF, 2, 8, 8), Insert);
        assert_eq!(method(Some(Insert), None, 2, 8, 8), Insert);
        assert_eq!(method(Some(LoadData), None, 1, 1, 64), LoadData);
    }

    #[test]
    fn a_choice_says_why_and_how_to_get_the_faster_one() {
        let why = choose(None, OFF, 2, 8, 8).expect("a choice").why.expect("a reason");
        assert!(why.contains("local_infile is OFF") && why.contains("SET GLOBAL"), "{why}");
        let error = choose(Some(LoadData), OFF, 2, 8, 8).expect_err("refused");
        assert_eq!(error.kind(), Kind::Server);
        assert!(error.render().contains("SET GLOBAL local_infile"));
        assert_eq!(choose(None, None, 2, 8, 8).expect("a choice").why, None);
    }

    #[test]
    fn load_data_takes_turns_in_a_table_below_mode_2() {
        let crowd = |mode| choose(Some(LoadData), None, mode, 1, 4).expect("a choice").crowd;
        assert_eq!((crowd(0), crowd(1), crowd(2)), (2, 2, u32::MAX));
    }
}
