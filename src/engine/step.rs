//! A step from the outside: opens, says go, reads at both edges of the window, ends early when it
//! must, and puts together what the threads counted. The client's own cost is read at the edge itself,
//! the server's counters, process and host outside of the window, each with its instant.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use super::alarm::NEVER;
use super::errors::{
    ClientAction, EndReason, OpError, OpenError, ScriptPart, abort_error, name_host,
};
use super::group::{GroupSeen, end_of_window};
use super::job::{engine_threads, queues};
use super::jobs::compile_jobs;
use super::op_share::SharedOps;
use super::pacing::StepWindow;
use super::part::{Elsewhere, broken, join, spawn};
use super::reading::{ServerReading, ServerUse, guard};
use super::setup::{
    Go, MEASURED, NOTICE, QueueLength, ServiceReport, StepSetup, TICK, ThreadEvent, ThreadMessage,
    add_entries, tick,
};
use super::silence::{SilenceWatch, left_behind, name_thread};
use super::summarise::LiveLine;
use super::{MeasuredGroup, MeasuredStep, Observer, Readings, StepContext};
use crate::error::{Error, Result};
use crate::judge::no_result;
use crate::mysql::{Failure, Session};
use crate::observe::{ClientReading, ClientUse, Ns, Probe, RecordedInterval, peak_resident_bytes};
use crate::plan::{Plan, Spread, limits};
use crate::progress::Progress;
use crate::stop::{locked, or_stop, within};
use crate::summary::{Outcome, SettingChange, in_queues};
use crate::terms::{counted, joined};

/// The longest interval between two reports of a thread, for the live line and the watch over silence.
const LOOK: Duration = Duration::from_secs(1);

/// The most lines of scripts that are shown: there may be one for each key.
const LINES_MAX: usize = 100;

/// The lead of the start where all threads are of this process.
const LEAD_HERE: Duration = Duration::from_millis(5);

/// Runs one step. `control` reads the server's counters; it is dropped when it hangs.
///
/// An error says that nothing was measured; what ends a step later is in [`MeasuredStep::error`].
pub async fn run_step(
    context: &StepContext<'_>,
    control: &mut Option<Session>,
    progress: &mut Progress,
) -> Result<MeasuredStep> {
    let (setups, channels) = setup(context)?;
    let setup = &setups[0];
    let handles = match context.elsewhere {
        None => spawn(&setups, &(0..setup.job.threads).collect::<Vec<usize>>())?,
        Some(elsewhere) => {
            (elsewhere.open)(&setups);
            Vec::new()
        }
    };
    let go = channels.go.clone();
    let run = Running::new(context, progress, setups, channels).run(control).await;
    // Those that still open connections or wait for the start go, too.
    go.send_replace(Go::Cancel);
    let lost = run.as_ref().map_or(&[][..], |run| &run.lost);
    let handles = handles.into_iter().enumerate().filter(|(thread, _)| !lost.contains(thread));
    join(handles.map(|(_, handle)| handle).collect()).await;
    run
}

/// Describes the queues of an open loop, where there are several: each has its part of the clients.
pub(crate) fn describe_queues(plan: &Plan, spread: Spread, tables: u32) -> Option<String> {
    let clients = plan.clients.iter().filter(|_| !plan.rates.is_empty());
    let all = clients.map(|n| queues(engine_threads(plan, *n), spread, tables, *n));
    let (least, most) = (all.clone().min()?, all.max().filter(|most| *most > 1)?);
    let range = if least < most { format!("{least} to ") } else { String::new() };
    Some(format!("open loop: arrivals in {range}{}", in_queues(most, spread)))
}

/// The threads must see an open loop's window, and the server's counters are read before it, in the second half
/// of the warm-up at most.
fn ahead(context: &StepContext<'_>) -> Duration {
    ahead_in(context.plan.warmup, notice(context) + TICK, lead(context.probe.as_ref()))
}

fn ahead_in(warmup: Duration, seen: Duration, lead: Duration) -> Duration {
    (seen + lead).min(seen.max(warmup / 2))
}

/// Waits for an event, behind timers and sockets that are ready: the runtime looks at them only when a task yields,
/// and a busy host lets many events gather.
pub(crate) async fn next_event<T>(events: &mut mpsc::UnboundedReceiver<T>) -> Option<T> {
    tokio::task::yield_now().await;
    events.recv().await
}

fn notice(context: &StepContext<'_>) -> Duration {
    NOTICE + context.elsewhere.map_or(Duration::ZERO, |elsewhere| elsewhere.notice)
}

struct Channels {
    go: watch::Sender<Go>,
    window: watch::Sender<StepWindow>,
    ops: SharedOps,
    events: mpsc::UnboundedReceiver<ThreadMessage>,
}

fn setup(context: &StepContext<'_>) -> Result<(Vec<Arc<StepSetup>>, Channels)> {
    let StepContext { plan, step, .. } = *context;
    let jobs = compile_jobs(plan, step, context.spread, context.tables)?;
    let job = Arc::clone(&jobs[0]);
    let warmup = plan.warmup.as_nanos() as Ns;
    // An open loop's window begins when the backlog of its warm-up is gone.
    let start = if step.rate.is_some() && warmup > 0 { NEVER } else { warmup };
    let (interval, look) = (plan.interval.as_nanos() as Ns, LOOK.as_nanos() as Ns);
    let (told, events) = mpsc::unbounded_channel();
    let sources = context.elsewhere.map_or(job.threads, |all| all.names.len());
    let channels = Channels {
        go: watch::Sender::new(Go::Wait),
        window: watch::Sender::new(StepWindow::from_start(plan, start)),
        ops: SharedOps::new(plan.rules.shared_ops, sources),
        events,
    };
    let setup = StepSetup {
        group: MEASURED,
        link: context.link.clone(),
        logins: Arc::new(Semaphore::new(limits::CONNECTS_AT_ONCE)),
        // An even part of a longer one.
        interval: interval / interval.div_ceil(look).max(1),
        opening: Instant::now(),
        go: channels.go.subscribe(),
        window: channels.window.subscribe(),
        grants: channels.ops.receivers(),
        warm_check: warmup.saturating_sub(ahead(context).as_nanos() as Ns),
        events: told,
        script_log: context.observer.and_then(Observer::script_log),
        sources,
        job,
        names: Arc::default(),
    };
    Ok((setup.of_all(&jobs), channels))
}

struct Running<'a> {
    context: &'a StepContext<'a>,
    /// The tick, and the watch over the server, which ends with the settings that differ.
    beside: JoinSet<Vec<SettingChange>>,
    progress: &'a mut Progress,
    origin: Instant,
    /// A server that has not answered anybody for so long hangs.
    silence: Duration,
    line: LiveLine<'a>,
    seen: ObservedSoFar,
    setup: Arc<StepSetup>,
    /// The measured one first.
    groups: Vec<GroupSeen>,
    channels: Channels,
}

#[derive(Default)]
struct ObservedSoFar {
    opened: u32,
    waiting: bool,
    /// Lines of scripts.
    said: usize,
    /// Threads of groups whose open loop may begin its window.
    warm: usize,
    reopened: Arc<Notify>,
    queues: Vec<QueueLength>,
    /// Sources that are gone with what they counted.
    lost: Vec<usize>,
    silence: SilenceWatch,
    changed: Option<Vec<SettingChange>>,
    early: Option<(Outcome, Error)>,
    /// The instant of a signal, until the wait after it is explained.
    signalled: Option<Instant>,
}

impl ObservedSoFar {
    fn new(plan: &Plan, threads: usize) -> ObservedSoFar {
        let queues = vec![QueueLength::default(); threads];
        let silence = SilenceWatch::new(plan.scripts().next().is_some(), threads);
        ObservedSoFar { queues, silence, ..ObservedSoFar::default() }
    }
}

impl<'a> Running<'a> {
    fn new(
        context: &'a StepContext<'a>,
        progress: &'a mut Progress,
        setups: Vec<Arc<StepSetup>>,
        channels: Channels,
    ) -> Running<'a> {
        let StepContext { plan, step, .. } = *context;
        let setup = Arc::clone(&setups[0]);
        let mut groups: Vec<GroupSeen> = setups.into_iter().map(GroupSeen::new).collect();
        groups[0].timeline.log.clone_from(&context.log);
        let seen = ObservedSoFar::new(plan, setup.sources);
        let mut beside = JoinSet::new();
        beside.spawn(tick(channels.window.clone()));
        if let Some(server) = context.server {
            let reopened = Arc::clone(&seen.reopened);
            beside.spawn(guard(reopened, context.link.clone(), server.clone()));
        }
        // An open loop may have nothing to do: a gap of 30 means is one of 10 billions. A rate may be so
        // low that there is no such time.
        let idle = Duration::try_from_secs_f64(step.rate.map_or(0.0, |rate| 30.0 / rate));
        let pause = idle.unwrap_or(limits::PHASE_MAX) + plan.think.unwrap_or(Duration::ZERO);
        let (origin, silence) = (setup.opening, plan.policy.patience_with_ops() + pause);
        let mut line = LiveLine::new(plan, step, context.later);
        line.hosts = context.elsewhere.map(Elsewhere::describe);
        Running { context, beside, progress, origin, silence, line, seen, setup, groups, channels }
    }

    async fn run(mut self, control: &mut Option<Session>) -> Result<MeasuredStep> {
        if !self.open().await? {
            return Ok(self.into_run_of_nothing());
        }
        (self.context.first_write)()?;
        self.context.observer.iter().for_each(|observer| observer.started());
        let context = self.context;
        let probe = context.probe.as_ref();
        // Without a warm-up the window opens with the first op: the counters are read before it, so that they
        // count every one. With one, they are read in its last moments: no reading disturbs the window.
        let mut before = None;
        if self.window_start() == 0 {
            before = Some(ServerReading::take(control, probe).await);
        }
        // Ahead of now, so that every thread is there when the clock starts.
        let lead_of_start = context.elsewhere.map_or(LEAD_HERE, |all| all.lead);
        self.origin = Instant::now() + lead_of_start;
        let started_at = jiff::Timestamp::now() + lead_of_start;
        if let Some(log) = &context.log {
            locked(log).origin(started_at);
        }
        let start = self.origin.duration_since(self.setup.opening).as_nanos() as Ns;
        self.channels.go.send_replace(Go::Start(start));
        self.warm_up().await?;
        let warmup = Duration::from_nanos(self.window_start());
        let window_start = self.origin + warmup;
        context.window.send_replace(Some(window_start));
        let lead = lead(probe).min(warmup / 2);
        self.follow(self.origin + warmup.saturating_sub(lead)).await?;
        let is_read = Notify::new();
        let reading = async {
            let first = match before {
                Some(before) => before,
                None => Box::pin(ServerReading::take(control, probe)).await,
            };
            is_read.notify_one();
            first
        };
        let starting = async {
            if self.seen.early.is_none() {
                self.follow(window_start).await?;
            }
            let own = ClientReading::now(probe);
            self.take_during(is_read.notified()).await?;
            Ok::<_, Error>(own)
        };
        let (first, own_first) = tokio::join!(reading, starting);
        let own_first = own_first?;
        self.window_ends().await?;
        let own = ClientReading::now(probe).since(&own_first);
        self.end_beside();
        if context.plan.stop.ops().is_some() {
            // The server's counters have the ops of all groups.
            self.drain().await?;
        }
        // Boxed: a step keeps no room for it.
        let reading = Box::pin(async {
            let mut last = ServerReading::take(control, probe).await;
            last.take_again(context.link).await;
            last
        });
        let mut last = self.take_during(reading).await?;
        self.drain().await?;
        last.count_own(control).await;
        self.judge(true);
        self.progress.clear();
        Ok(self.into_run(started_at, own, last.since(&first, probe, window_start)))
    }

    /// Waits for the threads of all groups. A signal now ends the sweep, not this step: its window is whole.
    async fn drain(&mut self) -> Result<()> {
        while !self.groups.iter().all(GroupSeen::has_ended) {
            let (silent, until) = self.next_silent();
            // An event that has come was heard, however long nobody listened.
            let is_silent = silent.is_some() && self.channels.events.is_empty();
            tokio::select! {
                biased;
                event = next_event(&mut self.channels.events) => drop(self.take(event)?),
                () = tokio::time::sleep_until(until.into()), if is_silent => self.leave_behind(silent),
            }
        }
        Ok(())
    }

    /// Ends the groups beside, where the measured clients have ended before the time.
    fn end_beside(&self) {
        if self.groups.len() > 1 {
            let now = (self.origin.elapsed() + notice(self.context)).as_nanos() as Ns;
            self.channels.window.send_modify(|window| {
                window.last = now.min(window.last);
                window.end = if window.end == NEVER { NEVER } else { now.min(window.end) };
            });
        }
    }

    /// Waits for all connections; returns false if a host is lost before, which ends the step.
    async fn open(&mut self) -> Result<bool> {
        let all = self.groups.iter().map(|group| group.setup.job.step.clients).sum();
        while self.seen.opened < all {
            let context = self.context;
            let told = or_stop(&context.link.stop, self.opening_event()).await;
            self.take(told.map_err(|error| error.context("opening connections"))?)?;
            if let Some((outcome, error)) = self.seen.early.take() {
                let error = error.context("opening connections");
                if outcome != Outcome::RankLost {
                    return Err(error);
                }
                self.seen.early = Some((outcome, error));
                return Ok(false);
            }
        }
        self.progress.restart();
        Ok(true)
    }

    /// Waits for an event. A script that computes and asks nothing tells none, and cannot be interrupted.
    async fn opening_event(&mut self) -> Result<Option<ThreadMessage>> {
        let event = next_event(&mut self.channels.events);
        let plan = self.context.plan;
        let slowest = plan.scripts().max_by_key(|script| script.init_limit());
        let Some(script) = slowest else { return Ok(event.await) };
        // A log-in has a time of its own.
        let limit =
            script.init_limit() + self.context.link.target.connect_timeout + limits::COURTESY;
        let event = within(limit, event).await;
        event.ok_or_else(|| {
            // Nobody knows on which host.
            let action = ClientAction::Script(ScriptPart::Run, script.init_too_long());
            let none = Failure::lost("");
            self.tell_end(&EndReason::Client(action.clone(), none.clone()));
            let error = OpenError::refused(action, none).error;
            // Nobody knows of which script, either.
            let paths: BTreeSet<&str> = plan.scripts().map(|script| &*script.path).collect();
            let paths = joined(paths.into_iter().map(|path| Some(path.to_owned())), ", ");
            error.context(paths.unwrap_or_default()).hint(
                "raise the script's option thread_init_timeout, or look for an endless loop in \
                 the file or its thread_init",
            )
        })
    }

    /// Ends a step that has not begun: its window has no length.
    fn into_run_of_nothing(self) -> MeasuredStep {
        self.progress.clear();
        self.channels.window.send_modify(|window| (window.start, window.end) = (0, 0));
        let own = ClientReading::now(None);
        self.into_run(jiff::Timestamp::now(), own.since(&own), (None, None))
    }

    /// Its backlog is drained for as long as the warm-up took at most.
    async fn warm_up(&mut self) -> Result<()> {
        if self.window_start() != NEVER {
            return Ok(());
        }
        let (plan, ahead) = (self.context.plan, ahead(self.context));
        self.follow(self.origin + (plan.warmup * 2).saturating_sub(ahead)).await?;
        if self.seen.early.is_none() {
            let start = (self.origin.elapsed() + ahead).max(plan.warmup).as_nanos() as Ns;
            self.channels.window.send_replace(StepWindow::from_start(plan, start));
        }
        Ok(())
    }

    /// Returns the start, [`NEVER`] until it is decided, or an early end before it.
    fn window_start(&self) -> Ns {
        let window = self.channels.window.borrow();
        window.start.min(window.end)
    }

    fn window_end(&self) -> Ns {
        self.channels.window.borrow().end
    }

    async fn window_ends(&mut self) -> Result<()> {
        loop {
            let end = self.window_end();
            self.follow(self.origin + Duration::from_nanos(end)).await?;
            // An early end moves the edge: then it is waited for once more.
            if self.all_done() || end == self.window_end() {
                return Ok(());
            }
        }
    }

    /// Returns whether the measured clients have ended.
    fn all_done(&self) -> bool {
        self.groups[0].has_ended()
    }

    async fn follow(&mut self, until: Instant) -> Result<()> {
        let mut silence = Instant::now() + self.silence;
        while !self.all_done() {
            let interruptible = self.seen.early.is_none();
            let (silent, left_at) = self.next_silent();
            // An event that has come was heard, however long nobody listened.
            let all_heard = self.channels.events.is_empty();
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(until.into()) => break,
                event = next_event(&mut self.channels.events) => {
                    if self.take(event)? {
                        silence = Instant::now() + self.silence;
                    }
                    // An early end may lie before the edge that is waited for.
                    let all = self.setup.sources * self.groups.len();
                    let warm = self.window_start() == NEVER && self.seen.warm >= all;
                    if warm || (interruptible && self.seen.early.is_some()) {
                        break;
                    }
                }
                kind = self.context.link.stop.wait(), if interruptible => {
                    self.end_early(Outcome::Interrupted, Error::new(kind, "interrupted"));
                    self.seen.signalled = Some(Instant::now());
                    break;
                }
                Some(changed) = self.beside.join_next(), if interruptible => {
                    let changed = changed.map_err(|_| broken())?;
                    if let Some(error) = no_result(&changed) {
                        self.end_early(Outcome::ServerChanged, error);
                    }
                    self.seen.changed = Some(changed);
                    break;
                }
                () = tokio::time::sleep_until(left_at.into()), if silent.is_some() && all_heard => {
                    self.leave_behind(silent);
                    break;
                }
                () = tokio::time::sleep_until(silence.into()), if interruptible && all_heard => {
                    if self.seen.silence.is_silent_for(self.silence) {
                        silence = Instant::now() + self.silence;
                        continue;
                    }
                    let (address, silence) = (&self.context.link.target.address, self.silence);
                    let text = format!("{address} has not answered any client for {silence:?}");
                    self.end_early(Outcome::Aborted, Error::failed(text).hint(
                        "it is stopped or out of reach; --op-timeout gives ops up earlier, or waits longer",
                    ));
                    break;
                }
            }
        }
        Ok(())
    }

    async fn take_during<T>(&mut self, work: impl Future<Output = T>) -> Result<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                event = next_event(&mut self.channels.events) => {
                    self.take(event)?;
                }
            }
        }
    }

    /// Takes one event; says whether it shows that the server answers the measured clients, or is not asked by them.
    fn take(&mut self, message: Option<ThreadMessage>) -> Result<bool> {
        let ThreadMessage { thread, group, event } = message.ok_or_else(broken)?;
        let at = usize::from(group);
        self.explain_wait();
        self.seen.silence.hear(thread);
        match event {
            ThreadEvent::Opened => {
                self.seen.opened += 1;
                self.progress.update(|| self.line.opening(self.seen.opened));
            }
            ThreadEvent::Waiting(error) => {
                if !std::mem::replace(&mut self.seen.waiting, true) {
                    let error = self.on_host(thread, error);
                    self.progress.note(&format!("waiting for the server: {error}"));
                }
            }
            ThreadEvent::NotOpened(OpenError { error, refused }) => {
                if let Some((action, failure)) = refused.map(|refused| *refused) {
                    self.tell_end(&EndReason::Client(action, failure));
                }
                let error = self.in_group(group, self.on_host(thread, error));
                return Err(match self.seen.opened {
                    0 => error,
                    opened => error.context(format!("after {}", counted(opened, "connection"))),
                });
            }
            ThreadEvent::Interval(interval) => {
                let (ops, errors) = (interval.ops, interval.errors);
                let of = &mut self.groups[at];
                (of.ops, of.errors) = (of.ops + ops, of.errors + errors);
                let answers = interval.events.as_ref().map_or(0, |events| events.answers());
                if let (Some(all), Some(observer)) = (self.context.elsewhere, self.context.observer)
                {
                    observer.host_interval(group, &all.names[thread], &interval);
                }
                let complete = of.timeline.add(thread, *interval);
                self.complete(group, &complete);
                self.progress.measuring(|| self.line.state(*self.channels.window.borrow()));
                self.judge(false);
                return Ok(group == MEASURED && ops + errors + answers > 0);
            }
            ThreadEvent::Abort(client, error) => {
                if let OpError::Failure(failure, Some(action)) = &error {
                    self.tell_end(&EndReason::Client(*action.clone(), failure.clone()));
                }
                if let OpError::Script(part, words) = &error {
                    let action = ClientAction::Script(*part, words.clone());
                    self.tell_end(&EndReason::Client(action, Failure::lost("")));
                }
                let setup = Arc::clone(&self.groups[at].setup);
                let number = setup.job.first_client.saturating_add(client);
                let is_login = error.is_of_login();
                let mut error = abort_error(number, &error, &setup.job.plan);
                if is_login {
                    let address = &setup.link_of(client).target.address;
                    error = error.context(format!("logging in again at {address}"));
                }
                let error = self.in_group(group, error);
                self.end_early(Outcome::Aborted, self.on_host(thread, error));
            }
            ThreadEvent::Done(mut counts) => {
                if let Some(all) = self.context.elsewhere {
                    counts.failures.name_host(&all.names[thread]);
                }
                let complete = self.groups[at].end(thread, *counts);
                if !self.groups.iter().any(|group| group.runs_in(thread)) {
                    self.seen.silence.end(thread);
                }
                self.complete(group, &complete);
            }
            ThreadEvent::Service(report) => {
                // A host's intervals wait for all of its threads, of which one may do nothing but compute.
                let fine = report.asleep || self.groups[at].outages.has_more(thread, report.ops);
                self.take_report(thread, group, report);
                return Ok(group == MEASURED && fine);
            }
            ThreadEvent::NeedsOps => self.channels.ops.grant(thread),
            ThreadEvent::Reopened => self.seen.reopened.notify_one(),
            ThreadEvent::Warm => self.seen.warm += 1,
            ThreadEvent::Said(line) => {
                let host = self.context.elsewhere.map(|all| format!("{}: ", all.names[thread]));
                self.seen.said += 1;
                match self.seen.said {
                    ..=LINES_MAX => self.progress.warn_once(&(host.unwrap_or_default() + &line)),
                    n if n == LINES_MAX + 1 => {
                        self.progress.warn("a script has more lines than these");
                    }
                    _ => {}
                }
            }
            ThreadEvent::Late(error) => {
                self.end_early(Outcome::Aborted, self.on_host(thread, error));
            }
            ThreadEvent::Lost(error) => {
                self.end_early(Outcome::RankLost, error);
                self.lose(thread);
            }
            ThreadEvent::Broken(error) => return Err(self.on_host(thread, error)),
        }
        Ok(false)
    }

    fn lose(&mut self, source: usize) {
        self.seen.lost.push(source);
        self.seen.silence.end(source);
        for group in 0..self.groups.len() {
            let complete = self.groups[group].lose(source);
            self.complete(group as u8, &complete);
        }
    }

    /// Returns the thread that is left behind next, and when.
    fn next_silent(&self) -> (Option<usize>, Instant) {
        let next = self.seen.silence.next(self.origin, *self.channels.window.borrow());
        next.map_or((None, self.origin), |(thread, at)| (Some(thread), at))
    }

    /// Goes on without a thread whose script does not come back. The window ended with the time.
    fn leave_behind(&mut self, thread: Option<usize>) {
        let Some(thread) = thread else { return };
        let who = self.context.elsewhere.map_or_else(
            || name_thread(thread, self.groups.iter().map(|group| &*group.setup.job)),
            |all| format!("an engine thread of {}", all.names[thread]),
        );
        self.channels.window.send_modify(|window| window.end = window.end.min(window.last));
        self.channels.ops.end();
        self.seen.early.get_or_insert((Outcome::Aborted, left_behind(&who)));
        self.lose(thread);
    }

    /// Names the group of an error that is not of the measured clients.
    fn in_group(&self, group: u8, error: Error) -> Error {
        let beside = usize::from(group).checked_sub(1);
        match beside.map(|at| self.context.plan.groups[at].name) {
            Some(name) => error.context(format!("group {name}")),
            None => error,
        }
    }

    fn on_host(&self, source: usize, error: Error) -> Error {
        match self.context.elsewhere {
            Some(all) => error.context(&all.names[source]),
            None => error,
        }
    }

    /// Explains to a person why nothing happens after a signal. Threads report in each tick of a drain.
    fn explain_wait(&mut self) {
        let is_late = |at: &mut Instant| at.elapsed() >= limits::EXPLAINED_AFTER;
        if self.seen.signalled.take_if(is_late).is_some() {
            let most = (limits::DRAIN + limits::COURTESY).as_secs();
            self.progress.note_to_person(&format!(
                "waiting for answers of the server, about {most} s at most; a second Ctrl-C ends at \
                 once, and this step is lost"
            ));
        }
    }

    fn take_report(&mut self, thread: usize, group: u8, report: ServiceReport) {
        let ServiceReport { until, ops, mut seen, queue, asleep: _, errors } = report;
        self.context.observer.iter().for_each(|observer| observer.errors(group, thread, &errors));
        if let Some(all) = self.context.elsewhere {
            name_host(&mut seen, &all.names[thread]);
        }
        let StepWindow { end, last, .. } = *self.channels.window.borrow();
        if group != MEASURED {
            // What is given up after the measured clients' end is no outage.
            seen.retain(|(at, event)| *at <= last || event.is_success());
        }
        self.groups[usize::from(group)].outages.report(thread, (until, ops), seen, end);
        let Some(queue) = queue.filter(|_| group == MEASURED) else { return };
        self.seen.queues[thread] = queue;
        let waiting = QueueLength::sum(&self.seen.queues).waiting;
        if self.context.plan.rules.queue_max.is_some_and(|max| waiting > max) {
            self.tell_end(&EndReason::Queue);
            let text = "more arrivals wait than the queue holds";
            self.end_early(Outcome::Aborted, Error::failed(text));
        }
    }

    fn tell_end(&self, reason: &EndReason) {
        self.context.observer.iter().for_each(|observer| observer.end(reason));
    }

    fn complete(&mut self, group: u8, intervals: &[RecordedInterval]) {
        self.line.add(group, intervals);
        let Some(observer) = self.context.observer else { return };
        if group != MEASURED {
            for interval in intervals {
                observer.group_interval(group, interval);
            }
            return;
        }
        let queue = QueueLength::sum(&self.seen.queues);
        for interval in intervals {
            observer.interval(interval, queue);
        }
    }

    /// Ends a step of which a group has more errors than `--max-errors` allows; `last` where no more follow.
    fn judge(&mut self, last: bool) {
        let Some(max) = self.context.plan.policy.errors_max else { return };
        let exceeds = |group: &GroupSeen| max.exceeded(group.errors, group.ops, last);
        if let Some(of) = self.groups.iter().find(|group| exceeds(group)) {
            let (errors, all) = (of.errors, of.ops + of.errors);
            let text = format!("{errors} of {all} ops failed, and --max-errors is {max}");
            let place = if of.setup.group == MEASURED { "totals" } else { "groups[]" };
            let hint = format!("the summary's {place}.errors has them by code");
            let error = Error::failed(text).hint(hint);
            let error = self.in_group(of.setup.group, error);
            self.end_early(Outcome::Aborted, error);
        }
    }

    /// Moves the window's end to just ahead of now; the first reason stays.
    fn end_early(&mut self, outcome: Outcome, error: Error) {
        if self.seen.early.is_none() {
            if !self.all_done() {
                self.channels.ops.end();
                let now = (self.origin.elapsed() + notice(self.context)).as_nanos() as Ns;
                self.channels.window.send_modify(|window| {
                    (window.end, window.early) = (now.min(window.end), true);
                    window.last = now.min(window.last);
                });
            }
            self.seen.early = Some((outcome, error));
        }
    }

    fn into_run(
        mut self,
        started_at: jiff::Timestamp,
        client: ClientUse,
        server: ServerUse,
    ) -> MeasuredStep {
        let (window_start, decided) = (self.window_start(), self.window_end());
        let origin = (started_at, client.cost);
        let mut end_of_measured = None;
        let mut measured = std::mem::take(&mut self.groups).into_iter().map(|mut seen| {
            let mut counts = seen.take_counts();
            let last_beside = end_of_measured.map(|end: Ns| end.max(seen.outages.last_success()));
            let window_end = end_of_window(decided, &counts, last_beside);
            end_of_measured.get_or_insert(window_end);
            let outages = seen.outages.finish(window_end, &seen.timeline.entries);
            let job = Arc::clone(&seen.setup.job);
            let length = window_end.saturating_sub(window_start);
            let counted = seen.count(origin, length, &mut counts);
            (job, counted, counts, outages)
        });
        let (_, counted, mut counts, outages) = measured.next().expect("the measured group");
        let mut groups = Vec::new();
        for (group, (job, counted, of, outages)) in self.context.plan.groups.iter().zip(measured) {
            // A thread has its usage with the last of its groups.
            counts.usage.extend(of.usage.iter().cloned());
            // A script has none.
            if counts.ledger.is_empty() {
                counts.ledger.clone_from(&of.ledger);
            } else {
                add_entries(&mut counts.ledger, &of.ledger);
            }
            let (plan, step, spread, counts) = (job.plan.clone(), job.step, job.spread, of);
            let name = group.name;
            groups.push(MeasuredGroup { name, plan, step, spread, counted, counts, outages });
        }
        let end = self.seen.early.map_or((Outcome::Completed, None), |(end, why)| (end, Some(why)));
        let (status, probed) = server;
        let (max_rss_bytes, changed) = (peak_resident_bytes(), self.seen.changed);
        let readings = Readings { client, max_rss_bytes, status, probed, changed };
        let lost = self.seen.lost;
        let step = MeasuredStep::new(end, counted, counts, readings);
        MeasuredStep { outages, groups, lost, ..step }
    }
}

/// A reading of a busy server's counters takes so long: then it is over when the window opens.
const LEAD: Duration = Duration::from_millis(300);

pub(crate) fn lead(probe: Option<&Probe>) -> Duration {
    LEAD + probe.map_or(Duration::ZERO, Probe::lead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_decided_in_the_warm_up_when_a_reading_takes_longer() {
        let seen = NOTICE + TICK;
        for (warmup_ms, lead_ms, expected) in
            [(10_000, 300, 370), (10_000, 9_000, 5_000), (600, 300, 300), (100, 300, 70)]
        {
            let [warmup, lead] = [warmup_ms, lead_ms].map(Duration::from_millis);
            let ahead = ahead_in(warmup, seen, lead);
            assert_eq!(ahead, Duration::from_millis(expected), "{warmup:?} {lead:?}");
            assert!(ahead <= warmup);
        }
    }

    #[test]
    fn timer_that_is_due_comes_before_events_that_wait() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let (told, mut events) = mpsc::unbounded_channel();
            (0..100).for_each(|n| told.send(n).expect("a receiver"));
            let mut due = pin!(tokio::time::sleep_until(Instant::now().into()));
            std::thread::sleep(Duration::from_millis(5));
            let mut taken = 0;
            loop {
                tokio::select! {
                    biased;
                    () = &mut due => break,
                    _ = next_event(&mut events) => taken += 1,
                }
            }
            assert_eq!(taken, 0);
        });
    }
}
