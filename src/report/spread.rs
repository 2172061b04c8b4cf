//! How the runs of each cell spread: the second table below the plain one.

use super::escape;
use super::layout::record;
use super::number::number;
use super::page::{Body, Field, Grid, Page};
use super::pivot::{Cell, Table};
use super::text;

/// What the numbers are.
const WHAT: &str = "a run is one value; the interval covers the median of such runs with 95 %, \
                    whatever their distribution (order statistics), and needs six of them";

/// A page for each table.
pub(super) fn pages(tables: &[Table]) -> Vec<Page> {
    tables.iter().map(page).collect()
}

fn page(table: &Table) -> Page {
    let decimals = table.metric.decimals(
        table.lines.iter().flat_map(|line| &line.cells).flatten().map(|cell| cell.spread.median),
    );
    let (mut rows, mut records) = (Vec::new(), Vec::new());
    for line in &table.lines {
        for (column, cell) in table.columns.iter().zip(&line.cells) {
            let Some(cell) = cell else { continue };
            let (spread, interval) = (cell.spread, cell.interval);
            let shown = |value: f64| number(value, decimals);
            let between = interval.map_or_else(
                || text::NOTHING.to_owned(),
                |(low, high)| format!("{} to {}", shown(low), shown(high)),
            );
            rows.push(vec![
                column.to_string(),
                spread.n.to_string(),
                shown(spread.median),
                shown(spread.min),
                shown(spread.max),
                relative(cell)
                    .map_or_else(|| text::NOTHING.to_owned(), |share| number(share * 100.0, 1)),
                between,
                text::label(line.label),
            ]);
            let mut fields = record(table, column);
            fields.extend([
                ("label", Field::Text(line.label.to_owned())),
                ("runs", Field::Count(spread.n as u64)),
                ("median", Field::Number(Some(spread.median))),
                ("min", Field::Number(Some(spread.min))),
                ("max", Field::Number(Some(spread.max))),
                ("interval_low", Field::Number(interval.map(|i| i.0))),
                ("interval_high", Field::Number(interval.map(|i| i.1))),
            ]);
            records.push(fields);
        }
    }
    let head = ["clients", "runs", "median", "min", "max", "range %", "95 % interval", "label"];
    Page {
        title: vec![format!(
            "{}: {}, {}; the runs of each cell",
            escape::line(table.workload),
            table.metric.name(),
            table.metric.unit_in_words()
        )],
        body: Body::Grid(Grid {
            head: head.map(str::to_owned).to_vec(),
            texts: vec![6, 7],
            rows,
            ..Grid::default()
        }),
        below: vec![WHAT.to_owned()],
        records,
    }
}

/// How far the extremes of a cell lie apart, as a share of its median.
fn relative(cell: &Cell) -> Option<f64> {
    let spread = cell.spread;
    (spread.n > 1 && spread.median > 0.0).then(|| (spread.max - spread.min) / spread.median)
}
