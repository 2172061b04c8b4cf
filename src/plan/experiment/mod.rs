//! Profile + what the command line says of it → everything that is going to happen, decided
//! before the first connection. Pure.
//!
//! ```text
//! Profile ─▶ subjects (labels) × parts (runs) ─▶ cells ─▶ legs: cells on one server and its data
//! ```

mod build;
mod estimate;
mod legs;
mod only;
pub mod scale;
mod subject;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use super::condition::Condition;
use super::profile::value::Hidden;
use super::profile::{Data, Expect, Report, Turns};
use super::timed::{LoadSpec, SuiteSpec};
use super::{Plan, Step, StopAt, seconds_of};
use crate::workload::Schema;
use crate::workload::random::{mix, name_part};
use scale::Scale;

pub(crate) use legs::Leg;
pub use only::Only;

/// What the command line adds to a profile.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--program NAME=PATH`: the programs of sandboxes that name none.
    pub programs: Vec<(String, PathBuf)>,
    /// `--scale`
    pub scale: Scale,
    /// `--only`
    pub only: Vec<Only>,
    /// `--seed`
    pub seed: u64,
    /// `--out`
    pub out: PathBuf,
}

/// An experiment, decided.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The profile's name.
    pub name: String,
    /// What it repeats.
    pub about: String,
    /// How much smaller than the profile.
    pub scale: Scale,
    /// In which order labels and repeats are taken.
    pub order: Turns,
    /// Whether tables that were prepared may be dropped.
    pub refill: bool,
    /// Whether a server is taken anew also where it is measured again in its next repeat.
    pub restart: bool,
    /// The labels.
    pub subjects: Vec<Subject>,
    /// The runs, a workload each.
    pub parts: Vec<Part>,
    /// The cells that are wanted, in the order of execution.
    pub cells: Vec<Cell>,
    /// All cells, wanted or not.
    pub all: Vec<Cell>,
    /// What is printed at the end; its baseline and order are the subjects' labels.
    pub report: Report,
    /// The labels that the report's `from` and `to` stand for: a pair for each program.
    pub changes: Vec<(String, String)>,
}

/// One label.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The row of the table.
    pub label: String,
    /// The label in the file, without a program's name.
    pub name: String,
    /// The label that it is a variant of.
    pub base: Option<String>,
    /// For the summaries.
    pub note: Option<String>,
    /// Where the server comes from.
    pub source: Source,
    /// How to read the files of its host, if not as this one's.
    pub probe: Vec<String>,
    /// What must hold: all of these.
    pub expect: Vec<Expect>,
}

/// Where a server comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// It is there.
    Existing(Existing),
    /// loadgen starts it.
    Sandbox(Private),
}

/// A server that is there, and the commands that start it again.
#[derive(Debug, Clone, Default)]
pub struct Existing {
    /// `mysql://…`
    pub url: Option<Hidden>,
    /// An option file.
    pub defaults_file: Option<PathBuf>,
    /// Program and arguments; empty for none.
    pub start: Vec<String>,
    /// Likewise.
    pub stop: Vec<String>,
    /// Likewise.
    pub reset: Vec<String>,
    /// How long each, and the start, may take.
    pub within: Duration,
}

/// A private server.
#[derive(Debug, Clone)]
pub struct Private {
    /// Its program; None: mariadbd or mysqld from PATH.
    pub program: Option<PathBuf>,
    /// Its options, sizes scaled.
    pub options: Vec<(String, Option<String>)>,
    /// Where its data is.
    pub data: Data,
}

/// A run of the profile with one workload.
#[derive(Debug, Clone)]
pub struct Part {
    /// The title of its table.
    pub title: String,
    /// What is done.
    pub what: What,
    /// Runs of each cell.
    pub repeats: u32,
    /// Positions of the subjects that it is for.
    pub subjects: Vec<usize>,
    /// Commands beside its windows.
    pub commands: Vec<Beside>,
    /// What must hold at the end.
    pub gates: Vec<Condition>,
}

/// What a part does.
#[derive(Debug, Clone)]
pub enum What {
    /// A workload at some numbers of clients, on these tables.
    Sweep(Box<Plan>, Dataset),
    /// A timed load.
    Load(LoadSpec),
    /// Timed commands.
    Suite(SuiteSpec),
}

/// Tables that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// Their kind.
    pub schema: Schema,
    /// How many; 0 where no statement names one.
    pub tables: u32,
    /// Rows of each, and so the ids that keys are drawn from; 0 where the schema's tables stay empty.
    pub rows: u64,
    /// Seed of their content.
    pub data_seed: u32,
    /// Character set; None: the server's.
    pub charset: Option<String>,
    /// Connections that fill; None: as many as fit.
    pub jobs: Option<u32>,
    /// Whether they may be dropped and filled again to bring them back.
    pub refill: bool,
}

/// A command beside a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// From the start of the window.
    pub at: Duration,
    /// Program and arguments, with placeholders.
    pub run: Vec<String>,
    /// Beside these numbers of clients; None: all.
    pub clients: Option<Vec<u32>>,
}

/// One cell of a table, once.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Position of its subject.
    pub subject: usize,
    /// Position of its part.
    pub part: usize,
    /// Clients; 1 for what is timed.
    pub clients: u32,
    /// Ops a second over all of them; None is a closed loop.
    pub rate: Option<f64>,
    /// From 1.
    pub repeat: u32,
    /// The same for the same measurement of the same experiment, in every invocation.
    pub key: String,
}

impl Part {
    /// Whether it changes the data.
    pub(crate) fn writes(&self) -> bool {
        match &self.what {
            What::Sweep(plan, _) => plan.workload.writes(),
            // Nobody knows what a suite does.
            What::Load(_) | What::Suite(_) => true,
        }
    }

    /// The tables that it needs.
    pub(crate) fn dataset(&self) -> Option<&Dataset> {
        match &self.what {
            What::Sweep(_, dataset) => Some(dataset).filter(|dataset| dataset.tables > 0),
            What::Load(_) | What::Suite(_) => None,
        }
    }
}

impl Subject {
    /// Whether its data can be brought back to what it was.
    pub(crate) fn renews(&self) -> bool {
        match &self.source {
            Source::Existing(existing) => !existing.reset.is_empty(),
            Source::Sandbox(private) => !matches!(private.data, Data::Keep(_)),
        }
    }
}

impl Experiment {
    /// Clients of the largest step of a subject, and the prepared statements that they hold.
    pub(crate) fn most(&self, subject: usize) -> (u32, u64) {
        let plans =
            self.parts.iter().filter(|part| part.subjects.contains(&subject)).filter_map(|part| {
                match &part.what {
                    What::Sweep(plan, dataset) => Some((plan, dataset.tables)),
                    What::Load(_) | What::Suite(_) => None,
                }
            });
        plans.fold((1, 0), |(clients, statements), (plan, tables)| {
            let spread = plan.spread_over(tables).unwrap_or(super::Spread::Random);
            let here = plan.prepared_per_client(spread, tables) * u64::from(plan.clients_max());
            (clients.max(plan.clients_max()), statements.max(here))
        })
    }

    /// The clients of the steps that come before a cell in the same run of the same label and
    /// repeat, but for those of these positions, in their order.
    pub(crate) fn before(&self, at: usize, here: &[usize]) -> Vec<u32> {
        let Some(cell) = self.cells.get(at) else { return Vec::new() };
        let of_run = |other: &&Cell| {
            (other.subject, other.part, other.repeat) == (cell.subject, cell.part, cell.repeat)
        };
        let there = |other: &&Cell| {
            here.iter().any(|at| self.cells.get(*at).is_some_and(|cell| cell.key == other.key))
        };
        let before = self.all.iter().filter(of_run).take_while(|other| other.key != cell.key);
        before.filter(|other| !there(other)).map(|other| other.clients).collect()
    }

    /// A cell as a step of its sweep.
    pub(crate) fn step(&self, at: usize) -> Step {
        let cell = &self.cells[at];
        let (number, of) = (at as u32 + 1, self.cells.len() as u32);
        let (clients, rate, repeat) = (cell.clients, cell.rate, cell.repeat);
        Step { number, place: number, of, clients, rate, repeat }
    }
}

/// A key of texts: 16 hexadecimal digits.
fn key(texts: &[&str]) -> String {
    let hash = texts.iter().fold(0, |hash, text| mix(hash ^ name_part(text)));
    format!("{hash:016x}")
}

/// How long a step of a plan lasts, connecting not counted; ops are guessed at.
fn step_time(plan: &Plan) -> Duration {
    /// Ops a second that a small server does.
    const OPS_A_SECOND: f64 = 5000.0;
    plan.warmup
        + match plan.stop {
            StopAt::Time(time) => time,
            StopAt::Ops(ops) => seconds_of(ops as f64 / OPS_A_SECOND),
        }
}
