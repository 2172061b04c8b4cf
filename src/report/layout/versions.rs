//! The plain table, one label a line, and how the runs of each of its cells spread.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::super::files::{SCHEMA, pretty};
use super::super::notes::{Note, conditions};
use super::super::number::ratio_decimals;
use super::super::page::{Column, Page, Sheet, Value, both, filed, shown};
use super::super::table::{self, Cell, Line, Table, metric_at};
use super::super::{Options, baseline, caption, escape, text};
use super::{footnotes, label, marked, noted, place_and_metric, rows};
use crate::error::Result;
use crate::judge::{self, Weight};

/// A column of the text is at least so wide, blanks included.
const PITCH: usize = 8;
/// What the header says about its numbers.
pub(crate) const CLIENTS: &str = "concurrent clients";
const RUNS: &str = "a run is one value; the interval covers the median of such runs with 95 %, \
                    whatever their distribution (order statistics), and needs six of them";

pub(super) fn pages(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    let tables = related(tables, options)?;
    let plain =
        |table: &Table| table.metric == super::super::Metric::Qps && table.baseline.is_none();
    let below = matches!(tables.as_slice(), [table] if plain(table));
    Ok(tables.iter().map(|table| Page { title_below: below, ..page(table) }).collect())
}

/// Returns the tables with their ratios to the baseline and their footnotes.
fn related<'a>(tables: &[Table<'a>], options: &Options) -> Result<Vec<Table<'a>>> {
    let mut tables = tables.to_vec();
    if let Some(label) = &options.baseline {
        baseline::relate(&mut tables, label)?;
    }
    Ok(tables.into_iter().map(noted).collect())
}

fn page(table: &Table) -> Page {
    let decimals = decimals(table);
    let cells = table.columns.iter().enumerate();
    let mut columns: Vec<Column<_>> = cells
        .map(|(at, column)| {
            shown(column.to_string(), move |(_, line): &(usize, &Line)| {
                number(table, line.cells[at].as_ref(), decimals)
            })
        })
        .collect();
    columns.push(shown(CLIENTS, |(at, _): &(usize, &Line)| marked(table, *at)).left());
    let sheet = Sheet { pitch: PITCH, drawn: shapes(table), ..Sheet::of(columns, rows(table)) };
    Page {
        title: vec![caption::title(table)],
        sheets: vec![sheet, records(table)],
        notes: footnotes(table),
        below: caption::below(table),
        ..Page::default()
    }
}

/// Digits after the point of what a table shows.
pub(crate) fn decimals(table: &Table) -> usize {
    match &table.baseline {
        Some(_) => ratio_decimals(table.shown()),
        None => table.metric.decimals(table.shown()),
    }
}

/// Tells what a cell shows.
pub(crate) fn number(table: &Table, cell: Option<&Cell>, decimals: usize) -> Value {
    cell.and_then(|cell| table.number(cell)).map(|value| (value, decimals)).into()
}

/// Returns the shape of each line, from zero to the largest number of the table.
fn shapes(table: &Table) -> Vec<String> {
    let max = table.shown().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let shape = |line: &Line| {
        let values = line.cells.iter().map(|cell| cell.as_ref().and_then(|c| table.number(c)));
        if table.columns.len() > 1 { text::shape(values, max) } else { String::new() }
    };
    table.lines.iter().map(shape).collect()
}

/// A measured cell with its line and column.
struct Measured<'t, 's> {
    at: usize,
    line: &'t Line<'s>,
    column: table::Column,
    cell: &'t Cell<'s>,
    conditions: OnceCell<Vec<Condition>>,
}

/// Name, value and weight.
type Condition = (Cow<'static, str>, String, Weight);

fn measured<'t, 's>(table: &'t Table<'s>) -> impl Iterator<Item = Measured<'t, 's>> {
    rows(table).flat_map(|(at, line)| {
        let cells = table.columns.iter().zip(&line.cells);
        cells.filter_map(move |(column, cell)| {
            let (cell, conditions) = (cell.as_ref()?, OnceCell::new());
            Some(Measured { at, line, column: *column, cell, conditions })
        })
    })
}

/// Returns one row a cell with everything that identifies it. New columns are added at the end.
fn records(table: &Table) -> Sheet {
    type Of<'a> = Measured<'a, 'a>;
    let condition = |name: &'static str| {
        filed(name, move |of: &Of| {
            let conditions = of.conditions.get_or_init(|| judge::conditions(of.cell.steps[0]));
            let found = conditions.iter().find(|(known, ..)| *known == name);
            found.map(|(_, value, _)| value.clone())
        })
    };
    let mut columns = vec![
        filed("workload", |_: &Of| table.workload),
        filed("label", |of: &Of| of.line.label),
        filed("clients", |of: &Of| of.column.clients),
        filed("rate", |of: &Of| of.column.per_s()),
        filed("metric", |of: &Of| metric_at(&of.column, table).to_string()),
        filed("unit", |_: &Of| table.metric.unit()),
        filed("value", |of: &Of| of.cell.spread.median),
        filed("min", |of: &Of| of.cell.spread.min),
        filed("max", |of: &Of| of.cell.spread.max),
        filed("steps", |of: &Of| of.cell.spread.n),
        filed("baseline", |_: &Of| table.baseline.clone()),
        filed("relative", |of: &Of| of.cell.relative),
    ];
    columns.extend(["tables", "rows", "distribution", "statements", "transport"].map(condition));
    columns.extend([
        filed("server_version", |of: &Of| of.cell.steps[0].server.version.as_str()),
        filed("started_at", |of: &Of| of.cell.steps[0].started_at.as_str()),
        filed("notes", |of: &Of| super::codes(table, &[of.at], &of.column)),
    ]);
    columns.extend(["class", "durability"].map(condition));
    columns.extend([
        filed("data_bytes", |of: &Of| of.cell.steps[0].server.data_bytes),
        filed("buffer_pool_bytes", |of: &Of| of.cell.steps[0].server.buffer_pool_bytes),
    ]);
    Sheet::of(columns, measured(table))
}

/// Tells how the runs of each cell spread, a page for each table.
pub(crate) fn spread(table: &Table) -> Page {
    type Of<'a> = Measured<'a, 'a>;

    let values = table.cells();
    let decimals = table.metric.decimals(values.map(|cell| cell.spread.median));
    let shown_as = move |value: f64| Value::Number(value, decimals).text();
    let mut columns = vec![shown("clients", |of: &Of| of.column.to_string())];
    columns.extend(place_and_metric(table, |of: &Of| of.column));
    columns.extend([
        filed("label", |of: &Of| of.line.label),
        both("runs", "runs", |of: &Of| of.cell.spread.n),
        both("median", "median", move |of: &Of| (of.cell.spread.median, decimals)),
        both("min", "min", move |of: &Of| (of.cell.spread.min, decimals)),
        both("max", "max", move |of: &Of| (of.cell.spread.max, decimals)),
        shown("range %", |of: &Of| range(of.cell).map(|share| (share * 100.0, 1))),
        shown("95 % interval", move |of: &Of| {
            of.cell.interval.map(|(low, high)| format!("{} to {}", shown_as(low), shown_as(high)))
        })
        .left(),
        shown("label", |of: &Of| label(of.line.label)).left(),
        filed("interval_low", |of: &Of| of.cell.interval.map(|i| i.0)),
        filed("interval_high", |of: &Of| of.cell.interval.map(|i| i.1)),
    ]);
    let title = format!(
        "{}: {}, {}; the runs of each cell",
        escape::line(table.workload),
        table.metric.name(),
        table.metric.unit_in_words()
    );
    Page::of(title, Sheet::of(columns, measured(table)), vec![RUNS.to_owned()])
}

/// Tells how far the extremes of a cell lie apart, as a share of its median.
fn range(cell: &Cell) -> Option<f64> {
    let spread = cell.spread;
    (spread.n > 1 && spread.median > 0.0).then(|| (spread.max - spread.min) / spread.median)
}

/// JSON whose fields stay in their order.
enum Node {
    Leaf(serde_json::Value),
    List(Vec<Node>),
    Fields(Vec<(&'static str, Node)>),
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Node::Leaf(value) => value.serialize(serializer),
            Node::List(nodes) => nodes.serialize(serializer),
            Node::Fields(fields) => {
                serializer.collect_map(fields.iter().map(|(name, node)| (name, node)))
            }
        }
    }
}

fn leaf(value: impl Into<serde_json::Value>) -> Node {
    Node::Leaf(value.into())
}

fn list<T>(of: impl IntoIterator<Item = T>, node: impl FnMut(T) -> Node) -> Node {
    Node::List(of.into_iter().map(node).collect())
}

/// Writes the tables as JSON: lines of cells, which are more than rows.
pub(crate) fn json(tables: &[Table], options: &Options) -> Result<String> {
    let tables = related(tables, options)?;
    Ok(pretty(&Node::Fields(vec![
        ("schema", leaf(SCHEMA)),
        ("layout", leaf("versions")),
        ("metric", tables.first().map_or(leaf(()), metric)),
        ("baseline", leaf(options.baseline.as_deref())),
        ("tables", list(&tables, of_table)),
    ])))
}

fn metric(table: &Table) -> Node {
    Node::Fields(vec![
        ("name", leaf(table.metric.to_string())),
        ("unit", leaf(table.metric.unit())),
        ("higher_is_better", leaf(table.metric.higher_is_better())),
    ])
}

fn of_table(table: &Table) -> Node {
    let column = |column: &table::Column| {
        Node::Fields(vec![
            ("clients", leaf(column.clients)),
            ("rate", leaf(column.per_s())),
            ("metric", leaf(metric_at(column, table).to_string())),
        ])
    };
    Node::Fields(vec![
        ("workload", leaf(table.workload)),
        ("metric", metric(table)),
        ("columns", list(&table.columns, column)),
        ("lines", list(&table.lines, of_line)),
        ("notes", list(&table.notes, |note| of_note(table, note))),
    ])
}

fn of_line(line: &Line) -> Node {
    let conditions = conditions(line)
        .into_iter()
        .map(|(name, values)| (name.to_lowercase().replace([' ', '-'], "_"), values.into()))
        .chain(options(line).map(|texts| ("options".to_owned(), texts.into())));
    Node::Fields(vec![
        ("label", leaf(line.label)),
        ("conditions", leaf(conditions.collect::<serde_json::Map<_, _>>())),
        ("cells", list(&line.cells, |cell| cell.as_ref().map_or(leaf(()), of_cell))),
    ])
}

fn of_cell(cell: &Cell) -> Node {
    let ids = cell.steps.iter().map(|step| step.step_id.as_str());
    Node::Fields(vec![
        ("value", leaf(cell.spread.median)),
        ("min", leaf(cell.spread.min)),
        ("max", leaf(cell.spread.max)),
        ("steps", leaf(cell.spread.n)),
        ("relative", leaf(cell.relative)),
        ("step_ids", list(ids, leaf)),
    ])
}

/// Returns a note, and where it holds: positions in `lines`, and of each in `columns`.
fn of_note(table: &Table, note: &Note) -> Node {
    let place = |(line, columns): (&usize, &BTreeSet<table::Column>)| {
        let held = (0..table.columns.len()).filter(|at| columns.contains(&table.columns[*at]));
        Node::Fields(vec![("line", leaf(*line)), ("columns", list(held, leaf))])
    };
    Node::Fields(vec![
        ("code", leaf(note.code.as_str())),
        ("text", leaf(note.text.as_str())),
        ("places", list(&note.places, place)),
    ])
}

/// Returns all options of a workload in one text: the others are those that are not as usual.
fn options(line: &Line) -> Option<Vec<String>> {
    let mut texts: Vec<String> = Vec::new();
    for step in &line.steps {
        let options = step.workload.options.iter().map(|(k, v)| format!("{k} {v}"));
        let text = options.collect::<Vec<_>>().join(" and ");
        let text = if text.is_empty() { "none".to_owned() } else { text };
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    (!texts.is_empty()).then_some(texts)
}
