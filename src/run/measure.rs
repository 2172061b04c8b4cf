//! One pipeline for every verb that measures on one server: plan, progress, store, sandbox,
//! connection, steps, gates, table.

use std::fmt::Write as _;
use std::path::Path;

use super::before::ServerLink;
use super::servers::sized;
use super::slo::Slo;
use super::steps::{Job, Steps};
use super::{
    Invocation, Place, calibration, conclude, gate, print_data, runtime, start, tables, terminal,
};
use crate::error::{Error, Result, line};
use crate::load;
use crate::mysql::ConnectOptions;
use crate::plan::experiment::Dataset;
use crate::plan::search::STEPS_MAX;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::plan::{Plan, Step, defaults, units};
use crate::report;
use crate::sandbox::{Sandbox, Spec};
use crate::summary::{Outcome, Summary};
use crate::terms::Gate;
use crate::workload::Schema;

pub(crate) struct Asked<'a> {
    pub(crate) job: Job<'a>,
    pub(crate) label: Option<String>,
    pub(crate) notes: Vec<(String, String)>,
    pub(crate) repeats: u32,
    pub(crate) gates: Vec<Gate>,
    pub(crate) slo: Vec<Gate>,
    pub(crate) slo_resolution: f64,
    /// Drops tables without a question.
    pub(crate) yes: bool,
}

impl Asked<'_> {
    fn search(&self) -> Result<Option<Slo>> {
        let Job::Sweep(plan) = self.job else { return Ok(None) };
        if self.slo.is_empty() {
            return Ok(None);
        }
        let [start] = plan.rates.as_slice() else {
            return Err(Error::usage("--slo begins its search at one rate")
                .hint("--rate 1k, or leave it away"));
        };
        Ok(Some(Slo::new(plan, &self.slo, *start, self.slo_resolution)))
    }

    fn steps(&self) -> Vec<Step> {
        if let Job::Sweep(plan) = self.job {
            return plan.steps();
        }
        let of = self.repeats;
        let step = |n| Step { number: n, place: n, of, clients: 1, rate: None, repeat: n };
        (1..=of).map(step).collect()
    }

    fn sandbox(&self) -> Result<Spec> {
        // A load has two connections, and readings some more.
        let Job::Sweep(plan) = self.job else { return Ok(sized(0, 0)) };
        if plan.rows.is_none() && plan.workload.schema.filled() {
            return Err(Error::usage("--sandbox makes its tables, so --rows needs a number")
                .hint("--rows 100k, for one"));
        }
        let tables = plan.tables_or_default();
        let statements = plan.prepared_per_client(plan.spread_over(tables)?, tables);
        Ok(sized(plan.clients_max(), statements * u64::from(plan.clients_max())))
    }

    /// Makes the tables of a private server, or asks whether those that are in the way may go.
    async fn make_ready(
        &self,
        link: &ServerLink<'_>,
        private: bool,
        steps: &mut Steps<'_>,
    ) -> Result<()> {
        let ServerLink { target, opts, stop } = link;
        match self.job {
            Job::Sweep(plan) if private => {
                let tables = Dataset {
                    schema: plan.workload.schema,
                    tables: plan.tables_or_default(),
                    rows: plan.rows.filter(|_| plan.workload.schema.filled()).unwrap_or(0),
                    data_seed: defaults::DATA_SEED,
                    charset: plan.charset.clone(),
                    passing: true,
                    ..Dataset::default()
                };
                load::prepare(target, opts, &tables, stop, steps.progress).await.map(|_| ())
            }
            Job::Load { spec, force: true } if !private => {
                let named = |made: &load::Numbers| to_drop(spec, made);
                Box::pin(tables::agree_to_drop(link, self.yes, false, named)).await
            }
            Job::Sweep(_) | Job::Load { .. } | Job::Suite(_) => Ok(()),
        }
    }
}

pub(crate) fn run(asked: &Asked<'_>, place: &Place, mut invocation: Invocation<'_>) -> Result<()> {
    let mut slo = asked.search()?;
    let prefix = probe_prefix(place.probe.as_deref())?;
    let store = invocation.begin()?;
    let Invocation { mut progress, stop, calibration, .. } = invocation;
    let (sandbox, target) = match place.sandbox.clone() {
        None => (None, tables::find(&place.connection, &mut progress)?),
        Some((program, options)) => {
            let spec = Spec { program, options, ..asked.sandbox()? };
            let sandbox = start(&spec, stop, &mut progress)?;
            let target = ConnectOptions::private(sandbox.socket());
            (Some(sandbox), target)
        }
    };
    // A search repeats no rate by plan. The client of a load is no engine.
    let (searching, calibration) = match asked.job {
        Job::Sweep(plan) => (
            slo.is_some().then(|| Plan { repeats: 1, ..plan.clone() }),
            calibration::find(calibration.as_deref(), &mut progress),
        ),
        Job::Load { .. } | Job::Suite(_) => (None, None),
    };
    let job = searching.as_ref().map_or(asked.job, Job::Sweep);
    let mut steps = Steps {
        label: asked.label.clone(),
        notes: asked.notes.iter().cloned().collect(),
        repeats: asked.repeats,
        prefix,
        calibration: calibration.as_ref(),
        ..Steps::new(job, &store, &mut progress)?
    };
    let outcome = runtime()?.block_on(async {
        let link = ServerLink::new(&target, stop).await?;
        asked.make_ready(&link, sandbox.is_some(), &mut steps).await?;
        let mut planned = asked.steps().into_iter();
        let next = |measured: &[Summary]| match &mut slo {
            Some(slo) => slo.next(measured),
            None => Ok(planned.next()),
        };
        steps.run(&link, next).await
    });
    let stopped = sandbox.map_or(Ok(()), Sandbox::stop);
    steps.progress.clear();
    let shown = match slo {
        Some(slo) => slo.tell(&steps.summaries),
        None => print_table(&steps.summaries),
    };
    let all = steps.summaries.iter().collect();
    let gated = gate::check(std::iter::once((all, asked.gates.as_slice())), steps.progress);
    conclude([outcome, shown, gated, stopped], steps.progress)
}

/// Names those of prepare's tables that a load will drop; a dump is not read for that.
fn to_drop(spec: &LoadSpec, prepared: &load::Numbers) -> String {
    match &spec.source {
        LoadSource::Dump { .. } if prepared.is_empty() => String::new(),
        LoadSource::Dump { path } => {
            format!("those of {} that {} names", load::named(prepared), path.display())
        }
        LoadSource::Generated { .. } => tables::first(prepared, Schema::Sbtest, spec.tables),
    }
}

/// Prints the table; of an early end, what was completed.
fn print_table(summaries: &[Summary]) -> Result<()> {
    let completed: Vec<&Summary> =
        summaries.iter().filter(|s| s.outcome == Outcome::Completed).collect();
    if completed.is_empty() {
        return Ok(());
    }
    let options = report::Options { terminal: terminal(), ..report::Options::default() };
    print_data(&report::render(&completed, &options)?)
}

fn probe_prefix(probe: Option<&str>) -> Result<Vec<String>> {
    let words: Vec<String> =
        probe.into_iter().flat_map(str::split_whitespace).map(str::to_owned).collect();
    if probe.is_some() && words.is_empty() {
        return Err(Error::usage("--probe is empty").hint("--probe 'ssh db1'"));
    }
    Ok(words)
}

/// Writes what is going to happen, for `--list`. A random seed is another one in the run.
pub(crate) fn list(asked: &Asked<'_>, out: &Path, random_seed: bool) -> Result<String> {
    let (mut text, mut lines) = (String::new(), Vec::new());
    match asked.job {
        Job::Sweep(plan) => {
            asked.search()?;
            text = plan.list(random_seed, if asked.slo.is_empty() { 1 } else { STEPS_MAX as u32 });
            lines.extend(asked.gates.iter().map(|gate| ("gate", gate.to_string())));
            let each = format!("these steps begin a search each, of {STEPS_MAX} steps at most");
            lines.extend(asked.slo.iter().map(|level| ("slo", format!("{level}: {each}"))));
        }
        Job::Load { spec, .. } => lines = list_load(spec, asked, out),
        Job::Suite(_) => unreachable!("no verb runs a suite"),
    }
    for (name, value) in lines {
        let _ = writeln!(text, "{name:<14} {}", line(&value));
    }
    Ok(text)
}

fn list_load(spec: &LoadSpec, asked: &Asked<'_>, out: &Path) -> Vec<(&'static str, String)> {
    let mut lines = vec![("workload", spec.name())];
    match &spec.source {
        LoadSource::Generated { rows, data_seed } => {
            lines.push(("tables", spec.tables.to_string()));
            lines.push(("rows", units::count(*rows)));
            lines.push(("data seed", data_seed.to_string()));
            lines.push(("mode", spec.insert.to_string()));
            if let InsertMode::Extended { bytes } = spec.insert {
                lines.push(("insert bytes", units::count(bytes)));
            }
        }
        LoadSource::Dump { path } => lines.push(("dump", path.display().to_string())),
    }
    let or = |given: &Option<String>, usual: &str| given.clone().unwrap_or(usual.to_owned());
    lines.push(("label", or(&asked.label, "the server's version")));
    lines.push(("charset", or(&spec.charset, "utf8mb4 (utf8 before 5.5.3)")));
    lines.extend(asked.notes.iter().map(|(key, value)| ("note", format!("{key}={value}"))));
    lines.push(("repeats", asked.repeats.to_string()));
    lines.push(("out", out.display().to_string()));
    lines
}
