//! Times without service: how long, and how long until all was as before.

use super::super::escape::{self, clip, line};
use super::super::number::number;
use super::super::page::{Column, Page, Sheet, Value, both, filed, shown};
use super::super::table::Table;
use super::{label, place};
use crate::summary::{Outage, Summary};

/// Longest text of an error that a line shows, characters.
const TEXT_MAX: usize = 80;
const BELOW: [&str; 2] = [
    "at: the first error, from the start of the step's warm-up; gap: from the last success \
     to the next one, > where there was none",
    "to success, to 95 %: from the first error to the first success, and to the first \
     interval with 95 % of the earlier rate",
];

type Row<'a> = (&'a Summary, &'a Outage);

/// Returns the table of a workload; steps that did not complete are in it, too.
pub(super) fn page(table: &Table) -> Page {
    let mut steps: Vec<&Summary> = Vec::new();
    for of_label in &table.lines {
        let mut of_label: Vec<&Summary> = of_label.all().collect();
        of_label.sort_by(|one, other| one.started_at.cmp(&other.started_at));
        steps.extend(of_label);
    }
    let rows: Vec<Row> =
        steps.iter().flat_map(|step| step.outages.iter().map(|outage| (*step, outage))).collect();
    let with = if steps.len() == 1 { "step" } else { "steps" };
    let title = |found: String| {
        format!("{}: outages, {found} in {} {with}", escape::line(table.workload), steps.len())
    };
    if rows.is_empty() {
        return Page::of(title("none".to_owned()), Sheet::default(), Vec::new());
    }
    let title = title(rows.len().to_string());
    Page::of(title, Sheet::of(columns(table), rows), BELOW.map(str::to_owned).into())
}

fn columns<'a>(table: &'a Table) -> Vec<Column<'a, Row<'a>>> {
    let mut columns = vec![shown("clients", |(step, _): &Row| step.cell().to_string())];
    columns.extend(place(table, |(step, _): &Row| step.cell()));
    columns.extend([
        filed("label", |(step, _): &Row| step.label.as_str()),
        filed("step_id", |(step, _): &Row| step.step_id.as_str()),
        both("at s", "first_error_s", |(_, outage): &Row| (outage.first_error_s, 2)),
        filed("last_error_s", |(_, outage): &Row| outage.last_error_s),
        shown("gap s", |(_, outage): &Row| {
            let more = if outage.first_success_s.is_none() { "> " } else { "" };
            format!("{more}{}", number(outage.gap_s, 2))
        }),
        filed("gap_s", |(_, outage): &Row| outage.gap_s),
        both("to success s", "to_success_s", |(_, outage): &Row| {
            until(outage, outage.first_success_s)
        }),
        both("to 95 % s", "to_95_percent_s", |(_, outage): &Row| until(outage, outage.recovered_s)),
        filed("code", |(_, outage): &Row| outage.code.map(u64::from)),
        both("errors", "errors", |(_, outage): &Row| outage.errors),
        shown("label", |(step, _): &Row| label(&step.label)).left(),
        both("first error", "first_error", |(_, outage): &Row| {
            Value::Label(outage.first_error.clone(), clip(&line(&outage.first_error), TEXT_MAX))
        })
        .left(),
        filed("last_error", |(_, outage): &Row| outage.last_error.as_str()),
    ]);
    columns
}

/// From the first error to an instant.
fn until(outage: &Outage, instant_s: Option<f64>) -> Option<(f64, usize)> {
    instant_s.map(|s| ((s - outage.first_error_s).max(0.0), 2))
}
