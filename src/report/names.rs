//! Names of labels, cells and values, as people see them.

use std::collections::BTreeSet;

use super::escape::line;
use crate::error::{VALUE_MAX, clip, told_apart};
use crate::judge::Difference;
use crate::terms::{self, Cell};

pub(super) const NAMED_MAX: usize = 6;

/// Returns a label as one safe line; names an empty one.
pub(crate) fn label(label: &str) -> String {
    if label.trim().is_empty() { "(no label)".to_owned() } else { line(label) }
}

pub(super) fn instant(text: &str) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(instant) => instant.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => clip(text, VALUE_MAX),
    }
}

/// Returns `8 clients`, or `clients 8, rate 100/s`.
pub(crate) fn at_clients(column: &Cell) -> String {
    if column.is_open() { column.to_string() } else { terms::clients(column.clients) }
}

pub(crate) fn cell_named(workload: &str, column: &Cell) -> String {
    format!("{} at {}", line(workload), at_clients(column))
}

pub(crate) fn listed<T: ToString>(items: &BTreeSet<T>, separator: &str) -> String {
    items.iter().map(T::to_string).collect::<Vec<String>>().join(separator)
}

pub(crate) fn both_values(difference: &Difference) -> String {
    let (one, other) = told_apart(&difference.first, &difference.second);
    format!("{} {one} and {other}", clip(&difference.name, VALUE_MAX))
}

pub(crate) fn list_some(items: Vec<String>, joined: &str) -> String {
    terms::named(items, NAMED_MAX, joined)
}

/// Returns `NAME OTHER instead of ONE`.
pub(super) fn value_instead(difference: &Difference) -> String {
    let (one, other) = told_apart(&difference.first, &difference.second);
    format!("{} {other} instead of {one}", clip(&difference.name, VALUE_MAX))
}
