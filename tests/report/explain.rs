//! The difference of two labels in parts.

use loadgen::report::{Question, explain};
use loadgen::summary::{HostCost, Probed, ProcessCost};
use loadgen::terms::Code;

use super::*;

fn contrast(format: Format) -> Question {
    Question { base: "old".to_owned(), new: "new".to_owned(), format, ..Question::default() }
}

fn explained(steps: &[Summary], contrast: &Question) -> Result<String, Error> {
    explain(&steps.iter().collect::<Vec<_>>(), contrast)
}

/// The row of a part in the JSON of an explanation.
fn part(steps: &[Summary], name: &str) -> Value {
    let text = explained(steps, &contrast(Format::Json)).expect("an explanation");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let rows = json["rows"].as_array().expect("rows").iter();
    rows.clone().find(|row| row["part"] == name).unwrap_or_else(|| panic!("{name}: {json}")).clone()
}

/// The microseconds of a part with both labels, to a tenth; none where it is not known.
fn us(steps: &[Summary], name: &str) -> Option<[f64; 2]> {
    let row = part(steps, name);
    let us = |side: &str| row[side].as_f64().map(|us| (us * 10.0).round() / 10.0);
    Some([us("base_us")?, us("new_us")?])
}

/// A step of 8 clients, ten seconds without a warm-up, whose server and disks took so long an op.
fn costly(order: u32, label: &str, qps: f64, client: f64, server: f64, reads: f64) -> Summary {
    let mut step = step(order, label, 8, qps);
    step.measured_s = 10.0;
    step.plan.warmup_s = 0.0;
    step.client.us_per_op = Some(client);
    let seconds = |us: f64| us * qps * 10.0 / 1e6;
    step.server.probed = Some(Probed {
        via: "local".to_owned(),
        first_s: 0.0,
        last_s: 10.0,
        process: Some(ProcessCost {
            pid: 1,
            user_s: seconds(server),
            sys_s: 0.0,
            voluntary_switches: None,
            involuntary_switches: None,
            read_bytes: Some(1 << 30),
            write_bytes: None,
            rss_bytes: None,
            threads: None,
        }),
        host: Some(HostCost {
            user_s: 0.0,
            sys_s: 0.0,
            irq_s: None,
            iowait_s: 0.0,
            idle_s: 0.0,
            steal_s: 0.0,
            context_switches: None,
            disk_reads: None,
            disk_writes: None,
            disk_read_s: Some(seconds(reads)),
            disk_read_bytes: Some(1 << 30),
            disk_write_bytes: None,
            net_rx_bytes: None,
            net_tx_bytes: None,
        }),
    });
    step
}

#[test]
fn the_parts_add_up_to_the_time_of_an_op_and_their_shares_to_the_change() {
    let steps = [
        costly(0, "old", 10_000.0, 20.0, 300.0, 100.0),
        costly(1, "new", 8000.0, 20.0, 420.0, 100.0),
    ];
    let text = explained(&steps, &contrast(Format::Text)).expect("an explanation");
    let lines: Vec<&str> = text.lines().take(7).collect();
    // 8 clients at 10,000 and 8,000 ops a second: 800 and 1,000 us an op.
    assert_eq!(
        lines,
        [
            "point-select at 8 clients: QPS 10000 with old, 8000 with new: -20.0 %",
            "ms an op          old     new   change  95 % interval  % of QPS",
            "client CPU     0.0200  0.0200   0.0000              -       0.0",
            "server CPU     0.3000  0.4200  +0.1200              -     -12.0",
            "disk reads     0.1000  0.1000   0.0000              -       0.0",
            "rest           0.3800  0.4600  +0.0800              -      -8.0",
            "time of an op  0.8000  1.0000  +0.2000              -     -20.0",
        ],
        "{text}"
    );
    let busy = "cores busy: server 3.00 and 3.36; client 0.20 and 0.16";
    assert!(text.lines().any(|line| line == busy), "{text}");
}

/// Six runs of both labels in turn at some clients; the new server takes 120 us an op more.
fn six(clients: u32) -> Vec<Summary> {
    let mut steps = Vec::new();
    for at in 0..6 {
        for (order, label, qps, server) in [(0, "old", 1e4, 300.0), (1, "new", 8e3, 420.0)] {
            let noise = 1.0 + f64::from(at) / 1e3;
            let run = costly(0, label, qps * noise, 20.0, server * noise, 100.0);
            let mut run = repeat(&run, at + 1, run.totals.qps);
            run.plan.clients = clients;
            run.step_id = format!("{}-{clients}{label}", run.step_id);
            run.started_at = format!("2026-11-20T{clients:02}:{:02}:00Z", 2 * at + order);
            steps.push(run);
        }
    }
    steps
}

#[test]
fn each_change_has_its_interval_and_footnotes_are_told_once() {
    let mut steps = [six(8), six(16)].concat();
    for step in &mut steps {
        step.loadgen.profile = "debug".to_owned();
    }
    let text = explained(&steps, &contrast(Format::Text)).expect("an explanation");
    let server = part(&steps, "server CPU");
    let bound = |name: &str| server[name].as_f64().map(|us| (us * 10.0).round() / 10.0);
    assert_eq!((bound("change_low_us"), bound("change_high_us")), (Some(120.0), Some(120.6)));
    assert!(text.contains(" 0.800 ("), "the ratio: {text}");
    // The headline is the change of the whole that the parts add up to.
    let whole = text.lines().find(|line| line.starts_with("time of an op")).expect("a row");
    let change = whole.split_whitespace().last().expect("a share");
    assert!(text.lines().next().is_some_and(|line| line.ends_with(&format!(": {change} %"))));
    for once in
        ["\n* ", "settings that differ\n", "no setting differs\n", "\nrest: ", "not corrected"]
    {
        let there = text.matches(once).count();
        assert!(there <= 1, "{once}: {text}");
    }
    assert!(text.contains(&format!("\n* {}", Code::DebugBuild.sentence())), "{text}");
    assert_eq!(text.matches("8 tables x 16M rows").count(), 1, "{text}");
    let json = explained(&steps, &contrast(Format::Json)).expect("an explanation");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let row = &json["rows"][1];
    assert_eq!(row["part"], "server CPU");
    assert!(row["change_low_us"].as_f64() < row["change_us"].as_f64(), "{row}");
    assert!(row["ratio_high"].as_f64() < Some(1.0) && row["p_corrected"].as_f64() < Some(0.05));
    assert_eq!((&row["clients"], &row["base_runs"]), (&8.into(), &6.into()), "{row}");
}

#[test]
fn what_chance_may_have_done_is_said() {
    let one = [
        costly(0, "old", 10_000.0, 20.0, 300.0, 100.0),
        costly(1, "new", 8000.0, 20.0, 420.0, 100.0),
    ];
    let three: Vec<Summary> = six(8).into_iter().filter(|s| s.plan.repeat_index <= 3).collect();
    for (runs, steps) in [(1, &one[..]), (3, &three)] {
        let row = part(steps, "server CPU");
        assert_eq!((&row["base_runs"], &row["new_runs"]), (&runs.into(), &runs.into()), "{row}");
        assert!(row["change_low_us"].is_null(), "{row}");
    }
}

#[test]
fn what_does_nothing_is_not_explained() {
    let still = |qps: f64| {
        let mut steps = [step(0, "old", 16, 1e4), step(1, "new", 16, qps)];
        for step in &mut steps {
            step.started_at.replace_range(11..13, "09");
        }
        steps
    };
    let error = explained(&still(0.0), &contrast(Format::Text)).expect_err("nothing to explain");
    assert!(error.kind().exit_code() == 4 && error.to_string().contains(" 16 "), "{error}");
    let both = [six(8), still(0.0).to_vec()].concat();
    let text = explained(&both, &contrast(Format::Text)).expect("an explanation");
    assert!(text.contains(" at 16 ") && !text.contains("inf"), "{text}");
}

#[test]
fn what_is_not_known_is_said_and_in_the_rest() {
    let mut steps = [
        costly(0, "old", 10_000.0, 20.0, 300.0, 100.0),
        costly(1, "new", 8000.0, 20.0, 420.0, 100.0),
    ];
    steps[0].server.probed = None;
    assert_eq!(["server CPU", "disk reads"].map(|name| us(&steps, name)), [None, None]);
    assert_eq!(us(&steps, "rest"), Some([780.0, 980.0]));
    let text = explained(&steps, &contrast(Format::Text)).expect("an explanation");
    let unknown = "not known and in the rest: server CPU, disk reads";
    assert!(text.lines().any(|line| line == unknown), "{text}");
    let csv = explained(&steps, &contrast(Format::Csv)).expect("an explanation");
    assert!(csv.contains(",server CPU,,,,,"), "{csv}");
}

#[test]
fn reads_of_others_are_none_of_the_server_s() {
    let mut steps = [
        costly(0, "old", 10_000.0, 20.0, 300.0, 100.0),
        costly(1, "new", 8000.0, 20.0, 420.0, 811.5),
    ];
    // Another program reads from the same disks; InnoDB reads nothing.
    let probed = steps[1].server.probed.as_mut().expect("there");
    probed.process.as_mut().expect("there").read_bytes = Some(0);
    assert_eq!(us(&steps, "disk reads"), Some([100.0, 0.0]));
    assert_eq!(us(&steps, "rest"), Some([380.0, 560.0]));
    let text = explained(&steps, &contrast(Format::Text)).expect("an explanation");
    assert!(text.contains("0.8115"), "reads of others: {text}");
    // A process that may not be looked at: InnoDB's own account. A quarter is its.
    for step in &mut steps {
        step.server.probed.as_mut().expect("there").process.as_mut().expect("there").read_bytes =
            None;
        let status = step.server.status.as_mut().expect("status");
        (status.first_s, status.restarted_s) = (0.0, None);
        status.deltas.insert("Innodb_data_read".to_owned().into(), 1 << 28);
    }
    assert_eq!(us(&steps, "disk reads"), Some([25.0, 202.9]));
    // And without that nobody knows.
    steps[0].server.status = None;
    assert_eq!(us(&steps, "disk reads"), None);
}

#[test]
fn settings_that_differ_are_named_and_other_data_refused() {
    let mut steps =
        [costly(0, "old", 10_000.0, 20.0, 300.0, 0.0), costly(1, "new", 8000.0, 20.0, 420.0, 0.0)];
    for (step, value) in steps.iter_mut().zip(["1", "2"]) {
        step.server.variables.insert("innodb_flush_log_at_trx_commit".into(), value.into());
    }
    steps[1].server.variables.insert("only_here".into(), "x".into());
    let text = explained(&steps, &contrast(Format::Text)).expect("an explanation");
    let told = "settings that differ: innodb_flush_log_at_trx_commit 1 and 2; 1 that only one of \
                them has";
    assert!(text.contains(told), "{text}");
    steps[1].plan.rows += 1;
    let refused = explained(&steps, &contrast(Format::Text)).expect_err("other rows");
    assert_eq!(refused.kind().exit_code(), 4);
    let forced = Question { force: true, ..contrast(Format::Text) };
    explained(&steps, &forced).expect("forced");
    let unknown = Question { base: "odl".to_owned(), ..forced };
    assert_eq!(explained(&steps, &unknown).expect_err("no label").kind().exit_code(), 2);
}

#[test]
fn an_open_loop_is_not_explained() {
    let mut steps =
        [costly(0, "old", 1e4, 20.0, 300.0, 0.0), costly(1, "new", 8e3, 20.0, 420.0, 0.0)];
    for step in &mut steps {
        step.plan.rate = Some(1e4);
    }
    let refused = explained(&steps, &contrast(Format::Text)).expect_err("an open loop");
    assert!(refused.to_string().contains("open loop"), "{refused}");
}

#[test]
fn what_did_not_change_is_zero_without_a_sign() {
    let steps =
        [costly(0, "old", 1000.0, 10.0, 20.0, 5.0), costly(1, "new", 900.0, 10.0, 20.0, 5.0)];
    let csv = explained(&steps, &contrast(Format::Csv)).expect("CSV");
    assert!(csv.contains(",client CPU,10,10,0,0,"), "{csv}");
    assert!(!csv.contains(",-0,"), "{csv}");
    let json = explained(&steps, &contrast(Format::Json)).expect("JSON");
    assert!(!json.contains(": -0.0,"), "{json}");
}
