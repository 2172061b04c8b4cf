//! Which steps share a cell, and what it shows.

use super::{again, grid, in_full, json, lines_of, notes, plain, repeat, report, try_report};
use crate::common::summaries::step;
use loadgen::error::{Error, Kind};
use loadgen::report::{Format, Options, Question, compare, explain, gates, page, render};
use loadgen::summary::{Conditions, HostFacts, HostState, Link, Outcome, Summary};
use loadgen::terms::{Code, Finding, Gate, StatementMode, Value};

#[test]
fn a_cell_is_the_median_of_its_repeats() {
    let first = step(0, "a", 8, 100.0);
    let steps = vec![
        first.clone(),
        repeat(&first, 2, 900.0),
        repeat(&first, 3, 200.0),
        step(0, "a", 16, 400.0),
    ];
    let text = plain(&steps);
    assert_eq!(grid(&text)[1], "200 [100–900]  400     a", "half of it would reach below zero");
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
    let both = [first.clone(), second.clone()];
    let text = plain(&both);
    assert_eq!(grid(&text)[1], "200 ±100  a");
    assert_eq!(lines_of(&both, "several_servers"), [0]);
    // A server that tells nothing but its port, in a container with the host's network.
    let twins = [(1, "3306"), (2, "3307")].map(|(at, port)| {
        let mut twin = again(&first, at);
        for unknown in ["datadir", "hostname", "server_uuid", "server_uid"] {
            twin.server.variables.remove(unknown);
        }
        twin.server.variables.insert("port".to_owned(), port.to_owned());
        twin
    });
    assert_eq!(lines_of(&twins, "several_servers"), [0]);
    assert!(lines_of(&twins[..1], "several_servers").is_empty());

    let changes: [Change; 8] = [
        ("innodb_io_capacity 2000 and 400", |s| {
            s.server.variables.insert("innodb_io_capacity".to_owned(), "400".to_owned());
        }),
        ("performance_schema OFF and (absent)", |s| {
            s.server.variables.remove("performance_schema");
        }),
        ("new_one (absent) and 1", |s| {
            s.server.variables.insert("new_one".to_owned(), "1".to_owned());
        }),
        ("rows 16000000 and 1000", |s| s.plan.rows = 1000),
        ("statements prepared and text", |s| s.workload.mode = StatementMode::Text),
        ("transport tcp and socket", |s| s.server.transport = "socket".to_owned()),
        ("version 8.0.33 and 9.7", |s| s.server.version = "9.7".to_owned()),
        ("loadgen build release and debug", |s| s.loadgen.profile = "debug".to_owned()),
    ];
    for (says, change) in changes {
        let mut other = second.clone();
        change(&mut other);
        let strict = Options { strict: true, ..Options::default() };
        let error = try_report(&[first.clone(), other.clone()], &strict).expect_err(says);
        assert_eq!(error.kind(), Kind::Data);
        let text = error.render();
        assert!(text.contains(&format!("\n  {says}\n")), "{says}: {text}");
        assert!(text.contains("'a'") && text.contains("point-select"), "{text}");
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
    let strict = Options { strict: true, ..Options::default() };
    let text = try_report(&[first, second], &strict).expect_err("differs").render();
    assert!(text.contains("40 more") && text.len() < 3000, "{text}");
}

#[test]
fn the_latest_invocation_is_one_a_label_and_workload() {
    let old = [step(0, "a", 8, 1.0), step(0, "a", 16, 2.0), step(0, "b", 8, 3.0)];
    let new = step(9, "a", 16, 20.0);
    let steps = [old.as_slice(), &[new]].concat();
    assert_eq!(grid(&plain(&steps))[1], "1.00    11.00 ±9.00  a");
    let latest = Options { latest: true, ..Options::default() };
    let text = report(&steps, &latest);
    assert_eq!(&grid(&text)[1..], ["3.00        -   b", "   -    20.00   a"]);
}

#[test]
fn only_completed_steps_fill_cells_unless_asked() {
    let mut ended = step(0, "a", 16, 50.0);
    ended.outcome = Outcome::Interrupted;
    ended.reason = Some("SIGINT".to_owned());
    let steps = [step(0, "a", 8, 100.0), ended.clone(), step(1, "b", 16, 70.0)];
    let text = plain(&steps);
    assert_eq!(&grid(&text)[1..], ["100.0      -*   a", "    -   70.0    b"]);
    let ending = || vec![Value::One("interrupted, SIGINT".into())];
    let left_out = Finding::Known(Code::LeftOut, ending());
    assert!(text.contains(&format!("* {left_out} (a at 16); ")), "{text}");
    let partial = Options { partial: true, ..in_full() };
    let text = report(&steps, &partial);
    assert_eq!(&grid(&text)[1..], ["100.0   50.0*   a", "    -   70.0    b"]);
    let counted = Finding::Known(Code::Partial, ending());
    assert!(text.contains(&format!("* {counted} (a at 16); ")), "{text}");

    let error = try_report(&[ended.clone()], &Options::default()).expect_err("nothing to show");
    assert_eq!(error.kind(), Kind::Data);
    assert!(error.render().contains("--partial"));
    assert_eq!(grid(&report(&[ended], &partial))[1], "50.0    a *");
    assert_eq!(try_report(&[], &partial).expect_err("nothing").kind(), Kind::Data);
}

#[test]
fn tries_that_were_measured_again_are_noted_and_count_nowhere() {
    let mut first = step(0, "a", 16, 50.0);
    first.outcome = Outcome::MeasuredAgain;
    let share = first.client.share.get_or_insert_default();
    (share.other_load, share.steal) = (Some(0.02), Some(0.1));
    let mut second = step(2, "a", 16, 70.0);
    second.run_id.clone_from(&first.run_id);
    let steps = [step(0, "a", 8, 100.0), first.clone(), second];
    for partial in [false, true] {
        let text = report(&steps, &Options { partial, ..in_full() });
        assert_eq!(grid(&text)[1], "100.0   70.0    a", "{text}");
        let again = Finding::Known(Code::MeasuredAgain, vec![Value::Range(0.12, 0.12)]);
        assert!(text.contains(&format!("* {again} (a at 16)")), "{text}");
    }
    let gate: Gate = "qps>=60".parse().expect("a gate");
    let judge = |steps: &[Summary]| {
        let steps: Vec<&Summary> = steps.iter().collect();
        let judged = gates(&steps, std::slice::from_ref(&gate), &Options::default());
        let judged = judged.expect("gates");
        [judged.held.len(), judged.failed.len(), judged.undecided.len()]
    };
    assert_eq!(judge(&steps), [2, 0, 0]);

    // The run was interrupted before the next try.
    let steps = [step(0, "a", 8, 100.0), first.clone()];
    let text = plain(&steps);
    assert_eq!(grid(&text)[1], "100      -*     a", "{text}");
    assert_eq!((lines_of(&steps, "left_out"), judge(&steps)), (vec![0], [1, 0, 1]));
    let partial = Options { partial: true, ..in_full() };
    assert_eq!(grid(&report(&steps, &partial))[1], "100.0   50.0*   a");
    let error = try_report(&[first], &Options::default()).expect_err("nothing to show");
    assert_eq!(error.kind(), Kind::Data);
}

#[test]
fn a_step_without_a_window_has_no_number() {
    let mut empty = step(0, "a", 8, 0.0);
    empty.outcome = Outcome::Aborted;
    empty.measured_s = 0.0;
    let partial = Options { partial: true, ..Options::default() };
    assert_eq!(grid(&report(&[empty, step(0, "a", 16, 5.0)], &partial))[1], "-*      5.00    a");
}

/// Two invocations of a label; the second has other rows.
fn clashing() -> [Summary; 2] {
    let first = step(0, "a", 8, 100.0);
    let mut second = again(&first, 9);
    second.totals.qps = 300.0;
    second.plan.rows = 1000;
    [first, second]
}

#[test]
fn of_invocations_that_clash_the_newest_is_shown_and_noted() {
    let [first, second] = clashing();
    let elsewhere = step(0, "a", 16, 50.0);
    let steps = vec![second.clone(), first.clone(), elsewhere, step(1, "b", 16, 70.0)];
    let text = plain(&steps);
    assert!(grid(&text)[1].starts_with("    -   70.0    b"), "{text}");
    assert!(grid(&text)[2].starts_with("300.0      -    a"), "{text}");
    assert_eq!(lines_of(&steps, "clash"), [1]);
    let csv = Options { format: Format::Csv, ..Options::default() };
    let csv = report(&steps, &csv);
    let row = csv.lines().find(|line| line.contains(",a,8,")).expect("a row");
    assert!(row.contains("clash"), "{csv}");
    // Other ways to say which one is meant.
    let latest = Options { latest: true, ..Options::default() };
    assert!(!report(&steps, &latest).contains("clash"));
    let strict = Options { strict: true, ..Options::default() };
    assert_eq!(try_report(&steps, &strict).expect_err("strict").kind(), Kind::Data);
}

#[test]
fn a_clash_names_what_differs_with_both_values() {
    let name = "innodb_flush_log_at_trx_commit";
    let mut first = step(0, "a", 8, 100.0);
    first.server.variables.insert(name.to_owned(), "1".to_owned());
    let mut second = again(&first, 9);
    second.server.variables.insert(name.to_owned(), "7".to_owned());
    for options in [Options::default(), in_full()] {
        let text = report(&[first.clone(), second.clone()], &options);
        assert!(text.contains(&format!("{name} 1 and 7")), "{text}");
    }
}

#[test]
fn the_newest_of_clashing_invocations_is_shown_when_it_failed() {
    let [first, mut second] = clashing();
    second.outcome = Outcome::Aborted;
    let alone = plain(&[first.clone(), second.clone()]);
    assert!(grid(&alone)[1].starts_with("-       a"), "{alone}");
    let both = [first.clone(), second.clone()];
    assert_eq!([lines_of(&both, "clash"), lines_of(&both, "left_out")], [[0], [0]]);
    for format in [Format::Text, Format::Markdown, Format::Csv, Format::Json] {
        report(&[first.clone(), second.clone()], &Options { format, ..Options::default() });
    }
    page(&[&first, &second], &Options::default()).expect("a page");
    // With the settings of the one before it, there is nothing to choose.
    second.plan.rows = first.plan.rows;
    let text = plain(&[first, second]);
    assert!(grid(&text)[1].starts_with("100     a") && !text.contains("invocations:"), "{text}");
}

#[test]
fn one_invocation_that_clashes_with_itself_is_refused() {
    let [first, mut second] = clashing();
    second.run_id.clone_from(&first.run_id);
    let newer = again(&first, 20);
    for steps in [vec![first.clone(), second.clone()], vec![first, second, newer]] {
        let error = try_report(&steps, &Options::default()).expect_err("refused");
        assert_eq!(error.kind(), Kind::Data);
        assert!(["16000000", "1000"].iter().all(|of| error.to_string().contains(of)), "{error}");
    }
}

/// A change of a host, and the condition that tells it.
struct HostChange {
    condition: &'static str,
    change: fn(&mut Summary),
}

fn hosts(step: &mut Summary) -> [&mut HostState; 2] {
    let conditions = step.conditions.as_mut().expect("of such steps");
    let hosts = [&mut conditions.client_host, &mut conditions.server_host];
    hosts.map(|host| host.as_mut().expect("both are known"))
}

const HOST_CHANGES: &[HostChange] = &[
    HostChange { condition: "client CPU", change: |s| s.client.cores = 3 },
    HostChange { condition: "client kernel", change: |s| "7.0".clone_into(&mut s.client.kernel) },
    HostChange { condition: "engine threads", change: |s| s.plan.engine_threads += 1 },
    HostChange {
        condition: "server kernel",
        change: |s| "7.0".clone_into(&mut s.server.host_facts.as_mut().expect("known").kernel),
    },
    HostChange {
        condition: "server CPU",
        change: |s| s.server.host_facts.as_mut().expect("known").cores = 3,
    },
    HostChange {
        condition: "server memory",
        change: |s| s.server.host_facts.as_mut().expect("known").memory_bytes /= 2,
    },
    HostChange { condition: "client turbo", change: |s| hosts(s)[0].turbo = Some(false) },
    HostChange { condition: "server turbo", change: |s| hosts(s)[1].turbo = Some(false) },
    HostChange {
        condition: "client governors",
        change: |s| hosts(s)[0].governors = [("powersave".to_owned(), 4)].into(),
    },
    HostChange {
        condition: "server governors",
        change: |s| hosts(s)[1].governors = [("powersave".to_owned(), 4)].into(),
    },
    HostChange { condition: "client NUMA nodes", change: |s| hosts(s)[0].numa_nodes = Some(1) },
    HostChange {
        condition: "server process's cores",
        change: |s| hosts(s)[1].server_cores = Some(1),
    },
    HostChange { condition: "client links", change: |s| hosts(s)[0].links[0].mbit_per_s = 10 },
    HostChange { condition: "server links", change: |s| drop(hosts(s)[1].links.remove(0)) },
];

/// A step over a network, of which both hosts are known in full.
fn of_known_hosts(order: u32, label: &str) -> Summary {
    let mut step = step(order, label, 8, 100.0);
    let link = |name: &str| Link {
        name: name.to_owned(),
        mbit_per_s: 10_000,
        rx_bytes: step.totals.statements * 200,
        tx_bytes: step.totals.statements * 100,
    };
    let host = HostState {
        covered_s: 60.0,
        governors: [("performance".to_owned(), 4)].into(),
        turbo: Some(true),
        numa_nodes: Some(2),
        server_numa_nodes: Some(2),
        server_cores: Some(8),
        links: vec![link("eth0"), link("eth1")],
        ..HostState::default()
    };
    step.conditions = Some(Conditions {
        client_host: Some(host.clone()),
        server_host: Some(host),
        ..Conditions::default()
    });
    step.server.host_facts = Some(HostFacts {
        kernel: "6.1".to_owned(),
        cpu: "Some CPU".to_owned(),
        cores: 16,
        memory_bytes: 64 << 30,
    });
    step
}

/// Every way to a table or to an answer of some steps, with its error.
fn all_ways(steps: &[Summary], latest: bool) -> Vec<(&'static str, Option<Error>)> {
    let of = |format| Options { format, latest, ..Options::default() };
    let steps: Vec<&Summary> = steps.iter().collect();
    let question =
        || Question { base: "a".to_owned(), new: "b".to_owned(), latest, ..Question::default() };
    let gate = ["qps>1".parse().expect("a gate")];
    vec![
        ("text", render(&steps, &of(Format::Text)).err()),
        ("csv", render(&steps, &of(Format::Csv)).err()),
        ("json", render(&steps, &of(Format::Json)).err()),
        ("page", page(&steps, &of(Format::Text)).err()),
        ("gates", gates(&steps, &gate, &of(Format::Text)).err()),
        ("compare", compare(&steps, &question()).err()),
        ("explain", explain(&steps, &question()).err()),
    ]
}

#[test]
fn hosts_that_change_within_an_invocation_are_a_note() {
    for HostChange { condition, change } in HOST_CHANGES {
        let first = of_known_hosts(0, "a");
        let mut second = repeat(&first, 2, 300.0);
        second.started_at = "2026-11-21T00:00:00Z".to_owned();
        change(&mut second);
        let both = [first, second];
        let strict = Options { strict: true, ..Options::default() };
        try_report(&both, &strict).expect("not refused");
        assert_eq!(lines_of(&both, "invocations"), [0], "{condition}");
        let latest = Options { latest: true, ..Options::default() };
        let line = &json(&both, &latest)["tables"][0]["lines"][0];
        assert_eq!(line["cells"][0]["steps"], 2, "{condition}");
        let text = plain(&both);
        assert!(text.contains(&format!("its runs differ in: {condition} ")), "{text}");
        let steps = [both.as_slice(), &[of_known_hosts(1, "b")]].concat();
        for latest in [false, true] {
            for (way, error) in all_ways(&steps, latest) {
                assert!(error.is_none(), "{condition}, {way}: {error:?}");
            }
        }
    }
}

#[test]
fn hosts_that_differ_between_invocations_are_refused_unless_they_share_a_value() {
    let strict = Options { strict: true, ..Options::default() };
    for HostChange { condition, change } in HOST_CHANGES {
        let first = of_known_hosts(0, "a");
        let mut second = again(&first, 9);
        (second.conditions, second.server) = (first.conditions.clone(), first.server.clone());
        change(&mut second);
        // `server links` has one of two links then: both lists end alike.
        let error = try_report(&[first.clone(), second.clone()], &strict).expect_err(condition);
        assert_eq!(error.kind(), Kind::Data, "{condition}");
        assert!(error.to_string().contains(&format!("\n  {condition} ")), "{error}");
        assert_eq!(lines_of(&[first.clone(), second.clone()], "clash"), [0], "{condition}");
        // The first invocation went on after the change.
        let mut resumed = repeat(&second, 2, 300.0);
        resumed.run_id.clone_from(&first.run_id);
        try_report(&[first, resumed, second], &strict).expect("they share a value");
    }
}

#[test]
fn links_count_only_when_traffic_goes_over_them() {
    struct Case {
        what: &'static str,
        change: fn(&mut Summary),
        counts: bool,
    }
    let cases = [
        Case { what: "a link that carried all", change: |_| {}, counts: true },
        Case {
            what: "a link that is idle but for other programs",
            change: |s| hosts(s)[0].links[0].tx_bytes = 40_000,
            counts: false,
        },
        Case { what: "one host", change: |s| s.client.same_host = true, counts: false },
    ];
    for Case { what, change, counts } in cases {
        let mut first = of_known_hosts(0, "a");
        change(&mut first);
        let mut second = first.clone();
        "0000000000000009".clone_into(&mut second.run_id);
        second.step_id.push('b');
        hosts(&mut second)[0].links.remove(0);
        let strict = Options { strict: true, ..Options::default() };
        assert_eq!(try_report(&[first, second], &strict).is_err(), counts, "{what}");
    }
}

#[test]
fn the_newest_settings_of_an_invocation_that_clashes_with_itself_are_shown_when_asked() {
    let [first, mut second] = clashing();
    second.run_id.clone_from(&first.run_id);
    let steps = [first, second, step(20, "b", 8, 100.0)];
    for (way, error) in all_ways(&steps, false) {
        let error = error.expect(way);
        assert_eq!(error.kind(), Kind::Data, "{way}");
        assert!(error.hints().iter().any(|hint| hint.contains("--latest")), "{way}: {error:?}");
    }
    for (way, error) in all_ways(&steps, true).into_iter().filter(|(way, _)| {
        // Their tables hold other rows, which neither of these compares.
        !["compare", "explain"].contains(way)
    }) {
        assert!(error.is_none(), "{way}: {error:?}");
    }
    let latest = Options { latest: true, ..Options::default() };
    assert_eq!(json(&steps, &latest)["tables"][0]["lines"][0]["cells"][0]["value"], 300.0);
    assert!(notes(&steps, &latest).iter().any(|(code, _, lines)| code == "clash" && *lines == [0]));
    // An invocation that was not asked for has no part in it.
    let mut older = steps[0].clone();
    (older.run_id, older.step_id) = ("0000000000000007".to_owned(), "7-1".to_owned());
    (older.started_at, older.plan.tables) = ("2020-01-01T00:00:00Z".to_owned(), 77);
    let told = notes(&[&[older][..], &steps[..]].concat(), &latest);
    let (_, text, _) = told.iter().find(|(code, ..)| code == "clash").expect("a note");
    assert!(text.contains("rows") && !text.contains("tables"), "{text}");
    let strict = Options { strict: true, ..latest };
    assert_eq!(try_report(&steps, &strict).expect_err("strict").kind(), Kind::Data);
}

#[test]
fn gates_and_comparisons_refuse_invocations_that_clash() {
    let [first, second] = clashing();
    let other = step(1, "b", 8, 100.0);
    let steps = [&first, &second, &other];
    let gate = ["qps>1".parse().expect("a gate")];
    let gated = gates(&steps, &gate, &Options::default()).map(|_| ()).expect_err("gates");
    let (base, new) = ("a".to_owned(), "b".to_owned());
    let question = Question { base, new, ..Question::default() };
    let compared = compare(&steps, &question).map(|_| ()).expect_err("compare");
    let explained = explain(&steps, &question).map(|_| ()).expect_err("explain");
    for error in [gated, compared, explained] {
        assert!(error.kind() == Kind::Data && error.to_string().contains("rows"), "{error}");
    }
}
