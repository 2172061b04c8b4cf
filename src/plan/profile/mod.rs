//! A profile: an experiment as a file. The types are the form of the TOML; what is wrong in a
//! file is told with its line and column. `docs/profiles.md` describes every key.

mod bounds;
mod check;
mod locate;
#[cfg(test)]
mod tests;
pub(crate) mod value;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use self::locate::{Fault, File};
use self::value::{Amount, Clients, Count, Hidden, Names, Parsed, Rates, Setting, Span, Word};
use super::before::{Ahi, Warm};
use super::condition::Condition;
use super::policy::{ErrorsMax, OnError};
use super::timed::{LoadSpec, SuiteSpec};
use super::{Arrival, Order, SpreadChoice, StatementMode};
use crate::error::{Error, Result};
use crate::workload::Workload;
use crate::workload::distribution::Distribution;

/// A profile's file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name, in summaries.
    pub name: Spanned<String>,
    /// What it repeats, and what it needs.
    #[serde(default)]
    pub about: String,
    /// In which order labels and repeats are taken.
    #[serde(default)]
    pub order: Turns,
    /// Whether a server that is measured again in its next repeat is taken anew for it.
    #[serde(default = "yes")]
    pub restart: bool,
    /// What must hold at the end, in every run of a workload.
    #[serde(default)]
    pub gates: Vec<Parsed<Condition>>,
    /// The labels, in the order in which they are taken.
    #[serde(default, rename = "server")]
    pub servers: Vec<Spanned<Server>>,
    /// The tables of all runs.
    #[serde(default)]
    pub tables: Tables,
    /// The user's own workloads.
    #[serde(default, rename = "workload")]
    pub workloads: Vec<Spanned<Workload>>,
    /// What is measured on each server, in this order.
    #[serde(default, rename = "run")]
    pub runs: Vec<Spanned<Run>>,
    /// What must hold on every server.
    #[serde(default)]
    pub expect: Expect,
    /// Commands beside the measuring.
    #[serde(default, rename = "command")]
    pub commands: Vec<Spanned<Command>>,
    /// What is printed at the end.
    #[serde(default)]
    pub report: Report,
    /// For errors that only somebody else can find.
    #[serde(skip)]
    file: File,
}

fn yes() -> bool {
    true
}

/// The order of labels and repeats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// A label with all of its repeats, then the next one.
    InTurn,
    /// All labels in each repeat, forwards and backwards: A B, B A, A B.
    #[default]
    Interleaved,
    /// All labels in each repeat, in an order of its own that follows from the seed.
    Shuffled,
}

/// One label: a server and how it is set up.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The row of the table; the name of a `--program` comes before it.
    pub label: Option<Spanned<String>>,
    /// A server above, of which this one is the same but for what is said here.
    pub base: Option<Spanned<String>>,
    /// Kept in the summaries.
    pub note: Option<String>,
    /// A server that is there: `mysql://…`.
    pub url: Option<Spanned<Hidden>>,
    /// A server that is there: an option file of the MySQL clients.
    pub defaults_file: Option<Spanned<PathBuf>>,
    /// A server that loadgen starts.
    pub sandbox: Option<Sandbox>,
    /// Starts the server: program and arguments.
    pub start: Option<Spanned<Vec<String>>>,
    /// Stops it.
    pub stop: Option<Spanned<Vec<String>>>,
    /// Brings its data back to what it was, while it is stopped.
    pub reset: Option<Spanned<Vec<String>>>,
    /// How long these and the start may take.
    pub within: Option<Spanned<Span>>,
    /// Reads the files of the server's host: program and arguments before `grep`.
    pub probe: Option<Spanned<Vec<String>>>,
    /// What must hold on this server besides.
    #[serde(default)]
    pub expect: Expect,
}

/// A private server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// Its program; without one those of `--program`, else mariadbd or mysqld from PATH.
    pub program: Option<PathBuf>,
    /// Options of the server.
    #[serde(default)]
    pub options: BTreeMap<String, Setting>,
    /// Sizes that `--scale` makes smaller, such as `innodb_buffer_pool_size = "4G"`.
    #[serde(default)]
    pub scaled_options: BTreeMap<String, Spanned<String>>,
    /// Where its data is, and what becomes of it.
    pub data: Option<Spanned<Data>>,
}

/// Where the data of a sandbox is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Data {
    /// Made anew for every start, and thrown away.
    #[default]
    ThrowAway,
    /// Prepared once for the label, and copied for every start; thrown away at the end.
    Copied,
    /// In this directory, which stays.
    Keep(PathBuf),
    /// Prepared in this directory, which stays and is never measured in: every start has a copy.
    CopyOf(PathBuf),
}

/// The tables of the runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// How many.
    pub count: Option<Spanned<Count>>,
    /// Rows of each.
    pub rows: Option<Spanned<Count>>,
    /// Seed of their content.
    pub data_seed: Option<u32>,
    /// Character set; None for the server's.
    pub charset: Option<Spanned<String>>,
    /// Connections that fill.
    pub jobs: Option<Spanned<u32>>,
    /// Whether tables that were written to are dropped and filled again before the next run, on
    /// servers whose data cannot be brought back otherwise.
    #[serde(default)]
    pub refill: bool,
}

/// A workload (or several) at some numbers of clients; or a load; or a suite.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The title of its table, instead of the workload's name.
    pub name: Option<Spanned<String>>,
    /// Names of workloads, built in or of this file.
    pub workload: Option<Names>,
    /// A timed load instead.
    pub load: Option<Spanned<LoadSpec>>,
    /// Timed commands instead.
    pub suite: Option<Spanned<SuiteSpec>>,
    /// Options of the workload.
    #[serde(default)]
    pub options: BTreeMap<String, Spanned<Amount>>,
    /// Labels of the servers that it is for; none means all.
    pub servers: Option<Spanned<Names>>,
    /// Tables used; those of `[tables]` without.
    pub tables: Option<Spanned<Count>>,
    /// Rows of each.
    pub rows: Option<Spanned<Count>>,
    /// Numbers of clients.
    pub clients: Option<Spanned<Clients>>,
    /// Ops a second over all clients, for an open loop.
    pub rate: Option<Rates>,
    /// How its arrivals are spaced.
    pub arrival: Option<Word<Arrival>>,
    /// How clients meet tables.
    pub spread: Option<Spanned<Word<SpreadChoice>>>,
    /// Before each window.
    pub warmup: Option<Spanned<Span>>,
    /// Length of each window.
    pub time: Option<Spanned<Span>>,
    /// Ops of each step instead.
    pub ops: Option<Spanned<Count>>,
    /// Runs of each cell.
    pub repeat: Option<Spanned<u32>>,
    /// Order of the numbers of clients.
    pub order: Option<Word<Order>>,
    /// Which rows are touched.
    pub distribution: Option<Parsed<Distribution>>,
    /// Prepared or text.
    pub statements: Option<Word<StatementMode>>,
    /// What an error does to its client and the step.
    pub on_error: Option<Word<OnError>>,
    /// More errors end a step: a count, or a share such as `"1%"`.
    pub max_errors: Option<Parsed<ErrorsMax>>,
    /// An op without an answer for so long is given up.
    pub op_timeout: Option<Span>,
    /// Threads of the client.
    pub engine_threads: Option<Spanned<u32>>,
    /// Character set of the sessions.
    pub charset: Option<Spanned<String>>,
    /// Whether all rows are read once before the first step, so that they are cached: what
    /// `warm = "pool"` says, too.
    #[serde(default)]
    pub scan: bool,
    /// What must hold at the end, besides what must hold in all runs.
    #[serde(default)]
    pub gates: Vec<Parsed<Condition>>,
    /// What is read before the first step.
    pub warm: Option<Word<Warm>>,
    /// The adaptive hash index before each step.
    pub ahi: Option<Word<Ahi>>,
    /// How long to wait before each step until dirty pages and history have fallen.
    pub settle: Option<Span>,
}

/// What must hold before a run, else it is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Global variables and their value, or several; `absent` is a variable that is not there.
    #[serde(default)]
    pub variables: BTreeMap<String, Spanned<Values>>,
    /// The data and InnoDB's buffer pool.
    pub database: Option<Database>,
}

/// A value or several of which one must hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a value, or a list of values of which one must hold")]
pub enum Values {
    /// One.
    One(Setting),
    /// Any of these.
    Any(Vec<Setting>),
}

/// The size of the tables against the buffer pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Database {
    /// More than fits.
    LargerThanBufferPool,
    /// All of it fits.
    InsideBufferPool,
}

/// A command that runs beside the measuring.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// When it starts, from the start of the window.
    pub at: Spanned<Span>,
    /// Program and arguments; `{pid}` is the server's process, `{label}`, `{workload}` and
    /// `{clients}` are those of the step.
    pub run: Spanned<Vec<String>>,
    /// Only beside these runs or workloads.
    pub workload: Option<Names>,
    /// Only beside these numbers of clients.
    pub clients: Option<Spanned<Clients>>,
}

/// What is printed at the end.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Layouts, as `loadgen report --layout` knows them, one after the other.
    pub layout: Option<Names>,
    /// Metrics, as `loadgen report --metric` knows them: each layout once for each.
    pub metric: Option<Names>,
    /// The label that the others are related to; `first` is the first one.
    pub baseline: Option<Spanned<String>>,
    /// The label without something, for the layouts `delta` and `overhead`.
    pub from: Option<Spanned<String>>,
    /// The label with it.
    pub to: Option<Spanned<String>>,
    /// Order of the labels; others follow.
    pub order: Option<Names>,
}

impl Profile {
    /// Reads and checks a profile; `origin` names the file in errors.
    ///
    /// # Errors
    ///
    /// Usage, with line and column.
    pub fn parse(text: &str, origin: &str) -> Result<Profile> {
        let file = File { origin: origin.to_owned(), text: text.to_owned() };
        let mut profile: Profile = toml::from_str(text).map_err(|e| {
            let span = e.span().unwrap_or(text.len()..text.len());
            file.error(&Fault::new(span, e.message()))
        })?;
        profile.check().map_err(|fault| file.error(&fault))?;
        profile.file = file;
        Ok(profile)
    }

    /// The error of a value that only somebody else can judge, such as a layout's name.
    pub(crate) fn refuse(&self, place: Range<usize>, what: impl Into<String>) -> Error {
        self.file.error(&Fault::new(place, what))
    }
}

impl Server {
    /// Its label as the file has it; empty without one.
    pub(crate) fn name(&self) -> &str {
        self.label.as_ref().map_or("", |label| label.as_ref())
    }
}

impl Names {
    /// The names alone.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| name.as_ref().as_str())
    }
}
