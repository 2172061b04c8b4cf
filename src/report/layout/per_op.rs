//! What an op costs, in the form in which Mark Callaghan publishes it: absolute numbers, then
//! the same relative to the first line.

use super::super::baseline::{known, ratio};
use super::super::figure::named;
use super::super::number::number;
use super::super::page::{Body, Field, Grid, Page, Record};
use super::super::pivot::{Line, Table};
use super::super::{Metric, escape, text};
use super::{at_clients, below, codes, marked, noted, record};
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

/// A table for each workload and number of clients.
pub(super) fn pages(tables: &[Table], baseline: Option<&str>) -> Result<Vec<Page>> {
    if let Some(label) = baseline {
        known(tables, "--baseline", label)?;
    }
    let slices = tables.iter().flat_map(Table::by_column);
    slices.map(|table| one(&noted(table), baseline)).collect()
}

fn one(table: &Table, baseline: Option<&str>) -> Result<Page> {
    let costs: Result<Vec<Vec<Option<f64>>>> = table.lines.iter().map(costs).collect();
    let costs = costs?;
    let base = match baseline {
        Some(label) => table.lines.iter().position(|line| line.label == label),
        None => (!table.lines.is_empty()).then_some(0),
    };
    let first = base.and_then(|at| costs.get(at));
    let relative = |of: &[Option<f64>]| -> Vec<Option<f64>> {
        let zipped = of.iter().enumerate();
        // There is no such number where the first is 0 and this one is not.
        let value = |(at, value): (usize, &Option<f64>)| ratio((*value)?, (*first?.get(at)?)?);
        zipped.map(value).collect()
    };
    let shown = |at: usize, values: &[Option<f64>], decimals: &dyn Fn(usize) -> usize| {
        let cells = values.iter().enumerate().map(|(column, value)| match value {
            None => text::NOTHING.to_owned(),
            Some(0.0) => "0".to_owned(),
            Some(value) => number(*value, decimals(column)),
        });
        cells.chain([marked(table, at)]).collect::<Vec<String>>()
    };
    let absolute = |column: usize| COLUMNS.get(column).map_or(0, |cost| cost.decimals);
    let rows = costs.iter().enumerate().map(|(at, values)| shown(at, values, &absolute));
    let others = costs.iter().enumerate().filter(|(at, _)| Some(*at) != base);
    let more: Vec<Vec<String>> =
        others.map(|(at, values)| shown(at, &relative(values), &|_| 2)).collect();
    let rule = match baseline {
        None => "--- relative to first result".to_owned(),
        Some(label) => format!("--- relative to {}", escape::line(label)),
    };
    let head = COLUMNS.iter().map(|cost| cost.head.to_owned()).chain(["dbms".to_owned()]);
    let clients = table.columns.first().map_or_else(String::new, at_clients);
    let mut lines: Vec<String> = LEGEND.map(str::to_owned).to_vec();
    let of_zero = costs.iter().any(|values| {
        values.iter().zip(relative(values)).any(|(value, ratio)| value.is_some() && ratio.is_none())
    });
    if of_zero && first.is_some() {
        lines.push(OF_ZERO.to_owned());
    }
    lines.extend(below(table));
    Ok(Page {
        title: vec![format!("{}: cost of an op; {clients}", escape::line(table.workload))],
        body: Body::Grid(Grid {
            head: head.collect(),
            texts: vec![COLUMNS.len()],
            rows: rows.collect(),
            more: (!more.is_empty()).then_some((rule, more)),
        }),
        below: lines,
        records: (costs.iter().enumerate())
            .map(|(at, values)| of_line(table, at, values, &relative(values)))
            .collect(),
    })
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

fn of_line(table: &Table, at: usize, absolute: &[Option<f64>], relative: &[Option<f64>]) -> Record {
    let column = table.columns.first();
    let mut record = column.map(|column| record(table, column)).unwrap_or_default();
    // The metric is that of the whole table, and here there are many.
    record.retain(|(name, _)| !matches!(*name, "metric" | "unit"));
    let label = table.lines.get(at).map_or("", |line| line.label);
    record.push(("label", Field::Text(label.to_owned())));
    for (which, values) in [absolute, relative].into_iter().enumerate() {
        for (cost, value) in COLUMNS.iter().zip(values) {
            record.extend(cost.names.get(which).map(|name| (*name, Field::Number(*value))));
        }
    }
    record.extend(column.map(|column| codes(table, &[at], column)));
    record
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
