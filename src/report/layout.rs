//! The layouts of tables: what each takes; the plain one, one label a line; lists as the second published
//! text has them: the labels of each column, best first, their peaks, what tells them from each other by the
//! variables of their servers; and times without service.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::escape::{self, clip};
use super::notes::{
    self, Note, at_clients, codes, conditions, entry, footing, footnotes, label, legend, marked,
    noted, push_new, title,
};
use super::page::{self, Page, Rows, Sheet, Value, ratio_decimals};
use super::table::{Cell, Column, Item, Line, Table, known, merit, speed};
use super::write::{SCHEMA, bar, pretty, shape};
use super::{Layout, Metric, Options, relative};
use crate::error::{Error, Result, VALUE_MAX, told_apart};
use crate::judge::{ABSENT, CONDITIONS, Difference};
use crate::summary::{Outage, Summary};
use crate::terms::{self, named};

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
        Layout::List => Ok(list(&slices().collect::<Vec<Table>>())),
        Layout::Peak => Ok(tables.iter().map(|table| peak(&noted(table.clone()))).collect()),
        Layout::Outages => Ok(tables.iter().map(outages).collect()),
        Layout::Settings => Ok(vec![settings(tables)]),
        Layout::Relative => Ok(slices().map(|table| relative::relative(table, baseline)).collect()),
        Layout::PerOp => slices().map(|table| relative::per_op(&table, baseline)).collect(),
        Layout::Suite => relative::suites(slices()),
        Layout::Delta => relative::delta(tables, options),
        Layout::Overhead => relative::overhead(tables, options),
    }
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
        title: vec![title(table)],
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
    Rows::new(table.items())
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
    let sheet = Rows::new(table.items())
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

fn nodes<T, N: Into<Node>>(of: impl IntoIterator<Item = T>, node: impl Fn(T) -> N) -> Node {
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
        tables: nodes(&tables, of_table),
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
            step_ids: nodes(&cell.steps, |step| step.step_id.as_str()),
        }
    };
    let line = |line: &Line| {
        let cell = |column| line.cells.get(column).map_or(Node::from(()), cell);
        let (conditions, cells) = (of_conditions(line), nodes(&table.columns, cell));
        fields! { label: line.label, conditions: conditions, cells: cells }
    };
    // Where a note holds: positions in `lines`, and of each in `columns`.
    let note = |note: &Note| {
        let places = nodes(&note.places, |(line, columns)| {
            let held = (0..table.columns.len()).filter(|at| columns.contains(&table.columns[*at]));
            fields! { line: *line, columns: nodes(held, Node::from) }
        });
        fields! { code: note.code.as_str(), text: note.text.as_str(), places: places }
    };
    fields! {
        workload: table.workload,
        metric: metric(table),
        columns: nodes(&table.columns, column),
        lines: nodes(&table.lines, line),
        notes: nodes(&table.notes, note),
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

const SETTINGS_MAX: usize = 12;
/// Longest text of an error that a line shows, characters.
const TEXT_MAX: usize = 80;
const OUTAGES: [&str; 2] = [
    "at: the first error, from the start of the step's warm-up; gap: from the last success \
     to the next one, > where there was none",
    "to success, to 95 %: from the first error to the first success, and to the first \
     interval with 95 % of the earlier rate",
];

fn list(tables: &[Table]) -> Vec<Page> {
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

fn peak(table: &Table) -> Page {
    let value = |item: &Item| item.cell.spread.median;
    // The first of equal ones: fewer clients reach it.
    let best = |a, b| {
        if merit(&table.metric, value(&b)) > merit(&table.metric, value(&a)) { b } else { a }
    };
    let peak = |at| table.items().filter(|item| item.at == at).reduce(best);
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
fn outages(table: &Table) -> Page {
    let mut steps: Vec<&Summary> = Vec::new();
    for line in &table.lines {
        let mut of_label: Vec<&Summary> = line.all().collect();
        of_label.sort_by(|one, other| one.started_at.cmp(&other.started_at));
        steps.extend(of_label);
    }
    let rows: Vec<(&Summary, &Outage)> =
        steps.iter().flat_map(|step| step.outages.iter().map(|outage| (*step, outage))).collect();
    let (many, steps) = (rows.len(), terms::counted(steps.len() as u64, "step"));
    let title = format!("{}: outages, {many} in {steps}", escape::line(table.workload));
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
            format!("{more}{}", page::number(outage.gap_s, 2))
        })
        .filed("gap_s", |(_, outage)| outage.gap_s)
        .both("to success s", "to_success_s", |(_, outage)| until(outage, outage.first_success_s))
        .both("to 95 % s", "to_95_percent_s", |(_, outage)| until(outage, outage.recovered_s))
        .filed("code", |(_, outage)| outage.code.map(u64::from))
        .both("errors", "errors", |(_, outage)| outage.errors)
        .text("label", |(step, _)| label(&step.label))
        .both("first error", "first_error", |(_, outage)| {
            (outage.first_error.clone(), clip(&escape::line(&outage.first_error), TEXT_MAX))
        })
        .filed("last_error", |(_, outage)| outage.last_error.as_str())
        .sheet();
    Page::of(title, sheet, OUTAGES.map(str::to_owned).into())
}

fn settings(tables: &[Table]) -> Page {
    let lines = tables.iter().flat_map(|table| &table.lines).filter(|line| !line.steps.is_empty());
    // The first step of a label stands for it.
    let mut labels: Vec<(&str, Vec<&Summary>)> = Vec::new();
    lines.for_each(|line| entry(&mut labels, line.label).extend(&line.steps));
    let mixed = |steps: &[&Summary]| {
        let is_mixed = steps.iter().any(|step| !legend(steps[0], step).is_empty());
        if is_mixed { "; its runs differ, this is the first" } else { "" }
    };
    let described = (0..labels.len()).map(|at| described(&labels, at));
    let sheet = Rows::new(labels.iter().zip(described))
        .shown("", |((of, steps), (said, ..))| format!("{} - {said}{}", label(of), mixed(steps)))
        .filed("label", |((label, _), _)| *label)
        .filed("version", |((_, steps), _)| steps[0].server.version.as_str())
        .filed("version_comment", |((_, steps), _)| steps[0].server.version_comment.as_str())
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
fn described<'a>(
    labels: &[(&'a str, Vec<&Summary>)],
    at: usize,
) -> (String, &'a str, Vec<(String, String)>) {
    let step = labels[at].1[0];
    let of_build = |(_, steps): &&(&str, Vec<&Summary>)| build(steps[0]) == build(step);
    // The earlier label with the fewest other settings, the first of equals.
    let nearest = labels[..at].iter().filter(of_build);
    let nearest = nearest.map(|(name, others)| (*name, legend(others[0], step)));
    let nearest = nearest.min_by_key(|(_, found)| found.len());
    // Of a long value what differs, else it looks like the other one.
    let differs = |d: &Difference| (d.name.clone(), told_apart(&d.first, &d.second).1);
    let value = |d: Difference| (d.name, d.second);
    let (settings, texts): (Vec<_>, Vec<_>) = match &nearest {
        Some((_, found)) => found.iter().map(|d| (value(d.clone()), differs(d))).unzip(),
        None => {
            let others = labels.iter().filter(of_build);
            let found = others.flat_map(|(_, others)| legend(others[0], step));
            let found = found.filter(|d| d.second != ABSENT).map(value);
            let found = found.collect::<BTreeMap<String, String>>().into_iter();
            found.map(|of| (of.clone(), of)).unzip()
        }
    };
    let pair = |(name, value): &(String, String)| {
        format!("{}={}", clip(name, VALUE_MAX), clip(value, VALUE_MAX))
    };
    let pairs = named(texts.iter().map(pair).collect(), SETTINGS_MAX, ", ");
    let but = |how| if pairs.is_empty() { String::new() } else { format!(" {how} {pairs}") };
    let Some((name, _)) = nearest else {
        let (version, comment) = build(step);
        let build = format!("{} {}", escape::line(version), clip(comment, VALUE_MAX));
        return (format!("{}{}", build.trim_end(), but("with")), "", settings);
    };
    (format!("same as {}{}", escape::line(name), but("except")), name, settings)
}
