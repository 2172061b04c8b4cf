//! The workloads of several statements, against real servers: what the server counts, what is in
//! the tables afterwards, and sysbench beside it where it is installed.

use std::collections::BTreeMap;
use std::process::Command;

use crate::common::program::{Ended, run};
use crate::common::{Server, local, query, sandbox, servers};
use loadgen::sandbox::Sandbox;
use loadgen::summary::{ErrorClass, Summary};
use loadgen::workload::rows::Rows;

/// The counters that tell the mix of statements, and that of transactions.
const COUNTERS: [&str; 7] = ["select", "update", "delete", "insert", "begin", "commit", "rollback"];

type Mix = [i64; 7];

fn loadgen(sandbox: &Sandbox, words: &str) -> Ended {
    let socket = sandbox.socket.to_str().expect("a path");
    run(words, &["-S", socket, "-u", "root"])
}

/// A run that must go well.
fn ran(sandbox: &Sandbox, words: &str) -> Summary {
    let mut ended = loadgen(sandbox, words);
    assert_eq!(ended.code, 0, "{words}: {}", ended.stderr);
    ended.summaries.remove(0)
}

fn prepare(sandbox: &Sandbox, words: &str) {
    let socket = sandbox.socket.to_str().expect("a path");
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .arg("prepare")
        .args(words.split_whitespace())
        .args(["--yes", "-u", "root", "--no-defaults", "-S", socket])
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
}

fn one(sandbox: &Sandbox, sql: &str) -> i64 {
    let text = query(sandbox, sql).remove(0).remove(0);
    text.parse().unwrap_or_else(|_| panic!("{sql}: {text}"))
}

/// What the server counted over a window.
fn mix_of(summary: &Summary) -> Mix {
    let deltas = &summary.server.status.as_ref().expect("status").deltas;
    COUNTERS.map(|name| deltas.get(format!("Com_{name}").as_str()).copied().unwrap_or(0))
}

/// What the server counted since it started.
fn counted(sandbox: &Sandbox) -> Mix {
    let rows = query(sandbox, "SHOW GLOBAL STATUS LIKE 'Com\\_%'");
    let all: BTreeMap<&str, i64> =
        rows.iter().map(|row| (row[0].as_str(), row[1].parse().expect("a count"))).collect();
    COUNTERS.map(|name| all[format!("Com_{name}").as_str()])
}

/// Runs sysbench in a database of its own; None where it is not installed.
fn sysbench(sandbox: &Sandbox, words: &str, command: &str) -> Option<String> {
    let installed = Command::new("sysbench").arg("--version").output().is_ok();
    if !installed {
        return None;
    }
    query(sandbox, "CREATE DATABASE IF NOT EXISTS theirs");
    let output = Command::new("sysbench")
        .args(words.split_whitespace())
        .args(["--mysql-user=root", "--mysql-db=theirs", "--time=0", "--rand-type=uniform"])
        .arg(format!("--mysql-socket={}", sandbox.socket.display()))
        .arg(command)
        .output()
        .expect("sysbench runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words}: {text}");
    Some(text)
}

struct Oltp {
    workload: &'static str,
    flags: &'static str,
    script: &'static str,
    their_flags: &'static str,
    op: Mix,
}

/// Workload, its flags, sysbench's script and flags, and what one op is to the server.
const MIXES: [Oltp; 9] = [
    Oltp {
        workload: "point-select",
        flags: "",
        script: "oltp_point_select",
        their_flags: "",
        op: [1, 0, 0, 0, 0, 0, 0],
    },
    Oltp {
        workload: "read-only",
        flags: "",
        script: "oltp_read_only",
        their_flags: "",
        op: [14, 0, 0, 0, 1, 1, 0],
    },
    Oltp {
        workload: "write-only",
        flags: "",
        script: "oltp_write_only",
        their_flags: "",
        op: [0, 2, 1, 1, 1, 1, 0],
    },
    Oltp {
        workload: "read-write",
        flags: "",
        script: "oltp_read_write",
        their_flags: "",
        op: [14, 2, 1, 1, 1, 1, 0],
    },
    Oltp {
        workload: "read-write",
        flags: "--skip-trx --point-selects 3 --sum-ranges 0 --index-updates 2 --delete-inserts 2",
        script: "oltp_read_write",
        their_flags: "--skip_trx=on --point_selects=3 --sum_ranges=0 --index_updates=2 --delete_inserts=2",
        op: [6, 3, 2, 2, 0, 0, 0],
    },
    Oltp {
        workload: "insert",
        flags: "",
        script: "oltp_insert",
        their_flags: "",
        op: [0, 0, 0, 1, 0, 0, 0],
    },
    Oltp {
        workload: "delete",
        flags: "",
        script: "oltp_delete",
        their_flags: "",
        op: [0, 0, 1, 0, 0, 0, 0],
    },
    Oltp {
        workload: "random-points",
        flags: "--random-points 7",
        script: "select_random_points",
        their_flags: "--random_points=7",
        op: [1, 0, 0, 0, 0, 0, 0],
    },
    Oltp {
        workload: "random-ranges",
        flags: "--delta 9",
        script: "select_random_ranges",
        their_flags: "--delta=9",
        op: [1, 0, 0, 0, 0, 0, 0],
    },
];

#[test]
fn the_server_counts_what_an_op_is_and_the_same_under_sysbench() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        prepare(&sandbox, "--rows 2000");
        let theirs = server.name == local().name
            && sysbench(&sandbox, "oltp_read_only --table_size=2000", "prepare").is_some();
        for (i, Oltp { workload, flags, script, their_flags, op }) in MIXES.into_iter().enumerate()
        {
            // One client: no deadlock whose repetition would be counted too.
            let mode = if i % 2 == 0 { "prepared" } else { "text" };
            let words = format!("{workload} --ops 150 --seed 7 --statements {mode} {flags}");
            let summary = ran(&sandbox, &words);
            let expected = op.map(|n| 150 * n);
            assert_eq!(mix_of(&summary), expected, "{}: {words}", server.name);
            let statements: i64 = op[..6].iter().sum();
            assert_eq!(summary.totals.statements, 150 * statements.cast_unsigned());
            if theirs {
                let before = counted(&sandbox);
                let words = format!("{script} --table_size=2000 --events=150 {their_flags}");
                sysbench(&sandbox, &words, "run");
                let after = counted(&sandbox);
                let sum: Mix = std::array::from_fn(|i| after[i] - before[i]);
                assert_eq!(sum, expected, "sysbench: {words}");
            }
            if workload == "delete" {
                // It leaves holes, which the preflight of the next one refuses.
                prepare(&sandbox, "--rows 2000 --force");
            }
        }
    }
}

/// Rows and sum of k of a table.
fn inventory(sandbox: &Sandbox, table: &str) -> (i64, i64) {
    let sql = format!("SELECT COUNT(*), CAST(COALESCE(SUM(k), 0) AS SIGNED) FROM sbtest.{table}");
    let row = query(sandbox, &sql).remove(0);
    (row[0].parse().expect("a count"), row[1].parse().expect("a sum"))
}

#[test]
fn the_ledger_says_what_is_in_the_tables_afterwards() {
    let sandbox = sandbox(&local(), &[]);
    prepare(&sandbox, "--rows 1000");
    for words in [
        "insert --clients 4 --ops 300",
        "read-write --clients 1 --ops 50",
        "update-index --clients 4 --ops 300",
        "delete --clients 4 --ops 300",
    ] {
        let before = inventory(&sandbox, "sbtest1");
        let summary = ran(&sandbox, words);
        let after = inventory(&sandbox, "sbtest1");
        let ledger = &summary.ledger[0];
        let grown = ledger.inserts.cast_signed() - ledger.deletes.cast_signed();
        assert_eq!(after.0 - before.0, grown, "{words}");
        // Nobody reads the k of a row that is deleted.
        assert_eq!(ledger.k_unknown, ledger.deletes, "{words}");
        if ledger.k_unknown == 0 {
            assert_eq!(after.1 - before.1, ledger.k_added, "{words}");
        }
        assert_eq!(ledger.in_doubt, 0);
    }
}

#[test]
fn clients_that_delete_and_put_back_the_same_rows_lose_none() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        prepare(&sandbox, "--rows 20");
        let words = "write-only --clients 16 --ops 1500 --delete-inserts 2";
        let summary = ran(&sandbox, words);
        let failed: u64 = summary.totals.errors.iter().map(|e| e.count).sum();
        assert!(failed > 0, "{}: twenty rows are too few for sixteen clients", server.name);
        assert!(
            summary.totals.errors.iter().all(|e| e.class == ErrorClass::Session),
            "{:?}",
            summary.totals
        );
        assert_eq!(summary.totals.ops + failed, 1500);
        let (deletes, inserts) = (summary.ledger[0].deletes, summary.ledger[0].inserts);
        assert_eq!((deletes, inserts), (2 * summary.totals.ops, 2 * summary.totals.ops));
        let ids = "SELECT COUNT(*) FROM sbtest.sbtest1 WHERE id BETWEEN 1 AND 20";
        assert_eq!(one(&sandbox, ids), 20, "{}", server.name);
        // Every row that was put back proves itself.
        ran(&sandbox, "point-select --ops 2000");
        // Without transactions a row may be gone for a moment, or be put back by somebody else.
        let ended = loadgen(&sandbox, "read-write --clients 16 --ops 500 --skip-trx");
        assert_eq!(ended.code, 0, "{}: {}", server.name, ended.stderr);
    }
}

/// The statements that rows `first..` fill when as many as fit go into each: their rows.
fn bulk_rows(head: &str, bytes: usize, first: u64, statements: usize) -> Vec<u64> {
    let mut next = first;
    (0..statements)
        .map(|_| {
            let (begin, mut length) = (next, head.len());
            loop {
                let row = format!("({next},{next})").len() + usize::from(next > begin);
                if next > begin && length + row > bytes {
                    return next - begin;
                }
                (length, next) = (length + row, next + 1);
            }
        })
        .collect()
}

#[test]
fn bulk_inserts_hold_as_many_rows_as_sysbenchs() {
    let sandbox = sandbox(&local(), &[]);
    prepare(&sandbox, "--schema bulk --tables 2");
    let rows = bulk_rows("INSERT INTO bulk1 VALUES", 524_287, 1, 3);
    let summary = ran(&sandbox, "bulk-insert --clients 2 --ops 6");
    assert_eq!(mix_of(&summary), [0, 0, 0, 6, 0, 0, 0]);
    let sum: u64 = rows.iter().sum();
    assert_eq!(summary.totals.rows, 2 * sum);
    let k = (sum * (sum + 1) / 2).cast_signed();
    for (table, ledger) in ["bulk1", "bulk2"].iter().zip(&summary.ledger) {
        assert_eq!(inventory(&sandbox, table), (sum.cast_signed(), k), "{table}");
        assert_eq!((ledger.inserts, ledger.k_added), (sum, k));
        let same = format!("SELECT COUNT(*) FROM sbtest.{table} WHERE id <> k");
        assert_eq!(one(&sandbox, &same), 0);
    }
    // It goes on where the table ends; fewer clients use fewer tables.
    ran(&sandbox, "bulk-insert --clients 1 --ops 1 --bulk-bytes 1k");
    assert_eq!(inventory(&sandbox, "bulk2").0, sum.cast_signed());
    assert!(inventory(&sandbox, "bulk1").0 > sum.cast_signed());
    let ended = loadgen(&sandbox, "bulk-insert --clients 3 --ops 3");
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("bulk-insert"), "{}", ended.stderr);

    // An event of sysbench's is a row; the last statement holds what is left.
    let theirs = bulk_rows("INSERT INTO sbtest1 VALUES", 524_287, 1, 3);
    let events = theirs.iter().sum::<u64>() + 1;
    if sysbench(&sandbox, "bulk_insert", "prepare").is_some() {
        let before = counted(&sandbox);
        sysbench(&sandbox, &format!("bulk_insert --events={events}"), "run");
        assert_eq!(counted(&sandbox)[3] - before[3], 4, "three full ones and one row");
    }
}

/// Rows of the suite of 2007 in these tests: not a multiple of what they are divided by.
const ROWS: u64 = 12_345;

#[test]
fn the_suite_of_2007_finds_the_rows_that_it_expects() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        prepare(&sandbox, &format!("--schema phptest --tables 2 --rows {ROWS}"));
        if server.name == local().name {
            assert_suite_rows(&sandbox);
        }
        let suite = loadgen::workload::builtin();
        let suite = suite.iter().filter(|w| w.schema == loadgen::workload::Schema::Phptest);
        for (i, workload) in suite.enumerate() {
            let mode = if i % 2 == 0 { "prepared" } else { "text" };
            let words = format!("{} --clients 2 --ops 40 --statements {mode}", workload.name);
            let summary = ran(&sandbox, &words);
            assert_eq!(summary.totals.ops, 40, "{}: {words}", server.name);
            assert_eq!(summary.workload.schema, "phptest");
            assert_eq!(summary.totals.per_table[1].table, "phptest2");
        }
        // Not what was expected is an error, and says so.
        query(&sandbox, "DELETE FROM sbtest.phptest1 WHERE country_id = 7");
        let ended = loadgen(&sandbox, "read-key-point --tables 1 --ops 20000");
        assert_ne!(ended.code, 0, "{}", server.name);
    }
}

/// The rows are those of the seed, and the server agrees on how they are spread.
fn assert_suite_rows(sandbox: &Sandbox) {
    let source = Rows::new(1, 2, ROWS);
    let rows = query(sandbox, "SELECT * FROM sbtest.phptest2 ORDER BY id");
    assert_eq!(rows.len() as u64, ROWS);
    for (row, id) in rows.iter().zip(1..) {
        assert_eq!(row[..], source.phptest(id));
    }
    let spread = "SELECT MIN(n), MAX(n), COUNT(*) FROM (SELECT COUNT(*) n FROM sbtest.phptest1 \
                  GROUP BY country_id) x";
    assert_eq!(query(sandbox, spread), [["61", "62", "200"]]);
    let keys = "SELECT INDEX_NAME, GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX), \
                MIN(NON_UNIQUE) FROM information_schema.STATISTICS \
                WHERE TABLE_NAME = 'phptest1' GROUP BY 1 ORDER BY 1";
    assert_eq!(
        query(sandbox, keys),
        [
            ["country_id", "country_id,state_id,city", "1"],
            ["email", "email", "0"],
            ["PRIMARY", "id", "0"],
        ]
    );
}

#[test]
fn all_kinds_of_tables_are_cleaned_up() {
    let sandbox = sandbox(&local(), &[]);
    for words in ["--rows 10", "--schema phptest --rows 10", "--schema bulk"] {
        prepare(&sandbox, words);
    }
    query(&sandbox, "CREATE TABLE sbtest.bulk2 (id INT PRIMARY KEY)");
    let socket = sandbox.socket.to_str().expect("a path");
    let ended = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["cleanup", "--yes", "-u", "root", "--no-defaults", "-S", socket])
        .output()
        .expect("the program runs");
    assert!(ended.status.success());
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(["sbtest1", "phptest1", "bulk1"].iter().all(|of| said.contains(of)), "{said}");
    assert!(said.contains(" bulk2"), "{said}");
    assert_eq!(query(&sandbox, "SHOW TABLES FROM sbtest"), [["bulk2"]]);
}

#[test]
fn too_many_prepared_statements_are_refused_with_the_arithmetic() {
    let sandbox = sandbox(&local(), &[("max_prepared_stmt_count", "100")]);
    prepare(&sandbox, "--tables 2 --rows 100");
    let ended = loadgen(&sandbox, "oltp_read_write --clients 7 --ops 7");
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let sum = "max_prepared_stmt_count is 100, but 9 statements × 2 tables × 7 clients";
    assert!(ended.stderr.contains(sum), "{}", ended.stderr);
    // BEGIN and COMMIT are not prepared: exactly a hundred fit.
    let words = "read-only --clients 20 --ops 20 --spread pinned --tables 1";
    let summary = ran(&sandbox, words);
    assert_eq!(summary.totals.ops, 20);
}

#[test]
fn a_sandbox_gets_the_tables_that_its_workload_needs() {
    let Server { program, .. } = local();
    for words in ["read-key-range --rows 10k", "bulk-insert --clients 2 --bulk-bytes 10k"] {
        let sandboxed = format!("{words} --ops 4 --sandbox={}", program.display());
        let ended = run(&sandboxed, &[]);
        // The test's own --no-defaults is refused beside --sandbox.
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(sandboxed.split_whitespace())
            .arg("--out")
            .arg(tempfile::tempdir().expect("a directory").path())
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A table of somebody's own, and a script for it in a directory.
fn script(sandbox: &Sandbox, text: &str) -> (tempfile::TempDir, String) {
    query(
        sandbox,
        "CREATE TABLE IF NOT EXISTS sbtest.item (id INT PRIMARY KEY, n INT) ENGINE=InnoDB",
    );
    query(sandbox, "REPLACE INTO sbtest.item VALUES (1, 0), (2, 0), (3, 0)");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("my-tx.sql");
    std::fs::write(&path, text).expect("written");
    let path = path.to_str().expect("a path").to_owned();
    (dir, path)
}

#[test]
fn somebodys_own_sql_needs_no_profile_and_no_tables_of_loadgen() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        let transaction = "-- it's mine;\nBEGIN;\nUPDATE item SET n = n + 1 WHERE id = \
                           {random 1..3};\nSELECT n FROM item WHERE n >= {random 0..9};\nCOMMIT;\n";
        let (dir, path) = script(&sandbox, transaction);
        for mode in ["prepared", "text"] {
            let before = one(&sandbox, "SELECT SUM(n) FROM sbtest.item");
            let words = format!("sql --file {path} --clients 2 --ops 40 --statements {mode}");
            let summary = ran(&sandbox, &words);
            assert_eq!(summary.workload.name, "my-tx");
            let totals = &summary.totals;
            assert_eq!((totals.ops, totals.statements), (40, 160), "BEGIN and COMMIT count");
            assert_eq!((summary.plan.tables, summary.plan.rows), (0, 0));
            assert!(summary.ledger.is_empty(), "{:?}", summary.ledger);
            assert_eq!(one(&sandbox, "SELECT SUM(n) FROM sbtest.item") - before, 40, "{mode}");
            assert_eq!(mix_of(&summary), [40, 40, 0, 0, 40, 40, 0], "{mode}");
        }
        std::fs::write(&path, "UPDATE item SET n = 5 WHERE id = 1; SELECT 1 FROM missing")
            .expect("");
        let ended = loadgen(&sandbox, &format!("sql --file {path} --ops 2"));
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        let told = ["SELECT 1 FROM missing: error 1146", "missing' doesn't exist"];
        assert!(told.iter().all(|part| ended.stderr.contains(part)), "{}", ended.stderr);
        drop(dir);
    }
}

#[test]
fn rows_of_own_sql_are_all_that_came_and_all_that_it_put_in() {
    struct Case {
        sql: &'static str,
        rows: u64,
    }
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        let (_dir, path) = script(&sandbox, "");
        query(&sandbox, "CREATE TABLE sbtest.more (id INT AUTO_INCREMENT PRIMARY KEY, n INT)");
        let two = "BEGIN SELECT 1; SELECT id FROM item; UPDATE item SET n = n + 1; END";
        query(&sandbox, &format!("CREATE PROCEDURE sbtest.two() {two}"));
        for Case { sql, rows } in [
            Case { sql: "SELECT id FROM item", rows: 3 },
            Case { sql: "CALL two()", rows: 4 },
            Case { sql: "INSERT INTO more (n) VALUES (1), (2)", rows: 2 },
            Case { sql: "INSERT INTO more (n) SELECT id FROM item; SELECT 1", rows: 4 },
            Case { sql: "/* new */ REPLACE INTO more (n) VALUES (3)", rows: 1 },
            Case { sql: "UPDATE item SET n = n + 1", rows: 0 },
        ] {
            std::fs::write(&path, sql).expect("written");
            for mode in ["prepared", "text"] {
                let words = format!("sql --file {path} --ops 10 --statements {mode}");
                let summary = ran(&sandbox, &words);
                assert_eq!(summary.totals.rows, 10 * rows, "{mode}: {sql}");
            }
        }
    }
}

#[test]
fn random_numbers_differ_when_no_signed_one_holds_them() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        query(&sandbox, "CREATE TABLE sbtest.big (n BIGINT UNSIGNED, mode CHAR(9))");
        for mode in ["prepared", "text"] {
            let random = "{random 9223372036854775808..18446744073709551615}";
            let (_dir, path) = script(&sandbox, &format!("INSERT big VALUES ({random}, '{mode}')"));
            ran(&sandbox, &format!("sql --file {path} --ops 40 --statements {mode}"));
            let large = "COUNT(DISTINCT n) FROM sbtest.big WHERE n >= 9223372036854775808";
            assert_eq!(one(&sandbox, &format!("SELECT {large} AND mode = '{mode}'")), 40, "{mode}");
        }
    }
}

const TEMPORARY: &str = "CREATE TEMPORARY TABLE t1 AS SELECT id, k FROM sbtest1 WHERE id <= 10; \
                         SELECT COUNT(*) FROM t1; DROP TEMPORARY TABLE t1";

#[test]
fn own_sql_runs_when_it_makes_what_it_reads() {
    struct Case {
        sql: &'static str,
        rows: u64,
        mode: &'static str,
    }
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        prepare(&sandbox, "--tables 1 --rows 100");
        for Case { sql, rows, mode } in [
            Case { sql: TEMPORARY, rows: 1, mode: "text" },
            Case {
                sql: "CREATE VIEW v1 AS SELECT k, COUNT(*) AS n FROM sbtest1 GROUP BY k; \
                      SELECT MAX(n) FROM v1; DROP VIEW v1",
                rows: 1,
                mode: "text",
            },
            Case { sql: "USE mysql; SELECT COUNT(*) FROM user", rows: 1, mode: "text" },
            Case { sql: "CREATE TABLE IF NOT EXISTS mine (n INT)", rows: 0, mode: "prepared" },
            Case {
                sql: "SELECT id FROM sbtest1 WHERE c NOT LIKE '%?id=%' AND id = {random 1..100} -- why?",
                rows: 1,
                mode: "prepared",
            },
            Case {
                sql: "SET @id = {random 1..100}; SELECT id, '?' FROM sbtest1 WHERE id = @id",
                rows: 1,
                mode: "prepared",
            },
        ] {
            let (_dir, path) = script(&sandbox, sql);
            let summary = ran(&sandbox, &format!("sql --file {path} --ops 4"));
            assert_eq!(summary.totals.rows, 4 * rows, "{sql}");
            assert_eq!(summary.workload.mode.to_string(), mode, "{sql}");
        }
        let (_dir, path) = script(&sandbox, TEMPORARY);
        let ended = loadgen(&sandbox, &format!("sql --file {path} --ops 4 --statements prepared"));
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        assert!(ended.stderr.contains("--statements text"), "{}", ended.stderr);
    }
}

#[test]
fn a_sandbox_has_the_tables_that_own_sql_names() {
    let Server { program, .. } = local();
    let dir = tempfile::tempdir().expect("a directory");
    let sql = "SELECT COUNT(*) FROM sbtest1 JOIN sbtest3 USING (id)";
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["sql", "--query", sql, "--ops", "4", "--query", TEMPORARY])
        .arg(format!("--sandbox={}", program.display()))
        .arg("--out")
        .arg(dir.path())
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let loaded = loadgen::summary::load(&[dir.path().to_owned()], false).expect("a summary");
    let (_, summary) = loaded.summaries.first().expect("one");
    assert_eq!((summary.plan.tables, summary.plan.rows, summary.totals.rows), (3, 10_000, 8));
}

#[test]
fn somebodys_own_sql_runs_in_a_sandbox() {
    let Server { program, .. } = local();
    let dir = tempfile::tempdir().expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["sql", "--query", "SELECT 1", "--query", "SELECT {random 1..9}", "--ops", "10"])
        .arg(format!("--sandbox={}", program.display()))
        .arg("--out")
        .arg(dir.path())
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let loaded = loadgen::summary::load(&[dir.path().to_owned()], false).expect("a summary");
    let (_, summary) = loaded.summaries.first().expect("one");
    assert_eq!((summary.workload.name.as_str(), summary.totals.statements), ("sql", 20));
}

#[test]
fn sql_says_nothing_when_it_is_quiet_and_lists() {
    let words = ["sql", "--query", "USE other", "--query", "SELECT 1", "--list", "--quiet"];
    let mut loadgen = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"));
    let listed = loadgen.args(words).output().expect("it runs");
    assert_eq!((listed.status.code(), &*listed.stderr), (Some(0), &b""[..]));
}
