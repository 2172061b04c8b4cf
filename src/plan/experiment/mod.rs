//! Profile + flags → all that is going to happen, decided before the first connection. Pure.
//!
//! ```text
//! Profile ─▶ subjects (labels) × parts (runs) ─▶ cells ─▶ legs: cells on one server and its data
//! ```

mod build;
mod estimate;
mod list;
#[cfg(test)]
mod tests;

pub use build::build;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::knobs::{LoadSpec, SuiteSpec};
use super::profile::{Command, Expect, Profile, RepeatOrder, Server, Setting};
use super::script::{ScriptData, ScriptIdentity, ScriptPart};
use super::value::{self, Clients, Scale};
use super::{Plan, Step, defaults, shuffle};
use crate::error::{Error, Result};
use crate::terms::Gate;
use crate::workload::random::{mix, name_part, seed_of};
use crate::workload::{self, Schema, Workload};

/// Flags beside a profile.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct Overrides {
    /// Program of the sandboxes that name none, and its part of their labels; may be given
    /// several times [default: mariadbd or mysqld from PATH]
    #[arg(long = "program", value_name = "NAME=PATH", value_parser = program)]
    pub programs: Vec<(String, PathBuf)>,

    /// Shrink rows, times and sizes by a factor such as 0.001
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub scale: Scale,

    /// Measure a part: label=, workload=, clients= or repeat= with a list (READ_* for all that begin so);
    /// several must all hold
    #[arg(long, value_name = "KEY=LIST")]
    pub only: Vec<Only>,

    #[arg(skip)]
    pub seed: u64,

    /// Engine threads of the hosts with the clients; none where these are of this process
    #[arg(skip)]
    pub host_threads: Option<Vec<u32>>,

    /// Directory of the summaries
    #[arg(long, value_name = "DIR", default_value = defaults::OUT)]
    pub out: PathBuf,

    /// Measure again what an earlier version of loadgen measured into --out
    #[arg(long)]
    pub force: bool,
}

pub(crate) fn program(text: &str) -> std::result::Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !path.is_empty() => Ok((value::label(name)?, PathBuf::from(path))),
        _ => Err(format!("'{text}' is not NAME=PATH")),
    }
}

#[derive(Debug, Clone)]
pub struct Experiment {
    /// As in the file, but with labels in its report's baseline and order.
    pub profile: Profile,
    pub scale: Scale,
    pub subjects: Vec<ServerSetup>,
    pub parts: Vec<RunSpec>,
    pub cells: Vec<Cell>,
    pub all: Vec<Cell>,
    /// Pairs of labels for the report's `from` and `to`, one for each program.
    pub changes: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub struct ServerSetup {
    /// The label in the file, with its program's name.
    pub label: String,
    /// The name of its program, if `--program` gave it one.
    pub program: Option<String>,
    pub base: Option<String>,
    /// The server with inherited settings, at this scale.
    pub server: Server,
    pub expect: Vec<Expect>,
}

#[derive(Debug, Clone)]
pub struct RunSpec {
    pub title: String,
    pub what: What,
    /// What the clients of a sweep do instead of its workload. Nobody has read it yet.
    pub script: Option<ScriptPart>,
    pub repeats: u32,
    pub subjects: Vec<usize>,
    pub commands: Vec<Command>,
    pub gates: Vec<Gate>,
}

#[derive(Debug, Clone)]
pub enum What {
    Sweep(Box<Plan>, Dataset),
    Load(LoadSpec),
    Suite(SuiteSpec),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Dataset {
    pub schema: Schema,
    /// Number of the last table; 0 if no statement names one.
    pub tables: u32,
    /// Rows of each table, from whose ids keys are drawn; 0 if the tables stay empty.
    pub rows: u64,
    pub data_seed: u32,
    /// Character set of the tables; None for the database's.
    pub charset: Option<String>,
    /// Connections of the fill; None for the default. They make no other rows: the resume key has null for any.
    #[serde(serialize_with = "write_null")]
    pub jobs: Option<u32>,
    /// True if prepare's tables are dropped and filled again, whatever they hold.
    #[serde(rename = "refill")]
    pub force: bool,
    /// None for the faster one that the server allows.
    #[serde(skip)]
    pub fill: Option<Method>,
}

fn write_null<T, S: Serializer>(_: &T, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_none()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    LoadData,
    Insert,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::LoadData => "LOAD DATA LOCAL",
            Method::Insert => "multi-row INSERT",
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub subject: usize,
    pub part: usize,
    pub clients: u32,
    pub rate: Option<f64>,
    pub repeat: u32,
    /// Identifies the measurement in every invocation of the experiment.
    pub key: String,
}

/// One sweep: cells of one part on one subject in one repeat.
pub(crate) struct CellGroup {
    pub subject: usize,
    pub part: usize,
    pub repeat: u32,
    pub cells: Vec<usize>,
    /// True if the server starts again: for another label, for another repeat (unless the experiment leaves
    /// it running), or to restore written data.
    pub fresh: bool,
}

impl RunSpec {
    fn sweep(&self) -> Option<(&Plan, &Dataset)> {
        let What::Sweep(plan, dataset) = &self.what else { return None };
        Some((plan, dataset))
    }

    /// Returns whether it may write; a script or a suite may.
    pub(crate) fn writes(&self) -> bool {
        self.script.is_some() || self.plan().is_none_or(Plan::may_write)
    }

    /// Returns the schema of all tables that it uses, if that is known: a script or somebody's SQL may use any.
    pub(crate) fn only_schema(&self) -> Option<Schema> {
        let (plan, dataset) = self.sweep().filter(|_| self.script.is_none())?;
        let is_own = |of: &Workload| of.built_in && of.schema == dataset.schema;
        let has_script = plan.groups.iter().any(|group| group.script.is_some());
        (!has_script && plan.workloads().all(is_own)).then_some(dataset.schema)
    }

    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.sweep().map(|(plan, _)| plan)
    }

    pub(crate) fn dataset(&self) -> Option<&Dataset> {
        self.sweep().map(|(_, dataset)| dataset).filter(|dataset| dataset.tables > 0)
    }

    fn steps(&self, repeat: u32) -> Vec<(u32, Option<f64>)> {
        self.sweep().map_or_else(|| vec![(1, None)], |(plan, _)| plan.cells(repeat))
    }

    fn count_steps(&self) -> u64 {
        let steps = self.sweep().map_or(self.repeats.into(), |(plan, _)| plan.count_steps());
        steps.saturating_mul(self.subjects.len() as u64)
    }
}

impl Experiment {
    pub(crate) fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.parts.iter().filter_map(RunSpec::plan)
    }

    /// Interleaves the labels whatever the profile says: compared runs should be near each other in time.
    pub(crate) fn extend(&mut self, repeats: u32, seed: u64) {
        self.profile.order = RepeatOrder::Interleaved;
        for part in &mut self.parts {
            part.repeats = part.repeats.max(repeats);
            if let What::Sweep(plan, _) = &mut part.what {
                plan.repeats = part.repeats;
            }
        }
        self.make_cells(seed);
    }

    fn make_cells(&mut self, seed: u64) {
        let mut cells = Vec::new();
        for (repeat, subject) in self.visits(seed) {
            let is_due =
                |part: &RunSpec| repeat <= part.repeats && part.subjects.contains(&subject);
            for (part, of_part) in self.parts.iter().enumerate().filter(|(_, part)| is_due(part)) {
                for (clients, rate) in of_part.steps(repeat) {
                    let key = String::new();
                    let cell = Cell { subject, part, clients, rate, repeat, key };
                    cells.push(Cell { key: self.key(&cell), ..cell });
                }
            }
        }
        self.cells.clone_from(&cells);
        self.all = cells;
    }

    /// Repeats are outermost, except with [`RepeatOrder::InTurn`]: no drift or lucky restart is within a cell.
    fn visits(&self, seed: u64) -> Vec<(u32, usize)> {
        let repeats = self.parts.iter().map(|part| part.repeats).max().unwrap_or(0);
        let (order, subject_count) = (self.profile.order, self.subjects.len());
        let in_repeat = |repeat: u32| {
            let mut subjects: Vec<usize> = (0..subject_count).collect();
            match order {
                // Otherwise a label would have the same position in each repeat.
                RepeatOrder::Interleaved if repeat.is_multiple_of(2) => subjects.reverse(),
                RepeatOrder::Shuffled => {
                    shuffle(&mut subjects, seed_of(&[seed, u64::from(repeat)]));
                }
                RepeatOrder::InTurn | RepeatOrder::Interleaved => {}
            }
            subjects.into_iter().map(move |subject| (repeat, subject))
        };
        let mut visits: Vec<(u32, usize)> = (1..=repeats).flat_map(in_repeat).collect();
        if order == RepeatOrder::InTurn {
            visits.sort_by_key(|(_, subject)| *subject);
        }
        visits
    }

    pub(crate) fn legs(&self, wanted: impl Fn(&Cell) -> bool) -> Vec<CellGroup> {
        let (mut legs, mut written) = (Vec::<CellGroup>::new(), false);
        for (at, cell) in self.cells.iter().enumerate().filter(|(_, cell)| wanted(cell)) {
            let Cell { subject, part, repeat, .. } = *cell;
            let fresh = match legs.last_mut().filter(|last| last.subject == subject) {
                Some(last) if (last.repeat, last.part) == (repeat, part) => {
                    last.cells.push(at);
                    continue;
                }
                Some(last) if last.repeat == repeat || !self.profile.restart => {
                    written |= self.parts[last.part].writes();
                    self.subjects[subject].server.can_restore() && written
                }
                _ => true,
            };
            // A fresh server has its prepared data.
            written &= !fresh;
            legs.push(CellGroup { subject, part, repeat, cells: vec![at], fresh });
        }
        legs
    }

    /// Keeps the cells that meet all conditions; refuses a value without a cell.
    fn keep(&mut self, conditions: &[Only]) -> Result<()> {
        let mut cells = self.all.clone();
        for Only { key, values } in conditions {
            let (name, value_of) = KEYS[*key];
            let known = self.all.iter().flat_map(|cell| value_of(self, cell));
            let known: BTreeSet<String> = known.filter(|value| !value.is_empty()).collect();
            let mut picked = BTreeSet::new();
            for value in values {
                let found = pick(&known, name, value);
                if found.is_empty() {
                    let message = format!("--only {name}={value}: the profile has no such {name}");
                    let known = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                    return Err(Error::usage(message).hint(format!("it has {known}")));
                }
                picked.extend(found);
            }
            cells.retain(|cell| value_of(self, cell).iter().any(|value| picked.contains(value)));
        }
        if cells.is_empty() {
            return Err(Error::usage("--only: no cell meets all conditions")
                .hint("--list without --only shows all cells"));
        }
        self.cells = cells;
        Ok(())
    }

    fn key(&self, cell: &Cell) -> String {
        let Cell { clients, rate, repeat, .. } = *cell;
        let (subject, part) = (&self.subjects[cell.subject], &self.parts[cell.part]);
        let ServerSetup { label, server, .. } = subject;
        let private = server.sandbox.as_ref().map(|sandbox| ServerKey::Private {
            program: sandbox.program.as_ref().map(|path| path.display().to_string()),
            options: sandbox.options.iter().collect(),
        });
        let given = server.given.as_ref().and_then(|given| given.known_as.as_deref());
        let given = given.map(ServerKey::Given);
        let server = private.or(given);
        let title = part.title.as_str();
        let run = match &part.what {
            What::Sweep(plan, dataset) => match &part.script {
                Some(ScriptPart { identity: script, data, .. }) => RunKey::Script {
                    plan,
                    script,
                    data,
                    commands: &part.commands,
                    dataset: part.dataset(),
                },
                None => RunKey::Sweep { plan, dataset, commands: &part.commands },
            },
            What::Load(load) => RunKey::Load { title, load },
            What::Suite(suite) => RunKey::Suite { title, suite },
        };
        let (version, profile) = (VERSION, self.profile.name.as_str());
        // Not all that a scale shrinks is in the plan.
        let scale = (!self.scale.is_full()).then(|| self.scale.factor());
        let key = ResumeKey { version, profile, label, server, run, clients, rate, repeat, scale };
        let text = serde_json::to_string(&key).expect("its texts and numbers are JSON");
        format!("{VERSION}-{:016x}", mix(name_part(&text)))
    }

    /// Returns the most clients of a subject, or connections that fill its tables; and prepared statements.
    pub(crate) fn most(&self, subject: usize) -> (u32, u64) {
        let parts = self.parts.iter().filter(|part| part.subjects.contains(&subject));
        // Tables are filled before the clients come, maybe over more connections.
        let jobs = self.profile.tables.jobs.map_or(1, value::Whole::small);
        parts.fold((jobs, 0), |(most, statements), part| {
            let What::Sweep(plan, dataset) = &part.what else { return (most, statements) };
            let spread = plan.spread_over(dataset.tables).expect("the profile was checked");
            let clients = plan.clients_max().saturating_add(plan.clients_beside());
            let prepared = plan.prepared_in_all(spread, dataset.tables);
            (most.max(clients), statements.max(prepared))
        })
    }

    /// Lists the clients of earlier steps of a cell's run, label and repeat, without the positions in `here`.
    pub(crate) fn before(&self, at: usize, here: &[usize]) -> Vec<u32> {
        let cell = &self.cells[at];
        let of_run = |other: &&Cell| {
            (other.subject, other.part, other.repeat) == (cell.subject, cell.part, cell.repeat)
        };
        let is_in_group = |other: &&Cell| here.iter().any(|at| self.cells[*at].key == other.key);
        let before = self.all.iter().filter(of_run).take_while(|other| other.key != cell.key);
        before.filter(|other| !is_in_group(other)).map(|other| other.clients).collect()
    }

    /// Returns the planned warm-up and window of a cell; None if its length is unknown.
    pub(crate) fn step_time(&self, at: usize) -> Option<Duration> {
        self.parts[self.cells[at].part].plan()?.step_time()
    }

    pub(crate) fn step(&self, at: usize) -> Step {
        let Cell { clients, rate, repeat, .. } = self.cells[at];
        let (number, of) = (at as u32 + 1, self.cells.len() as u32);
        Step::new(number, of, (clients, rate), repeat)
    }
}

type Called = fn(&Experiment, &Cell) -> Vec<String>;

/// Keys of `--only`; a label is given with or without its program's name.
const KEYS: [(&str, Called); 4] = [
    ("label", |experiment, cell| {
        let subject = &experiment.subjects[cell.subject];
        vec![subject.label.clone(), subject.server.name().to_owned()]
    }),
    ("workload", |experiment, cell| vec![experiment.parts[cell.part].title.clone()]),
    ("clients", |_, cell| vec![cell.clients.to_string()]),
    ("repeat", |_, cell| vec![cell.repeat.to_string()]),
];

/// Returns those of the known names that a value of a key stands for: itself, a workload by its alias, or, with `*` at
/// its end, all that begin with it.
fn pick(known: &BTreeSet<String>, key: &str, value: &str) -> Vec<String> {
    // A profile may name a workload by its alias; its cells have the name.
    let named = |word: &str| workload::named(word).filter(|_| key == "workload");
    if known.contains(value) {
        return vec![value.to_owned()];
    }
    let Some(start) = value.strip_suffix('*') else {
        return named(value)
            .map(|of| of.name)
            .filter(|name| known.contains(name))
            .into_iter()
            .collect();
    };
    let has_alias =
        |name: &str| named(name).is_some_and(|of| of.aliases.iter().any(|a| a.starts_with(start)));
    known.iter().filter(|name| name.starts_with(start) || has_alias(name)).cloned().collect()
}

/// `--only KEY=VALUE,…`: a part of the cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only {
    key: usize,
    values: Vec<String>,
}

impl FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = || "label=…, workload=…, clients=… or repeat=…".to_owned();
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let key = KEYS.iter().position(|(known, _)| *known == name).ok_or_else(form)?;
        let numbers = |list: &str| Ok::<_, String>(list.parse::<Clients>()?.0);
        let numbers = match name {
            "clients" => numbers(value)?,
            // A range has all of its repeats: they are not doubled as clients are.
            "repeat" => numbers(value).and_then(|_| numbers(&step_by_one(value)))?,
            _ => {
                let values = value.split(',').map(|name| name.trim().to_owned()).collect();
                return Ok(Only { key, values });
            }
        };
        Ok(Only { key, values: numbers.iter().map(u32::to_string).collect() })
    }
}

fn step_by_one(list: &str) -> String {
    let part = |part: &str| {
        let doubles = part.contains("..") && !part.contains('+');
        if doubles { format!("{part}+1") } else { part.to_owned() }
    };
    list.split(',').map(part).collect::<Vec<_>>().join(",")
}

/// Increases when [`ResumeKey`] changes its meaning.
const VERSION: u32 = 2;

/// The identity of a measurement in every invocation. Repeats and numbers of clients are only in the keys of
/// their own cells: they may be added later.
#[derive(Serialize)]
struct ResumeKey<'a> {
    version: u32,
    profile: &'a str,
    label: &'a str,
    server: Option<ServerKey<'a>>,
    run: RunKey<'a>,
    clients: u32,
    rate: Option<f64>,
    repeat: u32,
    /// None for the profile's own size.
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<f64>,
}

/// A private server's settings, or the address that flags give. Only its owner knows a running server.
#[derive(Serialize)]
#[serde(untagged)]
enum ServerKey<'a> {
    Private { program: Option<String>, options: Vec<(&'a String, &'a Setting)> },
    Given(&'a str),
}

#[derive(Serialize)]
enum RunKey<'a> {
    Sweep {
        plan: &'a Plan,
        dataset: &'a Dataset,
        commands: &'a [Command],
    },
    Script {
        plan: &'a Plan,
        script: &'a ScriptIdentity,
        data: &'a Option<ScriptData>,
        commands: &'a [Command],
        /// The tables of its groups, if they have some.
        #[serde(skip_serializing_if = "Option::is_none")]
        dataset: Option<&'a Dataset>,
    },
    Load {
        title: &'a str,
        load: &'a LoadSpec,
    },
    Suite {
        title: &'a str,
        suite: &'a SuiteSpec,
    },
}

/// Returns whether this version made a key.
pub(crate) fn is_current(key: &str) -> bool {
    key.split_once('-').is_some_and(|(version, _)| version == VERSION.to_string())
}
