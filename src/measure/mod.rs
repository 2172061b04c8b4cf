//! Recorder, timeline, client cost.

pub mod host;
pub mod process;
pub mod recorder;
pub mod timeline;
pub mod times;
