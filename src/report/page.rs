//! Pages: columns and rows of values, which every layout makes and every writer takes.

use serde_json::Value as Json;

use super::table::Table;
use crate::terms::Cell;

/// One or more tables under a title. People see the columns with a head, files those with a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    pub title: Vec<String>,
    /// The title follows the table in text.
    pub title_below: bool,
    pub sheets: Vec<Sheet>,
    pub notes: Vec<String>,
    pub below: Vec<String>,
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
        let values: Vec<Value> = self.rows.iter().map(|row| get(row).into()).collect();
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

    pub(crate) fn both<V: Into<Value>>(
        self,
        head: &str,
        name: &'static str,
        get: impl Fn(&T) -> V,
    ) -> Self {
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
            .filed("unit", |_| table.metric.unit())
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
        (0..self.rows)
            .map(|row| self.shown().map(|column| column.values[row].shown.clone()).collect())
    }
}

impl Page {
    pub(crate) fn of(title: String, sheet: Sheet, below: Vec<String>) -> Page {
        Page { title: vec![title], sheets: vec![sheet], below, ..Page::default() }
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = &Sheet> {
        self.sheets.iter().filter(|sheet| sheet.shown().next().is_some())
    }

    pub(crate) fn remarks(&self) -> impl Iterator<Item = &String> {
        self.notes.iter().chain(&self.below)
    }
}

fn value(filed: impl Into<Json>, shown: impl Into<String>) -> Value {
    Value { filed: filed.into(), shown: shown.into() }
}

macro_rules! values {
    ($($of:ty: $value:expr;)*) => {
        $(impl From<$of> for Value {
            fn from(of: $of) -> Value {
                $value(of)
            }
        })*
    };
}

values! {
    &str: |text: &str| value(text, text);
    String: |text: String| value(text.as_str(), text.clone());
    // A text for files, and how people see it.
    (String, String): |(text, shown): (String, String)| value(text, shown);
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
}
