//! The steps of a job on a server, one after the other: the one path of every verb that measures,
//! and of profiles.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::Opts;
use tokio::sync::watch;

use super::before::{self, Preparation};
use super::conditions::{self, Hosts, Watch};
use super::in_profile::InProfile;
use super::reach::Patience;
use super::record::Begin;
use super::timed::{self, Timed};
use super::{conclude, keep, random, told};
use crate::engine::{self, Identity, Run, StepContext, Tables, readings};
use crate::error::{Error, Result};
use crate::judge::{self, Calibration, is_another, no_result};
use crate::mysql::control::explain;
use crate::mysql::dataset::Dataset;
use crate::mysql::liveness::Liveness;
use crate::mysql::options::{Address, ConnectOptions};
use crate::mysql::preflight::{self, Needs};
use crate::mysql::server;
use crate::mysql::session::Session;
use crate::observe::host;
use crate::observe::probe::{Probe, Whereabouts};
use crate::observe::timeline::IntervalLog;
use crate::plan::Warm;
use crate::plan::timed::{LoadSpec, SuiteSpec};
use crate::plan::{Plan, Spread, Step, limits, units};
use crate::progress::Progress;
use crate::stop::{Stop, or_stop, within};
use crate::summary::{self, Outcome, Server, SettingChange, Store, Summary};
use crate::terms::{self, Code, Finding};
use crate::workload::Schema;

/// Codes of warnings that a reader of the step's own line must know.
const SAID_AT_ONCE: [Code; 3] = [Code::NotSustained, Code::WarmupBacklog, Code::NothingCompleted];

/// Those of a job that names none.
const NO_TABLES: Tables =
    Tables { schema: Schema::Sbtest, count: 0, rows: 0, held: None, own: false };

/// What each step measures.
#[derive(Debug, Clone, Copy)]
pub enum Job<'a> {
    /// A workload at a number of clients.
    Sweep(&'a Plan),
    /// A timed load; over tables that prepare made, too, if `force`.
    Load { spec: &'a LoadSpec, force: bool },
    /// Timed commands.
    Suite(&'a SuiteSpec),
}

/// Steps of one job on one server.
pub struct Steps<'a> {
    pub(crate) job: Job<'a>,
    /// The server's version if none.
    pub(crate) label: Option<String>,
    pub(crate) notes: BTreeMap<String, String>,
    /// Repeats of each cell.
    pub(crate) repeats: u32,
    pub(crate) stop: &'a Stop,
    pub(crate) store: &'a Store,
    pub(crate) progress: &'a mut Progress,
    /// How the server's host is read: empty for this one.
    pub(crate) prefix: Vec<String>,
    pub(crate) run_id: String,
    pub(crate) in_profile: Option<InProfile<'a>>,
    /// What this host can generate, where that is known.
    pub(crate) calibration: Option<&'a Calibration>,
    /// What was measured.
    pub summaries: Vec<Summary>,
}

/// What all steps share once the server is known.
pub(super) struct Surveyed {
    pub(super) target: ConnectOptions,
    pub(super) opts: Opts,
    pub(super) identity: Identity,
    /// How its process and host are read, where they can be.
    pub(super) probe: Option<Probe>,
    warnings: Vec<Finding>,
    spread: Spread,
    /// None of a timed job.
    tables: Tables,
    /// Identity of each table's content.
    ids: Vec<Option<u32>>,
    /// What the probe was found by.
    whereabouts: Whereabouts,
    hosts: Hosts,
    log: Option<Arc<Mutex<IntervalLog>>>,
}

impl Surveyed {
    fn preparation<'a>(&'a self, plan: &'a Plan, stop: &'a Stop) -> Preparation<'a> {
        let Surveyed { target, opts, tables, .. } = self;
        Preparation { plan, target, opts, tables: *tables, stop }
    }
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
            summaries: Vec::new(),
        })
    }

    /// Measures steps on a target whose encryption is settled and whose tables are there; `opts` are
    /// [`ConnectOptions::opts`] of it.
    ///
    /// # Errors
    ///
    /// The preflight's, or a step's; what was measured before is in `summaries`.
    pub async fn run(
        &mut self,
        target: &ConnectOptions,
        opts: &Opts,
        steps: &[Step],
    ) -> Result<()> {
        let mut steps = steps.iter().copied();
        self.run_by(target, opts, &mut |_| Ok(steps.next())).await
    }

    /// Measures one step after the other, each chosen when those before it are measured.
    ///
    /// # Errors
    ///
    /// As those of [`Steps::run`], and what `next` says.
    pub(crate) async fn run_by(
        &mut self,
        target: &ConnectOptions,
        opts: &Opts,
        next: &mut dyn FnMut(&[Summary]) -> Result<Option<Step>>,
    ) -> Result<()> {
        let mut control = self.control(target, opts).await?;
        let mut at = self.survey(target, opts, &mut control).await?;
        if let Job::Sweep(plan) = self.job {
            if let Some(path) = &plan.interval_log {
                let log = IntervalLog::create(path, jiff::Timestamp::now())?;
                at.log = Some(Arc::new(Mutex::new(log)));
            }
            self.warm(plan, &at, &mut control).await?;
        }
        let mut control = Some(control);
        while let Some(step) = next(&self.summaries)? {
            self.stop.check()?;
            // Boxed: it holds all that a step is made of.
            Box::pin(self.step(&mut at, &step, &mut control)).await?;
        }
        // A signal in the last drain cut nothing short, but the caller asked to stop.
        self.stop.check()?;
        if let Some(control) = control {
            control.close(limits::COURTESY).await;
        }
        Ok(())
    }

    async fn control(&self, target: &ConnectOptions, opts: &Opts) -> Result<Session> {
        let charset = match self.job {
            Job::Sweep(plan) => plan.charset.as_deref(),
            Job::Load { .. } | Job::Suite(_) => None,
        };
        or_stop(self.stop, Session::open(target, opts, charset)).await
    }

    async fn warm(&mut self, plan: &Plan, at: &Surveyed, control: &mut Session) -> Result<()> {
        if plan.before.warm != Warm::Pool {
            return Ok(());
        }
        before::warm(&at.preparation(plan, self.stop), control, self.progress).await
    }

    /// Preflight and fingerprint, for as long as the server answers.
    async fn survey(
        &mut self,
        target: &ConnectOptions,
        opts: &Opts,
        control: &mut Session,
    ) -> Result<Surveyed> {
        // Random rows of many tables that nothing has cached take minutes.
        let liveness = Liveness::new(target, opts);
        let _waits = liveness.waits(control);
        let stop = self.stop;
        liveness.during(stop, self.look(target.clone(), opts.clone(), control)).await
    }

    async fn look(
        &mut self,
        target: ConnectOptions,
        opts: Opts,
        control: &mut Session,
    ) -> Result<Surveyed> {
        let (data, mut warnings) = match self.job {
            Job::Sweep(plan) => {
                let (dataset, warnings) = dataset(plan, &target, control).await?;
                (Some((plan, dataset)), warnings)
            }
            Job::Load { .. } | Job::Suite(_) => (None, Vec::new()),
        };
        warnings.extend(server::exposure(control, &target).await?);
        let (spread, tables) = match &data {
            Some((plan, dataset)) => tables(plan, dataset)?,
            None => (Spread::Pinned, NO_TABLES),
        };
        let (host, port) = match &target.address {
            Address::Tcp { host, port } => (host.as_str(), Some(*port)),
            Address::Socket(_) => ("localhost", None),
        };
        let dataset = data.map(|(_, dataset)| dataset);
        let bytes = dataset.as_ref().map(|dataset| dataset.data_bytes);
        let mut seen = server::fingerprint(control, host, port, bytes).await?;
        seen.server.table_formats = dataset.as_ref().map(|dataset| dataset.formats.clone());
        if let Some(in_profile) = &mut self.in_profile {
            in_profile.check(&seen.server, dataset.as_ref())?;
        }
        for warning in &warnings {
            self.progress.warn(&warning.to_string());
        }
        let server = &seen.server;
        let (version, comment) = (&server.version, &server.version_comment);
        let what = self.told(spread, &tables);
        self.progress.note(&format!("{version} {comment} at {}: {what}", target.address));
        if let Job::Sweep(plan) = self.job
            && let Some(text) = engine::queues_told(plan, spread, tables.count)
        {
            self.progress.note(&text);
        }
        let identity = Identity {
            run_id: self.run_id.clone(),
            label: self.label.clone().unwrap_or_else(|| seen.server.version.clone()),
            notes: self.notes.clone(),
            data_seed: dataset.as_ref().and_then(|dataset| dataset.data_seed),
            server: seen.server,
            driver: seen.driver,
            same_host: seen.same_host,
            rtt_us: seen.rtt_us,
            host: host::facts(Path::new(host::ROOT)),
        };
        let whereabouts = seen.whereabouts;
        let probe = probe(self.prefix.clone(), whereabouts.clone(), seen.same_host).await?;
        let hosts = Hosts::of(probe.as_ref());
        let ids = dataset.map_or_else(Vec::new, |dataset| dataset.ids);
        let log = None;
        Ok(Surveyed {
            target,
            opts,
            identity,
            probe,
            warnings,
            spread,
            tables,
            ids,
            whereabouts,
            hosts,
            log,
        })
    }

    /// Says what is going to be measured.
    fn told(&self, spread: Spread, tables: &Tables) -> String {
        match self.job {
            Job::Sweep(plan) => format!(
                "{} {} of {} rows, {spread} clients, seed {}",
                tables.count,
                if tables.count == 1 { "table" } else { "tables" },
                units::count(tables.rows),
                plan.seed
            ),
            Job::Load { spec, .. } => spec.name(),
            Job::Suite(spec) => format!("suite {}", spec.name),
        }
    }

    async fn step(
        &mut self,
        at: &mut Surveyed,
        step: &Step,
        control: &mut Option<Session>,
    ) -> Result<()> {
        let Job::Sweep(plan) = self.job else {
            return Box::pin(self.timed(at, step, control)).await;
        };
        self.progress.table(|| told::table(plan, step, &self.summaries));
        let (window, opened) = watch::channel(None);
        let (changed_before, watch) = self.make_ready(plan, at, control, &opened).await?;
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
            target: &at.target,
            server: Some(&identity.server),
            opts: at.opts.clone(),
            probe: at.probe.clone(),
            stop: self.stop,
            log: at.log.clone(),
        };
        log_step(&context, step);
        let run = engine::run_step(&context, step, control, self.progress).await;
        // Ended also where there was no window.
        context.window.send_replace(None);
        let ran = match beside {
            Some(beside) => beside.end().await,
            None => Vec::new(),
        };
        let mut run = run?;
        let changed = changes(&mut run, &identity.server, at, control).await;
        let mut summary = engine::summary(&run, &context, step, &identity, changed);
        summary.warn(at.warnings.iter().cloned().chain(changed_before));
        if let Some(here) = &self.in_profile {
            here.sign(&mut summary, step, ran);
        }
        let expected = self.in_profile.as_ref().map_or(&[][..], |here| here.expect);
        summary.conditions = Some(watch.end(plan, expected, &summary).await);
        let found = judge::warnings(&summary);
        summary.warn(found);
        judge::calibrate(&mut summary, self.calibration);
        summary.verdict = judge::verdict(&summary);
        begin.sign(&mut summary);
        let kept = self.keep(summary);
        if kept.is_ok() {
            begin.settled();
        }
        let logged = at
            .log
            .as_ref()
            .map_or(Ok(()), |log| log.lock().unwrap_or_else(PoisonError::into_inner).flush());
        conclude([run.error.map_or(Ok(()), Err), kept, logged], self.progress)
    }

    /// A load or a suite.
    async fn timed(
        &mut self,
        at: &Surveyed,
        step: &Step,
        control: &mut Option<Session>,
    ) -> Result<()> {
        if let Some(control) = control.take() {
            // It would be idle meanwhile, for hours perhaps.
            control.close(limits::COURTESY).await;
        }
        let title = self.in_profile.as_ref().map(|here| here.title.to_owned());
        let timed = Timed { at, stop: self.stop, step, repeats: self.repeats, title };
        let measured = match self.job {
            Job::Load { spec, force } => {
                Box::pin(timed::load(&timed, spec, force, self.progress)).await
            }
            Job::Suite(spec) => timed::suite(&timed, spec, self.store.dir(), self.progress).await,
            Job::Sweep(_) => unreachable!("a sweep has a window"),
        };
        let as_here = |error: Error| match &self.in_profile {
            Some(_) => timed::as_a_profile_says(error),
            None => error,
        };
        let (mut summary, error) = measured.map_err(as_here)?;
        if let Some(here) = &self.in_profile {
            here.sign(&mut summary, step, Vec::new());
        }
        let ended = error.map(as_here).map_or(Ok(()), Err);
        let kept = self.keep(summary);
        conclude([ended, kept], self.progress)
    }

    /// Brings the server into the state that a step starts from, looks at who it is, and begins to
    /// watch it. Returns what to say of a server that changed since the last look. Where lost
    /// connections are opened again, a server that is just gone is waited for; one that is there and
    /// says no for good is not.
    async fn make_ready(
        &mut self,
        plan: &Plan,
        at: &mut Surveyed,
        control: &mut Option<Session>,
        opened: &watch::Receiver<Option<Instant>>,
    ) -> Result<(Vec<Finding>, Watch)> {
        let mut patience = Patience::new(plan.policy, self.stop);
        let last = at.identity.server.clone();
        loop {
            let error = match self.attempt(plan, at, control, opened).await {
                Ok(watch) => {
                    let changed = server::changes(&last, &at.identity.server);
                    return Ok((judge::changed_when(&changed, "before this step"), watch));
                }
                Err(error) => error,
            };
            if !patience.lasts(&error, self.progress).await? {
                return Err(error);
            }
        }
    }

    /// A session that fails or hangs is dropped: the next attempt opens another.
    async fn attempt(
        &mut self,
        plan: &Plan,
        at: &mut Surveyed,
        control: &mut Option<Session>,
        opened: &watch::Receiver<Option<Instant>>,
    ) -> Result<Watch> {
        let (mut session, reopened) = match control.take() {
            Some(session) => (session, false),
            None => (self.control(&at.target, &at.opts).await?, true),
        };
        let stop = self.stop;
        if reopened {
            self.look_again(plan, at, &mut session).await?;
        }
        let preparation = at.preparation(plan, stop);
        let done = before::step(&preparation, &mut session, self.progress).await?;
        at.identity.server = self.server(at, &mut session).await?;
        if self.label.is_none() {
            at.identity.label.clone_from(&at.identity.server.version);
        }
        let reading = conditions::levels(&mut session, at.tables);
        let at_start = answer(stop, &at.target.address, reading).await?;
        *control = Some(session);
        // Looking into the window needs a connection of its own, where there is an InnoDB.
        let pool = at_start.as_ref().is_some_and(|levels| levels.pool_pages.is_some());
        let looking = if pool && conditions::length(plan).is_some() {
            let opening = Session::open(&at.target, &at.opts, None);
            within(limits::COURTESY, opening).await.and_then(Result::ok)
        } else {
            None
        };
        let opened = opened.clone();
        Ok(Watch::begin(plan, &at.hosts, done, at_start, looking, opened).await)
    }

    /// Who answers now, and how it is set up.
    async fn server(&self, at: &Surveyed, session: &mut Session) -> Result<Server> {
        let mut server = at.identity.server.clone();
        let reading = async {
            let read = server::renew(session, &mut server).await;
            read.map_err(|failure| explain(&failure, "read the server's version and variables"))
        };
        answer(self.stop, &at.target.address, reading).await?;
        Ok(server)
    }

    /// The server may be another process since its connection was lost, or another server, whose
    /// tables are looked at, too. Where its host does not tell, the steps go on without it.
    async fn look_again(
        &mut self,
        plan: &Plan,
        at: &mut Surveyed,
        session: &mut Session,
    ) -> Result<()> {
        let server = self.server(at, session).await?;
        if is_another(&server::changes(&at.identity.server, &server)) {
            let (target, opts) = (at.target.clone(), at.opts.clone());
            // A survey that fails is tried again: the log stays until then.
            let surveyed = self.survey(&target, &opts, session).await?;
            *at = Surveyed { log: at.log.take(), ..surveyed };
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

    /// Keeps a summary, and says what it came to.
    fn keep(&mut self, summary: Summary) -> Result<()> {
        let kept = keep(self.store, &summary, self.progress);
        self.progress.note(&told::line(&summary));
        let said = |w: &&summary::Warning| SAID_AT_ONCE.iter().any(|code| w.is(*code));
        for warning in summary.warnings.iter().filter(said) {
            self.progress.warn(&warning.message);
        }
        self.summaries.push(summary);
        kept
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
async fn changes(
    run: &mut Run,
    before: &Server,
    at: &Surveyed,
    control: &mut Option<Session>,
) -> Option<Vec<SettingChange>> {
    let changed = if run.changed.is_empty() {
        // Over a new connection, as the clients' are: an old one may lead to a server that no
        // longer has the address.
        let changed = readings::changes(before, &mut None, &at.target, &at.opts).await;
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

/// Refuses a server or tables that a sweep cannot run on; says what there is.
async fn dataset(
    plan: &Plan,
    target: &ConnectOptions,
    control: &mut Session,
) -> Result<(Dataset, Vec<Finding>)> {
    let spread = |tables| plan.spread_over(tables).unwrap_or(Spread::Random);
    let statements = |tables| plan.prepared_by_table(spread(tables), tables);
    let needs = Needs {
        database: &target.database,
        schema: plan.workload.schema,
        tables: plan.tables,
        rows: plan.rows,
        seed: plan.seed,
        clients_max: plan.clients_max(),
        statements: &statements,
        writes: plan.workload.writes(),
        quiet_max: opening_at_most(plan.clients_max()),
    };
    let ready = preflight::check(control, &needs).await?;
    Ok((ready.dataset, ready.warnings))
}

/// Decides how the clients of a sweep meet its tables.
fn tables(plan: &Plan, dataset: &Dataset) -> Result<(Spread, Tables)> {
    let spread = plan.spread_over(dataset.tables)?;
    if plan.workload.schema.filled() {
        plan.workload.fits(dataset.rows)?;
    }
    let tables = Tables {
        schema: plan.workload.schema,
        count: dataset.tables,
        rows: dataset.rows,
        held: dataset.held,
        own: dataset.own,
    };
    Ok((spread, tables))
}

/// How the server's process and host can be looked at: as `--probe` says, else here where the
/// server runs on this host.
pub(super) async fn probe(
    prefix: Vec<String>,
    server: Whereabouts,
    same_host: bool,
) -> Result<Option<Probe>> {
    // It reads many files, or waits for a command: not on the thread that keeps time.
    let looking = readings::aside(move || match prefix.as_slice() {
        [] => Ok(same_host.then(|| Probe::local(&server))),
        prefix => {
            let probe = Probe::through(prefix, &server)?;
            Ok(Some(if same_host { probe.beside(&server) } else { probe }))
        }
    });
    looking.await.map_err(|_| {
        Error::failed("cannot look at the server's host: there is no thread to be had")
            .hint("raise the limit on processes (ulimit -u)")
    })?
}

/// Asks the server until it is silent for too long, or a signal. Either way the future is dropped,
/// and its session must be, too.
pub(super) async fn answer<T>(
    stop: &Stop,
    address: &Address,
    asking: impl Future<Output = Result<T>>,
) -> Result<T> {
    within(limits::SILENCE, or_stop(stop, asking)).await.unwrap_or_else(|| {
        let limit = units::duration(limits::SILENCE);
        Err(Error::server(format!("{address} has not answered within {limit}"))
            .hint("it is stopped, out of reach or very busy")
            .passing(true))
    })
}

/// How long opening so many connections takes at the least, doubled for slow servers.
fn opening_at_most(clients: u32) -> Duration {
    Duration::from_secs(2) * clients / limits::CONNECTS_PER_S + limits::COURTESY
}
