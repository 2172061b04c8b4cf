//! The steps of a job on a server, one after the other: the one path of every verb that measures,
//! and of profiles. Then what is special of loads and suites, and how steps are told.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::watch;

use super::before::{
    Patience, Preparation, PreparedServer, close, open, preflight, probe, read_all, with_liveness,
};
use super::conditions::{Watch, WindowWatch};
use super::forecast::Forecast;
use super::in_profile::InProfile;
use super::live::{percentile, table};
use super::{finish, keep, random};
use crate::commands::{self, beside};
use crate::engine::{self, ServerReading, StepContext, begin, host_facts};
use crate::error::{Error, Kind, Result};
use crate::judge::{self, Calibration, changed_after, class_by_size, is_another, no_result};
use crate::load::reload::{Loaded, LoadedTable, Reload, reload_error};
use crate::mysql::{
    ServerLink, Session, Tables, changes, dataset, describe_driver, exposure, fingerprint,
    optional, quoted_text,
};
use crate::observe::{ClientReading, Host, IntervalLog, Times, Whereabouts, host};
use crate::plan::knobs::{InsertMode, LoadSource, LoadSpec, SuiteSpec};
use crate::plan::{Plan, Spread, Step, Warm, limits, units};
use crate::progress::Progress;
use crate::report::probe as judge_level;
use crate::stop::{locked, within};
use crate::summary::{
    self, CommandRun, Conditions, Location, Outcome, Record, Store, Summary, VerdictKind,
};
use crate::terms::{self, Code, Finding, Gate, StatementMode, counted, finding, millis};
use crate::workload::Schema;

/// Codes of warnings that a reader of the step's own line must know.
const SAID_AT_ONCE: [Code; 4] =
    [Code::NotSustained, Code::WarmupBacklog, Code::NothingCompleted, Code::Unsent];
#[derive(Debug, Clone, Copy)]
pub enum Job<'a> {
    Sweep(&'a Plan),
    /// A timed load; over tables that prepare made, too, if `force`.
    Load {
        spec: &'a LoadSpec,
        force: bool,
    },
    Suite(&'a SuiteSpec),
}

pub struct Steps<'a> {
    pub(crate) job: Job<'a>,
    /// The server's version if none.
    pub(crate) label: Option<String>,
    pub(crate) notes: BTreeMap<String, String>,
    pub(crate) repeats: u32,
    pub(crate) store: &'a Store,
    pub(crate) progress: &'a mut Progress,
    /// The command that reads the server's host: empty for this one.
    pub(crate) prefix: Vec<String>,
    pub(crate) run_id: String,
    pub(crate) in_profile: Option<InProfile<'a>>,
    pub(crate) calibration: Option<&'a Calibration>,
    pub(crate) log: Option<Arc<Mutex<IntervalLog>>>,
    /// The search for a rate that the steps are of, but for its number.
    pub(crate) search: Option<summary::RateSearch>,
    /// The level that a search holds; empty without one.
    pub(crate) level: &'a [Gate],
    pub(crate) forecast: Forecast,
    /// True if the fill left something to be flushed before the next step.
    pub(crate) flush: bool,
    /// The suffix of the server's version where there is no label.
    pub(crate) options: String,
    pub(crate) observer: Option<&'a dyn engine::Observer>,
    /// Summaries that were written to the store.
    pub(crate) saved: usize,
    pub summaries: Vec<Summary>,
}

/// Names a server without a label: by its version, or by the number of it and its options.
pub(super) fn server_label(version: &str, options: &str) -> String {
    let number = version.split('-').next().unwrap_or(version);
    if options.is_empty() { version.to_owned() } else { format!("{number}{options}") }
}

impl<'a> Steps<'a> {
    /// Makes an invocation's first and only job, without a label.
    pub fn new(job: Job<'a>, store: &'a Store, progress: &'a mut Progress) -> Result<Steps<'a>> {
        Ok(Steps {
            job,
            label: None,
            notes: BTreeMap::new(),
            repeats: 1,
            store,
            progress,
            prefix: Vec::new(),
            run_id: format!("{:016x}", random()?),
            in_profile: None,
            calibration: None,
            log: None,
            search: None,
            level: &[],
            forecast: Forecast::default(),
            flush: false,
            options: String::new(),
            observer: None,
            saved: 0,
            summaries: Vec::new(),
        })
    }

    /// Measures one step after the other, each chosen when those before it are measured, on a server
    /// whose tables are there.
    pub async fn run(
        &mut self,
        link: &ServerLink,
        mut next: impl FnMut(&[Summary]) -> Result<Option<Step>>,
    ) -> Result<()> {
        let control = open(link, self.charset()).await?;
        let mut at = self.survey(link, control).await?;
        while let Some(step) = next(&self.summaries)? {
            link.stop.check()?;
            // Boxed: it holds all that a step is made of.
            Box::pin(self.step(&mut at, &step)).await?;
        }
        // A signal in the last drain cut nothing short, but the caller asked to stop.
        link.stop.check()?;
        close(at.control).await;
        Ok(())
    }

    fn label_on(&self, version: &str) -> String {
        self.label.clone().unwrap_or_else(|| server_label(version, &self.options))
    }

    fn charset(&self) -> Option<&'a str> {
        let Job::Sweep(plan) = self.job else { return None };
        plan.charset.as_deref()
    }

    /// Looks at the server for as long as it answers: random rows of many tables that nothing has
    /// cached take minutes. Reads them where the plan wants them in the pool.
    async fn survey<'l>(
        &mut self,
        link: &'l ServerLink,
        mut session: Session,
    ) -> Result<PreparedServer<'l>> {
        let control = &mut session;
        let look = async |control: &mut Session| Box::pin(self.prepare_step(link, control)).await;
        let mut at = with_liveness(link, control, look).await?;
        let Job::Sweep(plan) = self.job else {
            // It would be idle meanwhile, for hours perhaps.
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
        at.control = Some(session);
        Ok(at)
    }

    async fn prepare_step<'l>(
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
        let mut seen = fingerprint(control, link, bytes).await?;
        seen.server.table_formats = dataset.as_ref().map(|dataset| dataset.formats.clone());
        if let Some(in_profile) = &mut self.in_profile {
            in_profile.check(&seen.server, dataset.as_ref())?;
        }
        for warning in &warnings {
            self.progress.warn_once(&warning.to_string());
        }
        let server = format!("{} {}", seen.server.version, seen.server.version_comment);
        self.progress.note(&format!("{} at {}: {what}", server.trim_end(), target.address));
        if let Job::Sweep(plan) = self.job
            && let Some(dataset) = &dataset
            && let Some(text) = engine::describe_queues(plan, spread, dataset.tables.count)
        {
            self.progress.note(&text);
        }
        if !matches!(self.job, Job::Sweep(_)) {
            seen.driver = describe_driver(&seen.server.version, seen.driver.capabilities);
        }
        let (whereabouts, same_host) = (seen.whereabouts, seen.same_host);
        let probe = probe(self.prefix.clone(), whereabouts.clone(), same_host).await?;
        let Host { name: host, cores_usable: cores, facts } = host::facts(Path::new(host::ROOT));
        let (kernel, cpu, rtt_us) = (facts.kernel, facts.cpu, seen.rtt_us);
        let host_cores = Some(facts.cores).filter(|cores| *cores > 0);
        let share = summary::Share { host_cores, ..Default::default() };
        // Only the engine's steps have one.
        let share = matches!(self.job, Job::Sweep(_)).then_some(share);
        let data_seed = dataset.as_ref().and_then(|dataset| dataset.data_seed).map(u64::from);
        let rest = summary::Client::default();
        let client = summary::Client { host, kernel, cpu, cores, same_host, rtt_us, share, ..rest };
        let begun = Box::new(Summary {
            schema: summary::SCHEMA.to_owned(),
            loadgen: engine::program(),
            run_id: self.run_id.clone(),
            label: self.label_on(&seen.server.version),
            notes: self.notes.clone(),
            plan: summary::Plan { data_seed, repeats: self.repeats, ..Default::default() },
            server: seen.server,
            driver: seen.driver,
            client,
            ..Summary::default()
        });
        let (control, dataset) = (None, dataset.unwrap_or_default());
        Ok(PreparedServer { link, control, begun, probe, warnings, spread, dataset, whereabouts })
    }

    async fn step(&mut self, at: &mut PreparedServer<'_>, step: &Step) -> Result<()> {
        let began = Instant::now();
        let measured = match self.job {
            Job::Sweep(plan) => Box::pin(self.sweep(plan, at, step)).await,
            Job::Load { spec, force } => Box::pin(self.load(at, step, (spec, force))).await,
            Job::Suite(spec) => self.suite(at, step, spec).await,
        };
        let (mut summary, mut error, ran) = measured?;
        if error.is_none() {
            error = no_result(&summary.server.settings_changed);
            if let Some(changed) = &error {
                summary.outcome = Outcome::ServerChanged;
                summary.reason = Some(changed.to_string());
            }
        }
        let of = self.search.clone().zip(step.search);
        summary.plan.search = of.map(|(of, number)| summary::RateSearch { number, ..of });
        if let Some(here) = &self.in_profile {
            here.sign(&mut summary, step, ran);
        }
        if summary.conditions.is_some() {
            let found = judge::warnings(&summary);
            summary.warn(found);
            judge::calibrate(&mut summary, self.calibration);
            summary.verdict = judge::verdict(&summary);
        }
        let kept = keep(self.store, &summary, self.progress);
        self.saved += usize::from(kept.is_ok());
        self.forecast.learn(step.place, began.elapsed());
        self.progress.note(&(line(&summary) + &self.describe_level(&summary)?));
        for warning in &summary.warnings {
            if SAID_AT_ONCE.iter().any(|code| warning.is(*code)) {
                self.progress.warn(&warning.message);
            }
        }
        self.summaries.push(summary);
        let logged = self.log.as_ref().map_or(Ok(()), |log| locked(log).flush());
        finish([error.map_or(Ok(()), Err), kept, logged], self.progress)
    }

    /// Says whether the step of a search holds its level; nothing of another step.
    fn describe_level(&self, summary: &Summary) -> Result<String> {
        if self.level.is_empty() {
            return Ok(String::new());
        }
        let level: Vec<&str> = self.level.iter().map(|gate| gate.text.as_str()).collect();
        let judged = match judge_level(self.level, summary)?.held {
            Some(true) => "holds",
            Some(false) => "fails",
            None => "is not known",
        };
        Ok(format!("; {} {judged}", level.join(" and ")))
    }

    /// Loads once, and counts afterwards what is there; with `force` over tables that prepare made, too.
    async fn load(
        &mut self,
        at: &PreparedServer<'_>,
        step: &Step,
        (spec, force): (&LoadSpec, bool),
    ) -> Result<Measured> {
        let progress = &mut *self.progress;
        let mut load = Reload::open(at.link, spec, force, progress).await.map_err(reload_error)?;
        let running = async || load.run(progress).await.map(|error| (load.began, error));
        let (mut summary, mut error) = around(at, step, spec.name(), running).await?;
        let loaded = std::mem::take(&mut load.done);
        if error.is_none() {
            progress.update(|| "counting the rows".to_owned());
            error = load.verify(&loaded.tables).await.err();
            progress.clear();
        }
        if error.is_none() && loaded.tables.is_empty() {
            // The writer of a pipe may have failed.
            let text = format!("{}: no table was loaded", spec.name());
            let hint = "is the dump whole? mysqldump writes nothing where it fails";
            error = Some(Error::data(text).hint(hint));
        }
        fill(&mut summary, spec, &loaded, error.is_none());
        let server = &mut summary.server;
        (server.data_bytes, server.table_formats) =
            table_facts(at.link, &loaded.tables).await.unzip();
        server.class = class_by_size(server.data_bytes, server.buffer_pool_bytes);
        Ok(ended(summary, error.map(reload_error)))
    }

    /// Runs the commands once; what they print goes to a new file beside the summaries.
    async fn suite(
        &mut self,
        at: &PreparedServer<'_>,
        step: &Step,
        of: &SuiteSpec,
    ) -> Result<Measured> {
        let running = async || {
            let (label, suite) = (summary::part(&at.begun.label), summary::part(&of.name));
            let name = format!("{label}_suite-{suite}_n{}_{:016x}.output", step.repeat, random()?);
            let path = self.store.dir().join(&name);
            let refused = |e| Error::failed(format!("{}: {e}", path.display()));
            let output = File::create_new(&path).map_err(refused)?;
            let (began, started_at) = (Instant::now(), jiff::Timestamp::now());
            let ServerLink { target, stop, .. } = at.link;
            // It blocks this thread, and there is nothing else for it to do.
            let ran = commands::run_suite(of, target, &output, stop, self.progress)?;
            Ok((began, (name, started_at, ran)))
        };
        let (mut summary, (name, started_at, (tests, error))) =
            around(at, step, format!("suite-{}", of.name), running).await?;
        let sum = |of: fn(&summary::SuiteTest) -> f64| tests.iter().map(of).sum::<f64>();
        summary.started_at = started_at.to_string();
        summary.measured_s = sum(|test| test.wall_s);
        let good = tests.iter().filter(|test| test.status == commands::OK).count() as u64;
        count(&mut summary, good, 0, sum(|test| test.user_s), sum(|test| test.sys_s));
        summary.suite = Some(summary::Suite { tests, output: Some(name) });
        Ok(ended(summary, error))
    }

    async fn sweep(
        &mut self,
        plan: &Plan,
        at: &mut PreparedServer<'_>,
        step: &Step,
    ) -> Result<Measured> {
        self.progress.table(|| table(plan, step, &self.summaries));
        let (window, opened) = watch::channel(None);
        let (changed_before, watch) = self.make_ready(plan, at, &opened).await?;
        let (link, store, begun) = (at.link, self.store, RefCell::new(None));
        let record = record(plan, at, step);
        let first_write = || {
            *begun.borrow_mut() =
                record.as_ref().map(|record| store.begin_record(record)).transpose()?;
            Ok(())
        };
        let here = self.in_profile.as_ref();
        let commands = here.map_or_else(Vec::new, |here| here.commands(&self.run_id, step));
        let beside = beside::start(commands, store.dir(), &opened);
        let (spread, tables, probe) = (at.spread, at.dataset.tables, at.probe.clone());
        let (server, first_write, log) = (Some(&at.begun.server), &first_write, self.log.clone());
        let context = StepContext {
            plan,
            step,
            spread,
            tables,
            link,
            server,
            probe,
            log,
            first_write,
            window,
            observer: self.observer,
            later: self.forecast.later(step.place),
        };
        log_step(&context);
        let run = engine::run_step(&context, &mut at.control, self.progress).await;
        // Ended also where there was no window.
        context.window.send_replace(None);
        let ran = beside::end(beside).await;
        let mut run = run?;
        if run.changed.is_none() {
            // Over a new connection, as the clients' are: an old one may lead to a server that no
            // longer has the address.
            run.changed = engine::changes(&at.begun.server, &mut None, link).await;
        }
        if run.changed.as_deref().is_some_and(is_another) {
            // The next step looks at its tables, too.
            at.control = None;
        }
        let mut summary = engine::summary(&run, &context, begin(&at.begun, step));
        summary.warn(at.warnings.iter().cloned().chain(changed_before));
        let expected = self.in_profile.as_ref().map_or(&[][..], |here| &here.subject.expect);
        summary.conditions = Some(watch.end(plan, expected, &summary).await);
        // Facts that verify needs.
        for entry in &mut summary.ledger {
            entry.table_id = record.as_ref().and_then(|of| of.tables.get(&entry.table).cloned());
        }
        summary.record = begun.take();
        Ok((summary, run.error, ran))
    }

    /// Brings the server into the state that a step starts from, looks at who it is, and begins to
    /// watch it. Returns what to say of a server that changed since the last look. Where lost
    /// connections are opened again, a server that is just gone is waited for; one that is there and
    /// says no for good is not.
    async fn make_ready(
        &mut self,
        plan: &Plan,
        at: &mut PreparedServer<'_>,
        opened: &WindowWatch,
    ) -> Result<(Vec<Finding>, Watch)> {
        let mut patience = Patience::new(plan.policy, &at.link.stop);
        let last = at.begun.server.clone();
        loop {
            // A session that fails or hangs is dropped: the next attempt opens another.
            let attempt = async {
                if at.control.is_none() {
                    self.look_again(at).await?;
                }
                let mut session = at.control.take().expect("it was there, or was opened");
                let (control, progress) = (&mut session, &mut *self.progress);
                let mut preparation = Preparation { plan, at, control, progress };
                let flushed = if self.flush && plan.before.settle.is_none() {
                    Some(preparation.flush().await?)
                } else {
                    None
                };
                let before = preparation.step().await?;
                at.begun.server = at.renew_server(&mut session).await?;
                at.begun.label = self.label_on(&at.begun.server.version);
                let at_start = at.read_levels(&mut session).await?;
                at.control = Some(session);
                self.flush = false;
                let known = Conditions { before, flushed, at_start, ..Conditions::default() };
                Ok(Watch::begin(plan, at, known, opened.clone()).await)
            };
            match attempt.await {
                Ok(watch) => {
                    let changed = changes(&last, &at.begun.server);
                    return Ok((judge::changed_when(&changed, "before this step"), watch));
                }
                Err(error) if patience.wait_again(&error, self.progress).await? => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The server may be another process since its connection was lost, or another server, whose
    /// tables are looked at, too. Where its host does not tell, the steps go on without it.
    async fn look_again(&mut self, at: &mut PreparedServer<'_>) -> Result<()> {
        let mut session = open(at.link, self.charset()).await?;
        let server = at.renew_server(&mut session).await?;
        if is_another(&changes(&at.begun.server, &server)) {
            *at = self.survey(at.link, session).await?;
            return Ok(());
        }
        at.control = Some(session);
        // Its age is not the one of before.
        let server = Whereabouts { uptime_s: None, ..at.whereabouts.clone() };
        match probe(self.prefix.clone(), server, at.begun.client.same_host).await {
            Ok(probe) => at.probe = probe,
            Err(error) => self.progress.warn(&format!("{error}: going on as before")),
        }
        Ok(())
    }
}

/// Tells the interval log that a step begins. Where there are several, their tags differ.
fn log_step(context: &StepContext) {
    let StepContext { plan, step, log: Some(log), .. } = context else { return };
    let (name, cell) = (&plan.workload.name, step.cell().told());
    let Step { place, of, repeat, number, .. } = step;
    let about = format!("step {place} of {of}: {name} {cell}, repeat {repeat}");
    let several = *of > 1 || *number > 1;
    let prefix = if several { format!("step{number}.") } else { String::new() };
    locked(log).step(&about, step.rate.is_some(), &prefix);
}

/// Makes the record of a step that writes, which is there from before its first write to its durable
/// summary; None where no table has an identity.
fn record(plan: &Plan, at: &PreparedServer<'_>, step: &Step) -> Option<Record> {
    let Summary { server, label, .. } = &*at.begun;
    // As in the table's COMMENT.
    let named = |(n, id): (u32, &Option<u32>)| {
        id.map(|id| (at.dataset.tables.schema.name(n), format!("{id:x}")))
    };
    let tables: BTreeMap<String, String> = (1..).zip(&at.dataset.ids).filter_map(named).collect();
    let place = Location::from_variables(&server.variables, server.database.as_deref());
    let what = format!("{}, {}", plan.workload.name, terms::clients(step.clients));
    let some = plan.workload.writes() && !tables.is_empty();
    let id = engine::step_id(&at.begun, step);
    let mut record = Record::new(id, what, plan.workload.built_in, place, tables);
    record.label = Some(label.clone());
    some.then_some(record)
}

/// A step that was measured and is not kept yet, with its error and the commands that ran beside it.
type Measured = (Summary, Option<Error>, Vec<CommandRun>);

/// Does something once, and makes a summary in which only the run itself is missing. Who the server is,
/// and its counters, are read before and after it, each time on a connection of its own. A server
/// that does not answer in time afterwards costs the reading, not the measurement.
async fn around<T>(
    at: &PreparedServer<'_>,
    step: &Step,
    workload: String,
    doing: impl AsyncFnOnce() -> Result<(Instant, T)>,
) -> Result<(Summary, T)> {
    let (link, probe) = (at.link, at.probe.as_ref());
    let mut session = open(link, None).await?;
    let server = at.renew_server(&mut session).await?;
    let mut control = Some(session);
    let first = ServerReading::take(&mut control, probe).await;
    close(control).await;
    let own = ClientReading::now(probe);
    let (began, done) = doing().await?;
    let traffic = ClientReading::now(probe).since(&own).traffic;
    // Not the connection of before: a server drops one that was idle for hours.
    let session = within(limits::COURTESY, Session::open(link, None)).await;
    let mut control = session.and_then(Result::ok);
    let last = ServerReading::take(&mut control, probe).await;
    let changed = engine::changes(&server, &mut control, link).await;
    close(control).await;
    let mut summary = begin(&at.begun, step);
    let (of, plan) = (&mut summary.workload, &mut summary.plan);
    (of.name, of.mode) = (workload, StatementMode::Text);
    (of.distribution, of.schema) = ("sequential".to_owned(), Schema::Sbtest.to_string());
    (plan.clients, plan.engine_threads, plan.repeat_index) = (1, 1, step.repeat);
    summary.client.net_rx_bytes = traffic.map(|[received, _]| received);
    summary.client.net_tx_bytes = traffic.map(|[_, sent]| sent);
    let (latency, none) = (&mut summary.latency, Times::new().distribution());
    (latency.service, latency.failed) = (none.clone(), none);
    (latency.in_doubt, latency.abandoned) = (Some(0), Some(0));
    let (status, probed) = last.since(&first, probe, began);
    summary.warn(cfg!(debug_assertions).then(|| finding!(DebugBuild)));
    summary.warn(changed_after(changed.as_deref()));
    summary.warn(status.is_none().then(|| finding!(NoStatus)));
    summary.server = summary::Server {
        settings_changed: changed.unwrap_or_default(),
        status,
        probed,
        host_facts: host_facts(&at.begun.server, probe),
        ..server
    };
    Ok((summary, done))
}

/// Reads the size of some tables with their indexes, bytes, and their formats, each once; None where
/// the server does not tell.
async fn table_facts(link: &ServerLink, tables: &[LoadedTable]) -> Option<(u64, Vec<String>)> {
    let names: Vec<String> = tables.iter().map(|table| quoted_text(&table.name)).collect();
    if names.is_empty() {
        return None;
    }
    let which = format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({})", names.join(","));
    let asking = async {
        let mut session = Session::open(link, None).await?;
        // MySQL 8 keeps sizes for a day otherwise; servers without the variable keep none.
        let fresh = "SET SESSION information_schema_stats_expiry = 0";
        optional(session.execute(fresh).await)?;
        Ok::<_, Error>(dataset::facts(&mut session, &which).await?)
    };
    within(limits::COURTESY, asking).await?.ok()
}

fn ended(mut summary: Summary, error: Option<Error>) -> Measured {
    summary.outcome = match error.as_ref().map(Error::kind) {
        None => Outcome::Completed,
        Some(Kind::Interrupted | Kind::Terminated) => Outcome::Interrupted,
        Some(_) => Outcome::Aborted,
    };
    summary.reason = error.as_ref().map(ToString::to_string);
    (summary, error, Vec::new())
}

fn per_s(n: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { n as f64 / seconds } else { 0.0 }
}

/// Writes ops and rows of a run, and what follows from them once its time is known.
fn count(summary: &mut Summary, ops: u64, rows: u64, user_s: f64, sys_s: f64) {
    let per_s = per_s(ops, summary.measured_s);
    let (totals, client) = (&mut summary.totals, &mut summary.client);
    (totals.ops, totals.statements, totals.rows) = (ops, ops, rows);
    (totals.tps, totals.qps) = (per_s, per_s);
    totals.per_client = summary::PerClient { ops_min: ops, ops_median: ops as f64, ops_max: ops };
    (client.user_s, client.sys_s) = (user_s, sys_s);
    client.us_per_op = (ops > 0).then(|| (user_s + sys_s) * 1e6 / ops as f64);
}

fn fill(summary: &mut Summary, spec: &LoadSpec, loaded: &Loaded, verified: bool) {
    summary.started_at = loaded.started_at.to_string();
    summary.measured_s = loaded.measured_s;
    let [user_s, sys_s] = [loaded.cost.user, loaded.cost.sys].map(|time| time.as_secs_f64());
    count(summary, loaded.statements, loaded.rows, user_s, sys_s);
    let (tables, plan) = (&loaded.tables, &mut summary.plan);
    let file = match &spec.source {
        LoadSource::Generated { rows, data_seed } => {
            plan.data_seed = Some(u64::from(*data_seed));
            (plan.tables, plan.rows) = (spec.tables, *rows);
            None
        }
        LoadSource::Dump { path } => {
            plan.tables = tables.len() as u32;
            plan.rows = tables.iter().map(|table| table.rows).max().unwrap_or(0);
            Some(path.display().to_string())
        }
    };
    let (bytes, sql) = match spec.insert {
        _ if file.is_some() => (None, "the dump's own"),
        InsertMode::Extended { bytes } => (Some(bytes), "INSERT INTO {table} VALUES (…),(…),…"),
        InsertMode::Single => (None, "INSERT INTO {table} VALUES (…)"),
        InsertMode::LoadData => (None, "LOAD DATA LOCAL INFILE … INTO TABLE {table}"),
    };
    let (kind, sql) = ("insert".to_owned(), sql.to_owned());
    summary.workload.statements = vec![summary::StatementText { kind, sql, repeat: 1 }];
    summary.totals.errors.clone_from(&loaded.errors);
    let ops = |of: &LoadedTable| summary::TableOps { table: of.name.clone(), ops: of.inserts };
    summary.totals.per_table = tables.iter().map(ops).collect();
    summary.latency.service = loaded.timeline.window.service.distribution();
    summary.latency.failed = loaded.timeline.window.failed.distribution();
    summary.timeline.clone_from(&loaded.timeline.entries);
    if loaded.warnings > 0 {
        summary.warn([finding!(ServerWarnings, loaded.warnings)]);
    }
    if let (Some(file), Some(asked)) = (&file, &spec.charset)
        && !asked.eq_ignore_ascii_case(&loaded.charset)
    {
        let (file, set) = (file.clone(), loaded.charset.as_str());
        summary.warn([finding!(Charset, file, set, asked.as_str())]);
    }
    let left_out: Vec<String> =
        loaded.left_out.iter().map(|about| about.name().to_owned()).collect();
    if !left_out.is_empty() {
        summary.warn([finding!(Unsent, left_out.join(", "))]);
    }
    let rows = |of: &LoadedTable| summary::TableRows { table: of.name.clone(), rows: of.rows };
    summary.load = Some(summary::Load {
        source: if file.is_none() { "generated" } else { "dump" }.to_owned(),
        mode: file.is_none().then(|| spec.insert.to_string()),
        insert_bytes: bytes,
        file,
        rows: loaded.rows,
        rows_per_s: per_s(loaded.rows, loaded.measured_s),
        statements: loaded.statements,
        bytes: loaded.bytes,
        charset: loaded.charset.clone(),
        character_sets: loaded.character_sets.clone(),
        tables: tables.iter().map(rows).collect(),
        verified,
        read_before: loaded.read_before,
        left_out,
    });
}

fn line(summary: &Summary) -> String {
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
            let (good, of) = (summary.totals.ops, suite.tests.len());
            format!("{good} of {of} tests in {measured_s:.3} s, {cpu}")
        }
        (None, None) => return step(summary) + &mark,
    };
    format!("{name}: {what}{mark}")
}

/// Tells an open loop with the response time: a closed one has no other than the service time.
fn step(summary: &Summary) -> String {
    let totals = &summary.totals;
    let name = if summary.latency.response.is_some() { "response" } else { "service" };
    let ms = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), millis);
    let mut text = format!(
        "{} {}: {} QPS, {name} time p50 {}, p99 {}, max {}, {}",
        summary.workload.name,
        summary.cell().told(),
        units::rate(totals.qps),
        ms(percentile(summary, 50.0, |times| times.p50_us)),
        ms(percentile(summary, 99.0, |times| times.p99_us)),
        ms(summary.latency.own().max_us),
        counted(summary.failed_ops(), "error"),
    );
    let outages = summary.outages.len() as u64;
    let refused = summary.refused_reconnects();
    for (n, told) in [
        (totals.in_doubt, lost_answers(totals.in_doubt)),
        (refused, format!("{} refused", counted(refused, "reconnect"))),
        (totals.abandoned, format!("{} abandoned", totals.abandoned)),
        // The refused ones are named, or their number would look like another step's.
        (if refused > 0 { 0 } else { totals.reconnects }, counted(totals.reconnects, "reconnect")),
        (outages, counted(outages, "outage")),
    ] {
        if n > 0 {
            text.extend(["; ", &told]);
        }
    }
    let verdict = summary.verdict.as_ref().map(|verdict| verdict.kind);
    if let Some(kind) = verdict.filter(|kind| *kind != VerdictKind::Ok) {
        text.extend([", ", kind.name()]);
    }
    text
}

fn lost_answers(writes: u64) -> String {
    let its = if writes == 1 { "its" } else { "their" };
    format!("{} lost {its} answer", counted(writes, "write"))
}
