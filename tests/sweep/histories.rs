//! What verify says of histories that no built-in workload makes: nothing that a server did right is
//! called a loss, and nothing is right that could hide one.

use std::path::Path;
use std::process::{Command, Output};

use loadgen::sandbox::Sandbox;

use crate::common::program::Results;
use crate::common::restarting::{Restarting, until};
use crate::common::{local, query, sandbox, try_query};

fn loadgen(sandbox: &Sandbox, words: &str, paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(words.split_whitespace()).args(paths).args(["--no-defaults", "-u", "root", "-S"]);
    command.arg(&sandbox.socket).output().expect("the program runs")
}

fn prepare(sandbox: &Sandbox, more: &str) {
    let done = loadgen(sandbox, &format!("prepare --rows 500 --force {more}"), &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The exit status, and a line a table.
fn verify(sandbox: &Sandbox, words: &str, results: &Results) -> (i32, Vec<String>) {
    let done = loadgen(sandbox, &format!("verify {words}"), &[results.dir()]);
    let lines = String::from_utf8_lossy(&done.stdout);
    let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code().unwrap_or(-1), if lines.is_empty() { vec![error] } else { lines })
}

/// Runs a workload of somebody's own.
fn run(sandbox: &Sandbox, workload: &str, more: &str, results: &Results) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let socket = sandbox.socket.display();
    let text = format!(
        "name = 'x'\n[[server]]\nlabel = 'a'\nurl = 'mysql://root@localhost/sbtest?socket={socket}'\n\
         [tables]\nrows = 500\n[[workload]]\nname = 'mine'\nabout = 'x'\n{workload}\n\
         [[run]]\nworkload = 'mine'\nclients = 2\n{more}\n"
    );
    std::fs::write(file.path(), text).expect("writable");
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .arg("run")
        .arg(file.path())
        .arg("--out")
        .arg(results.dir())
        .env("LOADGEN_CALIBRATION", "/nonexistent")
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{workload}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A workload of one statement.
fn one(kind: &str, sql: &str, more: &str) -> String {
    format!(
        "[[workload.transaction]]\n[[workload.transaction.statement]]\nkind = '{kind}'\n\
         sql = \"{sql}\"\n{more}"
    )
}

struct History {
    workload: String,
    how: &'static str,
    code: i32,
    says: &'static str,
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of workloads")]
fn what_a_workload_of_ones_own_writes_is_no_loss() {
    let server = sandbox(&local(), &[]);
    let key = "params = [{ key = 'default' }]\nexpect = 'any'\n";
    let rolled_back = format!(
        "[[workload.transaction]]\nbegin = true\n[[workload.transaction.statement]]\n\
         kind = 'update'\nsql = 'UPDATE {{table}} SET k = k + 1 WHERE id = ?'\n{key}\
         effect = {{ add_k = 1 }}\n[[workload.transaction.statement]]\nkind = 'other'\n\
         sql = 'ROLLBACK'\nexpect = 'any'"
    );
    let moved = format!(
        "[[workload.transaction]]\nbegin = true\n[[workload.transaction.statement]]\n\
         kind = 'update'\nsql = 'UPDATE {{table}} SET k = k - 1 WHERE id = ?'\n{key}\
         effect = {{ add_k = -1 }}\n[[workload.transaction.statement]]\nkind = 'update'\n\
         sql = 'UPDATE {{table}} SET k = k + 1 WHERE id = ?'\n{key}effect = {{ add_k = 1 }}"
    );
    let list = "params = ['k', 'c', 'pad']";
    let ops = "ops = 40";
    for History { workload, how, code, says } in [
        // What the ledger follows.
        History {
            workload: one(
                "update",
                "UPDATE {table} SET k = k + 1 WHERE id BETWEEN ? AND ? LIMIT 5",
                "params = [{ range_start = { len = 9 } }, { range_end = { of = 1, len = 9 } }]\n\
                 expect = { affected = 5 }\neffect = { add_k = 1 }",
            ),
            how: ops,
            code: 0,
            says: "ok: ",
        },
        History {
            workload: one(
                "delete",
                "DELETE FROM {table} WHERE id = ? RETURNING k",
                "params = [{ key = 'default' }]\nexpect = { rows = { max = 1 } }\neffect = 'delete'",
            ),
            how: ops,
            code: 0,
            says: "ok: ",
        },
        History {
            workload: one(
                "insert",
                "INSERT INTO {table} (k, c, pad) VALUES {list}",
                &format!(
                    "list = {{ each = '(?, ?, ?)', times = 3, {list} }}\n\
                     expect = {{ affected = 3 }}\neffect = {{ insert_k = 1 }}"
                ),
            ),
            how: ops,
            code: 0,
            says: "ok: ",
        },
        // What it does not.
        History {
            workload: one("update", "UPDATE {table} SET pad = 'x' WHERE id = ?", key),
            how: ops,
            code: 98,
            says: "undecided: step ",
        },
        History {
            workload: one("delete", "DELETE FROM {table} WHERE id = ?", key),
            how: ops,
            code: 98,
            says: "gives no effect",
        },
        History {
            workload: one(
                "insert",
                "REPLACE INTO {table} (id, k, c, pad) VALUES (?, ?, ?, ?)",
                "params = [{ key = 'default' }, 'k', { c_of = 1 }, 'pad']\nexpect = 'any'\n\
                 effect = { insert_k = 2 }",
            ),
            how: ops,
            code: 98,
            says: "does not distinguish",
        },
        History {
            workload: one(
                "update",
                "INSERT INTO {table} (id, k) VALUES (?, 1) ON DUPLICATE KEY UPDATE k = k + 1",
                &format!("{key}effect = {{ add_k = 1 }}"),
            ),
            how: ops,
            code: 98,
            says: "does not distinguish",
        },
        History {
            workload: rolled_back,
            how: ops,
            code: 98,
            says: "begins or ends transactions itself",
        },
        // It may write what it likes.
        History {
            workload: one(
                "update",
                "UPDATE {table} SET c = ? WHERE id = ?",
                "params = ['c', { key = 'default' }]\nexpect = 'any'\neffect = 'set_c'",
            ),
            how: ops,
            code: 98,
            says: "a workload of your own",
        },
        History {
            workload: one(
                "update",
                "UPDATE {table} SET id = id + 1000000 WHERE id = ?",
                &format!("{key}effect = 'update'"),
            ),
            how: ops,
            code: 0,
            says: "ok: rows and the sum of k; ",
        },
        // What was added to one row and taken from another does not tell a lost transaction.
        History { workload: moved, how: ops, code: 0, says: "cancel out" },
    ] {
        prepare(&server, "");
        let results = Results::new();
        run(&server, &workload, how, &results);
        let (status, lines) = verify(&server, "", &results);
        assert_eq!(status, code, "{workload}: {lines:?}");
        assert!(lines[0].contains(says), "{workload}: {lines:?}");
    }
}

#[test]
fn tables_that_sql_names_itself_are_undecided_until_they_are_filled_again() {
    let server = sandbox(&local(), &[]);
    prepare(&server, "--tables 2");
    query(&server, "CREATE TABLE sbtest.log (n INT)");
    let both = |sql: &str| {
        let add = "UPDATE {table} SET k = k + 1 WHERE id = 7";
        let text = one("update", add, "expect = 'any'\neffect = { add_k = 1 }\n");
        format!(
            "{text}[[workload.transaction.statement]]\nkind = 'update'\nsql = \"{sql}\"\nexpect = 'any'"
        )
    };
    let results = Results::new();
    let count = |word: &str| verify(&server, "", &results).1.join("\n").matches(word).count();
    run(&server, &both("INSERT INTO log VALUES (1)"), "ops = 4", &results);
    assert_eq!(verify(&server, "", &results).0, 0, "log is none of loadgen's");
    run(&server, &both("UPDATE sbtest2 SET pad = 'x' WHERE id = 9"), "ops = 4", &results);
    assert_eq!(count("undecided"), 2);
    let own = one("update", "UPDATE sbtest2 SET pad = 'y' WHERE id = 9", "expect = 'any'");
    run(&server, &own, "ops = 4", &results);
    prepare(&server, "--tables 2");
    assert_eq!(verify(&server, "", &results).0, 0);
}

/// Its sums stay the same whatever it does, so that no count tells that it writes.
#[test]
fn rows_that_change_while_they_are_read_are_no_index_that_disagrees() {
    let server = sandbox(&local(), &[]);
    prepare(&server, "");
    query(
        &server,
        "CREATE PROCEDURE sbtest.move() BEGIN DECLARE i INT DEFAULT 0; WHILE i < 100000000 DO \
         START TRANSACTION; UPDATE sbtest.sbtest1 SET k = k + 100 WHERE id = 1 + i % 2000; \
         UPDATE sbtest.sbtest1 SET k = k - 100 WHERE id = 400000 - i % 2000; COMMIT; DO SLEEP(0.0005); \
         SET i = i + 1; END WHILE; END",
    );
    let done = loadgen(&server, "prepare --rows 400k --force", &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let results = Results::new();
    std::thread::scope(|scope| {
        let moving = scope.spawn(|| try_query(&server, "CALL sbtest.move()").is_err());
        until("a transfer", || query(&server, "SHOW GLOBAL STATUS LIKE 'Com_update'")[0][1] != "0");
        let (code, lines) = verify(&server, "", &results);
        assert!(!moving.is_finished(), "verify must end while rows are moved");
        assert_eq!(code, 0, "{lines:?}");
        assert!(lines[0].contains("ok: 400000"), "{lines:?}");
        let id = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'UPDATE sbtest%'";
        until("the mover's end", || {
            if let Some(row) = query(&server, id).first() {
                let _ = try_query(&server, &format!("KILL {}", row[0]));
            }
            moving.is_finished()
        });
    });
}

#[test]
fn a_copy_in_another_database_has_another_history() {
    let server = sandbox(&local(), &[]);
    prepare(&server, "");
    for sql in [
        "CREATE DATABASE other",
        "CREATE TABLE other.sbtest1 LIKE sbtest.sbtest1",
        "INSERT INTO other.sbtest1 SELECT * FROM sbtest.sbtest1",
    ] {
        query(&server, sql);
    }
    let results = Results::new();
    let words = "update --ops 50 -D other --out";
    let done = loadgen(&server, words, &[results.dir()]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (code, lines) = verify(&server, "-D other", &results);
    assert_eq!(code, 0, "{lines:?}");
    let (code, lines) = verify(&server, "-D sbtest", &results);
    assert_eq!(code, 98, "{lines:?}");
    assert!(lines[0].contains("other"));
}

#[test]
fn a_table_that_is_gone_is_not_passed_over() {
    let durable = [("innodb_flush_log_at_trx_commit", "1")];
    let mut server = Restarting::new(sandbox(&local(), &durable));
    prepare(&server.sandbox, "--tables 3");
    let results = Results::new();
    let done = loadgen(&server.sandbox, "update --ops 90 --out", &[results.dir()]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(verify(&server.sandbox, "", &results).0, 0);
    let dir = query(&server.sandbox, "SELECT @@datadir")[0][0].clone();
    server.kill();
    std::fs::remove_file(Path::new(&dir).join("sbtest/sbtest2.frm")).expect("its file");
    server.start();
    until("the server", || try_query(&server.sandbox, "SELECT 1").is_ok());
    let (code, lines) = verify(&server.sandbox, "", &results);
    assert_eq!(code, 98, "{lines:?}");
    assert!(lines[2].starts_with("sbtest2  undecided: it is not here"), "{lines:?}");
    // All of them anew: nothing of before counts.
    prepare(&server.sandbox, "--tables 1");
    query(&server.sandbox, "DROP TABLE sbtest.sbtest3");
    assert_eq!(verify(&server.sandbox, "", &results).0, 0);
}

#[test]
fn what_takes_nothing_back_is_not_judged() {
    let server = sandbox(&local(), &[]);
    prepare(&server, "");
    query(&server, "ALTER TABLE sbtest.sbtest1 ENGINE = MyISAM");
    let results = Results::new();
    assert_eq!(verify(&server, "", &results).0, 0, "nothing ran");
    let done = loadgen(&server, "update --ops 50 --out", &[results.dir()]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (code, lines) = verify(&server, "", &results);
    assert_eq!(code, 98, "{lines:?}");
    assert!(lines[0].contains("MyISAM"), "{lines:?}");
}

#[test]
fn a_table_without_any_index_has_none_that_disagrees() {
    let server = sandbox(&local(), &[]);
    prepare(&server, "");
    query(
        &server,
        "ALTER TABLE sbtest.sbtest1 MODIFY id INT NOT NULL, DROP PRIMARY KEY, DROP KEY k_1",
    );
    let results = Results::new();
    let (code, lines) = verify(&server, "", &results);
    assert_eq!(code, 0, "{lines:?}");
}

#[test]
fn what_a_procedure_writes_is_no_loss() {
    let server = sandbox(&local(), &[]);
    prepare(&server, "");
    let delete = "DELETE FROM sbtest.sbtest1 ORDER BY id LIMIT 1";
    query(&server, &format!("CREATE PROCEDURE sbtest.p() {delete}"));
    let results = Results::new();
    let add = "UPDATE {table} SET k = k + 1 WHERE id = 7";
    let add = one("update", add, "expect = 'any'\neffect = { add_k = 1 }");
    run(&server, &add, "ops = 4", &results);
    run(&server, &one("other", "CALL p()", "expect = 'any'"), "ops = 4", &results);
    let (status, lines) = verify(&server, "", &results);
    assert_eq!(status, 98, "{lines:?}");
    assert!(lines[0].contains("does not see"), "{lines:?}");
}
