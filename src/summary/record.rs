//! The record of a step that is about to write: durable before its first write, and gone as soon
//! as the step's summary is durable. What is left of a killed loadgen says which tables hold
//! writes that no ledger has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Store;
use super::write::sync;
use crate::error::{Error, Result, plain};

/// The `schema` value of records.
const SCHEMA: &str = "loadgen.begun/1";
/// What their names end with.
const SUFFIX: &str = ".begun";
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
    #[serde(default)]
    pub label: Option<String>,
    /// Whether its workload is one of loadgen's own; old versions did not say.
    #[serde(default)]
    pub built_in: bool,
    /// Whose tables.
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
    /// The database.
    #[serde(default)]
    pub database: Option<String>,
}

impl Place {
    /// From a server's variables.
    pub(crate) fn of(variables: &BTreeMap<String, String>, database: Option<&str>) -> Place {
        let get = |name: &str| variables.get(name).cloned();
        let database = database.map(str::to_owned);
        Place { hostname: get("hostname"), datadir: get("datadir"), database }
    }

    /// Whether both are known and not the same.
    pub(crate) fn differs(&self, other: &Place) -> bool {
        let differ = |one: &Option<String>, other: &Option<String>| {
            one.as_ref().zip(other.as_ref()).is_some_and(|(one, other)| one != other)
        };
        [
            (&self.hostname, &other.hostname),
            (&self.datadir, &other.datadir),
            (&self.database, &other.database),
        ]
        .into_iter()
        .any(|(own, other)| differ(own, other))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
        write!(f, "{}:{}", or(&self.hostname), or(&self.datadir))?;
        self.database.as_ref().map_or(Ok(()), |database| write!(f, " {database}"))
    }
}

/// A record on disk.
#[derive(Debug)]
pub struct Recorded {
    path: PathBuf,
}

impl Record {
    /// Of a step that begins now.
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
    /// Its name, as the step's summary has it.
    pub(crate) fn name(&self) -> String {
        name_of(&self.path)
    }

    /// The step's summary is durable. Where the record cannot be removed, the summary, which
    /// names it, tells as much.
    pub(crate) fn superseded(self) {
        let _ = fs::remove_file(self.path);
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().expect("a file of a directory").to_string_lossy();
    name.strip_suffix(SUFFIX).unwrap_or(&name).to_owned()
}

impl Store {
    /// Writes a record, durable when this returns.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or its directory not be synced: then the step must not begin.
    pub(crate) fn begin(&self, record: &Record) -> Result<Recorded> {
        let mut json = serde_json::to_string_pretty(record).expect("its maps have string keys");
        json.push('\n');
        let name = |hex: u32| format!("{}-{hex:08x}{SUFFIX}", record.step_id);
        let made = self.put(&json, name).and_then(|path| match sync(self.dir()) {
            Ok(()) => Ok(path),
            Err(error) => {
                // Of a step that does not begin.
                let _ = fs::remove_file(path);
                Err(error)
            }
        });
        let path = made.map_err(|error| {
            self.failed(&error).context(format!(
                "no record of step {} could be made, so that it was not begun",
                record.step_id
            ))
        })?;
        Ok(Recorded { path })
    }
}

/// The records in these directories, and beside these files.
///
/// # Errors
///
/// Undecided: one of them cannot be read.
pub fn records(paths: &[PathBuf]) -> Result<Vec<(String, Record)>> {
    let mut dirs = BTreeSet::new();
    for path in paths {
        let dir = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
        let dir = dir.filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        dirs.insert(dir.to_owned());
    }
    let mut found = Vec::new();
    for dir in dirs {
        let unread = |error: &std::io::Error| {
            Error::usage(format!("{}: {error}", dir.display()))
                .hint("name the directory of loadgen's --out")
        };
        for entry in fs::read_dir(&dir).map_err(|error| unread(&error))? {
            let path = entry.map_err(|error| unread(&error))?.path();
            let is = |end: &str| path.as_os_str().as_encoded_bytes().ends_with(end.as_bytes());
            if is(SUFFIX) && path.is_file() {
                found.push((name_of(&path), read(&path)?));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn read(path: &Path) -> Result<Record> {
    let bad = |why: &str| {
        Error::new(
            crate::error::Kind::Undecided,
            format!("{}: {}: what it stands for is not known", path.display(), plain(why)),
        )
        .hint("move it away if loadgen did not write it")
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
