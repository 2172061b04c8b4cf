//! Recorder, timeline, client cost.

pub mod recorder;
pub mod timeline;
pub mod times;
