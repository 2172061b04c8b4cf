//! Scripts of sysbench's under loadgen's own flags.

use std::fs;
use std::path::Path;
use std::time::Instant;

use loadgen::sandbox::Sandbox;
use loadgen::summary::{ErrorCount, Outcome, Summary, Transaction};

use crate::common::program::{Ended, Results, command, wait};
use crate::common::{local, query, sandbox};

const EVENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lua/events.lua");
const NAMED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lua/named.lua");

fn lua(sandbox: &Sandbox, words: &str, options: &[&str], results: &Results) -> Ended {
    let path = sandbox.socket.to_str().expect("a path");
    let start = Instant::now();
    let mut command = command(&format!("lua {words}"), &["-S", path, "-u", "root"], results);
    let child = command.arg("--").args(options).spawn().expect("it runs");
    wait(child, start, results)
}

#[test]
fn script_is_measured_in_a_sweep_and_its_options_are_conditions() {
    let sandbox = sandbox(&local(), &[]);
    let results = Results::new();
    let words = format!("{EVENTS} --clients 1,2 --ops 20");
    let ended = lua(&sandbox, &words, &["--mode=plain"], &results);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let [one, two] = &ended.summaries[..] else { panic!("{}", ended.stderr) };
    for step in [one, two] {
        assert_eq!((step.outcome, step.totals.ops), (Outcome::Completed, 20), "{}", ended.stderr);
        assert_eq!(step.totals.statements, 80, "BEGIN, INSERT, SELECT and COMMIT each");
        assert_eq!(step.workload.name, "events.lua");
    }
    assert_eq!(query(&sandbox, "SELECT COUNT(*) FROM sbtest.events")[0][0], "40");
    // An open loop paces the events.
    let paced = lua(&sandbox, &format!("{EVENTS} --rate 20 --time 1"), &[], &Results::new());
    assert_eq!(paced.only().outcome, Outcome::Completed, "{}", paced.stderr);
    // The script prints, and standard output is for data.
    assert!(ended.stderr.contains("init\t0\n") && ended.stderr.contains("done\n"));
    assert!(!ended.stdout.contains("init"), "{}", ended.stdout);
}

#[test]
fn script_knows_the_limits_and_the_rate_of_its_step() {
    let (sandbox, results) = (sandbox(&local(), &[]), Results::new());
    let path = results.dir().join("limits.lua");
    let text = "function thread_init() local opt = sysbench.opt \
                print('limits', opt.time, opt.events, opt.rate) end function event() end";
    fs::write(&path, text).expect("written");
    for (flags, limits) in
        [("--time 1 --rate 50", "limits\t1\t0\t50"), ("--ops 20", "limits\t0\t20\t0")]
    {
        let words = format!("{} --warmup 0 {flags}", path.display());
        let ended = lua(&sandbox, &words, &[], &results);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stderr.lines().any(|line| line == limits), "{flags}: {}", ended.stderr);
    }
    // An option of its own stays.
    fs::write(&path, format!("sysbench.cmdline.options = {{ events = {{ 'rows', 5 }} }} {text}"))
        .expect("written");
    let words = format!("{} --warmup 0 --time 1", path.display());
    let ended = lua(&sandbox, &words, &[], &results);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("limits\t1\t5\t0"), "{}", ended.stderr);
}

#[test]
fn script_ends_its_step_by_an_error_that_is_not_listed() {
    let sandbox = sandbox(&local(), &[]);
    for (mode, words) in [("sql", "errno = 1064"), ("lua", "nil value")] {
        let results = Results::new();
        let ended =
            lua(&sandbox, &format!("{EVENTS} --time 1"), &[&format!("--mode={mode}")], &results);
        assert_eq!(ended.code, 1, "{mode}: {}", ended.stderr);
        let at = format!("{EVENTS}:");
        let is_named = |line: &str| line.contains(&at) && line.contains(words);
        assert!(ended.stderr.lines().any(is_named), "{mode}: {}", ended.stderr);
        assert_eq!(ended.only().outcome, Outcome::Aborted, "{mode}");
    }
    // The server's errors begin the event again, until the time is over.
    let results = Results::new();
    let words = format!("{EVENTS} --time 1 --warmup 0 --on-error continue");
    let ended = lua(&sandbox, &words, &["--mode=sql"], &results);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let is_counted = |error: &ErrorCount| error.code == Some(1064) && error.count > 1;
    assert!(ended.only().totals.errors.iter().any(is_counted), "{}", ended.stderr);
}

/// The names of a step's transactions, with their ops and the number of their times.
fn named(step: &Summary) -> Vec<(&str, u64, u64)> {
    let list = step.transactions.iter();
    list.map(|of| (of.name.as_str(), of.ops, of.latency.service.count)).collect()
}

#[test]
fn events_that_a_script_names_have_counts_and_times_of_their_own() {
    let sandbox = sandbox(&local(), &[]);
    let results = Results::new();
    let measured = |options: &str| {
        let words = format!("{NAMED} --clients 2 --engine-threads 2 --warmup 0 {options}");
        let ended = lua(&sandbox, &words, &["--mode=plain"], &results);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended
    };
    let ended = measured("--ops 40");
    let step = ended.summaries.last().expect("a step");
    assert_eq!(step.totals.ops, 40, "{}", ended.stderr);
    // Ten have no name.
    assert_eq!(named(step), [("new order", 10, 10), ("payment", 20, 20)]);
    let [order, payment] = &step.transactions[..] else { panic!("two") };
    assert!(order.errors.is_empty() && order.retried.is_none() && order.tps > 0.0);
    assert!(order.latency.response.is_none() && payment.latency.service.p99_us.is_some());
    let kinds = step.latency.by_kind.iter().map(|of| (of.kind.as_str(), of.service.count));
    assert_eq!(kinds.collect::<Vec<_>>(), [("read", 20), ("write", 10), ("other", 10)]);
    assert!(step.latency.by_statement.is_empty());
    // Of an open loop the times begin at the intended instants.
    let ended = measured("--rate 40 --time 1");
    let step = ended.summaries.last().expect("a step");
    let ops: u64 = step.transactions.iter().map(|of| of.ops).sum();
    assert!(0 < ops && ops < step.totals.ops, "{}", ended.stderr);
    let responses = |of: &Transaction| of.latency.response.as_ref().map(|times| times.count);
    assert!(step.transactions.iter().all(|of| responses(of) == Some(of.latency.service.count)));
}

#[test]
fn event_that_begins_again_may_have_another_name_and_errors_have_that_of_their_own() {
    let sandbox = sandbox(&local(), &[]);
    let results = Results::new();
    let words = format!("{NAMED} --clients 1 --ops 20 --warmup 0 --on-error continue");
    let ended = lua(&sandbox, &words, &["--mode=again"], &results);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let step = ended.only();
    assert_eq!(named(step), [("done", 20, 20), ("tried", 0, 0)]);
    let errors = step.transactions.iter().map(|of| of.errors.clone()).collect::<Vec<_>>();
    assert_eq!((errors[0].len(), &errors[1]), (0, &step.totals.errors));
    assert_eq!(
        errors[1].iter().map(|of| (of.code, of.count)).collect::<Vec<_>>(),
        [(Some(1146), 20)]
    );
}

#[test]
fn script_fails_at_a_name_that_is_none_or_one_too_many() {
    let sandbox = sandbox(&local(), &[]);
    for (mode, word) in [("many", "64"), ("wrong", "printable"), ("number", "string expected")] {
        let results = Results::new();
        let words = format!("{NAMED} --clients 2 --ops 200 --warmup 0");
        let ended = lua(&sandbox, &words, &[&format!("--mode={mode}")], &results);
        assert_eq!(ended.code, 1, "{mode}: {}", ended.stderr);
        let at = format!("{NAMED}:6: ");
        let is_named = |line: &str| line.contains(&at) && line.contains(word);
        assert!(ended.stderr.lines().any(is_named), "{mode}: {}", ended.stderr);
        assert!(ended.only().transactions.len() <= 64, "{mode}");
    }
}

#[test]
fn what_a_script_cannot_have_is_refused() {
    let sandbox = sandbox(&local(), &[]);
    let results = Results::new();
    let write = |name: &str, text: &str| {
        let path = results.dir().join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("a path").to_owned()
    };
    let asks = write("asks.lua", "sysbench.sql.driver():connect() function event() end");
    let paced = write("paced.lua", "function event() end function thread_run() end");
    let empty = write("empty.lua", "function prepare() end");
    let broken = write("broken.lua", "function event(");
    for (words, options) in [
        ("nosuch.lua", &[][..]),
        (&format!("{EVENTS} --tables 3"), &[]),
        (&format!("{EVENTS} --distribution zipfian"), &[]),
        (EVENTS, &["--nosuch=1"]),
        (EVENTS, &["--threads=3"]),
        (EVENTS, &["word"]),
        (&asks, &[]),
        (&format!("{paced} --rate 10"), &[]),
        (&empty, &[]),
        (&broken, &[]),
    ] {
        let ended = lua(&sandbox, words, options, &results);
        assert_eq!(ended.code, 2, "{words}: {}", ended.stderr);
        assert!(ended.summaries.is_empty(), "{words}");
    }
}

#[test]
fn commands_of_a_script_have_their_own_flag() {
    let sandbox = sandbox(&local(), &[]);
    let results = Results::new();
    let path = results.dir().join("made.lua");
    let text = "sysbench.cmdline.options = { rows = { 'rows', 1 } } \
                function prepare() local con = sysbench.sql.driver():connect() \
                con:query('CREATE TABLE made (id INT)') \
                for i = 1, sysbench.opt.rows do con:query('INSERT INTO made VALUES (' .. i .. ')') end end";
    fs::write(&path, text).expect("written");
    let run = |path: &Path, name: &str| {
        let words = format!("{} --command {name}", path.display());
        lua(&sandbox, &words, &["--rows=3"], &results)
    };
    let ended = run(&path, "prepare");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(query(&sandbox, "SELECT COUNT(*) FROM sbtest.made")[0][0], "3");
    // The table is there already.
    assert_eq!(run(&path, "prepare").code, 1);
    assert_eq!(run(&path, "nosuch").code, 1);
}
