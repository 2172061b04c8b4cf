//! One row a cell with everything that identifies it: what a pivot table, a filter or a script
//! wants. Numbers are not rounded.

use super::escape::formula;
use super::notes::Places;
use super::pivot::{Cell, Column, Line, Table, metric_at};
use crate::error::{Error, Result};
use crate::judge;
use crate::summary::Server;

/// The columns; new ones are added at the end.
const HEADER: [&str; 24] = [
    "workload",
    "label",
    "clients",
    "rate",
    "metric",
    "unit",
    "value",
    "min",
    "max",
    "steps",
    "baseline",
    "relative",
    "tables",
    "rows",
    "distribution",
    "statements",
    "transport",
    "server_version",
    "started_at",
    "notes",
    "class",
    "durability",
    "data_bytes",
    "buffer_pool_bytes",
];

/// The header and one row a measured cell, tables and lines in their order.
pub(crate) fn render(tables: &[Table]) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| Error::failed(format!("CSV: {error}"));
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER).map_err(|error| failed(&error))?;
    for table in tables {
        for (at, line) in table.lines.iter().enumerate() {
            for (column, cell) in table.columns.iter().zip(&line.cells) {
                let Some(cell) = cell else { continue };
                let record = record(table, at, line, *column, cell);
                writer.write_record(record).map_err(|error| failed(&error))?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}

fn record(
    table: &Table,
    at: usize,
    line: &Line,
    column: Column,
    cell: &Cell,
) -> [String; HEADER.len()] {
    let or_empty = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let first = cell.steps.first();
    let conditions = first.map(|step| judge::conditions(step)).unwrap_or_default();
    let condition = |name: &str| {
        let found = conditions.iter().find(|(known, ..)| *known == name);
        found.map_or_else(String::new, |(_, value, _)| formula(value))
    };
    let bytes = |of: fn(&Server) -> Option<u64>| {
        first.and_then(|step| of(&step.server)).map_or_else(String::new, |n| n.to_string())
    };
    let holds = |places: &Places| places.get(&at).is_some_and(|columns| columns.contains(&column));
    let marked = table.notes.iter().filter(|note| holds(&note.places));
    let notes: Vec<&str> = marked.map(|note| note.code.as_str()).collect();
    [
        formula(table.workload),
        formula(line.label),
        column.clients.to_string(),
        or_empty(column.per_s()),
        metric_at(&column, table).to_string(),
        table.metric.unit().to_owned(),
        cell.spread.median.to_string(),
        cell.spread.min.to_string(),
        cell.spread.max.to_string(),
        cell.spread.n.to_string(),
        table.baseline.as_deref().map_or_else(String::new, formula),
        or_empty(cell.relative),
        condition("tables"),
        condition("rows"),
        condition("distribution"),
        condition("statements"),
        condition("transport"),
        first.map_or_else(String::new, |step| formula(&step.server.version)),
        first.map_or_else(String::new, |step| formula(&step.started_at)),
        formula(&notes.join(" ")),
        condition("class"),
        condition("durability"),
        bytes(|server| server.data_bytes),
        bytes(|server| server.buffer_pool_bytes),
    ]
}
