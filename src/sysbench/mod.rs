//! The drop-in for sysbench: its command lines, its outputs, and what it wrote years ago.
//!
//! A command line is read by sysbench's rules into [`Settings`]; what runs is loadgen's own engine, and
//! what is printed is sysbench's text. docs/user/from-sysbench.md lists what differs.

#![allow(dead_code, unused_imports, reason = "the parts are still to come")]

mod arguments;
mod explain;
mod hints;
mod options;
mod resolve;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use arguments::{Parsed, parse};
pub(crate) use explain::native;
#[cfg(test)]
pub(crate) use hints::native_flags;
pub(crate) use hints::{Answer, NativeFlag, NativeVerb, answer};
pub(crate) use resolve::script_of;
pub(crate) use settings::{
    Command, Ended, Ignored, OutputVersion, Preamble, Refusal, Settings, Test,
};
