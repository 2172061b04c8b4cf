//! Files and descriptors that are not what they should be: pipes that nobody writes to, a full device,
//! sockets, values of ten thousand bytes.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use loadgen::canned::{Canned, Listen, Script};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use super::{program, root, run, said};
use crate::common::{local, sandbox};

/// Waits until it listens to signals; soon afterwards it waits for the pipe.
fn wait_until_listening(child: &mut Child) {
    let until = Instant::now() + Duration::from_mins(2);
    let status = format!("/proc/{}/status", child.id());
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if caught.is_some_and(|mask| mask & (1 << (Signal::SIGINT as i32 - 1)) != 0) {
            return std::thread::sleep(Duration::from_millis(300));
        }
        assert!(child.try_wait().expect("ours").is_none(), "it ended early");
        assert!(Instant::now() < until, "it does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interruption_ends_it_when_a_file_is_a_pipe_that_nobody_writes_to() {
    let (server, dir) = (sandbox(&local(), &[]), tempfile::tempdir().expect("a directory"));
    let pipe = dir.path().join("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe");
    let (pipe, out) = (pipe.to_str().expect("plain"), dir.path().join("out"));
    let out = out.to_str().expect("plain");
    let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", "1", "-u", "u"];
    let short = ["--time", "1s", "--warmup", "0s", "--out", out];
    for words in [
        [&["load", "--from-dump", pipe, "--out", out][..], &root(&server)].concat(),
        vec!["run", pipe],
        vec!["recheck", "--profile", pipe, out],
        vec!["cleanup", "--yes", "--defaults-file", pipe],
        [&["cleanup", "--yes", "--ssl-mode", "VERIFY_CA", "--ssl-ca", pipe], &tcp[..]].concat(),
        [&["verify", pipe], &tcp[..]].concat(),
        [&["point-select", "--calibration", pipe], &short[..], &root(&server)].concat(),
    ] {
        let mut child = program(&words).spawn().expect("it starts");
        wait_until_listening(&mut child);
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
        let ended = said(&child.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, 130, "{words:?}: {}", ended.both());
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure_whatever_it_is() {
    for words in [
        &["--help"][..],
        &["--version"],
        &["load", "--help"],
        &["load", "--help-all"],
        &["help", "report"],
        &["workloads"],
        &["completions", "bash"],
        &["load", "--list"],
        &["sysbench", "--help"],
        &["sysbench", "--version"],
    ] {
        let full = File::options().write(true).open("/dev/full").expect("there is one");
        let ended = said(&program(words).stdout(full).output().expect("it runs"));
        assert_eq!(ended.code, 1, "{words:?}: {}", ended.both());
        assert!(ended.stderr.contains("standard output"), "{words:?}: {}", ended.stderr);
        // A pipe that is closed has what it wanted.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = said(&program(words).stdout(writer).output().expect("it runs"));
        assert!(ended.stderr.is_empty(), "{words:?}: {}", ended.both());
    }
}

#[test]
fn a_password_comes_by_a_socket_and_not_by_its_own_output() {
    let canned = Canned::start(Script::default(), Listen::Port(0)).expect("a free port");
    let port = canned.port().to_string();
    let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "u"];
    let words = [&["cleanup", "--yes", "--password-fd", "0"], &tcp[..]].concat();
    let (mut ours, theirs) = UnixStream::pair().expect("two sockets");
    ours.write_all(b"secret\n").expect("room");
    drop(ours);
    let mut command = program(&words);
    let ended = said(&command.stdin(OwnedFd::from(theirs)).output().expect("it runs"));
    assert!(!ended.stderr.contains("--password-fd"), "{}", ended.both());

    // Standard output is a pipe, and its reading end is the test's.
    let words = [&["cleanup", "--yes", "--password-fd", "1"], &tcp[..]].concat();
    let ended = said(&program(&words).stdout(Stdio::piped()).output().expect("it runs"));
    assert_eq!(ended.code, 2, "{}", ended.both());
    assert!(ended.stderr.contains("--password-fd 1"), "{}", ended.both());
}

#[test]
fn what_is_refused_is_quoted_to_a_screen_at_most() {
    let long = "x".repeat(10_000);
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("p.toml");
    fs::write(&profile, format!("name = \"{long}\"\n")).expect("written");
    let profile = profile.to_str().expect("plain");
    let flag = format!("--{long}");
    let key = format!("{long}=");
    for words in [
        vec!["point-select", "--label", &long],
        vec!["point-select", "--note", &key],
        vec!["point-select", "--clients", &long],
        vec!["point-select", "--gate", &long],
        vec!["point-select", "--time", &long],
        vec!["point-select", "--no-defaults", "--ssl-mode", &long],
        vec!["point-select", "--no-defaults", "--url", &long],
        vec!["point-select", "--no-defaults", "-h", "h", "--ssl-ca", &long],
        vec!["point-select", &flag],
        vec!["point-select", &long],
        vec!["load", "--charset", &long],
        vec!["load", "--from-dump", &long],
        vec!["report", &long],
        vec!["report", ".", "--metric", &long],
        vec!["run", &long],
        vec!["run", profile],
        vec![&long],
    ] {
        let ended = run(&mut program(&words), "");
        let shown = words.iter().map(|word| &word[..word.len().min(20)]).collect::<Vec<_>>();
        assert!(ended.code > 0, "{shown:?}");
        assert!(ended.stderr.len() < 4_000, "{shown:?}: {} bytes", ended.stderr.len());
    }
}
