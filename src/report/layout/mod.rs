//! The layouts of tables: what each takes, and the plain one, one label a line.

mod list;
mod relative;

pub(crate) use relative::LEGEND as COSTS;
use serde::{Serialize, Serializer};

use super::notes::{self, Note, codes, conditions, footnotes, label, marked, noted, push_new};
use super::page::{Page, Rows, Sheet, Value, ratio_decimals};
use super::table::{Cell, Column, Line, Table, known};
use super::write::{SCHEMA, pretty, shape};
use super::{Layout, Metric, Options, escape};
use crate::error::{Error, Result};
use crate::judge;

/// Refuses labels that a layout does nothing with, and the lack of those that it needs.
pub(crate) fn check(options: &Options) -> Result<()> {
    let layout = options.layout;
    let refused =
        |what: &str, hint: &str| Err(Error::usage(format!("--layout {layout} {what}")).hint(hint));
    if layout.compares() && (options.from.is_none() || options.to.is_none()) {
        return refused("compares two labels", "--from LABEL --to LABEL names them");
    }
    if !layout.compares() && (options.from.is_some() || options.to.is_some()) {
        let hint = "--layout delta and --layout overhead do; --baseline relates all labels";
        return refused("takes no --from and --to", hint);
    }
    if options.spread && layout != Layout::Versions {
        return refused("takes no --spread", "--layout versions, the default, does");
    }
    if !layout.relates() && options.baseline.is_some() {
        return refused("takes no --baseline", "--layout versions, relative and per-op do");
    }
    Ok(())
}

pub(crate) fn pages(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    let baseline = options.baseline.as_deref();
    if let Some(label) = baseline {
        known(tables, "--baseline", label)?;
    }
    let slices = || tables.iter().flat_map(Table::by_column).map(noted);
    match options.layout {
        Layout::Versions => Ok(plain(tables, options)),
        Layout::List => Ok(list::list(&slices().collect::<Vec<Table>>())),
        Layout::Peak => Ok(tables.iter().map(|table| list::peak(&noted(table.clone()))).collect()),
        Layout::Outages => Ok(tables.iter().map(list::outages).collect()),
        Layout::Settings => Ok(vec![list::settings(tables)]),
        Layout::Relative => Ok(slices().map(|table| relative::relative(table, baseline)).collect()),
        Layout::PerOp => slices().map(|table| relative::per_op(&table, baseline)).collect(),
        Layout::Suite => relative::suites(slices()),
        Layout::Delta => relative::delta(tables, options),
        Layout::Overhead => relative::overhead(tables, options),
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Item<'t, 's> {
    pub at: usize,
    pub line: &'t Line<'s>,
    pub column: Column,
    pub cell: &'t Cell<'s>,
}

pub(crate) fn items<'t, 's>(table: &'t Table<'s>) -> impl Iterator<Item = Item<'t, 's>> {
    table.lines.iter().enumerate().flat_map(move |(at, line)| {
        let cells = table.columns.iter().zip(&line.cells);
        cells.filter_map(move |(column, cell)| {
            Some(Item { at, line, column: *column, cell: cell.as_ref()? })
        })
    })
}

/// A column of the text is at least so wide, blanks included.
const PITCH: usize = 8;
/// What the header says about its numbers.
pub(crate) const CLIENTS: &str = "concurrent clients";
const RUNS: &str = "a run is one value; the interval covers the median of such runs with 95 %, \
                    whatever their distribution (order statistics), and needs six of them";

fn plain(tables: &[Table], options: &Options) -> Vec<Page> {
    let tables = related(tables, options);
    let plain = |table: &Table| table.metric == Metric::QPS && table.baseline.is_none();
    let below = matches!(tables.as_slice(), [table] if plain(table));
    tables.iter().map(|table| Page { title_below: below, ..page(table) }).collect()
}

/// Returns the tables with their ratios to the baseline and their footnotes.
fn related<'a>(tables: &[Table<'a>], options: &Options) -> Vec<Table<'a>> {
    let mut tables = tables.to_vec();
    if let Some(label) = &options.baseline {
        for table in &mut tables {
            table.relate(label);
        }
    }
    tables.into_iter().map(noted).collect()
}

fn page(table: &Table) -> Page {
    let decimals = decimals(table);
    let mut rows = Rows::new(table.lines.iter().enumerate());
    for (at, column) in table.columns.iter().enumerate() {
        rows = rows.shown(column.to_string(), |(_, line)| {
            number(table, line.cells[at].as_ref(), decimals)
        });
    }
    let sheet = rows.shown(CLIENTS, |(at, _)| marked(table, *at)).left().sheet();
    let sheet = Sheet { pitch: PITCH, drawn: shapes(table), ..sheet };
    Page {
        title: vec![notes::title(table)],
        sheets: vec![sheet, records(table)],
        notes: footnotes(table),
        below: notes::below(table),
        ..Page::default()
    }
}

pub(crate) fn decimals(table: &Table) -> usize {
    match &table.baseline {
        Some(_) => ratio_decimals(table.shown()),
        None => table.metric.decimals(table.shown()),
    }
}

pub(crate) fn number(table: &Table, cell: Option<&Cell>, decimals: usize) -> Value {
    cell.and_then(|cell| table.number(cell)).map(|value| (value, decimals)).into()
}

fn shapes(table: &Table) -> Vec<String> {
    let max = table.shown().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let shape = |line: &Line| {
        let values = line.cells.iter().map(|cell| cell.as_ref().and_then(|c| table.number(c)));
        if table.columns.len() > 1 { shape(values, max) } else { String::new() }
    };
    table.lines.iter().map(shape).collect()
}

/// Returns one row a cell with everything that identifies it. New columns are added at the end.
fn records(table: &Table) -> Sheet {
    let rows = items(table).map(|of| (judge::conditions(of.cell.steps[0]), of.cell.steps[0], of));
    let rows = Rows::new(rows);
    let conditions = |mut rows: Rows<(Vec<judge::conditions::Fact>, _, _)>,
                      names: &[&'static str]| {
        for name in names {
            rows = rows.filed(name, |(facts, ..)| {
                let fact = facts.iter().find(|(known, ..)| known == name);
                fact.map(|(_, value, _)| value.clone())
            });
        }
        rows
    };
    let rows = rows
        .filed("workload", |_| table.workload)
        .filed("label", |(.., of)| of.line.label)
        .filed("clients", |(.., of)| of.column.clients)
        .filed("rate", |(.., of)| of.column.per_s())
        .filed("metric", |(.., of)| table.metric_at(&of.column).to_string())
        .filed("unit", |_| table.metric.unit())
        .filed("value", |(.., of)| of.cell.spread.median)
        .filed("min", |(.., of)| of.cell.spread.min)
        .filed("max", |(.., of)| of.cell.spread.max)
        .filed("steps", |(.., of)| of.cell.spread.n)
        .filed("baseline", |_| table.baseline.clone())
        .filed("relative", |(.., of)| of.cell.relative);
    let named = ["tables", "rows", "distribution", "statements", "transport"];
    let rows = conditions(rows, &named)
        .filed("server_version", |(_, first, _)| first.server.version.as_str())
        .filed("started_at", |(_, first, _)| first.started_at.as_str())
        .filed("notes", |(.., of)| codes(table, &[of.at], &of.column));
    conditions(rows, &["class", "durability"])
        .filed("data_bytes", |(_, first, _)| first.server.data_bytes)
        .filed("buffer_pool_bytes", |(_, first, _)| first.server.buffer_pool_bytes)
        .sheet()
}

/// Tells how the runs of each cell spread, a page for each table.
pub(crate) fn spread(table: &Table) -> Page {
    let decimals = table.metric.decimals(table.cells().map(|cell| cell.spread.median));
    let text = |value: f64| Value::Number(value, decimals).text();
    let sheet = Rows::new(items(table))
        .shown("clients", |of| of.column.to_string())
        .place_and_metric(table, |of| of.column)
        .filed("label", |of| of.line.label)
        .both("runs", "runs", |of| of.cell.spread.n)
        .both("median", "median", |of| (of.cell.spread.median, decimals))
        .both("min", "min", |of| (of.cell.spread.min, decimals))
        .both("max", "max", |of| (of.cell.spread.max, decimals))
        .shown("range %", |of| range(of.cell).map(|share| (share * 100.0, 1)))
        .shown("95 % interval", |of| {
            of.cell.interval.map(|(low, high)| format!("{} to {}", text(low), text(high)))
        })
        .left()
        .shown("label", |of| label(of.line.label))
        .left()
        .filed("interval_low", |of| of.cell.interval.map(|i| i.0))
        .filed("interval_high", |of| of.cell.interval.map(|i| i.1))
        .sheet();
    let title = format!(
        "{}: {}, {}; the runs of each cell",
        escape::line(table.workload),
        table.metric.name(),
        table.metric.unit_in_words()
    );
    Page::of(title, sheet, vec![RUNS.to_owned()])
}

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
                serializer.collect_map(fields.iter().map(|(n, node)| (n, node)))
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
pub(crate) fn json(tables: &[Table], options: &Options) -> String {
    let tables = related(tables, options);
    pretty(&Node::Fields(vec![
        ("schema", leaf(SCHEMA)),
        ("layout", leaf("versions")),
        ("metric", tables.first().map_or(leaf(()), metric)),
        ("baseline", leaf(options.baseline.as_deref())),
        ("tables", list(&tables, of_table)),
    ]))
}

fn metric(table: &Table) -> Node {
    Node::Fields(vec![
        ("name", leaf(table.metric.to_string())),
        ("unit", leaf(table.metric.unit())),
        ("higher_is_better", leaf(table.metric.higher_is_better())),
    ])
}

fn of_table(table: &Table) -> Node {
    let column = |column: &Column| {
        Node::Fields(vec![
            ("clients", leaf(column.clients)),
            ("rate", leaf(column.per_s())),
            ("metric", leaf(table.metric_at(column).to_string())),
        ])
    };
    let line = |line: &Line| {
        Node::Fields(vec![
            ("label", leaf(line.label)),
            ("conditions", leaf(of_conditions(line))),
            ("cells", list(&line.cells, |cell| cell.as_ref().map_or(leaf(()), of_cell))),
        ])
    };
    // Where a note holds: positions in `lines`, and of each in `columns`.
    let note = |note: &Note| {
        let places = list(&note.places, |(line, columns)| {
            let held = (0..table.columns.len()).filter(|at| columns.contains(&table.columns[*at]));
            Node::Fields(vec![("line", leaf(*line)), ("columns", list(held, leaf))])
        });
        let (code, text) = (leaf(note.code.as_str()), leaf(note.text.as_str()));
        Node::Fields(vec![("code", code), ("text", text), ("places", places)])
    };
    Node::Fields(vec![
        ("workload", leaf(table.workload)),
        ("metric", metric(table)),
        ("columns", list(&table.columns, column)),
        ("lines", list(&table.lines, line)),
        ("notes", list(&table.notes, note)),
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

/// Returns the conditions of a line, and all options of its workload in one text: the others are
/// those that are not as usual.
fn of_conditions(line: &Line) -> serde_json::Map<String, serde_json::Value> {
    let mut texts: Vec<String> = Vec::new();
    for step in &line.steps {
        let options = step.workload.options.iter().map(|(k, v)| format!("{k} {v}"));
        let text = options.collect::<Vec<_>>().join(" and ");
        push_new(&mut texts, if text.is_empty() { "none".to_owned() } else { text });
    }
    let options = (!texts.is_empty()).then(|| ("options".to_owned(), texts.into()));
    let named = conditions(&line.steps)
        .into_iter()
        .map(|(name, values)| (name.to_lowercase().replace([' ', '-'], "_"), values.into()));
    named.chain(options).collect()
}
