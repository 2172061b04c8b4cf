//! The step from the outside: opens, says go, reads the server's counters at both edges of the
//! window, ends early when it must, and puts together what the threads counted.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::Opts;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use super::Run;
use super::crew::{broken, engine_threads, join, spawn};
use super::display::Display;
use super::edge::{self, Edge, Own};
use super::errors::abort_error;
use super::gather;
use super::job::{Job, Tables};
use super::opening::Doors;
use super::outages::{self, Watch};
use super::pace::NEVER;
use super::spans::{quiet, report_every, window_end};
use super::tally::Tally;
use super::thread::{self, End, Go, NOTICE, News, Order, Window};
use crate::error::{Error, Result};
use crate::mysql::session::Session;
use crate::mysql::target::Target;
use crate::observe::cores::Cores;
use crate::observe::host;
use crate::observe::interval_log::IntervalLog;
use crate::observe::probe::Probe;
use crate::observe::recorder::{Ns, Phases};
use crate::observe::timeline::{Timeline, seconds};
use crate::plan::{Plan, Spread, Step, StopAt, limits};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::identity::no_result;
use crate::summary::{Outcome, Server, SettingChange};

/// Where steps run: the same for all steps of a sweep.
pub struct Stage<'a> {
    /// What is run.
    pub plan: &'a Plan,
    /// How clients meet the tables.
    pub spread: Spread,
    /// The tables.
    pub tables: Tables,
    /// [`Target::opts`] of it.
    pub opts: Opts,
    /// The server.
    pub target: &'a Target,
    /// It before the step, where it is looked at again.
    pub server: Option<&'a Server>,
    /// How to look at its process and host, where that can be done.
    pub probe: Option<Probe>,
    /// Asks for an early end.
    pub stop: &'a Stop,
    /// Takes the histograms of the timeline.
    pub log: Option<Arc<Mutex<IntervalLog>>>,
    /// Is called when all clients are connected, before the first statement of any.
    pub first_write: &'a dyn Fn() -> Result<()>,
    /// Is told the instant of the window's start as soon as it is known.
    pub window: watch::Sender<Option<Instant>>,
}

/// Runs one step. `control` reads the server's counters; it is dropped when it hangs.
///
/// # Errors
/// Nothing was measured: connections could not be opened, or this host lacks something. What
/// ends a step later is in [`Run::error`], beside what was measured.
pub async fn run_step(
    stage: &Stage<'_>,
    step: &Step,
    control: &mut Option<Session>,
    progress: &mut Progress,
) -> Result<Run> {
    let job = Arc::new(Job::new(stage.plan, stage.spread, stage.tables, step));
    let threads = engine_threads(stage.plan, step.clients);
    let warmup = stage.plan.warmup.as_nanos() as Ns;
    // An open loop's window begins when the backlog of its warm-up is gone.
    let window_start = if step.rate.is_some() && warmup > 0 { NEVER } else { warmup };
    let phases = Phases {
        window_start,
        window_end: window_end(stage.plan, window_start),
        by_issue: matches!(stage.plan.stop, StopAt::Ops(_)),
        interval: report_every(stage.plan.interval),
    };
    let (news_out, news) = mpsc::unbounded_channel();
    let (go, go_in) = watch::channel(Go::Wait);
    let (tick, ticks) = watch::channel(());
    let ticker = tokio::spawn(async move {
        loop {
            tokio::time::sleep(thread::TICK).await;
            tick.send_replace(());
        }
    });
    let outages = Arc::new(Mutex::new(Watch::new(threads)));
    let order = Order {
        ticks,
        doors: Doors {
            opts: stage.opts.clone(),
            target: Arc::new(stage.target.clone()),
            logins: Arc::new(Semaphore::new(limits::CONNECTS_AT_ONCE)),
            reopened: Arc::new(Notify::new()),
        },
        phases,
        outages: Arc::clone(&outages),
        opening: Instant::now(),
        go: go_in,
        window: Arc::new(Window::new(phases.window_start, phases.window_end)),
        threads,
        warmup,
        judged: warmup.saturating_sub(ahead(stage).min(warmup / 2)),
        news: news_out,
        job: Arc::clone(&job),
    };
    let entry = stage.plan.interval.as_nanos() as Ns;
    let mut timeline = Timeline::new(threads, job.timed_statements(), entry)?;
    timeline.log.clone_from(&stage.log);
    let mut guard = JoinSet::new();
    if let Some(server) = stage.server {
        guard.spawn(edge::guard(order.doors.clone(), server.clone()));
    }
    let conductor = Conductor {
        stage,
        guard,
        changed: Vec::new(),
        phases,
        threads,
        news,
        go: go.clone(),
        window: Arc::clone(&order.window),
        silence: stage.plan.policy.patience() + quiet(step.rate),
        tally: Tally::default(),
        outages,
        warm: 0,
        warming: false,
        timeline,
        display: Display::new(stage.plan, step),
        ends: Vec::new(),
        early: None,
        drained: false,
    };
    let handles = spawn(&order, threads, step.clients)?;
    // The threads' own ends of the channel are what keeps it open from here on.
    drop(order);
    let run = conductor.conduct(control, progress).await;
    // Those that still open connections or wait for the start go, too.
    go.send_replace(Go::Cancel);
    join(handles).await;
    ticker.abort();
    run
}

/// How long before its start the window of an open loop is decided: the threads must hear of
/// it, and the server's counters are read before it.
fn ahead(stage: &Stage<'_>) -> Ns {
    (NOTICE + thread::TICK + edge::lead(stage.probe.as_ref())).as_nanos() as Ns
}

/// Why and when a step ends before its time.
struct Early {
    outcome: Outcome,
    error: Error,
}

struct Conductor<'a> {
    stage: &'a Stage<'a>,
    /// Ends with what it found; aborted with the conductor.
    guard: JoinSet<Vec<SettingChange>>,
    changed: Vec<SettingChange>,
    phases: Phases,
    threads: usize,
    news: mpsc::UnboundedReceiver<News>,
    go: watch::Sender<Go>,
    window: Arc<Window>,
    /// A server that has not answered anybody for so long hangs.
    silence: Duration,
    tally: Tally,
    outages: Arc<Mutex<Watch>>,
    /// Threads whose open loop may begin its window.
    warm: usize,
    /// These are waited for.
    warming: bool,
    timeline: Timeline,
    display: Display,
    ends: Vec<End>,
    early: Option<Early>,
    /// The window is over, and what it needs of the server is read.
    drained: bool,
}

impl Conductor<'_> {
    async fn conduct(
        mut self,
        control: &mut Option<Session>,
        progress: &mut Progress,
    ) -> Result<Run> {
        self.open(progress).await?;
        (self.stage.first_write)()?;
        let probe = self.stage.probe.clone();
        // Without a warm-up the window opens with the first op: the counters are read before it,
        // so that they count every one. With one, they are read in its last moments: no reading
        // disturbs the window.
        let before = match self.phases.window_start {
            0 => Some(self.edge(control).await),
            _ => None,
        };
        // Ahead of now, so that every thread is there when the clock starts.
        let origin = Instant::now() + Duration::from_millis(5);
        let started_at = jiff::Timestamp::now();
        if let Some(log) = &self.stage.log {
            log.lock().unwrap_or_else(PoisonError::into_inner).origin(started_at);
        }
        self.go.send_replace(Go::Start(origin));
        self.warm_up(origin, progress).await?;
        let warmup = Duration::from_nanos(self.phases.window_start);
        let window_start = origin + warmup;
        self.stage.window.send_replace(Some(window_start));
        let lead = edge::lead(probe.as_ref()).min(warmup / 2);
        self.follow(Some(origin + warmup.saturating_sub(lead)), origin, progress).await?;
        let reading = before.is_none().then(|| tokio::spawn(edge::read(control.take(), probe)));
        if self.early.is_none() {
            self.follow(Some(window_start), origin, progress).await?;
        }
        let (own_first, cores_first) = (Own::now(), self.cores());
        let first = match (before, reading) {
            (Some(edge), _) => edge,
            (None, Some(reading)) => keep(reading.await.unwrap_or_default(), control),
            (None, None) => Edge::default(),
        };
        loop {
            let end = self.window.end();
            let edge = (end != Ns::MAX).then(|| origin + Duration::from_nanos(end));
            self.follow(edge, origin, progress).await?;
            // An early end moves the edge: then it is waited for once more. Without an edge
            // (--ops) the window ends with the last thread.
            let moved = end != self.window.end();
            if self.all_done() || (edge.is_some() && !moved) {
                break;
            }
        }
        let (own_last, cores_last) = (Own::now(), self.cores());
        let mut last = self.edge(control).await;
        last.read_again(self.stage.target, &self.stage.opts).await;
        // A signal now ends the sweep, not this step: its window is whole.
        self.drained = true;
        while !self.all_done() {
            self.follow(None, origin, progress).await?;
        }
        if self.early.is_none() {
            let many = self.tally.judge(self.stage.plan.policy, true);
            self.early = many.map(|error| Early { outcome: Outcome::Aborted, error });
        }
        progress.clear();
        Ok(Run {
            user: own_last.cost.user.saturating_sub(own_first.cost.user),
            sys: own_last.cost.sys.saturating_sub(own_first.cost.sys),
            traffic: own_last.traffic_since(&own_first),
            cores: cores_last.since(&cores_first),
            status: edge::status(&first, &last, window_start),
            probed: edge::probed(self.stage.probe.as_ref(), &first, &last, window_start),
            ..self.run(started_at)
        })
    }

    /// The warm-up of an open loop: decides when the window begins. Its backlog is drained for as
    /// long as the warm-up took at most.
    async fn warm_up(&mut self, origin: Instant, progress: &mut Progress) -> Result<()> {
        if self.phases.window_start != NEVER {
            return Ok(());
        }
        let warmup = self.stage.plan.warmup;
        let ahead = Duration::from_nanos(ahead(self.stage));
        self.warming = true;
        self.follow(Some(origin + (warmup * 2).saturating_sub(ahead)), origin, progress).await?;
        self.warming = false;
        self.phases.window_start = if self.early.is_some() {
            // There is none.
            self.window.end()
        } else {
            let start = (origin.elapsed() + ahead).max(warmup).as_nanos() as Ns;
            self.phases.window_end = window_end(self.stage.plan, start);
            self.window.set(start, self.phases.window_end);
            start
        };
        self.display.window(self.phases.window_start, self.phases.window_end);
        Ok(())
    }

    fn all_done(&self) -> bool {
        self.ends.len() >= self.threads
    }

    /// Waits until all clients are connected and prepared.
    async fn open(&mut self, progress: &mut Progress) -> Result<()> {
        let (mut opened, mut ready, mut waiting) = (0_u32, 0, false);
        while ready < self.threads {
            let news = tokio::select! {
                news = self.news.recv() => news,
                kind = self.stage.stop.wait() => {
                    return Err(Error::new(kind, "interrupted while opening connections"));
                }
            };
            match news {
                Some(News::Opened) => {
                    opened += 1;
                    progress.update(|| self.display.opening(opened));
                }
                Some(News::Ready) => ready += 1,
                Some(News::Waiting(error)) => {
                    if !std::mem::replace(&mut waiting, true) {
                        progress.note(&format!("waiting for the server: {error}"));
                    }
                }
                Some(News::NotOpened(error)) => {
                    return Err(error.context(format!("after {opened} connections")));
                }
                Some(News::Broken(error)) => return Err(error),
                Some(News::Warm | News::Interval(..) | News::Abort { .. } | News::Done(..)) => {}
                None => return Err(broken()),
            }
        }
        progress.restart();
        Ok(())
    }

    /// Takes news until an instant (or, without one, until the next thread is done).
    async fn follow(
        &mut self,
        until: Option<Instant>,
        origin: Instant,
        progress: &mut Progress,
    ) -> Result<()> {
        let done = self.ends.len();
        let mut silence = Instant::now() + self.silence;
        while !self.all_done() && (until.is_some() || self.ends.len() == done) {
            let edge = until.unwrap_or_else(far);
            let interruptible = self.early.is_none() && !self.drained;
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(edge.into()), if until.is_some() => break,
                news = self.news.recv() => {
                    let Some(news) = news else { return Err(broken()) };
                    if self.take(news, origin, progress)? {
                        silence = Instant::now() + self.silence;
                    }
                    // An early end may lie before the edge that is waited for.
                    if (interruptible && self.early.is_some())
                        || (self.warming && self.warm >= self.threads)
                    {
                        break;
                    }
                }
                kind = self.stage.stop.wait(), if interruptible => {
                    let error = Error::new(kind, "interrupted");
                    self.end_early(Outcome::Interrupted, error, origin);
                    break;
                }
                Some(changed) = self.guard.join_next(), if interruptible => {
                    self.changed = changed.map_err(|_| broken())?;
                    if let Some(error) = no_result(&self.changed) {
                        self.end_early(Outcome::ServerChanged, error, origin);
                    }
                    break;
                }
                () = tokio::time::sleep_until(silence.into()), if interruptible => {
                    let error = Error::failed(format!(
                        "{} has not answered any client for {:?}",
                        self.stage.target.address, self.silence
                    ))
                    .hint("it is stopped or out of reach; --op-timeout gives ops up earlier");
                    self.end_early(Outcome::Aborted, error, origin);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Takes one piece of news; whether it shows that the server answers.
    fn take(&mut self, news: News, origin: Instant, progress: &mut Progress) -> Result<bool> {
        match news {
            News::Interval(thread, interval) => {
                let alive = interval.ops + interval.errors > 0;
                self.tally.add(interval.ops, interval.errors);
                for complete in self.timeline.add(thread, *interval) {
                    self.display.add(&complete);
                }
                progress.update(|| self.display.line());
                if let Some(error) = self.tally.judge(self.stage.plan.policy, false) {
                    self.end_early(Outcome::Aborted, error, origin);
                }
                return Ok(alive);
            }
            News::Abort { client, error } => {
                let error = abort_error(client, &error, self.stage.plan.workload.built_in);
                self.end_early(Outcome::Aborted, error, origin);
            }
            News::Done(thread, end) => {
                self.ends.push(*end);
                for complete in self.timeline.thread_done(thread) {
                    self.display.add(&complete);
                }
            }
            News::Warm => self.warm += 1,
            News::Broken(error) => return Err(error),
            News::Opened | News::Waiting(_) | News::NotOpened(_) | News::Ready => {}
        }
        Ok(false)
    }

    /// Moves the window's end to just ahead of now; the first reason stays.
    fn end_early(&mut self, outcome: Outcome, error: Error, origin: Instant) {
        if self.early.is_some() {
            return;
        }
        let now = origin.elapsed() + NOTICE;
        let end = (now.as_nanos() as Ns).min(self.window.end());
        self.window.cut(end);
        self.early = Some(Early { outcome, error });
    }

    /// Who has used this host's cores, and a server's process on it.
    fn cores(&self) -> Cores {
        let probe = self.stage.probe.as_ref();
        let (beside, server) = (probe.is_some_and(Probe::is_here), probe.and_then(Probe::pid_here));
        let recorded = host::recorded();
        Cores::read(recorded.as_deref().unwrap_or(Path::new(host::ROOT)), beside, server)
    }

    /// What is read of the server, now.
    async fn edge(&self, control: &mut Option<Session>) -> Edge {
        keep(edge::read(control.take(), self.stage.probe.clone()).await, control)
    }

    /// What the threads counted; what was read at the edges is not in it yet.
    fn run(mut self, started_at: jiff::Timestamp) -> Run {
        let ends = std::mem::take(&mut self.ends);
        let window_end = match self.window.end() {
            // With --ops the window ends with the last answer.
            Ns::MAX => ends.iter().map(|e| e.ended).max().unwrap_or(0),
            end => end,
        };
        let early = self.early.take();
        let found = self.outages.lock().map(|mut watch| watch.finish(window_end));
        let outages = found.unwrap_or_default();
        let outages = outages.iter().map(|o| outages::told(o, &self.timeline.entries)).collect();
        Run {
            outcome: early.as_ref().map_or(Outcome::Completed, |e| e.outcome),
            error: early.map(|e| e.error),
            measured_s: seconds(window_end.saturating_sub(self.phases.window_start)),
            outages,
            changed: self.changed,
            ..gather::run(ends, self.stage.tables, self.timeline, started_at)
        }
    }
}

/// Puts the session of a reading back.
fn keep((session, edge): (Option<Session>, Edge), control: &mut Option<Session>) -> Edge {
    *control = session;
    edge
}

fn far() -> Instant {
    Instant::now() + Duration::from_hours(24 * 365)
}
