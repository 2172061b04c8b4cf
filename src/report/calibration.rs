//! What a host can generate, as a table.

use super::page::{Body, Field, Grid, Page, Record, render};
use super::{Format, escape, number};
use crate::error::Result;
use crate::summary::{Calibration, CalibrationStep};

const HEAD: [&str; 8] =
    ["clients", "threads", "QPS", "CPU us/op", "busy", "turn p99 us", "ceiling QPS", "others"];

/// The table of a calibration.
///
/// # Errors
///
/// None in practice: memory for CSV.
pub fn calibration(calibration: &Calibration, format: Format) -> Result<String> {
    let host = &calibration.host;
    let cores = host.cores;
    let page = Page {
        title: vec![format!(
            "what {} can generate: {cores} × {}, Linux {}",
            escape::line(&host.name),
            escape::line(&host.cpu),
            escape::line(&host.kernel)
        )],
        body: Body::Grid(Grid {
            head: HEAD.map(str::to_owned).to_vec(),
            rows: calibration.steps.iter().map(row).collect(),
            ..Grid::default()
        }),
        below: vec![
            format!(
                "QPS: prepared point selects over loopback TCP from a server of canned answers, one \
                 thread in another process on the same {cores} cores: what was left of them"
            ),
            "ceiling: the threads, or the cores where these are fewer, by the client's CPU an op: \
             what these could do with the server elsewhere; verdicts use it"
                .to_owned(),
            "busy: the busiest engine thread; turn: how late a thread came to a ready socket; others: \
             what other programs used of the host"
                .to_owned(),
        ],
        records: calibration.steps.iter().map(record).collect(),
    };
    render(&[page], "calibration", format)
}

fn row(step: &CalibrationStep) -> Vec<String> {
    vec![
        step.clients.to_string(),
        step.engine_threads.to_string(),
        number::number(step.qps, 0),
        number::number(step.us_per_op, 1),
        percent(step.busy),
        step.turn_delay_p99_us.map_or_else(|| "-".to_owned(), |us| number::number(us, 0)),
        number::number(step.ceiling_qps, 0),
        step.other_load.map_or_else(|| "-".to_owned(), percent),
    ]
}

fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

fn record(step: &CalibrationStep) -> Record {
    let number = |value: f64| Field::Number(Some(value));
    vec![
        ("clients", number(f64::from(step.clients))),
        ("engine_threads", number(f64::from(step.engine_threads))),
        ("measured_s", number(step.measured_s)),
        ("qps", number(step.qps)),
        ("us_per_op", number(step.us_per_op)),
        ("busy", number(step.busy)),
        ("turn_delay_p99_us", Field::Number(step.turn_delay_p99_us)),
        ("ceiling_qps", number(step.ceiling_qps)),
        ("other_load", Field::Number(step.other_load)),
    ]
}
