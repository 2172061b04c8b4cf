//! The connections of clients: opened with their statements prepared, opened again, closed.

use std::time::Duration;

use tokio::task::JoinSet;

use super::job::{Job, Serial};
use super::setup::{ClientAction, EndReason, StepSetup, ThreadEvent};
use crate::error::{Error, Result, clip};
use crate::mysql::Failure;
use crate::mysql::wire::{Inbox, LeanSession};
use crate::plan::{limits, units};
use crate::stop::within;
use crate::workload::{Stream, Workload, seed_of};

/// The statements around those of a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Control {
    Begin,
    Commit,
    Rollback,
}

impl Control {
    pub(super) fn sql(self) -> &'static str {
        ["BEGIN", "COMMIT", "ROLLBACK"][self as usize]
    }
}

/// The longest first pause between two attempts.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest pause between two attempts: it limits how precisely recovery is measured.
const PAUSE_MAX: Duration = Duration::from_secs(1);
const ID_MAX: usize = 40;

pub(crate) struct Connection {
    pub session: LeanSession,
    pub handles: Handles,
    /// By table of this client; empty where no statement numbers rows.
    pub serials: Vec<Serial>,
}

/// The server's numbers of what a client has prepared.
#[derive(Default)]
pub(crate) struct Handles {
    /// By table of the client, then by prepared statement.
    pub statements: Vec<u32>,
    /// BEGIN and COMMIT, as far as the server has prepared them.
    pub control: Vec<Option<u32>>,
}

/// A session that is over, and what is to be closed before it.
pub(crate) struct ClosedSession {
    session: LeanSession,
    handles: Vec<u32>,
}

impl ClosedSession {
    pub(super) fn new(session: LeanSession, handles: Handles, closes: bool) -> ClosedSession {
        let control = handles.control.into_iter().flatten();
        let all = handles.statements.into_iter().chain(control).filter(|_| closes);
        ClosedSession { session, handles: all.collect() }
    }
}

impl Connection {
    pub(crate) fn into_closed(self) -> ClosedSession {
        ClosedSession::new(self.session, self.handles, false)
    }
}

pub(crate) async fn open(setup: &StepSetup, inbox: &Inbox, client: u32) -> Result<Connection> {
    let (job, limit) = (&setup.job, setup.link.target.connect_timeout);
    let _permit = setup.logins.acquire().await.expect("nobody closes it");
    // Boxed: most clients wait for their turn, without room for a log-in.
    let charset = job.plan.charset.as_deref();
    let mut session = if job.plan.rules.raw_refusals {
        let opened = Box::pin(LeanSession::open_again(&setup.link, inbox, charset)).await;
        opened.map_err(|failure| report_refusal(setup, ClientAction::Connect, failure))?
    } else {
        Box::pin(LeanSession::open(&setup.link, inbox, charset)).await?
    };
    let preparing = Box::pin(async {
        let handles = prepare(job, client, &mut session).await.map_err(|(sql, failure)| {
            if job.plan.rules.raw_refusals {
                return report_refusal(setup, ClientAction::Prepare, failure);
            }
            not_prepared(&job.plan.workload, (sql, failure))
        })?;
        let mut serials = Vec::new();
        for table in job.tables_of(client).filter(|_| job.serial) {
            let from_one = job.plan.rules.ids_from_one;
            let max = if from_one { 0 } else { id_max(job, &mut session, table).await? };
            serials.push(job.serial(client, max));
        }
        Ok(Connection { session, handles, serials })
    });
    within(limit, preparing).await.unwrap_or_else(|| {
        let error = Error::server(too_slow(limit)).hint("--connect-timeout waits longer");
        Err(error.passing(true))
    })
}

/// Tells who shows it what a client was refused, and makes the error of it.
fn report_refusal(setup: &StepSetup, action: ClientAction, failure: Failure) -> Error {
    let error = Error::server(failure.to_string());
    setup.tell(ThreadEvent::Ending(EndReason::Client(action, failure)));
    error
}

/// Opens a client's lost connection again, with its statements prepared.
pub(super) async fn open_again(
    setup: &StepSetup,
    inbox: &Inbox,
    client: u32,
) -> Result<(LeanSession, Handles), Failure> {
    let (job, limit) = (&setup.job, setup.link.target.connect_timeout);
    let _permit = setup.logins.acquire().await.expect("nobody closes it");
    let charset = job.plan.charset.as_deref();
    let mut session = LeanSession::open_again(&setup.link, inbox, charset).await?;
    match within(limit, prepare(job, client, &mut session)).await {
        Some(Ok(handles)) => Ok((session, handles)),
        Some(Err((_, failure))) => Err(failure),
        None => Err(Failure::Lost(too_slow(limit))),
    }
}

/// The SQL that the server did not take, and why.
type Unprepared = (String, Failure);
const PARSE_ERROR: u16 = 1064;
/// A statement that the server runs as text only, as MySQL does BEGIN.
const UNPREPARABLE: u16 = 1295;
/// The flag, and the key of a profile.
const AS_TEXT: &str = "--statements text, in a profile statements = \"text\"";

fn too_slow(limit: Duration) -> String {
    format!("no answer within {} while preparing statements", units::duration(limit))
}

fn statement_error((sql, failure): Unprepared) -> Error {
    let text = format!("{sql}: {failure}");
    // The author of the SQL can correct it; the server is not at fault.
    let unparsed = matches!(failure, Failure::Server { code: PARSE_ERROR, .. });
    let error = if unparsed { Error::usage(text) } else { Error::server(text) };
    error.passing(failure.may_pass())
}

/// Makes the error of a statement that was not prepared, with the way to send it all the same.
fn not_prepared(workload: &Workload, unprepared: Unprepared) -> Error {
    let unpreparable = matches!(unprepared.1, Failure::Server { code: UNPREPARABLE, .. });
    let refused = matches!(unprepared.1, Failure::Server { .. });
    let error = statement_error(unprepared);
    match () {
        () if unpreparable => error.hint(format!("{AS_TEXT}: the server does not prepare it")),
        () if refused && workload.defines() => error
            .hint(format!("{AS_TEXT}: all statements are prepared before the first of them runs")),
        () => error,
    }
}

async fn prepare(job: &Job, client: u32, session: &mut LeanSession) -> Result<Handles, Unprepared> {
    let mut handles = Vec::new();
    for table in job.tables_of(client) {
        for sql in job.prepared.iter().map(|sql| job.with_table(sql, table)) {
            match session.prepare(&sql).await {
                Ok(handle) => handles.push(handle),
                Err(failure) => return Err((sql, failure)),
            }
        }
    }
    let mut control = Vec::new();
    let begins = !job.prepared.is_empty() && job.transactions.iter().any(|t| t.begin);
    let both = [Control::Begin, Control::Commit].map(Control::sql);
    for sql in both.into_iter().filter(|_| begins && job.plan.rules.prepare_all) {
        match session.prepare(sql).await {
            Ok(handle) => control.push(Some(handle)),
            Err(Failure::Server { code: UNPREPARABLE, .. }) => control.push(None),
            Err(failure) => return Err((sql.to_owned(), failure)),
        }
    }
    Ok(Handles { statements: handles, control })
}

/// Reads the largest id of a table: new rows come after it. Nobody writes before all are ready.
async fn id_max(job: &Job, session: &mut LeanSession, table: u32) -> Result<u64> {
    if job.tables.count == 0 {
        return Ok(0);
    }
    let sql = job.with_table("SELECT MAX(id) FROM {table}", table);
    session.run_text(&sql).await.map_err(|failure| statement_error((sql.clone(), failure)))?;
    let Some(cell) = session.first() else { return Ok(0) };
    session.number().ok_or_else(|| {
        let text = clip(&String::from_utf8_lossy(cell), ID_MAX);
        Error::server(format!("{sql}: '{text}' is no number"))
    })
}

pub(crate) async fn close_all(sessions: Vec<ClosedSession>) {
    let mut goodbyes = JoinSet::new();
    for ClosedSession { session, handles } in sessions {
        goodbyes.spawn_local(session.close_with(handles, limits::COURTESY));
    }
    while goodbyes.join_next().await.is_some() {}
}

/// Gives the pauses of one client in one outage: growing, each between a half and the whole of twice
/// the one before, so that those who lost a server together do not come back together.
pub(crate) fn pauses(client: u32, reconnects: u64) -> impl FnMut() -> Duration {
    let mut jitter = Stream::new(seed_of(&[u64::from(client), reconnects]));
    let mut most = PAUSE_FIRST;
    move || {
        let half = most / 2;
        most = (most * 2).min(PAUSE_MAX);
        half + Duration::from_nanos(jitter.below(half.as_nanos() as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ_between_clients() {
        let of = |client| {
            let mut pauses = pauses(client, 0);
            (0..12).map(|_| pauses()).collect::<Vec<_>>()
        };
        let (one, other) = (of(0), of(1));
        assert_ne!(one, other);
        let mut most = PAUSE_FIRST;
        for pause in one {
            assert!(pause >= most / 2 && pause <= most, "{pause:?} of {most:?}");
            most = (most * 2).min(PAUSE_MAX);
        }
        assert_eq!(most, PAUSE_MAX);
    }
}
