//! The program under test, and what it leaves.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use loadgen::canned::{Canned, Fault, Listen, Script, tables};
use loadgen::summary::{self, Summary};
use tempfile::TempDir;

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
    pub(crate) summaries: Vec<Summary>,
}

impl Ended {
    pub(crate) fn only(&self) -> &Summary {
        assert_eq!(self.summaries.len(), 1, "{}{}", self.stdout, self.stderr);
        &self.summaries[0]
    }
}

/// Results of one test.
pub(crate) struct Results(TempDir);

impl Results {
    pub(crate) fn new() -> Self {
        Results(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn summaries(&self) -> Vec<Summary> {
        // What a kill leaves besides is no summary.
        let whole = |entry: std::io::Result<fs::DirEntry>| {
            entry.is_ok_and(|e| e.file_name().as_encoded_bytes().ends_with(b".json"))
        };
        if !fs::read_dir(self.dir()).expect("readable").any(whole) {
            return Vec::new();
        }
        let loaded = summary::load(&[self.dir().to_owned()], false).expect("whole summaries");
        loaded.summaries.into_iter().map(|(_, summary)| summary).collect()
    }
}

/// The program with these words, no option file, summaries into `results`.
pub(crate) fn command(words: &str, connection: &[&str], results: &Results) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command
        .args(words.split_whitespace())
        .args(connection)
        .arg("--no-defaults")
        .arg("--out")
        .arg(results.dir())
        .env_remove("MYSQL_PWD")
        .env_remove("MYSQL_HOST")
        .env_remove("LOADGEN_URL")
        // What this machine's own calibration says does not matter to tests.
        .env("LOADGEN_CALIBRATION", "/nonexistent")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn run(words: &str, connection: &[&str]) -> Ended {
    let results = Results::new();
    let start = Instant::now();
    let output = command(words, connection, &results).output().expect("the program runs");
    ended(&output, start, &results)
}

pub(crate) fn wait(child: Child, start: Instant, results: &Results) -> Ended {
    ended(&child.wait_with_output().expect("the program ends"), start, results)
}

fn ended(output: &Output, start: Instant, results: &Results) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        took: start.elapsed(),
        summaries: results.summaries(),
    }
}

/// A canned server with tables and these faults.
pub(crate) fn canned(faults: Vec<Fault>) -> Canned {
    let script = Script { answers: tables::answers(8), faults, ..Script::default() };
    Canned::start(script, Listen::Port(0)).expect("a free port")
}

/// Runs against a canned server.
pub(crate) fn run_canned(words: &str, server: &Canned) -> Ended {
    let port = server.port().to_string();
    run(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"])
}
