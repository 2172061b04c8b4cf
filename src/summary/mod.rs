//! The JSON contract: one object a step, `loadgen.summary/1`.
//!
//! Names are `snake_case` with the unit last (`_s` seconds, `_us` microseconds, `_bytes`).
//! Adding a field keeps the version, changing a meaning makes the next, and readers keep the
//! old ones for ever. Readers tolerate unknown fields and refuse unknown `schema` values.
//! `docs/summary.schema.json` is generated from these types and tested.

mod counter;
mod files;
mod imported;
mod parts;
mod timeline;
mod warning;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

pub use crate::mysql::facts::{Driver, Innodb, Levels, Server, SettingChange, Status, durability};
pub use crate::observe::host::HostFacts;
pub use crate::observe::probe::{HostCost, HostState, Link, Probed, ProcessCost};
pub use crate::observe::recorder::{Interval, Phase};
pub use crate::observe::times::Distribution;
use crate::terms::{
    Arrival, Cell, Code, Finding, GroupName, OnError, Shared, Spread, StatementMode, add, contract,
};
pub use crate::terms::{Class, ErrorClass, VerdictKind};

pub(crate) use counter::counter;
pub(crate) use files::{Claim, claim, escape_hostile, part};
pub use files::{
    Loaded, Location, Record, Store, collect, file_name, from_json, load, load_each, records,
    to_json,
};
pub(crate) use imported::IMPORTED;
pub use imported::{
    Fairness, Imported, ImportedBucket, ImportedInterval, ImportedLatency, ImportedPercentile,
    ImportedTotals, TextSource,
};
pub use parts::{
    AddressCounts, ErrorCount, KindLatency, RateSearch, StatementLatency, Transaction,
    TransactionLatency, VerifyQuery,
};

/// The `schema` value that this version writes.
pub(crate) const SCHEMA: &str = "loadgen.summary/1";
/// Smallest row of any workload's tables: InnoDB's header and two numbers.
const ROW_MIN_BYTES: u64 = 16;
/// Longest text that a finding takes from a file, characters.
pub(crate) const TEXT_MAX: usize = 300;

contract! {
    /// The measurement of one step, with its circumstances.
    pub struct Summary {
        /// Always `SCHEMA`.
        pub schema: String,
        pub loadgen: Program,
        /// One invocation of loadgen: 16 hexadecimal digits.
        pub run_id: String,
        /// One step of it: the run's id, a dash, the step's number from 1. A step that was measured again
        /// (`--others-max`) has a dot and the number of the try behind it, from 2.
        pub step_id: String,
        /// The row of the table: `--label`, else the server's version.
        pub label: String,
        /// `--note K=V`.
        pub notes: BTreeMap<String, String>,
        pub outcome: Outcome,
        /// Reason of an early end.
        pub reason: Option<String>,
        #[cfg_attr(test, schemars(with = "Workload"))]
        pub workload: Shared<Workload>,
        pub plan: Plan,
        pub server: Server,
        pub driver: Driver,
        /// The client host's fingerprint and the client's cost.
        pub client: Client,
        /// The hosts of the clients with `--hosts` or `--ranks`: then `client` is all of them together; not there
        /// otherwise.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub hosts: Vec<ClientHost>,
        /// The first instant of the step, RFC 3339 in UTC.
        pub started_at: String,
        /// Length of the measured window, seconds.
        pub measured_s: f64,
        /// Counts and rates over the measured window.
        pub totals: Totals,
        /// Latency of what was issued inside the measured window.
        pub latency: Latency,
        /// The ops to which a script gave a name (`loadgen.transaction`), by name; not there without any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub transactions: Vec<Transaction>,
        /// The addresses that the clients were dealt out to in turn, where there are several: what the server tells of
        /// itself is of the first; not there with one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub addresses: Vec<AddressCounts>,
        /// Groups of clients beside the measured ones, which are in no other field but `ledger`, `outcome` and what
        /// the server and the hosts tell; not there without any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub groups: Vec<Group>,
        /// All phases, one entry an interval.
        pub timeline: Vec<Interval>,
        /// Times in which nobody was served.
        #[serde(default)]
        pub outages: Vec<Outage>,
        /// Changes that the tables must hold: of all phases, not only the window.
        pub ledger: Vec<LedgerEntry>,
        /// Name of the record that was made before the first write, without `.begun`; or null.
        pub record: Option<String>,
        /// Queries for `loadgen verify`, of a profile or a script; not there without any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub verify: Vec<VerifyQuery>,
        /// A timed load; null otherwise.
        pub load: Option<Load>,
        /// A suite of external commands; null otherwise.
        pub suite: Option<Suite>,
        /// Findings that a reader of the numbers must know.
        pub warnings: Vec<Warning>,
        /// Verdict on the numbers; null if the client did not watch itself, as in loads and suites of old versions.
        pub verdict: Option<Verdict>,
        /// Its part in a profile; null for what a workload's verb measured.
        pub experiment: Option<Experiment>,
        /// The conditions of the measurement; null for loads and suites.
        pub conditions: Option<Conditions>,
    }

    /// The program that wrote a summary.
    pub struct Program {
        pub version: String,
        /// Git revision it was built from, where known.
        pub revision: Option<String>,
        /// Build profile: `release` or `debug`.
        pub profile: String,
    }

    /// The end of a step.
    #[derive(Copy, Eq)]
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
        /// A host with clients was lost, with what it had counted: it is no result.
        RankLost,
        /// Others used more of a host's CPU than `--others-max`, and the step was measured again.
        MeasuredAgain,
    }

    pub struct Workload {
        /// Its name, such as `point-select`, or the title that it has in a profile.
        pub name: String,
        /// True for a workload of loadgen's own; missing from old versions.
        #[serde(default)]
        pub built_in: bool,
        /// The statements of one op, in order.
        pub statements: Vec<StatementText>,
        /// Server-side prepared statements or text.
        pub mode: StatementMode,
        /// As on the command line, such as `uniform` or `zipf:0.99`.
        pub distribution: String,
        /// Assignment of clients to tables: `pinned` or `random`.
        #[cfg_attr(test, schemars(with = "String"))]
        pub spread: Spread,
        /// The tables' kind, such as `sbtest`.
        #[serde(default = "sbtest")]
        pub schema: String,
        /// Its options, switches as 0 and 1.
        #[serde(default)]
        pub options: BTreeMap<String, u64>,
        /// Defaults of these options; null from old versions, and for loads and suites.
        pub option_defaults: Option<BTreeMap<String, u64>>,
        /// The transactions in the form of docs/reference/workload-keys.md; null from old versions, loads and
        /// suites.
        pub transactions: Option<serde_json::Value>,
        /// Reason why the ledger lacks its writes; null if it has them.
        pub unfollowed: Option<String>,
        /// The script that is run instead of statements; null without one.
        pub script: Option<Script>,
    }

    pub struct Script {
        /// The files that it had loaded before its first event.
        pub files: Vec<ScriptFile>,
        /// Those of its own options that are numbers or switches (0 and 1), without passwords.
        pub options: BTreeMap<String, f64>,
        /// 16 bits of the hash of its other options, whose texts may hold a password; empty without any.
        pub texts: String,
    }

    pub struct ScriptFile {
        /// Its name, without directories.
        pub name: String,
        pub sha256: String,
    }

    pub struct StatementText {
        /// `select`, `update`, `insert`, `delete` …
        pub kind: String,
        /// Its SQL; `{table}` stands for the table's name.
        pub sql: String,
        /// Number of its runs in an op of its transaction.
        #[serde(default = "once")]
        pub repeat: u64,
    }

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
        /// Pause of a client after each op of a closed loop, outside its latency, seconds; null for
        /// none.
        pub think_s: Option<f64>,
        /// Ops of a client after which it closed its connection and logged in again; not there where none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reconnect_every: Option<u64>,
        /// Queues of arrivals: one an engine thread, and one a table of it where clients are
        /// pinned; null for a closed loop.
        pub queues: Option<u32>,
        /// Seed of the key streams.
        pub seed: u64,
        /// `SET NAMES` of the sessions; null for that of the log-in (utf8mb4, utf8 before 5.5.3).
        pub charset: Option<String>,
        /// Reaction to errors: `abort`, `continue` or `reconnect`.
        #[serde(default)]
        #[cfg_attr(test, schemars(with = "String", default = "abort"))]
        pub on_error: OnError,
        /// Codes of errors after which an op began again, as sysbench has it, or `all`; null in a run by
        /// loadgen's own rules.
        #[serde(default)]
        pub begins_again: Option<String>,
        /// More errors would have ended the step: a count, or a share such as `1%`; null for no
        /// limit.
        pub max_errors: Option<String>,
        /// An op without an answer for so long was given up, seconds; null for no limit.
        pub op_timeout_s: Option<f64>,
        pub repeat_index: u32,
        pub repeats: u32,
        /// The search for a rate that the step is of (`--slo`); null otherwise.
        pub search: Option<RateSearch>,
    }

    /// A group of clients beside the measured ones: constant through a sweep.
    pub struct Group {
        /// Its name in gates, metrics and findings.
        pub name: String,
        #[cfg_attr(test, schemars(with = "Workload"))]
        pub workload: Shared<Workload>,
        pub clients: u32,
        /// Asked ops a second over its clients; null for a closed loop.
        pub rate: Option<f64>,
        /// Its arrival process; null for a closed loop.
        #[cfg_attr(test, schemars(with = "Option<String>"))]
        pub arrival: Option<Arrival>,
        /// Pause of a client after each op; null for none.
        pub think_s: Option<f64>,
        /// Ops of a client between two log-ins; not there where none logged in again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reconnect_every: Option<u64>,
        /// The addresses that its clients were dealt out to, where there are several; not there with one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub addresses: Vec<AddressCounts>,
        /// Length of its window, seconds: that of the step. Where a script ended all of its clients, it ends with the last
        /// one. With `ops` it ends with the measured clients, or with its own last success after that.
        pub measured_s: f64,
        #[serde(flatten)]
        pub totals: Totals,
        /// Latency of what was issued inside its window.
        pub latency: Latency,
        /// The ops to which its script gave a name, by name; not there without any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub transactions: Vec<Transaction>,
        /// All phases of its clients, one entry an interval; not there from old versions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub timeline: Vec<Interval>,
        /// Times in which none of its clients was served.
        pub outages: Vec<Outage>,
    }

    /// The client host and the client's own cost over the window.
    pub struct Client {
        pub host: String,
        pub kernel: String,
        pub cpu: String,
        /// Cores that this process may use; with hosts those of all, a host once.
        pub cores: u32,
        /// True if the server runs on this host.
        pub same_host: bool,
        /// User CPU of this process over the window, seconds.
        pub user_s: f64,
        /// System CPU of this process over the window, seconds.
        pub sys_s: f64,
        /// CPU of this process an op, microseconds; null without ops, with a lost host, and with `groups`, whose ops
        /// cost, too.
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
        /// The client's share in the numbers; null if it did not watch itself, as in loads and suites of old versions.
        pub share: Option<Share>,
    }

    /// A host with clients of a step that has several.
    pub struct ClientHost {
        /// Its number: from 1 with `--hosts`, from 0 with `--ranks`.
        pub rank: u32,
        /// As `--hosts` names it; with `--ranks` the name that the host has.
        pub name: String,
        /// Its own name.
        pub host: String,
        pub kernel: String,
        pub cpu: String,
        /// Cores that its process may use.
        pub cores: u32,
        /// Identity of its boot: processes on one host have the same; null where it is not known.
        pub boot_id: Option<String>,
        /// True if the server runs on this host.
        pub same_host: bool,
        /// Its measured clients.
        pub clients: u32,
        /// Its engine threads.
        pub threads: u32,
        /// Ops of its measured clients in the window.
        pub ops: u64,
        /// User CPU of its process over the window, seconds.
        pub user_s: f64,
        /// System CPU of its process over the window, seconds.
        pub sys_s: f64,
        /// CPU of its process an op, microseconds; null without ops, and with `groups`, whose ops cost, too.
        pub us_per_op: Option<f64>,
        /// Peak resident size of its process so far, bytes.
        pub max_rss_bytes: u64,
        /// Median round trip of an empty query before the first step, microseconds.
        pub rtt_us: Option<f64>,
        /// Bytes that its interfaces but loopback received over the window, whoever for.
        pub net_rx_bytes: Option<u64>,
        /// Bytes that they sent.
        pub net_tx_bytes: Option<u64>,
        /// Its share in the numbers; null if it was lost, or had no clients.
        pub share: Option<Share>,
        /// Its state from the window's start to its end; null if it was lost, or had no clients.
        pub state: Option<HostState>,
        /// The worth of its part; null if that is not known.
        pub verdict: Option<VerdictKind>,
        pub clock: HostClock,
        /// The longest time without a word from it, seconds.
        pub silence_s: f64,
        /// The longest time for which it was stopped, by its own clock, seconds; 0 if it was not.
        pub paused_s: f64,
        /// How much later than the start, at which the warm-up begins, it heard of it, microseconds; 0 if in time.
        pub late_us: f64,
    }

    /// The clock of another host, by that of the measuring process.
    #[derive(Copy)]
    pub struct HostClock {
        /// The other clock less the own one, microseconds.
        pub offset_us: f64,
        /// Bound of the error of the window's edges there, microseconds: half of what the round trips
        /// leave open, and the change.
        pub error_us: f64,
        /// Change of the offset over the step, microseconds; null where nobody waited for it.
        pub moved_us: Option<f64>,
        /// The shortest round trip to it, microseconds.
        pub round_trip_us: f64,
    }

    pub struct Thread {
        /// Busy share of the window, 0 to 1.
        pub busy: f64,
    }

    /// Counts and rates over the measured window.
    pub struct Totals {
        /// Ops that succeeded (one pass of a transaction).
        pub ops: u64,
        /// Statements of these ops (one round trip each); of `loadgen sysbench` all that were answered
        /// in the window, those of attempts that began again included; so of scripts.
        pub statements: u64,
        /// Ops a second.
        pub tps: f64,
        /// Statements a second.
        pub qps: f64,
        /// Rows returned, in all result sets of an answer, and rows that INSERTs and REPLACEs put in, as the server
        /// counts them: 2 where one replaced or updated another.
        pub rows: u64,
        /// UPDATEs and DELETEs of these ops that found no row; null of loads, suites and old versions.
        pub unmatched: Option<u64>,
        /// Errors of all phases by code; with class `connect`, attempts to open a lost connection
        /// again, which are no ops. Ops that were given up are in `abandoned`. Errors after which an
        /// op began again are in `retried` alone, unless that is null.
        pub errors: Vec<ErrorCount>,
        /// Ignored errors of the window, as sysbench's text has them: after each an op began again, or
        /// the script went on, or the time was over; null in a run by loadgen's own rules.
        pub retried: Option<u64>,
        /// Lost connections that were opened again.
        pub reconnects: u64,
        /// Ops given up, of a paced run also those that were not issued; their age is in the
        /// latency. What waits when the time of `loadgen sysbench` is over, or in a group beside when `--ops`
        /// are done, counts in `backlog` instead.
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
        /// Wait of the first of these until then, microseconds; 0 if there were none.
        pub warmup_late_us: Option<f64>,
        pub per_table: Vec<TableOps>,
        /// The distribution of ops over the clients.
        pub per_client: PerClient,
    }

    pub struct TableOps {
        pub table: String,
        pub ops: u64,
    }

    /// Ops of the window by client: smallest, median, largest.
    pub struct PerClient {
        pub ops_min: u64,
        pub ops_median: f64,
        pub ops_max: u64,
    }

    /// A finding that a reader of the numbers must know, or a reason of a verdict.
    pub struct Warning {
        /// A stable short name, such as `debug_build`.
        pub code: String,
        /// A clause with the figures that matter.
        pub message: String,
        /// The figures by name: shares are parts of 1, times microseconds or seconds, sizes bytes, as
        /// docs/user/notes.md has them. Null from old versions.
        pub values: Option<Map<String, Json>>,
    }

    /// Latency of what was issued inside the window, including what finished in the drain.
    pub struct Latency {
        /// Service time: from the request to its answer; of a client that does not wait between two, from the answer
        /// before.
        pub service: Distribution,
        /// Response time: from the intended instant; null unless paced.
        pub response: Option<Distribution>,
        /// The part of the response time before the call; null unless paced.
        pub wait: Option<Distribution>,
        /// Service time of the ops that failed.
        pub failed: Distribution,
        /// Time of the log-ins that began in the window, with `reconnect_every` alone: from the connection to the last
        /// prepared statement. It is in none of the other times but the response time of ops that waited for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub connect: Option<Distribution>,
        /// Ops in doubt, which are in none of these times; null from old versions.
        pub in_doubt: Option<u64>,
        /// Ops that were issued and given up, in the times at their age; null from old versions.
        pub abandoned: Option<u64>,
        /// Service time of each statement, for workloads with several.
        pub by_statement: Vec<StatementLatency>,
        /// Service time of a script's statements by their kind; not there without a script.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub by_kind: Vec<KindLatency>,
    }

    /// A time in which no op succeeded on any client while errors occurred; instants of the
    /// timeline.
    pub struct Outage {
        pub first_error_s: f64,
        pub last_error_s: f64,
        /// From the last success before to the first one after it, or to the end of the window.
        pub gap_s: f64,
        /// The first success after it; null if there was none in the window.
        pub first_success_s: Option<f64>,
        /// Start of the first whole interval after it with 95 % of the earlier median rate; or
        /// null.
        pub recovered_s: Option<f64>,
        /// The server's number of the first error; null for lost connections and the like.
        pub code: Option<u16>,
        /// Ops of all clients that failed in it, those given up included.
        pub errors: u64,
        /// Attempts to open a lost connection again that failed; null in older files, whose `errors` count
        /// them.
        #[serde(default)]
        pub refused: Option<u64>,
        pub first_error: String,
        pub last_error: String,
    }

    /// Sums that the acknowledged writes of a step add to one table, all phases.
    pub struct LedgerEntry {
        pub table: String,
        /// Identity of the table's content, 1 to 8 hexadecimal digits; null where it has none.
        pub table_id: Option<String>,
        pub updates: u64,
        pub inserts: u64,
        pub deletes: u64,
        /// Writes whose outcome is unknown.
        pub in_doubt: u64,
        /// Sum that acknowledged writes added to `k`, as far as they know it.
        pub k_added: i64,
        /// Rows that were deleted or inserted with a `k` that nobody read: the sum of `k` can be
        /// told from `k_added` where this is 0.
        #[serde(default)]
        pub k_unknown: u64,
        /// The part of `k_added` that acknowledged writes subtracted. Losses of such and of others cancel out.
        #[serde(default)]
        pub k_taken: u64,
        /// Acknowledged updates that change neither the rows nor the sum of `k`.
        #[serde(default)]
        pub untraced: u64,
        /// Possible effects of the writes in doubt; null if there are none.
        pub doubt: Option<Doubt>,
    }

    /// Bounds of what writes in doubt changed: each of them did all of its part or nothing.
    #[derive(Copy, Eq)]
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

    /// The work of the client and of this host in the window. Shares are of 1.
    pub struct Share {
        /// Its engine threads; none of a load or a suite.
        pub threads: Vec<ThreadShare>,
        /// Delay of all threads at sockets that were ready.
        #[serde(flatten)]
        pub turns: TurnDelay,
        /// Cores of the client's host; of all, where several have the clients: then load and delays are those of
        /// the worst.
        pub host_cores: Option<u32>,
        /// CPU time of this host that was used by anybody, interrupts included.
        pub host_busy: Option<f64>,
        /// CPU time of this host that neither this process, other ranks, a server on it nor interrupts used; null of a
        /// suite, whose commands are other programs.
        pub other_load: Option<f64>,
        /// CPU time of this host that the hypervisor gave to others.
        pub steal: Option<f64>,
        /// CPU of the server's process, seconds; null where it is not on this host or not known.
        pub server_cpu_s: Option<f64>,
        /// Time that control groups (`cpu.max`) held its threads back, seconds over cores; or null.
        pub throttled_s: Option<f64>,
        /// The most that this host can generate, by a calibration; null without one that applies.
        pub ceiling: Option<Ceiling>,
    }

    /// One engine thread between the first and the last look of the window.
    pub struct ThreadShare {
        /// Part of the time in which it had something to do: in a closed loop without `--think`, all
        /// that it did not wait for sockets; else its CPU time without `spun_s`, of the time that it
        /// had a core.
        pub busy: f64,
        /// Length of that time, seconds.
        pub wall_s: f64,
        /// CPU of the thread, seconds; null where the kernel does not tell.
        pub cpu_s: Option<f64>,
        /// The part of it spent looking for work; 0 in a closed loop without `--think`.
        pub spun_s: f64,
        /// Time that it could have run and another thread had the core, seconds (`schedstat`).
        pub descheduled_s: Option<f64>,
        /// Delay at sockets that were ready.
        #[serde(flatten)]
        pub turns: TurnDelay,
    }

    /// Turn delay: from an instant at which a kernel timer was ready to the thread's taking note of
    /// it.
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
        /// The highest whole percentile, 99 at most, that ten probes lie beyond; null below 20
        /// probes.
        pub tail_percentile: Option<u32>,
        /// The delay at that percentile.
        pub turn_delay_tail_us: Option<f64>,
        /// The rest of it without the time that the thread waited for a core.
        pub own_delay_tail_us: Option<f64>,
    }

    /// The result of this host's calibration for a step.
    pub struct Ceiling {
        /// Statements a second: engine threads, or cores where these are fewer, by the CPU an op.
        pub qps: f64,
        /// CPU an op of that rate, microseconds.
        pub us_per_op: f64,
        /// Clients of the calibration's step that comes nearest.
        pub clients: u32,
        pub engine_threads: u32,
        /// Time of the calibration, RFC 3339.
        pub calibrated_at: String,
    }

    /// The worth of a step's number, with reasons.
    pub struct Verdict {
        /// The weightiest of what the reasons say.
        pub kind: VerdictKind,
        /// All of them, the weightiest first; none where it is ok.
        pub reasons: Vec<Warning>,
    }

    /// The conditions of a step. What could not be read is null.
    #[serde(default)]
    pub struct Conditions {
        /// Preparations before the step; null if there were none.
        pub before: Option<Prepared>,
        /// Flush of what the fill left dirty, before the first step on tables that this
        /// invocation filled on a private server; null elsewhere.
        pub flushed: Option<Settled>,
        /// The server's levels before the step opened its connections.
        pub at_start: Option<Levels>,
        /// Readings within the window: at its start, after a third, after two, and at its end.
        pub window: Vec<Sample>,
        /// The client's host over the step.
        pub client_host: Option<HostState>,
        /// The server's host over the step; null where it is the client's.
        pub server_host: Option<HostState>,
        /// Distribution of the window's keys.
        pub keys: Option<Keys>,
        /// The class of data that the user expects.
        pub expected_class: Option<Class>,
    }

    /// Preparations before a step: `--warm`, `--ahi`, `--settle`.
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
    #[serde(default)]
    pub struct Settled {
        /// The longest that it might take, seconds.
        pub limit_s: f64,
        pub took_s: f64,
        /// True if little was left to flush and to purge.
        pub complete: bool,
        /// Values that the server does not report: `dirty pages`, `history list`. There was no wait for them.
        pub unknown: Vec<String>,
        pub first: Levels,
        pub last: Levels,
    }

    /// One reading within the window.
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

    /// The spread of the window's keys over the rows of a table, by the distribution's
    /// arithmetic.
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
    pub struct Experiment {
        pub profile: String,
        /// The same for the same cell in every invocation: what is measured already is found by it.
        pub key: String,
        /// `--scale`: 1 is the profile's own size.
        pub scale: f64,
        /// The label that this one is a variant of.
        pub base_label: Option<String>,
        /// Titles of the runs that wrote to the data before, this one left out; null where not
        /// known.
        pub written_by: Option<Vec<String>>,
        pub commands: Vec<CommandRun>,
    }

    /// A command that ran beside a window.
    pub struct CommandRun {
        /// Its program; arguments may be nobody else's business.
        pub program: String,
        /// Four hexadecimal digits of its instant and its arguments; null from old versions.
        pub asked: Option<String>,
        /// Its start, seconds from the window's start.
        pub at_s: f64,
        /// Exit status; null where it was ended by a signal, or not started.
        pub exit: Option<i32>,
        /// The file beside the summary that holds what it wrote.
        pub output: String,
    }

    /// A timed load. `measured_s` is the time from its first statement to the last answer.
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
        /// True if the rows were counted afterwards, and a sample of generated ones was checked.
        pub verified: bool,
        /// True if the whole dump was checked before the first statement: it may be in memory then.
        #[serde(default)]
        pub read_before: bool,
        /// Subjects of the dump's statements that were not sent, such as `GTID_PURGED`.
        #[serde(default)]
        pub left_out: Vec<String>,
    }

    pub struct TableRows {
        pub table: String,
        /// Rows that the server says it took.
        pub rows: u64,
    }

    /// External commands, timed one after the other; `measured_s` and the client's CPU are sums.
    pub struct Suite {
        /// The commands that ran, in order.
        pub tests: Vec<SuiteTest>,
        /// File with what they printed, in the directory of the summary; null where there is none.
        pub output: Option<String>,
    }

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
}

impl Outcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Interrupted => "interrupted",
            Outcome::Aborted => "aborted",
            Outcome::ServerChanged => "server-changed",
            Outcome::RankLost => "rank-lost",
            Outcome::MeasuredAgain => "measured-again",
        }
    }

    /// Returns ` (aborted)` and the like; empty for a completed step.
    pub(crate) fn mark(self) -> String {
        if self == Outcome::Completed { String::new() } else { format!(" ({})", self.name()) }
    }
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

impl Latency {
    /// Returns the response times of an open loop, else the service times.
    pub(crate) fn own(&self) -> &Distribution {
        self.response.as_ref().unwrap_or(&self.service)
    }

    /// Counts the window's arrivals that were never issued: the response times have them at their age.
    pub(crate) fn unissued(&self) -> u64 {
        self.own().count.saturating_sub(self.service.count)
    }
}

impl Totals {
    pub(crate) fn failed_ops(&self) -> u64 {
        let errors = self.errors.iter().filter(|error| error.is_of_op());
        errors.map(|error| error.count).fold(0, u64::saturating_add)
    }
}

impl Doubt {
    pub(crate) fn add(&mut self, other: &Doubt) {
        add!(self, other; rows_added, rows_removed, k_added, k_removed, rows_unknown, k_unknown);
    }
}

#[derive(Debug, PartialEq)]
pub(crate) struct Judgement {
    /// The class of the pages' source.
    pub class: Option<Class>,
    pub findings: Vec<Finding>,
    pub verdict: Option<Verdict>,
    /// The worth of each host's part, where there are several.
    pub hosts: Vec<Option<VerdictKind>>,
}

impl Summary {
    /// Adds the judgement, the only part of a summary that comes later.
    pub(crate) fn judged(mut self, judgement: Judgement) -> Summary {
        let Judgement { class, findings, verdict, hosts } = judgement;
        (self.server.class, self.verdict) = (class, verdict);
        self.hosts.iter_mut().zip(hosts).for_each(|(host, verdict)| host.verdict = verdict);
        self.warnings.extend(findings.into_iter().map(Warning::from));
        self
    }

    /// Returns whether the measured clients have a finding; those of groups beside are their own.
    pub(crate) fn is_warned(&self, code: Code) -> bool {
        let own = |of: &&Warning| of.values.as_ref().is_none_or(|all| !all.contains_key("group"));
        self.warnings.iter().filter(own).any(|warning| warning.is(code))
    }

    /// Lists the workloads of all groups, the measured one first.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &Workload> {
        std::iter::once(&*self.workload).chain(self.groups.iter().map(|group| &*group.workload))
    }

    /// Adds up the statements a second of all groups, which the client made and the server counted.
    pub(crate) fn qps_of_all(&self) -> f64 {
        self.totals.qps + self.groups.iter().map(|group| group.totals.qps).sum::<f64>()
    }

    pub(crate) fn clients_of_all(&self) -> u32 {
        let beside = self.groups.iter().map(|group| group.clients);
        beside.fold(self.plan.clients, u32::saturating_add)
    }

    pub(crate) fn is_built_in(&self) -> bool {
        self.workloads().all(|workload| workload.built_in)
    }

    /// Returns a group beside as if it had been measured alone: with its numbers and none of the server's.
    pub(crate) fn of_group(&self, name: GroupName) -> Option<Summary> {
        let group = self.groups.iter().find(|group| group.name == name.as_str())?;
        let Group { clients, rate, arrival, think_s, reconnect_every, measured_s, .. } = *group;
        Some(Summary {
            step_id: self.step_id.clone(),
            label: self.label.clone(),
            outcome: self.outcome,
            workload: group.workload.clone(),
            plan: Plan { clients, rate, arrival, think_s, reconnect_every, ..self.plan.clone() },
            started_at: self.started_at.clone(),
            measured_s,
            totals: group.totals.clone(),
            latency: group.latency.clone(),
            transactions: group.transactions.clone(),
            ..Summary::default()
        })
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.server.variables.get(name).map(String::as_str)
    }

    pub(crate) fn cell(&self) -> Cell {
        Cell::new(self.plan.clients, self.plan.rate)
    }

    /// Counts the ops that failed with an error, without those that were given up.
    pub(crate) fn failed_ops(&self) -> u64 {
        self.totals.failed_ops()
    }

    pub(crate) fn refused_reconnects(&self) -> u64 {
        let errors = self.totals.errors.iter().filter(|error| !error.is_of_op());
        errors.map(|error| error.count).fold(0, u64::saturating_add)
    }

    /// Returns the size of the data; None if the server's statistics are from empty tables.
    pub(crate) fn data_bytes(&self) -> Option<u64> {
        let least = u64::from(self.plan.tables).saturating_mul(self.plan.rows);
        self.server.data_bytes.filter(|bytes| *bytes >= least.saturating_mul(ROW_MIN_BYTES))
    }

    /// Returns the seconds between two readings, the first at `first_s`, within the window. A server idles
    /// before a window without warm-up, and after any window. Then only a script's
    /// `thread_done` works.
    pub(crate) fn covered_s(&self, first_s: f64) -> Option<f64> {
        let lead_s = if self.plan.warmup_s > 0.0 { -first_s } else { 0.0 };
        let covered_s = self.measured_s + lead_s;
        (self.measured_s > 0.0 && covered_s > 0.0).then_some(covered_s)
    }

    /// Counts the ops between two times, in seconds from the window's start, by the timeline; takes a part of
    /// a cut interval.
    pub(crate) fn ops_between(&self, from_s: f64, to_s: f64) -> f64 {
        timeline::count_ops_between(&self.timeline, from_s, to_s)
    }

    /// Divides a cost between two readings by the measured ops in that time. The work of groups beside is in it:
    /// nobody knows whose a cost is. Of several addresses the first alone has told it.
    pub(crate) fn per_op(&self, cost: f64, first_s: f64) -> Option<f64> {
        let is_known = self.totals.tps > 0.0 && self.addresses.is_empty();
        let covered_s = self.covered_s(first_s).filter(|_| is_known)?;
        let lead_s = covered_s - self.measured_s;
        let counted = |phase| self.timeline.iter().filter(move |entry| entry.phase == phase);
        let measured_ops = counted(Phase::Measure).map(|entry| entry.ops);
        let is_whole = measured_ops.fold(0, u64::saturating_add) == self.totals.ops;
        let lead = match lead_s > 0.0 {
            true if is_whole && counted(Phase::Warmup).next().is_some() => {
                self.ops_between(-lead_s, 0.0)
            }
            false if is_whole => -self.ops_between(0.0, -lead_s),
            _ => lead_s * self.totals.tps,
        };
        let ops = self.measured_s * self.totals.tps + lead;
        (ops > 0.0).then(|| cost / ops)
    }

    /// Leaves what [`Self::per_op`] takes from the timeline: the intervals between the first readings and the start
    /// of the window, and one of all later ops.
    pub(crate) fn shorten_timeline(&mut self) {
        const NEAR_S: f64 = 10.0;
        let status = self.server.status.as_ref().map(|status| status.first_s);
        let probed = self.server.probed.as_ref().map(|probed| probed.first_s);
        let near_s = status.into_iter().chain(probed).map(f64::abs).fold(NEAR_S, f64::max);
        self.timeline = timeline::shorten(&self.timeline, near_s);
    }

    /// Returns the server's counters over the window; None if they were not read, or were reset meanwhile.
    pub(crate) fn status(&self) -> Option<&Status> {
        self.server.status.as_ref().filter(|status| status.restarted_s.is_none())
    }

    /// Returns a counter of `SHOW GLOBAL STATUS` per op; see [`counter`].
    pub(crate) fn counter_per_op(&self, name: &str) -> Option<f64> {
        let status = self.status()?;
        self.per_op(counter(status, name)?, status.first_s)
    }

    /// Returns the same per second, of a single address alone, too.
    pub(crate) fn counter_per_s(&self, name: &str) -> Option<f64> {
        let status = self.status().filter(|_| self.addresses.is_empty())?;
        Some(counter(status, name)? / self.covered_s(status.first_s)?)
    }
}

/// Describes several arrival queues, and how to have one.
pub(crate) fn in_queues(queues: u32, spread: Spread) -> String {
    let (per_table, option) =
        if spread == Spread::Pinned { (" and table", " --spread random") } else { ("", "") };
    format!(
        "{queues} queues, one an engine thread{per_table}; one queue: --engine-threads 1{option}"
    )
}

#[cfg(test)]
impl Summary {
    /// Reads a sound step of 8 clients.
    pub(crate) fn sound() -> Summary {
        serde_json::from_str(include_str!("../../tests/fixtures/summary.json")).expect("a summary")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::mysql::facts::SINCE_FLUSH;
    use crate::terms::finding;

    const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");

    #[test]
    fn a_cost_an_op_is_the_same_when_the_timeline_is_shortened() {
        let entry = |at: u32| {
            let (at_s, ops) = (f64::from(at), 50 + u64::from(at * at % 37));
            match at {
                0..20 => Interval::counted(Phase::Warmup, at_s, ops),
                20..80 => Interval::counted(Phase::Measure, at_s, ops),
                _ => Interval::counted(Phase::Drain, at_s, ops),
            }
        };
        let mut whole = Summary { measured_s: 60.0, ..Summary::default() };
        whole.timeline = (0..82).map(entry).collect();
        whole.totals.ops = whole.timeline[20..80].iter().map(|entry| entry.ops).sum();
        whole.totals.tps = whole.totals.ops as f64 / whole.measured_s;
        for warmup_s in [20.0, 0.0] {
            whole.plan.warmup_s = warmup_s;
            for first_s in [-14.5, -9.5, -2.25, -0.25, 0.0, 0.5, 8.75, 12.5] {
                let probed = Probed { first_s, ..Probed::default() };
                whole.server.probed = Some(probed);
                let mut short = whole.clone();
                short.shorten_timeline();
                assert!(short.timeline.len() < 40, "{first_s}");
                let cost = |step: &Summary| step.per_op(1000.0, first_s);
                assert_eq!(cost(&short), cost(&whole), "{warmup_s} {first_s}");
                let mut none = whole.clone();
                none.timeline = Vec::new();
                assert!(warmup_s == 0.0 || first_s == 0.0 || cost(&none) != cost(&whole));
            }
        }
    }

    #[test]
    fn a_cost_is_divided_by_the_ops_that_were_done_when_the_lead_was_slower_than_the_window() {
        let entry = Interval::counted;
        let mut step = Summary { measured_s: 2.0, ..Summary::default() };
        (step.plan.warmup_s, step.totals.tps, step.totals.ops) = (1.0, 100.0, 200);
        step.timeline = vec![
            entry(Phase::Warmup, 0.0, 40),
            entry(Phase::Measure, 1.0, 90),
            entry(Phase::Measure, 2.0, 110),
            entry(Phase::Drain, 3.0, 7),
        ];
        assert_eq!(step.per_op(210.0, -0.25), Some(1.0), "10 of the warm-up and 200");
        assert_eq!(step.per_op(155.0, 0.5), Some(1.0), "a late first reading: 45 and 110");
        step.plan.warmup_s = 0.0;
        assert_eq!(step.per_op(200.0, -0.25), Some(1.0), "the server idled before the window");
        (step.plan.warmup_s, step.timeline) = (1.0, Vec::new());
        assert_eq!(step.per_op(225.0, -0.25), Some(1.0), "without a timeline by the rate");
        step.addresses = vec![AddressCounts::default(); 2];
        assert_eq!(step.per_op(225.0, -0.25), None, "the cost of one server, the ops of two");
    }

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

    /// `LOADGEN_BLESS=1 cargo test --lib summary::` writes them anew after a change.
    #[test]
    fn the_committed_schemas_are_those_of_the_types() {
        is_committed("summary.schema.json", schemars::schema_for!(Summary).to_value());
        is_committed("imported.schema.json", schemars::schema_for!(Imported).to_value());
    }

    fn is_committed(name: &str, mut schema: Value) {
        absent_is_null(&mut schema);
        let schema = schemars::Schema::try_from(schema).expect("it was one");
        let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
        text.push('\n');
        let path = format!("{DOCS}/{name}");
        if std::env::var_os("LOADGEN_BLESS").is_some() {
            std::fs::write(&path, &text).expect("docs/ can be written");
        }
        let committed = std::fs::read_to_string(&path).expect(name);
        assert!(
            committed == text,
            "docs/{name} is stale; LOADGEN_BLESS=1 cargo test --lib summary::"
        );
    }

    #[test]
    fn readings_before_the_window_cover_more_than_it() {
        let mut summary = Summary::sound();
        assert_eq!(summary.covered_s(-0.5), Some(60.5));
        summary.plan.warmup_s = 0.0;
        assert_eq!(summary.covered_s(-0.5), Some(60.0), "nothing ran before");
        summary.measured_s = 0.0;
        assert_eq!(summary.covered_s(-0.5), None);
    }

    #[test]
    fn counters_of_a_part_of_the_window_are_no_figure() {
        let mut summary = Summary::sound();
        assert!(summary.counter_per_s("Questions").is_some());
        summary.server.status.as_mut().expect("there").restarted_s = Some(12.0);
        assert_eq!(summary.counter_per_s("Questions"), None);
        assert_eq!(summary.counter_per_op("Questions"), None);
    }

    #[test]
    fn a_counter_that_flush_status_reset_says_nothing_though_it_grew() {
        let mut summary = Summary::sound();
        assert!(summary.counter_per_s("Questions").is_some());
        let status = summary.server.status.as_mut().expect("there");
        status
            .deltas
            .extend([("Uptime".to_owned().into(), 60), (SINCE_FLUSH.to_owned().into(), 60)]);
        assert!(summary.counter_per_s("Questions").is_some(), "nobody flushed");
        let status = summary.server.status.as_mut().expect("there");
        status.deltas.insert("Innodb_data_reads".to_owned().into(), 5);
        for since in [0, 59, -5000] {
            let status = summary.server.status.as_mut().expect("there");
            status.deltas.insert(SINCE_FLUSH.to_owned().into(), since);
            assert_eq!(summary.counter_per_s("Questions"), None, "{since}");
            assert!(summary.counter_per_s("Innodb_data_reads").is_some(), "it stays");
        }
        summary.server.status.as_mut().expect("there").deltas.remove("Uptime");
        assert_eq!(summary.counter_per_s("Questions"), None, "within a second");
    }

    #[test]
    fn a_counter_that_fell_says_nothing() {
        let mut summary = Summary::sound();
        let status = summary.server.status.as_mut().expect("there");
        status.deltas.insert("Innodb_data_reads".to_owned().into(), -5);
        assert_eq!(summary.counter_per_s("Innodb_data_reads"), None);
    }

    #[test]
    fn a_counter_says_nothing_when_it_is_of_the_first_of_several_addresses() {
        let mut summary = Summary::sound();
        summary.addresses = vec![AddressCounts::default(); 2];
        assert_eq!(summary.counter_per_s("Questions"), None);
        assert_eq!(summary.counter_per_op("Questions"), None);
    }

    #[test]
    fn a_warning_keeps_its_values_and_words_where_its_values_are_not_known() {
        let found = finding!(LevelChange, "the rate", "rose", 0.11, 40.0);
        let written = serde_json::to_string(&Warning::from(found.clone())).expect("JSON");
        let read: Warning = serde_json::from_str(&written).expect("a warning");
        assert_eq!(Finding::from(&read), found);
        let worded = Finding::Worded("level_change".to_owned(), ["as it was".to_owned()].into());
        let values = [
            "null",
            "{}",
            r#"{"series": "the rate", "direction": "rose", "by": [0.11], "at": 40.0}"#,
            r#"{"series": "the rate", "direction": "rose", "by": "0.11", "at": 40.0}"#,
        ];
        for values in values {
            let text = format!(
                r#"{{"code": "level_change", "message": "as it was", "values": {values}}}"#
            );
            let read: Warning = serde_json::from_str(&text).expect("a warning");
            assert_eq!(Finding::from(&read), worded, "{values}");
        }
        let older = r#"{"code": "level_change", "message": "as it was"}"#;
        let older: Warning = serde_json::from_str(older).expect("a warning");
        assert_eq!(Finding::from(&older), worded);
        // An unknown value is null, and stays so.
        let unknown = finding!(QueryCache, 1_u64 << 20, None::<u64>);
        assert_eq!(Finding::from(&Warning::from(unknown.clone())), unknown);
    }
}
