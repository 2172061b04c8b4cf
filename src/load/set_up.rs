//! Everything before the first row: what is in the way, which way to fill, and empty tables with
//! their marks.

use std::fmt;

use mysql_async::Opts;

use super::Job;
use super::connect::{Doing, control, drop_table, explain, open};
use super::tables::{Step, Survey, same_charset};
use super::text;
use crate::error::{Error, Result};
use crate::mysql::control::pairs;
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::server::exposure;
use crate::mysql::session::{Failure, Session};
use crate::progress::Progress;
use crate::stop::COURTESY;
use crate::workload::table::Mark;

/// How rows get into the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// LOAD DATA LOCAL INFILE.
    LoadData,
    /// INSERT of many rows.
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

/// A method, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) method: Method,
    /// Connections at most on one table.
    pub(super) crowd: u32,
    /// Why not the other, or how to get the faster one.
    pub(super) why: Option<String>,
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

/// What the server says of itself.
pub(super) struct Facts {
    /// The largest packet that it takes, bytes.
    pub(super) packet: usize,
    pub(super) local_infile: bool,
    autoinc_mode: u64,
}

impl Facts {
    /// Asks it; without an answer the most careful assumption holds, of packets the smallest default
    /// that any of the servers has.
    pub(super) async fn read(session: &mut Session) -> Result<Facts> {
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

/// A table that is not finished.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unfinished {
    pub(super) number: u32,
    /// Whether an interrupted fill left rows in it.
    pub(super) begun: bool,
}

/// The tables are there; some have no rows yet, or not all.
pub(super) struct Ready {
    /// Holds the lock against a second prepare.
    pub(super) control: Session,
    /// What is to be filled; empty if all is finished.
    pub(super) tables: Vec<Unfinished>,
    pub(super) choice: Choice,
    /// Connections.
    pub(super) jobs: u32,
    /// The largest packet that both ends take, bytes.
    pub(super) packet: usize,
}

/// Connects, looks, decides, and makes the tables that are not there.
pub(super) async fn set_up(
    target: &ConnectOptions,
    opts: &Opts,
    job: &Job,
    liveness: &Liveness,
    progress: &mut Progress,
) -> Result<Ready> {
    let mut control = control(target, opts, progress).await?;
    let waits = liveness.waits(&control);
    if let Some(warning) = exposure(&mut control, target).await? {
        progress.warn(&warning.to_string());
    }
    let job = &Job { charset: charset(&mut control, job).await?, ..job.clone() };
    let survey = Survey::take(&mut control, &target.database, job.schema).await?;
    let steps = survey.decide(job)?;
    for note in survey.notes(&steps, job) {
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
        Some(first) => refusal(target, opts, job, first.number, liveness).await?,
        None => None,
    };
    let (jobs, count) = (job.jobs.unwrap_or_else(default_jobs), tables.len() as u64);
    let choice = choose(job.fill, refusal.as_deref(), facts.autoinc_mode, count, u64::from(jobs))?;
    let jobs = u64::from(jobs).min(count.saturating_mul(u64::from(choice.crowd))) as u32;
    let packet = facts.packet.min(opts.max_allowed_packet().unwrap_or(usize::MAX));
    Ok(Ready { control, tables, choice, jobs, packet })
}

/// Connections by default: two a core keep the server busy while one of them makes rows, and
/// more than sixteen fight over the server's locks.
fn default_jobs() -> u32 {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    (2 * cores as u32).clamp(2, 16)
}

/// Finds the character set as the server spells it.
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
        super::ready_mark(job.data_seed, job.rows)
    };
    let sql = job.schema.create(number, job.rows, &mark, job.charset.as_deref());
    session.execute(&sql).await.doing(&format!("creating {name}")).map(drop)
}

/// Tries a LOAD DATA LOCAL without a row; returns what the server says against it.
async fn refusal(
    target: &ConnectOptions,
    opts: &Opts,
    job: &Job,
    table: u32,
    liveness: &Liveness,
) -> Result<Option<String>> {
    // A session of its own: the driver keeps the stream for a later statement if the server
    // does not ask for it now.
    let session = open(target, opts).await?;
    let _waits = liveness.waits(&session);
    let nothing = Box::pin(futures_util::stream::empty());
    match session.load_data(&text::load_data(job.schema, table, "latin1"), nothing).await {
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
