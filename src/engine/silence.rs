//! The watch over threads that run a script: one whose event loops without a request does nothing else, and
//! cannot be interrupted. After the end it is left behind.

use std::time::{Duration, Instant};

use super::alarm::NEVER;
use super::job::Job;
use super::pacing::StepWindow;
use crate::error::Error;
use crate::plan::limits;
use crate::terms::counted;

#[derive(Default)]
pub(super) struct SilenceWatch {
    is_on: bool,
    /// The instant of each thread's last message; None once it has ended.
    heard: Vec<Option<Instant>>,
}

impl SilenceWatch {
    pub(super) fn new(is_on: bool, threads: usize) -> SilenceWatch {
        SilenceWatch { is_on, heard: vec![Some(Instant::now()); threads] }
    }

    pub(super) fn hear(&mut self, thread: usize) {
        if let Some(heard) = self.heard.get_mut(thread).and_then(Option::as_mut) {
            *heard = Instant::now();
        }
    }

    pub(super) fn end(&mut self, thread: usize) {
        self.heard[thread] = None;
    }

    /// Returns the thread that is silent for longest, and since when.
    fn most_silent(&self) -> Option<(usize, Instant)> {
        let heard = self.heard.iter().enumerate().filter(|_| self.is_on);
        heard.filter_map(|(thread, at)| at.map(|at| (thread, at))).min_by_key(|(_, at)| *at)
    }

    /// Returns whether some thread is silent since then: its script computes.
    pub(super) fn is_silent_for(&self, time: Duration) -> bool {
        self.most_silent().is_some_and(|(_, at)| at.elapsed() >= time)
    }

    /// Returns the thread that is left behind next, and when, unless it is heard of before.
    pub(super) fn next(&self, origin: Instant, window: StepWindow) -> Option<(usize, Instant)> {
        let (thread, heard) = self.most_silent().filter(|_| window.last != NEVER)?;
        let end = origin + Duration::from_nanos(window.last);
        Some((thread, heard.max(end) + limits::DRAIN))
    }
}

/// Names a thread of this process with the number of its clients.
pub(super) fn name_thread<'j>(thread: usize, jobs: impl Iterator<Item = &'j Job>) -> String {
    let clients: usize = jobs.map(|job| job.clients_of(thread).len()).sum();
    format!("engine thread {thread} ({})", counted(clients as u64, "client"))
}

/// Makes the error of a step that has left threads behind.
pub(super) fn left_behind(who: &str) -> Error {
    let seconds = limits::DRAIN.as_secs();
    Error::failed(format!(
        "{who} still runs {seconds} s after the end: an event of the script neither returns nor \
         sends a request"
    ))
    .hint("a loop without a request to the server cannot be interrupted: let the script end it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_is_left_behind_when_it_is_silent_after_the_end() {
        let (origin, last) = (Instant::now(), 3_000_000_000);
        let window = StepWindow { start: 0, end: NEVER, early: false, last };
        let mut watch = SilenceWatch::new(true, 2);
        watch.hear(0);
        let due = origin + Duration::from_nanos(last) + limits::DRAIN;
        assert_eq!(watch.next(origin, window), Some((1, due)));
        watch.end(1);
        assert_eq!(watch.next(origin, window), Some((0, due)));
        // Without an end there is none to be after.
        assert_eq!(watch.next(origin, StepWindow { last: NEVER, ..window }), None);
        watch.end(0);
        assert_eq!(watch.next(origin, window), None);
        assert_eq!(SilenceWatch::new(false, 2).next(origin, window), None);
    }
}
