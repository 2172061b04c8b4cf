//! Lists as the second published text has them: the labels of each column, best first, their peaks,
//! what tells them from each other by the variables of their servers; and times without service.

use std::collections::{BTreeMap, BTreeSet};

use super::super::escape::{clip, line as shown};
use super::super::notes::{at_clients, codes, footing, label, legend, marked, title};
use super::super::page::{Page, Rows, Sheet, Value, number};
use super::super::table::{Line, Table, merit, speed};
use super::super::write::bar;
use super::{Item, items};
use crate::error::{VALUE_MAX, told_apart};
use crate::judge::{self, Difference};
use crate::summary::{Outage, Summary};
use crate::terms::{self, named};

const SETTINGS_MAX: usize = 12;
/// Longest text of an error that a line shows, characters.
const TEXT_MAX: usize = 80;
const OUTAGES: [&str; 2] = [
    "at: the first error, from the start of the step's warm-up; gap: from the last success \
     to the next one, > where there was none",
    "to success, to 95 %: from the first error to the first success, and to the first \
     interval with 95 % of the earlier rate",
];

pub(super) fn list(tables: &[Table]) -> Vec<Page> {
    let alone = tables.len() == 1;
    tables.iter().map(|table| Page { title_below: alone, ..ranked(table) }).collect()
}

fn ranked(table: &Table) -> Page {
    let column = table.columns[0];
    let value = |line: &Line| line.cell().map(|cell| cell.spread.median);
    let mut rows: Vec<(usize, Option<f64>)> = table.lines.iter().map(value).enumerate().collect();
    // Equal ones stay in the order of their labels; what has no number comes last.
    let merit = |value: f64| merit(&table.metric, value);
    rows.sort_by(|(_, one), (_, other)| match (one, other) {
        (Some(one), Some(other)) => merit(*other).total_cmp(&merit(*one)),
        _ => one.is_none().cmp(&other.is_none()),
    });
    let decimals = table.metric.decimals(rows.iter().filter_map(|row| row.1));
    let finite = |row: &(usize, Option<f64>)| row.1.filter(|value| value.is_finite());
    let max = rows.iter().filter_map(finite).fold(0.0, f64::max);
    let drawn = rows.iter().map(|row| bar(finite(row), max)).collect();
    let (_, unit) = table.metric.short();
    let sheet = Rows::new(rows.into_iter().zip(1_usize..))
        .place_and_metric(table, |_| column)
        .shown("", |((at, value), _)| {
            let value = Value::from(value.map(|value| (value, decimals))).shown;
            format!("{value} {unit} - {}", marked(table, *at))
        })
        .filed("rank", |((_, value), rank)| value.map(|_| *rank))
        .filed("label", |((at, _), _)| table.lines[*at].label)
        .filed("value", |((_, value), _)| *value)
        .filed("notes", |((at, _), _)| codes(table, &[*at], &column))
        .sheet();
    let title = format!("{}; {}", title(table), at_clients(&column));
    Page::of(title, Sheet { list: true, drawn, ..sheet }, footing(table))
}

pub(super) fn peak(table: &Table) -> Page {
    let value = |item: &Item| item.cell.spread.median;
    // The first of equal ones: fewer clients reach it.
    let best = |a, b| {
        if merit(&table.metric, value(&b)) > merit(&table.metric, value(&a)) { b } else { a }
    };
    let peak = |at| items(table).filter(|item| item.at == at).reduce(best);
    let peaks: Vec<Option<Item>> = (0..table.lines.len()).map(peak).collect();
    let found = || peaks.iter().copied().flatten();
    let decimals = table.metric.decimals(found().map(|item| value(&item)));
    let top = found().reduce(best).map(|item| value(&item));
    let seen = Rows::new(peaks.iter().enumerate())
        .shown("peak", |(_, peak)| peak.map(|item| (value(&item), decimals)))
        .shown("clients", |(_, peak)| peak.map(|item| item.column.to_string()))
        .text("label", |(at, _)| marked(table, *at));
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
    let steps = terms::counted(steps.len() as u64, "step");
    let title = format!("{}: outages, {many} in {steps}", shown(table.workload));
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
        .text("label", |(step, _)| label(&step.label))
        .both("first error", "first_error", |(_, outage)| {
            (outage.first_error.clone(), clip(&shown(&outage.first_error), TEXT_MAX))
        })
        .filed("last_error", |(_, outage)| outage.last_error.as_str())
        .sheet();
    Page::of(title, sheet, OUTAGES.map(str::to_owned).into())
}

pub(super) fn settings(tables: &[Table]) -> Page {
    let lines = tables.iter().flat_map(|table| &table.lines).filter(|line| !line.steps.is_empty());
    let lines: Vec<&Line> = lines.collect();
    // The first step of a label stands for it.
    let mut labels: Vec<(&str, &Summary)> = Vec::new();
    for line in &lines {
        let is_new = labels.iter().all(|(known, _)| *known != line.label);
        labels.extend(is_new.then(|| (line.label, line.steps[0])));
    }
    let mixed = |(label, first): (&str, &Summary)| {
        let mut steps = lines.iter().filter(|l| l.label == label).flat_map(|line| &line.steps);
        let is_mixed = steps.any(|step| !legend(first, step).is_empty());
        if is_mixed { "; its runs differ, this is the first" } else { "" }
    };
    let sheet = Rows::new((0..labels.len()).map(|at| (labels[at], entry(&labels, at))))
        .shown("", |(of, (said, ..))| format!("{} - {said}{}", label(of.0), mixed(*of)))
        .filed("label", |((label, _), _)| *label)
        .filed("version", |((_, step), _)| step.server.version.as_str())
        .filed("version_comment", |((_, step), _)| step.server.version_comment.as_str())
        .filed("same_as", |(_, (_, same_as, _))| *same_as)
        .filed("settings", |(_, (.., settings))| settings.clone())
        .sheet();
    let title = "labels, by the settings of their servers".to_owned();
    Page { title_below: true, ..Page::of(title, Sheet { list: true, ..sheet }, Vec::new()) }
}

fn build(step: &Summary) -> (&str, &str) {
    (&step.server.version, &step.server.version_comment)
}

/// Returns what people read of a label, the earlier label that it is like, and its settings: those that
/// this one has not, or all in which labels of its build differ.
fn entry<'a>(
    labels: &[(&'a str, &Summary)],
    at: usize,
) -> (String, &'a str, Vec<(String, String)>) {
    let (_, step) = labels[at];
    let of_build = |(_, other): &&(&str, &Summary)| build(other) == build(step);
    // The earlier label with the fewest other settings, the first of equals.
    let nearest = labels[..at].iter().filter(of_build);
    let nearest = nearest.map(|(name, other)| (*name, legend(other, step)));
    let nearest = nearest.min_by_key(|(_, found)| found.len());
    // Of a long value what differs, else it looks like the other one.
    let differs = |d: &Difference| (d.name.clone(), told_apart(&d.first, &d.second).1);
    let value = |d: &Difference| (d.name.clone(), d.second.clone());
    let (settings, texts): (Vec<_>, Vec<_>) = match &nearest {
        Some((_, found)) => found.iter().map(|d| (value(d), differs(d))).unzip(),
        None => values(step, labels.iter().filter(of_build)).map(|of| (of.clone(), of)).unzip(),
    };
    let pair = |(name, value): &(String, String)| {
        format!("{}={}", clip(name, VALUE_MAX), clip(value, VALUE_MAX))
    };
    let pairs = named(texts.iter().map(pair).collect(), SETTINGS_MAX, ", ");
    let but = |how| if pairs.is_empty() { String::new() } else { format!(" {how} {pairs}") };
    let Some((name, _)) = nearest else {
        let (version, comment) = build(step);
        let build = format!("{} {}", shown(version), clip(comment, VALUE_MAX));
        return (format!("{}{}", build.trim_end(), but("with")), "", settings);
    };
    (format!("same as {}{}", shown(name), but("except")), name, settings)
}

fn values<'l>(
    step: &Summary,
    of_build: impl Iterator<Item = &'l (&'l str, &'l Summary)>,
) -> impl Iterator<Item = (String, String)> {
    let differences = of_build.flat_map(|(_, other)| legend(step, other));
    let names: BTreeSet<String> = differences.map(|difference| difference.name).collect();
    let conditions = judge::conditions(step).into_iter();
    let conditions = conditions.map(|(name, value, _)| (name.into_owned(), value));
    let values: BTreeMap<String, String> =
        conditions.chain(step.server.variables.clone()).collect();
    values.into_iter().filter(move |(name, _)| names.contains(name))
}
