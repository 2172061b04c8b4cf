//! What a person sees while waiting, on standard error: a live line on a terminal, plain
//! lines in a pipe.

mod live;
mod table;

use std::io::Write;
use std::time::{Duration, Instant};

pub(crate) use table::Table;

use crate::error::{indented, line, plain};
use live::Live;

/// Everything that takes longer than a second talks to one of these.
pub struct Progress {
    live: Option<Live>,
    every: Duration,
    last: Instant,
    quiet: bool,
}

impl Progress {
    /// `every` is how often a changing line is shown (`--progress`): 1 s on a terminal and
    /// 10 s otherwise, if not given. `quiet` leaves warnings only.
    pub fn new(quiet: bool, every: Option<Duration>) -> Self {
        let live = if quiet { None } else { Live::new() };
        let every = every.unwrap_or(Duration::from_secs(if live.is_some() { 1 } else { 10 }));
        Progress { live, every, last: Instant::now(), quiet }
    }

    /// Shows the state of things, at most once in `every`.
    pub(crate) fn update(&mut self, text: impl FnOnce() -> String) {
        if self.quiet || self.last.elapsed() < self.every {
            return;
        }
        self.last = Instant::now();
        match &mut self.live {
            Some(live) => live.line(&text()),
            None => say(&line(&text())),
        }
    }

    /// A table above the live line, until the next one or [`Progress::clear`]; in a pipe nothing.
    pub(crate) fn table(&mut self, table: impl FnOnce() -> Table) {
        if let Some(live) = &mut self.live {
            live.table(Some(table()));
        }
    }

    pub(crate) fn note(&mut self, text: &str) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// A line that stays, also under `--quiet`.
    pub(crate) fn warn(&mut self, text: &str) {
        self.line(&format!("warning: {text}"));
    }

    /// Something new begins: it is worth a line only if it takes longer than one interval.
    pub(crate) fn restart(&mut self) {
        self.last = Instant::now();
    }

    /// Takes the live line away, and the table.
    pub(crate) fn clear(&mut self) {
        if let Some(live) = &mut self.live {
            live.table(None);
        }
        self.restart();
    }

    fn line(&mut self, text: &str) {
        let text = indented(text);
        match &mut self.live {
            Some(live) => live.above(|| say(&text)),
            None => say(&text),
        }
    }
}

/// The one way to standard error. A closed or full one must not end a measurement.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", plain(text));
}
