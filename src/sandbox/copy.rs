//! Copies a data directory that no server uses.

use std::fs;
use std::path::Path;

use super::wait::Wait;
use crate::error::{Error, Kind, Result};

/// What a start must not inherit: the list of pages that were cached (servers from MySQL 5.7 and
/// MariaDB 10.2 on would read them again, others would not), and the server's identity.
const LEFT_BEHIND: [&str; 2] = ["ib_buffer_pool", "auto.cnf"];

/// Copies everything below `from` into `to`, which is there. On a file system that shares
/// blocks the kernel copies none.
pub(super) fn copy(from: &Path, to: &Path, wait: &mut Wait<'_>) -> Result<()> {
    (wait.say)(&format!("sandbox: copying the data of {}", from.display()));
    tree(from, to, wait)
}

/// Makes a start in a directory as cold as one in a copy of it. Initialising leaves a list, too.
pub(super) fn forget(dir: &Path) {
    // Most often there is none.
    let _ = fs::remove_file(dir.join(LEFT_BEHIND[0]));
}

fn tree(from: &Path, to: &Path, wait: &mut Wait<'_>) -> Result<()> {
    let failed = |path: &Path, e: std::io::Error| {
        Error::server(format!("sandbox: cannot copy {} to {}: {e}", path.display(), to.display()))
            .hint("TMPDIR names another place for sandboxes")
    };
    for entry in fs::read_dir(from).map_err(|e| failed(from, e))? {
        if (wait.interrupted)() {
            return Err(Error::new(Kind::Interrupted, "interrupted: sandbox: copying its data"));
        }
        let entry = entry.map_err(|e| failed(from, e))?;
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().map_err(|e| failed(&path, e))?;
        let target = to.join(&name);
        if kind.is_dir() {
            fs::create_dir(&target).map_err(|e| failed(&path, e))?;
            tree(&path, &target, wait)?;
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
    fn the_whole_tree_is_copied_but_for_what_a_start_must_not_inherit() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("sbtest")).unwrap();
        for name in ["ibdata1", "sbtest/sbtest1.ibd", "ib_buffer_pool", "auto.cnf"] {
            fs::write(from.path().join(name), name).unwrap();
        }
        let said = std::cell::RefCell::new(String::new());
        let mut say = |text: &str| said.borrow_mut().push_str(text);
        let stop = std::cell::Cell::new(false);
        let interrupted = || stop.get();
        let mut wait = Wait { say: &mut say, interrupted: &interrupted };
        copy(from.path(), to.path(), &mut wait).unwrap();
        let text = |name: &str| fs::read_to_string(to.path().join(name)).unwrap_or_default();
        assert_eq!(text("sbtest/sbtest1.ibd"), "sbtest/sbtest1.ibd");
        assert_eq!((text("ibdata1").as_str(), text("ib_buffer_pool").as_str()), ("ibdata1", ""));
        stop.set(true);
        let error = copy(from.path(), to.path(), &mut wait).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted);
    }
}
