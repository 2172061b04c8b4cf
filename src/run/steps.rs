//! The steps of a plan on a server, one after the other: the one path of a workload's verb and of
//! a profile.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::Opts;
use tokio::sync::watch;

use super::before::{self, Ground};
use super::board::board;
use super::conditions::{self, Hosts, Watch};
use super::reach::Patience;
use super::record::Begin;
use super::role::Role;
use super::{conclude, keep, lines};
use crate::engine::{self, Identity, Stage, Tables, edge};
use crate::error::{Error, Result};
use crate::mysql::ask::explain;
use crate::mysql::preflight::{self, Needs, Ready};
use crate::mysql::pulse::Pulse;
use crate::mysql::session::Session;
use crate::mysql::target::{Address, Target};
use crate::mysql::{exposure, fingerprint};
use crate::observe::host;
use crate::observe::interval_log::IntervalLog;
use crate::observe::probe::{Probe, Whereabouts};
use crate::plan::before::Warm;
use crate::plan::{Plan, Spread, Step, limits, units};
use crate::progress::Progress;
use crate::stop::{Stop, or_stop};
use crate::summary::identity::{self, is_another, no_result};
use crate::summary::{Calibration, Outcome, Server, Store, Summary, Verdict, Warning};
use crate::terms;
use crate::warnings;

/// Codes of warnings that a reader of the step's own line must know.
const SAID_AT_ONCE: [&str; 3] = ["target_not_sustained", "warmup_backlog", "nothing_completed"];

/// Steps of one plan on one server.
pub(crate) struct Sweep<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) stop: &'a Stop,
    pub(crate) store: &'a Store,
    pub(crate) progress: &'a mut Progress,
    /// How the server's host is read: empty for this one.
    pub(crate) prefix: Vec<String>,
    pub(crate) run_id: String,
    /// Their part in a profile.
    pub(crate) role: Option<Role<'a>>,
    /// What this host can generate, where that is known.
    pub(crate) calibration: Option<&'a Calibration>,
    /// What was measured.
    pub(crate) summaries: Vec<Summary>,
}

/// What all steps of a sweep share once the server is known.
struct Scene {
    target: Target,
    opts: Opts,
    identity: Identity,
    warnings: Vec<Warning>,
    spread: Spread,
    tables: Tables,
    /// Identity of each table's content.
    ids: Vec<Option<u32>>,
    probe: Option<Probe>,
    /// What the probe was found by.
    whereabouts: Whereabouts,
    hosts: Hosts,
    log: Option<Arc<Mutex<IntervalLog>>>,
}

impl Scene {
    fn ground<'a>(&'a self, plan: &'a Plan, stop: &'a Stop) -> Ground<'a> {
        let Scene { target, opts, tables, .. } = self;
        Ground { plan, target, opts, tables: *tables, stop }
    }
}

impl Sweep<'_> {
    /// Runs steps of the plan on a target whose encryption is settled and whose tables are there;
    /// `opts` are [`Target::opts`] of it.
    ///
    /// # Errors
    ///
    /// The preflight's, or a step's; what was measured before is in `summaries`.
    pub(crate) async fn run(&mut self, target: &Target, opts: &Opts, steps: &[Step]) -> Result<()> {
        let mut steps = steps.iter().copied();
        self.run_by(target, opts, &mut |_| Ok(steps.next())).await
    }

    /// Runs one step after the other, each chosen when those before it are measured.
    ///
    /// # Errors
    ///
    /// As those of [`Sweep::run`], and what `next` says.
    pub(crate) async fn run_by(
        &mut self,
        target: &Target,
        opts: &Opts,
        next: &mut dyn FnMut(&[Summary]) -> Result<Option<Step>>,
    ) -> Result<()> {
        let mut control = self.control(target, opts).await?;
        let stop = self.stop;
        let mut scene = self.survey(target, opts, &mut control).await?;
        if let Some(path) = &self.plan.interval_log {
            let log = IntervalLog::create(path, jiff::Timestamp::now())?;
            scene.log = Some(Arc::new(Mutex::new(log)));
        }
        if self.plan.before.warm == Warm::Pool {
            let ground = scene.ground(self.plan, stop);
            before::warm(&ground, &mut control, self.progress).await?;
        }
        let mut control = Some(control);
        while let Some(step) = next(&self.summaries)? {
            self.stop.check()?;
            // Boxed: it holds all that a step is made of.
            Box::pin(self.step(&mut scene, &step, &mut control)).await?;
        }
        // A signal in the last drain cut nothing short, but the caller asked to stop.
        self.stop.check()?;
        if let Some(control) = control {
            control.close(limits::COURTESY).await;
        }
        Ok(())
    }

    async fn control(&self, target: &Target, opts: &Opts) -> Result<Session> {
        or_stop(self.stop, Session::open(target, opts, self.plan.charset.as_deref())).await
    }

    /// Preflight and fingerprint, for as long as the server answers.
    async fn survey(
        &mut self,
        target: &Target,
        opts: &Opts,
        control: &mut Session,
    ) -> Result<Scene> {
        // Random rows of many tables that nothing has cached take minutes.
        let pulse = Pulse::new(target, opts);
        let _waits = pulse.waits(control);
        let stop = self.stop;
        pulse.during(stop, self.look(target.clone(), opts.clone(), control)).await
    }

    async fn look(&mut self, target: Target, opts: Opts, control: &mut Session) -> Result<Scene> {
        let plan = self.plan;
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
        let Ready { product, dataset, mut warnings } = preflight::check(control, &needs).await?;
        warnings.extend(exposure::look(control, &target).await?);
        let spread = plan.spread_over(dataset.tables)?;
        if plan.workload.schema.filled() {
            plan.workload.fits(dataset.rows)?;
        }
        let (host, port) = match &target.address {
            Address::Tcp { host, port } => (host.as_str(), Some(*port)),
            Address::Socket(_) => ("localhost", None),
        };
        let mut seen = fingerprint::server(control, host, port, Some(dataset.data_bytes)).await?;
        seen.server.table_formats = Some(dataset.formats.clone());
        if let Some(role) = &mut self.role {
            role.check(&seen.server, &dataset)?;
        }
        for warning in &warnings {
            self.progress.warn(&warning.message);
        }
        self.progress.note(&format!(
            "{} {} at {}: {} {} of {} rows, {spread} clients, seed {}",
            product.version,
            product.comment,
            target.address,
            dataset.tables,
            if dataset.tables == 1 { "table" } else { "tables" },
            units::count(dataset.rows),
            plan.seed
        ));
        if let Some(text) = engine::queues_told(plan, spread, dataset.tables) {
            self.progress.note(&text);
        }
        let identity = Identity {
            run_id: self.run_id.clone(),
            label: plan.label.clone().unwrap_or_else(|| seen.server.version.clone()),
            notes: plan.notes.iter().cloned().collect(),
            data_seed: dataset.data_seed,
            server: seen.server,
            driver: seen.driver,
            same_host: seen.same_host,
            rtt_us: seen.rtt_us,
            host: host::facts(Path::new(host::ROOT)),
        };
        let tables = Tables {
            schema: plan.workload.schema,
            count: dataset.tables,
            rows: dataset.rows,
            held: dataset.held,
            own: dataset.own,
        };
        let whereabouts = seen.whereabouts;
        let probe = probe(self.prefix.clone(), whereabouts.clone(), seen.same_host).await?;
        let hosts = Hosts::of(probe.as_ref());
        Ok(Scene {
            target,
            opts,
            identity,
            warnings,
            spread,
            tables,
            ids: dataset.ids,
            probe,
            whereabouts,
            hosts,
            log: None,
        })
    }

    async fn step(
        &mut self,
        scene: &mut Scene,
        step: &Step,
        control: &mut Option<Session>,
    ) -> Result<()> {
        self.progress.board(|| board(self.plan, step, &self.summaries));
        let (window, opened) = watch::channel(None);
        let (changed_before, watch) = self.make_ready(scene, control, &opened).await?;
        let identity = scene.identity.clone();
        let begin = begin(self.store, self.plan, scene, step, &identity);
        let first_write = || begin.first_write();
        let beside = self.role.as_ref().map(|role| role.beside(self.store, step, &opened));
        let stage = Stage {
            first_write: &first_write,
            window,
            plan: self.plan,
            spread: scene.spread,
            tables: scene.tables,
            target: &scene.target,
            server: Some(&identity.server),
            opts: scene.opts.clone(),
            probe: scene.probe.clone(),
            stop: self.stop,
            log: scene.log.clone(),
        };
        log_step(&stage, step);
        let run = engine::run_step(&stage, step, control, self.progress).await;
        // Ended also where there was no window.
        stage.window.send_replace(None);
        let ran = match beside {
            Some(beside) => beside.end().await,
            None => Vec::new(),
        };
        let mut run = run?;
        let changed = if run.changed.is_empty() {
            // Over a new connection, as the clients' are: an old one may lead to a server that no
            // longer has the address.
            let before = &identity.server;
            let (_, changed) = edge::changes(before, None, &scene.target, &scene.opts).await;
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
        let mut summary = engine::summary(&run, &stage, step, &identity, changed)?;
        summary.warnings.extend(scene.warnings.iter().cloned());
        summary.warnings.extend(changed_before);
        if let Some(role) = &self.role {
            role.sign(&mut summary, step, ran);
        }
        let expected = self.role.as_ref().map_or(&[][..], |role| role.expect);
        summary.conditions = Some(watch.end(self.plan, expected, &summary).await);
        summary.warnings.extend(warnings::of(&summary));
        summary.calibrate(self.calibration);
        summary.verdict = Verdict::of(&summary);
        begin.sign(&mut summary);
        let kept = self.keep(summary);
        if kept.is_ok() {
            begin.settled();
        }
        let logged = scene
            .log
            .as_ref()
            .map_or(Ok(()), |log| log.lock().unwrap_or_else(PoisonError::into_inner).flush());
        conclude([run.error.map_or(Ok(()), Err), kept, logged], self.progress)
    }

    /// Brings the server into the state that a step starts from, looks at who it is, and begins to
    /// watch it. Returns what to say of a server that changed since the last look. Where lost
    /// connections are opened again, a server that is just gone is waited for; one that is there and
    /// says no for good is not.
    async fn make_ready(
        &mut self,
        scene: &mut Scene,
        control: &mut Option<Session>,
        opened: &watch::Receiver<Option<Instant>>,
    ) -> Result<(Vec<Warning>, Watch)> {
        let mut patience = Patience::new(self.plan.policy, self.stop);
        let last = scene.identity.server.clone();
        loop {
            let error = match self.attempt(scene, control, opened).await {
                Ok(watch) => {
                    let changed = fingerprint::changes(&last, &scene.identity.server);
                    return Ok((identity::warnings(&changed, "before this step"), watch));
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
        scene: &mut Scene,
        control: &mut Option<Session>,
        opened: &watch::Receiver<Option<Instant>>,
    ) -> Result<Watch> {
        let (mut session, reopened) = match control.take() {
            Some(session) => (session, false),
            None => (self.control(&scene.target, &scene.opts).await?, true),
        };
        let stop = self.stop;
        if reopened {
            self.look_again(scene, &mut session).await?;
        }
        let ground = scene.ground(self.plan, stop);
        let done = before::step(&ground, &mut session, self.progress).await?;
        scene.identity.server = self.server(scene, &mut session).await?;
        if self.plan.label.is_none() {
            scene.identity.label.clone_from(&scene.identity.server.version);
        }
        let reading = conditions::levels(&mut session, scene.tables);
        let at_start = bounded(limits::SILENCE, stop, &scene.target.address, reading).await?;
        *control = Some(session);
        // Looking into the window needs a connection of its own, where there is an InnoDB.
        let pool = at_start.as_ref().is_some_and(|levels| levels.pool_pages.is_some());
        let looking = if pool && conditions::length(self.plan).is_some() {
            let opening = Session::open(&scene.target, &scene.opts, None);
            conditions::or_none(limits::COURTESY, async { opening.await.ok() }).await
        } else {
            None
        };
        let opened = opened.clone();
        Ok(Watch::begin(self.plan, &scene.hosts, done, at_start, looking, opened).await)
    }

    /// Who answers now, and how it is set up.
    async fn server(&self, scene: &Scene, session: &mut Session) -> Result<Server> {
        let mut server = scene.identity.server.clone();
        let reading = async {
            let read = fingerprint::renew(session, &mut server).await;
            read.map_err(|failure| explain(&failure, "read the server's version and variables"))
        };
        bounded(limits::SILENCE, self.stop, &scene.target.address, reading).await?;
        Ok(server)
    }

    /// The server may be another process since its connection was lost, or another server, whose
    /// tables are looked at, too. Where its host does not tell, the steps go on without it.
    async fn look_again(&mut self, scene: &mut Scene, session: &mut Session) -> Result<()> {
        let server = self.server(scene, session).await?;
        if is_another(&fingerprint::changes(&scene.identity.server, &server)) {
            let (target, opts) = (scene.target.clone(), scene.opts.clone());
            // A survey that fails is tried again: the log stays until then.
            let surveyed = self.survey(&target, &opts, session).await?;
            *scene = Scene { log: scene.log.take(), ..surveyed };
            if self.plan.before.warm == Warm::Pool {
                let ground = scene.ground(self.plan, self.stop);
                before::warm(&ground, session, self.progress).await?;
            }
            return Ok(());
        }
        // Its age is not the one of before.
        let server = Whereabouts { uptime_s: None, ..scene.whereabouts.clone() };
        match probe(self.prefix.clone(), server, scene.identity.same_host).await {
            Ok(probe) => scene.probe = probe,
            Err(error) => self.progress.warn(&format!("{error}: going on as before")),
        }
        Ok(())
    }

    /// Keeps a summary, and says what it came to.
    fn keep(&mut self, summary: Summary) -> Result<()> {
        let kept = keep(self.store, &summary, self.progress);
        self.progress.note(&lines::step(&summary));
        for warning in summary.warnings.iter().filter(|w| SAID_AT_ONCE.contains(&w.code.as_str())) {
            self.progress.warn(&warning.message);
        }
        self.summaries.push(summary);
        kept
    }
}

/// Tells the interval log that a step begins. Where there are several, their tags differ.
fn log_step(stage: &Stage, step: &Step) {
    let Some(log) = &stage.log else { return };
    let rate = step.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
    let about = format!(
        "step {} of {}: {} {}{rate}, repeat {}",
        step.place,
        step.of,
        stage.plan.workload.name,
        terms::clients(step.clients),
        step.repeat
    );
    let several = step.of > 1 || step.number > 1;
    let prefix = if several { format!("step{}.", step.number) } else { String::new() };
    log.lock().unwrap_or_else(PoisonError::into_inner).step(&about, step.rate.is_some(), &prefix);
}

/// What is recorded before a step's first write.
fn begin<'a>(
    store: &'a Store,
    plan: &Plan,
    scene: &'a Scene,
    step: &Step,
    identity: &Identity,
) -> Begin<'a> {
    let (tables, ids) = (scene.tables, plan.workload.writes().then_some(&scene.ids));
    let begin = Begin::new(store, tables, ids.map_or(&[][..], Vec::as_slice));
    begin.of(
        identity.step_id(step),
        format!("{}, {}", plan.workload.name, terms::clients(step.clients)),
        &identity.label,
        plan.workload.built_in,
        &identity.server,
    )
}

/// How the server's process and host can be looked at: as `--probe` says, else here where the
/// server runs on this host.
pub(super) async fn probe(
    prefix: Vec<String>,
    server: Whereabouts,
    same_host: bool,
) -> Result<Option<Probe>> {
    // It reads many files, or waits for a command: not on the thread that keeps time.
    let looking = edge::aside(move || match prefix.as_slice() {
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

/// Asks the server, for so long at most and until a signal. Either way the future is dropped,
/// and its session must be, too.
pub(super) async fn bounded<T>(
    limit: Duration,
    stop: &Stop,
    address: &Address,
    asking: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        answer = or_stop(stop, asking) => answer,
        () = tokio::time::sleep(limit) => {
            let limit = units::duration(limit);
            Err(Error::server(format!("{address} has not answered within {limit}"))
                .hint("it is stopped, out of reach or very busy")
                .passing(true))
        }
    }
}

/// How long opening so many connections takes at the least, doubled for slow servers.
fn opening_at_most(clients: u32) -> Duration {
    Duration::from_secs(2) * clients / limits::CONNECTS_PER_S + limits::COURTESY
}
