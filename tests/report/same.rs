//! What differs is never taken for the same: each field of a summary is changed by itself.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{again, json, lines_of, plain, report, try_report};
use crate::common::summaries::{histogram, sound, step};
use loadgen::error::Kind;
use loadgen::report::{Format, Layout, Notes, Options, Question, compare, explain};
use loadgen::summary::{Class, Summary};
use loadgen::terms::Arrival;
use serde_json::{Map, Value, json as value};

/// Tells whether docs/reference/conditions.md, which is made of the code, says why a field, or what it is a part of, is no condition.
fn is_free(path: &str) -> bool {
    static FREE: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let text = include_str!("../../docs/reference/conditions.md");
        let (_, list) =
            text.split_once("| field | why |").expect("the list of what does not count");
        let rows = list.lines().skip(2).take_while(|line| line.starts_with("| `"));
        rows.filter_map(|row| row.split('`').nth(1)).collect()
    });
    let below = |free: &&str| {
        path.strip_prefix(free).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    FREE.iter().any(below)
}

/// A summary in which no field is null, made from the schema: a new field is in it by itself.
fn full() -> Value {
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/summary.schema.json")).expect("JSON");
    let mut full = filled(&schema, &schema);
    full["schema"] = value!("loadgen.summary/1");
    full["started_at"] = value!("2026-11-20T10:45:00Z");
    full["workload"]["transactions"] = value!([{
        "weight": 1,
        "begin": true,
        "statement": [{
            "kind": "select",
            "sql": "SELECT 1",
            "params": [{ "key": "default" }],
            "expect": { "rows": 1 },
        }],
    }]);
    full["server"]["host_facts"]["memory_bytes"] = value!(16_u64 << 30);
    full["workload"]["schema"] = value!("sbtest");
    full["workload"]["spread"] = value!("pinned");
    full["plan"]["arrival"] = value!("poisson");
    full["plan"]["on_error"] = value!("abort");
    full["groups"][0]["arrival"] = value!("poisson");
    full["groups"][0]["workload"] = full["workload"].clone();
    full["loadgen"]["profile"] = value!("release");
    full["conditions"]["before"]["warm"] = value!("pool");
    // Links count where the traffic goes over them.
    full["client"]["same_host"] = value!(false);
    for host in ["client_host", "server_host"] {
        for bytes in ["rx_bytes", "tx_bytes"] {
            full["conditions"][host]["links"][0][bytes] = value!(1 << 20);
        }
    }
    for name in ["service", "response", "wait", "failed", "connect"] {
        full["latency"][name]["histogram"] = value!(histogram(&[100_000]));
    }
    full
}

fn filled(schema: &Value, root: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        return filled(&root["$defs"][name.trim_start_matches("#/$defs/")], root);
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(first) = schema[choice].as_array().and_then(|all| all.first()) {
            return filled(first, root);
        }
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    let kind = schema["type"].as_array().map_or(&schema["type"], |kinds| &kinds[0]);
    match kind.as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            let mut fields: Map<String, Value> = properties
                .iter()
                .map(|(name, schema)| (name.clone(), filled(schema, root)))
                .collect();
            if schema["additionalProperties"].is_object() {
                fields
                    .insert("some_name".to_owned(), filled(&schema["additionalProperties"], root));
            }
            Value::Object(fields)
        }
        Some("array") => Value::Array(vec![filled(&schema["items"], root)]),
        Some("integer") => value!(7),
        Some("number") => value!(7.0),
        Some("boolean") => value!(true),
        Some("string") => value!("a"),
        _ => Value::Null,
    }
}

/// A sweep in a closed and in an open loop, a load, a suite.
fn kinds() -> [(&'static str, Value); 4] {
    let without = |names: &[&str]| {
        let mut kind = full();
        for name in names {
            let (at, field) = name.split_once('.').unwrap_or(("", name));
            let place = if at.is_empty() { &mut kind } else { &mut kind[at] };
            place[field] = Value::Null;
        }
        kind
    };
    let closed = ["plan.rate", "plan.arrival", "plan.queues", "latency.response", "latency.wait"];
    let ends = ["plan.ops", "plan.time_s"];
    [
        ("closed loop", without(&[&["load", "suite", "plan.ops"], &closed[..]].concat())),
        ("open loop", without(&["load", "suite", "plan.time_s"])),
        ("load", without(&[&["suite", "conditions"], &ends[..], &closed[..]].concat())),
        ("suite", without(&[&["load", "conditions"], &ends[..], &closed[..]].concat())),
    ]
}

/// The paths of the fields that hold a value, as steps.
fn leaves(of: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let fields: Vec<(String, &Value)> = match of {
        Value::Object(fields) => fields.iter().map(|(name, v)| (name.clone(), v)).collect(),
        Value::Array(all) => all.iter().enumerate().map(|(at, v)| (at.to_string(), v)).collect(),
        Value::Null => return,
        _ => {
            found.push(path.clone());
            return;
        }
    };
    for (name, value) in fields {
        path.push(name);
        leaves(value, path, found);
        path.pop();
    }
}

fn pointer(path: &[String]) -> String {
    path.iter().fold(String::new(), |pointer, step| pointer + "/" + step)
}

/// A path as the table of free fields has it: without positions.
fn named(path: &[String]) -> String {
    let names = path.iter().filter(|step| !step.bytes().all(|b| b.is_ascii_digit()));
    names.cloned().collect::<Vec<_>>().join(".")
}

/// Other values of a field; the first that makes a summary is taken.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(on) => vec![value!(!on)],
        Value::Number(n) if n.is_u64() => vec![value!(n.as_u64().map(|n| n * 2 + 1))],
        Value::Number(n) => vec![value!(n.as_f64().map(|n| n * 2.0 + 1.0))],
        Value::String(text) => {
            // At the end of a long text, where cutting would hide it.
            let words = [
                "text", "io-bound", "random", "uniform", "continue", "aborted", "noisy", "measure",
            ]
            .map(Value::from);
            std::iter::once(value!(format!("{text}{}x", "-".repeat(200)))).chain(words).collect()
        }
        _ => Vec::new(),
    }
}

/// A summary with one field changed; none where it would be no summary.
fn changed(kind: &Value, path: &[String]) -> Option<Summary> {
    let pointer = pointer(path);
    let old = kind.pointer(&pointer)?;
    others(old).into_iter().filter(|new| new != old).find_map(|new| {
        let mut changed = kind.clone();
        *changed.pointer_mut(&pointer)? = new;
        serde_json::from_value(changed).ok()
    })
}

fn summary(kind: &Value) -> Summary {
    serde_json::from_value(kind.clone()).expect("a summary")
}

fn strict() -> Options {
    Options { strict: true, ..Options::default() }
}

/// What a strict report says besides its numbers, or none where it is refused.
fn notes(steps: &[Summary]) -> Option<String> {
    match try_report(steps, &Options { format: Format::Json, ..strict() }) {
        Ok(text) => {
            let json: Value = serde_json::from_str(&text).expect("JSON");
            let tables = json["tables"].as_array().expect("tables").iter();
            let notes: String = tables.map(|table| table["notes"].to_string()).collect();
            let text = report(steps, &Options { notes: Notes::All, ..strict() });
            let below = text.split_once("\n\n").map_or("", |(_, below)| below);
            Some(format!("{notes}{below}"))
        }
        Err(error) => {
            assert_eq!(error.kind(), Kind::Data, "{error}");
            None
        }
    }
}

/// The second of two steps, in an invocation of its own or not.
fn second(mut of: Summary, own_run: bool, label: &str) -> Summary {
    if own_run {
        of.run_id.push('b');
    }
    of.step_id = format!("{}-2", of.run_id);
    label.clone_into(&mut of.label);
    of
}

#[test]
fn every_field_is_refused_noted_or_free_within_a_cell() {
    let mut wrong = BTreeSet::new();
    for (kind, whole) in kinds() {
        let first = summary(&whole);
        let mut paths = Vec::new();
        leaves(&whole, &mut Vec::new(), &mut paths);
        assert!(paths.len() > 200, "{kind}: {} fields", paths.len());
        let same = [false, true].map(|own_run| {
            let same = notes(&[first.clone(), second(first.clone(), own_run, &first.label)]);
            (own_run, same.expect("the same is not refused"))
        });
        for path in &paths {
            let (name, other) = (named(path), changed(&whole, path));
            let Some(other) = other else {
                assert_eq!(name, "schema", "{kind}: {name} cannot be changed");
                continue;
            };
            for (own_run, same) in &same {
                let steps = [first.clone(), second(other.clone(), *own_run, &other.label)];
                let here = notes(&steps);
                let told = here.as_ref() != Some(same);
                // What a strict report refuses, another one shows of the newest invocation.
                let shows = || try_report(&steps, &Options::default()).is_ok();
                if here.is_none() && shows() != *own_run {
                    wrong.insert(format!("{kind}: {name} of one invocation and of two"));
                }
                if !told && !is_free(&name) {
                    wrong.insert(format!("{kind}: {name} is taken for the same"));
                }
                if here.is_none() && is_free(&name) {
                    wrong.insert(format!("{kind}: {name} is free, and refused"));
                }
            }
        }
    }
    assert_eq!(wrong, BTreeSet::new());
}

#[test]
fn every_field_is_named_or_free_between_labels() {
    let mut wrong = BTreeSet::new();
    for (kind, whole) in kinds() {
        let first = summary(&whole);
        let mut paths = Vec::new();
        leaves(&whole, &mut Vec::new(), &mut paths);
        let same = notes(&[first.clone(), second(first.clone(), true, "b")]).expect("a report");
        for path in &paths {
            let name = named(path);
            let Some(other) = changed(&whole, path) else { continue };
            let here = notes(&[first.clone(), second(other, true, "b")]).expect("a report");
            if here == same && !is_free(&name) {
                wrong.insert(format!("{kind}: {name} is not named"));
            }
        }
    }
    assert_eq!(wrong, BTreeSet::new());
}

#[test]
fn a_field_that_one_summary_lacks_is_no_reason_to_refuse() {
    for (kind, whole) in kinds() {
        let first = summary(&whole);
        let same = notes(&[first.clone(), second(first.clone(), true, &first.label)]);
        let mut paths = Vec::new();
        leaves(&whole, &mut Vec::new(), &mut paths);
        for path in &paths {
            let (last, above) = path.split_last().expect("a name");
            let mut older = whole.clone();
            match older.pointer_mut(&pointer(above)).expect("there") {
                Value::Object(fields) => fields.remove(last),
                _ => continue,
            };
            let Ok(older) = serde_json::from_value::<Summary>(older) else { continue };
            let here = notes(&[first.clone(), second(older, true, &first.label)]);
            let name = named(path);
            // These say something by not being there.
            let says = [
                "plan.",
                "server.tls_cipher",
                "server.class",
                "server.durability",
                "loadgen.revision",
                "workload.transactions.",
                "workload.schema",
                "workload.options.",
                "workload.script.options.",
                "workload.statements.repeat",
                "server.variables.",
                "load.",
                "conditions.before.",
                "groups.",
            ];
            if !says.iter().any(|prefix| name.starts_with(prefix)) && !is_free(&name) {
                assert!(here.is_some(), "{kind}: without {name} it is refused");
                assert_ne!(here, same, "{kind}: without {name} nothing is noted");
            }
        }
    }
}

#[test]
fn a_summary_that_does_not_tell_repeats_is_noted_when_others_do() {
    let mut new = step(0, "a", 8, 100.0);
    new.workload.option_defaults = Some(std::collections::BTreeMap::new());
    new.workload.statements[0].repeat = 10;
    let old = again(&step(0, "a", 8, 100.0), 9);
    let notes = notes(&[new, old]).expect("not refused");
    assert!(notes.contains("unknown_conditions") && notes.contains("repeats"), "{notes}");
}

/// Two labels that differ in one thing.
fn two(change: fn(&mut Summary)) -> [Summary; 2] {
    let mut other = step(1, "b", 8, 50.0);
    change(&mut other);
    let mut steps = [step(0, "a", 8, 100.0), other];
    for step in &mut steps {
        step.workload.option_defaults = Some(std::collections::BTreeMap::new());
    }
    steps
}

#[test]
fn labels_with_other_operations_are_neither_compared_nor_explained() {
    type Change = (&'static str, fn(&mut Summary));
    let changes: [Change; 5] = [
        ("repeats", |s| {
            s.workload.statements[0].repeat = 10;
        }),
        ("option skip_trx", |s| {
            s.workload.options.insert("skip_trx".to_owned(), 1);
        }),
        ("tables of", |s| s.workload.schema = "phptest".to_owned()),
        ("SQL", |s| s.workload.statements[0].sql.push_str(" FOR UPDATE")),
        ("distribution", |s| s.workload.distribution = "zipf:0.99".to_owned()),
    ];
    for (name, change) in changes {
        let steps = two(change);
        let steps: Vec<&Summary> = steps.iter().collect();
        let question = Question {
            base: "a".to_owned(),
            new: "b".to_owned(),
            metric: "qps".parse().expect("a metric"),
            floor: 0.02,
            ..Question::default()
        };
        let contrast =
            Question { base: "a".to_owned(), new: "b".to_owned(), ..Question::default() };
        let compared = compare(&steps, &question).map(|_| ()).expect_err(name);
        let explained = explain(&steps, &contrast).expect_err(name);
        for error in [compared, explained] {
            assert_eq!(error.kind(), Kind::Data, "{name}");
            assert!(error.to_string().contains(name), "{name}: {error}");
        }
    }
}

#[test]
fn parameters_weights_and_begin_of_one_workload_are_told_apart() {
    let of = |weight: u32, begin: bool, key: &str| {
        let mut step = step(0, "a", 8, 100.0);
        step.workload.transactions = Some(value!([{
            "weight": weight,
            "begin": begin,
            "statement": [{ "sql": "SELECT 1", "params": [{ "key": key }] }],
        }]));
        step
    };
    let first = of(1, false, "default");
    for (other, says) in [
        (of(3, false, "default"), "transaction 1 weight 1 and 3"),
        (of(1, true, "default"), "transaction 1 begin false and true"),
        (of(1, false, "zipf:0.9"), "transaction 1 statement 1 params"),
    ] {
        let mut other = other;
        other.run_id.push('b');
        let error = try_report(&[first.clone(), other], &strict()).expect_err("refused");
        assert!(error.to_string().contains(says), "{says}: {error}");
    }
}

#[test]
fn options_that_are_not_as_usual_stand_below_the_table() {
    let mut step = sound();
    for (name, value) in [("range_size", 200), ("skip_trx", 0), ("point_selects", 10)] {
        step.workload.options.insert(name.to_owned(), value);
    }
    let usual = [("range_size", 100), ("skip_trx", 0), ("point_selects", 10)];
    step.workload.option_defaults = Some(usual.map(|(name, n)| (name.to_owned(), n)).into());
    let text = plain(&[step]);
    assert!(text.contains("range_size 200\n"), "{text}");
    assert!(!text.contains("skip_trx") && !text.contains("point_selects"), "{text}");
}

#[test]
fn long_values_are_told_apart_and_none_is_left_uncounted() {
    let mut first = step(0, "a", 8, 100.0);
    for name in 0..20 {
        first.server.variables.insert(format!("v{name:02}"), "x".repeat(100));
    }
    let mut other = first.clone();
    other.label = "b".to_owned();
    other.run_id = "b".to_owned();
    for value in other.server.variables.values_mut().filter(|value| value.starts_with("xx")) {
        value.push_str(" and more");
    }
    let found = json(&[first, other], &Options::default());
    let note = found["tables"][0]["notes"][0]["text"].as_str().expect("a note");
    assert!(note.contains("and more") && note.contains("14 more"), "{note}");
}

#[test]
fn a_server_that_was_exchanged_within_one_run_is_refused() {
    let first = step(0, "a", 8, 100.0);
    let mut other = again(&first, 0);
    other.step_id.push('b');
    other.server.version = "11.8.2-MariaDB".to_owned();
    let error = try_report(&[first, other], &Options::default()).expect_err("refused");
    let versions = ["8.0.33", "11.8.2-MariaDB"];
    assert!(versions.iter().all(|of| error.to_string().contains(of)), "{error}");
}

#[test]
fn what_an_older_summary_does_not_know_pools_no_others() {
    let of = |order: u32, engine: Option<&str>| {
        let mut step = step(order, "a", 8, 100.0);
        step.server.table_formats = engine.map(|engine| vec![engine.to_owned()]);
        step
    };
    let steps = [of(0, None), of(1, Some("InnoDB")), of(2, Some("MyISAM"))];
    let error = try_report(&steps, &strict()).expect_err("refused");
    assert!(["InnoDB", "MyISAM"].iter().all(|of| error.to_string().contains(of)), "{error}");
    try_report(&steps[..2], &strict()).expect("unknown is no difference");
}

#[test]
fn what_an_older_repeat_does_not_know_hides_no_other_operation() {
    let of = |order: u32, label: &str, key: Option<&str>| {
        let mut step = step(order, label, 8, 100.0);
        step.workload.transactions = key.map(|key| {
            value!([{
                "weight": 1,
                "begin": false,
                "statement": [{ "sql": "SELECT 1", "params": [{ "key": key }] }],
            }])
        });
        step
    };
    let keys = [("a", None), ("a", Some("default")), ("b", None), ("b", Some("zipf:0.9"))];
    let steps: Vec<Summary> =
        (0..).zip(keys).map(|(at, (label, key))| of(at, label, key)).collect();
    let steps: Vec<&Summary> = steps.iter().collect();
    let contrast = Question { base: "a".to_owned(), new: "b".to_owned(), ..Question::default() };
    let error = explain(&steps, &contrast).expect_err("refused");
    assert!(error.to_string().contains("params"), "{error}");
}

#[test]
fn tables_of_ones_own_that_grew_are_noted() {
    let of = |order: u32, bytes: u64| {
        let mut step = step(order, "a", 8, 100.0);
        (step.plan.tables, step.server.data_bytes) = (0, Some(bytes));
        step
    };
    let notes = |bytes: u64| notes(&[of(0, 16 << 20), of(1, bytes)]).expect("a report");
    assert!(notes(900 << 20).contains("1024 MiB"));
    assert!(!notes(17 << 20).contains("invocations"), "an estimate");
}

#[test]
fn commands_of_one_program_that_were_asked_for_something_else_are_told_apart() {
    let of = |order: u32, asked: Option<&str>| {
        let mut step = summary(&kinds()[0].1);
        step.run_id = format!("{order:016x}");
        step.step_id = format!("{order:016x}-1");
        let command = &mut step.experiment.as_mut().expect("full").commands[0];
        command.asked = asked.map(str::to_owned);
        step
    };
    assert!(notes(&[of(0, Some("12ab")), of(1, Some("12ab"))]).is_some());
    assert!(notes(&[of(0, Some("12ab")), of(1, Some("12ac"))]).is_none());
    assert!(notes(&[of(0, Some("12ab")), of(1, None)]).expect("unknown").contains("arguments"));
}

#[test]
fn variables_that_a_server_did_not_tell_are_unknown() {
    let first = step(0, "a", 8, 100.0);
    let mut silent = again(&first, 1);
    silent.server.variables.clear();
    let mut other = again(&first, 2);
    other.server.variables.insert("innodb_io_capacity".to_owned(), "333".to_owned());
    let notes = notes(&[first.clone(), silent.clone()]).expect("not refused");
    assert!(notes.contains("unknown_conditions") && notes.contains("variables"), "{notes}");
    let error = try_report(&[silent, first, other], &strict()).expect_err("refused");
    assert!(error.to_string().contains("innodb_io_capacity"), "{error}");
}

#[test]
fn an_open_loop_beside_a_closed_one_says_what_else_is_other() {
    let mut open = step(1, "b", 8, 100.0);
    (open.plan.rate, open.plan.arrival) = (Some(100.0), Some(Arrival::Poisson));
    let closed = step(0, "a", 8, 100.0);
    assert!(lines_of(&[closed.clone(), open.clone()], "conditions").is_empty());
    open.plan.rows = 77;
    let steps = [closed, open];
    assert_eq!(lines_of(&steps, "conditions"), [1]);
    let other = notes(&steps).expect("a report");
    assert!(other.contains(" 77 "), "{other}");
}

#[test]
fn a_cell_of_two_classes_is_noted_in_any_line() {
    let of = |order: u32, label: &str, class: Class| {
        let mut step = step(order, label, 8, 100.0);
        step.server.class = Some(class);
        step
    };
    let steps = [of(0, "a", Class::Cached), of(1, "b", Class::Cached), of(2, "b", Class::IoBound)];
    let notes = notes(&steps).expect("a report");
    assert!(notes.contains("io-bound"), "{notes}");
}

#[test]
fn the_legend_tells_long_values_and_mixed_labels_apart() {
    let of = |order: u32, label: &str, end: &str| {
        let mut step = step(order, label, 8, 100.0);
        let value = "x".repeat(200) + end;
        step.server.variables.insert("optimizer_switch".to_owned(), value);
        step
    };
    let legend = Options { layout: Layout::Settings, ..Options::default() };
    let text = |steps: &[Summary]| try_report(steps, &legend).expect("a report");
    let two = text(&[of(0, "a", "one"), of(1, "b", "two")]);
    assert!(two.contains("two"), "{two}");
    let [alike, mixed] = ["one", "two"].map(|end| {
        let mut other = of(1, "a", end);
        other.plan.clients = 16;
        text(&[of(0, "a", "one"), other])
    });
    assert_ne!(mixed, alike, "runs that differ are told");
}

#[test]
fn a_log_in_another_place_is_noted_and_one_that_moved_with_its_server_is_not() {
    let of = |order: u32, datadir: &str, log: &str| {
        let mut step = step(order, "a", 8, 100.0);
        for (name, value) in [("datadir", datadir), ("innodb_log_group_home_dir", log)] {
            step.server.variables.insert(name.to_owned(), value.to_owned());
        }
        step
    };
    let notes = |other: Summary| notes(&[of(0, "/a/", "./"), other]).expect("a report");
    let moved = notes(of(1, "/a/", "/nvme/"));
    assert!(moved.contains("innodb_log_group_home_dir"), "{moved}");
    for log in ["/b/", "."] {
        let whole = notes(of(1, "/b/", log));
        assert!(whole.contains("datadir") && !whole.contains("innodb_log_group"), "{whole}");
    }
}

#[test]
fn data_that_loadgen_keeps_are_noted_when_they_are_in_another_place() {
    let notes = |dirs: [&str; 2], pid_files: [&str; 2]| {
        let of = |at: usize| {
            let mut step = step(at as u32, ["5.6", "9.7"][at], 8, 100.0);
            for (name, value) in [("datadir", dirs[at]), ("pid_file", pid_files[at])] {
                step.server.variables.insert(name.to_owned(), value.to_owned());
            }
            step
        };
        notes(&[of(0), of(1)]).expect("a report")
    };
    let own = ["/tmp/loadgen-0123456789abcdef/pid", "/tmp/loadgen-fedcba9876543210/pid"];
    let there = ["/srv/kept-16k/5.6/data/", "/srv/kept-4k/9.7/data/"];
    let same = notes(there, own);
    assert!(!same.contains("datadir"), "{same}");
    let moved = notes(["/srv/kept/5.6/data/", "/nvme/kept/9.7/data/"], own);
    assert!(moved.contains("datadir /nvme instead of /srv"), "{moved}");
    let others = notes(there, ["/run/a.pid", "/run/b.pid"]);
    assert!(others.contains("datadir"), "{others}");
}

#[test]
fn the_name_of_an_option_begins_no_line_of_its_own() {
    let mut step = sound();
    step.workload.options.insert("x\nerror: y".to_owned(), 7);
    let text = plain(&[step]);
    assert!(text.contains("x\\nerror: y"), "{text}");
}
