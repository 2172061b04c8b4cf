//! Pages for programs: CSV, a row each, and JSON, `loadgen.report/1`.

use serde_json::{Map, Value as Json, json};

use super::escape;
use super::page::{Page, Sheet, Value};
use crate::error::{Error, Result};
use crate::summary::escape_hostile;

/// The `schema` value of a report.
pub(crate) const SCHEMA: &str = "loadgen.report/1";

/// Writes pages as CSV. All records of a layout have the same names.
pub(crate) fn csv(pages: &[Page], heads_always: bool) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| Error::failed(format!("CSV: {error}"));
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let filed = |sheet: &&Sheet| {
        sheet.heads.iter().any(|head| head.name.is_some())
            && (heads_always || !sheet.rows.is_empty())
    };
    let sheets = || pages.iter().flat_map(|page| &page.sheets).filter(filed);
    if let Some(first) = sheets().next() {
        let names = first.heads.iter().filter_map(|head| head.name);
        writer.write_record(names).map_err(|e| failed(&e))?;
    }
    for record in sheets().flat_map(Sheet::records) {
        let cells = record.into_iter().map(|(_, value)| cell(value));
        writer.write_record(cells).map_err(|e| failed(&e))?;
    }
    let bytes = writer.into_inner().map_err(|e| failed(&e))?;
    String::from_utf8(bytes).map_err(|e| failed(&e))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Unknown => String::new(),
        // Minus zero means nothing to a reader.
        Value::Number(number, _) => (number + 0.0).to_string(),
        Value::Label(text, _) => escape::formula(text),
        Value::Text(_) | Value::Pairs(_) => escape::formula(&value.text()),
        Value::Count(_) | Value::Bool(_) => value.text(),
    }
}

/// Writes pages as one JSON object.
pub(crate) fn json(pages: &[Page], layout: &str) -> String {
    let record = |record: Vec<(&str, &Value)>| {
        let fields = record.into_iter().map(|(name, value)| (name.to_owned(), field(value)));
        Json::Object(fields.collect())
    };
    let records = pages.iter().flat_map(|page| &page.sheets).flat_map(Sheet::records);
    let rows: Vec<Json> = records.filter(|record| !record.is_empty()).map(record).collect();
    let notes = |page: &Page| [&page.notes, &page.below].map(Vec::as_slice).concat();
    let tables: Vec<Json> =
        pages.iter().map(|page| json!({"title": page.title, "notes": notes(page)})).collect();
    pretty(&json!({"schema": SCHEMA, "layout": layout, "rows": rows, "tables": tables}))
}

/// Indented JSON without characters that a terminal would obey.
pub(crate) fn pretty(report: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(report).expect("maps with string keys, and no I/O");
    escape_hostile(text + "\n")
}

fn field(value: &Value) -> Json {
    match value {
        Value::Unknown => Json::Null,
        Value::Text(text) | Value::Label(text, _) => json!(text),
        Value::Number(number, _) => json!(number + 0.0),
        Value::Count(count) => json!(count),
        Value::Bool(is) => json!(is),
        Value::Pairs(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| (name.clone(), json!(value)));
            Json::Object(pairs.collect::<Map<String, Json>>())
        }
    }
}
