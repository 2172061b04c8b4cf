//! What the form of the file cannot say: names that must exist, values that exclude each other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Command, Data, Expect, Measured, Names, Profile, Run, Sandbox, Server, Sweep, Values};
use crate::error::{Error, Result};
use crate::plan::experiment::scale;
use crate::plan::timed::SuiteSpec;
use crate::plan::units;
use crate::plan::value::label;
use crate::workload::builtin;

/// Refuses a profile that contradicts itself.
pub(super) fn check(profile: &Profile) -> Result<()> {
    Check(profile).all()
}

struct Check<'a>(&'a Profile);

impl Check<'_> {
    fn all(&self) -> Result<()> {
        let name = |what: &str| Err(self.refuse("name", what));
        if self.0.name.is_empty() {
            return name("a profile has a name");
        }
        // It is a label where there is one server without.
        label(&self.0.name).map_err(|what| self.refuse("name", what))?;
        if self.0.servers.is_empty() {
            return name("a profile needs a [[server]]");
        }
        if self.0.runs.is_empty() {
            return name("a profile needs a [[run]]");
        }
        self.check_servers()?;
        self.check_workloads()?;
        for (n, run) in self.0.runs.iter().enumerate() {
            self.check_run(&format!("run/{n}"), run)?;
        }
        self.check_names_of_runs()?;
        for (n, command) in self.0.commands.iter().enumerate() {
            self.check_command(&format!("command/{n}"), command)?;
        }
        self.check_expect("", &self.0.expect)
    }

    fn refuse(&self, path: &str, what: impl AsRef<str>) -> Error {
        self.0.refuse(path, what)
    }

    fn check_servers(&self) -> Result<()> {
        let mut labels = BTreeSet::new();
        for (n, server) in self.0.servers.iter().enumerate() {
            let here = format!("server/{n}");
            let at_label = format!("{here}/label");
            if let Some(text) = &server.label {
                label(text).map_err(|what| self.refuse(&at_label, what))?;
            }
            if let Some(base) = &server.base
                && !labels.contains(base.as_str())
            {
                let what = format!("base '{base}' is no label of a [[server]] above");
                return Err(self.refuse(&format!("{here}/base"), what));
            }
            if !labels.insert(server.name()) {
                let what = match server.name() {
                    "" => "of several servers each needs a label".to_owned(),
                    name => format!("the label '{name}' is there twice"),
                };
                return Err(self.refuse(&at_label, what));
            }
            source(server).map_err(|what| self.refuse(&at_label, what))?;
            for (key, words) in [
                ("start", &server.start),
                ("stop", &server.stop),
                ("reset", &server.reset),
                ("probe", &server.probe),
            ] {
                self.check_words(&here, key, words.as_deref())?;
            }
            if let Some(sandbox) = &server.sandbox {
                self.check_sandbox(&format!("{here}/sandbox"), sandbox)?;
            }
            self.check_expect(&format!("{here}/"), &server.expect)?;
        }
        self.check_labels("report/order", self.0.report.order.as_ref())
    }

    fn check_sandbox(&self, here: &str, sandbox: &Sandbox) -> Result<()> {
        let plain = |name: &str| name.replace('-', "_");
        for (name, size) in &sandbox.scaled_options {
            let at = format!("{here}/scaled_options/{name}");
            if scale::bytes(size).is_none() {
                let what = format!("{name} is no size: a number, then nothing or K, M, G, T");
                return Err(self.refuse(&at, what));
            }
            if sandbox.options.keys().any(|other| plain(other) == plain(name)) {
                return Err(
                    self.refuse(&at, format!("{name} is among options, too: it has one value"))
                );
            }
        }
        match &sandbox.data {
            Some(Data::Keep(dir) | Data::CopyOf(dir)) if dir.as_os_str().is_empty() => {
                Err(self.refuse(&format!("{here}/data"), "a directory has a name"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an empty program; without arguments it is one.
    fn check_words(&self, here: &str, key: &str, words: Option<&[String]>) -> Result<()> {
        match words {
            Some(words) if words.first().is_none_or(String::is_empty) => {
                let what = format!("{key} is a program and its arguments");
                Err(self.refuse(&format!("{here}/{key}"), what))
            }
            _ => Ok(()),
        }
    }

    fn check_expect(&self, here: &str, expect: &Expect) -> Result<()> {
        let none = |values: &Values| matches!(values, Values::Any(values) if values.is_empty());
        match expect.variables.iter().find(|(_, values)| none(values)) {
            Some((name, _)) => {
                let what = format!("{name}: one of no values never holds");
                Err(self.refuse(&format!("{here}expect/variables/{name}"), what))
            }
            None => Ok(()),
        }
    }

    /// Refuses names that are no label. Templates get a program's name before theirs, which only
    /// the experiment knows.
    fn check_labels(&self, here: &str, names: Option<&Names>) -> Result<()> {
        for (n, name) in names.iter().flat_map(|names| names.0.iter()).enumerate() {
            if !self.0.servers.iter().any(|server| server.name() == name) {
                let what = format!("'{name}' is no label of a [[server]]");
                return Err(self.refuse(&format!("{here}/{n}"), what));
            }
        }
        Ok(())
    }

    fn check_workloads(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for (n, workload) in self.0.workloads.iter().enumerate() {
            let here = |what: String| self.refuse(&format!("workload/{n}"), what);
            workload
                .check()
                .map_err(|what| here(format!("workload '{}': {what}", workload.name)))?;
            let taken = builtin().iter().any(|b| b.name == workload.name);
            if taken || !names.insert(&workload.name) {
                return Err(here(format!("there is a workload '{}' already", workload.name)));
            }
        }
        Ok(())
    }

    fn check_run(&self, here: &str, run: &Run) -> Result<()> {
        let at = |key: &str, what: String| self.refuse(&format!("{here}/{key}"), what);
        if run.servers.as_ref().is_some_and(|names| names.0.is_empty()) {
            return Err(at("servers", "a run without servers measures nothing".to_owned()));
        }
        self.check_labels(&format!("{here}/servers"), run.servers.as_ref())?;
        if let Some(name) = &run.name {
            label(name).map_err(|what| at("name", what))?;
        }
        match &run.what {
            Measured::Sweep(sweep) => self.check_sweep(here, sweep),
            Measured::Load(_) => Ok(()),
            Measured::Suite(suite) => check_suite(&suite.suite).map_err(|what| at("suite", what)),
        }
    }

    fn check_sweep(&self, here: &str, sweep: &Sweep) -> Result<()> {
        let at = |key: String, what: String| Err(self.refuse(&format!("{here}/{key}"), what));
        let mut options = BTreeSet::new();
        for (n, name) in sweep.workload.0.iter().enumerate() {
            let Some(workload) = self.0.workload(name) else {
                let known = builtin().into_iter().chain(self.0.workloads.iter().cloned());
                let known: Vec<String> = known.map(|workload| workload.name).collect();
                let what = format!("no workload '{name}': {}", known.join(", "));
                return at(format!("workload/{n}"), what);
            };
            options.extend(workload.options.into_keys());
        }
        if let Some(name) = sweep.options.keys().find(|name| !options.contains(*name)) {
            let known: Vec<String> = options.into_iter().collect();
            let what = match known.as_slice() {
                [] => format!("no option '{name}': the workload has none"),
                known => format!("no option '{name}' here; there are: {}", known.join(", ")),
            };
            return at(format!("options/{name}"), what);
        }
        if sweep.knobs.ops.is_some() && sweep.knobs.time.is_some() {
            return at("ops".to_owned(), "a run has time or ops, not both".to_owned());
        }
        Ok(())
    }

    /// Two runs of one name would be one table, and could be no one measurement.
    fn check_names_of_runs(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for (n, run) in self.0.runs.iter().enumerate() {
            if let (Some(_), Measured::Sweep(sweep)) = (&run.name, &run.what)
                && sweep.workload.0.len() > 1
            {
                let what = "a name is for one workload; this run has several";
                return Err(self.refuse(&format!("run/{n}/name"), what));
            }
            for (nth, title) in self.0.titles(run).into_iter().enumerate() {
                if !names.insert(title.clone()) {
                    let key =
                        if run.name.is_some() { "name".into() } else { format!("workload/{nth}") };
                    let what =
                        format!("there is a run '{title}' already: name = \"…\" tells them apart");
                    return Err(self.refuse(&format!("run/{n}/{key}"), what));
                }
            }
        }
        Ok(())
    }

    fn check_command(&self, here: &str, command: &Command) -> Result<()> {
        self.check_words(here, "run", Some(&command.run))?;
        let titles: Vec<String> = self.0.runs.iter().flat_map(|run| self.0.titles(run)).collect();
        for (n, name) in command.workload.iter().flat_map(|names| &names.0).enumerate() {
            if !titles.contains(name) {
                let what = format!("'{name}' is no [[run]]: {}", titles.join(", "));
                return Err(self.refuse(&format!("{here}/workload/{n}"), what));
            }
        }
        self.check_clients_of(here, command)?;
        let window = |run: &Run| match &run.what {
            Measured::Sweep(sweep) if sweep.knobs.ops.is_none() => {
                Some(sweep.knobs.time.map_or(Duration::from_mins(1), |time| time.0))
            }
            _ => None,
        };
        match self.0.runs.iter().filter_map(window).max() {
            Some(longest) if command.at.0 >= longest => {
                let (at, longest) = (units::duration(command.at.0), units::duration(longest));
                let what = format!("at {at} there is no window any more: it lasts {longest}");
                Err(self.refuse(&format!("{here}/at"), what))
            }
            _ => Ok(()),
        }
    }

    /// A command beside steps that there are not would never run.
    fn check_clients_of(&self, here: &str, command: &Command) -> Result<()> {
        let Some(wanted) = &command.clients else { return Ok(()) };
        let beside = |run: &&Run| {
            let names = command.workload.as_ref();
            names.is_none_or(|names| self.0.titles(run).iter().any(|title| names.0.contains(title)))
        };
        let mut known = BTreeSet::new();
        for run in self.0.runs.iter().filter(beside) {
            match &run.what {
                Measured::Sweep(sweep) => known.extend(sweep.knobs.clients()),
                Measured::Load(_) | Measured::Suite(_) => known.extend([1]),
            }
        }
        match wanted.0.iter().find(|n| !known.contains(n)) {
            Some(n) => {
                let known: Vec<String> = known.iter().map(u32::to_string).collect();
                let what = format!("no step has {n} clients: {}", known.join(", "));
                Err(self.refuse(&format!("{here}/clients"), what))
            }
            None => Ok(()),
        }
    }
}

/// Refuses a server that is two, or none.
fn source(server: &Server) -> std::result::Result<(), &'static str> {
    let there = server.url.is_some() || server.defaults_file.is_some();
    let private = server.sandbox.is_some();
    if there && private {
        return Err("a server is there (url, defaults_file) or a sandbox, not both");
    }
    if !there && !private && server.base.is_none() {
        return Err("a server needs url, defaults_file, sandbox or base");
    }
    if private && (server.start.is_some() || server.stop.is_some() || server.reset.is_some()) {
        return Err("loadgen starts and stops a sandbox itself: start, stop and reset are for url");
    }
    if server.start.is_some() != server.stop.is_some() && server.base.is_none() {
        return Err("start and stop go together");
    }
    Ok(())
}

fn check_suite(suite: &SuiteSpec) -> std::result::Result<(), String> {
    label(&suite.name).map_err(|_| "a suite has a name of one line".to_owned())?;
    if suite.tests.is_empty() {
        return Err(format!("suite {} has no tests", suite.name));
    }
    let mut known = BTreeSet::new();
    for test in &suite.tests {
        label(&test.name).map_err(|_| "a test has a name of one line".to_owned())?;
        if test.run.first().is_none_or(String::is_empty) {
            return Err(format!("test {}: run is a program and its arguments", test.name));
        }
        if !known.insert(&test.name) {
            return Err(format!("test {} is there twice", test.name));
        }
    }
    Ok(())
}
