//! Two labels with statistics: verdicts, corrections, blocks, refusals.

use loadgen::report::{Comparison, Question, compare};

use super::*;

fn question(base: &str, new: &str) -> Question {
    Question {
        base: base.to_owned(),
        new: new.to_owned(),
        metric: Metric::Qps,
        floor: 0.02,
        force: false,
        latest: false,
        format: Format::Text,
    }
}

fn compared(steps: &[Summary], question: &Question) -> Result<Comparison, Error> {
    compare(&steps.iter().collect::<Vec<_>>(), question)
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

const OLD: [f64; 6] = [1000.0, 1004.0, 996.0, 1002.0, 998.0, 1001.0];

fn by(factor: f64) -> Vec<f64> {
    OLD.iter().rev().map(|qps| qps * factor).collect()
}

#[test]
fn six_against_six_find_what_is_there_and_nothing_else() {
    for (factor, verdict, worse) in
        [(0.9, "worse", 1), (1.1, "better", 0), (1.0, "same", 0), (1.01, "same", 0)]
    {
        let steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &by(factor))].concat();
        let told = compared(&steps, &question("old", "new")).expect("a comparison");
        let row = told.text.lines().nth(2).expect("a row");
        assert!(row.ends_with(verdict), "{factor}: {}", told.text);
        assert_eq!(told.worse.len(), worse, "{}", told.text);
        assert!(told.too_few.is_empty());
    }
}

#[test]
fn the_table_shows_ratio_interval_and_what_stands_behind() {
    let steps = [runs("old", 8, 0, &OLD), runs("new", 8, 60, &by(0.9))].concat();
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    let lines: Vec<&str> = told.text.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "point-select: QPS of new against old, medians; ratio new/base: above 1 is better",
            "clients   old  new  runs  new/base  95 % interval       p  verdict",
            "      8  1000  900     6     0.900  0.896 to 0.904  0.002  worse",
        ],
        "{}",
        told.text
    );
    assert!(told.text.contains("Mann-Whitney"), "{}", told.text);
}

#[test]
fn three_against_three_are_too_few() {
    let steps = [runs("old", 8, 0, &OLD[..3]), runs("new", 8, 60, &by(0.5)[..3])].concat();
    let told = compared(&steps, &question("old", "new")).expect("a comparison");
    assert!(told.text.contains("too few repeats"), "{}", told.text);
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
    assert!(told.text.contains("blocks (Wilcoxon"), "{}", told.text);
    assert_eq!(told.worse.len(), 1, "{}", told.text);
    let after = [runs("old", 8, 0, &drift(1.0)), runs("new", 8, 60, &drift(0.95))].concat();
    let told = compared(&after, &question("old", "new")).expect("a comparison");
    assert!(told.text.contains("no difference shown"), "{}", told.text);
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
}
