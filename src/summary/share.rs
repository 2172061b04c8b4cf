//! How much of a number was the client's own doing.

use serde::{Deserialize, Serialize};

/// What the client and this host did in the window. Shares are of 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Share {
    /// Engine threads.
    pub threads: Vec<ThreadShare>,
    /// How late they came to a socket that was ready, all together.
    #[serde(flatten)]
    pub turns: TurnDelay,
    /// Cores of this host.
    pub host_cores: Option<u32>,
    /// CPU time of this host that was used by anybody, interrupts included.
    pub host_busy: Option<f64>,
    /// CPU time of this host that others used than this process and a server on this host;
    /// without interrupts, which are nobody's.
    pub other_load: Option<f64>,
    /// CPU time of this host that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// CPU of the server's process, seconds; null where it is not on this host or not known.
    pub server_cpu_s: Option<f64>,
    /// Time that this process's control groups (`cpu.max`) held its threads back, seconds, summed
    /// over cores; null where none could be read.
    pub throttled_s: Option<f64>,
    /// What this host can generate at most, by a calibration; null without one that applies.
    pub ceiling: Option<Ceiling>,
}

/// One engine thread between the first and the last look of the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadShare {
    /// Part of the time in which it had something to do. In a closed loop, all that it did not
    /// wait for sockets, descheduled time included; in an open loop, where it looks at its
    /// sockets again and again instead of waiting, its CPU time without that (`spun_s`), of the
    /// time that it was not descheduled.
    pub busy: f64,
    /// Length of that time, seconds.
    pub wall_s: f64,
    /// CPU of the thread, seconds; null where the kernel does not tell.
    pub cpu_s: Option<f64>,
    /// Of these, looking for something to do; 0 in a closed loop.
    pub spun_s: f64,
    /// Time that it could have run and another thread had the core, seconds (`schedstat`).
    pub descheduled_s: Option<f64>,
    /// How late it came to a socket that was ready.
    #[serde(flatten)]
    pub turns: TurnDelay,
}

/// Turn delay: from a known instant at which a kernel timer was ready to the thread's taking note
/// of it. A socket that had become ready then would have waited as long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TurnDelay {
    /// Such instants.
    pub probes: u64,
    /// Median, microseconds.
    pub turn_delay_p50_us: Option<f64>,
    /// 99th percentile; with fewer than 1,000 probes not ten of them lie beyond it.
    pub turn_delay_p99_us: Option<f64>,
    /// The largest.
    pub turn_delay_max_us: Option<f64>,
    /// 99th percentile of what is left without the time that the thread waited for a core.
    pub own_delay_p99_us: Option<f64>,
    /// The highest whole percentile that ten probes lie beyond, 99 at most: the verdict judges by
    /// it. Null with fewer than 20 probes.
    #[serde(default)]
    pub tail_percentile: Option<u32>,
    /// The delay at that percentile.
    #[serde(default)]
    pub turn_delay_tail_us: Option<f64>,
    /// What is left there without the time that the thread waited for a core.
    #[serde(default)]
    pub own_delay_tail_us: Option<f64>,
}

/// What a calibration of this host says about a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// Statements a second: engine threads, or cores where these are fewer, by the client's CPU
    /// an op.
    pub qps: f64,
    /// That CPU, microseconds.
    pub us_per_op: f64,
    /// Clients of the calibration's step that comes nearest.
    pub clients: u32,
    /// Its engine threads.
    pub engine_threads: u32,
    /// When it was measured, RFC 3339.
    pub calibrated_at: String,
}
