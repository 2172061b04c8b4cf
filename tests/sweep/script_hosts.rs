//! Scripts of sysbench's with clients on several hosts: processes of this host, each in a directory of its own.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loadgen::sandbox::Sandbox;
use loadgen::summary::Outcome;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::common::program::{Ended, Results, canned, command, wait};
use crate::common::proxy::Proxy;
use crate::common::restarting::until;
use crate::common::{local, query, sandbox};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lua/hosts.lua");
const PROGRAM: &str = env!("CARGO_BIN_EXE_loadgen");

/// Directories of hosts, and that of the measuring process, which has the modules.
struct Hosts(TempDir);

impl Hosts {
    fn new() -> Hosts {
        let dir = tempfile::tempdir().expect("a directory");
        // No text of UTF-8's.
        let module = b"-- \xe9\nreturn { name = 'travelled' }\n";
        fs::write(dir.path().join("hosts_module.lua"), module).expect("written");
        fs::write(dir.path().join("hosts_late.lua"), "").expect("written");
        for name in ["a", "b", "c"] {
            fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        // It is not this one that counts.
        let other = "return { name = 'of b' }\n";
        fs::write(dir.path().join("b/hosts_module.lua"), other).expect("written");
        Hosts(dir)
    }

    fn flags(&self, names: &str) -> [String; 6] {
        let (dir, go) = (self.0.path().display(), "exec \"$@\"");
        let command = format!("env AT={{host}} sh -c 'cd {dir}/{{host}}; echo $$ > pid; {go}' sh");
        ["--hosts", names, "--host-command", &command, "--host-program", PROGRAM].map(str::to_owned)
    }

    /// Runs the script in a mode, on ranks where hosts are named.
    fn run(&self, sandbox: &Sandbox, names: &str, words: &str, mode: &str) -> Ended {
        let (results, start) = (Results::new(), Instant::now());
        let socket = sandbox.socket.to_str().expect("a path");
        let words = format!("lua {SCRIPT} {words}");
        let mut command = command(&words, &["-S", socket, "-u", "root"], &results);
        if !names.is_empty() {
            command.args(self.flags(names));
        }
        command.arg("--").arg(format!("--mode={mode}")).current_dir(self.0.path());
        wait(command.spawn().expect("it runs"), start, &results)
    }

    fn pid(&self, name: &str) -> Pid {
        let text = fs::read_to_string(self.0.path().join(name).join("pid")).expect("it started");
        Pid::from_raw(text.trim().parse().expect("a number"))
    }
}

#[test]
fn script_is_that_of_the_measuring_process_when_its_clients_are_on_several_hosts() {
    let (sandbox, hosts) = (sandbox(&local(), &[]), Hosts::new());
    // A command runs here alone.
    let prepared = hosts.run(&sandbox, "a,b,c", "--command prepare", "plain");
    assert_eq!(prepared.code, 0, "{}", prepared.stderr);
    assert!(!hosts.0.path().join("a/pid").exists());
    let words = "--clients 6 --engine-threads 1 --warmup 0 --ops 60";
    let ended = hosts.run(&sandbox, "a,b,c", words, "plain");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let step = ended.only();
    assert_eq!((step.totals.ops, step.totals.statements, step.hosts.len()), (60, 60, 3));
    assert!(step.hosts.iter().all(|host| host.ops == 20), "{:?}", step.hosts);
    let files = &step.workload.script.as_ref().expect("a script").files;
    assert_eq!(files.len(), 2, "{files:?}");
    // Those of init, too; the key refuses what was drawn twice.
    assert_eq!(query(&sandbox, "SELECT COUNT(*) FROM sbtest.drawn")[0][0], "65");
    let threads = query(&sandbox, "SELECT tid, n, host FROM sbtest.threads ORDER BY tid");
    let expected = ["0 6 a", "1 6 b", "2 6 c", "3 6 a", "4 6 b", "5 6 c"];
    assert_eq!(threads.iter().map(|row| row.join(" ")).collect::<Vec<_>>(), expected);
    // What a script prints is no line of the ranks', and has the name of its host.
    for line in ["a: printed", "b: written", "c: executed"] {
        assert!(ended.stderr.lines().any(|of| of == line), "{line}: {}", ended.stderr);
    }
    for word in ["init", "done"] {
        let said = |line: &str| line.split(": ").last() == Some(word);
        assert_eq!(ended.stderr.lines().filter(|of| said(of)).count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn script_that_fails_on_a_host_ends_the_step_and_is_named() {
    let (sandbox, hosts) = (sandbox(&local(), &[]), Hosts::new());
    let words = "--clients 2 --engine-threads 1 --warmup 0 --time 30";
    let at = |text: &str| {
        let lines = fs::read_to_string(SCRIPT).expect("the script");
        let line = lines.lines().position(|line| line.contains(text)).expect("it is there") + 1;
        format!("{SCRIPT}:{line}:")
    };
    for (mode, place, word) in [
        ("fails", at("of its own"), "of its own"),
        ("fatal", at("SELEC 1"), "1064"),
        ("late", at("modes.late"), "hosts_late"),
    ] {
        let ended = hosts.run(&sandbox, "a,b", words, mode);
        assert_eq!(ended.code, 1, "{mode}: {}", ended.stderr);
        assert_eq!(ended.only().outcome, Outcome::Aborted, "{mode}: {}", ended.stderr);
        let says = |line: &str| mode == "late" || line.contains("b: ");
        let is_named = |line: &str| line.contains(&place) && line.contains(word) && says(line);
        assert!(ended.stderr.lines().any(is_named), "{mode}: {}", ended.stderr);
        let is_fatal = |line: &str| line.contains("b: ") && line.contains("for query 'SELEC 1'");
        assert_eq!(ended.stderr.lines().any(is_fatal), mode == "fatal", "{}", ended.stderr);
    }
    // On one host a module is found whenever it is asked for.
    let ended = hosts.run(&sandbox, "", "--clients 1 --warmup 0 --ops 5", "late");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn step_ends_when_an_event_on_a_host_never_returns() {
    let (sandbox, hosts) = (sandbox(&local(), &[]), Hosts::new());
    let words = "--clients 2 --engine-threads 1 --warmup 0 --time 1";
    let ended = hosts.run(&sandbox, "a,b", words, "loops");
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let step = ended.only();
    assert_eq!(step.outcome, Outcome::Aborted, "{}", ended.stderr);
    assert!(step.totals.ops > 0 && step.hosts[0].ops > 0 && step.hosts[1].ops == 0);
    assert!(ended.stderr.contains("engine thread of b"), "{}", ended.stderr);
    assert!(ended.took < Duration::from_mins(2), "{:?}", ended.took);
    until("the end of both", || ["a", "b"].iter().all(|name| kill(hosts.pid(name), None).is_err()));
}

#[test]
fn host_is_refused_by_its_name_when_its_loadgen_runs_no_script() {
    let (server, hosts, results) = (canned(Vec::new()), Hosts::new(), Results::new());
    let (dir, port, began) = (hosts.0.path(), server.port().to_string(), Instant::now());
    fs::write(dir.join("a.sh"), "exec \"$@\"\n").expect("written");
    let without = "\"$@\" | sed -u 's/\"lua\":true/\"lua\":false/'\n";
    fs::write(dir.join("b.sh"), without).expect("written");
    let words = format!("lua {SCRIPT} --clients 2 --warmup 0 --ops 10 --hosts a,b");
    let mut command = command(&words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], &results);
    let at = format!("sh {}/{{host}}.sh", dir.display());
    command.args(["--host-command", &at, "--host-program", PROGRAM]).current_dir(dir);
    let ended = wait(command.spawn().expect("it runs"), began, &results);
    assert_eq!((ended.code, ended.summaries.len()), (3, 0), "{}", ended.stderr);
    assert!(ended.stderr.contains("rank 2 (b)"), "{}", ended.stderr);
    // Nothing of the script was run for the run itself.
    assert!(!ended.stderr.lines().any(|line| line == "init"), "{}", ended.stderr);
}

/// Ranks of a launcher, each with files of its own.
fn launch(
    rank: u32,
    words: &str,
    dir: &Path,
    place: &str,
    port: u16,
    results: &Results,
) -> Command {
    let port = port.to_string();
    let mut command = command(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], results);
    command.args(["--ranks", "env", "--rendezvous", place]).current_dir(dir);
    command.env("LOADGEN_RANK", rank.to_string()).env("LOADGEN_SIZE", "2");
    command.env_remove("LOADGEN_TOKEN").stdout(Stdio::piped());
    command
}

#[test]
fn ranks_of_a_launcher_have_the_script_themselves_and_prove_that_it_is_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let dirs = ["zero", "one"].map(|name| dir.path().join(name));
    for dir in &dirs {
        fs::create_dir(dir).expect("a directory");
        let script = "local own = require('own') function event() own.draw() end \
                      function prepare() print('prepared') end";
        fs::write(dir.join("s.lua"), script).expect("written");
        let module = "return { draw = function() return sysbench.rand.unique(), 'marker' end }";
        fs::write(dir.join("own.lua"), module).expect("written");
    }
    let server = canned(Vec::new());
    let run = |words: &str| {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
        let (place, began) = (free.to_string(), Instant::now());
        let results = [(); 2].map(|()| Results::new());
        let start = |rank: usize, place: &str| {
            let (dir, results) = (&dirs[rank], &results[rank]);
            launch(rank as u32, words, dir, place, server.port(), results).spawn().expect("it runs")
        };
        let zero = start(0, &place);
        let between = Proxy::to(free.port());
        let one = start(1, &format!("127.0.0.1:{}", between.port));
        let ended = [wait(zero, began, &results[0]), wait(one, began, &results[1])];
        (ended, String::from_utf8_lossy(&between.answered()).into_owned())
    };
    let words = "lua s.lua --clients 2 --engine-threads 1 --warmup 0 --ops 40";
    let ([zero, one], told) = run(words);
    assert_eq!((zero.code, one.code), (0, 0), "{}{}", zero.stderr, one.stderr);
    assert_eq!((zero.only().totals.ops, zero.only().hosts.len()), (40, 2));
    assert!(told.contains("Open") && !told.contains("marker"), "{told}");
    fs::write(dirs[1].join("own.lua"), "return { draw = function() end }").expect("written");
    let ([zero, one], _) = run(words);
    assert_eq!((zero.code, one.code), (1, 1), "{}{}", zero.stderr, one.stderr);
    assert!(zero.summaries.is_empty());
    // A command is run by one of them.
    let (place, results) = ("127.0.0.1:1", Results::new());
    let words = "lua s.lua --command prepare";
    let child = launch(1, words, &dirs[1], place, server.port(), &results).spawn();
    let one = wait(child.expect("it runs"), Instant::now(), &results);
    assert_eq!((one.code, one.stdout.as_str()), (0, ""), "{}", one.stderr);
}
