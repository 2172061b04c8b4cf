//! Times of a step that follow from its plan.

use std::time::Duration;

use super::pace::NEVER;
use crate::observe::recorder::Ns;
use crate::plan::{Plan, StopAt};

/// How often threads report at least, whatever the timeline's interval: the live line and the
/// watch over a silent server follow it.
const LOOK: Duration = Duration::from_secs(1);

/// The timeline's interval, or an even part of it where that is longer than [`LOOK`].
pub(super) fn report_every(interval: Duration) -> Ns {
    let (interval, look) = (interval.as_nanos() as Ns, LOOK.as_nanos() as Ns);
    interval / interval.div_ceil(look).max(1)
}

pub(super) fn window_end(plan: &Plan, start: Ns) -> Ns {
    match plan.stop {
        StopAt::Time(time) => start.saturating_add(time.as_nanos() as Ns),
        StopAt::Ops(_) => NEVER,
    }
}

/// How long an open loop may have nothing to do: a gap of 30 means is one of 10 billions.
pub(super) fn quiet(rate: Option<f64>) -> Duration {
    let s = rate.map_or(0.0, |rate| 30.0 / rate);
    Duration::try_from_secs_f64(s).unwrap_or_default()
}
