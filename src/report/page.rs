//! What the layouts beside the plain table come to, and how it is written: lists and small
//! tables for people, records for files.

use serde_json::{Map, Value, json};

use super::json::SCHEMA;
use super::{Format, escape, markdown, spark};
use crate::error::{Error, Result};
use crate::summary::escape_hostile;

/// Blanks between two columns.
const GAP: &str = "  ";
/// A list's item begins so.
const BULLET: &str = "  • ";

/// One list or table of a layout.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// One line or several.
    pub(crate) title: Vec<String>,
    pub(crate) body: Body,
    /// Footnotes and conditions, a line each.
    pub(crate) below: Vec<String>,
    /// The same for files. All records of a layout have the same names.
    pub(crate) records: Vec<Record>,
}

/// What people see.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// A list.
    Bullets(Vec<String>),
    /// A table.
    Grid(Grid),
}

/// A table: numbers to the right, texts to the left.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grid {
    pub(crate) head: Vec<String>,
    /// Which columns are texts.
    pub(crate) texts: Vec<usize>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Rows below a line of text, on other numbers than the first.
    pub(crate) more: Option<(String, Vec<Vec<String>>)>,
}

/// Names and values of one row.
pub(crate) type Record = Vec<(&'static str, Field)>;

/// A value for files. Numbers are not rounded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field {
    Text(String),
    Number(Option<f64>),
    /// How many of something.
    Count(u64),
    Bool(bool),
    /// Names and values.
    Pairs(Vec<(String, String)>),
}

/// The pages in the format that is asked for.
pub(crate) fn render(pages: &[Page], layout: &str, format: Format) -> Result<String> {
    Ok(match format {
        Format::Text => text(pages, None),
        Format::Markdown => marked(pages),
        Format::Csv => csv(pages)?,
        Format::Json => object(pages, layout),
    })
}

/// As text for a terminal of so many columns, with bars beside the lists.
pub(crate) fn with_bars(pages: &[Page], columns: usize) -> String {
    text(pages, Some(columns))
}

/// As the plain tables: one list begins with its first item and is named below; everything
/// else has its name above.
fn text(pages: &[Page], terminal: Option<usize>) -> String {
    let listed = matches!(pages, [Page { body: Body::Bullets(_), .. }]);
    let shown = pages.iter().map(|page| {
        let body = match &page.body {
            Body::Bullets(items) => {
                let items = items.iter().map(|item| format!("{BULLET}{item}")).collect();
                match terminal {
                    Some(columns) => spark::beside(items, &bars(page), columns),
                    None => items,
                }
            }
            Body::Grid(grid) => grid.lines(),
        };
        let blank = (!page.below.is_empty() || listed).then(String::new);
        let mut lines: Vec<String> = Vec::new();
        if !listed {
            lines.extend(page.title.iter().cloned());
        }
        lines.extend(body.into_iter().chain(blank));
        if listed {
            lines.extend(page.title.iter().cloned());
        }
        lines.extend(page.below.iter().cloned());
        lines.join("\n") + "\n"
    });
    shown.collect::<Vec<String>>().join("\n")
}

/// A bar for each item of a list that has a number.
fn bars(page: &Page) -> Vec<String> {
    let value = |record: &Record| {
        let named = record.iter().find(|(name, _)| *name == "value");
        match named {
            Some((_, Field::Number(Some(value)))) if value.is_finite() => *value,
            _ => 0.0,
        }
    };
    let values: Vec<f64> = page.records.iter().map(value).collect();
    let max = values.iter().copied().fold(0.0, f64::max);
    values
        .iter()
        .map(|value| if max > 0.0 { spark::bar(*value, max) } else { String::new() })
        .collect()
}

impl Grid {
    fn all(&self) -> impl Iterator<Item = &Vec<String>> {
        let more = self.more.iter().flat_map(|(_, rows)| rows);
        std::iter::once(&self.head).chain(&self.rows).chain(more)
    }

    /// None of a table without columns.
    fn lines(&self) -> Vec<String> {
        if self.head.is_empty() {
            return Vec::new();
        }
        let width = |column: usize| {
            self.all().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max()
        };
        let widths: Vec<usize> = (0..self.head.len()).map(|c| width(c).unwrap_or(0)).collect();
        let line = |row: &Vec<String>| {
            let padded = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
                if self.texts.contains(&at) {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            padded.collect::<Vec<String>>().join(GAP).trim_end().to_owned()
        };
        let mut lines = vec![line(&self.head)];
        lines.extend(self.rows.iter().map(line));
        if let Some((rule, rows)) = &self.more {
            lines.push(rule.clone());
            lines.extend(rows.iter().map(line));
        }
        lines
    }

    fn marked(&self) -> Vec<String> {
        if self.head.is_empty() {
            return Vec::new();
        }
        let row = |cells: &Vec<String>| {
            markdown::row(cells.iter().map(|cell| escape::markdown(cell)), None)
        };
        let sides = (0..self.head.len())
            .map(|at| if self.texts.contains(&at) { ":---" } else { "---:" }.to_owned());
        let mut lines = vec![row(&self.head), markdown::row(sides, None)];
        lines.extend(self.rows.iter().map(row));
        if let Some((rule, rows)) = &self.more {
            lines.push(format!("\n{}\n", escape::markdown(rule)));
            let sides = (0..self.head.len())
                .map(|at| if self.texts.contains(&at) { ":---" } else { "---:" }.to_owned());
            lines.extend([row(&self.head), markdown::row(sides, None)]);
            lines.extend(rows.iter().map(row));
        }
        lines
    }
}

fn marked(pages: &[Page]) -> String {
    let shown = pages.iter().map(|page| {
        let title = page.title.iter().map(|line| escape::markdown(line));
        let mut lines =
            vec![format!("**{}**", title.collect::<Vec<_>>().join("; ")), String::new()];
        match &page.body {
            Body::Bullets(items) => {
                lines.extend(items.iter().map(|item| format!("- {}", escape::markdown(item))));
            }
            Body::Grid(grid) => lines.extend(grid.marked()),
        }
        // One paragraph each: Markdown would join the lines.
        lines.extend(page.below.iter().map(|line| format!("\n{}", escape::markdown(line))));
        lines.join("\n") + "\n"
    });
    shown.collect::<Vec<String>>().join("\n")
}

fn csv(pages: &[Page]) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| Error::failed(format!("CSV: {error}"));
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut records = pages.iter().flat_map(|page| &page.records).peekable();
    if let Some(first) = records.peek() {
        writer.write_record(first.iter().map(|(name, _)| name)).map_err(|e| failed(&e))?;
    }
    for record in records {
        writer.write_record(record.iter().map(|(_, field)| field.csv())).map_err(|e| failed(&e))?;
    }
    let bytes = writer.into_inner().map_err(|e| failed(&e))?;
    String::from_utf8(bytes).map_err(|e| failed(&e))
}

impl Field {
    fn csv(&self) -> String {
        match self {
            Field::Text(text) => escape::formula(text),
            Field::Number(number) => plain(*number).map_or_else(String::new, |n| n.to_string()),
            Field::Count(count) => count.to_string(),
            Field::Bool(is) => is.to_string(),
            Field::Pairs(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
                escape::formula(&pairs.join("; "))
            }
        }
    }

    fn json(&self) -> Value {
        match self {
            Field::Text(text) => Value::from(text.as_str()),
            Field::Number(number) => json!(plain(*number)),
            Field::Count(count) => json!(count),
            Field::Bool(is) => json!(is),
            Field::Pairs(pairs) => {
                let pairs = pairs.iter().map(|(k, v)| (k.clone(), Value::from(v.as_str())));
                Value::Object(pairs.collect::<Map<String, Value>>())
            }
        }
    }
}

/// Without the sign of a zero, which means nothing to a reader.
fn plain(number: Option<f64>) -> Option<f64> {
    number.map(|number| number + 0.0)
}

fn object(pages: &[Page], layout: &str) -> String {
    let rows: Vec<Value> = pages
        .iter()
        .flat_map(|page| &page.records)
        .map(|record| {
            let fields = record.iter().map(|(name, field)| ((*name).to_owned(), field.json()));
            Value::Object(fields.collect())
        })
        .collect();
    let tables: Vec<Value> =
        pages.iter().map(|page| json!({"title": page.title, "notes": page.below})).collect();
    let report = json!({
        "schema": SCHEMA,
        "layout": layout,
        "rows": rows,
        "tables": tables,
    });
    // Nothing here fails by itself: there is no error to report.
    let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
    text.push('\n');
    escape_hostile(text)
}
