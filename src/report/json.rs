//! One object, `loadgen.report/1`: adding a field keeps the version, as in summaries.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;

use super::Options;
use super::notes::{Places, conditions};
use super::pivot::{Table, metric_at};
use crate::summary::escape_hostile;

/// The `schema` value of a report.
pub(crate) const SCHEMA: &str = "loadgen.report/1";

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    layout: &'static str,
    /// Of the first table.
    metric: Option<Metric>,
    /// The label that `relative` relates to.
    baseline: Option<&'a str>,
    tables: Vec<Sheet<'a>>,
}

#[derive(Serialize)]
struct Metric {
    name: String,
    unit: &'static str,
    higher_is_better: bool,
}

#[derive(Serialize)]
struct Sheet<'a> {
    workload: &'a str,
    metric: Metric,
    columns: Vec<Column>,
    lines: Vec<Line<'a>>,
    notes: Vec<Note<'a>>,
}

#[derive(Serialize)]
struct Column {
    clients: u32,
    rate: Option<f64>,
    /// The metric of its cells.
    metric: String,
}

#[derive(Serialize)]
struct Line<'a> {
    label: &'a str,
    /// Name and values of the conditions of its steps.
    conditions: serde_json::Map<String, serde_json::Value>,
    /// One a column, null where nothing was measured.
    cells: Vec<Option<Cell<'a>>>,
}

#[derive(Serialize)]
struct Cell<'a> {
    value: f64,
    min: f64,
    max: f64,
    steps: usize,
    relative: Option<f64>,
    step_ids: Vec<&'a str>,
}

#[derive(Serialize)]
struct Note<'a> {
    code: &'a str,
    text: &'a str,
    places: Vec<Place>,
}

/// Where a note holds: positions in `lines`, and of each in `columns`.
#[derive(Serialize)]
struct Place {
    line: usize,
    columns: Vec<usize>,
}

/// The report as indented JSON.
pub(crate) fn render(tables: &[Table], options: &Options) -> String {
    let report = Report {
        schema: SCHEMA,
        layout: "versions",
        metric: tables.first().map(metric),
        baseline: options.baseline.as_deref(),
        tables: tables.iter().map(sheet).collect(),
    };
    // Maps have string keys and nothing here fails by itself: there is no error to report.
    let mut json = serde_json::to_string_pretty(&report).unwrap_or_default();
    json.push('\n');
    escape_hostile(json)
}

fn metric(table: &Table) -> Metric {
    Metric {
        name: table.metric.to_string(),
        unit: table.metric.unit(),
        higher_is_better: table.metric.higher_is_better(),
    }
}

fn sheet<'a>(table: &'a Table<'a>) -> Sheet<'a> {
    let line = |line: &'a super::pivot::Line<'a>| Line {
        label: line.label,
        conditions: conditions(line)
            .into_iter()
            .chain(options(line))
            .map(|(name, values)| (name.to_lowercase().replace([' ', '-'], "_"), values.into()))
            .collect(),
        cells: line.cells.iter().map(|cell| cell.as_ref().map(self::cell)).collect(),
    };
    Sheet {
        workload: table.workload,
        metric: metric(table),
        columns: table
            .columns
            .iter()
            .map(|column| Column {
                clients: column.clients,
                rate: column.per_s(),
                metric: metric_at(column, table).to_string(),
            })
            .collect(),
        lines: table.lines.iter().map(line).collect(),
        notes: table
            .notes
            .iter()
            .map(|note| Note {
                code: &note.code,
                text: &note.text,
                places: places(table, &note.places),
            })
            .collect(),
    }
}

/// All options of a workload in one text: the others are those that are not as usual.
fn options(line: &super::pivot::Line) -> Option<(Cow<'static, str>, Vec<String>)> {
    let mut texts: Vec<String> = Vec::new();
    for step in &line.steps {
        let options = step.workload.options.iter().map(|(k, v)| format!("{k} {v}"));
        let text = options.collect::<Vec<_>>().join(" and ");
        let text = if text.is_empty() { "none".to_owned() } else { text };
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    (!texts.is_empty()).then_some((Cow::Borrowed("options"), texts))
}

fn places(table: &Table, places: &Places) -> Vec<Place> {
    let of = |(line, columns): (&usize, &BTreeSet<super::pivot::Column>)| Place {
        line: *line,
        columns: (0..)
            .zip(&table.columns)
            .filter(|(_, column)| columns.contains(column))
            .map(|(at, _)| at)
            .collect(),
    };
    places.iter().map(of).collect()
}

fn cell<'a>(cell: &'a super::pivot::Cell<'a>) -> Cell<'a> {
    Cell {
        value: cell.spread.median,
        min: cell.spread.min,
        max: cell.spread.max,
        steps: cell.spread.n,
        relative: cell.relative,
        step_ids: cell.steps.iter().map(|step| step.step_id.as_str()).collect(),
    }
}
