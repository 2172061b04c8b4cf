//! What a step was measured under, beside plan and settings: the state that the server and the
//! hosts were in, and where the keys fell. The warnings follow from it.

use serde::{Deserialize, Serialize};

use super::{Class, HostState};

/// The conditions of a step. What could not be read is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Conditions {
    /// What was done before the step; null where it was left as it was.
    pub before: Option<Prepared>,
    /// The server's levels before the step opened its connections.
    pub at_start: Option<Levels>,
    /// Readings within the window: at its start, after a third, after two, and at its end.
    pub window: Vec<Sample>,
    /// The client's host over the step.
    pub client_host: Option<HostState>,
    /// The server's host over the step; null where it is the client's.
    pub server_host: Option<HostState>,
    /// Where the window's keys fell.
    pub keys: Option<Keys>,
    /// What the user says of the data: whether they fit the pool.
    pub expected_class: Option<Class>,
}

/// What was done before a step: `--warm`, `--ahi`, `--settle`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Prepared {
    /// `pool`: all rows were read before the first step of the sweep; or `none`.
    pub warm: String,
    /// `cold`, `warm` or `as-is`.
    pub ahi: String,
    /// Share of the searches that a warm adaptive hash index answered, 0 to 1.
    pub ahi_hits: Option<f64>,
    /// The wait for dirty pages and history; null without.
    pub settle: Option<Settled>,
}

/// A wait until what was written before is flushed and purged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Settled {
    /// The longest that it might take, seconds.
    pub limit_s: f64,
    /// How long it took.
    pub took_s: f64,
    /// Whether little was left, of everything that is waited for.
    pub complete: bool,
    /// What the server does not tell: `dirty pages`, `history list`. It was not waited for.
    pub unknown: Vec<String>,
    /// The levels before it.
    pub first: Levels,
    /// The levels after it.
    pub last: Levels,
}

/// Levels of a server at one instant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Levels {
    /// `Uptime`, seconds.
    pub uptime_s: Option<u64>,
    /// Pages of InnoDB's buffer pool.
    pub pool_pages: Option<u64>,
    /// Those that hold nothing.
    pub pool_free_pages: Option<u64>,
    /// Those that have to be written.
    pub pool_dirty_pages: Option<u64>,
    /// Transactions whose old versions are not purged yet.
    pub history_list_length: Option<u64>,
    /// Log since the last checkpoint.
    pub checkpoint_age_bytes: Option<u64>,
    /// The most that it may be.
    pub checkpoint_age_max_bytes: Option<u64>,
    /// Since the first of the tables was made or altered; asked only where a pool was restored.
    pub tables_age_s: Option<u64>,
    /// `Innodb_buffer_pool_load_status`: what became of the load at the server's start.
    pub pool_load: Option<String>,
}

/// One reading within the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sample {
    /// Seconds from the window's start.
    pub at_s: f64,
    /// `Innodb_buffer_pool_reads`: pages read from storage since the server's start.
    pub pool_reads: Option<u64>,
    /// Pages of the pool that hold nothing.
    pub pool_free_pages: Option<u64>,
    /// Clock of the fastest core of the client's host, MHz.
    pub client_mhz: Option<f64>,
}

/// How the keys of the window spread over the rows of a table, by the distribution's arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Keys {
    /// The distribution that most of them come from.
    pub distribution: String,
    /// Keys drawn from it in the window, over all tables.
    pub drawn: f64,
    /// The hottest row's share of its table's keys, 0 to 1.
    pub hottest_share: f64,
    /// The smallest part of the rows that half of the keys fall on, 0 to 1.
    pub half_on_share: f64,
    /// Different rows that are expected to be touched, over all tables.
    pub distinct: f64,
    /// All rows.
    pub rows: f64,
}
