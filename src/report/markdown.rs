//! Tables of GitHub's Markdown.

use super::pivot::Table;
use super::{caption, escape, notes, text};

/// The tables, each below its title, with footnotes and captions.
pub(crate) fn render(tables: &[Table]) -> String {
    let rendered: Vec<String> = tables.iter().map(one).collect();
    rendered.join("\n")
}

fn one(table: &Table) -> String {
    let header = table.columns.iter().map(ToString::to_string);
    let mut lines = vec![
        format!("**{}**", escape::markdown(&caption::title(table))),
        String::new(),
        row(header, Some(text::HEADER)),
        row(table.columns.iter().map(|_| "---:".to_owned()), Some(":---")),
    ];
    for (at, (cells, line)) in text::cells(table).into_iter().zip(&table.lines).enumerate() {
        let label = escape::markdown(&text::label(line.label));
        lines.push(row(cells.into_iter(), Some(&(label + &notes::marks(table, at)))));
    }
    // One paragraph each: Markdown would join the lines.
    for (at, note) in table.notes.iter().enumerate() {
        lines.push(format!("\n{} {}", notes::mark(at), escape::markdown(&note.text)));
    }
    for line in caption::below(table) {
        lines.push(format!("\n{}", escape::markdown(&line)));
    }
    lines.join("\n") + "\n"
}

/// One line of a table.
pub(crate) fn row(cells: impl Iterator<Item = String>, end: Option<&str>) -> String {
    let cells: Vec<String> = cells.chain(end.map(str::to_owned)).collect();
    format!("| {} |", cells.join(" | "))
}
