//! The connections of clients: opened with what their programs need, opened again, closed.

use std::time::Duration;

use tokio::task::JoinSet;

use super::errors::{ClientAction, OpenError};
use super::program::{Goodbye, Program, ThreadPrograms};
use super::setup::StepSetup;
use crate::error::Error;
use crate::mysql::Failure;
use crate::mysql::wire::{Inbox, LeanSession};
use crate::plan::{limits, units};
use crate::stop::within;
use crate::workload::{Stream, seed_of};

const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest pause between two attempts: it limits how precisely recovery is measured.
const PAUSE_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Connection {
    pub session: LeanSession,
    pub program: Program,
}

pub(crate) async fn open(
    setup: &StepSetup,
    inbox: &Inbox,
    programs: &ThreadPrograms,
    client: u32,
) -> Result<Connection, OpenError> {
    let (job, limit) = (&setup.job, setup.link.target.connect_timeout);
    let script = Box::pin(Program::open_script(setup, programs, inbox, client));
    if let Some(opened) = script.await {
        return opened.map(|(program, session)| Connection { session, program });
    }
    let _permit = setup.logins.acquire().await.expect("nobody closes it");
    // Boxed: most clients wait for their turn, without room for a log-in.
    let charset = job.plan.charset.as_deref();
    let link = setup.link_of(client);
    let mut session = if job.plan.rules.raw_refusals {
        let opened = Box::pin(LeanSession::open_again(link, inbox, charset)).await;
        opened.map_err(|failure| OpenError::refused(ClientAction::Connect, failure))?
    } else {
        Box::pin(LeanSession::open(link, inbox, charset)).await?
    };
    let opening = Box::pin(async {
        let program = Program::open(job, client, &mut session).await?;
        Ok(Connection { session, program })
    });
    within(limit, opening).await.unwrap_or_else(|| {
        let error = Error::server(too_slow(limit)).hint("--connect-timeout waits longer");
        Err(error.passing(true).into())
    })
}

/// Opens it again for a client.
pub(super) async fn reconnect(
    setup: &StepSetup,
    inbox: &Inbox,
    program: &mut Program,
    client: u32,
) -> Result<LeanSession, Failure> {
    let (job, limit) = (&setup.job, setup.link.target.connect_timeout);
    let charset = job.plan.charset.as_deref();
    let mut session = LeanSession::open_again(setup.link_of(client), inbox, charset).await?;
    match within(limit, program.reopen(job, &mut session)).await {
        Some(opened) => opened.map(|()| session),
        None => Err(Failure::lost(too_slow(limit))),
    }
}

fn too_slow(limit: Duration) -> String {
    format!("no answer within {} while preparing statements", units::duration(limit))
}

pub(crate) async fn close_all(sessions: Vec<Goodbye>) {
    let mut goodbyes = JoinSet::new();
    for Goodbye { session, statements } in sessions {
        goodbyes.spawn_local(session.close_with(statements, limits::COURTESY));
    }
    while goodbyes.join_next().await.is_some() {}
}

/// Draws growing waits at random: clients that lost a server together do not come back together.
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
