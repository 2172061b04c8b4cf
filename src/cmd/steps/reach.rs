//! The server between two steps: it may be gone, and come back as another process.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{Scene, Sweep, bounded, probe};
use crate::cmd::prepare::or_stop;
use crate::error::Result;
use crate::measure::probe::Whereabouts;
use crate::mysql::session::Session;
use crate::mysql::variables;
use crate::plan::limits;

/// Between two attempts to reach a server that is gone.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

impl Sweep<'_> {
    /// The server may be another process since its connection was lost.
    pub(super) async fn look_again(&self, scene: &mut Scene) -> Result<()> {
        // Its age is not the one of before.
        let server = Whereabouts { uptime_s: None, ..scene.whereabouts.clone() };
        scene.probe = probe(self.prefix.clone(), server, scene.identity.same_host).await?;
        Ok(())
    }

    /// The server's variables before a step. Where lost connections are opened again, a server that
    /// is just gone is waited for; one that is there and says no for good is not.
    pub(super) async fn variables(
        &mut self,
        scene: &Scene,
        control: &mut Option<Session>,
    ) -> Result<BTreeMap<String, String>> {
        let began = Instant::now();
        let policy = self.plan.policy;
        loop {
            let error = match self.ask_variables(scene, control).await {
                Ok(variables) => return Ok(variables),
                Err(error) => error,
            };
            let waits = policy.reconnects() && error.may_pass();
            if !waits || began.elapsed() >= policy.patience() {
                return Err(error);
            }
            self.stop.check()?;
            self.progress.note(&format!("waiting for the server: {error}"));
            let pause = async {
                tokio::time::sleep(BETWEEN_LOOKS).await;
                Ok(())
            };
            or_stop(self.stop, pause).await?;
        }
    }

    async fn ask_variables(
        &self,
        scene: &Scene,
        control: &mut Option<Session>,
    ) -> Result<BTreeMap<String, String>> {
        // It was dropped where the server hung or ended.
        let mut asking = match control.take() {
            Some(session) => session,
            None => self.control(&scene.target, &scene.opts).await?,
        };
        let reading = async { Ok(variables::read(&mut asking).await?) };
        let address = &scene.target.address;
        let read = bounded(limits::SILENCE, self.stop, address, reading).await?;
        *control = Some(asking);
        Ok(read)
    }
}
