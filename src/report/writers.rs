//! Writes pages: aligned text, GitHub's Markdown, CSV, and JSON as `loadgen.report/1`.

use serde_json::{Value as Json, json};

use super::bars::{GAP, beside};
use super::columns::{CLIENTS, Sheet};
use super::json::{SCHEMA, pretty};
use super::options::Notes;
use super::page::{Page, records};
use super::value::PageValue;
use super::{ci, escape};
use crate::terms::Format;

/// Writes pages and the lines below all of them; text has bars beside its rows on a terminal of so many columns.
pub(crate) fn write(
    pages: &[Page],
    layout: &str,
    format: Format,
    width: Option<usize>,
    (notes, lines): (&Notes, &[String]),
) -> String {
    let each = |one: &dyn Fn(&Page, &[String]) -> Vec<String>| {
        let text = |(at, page): (usize, &Page)| {
            let below = page.list_below(notes, pages.get(at + 1));
            one(page, &below).join("\n") + "\n"
        };
        pages.iter().enumerate().map(text).collect::<Vec<String>>().join("\n")
    };
    match format {
        Format::Markdown => {
            let lines = lines.iter().map(|line| format!("\n{}\n", escape::paragraph(line)));
            each(&markdown) + &lines.collect::<String>()
        }
        Format::Csv => csv(pages, layout == "versions"),
        Format::Json => json(pages, layout),
        Format::Junit | Format::Bencher | Format::Gha => ci::write(pages, format),
        Format::Text => {
            let bare = |page: &Page| {
                !page.title_below && page.below.is_empty() && page.conditions.short.is_empty()
            };
            let apart = !lines.is_empty() && pages.last().is_some_and(bare);
            let lines = lines.iter().map(|line| format!("{line}\n"));
            let gap = if apart { "\n" } else { "" };
            each(&|page, below| text(page, width, below)) + gap + &lines.collect::<String>()
        }
    }
}

fn text(page: &Page, terminal: Option<usize>, below: &[String]) -> Vec<String> {
    let (before, between): (&[String], &[String]) =
        if page.title_below { (&[], &page.title) } else { (&page.title, &[]) };
    let after = [between, below].concat();
    let gap = if after.is_empty() { Vec::new() } else { vec![String::new()] };
    [before, &table(page, terminal), &gap, &after].concat()
}

/// Returns the tables of a page. Those that follow each other have the same columns.
fn table(page: &Page, terminal: Option<usize>) -> Vec<String> {
    let Some(first) = page.visible_sheets().next() else { return Vec::new() };
    // Each with what is drawn beside it.
    let mut rows: Vec<(Vec<String>, &str)> = Vec::new();
    rows.extend((!first.list).then(|| (first.heads(), "")));
    for sheet in page.visible_sheets() {
        rows.extend(sheet.rule.iter().map(|rule| (vec![rule.clone()], "")));
        let drawn = sheet.drawn.iter().map(String::as_str).chain(std::iter::repeat(""));
        rows.extend(sheet.texts().zip(drawn));
    }
    let cells = || rows.iter().filter(|(cells, _)| cells.len() == first.visible_columns().count());
    let width = |at: usize| cells().map(|(cells, _)| cells[at].chars().count()).max().unwrap_or(0);
    let columns: Vec<(usize, bool)> =
        first.visible_columns().enumerate().map(|(at, column)| (width(at), column.left)).collect();
    let line = |(cells, drawn): &(Vec<String>, &str)| {
        if first.list {
            return (format!("  • {}", cells.concat()), (*drawn).to_owned());
        }
        let padded = cells.iter().zip(&columns).map(|(cell, (width, left))| {
            let (length, column) = (cell.chars().count(), first.pitch.max(width + GAP));
            let before = if *left { 0 } else { width.saturating_sub(length) };
            let after = column.saturating_sub(before + length);
            // The width of a format ends at 65,535; a label in a file does not.
            format!("{}{cell}{}", " ".repeat(before), " ".repeat(after))
        });
        (padded.collect::<String>().trim_end().to_owned(), (*drawn).to_owned())
    };
    let (lines, drawn): (Vec<String>, Vec<String>) = rows.iter().map(line).unzip();
    beside(lines, &drawn, terminal.unwrap_or(0))
}

fn markdown(page: &Page, below: &[String]) -> Vec<String> {
    let escaped = |text: &String| escape::markdown(text);
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let title: Vec<String> = page.title.iter().map(escaped).collect();
    let across =
        page.visible_sheets().any(|sheet| sheet.heads().iter().any(|head| head == CLIENTS));
    let across = if across { ", by concurrent clients" } else { "" };
    let mut lines = vec![format!("**{}{across}**", title.join("; ")), String::new()];
    for sheet in page.visible_sheets() {
        lines.extend(sheet.rule.iter().map(|rule| format!("\n{}\n", escaped(rule))));
        if sheet.list {
            lines.extend(sheet.texts().map(|cells| format!("- {}", escaped(&cells.concat()))));
            continue;
        }
        let sides = sheet.visible_columns().map(|column| if column.left { ":---" } else { "---:" });
        let label = |head: String| if head == CLIENTS { "label".to_owned() } else { head };
        lines.push(row(sheet.heads().into_iter().map(|head| escaped(&label(head))).collect()));
        lines.push(row(sides.map(str::to_owned).collect()));
        lines.extend(sheet.texts().map(|cells| row(cells.iter().map(escaped).collect())));
    }
    // One paragraph each: Markdown would join the lines.
    lines.extend(below.iter().map(|line| format!("\n{}", escape::paragraph(line))));
    lines
}

/// All records of a layout have the same names.
fn csv(pages: &[Page], heads_always: bool) -> String {
    let filed =
        |sheet: &&Sheet| sheet.file_columns().next().is_some() && (heads_always || sheet.rows > 0);
    let sheets: Vec<&Sheet> = pages.iter().flat_map(|page| &page.sheets).filter(filed).collect();
    let names =
        sheets.iter().take(1).map(|of| of.file_columns().map(|of| of.0.to_owned()).collect());
    let records = sheets.iter().flat_map(|sheet| {
        let row =
            |row| sheet.file_columns().map(|(_, column)| plain(&column.values[row])).collect();
        (0..sheet.rows).map(row)
    });
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    names.chain(records).for_each(|record: Vec<String>| {
        writer.write_record(record).expect("as many values as names, in memory");
    });
    String::from_utf8(writer.into_inner().expect("memory")).expect("text")
}

fn plain(value: &PageValue) -> String {
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
    let notes = |page: &Page| page.list_below(&Notes::All, None);
    let table = |page: &Page| json!({"title": page.title, "notes": notes(page)});
    let tables: Vec<Json> = pages.iter().map(table).collect();
    pretty(&json!({"schema": SCHEMA, "layout": layout, "rows": records(pages), "tables": tables}))
}
