//! Reading: files and directories of summaries, the damaged ones named.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{SCHEMA, Summary};
use crate::error::{Error, Result, clip};
use crate::terms::named;

/// Largest file that is read, bytes. An hour's timeline of seconds takes less than one MiB.
const FILE_MAX: u64 = 64 << 20;
/// Refused files that an error names.
const NAMED_MAX: usize = 10;
/// Longest foreign text in a message, characters.
const TEXT_MAX: usize = 200;

/// What [`load`] found.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The summaries with their files: paths in the order given, a directory's by name.
    pub summaries: Vec<(PathBuf, Summary)>,
    /// Files that were left out, with the reason; empty unless bad files are skipped.
    pub skipped: Vec<(PathBuf, String)>,
}

impl Loaded {
    /// Gives the summaries alone, as [`crate::report::render`] takes them.
    pub fn steps(&self) -> Vec<&Summary> {
        self.summaries.iter().map(|(_, summary)| summary).collect()
    }
}

/// Reads summaries from files and directories (their `*.json`, without what lies deeper or is
/// hidden). A file that is named twice counts once.
///
/// # Errors
///
/// A path that does not exist is a usage error. A file that is no complete summary, or holds a
/// step that another file holds too, is refused unless `skip_bad`; so is finding nothing.
pub fn load(paths: &[PathBuf], skip_bad: bool) -> Result<Loaded> {
    let loaded = collect(paths)?;
    if !skip_bad && !loaded.skipped.is_empty() {
        return Err(refusal(&loaded.skipped));
    }
    if loaded.summaries.is_empty() {
        return Err(nothing(paths, &loaded.skipped));
    }
    Ok(loaded)
}

/// Reads all that [`load`] would, and says what it would refuse; it may be nothing.
///
/// # Errors
///
/// A path that does not exist is a usage error.
pub fn collect(paths: &[PathBuf]) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    let mut seen = HashSet::new();
    // Two invocations that continue one run at once give their steps the same names.
    let mut steps: HashMap<(String, String), PathBuf> = HashMap::new();
    for path in files(paths)? {
        let read = read(&path, &mut seen).and_then(|summary| {
            let Some(summary) = summary else { return Ok(None) };
            let step = (summary.step_id.clone(), summary.started_at.clone());
            if let Some(first) = steps.get(&step) {
                let (first, id) = (first.display(), clip(&summary.step_id, TEXT_MAX));
                return Err(format!(
                    "it holds the same step as {first} (step_id {id}) and would count twice"
                ));
            }
            steps.insert(step, path.clone());
            Ok(Some(summary))
        });
        match read {
            Ok(summary) => loaded.summaries.extend(summary.map(|summary| (path, summary))),
            Err(reason) => loaded.skipped.push((path, reason)),
        }
    }
    Ok(loaded)
}

fn refused(path: &Path, error: &io::Error) -> Error {
    Error::usage(format!("{}: {error}", path.display()))
        .hint("name files that loadgen wrote, or the directory of its --out")
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if fs::metadata(path).map_err(|error| refused(path, &error))?.is_dir() {
            files.extend(inside(path, ".json")?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// Lists the files of a directory whose names end so, but for hidden ones, by name.
pub(super) fn inside(dir: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let mut inside = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| refused(dir, &error))? {
        let entry = entry.map_err(|error| refused(dir, &error))?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        // A pipe would be waited for. What cannot be looked at is named when it is read.
        let file = || fs::metadata(entry.path()).map_or(true, |found| found.is_file());
        if name.ends_with(end.as_bytes()) && !name.starts_with(b".") && file() {
            inside.push(entry.path());
        }
    }
    inside.sort_unstable();
    Ok(inside)
}

/// Gives the directory that a path is in.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Reads one file: its summary, nothing when its file was read before, or why it is refused.
fn read(
    path: &Path,
    seen: &mut HashSet<(u64, u64)>,
) -> std::result::Result<Option<Summary>, String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !seen.insert((metadata.dev(), metadata.ino())) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    from_json(&bytes).map(Some)
}

/// Reads a summary from the bytes of its file: what [`super::to_json`] wrote.
///
/// # Errors
///
/// Why they are none, without control characters.
pub fn from_json(bytes: &[u8]) -> std::result::Result<Summary, String> {
    if bytes.len() as u64 > FILE_MAX {
        return Err(format!("it is larger than {} MiB, no summary is", FILE_MAX >> 20));
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

/// Says what the `schema` of complete JSON is, where that is the reason for refusing it.
fn schema_of(bytes: &[u8]) -> Option<String> {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(object)) => match object.get("schema") {
            None | Some(Value::Null) => {
                Some("it is JSON without a \"schema\": loadgen did not write it".to_owned())
            }
            Some(Value::String(schema)) => (schema != SCHEMA).then(|| foreign(schema)),
            Some(other) => Some(foreign(&other.to_string())),
        },
        Ok(_) => Some("it is JSON, but no object: loadgen did not write it".to_owned()),
        Err(error) => Some(located(&error)),
    }
}

/// Refuses a `schema` value that is not ours.
fn foreign(schema: &str) -> String {
    let schema = clip(schema, TEXT_MAX);
    if schema.starts_with("loadgen.summary/") {
        format!("its schema is '{schema}'; this version reads '{SCHEMA}': a newer loadgen wrote it")
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

fn refusal(bad: &[(PathBuf, String)]) -> Error {
    let told = |(path, why): &(PathBuf, String)| format!("{}: {why}", path.display());
    let told: Vec<String> = bad.iter().map(told).collect();
    let text = match told.as_slice() {
        [one] => one.clone(),
        all => {
            let count = all.len();
            format!("{count} files cannot be used:\n  {}", named(told, NAMED_MAX, "\n  "))
        }
    };
    Error::data(text).hint("--skip-bad leaves such files out")
}

fn nothing(paths: &[PathBuf], skipped: &[(PathBuf, String)]) -> Error {
    let paths = paths.iter().map(|path| path.display().to_string()).collect();
    let but = skipped.first().map_or_else(String::new, |(path, reason)| {
        format!("; {} skipped, the first: {}: {reason}", skipped.len(), path.display())
    });
    let message = format!("no summaries in {}{but}", named(paths, NAMED_MAX, ", "));
    Error::data(message).hint("a sweep writes them to its --out directory (results by default)")
}
