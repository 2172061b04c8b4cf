//! Aligned columns: clients across, one label a line, the label last.

use super::pivot::{Line, Table};
use super::{caption, escape, notes, number, spark};

/// A column is at least so wide, blanks included.
const COLUMN_MIN: usize = 8;
/// Blanks between the widest number of a column and the next.
const GAP: usize = 2;
/// A cell that was not measured.
pub(crate) const NOTHING: &str = "-";
/// What the header says about its numbers.
pub(crate) const HEADER: &str = "concurrent clients";

/// The tables, footnotes and captions; on a terminal of so many columns also the shape of each
/// line, from zero to the largest number of the table.
pub(crate) fn render(tables: &[Table], terminal: Option<usize>) -> String {
    let above = caption::above(tables);
    let rendered: Vec<String> = tables.iter().map(|table| one(table, above, terminal)).collect();
    rendered.join("\n")
}

fn one(table: &Table, above: bool, terminal: Option<usize>) -> String {
    let mut out = String::new();
    let mut push = |line: &str| {
        out.push_str(line);
        out.push('\n');
    };
    let title = caption::title(table);
    if above {
        push(&title);
    }
    let lines = match terminal {
        Some(columns) => spark::beside(grid(table), &shapes(table), columns),
        None => grid(table),
    };
    for line in lines {
        push(&line);
    }
    push("");
    for (at, note) in table.notes.iter().enumerate() {
        push(&format!("{} {}", notes::mark(at), note.text));
    }
    if !above {
        push(&title);
    }
    for line in caption::below(table) {
        push(&line);
    }
    out
}

/// The shape of each line of the grid, where there is one.
fn shapes(table: &Table) -> Vec<String> {
    let max = table.shown().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let shape = |line: &Line| {
        let values = line.cells.iter().map(|cell| cell.as_ref().and_then(|c| table.number(c)));
        if table.columns.len() > 1 { spark::line(values, max) } else { String::new() }
    };
    std::iter::once(String::new()).chain(table.lines.iter().map(shape)).collect()
}

/// Header and label lines. Numbers are right-aligned to the widest of their column, header
/// included, and padded on the right.
fn grid(table: &Table) -> Vec<String> {
    let header: Vec<String> = table.columns.iter().map(ToString::to_string).collect();
    let rows = cells(table);
    let mut widths: Vec<usize> = header.iter().map(String::len).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    let line = |cells: &[String], end: &str| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| {
            let column = COLUMN_MIN.max(width + GAP);
            format!("{:column$}", format!("{cell:>width$}"))
        });
        padded.chain([end.to_owned()]).collect::<String>()
    };
    let mut lines = vec![line(&header, HEADER)];
    for (at, (row, of)) in rows.iter().zip(&table.lines).enumerate() {
        lines.push(line(row, &(label(of.label) + &notes::marks(table, at))));
    }
    lines
}

/// A label that can be seen.
pub(crate) fn label(label: &str) -> String {
    if label.trim().is_empty() { "(no label)".to_owned() } else { escape::line(label) }
}

/// The numbers of a table as text, line by line.
pub(crate) fn cells(table: &Table) -> Vec<Vec<String>> {
    let decimals = match &table.baseline {
        Some(_) => number::ratio_decimals(table.shown()),
        None => table.metric.decimals(table.shown()),
    };
    let shown = |cell: &Option<super::pivot::Cell>| {
        let value = cell.as_ref().and_then(|cell| table.number(cell));
        value.map_or_else(|| NOTHING.to_owned(), |value| number::number(value, decimals))
    };
    table.lines.iter().map(|line| line.cells.iter().map(shown).collect()).collect()
}
