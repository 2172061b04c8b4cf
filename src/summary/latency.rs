//! How long ops took: over the window, and by the interval of the timeline.

use serde::{Deserialize, Serialize};

use super::Distribution;

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
