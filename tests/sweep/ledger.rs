//! What the tables hold, against what was acknowledged: `loadgen verify`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use loadgen::canned::{Answer, Canned, Listen, Script, tables};
use loadgen::sandbox::Sandbox;
use loadgen::workload::rows::Rows;
use loadgen::workload::table::Mark;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::program::{Results, command, run, wait};
use crate::common::restarting::{Restarting, until};
use crate::common::{local, query, sandbox, target, try_query};

const ROWS: u32 = 500;

fn loadgen(sandbox: &Sandbox, words: &str, paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(words.split_whitespace()).args(paths).args(["--no-defaults", "-u", "root", "-S"]);
    command.arg(&sandbox.socket).output().expect("the program runs")
}

fn prepare(sandbox: &Sandbox, more: &str) {
    let done = loadgen(sandbox, &format!("prepare --rows {ROWS} --force {more}"), &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Runs a workload to its end.
fn work(sandbox: &Sandbox, words: &str, results: &Results) {
    let socket = sandbox.socket.to_str().expect("a path");
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
fn contents_are_right_where_the_server_pads_them() {
    let server = sandbox(&local(), &[("sql-mode", "PAD_CHAR_TO_FULL_LENGTH")]);
    let results = Results::new();
    work(&server, "load --rows 200", &results);
    prepare(&server, "--tables 2");
    for words in ["point-select", "point-select --statements text", "update"] {
        work(&server, &format!("{words} --clients 2 --ops 400"), &results);
    }
    let (code, lines) = verify(&server, &[results.dir()]);
    assert_eq!(code, 0, "{lines:?}");
}

struct Change {
    sql: &'static str,
    undo: &'static str,
    code: i32,
    says: &'static str,
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
    for Change { sql, undo, code, says } in [
        Change {
            sql: "UPDATE {} SET k = k - 1 WHERE id = 7",
            undo: "UPDATE {} SET k = k + 1 WHERE id = 7",
            code: 4,
            says: "LOST 1: ",
        },
        Change {
            sql: "UPDATE {} SET k = k + 3 WHERE id = 7",
            undo: "UPDATE {} SET k = k - 3 WHERE id = 7",
            code: 98,
            says: "3 above",
        },
        Change {
            sql: "UPDATE {} SET c = REVERSE(c) WHERE id IN (9, 8)",
            undo: "UPDATE {} SET c = REVERSE(c) WHERE id IN (9, 8)",
            code: 4,
            says: "DAMAGED 2: the contents of 2 rows are not their own, the first is id 8",
        },
        Change {
            sql: "INSERT INTO {} (id, k) VALUES (100000, 5)",
            undo: "DELETE FROM {} WHERE id = 100000",
            code: 98,
            says: "1 rows more than are accounted for",
        },
        Change {
            sql: "DELETE FROM {} WHERE id IN (3, 4)",
            undo: "",
            code: 4,
            says: "LOST 2: 2 rows are missing",
        },
        // Another one's row makes the count right, and hides nothing.
        Change {
            sql: "INSERT INTO {} (id, k) VALUES (100001, 5), (100002, 5)",
            undo: "",
            code: 4,
            says: "LOST 2: ",
        },
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
    // Without a run on these tables nobody knows who deleted them.
    let named = Results::new();
    work(&server, "update --clients 4 --ops 80", &named);
    change(&server, &format!("DELETE FROM {first} WHERE id IN (3, 4)"));
    for (dir, expected) in [(results.dir(), 98), (named.dir(), 4)] {
        let (code, lines) = verify(&server, &[dir]);
        assert_eq!(code, expected, "{lines:?}");
    }
}

struct Damage {
    sql: &'static str,
    table: usize,
    code: i32,
    says_so: &'static str,
}

#[test]
fn contents_are_those_that_were_filled_or_that_a_write_explains() {
    let server = sandbox(&local(), &[]);
    let results = Results::new();
    let says = |table: usize, code: i32, text: &str| {
        let (status, lines) = verify(&server, &[results.dir()]);
        assert_eq!(status, code, "{lines:?}");
        assert!(lines[table].contains(text), "{text}: {lines:?}");
    };
    let tables = [("sbtest1", "insert"), ("phptest1", "update-point-pk"), ("bulk1", "bulk-insert")];
    let prepared = || {
        prepare(&server, "");
        prepare(&server, "--schema phptest");
        let bulk = loadgen(&server, "prepare --schema bulk --force", &[]);
        assert!(bulk.status.success(), "{}", String::from_utf8_lossy(&bulk.stderr));
    };
    prepared();
    says(0, 0, "ok: ");
    for Damage { sql, table, code, says_so } in [
        // Another row's is of the right form, but nobody wrote it.
        Damage {
            sql: "sbtest1 SET pad = REVERSE(pad) WHERE id = 3",
            table: 0,
            code: 98,
            says_so: "the contents of 1 rows more",
        },
        Damage {
            sql: "sbtest1 SET pad = 'x' WHERE id = 3",
            table: 0,
            code: 4,
            says_so: "DAMAGED 1: the content of id 3",
        },
        Damage {
            sql: "phptest1 SET city = 'x' WHERE id = 9",
            table: 1,
            code: 4,
            says_so: "DAMAGED 1: the content of id 9",
        },
        Damage {
            sql: "phptest1 SET password = REPEAT('7', 32) WHERE id = 9",
            table: 1,
            code: 98,
            says_so: "contents of 1 rows more",
        },
    ] {
        change(&server, &format!("UPDATE sbtest.{sql}"));
        says(table, code, says_so);
        prepared();
    }
    for (_, workload) in tables {
        let seconds = if workload == "bulk-insert" { "--bulk-bytes 200" } else { "" };
        work(&server, &format!("{workload} --clients 1 --ops 30 {seconds}"), &results);
    }
    says(0, 0, "ok: ");
    says(1, 0, "ok: rows and contents; 30 updates cannot be checked");
    says(2, 0, "ok: ");
    // What was inserted proves itself, too, and not more is wrong than that.
    change(&server, "UPDATE sbtest.sbtest1 SET c = REVERSE(c) WHERE id > 500 LIMIT 2");
    says(0, 4, "DAMAGED 2: the contents of 2 inserted rows");
    change(&server, "UPDATE sbtest.bulk1 SET k = k + 1 LIMIT 1");
    says(2, 4, "DAMAGED 1: the contents of 1 inserted rows");
}

#[test]
fn whoever_writes_meanwhile_is_named_and_nothing_is_read_again() {
    let server = sandbox(&local(), &[]);
    let done = loadgen(&server, "prepare --rows 200k --force", &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let results = Results::new();
    let connection = ["-S", server.socket.to_str().expect("a path"), "-u", "root"];
    let words = "update --clients 4 --warmup 0 --time 10m";
    let start = Instant::now();
    let child = command(words, &connection, &results).spawn().expect("runs");
    until("a write", || query(&server, "SHOW GLOBAL STATUS LIKE 'Com_update'")[0][1] != "0");
    let (code, lines) = verify(&server, &[results.dir()]);
    assert_eq!(code, 98, "{lines:?}");
    assert!(lines[0].contains("undecided: ") && lines[0].contains(" root@"), "{lines:?}");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    assert_eq!(wait(child, start, &results).code, 130);
    let (code, lines) = verify(&server, &[results.dir()]);
    assert_eq!(code, 0, "{lines:?}");
}

#[test]
fn a_number_that_is_not_whole_is_a_finding_when_other_tables_are_right() {
    let server = sandbox(&local(), &[]);
    let results = Results::new();
    for (column, says) in [("k", "DAMAGED 1: SUM(k) is '"), ("id", "DAMAGED 1: MAX(id) is '")] {
        prepare(&server, "--tables 2");
        let sql = format!("ALTER TABLE sbtest.sbtest1 MODIFY {column} DECIMAL(20,2) NOT NULL");
        change(&server, &sql);
        let (code, lines) = verify(&server, &[results.dir()]);
        assert_eq!(code, 4, "{lines:?}");
        assert!(lines[0].starts_with(&format!("sbtest1  {says}")), "{lines:?}");
        assert!(lines[1].starts_with("sbtest2  ok: "), "{lines:?}");
    }
}

/// A real server's index cannot be bent by SQL.
#[test]
fn an_index_that_disagrees_with_the_rows_is_a_finding_of_its_own() {
    let rows = Rows::new(1, 1, 10);
    let rows: Vec<[Option<String>; 4]> = (1..=10)
        .map(|id| {
            let row = rows.row(id);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            [id.to_string(), row.k.to_string(), text(&row.c), text(&row.pad)].map(Some)
        })
        .collect();
    let sum: u64 = (1..=10).map(|id| Rows::new(1, 1, 10).k(id)).sum();
    let (sum, more) = (sum.to_string(), (sum + 9).to_string());
    let rows: Vec<Vec<Option<&str>>> =
        rows.iter().map(|row| row.iter().map(Option::as_deref).collect()).collect();
    let rows: Vec<&[Option<&str>]> = rows.iter().map(Vec::as_slice).collect();
    let mark = Mark::ready(1, 10, Some(0x5f)).to_string();
    let listed = [Some("sbtest1"), Some("BASE TABLE"), Some("InnoDB"), Some(&*mark)];
    let listed = [&listed[..], &[None; 5]].concat();
    let columns = ["id", "k", "c", "pad"];
    let count = ["COUNT(*)", "SUM(k)"];
    let torn = |more: &str| {
        let mut answers = vec![
            Answer::value("INNODB_TRX", "COUNT(*)", "0"),
            Answer::rows("information_schema.TABLES", &["x"; 9], &[&listed]),
            Answer::rows("INDEX_NAME, NON_UNIQUE", &["x"; 6], &[]),
            Answer::rows(
                "information_schema.STATISTICS",
                &["t", "i", "c"],
                &[&[Some("sbtest1"), Some("k_1"), Some("k")]],
            ),
            Answer::rows("FORCE INDEX (`PRIMARY`)", &count, &[&[Some("10"), Some(&sum)]]),
            Answer::rows("FORCE INDEX (`k_1`)", &count, &[&[Some("12"), Some(more)]]),
            Answer::rows(
                "CHECK TABLE",
                &["Table", "Op", "Msg_type", "Msg_text"],
                &[
                    &[Some("t"), Some("check"), Some("Warning"), Some("Index k_1 has 12 entries")],
                    &[Some("t"), Some("check"), Some("error"), Some("Corrupt")],
                ],
            ),
            Answer::rows("id BETWEEN 1 AND 10", &columns, &rows),
            Answer::rows("id < 1 OR id > 10", &columns, &[]),
        ];
        answers.extend(tables::answers(0));
        let script = Script { answers, ..Script::default() };
        Canned::start(script, Listen::Port(0)).expect("a free port")
    };
    let server = torn(&more);
    let results = Results::new();
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["verify", "--no-defaults", "-h", "127.0.0.1", "-u", "x", "-P"])
        .arg(server.port().to_string())
        .arg(results.dir())
        .output()
        .expect("the program runs");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(4), "{out}{err}");
    let says = format!(
        "sbtest1  INDEX 2: index k_1 has 12 rows with a sum of k of {more}, the table has 10 rows \
         with a sum of k of {sum}; CHECK TABLE: Index k_1 has 12 entries; Corrupt; 10 rows"
    );
    assert!(out.starts_with(&says), "{out}{err}");
}

#[test]
fn what_the_server_still_rolls_back_is_waited_for() {
    let mut server = Restarting::new(sandbox(&local(), &[]));
    prepare(&server.sandbox, "");
    // A prepared transaction stays open until somebody ends it, also over a restart.
    let xa = "XA START 'x'; UPDATE sbtest.sbtest1 SET k = k + 1 WHERE id < 9; XA END 'x'; \
              XA PREPARE 'x'";
    for_one_connection(&server.sandbox, xa);
    server.kill();
    server.start();
    until("the server", || try_query(&server.sandbox, "SELECT 1").is_ok());
    let results = Results::new();
    let mut verify = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .arg("verify")
        .arg(results.dir())
        .args(["--no-defaults", "-u", "root", "-S"])
        .arg(&server.sandbox.socket)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut line = String::new();
    let mut lines = BufReader::new(verify.stderr.take().expect("a pipe"));
    lines.read_line(&mut line).expect("a line");
    assert_eq!(line, "waiting: 1 transaction of before the server's start still open\n");
    query(&server.sandbox, "XA ROLLBACK 'x'");
    let output = verify.wait_with_output().expect("it ends");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.starts_with("sbtest1  ok: 500 rows"), "{out}");
}

/// Statements that need one and the same connection.
fn for_one_connection(server: &Sandbox, statements: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut conn = Conn::new(target(server)).await.expect("the server is there");
        for sql in statements.split("; ") {
            conn.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        conn.disconnect().await.expect("goodbye");
    });
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
    // Most of the rows are gone long before its end.
    prepare(&server, "--tables 1");
    let socket = server.socket.to_str().expect("a path");
    let done = run("delete --clients 2 --ops 4000", &["-S", socket, "-u", "root"]);
    let deleted: u64 = done.only().ledger.iter().map(|entry| entry.deletes).sum();
    assert_eq!(done.only().totals.unmatched, Some(4000 - deleted), "{}", done.stderr);
    assert!(done.only().warnings.iter().any(|warning| warning.code == "unmatched"));
    // But of increments nobody knows how many went with a row.
    prepare(&server, "--tables 1");
    work(&server, "update --clients 2 --ops 50", &results);
    says(0, "ok: ");
    work(&server, "delete --clients 2 --ops 50", &results);
    says(0, "ok: rows and contents; the sum of k cannot be checked: rows ");

    prepare(&server, "--tables 1");
    work(&server, "update-non-index --clients 2 --ops 60", &results);
    says(0, "ok: rows, contents and the sum of k; 60 updates cannot be checked");
    prepare(&server, "--tables 1");
    work(&server, "write-only --clients 2 --ops 40", &results);
    says(0, "ok: rows and contents; the sum of k cannot be checked: rows ");

    // Made by something else.
    change(&server, "ALTER TABLE sbtest.sbtest1 COMMENT = 'mine'");
    let (status, lines) = verify(&server, &[results.dir()]);
    assert_eq!(status, 4, "{lines:?}");
    assert!(lines[0].contains("hint: "));
}

#[test]
fn a_killed_server_that_is_durable_has_lost_nothing() {
    let server = sandbox(&local(), &[("innodb_flush_log_at_trx_commit", "1")]);
    let mut server = Restarting::new(server);
    prepare(&server.sandbox, "--tables 4");
    let results = Results::new();
    for kills in 1..=2 {
        let socket = server.sandbox.socket.to_str().expect("a path").to_owned();
        let connection = ["-S", &socket, "-u", "root"];
        let words = "update --tables 4 --clients 64 --warmup 0 --time 10m";
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
    let socket = server.socket.to_str().expect("a path").to_owned();
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
    let words = |time| format!("update --tables 2 --clients 2,4 --warmup 0 --time {time}");
    let start = Instant::now();
    let child = command(&words("4s"), &connection, &results).spawn().expect("runs");
    until("a step's end", || !results.summaries().is_empty());
    until("the next step's record", || records() == 1);
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).expect("it runs");
    let ended = wait(child, start, &results);
    assert_eq!(ended.summaries.len(), 1, "whole: {}", ended.stderr);
    // Nor does a gate hold for what nobody knows.
    let gate = |more: &[&str]| {
        let mut report = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"));
        report.arg("report").arg(results.dir()).args(["--gate", "qps>0"]).args(more);
        report.output().expect("runs").status.code()
    };
    assert_eq!((gate(&[]), gate(&["--latest"])), (Some(98), Some(98)));
    assert_eq!(gate(&["--clients", "2"]), Some(0));
    assert_eq!(gate(&["--workload", "update-index"]), Some(98));
    let (code, lines) = verify(&server, &[results.dir()]);
    assert_eq!(code, 98, "{lines:?}");
    assert!(lines[0].contains("update-index, 4"));
    // Beside a file that is named, too.
    let file = std::fs::read_dir(results.dir()).expect("a directory");
    let file = file.map(|e| e.expect("an entry").path()).find(|p| p.extension().unwrap() == "json");
    assert_eq!(verify(&server, &[&file.expect("a summary")]).0, 98);

    prepare(&server, "--tables 2");
    work(&server, &words("1s"), &results);
    let (code, lines) = verify(&server, &[results.dir()]);
    assert_eq!((code, records()), (0, 1), "only the killed step's is left: {lines:?}");
    assert_eq!(gate(&["--latest"]), Some(0));
}
