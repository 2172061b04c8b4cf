//! **loadgen** measures MySQL-compatible servers.
//!
//! ```text
//! flags + profile ─▶ Plan ─▶ Step … ─▶ MeasuredStep ─▶ Summary (one JSON file a step) ─▶ Page
//! ```
//!
//! One type at each station: [`plan::Plan`] is decided before the first connection, [`plan::Step`] is a
//! cell of the table, [`engine::MeasuredStep`] is in memory what [`summary::Summary`] is as versioned JSON, and
//! [`report`] is a pure function of summaries.
//!
//! Rooms, each of which imports only those before it (`tests/tree`): terms, error, stop, progress,
//! workload, observe, stats, canned, mysql, plan, summary, judge, lua, engine, hosts, report, sandbox, load,
//! verify, commands, run, sysbench, cli. Each says at its head what it is for.
//!
//! `fuzz/` is a crate of its own: libFuzzer and its instrumentation are no part of the program. What it
//! fuzzes is in `fuzz/src/targets`, which `tests/corpus` takes in to replay `fuzz/corpus`.

pub mod canned;
pub mod cli;
mod commands;
pub mod engine;
pub mod error;
pub mod hosts;
pub mod judge;
pub mod load;
#[cfg(feature = "lua")]
mod lua;
pub mod mysql;
pub mod observe;
pub mod plan;
pub mod progress;
pub mod report;
pub mod run;
pub mod sandbox;
pub mod stats;
pub mod stop;
pub mod summary;
mod sysbench;
pub mod terms;
pub mod verify;
pub mod workload;
