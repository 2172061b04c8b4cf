//! The two programs, each in a directory and a database of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::LazyLock;

use loadgen::sandbox::Sandbox;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::common::databases::Db;

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// The installed sysbench.
    Theirs,
    /// loadgen under the name `sysbench`.
    Ours,
    /// `loadgen sysbench`.
    Verb,
}

pub(crate) struct Ended {
    /// As a shell tells it: 128 and the signal.
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Longer than any line of the tests; ends what hangs.
const LIMIT_S: &str = "300";

/// The directory whose `sysbench` is loadgen.
static NAMED: LazyLock<TempDir> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a directory");
    let link = dir.path().join("sysbench");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_loadgen"), link).expect("a link");
    dir
});

/// The installed sysbench, where there is one.
pub(crate) fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join("sysbench"));
    found.into_iter().find(|program| program.is_file())
}

/// Why the programs cannot be compared here.
pub(crate) fn lacking() -> Option<&'static str> {
    installed().is_none().then_some("sysbench is not installed: apt-get install sysbench")
}

/// Another program in loadgen's place: sysbench's own shows that the tests are right.
const REPLACEMENT: &str = "LOADGEN_TEST_SYSBENCH";

/// Tells whether another program is in loadgen's place.
pub(crate) fn replaced() -> bool {
    std::env::var_os(REPLACEMENT).is_some()
}

fn words(program: Program) -> Vec<PathBuf> {
    let ours = || NAMED.path().join("sysbench");
    match (program, std::env::var_os(REPLACEMENT)) {
        (Program::Theirs, _) => vec![installed().expect("asked for before")],
        (_, Some(other)) => vec![other.into()],
        (Program::Ours, None) => vec![ours()],
        (Program::Verb, None) => vec![env!("CARGO_BIN_EXE_loadgen").into(), "sysbench".into()],
    }
}

/// An empty database and an empty directory for one program.
pub(crate) struct Place<'a> {
    pub(crate) program: Program,
    pub(crate) db: Db<'a>,
    dir: TempDir,
}

impl<'a> Place<'a> {
    pub(crate) fn new(program: Program, sandbox: &'a Sandbox) -> Place<'a> {
        Place { program, db: Db::new(sandbox), dir: tempfile::tempdir().expect("a directory") }
    }

    /// Runs a line of the installed sysbench in this place, whoever's it is.
    pub(crate) fn prepared_by_sysbench(&self, line: &str) {
        let ended = ended(&self.command_of(Program::Theirs, line).output().expect("it runs"));
        assert_eq!(ended.status, 0, "{line}: {}{}", ended.stdout, ended.stderr);
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What stands for the place in command lines and files: `{at}` is how to reach its database.
    pub(crate) fn filled(&self, text: &str) -> String {
        let sandbox = self.db.sandbox;
        let account = format!("--mysql-user=root --mysql-db={}", self.db.name);
        let socket = sandbox.socket.to_str().expect("a path");
        let port = sandbox.port.to_string();
        text.replace("{at}", &format!("--mysql-socket={socket} {account}"))
            .replace("{tcp}", &format!("--mysql-host=127.0.0.1 --mysql-port={port} {account}"))
            .replace("{t}", "--tables=2 --table-size=100")
            .replace("{db}", &self.db.name)
            .replace("{socket}", socket)
            .replace("{port}", &port)
            .replace("{dir}", self.dir().to_str().expect("a path"))
    }

    /// A text without the names of this place.
    pub(crate) fn emptied(&self, text: &str) -> String {
        let sandbox = self.db.sandbox;
        text.replace(self.dir().to_str().expect("a path"), "DIR")
            .replace(sandbox.socket.to_str().expect("a path"), "SOCKET")
            .replace(&self.db.name, "DB")
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        self.command_of(self.program, line)
    }

    fn command_of(&self, program: Program, line: &str) -> Command {
        let words = words(program);
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--kill-after=5", LIMIT_S]).args(words);
        let line = self.filled(line);
        command.args(line.split_whitespace()).current_dir(self.dir());
        for name in ["MYSQL_PWD", "MYSQL_HOST", "MYSQL_UNIX_PORT", "LOADGEN_URL", "LOADGEN_OUT"] {
            command.env_remove(name);
        }
        // What this machine's own calibration says does not matter to tests.
        command.env("LOADGEN_CALIBRATION", "/nonexistent").env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, line: &str) -> Ended {
        ended(&self.command(line).output().expect("the program runs"))
    }

    /// A run that goes on while the test does something.
    pub(crate) fn begin(&self, line: &str) -> Running {
        let mut child = self.command(line).spawn().expect("the program runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Running { child, lines, stdout: String::new() }
    }

    /// A run whose success the test needs.
    pub(crate) fn well(&self, line: &str) -> Ended {
        let ended = self.run(line);
        assert_eq!(ended.status, 0, "{line}: {}{}", ended.stdout, ended.stderr);
        ended
    }
}

/// A program at work, and what it has printed so far.
pub(crate) struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
    stdout: String,
}

impl Running {
    /// Reads lines up to one that fits: how far the program is does not depend on the machine's speed.
    pub(crate) fn wait_for(&mut self, fits: impl Fn(&str) -> bool) {
        loop {
            let begin = self.stdout.len();
            let read = self.lines.read_line(&mut self.stdout).expect("text");
            assert!(read > 0, "it ended before: {}", self.stdout);
            if fits(self.stdout[begin..].trim_end()) {
                return;
            }
        }
    }

    /// Sends a signal to `timeout`, which passes it on.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().expect("a pid"));
        nix::sys::signal::kill(pid, signal).expect("sent");
    }

    pub(crate) fn wait(mut self) -> Ended {
        self.lines.read_to_string(&mut self.stdout).expect("text");
        let ended = ended(&self.child.wait_with_output().expect("it ends"));
        Ended { stdout: self.stdout, ..ended }
    }
}

pub(crate) fn ended(output: &Output) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    let status = output.status;
    Ended {
        status: status.code().or(status.signal().map(|signal| 128 + signal)).expect("it ended"),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
