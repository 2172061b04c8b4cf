//! Clients on several hosts: processes of this host, each started by a command of its own.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use loadgen::canned::{Action, At, Canned, Fault};
use loadgen::sandbox::Sandbox;
use loadgen::summary::{Outcome, Summary};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::common;
use crate::common::program::{Ended, Results, canned, command, wait};
use crate::common::proxy::Proxy;
use crate::common::restarting::until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_loadgen");
/// The longest time until a run with a host that is lost has ended.
const LOST_WITHIN: Duration = Duration::from_secs(15);

/// A directory in which each rank leaves its process id.
struct Hosts(TempDir);

impl Hosts {
    fn new() -> Hosts {
        Hosts(tempfile::tempdir().expect("a directory"))
    }

    /// The flags that run ranks as processes of this host.
    fn flags(&self, names: &str) -> [String; 6] {
        let command =
            format!("sh -c 'echo $$ > {}/{{host}}; exec \"$@\"' sh", self.0.path().display());
        ["--hosts", names, "--host-command", &command, "--host-program", PROGRAM].map(str::to_owned)
    }

    fn pid(&self, name: &str) -> Option<Pid> {
        let text = fs::read_to_string(self.0.path().join(name)).ok()?;
        Some(Pid::from_raw(text.trim().parse().ok()?))
    }

    fn signal(&self, name: &str, signal: Signal) {
        kill(self.pid(name).expect("it was started"), signal).expect("it runs");
    }

    /// Returns whether no process of a rank is left.
    fn are_gone(&self) -> bool {
        let names = fs::read_dir(self.0.path()).expect("readable").flatten();
        let mut pids = names.filter_map(|entry| self.pid(entry.file_name().to_str()?));
        pids.all(|pid| kill(pid, None).is_err())
    }
}

fn start(words: &str, hosts: &Hosts, names: &str, port: u16, results: &Results) -> Child {
    let port = port.to_string();
    let mut command = command(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], results);
    command.args(hosts.flags(names)).spawn().expect("the program runs")
}

fn run(words: &str, hosts: &Hosts, names: &str, port: u16) -> Ended {
    let results = Results::new();
    let began = Instant::now();
    wait(start(words, hosts, names, port, &results), began, &results)
}

/// The statements of the workload that each client sent, as text.
fn streams(said: &[Vec<u8>]) -> BTreeSet<Vec<String>> {
    let queries = |mut bytes: &[u8]| {
        let mut queries = Vec::new();
        while let [a, b, c, _, rest @ ..] = bytes {
            let length = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
            let Some((packet, rest)) = rest.split_at_checked(length) else { break };
            let text = String::from_utf8_lossy(packet.get(1..).unwrap_or_default());
            queries.extend(text.contains("WHERE id=").then(|| text.into_owned()));
            bytes = rest;
        }
        queries
    };
    said.iter().map(|bytes| queries(bytes)).filter(|queries| !queries.is_empty()).collect()
}

#[test]
fn clients_send_the_same_when_they_are_on_one_host_or_on_several() {
    let loops = ["", "--rate 2000 --arrival poisson", "--rate 2000 --arrival uniform"];
    let words =
        "point-select --tables 8 --clients 8 --warmup 0 --ops 800 --seed 7 --statements text";
    for pacing in loops {
        let mut all: Vec<(BTreeSet<Vec<String>>, Option<u64>)> = Vec::new();
        for (names, each) in [("", 4), ("a,b", 2), ("a,b,c,d", 1)] {
            let (server, hosts, results) = (canned(Vec::new()), Hosts::new(), Results::new());
            let (proxy, began) = (Proxy::to(server.port()), Instant::now());
            let words = format!("{words} {pacing} --engine-threads {each}");
            let ended = if names.is_empty() {
                let port = proxy.port.to_string();
                let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
                let child = command(&words, &connection, &results).spawn().expect("it runs");
                wait(child, began, &results)
            } else {
                run(&words, &hosts, names, proxy.port)
            };
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            let step = ended.only();
            assert_eq!((step.totals.ops, step.plan.engine_threads), (800, 4));
            assert_eq!(step.latency.service.count, 800);
            check_hosts(step, names.split(',').filter(|name| !name.is_empty()).count());
            all.push((streams(&proxy.said()), step.totals.intended));
            assert!(hosts.are_gone(), "{names}");
        }
        for (streams, intended) in &all[1..] {
            assert_eq!((streams.len(), intended), (8, &all[0].1), "{pacing}");
            // Who takes an arrival of a queue is chance, what a client sends is not.
            let begin = |stream: &Vec<String>, other: &Vec<String>| {
                stream.iter().zip(other).all(|(one, other)| one == other)
            };
            for stream in streams {
                let same = all[0].0.iter().any(|other| begin(stream, other));
                assert!(same, "{pacing}: {:?}", stream.first());
            }
            assert!(!pacing.is_empty() || *streams == all[0].0);
        }
    }
}

fn check_hosts(step: &Summary, hosts: usize) {
    assert_eq!(step.hosts.len(), hosts);
    if hosts == 0 {
        return;
    }
    let sum = |of: fn(&loadgen::summary::ClientHost) -> u64| step.hosts.iter().map(of).sum::<u64>();
    assert_eq!(sum(|host| host.ops), step.totals.ops);
    assert_eq!(sum(|host| u64::from(host.clients)), u64::from(step.plan.clients));
    assert_eq!(sum(|host| u64::from(host.threads)), u64::from(step.plan.engine_threads));
    let ranks: Vec<u32> = step.hosts.iter().map(|host| host.rank).collect();
    assert_eq!(ranks, (1..=hosts as u32).collect::<Vec<u32>>());
    assert!(step.hosts.iter().all(|host| host.share.is_some() && host.verdict.is_some()));
    // One clock, of one host.
    assert!(step.hosts.iter().all(|host| host.clock.error_us < 1e6 && host.late_us < 1.0));
    let user_s: f64 = step.hosts.iter().map(|host| host.user_s).sum();
    assert!((user_s - step.client.user_s).abs() < 1e-6);
}

#[test]
fn window_is_that_of_all_hosts_when_it_has_a_time() {
    let (server, hosts) = (canned(Vec::new()), Hosts::new());
    let words = "point-select --tables 8 --clients 4 --warmup 300ms --time 1s --engine-threads 1";
    let ended = run(words, &hosts, "a,localhost", server.port());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let step = ended.only();
    check_hosts(step, 2);
    assert!((step.measured_s - 1.0).abs() < 1e-9, "{}", step.measured_s);
    let counted: u64 = step.timeline.iter().map(|interval| interval.ops).sum();
    assert!(counted > step.totals.ops, "the warm-up's are in the timeline, too");
}

/// The instant at which something happens to a rank.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    Connecting,
    WarmUp,
    Window,
    Drain,
    AfterAStep,
}

/// A canned server that lets a run come to that instant and stay there.
fn server_for(when: When) -> Canned {
    let stall = |at| Fault::new(at, Action::StallAll(Duration::from_mins(1)));
    match when {
        When::Connecting => {
            canned(vec![Fault::new(At::Connect(5), Action::Stall(Duration::from_mins(1)))])
        }
        When::Drain => canned(vec![stall(At::Statement(40)).only("WHERE id=")]),
        _ => canned(Vec::new()),
    }
}

fn happens_at(when: When, server: &Canned, hosts: &Hosts, results: &Results) {
    until("the start of the ranks", || hosts.pid("a").is_some() && hosts.pid("b").is_some());
    let executes = |n| until("the ops", || server.counts().executes > n);
    match when {
        When::Connecting => until("a log-in that hangs", || server.counts().faults > 0),
        When::WarmUp => executes(20),
        When::Window => {
            executes(20);
            sleep(Duration::from_millis(1500));
        }
        When::Drain => {
            until("the silence", || server.counts().faults > 0);
            sleep(Duration::from_millis(2500));
        }
        When::AfterAStep => until("a step's end", || !results.summaries().is_empty()),
    }
}

fn words_for(when: When) -> &'static str {
    match when {
        When::WarmUp => "point-select --tables 8 --clients 4 --think 20ms --warmup 30s --time 1s",
        When::Drain => "point-select --tables 8 --clients 4 --think 20ms --warmup 0 --time 1s",
        When::AfterAStep => {
            "point-select --tables 8 --clients 2,4 --think 20ms --warmup 0 --time 1s"
        }
        When::Connecting | When::Window => {
            "point-select --tables 8 --clients 4 --think 20ms --warmup 500ms --time 30s"
        }
    }
}

#[test]
fn run_ends_when_a_host_dies_or_stops() {
    let cases = [
        (Signal::SIGKILL, When::Connecting),
        (Signal::SIGKILL, When::WarmUp),
        (Signal::SIGKILL, When::Window),
        (Signal::SIGKILL, When::Drain),
        (Signal::SIGKILL, When::AfterAStep),
        (Signal::SIGSTOP, When::Connecting),
        (Signal::SIGSTOP, When::Window),
        (Signal::SIGSTOP, When::AfterAStep),
    ];
    std::thread::scope(|scope| {
        for (signal, when) in cases {
            scope.spawn(move || {
                let (server, hosts, results) = (server_for(when), Hosts::new(), Results::new());
                let began = Instant::now();
                let child = start(words_for(when), &hosts, "a,b", server.port(), &results);
                happens_at(when, &server, &hosts, &results);
                let died = Instant::now();
                hosts.signal("a", signal);
                let ended = wait(child, began, &results);
                let (took, case) = (died.elapsed(), format!("{signal} {when:?}: {}", ended.stderr));
                assert_eq!(ended.code, 1, "{case}");
                assert!(took < LOST_WITHIN, "{took:?}: {case}");
                assert!(ended.stderr.contains("rank 1 (a) is lost"), "{case}");
                let outcomes: Vec<Outcome> = ended.summaries.iter().map(|s| s.outcome).collect();
                match when {
                    When::Connecting => assert_eq!(outcomes, [], "{case}"),
                    When::AfterAStep => assert_eq!(outcomes[0], Outcome::Completed, "{case}"),
                    _ => assert_eq!(outcomes, [Outcome::RankLost], "{case}"),
                }
                until("the end of all ranks", || hosts.are_gone());
            });
        }
    });
}

#[test]
fn ranks_end_when_the_measuring_process_dies_or_stops() {
    for signal in [Signal::SIGKILL, Signal::SIGSTOP] {
        let (server, hosts, results) = (canned(Vec::new()), Hosts::new(), Results::new());
        let mut child = start(words_for(When::Window), &hosts, "a,b", server.port(), &results);
        happens_at(When::Window, &server, &hosts, &results);
        let died = Instant::now();
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it runs");
        // A process whose parent is stopped stays as a zombie.
        let over = |name| {
            let pid = hosts.pid(name).expect("it was started");
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        until("the end of all ranks", || over("a") && over("b"));
        assert!(died.elapsed() < LOST_WITHIN, "{signal}");
        child.kill().expect("it was there");
        child.wait().expect("it ends");
    }
}

#[test]
fn interrupted_step_is_stored_when_a_signal_reaches_either_side() {
    for at_rank in [false, true] {
        let (server, hosts, results) = (canned(Vec::new()), Hosts::new(), Results::new());
        let began = Instant::now();
        let child = start(words_for(When::Window), &hosts, "a,b", server.port(), &results);
        happens_at(When::Window, &server, &hosts, &results);
        if at_rank {
            hosts.signal("b", Signal::SIGINT);
        } else {
            kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
        }
        let ended = wait(child, began, &results);
        assert_eq!(
            (ended.code, ended.only().outcome),
            (130, Outcome::Interrupted),
            "{}",
            ended.stderr
        );
        check_hosts(ended.only(), 2);
        assert!(hosts.are_gone());
    }
}

#[test]
fn host_is_refused_when_it_has_no_loadgen_or_another_one() {
    let server = canned(Vec::new());
    let port = server.port().to_string();
    let dir = tempfile::tempdir().expect("a directory");
    let other = dir.path().join("other");
    let hello = r#"{"Hello":{"protocol":99}}"#;
    let pid = dir.path().join("pid");
    let script = format!("echo $$ > {}\necho '{hello}'\nexec sleep 60\n", pid.display());
    fs::write(&other, script).expect("a file");
    let words = "point-select --tables 8 --warmup 0 --time 1s --hosts a";
    for program in ["/nonexistent/loadgen".to_owned(), format!("sh {}", other.display())] {
        let (results, began) = (Results::new(), Instant::now());
        let mut command = command(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], &results);
        let at = format!("env AT={{host}} {}", program.rsplit_once(' ').map_or("", |(sh, _)| sh));
        let last = program.rsplit(' ').next().expect("a word");
        let child = command.args(["--host-command", &at, "--host-program", last]).spawn();
        let ended = wait(child.expect("it runs"), began, &results);
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        assert!(ended.took < LOST_WITHIN && ended.summaries.is_empty());
        assert!(ended.stderr.contains("(a)"), "{}", ended.stderr);
    }
    let pid = fs::read_to_string(pid).expect("it was started");
    assert!(kill(Pid::from_raw(pid.trim().parse().expect("a number")), None).is_err());
}

/// A directory in which `server.sock` leads to a server.
fn place(dir: &Path, name: &str, server: &Sandbox) {
    fs::create_dir(dir.join(name)).expect("a directory");
    symlink(&server.socket, dir.join(name).join("server.sock")).expect("a link");
}

#[test]
fn host_is_refused_when_it_reaches_another_server() {
    let servers = [(); 2].map(|()| common::sandbox(&common::local(), &[]));
    let (dir, results) = (tempfile::tempdir().expect("a directory"), Results::new());
    for (name, server) in ["here", "same", "other"].into_iter().zip([0, 0, 1]) {
        place(dir.path(), name, &servers[server]);
    }
    for (hosts, code) in [("same", 0), ("same,other", 3)] {
        let began = Instant::now();
        let words =
            "sql --query DO(1) --clients 2 --warmup 0 --ops 10 -u root -S server.sock -D mysql";
        let mut command: Command = command(words, &[], &results);
        let at = format!("sh -c 'cd {}/{{host}}; exec \"$@\"' sh", dir.path().display());
        command.args(["--hosts", hosts, "--host-command", &at, "--host-program", PROGRAM]);
        let child = command.current_dir(dir.path().join("here")).spawn().expect("it runs");
        let ended = wait(child, began, &results);
        assert_eq!(ended.code, code, "{}", ended.stderr);
    }
    // The refused run began no step.
    assert_eq!(results.summaries().len(), 1);
    for server in servers {
        server.stop().expect("it ends well");
    }
}
