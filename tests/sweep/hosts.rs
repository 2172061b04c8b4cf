//! Clients on several hosts: processes of this host, each started by a command of its own.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use loadgen::canned::{Action, At, Canned, Fault, Listen, Script, Service, tables};
use loadgen::sandbox::Sandbox;
use loadgen::summary::Outcome;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::common;
use crate::common::program::{Ended, Results, canned, command, wait};
use crate::common::proxy::Proxy;
use crate::common::restarting::until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_loadgen");
/// The longest time until a run with a host that is lost has ended: 15 s, and those of a full host.
const LOST_WITHIN: Duration = Duration::from_mins(1);

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

    /// Waits until no process of these ranks is left, which were all started.
    fn wait_until_gone(&self, names: &str) {
        let pids: Vec<Pid> =
            names.split(',').map(|name| self.pid(name).expect("it was started")).collect();
        // A process whose parent is stopped stays as a zombie.
        let is_over = |pid: &Pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        until("the end of all ranks", || pids.iter().all(is_over));
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

/// The statements of each client, by the first of them.
type Streams = BTreeMap<String, Vec<String>>;

/// Reads the statements of the workload in what clients said, as text.
fn streams(said: &[Vec<u8>]) -> Streams {
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
    let streams = said.iter().map(|bytes| queries(bytes));
    streams.filter_map(|stream| Some((stream.first()?.clone(), stream))).collect()
}

#[test]
fn clients_send_the_same_when_they_are_on_one_host_or_on_several() {
    // More arrivals than the clients can send: each has some, however fast the host is.
    let loops = ["", "--rate 4000 --arrival poisson", "--rate 4000 --arrival uniform"];
    check_streams("point-select --tables 8", &loops, 0);
}

#[test]
fn groups_send_the_same_when_they_are_on_one_host_or_on_several() {
    let beside = "--beside update-index,clients=3,think=5ms --beside read-only,clients=2,rate=200";
    check_streams("point-select --tables 8", &[beside], 5);
}

#[cfg(feature = "lua")]
#[test]
fn scripts_beside_send_the_same_when_they_are_on_one_host_or_on_several() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lua/points.lua");
    let beside = format!("--beside lua={script},name=script,clients=3");
    check_streams("point-select --tables 8", &[&beside], 3);
}

#[cfg(feature = "lua")]
#[test]
fn clients_of_a_script_send_the_same_when_they_are_on_one_host_or_on_several() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lua/points.lua");
    check_streams(&format!("lua {script}"), &[""], 0);
}

/// Checks that clients, and so many of groups beside, send the same from one process and from several.
fn check_streams(work: &str, loops: &[&str], beside: usize) {
    let service = Service::Constant(Duration::from_millis(4));
    let words = format!("{work} --clients 8 --warmup 0 --ops 800 --seed 7 --statements text");
    for pacing in loops {
        let mut all: Vec<(Streams, Option<u64>)> = Vec::new();
        for (names, each) in [("", 4), ("a,b", 2), ("a,b,c,d", 1)] {
            let script = Script { answers: tables::answers(8), service, ..Script::default() };
            let server = Canned::start(script, Listen::Port(0)).expect("a free port");
            let (hosts, results) = (Hosts::new(), Results::new());
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
            assert!(step.groups.iter().all(|group| group.totals.ops > 0), "{pacing}");
            all.push((streams(&proxy.said()), step.totals.intended));
            if names.is_empty() {
                assert!(step.hosts.is_empty());
            } else {
                check_hosts(&ended, names.split(',').count());
                hosts.wait_until_gone(names);
            }
        }
        let (here, intended) = &all[0];
        assert_eq!(here.len(), 8 + beside, "{pacing}: no two clients send the same");
        for (streams, of_hosts) in &all[1..] {
            assert_eq!((streams.len(), of_hosts), (8 + beside, intended), "{pacing}");
            for (first, stream) in streams {
                // Who takes an arrival of a queue is chance, what a client sends is not.
                let other = &here[first];
                let both = if pacing.is_empty() { 100 } else { stream.len().min(other.len()) };
                assert_eq!(stream[..both], other[..both], "{pacing}");
            }
        }
    }
}

fn check_hosts(ended: &Ended, hosts: usize) {
    let step = ended.only();
    assert_eq!(step.hosts.len(), hosts);
    let sum = |of: fn(&loadgen::summary::ClientHost) -> u64| step.hosts.iter().map(of).sum::<u64>();
    assert_eq!(sum(|host| host.ops), step.totals.ops);
    assert_eq!(sum(|host| u64::from(host.clients)), u64::from(step.plan.clients));
    assert_eq!(sum(|host| u64::from(host.threads)), u64::from(step.plan.engine_threads));
    let ranks: Vec<u32> = step.hosts.iter().map(|host| host.rank).collect();
    assert_eq!(ranks, (1..=hosts as u32).collect::<Vec<u32>>());
    assert!(step.hosts.iter().all(|host| host.share.is_some() && host.verdict.is_some()));
    // One clock of one host, which each process counts from its own start.
    for clock in step.hosts.iter().map(|host| &host.clock) {
        let started_after_us = -clock.offset_us;
        assert!(clock.round_trip_us > 0.0 && clock.error_us > 0.0, "{clock:?}");
        assert!(started_after_us > -clock.error_us, "{clock:?}");
        assert!(started_after_us < ended.took.as_secs_f64() * 1e6, "{clock:?}");
    }
    let user_s: f64 = step.hosts.iter().map(|host| host.user_s).sum();
    assert!((user_s - step.client.user_s).abs() < 1e-6);
}

#[test]
fn histogram_of_a_step_is_the_sum_of_those_that_its_hosts_tell() {
    let (server, hosts, results) = (canned(Vec::new()), Hosts::new(), Results::new());
    let words = "point-select --tables 8 --clients 4 --warmup 0 --ops 4000 --engine-threads 1";
    let port = server.port().to_string();
    let mut command = command(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], &results);
    let said = |host: &str| hosts.0.path().join(format!("{host}.said"));
    let tee = format!("sh -c '\"$@\" | tee {}' sh", said("{host}").display());
    let began = Instant::now();
    command.args(["--hosts", "a,b", "--host-command", &tee, "--host-program", PROGRAM]);
    let ended = wait(command.spawn().expect("it runs"), began, &results);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    check_hosts(&ended, 2);
    let histogram = |text: &str| -> Histogram<u64> {
        let bytes = STANDARD.decode(text).expect("base64");
        Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram")
    };
    let service = &ended.only().latency.service;
    let mut left = histogram(&service.histogram);
    assert_eq!((left.len(), service.overflow), (4000, 0));
    for (host, described) in ["a", "b"].into_iter().zip(&ended.only().hosts) {
        let mut ops = 0;
        for line in fs::read_to_string(said(host)).expect("it said something").lines() {
            let message: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let interval = &message["Event"][1]["Interval"];
            if let Some(own) = interval["service"]["histogram"].as_str() {
                ops += interval["ops"].as_u64().expect("a number");
                left.subtract(histogram(own)).expect("no value is of nobody");
            }
        }
        assert!(ops > 0 && ops == described.ops, "{host}: {ops}");
    }
    assert_eq!(left.len(), 0, "no value is missing");
}

#[test]
fn window_is_that_of_all_hosts_when_it_has_a_time() {
    let (server, hosts) = (canned(Vec::new()), Hosts::new());
    let words = "point-select --tables 8 --clients 4 --warmup 300ms --time 1s --engine-threads 1";
    let ended = run(words, &hosts, "a,localhost", server.port());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let step = ended.only();
    check_hosts(&ended, 2);
    assert!((step.measured_s - 1.0).abs() < 1e-9, "{}", step.measured_s);
    let counted: u64 = step.timeline.iter().map(|interval| interval.ops).sum();
    assert!(counted > step.totals.ops, "the warm-up's are in the timeline, too");
}

/// The instant at which something happens to a rank.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    /// Before a rank has greeted.
    Starting,
    Connecting,
    WarmUp,
    Window,
    Drain,
    AfterAStep,
}

/// A canned server that lets a run come to that instant and stay there.
fn server_for(when: When) -> Canned {
    let stall = |at| Fault::new(at, Action::StallAll(Duration::from_mins(3)));
    match when {
        // Later than those that look at the server.
        When::Connecting => {
            canned(vec![Fault::new(At::Connect(20), Action::Stall(Duration::from_mins(3)))])
        }
        When::Drain => canned(vec![stall(At::Statement(1)).only("WHERE id=")]),
        _ => canned(Vec::new()),
    }
}

fn happens_at(when: When, server: &Canned, hosts: &Hosts, results: &Results) {
    until("the start of the ranks", || hosts.pid("a").is_some() && hosts.pid("b").is_some());
    let executes = |n| until("the ops", || server.counts().executes > n);
    match when {
        When::Starting => {}
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
        When::WarmUp => "point-select --tables 8 --clients 4 --think 20ms --warmup 120s --time 1s",
        When::Drain => "point-select --tables 8 --clients 4 --think 20ms --warmup 0 --time 1s",
        // There is a step that goes on, however late the first one is seen.
        When::AfterAStep => {
            "point-select --tables 8 --clients 4 --think 20ms --warmup 0 --time 1s --repeat 120"
        }
        When::Connecting => {
            "point-select --tables 8 --clients 32 --time 120s --connect-timeout 180s"
        }
        When::Starting | When::Window => {
            "point-select --tables 8 --clients 4 --think 20ms --warmup 500ms --time 120s \
             --beside update-index,clients=1,think=20ms"
        }
    }
}

const ALL: [When; 6] =
    [When::Starting, When::Connecting, When::WarmUp, When::Window, When::Drain, When::AfterAStep];

/// Starts a run, and waits for the instant; ranks that are to stay before their greeting never greet.
fn run_until(when: When, server: &Canned, hosts: &Hosts, results: &Results) -> Child {
    let port = server.port().to_string();
    let mut command =
        command(words_for(when), &["-h", "127.0.0.1", "-P", &port, "-u", "x"], results);
    let mut flags = hosts.flags("a,b");
    if when == When::Starting {
        flags[3].push_str(" sh -c 'exec sleep 180' sh");
    }
    let child = command.args(flags).spawn().expect("the program runs");
    happens_at(when, server, hosts, results);
    child
}

#[test]
fn run_ends_when_a_host_dies_or_stops() {
    for signal in [Signal::SIGKILL, Signal::SIGSTOP] {
        std::thread::scope(|scope| {
            for when in ALL {
                scope.spawn(move || check_loss(signal, when));
            }
        });
    }
}

fn check_loss(signal: Signal, when: When) {
    let (server, hosts, results) = (server_for(when), Hosts::new(), Results::new());
    let began = Instant::now();
    let child = run_until(when, &server, &hosts, &results);
    let died = Instant::now();
    hosts.signal("a", signal);
    let ended = wait(child, began, &results);
    let (took, case) = (died.elapsed(), format!("{signal} {when:?}: {}", ended.stderr));
    assert_eq!(ended.code, 1, "{case}");
    assert!(took < LOST_WITHIN, "{took:?}: {case}");
    assert!(ended.stderr.contains("rank 1 (a)"), "{case}");
    let outcomes: Vec<Outcome> = ended.summaries.iter().map(|s| s.outcome).collect();
    match when {
        When::Starting => assert_eq!(outcomes, [], "{case}"),
        // Between two steps no step is lost.
        When::AfterAStep => {
            let lost = outcomes.iter().filter(|outcome| **outcome == Outcome::RankLost).count();
            let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Completed).count();
            assert!(done > 0 && lost <= 1 && done + lost == outcomes.len(), "{case}");
        }
        _ => assert_eq!(outcomes, [Outcome::RankLost], "{case}"),
    }
    if when == When::Connecting {
        let step = ended.only();
        assert_eq!((step.measured_s, step.totals.ops, step.hosts.len()), (0.0, 0, 2), "{case}");
    }
    hosts.wait_until_gone("a,b");
}

#[test]
fn ranks_end_when_the_measuring_process_dies_or_stops() {
    let killed = ALL.into_iter().filter(|when| *when != When::Starting);
    let cases = killed.map(|when| (Signal::SIGKILL, when));
    std::thread::scope(|scope| {
        for (signal, when) in cases.chain([(Signal::SIGSTOP, When::Window)]) {
            scope.spawn(move || {
                let (server, hosts, results) = (server_for(when), Hosts::new(), Results::new());
                let mut child = run_until(when, &server, &hosts, &results);
                let died = Instant::now();
                kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it runs");
                hosts.wait_until_gone("a,b");
                assert!(died.elapsed() < LOST_WITHIN, "{signal} {when:?}");
                child.kill().expect("it was there");
                child.wait().expect("it ends");
            });
        }
    });
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
        check_hosts(&ended, 2);
        hosts.wait_until_gone("a,b");
    }
}

#[test]
fn host_is_refused_when_it_has_no_loadgen_or_another_one() {
    let server = canned(Vec::new());
    let port = server.port().to_string();
    let dir = tempfile::tempdir().expect("a directory");
    let other = dir.path().join("other");
    let hello = r#"{"Hello":{"protocol":99,"later":[]}}"#;
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
        // It names the version, and does not show the line as one that nobody understands.
        let names_version = ended.stderr.contains("99") && !ended.stderr.contains("later");
        assert!(program.starts_with('/') || names_version, "{}", ended.stderr);
    }
    let pid = fs::read_to_string(pid).expect("it was started");
    let pid = Pid::from_raw(pid.trim().parse().expect("a number"));
    until("the end of what was killed", || kill(pid, None).is_err());
}

#[test]
fn no_host_is_started_when_the_measuring_process_can_know_better() {
    let (server, taken) =
        (canned(Vec::new()), TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let port = taken.local_addr().expect("bound").port();
    let metrics = format!("--openmetrics {port}");
    let file = "--ssl-mode VERIFY_CA --ssl-ca /nonexistent/ca.pem";
    for wrong in ["--tables 9", file, &metrics] {
        let hosts = Hosts::new();
        let words = format!("point-select --clients 2 --warmup 0 --ops 10 {wrong}");
        let ended = run(&words, &hosts, "a,b", server.port());
        assert!(ended.code != 0 && ended.summaries.is_empty(), "{}", ended.stderr);
        let started = ["a", "b"].map(|name| hosts.0.path().join(name).exists());
        assert_eq!(started, [false; 2], "{wrong}: {}", ended.stderr);
    }
}

#[test]
fn host_is_refused_by_its_name_when_its_limit_of_open_files_is_too_low() {
    let (server, results, began) = (canned(Vec::new()), Results::new(), Instant::now());
    let port = server.port().to_string();
    let words = "point-select --tables 8 --clients 2,300 --warmup 0 --ops 400 --hosts a,b";
    let mut command = command(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], &results);
    let limited = "sh -c 'test {host} = a || ulimit -n 100; exec \"$@\"' sh";
    command.args(["--host-command", limited, "--host-program", PROGRAM]);
    let ended = wait(command.spawn().expect("it runs"), began, &results);
    // As one process is: before the first step.
    assert_eq!((ended.code, ended.summaries.len()), (3, 0), "{}", ended.stderr);
    assert!(ended.stderr.contains("rank 2 (b)"), "{}", ended.stderr);
    assert!(ended.stderr.contains("ulimit"), "{}", ended.stderr);
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

/// A profile of a server that runs, with these parts.
fn profile(dir: &Path, server: &Sandbox, parts: &str) -> String {
    let (socket, path) = (server.socket.display(), dir.join("p.toml"));
    let text = format!(
        "name = 'many'\n[tables]\ncount = 1\nrows = 100\n[[server]]\nlabel = 'a'\n\
         url = 'mysql://root@localhost/sbtest?socket={socket}'\n{parts}"
    );
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// `run` of a profile with these words, on ranks of this host.
fn run_profile(words: &str, path: &str, hosts: &Hosts, results: &Results) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(path).args(words.split_whitespace()).arg("--out").arg(results.dir());
    command.args(hosts.flags("a,b")).env_remove("MYSQL_PWD").env_remove("LOADGEN_URL");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A calibration of this host as if nothing else had run on it.
fn calibrate(dir: &Path) -> String {
    let path = dir.join("calibration.json");
    let mut command = Command::new(PROGRAM);
    command.args(["calibrate", "--clients", "2", "--engine-threads", "1", "--time", "200ms"]);
    let output = command.arg("--calibration").arg(&path).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read(&path).expect("it is kept");
    let mut kept: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    for step in kept["steps"].as_array_mut().expect("steps") {
        (step["other_load"], step["steal"]) = (0.0.into(), 0.0.into());
    }
    fs::write(&path, kept.to_string()).expect("a file");
    path.display().to_string()
}

#[test]
fn profile_is_measured_on_all_hosts_and_is_the_same_to_its_list() {
    let (server, dir) = (common::sandbox(&common::local(), &[]), tempfile::tempdir());
    let (dir, results, hosts) = (dir.expect("a directory"), Results::new(), Hosts::new());
    let parts = "[[run]]\nworkload = 'point-select'\nclients = [2, 4]\nwarmup = 0\nops = 40\n";
    let path = profile(dir.path(), &server, parts);
    let (words, began) = (format!("--calibration {}", calibrate(dir.path())), Instant::now());
    let child = run_profile(&words, &path, &hosts, &results).spawn().expect("it runs");
    let ended = wait(child, began, &results);
    assert_eq!((ended.code, ended.summaries.len()), (0, 2), "{}", ended.stderr);
    for step in &ended.summaries {
        let share = step.client.share.as_ref().expect("it has one");
        assert!(step.hosts.len() == 2 && share.ceiling.is_none(), "the ceiling is of one host");
        let status = step.server.status.as_ref().expect("counters");
        assert_eq!(status.deltas.get("Com_stmt_execute"), Some(&40), "what all hosts sent");
    }
    let output = run_profile("--list", &path, &hosts, &results).output().expect("it runs");
    let list = String::from_utf8_lossy(&output.stdout);
    let steps: Vec<&str> = list.lines().filter(|line| line.starts_with("step ")).collect();
    assert_eq!(steps.len(), 2, "{list}");
    assert!(steps.iter().all(|step| step.ends_with(')')), "both are measured: {list}");
    server.stop().expect("it ends well");
}

#[test]
fn profile_ends_with_the_leg_in_which_a_host_is_lost() {
    let (server, dir) = (common::sandbox(&common::local(), &[]), tempfile::tempdir());
    let (dir, results, hosts) = (dir.expect("a directory"), Results::new(), Hosts::new());
    let part = |name: &str, time: &str| {
        format!("[[run]]\nworkload = '{name}'\nclients = 2\nwarmup = 0\n{time}\n")
    };
    let parts = [("update-index", "ops = 10"), ("point-select", "time = '60s'")];
    let parts = parts.map(|(name, time)| part(name, time)).concat() + &part("delete", "ops = 10");
    let path = profile(dir.path(), &server, &parts);
    let began = Instant::now();
    let child = run_profile("", &path, &hosts, &results).spawn().expect("it runs");
    until("a summary", || !results.summaries().is_empty());
    hosts.signal("b", Signal::SIGKILL);
    let ended = wait(child, began, &results);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let has = |outcome| ended.summaries.iter().any(|step| step.outcome == outcome);
    assert!(has(Outcome::Completed), "{}", ended.stderr);
    assert!(!ended.stderr.contains("delete"), "the last leg begins: {}", ended.stderr);
    hosts.wait_until_gone("a,b");
    server.stop().expect("it ends well");
}

#[test]
fn profile_is_refused_when_its_server_is_private_to_one_host() {
    let (dir, results, hosts) = (tempfile::tempdir(), Results::new(), Hosts::new());
    let path = dir.as_ref().expect("a directory").path().join("p.toml");
    let text = "name = 'x'\n[[server]]\nlabel = 'a'\n[server.sandbox]\n[tables]\ncount = 1\nrows = 10\n\
                [[run]]\nworkload = 'point-select'\nclients = 2\nops = 10\n";
    fs::write(&path, text).expect("a file");
    for words in ["", "--list"] {
        let path = path.display().to_string();
        let output = run_profile(words, &path, &hosts, &results).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
