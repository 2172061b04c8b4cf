//! How long ops took: over the window, and by the interval of the timeline.

use serde::{Deserialize, Serialize};

/// Latency of what was issued inside the window, including what finished in the drain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Latency {
    /// Service time: from just before the call to its return.
    pub service: Distribution,
    /// Response time: from the intended instant; null unless paced.
    pub response: Option<Distribution>,
    /// The part of the response time before the call, from the intended instant on: waiting for
    /// an idle client, and for the client's thread; null unless paced.
    #[serde(default)]
    pub wait: Option<Distribution>,
    /// Service time of the ops that failed.
    pub failed: Distribution,
    /// Ops in doubt, which are in none of these times (`totals.in_doubt` counts all phases, and
    /// those given up, too); null from old versions.
    #[serde(default)]
    pub in_doubt: Option<u64>,
    /// Ops that were issued and given up: in the times at their age (`totals.abandoned` counts all
    /// phases, and arrivals that were not issued, too); null from old versions.
    #[serde(default)]
    pub abandoned: Option<u64>,
    /// Service time of each statement, for workloads with several.
    pub by_statement: Vec<StatementLatency>,
}

/// Latency of one statement of a transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatementLatency {
    /// Its position in `workload.statements`, from 0.
    pub statement: u32,
    /// Service time.
    pub service: Distribution,
}

/// A distribution of times. Percentiles come from the histogram (3 significant digits);
/// min, max, mean and deviation from exact sums. All null when nothing was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Values counted, those above the histogram's range included.
    pub count: u64,
    /// Smallest, microseconds.
    pub min_us: Option<f64>,
    /// Mean, microseconds.
    pub mean_us: Option<f64>,
    /// Standard deviation (of the population), microseconds.
    pub stddev_us: Option<f64>,
    /// Median, microseconds.
    pub p50_us: Option<f64>,
    /// 75th percentile, microseconds.
    pub p75_us: Option<f64>,
    /// 90th percentile, microseconds.
    pub p90_us: Option<f64>,
    /// 95th percentile, microseconds.
    pub p95_us: Option<f64>,
    /// 99th percentile, microseconds.
    pub p99_us: Option<f64>,
    /// 99.9th percentile, microseconds.
    pub p99_9_us: Option<f64>,
    /// 99.99th percentile, microseconds.
    pub p99_99_us: Option<f64>,
    /// Largest, microseconds.
    pub max_us: Option<f64>,
    /// Values above the histogram's range of one hour; they count as one hour in percentiles.
    pub overflow: u64,
    /// `HdrHistogram` V2, deflated, base64; values in nanoseconds.
    pub histogram: String,
}

impl Latency {
    /// Of an open loop the response times, else the service times.
    pub(crate) fn own(&self) -> &Distribution {
        self.response.as_ref().unwrap_or(&self.service)
    }

    /// Arrivals of the window that were never issued: among the response times at their age.
    pub(crate) fn unissued(&self) -> u64 {
        self.own().count.saturating_sub(self.service.count)
    }
}

/// A phase of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the window; not counted.
    Warmup,
    /// The window.
    Measure,
    /// What was in flight at the window's end.
    Drain,
}

/// One interval of the timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interval {
    /// Its phase.
    pub phase: Phase,
    /// Start, seconds from the start of the warm-up.
    pub start_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// Ops completed in it.
    pub ops: u64,
    /// Ops that failed in it, those in doubt or given up included.
    pub errors: u64,
    /// Median service time, microseconds; null without ops.
    pub p50_us: Option<f64>,
    /// 99th percentile of the service time, microseconds.
    pub p99_us: Option<f64>,
    /// Largest service time, microseconds.
    pub max_us: Option<f64>,
    /// Median response time, microseconds; null in a closed loop.
    #[serde(default)]
    pub response_p50_us: Option<f64>,
    /// 99th percentile of the response time, microseconds.
    #[serde(default)]
    pub response_p99_us: Option<f64>,
    /// Largest response time, microseconds.
    #[serde(default)]
    pub response_max_us: Option<f64>,
}
