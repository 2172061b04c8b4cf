//! What is read at both edges of the window: the client's own cost at the edge itself, and the
//! server's counters, process and host outside of the window, each with its instant.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::Opts;
use tokio::sync::oneshot;

use super::state::StepSetup;
use crate::judge::no_result;
use crate::mysql::{ConnectOptions, Reading, Session, server, status};
use crate::observe::probe::{HostReading, Probe};
use crate::plan::limits;
use crate::stop::within;
use crate::summary::{self, SettingChange};

/// A reading of a busy server's counters takes so long: then it is over when the window opens.
const LEAD: Duration = Duration::from_millis(300);

/// How long before the window the first reading of the server begins.
pub(crate) fn lead(probe: Option<&Probe>) -> Duration {
    LEAD + probe.map_or(Duration::ZERO, Probe::lead)
}

pub(crate) struct ServerReading {
    status: Option<Reading>,
    /// The connection was found broken, as one is whose server was restarted.
    lost: bool,
    probed: Option<HostReading>,
}

impl ServerReading {
    /// Reads the server's counters, process and host. A server that does not answer in time costs
    /// the reading and its connection, not the step.
    pub(crate) async fn take(control: &mut Option<Session>, probe: Option<&Probe>) -> Self {
        let mut taken = ServerReading { status: None, lost: false, probed: None };
        // Of its own thread: a reading through a command takes a while.
        let probing = probe.cloned().map(|probe| aside(move || probe.read()));
        if let Some(mut session) = control.take() {
            let read = within(limits::COURTESY, async move {
                let status = status::read(&mut session).await;
                (session, status)
            });
            // A session that is late went with the future.
            if let Some((session, status)) = read.await {
                *control = Some(session).filter(Session::is_usable);
                (taken.status, taken.lost) = (status.ok(), control.is_none());
            }
        }
        if let Some(probing) = probing {
            taken.probed = probing.await.ok().flatten();
        }
        taken
    }

    /// Reads the counters over a connection of its own where the old one is gone: the server may
    /// be there again, and tells then since when.
    pub(crate) async fn take_again(&mut self, target: &ConnectOptions, opts: &Opts) {
        if !self.lost {
            return;
        }
        let read = within(limits::COURTESY, async {
            let mut session = Session::open_again(target, opts, None).await.ok()?;
            let reading = status::read(&mut session).await.ok();
            session.close(limits::COURTESY).await;
            reading
        });
        self.status = read.await.flatten();
    }

    /// Tells what the server counted, and what it cost its host, since the first reading.
    pub(crate) fn since(
        &self,
        first: &ServerReading,
        probe: Option<&Probe>,
        window_start: Instant,
    ) -> (Option<summary::Status>, Option<summary::Probed>) {
        let status = first.status.as_ref().zip(self.status.as_ref());
        let probed = first.probed.as_ref().zip(self.probed.as_ref()).zip(probe);
        (
            status.map(|(first, last)| status::delta(first, last, window_start)),
            probed.and_then(|((first, last), probe)| probe.cost(first, last, window_start)),
        )
    }
}

/// Works on a thread of its own. tokio's pool panics where there is none to be had; here the result
/// then never comes, and the receiver says so.
pub(crate) fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (done, result) = oneshot::channel();
    let _ = std::thread::Builder::new().spawn(move || {
        let _ = done.send(work());
    });
    result
}

/// Looks what of the server is another's, or another, than in an earlier look, over a connection of
/// its own where none is given. Without an answer in time no connection is left, and nothing known.
pub(crate) async fn changes(
    before: &summary::Server,
    control: &mut Option<Session>,
    target: &ConnectOptions,
    opts: &Opts,
) -> Option<Vec<SettingChange>> {
    let given = control.take();
    let looking = within(limits::COURTESY, async {
        let mut session = match given {
            Some(session) => session,
            None => Session::open_again(target, opts, None).await.ok()?,
        };
        let mut after = before.clone();
        let looked = server::renew(&mut session, &mut after).await;
        // One that told its variables before and does not now has not lost them.
        let told = before.variables.is_empty() || !after.variables.is_empty();
        let looked = looked.ok().filter(|_| told);
        Some((session, looked.map(|_| server::changes(before, &after))))
    });
    let (session, changed) = looking.await.flatten()?;
    *control = Some(session).filter(Session::is_usable);
    changed
}

/// Looks at the server whenever lost connections are open again, until a step on it is no result.
pub(super) async fn guard(setup: Arc<StepSetup>, before: summary::Server) -> Vec<SettingChange> {
    let connector = &setup.connector;
    loop {
        connector.reopened.notified().await;
        let changed = changes(&before, &mut None, &connector.target, &connector.opts).await;
        if let Some(changed) = changed.filter(|changed| no_result(changed).is_some()) {
            return changed;
        }
        // All clients come back at once.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
