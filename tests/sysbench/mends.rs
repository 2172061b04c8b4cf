//! What sysbench does badly, and loadgen does instead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use nix::sys::signal::Signal;

use super::programs::{Ended, Place, Program, Running, replaced};
use crate::common::databases::SANDBOXES;
use crate::common::{query, skipped};

/// A place with tables; none where sysbench itself is in loadgen's place.
fn prepared() -> Option<Place<'static>> {
    if replaced() {
        skipped("these are defects of sysbench");
        return None;
    }
    let (_, sandbox) = &SANDBOXES[0];
    let place = Place::new(Program::Ours, sandbox);
    place.well("oltp_read_write {at} {t} prepare");
    Some(place)
}

/// The count of a line of the report.
fn counted(ended: &Ended, key: &str) -> u64 {
    let line = ended.stdout.lines().find_map(|line| line.trim().strip_prefix(key));
    let line = line.unwrap_or_else(|| panic!("no {key} in {}{}", ended.stdout, ended.stderr));
    line.split_whitespace().next().expect("a word").parse().expect("a count")
}

/// Kills the connections of a run that has begun.
fn kill_connections(place: &Place, run: &mut Running) {
    run.wait_for(|line| line == "Threads started!");
    let name = &place.db.name;
    let sql = format!("SELECT id FROM information_schema.processlist WHERE db = '{name}'");
    let ids: Vec<String> =
        query(place.db.sandbox, &sql).into_iter().map(|mut row| row.remove(0)).collect();
    assert!(!ids.is_empty(), "nobody is connected");
    for id in ids {
        query(place.db.sandbox, &format!("KILL {id}"));
    }
}

#[test]
fn a_run_reports_what_it_measured_when_it_is_interrupted() {
    let Some(place) = prepared() else { return };
    let mut run = place.begin("oltp_point_select {at} {t} --time=50 --report-interval=1 run");
    run.wait_for(|line| line.starts_with("[ ") && !line.contains("tps: 0.00"));
    run.signal(Signal::SIGINT);
    let ended = run.wait();
    assert!(counted(&ended, "transactions:") > 0, "{}", ended.stdout);
    assert!(ended.stdout.contains("execution time (avg/stddev):"), "{}", ended.stdout);
    assert!([124, 130].contains(&ended.status), "{}", ended.status);
}

/// Counts the warnings that a run of some seconds prints, with and without a summary.
fn warnings(place: &Place) -> [usize; 2] {
    ["", "--loadgen-out={dir}/out"].map(|out| {
        let line = format!("oltp_point_select {{at}} {{t}} --threads=8 --time=2 {out} run");
        let ended = place.run(&line);
        assert_eq!(ended.status, 0, "{}{}", ended.stdout, ended.stderr);
        assert!(!ended.stdout.contains("warning"), "{}", ended.stdout);
        ended.stderr.lines().filter(|line| line.starts_with("warning: ")).count()
    })
}

#[test]
fn a_run_warns_when_other_programs_use_the_cores() {
    let Some(place) = prepared() else { return };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 * available_parallelism().expect("known").get() {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let seen = warnings(&place);
        over.store(true, Ordering::Relaxed);
        assert_eq!(seen, [1, 1]);
    });
}

#[test]
fn a_run_reconnects_when_a_lost_connection_is_to_be_ignored() {
    let Some(place) = prepared() else { return };
    // A low rate leaves the machine to the other tests.
    let line = "oltp_point_select {at} {t} --threads=2 --time=8 --rate=100 \
                --mysql-ignore-errors=2013,2006 run";
    let mut run = place.begin(line);
    kill_connections(&place, &mut run);
    let ended = run.wait();
    assert_eq!(ended.status, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(counted(&ended, "reconnects:") >= 1, "{}", ended.stdout);
}

#[test]
fn a_run_fails_when_a_lost_connection_is_not_to_be_ignored() {
    let Some(place) = prepared() else { return };
    let mut run = place.begin("oltp_point_select {at} {t} --time=50 run");
    kill_connections(&place, &mut run);
    let ended = run.wait();
    assert_eq!(ended.status, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("\nFATAL: "), "{}", ended.stdout);
    assert!(!ended.stdout.contains("SQL statistics:"), "{}", ended.stdout);
}

#[test]
fn a_run_ends_when_an_ignored_error_never_goes_away() {
    let Some(place) = prepared() else { return };
    let line = "oltp_point_select {at} --tables=1 --table-size=100 --db-ps-mode=disable --time=2 \
                --mysql-ignore-errors=all run";
    query(place.db.sandbox, &place.filled("DROP TABLE {db}.sbtest1"));
    let ended = place.run(line);
    assert!(ended.status < 2, "{}{}", ended.stdout, ended.stderr);
    assert!(counted(&ended, "ignored errors:") > 0, "{}", ended.stdout);
}

#[test]
fn a_run_is_forced_to_end_when_its_events_outlast_the_grace() {
    let Some(place) = prepared() else { return };
    let lock = place.filled("LOCK TABLES {db}.sbtest1 WRITE, {db}.sbtest2 WRITE");
    let options = crate::common::target(place.db.sandbox);
    let ended = crate::common::databases::run(async {
        use mysql_async::prelude::Queryable;
        let mut conn = mysql_async::Conn::new(options).await.expect("connected");
        conn.query_drop(&lock).await.expect("locked");
        let line = "oltp_point_select {at} {t} --db-ps-mode=disable --threads=2 --time=1 \
                    --forced-shutdown=1 run";
        place.run(line)
    });
    assert_eq!(ended.status, 2, "{}{}", ended.stdout, ended.stderr);
    let unfinished = "Number of unfinished transactions on forced shutdown:";
    assert_eq!(counted(&ended, unfinished), 2);
    let fatal = "FATAL: The --max-time limit has expired, forcing shutdown...";
    assert!(ended.stdout.contains(fatal), "{}", ended.stdout);
}

#[test]
fn attempts_count_as_they_begin_again_when_there_are_deadlocks() {
    let (_, sandbox) = &SANDBOXES[0];
    let place = Place::new(Program::Ours, sandbox);
    place.well("oltp_read_write {at} --tables=1 --table-size=20 prepare");
    let ended = place.well(
        "oltp_read_write {at} --tables=1 --table-size=20 --threads=8 --events=600 --time=0 \
         --mysql-ignore-errors=1213,1205,1020,1062 run",
    );
    let [transactions, ignored, read] =
        ["transactions:", "ignored errors:", "read:"].map(|key| counted(&ended, key));
    assert_eq!(transactions, 600);
    assert!(ignored > 0, "no deadlock: {}", ended.stdout);
    // Whatever ends an attempt is a write: its reads are done.
    assert_eq!(read, 14 * (transactions + ignored), "{}", ended.stdout);
}

#[test]
fn a_built_in_test_is_handed_on_when_the_real_program_is_named() {
    if let Some(why) = super::programs::lacking() {
        return skipped(why);
    }
    let Some(place) = prepared() else { return };
    let theirs = super::programs::installed().expect("asked for before");
    let line = format!("--sysbench-binary={} cpu --events=3 --threads=1 run", theirs.display());
    let ended = place.well(&line);
    assert!(ended.stdout.contains("total number of events:              3\n"), "{}", ended.stdout);
}
