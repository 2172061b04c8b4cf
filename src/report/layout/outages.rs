//! Times without service: how long, and how long until all was as before.

use super::super::escape::{clip, line};
use super::super::number::number;
use super::super::page::{Body, Field, Grid, Page, Record};
use super::super::pivot::Table;
use super::super::{escape, text};
use super::record;
use crate::summary::{Outage, Summary};

/// Longest text of an error that a line shows, characters.
const TEXT_MAX: usize = 80;
const HEAD: [&str; 8] =
    ["clients", "at s", "gap s", "to success s", "to 95 % s", "errors", "label", "first error"];

/// A table for each workload; steps that did not complete are in it, too.
pub(super) fn pages(tables: &[Table]) -> Vec<Page> {
    tables.iter().map(one).collect()
}

fn one(table: &Table) -> Page {
    let mut grid =
        Grid { head: HEAD.map(str::to_owned).to_vec(), texts: vec![6, 7], ..Grid::default() };
    let (mut records, mut steps) = (Vec::new(), 0);
    for of_label in &table.lines {
        let mut of_label: Vec<&Summary> =
            of_label.steps.iter().chain(&of_label.left_out).copied().collect();
        of_label.sort_by(|one, other| one.started_at.cmp(&other.started_at));
        steps += of_label.len();
        for step in of_label {
            for outage in &step.outages {
                grid.rows.push(row(step, outage));
                records.push(told(table, step, outage));
            }
        }
    }
    let (outages, with) = (records.len(), if steps == 1 { "step" } else { "steps" });
    let found = match outages {
        0 => format!("none in {steps} {with}"),
        n => format!("{n} in {steps} {with}"),
    };
    let mut below = Vec::new();
    if outages > 0 {
        below.push(
            "at: the first error, from the start of the step's warm-up; gap: from the last success \
             to the next one, > where there was none"
                .to_owned(),
        );
        below.push(
            "to success, to 95 %: from the first error to the first success, and to the first \
             interval with 95 % of the earlier rate"
                .to_owned(),
        );
    } else {
        grid.head.clear();
        grid.texts.clear();
    }
    Page {
        title: vec![format!("{}: outages, {found}", escape::line(table.workload))],
        body: Body::Grid(grid),
        below,
        records,
    }
}

/// From the first error to an instant.
fn until(outage: &Outage, instant_s: Option<f64>) -> Option<f64> {
    instant_s.map(|s| (s - outage.first_error_s).max(0.0))
}

fn row(step: &Summary, outage: &Outage) -> Vec<String> {
    let seconds = |s: Option<f64>| s.map_or_else(|| text::NOTHING.to_owned(), |s| number(s, 2));
    let more = if outage.first_success_s.is_none() { "> " } else { "" };
    vec![
        step.cell().to_string(),
        number(outage.first_error_s, 2),
        format!("{more}{}", number(outage.gap_s, 2)),
        seconds(until(outage, outage.first_success_s)),
        seconds(until(outage, outage.recovered_s)),
        outage.errors.to_string(),
        text::label(&step.label),
        clip(&line(&outage.first_error), TEXT_MAX),
    ]
}

fn told(table: &Table, step: &Summary, outage: &Outage) -> Record {
    let mut record = record(table, &step.cell());
    // The metric is that of the plain table.
    record.retain(|(name, _)| !matches!(*name, "metric" | "unit"));
    let number = |value: Option<f64>| Field::Number(value);
    record.extend([
        ("label", Field::Text(step.label.clone())),
        ("step_id", Field::Text(step.step_id.clone())),
        ("first_error_s", number(Some(outage.first_error_s))),
        ("last_error_s", number(Some(outage.last_error_s))),
        ("gap_s", number(Some(outage.gap_s))),
        ("to_success_s", number(until(outage, outage.first_success_s))),
        ("to_95_percent_s", number(until(outage, outage.recovered_s))),
        ("code", outage.code.map_or(Field::Number(None), |code| Field::Count(u64::from(code)))),
        ("errors", Field::Count(outage.errors)),
        ("first_error", Field::Text(outage.first_error.clone())),
        ("last_error", Field::Text(outage.last_error.clone())),
    ]);
    record
}
