//! Runs that last as long as they take: reloading tables, and suites of external commands.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::defaults;
use super::value::{CharsetName, InsertBytes, RowCount, TableCount, Whole, command, named};
use crate::terms::InsertWord;

/// Bytes of an extended INSERT by default: mysqldump's `net_buffer_length`, as its manual has it.
pub const INSERT_BYTES: u64 = 1_046_528;

/// A table (or several, one after the other) that is dropped, created and loaded again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "LoadKnobs")]
pub struct LoadSpec {
    /// Tables `sbtest1` … `sbtestN` of generated rows; 1 for a dump, which names its own.
    pub tables: u32,
    pub source: LoadSource,
    /// For generated rows; a dump is replayed as it is.
    pub insert: InsertMode,
    /// Character set on the wire (`SET NAMES`); None: what the server's connection starts with.
    pub charset: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum LoadSource {
    /// sysbench's rows, made on the fly.
    Generated { rows: u64, data_seed: u32 },
    /// A file that mysqldump wrote; `-` is standard input.
    Dump { path: PathBuf },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum InsertMode {
    /// INSERTs of many rows, as `mysqldump --opt` writes them.
    Extended {
        /// A statement ends before it would grow longer than this.
        bytes: u64,
    },
    /// One row a statement, as `mysqldump --opt --skip-extended-insert` writes them.
    Single,
    LoadData,
}

impl Default for InsertMode {
    fn default() -> Self {
        InsertMode::Extended { bytes: INSERT_BYTES }
    }
}

impl fmt::Display for InsertMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            InsertMode::Extended { .. } => InsertWord::Extended,
            InsertMode::Single => InsertWord::Single,
            InsertMode::LoadData => InsertWord::LoadData,
        };
        word.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteSpec {
    /// Its name; the workload of its summary is `suite-NAME`.
    #[serde(deserialize_with = "named")]
    pub name: String,
    pub tests: Vec<SuiteTest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteTest {
    #[serde(deserialize_with = "named")]
    pub name: String,
    /// Program and arguments; no shell reads them.
    #[serde(deserialize_with = "command")]
    pub run: Vec<String>,
    pub dir: Option<PathBuf>,
}

/// What a person says of a load: the flags of its verb, and a profile's `load`.
#[derive(clap::Args, Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoadKnobs {
    /// Tables sbtest1 to sbtestN, one after the other [default: 1]
    #[arg(long, value_name = "N")]
    pub tables: Option<TableCount>,

    /// Rows of each table, up to 10G [default: 10k]
    #[arg(long, value_name = "N")]
    pub rows: Option<RowCount>,

    /// Seed of the rows' content [default: 1]
    #[arg(long, value_name = "N")]
    pub data_seed: Option<u32>,

    /// Load this file of mysqldump's instead, statement by statement as it is; - is standard input
    #[arg(
        long = "from-dump", value_name = "FILE",
        conflicts_with_all = ["tables", "rows", "data_seed", "mode", "insert_bytes"]
    )]
    pub dump: Option<PathBuf>,

    /// extended (many rows a statement), single (one row) or load-data (LOAD DATA LOCAL)
    /// [default: extended]
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    pub mode: Option<InsertWord>,

    /// Bytes that an extended INSERT stays below [default: 1046528, as mysqldump]
    #[arg(long, value_name = "N")]
    pub insert_bytes: Option<InsertBytes>,

    /// Character set of the statements (SET NAMES), such as latin1, utf8 or utf8mb4
    #[arg(long, value_name = "NAME")]
    pub charset: Option<CharsetName>,
}

impl TryFrom<LoadKnobs> for LoadSpec {
    type Error = String;

    fn try_from(knobs: LoadKnobs) -> Result<LoadSpec, String> {
        let refused = |what: &str| Err(what.to_owned());
        let own = knobs.mode.is_some() || knobs.insert_bytes.is_some() || knobs.tables.is_some();
        let source = match (knobs.dump, knobs.rows) {
            (Some(_), Some(_)) => return refused("a load has rows or a dump, not both"),
            (None, None) => return refused("a load needs rows = \"16M\", or dump = \"FILE\""),
            (Some(_), None) if own => {
                return refused(
                    "a dump is replayed as it is: its statements are its own, and tables, mode and \
                     insert_bytes say nothing",
                );
            }
            (Some(path), None) => LoadSource::Dump { path },
            (None, Some(rows)) => LoadSource::Generated {
                rows: rows.0,
                data_seed: knobs.data_seed.unwrap_or(defaults::DATA_SEED),
            },
        };
        let insert = match (knobs.mode.unwrap_or_default(), knobs.insert_bytes) {
            (InsertWord::Extended, bytes) => {
                InsertMode::Extended { bytes: bytes.map_or(INSERT_BYTES, |bytes| bytes.0) }
            }
            (_, Some(_)) => return refused("only the mode extended has a number of bytes"),
            (InsertWord::Single, None) => InsertMode::Single,
            (InsertWord::LoadData, None) => InsertMode::LoadData,
        };
        let tables = knobs.tables.map_or(1, Whole::small);
        Ok(LoadSpec { tables, source, insert, charset: knobs.charset.map(|name| name.0) })
    }
}

impl LoadSpec {
    /// Names the summary's workload: loads of different kinds are different tables of a report.
    pub(crate) fn name(&self) -> String {
        match (&self.source, self.insert) {
            (LoadSource::Generated { .. }, InsertMode::Extended { .. }) => "load".to_owned(),
            (LoadSource::Generated { .. }, InsertMode::Single) => "load-single".to_owned(),
            (LoadSource::Generated { .. }, InsertMode::LoadData) => "load-data".to_owned(),
            (LoadSource::Dump { path }, _) if path == Path::new("-") => "load-dump".to_owned(),
            (LoadSource::Dump { path }, _) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                format!("load-dump-{}", stem.chars().take(100).collect::<String>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<LoadSpec, String> {
        toml::from_str(text).map_err(|e: toml::de::Error| e.to_string())
    }

    #[test]
    fn a_load_as_a_profile_spells_it() {
        let spec = load("rows = \"16M\"\nmode = \"single\"\ncharset = \"latin1\"").expect("fine");
        assert_eq!(
            spec,
            LoadSpec {
                tables: 1,
                source: LoadSource::Generated { rows: 16_000_000, data_seed: 1 },
                insert: InsertMode::Single,
                charset: Some("latin1".to_owned()),
            }
        );
        let spec =
            load("rows = 5\ntables = 8\ninsert_bytes = \"64Ki\"\ndata_seed = 3").expect("fine");
        assert_eq!((spec.tables, spec.insert), (8, InsertMode::Extended { bytes: 65_536 }));
        let spec = load("dump = \"a.sql\"").expect("fine");
        assert_eq!(spec.source, LoadSource::Dump { path: PathBuf::from("a.sql") });
    }

    #[test]
    fn nonsense_is_named() {
        for (text, part) in [
            ("", "needs rows"),
            ("rows = 1\ndump = \"x\"", "not both"),
            ("dump = \"x\"\nmode = \"single\"", "as it is"),
            ("rows = 0", "from 1"),
            ("rows = \"1x\"", "'1x'"),
            ("rows = 1\nmode = \"fast\"", "fast"),
            ("rows = 1\nmode = \"single\"\ninsert_bytes = 2000", "extended"),
            ("rows = 1\ninsert_bytes = 10", "'10'"),
            ("rows = 1\ntables = 4294967297", "tables"),
            ("rows = 1\nrow = 2", "row"),
        ] {
            let error = load(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_suite_as_a_profile_spells_it() {
        let text = "name = \"s\"\ntests = [{ name = \"a\", run = [\"true\"], dir = \"/\" }]";
        let suite: SuiteSpec = toml::from_str(text).expect("fine");
        assert_eq!(suite.tests[0].run, ["true"]);
        assert!(toml::from_str::<SuiteSpec>("name = \"s\"\ntests = []\nx = 1").is_err());
    }
}
