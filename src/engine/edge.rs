//! What is read at both edges of the window: the client's own cost at the edge itself, and the
//! server's counters, process and host outside of the window, each with its instant.

use std::time::{Duration, Instant};

use mysql_async::Opts;
use tokio::sync::oneshot;

use super::opening::Doors;
use crate::mysql::fingerprint;
use crate::mysql::session::Session;
use crate::mysql::status::{self, Reading};
use crate::mysql::target::Target;
use crate::observe::probe::{self, Probe, own_traffic};
use crate::observe::process::{Cost, process_usage};
use crate::plan::limits;
use crate::summary::{self, identity::no_result};

/// A reading of a busy server's counters takes so long: then it is over when the window opens.
const LEAD: Duration = Duration::from_millis(300);

/// What was read of the server.
#[derive(Debug, Default)]
pub(crate) struct Edge {
    status: Option<Reading>,
    /// The connection was found broken, as one is whose server was restarted.
    lost: bool,
    probed: Option<probe::Reading>,
}

impl Edge {
    /// Reads the counters over a connection of its own where the old one is gone: the server may
    /// be there again, and tells then since when.
    pub(crate) async fn read_again(&mut self, target: &Target, opts: &Opts) {
        if !self.lost {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "the connection goes with the future")]
        let read = tokio::time::timeout(limits::COURTESY, async {
            let mut session = Session::open_again(target, opts, None).await.ok()?;
            let reading = status::read(&mut session).await.ok();
            session.close(limits::COURTESY).await;
            reading
        })
        .await;
        self.status = read.ok().flatten();
    }
}

/// What of the server is another's, or another, than in an earlier look, over a connection of its
/// own where none is given. No connection comes back, and nothing is known, where there is no answer
/// in time.
pub(crate) async fn changes(
    before: &summary::Server,
    control: Option<Session>,
    target: &Target,
    opts: &Opts,
) -> (Option<Session>, Option<Vec<summary::SettingChange>>) {
    #[expect(clippy::disallowed_methods, reason = "the connection goes with the future")]
    let looking = tokio::time::timeout(limits::COURTESY, async {
        let mut session = match control {
            Some(session) => session,
            None => Session::open_again(target, opts, None).await.ok()?,
        };
        let mut after = before.clone();
        let looked = fingerprint::renew(&mut session, &mut after).await;
        // One that told its variables before and does not now has not lost them.
        let told = before.variables.is_empty() || !after.variables.is_empty();
        let looked = looked.ok().filter(|_| told);
        Some((session, looked.map(|_| fingerprint::changes(before, &after))))
    });
    let Ok(Some((session, changed))) = looking.await else { return (None, None) };
    (Some(session).filter(Session::is_usable), changed)
}

/// Looks at the server whenever lost connections are open again, until a step on it is no result.
pub(super) async fn guard(doors: Doors, before: summary::Server) -> Vec<summary::SettingChange> {
    loop {
        doors.reopened.notified().await;
        let (_, changed) = changes(&before, None, &doors.target, &doors.opts).await;
        if let Some(changed) = changed.filter(|changed| no_result(changed).is_some()) {
            return changed;
        }
        // All clients come back at once.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// How long before the window the first reading begins.
pub(crate) fn lead(probe: Option<&Probe>) -> Duration {
    LEAD + probe.map_or(Duration::ZERO, Probe::lead)
}

/// Reads the server's counters, process and host. A server that does not answer in time costs
/// the reading and its connection, not the step: then no session comes back.
pub(crate) async fn read(
    control: Option<Session>,
    probe: Option<Probe>,
) -> (Option<Session>, Edge) {
    // Of its own thread: a reading through a command takes a while, and this one conducts.
    let probing = probe.map(|probe| aside(move || probe.read()));
    let (control, status, lost) = counters(control).await;
    let probed = match probing {
        // It bounds itself in time.
        Some(probing) => probing.await.ok().flatten(),
        None => None,
    };
    (control, Edge { status, lost, probed })
}

/// Work on a thread of its own. tokio's pool panics where there is none to be had; here the result
/// then never comes, and the receiver says so.
pub(crate) fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (done, result) = oneshot::channel();
    let _ = std::thread::Builder::new().spawn(move || {
        // Nobody waits for it any more.
        let _ = done.send(work());
    });
    result
}

/// The counters, and whether the connection was found broken.
async fn counters(control: Option<Session>) -> (Option<Session>, Option<Reading>, bool) {
    let Some(mut session) = control else { return (None, None, false) };
    // The session is dropped with the future when it takes too long.
    #[expect(clippy::disallowed_methods, reason = "the connection goes with the future")]
    let read = tokio::time::timeout(limits::COURTESY, async move {
        let reading = status::read(&mut session).await;
        (session, reading)
    })
    .await;
    match read {
        Ok((session, reading)) => {
            let session = Some(session).filter(Session::is_usable);
            let lost = session.is_none();
            (session, reading.ok(), lost)
        }
        Err(_) => (None, None, false),
    }
}

/// The counters between two readings.
pub(crate) fn status(first: &Edge, last: &Edge, window_start: Instant) -> Option<summary::Status> {
    let (first, last) = first.status.as_ref().zip(last.status.as_ref())?;
    Some(status::delta(first, last, window_start))
}

/// Process and host between two readings.
pub(crate) fn probed(
    probe: Option<&Probe>,
    first: &Edge,
    last: &Edge,
    window_start: Instant,
) -> Option<summary::Probed> {
    let (first, last) = first.probed.as_ref().zip(last.probed.as_ref())?;
    Some(probe?.cost(first, last, window_start))
}

/// A share of the window from which on a reading inside it is worth a word.
const LATE: f64 = 0.05;

/// The first reading of the server's host should be over when the window opens: what an op cost
/// there is of the time from it on.
pub(crate) fn late(probed: Option<&summary::Probed>, measured_s: f64) -> Option<summary::Warning> {
    let first_s = probed?.first_s;
    (first_s > LATE * measured_s).then(|| summary::Warning {
        code: "late_reading".to_owned(),
        message: format!(
            "the server's host was first read {first_s:.1} s after the window's start: what an op \
             cost there is of the rest of it"
        ),
    })
}

/// What this process and this host's network did so far.
pub(crate) struct Own {
    pub(crate) cost: Cost,
    traffic: Option<(u64, u64)>,
}

impl Own {
    pub(crate) fn now() -> Own {
        Own { cost: process_usage(), traffic: own_traffic() }
    }

    /// Bytes received and sent since an earlier reading.
    pub(crate) fn traffic_since(&self, earlier: &Own) -> Option<(u64, u64)> {
        let (now, then) = self.traffic.zip(earlier.traffic)?;
        Some((now.0.saturating_sub(then.0), now.1.saturating_sub(then.1)))
    }
}
