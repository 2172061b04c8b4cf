//! Connections of a step: opened before it, and again where the policy has lost ones reopened.

use std::time::Duration;

use mysql_async::Opts;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use super::job::{Job, Serial};
use crate::error::{Error, Result, clip};
use crate::mysql::{ConnectOptions, Failure, Session};
use crate::plan::{limits, units};
use crate::stop::within;
use crate::workload::random::{Stream, seed_of};

/// The first pause between two attempts is at most so long.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// And no pause is longer: the time to the first success is measured with it.
const PAUSE_MAX: Duration = Duration::from_secs(1);
const ID_MAX: usize = 40;

pub(crate) struct Connector {
    pub target: ConnectOptions,
    pub opts: Opts,
    /// Bounds the logins under way over all threads.
    pub logins: Semaphore,
    pub reopened: Notify,
}

pub(crate) struct Connection {
    pub session: Session,
    /// Handle of a statement: by table of this client, then by prepared statement.
    pub handles: Vec<usize>,
    /// By table of this client; empty where no statement numbers rows.
    pub serials: Vec<Serial>,
}

impl Connector {
    pub(crate) async fn open(&self, job: &Job, client: u32) -> Result<Connection> {
        let _permit = self.logins.acquire().await.expect("nobody closes it");
        let charset = job.plan.charset.as_deref();
        let mut session = Session::open(&self.target, &self.opts, charset).await?;
        let preparing = async {
            let handles = prepare(job, client, &mut session).await.map_err(of_statement)?;
            let mut serials = Vec::new();
            for table in job.tables_of(client).filter(|_| job.serial) {
                serials.push(job.serial(client, id_max(job, &mut session, table).await?));
            }
            Ok(Connection { session, handles, serials })
        };
        let limit = self.target.connect_timeout;
        within(limit, preparing).await.unwrap_or_else(|| {
            let error = Error::server(too_slow(limit)).hint("--connect-timeout waits longer");
            Err(error.passing(true))
        })
    }

    /// Opens a client's lost connection again, with its statements prepared.
    pub(crate) async fn reopen(
        &self,
        job: &Job,
        client: u32,
    ) -> std::result::Result<(Session, Vec<usize>), Failure> {
        let _permit = self.logins.acquire().await.expect("nobody closes it");
        let charset = job.plan.charset.as_deref();
        let mut session = Session::open_again(&self.target, &self.opts, charset).await?;
        let limit = self.target.connect_timeout;
        match within(limit, prepare(job, client, &mut session)).await {
            Some(Ok(handles)) => Ok((session, handles)),
            Some(Err((_, failure))) => Err(failure),
            None => Err(Failure::Lost(too_slow(limit))),
        }
    }
}

fn too_slow(limit: Duration) -> String {
    format!("no answer within {} while preparing statements", units::duration(limit))
}

fn of_statement((sql, failure): (String, Failure)) -> Error {
    Error::server(format!("{sql}: {failure}")).passing(failure.may_pass())
}

async fn prepare(
    job: &Job,
    client: u32,
    session: &mut Session,
) -> std::result::Result<Vec<usize>, (String, Failure)> {
    let mut handles = Vec::new();
    for table in job.tables_of(client) {
        for sql in job.prepared.iter().map(|sql| job.with_table(sql, table)) {
            match session.prepare(&sql).await {
                Ok(handle) => handles.push(handle),
                Err(failure) => return Err((sql, failure)),
            }
        }
    }
    Ok(handles)
}

/// Reads the largest id of a table: new rows come after it. Nobody writes before all are ready.
async fn id_max(job: &Job, session: &mut Session, table: u32) -> Result<u64> {
    if job.tables.count == 0 {
        return Ok(0);
    }
    let sql = job.with_table("SELECT MAX(id) FROM {table}", table);
    let rows = session.query(&sql).await.map_err(|failure| of_statement((sql.clone(), failure)))?;
    let none = |text: &str| Error::server(format!("{sql}: '{}' is no number", clip(text, ID_MAX)));
    let id_max = rows.into_iter().flatten().next().flatten();
    id_max.map_or(Ok(0), |text| text.parse().map_err(|_| none(&text)))
}

pub(crate) async fn close_all(sessions: Vec<Session>) {
    let mut goodbyes = JoinSet::new();
    for session in sessions {
        goodbyes.spawn_local(session.close(limits::COURTESY));
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
