//! Lists as the second published text has them: the labels of each column, best first, their peaks, and
//! what tells them from each other by the variables of their servers.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::super::baseline::speed;
use super::super::escape::{clip, line};
use super::super::page::{Page, Sheet, Value, filed, shown};
use super::super::table::{Cell, Column, Line, Table};
use super::super::{caption, settings, text};
use super::{at_clients, below, codes, marked, marked_label, noted, place_and_metric, rows};
use crate::judge::{self, Difference};
use crate::summary::Summary;

pub(super) fn list(tables: &[Table]) -> Vec<Page> {
    let alone = tables.len() == 1;
    tables.iter().map(|table| Page { title_below: alone, ..one(table) }).collect()
}

struct Item<'t, 's> {
    at: usize,
    line: &'t Line<'s>,
    value: Option<f64>,
    rank: Option<usize>,
}

fn one(table: &Table) -> Page {
    let column = table.columns[0];
    let value = |line: &Line| line.cell().map(|cell| cell.spread.median);
    let mut items: Vec<Item> =
        rows(table).map(|(at, line)| Item { at, line, value: value(line), rank: None }).collect();
    // Equal ones stay in the order of their labels; what has no number comes last.
    items.sort_by(|one, other| match (one.value, other.value) {
        (Some(one), Some(other)) => better(table, one, other),
        (one, other) => one.is_none().cmp(&other.is_none()),
    });
    for (rank, item) in items.iter_mut().enumerate() {
        item.rank = item.value.map(|_| rank + 1);
    }
    let decimals = table.metric.decimals(items.iter().filter_map(|item| item.value));
    let (_, unit) = table.metric.short();
    let drawn = bars(&items);
    let mut columns = place_and_metric(table, |_: &Item| column);
    columns.extend([
        shown("", |item: &Item| {
            let value = Value::from(item.value.map(|value| (value, decimals))).text();
            format!("{value} {unit} - {}", marked(table, item.at))
        }),
        filed("rank", |item: &Item| item.rank),
        filed("label", |item: &Item| item.line.label),
        filed("value", |item: &Item| item.value),
        filed("notes", |item: &Item| codes(table, &[item.at], &column)),
    ]);
    let title = format!("{}; {}", caption::title(table), at_clients(&column));
    let sheet = Sheet { list: true, drawn, ..Sheet::of(columns, items) };
    Page::of(title, sheet, below(table))
}

fn bars(items: &[Item]) -> Vec<String> {
    let value = |item: &Item| item.value.filter(|value| value.is_finite()).unwrap_or(0.0);
    let max = items.iter().map(value).fold(0.0, f64::max);
    let bar = |item| if max > 0.0 { text::bar(value(item), max) } else { String::new() };
    items.iter().map(bar).collect()
}

/// Returns the better one first.
fn better(table: &Table, one: f64, other: f64) -> Ordering {
    if table.metric.higher_is_better() { other.total_cmp(&one) } else { one.total_cmp(&other) }
}

pub(super) fn peak(tables: &[Table]) -> Vec<Page> {
    tables.iter().map(|table| peaks(&noted(table.clone()))).collect()
}

type Peak = (f64, Column);

fn peaks(table: &Table) -> Page {
    let best = |cells: &[Option<Cell>]| -> Option<Peak> {
        let cells = cells.iter().zip(&table.columns);
        let cells = cells.filter_map(|(c, column)| Some((c.as_ref()?.spread.median, *column)));
        // The first of equal ones: fewer clients reach it.
        cells.reduce(|best, next| if better(table, next.0, best.0).is_lt() { next } else { best })
    };
    let peaks: Vec<(usize, Option<Peak>)> =
        rows(table).map(|(at, line)| (at, best(&line.cells))).collect();
    let found = || peaks.iter().filter_map(|(at, peak)| Some((*at, (*peak)?)));
    let values = || found().map(|(_, (value, _))| value);
    let decimals = table.metric.decimals(values());
    let top = values().reduce(|a, b| if better(table, b, a).is_lt() { b } else { a });
    let seen = vec![
        shown("peak", |(_, peak): &(usize, Option<Peak>)| peak.map(|(value, _)| (value, decimals))),
        shown("clients", |(_, peak): &(usize, Option<Peak>)| {
            peak.map(|(_, column)| column.to_string())
        }),
        shown("label", |(at, _): &(usize, Option<Peak>)| marked(table, *at)).left(),
    ];
    let mut records = place_and_metric(table, |(_, (_, column)): &(usize, Peak)| *column);
    records.extend([
        filed("label", |(at, _): &(usize, Peak)| marked_label(table, *at)),
        filed("value", |(_, (value, _)): &(usize, Peak)| *value),
        filed("relative", |(_, (value, _)): &(usize, Peak)| speed(&table.metric, top?, *value)),
        filed("notes", |(at, (_, column)): &(usize, Peak)| codes(table, &[*at], column)),
    ]);
    let sheets = vec![Sheet::of(seen, peaks.iter().copied()), Sheet::of(records, found())];
    let title = vec![format!("{}; the best of each label", caption::title(table))];
    Page { title, sheets, below: below(table), ..Page::default() }
}

/// Settings that one line names.
const NAMED_MAX: usize = 12;
/// Longest value that a line shows, characters.
const VALUE_MAX: usize = 60;

struct Label<'a> {
    name: &'a str,
    step: &'a Summary,
    /// Others of its steps were measured on other settings.
    is_mixed: bool,
}

/// Returns the one page: a line a label, in the order of the tables.
pub(super) fn settings(tables: &[Table]) -> Page {
    let mut labels: Vec<Label> = Vec::new();
    for line in tables.iter().flat_map(|table| &table.lines) {
        let Some(first) = line.steps.first() else { continue };
        let at = labels.iter().position(|label| label.name == line.label).unwrap_or(labels.len());
        if at == labels.len() {
            labels.push(Label { name: line.label, step: first, is_mixed: false });
        }
        if let Some(label) = labels.get_mut(at) {
            let other = |step: &&Summary| !settings::legend(label.step, step).is_empty();
            label.is_mixed = label.is_mixed || line.steps.iter().any(other);
        }
    }
    let rows: Vec<Entry> = (0..labels.len()).map(|at| entry(&labels, at)).collect();
    let columns = vec![
        shown("", |row: &Entry| row.said.clone()),
        filed("label", |row: &Entry| row.label.name),
        filed("version", |row: &Entry| row.label.step.server.version.as_str()),
        filed("version_comment", |row: &Entry| row.label.step.server.version_comment.as_str()),
        filed("same_as", |row: &Entry| row.same_as),
        filed("settings", |row: &Entry| Value::Pairs(row.settings.clone())),
    ];
    let title = "labels, by the settings of their servers".to_owned();
    let sheet = Sheet { list: true, ..Sheet::of(columns, rows) };
    Page { title_below: true, ..Page::of(title, sheet, Vec::new()) }
}

struct Entry<'l, 's> {
    label: &'l Label<'s>,
    said: String,
    same_as: &'s str,
    settings: Pairs,
}

fn entry<'l, 's>(labels: &'l [Label<'s>], at: usize) -> Entry<'l, 's> {
    let label = &labels[at];
    let nearest = nearest(label, &labels[..at]);
    let of = |differences: &[Difference], text: fn(&Difference) -> String| -> Pairs {
        differences.iter().map(|d| (d.name.clone(), text(d))).collect()
    };
    let whole = || told_apart(label, labels);
    let found = nearest.as_ref().map(|(_, found)| found.as_slice());
    let settings = found.map_or_else(whole, |found| of(found, |d| d.second.clone()));
    // Of a long value what differs, else it looks like the other one.
    let differing = |d: &Difference| settings::told_apart(&d.first, &d.second).1;
    let texts = found.map_or_else(whole, |found| of(found, differing));
    let server = &label.step.server;
    let mut said = super::label(label.name);
    said += &match &nearest {
        Some((of, _)) if settings.is_empty() => format!(" - same as {}", line(of)),
        Some((of, _)) => format!(" - same as {} except {}", line(of), shown_pairs(&texts)),
        None => {
            let comment = clip(&server.version_comment, VALUE_MAX);
            let comment = if comment.is_empty() { comment } else { format!(" {comment}") };
            let version = line(&server.version);
            if settings.is_empty() {
                format!(" - {version}{comment}")
            } else {
                format!(" - {version}{comment} with {}", shown_pairs(&texts))
            }
        }
    };
    if label.is_mixed {
        said.push_str("; its runs differ, this is the first");
    }
    Entry { label, said, same_as: nearest.map_or("", |(of, _)| of), settings }
}

type Pairs = Vec<(String, String)>;

/// The earlier label of the same build with the fewest other settings, the first of equals, and
/// these settings.
fn nearest<'a>(label: &Label, earlier: &[Label<'a>]) -> Option<(&'a str, Vec<Difference>)> {
    let builds = earlier.iter().filter(|other| build(other) == build(label));
    let found = builds.map(|other| (other.name, settings::legend(other.step, label.step)));
    found.reduce(|best, next| if next.1.len() < best.1.len() { next } else { best })
}

fn build<'a>(label: &Label<'a>) -> (&'a str, &'a str) {
    (&label.step.server.version, &label.step.server.version_comment)
}

/// Returns the values of a label for what differs anywhere among the labels of its build.
fn told_apart(label: &Label, labels: &[Label]) -> Pairs {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for other in labels.iter().filter(|other| build(other) == build(label)) {
        names.extend(settings::legend(label.step, other.step).into_iter().map(|d| d.name));
    }
    let values: BTreeMap<String, String> = judge::conditions(label.step)
        .into_iter()
        .map(|(name, value, _)| (name.into_owned(), value))
        .chain(label.step.server.variables.clone())
        .collect();
    names.into_iter().filter_map(|name| Some((name.clone(), values.get(&name)?.clone()))).collect()
}

fn shown_pairs(pairs: &Pairs) -> String {
    let more = pairs.len().saturating_sub(NAMED_MAX);
    let mut named: Vec<String> = pairs
        .iter()
        .take(NAMED_MAX)
        .map(|(name, value)| format!("{}={}", clip(name, VALUE_MAX), clip(value, VALUE_MAX)))
        .collect();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    named.join(", ")
}
