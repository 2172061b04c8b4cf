//! Servers whose defaults limit every session: loadgen's own sessions set what they need, measured ones
//! tell what the limits do to them, and tables that have lost rows are no error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadgen::mysql::session::Session;
use loadgen::mysql::wire::{Inbox, LeanSession};
use loadgen::sandbox::Sandbox;
use loadgen::summary::ErrorClass;

use crate::common::databases::run;
use crate::common::program::{Ended, Results, command, wait};
use crate::common::sessions::{link, socket, target};
use crate::common::{Server, local, query, sandbox, servers, try_query};

/// A variable, the default that limits sessions, and what own sessions have instead.
const LIMITS: [(&str, &str, &str); 7] = [
    ("sql_select_limit", "50", "18446744073709551615"),
    ("max_join_size", "10", "18446744073709551615"),
    ("completion_type", "2", "NO_CHAIN"),
    ("sql_safe_updates", "1", "OFF"),
    ("sql_mode", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"),
    // A second, of the servers that count so; a minute, of those that count milliseconds.
    ("max_statement_time", "1", "0.000000"),
    ("max_execution_time", "60000", "0"),
];

/// Gives the server these defaults, as far as it has them; returns those.
fn limit(sandbox: &Sandbox) -> Vec<&'static str> {
    let set = |name: &str, value| try_query(sandbox, &format!("SET GLOBAL {name} = {value}"));
    LIMITS.iter().filter(|(name, value, _)| set(name, value).is_ok()).map(|(it, ..)| *it).collect()
}

fn on(sandbox: &Sandbox, words: &str, results: &Results) -> Ended {
    let path = sandbox.socket.to_str().expect("a path");
    let start = Instant::now();
    let child = command(words, &["-S", path, "-u", "root"], results).spawn().expect("it runs");
    wait(child, start, results)
}

/// The program without a directory of results.
fn plain(sandbox: &Sandbox, words: &str) {
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(words.split_whitespace())
        .args(["--no-defaults", "-u", "root", "-S"])
        .arg(&sandbox.socket)
        .output()
        .expect("the program runs");
    assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn own_sessions_have_what_they_need_whatever_the_server_has_and_measured_ones_have_that() {
    for server in servers() {
        let name = &server.name;
        let sandbox = sandbox(&server, &[]);
        let known = limit(&sandbox);
        assert!(known.len() >= 4, "{name}: {known:?}");
        let to = link(&target(socket(&sandbox.socket), "root", ""));
        run(async {
            let first = Session::open(&to, None).await.expect("a session");
            let again = Session::open_again(&to, Some("latin1")).await.expect("another one");
            for mut session in [first, again] {
                for (variable, _, own) in LIMITS.iter().filter(|(it, ..)| known.contains(it)) {
                    let sql = format!("SHOW SESSION VARIABLES LIKE '{variable}'");
                    let rows = session.query(&sql).await.expect("variables");
                    assert_eq!(rows[0][1].as_deref(), Some(*own), "{name}: {variable}");
                }
                session.close(Duration::from_secs(1)).await;
            }
            let mut measured = LeanSession::open(&to, &Inbox::default(), None).await.expect("one");
            measured.run_text("SELECT @@sql_select_limit").await.expect("a limit");
            assert_eq!(measured.number(), Some(50), "{name}");
            measured.close(Duration::from_secs(1)).await;
        });
    }
}

#[test]
fn own_work_is_done_and_a_part_of_a_range_is_wrong_when_the_server_limits_sessions() {
    for server in servers() {
        let name = &server.name;
        let sandbox = sandbox(&server, &[]);
        let known = limit(&sandbox);
        plain(&sandbox, "prepare --tables 2 --rows 2000");
        for variable in known.iter().filter(|it| **it != "sql_select_limit") {
            query(&sandbox, &format!("SET GLOBAL {variable} = DEFAULT"));
        }
        let results = Results::new();
        for words in ["read-only", "read-only --statements text", "read-write"] {
            let results = Results::new();
            let words = format!("{words} --clients 2 --warmup 0 --ops 50");
            let ended = on(&sandbox, &words, &results);
            assert_eq!(ended.code, 1, "{name}, {words}: {}", ended.stderr);
            let classes: Vec<&ErrorClass> =
                ended.only().totals.errors.iter().map(|error| &error.class).collect();
            assert_eq!(classes, [&ErrorClass::Wrong], "{name}, {words}");
        }
        // Point selects and updates have all that they ask for.
        for words in ["point-select --warm pool", "update-index"] {
            let ended = on(&sandbox, &format!("{words} --clients 2 --warmup 0 --ops 50"), &results);
            assert_eq!(ended.code, 0, "{name}, {words}: {}", ended.stderr);
        }
        limit(&sandbox);
        let path = results.dir().to_str().expect("a path").to_owned();
        plain(&sandbox, &format!("verify {path}"));
        plain(&sandbox, "cleanup --yes");
        query(&sandbox, "SET GLOBAL max_join_size = DEFAULT");
        assert!(query(&sandbox, "SHOW TABLES FROM sbtest").is_empty(), "{name}");
    }
}

#[test]
fn rows_that_are_gone_or_came_later_are_no_part_of_an_answer() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        // So few are gone that a sample of the ids does not show it.
        plain(&sandbox, "prepare --tables 1 --rows 20000");
        query(&sandbox, "DELETE FROM sbtest.sbtest1 WHERE id IN (7001, 7003)");
        query(
            &sandbox,
            "INSERT INTO sbtest.sbtest1 SELECT id + 20000, k, c, pad FROM sbtest.sbtest1 \
             WHERE id < 60",
        );
        let words = "read-only --point-selects 0 --clients 4 --warmup 0 --ops 400 \
                     --range-size 1000 --seed 1";
        for mode in ["prepared", "text"] {
            let results = Results::new();
            let ended = on(&sandbox, &format!("{words} --statements {mode}"), &results);
            assert_eq!(ended.code, 0, "{}, {mode}: {}", server.name, ended.stderr);
            assert!(ended.only().totals.errors.is_empty(), "{}, {mode}", server.name);
        }
    }
}

#[test]
fn rows_on_their_way_are_no_part_of_an_answer() {
    for server in servers() {
        for options in [&[][..], &[("transaction-isolation", "READ-COMMITTED")]] {
            let sandbox = sandbox(&server, options);
            plain(&sandbox, "prepare --tables 1 --rows 300");
            let words = "read-write --point-selects 0 --index-updates 0 --non-index-updates 0 \
                         --clients 8 --warmup 0 --ops 1000";
            let ended = on(&sandbox, words, &Results::new());
            let errors = &ended.only().totals.errors;
            assert!(
                errors.iter().all(|error| error.class != ErrorClass::Wrong),
                "{options:?}: {errors:?}"
            );
            assert_eq!(ended.code, 0, "{}, {options:?}: {}", server.name, ended.stderr);
        }
    }
}

#[test]
fn rows_that_another_process_deletes_and_puts_back_are_no_part_of_an_answer() {
    let sandbox = sandbox(&local(), &[]);
    plain(&sandbox, "prepare --tables 1 --rows 20000");
    query(&sandbox, "CREATE TABLE sbtest.kept SELECT * FROM sbtest.sbtest1 WHERE id = 15000");
    // Of as many rows 972 are asked for before the step: seldom this one, and then more than once.
    query(
        &sandbox,
        "CREATE PROCEDURE sbtest.renew() BEGIN DELETE FROM sbtest1 WHERE id = 15000; \
         INSERT INTO sbtest1 SELECT * FROM kept; END",
    );
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // It is there for most of the time, so that few answers lack it again and again.
            while !over.load(Ordering::Relaxed) {
                query(&sandbox, "CALL sbtest.renew()");
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let words = "read-only --skip-trx --point-selects 0 --range-size 1000 --clients 4 --warmup 0 \
                     --time 2";
        let ended: Vec<Ended> = (0..4).map(|_| on(&sandbox, words, &Results::new())).collect();
        over.store(true, Ordering::Relaxed);
        for ended in ended {
            assert!(ended.only().totals.errors.is_empty(), "{}", ended.stderr);
        }
    });
}

fn mariadb() -> impl Iterator<Item = Server> {
    let first = local();
    servers().into_iter().filter(move |it| it.program == first.program || it.name.contains("maria"))
}

#[test]
fn oracles_mode_is_refused_when_a_workload_has_begin_and_only_then() {
    for server in mariadb() {
        let sandbox = sandbox(&server, &[("sql-mode", "ORACLE")]);
        plain(&sandbox, "prepare --tables 1 --rows 300");
        for (words, code) in [
            ("read-only", 3),
            ("write-only", 3),
            ("read-only --skip-trx", 0),
            ("point-select", 0),
            ("update-index", 0),
        ] {
            let results = Results::new();
            let words = format!("{words} --clients 2 --warmup 0 --ops 20");
            let ended = on(&sandbox, &words, &results);
            assert_eq!(ended.code, code, "{}, {words}: {}", server.name, ended.stderr);
            assert_eq!(ended.summaries.len(), usize::from(code == 0), "{words}");
        }
        plain(&sandbox, "cleanup --yes");
    }
}
