//! The layouts of tables: what each takes, and the plain one, one label a line.

mod list;
mod relative;

pub(crate) use relative::LEGEND as COSTS;
use serde::{Serialize, Serializer};

use super::notes::{self, Note, codes, conditions, footnotes, label, marked, noted, push_new};
use super::page::{self, Page, Rows, Sheet, Value, ratio_decimals};
use super::table::{Cell, Column, Line, Table, known};
use super::write::{SCHEMA, pretty, shape};
use super::{Layout, Metric, Options, escape};
use crate::error::{Error, Result};
use crate::judge::CONDITIONS;

/// Refuses labels that a layout does nothing with, and the lack of those that it needs.
pub(crate) fn check(options: &Options) -> Result<()> {
    let layout = options.layout;
    let given = [&options.from, &options.to].map(Option::is_some);
    let (wrong, hint) = if layout.compares() && given != [true, true] {
        ("compares two labels", "--from LABEL --to LABEL names them")
    } else if !layout.compares() && given != [false, false] {
        let hint = "--layout delta and --layout overhead do; --baseline relates all labels";
        ("takes no --from and --to", hint)
    } else if options.spread && layout != Layout::Versions {
        ("takes no --spread", "--layout versions, the default, does")
    } else if !layout.relates() && options.baseline.is_some() {
        ("takes no --baseline", "--layout versions, relative and per-op do")
    } else {
        return Ok(());
    };
    Err(Error::usage(format!("--layout {layout} {wrong}")).hint(hint))
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
        line.cells.iter().map(move |(column, cell)| Item { at, line, column: *column, cell })
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
    for column in &table.columns {
        rows = rows.shown(&column.to_string(), |(_, line)| {
            number(table, line.cells.get(column), decimals)
        });
    }
    let sheet = rows.text(CLIENTS, |(at, _)| marked(table, *at)).sheet();
    let sheet = Sheet { pitch: PITCH, drawn: shapes(table), ..sheet };
    Page {
        title: vec![notes::title(table)],
        sheets: vec![sheet, records(table)],
        notes: footnotes(&table.notes),
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
        let value = |column| line.cells.get(column).and_then(|cell| table.number(cell));
        let values = table.columns.iter().map(value);
        if table.columns.len() > 1 { shape(values, max) } else { String::new() }
    };
    table.lines.iter().map(shape).collect()
}

/// Returns one row a cell with everything that identifies it. New columns are added at the end.
fn records(table: &Table) -> Sheet {
    fn condition(name: &'static str) -> impl Fn(&Item) -> Option<String> {
        let known = CONDITIONS.iter().find(|known| known.name == name).expect("a condition");
        |of| (known.value)(of.cell.steps[0])
    }
    Rows::new(items(table))
        .filed("workload", |_| table.workload)
        .filed("label", |of| of.line.label)
        .filed("clients", |of| of.column.clients)
        .filed("rate", |of| of.column.per_s())
        .filed("metric", |of| table.metric_at(&of.column).to_string())
        .filed("unit", |_| table.metric.unit())
        .filed("value", |of| of.cell.spread.median)
        .filed("min", |of| of.cell.spread.min)
        .filed("max", |of| of.cell.spread.max)
        .filed("steps", |of| of.cell.spread.n)
        .filed("baseline", |_| table.baseline.clone())
        .filed("relative", |of| of.cell.relative)
        .filed("tables", condition("tables"))
        .filed("rows", condition("rows"))
        .filed("distribution", condition("distribution"))
        .filed("statements", condition("statements"))
        .filed("transport", condition("transport"))
        .filed("server_version", |of| of.cell.steps[0].server.version.as_str())
        .filed("started_at", |of| of.cell.steps[0].started_at.as_str())
        .filed("notes", |of| codes(table, &[of.at], &of.column))
        .filed("class", condition("class"))
        .filed("durability", condition("durability"))
        .filed("data_bytes", |of| of.cell.steps[0].server.data_bytes)
        .filed("buffer_pool_bytes", |of| of.cell.steps[0].server.buffer_pool_bytes)
        .sheet()
}

/// Tells how the runs of each cell spread, a page for each table.
pub(crate) fn spread(table: &Table) -> Page {
    let decimals = table.metric.decimals(table.cells().map(|cell| cell.spread.median));
    let sheet = Rows::new(items(table))
        .shown("clients", |of| of.column.to_string())
        .place_and_metric(table, |of| of.column)
        .filed("label", |of| of.line.label)
        .both("runs", "runs", |of| of.cell.spread.n)
        .both("median", "median", |of| (of.cell.spread.median, decimals))
        .both("min", "min", |of| (of.cell.spread.min, decimals))
        .both("max", "max", |of| (of.cell.spread.max, decimals))
        .shown("range %", |of| {
            let of = of.cell.spread;
            let share = (of.max - of.min) / of.median;
            (of.n > 1 && of.median > 0.0).then_some((share * 100.0, 1))
        })
        .text("95 % interval", |of| {
            of.cell
                .interval
                .map(|(low, high)| [low, high].map(|of| page::number(of, decimals)).join(" to "))
        })
        .text("label", |of| label(of.line.label))
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

/// JSON whose fields stay in their order.
#[derive(Serialize)]
#[serde(untagged)]
enum Node {
    Leaf(serde_json::Value),
    List(Vec<Node>),
    Fields(#[serde(serialize_with = "in_order")] Vec<(&'static str, Node)>),
}

fn in_order<S: Serializer>(
    fields: &[(&str, Node)],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, node)| (name, node)))
}

impl<T: Into<serde_json::Value>> From<T> for Node {
    fn from(value: T) -> Node {
        Node::Leaf(value.into())
    }
}

/// A node whose fields are named values, themselves nodes or what JSON has.
macro_rules! fields {
    ($($name:ident: $value:expr),* $(,)?) => {
        Node::Fields(vec![$((stringify!($name), Node::from($value))),*])
    };
}

fn list<T, N: Into<Node>>(of: impl IntoIterator<Item = T>, node: impl Fn(T) -> N) -> Node {
    Node::List(of.into_iter().map(|item| node(item).into()).collect())
}

/// Writes the tables as JSON: lines of cells, which are more than rows.
pub(crate) fn json(tables: &[Table], options: &Options) -> String {
    let tables = related(tables, options);
    pretty(&fields! {
        schema: SCHEMA,
        layout: "versions",
        metric: tables.first().map_or(Node::from(()), metric),
        baseline: options.baseline.as_deref(),
        tables: list(&tables, of_table),
    })
}

fn metric(table: &Table) -> Node {
    let metric = table.metric;
    let higher_is_better = metric.higher_is_better();
    fields! { name: metric.to_string(), unit: metric.unit(), higher_is_better: higher_is_better }
}

fn of_table(table: &Table) -> Node {
    let column = |column: &Column| {
        let metric = table.metric_at(column).to_string();
        fields! { clients: column.clients, rate: column.per_s(), metric: metric }
    };
    let cell = |cell: &Cell| {
        let spread = cell.spread;
        fields! {
            value: spread.median, min: spread.min, max: spread.max, steps: spread.n,
            relative: cell.relative,
            step_ids: list(&cell.steps, |step| step.step_id.as_str()),
        }
    };
    let line = |line: &Line| {
        let cell = |column| line.cells.get(column).map_or(Node::from(()), cell);
        let (conditions, cells) = (of_conditions(line), list(&table.columns, cell));
        fields! { label: line.label, conditions: conditions, cells: cells }
    };
    // Where a note holds: positions in `lines`, and of each in `columns`.
    let note = |note: &Note| {
        let places = list(&note.places, |(line, columns)| {
            let held = (0..table.columns.len()).filter(|at| columns.contains(&table.columns[*at]));
            fields! { line: *line, columns: list(held, Node::from) }
        });
        fields! { code: note.code.as_str(), text: note.text.as_str(), places: places }
    };
    fields! {
        workload: table.workload,
        metric: metric(table),
        columns: list(&table.columns, column),
        lines: list(&table.lines, line),
        notes: list(&table.notes, note),
    }
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
        .map(|(name, values)| (name, values.into_iter().map(|(value, _)| value).collect()))
        .map(|(name, values)| (name.to_lowercase().replace([' ', '-'], "_"), values));
    named.chain(options).collect()
}
