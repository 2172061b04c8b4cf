//! Profile → Experiment.

use std::path::{Path, PathBuf};

use toml::Spanned;

use super::subject::subjects;
use super::{Beside, Cell, Dataset, Experiment, Overrides, Part, Source, Subject, What, key};
use crate::error::{Error, Result};
use crate::plan::before::{Ahi, Before, Warm};
use crate::plan::condition::Condition;
use crate::plan::policy::{OnError, Policy};
use crate::plan::profile::value::Names;
use crate::plan::profile::{Profile, Run, Turns};
use crate::plan::timed::{LoadSource, LoadSpec};
use crate::plan::{
    Arrival, Order, Plan, SpreadChoice, StatementMode, StopAt, check_steps, defaults, shuffle,
    units,
};
use crate::workload::Workload;
use crate::workload::distribution::Distribution;
use crate::workload::random::seed_of;

impl Experiment {
    /// Decides everything.
    ///
    /// # Errors
    ///
    /// Usage: `--program` without a sandbox to take it, `--only` of what is not there, a spread
    /// that the tables forbid.
    pub fn new(profile: &Profile, overrides: &Overrides) -> Result<Experiment> {
        let mut experiment = Experiment {
            name: profile.name.as_ref().clone(),
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
        for run in &profile.runs {
            experiment.parts.extend(parts(profile, run, overrides, &experiment.subjects)?);
        }
        let steps = experiment.parts.iter().map(Part::count).fold(0, u64::saturating_add);
        check_steps(steps)?;
        experiment.cells = cells(&experiment, overrides.seed);
        experiment.all.clone_from(&experiment.cells);
        experiment.keep_only(&overrides.only)?;
        experiment.name_labels(profile)?;
        Ok(experiment)
    }

    /// More repeats of every cell, for what is measured again; labels are interleaved, whatever the
    /// profile wants: what is compared should stand side by side.
    pub(crate) fn extend(&mut self, repeats: u32, seed: u64) {
        self.order = Turns::Interleaved;
        for part in &mut self.parts {
            part.repeats = part.repeats.max(repeats);
            if let What::Sweep(plan, _) = &mut part.what {
                plan.repeats = part.repeats;
            }
        }
        self.cells = cells(self, seed);
        self.all.clone_from(&self.cells);
    }

    /// The report's labels as they are in the tables.
    fn name_labels(&mut self, profile: &Profile) -> Result<()> {
        let subjects = &self.subjects;
        let found = |wanted: &Spanned<String>| {
            let found = called(subjects, wanted.as_ref());
            if !found.is_empty() {
                return Ok(found);
            }
            let labels: Vec<&str> = subjects.iter().map(|s| s.label.as_str()).collect();
            let known = labels.join(", ");
            let what = format!("there is no label '{}': first, last, {known}", wanted.as_ref());
            Err(profile.refuse(wanted.span(), what))
        };
        let report = &mut self.report;
        if let Some(wanted) = &mut report.baseline {
            let label = found(wanted)?.first().map_or_else(String::new, |s| s.label.clone());
            *wanted = Spanned::new(wanted.span(), label);
        }
        let from = report.from.as_ref().map(found).transpose()?.unwrap_or_default();
        let to = report.to.as_ref().map(found).transpose()?.unwrap_or_default();
        self.changes = pairs(&from, &to);
        if let Some(Names(order)) = &mut report.order {
            let mut labels = Vec::new();
            for name in order.iter() {
                let found = subjects.iter().filter(|s| is(s, name.as_ref()));
                labels.extend(found.map(|s| Spanned::new(name.span(), s.label.clone())));
            }
            *order = labels;
        }
        Ok(())
    }
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
    place: &Spanned<Run>,
    overrides: &Overrides,
    subjects: &[Subject],
) -> Result<Vec<Part>> {
    let run = place.as_ref();
    let is_for = |subject: &Subject| {
        run.servers
            .as_ref()
            .is_none_or(|names| names.as_ref().texts().any(|name| name == subject.name))
    };
    let for_subjects: Vec<usize> =
        subjects.iter().enumerate().filter(|(_, s)| is_for(s)).map(|(at, _)| at).collect();
    let gates = profile.gates.iter().chain(&run.gates).map(|gate| gate.0.clone());
    let gates: Vec<Condition> = gates.collect();
    let part = |title: String, what: What| Part {
        commands: commands(profile, &title, overrides),
        repeats: run.repeat.as_ref().map_or(1, |repeat| *repeat.as_ref()),
        subjects: for_subjects.clone(),
        gates: match what {
            What::Sweep(..) => gates.clone(),
            What::Load(_) | What::Suite(_) => Vec::new(),
        },
        what,
        title,
    };
    let titles = profile.titles(place).into_iter().map(|(title, _)| title);
    if let Some(load) = &run.load {
        let load = scaled(load.as_ref(), overrides);
        return Ok(titles.map(|title| part(title, What::Load(load.clone()))).collect());
    }
    if let Some(suite) = &run.suite {
        return Ok(titles.map(|title| part(title, What::Suite(suite.as_ref().clone()))).collect());
    }
    let names = run.workload.iter().flat_map(Names::texts);
    let mut parts = Vec::new();
    for (title, name) in titles.zip(names) {
        let Some(workload) = profile.workload(name) else { continue };
        // Those of its options; of several workloads not every one has all.
        let options = run.options.iter().filter(|(name, _)| workload.options.contains_key(*name));
        let options = options.map(|(name, value)| (name.clone(), value.as_ref().0)).collect();
        let here = |e: Error| profile.refuse(place.span(), format!("run {title}: {e}"));
        let mut workload = workload.with_options(&options).map_err(here)?;
        workload.name.clone_from(&title);
        let dataset = dataset(profile, run, &workload, overrides);
        if dataset.schema.filled() {
            workload.fits(dataset.rows).map_err(here)?;
        }
        let plan = plan(workload, run, &dataset, overrides)?;
        if dataset.tables == 0 && (plan.before.warm == Warm::Pool || plan.before.ahi == Ahi::Warm) {
            let what =
                "warm and ahi read the tables that prepare makes, and no statement names one";
            return Err(profile.refuse(place.span(), format!("run {title}: {what}")));
        }
        if let Err(error) = plan.spread_over(dataset.tables) {
            let spread = run.spread.as_ref().map_or(place.span(), Spanned::span);
            return Err(profile.refuse(spread, format!("run {title}: {error}")));
        }
        parts.push(part(title, What::Sweep(Box::new(plan), dataset)));
    }
    Ok(parts)
}

/// The state that its steps start from.
fn before(run: &Run) -> Before {
    let warm = run.warm.map_or(Warm::None, |warm| warm.0);
    Before {
        warm: if run.scan { Warm::Pool } else { warm },
        ahi: run.ahi.map_or(Ahi::AsIs, |ahi| ahi.0),
        settle: run.settle.map(|limit| limit.0),
        // The subjects know.
        expect: None,
    }
}

fn scaled(load: &LoadSpec, overrides: &Overrides) -> LoadSpec {
    let mut load = load.clone();
    if let LoadSource::Generated { rows, .. } = &mut load.source {
        *rows = overrides.scale.rows(*rows);
    }
    load
}

fn commands(profile: &Profile, title: &str, overrides: &Overrides) -> Vec<Beside> {
    let here = profile.commands.iter().map(Spanned::as_ref).filter(|command| {
        command.workload.as_ref().is_none_or(|names| names.texts().any(|name| name == title))
    });
    here.map(|command| Beside {
        at: overrides.scale.warmup(command.at.as_ref().0),
        run: command.run.as_ref().clone(),
        clients: command.clients.as_ref().map(|clients| clients.as_ref().0.clone()),
    })
    .collect()
}

fn dataset(profile: &Profile, run: &Run, workload: &Workload, overrides: &Overrides) -> Dataset {
    let tables = &profile.tables;
    let schema = workload.schema;
    let count = match (&run.tables, workload.table_a_client) {
        _ if !workload.names_tables() => 0,
        (Some(tables), _) => tables.as_ref().0 as u32,
        (None, true) => run.clients.as_ref().map_or(1, |clients| clients.as_ref().most()),
        (None, false) => tables.count.as_ref().map_or(defaults::TABLES, |n| n.as_ref().0 as u32),
    };
    let rows = run.rows.as_ref().or(tables.rows.as_ref());
    // The default parses.
    let usual = || units::parse_count(defaults::ROWS).unwrap_or(10_000);
    let rows = overrides.scale.rows(rows.map_or_else(usual, |n| n.as_ref().0));
    Dataset {
        schema,
        tables: count,
        rows: if schema.filled() { rows } else { 0 },
        data_seed: tables.data_seed.unwrap_or(defaults::DATA_SEED),
        charset: tables.charset.as_ref().map(|name| name.as_ref().clone()),
        jobs: tables.jobs.as_ref().map(|jobs| *jobs.as_ref()),
        refill: tables.refill,
    }
}

fn plan(workload: Workload, run: &Run, dataset: &Dataset, overrides: &Overrides) -> Result<Plan> {
    let scale = overrides.scale;
    let usual = |text: &str| units::parse_duration(text).map_err(Error::usage);
    let stop = match (&run.ops, &run.time) {
        (Some(ops), _) => StopAt::Ops(scale.ops(ops.as_ref().0)),
        (None, Some(time)) => StopAt::Time(scale.time(time.as_ref().0)),
        (None, None) => StopAt::Time(scale.time(usual(defaults::TIME)?)),
    };
    let warmup = match (&run.warmup, stop) {
        (Some(warmup), _) => warmup.as_ref().0,
        (None, StopAt::Ops(_)) => std::time::Duration::ZERO,
        (None, StopAt::Time(_)) => usual(defaults::WARMUP)?,
    };
    Ok(Plan {
        workload,
        label: None,
        notes: Vec::new(),
        tables: Some(dataset.tables),
        rows: dataset.schema.filled().then_some(dataset.rows),
        clients: run.clients.as_ref().map_or_else(|| vec![1], |c| c.as_ref().0.clone()),
        spread: run.spread.as_ref().map_or(SpreadChoice::Auto, |word| word.as_ref().0),
        warmup: scale.warmup(warmup),
        stop,
        rates: run.rate.as_ref().map_or_else(Vec::new, |rates| rates.0.clone()),
        arrival: run.arrival.map_or(Arrival::default(), |word| word.0),
        repeats: run.repeat.as_ref().map_or(1, |repeat| *repeat.as_ref()),
        order: run.order.map_or(Order::Ascending, |word| word.0),
        distribution: run.distribution.map_or(Distribution::Uniform, |parsed| parsed.0),
        statements: run.statements.map_or(StatementMode::Prepared, |word| word.0),
        seed: overrides.seed,
        engine_threads: run.engine_threads.as_ref().map(|threads| *threads.as_ref()),
        charset: run.charset.as_ref().map(|name| name.as_ref().clone()),
        out: overrides.out.clone(),
        interval: std::time::Duration::from_secs(1),
        interval_log: None,
        before: before(run),
        policy: Policy {
            on_error: run.on_error.map_or(OnError::default(), |word| word.0),
            errors_max: run.max_errors.map(|parsed| parsed.0),
            op_timeout: run.op_timeout.map(|span| span.0),
        },
    })
}

/// Labels and repeats in the order in which they are taken. But for [`Turns::InTurn`], repeats are
/// outermost, so that drift and the luck of a restart do not hide inside a cell.
fn visits(experiment: &Experiment, seed: u64) -> Vec<(u32, usize)> {
    let repeats = experiment.parts.iter().map(|part| part.repeats).max().unwrap_or(0);
    let subjects = 0..experiment.subjects.len();
    if experiment.order == Turns::InTurn {
        return subjects.flat_map(|s| (1..=repeats).map(move |repeat| (repeat, s))).collect();
    }
    let in_repeat = |repeat: u32| {
        let mut subjects: Vec<usize> = subjects.clone().collect();
        match experiment.order {
            // What comes later in each repeat would otherwise be the same label every time.
            Turns::Interleaved if repeat.is_multiple_of(2) => subjects.reverse(),
            Turns::Shuffled => shuffle(&mut subjects, seed_of(&[seed, u64::from(repeat)])),
            Turns::InTurn | Turns::Interleaved => {}
        }
        subjects.into_iter().map(move |subject| (repeat, subject))
    };
    (1..=repeats).flat_map(in_repeat).collect()
}

/// All cells in the order of execution: labels and repeats as the profile wants them, in each the
/// runs.
fn cells(experiment: &Experiment, seed: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (repeat, subject) in visits(experiment, seed) {
        let Some(of_subject) = experiment.subjects.get(subject) else { continue };
        for (part, of_part) in experiment.parts.iter().enumerate() {
            if repeat > of_part.repeats || !of_part.subjects.contains(&subject) {
                continue;
            }
            let (conditions, what) = (conditions(of_subject), what(of_part));
            let same = key(&[&experiment.name, &conditions, &what]);
            for (clients, rate) in of_part.steps(repeat) {
                let of_rate = rate.map_or_else(String::new, |rate| format!("@{rate}"));
                let key = key(&[&same, &format!("{clients}{of_rate}"), &repeat.to_string()]);
                cells.push(Cell { subject, part, clients, rate, repeat, key });
            }
        }
    }
    cells
}

impl Part {
    /// Its cells, not made yet.
    fn count(&self) -> u64 {
        let steps = match &self.what {
            What::Sweep(plan, _) => plan.count_steps(),
            What::Load(_) | What::Suite(_) => u64::from(self.repeats),
        };
        steps.saturating_mul(self.subjects.len() as u64)
    }

    /// The numbers of clients and the rates in the order of one repeat.
    fn steps(&self, repeat: u32) -> Vec<(u32, Option<f64>)> {
        match &self.what {
            What::Sweep(plan, _) => {
                let steps = plan.steps().into_iter().filter(|step| step.repeat == repeat);
                steps.map(|step| (step.clients, step.rate)).collect()
            }
            What::Load(_) | What::Suite(_) => vec![(1, None)],
        }
    }
}

/// What makes two measurements of a label the same: how loadgen sets its server up. Of a server
/// that is there only its owner knows.
fn conditions(subject: &Subject) -> String {
    match &subject.source {
        Source::Existing(_) => subject.label.clone(),
        Source::Sandbox(private) => {
            let program = private.program.as_deref().map(Path::display);
            let program = program.map(|path| path.to_string());
            format!("{} {program:?} {:?}", subject.label, private.options)
        }
    }
}

/// What makes two measurements of a part the same. Repeats and numbers of clients may be added
/// later.
fn what(part: &Part) -> String {
    match &part.what {
        What::Sweep(plan, dataset) => {
            let same = Plan {
                clients: Vec::new(),
                rates: Vec::new(),
                repeats: 0,
                order: Order::Ascending,
                seed: 0,
                out: PathBuf::new(),
                ..(**plan).clone()
            };
            format!("{same:?} {dataset:?} {:?}", part.commands)
        }
        What::Load(load) => format!("{} {load:?}", part.title),
        What::Suite(suite) => format!("{} {suite:?}", part.title),
    }
}
