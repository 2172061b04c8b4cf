//! Lists as the second published text has them: the labels of each column, best first, their peaks,
//! what tells them from each other by the variables of their servers; and times without service.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::super::escape::{clip, line as shown};
use super::super::notes::{at_clients, codes, footing, label, legend, marked, title};
use super::super::page::{Page, Rows, Sheet, Value, number};
use super::super::table::{Table, speed};
use super::super::write::bar;
use super::{Item, items};
use crate::error::{VALUE_MAX, told_apart};
use crate::judge::{self, Difference};
use crate::summary::{Outage, Summary};
use crate::terms::named;

const SETTINGS_MAX: usize = 12;
/// Longest text of an error that a line shows, characters.
const TEXT_MAX: usize = 80;
const OUTAGES: [&str; 2] = [
    "at: the first error, from the start of the step's warm-up; gap: from the last success \
     to the next one, > where there was none",
    "to success, to 95 %: from the first error to the first success, and to the first \
     interval with 95 % of the earlier rate",
];

fn better(table: &Table, one: f64, other: f64) -> Ordering {
    if table.metric.higher_is_better() { other.total_cmp(&one) } else { one.total_cmp(&other) }
}

pub(super) fn list(tables: &[Table]) -> Vec<Page> {
    let alone = tables.len() == 1;
    tables.iter().map(|table| Page { title_below: alone, ..ranked(table) }).collect()
}

fn ranked(table: &Table) -> Page {
    let column = table.columns[0];
    // Equal ones stay in the order of their labels; what has no number comes last.
    let mut found: Vec<Item> = items(table).collect();
    found.sort_by(|a, b| better(table, a.cell.spread.median, b.cell.spread.median));
    let value = |item: &Item| item.cell.spread.median;
    let ranks =
        found.iter().zip(1_usize..).map(|(item, rank)| (item.at, Some((value(item), rank))));
    let without = (0..table.lines.len()).filter(|at| table.lines[*at].cell().is_none());
    let rows: Vec<(usize, Option<(f64, usize)>)> =
        ranks.chain(without.map(|at| (at, None))).collect();
    let decimals = table.metric.decimals(found.iter().map(value));
    let (_, unit) = table.metric.short();
    let drawn = {
        let value = |(_, found): &(usize, Option<(f64, usize)>)| {
            found.map(|(value, _)| value).filter(|value| value.is_finite()).unwrap_or(0.0)
        };
        let max = rows.iter().map(value).fold(0.0, f64::max);
        let bar = |row| if max > 0.0 { bar(value(row), max) } else { String::new() };
        rows.iter().map(bar).collect()
    };
    let sheet = Rows::new(rows)
        .place_and_metric(table, |_| column)
        .shown("", |(at, found)| {
            let value = Value::from(found.map(|(value, _)| (value, decimals))).text();
            format!("{value} {unit} - {}", marked(table, *at))
        })
        .filed("rank", |(_, found)| found.map(|(_, rank)| rank))
        .filed("label", |(at, _)| table.lines[*at].label)
        .filed("value", |(_, found)| found.map(|(value, _)| value))
        .filed("notes", |(at, _)| codes(table, &[*at], &column))
        .sheet();
    let title = format!("{}; {}", title(table), at_clients(&column));
    Page::of(title, Sheet { list: true, drawn, ..sheet }, footing(table))
}

pub(super) fn peak(table: &Table) -> Page {
    let value = |item: &Item| item.cell.spread.median;
    // The first of equal ones: fewer clients reach it.
    let best = |a, b| if better(table, value(&b), value(&a)).is_lt() { b } else { a };
    let peaks = (0..table.lines.len())
        .map(|at| (at, items(table).filter(|item| item.at == at).reduce(best)));
    let peaks: Vec<(usize, Option<Item>)> = peaks.collect();
    let found = || peaks.iter().filter_map(|(_, item)| *item);
    let decimals = table.metric.decimals(found().map(|item| value(&item)));
    let top = found().reduce(best).map(|item| value(&item));
    let seen = Rows::new(peaks.iter().copied())
        .shown("peak", |(_, peak)| peak.map(|item| (value(&item), decimals)))
        .shown("clients", |(_, peak)| peak.map(|item| item.column.to_string()))
        .shown("label", |(at, _)| marked(table, *at))
        .left();
    let records = Rows::new(found())
        .place_and_metric(table, |item| item.column)
        .filed("label", |item| item.line.label)
        .filed("value", value)
        .filed("relative", |item| speed(&table.metric, top?, value(item)))
        .filed("notes", |item| codes(table, &[item.at], &item.column));
    let sheets = vec![seen.sheet(), records.sheet()];
    let title = vec![format!("{}; the best of each label", title(table))];
    Page { title, sheets, below: footing(table), ..Page::default() }
}

/// Returns the outages of a workload's steps; those that did not complete are in it, too.
pub(super) fn outages(table: &Table) -> Page {
    let mut steps: Vec<&Summary> = Vec::new();
    for line in &table.lines {
        let mut of_label: Vec<&Summary> = line.all().collect();
        of_label.sort_by(|one, other| one.started_at.cmp(&other.started_at));
        steps.extend(of_label);
    }
    let rows: Vec<(&Summary, &Outage)> =
        steps.iter().flat_map(|step| step.outages.iter().map(|outage| (*step, outage))).collect();
    let many = if rows.is_empty() { "none".to_owned() } else { rows.len().to_string() };
    let title = format!(
        "{}: outages, {many} in {} step{}",
        shown(table.workload),
        steps.len(),
        if steps.len() == 1 { "" } else { "s" }
    );
    if rows.is_empty() {
        return Page::of(title, Sheet::default(), Vec::new());
    }
    let until = |outage: &Outage, instant_s: Option<f64>| {
        instant_s.map(|s| ((s - outage.first_error_s).max(0.0), 2))
    };
    let sheet = Rows::new(rows)
        .shown("clients", |(step, _)| step.cell().to_string())
        .place(table, |(step, _)| step.cell())
        .filed("label", |(step, _)| step.label.as_str())
        .filed("step_id", |(step, _)| step.step_id.as_str())
        .both("at s", "first_error_s", |(_, outage)| (outage.first_error_s, 2))
        .filed("last_error_s", |(_, outage)| outage.last_error_s)
        .shown("gap s", |(_, outage)| {
            let more = if outage.first_success_s.is_none() { "> " } else { "" };
            format!("{more}{}", number(outage.gap_s, 2))
        })
        .filed("gap_s", |(_, outage)| outage.gap_s)
        .both("to success s", "to_success_s", |(_, outage)| until(outage, outage.first_success_s))
        .both("to 95 % s", "to_95_percent_s", |(_, outage)| until(outage, outage.recovered_s))
        .filed("code", |(_, outage)| outage.code.map(u64::from))
        .both("errors", "errors", |(_, outage)| outage.errors)
        .shown("label", |(step, _)| label(&step.label))
        .left()
        .both("first error", "first_error", |(_, outage)| {
            Value::Label(outage.first_error.clone(), clip(&shown(&outage.first_error), TEXT_MAX))
        })
        .left()
        .filed("last_error", |(_, outage)| outage.last_error.as_str())
        .sheet();
    Page::of(title, sheet, OUTAGES.map(str::to_owned).into())
}

struct Label<'a> {
    name: &'a str,
    step: &'a Summary,
    /// Others of its steps were measured on other settings.
    is_mixed: bool,
}

impl Label<'_> {
    fn build(&self) -> (&str, &str) {
        (&self.step.server.version, &self.step.server.version_comment)
    }
}

pub(super) fn settings(tables: &[Table]) -> Page {
    let mut labels: Vec<Label> = Vec::new();
    for line in tables.iter().flat_map(|table| &table.lines).filter(|line| !line.steps.is_empty()) {
        let at = labels.iter().position(|label| label.name == line.label).unwrap_or_else(|| {
            labels.push(Label { name: line.label, step: line.steps[0], is_mixed: false });
            labels.len() - 1
        });
        let label = &mut labels[at];
        label.is_mixed |= line.steps.iter().any(|step| !legend(label.step, step).is_empty());
    }
    let sheet = Rows::new((0..labels.len()).map(|at| entry(&labels, at)))
        .shown("", |row| row.said.clone())
        .filed("label", |row| row.label.name)
        .filed("version", |row| row.label.step.server.version.as_str())
        .filed("version_comment", |row| row.label.step.server.version_comment.as_str())
        .filed("same_as", |row| row.same_as)
        .filed("settings", |row| Value::Pairs(row.settings.clone()))
        .sheet();
    let title = "labels, by the settings of their servers".to_owned();
    Page { title_below: true, ..Page::of(title, Sheet { list: true, ..sheet }, Vec::new()) }
}

struct Entry<'l, 's> {
    label: &'l Label<'s>,
    said: String,
    same_as: &'s str,
    settings: Vec<(String, String)>,
}

fn entry<'l, 's>(labels: &'l [Label<'s>], at: usize) -> Entry<'l, 's> {
    let label = &labels[at];
    let of_build = |labels: &'l [Label<'s>]| labels.iter().filter(|l| l.build() == label.build());
    // The earlier label with the fewest other settings, the first of equals.
    let nearest = of_build(&labels[..at])
        .map(|other| (other.name, legend(other.step, label.step)))
        .reduce(|best, next| if next.1.len() < best.1.len() { next } else { best });
    let earlier = nearest.is_some();
    // Of a long value what differs, else it looks like the other one.
    let (same_as, settings, texts): (_, Vec<_>, Vec<_>) = if let Some((name, found)) = nearest {
        let differs = |d: &Difference| (d.name.clone(), told_apart(&d.first, &d.second).1);
        let value = |d: &Difference| (d.name.clone(), d.second.clone());
        (name, found.iter().map(value).collect(), found.iter().map(differs).collect())
    } else {
        let whole = values(label, of_build(labels));
        ("", whole.clone(), whole)
    };
    let pair = |(name, value): &(String, String)| {
        format!("{}={}", clip(name, VALUE_MAX), clip(value, VALUE_MAX))
    };
    let pairs = named(texts.iter().map(pair).collect(), SETTINGS_MAX, ", ");
    let (version, comment) = label.build();
    let said = match (earlier, settings.is_empty()) {
        (true, true) => format!("same as {}", shown(same_as)),
        (true, false) => format!("same as {} except {pairs}", shown(same_as)),
        (false, empty) => {
            let comment = format!(" {}", clip(comment, VALUE_MAX));
            let with = if empty { String::new() } else { format!(" with {pairs}") };
            format!("{}{}{with}", shown(version), comment.trim_end())
        }
    };
    let mixed = if label.is_mixed { "; its runs differ, this is the first" } else { "" };
    let said = format!("{} - {said}{mixed}", self::label(label.name));
    Entry { label, said, same_as, settings }
}

fn values<'l, 's: 'l>(
    label: &Label,
    of_build: impl Iterator<Item = &'l Label<'s>>,
) -> Vec<(String, String)> {
    let differences = of_build.flat_map(|other| legend(label.step, other.step));
    let names: BTreeSet<String> = differences.map(|difference| difference.name).collect();
    let values: BTreeMap<String, String> = judge::conditions(label.step)
        .into_iter()
        .map(|(name, value, _)| (name.into_owned(), value))
        .chain(label.step.server.variables.clone())
        .collect();
    names.into_iter().filter_map(|name| Some((name.clone(), values.get(&name)?.clone()))).collect()
}
