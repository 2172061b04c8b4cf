//! Absolute and relative numbers side by side, as the fourth published text has them.

use super::super::baseline::{NO_RATIO, known, relate};
use super::super::number::{number, ratio_decimals};
use super::super::page::{Body, Field, Grid, Page};
use super::super::pivot::{Line, Table};
use super::super::{caption, escape, notes, text};
use super::{at_clients, below, codes, noted, record};
use crate::error::Result;

/// The note of a step that explains its label: `--note note=TEXT`.
const REMARK: &str = "note";

/// A table for each workload and number of clients.
pub(super) fn pages(tables: &[Table], baseline: Option<&str>) -> Result<Vec<Page>> {
    if let Some(label) = baseline {
        known(tables, "--baseline", label)?;
    }
    let slices = tables.iter().flat_map(Table::by_column);
    slices.map(|table| one(noted(table), baseline)).collect()
}

fn one(table: Table, baseline: Option<&str>) -> Result<Page> {
    let has_number = |line: &&Line| line.cell().is_some();
    let first = table.lines.iter().find(has_number).or(table.lines.first());
    let first = first.map_or("", |line| line.label).to_owned();
    let base = baseline.map_or(first, str::to_owned);
    // Here the baseline may be missing though other pages have it: then nothing relates.
    let mut lines = table.lines.iter().filter(has_number);
    let there = lines.any(|line| line.label == base);
    let mut tables = [table];
    if there {
        relate(&mut tables, &base)?;
    }
    let [mut table] = tables;
    // The title tells the metric itself, and not its ratio.
    table.baseline = None;
    let (short, _) = table.metric.short();
    let shown = escape::line(&base);
    let how = if table.metric.higher_is_better() {
        format!("{short} / {short}-for-{shown}")
    } else {
        format!("{short}-for-{shown} / {short}")
    };
    let column = table.columns.first().copied();
    let clients = column.as_ref().map_or_else(String::new, at_clients);
    let mut below = below(&table);
    if !there {
        below.push(format!("{shown} has no number here: nothing to relate to"));
    } else if table.lines.iter().filter_map(Line::cell).any(|cell| cell.relative.is_none()) {
        below.push(NO_RATIO.to_owned());
    }
    Ok(Page {
        title: vec![
            format!("{}; {clients}", caption::title(&table)),
            format!("Relative-perf is {how}"),
        ],
        body: Body::Grid(grid(&table, &base, short)),
        below,
        records: table
            .lines
            .iter()
            .enumerate()
            .map(|(at, line)| {
                let mut record = column.as_ref().map(|c| record(&table, c)).unwrap_or_default();
                let cell = line.cell();
                record.extend([
                    ("label", Field::Text(line.label.to_owned())),
                    ("value", Field::Number(cell.map(|cell| cell.spread.median))),
                    ("baseline", Field::Text(base.clone())),
                    ("relative", Field::Number(cell.and_then(|cell| cell.relative))),
                ]);
                record.extend(column.as_ref().map(|column| codes(&table, &[at], column)));
                record
            })
            .collect(),
    })
}

fn grid(table: &Table, base: &str, short: String) -> Grid {
    let cells = || table.lines.iter().filter_map(Line::cell);
    let decimals = table.metric.decimals(cells().map(|cell| cell.spread.median));
    let ratios = ratio_decimals(cells().filter_map(|cell| cell.relative));
    let row = |(at, line): (usize, &Line)| {
        let value = line.cell().map(|cell| number(cell.spread.median, decimals));
        let relative = line.cell().and_then(|cell| cell.relative).map(|relative| {
            // As published: the baseline is 1, and what merely equals it 1.00.
            number(relative, if line.label == base { 0 } else { ratios })
        });
        let none = || text::NOTHING.to_owned();
        // The signs of footnotes end the line: numbers follow the label alone.
        let end = format!("{} {}", notes::marks(table, at).trim(), remark(line));
        vec![
            text::label(line.label),
            value.unwrap_or_else(none),
            relative.unwrap_or_else(none),
            end.trim().to_owned(),
        ]
    };
    Grid {
        head: vec![String::new(), short, "Relative-perf".to_owned(), String::new()],
        texts: vec![0, 3],
        rows: table.lines.iter().enumerate().map(row).collect(),
        more: None,
    }
}

/// What the note of a label's steps says, where it has one.
fn remark(line: &Line) -> String {
    let note = line.steps.iter().find_map(|step| step.notes.get(REMARK));
    note.map_or_else(String::new, |note| format!("-> {}", escape::line(note)))
}
