//! Pages: columns and rows of values, which every layout makes; and their writers: aligned text, GitHub's
//! Markdown, CSV, and JSON as `loadgen.report/1`.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use super::table::Table;
use super::{Format, Notes, ci, escape, notes};
use crate::summary::escape_hostile;
use crate::terms::Cell;

/// One or more tables under a title. People see the columns with a head, files those with a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    pub title: Vec<String>,
    /// The title follows the table in text.
    pub title_below: bool,
    pub sheets: Vec<Sheet>,
    pub below: Vec<String>,
    pub conditions: Conditions,
    pub notes: Vec<String>,
}

/// The conditions of a page's tables, and the same with all that `--notes` shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    pub short: Vec<String>,
    pub full: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Sheet {
    pub columns: Vec<Column>,
    pub rows: usize,
    /// Shows its only column as a list.
    pub list: bool,
    /// A column of the text is at least so wide, blanks included.
    pub pitch: usize,
    /// Stands between the sheet before and this one, whose columns are the same.
    pub rule: Option<String>,
    /// Small bars for a terminal, one a row.
    pub drawn: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Column {
    pub head: Option<String>,
    pub name: Option<&'static str>,
    /// Texts stand to the left, numbers to the right.
    pub left: bool,
    pub values: Vec<Value>,
}

/// A value of one cell.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// As files have it, in full; nothing that was not measured, or is not to be known.
    pub filed: Json,
    /// As people see it.
    pub shown: String,
}

/// A part of one, which people see in percent.
pub(crate) struct Share(pub f64);

/// Rows that become a sheet, column by column: each says how a row gets its value.
pub(crate) struct Rows<T> {
    rows: Vec<T>,
    columns: Vec<Column>,
}

impl<T> Rows<T> {
    pub(crate) fn new(rows: impl IntoIterator<Item = T>) -> Rows<T> {
        Rows { rows: rows.into_iter().collect(), columns: Vec::new() }
    }

    fn column<V: Into<Value>>(mut self, of: Column, get: impl Fn(&T) -> V) -> Self {
        let value = |row| {
            let Value { filed, shown } = get(row).into();
            // Files do not have it: of many rows it is large.
            Value { filed: of.name.map_or(Json::Null, |_| filed), shown }
        };
        let values: Vec<Value> = self.rows.iter().map(value).collect();
        let is_text = || values.iter().any(|value| value.filed.is_string());
        let left = of.left || of.name.is_some() && is_text();
        self.columns.push(Column { left, values, ..of });
        self
    }

    pub(crate) fn shown<V: Into<Value>>(self, head: &str, get: impl Fn(&T) -> V) -> Self {
        self.column(Column { head: Some(head.to_owned()), ..Column::default() }, get)
    }

    pub(crate) fn text<V: Into<Value>>(self, head: &str, get: impl Fn(&T) -> V) -> Self {
        let head = Some(head.to_owned());
        self.column(Column { head, left: true, ..Column::default() }, get)
    }

    pub(crate) fn filed<V: Into<Value>>(self, name: &'static str, get: impl Fn(&T) -> V) -> Self {
        self.column(Column { name: Some(name), ..Column::default() }, get)
    }

    pub(crate) fn both<V>(self, head: &str, name: &'static str, get: impl Fn(&T) -> V) -> Self
    where
        V: Into<Value>,
    {
        let (head, name) = (Some(head.to_owned()), Some(name));
        self.column(Column { head, name, ..Column::default() }, get)
    }

    /// Adds what begins every record: the workload, and where in its table the row is.
    pub(crate) fn place(self, table: &Table, of: impl Fn(&T) -> Cell) -> Self {
        self.filed("workload", |_| table.workload)
            .filed("clients", |row| of(row).clients)
            .filed("rate", |row| of(row).per_s())
    }

    pub(crate) fn place_and_metric(self, table: &Table, of: impl Fn(&T) -> Cell) -> Self {
        self.place(table, &of)
            .filed("metric", |row| table.metric_at(&of(row)).to_string())
            .filed("unit", |_| table.metric.figure().unit)
    }

    pub(crate) fn sheet(self) -> Sheet {
        Sheet { rows: self.rows.len(), columns: self.columns, ..Sheet::default() }
    }
}

impl Sheet {
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.head.is_some())
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.columns.iter().filter_map(|column| column.head.clone()).collect()
    }

    pub(crate) fn filed(&self) -> impl Iterator<Item = (&'static str, &Column)> {
        self.columns.iter().filter_map(|column| Some((column.name?, column)))
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = Vec<String>> {
        (0..self.rows).map(|at| self.shown().map(|of| of.values[at].shown.clone()).collect())
    }
}

impl Page {
    pub(crate) fn of(title: String, sheet: Sheet, below: Vec<String>) -> Page {
        Page { title: vec![title], sheets: vec![sheet], below, ..Page::default() }
    }

    /// Adds what stands around each table: its conditions and notes.
    pub(crate) fn footed(mut self, table: &Table) -> Page {
        self.below.extend(notes::below(table));
        self.conditions.short.extend(notes::conditions_in_short(table));
        self.conditions.full.extend(notes::conditions_in_full(table));
        self.notes.extend(notes::in_full(&table.notes));
        self
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = &Sheet> {
        self.sheets.iter().filter(|sheet| sheet.shown().next().is_some())
    }

    /// Returns all that can be said below a page.
    fn in_full(&self) -> Vec<String> {
        [&self.notes[..], &self.conditions.full, &self.below].concat()
    }

    /// Returns what is said below a page in short: what the next one has, too, is said there.
    fn in_short(&self, next: Option<&Page>) -> Vec<String> {
        let new = |line: &&String| {
            let later =
                |next: &Page| next.below.contains(line) || next.conditions.short.contains(line);
            !next.is_some_and(later)
        };
        self.below.iter().chain(&self.conditions.short).filter(new).cloned().collect()
    }
}

fn value(filed: impl Into<Json>, shown: impl Into<String>) -> Value {
    Value { filed: filed.into(), shown: shown.into() }
}

macro_rules! values {
    ($($of:ty: $value:expr;)*) => {
        $(impl From<$of> for Value { fn from(of: $of) -> Value { $value(of) } })*
    };
}

values! {
    &str: |text: &str| value(text, text);
    String: |text: String| value(text.as_str(), text.clone());
    // A text for files, and how people see it.
    (String, String): |(text, shown): (String, String)| value(text, shown);
    // A number for files, and how people see it.
    (f64, String): |(of, shown)| value(of + 0.0, shown);
    // With so many decimals for people; and for files, which need none.
    (f64, usize): |(of, decimals)| value(of + 0.0, number(of, decimals));
    f64: |of| Value::from((of, 0));
    Share: |of: Share| value(of.0, format!("{:.0}%", of.0 * 100.0));
    u64: |count: u64| value(count, count.to_string());
    u32: |count: u32| value(count, count.to_string());
    usize: |count: usize| value(count, count.to_string());
    bool: |is: bool| value(is, is.to_string());
    Vec<(String, String)>: |pairs: Vec<(String, String)>| {
        let shown: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
        value(pairs.into_iter().collect::<Json>(), shown.join("; "))
    };
}

impl<V: Into<Value>> From<Option<V>> for Value {
    fn from(of: Option<V>) -> Value {
        of.map_or_else(|| value((), "-"), Into::into)
    }
}

/// From here on digits say nothing and make a table unreadable.
const PLAIN_MAX: f64 = 1e15;

pub(crate) fn number(value: f64, decimals: usize) -> String {
    if value.abs() >= PLAIN_MAX {
        return format!("{value:.2e}");
    }
    let text = format!("{value:.decimals$}");
    // Minus nothing reads like a fault.
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_owned(),
        _ => text,
    }
}

/// Counts the limits that the smallest of some values, but for zeros, stays below.
fn below(values: impl IntoIterator<Item = f64>, limits: &[f64]) -> usize {
    let values = values.into_iter().map(f64::abs);
    let least = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    limits.iter().filter(|limit| least < **limit).count()
}

/// Digits after the point that give the smallest of the values three significant digits: one
/// number for a whole table, so that its points stand below each other.
pub(crate) fn decimals(values: impl IntoIterator<Item = f64>) -> usize {
    below(values, &[100.0, 10.0, 1.0])
}

/// Digits after the point for ratios: two, as `0.87`, and more where two would hide one.
pub(crate) fn ratio_decimals(values: impl IntoIterator<Item = f64>) -> usize {
    2 + below(values, &[0.1, 0.01])
}

pub(crate) const SCHEMA: &str = "loadgen.report/1";
/// What the heads of a plain table are, beside them in text.
pub(crate) const CLIENTS: &str = "concurrent clients";
const GAP: usize = 2;

/// Writes pages and the lines below all of them; text has bars beside its rows on a terminal of so
/// many columns.
pub(crate) fn write(
    pages: &[Page],
    layout: &str,
    format: Format,
    width: Option<usize>,
    (notes, lines): (&Notes, &[String]),
) -> String {
    let each = |one: &dyn Fn(&Page, &[String]) -> Vec<String>| {
        let text = |(at, page): (usize, &Page)| {
            let below = match notes {
                Notes::All => page.in_full(),
                Notes::Brief | Notes::Later => page.in_short(pages.get(at + 1)),
            };
            one(page, &below).join("\n") + "\n"
        };
        pages.iter().enumerate().map(text).collect::<Vec<String>>().join("\n")
    };
    match format {
        Format::Markdown => {
            let lines = lines.iter().map(|line| format!("\n{}\n", escape::markdown(line)));
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

fn markdown(page: &Page, below: &[String]) -> Vec<String> {
    let escaped = |text: &String| escape::markdown(text);
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let title: Vec<String> = page.title.iter().map(escaped).collect();
    let across = page.shown().any(|sheet| sheet.heads().iter().any(|head| head == CLIENTS));
    let across = if across { ", by concurrent clients" } else { "" };
    let mut lines = vec![format!("**{}{across}**", title.join("; ")), String::new()];
    for sheet in page.shown() {
        lines.extend(sheet.rule.iter().map(|rule| format!("\n{}\n", escaped(rule))));
        if sheet.list {
            lines.extend(sheet.texts().map(|cells| format!("- {}", escaped(&cells.concat()))));
            continue;
        }
        let sides = sheet.shown().map(|column| if column.left { ":---" } else { "---:" });
        let label = |head: String| if head == CLIENTS { "label".to_owned() } else { head };
        lines.push(row(sheet.heads().into_iter().map(|head| escaped(&label(head))).collect()));
        lines.push(row(sides.map(str::to_owned).collect()));
        lines.extend(sheet.texts().map(|cells| row(cells.iter().map(escaped).collect())));
    }
    // One paragraph each: Markdown would join the lines.
    lines.extend(below.iter().map(|line| format!("\n{}", escaped(line))));
    lines
}

/// All records of a layout have the same names.
fn csv(pages: &[Page], heads_always: bool) -> String {
    let filed = |sheet: &&Sheet| sheet.filed().next().is_some() && (heads_always || sheet.rows > 0);
    let sheets: Vec<&Sheet> = pages.iter().flat_map(|page| &page.sheets).filter(filed).collect();
    let names = sheets.iter().take(1).map(|of| of.filed().map(|of| of.0.to_owned()).collect());
    let records = sheets.iter().flat_map(|sheet| {
        let row = |row| sheet.filed().map(|(_, column)| plain(&column.values[row])).collect();
        (0..sheet.rows).map(row)
    });
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    names.chain(records).for_each(|record: Vec<String>| {
        writer.write_record(record).expect("as many values as names, in memory");
    });
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

/// Returns the rows of all pages, with the names that files have for their columns.
pub(crate) fn records(pages: &[Page]) -> Vec<Map<String, Json>> {
    let records = pages.iter().flat_map(|page| &page.sheets).flat_map(|sheet| {
        let record = |row: usize| {
            let filed = sheet.filed();
            let fields = filed.map(|(name, of)| (name.to_owned(), of.values[row].filed.clone()));
            fields.collect::<Map<_, _>>()
        };
        (0..sheet.rows).map(record).filter(|record| !record.is_empty())
    });
    records.collect()
}

fn json(pages: &[Page], layout: &str) -> String {
    let rows = records(pages);
    let table = |of: &Page| json!({"title": of.title, "notes": of.in_full()});
    let tables: Vec<Json> = pages.iter().map(table).collect();
    pretty(&json!({"schema": SCHEMA, "layout": layout, "rows": rows, "tables": tables}))
}

/// JSON whose fields stay in their order.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Node {
    Leaf(serde_json::Value),
    List(Vec<Node>),
    Fields(#[serde(serialize_with = "in_order")] Vec<(&'static str, Node)>),
}

fn in_order<S: Serializer>(fields: &[(&str, Node)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(fields.iter().map(|(name, node)| (name, node)))
}

impl<T: Into<serde_json::Value>> From<T> for Node {
    fn from(value: T) -> Node {
        Node::Leaf(value.into())
    }
}

pub(crate) fn nodes<I: IntoIterator, N: Into<Node>>(of: I, node: impl Fn(I::Item) -> N) -> Node {
    Node::List(of.into_iter().map(|item| node(item).into()).collect())
}

/// Indented JSON without characters that a terminal would obey.
pub(crate) fn pretty(report: &impl Serialize) -> String {
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
    let widest = |of: &[String]| of.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let (width, longest) = (widest(&lines), widest(drawn));
    if longest == 0 || width + GAP + longest > columns {
        return lines;
    }
    let both = lines.iter().zip(drawn).map(|(line, drawn)| format!("{line:width$}  {drawn}"));
    both.map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_give_the_smallest_three_digits() {
        assert_eq!(decimals([1234.5, 100.0]), 0);
        assert_eq!(decimals([1234.5, 42.0, 0.0]), 1);
        assert_eq!(decimals([7.25]), 2);
        assert_eq!(decimals([0.02]), 3);
        assert_eq!(decimals([]), 0);
    }

    #[test]
    fn ratios_keep_digits_when_they_are_small() {
        assert_eq!(ratio_decimals([1.0, 0.87]), 2);
        assert_eq!(ratio_decimals([1.0, 0.087]), 3);
        assert_eq!(ratio_decimals([0.001]), 4);
    }

    #[test]
    fn numbers_stay_short_when_they_are_absurd() {
        assert_eq!(number(26747.4, 0), "26747");
        assert_eq!(number(-0.2, 0), "0");
        assert_eq!(number(-0.0, 2), "0.00");
        assert_eq!(number(-3.0, 0), "-3");
        assert_eq!(number(f64::MAX, 0), "1.80e308");
        assert_eq!(number(f64::INFINITY, 2), "inf");
    }

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
