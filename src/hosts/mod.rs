//! Other hosts' processes as more threads of a step: they are started over ssh or the like, or find each
//! other where a launcher started them. They tell their clocks, run their part of the threads, and send the
//! engine's own events.

mod check;
mod clock;
mod find;
mod launch;
pub mod lines;
mod link;
mod merge;
mod peer;
mod proof;
mod protocol;
mod rank;
mod ranks;
mod rendezvous;
mod words;

pub(crate) use find::find;
pub(crate) use launch::Wanted;
pub(crate) use proof::Token;
pub(crate) use rank::run as run_rank;
pub(crate) use ranks::Ranks;
pub(crate) use rendezvous::{Launched, follow};
pub(crate) use words::{Words, hash};

/// The processes with the clients.
#[derive(Debug, Clone)]
pub(crate) enum ClientHosts {
    /// Those that this process starts.
    Started(Wanted),
    /// Those that a launcher has started, this one among them.
    Launched(Box<Launched>),
}

impl ClientHosts {
    pub(crate) fn flag(&self) -> &'static str {
        match self {
            ClientHosts::Started(_) => "--hosts",
            ClientHosts::Launched(_) => "--ranks",
        }
    }

    /// Returns whether another process measures and prints.
    pub(crate) fn are_led_elsewhere(&self) -> bool {
        matches!(self, ClientHosts::Launched(launched) if launched.of.rank > 0)
    }
}
