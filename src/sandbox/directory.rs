//! Directories of sandboxes, and of data that go away with loadgen.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::keeper::Keeper;
use crate::error::{Error, Result};

/// The longest path of a Unix socket in bytes, without its terminating zero.
const SOCKET_PATH_MAX: usize = 107;

/// A sandbox's directory; the data may be elsewhere, and then stays.
pub(super) struct Directory {
    pub path: PathBuf,
    pub data: PathBuf,
    pub socket: PathBuf,
    pub pid_file: PathBuf,
    pub scratch: PathBuf,
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

    pub(super) fn choose(data: Option<&Path>) -> Result<Directory> {
        Directory::below(&temporary_base()?, data)
    }

    /// Names a directory below another one, or below /tmp if the socket's path is too long.
    fn below(base: &Path, data: Option<&Path>) -> Result<Directory> {
        let name = random_name("loadgen-")?;
        let directory_below =
            |base: &Path| Directory::new(base.join(&name), data.map(Path::to_owned));
        Ok(match directory_below(base) {
            fits if fits.socket.as_os_str().len() <= SOCKET_PATH_MAX => fits,
            _ => directory_below(Path::new("/tmp")),
        })
    }
}

/// A new directory for data, which a keeper removes however loadgen ends.
#[derive(Debug)]
pub(crate) struct PassingDir(Keeper);

impl PassingDir {
    pub(crate) fn make() -> Result<PassingDir> {
        let path = temporary_base()?.join(random_name("loadgen-data-")?);
        Keeper::start(path, 0).map(PassingDir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.dir
    }
}

fn temporary_base() -> Result<PathBuf> {
    find_base(env::temp_dir())
}

fn find_base(named: PathBuf) -> Result<PathBuf> {
    // Other programs take an empty TMPDIR for none.
    let wanted = if named.as_os_str().is_empty() { PathBuf::from("/tmp") } else { named };
    let base = fs::canonicalize(&wanted).map_err(|e| {
        Error::usage(format!("TMPDIR={}: {e}", wanted.display()))
            .hint("name a directory that exists")
    })?;
    check_base(&base).map(|()| base)
}

/// Refuses a directory that no option can name, and one that a server would read as two: its option tmpdir is a list.
fn check_base(base: &Path) -> Result<()> {
    let Some(text) = base.to_str() else {
        let text = format!("TMPDIR={}: the path is no UTF-8", base.display());
        return Err(Error::usage(text).hint("name another directory"));
    };
    if !text.contains(':') {
        return Ok(());
    }
    let text = format!("TMPDIR={text}: a server reads : as the end of a directory");
    Err(Error::usage(text).hint("name a directory without : in its path"))
}

fn random_name(prefix: &str) -> Result<String> {
    let number =
        getrandom::u64().map_err(|e| Error::failed(format!("sandbox: no random number: {e}")))?;
    Ok(format!("{prefix}{number:016x}"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;
    use crate::error::Kind;

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
            let directory = Directory::below(&base, None).unwrap();
            assert_eq!(directory.path.starts_with(&base), length <= 69, "{length}");
            assert!(directory.socket.as_os_str().len() <= SOCKET_PATH_MAX, "{length}");
        }
    }

    #[test]
    fn temporary_directory_is_the_usual_one_when_the_variable_is_empty() {
        assert_eq!(find_base(PathBuf::new()).unwrap(), fs::canonicalize("/tmp").unwrap());
        let missing = find_base(PathBuf::from("/nowhere/at/all")).expect_err("it is missing");
        assert_eq!(missing.kind(), Kind::Usage);
    }

    #[test]
    fn temporary_directory_is_refused_when_a_server_would_read_two() {
        assert!(check_base(Path::new("/a/b")).is_ok());
        assert_eq!(check_base(Path::new("/a:b")).expect_err("a list").kind(), Kind::Usage);
    }

    #[test]
    fn temporary_directory_is_refused_when_no_option_can_name_it() {
        let base = Path::new(OsStr::from_bytes(b"/a\xff"));
        assert_eq!(check_base(base).expect_err("no UTF-8").kind(), Kind::Usage);
    }
}
