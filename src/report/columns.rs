//! Columns and rows of values, which every layout makes.

use serde_json::Value as Json;

use super::metric::Metric;
use super::value::PageValue;
use crate::terms::Cell;

#[derive(Debug, Clone, Default)]
pub(crate) struct Sheet {
    pub columns: Vec<PageColumn>,
    pub rows: usize,
    pub list: bool,
    /// A column of the text is at least so wide, blanks included.
    pub pitch: usize,
    /// Stands between the sheet before and this one, whose columns are the same.
    pub rule: Option<String>,
    /// Small bars for a terminal, one a row.
    pub drawn: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct PageColumn {
    pub head: Option<String>,
    pub name: Option<&'static str>,
    /// Texts stand to the left, numbers to the right.
    pub left: bool,
    pub values: Vec<PageValue>,
}

/// Rows that become a sheet, column by column: `shown` and `text` are for people, `filed` is for files,
/// `both` for both.
pub(crate) struct Rows<T> {
    rows: Vec<T>,
    columns: Vec<PageColumn>,
}

impl<T> Rows<T> {
    pub(crate) fn new(rows: impl IntoIterator<Item = T>) -> Rows<T> {
        Rows { rows: rows.into_iter().collect(), columns: Vec::new() }
    }

    fn column<V: Into<PageValue>>(mut self, of: PageColumn, get: impl Fn(&T) -> V) -> Self {
        let value = |row| {
            let PageValue { filed, shown } = get(row).into();
            // Files do not have it: of many rows it is large.
            PageValue { filed: of.name.map_or(Json::Null, |_| filed), shown }
        };
        let values: Vec<PageValue> = self.rows.iter().map(value).collect();
        let is_text = || values.iter().any(|value| value.filed.is_string());
        let left = of.left || of.name.is_some() && is_text();
        self.columns.push(PageColumn { left, values, ..of });
        self
    }

    pub(crate) fn shown<V: Into<PageValue>>(self, head: &str, get: impl Fn(&T) -> V) -> Self {
        self.column(PageColumn { head: Some(head.to_owned()), ..PageColumn::default() }, get)
    }

    pub(crate) fn text<V: Into<PageValue>>(self, head: &str, get: impl Fn(&T) -> V) -> Self {
        let head = Some(head.to_owned());
        self.column(PageColumn { head, left: true, ..PageColumn::default() }, get)
    }

    pub(crate) fn filed<V: Into<PageValue>>(
        self,
        name: &'static str,
        get: impl Fn(&T) -> V,
    ) -> Self {
        self.column(PageColumn { name: Some(name), ..PageColumn::default() }, get)
    }

    pub(crate) fn both<V>(self, head: &str, name: &'static str, get: impl Fn(&T) -> V) -> Self
    where
        V: Into<PageValue>,
    {
        let (head, name) = (Some(head.to_owned()), Some(name));
        self.column(PageColumn { head, name, ..PageColumn::default() }, get)
    }

    /// Adds what begins every record: the workload, and where in its table the row is.
    pub(crate) fn place(self, workload: &str, of: impl Fn(&T) -> Cell) -> Self {
        self.filed("workload", |_| workload)
            .filed("clients", |row| of(row).clients)
            .filed("rate", |row| of(row).per_s())
    }

    pub(crate) fn place_and_metric(
        self,
        workload: &str,
        metric: Metric,
        of: impl Fn(&T) -> Cell,
    ) -> Self {
        self.place(workload, &of)
            .filed("metric", |row| metric.in_loop(of(row).is_open()).to_string())
            .filed("unit", |_| metric.figure().unit)
    }

    pub(crate) fn sheet(self) -> Sheet {
        Sheet { rows: self.rows.len(), columns: self.columns, ..Sheet::default() }
    }
}

impl Sheet {
    pub(crate) fn visible_columns(&self) -> impl Iterator<Item = &PageColumn> {
        self.columns.iter().filter(|column| column.head.is_some())
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.columns.iter().filter_map(|column| column.head.clone()).collect()
    }

    pub(crate) fn file_columns(&self) -> impl Iterator<Item = (&'static str, &PageColumn)> {
        self.columns.iter().filter_map(|column| Some((column.name?, column)))
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = Vec<String>> {
        (0..self.rows)
            .map(|at| self.visible_columns().map(|of| of.values[at].shown.clone()).collect())
    }
}

pub(crate) const CLIENTS: &str = "concurrent clients";
