//! What changes from one label to another: the range of it in each workload, and the cost of a
//! setting at each number of clients.

use super::super::compare::{common, nothing_in_common, of_two};
use super::super::notes::{mark, signs};
use super::super::page::{Page, Rows, number};
use super::super::settings::{self, at_clients, label};
use super::super::table::{Column, NO_RATIO, Table, ratio, speed};
use super::super::{Options, escape};
use super::{below, codes, marked};
use crate::error::Result;

/// From here on the decimals of a percentage say nothing.
const WHOLE_FROM: f64 = 10.0;

/// The two numbers of a column that both labels have.
struct Pair {
    column: Column,
    from: f64,
    to: f64,
    /// Percent; none where it would be a division by 0.
    change: Option<f64>,
}

/// Returns the two labels, which the layout asked for.
fn labels(options: &Options) -> [&str; 2] {
    [&options.from, &options.to].map(|label| label.as_deref().expect("--from and --to are there"))
}

/// Returns the tables of the two labels only, and what changes there; without those that lack one.
fn pairs<'a>(
    tables: &[Table<'a>],
    options: &Options,
    change: fn(&Table, f64, f64) -> Option<f64>,
) -> Result<Vec<(Table<'a>, Vec<Pair>)>> {
    let labels = labels(options);
    let tables = of_two(tables, ["--from", "--to"], labels)?.into_iter().map(|table| {
        let pair = |(column, [from, to]): (Column, [&super::Cell; 2])| {
            let (from, to) = (from.spread.median, to.spread.median);
            Pair { column, from, to, change: change(&table, from, to) }
        };
        let pairs: Vec<Pair> = common(&table).into_iter().map(pair).collect();
        (table, pairs)
    });
    let found: Vec<_> = tables.filter(|(_, pairs)| !pairs.is_empty()).collect();
    if found.is_empty() { Err(nothing_in_common(labels, "")) } else { Ok(found) }
}

/// Returns the range of the change over the numbers of clients, for each workload.
pub(super) fn delta(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    let found = pairs(tables, options, |table, from, to| {
        Some((speed(&table.metric, from, to)? - 1.0) * 100.0)
    })?;
    let (marks, mut below) = remarks(&found);
    if found.iter().any(|(_, pairs)| divides_by_zero(pairs)) {
        below.push(NO_RATIO.to_owned());
    }
    let rows = found.iter().zip(&marks).map(|((table, pairs), marks)| (table, pairs, marks));
    let shown = Rows::new(rows)
        .shown("workload", |(table, ..)| escape::line(table.workload))
        .left()
        .shown("change", |(_, pairs, _)| {
            extremes(pairs).map(|((_, low), (_, high))| range(low, high))
        })
        .shown("least at", |(_, pairs, _)| extremes(pairs).map(|((pair, _), _)| at(pair)))
        .shown("most at", |(_, pairs, _)| extremes(pairs).map(|(_, (pair, _))| at(pair)))
        .shown("of", |(table, pairs, marks)| {
            let columns: Vec<String> = pairs.iter().map(at).collect();
            format!("{} at {}{marks}", table.metric.short().0, columns.join(", "))
        })
        .left();
    let records = found.iter().map(|(table, pairs)| {
        let rows = records(table, pairs).filed("change_percent", |pair| pair.change);
        rows.filed("notes", |pair| codes(table, &[0, 1], &pair.column)).sheet()
    });
    let sheets = std::iter::once(shown.sheet()).chain(records).collect();
    let [from, to] = labels(options).map(escape::line);
    let title = vec![format!("from {from} to {to}: change in percent, more being better")];
    Ok(vec![Page { title, sheets, below, ..Page::default() }])
}

fn at(pair: &Pair) -> String {
    pair.column.to_string()
}

/// Returns the signs of each workload, and the lines below all: the same of many is said once.
fn remarks(found: &[(Table, Vec<Pair>)]) -> (Vec<String>, Vec<String>) {
    let mut notes: Vec<&str> = Vec::new();
    // Each with the workloads that it is about.
    let mut conditions: Vec<(String, Vec<String>)> = Vec::new();
    let mut marks = Vec::new();
    for (table, _) in found {
        let workload = escape::line(table.workload);
        for line in settings::below(table) {
            match conditions.iter_mut().find(|(known, _)| *known == line) {
                Some((_, workloads)) => workloads.push(workload.clone()),
                None => conditions.push((line, vec![workload.clone()])),
            }
        }
        let here: Vec<&str> = table.notes.iter().map(|note| note.text.as_str()).collect();
        let new: Vec<&str> = here.iter().filter(|text| !notes.contains(text)).copied().collect();
        notes.extend(new);
        marks.push(signs((0..notes.len()).filter(|at| here.contains(&notes[*at]))));
    }
    let alone = conditions.len() == 1;
    let conditions = conditions.into_iter().map(|(line, workloads)| match workloads.len() {
        _ if alone => line,
        1 => format!("{}: {line}", workloads[0]),
        _ => format!("{} and others: {line}", workloads[0]),
    });
    let notes = notes.iter().enumerate().map(|(at, text)| format!("{} {text}", mark(at)));
    (marks, notes.chain(conditions).collect())
}

/// Returns the cost at each number of clients, a table for each workload.
pub(super) fn overhead(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    let found = pairs(tables, options, |table, from, to| {
        // What is lost of a rate, and what is added to a time.
        let more = (ratio(to, from)? - 1.0) * 100.0;
        Some(if table.metric.higher_is_better() { -more } else { more })
    })?;
    Ok(found.iter().map(|(table, pairs)| costs(table, pairs)).collect())
}

fn costs(table: &Table, pairs: &[Pair]) -> Page {
    let decimals = table.metric.decimals(pairs.iter().flat_map(|pair| [pair.from, pair.to]));
    let sheet = records(table, pairs)
        .shown("clients", |pair| at(pair))
        .shown(marked(table, 0), |pair| (pair.from, decimals))
        .shown(marked(table, 1), |pair| (pair.to, decimals))
        .both("cost %", "cost_percent", |pair| pair.change.map(|change| (change, 1)))
        .filed("notes", |pair| codes(table, &[0, 1], &pair.column))
        .sheet();
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
    lines.extend(divides_by_zero(pairs).then(|| NO_RATIO.to_owned()));
    lines.extend(below(table));
    let title = format!("{}: cost in percent of {short}", escape::line(table.workload));
    Page::of(title, sheet, lines)
}

fn records<'p>(table: &Table, pairs: &'p [Pair]) -> Rows<&'p Pair> {
    Rows::new(pairs)
        .place_and_metric(table, |pair| pair.column)
        .filed("from", |_| table.lines[0].label)
        .filed("to", |_| table.lines[1].label)
        .filed("from_value", |pair| pair.from)
        .filed("to_value", |pair| pair.to)
}

/// A pair and its change.
type Change<'a> = (&'a Pair, f64);

/// Returns the least and the largest change, of equal ones at the fewest clients.
fn extremes(pairs: &[Pair]) -> Option<(Change<'_>, Change<'_>)> {
    let changes = || pairs.iter().filter_map(|pair| Some((pair, pair.change?)));
    let by = |a: &Change, b: &Change| a.1.total_cmp(&b.1);
    Some((changes().min_by(by)?, changes().rev().max_by(by)?))
}

fn divides_by_zero(pairs: &[Pair]) -> bool {
    pairs.iter().any(|pair| pair.change.is_none())
}

/// Returns `5-16%`; whole percents, as published, where they are large enough.
fn range(least: f64, most: f64) -> String {
    let whole = least.abs().max(most.abs()) >= WHOLE_FROM;
    range_with(least, most, usize::from(!whole))
}

fn range_with(least: f64, most: f64, decimals: usize) -> String {
    let (low, high) = (number(least, decimals), number(most, decimals));
    // A hyphen between signs would be a third one.
    let to = if low.starts_with('-') { " to " } else { "-" };
    if low == high { format!("{low}%") } else { format!("{low}{to}{high}%") }
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
