//! The open loop of one engine thread: its arrival queues, and which client takes what when.
//!
//! A queue holds no arrivals, only the next one: whatever is late is drawn when it is taken. An
//! idle client takes the next arrival if it is due and else waits; of the waiting ones the first
//! is woken at the instant, and a client that takes an arrival while another one is due wakes
//! the next. So arrivals are served first come, first served, never skipped and never batched.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::arrivals::{Arrivals, QueueSpec};
use super::job::Job;
use crate::error::{Error, Result};
use crate::observe::recorder::{Ns, Recorder};
use crate::observe::timer::Timer;

pub(crate) const NEVER: Ns = Ns::MAX;
/// Nearer arrivals are waited for by yielding: to be woken by the kernel takes up to so long.
const NEAR: Ns = 100_000;
/// A turn of at most so many of the shortest ones did nothing but look: an answer or an arrival
/// takes several times as long.
const IDLE: Ns = 3;
/// A warm-up has a backlog if it serves its arrivals this part of its length late, or later.
pub(super) const LATE: Ns = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DueOp {
    /// The instant that response time counts from.
    pub intended: Ns,
    pub measured: bool,
}

/// Counts of what became of the arrivals of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct PacingCounts {
    pub intended: u64,
    /// Of these, not issued at its end.
    pub backlog: u64,
    /// Arrivals of any phase that were never issued.
    pub unissued: u64,
    /// Arrivals of the warm-up not issued at the window's start.
    pub warmup_left: u64,
    /// How late the first of these was by then.
    pub warmup_late: Ns,
    /// With `--ops`: about so many arrivals waited when the last one was due.
    pub behind: f64,
}

impl PacingCounts {
    pub(crate) fn merge(&mut self, other: &PacingCounts) {
        self.intended += other.intended;
        self.backlog += other.backlog;
        self.unissued += other.unissued;
        self.warmup_left += other.warmup_left;
        self.warmup_late = self.warmup_late.max(other.warmup_late);
        self.behind += other.behind;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// [`NEVER`] until it is decided.
    pub start: Ns,
    /// [`NEVER`] likewise, and with `--ops`.
    pub end: Ns,
    /// The end cuts the step short: then nothing is issued after it.
    pub early: bool,
}

pub(crate) struct Pacing {
    queues: RefCell<Queues>,
    /// A client waits for an earlier arrival than the dispatcher does.
    earlier: Notify,
    timer: Timer,
    /// Looking for work in vain, since the start.
    spun: Cell<Ns>,
}

/// Turns of a thread that does not park between two arrivals.
#[derive(Debug)]
struct Spin {
    /// The last one's start; [`NEVER`] after a park.
    since: Ns,
    last: Ns,
    /// Two in a row were no longer than this: one that a clock made short must not make all
    /// others look like work. It holds for the whole step: a saturated thread has no idle turn,
    /// and if this grew with time, or began anew with the window, the shortest of its work would
    /// pass for one.
    shortest: Ns,
}

impl Spin {
    fn new() -> Spin {
        Spin { since: NEVER, last: NEVER, shortest: NEVER }
    }

    /// Ends a turn; returns its length if nothing was to do in it, else 0.
    fn idle(&mut self, now: Ns) -> Ns {
        let turn = now.saturating_sub(self.since);
        self.since = now;
        if turn == 0 {
            return 0;
        }
        self.shortest = self.shortest.min(turn.max(self.last));
        self.last = turn;
        let known = self.shortest != NEVER;
        if known && turn <= self.shortest.saturating_mul(IDLE) { turn } else { 0 }
    }
}

#[derive(Debug)]
struct Queues {
    all: Vec<Queue>,
    /// By a client's place in the thread: its queue, and whether it waits there.
    places: Vec<(usize, bool)>,
    /// Queues with idle clients, by the instant that one of them must wake at.
    due: BTreeSet<(Ns, usize)>,
    armed: Ns,
    window: Window,
    warmup: Ns,
    /// The warm-up's backlog is drained: no arrivals from its planned end on to the window.
    draining: bool,
    counts: PacingCounts,
}

#[derive(Debug)]
struct Queue {
    of: QueueSpec,
    arrivals: Arrivals,
    /// The next arrival, or [`NEVER`].
    next: Ns,
    measured: bool,
    /// With `--ops`: arrivals of the window from `next` on.
    left: Option<u64>,
    /// Idle clients by place, the first one first.
    idle: VecDeque<(usize, Waker)>,
    /// Its key in [`Queues::due`].
    key: Option<Ns>,
}

impl Pacing {
    /// Makes the queues of these clients; within a runtime only. `threads` are all engine threads.
    pub(crate) fn new(
        job: &Job,
        clients: &[u32],
        threads: usize,
        window: Window,
        warmup: Ns,
    ) -> Result<Pacing> {
        let timer =
            Timer::new().map_err(|e| Error::failed(format!("cannot make a kernel timer: {e}")))?;
        let queues = RefCell::new(Queues::new(job, clients, threads, window, warmup));
        Ok(Pacing { queues, earlier: Notify::new(), timer, spun: Cell::new(0) })
    }

    /// Waits for the next arrival for the client at a place of the thread; None when there will be
    /// none any more.
    pub(crate) async fn next(&self, place: usize, now: impl Fn() -> Ns) -> Option<DueOp> {
        poll_fn(|context| {
            let mut queues = self.queues.borrow_mut();
            let taken = queues.take(place, now(), context.waker());
            if queues.due.first().is_some_and(|(first, _)| *first < queues.armed) {
                queues.armed = 0;
                self.earlier.notify_one();
            }
            taken
        })
        .await
    }

    /// Wakes clients when their arrivals are due, for ever.
    pub(crate) async fn dispatch(&self, origin: Instant) -> io::Result<Infallible> {
        let mut spin = Spin::new();
        loop {
            let now = origin.elapsed().as_nanos() as Ns;
            self.spun.set(self.spun.get() + spin.idle(now));
            let next = self.queues.borrow_mut().wake_due(now);
            if next != NEVER && next <= now.saturating_add(NEAR) {
                // The runtime looks at the sockets in between.
                tokio::task::yield_now().await;
                continue;
            }
            spin.since = NEVER;
            self.queues.borrow_mut().armed = next;
            if next == NEVER {
                self.earlier.notified().await;
            } else {
                self.timer.set(origin + Duration::from_nanos(next - NEAR));
                tokio::select! {
                    expired = self.timer.expired() => expired?,
                    () = self.earlier.notified() => {}
                }
            }
            self.queues.borrow_mut().armed = 0;
        }
    }

    /// Returns how long the thread has looked for work in vain so far, instead of waiting for it.
    pub(crate) fn spun(&self) -> Ns {
        self.spun.get()
    }

    pub(crate) fn set_window(&self, window: Window) {
        if self.queues.borrow_mut().set_window(window) {
            self.earlier.notify_one();
        }
    }

    /// Says near the end of the warm-up whether the window may begin. Where the queues are late,
    /// their arrivals end with the warm-up, and this holds once all of these are issued.
    pub(crate) fn is_warm(&self, now: Ns) -> bool {
        self.queues.borrow_mut().is_warm(now)
    }

    /// Gives up what is not issued: its age is a lower bound of its response time.
    pub(crate) fn abandon(&self, now: Ns, recorder: &mut Recorder) {
        let mut queues = self.queues.borrow_mut();
        let end = queues.window.end.min(now);
        for at in 0..queues.all.len() {
            while queues.all[at].next < end {
                let arrival = queues.all[at].arrival();
                queues.counts.unissued += 1;
                if arrival.measured {
                    queues.counts.intended += 1;
                    queues.counts.backlog += 1;
                    recorder.unissued(arrival.intended, now);
                } else if queues.window.start != NEVER {
                    queues.left_of_warmup(arrival);
                }
                queues.advance(at);
            }
        }
    }

    pub(crate) fn into_counts(self) -> PacingCounts {
        self.queues.into_inner().counts
    }
}

impl Queue {
    fn new(of: QueueSpec, window: Window) -> Queue {
        let measured = window.start == 0;
        let mut arrivals = of.arrivals(0, measured);
        let left = of.ops;
        let next = if measured && left == Some(0) { NEVER } else { arrivals.next() };
        Queue { of, arrivals, next, measured, left, idle: VecDeque::new(), key: None }
    }

    fn arrival(&self) -> DueOp {
        DueOp { intended: self.next, measured: self.measured }
    }

    fn is_over(&self, now: Ns, window: &Window) -> bool {
        (self.measured && self.left == Some(0))
            || (now >= window.end && (window.early || self.next >= window.end))
    }
}

impl Queues {
    fn new(job: &Job, clients: &[u32], threads: usize, window: Window, warmup: Ns) -> Queues {
        let mut by_table: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
        for (place, client) in clients.iter().enumerate() {
            by_table.entry(job.pinned_table(*client)).or_default().push(place);
        }
        let mut places = vec![(0, false); clients.len()];
        let mut all = Vec::with_capacity(by_table.len());
        for members in by_table.into_values() {
            for place in &members {
                places[*place].0 = all.len();
            }
            let members: Vec<u32> = members.iter().map(|place| clients[*place]).collect();
            all.push(Queue::new(job.queue(&members, threads), window));
        }
        Queues {
            all,
            places,
            due: BTreeSet::new(),
            armed: 0,
            window,
            warmup,
            draining: false,
            counts: PacingCounts::default(),
        }
    }

    /// Takes over a window; returns whether it is another one.
    fn set_window(&mut self, window: Window) -> bool {
        let changed = self.window != window;
        self.window = window;
        for at in 0..self.all.len() {
            self.enter(at);
            self.rekey(at);
        }
        changed
    }

    fn is_warm(&mut self, now: Ns) -> bool {
        if !self.draining {
            let late = |queue: &Queue| now.saturating_sub(queue.next) > self.warmup / LATE;
            if !self.all.iter().any(late) {
                return true;
            }
            self.draining = true;
            for at in 0..self.all.len() {
                self.hold(at);
                self.rekey(at);
            }
        }
        self.all.iter().all(|queue| queue.next == NEVER)
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
        if queue.is_over(now, &self.window) {
            self.wake(at);
            return Poll::Ready(None);
        }
        if queue.next > now {
            *waits = true;
            queue.idle.push_back((place, waker.clone()));
            self.rekey(at);
            return Poll::Pending;
        }
        let arrival = queue.arrival();
        if arrival.measured {
            self.counts.intended += 1;
            self.counts.backlog += u64::from(now >= self.window.end);
        } else if now >= self.window.start {
            self.left_of_warmup(arrival);
        }
        self.advance(at);
        self.last(at, arrival, now);
        self.rekey_or_wake(at, now);
        Poll::Ready(Some(arrival))
    }

    /// Counts an arrival of the warm-up that was not issued when the window began.
    fn left_of_warmup(&mut self, arrival: DueOp) {
        let late = self.window.start.saturating_sub(arrival.intended);
        self.counts.warmup_left += 1;
        self.counts.warmup_late = self.counts.warmup_late.max(late);
    }

    /// Takes, with `--ops`, what the last arrival's wait says about those behind it.
    fn last(&mut self, at: usize, arrival: DueOp, now: Ns) {
        let queue = &self.all[at];
        if arrival.measured && queue.left == Some(0) {
            let wait = now.saturating_sub(arrival.intended) as f64 / 1e9;
            self.counts.behind += wait * queue.of.per_s;
        }
    }

    fn advance(&mut self, at: usize) {
        let queue = &mut self.all[at];
        if queue.measured {
            queue.left = queue.left.map(|left| left.saturating_sub(1));
            queue.next = if queue.left == Some(0) { NEVER } else { queue.arrivals.next() };
            return;
        }
        queue.next = queue.arrivals.next();
        self.hold(at);
        self.enter(at);
    }

    /// Ends arrivals at the warm-up's planned end, while its backlog is drained.
    fn hold(&mut self, at: usize) {
        let queue = &mut self.all[at];
        if self.draining && !queue.measured && queue.next >= self.warmup {
            queue.next = NEVER;
        }
    }

    /// Lets the window's arrivals follow those of the warm-up.
    fn enter(&mut self, at: usize) {
        let queue = &mut self.all[at];
        if !queue.measured && self.window.start != NEVER && queue.next >= self.window.start {
            queue.measured = true;
            queue.arrivals = queue.of.arrivals(self.window.start, true);
            queue.next = if queue.left == Some(0) { NEVER } else { queue.arrivals.next() };
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

    fn rekey_or_wake(&mut self, at: usize, now: Ns) {
        self.rekey(at);
        if self.all[at].key.is_some_and(|key| key <= now) {
            self.wake(at);
        }
    }

    /// Wakes the first idle client of a queue. Its key comes back when the client has looked.
    fn wake(&mut self, at: usize) {
        let queue = &mut self.all[at];
        if let Some(key) = queue.key.take() {
            self.due.remove(&(key, at));
        }
        if let Some((place, waker)) = queue.idle.pop_front() {
            self.places[place].1 = false;
            waker.wake();
        }
    }

    /// Sets when an idle client of a queue must wake: for its next arrival, or to see that it is over.
    fn rekey(&mut self, at: usize) {
        let queue = &mut self.all[at];
        let over = queue.measured && queue.left == Some(0);
        let instant = if over { 0 } else { queue.next.min(self.window.end) };
        let key = Some(instant).filter(|key| !queue.idle.is_empty() && *key != NEVER);
        if key == queue.key {
            return;
        }
        if let Some(old) = queue.key.take() {
            self.due.remove(&(old, at));
        }
        if let Some(new) = key {
            self.due.insert((new, at));
            queue.key = key;
        }
    }
}

#[cfg(test)]
mod tests;
