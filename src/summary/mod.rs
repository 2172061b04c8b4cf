//! The JSON contract: one object a step, `loadgen.summary/1`.
//!
//! Names are `snake_case` with the unit last (`_s` seconds, `_us` microseconds, `_bytes`).
//! Adding a field keeps the version, changing a meaning makes the next, and readers keep the
//! old ones for ever. Readers tolerate unknown fields and refuse unknown `schema` values.
//! `docs/summary.schema.json` is generated from these types and tested.

mod conditions;
mod facts;
mod measured;
mod read;
mod record;
mod write;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::mysql::facts::{Driver, Innodb, Levels, Server, SettingChange, Status, durability};
pub use crate::observe::host::HostFacts;
pub use crate::observe::probe::{HostCost, HostState, Link, Probed, ProcessCost};
pub use crate::observe::recorder::Phase;
pub use crate::observe::timeline::Interval;
pub use crate::observe::times::Distribution;
use crate::terms::{Arrival, Code, Finding, OnError, Spread, StatementMode};
pub use crate::terms::{Class, VerdictKind};

pub(crate) use conditions::{CommandRun, Experiment, Load, Suite, SuiteTest, TableRows};
pub use conditions::{Conditions, Keys, Prepared, Sample, Settled};
pub(crate) use facts::{counter, in_queues};
pub(crate) use measured::{Ceiling, Share, ThreadShare, TurnDelay};
pub use measured::{Doubt, Latency, LedgerEntry, Outage, Reason, StatementLatency, Verdict};
pub use read::{Loaded, collect, from_json, load};
pub use record::{Place, Record, Recorded, records};
pub use write::{Store, file_name, to_json};
pub(crate) use write::{escape_hostile, part};

/// The `schema` value that this version writes.
pub(crate) const SCHEMA: &str = "loadgen.summary/1";

/// Everything that one step measured, and what it was measured on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// Always `SCHEMA`.
    pub schema: String,
    pub loadgen: Program,
    /// One invocation of loadgen: 16 hexadecimal digits.
    pub run_id: String,
    /// One step of it: the run's id, a dash, the step's number from 1.
    pub step_id: String,
    /// The row of the table: `--label`, else the server's version.
    pub label: String,
    /// `--note K=V`.
    pub notes: BTreeMap<String, String>,
    pub outcome: Outcome,
    /// Why it did not complete.
    pub reason: Option<String>,
    pub workload: Workload,
    pub plan: Plan,
    pub server: Server,
    pub driver: Driver,
    /// The client host's fingerprint and the client's cost.
    pub client: Client,
    /// The first instant of the step, RFC 3339 in UTC.
    pub started_at: String,
    /// Length of the measured window, seconds.
    pub measured_s: f64,
    /// Counts and rates over the measured window.
    pub totals: Totals,
    /// Latency of what was issued inside the measured window.
    pub latency: Latency,
    /// All phases, one entry an interval.
    pub timeline: Vec<Interval>,
    /// Times in which nobody was served.
    #[serde(default)]
    pub outages: Vec<Outage>,
    /// What the tables must hold more than before: all phases, not only the window.
    pub ledger: Vec<LedgerEntry>,
    /// Name of the record that was made before the first write, without `.begun`; or null.
    pub record: Option<String>,
    /// What a timed load was; null otherwise.
    pub load: Option<Load>,
    /// What a suite of external commands was; null otherwise.
    pub suite: Option<Suite>,
    /// What a reader of the numbers must know.
    pub warnings: Vec<Warning>,
    /// Whether the numbers are the server's; null where the client did not look at itself.
    pub verdict: Option<Verdict>,
    /// Its part in a profile; null for what a workload's verb measured.
    pub experiment: Option<Experiment>,
    /// What it was measured under; null of loads and suites.
    pub conditions: Option<Conditions>,
}

/// The program that wrote a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Program {
    pub version: String,
    /// Git revision it was built from, where known.
    pub revision: Option<String>,
    /// Build profile: `release` or `debug`.
    pub profile: String,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole window was measured.
    #[default]
    Completed,
    /// A signal ended it early; what was measured is here.
    Interrupted,
    /// An error ended it early; what was measured is here.
    Aborted,
    /// The server's version, or a variable that is a condition, changed: it is no result.
    ServerChanged,
}

impl Outcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Interrupted => "interrupted",
            Outcome::Aborted => "aborted",
            Outcome::ServerChanged => "server-changed",
        }
    }

    /// ` (aborted)`; nothing where it completed.
    pub(crate) fn mark(self) -> String {
        if self == Outcome::Completed { String::new() } else { format!(" ({})", self.name()) }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Workload {
    /// Its name, such as `point-select`, or the title that it has in a profile.
    pub name: String,
    /// Whether it is one of loadgen's own; old versions did not say.
    #[serde(default)]
    pub built_in: bool,
    /// The statements of one op, in order.
    pub statements: Vec<StatementText>,
    /// Server-side prepared statements or text.
    pub mode: StatementMode,
    /// As on the command line, such as `uniform` or `zipf:0.99`.
    pub distribution: String,
    /// How clients were spread over the tables: `pinned` or `random`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub spread: Spread,
    /// The tables' kind, such as `sbtest`.
    #[serde(default = "sbtest")]
    pub schema: String,
    /// Its options, switches as 0 and 1.
    #[serde(default)]
    pub options: BTreeMap<String, u64>,
    /// What these are where nobody sets them; null from old versions, and of loads and suites.
    pub option_defaults: Option<BTreeMap<String, u64>>,
    /// The transactions in the form of docs/workloads.md; null from old versions, loads and suites.
    pub transactions: Option<serde_json::Value>,
    /// Why the ledger does not tell what it wrote; null where it does.
    pub unfollowed: Option<String>,
}

fn once() -> u64 {
    1
}

#[cfg(test)]
fn abort() -> String {
    OnError::Abort.to_string()
}

fn sbtest() -> String {
    "sbtest".to_owned()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatementText {
    /// `select`, `update`, `insert`, `delete` …
    pub kind: String,
    /// Its SQL; `{table}` stands for the table's name.
    pub sql: String,
    /// How often it is run in an op of its transaction.
    #[serde(default = "once")]
    pub repeat: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Plan {
    /// Tables used.
    pub tables: u32,
    /// Rows a table.
    pub rows: u64,
    /// Seed of the rows; null for tables that loadgen did not make.
    pub data_seed: Option<u64>,
    /// Concurrent clients, one connection each.
    pub clients: u32,
    /// Operating system threads they ran on.
    pub engine_threads: u32,
    /// Warm-up before the window, seconds.
    pub warmup_s: f64,
    /// Asked length of the window, seconds; null with `ops`.
    pub time_s: Option<f64>,
    /// Asked number of ops; null with `time_s`.
    pub ops: Option<u64>,
    /// Asked ops a second over all clients; null for a closed loop.
    pub rate: Option<f64>,
    /// Arrival process of a paced run; null for a closed loop.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub arrival: Option<Arrival>,
    /// Pause of a client after each op of a closed loop, outside its latency, seconds; null for none.
    pub think_s: Option<f64>,
    /// Queues of arrivals: one an engine thread, and one a table of it where clients are pinned;
    /// null for a closed loop.
    pub queues: Option<u32>,
    /// Seed of the key streams.
    pub seed: u64,
    /// `SET NAMES` of the sessions; null for the driver's own (utf8mb4, utf8 before 5.5.3).
    pub charset: Option<String>,
    /// What errors did: `abort`, `continue` or `reconnect`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "String", default = "abort"))]
    pub on_error: OnError,
    /// More errors would have ended the step: a count, or a share such as `1%`; null for no limit.
    pub max_errors: Option<String>,
    /// An op without an answer for so long was given up, seconds; null for no limit.
    pub op_timeout_s: Option<f64>,
    pub repeat_index: u32,
    pub repeats: u32,
}

impl Plan {
    /// Lists flags that ask for it, of those that all steps of a sweep share, with their values.
    pub(crate) fn flags(&self) -> [(&'static str, Option<String>); 5] {
        let seconds = |s: f64| format!("{s}s");
        [
            ("charset", self.charset.clone()),
            ("on-error", (self.on_error != OnError::Abort).then(|| self.on_error.to_string())),
            ("max-errors", self.max_errors.clone()),
            ("op-timeout", self.op_timeout_s.map(seconds)),
            ("think", self.think_s.map(seconds)),
        ]
    }
}

/// The client host and the client's own cost over the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Client {
    pub host: String,
    pub kernel: String,
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: u32,
    /// Whether the server runs on this host.
    pub same_host: bool,
    /// User CPU of this process over the window, seconds.
    pub user_s: f64,
    /// System CPU of this process over the window, seconds.
    pub sys_s: f64,
    /// CPU of this process an op, microseconds; null without ops.
    pub us_per_op: Option<f64>,
    pub threads: Vec<Thread>,
    /// Peak resident size of this process so far, bytes.
    pub max_rss_bytes: u64,
    /// Median round trip of an empty query before the first step, microseconds.
    pub rtt_us: Option<f64>,
    /// Bytes that this host's interfaces but loopback received over the window, whoever for.
    pub net_rx_bytes: Option<u64>,
    /// Bytes that they sent.
    pub net_tx_bytes: Option<u64>,
    /// How much of the numbers was the client's doing; null where it did not look.
    pub share: Option<Share>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Thread {
    /// Busy share of the window, 0 to 1.
    pub busy: f64,
}

/// Counts and rates over the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Totals {
    /// Ops that succeeded (one pass of a transaction).
    pub ops: u64,
    /// Statements of these ops (one round trip each).
    pub statements: u64,
    /// Ops a second.
    pub tps: f64,
    /// Statements a second.
    pub qps: f64,
    /// Rows returned, and rows that INSERTs put in.
    pub rows: u64,
    /// Errors of all phases by code; with class `connect`, attempts to open a lost connection
    /// again, which are no ops. Ops that were given up are in `abandoned`.
    pub errors: Vec<ErrorCount>,
    /// Lost connections that were opened again.
    pub reconnects: u64,
    /// Ops given up, of a paced run also those that were not issued; their age is in the latency.
    pub abandoned: u64,
    /// Ops with writes that may have been done or not: in neither rates nor times.
    #[serde(default)]
    pub in_doubt: u64,
    /// Arrivals of a paced run not yet issued at the window's end; null for a closed loop.
    pub backlog: Option<u64>,
    /// Arrivals of a paced run in the window; null for a closed loop.
    pub intended: Option<u64>,
    /// Arrivals of the warm-up not yet issued when the window began; null for a closed loop.
    pub warmup_left: Option<u64>,
    /// How long the first of these had waited by then, microseconds; 0 where there were none.
    pub warmup_late_us: Option<f64>,
    pub per_table: Vec<TableOps>,
    /// How evenly the clients were served.
    pub per_client: PerClient,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErrorCount {
    /// The server's error number; null for the client's own classes.
    pub code: Option<u16>,
    /// SQLSTATE; null for the client's own classes.
    pub sqlstate: Option<String>,
    /// `session` (deadlocks and the like), `read_only`, `full` (too many connections),
    /// `interrupted` (a killed query), `ended` (a killed session, a shutdown), `idle` (the server
    /// hung up for silence), `commit` (an error while committing), `behind` (a proxy's servers),
    /// `server` (any other of its errors), `wrong` (an answer that fails its check), `lost` (the
    /// connection), `driver` (a driver panic), `connect` (an attempt to reconnect; no op).
    pub class: String,
    pub message: String,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TableOps {
    pub table: String,
    pub ops: u64,
}

/// Ops of the window by client: smallest, median, largest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PerClient {
    pub ops_min: u64,
    pub ops_median: f64,
    pub ops_max: u64,
}

/// What a reader of the numbers must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    /// A stable short name, such as `debug_build`.
    pub code: String,
    pub message: String,
}

impl From<Finding> for Warning {
    fn from(found: Finding) -> Warning {
        Warning { code: found.code.name().to_owned(), message: found.to_string() }
    }
}

impl Warning {
    /// Tells whether it has a code, which may be another version's.
    pub(crate) fn is(&self, code: Code) -> bool {
        self.code == code.name()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::Summary;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/summary.schema.json");

    /// Readers take a field that may be null and is absent for null.
    fn absent_is_null(schema: &mut Value) {
        let is_null = |one: &Value| one == "null" || one["type"] == "null";
        let of = |schema: &mut Value, key: &str| schema.get_mut(key).map(Value::take);
        if let Some(Value::Object(mut properties)) = of(schema, "properties") {
            for property in properties.values_mut() {
                let kinds = [&property["type"], &property["anyOf"]].into_iter();
                if kinds.filter_map(Value::as_array).flatten().any(is_null) {
                    property["default"] = Value::Null;
                }
            }
            schema["properties"] = properties.into();
        }
        if let Some(Value::Object(mut types)) = of(schema, "$defs") {
            types.values_mut().for_each(absent_is_null);
            schema["$defs"] = types.into();
        }
    }

    /// `LOADGEN_BLESS=1 cargo test --lib summary::` writes it anew after a change.
    #[test]
    fn the_committed_schema_is_that_of_the_types() {
        let mut schema = schemars::schema_for!(Summary).to_value();
        absent_is_null(&mut schema);
        let schema = schemars::Schema::try_from(schema).expect("it was one");
        let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
        text.push('\n');
        if std::env::var_os("LOADGEN_BLESS").is_some() {
            std::fs::write(PATH, &text).expect("docs/ can be written");
        }
        let committed = std::fs::read_to_string(PATH).expect("docs/summary.schema.json");
        assert!(
            committed == text,
            "docs/summary.schema.json is stale; LOADGEN_BLESS=1 cargo test --lib summary::"
        );
    }
}
