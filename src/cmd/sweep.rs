//! A workload's verb: plan, server, preflight, one step after the other, the table.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mysql_async::Opts;

use crate::cli::workload::{Rows, WorkloadArgs};
use crate::cmd::prepare::or_stop;
use crate::cmd::{print_data, runtime};
use crate::engine::{self, Identity, Stage, Tables};
use crate::error::{Error, Result, worst};
use crate::load;
use crate::measure::host;
use crate::measure::probe::{Probe, Whereabouts};
use crate::measure::process::raise_descriptor_limit;
use crate::mysql::preflight::{self, Needs, Ready};
use crate::mysql::resolve;
use crate::mysql::secret::Secret;
use crate::mysql::session::Session;
use crate::mysql::target::{Address, Target};
use crate::mysql::tls::{self, Ssl};
use crate::mysql::{fingerprint, variables};
use crate::plan::{Pace, Plan, Spread, Step, StopAt, defaults, limits, units};
use crate::progress::Progress;
use crate::report;
use crate::sandbox::{Sandbox, Spec};
use crate::stop::Stop;
use crate::summary::{Outcome, SettingChange, Store, Summary, Warning, to_json};
use crate::workload::Workload;

/// Connections besides the clients': control and preparing.
const HEADROOM: u32 = 20;

/// Runs the verb of a workload.
pub fn run(workload: Workload, args: &WorkloadArgs, stop: &Stop) -> Result<()> {
    let plan = plan(workload, args)?;
    if args.list {
        return print_data(&plan.list(args.seed.is_none()));
    }
    let mut progress = Progress::new(args.display.quiet, args.display.progress);
    if cfg!(debug_assertions) {
        progress.warn("this is a debug build; its numbers are not for comparing");
    }
    let store = Store::open(&plan.out)?;
    raise_descriptor_limit()?;
    let sandbox = sandbox(&plan, args, stop, &mut progress)?;
    let target = if let Some(sandbox) = &sandbox {
        sandbox_target(sandbox.socket())
    } else {
        let (target, warnings) = resolve::find(&args.connection)?;
        for warning in &warnings {
            progress.warn(warning);
        }
        target
    };
    let prefix: Vec<String> = probe_prefix(args.probe.as_deref())?;
    let mut sweep = Sweep { plan: &plan, stop, store, progress, prefix, summaries: Vec::new() };
    let outcome = runtime()?.block_on(sweep.run(target, sandbox.is_some()));
    let stopped = sandbox.map_or(Ok(()), Sandbox::stop);
    sweep.progress.clear();
    let shown = sweep.print_table();
    match worst([outcome, shown, stopped].into_iter().filter_map(Result::err)) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Flags → Plan.
fn plan(workload: Workload, args: &WorkloadArgs) -> Result<Plan> {
    let default = |text: &str| units::parse_duration(text).map_err(Error::usage);
    let stop = match (args.ops, args.time) {
        (Some(ops), _) => StopAt::Ops(ops),
        (None, Some(time)) => StopAt::Time(time),
        (None, None) => StopAt::Time(default(defaults::TIME)?),
    };
    if stop == StopAt::Time(Duration::ZERO) {
        return Err(Error::usage("--time 0 measures nothing").hint("--time 60s, or --ops N"));
    }
    let warmup = match (args.warmup, stop) {
        (Some(warmup), _) => warmup,
        (None, StopAt::Ops(_)) => Duration::ZERO,
        (None, StopAt::Time(_)) => default(defaults::WARMUP)?,
    };
    let seed = match args.seed {
        Some(seed) => seed,
        // 53 bits, so that every reader of JSON sees the same number.
        None => random()? >> 11,
    };
    let plan = Plan {
        workload,
        label: args.label.clone(),
        notes: args.notes.clone(),
        tables: args.tables,
        rows: match args.rows {
            Rows::Auto => None,
            Rows::Number(n) => Some(n),
        },
        clients: args.clients.clone(),
        spread: args.spread,
        warmup,
        stop,
        pace: Pace::Closed,
        repeats: args.repeat,
        order: args.order,
        distribution: args.distribution,
        statements: args.statements,
        seed,
        engine_threads: args.engine_threads,
        charset: args.charset.clone(),
        out: args.out.clone(),
        interval: args.interval,
    };
    // Where the tables are given, what they forbid needs no server to be said.
    match plan.tables {
        Some(tables) => plan.spread_over(tables).map(|_| plan),
        None => Ok(plan),
    }
}

fn random() -> Result<u64> {
    getrandom::u64().map_err(|e| Error::failed(format!("no random number to be had: {e}")))
}

fn sandbox(
    plan: &Plan,
    args: &WorkloadArgs,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Option<Sandbox>> {
    let Some(program) = &args.sandbox.sandbox else { return Ok(None) };
    if plan.rows.is_none() {
        return Err(Error::usage("--sandbox makes its tables, so --rows needs a number")
            .hint("--rows 100k, for one"));
    }
    let tables = plan.tables.unwrap_or(defaults::TABLES);
    let spread = plan.spread_over(tables)?;
    let statements = plan.prepared_per_client(spread, tables) * u64::from(plan.clients_max());
    let spec = Spec {
        program: program.0.clone(),
        options: args.sandbox.options.clone(),
        max_connections: plan.clients_max().saturating_add(HEADROOM),
        max_prepared_stmts: u32::try_from(statements).unwrap_or(u32::MAX),
    };
    let sandbox =
        Sandbox::start(&spec, &mut |text| progress.note(text), &|| stop.asked().is_some())?;
    Ok(Some(sandbox))
}

fn sandbox_target(socket: &Path) -> Target {
    Target {
        address: Address::Socket(socket.to_owned()),
        user: "root".to_owned(),
        password: Secret::default(),
        database: "sbtest".to_owned(),
        ssl: Ssl::default(),
        connect_timeout: limits::CONNECT,
    }
}

/// The words of `--probe`; none without it.
fn probe_prefix(probe: Option<&str>) -> Result<Vec<String>> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let words: Option<Vec<String>> = probe.map(words);
    if words.as_ref().is_some_and(Vec::is_empty) {
        return Err(Error::usage("--probe is empty").hint("--probe 'ssh db1'"));
    }
    Ok(words.unwrap_or_default())
}

struct Sweep<'a> {
    plan: &'a Plan,
    stop: &'a Stop,
    store: Store,
    progress: Progress,
    /// How the server's host is read: empty for this one.
    prefix: Vec<String>,
    summaries: Vec<Summary>,
}

/// What all steps of a sweep share once the server is known.
struct Scene {
    target: Target,
    opts: Opts,
    identity: Identity,
    warnings: Vec<Warning>,
    spread: Spread,
    tables: Tables,
    probe: Option<Probe>,
}

impl Sweep<'_> {
    async fn run(&mut self, target: Target, sandboxed: bool) -> Result<()> {
        let target = or_stop(self.stop, tls::settle(&target)).await?;
        let opts = target.opts()?;
        if sandboxed {
            self.prepare(&target, &opts).await?;
        }
        let mut control = self.control(&target, &opts).await?;
        let address = target.address.clone();
        let stop = self.stop;
        let looking = self.look(target, opts, &mut control);
        let scene = bounded(limits::SILENCE, stop, &address, looking).await?;
        let mut control = Some(control);
        for step in self.plan.steps() {
            self.stop.check()?;
            self.step(&scene, &step, &mut control).await?;
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

    async fn prepare(&mut self, target: &Target, opts: &Opts) -> Result<()> {
        let job = load::Job {
            tables: self.plan.tables.unwrap_or(defaults::TABLES),
            rows: self.plan.rows.unwrap_or(1),
            charset: self.plan.charset.clone(),
            ..load::Job::default()
        };
        load::prepare(target, opts, &job, self.stop, &mut self.progress).await?;
        Ok(())
    }

    /// Preflight and fingerprint.
    async fn look(&mut self, target: Target, opts: Opts, control: &mut Session) -> Result<Scene> {
        let plan = self.plan;
        let spread = |tables| plan.spread_over(tables).unwrap_or(Spread::Random);
        let statements = |tables| {
            u32::try_from(plan.prepared_per_client(spread(tables), tables)).unwrap_or(u32::MAX)
        };
        let needs = Needs {
            database: &target.database,
            tables: plan.tables,
            rows: plan.rows,
            seed: plan.seed,
            clients_max: plan.clients_max(),
            statements: &statements,
            writes: plan.workload.writes(),
            quiet_max: opening_at_most(plan.clients_max()),
        };
        let Ready { product, dataset, warnings } = preflight::check(control, &needs).await?;
        let spread = plan.spread_over(dataset.tables)?;
        let (host, port) = match &target.address {
            Address::Tcp { host, port } => (host.as_str(), Some(*port)),
            Address::Socket(_) => ("localhost", None),
        };
        let seen = fingerprint::server(control, host, port, Some(dataset.data_bytes)).await?;
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
        let identity = Identity {
            run_id: format!("{:016x}", random()?),
            label: plan.label.clone().unwrap_or_else(|| seen.server.version.clone()),
            notes: plan.notes.iter().cloned().collect(),
            data_seed: dataset.data_seed,
            server: seen.server,
            driver: seen.driver,
            same_host: seen.same_host,
            rtt_us: seen.rtt_us,
            host: host::facts(Path::new(host::ROOT)),
        };
        let tables = Tables { count: dataset.tables, rows: dataset.rows, own: dataset.own };
        let probe = probe(self.prefix.clone(), seen.whereabouts, seen.same_host).await?;
        Ok(Scene { target, opts, identity, warnings, spread, tables, probe })
    }

    async fn step(
        &mut self,
        scene: &Scene,
        step: &Step,
        control: &mut Option<Session>,
    ) -> Result<()> {
        // It was dropped where the server hung.
        let mut asking = match control.take() {
            Some(session) => session,
            None => self.control(&scene.target, &scene.opts).await?,
        };
        let mut identity = scene.identity.clone();
        let reading = async { Ok(variables::read(&mut asking).await?) };
        let address = &scene.target.address;
        identity.server.variables = bounded(limits::SILENCE, self.stop, address, reading).await?;
        *control = Some(asking);
        let stage = Stage {
            plan: self.plan,
            spread: scene.spread,
            tables: scene.tables,
            target: &scene.target,
            opts: scene.opts.clone(),
            probe: scene.probe.clone(),
            stop: self.stop,
        };
        let run = engine::run_step(&stage, step, control, &mut self.progress).await?;
        let changed = changed(&identity.server.variables, control).await;
        let mut summary = engine::summary(&run, &stage, step, &identity, changed)?;
        summary.warnings.extend(scene.warnings.iter().cloned());
        self.keep(summary)?;
        match run.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Writes a summary, or prints it where it cannot be written: nothing measured is lost.
    fn keep(&mut self, summary: Summary) -> Result<()> {
        let written = self.store.write(&summary);
        self.progress.note(&line(&summary));
        if written.is_err() {
            print_data(&to_json(&summary))?;
        }
        self.summaries.push(summary);
        written.map(|_| ())
    }

    /// The sweep's table; of an early end, what was completed.
    fn print_table(&self) -> Result<()> {
        let completed: Vec<&Summary> =
            self.summaries.iter().filter(|s| s.outcome == Outcome::Completed).collect();
        if completed.is_empty() {
            return Ok(());
        }
        print_data(&report::render(&completed, &report::Options::default())?)
    }
}

/// How the server's process and host can be looked at: as `--probe` says, else here where the
/// server runs on this host.
async fn probe(prefix: Vec<String>, server: Whereabouts, same_host: bool) -> Result<Option<Probe>> {
    // It reads many files, or waits for a command: not on the thread that keeps time.
    let looking = tokio::task::spawn_blocking(move || match prefix.as_slice() {
        [] => Ok(same_host.then(|| Probe::local(&server))),
        prefix => Probe::through(prefix, &server).map(Some),
    });
    looking.await.map_err(|e| Error::failed(format!("the server's host: {e}")))?
}

/// Settings that differ after a step; none where the server does not tell in time.
async fn changed(
    before: &BTreeMap<String, String>,
    control: &mut Option<Session>,
) -> Vec<SettingChange> {
    let Some(mut session) = control.take() else { return Vec::new() };
    // The session is dropped with the future when it takes too long.
    #[expect(clippy::disallowed_methods, reason = "the connection goes with the future")]
    let read = tokio::time::timeout(limits::COURTESY, async move {
        let after = variables::read(&mut session).await;
        (session, after)
    })
    .await;
    let Ok((session, after)) = read else { return Vec::new() };
    *control = Some(session);
    after.map(|after| variables::changed(before, &after)).unwrap_or_default()
}

/// Asks the server, for so long at most and until a signal. Either way the future is dropped,
/// and its session must be, too: the error ends the sweep.
async fn bounded<T>(
    limit: Duration,
    stop: &Stop,
    address: &Address,
    asking: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        answer = or_stop(stop, asking) => answer,
        () = tokio::time::sleep(limit) => {
            let limit = units::duration(limit);
            Err(Error::server(format!("{address} has not answered within {limit}")))
        }
    }
}

/// How long opening so many connections takes at the least, doubled for slow servers.
fn opening_at_most(clients: u32) -> Duration {
    Duration::from_secs(2) * clients / limits::CONNECTS_PER_S + limits::COURTESY
}

/// One step, as a line that stays.
fn line(summary: &Summary) -> String {
    let (totals, latency) = (&summary.totals, &summary.latency.service);
    let ms = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), engine::millis);
    let errors: u64 = totals.errors.iter().map(|e| e.count).sum();
    let mark = match summary.outcome {
        Outcome::Completed => "",
        Outcome::Interrupted => " (interrupted)",
        Outcome::Aborted => " (aborted)",
    };
    format!(
        "{} {} clients: {:.0} QPS, service time p50 {}, p99 {}, max {}, {errors} errors{mark}",
        summary.workload.name,
        summary.plan.clients,
        totals.qps,
        ms(latency.p50_us),
        ms(latency.p99_us),
        ms(latency.max_us),
    )
}
