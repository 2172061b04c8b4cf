//! Texts that mean harm, passwords that must not be seen, tables that are not ours: through the
//! program itself.

mod asking;
mod blocked;
mod escapes;
mod quoting;
mod secrets;
mod transport;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use loadgen::sandbox::Sandbox;

/// The program with these words, without option files and without what a developer's
/// environment may hold.
fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["MYSQL_PWD", "MYSQL_HOST", "MYSQL_TCP_PORT", "MYSQL_UNIX_PORT", "LOADGEN_URL"] {
        command.env_remove(name);
    }
    command
}

/// What a run said on both, and its status.
struct Said {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Said {
    fn both(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }
}

fn said(output: &Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the program to its end, with this on its standard input.
fn run(command: &mut Command, input: &str) -> Said {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program runs");
    // It may not read.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    said(&child.wait_with_output().expect("the program ends"))
}

/// The flags that reach a sandbox's root over its socket.
fn root(server: &Sandbox) -> [&str; 5] {
    ["--no-defaults", "-u", "root", "-S", server.socket.to_str().expect("a plain path")]
}
