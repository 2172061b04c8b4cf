//! Limits of things that have no end of their own.

use std::time::Duration;

pub(crate) use crate::stop::{COURTESY, SILENCE};

/// Connections opened a second at most: a burst above the server's back_log is refused.
pub(crate) const CONNECTS_PER_S: u32 = 2000;
/// Logins under way at a time at most, for the same reason.
pub(crate) const CONNECTS_AT_ONCE: usize = 32;
/// Ops in flight at the end of the window may take so long; then they are given up.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);
/// The same where lost connections are opened again: a large server's recovery takes minutes.
pub(crate) const OUTAGE: Duration = Duration::from_mins(10);
/// A phase that somebody asks for: a year.
pub(crate) const PHASE_MAX: Duration = Duration::from_hours(24 * 366);
