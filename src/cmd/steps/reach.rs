//! The server between two steps: it may be gone, and come back as another process.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::{Scene, Sweep, bounded, probe};
use crate::cmd::before;
use crate::cmd::conditions::{self, Watch};
use crate::cmd::prepare::or_stop;
use crate::error::{Error, Result};
use crate::mysql::ask::explain;
use crate::mysql::fingerprint;
use crate::mysql::session::Session;
use crate::observe::probe::Whereabouts;
use crate::plan::before::Warm;
use crate::plan::limits;
use crate::plan::policy::Policy;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::{Server, Warning, identity};

/// Between two attempts to reach a server that is gone.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Waits for a server that is gone, where lost connections are opened again.
pub(in crate::cmd) struct Patience<'a> {
    policy: Policy,
    stop: &'a Stop,
    began: Instant,
    /// What it waits for.
    said: String,
}

impl<'a> Patience<'a> {
    pub(in crate::cmd) fn new(policy: Policy, stop: &'a Stop) -> Patience<'a> {
        Patience { policy, stop, began: Instant::now(), said: String::new() }
    }

    /// Waits until it is time for another attempt; false at once where none mends this error, or
    /// where there is no time for one.
    ///
    /// # Errors
    ///
    /// Interrupted.
    pub(in crate::cmd) async fn lasts(
        &mut self,
        error: &Error,
        progress: &mut Progress,
    ) -> Result<bool> {
        let waits = self.policy.reconnects() && error.may_pass();
        if !waits || self.began.elapsed() >= self.policy.patience() {
            return Ok(false);
        }
        let text = error.to_string();
        if text != self.said {
            progress.note(&format!("waiting for the server: {text}"));
            self.said = text;
        }
        let pause = async {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            Ok(true)
        };
        or_stop(self.stop, pause).await
    }
}

impl Sweep<'_> {
    /// Brings the server into the state that a step starts from, looks at who it is, and begins to
    /// watch it. Returns what to say of a server that changed since the last look. Where lost
    /// connections are opened again, a server that is just gone is waited for; one that is there and
    /// says no for good is not.
    pub(super) async fn make_ready(
        &mut self,
        scene: &mut Scene,
        control: &mut Option<Session>,
        opened: &watch::Receiver<Option<Instant>>,
    ) -> Result<(Vec<Warning>, Watch)> {
        let mut patience = Patience::new(self.plan.policy, self.stop);
        let last = scene.identity.server.clone();
        loop {
            let error = match self.attempt(scene, control, opened).await {
                Ok(watch) => {
                    let changed = fingerprint::changes(&last, &scene.identity.server);
                    return Ok((identity::warnings(&changed, "before this step"), watch));
                }
                Err(error) => error,
            };
            if !patience.lasts(&error, self.progress).await? {
                return Err(error);
            }
        }
    }

    /// A session that fails or hangs is dropped: the next attempt opens another.
    async fn attempt(
        &mut self,
        scene: &mut Scene,
        control: &mut Option<Session>,
        opened: &watch::Receiver<Option<Instant>>,
    ) -> Result<Watch> {
        let (mut session, reopened) = match control.take() {
            Some(session) => (session, false),
            None => (self.control(&scene.target, &scene.opts).await?, true),
        };
        let stop = self.stop;
        if reopened {
            self.look_again(scene, &mut session).await?;
        }
        let ground = scene.ground(self.plan, stop);
        let done = before::step(&ground, &mut session, self.progress).await?;
        scene.identity.server = self.server(scene, &mut session).await?;
        if self.plan.label.is_none() {
            scene.identity.label.clone_from(&scene.identity.server.version);
        }
        let reading = conditions::levels(&mut session, scene.tables);
        let at_start = bounded(limits::SILENCE, stop, &scene.target.address, reading).await?;
        *control = Some(session);
        // Looking into the window needs a connection of its own, where there is an InnoDB.
        let pool = at_start.as_ref().is_some_and(|levels| levels.pool_pages.is_some());
        let looking = if pool && conditions::length(self.plan).is_some() {
            let opening = Session::open(&scene.target, &scene.opts, None);
            conditions::or_none(limits::COURTESY, async { opening.await.ok() }).await
        } else {
            None
        };
        let opened = opened.clone();
        Ok(Watch::begin(self.plan, &scene.hosts, done, at_start, looking, opened).await)
    }

    /// Who answers now, and how it is set up.
    async fn server(&self, scene: &Scene, session: &mut Session) -> Result<Server> {
        let mut server = scene.identity.server.clone();
        let reading = async {
            let read = fingerprint::renew(session, &mut server).await;
            read.map_err(|failure| explain(&failure, "read the server's version and variables"))
        };
        bounded(limits::SILENCE, self.stop, &scene.target.address, reading).await?;
        Ok(server)
    }

    /// The server may be another process since its connection was lost, or another server, whose
    /// tables are looked at, too. Where its host does not tell, the steps go on without it.
    async fn look_again(&mut self, scene: &mut Scene, session: &mut Session) -> Result<()> {
        let server = self.server(scene, session).await?;
        if identity::is_another(&fingerprint::changes(&scene.identity.server, &server)) {
            let (target, opts) = (scene.target.clone(), scene.opts.clone());
            // A survey that fails is tried again: the log stays until then.
            let surveyed = self.survey(&target, &opts, session).await?;
            *scene = Scene { log: scene.log.take(), ..surveyed };
            if self.plan.before.warm == Warm::Pool {
                let ground = scene.ground(self.plan, self.stop);
                before::warm(&ground, session, self.progress).await?;
            }
            return Ok(());
        }
        // Its age is not the one of before.
        let server = Whereabouts { uptime_s: None, ..scene.whereabouts.clone() };
        match probe(self.prefix.clone(), server, scene.identity.same_host).await {
            Ok(probe) => scene.probe = probe,
            Err(error) => self.progress.warn(&format!("{error}: going on as before")),
        }
        Ok(())
    }
}
