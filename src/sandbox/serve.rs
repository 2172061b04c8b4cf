//! Starts the server and makes sure that what answers is what was started.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};

use super::Start;
use super::identity::{Door, NoAnswer, ask};
use super::keeper::Task;
use super::options::UserOption;
use super::program::Program;
use crate::error::{Error, Result};

/// The longest that a server may take until it answers.
const ANSWERS_WITHIN: Duration = Duration::from_mins(1);

/// How many ports are tried when other processes take them first.
const PORTS: usize = 5;

/// What every server takes if it is not told; a sandbox has no reason to take less.
const DEFAULT_CONNECTIONS: u32 = 151;
const DEFAULT_STATEMENTS: u32 = 16_382;

const NAME: &str = "server";

/// A server that answers.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) port: u16,
    pub(super) pid: u32,
    pub(super) version: String,
}

/// How a start went that did not go wrong.
enum Started {
    /// It answers on both doors; `@@version`.
    Answers(String),
    /// It ended, so.
    Ended(String),
}

/// Starts the server on a free port, and on another one if that was taken meanwhile.
pub(super) fn serve(program: &Program, start: &mut Start) -> Result<Served> {
    let mut tried = 0;
    loop {
        let port = free_port()?;
        tried += 1;
        let arguments = arguments(program, start, port);
        let (path, descriptors) = (&program.path, start.descriptors);
        start.keeper.launch(&Task {
            name: NAME,
            program: path,
            arguments,
            input: None,
            descriptors,
        })?;
        let how = match answer(program, start, port)? {
            Started::Answers(version) => return Ok(Served { port, pid: own_pid(start)?, version }),
            Started::Ended(how) => how,
        };
        if tried == PORTS || !port_was_taken(&start.keeper.log(NAME)) {
            return Err(super::failure(path, &how, &start.keeper.tail(NAME), start.options));
        }
    }
}

/// The system's choice. Nothing holds it until the server does, hence the attempts.
fn free_port() -> Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|e| Error::server(format!("sandbox: no free port on 127.0.0.1: {e}")))
}

/// All versions say it in these words.
fn port_was_taken(log: &str) -> bool {
    log.contains("Bind on TCP/IP port")
}

fn arguments(program: &Program, start: &Start, port: u16) -> Vec<OsString> {
    let mut arguments = start.layout.arguments();
    arguments.extend(program.needs.clone());
    let mut socket = OsString::from("--socket=");
    socket.push(start.layout.socket());
    arguments.push(socket);
    let connections = start.spec.max_connections.max(DEFAULT_CONNECTIONS);
    let statements = start.spec.max_prepared_stmts.max(DEFAULT_STATEMENTS);
    arguments.extend(
        [
            format!("--port={port}"),
            "--bind-address=127.0.0.1".into(),
            // A machine whose resolver hangs must not delay the connections.
            "--skip-name-resolve".into(),
            "--local-infile=ON".into(),
            format!("--max-connections={connections}"),
            format!("--loose-max-prepared-stmt-count={statements}"),
        ]
        .map(OsString::from),
    );
    arguments.extend(start.options.iter().map(UserOption::argument));
    arguments
}

/// Waits until the server answers on its socket and on its port, or has ended.
fn answer(program: &Program, start: &mut Start, port: u16) -> Result<Started> {
    let (keeper, layout) = (&mut *start.keeper, start.layout);
    let socket = layout.socket();
    let mut last = String::from("no socket yet");
    let mut look = || {
        if let Some(status) = keeper.ended()? {
            return Ok(Some(Started::Ended(format!("ended while it started ({status})"))));
        }
        if !socket.exists() {
            return Ok(None);
        }
        let mut version = String::new();
        for door in [Door::Socket(&socket), Door::Port(port)] {
            match ask(door) {
                Ok(identity) => {
                    identity.check(layout, port)?;
                    version = identity.version;
                }
                Err(NoAnswer::Silent(why)) => {
                    last = why;
                    return Ok(None);
                }
                Err(NoAnswer::Refused(why)) => {
                    let how = format!("refuses its own root account: {why}");
                    return Err(super::failure(
                        &program.path,
                        &how,
                        &keeper.tail(NAME),
                        start.options,
                    ));
                }
            }
        }
        Ok(Some(Started::Answers(version)))
    };
    let started = start.wait.until("sandbox: starting the server", ANSWERS_WITHIN, &mut look)?;
    started.ok_or_else(|| {
        let how = format!("does not answer within {} s ({last})", ANSWERS_WITHIN.as_secs());
        super::failure(&program.path, &how, &start.keeper.tail(NAME), start.options)
    })
}

/// The server's own process, which must be in the group that the keeper ends.
fn own_pid(start: &Start) -> Result<u32> {
    let path = start.layout.pid_file();
    let text = fs::read_to_string(&path).unwrap_or_default();
    let number: u32 = text.trim().parse().unwrap_or(0);
    let pid = Pid::from_raw(number.cast_signed());
    if number > 0 && getpgid(Some(pid)).ok() == start.keeper.group() {
        return Ok(number);
    }
    // A wrapper that makes a session, or a container where the number means another process.
    let cmdline = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    let datadir = format!("--datadir={}", start.layout.data().display());
    if cmdline.split(|byte| *byte == 0).any(|argument| argument == datadir.as_bytes()) {
        let _ = kill(pid, Signal::SIGKILL);
    }
    Err(Error::server("sandbox: its wrapper takes the server to another session or container")
        .hint("end the wrapper with: exec mysqld … \"$@\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_differ_while_held() {
        // Another test may take it first.
        let held = loop {
            let port = free_port().unwrap();
            if let Ok(held) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                break held;
            }
        };
        assert_ne!(free_port().unwrap(), held.local_addr().unwrap().port());
    }
}
