//! The groups of a step's clients as the step's side knows them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Counted;
use super::alarm::NEVER;
use super::errors::OutageWatch;
use super::setup::{StepSetup, ThreadCounts};
use crate::observe::{Cost, Ns, RecordedInterval, Timeline, seconds};
use crate::summary::TableOps;

/// A group of clients as the step's side sees it.
pub(super) struct GroupSeen {
    pub setup: Arc<StepSetup>,
    pub timeline: Timeline,
    pub ops: u64,
    pub errors: u64,
    pub outages: OutageWatch,
    /// Sources that have not ended.
    running: BTreeSet<usize>,
    done: Vec<ThreadCounts>,
}

impl GroupSeen {
    pub(super) fn new(setup: Arc<StepSetup>) -> GroupSeen {
        let (job, threads) = (&setup.job, setup.sources);
        let pause = job.plan.think.map_or(0, |think| think.as_nanos() as Ns);
        let entry = job.plan.interval.as_nanos() as Ns;
        let mut timeline = Timeline::new(threads, job.timed_statements, entry);
        timeline.window.connect = job.plan.reconnect_every.map(|_| Box::default());
        let outages = OutageWatch::new(threads, pause);
        let (running, done) = ((0..threads).collect(), Vec::new());
        GroupSeen { timeline, ops: 0, errors: 0, outages, running, done, setup }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn runs_in(&self, source: usize) -> bool {
        self.running.contains(&source)
    }

    pub(super) fn end(&mut self, source: usize, counts: ThreadCounts) -> Vec<RecordedInterval> {
        self.running.remove(&source);
        self.done.push(counts);
        self.timeline.thread_done(source)
    }

    /// Merges what its threads counted; those with clients of it may be lost.
    pub(super) fn take_counts(&mut self) -> ThreadCounts {
        let merged = std::mem::take(&mut self.done).into_iter().reduce(ThreadCounts::merge);
        let mut counts = merged.unwrap_or_default();
        if counts.ops_by_client.is_empty() {
            counts.ops_by_client.push(0);
        }
        counts.ledger.truncate(self.setup.job.tables.count as usize);
        counts
    }

    pub(super) fn count(
        self,
        (started_at, cost): (jiff::Timestamp, Cost),
        measured: Ns,
        counts: &mut ThreadCounts,
    ) -> Counted {
        let by_table = counts.ledger.iter().zip(&counts.ops_by_table);
        let per_table =
            by_table.map(|(of, ops)| TableOps { table: of.table.clone(), ops: *ops }).collect();
        Counted {
            started_at,
            measured_s: seconds(measured),
            cost,
            timeline: self.timeline,
            errors: counts.failures.take_errors(),
            per_table,
        }
    }

    pub(super) fn lose(&mut self, source: usize) -> Vec<RecordedInterval> {
        self.running.remove(&source);
        self.outages.report(source, (Ns::MAX, 0), Vec::new(), Ns::MAX);
        self.timeline.thread_done(source)
    }
}

/// Returns the end of a group's window. With --ops it ends with the last answer; so it does where a script has ended
/// all clients before. A group beside may wait longer, for answers that do not come: it ends with `last_beside`.
pub(super) fn end_of_window(decided: Ns, counts: &ThreadCounts, last_beside: Option<Ns>) -> Ns {
    match last_beside {
        Some(last) if decided == NEVER => last.min(counts.ended),
        _ if decided == NEVER || counts.ended_by_script => decided.min(counts.ended),
        _ => decided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_of_a_group_beside_ends_before_it_gives_up_what_hangs() {
        for (decided, ended_by_script, last_beside, expected) in [
            (NEVER, false, None, 900),
            (NEVER, false, Some(100), 100),
            // Its script has ended before the measured clients.
            (NEVER, true, Some(1000), 900),
            (500, false, None, 500),
            (500, false, Some(100), 500),
            (1000, true, None, 900),
            (1000, true, Some(100), 900),
        ] {
            let counts = ThreadCounts { ended: 900, ended_by_script, ..ThreadCounts::default() };
            let end = end_of_window(decided, &counts, last_beside);
            assert_eq!(end, expected, "{decided} {ended_by_script} {last_beside:?}");
        }
    }
}
