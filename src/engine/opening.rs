//! Connections of a step: opened before it, and again where the policy has lost ones reopened.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::Opts;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{JoinHandle, JoinSet};

use super::desk::{Desk, Seat};
use super::job::Job;
use super::pauses::Pauses;
use super::thread::{Go, News, Order};
use super::values::Serial;
use super::watched::panic_text;
use crate::error::{Error, Result};
use crate::mysql::session::{Failure, Session};
use crate::mysql::target::Target;
use crate::plan::{limits, units};

/// How a client gets to the server.
#[derive(Clone)]
pub(crate) struct Doors {
    pub(crate) target: Arc<Target>,
    pub(crate) opts: Opts,
    /// Bounds the logins under way over all threads.
    pub(crate) logins: Arc<Semaphore>,
    /// Told that a lost connection is open again.
    pub(crate) reopened: Arc<Notify>,
}

/// A connection with everything prepared.
pub(crate) struct Ready {
    pub(crate) session: Session,
    /// Handle of a statement: by table of this client, then by prepared statement.
    pub(crate) handles: Vec<usize>,
    /// By table of this client; empty where no statement numbers rows.
    pub(crate) serials: Vec<Serial>,
}

/// Connects and prepares: before the window, never inside it.
async fn open(job: &Job, client: u32, doors: &Doors) -> Result<Ready> {
    let Doors { target, opts, .. } = doors;
    let mut session = Session::open(target, opts, job.charset.as_deref()).await?;
    let preparing = async {
        let handles = prepare(job, client, &mut session).await.map_err(of_statement)?;
        let mut serials = Vec::new();
        if job.serial() {
            for table in job.tables_of(client) {
                let (next, step) = job.serials(client, id_max(job, &mut session, table).await?);
                serials.push(Serial { next, step });
            }
        }
        Ok(Ready { session, handles, serials })
    };
    let limit = target.connect_timeout;
    let prepared = within(limit, preparing).await;
    prepared.unwrap_or_else(|| {
        let error = Error::server(too_slow(limit)).hint("--connect-timeout waits longer");
        Err(error.passing(true))
    })
}

/// The same for a client that goes on with its own numbers.
async fn open_again(
    job: &Job,
    client: u32,
    doors: &Doors,
) -> std::result::Result<(Session, Vec<usize>), Failure> {
    let Doors { target, opts, .. } = doors;
    let mut session = Session::open_again(target, opts, job.charset.as_deref()).await?;
    let limit = target.connect_timeout;
    let preparing = async {
        let handles = prepare(job, client, &mut session).await.map_err(|(_, failure)| failure)?;
        Ok((session, handles))
    };
    within(limit, preparing).await.unwrap_or_else(|| Err(Failure::Lost(too_slow(limit))))
}

fn too_slow(limit: Duration) -> String {
    format!("no answer within {} while preparing statements", units::duration(limit))
}

fn of_statement((sql, failure): (String, Failure)) -> Error {
    Error::server(format!("{sql}: {failure}")).passing(failure.may_pass())
}

/// The connection goes with the future when it takes too long.
#[expect(clippy::disallowed_methods, reason = "the connection goes with the future")]
async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, future).await.ok()
}

async fn prepare(
    job: &Job,
    client: u32,
    session: &mut Session,
) -> std::result::Result<Vec<usize>, (String, Failure)> {
    let mut handles = Vec::new();
    for table in job.tables_of(client) {
        for sql in job.prepared(table) {
            match session.prepare(&sql).await {
                Ok(handle) => handles.push(handle),
                Err(failure) => return Err((sql, failure)),
            }
        }
    }
    Ok(handles)
}

/// The largest id of a table: new rows come after it. Nobody writes before all are ready.
async fn id_max(job: &Job, session: &mut Session, table: u32) -> Result<u64> {
    if job.tables.count == 0 {
        return Ok(0);
    }
    let sql = job.with_table("SELECT MAX(id) FROM {table}", table);
    let rows = session.query(&sql).await.map_err(|failure| of_statement((sql, failure)))?;
    let max = rows.into_iter().flatten().next().flatten();
    Ok(max.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Opens a connection for each seat; fewer come back when one fails or the step is cancelled.
pub(crate) async fn open_all(order: &Order, seats: &[Rc<Seat>]) -> Vec<Ready> {
    let opening: Vec<JoinHandle<Option<Ready>>> =
        seats.iter().map(|s| tokio::task::spawn_local(open_one(order.clone(), s.client))).collect();
    let mut ready = Vec::with_capacity(opening.len());
    for task in opening {
        match task.await {
            Ok(Some(one)) => ready.push(one),
            Ok(None) => {}
            Err(panic) => {
                let text = match panic.try_into_panic() {
                    Ok(payload) => panic_text(payload.as_ref()),
                    Err(_) => "cancelled".to_owned(),
                };
                let text = format!("the driver panicked on a login: {text}");
                let _ = order.news.send(News::NotOpened(Error::server(text)));
            }
        }
    }
    ready
}

async fn open_one(order: Order, client: u32) -> Option<Ready> {
    let mut go = order.go.clone();
    let turn = order.opening + Duration::from_secs(1) * client / limits::CONNECTS_PER_S;
    tokio::time::sleep_until(turn.into()).await;
    if *go.borrow_and_update() == Go::Cancel {
        return None;
    }
    // A cancelled step must not wait for a server that hangs.
    let opened = tokio::select! {
        opened = open_patiently(&order, client) => opened?,
        _ = go.wait_for(|go| *go == Go::Cancel) => return None,
    };
    let (news, ready) = match opened {
        Ok(ready) => (News::Opened, Some(ready)),
        Err(error) => (News::NotOpened(error), None),
    };
    let _ = order.news.send(news);
    ready
}

/// Where lost connections are opened again, a server that is just gone is waited for; one that is
/// there and says no for good is not.
async fn open_patiently(order: &Order, client: u32) -> Option<Result<Ready>> {
    let Order { job, doors, .. } = order;
    let began = Instant::now();
    let mut pauses = Pauses::new(client, 0);
    loop {
        let permit = doors.logins.acquire().await.ok()?;
        let opened = open(job, client, doors).await;
        drop(permit);
        match opened {
            Err(error)
                if error.may_pass()
                    && job.policy.reconnects()
                    && began.elapsed() < limits::OUTAGE =>
            {
                let _ = order.news.send(News::Waiting(error));
            }
            opened => return Some(opened),
        }
        tokio::time::sleep(pauses.next()).await;
    }
}

/// Opens a lost connection again, for as long as there is a window; its statements are prepared.
pub(crate) async fn reopen(desk: &Desk, seat: &Seat) -> Option<(Session, Vec<usize>)> {
    let mut pauses = Pauses::new(seat.client, desk.mishaps.reconnects.get());
    loop {
        tokio::time::sleep(pauses.next()).await;
        let permit = desk.doors.logins.acquire().await.ok()?;
        let opened = open_again(&desk.job, seat.client, &desk.doors).await;
        drop(permit);
        match opened {
            Ok(opened) => {
                desk.doors.reopened.notify_one();
                return Some(opened);
            }
            Err(failure) => desk.refused(failure),
        }
    }
}

/// Says goodbye to all at once, for a bounded time.
pub(crate) async fn close_all(sessions: Vec<Session>) {
    let mut goodbyes = JoinSet::new();
    for session in sessions {
        goodbyes.spawn_local(session.close(limits::COURTESY));
    }
    while goodbyes.join_next().await.is_some() {}
}
