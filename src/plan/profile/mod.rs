//! A profile: an experiment as a file. These types are the form of the TOML; errors have line and column.
//! docs/reference/profile-keys.md is made from their comments.

pub(crate) mod script;
pub(crate) mod shipped;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

use self::script::{SCRIPT_KEYS, ScriptKeys, ScriptRun, Verify};
use super::knobs::{Knobs, LoadSpec, SuiteSpec};
use super::value::{
    CharsetName, Clients, Length, Names, Phase, Repeats, RowCount, Size, TableCount, Threads,
    as_flag, command, items, named,
};
use crate::error::Error;
use crate::mysql::options::{ConnectionArgs, Secret};
use crate::terms::{Choice as _, Class, Gate, Layout, Warm};
use crate::workload::{Workload, builtin};

/// Default time for a command that starts or stops a server.
const WITHIN: Duration = Duration::from_mins(10);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Required: its name, in summaries; a label where there is one server without
    #[serde(deserialize_with = "named")]
    pub name: String,
    /// Its purpose, in words: `--list` shows it
    pub about: String,
    /// The order of servers and repeats, below; `"interleaved"` by default
    pub order: RepeatOrder,
    /// `false`: a server that is measured again in its next repeat is left running; `true` by default
    #[serde(default = "yes")]
    pub restart: bool,
    /// Conditions at the end of every run of a workload: `["p99<5ms", "errors==0"]`
    pub gates: Vec<Gate>,
    /// Required: `[[server]]`, at least one
    #[serde(rename = "server")]
    pub servers: Vec<Server>,
    /// `[tables]`
    pub tables: Tables,
    /// `[[workload]]`: workloads of your own
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    #[serde(skip)]
    pub runs: Vec<ProfileRun>,
    /// Required: `[[run]]`, at least one: a workload, a script, a load or a suite, each with keys of its own
    #[serde(rename = "run")]
    _runs: IgnoredAny,
    /// `[expect]`: what must hold before the first step of a run
    pub expect: Expect,
    /// `[[command]]`: something that runs beside the windows, such as a profiler
    #[serde(rename = "command")]
    pub commands: Vec<Command>,
    /// `[[verify]]`: questions about the data, kept in the summaries for `loadgen verify`
    pub verify: Vec<Verify>,
    /// `[report]`: the tables that are printed at the end
    pub report: Report,
    #[serde(skip)]
    file: File,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatOrder {
    /// A server with all of its repeats, then the next one: fewest starts
    InTurn,
    /// (default) Every repeat has all servers, there and back: A B, B A, A B. What drifts meets all alike
    #[default]
    Interleaved,
    /// Every repeat has all servers, in an order of its own that follows from the seed
    Shuffled,
}

/// One label: a server and how it is set up.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The row of the table; may be left out if there is one server
    #[serde(deserialize_with = "named")]
    pub label: Option<String>,
    /// The label of a server above: this one is the same but for what is said here. Options are merged one by one;
    /// a sandbox does not take over the `probe` of a base that is no sandbox
    pub base: Option<String>,
    /// Kept in the summaries as the note `note`
    pub note: Option<String>,
    /// A server that is there: `mysql://user@host:3306/sbtest`; a password is better in an option file or MYSQL_PWD
    pub url: Option<Secret>,
    /// Or as the flag of the same name says it; the password is in a file or in MYSQL_PWD
    pub host: Option<String>,
    /// As the flag of the same name
    pub port: Option<NonZeroU16>,
    /// As the flag of the same name
    pub socket: Option<PathBuf>,
    /// As the flag of the same name
    pub user: Option<String>,
    /// As the flag of the same name
    pub database: Option<String>,
    /// An option file of the MySQL clients, instead of a `url`
    pub defaults_file: Option<PathBuf>,
    /// `[server.sandbox]`: a private server that loadgen starts, instead
    pub sandbox: Option<Sandbox>,
    /// Starts a server that is there: program and arguments, no shell
    #[serde(deserialize_with = "command")]
    pub start: Vec<String>,
    /// Stops it: `["ssh", "db1", "systemctl", "stop", "mysql"]`
    #[serde(deserialize_with = "command")]
    pub stop: Vec<String>,
    /// Brings its data back to what it was, while it is stopped
    #[serde(deserialize_with = "command")]
    pub reset: Vec<String>,
    /// Time limit of each of these commands, and of the start; `"10m"` by default
    pub within: Option<Length<1>>,
    /// Reads /proc of the server's host: program and arguments before `grep`, such as `["ssh", "db1"]`
    #[serde(deserialize_with = "command")]
    pub probe: Vec<String>,
    /// As `[expect]`, for this server
    pub expect: Expect,
    #[serde(skip)]
    pub given: Option<Given>,
}

/// A server by flags, in place of a profile's.
#[derive(Debug, Clone, Default)]
pub struct Given {
    pub connection: ConnectionArgs,
    pub address: String,
    /// The address in its results, for a server that replaces the profile's; None if the profile names it.
    pub known_as: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// A mysqld or mariadbd; without it those of `--program`, else mariadbd or mysqld from PATH
    pub program: Option<PathBuf>,
    /// Server options: `true` is an option without value, `false` is OFF; `loose_` ones are ignored where unknown
    pub options: BTreeMap<String, Setting>,
    /// Sizes that `--scale` makes smaller, such as `innodb_buffer_pool_size = "4G"`, and `innodb_lru_scan_depth`.
    pub scaled_options: BTreeMap<String, Size>,
    /// Its data directory, below
    pub data: Option<Data>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Data {
    /// (default) Made and filled anew for every start, in TMPDIR
    ThrowAway,
    /// Filled once, and again after another label's copy; every start has a copy; all of it goes away
    Copied,
    /// `{ keep = "DIR" }`: in DIR, which stays and is used again: for large data that is only read
    Keep(PathBuf),
    /// `{ copy_of = "DIR" }`: filled in DIR, which stays and is never measured in: every start has a copy
    CopyOf(PathBuf),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tables {
    /// Number of tables [default: 1]
    pub count: Option<TableCount>,
    /// Rows of each table [default: 10k]
    pub rows: Option<RowCount>,
    /// As `--data-seed` of `prepare`
    pub data_seed: Option<u32>,
    /// As `--charset` of `prepare`
    pub charset: Option<CharsetName>,
    /// As `--jobs` of `prepare`
    pub jobs: Option<Threads>,
    /// `true`: tables that were written to, or have other rows, are dropped and filled again before the next run (only
    /// those that loadgen made); a `load` may drop what was prepared
    pub refill: bool,
    /// `true`: a private server flushes the pages of its fill before the first step;
    /// `true` by default
    pub flush: Option<bool>,
}

#[derive(Debug, Clone)]
pub struct ProfileRun {
    pub name: Option<String>,
    pub servers: Option<Names>,
    pub repeat: Option<Repeats>,
    pub what: Measured,
}

/// The kinds of runs; each has its own keys.
#[derive(Debug, Clone)]
pub enum Measured {
    /// A workload (or several) at some numbers of clients.
    Sweep(Box<Knobs>),
    Script(Box<ScriptRun>),
    Load(LoadSpec),
    Suite(SuiteSpec),
}

/// The keys of a run without a planned end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Timed {
    /// The title of its table
    #[serde(default, deserialize_with = "named")]
    name: Option<String>,
    /// Labels that it is for [default: all]
    servers: Option<Names>,
    /// So many times
    repeat: Option<Repeats>,
    /// `{ rows = "16M", mode = "extended", charset = "latin1" }`
    load: Option<LoadSpec>,
    /// `{ name = "sql-bench", tests = [{ name = "create", run = ["perl", "test-create"] }] }`
    suite: Option<SuiteSpec>,
}

/// A condition that must hold before a run, else it is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// `{ performance_schema = ["OFF", "absent"], innodb_buffer_pool_size = "4G" }`: a value, or several of which
    /// one must hold; `absent` is a variable that the version does not have
    pub variables: BTreeMap<String, Values>,
    /// `"io-bound"` (or `"larger-than-buffer-pool"`), or `"cached"` (or `"inside-buffer-pool"`)
    pub database: Option<Class>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Its start, from the start of the window: `"10s"`
    pub at: Phase,
    /// Program and arguments; `{pid}` is the server's process, `{label}`, `{workload}` and
    /// `{clients}` are those of the step.
    #[serde(deserialize_with = "command")]
    pub run: Vec<String>,
    /// Beside these workloads only
    #[serde(skip_serializing)]
    pub workload: Option<Names>,
    /// Beside these numbers of clients only
    pub clients: Option<Clients>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Report {
    /// One or several, as `loadgen report --layout` takes them
    pub layout: Option<Names>,
    /// One or several, as `loadgen report --metric` takes them: every layout once for each
    pub metric: Option<Names>,
    /// A label, `first` or `last`: what the others are related to
    pub baseline: Option<String>,
    /// The label that the layouts `delta` and `overhead` begin at, if not `baseline`
    pub from: Option<String>,
    /// The label that they hold against it; `new` is another name of the key
    #[serde(alias = "new")]
    pub to: Option<String>,
    /// Labels in the order of their lines
    pub order: Option<Names>,
}

/// The value of a server's option as text; None for one without a value (`true`).
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
        if values.is_empty() {
            Err("the list of accepted values is empty")
        } else {
            Ok(Values(values))
        }
    }
}

impl Profile {
    /// Reads and checks a profile; `origin` names the file in errors, which have line and column.
    pub fn parse(text: &str, origin: &str) -> Result<Profile, Error> {
        let file = File { origin: origin.to_owned(), text: Secret::new(text) };
        let doc = DeTable::parse(text).map_err(|e| file.wrong(&e))?;
        check_brackets(doc.get_ref(), &file)?;
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
        profile.runs = runs.collect::<Result<Vec<ProfileRun>, Error>>()?;
        Ok(profile)
    }

    /// Refuses missing keys, all at once.
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

    fn read_run(&self, n: usize, run: &Spanned<DeValue<'_>>) -> Result<ProfileRun, Error> {
        let here = |what: &str| self.refuse(&format!("run/{n}"), what);
        let DeValue::Table(table) = run.get_ref() else {
            return Err(here("a run is a table: [[run]]"));
        };
        let kinds = ["workload", "lua", "load", "suite"].map(|kind| table.contains_key(kind));
        if kinds.iter().filter(|there| **there).count() != 1 {
            return Err(here("a run has one of workload, lua, load and suite"));
        }
        if kinds[0] || kinds[1] {
            let mut run = run.clone();
            let keys = kinds[1].then(|| read::<ScriptKeys>(take_keys(&mut run, &SCRIPT_KEYS)));
            let keys = keys.transpose().map_err(|e| self.file.wrong(&e))?;
            let mut knobs: Knobs = read(run).map_err(|e| self.file.wrong(&e))?;
            knobs.warm = if knobs.scan { Some(Warm::Pool) } else { knobs.warm };
            let (name, servers, repeat) = (knobs.name.take(), knobs.servers.take(), knobs.repeat);
            let what = match keys {
                Some(keys) => Measured::Script(Box::new(ScriptRun { keys, file: None, knobs })),
                None => Measured::Sweep(Box::new(knobs)),
            };
            return Ok(ProfileRun { name, servers, repeat, what });
        }
        let Timed { name, servers, repeat, load, suite } =
            read(run.clone()).map_err(|e| self.file.wrong(&e))?;
        let what = load.map(Measured::Load).or(suite.map(Measured::Suite)).expect("it has one");
        Ok(ProfileRun { name, servers, repeat, what })
    }

    /// Replaces all servers by the given one, under this label or the profile's name, and removes what names
    /// other labels. Returns the names of the options that nobody sets now.
    pub(crate) fn stand_in(&mut self, label: Option<String>, given: Given) -> BTreeSet<String> {
        let own = self.servers.iter().filter_map(|server| server.sandbox.as_ref());
        let options = own.flat_map(|own| own.options.keys().chain(own.scaled_options.keys()));
        let options = options.cloned().collect();
        self.servers = vec![Server { label, given: Some(given), ..Server::default() }];
        self.runs.iter_mut().for_each(|run| run.servers = None);
        let layout = self.report.layout.take().map(|Names(mut layouts)| {
            layouts.retain(|name| Layout::of(name).is_none_or(|layout| !layout.compares()));
            Names(layouts)
        });
        let layout = layout.filter(|layout| !layout.0.is_empty());
        self.report = Report { layout, metric: self.report.metric.take(), ..Report::default() };
        options
    }

    pub(crate) fn workload(&self, name: &str) -> Option<Workload> {
        let own = self.workloads.iter().find(|workload| workload.name == name).cloned();
        let named = |w: &Workload| w.name == name || w.aliases.iter().any(|alias| alias == name);
        own.or_else(|| builtin().into_iter().find(named))
    }

    /// Refuses the value of a path unless `holds`.
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
        self.file.error(self.file.find_value(path), what.as_ref())
    }
}

impl Server {
    /// Returns the label in the file; empty if there is none.
    pub(crate) fn name(&self) -> &str {
        self.label.as_deref().unwrap_or_default()
    }

    /// Returns the key that locates a running server, if one does.
    pub(crate) fn address(&self) -> Option<&'static str> {
        let keys = [
            ("url", self.url.is_some()),
            ("defaults_file", self.defaults_file.is_some()),
            ("host", self.host.is_some()),
            ("port", self.port.is_some()),
            ("socket", self.socket.is_some()),
            ("user", self.user.is_some()),
            ("database", self.database.is_some()),
            ("label", self.given.is_some()),
        ];
        keys.into_iter().find(|(_, there)| *there).map(|(key, _)| key)
    }

    pub(crate) fn within(&self) -> Duration {
        self.within.map_or(WITHIN, |within| within.0)
    }

    pub(crate) fn can_restore(&self) -> bool {
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

/// Refuses `[server]` and `[[tables]]`: serde's errors do not name the brackets.
fn check_brackets(doc: &DeTable<'_>, file: &File) -> Result<(), Error> {
    for key in ["server", "workload", "run", "command", "verify"] {
        let value = doc.get(key).filter(|value| matches!(value.get_ref(), DeValue::Table(_)));
        if let Some(value) = value {
            let what = format!("there may be several: [[{key}]], not [{key}]");
            return Err(file.error(value.span().start, &what));
        }
    }
    for key in ["tables", "expect", "report"] {
        let value = doc.get(key).filter(|value| matches!(value.get_ref(), DeValue::Array(_)));
        if let Some(value) = value {
            let what = format!("there is one: [{key}], not [[{key}]]");
            return Err(file.error(value.span().start, &what));
        }
    }
    Ok(())
}

/// Replaces serde's words for what is expected by those of the file's form.
fn reword(message: &str) -> String {
    const VALUE: &str = "it takes a value: { NAME = … }";
    const ENDS: [(&str, &str); 12] = [
        ("invalid type: unit variant, expected newtype variant", VALUE),
        ("invalid type: unit variant, expected struct variant", VALUE),
        ("wanted exactly 1 element, more than 1 element", "one key is wanted, and there are more"),
        ("wanted string or table", "a text or a table is wanted"),
        ("expected a sequence", "expected a list: [ … ]"),
        ("expected a map", "expected a table: { … }"),
        ("expected a nonzero u16", "expected a whole number from 1 to 65535"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected usize", "expected a whole number"),
        ("expected u64", "expected a whole number from 0"),
        ("expected i64", "expected a whole number"),
        ("wanted exactly 1 element, found 0 elements", "one key is wanted, and there is none"),
    ];
    let ends = ENDS.iter().find_map(|(end, words)| Some((message.strip_suffix(*end)?, *words)));
    let of_struct = || {
        let (before, _) = message.split_once("expected struct ")?;
        Some((before, "expected a table: { … }"))
    };
    let (before, words) = ends.or_else(of_struct).unwrap_or((message, ""));
    format!("{before}{words}").replacen("unknown variant `", "unknown value `", 1)
}

/// Moves keys of a table into one of their own.
fn take_keys<'a>(run: &mut Spanned<DeValue<'a>>, keys: &[&str]) -> Spanned<DeValue<'a>> {
    let mut taken = DeTable::new();
    if let DeValue::Table(table) = run.get_mut() {
        let found = keys.iter().filter_map(|key| table.remove_entry(*key));
        taken.extend(found);
    }
    Spanned::new(run.span(), DeValue::Table(taken))
}

#[derive(Debug, Clone, Default)]
struct File {
    origin: String,
    text: Secret,
}

impl File {
    /// Makes the error at a byte of the text: `FILE:LINE:COLUMN: what`, then the line. Hides possible passwords.
    fn error(&self, at: usize, what: &str) -> Error {
        const SHOWN_MAX: usize = 100;
        let text = self.text.expose();
        let before = text.get(..at).unwrap_or(text);
        let from = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (line, column) = (before.matches('\n').count() + 1, before[from..].chars().count() + 1);
        let source = text[from..].lines().next().filter(|text| !may_hold_password(text));
        let excerpt = source.map_or_else(String::new, |text| {
            let text: String = text.chars().take(SHOWN_MAX).collect();
            format!("\n  {line} | {}", text.trim_end())
        });
        // Messages that quote a value have this form; a quoted URL never helps.
        let quoted = what.contains("string \"") && may_hold_password(what);
        let hide = what.contains("://") || quoted;
        let what = if hide { "a text that may hold a password does not belong here" } else { what };
        Error::usage(format!("{}:{line}:{column}: {what}{excerpt}", self.origin))
            .hint("docs/reference/profile-keys.md lists every key")
    }

    fn wrong(&self, error: &toml::de::Error) -> Error {
        let end = self.text.expose().len();
        self.error(error.span().map_or(end, |span| span.start), &reword(error.message()))
    }

    /// Finds the position of a value by its path, such as `run/0/spread`, or of its parent.
    fn find_value(&self, path: &str) -> usize {
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

/// Returns whether a line may hold a password: it has a URL, or words for a command.
fn may_hold_password(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["://", "pass", "pwd", "-p"].iter().any(|sign| line.contains(sign))
}
