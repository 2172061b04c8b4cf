//! The library against real servers.

mod common;
mod connect;
mod driver_traps;
mod fingerprint;
mod oltp;
mod preflight;
mod prepare;
mod wire;
