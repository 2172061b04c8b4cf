//! Profile → Experiment.

use std::fmt;

use super::subject::subjects;
use super::{Beside, Dataset, Experiment, Overrides, Part, Subject, What, cells, only};
use crate::error::{Error, Result};
use crate::plan::before::{Ahi, Warm};
use crate::plan::knobs::Knobs;
use crate::plan::profile::{Load, Measured, Names, Profile, Suite, Sweep};
use crate::plan::timed::{LoadSource, LoadSpec};
use crate::plan::value::Whole;
use crate::plan::{Plan, check_steps, defaults};
use crate::terms::Gate;
use crate::workload::Workload;

/// Rows of a table.
const ROWS: u64 = 10_000;

/// Decides everything.
pub(super) fn experiment(profile: &Profile, overrides: &Overrides) -> Result<Experiment> {
    let mut experiment = Experiment {
        name: profile.name.clone(),
        about: profile.about.clone(),
        scale: overrides.scale,
        order: profile.order,
        refill: profile.tables.refill,
        restart: profile.restart,
        subjects: subjects(profile, overrides)?,
        parts: Vec::new(),
        cells: Vec::new(),
        all: Vec::new(),
        report: profile.report.clone(),
        changes: Vec::new(),
    };
    for n in 0..profile.runs.len() {
        experiment.parts.extend(parts(profile, n, overrides, &experiment.subjects)?);
    }
    let steps = experiment.parts.iter().map(cells::count).fold(0, u64::saturating_add);
    check_steps(steps)?;
    experiment.cells = cells::cells(&experiment, overrides.seed);
    experiment.all.clone_from(&experiment.cells);
    only::keep(&mut experiment, &overrides.only)?;
    name_labels(&mut experiment, profile)?;
    Ok(experiment)
}

/// Puts the labels of the tables into the report.
fn name_labels(experiment: &mut Experiment, profile: &Profile) -> Result<()> {
    let subjects = &experiment.subjects;
    let found = |key: &str, wanted: &Option<String>| match wanted {
        None => Ok(Vec::new()),
        Some(wanted) => match called(subjects, wanted).as_slice() {
            [] => {
                let labels: Vec<&str> = subjects.iter().map(|s| s.label.as_str()).collect();
                let known = labels.join(", ");
                let what = format!("there is no label '{wanted}': first, last, {known}");
                Err(profile.refuse(&format!("report/{key}"), what))
            }
            found => Ok(found.to_vec()),
        },
    };
    let report = &mut experiment.report;
    let baseline = found("baseline", &report.baseline)?;
    report.baseline = baseline.first().map(|subject| subject.label.clone());
    experiment.changes = pairs(&found("from", &report.from)?, &found("to", &report.to)?);
    if let Some(Names(order)) = &mut report.order {
        let named = |name: &String| -> Vec<String> {
            let named = subjects.iter().filter(|subject| is(subject, name));
            named.map(|subject| subject.label.clone()).collect()
        };
        *order = order.iter().flat_map(named).collect();
    }
    Ok(())
}

fn is(subject: &Subject, name: &str) -> bool {
    subject.label == name || subject.name == name
}

/// The subjects that a report's label stands for: with several programs one for each.
fn called<'a>(subjects: &'a [Subject], name: &str) -> Vec<&'a Subject> {
    match name {
        "first" => subjects.first().into_iter().collect(),
        "last" => subjects.last().into_iter().collect(),
        _ => subjects.iter().filter(|subject| is(subject, name)).collect(),
    }
}

/// Labels that are compared: those of the same program, or all where no two have one in common.
fn pairs(from: &[&Subject], to: &[&Subject]) -> Vec<(String, String)> {
    let program = |subject: &Subject| {
        let label = subject.label.strip_suffix(&subject.name).unwrap_or_default();
        label.trim_end_matches('+').to_owned()
    };
    let all = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
    let (same, other): (Vec<_>, Vec<_>) = all.partition(|(from, to)| program(from) == program(to));
    let chosen = if same.is_empty() { other } else { same };
    chosen.into_iter().map(|(from, to)| (from.label.clone(), to.label.clone())).collect()
}

/// The parts of a run: one for each of its workloads.
fn parts(
    profile: &Profile,
    n: usize,
    overrides: &Overrides,
    subjects: &[Subject],
) -> Result<Vec<Part>> {
    let run = &profile.runs[n];
    let is_for = |subject: &Subject| {
        run.servers.as_ref().is_none_or(|names| names.0.contains(&subject.name))
    };
    let for_subjects: Vec<usize> =
        subjects.iter().enumerate().filter(|(_, s)| is_for(s)).map(|(at, _)| at).collect();
    let part = |title: String, what: What, repeat: Option<Whole<1, 1000>>, gates: &[Gate]| Part {
        commands: commands(profile, &title, overrides),
        repeats: repeat.map_or(1, |repeat| repeat.0 as u32),
        subjects: for_subjects.clone(),
        gates: gates.to_vec(),
        what,
        title,
    };
    let titles = profile.titles(run).into_iter();
    match &run.what {
        Measured::Load(Load { load, repeat }) => {
            let load = scaled(load, overrides);
            Ok(titles.map(|title| part(title, What::Load(load.clone()), *repeat, &[])).collect())
        }
        Measured::Suite(Suite { suite, repeat }) => {
            Ok(titles.map(|title| part(title, What::Suite(suite.clone()), *repeat, &[])).collect())
        }
        Measured::Sweep(sweep) => {
            let gates = [profile.gates.as_slice(), &sweep.knobs.gates].concat();
            let parts = titles.zip(&sweep.workload.0).map(|(title, name)| {
                let here = |key: &str, what: &dyn fmt::Display| {
                    profile.refuse(&format!("run/{n}/{key}"), format!("run {title}: {what}"))
                };
                let (plan, dataset) = plan(profile, sweep, (&title, name), overrides, &here)?;
                let what = What::Sweep(Box::new(plan), dataset);
                Ok(part(title, what, sweep.knobs.repeat, &gates))
            });
            parts.collect()
        }
    }
}

/// One workload of a run, and its tables; `here` makes the error of a key.
fn plan(
    profile: &Profile,
    sweep: &Sweep,
    (title, name): (&str, &str),
    overrides: &Overrides,
    here: &dyn Fn(&str, &dyn fmt::Display) -> Error,
) -> Result<(Plan, Dataset)> {
    let workload = profile.workload(name).expect("the profile was checked");
    // Of several workloads not every one has all options.
    let options = sweep.options.iter().filter(|(name, _)| workload.options.contains_key(*name));
    let options = options.map(|(name, value)| (name.clone(), value.0)).collect();
    let mut workload = workload.with_options(&options).map_err(|e| here("", &e))?;
    title.clone_into(&mut workload.name);
    let dataset = dataset(profile, sweep, &workload, overrides);
    if dataset.schema.filled() {
        workload.fits(dataset.rows).map_err(|e| here("", &e))?;
    }
    let knobs = Knobs {
        // The tables may be none.
        tables: None,
        rows: None,
        warm: if sweep.scan { Some(Warm::Pool) } else { sweep.knobs.warm },
        out: Some(overrides.out.clone()),
        ..sweep.knobs.clone()
    };
    let plan = knobs.resolve(workload, overrides.seed).map_err(|e| here("arrival", &e))?;
    let plan = Plan {
        tables: Some(dataset.tables),
        rows: dataset.schema.filled().then_some(dataset.rows),
        ..plan.scaled(overrides.scale)
    };
    if dataset.tables == 0 && (plan.before.warm == Warm::Pool || plan.before.ahi == Ahi::Warm) {
        let what = "warm and ahi read the tables that prepare makes, and no statement names one";
        return Err(here("", &what));
    }
    plan.spread_over(dataset.tables).map_err(|e| here("spread", &e))?;
    Ok((plan, dataset))
}

fn dataset(
    profile: &Profile,
    sweep: &Sweep,
    workload: &Workload,
    overrides: &Overrides,
) -> Dataset {
    let (tables, knobs, schema) = (&profile.tables, &sweep.knobs, workload.schema);
    let count = match (knobs.tables.or(tables.count), workload.table_a_client) {
        _ if !workload.names_tables() => 0,
        (_, true) if knobs.tables.is_none() => knobs.clients().into_iter().max().unwrap_or(1),
        (count, _) => count.map_or(defaults::TABLES, |count| count.0),
    };
    let rows = knobs.rows.and_then(|rows| rows.0).or(tables.rows.map(|rows| rows.0));
    let rows = overrides.scale.rows(rows.unwrap_or(ROWS));
    Dataset {
        schema,
        tables: count,
        rows: if schema.filled() { rows } else { 0 },
        data_seed: tables.data_seed.unwrap_or(defaults::DATA_SEED),
        charset: tables.charset.as_ref().map(|name| name.0.clone()),
        jobs: tables.jobs.map(|jobs| jobs.0 as u32),
        refill: tables.refill,
    }
}

fn scaled(load: &LoadSpec, overrides: &Overrides) -> LoadSpec {
    let mut load = load.clone();
    if let LoadSource::Generated { rows, .. } = &mut load.source {
        *rows = overrides.scale.rows(*rows);
    }
    load
}

fn commands(profile: &Profile, title: &String, overrides: &Overrides) -> Vec<Beside> {
    let here = profile
        .commands
        .iter()
        .filter(|command| command.workload.as_ref().is_none_or(|names| names.0.contains(title)));
    here.map(|command| Beside {
        at: overrides.scale.warmup(command.at.0),
        run: command.run.clone(),
        clients: command.clients.as_ref().map(|clients| clients.0.clone()),
    })
    .collect()
}
