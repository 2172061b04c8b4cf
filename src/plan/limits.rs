//! Limits on waits and bursts.

use std::time::Duration;

pub(crate) use crate::stop::{COURTESY, SILENCE};

/// Upper limit on connections opened a second: a burst above the server's back_log is refused.
pub(crate) const CONNECTS_PER_S: u32 = 2000;
/// Time for a script's `thread_init`, as in sysbench.
pub(crate) const THREAD_INIT: Duration = Duration::from_secs(30);
/// Upper limit on concurrent logins, for the same reason.
pub(crate) const CONNECTS_AT_ONCE: usize = 32;
/// Time for ops in flight at the end of the window.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);
/// The same if lost connections are opened again: a large server's recovery takes minutes.
pub(crate) const OUTAGE: Duration = Duration::from_mins(10);
pub(crate) const PHASE_MAX: Duration = Duration::from_hours(24 * 366);
/// Upper limit on the bytes of all scripts' files that go to other hosts: a line of theirs has room for them.
pub(crate) const AWAY_MAX: usize = 16 << 20;
/// Time after a signal from which on a person is told what is waited for.
pub(crate) const EXPLAINED_AFTER: Duration = Duration::from_secs(2);
