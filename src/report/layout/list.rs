//! Lists as the second published text has them, and the peak of each label.

use std::cmp::Ordering;

use super::super::baseline::speed;
use super::super::page::{Page, Sheet, Value, filed, shown};
use super::super::pivot::{Cell, Column, Line, Table};
use super::super::{caption, spark};
use super::{at_clients, below, codes, marked, marked_label, noted, place_and_metric, rows};

/// A list for each workload and number of clients, best first.
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
    let bar = |item| if max > 0.0 { spark::bar(value(item), max) } else { String::new() };
    items.iter().map(bar).collect()
}

/// The better one first.
fn better(table: &Table, one: f64, other: f64) -> Ordering {
    if table.metric.higher_is_better() { other.total_cmp(&one) } else { one.total_cmp(&other) }
}

/// The best cell of each label of each workload.
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
