//! The record of a step that is about to write: durable before its first write, and gone as soon
//! as the step's summary is durable. What is left of a killed loadgen says which tables hold
//! writes that no ledger has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::read::{inside, parent};
use crate::error::{Error, Kind, Result, plain};

/// The `schema` value of records.
const SCHEMA: &str = "loadgen.begun/1";
pub(super) const SUFFIX: &str = ".begun";
/// Bytes of one at most: those of a hundred thousand tables.
const FILE_MAX: u64 = 8 << 20;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    schema: String,
    /// The step, as its summary names it.
    pub step_id: String,
    /// When, RFC 3339 in UTC.
    pub begun_at: String,
    /// What it does, for people.
    pub what: String,
    /// The row of the table; old versions did not say.
    pub label: Option<String>,
    /// Whether its workload is one of loadgen's own; old versions did not say.
    #[serde(default)]
    pub built_in: bool,
    pub place: Place,
    /// The tables that it may write to: names and identities.
    pub tables: BTreeMap<String, String>,
}

/// Where a server keeps the tables. Data directories and databases are copied, and then tables of
/// one identity have two histories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// `@@hostname`.
    pub hostname: Option<String>,
    /// `@@datadir`.
    pub datadir: Option<String>,
    pub database: Option<String>,
}

impl Place {
    /// Takes it from a server's variables.
    pub(crate) fn of(variables: &BTreeMap<String, String>, database: Option<&str>) -> Place {
        let get = |name: &str| variables.get(name).cloned();
        let database = database.map(str::to_owned);
        Place { hostname: get("hostname"), datadir: get("datadir"), database }
    }

    /// Tells whether a part of both is known and not the same.
    pub(crate) fn differs(&self, other: &Place) -> bool {
        let parts =
            |place: &Place| [place.hostname.clone(), place.datadir.clone(), place.database.clone()];
        let mut both = parts(self).into_iter().zip(parts(other));
        both.any(|(own, other)| own.zip(other).is_some_and(|(own, other)| own != other))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
        write!(f, "{}:{}", or(&self.hostname), or(&self.datadir))?;
        self.database.as_ref().map_or(Ok(()), |database| write!(f, " {database}"))
    }
}

#[derive(Debug)]
pub struct Recorded {
    pub(super) path: PathBuf,
}

impl Record {
    /// Makes the record of a step that begins now.
    pub(crate) fn new(
        step_id: String,
        what: String,
        built_in: bool,
        place: Place,
        tables: BTreeMap<String, String>,
    ) -> Record {
        let begun_at = jiff::Timestamp::now().to_string();
        let schema = SCHEMA.to_owned();
        Record { schema, step_id, begun_at, what, label: None, built_in, place, tables }
    }

    /// Reads what `Store::begin` wrote, or says why it is none.
    ///
    /// # Errors
    ///
    /// Another version, or no record at all.
    pub fn parse(bytes: &[u8]) -> std::result::Result<Record, &'static str> {
        match serde_json::from_slice::<Record>(bytes) {
            Ok(record) if record.schema == SCHEMA => Ok(record),
            Ok(_) => Err("it is of another version"),
            Err(_) => Err("it is no record of a step"),
        }
    }
}

impl Recorded {
    /// Gives its name, as the step's summary has it.
    pub(crate) fn name(&self) -> String {
        name_of(&self.path)
    }

    /// Removes it, as the step's summary is durable. Where it cannot be removed, the summary, which
    /// names it, tells as much.
    pub(crate) fn superseded(self) {
        let _ = fs::remove_file(self.path);
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().expect("a file of a directory").to_string_lossy();
    name.strip_suffix(SUFFIX).unwrap_or(&name).to_owned()
}

/// Reads the records in these directories, and beside these files.
///
/// # Errors
///
/// Undecided: one of them cannot be read.
pub fn records(paths: &[PathBuf]) -> Result<Vec<(String, Record)>> {
    let dir = |path: &PathBuf| if path.is_dir() { path.clone() } else { parent(path).to_owned() };
    let dirs: BTreeSet<PathBuf> = paths.iter().map(dir).collect();
    let mut found = Vec::new();
    for dir in dirs {
        for path in inside(&dir, SUFFIX)? {
            found.push((name_of(&path), read(&path)?));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn read(path: &Path) -> Result<Record> {
    let bad = |why: &str| {
        let text = format!("{}: {}: what it stands for is not known", path.display(), plain(why));
        Error::new(Kind::Undecided, text).hint("move it away if loadgen did not write it")
    };
    let length = fs::metadata(path).map_err(|error| bad(&error.to_string()))?.len();
    if length > FILE_MAX {
        return Err(bad("it is too large for a record"));
    }
    let bytes = fs::read(path).map_err(|error| bad(&error.to_string()))?;
    Record::parse(&bytes).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::super::Store;
    use super::*;

    fn record(step: &str) -> Record {
        let tables = [("sbtest1".to_owned(), "5f".to_owned())].into();
        Record::new(step.to_owned(), "update-index".to_owned(), true, Place::default(), tables)
    }

    #[test]
    fn records_are_there_until_they_are_superseded() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(dir.path()).expect("there");
        let (first, second) = (record("aa-1"), record("aa-1"));
        let one = store.begin(&first).expect("written");
        let two = store.begin(&second).expect("the same step again, after a kill");
        assert_ne!(one.name(), two.name());
        let paths = [dir.path().join("some.json"), dir.path().to_owned()];
        let found = records(&paths).expect("readable");
        assert_eq!(found.len(), 2, "each directory once");
        let (kept, name) = (two.name(), one.name());
        one.superseded();
        assert_eq!(records(&paths).expect("readable"), [(kept.clone(), second)]);
        assert!(name.starts_with("aa-1-") && kept.len() == "aa-1-".len() + 8);
    }

    #[test]
    fn without_a_record_a_step_does_not_begin() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(dir.path()).expect("there");
        dir.close().expect("removed");
        let error = store.begin(&record("aa-1")).expect_err("no directory");
        assert_eq!(error.kind().exit_code(), 1, "a step's failure: {error}");
        assert!(error.to_string().contains("not begun") && !error.hints().is_empty(), "{error}");
    }

    #[test]
    fn what_is_no_record_is_named_not_guessed() {
        let dir = tempfile::tempdir().expect("a directory");
        for text in ["", "{}", "[1]", "\u{1b}[2J"] {
            fs::write(dir.path().join("x.begun"), text).expect("writable");
            let error = records(&[dir.path().to_owned()]).expect_err("refused");
            assert_eq!(error.kind().exit_code(), 98, "{error}");
            assert!(error.to_string().contains("x.begun"), "{error}");
        }
    }

    #[test]
    fn places_differ_only_where_both_are_known() {
        let place = |host: &str, dir: &str| {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Place { hostname: some(host), datadir: some(dir), database: None }
        };
        assert!(place("a", "/x").differs(&place("a", "/y")));
        assert!(place("a", "/x").differs(&place("b", "/x")));
        assert!(!place("a", "/x").differs(&place("a", "/x")));
        assert!(!place("", "").differs(&place("a", "/x")));
        let within = |name: &str| Place { database: Some(name.to_owned()), ..place("a", "/x") };
        assert!(within("one").differs(&within("other")) && !within("one").differs(&within("one")));
        assert!(!within("one").differs(&place("a", "/x")), "of an old version");
        assert_eq!(within("one").to_string(), "a:/x one");
    }
}
