//! The open loop of one engine thread: its arrival queues, and which client takes what when.
//!
//! A queue holds no arrivals, only the next one: whatever is late is drawn when it is taken. An
//! idle client takes the next arrival if it is due and else waits; of the waiting ones the first
//! is woken at the instant, and a client that takes an arrival while another one is due wakes
//! the next. So arrivals are served first come, first served, never skipped and never batched.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::alarm::{Alarm, NEVER, Spun};
use super::job::{Job, intern};
use crate::error::Result;
use crate::observe::{Ns, Recorder};
use crate::plan::{Arrival, AtEnd, Plan};
use crate::terms::add;
use crate::workload::{Stream, name_part, seed_of};

/// A warm-up has a backlog if it serves its arrivals this part of its length late, or later.
pub(super) const LATE: Ns = 100;

/// The largest number of arrivals that are left at the end of which each one is drawn.
const DRAWN_MAX: u64 = 1_000_000;

/// Instants at which the ops of one queue and phase are due, ascending.
struct Arrivals {
    /// The instant before the next one.
    at: Ns,
    /// The rest below a nanosecond, so that errors do not add up.
    rest: f64,
    /// The mean gap.
    gap: f64,
    spacing: Spacing,
    /// The arrivals that are still to come, where their number is bounded.
    left: Option<u64>,
}

/// The gaps between a queue's arrivals.
enum Spacing {
    Random(Stream),
    /// One a client in turn: the gap to the queue's next client, and that from its last one to its first one.
    Even {
        step: f64,
        wrap: f64,
        clients: usize,
        turn: usize,
    },
}

impl Arrivals {
    /// Begins those of a phase at 0, with a gap before the first one.
    fn new(job: &Job, clients: &[u32], measured: bool) -> Arrivals {
        let (first, step) = (clients[0], &job.step);
        let share = clients.len() as f64 / f64::from(step.clients);
        let rate = step.rate.expect("an open loop has a rate");
        let gap = 1e9 / (rate * share);
        let (rest, spacing) = match job.plan.arrival {
            // The process has no memory: it may begin anywhere. A ninth part: no client's keys come from its seed.
            Arrival::Poisson => {
                let parts = job.seed_parts(first, measured).into_iter();
                let parts: Vec<u64> = parts.chain([name_part("arrivals")]).collect();
                (0.0, Spacing::Random(Stream::new(seed_of(&parts))))
            }
            // By the numbers of all clients, so that queues interleave which have unequal parts of them, too.
            Arrival::Uniform => {
                let (unit, turn) = (1e9 / rate, clients.len() - 1);
                let span = clients[turn] - first;
                let wrap = f64::from(step.clients - span) * unit;
                let step = f64::from(span) / turn.max(1) as f64 * unit;
                let even = Spacing::Even { step, wrap, clients: clients.len(), turn };
                (f64::from(first) * unit - wrap, even)
            }
        };
        let ops: Option<u64> = clients.iter().map(|client| job.quota(*client)).sum();
        // No more are wanted of all queues together.
        let ops = ops.or(job.plan.rules.shared_ops);
        Arrivals { at: 0, rest, gap, spacing, left: ops.filter(|_| measured) }
    }

    /// Returns the next one, [`NEVER`] after the last.
    fn next(&mut self) -> Ns {
        match &mut self.left {
            Some(0) => return NEVER,
            Some(left) => *left -= 1,
            None => {}
        }
        let gap = match &mut self.spacing {
            // The complement of a number in [0, 1) is never zero.
            Spacing::Random(stream) => -libm::log1p(-stream.unit()) * self.gap,
            Spacing::Even { step, wrap, clients, turn } => {
                *turn = (*turn + 1) % *clients;
                if *turn == 0 { *wrap } else { *step }
            }
        };
        self.pass(gap)
    }

    /// Skips this many arrivals, by the mean gap.
    fn skip(&mut self, count: u64) {
        self.left = self.left.map(|left| left - count);
        self.pass(count as f64 * self.gap);
    }

    fn pass(&mut self, gap: f64) -> Ns {
        let exact = gap + self.rest;
        let whole = exact.floor();
        self.rest = exact - whole;
        self.at = self.at.saturating_add(whole as Ns);
        self.at
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DueOp {
    /// The instant that response time counts from.
    pub intended: Ns,
    pub measured: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PacingCounts {
    pub intended: u64,
    pub backlog: u64,
    /// Arrivals of any phase that were given up before they were issued.
    pub unissued: u64,
    /// Arrivals of the warm-up not issued at the window's start.
    pub warmup_left: u64,
    /// The lateness of the first of these by then.
    pub warmup_late: Ns,
    /// Arrivals that waited when the last one was due, about, where their number is bounded.
    pub behind: f64,
}

impl PacingCounts {
    pub(crate) fn merge(&mut self, other: &PacingCounts) {
        add!(self, other; intended, backlog, unissued, warmup_left);
        self.warmup_late = self.warmup_late.max(other.warmup_late);
        self.behind += other.behind;
    }
}

/// The window on the step's clock, as far as it is decided; what is not is [`NEVER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepWindow {
    pub start: Ns,
    /// [`NEVER`] with `--ops`, too.
    pub end: Ns,
    /// The end cuts the step short: then nothing is issued after it.
    pub early: bool,
    /// No op begins from here on: the end, or before it where what has begun is waited for.
    pub last: Ns,
}

impl StepWindow {
    pub(super) fn from_start(plan: &Plan, start: Ns) -> StepWindow {
        let time = |time: Duration| start.saturating_add(time.as_nanos() as Ns);
        let last = plan.stop.time().map_or(NEVER, time);
        // Ops that have begun are finished, and count.
        let end = if plan.rules.at_end == AtEnd::Drain { last } else { NEVER };
        StepWindow { start, end, early: false, last }
    }

    /// Leaves out what waits when no op begins any more.
    fn for_arrivals(self) -> StepWindow {
        let early = self.early || self.last < self.end;
        StepWindow { end: self.last, early, ..self }
    }
}

pub(crate) struct Pacing {
    pub queues: RefCell<Queues>,
    pub alarm: Alarm,
}

pub(crate) struct Queues {
    all: Vec<Queue>,
    /// By a client's place in the thread: its queue, and whether it waits there.
    places: Vec<(usize, bool)>,
    /// Queues with idle clients, by the instant that one of them must wake at.
    due: BTreeSet<(Ns, usize)>,
    window: StepWindow,
    warmup: Ns,
    /// The warm-up's backlog is drained: no arrivals from its planned end on to the window.
    draining: bool,
    /// All clients share the number of arrivals: a queue may get fewer than it has left.
    shared: bool,
    pub counts: PacingCounts,
}

struct Queue {
    arrivals: Arrivals,
    /// Those of the window, until they follow those of the warm-up.
    later: Option<Arrivals>,
    /// The next arrival, or [`NEVER`].
    next: Ns,
    /// Idle clients by place, the first one first.
    idle: VecDeque<(usize, Waker)>,
    /// Its instant among those that are due, or [`NEVER`].
    key: Ns,
}

impl Pacing {
    /// Makes the queues of these clients of a thread; within a runtime only.
    pub(crate) fn new(
        job: &Job,
        clients: &[u32],
        window: StepWindow,
        spun: &Rc<Spun>,
    ) -> Result<Pacing> {
        let queues = RefCell::new(Queues::new(job, clients, window.for_arrivals()));
        Ok(Pacing { queues, alarm: Alarm::new(spun)? })
    }

    /// Returns None when no arrival follows for the client at this place of the thread.
    pub(crate) async fn next(&self, place: usize, now: impl Fn() -> Ns) -> Option<DueOp> {
        poll_fn(|context| {
            let mut queues = self.queues.borrow_mut();
            let taken = queues.take(place, now(), context.waker());
            if let Some((first, _)) = queues.due.first() {
                self.alarm.expect(*first);
            }
            taken
        })
        .await
    }

    /// Returns whether another arrival may follow for the client at this place.
    pub(crate) fn may_follow(&self, place: usize) -> bool {
        let queues = self.queues.borrow();
        !queues.all[queues.places[place].0].is_done()
    }

    pub(crate) async fn dispatch(&self, origin: Instant) -> io::Result<Infallible> {
        self.alarm.run(origin, |now| self.queues.borrow_mut().wake_due(now)).await
    }

    pub(crate) fn waiting(&self, now: Ns) -> u64 {
        self.queues.borrow().waiting(now)
    }

    /// Ends all queues of the thread, because no op may begin any more for the last arrival.
    pub(crate) fn end(&self) {
        self.queues.borrow_mut().end();
    }

    pub(crate) fn set_window(&self, window: StepWindow) {
        if self.queues.borrow_mut().set_window(window.for_arrivals()) {
            self.alarm.check_now();
        }
    }
}

impl Queue {
    fn new(job: &Job, clients: &[u32], window: StepWindow) -> Queue {
        let phase = |measured| Arrivals::new(job, clients, measured);
        let later = (window.start > 0).then(|| phase(true));
        let mut arrivals = phase(later.is_none());
        let next = arrivals.next();
        Queue { arrivals, later, next, idle: VecDeque::new(), key: NEVER }
    }

    fn is_done(&self) -> bool {
        self.next == NEVER && self.later.is_none()
    }
}

impl Queues {
    fn new(job: &Job, clients: &[u32], window: StepWindow) -> Queues {
        let mut tables = Vec::new();
        let queue_of = |client: &u32| (intern(&mut tables, job.pinned_table(*client)), false);
        let places = clients.iter().map(queue_of).collect();
        let queue = |table: &Option<u32>| {
            let members = clients.iter().copied().filter(|c| job.pinned_table(*c) == *table);
            Queue::new(job, &members.collect::<Vec<u32>>(), window)
        };
        Queues {
            all: tables.iter().map(queue).collect(),
            places,
            due: BTreeSet::new(),
            window,
            warmup: job.plan.warmup.as_nanos() as Ns,
            draining: false,
            shared: job.plan.rules.shared_ops.is_some(),
            counts: PacingCounts::default(),
        }
    }

    fn set_window(&mut self, window: StepWindow) -> bool {
        let changed = self.window != window;
        self.window = window;
        self.enter_all();
        changed
    }

    fn enter_all(&mut self) {
        for at in 0..self.all.len() {
            self.enter(at);
            self.rekey(at);
        }
    }

    /// Decides near the end of the warm-up whether the window may begin. Where the queues are late,
    /// their arrivals end with the warm-up, and this holds once all of these are issued.
    pub(crate) fn is_warm(&mut self, now: Ns) -> bool {
        if !self.draining {
            let late = |queue: &Queue| now.saturating_sub(queue.next) > self.warmup / LATE;
            if !self.all.iter().any(late) {
                return true;
            }
            self.draining = true;
            self.enter_all();
        }
        self.all.iter().all(|queue| queue.next == NEVER)
    }

    /// Counts about what is due: only the next arrival is drawn already.
    fn waiting(&self, now: Ns) -> u64 {
        // None is due at the window's end or later.
        let until = now.min(self.window.end.saturating_sub(1));
        let due = |queue: &Queue| {
            let Some(late) = until.checked_sub(queue.next) else { return 0 };
            let more = (late as f64 / queue.arrivals.gap) as u64;
            let left = queue.arrivals.left.filter(|_| !self.shared);
            1 + left.map_or(more, |left| left.min(more))
        };
        self.all.iter().map(due).sum()
    }

    fn take(&mut self, place: usize, now: Ns, waker: &Waker) -> Poll<Option<DueOp>> {
        let (at, waits) = &mut self.places[place];
        let queue = &mut self.all[*at];
        if *waits {
            // Something else has woken it, such as its socket.
            let known = queue.idle.iter_mut().find(|(idle, _)| *idle == place);
            known.expect("who waits is idle").1.clone_from(waker);
            return Poll::Pending;
        }
        let at = *at;
        let StepWindow { end, early, .. } = self.window;
        if queue.is_done() || (now >= end && (early || queue.next >= end)) {
            self.wake(at);
            return Poll::Ready(None);
        }
        if queue.next > now {
            *waits = true;
            queue.idle.push_back((place, waker.clone()));
            self.rekey(at);
            return Poll::Pending;
        }
        let arrival = self.advance(at, now, 1);
        let queue = &self.all[at];
        if queue.is_done() && arrival.measured {
            // The last one's wait says how many are behind it.
            self.counts.behind += (now - arrival.intended) as f64 / queue.arrivals.gap;
        }
        self.rekey(at);
        if self.all[at].key <= now {
            self.wake(at);
        }
        Poll::Ready(Some(arrival))
    }

    /// Ends all queues, and takes back the arrival that was not to begin. Idle clients wake each other.
    fn end(&mut self) {
        self.counts.intended -= 1;
        for at in 0..self.all.len() {
            (self.all[at].next, self.all[at].later) = (NEVER, None);
            self.wake(at);
        }
    }

    /// Counts what is not issued at the end: its age is a lower bound of its response time. It is given
    /// up, or forgotten: sysbench drops what waits when the time is over.
    pub(crate) fn abandon(&mut self, now: Ns, recorder: &mut Recorder, given_up: bool) {
        let end = self.window.end.min(now);
        for at in 0..self.all.len() {
            while self.all[at].next < end {
                let count = 1 + self.skip(at, end);
                // Later than any end.
                let arrival = self.advance(at, NEVER, count);
                self.counts.unissued += count * u64::from(given_up);
                if arrival.measured {
                    recorder.unissued(arrival.intended, now, count);
                }
            }
        }
    }

    /// Skips a part of a queue's arrivals before the end, all of the phase of the next one, where they are very many;
    /// returns how many.
    fn skip(&mut self, at: usize, end: Ns) -> u64 {
        let queue = &mut self.all[at];
        let until = match queue.later {
            Some(_) if self.draining => self.warmup.min(end),
            Some(_) => self.window.start.min(end),
            None => end,
        };
        let arrivals = &mut queue.arrivals;
        let due = (until.saturating_sub(queue.next) as f64 / arrivals.gap) as u64;
        let due = arrivals.left.map_or(due, |left| left.min(due));
        let skipped = if due > DRAWN_MAX { due / (DRAWN_MAX / 10) } else { 0 };
        arrivals.skip(skipped);
        skipped
    }

    /// Takes the next arrival of a queue, with those that were skipped behind it.
    fn advance(&mut self, at: usize, now: Ns, count: u64) -> DueOp {
        let (queue, window) = (&mut self.all[at], &self.window);
        let arrival = DueOp { intended: queue.next, measured: queue.later.is_none() };
        queue.next = queue.arrivals.next();
        if arrival.measured {
            self.counts.intended += count;
            self.counts.backlog += count * u64::from(now >= window.end);
        } else if now >= window.start && window.start != NEVER {
            // An arrival of the warm-up that was not issued when the window began.
            let late = window.start.saturating_sub(arrival.intended);
            self.counts.warmup_left += count;
            self.counts.warmup_late = self.counts.warmup_late.max(late);
        }
        self.enter(at);
        arrival
    }

    /// Ends the warm-up's arrivals at its planned end, while its backlog is drained; those of the window follow.
    fn enter(&mut self, at: usize) {
        let (queue, start) = (&mut self.all[at], self.window.start);
        if self.draining && queue.later.is_some() && queue.next >= self.warmup {
            queue.next = NEVER;
        }
        let begins = start != NEVER && queue.next >= start;
        if let Some(arrivals) = queue.later.take_if(|_| begins) {
            queue.arrivals = Arrivals { at: start, ..arrivals };
            queue.next = queue.arrivals.next();
        }
    }

    /// Wakes an idle client of each queue that is due; returns the next instant to do so.
    fn wake_due(&mut self, now: Ns) -> Ns {
        while let Some((due, at)) = self.due.first().copied() {
            if due > now {
                return due;
            }
            self.wake(at);
        }
        NEVER
    }

    /// Wakes the first idle client of a queue. Its key comes back when the client has looked.
    fn wake(&mut self, at: usize) {
        self.set_key(at, NEVER);
        if let Some((place, waker)) = self.all[at].idle.pop_front() {
            self.places[place].1 = false;
            waker.wake();
        }
    }

    /// Sets when an idle client of a queue must wake: for its next arrival, or to see that it is over.
    fn rekey(&mut self, at: usize) {
        let key = match &self.all[at] {
            queue if queue.idle.is_empty() => NEVER,
            queue if queue.is_done() => 0,
            queue => queue.next.min(self.window.end),
        };
        self.set_key(at, key);
    }

    fn set_key(&mut self, at: usize, key: Ns) {
        let old = std::mem::replace(&mut self.all[at].key, key);
        if old != key {
            self.due.remove(&(old, at));
            if key != NEVER {
                self.due.insert((key, at));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    use crate::engine::job::tests::{TABLES, a_plan, job_of};
    use crate::mysql::Tables;
    use crate::observe::{Phases, Times};
    use crate::plan::{self, Spread, StopAt};

    // The queues on a simulated clock: what every arrival experiences is then exact.

    const S: Ns = 1_000_000_000;
    const MS: Ns = 1_000_000;

    /// An arrival as it was served.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Served {
        client: usize,
        arrival: DueOp,
        issued: Ns,
        completed: Ns,
    }

    struct Simulation {
        queues: Queues,
        clients: usize,
        served: Vec<Served>,
    }

    fn job(clients: u32, tables: u32, spread: Spread, rate: f64, arrival: plan::Arrival) -> Job {
        let mut plan = a_plan(0, clients, StopAt::Time(Duration::from_secs(1)));
        (plan.arrival, plan.engine_threads) = (arrival, Some(1));
        job_of(&plan, spread, Tables { count: tables, ..TABLES }, Some(rate))
    }

    fn simulation(job: &Job, clients: u32, window: StepWindow) -> Simulation {
        let all: Vec<u32> = (0..clients).collect();
        let queues = Queues::new(job, &all, window);
        Simulation { queues, clients: clients as usize, served: Vec::new() }
    }

    impl Simulation {
        /// Serves until all clients have ended, or until an instant; `done` says when an op that is
        /// issued at an instant completes, `tick` is called at every event.
        fn run(
            &mut self,
            until: Ns,
            mut done: impl FnMut(Ns) -> Ns,
            mut tick: impl FnMut(Ns, &mut Queues),
        ) -> Ns {
            let mut busy: Vec<Ns> = vec![0; self.clients];
            let mut over = vec![false; self.clients];
            let mut now = 0;
            while now < until {
                tick(now, &mut self.queues);
                self.queues.wake_due(now);
                // Again and again, because one that takes an arrival may wake another one.
                let mut again = true;
                while std::mem::take(&mut again) {
                    for client in 0..self.clients {
                        if over[client] || busy[client] > now || self.queues.places[client].1 {
                            continue;
                        }
                        match self.queues.take(client, now, Waker::noop()) {
                            Poll::Pending => {}
                            Poll::Ready(None) => over[client] = true,
                            Poll::Ready(Some(arrival)) => {
                                let completed = done(now);
                                busy[client] = completed.max(now + 1);
                                self.served.push(Served {
                                    client,
                                    arrival,
                                    issued: now,
                                    completed,
                                });
                            }
                        }
                        again = true;
                    }
                }
                let returning = busy.iter().zip(&over).filter(|(at, over)| !**over && **at > now);
                let returning = returning.map(|(at, _)| *at).min();
                let due = self.queues.due.first().map(|(due, _)| *due);
                match returning.into_iter().chain(due).min() {
                    // Time passes for ticks.
                    Some(next) => now = next.max(now + 1).min(now + 20 * MS),
                    None if over.iter().all(|over| *over) => break,
                    None => now += 20 * MS,
                }
            }
            now
        }

        fn responses(&self) -> Vec<Ns> {
            let mut all: Vec<Ns> =
                self.served.iter().map(|s| s.completed - s.arrival.intended).collect();
            all.sort_unstable();
            all
        }

        fn mean_wait_s(&self) -> f64 {
            let waits = self.served.iter().map(|s| (s.issued - s.arrival.intended) as f64 / 1e9);
            waits.sum::<f64>() / self.served.len() as f64
        }
    }

    fn open(end: Ns) -> StepWindow {
        StepWindow { start: 0, end, early: false, last: end }
    }

    #[test]
    fn arrivals_are_served_in_their_order_none_is_skipped_and_the_longest_idle_takes_the_next() {
        let job = job(4, 1, Spread::Random, 1000.0, plan::Arrival::Uniform);
        let mut simulation = simulation(&job, 4, open(S));
        simulation.run(2 * S, |now| now + 100_000, |_, _| {});
        let intended: Vec<Ns> = simulation.served.iter().map(|s| s.arrival.intended).collect();
        assert_eq!(intended, (0..1000).map(|n| n * MS).collect::<Vec<_>>());
        assert!(simulation.served.iter().all(|s| s.issued == s.arrival.intended));
        let clients: Vec<usize> = simulation.served.iter().take(8).map(|s| s.client).collect();
        assert_eq!(clients, [0, 1, 2, 3, 0, 1, 2, 3]);
        let counts = simulation.queues.counts;
        assert_eq!(counts, PacingCounts { intended: 1000, ..PacingCounts::default() });
    }

    #[test]
    fn a_stall_is_in_the_response_time_of_all_that_it_kept_waiting() {
        // 10 s at 1000/s on 8 clients, a call takes 100 us, and from 3 s to 4 s nothing is answered.
        let job = job(8, 1, Spread::Random, 1000.0, plan::Arrival::Uniform);
        let mut simulation = simulation(&job, 8, open(10 * S));
        let done = |now: Ns| {
            let free = now + 100_000;
            if (3 * S..4 * S).contains(&free) { 4 * S + 100_000 } else { free }
        };
        simulation.run(20 * S, done, |_, _| {});
        let responses = simulation.responses();
        assert_eq!(responses.len(), 10_000);
        // 1000 arrivals, 1 ms apart, wait for the rest of the second and for the catching up: 8 a
        // call's time, while others arrive.
        let at =
            |p: f64| responses[(responses.len() as f64 * p / 100.0).ceil() as usize - 1] as f64;
        for (p, arrival) in [(90.5, 950.0), (95.0, 500.0), (99.0, 100.0), (99.9, 10.0)] {
            let expected = 1e9 - arrival * 1e6 + arrival / 8.0 * 1e5;
            let error = at(p) / expected - 1.0;
            assert!(error.abs() < 0.01, "p{p}: {} instead of {expected}", at(p));
        }
        // The service time has it once a client.
        let slow = simulation.served.iter().filter(|s| s.completed - s.issued > 500 * MS).count();
        assert_eq!(slow, 8);
    }

    /// Erlang's C formula: the mean wait with `c` servers, seconds.
    fn erlang_wait(c: u32, rate: f64, service: f64) -> f64 {
        let load = rate * service;
        // Erlang's B, recursively.
        let blocked = (1..=c).fold(1.0, |b, n| load * b / (f64::from(n) + load * b));
        let full = load / f64::from(c);
        let waits = blocked / (1.0 - full * (1.0 - blocked));
        waits * service / (f64::from(c) - load)
    }

    #[test]
    fn eight_clients_wait_as_a_queue_with_eight_servers_does() {
        assert!((erlang_wait(1, 0.5, 1.0) - 1.0).abs() < 1e-12, "M/M/1 at half load waits 1");
        let (rate, service) = (6000.0, 0.001);
        let job = job(8, 1, Spread::Random, rate, plan::Arrival::Poisson);
        let mut simulation = simulation(&job, 8, open(400 * S));
        let mut stream = Stream::new(4711);
        let draw = |now: Ns| now + (-libm::log1p(-stream.unit()) * service * 1e9) as Ns;
        simulation.run(Ns::MAX, draw, |_, _| {});
        let (wait, theory) = (simulation.mean_wait_s(), erlang_wait(8, rate, service));
        assert!((wait / theory - 1.0).abs() < 0.05, "{wait} instead of {theory}");
    }

    #[test]
    fn pinned_clients_have_a_queue_a_table_and_share_the_rate() {
        let job = job(8, 4, Spread::Pinned, 800.0, plan::Arrival::Uniform);
        let mut simulation = simulation(&job, 8, open(S));
        assert_eq!(simulation.queues.all.len(), 4);
        simulation.run(2 * S, |now| now + 100_000, |_, _| {});
        let intended: Vec<Ns> = simulation.served.iter().map(|s| s.arrival.intended).collect();
        // The queues interleave evenly.
        assert_eq!(intended, (0..800).map(|n| n * 1_250_000).collect::<Vec<_>>());
        for served in &simulation.served {
            let table = served.arrival.intended / 1_250_000 % 4;
            assert_eq!(served.client as u64 % 4, table);
        }
    }

    #[test]
    fn what_waits_at_the_end_is_counted_and_served_unless_the_step_is_cut_short() {
        // One client that can do 100/s is asked for 1000/s.
        let job = job(1, 1, Spread::Random, 1000.0, plan::Arrival::Uniform);
        let mut simulation = simulation(&job, 1, open(S));
        let slow = |now| now + 10 * MS;
        let ended = simulation.run(100 * S, slow, |_, _| {});
        let counts = simulation.queues.counts;
        assert_eq!((counts.intended, counts.backlog, counts.unissued), (1000, 900, 0));
        assert_eq!((simulation.served.len(), ended), (1000, 10 * S));

        let mut cut = super::tests::simulation(&job, 1, open(S));
        let early = StepWindow { start: 0, end: 500 * MS, early: true, last: 500 * MS };
        cut.run(100 * S, slow, |_, queues| {
            queues.set_window(early);
        });
        assert_eq!(cut.served.len(), 50, "nothing is issued after an early end");
    }

    /// Abandons the arrivals that wait; returns their ages.
    fn abandon(queues: &mut Queues, now: Ns, given_up: bool) -> Times {
        let phases =
            Phases { window_start: 0, window_end: NEVER, by_issue: false, interval: NEVER };
        let (mut recorder, seen) = Recorder::listing(phases, 0);
        queues.abandon(now, &mut recorder, given_up);
        recorder.finish(now + 1);
        let paced = *seen.take().remove(0).paced.expect("arrivals");
        paced.response
    }

    #[test]
    fn arrivals_left_at_the_end_are_counted_by_many_when_they_are_very_many() {
        // A thousand seconds at the highest rate: to draw each one would take minutes.
        let (end, all) = (1000 * S, 10_000_000_000);
        let job = job(1, 1, Spread::Random, 1e7, plan::Arrival::Uniform);
        let mut queues = simulation(&job, 1, open(end)).queues;
        let ages = abandon(&mut queues, end, true);
        let counts = queues.counts;
        assert_eq!((counts.intended, counts.backlog, counts.unissued), (all, all, all));
        assert_eq!((ages.count(), ages.max_us()), (all, Some(1e9)));
        let mean_s = ages.sum_ns() as f64 / all as f64 / 1e9;
        assert!((mean_s / 500.0 - 1.0).abs() < 1e-4, "{mean_s}");
    }

    #[test]
    fn arrivals_that_wait_are_no_more_than_are_to_come() {
        let job = job(1, 1, Spread::Random, 1000.0, plan::Arrival::Uniform);
        let queues = simulation(&job, 1, open(S)).queues;
        assert_eq!((queues.waiting(500 * MS), queues.waiting(9 * S)), (501, 1000));
        let mut plan = a_plan(0, 1, StopAt::Ops(50));
        (plan.arrival, plan.engine_threads) = (plan::Arrival::Uniform, Some(1));
        let mut job = job_of(&plan, Spread::Random, TABLES, Some(1000.0));
        assert_eq!(simulation(&job, 1, open(NEVER)).queues.waiting(9 * S), 50);
        // sysbench's queue is full of arrivals of which only some begin.
        (job.plan.stop, job.plan.rules.shared_ops) =
            (StopAt::Time(Duration::from_secs(10)), Some(50));
        assert_eq!(simulation(&job, 1, open(10 * S)).queues.waiting(9 * S), 9001);
    }

    #[test]
    fn clients_of_all_queues_end_when_no_op_may_begin_any_more() {
        let job = job(4, 4, Spread::Pinned, 4.0, plan::Arrival::Uniform);
        let mut simulation = simulation(&job, 4, open(100 * S));
        let mut over = false;
        let end_once = |now: Ns, queues: &mut Queues| {
            if now >= 2 * S && !std::mem::replace(&mut over, true) {
                queues.end();
            }
        };
        let ended = simulation.run(100 * S, |now| now + MS, end_once);
        assert_eq!((simulation.served.len(), simulation.queues.counts.intended), (8, 7));
        assert_eq!(ended, 2 * S, "no client waits for another arrival");
    }

    #[test]
    fn arrivals_that_wait_are_counted_and_not_given_up_when_the_time_of_sysbench_is_over() {
        // One client that can do 100/s is asked for 1000/s; what has begun is waited for.
        let job = job(1, 1, Spread::Random, 1000.0, plan::Arrival::Uniform);
        let window = StepWindow { end: NEVER, ..open(S) };
        let mut simulation = simulation(&job, 1, window.for_arrivals());
        let ended = simulation.run(100 * S, |now| now + 10 * MS, |_, _| {});
        assert_eq!((simulation.served.len(), ended), (100, S));
        let ages = abandon(&mut simulation.queues, ended, false);
        let counts = simulation.queues.counts;
        assert_eq!((counts.intended, counts.backlog, counts.unissued), (1000, 900, 0));
        // At their age: that of the first is 900 ms.
        assert_eq!((ages.count(), ages.max_us()), (900, Some(900_000.0)));
    }

    #[test]
    fn arrivals_end_with_their_number_when_sysbench_has_a_time_and_a_number() {
        let mut job = job(4, 1, Spread::Random, 1000.0, plan::Arrival::Uniform);
        job.plan.rules.shared_ops = Some(50);
        let mut simulation = simulation(&job, 4, open(10 * S));
        let ended = simulation.run(100 * S, |now| now + MS, |_, _| {});
        assert_eq!(simulation.served.len(), 50);
        assert!(ended < S, "no client waits for another arrival: {ended}");
    }

    /// A warm-up of a second after which `serve` decides; the instant that the window began at.
    fn warmed_up(rate: f64, serve: impl FnMut(Ns) -> Ns) -> (Simulation, Ns) {
        let mut job = job(1, 1, Spread::Random, rate, plan::Arrival::Uniform);
        job.plan.warmup = Duration::from_secs(1);
        let unknown = StepWindow { start: NEVER, end: NEVER, early: false, last: NEVER };
        let mut simulation = simulation(&job, 1, unknown);
        let mut start = NEVER;
        simulation.run(10 * S, serve, |now, queues| {
            if start == NEVER && now >= S - 400 * MS && (queues.is_warm(now) || now >= 2 * S) {
                start = (now + 400 * MS).max(S);
                let end = start + S;
                queues.set_window(StepWindow { start, end, early: false, last: end });
            }
        });
        (simulation, start)
    }

    #[test]
    fn a_warm_up_without_backlog_passes_into_the_window() {
        let (simulation, start) = warmed_up(1000.0, |now| now + 500_000);
        assert_eq!(start, S);
        assert!(simulation.served.windows(2).all(|w| w[1].issued - w[0].issued == MS));
        let measured = simulation.served.iter().filter(|s| s.arrival.measured).count();
        assert_eq!((simulation.served.len(), measured), (2000, 1000));
    }

    #[test]
    fn what_still_waits_when_the_window_begins_is_counted_with_its_age() {
        // Nothing is answered in the last 100 ms of the warm-up, when its end is decided.
        let stalled = (S - 100 * MS)..(S + MS);
        let serve = |now: Ns| {
            let free = now + 500_000;
            if stalled.contains(&free) { stalled.end } else { free }
        };
        let (simulation, start) = warmed_up(1000.0, serve);
        assert_eq!(start, S, "arrivals go on");
        let counts = simulation.queues.counts;
        assert!((98..=100).contains(&counts.warmup_left), "{counts:?}");
        assert!((98 * MS..=100 * MS).contains(&counts.warmup_late), "{counts:?}");
        let first = simulation.served.iter().find(|s| s.arrival.measured).expect("a window");
        assert!(first.issued > first.arrival.intended + 40 * MS, "it waited behind them");
    }

    #[test]
    fn the_backlog_of_a_warm_up_is_served_before_the_window_begins() {
        // Cold for half a second: then there are 500 to catch up with, at twice the rate.
        let (simulation, start) = warmed_up(1000.0, |now| (now + 500_000).max(500 * MS));
        let warmup: Vec<&Served> =
            simulation.served.iter().filter(|s| !s.arrival.measured).collect();
        assert_eq!(warmup.len(), 1000, "all of its arrivals, and none after its planned end");
        assert!(warmup.iter().all(|s| s.completed <= start));
        assert!((1300 * MS..1500 * MS).contains(&start), "{start}");
        assert_eq!(simulation.queues.counts.warmup_left, 0);
        let first = simulation.served.iter().find(|s| s.arrival.measured).expect("a window");
        assert_eq!((first.arrival.intended, first.issued), (start, start));
    }

    #[test]
    fn a_warm_up_that_cannot_be_drained_leaves_its_backlog_to_the_window() {
        let (simulation, start) = warmed_up(1000.0, |now| now + 5 * MS);
        assert_eq!(start, 2 * S + 400 * MS);
        // 200/s: 480 were issued by then.
        let left = simulation.queues.counts.warmup_left;
        assert!((515..=520).contains(&left), "{left}");
        assert_eq!(simulation.queues.counts.intended, 1000);
    }

    #[test]
    fn ops_are_split_over_the_queues() {
        let mut plan = a_plan(0, 6, StopAt::Ops(1001));
        (plan.arrival, plan.engine_threads) = (plan::Arrival::Poisson, Some(1));
        let job = job_of(&plan, Spread::Pinned, Tables { count: 3, ..TABLES }, Some(1000.0));
        let mut simulation = simulation(&job, 6, open(NEVER));
        let ended = simulation.run(100 * S, |now| now + MS, |_, _| {});
        assert_eq!(simulation.served.len(), 1001);
        assert!(ended < 2 * S, "every client ends: {ended}");
    }

    fn poisson(per_s: f64, seed: u64) -> Arrivals {
        let spacing = Spacing::Random(Stream::new(seed_of(&[seed])));
        Arrivals { at: 0, rest: 0.0, gap: 1e9 / per_s, spacing, left: None }
    }

    /// Kolmogorov's statistic of gaps against the exponential distribution, times √n: above
    /// 1.358 in 5 % of all samples, above 1.949 in 0.1 %.
    fn kolmogorov(mut gaps: Vec<f64>, mean: f64) -> f64 {
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let largest = gaps.iter().enumerate().fold(0.0_f64, |largest, (i, gap)| {
            let expected = 1.0 - (-gap / mean).exp();
            largest.max(expected - i as f64 / n).max((i + 1) as f64 / n - expected)
        });
        largest * n.sqrt()
    }

    #[test]
    fn gaps_of_poisson_arrivals_are_exponential() {
        for per_s in [0.5, 1000.0, 50_000.0] {
            let mut rare = 0;
            for seed in 0..20 {
                let mut arrivals = poisson(per_s, seed);
                let mut last = 0;
                let gaps: Vec<f64> = (0..10_000)
                    .map(|_| {
                        let at = arrivals.next();
                        (at - std::mem::replace(&mut last, at)) as f64
                    })
                    .collect();
                let statistic = kolmogorov(gaps, 1e9 / per_s);
                assert!(statistic < 1.949, "rate {per_s}, seed {seed}: {statistic}");
                rare += u32::from(statistic > 1.358);
            }
            // One of 20 is expected above; five or more are in 0.3 % of all cases.
            assert!(rare < 5, "rate {per_s}: {rare} of 20 samples are in the last 5 %");
        }
        // The test can fail: evenly spaced ones are no such process.
        let even = vec![1000.0; 10_000];
        assert!(kolmogorov(even, 1000.0) > 10.0);
    }

    #[test]
    fn counts_of_poisson_arrivals_vary_as_their_mean_and_independently() {
        // Three queues of 2:1:1, as connections split a rate, counted together.
        let mut queues: Vec<Arrivals> =
            [5_000.0, 2_500.0, 2_500.0].iter().zip(1..).map(|(r, s)| poisson(*r, s)).collect();
        let slots = 20_000;
        let slot: Ns = 1_000_000;
        let mut counts = vec![0.0_f64; slots];
        for queue in &mut queues {
            while let Some(count) = counts.get_mut((queue.next() / slot) as usize) {
                *count += 1.0;
            }
        }
        let n = slots as f64;
        let mean = counts.iter().sum::<f64>() / n;
        assert!((mean / 10.0 - 1.0).abs() < 4.0 / (n * 10.0).sqrt(), "{mean}");
        // The dispersion is chi-square with n - 1 degrees of freedom: normal at this n.
        let squares: f64 = counts.iter().map(|c| (c - mean).powi(2)).sum();
        let z = (squares / mean - (n - 1.0)) / (2.0 * (n - 1.0)).sqrt();
        assert!(z.abs() < 3.3, "variance over mean is off by {z} standard deviations");
        // Neighbours know nothing of each other.
        let covariance: f64 = counts.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
        let z = covariance / squares * n.sqrt();
        assert!(z.abs() < 3.3, "neighbours are correlated, {z} standard deviations");
        // Chi-square of the counts themselves, in classes of at least 50 expected.
        let mut expected = n * (-10.0_f64).exp();
        let (mut chi, mut class, mut classes) = (0.0, (0.0, 0.0), 0);
        for k in 0..40 {
            let seen = counts.iter().filter(|c| **c as u32 == k).count() as f64;
            class = (class.0 + expected, class.1 + seen);
            if class.0 > 50.0 {
                chi += (class.1 - class.0).powi(2) / class.0;
                (class, classes) = ((0.0, 0.0), classes + 1);
            }
            expected *= 10.0 / f64::from(k + 1);
        }
        // Wilson and Hilferty's normal approximation.
        let free = f64::from(classes - 1);
        let spread = 2.0 / (9.0 * free);
        let z = ((chi / free).cbrt() - (1.0 - spread)) / spread.sqrt();
        assert!(z.abs() < 3.3, "chi-square {chi} with {free} degrees of freedom");
    }

    #[test]
    fn even_arrivals_of_several_queues_interleave_without_drift() {
        let job = job(6, 3, Spread::Pinned, 900.0, plan::Arrival::Uniform);
        let queue = |i: u32| Arrivals::new(&job, &[i, i + 3], false);
        let mut queues: Vec<Arrivals> = (0..3).map(queue).collect();
        for n in 0..100_000_u64 {
            let at = queues[(n % 3) as usize].next();
            let exact = n as f64 * 1e9 / 900.0;
            assert!((at as f64 - exact).abs() <= 1.0, "arrival {n}: {at} instead of {exact}");
        }
    }

    #[test]
    fn even_arrivals_interleave_when_queues_have_unequal_parts() {
        let job = job(5, 3, Spread::Pinned, 5.0, plan::Arrival::Uniform);
        let queues: [&[u32]; 3] = [&[0, 3], &[1, 4], &[2]];
        let mut all: Vec<Ns> = Vec::new();
        for clients in queues {
            let mut arrivals = Arrivals::new(&job, clients, false);
            all.extend((0..10 * clients.len()).map(|_| arrivals.next()));
        }
        all.sort_unstable();
        assert_eq!(all, (0..50).map(|n| n * 200_000_000).collect::<Vec<Ns>>());
    }
}
