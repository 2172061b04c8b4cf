//! The sessions that make, fill and drop tables: their settings, locks against a second loadgen, hints.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::mysql::{
    Asked, Failure, Liveness, Session, Tried, class, hint, is_passing, limit_lock_wait, optional,
    query_single, quoted_text,
};
use crate::plan::value::JOBS_MAX;
use crate::progress::Progress;
use crate::stop::{COURTESY, within};
use crate::terms::{ErrorClass, units};
use crate::workload::{name_part, quoted};

pub(super) const AGAIN: &str = "the same command again completes the fill, or begins it anew where \
                                the data went away with a private server";

const CLOSING: Duration = Duration::from_millis(500);

const NO_SUCH_THREAD: u16 = 1094;

/// Upper limit on the end of a killed connection, which first rolls its statement back.
const ROLLBACK: Duration = Duration::from_mins(10);

pub(super) trait Doing<T> {
    fn doing(self, what: &str) -> Result<T>;
}

impl<T> Doing<T> for Asked<T> {
    fn doing(self, what: &str) -> Result<T> {
        self.map_err(|failure| explain(&failure).context(what))
    }
}

pub(super) fn explain(failure: &Failure) -> Error {
    let (code, message) = match failure {
        Failure::Lost(_) => return Error::server(failure.to_string()).hint(AGAIN),
        Failure::Server { code, message, .. } => (*code, message),
    };
    let error = Error::failed(failure.to_string()).add_hints(hint(code, message, Tried::Fill));
    let again = is_passing(code, message) || class(code) == ErrorClass::Ended;
    // A server's lock holders go on meanwhile: a later attempt may work.
    error.add_hints(again.then_some(AGAIN)).passing([1205, 1213].contains(&code))
}

/// Opens a session with settings for DDL and filling, whatever the server's defaults are.
pub(super) async fn open(server: &Liveness) -> Result<Session> {
    let mut session = Session::open(&server.link, None).await?;
    set_up_session(&mut session).await?;
    Ok(session)
}

/// Makes each statement last, and lets the session be idle: a dump is checked for minutes, or its writer is slow.
pub(super) async fn set_up_session(session: &mut Session) -> Result<()> {
    let sql = "SET SESSION autocommit = 1, wait_timeout = 604800";
    session.execute(sql).await.doing("setting up a connection")?;
    limit_lock_wait(session).await.doing("setting up a connection")
}

/// Names a lock of the server, quoted: that of the control session, or of a filling connection.
fn lock(database: &str, job: Option<u32>) -> String {
    let of_job = job.map_or_else(String::new, |job| format!(".{job}"));
    quoted_text(&format!("loadgen.{:016x}{of_job}", name_part(database)))
}

/// Takes a lock, if the server has locks (strict Galera has none). Returns the server's answer: `0` if
/// another holder keeps it for seconds, as a server notices late that a connection is gone.
async fn take(session: &mut Session, lock: &str) -> Result<Option<String>> {
    let got = query_single(session, &format!("SELECT GET_LOCK({lock}, 5)")).await;
    Ok(optional(got).doing("locking")?.flatten())
}

/// Takes the lock of a filling connection: it shows later clients that the server is still at its statement.
pub(super) async fn lock_connection(session: &mut Session, database: &str, job: u32) -> Result<()> {
    take(session, &lock(database, Some(job))).await.map(drop)
}

/// Opens the session that lasts to the end. Its lock keeps a second loadgen from the same tables.
pub(super) async fn control(server: &Liveness, progress: &mut Progress) -> Result<Session> {
    let database = &server.link.target.database;
    if database.is_empty() {
        return Err(Error::usage("no database is named").hint("--database sbtest"));
    }
    let mut session = open(server).await?;
    let own = lock(database, None);
    if take(&mut session, &own).await?.as_deref() == Some("0") {
        let holder = query_single(&mut session, &format!("SELECT IS_USED_LOCK({own})")).await;
        let holder = holder.ok().flatten().unwrap_or_else(|| "?".to_owned());
        return Err(Error::server(format!(
            "another loadgen fills or drops the tables of {} (connection {holder} of the server)",
            quoted(database)
        ))
        .hint(format!("wait for it; if its machine is gone: KILL {holder}")));
    }
    end_dead(&mut session, database, progress).await?;
    Ok(session)
}

/// Returns None without tables, or if the first lock is not ours: the server lacks such locks, or a proxy has others.
async fn list_busy(control: &mut Session, database: &str) -> Asked<Option<String>> {
    let all = std::iter::once(None).chain((0..JOBS_MAX).map(Some));
    let holders: Vec<String> =
        all.map(|n| format!("IS_USED_LOCK({})", lock(database, n))).collect();
    // One column: the driver keeps a buffer for each, which later grows to the size of a statement.
    let sql = format!("SELECT CONCAT_WS(',', {})", holders.join(", "));
    let held = optional(query_single(control, &sql).await)?.flatten();
    let own = format!("{},", control.id());
    Ok(held.and_then(|held| held.strip_prefix(&own).map(str::to_owned)))
}

/// Ends connections. Returns true if the server still knew one of them.
async fn kill(control: &mut Session, connections: &str) -> Asked<bool> {
    let mut known = false;
    for id in connections.split(',') {
        match control.execute(&format!("KILL {id}")).await {
            Err(Failure::Server { code: NO_SUCH_THREAD, .. }) => {}
            killed => known |= optional(killed).map(|_| true)?,
        }
    }
    Ok(known)
}

/// Ends what our failed fill left running: a server builds an index on without its client. Ignores errors.
pub(super) async fn give_up(mut control: Session, database: &str) {
    let killing = async {
        if let Ok(Some(others)) = list_busy(&mut control, database).await {
            let _ = kill(&mut control, &others).await;
        }
    };
    let _ = within(COURTESY, killing).await;
}

/// Ends the connections of a client that is gone: a server notices only after the statement. Nobody else has
/// their locks while the control session holds its own.
async fn end_dead(control: &mut Session, database: &str, progress: &mut Progress) -> Result<()> {
    let (began, mut reported) = (Instant::now(), false);
    while let Some(others) = list_busy(control, database).await.doing("locking")? {
        let connections = others.replace(',', ", ");
        if began.elapsed() > ROLLBACK {
            return Err(Error::server(format!(
                "the server still runs statements of an earlier loadgen (connection \
                 {connections}), {} after KILL",
                units::duration(ROLLBACK)
            ))
            .hint("SHOW PROCESSLIST tells when it is done; then the same command again"));
        }
        if began.elapsed() > CLOSING {
            if !std::mem::replace(&mut reported, true) {
                let what = "ending what an earlier loadgen left at work";
                progress.note(&format!("{what}: connection {connections}"));
                progress.restart();
            }
            // A connection that the server does not know does no work, even if its lock has a holder.
            if !kill(control, &others).await.doing("ending a connection")? {
                return Ok(());
            }
        }
        progress.update(|| format!("waiting for its end, {} s", began.elapsed().as_secs()));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

pub(super) async fn drop_table(session: &mut Session, name: &str) -> Result<()> {
    let sql = format!("DROP TABLE {}", quoted(name));
    session.execute(&sql).await.doing(&format!("dropping {name}")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canned::{Answer, Canned, Listen, Script};
    use crate::error::Kind;
    use crate::mysql::{ConnectOptions, ServerLink};
    use crate::stop::Stop;

    fn server(code: u16) -> Asked<()> {
        Err(Failure::Server { code, sqlstate: "HY000".to_owned(), message: "no".to_owned() })
    }

    #[test]
    fn a_failure_says_what_to_do() {
        for (code, hint) in [(1114, "disk"), (1836, "read-only"), (1142, "CREATE"), (1213, "again")]
        {
            let error = server(code).doing("filling sbtest3").expect_err("failed");
            assert_eq!(error.kind(), Kind::Failed);
            assert!(error.to_string().starts_with("filling sbtest3: error"), "{error}");
            assert!(error.render().contains(hint), "{}", error.render());
        }
        let lost = explain(&Failure::lost("broken pipe"));
        assert_eq!(lost.kind(), Kind::Server);
        assert!(lost.render().contains(AGAIN));
    }

    #[test]
    fn session_may_be_idle_for_a_week_when_others_work() {
        let seconds = 7 * 24 * 60 * 60;
        let asked = format!("wait_timeout = {seconds}");
        let answers = vec![Answer::error(asked, 1231, "42000", "it asks for a week")];
        let server = Canned::start(Script { answers, ..Script::default() }, Listen::Port(0));
        let server = server.expect("a free port");
        let target = ConnectOptions::canned(server.port());
        let link = ServerLink::to(target, &Stop::default()).expect("options");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let opened = runtime.expect("a runtime").block_on(open(&Liveness::new(&link)));
        let error = opened.map(drop).expect_err("the server refuses it");
        assert!(error.to_string().contains("a week"), "{error}");
    }
}
