//! A sweep: plan, server, steps, the table.

use std::fmt::Write as _;

use super::slo::Slo;
use super::steps::Sweep;
use super::{Invocation, conclude, gate, kept, print_data, runtime, terminal, warn_of_debug_build};
use crate::error::{Error, Result};
use crate::load;
use crate::mysql::tls;
use crate::observe::process::raise_descriptor_limit;
use crate::plan::Plan;
use crate::plan::condition::Condition;
use crate::plan::search::STEPS_MAX;
use crate::report;
use crate::sandbox::{Sandbox, Spec};
use crate::stop::or_stop;
use crate::summary::{Outcome, Store, Summary};

/// Connections besides the clients': control and preparing.
pub(crate) const HEADROOM: u32 = 20;

/// What is asked of the numbers of a sweep.
pub(crate) struct Asked {
    pub(crate) gates: Vec<Condition>,
    pub(crate) slo: Vec<Condition>,
    pub(crate) slo_resolution: f64,
}

pub(crate) fn run(plan: Plan, asked: &Asked, mut invocation: Invocation<'_>) -> Result<()> {
    let mut slo = slo(&plan, asked)?;
    // A search repeats no rate by plan.
    let plan = Plan { repeats: if slo.is_some() { 1 } else { plan.repeats }, ..plan };
    warn_of_debug_build(&mut invocation.progress);
    let store = Store::open(&plan.out)?;
    raise_descriptor_limit()?;
    let spec = if invocation.sandbox.is_some() { sandbox(&plan)? } else { Spec::default() };
    let (sandbox, target) = invocation.server(spec)?;
    let Invocation { mut progress, stop, probe, calibration, .. } = invocation;
    let prefix = probe_prefix(probe.as_deref())?;
    let calibration = kept::find(calibration.as_deref(), &mut progress);
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
    let gated = gate::check(std::iter::once((all, asked.gates.as_slice())), sweep.progress);
    conclude([outcome, shown, gated, stopped], sweep.progress)
}

/// The searches of `--slo`, from the rate of the plan on.
fn slo(plan: &Plan, asked: &Asked) -> Result<Option<Slo>> {
    if asked.slo.is_empty() {
        return Ok(None);
    }
    let [start] = plan.rates.as_slice() else {
        return Err(
            Error::usage("--slo begins its search at one rate").hint("--rate 1k, or leave it away")
        );
    };
    Slo::new(plan, &asked.slo, *start, asked.slo_resolution).map(Some)
}

/// Writes the plan, and what is asked of what it measures.
pub(crate) fn list(plan: &Plan, asked: &Asked, random_seed: bool) -> Result<String> {
    slo(plan, asked)?;
    let each = if asked.slo.is_empty() { 1 } else { STEPS_MAX as u32 };
    let mut text = plan.list(random_seed, each);
    for gate in &asked.gates {
        let _ = writeln!(text, "gate           {gate}");
    }
    for level in &asked.slo {
        let _ = writeln!(
            text,
            "slo            {level}: these steps begin a search each, of {STEPS_MAX} steps at most"
        );
    }
    Ok(text)
}

pub(crate) fn random() -> Result<u64> {
    getrandom::u64().map_err(|e| Error::failed(format!("no random number to be had: {e}")))
}

/// Sizes a private server, which makes its tables.
fn sandbox(plan: &Plan) -> Result<Spec> {
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
