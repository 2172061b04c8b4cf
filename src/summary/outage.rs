//! A time without service.

use serde::{Deserialize, Serialize};

/// A time in which no op succeeded on any client while errors occurred. Instants are seconds from
/// the start of the step's warm-up, as in the timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Outage {
    /// The first error.
    pub first_error_s: f64,
    /// The last one.
    pub last_error_s: f64,
    /// From the last success before to the first one after it, or to the end of the window.
    pub gap_s: f64,
    /// The first success after it; null if there was none in the window.
    pub first_success_s: Option<f64>,
    /// Start of the first whole interval of the timeline after it with 95 % of the earlier rate
    /// (the median of up to ten intervals before it); null if there was none.
    pub recovered_s: Option<f64>,
    /// The server's number of the first error; null for lost connections and the like.
    pub code: Option<u16>,
    /// Errors of all clients in it, ops given up and attempts to open a connection again included.
    pub errors: u64,
    /// Text of the first error.
    pub first_error: String,
    /// Text of the last one.
    pub last_error: String,
}
