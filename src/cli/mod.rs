//! The command line: clap structs, no logic.

pub mod argv;
pub mod connection;
