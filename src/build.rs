//! Passes the revision that it was built from to the program, for the summaries.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src");
    // A path that does not exist would make cargo build anew every time.
    if Path::new(".git/HEAD").exists() {
        println!("cargo:rerun-if-changed=.git/HEAD");
    }
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // A source tree without a `.git` has no revision: git would tell that of a project around it. The summary says null.
    let is_own = Path::new(".git").exists();
    let revision = if is_own { git(&["rev-parse", "--short=12", "HEAD"]) } else { None };
    if let Some(revision) = revision.filter(|revision| !revision.is_empty()) {
        let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
        let mark = if changed.is_some_and(|c| !c.is_empty()) { "+" } else { "" };
        println!("cargo:rustc-env=LOADGEN_REVISION={revision}{mark}");
    }
}
