//! Groups of clients beside the measured ones (`--beside`, `[[run.group]]`).

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use loadgen::canned::{Action, At, Canned, Fault};
use loadgen::sandbox::Sandbox;
use loadgen::summary::{Group, Outcome, Summary};

use crate::common::program::{Ended, Results, canned, command, run_canned};
use crate::common::{local, sandbox};

const EVENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lua/events.lua");

pub(super) fn server() -> Sandbox {
    let server = sandbox(&local(), &[]);
    let done = loadgen(&server, "prepare --tables 2 --rows 500", &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    server
}

pub(super) fn loadgen(server: &Sandbox, words: &str, paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(words.split_whitespace()).args(paths).args(["--no-defaults", "-u", "root", "-S"]);
    command.arg(&server.socket).output().expect("the program runs")
}

/// Runs a workload on a server, and adds its summaries to the results.
pub(super) fn work(server: &Sandbox, words: &str, results: &Results) -> (i32, String) {
    let connection = ["-S", server.socket.to_str().expect("a path"), "-u", "root"];
    let done = command(words, &connection, results).output().expect("the program runs");
    (done.status.code().unwrap_or(-1), String::from_utf8_lossy(&done.stderr).into_owned())
}

pub(super) fn only(results: &Results) -> Summary {
    let mut all = results.summaries();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

pub(super) fn group<'s>(summary: &'s Summary, name: &str) -> &'s Group {
    summary.groups.iter().find(|group| group.name == name).expect(name)
}

fn errors(all: &[loadgen::summary::ErrorCount]) -> u64 {
    all.iter().map(|error| error.count).sum()
}

#[test]
fn server_counts_what_all_groups_did_when_a_number_of_ops_ends_the_step() {
    let summary = check_counts("--engine-threads 2");
    assert!(summary.hosts.is_empty());
}

#[test]
fn server_counts_what_all_groups_did_when_their_clients_are_on_several_hosts() {
    // Names that are commands.
    let summary = check_counts(&format!(
        "--engine-threads 1 --hosts env,nice,nohup --host-command {{host}} --host-program {}",
        env!("CARGO_BIN_EXE_loadgen")
    ));
    // Client c of all is on thread c mod 3, and each thread on a host.
    let hosts: Vec<(u32, u32)> = summary.hosts.iter().map(|of| (of.clients, of.threads)).collect();
    assert_eq!(hosts, [(1, 1); 3]);
    assert_eq!(summary.hosts.iter().map(|of| of.ops).sum::<u64>(), summary.totals.ops);
    assert!(summary.hosts.iter().all(|of| of.us_per_op.is_none() && of.user_s + of.sys_s > 0.0));
}

/// Checks the counts of a step with groups that ends by a number of ops.
fn check_counts(place: &str) -> Summary {
    let (server, results) = (server(), Results::new());
    let names = ["Com_stmt_execute", "Com_update", "Com_insert"];
    let words = format!(
        "point-select --clients 3 --ops 6000 {place} \
         --beside update-index,name=writer,clients=2,rate=100,arrival=uniform \
         --beside insert,clients=2,think=1ms"
    );
    let (code, told) = work(&server, &words, &results);
    assert_eq!(code, 0, "{told}");
    let summary = only(&results);
    let (writer, insert) = (group(&summary, "writer"), group(&summary, "insert"));
    assert_eq!((summary.totals.ops, summary.plan.clients), (6000, 3));
    assert_eq!((writer.clients, writer.rate, insert.rate), (2, Some(100.0), None));
    assert!(writer.totals.ops > 0 && insert.totals.ops > 0, "{:?}", summary.groups);
    // What waited at the end is in the times at its age.
    let due = writer.totals.ops + writer.totals.backlog.expect("it is paced");
    assert_eq!(writer.latency.response.as_ref().map(|of| of.count), Some(due));
    let all = 6000 + writer.totals.ops + insert.totals.ops;
    let status = summary.server.status.as_ref().expect("counters");
    let counted = names.map(|name| status.deltas[name].unsigned_abs());
    assert_eq!(counted, [all, writer.totals.ops, insert.totals.ops], "read after all have ended");
    // An op's cost is that of no group alone.
    assert_eq!(summary.client.us_per_op, None);
    let (updates, inserts) = summary
        .ledger
        .iter()
        .fold((0, 0), |(updates, inserts), of| (updates + of.updates, inserts + of.inserts));
    assert_eq!((updates, inserts), (writer.totals.ops, insert.totals.ops));
    let verified = loadgen(&server, "verify", &[results.dir()]);
    let told = String::from_utf8_lossy(&verified.stdout);
    assert_eq!(verified.status.code(), Some(0), "{told}");
    summary
}

/// Returns whether an evenly paced group reached its rate, and whether the summary says why not.
fn pace(summary: &Summary, name: &str, rate: f64) -> (bool, bool) {
    let off = group(summary, name).totals.tps / rate - 1.0;
    let told = |warning: &loadgen::summary::Warning| {
        let group = warning.values.as_ref().and_then(|values| values.get("group"));
        let codes = ["target_not_sustained", "warmup_backlog", "warmup_late"];
        codes.contains(&warning.code.as_str()) && group.is_some_and(|group| group == name)
    };
    (off.abs() <= 0.02, summary.warnings.iter().any(told))
}

/// A full host keeps no rate at some moment; one that has a moment's time does.
#[test]
fn paced_writer_keeps_its_rate_beside_saturated_readers() {
    let words = "point-select --tables 8 --clients 4,8 --warmup 300ms --time 2s \
                 --beside update-index,name=writer,clients=4,rate=100,arrival=uniform";
    let is_kept = (0..5).any(|_| {
        let ended = run_canned(words, &canned(Vec::new()));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let all = &ended.summaries;
        assert_eq!(all.len(), 2);
        for summary in all {
            assert_eq!(summary.groups.len(), 1);
            assert!(summary.plan.rate.is_none() && summary.latency.response.is_none());
            let intended = group(summary, "writer").totals.intended.expect("a number");
            assert!((198..=202).contains(&intended), "{intended}");
            let timeline: u64 = summary.timeline.iter().map(|entry| entry.ops).sum();
            assert!(timeline >= summary.totals.ops && summary.totals.ops > 0);
        }
        all.iter().all(|step| pace(step, "writer", 100.0) == (true, false))
    });
    assert!(is_kept);
}

#[test]
fn window_of_an_open_loop_is_that_of_the_groups_beside() {
    let words = "point-select --tables 8 --clients 2 --rate 100 --warmup 500ms --time 1s \
                 --beside update-index,name=paced,clients=2,rate=50 \
                 --beside update-index,name=closed,think=1ms";
    let ended = run_canned(words, &canned(Vec::new()));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary = ended.only();
    assert!(summary.totals.intended.is_some_and(|intended| intended > 0));
    for name in ["paced", "closed"] {
        let Group { totals, measured_s, .. } = group(summary, name);
        assert!((measured_s - summary.measured_s).abs() < 1e-9, "{measured_s}");
        assert_eq!((totals.ops > 0, totals.intended.is_some()), (true, name == "paced"));
    }
    assert!((summary.measured_s - 1.0).abs() < 1e-9, "{}", summary.measured_s);
}

#[test]
fn search_has_its_groups_in_each_of_its_steps() {
    let words = "point-select --tables 8 --clients 2 --engine-threads 1 --rate 100 --slo p99<10us \
                 --slo-resolution 90% --arrival uniform --warmup 0 --time 500ms \
                 --beside update-index,name=writer,think=1ms";
    let ended = run_canned(words, &canned(Vec::new()));
    assert!(!ended.summaries.is_empty(), "{}", ended.stderr);
    for summary in &ended.summaries {
        assert!(summary.plan.search.is_some() && group(summary, "writer").totals.ops > 0);
    }
}

#[test]
fn thread_without_measured_clients_has_those_of_a_group() {
    let words = "point-select --tables 8 --clients 1 --engine-threads 4 --ops 500 \
                 --beside update-index,name=writer,clients=6,think=1ms";
    let ended = run_canned(words, &canned(Vec::new()));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary = ended.only();
    let share = summary.client.share.as_ref().expect("it looked");
    assert_eq!((summary.totals.ops, share.threads.len()), (500, 4));
    let of_client = &group(summary, "writer").totals.per_client;
    assert!(of_client.ops_min > 0, "{of_client:?}");
    let longest = share.threads.iter().map(|thread| thread.wall_s).fold(0.0, f64::max);
    assert!(longest < summary.measured_s + 5.0, "{longest}");
}

#[test]
fn step_ends_when_only_a_group_beside_has_answers() {
    let stall = Action::HalfPacketThenStall;
    let server = canned(vec![Fault::new(At::Statement(50), stall).only("SELECT c FROM")]);
    let words = "point-select --tables 8 --clients 1 --warmup 0 --ops 1000000 \
                 --beside update-index,name=writer,think=5ms";
    let ended = run_canned(words, &server);
    assert_eq!((ended.code, ended.only().outcome), (1, Outcome::Aborted), "{}", ended.stderr);
    assert!(ended.took < Duration::from_mins(3), "{:?}", ended.took);
}

#[test]
fn reader_has_no_wrong_answer_when_a_group_beside_deletes_and_inserts() {
    let (server, results) = (server(), Results::new());
    for words in [
        "point-select --clients 2 --ops 2000 --beside read-write,clients=2",
        "insert --clients 2 --ops 400 --beside insert,name=other,clients=3,rate=300",
        "read-only --rows 500 --clients 2 --ops 300 --beside delete,clients=2,rate=500",
    ] {
        let (code, told) = work(&server, words, &results);
        assert_eq!(code, 0, "{words}: {told}");
    }
    for summary in results.summaries() {
        let found = errors(&summary.totals.errors) + errors(&summary.groups[0].totals.errors);
        assert_eq!(found, 0, "{}: {:?}", summary.workload.name, summary.totals.errors);
        assert!(summary.groups[0].totals.ops > 0);
    }
    let verified = loadgen(&server, "verify", &[results.dir()]);
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
}

fn gated(server: &Canned, gates: &[&str]) -> Ended {
    let words = "point-select --tables 8 --clients 2 --ops 3000 --beside \
                 update-index,name=writer,clients=2,think=1ms";
    let gates: String = gates.iter().map(|gate| format!(" --gate {gate}")).collect();
    run_canned(&format!("{words}{gates}"), server)
}

#[test]
fn gates_of_all_groups_decide_the_exit_status() {
    let server = canned(Vec::new());
    for (gates, code) in [
        (&["errors==0", "p99<60s", "writer.errors==0", "writer.qps>0", "writer.mean<60s"][..], 0),
        (&["errors==0", "writer.mean<1ns"], 99),
        (&["mean<1ns", "writer.errors==0"], 99),
        (&["writer.errors==0", "writer.p99.9999<60s"], 98),
        (&["reader.errors==0"], 2),
    ] {
        let ended = gated(&server, gates);
        assert_eq!(ended.code, code, "{gates:?}: {}", ended.stderr);
    }
}

/// Answers each UPDATE of the workload with an error; those of the preflight are others.
fn refusing() -> Canned {
    let error = Action::error(1290, "HY000", "read-only");
    canned(vec![Fault::new(At::EachStatement(1), error).only("SET k=k+1")])
}

#[test]
fn step_ends_by_the_policy_when_a_group_beside_fails() {
    let server = refusing();
    let words = "point-select --tables 8 --clients 2 --warmup 0s --time 30s \
                 --beside update-index,name=writer,rate=100";
    let start = Instant::now();
    let ended = run_canned(words, &server);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(start.elapsed() < Duration::from_secs(25), "it did not wait for the window's end");
    let summary = ended.only();
    assert_eq!(summary.outcome, Outcome::Aborted);
    let reason = summary.reason.as_deref().unwrap_or_default();
    // Numbers of clients are global: the measured ones are 0 and 1.
    assert!(reason.contains("writer") && reason.contains("client 2"), "{reason}");
}

#[test]
fn errors_are_those_of_their_group_when_the_step_goes_on() {
    let server = refusing();
    let words = "point-select --tables 8 --clients 2 --warmup 0s --time 1s --on-error continue \
                 --beside update-index,name=writer,rate=100";
    let ended = run_canned(words, &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary = ended.only();
    let writer = group(summary, "writer");
    assert_eq!(errors(&summary.totals.errors), 0);
    assert!(errors(&writer.totals.errors) > 0 && writer.totals.ops == 0);
    assert!(summary.totals.ops > 0);
    let ended = run_canned(&format!("{words} --max-errors 3"), &server);
    assert_eq!((ended.code, ended.only().outcome), (1, Outcome::Aborted), "{}", ended.stderr);
}

#[test]
fn group_keeps_its_counts_when_an_event_of_the_measured_script_never_returns() {
    let (server, results, files) = (sandbox(&local(), &[]), Results::new(), Results::new());
    let sql = files.dir().join("beside.sql");
    std::fs::write(&sql, "SELECT 1").expect("written");
    // One thread has the only client of the script, and the other that of the group.
    let words = format!(
        "lua {EVENTS} --clients 1 --engine-threads 2 --warmup 0 --time 1 --beside sql={},name=reader,think=1ms",
        sql.display()
    );
    let connection = ["-S", server.socket.to_str().expect("a path"), "-u", "root"];
    let mut command = command(&words, &connection, &results);
    let done = command.args(["--", "--mode=loops"]).output().expect("the program runs");
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stderr));
    let summary = only(&results);
    assert_eq!(summary.outcome, Outcome::Aborted, "{:?}", summary.reason);
    let reader = group(&summary, "reader");
    assert!(reader.totals.ops > 0 && reader.totals.per_client.ops_min == reader.totals.ops);
}

#[test]
fn steps_are_of_two_experiments_when_their_groups_differ() {
    let (server, results) = (canned(Vec::new()), Results::new());
    let port = server.port().to_string();
    for with in [
        "--label alone",
        "--label a --beside update-index,rate=100",
        "--label a --beside update-index,rate=200",
    ] {
        let words = format!("point-select --tables 8 --clients 2 --ops 200 --seed 1 {with}");
        let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
        let done = command(&words, &connection, &results).output().expect("the program runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let report = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
        command.arg("report").arg(results.dir()).args(words).output().expect("the program runs")
    };
    // What a group costs the measured clients is a question.
    let compared = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["compare", "--latest", "--baseline", "alone", "--new", "a"])
        .arg(results.dir())
        .output()
        .expect("the program runs");
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    let strict = report(&["--strict"]);
    assert_ne!(strict.status.code(), Some(0), "{}", String::from_utf8_lossy(&strict.stdout));
    let metric = report(&["--latest", "--metric", "update-index.tps", "--format", "csv"]);
    let text = String::from_utf8_lossy(&metric.stdout);
    assert!(metric.status.success() && text.contains("update-index.tps"), "{text}");
}

#[test]
fn group_is_listed_and_refused_where_it_cannot_run() {
    let list = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
        command
            .args(words.split_whitespace())
            .args(["--list", "--no-defaults"])
            .output()
            .expect("it runs")
    };
    let listed = list("point-select --beside update-index,name=writer,clients=4,rate=200");
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let is_beside = |line: &&str| line.starts_with("beside ");
    assert!(text.lines().find(is_beside).is_some_and(|line| line.contains("writer")), "{text}");
    for words in [
        "point-select --beside update-indx",
        "point-select --beside update-index --beside update-index",
        "point-select --beside lua=a.lua,sql=b.sql",
        "point-select --beside bulk-insert",
        "point-select --beside update-index --slo writer.p99<5ms",
    ] {
        assert_eq!(list(words).status.code(), Some(2), "{words}");
    }
}
