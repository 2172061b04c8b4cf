//! The server between two steps: it may be gone, and come back as another process.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::plan::Policy;
use crate::progress::Progress;
use crate::stop::{Stop, or_stop};

/// Between two attempts to reach a server that is gone.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Waits for a server that is gone, where lost connections are opened again.
pub(super) struct Patience<'a> {
    policy: Policy,
    stop: &'a Stop,
    began: Instant,
    /// What it waits for.
    said: String,
}

impl<'a> Patience<'a> {
    pub(super) fn new(policy: Policy, stop: &'a Stop) -> Patience<'a> {
        Patience { policy, stop, began: Instant::now(), said: String::new() }
    }

    /// Waits until it is time for another attempt; false at once where none mends this error, or
    /// where there is no time for one.
    ///
    /// # Errors
    ///
    /// Interrupted.
    pub(super) async fn lasts(&mut self, error: &Error, progress: &mut Progress) -> Result<bool> {
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
