//! **loadgen** measures MySQL-compatible servers: one command sweeps the number of clients,
//! one more prints the table that goes into the report.
//!
//! # The path of the data
//!
//! ```text
//! flags + profile ─▶ Plan ─▶ Step … ─▶ Run ─▶ Summary (one JSON file a step) ─▶ Report
//! ```
//!
//! One type at each station, one function at each arrow. A reader who knows these five words
//! knows the program.
//!
//! * [`plan::Plan`]: everything decided before the first connection. Pure; defaults live there
//!   and nowhere else; `--list` prints it.
//! * [`plan::Step`]: one cell of the table: label × workload × clients × rate × repeat.
//! * [`engine::Run`]: what one step produced in memory: histograms, counters, timeline,
//!   client cost, ledger.
//! * [`summary::Summary`]: the Run plus the whole configuration and both fingerprints (server,
//!   client host), as versioned JSON, written to a temporary file and renamed as soon as its
//!   step ends: a crash costs one step.
//! * [`report`]: a pure function of summaries. It never connects anywhere.
//!
//! # Rooms
//!
//! | module | job |
//! |---|---|
//! | [`terms`] | the field's words as types |
//! | [`cli`] | clap structs, and one thin file a verb |
//! | [`run`] | the one pipeline of everything that measures |
//! | [`plan`] | client ranges, sizes, durations → Plan; profiles → experiments |
//! | [`workload`] | workloads as data; key distributions; tables and their deterministic rows |
//! | [`mysql`] | options (flags, files, environment → one ConnectOptions), session (the only file on the hot path that touches the driver), server (fingerprint, status, preflight) |
//! | [`load`] | create, fill, index, drop; timed reloads |
//! | [`verify`] | whether the tables hold what prepare and the runs since left there |
//! | [`suite`] | external commands, timed |
//! | [`engine`] | threads, connections, phases, the closed and the open loop, stopping |
//! | [`observe`] | recorder, timeline, timers, client cost; the server's process and host |
//! | [`sandbox`] | a private throw-away server from a mysqld program |
//! | [`canned`] | a canned-answer server with faults: for tests, benches and calibration |
//! | [`summary`] | the JSON contract: write, read |
//! | [`judge`] | what two numbers must share, what a reader must know of one, and whether it is the server's |
//! | [`stats`] | pure statistics over repeats, and over the intervals of a window |
//! | [`report`] | pivot, layouts, charts as data, then one file or room an output format |
//! | [`error`] | one error type that knows its hint and its exit status |
//! | [`stop`] | SIGINT, SIGTERM and SIGHUP |
//! | [`progress`] | the live line and table of a terminal, plain lines in a pipe |
//!
//! Beside the crate: `fuzz/` is a crate of its own, outside this one's build, because libFuzzer and
//! its instrumentation are no part of the program; what it fuzzes is in `fuzz/src/targets`, which
//! `tests/corpus.rs` takes in, too, to replay `fuzz/corpus`. `scripts/fuzz` runs it.
//!
//! `report`, `stats`, `summary` and `plan` know neither tokio nor `mysql_async`; `workload` knows
//! no socket. `tests/tree.rs` keeps these directions.

pub mod canned;
pub mod cli;
pub mod engine;
pub mod error;
mod groups;
pub mod judge;
pub mod load;
pub mod mysql;
pub mod observe;
pub mod plan;
pub mod progress;
pub mod report;
pub mod run;
pub mod sandbox;
pub mod stats;
pub mod stop;
pub mod suite;
pub mod summary;
pub mod terms;
pub mod verify;
pub mod workload;
