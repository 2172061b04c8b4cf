//! `--gate` and `--slo`: exit statuses, what is told, and the path of a search.

use std::time::Duration;

use loadgen::canned::{Action, Answer, At, Canned, Fault, Listen, Script, Service, tables};
use loadgen::report::{Layout, Options, render};
use loadgen::summary::Summary;

use crate::common::program::{Results, canned, command, run_canned};

#[test]
fn gates_decide_the_exit_status_and_name_their_numbers() {
    let server = canned(Vec::new());
    let words = "point-select --tables 8 --clients 8 --ops 3000 --repeat 2";
    let held = run_canned(&format!("{words} --gate errors==0 --gate p99<1m --gate qps>0"), &server);
    assert_eq!(held.code, 2, "a minute is no unit of a latency: {}", held.stderr);
    let held =
        run_canned(&format!("{words} --gate errors==0 --gate p99<60s --gate qps>0"), &server);
    assert_eq!(held.code, 0, "{}", held.stderr);
    assert!(held.stderr.contains("3 of 3"), "{}", held.stderr);

    let failed = run_canned(&format!("{words} --gate mean<1ns --gate p99.9<60s"), &server);
    assert_eq!(failed.code, 99, "{}", failed.stderr);
    // 3,000 answers have three beyond p99.9.
    for told in ["1 of 2", "8.0.0-canned: mean<1ns FAILS", "p99.9", "10000", "3000"] {
        assert!(failed.stderr.contains(told), "{told}: {}", failed.stderr);
    }
    assert!(failed.stdout.trim_start().starts_with("8  "), "the table is there: {}", failed.stdout);

    let undecided = run_canned(&format!("{words} --gate p99.9<60s"), &server);
    assert_eq!(undecided.code, 98, "{}", undecided.stderr);
}

#[test]
fn a_step_of_github_actions_gets_the_table_and_the_gates() {
    let server = canned(Vec::new());
    let results = Results::new();
    let summary = results.dir().join("summary.md");
    std::fs::write(&summary, "before\n").expect("written");
    let words = "point-select --tables 8 --clients 8 --ops 500 --gate errors==0 --gate qps<1";
    let port = server.port().to_string();
    let mut command = command(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], &results);
    let output = command.env("GITHUB_STEP_SUMMARY", &summary).output().expect("runs");
    assert_eq!(output.status.code(), Some(99));
    let text = std::fs::read_to_string(&summary).expect("a summary");
    assert!(text.starts_with("before\n**point-select: QPS, statements a second"), "{text}");
    for said in ["| 8 | label |", "| errors==0 | 0 | 1 | ✓ holds |", "| ✗ FAILS |"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    // A run ends as it would without it.
    let mut command = self::command(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], &results);
    let output = command.env("GITHUB_STEP_SUMMARY", "/nonexistent/x").output().expect("runs");
    assert_eq!(output.status.code(), Some(99));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("GITHUB_STEP_SUMMARY /nonexistent/x"), "{said}");
}

/// Two clients at 5 ms a call: 400 a second at most, whatever the host does.
#[test]
fn a_search_ends_below_what_the_server_can_do_and_prints_its_path() {
    let script = Script {
        answers: tables::answers(8),
        service: Service::Constant(Duration::from_millis(5)),
        ..Script::default()
    };
    let server = Canned::start(script, Listen::Port(0)).expect("a free port");
    let words = "point-select --tables 8 --clients 2 --engine-threads 1 --rate 50 --slo median<60s \
                 --slo-resolution 90% --arrival uniform --warmup 0 --time 1s";
    let ended = run_canned(words, &server);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 1, "the answer alone: {}", ended.stdout);
    let found = lines[0].strip_prefix("Highest rate with median<60s at 2 clients: ");
    let rate = found.and_then(|found| found.split('/').next()?.parse::<f64>().ok());
    let rate = rate.unwrap_or_else(|| panic!("no rate: {}", ended.stdout));
    let steps: Vec<&Summary> = ended.summaries.iter().collect();
    let path = render(&steps, &Options { layout: Layout::Slo, ..Options::default() });
    let path = path.expect("the path of the search");
    let path: Vec<&str> = path.lines().collect();
    assert_eq!(path[1], lines[0], "the same again");
    let probes = path.iter().skip(3).take_while(|line| !line.is_empty()).count();
    assert_eq!(probes, ended.summaries.len(), "each probe is a step: {path:?}");
    let not_sustained =
        |step: &&Summary| step.warnings.iter().any(|w| w.code == "target_not_sustained");
    assert!(steps.iter().any(not_sustained), "{path:?}");
    assert!(rate > 0.0 && rate <= 404.0, "{}", ended.stdout);
    let mut cells: Vec<(String, u32)> = ended
        .summaries
        .iter()
        .map(|s| (s.plan.rate.expect("an open loop").to_string(), s.plan.repeat_index))
        .collect();
    cells.sort_unstable();
    cells.dedup();
    assert_eq!(cells.len(), probes, "no rate is measured twice with the same keys");
    let judged = ["; median<60s holds", "; median<60s fails"]
        .map(|end| ended.stderr.lines().filter(|line| line.ends_with(end)).count());
    assert_eq!(judged.iter().sum::<usize>(), probes, "each step says what it came to: {judged:?}");
}

/// 400 a second at most, where p99 takes 2,000: no rate can be seen to hold.
#[test]
fn a_search_says_before_it_starts_when_its_window_is_too_short_and_ends_soon() {
    let script = Script {
        answers: tables::answers(8),
        service: Service::Constant(Duration::from_millis(5)),
        ..Script::default()
    };
    let server = Canned::start(script, Listen::Port(0)).expect("a free port");
    let search = "point-select --tables 8 --clients 2 --rate 20 --arrival uniform --warmup 0";
    let ended = run_canned(&format!("{search} --slo p99<60s --time 500ms"), &server);
    assert_eq!(ended.code, 98, "{}{}", ended.stdout, ended.stderr);
    let place = |what: &str| ended.stderr.find(what).unwrap_or(usize::MAX);
    assert!(place("warning: --slo p99<60s needs 1k ") < place("; p99<60s "), "{}", ended.stderr);
    // It doubles the rate up to what fails, measures that again, and looks at nothing below it.
    let mut steps: Vec<_> = ended.summaries.iter().collect();
    steps.sort_by_key(|step| step.started_at.clone());
    let rates: Vec<f64> = steps.iter().filter_map(|step| step.plan.rate).collect();
    assert!(rates.is_sorted() && rates.len() <= 18, "{rates:?}: {}", ended.stderr);

    for words in ["--slo p99.9<60s --ops 100", "--slo p99.9999<60s --time 500ms"] {
        let ended = run_canned(&format!("{search} {words}"), &server);
        assert_eq!((ended.code, ended.summaries.len()), (2, 0), "{words}: {}", ended.stderr);
    }
}

/// Every answer takes longer; where they are too few for a percentile, that is no rate that holds.
#[test]
fn a_search_names_no_rate_when_none_holds() {
    let script = Script {
        answers: tables::answers(8),
        service: Service::Constant(Duration::from_millis(1)),
        ..Script::default()
    };
    let server = Canned::start(script, Listen::Port(0)).expect("a free port");
    let words = "point-select --tables 8 --clients 2 --engine-threads 1 --rate 100 --slo p99<10us \
                 --slo-resolution 90% --arrival uniform --warmup 0 --time 500ms";
    let ended = run_canned(words, &server);
    assert_eq!(ended.code, 99, "{}{}", ended.stdout, ended.stderr);
    let found = ended.stdout.starts_with("No rate held p99<10us at 2 clients (lowest tried ");
    assert!(found, "{}", ended.stdout);
    assert!(ended.stderr.contains("p99<10us"), "{}", ended.stderr);
    // It went down to rates with too few answers.
    let hint = ended.stderr.split("hint: ").nth(1).expect("a hint");
    assert!(hint.contains("--time") && !hint.contains("--rate"), "{hint}");
}

/// The third step gets no connection: it is none of the search.
#[test]
fn a_search_tells_of_no_rate_that_it_did_not_measure_when_a_step_cannot_begin() {
    let sound = canned(Vec::new());
    let two = "point-select --tables 8 --clients 2 --rate 20,40 --warmup 0 --time 1s";
    assert_eq!(run_canned(two, &sound).summaries.len(), 2);
    let full = Action::error(1040, "08004", "Too many connections");
    let third = At::Connect(sound.counts().connections + 1);
    let server = canned(vec![Fault::new(third, full)]);
    let words =
        "point-select --tables 8 --clients 2 --rate 20 --slo median<60s --warmup 0 --time 1s";
    let ended = run_canned(words, &server);
    assert_eq!(ended.code, 3, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.summaries.len(), 2, "{}", ended.stderr);
    assert!(ended.stdout.contains("(cut short)"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("80/s"), "{}", ended.stdout);
}

/// One of eight clients has its updates killed; nobody knows whether they were done.
#[test]
fn ops_in_doubt_fail_a_gate_and_a_service_level_of_errors_when_they_are_too_many() {
    let killed = Answer::error("UPDATE sbtest1 ", 1969, "70100", "interrupted");
    let answers = std::iter::once(killed).chain(tables::answers(8)).collect();
    let server = Canned::start(Script { answers, ..Script::default() }, Listen::Port(0));
    let server = server.expect("a free port");
    let update = "update --tables 8 --clients 8 --statements text --on-error continue";
    for window in [
        "--ops 2000",
        "--rate 500 --ops 400",
        "--rate 500 --arrival uniform --warmup 100ms --time 1s",
    ] {
        let words = format!("{update} {window} --gate errors<10% --gate errors<15% --gate qps>0");
        let ended = run_canned(&words, &server);
        assert_eq!(ended.code, 99, "{}", ended.stderr);
        assert!(ended.stderr.contains("1 of 3"), "{}", ended.stderr);
        let step = ended.only();
        let in_doubt = step.latency.in_doubt.expect("counted");
        assert!(in_doubt > 0 && step.latency.failed.count == 0, "{in_doubt}");
        let warmed = step.plan.warmup_s > 0.0;
        assert!(warmed || in_doubt == step.totals.in_doubt, "{in_doubt}");
        assert!(in_doubt <= step.totals.in_doubt, "{in_doubt}");
    }
    // Evenly spaced, so that each client has its eighth of the operations at the lowest rate too.
    let level = "--rate 200 --arrival uniform --slo median<60s --slo-resolution 90% --warmup 0 \
                 --time 1s";
    let ended = run_canned(&format!("{update} {level}"), &server);
    assert!(!ended.stdout.contains("Highest"), "{}", ended.stdout);
    assert_ne!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
}

#[test]
fn a_search_is_refused_or_listed_without_a_server() {
    let server = canned(Vec::new());
    for (words, says) in [
        ("--slo p99<1ms --rate 1k,2k", "one rate"),
        ("--slo p99<1ms --ops 10", "--ops"),
        ("--slo p99<1ms --gate errors==0", "--gate"),
        ("--slo p99>1ms", "from above"),
        ("--slo p99==1ms", "from above"),
        ("--slo errors>=0", "from above"),
        ("--slo qps>10", "from above"),
        ("--slo p99", "column 4"),
        ("--slo p99<1ms --slo-resolution 0.1%", "finer than 1%"),
        ("--arrival uniform", "open loop"),
    ] {
        let ended = run_canned(&format!("point-select {words}"), &server);
        assert_eq!(ended.code, 2, "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{words}: {}", ended.stderr);
    }
    let listed = run_canned("point-select --slo p99<1ms --list", &server);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(listed.stdout.contains("1000 ops/s") && listed.stdout.contains("30 steps"));
}
