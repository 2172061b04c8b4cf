//! Footnotes say what a reader of a line must know, once.

use super::{grid, in_full, json, lines_of, metric, notes, plain, related, repeat, report};
use crate::common::summaries::{step, worded};
use loadgen::report::{Format, Layout, Notes, Options, render};
use loadgen::summary::{Class, Conditions, Outcome, Prepared, Summary, Verdict, VerdictKind};
use loadgen::terms::{Arrival, Code, Finding, Spread, Value as Told, merge};
use serde_json::Value as Json;

#[test]
fn warnings_mark_their_numbers_and_say_where() {
    let warn = |step: &mut Summary, code: &str, message: &str| {
        step.warnings.push(worded(code, message));
    };
    let mut steps = vec![
        step(0, "a", 8, 1.0),
        step(0, "a", 16, 1.0),
        step(1, "b", 8, 1.0),
        step(2, "c", 8, 1.0),
    ];
    let drift = |by: f64| {
        Finding::Known(
            Code::Drift,
            [Json::from("the rate"), "rose".into(), by.into()].map(Told::One).into(),
        )
    };
    steps[1].warnings.push(drift(0.93).into());
    steps[2].warnings.push(drift(0.95).into());
    warn(&mut steps[2], "cold_pool", "pages were read");
    warn(&mut steps[3], "skew", "keys are skewed");
    let text = plain(&steps);
    // An aside marks nothing.
    assert_eq!(
        &grid(&text)[1..],
        ["1.00    1.00*   a", "1.00       -    b *", "1.00       -    c"]
    );
    let both = [drift(0.93), drift(0.95)];
    let both = &merge(&both)[0];
    assert!(text.contains(&format!("\n* {both} (a at 16; b); {}\n", both.advice())), "{text}");
    assert!(text.contains("\n* pages were read (b)\n"), "{text}");
}

#[test]
fn same_host_and_debug_builds_are_said_once() {
    let mut steps = [step(0, "a", 8, 1.0), step(1, "b", 8, 1.0)];
    steps[0].client.same_host = true;
    steps[0].loadgen.profile = "debug".to_owned();
    steps[1].client.same_host = true;
    let text = plain(&steps);
    // Whose CPUs the client took is no doubt of its own.
    assert_eq!(&grid(&text)[1..], ["1.00    a *", "1.00    b"]);
    assert_eq!(lines_of(&steps, "debug_build"), [0]);
    assert_eq!(lines_of(&steps, "same_host"), [0, 1]);
    assert_eq!(text.matches(Code::SameHost.sentence()).count(), 1, "{text}");
    let own = worded("same_host", "of the summary");
    steps[0].warnings.push(own.clone());
    steps[1].warnings.push(own);
    let text = plain(&steps);
    let own = text.contains("* of the summary\n");
    assert!(own && !text.contains(Code::SameHost.sentence()), "{text}");
}

#[test]
fn labels_that_were_measured_otherwise_say_so() {
    let mut other = step(1, "b", 8, 1.0);
    other.plan.tables = 1;
    other.server.transport = "socket".to_owned();
    other.workload.statements[0].sql = "SELECT 1".to_owned();
    let text = plain(&[step(0, "a", 8, 1.0), other, step(2, "c", 8, 1.0)]);
    assert_eq!(&grid(&text)[1..], ["1.00    a", "1.00    b *", "1.00    c"]);
    let note = "* other conditions: tables 1 instead of 8, other SQL, transport socket instead of tcp \
                (b); ";
    assert!(text.contains(note), "{text}");
    let mut paced = step(1, "b", 8, 1.0);
    paced.plan.time_s = None;
    paced.plan.ops = Some(5000);
    let steps = [step(0, "a", 8, 1.0), paced];
    assert_eq!(lines_of(&steps, "conditions"), [1]);
    assert!(plain(&steps).contains("5000"));
}

#[test]
fn labels_are_held_against_the_baseline_where_there_is_one() {
    let mut steps = [step(0, "a", 8, 1.0), step(1, "b", 8, 1.0)];
    steps[1].plan.tables = 1;
    assert_eq!(lines_of(&steps, "conditions"), [1]);
    let notes = notes(&steps, &related("b", "qps"));
    let [conditions] = &notes.iter().filter(|note| note.0 == "conditions").collect::<Vec<_>>()[..]
    else {
        panic!("{notes:?}");
    };
    assert_eq!(conditions.2, [0]);
    assert!(conditions.1.contains("8 instead of 1"), "{conditions:?}");
}

#[test]
fn labels_whose_driver_data_or_commits_differ_say_so() {
    let mut steps = [step(0, "a", 8, 1.0), step(1, "b", 8, 1.0), step(2, "c", 8, 1.0)];
    for (step, class) in steps.iter_mut().zip([Class::IoBound, Class::IoBound, Class::Cached]) {
        step.server.class = Some(class);
    }
    steps[0].server.durability = Some("bl1s1/dw1/trx1/O_DIRECT".to_owned());
    steps[2].server.durability = Some("bl0/dw0/trx2/O_DIRECT".to_owned());
    steps[1].driver.capabilities.push("mariadb_metadata_cache".to_owned());
    let text = plain(&steps);
    assert_eq!(&grid(&text)[1..], ["1.00    a", "1.00    b *", "1.00    c *"]);
    let caches = "* other conditions: driver mysql_async with deprecate_eof and \
                  mariadb_metadata_cache instead of mysql_async with deprecate_eof (b); ";
    assert!(text.contains(caches), "{text}");
    let commits = "* other conditions: class cached instead of io-bound, durability \
                   bl0/dw0/trx2/O_DIRECT instead of bl1s1/dw1/trx1/O_DIRECT (c); ";
    assert!(text.contains(commits), "{text}");
    assert!(text.contains("bl1s1/dw1/trx1/O_DIRECT\n"), "{text}");
}

#[test]
fn labels_whose_workload_was_another_say_so() {
    let mut steps = [step(0, "a", 8, 1.0), step(1, "b", 8, 1.0), step(2, "c", 8, 1.0)];
    steps[0].workload.options.insert("range_size".to_owned(), 100);
    steps[1].workload.options.insert("range_size".to_owned(), 10);
    steps[2].workload.options.insert("range_size".to_owned(), 100);
    steps[2].plan.charset = Some("latin1".to_owned());
    let text = plain(&steps);
    let note = "* other conditions: option range_size 10 instead of 100 (b); ";
    assert!(text.contains(note), "{text}");
    let note = "* other conditions: charset latin1 instead of the driver's (c); ";
    assert!(text.contains(note), "{text}");
    assert!(text.contains("range_size 100\n"), "{text}");
}

#[test]
fn a_line_of_invocations_that_differ_says_so() {
    let mut second = step(9, "a", 16, 2.0);
    second.server.variables.insert("innodb_io_capacity".to_owned(), "400".to_owned());
    let steps = [step(0, "a", 8, 1.0), second];
    let text = plain(&steps);
    for of in ["innodb_io_capacity", "2000", "400"] {
        assert!(text.contains(of), "{of}: {text}");
    }
    assert_eq!(lines_of(&steps, "invocations"), [0]);
}

#[test]
fn each_of_many_notes_names_its_label() {
    let mut steps = Vec::new();
    for i in 0..10 {
        let mut step = step(i, &format!("l{i}"), 8, 1.0);
        step.warnings.push(worded(&format!("w{i}"), &format!("message {i}")));
        steps.push(step);
    }
    let text = plain(&steps);
    for i in 0..10 {
        assert!(text.contains(&format!("\n* message {i} (l{i})\n")), "{text}");
        assert_eq!(lines_of(&steps, &format!("w{i}")), [i]);
    }
}

#[test]
fn labels_whose_server_had_other_overheads_or_encryption_say_so() {
    let mut steps = [step(0, "a", 8, 1.0), step(1, "b", 8, 1.0), step(2, "c", 8, 1.0)];
    for step in &mut steps {
        step.server.variables.insert("slow_query_log".to_owned(), "OFF".to_owned());
    }
    steps[1].server.variables.insert("performance_schema".to_owned(), "ON".to_owned());
    steps[1].server.variables.insert("slow_query_log".to_owned(), "ON".to_owned());
    // Of what only one of them has nobody knows what it costs the other.
    steps[1].server.variables.insert("userstat".to_owned(), "OFF".to_owned());
    steps[2].server.tls_cipher = Some("TLS_AES_256_GCM_SHA384".to_owned());
    let text = plain(&steps);
    // Settings are what is compared; another way to the server is not.
    assert_eq!(&grid(&text)[1..], ["1.00    a", "1.00    b", "1.00    c *"]);
    for note in [
        "* other overheads: performance schema ON instead of OFF, slow query log ON instead of OFF \
         (b); ",
        "* other settings: userstat OFF instead of (absent) (b); ",
        "* other conditions: TLS TLS_AES_256_GCM_SHA384 instead of none (c); ",
    ] {
        assert!(text.contains(note), "{note}: {text}");
    }
}

#[test]
fn sizes_that_follow_from_the_performance_schema_are_no_other_settings() {
    let mut steps = [step(0, "a", 8, 1.0), step(1, "b", 8, 1.0)];
    for (step, size) in steps.iter_mut().zip(["-1", "10000"]) {
        let name = "performance_schema_digests_size".to_owned();
        step.server.variables.insert(name, size.to_owned());
    }
    let note = "* other settings: performance_schema_digests_size 10000 instead of -1 (b); ";
    assert!(plain(&steps).contains(note), "{}", plain(&steps));
    steps[1].server.variables.insert("performance_schema".to_owned(), "ON".to_owned());
    let text = plain(&steps);
    assert!(
        text.contains("* other overheads: performance schema ON instead of OFF (b); "),
        "{text}"
    );
    assert!(!text.contains("digests_size"), "{text}");
}

#[test]
fn labels_that_started_from_another_state_say_so() {
    let mut other = step(1, "b", 8, 1.0);
    let before =
        Prepared { warm: "pool".to_owned(), ahi: "cold".to_owned(), ..Prepared::default() };
    other.conditions = Some(Conditions { before: Some(before), ..Conditions::default() });
    let text = plain(&[step(0, "a", 8, 1.0), other]);
    let note = "* other conditions: before rows read and adaptive hash index cold instead of \
                nothing (b); ";
    assert!(text.contains(note), "{text}");
}

#[test]
fn a_pool_whose_rows_were_read_is_not_called_cold() {
    let is_cold = |warm: &str| {
        let mut step = step(0, "a", 8, 1.0);
        step.server.class = Some(Class::Cold);
        let before = Prepared { warm: warm.to_owned(), ..Prepared::default() };
        step.conditions = Some(Conditions { before: Some(before), ..Conditions::default() });
        report(&[step], &Options::default()).contains("cold")
    };
    assert_eq!([is_cold("none"), is_cold("pool")], [true, false]);
}

#[test]
fn a_percentile_with_few_values_beyond_it_is_no_number() {
    let mut few = step(1, "b", 8, 1.0);
    few.latency.service.count = 9_999;
    let steps = [step(0, "a", 8, 1.0), few];
    let text = report(&steps, &metric("p99.9"));
    assert_eq!(&grid(&text)[2..], ["2.40    a", "   -    b *"]);
    let values = [Json::from("p99.9"), 9_999.into(), 10_000.into()].map(Told::One).into();
    let scarce = Finding::Known(Code::Scarce, values);
    assert!(text.contains(&format!("\n* {scarce} (b); ")), "{text}");
    let files = json(&steps, &metric("p99.9"));
    assert!(files["tables"][0]["lines"][1]["cells"][0].is_null(), "{files}");
    assert_eq!(files["tables"][0]["notes"][0]["code"], "scarce");
    assert!(grid(&report(&steps, &metric("p99"))).contains(&"1.20    b"), "enough for p99");
}

fn judged(mut step: Summary, kind: VerdictKind, messages: &[&str]) -> Summary {
    let reason = |text: &&str| worded("x", text);
    step.verdict = Some(Verdict { kind, reasons: messages.iter().map(reason).collect() });
    step
}

#[test]
fn what_is_not_the_server_s_number_has_its_footnote() {
    let mut steps = vec![
        judged(step(0, "a", 8, 1.0), VerdictKind::Ok, &[]),
        judged(step(0, "a", 16, 1.0), VerdictKind::ClientBound, &["a thread was busy", "late"]),
        judged(step(1, "b", 8, 1.0), VerdictKind::Noisy, &["others"]),
        judged(step(2, "c", 8, 1.0), VerdictKind::SharedHost, &["full"]),
        step(3, "older", 8, 1.0),
    ];
    // Its verdict says so already.
    steps[3].client.same_host = true;
    let text = plain(&steps);
    assert_eq!(
        &grid(&text)[1..],
        [
            "1.00    1.00*   a",
            "1.00       -    b *",
            "1.00       -    c *",
            "1.00       -    older"
        ]
    );
    for (code, reasons) in [
        (Code::ClientBound, "a thread was busy; late (a at 16); "),
        (Code::Noisy, "others (b); "),
        (Code::SharedHost, "full (c); "),
    ] {
        let note = code.sentence().replace("{reasons}", reasons) + code.advice();
        assert!(text.contains(&format!("\n* {note}\n")), "{note}: {text}");
    }
    assert!(!text.contains(Code::SameHost.sentence()), "{text}");
}

#[test]
fn no_layout_and_no_format_prints_it_without() {
    let of = |order, label, qps| {
        judged(step(order, label, 8, qps), VerdictKind::ClientBound, &["a thread was busy"])
    };
    let steps = [of(0, "a", 1.0), of(1, "b", 2.0)];
    let steps: Vec<&Summary> = steps.iter().collect();
    // The sign of the note, and of the labels or the row: Markdown escapes it.
    let signs = |text: &str, mark: &str| text.matches(mark).count();
    for layout in [
        Layout::Versions,
        Layout::Workloads,
        Layout::List,
        Layout::Relative,
        Layout::Delta,
        Layout::Overhead,
        Layout::PerOp,
        Layout::Peak,
    ] {
        let pair = matches!(layout, Layout::Delta | Layout::Overhead);
        let label = |name: &str| pair.then(|| name.to_owned());
        for notes in [Notes::Brief, Notes::All] {
            for format in [Format::Text, Format::Markdown, Format::Csv, Format::Json] {
                let (baseline, new, notes) = (label("a"), label("b"), notes.clone());
                let options =
                    Options { layout, format, baseline, new, notes, ..Options::default() };
                let text = render(&steps, &options).expect("a report");
                let (said, marked) = match format {
                    Format::Csv | Format::Json => ("client_bound", true),
                    Format::Text => ("a thread was busy", signs(&text, " *") >= 1),
                    _ => ("a thread was busy", signs(&text, " \\*") >= 1),
                };
                assert!(text.contains(said) && marked, "{layout:?} {format:?}: {text}");
            }
        }
    }
}

#[test]
fn response_times_of_several_queues_say_so() {
    let paced = |order, label: &str, queues| {
        let mut step = step(order, label, 8, 1.0);
        step.plan.rate = Some(1000.0);
        step.plan.arrival = Some(Arrival::Poisson);
        step.plan.queues = queues;
        step
    };
    let mut steps = vec![
        paced(0, "a", Some(8)),
        paced(1, "b", Some(1)),
        paced(2, "older", None),
        paced(3, "d", Some(2)),
    ];
    steps[3].workload.spread = Spread::Random;
    steps[3].plan.engine_threads = 2;
    assert_eq!(lines_of(&steps, "queues"), [0, 3]);
    assert_eq!(lines_of(&steps, "other_queues"), [1, 3]);
    assert_eq!(lines_of(&steps, "unknown_conditions"), [2]);
    // The first one of the reference is cut short, and knows as much as the next one.
    steps.insert(0, steps[0].clone());
    steps[0].outcome = Outcome::Aborted;
    let notes = notes(&steps, &Options { partial: true, ..in_full() });
    let unknown = |(code, text, lines): &(String, String, Vec<u64>)| {
        code == "unknown_conditions" && text.contains("queues") && *lines == [2]
    };
    assert!(notes.iter().any(unknown), "{notes:?}");
}

#[test]
fn two_servers_under_one_label_are_noted_when_only_their_identities_differ() {
    let of = |minute: u32, uuid: &str, datadir: &str| {
        let mut run = repeat(&step(1, "8.0", 8, 1000.0), minute, 1000.0);
        for (name, value) in [("server_uuid", uuid), ("datadir", datadir)] {
            run.server.variables.insert(name.to_owned(), value.to_owned());
        }
        run
    };
    let codes = |steps: &[Summary]| -> Vec<String> {
        notes(steps, &in_full()).into_iter().map(|(code, ..)| code).collect()
    };
    let (place, made) = ("/var/lib/mysql/", "/tmp/loadgen-0123456789abcdef/data/");
    let several = "several_servers".to_owned();
    assert!(codes(&[of(1, "a", place), of(2, "b", place)]).contains(&several));
    assert!(!codes(&[of(1, "a", place), of(2, "a", place)]).contains(&several));
    assert!(!codes(&[of(1, "a", made), of(2, "b", made)]).contains(&several), "sandboxes");
}
