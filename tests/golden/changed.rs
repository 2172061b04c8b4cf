//! What a report says of two summaries that differ in one field, for each field.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Seen, golden, hold, loadgen};

const BASES: [&str; 4] = [
    "closed/10.11_read-write_c2_n1",
    "open/10.11_point-select_c2_r200_n1",
    "timed/10.11_load-extended_c1_n1",
    "timed/10.11_suite-commands_c1_n1",
];

/// Fields that tell summaries from each other, or without which one is none.
const OWN: [&str; 6] = ["/label", "/run_id", "/step_id", "/started_at", "/outcome", "/schema"];

/// Other members of closed sets, by the end of the field's place.
const OTHERS: [(&str, &str); 16] = [
    ("/loadgen/profile", "debug"),
    ("/workload/schema", "phptest"),
    ("/workload/mode", "text"),
    ("/workload/mode", "prepared"),
    ("/load/mode", "single"),
    ("/load/source", "dump"),
    ("/distribution", "zipf:0.9"),
    ("/spread", "random"),
    ("/on_error", "continue"),
    ("/arrival", "uniform"),
    ("/class", "io-bound"),
    ("/transport", "tcp"),
    ("/phase", "drain"),
    ("/phase", "measure"),
    ("/verdict/kind", "ok"),
    ("/kind", "update"),
];

#[test]
fn changed() {
    let mut seen = Seen { contract: String::new(), text: String::new() };
    for base in BASES {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("dir");
        fs::create_dir(&dir).expect("a directory");
        let fields = write_changed(base, &dir);
        let output = loadgen(home.path())
            .args(["report", dir.to_str().expect("UTF-8"), "--format", "json", "--skip-bad"])
            .output()
            .expect("the program runs");
        let _ = writeln!(seen.contract, "{base}, {fields} fields\nexit {:?}", output.status.code());
        seen.contract += &differences(&output.stdout);
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        seen.text += &stderr.replace(home.path().to_str().expect("UTF-8"), "{home}");
    }
    hold("changed", &seen);
}

/// Writes a summary and, for each field of it, one in which that differs; the label names it.
fn write_changed(base: &str, dir: &Path) -> usize {
    let path = golden().join(format!("summaries/{base}.json"));
    let text = fs::read_to_string(&path).expect("a kept summary");
    let mut first: Value = serde_json::from_str(&text).expect("JSON");
    first["label"] = "base".into();
    fs::write(dir.join("base.json"), first.to_string()).expect("written");
    let mut fields = Vec::new();
    leaves(&first, "", &mut fields);
    fields.retain(|field| !OWN.contains(&field.as_str()) && !field.ends_with("/histogram"));
    for (at, field) in fields.iter().enumerate() {
        let mut changed = first.clone();
        changed["label"] = field.as_str().into();
        changed["run_id"] = format!("{:016x}", at + 1).into();
        changed["step_id"] = format!("{:016x}-1", at + 1).into();
        // A later one each, in their order.
        changed["started_at"] = format!("2026-11-23T00:{:02}:{:02}Z", at / 60, at % 60).into();
        let held = changed.pointer_mut(field).expect("a leaf");
        *held = match &*held {
            Value::Bool(held) => (!*held).into(),
            Value::Number(held) if held.is_f64() => (held.as_f64().expect("f64") + 1.0).into(),
            Value::Number(held) => (held.as_i64().expect("i64") + 1).into(),
            Value::String(held) => another(field, held).into(),
            held => unreachable!("a leaf: {held}"),
        };
        fs::write(dir.join(format!("{at:03}.json")), changed.to_string()).expect("written");
    }
    fields.len()
}

/// Another text than the one that a field holds, of the same set if it is of one.
fn another(field: &str, held: &str) -> String {
    let other = OTHERS.iter().find(|(end, other)| field.ends_with(end) && *other != held);
    other.map_or_else(|| format!("{held}x"), |(_, other)| (*other).to_owned())
}

/// The places of texts, numbers and truths.
fn leaves(of: &Value, place: &str, found: &mut Vec<String>) {
    match of {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, &format!("{place}/{name}"), found);
            }
        }
        Value::Array(all) => {
            for (at, value) in all.iter().enumerate() {
                leaves(value, &format!("{place}/{at}"), found);
            }
        }
        Value::Null => {}
        _ => found.push(place.to_owned()),
    }
}

/// A line for each label of which something else is said than of the base.
fn differences(report: &[u8]) -> String {
    let mut text = String::new();
    let report: Value = serde_json::from_slice(report).expect("JSON");
    for table in report["tables"].as_array().expect("tables") {
        let _ = writeln!(text, "{}", table["workload"]);
        let lines = table["lines"].as_array().expect("lines");
        let at = lines.iter().position(|line| line["label"] == "base");
        let base = at.map(|at| said(table, at)).unwrap_or_default();
        for (at, line) in lines.iter().enumerate() {
            let said = said(table, at);
            let (new, gone) = (said.difference(&base), base.difference(&said));
            let new: Vec<&str> = new.map(String::as_str).collect();
            let codes = gone.filter(|gone| !gone.contains('='));
            let gone: Vec<String> = codes.map(|gone| format!("not {gone}")).collect();
            if !new.is_empty() || !gone.is_empty() {
                let label = line["label"].as_str().expect("a label");
                let all = [gone.join(" "), new.join(" ")].join(" ");
                let _ = writeln!(text, "{label}: {}", all.trim());
            }
        }
    }
    text
}

/// The codes of a line's footnotes, and its conditions.
fn said(table: &Value, at: usize) -> BTreeSet<String> {
    let notes = table["notes"].as_array().expect("notes").iter().filter(|note| {
        let places = note["places"].as_array().expect("places");
        places.iter().any(|place| place["line"] == at)
    });
    let codes = notes.map(|note| note["code"].as_str().expect("a code").to_owned());
    let conditions = table["lines"][at]["conditions"].as_object().expect("conditions");
    codes.chain(conditions.iter().map(|(name, value)| format!("{name}={value}"))).collect()
}
