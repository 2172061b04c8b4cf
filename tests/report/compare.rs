//! Labels compared with a baseline by statistics: verdicts, corrections, blocks, refusals.

use loadgen::report::{Comparison, Layout, Question, Runs, base_and_new, compare, page, pair};
use loadgen::summary::{ErrorClass, ErrorCount, Group, Outcome};

use super::*;

fn question(base: &str, new: &str) -> Question {
    Question {
        base: base.to_owned(),
        new: new.to_owned(),
        others: Vec::new(),
        metric: Metric::QPS,
        also: Vec::new(),
        floor: 0.02,
        repeats_max: 0,
        force: false,
        latest: false,
        format: Format::Text,
        source: String::new(),
        notes: Notes::Brief,
    }
}

fn compared(steps: &[Summary], question: &Question) -> Result<Comparison, Error> {
    compare(&steps.iter().collect::<Vec<_>>(), question)
}

/// What stands below the answer.
fn table(text: &str) -> Vec<&str> {
    text.lines().skip_while(|line| !line.is_empty()).skip(1).collect()
}

/// The lines that a comparison begins with.
fn answer(steps: &[Summary], question: &Question) -> Vec<String> {
    let told = compared(steps, question).expect("a comparison");
    told.text.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn in_blocks(steps: &[Summary]) -> bool {
    let asked = Question { format: Format::Json, ..question("old", "new") };
    let told = compared(steps, &asked).expect("a comparison");
    let json: Value = serde_json::from_str(&told.text).expect("JSON");
    json["rows"][0]["in_blocks"] == true
}

/// Runs of one label at some clients, `minutes` apart from each other.
fn runs(label: &str, clients: u32, from_minute: u32, qps: &[f64]) -> Vec<Summary> {
    let run = |(at, qps): (usize, &f64)| {
        let mut run = repeat(&step(1, label, clients, *qps), at as u32 + 1, *qps);
        let minute = from_minute + 2 * at as u32;
        run.started_at = format!("2026-11-20T{:02}:{:02}:00Z", minute / 60, minute % 60);
        run
    };
    qps.iter().enumerate().map(run).collect()
}

/// Repeats of two labels with so many errors among 600,000 ops.
fn with_errors(old: &[u64], new: &[u64]) -> Vec<Summary> {
    let counts = [("old", 0, old), ("new", 200, new)];
    let of = |(label, minute, counts): (&str, u32, &[u64])| {
        let mut all = runs(label, 8, minute, &vec![1000.0; counts.len()]);
        for (run, count) in all.iter_mut().zip(counts) {
            let error =
                ErrorCount { count: *count, class: ErrorClass::Server, ..ErrorCount::default() };
            run.totals.errors = Vec::from_iter((*count > 0).then_some(error));
            run.latency.failed.count = *count;
        }
        all
    };
    counts.into_iter().flat_map(of).collect()
}

#[test]
fn errors_are_compared_when_a_label_has_none() {
    for metric in [Metric::ERRORS, Metric::ERROR_SHARE] {
        let asked = Question { format: Format::Json, metric, ..question("old", "new") };
        let verdict = |old: &[u64], new: &[u64]| {
            let found = compared(&with_errors(old, new), &asked).expect("a comparison");
            let json: Value = serde_json::from_str(&found.text).expect("JSON");
            let row = &json["rows"][0];
            assert!(row["ratio"].is_null() && row["ratio_low"].is_null(), "{row}");
            assert!(!row["sentence"].as_str().expect("a text").contains("inf"), "{row}");
            row["verdict"].as_str().expect("a verdict").to_owned()
        };
        assert_eq!(verdict(&[0; 6], &[0; 6]), "same", "{metric}");
        assert_eq!(verdict(&[0; 6], &[30_000; 6]), "worse", "{metric}");
        assert_eq!(verdict(&[0, 0, 1, 0, 0, 0], &[40_000; 6]), "worse", "{metric}");
        assert_eq!(verdict(&[500; 6], &[0; 6]), "better", "{metric}");
    }
}

#[test]
fn a_percentile_has_no_cell_when_a_repeat_is_too_short_for_it() {
    let mut steps = [runs("old", 8, 0, &OLD), runs("new", 8, 200, &OLD)].concat();
    let others = [runs("old", 16, 400, &OLD), runs("new", 16, 600, &OLD)].concat();
    let p99: Metric = "p99".parse().expect("a metric");
    let asked = Question { metric: p99, format: Format::Json, ..question("old", "new") };
    let verdict = |steps: &[Summary]| {
        let found = compared(steps, &asked).map(|found| found.text);
        let json: Option<Value> = found.ok().and_then(|text| serde_json::from_str(&text).ok());
        json.map(|json| json["rows"][0]["verdict"].clone())
    };
    assert_eq!(verdict(&steps), Some("same".into()));
    // The slowest repeat of one label: without it the label would be called faster.
    for count in [40, 0] {
        steps[3].latency.service.count = count;
        assert_ne!(verdict(&steps), Some("same".into()), "{count}");
        // Without a cell in common nothing is compared.
        let with_others = [steps.clone(), others.clone()].concat();
        for format in [Format::Json, Format::Text] {
            let asked = Question { format, ..asked.clone() };
            let why = compared(&with_others, &asked).map(|found| found.text).expect("compared");
            assert_eq!(why.contains("1 run of old without an answer"), count == 0, "{why}");
            assert!(!why.contains("not measured by old"), "{why}");
        }
        let all: Vec<&Summary> = steps.iter().collect();
        let options = Options { metric: p99, format: Format::Json, ..Options::default() };
        let text = render(&all, &options).expect("a report");
        let json: Value = serde_json::from_str(&text).expect("JSON");
        let is_there = |line: usize| !json["tables"][0]["lines"][line]["cells"][0].is_null();
        assert_eq!([is_there(0), is_there(1)], [false, true], "{text}");
    }
}

const OLD: [f64; 6] = [1000.0, 1004.0, 996.0, 1002.0, 998.0, 1001.0];

fn by(factor: f64) -> Vec<f64> {
    OLD.iter().rev().map(|qps| qps * factor).collect()
}

struct Change {
    factor: f64,
    verdict: &'static str,
    worse: usize,
}

#[test]
fn six_against_six_find_what_is_there_and_nothing_else() {
    for Change { factor, verdict, worse } in [
        Change { factor: 0.9, verdict: "worse", worse: 1 },
        Change { factor: 1.1, verdict: "better", worse: 0 },
        Change { factor: 1.0, verdict: "same", worse: 0 },
        Change { factor: 1.01, verdict: "same", worse: 0 },
    ] {
        let steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &by(factor))].concat();
        let told = compared(&steps, &question("old", "new")).expect("a comparison");
        let row = table(&told.text)[2];
        assert!(row.ends_with(verdict), "{factor}: {}", told.text);
        assert_eq!(told.worse.len(), worse, "{}", told.text);
        assert!(told.too_few.is_empty());
    }
}

/// Every run below every run of [`OLD`], by 0.9 to 2.5 %.
const BELOW: [f64; 6] = [975.0, 987.0, 980.0, 984.0, 982.0, 986.0];

#[test]
fn what_may_matter_is_not_the_same() {
    let steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &BELOW)].concat();
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    let row = table(&told.text)[2];
    assert!(row.ends_with("slightly worse"), "{}", told.text);
    assert!(told.worse.is_empty() && told.too_few.is_empty(), "{told:?}");
    let why = told.open.iter().map(|doubt| doubt.why.as_str()).collect::<Vec<_>>();
    assert!(why.len() == 1 && why[0].contains("0.98"), "{why:?}");
    let better = compared(&steps, &question("new", "old")).expect("a comparison");
    assert!(better.text.contains("slightly better"), "{}", better.text);
    // Within a floor of 3 % it is.
    let wide = Question { floor: 0.03, ..question("old", "new") };
    let told = compared(&steps, &wide).expect("a comparison");
    assert!(table(&told.text)[2].ends_with("same"), "{}", told.text);
    assert!(told.open.is_empty(), "{:?}", told.open);
}

#[test]
fn looks_that_were_taken_and_those_that_may_come_are_counted() {
    let both = || [runs("old", 8, 0, &OLD), runs("new", 8, 60, &by(0.9))].concat();
    let asked = Question { format: Format::Json, ..question("old", "new") };
    let p = |steps: &[Summary], question: &Question| {
        let told = compared(steps, question).expect("a comparison");
        let json: Value = serde_json::from_str(&told.text).expect("JSON");
        json["rows"][0]["p_corrected"].as_f64().expect("p")
    };
    let is = |p: f64, looks: f64| assert!((p - looks * 2.0 / 924.0).abs() < 1e-9, "{p}");
    let planned = |mut steps: Vec<Summary>, more: u32, label: &str| {
        for step in &mut steps {
            step.plan.repeats = 3;
        }
        let continued = steps.iter_mut().filter(|s| s.label == label && s.plan.repeat_index > 3);
        continued.for_each(|step| step.plan.repeats = more);
        steps
    };
    is(p(&both(), &asked), 1.0);
    // 6, 12 and 24 may come.
    let mut six = both();
    for step in &mut six {
        step.plan.repeats = 6;
    }
    is(p(&six, &Question { repeats_max: 24, ..asked.clone() }), 3.0);
    // 3 repeats, which find nothing, and 6: what is there was planned later.
    is(p(&planned(both(), 6, "new"), &asked), 1.0);
    is(p(&planned(both(), 12, "new"), &asked), 2.0);
    // Invocations of their own are no looks at each other.
    let mut alone = planned(both(), 12, "new");
    for step in alone.iter_mut().filter(|step| step.plan.repeats == 12) {
        step.run_id = "f".repeat(16);
    }
    is(p(&alone, &asked), 1.0);
}

#[test]
fn what_counts_is_a_whole_number_in_json() {
    let steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &by(0.9))].concat();
    let asked = Question { format: Format::Json, ..question("old", "new") };
    let text = compared(&steps, &asked).expect("a comparison").text;
    for field in ["\"clients\": 8,", "\"base_runs\": 6,", "\"new_runs\": 6,"] {
        assert!(text.contains(field), "{field}: {text}");
    }
}

#[test]
fn the_table_shows_ratio_interval_and_what_stands_behind() {
    let steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &by(0.9))].concat();
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    let lines = table(&told.text);
    assert_eq!(
        lines[..3],
        [
            "point-select: QPS of new against old, medians; ratio new/base over all pairs of runs: \
             above 1 is better",
            "clients   old  new  runs  new/base  95 % interval       p  verdict",
            "      8  1000  900     6     0.900  0.896 to 0.904  0.002  worse",
        ],
        "{}",
        told.text
    );
    assert!(!told.text.contains("Mann-Whitney"), "methods are in the docs: {}", told.text);
}

#[test]
fn three_against_three_are_too_few() {
    let steps = [runs("old", 8, 0, &OLD[..3]), runs("new", 8, 60, &by(0.5)[..3])].concat();
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    assert_eq!((told.worse.len(), told.too_few.len()), (0, 1));
}

#[test]
fn many_cells_are_corrected() {
    // 4 against 4 have p 0.029: enough for one cell, not for six.
    let cells = |clients: &[u32]| -> Vec<Summary> {
        let of =
            |c: &u32| [runs("old", *c, 0, &OLD[..4]), runs("new", *c, 60, &by(0.9)[..4])].concat();
        clients.iter().flat_map(of).collect()
    };
    let one = compared(&cells(&[8]), &question("old", "new")).expect("a comparison");
    assert_eq!(one.worse.len(), 1, "{}", one.text);
    let six = compared(&cells(&[8, 16, 32, 64, 128, 256]), &question("old", "new"));
    let six = six.expect("a comparison");
    assert_eq!((six.worse.len(), six.too_few.len()), (0, 6), "{}", six.text);
}

#[test]
fn interleaved_runs_are_compared_in_blocks() {
    // Both drift by far more than they differ.
    let drift = |factor: f64| -> Vec<f64> {
        (0..8)
            .map(|i| (1000.0 + 200.0 * f64::from(i)) * (factor + f64::from(i % 3) / 1e4))
            .collect()
    };
    let beside = [runs("old", 8, 0, &drift(1.0)), runs("new", 8, 1, &drift(0.95))].concat();
    let told = compared(&beside, &question("old", "new")).expect("a comparison");
    assert!(in_blocks(&beside), "{}", told.text);
    assert_eq!(told.worse.len(), 1, "{}", told.text);
    let after = [runs("old", 8, 0, &drift(1.0)), runs("new", 8, 60, &drift(0.95))].concat();
    let told = compared(&after, &question("old", "new")).expect("a comparison");
    assert!(told.text.contains("inconclusive"), "{}", told.text);
    assert!(told.inconclusive.len() == 1 && told.open.len() == 1, "{told:?}");
}

#[test]
fn a_longer_time_is_worse() {
    let mut steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &OLD)].concat();
    for step in &mut steps {
        let longer = if step.label == "new" { 1.2 } else { 1.0 };
        step.latency.service.mean_us = step.latency.service.mean_us.map(|us| us * longer);
    }
    let asked = Question { metric: "mean".parse().expect("mean"), ..question("old", "new") };
    let told = compared(&steps, &asked).expect("a comparison");
    assert!(told.text.contains("0.833"), "{}", told.text);
    assert_eq!(told.worse.len(), 1, "{}", told.text);
}

#[test]
fn other_tables_are_refused_unless_forced() {
    let mut steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &by(0.9))].concat();
    steps.iter_mut().filter(|step| step.label == "new").for_each(|step| step.plan.rows = 7);
    let error = compared(&steps, &question("old", "new")).expect_err("other rows");
    assert_eq!(error.kind().exit_code(), 4);
    assert!(error.to_string().contains("rows"), "{error}");
    let forced = Question { force: true, ..question("old", "new") };
    let told = compared(&steps, &forced).expect("a forced comparison");
    assert!(told.text.contains("rows"), "a footnote says so: {}", told.text);
}

#[test]
fn what_is_not_there_is_named() {
    let steps = [runs("old", 8, 0, &OLD), runs("new", 16, 60, &OLD)].concat();
    let error = compared(&steps, &question("old", "newer")).expect_err("no such label");
    assert_eq!(error.kind().exit_code(), 2);
    assert!(error.to_string().contains("--new"), "{error}");
    let error = compared(&steps, &question("old", "new")).expect_err("nothing in common");
    assert_eq!(error.kind().exit_code(), 4);
    let both = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &OLD)].concat();
    let metric: Metric = "wait-p50".parse().expect("a metric");
    let error = compared(&both, &Question { metric, ..question("old", "new") });
    let options = Options { metric, layout: Layout::Delta, ..Options::default() };
    let change = try_report(&both, &options);
    for error in [error.map(|found| found.text), change] {
        let error = error.expect_err("a closed loop has no such time").to_string();
        assert!(error.contains("wait-p50"), "{error}");
    }
}

#[test]
fn files_get_every_number() {
    let steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &by(0.9))].concat();
    let asked = Question { format: Format::Json, ..question("old", "new") };
    let told = compared(&steps, &asked).expect("a comparison");
    let json: Value = serde_json::from_str(&told.text).expect("JSON");
    assert_eq!(json["layout"], "compare");
    let row = &json["rows"][0];
    assert_eq!(row["verdict"], "worse");
    let p = row["p_corrected"].as_f64().expect("p");
    assert!((p - 2.0 / 924.0).abs() < 1e-9, "{row}");
    assert!(row["ratio_low"].as_f64() < row["ratio"].as_f64(), "{row}");
    assert_eq!(row["in_blocks"], false);
}

/// Six runs of both labels for each of so many workloads and numbers of clients, the new label
/// `offset` minutes after the base; in one cell it does half.
fn grid(workloads: usize, cells: u32, offset: u32) -> Vec<Summary> {
    let mut steps = Vec::new();
    for w in 0..workloads {
        for clients in 1..=cells {
            let factor = if w == 0 && clients == 1 { 0.5 } else { 1.0 };
            let new = runs("new", clients, offset, &by(factor));
            let mut both = [runs("old", clients, 0, &OLD), new].concat();
            for step in &mut both {
                step.workload.name = format!("w{w}");
            }
            steps.append(&mut both);
        }
    }
    steps
}

#[test]
fn what_all_workloads_together_cannot_decide_is_too_few() {
    let told = compared(&grid(6, 6, 60), &question("old", "new")).expect("a comparison");
    assert_eq!((told.worse.len(), told.too_few.len()), (0, 36), "{}", told.text);
    assert_eq!(told.repeats_needed, 7, "six have p 2/924 at least, seven 2/3432");
    let told = compared(&grid(2, 6, 60), &question("old", "new")).expect("a comparison");
    assert_eq!((told.worse.len(), told.too_few.len()), (1, 0), "{}", told.text);
}

#[test]
fn what_differs_in_every_workload_is_found_by_repeats_that_could_not_find_one_cell() {
    // 2/924, by Holm times the 4 cells of a workload; the workloads are all alike.
    let mut steps = grid(6, 4, 60);
    for step in steps.iter_mut().filter(|step| step.label == "new") {
        let half = step.workload.name == "w0" && step.plan.clients == 1;
        step.totals.qps *= if half { 1.4 } else { 0.7 };
    }
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    assert_eq!((told.worse.len(), told.too_few.len()), (24, 0), "{}", told.text);
    assert!(told.worse[0].starts_with("w0: QPS -30 % ("), "{told:?}");
}

#[test]
fn blocks_that_cannot_decide_among_all_workloads_are_not_used() {
    // Six pairs have p 0.031: enough for one cell, not for one of two workloads.
    for (workloads, blocks) in [(1, true), (2, false)] {
        let steps = grid(workloads, 1, 1);
        let told = compared(&steps, &question("old", "new")).expect("a comparison");
        assert_eq!(in_blocks(&steps), blocks, "{}", told.text);
        assert_eq!(told.worse.len(), 1, "{}", told.text);
    }
}

#[test]
fn what_the_new_label_has_not_measured_is_said() {
    let steps = [
        runs("old", 8, 0, &OLD),
        runs("new", 8, 60, &OLD),
        runs("old", 16, 0, &OLD),
        runs("new", 32, 60, &OLD),
    ];
    let told = compared(&steps.concat(), &question("old", "new")).expect("a comparison");
    assert_eq!(told.unknown.len(), 2, "{:?}", told.unknown);
    // For people once, with the number of clients; files have a row.
    for clients in ["16", "32"] {
        let lines = told.text.lines().filter(|line| line.split([' ', ',']).any(|it| it == clients));
        assert_eq!(lines.count(), 1, "{clients}: {}", told.text);
    }
    let all = rows(&steps.concat(), &question("old", "new"));
    let verdicts: Vec<&Value> = all.iter().map(|row| &row["verdict"]).collect();
    assert_eq!(verdicts[1..], ["not measured", "not measured"]);
}

#[test]
fn a_ratio_that_the_medians_contradict_stands_beside_theirs() {
    let old = [100.0, 101.0, 102.0, 200.0, 201.0, 202.0, 203.0];
    let new = [115.0, 116.0, 117.0, 118.0, 230.0, 231.0, 232.0];
    let steps = [runs("old", 8, 0, &old), runs("new", 8, 1, &new)].concat();
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    assert!(told.text.contains("0.590"), "118 / 200: {}", told.text);
    let even = [runs("old", 8, 0, &OLD), runs("new", 8, 1, &by(1.1))].concat();
    let plain = compared(&even, &question("old", "new")).expect("a comparison");
    let lines = |text: &str| text.lines().count();
    assert_eq!(lines(&told.text), lines(&plain.text) + 1, "{}{}", told.text, plain.text);
}

#[test]
fn a_cell_is_incomplete_when_runs_of_either_label_did_not_complete() {
    for label in ["old", "new"] {
        let mut steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &OLD)].concat();
        let mut crashed = runs(label, 8, 100, &OLD);
        for (step, repeat) in crashed.iter_mut().zip(7..) {
            step.outcome = Outcome::Interrupted;
            step.plan.repeat_index = repeat;
            step.step_id.push('c');
        }
        steps.extend(crashed);
        let told = compared(&steps, &question("old", "new")).expect("a comparison");
        let line = format!("point-select at 8 clients: 6 of 12 runs of {label} did not complete");
        assert!(told.unknown.len() == 1 && told.unknown[0] == line, "{}", told.text);
        assert!(told.text.contains(&line) && told.text.contains("incomplete"), "{}", told.text);
        assert_eq!(told.open.len(), 1, "{:?}", told.open);
    }
    // What was planned and never begun is missing, too.
    let mut steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &OLD)].concat();
    for step in &mut steps {
        step.plan.repeats = 6;
    }
    assert!(compared(&steps, &question("old", "new")).expect("told").unknown.is_empty());
    steps.truncate(10);
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    assert!(told.unknown[0].ends_with("2 of 6 runs of new did not complete"), "{told:?}");
    // What is worse is so all the same.
    let mut steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &by(0.5))].concat();
    let mut crashed = steps[0].clone();
    (crashed.outcome, crashed.plan.repeat_index) = (Outcome::Aborted, 7);
    crashed.step_id.push('c');
    steps.push(crashed);
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    assert_eq!((told.worse.len(), told.unknown.len()), (1, 1), "{}", told.text);
}

#[test]
fn a_cell_is_incomplete_when_more_ops_of_one_label_failed() {
    let p99 = Question { metric: "p99".parse().expect("a metric"), ..question("old", "new") };
    for (share, unknown) in [(0.005, 0), (0.1, 1)] {
        let mut steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &OLD)].concat();
        for step in steps.iter_mut().filter(|step| step.label == "new") {
            let latency = &mut step.latency;
            latency.failed.count = (latency.service.count as f64 * share) as u64;
        }
        let told = compared(&steps, &p99).expect("a comparison");
        assert_eq!(told.unknown.len(), unknown, "{}", told.text);
        assert_eq!(told.text.contains("incomplete"), unknown > 0, "{}", told.text);
        // A rate shows it by itself.
        let told = compared(&steps, &question("old", "new")).expect("a comparison");
        assert!(told.unknown.is_empty(), "{}", told.text);
    }
}

#[test]
fn the_newest_invocation_is_compared_when_nothing_of_it_completed() {
    let steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &OLD)].concat();
    let mut crashed = again(&steps[6], 200);
    crashed.outcome = Outcome::Aborted;
    let steps = [steps, vec![crashed]].concat();
    let latest = Question { latest: true, ..question("old", "new") };
    let told = compared(&steps, &latest).expect("a table");
    assert_eq!(
        told.unknown,
        ["point-select at 8 clients: 1 of 1 runs of new did not complete"],
        "{}",
        told.text
    );
    assert!(told.text.contains("not measured"), "{}", told.text);
}

#[test]
fn what_has_no_ratio_has_a_row_in_every_format() {
    let mut halting = by(1.0);
    halting[2] = 0.0;
    let mut other = runs("old", 8, 0, &OLD);
    for step in &mut other {
        "other".clone_into(&mut step.workload.name);
    }
    let steps = [
        runs("old", 8, 0, &OLD),
        runs("new", 8, 60, &halting),
        runs("old", 16, 0, &OLD),
        runs("new", 16, 60, &OLD),
        other,
    ]
    .concat();
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    assert_eq!(told.worse, ["point-select at 8 clients: 1 of 6 runs of new had no QPS above 0"]);
    assert!(told.text.contains(&told.worse[0]), "{}", told.text);
    assert_eq!(told.text.lines().filter(|line| line.contains("other at 8")).count(), 1);
    let row = table(&told.text)[2];
    assert!(row.starts_with("      8") && row.ends_with("no ratio"), "{}", told.text);
    let in_format = |format| {
        let asked = Question { format, ..question("old", "new") };
        compared(&steps, &asked).expect("a comparison").text
    };
    let markdown = in_format(Format::Markdown);
    assert!(
        markdown.lines().any(|line| line.ends_with("| 6 | - | - | - | no ratio |")),
        "{markdown}"
    );
    assert!(
        in_format(Format::Csv).contains(",6,6,,,,,,false,no ratio,"),
        "{}",
        in_format(Format::Csv)
    );
    let json: Value = serde_json::from_str(&in_format(Format::Json)).expect("JSON");
    assert_eq!(
        (&json["rows"][0]["verdict"], &json["rows"][0]["ratio"]),
        (&"no ratio".into(), &Value::Null)
    );
}

#[test]
fn a_server_that_answers_nothing_is_worse() {
    let cells = [(8, 1.0), (16, 0.0)].map(|(clients, factor)| {
        [runs("old", clients, 0, &OLD), runs("new", clients, 60, &by(factor))].concat()
    });
    let told = compared(&cells.concat(), &question("old", "new")).expect("a comparison");
    let worse = ["point-select at 16 clients: 6 of 6 runs of new had no QPS above 0"];
    assert_eq!(told.worse, worse, "{}", told.text);
    let error = compared(&cells[1], &question("old", "new")).expect_err("nothing else");
    assert_eq!(error.kind().exit_code(), 4);
}

#[test]
fn cells_are_held_against_each_other_one_by_one() {
    let cells = |rows: u64| {
        let mut other = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &OLD)].concat();
        other.iter_mut().filter(|s| s.label == "new").for_each(|step| step.plan.rows = rows);
        [runs("old", 1, 0, &OLD), runs("new", 1, 60, &OLD), other].concat()
    };
    let error = compared(&cells(7), &question("old", "new")).expect_err("other rows");
    assert!(error.kind().exit_code() == 4 && error.to_string().contains(" 8 "), "{error}");
}

#[test]
fn a_rate_that_was_asked_for_is_no_finding() {
    let mut steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &OLD)].concat();
    for step in &mut steps {
        step.plan.rate = Some(1000.0);
    }
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    assert_eq!(told.unknown.len(), 1, "{:?}", told.unknown);
}

#[test]
fn rate_of_a_group_beside_is_no_finding_when_its_own_was_asked_for() {
    let unknown = |own: Option<f64>, beside: Option<f64>| {
        let mut steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &OLD)].concat();
        for step in &mut steps {
            step.plan.rate = own;
            let (name, measured_s) = ("writer".to_owned(), 60.0);
            let mut group = Group { name, rate: beside, measured_s, ..Group::default() };
            group.totals.tps = step.totals.qps;
            step.groups.push(group);
        }
        let metric = "writer.tps".parse().expect("a metric");
        let told = compared(&steps, &Question { metric, ..question("old", "new") });
        told.expect("a comparison").unknown.len()
    };
    assert_eq!([unknown(Some(1000.0), None), unknown(None, Some(1000.0))], [0, 1]);
}

#[test]
fn rates_that_were_asked_for_make_nothing_else_harder_to_find() {
    // Four against four have p 0.029: enough for one cell, not for four.
    let of = |clients: u32, rate: Option<f64>, factor: f64| {
        let new = runs("new", clients, 60, &by(factor)[..4]);
        let mut both = [runs("old", clients, 0, &OLD[..4]), new].concat();
        for step in &mut both {
            step.plan.rate = rate;
            step.step_id = format!("{}-{rate:?}", step.step_id);
        }
        both
    };
    let paced = [1000.0, 2000.0, 4000.0].map(|rate| of(8, Some(rate), 1.0)).concat();
    let told = compared(&[of(8, None, 0.9), paced.clone()].concat(), &question("old", "new"));
    let told = told.expect("a comparison");
    assert_eq!((told.worse.len(), told.too_few.len()), (1, 0), "{}", told.text);
    assert!(told.text.starts_with("new is slower than old at 8 clients: 0."), "{told:?}");
    assert!(told.text.lines().next().is_some_and(|line| line.contains("0.029")), "{told:?}");
    assert!(told.unknown.is_empty() && told.open.is_empty(), "{told:?}");
    // Where they are all there is, they are what is not known.
    let told = compared(&paced, &question("old", "new")).expect("a comparison");
    assert_eq!((told.too_few.len(), told.unknown.len()), (3, 1), "{}", told.text);
}

#[test]
fn what_is_true_of_all_tables_is_said_once_below_the_last() {
    let told = compared(&grid(2, 1, 60), &question("old", "new")).expect("a comparison");
    let tables: Vec<&str> = told.text.split("\n\n").collect();
    let (last, before) = tables.split_last().expect("tables");
    let said = "8 tables x 16M rows";
    assert!(last.contains(said), "{}", told.text);
    assert!(!before.concat().contains(said), "{}", told.text);
    // What is not stays with its table.
    let mut steps = grid(2, 1, 60);
    steps.iter_mut().filter(|s| s.workload.name == "w0").for_each(|step| step.plan.rows = 7);
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    assert!(told.text.contains(" 7 ") && told.text.contains(" 16M "), "{}", told.text);
}

struct Answered {
    what: &'static str,
    steps: Vec<Summary>,
    metric: &'static str,
    says: &'static [&'static str],
}

fn both(clients: u32, factor: f64) -> Vec<Summary> {
    [runs("old", clients, 0, &OLD), runs("new", clients, 60, &by(factor))].concat()
}

#[test]
fn a_comparison_begins_with_its_answer() {
    let wide = [600.0, 1500.0, 800.0, 1300.0, 900.0, 1100.0];
    let noisy = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &wide)].concat();
    let few = [runs("old", 8, 0, &OLD[..3]), runs("new", 8, 60, &by(0.5)[..3])].concat();
    let slower_times = |mut steps: Vec<Summary>| {
        for step in steps.iter_mut().filter(|step| step.label == "new") {
            step.latency.service.mean_us = step.latency.service.mean_us.map(|us| us * 1.2);
        }
        steps
    };
    let named = |mut steps: Vec<Summary>, name: &str| {
        for step in &mut steps {
            name.clone_into(&mut step.workload.name);
        }
        steps
    };
    for Answered { what, steps, metric, says } in [
        Answered {
            what: "one cell",
            steps: both(64, 0.17),
            metric: "qps",
            says: &["new is slower than old at 64 clients: 0.17x (0.17 to 0.17), p 0.002; not \
                     measured in turn: the host may be the reason"],
        },
        Answered {
            what: "cells of both kinds",
            steps: [both(8, 1.0), both(16, 1.01), both(32, 1.4), both(64, 1.5)].concat(),
            metric: "qps",
            says: &[
                "new is faster than old at 32, 64 clients: 1.40x to 1.50x, p 0.009 at most; not \
                 measured in turn: the host may be the reason",
                "no difference above 2 % at 8, 16 clients",
            ],
        },
        Answered {
            what: "no difference alone",
            steps: both(1, 1.0),
            metric: "qps",
            says: &["no difference above 2 % at 1 client (new against old)"],
        },
        Answered {
            what: "runs that lie far apart",
            steps: noisy,
            metric: "qps",
            says: &[
                "inconclusive at 8 clients: -40 % to +49 %; longer or quieter runs would tell \
                     (new against old)",
            ],
        },
        Answered {
            what: "too few runs",
            steps: few,
            metric: "qps",
            says: &[
                "too few repeats at 8 clients: at least 4 of each label are needed (new against old)",
            ],
        },
        Answered {
            what: "a time",
            steps: slower_times(both(8, 1.0)),
            metric: "mean",
            says: &["new is slower than old at 8 clients: mean service time +20 % (+20 to \
                     +20 %), p 0.002; not measured in turn: the host may be the reason"],
        },
        Answered {
            what: "two workloads",
            steps: [named(both(8, 0.5), "w0"), named(both(8, 1.0), "w1")].concat(),
            metric: "tps",
            says: &[
                "w0: new is slower than old at 8 clients: TPS 0.50x (0.50 to 0.50), p 0.004; not \
                 measured in turn: the host may be the reason",
                "w1: no difference above 2 % at 8 clients",
            ],
        },
    ] {
        let mut steps = steps;
        for step in &mut steps {
            step.totals.tps = step.totals.qps;
        }
        let asked =
            Question { metric: metric.parse().expect("a metric"), ..question("old", "new") };
        assert_eq!(answer(&steps, &asked), says, "{what}");
    }
}

#[test]
fn an_answer_of_many_workloads_is_six_lines_and_the_rest_counted() {
    let mut steps = grid(9, 2, 60);
    for step in steps.iter_mut().filter(|step| step.label == "new") {
        step.totals.qps *= 0.5;
    }
    let lines = answer(&steps, &question("old", "new"));
    assert_eq!(lines.len(), 7, "{lines:?}");
    assert_eq!(lines[6], "and 3 more below");
    assert!(lines[5].starts_with("w5: new is slower than old at 1, 2 clients: 0."), "{lines:?}");
    // Cells that nothing is found in are told together.
    let lines = answer(&grid(6, 6, 60), &question("old", "new"));
    let few = "too few repeats in 36 cells of 6 workloads: at least 7 of each label are needed (new \
               against old)";
    assert_eq!(lines, [few]);
}

#[test]
fn an_answer_is_for_people_only() {
    let steps = both(8, 0.5);
    let of = |format| {
        let asked = Question { format, ..question("old", "new") };
        compared(&steps, &asked).expect("a comparison").text
    };
    assert!(of(Format::Markdown).starts_with("- new is slower than old at 8 clients: "));
    assert!(of(Format::Csv).starts_with("workload,clients,"));
    assert!(of(Format::Json).starts_with('{'));
}

#[test]
fn a_regression_is_told_in_percent() {
    let told = compared(&both(64, 0.17), &question("old", "new")).expect("a comparison");
    assert_eq!(told.worse, ["QPS -83 % (-83 to -83 %) at 64 clients"]);
    let two = [both(8, 0.95), both(64, 0.17)].concat();
    let told = compared(&two, &question("old", "new")).expect("a comparison");
    assert_eq!(told.worse[0], "QPS -5.0 % (-5.4 to -4.6 %) at 8 clients");
}

#[test]
fn two_labels_need_no_flags_and_more_are_named() {
    let named = |steps: &[Summary], given: [Option<&str>; 2]| {
        pair(&steps.iter().collect::<Vec<_>>(), given)
            .map_err(|error| (error.kind().exit_code(), error.render()))
    };
    let two = both(8, 1.0);
    let old_new = Ok(["old", "new"].map(str::to_owned));
    assert_eq!(named(&two, [None, None]), old_new, "the first by time is the baseline");
    assert_eq!(named(&two, [Some("old"), None]), old_new);
    assert_eq!(named(&two, [None, Some("new")]), old_new);
    let turned = Ok(["new", "old"].map(str::to_owned));
    assert_eq!(named(&two, [Some("new"), None]), turned);
    let three = [two.clone(), runs("third", 8, 120, &OLD)].concat();
    let (code, text) = named(&three, [None, None]).expect_err("which?");
    assert!(code == 2 && text.contains("third") && text.contains("--baseline"), "{text}");
    assert_eq!(named(&three, [Some("new"), Some("third")]).expect("given")[1], "third");
    let (code, text) = named(&three, [Some("new"), None]).expect_err("which?");
    assert!(code == 2 && text.contains("--new"), "{text}");
    let (code, text) = named(&two, [Some("old"), Some("old")]).expect_err("one label");
    assert!(code == 2 && text.contains("with itself"), "{text}");
    let (code, text) = named(&two, [Some("nwe"), None]).expect_err("no such label");
    assert!(code == 2 && text.contains("'new'"), "{text}");
    let (code, text) = named(&two[..6], [None, None]).expect_err("nothing to compare with");
    assert!(code == 4 && text.contains("old"), "{text}");
}

/// Which work the runs of both labels did.
enum Work {
    /// What the window had time for.
    Window,
    /// So many ops of each label.
    Ops([u64; 2]),
    /// So many rows of each label.
    Load([u64; 2]),
}

/// Runs of two labels; each of the new one took twice the CPU, and twice the time.
fn costing(work: &Work) -> Vec<Summary> {
    let mut steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &OLD)].concat();
    for step in &mut steps {
        let at = usize::from(step.label == "new");
        let times = [1.0, 2.0][at];
        (step.client.user_s, step.client.sys_s) = (3.0 * times, 1.0 * times);
        match work {
            Work::Window => continue,
            Work::Ops(ops) => step.plan.ops = Some(ops[at]),
            Work::Load(rows) => step.totals.rows = rows[at],
        }
        (step.plan.time_s, step.measured_s) = (None, 60.0 * times);
    }
    steps
}

#[test]
fn a_total_has_a_verdict_only_when_the_work_was_the_same() {
    struct Case {
        work: Work,
        metric: &'static str,
        verdict: &'static str,
        worse: usize,
        unknown: usize,
    }
    let no = |work, metric| Case { work, metric, verdict: "not comparable", worse: 0, unknown: 1 };
    let yes = |work, metric| Case { work, metric, verdict: "worse", worse: 1, unknown: 0 };
    for Case { work, metric, verdict, worse, unknown } in [
        no(Work::Window, "client-seconds"),
        no(Work::Window, "seconds"),
        no(Work::Ops([1000, 2000]), "client-seconds"),
        no(Work::Load([1000, 2000]), "seconds"),
        yes(Work::Ops([1000, 1000]), "client-seconds"),
        yes(Work::Ops([1000, 1000]), "seconds"),
        yes(Work::Load([1000, 1000]), "client-seconds"),
        yes(Work::Load([1000, 1000]), "seconds"),
    ] {
        let steps = costing(&work);
        let asked = Question {
            metric: metric.parse().expect(metric),
            format: Format::Json,
            ..question("old", "new")
        };
        let told = compared(&steps, &asked).expect("a comparison");
        let json: Value = serde_json::from_str(&told.text).expect("JSON");
        let row = &json["rows"][0];
        assert_eq!(row["verdict"], verdict, "{metric}: {row}");
        assert_eq!(row["ratio"].is_null(), verdict == "not comparable", "{metric}: {row}");
        assert!(row["base_value"].is_f64() && row["new_value"].is_f64(), "{row}");
        assert_eq!((told.worse.len(), told.unknown.len()), (worse, unknown), "{told:?}");
        assert!(told.open.iter().all(|_| verdict == "worse"), "more runs tell nothing: {told:?}");
    }
}

#[test]
fn errors_are_compared_as_a_share_of_the_ops_when_the_work_was_not_the_same() {
    let share = |work: &Work, ops: [u64; 2]| {
        let mut steps = costing(work);
        for step in &mut steps {
            let at = usize::from(step.label == "new");
            // As many errors among more ops are fewer of them.
            step.latency.service.count = ops[at];
            step.latency.failed.count = 100;
            step.totals.errors = serde_json::from_str(
                r#"[{"code": 1213, "sqlstate": "40001", "class": "server", "message": "", "count": 100}]"#,
            )
            .expect("errors");
        }
        let asked =
            Question { metric: Metric::ERRORS, format: Format::Json, ..question("old", "new") };
        let told = compared(&steps, &asked).expect("a comparison");
        let json: Value = serde_json::from_str(&told.text).expect("JSON");
        let row = &json["rows"][0];
        let text = |field: &str| row[field].as_str().expect(field).to_owned();
        (text("metric"), row["new_value"].as_f64().expect("a value"), text("verdict"))
    };
    let window = share(&Work::Window, [900, 9_900]);
    assert_eq!(window, ("errors%".to_owned(), 1.0, "better".to_owned()));
    let fixed = share(&Work::Ops([1000, 1000]), [900, 900]);
    assert_eq!(fixed, ("errors".to_owned(), 100.0, "same".to_owned()));
}

#[test]
fn every_output_has_the_ratio_of_a_comparison() {
    struct Case {
        what: &'static str,
        clients: &'static [u32],
        apart_min: u32,
    }
    // The ratio of the medians is 3.07, and that over all pairs of runs another.
    let old = [100.0, 101.0, 102.0, 104.0, 400.0, 420.0];
    let new = [250.0, 260.0, 314.0, 318.0, 330.0, 340.0];
    for Case { what, clients, apart_min } in [
        Case { what: "one after the other", clients: &[8], apart_min: 60 },
        Case { what: "in blocks", clients: &[8], apart_min: 1 },
        Case { what: "in turn, too few for blocks", clients: &[8, 16], apart_min: 1 },
    ] {
        let both = |clients| {
            [runs("old", clients, 0, &old), runs("new", clients, apart_min, &new)].concat()
        };
        let mut steps: Vec<Summary> = clients.iter().flat_map(|of| both(*of)).collect();
        for step in &mut steps {
            step.totals.tps = step.totals.qps;
        }
        let asked = Question { format: Format::Json, ..question("old", "new") };
        let told = compared(&steps, &asked).expect("a comparison");
        let told: Value = serde_json::from_str(&told.text).expect("JSON");
        let ratio = told["rows"][0]["ratio"].as_f64().expect("a ratio");
        assert!((ratio - 309.0 / 103.0).abs() > 0.1, "{what}: {ratio} is that of the medians");
        let is = |found: &Value, wanted: f64, of: &str| {
            let found = found.as_f64().expect(of);
            assert!((found - wanted).abs() < 1e-9, "{what}, {of}: {found}, not {wanted}");
        };
        let rows = |layout: Layout| {
            let two = matches!(layout, Layout::Delta | Layout::Overhead);
            let [baseline, new] = ["old", "new"].map(|label| two.then(|| label.to_owned()));
            json(&steps, &Options { layout, baseline, new, ..Options::default() })["rows"].clone()
        };
        let plain = json(&steps, &related("old", "qps"));
        is(&plain["tables"][0]["lines"][1]["cells"][0]["relative"], ratio, "versions");
        is(&rows(Layout::Relative)[1]["relative"], ratio, "relative");
        is(&rows(Layout::PerOp)[1]["ops_relative"], ratio, "per-op");
        is(&rows(Layout::Delta)[0]["change_percent"], 100.0 * (ratio - 1.0), "delta");
        is(&rows(Layout::Overhead)[0]["cost_percent"], 100.0 * (1.0 - ratio), "overhead");
        let of: Vec<&Summary> = steps.iter().collect();
        let html = page(&of, &Options::default()).expect("a page");
        assert!(html.contains(&format!(">{ratio:.2}<")), "{what}: {ratio} is not on the page");
    }
}

fn owned(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|label| (*label).to_owned()).collect()
}

#[test]
fn labels_are_compared_with_the_first_by_time_when_no_flag_names_another() {
    struct Case {
        base: Option<&'static str>,
        new: &'static [&'static str],
        found: Result<(&'static str, &'static [&'static str]), u8>,
    }
    // "c" was measured first.
    let steps = [("a", 60), ("b", 120), ("c", 0)].map(|(label, at)| runs(label, 8, at, &OLD));
    let steps = steps.concat();
    for Case { base, new, found } in [
        Case { base: None, new: &[], found: Ok(("c", &["a", "b"])) },
        Case { base: Some("b"), new: &[], found: Ok(("b", &["c", "a"])) },
        Case { base: Some("b"), new: &["a"], found: Ok(("b", &["a"])) },
        Case { base: None, new: &["b"], found: Ok(("c", &["b"])) },
        Case { base: None, new: &["c", "b"], found: Ok(("a", &["c", "b"])) },
        Case { base: Some("a"), new: &["c", "b", "c"], found: Ok(("a", &["c", "b"])) },
        Case { base: Some("a"), new: &["a"], found: Err(2) },
        Case { base: None, new: &["a", "b", "c"], found: Err(2) },
        Case { base: Some("d"), new: &[], found: Err(2) },
        Case { base: None, new: &["a", "d"], found: Err(2) },
    ] {
        let all: Vec<&Summary> = steps.iter().collect();
        let told = base_and_new(&all, base, &owned(new)).map_err(|error| error.kind().exit_code());
        let found = found.map(|(base, new)| (base.to_owned(), owned(new)));
        assert_eq!(told, found, "--baseline {base:?} --new {new:?}");
    }
    let one: Vec<&Summary> = steps[..6].iter().collect();
    let error = base_and_new(&one, None, &[]).expect_err("nothing to compare with");
    assert_eq!(error.kind().exit_code(), 4, "{error}");
    let error = base_and_new(&one, None, &owned(&["a"])).expect_err("nothing to compare with");
    assert_eq!(error.kind().exit_code(), 4, "{error}");
}

#[test]
fn first_label_is_that_of_the_newest_invocations_when_these_alone_are_asked_for() {
    let steps = [step(0, "a", 8, 100.0), step(1, "b", 8, 90.0), step(2, "a", 8, 80.0)];
    let runs = Runs::from(&steps.iter().collect::<Vec<_>>());
    let newest = pair(runs.newest(), [None, None]).expect("two labels");
    assert_eq!(newest, ["b", "a"].map(str::to_owned));
    assert_eq!(pair(runs, [None, None]).expect("two labels"), ["a", "b"].map(str::to_owned));
    let laid = Options { layout: Layout::Delta, latest: true, ..Options::default() };
    let rows = &json(&steps, &laid)["rows"];
    assert_eq!((&rows[0]["from"], &rows[0]["to"]), (&"b".into(), &"a".into()));
}

/// Rows as JSON has them.
fn rows(steps: &[Summary], question: &Question) -> Vec<Value> {
    let asked = Question { format: Format::Json, ..question.clone() };
    let told = compared(steps, &asked).expect("a comparison");
    let json: Value = serde_json::from_str(&told.text).expect("JSON");
    json["rows"].as_array().expect("rows").clone()
}

/// Six runs of each label at 8 clients, one label after the other, times such factors.
fn labelled(labels: &[(&str, f64)]) -> Vec<Summary> {
    let of = |(at, (label, factor)): (u32, &(&str, f64))| runs(label, 8, 60 * at, &by(*factor));
    (0..).zip(labels).flat_map(of).collect()
}

/// The p of six runs that all lie below or above six others.
const CLEAR: f64 = 2.0 / 924.0;

#[test]
fn p_is_corrected_over_all_labels_and_metrics_of_a_comparison() {
    struct Case {
        what: &'static str,
        labels: &'static [(&'static str, f64)],
        also: &'static [&'static str],
        /// New label, metric, verdict, and what the p of CLEAR is multiplied by; nothing for other p.
        rows: &'static [(&'static str, &'static str, &'static str, Option<f64>)],
    }
    for Case { what, labels, also, rows: wanted } in [
        Case {
            what: "two labels",
            labels: &[("old", 1.0), ("new", 0.9)],
            also: &[],
            rows: &[("new", "qps", "worse", Some(1.0))],
        },
        Case {
            what: "three labels, of which one differs",
            labels: &[("old", 1.0), ("new", 0.9), ("newer", 1.0)],
            also: &[],
            rows: &[("new", "qps", "worse", Some(2.0)), ("newer", "qps", "same", None)],
        },
        Case {
            what: "three labels, and both differ as clearly",
            labels: &[("old", 1.0), ("new", 0.9), ("newer", 1.1)],
            also: &[],
            rows: &[("new", "qps", "worse", Some(1.0)), ("newer", "qps", "better", Some(1.0))],
        },
        Case {
            what: "two metrics, of which one differs",
            labels: &[("old", 1.0), ("new", 0.9)],
            also: &["mean"],
            rows: &[("new", "qps", "worse", Some(2.0)), ("new", "mean", "same", None)],
        },
        Case {
            what: "three labels and two metrics, of which one cell differs",
            labels: &[("old", 1.0), ("new", 0.9), ("newer", 1.0)],
            also: &["mean"],
            rows: &[
                ("new", "qps", "worse", Some(4.0)),
                ("newer", "qps", "same", None),
                ("new", "mean", "same", None),
                ("newer", "mean", "same", None),
            ],
        },
        Case {
            what: "one metric by two names",
            labels: &[("old", 1.0), ("new", 0.9)],
            also: &["natural", "qps"],
            rows: &[("new", "qps", "worse", Some(1.0))],
        },
    ] {
        let steps = labelled(labels);
        let others = labels[2..].iter().map(|(label, _)| (*label).to_owned()).collect();
        let also = also.iter().map(|name| name.parse().expect("a metric")).collect();
        let asked = Question { others, also, ..question("old", "new") };
        let rows = rows(&steps, &asked);
        assert_eq!(rows.len(), wanted.len(), "{what}: {rows:?}");
        for (row, (new, metric, verdict, times)) in rows.iter().zip(wanted) {
            assert_eq!(row["base"], "old", "{what}");
            let found = ["new", "metric", "verdict"].map(|field| row[field].as_str());
            assert_eq!(found, [*new, *metric, *verdict].map(Some), "{what}");
            let p = row["p_corrected"].as_f64().expect("p");
            assert!(times.is_none_or(|of| (p - of * CLEAR).abs() < 1e-9), "{what}: {p}");
        }
    }
}

#[test]
fn what_all_labels_together_cannot_decide_is_too_few() {
    // 4 against 4 have p 0.029: enough for one label, not for two.
    let of = |label, at, factor| runs(label, 8, at, &by(factor)[..4]);
    let steps = [of("old", 0, 1.0), of("new", 60, 0.5), of("newer", 120, 1.0)].concat();
    let one = compared(&steps, &question("old", "new")).expect("a comparison");
    assert_eq!((one.worse.len(), one.too_few.len()), (1, 0), "{}", one.text);
    let asked = Question { others: owned(&["newer"]), ..question("old", "new") };
    let both = compared(&steps, &asked).expect("a comparison");
    assert_eq!((both.worse.len(), both.too_few.len()), (0, 2), "{}", both.text);
    assert_eq!(both.repeats_needed, 5, "{}", both.text);
}

#[test]
fn lines_of_a_comparison_name_label_and_metric_when_there_are_several() {
    let mut steps = labelled(&[("old", 1.0), ("new", 0.9), ("newer", 1.0)]);
    steps.retain(|step| step.label != "newer" || step.plan.repeat_index < 4);
    let also = vec!["mean".parse().expect("mean")];
    let asked = Question { others: owned(&["newer", "other"]), also, ..question("old", "new") };
    steps.extend(runs("other", 16, 240, &OLD));
    let told = compared(&steps, &asked).expect("a comparison");
    assert_eq!(told.worse, ["new: QPS -10.0 % (-10.4 to -9.6 %) at 8 clients"], "{}", told.text);
    // What was not measured is said once, whatever the metrics.
    for clients in ["at 8 clients", "at 16 clients"] {
        assert_eq!(told.unknown.iter().filter(|line| line.contains(clients)).count(), 1);
    }
    assert_eq!(told.unknown.len(), 2, "{}", told.text);
    assert!(told.answer[0].starts_with("new is slower than old at 8 clients: QPS 0.9"), "{told:?}");
    assert!(
        told.answer.iter().any(|line| line.starts_with("mean service time, newer: ")),
        "{told:?}"
    );
    for label in ["new", "newer"] {
        for metric in ["QPS", "mean service time"] {
            let title = format!("{metric} of {label} against old,");
            assert_eq!(told.text.matches(&title).count(), 1, "{title}: {}", told.text);
        }
    }
    let junit = compared(&steps, &Question { format: Format::Junit, ..asked.clone() });
    let junit = junit.expect("a comparison").text;
    assert_eq!(junit.matches("<testcase").count(), rows(&steps, &asked).len(), "{junit}");
}

#[test]
fn a_metric_of_which_there_is_nothing_is_refused_beside_another() {
    let steps = labelled(&[("old", 1.0), ("new", 0.9)]);
    let also = vec!["wait-p50".parse().expect("a time of open loops")];
    let error = compared(&steps, &Question { also, ..question("old", "new") });
    let error = error.expect_err("closed loops have none");
    assert_eq!(error.kind().exit_code(), 4, "{error}");
    assert!(error.to_string().contains("wait-p50"), "{error}");
}

#[test]
fn reports_of_several_labels_and_metrics_have_the_ratio_of_a_comparison() {
    let old = [100.0, 101.0, 102.0, 104.0, 400.0, 420.0];
    let new = [250.0, 260.0, 314.0, 318.0, 330.0, 340.0];
    // In turn: enough for blocks of one new label, too few of two, or of two metrics.
    let of = |label, at, qps| runs(label, 8, at, qps);
    let mut steps = [of("old", 0, &old), of("new", 1, &new), of("newer", 1, &old)].concat();
    for step in &mut steps {
        step.totals.tps = step.totals.qps;
    }
    let tps: Metric = "tps".parse().expect("tps");
    for (others, also, blocks) in
        [(vec![], vec![], true), (owned(&["newer"]), vec![], false), (vec![], vec![tps], false)]
    {
        let mut steps = steps.clone();
        steps.retain(|step| step.label != "newer" || !others.is_empty());
        let asked = Question { others, also: also.clone(), ..question("old", "new") };
        let row = &rows(&steps, &asked)[0];
        assert_eq!(row["in_blocks"], blocks, "{row}");
        let plain = json(&steps, &Options { also, ..related("old", "qps") });
        let cell = &plain["tables"][0]["lines"][1]["cells"][0];
        assert_eq!(cell["relative"], row["ratio"], "{cell}");
    }
}

#[test]
fn numbers_have_no_ratio_when_they_are_too_far_apart() {
    let two = |clients, old: f64, new: f64| {
        [runs("old", clients, 0, &[old]), runs("new", clients, 60, &[new])].concat()
    };
    let alone = two(8, f64::MIN_POSITIVE, 1000.0);
    assert!(compared(&alone, &question("old", "new")).is_err());
    let steps = [alone, two(16, 1000.0, 1000.0)].concat();
    let comparison = compared(&steps, &question("old", "new")).expect("a comparison");
    assert!(comparison.worse.is_empty() && !comparison.text.contains(" inf"));
}
