//! Changes from one label to another, and their cost.

use super::columns::Rows;
use super::distinct::{entry, push_new};
use super::metric::Metric;
use super::names::{at_clients, label};
use super::notes::{codes, explain_uncertainty, is_marked, marked, medians};
use super::options::Options;
use super::page::{Conditions, Page};
use super::question::{nothing_in_common, of_two, pair, with_number_of};
use super::ratio::{Ratio, Ratios, common};
use super::run::Runs;
use super::table::{
    NO_RATIO, TableCell, WorkloadTable, is_comparable, merit, not_comparable, own_ratio, ratio,
    speed,
};
use super::{escape, value};
use crate::error::Result;
use crate::terms::Cell;

/// From here on the decimals of a percentage say nothing.
const WHOLE_FROM: f64 = 10.0;

struct Pair {
    column: Cell,
    from: f64,
    to: f64,
    /// Percent; none where it would be a division by 0, or of totals of unequal work.
    change: Option<f64>,
    /// The metric to use instead of totals of unequal work.
    instead: Option<Metric>,
}

fn labels_of(tables: &[WorkloadTable], options: &Options) -> Result<[String; 2]> {
    let given = [&options.baseline, &options.new].map(Option::as_deref);
    let runs = tables.iter().flat_map(|table| table.runs().to_vec());
    pair(runs.collect::<Runs>(), given)
}

pub(crate) fn of_pair<'a>(
    tables: &[WorkloadTable<'a>],
    options: &Options,
) -> Result<Vec<WorkloadTable<'a>>> {
    of_two(tables, labels_of(tables, options)?.each_ref().map(String::as_str))
}

/// Leaves out tables that lack one of the two labels.
fn pairs<'a>(
    tables: &[WorkloadTable<'a>],
    options: &Options,
    change: fn(Metric, Option<f64>, [f64; 2]) -> Option<f64>,
) -> Result<Vec<(WorkloadTable<'a>, Vec<Pair>)>> {
    let labels = labels_of(tables, options)?;
    let labels = labels.each_ref().map(String::as_str);
    let mut found = Vec::new();
    let tables = of_pair(tables, options)?;
    let ratios = Ratios::new(&tables);
    for (at, table) in tables.iter().enumerate() {
        let ratios = ratios.between(at, labels);
        let pair = |(column, cells): (Cell, [&TableCell; 2])| {
            let [from, to] = cells.map(|cell| cell.spread.median);
            let is_comparable = is_comparable(table.metric, cells);
            let instead = table.metric.by_work().filter(|_| !is_comparable);
            let ratio = ratios.get(&column).map(Ratio::estimate);
            let change = change(table.metric, ratio, [from, to]).filter(|_| is_comparable);
            Pair { column, from, to, change, instead }
        };
        let pairs: Vec<Pair> = common(table).into_iter().map(pair).collect();
        found.extend((!pairs.is_empty()).then(|| (table.clone(), pairs)));
    }
    if found.is_empty() {
        let but = with_number_of(options.metric);
        return Err(nothing_in_common(labels[0], &labels[1..], &but));
    }
    Ok(found)
}

pub(super) fn changes(tables: &[WorkloadTable], options: &Options) -> Result<Vec<Page>> {
    let tables = pairs(tables, options, |metric, ratio, [from, to]| {
        // Numbers without logarithms have the ratio of their medians.
        let ratio = ratio.or_else(|| speed(&metric, from, to))?;
        Some((ratio - 1.0) * 100.0)
    })?;
    let shown = Rows::new(&tables)
        .text("workload", |(table, _)| escape::line(table.workload))
        .shown("change", |(_, pairs)| extremes(pairs).map(|[a, b]| range(a.1, b.1, WHOLE_FROM)))
        .shown("least at", |(_, pairs)| extremes(pairs).map(|[low, _]| low.0.to_string()))
        .shown("most at", |(_, pairs)| extremes(pairs).map(|[_, high]| high.0.to_string()))
        .text("of", |(table, pairs)| {
            let is_related = |pair: &&Pair| pair.change.is_some();
            let none = !pairs.iter().any(|pair| is_related(&pair));
            let of = pairs.iter().filter(|pair| none || is_related(pair));
            let columns: Vec<String> = of.map(|pair| pair.column.to_string()).collect();
            let any = (0..table.lines.len()).any(|at| is_marked(table, at, None));
            let mark = if any { " *" } else { "" };
            format!("{} at {}{mark}", table.metric.short().0, columns.join(", "))
        });
    let records = tables.iter().map(|(table, pairs)| {
        let rows = of_pairs(table, pairs).filed("change_percent", |pair| pair.change);
        rows.filed("notes", |pair| codes(table, &[0, 1], &pair.column)).sheet()
    });
    let sheets = std::iter::once(shown.sheet()).chain(records).collect();
    let [from, to] = [0, 1].map(|at| label(tables[0].0.lines[at].label));
    let title = vec![format!("from {from} to {to}: change in percent, more being better")];
    let mut page = shared(tables.iter().map(|(table, _)| table));
    page.below.extend(no_ratio(tables.iter().flat_map(|(_, pairs)| pairs)));
    Ok(vec![Page { title, sheets, ..page }])
}

/// Returns what stands below all workloads: the same of many is said once.
pub(super) fn shared<'t, 's: 't>(tables: impl Iterator<Item = &'t WorkloadTable<'s>>) -> Page {
    let mut page = Page::default();
    let [mut short, mut full]: [Vec<(String, Vec<String>)>; 2] = Default::default();
    for table in tables {
        let of = Page::default().footed(table);
        of.below.into_iter().for_each(|line| push_new(&mut page.below, line));
        of.notes.into_iter().for_each(|line| push_new(&mut page.notes, line));
        for (all, lines) in [(&mut short, of.conditions.short), (&mut full, of.conditions.full)] {
            for line in lines {
                push_new(entry(all, line), escape::line(table.workload));
            }
        }
    }
    let words = |conditions: Vec<(String, Vec<String>)>| {
        let alike = conditions.len() == 1;
        let sentence = |(line, of): (String, Vec<String>)| {
            if alike { line } else { format!("{}: {line}", of.join(", ")) }
        };
        conditions.into_iter().map(sentence).collect()
    };
    page.conditions = Conditions { short: words(short), full: words(full) };
    page
}

pub(super) fn costs(tables: &[WorkloadTable], options: &Options) -> Result<Vec<Page>> {
    // The part that a rate loses, or that a time gains.
    let tables = pairs(tables, options, |metric, turned, [from, to]| {
        let own = turned.map(|of| own_ratio(metric, of)).or_else(|| ratio(to, from))?;
        Some(merit(&metric, own - 1.0) * -100.0)
    })?;
    Ok(tables.iter().map(|(table, pairs)| cost_page(table, pairs)).collect())
}

fn cost_page<'t>(table: &'t WorkloadTable<'t>, pairs: &[Pair]) -> Page {
    let decimals = table.metric.decimals(pairs.iter().flat_map(|pair| [pair.from, pair.to]));
    let shown = || {
        let lines = table.lines.iter();
        lines.flat_map(|line| pairs.iter().filter_map(|pair| line.at(&pair.column)))
    };
    let is_repeated = shown().any(|cell| cell.spread.n > 1);
    let mut rows = of_pairs(table, pairs).shown("clients", |pair| pair.column.to_string());
    for (at, line) in table.lines.iter().enumerate() {
        rows = rows.shown(&marked(table, at), |pair| {
            let cell = line.at(&pair.column);
            cell.map(|cell| table.metric.page_value(cell.spread.median, decimals))
        });
        if is_repeated {
            rows = rows.text("", |pair| {
                let cell = line.at(&pair.column);
                let words = cell.and_then(|cell| cell.uncertainty_in_words(table.metric, decimals));
                words.unwrap_or_default()
            });
        }
    }
    let sheet = rows
        .both("cost %", "cost_percent", |pair| pair.change.map(|change| (change, 1)))
        .filed("notes", |pair| codes(table, &[0, 1], &pair.column))
        .sheet();
    let (short, _) = table.metric.short();
    let mut lines = Vec::new();
    if let Some([(least, low), (most, high)]) = extremes(pairs) {
        // Costs below 0 at all numbers of clients are a gain.
        let gains = high < 0.0;
        let (verb, low, high, most) =
            if gains { ("gains", -high, -low, least) } else { ("costs", low, high, most) };
        let share = if table.metric.higher_is_better() == gains { "more" } else { "less" };
        let [from, to] = [0, 1].map(|at| label(table.lines[at].label));
        let (range, most) = (range(low, high, f64::INFINITY), at_clients(&most));
        lines.push(format!("{to} {verb} {range} ({share} {short} than {from}), most at {most}"));
    }
    lines.extend(no_ratio(pairs));
    let title = format!(
        "{}: cost in percent of {short}{}{}",
        escape::line(table.workload),
        medians(shown()),
        explain_uncertainty(shown)
    );
    Page::new(title, sheet, lines).footed(table)
}

fn of_pairs<'p>(table: &WorkloadTable, pairs: &'p [Pair]) -> Rows<&'p Pair> {
    Rows::new(pairs)
        .place_and_metric(table.workload, table.metric, |pair| pair.column)
        .filed("from", |_| table.lines[0].label)
        .filed("to", |_| table.lines[1].label)
        .filed("from_value", |pair| pair.from)
        .filed("to_value", |pair| pair.to)
}

/// Returns the least and the largest change, of equal ones at the fewest clients.
fn extremes(pairs: &[Pair]) -> Option<[(Cell, f64); 2]> {
    let changes = || pairs.iter().filter_map(|pair| Some((pair.column, pair.change?)));
    let by = |a: &(Cell, f64), b: &(Cell, f64)| a.1.total_cmp(&b.1);
    Some([changes().min_by(by)?, changes().rev().max_by(by)?])
}

fn no_ratio<'p>(pairs: impl IntoIterator<Item = &'p Pair>) -> Vec<String> {
    let mut reasons = Vec::new();
    for pair in pairs.into_iter().filter(|pair| pair.change.is_none()) {
        let reason = pair.instead.map_or_else(|| NO_RATIO.to_owned(), not_comparable);
        push_new(&mut reasons, reason);
    }
    reasons
}

/// Returns `5-16%`; whole percents, as published, where they are as large as that.
fn range(least: f64, most: f64, whole_from: f64) -> String {
    let decimals = usize::from(least.abs().max(most.abs()) < whole_from);
    let (low, high) = (value::number(least, decimals), value::number(most, decimals));
    // A hyphen between signs would be a third one.
    let to = if low.starts_with('-') { " to " } else { "-" };
    if low == high { format!("{low}%") } else { format!("{low}{to}{high}%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_like_the_published_ones() {
        let range = |least, most| range(least, most, WHOLE_FROM);
        assert_eq!(range(5.2, 15.8), "5-16%");
        assert_eq!(range(30.0, 39.0), "30-39%");
        assert_eq!(range(2.52, 9.43), "2.5-9.4%");
        assert_eq!(range(12.1, 12.4), "12%");
        assert_eq!(range(-15.0, -11.0), "-15 to -11%");
        assert_eq!(range(-3.04, 5.0), "-3.0 to 5.0%");
        assert_eq!(range(-0.01, 0.01), "0.0%");
    }
}
