//! Other hosts' processes as more threads of a step: they are started over ssh or the like, tell their
//! clocks, run their part of the threads, and send the engine's own events.

mod check;
mod clock;
mod launch;
mod link;
mod merge;
mod peer;
mod protocol;
mod rank;
mod ranks;

pub(crate) use launch::Wanted;
pub(crate) use rank::run as run_rank;
pub(crate) use ranks::Ranks;
