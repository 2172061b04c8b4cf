//! Sweeps through the program itself, against canned answers with faults and real servers.

#[path = "../common/mod.rs"]
mod common;
mod conditions;
mod faults;
mod gates;
mod pacing;
mod program;
mod servers;
mod signals;
mod transactions;
