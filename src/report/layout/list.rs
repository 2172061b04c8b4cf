//! Lists as the second published text has them, and the peak of each label.

use std::cmp::Ordering;

use super::super::baseline::speed;
use super::super::number::number;
use super::super::page::{Body, Field, Grid, Page};
use super::super::pivot::{Cell, Column, Line, Table};
use super::super::{caption, text};
use super::{at_clients, below, codes, marked, noted, record};

/// A list for each workload and number of clients, best first.
pub(super) fn list(tables: &[Table]) -> Vec<Page> {
    tables.iter().flat_map(Table::by_column).map(|table| one(&noted(table))).collect()
}

fn one(table: &Table) -> Page {
    let value = |line: &Line| line.cell().map(|cell| cell.spread.median);
    let mut items: Vec<(usize, Option<f64>)> = table.lines.iter().map(value).enumerate().collect();
    // Equal ones stay in the order of their labels; what has no number comes last.
    items.sort_by(|one, other| match (one.1, other.1) {
        (Some(one), Some(other)) => better(table, one, other),
        (one, other) => one.is_none().cmp(&other.is_none()),
    });
    let decimals = table.metric.decimals(items.iter().filter_map(|(_, value)| *value));
    let (_, unit) = table.metric.short();
    let bullets = items.iter().map(|(at, value)| {
        let value = value.map_or_else(|| text::NOTHING.to_owned(), |v| number(v, decimals));
        format!("{value} {unit} - {}", marked(table, *at))
    });
    let column = table.columns.first().copied();
    let records = items.iter().enumerate().map(|(rank, (at, value))| {
        let mut record = column.as_ref().map(|c| record(table, c)).unwrap_or_default();
        let label = table.lines.get(*at).map_or("", |line| line.label);
        record.extend([
            ("rank", value.map_or(Field::Number(None), |_| Field::Count(rank as u64 + 1))),
            ("label", Field::Text(label.to_owned())),
            ("value", Field::Number(*value)),
        ]);
        record.extend(column.as_ref().map(|column| codes(table, &[*at], column)));
        record
    });
    let clients = column.as_ref().map_or_else(String::new, at_clients);
    Page {
        title: vec![format!("{}; {clients}", caption::title(table))],
        body: Body::Bullets(bullets.collect()),
        below: below(table),
        records: records.collect(),
    }
}

/// The better one first.
fn better(table: &Table, one: f64, other: f64) -> Ordering {
    if table.metric.higher_is_better() { other.total_cmp(&one) } else { one.total_cmp(&other) }
}

/// The best cell of each label of each workload.
pub(super) fn peak(tables: &[Table]) -> Vec<Page> {
    tables.iter().map(|table| peaks(&noted(table.of_labels(&labels(table))))).collect()
}

fn labels<'a>(table: &Table<'a>) -> Vec<&'a str> {
    table.lines.iter().map(|line| line.label).collect()
}

fn peaks(table: &Table) -> Page {
    let best = |cells: &[Option<Cell>]| -> Option<(f64, Column)> {
        let cells = cells.iter().zip(&table.columns);
        let cells = cells.filter_map(|(c, column)| Some((c.as_ref()?.spread.median, *column)));
        // The first of equal ones: fewer clients reach it.
        cells.reduce(|best, next| if better(table, next.0, best.0).is_lt() { next } else { best })
    };
    let peaks: Vec<Option<(f64, Column)>> =
        table.lines.iter().map(|line| best(&line.cells)).collect();
    let values = || peaks.iter().flatten().map(|(value, _)| *value);
    let decimals = table.metric.decimals(values());
    let top = values().reduce(|a, b| if better(table, b, a).is_lt() { b } else { a });
    let mut grid = Grid {
        head: ["peak", "clients", "label"].map(str::to_owned).to_vec(),
        texts: vec![2],
        ..Grid::default()
    };
    let mut records = Vec::new();
    for (at, (line, peak)) in table.lines.iter().zip(&peaks).enumerate() {
        let none = || text::NOTHING.to_owned();
        grid.rows.push(vec![
            peak.map_or_else(none, |(value, _)| number(value, decimals)),
            peak.map_or_else(none, |(_, column)| column.to_string()),
            marked(table, at),
        ]);
        let Some((value, column)) = peak else { continue };
        let mut record = record(table, column);
        record.extend([
            ("label", Field::Text(line.label.to_owned())),
            ("value", Field::Number(Some(*value))),
            ("relative", Field::Number(top.and_then(|top| speed(&table.metric, top, *value)))),
            codes(table, &[at], column),
        ]);
        records.push(record);
    }
    Page {
        title: vec![format!("{}; the best of each label", caption::title(table))],
        body: Body::Grid(grid),
        below: below(table),
        records,
    }
}
