//! A profile: an experiment as a file. The types are the form of the TOML; what is wrong in a
//! file is told with its line and column. `docs/profiles.md` describes every key.

mod check;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::knobs::Knobs;
use super::timed::{LoadSpec, SuiteSpec};
use super::value::{
    AnyValue, CharsetName, Clients, Length, OptionValue, Phase, Repeats, RowCount, Size,
    TableCount, Threads, command, named,
};
use crate::error::Error;
use crate::mysql::options::Secret;
use crate::terms::{Class, Gate};
use crate::workload::{Workload, builtin};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name, in summaries; a label where there is one server without.
    #[serde(deserialize_with = "named")]
    pub name: String,
    #[serde(default)]
    pub about: String,
    #[serde(default)]
    pub order: Turns,
    /// Whether a server that is measured again in its next repeat is taken anew for it.
    #[serde(default = "yes")]
    pub restart: bool,
    /// What must hold at the end, in every run of a workload.
    #[serde(default)]
    pub gates: Vec<Gate>,
    #[serde(default, rename = "server")]
    pub servers: Vec<Server>,
    #[serde(default)]
    pub tables: Tables,
    #[serde(default, rename = "workload")]
    pub workloads: Vec<Workload>,
    #[serde(skip)]
    pub runs: Vec<Run>,
    /// The runs as they are written: each kind is read by itself.
    #[serde(default, rename = "run")]
    _runs: IgnoredAny,
    #[serde(default)]
    pub expect: Expect,
    #[serde(default, rename = "command")]
    pub commands: Vec<Command>,
    #[serde(default)]
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
    #[serde(deserialize_with = "secret")]
    pub url: Option<Secret>,
    pub defaults_file: Option<PathBuf>,
    pub sandbox: Option<Sandbox>,
    #[serde(deserialize_with = "command")]
    pub start: Option<Vec<String>>,
    #[serde(deserialize_with = "command")]
    pub stop: Option<Vec<String>>,
    /// Brings its data back to what it was, while it is stopped.
    #[serde(deserialize_with = "command")]
    pub reset: Option<Vec<String>>,
    pub within: Option<Length<1>>,
    /// Reads the files of the server's host: program and arguments before `grep`.
    #[serde(deserialize_with = "command")]
    pub probe: Option<Vec<String>>,
    pub expect: Expect,
}

fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
    Ok(Some(Secret::new(String::deserialize(from)?)))
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
}

#[derive(Debug, Clone)]
pub struct Run {
    pub name: Option<String>,
    pub servers: Option<Names>,
    pub what: Measured,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default, deserialize_with = "named")]
    name: Option<String>,
    servers: Option<Names>,
}

/// What a run measures; each kind has keys of its own.
#[derive(Debug, Clone)]
pub enum Measured {
    Sweep(Box<Sweep>),
    Load(Load),
    Suite(Suite),
}

/// A workload (or several) at some numbers of clients.
#[derive(Debug, Clone, Deserialize)]
pub struct Sweep {
    pub workload: Names,
    #[serde(default)]
    pub options: BTreeMap<String, OptionValue>,
    /// `warm = "pool"` in its older form.
    #[serde(default)]
    pub scan: bool,
    #[serde(skip)]
    pub knobs: Knobs,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    pub load: LoadSpec,
    pub repeat: Option<Repeats>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    pub suite: SuiteSpec,
    pub repeat: Option<Repeats>,
}

/// What must hold before a run, else it is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// Global variables and their value, or several; `absent` is a variable that is not there.
    pub variables: BTreeMap<String, Values>,
    pub database: Option<Class>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// When it starts, from the start of the window.
    pub at: Phase,
    /// Program and arguments; `{pid}` is the server's process, `{label}`, `{workload}` and
    /// `{clients}` are those of the step.
    #[serde(deserialize_with = "command")]
    pub run: Vec<String>,
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
    /// The label without something, for the layouts `delta` and `overhead`.
    pub from: Option<String>,
    pub to: Option<String>,
    pub order: Option<Names>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "AnyValue")]
pub struct Names(pub Vec<String>);

impl TryFrom<AnyValue> for Names {
    type Error = &'static str;

    fn try_from(value: AnyValue) -> Result<Names, &'static str> {
        let text = |name| match name {
            AnyValue::Text(text) => Ok(text),
            _ => Err("a name or a list of names is wanted"),
        };
        value.items().map(text).collect::<Result<_, _>>().map(Names)
    }
}

impl Names {
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// The value of a server's option as text; none for an option that stands alone (`true`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "AnyValue")]
pub struct Setting(pub Option<String>);

impl TryFrom<AnyValue> for Setting {
    type Error = &'static str;

    fn try_from(value: AnyValue) -> Result<Setting, &'static str> {
        Ok(Setting(match value {
            AnyValue::Switch(true) => None,
            AnyValue::Switch(false) => Some("OFF".to_owned()),
            AnyValue::List(_) => return Err("a text, a number, true or false is wanted"),
            value => Some(value.to_string()),
        }))
    }
}

/// Values of which one must hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "AnyValue")]
pub struct Values(pub Vec<Setting>);

impl TryFrom<AnyValue> for Values {
    type Error = &'static str;

    fn try_from(value: AnyValue) -> Result<Values, &'static str> {
        let values: Vec<Setting> =
            value.items().map(Setting::try_from).collect::<Result<_, _>>()?;
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
        let file = File { origin: origin.to_owned(), text: text.to_owned() };
        let doc = DeTable::parse(text).map_err(|e| file.wrong(&e, ""))?;
        let runs = doc.get_ref().get("run").cloned();
        let table = Spanned::new(doc.span(), DeValue::Table(doc.into_inner()));
        let profile: Profile = read(table).map_err(|e| file.wrong(&e, ""))?;
        let mut profile = Profile { file, ..profile };
        if let Some(DeValue::Array(runs)) = runs.map(Spanned::into_inner) {
            let runs = runs.iter().enumerate().map(|(n, run)| profile.read_run(n, run));
            profile.runs = runs.collect::<Result<Vec<Run>, Error>>()?;
        }
        check::check(&profile)?;
        Ok(profile)
    }

    fn read_run(&self, n: usize, run: &Spanned<DeValue<'_>>) -> Result<Run, Error> {
        let here = |what: &str| self.refuse(&format!("run/{n}"), what);
        let DeValue::Table(table) = run.get_ref() else {
            return Err(here("a run is a table: [[run]]"));
        };
        let wrong = |e: toml::de::Error| self.file.wrong(&e, "");
        let timed = |e| self.file.wrong(&e, ", `name`, `servers`: it lasts as long as it takes");
        let part = |table| Spanned::new(run.span(), DeValue::Table(table));
        let (head, rest) = split(table.clone(), &["name", "servers"]);
        let Head { name, servers } = read(part(head)).map_err(wrong)?;
        let what = match ["workload", "load", "suite"].map(|kind| rest.contains_key(kind)) {
            [true, false, false] => {
                let (own, knobs) = split(rest, &["workload", "options", "scan"]);
                let keys = ", `name`, `servers`, `workload`, `options`, `scan`";
                let knobs: Knobs = read(part(knobs)).map_err(|e| self.file.wrong(&e, keys))?;
                let sweep: Sweep = read(part(own)).map_err(wrong)?;
                Measured::Sweep(Box::new(Sweep { knobs, ..sweep }))
            }
            [false, true, false] => Measured::Load(read(part(rest)).map_err(timed)?),
            [false, false, true] => Measured::Suite(read(part(rest)).map_err(timed)?),
            _ => return Err(here("a run has one of workload, load and suite")),
        };
        Ok(Run { name, servers, what })
    }

    /// Finds the workload of a name, of this file or built in.
    pub(crate) fn workload(&self, name: &str) -> Option<Workload> {
        let own = self.workloads.iter().find(|workload| workload.name == name).cloned();
        let named = |w: &Workload| w.name == name || w.aliases.iter().any(|alias| alias == name);
        own.or_else(|| builtin().into_iter().find(named))
    }

    /// Lists the titles of a run's tables: one for each of its workloads.
    pub(crate) fn titles(&self, run: &Run) -> Vec<String> {
        if let Some(name) = &run.name {
            return vec![name.clone()];
        }
        match &run.what {
            Measured::Sweep(sweep) => {
                let title = |name: &String| self.workload(name).map_or(name.clone(), |w| w.name);
                sweep.workload.0.iter().map(title).collect()
            }
            Measured::Load(load) => vec![load.load.name()],
            Measured::Suite(suite) => vec![format!("suite-{}", suite.suite.name)],
        }
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
}

/// Takes these keys out of a table.
fn split<'de>(table: DeTable<'de>, keys: &[&str]) -> (DeTable<'de>, DeTable<'de>) {
    table.into_iter().partition(|(key, _)| keys.contains(&key.get_ref().as_ref()))
}

fn read<'de, T: Deserialize<'de>>(value: Spanned<DeValue<'de>>) -> Result<T, toml::de::Error> {
    T::deserialize(ValueDeserializer::from(value))
}

#[derive(Clone, Default)]
struct File {
    origin: String,
    text: String,
}

/// The text may hold passwords.
impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

impl File {
    /// Makes the error at a byte of the text: `FILE:LINE:COLUMN: what`, then the line. What may hold
    /// a password is not shown.
    fn error(&self, at: usize, what: &str) -> Error {
        const SHOWN_MAX: usize = 100;
        let before = self.text.get(..at).unwrap_or(&self.text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (line, column) =
            (before.matches('\n').count() + 1, before[start..].chars().count() + 1);
        let shown = self.text[start..].lines().next().unwrap_or_default();
        let excerpt = if may_hold_password(shown) {
            String::new()
        } else {
            let shown: String = shown.chars().take(SHOWN_MAX).collect();
            format!("\n  {line} | {}", shown.trim_end())
        };
        // Messages that quote a value do so in this form; a URL in one is never of use.
        let quoted = what.contains("string \"") && may_hold_password(what);
        let what = if what.contains("://") || quoted {
            "a text that may hold a password does not belong here"
        } else {
            what
        };
        Error::usage(format!("{}:{line}:{column}: {what}{excerpt}", self.origin))
            .hint("docs/profiles.md lists every key")
    }

    /// Makes the error of what is no TOML, or has another form; `also` names keys that it does not
    /// know.
    fn wrong(&self, error: &toml::de::Error, also: &str) -> Error {
        let at = error.span().map_or(self.text.len(), |span| span.start);
        let what = error.message();
        let also = if what.starts_with("unknown field") { also } else { "" };
        self.error(at, &format!("{what}{also}"))
    }

    /// Finds the value of a path, such as `run/0/spread`: where it begins, or what would hold it.
    fn place(&self, path: &str) -> usize {
        let doc = DeTable::parse(&self.text).expect("what was read is TOML");
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
