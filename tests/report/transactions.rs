//! The transactions that a script has named, as the report shows them.

use super::{json, report};
use crate::common::summaries::{step, worded};
use loadgen::report::{Format, Layout, Options};
use loadgen::summary::{Distribution, ErrorCount, Summary, Transaction, TransactionLatency};
use serde_json::Value;

fn named(name: &str, ops: u64, tps: f64, p99_us: f64) -> Transaction {
    let times = Distribution {
        count: ops,
        p50_us: Some(p99_us / 4.0),
        p90_us: Some(p99_us / 2.0),
        p99_us: Some(p99_us),
        ..Distribution::default()
    };
    let latency = TransactionLatency { service: times, response: None };
    Transaction { name: name.to_owned(), ops, tps, latency, ..Transaction::default() }
}

/// Three repeats of a label, and one step without names.
fn steps() -> Vec<Summary> {
    let mut steps: Vec<Summary> = (1..4)
        .map(|repeat| {
            let mut one = step(1, "a", 8, 100.0);
            (one.plan.repeats, one.plan.repeat_index, one.measured_s) = (3, repeat, 10.0);
            one.step_id = format!("{}-{repeat}", one.run_id);
            one.totals.ops = 3_200;
            let n = f64::from(repeat);
            one.transactions = vec![
                named("new \u{1b}[2J order", 2_000, 200.0 + n, 4_000.0 * n),
                named("payment", 1_100, 110.0, 1_000.0),
            ];
            one
        })
        .collect();
    let error = ErrorCount { code: Some(1213), count: 7, ..ErrorCount::default() };
    steps[1].transactions[0].errors = vec![error];
    steps[0].warnings = vec![worded("debug_build", "a debug build")];
    // Too few for a p99.
    steps[2].transactions[1] = named("payment", 900, 90.0, 1_000.0);
    steps.push(step(2, "b", 8, 100.0));
    steps
}

fn laid() -> Options {
    Options { layout: Layout::Transactions, ..Options::default() }
}

#[test]
fn each_transaction_is_a_line_with_medians_and_sums_of_the_repeats() {
    let text = report(&steps(), &laid());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "point-select: transactions, 2 names");
    assert!(!text.contains('\u{1b}'), "{text}");
    let row = |word: &str| -> Vec<&str> {
        let line = lines.iter().find(|line| line.contains(word)).expect(word);
        let (_, behind) = line.split_once(word).expect("just found");
        behind.split_whitespace().take(8).collect()
    };
    assert_eq!(row("order")[..8], ["6000", "202.0", "12120", "2.000", "4.000", "8.000", "7", "-"]);
    assert_eq!(row("payment")[..8], ["3100", "110.0", "6600", "0.250", "0.500", "-", "0", "-"]);
    assert_eq!(row("(no name)")[..8], ["500", "10.0", "600", "-", "-", "-", "-", "-"], "{text}");
    assert!(text.contains("a *"), "its notes hold here, too: {text}");
    let rows = &json(&steps(), &laid())["rows"];
    assert_eq!(rows[0]["notes"], "debug_build");
    assert_eq!(rows.as_array().map(Vec::len), Some(3));
    let of = |row: usize, name: &str| rows[row][name].clone();
    assert_eq!((of(0, "ops_per_min"), of(0, "p99_ms")), (12_120.0.into(), 8.0.into()));
    assert_eq!((of(0, "runs"), of(0, "time")), (3.into(), "service".into()));
    assert_eq!((of(1, "transaction"), of(1, "p99_ms")), ("payment".into(), Value::Null));
    assert_eq!((of(2, "transaction"), of(2, "ops")), (Value::Null, 500.into()));
}

#[test]
fn percentile_is_unknown_when_one_repeat_lacks_the_name() {
    let mut steps = steps();
    steps[2].transactions.truncate(1);
    let rows = &json(&steps, &laid())["rows"];
    assert_eq!((&rows[0]["p99_ms"], &rows[1]["transaction"]), (&8.0.into(), &"payment".into()));
    assert_eq!((&rows[1]["p50_ms"], &rows[1]["ops"]), (&Value::Null, &2_200.into()));
}

#[test]
fn table_of_steps_without_names_is_empty() {
    let without = &steps()[3..];
    assert!(report(without, &laid()).starts_with("point-select: transactions, 0 names\n"));
    let marked = Options { format: Format::Markdown, ..laid() };
    assert!(!report(without, &marked).contains('|'), "no table");
}
