//! The state that the clients of an engine thread share, and what of a client outlives its task.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use super::alarm::{NEVER, Pauses};
use super::errors::{Event, Events, Failures, OpError, Pending, add_error};
use super::job::{Job, TableShare};
use super::op_share::OpShare;
use super::pacing::{Pacing, StepWindow};
use super::self_watch::SharedWatch;
use super::setup::{DealtCounts, QueueLength, ServiceReport, StepSetup, ThreadCounts, ThreadEvent};
use crate::error::Result;
use crate::mysql::Failure;
use crate::mysql::wire::Inbox;
use crate::observe::{EventCounts, Ns, Op, Phases, Recorder};
use crate::plan::{AtEnd, StopAt, limits};
use crate::summary::LedgerEntry;

/// The end of the sleeps that a script has between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SleepsEnd {
    ByThemselves,
    WithWindow,
    AtOnce,
}

/// The state that the clients of one engine thread share. Nothing here is borrowed across an await.
pub(crate) struct ThreadState {
    pub setup: Arc<StepSetup>,
    job: Arc<Job>,
    pub index: usize,
    pub origin: Instant,
    pub inbox: Inbox,
    pub window: Cell<StepWindow>,
    pub recorder: RefCell<Recorder>,
    pub ops_by_table: Vec<Cell<u64>>,
    pub ledger: RefCell<Vec<LedgerEntry>>,
    pub failures: RefCell<Failures>,
    /// Errors since the last report of the service.
    seen: RefCell<Events>,
    watch: Rc<SharedWatch>,
    pub tables: Vec<TableShare>,
    pub pacing: Option<Pacing>,
    pub pauses: Option<Pauses>,
    share: Option<OpShare>,
    /// Clients whose scripts sleep.
    pub sleeping: Cell<u32>,
    pub clients: Vec<Rc<ClientState>>,
}

/// The part of a client that outlives its task.
#[derive(Debug, Default)]
pub(crate) struct ClientState {
    pub client: u32,
    pub intended: Cell<Option<Ns>>,
    /// When the op in flight was issued.
    pub issued: Cell<Option<Ns>>,
    /// The instant of the last answer, until the client waits for something else. It saves a look at the clock
    /// (benches/results/performance.md).
    pub answered: Cell<Option<Ns>>,
    /// The client is in the window: decided before an op, and the op's for all of it.
    pub measured: Cell<bool>,
    /// The number of the name that a script gave the op.
    pub name: Cell<Option<u32>>,
    /// The writes that are in doubt if the answer never comes.
    pub pending: RefCell<Vec<Pending>>,
    pub ops: Cell<u64>,
    /// Its errors, and refused attempts to connect again.
    pub errors: Cell<u64>,
    pub offline: Cell<bool>,
    /// The start of the log-in under way that follows so many ops.
    pub login: Cell<Option<Ns>>,
    pub ended_by_script: Cell<bool>,
    /// The end of its last op, where the window has nothing of what follows.
    pub ended: Cell<Option<Ns>>,
    given_up: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl ThreadState {
    /// Makes that of a group's clients in a thread; within its runtime only.
    pub(super) fn new(
        setup: &Arc<StepSetup>,
        (inbox, watch): (Inbox, &Rc<SharedWatch>),
        index: usize,
        origin: Instant,
        clients: &[u32],
    ) -> Result<Self> {
        let (window, job) = (*setup.window.borrow(), &*setup.job);
        let told = Arc::clone(setup);
        let sink = move |interval| told.tell(index, ThreadEvent::Interval(Box::new(interval)));
        let phases = Phases {
            window_start: window.start,
            window_end: window.end,
            by_issue: matches!(job.plan.stop, StopAt::Ops(_)),
            interval: setup.interval,
        };
        let pacing = job.step.rate.map(|_| Pacing::new(job, clients, window, &watch.spun));
        let mut recorder = Recorder::new(phases, job.timed_statements, Box::new(sink));
        if job.plan.rules.count_answers {
            recorder.count_events(job.step.clients);
        }
        recorder.names = Arc::clone(&setup.names);
        let tables = 0..job.places();
        let client =
            |client: &u32| Rc::new(ClientState { client: *client, ..ClientState::default() });
        let entry = |table| {
            let table = job.tables.schema.name(table + 1);
            LedgerEntry { table, ..LedgerEntry::default() }
        };
        let least = u64::from(job.step.rate.is_some());
        let pauses = job.plan.think.is_some() || job.plan.script.is_some();
        Ok(ThreadState {
            setup: Arc::clone(setup),
            job: Arc::clone(&setup.job),
            index,
            origin,
            inbox,
            window: Cell::new(window),
            recorder: RefCell::new(recorder),
            ops_by_table: tables.clone().map(|_| Cell::default()).collect(),
            ledger: RefCell::new(tables.clone().map(entry).collect()),
            failures: RefCell::default(),
            seen: RefCell::default(),
            watch: Rc::clone(watch),
            tables: tables.map(|table| job.table_share(table)).collect(),
            pacing: pacing.transpose()?,
            share: setup.grants.get(index).map(|grant| OpShare::new(grant, least)),
            pauses: pauses.then(|| Pauses::new(window.end, &watch.spun)).transpose()?,
            sleeping: Cell::default(),
            clients: clients.iter().map(client).collect(),
        })
    }

    #[inline]
    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    #[inline]
    pub(crate) fn now(&self) -> Ns {
        self.origin.elapsed().as_nanos() as Ns
    }

    pub(crate) fn op_timeout(&self) -> Duration {
        self.job().plan.policy.op_timeout.unwrap_or(Duration::MAX)
    }

    pub(crate) fn tick(&self, now: Ns) {
        self.follow();
        self.give_up(now);
        self.report(now, self.pacing.as_ref().map(|pacing| self.queue(pacing, now)));
        self.sample(now);
        // As the window's end: a decided one stays, unless scripts have ended all clients.
        let is_open = self.window.get().end == NEVER || self.is_ended_by_script();
        let end = self.find_end().filter(|_| is_open);
        self.recorder.borrow_mut().roll(end.unwrap_or(now));
    }

    /// Returns the end of the last op of all; None while a client has more of them.
    fn find_end(&self) -> Option<Ns> {
        let ends = self.clients.iter().map(|client| client.ended.get());
        ends.max_by_key(|end| end.unwrap_or(NEVER)).flatten()
    }

    fn is_ended_by_script(&self) -> bool {
        self.clients.iter().all(|client| client.ended_by_script.get())
    }

    /// Returns whether an op would begin again for ever: nothing but the number of ops ends the step.
    pub(super) fn is_endless(&self, began: Ns, now: Ns) -> bool {
        let ends = self.job().plan.stop.time().is_some_and(|time| time < limits::PHASE_MAX);
        !ends && now - began > limits::SILENCE.as_nanos() as Ns
    }

    /// Returns the instant from which no op goes on that met an error.
    pub(crate) fn ends_at(&self) -> Ns {
        let more = match self.job().plan.rules.at_end {
            AtEnd::Drain => Duration::ZERO,
            AtEnd::Finish { .. } => limits::DRAIN,
        };
        self.window.get().last.saturating_add(more.as_nanos() as Ns)
    }

    pub(super) fn gives_up_at(&self) -> Ns {
        let StepWindow { end, last, .. } = self.window.get();
        let after = |edge: Ns, time: Duration| edge.saturating_add(time.as_nanos() as Ns);
        match self.job().plan.rules.at_end {
            AtEnd::Drain => after(end, limits::DRAIN),
            AtEnd::Finish { grace, .. } => grace.map_or(end, |grace| after(last, grace)),
        }
    }

    #[inline]
    pub(crate) fn answered(&self, client: &ClientState) -> Ns {
        client.answered.get().unwrap_or_else(|| {
            let now = self.now();
            client.answered.set(Some(now));
            now
        })
    }

    pub(crate) fn tell(&self, event: ThreadEvent) {
        self.setup.tell(self.index, event);
    }

    /// Takes one of the ops that all clients share, for this one; false after the last one.
    #[inline]
    pub(crate) async fn may_begin(&self, client: &ClientState) -> bool {
        let Some(share) = &self.share else { return true };
        // It may wait for more of them.
        client.answered.set(None);
        share.take(|| self.tell(ThreadEvent::NeedsOps)).await
    }

    fn follow(&self) {
        let window = *self.setup.window.borrow();
        self.window.set(window);
        self.recorder.borrow_mut().set_window(window.start, window.end);
        if let Some(pacing) = &self.pacing {
            pacing.set_window(window);
        }
        if let Some(pauses) = &self.pauses {
            pauses.set_end(window.last.min(window.end));
        }
    }

    fn report(&self, until: Ns, queue: Option<QueueLength>) {
        let mut recorder = self.recorder.borrow_mut();
        let mut seen = std::mem::take(&mut *self.seen.borrow_mut());
        seen.extend(recorder.take_successes().map(|s| (s.first, Event::Success(s.last))));
        let ops = recorder.ops();
        let asleep = self.sleeping.get() > 0;
        let errors = self.failures.borrow().by_class();
        self.tell(ThreadEvent::Service(ServiceReport { until, ops, seen, queue, asleep, errors }));
    }

    fn queue(&self, pacing: &Pacing, now: Ns) -> QueueLength {
        let busy = self.clients.iter().filter(|client| client.issued.get().is_some()).count();
        QueueLength { waiting: pacing.waiting(now), busy: busy as u64 }
    }

    pub(crate) fn sample(&self, now: Ns) {
        self.watch.sample(now, self.window.get());
    }

    /// Ends the part of a client that the window has.
    pub(crate) fn end_client(&self, client: &ClientState) {
        let now = self.now();
        client.ended.set(Some(now));
        self.watch.end_client(now);
    }

    /// Abandons ops that are in flight for too long, and after the window's end connections that are not open.
    fn give_up(&self, now: Ns) {
        let limit = self.job().plan.policy.op_timeout.map(|limit| limit.as_nanos() as Ns);
        let over = now >= self.ends_at();
        if limit.is_none() && !over {
            return;
        }
        for client in &self.clients {
            let age = client.issued.get().map(|issued| now.saturating_sub(issued));
            let late = age.zip(limit).is_some_and(|(age, limit)| age >= limit);
            if late || (over && client.offline.get()) {
                client.give_up();
            }
        }
    }

    #[inline]
    pub(crate) fn count(&self, now: Ns, add: impl FnOnce(&mut EventCounts)) {
        if let Some(events) = self.recorder.borrow_mut().events(now) {
            add(events);
        }
    }

    pub(crate) fn failed(&self, client: &ClientState, issued: Ns, now: Ns, error: &OpError) {
        let in_doubt = self.note_error(client, now, error);
        let measured = client.measured.get();
        let given_up = matches!(error, OpError::Timeout(_) | OpError::Unanswered);
        if given_up {
            client.errors.set(client.errors.get() + 1);
        } else {
            self.count_error(client, error);
        }
        let mut recorder = self.recorder.borrow_mut();
        let mut failures = self.failures.borrow_mut();
        failures.in_doubt += u64::from(in_doubt);
        if given_up {
            failures.abandoned += 1;
            failures.window_abandoned += u64::from(measured);
            let (intended, name) = (client.intended.get(), client.name.get());
            let op = Op { intended, issued, measured, completed: now, name, ..Op::default() };
            return recorder.abandoned(op);
        }
        if in_doubt {
            failures.window_in_doubt += u64::from(measured);
            recorder.unresolved(now);
        } else {
            recorder.failed(issued, measured, now);
        }
    }

    /// Counts an error, also by the name of its op.
    pub(crate) fn count_error(&self, client: &ClientState, error: &OpError) {
        client.errors.set(client.errors.get() + 1);
        let mut failures = self.failures.borrow_mut();
        failures.count(error.count());
        if let Some(name) = client.name.get().and_then(|name| self.setup.names.name(name)) {
            failures.count_named(name, error.count());
        }
    }

    pub(crate) fn refused_reconnect(&self, client: &ClientState, failure: Failure) {
        let text = format!("cannot connect: {failure}");
        let refused = OpError::from(failure);
        let event = Event::Refused(refused.code(), text.into());
        self.seen.borrow_mut().push((self.now(), event));
        client.errors.set(client.errors.get() + 1);
        self.failures.borrow_mut().count_refused_reconnect(&refused);
    }

    /// Records the time of a log-in after so many ops, from its first attempt.
    pub(crate) fn logged_in(&self, client: &ClientState, now: Ns) {
        if let Some(began) = client.login.take() {
            self.recorder.borrow_mut().connected(began, now);
        }
    }

    /// Returns true if the error leaves something in doubt. No op has failed yet: it may begin again.
    pub(crate) fn note_error(&self, client: &ClientState, now: Ns, error: &OpError) -> bool {
        if !error.leaves_doubt() {
            // The server has refused the writes.
            client.pending.borrow_mut().clear();
        }
        client.issued.set(None);
        client.answered.set(None);
        self.see_error(now, error);
        self.enter_doubt(client)
    }

    /// Notes an error for the watch over outages.
    pub(crate) fn see_error(&self, now: Ns, error: &OpError) {
        add_error(&mut self.seen.borrow_mut(), now, error.code(), &error.to_string());
    }

    /// Enters in the ledger what a client's writes left in doubt; returns whether there is something.
    pub(crate) fn enter_doubt(&self, client: &ClientState) -> bool {
        let mut pending = client.pending.borrow_mut();
        for (table, writes, doubt) in pending.iter() {
            let entry = &mut self.ledger.borrow_mut()[*table as usize];
            entry.in_doubt += u64::from(*writes);
            entry.doubt.get_or_insert_default().add(doubt);
        }
        let any = !pending.is_empty();
        pending.clear();
        any
    }

    /// Abandons at the end of the drain what is in flight or waits: the connections went with the tasks.
    fn abandon(&self, now: Ns) {
        for client in &self.clients {
            if let Some(issued) = client.issued.get() {
                self.failed(client, issued, now, &OpError::Unanswered);
            }
            self.logged_in(client, now);
        }
        if let Some(pacing) = &self.pacing {
            let given_up = self.job().plan.rules.at_end == AtEnd::Drain;
            pacing.queues.borrow_mut().abandon(now, &mut self.recorder.borrow_mut(), given_up);
        }
    }

    pub(crate) fn into_counts(self) -> ThreadCounts {
        let ended = self.find_end().unwrap_or_else(|| self.now());
        let ended_by_script = self.is_ended_by_script();
        self.abandon(ended);
        self.report(Ns::MAX, None);
        let mut by_address = vec![DealtCounts::default(); self.setup.link.addresses()];
        for client in &self.clients {
            let dealt = &mut by_address[self.setup.address_of(client.client)];
            let (ops, errors) = (client.ops.get(), client.errors.get());
            dealt.add(&DealtCounts { clients: 1, ops, errors });
        }
        self.recorder.into_inner().finish(ended);
        ThreadCounts {
            ops_by_client: self.clients.iter().map(|client| client.ops.get()).collect(),
            by_address,
            ops_by_table: self.ops_by_table.into_iter().map(Cell::into_inner).collect(),
            ledger: self.ledger.into_inner(),
            failures: self.failures.into_inner(),
            usage: self.watch.end_group(),
            ended,
            ended_by_script,
            paced: self.pacing.map(|pacing| pacing.queues.into_inner().counts),
        }
    }
}

impl ClientState {
    fn give_up(&self) {
        self.given_up.set(true);
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Works until the work ends or is given up after `limit`. The caller drops what is given up
    /// where it waits: what it borrowed, such as a session, must not be used again.
    ///
    /// No timer an op: the engine thread looks at the instants of all ops in flight every tick.
    pub(crate) async fn watch<T>(
        &self,
        limit: Duration,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, OpError> {
        // A task has one waker for life.
        self.waker.replace(Some(poll_fn(|context| Poll::Ready(context.waker().clone())).await));
        poll_fn(|context| {
            if self.given_up.get() && self.given_up.replace(false) {
                return Poll::Ready(Err(OpError::Timeout(limit)));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    fn run<T: 'static>(work: impl Future<Output = T> + 'static) -> Result<T, OpError> {
        let client = Rc::new(ClientState::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build_local(tokio::runtime::LocalOptions::default());
        let watching = Rc::clone(&client);
        runtime.expect("a runtime").block_on(async move {
            let ended =
                tokio::task::spawn_local(async move { watching.watch(LIMIT, pin!(work)).await });
            tokio::task::yield_now().await;
            client.give_up();
            ended.await.expect("it ends")
        })
    }

    #[test]
    fn work_is_given_up_when_it_waits_and_done_when_it_ends() {
        assert_eq!(run(std::future::pending::<()>()), Err(OpError::Timeout(LIMIT)));
        assert_eq!(run(async { 7 }), Ok(7));
    }
}
