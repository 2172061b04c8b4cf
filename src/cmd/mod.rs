//! One file a verb, each `run(args)`.

pub mod report;
