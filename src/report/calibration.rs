//! The table of `loadgen calibrate`: the rates that a host can generate.

use super::columns::Rows;
use super::escape;
use super::note::MARK;
use super::options::Notes;
use super::page::Page;
use super::value::Share;
use super::writers::write;
use crate::judge::{Calibration, CalibrationStep};
use crate::summary::VerdictKind;
use crate::terms::units::rate_decimals;
use crate::terms::{Code, Finding, Format, Value, merge};

const BELOW: [&str; 2] = [
    "ceiling: the smaller of threads and cores, divided by the client's CPU an op: the most QPS of \
     this client with the server on another host; verdicts use it",
    "busy: the busiest engine thread; turn: how late a thread came to a ready socket, at the \
     highest percentile with ten probes beyond it; others, stolen: what other programs and \
     the hypervisor used of the host",
];

pub(crate) fn calibration(calibration: &Calibration, format: Format) -> String {
    let (host, steps, noisy) = (&calibration.host, &calibration.steps, VerdictKind::Noisy.name());
    let why: Vec<Finding> = steps.iter().filter_map(CalibrationStep::disturbed).collect();
    let noted = || {
        let noisy = Finding::Known(Code::Noisy, vec![Value::Reasons(merge(&why))]);
        format!("{MARK} {noisy}; no ceiling for later runs")
    };
    let measured = format!(
        "QPS: prepared point selects over loopback TCP from a server of canned answers; it is one \
         thread of another process and shares the {} cores with the client",
        host.cores
    );
    let below = (!why.is_empty()).then(noted).into_iter().chain([measured]);
    let below = below.chain(BELOW.map(str::to_owned)).collect();
    let title = format!(
        "what {} can generate: {} × {}, Linux {}",
        escape::line(&host.name),
        host.cores,
        escape::line(&host.cpu),
        escape::line(&host.kernel)
    );
    let qps = rate_decimals(steps.iter().map(|step| step.qps));
    let ceiling = rate_decimals(steps.iter().map(|step| step.ceiling_qps));
    let sheet = Rows::new(steps)
        .both("clients", "clients", |step| step.clients)
        .both("threads", "engine_threads", |step| step.engine_threads)
        .filed("measured_s", |step| step.measured_s)
        .both("QPS", "qps", |step| (step.qps, qps))
        .both("CPU us/op", "us_per_op", |step| (step.us_per_op, 1))
        .both("busy", "busy", |step| Share(step.busy))
        .both("turn us", "turn_delay_us", |step| step.turn_delay_tail_us.map(|us| (us, 0)))
        .shown("at", |step| step.tail_percentile.map(|percentile| format!("p{percentile}")))
        .filed("turn_delay_percentile", |step| step.tail_percentile.map(f64::from))
        .both("ceiling QPS", "ceiling_qps", |step| (step.ceiling_qps, ceiling))
        .both("others", "other_load", |step| step.other_load.map(Share))
        .both("stolen", "steal", |step| step.steal.map(Share))
        .both("verdict", "noisy", |step| match step.disturbed() {
            Some(why) => (why.to_string(), format!("{noisy} {MARK}")),
            None => (String::new(), VerdictKind::Ok.name().to_owned()),
        })
        .sheet();
    write(&[Page::new(title, sheet, below)], "calibration", format, None, (&Notes::Later, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{CALIBRATION, CalibratedHost};
    use crate::summary::Program;

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
        calibration(&kept, format)
    }

    #[test]
    fn what_others_disturbed_is_marked_and_says_why() {
        let text = shown(vec![step(1, 0.76), step(8, 0.02), step(64, 0.4)], Format::Text);
        let lines: Vec<&str> = text.lines().collect();
        let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(cells(lines[2]), "1 1 47180 5.4 91% 1836 p94 185614 76% - noisy *");
        assert!(lines[3].ends_with("ok") && lines[4].ends_with("noisy *"), "{text}");
        let range = vec![Value::Range(0.4, 0.76), Value::One("this host".into())];
        let range = Finding::Known(Code::OtherLoad, range);
        let noisy = Finding::Known(Code::Noisy, vec![Value::Reasons(vec![range])]);
        assert!(lines.iter().any(|line| line.starts_with(&format!("* {noisy}; "))), "{text}");
        assert!(!shown(vec![step(8, 0.02)], Format::Text).contains('*'));
        let csv = shown(vec![step(1, 0.76), step(8, 0.02)], Format::Csv);
        assert!(csv.contains("76 %"), "{csv}");
    }
}
