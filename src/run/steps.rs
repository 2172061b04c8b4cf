//! The steps of a job on a server, one after the other: the one path of every verb that measures,
//! and of profiles.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use mysql_async::Opts;
use tokio::sync::watch;

use super::before::Preparation;
use super::conditions::Watch;
use super::in_profile::InProfile;
use super::survey::{self, Hosts, Patience, ServerLink, Surveyed, probe};
use super::timed::Timed;
use super::{conclude, keep, random, told};
use crate::commands::beside;
use crate::engine::{self, Identity, Run, StepContext, Tables, readings};
use crate::error::{Error, Result};
use crate::judge::{self, Calibration, is_another, no_result};
use crate::load::reload::FORCE;
use crate::mysql::options::{Address, ConnectOptions};
use crate::mysql::server::{changes, exposure, fingerprint};
use crate::mysql::session::Session;
use crate::observe::host;
use crate::observe::probe::Whereabouts;
use crate::observe::timeline::IntervalLog;
use crate::plan::timed::{LoadSpec, SuiteSpec};
use crate::plan::{Plan, Spread, Step, Warm, limits, units};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::{
    CommandRun, Outcome, Place, Record, Recorded, Server, SettingChange, Store, Summary,
};
use crate::terms::{self, Code, Finding};
use crate::workload::Schema;

/// Codes of warnings that a reader of the step's own line must know.
const SAID_AT_ONCE: [Code; 3] = [Code::NotSustained, Code::WarmupBacklog, Code::NothingCompleted];
/// The tables of a job that names none.
const NO_TABLES: Tables =
    Tables { schema: Schema::Sbtest, count: 0, rows: 0, held: None, own: false };
/// [`FORCE`], as a profile says it.
const REFILL: &str =
    "refill = true in [tables] drops also what prepare made; or name another database";

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
    pub(crate) stop: &'a Stop,
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

/// A step that was measured, and is not kept yet.
struct Measured {
    summary: Summary,
    error: Option<Error>,
    ran: Vec<CommandRun>,
    /// The record of what it was about to write.
    begun: Option<Recorded>,
}

impl<'a> Steps<'a> {
    /// Makes an invocation's first and only job, without a label.
    pub fn new(
        job: Job<'a>,
        stop: &'a Stop,
        store: &'a Store,
        progress: &'a mut Progress,
    ) -> Result<Steps<'a>> {
        Ok(Steps {
            job,
            label: None,
            notes: BTreeMap::new(),
            repeats: 1,
            stop,
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

    /// Measures steps on a target whose encryption is settled and whose tables are there; `opts` are
    /// [`ConnectOptions::opts`] of it.
    pub async fn run(
        &mut self,
        target: &ConnectOptions,
        opts: &Opts,
        steps: &[Step],
    ) -> Result<()> {
        let link = ServerLink { target: target.clone(), opts: opts.clone(), stop: self.stop };
        let mut steps = steps.iter().copied();
        self.run_by(&link, &mut |_| Ok(steps.next())).await
    }

    /// Measures one step after the other, each chosen when those before it are measured.
    pub(super) async fn run_by(
        &mut self,
        link: &ServerLink<'_>,
        next: &mut dyn FnMut(&[Summary]) -> Result<Option<Step>>,
    ) -> Result<()> {
        let mut control = link.open(self.charset()).await?;
        let mut at = self.survey(link, &mut control).await?;
        if let Job::Sweep(plan) = self.job {
            if let Some(path) = &plan.interval_log {
                let log = IntervalLog::create(path, jiff::Timestamp::now())?;
                self.log = Some(Arc::new(Mutex::new(log)));
            }
            self.warm(plan, &at, &mut control).await?;
        }
        at.control = Some(control);
        while let Some(step) = next(&self.summaries)? {
            self.stop.check()?;
            // Boxed: it holds all that a step is made of.
            Box::pin(self.step(&mut at, &step)).await?;
        }
        // A signal in the last drain cut nothing short, but the caller asked to stop.
        self.stop.check()?;
        if let Some(control) = at.control {
            control.close(limits::COURTESY).await;
        }
        Ok(())
    }

    fn charset(&self) -> Option<&'a str> {
        match self.job {
            Job::Sweep(plan) => plan.charset.as_deref(),
            Job::Load { .. } | Job::Suite(_) => None,
        }
    }

    async fn warm(&mut self, plan: &Plan, at: &Surveyed<'_>, control: &mut Session) -> Result<()> {
        if plan.before.warm != Warm::Pool {
            return Ok(());
        }
        Preparation { plan, at, control, progress: self.progress }.warm_pool().await
    }

    /// Looks at the server for as long as it answers: random rows of many tables that nothing has
    /// cached take minutes.
    async fn survey<'l>(
        &mut self,
        link: &ServerLink<'l>,
        control: &mut Session,
    ) -> Result<Surveyed<'l>> {
        link.patiently(control, async |control| self.look(link.clone(), control).await).await
    }

    async fn look<'l>(
        &mut self,
        link: ServerLink<'l>,
        control: &mut Session,
    ) -> Result<Surveyed<'l>> {
        let target = &link.target;
        let (mut spread, mut tables, mut dataset) = (Spread::Pinned, NO_TABLES, None);
        let mut warnings = Vec::new();
        if let Job::Sweep(plan) = self.job {
            let (ready, met, used) = survey::preflight(plan, target, control).await?;
            (spread, tables, dataset, warnings) = (met, used, Some(ready.dataset), ready.warnings);
        }
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
        self.tell(&seen.server, target, spread, tables, &warnings);
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
        let hosts = Hosts::of(probe.as_ref());
        let ids = dataset.map_or_else(Vec::new, |dataset| dataset.ids);
        let control = None;
        Ok(Surveyed {
            link,
            control,
            identity,
            probe,
            warnings,
            spread,
            tables,
            ids,
            whereabouts,
            hosts,
        })
    }

    fn tell(
        &mut self,
        server: &Server,
        target: &ConnectOptions,
        spread: Spread,
        tables: Tables,
        warnings: &[Finding],
    ) {
        for warning in warnings {
            self.progress.warn(&warning.to_string());
        }
        let (what, queues) = match self.job {
            Job::Sweep(plan) => {
                let (count, rows) =
                    (terms::counted(tables.count, "table"), units::count(tables.rows));
                let text = format!("{count} of {rows} rows, {spread} clients, seed {}", plan.seed);
                (text, engine::queues_told(plan, spread, tables.count))
            }
            Job::Load { spec, .. } => (spec.name(), None),
            Job::Suite(spec) => (format!("suite {}", spec.name), None),
        };
        let (version, comment) = (&server.version, &server.version_comment);
        self.progress.note(&format!("{version} {comment} at {}: {what}", target.address));
        if let Some(text) = queues {
            self.progress.note(&text);
        }
    }

    async fn step(&mut self, at: &mut Surveyed<'_>, step: &Step) -> Result<()> {
        let measured = match self.job {
            Job::Sweep(plan) => Box::pin(self.sweep(plan, at, step)).await,
            Job::Load { .. } | Job::Suite(_) => Box::pin(self.timed(at, step)).await,
        };
        let Measured { mut summary, error, ran, begun } = measured?;
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
        let log = self.log.as_ref().map(|log| log.lock().unwrap_or_else(PoisonError::into_inner));
        let logged = log.map_or(Ok(()), |mut log| log.flush());
        conclude([error.map_or(Ok(()), Err), kept, logged], self.progress)
    }

    async fn sweep(&mut self, plan: &Plan, at: &mut Surveyed<'_>, step: &Step) -> Result<Measured> {
        self.progress.table(|| told::table(plan, step, &self.summaries));
        let (window, opened) = watch::channel(None);
        let (changed_before, watch) = self.make_ready(plan, at, &opened).await?;
        let identity = at.identity.clone();
        let ids = if plan.workload.writes() { at.ids.as_slice() } else { &[] };
        let begin = Begin::new(self.store, plan, at.tables, ids, &identity, step);
        let first_write = || begin.first_write();
        let beside = self.in_profile.as_ref().map(|here| here.beside(self.store, step, &opened));
        let context = StepContext {
            first_write: &first_write,
            window,
            plan,
            spread: at.spread,
            tables: at.tables,
            target: &at.link.target,
            server: Some(&identity.server),
            opts: at.link.opts.clone(),
            probe: at.probe.clone(),
            stop: self.stop,
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
        let changed = changed_over(&mut run, &identity.server, &at.link, &mut at.control).await;
        let mut summary = engine::summary(&run, &context, step, &identity, changed);
        summary.warn(at.warnings.iter().cloned().chain(changed_before));
        let expected = self.in_profile.as_ref().map_or(&[][..], |here| &here.subject.expect);
        summary.conditions = Some(watch.end(plan, expected, &summary).await);
        let begun = begin.sign(&mut summary);
        Ok(Measured { summary, error: run.error, ran, begun })
    }

    async fn timed(&mut self, at: &mut Surveyed<'_>, step: &Step) -> Result<Measured> {
        if let Some(control) = at.control.take() {
            // It would be idle meanwhile, for hours perhaps.
            control.close(limits::COURTESY).await;
        }
        let title = self.in_profile.as_ref().map(|here| here.part.title.clone());
        // A profile has no such flag.
        let spelt = |error: Error| match title {
            Some(_) => error.instead(FORCE, REFILL),
            None => error,
        };
        let timed = Timed { at, step, repeats: self.repeats, title: title.as_deref() };
        let measured = match self.job {
            Job::Load { spec, force } => Box::pin(timed.load(spec, force, self.progress)).await,
            Job::Suite(spec) => timed.suite(spec, self.store.dir(), self.progress).await,
            Job::Sweep(_) => unreachable!("a sweep has a window"),
        };
        let (summary, error) = measured.map_err(spelt)?;
        Ok(Measured { summary, error: error.map(spelt), ran: Vec::new(), begun: None })
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
        let mut patience = Patience::new(plan.policy, self.stop);
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
        let there = at.control.take();
        let lost = there.is_none();
        let mut session = match there {
            Some(session) => session,
            None => at.link.open(self.charset()).await?,
        };
        if lost {
            self.look_again(plan, at, &mut session).await?;
        }
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
    async fn look_again(
        &mut self,
        plan: &Plan,
        at: &mut Surveyed<'_>,
        session: &mut Session,
    ) -> Result<()> {
        let server = at.renewed(session).await?;
        if is_another(&changes(&at.identity.server, &server)) {
            let link = at.link.clone();
            *at = self.survey(&link, session).await?;
            return self.warm(plan, at, session).await;
        }
        // Its age is not the one of before.
        let server = Whereabouts { uptime_s: None, ..at.whereabouts.clone() };
        match probe(self.prefix.clone(), server, at.identity.same_host).await {
            Ok(probe) => at.probe = probe,
            Err(error) => self.progress.warn(&format!("{error}: going on as before")),
        }
        Ok(())
    }
}

/// Tells the interval log that a step begins. Where there are several, their tags differ.
fn log_step(context: &StepContext, step: &Step) {
    let Some(log) = &context.log else { return };
    let rate = step.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
    let about = format!(
        "step {} of {}: {} {}{rate}, repeat {}",
        step.place,
        step.of,
        context.plan.workload.name,
        terms::clients(step.clients),
        step.repeat
    );
    let several = step.of > 1 || step.number > 1;
    let prefix = if several { format!("step{}.", step.number) } else { String::new() };
    log.lock().unwrap_or_else(PoisonError::into_inner).step(&about, step.rate.is_some(), &prefix);
}

/// Tells what of the server changed over the step; a step on another one is no result.
async fn changed_over(
    run: &mut Run,
    before: &Server,
    link: &ServerLink<'_>,
    control: &mut Option<Session>,
) -> Option<Vec<SettingChange>> {
    let changed = if run.changed.is_empty() {
        // Over a new connection, as the clients' are: an old one may lead to a server that no
        // longer has the address.
        let changed = readings::changes(before, &mut None, &link.target, &link.opts).await;
        if changed.as_deref().is_some_and(is_another) {
            // The next step looks at its tables, too.
            *control = None;
        }
        changed
    } else {
        Some(std::mem::take(&mut run.changed))
    };
    if run.error.is_none()
        && let Some(error) = changed.as_deref().and_then(no_result)
    {
        (run.outcome, run.error) = (Outcome::ServerChanged, Some(error));
    }
    changed
}

/// The record of a step that writes, from before its first write to its durable summary.
struct Begin<'a> {
    store: &'a Store,
    /// None where no table has an identity.
    record: Option<Record>,
    made: RefCell<Option<Recorded>>,
}

impl<'a> Begin<'a> {
    /// Makes ready what the record says. `ids` are the identities of the first tables, in order: none
    /// of a step that writes nothing, which leaves no record.
    fn new(
        store: &'a Store,
        plan: &Plan,
        tables: Tables,
        ids: &[Option<u32>],
        identity: &Identity,
        step: &Step,
    ) -> Begin<'a> {
        let name = |number: u32| tables.schema.name(number);
        // As in the table's COMMENT.
        let known = (1..).zip(ids).filter_map(|(n, id)| id.map(|id| (name(n), format!("{id:x}"))));
        let tables: BTreeMap<String, String> = known.collect();
        let server = &identity.server;
        let place = Place::of(&server.variables, server.database.as_deref());
        let what = format!("{}, {}", plan.workload.name, terms::clients(step.clients));
        let some = !tables.is_empty();
        let id = identity.step_id(step);
        let mut record = Record::new(id, what, plan.workload.built_in, place, tables);
        record.label = Some(identity.label.clone());
        Begin { store, record: some.then_some(record), made: RefCell::default() }
    }

    fn first_write(&self) -> Result<()> {
        if let Some(record) = &self.record {
            *self.made.borrow_mut() = Some(self.store.begin(record)?);
        }
        Ok(())
    }

    /// Puts into a summary what verify needs. Returns what is superseded when it is durable.
    fn sign(&self, summary: &mut Summary) -> Option<Recorded> {
        for entry in &mut summary.ledger {
            let tables = self.record.as_ref().map(|record| &record.tables);
            entry.table_id = tables.and_then(|tables| tables.get(&entry.table).cloned());
        }
        let made = self.made.take();
        summary.record = made.as_ref().map(Recorded::name);
        made
    }
}
