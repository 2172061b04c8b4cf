//! A run of a script, as a profile says it, and the queries that `loadgen verify` asks.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Value;

use crate::plan::knobs::Knobs;
use crate::plan::script::{ScriptData, ScriptFile, ScriptOptions, ScriptPart};
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
        options.add(scaled_options, scale).map_err(|what| ("scaled_options", what))?;
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
        let data = by.map(|by| ScriptData { identity: file.identity(&by), refill, jobs });
        Ok(ScriptPart { data, ..ScriptPart::new(file, options) })
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
            // It is not known whether it was 1.0 or 1e0, and a server writes 1 and 1.0 for two types.
            Value::Float(number) if number.fract() == 0.0 || !number.is_finite() => {
                Err("a number such as 1.0 is wanted as a text, as the server writes it: \"1.0\"")
            }
            Value::String(_) | Value::Integer(_) | Value::Float(_) => as_flag(&value).map(Cell),
            _ => Err("a text or a number is wanted, as the server writes it"),
        }
    }
}
