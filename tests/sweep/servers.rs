//! Against real servers: counts that agree with theirs, and ends that are theirs.

use std::time::{Duration, Instant};

use loadgen::sandbox::Sandbox;
use loadgen::summary::{ErrorClass, Outcome, Summary};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::program::{Results, command, run, wait};
use crate::common::restarting::until;
use crate::common::{local, query, sandbox, servers};

/// A server with four small tables.
pub(crate) fn prepared(server: &crate::common::Server, options: &[(&str, &str)]) -> Sandbox {
    let sandbox = sandbox(server, options);
    let socket = sandbox.socket.to_str().expect("a path").to_owned();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["prepare", "--tables", "4", "--rows", "2000", "-u", "root", "--no-defaults", "-S"])
        .arg(&socket)
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    sandbox
}

fn socket(sandbox: &Sandbox) -> [String; 4] {
    let path = sandbox.socket.to_str().expect("a path").to_owned();
    ["-S".to_owned(), path, "-u".to_owned(), "root".to_owned()]
}

fn run_on(sandbox: &Sandbox, words: &str) -> crate::common::program::Ended {
    let connection = socket(sandbox);
    run(words, &connection.each_ref().map(String::as_str))
}

pub(crate) fn sum_of_k(sandbox: &Sandbox) -> i64 {
    (1..=4)
        .map(|t| {
            let rows = query(sandbox, &format!("SELECT SUM(k) FROM sbtest.sbtest{t}"));
            rows[0][0].parse::<i64>().expect("a sum")
        })
        .sum()
}

/// A run whose count is within 1 % of the server's own, between the server's two readings: the
/// first one lies before the window. A reading is of some instant within its query, which takes a
/// good part of a second where the machine has better to do: then the next run must do.
fn agreeing(sandbox: &Sandbox, name: &str) -> Summary {
    let mut seen = Vec::new();
    for _ in 0..8 {
        let words = "point-select --tables 4 --clients 8 --warmup 500ms --time 4s --interval 100ms";
        let mut ended = run_on(sandbox, words);
        assert_eq!(ended.code, 0, "{name}: {}", ended.stderr);
        let summary = ended.summaries.remove(0);
        let status = summary.server.status.as_ref().expect("status");
        let theirs = status.deltas["Com_select"] as f64;
        let ours = counted(&summary, status.first_s, status.last_s);
        let window = counted(&summary, 0.0, summary.measured_s);
        assert!((window - summary.totals.ops as f64).abs() < 1.0, "{name}: {window}");
        if (ours / theirs - 1.0).abs() < 0.01 {
            return summary;
        }
        seen.push((ours, theirs));
    }
    panic!("{name}: ours and theirs {seen:?}");
}

/// Ops of the timeline between two instants, in seconds from the window's start.
fn counted(summary: &Summary, from_s: f64, to_s: f64) -> f64 {
    let share = |interval: &loadgen::summary::Interval| {
        let start = interval.start_s - summary.plan.warmup_s;
        let inside = to_s.min(start + interval.length_s) - from_s.max(start);
        interval.ops as f64 * (inside / interval.length_s).clamp(0.0, 1.0)
    };
    summary.timeline.iter().filter(|i| i.length_s > 0.0).map(share).sum()
}

#[test]
fn qps_and_ops_agree_with_the_servers_counters() {
    for server in servers() {
        let name = &server.name;
        let sandbox = prepared(&server, &[]);
        let summary = agreeing(&sandbox, name);
        assert_eq!(summary.server.transport, "socket");
        assert_eq!(summary.plan.data_seed, Some(1));
        what_is_recorded_beside(&summary, &sandbox, name);
        assert_eq!(summary.totals.per_table.iter().map(|t| t.ops).sum::<u64>(), summary.totals.ops);

        // Exactly N, by the server's account and by the tables'.
        for (workload, mode) in [("update-index", "prepared"), ("update-non-index", "text")] {
            let k_before = sum_of_k(&sandbox);
            let words = format!("{workload} --tables 4 --clients 7 --ops 5000 --statements {mode}");
            let ended = run_on(&sandbox, &words);
            assert_eq!(ended.code, 0, "{name}: {}", ended.stderr);
            let summary = ended.only();
            assert_eq!(summary.totals.ops, 5000);
            let status = summary.server.status.as_ref().expect("status");
            assert_eq!(status.deltas["Com_update"], 5000, "{name}: {workload}");
            let ledger: i64 = summary.ledger.iter().map(|l| l.k_added).sum();
            assert_eq!(sum_of_k(&sandbox) - k_before, ledger, "{name}: {workload}");
            assert_eq!(summary.ledger.iter().map(|l| l.updates).sum::<u64>(), 5000);
        }
        // What update-non-index wrote proves itself: 20,000 selects check a part of it.
        let ended = run_on(&sandbox, "point-select --tables 4 --clients 4 --ops 20000");
        assert_eq!(ended.code, 0, "{name}: {}", ended.stderr);
        // loadgen's own readings are in none of the counters of statements.
        let deltas = &ended.only().server.status.as_ref().expect("status").deltas;
        assert_eq!((deltas["Questions"], deltas["Handler_read_key"]), (20_000, 20_000), "{name}");
        let own = ["Com_show_status", "Handler_write", "Handler_tmp_write", "Created_tmp_tables"];
        assert_eq!(own.map(|own| deltas.get(own)), [None; 4], "{name}: {deltas:?}");
    }
}

/// The server's process, its host, InnoDB's inside, and the client's own.
fn what_is_recorded_beside(summary: &Summary, sandbox: &Sandbox, name: &str) {
    let probed = summary.server.probed.as_ref().expect("the server is on this host");
    let process = probed.process.as_ref().expect("its process is found");
    assert_eq!((process.pid, probed.via.as_str()), (sandbox.pid, "local"), "{name}");
    let cpu_us = (process.user_s + process.sys_s) * 1e6 / summary.totals.ops as f64;
    assert!((1.0..10_000.0).contains(&cpu_us), "{name}: {cpu_us} us of CPU an op");
    let switches = process.voluntary_switches.zip(process.involuntary_switches);
    assert!(switches.is_some_and(|(waits, _)| waits > 0), "{name}: {process:?}");
    assert!(process.read_bytes.is_some() && process.rss_bytes > Some(1 << 20), "{name}");
    let host = probed.host.as_ref().expect("this host");
    assert!(host.user_s + host.sys_s >= process.user_s + process.sys_s - 1.0, "{name}");
    let status = summary.server.status.as_ref().expect("status");
    assert!(status.last_s >= summary.measured_s, "{name}: a reading inside the window");
    assert!(status.gauges["Innodb_buffer_pool_pages_total"] > 0, "{name}");
    let inside = status.innodb.as_ref().map(|innodb| innodb.source.as_str());
    let in_status = status.deltas.keys().any(|key| key.starts_with("Innodb_adaptive_hash"));
    assert!(inside.is_some() || in_status || name.contains("maria"), "{name}");
    let durability = summary.server.durability.as_deref().expect("InnoDB");
    assert_eq!(durability.matches('/').count(), 3, "{name}: {durability}");
    assert!(!durability.contains('?'), "{name}: {durability}");
    assert!(summary.server.class.is_some() && summary.client.rtt_us > Some(1.0), "{name}");
}

#[test]
fn content_that_does_not_prove_itself_is_found() {
    let sandbox = prepared(&local(), &[]);
    query(&sandbox, "UPDATE sbtest.sbtest2 SET c = REVERSE(c)");
    let ended = run_on(&sandbox, "point-select --tables 4 --clients 4 --warmup 0 --time 2m");
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let wrong = ended.only().totals.errors.iter().any(|error| error.class == ErrorClass::Wrong);
    assert!(wrong, "{}", ended.stderr);
    assert!(ended.took < Duration::from_mins(1));
}

#[test]
fn zipf_and_repeats_and_shuffling_run() {
    let sandbox = prepared(&local(), &[]);
    let words = "point-select --tables 4 --clients 1,4 --ops 2000 --repeat 3 --order shuffled \
                 --distribution zipf:0.9 --spread random --seed 5 --label x --note build=O2";
    let ended = run_on(&sandbox, words);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.summaries.len(), 6);
    let repeats: Vec<u32> = {
        let mut steps: Vec<_> = ended.summaries.iter().collect();
        steps.sort_by_key(|s| s.step_id.clone());
        steps.iter().map(|s| s.plan.repeat_index).collect()
    };
    assert_eq!(repeats, [1, 1, 2, 2, 3, 3], "repeats are outermost");
    assert!(ended.summaries.iter().all(|s| s.workload.distribution == "zipf:0.9"));
    assert!(ended.summaries.iter().all(|s| s.notes["build"] == "O2" && s.label == "x"));
}

#[test]
fn a_killed_or_stopped_server_ends_the_step_in_bounded_time() {
    for signal in [Signal::SIGKILL, Signal::SIGSTOP] {
        let sandbox = prepared(&local(), &[]);
        let connection = socket(&sandbox);
        let connection = connection.each_ref().map(String::as_str);
        let results = Results::new();
        let start = Instant::now();
        let words = "update --tables 4 --clients 1,8 --warmup 0 --time 5s";
        let child = command(words, &connection, &results).spawn().expect("runs");
        until("a step's end", || !results.summaries().is_empty());
        let updates = || {
            let rows = query(&sandbox, "SHOW GLOBAL STATUS LIKE 'Com_update'");
            rows[0][1].parse::<u64>().expect("a count")
        };
        let before = updates();
        until("the next step's updates", || updates() > before + 100);
        let pid = Pid::from_raw(sandbox.pid.cast_signed());
        kill(pid, signal).expect("it runs");
        let ended = wait(child, start, &results);
        if signal == Signal::SIGSTOP {
            kill(pid, Signal::SIGCONT).expect("it is stopped");
        }
        assert!(ended.took < Duration::from_mins(1), "{signal}: {:?}", ended.took);
        assert_eq!(ended.summaries.len(), 2, "{signal}: {}", ended.stderr);
        assert_eq!(ended.summaries[0].outcome, Outcome::Completed);
        let cut = &ended.summaries[1];
        assert!(cut.totals.ops > 0, "what was measured is kept");
        let doubts: u64 = cut.ledger.iter().map(|l| l.in_doubt).sum();
        assert!(doubts > 0, "{signal}: {}", ended.stderr);
        match signal {
            Signal::SIGKILL => {
                assert_eq!((ended.code, cut.outcome), (1, Outcome::Aborted), "{}", ended.stderr);
                assert!(ended.stderr.contains("error: client"), "{}", ended.stderr);
            }
            _ => assert_eq!(cut.totals.abandoned, 8, "{}", ended.stderr),
        }
    }
}

#[test]
fn the_sandbox_verb_does_it_all_and_leaves_nothing() {
    let results = Results::new();
    let start = Instant::now();
    let temporary = tempfile::tempdir().expect("a directory");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command
        .args(["point-select", "--sandbox", "--sandbox-option", "performance_schema=ON"])
        .args([
            "--tables",
            "2",
            "--rows",
            "1k",
            "--clients",
            "2,4",
            "--warmup",
            "0",
            "--time",
            "1s",
        ])
        .arg("--out")
        .arg(results.dir())
        .env("TMPDIR", temporary.path())
        .env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let ended = wait(command.spawn().expect("runs"), start, &results);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.summaries.len(), 2);
    assert_eq!(ended.summaries[0].server.variables["performance_schema"], "ON");
    let left: Vec<_> = std::fs::read_dir(temporary.path()).expect("readable").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn several_sandboxes_are_measured_in_turns_when_their_names_differ() {
    let program = local().program;
    let links = tempfile::tempdir().expect("a directory");
    let other = links.path().join("other");
    std::os::unix::fs::symlink(&program, &other).expect("a link");
    let sandboxes = |programs: [&std::path::Path; 2]| {
        let [one, other] = programs.map(|path| format!("--sandbox={}", path.display()));
        let words = "--tables 1 --rows 100 --clients 1,2 --warmup 0 --ops 50 --repeat 2";
        let results = Results::new();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"));
        command.arg("point-select").args([one, other]).args(words.split_whitespace());
        command.arg("--out").arg(results.dir());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        wait(command.spawn().expect("runs"), Instant::now(), &results)
    };
    // The versions are equal, so the programs name the rows.
    let mut ended = sandboxes([&program, &other]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.summaries.sort_by_key(|step| step.started_at.clone());
    let turns: Vec<(u32, u32, &str)> = ended
        .summaries
        .iter()
        .map(|step| (step.plan.repeat_index, step.plan.clients, step.label.as_str()))
        .collect();
    let [one, two] = [&program, &other].map(|path| path.to_str().expect("UTF-8"));
    let expected = [1, 2].map(|n| [(n, 1, one), (n, 2, one), (n, 1, two), (n, 2, two)]);
    assert_eq!(turns, expected.concat());
    let runs: std::collections::BTreeSet<&str> =
        ended.summaries.iter().map(|step| step.run_id.as_str()).collect();
    assert_eq!(runs.len(), 1);

    let ended = sandboxes([&program, &program]);
    assert_eq!((ended.code, ended.summaries.len()), (2, 0), "{}", ended.stderr);
}
