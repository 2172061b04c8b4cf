//! What a host can generate, as a table.

use super::alike::as_one;
use super::notes::mark;
use super::page::{Body, Field, Grid, Page, Record, render};
use super::{Format, escape, number, text};
use crate::error::Result;
use crate::summary::{Calibration, CalibrationStep, VerdictKind};

const HEAD: [&str; 11] = [
    "clients",
    "threads",
    "QPS",
    "CPU us/op",
    "busy",
    "turn us",
    "at",
    "ceiling QPS",
    "others",
    "stolen",
    "verdict",
];

/// The table of a calibration.
///
/// # Errors
///
/// None in practice: memory for CSV.
pub(crate) fn calibration(calibration: &Calibration, format: Format) -> Result<String> {
    let host = &calibration.host;
    let cores = host.cores;
    let mut below = vec![
        format!(
            "QPS: prepared point selects over loopback TCP from a server of canned answers, one \
             thread in another process on the same {cores} cores: what was left of them"
        ),
        "ceiling: the threads, or the cores where these are fewer, by the client's CPU an op: what \
         these could do with the server elsewhere; verdicts use it"
            .to_owned(),
        "busy: the busiest engine thread; turn: how late a thread came to a ready socket, at the \
         highest percentile with ten probes beyond it; others, stolen: what other programs and \
         the hypervisor used of the host"
            .to_owned(),
    ];
    below.splice(0..0, noisy(calibration));
    let page = Page {
        title: vec![format!(
            "what {} can generate: {cores} × {}, Linux {}",
            escape::line(&host.name),
            escape::line(&host.cpu),
            escape::line(&host.kernel)
        )],
        body: Body::Grid(Grid {
            head: HEAD.map(str::to_owned).to_vec(),
            texts: vec![HEAD.len() - 1],
            rows: calibration.steps.iter().map(row).collect(),
            ..Grid::default()
        }),
        below,
        records: calibration.steps.iter().map(record).collect(),
    };
    render(&[page], "calibration", format)
}

/// The footnote of the steps that are no ceiling.
fn noisy(calibration: &Calibration) -> Option<String> {
    let why: Vec<String> =
        calibration.steps.iter().filter_map(CalibrationStep::disturbed).collect();
    let why: Vec<&str> = why.iter().map(String::as_str).collect();
    (!why.is_empty()).then(|| {
        let name = VerdictKind::Noisy.name();
        format!("{} {name}: {}; no ceiling for later runs", mark(0), as_one(&why))
    })
}

fn verdict(step: &CalibrationStep) -> String {
    match step.disturbed() {
        Some(_) => format!("{} {}", VerdictKind::Noisy.name(), mark(0)),
        None => VerdictKind::Ok.name().to_owned(),
    }
}

fn row(step: &CalibrationStep) -> Vec<String> {
    let nothing = || text::NOTHING.to_owned();
    vec![
        step.clients.to_string(),
        step.engine_threads.to_string(),
        number::number(step.qps, 0),
        number::number(step.us_per_op, 1),
        percent(step.busy),
        step.turn_delay_tail_us.map_or_else(nothing, |us| number::number(us, 0)),
        step.tail_percentile.map_or_else(nothing, |percentile| format!("p{percentile}")),
        number::number(step.ceiling_qps, 0),
        step.other_load.map_or_else(nothing, percent),
        step.steal.map_or_else(nothing, percent),
        verdict(step),
    ]
}

fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

fn record(step: &CalibrationStep) -> Record {
    let number = |value: f64| Field::Number(Some(value));
    vec![
        ("clients", Field::Count(u64::from(step.clients))),
        ("engine_threads", Field::Count(u64::from(step.engine_threads))),
        ("measured_s", number(step.measured_s)),
        ("qps", number(step.qps)),
        ("us_per_op", number(step.us_per_op)),
        ("busy", number(step.busy)),
        ("turn_delay_us", Field::Number(step.turn_delay_tail_us)),
        ("turn_delay_percentile", Field::Number(step.tail_percentile.map(f64::from))),
        ("ceiling_qps", number(step.ceiling_qps)),
        ("other_load", Field::Number(step.other_load)),
        ("steal", Field::Number(step.steal)),
        ("noisy", Field::Text(step.disturbed().unwrap_or_default())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{CALIBRATION, CalibratedHost, Program};

    fn step(clients: u32, other_load: f64) -> CalibrationStep {
        CalibrationStep {
            clients,
            engine_threads: 1,
            measured_s: 2.0,
            qps: 47_180.4,
            us_per_op: 5.4,
            busy: 0.91,
            tail_percentile: Some(94),
            turn_delay_tail_us: Some(1_836.1),
            other_load: Some(other_load),
            steal: None,
            ceiling_qps: 185_614.0,
        }
    }

    fn shown(steps: Vec<CalibrationStep>, format: Format) -> String {
        let version = "0.1.0".to_owned();
        let host = CalibratedHost {
            id: None,
            name: "c1".to_owned(),
            kernel: "6.18".to_owned(),
            cpu: "Xeon".to_owned(),
            cores: 2,
        };
        let kept = Calibration {
            schema: CALIBRATION.to_owned(),
            loadgen: Program { version, revision: None, profile: "release".to_owned() },
            host,
            started_at: String::new(),
            ended_at: String::new(),
            steps,
        };
        calibration(&kept, format).expect("a table")
    }

    #[test]
    fn what_others_disturbed_is_marked_and_says_why() {
        let text = shown(vec![step(1, 0.76), step(8, 0.02), step(64, 0.4)], Format::Text);
        let lines: Vec<&str> = text.lines().collect();
        let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(cells(lines[2]), "1 1 47180 5.4 91% 1836 p94 185614 76% - noisy †");
        assert!(lines[3].ends_with("ok") && lines[4].ends_with("noisy †"), "{text}");
        let note = "† noisy: other programs used 40..76 % of this host's cores; no ceiling for later \
                    runs";
        assert!(lines.contains(&note), "{text}");
        assert!(!shown(vec![step(8, 0.02)], Format::Text).contains('†'));
        let csv = shown(vec![step(1, 0.76), step(8, 0.02)], Format::Csv);
        assert!(csv.contains("other programs used 76 %"), "{csv}");
    }
}
