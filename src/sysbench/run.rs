//! `run`: runs the engine and prints its counts as sysbench's text.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::future::LocalBoxFuture;
use tokio::sync::watch;

use super::failure::{self, INIT_FAILED};
use super::output::{self, Counted, Level, Log};
use super::plan::plan;
use super::settings::{Ended, OutputVersion, Settings};
use crate::engine::{self, EndReason, MeasuredStep, Observer, QueueLength, StepContext};
use crate::error::{Error, Kind, Result};
use crate::judge;
use crate::mysql::{ServerLink, is_local};
use crate::observe::{Ns, RecordedInterval, host};
#[cfg(feature = "lua")]
use crate::plan::ScriptLog;
use crate::plan::{Plan, Script};
use crate::progress::{Progress, say};
use crate::run::before::assume_tables;
use crate::run::random;
use crate::run::steps::{Job, Steps};
use crate::stop::{Stop, locked};
use crate::summary::{Client, Outcome, Phase, Share, Store, Summary, VerdictKind, VerifyQuery};

struct RunEnd {
    outcome: Outcome,
    abandoned: u64,
    /// Who was in the way of the client.
    warning: Option<String>,
    error: Option<Error>,
}

const QUEUE_FULL: &str = "The event queue is full. This means the worker threads are unable to keep \
                          up with the specified event generation rate";
const SECOND: Ns = 1_000_000_000;
/// The exit status after a forced shutdown.
pub(super) const FORCED: Ended = 2;

/// Runs a test, or a script with the hooks that it has.
pub(super) async fn run(
    settings: &Settings,
    script: Option<(&Arc<Script>, &dyn ReportHooks)>,
    log: &Arc<Mutex<Log>>,
    stop: &Stop,
) -> Result<Ended> {
    if settings.values.on("mysql-dry-run") {
        say(
            "--mysql-dry-run measures nothing; loadgen calibrate measures what this host can generate",
        );
        return Ok(1);
    }
    let hooks = script.map(|(_, hooks)| hooks);
    let report = Report { settings, hooks, log, stop, seen: RefCell::default() };
    match report.measure(script.map(|(script, _)| script)).await {
        Ok(over) => {
            if let Some(hooks) = hooks {
                hooks.finish().await;
            }
            return Ok(report.end(over));
        }
        Err(error) if is_stop(&error) => return Err(error),
        Err(_) if report.seen.borrow().refused => locked(log).say(Level::Fatal, INIT_FAILED),
        Err(error) => say(error.render().trim_end()),
    }
    Ok(1)
}

fn is_stop(error: &Error) -> bool {
    matches!(error.kind(), Kind::Interrupted | Kind::Terminated)
}

/// Runs with the clients' connections only: the server sees what it sees of sysbench.
async fn run_unsaved(plan: &Plan, link: &ServerLink, report: &Report<'_>) -> Result<RunEnd> {
    let step = plan.steps().remove(0);
    let (spread, tables) = assume_tables(plan);
    let context = StepContext {
        elsewhere: None,
        later: None,
        plan,
        step: &step,
        spread,
        tables,
        link,
        server: None,
        probe: None,
        log: None,
        first_write: &|| Ok(()),
        window: watch::Sender::new(None),
        observer: Some(report),
    };
    let run = engine::run_step(&context, &mut None, &mut Progress::new(true, None)).await?;
    let warning = judge_unsaved(&run, &context);
    Ok(RunEnd { outcome: run.outcome, abandoned: run.unfinished(), warning, error: run.error })
}

/// Nobody asked which process of this host is the server: the use by other programs there is unknown.
fn judge_unsaved(run: &MeasuredStep, context: &StepContext<'_>) -> Option<String> {
    let StepContext { plan, step, spread, tables, link, .. } = *context;
    let host = host::facts(Path::new(host::ROOT));
    let (share, same_host) = (run.share(host.facts.cores, None), is_local(&link.target.address));
    let share = Share { other_load: share.other_load.filter(|_| !same_host), ..share };
    let busy = share.host_busy.unwrap_or(0.0) * 100.0;
    let client =
        Client { cores: host.cores_usable, same_host, share: Some(share), ..Client::default() };
    let judgement = judge::judge_step(&Summary {
        plan: engine::plan(plan, step, spread, tables, None, None),
        client,
        measured_s: run.counted.measured_s,
        totals: engine::totals(&run.counted, &run.counts),
        latency: engine::latency(&run.counted, &run.counts, plan.script.is_some()),
        ..Summary::default()
    });
    let verdict = judgement.verdict?;
    if verdict.kind == VerdictKind::SharedHost {
        return Some(format!(
            "this host was full: {busy:.0} % of its cores were busy; with --loadgen-out=DIR the warning says \
             whether other programs used them"
        ));
    }
    Some(verdict.finding()?.to_string())
}

/// Runs with a connection of loadgen's own and saves a summary.
async fn run_and_save(
    plan: &Plan,
    link: &ServerLink,
    store: &Store,
    report: &Report<'_>,
) -> Result<RunEnd> {
    let mut progress = Progress::new(true, None);
    let mut steps = Steps::new(Job::Sweep(plan), store, &mut progress)?;
    steps.observer = Some(report);
    steps.facts.verify = report.hooks.map_or_else(Vec::new, |hooks| hooks.queries().to_vec());
    let mut planned = plan.steps().into_iter();
    let ran = steps.run(link, |_| Ok(planned.next())).await;
    let Some(summary) = steps.summaries.pop() else {
        return ran.and(Err(Error::failed("the run left no summary")));
    };
    Ok(RunEnd {
        outcome: summary.outcome,
        abandoned: summary.latency.abandoned.unwrap_or(0),
        warning: summary.verdict.and_then(|verdict| Some(verdict.finding()?.to_string())),
        error: ran.err(),
    })
}

/// A script's own reports, which it writes later; false where it has none of the kind.
pub(super) trait ReportHooks {
    fn start(&self);
    fn intermediate(&self, part: &Counted, at_s: u64, queue: QueueLength) -> bool;
    fn checkpoint(&self, part: &Counted) -> bool;
    fn last(&self, part: &Counted) -> bool;

    /// Returns the queries that the script has for `loadgen verify`.
    fn queries(&self) -> &[VerifyQuery];

    /// Waits for the reports of the run, but the last one.
    fn finish(&self) -> LocalBoxFuture<'_, ()>;
}

struct Report<'a> {
    settings: &'a Settings,
    hooks: Option<&'a dyn ReportHooks>,
    log: &'a Arc<Mutex<Log>>,
    stop: &'a Stop,
    seen: RefCell<RunCounts>,
}

/// Counts since the last interval line, the last report and the start.
#[derive(Default)]
struct RunCounts {
    line: Counted,
    part: Counted,
    whole: Counted,
    /// True if no more is written and the status is 1.
    refused: bool,
    failed: bool,
}

impl Report<'_> {
    async fn measure(&self, script: Option<&Arc<Script>>) -> Result<RunEnd> {
        let settings = self.settings;
        let seed = if settings.seed > 0 { settings.seed.into() } else { random()? >> 11 };
        let plan = plan(settings, script, seed)?;
        let open = |dir| Store::open_named_by(settings.out_named_by, dir);
        let store = settings.out.as_deref().map(open).transpose()?;
        let link = ServerLink::to(settings.connect.clone(), self.stop)?;
        locked(self.log).notice(&output::options(settings));
        locked(self.log).notice(output::INITIALIZING);
        self.log_threads("started");
        match &store {
            None => run_unsaved(&plan, &link, self).await,
            Some(store) => run_and_save(&plan, &link, store, self).await,
        }
    }

    fn log_threads(&self, what: &str) {
        for thread in 0..self.settings.threads {
            locked(self.log).say(Level::Debug, &format!("Worker thread (#{thread}) {what}"));
        }
    }

    fn write_due(&self, seen: &mut RunCounts, at_s: u64, queue: QueueLength) {
        let Settings { output, rate, ref values, .. } = *self.settings;
        let every = values.int("report-interval") as u64;
        if every > 0 && at_s.is_multiple_of(every) {
            let line = seen.line.take();
            let is_own = self.hooks.is_some_and(|hooks| hooks.intermediate(&line, at_s, queue));
            let mut log = locked(self.log);
            if !is_own {
                let line = output::interval(self.settings, &line, log.has_driver);
                log.stamped(output, at_s, &line);
            }
            if !is_own && rate > 0 && output != OutputVersion::V0_5 {
                let QueueLength { waiting, busy } = queue;
                // As in sysbench, the line without a driver has no comma.
                let comma = if log.has_driver { "," } else { "" };
                let line = format!("queue length: {waiting}{comma} concurrency: {busy}");
                log.stamped(output, at_s, &line);
            }
        }
        if values.checkpoints().iter().any(|due| u64::from(*due) == at_s) {
            let part = seen.part.take();
            let is_own = self.hooks.is_some_and(|hooks| hooks.checkpoint(&part));
            let mut log = locked(self.log);
            log.stamped(output, at_s, "Checkpoint report:");
            if !is_own {
                let report = output::report(self.settings, &part, log.has_driver, None);
                log.notice(&report);
            }
        }
    }

    fn end(&self, run: RunEnd) -> Ended {
        let RunEnd { outcome, abandoned, warning, error } = run;
        let seen = self.seen.take();
        if seen.refused {
            return 1;
        }
        let Settings { events, threads, forced_shutdown, .. } = *self.settings;
        let completed = outcome == Outcome::Completed;
        let forced = abandoned > 0 && completed && forced_shutdown.is_some();
        let is_own = self.hooks.is_some_and(|hooks| hooks.last(&seen.part));
        let mut log = locked(self.log);
        if forced {
            log.say(Level::Fatal, "The --max-time limit has expired, forcing shutdown...");
        } else if completed {
            let of_events = events > 0 && seen.whole.counts.events >= events;
            let limit = if of_events { "Event" } else { "Time" };
            let line = format!("{limit} limit exceeded, exiting...");
            (0..threads).for_each(|_| log.say(Level::Info, &line));
            log.say(Level::Info, "Done.\n");
        }
        if self.settings.values.on("histogram") {
            log.histogram(&seen.part.counts.times);
        }
        if !is_own {
            let lost = forced.then_some(abandoned);
            let report = output::report(self.settings, &seen.part, log.has_driver, lost);
            log.notice(&report);
        }
        let wrong = seen.whole.counts.unexpected;
        if wrong > 0 {
            say(&format!(
                "{wrong} answers do not have the number of rows that complete tables give: \
                 --tables and --table-size must be those of prepare"
            ));
        }
        // Nobody was asked where nothing was: then no client was in the way.
        log.warning = warning.filter(|_| seen.whole.counts.answers() > 0);
        match error {
            _ if seen.failed => 1,
            Some(error) if error.kind() != Kind::Failed || !forced => {
                if !is_stop(&error) {
                    say(error.render().trim_end());
                }
                error.kind().exit_code()
            }
            _ if forced => FORCED,
            _ => 0,
        }
    }
}

impl Observer for Report<'_> {
    fn started(&self) {
        self.hooks.iter().for_each(|hooks| hooks.start());
        self.log_threads("initialized");
        let mut log = locked(self.log);
        log.notice("Threads started!\n");
        let warmup = self.settings.values.int("warmup-time");
        if warmup > 0 {
            log.notice(&format!("Warming up for {warmup} seconds...\n"));
        }
    }

    fn interval(&self, interval: &RecordedInterval, queue: QueueLength) {
        let Some(events) = interval.events.as_deref() else { return };
        let seen = &mut *self.seen.borrow_mut();
        // Ops that an early end leaves to the drain are in no report.
        if interval.phase != Phase::Measure || seen.refused {
            return;
        }
        for part in [&mut seen.line, &mut seen.part, &mut seen.whole] {
            part.counts.merge(events);
            part.to += interval.end - interval.start;
        }
        // One without a length ends no second.
        if interval.end > interval.start && seen.part.to.is_multiple_of(SECOND) {
            self.write_due(seen, seen.part.to / SECOND, queue);
        }
        if locked(self.log).broken.is_some() {
            // Nobody reads the output.
            self.stop.ask(Kind::Terminated);
        }
    }

    #[cfg(feature = "lua")]
    fn script_log(&self) -> Option<ScriptLog> {
        let log = Arc::clone(self.log);
        Some(Arc::new(move |line| locked(&log).take(line)))
    }

    fn end(&self, reason: &EndReason) {
        let (settings, seen) = (self.settings, &mut *self.seen.borrow_mut());
        let EndReason::Client(action, failure) = reason else {
            // Threads report it until the run has ended.
            if !std::mem::replace(&mut seen.refused, true) {
                locked(self.log).say(Level::Fatal, QUEUE_FULL);
            }
            return;
        };
        // A failure after the run does not suppress the report.
        seen.failed = true;
        seen.refused |= !action.is_late();
        locked(self.log).fatal(&failure::lines(settings, action, failure));
    }
}
