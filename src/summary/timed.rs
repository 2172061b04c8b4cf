//! What runs that last as long as they take say besides: loads and suites of commands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
    /// These a second.
    pub rows_per_s: f64,
    /// Statements that were answered well.
    pub statements: u64,
    /// Bytes of these, and of the lines of LOAD DATA.
    pub bytes: u64,
    /// Character set of the statements: the dump's own SET NAMES, else `--charset`, else the
    /// session's.
    pub charset: String,
    /// The loading session's `character_set_…` and `collation_…` variables at its start; the
    /// global ones are in `server.variables`.
    pub character_sets: BTreeMap<String, String>,
    /// The tables in the order in which they were loaded.
    pub tables: Vec<TableRows>,
    /// Whether the rows were counted afterwards, and a sample of generated ones was looked at.
    pub verified: bool,
}

/// Rows of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TableRows {
    /// Table name.
    pub table: String,
    /// Rows that the server says it took.
    pub rows: u64,
}

/// External commands that were run one after the other and timed. `measured_s` is the sum of
/// their times, `client.user_s` and `client.sys_s` are the sums of theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Suite {
    /// The commands that ran, in order.
    pub tests: Vec<SuiteTest>,
    /// File with what they printed, in the directory of the summary; null where there is none.
    pub output: Option<String>,
}

/// One external command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuiteTest {
    /// Its name.
    pub name: String,
    /// Program and arguments.
    pub run: Vec<String>,
    /// From its start to its end, seconds.
    pub wall_s: f64,
    /// User CPU of it and of the processes that it waited for, seconds.
    pub user_s: f64,
    /// System CPU, likewise.
    pub sys_s: f64,
    /// `ok`, `exit N`, `signal NAME`, `not started: …` or `interrupted`.
    pub status: String,
}
