//! What the tables hold, against what was acknowledged: `loadgen verify`.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use loadgen::sandbox::Sandbox;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::common::{local, query, sandbox};
use super::program::{Results, command, wait};
use super::restarting::{Restarting, until};

const ROWS: u32 = 500;

fn loadgen(sandbox: &Sandbox, words: &str, paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(words.split_whitespace()).args(paths).args(["--no-defaults", "-u", "root", "-S"]);
    command.arg(sandbox.socket()).output().expect("the program runs")
}

fn prepare(sandbox: &Sandbox, more: &str) {
    let done = loadgen(sandbox, &format!("prepare --rows {ROWS} --force {more}"), &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Runs a workload to its end.
fn work(sandbox: &Sandbox, words: &str, results: &Results) {
    let socket = sandbox.socket().to_str().expect("a path");
    let connection = ["-S", socket, "-u", "root"];
    let done = command(words, &connection, results).output().expect("the program runs");
    assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The exit status, and a line a table.
fn verify(sandbox: &Sandbox, paths: &[&Path]) -> (i32, Vec<String>) {
    let done = loadgen(sandbox, "verify", paths);
    let lines = String::from_utf8_lossy(&done.stdout);
    let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    let code = done.status.code().unwrap_or(-1);
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(code == 0, !error.contains("error: "), "{code}: {error}");
    (code, if lines.is_empty() { vec![error.into_owned()] } else { lines })
}

fn change(sandbox: &Sandbox, sql: &str) {
    query(sandbox, sql);
}

#[test]
fn what_is_lost_or_foreign_is_found_and_counted() {
    let server = sandbox(&local(), &[]);
    prepare(&server, "--tables 2");
    let results = Results::new();
    // Nothing has run yet.
    assert_eq!(verify(&server, &[results.dir()]).0, 0);
    for words in ["update --clients 4 --ops 800", "insert --clients 4 --ops 100"] {
        work(&server, words, &results);
    }
    let (code, lines) = verify(&server, &[results.dir()]);
    assert_eq!(code, 0, "{lines:?}");
    assert!(lines[0].starts_with("sbtest1  ok: 550 rows, sum of k "), "{lines:?}");

    let first = "sbtest.sbtest1";
    for (sql, undo, code, says) in [
        (
            "UPDATE {} SET k = k - 1 WHERE id = 7",
            "UPDATE {} SET k = k + 1 WHERE id = 7",
            4,
            "LOST 1: ",
        ),
        (
            "UPDATE {} SET k = k + 3 WHERE id = 7",
            "UPDATE {} SET k = k - 3 WHERE id = 7",
            98,
            "3 above",
        ),
        (
            "UPDATE {} SET c = REVERSE(c) WHERE id IN (9, 8)",
            "UPDATE {} SET c = REVERSE(c) WHERE id IN (9, 8)",
            4,
            "DAMAGED 2: the contents of 2 rows are not their own, the first is id 8",
        ),
        (
            "INSERT INTO {} (id, k) VALUES (100000, 5)",
            "DELETE FROM {} WHERE id = 100000",
            98,
            "1 rows more than are accounted for",
        ),
        ("DELETE FROM {} WHERE id IN (3, 4)", "", 4, "LOST 2: 2 rows are missing"),
        // Another one's row makes the count right, and hides nothing.
        ("INSERT INTO {} (id, k) VALUES (100001, 5), (100002, 5)", "", 4, "LOST 2: "),
    ] {
        change(&server, &sql.replace("{}", first));
        let (status, lines) = verify(&server, &[results.dir()]);
        assert_eq!(status, code, "{sql}: {lines:?}");
        assert!(lines[0].contains(says), "{sql}: {lines:?}");
        assert!(lines[1].contains("ok: "), "the other table is as it was: {lines:?}");
        if !undo.is_empty() {
            change(&server, &undo.replace("{}", first));
        }
    }
    // Filled again it has another identity: the ledgers of before say nothing of it.
    prepare(&server, "--tables 2");
    assert_eq!(verify(&server, &[results.dir()]).0, 0);
}

#[test]
fn what_nobody_can_know_is_said_not_guessed() {
    let server = sandbox(&local(), &[]);
    prepare(&server, "--tables 1");
    let results = Results::new();
    let says = |code: i32, text: &str| {
        let (status, lines) = verify(&server, &[results.dir()]);
        assert_eq!(status, code, "{lines:?}");
        assert!(lines[0].contains(text), "{text}: {lines:?}");
    };
    // Rows that are gone are counted, and those that stay are as they were.
    work(&server, "delete --clients 2 --ops 50", &results);
    says(0, "ok: ");
    // But of increments nobody knows how many went with a row.
    prepare(&server, "--tables 1");
    work(&server, "update --clients 2 --ops 50", &results);
    says(0, "ok: ");
    work(&server, "delete --clients 2 --ops 50", &results);
    says(98, "undecided: the sum of k cannot be told");

    prepare(&server, "--tables 1");
    work(&server, "update-non-index --clients 2 --ops 60", &results);
    says(98, "undecided: 60 updates leave nothing that could be counted");
    prepare(&server, "--tables 1");
    work(&server, "write-only --clients 2 --ops 40", &results);
    says(98, "undecided: the sum of k cannot be told");

    // Made by something else.
    change(&server, "ALTER TABLE sbtest.sbtest1 COMMENT = 'mine'");
    let (status, lines) = verify(&server, &[results.dir()]);
    assert_eq!(status, 4, "{lines:?}");
    assert!(lines[0].contains("not made by loadgen prepare") && lines[0].contains("hint: "));
}

#[test]
fn a_killed_server_that_is_durable_has_lost_nothing() {
    let server = sandbox(&local(), &[("innodb_flush_log_at_trx_commit", "1")]);
    let mut server = Restarting::new(server);
    prepare(&server.sandbox, "--tables 4");
    let results = Results::new();
    for kills in 1..=2 {
        let socket = server.sandbox.socket().to_str().expect("a path").to_owned();
        let connection = ["-S", &socket, "-u", "root"];
        let words = "update --tables 4 --clients 64 --warmup 0 --time 60s";
        let start = Instant::now();
        let child = command(words, &connection, &results).spawn().expect("runs");
        let k = || {
            let of =
                |t: u32| query(&server.sandbox, &format!("SELECT SUM(k) FROM sbtest.sbtest{t}"));
            (1..=4).map(|t| of(t)[0][0].parse::<i64>().expect("a sum")).sum::<i64>()
        };
        let before = k();
        until("a write", || k() > before + 50);
        server.kill();
        let ended = wait(child, start, &results);
        assert_eq!((ended.code, ended.summaries.len()), (1, kills), "{}", ended.stderr);
        server.start();
        until("the server", || server.answers());
        let (code, lines) = verify(&server.sandbox, &[results.dir()]);
        assert_eq!(code, 0, "{lines:?}");
        let doubts: u64 = ended.summaries.iter().flat_map(|s| &s.ledger).map(|l| l.in_doubt).sum();
        assert!(doubts > 0 && lines.iter().any(|line| line.contains("in doubt")), "{lines:?}");
    }
}

#[test]
fn a_killed_loadgen_leaves_a_record_and_verify_does_not_guess() {
    let server = sandbox(&local(), &[]);
    prepare(&server, "--tables 2");
    let results = Results::new();
    let socket = server.socket().to_str().expect("a path").to_owned();
    let connection = ["-S", &socket, "-u", "root"];
    // Those of steps without a summary: a summary appears before its record goes.
    let records = || {
        let names = std::fs::read_dir(results.dir()).expect("a directory");
        let names = names.map(|e| e.expect("an entry").file_name().into_string().expect("UTF-8"));
        let names: Vec<String> = names.collect();
        let whole: Vec<_> = results.summaries().into_iter().map(|step| step.record).collect();
        let begun = names.iter().filter_map(|name| name.strip_suffix(".begun"));
        begun.filter(|name| !whole.contains(&Some((*name).to_owned()))).count()
    };
    // One step ends, the next one is killed.
    let words = "update --tables 2 --clients 2,4 --warmup 0 --time 1s";
    let start = Instant::now();
    let child = command(words, &connection, &results).spawn().expect("runs");
    until("a step's end", || !results.summaries().is_empty());
    until("the next step's record", || records() == 1);
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).expect("it runs");
    let ended = wait(child, start, &results);
    assert_eq!(ended.summaries.len(), 1, "whole: {}", ended.stderr);
    let (code, lines) = verify(&server, &[results.dir()]);
    assert_eq!(code, 98, "{lines:?}");
    assert!(lines[0].contains("update-index, 4 clients") && lines[0].contains("left no summary"));
    // Beside a file that is named, too.
    let file = std::fs::read_dir(results.dir()).expect("a directory");
    let file = file.map(|e| e.expect("an entry").path()).find(|p| p.extension().unwrap() == "json");
    assert_eq!(verify(&server, &[&file.expect("a summary")]).0, 98);

    prepare(&server, "--tables 2");
    work(&server, words, &results);
    let (code, lines) = verify(&server, &[results.dir()]);
    assert_eq!((code, records()), (0, 1), "only the killed step's is left: {lines:?}");
    assert!(start.elapsed() < Duration::from_mins(1));
}
