//! Writers of pages: aligned text, GitHub's Markdown, CSV, and JSON as `loadgen.report/1`.

use serde_json::{Map, Value as Json, json};

use super::page::{Page, Sheet, Value};
use super::{Format, escape};
use crate::summary::escape_hostile;

pub(crate) const SCHEMA: &str = "loadgen.report/1";
const GAP: usize = 2;

/// Writes pages; text has bars beside its rows on a terminal of so many columns.
pub(crate) fn write(
    pages: &[Page],
    layout: &str,
    format: Format,
    terminal: Option<usize>,
) -> String {
    let each = |one: &dyn Fn(&Page) -> Vec<String>| {
        let texts = pages.iter().map(|page| one(page).join("\n") + "\n");
        texts.collect::<Vec<String>>().join("\n")
    };
    match format {
        Format::Markdown => each(&markdown),
        Format::Csv => csv(pages, layout == "versions"),
        Format::Json => json(pages, layout),
        Format::Text => each(&|page| text(page, terminal)),
    }
}

fn text(page: &Page, terminal: Option<usize>) -> Vec<String> {
    let (mut lines, title, notes) = (table(page, terminal), page.title.clone(), &page.notes);
    let (before, after) = if page.title_below {
        (Vec::new(), [notes.clone(), title, page.below.clone()].concat())
    } else {
        (title, [notes.clone(), page.below.clone()].concat())
    };
    lines.extend((page.title_below || !after.is_empty()).then(String::new));
    [before, lines, after].concat()
}

/// Returns the tables of a page. Those that follow each other have the same columns.
fn table(page: &Page, terminal: Option<usize>) -> Vec<String> {
    let Some(first) = page.shown().next() else { return Vec::new() };
    // Each with what is drawn beside it.
    let mut rows: Vec<(Vec<String>, &str)> = Vec::new();
    rows.extend((!first.list).then(|| (first.heads(), "")));
    for sheet in page.shown() {
        rows.extend(sheet.rule.iter().map(|rule| (vec![rule.clone()], "")));
        let drawn = sheet.drawn.iter().map(String::as_str).chain(std::iter::repeat(""));
        rows.extend(sheet.texts().zip(drawn));
    }
    let cells = || rows.iter().filter(|(cells, _)| cells.len() == first.shown().count());
    let width = |at: usize| cells().map(|(cells, _)| cells[at].chars().count()).max().unwrap_or(0);
    let columns: Vec<(usize, bool)> =
        first.shown().enumerate().map(|(at, column)| (width(at), column.left)).collect();
    let line = |(cells, drawn): &(Vec<String>, &str)| {
        if first.list {
            return (format!("  • {}", cells.concat()), (*drawn).to_owned());
        }
        let padded = cells.iter().zip(&columns).map(|(cell, (width, left))| {
            let column = first.pitch.max(width + GAP);
            let cell = if *left { cell.clone() } else { format!("{cell:>width$}") };
            format!("{cell:<column$}")
        });
        (padded.collect::<String>().trim_end().to_owned(), (*drawn).to_owned())
    };
    let (lines, drawn): (Vec<String>, Vec<String>) = rows.iter().map(line).unzip();
    beside(lines, &drawn, terminal.unwrap_or(0))
}

fn markdown(page: &Page) -> Vec<String> {
    let escaped = |text: &String| escape::markdown(text);
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let title: Vec<String> = page.title.iter().map(escaped).collect();
    let mut lines = vec![format!("**{}**", title.join("; ")), String::new()];
    for sheet in page.shown() {
        lines.extend(sheet.rule.iter().map(|rule| format!("\n{}\n", escaped(rule))));
        if sheet.list {
            lines.extend(sheet.texts().map(|cells| format!("- {}", escaped(&cells.concat()))));
            continue;
        }
        let sides = sheet.shown().map(|column| if column.left { ":---" } else { "---:" });
        lines.push(row(sheet.heads().iter().map(escaped).collect()));
        lines.push(row(sides.map(str::to_owned).collect()));
        lines.extend(sheet.texts().map(|cells| row(cells.iter().map(escaped).collect())));
    }
    // One paragraph each: Markdown would join the lines.
    lines.extend(page.remarks().map(|line| format!("\n{}", escaped(line))));
    lines
}

/// All records of a layout have the same names.
fn csv(pages: &[Page], heads_always: bool) -> String {
    let filed = |sheet: &&Sheet| sheet.filed().next().is_some() && (heads_always || sheet.rows > 0);
    let sheets: Vec<&Sheet> = pages.iter().flat_map(|page| &page.sheets).filter(filed).collect();
    let names =
        sheets.first().map(|sheet| sheet.filed().map(|(name, _)| name.to_owned()).collect());
    let records = sheets.iter().flat_map(|sheet| {
        let row = |row| sheet.filed().map(|(_, column)| plain(&column.values[row])).collect();
        (0..sheet.rows).map(row)
    });
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for record in names.into_iter().chain(records) {
        let record: Vec<String> = record;
        writer.write_record(record).expect("as many values as names, in memory");
    }
    String::from_utf8(writer.into_inner().expect("memory")).expect("text")
}

fn plain(value: &Value) -> String {
    match &value.filed {
        Json::String(text) => escape::formula(text),
        Json::Object(_) => escape::formula(&value.shown),
        Json::Number(number) if number.is_f64() => number.as_f64().expect("it is").to_string(),
        // JSON knows no infinity.
        Json::Null if value.shown == "-" => String::new(),
        _ => value.shown.clone(),
    }
}

fn json(pages: &[Page], layout: &str) -> String {
    let rows = pages.iter().flat_map(|page| &page.sheets).flat_map(|sheet| {
        let record = |row: usize| {
            let filed = sheet.filed();
            let fields = filed.map(|(name, of)| (name.to_owned(), of.values[row].filed.clone()));
            fields.collect::<Map<_, _>>()
        };
        (0..sheet.rows).map(record).filter(|record| !record.is_empty())
    });
    let rows: Vec<Map<_, _>> = rows.collect();
    let table =
        |page: &Page| json!({"title": page.title, "notes": page.remarks().collect::<Vec<_>>()});
    let tables: Vec<Json> = pages.iter().map(table).collect();
    pretty(&json!({"schema": SCHEMA, "layout": layout, "rows": rows, "tables": tables}))
}

/// Indented JSON without characters that a terminal would obey.
pub(crate) fn pretty(report: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(report).expect("maps with string keys, and no I/O");
    escape_hostile(text + "\n")
}

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Eighths of a cell, to the right; nothing first.
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Cells of the longest bar.
const BAR: f64 = 24.0;

/// A column each value, from zero to the largest of all that it is to be seen beside; a blank
/// where there is none.
pub(crate) fn shape(values: impl IntoIterator<Item = Option<f64>>, max: f64) -> String {
    let level = |value: f64| {
        let eighths = (value / max * 8.0).ceil().clamp(1.0, 8.0);
        LEVELS.get((eighths as usize).checked_sub(1)?).copied()
    };
    let column = |value: Option<f64>| value.and_then(level).unwrap_or(' ');
    values.into_iter().map(column).collect::<String>().trim_end().to_owned()
}

/// A bar of a value; nothing of none, or where the largest is none.
pub(crate) fn bar(value: Option<f64>, max: f64) -> String {
    let part = value.filter(|_| max > 0.0).map_or(0.0, |value| value / max);
    let eighths = (part * BAR * 8.0).round().clamp(0.0, BAR * 8.0) as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// Lines with something drawn behind each, below each other; as they are where that is wider than
/// the terminal.
fn beside(lines: Vec<String>, drawn: &[String], columns: usize) -> Vec<String> {
    let widest =
        |texts: &[String]| texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let (width, longest) = (widest(&lines), widest(drawn));
    if longest == 0 || width + GAP + longest > columns {
        return lines;
    }
    let one =
        |(line, drawn): (String, &String)| format!("{line:width$}  {drawn}").trim_end().to_owned();
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
        assert_eq!(bar(Some(100.0), 100.0), "█".repeat(24));
        assert_eq!(bar(Some(50.0), 100.0), "█".repeat(12));
        assert_eq!(bar(Some(1.0), 48.0), "▌");
        assert_eq!(bar(Some(0.0), 100.0), "");
        assert_eq!([bar(None, 1.0), bar(Some(0.0), 0.0)], ["", ""]);
        assert_eq!(bar(Some(f64::INFINITY), 1.0).chars().count(), 24);
    }

    #[test]
    fn drawings_are_left_out_when_they_do_not_fit() {
        let lines = || vec!["a".to_owned(), "größe".to_owned()];
        let drawn = ["▁█".to_owned(), "██".to_owned()];
        assert_eq!(beside(lines(), &drawn, 80), ["a      ▁█", "größe  ██"]);
        assert_eq!(beside(lines(), &drawn, 8), lines());
    }
}
