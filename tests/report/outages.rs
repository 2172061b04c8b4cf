//! Times without service, as the report shows them.

use super::{json, report};
use crate::common::summaries::step;
use loadgen::report::{Format, Layout, Options};
use loadgen::summary::{Outage, Outcome, Summary};

fn outage(first_error_s: f64, first_success_s: Option<f64>) -> Outage {
    Outage {
        first_error_s,
        last_error_s: first_error_s + 2.0,
        gap_s: 2.75,
        first_success_s,
        recovered_s: first_success_s.map(|s| s + 1.5),
        code: Some(1053),
        errors: 12,
        refused: Some(34),
        first_error: "shutdown | \u{1b}[2J".to_owned(),
        last_error: "cannot connect".to_owned(),
    }
}

fn steps() -> Vec<Summary> {
    let (mut with, without) = (step(1, "a", 8, 100.0), step(2, "b", 8, 100.0));
    with.outages = vec![outage(12.25, Some(14.5)), outage(50.0, None)];
    vec![with, without]
}

fn laid() -> Options {
    Options { layout: Layout::Outages, ..Options::default() }
}

#[test]
fn each_outage_is_a_line_with_its_times() {
    let text = report(&steps(), &laid());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "point-select: outages, 2 in 2 steps");
    let words = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(2)[..8], ["8", "12.25", "2.75", "2.25", "3.75", "12", "34", "a"]);
    assert_eq!(words(3)[..9], ["8", "50.00", ">", "2.75", "-", "-", "12", "34", "a"]);
    assert!(!text.contains('\u{1b}'), "{text}");
    let text = report(&steps(), &Options { format: Format::Markdown, ..laid() });
    assert!(text.contains("shutdown \\|"), "{text}");
    let rows = &json(&steps(), &laid())["rows"];
    assert_eq!(rows[0]["to_success_s"], 2.25);
    assert_eq!((&rows[0]["errors"], &rows[0]["refused"]), (&12.into(), &34.into()));
    assert_eq!(
        (&rows[1]["to_success_s"], &rows[1]["label"]),
        (&serde_json::Value::Null, &"a".into())
    );
}

#[test]
fn none_is_said_and_a_step_that_was_aborted_counts() {
    let text = report(&[step(1, "a", 8, 100.0)], &laid());
    assert_eq!(text, "point-select: outages, 0 in 1 step\n");
    let mut other = step(2, "a", 8, 100.0);
    "update-index".clone_into(&mut other.workload.name);
    let text = report(&[step(1, "a", 8, 100.0), other], &laid());
    let none = "outages, 0 in 1 step\n";
    assert_eq!(text, format!("point-select: {none}\nupdate-index: {none}"));
    let marked = Options { format: Format::Markdown, ..laid() };
    assert!(!report(&[step(1, "a", 8, 100.0)], &marked).contains('|'), "no table");
    let mut steps = steps();
    steps.truncate(1);
    steps[0].outcome = Outcome::Aborted;
    assert!(report(&steps, &laid()).starts_with("point-select: outages, 2 in 1 step"));
}
