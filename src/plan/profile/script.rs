//! A run of a script, as a profile says it, and the queries that `loadgen verify` asks.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Value;

use crate::plan::knobs::Knobs;
use crate::plan::script::{ScriptIdentity, ScriptValue};
use crate::plan::value::{RowCount, Scale, as_flag, named};
use crate::workload::check_query;

/// The keys of a run of a script; its others are those of a run of a workload.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptKeys {
    /// A Lua script of sysbench's, beside the profile's file, or inside the program
    pub lua: String,
    /// Its own options, and sysbench's `rand-type`, `db-ps-mode` and the like: `{ tables = 8, mode = "plain" }`
    #[serde(default)]
    pub options: ScriptOptions,
    /// Those of its options that `--scale` makes smaller, down to 1: `{ warehouses = 100 }`
    #[serde(default)]
    pub scaled_options: BTreeMap<String, RowCount>,
    /// `true`: its command `prepare` fills each new data directory; `["warehouses"]`: only these options decide
    /// on the data, and runs that agree on them share it
    #[serde(default)]
    pub prepare: Prepare,
}

/// The keys of a run that [`ScriptKeys`] has.
pub(super) const SCRIPT_KEYS: [&str; 4] = ["lua", "options", "scaled_options", "prepare"];

/// The options of a script by name, as they are spelled. Their texts may be passwords.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "BTreeMap<String, Value>")]
pub struct ScriptOptions(pub Vec<(String, ScriptValue)>);

impl TryFrom<BTreeMap<String, Value>> for ScriptOptions {
    type Error = String;

    fn try_from(table: BTreeMap<String, Value>) -> Result<ScriptOptions, String> {
        let read = |(name, value): (String, Value)| {
            let value = match value {
                Value::Boolean(on) => ScriptValue::Switch(on),
                Value::Integer(number) => integer(number.into()),
                Value::Float(number) => ScriptValue::Number(number),
                Value::String(text) => ScriptValue::Text(text),
                Value::Array(items) => {
                    let items = items.iter().map(as_flag).collect::<Result<_, _>>();
                    ScriptValue::List(items.map_err(|what| format!("{name}: {what}"))?)
                }
                Value::Table(_) | Value::Datetime(_) => {
                    return Err(format!("{name}: a number, a text, a switch or a list is wanted"));
                }
            };
            Ok((name, value))
        };
        table.into_iter().map(read).collect::<Result<_, _>>().map(ScriptOptions)
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
        let word = |(name, value): &(String, ScriptValue)| match value {
            ScriptValue::Switch(on) => format!("--{name}={}", if *on { "on" } else { "off" }),
            ScriptValue::Number(number) => format!("--{name}={number}"),
            ScriptValue::Text(text) => format!("--{name}={text}"),
            ScriptValue::List(items) => format!("--{name}={}", items.join(",")),
        };
        self.0.iter().map(word).collect()
    }

    fn only(&self, names: &[String]) -> Vec<(String, ScriptValue)> {
        let is_named = |known: &str| names.iter().any(|name| plain(name) == plain(known));
        self.0.iter().filter(|(name, _)| is_named(name)).cloned().collect()
    }
}

/// Takes one that a double does not hold as its text.
fn integer(number: i128) -> ScriptValue {
    let exact = number.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS;
    if exact { ScriptValue::Number(number as f64) } else { ScriptValue::Text(number.to_string()) }
}

fn plain(name: &str) -> String {
    name.replace('-', "_")
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Prepare {
    #[default]
    No,
    /// All options decide on the data.
    ByAll,
    By(Vec<String>),
}

impl TryFrom<Value> for Prepare {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Prepare, &'static str> {
        let wrong = "true, false or a list of names of options is wanted";
        let name = |item| if let Value::String(name) = item { Ok(name) } else { Err(wrong) };
        match value {
            Value::Boolean(on) => Ok(if on { Prepare::ByAll } else { Prepare::No }),
            Value::Array(items) => {
                items.into_iter().map(name).collect::<Result<_, _>>().map(Prepare::By)
            }
            _ => Err(wrong),
        }
    }
}

/// A run of a script, and the file that it names, once that was found.
#[derive(Debug, Clone)]
pub struct ScriptRun {
    pub keys: ScriptKeys,
    pub file: Option<ScriptFile>,
    pub knobs: Knobs,
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
    /// Returns its name, without directories.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// The script of a run, with its options at this scale.
#[derive(Debug, Clone)]
pub struct ScriptPart {
    pub file: ScriptFile,
    pub options: ScriptOptions,
    /// Tells cells apart.
    pub identity: ScriptIdentity,
    /// The identity of the data that its `prepare` makes; None where loadgen makes none.
    pub data: Option<ScriptData>,
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

impl ScriptRun {
    /// Makes the part; an error names its key.
    pub(crate) fn part(
        &self,
        scale: Scale,
        refill: bool,
        jobs: Option<u32>,
    ) -> Result<ScriptPart, (&'static str, String)> {
        let ScriptKeys { options, scaled_options, prepare, .. } = &self.keys;
        let file = self.file.clone().ok_or_else(|| ("lua", "it was not looked for".to_owned()))?;
        let mut options = options.clone();
        for (name, count) in scaled_options {
            if options.0.iter().any(|(other, _)| plain(other) == plain(name)) {
                let what = format!("{name} is among options, too: it has one value");
                return Err(("scaled_options", what));
            }
            options.0.push((name.clone(), integer(scale.count(count.0, 1).into())));
        }
        let of = |options: &[(String, ScriptValue)]| {
            let file = (file.name().to_owned(), file.sha256.clone());
            ScriptIdentity::new(vec![file], options)
        };
        let by = match prepare {
            Prepare::No => None,
            Prepare::ByAll => Some(options.0.clone()),
            Prepare::By(names) => {
                let is_given = |name: &&String| !options.only(&[(*name).clone()]).is_empty();
                if let Some(name) = names.iter().find(|name| !is_given(name)) {
                    return Err(("prepare", format!("{name} is not among the options here")));
                }
                Some(options.only(names))
            }
        };
        let data = by.map(|by| ScriptData { identity: of(&by), refill, jobs });
        Ok(ScriptPart { identity: of(&options.0), file, options, data })
    }
}

/// A question about the data: what the server must answer at any time between two runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verify {
    /// Its name in the lines of `loadgen verify`
    #[serde(deserialize_with = "named")]
    pub name: String,
    /// One SELECT, SHOW, WITH or CHECKSUM without INTO; it is asked in a READ ONLY transaction
    #[serde(deserialize_with = "query")]
    pub sql: String,
    /// The exact result, as the server writes it: `[["0"]]`; no row unless it is said. What is missing at the end
    /// of a row is NULL
    #[serde(default)]
    pub rows: Vec<Vec<Cell>>,
}

fn query<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let sql = String::deserialize(from)?;
    check_query(&sql).map(|()| sql).map_err(D::Error::custom)
}

/// A value of a result, as text.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub struct Cell(pub String);

impl TryFrom<Value> for Cell {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Cell, &'static str> {
        match value {
            Value::String(_) | Value::Integer(_) | Value::Float(_) => as_flag(&value).map(Cell),
            _ => Err("a text or a number is wanted, as the server writes it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
