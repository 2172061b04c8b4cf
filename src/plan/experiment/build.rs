//! Profile → Experiment: labels, inheritance by `base`, runs and their tables. Checks what the file's form
//! cannot: names that must exist, values that exclude each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem::take;
use std::path::PathBuf;
use std::time::Duration;

use super::{Dataset, Experiment, Overrides, RunSpec, ServerSetup, What};
use crate::error::{Error, Result};
use crate::plan::group::schemas;
use crate::plan::knobs::{Knobs, LoadSource, SuiteSpec};
use crate::plan::profile::script::ScriptRun;
use crate::plan::profile::{Command, Data, Expect, Measured, Profile, Sandbox, Server, Setting};
use crate::plan::script::{ScriptPart, plain, workload_of};
use crate::plan::value::{JOBS_MAX, Length, Names, Scale, Whole};
use crate::plan::{Ahi, Plan, Warm, check_steps, defaults, units};
use crate::terms::{Gate, Quantity, joined};
use crate::workload::{Workload, builtin};

type Program = (String, PathBuf);
type Given<'a> = (&'a Profile, &'a Overrides);
type Refuse<'a> = dyn Fn(&str, &dyn fmt::Display) -> Error + 'a;

pub fn build(profile: &Profile, overrides: &Overrides) -> Result<Experiment> {
    let subjects = subjects(profile, overrides)?;
    check_labels(profile, "report/order", profile.report.order.as_ref())?;
    check_workloads(profile)?;
    let mut parts = Vec::new();
    for n in 0..profile.runs.len() {
        add_parts(&mut parts, (profile, overrides), n, &subjects)?;
    }
    let is_of_all =
        |gate: &Gate| gate.group.is_none() && !matches!(gate.quantity, Quantity::Connect(_));
    for (n, gate) in profile.gates.iter().enumerate().filter(|(_, gate)| !is_of_all(gate)) {
        let any = parts.iter().any(|part| is_gated(&part.what, gate));
        profile.ensure(
            any,
            format_args!("gates/{n}"),
            format_args!("gate {gate}: no run has that group, or its clients keep their connections (reconnect_every)"),
        )?;
    }
    for (n, command) in profile.commands.iter().enumerate() {
        check_command(profile, n, command, &parts)?;
    }
    for part in &mut parts {
        if let What::Sweep(plan, _) = &mut part.what {
            plan.scale(overrides.scale);
            overrides.host_threads.iter().for_each(|hosts| plan.add_up_threads(hosts));
        }
    }
    let steps = parts.iter().map(RunSpec::count_steps).fold(0, u64::saturating_add);
    check_steps(steps)?;
    let (profile, scale) = (profile.clone(), overrides.scale);
    let (cells, all, changes) = (Vec::new(), Vec::new(), Vec::new());
    let mut experiment = Experiment { profile, scale, subjects, parts, cells, all, changes };
    experiment.make_cells(overrides.seed);
    experiment.keep(&overrides.only)?;
    name_labels(&mut experiment)?;
    Ok(experiment)
}

fn name_labels(experiment: &mut Experiment) -> Result<()> {
    let (subjects, profile) = (&experiment.subjects, &experiment.profile);
    let find = |key: &str, wanted: &Option<String>| find_subjects(experiment, key, wanted.as_ref());
    let report = &profile.report;
    let baseline = find("baseline", &report.baseline)?;
    let to = find("to", &report.to)?;
    let from = match &report.from {
        None if !to.is_empty() => baseline.clone(),
        from => find("from", from)?,
    };
    let baseline = baseline.first().map(|subject| subject.label.clone());
    let changes = pairs(&from, &to);
    let labels = |name: &String| -> Vec<String> {
        subjects.iter().filter(|s| is_named(s, name)).map(|s| s.label.clone()).collect()
    };
    let order = report.order.as_ref().map(|names| Names(names.0.iter().flat_map(labels).collect()));
    let report = &mut experiment.profile.report;
    (report.baseline, report.order, experiment.changes) = (baseline, order, changes);
    Ok(())
}

fn is_named(subject: &ServerSetup, name: &str) -> bool {
    subject.label == name || subject.server.name() == name
}

fn find_subjects<'e>(
    experiment: &'e Experiment,
    key: &str,
    wanted: Option<&String>,
) -> Result<Vec<&'e ServerSetup>> {
    let (subjects, profile) = (&experiment.subjects, &experiment.profile);
    let Some(wanted) = wanted else { return Ok(Vec::new()) };
    let found: Vec<&ServerSetup> = match wanted.as_str() {
        "first" => subjects.first().into_iter().collect(),
        "last" => subjects.last().into_iter().collect(),
        name => subjects.iter().filter(|subject| is_named(subject, name)).collect(),
    };
    let known: Vec<&str> = subjects.iter().map(|s| s.label.as_str()).collect();
    let what = format_args!("there is no label '{wanted}': first, last, {}", known.join(", "));
    profile.ensure(!found.is_empty(), format_args!("report/{key}"), what)?;
    Ok(found)
}

fn pairs(from: &[&ServerSetup], to: &[&ServerSetup]) -> Vec<(String, String)> {
    let all = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
    let (same, other): (Vec<_>, Vec<_>) = all.partition(|(from, to)| from.program == to.program);
    let chosen = if same.is_empty() { other } else { same };
    chosen.into_iter().map(|(from, to)| (from.label.clone(), to.label.clone())).collect()
}

/// Refuses unknown labels. Templates get a program's name in front, which only the experiment knows.
fn check_labels(profile: &Profile, here: &str, names: Option<&Names>) -> Result<()> {
    for (n, name) in names.into_iter().flat_map(Names::texts).enumerate() {
        let is_label = profile.servers.iter().any(|server| server.name() == name);
        let what = format_args!("'{name}' is no label of a [[server]]");
        profile.ensure(is_label, format_args!("{here}/{n}"), what)?;
    }
    Ok(())
}

fn check_workloads(profile: &Profile) -> Result<()> {
    let mut names: BTreeSet<String> = builtin().into_iter().map(|workload| workload.name).collect();
    for (n, workload) in profile.workloads.iter().enumerate() {
        let (here, name) = (format!("workload/{n}"), &workload.name);
        let checked = workload.check();
        checked.map_err(|what| profile.refuse(&here, format!("workload '{name}': {what}")))?;
        let what = format_args!("there is a workload '{name}' already");
        profile.ensure(names.insert(name.clone()), here, what)?;
    }
    Ok(())
}

/// Adds the parts of a run, one for each workload. Two parts with one title would share a table.
fn add_parts(
    parts: &mut Vec<RunSpec>,
    of: Given<'_>,
    n: usize,
    subjects: &[ServerSetup],
) -> Result<()> {
    let (profile, overrides) = of;
    let run = &profile.runs[n];
    let key_path = |key: &str| format!("run/{n}/{key}");
    let measures = run.servers.as_ref().is_none_or(|names| !names.0.is_empty());
    profile.ensure(measures, key_path("servers"), "a run without servers measures nothing")?;
    check_labels(profile, &key_path("servers"), run.servers.as_ref())?;
    let (mut gates, mut whats, mut script) = (&Vec::new(), Vec::new(), None);
    match &run.what {
        Measured::Load(load) => {
            let mut load = load.clone();
            if let LoadSource::Generated { rows, .. } = &mut load.source {
                *rows = overrides.scale.rows(*rows);
            }
            whats.push((load.name(), What::Load(load)));
        }
        Measured::Suite(suite) => {
            check_suite(profile, &key_path("suite"), suite)?;
            whats.push((format!("suite-{}", suite.name), What::Suite(suite.clone())));
        }
        Measured::Script(of_script) => {
            gates = &of_script.knobs.gates;
            let (title, what, part) = script_part(of, n, of_script)?;
            whats.push((title, what));
            script = Some(part);
        }
        Measured::Sweep(knobs) => {
            let ok = run.name.is_none() || knobs.workload.iter().flat_map(Names::texts).count() < 2;
            let what = "a name is for one workload; this run has several";
            profile.ensure(ok, key_path("name"), what)?;
            gates = &knobs.gates;
            for workload in workloads(profile, n, knobs)? {
                let title = run.name.clone().unwrap_or_else(|| workload.name.clone());
                let run_error = |key: &str, what: &dyn fmt::Display| {
                    profile.refuse(&key_path(key), format!("run {title}: {what}"))
                };
                let workload = set_options(knobs, workload).map_err(|e| run_error("", &e))?;
                let workload = Workload { name: title.clone(), ..workload };
                whats.push((title.clone(), plan(of, knobs, workload, &run_error)?));
            }
        }
    }
    let is_for =
        |s: &ServerSetup| run.servers.as_ref().is_none_or(|names| names.has(s.server.name()));
    for (nth, (title, what)) in whats.into_iter().enumerate() {
        let title = run.name.clone().unwrap_or(title);
        let key = if run.name.is_some() { "name" } else { &format!("workload/{nth}") };
        let new = parts.iter().all(|part| part.title != title);
        let twice = format_args!("there is a run '{title}' already: name = \"…\" tells them apart");
        profile.ensure(new, key_path(key), twice)?;
        let of_profile = profile.gates.iter().filter(|gate| is_gated(&what, gate));
        parts.push(RunSpec {
            gates: of_profile.chain(gates).cloned().collect(),
            what,
            repeats: run.repeat.map_or(1, Whole::small),
            subjects: (0..subjects.len()).filter(|at| is_for(&subjects[*at])).collect(),
            commands: commands(profile, &title, overrides.scale),
            script: script.clone(),
            title,
        });
    }
    Ok(())
}

/// Returns whether a gate of the profile is one of a run, too: no load or suite has gates.
fn is_gated(what: &What, gate: &Gate) -> bool {
    let What::Sweep(plan, _) = what else { return false };
    plan.check_gates(std::slice::from_ref(gate)).is_ok()
}

fn check_suite(profile: &Profile, path: &str, suite: &SuiteSpec) -> Result<()> {
    let what = format_args!("suite {} has no tests", suite.name);
    profile.ensure(!suite.tests.is_empty(), path, what)?;
    let mut known = BTreeSet::new();
    for test in &suite.tests {
        let what = format_args!("test {} is given twice", test.name);
        profile.ensure(known.insert(&test.name), path, what)?;
    }
    Ok(())
}

fn workloads(profile: &Profile, n: usize, knobs: &Knobs) -> Result<Vec<Workload>> {
    let find = |(nth, name)| {
        find_workload(profile, name)
            .map_err(|error| profile.refuse(&format!("run/{n}/workload/{nth}"), error.to_string()))
    };
    let names = knobs.workload.iter().flat_map(Names::texts);
    let found = names.enumerate().map(find).collect::<Result<Vec<Workload>>>()?;
    let what = "a run without workloads measures nothing";
    profile.ensure(!found.is_empty(), format_args!("run/{n}/workload"), what)?;
    let known: BTreeSet<&String> = found.iter().flat_map(|found| found.options.keys()).collect();
    for name in knobs.options.keys() {
        let options = joined(known.iter().map(|known| Some((*known).clone())), ", ");
        let options =
            options.map_or("the workload has none".into(), |all| format!("there are {all}"));
        let what = format_args!("no option '{name}': {options}");
        profile.ensure(known.contains(&name), format_args!("run/{n}/options/{name}"), what)?;
    }
    Ok(found)
}

/// Sets those of a run's options that the workload has: before it gets the run's title, which may have spaces.
fn set_options(knobs: &Knobs, workload: Workload) -> Result<Workload> {
    let options = knobs.options.iter().filter(|(name, _)| workload.options.contains_key(*name));
    let options: BTreeMap<String, u64> =
        options.map(|(name, value)| (name.clone(), value.0)).collect();
    workload.with_options(&options)
}

fn find_workload(profile: &Profile, name: &str) -> Result<Workload> {
    profile.workload(name).ok_or_else(|| {
        let known = builtin().into_iter().chain(profile.workloads.iter().cloned());
        let known = joined(known.map(|workload| Some(workload.name)), ", ");
        Error::usage(format!("no workload '{name}': {}", known.unwrap_or_default()))
    })
}

/// Plans one workload of a run on its tables; `here` makes errors of a key.
fn plan(of: Given<'_>, knobs: &Knobs, workload: Workload, here: &Refuse<'_>) -> Result<What> {
    let (profile, overrides) = of;
    let find = |name: &str| find_workload(profile, name);
    let beside = schemas(&knobs.groups, &find);
    let own = workload.names_tables();
    let schema = beside.first().copied().filter(|_| !own).unwrap_or(workload.schema);
    let (named, mut knobs) = (own || !beside.is_empty(), knobs.clone());
    let mut groups = knobs.groups.iter_mut();
    groups.try_for_each(|group| group.scale(overrides.scale)).map_err(|e| here("group", &e))?;
    // With a table a client, the tables of other runs do not count.
    let count = profile.tables.count.filter(|_| !workload.table_a_client);
    knobs.tables = knobs.tables.or(count).filter(|_| named);
    let rows = knobs.rows.take().and_then(|rows| rows.0);
    let rows = rows.or(profile.tables.rows.map(|rows| rows.0)).unwrap_or(defaults::ROWS);
    let rows = schema.filled().then(|| overrides.scale.rows(rows));
    if let Some(rows) = rows {
        workload.fits(rows).map_err(|e| here("", &e))?;
    }
    let plan = knobs.located(workload, overrides.seed, &find).map_err(|(key, e)| here(key, &e))?;
    let tables = if named { plan.tables_or_default() } else { 0 };
    let plan = Plan { tables: Some(tables), rows, ..plan };
    if tables == 0 && (plan.before.warm == Warm::Pool || plan.before.ahi == Ahi::Warm) {
        let what = "warm and ahi read the tables that prepare makes, and no statement names one";
        return Err(here("", &what));
    }
    plan.spread_over(tables).map_err(|e| here("spread", &e))?;
    for group in &plan.groups {
        let fits = rows.map_or(Ok(()), |rows| group.workload.fits(rows));
        let spread = plan.of_group(group).spread_over(tables);
        fits.and(spread).map_err(|e| here("group", &e))?;
    }
    let of = &profile.tables;
    let jobs = of.jobs.map(Whole::small);
    // The command `prepare` of a script may have more.
    let fits = tables == 0 || jobs.is_none_or(|jobs| jobs <= JOBS_MAX);
    profile.ensure(fits, "tables/jobs", format_args!("tables have {JOBS_MAX} jobs at most"))?;
    let dataset = Dataset {
        schema,
        tables,
        // The schema's tables stay empty.
        rows: rows.unwrap_or(0),
        data_seed: of.data_seed.unwrap_or(defaults::DATA_SEED),
        charset: of.charset.as_ref().map(|name| name.0.clone()),
        jobs,
        force: of.refill,
        ..Dataset::default()
    };
    Ok(What::Sweep(Box::new(plan), dataset))
}

/// Plans a script, which has its own tables.
fn script_part(of: Given<'_>, n: usize, run: &ScriptRun) -> Result<(String, What, ScriptPart)> {
    let (profile, overrides) = of;
    let refuse = |(key, what): (&str, String)| profile.refuse(&format!("run/{n}/{key}"), what);
    let jobs = profile.tables.jobs.map(Whole::small);
    let part = run.part(overrides.scale, profile.tables.refill, jobs).map_err(refuse)?;
    let mut workload = workload_of(&part.file.path);
    workload.name = profile.runs[n].name.clone().unwrap_or(workload.name);
    let title = workload.name.clone();
    let knobs = run.knobs.of_script(&|name| find_workload(profile, name));
    let knobs = knobs.map_err(|(key, why)| {
        refuse((key, format!("run {title}: {key} is not for scripts: {why}")))
    })?;
    let here = |key: &str, what: &dyn fmt::Display| refuse((key, format!("run {title}: {what}")));
    let what = plan(of, &knobs, workload, &here)?;
    Ok((title, what, part))
}

fn is_beside(command: &Command, title: &str) -> bool {
    command.workload.as_ref().is_none_or(|names| names.has(title))
}

fn commands(profile: &Profile, title: &str, scale: Scale) -> Vec<Command> {
    let beside = profile.commands.iter().filter(|command| is_beside(command, title));
    beside.map(|one| Command { at: Length(scale.warmup(one.at.0)), ..one.clone() }).collect()
}

/// Refuses a command that would never run: beside no run, no step, or after the end of all windows.
fn check_command(profile: &Profile, n: usize, command: &Command, parts: &[RunSpec]) -> Result<()> {
    let key_path = |key: &str| format!("command/{n}/{key}");
    let titles: Vec<&str> = parts.iter().map(|part| part.title.as_str()).collect();
    for (nth, name) in command.workload.iter().flat_map(Names::texts).enumerate() {
        let what = format_args!("'{name}' is no [[run]]: {}", titles.join(", "));
        profile.ensure(titles.contains(&name), key_path(&format!("workload/{nth}")), what)?;
    }
    // Loads and suites have no window, and no command beside them.
    let beside = parts.iter().filter(|part| is_beside(command, &part.title));
    let plans: Vec<&Plan> = beside.filter_map(RunSpec::plan).collect();
    let lengths = plans.iter().map(|plan| plan.stop.time().unwrap_or(Duration::MAX));
    let no_window = || profile.refuse(&key_path("at"), "no run beside it has a window");
    let (at, longest) = (command.at.0, lengths.max().ok_or_else(no_window)?);
    let known: BTreeSet<u32> = plans.iter().flat_map(|plan| plan.clients.iter().copied()).collect();
    for clients in command.clients.iter().flat_map(|clients| &clients.0) {
        let known_ones: Vec<String> = known.iter().map(ToString::to_string).collect();
        let what = format_args!("no step has {clients} clients: {}", known_ones.join(", "));
        profile.ensure(known.contains(clients), key_path("clients"), what)?;
    }
    let [start, end] = [at, longest].map(units::duration);
    let what = format_args!("at {start} is not within the window: it lasts {end}");
    profile.ensure(at < longest, key_path("at"), what)
}

/// Makes the labels: each server, once for each program that it may take.
fn subjects(profile: &Profile, overrides: &Overrides) -> Result<Vec<ServerSetup>> {
    let whole = servers(profile)?;
    let takes_programs =
        |server: &&Server| server.sandbox.as_ref().is_some_and(|sandbox| sandbox.program.is_none());
    let (open, own): (Vec<_>, Vec<_>) = whole.iter().partition(takes_programs);
    let programs = &overrides.programs;
    if !programs.is_empty() && open.is_empty() {
        if whole.iter().any(|server| server.given.is_some()) {
            let message =
                "--program starts servers, and the connection's flags name one that is there";
            return Err(Error::usage(message).hint("leave out one of them"));
        }
        if own.iter().all(|server| server.sandbox.is_none()) {
            let message = "--program starts servers, and those of this profile are there";
            return Err(Error::usage(message)
                .hint("leave it out; a [server.sandbox] without `program` takes it"));
        }
        let message = "--program: every sandbox of this profile names its own";
        return Err(Error::usage(message).hint("take `program` out of [server.sandbox]"));
    }
    let subject = |(server, program)| subject(profile, server, program, overrides.scale);
    let subjects: Vec<ServerSetup> = if programs.is_empty() {
        whole.iter().map(|server| subject((server, None))).collect()
    } else {
        // All variants of a program come before the next program.
        let each = programs.iter().flat_map(|p| open.iter().map(move |server| (*server, Some(p))));
        own.iter().map(|server| (*server, None)).chain(each).map(subject).collect()
    };
    let mut known = BTreeSet::new();
    if let Some(subject) = subjects.iter().find(|subject| !known.insert(&subject.label)) {
        return Err(Error::usage(format!("two servers have the label '{}'", subject.label))
            .hint("give each --program a name of its own"));
    }
    Ok(subjects)
}

fn servers(profile: &Profile) -> Result<Vec<Server>> {
    let mut whole: Vec<Server> = Vec::new();
    for (n, server) in profile.servers.iter().enumerate() {
        let key_path = |key: &str| format!("server/{n}/{key}");
        let known = |name: &str| whole.iter().find(|server| server.name() == name);
        let what = match server.name() {
            "" => "of several servers each needs a label",
            name => &format!("the label '{name}' is given twice"),
        };
        profile.ensure(known(server.name()).is_none(), key_path("label"), what)?;
        let of_base = |base: &String| {
            let what = || format!("base '{base}' is no label of a [[server]] above");
            let base = known(base).ok_or_else(|| profile.refuse(&key_path("base"), what()))?;
            Ok::<_, Error>(merged(base.clone(), server.clone()))
        };
        let with_base = server.base.as_ref().map_or_else(|| Ok(server.clone()), of_base)?;
        check_server(profile, &key_path, (server, &with_base))?;
        whole.push(with_base);
    }
    Ok(whole)
}

/// Checks a server as the file has it, and with what it has of its base.
fn check_server(
    profile: &Profile,
    here: &dyn Fn(&str) -> String,
    (server, with_base): (&Server, &Server),
) -> Result<()> {
    let has_address = server.address().is_some();
    let (private, variant) = (server.sandbox.is_some(), server.base.is_some());
    let [start, stop, reset] =
        [&server.start, &server.stop, &server.reset].map(|command| !command.is_empty());
    for (holds, what) in [
        (
            !has_address || !private,
            "a server is there (host, socket, url …) or a sandbox, not both",
        ),
        (
            has_address || private || variant,
            "a server needs host, socket, url, defaults_file, sandbox or base",
        ),
        (
            !is_empty(server.host.as_ref()) && !is_empty(server.user.as_ref()),
            "a host and a user have a name",
        ),
        (
            with_base.sandbox.is_none() || !(start || stop || reset),
            "loadgen starts and stops a sandbox itself: start, stop and reset are for url",
        ),
        (
            // With a base a start alone may start the server of the base anew.
            with_base.start.is_empty() == with_base.stop.is_empty()
                || variant && with_base.stop.is_empty(),
            "stop needs start, and start needs stop where there is no base",
        ),
    ] {
        profile.ensure(holds, here("label"), what)?;
    }
    let Some(sandbox) = &server.sandbox else { return Ok(()) };
    let options = sandbox.options.keys().map(|name| ("options", name));
    let scaled = sandbox.scaled_options.keys().map(|name| ("scaled_options", name));
    let mut known = BTreeSet::new();
    for (table, name) in options.chain(scaled) {
        let once = known.insert(plain(name));
        let what = format_args!("{name} is given twice, among options or scaled_options");
        profile.ensure(once, here(&format!("sandbox/{table}/{name}")), what)?;
    }
    let (Data::Keep(dir) | Data::CopyOf(dir)) = sandbox.data() else { return Ok(()) };
    let named = !dir.as_os_str().is_empty();
    profile.ensure(named, here("sandbox/data"), "a directory has a name")
}

fn is_empty(text: Option<&String>) -> bool {
    text.is_some_and(String::is_empty)
}

fn merged(base: Server, mut own: Server) -> Server {
    let elsewhere = own.address().is_some();
    let becomes_private = own.sandbox.is_some() && base.sandbox.is_none();
    // If one key differs, such as the port, the others are inherited; a URL replaces all of them.
    if own.url.is_none() && own.defaults_file.is_none() && own.sandbox.is_none() {
        own.url = base.url;
        own.defaults_file = base.defaults_file;
        own.host = own.host.or(base.host);
        own.port = own.port.or(base.port);
        own.socket = own.socket.or(base.socket);
        own.user = own.user.or(base.user);
        own.database = own.database.or(base.database);
    }
    own.sandbox = match (base.sandbox, own.sandbox) {
        _ if elsewhere => None,
        (Some(base), Some(own)) => Some(merged_sandbox(base, own)),
        (base, own) => own.or(base),
    };
    let or = |own: Vec<String>, base: Vec<String>| if own.is_empty() { base } else { own };
    Server {
        note: own.note.or(base.note),
        start: or(own.start, base.start),
        stop: or(own.stop, base.stop),
        reset: or(own.reset, base.reset),
        within: own.within.or(base.within),
        // A private server is on this host, and a probe may read another one.
        probe: if becomes_private { own.probe } else { or(own.probe, base.probe) },
        expect: Expect {
            variables: base.expect.variables.into_iter().chain(own.expect.variables).collect(),
            database: own.expect.database.or(base.expect.database),
        },
        ..own
    }
}

fn merged_sandbox(base: Sandbox, mut own: Sandbox) -> Sandbox {
    // An option is in one of the two.
    let own_names = own.options.keys().chain(own.scaled_options.keys()).map(|name| plain(name));
    let own_names: Vec<String> = own_names.collect();
    let unsaid = |name: &String| !own_names.contains(&plain(name));
    own.options.extend(base.options.into_iter().filter(|(name, _)| unsaid(name)));
    own.scaled_options.extend(base.scaled_options.into_iter().filter(|(name, _)| unsaid(name)));
    Sandbox { program: own.program.or(base.program), data: own.data.or(base.data), ..own }
}

fn subject(
    profile: &Profile,
    server: &Server,
    program: Option<&Program>,
    scale: Scale,
) -> ServerSetup {
    let labelled = |name: &str| match (program, name) {
        (None, "") => profile.name.clone(),
        (None, name) => name.to_owned(),
        (Some((program, _)), "") => program.clone(),
        (Some((program, _)), name) => format!("{program}+{name}"),
    };
    let mut server = server.clone();
    if let Some(sandbox) = &mut server.sandbox {
        set_up(sandbox, program, scale);
    }
    ServerSetup {
        label: labelled(server.name()),
        program: program.map(|(name, _)| name.clone()),
        base: server.base.as_deref().map(labelled),
        expect: vec![profile.expect.clone(), server.expect.clone()],
        server,
    }
}

fn set_up(sandbox: &mut Sandbox, program: Option<&Program>, scale: Scale) {
    for (name, size) in take(&mut sandbox.scaled_options) {
        let size = scale.size(&name, size.0).to_string();
        sandbox.options.insert(name, Setting(Some(size)));
    }
    let program = program.filter(|_| sandbox.program.is_none());
    // Programs cannot share directories, and a small trial must not drop hours of filling.
    if let Some(Data::Keep(dir) | Data::CopyOf(dir)) = &mut sandbox.data {
        if !scale.is_full() {
            dir.as_mut_os_string().push(format!("-x{}", scale.factor()));
        }
        dir.push(program.map_or("server", |(name, _)| name));
    }
    if let Some((_, path)) = program {
        sandbox.program = Some(path.clone());
    }
}
