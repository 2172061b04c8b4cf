//! Recorder, timeline, timers, client cost, the server's process and host.
//!
//! Above its figure: a probe may be here, behind a command or in a container, and each kernel lacks
//! other files.

pub mod host;
pub mod probe;
pub(crate) mod proc;
pub(crate) mod process;
pub mod recorder;
pub(crate) mod timeline;
pub(crate) mod timer;
pub mod times;

use std::time::Instant;

/// Tells an instant as seconds from another one, negative before it.
pub(crate) fn seconds_from(origin: Instant, at: Instant) -> f64 {
    match at.checked_duration_since(origin) {
        Some(after) => after.as_secs_f64(),
        None => -origin.duration_since(at).as_secs_f64(),
    }
}
