//! The calibration that is kept, and whether it says anything about this run.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::engine;
use crate::error::{Error, Result};
use crate::judge::{CalibratedHost, Calibration};
use crate::observe::host;
use crate::progress::Progress;
use crate::workload::random::{mix, name_part};

/// Names the file.
const VARIABLE: &str = "LOADGEN_CALIBRATION";
/// Where it is kept below the directory for state.
const FILE: &str = "loadgen/calibration.json";
/// A larger file is something else.
const BYTES_MAX: u64 = 1 << 20;

/// The file: as the flag says, the variable, else that of the XDG base directories.
fn path(flag: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let of = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The specification has relative paths ignored.
    let absolute = |path: &PathBuf| path.is_absolute();
    flag.map(Path::to_owned)
        .or_else(|| of(VARIABLE))
        .or_else(|| Some(of("XDG_STATE_HOME").filter(absolute)?.join(FILE)))
        .or_else(|| Some(of("HOME").filter(absolute)?.join(".local/state").join(FILE)))
}

/// The kept calibration, where it says something about this program on this host. One that does
/// not, or cannot be read, is named; that there is none is no news, unless the flag names it.
pub(crate) fn find(flag: Option<&Path>, progress: &mut Progress) -> Option<Calibration> {
    let path = path(flag, |name| std::env::var_os(name))?;
    let unused = match read(&path) {
        Ok(None) if flag.is_none() => return None,
        Ok(None) => "there is none".to_owned(),
        Err(why) => why,
        Ok(Some(calibration)) => {
            let age = calibration.ended_at.parse().ok().and_then(age_days);
            let here = this_host(Path::new(host::ROOT));
            match calibration.unfit(&engine::program(), &here, age) {
                None => return Some(calibration),
                Some(why) => why,
            }
        }
    };
    progress.warn(&format!(
        "the calibration {} is not used: {unused}; loadgen calibrate makes a new one",
        path.display()
    ));
    None
}

fn age_days(at: jiff::Timestamp) -> Option<i64> {
    let seconds = jiff::Timestamp::now().as_second() - at.as_second();
    // Clocks are set by a little.
    (seconds >= -3600).then_some(seconds / 86_400)
}

/// None where there is no such file; what is wrong with it otherwise.
fn read(path: &Path) -> std::result::Result<Option<Calibration>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map(Some).map_err(|e| format!("it is none ({e})"))
}

/// Makes the directory, and returns the file.
pub(super) fn prepare(flag: Option<&Path>) -> Result<PathBuf> {
    let path = path(flag, |name| std::env::var_os(name)).ok_or_else(|| {
        Error::usage("there is no place to keep the calibration: HOME is not set")
            .hint("--calibration FILE")
    })?;
    fs::create_dir_all(directory(&path)).map_err(|e| refused(&path, &e))?;
    Ok(path)
}

/// Writes it whole, in place of an earlier one.
pub(super) fn keep(path: &Path, calibration: &Calibration) -> Result<()> {
    let mut json = serde_json::to_string_pretty(calibration)
        .map_err(|e| Error::failed(format!("the calibration: {e}")))?;
    json.push('\n');
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(directory(path))?;
        file.write_all(json.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)
    };
    write().map(|_| ()).map_err(|e| refused(path, &e))
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn refused(path: &Path, error: &std::io::Error) -> Error {
    Error::failed(format!("cannot keep the calibration in {}: {error}", path.display()))
        .hint("--calibration FILE keeps it elsewhere")
}

/// What tells this host from others, read below `root`.
pub(super) fn this_host(root: &Path) -> CalibratedHost {
    let facts = host::facts(root);
    let id = fs::read_to_string(root.join("etc/machine-id")).unwrap_or_default();
    let id = id.trim();
    CalibratedHost {
        // machine-id(5) wants it hashed.
        id: (!id.is_empty()).then(|| format!("{:016x}", mix(name_part(id)))),
        name: facts.name,
        kernel: facts.kernel,
        cpu: facts.cpu,
        cores: facts.cores_usable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_before_the_variable_and_that_before_the_usual_place() {
        let of = |flag: Option<&str>, set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let path = path(flag.map(Path::new), variable);
            path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let home = ("HOME", "/h");
        let (state, own) = (("XDG_STATE_HOME", "/s"), ("LOADGEN_CALIBRATION", "own.json"));
        assert_eq!(of(Some("f.json"), &[home, state, own]), "f.json");
        assert_eq!(of(None, &[home, state, own]), "own.json");
        assert_eq!(of(None, &[home, state]), "/s/loadgen/calibration.json");
        assert_eq!(of(None, &[home]), "/h/.local/state/loadgen/calibration.json");
        assert_eq!(of(None, &[home, ("XDG_STATE_HOME", "s")]), of(None, &[home]));
        assert_eq!(of(None, &[home, ("LOADGEN_CALIBRATION", "")]), of(None, &[home]));
        assert_eq!(of(None, &[]), "");
    }

    #[test]
    fn what_is_kept_is_found_again_and_damage_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a.json");
        assert_eq!(read(&path), Ok(None));
        let calibration = Calibration {
            schema: crate::judge::CALIBRATION.to_owned(),
            loadgen: engine::program(),
            host: this_host(dir.path()),
            started_at: String::new(),
            ended_at: jiff::Timestamp::now().to_string(),
            steps: Vec::new(),
        };
        keep(&path, &calibration).expect("kept");
        keep(&path, &calibration).expect("kept once more");
        assert_eq!(read(&path), Ok(Some(calibration)));
        fs::write(&path, "{}").expect("written");
        assert!(read(&path).is_err_and(|why| why.starts_with("it is none")));
        assert!(read(dir.path()).is_err(), "a directory");
    }

    #[test]
    fn the_machine_id_is_not_told() {
        let root = tempfile::tempdir().expect("a directory");
        assert_eq!(this_host(root.path()).id, None);
        fs::create_dir(root.path().join("etc")).expect("a directory");
        let id = "4e4e7ebc6a1d4b0c9d0b5f6a7c8d9e0f";
        fs::write(root.path().join("etc/machine-id"), format!("{id}\n")).expect("a file");
        let shown = this_host(root.path()).id.expect("there is one");
        assert!(shown.len() == 16 && !id.contains(&shown), "{shown}");
    }
}
