//! What changes from one label to another: the range of it in each workload, and the cost of a
//! setting at each number of clients.

use std::collections::BTreeSet;

use super::super::baseline::{NO_RATIO, known, ratio, speed};
use super::super::notes::mark;
use super::super::number::number;
use super::super::page::{Column, Page, Sheet, both, filed, shown};
use super::super::table::{self, Table};
use super::super::{Options, caption, escape};
use super::{at_clients, below, codes, label, marked, noted, place_and_metric};
use crate::error::{Error, Result};

/// From here on the decimals of a percentage say nothing.
const WHOLE_FROM: f64 = 10.0;

/// The two numbers of a column that both labels have.
struct Pair {
    column: table::Column,
    from: f64,
    to: f64,
    /// Percent; none where it would be a division by 0.
    change: Option<f64>,
}

/// Returns the tables of the two labels only, and what changes there; without those that lack one.
fn pairs<'a>(
    tables: &[Table<'a>],
    options: &Options,
    change: fn(&Table, f64, f64) -> Option<f64>,
) -> Result<Vec<(Table<'a>, Vec<Pair>)>> {
    let [from, to] = labels(options);
    known(tables, "--from", from)?;
    known(tables, "--to", to)?;
    let mut found = Vec::new();
    for table in tables {
        let table = noted(table.of_labels(&[from, to]));
        let [one, other] = table.lines.as_slice() else { continue };
        let cells = table.columns.iter().zip(one.cells.iter().zip(&other.cells));
        let pairs: Vec<Pair> = cells
            .filter_map(|(column, (from, to))| {
                let (from, to) = (from.as_ref()?.spread.median, to.as_ref()?.spread.median);
                Some(Pair { column: *column, from, to, change: change(&table, from, to) })
            })
            .collect();
        if !pairs.is_empty() {
            found.push((table, pairs));
        }
    }
    if found.is_empty() {
        return Err(Error::data(format!(
            "{} and {} have no workload and number of clients in common",
            escape::line(from),
            escape::line(to)
        )));
    }
    Ok(found)
}

/// Returns the two labels, which [`super::Layout::check`] asked for.
fn labels(options: &Options) -> [&str; 2] {
    [&options.from, &options.to].map(|label| label.as_deref().expect("--from and --to are there"))
}

/// Returns the range of the change over the numbers of clients, for each workload.
pub(super) fn delta(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    type Row<'a> = (&'a Table<'a>, &'a [Pair], &'a String);

    let found = pairs(tables, options, |table, from, to| {
        Some((speed(&table.metric, from, to)? - 1.0) * 100.0)
    })?;
    let mut remarks = Remarks::default();
    let signs: Vec<String> = found.iter().map(|(table, _)| remarks.of(table)).collect();
    let columns = vec![
        shown("workload", |(table, ..): &Row| escape::line(table.workload)).left(),
        shown("change", |(_, pairs, _): &Row| {
            extremes(pairs).map(|((_, low), (_, high))| range(low, high))
        }),
        shown("least at", |(_, pairs, _): &Row| {
            extremes(pairs).map(|((pair, _), _)| pair.column.to_string())
        }),
        shown("most at", |(_, pairs, _): &Row| {
            extremes(pairs).map(|(_, (pair, _))| pair.column.to_string())
        }),
        shown("of", |(table, pairs, signs): &Row| {
            let columns: Vec<String> = pairs.iter().map(|pair| pair.column.to_string()).collect();
            format!("{} at {}{signs}", table.metric.short().0, columns.join(", "))
        })
        .left(),
    ];
    let rows = found.iter().zip(&signs).map(|((table, pairs), signs)| (table, &pairs[..], signs));
    let mut sheets = vec![Sheet::of(columns, rows)];
    sheets.extend(found.iter().map(|(table, pairs)| {
        let mut columns = records(table);
        columns.push(filed("change_percent", |pair: &&Pair| pair.change));
        columns.push(filed("notes", |pair: &&Pair| codes(table, &[0, 1], &pair.column)));
        Sheet::of(columns, pairs)
    }));
    let [from, to] = labels(options).map(escape::line);
    let title = vec![format!("from {from} to {to}: change in percent, more being better")];
    let mut below = remarks.lines();
    if found.iter().any(|(_, pairs)| divides_by_zero(pairs)) {
        below.push(NO_RATIO.to_owned());
    }
    Ok(vec![Page { title, sheets, below, ..Page::default() }])
}

/// Lines below one grid of several workloads: the same of many is said once.
#[derive(Default)]
struct Remarks {
    notes: Vec<String>,
    /// Each with the workloads that it is about.
    conditions: Vec<(String, Vec<String>)>,
}

impl Remarks {
    /// Takes those of a workload; the signs of its line.
    fn of(&mut self, table: &Table) -> String {
        let workload = escape::line(table.workload);
        for line in caption::below(table).into_iter().filter(|line| !line.is_empty()) {
            match self.conditions.iter_mut().find(|(known, _)| *known == line) {
                Some((_, workloads)) => workloads.push(workload.clone()),
                None => self.conditions.push((line, vec![workload.clone()])),
            }
        }
        let notes = table.notes.iter().map(|note| {
            let known = self.notes.iter().position(|text| *text == note.text);
            known.unwrap_or_else(|| {
                self.notes.push(note.text.clone());
                self.notes.len() - 1
            })
        });
        let notes: BTreeSet<usize> = notes.collect();
        notes.into_iter().flat_map(|at| [" ".to_owned(), mark(at)]).collect()
    }

    fn lines(&self) -> Vec<String> {
        let notes = self.notes.iter().enumerate().map(|(at, text)| format!("{} {text}", mark(at)));
        let alone = self.conditions.len() == 1;
        let conditions = self.conditions.iter().map(|(line, workloads)| match workloads.first() {
            Some(first) if !alone => {
                let more = if workloads.len() > 1 { " and others" } else { "" };
                format!("{first}{more}: {line}")
            }
            _ => line.clone(),
        });
        notes.chain(conditions).collect()
    }
}

/// Returns the cost at each number of clients, a table for each workload.
pub(super) fn overhead(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    let found = pairs(tables, options, |table, from, to| {
        // What is lost of a rate, and what is added to a time.
        let lost = if table.metric.higher_is_better() {
            1.0 - ratio(to, from)?
        } else {
            ratio(to, from)? - 1.0
        };
        Some(lost * 100.0)
    })?;
    Ok(found.iter().map(|(table, pairs)| costs(table, pairs)).collect())
}

fn costs(table: &Table, pairs: &[Pair]) -> Page {
    let decimals = table.metric.decimals(pairs.iter().flat_map(|pair| [pair.from, pair.to]));
    let mut columns = vec![shown("clients", |pair: &&Pair| pair.column.to_string())];
    columns.extend(records(table));
    columns.extend([
        shown(marked(table, 0), move |pair: &&Pair| (pair.from, decimals)),
        shown(marked(table, 1), move |pair: &&Pair| (pair.to, decimals)),
        both("cost %", "cost_percent", |pair: &&Pair| pair.change.map(|change| (change, 1))),
        filed("notes", |pair: &&Pair| codes(table, &[0, 1], &pair.column)),
    ]);
    let (short, _) = table.metric.short();
    let mut lines = Vec::new();
    if let Some(((_, low), (most, high))) = extremes(pairs) {
        let share = if table.metric.higher_is_better() { "less" } else { "more" };
        lines.push(format!(
            "{} costs {} ({share} {short} than {}), most at {}",
            label(table.lines[1].label),
            range_with(low, high, 1),
            label(table.lines[0].label),
            at_clients(&most.column)
        ));
    }
    if divides_by_zero(pairs) {
        lines.push(NO_RATIO.to_owned());
    }
    lines.extend(below(table));
    let title = format!("{}: cost in percent of {short}", escape::line(table.workload));
    Page::of(title, Sheet::of(columns, pairs), lines)
}

fn records<'a>(table: &'a Table) -> Vec<Column<'a, &'a Pair>> {
    let mut columns = place_and_metric(table, |pair: &&Pair| pair.column);
    columns.extend([
        filed("from", |_: &&Pair| table.lines[0].label),
        filed("to", |_: &&Pair| table.lines[1].label),
        filed("from_value", |pair: &&Pair| pair.from),
        filed("to_value", |pair: &&Pair| pair.to),
    ]);
    columns
}

type Extreme<'a> = (&'a Pair, f64);

fn extremes(pairs: &[Pair]) -> Option<(Extreme<'_>, Extreme<'_>)> {
    let changes = || pairs.iter().filter_map(|pair| Some((pair, pair.change?)));
    let by = |a: &(&Pair, f64), b: &(&Pair, f64)| a.1.total_cmp(&b.1);
    // Of equal ones the fewest clients.
    Some((changes().min_by(by)?, changes().rev().max_by(by)?))
}

fn divides_by_zero(pairs: &[Pair]) -> bool {
    pairs.iter().any(|pair| pair.change.is_none())
}

/// `5-16%`; whole percents, as published, where they are large enough.
fn range(least: f64, most: f64) -> String {
    let whole = least.abs().max(most.abs()) >= WHOLE_FROM;
    range_with(least, most, usize::from(!whole))
}

fn range_with(least: f64, most: f64, decimals: usize) -> String {
    let (low, high) = (number(least, decimals), number(most, decimals));
    if low == high {
        format!("{low}%")
    } else if low.starts_with('-') {
        // A hyphen between signs would be a third one.
        format!("{low} to {high}%")
    } else {
        format!("{low}-{high}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_like_the_published_ones() {
        assert_eq!(range(5.2, 15.8), "5-16%");
        assert_eq!(range(30.0, 39.0), "30-39%");
        assert_eq!(range(2.52, 9.43), "2.5-9.4%");
        assert_eq!(range(12.1, 12.4), "12%");
        assert_eq!(range(-15.0, -11.0), "-15 to -11%");
        assert_eq!(range(-3.04, 5.0), "-3.0 to 5.0%");
        assert_eq!(range(-0.01, 0.01), "0.0%");
    }
}
