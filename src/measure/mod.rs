//! Recorder, timeline, client cost, the server's process and host.

pub(crate) mod cores;
pub mod host;
pub mod interval_log;
pub mod probe;
pub mod process;
pub mod recorder;
pub(crate) mod scheduler;
pub mod timeline;
pub mod times;
