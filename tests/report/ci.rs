//! Formats for continuous integration, held against what their readers take.

use std::io::Write as _;
use std::process::{Command, Stdio};

use loadgen::report::{Question, compare, gates};

use super::*;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/ci");

/// Six runs of two labels at two numbers of clients; a label has a tag in it.
fn steps() -> Vec<Summary> {
    let runs = |label: &str, clients: u32, qps: f64| {
        let first = step(clients, label, clients, qps);
        (2..=6).map(|n| repeat(&first, n, qps + f64::from(n))).chain([first.clone()]).collect()
    };
    let all: [Vec<Summary>; 4] = [
        runs("a <b>", 8, 1000.0),
        runs("a <b>", 64, 2000.0),
        runs("c", 8, 500.0),
        runs("c", 64, 2001.0),
    ];
    all.concat()
}

fn written(format: Format, metrics: &str) -> String {
    let mut metrics = metrics.split(',').map(|name| name.parse().expect(name));
    let metric = metrics.next().expect("one");
    let options = Options { metric, also: metrics.collect(), format, ..Options::default() };
    report(&steps(), &options)
}

/// Holds JSON against a schema of `tests/fixtures/ci`, and returns it.
fn valid(schema: &str, text: &str) -> Value {
    let schema = std::fs::read_to_string(format!("{FIXTURES}/{schema}")).expect("a schema");
    let schema = serde_json::from_str(&schema).expect("JSON");
    let json: Value = serde_json::from_str(text).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema").validate(&json).expect(text);
    json
}

/// Holds XML against the schema of JUnit's, by libxml2.
fn hold_junit(text: &str) {
    let mut xmllint = Command::new("xmllint")
        .args(["--noout", "--schema", &format!("{FIXTURES}/junit.xsd"), "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("xmllint is here: Debian's libxml2-utils");
    xmllint.stdin.take().expect("piped").write_all(text.as_bytes()).expect("read");
    let output = xmllint.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn bencher_gets_each_cell_with_its_metrics_and_intervals() {
    let json = valid("bmf.json", &written(Format::Bencher, "qps,mean"));
    assert_eq!(json.as_object().expect("benchmarks").len(), 4);
    let cell = &json["point-select, clients 8, a <b>"];
    let qps = &cell["qps (statements/s)"];
    assert_eq!(qps["value"], 1003.5);
    assert!(qps["lower_value"].as_f64() < Some(1003.5), "{cell}");
    assert!(qps["upper_value"].as_f64() > Some(1003.5), "{cell}");
    assert!(cell["mean (us)"]["value"].is_f64(), "{cell}");
}

#[test]
fn github_action_benchmark_gets_one_direction_a_file() {
    let json = valid("gha.json", &written(Format::Gha, "qps"));
    assert_eq!(json.as_array().expect("a list").len(), 4);
    assert_eq!(json[0]["name"], "point-select, clients 8, a <b>: qps");
    assert_eq!(json[0]["range"], "1000 to 1006");
    valid("gha.json", &written(Format::Gha, "mean,max"));
    let metric = Metric::QPS;
    let also = vec!["mean".parse().expect("a metric")];
    let options = Options { metric, also, format: Format::Gha, ..Options::default() };
    let error = try_report(&steps(), &options).expect_err("two directions");
    assert_eq!(error.kind().exit_code(), 2);
    let error = error.to_string();
    assert!(error.contains("qps") && error.contains("mean"), "{error}");
}

#[test]
fn junit_gets_a_case_for_each_gate() {
    let steps = steps();
    let wanted = ["qps>=600", "errors==0", "p99.9999<1s"].map(|gate| gate.parse().expect(gate));
    let options = Options { format: Format::Junit, ..Options::default() };
    let told = gates(&steps.iter().collect::<Vec<_>>(), &wanted, &options).expect("gates");
    hold_junit(&told.text);
    let counts = r#"tests="12" failures="1" errors="4" skipped="0""#;
    assert!(told.text.contains(counts), "{}", told.text);
    let failed = r#"name="point-select, clients 8, c: qps&gt;=600"><failure type="fails" message="FAILS, QPS is 504/s (median of 6 runs)""#;
    assert!(told.text.contains(failed), "{}", told.text);
    assert!(!told.text.contains("<b>"), "{}", told.text);
}

#[test]
fn junit_has_an_error_when_totals_are_not_comparable() {
    let (base, new, format) = ("a <b>".to_owned(), "c".to_owned(), Format::Junit);
    let metric = "client-seconds".parse().expect("a metric");
    let asked = Question { base, new, metric, format, ..Question::default() };
    let told = compare(&steps().iter().collect::<Vec<_>>(), &asked).expect("a comparison");
    hold_junit(&told.text);
    let counts = r#"failures="0" errors="2" skipped="0""#;
    assert!(told.text.contains(counts), "{}", told.text);
}

#[test]
fn junit_gets_a_case_for_each_cell_of_a_comparison() {
    let (base, new) = ("a <b>".to_owned(), "c".to_owned());
    let format = Format::Junit;
    let asked =
        Question { base, new, metric: Metric::QPS, floor: 0.02, format, ..Question::default() };
    let told = compare(&steps().iter().collect::<Vec<_>>(), &asked).expect("a comparison");
    hold_junit(&told.text);
    assert!(told.text.contains(r#"tests="2" failures="1" errors="0""#), "{}", told.text);
    let name = "point-select, clients 8: qps of c against a &lt;b&gt;";
    // The message has the ratio, as the answer on top of the table.
    let failure =
        format!("{name}\"><failure type=\"worse\" message=\"c is slower than a &lt;b&gt;");
    assert!(told.text.contains(&failure), "{}", told.text);
}
