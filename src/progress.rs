//! What a person sees while waiting, on standard error: a live line on a terminal, plain
//! lines in a pipe.

use std::io::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::{indented, line, plain};

/// Everything that takes longer than a second talks to one of these.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    every: Duration,
    last: Instant,
    quiet: bool,
}

impl Progress {
    /// `every` is how often a changing line is shown (`--progress`): 1 s on a terminal and
    /// 10 s otherwise, if not given. `quiet` leaves warnings only.
    pub fn new(quiet: bool, every: Option<Duration>) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        let live = !quiet && !bar.is_hidden();
        let every = every.unwrap_or(Duration::from_secs(if live { 1 } else { 10 }));
        Progress { bar: live.then_some(bar), every, last: Instant::now(), quiet }
    }

    /// How often the line is worth making.
    pub fn every(&self) -> Duration {
        self.every
    }

    /// The state of things; shown at most once in [`Progress::every`].
    pub fn update(&mut self, text: impl FnOnce() -> String) {
        if self.quiet || self.last.elapsed() < self.every {
            return;
        }
        self.last = Instant::now();
        match &self.bar {
            Some(bar) => bar.set_message(line(&text())),
            None => say(&line(&text())),
        }
    }

    /// A line that stays.
    pub fn note(&mut self, text: &str) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// A line that stays, also under `--quiet`.
    pub fn warn(&mut self, text: &str) {
        self.line(&format!("warning: {text}"));
    }

    /// Something new begins: it is worth a line only if it takes longer than one interval.
    pub fn restart(&mut self) {
        self.last = Instant::now();
    }

    /// Takes the live line away.
    pub fn clear(&mut self) {
        if let Some(bar) = &self.bar {
            bar.set_message("");
            bar.finish_and_clear();
            bar.reset();
        }
        self.restart();
    }

    fn line(&self, text: &str) {
        let text = indented(text);
        match &self.bar {
            Some(bar) => bar.suspend(|| say(&text)),
            None => say(&text),
        }
    }
}

/// The one way to standard error. A closed or full one must not end a measurement.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", plain(text));
}
