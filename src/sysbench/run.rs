//! `run`: the engine does the work, and what it counts becomes sysbench's text as it comes.

use std::cell::RefCell;
use std::sync::Mutex;

use tokio::sync::watch;

use super::failure;
use super::output::{self, Level, Log, Span};
use super::plan::plan;
use super::settings::{Ended, OutputVersion, Settings};
use crate::engine::{self, During, Observer, Refused, StepContext};
use crate::error::{Error, Kind, Result};
use crate::mysql::ServerLink;
use crate::observe::{EventCounts, Ns, RecordedInterval, seconds};
use crate::plan::Plan;
use crate::progress::{Progress, say};
use crate::run::before::unseen;
use crate::run::random;
use crate::run::steps::{Job, Steps};
use crate::stop::{Stop, locked};
use crate::summary::{Outcome, Phase, Store};

/// How a run ended: as its summary says, with what was given up and why it ended early.
type Over = (Outcome, u64, Option<Error>);

/// The status of a run whose time is over before it ends.
const FORCED: Ended = 2;
const SECOND: Ns = 1_000_000_000;

/// Runs the test; returns the exit status.
pub(super) async fn run(settings: &Settings, log: &Mutex<Log>, stop: &Stop) -> Result<Ended> {
    if settings.values.on("mysql-dry-run") {
        say("a dry run measures nothing: loadgen calibrate tells what this host can generate");
        return Ok(1);
    }
    let report = Report { settings, log, stop, seen: RefCell::default() };
    match report.measure().await {
        Ok(over) => return Ok(report.end(over)),
        Err(error) if is_stop(&error) => return Err(error),
        Err(_) if report.seen.borrow().refused => {
            locked(log).fatal(&[failure::INIT_FAILED.to_owned()]);
        }
        Err(error) => say(error.render().trim_end()),
    }
    Ok(1)
}

fn is_stop(error: &Error) -> bool {
    matches!(error.kind(), Kind::Interrupted | Kind::Terminated)
}

/// Runs with the clients' connections alone: the server sees what it sees of sysbench.
async fn bare(plan: &Plan, link: &ServerLink, report: &Report<'_>) -> Result<Over> {
    let step = plan.steps().remove(0);
    let (spread, tables) = unseen(plan);
    let context = StepContext {
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
    Ok((run.outcome, run.unfinished(), run.error))
}

/// Runs with loadgen's own connection beside, and leaves a summary.
async fn kept(plan: &Plan, link: &ServerLink, store: &Store, report: &Report<'_>) -> Result<Over> {
    let mut progress = Progress::new(true, None);
    let mut steps = Steps::new(Job::Sweep(plan), store, &mut progress)?;
    steps.observer = Some(report);
    let mut planned = plan.steps().into_iter();
    let ran = steps.run(link, |_| Ok(planned.next())).await;
    match steps.summaries.pop() {
        Some(summary) => {
            let unfinished = summary.latency.abandoned.unwrap_or(0);
            Ok((summary.outcome, unfinished, ran.err()))
        }
        None => ran.and(Err(Error::failed("the run left no summary"))),
    }
}

/// The text of a run as it comes.
struct Report<'a> {
    settings: &'a Settings,
    log: &'a Mutex<Log>,
    stop: &'a Stop,
    seen: RefCell<Seen>,
}

/// What was counted so far: since the last line of figures and since the last report.
#[derive(Default)]
struct Seen {
    line: EventCounts,
    part: EventCounts,
    /// Of the whole run.
    events: u64,
    unexpected: u64,
    /// Since the window's start: the end of what was counted, and the last report.
    end: Ns,
    part_at: Ns,
    /// Nothing more is written, but for the status 1.
    refused: bool,
    /// The status is 1.
    failed: bool,
}

impl Report<'_> {
    async fn measure(&self) -> Result<Over> {
        let settings = self.settings;
        let seed = match settings.seed {
            0 => random()? >> 11,
            seed => u64::from(seed),
        };
        let plan = plan(settings, seed)?;
        let store = settings.out.as_deref().map(Store::open).transpose()?;
        let link = ServerLink::to(settings.connect.clone(), self.stop)?;
        locked(self.log).notice(&output::options(settings));
        locked(self.log).notice(output::INITIALIZING);
        self.of_threads("started");
        match &store {
            None => bare(&plan, &link, self).await,
            Some(store) => kept(&plan, &link, store, self).await,
        }
    }

    fn of_threads(&self, what: &str) {
        for thread in 0..self.settings.threads {
            locked(self.log).say(Level::Debug, &format!("Worker thread (#{thread}) {what}"));
        }
    }

    /// Writes what is due so many seconds after the start.
    fn due(&self, seen: &mut Seen, at: u64, queue: [u64; 2]) {
        let Settings { output, rate, time, .. } = *self.settings;
        let at_s = at as f64;
        let every = self.settings.values.int("report-interval") as u64;
        let mut log = locked(self.log);
        if every > 0 && at.is_multiple_of(every) {
            let counts = std::mem::take(&mut seen.line);
            log.stamped(&output::interval(self.settings, at_s, every as f64, &counts));
            if rate > 0 && output != OutputVersion::V0_5 {
                let [length, running] = queue;
                let line = format!("queue length: {length}, concurrency: {running}");
                log.stamped(&output::stamped(output, at_s, &line));
            }
        }
        // At the end there is the report.
        let over = !time.is_zero() && at >= time.as_secs();
        if !over && self.settings.values.checkpoints().iter().any(|due| u64::from(*due) == at) {
            log.stamped(&output::stamped(output, at_s, "Checkpoint report:"));
            self.report(&mut log, seen, None);
        }
    }

    /// Writes the report of what was counted since the last one.
    fn report(&self, log: &mut Log, seen: &mut Seen, unfinished: Option<u64>) {
        let counts = std::mem::take(&mut seen.part);
        let part_s = seconds(seen.end - std::mem::replace(&mut seen.part_at, seen.end));
        let span = Span { total_s: seconds(seen.end), part_s, unfinished };
        log.notice(&output::report(self.settings, &counts, &span));
    }

    /// Writes the end of a run; returns its exit status.
    fn end(&self, (outcome, abandoned, error): Over) -> Ended {
        let mut seen = self.seen.take();
        if seen.refused {
            return 1;
        }
        let Settings { events, threads, forced_shutdown, .. } = *self.settings;
        let completed = outcome == Outcome::Completed;
        let forced = abandoned > 0 && completed && forced_shutdown.is_some();
        let mut log = locked(self.log);
        if forced {
            log.say(Level::Fatal, output::FORCED);
        } else if completed {
            let of_events = events > 0 && seen.events >= events;
            let limit = if of_events { output::EVENT_LIMIT } else { output::TIME_LIMIT };
            (0..threads).for_each(|_| log.say(Level::Info, limit));
            log.say(Level::Info, output::DONE);
        }
        if self.settings.values.on("histogram") {
            log.histogram(&seen.part.times);
        }
        self.report(&mut log, &mut seen, forced.then_some(abandoned));
        drop(log);
        if seen.unexpected > 0 {
            say(&format!(
                "{} answers have another number of rows than a test on whole tables: \
                 are tables and table-size those of prepare?",
                seen.unexpected
            ));
        }
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
        self.of_threads("initialized");
        let mut log = locked(self.log);
        log.notice(output::STARTED);
        let warmup = self.settings.values.int("warmup-time");
        if warmup > 0 {
            log.notice(&format!("Warming up for {warmup} seconds...\n"));
        }
    }

    fn interval(&self, interval: &RecordedInterval, queue: [u64; 2]) {
        let Some(events) = interval.events.as_deref() else { return };
        let seen = &mut *self.seen.borrow_mut();
        if interval.phase == Phase::Warmup || seen.refused {
            return;
        }
        seen.line.merge(events);
        seen.part.merge(events);
        seen.events += events.events;
        seen.unexpected += events.unexpected;
        seen.end += interval.end - interval.start;
        if seen.end.is_multiple_of(SECOND) {
            self.due(seen, seen.end / SECOND, queue);
        }
        if locked(self.log).is_broken() {
            // Nobody reads what the run finds.
            self.stop.ask(Kind::Terminated);
        }
    }

    fn refused(&self, refused: &Refused) {
        let (settings, seen) = (self.settings, &mut *self.seen.borrow_mut());
        let Refused::Client(during, failure) = refused else {
            // Threads say so until the run has ended.
            if !std::mem::replace(&mut seen.refused, true) {
                locked(self.log).fatal(&[output::QUEUE_FULL.to_owned()]);
            }
            return;
        };
        // The report follows what fails when the run is over.
        seen.failed = true;
        seen.refused |= !matches!(during, During::Rest(_));
        locked(self.log).fatal(&failure::lines(settings, during, failure));
    }
}
