//! The steps of a job on a server, one after the other: the one path of every verb that measures,
//! and of profiles.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

pub use super::before::ServerLink;
use super::before::{Patience, Preparation, Surveyed, preflight, probe};
use super::conditions::Watch;
use super::in_profile::InProfile;
use super::timed::{self, Measured};
use super::{conclude, keep, random, told};
use crate::commands::beside;
use crate::engine::{self, Identity, StepContext, Tables, readings};
use crate::error::Result;
use crate::judge::{self, Calibration, is_another, no_result};
use crate::mysql::{Address, Session, changes, exposure, fingerprint};
use crate::observe::host;
use crate::observe::probe::Whereabouts;
use crate::observe::timeline::IntervalLog;
use crate::plan::timed::{LoadSpec, SuiteSpec};
use crate::plan::{Plan, Spread, Step, Warm, limits, units};
use crate::progress::Progress;
use crate::summary::{Outcome, Place, Record, Recorded, Store, Summary};
use crate::terms::{self, Code, Finding};
use crate::workload::Schema;

/// Codes of warnings that a reader of the step's own line must know.
const SAID_AT_ONCE: [Code; 3] = [Code::NotSustained, Code::WarmupBacklog, Code::NothingCompleted];
/// The tables of a job that names none.
const NO_TABLES: Tables =
    Tables { schema: Schema::Sbtest, count: 0, rows: 0, held: None, own: false };

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
    /// How the server's host is read: empty for this one.
    pub(crate) prefix: Vec<String>,
    pub(crate) run_id: String,
    pub(crate) in_profile: Option<InProfile<'a>>,
    pub(crate) calibration: Option<&'a Calibration>,
    pub(crate) log: Option<Arc<Mutex<IntervalLog>>>,
    pub summaries: Vec<Summary>,
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
            summaries: Vec::new(),
        })
    }

    /// Measures one step after the other, each chosen when those before it are measured, on a server
    /// whose tables are there.
    pub async fn run(
        &mut self,
        link: &ServerLink<'_>,
        mut next: impl FnMut(&[Summary]) -> Result<Option<Step>>,
    ) -> Result<()> {
        let control = link.open(self.charset()).await?;
        let mut at = self.survey(link, control).await?;
        while let Some(step) = next(&self.summaries)? {
            link.stop.check()?;
            // Boxed: it holds all that a step is made of.
            Box::pin(self.step(&mut at, &step)).await?;
        }
        // A signal in the last drain cut nothing short, but the caller asked to stop.
        link.stop.check()?;
        if let Some(control) = at.control {
            control.close(limits::COURTESY).await;
        }
        Ok(())
    }

    fn charset(&self) -> Option<&'a str> {
        let Job::Sweep(plan) = self.job else { return None };
        plan.charset.as_deref()
    }

    /// Looks at the server for as long as it answers: random rows of many tables that nothing has
    /// cached take minutes. Reads them where the plan wants them in the pool.
    async fn survey<'l>(
        &mut self,
        link: &'l ServerLink<'l>,
        mut session: Session,
    ) -> Result<Surveyed<'l>> {
        let control = &mut session;
        let look = async |control: &mut Session| self.look(link, control).await;
        let mut at = link.patiently(control, look).await?;
        if let Job::Sweep(plan) = self.job {
            if let (Some(path), None) = (&plan.interval_log, &self.log) {
                let log = IntervalLog::create(path, jiff::Timestamp::now())?;
                self.log = Some(Arc::new(Mutex::new(log)));
            }
            if plan.before.warm == Warm::Pool {
                let progress = &mut *self.progress;
                Preparation { plan, at: &at, control, progress }.warm_pool().await?;
            }
        }
        match self.job {
            Job::Sweep(_) => at.control = Some(session),
            // It would be idle meanwhile, for hours perhaps.
            Job::Load { .. } | Job::Suite(_) => session.close(limits::COURTESY).await,
        }
        Ok(at)
    }

    async fn look<'l>(
        &mut self,
        link: &'l ServerLink<'l>,
        control: &mut Session,
    ) -> Result<Surveyed<'l>> {
        let target = &link.target;
        let (spread, tables, dataset, mut warnings) = match self.job {
            Job::Sweep(plan) => preflight(plan, target, control).await?,
            Job::Load { .. } | Job::Suite(_) => (Spread::Pinned, NO_TABLES, None, Vec::new()),
        };
        warnings.extend(exposure(control, target).await?);
        let (host, port) = match &target.address {
            Address::Tcp { host, port } => (host.as_str(), Some(*port)),
            Address::Socket(_) => ("localhost", None),
        };
        let bytes = dataset.as_ref().map(|dataset| dataset.data_bytes);
        let mut seen = fingerprint(control, host, port, bytes).await?;
        seen.server.table_formats = dataset.as_ref().map(|dataset| dataset.formats.clone());
        if let Some(in_profile) = &mut self.in_profile {
            in_profile.check(&seen.server, dataset.as_ref())?;
        }
        for warning in &warnings {
            self.progress.warn(&warning.to_string());
        }
        let (version, comment) = (&seen.server.version, &seen.server.version_comment);
        let (what, queues) = self.told(spread, tables);
        self.progress.note(&format!("{version} {comment} at {}: {what}", target.address));
        if let Some(text) = queues {
            self.progress.note(&text);
        }
        let (whereabouts, same_host) = (seen.whereabouts, seen.same_host);
        let probe = probe(self.prefix.clone(), whereabouts.clone(), same_host).await?;
        let identity = Identity {
            run_id: self.run_id.clone(),
            label: self.label.clone().unwrap_or_else(|| seen.server.version.clone()),
            notes: self.notes.clone(),
            data_seed: dataset.as_ref().and_then(|dataset| dataset.data_seed),
            server: seen.server,
            driver: seen.driver,
            same_host,
            rtt_us: seen.rtt_us,
            host: host::facts(Path::new(host::ROOT)),
        };
        let (control, ids) = (None, dataset.map_or_else(Vec::new, |dataset| dataset.ids));
        Ok(Surveyed { link, control, identity, probe, warnings, spread, tables, ids, whereabouts })
    }

    fn told(&self, spread: Spread, tables: Tables) -> (String, Option<String>) {
        match self.job {
            Job::Sweep(plan) => {
                let (count, rows) =
                    (terms::counted(tables.count, "table"), units::count(tables.rows));
                let text = format!("{count} of {rows} rows, {spread} clients, seed {}", plan.seed);
                (text, engine::queues_told(plan, spread, tables.count))
            }
            Job::Load { spec, .. } => (spec.name(), None),
            Job::Suite(spec) => (format!("suite {}", spec.name), None),
        }
    }

    async fn step(&mut self, at: &mut Surveyed<'_>, step: &Step) -> Result<()> {
        let nth = (step, self.repeats);
        let measured = match self.job {
            Job::Sweep(plan) => Box::pin(self.sweep(plan, at, step)).await,
            Job::Load { spec, force } => {
                Box::pin(timed::load(at, nth, (spec, force), self.progress)).await
            }
            Job::Suite(spec) => {
                timed::suite(at, nth, (spec, self.store.dir()), self.progress).await
            }
        };
        let Measured { mut summary, mut error, ran, begun } = measured?;
        if error.is_none() {
            error = no_result(&summary.server.settings_changed);
            if let Some(changed) = &error {
                (summary.outcome, summary.reason) =
                    (Outcome::ServerChanged, Some(changed.to_string()));
            }
        }
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
        if let (Ok(()), Some(begun)) = (&kept, begun) {
            begun.superseded();
        }
        self.progress.note(&told::line(&summary));
        for warning in &summary.warnings {
            if SAID_AT_ONCE.iter().any(|code| warning.is(*code)) {
                self.progress.warn(&warning.message);
            }
        }
        self.summaries.push(summary);
        let logged = self.log.as_ref().map_or(Ok(()), |log| locked(log).flush());
        conclude([error.map_or(Ok(()), Err), kept, logged], self.progress)
    }

    async fn sweep(&mut self, plan: &Plan, at: &mut Surveyed<'_>, step: &Step) -> Result<Measured> {
        self.progress.table(|| told::table(plan, step, &self.summaries));
        let (window, opened) = watch::channel(None);
        let (changed_before, watch) = self.make_ready(plan, at, &opened).await?;
        let (link, store, begun) = (at.link, self.store, RefCell::new(None));
        let record = record(plan, at, step);
        let first_write = || {
            *begun.borrow_mut() = record.as_ref().map(|record| store.begin(record)).transpose()?;
            Ok(())
        };
        let here = self.in_profile.as_ref();
        let beside = here.map(|here| here.beside(store, &self.run_id, step, &opened));
        let identity = &at.identity;
        let context = StepContext {
            first_write: &first_write,
            window,
            plan,
            spread: at.spread,
            tables: at.tables,
            target: &link.target,
            server: Some(&identity.server),
            opts: link.opts.clone(),
            probe: at.probe.clone(),
            stop: link.stop,
            log: self.log.clone(),
        };
        log_step(&context, step);
        let run = engine::run_step(&context, step, &mut at.control, self.progress).await;
        // Ended also where there was no window.
        context.window.send_replace(None);
        let ran = match beside {
            Some(running) => beside::end(running).await,
            None => Vec::new(),
        };
        let mut run = run?;
        let changed = if run.changed.is_empty() {
            // Over a new connection, as the clients' are: an old one may lead to a server that no
            // longer has the address.
            readings::changes(&identity.server, &mut None, &link.target, &link.opts).await
        } else {
            Some(std::mem::take(&mut run.changed))
        };
        if changed.as_deref().is_some_and(is_another) {
            // The next step looks at its tables, too.
            at.control = None;
        }
        let mut summary = engine::summary(&run, &context, step, identity, changed);
        summary.warn(at.warnings.iter().cloned().chain(changed_before));
        let expected = self.in_profile.as_ref().map_or(&[][..], |here| &here.subject.expect);
        summary.conditions = Some(watch.end(plan, expected, &summary).await);
        // What verify needs.
        for entry in &mut summary.ledger {
            entry.table_id = record.as_ref().and_then(|of| of.tables.get(&entry.table).cloned());
        }
        let begun = begun.take();
        summary.record = begun.as_ref().map(Recorded::name);
        Ok(Measured { summary, error: run.error, ran, begun })
    }

    /// Brings the server into the state that a step starts from, looks at who it is, and begins to
    /// watch it. Returns what to say of a server that changed since the last look. Where lost
    /// connections are opened again, a server that is just gone is waited for; one that is there and
    /// says no for good is not.
    async fn make_ready(
        &mut self,
        plan: &Plan,
        at: &mut Surveyed<'_>,
        opened: &watch::Receiver<Option<Instant>>,
    ) -> Result<(Vec<Finding>, Watch)> {
        let mut patience = Patience::new(plan.policy, at.link.stop);
        let last = at.identity.server.clone();
        loop {
            match self.attempt(plan, at, opened).await {
                Ok(watch) => {
                    let changed = changes(&last, &at.identity.server);
                    return Ok((judge::changed_when(&changed, "before this step"), watch));
                }
                Err(error) if patience.lasts(&error, self.progress).await? => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A session that fails or hangs is dropped: the next attempt opens another.
    async fn attempt(
        &mut self,
        plan: &Plan,
        at: &mut Surveyed<'_>,
        opened: &watch::Receiver<Option<Instant>>,
    ) -> Result<Watch> {
        if at.control.is_none() {
            self.look_again(at).await?;
        }
        let mut session = at.control.take().expect("it was there, or was opened");
        let (control, progress) = (&mut session, &mut *self.progress);
        let done = Preparation { plan, at, control, progress }.step().await?;
        at.identity.server = at.renewed(&mut session).await?;
        if self.label.is_none() {
            at.identity.label.clone_from(&at.identity.server.version);
        }
        let at_start = at.levels(&mut session).await?;
        at.control = Some(session);
        Ok(Watch::begin(plan, at, done, at_start, opened.clone()).await)
    }

    /// The server may be another process since its connection was lost, or another server, whose
    /// tables are looked at, too. Where its host does not tell, the steps go on without it.
    async fn look_again(&mut self, at: &mut Surveyed<'_>) -> Result<()> {
        let mut session = at.link.open(self.charset()).await?;
        let server = at.renewed(&mut session).await?;
        if is_another(&changes(&at.identity.server, &server)) {
            *at = self.survey(at.link, session).await?;
            return Ok(());
        }
        at.control = Some(session);
        // Its age is not the one of before.
        let server = Whereabouts { uptime_s: None, ..at.whereabouts.clone() };
        match probe(self.prefix.clone(), server, at.identity.same_host).await {
            Ok(probe) => at.probe = probe,
            Err(error) => self.progress.warn(&format!("{error}: going on as before")),
        }
        Ok(())
    }
}

fn locked(log: &Mutex<IntervalLog>) -> MutexGuard<'_, IntervalLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the interval log that a step begins. Where there are several, their tags differ.
fn log_step(context: &StepContext, step: &Step) {
    let Some(log) = &context.log else { return };
    let rate = step.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
    let (name, clients) = (&context.plan.workload.name, terms::clients(step.clients));
    let Step { place, of, repeat, number, .. } = step;
    let about = format!("step {place} of {of}: {name} {clients}{rate}, repeat {repeat}");
    let several = *of > 1 || *number > 1;
    let prefix = if several { format!("step{number}.") } else { String::new() };
    locked(log).step(&about, step.rate.is_some(), &prefix);
}

/// Makes the record of a step that writes, which is there from before its first write to its durable
/// summary; None where no table has an identity.
fn record(plan: &Plan, at: &Surveyed<'_>, step: &Step) -> Option<Record> {
    let Identity { server, label, .. } = &at.identity;
    // As in the table's COMMENT.
    let named =
        |(n, id): (u32, &Option<u32>)| id.map(|id| (at.tables.schema.name(n), format!("{id:x}")));
    let tables: BTreeMap<String, String> = (1..).zip(&at.ids).filter_map(named).collect();
    let place = Place::of(&server.variables, server.database.as_deref());
    let what = format!("{}, {}", plan.workload.name, terms::clients(step.clients));
    let some = plan.workload.writes() && !tables.is_empty();
    let id = at.identity.step_id(step);
    let mut record = Record::new(id, what, plan.workload.built_in, place, tables);
    record.label = Some(label.clone());
    some.then_some(record)
}
