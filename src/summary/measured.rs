//! What was measured: latency, outages, the ledger, what it cost the server and the client, and the
//! verdict.

use serde::{Deserialize, Serialize};

use super::Distribution;
use crate::terms::VerdictKind;

const TOLD_MAX: usize = 2;

/// Latency of what was issued inside the window, including what finished in the drain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Latency {
    /// Service time: from just before the call to its return.
    pub service: Distribution,
    /// Response time: from the intended instant; null unless paced.
    pub response: Option<Distribution>,
    /// The part of the response time before the call; null unless paced.
    pub wait: Option<Distribution>,
    /// Service time of the ops that failed.
    pub failed: Distribution,
    /// Ops in doubt, which are in none of these times; null from old versions.
    pub in_doubt: Option<u64>,
    /// Ops that were issued and given up, in the times at their age; null from old versions.
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
    pub service: Distribution,
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

/// A time in which no op succeeded on any client while errors occurred; instants of the timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Outage {
    pub first_error_s: f64,
    pub last_error_s: f64,
    /// From the last success before to the first one after it, or to the end of the window.
    pub gap_s: f64,
    /// The first success after it; null if there was none in the window.
    pub first_success_s: Option<f64>,
    /// Start of the first whole interval after it with 95 % of the earlier median rate; or null.
    pub recovered_s: Option<f64>,
    /// The server's number of the first error; null for lost connections and the like.
    pub code: Option<u16>,
    /// Errors of all clients in it, ops given up and attempts to open a connection again included.
    pub errors: u64,
    pub first_error: String,
    pub last_error: String,
}

/// What the acknowledged writes of a step add to one table, all phases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LedgerEntry {
    pub table: String,
    /// Identity of the table's content, 1 to 8 hexadecimal digits; null where it has none.
    pub table_id: Option<String>,
    pub updates: u64,
    pub inserts: u64,
    pub deletes: u64,
    /// Writes whose outcome is unknown.
    pub in_doubt: u64,
    /// What acknowledged writes added to the sum of `k`, as far as they know it.
    pub k_added: i64,
    /// Rows that were deleted or inserted with a `k` that nobody read: the sum of `k` can be told
    /// from `k_added` where this is 0.
    #[serde(default)]
    pub k_unknown: u64,
    /// What of `k_added` acknowledged writes took off. Losses of such and of others cancel out.
    #[serde(default)]
    pub k_taken: u64,
    /// Acknowledged updates that change neither the rows nor the sum of `k`.
    #[serde(default)]
    pub untraced: u64,
    /// What the writes in doubt may have changed; null where there are none.
    pub doubt: Option<Doubt>,
}

/// Bounds of what writes in doubt changed: each of them did all of its part or nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Doubt {
    pub rows_added: u64,
    pub rows_removed: u64,
    /// The most that the sum of `k` grew.
    pub k_added: u64,
    /// The most that it shrank.
    pub k_removed: u64,
    /// Writes of these that add or remove any number of rows.
    pub rows_unknown: u64,
    /// Writes of these that change the sum of `k` by nobody knows how much.
    pub k_unknown: u64,
}

impl Doubt {
    pub(crate) fn add(&mut self, other: &Doubt) {
        *self = Doubt {
            rows_added: self.rows_added.saturating_add(other.rows_added),
            rows_removed: self.rows_removed.saturating_add(other.rows_removed),
            k_added: self.k_added.saturating_add(other.k_added),
            k_removed: self.k_removed.saturating_add(other.k_removed),
            rows_unknown: self.rows_unknown.saturating_add(other.rows_unknown),
            k_unknown: self.k_unknown.saturating_add(other.k_unknown),
        };
    }
}

/// What the client and this host did in the window. Shares are of 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Share {
    pub threads: Vec<ThreadShare>,
    /// How late they came to a socket that was ready, all together.
    #[serde(flatten)]
    pub turns: TurnDelay,
    pub host_cores: Option<u32>,
    /// CPU time of this host that was used by anybody, interrupts included.
    pub host_busy: Option<f64>,
    /// CPU time of this host that neither this process, a server on it nor interrupts used.
    pub other_load: Option<f64>,
    /// CPU time of this host that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// CPU of the server's process, seconds; null where it is not on this host or not known.
    pub server_cpu_s: Option<f64>,
    /// Time that control groups (`cpu.max`) held its threads back, seconds over cores; or null.
    pub throttled_s: Option<f64>,
    /// What this host can generate at most, by a calibration; null without one that applies.
    pub ceiling: Option<Ceiling>,
}

/// One engine thread between the first and the last look of the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadShare {
    /// Part of the time in which it had something to do: in a closed loop, all that it did not wait
    /// for sockets; in an open loop, its CPU time without `spun_s`, of the time that it had a core.
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

/// Turn delay: from an instant at which a kernel timer was ready to the thread's taking note of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TurnDelay {
    /// Such instants.
    pub probes: u64,
    /// Median, microseconds.
    pub turn_delay_p50_us: Option<f64>,
    /// 99th percentile; with fewer than 1,000 probes not ten of them lie beyond it.
    pub turn_delay_p99_us: Option<f64>,
    pub turn_delay_max_us: Option<f64>,
    /// 99th percentile of what is left without the time that the thread waited for a core.
    pub own_delay_p99_us: Option<f64>,
    /// The highest whole percentile, 99 at most, that ten probes lie beyond; null below 20 probes.
    pub tail_percentile: Option<u32>,
    /// The delay at that percentile.
    pub turn_delay_tail_us: Option<f64>,
    /// What is left there without the time that the thread waited for a core.
    pub own_delay_tail_us: Option<f64>,
}

/// What a calibration of this host says about a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// Statements a second: engine threads, or cores where these are fewer, by the CPU an op.
    pub qps: f64,
    /// That CPU, microseconds.
    pub us_per_op: f64,
    /// Clients of the calibration's step that comes nearest.
    pub clients: u32,
    pub engine_threads: u32,
    /// When it was measured, RFC 3339.
    pub calibrated_at: String,
}

/// What a step's number is worth, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The weightiest of what the reasons say.
    pub kind: VerdictKind,
    /// All of them, the weightiest first; none where it is ok.
    pub reasons: Vec<Reason>,
}

/// Why a number is not simply the server's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reason {
    /// A stable short name, such as `turn_delay`.
    pub code: String,
    /// A clause with the figure and its limit.
    pub message: String,
}

impl Verdict {
    /// Tells the kind and its reasons in a line: the weightiest ones, and the codes of the others.
    pub(crate) fn sentence(&self) -> String {
        let (told, others) = self.reasons.split_at(self.reasons.len().min(TOLD_MAX));
        let mut told: Vec<String> = told.iter().map(|reason| reason.message.clone()).collect();
        let codes: Vec<&str> = others.iter().map(|reason| reason.code.as_str()).collect();
        told.extend((!codes.is_empty()).then(|| format!("also {}", codes.join(", "))));
        match told.as_slice() {
            [] => self.kind.name().to_owned(),
            told => format!("{}: {}", self.kind.name(), told.join("; ")),
        }
    }
}
