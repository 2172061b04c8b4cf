//! The steps of a job on a server, one after the other: the one path of every measuring verb and of profiles.
//! Loads and suites follow below.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::watch;

use super::before::{
    Patience, Preparation, PreparedServer, ask, check_versions, close, open, preflight, probe,
    read_all, with_liveness,
};
use super::conditions::Watch;
use super::forecast::Forecast;
use super::live::{percentile, table};
use super::openmetrics::Exporter;
use super::summarise::{
    Described, JobFacts, Measured, StepFacts, describe_load, describe_sweep, describe_timed,
    summarise,
};
use super::{finish, keep, random};
use crate::commands::beside::{self, WindowWatch};
use crate::commands::run_suite;
use crate::engine::{self, MeasuredStep, Observer, Readings, ServerReading, StepContext};
use crate::error::{Error, Result};
use crate::hosts::Ranks;
use crate::judge::{self, is_another, no_result};
use crate::load::reload::{LoadedTable, Reload, reload_error};
use crate::mysql::{
    ServerLink, Session, Tables, changes, dataset, describe_driver, exposure, fingerprint,
    optional, quoted_text,
};
use crate::observe::{ClientReading, IntervalLog, host, peak_resident_bytes};
use crate::plan::knobs::{LoadSpec, SuiteSpec};
use crate::plan::{Plan, Spread, Step, Warm, limits, units};
use crate::progress::Progress;
use crate::report::probe as judge_level;
use crate::stop::{locked, within};
use crate::summary::{
    self, Group, LedgerEntry, Location, Outcome, Record, Store, Summary, VerdictKind,
};
use crate::terms::{self, Code, Finding, Gate, counted, millis};

/// Warnings that the line of a step names.
const SHOWN_AT_ONCE: [Code; 4] =
    [Code::NotSustained, Code::WarmupBacklog, Code::NothingCompleted, Code::Unsent];
/// Largest number of tries of a step beyond the first (`--others-max`).
const RETRIES_MAX: u32 = 3;

#[derive(Debug, Clone, Copy)]
pub enum Job<'a> {
    Sweep(&'a Plan),
    /// A timed load; `force` lets it replace tables that prepare made.
    Load {
        spec: &'a LoadSpec,
        force: bool,
    },
    Suite(&'a SuiteSpec),
}

type StepResult = (MeasuredStep, Described);

pub struct Steps<'a> {
    pub(crate) job: Job<'a>,
    pub(crate) facts: JobFacts<'a>,
    pub(crate) store: &'a Store,
    pub(crate) progress: &'a mut Progress,
    /// The command that reads the server's host; empty for this host.
    pub(crate) prefix: Vec<String>,
    pub(crate) log: Option<Arc<Mutex<IntervalLog>>>,
    pub(crate) level: &'a [Gate],
    pub(crate) forecast: Forecast,
    /// True if dirty pages of the fill must be flushed before the next step.
    pub(crate) flush: bool,
    pub(crate) observer: Option<&'a dyn Observer>,
    pub(crate) exporter: Option<Arc<Exporter>>,
    /// The processes of other hosts that have the clients.
    pub(crate) ranks: Option<&'a mut Ranks>,
    /// Limit on the part of a host's CPU that others use. A step above it is measured again.
    pub(crate) others_max: Option<f64>,
    /// True if the caller restores what the first step wrote before its next try.
    pub(crate) restores: bool,
    pub(crate) saved: usize,
    /// Steps that completed, and whose summaries were not saved.
    pub(crate) unsaved: usize,
    pub summaries: Vec<Summary>,
}

impl<'a> Steps<'a> {
    /// Makes those of the only job of an invocation, without a label.
    pub fn new(job: Job<'a>, store: &'a Store, progress: &'a mut Progress) -> Result<Steps<'a>> {
        Ok(Steps {
            job,
            facts: JobFacts {
                run_id: format!("{:016x}", random()?),
                repeats: 1,
                ..JobFacts::default()
            },
            store,
            progress,
            prefix: Vec::new(),
            log: None,
            level: &[],
            forecast: Forecast::default(),
            flush: false,
            observer: None,
            exporter: None,
            ranks: None,
            others_max: None,
            restores: false,
            saved: 0,
            unsaved: 0,
            summaries: Vec::new(),
        })
    }

    /// Measures the steps in turn on a server with its tables. Chooses each after the ones before it. Returns the next
    /// try of the first step, if it needs restored data.
    pub async fn run(
        &mut self,
        link: &ServerLink,
        mut next: impl FnMut(&[Summary]) -> Result<Option<Step>>,
    ) -> Result<Option<u32>> {
        let control = open(link, self.charset()).await?;
        let mut at = self.survey(link, control).await?;
        while let Some(step) = next(&self.summaries)? {
            for attempt in step.attempt.. {
                link.stop.check()?;
                let step = Step { attempt, ..step };
                // Boxed: the future is large.
                if Box::pin(self.step(&mut at, &step)).await? != Outcome::MeasuredAgain {
                    break;
                }
                if self.restores && self.summaries.is_empty() {
                    close(at.control).await;
                    return Ok(Some(attempt + 1));
                }
            }
        }
        // A signal in the last drain cut nothing short, but the caller must stop.
        link.stop.check()?;
        close(at.control).await;
        Ok(None)
    }

    fn charset(&self) -> Option<&'a str> {
        let Job::Sweep(plan) = self.job else { return None };
        plan.charset.as_deref()
    }

    /// Reading random rows of many cold tables takes minutes. Preloads them if the plan says so.
    async fn survey<'l>(
        &mut self,
        link: &'l ServerLink,
        mut session: Session,
    ) -> Result<PreparedServer<'l>> {
        let control = &mut session;
        let gather = async |control: &mut Session| Box::pin(self.gather(link, control)).await;
        let mut at = with_liveness(link, control, gather).await?;
        let Job::Sweep(plan) = self.job else {
            // It might be idle for hours.
            session.close(limits::COURTESY).await;
            return Ok(at);
        };
        if let (Some(path), None) = (&plan.interval_log, &self.log) {
            let log = IntervalLog::create(path, jiff::Timestamp::now())?;
            self.log = Some(Arc::new(Mutex::new(log)));
        }
        if plan.before.warm == Warm::Pool {
            let (tables, progress) = (at.dataset.tables, &mut *self.progress);
            let reading = async |control: &mut Session| read_all(tables, control, progress).await;
            with_liveness(link, control, reading).await?;
        }
        if let Some(ranks) = &mut self.ranks {
            ranks.meet(link, self.facts.label.as_deref(), &at.found.server, plan).await?;
        }
        at.control = Some(session);
        Ok(at)
    }

    /// Gathers the facts of a server and its tables; refuses those that the job cannot run on.
    async fn gather<'l>(
        &mut self,
        link: &'l ServerLink,
        control: &mut Session,
    ) -> Result<PreparedServer<'l>> {
        let target = &link.target;
        let timed = (Spread::Pinned, None, Vec::new());
        let ((spread, dataset, mut warnings), what) = match self.job {
            Job::Sweep(plan) => {
                let (spread, ready) = preflight(plan, target, control).await?;
                let Tables { count, rows, .. } = ready.dataset.tables;
                let tables = match counted(count, "table") {
                    _ if count == 0 => "no tables of loadgen".to_owned(),
                    tables => format!("{tables} of {} rows, {spread} clients", units::count(rows)),
                };
                let what = format!("{tables}, seed {}", plan.seed);
                ((spread, Some(ready.dataset), ready.warnings), what)
            }
            Job::Load { spec, .. } => (timed, spec.name()),
            Job::Suite(spec) => (timed, format!("suite {}", spec.name)),
        };
        warnings.extend(exposure(control, target).await?);
        let bytes = dataset.as_ref().map(|dataset| dataset.data_bytes);
        let mut found = fingerprint(control, link, bytes).await?;
        if let Job::Sweep(_) = self.job {
            check_versions(link, &found.server).await?;
        }
        found.server.table_formats = dataset.as_ref().map(|dataset| dataset.formats.clone());
        if let Some(in_profile) = &mut self.facts.in_profile {
            in_profile.check(&found.server, dataset.as_ref())?;
        }
        for warning in &warnings {
            self.progress.warn_once(&warning.to_string());
        }
        let server = format!("{} {}", found.server.version, found.server.version_comment);
        let place = match self.job {
            Job::Sweep(_) => target.name_addresses(),
            Job::Load { .. } | Job::Suite(_) => target.address.to_string(),
        };
        self.progress.note(&format!("{} at {place}: {what}", server.trim_end()));
        if let Job::Sweep(plan) = self.job
            && let Some(dataset) = &dataset
            && let Some(text) = engine::describe_queues(plan, spread, dataset.tables.count)
        {
            self.progress.note(&text);
        }
        if !matches!(self.job, Job::Sweep(_)) {
            found.driver = describe_driver(&found.server.version, found.driver.capabilities);
        }
        let place = found.whereabouts.clone();
        let probe = probe(self.prefix.clone(), place, found.same_host).await?;
        let host = host::facts(Path::new(host::ROOT));
        let (control, dataset) = (None, dataset.unwrap_or_default());
        Ok(PreparedServer { link, control, found, host, probe, warnings, spread, dataset })
    }

    /// Measures a step once, and saves it.
    async fn step(&mut self, at: &mut PreparedServer<'_>, step: &Step) -> Result<Outcome> {
        let began = Instant::now();
        let measured = match self.job {
            Job::Sweep(plan) => Box::pin(self.sweep(plan, at, step)).await,
            Job::Load { spec, force } => Box::pin(self.load(at, step, spec, force)).await,
            Job::Suite(spec) => self.suite(at, step, spec).await,
        };
        let (mut run, described) = measured?;
        let by_command = at.probe.as_ref().is_some_and(|probe| !probe.is_local());
        if by_command && run.readings.status.is_some() && run.readings.probed.is_none() {
            self.progress.warn("the probe did not read the server's host: its costs are unknown");
        }
        let changed = run.readings.changed.as_deref().unwrap_or_default();
        if run.error.is_none()
            && let Some(changed) = no_result(changed)
        {
            (run.outcome, run.error) = (Outcome::ServerChanged, Some(changed));
        }
        let facts = StepFacts { job: &self.facts, server: at, step };
        let summary = summarise(facts, &run, described);
        let judgement = judge::judge_step(&summary);
        let mut summary = summary.judged(judgement);
        let others = self.disturbance(&summary);
        if others.is_some() && step.attempt <= RETRIES_MAX {
            summary.outcome = Outcome::MeasuredAgain;
        }
        let outcome = summary.outcome;
        let is_measured_again = outcome == Outcome::MeasuredAgain;
        let kept = keep(self.store, &summary, self.progress);
        self.saved += usize::from(kept.is_ok() && !is_measured_again);
        self.unsaved += usize::from(kept.is_err() && outcome == Outcome::Completed);
        self.forecast.learn(step.place, began.elapsed());
        self.progress.note(&(describe_job(&summary) + &self.describe_level(&summary)?));
        for warning in &summary.warnings {
            if SHOWN_AT_ONCE.iter().any(|code| warning.is(*code)) {
                self.progress.warn(&warning.message);
            }
        }
        if let Some(others) = others {
            self.tell_disturbance(others, step.attempt, is_measured_again);
        }
        if !is_measured_again {
            self.summaries.push(summary);
        }
        let logged = self.log.as_ref().map_or(Ok(()), |log| locked(log).flush());
        finish([run.error.map_or(Ok(()), Err), kept, logged], self.progress).map(|()| outcome)
    }

    /// Returns what others used of a host, if that is too much. Loads and suites change data: nothing repeats them.
    fn disturbance(&self, summary: &Summary) -> Option<f64> {
        let repeatable = matches!(self.job, Job::Sweep(_)) && summary.outcome == Outcome::Completed;
        let max = self.others_max.filter(|_| repeatable)?;
        judge::used_by_others(summary).filter(|part| *part > max)
    }

    fn tell_disturbance(&mut self, others: f64, attempt: u32, is_measured_again: bool) {
        let used = format!("others used {:.1} % of the cores of a host", others * 100.0);
        if is_measured_again {
            let (next, tries) = (attempt + 1, RETRIES_MAX + 1);
            let text = format!("{used}: the step is measured again, try {next} of {tries}");
            self.progress.note(&text);
        } else {
            self.progress.warn(&format!("{used} in try {attempt}, too: this try is kept"));
        }
    }

    /// Describes whether a search's step holds its level; empty for other steps.
    fn describe_level(&self, summary: &Summary) -> Result<String> {
        if self.level.is_empty() || summary.outcome == Outcome::MeasuredAgain {
            return Ok(String::new());
        }
        let level: Vec<&str> = self.level.iter().map(|gate| gate.text.as_str()).collect();
        let answer = match judge_level(self.level, summary)?.held {
            Some(true) => "holds",
            Some(false) => "fails",
            None => "is not known",
        };
        Ok(format!("; {} {answer}", level.join(" and ")))
    }

    async fn load(
        &mut self,
        at: &mut PreparedServer<'_>,
        step: &Step,
        spec: &LoadSpec,
        force: bool,
    ) -> Result<StepResult> {
        let progress = &mut *self.progress;
        let mut load = Reload::open(at.link, spec, force, progress).await.map_err(reload_error)?;
        let running = async || load.run(progress).await.map(|error| (load.began, error));
        let (readings, mut error) = read_around(at, running).await?;
        let mut loaded = std::mem::take(&mut load.done);
        if error.is_none() {
            error = load.verify(&loaded.tables, progress).await.err();
        }
        if error.is_none() && loaded.tables.is_empty() {
            // The writer of a pipe may have failed.
            let text = format!("{}: no table was loaded", spec.name());
            let hint = "is the dump whole? mysqldump writes nothing where it fails";
            error = Some(Error::data(text).hint(hint));
        }
        let (verified, counted) = (error.is_none(), std::mem::take(&mut loaded.counted));
        let size = read_table_facts(at.link, &loaded.tables).await;
        (at.found.server.data_bytes, at.found.server.table_formats) = size.unzip();
        let run = MeasuredStep::timed(counted, readings, error.map(reload_error));
        let facts = StepFacts { job: &self.facts, server: at, step };
        let described = describe_load(facts, &run, spec, loaded, verified);
        Ok((run, described))
    }

    /// Runs the commands once; their output goes to a new file beside the summaries.
    async fn suite(
        &mut self,
        at: &mut PreparedServer<'_>,
        step: &Step,
        spec: &SuiteSpec,
    ) -> Result<StepResult> {
        let facts = StepFacts { job: &self.facts, server: at, step };
        let label = summary::part(&facts.label());
        let (suite, repeat, started) = (summary::part(&spec.name), step.repeat, random()?);
        let name = format!("{label}_suite-{suite}_n{repeat}_{started:016x}.output");
        let (path, link) = (self.store.dir().join(&name), at.link);
        let running = async || {
            let refused = |e| Error::failed(format!("{}: {e}", path.display()));
            let file = File::create_new(&path).map_err(refused)?;
            let began = Instant::now();
            // Blocks this thread, which has nothing else to do.
            let ran = run_suite(spec, &link.target, &file, &link.stop, self.progress)?;
            Ok((began, ran))
        };
        let (readings, (counted, tests, error)) = read_around(at, running).await?;
        let run = MeasuredStep::timed(counted, readings, error);
        let facts = StepFacts { job: &self.facts, server: at, step };
        let suite = Measured::Suite(summary::Suite { tests, output: Some(name) });
        let title = format!("suite-{}", spec.name);
        let described = describe_timed(facts, &run, title, Vec::new(), (0, 0, None), suite);
        Ok((run, described))
    }

    async fn sweep(
        &mut self,
        plan: &Plan,
        at: &mut PreparedServer<'_>,
        step: &Step,
    ) -> Result<StepResult> {
        let label = self.facts.label.as_deref();
        self.progress.table(|| table(label, plan, step, &self.summaries));
        let (window, opened) = watch::channel(None);
        let (changed, watch) = self.make_ready(plan, at, &opened).await?;
        let exporter = self.exporter.clone();
        let facts = StepFacts { job: &self.facts, server: at, step };
        if let Some(exporter) = &exporter {
            let labels = vec![("label", facts.label()), ("workload", facts.job.workload(plan))];
            exporter.begin_step(labels, plan, step);
        }
        let (link, tables, begun) = (at.link, at.dataset.tables, RefCell::new(None));
        let record = make_record(plan, facts);
        let first_write = || {
            let begin = |record| self.store.begin_record(record);
            *begun.borrow_mut() = record.as_ref().map(begin).transpose()?;
            Ok(())
        };
        let profile = self.facts.in_profile.as_ref();
        let commands =
            profile.map_or_else(Vec::new, |profile| profile.commands(&self.facts.run_id, step));
        let beside = beside::start(commands, self.store.dir(), &opened);
        let context = StepContext {
            plan,
            step,
            spread: at.spread,
            tables,
            link,
            server: Some(&at.found.server),
            probe: at.probe.clone(),
            log: self.log.clone(),
            first_write: &first_write,
            window,
            observer: self.observer.or(exporter.as_deref().map(|all| all as &dyn Observer)),
            elsewhere: None,
            later: self.forecast.later(step.place),
        };
        log_step(&context);
        let window = context.window.clone();
        let run = match &mut self.ranks {
            Some(ranks) => ranks.run_step(context, &mut at.control, self.progress).await,
            None => engine::run_step(&context, &mut at.control, self.progress).await,
        };
        // Also if there was no window.
        window.send_replace(None);
        if let Some(exporter) = &exporter {
            exporter.end_step();
        }
        let commands = beside::end(beside).await;
        let mut run = run?;
        let after = &mut run.readings.changed;
        if after.is_none() {
            // A new connection, as for the clients: the server of an old one may have lost its address.
            *after = engine::changes(&at.found.server, &mut None, link).await;
        }
        if after.as_deref().is_some_and(is_another) {
            // The next step inspects its tables, too.
            at.control = None;
        }
        let facts = StepFacts { job: &self.facts, server: at, step };
        let conditions = watch.end(plan, facts, run.counted.timeline.window.ops).await;
        let recorded = begun.take();
        let mut ids = record.map_or_else(BTreeMap::new, |record| record.tables);
        let known = |entry: &mut LedgerEntry| entry.table_id = ids.remove(&entry.table);
        run.ledger.iter_mut().for_each(known);
        // Its SQL may have written to these, too.
        run.ledger.extend(ids.into_iter().map(|(table, id)| LedgerEntry {
            table,
            table_id: Some(id),
            ..LedgerEntry::default()
        }));
        let measured = Measured::Sweep(Box::new(conditions), recorded);
        let described = describe_sweep(facts, plan, &run, changed, commands, measured);
        Ok((run, described))
    }

    /// Begins to watch the server, too, and waits for one that is gone if lost connections are opened again.
    async fn make_ready(
        &mut self,
        plan: &Plan,
        at: &mut PreparedServer<'_>,
        opened: &WindowWatch,
    ) -> Result<(Vec<Finding>, Watch)> {
        let mut patience = Patience::new(plan.policy, &at.link.stop);
        let last = at.found.server.clone();
        loop {
            // A session that fails or hangs is dropped: the next attempt opens another.
            let attempt = async {
                if at.control.is_none() {
                    self.reopen(at).await?;
                }
                let mut session = at.control.take().expect("it was there, or was opened");
                let (control, progress) = (&mut session, &mut *self.progress);
                let mut preparation = Preparation { plan, at, control, progress };
                let flushed = if self.flush && plan.before.settle.is_none() {
                    Some(preparation.flush().await?)
                } else {
                    None
                };
                let prepared = preparation.step().await?;
                at.found.server = at.renew_server(&mut session).await?;
                let at_start = at.read_levels(&mut session).await?;
                at.control = Some(session);
                self.flush = false;
                let before = (prepared, flushed, at_start);
                Ok(Watch::begin(plan, at, before, opened.clone()).await)
            };
            match attempt.await {
                Ok(watch) => {
                    let changed = changes(&last, &at.found.server);
                    return Ok((judge::changed_when(&changed, "before this step"), watch));
                }
                Err(error) if patience.wait_again(&error, self.progress).await? => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Inspects a server that may be another one. Goes on without a probe if its host does not answer.
    async fn reopen(&mut self, at: &mut PreparedServer<'_>) -> Result<()> {
        let mut session = open(at.link, self.charset()).await?;
        let server = at.renew_server(&mut session).await?;
        if is_another(&changes(&at.found.server, &server)) {
            *at = self.survey(at.link, session).await?;
            return Ok(());
        }
        // A restarted server is another process, of another age.
        let asking = Box::pin(fingerprint(&mut session, at.link, None));
        let found = ask(at.link, asking).await?;
        match probe(self.prefix.clone(), found.whereabouts, found.same_host).await {
            Ok(probe) => at.probe = probe,
            Err(error) => self.progress.warn(&format!("{error}: going on as before")),
        }
        // Its process is another one for the ranks, too.
        if let Some(ranks) = &mut self.ranks {
            let Job::Sweep(plan) = self.job else { unreachable!("ranks run sweeps only") };
            ranks.meet(at.link, self.facts.label.as_deref(), &at.found.server, plan).await?;
        }
        at.control = Some(session);
        Ok(())
    }
}

/// Begins a step in the interval log. Tags tell several steps apart.
fn log_step(context: &StepContext) {
    let StepContext { plan, step, log: Some(log), .. } = context else { return };
    let (name, cell) = (&plan.workload.name, step.cell().told());
    let Step { place, of, repeat, number, attempt, .. } = step;
    let about = format!("step {place} of {of}: {name} {cell}, repeat {repeat}");
    let several = *of > 1 || *number > 1 || *attempt > 1;
    let prefix = if several { format!("step{}.", step.name()) } else { String::new() };
    locked(log).step(&about, step.rate.is_some(), &prefix);
}

/// Kept from before the first write until the summary is saved; None if no table has an identity.
fn make_record(plan: &Plan, facts: StepFacts<'_>) -> Option<Record> {
    let at = facts.server;
    let (tables, server) = (at.dataset.tables, &at.found.server);
    let used = if plan.unfollowed().is_some() { u32::MAX } else { tables.count };
    // As in the table's COMMENT.
    let named = |(n, id): (&u32, &u32)| (tables.schema.name(*n), format!("{id:x}"));
    let ids: BTreeMap<String, String> = at.dataset.ids.range(..=used).map(named).collect();
    let place = Location::from_variables(&server.variables, server.database.as_deref());
    let what = format!("{}, {}", plan.workload.name, terms::clients(facts.step.clients));
    let writes = plan.may_write() && !ids.is_empty();
    let mut record = Record::new(facts.step_id(), what, plan.is_built_in(), place, ids);
    record.label = Some(facts.label());
    record.workload = Some(facts.job.workload(plan));
    record.clients = Some(facts.step.clients);
    writes.then_some(record)
}

/// A server that does not answer afterwards costs only the reading.
async fn read_around<T>(
    at: &mut PreparedServer<'_>,
    doing: impl AsyncFnOnce() -> Result<(Instant, T)>,
) -> Result<(Readings, T)> {
    let mut session = open(at.link, None).await?;
    at.found.server = at.renew_server(&mut session).await?;
    let (link, probe, mut control) = (at.link, at.probe.as_ref(), Some(session));
    let first = ServerReading::take(&mut control, probe).await;
    close(control).await;
    let own = ClientReading::now(probe);
    let (began, done) = doing().await?;
    let client = ClientReading::now(probe).since(&own);
    // A new connection: the server may have dropped an idle one.
    let session = within(limits::COURTESY, Session::open(link, None)).await;
    let mut control = session.and_then(Result::ok);
    let mut last = ServerReading::take(&mut control, probe).await;
    last.count_own(&mut control).await;
    let changed = engine::changes(&at.found.server, &mut control, link).await;
    close(control).await;
    let (status, probed) = last.since(&first, probe, began);
    let max_rss_bytes = peak_resident_bytes();
    Ok((Readings { client, max_rss_bytes, status, probed, changed }, done))
}

/// Reads the sizes (with indexes, bytes) and formats of some tables; None if the server does not report them.
async fn read_table_facts(link: &ServerLink, tables: &[LoadedTable]) -> Option<(u64, Vec<String>)> {
    let names: Vec<String> = tables.iter().map(|table| quoted_text(&table.name)).collect();
    if names.is_empty() {
        return None;
    }
    let which = format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({})", names.join(","));
    let asking = async {
        let mut session = Session::open(link, None).await?;
        // MySQL 8 caches sizes for a day; servers without the variable cache none.
        let fresh = "SET SESSION information_schema_stats_expiry = 0";
        optional(session.execute(fresh).await)?;
        Ok::<_, Error>(dataset::size_and_formats(&mut session, &which).await?)
    };
    within(limits::COURTESY, asking).await?.ok()
}

fn describe_job(summary: &Summary) -> String {
    let (name, client, mark) = (&summary.workload.name, &summary.client, summary.outcome.mark());
    let (measured_s, user_s, sys_s) = (summary.measured_s, client.user_s, client.sys_s);
    let cpu = format!("CPU {user_s:.2} s user {sys_s:.2} s system");
    let what = match (&summary.load, &summary.suite) {
        (Some(load), _) => {
            let (rows, per_s) = (units::count(load.rows), units::rate(load.rows_per_s));
            let n = load.statements;
            format!(
                "{rows} rows in {measured_s:.3} s, {per_s} rows/s, {n} statements, client {cpu}"
            )
        }
        (_, Some(suite)) => {
            let (good, total) = (summary.totals.ops, suite.tests.len());
            format!("{good} of {total} tests in {measured_s:.3} s, {cpu}")
        }
        (None, None) => return describe_step(summary) + &mark,
    };
    format!("{name}: {what}{}{mark}", describe_verdict(summary))
}

/// Names a verdict that is not `ok`, behind a step's line.
fn describe_verdict(summary: &Summary) -> String {
    let kind = summary.verdict.as_ref().map(|verdict| verdict.kind);
    let kind = kind.filter(|kind| *kind != VerdictKind::Ok);
    kind.map_or_else(String::new, |kind| format!(", {}", kind.name()))
}

/// Describes a step: an open loop by its response time, a closed one by its service time.
fn describe_step(summary: &Summary) -> String {
    let totals = &summary.totals;
    let name = if summary.latency.response.is_some() { "response" } else { "service" };
    let ms = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), millis);
    let mut line = format!(
        "{} {}: {} QPS, {name} time p50 {}, p99 {}, max {}, {}",
        summary.workload.name,
        summary.cell().told(),
        units::rate(totals.qps),
        ms(percentile(summary, 50.0, |times| times.p50_us)),
        ms(percentile(summary, 99.0, |times| times.p99_us)),
        ms(summary.latency.own().max_us),
        counted(summary.failed_ops(), "error"),
    );
    for Group { name, totals, .. } in &summary.groups {
        let errors = counted(totals.failed_ops(), "error");
        line.extend(["; ", &format!("{name} {} ops/s, {errors}", units::rate(totals.tps))]);
    }
    let outages = summary.outages.len() as u64;
    let refused = summary.refused_reconnects();
    let their = if totals.in_doubt == 1 { "its" } else { "their" };
    for (n, text) in [
        (totals.in_doubt, format!("{} lost {their} answer", counted(totals.in_doubt, "write"))),
        (refused, format!("{} refused", counted(refused, "reconnect"))),
        (totals.abandoned, format!("{} abandoned", totals.abandoned)),
        // Name refused reconnects: a sum would read like another step's number.
        (if refused > 0 { 0 } else { totals.reconnects }, counted(totals.reconnects, "reconnect")),
        (outages, counted(outages, "outage")),
    ] {
        if n > 0 {
            line.extend(["; ", &text]);
        }
    }
    line + &describe_verdict(summary)
}
