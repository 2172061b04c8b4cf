//! Sweeps through the program itself, against canned answers with faults and real servers.

mod before;
#[path = "../common/mod.rs"]
mod common;
mod conditions;
mod disk;
mod faults;
mod gates;
mod histories;
mod ledger;
mod limits;
mod live;
mod network;
mod pacing;
mod page;
mod program;
mod replaced;
mod resources;
#[path = "../common/restarting.rs"]
mod restarting;
mod servers;
#[path = "../common/sessions.rs"]
mod sessions;
mod share;
mod signals;
mod silence;
mod torture;
mod transactions;
