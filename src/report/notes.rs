//! Footnotes: what a reader of a line must know.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::alike::as_one;
use super::escape::clip;
use super::settings::{BUILD, VALUE_MAX};
use super::table::{Column, Line, Table, among};
use super::{queues, settings};
use crate::judge::{self, ABSENT, CONDITIONS, Condition, Difference, OVERHEADS, Shown, Weight};
use crate::stats::enough;
use crate::summary::{Outcome, Summary, VerdictKind, Warning};
use crate::terms::{self, Code, Value, finding};

/// Longest foreign text in a note, characters.
const TEXT_MAX: usize = 300;
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
struct Said {
    code: String,
    message: String,
    line: usize,
    column: Column,
}

/// The footnotes of a table, in the order in which its lines need them.
pub(crate) fn notes(table: &Table) -> Vec<Note> {
    let mut notes = of_lines(table);
    let mut by_code: BTreeMap<String, Vec<Said>> = BTreeMap::new();
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
        let mut found: Vec<(&str, String)> = Vec::new();
        if let Some(reference) = reference {
            found.extend(other_than(line, reference));
            found.extend(queues::differ(line, reference).map(|text| ("other_queues", text)));
            found.extend(unknown(line, reference).map(|text| ("unknown_conditions", text)));
        }
        let captioned = reference.is_some_and(|reference| std::ptr::eq(reference, line));
        found.extend(mixed(line, captioned).map(|text| ("invocations", text)));
        for (code, text) in found {
            notes.entry((code, text)).or_default().insert(at, all.clone());
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
fn findings(at: usize, line: &Line) -> Vec<Said> {
    let note = |step: &Summary, said: Warning| Said {
        code: clip(&said.code, VALUE_MAX),
        message: said.message,
        line: at,
        column: step.cell(),
    };
    let mut found = Vec::new();
    for step in &line.steps {
        found.extend(remarks(step).into_iter().map(|said| note(step, said)));
    }
    for step in &line.left_out {
        found.push(note(step, finding!(LeftOut, ending(step)).into()));
    }
    found
}

/// What a reader of any number of a step must know.
pub fn remarks(step: &Summary) -> Vec<Warning> {
    let mut said: Vec<Warning> = Vec::new();
    if step.outcome != Outcome::Completed {
        said.push(finding!(Partial, ending(step)).into());
    }
    let verdict = step.verdict.as_ref().filter(|verdict| verdict.kind != VerdictKind::Ok);
    if let Some(verdict) = verdict {
        let code = verdict.kind.name().replace('-', "_");
        said.push(Warning { code, message: clip(&verdict.sentence(), TEXT_MAX) });
    }
    let shared = verdict.is_some_and(|verdict| verdict.kind == VerdictKind::SharedHost);
    if step.client.same_host && !shared && !step.is_warned(Code::SameHost) {
        said.push(finding!(SameHost).into());
    }
    said.extend(queues::told(step).map(|queues| finding!(Queues, queues).into()));
    if step.loadgen.profile != "release" && !step.is_warned(Code::DebugBuild) {
        said.push(finding!(DebugBuildNoted).into());
    }
    said.extend(step.warnings.iter().map(|warning| Warning {
        code: warning.code.clone(),
        message: clip(&warning.message, TEXT_MAX),
    }));
    said
}

/// Percentiles that are not shown, because too few values lie beyond them.
fn scarce(table: &Table, at: usize, line: &Line) -> Vec<Said> {
    let few = line.steps.iter().filter_map(|step| {
        let (percentile, count) = table.metric.scarce(step)?;
        let (name, needs) = (percentile.to_string(), Value::Number(enough(percentile.0), 0));
        let said = Warning::from(finding!(Scarce, name, needs, count));
        Some(Said { code: said.code, message: said.message, line: at, column: step.cell() })
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
fn merged(table: &Table, code: String, findings: &[Said]) -> Note {
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
    format!(" ({})", some(named, "; "))
}

/// Names of conditions, and of each the values that it has.
type Conditions = Vec<(Cow<'static, str>, Vec<String>)>;

/// The conditions of a line: of each name the values that its steps have, in their order.
pub(crate) fn conditions(line: &Line) -> Conditions {
    of_steps(line.steps.iter().copied())
}

fn of_steps<'a>(steps: impl Iterator<Item = &'a Summary>) -> Conditions {
    let mut all: Conditions = Vec::new();
    for (name, value, _) in steps.flat_map(judge::conditions) {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => all.push((name, vec![value])),
        }
    }
    all
}

/// The first of some texts; the others are counted.
pub(crate) fn some(texts: Vec<String>, joined: &str) -> String {
    terms::named(texts, NAMED_MAX, joined)
}

/// The values of one condition in words.
fn in_words(values: &[String]) -> String {
    some(values.iter().map(|value| clip(value, VALUE_MAX)).collect(), " and ")
}

/// The same with the columns in which each value holds, where there are several of both.
pub(crate) fn by_column(line: &Line, name: &str, values: &[String]) -> String {
    let columns: BTreeSet<Column> = line.steps.iter().map(|step| step.cell()).collect();
    if values.len() < 2 || columns.len() < 2 {
        return in_words(values);
    }
    let of_column = |column: &Column| {
        let here = line.steps.iter().filter(|step| step.cell() == *column);
        (column.to_string(), of_steps(here.copied()))
    };
    let of_columns: Vec<(String, Conditions)> = columns.iter().map(of_column).collect();
    let held = values.iter().map(|value| {
        let has = |all: &Conditions| {
            all.iter().any(|(known, values)| *known == *name && values.contains(value))
        };
        let here = of_columns.iter().filter(|(_, all)| has(all));
        let columns: Vec<&str> = here.map(|(column, _)| column.as_str()).collect();
        format!("{} ({})", clip(value, VALUE_MAX), columns.join(", "))
    });
    some(held.collect(), " and ")
}

/// What a line does not share with the one that the caption describes, a note each.
fn other_than(line: &Line, reference: &Line) -> Vec<(&'static str, String)> {
    let (mut conditions, mut overheads, mut settings) = (Vec::new(), Vec::new(), Vec::new());
    for difference in against(line, reference) {
        let (one, other) = settings::told_apart(&difference.first, &difference.second);
        let text = |name: &str| format!("{} {other} instead of {one}", clip(name, VALUE_MAX));
        let name = difference.name.as_str();
        let overhead = OVERHEADS.iter().find(|(variable, _)| *variable == name);
        let one_sided = [&difference.first, &difference.second].iter().any(|v| *v == ABSENT);
        if let Some((_, words)) = overhead.filter(|_| !one_sided) {
            overheads.push(text(words));
        } else if difference.weight == Weight::Server {
            let follows = name.starts_with("performance_schema_") || BUILD.contains(&name);
            settings.push((one_sided || follows, text(name)));
        } else if name == "SQL" {
            conditions.push("other SQL".to_owned());
        } else {
            conditions.push(text(name));
        }
    }
    // What both have, and what follows from nothing else, comes first.
    settings.sort_by_key(|(last, _)| *last);
    let settings: Vec<String> = settings.into_iter().map(|(_, text)| text).collect();
    let note = |code, what: &str, found: Vec<String>| {
        (!found.is_empty()).then(|| (code, format!("{what}: {}", some(found, ", "))))
    };
    [
        note("conditions", "other conditions", conditions),
        note("overheads", "other overheads", overheads),
        note("settings", "other settings", settings),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The differences of a line from another one, each once. Steps are held against those of the
/// same column, else against the first one of the other line that is of the same kind of loop.
fn against(line: &Line, reference: &Line) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    let mut columns: BTreeMap<Column, (Vec<&Summary>, Vec<&Summary>)> = BTreeMap::new();
    for step in &line.steps {
        let column = step.cell();
        let (there, others) = columns.entry(column).or_insert_with(|| {
            let there = among(&column, &reference.steps);
            let same = |other: &&Summary| other.plan.rate.is_some() == column.rate.is_some();
            let others = match there.as_slice() {
                [] => {
                    let alike = reference.steps.iter().copied().find(same);
                    alike.or(reference.steps.first().copied()).into_iter().collect()
                }
                some => judge::by_knowledge(some).into_iter().map(|(first, _)| first).collect(),
            };
            (there, others)
        });
        for difference in others.iter().flat_map(|other| judge::differences(other, step)) {
            let condition = CONDITIONS.iter().find(|c| c.name == difference.name);
            let named = match condition.map(|c| c.shown) {
                Some(Shown::Apart) => false,
                Some(Shown::ByClients) => !there.is_empty(),
                // The columns tell closed loops from open ones.
                _ => difference.name != "arrival" || !there.is_empty(),
            };
            // What is only noted may differ from repeat to repeat.
            let elsewhere = condition.filter(|c| c.weight == Weight::Noted).is_some_and(|c| {
                there.iter().any(|other| (c.value)(other).as_ref() == Some(&difference.second))
            });
            if named && !elsewhere && !found.contains(&difference) {
                found.push(difference);
            }
        }
    }
    found
}

/// Conditions in which the steps of one line differ, but for those that the caption tells.
fn mixed(line: &Line, captioned: bool) -> Option<String> {
    let firsts: Vec<&Summary> =
        judge::by_knowledge(&line.steps).into_iter().map(|(first, _)| first).collect();
    let mut found: Vec<Difference> = Vec::new();
    for (first, step) in firsts.iter().flat_map(|f| line.steps.iter().map(move |step| (*f, step))) {
        let same_column = step.cell() == first.cell();
        for difference in judge::differences(first, step) {
            let condition = CONDITIONS.iter().find(|c| c.name == difference.name);
            let told = match condition.map_or(Shown::Differing, |c| c.shown) {
                Shown::Always | Shown::Unless(_) | Shown::Apart => true,
                Shown::ByClients => !same_column,
                Shown::Differing => false,
            };
            if !told && !found.contains(&difference) {
                found.push(difference);
            }
        }
    }
    // Of other lines the caption does not tell what one cell has of both.
    let mut columns: BTreeMap<Column, &Summary> = BTreeMap::new();
    let noted = |c: &&Condition| c.weight == Weight::Noted && !captioned;
    for step in &line.steps {
        let first = *columns.entry(step.cell()).or_insert(step);
        for condition in CONDITIONS.iter().filter(noted) {
            let values = (condition.value)(first).zip((condition.value)(step));
            let Some((one, other)) = values.filter(|(one, other)| one != other) else { continue };
            if !found.iter().any(|known| known.name == condition.name) {
                found.push(Difference {
                    name: condition.name.to_owned(),
                    first: one,
                    second: other,
                    weight: condition.weight,
                });
            }
        }
    }
    let named = found.iter().map(|difference| {
        let (one, other) = settings::told_apart(&difference.first, &difference.second);
        format!("{} {one} and {other}", clip(&difference.name, VALUE_MAX))
    });
    let text = format!("its runs differ in: {}", some(named.collect(), ", "));
    (!found.is_empty()).then_some(text)
}

/// Conditions that some of the steps know, and others of the same table do not.
fn unknown<'a>(line: &'a Line<'a>, reference: &'a Line<'a>) -> Option<String> {
    // What was cut short may lack more.
    let completed = |line: &'a Line<'a>| {
        line.steps.iter().copied().filter(|step| step.outcome == Outcome::Completed)
    };
    let same_loop =
        |one: &Summary, other: &Summary| one.plan.rate.is_some() == other.plan.rate.is_some();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for step in completed(line) {
        let here = completed(reference).find(|other| other.cell() == step.cell());
        let first = here.or_else(|| completed(reference).find(|other| same_loop(other, step)));
        names.extend(first.into_iter().flat_map(|first| judge::unknown(first, step)));
    }
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let text = format!("unknown whether these are the same: {}", some(names.clone(), ", "));
    (!names.is_empty()).then_some(text)
}
