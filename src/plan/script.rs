//! A script of sysbench's that is run instead of a workload: its path, its options, and its identity.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use toml::Value;

use super::value::{RowCount, Scale, as_flag, serialize_display};
use super::{AfterError, Distribution, StatementMode, limits};
use crate::workload::Workload;

/// The reason that verify cannot judge by the ledger of a script.
pub(crate) const UNFOLLOWED: &str = "nobody knows the statements of a script";

/// Options and words may hold a password of the script's own: they are in no output.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// The path as given, or the name of a module.
    pub path: String,
    /// The script itself, where it is in no file.
    pub text: Option<String>,
    pub command: Option<String>,
    pub argv: Vec<String>,
    /// `sysbench.opt`, by names with underscores.
    pub options: Vec<(String, ScriptValue)>,
    /// The templates in which `require` looks, and those after the built-in modules.
    pub package_path: String,
    pub stock_path: String,
    /// The server in messages.
    pub server: String,
    /// The words of the driver that cannot connect to any server.
    pub fault: Option<String>,
    pub random: ScriptRandom,
    pub text_statements: bool,
    /// It runs under loadgen's own flags: standard output is for data, so it prints to standard error.
    pub is_native: bool,
    /// Paths and texts of the files that were loaded before the first event.
    pub files: Vec<(String, Vec<u8>)>,
    /// Its clients are on several hosts, where these files are all that there are.
    pub is_away: bool,
    #[serde(skip)]
    pub identity: ScriptIdentity,
}

/// A line for the log, from a script's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptLine {
    Fatal(String),
    Alert(String),
    /// The script asks for its driver: its reports are those of a database from now on.
    Driver,
}

/// Takes lines on every thread that runs a script.
pub type ScriptLog = Arc<dyn Fn(ScriptLine) + Send + Sync>;

/// Makes the workload of a script: a name, and no statement that loadgen knows.
pub(crate) fn workload_of(path: &str) -> Workload {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut name: String = name.chars().filter(char::is_ascii_graphic).collect();
    if name.is_empty() {
        "script".clone_into(&mut name);
    }
    Workload { name, ..Workload::default() }
}

impl Script {
    /// Returns it as each of several hosts runs it, with the same files.
    pub(crate) fn away(&self) -> Script {
        Script { text: None, is_away: true, ..self.clone() }
    }

    /// Returns the size of its files.
    pub(super) fn bytes(&self) -> usize {
        self.files.iter().map(|(path, text)| path.len() + text.len()).sum()
    }

    /// Returns the time that the file and `thread_init` may take, as `--thread-init-timeout` of 1.1 has it.
    pub(crate) fn init_limit(&self) -> Duration {
        let given = self.options.iter().find(|(name, _)| name == "thread_init_timeout");
        match given {
            // 0 is no limit.
            Some((_, ScriptValue::Number(s))) => Duration::try_from_secs_f64(*s)
                .ok()
                .filter(|limit| !limit.is_zero())
                .unwrap_or(limits::PHASE_MAX),
            _ => limits::THREAD_INIT,
        }
    }

    /// Returns the words for a script that takes longer.
    pub(crate) fn init_too_long(&self) -> String {
        let limit = self.init_limit().as_secs();
        format!("Worker threads failed to initialize within {limit} seconds!")
    }

    /// Sets a fact of the step, unless the script declares an option of that name: then there are two.
    pub(crate) fn set_of_step(&mut self, name: &str, value: f64) {
        if self.options.iter().filter(|(known, _)| known == name).count() < 2 {
            self.set_option(name, ScriptValue::Number(value));
        }
    }

    pub(crate) fn set_option(&mut self, name: &str, value: ScriptValue) {
        self.options.retain(|(known, _)| known != name);
        self.options.push((name.to_owned(), value));
    }
}

/// The facts by which two scripts are two workloads, though they have one name.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ScriptIdentity {
    /// Names and SHA-256 of the files that were loaded before the first event.
    pub files: Vec<(String, String)>,
    /// Numbers and switches among the options of its own, without passwords.
    pub options: BTreeMap<String, f64>,
    /// 16 bits of the hash of the others, which may be passwords: enough to tell two values apart.
    pub texts: String,
}

impl ScriptIdentity {
    pub fn new(files: Vec<(String, String)>, options: &[(String, ScriptValue)]) -> ScriptIdentity {
        let (mut numbers, mut texts) = (BTreeMap::new(), Vec::new());
        for (name, value) in options {
            let number = match value {
                ScriptValue::Switch(on) => Some(f64::from(u8::from(*on))),
                ScriptValue::Number(number) => {
                    Some(*number).filter(|number| number.is_finite() && !is_password(name))
                }
                ScriptValue::Text(_) | ScriptValue::List(_) => None,
            };
            match number {
                Some(number) => drop(numbers.insert(name.clone(), number)),
                None => texts.push(format!("{name} {value:?}")),
            }
        }
        texts.sort();
        let mut hash = format!("{:x}", Sha256::digest(texts.join("\n")));
        hash.truncate(if texts.is_empty() { 0 } else { 4 });
        ScriptIdentity { files, options: numbers, texts: hash }
    }
}

/// Returns whether an option is named like one of a password.
fn is_password(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['_', '-'], "");
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    ["passw", "passp", "passc", "pwd"].iter().any(|part| name.contains(part))
        || ["pass", "pw"].iter().any(|end| stem.ends_with(end))
}

#[cfg(test)]
impl Script {
    /// Makes one of a text, without options.
    pub(crate) fn of_text(text: &str) -> Script {
        Script {
            path: "-".to_owned(),
            text: Some(text.to_owned()),
            command: None,
            argv: Vec::new(),
            options: Vec::new(),
            package_path: String::new(),
            stock_path: String::new(),
            server: String::new(),
            fault: None,
            random: ScriptRandom::USUAL,
            text_statements: false,
            is_native: false,
            files: Vec::new(),
            is_away: false,
            identity: ScriptIdentity::default(),
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The options of a script by name, as they are spelled. Their texts may be passwords.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "BTreeMap<String, Value>")]
pub struct ScriptOptions(pub Vec<(String, ScriptValue)>);

impl TryFrom<BTreeMap<String, Value>> for ScriptOptions {
    type Error = String;

    fn try_from(table: BTreeMap<String, Value>) -> std::result::Result<ScriptOptions, String> {
        let mut known = BTreeSet::new();
        if let Some(name) = table.keys().find(|name| !known.insert(plain(name))) {
            return Err(format!("{name} is given twice, with - and with _"));
        }
        let read = |(name, value): (String, Value)| {
            let value = match value {
                Value::Boolean(on) => ScriptValue::Switch(on),
                Value::Integer(number) => integer(number.into()),
                Value::Float(number) => ScriptValue::Number(number),
                Value::String(text) => ScriptValue::Text(text),
                Value::Array(items) => {
                    let items = items.iter().map(as_flag).collect::<std::result::Result<_, _>>();
                    ScriptValue::List(items.map_err(|what| format!("{name}: {what}"))?)
                }
                Value::Table(_) | Value::Datetime(_) => {
                    return Err(format!("{name}: a number, a text, a switch or a list is wanted"));
                }
            };
            Ok((name, value))
        };
        table.into_iter().map(read).collect::<std::result::Result<_, _>>().map(ScriptOptions)
    }
}

impl fmt::Debug for ScriptOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl ScriptOptions {
    /// Lists them as the words of a command line.
    #[cfg(feature = "lua")]
    pub(crate) fn words(&self) -> Vec<String> {
        self.0.iter().map(|(name, value)| format!("--{name}={}", value.to_word())).collect()
    }

    /// Adds numbers at their scale; refuses one that is there.
    pub(super) fn add(
        &mut self,
        scaled: &BTreeMap<String, RowCount>,
        scale: Scale,
    ) -> std::result::Result<(), String> {
        for (name, count) in scaled {
            if self.0.iter().any(|(other, _)| plain(other) == plain(name)) {
                return Err(format!("{name} is among options, too: it has one value"));
            }
            self.0.push((name.clone(), integer(scale.count(count.0, 1).into())));
        }
        Ok(())
    }

    pub(super) fn only(&self, names: &[String]) -> Vec<(String, ScriptValue)> {
        let is_named = |known: &str| names.iter().any(|name| plain(name) == plain(known));
        self.0.iter().filter(|(name, _)| is_named(name)).cloned().collect()
    }
}

/// Takes one that a double does not hold as its text.
fn integer(number: i128) -> ScriptValue {
    let exact = number.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS;
    if exact { ScriptValue::Number(number as f64) } else { ScriptValue::Text(number.to_string()) }
}

pub(super) fn plain(name: &str) -> String {
    name.replace('-', "_")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFile {
    /// An absolute path; the name of a script that the program carries.
    pub path: String,
    /// The text of a script that the program carries.
    pub text: Option<&'static str>,
    pub sha256: String,
}

impl fmt::Display for ScriptFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text {
            Some(_) => write!(f, "{} inside the program", self.path),
            None => f.write_str(&self.path),
        }
    }
}

impl ScriptFile {
    /// Makes that of a path, which nobody has looked for.
    pub(super) fn of_path(path: &str) -> ScriptFile {
        ScriptFile { path: path.to_owned(), text: None, sha256: String::new() }
    }

    pub(super) fn identity(&self, options: &[(String, ScriptValue)]) -> ScriptIdentity {
        let file = (self.name().to_owned(), self.sha256.clone());
        ScriptIdentity::new(vec![file], options)
    }

    /// Returns its name, without directories.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// The script of a run or of a group beside, with its options at this scale. Nobody has read it yet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScriptPart {
    #[serde(skip)]
    pub file: ScriptFile,
    #[serde(skip)]
    pub options: ScriptOptions,
    /// Distinguishes cells of one name.
    pub identity: ScriptIdentity,
    /// The identity of the data that its `prepare` makes; None where loadgen makes none.
    #[serde(skip)]
    pub data: Option<ScriptData>,
}

impl ScriptPart {
    pub(super) fn new(file: ScriptFile, options: ScriptOptions) -> ScriptPart {
        ScriptPart { identity: file.identity(&options.0), file, options, data: None }
    }
}

/// A script as it was read, and what it decides in the plan of its clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadScript {
    pub script: Arc<Script>,
    pub after_error: AfterError,
    #[serde(serialize_with = "serialize_display")]
    pub distribution: Distribution,
    pub statements: StatementMode,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScriptData {
    pub identity: ScriptIdentity,
    /// True if its `cleanup` and `prepare` may replace what was written to.
    pub refill: bool,
    /// Threads of a `prepare` that runs in all of them; None for the default.
    #[serde(skip)]
    pub jobs: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ScriptValue {
    Switch(bool),
    Number(#[serde(serialize_with = "write_bits", deserialize_with = "read_bits")] f64),
    Text(String),
    List(Vec<String>),
}

impl ScriptValue {
    /// Returns it as a command line has it.
    pub(crate) fn to_word(&self) -> String {
        match self {
            ScriptValue::Switch(on) => if *on { "on" } else { "off" }.to_owned(),
            ScriptValue::Number(number) => number.to_string(),
            ScriptValue::Text(text) => text.clone(),
            ScriptValue::List(items) => items.join(","),
        }
    }
}

/// Writes a number by its bits: JSON has neither infinity nor NaN.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn write_bits<S: Serializer>(number: &f64, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_u64(number.to_bits())
}

fn read_bits<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<f64, D::Error> {
    u64::deserialize(from).map(f64::from_bits)
}

/// The distributions of `sysbench.rand`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScriptRandom {
    /// The one of `sysbench.rand.default`.
    pub rand_type: RandType,
    pub iterations: u32,
    pub percent: u32,
    pub within: u32,
    #[serde(serialize_with = "write_bits", deserialize_with = "read_bits")]
    pub pareto_h: f64,
    #[serde(serialize_with = "write_bits", deserialize_with = "read_bits")]
    pub zipfian_exp: f64,
}

#[cfg(test)]
impl ScriptRandom {
    /// The options of sysbench that nobody has given.
    pub(crate) const USUAL: ScriptRandom = ScriptRandom {
        rand_type: RandType::Special,
        iterations: 12,
        percent: 1,
        within: 75,
        pareto_h: 0.2,
        zipfian_exp: 0.8,
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RandType {
    Uniform,
    Gaussian,
    Special,
    Pareto,
    Zipfian,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_tell_scripts_apart_and_hold_no_text() {
        let of = |word: &str, rows: f64| {
            let options = [
                ("word".to_owned(), ScriptValue::Text(word.to_owned())),
                ("rows".to_owned(), ScriptValue::Number(rows)),
                ("on".to_owned(), ScriptValue::Switch(true)),
                ("none".to_owned(), ScriptValue::Number(f64::NAN)),
                ("my_password".to_owned(), ScriptValue::Number(4711.0)),
                ("db_pass2".to_owned(), ScriptValue::Number(4712.0)),
                ("passes".to_owned(), ScriptValue::Number(2.0)),
            ];
            ScriptIdentity::new(Vec::new(), &options)
        };
        let usual = of("hunter2", 7.0);
        let kept = [("on", 1.0), ("passes", 2.0), ("rows", 7.0)];
        assert_eq!(usual.options, kept.map(|(name, value)| (name.to_owned(), value)).into());
        assert_eq!(usual.texts.len(), 4);
        assert_eq!(usual, of("hunter2", 7.0));
        assert_ne!(usual, of("hunter2", 8.0));
        assert_ne!(usual, of("other", 7.0));
        assert_eq!(ScriptIdentity::new(Vec::new(), &[]), ScriptIdentity::default());
    }

    #[test]
    fn workload_of_a_script_has_a_name_when_no_letter_of_its_path_is_ascii() {
        for (path, name) in [("a/b c.lua", "bc.lua"), ("a/日", "script"), ("日.lua", ".lua")] {
            assert_eq!(workload_of(path).name, name, "{path}");
        }
    }

    #[test]
    fn script_is_read_back_as_equal_when_it_is_written_down() {
        let mut script = Script::of_text("").away();
        script.files = vec![("a.lua".to_owned(), b"-- \xe9".to_vec())];
        script.options = vec![
            ("all".to_owned(), ScriptValue::Number(f64::INFINITY)),
            ("on".to_owned(), ScriptValue::Switch(true)),
            ("list".to_owned(), ScriptValue::List(vec!["x".to_owned()])),
        ];
        script.random.pareto_h = 0.1 + 0.2;
        let text = serde_json::to_string(&script).expect("plain data");
        assert_eq!(serde_json::from_str::<Script>(&text).expect(&text), script);
    }

    #[test]
    fn thread_init_has_no_limit_when_its_option_is_zero() {
        let mut script = Script::of_text("");
        assert_eq!(script.init_limit(), limits::THREAD_INIT);
        for (s, limit) in [(1.0, Duration::from_secs(1)), (0.0, limits::PHASE_MAX)] {
            script.set_option("thread_init_timeout", ScriptValue::Number(s));
            assert_eq!(script.init_limit(), limit);
        }
    }

    #[test]
    fn integers_of_options_keep_all_digits() {
        for number in [0, -7, 1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN] {
            let text = match integer(number.into()) {
                ScriptValue::Number(number) => number.to_string(),
                ScriptValue::Text(text) => text,
                other => panic!("{other:?}"),
            };
            assert_eq!(text, number.to_string());
        }
    }
}
