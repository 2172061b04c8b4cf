//! The growth of a counter of the server between its two readings.

use crate::mysql::facts::{SINCE_FLUSH, Status};

/// Returns whether FLUSH STATUS came between the readings: a counter that it reset may have grown beyond its
/// old value.
fn flushed(status: &Status) -> bool {
    let grew = |name: &str| status.deltas.get(name).copied();
    // An unchanged Uptime is left out.
    grew(SINCE_FLUSH).is_some_and(|since| since < grew("Uptime").unwrap_or(0))
}

/// Returns the growth of a counter. An absent one did not change, except on a server without any of InnoDB's.
/// A counter that FLUSH STATUS resets is unknown: it leaves InnoDB's alone.
pub(crate) fn counter(status: &Status, name: &str) -> Option<f64> {
    if flushed(status) && !name.starts_with("Innodb_") {
        return None;
    }
    if let Some(delta) = status.deltas.get(name) {
        return (*delta >= 0).then_some(*delta as f64);
    }
    let family = name.split('_').next().expect("one part at least");
    let mut known = status.deltas.keys().chain(status.gauges.keys());
    known.any(|name| name.starts_with(family)).then_some(0.0)
}
