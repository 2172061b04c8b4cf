//! A profile: an experiment as a file. The types are the form of the TOML; what is wrong in a
//! file is told with its line and column. `docs/profiles.md` describes every key.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

use super::knobs::{Knobs, LoadSpec, SuiteSpec};
use super::value::{
    CharsetName, Clients, Length, Names, Phase, Repeats, RowCount, Size, TableCount, Threads,
    as_flag, command, items, named,
};
use crate::error::Error;
use crate::mysql::options::Secret;
use crate::terms::{Class, Gate, Warm};
use crate::workload::{Workload, builtin};

/// How long a command that starts or stops a server may take.
const WITHIN: Duration = Duration::from_mins(10);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Its name, in summaries; a label where there is one server without.
    #[serde(deserialize_with = "named")]
    pub name: String,
    pub about: String,
    pub order: Turns,
    /// Whether a server that is measured again in its next repeat is taken anew for it.
    #[serde(default = "yes")]
    pub restart: bool,
    /// What must hold at the end, in every run of a workload.
    pub gates: Vec<Gate>,
    #[serde(rename = "server")]
    pub servers: Vec<Server>,
    pub tables: Tables,
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    #[serde(skip)]
    pub runs: Vec<Run>,
    /// The runs as they are written: each kind is read by itself.
    #[serde(rename = "run")]
    _runs: IgnoredAny,
    pub expect: Expect,
    #[serde(rename = "command")]
    pub commands: Vec<Command>,
    pub report: Report,
    #[serde(skip)]
    file: File,
}

fn yes() -> bool {
    true
}

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
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The row of the table; the name of a `--program` comes before it.
    #[serde(deserialize_with = "named")]
    pub label: Option<String>,
    /// A server above, of which this one is the same but for what is said here.
    pub base: Option<String>,
    pub note: Option<String>,
    /// A server that is there: `mysql://…`.
    pub url: Option<Secret>,
    /// Or as the flags of the same names say it. The password is in a file or in MYSQL_PWD.
    pub host: Option<String>,
    pub port: Option<NonZeroU16>,
    pub socket: Option<PathBuf>,
    pub user: Option<String>,
    pub database: Option<String>,
    pub defaults_file: Option<PathBuf>,
    pub sandbox: Option<Sandbox>,
    /// Program and arguments; empty for none.
    #[serde(deserialize_with = "command")]
    pub start: Vec<String>,
    #[serde(deserialize_with = "command")]
    pub stop: Vec<String>,
    /// Brings its data back to what it was, while it is stopped.
    #[serde(deserialize_with = "command")]
    pub reset: Vec<String>,
    /// Each command, and the start, may take so long.
    pub within: Option<Length<1>>,
    /// Reads the files of the server's host: program and arguments before `grep`.
    #[serde(deserialize_with = "command")]
    pub probe: Vec<String>,
    pub expect: Expect,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// Its program; without one those of `--program`, else mariadbd or mysqld from PATH.
    pub program: Option<PathBuf>,
    pub options: BTreeMap<String, Setting>,
    /// Sizes that `--scale` makes smaller, such as `innodb_buffer_pool_size = "4G"`.
    pub scaled_options: BTreeMap<String, Size>,
    pub data: Option<Data>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Data {
    /// Made anew for every start, and thrown away.
    ThrowAway,
    /// Prepared once for the label, and copied for every start; thrown away at the end.
    Copied,
    /// In this directory, which stays.
    Keep(PathBuf),
    /// Prepared in this directory, which stays and is never measured in: every start has a copy.
    CopyOf(PathBuf),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tables {
    pub count: Option<TableCount>,
    pub rows: Option<RowCount>,
    pub data_seed: Option<u32>,
    pub charset: Option<CharsetName>,
    pub jobs: Option<Threads>,
    /// Whether tables that were written to are dropped and filled again before the next run, on
    /// servers whose data cannot be brought back otherwise.
    pub refill: bool,
    /// Whether what the fill of a private server left dirty is flushed before the first step;
    /// yes if not given.
    pub flush: Option<bool>,
}

#[derive(Debug, Clone)]
pub struct Run {
    pub name: Option<String>,
    pub servers: Option<Names>,
    pub repeat: Option<Repeats>,
    pub what: Measured,
}

/// The kinds of measurements of a run; each has keys of its own.
#[derive(Debug, Clone)]
pub enum Measured {
    /// A workload (or several) at some numbers of clients.
    Sweep(Box<Knobs>),
    Load(LoadSpec),
    Suite(SuiteSpec),
}

/// The keys of a run that lasts as long as it takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Timed {
    #[serde(default, deserialize_with = "named")]
    name: Option<String>,
    servers: Option<Names>,
    repeat: Option<Repeats>,
    load: Option<LoadSpec>,
    suite: Option<SuiteSpec>,
}

/// A condition that must hold before a run, else it is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// Global variables and their value, or several; `absent` is a variable that is not there.
    pub variables: BTreeMap<String, Values>,
    pub database: Option<Class>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// When it starts, from the start of the window.
    pub at: Phase,
    /// Program and arguments; `{pid}` is the server's process, `{label}`, `{workload}` and
    /// `{clients}` are those of the step.
    #[serde(deserialize_with = "command")]
    pub run: Vec<String>,
    #[serde(skip_serializing)]
    pub workload: Option<Names>,
    pub clients: Option<Clients>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Report {
    /// As `loadgen report --layout` knows them, one after the other.
    pub layout: Option<Names>,
    /// As `loadgen report --metric` knows them: each layout once for each.
    pub metric: Option<Names>,
    /// The label that the others are related to; `first` is the first one.
    pub baseline: Option<String>,
    /// The label that the layouts `delta` and `overhead` begin at, if not the baseline.
    pub from: Option<String>,
    /// The label that they hold against it.
    #[serde(alias = "new")]
    pub to: Option<String>,
    pub order: Option<Names>,
}

/// The value of a server's option as text; none for an option that stands alone (`true`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct Setting(pub Option<String>);

impl TryFrom<Value> for Setting {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Setting, &'static str> {
        match value {
            Value::Boolean(true) => Ok(Setting(None)),
            Value::Boolean(false) => Ok(Setting(Some("OFF".to_owned()))),
            Value::Array(_) => Err("a text, a number, true or false is wanted"),
            value => as_flag(&value).map(|text| Setting(Some(text))),
        }
    }
}

/// Values of which one must hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Values(pub Vec<Setting>);

impl TryFrom<Value> for Values {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Values, &'static str> {
        let values = items(value).into_iter().map(Setting::try_from);
        let values = values.collect::<Result<Vec<Setting>, _>>()?;
        if values.is_empty() { Err("one of no values never holds") } else { Ok(Values(values)) }
    }
}

impl Profile {
    /// Reads and checks a profile; `origin` names the file in errors.
    ///
    /// # Errors
    ///
    /// Usage, with line and column.
    pub fn parse(text: &str, origin: &str) -> Result<Profile, Error> {
        let file = File { origin: origin.to_owned(), text: Secret::new(text) };
        let doc = DeTable::parse(text).map_err(|e| file.wrong(&e))?;
        let runs = doc.get_ref().get("run").cloned();
        let table = Spanned::new(doc.span(), DeValue::Table(doc.into_inner()));
        let profile: Profile = read(table).map_err(|e| file.wrong(&e))?;
        let mut profile = Profile { file, ..profile };
        let runs = match runs.as_ref().map(Spanned::get_ref) {
            Some(DeValue::Array(runs)) => &runs[..],
            _ => &[],
        };
        profile.check_missing(!runs.is_empty())?;
        let runs = runs.iter().enumerate().map(|(n, run)| profile.read_run(n, run));
        profile.runs = runs.collect::<Result<Vec<Run>, Error>>()?;
        Ok(profile)
    }

    /// Names all that is missing, at once.
    fn check_missing(&self, runs: bool) -> Result<(), Error> {
        let needed = [
            ("name", !self.name.is_empty()),
            ("[[server]]", !self.servers.is_empty()),
            ("[[run]]", runs),
        ];
        let missing = needed.iter().filter(|(_, there)| !there).map(|(key, _)| (*key).to_owned());
        let of_workloads = self.workloads.iter().enumerate().flat_map(|(n, workload)| {
            let missing = workload.missing().into_iter();
            missing.map(move |what| format!("{what} of [[workload]] {}", n + 1))
        });
        let missing: Vec<String> = missing.chain(of_workloads).collect();
        self.ensure(missing.is_empty(), "name", format_args!("missing: {}", missing.join(", ")))
    }

    fn read_run(&self, n: usize, run: &Spanned<DeValue<'_>>) -> Result<Run, Error> {
        let here = |what: &str| self.refuse(&format!("run/{n}"), what);
        let DeValue::Table(table) = run.get_ref() else {
            return Err(here("a run is a table: [[run]]"));
        };
        let kinds = ["workload", "load", "suite"].map(|kind| table.contains_key(kind));
        if kinds.iter().filter(|there| **there).count() != 1 {
            return Err(here("a run has one of workload, load and suite"));
        }
        if kinds[0] {
            let mut knobs: Knobs = read(run.clone()).map_err(|e| self.file.wrong(&e))?;
            knobs.warm = if knobs.scan { Some(Warm::Pool) } else { knobs.warm };
            let (name, servers, repeat) = (knobs.name.take(), knobs.servers.take(), knobs.repeat);
            return Ok(Run { name, servers, repeat, what: Measured::Sweep(Box::new(knobs)) });
        }
        let Timed { name, servers, repeat, load, suite } =
            read(run.clone()).map_err(|e| self.file.wrong(&e))?;
        let what = load.map(Measured::Load).or(suite.map(Measured::Suite)).expect("it has one");
        Ok(Run { name, servers, repeat, what })
    }

    /// Finds the workload of a name, of this file or built in.
    pub(crate) fn workload(&self, name: &str) -> Option<Workload> {
        let own = self.workloads.iter().find(|workload| workload.name == name).cloned();
        let named = |w: &Workload| w.name == name || w.aliases.iter().any(|alias| alias == name);
        own.or_else(|| builtin().into_iter().find(named))
    }

    /// Refuses the value of a path, unless something holds.
    pub(super) fn ensure(
        &self,
        holds: bool,
        path: impl fmt::Display,
        what: impl fmt::Display,
    ) -> Result<(), Error> {
        if holds { Ok(()) } else { Err(self.refuse(&path.to_string(), what.to_string())) }
    }

    /// Makes the error of a value; `path` leads to it, such as `run/0/spread`.
    pub(crate) fn refuse(&self, path: &str, what: impl AsRef<str>) -> Error {
        self.file.error(self.file.place(path), what.as_ref())
    }
}

impl Server {
    /// Gives its label as the file has it; empty without one.
    pub(crate) fn name(&self) -> &str {
        self.label.as_deref().unwrap_or_default()
    }

    /// Names the key by which a server that is there is found; none without one.
    pub(crate) fn address(&self) -> Option<&'static str> {
        let keys = [
            ("url", self.url.is_some()),
            ("defaults_file", self.defaults_file.is_some()),
            ("host", self.host.is_some()),
            ("port", self.port.is_some()),
            ("socket", self.socket.is_some()),
            ("user", self.user.is_some()),
            ("database", self.database.is_some()),
        ];
        keys.into_iter().find(|(_, there)| *there).map(|(key, _)| key)
    }

    pub(crate) fn within(&self) -> Duration {
        self.within.map_or(WITHIN, |within| within.0)
    }

    /// Tells whether its data can be brought back to what it was.
    pub(crate) fn renews(&self) -> bool {
        match &self.sandbox {
            Some(sandbox) => !matches!(sandbox.data(), Data::Keep(_)),
            None => !self.reset.is_empty(),
        }
    }
}

impl Sandbox {
    pub(crate) fn data(&self) -> &Data {
        self.data.as_ref().unwrap_or(&Data::ThrowAway)
    }
}

fn read<'de, T: Deserialize<'de>>(value: Spanned<DeValue<'de>>) -> Result<T, toml::de::Error> {
    T::deserialize(ValueDeserializer::from(value))
}

#[derive(Debug, Clone, Default)]
struct File {
    origin: String,
    /// It may hold passwords.
    text: Secret,
}

impl File {
    /// Makes the error at a byte of the text: `FILE:LINE:COLUMN: what`, then the line. What may hold
    /// a password is not shown.
    fn error(&self, at: usize, what: &str) -> Error {
        const SHOWN_MAX: usize = 100;
        let text = self.text.expose();
        let before = text.get(..at).unwrap_or(text);
        let from = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (line, column) = (before.matches('\n').count() + 1, before[from..].chars().count() + 1);
        let shown = text[from..].lines().next().filter(|shown| !may_hold_password(shown));
        let excerpt = shown.map_or_else(String::new, |shown| {
            let shown: String = shown.chars().take(SHOWN_MAX).collect();
            format!("\n  {line} | {}", shown.trim_end())
        });
        // Messages that quote a value do so in this form; a URL in one is never of use.
        let quoted = what.contains("string \"") && may_hold_password(what);
        let hide = what.contains("://") || quoted;
        let what = if hide { "a text that may hold a password does not belong here" } else { what };
        Error::usage(format!("{}:{line}:{column}: {what}{excerpt}", self.origin))
            .hint("docs/profiles.md lists every key")
    }

    /// Makes the error of what is no TOML, or has another form.
    fn wrong(&self, error: &toml::de::Error) -> Error {
        let end = self.text.expose().len();
        self.error(error.span().map_or(end, |span| span.start), error.message())
    }

    /// Finds the value of a path, such as `run/0/spread`: where it begins, or what would hold it.
    fn place(&self, path: &str) -> usize {
        let doc = DeTable::parse(self.text.expose()).expect("what was read is TOML");
        let mut found = doc.span().start;
        let doc = DeValue::Table(doc.into_inner());
        let mut value = &doc;
        for key in path.split('/') {
            let next = match value {
                DeValue::Table(table) => table.get(key),
                DeValue::Array(list) => key.parse().ok().and_then(|n: usize| list.get(n)),
                _ => None,
            };
            let Some(next) = next else { break };
            found = next.span().start;
            value = next.get_ref();
        }
        found
    }
}

/// Tells a line with a URL, or with words for a command, which may hold a password.
fn may_hold_password(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["://", "pass", "pwd", "-p"].iter().any(|sign| line.contains(sign))
}
