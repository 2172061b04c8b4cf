//! Recorder, timeline, timers, client cost, the server's process and host.

mod histogram;
pub mod host;
pub mod named;
pub mod probe;
pub(crate) mod process;
pub mod recorder;
pub(crate) mod timer;
pub mod times;

pub(crate) use host::{Host, HostFacts, ROOT, connections};
pub(crate) use named::{NAMES_MAX, NamedOps, TransactionNames, is_name};
pub(crate) use probe::{FarEnd, HostReading, Probe, Probed, Whereabouts};
pub(crate) use process::{
    ClientReading, ClientUse, Cost, Limit, Scheduled, ThreadClock, children_usage,
    peak_resident_bytes, process_usage, raise_descriptor_limit, require_descriptors,
};
pub(crate) use recorder::{
    ClientEvents, EventCounts, IntervalLog, Ns, Op, Paced, Phases, RecordedInterval, Recorder,
    Timeline, seconds,
};
pub(crate) use timer::Timer;
pub(crate) use times::Times;

use std::time::Instant;

/// Returns the seconds from one instant to another, negative before it.
pub(crate) fn seconds_from(origin: Instant, at: Instant) -> f64 {
    let [after, before] = [(at, origin), (origin, at)].map(|(a, b)| a.saturating_duration_since(b));
    after.as_secs_f64() - before.as_secs_f64()
}
