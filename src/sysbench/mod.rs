//! The drop-in for sysbench: its command lines, its outputs, and what it wrote years ago.
//!
//! A command line is read by sysbench's rules into [`Settings`]; what runs is loadgen's own engine, and
//! what is printed is sysbench's text. docs/user/from-sysbench.md lists what differs.

#![expect(dead_code, unused_imports, reason = "the parts are still to come")]

mod import;
mod settings;

pub(crate) use import::{ToImport, import};
pub(crate) use settings::{Command, Ended, Ignored, OutputVersion, Refusal, Settings, Test};
