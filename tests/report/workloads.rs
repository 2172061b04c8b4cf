//! One table of all workloads: a row each, a column a label.

use super::{json, report};
use crate::common::summaries::{step, worded};
use loadgen::report::{Layout, Options};
use loadgen::summary::{Group, Outcome, Summary};
use serde_json::Value;

fn of_workload(order: u32, name: &str, label: &str, clients: u32, qps: f64) -> Summary {
    let mut step = step(order, label, clients, qps);
    name.clone_into(&mut step.workload.name);
    step
}

fn laid(baseline: &str, metrics: &[&str]) -> Options {
    let mut metrics = metrics.iter().map(|name| name.parse().expect("a metric"));
    Options {
        layout: Layout::Workloads,
        baseline: Some(baseline.to_owned()),
        metric: metrics.next().expect("one"),
        also: metrics.collect(),
        ..Options::default()
    }
}

/// The lines of each table, single blanks between words.
fn tables(text: &str) -> Vec<Vec<String>> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split("\n\n").map(|table| table.lines().map(words).collect()).collect()
}

/// Workload, label, value, and value relative to the baseline, of a metric.
fn values(report: &Value, metric: &str) -> Vec<(String, String, f64, Option<f64>)> {
    let rows = report["rows"].as_array().expect("rows").iter();
    let text = |row: &Value, name: &str| row[name].as_str().expect("a text").to_owned();
    let value = |row: &Value| {
        let number = row["value"].as_f64().expect("a number");
        (text(row, "workload"), text(row, "label"), number, row["value_relative"].as_f64())
    };
    rows.filter(|row| row["metric"] == metric).map(value).collect()
}

#[test]
fn workloads_stand_in_the_order_in_which_they_ran_with_numbers_over_those_of_the_baseline() {
    let mut steps = vec![
        of_workload(0, "z-first", "old", 8, 1000.0),
        of_workload(1, "a-second", "old", 8, 50.0),
        of_workload(2, "a-second", "new", 8, 40.0),
        of_workload(3, "z-first", "new", 8, 2000.0),
        of_workload(4, "only-new", "new", 8, 5.0),
    ];
    for (step, us) in steps.iter_mut().zip([10.0, 0.0, 4.0, 15.0, 1.0]) {
        step.client.us_per_op = Some(us);
    }
    steps[3].warnings.push(worded("cold_pool", "pages were read"));
    let options = laid("old", &["qps", "cpu"]);
    let report_in_json = json(&steps, &options);
    let row = |workload: &str, label: &str, value, relative: Option<f64>| {
        (workload.to_owned(), label.to_owned(), value, relative)
    };
    assert_eq!(
        values(&report_in_json, "qps"),
        [
            row("z-first", "old", 1000.0, Some(1.0)),
            row("z-first", "new", 2000.0, Some(2.0)),
            row("a-second", "old", 50.0, Some(1.0)),
            row("a-second", "new", 40.0, Some(0.8)),
            row("only-new", "new", 5.0, None),
        ]
    );
    // The ratio of costs is that of the numbers, too, which a 0 does not have.
    let costs = values(&report_in_json, "cpu").into_iter().map(|(.., relative)| relative);
    assert_eq!(costs.collect::<Vec<_>>(), [Some(1.0), Some(1.5), Some(1.0), None, None]);
    let text = report(&steps, &options);
    let tables = tables(&text);
    assert_eq!(
        tables[0][1..5],
        ["old new workload", "1 2.00* z-first", "1 0.80 a-second", "- - only-new"]
    );
    assert!(tables[0][5].starts_with("---"), "{text}");
    assert_eq!(tables[0][6..], ["1000 2000* z-first", "50.0 40.0 a-second", "- 5.00 only-new"]);
}

#[test]
fn base_is_the_first_label_with_a_completed_step_when_none_is_asked_for() {
    let mut steps = [("a", 1.0), ("b", 2.0), ("c", 3.0)]
        .map(|(label, qps)| of_workload(qps as u32, "one", label, 8, qps));
    steps[0].outcome = Outcome::Aborted;
    let report = json(&steps, &Options { layout: Layout::Workloads, ..Options::default() });
    let rows = values(&report, "qps").into_iter();
    let ratios: Vec<(String, Option<f64>)> = rows.map(|row| (row.1, row.3)).collect();
    assert_eq!(ratios, [("b".to_owned(), Some(1.0)), ("c".to_owned(), Some(1.5))]);
}

#[test]
fn a_row_tells_its_clients_where_they_differ_and_long_labels_have_numbers() {
    let long = "my8044_rel_o2nofp.z12a_c32r128";
    let steps = vec![
        of_workload(0, "insert", "my5651", 1, 10.0),
        of_workload(1, "insert", long, 1, 20.0),
        of_workload(2, "read", "my5651", 1, 10.0),
        of_workload(3, "read", "my5651", 8, 10.0),
    ];
    // A mark is no part of a label.
    let mut marked = of_workload(0, "insert", "twelve-chars", 1, 10.0);
    marked.warnings.push(worded("cold_pool", "pages were read"));
    assert!(!report(&[marked], &laid("twelve-chars", &["qps"])).contains("col-1"));
    let tables = tables(&report(&steps, &laid("my5651", &["qps"])));
    let at = tables[0].iter().position(|line| line == "clients col-1 col-2 workload");
    let at = at.expect("numbered columns");
    assert_eq!(tables[0][at - 2..at], ["col-1: my5651".to_owned(), format!("col-2: {long}")]);
    assert_eq!(tables[0][at + 1..at + 4], ["1 1 2.00 insert", "1 1 - read", "8 1 - read"]);
}

#[test]
fn a_group_beside_has_a_table_of_the_workloads_that_have_it() {
    let mut steps = vec![
        of_workload(0, "load", "old", 1, 10.0),
        of_workload(1, "load", "new", 1, 10.0),
        of_workload(2, "read", "old", 1, 10.0),
        of_workload(3, "read", "new", 1, 10.0),
    ];
    for (step, qps) in steps[2..].iter_mut().zip([100.0, 90.0]) {
        let mut group = Group { name: "writer".to_owned(), measured_s: 60.0, ..Group::default() };
        group.totals.qps = qps;
        step.groups.push(group);
        let status = step.server.status.as_mut().expect("counters");
        status.deltas.insert("Innodb_data_reads".to_owned().into(), 1_000);
    }
    for (metric, of_costs) in [("innodb-reads", true), ("qps", false)] {
        let report = json(&steps, &laid("old", &[metric]));
        let mut read = report["rows"].as_array().expect("rows").iter();
        let row = read.find(|row| row["workload"] == "read").expect("a number");
        assert!(row["value"].as_f64() > Some(0.0));
        let noted = row["notes"].as_str().is_some_and(|codes| codes.contains("costs_beside"));
        assert_eq!(noted, of_costs, "{metric}");
    }
    let of = laid("old", &["writer.qps", "other.qps"]);
    let found = values(&json(&steps, &of), "writer.qps");
    let found: Vec<_> = found.into_iter().map(|(workload, .., of)| (workload, of)).collect();
    assert_eq!(found, [("read".to_owned(), Some(1.0)), ("read".to_owned(), Some(0.9))]);
    let tables = tables(&report(&steps, &of));
    assert_eq!(tables[0][1..3], ["old new workload", "1 0.90 read"]);
    assert!(tables.iter().any(|table| table.len() == 1 && table[0].ends_with("not measured")));
}
