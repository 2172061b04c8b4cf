//! The other formats, and what hostile summaries make of all of them.

use super::{in_full, metric, related, repeat, report};
use crate::common::summaries::{step, worded};
use loadgen::report::{Format, Notes, Options};
use loadgen::summary::{Class, Outcome};
use loadgen::terms::Code;
use serde_json::Value;

#[test]
fn markdown_is_a_table_below_its_title() {
    let mut steps = [step(0, "a|b", 8, 1000.4), step(1, "<b>`x`_y", 16, 200.0)];
    steps[0].loadgen.profile = "debug".to_owned();
    let table = "**point-select: QPS, statements a second, by concurrent clients**\n\
                 \n\
                 | 8 | 16 | label |\n\
                 | ---: | ---: | :--- |\n\
                 | 1000 | - | a\\|b \\* |\n\
                 | - | 200 | \\<b\\>\\`x\\`\\_y |\n";
    let markdown = Options { format: Format::Markdown, ..Options::default() };
    assert_eq!(
        report(&steps, &markdown),
        format!(
            "{table}\n8 tables x 16M rows, uniform keys, tcp, 10 s warm-up + 60 s\n\
             \n\\* {}; {}\n",
            Code::DebugBuild.sentence(),
            Code::DebugBuild.advice(),
        )
    );
    let text = report(&steps, &Options { format: Format::Markdown, ..in_full() });
    let note = format!("\n\n\\* {} (a\\|b); ", Code::DebugBuild.sentence());
    assert!(text.starts_with(table) && text.contains(&note), "{text}");
}

#[test]
fn text_has_a_label_of_a_file_whole_whatever_its_length() {
    let long = "x".repeat(70_000);
    let steps = [step(0, &long, 8, 1000.4), step(1, "b", 8, 200.0)];
    let text = report(&steps, &Options::default());
    let ends = |end: &str| text.lines().any(|line| line.ends_with(end));
    assert!(ends(&format!("  {long}")) && ends("  b"), "{} bytes", text.len());
}

#[test]
fn csv_has_one_row_a_cell() {
    let mut steps = [
        step(0, "=cmd()", 8, 1000.5),
        step(1, "b,\"c\"\n", 16, 2.0),
        step(1, "b,\"c\"\n", 8, 500.25),
    ];
    steps[0].client.same_host = true;
    steps[2].server.class = Some(Class::IoBound);
    steps[2].server.durability = Some("bl0/dw0/trx2/?".to_owned());
    let csv = Options { format: Format::Csv, ..related("=cmd()", "qps") };
    assert_eq!(
        report(&steps, &csv),
        "workload,label,clients,rate,metric,unit,value,min,max,steps,baseline,relative,tables,rows,\
         distribution,statements,transport,server_version,started_at,notes,class,durability,\
         data_bytes,buffer_pool_bytes\n\
         point-select,'=cmd(),8,,qps,statements/s,1000.5,1000.5,1000.5,1,'=cmd(),1,8,16000000,\
         uniform,prepared,tcp,8.0.33,2026-11-20T00:00:08Z,same_host,,,32000000000,4294967296\n\
         point-select,\"b,\"\"c\"\"\\n\",8,,qps,statements/s,500.25,500.25,500.25,1,'=cmd(),\
         0.5,8,16000000,uniform,prepared,tcp,8.0.33,2026-11-20T00:01:08Z,,io-bound,bl0/dw0/trx2/?,\
         32000000000,4294967296\n\
         point-select,\"b,\"\"c\"\"\\n\",16,,qps,statements/s,2,2,2,1,'=cmd(),,8,16000000,uniform,\
         prepared,tcp,8.0.33,2026-11-20T00:01:16Z,,,,32000000000,4294967296\n"
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
    assert_eq!(
        table["columns"][1],
        serde_json::json!({"clients": 16, "rate": null, "metric": "qps"})
    );
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
    assert_eq!(line["conditions"]["tables"], serde_json::json!(["8"]));
    assert_eq!(line["conditions"]["warm_up"], serde_json::json!(["10 s"]));
    let note = &table["notes"][0];
    assert_eq!(note["code"], "same_host");
    assert!(note["text"].as_str().is_some_and(|text| text.contains("server's host")));
    assert_eq!(note["places"], serde_json::json!([{"line": 0, "columns": [0]}]));
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
    bad.warnings.push(worded(hostile, hostile));
    bad.outcome = Outcome::Aborted;
    bad.reason = Some(hostile.to_owned());
    let mut usual = step(1, "b", 8, 1.0);
    usual.workload.name = hostile.to_owned();
    bad.workload.options.insert(hostile.to_owned(), 7);
    usual.server.variables.insert(hostile.to_owned(), hostile.to_owned());
    for notes in [Notes::Brief, Notes::All] {
        for format in [Format::Text, Format::Markdown, Format::Csv, Format::Json] {
            let notes = notes.clone();
            let options = Options { format, notes, partial: true, ..related(hostile, "qps") };
            let text = report(&[bad.clone(), usual.clone()], &options);
            let turns = |c: char| ('\u{202a}'..='\u{202e}').contains(&c);
            let ok = |c: char| c == '\n' || !(c.is_control() || turns(c));
            assert!(text.chars().all(ok), "{text:?}");
            // One line each: the label does not start a new one.
            assert_eq!(text.lines().filter(|line| line.starts_with("| =x")).count(), 0, "{text}");
        }
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
