//! The transactions that scripts have named (`loadgen.transaction`): what each did in each cell, over its repeats.

use std::collections::BTreeSet;

use super::columns::{Rows, Sheet};
use super::escape::{self, clip};
use super::notes::{codes, marked};
use super::page::Page;
use super::table::WorkloadTable;
use super::value::{self, PageValue};
use crate::stats::{self, is_scarce};
use crate::summary::{Distribution, Summary, Transaction};
use crate::terms::{Cell, counted};

/// Longest name that is shown, characters.
const NAME_MAX: usize = 40;
/// A percentile, its field, and its name in files.
type ShownPercentile = (f64, fn(&Distribution) -> Option<f64>, &'static str);

const PERCENTILES: [ShownPercentile; 3] = [
    (50.0, |of| of.p50_us, "p50_ms"),
    (90.0, |of| of.p90_us, "p90_ms"),
    (99.0, |of| of.p99_us, "p99_ms"),
];
const ABOUT: &str = "rates and times are medians of the repeats, ops and errors sums; p50 to p99 in ms, \
                     of response times where a rate was asked for, else of service times";

/// The ops of one name in a cell; those without a name where there are names.
struct NamedRow<'s> {
    at: usize,
    cell: Cell,
    runs: usize,
    name: Option<&'s str>,
    ops: u64,
    per_s: f64,
    times_ms: [Option<f64>; PERCENTILES.len()],
    errors: Option<u64>,
    retried: Option<u64>,
}

/// Returns the transactions of a workload's cells.
pub(crate) fn page(table: &WorkloadTable) -> Page {
    let lines = table.lines.iter().enumerate();
    let cells = lines.flat_map(|(at, line)| {
        line.steps_by_column().into_iter().map(move |(cell, steps)| (at, cell, steps))
    });
    let rows: Vec<NamedRow> =
        cells.flat_map(|(at, cell, steps)| rows_of(at, cell, &steps)).collect();
    let many = rows.iter().filter_map(|row| row.name).collect::<BTreeSet<&str>>().len();
    let many = counted(many as u64, "name");
    let title = format!("{}: transactions, {many}", escape::line(table.workload));
    if rows.is_empty() {
        return Page::new(title, Sheet::default(), Vec::new());
    }
    let decimals = value::decimals(rows.iter().map(|row| row.per_s));
    let per_min = value::decimals(rows.iter().map(|row| row.per_s * 60.0));
    let of_times = value::decimals(rows.iter().flat_map(|row| row.times_ms).flatten());
    let mut all = Rows::new(rows)
        .shown("clients", |row| row.cell.to_string())
        .place(table.workload, |row| row.cell)
        .filed("label", |row| table.lines[row.at].label)
        .filed("runs", |row| row.runs)
        .text("transaction", |row| match row.name {
            Some(name) => clip(&escape::line(name), NAME_MAX),
            None => "(no name)".to_owned(),
        })
        .filed("transaction", |row| row.name)
        .both("ops", "ops", |row| row.ops)
        .both("ops/s", "ops_per_s", |row| (row.per_s, decimals))
        .both("ops/min", "ops_per_min", |row| (row.per_s * 60.0, per_min));
    for (at, (percentile, _, name)) in PERCENTILES.iter().enumerate() {
        let time = |row: &NamedRow| PageValue::from(row.times_ms[at].map(|ms| (ms, of_times)));
        all = all.both(&format!("p{percentile}"), name, time);
    }
    let sheet = all
        .filed("time", |row| if row.cell.is_open() { "response" } else { "service" })
        .both("errors", "errors", |row| row.errors)
        .both("retried", "retried", |row| row.retried)
        .text("label", |row| marked(table, row.at))
        .filed("notes", |row| codes(table, &[row.at], &row.cell))
        .sheet();
    Page::new(title, sheet, vec![ABOUT.to_owned()]).footed(table)
}

fn rows_of<'s>(at: usize, cell: Cell, steps: &[&'s Summary]) -> Vec<NamedRow<'s>> {
    let names = steps.iter().flat_map(|step| step.transactions.iter().map(|of| of.name.as_str()));
    let names: BTreeSet<&str> = names.collect();
    let median = |values: Vec<f64>| stats::median(&values);
    let row = |name: &'s str| {
        let of = |step: &&'s Summary| step.transactions.iter().find(|of| of.name == name);
        let there: Vec<&Transaction> = steps.iter().filter_map(of).collect();
        let per_s = steps.iter().map(|step| of(step).map_or(0.0, |of| of.tps)).collect();
        let times_ms = PERCENTILES.map(|(percentile, read, _)| {
            let known = |step: &&'s Summary| {
                let own = of(step)?.latency.own();
                read(own).filter(|_| !is_scarce(percentile, own.count)).map(|us| us / 1e3)
            };
            // One that is known of some repeats alone would be of the busier ones.
            median(steps.iter().map(known).collect::<Option<Vec<f64>>>()?)
        });
        let errors = there.iter().flat_map(|of| &of.errors);
        NamedRow {
            at,
            cell,
            runs: steps.len(),
            name: Some(name),
            ops: add_up(there.iter().map(|of| of.ops)),
            per_s: median(per_s).unwrap_or(0.0),
            times_ms,
            errors: Some(add_up(errors.map(|error| error.count))),
            retried: there.iter().map(|of| of.retried).collect::<Option<Vec<u64>>>().map(add_up),
        }
    };
    let mut rows: Vec<NamedRow> = names.into_iter().map(row).collect();
    let without = |step: &&Summary| {
        step.totals.ops.saturating_sub(add_up(step.transactions.iter().map(|of| of.ops)))
    };
    let ops = add_up(steps.iter().map(without));
    if !rows.is_empty() && ops > 0 {
        let per_s = steps.iter().filter(|step| step.measured_s > 0.0);
        let per_s = per_s.map(|step| without(step) as f64 / step.measured_s).collect();
        rows.push(NamedRow {
            at,
            cell,
            runs: steps.len(),
            name: None,
            ops,
            per_s: median(per_s).unwrap_or(0.0),
            times_ms: [None; PERCENTILES.len()],
            errors: None,
            retried: None,
        });
    }
    rows
}

fn add_up(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}
