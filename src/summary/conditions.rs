//! What a step was measured under: the state of the server and the hosts, where the keys fell, its
//! part in a profile, and what loads and suites say besides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{HostState, Levels};
use crate::terms::Class;

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
    pub took_s: f64,
    /// Whether little was left, of everything that is waited for.
    pub complete: bool,
    /// What the server does not tell: `dirty pages`, `history list`. It was not waited for.
    pub unknown: Vec<String>,
    pub first: Levels,
    pub last: Levels,
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
    pub rows: f64,
}

/// A step's part in a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Experiment {
    pub profile: String,
    /// The same for the same cell in every invocation: what is measured already is found by it.
    pub key: String,
    /// `--scale`: 1 is the profile's own size.
    pub scale: f64,
    /// The label that this one is a variant of.
    pub base_label: Option<String>,
    /// Titles of the runs that wrote to the data before, this one left out; null where not known.
    pub written_by: Option<Vec<String>>,
    pub commands: Vec<CommandRun>,
}

/// A command that ran beside a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommandRun {
    /// Its program; arguments may be nobody else's business.
    pub program: String,
    /// Four hexadecimal digits of its instant and its arguments; null from old versions.
    pub asked: Option<String>,
    /// When it was started, seconds from the window's start.
    pub at_s: f64,
    /// Exit status; null where it was ended by a signal, or not started.
    pub exit: Option<i32>,
    /// The file beside the summary that holds what it wrote.
    pub output: String,
}

/// A timed load. `measured_s` is the time from its first statement to the last answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Load {
    /// `generated` or `dump`.
    pub source: String,
    /// The dump as it was given, `-` for standard input; null for generated rows.
    pub file: Option<String>,
    /// `extended`, `single` or `load-data`; null for a dump, whose statements are its own.
    pub mode: Option<String>,
    /// Bytes that an extended INSERT stays below; null otherwise.
    pub insert_bytes: Option<u64>,
    /// Rows that the server says it took.
    pub rows: u64,
    pub rows_per_s: f64,
    /// Statements that were answered well.
    pub statements: u64,
    /// Bytes of these, and of the lines of LOAD DATA.
    pub bytes: u64,
    /// Character set of the statements: the dump's own, else `--charset`, else the session's.
    pub charset: String,
    /// The loading session's `character_set_…` and `collation_…` variables at its start.
    pub character_sets: BTreeMap<String, String>,
    pub tables: Vec<TableRows>,
    /// Whether the rows were counted afterwards, and a sample of generated ones was looked at.
    pub verified: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TableRows {
    pub table: String,
    /// Rows that the server says it took.
    pub rows: u64,
}

/// External commands, timed one after the other; `measured_s` and the client's CPU are sums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Suite {
    /// The commands that ran, in order.
    pub tests: Vec<SuiteTest>,
    /// File with what they printed, in the directory of the summary; null where there is none.
    pub output: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuiteTest {
    pub name: String,
    pub run: Vec<String>,
    /// From its start to its end, seconds.
    pub wall_s: f64,
    /// User CPU of it and of the processes that it waited for, seconds.
    pub user_s: f64,
    pub sys_s: f64,
    /// `ok`, `exit N`, `signal NAME`, `not started: …` or `interrupted`.
    pub status: String,
}
