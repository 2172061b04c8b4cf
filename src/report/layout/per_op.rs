//! What an op costs, in the form in which Mark Callaghan publishes it: absolute numbers, then
//! the same relative to the first line.

use super::super::baseline::ratio;
use super::super::figure::named;
use super::super::page::{Page, Sheet, both, filed, shown};
use super::super::pivot::{Line, Table};
use super::super::{Metric, escape};
use super::{at_clients, codes, marked, place};
use crate::error::Result;
use crate::stats;

/// One column.
struct Cost {
    head: &'static str,
    /// In files, absolute and relative.
    names: [&'static str; 2],
    metric: &'static str,
    decimals: usize,
}

macro_rules! costs {
    ($($head:literal $name:literal $unit:literal = $metric:literal .$decimals:literal),* $(,)?) => {
        [$(Cost {
            head: $head,
            names: [concat!($name, $unit), concat!($name, "_relative")],
            metric: $metric,
            decimals: $decimals,
        }),*]
    };
}

const COLUMNS: [Cost; 8] = costs![
    "cpu/o" "server_cpu" "_us" = "server-cpu" .1,
    "ccpu/o" "client_cpu" "_us" = "cpu" .1,
    "cs/o" "context_switches" "" = "cs" .3,
    "r/o" "innodb_reads" "" = "innodb-reads" .3,
    "rKB/o" "read" "_kb" = "rkb" .2,
    "wKB/o" "written" "_kb" = "wkb" .2,
    "miss/o" "misses" "" = "miss" .3,
    "o/s" "ops" "_per_s" = "tps" .0,
];

/// What the columns are.
pub(crate) const LEGEND: [&str; 3] = [
    "cpu/o: CPU of the server's process alone, microseconds an op (not of the whole host); \
     ccpu/o: the client's; cs/o: context switches of the server's process",
    "r/o: InnoDB's reads; rKB/o, wKB/o: KB that the server's process read from and wrote to \
     storage; miss/o: pages that were not in the buffer pool; o/s: ops a second",
    "relative numbers are number / first: of costs, less is better",
];

/// Said where it occurs.
const OF_ZERO: &str = "- among the relative numbers: the first is 0 or was not measured";

/// The costs of a line, absolute and relative.
struct Row {
    at: usize,
    absolute: Vec<Option<f64>>,
    relative: Vec<Option<f64>>,
}

/// The page of one workload and number of clients.
pub(super) fn page(table: &Table, baseline: Option<&str>) -> Result<Page> {
    let costs = table.lines.iter().map(costs).collect::<Result<Vec<Vec<Option<f64>>>>>()?;
    let base = match baseline {
        Some(label) => table.lines.iter().position(|line| line.label == label),
        None => Some(0),
    };
    let first = base.map(|at| costs[at].clone());
    let row = |(at, absolute): (usize, Vec<Option<f64>>)| {
        // There is no such number where the first is 0 and this one is not.
        let relative = |(at, value): (usize, &Option<f64>)| ratio((*value)?, first.as_ref()?[at]?);
        Row { at, relative: absolute.iter().enumerate().map(relative).collect(), absolute }
    };
    let rows: Vec<Row> = costs.into_iter().enumerate().map(row).collect();
    let mut below: Vec<String> = LEGEND.map(str::to_owned).to_vec();
    let mut pairs = rows.iter().flat_map(|row| row.absolute.iter().zip(&row.relative));
    if first.is_some() && pairs.any(|(value, ratio)| value.is_some() && ratio.is_none()) {
        below.push(OF_ZERO.to_owned());
    }
    below.extend(super::below(table));
    let rule = match baseline {
        None => "--- relative to first result".to_owned(),
        Some(label) => format!("--- relative to {}", escape::line(label)),
    };
    let others: Vec<&Row> = rows.iter().filter(|row| Some(row.at) != base).collect();
    let mut sheets = vec![absolute(table, &rows)];
    if !others.is_empty() {
        sheets.push(Sheet { rule: Some(rule), ..relative(table, others) });
    }
    let clients = at_clients(&table.columns[0]);
    let title = vec![format!("{}: cost of an op; {clients}", escape::line(table.workload))];
    Ok(Page { title, sheets, below, ..Page::default() })
}

/// With so many decimals; a 0 has none.
fn number(value: Option<f64>, decimals: usize) -> Option<(f64, usize)> {
    value.map(|value| (value, if value == 0.0 { 0 } else { decimals }))
}

fn absolute(table: &Table, rows: &[Row]) -> Sheet {
    let column = table.columns[0];
    let costs = || COLUMNS.iter().enumerate();
    let mut columns = place(table, |_: &&Row| column);
    columns.push(filed("label", |row: &&Row| table.lines[row.at].label));
    columns.extend(costs().map(|(at, cost)| {
        both(cost.head, cost.names[0], move |row: &&Row| number(row.absolute[at], cost.decimals))
    }));
    columns.push(shown("dbms", |row: &&Row| marked(table, row.at)).left());
    columns
        .extend(costs().map(|(at, cost)| filed(cost.names[1], move |row: &&Row| row.relative[at])));
    columns.push(filed("notes", |row: &&Row| codes(table, &[row.at], &column)));
    Sheet::of(columns, rows)
}

fn relative(table: &Table, rows: Vec<&Row>) -> Sheet {
    let cost = |(at, cost): (usize, &Cost)| {
        shown(cost.head, move |row: &&Row| number(row.relative[at], 2))
    };
    let mut columns: Vec<_> = COLUMNS.iter().enumerate().map(cost).collect();
    columns.push(shown("dbms", |row: &&Row| marked(table, row.at)).left());
    Sheet::of(columns, rows)
}

/// The medians of a line's steps, column by column.
fn costs(line: &Line) -> Result<Vec<Option<f64>>> {
    let median = |metric: &Metric| -> Result<Option<f64>> {
        let values: Result<Vec<Option<f64>>> =
            line.steps.iter().map(|step| metric.value(step)).collect();
        Ok(stats::median(&values?.into_iter().flatten().collect::<Vec<f64>>()))
    };
    COLUMNS.iter().map(|cost| median(&of_column(cost.metric))).collect()
}

fn of_column(name: &str) -> Metric {
    named(name).map_or(Metric::Tps, Metric::Figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_metric() {
        for cost in COLUMNS {
            assert_eq!(of_column(cost.metric).to_string(), cost.metric, "{}", cost.head);
        }
    }
}
