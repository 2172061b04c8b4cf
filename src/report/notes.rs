//! Footnotes: what a reader of a line must know.

use std::collections::{BTreeMap, BTreeSet};

use super::alike::as_one;
use super::escape::clip;
use super::pivot::{Column, Line, Table};
use super::{queues, settings};
use crate::summary::{Outcome, Summary, VerdictKind, Warning};

/// Longest foreign text in a note, characters.
const TEXT_MAX: usize = 300;
/// Longest value or label in a note, characters.
const VALUE_MAX: usize = 60;
/// Lines, and settings, that one note names.
const NAMED_MAX: usize = 6;

/// A footnote and the lines that it marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// A stable short name, such as `same_host`.
    pub(crate) code: String,
    pub(crate) text: String,
    /// Positions of the marked lines, and the columns in which it holds there.
    pub(crate) places: Places,
}

/// Columns by the position of their line.
pub(crate) type Places = BTreeMap<usize, BTreeSet<Column>>;

/// Something about one step of a line.
struct Finding {
    code: String,
    message: String,
    line: usize,
    column: Column,
}

/// The footnotes of a table, in the order in which its lines need them.
pub(crate) fn notes(table: &Table) -> Vec<Note> {
    let mut notes = of_lines(table);
    let mut by_code: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for (at, line) in table.lines.iter().enumerate() {
        for finding in findings(at, line).into_iter().chain(scarce(table, at, line)) {
            by_code.entry(finding.code.clone()).or_default().push(finding);
        }
    }
    notes.extend(by_code.into_iter().map(|(code, findings)| merged(table, code, &findings)));
    // Stable: of the notes of one line, those about all of it come first.
    notes.sort_by_key(|note| note.places.keys().next().copied());
    notes
}

/// Notes about whole lines; lines of which the same is true share one.
fn of_lines(table: &Table) -> Vec<Note> {
    let reference = table.lines.iter().find(|line| !line.steps.is_empty());
    let all: BTreeSet<Column> = table.columns.iter().copied().collect();
    let mut notes: BTreeMap<(&str, String), Places> = BTreeMap::new();
    for (at, line) in table.lines.iter().enumerate() {
        let differs = reference.and_then(|reference| other_conditions(line, reference));
        let overheads = reference.and_then(|reference| other_overheads(line, reference));
        let found = [
            ("conditions", differs),
            ("overheads", overheads),
            ("other_queues", reference.and_then(|reference| queues::differ(line, reference))),
            ("invocations", mixed_invocations(line)),
        ];
        for (code, text) in found {
            if let Some(text) = text {
                notes.entry((code, text)).or_default().insert(at, all.clone());
            }
        }
    }
    let note =
        |((code, text), places): ((&str, _), _)| Note { code: code.to_owned(), text, places };
    notes.into_iter().map(note).collect()
}

/// The sign of a note by its position: † ‡ § ¶ †† ‡‡ …
pub(crate) fn mark(at: usize) -> String {
    const SIGNS: [&str; 4] = ["†", "‡", "§", "¶"];
    SIGNS[at % SIGNS.len()].repeat(at / SIGNS.len() + 1)
}

/// The signs of a line, each after a blank.
pub(crate) fn marks(table: &Table, line: usize) -> String {
    let marked = table.notes.iter().enumerate().filter(|(_, note)| note.places.contains_key(&line));
    marked.flat_map(|(at, _)| [" ".to_owned(), mark(at)]).collect()
}

/// What the steps of a line say about themselves.
fn findings(at: usize, line: &Line) -> Vec<Finding> {
    let find = |step: &Summary, code: &str, message: String| Finding {
        code: clip(code, VALUE_MAX),
        message,
        line: at,
        column: Column::of(step),
    };
    let mut found = Vec::new();
    for step in &line.steps {
        found.extend(remarks(step).into_iter().map(|r| find(step, &r.code, r.message)));
    }
    for step in &line.left_out {
        let message = format!("left out, because it did not complete: {}", ending(step));
        found.push(find(step, "left_out", message));
    }
    found
}

/// What a reader of any number of a step must know.
pub fn remarks(step: &Summary) -> Vec<Warning> {
    let mut said = Vec::new();
    let mut say =
        |code: &str, message: String| said.push(Warning { code: code.to_owned(), message });
    if step.outcome != Outcome::Completed {
        say("partial", format!("did not complete: {}", ending(step)));
    }
    let warned = |code: &str| step.warnings.iter().any(|warning| warning.code == code);
    let verdict = step.verdict.as_ref().filter(|verdict| verdict.kind != VerdictKind::Ok);
    if let Some(verdict) = verdict {
        say(&verdict.kind.name().replace('-', "_"), clip(&verdict.sentence(), TEXT_MAX));
    }
    let shared = verdict.is_some_and(|verdict| verdict.kind == VerdictKind::SharedHost);
    if step.client.same_host && !shared && !warned("same_host") {
        let message = "the client ran on the server's host and took a part of its CPUs";
        say("same_host", message.to_owned());
    }
    if let Some(message) = queues::told(step) {
        say("queues", message);
    }
    if step.loadgen.profile == "debug" && !warned("debug_build") {
        let message = "measured by a debug build of loadgen, whose own cost is higher";
        say("debug_build", message.to_owned());
    }
    for warning in &step.warnings {
        say(&warning.code, clip(&warning.message, TEXT_MAX));
    }
    said
}

/// Percentiles that are not shown, because too few values lie beyond them.
fn scarce(table: &Table, at: usize, line: &Line) -> Vec<Finding> {
    let few = line.steps.iter().filter_map(|step| {
        let (percentile, count) = table.metric.scarce(step)?;
        let message = format!(
            "{percentile} is not shown: it takes {} values, for ten beyond it, and there were {count}",
            percentile.needs()
        );
        Some(Finding { code: "scarce".to_owned(), message, line: at, column: Column::of(step) })
    });
    few.collect()
}

/// How a step ended that did not complete.
pub(crate) fn ending(step: &Summary) -> String {
    let outcome = step.outcome.name();
    match &step.reason {
        Some(reason) => format!("{outcome}, {}", clip(reason, TEXT_MAX)),
        None => outcome.to_owned(),
    }
}

/// One note of all findings of a code.
fn merged(table: &Table, code: String, findings: &[Finding]) -> Note {
    let messages: Vec<&str> = findings.iter().map(|f| f.message.as_str()).collect();
    let mut text = as_one(&messages);
    let mut places = Places::new();
    for finding in findings {
        places.entry(finding.line).or_default().insert(finding.column);
    }
    text.push_str(&place(table, &places));
    Note { code, text, places }
}

/// Where a note holds, unless it holds for all that its lines show.
fn place(table: &Table, places: &Places) -> String {
    let mut whole = true;
    let mut named = Vec::new();
    for (at, columns) in places {
        let Some(line) = table.lines.get(*at) else { continue };
        let label = clip(line.label, VALUE_MAX);
        let shown = table.columns.iter().zip(&line.cells).filter(|(_, cell)| cell.is_some());
        if shown.map(|(column, _)| column).all(|column| columns.contains(column)) {
            named.push(label);
        } else {
            whole = false;
            let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
            named.push(format!("{label} at {}", columns.join(", ")));
        }
    }
    if whole {
        return String::new();
    }
    let more = if named.len() > NAMED_MAX { "; …" } else { "" };
    named.truncate(NAMED_MAX);
    format!(" ({}{more})", named.join("; "))
}

/// Names of conditions, and of each the values that it has.
type Conditions = Vec<(&'static str, Vec<String>)>;

/// The conditions of a line: of each name the values that its steps have, in their order.
pub(crate) fn conditions(line: &Line) -> Conditions {
    of_steps(line.steps.iter().copied())
}

fn of_steps<'a>(steps: impl Iterator<Item = &'a Summary>) -> Conditions {
    let mut all: Conditions = Vec::new();
    for step in steps {
        let server = settings::server_conditions(step);
        for (name, value) in settings::conditions(step).into_iter().chain(server) {
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) if values.contains(&value) => {}
                Some((_, values)) => values.push(value),
                None => all.push((name, vec![value])),
            }
        }
    }
    all
}

/// The values of one condition in words.
fn in_words(values: &[String]) -> String {
    let mut shown: Vec<String> =
        values.iter().take(NAMED_MAX).map(|value| clip(value, VALUE_MAX)).collect();
    if values.len() > NAMED_MAX {
        shown.push("…".to_owned());
    }
    shown.join(" and ")
}

/// The same with the columns in which each value holds, where there are several of both.
pub(crate) fn by_column(line: &Line, name: &str, values: &[String]) -> String {
    let columns: BTreeSet<Column> = line.steps.iter().map(|step| Column::of(step)).collect();
    if values.len() < 2 || columns.len() < 2 {
        return in_words(values);
    }
    let of_columns: Vec<(String, Conditions)> =
        columns.iter().map(|column| (column.to_string(), at(line, &[*column].into()))).collect();
    let held = values.iter().take(NAMED_MAX).map(|value| {
        let here = of_columns.iter().filter(|(_, all)| of_name(all, name).contains(value));
        let columns: Vec<&str> = here.map(|(column, _)| column.as_str()).collect();
        format!("{} ({})", clip(value, VALUE_MAX), columns.join(", "))
    });
    let more = if values.len() > NAMED_MAX { " and …" } else { "" };
    held.collect::<Vec<String>>().join(" and ") + more
}

/// The conditions of some columns of a line.
fn at(line: &Line, columns: &BTreeSet<Column>) -> Conditions {
    let here = line.steps.iter().filter(|step| columns.contains(&Column::of(step)));
    of_steps(here.copied())
}

fn of_name<'a>(conditions: &'a Conditions, name: &str) -> &'a [String] {
    let found = conditions.iter().find(|(known, _)| *known == name);
    found.map_or(&[], |(_, values)| values.as_slice())
}

/// The conditions in which a line differs from the one that the caption describes: in the columns
/// that both have, or in values that the other has nowhere. An open loop beside a closed one is no
/// difference to a line without it.
fn other_conditions(line: &Line, reference: &Line) -> Option<String> {
    let columns =
        |line: &Line| line.steps.iter().map(|s| Column::of(s)).collect::<BTreeSet<Column>>();
    let common = &columns(line) & &columns(reference);
    let (here, there) = (at(line, &common), at(reference, &common));
    let usual = conditions(reference);
    let mut named = Vec::new();
    for (name, values) in &conditions(line) {
        let (here, there) = (of_name(&here, name), of_name(&there, name));
        let usual = of_name(&usual, name);
        // What one of them does not know is no difference.
        if usual.is_empty() {
            continue;
        }
        let (values, usual) = if !here.is_empty() && !there.is_empty() && here != there {
            (here, there)
        } else if values.iter().any(|value| !usual.contains(value)) {
            (values.as_slice(), usual)
        } else {
            continue;
        };
        named.push(if *name == "SQL" {
            "other SQL".to_owned()
        } else {
            format!("{name} {} instead of {}", in_words(values), in_words(usual))
        });
    }
    (!named.is_empty()).then(|| format!("other conditions: {}", named.join(", ")))
}

/// Settings of the server that cost time whatever is measured, where a line has others than the
/// one that the caption describes.
fn other_overheads(line: &Line, reference: &Line) -> Option<String> {
    let of = |line: &Line, name: &str| -> BTreeSet<String> {
        let value = |step: &&Summary| step.server.variables.get(name).cloned();
        line.steps.iter().filter_map(value).collect()
    };
    let words = |values: &BTreeSet<String>| in_words(&values.iter().cloned().collect::<Vec<_>>());
    let named: Vec<String> = settings::OVERHEADS
        .iter()
        .filter_map(|(variable, name)| {
            let (here, usual) = (of(line, variable), of(reference, variable));
            // What one of them does not know is no difference.
            let differ = !here.is_empty() && !usual.is_empty() && here != usual;
            differ.then(|| format!("{name} {} instead of {}", words(&here), words(&usual)))
        })
        .collect();
    (!named.is_empty()).then(|| format!("other overheads: {}", named.join(", ")))
}

/// Settings in which the invocations that make up one line differ.
fn mixed_invocations(line: &Line) -> Option<String> {
    let first = line.steps.first()?;
    let mut runs = BTreeSet::from([first.run_id.as_str()]);
    let mut names = BTreeSet::new();
    for step in &line.steps {
        if runs.insert(&step.run_id) {
            names.extend(settings::server_differences(first, step).into_iter().map(|d| d.name));
        }
    }
    if names.is_empty() {
        return None;
    }
    let shown: Vec<String> =
        names.iter().take(NAMED_MAX).map(|name| clip(name, VALUE_MAX)).collect();
    let more = if names.len() > NAMED_MAX { ", …" } else { "" };
    Some(format!(
        "its columns come from {} invocations whose settings differ: {}{more}",
        runs.len(),
        shown.join(", ")
    ))
}
