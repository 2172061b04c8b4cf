//! Writing: a summary, or the record of a step, appears whole, under a name of its own, or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use super::Summary;
use super::read::parent;
use super::record::{Record, Recorded, SUFFIX};
use crate::error::{Error, Kind, Result, drives_terminal};

/// Longest part of a file name that comes from a label or a workload, bytes.
const PART_MAX: usize = 64;
/// Eight random digits clash once in four billion: more than a few in a row is another fault.
const NAMES_MAX: usize = 8;

/// The directory that summaries go to.
///
/// Opened before the first step, so that an hour of measuring does not end at a read-only disk.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// Creates the directory where it is missing (its parent must be there: a typing error
    /// should not grow a tree) and proves that files can be written in it.
    ///
    /// # Errors
    ///
    /// A file in the way, no parent, no permission, a read-only or full file system.
    pub fn open(dir: &Path) -> Result<Store> {
        if dir.as_os_str().is_empty() {
            return Err(Error::usage("the directory for the summaries has an empty name")
                .hint("--out results, or --out . for the current directory"));
        }
        let made = match fs::create_dir(dir) {
            // Its own name is durable only with the directory that it is in. What is not goes: else
            // the same command would find it there, and not ask again.
            Ok(()) => sync_if_possible(parent(dir)).inspect_err(|_| drop(fs::remove_dir(dir))),
            // Also a symbolic link to a directory; anything else the trial below refuses.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        };
        made.and_then(|()| trial(dir)).map_err(|error| unwritable(dir, &error, false))?;
        Ok(Store { dir: dir.to_owned() })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes one summary durably and returns its path. Existing files are never replaced.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, the hint says that the JSON follows on standard output:
    /// the caller prints [`to_json`], so that the step is not lost.
    pub fn write(&self, summary: &Summary) -> Result<PathBuf> {
        let name = |hex| file_name(summary, hex);
        self.put(&to_json(summary), name, sync_if_possible).map_err(|error| {
            let text = format!("the summary of step {} was not saved", summary.step_id);
            let save = format!("it follows on standard output instead; save it as {}", name(0));
            error.context(text).hint(save)
        })
    }

    /// Writes a record, durable when this returns.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or its directory not be synced: then the step must not begin.
    pub(crate) fn begin(&self, record: &Record) -> Result<Recorded> {
        let step = &record.step_id;
        let json = serde_json::to_string_pretty(record).expect("its maps have string keys") + "\n";
        let why = || format!("no record of step {step} could be made, so that it was not begun");
        let path = self.put(&json, |hex| format!("{step}-{hex:08x}{SUFFIX}"), sync);
        let path = path.map_err(|error| error.context(why()))?;
        Ok(Recorded { path })
    }

    /// Writes a file, under a name with eight random digits; one whose name is not durable is taken
    /// away again. The command line was right when the step began, so it is the step that fails.
    fn put(
        &self,
        text: &str,
        name: impl Fn(u32) -> String,
        sync: fn(&Path) -> io::Result<()>,
    ) -> Result<PathBuf> {
        let named = self.persist(text, || Ok(name(getrandom::u32()?)));
        let durable = named.and_then(|path| match sync(&self.dir) {
            Ok(()) => Ok(path),
            Err(error) => {
                // The first error is the cause.
                let _ = fs::remove_file(path);
                Err(error)
            }
        });
        durable.map_err(|error| unwritable(&self.dir, &error, true))
    }

    /// Writes a temporary file, syncs it and gives it the first name that is free.
    fn persist(
        &self,
        text: &str,
        mut name: impl FnMut() -> io::Result<String>,
    ) -> io::Result<PathBuf> {
        let mut file = temporary(&self.dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        for _ in 0..NAMES_MAX {
            let path = self.dir.join(name()?);
            match file.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(clash) if clash.error.kind() == ErrorKind::AlreadyExists => file = clash.file,
                Err(failed) => return Err(failed.error),
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "every file name that was tried is taken"))
    }
}

/// Makes a file that vanishes unless it is given a name; its suffix keeps readers away from what a
/// crash leaves. Readable by whom the umask allows: results are shared.
fn temporary(dir: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".loadgen-").suffix(".tmp").permissions(Permissions::from_mode(0o666));
    builder.tempfile_in(dir)
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Does the same but for file systems that cannot: what is in a summary is whole either way. A step
/// that writes needs its record to be durable, and does not begin there.
fn sync_if_possible(dir: &Path) -> io::Result<()> {
    match sync(dir) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Writes as much as a summary takes, then takes it away.
fn trial(dir: &Path) -> io::Result<()> {
    let mut file = temporary(dir)?;
    file.write_all(&vec![b' '; 64 << 10])?;
    file.as_file().sync_all()?;
    file.close()?;
    sync_if_possible(dir)
}

/// Says whose fault an input/output error is, what it means, and what its reader can do about it.
fn unwritable(dir: &Path, error: &io::Error, begun: bool) -> Error {
    let (shown, told) = (dir.display(), error.to_string());
    let other = "--out DIR names another directory".to_owned();
    let (kind, what, hint) = match error.kind() {
        ErrorKind::NotFound => {
            let gone = parent(dir).is_dir();
            let of = if gone {
                "the directory went away"
            } else {
                "its parent directory does not exist"
            };
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
        _ => (Kind::Failed, told.as_str(), other),
    };
    let kind = if begun { Kind::Failed } else { kind };
    Error::new(kind, format!("summaries cannot be written to '{shown}': {what}")).hint(hint)
}

/// Names a summary's file: for people, and never parsed. `hex` keeps two steps of one second apart.
pub fn file_name(summary: &Summary, hex: u32) -> String {
    let plan = &summary.plan;
    let rate = plan.rate.map_or_else(String::new, |rate| format!("_r{}", part(&rate.to_string())));
    let start = summary.started_at.parse::<jiff::Timestamp>();
    let start = start.map(|start| start.strftime("%Y%m%dT%H%M%SZ").to_string());
    format!(
        "{}_{}_{}_c{}{rate}_n{}_{hex:08x}.json",
        start.unwrap_or_else(|_| "undated".to_owned()),
        part(&summary.label),
        part(&summary.workload.name),
        plan.clients,
        plan.repeat_index,
    )
}

/// Makes a text a part of a file name: no separators, quotes, spaces or anything that a shell, a
/// terminal or another file system could take amiss.
pub(crate) fn part(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "+-.=@".contains(c) { c } else { '_' };
    let part: String = text.chars().take(PART_MAX).map(safe).collect();
    if part.is_empty() { "_".to_owned() } else { part }
}

/// Makes the JSON of a summary's file, indented and with a line end. Control characters and
/// bidirectional overrides of foreign texts are escaped, so that it can go to a terminal; a reader
/// of the JSON gets them back.
pub fn to_json(summary: &Summary) -> String {
    escape_hostile(serde_json::to_string_pretty(summary).expect("its maps have string keys") + "\n")
}

/// Escapes in the strings of JSON what a terminal acts upon. Outside of strings there is none of it,
/// so that an escape is right wherever one is found.
pub(crate) fn escape_hostile(json: String) -> String {
    let hostile = |c: char| drives_terminal(c) && c != '\n';
    if !json.contains(hostile) {
        return json;
    }
    // All of them are in the basic plane: one escape, no surrogates.
    let escape = |c| if hostile(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    json.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clash_takes_the_next_name_and_ends() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(dir.path()).expect("there already");
        fs::write(dir.path().join("a.json"), "taken").expect("writable");
        let mut names = ["a.json", "b.json"].into_iter();
        let next = || names.next().map(str::to_owned).ok_or_else(|| ErrorKind::Other.into());
        let path = store.persist("{}", next).expect("the second name");
        assert_eq!(path, dir.path().join("b.json"));
        assert_eq!(fs::read_to_string(dir.path().join("a.json")).expect("there"), "taken");
        let error = store.persist("{}", || Ok("a.json".to_owned())).expect_err("always taken");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        let left = fs::read_dir(dir.path()).expect("a directory").count();
        assert_eq!(left, 2, "no temporary file stays");
    }

    #[test]
    fn what_cannot_be_synced_is_told_apart_from_what_fails() {
        // A device of characters has nothing to sync, as a directory of some file systems.
        let null = Path::new("/dev/null");
        assert_eq!(sync(null).map_err(|e| e.kind()), Err(ErrorKind::InvalidInput));
        assert!(sync_if_possible(null).is_ok());
        let gone = Path::new("/nonexistent/results");
        assert_eq!(sync_if_possible(gone).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
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
            let error = unwritable(Path::new("/results"), &io::Error::from(kind), false);
            let text = error.render();
            assert!(text.contains(says) && text.contains("'/results'"), "{text}");
            assert!(text.contains("hint: ") && text.contains("--out"), "{text}");
            assert_eq!(error.kind().exit_code(), code, "{text}");
        }
    }
}
