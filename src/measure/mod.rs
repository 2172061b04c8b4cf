//! Recorder, timeline, client cost.

pub mod host;
pub mod process;
