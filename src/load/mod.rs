//! Create, fill, index, verify and drop the tables.
//!
//! ```text
//! survey ─▶ decide ─▶ create (state=filling) ─▶ fill in chunks ─▶ index ─▶ check ─▶ state=ready
//! ```
//!
//! The mark in a table's COMMENT is the whole state: whatever ends a fill, the next one finds
//! there what was meant, counts what is in, and fills the rest. `docs/prepare.md` has the
//! measurements behind the choices.

mod connect;
pub mod dump;
mod fill;
pub(crate) mod reload;
mod tables;

use std::sync::{Arc, Mutex};

use self::connect::{AGAIN, Doing, JOBS_MAX, control, drop_table, explain, open};
use self::fill::{Chunks, Filling, chunk_rows, fill, load_data};
use self::tables::{Step, decide, notes, same_charset};
use crate::error::{Error, Kind, Result};
use crate::mysql::{Failure, Liveness, ServerLink, Session, discover, exposure, pairs};
use crate::plan::experiment::{Dataset, Method};
use crate::progress::Progress;
use crate::stop::COURTESY;
use crate::terms::units;
use crate::workload::{Mark, ROWS_MAX, Schema, TABLES_MAX};

pub use self::tables::{Cleaned, Numbers, cleanup, marked, named};

/// Makes the mark of a table that is finished now. Without a source of random bits it has no identity,
/// and verify says that it cannot judge it.
fn ready_mark(seed: u32, rows: u64) -> Mark {
    Mark::ready(seed, rows, getrandom::u32().ok())
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
    /// How the rows went in; None if all was finished before.
    pub method: Option<Method>,
}

/// Makes the tables and fills them, or completes what an interrupted fill left. Runs on a
/// `current_thread` runtime; every connection of the fill gets a thread of its own.
pub async fn prepare(
    link: &ServerLink,
    job: &Dataset,
    progress: &mut Progress,
) -> Result<Prepared> {
    check(job)?;
    let server = Arc::new(Liveness::new(link));
    let ready = server.during(set_up(job, &server, progress)).await;
    let (control, filling) = ready.map_err(|e| match e.kind() {
        Kind::Interrupted | Kind::Terminated => e.hint(AGAIN),
        _ => e,
    })?;
    if let Some(filling) = filling {
        return fill(filling, control, progress).await;
    }
    progress.note(&if job.schema.filled() {
        "nothing to do (--force fills the tables again)".to_owned()
    } else {
        format!("{} tables, empty: the workload fills them", job.tables)
    });
    control.close(COURTESY).await;
    Ok(Prepared { tables: job.tables, ..Prepared::default() })
}

fn check(job: &Dataset) -> Result<()> {
    let filled = job.schema.filled();
    if !filled && job.rows > 0 {
        let text = format!("--rows, but tables of the schema {} stay empty", job.schema);
        return Err(Error::usage(text).hint("leave --rows away"));
    }
    for (flag, n, max) in [
        ("--tables", u64::from(job.tables), u64::from(TABLES_MAX)),
        ("--rows", job.rows.max(u64::from(!filled)), ROWS_MAX),
        ("--jobs", u64::from(job.jobs.unwrap_or(1)), u64::from(JOBS_MAX)),
    ] {
        if !(1..=max).contains(&n) {
            let max = units::count(max);
            return Err(Error::usage(format!("{flag} {n} is not within 1 to {max}")));
        }
    }
    Ok(())
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

/// Makes the tables that are not there; returns the session that holds the lock against a second
/// prepare, and what is to be filled.
async fn set_up(
    job: &Dataset,
    server: &Arc<Liveness>,
    progress: &mut Progress,
) -> Result<(Session, Option<Filling>)> {
    let mut control = control(server, progress).await?;
    let waits = server.waits(&control);
    if let Some(warning) = exposure(&mut control, &server.link.target).await? {
        progress.warn(&warning.to_string());
    }
    let job = Dataset { charset: charset(&mut control, job).await?, ..job.clone() };
    let found = discover(&mut control, &server.link.target.database, job.schema).await?;
    let steps = decide(&found, &job)?;
    let sql = "SHOW VARIABLES WHERE Variable_name IN ('character_set_database', \
               'max_allowed_packet', 'local_infile', 'innodb_autoinc_lock_mode')";
    let variables = pairs(&mut control, sql).await.doing("reading variables")?;
    let value = |name: &str| variables.get(name).map_or("", String::as_str);
    for note in notes(&found, value("character_set_database"), &steps, &job) {
        progress.note(&note);
    }
    let mut tables = Vec::new();
    for (number, step) in steps {
        create(&mut control, number, step, &job, progress).await?;
        if step != Step::Keep && job.schema.filled() {
            tables.push((number, step == Step::Complete));
        }
    }
    drop(waits);
    let Some((first, _)) = tables.first() else { return Ok((control, None)) };
    let refusal = match value("local_infile") {
        _ if job.fill == Some(Method::Insert) => None,
        "ON" | "1" => refusal(server, job.schema, *first).await?,
        _ => Some("local_infile is OFF".to_owned()),
    };
    let (jobs, count) = (job.jobs.unwrap_or_else(default_jobs), tables.len() as u64);
    // Without an answer the most careful assumption holds, of packets the smallest default that any of
    // the servers has.
    let autoinc_mode = value("innodb_autoinc_lock_mode").parse().unwrap_or(1);
    let packet = value("max_allowed_packet").parse().unwrap_or(1 << 20);
    let packet = packet.min(server.link.opts.max_allowed_packet().unwrap_or(usize::MAX));
    let choice = choose(job.fill, refusal.as_deref(), autoinc_mode, count, u64::from(jobs))?;
    let jobs = u64::from(jobs).min(count.saturating_mul(u64::from(choice.crowd)));
    let chunk_rows = chunk_rows(count, job.rows, jobs);
    let chunks = Mutex::new(Chunks::new(tables.len(), job.rows, chunk_rows, choice.crowd));
    let (server, jobs, so_far) = (Arc::clone(server), jobs as u32, Mutex::default());
    Ok((control, Some(Filling { server, job, tables, choice, jobs, packet, chunks, so_far })))
}

/// Connections by default: two a core keep the server busy while one of them makes rows, and
/// more than sixteen fight over the server's locks.
fn default_jobs() -> u32 {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    (2 * cores as u32).clamp(2, 16)
}

async fn charset(session: &mut Session, job: &Dataset) -> Result<Option<String>> {
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
    job: &Dataset,
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
    match session.load_data(&load_data(schema, table, "latin1"), nothing).await {
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
