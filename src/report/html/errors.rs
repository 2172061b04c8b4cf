//! Errors by label and code, and the steps that did not complete.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::pivot::{Column, Table};
use super::super::{chart, escape, notes};
use crate::summary::{Outcome, Summary};

/// More rows than these are folded away.
const OPEN_MAX: usize = 12;
/// Longest class of an error, characters.
const CLASS_MAX: usize = 40;
/// Longest message, characters.
const TEXT_MAX: usize = 200;
/// Columns of the table that a row names.
const NAMED_MAX: usize = 8;

/// Errors of one code, or steps that ended in one way.
struct Row {
    /// The code, else the class; none for steps that did not complete.
    what: Option<String>,
    count: u64,
    /// The first message, or how the steps ended.
    text: String,
    /// How many steps of each column.
    steps: BTreeMap<Column, usize>,
}

/// The table, where there is anything to tell.
pub(super) fn errors(table: &Table, labels: &[&str]) -> Markup {
    let lines = table.lines.iter().map(|line| {
        let steps: Vec<&Summary> = line.all().collect();
        (line.label, rows(&steps))
    });
    let lines: Vec<(&str, Vec<Row>)> = lines.filter(|(_, rows)| !rows.is_empty()).collect();
    let many = lines.iter().map(|(_, rows)| rows.len()).sum::<usize>() > OPEN_MAX;
    html! {
        @if !lines.is_empty() {
            details.print open[!many] {
                summary { "Errors, and steps that did not complete" }
                div.scroll { table {
                    thead { tr {
                        th.text { "label" } th.text { "error" } th { "count" }
                        th.text { "in steps at clients" } th.text { "first message" }
                    } }
                    tbody { @for (label, rows) in &lines { @for row in rows {
                        tr class={ "s" (chart::position(labels, label)) } {
                            th.text { (chart::shown(label)) }
                            td.text { (row.what.as_deref().unwrap_or("did not complete")) }
                            td { @if row.what.is_some() { (row.count) } }
                            td.text.long { (places(&row.steps)) }
                            td.text.long { (escape::markup(&row.text)) }
                        }
                    } } }
                } }
            }
        }
    }
}

/// In the order in which they were met, steps that did not complete last.
fn rows(steps: &[&Summary]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut add = |what: Option<String>, count: u64, text: String, step: &Summary| {
        // How a step ended is told by its text alone.
        let same = |row: &&mut Row| row.what == what && (what.is_some() || row.text == text);
        let at = step.cell();
        match rows.iter_mut().find(same) {
            Some(row) => {
                row.count = row.count.saturating_add(count);
                *row.steps.entry(at).or_default() += 1;
            }
            None => rows.push(Row { what, count, text, steps: BTreeMap::from([(at, 1)]) }),
        }
    };
    for step in steps {
        for error in &step.totals.errors {
            let class = || escape::markup(&escape::clip(&error.class, CLASS_MAX));
            let what = error.code.map_or_else(class, |code| code.to_string());
            add(Some(what), error.count, escape::clip(&error.message, TEXT_MAX), step);
        }
    }
    for step in steps.iter().filter(|step| step.outcome != Outcome::Completed) {
        add(None, 0, notes::ending(step), step);
    }
    rows
}

/// `8 (3 steps), 16`.
fn places(steps: &BTreeMap<Column, usize>) -> String {
    let one = |(column, count): (&Column, &usize)| match count {
        1 => column.to_string(),
        count => format!("{column} ({count} steps)"),
    };
    let mut named: Vec<String> = steps.iter().take(NAMED_MAX).map(one).collect();
    if steps.len() > NAMED_MAX {
        named.push(format!("and {} more", steps.len() - NAMED_MAX));
    }
    named.join(", ")
}
