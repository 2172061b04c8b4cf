//! What the form of the file cannot say: names that must exist, values that exclude each other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Command, Data, Measured, Names, Profile, Run, Sandbox, Server, Sweep};
use crate::error::Result;
use crate::plan::timed::SuiteSpec;
use crate::plan::units;
use crate::workload::builtin;

/// Nothing, or the path of a value and what is wrong with it.
type Checked = std::result::Result<(), (String, String)>;

fn wrong(path: impl Into<String>, what: impl Into<String>) -> Checked {
    Err((path.into(), what.into()))
}

pub(super) fn check(profile: &Profile) -> Result<()> {
    check_all(profile).map_err(|(path, what)| profile.refuse(&path, what))
}

fn check_all(profile: &Profile) -> Checked {
    if profile.servers.is_empty() {
        return wrong("name", "a profile needs a [[server]]");
    }
    if profile.runs.is_empty() {
        return wrong("name", "a profile needs a [[run]]");
    }
    check_servers(profile)?;
    check_labels(profile, "report/order", profile.report.order.as_ref())?;
    check_workloads(profile)?;
    let mut titles = Vec::new();
    for (n, run) in profile.runs.iter().enumerate() {
        check_run(profile, &format!("run/{n}"), run, &mut titles)?;
    }
    for (n, command) in profile.commands.iter().enumerate() {
        check_command(profile, &format!("command/{n}"), command, &titles)?;
    }
    Ok(())
}

fn check_servers(profile: &Profile) -> Checked {
    let mut labels = BTreeSet::new();
    for (n, server) in profile.servers.iter().enumerate() {
        let (here, at_label) = (format!("server/{n}"), format!("server/{n}/label"));
        if let Some(base) = server.base.as_ref().filter(|base| !labels.contains(base.as_str())) {
            let what = format!("base '{base}' is no label of a [[server]] above");
            return wrong(format!("{here}/base"), what);
        }
        match server.name() {
            name if labels.insert(name) => {}
            "" => return wrong(at_label, "of several servers each needs a label"),
            name => return wrong(at_label, format!("the label '{name}' is there twice")),
        }
        check_source(server).or_else(|what| wrong(at_label, what))?;
        if let Some(sandbox) = &server.sandbox {
            check_sandbox(&format!("{here}/sandbox"), sandbox)?;
        }
    }
    Ok(())
}

fn check_source(server: &Server) -> std::result::Result<(), &'static str> {
    let there = server.url.is_some() || server.defaults_file.is_some();
    let (private, variant) = (server.sandbox.is_some(), server.base.is_some());
    if there && private {
        return Err("a server is there (url, defaults_file) or a sandbox, not both");
    }
    if !there && !private && !variant {
        return Err("a server needs url, defaults_file, sandbox or base");
    }
    if private && (server.start.is_some() || server.stop.is_some() || server.reset.is_some()) {
        return Err("loadgen starts and stops a sandbox itself: start, stop and reset are for url");
    }
    if server.start.is_some() != server.stop.is_some() && !variant {
        return Err("start and stop go together");
    }
    Ok(())
}

fn check_sandbox(here: &str, sandbox: &Sandbox) -> Checked {
    let plain = |name: &str| name.replace('-', "_");
    let twice = |name: &&String| sandbox.options.keys().any(|other| plain(other) == plain(name));
    if let Some(name) = sandbox.scaled_options.keys().find(twice) {
        let what = format!("{name} is among options, too: it has one value");
        return wrong(format!("{here}/scaled_options/{name}"), what);
    }
    match &sandbox.data {
        Some(Data::Keep(dir) | Data::CopyOf(dir)) if dir.as_os_str().is_empty() => {
            wrong(format!("{here}/data"), "a directory has a name")
        }
        _ => Ok(()),
    }
}

/// Refuses names that are no label. Templates get a program's name before theirs, which only
/// the experiment knows.
fn check_labels(profile: &Profile, here: &str, names: Option<&Names>) -> Checked {
    let is_label = |name: &str| profile.servers.iter().any(|server| server.name() == name);
    let mut names = names.iter().flat_map(|names| names.texts()).enumerate();
    match names.find(|(_, name)| !is_label(name)) {
        Some((n, name)) => {
            wrong(format!("{here}/{n}"), format!("'{name}' is no label of a [[server]]"))
        }
        None => Ok(()),
    }
}

fn check_workloads(profile: &Profile) -> Checked {
    let mut names: BTreeSet<String> = builtin().into_iter().map(|workload| workload.name).collect();
    for (n, workload) in profile.workloads.iter().enumerate() {
        let (here, name) = (format!("workload/{n}"), &workload.name);
        workload.check().or_else(|what| wrong(&here, format!("workload '{name}': {what}")))?;
        if !names.insert(name.clone()) {
            return wrong(here, format!("there is a workload '{name}' already"));
        }
    }
    Ok(())
}

/// Checks a run, and adds its titles to those of the runs before. Two runs of one title would be one
/// table, and could be no one measurement.
fn check_run(profile: &Profile, here: &str, run: &Run, titles: &mut Vec<String>) -> Checked {
    if run.servers.as_ref().is_some_and(|names| names.0.is_empty()) {
        return wrong(format!("{here}/servers"), "a run without servers measures nothing");
    }
    check_labels(profile, &format!("{here}/servers"), run.servers.as_ref())?;
    match &run.what {
        Measured::Sweep(sweep) => check_sweep(profile, here, sweep)?,
        Measured::Load(_) => {}
        Measured::Suite(suite) => {
            check_suite(&suite.suite).or_else(|what| wrong(format!("{here}/suite"), what))?;
        }
    }
    let own = profile.titles(run);
    if let (Some(_), Measured::Sweep(sweep)) = (&run.name, &run.what)
        && sweep.workload.0.len() > 1
    {
        return wrong(format!("{here}/name"), "a name is for one workload; this run has several");
    }
    for (nth, title) in own.into_iter().enumerate() {
        if titles.contains(&title) {
            let key = if run.name.is_some() { "name".into() } else { format!("workload/{nth}") };
            let what = format!("there is a run '{title}' already: name = \"…\" tells them apart");
            return wrong(format!("{here}/{key}"), what);
        }
        titles.push(title);
    }
    Ok(())
}

fn check_sweep(profile: &Profile, here: &str, sweep: &Sweep) -> Checked {
    let mut options = BTreeSet::new();
    for (n, name) in sweep.workload.texts().enumerate() {
        let Some(workload) = profile.workload(name) else {
            let known = builtin().into_iter().chain(profile.workloads.iter().cloned());
            let known: Vec<String> = known.map(|workload| workload.name).collect();
            let what = format!("no workload '{name}': {}", known.join(", "));
            return wrong(format!("{here}/workload/{n}"), what);
        };
        options.extend(workload.options.into_keys());
    }
    if let Some(name) = sweep.options.keys().find(|name| !options.contains(*name)) {
        let known = options.into_iter().collect::<Vec<_>>().join(", ");
        let what = match known.as_str() {
            "" => format!("no option '{name}': the workload has none"),
            known => format!("no option '{name}' here; there are: {known}"),
        };
        return wrong(format!("{here}/options/{name}"), what);
    }
    if sweep.knobs.ops.is_some() && sweep.knobs.time.is_some() {
        return wrong(format!("{here}/ops"), "a run has time or ops, not both");
    }
    Ok(())
}

fn check_suite(suite: &SuiteSpec) -> std::result::Result<(), String> {
    if suite.tests.is_empty() {
        return Err(format!("suite {} has no tests", suite.name));
    }
    let mut known = BTreeSet::new();
    match suite.tests.iter().find(|test| !known.insert(&test.name)) {
        Some(test) => Err(format!("test {} is there twice", test.name)),
        None => Ok(()),
    }
}

/// Refuses a command that would never run: beside no run, no step, or after the end of all windows.
fn check_command(profile: &Profile, here: &str, command: &Command, titles: &[String]) -> Checked {
    let names = command.workload.as_ref();
    for (n, name) in names.iter().flat_map(|names| &names.0).enumerate() {
        if !titles.contains(name) {
            let what = format!("'{name}' is no [[run]]: {}", titles.join(", "));
            return wrong(format!("{here}/workload/{n}"), what);
        }
    }
    let beside = |run: &Run| {
        names.is_none_or(|names| profile.titles(run).iter().any(|title| names.0.contains(title)))
    };
    let (mut known, mut longest) = (BTreeSet::new(), None);
    for run in &profile.runs {
        let (clients, window) = match &run.what {
            Measured::Sweep(sweep) if sweep.knobs.ops.is_none() => {
                let time = sweep.knobs.time.map_or(Duration::from_mins(1), |time| time.0);
                (sweep.knobs.clients(), Some(time))
            }
            Measured::Sweep(sweep) => (sweep.knobs.clients(), None),
            Measured::Load(_) | Measured::Suite(_) => (vec![1], None),
        };
        longest = longest.max(window);
        if beside(run) {
            known.extend(clients);
        }
    }
    let wanted = command.clients.iter().flat_map(|clients| &clients.0);
    if let Some(n) = wanted.into_iter().find(|n| !known.contains(n)) {
        let known: Vec<String> = known.iter().map(u32::to_string).collect();
        let what = format!("no step has {n} clients: {}", known.join(", "));
        return wrong(format!("{here}/clients"), what);
    }
    match longest.filter(|longest| command.at.0 >= *longest) {
        Some(longest) => {
            let (at, longest) = (units::duration(command.at.0), units::duration(longest));
            let what = format!("at {at} there is no window any more: it lasts {longest}");
            wrong(format!("{here}/at"), what)
        }
        None => Ok(()),
    }
}
