//! What the fuzzers kept, replayed: every input of `fuzz/corpus` through its target.

#[path = "../../fuzz/src/targets/mod.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

use targets::TARGETS;
use targets::session::{Seen, State, session};

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut files: Vec<PathBuf> = fs::read_dir(&dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", dir.display());
    let bytes = |path: PathBuf| (path.clone(), fs::read(path).expect("readable"));
    files.into_iter().map(bytes).collect()
}

/// A failure names its input; `cargo test` shows it.
#[expect(clippy::print_stderr, reason = "the harness shows it with a failure only")]
fn on(path: &Path) {
    eprintln!("on {}", path.display());
}

#[test]
fn the_corpus_brings_nothing_down() {
    for (name, target) in TARGETS {
        for (path, bytes) in corpus(name) {
            on(&path);
            target(&bytes);
        }
    }
}

#[test]
fn the_sessions_reach_every_state_of_the_protocol() {
    let all: Vec<_> = corpus("session").iter().map(|(_, bytes)| session(bytes)).collect();
    let missing: Vec<State> = State::ALL
        .into_iter()
        .filter(|state| !all.iter().any(|seen: &std::rc::Rc<Seen>| seen.has(*state)))
        .collect();
    assert!(missing.is_empty(), "no input reaches {missing:?}");
}
