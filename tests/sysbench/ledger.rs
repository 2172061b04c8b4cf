//! `loadgen verify` after runs that left a summary, on tables of `loadgen prepare`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;

use super::programs::{Place, Program, replaced};
use super::summaries::{Kept, loadgen, place, places, status};
use crate::common::databases::run as wait_for;
use crate::common::{self, query, skipped};

/// Runs that write, with their options.
const WRITERS: &[&str] = &[
    "oltp_delete",
    "oltp_read_write",
    "oltp_write_only --db-ps-mode=disable",
    "oltp_write_only --skip_trx",
    "oltp_insert",
    "oltp_insert --auto_inc=off",
    "oltp_update_index --warmup-time=1 --time=1 --events=0",
    "oltp_update_non_index --rand-type=uniform",
];

/// What the runs of a test need of tables of loadgen's own.
const OWN: &str = "--tables=2 --table-size=50 --threads=4";
const PREPARE: &str =
    "prepare --tables 2 --rows 50 --force --no-defaults -u root -S {socket} -D {db}";
const VERIFY: &str = "verify {dir}/out --no-defaults -u root -S {socket} -D {db}";

/// The exit status of `verify`, and its lines.
fn verified(place: &Place) -> (i32, String) {
    let output = loadgen(place, VERIFY);
    let said =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    (status(&output), said.concat())
}

#[test]
fn verify_finds_what_runs_left_when_prepare_made_the_tables() {
    for place in places() {
        finds_what_is_left(&place);
    }
}

fn finds_what_is_left(place: &Place) {
    for line in WRITERS {
        let _ = std::fs::remove_dir_all(place.dir().join("out"));
        let prepared = loadgen(place, PREPARE);
        assert_eq!(status(&prepared), 0, "{}", String::from_utf8_lossy(&prepared.stderr));
        let all = "--events=100 --time=0 --mysql-ignore-errors=1213,1205,1020,1062";
        let (test, options) = line.split_once(' ').unwrap_or((line, ""));
        let kept = Kept::of(place, &format!("{test} {{at}} {OWN} {all} {options}"));
        let ledger = kept.summary["ledger"].as_array().expect("a list");
        assert!(ledger.iter().all(|entry| entry["table_id"].is_string()), "{ledger:?}");
        let (status, said) = verified(place);
        assert_eq!(status, 0, "{line}: {said}");
        // It can fail: a row that nobody deleted.
        query(place.db.sandbox, &place.filled("DELETE FROM {db}.sbtest1 ORDER BY id LIMIT 1"));
        let (status, said) = verified(place);
        assert_ne!(status, 0, "{line}: {said}");
    }
}

#[test]
fn verify_allows_for_what_the_next_begin_commits_when_a_lock_is_waited_for_in_vain() {
    if replaced() {
        return skipped("sysbench leaves no summary");
    }
    let sandbox = common::sandbox(&common::local(), &[("innodb-lock-wait-timeout", "1")]);
    let place = Place::new(Program::Ours, &sandbox);
    assert_eq!(status(&loadgen(&place, PREPARE)), 0);
    let kept = wait_for(async {
        let mut conn = mysql_async::Conn::new(common::target(&sandbox)).await.expect("connected");
        conn.query_drop("BEGIN").await.expect("begun");
        // Of four updates some meet these rows, when others are done.
        for table in ["sbtest1", "sbtest2"] {
            let lock = format!("SELECT id FROM {{db}}.{table} WHERE id <= 10 FOR UPDATE");
            conn.query_drop(place.filled(&lock)).await.expect("locked");
        }
        let updates = "--index_updates=4 --non_index_updates=0 --delete_inserts=0";
        let line = format!("oltp_write_only {{at}} {OWN} {updates} --rand-type=uniform --time=4");
        Kept::of(&place, &line)
    });
    kept.agrees();
    assert!(kept.totals("retried") > 0, "{}", kept.text);
    let (status, said) = verified(&place);
    assert_eq!(status, 0, "{said}");
}

#[test]
fn verify_is_undecided_when_a_run_was_killed_before_its_summary() {
    let Some(place) = place() else { return };
    assert_eq!(status(&loadgen(&place, PREPARE)), 0);
    let line = format!(
        "sysbench oltp_delete {{at}} {OWN} --time=60 --report-interval=1 \
         --loadgen-out={{dir}}/out run"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(place.filled(&line).split_whitespace()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let working = |line: std::io::Result<String>| line.is_ok_and(|line| line.starts_with("[ 1s ]"));
    assert!(lines.any(working), "it works");
    child.kill().expect("killed");
    child.wait().expect("it ended");
    let began = Instant::now();
    let sql =
        format!("SELECT id FROM information_schema.processlist WHERE db = '{}'", place.db.name);
    while !query(place.db.sandbox, &sql).is_empty() {
        assert!(began.elapsed() < Duration::from_mins(1), "connections stay");
        std::thread::sleep(Duration::from_millis(50));
    }
    let (status, said) = verified(&place);
    assert_eq!(status, 98, "{said}");
}
