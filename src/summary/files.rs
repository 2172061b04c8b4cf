//! Reads and writes the files of summaries and records. A file appears whole under its own name, or not at
//! all; errors name damaged files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::{Builder, NamedTempFile};

use super::{IMPORTED, Imported, SCHEMA, Summary};
use crate::error::{Error, Kind, Result, clip, drives_terminal, plain};
use crate::terms::{counted, named, share_names};

/// Longest part of a file name that comes from a label or a workload, bytes.
const PART_MAX: usize = 64;
/// Eight random digits clash once in four billion: several clashes in a row have another cause.
const NAMES_MAX: usize = 8;
/// Largest file that is read, bytes. A week's timeline of seconds takes less than 200 MiB; so does that of a group.
const FILE_MAX: u64 = 512 << 20;
/// Largest record that is read, bytes.
const RECORD_MAX: u64 = 8 << 20;
const NAMED_MAX: usize = 10;
/// Longest foreign text in a message, characters.
const TEXT_MAX: usize = 200;
/// The `schema` value of records.
const RECORD: &str = "loadgen.begun/1";
const SUFFIX: &str = ".begun";

/// The directory of summaries, opened before the first step: measuring must not end at a full disk.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
    /// The flag or the variable that names another directory.
    named_by: &'static str,
}

/// A directory that is locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(File);

impl Drop for Claim {
    fn drop(&mut self) {
        // A child that is just being started has the descriptor, too: closing it here is not enough.
        let _ = self.0.unlock();
    }
}

/// Claims the directory for one run of a profile until the result is dropped: two at once would
/// measure the same steps beside each other, or fill the same data. File systems without locks let all in.
pub(crate) fn claim(dir: &Path, taken: impl FnOnce(String) -> Error) -> Result<Option<Claim>> {
    let Ok(claimed) = File::open(dir) else { return Ok(None) };
    match claimed.try_lock() {
        Ok(()) => Ok(Some(Claim(claimed))),
        Err(TryLockError::WouldBlock) => Err(taken(dir.display().to_string())),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

impl Store {
    /// Creates the directory if it is missing (but not its parent: it may be a typing error), and proves that
    /// files can be written in it.
    pub fn open(dir: &Path) -> Result<Store> {
        Store::open_named_by("--out DIR", dir)
    }

    /// Does the same with a directory that this flag or variable has named.
    pub(crate) fn open_named_by(named_by: &'static str, dir: &Path) -> Result<Store> {
        if dir.as_os_str().is_empty() {
            return Err(Error::usage("the directory for the summaries has an empty name")
                .hint("--out results, or --out . for the current directory"));
        }
        let made = match fs::create_dir(dir) {
            // A name that is not durable goes: the same command would find the directory and not ask again.
            Ok(()) => sync(parent(dir), false).inspect_err(|_| drop(fs::remove_dir(dir))),
            // May be a symbolic link to a directory; the trial below refuses anything else.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        };
        made.and_then(|()| trial(dir))
            .map_err(|error| unwritable((dir, named_by), &error, false))?;
        Ok(Store { dir: dir.to_owned(), named_by })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes one summary durably, removes the step's record, and returns the path. Never replaces a file. On
    /// an error the caller prints [`to_json`], as the hint says.
    pub fn write(&self, summary: &Summary) -> Result<PathBuf> {
        let name = |hex| file_name(summary, hex);
        let path = self.put(&to_json(summary), name, false).map_err(|error| {
            let text = format!("the summary of step {} was not saved", summary.step_id);
            let save = format!("it follows on standard output instead; save it as {}", name(0));
            error.context(text).hint(save)
        })?;
        // A record that cannot be removed is harmless: the summary names it.
        if let Some(record) = &summary.record {
            let _ = fs::remove_file(self.dir.join(record.clone() + SUFFIX));
        }
        Ok(path)
    }

    /// Writes one imported run durably and returns its path. Never replaces a file.
    pub(crate) fn write_imported(&self, run: &Imported) -> Result<PathBuf> {
        let cell = (run.label.as_str(), run.workload.as_str(), run.clients, run.rate);
        let name = |hex| dated(&run.started_at, cell, run.source.run, hex);
        self.put(&escape_hostile(write_json(run)), name, false)
    }

    /// Writes a record durably, and returns its name for the summary. After an error the step must not begin.
    pub(crate) fn begin_record(&self, record: &Record) -> Result<String> {
        let step = &record.step_id;
        let why = || format!("no record of step {step} could be made, so that it was not begun");
        let name = |hex: u32| format!("{step}-{hex:08x}{SUFFIX}");
        let path = self.put(&write_json(record), name, true);
        path.map(|path| name_of(&path)).map_err(|error| error.context(why()))
    }

    /// Writes a file, under a name with eight random digits; removes one whose name is not durable. An error
    /// is the step's: the command line was right when the step began.
    fn put(&self, text: &str, name: impl Fn(u32) -> String, strictly: bool) -> Result<PathBuf> {
        let durable = self.persist(text, name).and_then(|path| match sync(&self.dir, strictly) {
            Ok(()) => Ok(path),
            Err(error) => {
                // The first error is the cause.
                let _ = fs::remove_file(path);
                Err(error)
            }
        });
        durable.map_err(|error| unwritable((&self.dir, self.named_by), &error, true))
    }

    /// Writes a temporary file, syncs it and renames it to the first free name.
    fn persist(&self, text: &str, mut name: impl FnMut(u32) -> String) -> io::Result<PathBuf> {
        let mut file = temporary(&self.dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        for _ in 0..NAMES_MAX {
            let path = self.dir.join(name(getrandom::u32()?));
            match file.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(clash) if clash.error.kind() == ErrorKind::AlreadyExists => file = clash.file,
                Err(failed) => return Err(failed.error),
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "every file name that was tried is taken"))
    }
}

/// Makes a file that vanishes unless it gets a name; readers skip its suffix after a crash. Readable by whom
/// the umask allows: results are shared.
fn temporary(dir: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".loadgen-").suffix(".tmp").permissions(Permissions::from_mode(0o666));
    builder.tempfile_in(dir)
}

/// Makes a directory's names durable, if its file system can. Only records need it strictly.
fn sync(dir: &Path, strictly: bool) -> io::Result<()> {
    match File::open(dir)?.sync_all() {
        Err(error) if error.kind() == ErrorKind::InvalidInput && !strictly => Ok(()),
        synced => synced,
    }
}

/// Writes as much as a summary takes, then removes it.
fn trial(dir: &Path) -> io::Result<()> {
    let mut file = temporary(dir)?;
    file.write_all(&vec![b' '; 64 << 10])?;
    file.as_file().sync_all()?;
    file.close()?;
    sync(dir, false)
}

/// Explains an input/output error, with hints.
fn unwritable((dir, named_by): (&Path, &str), error: &io::Error, begun: bool) -> Error {
    let (shown, error_text) = (dir.display(), error.to_string());
    let other = format!("{named_by} names another directory");
    let (kind, what, hint) = match error.kind() {
        ErrorKind::NotFound => {
            let of = "it or its parent directory does not exist";
            (Kind::Usage, of, format!("mkdir -p '{shown}'"))
        }
        ErrorKind::NotADirectory => {
            let of = "it, or a part of its path, is a file and no directory";
            (Kind::Usage, of, format!("remove the file; or {other}"))
        }
        ErrorKind::PermissionDenied => (Kind::Usage, "permission denied", other),
        ErrorKind::ReadOnlyFilesystem => (Kind::Usage, "the file system is read-only", other),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            (Kind::Failed, "no space left", format!("free some space in '{shown}'; or {other}"))
        }
        _ => (Kind::Failed, error_text.as_str(), other),
    };
    let kind = if begun { Kind::Failed } else { kind };
    Error::new(kind, format!("summaries cannot be written to '{shown}': {what}")).hint(hint)
}

/// Names a summary's file, for people only. `hex` keeps two steps of one second apart.
pub fn file_name(summary: &Summary, hex: u32) -> String {
    let plan = &summary.plan;
    let cell = (summary.label.as_str(), summary.workload.name.as_str(), plan.clients, plan.rate);
    dated(&summary.started_at, cell, plan.repeat_index, hex)
}

fn dated(
    start: &str,
    (label, workload, clients, rate): (&str, &str, u32, Option<f64>),
    number: u32,
    hex: u32,
) -> String {
    let rate = rate.map_or_else(String::new, |rate| format!("_r{}", part(&rate.to_string())));
    let start = start.parse::<jiff::Timestamp>();
    let start = start.map(|start| start.strftime("%Y%m%dT%H%M%SZ").to_string());
    format!(
        "{}_{}_{}_c{clients}{rate}_n{number}_{hex:08x}.json",
        start.unwrap_or_else(|_| "undated".to_owned()),
        part(label),
        part(workload),
    )
}

/// Without separators, quotes, spaces, or anything special to a shell, a terminal or another file system.
pub(crate) fn part(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "+-.=@".contains(c) { c } else { '_' };
    let part: String = text.chars().take(PART_MAX).map(safe).collect();
    if part.is_empty() { "_".to_owned() } else { part }
}

/// Makes the JSON of a summary's file, indented. Escapes control characters and bidirectional overrides, so
/// that a terminal can show it; readers get them back.
pub fn to_json(summary: &Summary) -> String {
    escape_hostile(write_json(summary))
}

fn write_json(content: &impl Serialize) -> String {
    serde_json::to_string_pretty(content).expect("its maps have string keys") + "\n"
}

/// Escapes hostile characters in JSON, which has them in strings only.
pub(crate) fn escape_hostile(json: String) -> String {
    let hostile = |c: char| drives_terminal(c) && c != '\n';
    if !json.contains(hostile) {
        return json;
    }
    // All are in the basic plane: one escape, no surrogates.
    let escape = |c| if hostile(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    json.chars().map(escape).collect()
}

/// The result of [`load`].
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// Summaries with their files, in the order of the paths; those of a directory by name.
    pub summaries: Vec<(PathBuf, Summary)>,
    pub imported: Vec<(PathBuf, Imported)>,
    pub skipped: Vec<(PathBuf, String)>,
}

impl Loaded {
    pub fn steps(&self) -> Vec<&Summary> {
        self.summaries.iter().map(|(_, summary)| summary).collect()
    }
}

/// Reads summaries from files and directories (their visible `*.json`). A bad file, or a second file of a
/// step, is an error unless `skip_bad`; no file is one, too.
pub fn load(paths: &[PathBuf], skip_bad: bool) -> Result<Loaded> {
    load_each(paths, skip_bad, |_| {})
}

/// Reads the same as [`load`]; `each` may drop parts of a summary that its reader does not need.
pub fn load_each(paths: &[PathBuf], skip_bad: bool, each: impl Fn(&mut Summary)) -> Result<Loaded> {
    let loaded = collect_each(paths, each)?;
    if !skip_bad && !loaded.skipped.is_empty() {
        let reasons = |(path, why): &(PathBuf, String)| format!("{}: {why}", path.display());
        let reasons: Vec<String> = loaded.skipped.iter().map(reasons).collect();
        let count = counted(reasons.len() as u64, "file");
        let text = format!("{count} cannot be used:\n  {}", named(reasons, NAMED_MAX, "\n  "));
        return Err(Error::data(text).hint("--skip-bad leaves such files out"));
    }
    if loaded.summaries.is_empty() && loaded.imported.is_empty() {
        let paths = paths.iter().map(|path| path.display().to_string()).collect();
        let but = loaded.skipped.first().map_or_else(String::new, |(path, reason)| {
            let skipped = loaded.skipped.len();
            format!("; {skipped} skipped, the first: {}: {reason}", path.display())
        });
        let message = format!("no summaries in {}{but}", named(paths, NAMED_MAX, ", "));
        let hint = "a sweep writes them to its --out directory (results by default); directories in \
                    these are not read";
        return Err(Error::usage(message).hint(hint));
    }
    Ok(loaded)
}

/// Reads all that [`load`] would, and lists what it would refuse; it may be nothing.
pub fn collect(paths: &[PathBuf]) -> Result<Loaded> {
    collect_each(paths, |_| {})
}

fn collect_each(paths: &[PathBuf], each: impl Fn(&mut Summary)) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    let (mut variables, mut workloads, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut seen = HashSet::new();
    // Two invocations that continue one run at once name their steps alike.
    let mut steps: HashMap<(String, String), PathBuf> = HashMap::new();
    for path in files(paths)? {
        let read = read(&path, &mut seen).and_then(|found| {
            let Some(found) = found else { return Ok(None) };
            let (step, told) = found.identity();
            if let Some(first) = steps.get(&step) {
                let text = format!("it holds the same step as {} ({told})", first.display());
                return Err(text + " and would count twice");
            }
            steps.insert(step, path.clone());
            Ok(Some(found))
        });
        match read {
            Ok(None) => {}
            Ok(Some(FileContent::Measured(mut summary))) => {
                // The summaries of one server share these.
                summary.server.variables.share(&mut variables);
                summary.workload.share(&mut workloads);
                if let Some(status) = &mut summary.server.status {
                    share_names(&mut status.deltas, &mut names);
                    share_names(&mut status.gauges, &mut names);
                }
                summary.timeline.shrink_to_fit();
                each(&mut summary);
                loaded.summaries.push((path, *summary));
            }
            Ok(Some(FileContent::Imported(run))) => loaded.imported.push((path, *run)),
            Err(reason) => loaded.skipped.push((path, reason)),
        }
    }
    Ok(loaded)
}

fn file_error(path: &Path, error: &io::Error) -> Error {
    Error::usage(format!("{}: {error}", path.display()))
        .hint("name files that loadgen wrote, or the directory of its --out")
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if fs::metadata(path).map_err(|error| file_error(path, &error))?.is_dir() {
            files.extend(inside(path, ".json")?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// Lists the visible files of a directory with this ending, by name.
fn inside(dir: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let mut inside = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| file_error(dir, &error))? {
        let entry = entry.map_err(|error| file_error(dir, &error))?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        // Reading a pipe would block. A file that cannot be inspected fails when it is read.
        let file = || fs::metadata(entry.path()).map_or(true, |found| found.is_file());
        if name.ends_with(end.as_bytes()) && !name.starts_with(b".") && file() {
            inside.push(entry.path());
        }
    }
    inside.sort_unstable();
    Ok(inside)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

enum FileContent {
    Measured(Box<Summary>),
    Imported(Box<Imported>),
}

impl FileContent {
    /// Returns what only one file may hold, and a description of it.
    fn identity(&self) -> ((String, String), String) {
        match self {
            FileContent::Measured(summary) => {
                let description = format!("step_id {}", clip(&summary.step_id, TEXT_MAX));
                ((summary.step_id.clone(), summary.started_at.clone()), description)
            }
            FileContent::Imported(run) => {
                let description =
                    format!("run {} of {}", run.source.run, clip(&run.source.file, TEXT_MAX));
                ((run.source.sha256.clone(), run.source.run.to_string()), description)
            }
        }
    }
}

fn read(path: &Path, seen: &mut HashSet<(u64, u64)>) -> Result<Option<FileContent>, String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !seen.insert((metadata.dev(), metadata.ino())) {
        return Ok(None);
    }
    // Its text would take the memory before it is refused.
    if metadata.len() > FILE_MAX {
        return Err(describe_too_large());
    }
    let bytes = content(path, FILE_MAX).map_err(|error| error.to_string())?;
    match from_json(&bytes) {
        Err(_) if is_imported(&bytes) => {
            let run = serde_json::from_slice(&bytes).map_err(|error| located(&error))?;
            Ok(Some(FileContent::Imported(Box::new(run))))
        }
        read => read.map(|summary| Some(FileContent::Measured(Box::new(summary)))),
    }
}

/// Returns whether the `schema` of complete JSON is that of imported runs.
fn is_imported(bytes: &[u8]) -> bool {
    bytes.len() as u64 <= FILE_MAX
        && serde_json::from_slice::<Value>(bytes).is_ok_and(|value| value["schema"] == IMPORTED)
}

fn describe_too_large() -> String {
    let max = FILE_MAX >> 20;
    format!("it is larger than {max} MiB: use a shorter step, or a longer --interval")
}

/// Reads at most one byte more than `most`.
fn content(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a summary that [`to_json`] wrote; else returns why it is none, without control characters.
pub fn from_json(bytes: &[u8]) -> Result<Summary, String> {
    if bytes.len() as u64 > FILE_MAX {
        return Err(describe_too_large());
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err("it is empty".to_owned());
    }
    match serde_json::from_slice::<Summary>(bytes) {
        Ok(summary) if summary.schema == SCHEMA => Ok(summary),
        Ok(summary) => Err(foreign(&summary.schema)),
        Err(error) if error.is_data() => Err(schema_of(bytes).unwrap_or_else(|| located(&error))),
        Err(error) => Err(located(&error)),
    }
}

/// Explains the `schema` of complete JSON, if it is the reason for refusing it.
fn schema_of(bytes: &[u8]) -> Option<String> {
    match serde_json::from_slice::<Value>(bytes).map(|value| value["schema"].clone()) {
        Ok(Value::Null) => {
            Some("it is JSON without a \"schema\": loadgen did not write it".to_owned())
        }
        Ok(Value::String(schema)) => (schema != SCHEMA).then(|| foreign(&schema)),
        Ok(other) => Some(foreign(&other.to_string())),
        Err(error) => Some(located(&error)),
    }
}

/// Refuses a `schema` value that is not ours.
fn foreign(schema: &str) -> String {
    let schema = clip(schema, TEXT_MAX);
    let newer = |known| {
        format!("its schema is '{schema}'; this version reads '{known}': a newer loadgen wrote it")
    };
    if schema.starts_with("loadgen.summary/") {
        newer(SCHEMA)
    } else if schema == IMPORTED {
        format!("its schema is '{schema}': it was imported, and loadgen did not measure it")
    } else if schema.starts_with("loadgen.imported/") {
        newer(IMPORTED)
    } else {
        format!("its schema is '{schema}' and not '{SCHEMA}': it is no summary")
    }
}

fn located(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    format!("line {line}, column {column}: {}", clip(text, TEXT_MAX))
}

/// The record of a step that writes: durable from before its first write until its summary is. One that a
/// killed loadgen left names the tables with writes that no ledger has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    schema: String,
    pub step_id: String,
    /// RFC 3339 in UTC.
    pub begun_at: String,
    /// Its work, for people.
    pub what: String,
    /// The row of the table; old versions wrote no label.
    pub label: Option<String>,
    /// The workload as summaries name it; old versions wrote none.
    pub workload: Option<String>,
    /// The number of measured clients; old versions wrote none.
    pub clients: Option<u32>,
    /// True for a workload of loadgen's own; missing from old versions.
    #[serde(default)]
    pub built_in: bool,
    pub place: Location,
    /// The tables that it may write to: names and identities.
    pub tables: BTreeMap<String, String>,
}

/// The place of a server's tables. Copies of data have tables of one identity with two histories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub hostname: Option<String>,
    pub datadir: Option<String>,
    pub database: Option<String>,
}

impl Location {
    pub(crate) fn from_variables(
        variables: &BTreeMap<String, String>,
        database: Option<&str>,
    ) -> Location {
        let get = |name: &str| variables.get(name).cloned();
        let database = database.map(str::to_owned);
        Location { hostname: get("hostname"), datadir: get("datadir"), database }
    }

    /// Returns whether a part of both is known and differs.
    pub(crate) fn differs(&self, other: &Location) -> bool {
        let parts = |of: &Location| [of.hostname.clone(), of.datadir.clone(), of.database.clone()];
        let mut both = parts(self).into_iter().zip(parts(other));
        both.any(|(own, other)| own.zip(other).is_some_and(|(own, other)| own != other))
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
        write!(f, "{}:{}", or(&self.hostname), or(&self.datadir))?;
        self.database.as_ref().map_or(Ok(()), |database| write!(f, " {database}"))
    }
}

impl Record {
    pub(crate) fn new(
        step_id: String,
        what: String,
        built_in: bool,
        place: Location,
        tables: BTreeMap<String, String>,
    ) -> Record {
        let begun_at = jiff::Timestamp::now().to_string();
        let (schema, label, workload, clients) = (RECORD.to_owned(), None, None, None);
        Record {
            schema,
            step_id,
            begun_at,
            what,
            label,
            workload,
            clients,
            built_in,
            place,
            tables,
        }
    }

    /// Reads what `Store::begin_record` wrote.
    pub fn parse(bytes: &[u8]) -> Result<Record, &'static str> {
        if bytes.len() as u64 > RECORD_MAX {
            return Err("it is too large for a record");
        }
        match serde_json::from_slice::<Record>(bytes) {
            Ok(record) if record.schema == RECORD => Ok(record),
            Ok(_) => Err("it is of another version"),
            Err(_) => Err("it is no record of a step"),
        }
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().expect("a file of a directory").to_string_lossy();
    name.strip_suffix(SUFFIX).unwrap_or(&name).to_owned()
}

/// Reads the records in these directories, and beside these files. One that cannot be read is undecided.
pub fn records(paths: &[PathBuf]) -> Result<Vec<(String, Record)>> {
    let dir = |path: &PathBuf| if path.is_dir() { path.clone() } else { parent(path).to_owned() };
    let dirs: BTreeSet<PathBuf> = paths.iter().map(dir).collect();
    let mut found = Vec::new();
    for dir in dirs {
        for path in inside(&dir, SUFFIX)? {
            found.push((name_of(&path), read_record(&path)?));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn read_record(path: &Path) -> Result<Record> {
    let bytes = content(path, RECORD_MAX).map_err(|error| error.to_string());
    bytes.and_then(|bytes| Record::parse(&bytes).map_err(str::to_owned)).map_err(|why| {
        let text = format!("{}: {}: what it stands for is not known", path.display(), plain(&why));
        Error::new(Kind::Undecided, text).hint("move it away if loadgen did not write it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Group, Interval, Phase};

    #[test]
    fn summary_of_a_week_is_no_larger_than_what_is_read() {
        let interval = Interval {
            errors: 1_000_000,
            p50_us: Some(12_345.678),
            p99_us: Some(123_456.789),
            max_us: Some(1_234_567.891),
            response_p50_us: Some(12_345.678),
            response_p99_us: Some(123_456.789),
            response_max_us: Some(1_234_567.891),
            ..Interval::counted(Phase::Measure, 604_800.123_456_789, 1_000_000)
        };
        let bytes = |count: usize| {
            let timeline = vec![interval.clone(); count];
            let groups = vec![Group { timeline: timeline.clone(), ..Group::default() }];
            to_json(&Summary { groups, timeline, ..Summary::default() }).len() as u64
        };
        let (one, each) = (bytes(1), bytes(2) - bytes(1));
        let week = one + 7 * 24 * 3600 * each;
        assert!(week < FILE_MAX, "{week} bytes");
    }

    #[test]
    fn a_file_is_read_no_further_than_it_may_be_long() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("aa-1.begun");
        File::create(&path).and_then(|file| file.set_len(2 * RECORD_MAX)).expect("a hole");
        let read = content(&path, RECORD_MAX).expect("readable");
        assert_eq!(read.len() as u64, RECORD_MAX + 1);
        let error = records(&[path]).expect_err("too large");
        assert_eq!(error.kind(), Kind::Undecided);
        assert!(error.to_string().contains("aa-1.begun"), "{error}");
    }

    #[test]
    fn a_clash_takes_the_next_name_and_ends() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(dir.path()).expect("there already");
        fs::write(dir.path().join("a.json"), "taken").expect("writable");
        let mut names = ["a.json", "b.json"].into_iter();
        let next = |_| names.next().expect("two at most").to_owned();
        let path = store.persist("{}", next).expect("the second name");
        assert_eq!(path, dir.path().join("b.json"));
        assert_eq!(fs::read_to_string(dir.path().join("a.json")).expect("there"), "taken");
        let error = store.persist("{}", |_| "a.json".to_owned()).expect_err("always taken");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        let left = fs::read_dir(dir.path()).expect("a directory").count();
        assert_eq!(left, 2, "no temporary file stays");
    }

    #[test]
    fn what_cannot_be_synced_is_told_apart_from_what_fails() {
        // A device of characters has nothing to sync, as a directory of some file systems.
        let null = Path::new("/dev/null");
        assert_eq!(sync(null, true).map_err(|e| e.kind()), Err(ErrorKind::InvalidInput));
        assert!(sync(null, false).is_ok());
        let gone = Path::new("/nonexistent/results");
        assert_eq!(sync(gone, false).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
        for (dir, its) in [("results", "."), ("/a/b", "/a"), ("a/b/", "a"), ("/", ".")] {
            assert_eq!(parent(Path::new(dir)), Path::new(its));
        }
    }

    #[test]
    fn each_fault_of_a_disk_says_what_to_do() {
        for (kind, says, code) in [
            (ErrorKind::PermissionDenied, "permission denied", 2),
            (ErrorKind::ReadOnlyFilesystem, "read-only", 2),
            (ErrorKind::StorageFull, "no space left", 1),
            (ErrorKind::QuotaExceeded, "no space left", 1),
            (ErrorKind::TimedOut, "timed out", 1),
        ] {
            let error =
                unwritable((Path::new("/results"), "--out DIR"), &io::Error::from(kind), false);
            let text = error.render();
            assert!(text.contains(says) && text.contains("'/results'"), "{text}");
            assert!(text.contains("hint: ") && text.contains("--out"), "{text}");
            assert_eq!(error.kind().exit_code(), code, "{text}");
        }
    }

    #[test]
    fn a_directory_is_claimed_by_one_at_a_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let claim = |dir: &Path| claim(dir, Error::failed);
        let first = claim(dir.path()).expect("nobody has it");
        assert!(first.is_some());
        assert_eq!(claim(dir.path()).expect_err("it is taken").kind(), Kind::Failed);
        drop(first);
        assert!(claim(dir.path()).expect("it is free again").is_some());
        assert!(claim(&dir.path().join("none")).expect("nothing to claim").is_none());
    }

    fn record(step: &str) -> Record {
        let tables = [("sbtest1".to_owned(), "5f".to_owned())].into();
        Record::new(step.to_owned(), "update-index".to_owned(), true, Location::default(), tables)
    }

    #[test]
    fn records_are_there_until_they_are_superseded() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(dir.path()).expect("there");
        let (first, second) = (record("aa-1"), record("aa-1"));
        let one = store.begin_record(&first).expect("written");
        let two = store.begin_record(&second).expect("the same step again, after a kill");
        assert_ne!(one, two);
        let paths = [dir.path().join("some.json"), dir.path().to_owned()];
        let found = records(&paths).expect("readable");
        assert_eq!(found.len(), 2, "each directory once");
        assert!(one.starts_with("aa-1-") && two.len() == "aa-1-".len() + 8);
        store.write(&Summary { record: Some(one), ..Summary::default() }).expect("written");
        assert_eq!(records(&paths).expect("readable"), [(two, second)]);
    }

    #[test]
    fn without_a_record_a_step_does_not_begin() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(dir.path()).expect("there");
        dir.close().expect("removed");
        let error = store.begin_record(&record("aa-1")).expect_err("no directory");
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
            Location { hostname: some(host), datadir: some(dir), database: None }
        };
        assert!(place("a", "/x").differs(&place("a", "/y")));
        assert!(place("a", "/x").differs(&place("b", "/x")));
        assert!(!place("a", "/x").differs(&place("a", "/x")));
        assert!(!place("", "").differs(&place("a", "/x")));
        let within = |name: &str| Location { database: Some(name.to_owned()), ..place("a", "/x") };
        assert!(within("one").differs(&within("other")) && !within("one").differs(&within("one")));
        assert!(!within("one").differs(&place("a", "/x")), "of an old version");
        assert_eq!(within("one").to_string(), "a:/x one");
    }
}
