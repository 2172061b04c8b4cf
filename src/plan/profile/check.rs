//! What the form of the file cannot say: names that must exist, values that exclude each other.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;

use super::bounds::{self, Checked};
use super::locate::Fault;
use super::value::Names;
use super::{Command, Profile, Run};
use crate::plan::{units, value as names};
use crate::workload::table::{ROWS_MAX, TABLES_MAX};
use crate::workload::{Workload, builtin};

/// Repeats at most, as on the command line.
const REPEATS_MAX: u32 = 1000;
/// Threads of the client, as on the command line.
const ENGINE_THREADS_MAX: u32 = 1024;

impl Profile {
    pub(super) fn check(&self) -> Checked {
        let end = self.name.span();
        if self.name.as_ref().is_empty() {
            return Err(Fault::new(end, "a profile has a name"));
        }
        // It is a label where there is one server without.
        names::label(self.name.as_ref()).map_err(|what| Fault::new(end.clone(), what))?;
        if self.servers.is_empty() {
            return Err(Fault::new(end, "a profile needs a [[server]]"));
        }
        if self.runs.is_empty() {
            return Err(Fault::new(end, "a profile needs a [[run]]"));
        }
        self.check_servers()?;
        self.check_workloads()?;
        for run in &self.runs {
            self.check_run(run)?;
        }
        self.check_names_of_runs()?;
        for command in &self.commands {
            self.check_command(command)?;
        }
        bounds::tables(&self.tables)?;
        bounds::expect(&self.expect)
    }

    fn check_servers(&self) -> Checked {
        let mut labels = BTreeSet::new();
        for server in &self.servers {
            let place = server.as_ref().label.as_ref().map_or(server.span(), Spanned::span);
            let server = server.as_ref();
            let label = server.name();
            if server.label.is_some() {
                names::label(label).map_err(|what| Fault::new(place.clone(), what))?;
            }
            if let Some(base) = &server.base
                && !labels.contains(base.as_ref().as_str())
            {
                let what = format!("base '{}' is no label of a [[server]] above", base.as_ref());
                return Err(Fault::new(base.span(), what));
            }
            if !labels.insert(label.to_owned()) {
                let what = match label {
                    "" => "of several servers each needs a label".to_owned(),
                    _ => format!("the label '{label}' is there twice"),
                };
                return Err(Fault::new(place, what));
            }
            bounds::source(server, &place)?;
            bounds::expect(&server.expect)?;
        }
        self.check_labels(self.report.order.as_ref())
    }

    /// Names that must be labels; templates get a program's name before theirs, which only the
    /// experiment knows.
    fn check_labels(&self, names: Option<&Names>) -> Checked {
        for name in names.iter().flat_map(|names| &names.0) {
            if !self.servers.iter().any(|server| server.as_ref().name() == name.as_ref()) {
                let what = format!("'{}' is no label of a [[server]]", name.as_ref());
                return Err(Fault::new(name.span(), what));
            }
        }
        Ok(())
    }

    fn check_workloads(&self) -> Checked {
        let mut names = BTreeSet::new();
        for workload in &self.workloads {
            let place = workload.span();
            let workload = workload.as_ref();
            workload.check().map_err(|what| {
                Fault::new(place.clone(), format!("workload '{}': {what}", workload.name))
            })?;
            let taken = builtin().iter().any(|b| b.name == workload.name);
            if taken || !names.insert(&workload.name) {
                let what = format!("there is a workload '{}' already", workload.name);
                return Err(Fault::new(place, what));
            }
        }
        Ok(())
    }

    /// The workload of a name, of this file or built in.
    pub(crate) fn workload(&self, name: &str) -> Option<Workload> {
        let own = self.workloads.iter().map(Spanned::as_ref).find(|w| w.name == name).cloned();
        let named = |w: &Workload| w.name == name || w.aliases.iter().any(|alias| alias == name);
        own.or_else(|| builtin().into_iter().find(named))
    }

    fn check_run(&self, place: &Spanned<Run>) -> Checked {
        let run = place.as_ref();
        let whats = [run.workload.is_some(), run.load.is_some(), run.suite.is_some()];
        if whats.iter().filter(|there| **there).count() != 1 {
            return Err(Fault::new(place.span(), "a run has one of workload, load and suite"));
        }
        if let Some(servers) = run.servers.as_ref().filter(|names| names.as_ref().0.is_empty()) {
            return Err(Fault::new(servers.span(), "a run without servers measures nothing"));
        }
        self.check_labels(run.servers.as_ref().map(Spanned::as_ref))?;
        if let Some(name) = &run.name {
            names::label(name.as_ref()).map_err(|what| Fault::new(name.span(), what))?;
        }
        for name in run.workload.iter().flat_map(|names| &names.0) {
            if self.workload(name.as_ref()).is_none() {
                let mut known: Vec<String> = builtin().into_iter().map(|w| w.name).collect();
                known.extend(self.workloads.iter().map(|w| w.as_ref().name.clone()));
                let what = format!("no workload '{}': {}", name.as_ref(), known.join(", "));
                return Err(Fault::new(name.span(), what));
            }
        }
        self.check_options(run)?;
        if let (Some(ops), Some(_)) = (&run.ops, &run.time) {
            return Err(Fault::new(ops.span(), "a run has time or ops, not both"));
        }
        bounds::count(run.ops.as_ref(), u64::MAX, "ops")?;
        bounds::count(run.tables.as_ref(), u64::from(TABLES_MAX), "tables")?;
        bounds::count(run.rows.as_ref(), ROWS_MAX, "rows")?;
        if run.op_timeout.is_some_and(|limit| limit.0.is_zero()) {
            return Err(Fault::new(place.span(), "op_timeout 0 gives every op up"));
        }
        if let Some(time) = run.time.as_ref().filter(|time| time.as_ref().0.is_zero()) {
            return Err(Fault::new(time.span(), "time 0 measures nothing"));
        }
        if let Some(repeat) = &run.repeat
            && !(1..=REPEATS_MAX).contains(repeat.as_ref())
        {
            return Err(Fault::new(repeat.span(), format!("repeat is within 1 to {REPEATS_MAX}")));
        }
        bounds::phase(run.warmup.as_ref())?;
        bounds::phase(run.time.as_ref())?;
        bounds::charset(run.charset.as_ref())?;
        bounds::within(run.engine_threads.as_ref(), ENGINE_THREADS_MAX, "engine_threads")?;
        if run.workload.is_none() {
            check_timed(place)?;
        }
        run.suite.as_ref().map_or(Ok(()), bounds::suite)
    }

    /// Each option must be one of a workload of the run.
    fn check_options(&self, run: &Run) -> Checked {
        let names = || run.workload.iter().flat_map(Names::texts);
        let known: BTreeSet<String> = names()
            .filter_map(|name| self.workload(name))
            .flat_map(|workload| workload.options.into_keys())
            .collect();
        match run.options.iter().find(|(name, _)| !known.contains(*name)) {
            None => Ok(()),
            Some((name, value)) => {
                let known: Vec<String> = known.into_iter().collect();
                let what = match known.as_slice() {
                    [] => format!("no option '{name}': the workload has none"),
                    known => format!("no option '{name}' here; there are: {}", known.join(", ")),
                };
                Err(Fault::new(value.span(), what))
            }
        }
    }

    /// Two runs of one name would be one table, and could be no one measurement.
    fn check_names_of_runs(&self) -> Checked {
        let mut names = BTreeSet::new();
        for place in &self.runs {
            let run = place.as_ref();
            let several = run.workload.as_ref().is_some_and(|names| names.0.len() > 1);
            if let (Some(name), true) = (&run.name, several) {
                let what = "a name is for one workload; this run has several";
                return Err(Fault::new(name.span(), what));
            }
            for (name, span) in self.titles(place) {
                if !names.insert(name.clone()) {
                    let what =
                        format!("there is a run '{name}' already: name = \"…\" tells them apart");
                    return Err(Fault::new(span, what));
                }
            }
        }
        Ok(())
    }

    fn check_command(&self, place: &Spanned<Command>) -> Checked {
        let command = place.as_ref();
        bounds::words(Some(&command.run), "run")?;
        let titles: Vec<String> =
            self.runs.iter().flat_map(|run| self.titles(run)).map(|(title, _)| title).collect();
        for name in command.workload.iter().flat_map(|names| &names.0) {
            if !titles.contains(name.as_ref()) {
                let what = format!("'{}' is no [[run]]: {}", name.as_ref(), titles.join(", "));
                return Err(Fault::new(name.span(), what));
            }
        }
        self.check_clients_of(command)?;
        let longest = self.runs.iter().filter_map(|run| {
            let run = run.as_ref();
            (run.workload.is_some() && run.ops.is_none())
                .then(|| run.time.as_ref().map_or(Duration::from_mins(1), |time| time.as_ref().0))
        });
        let at = command.at.as_ref().0;
        match longest.max() {
            Some(longest) if at >= longest => {
                let (at, longest) = (units::duration(at), units::duration(longest));
                let what = format!("at {at} there is no window any more: it lasts {longest}");
                Err(Fault::new(command.at.span(), what))
            }
            _ => Ok(()),
        }
    }
}

impl Profile {
    /// A command beside steps that there are not would never run.
    fn check_clients_of(&self, command: &Command) -> Checked {
        let Some(wanted) = &command.clients else { return Ok(()) };
        let beside = |run: &&Spanned<Run>| {
            let mut titles = self.titles(run).into_iter();
            let names = command.workload.as_ref();
            names.is_none_or(|names| titles.any(|(title, _)| names.texts().any(|n| n == title)))
        };
        let mut known = BTreeSet::new();
        for run in self.runs.iter().filter(beside) {
            let clients = run.as_ref().clients.as_ref().map(|clients| clients.as_ref().0.clone());
            known.extend(clients.unwrap_or_else(|| vec![1]));
        }
        match wanted.as_ref().0.iter().find(|n| !known.contains(n)) {
            Some(n) => {
                let known: Vec<String> = known.iter().map(u32::to_string).collect();
                let what = format!("no step has {n} clients: {}", known.join(", "));
                Err(Fault::new(wanted.span(), what))
            }
            None => Ok(()),
        }
    }

    /// The titles of a run's tables, each with its place.
    pub(crate) fn titles(&self, place: &Spanned<Run>) -> Vec<(String, Range<usize>)> {
        let run = place.as_ref();
        if let Some(name) = &run.name {
            return vec![(name.as_ref().clone(), name.span())];
        }
        if let Some(suite) = &run.suite {
            return vec![(format!("suite-{}", suite.as_ref().name), place.span())];
        }
        let title = |name: &Spanned<String>| {
            let name_of = self.workload(name.as_ref()).map(|workload| workload.name);
            (name_of.unwrap_or_else(|| name.as_ref().clone()), name.span())
        };
        match &run.workload {
            Some(names) => names.0.iter().map(title).collect(),
            None => run.load.iter().map(|load| (load.as_ref().name(), place.span())).collect(),
        }
    }
}

/// A timed run has no clients, phases or keys.
fn check_timed(place: &Spanned<Run>) -> Checked {
    let run = place.as_ref();
    let given = [
        ("clients", run.clients.is_some()),
        ("rate", run.rate.is_some()),
        ("arrival", run.arrival.is_some()),
        ("time", run.time.is_some()),
        ("ops", run.ops.is_some()),
        ("warmup", run.warmup.is_some()),
        ("options", !run.options.is_empty()),
        ("distribution", run.distribution.is_some()),
        ("statements", run.statements.is_some()),
        ("spread", run.spread.is_some()),
        ("tables", run.tables.is_some()),
        ("rows", run.rows.is_some()),
        ("on_error", run.on_error.is_some()),
        ("max_errors", run.max_errors.is_some()),
        ("op_timeout", run.op_timeout.is_some()),
        ("charset", run.charset.is_some()),
        ("scan", run.scan),
        ("gates", !run.gates.is_empty()),
        ("warm", run.warm.is_some()),
        ("ahi", run.ahi.is_some()),
        ("settle", run.settle.is_some()),
    ];
    match given.iter().find(|(_, there)| *there) {
        Some((key, _)) => {
            let what = format!("a load or a suite lasts as long as it takes: {key} is not for it");
            Err(Fault::new(place.span(), what))
        }
        None => Ok(()),
    }
}
