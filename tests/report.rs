//! Tables from summaries: layout, pooling, footnotes, formats, the ways it refuses.

#[path = "common/summaries.rs"]
mod summaries;

use std::collections::BTreeMap;

use loadgen::error::{Error, Kind};
use loadgen::report::{Format, Metric, Options, render};
use loadgen::summary::{Distribution, Mode, Outcome, Store, Summary, Warning, load};
use proptest::prelude::*;
use serde_json::Value;
use summaries::{seed_table, sound, step};

/// The ten mended lines of the first published table.
const GOLDEN: &str = include_str!("fixtures/first-seed-table.txt");
/// The same lines as they were published: no-break spaces, two pairs of lines fused.
const PUBLISHED: &str = include_str!("fixtures/first-seed-table.raw.txt");
const LABELS: [&str; 9] = [
    "orig5610+bp8+fastcs",
    "orig5610+bp8",
    "orig5610+bp1+fastcs",
    "orig5610+bp1",
    "orig5610+ps",
    "fb5163+ffl+fastcs",
    "fb5163+ffl",
    "fb5163",
    "orig5163",
];

fn try_report(steps: &[Summary], options: &Options) -> Result<String, Error> {
    render(&steps.iter().collect::<Vec<_>>(), options)
}

fn report(steps: &[Summary], options: &Options) -> String {
    try_report(steps, options).expect("a report")
}

fn plain(steps: &[Summary]) -> String {
    report(steps, &Options::default())
}

fn metric(name: &str) -> Options {
    Options { metric: name.parse().expect(name), ..Options::default() }
}

fn related(label: &str, metric: &str) -> Options {
    Options { baseline: Some(label.to_owned()), ..self::metric(metric) }
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
fn again(step: &Summary, order: u32) -> Summary {
    let mut again = self::step(order, &step.label, step.plan.clients, step.totals.qps);
    again.workload = step.workload.clone();
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

/// Numbers and label of the published lines.
fn unfused() -> (Vec<u32>, Vec<(Vec<f64>, String)>) {
    let text = PUBLISHED.replace('\u{a0}', " ");
    let (header, body) = text.split_once('\n').expect("lines");
    let clients = header.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let mut lines = Vec::new();
    for line in body.lines() {
        let mut rest = line;
        while !rest.is_empty() {
            let mut values = Vec::new();
            for _ in 0..6 {
                let (number, after) = rest.trim_start().split_once(' ').expect("a number");
                values.push(number.parse().expect("a number"));
                rest = after.trim_start();
            }
            // Where two lines are fused, the shortest rest that is a line of its own decides.
            let label = LABELS
                .iter()
                .filter(|label| rest.starts_with(**label))
                .find(|label| {
                    let rest = &rest[label.len()..];
                    rest.is_empty()
                        || rest
                            .split_whitespace()
                            .next()
                            .is_some_and(|n| n.len() == 5 && n.parse::<u32>().is_ok())
                })
                .expect("a label");
            lines.push((values, (*label).to_owned()));
            rest = &rest[label.len()..];
        }
    }
    (clients, lines)
}

#[test]
fn the_published_table_comes_out_byte_for_byte() {
    let (clients, lines) = unfused();
    assert_eq!(clients, [8, 16, 32, 64, 128, 256]);
    assert_eq!(lines.len(), 9);
    let mut steps = seed_table(&lines, &clients);
    // The order of files says nothing.
    steps.reverse();
    let text = plain(&steps);
    let (table, below) = text.split_once("\n\n").expect("a caption below");
    assert_eq!(format!("{table}\n"), GOLDEN);
    assert_eq!(
        below,
        "point-select: QPS, statements a second\n\
         tables 8, rows 16000000, data seed 1, distribution uniform, spread pinned, \
         statements prepared, transport tcp, warm-up 10 s, window 60 s\n"
    );
}

#[test]
fn the_table_comes_out_of_a_directory_too() {
    let (clients, lines) = unfused();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(&dir.path().join("results")).expect("a new directory");
    for step in seed_table(&lines, &clients) {
        store.write(&step).expect("written");
    }
    let loaded = load(&[store.dir().to_owned()], false).expect("sound");
    let text = render(&loaded.steps(), &Options::default()).expect("a report");
    assert!(text.starts_with(GOLDEN), "{text}");
}

#[test]
fn columns_are_as_wide_as_their_widest_cell_needs() {
    let steps = [
        step(0, "a", 1, 5.4),
        step(0, "a", 2, 1_234_567.0),
        step(1, "b", 1, 12.0),
        step(1, "b", 100_000_000, 7.0),
    ];
    let text = plain(&steps);
    assert_eq!(
        grid(&text),
        [
            " 1            2  100000000  concurrent clients",
            " 5      1234567          -  a",
            "12            -          7  b",
        ]
    );
}

#[test]
fn labels_stand_by_the_time_of_their_first_step() {
    let mut late = step(0, "a", 8, 1.0);
    late.started_at = "2026-11-20T12:00:00.5+01:00".to_owned();
    let mut early = step(0, "b", 8, 1.0);
    early.started_at = "2026-11-20T11:00:00.25Z".to_owned();
    let mut never = step(0, "0", 8, 1.0);
    never.started_at = "yesterday".to_owned();
    let text = plain(&[never, late, early]);
    let labels: Vec<&str> =
        grid(&text)[1..].iter().map(|line| line.rsplit(' ').next().expect("a label")).collect();
    assert_eq!(labels, ["b", "a", "0"]);
}

#[test]
fn each_workload_has_a_table_of_its_own() {
    let mut update = step(0, "a", 8, 5000.0);
    update.workload.name = "update-index".to_owned();
    let text = plain(&[step(1, "a", 8, 9000.0), update]);
    let tables: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(
        tables[0].lines().collect::<Vec<_>>(),
        ["update-index: QPS, statements a second", "   8    concurrent clients", "5000    a"]
    );
    assert!(text.contains("\n\npoint-select: QPS, statements a second\n   8  "), "{text}");
}

#[test]
fn a_cell_is_the_median_of_its_repeats() {
    let first = step(0, "a", 8, 100.0);
    let steps = [
        first.clone(),
        repeat(&first, 2, 900.0),
        repeat(&first, 3, 200.0),
        step(0, "a", 16, 400.0),
    ];
    let text = plain(&steps);
    assert_eq!(grid(&text)[1], "200     400     a");
    assert!(text.contains("; medians of 1 to 3 steps\n"), "{text}");
    let json = json(&steps, &Options::default());
    let cell = &json["tables"][0]["lines"][0]["cells"][0];
    assert_eq!(
        (&cell["value"], &cell["min"], &cell["max"]),
        (&200.0.into(), &100.0.into(), &900.0.into())
    );
    assert_eq!(cell["steps"], 3);
}

/// What a change is called when it is refused, and the change.
type Change = (&'static str, fn(&mut Summary));

#[test]
fn invocations_pool_only_when_their_settings_agree() {
    let first = step(0, "a", 8, 100.0);
    let mut second = again(&first, 9);
    second.totals.qps = 300.0;
    // What differs between two starts of one configuration does not count; nor does the seed.
    for name in ["datadir", "port", "server_uuid", "hostname", "pid_file"] {
        second.server.variables.insert(name.to_owned(), "elsewhere".to_owned());
    }
    second.plan.seed = 43;
    second.plan.repeats = 2;
    second.server.port = Some(3307);
    assert_eq!(grid(&plain(&[first.clone(), second.clone()]))[1], "200     a");

    let changes: [Change; 8] = [
        ("innodb_io_capacity: 2000 / 400", |s| {
            s.server.variables.insert("innodb_io_capacity".to_owned(), "400".to_owned());
        }),
        ("performance_schema: OFF / (absent)", |s| {
            s.server.variables.remove("performance_schema");
        }),
        ("new_one: (absent) / 1", |s| {
            s.server.variables.insert("new_one".to_owned(), "1".to_owned());
        }),
        ("rows: 16000000 / 1000", |s| s.plan.rows = 1000),
        ("statements: prepared / text", |s| s.workload.mode = Mode::Text),
        ("transport: tcp / socket", |s| s.server.transport = "socket".to_owned()),
        ("version: 8.0.33 / 9.7", |s| s.server.version = "9.7".to_owned()),
        ("loadgen build: release / debug", |s| s.loadgen.profile = "debug".to_owned()),
    ];
    for (says, change) in changes {
        let mut other = second.clone();
        change(&mut other);
        let error =
            try_report(&[first.clone(), other.clone()], &Options::default()).expect_err(says);
        assert_eq!(error.kind(), Kind::Data);
        let text = error.render();
        assert!(text.contains(&format!("\n  {says}\n")), "{says}: {text}");
        assert!(text.contains("'a' of point-select at 8 clients"), "{text}");
        assert!(text.contains("hint: --latest") && text.contains("--label"), "{text}");
        let latest = Options { latest: true, ..Options::default() };
        assert!(grid(&report(&[first.clone(), other], &latest))[1].starts_with("300     a"));
    }
}

#[test]
fn many_differences_are_bounded() {
    let first = step(0, "a", 8, 100.0);
    let mut second = again(&first, 9);
    for i in 0..50 {
        second.server.variables.insert(format!("v{i}"), "x\n".repeat(10_000));
    }
    let text = try_report(&[first, second], &Options::default()).expect_err("differs").render();
    assert!(text.contains("… and 40 more") && text.len() < 3000, "{text}");
}

#[test]
fn the_latest_invocation_is_one_a_label_and_workload() {
    let old = [step(0, "a", 8, 1.0), step(0, "a", 16, 2.0), step(0, "b", 8, 3.0)];
    let new = step(9, "a", 16, 20.0);
    let steps = [old.as_slice(), &[new]].concat();
    assert_eq!(grid(&plain(&steps))[1], "1       11      a");
    let latest = Options { latest: true, ..Options::default() };
    let text = report(&steps, &latest);
    assert_eq!(&grid(&text)[1..], ["3        -      b", "-       20      a"]);
}

#[test]
fn only_completed_steps_fill_cells_unless_asked() {
    let mut ended = step(0, "a", 16, 50.0);
    ended.outcome = Outcome::Interrupted;
    ended.reason = Some("SIGINT".to_owned());
    let steps = [step(0, "a", 8, 100.0), ended.clone(), step(1, "b", 16, 70.0)];
    let text = plain(&steps);
    assert_eq!(&grid(&text)[1..], ["100      -      a †", "  -     70      b"]);
    let note = "† left out, because it did not complete: interrupted, SIGINT (a at 16)\n";
    assert!(text.contains(note), "{text}");
    let partial = Options { partial: true, ..Options::default() };
    let text = report(&steps, &partial);
    assert_eq!(&grid(&text)[1..], ["100     50      a †", "  -     70      b"]);
    assert!(text.contains("† did not complete: interrupted, SIGINT (a at 16)\n"), "{text}");

    let error = try_report(&[ended.clone()], &Options::default()).expect_err("nothing to show");
    assert_eq!(error.kind(), Kind::Data);
    assert!(error.render().contains("--partial"));
    assert_eq!(grid(&report(&[ended], &partial))[1], "50      a †");
    assert_eq!(try_report(&[], &partial).expect_err("nothing").kind(), Kind::Data);
}

#[test]
fn a_step_without_a_window_has_no_number() {
    let mut empty = step(0, "a", 8, 0.0);
    empty.outcome = Outcome::Aborted;
    empty.measured_s = 0.0;
    let partial = Options { partial: true, ..Options::default() };
    assert_eq!(grid(&report(&[empty, step(0, "a", 16, 5.0)], &partial))[1], "-        5      a †");
}

#[test]
fn every_metric_shows_its_field_and_says_its_unit() {
    let mut a = step(0, "a", 8, 1000.0);
    a.totals.tps = 100.0;
    for (name, cell, title) in [
        ("qps", "1000    a", "point-select: QPS, statements a second"),
        ("tps", "100     a", "point-select: TPS, ops a second"),
        ("p50", "790     a", "point-select: p50 service time, microseconds"),
        ("p75", "850     a", ""),
        ("p90", "900     a", ""),
        ("p95", "950     a", ""),
        ("p99", "1200    a", "point-select: p99 service time, microseconds"),
        ("p99.9", "2400    a", ""),
        ("p99.99", "4800    a", ""),
        ("mean", "800     a", "point-select: mean service time, microseconds"),
        ("max", "9600    a", "point-select: largest service time, microseconds"),
        ("min", "100     a", "point-select: smallest service time, microseconds"),
        ("stddev", "50.0    a", "standard deviation of the service time, microseconds"),
        ("errors", "0       a", "point-select: errors, a step, all phases"),
        ("cpu", "10.0    a", "point-select: client CPU an op, microseconds"),
    ] {
        let text = report(&[a.clone()], &metric(name));
        assert!(text.lines().any(|line| line == cell), "{name}: {text}");
        assert!(text.contains(title), "{name}: {text}");
        let header = text.lines().find(|line| line.ends_with("concurrent clients"));
        assert!(header.is_some(), "{text}");
    }
}

#[test]
fn other_percentiles_come_from_the_histogram() {
    let mut a = step(0, "a", 8, 1000.0);
    let us: Vec<u64> = (1..=1000).map(|us| us * 1000).collect();
    a.latency.service.histogram = summaries::histogram(&us);
    let text = report(&[a.clone()], &metric("p42"));
    assert!(text.contains("\n420     a\n"), "{text}");
    a.latency.service.histogram = "AAAA".to_owned();
    let error = try_report(&[a.clone()], &metric("p42")).expect_err("damaged");
    assert_eq!(error.kind(), Kind::Data);
    let text = error.render();
    assert!(
        text.contains(&a.step_id) && text.contains("damaged") && text.contains("hint"),
        "{text}"
    );
    assert!(try_report(&[a.clone()], &metric("p50")).is_ok(), "its field is there");
    a.latency.service = Distribution { count: 0, p50_us: None, ..a.latency.service };
    assert_eq!(grid(&report(&[a.clone()], &metric("p42")))[2], "-       a");
    assert_eq!(grid(&report(&[a], &metric("p50")))[2], "-       a");
}

#[test]
fn times_keep_useful_digits() {
    let mut steps = [step(0, "a", 8, 1.0), step(0, "a", 16, 1.0)];
    steps[0].latency.service.p50_us = Some(41.26);
    steps[1].latency.service.p50_us = Some(1041.26);
    assert_eq!(grid(&report(&steps, &metric("p50")))[2], "41.3    1041.3  a");
}

#[test]
fn higher_is_better_whatever_is_related() {
    let mut steps = [step(0, "old", 8, 1000.0), step(1, "new", 8, 2000.0)];
    steps[0].latency.service.p99_us = Some(100.0);
    steps[1].latency.service.p99_us = Some(400.0);
    steps[0].client.us_per_op = Some(8.0);
    steps[1].client.us_per_op = Some(6.0);
    for (name, ratio, how) in [
        ("qps", "2.00", "value/base"),
        ("tps", "2.00", "value/base"),
        ("p99", "0.25", "base/value"),
        ("cpu", "1.33", "base/value"),
    ] {
        let text = report(&steps, &related("old", name));
        let lines = grid(&text);
        assert!(lines[0].ends_with(&format!("relative to old, {how}: higher is better")), "{text}");
        assert_eq!(lines[1], "   8    concurrent clients");
        assert_eq!(lines[2], "1.00    old");
        assert_eq!(lines[3], format!("{ratio}    new"));
    }
}

#[test]
fn errors_relate_without_dividing_by_zero() {
    let count = |n| {
        let mut step = step(n as u32, &format!("e{n}"), 8, 1000.0);
        let text = r#"[{"code": 1213, "sqlstate": "40001", "class": "server", "message": "", "count": 0}]"#;
        step.totals.errors = serde_json::from_str(text).expect("errors");
        step.totals.errors[0].count = n;
        step
    };
    let steps = [count(0), count(4), count(u64::MAX)];
    let text = report(&steps, &related("e0", "errors"));
    assert_eq!(&grid(&text)[2..], ["1.00    e0", "0.00    e4", "0.00    e18446744073709551615"]);
    let text = report(&steps, &related("e4", "errors"));
    assert!(text.contains("inf     e0") || text.contains(" inf  e0"), "{text}");
    assert!(
        json(&steps, &related("e4", "errors"))["tables"][0]["lines"][0]["cells"][0]["relative"]
            .is_null()
    );
}

#[test]
fn a_baseline_that_is_no_label_is_answered_with_the_labels() {
    let steps = [step(0, "orig5610", 8, 1.0), step(1, "fb5163", 8, 1.0)];
    let error = try_report(&steps, &related("orig5601", "qps")).expect_err("unknown");
    assert_eq!(error.kind(), Kind::Usage);
    let text = error.render();
    assert!(text.contains("'orig5601'") && text.contains("did you mean 'orig5610'?"), "{text}");
    assert!(text.contains("there are 'fb5163', 'orig5610'"), "{text}");
    let text = try_report(&steps, &related("x", "qps")).expect_err("unknown").render();
    assert!(!text.contains("did you mean"), "{text}");
}

#[test]
fn a_cell_without_a_base_is_named() {
    let steps = [step(0, "base", 8, 1.0), step(1, "b", 8, 2.0), step(1, "b", 16, 2.0)];
    let text = report(&steps, &related("base", "qps"));
    assert_eq!(grid(&text)[3], "2.00     -      b");
    assert!(text.contains("\nbase has no cell at 16: nothing to relate to there\n"), "{text}");
}

#[test]
fn warnings_mark_their_line_and_say_where() {
    let warn = |step: &mut Summary, code: &str, message: &str| {
        step.warnings.push(Warning { code: code.to_owned(), message: message.to_owned() });
    };
    let mut steps =
        [step(0, "a", 8, 1.0), step(0, "a", 16, 1.0), step(1, "b", 8, 1.0), step(2, "c", 8, 1.0)];
    warn(&mut steps[1], "client_busy", "the client was busy 93 %");
    warn(&mut steps[2], "client_busy", "the client was busy 95 %");
    warn(&mut steps[2], "cold", "pages were read");
    let text = plain(&steps);
    assert_eq!(
        &grid(&text)[1..],
        ["1        1      a †", "1        -      b † ‡", "1        -      c"]
    );
    assert!(
        text.contains("\n† the client was busy 93 % (and 1 more like it) (a at 16; b)\n"),
        "{text}"
    );
    assert!(text.contains("\n‡ pages were read\n"), "{text}");
}

#[test]
fn same_host_and_debug_builds_are_said_once() {
    let mut steps = [step(0, "a", 8, 1.0), step(1, "b", 8, 1.0)];
    steps[0].client.same_host = true;
    steps[0].loadgen.profile = "debug".to_owned();
    steps[1].client.same_host = true;
    let text = plain(&steps);
    assert_eq!(&grid(&text)[1..], ["1       a † ‡", "1       b ‡"]);
    assert!(text.contains("† measured by a debug build"), "{text}");
    assert!(text.contains("‡ the client ran on the server's host"), "{text}");
    let own = Warning { code: "same_host".to_owned(), message: "of the summary".to_owned() };
    steps[0].warnings.push(own.clone());
    steps[1].warnings.push(own);
    let text = plain(&steps);
    assert!(text.contains("‡ of the summary\n") && !text.contains("took a part"), "{text}");
}

#[test]
fn labels_that_were_measured_otherwise_say_so() {
    let mut other = step(1, "b", 8, 1.0);
    other.plan.tables = 1;
    other.server.transport = "socket".to_owned();
    other.workload.statements[0].sql = "SELECT 1".to_owned();
    let text = plain(&[step(0, "a", 8, 1.0), other, step(2, "c", 8, 1.0)]);
    assert_eq!(&grid(&text)[1..], ["1       a", "1       b †", "1       c"]);
    let note =
        "† other conditions: tables 1 instead of 8, other SQL, transport socket instead of tcp\n";
    assert!(text.contains(note), "{text}");
    let mut paced = step(1, "b", 8, 1.0);
    paced.plan.time_s = None;
    paced.plan.ops = Some(5000);
    let text = plain(&[step(0, "a", 8, 1.0), paced]);
    assert!(text.contains("window 5000 ops instead of 60 s"), "{text}");
}

#[test]
fn a_line_of_invocations_that_differ_says_so() {
    let mut second = step(9, "a", 16, 2.0);
    second.server.variables.insert("innodb_io_capacity".to_owned(), "400".to_owned());
    let text = plain(&[step(0, "a", 8, 1.0), second]);
    assert_eq!(grid(&text)[1], "1        2      a †");
    let note = "† its columns come from 2 invocations whose settings differ: innodb_io_capacity\n";
    assert!(text.contains(note), "{text}");
}

#[test]
fn paced_steps_have_columns_of_their_own() {
    let paced = |rate: f64, qps| {
        let mut step = step(0, "a", 8, qps);
        step.plan.rate = Some(rate);
        step.plan.arrival = Some("poisson".to_owned());
        step.step_id = format!("{}-{rate}", step.step_id);
        step
    };
    let text = plain(&[paced(1000.0, 999.0), step(0, "a", 16, 5.0), paced(500.5, 500.0)]);
    assert_eq!(
        grid(&text),
        ["16      8@500.5  8@1000  concurrent clients", " 5          500     999  a"]
    );
    assert!(text.contains("8@500.5: 8 clients, 500.5 ops a second asked"), "{text}");
}

#[test]
fn many_footnotes_have_different_signs() {
    let mut steps = Vec::new();
    for i in 0..10 {
        let mut step = step(i, &format!("l{i}"), 8, 1.0);
        step.warnings.push(Warning { code: format!("w{i}"), message: format!("message {i}") });
        steps.push(step);
    }
    let text = plain(&steps);
    assert!(text.contains("l4 ††\n") && text.contains("\n†† message 4\n"), "{text}");
    assert!(text.contains("l9 ‡‡‡\n"), "{text}");
}

#[test]
fn markdown_is_a_table_below_its_title() {
    let mut steps = [step(0, "a|b", 8, 1000.4), step(1, "<b>`x`_y", 16, 2.0)];
    steps[0].client.same_host = true;
    let text = report(&steps, &Options { format: Format::Markdown, ..Options::default() });
    assert_eq!(
        text,
        "**point-select: QPS, statements a second**\n\
         \n\
         | 8 | 16 | concurrent clients |\n\
         | ---: | ---: | :--- |\n\
         | 1000 | - | a\\|b † |\n\
         | - | 2 | \\<b\\>\\`x\\`\\_y |\n\
         \n\
         † the client ran on the server's host and took a part of its CPUs\n\
         \n\
         tables 8, rows 16000000, data seed 1, distribution uniform, spread pinned, \
         statements prepared, transport tcp, warm-up 10 s, window 60 s\n"
    );
}

#[test]
fn csv_has_one_row_a_cell() {
    let mut steps = [
        step(0, "=cmd()", 8, 1000.5),
        step(1, "b,\"c\"\n", 16, 2.0),
        step(1, "b,\"c\"\n", 8, 500.25),
    ];
    steps[0].client.same_host = true;
    let csv = Options { format: Format::Csv, ..related("=cmd()", "qps") };
    assert_eq!(
        report(&steps, &csv),
        "workload,label,clients,rate,metric,unit,value,min,max,steps,baseline,relative,tables,rows,\
         distribution,statements,transport,server_version,started_at,notes\n\
         point-select,'=cmd(),8,,qps,statements/s,1000.5,1000.5,1000.5,1,'=cmd(),1,8,16000000,\
         uniform,prepared,tcp,8.0.33,2026-11-20T00:00:08Z,same_host\n\
         point-select,\"b,\"\"c\"\"\\n\",8,,qps,statements/s,500.25,500.25,500.25,1,'=cmd(),\
         0.5,8,16000000,uniform,prepared,tcp,8.0.33,2026-11-20T00:01:08Z,\n\
         point-select,\"b,\"\"c\"\"\\n\",16,,qps,statements/s,2,2,2,1,'=cmd(),,8,16000000,uniform,\
         prepared,tcp,8.0.33,2026-11-20T00:01:16Z,\n"
    );
}

#[test]
fn json_has_a_version_and_keeps_labels_as_they_are() {
    let label = "\u{202e}x\u{9b}\n\"";
    let mut steps = [step(0, label, 8, 1000.5), step(1, "b", 16, 2.0)];
    steps[0].client.same_host = true;
    let text = report(&steps, &Options { format: Format::Json, ..related(label, "qps") });
    assert!(!text.contains(['\u{202e}', '\u{9b}']), "{text}");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["schema"], "loadgen.report/1");
    assert_eq!(
        json["metric"],
        serde_json::json!({"name": "qps", "unit": "statements/s", "higher_is_better": true})
    );
    assert_eq!(json["baseline"], label);
    let table = &json["tables"][0];
    assert_eq!(table["workload"], "point-select");
    assert_eq!(table["columns"][1], serde_json::json!({"clients": 16, "rate": null}));
    let line = &table["lines"][0];
    assert_eq!(line["label"], label);
    assert_eq!(
        line["cells"],
        serde_json::json!([
            {"value": 1000.5, "min": 1000.5, "max": 1000.5, "steps": 1, "relative": 1.0,
             "step_ids": [steps[0].step_id]},
            null
        ])
    );
    assert_eq!(line["notes"], serde_json::json!([0]));
    assert_eq!(line["conditions"]["tables"], serde_json::json!(["8"]));
    assert_eq!(line["conditions"]["warm_up"], serde_json::json!(["10 s"]));
    assert_eq!(table["notes"][0]["code"], "same_host");
}

#[test]
fn hostile_texts_stay_text_in_every_format() {
    let hostile = "\u{1b}]0;x\u{7}\u{202e}\r\n| =x`<script>\u{2028}";
    let mut bad = step(0, hostile, 8, 1.0);
    bad.workload.name = hostile.to_owned();
    bad.workload.distribution = hostile.to_owned();
    bad.server.version = hostile.to_owned();
    bad.server.transport = hostile.to_owned();
    bad.started_at = hostile.to_owned();
    bad.warnings.push(Warning { code: hostile.to_owned(), message: hostile.to_owned() });
    bad.outcome = Outcome::Aborted;
    bad.reason = Some(hostile.to_owned());
    let mut usual = step(1, "b", 8, 1.0);
    usual.workload.name = hostile.to_owned();
    for format in [Format::Text, Format::Markdown, Format::Csv, Format::Json] {
        let options = Options { format, partial: true, ..related(hostile, "qps") };
        let text = report(&[bad.clone(), usual.clone()], &options);
        let ok = |c: char| c == '\n' || !(c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
        assert!(text.chars().all(ok), "{text:?}");
        // One line each: the label does not start a new one.
        assert_eq!(text.lines().filter(|line| line.starts_with("| =x")).count(), 0, "{text}");
    }
}

#[test]
fn absurd_numbers_do_not_panic() {
    let mut steps = Vec::new();
    for (i, value) in [f64::MAX, f64::MIN, -1.0, 0.0, f64::MIN_POSITIVE].into_iter().enumerate() {
        let mut step = step(i as u32, &format!("l{i}"), u32::MAX, value);
        step.measured_s = if i == 3 { value } else { f64::MAX };
        step.plan.rate = Some(value);
        step.plan.repeat_index = 0;
        step.latency.service.p99_us = Some(value);
        step.client.us_per_op = Some(value);
        steps.push(step.clone());
        steps.push(repeat(&step, 2, -value));
    }
    for name in ["qps", "tps", "p99", "p98", "cpu", "errors", "max"] {
        for format in [Format::Text, Format::Markdown, Format::Csv, Format::Json] {
            for baseline in [None, Some("l0".to_owned()), Some("l3".to_owned())] {
                let options = Options { format, baseline, partial: true, ..metric(name) };
                let text = report(&steps, &options);
                assert!(text.lines().all(|line| line.len() < 2000), "{text}");
            }
        }
    }
}

/// Steps of some labels, clients and repeats, in any order.
fn any_steps() -> impl Strategy<Value = Vec<Summary>> {
    let one = (0_u32..6, 0_u32..5, 1_u32..4, 0.0_f64..2e6);
    prop::collection::btree_map((0_u32..6, 0_u32..5, 1_u32..4), one, 1..40)
        .prop_map(|cells| {
            let steps = cells.into_iter().map(|((label, clients, index), (.., qps))| {
                repeat(&step(label, &format!("label{label}"), 1 << (3 * clients), qps), index, qps)
            });
            steps.collect::<Vec<_>>()
        })
        .prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_cell_is_lost_and_none_is_made_up(steps in any_steps()) {
        let mut expected: BTreeMap<(String, u64), Vec<f64>> = BTreeMap::new();
        for step in &steps {
            let key = (step.label.clone(), u64::from(step.plan.clients));
            expected.entry(key).or_default().push(step.totals.qps);
        }
        let json = json(&steps, &Options::default());
        let table = &json["tables"][0];
        let mut found = 0;
        for line in table["lines"].as_array().expect("lines") {
            let columns = table["columns"].as_array().expect("columns");
            for (column, cell) in columns.iter().zip(line["cells"].as_array().expect("cells")) {
                let label = line["label"].as_str().expect("text").to_owned();
                let key = (label, column["clients"].as_u64().expect("a number"));
                prop_assert_eq!(cell.is_null(), !expected.contains_key(&key));
                let Some(values) = expected.get_mut(&key) else { continue };
                found += 1;
                values.sort_by(f64::total_cmp);
                let n = values.len();
                let median = f64::midpoint(values[(n - 1) / 2], values[n / 2]);
                let value = cell["value"].as_f64().expect("a number");
                prop_assert!((value - median).abs() <= 1e-9 * median.abs());
                prop_assert_eq!(cell["steps"].as_u64(), Some(n as u64));
            }
        }
        prop_assert_eq!(found, expected.len());
    }

    #[test]
    fn the_layout_keeps_its_rule(steps in any_steps()) {
        let text = plain(&steps);
        let lines = grid(&text);
        // Labels by their first step: their number is their time.
        let labels: Vec<&str> = lines[1..].iter().map(|l| l.rsplit(' ').next().expect("one")).collect();
        prop_assert!(labels.is_sorted(), "{}", text);
        let rows: Vec<Vec<&str>> = lines.iter().map(|l| l.split_whitespace().collect()).collect();
        let columns = rows[0].len() - 2;
        let clients: Vec<u32> = rows[0][..columns].iter().map(|c| c.parse().expect("a number")).collect();
        prop_assert!(clients.is_sorted(), "{}", text);
        let mut start = 0;
        for column in 0..columns {
            let width = rows.iter().map(|row| row[column].len()).max().expect("a header");
            for (line, row) in lines.iter().zip(&rows) {
                let end = start + width;
                prop_assert!(line[..end].ends_with(row[column]), "{}", text);
                prop_assert_eq!(line[start..end].trim_start(), row[column]);
            }
            start += 8.max(width + 2);
        }
        for (line, label) in lines[1..].iter().zip(labels) {
            prop_assert_eq!(&line[start..], label);
        }
        prop_assert_eq!(&lines[0][start..], "concurrent clients");
    }

    #[test]
    fn the_order_of_files_says_nothing(steps in any_steps()) {
        let mut sorted = steps.clone();
        sorted.sort_by(|a, b| a.step_id.cmp(&b.step_id));
        for format in [Format::Text, Format::Markdown, Format::Csv, Format::Json] {
            let options = Options { format, metric: Metric::Qps, ..Options::default() };
            prop_assert_eq!(report(&steps, &options), report(&sorted, &options));
        }
    }

    #[test]
    fn any_label_is_one_line(label in "\\PC*|[\u{0}-\u{2f}\u{80}-\u{9f}]*") {
        let mut step = sound();
        step.label = label;
        let text = plain(&[step.clone()]);
        prop_assert_eq!(grid(&text).len(), 2);
        let csv = report(&[step], &Options { format: Format::Csv, ..Options::default() });
        prop_assert_eq!(csv.lines().count(), 2);
    }
}
