//! Gates: what holds, what fails, and what nobody can know.

use std::process::Command;

use loadgen::report::{self, Gates, Layout, gates, holds};
use loadgen::summary::{ErrorClass, ErrorCount, Outcome, RateSearch, Verdict, VerdictKind};
use loadgen::terms::Gate;

use super::*;
use crate::common::summaries::{histogram, worded};

fn gate(text: &str) -> Gate {
    text.parse().expect(text)
}

fn below(metric: &str, limit: f64) -> Gate {
    gate(&format!("{metric}<{limit}us"))
}

fn at_least(limit: f64) -> Gate {
    gate(&format!("qps>={limit}"))
}

fn no_errors() -> Gate {
    gate("errors==0")
}

fn judged(steps: &[Summary], wanted: &[Gate], options: &Options) -> Gates {
    gates(&steps.iter().collect::<Vec<_>>(), wanted, options).expect("gates")
}

fn error(count: u64) -> ErrorCount {
    ErrorCount {
        code: Some(1213),
        sqlstate: None,
        class: ErrorClass::Session,
        message: "deadlock".to_owned(),
        count,
    }
}

#[test]
fn a_cell_is_judged_by_the_median_of_its_repeats_and_by_all_of_their_errors() {
    let first = step(0, "a", 8, 1000.0);
    let mut steps = vec![first.clone(), repeat(&first, 2, 900.0), repeat(&first, 3, 100.0)];
    steps[2].totals.errors = vec![error(2)];
    let told =
        judged(&steps, &[at_least(900.0), at_least(901.0), no_errors()], &Options::default());
    assert_eq!(told.held.len(), 1);
    assert_eq!(
        told.failed,
        [
            "point-select at 8 clients, a: qps>=901 FAILS, QPS is 900/s (median of 3 runs)",
            "point-select at 8 clients, a: errors==0 FAILS, 2 errors of all phases (together in 3 runs)",
        ]
    );
    assert!(told.undecided.is_empty() && told.text.contains("FAILS"), "{}", told.text);
}

#[test]
fn a_number_beside_its_limit_is_told_with_the_digits_that_show_its_side() {
    let mut near = step(0, "a", 8, 900.7);
    (near.latency.failed.count, near.latency.service.count) = (1, 600_000);
    near.latency.service.p99_us = Some(4_999.7);
    let wanted = [at_least(901.0), gate("errors<0.0001%"), gate("p99<5ms"), at_least(900.0)];
    let told = judged(&[near], &wanted, &Options::default());
    let ends = |told: &[String], ends: [&str; 2]| {
        told.len() == 2 && told.iter().zip(ends).all(|(told, end)| told.ends_with(end))
    };
    assert!(ends(&told.failed, ["QPS is 900.7/s", "window's ops is 0.0002 %"]), "{told:?}");
    assert!(ends(&told.held, ["time is 4.9997 ms", "QPS is 901/s"]), "{told:?}");
}

#[test]
fn a_gate_is_one_gate_when_it_is_checked_in_several_cells() {
    let steps = [step(0, "a", 8, 1000.0), step(1, "a", 16, 100.0)];
    let once = judged(&steps, &[at_least(900.0)], &Options::default());
    assert_eq!((once.gates.len(), once.held.len(), once.failed.len()), (1, 1, 1));
    let twice = judged(&steps, &[at_least(900.0), no_errors()], &Options::default());
    assert_eq!((twice.gates.len(), twice.held.len(), twice.failed.len()), (2, 3, 1));
}

#[test]
fn an_open_loop_is_judged_by_its_response_time() {
    let mut paced = step(0, "a", 8, 1000.0);
    let mut response = paced.latency.service.clone();
    response.p99_us = Some(50_000.0);
    paced.plan.rate = Some(1000.0);
    paced.latency.response = Some(response);
    let p99 = paced.latency.service.p99_us.expect("counted");
    let told = judged(&[paced.clone()], &[below("p99", p99 + 1.0)], &Options::default());
    assert!(
        told.failed[0].ends_with(" FAILS, p99 response time is 50.000 ms"),
        "{:?}",
        told.failed
    );
    let mut closed = paced.clone();
    closed.plan.rate = None;
    closed.latency.response = None;
    closed.step_id.push('c');
    let told = judged(&[closed.clone()], &[below("p99", p99 + 1.0)], &Options::default());
    assert_eq!((told.held.len(), told.failed.len()), (1, 0));
    let told = judged(&[closed, paced], &[below("p99", 1.0)], &Options::default());
    assert!(told.failed[0].contains("service"), "{:?}", told.failed);
    assert!(told.failed[1].contains("response"), "{:?}", told.failed);
}

#[test]
fn what_nobody_can_know_is_undecided() {
    let mut few = step(0, "few", 8, 1000.0);
    few.latency.service.count = 999;
    let mut gone = step(1, "gone", 8, 1000.0);
    gone.outcome = Outcome::Aborted;
    let told = judged(&[few, gone], &[below("p99", 1e9)], &Options::default());
    assert_eq!((told.held.len(), told.failed.len()), (0, 0));
    assert!(told.undecided[0].ends_with("p99 needs 1000 answers, and there are 999"));
    assert!(told.scarce);
    assert!(told.undecided[1].ends_with("no step completed"), "{:?}", told.undecided);
}

#[test]
fn a_run_that_did_not_complete_hides_neither_its_errors_nor_itself() {
    let first = step(0, "a", 8, 1000.0);
    let mut steps = vec![first.clone(), repeat(&first, 2, 1000.0), repeat(&first, 3, 10.0)];
    steps[2].outcome = Outcome::Aborted;
    let wanted = [no_errors(), at_least(900.0)];
    let told = judged(&steps, &wanted, &Options::default());
    assert_eq!((told.held.len(), told.failed.len()), (0, 0), "{told:?}");
    assert_eq!(
        told.undecided,
        [
            "point-select at 8 clients, a: errors==0 is undecided: 1 of 3 runs did not complete",
            "point-select at 8 clients, a: qps>=900 is undecided: 1 of 3 runs did not complete",
        ]
    );
    assert!(!told.scarce, "no longer window would tell");
    let told = judged(&steps, &[gate("errors>=5")], &Options::default());
    assert_eq!((told.failed.len(), told.undecided.len()), (0, 1), "there may be more: {told:?}");
    let enough = judged(&steps, &[gate("errors>=0")], &Options::default());
    assert_eq!((enough.failed.len(), enough.undecided.len()), (0, 0), "{enough:?}");
    // Errors before the window opened count, too.
    steps[2].totals.errors = vec![error(7)];
    steps[2].measured_s = 0.0;
    let told = judged(&steps, &wanted, &Options::default());
    assert!(
        told.failed[0].ends_with("FAILS, 7 errors of all phases (together in 3 runs)"),
        "{told:?}"
    );
    assert_eq!(told.failed.len(), 1);
    assert_eq!(judged(&steps[2..], &wanted, &Options::default()).failed.len(), 1, "none completed");
    let share = gate("errors<1%");
    steps[2].latency.failed.count = 1_000_000;
    assert_eq!(judged(&steps, &[share], &Options::default()).failed.len(), 1);
    // What was measured again is not missed; its errors stay.
    steps.push(repeat(&first, 3, 1000.0));
    let told = judged(&steps, &wanted, &Options::default());
    assert_eq!((told.held.len(), told.failed.len(), told.undecided.len()), (1, 1, 0), "{told:?}");
}

#[test]
fn a_run_that_did_not_complete_holds_no_gate_when_partial_steps_count() {
    let mut cut = step(0, "a", 8, 1000.0);
    cut.outcome = Outcome::Aborted;
    let partial = Options { partial: true, ..Options::default() };
    let told = judged(&[cut], &[at_least(900.0), no_errors()], &partial);
    assert_eq!((told.held.len(), told.undecided.len()), (0, 2), "{told:?}");
    assert!(told.undecided[0].ends_with("1 of 1 runs did not complete"), "{told:?}");
}

#[test]
fn a_gate_of_errors_is_undecided_when_no_op_was_issued() {
    let mut idle = step(0, "a", 8, 0.0);
    (idle.totals.ops, idle.latency.service.count) = (0, 0);
    assert_eq!(holds(&no_errors(), &idle).expect("sound").0, None);
    let told = judged(&[idle.clone()], &[no_errors()], &Options::default());
    assert_eq!((told.held.len(), told.undecided.len()), (0, 1), "{told:?}");
    idle.totals.errors = vec![error(3)];
    assert_eq!(holds(&no_errors(), &idle).expect("sound").0, Some(false));
    idle.measured_s = 0.0;
    assert_eq!(holds(&no_errors(), &idle).expect("sound"), (None, None, false));
}

#[test]
fn a_gate_is_undecided_when_no_run_had_a_window() {
    let mut early = step(0, "a", 8, 0.0);
    (early.measured_s, early.totals.ops, early.latency.service.count) = (0.0, 0, 0);
    let wanted = [at_least(900.0), no_errors()];
    let told = judged(&[early.clone()], &wanted, &Options::default());
    assert_eq!(
        told.undecided,
        [
            "point-select at 8 clients, a: qps>=900 is undecided: nothing was measured",
            "point-select at 8 clients, a: errors==0 is undecided: no op was answered",
        ]
    );
    // Errors before the window are known, also of a run that --partial counts.
    (early.outcome, early.totals.errors) = (Outcome::Aborted, vec![error(7)]);
    let partial = Options { partial: true, ..Options::default() };
    let told = judged(&[early], &wanted, &partial);
    assert_eq!((told.failed.len(), told.undecided.len()), (1, 1), "{told:?}");
}

#[test]
fn a_share_of_errors_is_one_of_the_window() {
    let mut failing = step(0, "a", 8, 1000.0);
    failing.latency.service.count = 990;
    failing.latency.failed.count = 10;
    let share = |limit: &str| gate(&format!("errors<{limit}"));
    let told = judged(&[failing], &[share("1.1%"), share("1%")], &Options::default());
    assert_eq!((told.held.len(), told.failed.len()), (1, 1));
    assert!(
        told.failed[0].ends_with("FAILS, the failed share of the window's ops is 1.000 %"),
        "{:?}",
        told.failed
    );
}

#[test]
fn an_op_in_doubt_counts_as_failed_when_it_was_issued_in_the_window() {
    let share = |step: Summary| judged(&[step], &[gate("errors<1%")], &Options::default()).failed;
    let mut doubtful = step(0, "a", 8, 1000.0);
    doubtful.latency.service.count = 790;
    doubtful.latency.in_doubt = Some(210);
    doubtful.latency.abandoned = Some(0);
    doubtful.totals.in_doubt = 300;
    let failed = share(doubtful.clone());
    assert!(failed[0].ends_with("the window's ops is 21.000 %"), "{failed:?}");
    // Those of the warm-up are not the window's.
    doubtful.latency.in_doubt = Some(0);
    doubtful.totals.abandoned = 300;
    assert!(share(doubtful.clone()).is_empty());
    // An older version did not tell them apart.
    doubtful.latency.in_doubt = None;
    doubtful.latency.abandoned = None;
    let failed = share(doubtful);
    assert!(failed[0].contains("older version"), "{failed:?}");
    assert!(failed[0].ends_with(", is 55.046 %"), "{failed:?}");
}

#[test]
fn an_arrival_counts_as_failed_when_it_was_never_issued() {
    let mut paced = step(0, "a", 8, 1000.0);
    paced.plan.rate = Some(1000.0);
    paced.latency.service.count = 900;
    let mut response = paced.latency.service.clone();
    response.histogram = histogram(&(1..=1000).map(|us| us * 1000).collect::<Vec<_>>());
    (response.count, response.max_us) = (1000, Some(1000.0));
    paced.latency.response = Some(response);
    (paced.latency.in_doubt, paced.latency.abandoned) = (Some(0), Some(0));
    let held = |metric: &str| holds(&below(metric, 1e9), &paced).expect("a sound histogram");
    assert_eq!(held("p95"), (Some(false), Some(f64::INFINITY), false));
    assert_eq!(held("p90").0, Some(true));
    let share = loadgen::report::failed_share(&[&paced]).expect("ops");
    assert!((share - 0.1).abs() < 1e-9, "{share}");
}

#[test]
fn the_newest_invocation_is_judged_when_nothing_of_it_completed() {
    let older = step(0, "a", 8, 1000.0);
    let mut newest = again(&older, 5);
    newest.outcome = Outcome::Aborted;
    let latest = Options { latest: true, ..Options::default() };
    let told = judged(&[older, newest], &[at_least(900.0)], &latest);
    assert_eq!((told.held.len(), told.undecided.len()), (0, 1), "{told:?}");
}

#[test]
fn a_gate_is_undecided_when_planned_runs_were_never_begun() {
    let mut steps = vec![step(0, "a", 8, 1000.0)];
    steps.push(repeat(&steps[0], 2, 1000.0));
    for step in &mut steps {
        step.plan.repeats = 5;
    }
    let told = judged(&steps, &[at_least(900.0)], &Options::default());
    assert!(told.undecided[0].ends_with("3 of 5 runs did not complete"), "{told:?}");
}

#[test]
fn a_step_that_left_no_summary_is_named_when_a_gate_fails_too() {
    let killed = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/summaries/killed");
    for (gate, status) in [("qps>0", 98), ("qps>1M", 99)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
        let output = command.args(["report", killed, "--gate", gate]).output().expect("it runs");
        let told = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(status), "{told}");
        assert!(told.contains("update-index, 2 clients, 10.11: a step began"), "{told}");
    }
}

/// A server that answers nobody has no errors of its own.
#[test]
fn ops_without_an_answer_fail_a_gate_of_errors() {
    let mut silent = step(0, "a", 8, 1000.0);
    silent.latency.service.count = 1000;
    silent.totals.abandoned = 1000;
    let share = gate("errors<1%");
    let told = judged(&[silent], &[no_errors(), share], &Options::default());
    assert_eq!((told.held.len(), told.failed.len()), (0, 2));
    assert!(told.failed[0].ends_with("FAILS, 1000 errors of all phases"), "{:?}", told.failed);
    assert!(told.failed[1].ends_with("is 100.000 %"), "{:?}", told.failed);
}

#[test]
fn every_format_has_the_gates() {
    let steps = [step(0, "a|b", 8, 1000.0)];
    let wanted = [at_least(900.0), at_least(2000.0)];
    let in_format =
        |format| judged(&steps, &wanted, &Options { format, ..Options::default() }).text;
    let markdown = in_format(Format::Markdown);
    let row = "| 8 | qps\\>=2000 | 1000/s | 1 | ✗ FAILS | a\\|b |";
    assert!(markdown.lines().any(|line| line == row), "{markdown}");
    let csv = in_format(Format::Csv);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "workload,clients,rate,label,gate,value,unit,runs,verdict,reason,sentence"
    );
    let fields = "point-select,8,,a|b,qps>=2000,1000,statements/s,1,fails,";
    assert_eq!(lines[2], format!("{fields},\"FAILS, QPS is 1000/s\""));
    assert!(lines[1].ends_with("\"holds, QPS is 1000/s\""), "{csv}");
    let json: Value = serde_json::from_str(&in_format(Format::Json)).expect("JSON");
    assert_eq!(json["layout"], "gates");
    assert_eq!(json["rows"][0]["verdict"], "holds");
}

#[test]
fn a_failed_op_is_slower_than_any_service_level() {
    // 1,000 answers, of 1 us to 1 ms.
    let holds = |failed: u64, gate: Gate| {
        let mut step = step(0, "a", 8, 1000.0);
        let service = &mut step.latency.service;
        service.histogram = histogram(&(1..=1000).map(|us| us * 1000).collect::<Vec<_>>());
        (service.count, service.max_us, service.p99_us) = (1000, Some(1000.0), Some(990.0));
        step.latency.failed.count = failed;
        report::holds(&gate, &step).expect("a sound histogram")
    };
    assert_eq!(holds(0, below("p99", 992.0)).0, Some(true));
    // Of 1,008 the 998th.
    let (held, number, _) = holds(8, below("p99", 992.0));
    assert!(held == Some(false) && number.is_some_and(|us| (us - 998.0).abs() < 1.0), "{number:?}");
    assert_eq!(holds(8, below("p99", 1001.0)).0, Some(true));
    assert_eq!(holds(11, below("p99", 1e9)), (Some(false), Some(f64::INFINITY), false));
    assert_eq!(holds(11, below("p95", 1e9)).0, Some(true));
    assert_eq!(holds(1, below("max", 1e9)).0, Some(false));
    assert_eq!(holds(1, below("p99.9", 1e9)).0, None, "too few to tell");
    // So is one in doubt, and one that was given up, whatever its age.
    let lost = |in_doubt: u64, abandoned: u64, gate: Gate| {
        let mut step = step(0, "a", 8, 1000.0);
        let service = &mut step.latency.service;
        service.histogram = histogram(&(1..=1000).map(|us| us * 1000).collect::<Vec<_>>());
        (service.count, service.max_us, service.p99_us) = (1000, Some(1000.0), Some(990.0));
        (step.latency.in_doubt, step.latency.abandoned) = (Some(in_doubt), Some(abandoned));
        report::holds(&gate, &step).expect("a sound histogram")
    };
    assert_eq!(lost(11, 0, below("p99", 1e9)), (Some(false), Some(f64::INFINITY), false));
    assert_eq!(lost(0, 11, below("p99", 1e9)), (Some(false), Some(f64::INFINITY), false));
    assert_eq!(lost(0, 10, below("p99", 1e9)).0, Some(true));
    // The drain gives up after 10 s, and other answers took up to 20 s.
    let mut slow = step(0, "a", 8, 1000.0);
    let service = &mut slow.latency.service;
    service.histogram = histogram(&(1..=1000).map(|n| n * 20_000_000).collect::<Vec<_>>());
    (service.count, service.max_us, service.p99_us) = (1000, Some(20e6), Some(19.8e6));
    (slow.latency.in_doubt, slow.latency.abandoned) = (Some(0), Some(5));
    let (held, number, _) =
        report::holds(&below("p99", 19.85e6), &slow).expect("a sound histogram");
    assert!(held == Some(false) && number.is_some_and(|us| us > 19.85e6), "{number:?}");
    let gates = judged(&[step(0, "a", 8, 1000.0)], &[below("p99", 1e9)], &Options::default());
    assert_eq!(gates.held.len(), 1, "a gate is about the answers, and has `errors` for the rest");
}

struct Tried {
    rate: f64,
    p99_us: f64,
    kind: VerdictKind,
}

/// The steps of a search for p99<2ms at so many clients.
fn search(clients: u32, start: f64, tried: &[Tried]) -> Vec<Summary> {
    let one = |(at, Tried { rate, p99_us, kind }): (usize, &Tried)| {
        let mut step = step(at as u32, "a", clients, *rate);
        step.run_id = "5".repeat(16);
        step.step_id = format!("{}-{clients}-{at}", step.run_id);
        step.plan.rate = Some(*rate);
        step.plan.repeat_index = at as u32;
        let level = vec!["p99<2ms".to_owned()];
        step.plan.search = Some(RateSearch { level, number: 1, start, resolution: 0.5 });
        step.latency.service.p99_us = Some(*p99_us);
        let reason = worded("x", &format!("said at {rate}"));
        step.verdict = Some(Verdict { kind: *kind, reasons: vec![reason] });
        step
    };
    tried.iter().enumerate().map(one).collect()
}

fn tried(rate: f64, p99_us: f64) -> Tried {
    Tried { rate, p99_us, kind: VerdictKind::Ok }
}

fn slo(steps: &[Summary], format: Format) -> Result<String, Error> {
    try_report(steps, &Options { layout: Layout::Slo, format, ..Options::default() })
}

#[test]
fn a_search_is_told_again_with_the_steps_that_led_to_its_rate() {
    use VerdictKind::{ClientBound, Noisy};
    let mut all = [100.0, 200.0, 400.0, 283.0, 283.0, 200.0]
        .map(|rate| tried(rate, if rate > 200.0 { 2500.0 } else { 1500.0 }));
    (all[1].kind, all[2].kind, all[3].kind) = (Noisy, ClientBound, ClientBound);
    let steps = search(8, 100.0, &all);
    let text = slo(&steps, Format::Text).expect("a report");
    let lines: Vec<String> =
        text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines[..9],
        [
            "point-select, a",
            "Highest rate with p99<2ms at 8 clients: 200/s (283/s failed; client-bound at 283/s: \
             the server may hold more)",
            "clients search rate achieved p99<2ms held",
            "8 1 100 100 1.500 ms yes",
            "8 1 200 200 1.500 ms yes *",
            "8 1 400 400 2.500 ms no *",
            "8 1 283 283 2.500 ms no *",
            "8 1 283 283 2.500 ms no",
            "8 1 200 200 1.500 ms yes",
        ],
        "{text}"
    );
    assert!(text.contains("\n* "), "{text}");
    let csv = slo(&steps, Format::Csv).expect("a report");
    let names = "workload,label,level,clients,search,rate,achieved,held,highest,why,step_id";
    assert_eq!(csv.lines().next(), Some(names));
    let held = "point-select,a,p99<2ms,8,1,200,200,true,true,,5555555555555555-8-1";
    assert_eq!(csv.lines().nth(2), Some(held), "{csv}");
}

#[test]
fn a_search_says_how_it_ended_at_each_number_of_clients() {
    let none = search(16, 0.02, &[tried(0.02, 2500.0), tried(0.01, 2500.0)]);
    let cut = search(32, 100.0, &[tried(100.0, 1500.0)]);
    let mut stopped = search(24, 100.0, &[tried(100.0, 1500.0), tried(200.0, 1500.0)]);
    stopped[1].outcome = Outcome::Interrupted;
    let mut few = search(64, 0.02, &[tried(0.02, 0.0), tried(0.01, 0.0)]);
    for step in &mut few {
        (step.latency.service.count, step.latency.service.p99_us) = (20, None);
    }
    for (steps, says) in [
        (none, "No rate held p99<2ms at 16 clients (lowest tried 0.01/s)"),
        (cut, "Highest rate with p99<2ms at 32 clients: 100/s (cut short)"),
        (stopped, "Highest rate with p99<2ms at 24 clients: 100/s (cut short)"),
        (
            few,
            "Not known whether a rate holds p99<2ms at 64 clients (lowest tried 0.01/s; cut \
               short; too few answers at 0.02/s to tell)",
        ),
    ] {
        let text = slo(&steps, Format::Text).expect("a report");
        assert_eq!(text.lines().nth(1), Some(says), "{text}");
    }
}

#[test]
fn search_that_was_cut_short_is_not_in_the_median_when_others_ended() {
    let second = |rate: f64| {
        let mut cut = search(8, rate, &[tried(rate, 1500.0)]);
        cut[0].plan.search.as_mut().expect("a search").number = 2;
        cut[0].plan.repeat_index = 9;
        cut[0].step_id = format!("{}-8-9", cut[0].run_id);
        cut
    };
    let line = |mut steps: Vec<Summary>, cut: Vec<Summary>| {
        steps.extend(cut);
        let text = slo(&steps, Format::Text).expect("a report");
        text.lines().nth(1).unwrap_or_default().to_owned()
    };
    let whole = [100.0, 200.0, 400.0, 283.0, 283.0, 200.0]
        .map(|rate| tried(rate, if rate > 200.0 { 2500.0 } else { 1500.0 }));
    let found = line(search(8, 100.0, &whole), second(100.0));
    assert!(found.contains("200/s (the median of 1 of 2 searches, 200 to 200"), "{found}");
    assert!(found.contains("a search was cut short"), "{found}");
    let nothing = search(8, 0.02, &[tried(0.02, 2500.0), tried(0.01, 2500.0)]);
    let found = line(nothing, second(0.02));
    assert!(found.starts_with("Not known whether a rate holds"), "{found}");
}

#[test]
fn steps_that_no_search_asked_for_have_no_path() {
    let error = slo(&[step(0, "a", 8, 100.0)], Format::Text).expect_err("no search");
    assert!(error.kind().exit_code() == 4 && error.render().contains("--slo"), "{error}");
    let mut foreign = search(8, 100.0, &[tried(100.0, 1500.0)]);
    foreign[0].plan.search.as_mut().expect("a search").level = vec!["fast".to_owned()];
    let error = slo(&foreign, Format::Text).expect_err("no condition");
    assert!(error.kind().exit_code() == 4 && error.to_string().contains("'fast'"), "{error}");
}
