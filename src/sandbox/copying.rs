//! Copies data directories.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use super::keeper::cannot;
use crate::error::{Error, Kind, Result};

/// Files that a start must not inherit: the list of cached pages, which servers from MySQL 5.7 and MariaDB
/// 10.2 on read again, and the server's identity.
pub(super) const LEFT_BEHIND: [&str; 2] = ["ib_buffer_pool", "auto.cnf"];

/// Bytes that are copied between two looks at an interruption.
const COPIED_AT_ONCE: u64 = 128 << 20;
const COPY_NOTED_EVERY: Duration = Duration::from_secs(10);

/// Copies a data directory that no server uses, and says every ten seconds how far it is.
pub(super) fn copy(
    from: &Path,
    to: &Path,
    say: &mut dyn FnMut(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<()> {
    let (bytes, noted) = (count_bytes(from), Instant::now());
    Copying { to, bytes, copied: 0, noted, say, interrupted }.copy_tree(from, to)
}

/// A copy under way, and how far it is.
struct Copying<'a> {
    to: &'a Path,
    bytes: u64,
    copied: u64,
    noted: Instant,
    say: &'a mut dyn FnMut(&str),
    interrupted: &'a dyn Fn() -> bool,
}

impl Copying<'_> {
    fn copy_tree(&mut self, from: &Path, to: &Path) -> Result<()> {
        for entry in fs::read_dir(from).map_err(|e| self.failed(from, e))? {
            let entry = entry.map_err(|e| self.failed(from, e))?;
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry.file_type().map_err(|e| self.failed(&path, e))?;
            let target = to.join(&name);
            if kind.is_dir() {
                fs::create_dir(&target).map_err(|e| self.failed(&path, e))?;
                self.copy_tree(&path, &target)?;
            } else if kind.is_file() && !LEFT_BEHIND.iter().any(|left| name == *left) {
                self.copy_file(&path, &target)?;
            }
        }
        Ok(())
    }

    /// Writes the copy to the disk: its pages would else be written beside the measurement. The kernel shares blocks
    /// if the file system can.
    fn copy_file(&mut self, from: &Path, to: &Path) -> Result<()> {
        let failed = |e| self.failed(from, e);
        let (mut source, mut target) =
            (File::open(from).map_err(failed)?, File::create(to).map_err(failed)?);
        let permissions = source.metadata().map_err(failed)?.permissions();
        target.set_permissions(permissions).map_err(failed)?;
        loop {
            if (self.interrupted)() {
                return Err(Error::new(
                    Kind::Interrupted,
                    "interrupted: sandbox: copying its data",
                ));
            }
            let mut part = (&mut source).take(COPIED_AT_ONCE);
            let copied = io::copy(&mut part, &mut target).map_err(|e| self.failed(from, e))?;
            if copied == 0 {
                return Ok(());
            }
            target.sync_data().map_err(|e| self.failed(from, e))?;
            self.count_copied(copied);
        }
    }

    fn count_copied(&mut self, bytes: u64) {
        self.copied += bytes;
        if self.noted.elapsed() >= COPY_NOTED_EVERY {
            self.noted = Instant::now();
            let [copied, bytes] = [self.copied, self.bytes].map(|bytes| bytes as f64 / 1e9);
            (self.say)(&format!("sandbox: copied {copied:.1} of {bytes:.1} GB"));
        }
    }

    fn failed(&self, path: &Path, e: io::Error) -> Error {
        cannot(&format!("copy {} to {}", path.display(), self.to.display()))(e)
            .hint("TMPDIR names another place for sandboxes")
    }
}

/// Adds up the files of a directory; what cannot be read counts nothing.
pub(crate) fn count_bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => count_bytes(&entry.path()),
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    };
    entries.map(size).sum()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_whole_tree_is_copied_but_for_what_a_start_must_not_inherit() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("sbtest")).unwrap();
        for name in ["ibdata1", "sbtest/sbtest1.ibd", "ib_buffer_pool", "auto.cnf"] {
            fs::write(from.path().join(name), name).unwrap();
        }
        let stop = Cell::new(false);
        let (said, interrupted) = (Cell::new(0), || stop.get());
        let mut say = |text: &str| {
            assert_eq!(text, "sandbox: copied 0.0 of 0.0 GB");
            said.set(said.get() + 1);
        };
        let long_ago =
            Instant::now().checked_sub(COPY_NOTED_EVERY).expect("the host runs since then");
        let mut copying = Copying {
            to: to.path(),
            bytes: count_bytes(from.path()),
            copied: 0,
            noted: long_ago,
            say: &mut say,
            interrupted: &interrupted,
        };
        assert_eq!(copying.bytes, 47);
        copying.copy_tree(from.path(), to.path()).unwrap();
        assert_eq!(said.get(), 1, "one line in ten seconds");
        let text = |name: &str| fs::read_to_string(to.path().join(name)).unwrap_or_default();
        assert_eq!(text("sbtest/sbtest1.ibd"), "sbtest/sbtest1.ibd");
        assert_eq!((text("ibdata1").as_str(), text("ib_buffer_pool").as_str()), ("ibdata1", ""));
        stop.set(true);
        let file = from.path().join("ibdata1");
        let error = copying.copy_file(&file, &to.path().join("ibdata1")).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted);
    }
}
