//! Tables from summaries: layout, pooling, footnotes, formats, the ways it refuses.

mod brief;
mod ci;
mod compare;
mod explain;
mod footnotes;
mod formats;
mod gates;
mod hosts;
mod invariants;
mod layout;
mod layouts;
mod metrics;
mod outages;
mod page;
mod page_numbers;
mod pooling;
mod same;
mod spread;
mod transactions;
mod workloads;

use crate::common::summaries::step;
use loadgen::error::Error;
use loadgen::report::{Format, Metric, Notes, Options, render};
use loadgen::summary::Summary;
use serde_json::Value;

fn try_report(steps: &[Summary], options: &Options) -> Result<String, Error> {
    render(&steps.iter().collect::<Vec<_>>(), options)
}

fn report(steps: &[Summary], options: &Options) -> String {
    try_report(steps, options).expect("a report")
}

fn plain(steps: &[Summary]) -> String {
    report(steps, &in_full())
}

/// Options of a report with all notes.
fn in_full() -> Options {
    Options { notes: Notes::All, ..Options::default() }
}

fn metric(name: &str) -> Options {
    Options { metric: name.parse().expect(name), ..in_full() }
}

fn related(label: &str, metric: &str) -> Options {
    Options { baseline: Some(label.to_owned()), ..self::metric(metric) }
}

/// The notes of the first table: code, text, and the lines that they are about.
fn notes(steps: &[Summary], options: &Options) -> Vec<(String, String, Vec<u64>)> {
    let report = json(steps, options);
    let notes = report["tables"][0]["notes"].as_array().expect("notes").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let told = notes.map(|note| {
        let places = note["places"].as_array().expect("places").iter();
        let lines = places.map(|place| place["line"].as_u64().expect("a line")).collect();
        (text(&note["code"]), text(&note["text"]), lines)
    });
    told.collect()
}

/// The lines of the note with a code.
fn lines_of(steps: &[Summary], code: &str) -> Vec<u64> {
    let notes = notes(steps, &Options::default()).into_iter().filter(|note| note.0 == code);
    notes.flat_map(|(.., lines)| lines).collect()
}

fn json(steps: &[Summary], options: &Options) -> Value {
    let options = Options { format: Format::Json, ..options.clone() };
    serde_json::from_str(&report(steps, &options)).expect("JSON")
}

/// The lines of the first table: what stands before the first empty line.
fn grid(text: &str) -> Vec<&str> {
    text.lines().take_while(|line| !line.is_empty()).collect()
}

/// A second invocation of a step.
fn again(of: &Summary, order: u32) -> Summary {
    let mut again = step(order, &of.label, of.plan.clients, of.totals.qps);
    again.workload = of.workload.clone();
    again
}

/// A second repeat of a step.
fn repeat(step: &Summary, index: u32, qps: f64) -> Summary {
    let mut repeat = step.clone();
    repeat.plan.repeat_index = index;
    repeat.step_id = format!("{}-n{index}", step.step_id);
    repeat.totals.qps = qps;
    repeat
}
