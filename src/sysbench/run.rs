//! `run`: the engine does the work, and what it counts becomes sysbench's text as it comes.

use std::cell::RefCell;
use std::sync::Mutex;

use tokio::sync::watch;

use super::failure::{self, Call};
use super::output::{self, Level, Log, Span};
use super::plan::plan;
use super::settings::{Ended, OutputVersion, Settings, Test};
use crate::engine::{self, During, Observer, Refused, StepContext};
use crate::error::{Error, Kind, Result};
use crate::mysql::ServerLink;
use crate::observe::{EventCounts, Ns, RecordedInterval, seconds};
use crate::plan::{Plan, StopAt};
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

/// Runs the test; returns the exit status.
pub(super) async fn run(settings: &Settings, log: &Mutex<Log>, stop: &Stop) -> Result<Ended> {
    if settings.values.on("mysql-dry-run") {
        say("a dry run measures nothing: loadgen calibrate tells what this host can generate");
        return Ok(1);
    }
    let seed = match settings.seed {
        0 => random()? >> 11,
        seed => u64::from(seed),
    };
    let prepared = plan(settings, seed).and_then(|plan| {
        let store = settings.out.as_deref().map(Store::open).transpose()?;
        Ok((plan, ServerLink::to(settings.connect.clone(), stop)?, store))
    });
    let (plan, link, store) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            say(error.render().trim_end());
            return Ok(1);
        }
    };
    let report = Report { settings, log, stop, seen: RefCell::default() };
    report.begin();
    let over = match &store {
        None => bare(&plan, &link, &report).await,
        Some(store) => kept(&plan, &link, store, &report).await,
    };
    match over {
        Ok(over) => Ok(report.end(over, plan.stop)),
        Err(error) if matches!(error.kind(), Kind::Interrupted | Kind::Terminated) => Err(error),
        Err(error) => {
            report.nothing(&error);
            Ok(1)
        }
    }
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
    /// The window's start. From it: the end of what was counted, the last line, and the last report.
    start: Option<Ns>,
    end: Ns,
    line_at: Ns,
    part_at: Ns,
    /// Nothing more is written, but for the status 1.
    refused: bool,
    /// The status is 1.
    failed: bool,
}

impl Report<'_> {
    fn begin(&self) {
        let mut log = locked(self.log);
        log.notice(&output::options(self.settings));
        log.notice(output::INITIALIZING);
        self.of_threads(&mut log, "started");
    }

    fn of_threads(&self, log: &mut Log, what: &str) {
        for thread in 0..self.settings.threads {
            log.say(Level::Debug, &format!("Worker thread (#{thread}) {what}"));
        }
    }

    /// Writes what is due at an instant since the start.
    fn due(&self, seen: &mut Seen, at: Ns, queue: [u64; 2]) {
        const SECOND: Ns = 1_000_000_000;
        let Settings { output, rate, .. } = *self.settings;
        let (at_s, whole) = (seconds(at), at.is_multiple_of(SECOND));
        let every = self.settings.values.int("report-interval") as u64 * SECOND;
        let mut log = locked(self.log);
        if whole && every > 0 && at.is_multiple_of(every) {
            let counts = std::mem::take(&mut seen.line);
            let length_s = seconds(at - std::mem::replace(&mut seen.line_at, at));
            log.stamped(&output::interval(self.settings, at_s, length_s, &counts));
            if rate > 0 && output != OutputVersion::V0_5 {
                let [length, running] = queue;
                let line = format!("queue length: {length}, concurrency: {running}");
                log.stamped(&output::stamped(output, at_s, &line));
            }
        }
        // At the end there is the report.
        let over = !self.settings.time.is_zero() && at_s >= self.settings.time.as_secs_f64();
        let due = |s: &u32| u64::from(*s) * SECOND == at;
        if whole && !over && self.settings.values.checkpoints().iter().any(due) {
            log.stamped(&output::stamped(output, at_s, "Checkpoint report:"));
            let counts = std::mem::take(&mut seen.part);
            let part_s = seconds(at - std::mem::replace(&mut seen.part_at, at));
            let span = Span { total_s: at_s, part_s, unfinished: None };
            log.notice(&output::report(self.settings, &counts, &span));
        }
        if log.is_broken() {
            // Nobody reads what the run finds.
            self.stop.ask(Kind::Terminated);
        }
    }

    /// Writes the end of a run; returns its exit status.
    fn end(&self, (outcome, abandoned, error): Over, stop: StopAt) -> Ended {
        let seen = self.seen.take();
        if seen.refused {
            return 1;
        }
        let forced = abandoned > 0
            && outcome == Outcome::Completed
            && self.settings.forced_shutdown.is_some();
        let mut log = locked(self.log);
        if forced {
            log.say(Level::Fatal, output::FORCED);
        } else if outcome == Outcome::Completed {
            let of_events = self.settings.events > 0 && seen.events >= self.settings.events;
            let limit = if of_events { output::EVENT_LIMIT } else { output::TIME_LIMIT };
            if of_events || stop.time().is_some() {
                (0..self.settings.threads).for_each(|_| log.say(Level::Info, limit));
            }
            log.say(Level::Info, output::DONE);
        }
        if self.settings.values.on("histogram") {
            log.histogram(&seen.part.times);
        }
        let unfinished = forced.then_some(abandoned);
        let (total_s, part_s) = (seconds(seen.end), seconds(seen.end - seen.part_at));
        let mut part = seen.part;
        part.merge(&EventCounts::new(self.settings.threads as usize));
        log.notice(&output::report(self.settings, &part, &Span { total_s, part_s, unfinished }));
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
                if !matches!(error.kind(), Kind::Interrupted | Kind::Terminated) {
                    say(error.render().trim_end());
                }
                error.kind().exit_code()
            }
            _ if forced => FORCED,
            _ => 0,
        }
    }

    /// Writes why nothing was measured.
    fn nothing(&self, error: &Error) {
        if self.seen.borrow().refused {
            locked(self.log).fatal(&[failure::INIT_FAILED.to_owned()]);
        } else {
            say(error.render().trim_end());
        }
    }
}

impl Observer for Report<'_> {
    fn started(&self) {
        let mut log = locked(self.log);
        self.of_threads(&mut log, "initialized");
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
        let start = *seen.start.get_or_insert(interval.start);
        seen.end = interval.end - start;
        self.due(seen, seen.end, queue);
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
        let call = match during {
            During::Execute(_) => Call::Execute,
            During::Rest(_) => Call::BulkDone,
            During::Query(_) if settings.test == Test::BulkInsert => Call::BulkNext,
            _ => Call::Query,
        };
        let lines = match during {
            During::Connect => failure::connect_lines(settings, failure),
            During::Prepare(sql) => failure::prepare_lines(settings, failure, sql),
            During::Execute(sql) | During::Query(sql) | During::Rest(sql) => {
                failure::statement_lines(settings, failure, call, sql)
            }
        };
        locked(self.log).fatal(&lines);
    }
}
