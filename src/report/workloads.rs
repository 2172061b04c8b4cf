//! All workloads in one table a metric: a row each, a column a label, relative to one label and as they are.

use super::columns::{Rows, Sheet};
use super::delta::shared;
use super::distinct::{entry, push_new};
use super::escape;
use super::labels::{first_measured, labels};
use super::metric::Metric;
use super::names::{at_clients, label};
use super::note::MARK;
use super::notes::{codes, is_marked, medians, noted, short_conditions};
use super::page::Page;
use super::ratio::{Ratios, number_over_base};
use super::table::{LabelRow, OF_ZERO, WorkloadTable, is_comparable, not_comparable};
use super::value::{self, ratio_decimals};
use crate::terms::{Cell, joined};

/// A longer label has a number above its column.
const HEAD_MAX: usize = 12;

/// A workload at some number of clients.
struct Row<'s> {
    table: WorkloadTable<'s>,
    column: Cell,
    /// Ratios to the baseline, by line.
    ratios: Vec<Option<f64>>,
}

impl<'s> Row<'s> {
    fn new(table: WorkloadTable<'s>, base: &str, at: usize, ratios: &Ratios) -> Row<'s> {
        let column = table.columns[0];
        let ratio = |line: &LabelRow| {
            let times = ratios.times(at, [base, line.label], &column);
            let cells = [table.line(base)?.cell()?, line.cell()?];
            if line.label == base {
                Some(1.0)
            } else {
                number_over_base(cells, table.metric, times)
            }
        };
        let ratios = table.lines.iter().map(ratio).collect();
        Row { table, column, ratios }
    }

    /// Returns the line of a label that was measured here, also where it has no number.
    fn find(&self, label: &str) -> Option<usize> {
        self.table.lines.iter().position(|line| line.label == label)
    }

    fn is_marked(&self, label: &str) -> Option<bool> {
        self.find(label).map(|at| is_marked(&self.table, at, Some(&self.column)))
    }

    fn show_number(&self, at: usize) -> Option<String> {
        let number = self.table.lines[at].cell()?.spread.median;
        let decimals = self.table.metric.decimals(self.table.numbers());
        // A 0 has no decimals.
        let decimals = if number == 0.0 { 0 } else { decimals };
        Some(self.table.metric.page_value(number, decimals).shown)
    }

    /// The baseline is 1, and what merely equals it 1.00.
    fn show_ratio(&self, at: usize, base: &str) -> Option<String> {
        let ratio = self.ratios[at]?;
        let whole = ratio == 0.0 || self.table.lines[at].label == base;
        let decimals = ratio_decimals(self.ratios.iter().copied().flatten());
        Some(value::small_number(ratio, if whole { 0 } else { decimals }))
    }

    /// Returns why a number has no ratio, if one lacks.
    fn lack(&self, base: &str) -> Option<String> {
        let base = self.table.line(base).and_then(LabelRow::cell);
        let mut lines = self.table.lines.iter().zip(&self.ratios);
        let (line, _) = lines.find(|(line, ratio)| line.cell().is_some() && ratio.is_none())?;
        let pair = base.zip(line.cell()).map(|(base, cell)| [base, cell]);
        let unequal = pair.is_some_and(|pair| !is_comparable(self.table.metric, pair));
        let instead = self.table.metric.by_work().filter(|_| unequal);
        Some(instead.map_or_else(|| OF_ZERO.to_owned(), not_comparable))
    }
}

/// Makes a page of each metric. Workloads stand in the order of their tables, by the time of their first run.
pub(super) fn pages(tables: &[WorkloadTable], baseline: Option<&str>) -> Vec<Page> {
    let labels = labels(tables);
    let base = baseline.or_else(|| first_measured(tables)).or(labels.first().copied());
    let Some(base) = base else { return Vec::new() };
    let (ratios, mut by_metric) = (Ratios::new(tables), Vec::<(Metric, Vec<Row>)>::new());
    for (at, table) in tables.iter().enumerate() {
        for column in table.by_column().into_iter().map(noted) {
            entry(&mut by_metric, column.metric).push(Row::new(column, base, at, &ratios));
        }
    }
    by_metric.into_iter().map(|(metric, rows)| page(metric, rows, &labels, base)).collect()
}

fn page(metric: Metric, mut rows: Vec<Row>, labels: &[&str], base: &str) -> Page {
    let name = format!("{}, {}", metric.name(), metric.unit().2);
    // A group beside is a part of some workloads alone. A row of which nobody completed has its notes.
    rows.retain(|row| row.table.cells().next().is_some() || !row.table.has_runs());
    if rows.is_empty() {
        return Page::new(format!("{name}: not measured"), Sheet::default(), Vec::new());
    }
    let (columns, legend) = label_columns(&rows, labels);
    let sheet = |shown: &dyn Fn(&Row, usize) -> Option<String>| sheet(&rows, &columns, shown);
    let clients = one_column(&rows).map(|of| format!("; {}", at_clients(&of))).unwrap_or_default();
    let numbers = name + &medians(rows.iter().flat_map(|row| row.table.cells()));
    let mut page = shared(rows.iter().map(|row| &row.table));
    page.conditions.short = conditions(&rows);
    page.sheets = vec![sheet(&|row, at| row.show_number(at)), records(&rows, base)];
    if columns.iter().all(|column| column.label == base) {
        page.title = vec![numbers + &clients];
    } else {
        let better = if metric.higher_is_better() { "higher" } else { "lower" };
        let relative = format!("{} relative to {}, value/base", metric.name(), label(base));
        page.title = vec![format!("{relative}: {better} is better{clients}")];
        page.sheets[0].rule = Some(format!("--- {numbers}"));
        page.sheets.insert(0, sheet(&|row, at| row.show_ratio(at, base)));
        let lacks = rows.iter().filter_map(|row| row.lack(base));
        lacks.for_each(|lack| push_new(&mut page.below, lack));
    }
    page.title.extend(legend);
    page
}

/// Returns the clients and the rate that all workloads have.
fn one_column(rows: &[Row]) -> Option<Cell> {
    let first = rows[0].column;
    rows.iter().all(|row| row.column == first).then_some(first)
}

/// Returns what all workloads have in common.
fn conditions(rows: &[Row]) -> Vec<String> {
    let done = rows.iter().filter(|row| row.table.has_runs());
    let each: Vec<Vec<String>> = done.map(|row| short_conditions(&row.table)).collect();
    let Some(mut all) = each.first().cloned() else { return Vec::new() };
    all.retain(|part| each.iter().all(|own| own.contains(part)));
    let differ = each.iter().any(|own| own.len() > all.len());
    let more = differ.then(|| "--notes has the others by workload".to_owned());
    let all = joined(all.into_iter().map(Some), ", ");
    joined([all, more], "; ").into_iter().collect()
}

/// A column of a label.
struct LabelColumn<'l> {
    label: &'l str,
    head: String,
    /// Some of its numbers are marked, and not all of them: then its head would be.
    mixed: bool,
}

/// Returns the columns of the labels that were measured, and what their heads stand for where labels are long.
fn label_columns<'l>(rows: &[Row], labels: &[&'l str]) -> (Vec<LabelColumn<'l>>, Vec<String>) {
    let column = |of: &&'l str| {
        let marks: Vec<bool> = rows.iter().filter_map(|row| row.is_marked(of)).collect();
        let (any, all) = (marks.contains(&true), !marks.contains(&false));
        let head = label(of) + if any && all { " *" } else { "" };
        (!marks.is_empty()).then_some(LabelColumn { label: of, head, mixed: any && !all })
    };
    let mut columns: Vec<LabelColumn> = labels.iter().filter_map(column).collect();
    let mut legend = Vec::new();
    if columns.iter().any(|column| label(column.label).chars().count() > HEAD_MAX) {
        for (at, column) in columns.iter_mut().enumerate() {
            let long = std::mem::replace(&mut column.head, format!("col-{}", at + 1));
            legend.push(format!("{}: {long}", column.head));
        }
    }
    (columns, legend)
}

fn sheet(
    rows: &[Row],
    columns: &[LabelColumn],
    shown: &dyn Fn(&Row, usize) -> Option<String>,
) -> Sheet {
    let mut all = Rows::new(rows);
    if one_column(rows).is_none() {
        all = all.shown("clients", |row| row.column.to_string());
    }
    for LabelColumn { label, head, mixed } in columns {
        let room = if *mixed { " " } else { "" };
        all = all.shown(&(head.clone() + room), |row| {
            let text = row.find(label).and_then(|at| shown(row, at));
            let mark = if *mixed && row.is_marked(label) == Some(true) { MARK } else { room };
            text.unwrap_or_else(|| "-".to_owned()) + mark
        });
    }
    all.text("workload", |row| escape::line(row.table.workload)).sheet()
}

fn records(rows: &[Row], base: &str) -> Sheet {
    let items = rows.iter().flat_map(|row| row.table.items().map(move |item| (row, item)));
    let metric = rows[0].table.metric;
    Rows::new(items)
        .filed("workload", |(row, _)| row.table.workload)
        .filed("clients", |(row, _)| row.column.clients)
        .filed("rate", |(row, _)| row.column.per_s())
        .filed("metric", |_| metric.to_string())
        .filed("unit", |_| metric.figure().unit)
        .filed("label", |(_, item)| item.line.label)
        .filed("value", |(_, item)| item.cell.spread.median)
        .filed("baseline", |_| base)
        .filed("value_relative", |(row, item)| row.ratios[item.at])
        .filed("notes", |(row, item)| codes(&row.table, &[item.at], &row.column))
        .sheet()
}
