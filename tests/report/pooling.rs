//! Which steps share a cell, and what it shows.

use crate::summaries::step;
use crate::{again, grid, in_full, json, lines_of, plain, repeat, report, try_report};
use loadgen::error::Kind;
use loadgen::report::{Format, Options, Question, compare, explain, gates, page};
use loadgen::summary::{Outcome, Summary};
use loadgen::terms::StatementMode;

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
    assert_eq!(grid(&text)[1], "200     400     a");
    assert!(text.contains("; medians of 1 to 3 repeats\n"), "{text}");
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
    assert_eq!(grid(&text)[1], "200     a");
    assert!(text.contains("* its runs differ in: server hostname db1 and elsewhere"), "{text}");
    assert_eq!(lines_of(&both, "invocations"), [0]);

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
    let strict = Options { strict: true, ..Options::default() };
    let text = try_report(&[first, second], &strict).expect_err("differs").render();
    assert!(text.contains("\n  40 more") && text.len() < 3000, "{text}");
}

#[test]
fn the_latest_invocation_is_one_a_label_and_workload() {
    let old = [step(0, "a", 8, 1.0), step(0, "a", 16, 2.0), step(0, "b", 8, 3.0)];
    let new = step(9, "a", 16, 20.0);
    let steps = [old.as_slice(), &[new]].concat();
    assert_eq!(grid(&plain(&steps))[1], "1.00    11.00   a");
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
    let note = "* left out, because it did not complete: interrupted, SIGINT (a at 16)\n";
    assert!(text.contains(note), "{text}");
    let partial = Options { partial: true, ..in_full() };
    let text = report(&steps, &partial);
    assert_eq!(&grid(&text)[1..], ["100.0   50.0*   a", "    -   70.0    b"]);
    assert!(text.contains("* did not complete: interrupted, SIGINT (a at 16)\n"), "{text}");

    let error = try_report(&[ended.clone()], &Options::default()).expect_err("nothing to show");
    assert_eq!(error.kind(), Kind::Data);
    assert!(error.render().contains("--partial"));
    assert_eq!(grid(&report(&[ended], &partial))[1], "50.0    a *");
    assert_eq!(try_report(&[], &partial).expect_err("nothing").kind(), Kind::Data);
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

const CLASH: &str = "a was measured with different settings in 2 invocations: the newest is shown";

#[test]
fn of_invocations_that_clash_the_newest_is_shown_and_noted() {
    let [first, second] = clashing();
    let elsewhere = step(0, "a", 16, 50.0);
    let steps = vec![second.clone(), first.clone(), elsewhere, step(1, "b", 16, 70.0)];
    let text = plain(&steps);
    assert!(grid(&text)[1].starts_with("    -   70.0    b"), "{text}");
    assert!(grid(&text)[2].starts_with("300.0      -    a"), "{text}");
    assert!(text.contains(CLASH), "{text}");
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
fn the_newest_of_clashing_invocations_is_shown_when_it_failed() {
    let [first, mut second] = clashing();
    second.outcome = Outcome::Aborted;
    let alone = plain(&[first.clone(), second.clone()]);
    assert!(grid(&alone)[1].starts_with("-       a"), "{alone}");
    assert!(alone.contains(CLASH) && alone.contains("did not complete"), "{alone}");
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
        assert!(error.to_string().contains("rows 16000000 and 1000"), "{error}");
    }
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
