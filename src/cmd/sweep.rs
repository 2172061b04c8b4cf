//! A workload's verb: plan, server, one sweep, the table.

use std::fmt::Write as _;
use std::time::Duration;

use crate::cli::workload::{Rows, WorkloadArgs};
use crate::cmd::calibrate::kept;
use crate::cmd::prepare::or_stop;
use crate::cmd::slo::Slo;
use crate::cmd::steps::Sweep;
use crate::cmd::{conclude, gate, print_data, runtime, terminal};
use crate::error::{Error, Result};
use crate::load;
use crate::mysql::resolve;
use crate::mysql::target::Target;
use crate::mysql::tls;
use crate::observe::process::raise_descriptor_limit;
use crate::plan::policy::Policy;
use crate::plan::search::STEPS_MAX;
use crate::plan::{Plan, StopAt, defaults, units};
use crate::progress::Progress;
use crate::report;
use crate::sandbox::{Sandbox, Spec};
use crate::stop::Stop;
use crate::summary::{Outcome, Store, Summary};
use crate::workload::Workload;

/// Connections besides the clients': control and preparing.
pub(crate) const HEADROOM: u32 = 20;

/// Runs the verb of a workload.
pub(crate) fn run(workload: Workload, args: &WorkloadArgs, stop: &Stop) -> Result<()> {
    let plan = plan(workload, args)?;
    let mut slo = slo(&plan, args)?;
    if args.list {
        return print_data(&list(&plan, args));
    }
    // A search repeats no rate by plan.
    let plan = Plan { repeats: if slo.is_some() { 1 } else { plan.repeats }, ..plan };
    let mut progress = Progress::new(args.display.quiet, args.display.progress);
    if cfg!(debug_assertions) {
        progress.warn("this is a debug build; its numbers are not for comparing");
    }
    let store = Store::open(&plan.out)?;
    raise_descriptor_limit()?;
    let sandbox = sandbox(&plan, args, stop, &mut progress)?;
    let target = if let Some(sandbox) = &sandbox {
        Target::private(sandbox.socket())
    } else {
        let (target, warnings) = resolve::find(&args.connection)?;
        for warning in &warnings {
            progress.warn(warning);
        }
        target
    };
    let prefix: Vec<String> = probe_prefix(args.probe.as_deref())?;
    let calibration = kept::find(args.calibration.as_deref(), &mut progress);
    let mut sweep = Sweep {
        plan: &plan,
        stop,
        store: &store,
        progress: &mut progress,
        prefix,
        run_id: format!("{:016x}", random()?),
        role: None,
        calibration: calibration.as_ref(),
        summaries: Vec::new(),
    };
    let outcome = runtime()?.block_on(async {
        let target = or_stop(stop, tls::settle(&target)).await?;
        let opts = target.opts()?;
        if sandbox.is_some() {
            load::prepare(&target, &opts, &tables(&plan), stop, sweep.progress).await?;
        }
        match &mut slo {
            Some(slo) => sweep.run_by(&target, &opts, &mut |measured| slo.next(measured)).await,
            None => sweep.run(&target, &opts, &plan.steps()).await,
        }
    });
    let stopped = sandbox.map_or(Ok(()), Sandbox::stop);
    sweep.progress.clear();
    let shown = match slo {
        Some(slo) => slo.tell(&sweep.summaries, outcome.is_ok()),
        None => print_table(&sweep.summaries),
    };
    let all = sweep.summaries.iter().collect();
    let gated = gate::check(std::iter::once((all, args.gates.as_slice())), sweep.progress);
    conclude([outcome, shown, gated, stopped], sweep.progress)
}

/// The searches of `--slo`, from the rate of the plan on.
fn slo(plan: &Plan, args: &WorkloadArgs) -> Result<Option<Slo>> {
    if args.slo.is_empty() {
        return Ok(None);
    }
    let [start] = plan.rates.as_slice() else {
        return Err(
            Error::usage("--slo begins its search at one rate").hint("--rate 1k, or leave it away")
        );
    };
    Slo::new(plan, &args.slo, *start, args.slo_resolution).map(Some)
}

/// The plan, and what is asked of what it measures.
fn list(plan: &Plan, args: &WorkloadArgs) -> String {
    let each = if args.slo.is_empty() { 1 } else { STEPS_MAX as u32 };
    let mut text = plan.list(args.seed.is_none(), each);
    for gate in &args.gates {
        let _ = writeln!(text, "gate           {gate}");
    }
    for level in &args.slo {
        let _ = writeln!(
            text,
            "slo            {level}: these steps begin a search each, of {STEPS_MAX} steps at most"
        );
    }
    text
}

/// Flags → Plan.
pub(crate) fn plan(workload: Workload, args: &WorkloadArgs) -> Result<Plan> {
    let default = |text: &str| units::parse_duration(text).map_err(Error::usage);
    let stop = match (args.ops, args.time) {
        (Some(ops), _) => StopAt::Ops(ops),
        (None, Some(time)) => StopAt::Time(time),
        (None, None) => StopAt::Time(default(defaults::TIME)?),
    };
    if let Some(log) = args.interval_log.as_ref().filter(|log| log.exists()) {
        return Err(Error::usage(format!("--interval-log: {} is there already", log.display()))
            .hint("another name: nothing is written over"));
    }
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
    let rates = match &args.rate {
        Some(rates) => rates.clone(),
        None if args.slo.is_empty() => Vec::new(),
        None => vec![defaults::SLO_START],
    };
    if args.arrival.is_some() && rates.is_empty() {
        return Err(Error::usage("--arrival is for an open loop").hint("--rate, or --slo"));
    }
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
        rates,
        arrival: args.arrival.unwrap_or_default(),
        repeats: args.repeat,
        order: args.order,
        distribution: args.distribution,
        statements: args.statements,
        seed,
        engine_threads: args.engine_threads,
        charset: args.charset.clone(),
        out: args.out.clone(),
        interval: args.interval,
        interval_log: args.interval_log.clone(),
        before: args.before.before(),
        policy: Policy {
            on_error: args.on_error,
            errors_max: args.max_errors,
            op_timeout: args.op_timeout,
        },
    };
    plan.check_steps()?;
    // Where the tables are given, what they forbid needs no server to be said.
    match plan.tables {
        Some(tables) => plan.spread_over(tables).map(|_| plan),
        None => Ok(plan),
    }
}

pub(crate) fn random() -> Result<u64> {
    getrandom::u64().map_err(|e| Error::failed(format!("no random number to be had: {e}")))
}

fn sandbox(
    plan: &Plan,
    args: &WorkloadArgs,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Option<Sandbox>> {
    let Some(program) = &args.sandbox.sandbox else { return Ok(None) };
    if plan.rows.is_none() && plan.workload.schema.filled() {
        return Err(Error::usage("--sandbox makes its tables, so --rows needs a number")
            .hint("--rows 100k, for one"));
    }
    let tables = plan.tables_or_default();
    let spread = plan.spread_over(tables)?;
    let statements = plan.prepared_per_client(spread, tables) * u64::from(plan.clients_max());
    let spec = Spec {
        program: program.0.clone(),
        options: args.sandbox.options.clone(),
        max_connections: plan.clients_max().saturating_add(HEADROOM),
        max_prepared_stmts: u32::try_from(statements).unwrap_or(u32::MAX),
        ..Spec::default()
    };
    let sandbox =
        Sandbox::start(&spec, &mut |text| progress.note(text), &|| stop.asked().is_some())?;
    Ok(Some(sandbox))
}

/// The tables of a sandbox.
fn tables(plan: &Plan) -> load::Job {
    load::Job {
        schema: plan.workload.schema,
        tables: plan.tables_or_default(),
        rows: if plan.workload.schema.filled() { plan.rows.unwrap_or(1) } else { 0 },
        charset: plan.charset.clone(),
        passing: true,
        ..load::Job::default()
    }
}

/// The sweep's table; of an early end, what was completed.
fn print_table(summaries: &[Summary]) -> Result<()> {
    let completed: Vec<&Summary> =
        summaries.iter().filter(|s| s.outcome == Outcome::Completed).collect();
    if completed.is_empty() {
        return Ok(());
    }
    let options = report::Options { terminal: terminal(), ..report::Options::default() };
    print_data(&report::render(&completed, &options)?)
}

/// The words of `--probe`; none without it.
pub(super) fn probe_prefix(probe: Option<&str>) -> Result<Vec<String>> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let words: Option<Vec<String>> = probe.map(words);
    if words.as_ref().is_some_and(Vec::is_empty) {
        return Err(Error::usage("--probe is empty").hint("--probe 'ssh db1'"));
    }
    Ok(words.unwrap_or_default())
}
