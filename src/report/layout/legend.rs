//! What tells the labels from each other: the legend that a published table needs, computed
//! from the variables of their servers.

use std::collections::{BTreeMap, BTreeSet};

use super::super::escape::{clip, line};
use super::super::page::{Page, Sheet, Value, filed, shown};
use super::super::pivot::Table;
use super::super::settings;
use crate::judge::{self, Difference};
use crate::summary::Summary;

/// Settings that one line names.
const NAMED_MAX: usize = 12;
/// Longest value that a line shows, characters.
const VALUE_MAX: usize = 60;

/// A label and one step of it.
struct Label<'a> {
    name: &'a str,
    step: &'a Summary,
    /// Whether others of its steps were measured on other settings.
    is_mixed: bool,
}

/// The one page: a line a label, in the order of the tables.
pub(super) fn page(tables: &[Table]) -> Page {
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
    let rows: Vec<Row> = (0..labels.len()).map(|at| row(&labels, at)).collect();
    let columns = vec![
        shown("", |row: &Row| row.said.clone()),
        filed("label", |row: &Row| row.label.name),
        filed("version", |row: &Row| row.label.step.server.version.as_str()),
        filed("version_comment", |row: &Row| row.label.step.server.version_comment.as_str()),
        filed("same_as", |row: &Row| row.same_as),
        filed("settings", |row: &Row| Value::Pairs(row.settings.clone())),
    ];
    let title = "labels, by the settings of their servers".to_owned();
    let sheet = Sheet { list: true, ..Sheet::of(columns, rows) };
    Page { title_below: true, ..Page::of(title, sheet, Vec::new()) }
}

struct Row<'l, 's> {
    label: &'l Label<'s>,
    said: String,
    same_as: &'s str,
    settings: Pairs,
}

fn row<'l, 's>(labels: &'l [Label<'s>], at: usize) -> Row<'l, 's> {
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
    said.push_str(&match &nearest {
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
    });
    if label.is_mixed {
        said.push_str("; its runs differ, this is the first");
    }
    Row { label, said, same_as: nearest.map_or("", |(of, _)| of), settings }
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

/// The values of a label for what differs anywhere among the labels of its build.
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
