//! The layouts of tables: what each takes; the plain one, one label a line; lists as the second published
//! text has them: the labels of each column, best first, their peaks, what tells them from each other by the
//! variables of their servers; numbers beside the same relative to one label, as the fourth has them; what an
//! op costs, in the form in which Mark Callaghan publishes it; and what changes from one label to another.

use super::bars::{bar, shape};
use super::columns::{CLIENTS, Rows, Sheet};
use super::escape::{self, clip};
use super::json::{Node, SCHEMA, nodes, pretty};
use super::metric::{self, Metric};
use super::names::{at_clients, label};
use super::note::{MARK, Note};
use super::notes::{
    codes, conditions_in_json, explain_uncertainty, is_all_marked, is_marked, mark, marked, noted,
    noted_with, title,
};
use super::options::Options;
use super::page::Page;
use super::ratio::{Ratio, Ratios, number_over_base};
use super::table::{
    Item, LabelRow, OF_ZERO, TableCell, WorkloadTable, is_comparable, merit, speed,
};
use super::tables::cell;
use super::value::{self, PageValue, ratio_decimals};
use super::{delta, hosts, settings, slo, suites, transactions, workloads};
use crate::error::Result;
use crate::summary::{Outage, Summary};
use crate::terms::{self, Cell, Layout};

pub(crate) fn pages(tables: &[WorkloadTable], options: &Options) -> Result<Vec<Page>> {
    let baseline = options.baseline.as_deref().filter(|_| !options.layout.compares());
    match options.layout {
        Layout::Versions => Ok(plain(tables, options)),
        Layout::Workloads => Ok(workloads::pages(tables, baseline)),
        Layout::List => Ok(list(tables)),
        Layout::Peak => Ok(tables.iter().map(|table| peak(table)).collect()),
        Layout::Outages => Ok(tables.iter().map(outages).collect()),
        Layout::Hosts => Ok(tables.iter().map(hosts::page).collect()),
        Layout::Transactions => Ok(tables.iter().map(transactions::page).collect()),
        Layout::Settings => Ok(vec![settings::page(tables)]),
        Layout::Relative => {
            by_column(tables, |table, at, ratios| Ok(Some(relative(table, baseline, at, ratios))))
        }
        Layout::PerOp => {
            by_column(tables, |table, at, ratios| per_op(table, baseline, at, ratios).map(Some))
        }
        Layout::Slo => slo::pages(tables.iter().flat_map(WorkloadTable::all_steps)),
        Layout::Suite => suites::require_some(by_column(tables, |table, at, ratios| {
            Ok(suites::page(&table, at, ratios))
        })?),
        Layout::Delta => delta::changes(tables, options),
        Layout::Overhead => delta::costs(tables, options),
    }
}

/// Makes a page of each column of each table, which has the place of its table among all.
fn by_column<'s>(
    tables: &[WorkloadTable<'s>],
    page: impl Fn(WorkloadTable<'s>, usize, &Ratios) -> Result<Option<Page>>,
) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    let ratios = Ratios::new(tables);
    for (at, table) in tables.iter().enumerate() {
        for table in table.by_column().into_iter().map(noted) {
            pages.extend(page(table, at, &ratios)?);
        }
    }
    Ok(pages)
}

/// A column of the text is at least so wide, blanks included.
const PITCH: usize = 8;
const RUNS: &str = "a run is one value; the interval covers the median of such runs with 95 %, \
                    whatever their distribution (order statistics), and needs six of them";

fn plain(tables: &[WorkloadTable], options: &Options) -> Vec<Page> {
    let tables = related(tables, options);
    let title_below = match tables.as_slice() {
        [table] => table.metric == Metric::QPS && table.baseline.is_none(),
        _ => false,
    };
    tables.iter().map(|table| Page { title_below, ..page(table) }).collect()
}

fn related<'a>(tables: &[WorkloadTable<'a>], options: &Options) -> Vec<WorkloadTable<'a>> {
    let mut related = tables.to_vec();
    if let Some(label) = &options.baseline {
        let ratios = Ratios::new(tables);
        related.iter_mut().enumerate().for_each(|(at, table)| ratios.relate(at, table, label));
    }
    related
}

fn page(table: &WorkloadTable) -> Page {
    let mut rows = Rows::new(table.lines.iter().enumerate());
    let (heads, of_labels) = heads(&table.columns);
    let decimals = table.metric.decimals(table.cells().map(|cell| cell.spread.median));
    for (column, head) in table.columns.iter().zip(heads) {
        let behind = behind(table, column, decimals);
        let blank = " ".repeat(behind.first().map_or(0, |text| text.chars().count()));
        rows = rows.shown(&(head + &blank), |(at, line)| {
            let value = |cell: &TableCell| table.metric.page_value(cell.spread.median, decimals);
            PageValue::from(line.at(column).map(value)).shown + &behind[*at]
        });
    }
    let rows = rows.text(&of_labels, |(at, line)| {
        label(line.label) + if is_all_marked(table, *at) { " *" } else { "" }
    });
    let sheet = Sheet { pitch: PITCH, drawn: shapes(table), ..rows.sheet() };
    let title = vec![title(table) + &explain_uncertainty(|| table.cells())];
    Page { title, sheets: vec![sheet, records(table)], ..Page::default() }.footed(table)
}

/// Open loops at as many clients differ in their rates alone.
fn heads(columns: &[Cell]) -> (Vec<String>, String) {
    let rates: Option<Vec<_>> = columns.iter().map(|column| column.rate).collect();
    let alike = columns.iter().all(|column| column.clients == columns[0].clients);
    match rates {
        Some(rates) if alike && rates.len() > 1 => {
            let rates = rates.iter().map(|rate| format!("rate {rate}/s")).collect();
            (rates, format!("clients {}", columns[0].clients))
        }
        Some(_) => (columns.iter().map(Cell::to_string).collect(), "label".to_owned()),
        None => (columns.iter().map(Cell::to_string).collect(), CLIENTS.to_owned()),
    }
}

/// Writes cells such as `12793 ±88 (2.18x)`; all are as wide, so that the numbers stand below each other.
fn behind(table: &WorkloadTable, column: &Cell, decimals: usize) -> Vec<String> {
    let (ratio_decimals, base) = (ratio_decimals(table.numbers()), table.baseline.as_deref());
    let of_line = |(at, line): (usize, &LabelRow)| {
        let cell = line.at(column);
        let uncertainty = cell.and_then(|cell| cell.uncertainty_in_words(table.metric, decimals));
        let uncertainty = uncertainty.map_or_else(String::new, |words| format!(" {words}"));
        let ratio = cell.and_then(|cell| cell.relative).filter(|_| base != Some(line.label));
        let ratio = ratio.map(|of| format!(" ({}x)", value::small_number(of, ratio_decimals)));
        let is_marked = !is_all_marked(table, at) && is_marked(table, at, Some(column));
        let mark = if is_marked { MARK } else { "" };
        uncertainty + &ratio.unwrap_or_default() + mark
    };
    let texts: Vec<String> = table.lines.iter().enumerate().map(of_line).collect();
    let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    texts.into_iter().map(|text| format!("{text:<width$}")).collect()
}

pub(crate) fn decimals(table: &WorkloadTable) -> usize {
    match &table.baseline {
        Some(_) => ratio_decimals(table.numbers()),
        None => table.metric.decimals(table.numbers()),
    }
}

pub(crate) fn number(
    table: &WorkloadTable,
    cell: Option<&TableCell>,
    decimals: usize,
) -> PageValue {
    let found = cell.and_then(|cell| table.number(cell));
    let shown = |number| match table.baseline {
        Some(_) => PageValue::from((number, value::small_number(number, decimals))),
        None => table.metric.page_value(number, decimals),
    };
    found.map(shown).into()
}

fn shapes(table: &WorkloadTable) -> Vec<String> {
    let max = table.numbers().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let shape = |line: &LabelRow| {
        let value = |column| line.at(column).and_then(|cell| table.number(cell));
        let values = table.columns.iter().map(value);
        if table.columns.len() > 1 { shape(values, max) } else { String::new() }
    };
    table.lines.iter().map(shape).collect()
}

/// Returns one row a cell with everything that identifies it. New columns are added at the end.
fn records(table: &WorkloadTable) -> Sheet {
    fn condition(name: &'static str) -> impl Fn(&Item) -> Option<String> {
        move |of| of.cell.condition(name)
    }
    Rows::new(table.items())
        .filed("workload", |_| table.workload)
        .filed("label", |of| of.line.label)
        .filed("clients", |of| of.column.clients)
        .filed("rate", |of| of.column.per_s())
        .filed("metric", |of| table.metric_at(&of.column).to_string())
        .filed("unit", |_| table.metric.figure().unit)
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
        .filed("server_version", condition("version"))
        .filed("started_at", |of| of.cell.started_at())
        .filed("notes", |of| codes(table, &[of.at], &of.column))
        .filed("class", condition("class"))
        .filed("durability", condition("durability"))
        .filed("data_bytes", |of| of.cell.steps().next()?.server.data_bytes)
        .filed("buffer_pool_bytes", |of| of.cell.steps().next()?.server.buffer_pool_bytes)
        .sheet()
}

pub(crate) fn spread(table: &WorkloadTable) -> Page {
    let decimals = table.metric.decimals(table.cells().map(|cell| cell.spread.median));
    let shown = |value| table.metric.page_value(value, decimals);
    let sheet = Rows::new(table.items())
        .shown("clients", |of| of.column.to_string())
        .place_and_metric(table.workload, table.metric, |of| of.column)
        .filed("label", |of| of.line.label)
        .both("runs", "runs", |of| of.cell.spread.n)
        .both("median", "median", |of| shown(of.cell.spread.median))
        .both("min", "min", |of| shown(of.cell.spread.min))
        .both("max", "max", |of| shown(of.cell.spread.max))
        .shown("range %", |of| {
            let of = of.cell.spread;
            let share = (of.max - of.min) / of.median;
            (of.n > 1 && of.median > 0.0).then_some((share * 100.0, 1))
        })
        .text("95 % interval", |of| {
            of.cell.interval.map(|(low, high)| [low, high].map(|of| shown(of).shown).join(" to "))
        })
        .text("label", |of| label(of.line.label))
        .filed("interval_low", |of| of.cell.interval.map(|i| i.0))
        .filed("interval_high", |of| of.cell.interval.map(|i| i.1))
        .sheet();
    let title = format!(
        "{}: {}, {}; the runs of each cell",
        escape::line(table.workload),
        table.metric.name(),
        table.metric.unit().2
    );
    Page::new(title, sheet, vec![RUNS.to_owned()])
}

/// A node whose fields are named values, themselves nodes or what JSON has.
macro_rules! fields {
    ($($name:ident: $value:expr),* $(,)?) => {
        Node::Fields(vec![$((stringify!($name), Node::from($value))),*])
    };
}

/// Writes the tables as JSON: lines of cells, which are more than rows.
pub(crate) fn json(tables: &[WorkloadTable], options: &Options) -> String {
    let tables = related(tables, options);
    pretty(&fields! {
        schema: SCHEMA,
        layout: "versions",
        metric: tables.first().map_or(Node::from(()), metric_in_json),
        baseline: options.baseline.as_deref(),
        tables: nodes(&tables, table_in_json),
    })
}

fn metric_in_json(table: &WorkloadTable) -> Node {
    let (name, figure) = (table.metric.to_string(), table.metric.figure());
    fields! { name: name, unit: figure.unit, higher_is_better: figure.higher_is_better }
}

fn table_in_json(table: &WorkloadTable) -> Node {
    let column = |column: &Cell| {
        let metric = table.metric_at(column).to_string();
        fields! { clients: column.clients, rate: column.per_s(), metric: metric }
    };
    let cell = |cell: &TableCell| {
        let spread = cell.spread;
        let mut fields = vec![
            ("value", spread.median.into()),
            ("min", spread.min.into()),
            ("max", spread.max.into()),
            ("steps", spread.n.into()),
            ("relative", cell.relative.into()),
            ("step_ids", nodes(cell.steps(), |step| step.step_id.as_str())),
        ];
        if cell.is_imported() {
            let imported = cell.runs.iter().filter_map(|run| run.imported());
            let file = nodes(imported, |run| run.source.file.as_str());
            fields.push(("imported_from", file));
        }
        Node::Fields(fields)
    };
    let line = |line: &LabelRow| {
        let cell = |column| line.at(column).map_or(Node::from(()), cell);
        let (conditions, cells) = (conditions_in_json(line), nodes(&table.columns, cell));
        fields! { label: line.label, conditions: conditions, cells: cells }
    };
    // The places of a note: positions in `lines`, and of each in `columns`.
    let note = |note: &Note| {
        let places = nodes(&note.places, |(line, columns)| {
            let held = (0..table.columns.len()).filter(|at| columns.contains(&table.columns[*at]));
            fields! { line: *line, columns: nodes(held, Node::from) }
        });
        fields! { code: note.finding.name(), text: note.text.as_str(), places: places }
    };
    fields! {
        workload: table.workload, metric: metric_in_json(table), columns: nodes(&table.columns, column),
        lines: nodes(&table.lines, line), notes: nodes(table.notes.iter(), note),
    }
}

const TEXT_MAX: usize = 80;
const OUTAGES: [&str; 2] = [
    "at: the first error, from the start of the step's warm-up; gap: from the last success \
     to the next one, > where there was none",
    "to success, to 95 %: from the first error to the first success, and to the first \
     interval with 95 % of the earlier rate",
];

fn list(tables: &[WorkloadTable]) -> Vec<Page> {
    let tables: Vec<WorkloadTable> =
        tables.iter().flat_map(WorkloadTable::by_column).map(noted).collect();
    let alone = tables.len() == 1;
    tables.iter().map(|table| Page { title_below: alone, ..ranked(table) }).collect()
}

fn ranked(table: &WorkloadTable) -> Page {
    let column = table.columns[0];
    let value = |line: &LabelRow| line.cell().map(|cell| cell.spread.median);
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
        .place_and_metric(table.workload, table.metric, |_| column)
        .shown("", |((at, value), _)| {
            let value =
                PageValue::from(value.map(|value| table.metric.page_value(value, decimals))).shown;
            format!("{value} {unit} - {}", marked(table, *at))
        })
        .filed("rank", |((_, value), rank)| value.map(|_| *rank))
        .filed("label", |((at, _), _)| table.lines[*at].label)
        .filed("value", |((_, value), _)| *value)
        .filed("notes", |((at, _), _)| codes(table, &[*at], &column))
        .sheet();
    let title = format!("{}; {}", title(table), at_clients(&column));
    Page::new(title, Sheet { list: true, drawn, ..sheet }, Vec::new()).footed(table)
}

fn peak(table: &WorkloadTable) -> Page {
    let value = |item: &Item| item.cell.spread.median;
    // The first of equal ones: fewer clients reach it.
    let merit = |item: &Item| merit(&table.metric, value(item));
    let best = |a, b| if merit(&b) > merit(&a) { b } else { a };
    let mut peaks: Vec<Option<Item>> = vec![None; table.lines.len()];
    for item in table.items() {
        peaks[item.at] = Some(peaks[item.at].map_or(item, |known| best(known, item)));
    }
    let found = || peaks.iter().copied().flatten();
    let decimals = table.metric.decimals(found().map(|item| value(&item)));
    let top = found().reduce(best);
    let seen = Rows::new(peaks.iter().enumerate())
        .shown("peak", |(_, peak)| peak.map(|item| table.metric.page_value(value(&item), decimals)))
        .shown("clients", |(_, peak)| peak.map(|item| item.column.to_string()))
        .text("label", |(at, _)| marked(table, *at));
    let records = Rows::new(found())
        .place_and_metric(table.workload, table.metric, |item| item.column)
        .filed("label", |item| item.line.label)
        .filed("value", value)
        .filed("relative", |item| {
            let cells = [top?.cell, item.cell];
            let of = || speed(&table.metric, value(&top?), value(item));
            let ratio = Ratio::between(cells, table.metric, 1.0).map(|ratio| ratio.estimate());
            ratio.or_else(of).filter(|_| is_comparable(table.metric, cells))
        })
        .filed("notes", |item| codes(table, &[item.at], &item.column));
    let sheets = vec![seen.sheet(), records.sheet()];
    let title = vec![format!("{}; the best of each label", title(table))];
    Page { title, sheets, ..Page::default() }.footed(table)
}

pub(crate) fn outages(table: &WorkloadTable) -> Page {
    let steps = table.steps_of_lines();
    let outages = steps.iter().flat_map(|(_, step)| step.outages.iter().map(|of| (*step, of)));
    let rows: Vec<(&Summary, &Outage)> = outages.collect();
    let (many, steps) = (rows.len(), terms::counted(steps.len() as u64, "step"));
    let title = format!("{}: outages, {many} in {steps}", escape::line(table.workload));
    if rows.is_empty() {
        return Page::new(title, Sheet::default(), Vec::new());
    }
    let until = |outage: &Outage, instant_s: Option<f64>| {
        instant_s.map(|s| ((s - outage.first_error_s).max(0.0), 2))
    };
    let sheet = Rows::new(rows)
        .shown("clients", |(step, _)| step.cell().to_string())
        .place(table.workload, |(step, _)| step.cell())
        .filed("label", |(step, _)| step.label.as_str())
        .filed("step_id", |(step, _)| step.step_id.as_str())
        .both("at s", "first_error_s", |(_, outage)| (outage.first_error_s, 2))
        .filed("last_error_s", |(_, outage)| outage.last_error_s)
        .shown("gap s", |(_, outage)| {
            let more = if outage.first_success_s.is_none() { "> " } else { "" };
            format!("{more}{}", value::number(outage.gap_s, 2))
        })
        .filed("gap_s", |(_, outage)| outage.gap_s)
        .both("to success s", "to_success_s", |(_, outage)| until(outage, outage.first_success_s))
        .both("to 95 % s", "to_95_percent_s", |(_, outage)| until(outage, outage.recovered_s))
        .filed("code", |(_, outage)| outage.code.map(u64::from))
        .both("errors", "errors", |(_, outage)| outage.errors)
        .shown("refused", |(_, outage)| outage.refused)
        .text("label", |(step, _)| label(&step.label))
        .both("first error", "first_error", |(_, outage)| {
            (outage.first_error.clone(), clip(&escape::line(&outage.first_error), TEXT_MAX))
        })
        .filed("last_error", |(_, outage)| outage.last_error.as_str())
        .filed("refused", |(_, outage)| outage.refused)
        .sheet();
    Page::new(title, sheet, OUTAGES.map(str::to_owned).into())
}

/// The note of a step that explains its label: `--note note=TEXT`.
const REMARK: &str = "note";

fn relative(mut table: WorkloadTable, baseline: Option<&str>, at: usize, ratios: &Ratios) -> Page {
    let measured = table.lines.iter().find(|line| line.cell().is_some());
    let base = baseline.unwrap_or(measured.unwrap_or(&table.lines[0]).label).to_owned();
    ratios.relate(at, &mut table, &base);
    // The title tells the metric itself, and not its ratio.
    let footed = Page::default().footed(&table);
    table.baseline = None;
    let (column, (short, _)) = (table.columns[0], table.metric.short());
    let of_base = format!("{short}-for-{}", escape::line(&base));
    let higher = table.metric.higher_is_better();
    let [over, under] = if higher { [&short, &of_base] } else { [&of_base, &short] };
    let decimals = table.metric.decimals(table.numbers());
    let ratios = ratio_decimals(table.cells().filter_map(|cell| cell.relative));
    let sheet = Rows::new(table.lines.iter().enumerate())
        .place_and_metric(table.workload, table.metric, |_| column)
        .both("", "label", |(_, line)| (line.label.to_owned(), label(line.label)))
        .both(&short, "value", |(_, line)| {
            Some(table.metric.page_value(line.cell()?.spread.median, decimals))
        })
        .filed("baseline", |_| base.as_str())
        // As published: the baseline is 1, and what merely equals it 1.00.
        .both("Relative-perf", "relative", |(_, line)| {
            let of = line.cell()?.relative?;
            Some((of, value::small_number(of, if line.label == base { 0 } else { ratios })))
        })
        // The mark ends the line: numbers follow the label alone.
        .text("", |(at, line)| {
            let remark = line.runs.iter().find_map(|run| run.note(REMARK));
            let remark = remark.map_or_else(String::new, |n| format!(" -> {}", escape::line(n)));
            (mark(&table, *at).to_owned() + &remark).trim().to_owned()
        })
        .filed("notes", |(at, _)| codes(&table, &[*at], &column))
        .sheet();
    let title = format!("{}; {}", title(&table), at_clients(&column));
    let is_repeated = table.cells().any(|cell| cell.spread.n > 1);
    let how = if is_repeated { ", over all pairs of runs" } else { "" };
    let title = vec![title, format!("Relative-perf is {over} / {under}{how}")];
    Page { title, sheets: vec![sheet], ..footed }
}

/// Head, names in files (absolute and relative), metric and decimals of what an op costs. A rate has as
/// many decimals as its smallest needs.
const COSTS: [(&str, [&str; 2], &str, Option<usize>); 8] = [
    ("cpu/o", ["server_cpu_us", "server_cpu_relative"], "server-cpu", Some(1)),
    ("ccpu/o", ["client_cpu_us", "client_cpu_relative"], "cpu", Some(1)),
    ("cs/o", ["context_switches", "context_switches_relative"], "cs", Some(3)),
    ("r/o", ["innodb_reads", "innodb_reads_relative"], "innodb-reads", Some(3)),
    ("rKB/o", ["read_kb", "read_relative"], "rkb", Some(2)),
    ("wKB/o", ["written_kb", "written_relative"], "wkb", Some(2)),
    ("miss/o", ["misses", "misses_relative"], "miss", Some(3)),
    ("o/s", ["ops_per_s", "ops_relative"], "tps", None),
];

pub(crate) const LEGEND: [&str; 3] = [
    "cpu/o: CPU of the server's process alone, microseconds an op (not of the whole host); \
     ccpu/o: the client's; cs/o: context switches of the server's process",
    "r/o: InnoDB's reads; rKB/o, wKB/o: KB that the server's process read from and wrote to \
     storage; miss/o: pages that were not in the buffer pool; o/s: ops a second",
    "relative numbers are number / first: of costs, less is better",
];

fn cost_metrics() -> [Metric; COSTS.len()] {
    COSTS.map(|of| Metric::Figure(metric::find_figure(of.2).expect("a figure")))
}

/// Returns the ratios of the costs of a line to those of a base; less is better.
fn cost_ratios([base, line]: [&[Option<TableCell>]; 2], times: f64) -> Vec<Option<f64>> {
    let pairs = base.iter().zip(line).zip(cost_metrics());
    let of_pair = |((one, other), metric): ((&Option<TableCell>, &Option<TableCell>), Metric)| {
        number_over_base([one.as_ref()?, other.as_ref()?], metric, times)
    };
    pairs.map(of_pair).collect()
}

fn cost_cells<'a>(line: &LabelRow<'a>) -> Result<Vec<Option<TableCell<'a>>>> {
    let cell = |of: Metric| cell(line.runs.clone(), &of);
    cost_metrics().into_iter().map(cell).collect()
}

pub(crate) fn per_op(
    table: WorkloadTable,
    baseline: Option<&str>,
    at: usize,
    ratios: &Ratios,
) -> Result<Page> {
    let table = &noted_with(table, true);
    let metrics = cost_metrics();
    let column = table.columns[0];
    let base = match baseline {
        Some(label) => table.lines.iter().position(|line| line.label == label),
        None => table.first_with_runs(),
    };
    let base_cells = base.map(|base| cost_cells(&table.lines[base])).transpose()?;
    let median = |cell: &Option<TableCell>| cell.as_ref().map(|cell| cell.spread.median);
    let (mut costs, mut all_ratios) = (Vec::new(), Vec::new());
    for line in &table.lines {
        let cells = cost_cells(line)?;
        all_ratios.push(base.zip(base_cells.as_ref()).map(|(base, base_cells)| {
            let times = ratios.times(at, [table.lines[base].label, line.label], &column);
            cost_ratios([base_cells, &cells], times)
        }));
        costs.push(cells.iter().map(median).collect::<Vec<Option<f64>>>());
    }
    // There is no such number where the base was not measured, or is 0 and this one is not.
    let lines = 0..costs.len();
    let relative = |line: usize, at: usize| all_ratios[line].as_ref()?[at];
    let lacks = |line: usize, at: usize| costs[line][at].is_some() && relative(line, at).is_none();
    let some_lack = lines.clone().any(|line| (0..COSTS.len()).any(|at| lacks(line, at)));
    let mut below = LEGEND.map(str::to_owned).to_vec();
    below.extend(some_lack.then(|| OF_ZERO.to_owned()));
    let decimals = |at: usize, of: Option<usize>| {
        of.unwrap_or_else(|| metrics[at].decimals(costs.iter().filter_map(|line| line[at])))
    };
    // A 0 has no decimals.
    let shown = |of: Option<f64>, decimals| {
        Some((of?, value::small_number(of?, if of? == 0.0 { 0 } else { decimals })))
    };
    let mut all = Rows::new(lines.clone())
        .place(table.workload, |_| column)
        .filed("label", |line| table.lines[*line].label);
    let is_known = |line: &usize| costs[*line].iter().any(Option::is_some);
    let mut others = Rows::new(lines.filter(|line| Some(*line) != base && is_known(line)));
    for (at, (head, names, _, of)) in COSTS.iter().enumerate() {
        all = all.both(head, names[0], |line| shown(costs[*line][at], decimals(at, *of)));
        others = others.shown(head, |line| shown(relative(*line, at), 2));
    }
    all = all.text("dbms", |line| marked(table, *line));
    for (at, (_, names, ..)) in COSTS.iter().enumerate() {
        all = all.filed(names[1], |line| relative(*line, at));
    }
    let all = all.filed("notes", |line| codes(table, &[*line], &column)).sheet();
    let to = baseline.map_or_else(|| "first result".to_owned(), escape::line);
    let rule = Some(format!("--- relative to {to}"));
    let others = Sheet { rule, ..others.text("dbms", |line| marked(table, *line)).sheet() };
    let sheets = if others.rows > 0 { vec![all, others] } else { vec![all] };
    let of = escape::line(table.workload);
    let title = vec![format!("{of}: cost of an op; {}", at_clients(&column))];
    Ok(Page { title, sheets, below, ..Page::default() }.footed(table))
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::super::render;
    use super::*;
    use crate::summary::Outcome;
    use crate::terms::Format;

    #[test]
    fn label_has_a_row_with_its_note_when_none_of_its_steps_completed() {
        let [mut lost, mut whole] = [Summary::sound(), Summary::sound()];
        (lost.label, lost.outcome) = ("a".to_owned(), Outcome::Aborted);
        whole.label = "b".to_owned();
        let steps = [&lost, &whole];
        for layout in [Layout::List, Layout::Relative, Layout::PerOp, Layout::Workloads] {
            let options = Options { layout, format: Format::Json, ..Options::default() };
            let text = render(&steps, &options).expect("a report");
            let report: Json = serde_json::from_str(&text).expect("JSON");
            let rows = report["rows"].as_array().expect("rows");
            let row = |label: &str| rows.iter().find(|row| row["label"] == label);
            let is_told = |row: &Json| row["notes"].as_str().expect("codes").contains("left_out");
            // There the rows of files are numbers alone.
            assert_eq!(row("a").map(is_told), (layout != Layout::Workloads).then_some(true));
            assert!(report["tables"][0]["notes"].to_string().contains("aborted"), "{text}");
            if layout == Layout::PerOp {
                assert_eq!(row("b").expect("measured")["ops_relative"], 1.0, "the first one");
            }
        }
    }

    #[test]
    fn workload_has_its_note_when_no_step_of_it_completed() {
        let [mut lost, whole] = [Summary::sound(), Summary::sound()];
        (lost.workload.name, lost.outcome) = ("lost".to_owned(), Outcome::Aborted);
        let (layout, format) = (Layout::Workloads, Format::Json);
        let options = Options { layout, format, ..Options::default() };
        let text = render(&[&lost, &whole], &options).expect("a report");
        let report: Json = serde_json::from_str(&text).expect("JSON");
        assert!(report["tables"][0]["notes"].to_string().contains("aborted"), "{text}");
    }

    #[test]
    fn every_cost_has_a_figure() {
        for (head, _, name, _) in COSTS {
            assert_eq!(metric::find_figure(name).map(|figure| figure.name), Some(name), "{head}");
        }
    }
}
