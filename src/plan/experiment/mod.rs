//! Profile + what the command line says of it → everything that is going to happen, decided
//! before the first connection. Pure.
//!
//! ```text
//! Profile ─▶ subjects (labels) × parts (runs) ─▶ cells ─▶ legs: cells on one server and its data
//! ```

mod build;
mod estimate;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;

use super::profile::{Command, Expect, Profile, Server, Setting, Turns};
use super::timed::{LoadSpec, SuiteSpec};
use super::value::{self, Clients, Scale};
use super::{Plan, Step, defaults, shuffle};
use crate::error::{Error, Result};
use crate::terms::Gate;
use crate::workload::Schema;
use crate::workload::random::{mix, name_part, seed_of};

/// Flags beside a profile.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct Overrides {
    /// Program of the sandboxes that name none, and its part of their labels; may be given
    /// several times [default: mariadbd or mysqld from PATH]
    #[arg(long = "program", value_name = "NAME=PATH", value_parser = program)]
    pub programs: Vec<(String, PathBuf)>,

    /// Shrink rows, times and sizes: 0.001, for one
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub scale: Scale,

    /// Measure a part: label=, workload=, clients= or repeat= with a list; may be given several
    /// times, then all must hold
    #[arg(long, value_name = "KEY=LIST")]
    pub only: Vec<Only>,

    #[arg(skip)]
    pub seed: u64,

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
    /// As it is written, but that baseline and order of its report are the subjects' labels.
    pub profile: Profile,
    pub scale: Scale,
    pub subjects: Vec<Subject>,
    pub parts: Vec<Part>,
    /// The cells that are wanted, in the order of execution.
    pub cells: Vec<Cell>,
    pub all: Vec<Cell>,
    /// The labels that the report's `from` and `to` stand for: a pair for each program.
    pub changes: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub struct Subject {
    /// The label in the file, with its program's name.
    pub label: String,
    /// The label that it is a variant of.
    pub base: Option<String>,
    /// The server with what it inherits, at the scale at hand.
    pub server: Server,
    pub expect: Vec<Expect>,
}

#[derive(Debug, Clone)]
pub struct Part {
    pub title: String,
    pub what: What,
    pub repeats: u32,
    pub subjects: Vec<usize>,
    pub commands: Vec<Command>,
    pub gates: Vec<Gate>,
}

#[derive(Debug, Clone)]
pub enum What {
    /// A workload at some numbers of clients, on these tables.
    Sweep(Box<Plan>, Dataset),
    Load(LoadSpec),
    Suite(SuiteSpec),
}

/// Tables as prepare makes them, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Dataset {
    pub schema: Schema,
    /// `sbtest1` to this; 0 where no statement names one.
    pub tables: u32,
    /// Rows of each, and so the ids that keys are drawn from; 0 where the schema's tables stay empty.
    pub rows: u64,
    pub data_seed: u32,
    /// Character set of the tables; None for the database's.
    pub charset: Option<String>,
    /// Connections that fill; None for a sensible number.
    pub jobs: Option<u32>,
    /// Whether tables that prepare made are dropped and filled again, whatever they hold.
    #[serde(rename = "refill")]
    pub force: bool,
    /// None for LOAD DATA LOCAL where the server allows it and INSERT is not faster.
    #[serde(skip)]
    pub fill: Option<Method>,
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

/// One cell of a table, once.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub subject: usize,
    pub part: usize,
    pub clients: u32,
    pub rate: Option<f64>,
    pub repeat: u32,
    /// The same for the same measurement of the same experiment, in every invocation.
    pub key: String,
}

/// Cells of one part on one subject in one repeat: one sweep.
pub(crate) struct Leg {
    pub subject: usize,
    pub part: usize,
    pub repeat: u32,
    pub cells: Vec<usize>,
    /// The server is taken anew: another label, another repeat (unless the experiment
    /// leaves it running), or data that was written to and can be brought back.
    pub fresh: bool,
}

impl Part {
    pub(crate) fn writes(&self) -> bool {
        match &self.what {
            What::Sweep(plan, _) => plan.workload.writes(),
            // Nobody knows what a suite does.
            What::Load(_) | What::Suite(_) => true,
        }
    }

    pub(crate) fn dataset(&self) -> Option<&Dataset> {
        match &self.what {
            What::Sweep(_, dataset) => Some(dataset).filter(|dataset| dataset.tables > 0),
            What::Load(_) | What::Suite(_) => None,
        }
    }

    /// Lists the clients and rates of one repeat in the order of execution.
    fn steps(&self, repeat: u32) -> Vec<(u32, Option<f64>)> {
        match &self.what {
            What::Sweep(plan, _) => plan.cells(repeat),
            What::Load(_) | What::Suite(_) => vec![(1, None)],
        }
    }

    fn count_steps(&self) -> u64 {
        let steps = match &self.what {
            What::Sweep(plan, _) => plan.count_steps(),
            What::Load(_) | What::Suite(_) => u64::from(self.repeats),
        };
        steps.saturating_mul(self.subjects.len() as u64)
    }
}

impl Experiment {
    /// Decides everything.
    ///
    /// # Errors
    ///
    /// Usage: what contradicts itself in the profile, `--program` without a sandbox to take it,
    /// `--only` of what is not there, a spread that the tables forbid.
    pub fn new(profile: &Profile, overrides: &Overrides) -> Result<Experiment> {
        build::experiment(profile, overrides)
    }

    pub fn list(&self, wanted: impl Fn(&Cell) -> bool + Copy) -> String {
        estimate::list(self, wanted)
    }

    /// Adds repeats of every cell, for what is measured again; labels are interleaved, whatever the
    /// profile wants: what is compared should stand side by side.
    pub(crate) fn extend(&mut self, repeats: u32, seed: u64) {
        self.profile.order = Turns::Interleaved;
        for part in &mut self.parts {
            part.repeats = part.repeats.max(repeats);
            if let What::Sweep(plan, _) = &mut part.what {
                plan.repeats = part.repeats;
            }
        }
        self.make_cells(seed);
    }

    /// Makes all cells: labels and repeats as the profile wants them, in each the runs.
    fn make_cells(&mut self, seed: u64) {
        let mut cells = Vec::new();
        for (repeat, subject) in self.visits(seed) {
            let here = |part: &Part| repeat <= part.repeats && part.subjects.contains(&subject);
            for (part, of_part) in self.parts.iter().enumerate().filter(|(_, part)| here(part)) {
                for (clients, rate) in of_part.steps(repeat) {
                    let key = self.key(subject, of_part, (clients, rate, repeat));
                    cells.push(Cell { subject, part, clients, rate, repeat, key });
                }
            }
        }
        self.cells.clone_from(&cells);
        self.all = cells;
    }

    /// Orders labels and repeats. But for [`Turns::InTurn`], repeats are outermost, so that drift and
    /// the luck of a restart do not hide inside a cell.
    fn visits(&self, seed: u64) -> Vec<(u32, usize)> {
        let repeats = self.parts.iter().map(|part| part.repeats).max().unwrap_or(0);
        let (order, of) = (self.profile.order, self.subjects.len());
        let in_repeat = |repeat: u32| {
            let mut subjects: Vec<usize> = (0..of).collect();
            match order {
                // What comes later in each repeat would otherwise be the same label every time.
                Turns::Interleaved if repeat.is_multiple_of(2) => subjects.reverse(),
                Turns::Shuffled => shuffle(&mut subjects, seed_of(&[seed, u64::from(repeat)])),
                Turns::InTurn | Turns::Interleaved => {}
            }
            subjects.into_iter().map(move |subject| (repeat, subject))
        };
        let mut visits: Vec<(u32, usize)> = (1..=repeats).flat_map(in_repeat).collect();
        if order == Turns::InTurn {
            visits.sort_by_key(|(_, subject)| *subject);
        }
        visits
    }

    /// Groups the cells that are wanted, in the order of execution.
    pub(crate) fn legs(&self, wanted: impl Fn(&Cell) -> bool) -> Vec<Leg> {
        let (mut legs, mut written) = (Vec::<Leg>::new(), false);
        for (at, cell) in self.cells.iter().enumerate().filter(|(_, cell)| wanted(cell)) {
            let Cell { subject, part, repeat, .. } = *cell;
            let fresh = match legs.last_mut().filter(|last| last.subject == subject) {
                Some(last) if (last.repeat, last.part) == (repeat, part) => {
                    last.cells.push(at);
                    continue;
                }
                Some(last) if last.repeat == repeat || !self.profile.restart => {
                    written |= self.parts[last.part].writes();
                    self.subjects[subject].server.renews() && written
                }
                _ => true,
            };
            // Of the server as it was taken.
            written &= !fresh;
            legs.push(Leg { subject, part, repeat, cells: vec![at], fresh });
        }
        legs
    }

    /// Keeps the cells that all conditions let through, and refuses a value that is in no cell.
    fn keep(&mut self, conditions: &[Only]) -> Result<()> {
        let mut cells = self.all.clone();
        for Only { key, values } in conditions {
            let (name, of) = KEYS[*key];
            let known = self.all.iter().flat_map(|cell| of(self, cell));
            let known: BTreeSet<String> = known.filter(|value| !value.is_empty()).collect();
            if let Some(value) = values.iter().find(|value| !known.contains(*value)) {
                let message = format!("--only {name}={value}: the profile has no such {name}");
                let known = known.into_iter().collect::<Vec<_>>().join(", ");
                return Err(Error::usage(message).hint(format!("it has {known}")));
            }
            cells.retain(|cell| of(self, cell).iter().any(|value| values.contains(value)));
        }
        if cells.is_empty() {
            return Err(Error::usage("--only leaves nothing to measure"));
        }
        self.cells = cells;
        Ok(())
    }

    /// Makes what a cell is found by: the same for the same measurement of the same experiment.
    fn key(
        &self,
        subject: usize,
        part: &Part,
        (clients, rate, repeat): (u32, Option<f64>, u32),
    ) -> String {
        let Subject { label, server, .. } = &self.subjects[subject];
        let server = server.sandbox.as_ref().map(|sandbox| ServerKey {
            program: sandbox.program.as_ref().map(|path| path.display().to_string()),
            options: sandbox.options.iter().collect(),
        });
        let title = part.title.as_str();
        let run = match &part.what {
            What::Sweep(plan, dataset) => RunKey::Sweep { plan, dataset, commands: &part.commands },
            What::Load(load) => RunKey::Load { title, load },
            What::Suite(suite) => RunKey::Suite { title, suite },
        };
        let (version, profile) = (VERSION, self.profile.name.as_str());
        let key = ResumeKey { version, profile, label, server, run, clients, rate, repeat };
        let text = serde_json::to_string(&key).expect("its texts and numbers are JSON");
        format!("{VERSION}-{:016x}", mix(name_part(&text)))
    }

    /// Counts the clients of the largest step of a subject, and the prepared statements that they hold.
    pub(crate) fn most(&self, subject: usize) -> (u32, u64) {
        let parts = self.parts.iter().filter(|part| part.subjects.contains(&subject));
        parts.fold((1, 0), |(most, statements), part| {
            let What::Sweep(plan, dataset) = &part.what else { return (most, statements) };
            let spread = plan.spread_over(dataset.tables).expect("the profile was checked");
            let clients = plan.clients_max();
            let here = plan.prepared_per_client(spread, dataset.tables) * u64::from(clients);
            (most.max(clients), statements.max(here))
        })
    }

    /// Lists the clients of the steps that come before a cell in the same run of the same label and
    /// repeat, but for those of these positions, in their order.
    pub(crate) fn before(&self, at: usize, here: &[usize]) -> Vec<u32> {
        let cell = &self.cells[at];
        let of_run = |other: &&Cell| {
            (other.subject, other.part, other.repeat) == (cell.subject, cell.part, cell.repeat)
        };
        let there = |other: &&Cell| here.iter().any(|at| self.cells[*at].key == other.key);
        let before = self.all.iter().filter(of_run).take_while(|other| other.key != cell.key);
        before.filter(|other| !there(other)).map(|other| other.clients).collect()
    }

    pub(crate) fn step(&self, at: usize) -> Step {
        let Cell { clients, rate, repeat, .. } = self.cells[at];
        let (number, of) = (at as u32 + 1, self.cells.len() as u32);
        Step { number, place: number, of, clients, rate, repeat }
    }
}

type Called = fn(&Experiment, &Cell) -> Vec<String>;

/// Names what `--only` picks cells by; a label goes with or without its program's name.
const KEYS: [(&str, Called); 4] = [
    ("label", |experiment, cell| {
        let subject = &experiment.subjects[cell.subject];
        vec![subject.label.clone(), subject.server.name().to_owned()]
    }),
    ("workload", |experiment, cell| vec![experiment.parts[cell.part].title.clone()]),
    ("clients", |_, cell| vec![cell.clients.to_string()]),
    ("repeat", |_, cell| vec![cell.repeat.to_string()]),
];

/// `--only KEY=VALUE,…`: a part of the cells; of several all must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only {
    /// A place in [`KEYS`].
    key: usize,
    values: Vec<String>,
}

impl FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = || "label=…, workload=…, clients=… or repeat=…".to_owned();
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let key = KEYS.iter().position(|(known, _)| *known == name).ok_or_else(form)?;
        let values = if ["clients", "repeat"].contains(&name) {
            value.parse::<Clients>()?.0.iter().map(u32::to_string).collect()
        } else {
            value.split(',').map(|name| name.trim().to_owned()).collect()
        };
        Ok(Only { key, values })
    }
}

/// Goes up where [`ResumeKey`] changes its meaning.
const VERSION: u32 = 2;

/// What makes two measurements the same, in every invocation. Repeats and numbers of clients may be
/// added later: each is in the key of its own cells only.
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
}

/// A private server as loadgen sets it up; of one that is there only its owner knows.
#[derive(Serialize)]
struct ServerKey<'a> {
    program: Option<String>,
    options: Vec<(&'a String, &'a Setting)>,
}

#[derive(Serialize)]
enum RunKey<'a> {
    Sweep { plan: &'a Plan, dataset: &'a Dataset, commands: &'a [Command] },
    Load { title: &'a str, load: &'a LoadSpec },
    Suite { title: &'a str, suite: &'a SuiteSpec },
}

/// Tells a key that this version makes from an earlier one's.
pub(crate) fn is_current(key: &str) -> bool {
    key.split_once('-').is_some_and(|(version, _)| version == VERSION.to_string())
}
