//! A sandbox's directory: what lies where, the options that every run of its server shares, and data
//! that is copied into it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Start;
use crate::error::{Error, Kind, Result};

/// The longest path of a Unix socket in bytes, without its terminating zero.
const SOCKET_PATH_MAX: usize = 107;

/// What a start must not inherit: the list of pages that were cached (servers from MySQL 5.7 and
/// MariaDB 10.2 on would read them again, others would not), and the server's identity.
const LEFT_BEHIND: [&str; 2] = ["ib_buffer_pool", "auto.cnf"];

/// A sandbox's directory, and what lies in it; the data may lie elsewhere, and stays there then.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) data: PathBuf,
    pub(super) socket: PathBuf,
    pub(super) pid_file: PathBuf,
    /// The server's temporary files, and what it may import.
    scratch: PathBuf,
}

impl Directory {
    pub(super) fn new(path: PathBuf, data: Option<PathBuf>) -> Directory {
        Directory {
            data: data.unwrap_or_else(|| path.join("data")),
            socket: path.join("mysqld.sock"),
            pid_file: path.join("mysqld.pid"),
            scratch: path.join("tmp"),
            path,
        }
    }

    /// Chooses one that does not exist yet, below TMPDIR.
    pub(super) fn choose(data: Option<PathBuf>) -> Result<Directory> {
        let wanted = env::temp_dir();
        let base = fs::canonicalize(&wanted).map_err(|e| {
            Error::usage(format!("TMPDIR={}: {e}", wanted.display()))
                .hint("name a directory that exists")
        })?;
        Ok(Directory::new(below(&base)?, data))
    }

    pub(super) fn furnish(&self) -> Result<()> {
        for dir in [&self.data, &self.scratch] {
            fs::create_dir_all(dir).map_err(|e| {
                Error::server(format!("sandbox: cannot make {}: {e}", dir.display()))
            })?;
        }
        Ok(())
    }

    /// The options of every run: no option file of this machine, every file in the directory.
    /// Some builds insist on a directory for imports that only their package makes.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![
            "--no-defaults".into(),
            with("--datadir=", &self.data),
            with("--tmpdir=", &self.scratch),
            with("--secure-file-priv=", &self.scratch),
            with("--pid-file=", &self.pid_file),
        ];
        // The servers refuse to run as root by accident, and nobody else may change the user.
        if nix::unistd::geteuid().is_root() {
            arguments.push("--user=root".into());
        }
        arguments
    }
}

/// An option with a path.
pub(super) fn with(name: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(name);
    argument.push(path);
    argument
}

/// Names a directory below another one, or below /tmp if the socket's path became too long.
fn below(base: &Path) -> Result<PathBuf> {
    let number =
        getrandom::u64().map_err(|e| Error::failed(format!("sandbox: no random number: {e}")))?;
    let name = format!("loadgen-{number:016x}");
    let path = base.join(&name);
    let fits = Directory::new(path.clone(), None).socket.as_os_str().len() <= SOCKET_PATH_MAX;
    Ok(if fits { path } else { Path::new("/tmp").join(name) })
}

/// Makes a start in a directory as cold as one in a copy of it. Initialising leaves a list, too.
pub(super) fn forget(data: &Path) {
    // Most often there is none.
    let _ = fs::remove_file(data.join(LEFT_BEHIND[0]));
}

/// Copies a data directory that no server uses into another one, which is there. On a file system that
/// shares blocks the kernel copies none.
pub(super) fn copy(from: &Path, to: &Path, start: &mut Start<'_>) -> Result<()> {
    let failed = |path: &Path, e: io::Error| {
        Error::server(format!("sandbox: cannot copy {} to {}: {e}", path.display(), to.display()))
            .hint("TMPDIR names another place for sandboxes")
    };
    for entry in fs::read_dir(from).map_err(|e| failed(from, e))? {
        if (start.interrupted)() {
            return Err(Error::new(Kind::Interrupted, "interrupted: sandbox: copying its data"));
        }
        let entry = entry.map_err(|e| failed(from, e))?;
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().map_err(|e| failed(&path, e))?;
        let target = to.join(&name);
        if kind.is_dir() {
            fs::create_dir(&target).map_err(|e| failed(&path, e))?;
            copy(&path, &target, start)?;
        } else if kind.is_file() && !LEFT_BEHIND.iter().any(|left| name == *left) {
            fs::copy(&path, &target).map_err(|e| failed(&path, e))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_directories_are_alike() {
        let (one, other) = (Directory::choose(None).unwrap(), Directory::choose(None).unwrap());
        assert_ne!(one.path, other.path);
        assert!(!one.path.exists());
    }

    #[test]
    fn the_path_of_the_socket_always_fits() {
        for length in [1, 60, 70, 71, 72, 200] {
            let base = PathBuf::from(format!("/{}", "x".repeat(length)));
            let path = below(&base).unwrap();
            assert_eq!(path.starts_with(&base), length <= 69, "{length}");
            let socket = Directory::new(path, None).socket;
            assert!(socket.as_os_str().len() <= SOCKET_PATH_MAX, "{length}");
        }
    }

    #[test]
    fn no_option_file_is_the_first_option() {
        let directory = Directory::new("/x".into(), None);
        assert_eq!(directory.arguments().first().unwrap(), "--no-defaults");
    }

    #[test]
    fn the_whole_tree_is_copied_but_for_what_a_start_must_not_inherit() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("sbtest")).unwrap();
        for name in ["ibdata1", "sbtest/sbtest1.ibd", "ib_buffer_pool", "auto.cnf"] {
            fs::write(from.path().join(name), name).unwrap();
        }
        let stop = std::cell::Cell::new(false);
        let (mut say, interrupted) = (|_: &str| {}, || stop.get());
        let mut start = Start::test(&mut say, &interrupted);
        copy(from.path(), to.path(), &mut start).unwrap();
        let text = |name: &str| fs::read_to_string(to.path().join(name)).unwrap_or_default();
        assert_eq!(text("sbtest/sbtest1.ibd"), "sbtest/sbtest1.ibd");
        assert_eq!((text("ibdata1").as_str(), text("ib_buffer_pool").as_str()), ("ibdata1", ""));
        stop.set(true);
        let error = copy(from.path(), to.path(), &mut start).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted);
    }
}
