//! What the cells show, as values and related to a baseline.

use super::{grid, json, metric, related, report, try_report};
use crate::common::summaries::{histogram, step};
use loadgen::error::Kind;
use loadgen::summary::{Distribution, HostCost, Innodb, Probed, ProcessCost, Summary};
use loadgen::terms::Arrival;

struct Shown {
    name: &'static str,
    cell: &'static str,
    title: &'static str,
}

#[test]
fn every_metric_shows_its_field_and_says_its_unit() {
    let mut a = step(0, "a", 8, 1000.0);
    a.totals.tps = 100.0;
    for Shown { name, cell, title } in [
        Shown { name: "qps", cell: "1000    a", title: "point-select: QPS, statements a second" },
        Shown { name: "tps", cell: "100     a", title: "point-select: TPS, ops a second" },
        Shown {
            name: "p50",
            cell: "0.790   a",
            title: "point-select: p50 service time, milliseconds",
        },
        Shown { name: "p75", cell: "0.850   a", title: "" },
        Shown { name: "p90", cell: "0.900   a", title: "" },
        Shown { name: "p95", cell: "0.950   a", title: "" },
        Shown {
            name: "p99",
            cell: "1.20    a",
            title: "point-select: p99 service time, milliseconds",
        },
        Shown { name: "p99.9", cell: "2.40    a", title: "" },
        Shown { name: "p99.99", cell: "4.80    a", title: "" },
        Shown {
            name: "mean",
            cell: "0.800   a",
            title: "point-select: mean service time, milliseconds",
        },
        Shown {
            name: "max",
            cell: "9.60    a",
            title: "point-select: max service time, milliseconds",
        },
        Shown {
            name: "min",
            cell: "0.100   a",
            title: "point-select: min service time, milliseconds",
        },
        Shown { name: "stddev", cell: "0.050   a", title: "stddev service time, milliseconds" },
        Shown {
            name: "errors",
            cell: "0       a",
            title: "point-select: errors, a step, all phases",
        },
        Shown {
            name: "cpu",
            cell: "10.0    a",
            title: "point-select: client CPU an op, microseconds",
        },
    ] {
        let text = report(&[a.clone()], &metric(name));
        assert!(text.lines().any(|line| line == cell), "{name}: {text}");
        assert!(text.contains(title), "{name}: {text}");
        let header = text.lines().find(|line| line.ends_with("concurrent clients"));
        assert!(header.is_some(), "{text}");
    }
}

#[test]
fn times_from_the_intended_instant_are_those_of_an_open_loop_only() {
    let (mut a, b) = (step(0, "a", 8, 1000.0), step(1, "b", 8, 1000.0));
    a.plan.rate = Some(1000.0);
    a.plan.arrival = Some(Arrival::Poisson);
    let service = a.latency.service.clone();
    a.latency.wait = Some(Distribution { mean_us: Some(77.0), ..service.clone() });
    a.latency.response =
        Some(Distribution { p99_us: Some(4321.0), max_us: Some(9999.0), ..service });
    for Shown { name, cell, title } in [
        Shown {
            name: "response-p99",
            cell: "4.32",
            title: "point-select: p99 response time, milliseconds",
        },
        Shown {
            name: "response-max",
            cell: "10.00",
            title: "point-select: max response time, milliseconds",
        },
        Shown {
            name: "wait-mean",
            cell: "0.077",
            title: "point-select: mean waiting time, milliseconds",
        },
        Shown {
            name: "service-p99",
            cell: "1.20",
            title: "point-select: p99 service time, milliseconds",
        },
        Shown { name: "p99", cell: "4.32", title: "point-select: p99 latency, milliseconds" },
    ] {
        let text = report(&[a.clone(), b.clone()], &metric(name));
        let line = text.lines().find(|line| line.contains("  a")).expect("a line");
        assert!(line.contains(cell), "{name}: {text}");
        assert!(text.contains(title) && text.contains("1000/s"), "{name}: {text}");
    }
}

#[test]
fn a_percentile_is_the_response_time_in_an_open_loop_and_files_say_so() {
    let (mut open, closed) = (step(0, "a", 8, 1000.0), step(1, "b", 8, 1000.0));
    open.plan.rate = Some(1000.0);
    let service = open.latency.service.clone();
    open.latency.response = Some(Distribution { p99_us: Some(4321.0), ..service });
    let both = [open.clone(), closed.clone()];
    let csv = |steps: &[Summary], name: &str| {
        let csv = super::Options { format: super::Format::Csv, ..metric(name) };
        let text = report(steps, &csv);
        let cells = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        cells.map(|cells| format!("{} {}", cells[4], cells[6])).collect::<Vec<_>>()
    };
    assert_eq!(csv(&both, "p99"), ["response-p99 4321", "p99 1200"]);
    assert_eq!(csv(&both, "service-p99"), ["service-p99 1200", "service-p99 1200"]);
    assert_eq!(csv(&[open.clone()], "p99"), ["response-p99 4321"]);
    let named = |steps: &[Summary]| {
        let json = json(steps, &metric("p99"));
        let columns = json["tables"][0]["columns"].as_array().expect("columns").clone();
        let columns: Vec<String> = columns.iter().map(|c| c["metric"].to_string()).collect();
        (json["metric"]["name"].to_string(), columns.join(" "))
    };
    let quoted = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(named(&both), quoted("\"p99\"", "\"p99\" \"response-p99\""));
    assert_eq!(named(&[open]), quoted("\"response-p99\"", "\"response-p99\""));
    assert_eq!(named(&[closed]), quoted("\"p99\"", "\"p99\""));
}

#[test]
fn the_servers_costs_are_divided_by_the_ops_between_their_readings() {
    let mut a = step(0, "a", 8, 1000.0);
    let host = HostCost {
        disk_read_s: Some(1.5),
        user_s: 1.0,
        sys_s: 1.0,
        irq_s: None,
        iowait_s: 0.0,
        idle_s: 9.0,
        steal_s: 0.0,
        context_switches: None,
        disk_reads: Some(30_250),
        disk_writes: None,
        disk_read_bytes: None,
        disk_write_bytes: None,
        net_rx_bytes: None,
        net_tx_bytes: None,
    };
    let process = ProcessCost {
        pid: 1,
        user_s: 2.0,
        sys_s: 1.025,
        voluntary_switches: Some(121_000),
        involuntary_switches: Some(60_500),
        read_bytes: Some(60_500 * 16384),
        write_bytes: Some(60_500 * 512),
        rss_bytes: None,
        threads: None,
    };
    // Half a second of load before the window, none after it: 60,500 ops.
    a.server.probed = Some(Probed {
        via: "local".to_owned(),
        first_s: -0.5,
        last_s: 75.0,
        process: Some(process),
        host: Some(host),
    });
    a.client.rtt_us = Some(101.5);
    a.totals.rows = 120_000;
    let status = a.server.status.as_mut().expect("status");
    (status.first_s, status.last_s) = (-0.5, 61.0);
    for (name, delta) in [
        ("Innodb_data_reads", 54_450),
        ("Innodb_buffer_pool_reads", 48_400),
        ("Innodb_buffer_pool_read_requests", 242_000),
        ("Innodb_buffer_pool_pages_flushed", 6050),
        ("Innodb_log_writes", 12_100),
        ("Innodb_os_log_written", 6_050_000),
        ("Handler_read_key", 60_500),
        ("Handler_commit", 30_250),
        ("Innodb_adaptive_hash_hash_searches", 3),
        ("Innodb_adaptive_hash_non_hash_searches", 1),
    ] {
        status.deltas.insert(name.to_owned().into(), delta);
    }
    for (name, cell) in [
        ("iops", "900"),
        ("innodb-reads", "0.900"),
        ("miss", "0.800"),
        ("miss%", "20.0"),
        ("pages-written", "0.100"),
        ("log-writes", "0.200"),
        ("log-bytes", "100"),
        ("handlers", "1.50"),
        ("ahi", "75.0"),
        ("server-cpu", "50.0"),
        ("cs", "3.00"),
        ("reads", "0.500"),
        ("rkb", "16.0"),
        ("wkb", "0.500"),
        ("client-seconds", "6.00"),
        ("rtt", "0.102"),
        ("rows", "2000"),
        ("seconds", "60.0"),
    ] {
        let text = report(&[a.clone()], &metric(name));
        assert!(text.lines().any(|line| line.starts_with(&format!("{cell} "))), "{name}: {text}");
    }
    // What FLUSH STATUS reset is no number: one of several, or what grew again beyond it.
    for (name, delta) in [("Handler_commit", -90_000), ("Uptime_since_flush_status", 20)] {
        let mut flushed = a.clone();
        let deltas = &mut flushed.server.status.as_mut().expect("status").deltas;
        deltas.extend([("Uptime".to_owned().into(), 61), (name.to_owned().into(), delta)]);
        let handlers = report(std::slice::from_ref(&flushed), &metric("handlers"));
        assert_eq!(grid(&handlers)[2], "-       a", "{name}");
        assert!(
            report(&[flushed], &metric("miss")).contains("\n0.800 "),
            "InnoDB's are left alone"
        );
    }
    let mut fell = a.clone();
    let deltas = &mut fell.server.status.as_mut().expect("status").deltas;
    deltas.insert("Innodb_adaptive_hash_non_hash_searches".to_owned().into(), -1);
    assert_eq!(grid(&report(&[fell], &metric("ahi")))[2], "-       a", "no share is above all");
    // What was not read is no zero.
    a.server.status = None;
    a.server.probed = None;
    for name in ["iops", "miss", "miss%", "handlers", "ahi", "server-cpu", "cs", "reads", "rkb"] {
        assert_eq!(grid(&report(&[a.clone()], &metric(name)))[2], "-       a", "{name}");
    }
}

#[test]
fn the_adaptive_hash_index_is_known_from_three_sources() {
    let mut a = step(0, "a", 8, 1000.0);
    assert_eq!(grid(&report(&[a.clone()], &metric("ahi")))[2], "-       a");
    let status = a.server.status.as_mut().expect("status");
    let innodb = status.innodb.insert(Innodb::default());
    innodb.last.insert("hash_searches_per_s".to_owned(), 90.0);
    innodb.last.insert("other_searches_per_s".to_owned(), 10.0);
    assert_eq!(grid(&report(&[a.clone()], &metric("ahi")))[2], "90.0    a");
    let status = a.server.status.as_mut().expect("status");
    let innodb = status.innodb.as_mut().expect("there");
    innodb.deltas.insert("hash_searches".to_owned(), 40);
    innodb.deltas.insert("other_searches".to_owned(), 60);
    assert_eq!(grid(&report(&[a], &metric("ahi")))[2], "40.0    a");
}

#[test]
fn other_percentiles_come_from_the_histogram() {
    let mut a = step(0, "a", 8, 1000.0);
    let us: Vec<u64> = (1..=1000).map(|us| us * 1000).collect();
    a.latency.service.histogram = histogram(&us);
    let text = report(&[a.clone()], &metric("p42"));
    assert!(grid(&text).contains(&"0.420   a"), "{text}");
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
    assert_eq!(grid(&report(&[a.clone()], &metric("p42")))[2], "-       a *");
    assert_eq!(grid(&report(&[a], &metric("p50")))[2], "-       a *");
}

#[test]
fn times_keep_useful_digits() {
    let mut steps = [step(0, "a", 8, 1.0), step(0, "a", 16, 1.0)];
    steps[0].latency.service.p50_us = Some(41.26);
    steps[1].latency.service.p50_us = Some(1041.26);
    assert_eq!(grid(&report(&steps, &metric("p50")))[2], "0.041   1.041   a");
}

struct Related {
    name: &'static str,
    rows: [&'static str; 3],
    how: &'static str,
}

#[test]
fn higher_is_better_whatever_is_related() {
    let mut steps = [step(0, "old", 8, 1000.0), step(1, "new", 8, 2000.0)];
    steps[0].latency.service.p99_us = Some(100.0);
    steps[1].latency.service.p99_us = Some(400.0);
    steps[0].client.us_per_op = Some(8.0);
    steps[1].client.us_per_op = Some(6.0);
    let rates = ["   8          concurrent clients", "1000          old", "2000 (2.00x)  new"];
    let times = ["    8          concurrent clients", "0.100          old", "0.400 (0.25x)  new"];
    let costs = ["   8          concurrent clients", "8.00          old", "6.00 (1.33x)  new"];
    for Related { name, rows, how } in [
        Related { name: "qps", rows: rates, how: "value/base" },
        Related { name: "tps", rows: rates, how: "value/base" },
        Related { name: "p99", rows: times, how: "base/value" },
        Related { name: "cpu", rows: costs, how: "base/value" },
    ] {
        let text = report(&steps, &related("old", name));
        let lines = grid(&text);
        let title = format!("; in brackets relative to old, {how}: higher is better");
        assert!(lines[0].ends_with(&title), "{text}");
        assert_eq!(lines[1..], rows, "{name}");
    }
}

#[test]
fn errors_relate_without_dividing_by_zero() {
    let count = |n| {
        let mut step = step(n as u32, &format!("e{n}"), 8, 1000.0);
        let text = r#"[{"code": 1213, "sqlstate": "40001", "class": "server", "message": "", "count": 0}]"#;
        step.totals.errors = serde_json::from_str(text).expect("errors");
        step.totals.errors[0].count = n;
        // Counts of unequal work have no ratio.
        (step.plan.time_s, step.plan.ops) = (None, Some(1000));
        step
    };
    let steps = [count(0), count(4), count(u64::MAX)];
    let text = report(&steps, &related("e0", "errors"));
    assert_eq!(
        &grid(&text)[2..],
        ["      0          e0", "      4 (0.00x)  e4", "1.84e19 (0.00x)  e18446744073709551615"]
    );
    let text = report(&steps, &related("e4", "errors"));
    assert_eq!(grid(&text)[2].trim_start(), "0             e0", "a number without a ratio");
    let csv = super::Options { format: super::Format::Csv, ..related("e4", "errors") };
    assert!(!report(&steps, &csv).contains("inf"));
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
    assert!(text.contains("'orig5601'") && text.contains("'orig5610'?"), "{text}");
    assert!(text.contains("'fb5163', 'orig5610'"), "{text}");
    let text = try_report(&steps, &related("x", "qps")).expect_err("unknown").render();
    assert!(!text.contains('?'), "{text}");
}

#[test]
fn a_cell_without_a_base_is_named() {
    let steps = [step(0, "base", 8, 1.0), step(1, "b", 8, 2.0), step(1, "b", 16, 2.0)];
    let text = report(&steps, &related("base", "qps"));
    assert_eq!(grid(&text)[3], "2.00 (2.00x)  2.00    b");
    let is_named = |line: &str| line.starts_with("base ") && line.contains(" 16");
    assert!(text.lines().any(is_named), "{text}");
}

#[test]
fn a_rate_has_three_digits_in_every_table_when_it_is_small() {
    use super::Options;
    use loadgen::report::{Layout, Question, compare, gates, page};
    // Statements and ops a second are alike in these steps.
    let mut steps = [step(0, "old", 8, 0.45), step(1, "new", 8, 0.9)];
    for step in &mut steps {
        step.plan.rate = Some(2.5);
        step.totals.backlog = Some(7);
        step.warnings = serde_json::from_str(
            r#"[{"code": "target_not_sustained", "message": "not sustained"}]"#,
        )
        .expect("a warning");
    }
    let closed = steps.clone().map(|mut step| {
        step.plan.rate = None;
        step.warnings = Vec::new();
        step
    });
    let laid = |layout: Layout| {
        let two = [Layout::Overhead, Layout::Delta].contains(&layout);
        let [baseline, new] = ["old", "new"].map(|label| two.then(|| label.to_owned()));
        report(&closed, &Options { layout, baseline, new, ..Options::default() })
    };
    let of: Vec<&Summary> = closed.iter().collect();
    let asked = Question { base: "old".into(), new: "new".into(), ..Question::default() };
    let gate = ["qps>=2".parse().expect("a gate")];
    let html = page(&of, &Options::default());
    for (what, text) in [
        ("versions", laid(Layout::Versions)),
        ("workloads", laid(Layout::Workloads)),
        ("list", laid(Layout::List)),
        ("peak", laid(Layout::Peak)),
        ("relative", laid(Layout::Relative)),
        ("overhead", laid(Layout::Overhead)),
        ("per-op", laid(Layout::PerOp)),
        ("compare", compare(&of, &asked).expect("a comparison").text),
        ("gates", gates(&of, &gate, &Options::default()).expect("gates").text),
        ("page", html.expect("a page")),
    ] {
        for rate in ["0.450", "0.900"] {
            assert!(text.contains(rate), "{what}: no {rate} in {text}");
        }
    }
}

#[test]
fn a_total_has_no_ratio_in_any_table_when_the_work_was_not_the_same() {
    struct Case {
        layout: Layout,
        field: &'static str,
        ratio: f64,
    }
    use super::{Format, Options};
    use loadgen::report::Layout;
    let of = |windows: bool| {
        let mut steps = [step(0, "old", 8, 1000.0), step(1, "new", 8, 2000.0)];
        for (step, seconds) in steps.iter_mut().zip([1.5, 3.0]) {
            (step.client.user_s, step.client.sys_s) = (seconds, seconds);
            if !windows {
                (step.plan.time_s, step.plan.ops) = (None, Some(1000));
            }
        }
        steps
    };
    for Case { layout, field, ratio } in [
        Case { layout: Layout::Relative, field: "relative", ratio: 0.5 },
        Case { layout: Layout::Delta, field: "change_percent", ratio: -50.0 },
        Case { layout: Layout::Overhead, field: "cost_percent", ratio: 100.0 },
        Case { layout: Layout::Peak, field: "relative", ratio: 0.5 },
    ] {
        let metric = "client-seconds".parse().expect("a metric");
        let options = Options { layout, metric, format: Format::Json, ..Options::default() };
        let last = |windows: bool| {
            let json = json(&of(windows), &options);
            json["rows"].as_array().expect("rows").last().expect("a row")[field].clone()
        };
        assert!(last(true).is_null(), "{layout}");
        assert!((last(false).as_f64().expect("a ratio") - ratio).abs() < 1e-9, "{layout}");
    }
    let cell = |windows: bool| {
        let json = json(&of(windows), &related("old", "client-seconds"));
        json["tables"][0]["lines"][1]["cells"][0].clone()
    };
    assert!(cell(true)["relative"].is_null() && cell(true)["value"] == 6.0, "{}", cell(true));
    assert_eq!(cell(false)["relative"], 0.5);
}
