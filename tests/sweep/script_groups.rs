//! Scripts as groups of clients beside the measured ones, and beside measured scripts.

use std::fs;

use loadgen::sandbox::Sandbox;
use loadgen::summary::{Group, Outcome, Summary, Transaction};

use super::groups::{group, loadgen, only, server, work};
use crate::common::program::Results;
use crate::common::query;

const ROLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lua/roles.lua");

fn prepared() -> Sandbox {
    let server = server();
    let done = loadgen(&server, &format!("lua {ROLES} --command prepare"), &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    server
}

/// Runs a step in an own directory; returns the server's counters, too.
fn measure<const N: usize>(
    server: &Sandbox,
    words: &str,
    names: [&str; N],
) -> (Summary, [u64; N], Results) {
    let results = Results::new();
    let (code, told) = work(server, words, &results);
    assert_eq!(code, 0, "{words}: {told}");
    let summary = only(&results);
    assert_eq!(summary.outcome, Outcome::Completed, "{words}");
    let status = summary.server.status.as_ref().expect("counters");
    let counted = names.map(|name| status.deltas[name].unsigned_abs());
    (summary, counted, results)
}

/// The names of events with their numbers.
fn named(all: &[Transaction]) -> Vec<(&str, u64)> {
    all.iter().map(|of| (of.name.as_str(), of.ops)).collect()
}

/// Checks what a writer's numbers say of themselves.
fn check_writer(writer: &Group) {
    let ops = writer.totals.ops;
    assert!(ops > 0 && writer.totals.errors.is_empty(), "{:?}", writer.totals);
    assert_eq!((writer.totals.statements, named(&writer.transactions)), (ops, vec![("add", ops)]));
    let writes = writer.latency.by_kind.iter().find(|of| of.kind == "write");
    assert_eq!(writes.map(|of| of.service.count), Some(ops));
    assert!(writer.latency.by_statement.is_empty());
    assert_eq!(writer.workload.name, "roles.lua");
    assert!(writer.workload.script.is_some() && writer.workload.unfollowed.is_some());
}

#[test]
fn server_counts_what_a_script_did_beside_a_workload() {
    let server = prepared();
    let words = format!(
        "point-select --clients 3 --ops 6000 --engine-threads 2 \
         --beside lua={ROLES},name=writer,clients=2,rate=100,arrival=uniform,phase=write"
    );
    let names = ["Com_stmt_execute", "Com_insert", "Com_replace"];
    let (summary, counted, _) = measure(&server, &words, names);
    let writer = group(&summary, "writer");
    check_writer(writer);
    assert_eq!((writer.clients, writer.rate), (2, Some(100.0)));
    let due = writer.totals.ops + writer.totals.backlog.expect("it is paced");
    assert_eq!(writer.latency.response.as_ref().map(|of| of.count), Some(due));
    assert_eq!(counted, [6000, writer.totals.ops, 2], "thread_done ran for each of its clients");
    // Threads and their numbers are those of the group.
    let seen = "SELECT DISTINCT tid, threads FROM sbtest.role WHERE threads > 0 ORDER BY tid";
    assert_eq!(query(&server, seen), [["0", "2"], ["1", "2"]]);
}

#[test]
fn workload_runs_on_tables_of_prepare_beside_a_measured_script() {
    let server = prepared();
    let words = format!(
        "lua {ROLES} --clients 2 --ops 600 --tables 2 --rows 500 \
         --beside update-index,name=writer,clients=2,think=1ms"
    );
    let names = ["Com_update", "Com_replace"];
    let (summary, counted, results) = measure(&server, &words, names);
    let updates = group(&summary, "writer").totals.ops;
    assert!(updates > 0);
    assert_eq!((summary.totals.ops, counted), (600, [updates, 2]));
    assert_eq!(named(&summary.transactions), [("look", 600)]);
    // The tables are the writers'.
    assert!(summary.totals.per_table.is_empty() && summary.plan.tables == 2);
    assert_eq!(group(&summary, "writer").totals.per_table.len(), 2);
    assert_eq!(summary.ledger.iter().map(|of| of.updates).sum::<u64>(), updates);
    let verified = loadgen(&server, "verify", &[results.dir()]);
    assert_eq!(verified.status.code(), Some(98), "nobody knows what the script wrote");
}

#[test]
fn groups_of_one_script_have_options_and_states_of_their_own() {
    let server = prepared();
    let words = format!(
        "lua {ROLES} --clients 2 --ops 600 --engine-threads 1 \
         --beside lua={ROLES},name=writer,clients=3,think=1ms,phase=write \
         --beside lua={ROLES},name=other,rate=50,arrival=uniform,phase=read,rows=5"
    );
    let names = ["Com_insert", "Com_replace"];
    let (summary, counted, _) = measure(&server, &words, names);
    let (writer, other) = (group(&summary, "writer"), group(&summary, "other"));
    check_writer(writer);
    assert_eq!((summary.totals.ops, counted), (600, [writer.totals.ops, 6]));
    assert_eq!(named(&summary.transactions), [("look", 600)]);
    assert!(other.totals.ops > 0, "its first arrival is at the start");
    assert_eq!(named(&other.transactions), [("look", other.totals.ops)]);
    let rows = |summary: &loadgen::summary::Workload| {
        summary.script.as_ref().and_then(|script| script.options.get("rows").copied())
    };
    assert_eq!((rows(&summary.workload), rows(&other.workload)), (Some(10.0), Some(5.0)));
    let ended = "SELECT phase, COUNT(*) FROM sbtest.ended GROUP BY phase ORDER BY phase";
    assert_eq!(query(&server, ended), [["read", "2"], ["write", "3"]]);
}

#[test]
fn step_ends_by_its_error_when_a_script_beside_fails() {
    let (server, results) = (prepared(), Results::new());
    let words = format!(
        "point-select --clients 2 --warmup 0s --time 30s \
         --beside lua={ROLES},name=writer,rate=100,phase=fail"
    );
    let (code, told) = work(&server, &words, &results);
    assert_eq!(code, 1, "{told}");
    let summary = only(&results);
    assert_eq!(summary.outcome, Outcome::Aborted);
    assert!(summary.measured_s < 25.0, "it did not wait for the window's end");
    let reason = summary.reason.as_deref().unwrap_or_default();
    assert!(reason.contains("group writer") && reason.contains(&format!("{ROLES}:")), "{reason}");
}

#[test]
fn run_ends_with_the_words_of_a_script_beside_whose_thread_init_fails() {
    let (server, results) = (server(), Results::new());
    let file = results.dir().join("fails.lua");
    fs::write(&file, "function thread_init() error('no') end function event() end")
        .expect("written");
    let words = format!("point-select --clients 2 --ops 10 --beside lua={},name=a", file.display());
    let (code, told) = work(&server, &words, &results);
    assert_eq!(code, 1, "{told}");
    let at = format!("{}:1: no", file.display());
    let is_named = |line: &str| line.contains("group a: ") && line.contains(&at);
    assert!(told.lines().any(is_named), "{told}");
}

#[test]
fn measured_clients_keep_their_counts_when_an_event_of_a_group_never_returns() {
    let (server, results) = (prepared(), Results::new());
    // One thread has the only measured client, and the other that of the group.
    let words = format!(
        "point-select --clients 1 --engine-threads 2 --warmup 0 --time 1 \
         --beside lua={ROLES},name=writer,phase=loop"
    );
    let (code, told) = work(&server, &words, &results);
    assert_eq!(code, 1, "{told}");
    let summary = only(&results);
    assert_eq!(summary.outcome, Outcome::Aborted, "{:?}", summary.reason);
    assert!(summary.totals.ops > 0 && summary.totals.per_client.ops_min == summary.totals.ops);
}

#[test]
fn script_beside_is_listed_unread_and_refused_before_a_server_is_asked() {
    let dir = Results::new();
    let file = dir.dir().join("paced.lua");
    fs::write(&file, "print('read') function event() end function thread_run() end")
        .expect("written");
    let paced = file.display();
    let (code, listed) = run(&format!("point-select --list --beside lua={paced},rate=10"));
    assert_eq!(code, 0, "{listed}");
    let is_beside = |line: &str| line.starts_with("beside ") && line.contains(&paced.to_string());
    assert!(listed.lines().any(is_beside) && !listed.contains("read\n"), "{listed}");
    for (words, says) in [
        (format!("point-select --beside lua={paced},rate=10"), "thread_run"),
        (format!("point-select --beside lua={ROLES},name=paced,nosuch=1"), "nosuch"),
        (format!("point-select --beside lua={ROLES},name=paced,threads=1"), "clients is a key"),
        ("point-select --beside lua=/nonexistent/paced.lua".to_owned(), "/nonexistent/paced.lua"),
        ("point-select --beside lua=-,name=paced".to_owned(), "lua=FILE"),
    ] {
        let (code, told) = run(&words);
        assert_eq!(code, 2, "{words}: {told}");
        assert!(told.contains(says) && told.contains("group"), "{words}: {told}");
    }
}

fn run(words: &str) -> (i32, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(words.split_whitespace()).args(["--no-defaults", "-S", "/nonexistent/socket"]);
    let done = command.output().expect("it runs");
    let told = [done.stdout, done.stderr].concat();
    (done.status.code().unwrap_or(-1), String::from_utf8_lossy(&told).into_owned())
}
