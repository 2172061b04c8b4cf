//! Profile → Experiment: the labels, what `base` inherits, the runs and their tables.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{
    Beside, Dataset, Existing, Experiment, Overrides, Part, Private, Source, Subject, What, cells,
};
use crate::error::{Error, Result};
use crate::plan::knobs::Knobs;
use crate::plan::profile::{
    Data, Expect, Load, Measured, Names, Profile, Sandbox, Server, Suite, Sweep,
};
use crate::plan::timed::{LoadSource, LoadSpec};
use crate::plan::value::{Repeats, Scale, Whole};
use crate::plan::{Ahi, Plan, Warm, check_steps, defaults};
use crate::terms::Gate;
use crate::workload::Workload;

const ROWS: u64 = 10_000;
/// How long a command that starts or stops a server may take.
const WITHIN: Duration = Duration::from_mins(10);

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
    cells::keep(&mut experiment, &overrides.only)?;
    name_labels(&mut experiment, profile)?;
    Ok(experiment)
}

fn name_labels(experiment: &mut Experiment, profile: &Profile) -> Result<()> {
    let subjects = &experiment.subjects;
    let is = |subject: &Subject, name: &str| subject.label == name || subject.name == name;
    let called = |name: &str| -> Vec<&Subject> {
        match name {
            "first" => subjects.first().into_iter().collect(),
            "last" => subjects.last().into_iter().collect(),
            _ => subjects.iter().filter(|subject| is(subject, name)).collect(),
        }
    };
    let found = |key: &str, wanted: &Option<String>| {
        let Some(wanted) = wanted else { return Ok(Vec::new()) };
        let found = called(wanted);
        if found.is_empty() {
            let labels: Vec<&str> = subjects.iter().map(|s| s.label.as_str()).collect();
            let known = labels.join(", ");
            let what = format!("there is no label '{wanted}': first, last, {known}");
            return Err(profile.refuse(&format!("report/{key}"), what));
        }
        Ok(found)
    };
    let report = &mut experiment.report;
    let baseline = found("baseline", &report.baseline)?;
    report.baseline = baseline.first().map(|subject| subject.label.clone());
    experiment.changes = pairs(&found("from", &report.from)?, &found("to", &report.to)?);
    if let Some(Names(order)) = &mut report.order {
        let named = order.iter().flat_map(|name| subjects.iter().filter(|s| is(s, name)));
        *order = named.map(|subject| subject.label.clone()).collect();
    }
    Ok(())
}

/// Pairs labels that are compared: those of the same program, or all where no two have one in common.
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

/// Makes the parts of a run: one for each of its workloads.
fn parts(
    profile: &Profile,
    n: usize,
    overrides: &Overrides,
    subjects: &[Subject],
) -> Result<Vec<Part>> {
    let run = &profile.runs[n];
    let titles = profile.titles(run);
    let (whats, repeat, gates): (Vec<What>, Option<Repeats>, Vec<Gate>) = match &run.what {
        Measured::Load(Load { load, repeat }) => {
            (vec![What::Load(scaled(load, overrides))], *repeat, Vec::new())
        }
        Measured::Suite(Suite { suite, repeat }) => {
            (vec![What::Suite(suite.clone())], *repeat, Vec::new())
        }
        Measured::Sweep(sweep) => {
            let plans = titles.iter().zip(&sweep.workload.0).map(|(title, name)| {
                let here = |key: &str, what: &dyn fmt::Display| {
                    profile.refuse(&format!("run/{n}/{key}"), format!("run {title}: {what}"))
                };
                plan(profile, sweep, (title, name), overrides, &here)
            });
            let gates = [profile.gates.as_slice(), &sweep.knobs.gates].concat();
            (plans.collect::<Result<_>>()?, sweep.knobs.repeat, gates)
        }
    };
    let is_for = |s: &Subject| run.servers.as_ref().is_none_or(|names| names.0.contains(&s.name));
    let part = |(title, what)| Part {
        commands: commands(profile, &title, overrides),
        repeats: repeat.map_or(1, Whole::small),
        subjects: (0..subjects.len()).filter(|at| is_for(&subjects[*at])).collect(),
        gates: gates.clone(),
        what,
        title,
    };
    Ok(titles.into_iter().zip(whats).map(part).collect())
}

/// Plans one workload of a run on its tables; `here` makes the error of a key.
fn plan(
    profile: &Profile,
    sweep: &Sweep,
    (title, name): (&str, &str),
    overrides: &Overrides,
    here: &dyn Fn(&str, &dyn fmt::Display) -> Error,
) -> Result<What> {
    let workload = profile.workload(name).expect("the profile was checked");
    // Of several workloads not every one has all options.
    let options = sweep.options.iter().filter(|(name, _)| workload.options.contains_key(*name));
    let options = options.map(|(name, value)| (name.clone(), value.0)).collect();
    let mut workload = workload.with_options(&options).map_err(|e| here("", &e))?;
    title.clone_into(&mut workload.name);
    let dataset = dataset(profile, sweep, &workload, overrides.scale);
    let filled = dataset.schema.filled();
    if filled {
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
    let key = if knobs.think.is_some() && knobs.rate.is_some() { "think" } else { "arrival" };
    let plan = knobs.resolve(workload, overrides.seed).map_err(|e| here(key, &e))?;
    let plan = Plan {
        tables: Some(dataset.tables),
        rows: filled.then_some(dataset.rows),
        ..plan.scaled(overrides.scale)
    };
    if dataset.tables == 0 && (plan.before.warm == Warm::Pool || plan.before.ahi == Ahi::Warm) {
        let what = "warm and ahi read the tables that prepare makes, and no statement names one";
        return Err(here("", &what));
    }
    plan.spread_over(dataset.tables).map_err(|e| here("spread", &e))?;
    Ok(What::Sweep(Box::new(plan), dataset))
}

fn dataset(profile: &Profile, sweep: &Sweep, workload: &Workload, scale: Scale) -> Dataset {
    let (tables, knobs, schema) = (&profile.tables, &sweep.knobs, workload.schema);
    let count = match (knobs.tables.or(tables.count), workload.table_a_client) {
        _ if !workload.names_tables() => 0,
        (_, true) if knobs.tables.is_none() => knobs.clients().into_iter().max().unwrap_or(1),
        (count, _) => count.map_or(defaults::TABLES, Whole::small),
    };
    let rows = knobs.rows.as_ref().and_then(|rows| rows.0).or(tables.rows.map(|rows| rows.0));
    Dataset {
        schema,
        tables: count,
        rows: if schema.filled() { scale.rows(rows.unwrap_or(ROWS)) } else { 0 },
        data_seed: tables.data_seed.unwrap_or(defaults::DATA_SEED),
        charset: tables.charset.as_ref().map(|name| name.0.clone()),
        jobs: tables.jobs.map(Whole::small),
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
    let all = profile.commands.iter();
    let here = all.filter(|c| c.workload.as_ref().is_none_or(|names| names.0.contains(title)));
    here.map(|command| Beside {
        at: overrides.scale.warmup(command.at.0),
        run: command.run.clone(),
        clients: command.clients.as_ref().map(|clients| clients.0.clone()),
    })
    .collect()
}

/// Makes the labels: a server with what it inherits, and one for each program that it may take.
fn subjects(profile: &Profile, overrides: &Overrides) -> Result<Vec<Subject>> {
    let mut whole: Vec<Server> = Vec::new();
    for server in &profile.servers {
        let own = server.clone();
        whole.push(match &own.base {
            Some(name) => {
                let base = whole.iter().find(|server| server.name() == name);
                merged(base.expect("the profile was checked").clone(), own)
            }
            None => own,
        });
    }
    let takes_programs =
        |server: &&Server| server.sandbox.as_ref().is_some_and(|sandbox| sandbox.program.is_none());
    let (open, own): (Vec<_>, Vec<_>) = whole.iter().partition(takes_programs);
    let programs = &overrides.programs;
    if !programs.is_empty() && open.is_empty() {
        let message = "--program: every sandbox of this profile names its own";
        return Err(Error::usage(message).hint("take `program` out of [server.sandbox]"));
    }
    let subject = |server: &Server, program| subject(profile, server, program, overrides.scale);
    let subjects: Vec<Subject> = if programs.is_empty() {
        whole.iter().map(|server| subject(server, None)).collect()
    } else {
        // A program is taken through all its variants before the next.
        let each = programs.iter().flat_map(|p| open.iter().map(move |server| (*server, Some(p))));
        own.iter().map(|server| (*server, None)).chain(each).map(|(s, p)| subject(s, p)).collect()
    };
    for (at, subject) in subjects.iter().enumerate() {
        if subjects.iter().take(at).any(|other| other.label == subject.label) {
            return Err(Error::usage(format!("two servers have the label '{}'", subject.label))
                .hint("give each --program a name of its own"));
        }
    }
    Ok(subjects)
}

/// Takes what one server says, and the rest from its base.
fn merged(base: Server, own: Server) -> Server {
    let elsewhere = own.url.is_some() || own.defaults_file.is_some();
    let keep = !elsewhere && own.sandbox.is_none();
    let sandbox = match (base.sandbox, own.sandbox) {
        _ if elsewhere => None,
        (Some(base), Some(own)) => Some(merged_sandbox(base, own)),
        (base, own) => own.or(base),
    };
    Server {
        label: own.label,
        base: own.base,
        note: own.note.or(base.note),
        url: own.url.or(base.url.filter(|_| keep)),
        defaults_file: own.defaults_file.or(base.defaults_file.filter(|_| keep)),
        sandbox,
        start: own.start.or(base.start),
        stop: own.stop.or(base.stop),
        reset: own.reset.or(base.reset),
        within: own.within.or(base.within),
        probe: own.probe.or(base.probe),
        expect: Expect {
            variables: base.expect.variables.into_iter().chain(own.expect.variables).collect(),
            database: own.expect.database.or(base.expect.database),
        },
    }
}

fn merged_sandbox(base: Sandbox, own: Sandbox) -> Sandbox {
    let (mut options, mut scaled_options) = (base.options, base.scaled_options);
    // An option is in one of the two.
    let plain = |name: &str| name.replace('-', "_");
    let said = own.options.keys().chain(own.scaled_options.keys()).map(|name| plain(name));
    let said: Vec<String> = said.collect();
    options.retain(|name, _| !said.contains(&plain(name)));
    scaled_options.retain(|name, _| !said.contains(&plain(name)));
    options.extend(own.options);
    scaled_options.extend(own.scaled_options);
    let (program, data) = (own.program.or(base.program), own.data.or(base.data));
    Sandbox { program, options, scaled_options, data }
}

fn subject(
    profile: &Profile,
    server: &Server,
    program: Option<&(String, PathBuf)>,
    scale: Scale,
) -> Subject {
    let with_program = |name: &str| match (program, name) {
        (None, "") => profile.name.clone(),
        (None, name) => name.to_owned(),
        (Some((program, _)), "") => program.clone(),
        (Some((program, _)), name) => format!("{program}+{name}"),
    };
    let words = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let source = match &server.sandbox {
        Some(sandbox) => Source::Sandbox(private(sandbox, program, scale)),
        None => Source::Existing(Existing {
            url: server.url.clone(),
            defaults_file: server.defaults_file.clone(),
            start: words(&server.start),
            stop: words(&server.stop),
            reset: words(&server.reset),
            within: server.within.map_or(WITHIN, |within| within.0),
        }),
    };
    Subject {
        label: with_program(server.name()),
        name: server.name().to_owned(),
        base: server.base.as_ref().map(|base| with_program(base)),
        note: server.note.clone(),
        source,
        probe: words(&server.probe),
        expect: vec![profile.expect.clone(), server.expect.clone()],
    }
}

fn private(sandbox: &Sandbox, program: Option<&(String, PathBuf)>, scale: Scale) -> Private {
    let plain = sandbox.options.iter().map(|(name, value)| (name.clone(), value.0.clone()));
    let sizes = sandbox
        .scaled_options
        .iter()
        .map(|(name, size)| (name.clone(), Some(scale.size(name, size.0).to_string())));
    let options: BTreeMap<String, Option<String>> = plain.chain(sizes).collect();
    // Directories of one program are of no use to another, and a trial at a small scale must not
    // drop what took hours to fill.
    let own = |mut dir: PathBuf| {
        if !scale.is_full() {
            dir.as_mut_os_string().push(format!("-x{}", scale.factor()));
        }
        match program {
            Some((name, _)) if sandbox.program.is_none() => dir.join(name),
            _ => dir.join("server"),
        }
    };
    let data = match sandbox.data.clone().unwrap_or_default() {
        Data::Keep(dir) => Data::Keep(own(dir)),
        Data::CopyOf(dir) => Data::CopyOf(own(dir)),
        data => data,
    };
    Private {
        program: sandbox.program.clone().or_else(|| program.map(|(_, path)| path.clone())),
        options: options.into_iter().collect(),
        data,
    }
}
