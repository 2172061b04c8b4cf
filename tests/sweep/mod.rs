//! Sweeps through the program itself, against canned answers with faults and real servers.

mod before;
mod conditions;
mod connections;
mod disk;
mod faults;
mod gates;
mod groups;
mod histories;
mod hosts;
mod ledger;
mod limits;
mod live;
mod network;
mod openmetrics;
mod pacing;
mod page;
mod ranks;
mod replaced;
mod resources;
#[cfg(feature = "lua")]
mod script_faults;
#[cfg(feature = "lua")]
mod script_groups;
#[cfg(feature = "lua")]
mod script_hosts;
#[cfg(feature = "lua")]
mod scripts;
mod servers;
mod share;
mod signals;
mod silence;
mod torture;
mod transactions;
