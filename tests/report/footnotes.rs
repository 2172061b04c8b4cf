//! Footnotes say what a reader of a line must know, once.

use crate::summaries::step;
use crate::{grid, json, metric, plain, report};
use loadgen::report::{Format, Layout, Options, render};
use loadgen::summary::{
    Class, Conditions, Outcome, Prepared, Summary, Verdict, VerdictKind, Warning,
};
use loadgen::terms::{Arrival, Spread};

#[test]
fn warnings_mark_their_line_and_say_where() {
    let warn = |step: &mut Summary, code: &str, message: &str| {
        step.warnings.push(Warning { code: code.to_owned(), message: message.to_owned() });
    };
    let mut steps = vec![
        step(0, "a", 8, 1.0),
        step(0, "a", 16, 1.0),
        step(1, "b", 8, 1.0),
        step(2, "c", 8, 1.0),
    ];
    warn(&mut steps[1], "client_busy", "the client was busy 93 %");
    warn(&mut steps[2], "client_busy", "the client was busy 95 %");
    warn(&mut steps[2], "cold", "pages were read");
    let text = plain(&steps);
    assert_eq!(
        &grid(&text)[1..],
        ["1        1      a †", "1        -      b † ‡", "1        -      c"]
    );
    assert!(text.contains("\n† the client was busy 93..95 % (a at 16; b)\n"), "{text}");
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
    assert!(text.contains("† measured with a debug build"), "{text}");
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
fn labels_whose_driver_data_or_commits_differ_say_so() {
    let mut steps = [step(0, "a", 8, 1.0), step(1, "b", 8, 1.0), step(2, "c", 8, 1.0)];
    for (step, class) in steps.iter_mut().zip([Class::IoBound, Class::IoBound, Class::Cached]) {
        step.server.class = Some(class);
    }
    steps[0].server.durability = Some("bl1s1/dw1/trx1/O_DIRECT".to_owned());
    steps[2].server.durability = Some("bl0/dw0/trx2/O_DIRECT".to_owned());
    steps[1].driver.capabilities.push("mariadb_metadata_cache".to_owned());
    let text = plain(&steps);
    assert_eq!(&grid(&text)[1..], ["1       a", "1       b †", "1       c ‡"]);
    let caches = "† other conditions: driver mysql_async with deprecate_eof and \
                  mariadb_metadata_cache instead of mysql_async with deprecate_eof\n";
    assert!(text.contains(caches), "{text}");
    let commits = "‡ other conditions: class cached instead of io-bound, durability \
                   bl0/dw0/trx2/O_DIRECT instead of bl1s1/dw1/trx1/O_DIRECT\n";
    assert!(text.contains(commits), "{text}");
    assert!(text.contains(", class io-bound, durability bl1s1/dw1/trx1/O_DIRECT\n"), "{text}");
}

#[test]
fn labels_whose_workload_was_another_say_so() {
    let mut steps = [step(0, "a", 8, 1.0), step(1, "b", 8, 1.0), step(2, "c", 8, 1.0)];
    steps[0].workload.options.insert("range_size".to_owned(), 100);
    steps[1].workload.options.insert("range_size".to_owned(), 10);
    steps[2].workload.options.insert("range_size".to_owned(), 100);
    steps[2].plan.charset = Some("latin1".to_owned());
    let text = plain(&steps);
    let note = "† other conditions: option range_size 10 instead of 100\n";
    assert!(text.contains(note), "{text}");
    let note = "‡ other conditions: charset latin1 instead of the driver's\n";
    assert!(text.contains(note), "{text}");
    assert!(text.contains("window 60 s, range_size 100\n"), "{text}");
}

#[test]
fn a_line_of_invocations_that_differ_says_so() {
    let mut second = step(9, "a", 16, 2.0);
    second.server.variables.insert("innodb_io_capacity".to_owned(), "400".to_owned());
    let text = plain(&[step(0, "a", 8, 1.0), second]);
    assert_eq!(grid(&text)[1], "1        2      a †");
    let note = "† its runs differ in: innodb_io_capacity 2000 and 400\n";
    assert!(text.contains(note), "{text}");
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
    assert_eq!(&grid(&text)[1..], ["1       a", "1       b † ‡", "1       c §"]);
    let note = "† other overheads: performance schema ON instead of OFF, slow query log ON instead \
                of OFF\n";
    assert!(text.contains(note), "{text}");
    assert!(
        text.contains("‡ other settings: userstat OFF instead of (absent)\n")
            && text.contains("§ other conditions: TLS TLS_AES_256_GCM_SHA384 instead of none\n"),
        "{text}"
    );
}

#[test]
fn labels_that_started_from_another_state_say_so() {
    let mut other = step(1, "b", 8, 1.0);
    let before =
        Prepared { warm: "pool".to_owned(), ahi: "cold".to_owned(), ..Prepared::default() };
    other.conditions = Some(Conditions { before: Some(before), ..Conditions::default() });
    let text = plain(&[step(0, "a", 8, 1.0), other]);
    let note = "† other conditions: before rows read and adaptive hash index cold instead of \
                nothing\n";
    assert!(text.contains(note), "{text}");
}

#[test]
fn a_percentile_with_few_values_beyond_it_is_no_number() {
    let mut few = step(1, "b", 8, 1.0);
    few.latency.service.count = 9_999;
    let steps = [step(0, "a", 8, 1.0), few];
    let text = report(&steps, &metric("p99.9"));
    assert!(text.contains("\n2400    a\n") && text.contains("\n   -    b †\n"), "{text}");
    let note =
        "† p99.9 is not shown: it takes 10000 values, for ten beyond it, and there were 9999";
    assert!(text.contains(note), "{text}");
    let files = json(&steps, &metric("p99.9"));
    assert!(files["tables"][0]["lines"][1]["cells"][0].is_null(), "{files}");
    assert_eq!(files["tables"][0]["notes"][0]["code"], "scarce");
    assert!(report(&steps, &metric("p99")).contains("\n1200    b\n"), "enough for p99");
}

fn judged(mut step: Summary, kind: VerdictKind, messages: &[&str]) -> Summary {
    let reason = |text: &&str| Warning { code: "x".to_owned(), message: (*text).to_owned() };
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
            "1        1      a †",
            "1        -      b ‡",
            "1        -      c §",
            "1        -      older"
        ]
    );
    for note in [
        "\n† client-bound: a thread was busy; late (a at 16)\n",
        "\n‡ noisy: others\n",
        "\n§ shared-host: full\n",
    ] {
        assert!(text.contains(note), "{note}: {text}");
    }
    assert!(!text.contains("took a part"), "{text}");
}

#[test]
fn no_layout_and_no_format_prints_it_without() {
    let of = |order, label, qps| {
        judged(step(order, label, 8, qps), VerdictKind::ClientBound, &["a thread was busy"])
    };
    let steps = [of(0, "a", 1.0), of(1, "b", 2.0)];
    let steps: Vec<&Summary> = steps.iter().collect();
    for layout in [
        Layout::Versions,
        Layout::List,
        Layout::Relative,
        Layout::Delta,
        Layout::Overhead,
        Layout::PerOp,
        Layout::Peak,
    ] {
        let pair = matches!(layout, Layout::Delta | Layout::Overhead);
        let label = |name: &str| pair.then(|| name.to_owned());
        for format in [Format::Text, Format::Markdown, Format::Csv, Format::Json] {
            let (baseline, new) = (label("a"), label("b"));
            let options = Options { layout, format, baseline, new, ..Options::default() };
            let text = render(&steps, &options).expect("a report");
            let (said, marked) = match format {
                Format::Csv | Format::Json => ("client_bound", true),
                Format::Text | Format::Markdown => {
                    ("† client-bound: a thread was busy", text.matches('†').count() >= 2)
                }
            };
            let whole = layout == Layout::Delta || marked;
            assert!(text.contains(said) && whole, "{layout:?} {format:?}: {text}");
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
    let text = plain(&steps);
    assert_eq!(
        &grid(&text)[1..],
        ["     1  a †", "     1  b ‡", "     1  older §", "     1  d † ¶ ††"]
    );
    for note in [
        "† arrivals in 8 queues, one an engine thread and table; one queue: --engine-threads 1 \
         --spread random (for one, and 1 more like it)",
        "‡ queues 1 instead of 8 at 8@1000: ",
    ] {
        assert!(text.contains(note), "{note}: {text}");
    }
    // The first one of the reference is cut short, and knows as much as the next one.
    steps.insert(0, steps[0].clone());
    steps[0].outcome = Outcome::Aborted;
    let text = report(&steps, &Options { partial: true, ..Options::default() });
    assert!(text.contains("unknown whether these are the same: queues"), "{text}");
}
