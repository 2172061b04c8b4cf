//! Pages for people: aligned columns for a terminal or a mail, and GitHub's Markdown.

use super::escape;
use super::page::{Head, Page, Sheet};

/// Blanks between two columns.
const GAP: usize = 2;

/// Writes pages as text; with bars beside their rows on a terminal of so many columns.
pub(crate) fn text(pages: &[Page], terminal: Option<usize>) -> String {
    let one = |page: &Page| {
        let body = body(page, terminal);
        let below = [&page.notes, &page.below].map(Vec::as_slice).concat();
        let blank = (page.title_below || !below.is_empty()).then(String::new);
        let lines: Vec<String> = if page.title_below {
            let parts = [page.notes.clone(), page.title.clone(), page.below.clone()].concat();
            body.into_iter().chain(blank).chain(parts).collect()
        } else {
            page.title.iter().cloned().chain(body).chain(blank).chain(below).collect()
        };
        lines.join("\n") + "\n"
    };
    pages.iter().map(one).collect::<Vec<String>>().join("\n")
}

/// Returns the tables of a page. Those that follow each other have the same columns.
fn body(page: &Page, terminal: Option<usize>) -> Vec<String> {
    let shown = || page.sheets.iter().filter(|sheet| sheet.is_shown());
    let rows: Vec<Vec<String>> = shown().flat_map(Sheet::texts).collect();
    let Some(first) = shown().next() else { return Vec::new() };
    let heads: Vec<&Head> = first.shown().collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].as_str()).chain(heads[at].shown.as_deref());
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).zip(&heads).map(|((cell, width), head)| {
            let column = first.pitch.max(width + GAP);
            let cell =
                if head.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            format!("{cell:<column$}")
        });
        padded.collect::<String>().trim_end().to_owned()
    };
    let mut lines = Vec::new();
    let mut drawn = Vec::new();
    if !first.list {
        lines.push(line(&heads.iter().filter_map(|head| head.shown.clone()).collect::<Vec<_>>()));
        drawn.push(String::new());
    }
    for sheet in shown() {
        lines.extend(sheet.rule.clone());
        for cells in sheet.texts() {
            lines.push(if sheet.list { format!("  • {}", cells.concat()) } else { line(&cells) });
        }
        drawn.extend(sheet.drawn.iter().cloned());
    }
    match terminal {
        Some(columns) if drawn.len() == lines.len() => beside(lines, &drawn, columns),
        _ => lines,
    }
}

/// Writes pages as Markdown.
pub(crate) fn markdown(pages: &[Page]) -> String {
    let one = |page: &Page| {
        let title: Vec<String> = page.title.iter().map(|line| escape::markdown(line)).collect();
        let mut lines = vec![format!("**{}**", title.join("; ")), String::new()];
        for sheet in page.sheets.iter().filter(|sheet| sheet.is_shown()) {
            lines.extend(sheet.rule.iter().map(|rule| format!("\n{}\n", escape::markdown(rule))));
            lines.extend(marked(sheet));
        }
        // One paragraph each: Markdown would join the lines.
        let below = page.notes.iter().chain(&page.below);
        lines.extend(below.map(|line| format!("\n{}", escape::markdown(line))));
        lines.join("\n") + "\n"
    };
    pages.iter().map(one).collect::<Vec<String>>().join("\n")
}

fn marked(sheet: &Sheet) -> Vec<String> {
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let escaped = |cells: Vec<String>| cells.iter().map(|cell| escape::markdown(cell)).collect();
    if sheet.list {
        return sheet
            .texts()
            .map(|cells| format!("- {}", escape::markdown(&cells.concat())))
            .collect();
    }
    let heads = sheet.shown().filter_map(|head| head.shown.clone()).collect();
    let sides = sheet.shown().map(|head| if head.left { ":---" } else { "---:" }.to_owned());
    let head = [row(escaped(heads)), row(sides.collect())];
    head.into_iter().chain(sheet.texts().map(|cells| row(escaped(cells)))).collect()
}

/// Eighths of a cell, upward.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Eighths of a cell, to the right.
const PARTS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// Cells of the longest bar.
const BAR: f64 = 24.0;
/// Eighths of a cell.
const EIGHTHS: f64 = 8.0;

/// A column each value, from zero to the largest of all that it is to be seen beside; a blank
/// where there is none.
pub(crate) fn shape(values: impl IntoIterator<Item = Option<f64>>, max: f64) -> String {
    let level = |value: f64| {
        let eighths = (value / max * EIGHTHS).ceil().clamp(1.0, EIGHTHS);
        LEVELS.get((eighths as usize).checked_sub(1)?).copied()
    };
    let column = |value: Option<f64>| value.and_then(level).unwrap_or(' ');
    values.into_iter().map(column).collect::<String>().trim_end().to_owned()
}

/// Returns a bar as long as a value's share of the largest.
pub(crate) fn bar(value: f64, max: f64) -> String {
    let eighths = (value / max * BAR * EIGHTHS).round().clamp(0.0, BAR * EIGHTHS) as usize;
    let rest = (eighths % LEVELS.len()).checked_sub(1).and_then(|at| PARTS.get(at));
    "█".repeat(eighths / LEVELS.len()).chars().chain(rest.copied()).collect()
}

/// Lines with something drawn behind each, below each other; as they are where that is wider than
/// the terminal.
fn beside(lines: Vec<String>, drawn: &[String], columns: usize) -> Vec<String> {
    let width = |text: &String| text.chars().count();
    let widest = lines.iter().map(width).max().unwrap_or(0);
    let longest = drawn.iter().map(width).max().unwrap_or(0);
    if longest == 0 || widest + 2 + longest > columns {
        return lines;
    }
    let one =
        |(line, drawn): (String, &String)| format!("{line:widest$}  {drawn}").trim_end().to_owned();
    lines.into_iter().zip(drawn).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_grow_with_their_values() {
        let values = [Some(0.0), Some(50.0), None, Some(100.0), Some(f64::NAN)];
        assert_eq!(shape(values, 100.0), "▁▄ █");
        assert_eq!(shape([None, None], 100.0), "");
        assert_eq!(shape([Some(1.0)], 0.0), "█");
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(100.0, 100.0), "█".repeat(24));
        assert_eq!(bar(50.0, 100.0), "█".repeat(12));
        assert_eq!(bar(1.0, 48.0), "▌");
        assert_eq!(bar(0.0, 100.0), "");
        assert_eq!(bar(f64::INFINITY, 1.0).chars().count(), 24);
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let lines = || vec!["a".to_owned(), "größe".to_owned()];
        let drawn = ["▁█".to_owned(), "██".to_owned()];
        assert_eq!(beside(lines(), &drawn, 80), ["a      ▁█", "größe  ██"]);
        assert_eq!(beside(lines(), &drawn, 8), lines());
    }
}
