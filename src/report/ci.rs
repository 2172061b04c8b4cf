//! Formats that services of continuous integration read, made of the records that CSV has: JUnit's XML
//! (as Jenkins and GitLab read it), the Bencher Metric Format, and what github-action-benchmark takes.

use std::collections::BTreeMap;

use maud::{PreEscaped, html};
use serde_json::{Map, Value as Json, json};

use super::escape::markup;
use super::json::pretty;
use super::page::{Page, records};
use crate::terms::Format;

type Record = Map<String, Json>;

/// JUnit's outcome of a case by its verdict; empty where it passes.
const OUTCOMES: [(&str, &str); 15] = [
    ("holds", ""),
    ("better", ""),
    ("slightly better", ""),
    ("slightly worse", ""),
    ("same", ""),
    ("fails", "failure"),
    ("worse", "failure"),
    ("undecided", "error"),
    ("no ratio", "error"),
    ("incomplete", "error"),
    ("not measured", "error"),
    ("not comparable", "error"),
    ("too few repeats", "skipped"),
    ("inconclusive", "skipped"),
    ("no difference shown", "skipped"),
];

pub(super) fn write(pages: &[Page], format: Format) -> String {
    let mut records = records(pages);
    // Gates and comparisons have a verdict, cells a median: other pages have nothing to tell here.
    let field = if format == Format::Junit { "verdict" } else { "median" };
    records.retain(|record| record.contains_key(field));
    match format {
        Format::Junit => junit(&records),
        Format::Bencher => bencher(&records),
        _ => benchmarks(&records),
    }
}

fn text(record: &Record, field: &str) -> String {
    match record.get(field) {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Number(value)) if value.is_f64() => {
            let value = value.as_f64().expect("it is");
            // Three decimals, of small ones three digits.
            let zeros = if value == 0.0 { 0.0 } else { -value.abs().log10().floor() };
            let scale = 10_f64.powf((zeros + 2.0).clamp(3.0, 300.0));
            ((value * scale).round() / scale).to_string()
        }
        None | Some(Json::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

fn name(record: &Record, labels: bool) -> String {
    let mut parts = vec![text(record, "workload"), format!("clients {}", text(record, "clients"))];
    if record["rate"] != Json::Null {
        parts.push(format!("rate {}/s", text(record, "rate")));
    }
    if labels {
        parts.push(text(record, "label"));
    }
    parts.join(", ")
}

fn several_labels(records: &[Record]) -> bool {
    records.iter().any(|record| record["label"] != records[0]["label"])
}

/// One case a gate or comparison. Source: the schema of Jenkins' xUnit plugin, junit-10.xsd.
fn junit(records: &[Record]) -> String {
    let outcome = |record: &Record| {
        let verdict = text(record, "verdict");
        OUTCOMES.iter().find(|(of, _)| *of == verdict).expect("it is among them").1
    };
    let count = |what: &str| records.iter().filter(|record| outcome(record) == what).count();
    let case = |record: &Record| {
        if record.contains_key("gate") {
            return format!("{}: {}", name(record, true), text(record, "gate"));
        }
        let [metric, new, base] = ["metric", "new", "base"].map(|field| text(record, field));
        format!("{}: {metric} of {new} against {base}", name(record, false))
    };
    let sentence = |record: &Record| markup(&text(record, "sentence"));
    let suite = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites { (PreEscaped("\n"))
            testsuite name="loadgen" tests=(records.len()) failures=(count("failure"))
                errors=(count("error")) skipped=(count("skipped")) { (PreEscaped("\n"))
                @for record in records {
                    testcase classname=(markup(&text(record, "workload"))) name=(markup(&case(record))) {
                        @match outcome(record) {
                            "failure" => failure type=(text(record, "verdict")) message=(sentence(record)) {},
                            "error" => error type=(text(record, "verdict")) message=(sentence(record)) {},
                            "skipped" => skipped message=(sentence(record)) {},
                            _ => {},
                        }
                        system-out { (sentence(record)) }
                    }
                    (PreEscaped("\n"))
                }
            }
            (PreEscaped("\n"))
        }
    };
    suite.into_string() + "\n"
}

/// Benchmarks by name, each with its metrics and their 95 % intervals. Source: bencher.dev, BMF.
fn bencher(records: &[Record]) -> String {
    let labels = several_labels(records);
    let mut benchmarks: BTreeMap<String, Map<String, Json>> = BTreeMap::new();
    for record in records.iter().filter(|record| record["median"] != Json::Null) {
        let mut values = json!({"value": record["median"]});
        for (theirs, ours) in [("lower_value", "interval_low"), ("upper_value", "interval_high")] {
            if record[ours] != Json::Null {
                values[theirs] = record[ours].clone();
            }
        }
        let metric = format!("{} ({})", text(record, "metric"), text(record, "unit"));
        benchmarks.entry(name(record, labels)).or_default().insert(metric, values);
    }
    pretty(&benchmarks)
}

/// A list of named values. Source: github-action-benchmark, `customBiggerIsBetter`.
fn benchmarks(records: &[Record]) -> String {
    let labels = several_labels(records);
    let one = |record: &Record| {
        let mut one = json!({
            "name": format!("{}: {}", name(record, labels), text(record, "metric")),
            "unit": record["unit"],
            "value": record["median"],
            "extra": format!("runs: {}", text(record, "runs")),
        });
        if record["interval_low"] != Json::Null {
            let [low, high] = ["interval_low", "interval_high"].map(|field| text(record, field));
            one["range"] = format!("{low} to {high}").into();
        }
        one
    };
    let measured = records.iter().filter(|record| record["median"] != Json::Null);
    pretty(&measured.map(one).collect::<Vec<Json>>())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::{OUTCOMES, text};
    use crate::terms::{Choice, Compared};

    #[test]
    fn small_numbers_of_a_text_keep_three_digits() {
        for (value, shown) in [
            (1234.5678, "1234.568"),
            (200.0, "200"),
            (0.0, "0"),
            (0.1, "0.1"),
            (0.000_019_945_489, "0.0000199"),
        ] {
            let record = Map::from_iter([("low".to_owned(), json!(value))]);
            assert_eq!(text(&record, "low"), shown);
        }
    }

    #[test]
    fn every_verdict_has_an_outcome() {
        let of_gates = ["holds", "fails", "undecided"].into_iter();
        for verdict in Compared::ALL.iter().map(|verdict| verdict.name()).chain(of_gates) {
            assert!(OUTCOMES.iter().any(|(of, _)| *of == verdict), "{verdict}");
        }
    }
}
