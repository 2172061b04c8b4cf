//! A step from the outside: opens, says go, reads the server's counters at both edges of the
//! window, ends early when it must, and puts together what the threads counted.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mysql_async::Opts;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Run;
use super::connect::Connector;
use super::errors::abort_error;
use super::job::{Job, Tables, queues};
use super::live_line::LiveLine;
use super::outages::OutageWatch;
use super::pacing::NEVER;
use super::readings::{self, ServerReading};
use super::state::{Go, SharedWindow, StepSetup, ThreadCounts, ThreadEvent};
use super::thread::{self, NOTICE, TICK};
use crate::error::{Error, Result};
use crate::judge::no_result;
use crate::mysql::options::ConnectOptions;
use crate::mysql::session::Session;
use crate::observe::probe::Probe;
use crate::observe::process::{ClientReading, ClientUse};
use crate::observe::recorder::{Ns, Phases, RecordedInterval};
use crate::observe::timeline::{IntervalLog, Timeline, seconds};
use crate::plan::{Plan, Spread, Step, StopAt, limits};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::{Outcome, Probed, Server, SettingChange, Status, in_queues};

/// How often threads report at least, whatever the timeline's interval: the live line and the
/// watch over a silent server follow it.
const LOOK: Duration = Duration::from_secs(1);

/// Where steps run: the same for all steps of a sweep.
pub struct StepContext<'a> {
    pub plan: &'a Plan,
    pub spread: Spread,
    pub tables: Tables,
    /// [`ConnectOptions::opts`] of it.
    pub opts: Opts,
    pub target: &'a ConnectOptions,
    pub server: Option<&'a Server>,
    pub probe: Option<Probe>,
    pub stop: &'a Stop,
    pub log: Option<Arc<Mutex<IntervalLog>>>,
    /// Is called when all clients are connected, before the first statement of any.
    pub first_write: &'a dyn Fn() -> Result<()>,
    /// Is told the instant of the window's start as soon as it is known.
    pub window: watch::Sender<Option<Instant>>,
}

/// Runs one step. `control` reads the server's counters; it is dropped when it hangs.
///
/// An error says that nothing was measured; what ends a step later is in [`Run::error`].
pub async fn run_step(
    context: &StepContext<'_>,
    step: &Step,
    control: &mut Option<Session>,
    progress: &mut Progress,
) -> Result<Run> {
    let (go, go_in) = watch::channel(Go::Wait);
    let (tick, ticks) = watch::channel(());
    let ticker = tokio::spawn(async move {
        loop {
            tokio::time::sleep(TICK).await;
            tick.send_replace(());
        }
    });
    let (told, events) = mpsc::unbounded_channel();
    let setup = Arc::new(setup(context, step, go_in, ticks, told));
    let handles = spawn(&setup, step.clients)?;
    let run = Running::new(context, step, setup, events, progress).run(control, &go).await;
    // Those that still open connections or wait for the start go, too.
    go.send_replace(Go::Cancel);
    join(handles).await;
    ticker.abort();
    run
}

pub(crate) fn engine_threads(plan: &Plan, clients: u32) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = plan.engine_threads.map_or(cores, |n| n as usize);
    wanted.clamp(1, clients.max(1) as usize)
}

/// Says in how many queues the arrivals of an open loop come, where they are several: its response
/// times are those of that many queues, each with its part of the clients.
pub(crate) fn queues_told(plan: &Plan, spread: Spread, tables: u32) -> Option<String> {
    if plan.rates.is_empty() {
        return None;
    }
    let of = |clients: &u32| queues(engine_threads(plan, *clients), spread, tables, *clients);
    let all: Vec<u32> = plan.clients.iter().map(of).collect();
    let (least, most) = all.iter().min().zip(all.iter().max()).filter(|(_, most)| **most > 1)?;
    let range = if least < most { format!("{least} to ") } else { String::new() };
    Some(format!("open loop: arrivals in {range}{}", in_queues(*most, spread)))
}

fn window_end(plan: &Plan, start: Ns) -> Ns {
    match plan.stop {
        StopAt::Time(time) => start.saturating_add(time.as_nanos() as Ns),
        StopAt::Ops(_) => NEVER,
    }
}

/// How long before its start the window of an open loop is decided: the threads must hear of
/// it, and the server's counters are read before it.
fn ahead(context: &StepContext<'_>) -> Duration {
    NOTICE + TICK + readings::lead(context.probe.as_ref())
}

fn setup(
    context: &StepContext<'_>,
    step: &Step,
    go: watch::Receiver<Go>,
    ticks: watch::Receiver<()>,
    events: mpsc::UnboundedSender<ThreadEvent>,
) -> StepSetup {
    let plan = context.plan;
    let threads = engine_threads(plan, step.clients);
    let warmup = plan.warmup.as_nanos() as Ns;
    // An open loop's window begins when the backlog of its warm-up is gone.
    let window_start = if step.rate.is_some() && warmup > 0 { NEVER } else { warmup };
    let window_end = window_end(plan, window_start);
    let (interval, look) = (plan.interval.as_nanos() as Ns, LOOK.as_nanos() as Ns);
    let pause = plan.think.map_or(0, |think| think.as_nanos() as Ns);
    StepSetup {
        job: Job::new(plan, context.spread, context.tables, step),
        connector: Connector::new(context.target, &context.opts),
        phases: Phases {
            window_start,
            window_end,
            by_issue: matches!(plan.stop, StopAt::Ops(_)),
            // An even part of a longer one.
            interval: interval / interval.div_ceil(look).max(1),
        },
        outages: Mutex::new(OutageWatch::new(threads, pause)),
        opening: Instant::now(),
        go,
        ticks,
        window: SharedWindow::new(window_start, window_end),
        threads,
        warmup,
        judged: warmup.saturating_sub((ahead(context).as_nanos() as Ns).min(warmup / 2)),
        events,
    }
}

fn spawn(setup: &Arc<StepSetup>, clients: u32) -> Result<Vec<JoinHandle<()>>> {
    let start = |index: usize| {
        let setup = Arc::clone(setup);
        let share: Vec<u32> = (index as u32..clients).step_by(setup.threads).collect();
        let run = move || {
            let run = AssertUnwindSafe(|| thread::run(&setup, index, &share));
            if catch_unwind(run).is_err() {
                // Else the step would wait for its end.
                setup.tell(ThreadEvent::Broken(broken()));
            }
        };
        std::thread::Builder::new().name(format!("engine-{index}")).spawn(run).map_err(|e| {
            Error::failed(format!("cannot start engine thread {index}: {e}"))
                .hint("raise the limit on processes (ulimit -u), or use --engine-threads 1")
        })
    };
    (0..setup.threads).map(start).collect()
}

fn broken() -> Error {
    Error::failed("an engine thread ended without a word; please report this")
}

async fn join(handles: Vec<JoinHandle<()>>) {
    let deadline = Instant::now() + limits::COURTESY;
    for handle in handles {
        while !handle.is_finished() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if handle.is_finished() {
            let _ = handle.join();
        }
    }
}

struct Running<'a> {
    context: &'a StepContext<'a>,
    setup: Arc<StepSetup>,
    /// Ends with what it found; aborted with the step.
    guard: JoinSet<Vec<SettingChange>>,
    changed: Vec<SettingChange>,
    events: mpsc::UnboundedReceiver<ThreadEvent>,
    progress: &'a mut Progress,
    origin: Instant,
    window_start: Ns,
    /// A server that has not answered anybody for so long hangs.
    silence: Duration,
    opened: u32,
    ready: usize,
    waiting: bool,
    /// Threads whose open loop may begin its window.
    warm: usize,
    warming: bool,
    so_far: (u64, u64),
    timeline: Timeline,
    line: LiveLine,
    done: Vec<ThreadCounts>,
    early: Option<(Outcome, Error)>,
    /// The window is over, and what it needs of the server is read.
    drained: bool,
}

impl<'a> Running<'a> {
    fn new(
        context: &'a StepContext<'a>,
        step: &Step,
        setup: Arc<StepSetup>,
        events: mpsc::UnboundedReceiver<ThreadEvent>,
        progress: &'a mut Progress,
    ) -> Running<'a> {
        let plan = context.plan;
        let entry = plan.interval.as_nanos() as Ns;
        let mut timeline = Timeline::new(setup.threads, setup.job.timed_statements(), entry);
        timeline.log.clone_from(&context.log);
        let mut guard = JoinSet::new();
        if let Some(server) = context.server {
            guard.spawn(readings::guard(Arc::clone(&setup), server.clone()));
        }
        // An open loop may have nothing to do: a gap of 30 means is one of 10 billions. A rate may be so
        // low that there is no such time.
        let idle = Duration::try_from_secs_f64(step.rate.map_or(0.0, |rate| 30.0 / rate));
        Running {
            context,
            guard,
            changed: Vec::new(),
            events,
            progress,
            origin: setup.opening,
            window_start: setup.phases.window_start,
            silence: plan.policy.patience()
                + idle.unwrap_or(limits::PHASE_MAX)
                + plan.think.unwrap_or(Duration::ZERO),
            opened: 0,
            ready: 0,
            waiting: false,
            warm: 0,
            warming: false,
            so_far: (0, 0),
            timeline,
            line: LiveLine::new(plan, step),
            done: Vec::new(),
            early: None,
            drained: false,
            setup,
        }
    }

    async fn run(mut self, control: &mut Option<Session>, go: &watch::Sender<Go>) -> Result<Run> {
        self.open().await?;
        (self.context.first_write)()?;
        let context = self.context;
        let probe = context.probe.as_ref();
        // Without a warm-up the window opens with the first op: the counters are read before it,
        // so that they count every one. With one, they are read in its last moments: no reading
        // disturbs the window.
        let before = match self.window_start {
            0 => Some(ServerReading::take(control, probe).await),
            _ => None,
        };
        // Ahead of now, so that every thread is there when the clock starts.
        self.origin = Instant::now() + Duration::from_millis(5);
        let started_at = jiff::Timestamp::now();
        if let Some(log) = &self.context.log {
            log.lock().unwrap_or_else(PoisonError::into_inner).origin(started_at);
        }
        go.send_replace(Go::Start(self.origin));
        self.warm_up().await?;
        let warmup = Duration::from_nanos(self.window_start);
        let window_start = self.origin + warmup;
        self.context.window.send_replace(Some(window_start));
        let lead = readings::lead(probe).min(warmup / 2);
        self.follow(Some(self.origin + warmup.saturating_sub(lead))).await?;
        let reading = async {
            match before {
                Some(before) => before,
                None => ServerReading::take(control, probe).await,
            }
        };
        let (first, own_first) = tokio::join!(reading, self.window_starts(window_start));
        let own_first = own_first?;
        self.window_ends().await?;
        let own = ClientReading::now(probe).since(&own_first);
        let mut last = ServerReading::take(control, probe).await;
        last.take_again(self.context.target, &self.context.opts).await;
        // A signal now ends the sweep, not this step: its window is whole.
        self.drained = true;
        while !self.all_done() {
            self.follow(None).await?;
        }
        self.judge(true);
        self.progress.clear();
        let status = last.status_since(&first, window_start);
        let probed = last.probed_since(&first, probe, window_start);
        Ok(self.into_run(started_at, own, status, probed))
    }

    async fn open(&mut self) -> Result<()> {
        while self.ready < self.setup.threads {
            tokio::select! {
                event = self.events.recv() => drop(self.take(event)?),
                kind = self.context.stop.wait() => {
                    return Err(Error::new(kind, "interrupted while opening connections"));
                }
            }
        }
        self.progress.restart();
        Ok(())
    }

    /// Decides when the window of an open loop begins: its backlog is drained for as long as the
    /// warm-up took at most.
    async fn warm_up(&mut self) -> Result<()> {
        if self.window_start != NEVER {
            return Ok(());
        }
        let (plan, ahead) = (self.context.plan, ahead(self.context));
        self.warming = true;
        self.follow(Some(self.origin + (plan.warmup * 2).saturating_sub(ahead))).await?;
        self.warming = false;
        let window = &self.setup.window;
        self.window_start = window.end();
        if self.early.is_none() {
            let start = (self.origin.elapsed() + ahead).max(plan.warmup).as_nanos() as Ns;
            window.set(start, window_end(plan, start));
            self.window_start = start;
        }
        self.line.window(self.window_start, window.end());
        Ok(())
    }

    /// Waits for the window's start; returns what this process did until then.
    async fn window_starts(&mut self, start: Instant) -> Result<ClientReading> {
        if self.early.is_none() {
            self.follow(Some(start)).await?;
        }
        Ok(ClientReading::now(self.context.probe.as_ref()))
    }

    async fn window_ends(&mut self) -> Result<()> {
        loop {
            let end = self.setup.window.end();
            let edge = (end != NEVER).then(|| self.origin + Duration::from_nanos(end));
            self.follow(edge).await?;
            // An early end moves the edge: then it is waited for once more. Without an edge
            // (--ops) the window ends with the last thread.
            let moved = end != self.setup.window.end();
            if self.all_done() || (edge.is_some() && !moved) {
                return Ok(());
            }
        }
    }

    fn all_done(&self) -> bool {
        self.done.len() >= self.setup.threads
    }

    /// Takes events until an instant (or, without one, until the next thread is done).
    async fn follow(&mut self, until: Option<Instant>) -> Result<()> {
        let done = self.done.len();
        let mut silence = Instant::now() + self.silence;
        while !self.all_done() && (until.is_some() || self.done.len() == done) {
            let interruptible = self.early.is_none() && !self.drained;
            let edge = async {
                match until {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = edge => break,
                event = self.events.recv() => {
                    if self.take(event)? {
                        silence = Instant::now() + self.silence;
                    }
                    // An early end may lie before the edge that is waited for.
                    if (interruptible && self.early.is_some())
                        || (self.warming && self.warm >= self.setup.threads)
                    {
                        break;
                    }
                }
                kind = self.context.stop.wait(), if interruptible => {
                    self.end_early(Outcome::Interrupted, Error::new(kind, "interrupted"));
                    break;
                }
                Some(changed) = self.guard.join_next(), if interruptible => {
                    self.changed = changed.map_err(|_| broken())?;
                    if let Some(error) = no_result(&self.changed) {
                        self.end_early(Outcome::ServerChanged, error);
                    }
                    break;
                }
                () = tokio::time::sleep_until(silence.into()), if interruptible => {
                    let (address, silence) = (&self.context.target.address, self.silence);
                    let text = format!("{address} has not answered any client for {silence:?}");
                    self.end_early(Outcome::Aborted, Error::failed(text).hint(
                        "it is stopped or out of reach; --op-timeout gives ops up earlier",
                    ));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Takes one event; says whether it shows that the server answers.
    fn take(&mut self, event: Option<ThreadEvent>) -> Result<bool> {
        match event.ok_or_else(broken)? {
            ThreadEvent::Opened => {
                self.opened += 1;
                self.progress.update(|| self.line.opening(self.opened));
            }
            ThreadEvent::Ready => self.ready += 1,
            ThreadEvent::Waiting(error) => {
                if !std::mem::replace(&mut self.waiting, true) {
                    self.progress.note(&format!("waiting for the server: {error}"));
                }
            }
            ThreadEvent::NotOpened(error) => {
                return Err(error.context(format!("after {} connections", self.opened)));
            }
            ThreadEvent::Interval(thread, interval) => {
                let (ops, errors) = (interval.ops, interval.errors);
                self.so_far = (self.so_far.0 + ops, self.so_far.1 + errors);
                let complete = self.timeline.add(thread, *interval);
                self.show(&complete);
                self.progress.update(|| self.line.line());
                self.judge(false);
                return Ok(ops + errors > 0);
            }
            ThreadEvent::Abort(client, error) => {
                let error = abort_error(client, &error, self.context.plan.workload.built_in);
                self.end_early(Outcome::Aborted, error);
            }
            ThreadEvent::Done(thread, counts) => {
                self.done.push(*counts);
                let complete = self.timeline.thread_done(thread);
                self.show(&complete);
            }
            ThreadEvent::Warm => self.warm += 1,
            ThreadEvent::Broken(error) => return Err(error),
        }
        Ok(false)
    }

    fn show(&mut self, intervals: &[RecordedInterval]) {
        for interval in intervals {
            self.line.add(interval);
        }
    }

    /// Ends a step with more errors than `--max-errors` allows; `last` where no more follow.
    fn judge(&mut self, last: bool) {
        let (ops, errors) = self.so_far;
        let max = self.context.plan.policy.errors_max;
        if let Some(max) = max.filter(|max| max.exceeded(errors, ops, last)) {
            let all = ops + errors;
            let text = format!("{errors} of {all} ops failed, and --max-errors is {max}");
            let error = Error::failed(text).hint("the summary's totals.errors has them by code");
            self.end_early(Outcome::Aborted, error);
        }
    }

    /// Moves the window's end to just ahead of now; the first reason stays.
    fn end_early(&mut self, outcome: Outcome, error: Error) {
        if self.early.is_none() {
            if !self.all_done() {
                let now = (self.origin.elapsed() + NOTICE).as_nanos() as Ns;
                self.setup.window.cut(now.min(self.setup.window.end()));
            }
            self.early = Some((outcome, error));
        }
    }

    fn into_run(
        mut self,
        started_at: jiff::Timestamp,
        client: ClientUse,
        status: Option<Status>,
        probed: Option<Probed>,
    ) -> Run {
        let mut done = std::mem::take(&mut self.done).into_iter();
        let mut counts = done.next().expect("a step has threads");
        done.for_each(|other| counts.merge(other));
        let window = &self.setup.window;
        // With --ops the window ends with the last answer.
        let window_end = if window.end() == NEVER { counts.ended } else { window.end() };
        let mut watch = self.setup.outages.lock().expect("nobody panics with it");
        let outages = watch.finish(window_end, &self.timeline.entries);
        drop(watch);
        let (outcome, error) = match self.early.take() {
            Some((outcome, error)) => (outcome, Some(error)),
            None => (Outcome::Completed, None),
        };
        counts.accounts.truncate(self.context.tables.count as usize);
        Run {
            outcome,
            error,
            started_at,
            measured_s: seconds(window_end.saturating_sub(self.window_start)),
            outages,
            timeline: self.timeline,
            ledger: counts.accounts.iter().map(|account| account.entry.clone()).collect(),
            errors: counts.failures.take_errors(),
            counts,
            client,
            status,
            changed: self.changed,
            probed,
        }
    }
}
