//! What lies where in a sandbox's directory, and the options that every run of its server
//! shares.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The longest path of a Unix socket in bytes, without its terminating zero.
const SOCKET_PATH_MAX: usize = 107;

/// A sandbox's directory.
#[derive(Debug)]
pub(super) struct Layout {
    dir: PathBuf,
    /// Of data that lies elsewhere and stays.
    data: Option<PathBuf>,
}

impl Layout {
    pub(super) fn new(dir: PathBuf) -> Layout {
        Layout { dir, data: None }
    }

    /// With the data in a directory that outlives the sandbox.
    pub(super) fn with_data(self, data: Option<PathBuf>) -> Layout {
        Layout { data, ..self }
    }

    /// A directory that does not exist yet, below TMPDIR.
    pub(super) fn choose() -> Result<Layout> {
        let wanted = env::temp_dir();
        let base = fs::canonicalize(&wanted).map_err(|e| {
            Error::usage(format!("TMPDIR={}: {e}", wanted.display()))
                .hint("name a directory that exists")
        })?;
        Layout::below(&base)
    }

    /// A directory below another one, or below /tmp if the socket's path became too long.
    fn below(base: &Path) -> Result<Layout> {
        let number = getrandom::u64()
            .map_err(|e| Error::failed(format!("sandbox: no random number: {e}")))?;
        let name = format!("loadgen-{number:016x}");
        let layout = Layout::new(base.join(&name));
        if layout.socket().as_os_str().len() <= SOCKET_PATH_MAX {
            return Ok(layout);
        }
        Ok(Layout::new(Path::new("/tmp").join(name)))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| self.dir.join("data"))
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.dir.join("mysqld.sock")
    }

    pub(super) fn pid_file(&self) -> PathBuf {
        self.dir.join("mysqld.pid")
    }

    /// Where the server keeps its temporary files and may import from.
    fn scratch(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// Makes the directories that the server expects.
    pub(super) fn furnish(&self) -> Result<()> {
        for dir in [self.data(), self.scratch()] {
            match fs::create_dir(&dir) {
                Err(e)
                    if e.kind() == ErrorKind::AlreadyExists && Some(&dir) == self.data.as_ref() => {
                }
                made => made.map_err(|e| {
                    Error::server(format!("sandbox: cannot make {}: {e}", dir.display()))
                })?,
            }
        }
        Ok(())
    }

    /// The options of every run: no option file of this machine, every file in the directory.
    /// Some builds insist on a directory for imports that only their package makes.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let with = |name: &str, path: PathBuf| {
            let mut argument = OsString::from(name);
            argument.push(path);
            argument
        };
        let mut arguments = vec![
            "--no-defaults".into(),
            with("--datadir=", self.data()),
            with("--tmpdir=", self.scratch()),
            with("--secure-file-priv=", self.scratch()),
            with("--pid-file=", self.pid_file()),
        ];
        // The servers refuse to run as root by accident, and nobody else may change the user.
        if nix::unistd::geteuid().is_root() {
            arguments.push("--user=root".into());
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_directories_are_alike() {
        let (one, other) = (Layout::choose().unwrap(), Layout::choose().unwrap());
        assert_ne!(one.dir(), other.dir());
        assert!(!one.dir().exists());
    }

    #[test]
    fn the_path_of_the_socket_always_fits() {
        for length in [1, 60, 70, 71, 72, 200] {
            let base = PathBuf::from(format!("/{}", "x".repeat(length)));
            let layout = Layout::below(&base).unwrap();
            assert!(layout.socket().as_os_str().len() <= SOCKET_PATH_MAX, "{length}");
            assert_eq!(layout.dir().starts_with(&base), length <= 69, "{length}");
        }
    }

    #[test]
    fn no_option_file_is_the_first_option() {
        let layout = Layout::new("/x".into());
        assert_eq!(layout.arguments().first().unwrap(), "--no-defaults");
    }
}
