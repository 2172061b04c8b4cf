//! One pipeline for every verb that measures on one server: plan, progress, store, sandbox,
//! connection, steps, gates, table.

use std::fmt::Write as _;
use std::path::Path;

use super::slo::Slo;
use super::steps::{Job, Steps};
use super::{
    Invocation, Place, conclude, gate, kept, print_data, runtime, start, tables, terminal,
    warn_of_debug_build,
};
use crate::error::{Error, Result, line};
use crate::load;
use crate::mysql::connect;
use crate::mysql::options::ConnectOptions;
use crate::observe::process::raise_descriptor_limit;
use crate::plan::search::STEPS_MAX;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::plan::{Plan, Step, units};
use crate::report;
use crate::sandbox::{Sandbox, Spec};
use crate::stop::or_stop;
use crate::summary::{Outcome, Store, Summary};
use crate::terms::Gate;
use crate::workload::Schema;

/// Connections besides the clients': control and preparing.
pub(super) const HEADROOM: u32 = 20;

/// What is measured, and what is asked of the numbers.
pub(crate) struct Asked<'a> {
    pub(crate) job: Job<'a>,
    pub(crate) label: Option<String>,
    pub(crate) notes: Vec<(String, String)>,
    pub(crate) repeats: u32,
    /// What must hold at the end.
    pub(crate) gates: Vec<Gate>,
    /// What the highest rate is searched for.
    pub(crate) slo: Vec<Gate>,
    pub(crate) slo_resolution: f64,
    /// Whether a load drops tables without a question.
    pub(crate) yes: bool,
}

impl Asked<'_> {
    /// Makes the searches of `--slo`, from the rate of the plan on.
    fn search(&self) -> Result<Option<Slo>> {
        let Job::Sweep(plan) = self.job else { return Ok(None) };
        if self.slo.is_empty() {
            return Ok(None);
        }
        let [start] = plan.rates.as_slice() else {
            return Err(Error::usage("--slo begins its search at one rate")
                .hint("--rate 1k, or leave it away"));
        };
        Slo::new(plan, &self.slo, *start, self.slo_resolution).map(Some)
    }

    fn steps(&self) -> Vec<Step> {
        if let Job::Sweep(plan) = self.job {
            return plan.steps();
        }
        let of = self.repeats;
        let step =
            |repeat| Step { number: repeat, place: repeat, of, clients: 1, rate: None, repeat };
        (1..=of).map(step).collect()
    }

    /// Sizes a private server, which makes its tables.
    fn sandbox(&self) -> Result<Spec> {
        // A load has two connections, and readings some more.
        let Job::Sweep(plan) = self.job else {
            return Ok(Spec { max_connections: HEADROOM, ..Spec::default() });
        };
        if plan.rows.is_none() && plan.workload.schema.filled() {
            return Err(Error::usage("--sandbox makes its tables, so --rows needs a number")
                .hint("--rows 100k, for one"));
        }
        let tables = plan.tables_or_default();
        let spread = plan.spread_over(tables)?;
        let statements = plan.prepared_per_client(spread, tables) * u64::from(plan.clients_max());
        Ok(Spec {
            max_connections: plan.clients_max().saturating_add(HEADROOM),
            max_prepared_stmts: u32::try_from(statements).unwrap_or(u32::MAX),
            ..Spec::default()
        })
    }
}

/// Measures, keeps, prints and judges.
pub(crate) fn run(asked: &Asked<'_>, place: Place, invocation: Invocation<'_>) -> Result<()> {
    let mut slo = asked.search()?;
    let Invocation { mut progress, stop, out, calibration } = invocation;
    warn_of_debug_build(&mut progress);
    let store = Store::open(&out)?;
    raise_descriptor_limit()?;
    let sandbox = match place.sandbox {
        Some((program, options)) => {
            Some(start(&Spec { program, options, ..asked.sandbox()? }, stop, &mut progress)?)
        }
        None => None,
    };
    let target = match &sandbox {
        Some(sandbox) => ConnectOptions::private(sandbox.socket()),
        None => tables::find(&place.connection, &mut progress)?,
    };
    let prefix = probe_prefix(place.probe.as_deref())?;
    // A search repeats no rate by plan.
    let searching = match asked.job {
        Job::Sweep(plan) if slo.is_some() => Some(Plan { repeats: 1, ..plan.clone() }),
        _ => None,
    };
    let calibration = match asked.job {
        Job::Sweep(_) => kept::find(calibration.as_deref(), &mut progress),
        // Its client is no engine.
        Job::Load { .. } | Job::Suite(_) => None,
    };
    let job = searching.as_ref().map_or(asked.job, Job::Sweep);
    let mut steps = Steps {
        label: asked.label.clone(),
        notes: asked.notes.iter().cloned().collect(),
        repeats: asked.repeats,
        prefix,
        calibration: calibration.as_ref(),
        ..Steps::new(job, stop, &store, &mut progress)?
    };
    let outcome = runtime()?.block_on(async {
        let target = or_stop(stop, connect::settle_tls(&target)).await?;
        let opts = target.opts()?;
        match job {
            Job::Sweep(plan) if sandbox.is_some() => {
                load::prepare(&target, &opts, &tables_of(plan), stop, steps.progress).await?;
            }
            Job::Load { spec, force: true } if sandbox.is_none() && !asked.yes => {
                let prepared = load::marked(&target, &opts, false, stop);
                let named = async { Ok(to_drop(spec, &prepared.await?)) };
                Box::pin(tables::agree_to_drop(named, &target, stop)).await?;
            }
            Job::Sweep(_) | Job::Load { .. } | Job::Suite(_) => {}
        }
        match &mut slo {
            Some(slo) => steps.run_by(&target, &opts, &mut |measured| slo.next(measured)).await,
            None => steps.run(&target, &opts, &asked.steps()).await,
        }
    });
    let stopped = sandbox.map_or(Ok(()), Sandbox::stop);
    steps.progress.clear();
    let shown = match slo {
        Some(slo) => slo.tell(&steps.summaries, outcome.is_ok()),
        None => print_table(&steps.summaries),
    };
    let all = steps.summaries.iter().collect();
    let gated = gate::check(std::iter::once((all, asked.gates.as_slice())), steps.progress);
    conclude([outcome, shown, gated, stopped], steps.progress)
}

/// The tables of a sandbox.
fn tables_of(plan: &Plan) -> load::Job {
    load::Job {
        schema: plan.workload.schema,
        tables: plan.tables_or_default(),
        rows: if plan.workload.schema.filled() { plan.rows.unwrap_or(1) } else { 0 },
        charset: plan.charset.clone(),
        passing: true,
        ..load::Job::default()
    }
}

/// Those of prepare's tables that a load will drop; a dump is not read for that.
fn to_drop(spec: &LoadSpec, prepared: &load::Numbers) -> String {
    match &spec.source {
        LoadSource::Dump { .. } if prepared.is_empty() => String::new(),
        LoadSource::Dump { path } => {
            format!("those of {} that {} names", load::named(prepared), path.display())
        }
        LoadSource::Generated { .. } => tables::first(prepared, Schema::Sbtest, spec.tables),
    }
}

/// The table; of an early end, what was completed.
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
fn probe_prefix(probe: Option<&str>) -> Result<Vec<String>> {
    let Some(probe) = probe else { return Ok(Vec::new()) };
    let words: Vec<String> = probe.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        return Err(Error::usage("--probe is empty").hint("--probe 'ssh db1'"));
    }
    Ok(words)
}

/// Writes what is going to happen, for `--list`. A random seed is another one in the run.
pub(crate) fn list(asked: &Asked<'_>, out: &Path, random_seed: bool) -> Result<String> {
    match asked.job {
        Job::Sweep(plan) => {
            asked.search()?;
            let each = if asked.slo.is_empty() { 1 } else { STEPS_MAX as u32 };
            let mut text = plan.list(random_seed, each);
            for gate in &asked.gates {
                let _ = writeln!(text, "gate           {gate}");
            }
            for level in &asked.slo {
                let _ = writeln!(
                    text,
                    "slo            {level}: these steps begin a search each, of {STEPS_MAX} steps \
                     at most"
                );
            }
            Ok(text)
        }
        Job::Load { spec, .. } => Ok(list_load(spec, asked, out)),
        Job::Suite(_) => unreachable!("no verb runs a suite"),
    }
}

fn list_load(spec: &LoadSpec, asked: &Asked<'_>, out: &Path) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<14} {}", line(&value));
    };
    put("workload", spec.name());
    match &spec.source {
        LoadSource::Generated { rows, data_seed } => {
            put("tables", spec.tables.to_string());
            put("rows", units::count(*rows));
            put("data seed", data_seed.to_string());
            put("mode", spec.insert.to_string());
            if let InsertMode::Extended { bytes } = spec.insert {
                put("insert bytes", units::count(bytes));
            }
        }
        LoadSource::Dump { path } => put("dump", path.display().to_string()),
    }
    put("label", asked.label.clone().unwrap_or_else(|| "the server's version".to_owned()));
    let handshake = || "utf8mb4 (utf8 before 5.5.3)".to_owned();
    put("charset", spec.charset.clone().unwrap_or_else(handshake));
    for (key, value) in &asked.notes {
        put("note", format!("{key}={value}"));
    }
    put("repeats", asked.repeats.to_string());
    put("out", out.display().to_string());
    text
}
