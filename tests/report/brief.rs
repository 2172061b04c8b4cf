//! What a report says of its notes by default: little, the worst first, and nothing is lost.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{in_full, json, metric, report, try_report};
use crate::common::summaries::{step, worded};
use loadgen::report::{Format, Layout, Notes, Options};
use loadgen::summary::{Outcome, Summary, load};
use loadgen::terms::{Code, Finding, Rank, Value as Told};
use serde_json::Value as Json;

const LINES_MAX: usize = 3;
const LINE_MAX: usize = 90;
const SOURCE: &str = "results/";

fn brief() -> Options {
    Options { source: SOURCE.to_owned(), ..Options::default() }
}

fn warned(order: u32, label: &str, codes: &[&str]) -> Summary {
    let mut step = step(order, label, 8, 100.0);
    let warning = |code: &&str| worded(code, &format!("of {code}"));
    step.warnings = codes.iter().map(warning).collect();
    step
}

/// The notes of a report in short, and how many more there are.
struct Said {
    lines: Vec<String>,
    more: u64,
}

fn said(text: &str) -> Said {
    let end = format!(": loadgen report {SOURCE} --notes");
    let is_note = |line: &&str| line.starts_with("* ") || line.starts_with("Differs: ");
    let more: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix(&end)).collect();
    assert!(more.len() <= 1, "{text}");
    let count = |line: &&str| line.split(' ').next()?.parse().ok();
    let more = more.first().map_or(0, |line| count(line).expect("a number"));
    Said { lines: text.lines().filter(is_note).map(str::to_owned).collect(), more }
}

/// Counts the codes that lines tell: one each, and the line of differences all of its rank.
fn told(lines: &[String], codes: &BTreeSet<String>) -> usize {
    let is_differs = |line: &str| line.trim_start_matches("* ").starts_with("Differs: ");
    let of_differs = |code: &&String| {
        Code::named(code.as_str()).is_some_and(|code| code.rank() == Rank::Differs)
    };
    let told = lines.iter().map(|line| match is_differs(line) {
        true if line.ends_with('.') => codes.iter().filter(of_differs).count(),
        // What is cut is not told.
        is_differs => usize::from(!is_differs && !line.ends_with('…')),
    });
    told.sum()
}

/// The codes of all notes that the JSON has.
fn codes(steps: &[Summary], options: &Options) -> BTreeSet<String> {
    let report = json(steps, &Options { layout: Layout::Versions, ..options.clone() });
    let tables = report["tables"].as_array().expect("tables").iter();
    let notes = tables.flat_map(|table| table["notes"].as_array().expect("notes"));
    let codes = notes.map(|note| note["code"].as_str().expect("a code").to_owned());
    // The line of conditions has it.
    codes.filter(|code| code != "same_host").collect()
}

fn told_or_counted(steps: &[Summary], options: &Options, context: &str) {
    let text = report(steps, options);
    let said = said(&text);
    assert!(said.lines.len() <= LINES_MAX, "{context}: {text}");
    let more = text.lines().filter(|line| line.ends_with("--notes"));
    for line in said.lines.iter().map(String::as_str).chain(more) {
        assert!(line.chars().count() <= LINE_MAX, "{context}: {line}");
    }
    let codes = codes(steps, options);
    let told = told(&said.lines, &codes);
    assert_eq!(told as u64 + said.more, codes.len() as u64, "{context}: {codes:?}\n{text}");
}

fn directories() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/summaries");
    let entries =
        std::fs::read_dir(all).expect("summaries").map(|entry| entry.expect("one").path());
    entries.filter(|path| path.is_dir()).collect()
}

#[test]
fn every_kept_directory_has_a_report_of_few_and_short_notes() {
    let mut reported = 0;
    for directory in directories() {
        let Ok(loaded) = load(std::slice::from_ref(&directory), true) else { continue };
        let steps: Vec<Summary> = loaded.steps().into_iter().cloned().collect();
        for name in ["natural", "qps", "p99"] {
            for partial in [false, true] {
                let of = Options { partial, notes: Notes::Brief, ..metric(name) };
                let of = Options { source: SOURCE.to_owned(), ..of };
                reported += every_layout(&steps, &of, &format!("{} {name}", directory.display()));
            }
        }
    }
    assert!(reported > 200, "{reported} reports");
}

/// Holds the report in all layouts that these steps have, and counts them.
fn every_layout(steps: &[Summary], of: &Options, context: &str) -> usize {
    // Hosts are shown of steps that did not complete, too; nothing else has their notes.
    if try_report(steps, of).is_err() {
        return 0;
    }
    let mut labels: Vec<&String> = steps.iter().map(|step| &step.label).collect();
    labels.dedup();
    let mut reported = 0;
    for layout in <Layout as clap::ValueEnum>::value_variants() {
        let context = format!("{context} {layout}");
        let mut options = Options { layout: *layout, ..of.clone() };
        if try_report(steps, &options).is_ok() {
            reported += 1;
            if !matches!(layout, Layout::Outages | Layout::Settings) {
                told_or_counted(steps, &options, &context);
            }
        }
        options.baseline = labels.first().map(ToString::to_string);
        options.new = labels.last().map(ToString::to_string);
        if let Ok(text) = try_report(steps, &options) {
            reported += 1;
            let said = said(&text);
            assert!(said.lines.len() <= LINES_MAX, "{context}: {text}");
            let long = said.lines.iter().find(|line| line.chars().count() > LINE_MAX);
            assert_eq!(long, None, "{context}");
        }
    }
    reported
}

#[test]
fn any_codes_are_said_or_counted() {
    // What a step itself tells stands for other codes than its warnings.
    let of_steps = Code::ALL.iter().filter(|code| code.rank() != Rank::Differs);
    let all: BTreeSet<&str> = of_steps.map(|code| code.name()).collect();
    let all: Vec<&str> = all.into_iter().chain(["of_a_newer_loadgen"]).collect();
    for codes in all.windows(6).chain(all.windows(1)) {
        let steps = [warned(0, "a", codes), warned(1, "b", &codes[..1])];
        told_or_counted(&steps, &brief(), &format!("{codes:?}"));
    }
}

#[test]
fn failures_come_first_and_differences_keep_a_line() {
    let codes = ["drift", "errors", "cpu_throttled", "level_change", "skew"];
    let mut steps = [warned(0, "a", &codes), warned(1, "b", &[])];
    steps[1].plan.tables = 1;
    let text = report(&steps, &brief());
    assert_eq!(said(&text).lines, ["* of errors", "* of drift", "* Differs: tables 8 and 1."]);
    // The clock, the level, the keys.
    assert_eq!(said(&text).more, 3, "{text}");
    // Three failures leave no line for what differs.
    steps[0] = warned(0, "a", &["errors", "wrong_answers", "nothing_completed", "drift"]);
    let text = report(&steps, &brief());
    let said = said(&text);
    assert!(said.lines.iter().all(|line| line.starts_with("* of ")) && said.more == 2, "{text}");
}

#[test]
fn a_report_of_several_workloads_says_a_note_once_with_all_numbers() {
    let outage = |longest: f64| {
        let values = vec![Told::One(1.into()), Told::One(longest.into()), Told::One(Json::Null)];
        Finding::Known(Code::Outages, values)
    };
    let mut steps = [step(0, "a", 8, 1.0), step(1, "a", 8, 1.0)];
    for (step, longest) in steps.iter_mut().zip([3.0, 14.94]) {
        step.warnings = vec![outage(longest).into()];
    }
    "update-index".clone_into(&mut steps[1].workload.name);
    let text = report(&steps, &brief());
    let [line] = &said(&text).lines[..] else { panic!("{text}") };
    // Those of a group beside have a line of their own, with their own numbers.
    let of_group = vec![Told::One(2.into()), Told::One(99.into()), Told::One("writer".into())];
    let of_group = Finding::Known(Code::Outages, of_group);
    steps[0].warnings.push(of_group.clone().into());
    let both = report(&steps, &brief());
    assert_eq!((said(&both).lines.len(), &said(&both).lines[0]), (2, line), "{both}");
    assert!(said(&both).lines[1].starts_with(&format!("* {of_group}")), "{both}");
    let values = vec![Told::One(1.into()), Told::Range(3.0, 14.94), Told::One(Json::Null)];
    let range = Finding::Known(Code::Outages, values);
    assert!(line.starts_with(&format!("* {range}")), "{line}");
    assert_eq!(text.matches("8 tables x 16M rows").count(), 1, "{text}");
}

#[test]
fn an_advice_stands_where_it_has_room_and_a_sentence_that_has_none_is_counted() {
    let of = |tables: &str| {
        let mut step = step(0, "a", 8, 1.0);
        step.warnings =
            vec![Finding::Known(Code::CountryNotIndexed, vec![Told::One(tables.into())]).into()];
        said(&report(&[step], &brief()))
    };
    let advice = Code::CountryNotIndexed.advice();
    let [short, long, longest] = ["t", &"t".repeat(20), &"t".repeat(90)].map(of);
    assert!(short.lines[0].ends_with(advice) && short.more == 0, "{:?}", short.lines);
    assert!(!long.lines[0].ends_with(advice) && long.more == 0, "{:?}", long.lines);
    assert!(longest.lines[0].ends_with('…') && longest.more == 1, "{:?}", longest.lines);
}

#[test]
fn steps_that_are_left_out_are_told_without_those_that_fill_the_cell() {
    let mut ended = step(0, "a", 8, 50.0);
    ended.outcome = Outcome::Interrupted;
    ended.step_id.push('e');
    let text = report(&[step(0, "a", 8, 100.0), ended], &brief());
    let left_out = Finding::Known(Code::LeftOut, vec![Told::One("interrupted".into())]);
    let [line] = &said(&text).lines[..] else { panic!("{text}") };
    assert!(line.starts_with(&format!("* {left_out}")), "{line}");
}

#[test]
fn settings_that_differ_are_named_and_mark_nothing() {
    let mut steps = [step(0, "a", 8, 1.0), step(1, "b", 8, 1.0), step(2, "c", 8, 1.0)];
    for (step, value) in steps.iter_mut().zip(["1", "2", "0"]) {
        // What follows from them is not told again.
        step.server.durability = Some(format!("bl0/dw1/trx{value}/fsync"));
        let name = "innodb_flush_log_at_trx_commit";
        step.server.variables.insert(name.to_owned(), value.to_owned());
    }
    let text = report(&steps, &brief());
    assert_eq!(said(&text).lines, ["Differs: innodb_flush_log_at_trx_commit 1, 2 and 0."]);
    assert!(!text.contains('*') && !text.contains("--notes"), "{text}");
    // What does not fit is counted, the most important named.
    for name in 0..9 {
        let name = format!("innodb_some_other_setting_{name}");
        steps[1].server.variables.insert(name, "x".repeat(20));
    }
    let text = report(&steps, &brief());
    let line = "Differs: innodb_flush_log_at_trx_commit 1, 2 and 0, and 9 more";
    assert_eq!(said(&text).lines, [line], "{text}");
    // The settings, and what follows from them.
    assert_eq!(said(&text).more, 2, "{text}");
}

#[test]
fn all_notes_end_with_the_conditions_in_full_and_nothing_is_left_to_ask_for() {
    let steps = [warned(0, "a", &["drift", "skew", "errors", "swapping", "level_change"])];
    let text = report(&steps, &Options { source: SOURCE.to_owned(), ..in_full() });
    assert_eq!(said(&text).more, 0, "{text}");
    assert_eq!(said(&text).lines.len(), 5, "{text}");
    assert!(text.contains("16000000"), "{text}");
    let later = Options { notes: Notes::Later, ..brief() };
    assert!(said(&report(&steps, &later)).lines.is_empty());
}

#[test]
fn files_are_the_same_whatever_notes_are_shown() {
    let steps = [warned(0, "a", &["drift", "skew"]), warned(1, "b", &["errors"])];
    for format in [Format::Csv, Format::Json] {
        let [short, full] =
            [brief(), in_full()].map(|options| report(&steps, &Options { format, ..options }));
        assert_eq!(short, full);
    }
}

#[test]
fn labels_of_two_versions_are_not_marked_for_what_follows_from_them() {
    let other = |change: fn(&mut Summary)| {
        let mut other = step(1, "b", 8, 1.0);
        change(&mut other);
        report(&[step(0, "a", 8, 1.0), other], &brief())
    };
    let text = other(|step| {
        "9.7.0".clone_into(&mut step.server.version);
        step.driver.capabilities.clear();
    });
    assert!(
        !text.contains('*') && ["8.0.33", "9.7.0"].iter().all(|of| text.contains(of)),
        "{text}"
    );
    let text = other(|step| step.driver.capabilities.clear());
    let said = said(&text).lines;
    assert!(said[0].starts_with("* ") && said[0].contains("driver"), "{text}");
    assert!(text.contains("b *\n"), "{text}");
}
