//! Everything before the first row: what is there, what is in the way, which way to fill, and
//! empty tables with their marks.

use std::time::{Duration, Instant};

use mysql_async::Opts;

use super::fault::explain;
use super::method::{Choice, Fill, choose};
use super::survey::{Step, Steps, Survey, same_charset};
use super::worker::{Unfinished, open};
use super::{JOBS_MAX, Job, ready_mark, text};
use crate::error::{Error, Result};
use crate::mysql::control::{one, optional, pairs};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::server;
use crate::mysql::session::{Failure, Session, quoted_text};
use crate::plan::{limits, units};
use crate::progress::Progress;
use crate::workload::random::name_part;
use crate::workload::table::{Mark, quoted};

/// The tables are there; some have no rows yet, or not all.
pub(super) struct Ready {
    /// Holds the lock against a second prepare.
    pub(super) control: Session,
    /// What is to be filled; empty if all is finished.
    pub(super) tables: Vec<Unfinished>,
    /// How.
    pub(super) choice: Choice,
    /// Connections.
    pub(super) jobs: u32,
    /// The largest packet that both ends take, bytes.
    pub(super) packet: usize,
}

/// What the server says of itself.
struct Facts {
    packet: usize,
    local_infile: bool,
    autoinc_mode: u64,
}

/// See the module.
pub(super) async fn set_up(
    target: &ConnectOptions,
    opts: &Opts,
    job: &Job,
    liveness: &Liveness,
    progress: &mut Progress,
) -> Result<Ready> {
    let mut control = control(target, opts, progress).await?;
    let waits = liveness.waits(&control);
    if let Some(warning) = server::exposure(&mut control, target).await? {
        progress.warn(&warning.to_string());
    }
    let job = &Job { charset: charset(&mut control, job).await?, ..job.clone() };
    let survey = Survey::take(&mut control, &target.database, job.schema).await?;
    let steps = survey.decide(job)?;
    for note in survey.notes(&steps, job) {
        progress.note(&note);
    }
    create(&mut control, &steps, job, progress).await?;
    let tables: Vec<Unfinished> = steps
        .iter()
        .filter(|(_, step)| **step != Step::Keep && job.schema.filled())
        .map(|(number, step)| Unfinished { number: *number, begun: *step == Step::Complete })
        .collect();
    let facts = facts(&mut control).await?;
    let packet = facts.packet.min(opts.max_allowed_packet().unwrap_or(usize::MAX));
    let jobs = job.jobs.unwrap_or_else(default_jobs);
    drop(waits);
    let refusal = match tables.first() {
        Some(first) if job.fill != Fill::Insert => {
            refusal(&facts, target, opts, job, first.number, liveness).await?
        }
        _ => None,
    };
    let count = tables.len() as u64;
    let choice = choose(job.fill, refusal.as_deref(), facts.autoinc_mode, count, u64::from(jobs))?;
    let jobs = u64::from(jobs).min(count.saturating_mul(u64::from(choice.crowd))) as u32;
    Ok(Ready { control, tables, choice, jobs, packet })
}

/// Connections by default: two a core keep the server busy while one of them makes rows, and
/// more than sixteen fight over the server's locks.
fn default_jobs() -> u32 {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    (2 * cores as u32).clamp(2, 16)
}

/// The name of a lock of the server's, quoted: that of the control session, or that of a
/// connection that fills.
fn lock(database: &str, job: Option<u32>) -> String {
    let of_job = job.map_or_else(String::new, |job| format!(".{job}"));
    quoted_text(&format!("loadgen.{:016x}{of_job}", name_part(database)))
}

/// Takes the lock of a connection that fills: whoever comes after a client that was killed sees
/// by it that the server is still at its statement. Servers without locks go without.
pub(super) async fn claim(
    session: &mut Session,
    database: &str,
    job: u32,
) -> std::result::Result<(), Failure> {
    let sql = format!("SELECT GET_LOCK({}, 5)", lock(database, Some(job)));
    optional(one(session, &sql).await).map(|_| ())
}

/// A connection that was closed just now has gone after so long.
const CLOSING: Duration = Duration::from_millis(500);

/// Ends the connections of a client that is gone: a server notices only after the statement. Nobody
/// else has their locks as long as the control session has its own.
async fn end_the_dead(
    control: &mut Session,
    database: &str,
    progress: &mut Progress,
) -> Result<()> {
    let all = std::iter::once(None).chain((0..JOBS_MAX).map(Some));
    let holders: Vec<String> =
        all.map(|job| format!("IS_USED_LOCK({})", lock(database, job))).collect();
    // Each column of an answer would leave a buffer with the driver, which later grows to the size
    // of a statement.
    let sql = format!("SELECT CONCAT_WS(',', {})", holders.join(", "));
    let (began, mut said) = (Instant::now(), false);
    loop {
        let held = optional(one(control, &sql).await).map_err(|f| explain(&f, "locking"))?;
        let held = held.flatten().unwrap_or_default();
        let mut ids = held.split(',').filter_map(|id| id.parse::<u64>().ok());
        // The first lock is our own: else the numbers are nobody's, or those behind a proxy.
        let known = ids.next() == Some(u64::from(control.id()));
        let ids: Vec<u64> = ids.collect();
        if !known || ids.is_empty() {
            return Ok(());
        }
        let shown: Vec<String> = ids.iter().map(u64::to_string).collect();
        let shown = shown.join(", ");
        if began.elapsed() > limits::SILENCE {
            return Err(Error::server(format!(
                "the server is still at work for an earlier loadgen (connection {shown}), {} after \
                 KILL",
                units::duration(limits::SILENCE)
            ))
            .hint("SHOW PROCESSLIST tells when it is done; then the same command again"));
        }
        if began.elapsed() > CLOSING {
            if !said {
                let text =
                    format!("ending what an earlier loadgen left at work: connection {shown}");
                progress.note(&text);
                progress.restart();
                said = true;
            }
            for id in &ids {
                // It may have ended just now.
                optional(control.execute(&format!("KILL {id}")).await)
                    .map_err(|f| explain(&f, "ending a connection"))?;
            }
        }
        progress.update(|| format!("waiting for its end, {} s", began.elapsed().as_secs()));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The session that lasts to the end. It holds a lock of the server's, so that two of us never
/// fill or drop the same tables; the lock goes with the connection.
pub(super) async fn control(
    target: &ConnectOptions,
    opts: &Opts,
    progress: &mut Progress,
) -> Result<Session> {
    if target.database.is_empty() {
        return Err(Error::usage("no database is named").hint("--database sbtest"));
    }
    let mut session = open(target, opts).await?;
    let lock = lock(&target.database, None);
    // A server notices late that the connection of the last command is gone, so wait for some
    // seconds. Servers that have no such locks (strict Galera) answer with an error or NULL.
    let got = optional(one(&mut session, &format!("SELECT GET_LOCK({lock}, 5)")).await)
        .map_err(|f| explain(&f, "locking"))?;
    if got.flatten().as_deref() == Some("0") {
        let holder = one(&mut session, &format!("SELECT IS_USED_LOCK({lock})")).await;
        let holder = holder.ok().flatten().unwrap_or_else(|| "?".to_owned());
        return Err(Error::server(format!(
            "another loadgen fills or drops the tables of {} (connection {holder} of the server)",
            quoted(&target.database)
        ))
        .hint(format!("wait for it; if its machine is gone: KILL {holder}")));
    }
    end_the_dead(&mut session, &target.database, progress).await?;
    Ok(session)
}

async fn facts(session: &mut Session) -> Result<Facts> {
    let sql = "SHOW VARIABLES WHERE Variable_name IN \
               ('max_allowed_packet', 'local_infile', 'innodb_autoinc_lock_mode')";
    let found = pairs(session, sql).await.map_err(|f| explain(&f, "reading variables"))?;
    let number = |name: &str| found.get(name).and_then(|v| v.parse::<u64>().ok());
    Ok(Facts {
        // Without an answer the smallest default that any of the servers has.
        packet: number("max_allowed_packet").unwrap_or(1 << 20) as usize,
        local_infile: found.get("local_infile").is_some_and(|v| v == "ON" || v == "1"),
        // Without an answer the careful assumption.
        autoinc_mode: number("innodb_autoinc_lock_mode").unwrap_or(1),
    })
}

/// The character set as the server spells it.
async fn charset(session: &mut Session, job: &Job) -> Result<Option<String>> {
    let Some(wanted) = &job.charset else { return Ok(None) };
    let sql = "SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS ORDER BY 1";
    let rows = session.query(sql).await.map_err(|f| explain(&f, "listing character sets"))?;
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
    steps: &Steps,
    job: &Job,
    progress: &mut Progress,
) -> Result<()> {
    for (number, step) in steps {
        let mark = if job.schema.filled() {
            Mark::filling(job.data_seed, job.rows)
        } else {
            ready_mark(job.data_seed, job.rows)
        };
        let named = job.schema.name(*number);
        progress.update(|| format!("creating {named} of {}", job.tables));
        if matches!(step, Step::Restart | Step::Refill) {
            drop_table(session, &named).await?;
        }
        if matches!(step, Step::Create | Step::Restart | Step::Refill) {
            let sql = job.schema.create(*number, job.rows, &mark, job.charset.as_deref());
            let doing = format!("creating {named}");
            session.execute(&sql).await.map_err(|f| explain(&f, &doing))?;
        }
    }
    Ok(())
}

/// DROP TABLE.
pub(super) async fn drop_table(session: &mut Session, named: &str) -> Result<()> {
    let sql = format!("DROP TABLE {}", quoted(named));
    let dropped = session.execute(&sql).await;
    dropped.map(|_| ()).map_err(|f| explain(&f, &format!("dropping {named}")))
}

/// Why this server takes no LOAD DATA LOCAL, if so: its variable, or what it says to a try
/// without a row.
async fn refusal(
    facts: &Facts,
    target: &ConnectOptions,
    opts: &Opts,
    job: &Job,
    table: u32,
    liveness: &Liveness,
) -> Result<Option<String>> {
    if !facts.local_infile {
        return Ok(Some("local_infile is OFF".to_owned()));
    }
    // A session of its own: the driver keeps the stream for a later statement if the server
    // does not ask for it now.
    let session = open(target, opts).await?;
    let _waits = liveness.waits(&session);
    let nothing = Box::pin(futures_util::stream::empty());
    match session.load_data(&text::load_data(job.schema, table), nothing).await {
        Ok((session, _)) => {
            session.close(crate::plan::limits::COURTESY).await;
            Ok(None)
        }
        Err(refused @ Failure::Server { .. }) => Ok(Some(refused.to_string())),
        Err(lost) => Err(explain(&lost, "trying LOAD DATA LOCAL")),
    }
}
