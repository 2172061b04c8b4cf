//! Lists what an experiment does, and what it takes.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Cell, Experiment, RunSpec, What, estimate};
use crate::error::line;
use crate::plan::knobs::{LoadSource, LoadSpec};
use crate::plan::profile::{Data, RepeatOrder, Server, Setting};
use crate::plan::{StopAt, units};
use crate::terms;

impl Experiment {
    /// Lists the steps, the disk they need, and the time they take. `stored` returns the bytes in a directory of kept data:
    /// a fill that is done takes no time.
    pub fn list(
        &self,
        wanted: impl Fn(&Cell) -> bool + Copy,
        stored: impl Fn(&Path) -> u64,
    ) -> String {
        let mut text = String::new();
        let mut put = |name: &str, value: &str| text += &format!("{name:<10} {}\n", line(value));
        let profile = &self.profile;
        put("profile", &profile.name);
        profile.about.trim().lines().for_each(|about| put("", about.trim_end()));
        if !self.scale.is_full() {
            put("scale", &self.scale.factor().to_string());
        }
        let order = match profile.order {
            RepeatOrder::InTurn => "each label with its repeats in turn",
            RepeatOrder::Interleaved => "labels interleaved, every second repeat backwards",
            RepeatOrder::Shuffled => "labels shuffled by the seed in each repeat",
        };
        let restart = if profile.restart { "" } else { "; no restart between repeats" };
        put("order", &format!("{order}{restart}"));
        let kept: BTreeSet<_> = self.cells.iter().map(|cell| (cell.part, cell.clients)).collect();
        for (n, subject) in self.subjects.iter().enumerate() {
            if self.cells.iter().any(|cell| cell.subject == n) {
                put("label", &format!("{}  ({})", subject.label, source(&subject.server)));
            }
        }
        for (n, part) in self.parts.iter().enumerate() {
            if !kept.iter().any(|(part, _)| *part == n) {
                continue;
            }
            let has_step = |clients: &u32| kept.contains(&(n, *clients));
            put("run", &format!("{}: {}", part.title, describe(part, has_step)));
            if let Some(script) = &part.script {
                let prepared = if script.data.is_some() { ", filled by its prepare" } else { "" };
                put("script", &format!("{}: {}{prepared}", part.title, script.file));
            }
            for group in part.plan().map_or(&[][..], |plan| &plan.groups) {
                put("beside", &format!("{}: {group}", part.title));
            }
            part.gates.iter().for_each(|gate| put("gate", &format!("{}: {gate}", part.title)));
        }
        let total = self.cells.len();
        for (at, cell) in (1..).zip(&self.cells) {
            let (subject, part) = (&self.subjects[cell.subject], &self.parts[cell.part]);
            let (label, title, repeats) = (line(&subject.label), line(&part.title), part.repeats);
            let rate = cell.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
            let (clients, repeat) = (terms::clients(cell.clients), cell.repeat);
            let done = if wanted(cell) { "" } else { "  (measured already)" };
            text += &format!(
                "step {at:>4} of {total}  {label}  {title}  {clients}{rate}  repeat {repeat} of {repeats}{done}\n"
            );
        }
        let has_script = |cell: &Cell| {
            let part = &self.parts[cell.part];
            let mut beside = part.plan().into_iter().flat_map(|plan| &plan.groups);
            let any = part.script.is_some() || beside.any(|group| group.script.is_some());
            wanted(cell) && any
        };
        let unknown = if self.cells.iter().any(has_script) {
            "\n           time and disk of the data that scripts make are not known, and not in it"
        } else {
            ""
        };
        text += &estimate::describe(&self.estimate(&self.legs(wanted), stored), unknown);
        text
    }
}

fn source(server: &Server) -> String {
    if let Some(given) = &server.given {
        return format!("the server at {}", given.address);
    }
    let Some(sandbox) = &server.sandbox else {
        let how = if server.start.is_empty() { "is there" } else { "commands start" };
        return format!("a server that {how}");
    };
    let program = sandbox.program.as_ref().map(|path| path.display().to_string());
    let program = program.unwrap_or_else(|| "mariadbd or mysqld from PATH".to_owned());
    let data = match sandbox.data() {
        Data::ThrowAway => "thrown away".to_owned(),
        Data::Copied => "copied".to_owned(),
        Data::Keep(dir) => format!("kept in {}", dir.display()),
        Data::CopyOf(dir) => format!("copied from {}", dir.display()),
    };
    let option = |(name, value): (&String, &Setting)| {
        value.0.as_ref().map_or_else(|| format!(" {name}"), |value| format!(" {name}={value}"))
    };
    let options: String = sandbox.options.iter().map(option).collect();
    format!("sandbox of {program}, data {data}{options}")
}

/// Describes a run with those of its numbers of clients that have a step.
fn describe(part: &RunSpec, has_step: impl Fn(&u32) -> bool) -> String {
    let (plan, dataset) = match &part.what {
        What::Sweep(plan, dataset) => (plan, dataset),
        What::Suite(suite) => return terms::counted(suite.tests.len() as u64, "command"),
        What::Load(LoadSpec { tables, source, insert, .. }) => match source {
            LoadSource::Dump { path } => return path.display().to_string(),
            LoadSource::Generated { rows, .. } => {
                let tables = terms::counted(*tables, "table");
                return format!("{tables} of {} rows, {insert}", units::count(*rows));
            }
        },
    };
    let clients = plan.clients.iter().copied().filter(has_step);
    let clients: Vec<String> = clients.map(|clients| clients.to_string()).collect();
    let (clients, warmup) = (clients.join(" "), units::duration(plan.warmup));
    let window = match plan.stop {
        StopAt::Time(time) => units::duration(time),
        StopAt::Ops(ops) => format!("{} ops", units::count(ops)),
    };
    let rows = units::count(dataset.rows);
    let tables = match dataset.tables {
        _ if part.script.is_some() => "its own tables".to_owned(),
        0 => format!("its own tables, keys to {rows}"),
        tables => format!("{} of {rows} rows", terms::counted(tables, "table")),
    };
    let (keys, mode) = (plan.distribution, plan.statements);
    format!("{tables}, clients {clients}, warm-up {warmup}, window {window}, {keys}, {mode}")
}
