//! The other layouts: the published texts come out of their own numbers.

use super::{in_full, metric, repeat, report, try_report};
use crate::common::summaries::{seed_table, step, worded};
use loadgen::error::Kind;
use loadgen::report::{Format, Layout, Metric, Notes, Options};
use loadgen::summary::{Group, Probed, ProcessCost, Summary};
use serde_json::Value;

fn laid(layout: Layout) -> Options {
    Options { layout, ..Options::default() }
}

fn between(layout: Layout, from: &str, to: &str) -> Options {
    Options { baseline: Some(from.to_owned()), new: Some(to.to_owned()), ..laid(layout) }
}

/// Steps of one client, a label each, in this order.
fn singles(workload: &str, numbers: &[(f64, &str)]) -> Vec<Summary> {
    let one = |(order, (qps, label)): (usize, &(f64, &str))| {
        let mut step = step(order as u32, label, 1, *qps);
        workload.clone_into(&mut step.workload.name);
        step
    };
    numbers.iter().enumerate().map(one).collect()
}

/// Loads that took so many seconds.
fn loads(name: &str, numbers: &[(f64, &str)]) -> Vec<Summary> {
    let mut steps = singles(name, numbers);
    for (step, (seconds, _)) in steps.iter_mut().zip(numbers) {
        step.plan.time_s = None;
        step.plan.warmup_s = 0.0;
        step.measured_s = *seconds;
        step.totals.rows = 16_000_000;
    }
    steps
}

/// The lines before the first empty one, single blanks between words: what a web page makes of
/// aligned columns.
fn collapsed(text: &str) -> Vec<String> {
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_second_texts_lists_come_out_as_published() {
    // In the order in which somebody may have measured.
    let io = [
        (3352.0, "orig5163"),
        (3596.0, "fb5163"),
        (4100.0, "fb5163, iocap=1024, ffl=0"),
        (4160.0, "fb5163, iocap=1024, ffl=1"),
        (4107.0, "orig5610, performance_schema not compiled"),
        (3909.0, "orig5610, performance_schema=ON, default options"),
    ];
    let text = report(&singles("update-index", &io), &laid(Layout::List));
    let published = "  \
  • 4160 QPS - fb5163, iocap=1024, ffl=1
  • 4107 QPS - orig5610, performance_schema not compiled
  • 4100 QPS - fb5163, iocap=1024, ffl=0
  • 3909 QPS - orig5610, performance_schema=ON, default options
  • 3596 QPS - fb5163
  • 3352 QPS - orig5163

update-index: QPS, statements a second; 1 client
";
    assert!(text.starts_with(published), "{text}");
    let cached = [
        (9231.0, "orig5163"),
        (9089.0, "fb5163"),
        (7810.0, "orig5610, performance_schema not compiled"),
        (7365.0, "orig5610, performance_schema=ON, default options"),
    ];
    let text = report(&singles("update-index", &cached), &laid(Layout::List));
    let published = "  \
  • 9231 QPS - orig5163
  • 9089 QPS - fb5163
  • 7810 QPS - orig5610, performance_schema not compiled
  • 7365 QPS - orig5610, performance_schema=ON, default options
\n";
    assert!(text.starts_with(published), "{text}");
}

struct Overhead {
    off: f64,
    on: f64,
    cost: &'static str,
}

#[test]
fn the_second_texts_percentages_follow_from_its_numbers() {
    // It says "about 10%" and "9.4%".
    for Overhead { off, on, cost } in [
        Overhead { off: 4107.0, on: 3909.0, cost: "4.8" },
        Overhead { off: 7810.0, on: 7365.0, cost: "5.7" },
    ] {
        let steps = singles("update-index", &[(off, "off"), (on, "on")]);
        let text = report(&steps, &between(Layout::Overhead, "off", "on"));
        assert_eq!(
            collapsed(&text),
            [
                "update-index: cost in percent of QPS".to_owned(),
                "clients off on cost %".to_owned(),
                format!("1 {off} {on} {cost}"),
            ]
        );
    }
}

#[test]
fn the_fourth_texts_tables_come_out_as_published() {
    let opt = [(143.0, "4.0.30"), (178.0, "5.0.85"), (176.0, "5.1.63"), (203.0, "5.6.11")];
    let mut steps = loads("load", &[opt.as_slice(), &[(210.0, "5.6.11+ps")]].concat());
    for (at, note) in [(3, "no perf-schema"), (4, "perf-schema")] {
        steps[at].notes.insert("note".to_owned(), note.to_owned());
    }
    let text = report(&steps, &laid(Layout::Relative));
    assert_eq!(
        collapsed(&text),
        [
            "load: seconds, from the start to the end; 1 client",
            "Relative-perf is Seconds-for-4.0.30 / Seconds",
            "Seconds Relative-perf",
            "4.0.30 143 1",
            "5.0.85 178 0.80",
            "5.1.63 176 0.81",
            "5.6.11 203 0.70 -> no perf-schema",
            "5.6.11+ps 210 0.68 -> perf-schema",
        ]
    );
    let single = [(966.0, "4.0.30"), (1150.0, "5.0.85"), (1201.0, "5.1.63"), (1274.0, "5.6.11")];
    let text = report(&loads("load", &single), &laid(Layout::Relative));
    let lines = collapsed(&text);
    let published = ["4.0.30 966 1", "5.0.85 1150 0.84", "5.1.63 1201 0.80", "5.6.11 1274 0.76"];
    assert_eq!(&lines[3..], published);

    let lookups =
        [(14898.0, "4.0.30"), (12247.0, "5.0.85"), (10538.0, "5.1.63"), (10334.0, "5.6.11")];
    let steps = singles("point-select", &lookups);
    let first = Options { baseline: Some("4.0.30".to_owned()), ..laid(Layout::Relative) };
    let text = report(&steps, &first);
    assert_eq!(
        text.lines().take(7).collect::<Vec<_>>(),
        [
            "point-select: QPS, statements a second; 1 client",
            "Relative-perf is QPS / QPS-for-4.0.30",
            "          QPS  Relative-perf",
            "4.0.30  14898              1",
            "5.0.85  12247           0.82",
            "5.1.63  10538           0.71",
            "5.6.11  10334           0.69",
        ]
    );
    assert_eq!(report(&steps, &laid(Layout::Relative)), text, "the first label is the baseline");
}

#[test]
fn what_ran_to_its_end_is_told_in_seconds_unless_asked_otherwise() {
    let steps = loads("load", &[(143.25, "old"), (178.0, "new")]);
    let text = report(&steps, &in_full());
    assert_eq!(collapsed(&text)[0], "load: seconds, from the start to the end");
    assert_eq!(&collapsed(&text)[2..], ["143 old", "178 new"]);
    let first = &json(&steps, in_full())["tables"][0]["lines"][0];
    assert_eq!(first["conditions"]["window"][0], "to its end");
    let rows = report(&steps, &metric("rows"));
    assert_eq!(collapsed(&rows)[2], "111693 old");
    let text = report(&steps, &laid(Layout::List));
    assert!(text.starts_with("  • 143 s - old\n  • 178 s - new\n"), "{text}");
    // Beside a workload with a window, each table has its own.
    let both = [steps, vec![step(9, "old", 8, 1000.0)]].concat();
    let text = report(&both, &Options::default());
    assert!(text.contains("load: seconds") && text.contains("point-select: QPS"), "{text}");
}

/// The fourth text's totals of sql-bench, and what most of the last one's came from.
fn suites() -> Vec<Summary> {
    let totals = [(789.0, "4.0.30"), (921.0, "5.0.85"), (911.0, "5.1.63"), (1093.0, "5.6.11")];
    let mut steps = loads("suite-sql-bench", &totals);
    for (step, create_s) in steps.iter_mut().zip([100.0, 110.0, 105.0, 250.0]) {
        let test = |name: &str, wall_s: f64| {
            serde_json::json!({"name": name, "run": ["perl", name], "wall_s": wall_s,
                "user_s": wall_s / 2.0, "sys_s": wall_s / 4.0, "status": "ok"})
        };
        let tests = [test("create", create_s), test("others", step.measured_s - create_s)];
        let suite = serde_json::json!({"tests": tests, "output": null});
        step.suite = serde_json::from_value(suite).expect("a suite");
    }
    steps
}

#[test]
fn a_suite_is_told_test_by_test_and_in_total() {
    let text = report(&suites(), &laid(Layout::Suite));
    assert_eq!(
        collapsed(&text),
        [
            "suite-sql-bench: seconds, from the start to the end",
            "Relative-perf is Seconds-for-4.0.30 / Seconds",
            "test label wall s user s sys s Relative-perf",
            "create 4.0.30 100 50 25 1",
            "create 5.0.85 110 55 28 0.91",
            "create 5.1.63 105 52 26 0.95",
            "create 5.6.11 250 125 62 0.40",
            "others 4.0.30 689 344 172 1",
            "others 5.0.85 811 406 203 0.85",
            "others 5.1.63 806 403 202 0.85",
            "others 5.6.11 843 422 211 0.82",
            "total 4.0.30 789 394 197 1",
            "total 5.0.85 921 460 230 0.86",
            "total 5.1.63 911 456 228 0.87",
            "total 5.6.11 1093 546 273 0.72",
        ]
    );
    let relative = report(&suites(), &laid(Layout::Relative));
    assert!(collapsed(&relative).contains(&"5.6.11 1093 0.72".to_owned()), "{relative}");
    let mut named = suites();
    named[0].suite.as_mut().expect("a suite").tests[0].name = "total".to_owned();
    let text = report(&named, &laid(Layout::Suite));
    assert!(collapsed(&text).contains(&"total 4.0.30 100 50 25 1".to_owned()), "{text}");
    let error = try_report(&[step(0, "a", 8, 1.0)], &laid(Layout::Suite)).expect_err("no suite");
    assert_eq!(error.kind(), Kind::Data);
    let based = Options { baseline: Some("5.6.11".to_owned()), ..laid(Layout::Suite) };
    let error = try_report(&suites(), &based).expect_err("another flag chooses the base");
    assert!(error.hints()[0].contains("--order"), "{error}");
    let ordered = Options { order: vec!["5.6.11".to_owned()], ..laid(Layout::Suite) };
    let text = report(&suites(), &ordered);
    assert!(collapsed(&text).contains(&"total 5.6.11 1093 546 273 1".to_owned()), "{text}");
}

#[test]
fn the_first_texts_overhead_by_concurrency() {
    let clients = [8, 16, 32, 64, 128, 256];
    let off = [24446.0, 47464.0, 79788.0, 96777.0, 92565.0, 100_211.0];
    let on = [23429.0, 46270.0, 74870.0, 87650.0, 84117.0, 93382.0];
    let lines =
        [(off.to_vec(), "orig5610+bp1".to_owned()), (on.to_vec(), "orig5610+ps".to_owned())];
    let steps = seed_table(&lines, &clients);
    let options = between(Layout::Overhead, "orig5610+bp1", "orig5610+ps");
    let text = report(&steps, &options);
    assert_eq!(
        text.lines().take(9).collect::<Vec<_>>(),
        [
            "point-select: cost in percent of QPS",
            "clients  orig5610+bp1  orig5610+ps  cost %",
            "      8         24446        23429     4.2",
            "     16         47464        46270     2.5",
            "     32         79788        74870     6.2",
            "     64         96777        87650     9.4",
            "    128         92565        84117     9.1",
            "    256        100211        93382     6.8",
            "",
        ]
    );
    let range = "orig5610+ps costs 2.5-9.4% (less QPS than orig5610+bp1), most at 64 clients\n";
    assert!(text.contains(range), "{text}");
    let peaks = report(&steps, &laid(Layout::Peak));
    assert_eq!(
        peaks.lines().take(4).collect::<Vec<_>>(),
        [
            "point-select: QPS, statements a second; the best of each label",
            "  peak  clients  label",
            "100211      256  orig5610+bp1",
            " 93382      256  orig5610+ps",
        ]
    );
    let csv = report(&steps, &Options { format: Format::Csv, ..options });
    let mut rows = csv.lines();
    assert_eq!(
        rows.next(),
        Some("workload,clients,rate,metric,unit,from,to,from_value,to_value,cost_percent,notes")
    );
    let first = rows.next().expect("a row");
    let row = "point-select,8,,qps,statements/s,orig5610+bp1,orig5610+ps,24446,23429,4.16";
    assert!(first.starts_with(row), "{first}");
}

#[test]
fn an_overhead_tells_how_well_its_medians_are_known_when_runs_were_repeated() {
    let (off, on) = (step(0, "off", 8, 1000.0), step(1, "on", 8, 900.0));
    let mut steps = vec![step(0, "off", 16, 500.0), step(1, "on", 16, 400.0)];
    steps.extend(vec![repeat(&off, 2, 1010.0), off, repeat(&on, 2, 904.0), on]);
    // Only one label has these: they are not shown.
    let alone = step(0, "off", 32, 300.0);
    steps.extend([repeat(&alone, 2, 310.0), repeat(&alone, 3, 320.0)]);
    steps.push(alone);
    let text = report(&steps, &between(Layout::Overhead, "off", "on"));
    assert_eq!(
        collapsed(&text),
        [
            "point-select: cost in percent of QPS; medians of 1 to 2 repeats, ± half of the range",
            "clients off on cost %",
            "8 1005 ±5 902 ±2 10.2",
            "16 500 400 20.0",
        ]
    );
}

#[test]
fn a_division_by_zero_is_no_number() {
    let zero_at_16 = |order, label, qps| {
        vec![step(order, label, 8, 100.0), step(order, label, 16, qps), step(order, label, 32, 0.0)]
    };
    let steps = [zero_at_16(0, "a", 0.0), zero_at_16(1, "b", 50.0)].concat();
    let no_ratio = "no ratio where it would be a division by 0";
    for layout in [Layout::Delta, Layout::Overhead] {
        let options = between(layout, "a", "b");
        let text = report(&steps, &options);
        assert!(text.contains(no_ratio), "{text}");
        assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
        let rows = json(&steps, options.clone());
        let name = if layout == Layout::Delta { "change_percent" } else { "cost_percent" };
        assert!(rows["rows"][1][name].is_null() && rows["rows"][0][name] == 0.0, "{rows}");
        let csv = report(&steps, &Options { format: Format::Csv, ..options });
        assert!(!csv.contains("inf"), "{csv}");
    }
    let delta = report(&steps, &between(Layout::Delta, "a", "b"));
    assert!(collapsed(&delta)[2].ends_with("QPS at 8, 32"), "{delta}");
    let overhead = report(&steps, &between(Layout::Overhead, "a", "b"));
    assert_eq!(
        collapsed(&overhead)[2..5],
        ["8 100.0 100.0 0.0", "16 0.0 50.0 -", "32 0.0 0.0 0.0"]
    );
    let relative = report(&steps, &laid(Layout::Relative));
    let words = relative.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    assert!(words.into_iter().any(|line| line == "b 50.0 -"), "{relative}");
    assert_eq!(relative.matches(no_ratio).count(), 1, "{relative}");
    // Not a single change: the row is there all the same.
    let steps = [step(0, "a", 8, 0.0), step(1, "b", 8, 50.0)];
    let text = report(&steps, &between(Layout::Delta, "a", "b"));
    assert_eq!(collapsed(&text)[2], "point-select - - - QPS at 8");
}

#[test]
fn rows_of_changes_are_marked_where_a_number_is_doubtful() {
    let mut steps = vec![step(0, "a", 8, 100.0), step(1, "b", 8, 90.0)];
    for (name, order) in [("other", 2), ("third", 4)] {
        for (step, label) in [(order, "a"), (order + 1, "b")] {
            let mut step = self::step(step, label, 8, 100.0);
            name.clone_into(&mut step.workload.name);
            steps.push(step);
        }
    }
    steps[1].loadgen.profile = "debug".to_owned();
    steps[3].loadgen.profile = "debug".to_owned();
    steps[4].client.same_host = true;
    let delta = between(Layout::Delta, "a", "b");
    let text = report(&steps, &Options { notes: Notes::All, ..delta.clone() });
    let rows: Vec<&str> = text.lines().skip(2).take(3).collect();
    let ends = ["QPS at 8 *", "QPS at 8 *", "QPS at 8"];
    assert!(rows.iter().zip(ends).all(|(row, end)| row.ends_with(end)), "{text}");
    assert_eq!(text.matches("\n* ").count(), 2, "{text}");
    let codes = |at: usize| json(&steps, delta.clone())["rows"][at]["notes"].clone();
    assert_eq!([codes(0), codes(2)], ["debug_build", "same_host"].map(Value::from));
    // What all workloads have is said once.
    assert_eq!(text.matches("tables 8, rows 16000000").count(), 1, "{text}");
}

#[test]
fn a_cost_of_time_is_what_is_added() {
    // 203 s without and 210 s with.
    let steps = loads("load", &[(203.0, "off"), (210.0, "on")]);
    let text = report(&steps, &between(Layout::Overhead, "off", "on"));
    assert_eq!(collapsed(&text)[2], "1 203 210 3.4");
    assert!(text.lines().any(|line| line.starts_with("on ") && line.contains("3.4%")), "{text}");
    // The other way round it is a gain; the column keeps its sign.
    let text = report(&steps, &between(Layout::Overhead, "on", "off"));
    assert_eq!(collapsed(&text)[2], "1 210 203 -3.3");
    assert!(text.lines().any(|line| line.starts_with("off ") && line.contains("3.3%")), "{text}");
}

#[test]
fn ranges_of_change_read_like_the_fifth_text() {
    let changes = [
        ("READ_PK_POINT", [-12.0, -3.0, -4.0]),
        ("READ_PK_RANGE", [5.0, 16.0, 9.0]),
        ("READ_KEY_RANGE", [39.0, 30.0, 35.0]),
        ("READ_FTS", [10.0, 23.0, 22.0]),
        ("READ_KEY_POINT", [0.4, 0.4, 0.4]),
    ];
    let mut steps = Vec::new();
    for (at, (workload, percents)) in changes.iter().enumerate() {
        for (clients, percent) in [1, 16, 256].into_iter().zip(percents) {
            for (order, label, qps) in
                [(0, "5.0.27", 1000.0), (1, "5.0.32", 1000.0 * (1.0 + percent / 100.0))]
            {
                let mut step = step(2 * at as u32 + order, label, clients, qps);
                (*workload).clone_into(&mut step.workload.name);
                steps.push(step);
            }
        }
    }
    let text = report(&steps, &between(Layout::Delta, "5.0.27", "5.0.32"));
    assert_eq!(
        collapsed(&text),
        [
            "from 5.0.27 to 5.0.32: change in percent, more being better",
            "workload change least at most at of",
            "READ_PK_POINT -12 to -3% 1 16 QPS at 1, 16, 256",
            "READ_PK_RANGE 5-16% 1 16 QPS at 1, 16, 256",
            "READ_KEY_RANGE 30-39% 16 1 QPS at 1, 16, 256",
            "READ_FTS 10-23% 1 16 QPS at 1, 16, 256",
            "READ_KEY_POINT 0.4% 1 1 QPS at 1, 16, 256",
        ]
    );
    let json = json(&steps, between(Layout::Delta, "5.0.27", "5.0.32"));
    assert_eq!(json["layout"], "delta");
    let row = &json["rows"][3];
    assert_eq!((&row["workload"], &row["clients"]), (&"READ_PK_RANGE".into(), &1.into()));
    let change = row["change_percent"].as_f64().expect("a number");
    assert!((change - 5.0).abs() < 1e-9, "{change}");
}

fn json(steps: &[Summary], options: Options) -> Value {
    let text = report(steps, &Options { format: Format::Json, ..options });
    serde_json::from_str(&text).expect("JSON")
}

/// A step whose server's process cost so much an op.
fn costing(order: u32, label: &str, tps: f64, cpu_us: f64, switches: f64, read_kb: f64) -> Summary {
    let mut step = step(order, label, 40, tps);
    let ops = tps * 60.5;
    step.server.probed = Some(Probed {
        via: "command".to_owned(),
        first_s: -0.5,
        last_s: 60.1,
        process: Some(ProcessCost {
            pid: 7,
            user_s: ops * cpu_us / 1e6 * 0.75,
            sys_s: ops * cpu_us / 1e6 * 0.25,
            voluntary_switches: Some((ops * switches) as u64),
            involuntary_switches: Some(0),
            read_bytes: Some((ops * read_kb * 1024.0) as u64),
            write_bytes: Some(0),
            rss_bytes: None,
            threads: None,
        }),
        host: None,
    });
    let status = step.server.status.as_mut().expect("status");
    status.first_s = -0.5;
    status.deltas.insert("Innodb_data_reads".to_owned().into(), (ops * 0.782) as i64);
    step
}

#[test]
fn costs_of_an_op_are_absolute_and_relative_to_the_first() {
    let mut none = step(2, "unknown", 40, 100.0);
    none.server.status = None;
    let steps = [
        costing(0, "my5651", 275_383.0, 30.0, 5.151, 12.52),
        costing(1, "my9500", 234_075.0, 40.8, 5.048, 12.52),
        none,
    ];
    let text = report(&steps, &laid(Layout::PerOp));
    assert_eq!(
        collapsed(&text),
        [
            "point-select: cost of an op; 40 clients",
            "cpu/o ccpu/o cs/o r/o rKB/o wKB/o miss/o o/s dbms",
            "30.0 10.0 5.151 0.782 12.52 0 0 275383 my5651",
            "40.8 10.0 5.048 0.782 12.52 0 0 234075 my9500",
            "- 10.0 - - - - - 100 unknown",
            "--- relative to first result",
            "1.36 1.00 0.98 1.00 1.00 1.00 1.00 0.85 my9500",
            "- 1.00 - - - - - 3.6e-4 unknown",
        ]
    );
    assert!(text.contains("\ncpu/o: "), "each column is explained: {text}");
    let to = Options { baseline: Some("my9500".to_owned()), ..laid(Layout::PerOp) };
    let text = report(&steps, &to);
    let mut relative = text.lines().skip_while(|line| !line.starts_with("---"));
    assert!(relative.next().is_some_and(|line| line.ends_with(" my9500")), "{text}");
    assert!(relative.next().is_some_and(|line| line.starts_with(" 0.74 ")), "{text}");
    let mut elsewhere = steps.to_vec();
    elsewhere.push(step(3, "alone", 8, 100.0));
    let text = report(&elsewhere, &to);
    assert!(text.contains("the base is 0 or was not measured"), "{text}");
    let mut beside = steps.clone();
    beside[1].groups.push(Group { name: "writer".to_owned(), ..Group::default() });
    let whole = json(&beside, laid(Layout::PerOp));
    let json = json(&steps, laid(Layout::PerOp));
    let row = &json["rows"][1];
    assert_eq!(row["label"], "my9500");
    // The server's whole cost, which a note says.
    assert_eq!(whole["rows"][1]["server_cpu_us"], row["server_cpu_us"]);
    let codes = |at: usize| whole["rows"][at]["notes"].as_str().unwrap_or_default();
    assert_eq!([0, 1].map(|at| codes(at).contains("costs_beside")), [false, true]);
    let relative = row["server_cpu_relative"].as_f64().expect("a number");
    assert!((relative - 1.36).abs() < 1e-3, "{relative}");
    assert!(json["rows"][2]["server_cpu_us"].is_null());
}

/// The labels of the first text by what its servers had.
fn configured() -> Vec<Summary> {
    let five_six = |order, label: &str, instances: &str, checksum: &str, schema: &str| {
        let mut step = step(order, label, 8, 1.0);
        "5.6.10".clone_into(&mut step.server.version);
        "MySQL Community Server (GPL)".clone_into(&mut step.server.version_comment);
        for (name, value) in [
            ("innodb_buffer_pool_instances", instances),
            ("innodb_checksum_algorithm", checksum),
            ("performance_schema", schema),
            // Follows from it.
            ("performance_schema_digests_size", if schema == "ON" { "10000" } else { "-1" }),
            // Different at every start.
            ("pid_file", label),
            ("timestamp", label),
        ] {
            step.server.variables.insert(name.to_owned(), value.to_owned());
        }
        step
    };
    let mut old = step(5, "orig5163", 8, 1.0);
    "5.1.63".clone_into(&mut old.server.version);
    "Source distribution".clone_into(&mut old.server.version_comment);
    vec![
        five_six(0, "orig5610+bp8+fastcs", "8", "crc32", "OFF"),
        five_six(1, "orig5610+bp8", "8", "innodb", "OFF"),
        five_six(2, "orig5610+bp1+fastcs", "1", "crc32", "OFF"),
        five_six(3, "orig5610+bp1", "1", "innodb", "OFF"),
        five_six(4, "orig5610+ps", "1", "innodb", "ON"),
        old,
    ]
}

#[test]
fn the_first_texts_legend_is_computed_from_the_variables() {
    let text = report(&configured(), &laid(Layout::Settings));
    assert_eq!(
        text,
        "  \
  • orig5610+bp8+fastcs - 5.6.10 MySQL Community Server (GPL) with \
innodb_buffer_pool_instances=8, innodb_checksum_algorithm=crc32, performance_schema=OFF
  • orig5610+bp8 - same as orig5610+bp8+fastcs except innodb_checksum_algorithm=innodb
  • orig5610+bp1+fastcs - same as orig5610+bp8+fastcs except innodb_buffer_pool_instances=1
  • orig5610+bp1 - same as orig5610+bp8 except innodb_buffer_pool_instances=1
  • orig5610+ps - same as orig5610+bp1 except performance_schema=ON
  • orig5163 - 5.1.63 Source distribution

labels, by the settings of their servers
"
    );
    let json = json(&configured(), laid(Layout::Settings));
    let row = &json["rows"][1];
    assert_eq!(
        (&row["label"], &row["same_as"]),
        (&"orig5610+bp8".into(), &"orig5610+bp8+fastcs".into())
    );
    assert_eq!(row["settings"], serde_json::json!({"innodb_checksum_algorithm": "innodb"}));
}

#[test]
fn each_number_of_clients_has_a_list_and_its_own_footnotes() {
    let mut steps = vec![step(0, "a", 8, 10.0), step(0, "a", 16, 30.0), step(1, "b", 16, 40.0)];
    let warning = |code: &str| worded(code, &format!("of {code}"));
    steps[1].warnings.push(warning("drift"));
    let text = report(&steps, &Options { layout: Layout::List, ..in_full() });
    let (first, second) = text.split_once("; 16 clients\n").expect("two lists");
    assert!(
        first
            .starts_with("point-select: QPS, statements a second; 8 clients\n  • 10.0 QPS - a\n\n")
    );
    assert!(
        second.starts_with("  • 40.0 QPS - b\n  • 30.0 QPS - a *\n\n* of drift (a)\n"),
        "{text}"
    );
    assert!(!first.contains('*'), "{text}");
    // What all lists have stands below the last of them.
    assert_eq!(text.matches("tables 8, rows 16000000").count(), 1, "{text}");
    let text = report(&steps, &laid(Layout::List));
    assert_eq!(text.matches("8 tables x 16M rows").count(), 1, "{text}");
    assert!(text.lines().last().is_some_and(|line| line == "* of drift"), "{text}");
}

#[test]
fn labels_that_a_layout_has_no_use_for_are_refused() {
    let steps = [step(0, "a", 8, 1.0), step(1, "b", 16, 2.0)];
    let says = |options: &Options, what: &str| {
        let error = try_report(&steps, options).expect_err(what);
        let text = error.render();
        assert!(text.contains(what) && text.contains("hint:"), "{text}");
        assert_eq!(error.kind(), Kind::Usage, "{text}");
    };
    says(&between(Layout::List, "a", "b"), "takes no --new");
    says(&between(Layout::Delta, "a", "x"), "--new: no label 'x'");
    says(&Options { also: vec![Metric::TPS], ..laid(Layout::PerOp) }, "takes no --metric");
    says(&Options { metric: Metric::TPS, ..laid(Layout::Suite) }, "takes no --metric");
    says(&between(Layout::Delta, "a", "a"), "a is compared with itself");
    let related =
        |layout, label: &str| Options { baseline: Some(label.to_owned()), ..laid(layout) };
    says(&related(Layout::Peak, "a"), "takes no --baseline");
    says(&related(Layout::Relative, "x"), "--baseline: no label 'x'");
    let error =
        try_report(&steps, &between(Layout::Delta, "a", "b")).expect_err("no common column");
    assert_eq!(error.kind(), Kind::Data);
    // At 16 clients the baseline is not there.
    let text = report(&steps, &related(Layout::Relative, "a"));
    let is_named = |line: &str| line.starts_with("a ") && line.contains(" 16");
    assert!(text.lines().any(is_named), "{text}");
}

#[test]
fn every_layout_writes_every_format_of_hostile_labels() {
    let hostile = "\u{1b}]0;x\u{7}\u{202e}\r\n| =x`<script>";
    let mut steps =
        vec![step(0, hostile, 8, 1.0), step(1, "=b", 8, 0.0), step(1, "=b", 16, f64::MAX)];
    steps[1].server.version_comment = hostile.to_owned();
    steps[1].server.variables.insert(hostile.to_owned(), hostile.to_owned());
    steps[0].notes.insert("note".to_owned(), hostile.to_owned());
    for layout in
        ["workloads", "list", "relative", "delta", "overhead", "per-op", "peak", "settings"]
            .map(layout)
    {
        for format in [Format::Text, Format::Markdown, Format::Csv, Format::Json] {
            let options = match layout {
                Layout::Delta | Layout::Overhead => between(layout, hostile, "=b"),
                _ => laid(layout),
            };
            let text = report(&steps, &Options { format, ..options });
            let ok = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
            assert!(text.chars().all(ok) && text.ends_with('\n'), "{layout:?} {format:?} {text:?}");
            assert!(format != Format::Markdown || !text.contains("<script>"), "{text}");
        }
    }
}

fn layout(name: &str) -> Layout {
    clap::ValueEnum::from_str(name, false).expect("a layout")
}

#[test]
fn the_only_two_labels_need_no_flags() {
    let steps = [step(0, "a", 8, 100.0), step(1, "b", 8, 90.0)];
    for layout in [Layout::Delta, Layout::Overhead] {
        let bare = report(&steps, &laid(layout));
        assert_eq!(bare, report(&steps, &between(layout, "a", "b")), "{layout}");
    }
    let three = [steps.as_slice(), &[step(2, "c", 8, 80.0)]].concat();
    let error = try_report(&three, &laid(Layout::Delta)).expect_err("which?");
    assert!(error.kind() == Kind::Usage && error.to_string().contains("a, b, c"), "{error}");
}

#[test]
fn several_metrics_are_a_table_each_and_one_file() {
    let steps = [step(0, "a", 8, 100.0), step(1, "b", 8, 90.0)];
    let options = |format| Options {
        also: vec!["p99".parse().expect("a metric")],
        format,
        ..Options::default()
    };
    let text = report(&steps, &options(Format::Text));
    assert!(
        ["QPS,", "p99"].iter().all(|of| text.contains(&format!("point-select: {of}"))),
        "{text}"
    );
    let csv = report(&steps, &options(Format::Csv));
    let of = |metric: &str| csv.lines().filter(|line| line.contains(metric)).count();
    assert_eq!((csv.lines().count(), of(",qps,"), of(",p99,")), (5, 2, 2), "{csv}");
    let json: Value = serde_json::from_str(&report(&steps, &options(Format::Json))).expect("JSON");
    let names = json["tables"].as_array().expect("tables").iter().map(|t| &t["metric"]["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["qps", "p99"], "{json}");
    assert_eq!(json["metric"]["name"], "qps", "{json}");
    let one = super::json(&steps, &Options::default());
    assert_eq!(json["tables"][0], one["tables"][0], "the first is as it is alone");
    let list = Options { layout: Layout::List, ..options(Format::Json) };
    let list: Value = serde_json::from_str(&report(&steps, &list)).expect("JSON");
    assert_eq!(list["rows"].as_array().map(Vec::len), Some(4), "{list}");
}
