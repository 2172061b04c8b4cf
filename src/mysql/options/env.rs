//! What the world around the process says: variables, files, sockets. A value, so that the tests
//! of [`super::resolve`] bring their own world.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Secret, handover};
use crate::error::{Error, Result};

/// The largest option file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A question about a path.
pub(crate) type OfPath<T> = Box<dyn Fn(&Path) -> T>;

/// The outside of a process, as far as it decides where the server is.
pub struct Env {
    /// The environment's variables.
    pub vars: HashMap<OsString, OsString>,
    /// The name of the account that runs this process.
    pub os_user: Option<String>,
    /// An option file.
    pub read: OfPath<io::Result<Text>>,
    /// The paths of a directory's entries.
    pub list: OfPath<io::Result<Vec<PathBuf>>>,
    /// Whether there is a Unix socket at a path.
    pub is_socket: OfPath<bool>,
    /// The password on an inherited descriptor (`--password-fd`).
    pub read_fd: Box<dyn Fn(u32) -> Result<Secret>>,
}

/// An option file's content and who may touch it.
pub struct Text {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its permission bits.
    pub mode: u32,
    /// Whether it is a regular file: only such a one can be ignored for being world-writable.
    pub regular: bool,
}

impl Env {
    /// This process's own.
    pub(crate) fn real() -> Self {
        Env {
            vars: std::env::vars_os().collect(),
            os_user: os_user(),
            read: Box::new(read),
            list: Box::new(|dir| {
                std::fs::read_dir(dir)?.map(|entry| entry.map(|e| e.path())).collect()
            }),
            is_socket: Box::new(|path| {
                std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
            }),
            read_fd: Box::new(handover::read_fd),
        }
    }

    /// A variable that is set to something.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        let value = self.vars.get(OsStr::new(name)).filter(|value| !value.is_empty());
        value
            .map(|value| value.clone().into_string())
            .transpose()
            .map_err(|_| Error::usage(format!("{name} is no UTF-8")))
    }
}

/// Shows nothing: variables hold passwords.
impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}

/// As the MySQL clients: the effective user's name, else what the shell says.
fn os_user() -> Option<String> {
    let uid = nix::unistd::geteuid();
    match nix::unistd::User::from_uid(uid) {
        Ok(Some(user)) => Some(user.name),
        _ => std::env::var("USER").ok().filter(|name| !name.is_empty()),
    }
}

fn read(path: &Path) -> io::Result<Text> {
    let file = std::fs::File::open(path)?;
    let meta = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "is larger than an option file"));
    }
    Ok(Text {
        bytes,
        mode: meta.permissions().mode() & 0o7777,
        regular: meta.file_type().is_file(),
    })
}

#[cfg(test)]
pub(crate) mod fake {
    //! A world for tests: what is not put in is not there.

    use super::*;

    /// Files by path, mode and content. A path that ends in `/` is a directory, its content the
    /// entries.
    pub(crate) type Files = &'static [(&'static str, u32, &'static str)];

    pub(crate) fn env(
        vars: &[(&str, &str)],
        files: Files,
        sockets: &'static [&'static str],
    ) -> Env {
        let find = |path: &Path| {
            let found = files.iter().find(|(name, ..)| Path::new(name) == path);
            found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        Env {
            vars: vars.iter().map(|(k, v)| (k.into(), v.into())).collect(),
            os_user: Some("me".into()),
            read: Box::new(move |path| {
                let (_, mode, text) = find(path)?;
                match mode {
                    0 => Err(io::ErrorKind::PermissionDenied.into()),
                    mode => {
                        Ok(Text { bytes: text.as_bytes().to_vec(), mode: *mode, regular: true })
                    }
                }
            }),
            list: Box::new(move |dir| {
                Ok(find(dir)?.2.split_whitespace().map(|name| dir.join(name)).collect())
            }),
            is_socket: Box::new(move |path| sockets.iter().any(|s| Path::new(s) == path)),
            read_fd: Box::new(|fd| Ok(Secret::new(format!("from-{fd}")))),
        }
    }
}
