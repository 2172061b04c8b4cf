//! Readings of the server beside the clients of a step: its counters, process and host, and its settings
//! after reconnects.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use crate::judge::no_result;
use crate::mysql::{Reading, ServerLink, Session, server, status};
use crate::observe::{HostReading, Probe};
use crate::plan::limits;
use crate::stop::within;
use crate::summary::{self, Probed, SettingChange, Status};

pub(super) type ServerUse = (Option<Status>, Option<Probed>);

#[derive(Default)]
pub(crate) struct ServerReading {
    status: Option<Reading>,
    /// The connection was found broken, as one is whose server was restarted.
    lost: bool,
    probed: Option<HostReading>,
}

impl ServerReading {
    /// A server that does not answer in time costs the reading and its connection, not the step.
    pub(crate) async fn take(control: &mut Option<Session>, probe: Option<&Probe>) -> Self {
        let mut taken = ServerReading::default();
        // On a thread of its own: a reading through a command takes a while.
        let probing = probe.cloned().map(|probe| run_on_thread(move || probe.read()));
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

    /// Counts what a reading itself adds to the counters, while no client asks anything.
    pub(crate) async fn count_own(&mut self, control: &mut Option<Session>) {
        let Some(reading) = &mut self.status else { return };
        let Some(mut session) = control.take() else { return };
        let counted = within(limits::COURTESY, status::own_counts(&mut session)).await;
        if let Some(Ok(own)) = counted {
            (reading.own, *control) = (own, Some(session));
        }
    }

    /// Reads over a connection of its own where the old one is gone: the server may be back, and says since when.
    pub(crate) async fn take_again(&mut self, link: &ServerLink) {
        if !self.lost {
            return;
        }
        let read = within(limits::COURTESY, async {
            let mut session = Session::open_again(link, None).await.ok()?;
            let reading = status::read(&mut session).await.ok();
            session.close(limits::COURTESY).await;
            reading
        });
        self.status = read.await.flatten();
    }

    pub(crate) fn since(&self, first: &Self, probe: Option<&Probe>, start: Instant) -> ServerUse {
        let status = first.status.as_ref().zip(self.status.as_ref());
        let probed = first.probed.as_ref().zip(self.probed.as_ref()).zip(probe);
        (
            status.map(|(first, last)| status::delta(first, last, start)),
            probed.and_then(|((first, last), probe)| probe.cost([first, last], start)),
        )
    }
}

/// tokio's pool panics where no thread can be started; here the receiver gets an error then.
pub(crate) fn run_on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (done, result) = oneshot::channel();
    let _ = std::thread::Builder::new().spawn(move || {
        let _ = done.send(work());
    });
    result
}

/// Asks over a connection of its own where none is given; None without an answer in time.
pub(crate) async fn changes(
    before: &summary::Server,
    control: &mut Option<Session>,
    link: &ServerLink,
) -> Option<Vec<SettingChange>> {
    let given = control.take();
    let looking = within(limits::COURTESY, async {
        let mut session = match given {
            Some(session) => session,
            None => Session::open_again(link, None).await.ok()?,
        };
        let mut after = before.clone();
        let looked = server::renew(&mut session, &mut after).await;
        // One that told its variables before and does not now has not lost them.
        let told = before.variables.is_empty() || !after.variables.is_empty();
        let looked = looked.ok().filter(|()| told);
        Some((session, looked.map(|()| server::changes(before, &after))))
    });
    let (session, changed) = looking.await.flatten()?;
    *control = Some(session).filter(Session::is_usable);
    changed
}

/// Reads the server's settings after reconnects, until they differ so that the step has no result.
pub(super) async fn guard(
    reopened: Arc<Notify>,
    link: ServerLink,
    before: summary::Server,
) -> Vec<SettingChange> {
    loop {
        reopened.notified().await;
        let changed = changes(&before, &mut None, &link).await;
        if let Some(changed) = changed.filter(|changed| no_result(changed).is_some()) {
            return changed;
        }
        // All clients come back at once.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
