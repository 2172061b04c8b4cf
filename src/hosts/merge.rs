//! The events of a group on a rank's threads as those of one: one interval a second instead of one a thread,
//! one report of the service instead of fifty.

use std::time::{Duration, Instant};

use crate::engine::{
    QueueLength, ServiceReport, ThreadCounts, ThreadEvent, ThreadMessage, add_class,
};
use crate::observe::{Ns, RecordedInterval, Timeline};
use crate::terms::add;

/// Time between two reports of the service.
const REPORT: Duration = Duration::from_millis(200);
/// Successes and errors with which a report goes at once: a server may refuse each op, and a line has a limit.
const SEEN_MAX: usize = 1 << 13;

pub(super) struct Merge {
    /// The last report of each thread, without what it saw.
    reported: Vec<ServiceReport>,
    /// Successes and errors since the last report, and whether a client slept.
    report: ServiceReport,
    reported_at: Instant,
    timeline: Timeline,
    warm: usize,
    done: Vec<ThreadCounts>,
}

impl Merge {
    /// Begins with no event of so many threads; so many statements of the group have times of their own.
    pub(super) fn new(threads: usize, statements: usize) -> Merge {
        Merge {
            reported: vec![ServiceReport::default(); threads],
            report: ServiceReport::default(),
            reported_at: Instant::now(),
            timeline: Timeline::new(threads, statements, Ns::MAX),
            warm: 0,
            done: Vec::new(),
        }
    }

    /// Takes an event of a thread; returns those of all that follow.
    pub(super) fn take(&mut self, message: ThreadMessage) -> Vec<ThreadEvent> {
        let ThreadMessage { thread, group: _, event } = message;
        match event {
            ThreadEvent::Service(report) => self.service(thread, report).into_iter().collect(),
            ThreadEvent::Interval(interval) => intervals(self.timeline.add(thread, *interval)),
            ThreadEvent::Warm => {
                self.warm += 1;
                Vec::from_iter((self.warm == self.reported.len()).then_some(ThreadEvent::Warm))
            }
            ThreadEvent::Done(counts) => {
                self.done.push(*counts);
                intervals(self.timeline.thread_done(thread))
            }
            other => vec![other],
        }
    }

    fn service(&mut self, thread: usize, report: ServiceReport) -> Option<ThreadEvent> {
        self.report.asleep |= report.asleep;
        self.report.seen.extend(report.seen);
        self.reported[thread] = ServiceReport { seen: Vec::new(), ..report };
        let until = self.reported.iter().map(|of| of.until).min().expect("a part has threads");
        let is_long = self.report.seen.len() >= SEEN_MAX;
        let due = is_long || self.reported_at.elapsed() >= REPORT || until == Ns::MAX;
        due.then(|| {
            self.reported_at = Instant::now();
            let mut all = std::mem::take(&mut self.report);
            all.until = until;
            for of in &self.reported {
                all.ops += of.ops;
                if let Some(of) = &of.queue {
                    let queue: &mut QueueLength = all.queue.get_or_insert_default();
                    add!(queue, of; waiting, busy);
                }
                of.errors.iter().for_each(|(class, n)| add_class(&mut all.errors, class, *n));
            }
            ThreadEvent::Service(all)
        })
    }

    /// Returns the counts of all threads, once all have ended.
    pub(super) fn take_counts(&mut self) -> Option<ThreadCounts> {
        let all = self.done.len() == self.reported.len();
        let done = if all { std::mem::take(&mut self.done) } else { Vec::new() };
        done.into_iter().reduce(ThreadCounts::merge)
    }
}

fn intervals(complete: Vec<RecordedInterval>) -> Vec<ThreadEvent> {
    complete.into_iter().map(|interval| ThreadEvent::Interval(Box::new(interval))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{Phases, Recorder};
    use crate::summary::Phase;

    const S: Ns = 1_000_000_000;

    /// Two whole intervals of a thread, with failures of this length.
    fn recorded(took: Ns) -> Vec<RecordedInterval> {
        let phases = Phases { window_start: 0, window_end: Ns::MAX, by_issue: false, interval: S };
        let (told, intervals) = std::sync::mpsc::channel();
        let mut recorder = Recorder::new(phases, 0, Box::new(move |one| drop(told.send(one))));
        (1..200).for_each(|n| recorder.failed(n * S / 100 - took, true, n * S / 100));
        recorder.roll(2 * S);
        drop(recorder);
        intervals.iter().collect()
    }

    fn message(thread: usize, event: ThreadEvent) -> ThreadMessage {
        ThreadMessage { thread, group: crate::engine::MEASURED, event }
    }

    fn done() -> ThreadEvent {
        let counts = ThreadCounts { ops_by_client: vec![7], ..ThreadCounts::default() };
        ThreadEvent::Done(Box::new(counts))
    }

    #[test]
    fn intervals_of_threads_are_one_with_the_sum_of_their_times() {
        let (one, other) = (recorded(1_000), recorded(3_000_000));
        let mut merge = Merge::new(2, 0);
        let mut told = Vec::new();
        for (thread, own) in [&one, &other].into_iter().enumerate() {
            for interval in own {
                let event = ThreadEvent::Interval(Box::new(interval.clone()));
                told.extend(merge.take(message(thread, event)));
            }
        }
        let sum = |at: usize| {
            let mut sum: RecordedInterval = one[at].clone();
            sum.merge(&other[at]);
            ThreadEvent::Interval(Box::new(sum))
        };
        assert_eq!((one.len(), one[0].phase), (2, Phase::Measure));
        assert_eq!(told, [sum(0), sum(1)]);
        let text = serde_json::to_string(&told).expect("plain data");
        assert_eq!(serde_json::from_str::<Vec<ThreadEvent>>(&text).expect("events"), told);
    }

    #[test]
    fn report_goes_at_once_when_it_has_many_errors() {
        let text = r#"{"until":5,"ops":0,"seen":[[5,{"Success":5}]],"queue":null,"asleep":false}"#;
        let one: ServiceReport = serde_json::from_str(text).expect("a report");
        let told = |seen| {
            let seen = vec![one.seen[0].clone(); seen];
            let report = ThreadEvent::Service(ServiceReport { seen, ..one.clone() });
            let reported_at = Instant::now() + Duration::from_mins(1);
            Merge { reported_at, ..Merge::new(2, 0) }.take(message(0, report)).len()
        };
        assert_eq!([told(SEEN_MAX - 1), told(SEEN_MAX)], [0, 1]);
    }

    #[test]
    fn threads_are_done_and_warm_when_all_of_them_are() {
        let mut merge = Merge::new(2, 0);
        assert!(merge.take(message(1, ThreadEvent::Warm)).is_empty());
        assert_eq!(merge.take(message(0, ThreadEvent::Warm)), [ThreadEvent::Warm]);
        merge.take(message(0, done()));
        assert_eq!(merge.take_counts(), None);
        merge.take(message(1, done()));
        assert_eq!(merge.take_counts().expect("all are done").ops_by_client, [7, 7]);
    }
}
