//! New connections after so many operations (`--reconnect-every`), and several addresses (`--host a,b`).

use std::process::Command;

use loadgen::canned::{Answer, Canned, Listen, Script, tables};
use loadgen::sandbox::Sandbox;
use loadgen::summary::Summary;

use crate::common::program::{Ended, canned, run};
use crate::common::{local, sandbox};

fn server() -> Sandbox {
    let server = sandbox(&local(), &[]);
    let mut prepare = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    prepare.args(["prepare", "--tables", "2", "--rows", "500", "--no-defaults", "-u", "root"]);
    let done = prepare.arg("-S").arg(&server.socket).output().expect("the program runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    server
}

fn work(server: &Sandbox, words: &str) -> Ended {
    run(words, &["-S", server.socket.to_str().expect("a path"), "-u", "root"])
}

/// Returns the growth of a counter of the server; one that did not grow is not there.
fn delta(summary: &Summary, name: &str) -> i64 {
    let status = summary.server.status.as_ref().expect("counters");
    status.deltas.get(name).copied().unwrap_or(0)
}

fn log_ins(summary: &Summary) -> Option<u64> {
    summary.latency.connect.as_ref().map(|of| of.count)
}

#[test]
fn server_counts_a_connection_for_each_log_in_when_clients_log_in_again() {
    let server = server();
    let usual = "point-select --clients 4 --ops 400 --engine-threads 2";
    let without = work(&server, usual);
    assert_eq!(without.code, 0, "{}", without.stderr);
    // Each client does 100 ops, and its first connection, of 3, 5, 8 or 10, is there before the window.
    let beside = "--beside update-index,name=writer,clients=1,reconnect-every=3,think=1ms";
    let gate = "--gate connect.mean<60s --gate connect.min>0ns";
    let again = work(&server, &format!("{usual} --reconnect-every 10 {beside} {gate}"));
    assert_eq!(again.code, 0, "{}", again.stderr);
    let (before, after) = (without.only(), again.only());
    let writer = &after.groups[0];
    let of_writer = writer.latency.connect.as_ref().expect("its log-ins").count;
    assert_eq!((log_ins(before), log_ins(after)), (None, Some(10 + 10 + 10 + 9)));
    assert_eq!((after.plan.reconnect_every, writer.reconnect_every), (Some(10), Some(3)));
    assert_eq!((after.totals.ops, after.totals.reconnects), (400, 0));
    let all = 39 + i64::try_from(of_writer).expect("a count");
    let counters = ["Connections", "Aborted_clients"];
    assert_eq!(counters.map(|name| delta(before, name)), [0, 0]);
    assert_eq!(counters.map(|name| delta(after, name)), [all, 0], "each says goodbye");
    assert!(of_writer > 0 && delta(after, "Com_stmt_prepare") >= all, "they prepare again");
    let failed = work(&server, &format!("{usual} --reconnect-every 10 --gate connect.mean<1ns"));
    assert_eq!(failed.code, 99, "{}", failed.stderr);
    for words in ["--gate connect.p99<1s", "--beside update-index,name=w --gate w.connect.p99<1s"] {
        assert_eq!(work(&server, &format!("{usual} {words}")).code, 2, "no client logs in again");
    }
}

fn at(servers: &[&Canned]) -> Vec<String> {
    servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect()
}

#[test]
fn clients_are_dealt_out_in_turn_when_there_are_several_addresses() {
    let (first, second) = (canned(Vec::new()), canned(Vec::new()));
    let hosts = at(&[&first, &second]);
    let words = "point-select --tables 8 --clients 3 --ops 300 --reconnect-every 50 --beside \
                 point-select,name=other,clients=1,rate=10";
    let ended = run(words, &["-h", &hosts.join(","), "-u", "x"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary = ended.only();
    let counted: Vec<_> = summary
        .addresses
        .iter()
        .map(|of| (of.address.as_str(), of.clients, of.ops, of.errors))
        .collect();
    assert_eq!(counted, [(hosts[0].as_str(), 2, 200, 0), (hosts[1].as_str(), 1, 100, 0)]);
    assert!(summary.warnings.iter().any(|warning| warning.code == "several_addresses"));
    // A group's clients are dealt by their own number, whatever the step has.
    let of_group = &summary.groups[0].addresses;
    assert_eq!([0, 1].map(|at| of_group[at].clients), [1, 0]);
    assert_eq!(of_group[0].ops, summary.groups[0].totals.ops);
    // The look at its version is a connection, too. The first ones have 17, 34 and 50 ops.
    let of_second = second.counts();
    assert_eq!((of_second.executes, of_second.connections), (100, 1 + 3));
    assert!(first.counts().executes >= 200 && log_ins(summary) == Some(2 + 2 + 1));
    let program = env!("CARGO_BIN_EXE_loadgen");
    let hosts =
        ["-h", &hosts.join(","), "-u", "x", "--hosts", "localhost", "--host-program", program];
    assert_eq!(run("point-select --tables 8 --ops 10", &hosts).code, 2);
}

#[test]
fn addresses_are_refused_when_their_versions_differ() {
    let first = canned(Vec::new());
    let mut answers = tables::answers(8);
    answers.insert(0, Answer::value("SELECT VERSION()", "VERSION()", "8.4.0-canned"));
    let script = Script { answers, ..Script::default() };
    let other = Canned::start(script, Listen::Port(0)).expect("a free port");
    let hosts = at(&[&first, &other]);
    let ended = run("point-select --tables 8 --ops 10", &["-h", &hosts.join(","), "-u", "x"]);
    assert_eq!((ended.code, ended.summaries.len()), (3, 0), "{}", ended.stderr);
    assert!(hosts.iter().all(|host| ended.stderr.contains(host)), "{}", ended.stderr);
}
