#![allow(dead_code, reason = "not every test that includes this file needs all of it")]
//! Summaries for tests and benches: one sound step from a file, changed as a test needs it.

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use loadgen::summary::{Summary, Warning};

/// A completed step with a histogram: 8 clients, 10,000 queries a second, 2026-11-20.
pub(crate) fn sound() -> Summary {
    let mut summary: Summary =
        serde_json::from_str(include_str!("../fixtures/summary.json")).expect("the fixture");
    summary.latency.service.histogram = histogram(&[100_000, 790_000, 1_200_000, 9_600_000]);
    summary
}

/// The step of a label and a number of clients; an invocation of its own a label, at an
/// instant that grows with `order`.
pub(crate) fn step(order: u32, label: &str, clients: u32, qps: f64) -> Summary {
    let mut summary = sound();
    label.clone_into(&mut summary.label);
    summary.run_id = format!("{order:016x}");
    summary.step_id = format!("{order:016x}-{clients}");
    summary.started_at =
        format!("2026-11-20T{:02}:{:02}:{:02}Z", order / 60, order % 60, clients % 60);
    summary.plan.clients = clients;
    summary.totals.qps = qps;
    summary.totals.tps = qps;
    summary
}

/// The nine lines of the first published table: one step a cell, labels in their order.
pub(crate) fn seed_table(lines: &[(Vec<f64>, String)], clients: &[u32]) -> Vec<Summary> {
    let mut steps = Vec::new();
    for (order, (values, label)) in lines.iter().enumerate() {
        for (value, clients) in values.iter().zip(clients) {
            steps.push(step(order as u32, label, *clients, *value));
        }
    }
    steps
}

/// `HdrHistogram` V2, deflated, base64, of some nanoseconds.
pub(crate) fn histogram(values_ns: &[u64]) -> String {
    let mut histogram =
        Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).expect("a sound range");
    for value in values_ns {
        histogram.record(*value).expect("within the range");
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut bytes).expect("memory");
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A warning of a file that has no values.
pub(crate) fn worded(code: &str, message: &str) -> Warning {
    Warning { code: code.to_owned(), message: message.to_owned(), values: None }
}
