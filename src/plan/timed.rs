//! Runs that last as long as they take: reloading tables, and suites of external commands.
//!
//! The forms that a profile's run holds:
//!
//! ```toml
//! [[run]]
//! load = { rows = "16M", mode = "single", charset = "latin1" }
//! [[run]]
//! load = { dump = "sbtest1.sql" }
//! [[run]]
//! suite = { name = "sql-bench", tests = [{ name = "create", run = ["perl", "test-create"] }] }
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::defaults;
use super::profile::value::Count;
use super::units;
use super::value::charset;
use crate::workload::table::{ROWS_MAX, TABLES_MAX};

/// Bytes of an extended INSERT by default: mysqldump's `net_buffer_length` is 1024 * 1024 - 1024
/// (`client/mysqldump.c`: "opt_net_buffer_length", default 1024*1024L-1025 … 1046528 as its
/// manual prints it).
pub const INSERT_BYTES: u64 = 1_046_528;
/// The largest statement that `--insert-bytes` may ask for: max_allowed_packet ends there too.
pub(crate) const INSERT_BYTES_MAX: u64 = 1 << 30;
/// The smallest: no row of sysbench's table is longer, head of the statement included.
pub(crate) const INSERT_BYTES_MIN: u64 = 1024;

/// A table (or several, one after the other) that is dropped, created and loaded again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "FlatLoad")]
pub struct LoadSpec {
    /// Tables `sbtest1` … `sbtestN` of generated rows; 1 for a dump, which names its own.
    pub tables: u32,
    /// Where the rows come from.
    pub source: LoadSource,
    /// How generated rows are put into statements; a dump is replayed as it is.
    pub insert: InsertMode,
    /// Character set on the wire (`SET NAMES`); None: what the server's connection starts with.
    pub charset: Option<String>,
}

/// Where the rows of a load come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadSource {
    /// sysbench's rows, made on the fly.
    Generated {
        /// Rows a table.
        rows: u64,
        /// Seed of the rows' content.
        data_seed: u32,
    },
    /// A file that mysqldump wrote; `-` is standard input.
    Dump {
        /// The file.
        path: PathBuf,
    },
}

/// How generated rows are put into statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertMode {
    /// INSERTs of many rows, as `mysqldump --opt` writes them.
    Extended {
        /// A statement ends before it would grow longer than this.
        bytes: u64,
    },
    /// One row a statement, as `mysqldump --opt --skip-extended-insert` writes them.
    Single,
    /// LOAD DATA LOCAL INFILE.
    LoadData,
}

impl Default for InsertMode {
    fn default() -> Self {
        InsertMode::Extended { bytes: INSERT_BYTES }
    }
}

/// Its name on the command line and in summaries.
impl fmt::Display for InsertMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InsertMode::Extended { .. } => "extended",
            InsertMode::Single => "single",
            InsertMode::LoadData => "load-data",
        })
    }
}

/// External commands that are run in order and timed, as sql-bench's tests.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteSpec {
    /// Its name; the workload of its summary is `suite-NAME`.
    pub name: String,
    /// The commands, in order.
    pub tests: Vec<SuiteTest>,
}

/// One external command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteTest {
    /// Its name in the table.
    pub name: String,
    /// Program and arguments; no shell reads them.
    pub run: Vec<String>,
    /// Its working directory; None: loadgen's.
    #[serde(default)]
    pub dir: Option<PathBuf>,
}

/// A load as a profile spells it: one flat table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlatLoad {
    tables: Option<Count>,
    rows: Option<Count>,
    data_seed: Option<u32>,
    dump: Option<PathBuf>,
    mode: Option<String>,
    insert_bytes: Option<Count>,
    charset: Option<String>,
}

impl TryFrom<FlatLoad> for LoadSpec {
    type Error = String;

    fn try_from(flat: FlatLoad) -> Result<LoadSpec, String> {
        let tables = u32::try_from(flat.tables.map_or(1, |n| n.0)).unwrap_or(u32::MAX);
        let insert = insert_mode(flat.mode.as_deref(), flat.insert_bytes.map(|n| n.0))?;
        let source = match (flat.dump, flat.rows) {
            (Some(_), Some(_)) => return Err("a load has rows or a dump, not both".to_owned()),
            (Some(path), None) => {
                if flat.mode.is_some() || flat.insert_bytes.is_some() || flat.tables.is_some() {
                    return Err("a dump is replayed as it is: its statements are its own, and \
                                tables, mode and insert_bytes say nothing"
                        .to_owned());
                }
                LoadSource::Dump { path }
            }
            (None, Some(rows)) => LoadSource::Generated {
                rows: rows.0,
                data_seed: flat.data_seed.unwrap_or(defaults::DATA_SEED),
            },
            (None, None) => {
                return Err("a load needs rows = \"16M\", or dump = \"FILE\"".to_owned());
            }
        };
        let charset = flat.charset.as_deref().map(charset).transpose()?;
        let spec = LoadSpec { tables, source, insert, charset };
        spec.check().map(|()| spec)
    }
}

impl LoadSpec {
    /// The summary's workload: loads of different kinds are different tables of a report.
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

    /// Whether its numbers are within what tables and statements can be.
    ///
    /// # Errors
    ///
    /// The text names the field.
    pub(crate) fn check(&self) -> Result<(), String> {
        let range = |what: &str, n: u64, min: u64, max: u64| {
            if (min..=max).contains(&n) {
                return Ok(());
            }
            Err(format!("{what} {n} is not within {min} to {}", units::count(max)))
        };
        range("tables", u64::from(self.tables), 1, u64::from(TABLES_MAX))?;
        if let LoadSource::Generated { rows, .. } = self.source {
            range("rows", rows, 1, ROWS_MAX)?;
        }
        if let InsertMode::Extended { bytes } = self.insert {
            range("insert_bytes", bytes, INSERT_BYTES_MIN, INSERT_BYTES_MAX)?;
        }
        Ok(())
    }
}

/// The mode of that name, with the bytes that only `extended` has.
///
/// # Errors
///
/// Another name; bytes with a mode that has none.
pub(crate) fn insert_mode(name: Option<&str>, bytes: Option<u64>) -> Result<InsertMode, String> {
    let mode = match name {
        None | Some("extended") => {
            return Ok(InsertMode::Extended { bytes: bytes.unwrap_or(INSERT_BYTES) });
        }
        Some("single") => InsertMode::Single,
        Some("load-data") => InsertMode::LoadData,
        Some(other) => {
            return Err(format!("'{other}' is no mode: extended, single or load-data"));
        }
    };
    match bytes {
        None => Ok(mode),
        Some(_) => Err(format!("the mode {mode} has no insert bytes: extended has")),
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
            ("rows = 0", "rows 0"),
            ("rows = \"1x\"", "'1x'"),
            ("rows = 1\nmode = \"fast\"", "'fast'"),
            ("rows = 1\nmode = \"single\"\ninsert_bytes = 2000", "single"),
            ("rows = 1\ninsert_bytes = 10", "insert_bytes 10"),
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
