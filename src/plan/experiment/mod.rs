//! Profile + what the command line says of it → everything that is going to happen, decided
//! before the first connection. Pure.
//!
//! ```text
//! Profile ─▶ subjects (labels) × parts (runs) ─▶ cells ─▶ legs: cells on one server and its data
//! ```

mod build;
mod cells;
mod estimate;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::profile::{Data, Expect, Profile, Report, Turns};
use super::timed::{LoadSpec, SuiteSpec};
use super::value::Scale;
use super::{Plan, Step};
use crate::error::Result;
use crate::mysql::options::Secret;
use crate::terms::Gate;
use crate::workload::Schema;

pub use cells::Only;
pub(crate) use cells::is_current;

/// Flags beside a profile.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--program NAME=PATH`: the programs of sandboxes that name none.
    pub programs: Vec<(String, PathBuf)>,
    pub scale: Scale,
    pub only: Vec<Only>,
    pub seed: u64,
    pub out: PathBuf,
    /// `--force`: what an earlier version measured is measured again.
    pub force: bool,
}

#[derive(Debug, Clone)]
pub struct Experiment {
    pub name: String,
    pub about: String,
    pub scale: Scale,
    pub order: Turns,
    /// Tables that were prepared may be dropped.
    pub refill: bool,
    /// A server is taken anew also where it is measured again in its next repeat.
    pub restart: bool,
    pub subjects: Vec<Subject>,
    pub parts: Vec<Part>,
    /// The cells that are wanted, in the order of execution.
    pub cells: Vec<Cell>,
    pub all: Vec<Cell>,
    /// Tables that are printed at the end; its baseline and order are the subjects' labels.
    pub report: Report,
    /// The labels that the report's `from` and `to` stand for: a pair for each program.
    pub changes: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub struct Subject {
    pub label: String,
    /// The label in the file, without a program's name.
    pub name: String,
    /// The label that it is a variant of.
    pub base: Option<String>,
    pub note: Option<String>,
    pub source: Source,
    /// The command that reads the files of its host, if not as this one's.
    pub probe: Vec<String>,
    pub expect: Vec<Expect>,
}

#[derive(Debug, Clone)]
pub enum Source {
    Existing(Existing),
    Sandbox(Private),
}

/// A server that is there, and the commands that start it again.
#[derive(Debug, Clone, Default)]
pub struct Existing {
    pub url: Option<Secret>,
    pub defaults_file: Option<PathBuf>,
    /// Program and arguments; empty for none.
    pub start: Vec<String>,
    pub stop: Vec<String>,
    pub reset: Vec<String>,
    /// Each command, and the start, may take so long.
    pub within: Duration,
}

#[derive(Debug, Clone)]
pub struct Private {
    /// Its program; None: mariadbd or mysqld from PATH.
    pub program: Option<PathBuf>,
    pub options: Vec<(String, Option<String>)>,
    pub data: Data,
}

#[derive(Debug, Clone)]
pub struct Part {
    pub title: String,
    pub what: What,
    pub repeats: u32,
    pub subjects: Vec<usize>,
    pub commands: Vec<Beside>,
    pub gates: Vec<Gate>,
}

#[derive(Debug, Clone)]
pub enum What {
    /// A workload at some numbers of clients, on these tables.
    Sweep(Box<Plan>, Dataset),
    Load(LoadSpec),
    Suite(SuiteSpec),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dataset {
    pub schema: Schema,
    /// How many; 0 where no statement names one.
    pub tables: u32,
    /// Rows of each, and so the ids that keys are drawn from; 0 where the schema's tables stay empty.
    pub rows: u64,
    pub data_seed: u32,
    pub charset: Option<String>,
    /// Connections that fill; None: as many as fit.
    pub jobs: Option<u32>,
    /// They may be dropped and filled again to bring them back.
    pub refill: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Beside {
    pub at: Duration,
    pub run: Vec<String>,
    pub clients: Option<Vec<u32>>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leg {
    pub subject: usize,
    pub part: usize,
    pub repeat: u32,
    pub cells: Vec<usize>,
    /// The server is taken anew: another label, another repeat (unless the experiment
    /// leaves it running), or data that was written to and can be brought back.
    pub fresh: bool,
    /// Parts that wrote to the data since the server was taken anew, by title.
    pub written_by: Vec<String>,
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
}

impl Subject {
    /// Tells whether its data can be brought back to what it was.
    pub(crate) fn renews(&self) -> bool {
        match &self.source {
            Source::Existing(existing) => !existing.reset.is_empty(),
            Source::Sandbox(private) => !matches!(private.data, Data::Keep(_)),
        }
    }
}

impl Experiment {
    /// Decides everything.
    ///
    /// # Errors
    ///
    /// Usage: `--program` without a sandbox to take it, `--only` of what is not there, a spread
    /// that the tables forbid.
    pub fn new(profile: &Profile, overrides: &Overrides) -> Result<Experiment> {
        build::experiment(profile, overrides)
    }

    /// Adds repeats of every cell, for what is measured again; labels are interleaved, whatever the
    /// profile wants: what is compared should stand side by side.
    pub(crate) fn extend(&mut self, repeats: u32, seed: u64) {
        self.order = Turns::Interleaved;
        for part in &mut self.parts {
            part.repeats = part.repeats.max(repeats);
            if let What::Sweep(plan, _) = &mut part.what {
                plan.repeats = part.repeats;
            }
        }
        self.cells = cells::cells(self, seed);
        self.all.clone_from(&self.cells);
    }

    pub(crate) fn legs(&self, wanted: impl Fn(&Cell) -> bool) -> Vec<Leg> {
        cells::legs(self, wanted)
    }

    pub fn list(&self, wanted: impl Fn(&Cell) -> bool + Copy) -> String {
        estimate::list(self, wanted)
    }

    /// Counts the clients of the largest step of a subject, and the prepared statements that they hold.
    pub(crate) fn most(&self, subject: usize) -> (u32, u64) {
        let plans =
            self.parts.iter().filter(|part| part.subjects.contains(&subject)).filter_map(|part| {
                match &part.what {
                    What::Sweep(plan, dataset) => Some((plan, dataset.tables)),
                    What::Load(_) | What::Suite(_) => None,
                }
            });
        plans.fold((1, 0), |(clients, statements), (plan, tables)| {
            let spread = plan.spread_over(tables).expect("the profile was checked");
            let here = plan.prepared_per_client(spread, tables) * u64::from(plan.clients_max());
            (clients.max(plan.clients_max()), statements.max(here))
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
        let cell = &self.cells[at];
        let (number, of) = (at as u32 + 1, self.cells.len() as u32);
        let (clients, rate, repeat) = (cell.clients, cell.rate, cell.repeat);
        Step { number, place: number, of, clients, rate, repeat }
    }
}
