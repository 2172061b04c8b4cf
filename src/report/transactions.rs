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
use crate::terms::{Cell, GroupName, counted};

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
struct NamedRow {
    at: usize,
    cell: Cell,
    /// The group beside that did them; none of the measured clients.
    group: Option<GroupName>,
    is_open: bool,
    runs: usize,
    name: Option<String>,
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
        cells.flat_map(|(at, cell, steps)| rows_of_cell(at, cell, &steps)).collect();
    let names: BTreeSet<_> = rows
        .iter()
        .filter(|row| row.name.is_some())
        .map(|row| (row.group.map(|of| of.to_string()), &row.name))
        .collect();
    let many = counted(names.len() as u64, "name");
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
        .text("transaction", |row| {
            let group = row.group.map_or_else(String::new, |group| format!("{group}: "));
            group
                + &match &row.name {
                    Some(name) => clip(&escape::line(name), NAME_MAX),
                    None => "(no name)".to_owned(),
                }
        })
        .filed("transaction", |row| row.name.clone())
        .both("ops", "ops", |row| row.ops)
        .both("ops/s", "ops_per_s", |row| (row.per_s, decimals))
        .both("ops/min", "ops_per_min", |row| (row.per_s * 60.0, per_min));
    for (at, (percentile, _, name)) in PERCENTILES.iter().enumerate() {
        let time = |row: &NamedRow| PageValue::from(row.times_ms[at].map(|ms| (ms, of_times)));
        all = all.both(&format!("p{percentile}"), name, time);
    }
    let sheet = all
        .filed("time", |row| if row.is_open { "response" } else { "service" })
        .both("errors", "errors", |row| row.errors)
        .both("retried", "retried", |row| row.retried)
        .text("label", |row| marked(table, row.at))
        .filed("group", |row| row.group.map(|group| group.to_string()))
        .filed("notes", |row| codes(table, &[row.at], &row.cell))
        .sheet();
    Page::new(title, sheet, vec![ABOUT.to_owned()]).footed(table)
}

/// Returns the rows of the measured clients, then those of each group beside.
fn rows_of_cell(at: usize, cell: Cell, steps: &[&Summary]) -> Vec<NamedRow> {
    let groups: BTreeSet<&str> =
        steps.iter().flat_map(|step| step.groups.iter().map(|group| group.name.as_str())).collect();
    let mut rows = rows_of((at, cell, None), steps);
    for group in groups.into_iter().filter_map(|name| name.parse::<GroupName>().ok()) {
        let of_group: Vec<Summary> = steps.iter().filter_map(|step| step.of_group(group)).collect();
        rows.extend(rows_of((at, cell, Some(group)), &of_group.iter().collect::<Vec<&Summary>>()));
    }
    rows
}

fn rows_of<'s>(
    (at, cell, group): (usize, Cell, Option<GroupName>),
    steps: &[&'s Summary],
) -> Vec<NamedRow> {
    let is_open = steps.iter().any(|step| step.plan.rate.is_some());
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
            group,
            is_open,
            runs: steps.len(),
            name: Some(name.to_owned()),
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
            group,
            is_open,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Group;

    #[test]
    fn group_beside_has_rows_when_its_script_names_transactions() {
        let mut step = Summary::sound();
        let order = Transaction { name: "order".to_owned(), ops: 100, ..Transaction::default() };
        let mut group = Group { name: "writer".to_owned(), rate: Some(10.0), ..Group::default() };
        (group.measured_s, group.totals.ops, group.transactions) = (10.0, 150, vec![order]);
        step.groups = vec![group];
        let found = rows_of_cell(0, step.cell(), &[&step]);
        let rows: Vec<(Option<&str>, u64)> =
            found.iter().map(|row| (row.name.as_deref(), row.ops)).collect();
        assert_eq!(rows, [(Some("order"), 100), (None, 50)]);
        let is_writer = |row: &NamedRow| row.group.is_some_and(|group| group.as_str() == "writer");
        assert!(found.iter().all(|row| is_writer(row) && row.is_open));
    }
}
