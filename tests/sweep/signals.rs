//! Ending early: signals, and servers that go away.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use loadgen::canned::{Action, Answer, At, Canned, Fault, Listen, Script, tables};
use loadgen::summary::{Outcome, Summary};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::program::{Results, canned, command, wait};
use crate::common::restarting::until;

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it runs");
}

const STEPS: &str = "point-select --tables 8 --clients 4,8,16,32,64,128 --warmup 0 --time 2s";
const LONG: &str = "point-select --tables 8 --clients 4,8 --warmup 0 --time";

#[test]
fn the_first_signal_keeps_what_was_measured() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let server = canned(Vec::new());
        let port = server.port().to_string();
        let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
        let results = Results::new();
        let start = Instant::now();
        // The first step completes, a later one is interrupted: the next, unless the host stands still.
        let mut command = command(STEPS, &connection, &results);
        let child = command.spawn().expect("the program runs");
        until("a step's end", || !results.summaries().is_empty());
        let before = server.counts().executes;
        until("the next step's ops", || server.counts().executes > before + 1000);
        send(&child, signal);
        let ended = wait(child, start, &results);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        let is_cut = |step: &&Summary| step.outcome == Outcome::Interrupted;
        let (cut, done): (Vec<&Summary>, Vec<&Summary>) = ended.summaries.iter().partition(is_cut);
        assert!(done.iter().all(|step| step.outcome == Outcome::Completed), "{}", ended.stderr);
        assert_eq!((cut.len(), done.is_empty()), (1, false), "{}", ended.stderr);
        let cut = cut[0];
        assert!(cut.measured_s > 0.0 && cut.measured_s < 2.0, "{}", cut.measured_s);
        assert!(cut.totals.ops > 0 && cut.reason.as_deref() == Some("interrupted"));
        let saved = format!("\n{} of 6 ", done.len());
        assert!(ended.stderr.contains(&saved), "{}", ended.stderr);
        // The finished step's cell is printed.
        assert!(ended.stdout.trim_start().starts_with("4  "), "{}", ended.stdout);
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    // Nothing answers, so that the drain would last.
    let stall = Fault::new(At::Statement(200), Action::StallAll(Duration::from_mins(1)));
    let server = canned(vec![stall.only("WHERE id=")]);
    let port = server.port().to_string();
    let results = Results::new();
    let start = Instant::now();
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
    let mut child = command(&format!("{LONG} 60s"), &connection, &results).spawn().expect("runs");
    until("the server's silence", || server.counts().faults == 1);
    let asked = Instant::now();
    // Two signals that come at once are one.
    while child.try_wait().expect("its status").is_none() {
        send(&child, Signal::SIGINT);
        sleep(Duration::from_millis(300));
    }
    let took = asked.elapsed();
    let ended = wait(child, start, &results);
    assert_eq!(ended.code, 130);
    assert!(ended.summaries.is_empty() && ended.stderr.contains("error: "), "{}", ended.stderr);
    // The drain would take ten seconds.
    assert!(took < Duration::from_secs(9), "{took:?}");
}

/// The kernel and the shell may each send one when a terminal goes away.
#[test]
fn hangups_keep_what_was_measured_however_many() {
    // Its answers stop, so that the drain takes its time.
    let stall = Fault::new(At::Statement(2000), Action::StallAll(Duration::from_mins(1)));
    let server = canned(vec![stall.only("WHERE id=")]);
    let port = server.port().to_string();
    let results = Results::new();
    let start = Instant::now();
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
    let child = command(&format!("{LONG} 60s"), &connection, &results).spawn().expect("runs");
    until("the server's silence", || server.counts().faults == 1);
    for _ in 0..5 {
        send(&child, Signal::SIGHUP);
        sleep(Duration::from_millis(100));
    }
    let ended = wait(child, start, &results);
    assert_eq!(ended.code, 143, "{}", ended.stderr);
    assert_eq!(ended.only().outcome, Outcome::Interrupted);
    assert!(ended.only().totals.ops > 0);
    assert!(!ended.stderr.contains("15 s"), "nobody reads it: {}", ended.stderr);
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let server = canned(Vec::new());
    let port = server.port().to_string();
    let results = Results::new();
    let start = Instant::now();
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
    let plain = command(&format!("{LONG} 1s"), &connection, &results);
    let mut nohup = Command::new("sh");
    nohup.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(plain.get_program());
    nohup.args(plain.get_args()).stdin(Stdio::null());
    nohup.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = nohup.spawn().expect("sh runs");
    until("the first step's ops", || server.counts().executes > 100);
    send(&child, Signal::SIGHUP);
    let ended = wait(child, start, &results);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.summaries.len(), 2);
}

#[test]
fn a_signal_while_connecting_ends_without_a_summary() {
    let hang = Fault::new(At::Connect(4), Action::Garbage(Vec::new()));
    let server = canned(vec![hang]);
    let port = server.port().to_string();
    let results = Results::new();
    let start = Instant::now();
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x", "--connect-timeout", "2m"];
    let child = command(&format!("{LONG} 60s"), &connection, &results).spawn().expect("runs");
    until("a silent connection", || server.counts().faults == 1);
    send(&child, Signal::SIGINT);
    let ended = wait(child, start, &results);
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert!(ended.took < Duration::from_mins(1), "{:?}", ended.took);
    assert!(ended.summaries.is_empty());
}

#[test]
fn a_signal_before_the_first_answer_ends_at_once() {
    let server = canned(vec![Fault::new(At::Connect(1), Action::Garbage(Vec::new()))]);
    let port = server.port().to_string();
    let results = Results::new();
    let start = Instant::now();
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x", "--connect-timeout", "2m"];
    let child = command(&format!("{LONG} 60s"), &connection, &results).spawn().expect("runs");
    until("a silent connection", || server.counts().faults == 1);
    send(&child, Signal::SIGINT);
    let ended = wait(child, start, &results);
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert!(ended.took < Duration::from_mins(1), "{:?}", ended.took);
}

#[test]
fn a_signal_ends_the_command_that_reads_the_host_of_the_server() {
    let server = canned(Vec::new());
    let port = server.port().to_string();
    let results = Results::new();
    let start = Instant::now();
    let [script, pid] = ["probe", "pid"].map(|name| results.dir().join(name));
    let at = pid.display();
    let text = format!("echo $$ >{at}.new; mv {at}.new {at}; exec sleep 1000\n");
    fs::write(&script, text).expect("written");
    let probe = format!("sh {}", script.display());
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x", "--probe", &probe];
    let child = command(&format!("{LONG} 60s"), &connection, &results).spawn().expect("runs");
    until("the command's start", || pid.exists());
    send(&child, Signal::SIGINT);
    let ended = wait(child, start, &results);
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    let pid = fs::read_to_string(&pid).expect("written");
    // Orphans are waited for by init: until then they are there, and dead.
    until("the command's end", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    });
}

#[test]
fn a_signal_while_a_server_settles_ends_the_wait_and_puts_back_what_was_lowered() {
    let limit = "innodb_max_dirty_pages_pct";
    let pair = ["Variable_name", "Value"];
    let dirty: [&[Option<&str>]; 2] = [
        &[Some("Innodb_buffer_pool_pages_total"), Some("8192")],
        &[Some("Innodb_buffer_pool_pages_dirty"), Some("4096")],
    ];
    let mut answers = tables::answers(8);
    answers.push(Answer::rows("SHOW GLOBAL STATUS", &pair, &dirty));
    answers.push(Answer::value(format!("@@GLOBAL.{limit}_lwm"), "lwm", "10.5"));
    answers.push(Answer::value(format!("@@GLOBAL.{limit}"), "pct", "77.5"));
    let faults = vec![
        // It never says whether it was lowered.
        Fault::new(At::Statement(1), Action::HalfPacketThenStall).only(format!("{limit} = 0")),
        // Only to be counted: as they were before.
        Fault::new(At::Statement(1), Action::Stall(Duration::ZERO)).only(format!("{limit} = 77.5")),
        Fault::new(At::Statement(1), Action::Stall(Duration::ZERO))
            .only(format!("{limit}_lwm = 10.5")),
    ];
    let script = Script { answers, faults, ..Script::default() };
    let server = Canned::start(script, Listen::Port(0)).expect("a free port");
    let port = server.port().to_string();
    let results = Results::new();
    let start = Instant::now();
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
    let words = "point-select --tables 8 --ops 100 --settle=10m";
    let child = command(words, &connection, &results).spawn().expect("runs");
    until("the server's silence", || server.counts().faults == 1);
    send(&child, Signal::SIGINT);
    let ended = wait(child, start, &results);
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert_eq!(server.counts().faults, 3, "{}", ended.stderr);
    assert!(ended.summaries.is_empty());
}

#[test]
fn a_killed_loadgen_leaves_only_whole_summaries() {
    let server = canned(Vec::new());
    let port = server.port().to_string();
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
    for wait_ms in [300, 1100, 1250, 2400] {
        let results = Results::new();
        let start = Instant::now();
        let words = "point-select --tables 8 --clients 1,2,4,8,16,32 --warmup 0 --time 1s";
        let child = command(words, &connection, &results).spawn().expect("runs");
        sleep(Duration::from_millis(wait_ms));
        send(&child, Signal::SIGKILL);
        // It panics on a damaged summary.
        let ended = wait(child, start, &results);
        assert_eq!(ended.code, -1);
        assert!(ended.summaries.iter().all(|s| s.outcome == Outcome::Completed));
    }
}
