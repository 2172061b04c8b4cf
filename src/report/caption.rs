//! What stands around a table: its title, the conditions and remarks.

use super::baseline::NO_RATIO;
use super::escape;
use super::escape::clip;
use super::notes::{by_column, conditions};
use super::settings::VALUE_MAX;
use super::table::{Column, Line, Table};
use crate::judge::{CONDITIONS, Of, Shown};
use crate::summary::Summary;
use crate::terms;

/// Workload, metric, unit, direction, and what a cell is of.
pub(crate) fn title(table: &Table) -> String {
    let metric = &table.metric;
    let workload = escape::line(table.workload);
    let name = metric.name();
    let unit = match &table.baseline {
        None => format!(", {}", metric.unit_in_words()),
        Some(label) => {
            let how = if metric.higher_is_better() { "value/base" } else { "base/value" };
            format!(" relative to {}, {how}: higher is better", escape::line(label))
        }
    };
    let runs = || table.cells().map(|cell| cell.spread.n);
    let medians = match (runs().min(), runs().max()) {
        (_, None | Some(0 | 1)) => String::new(),
        (Some(least), Some(most)) if least < most => {
            format!("; medians of {least} to {most} repeats")
        }
        (_, Some(most)) => format!("; medians of {most} repeats"),
    };
    format!("{workload}: {name}{unit}{medians}")
}

/// The lines below a table: conditions of its first line, and what its columns need explained.
pub(crate) fn below(table: &Table) -> Vec<String> {
    let mut below = Vec::new();
    if let Some(line) = table.lines.iter().find(|line| !line.steps.is_empty()) {
        let said = conditions(line).into_iter().filter_map(|(name, values)| {
            let known = CONDITIONS.iter().find(|condition| condition.name == name);
            let (shown, of) = known.map_or((Shown::Differing, Of::All), |c| (c.shown, c.of));
            let option = name.strip_prefix("option ");
            let usual = match shown {
                Shown::Always => false,
                Shown::Unless(usual) => values == [usual],
                Shown::Differing | Shown::ByClients | Shown::Apart => option.is_none(),
            };
            let said = || {
                let name_shown = clip(option.unwrap_or(&name), VALUE_MAX);
                format!("{name_shown} {}", by_column(line, &name, &values))
            };
            (!usual && measures(line, of)).then(said)
        });
        let said: Vec<String> = said.collect();
        below.push(said.join(", "));
    }
    let closed = |column: &&Column| column.rate.is_none();
    if let Some(paced) = table.columns.iter().find(|column| !closed(column)) {
        let (clients, rate) = (terms::clients(paced.clients), paced.per_s().unwrap_or_default());
        below.push(format!("{paced}: {clients}, {rate} ops a second asked of all together"));
        // Which time the columns have where some are closed loops and some open ones.
        let mixed = table.columns.iter().find(closed).and_then(|_| table.metric.of_closed_loops());
        below.extend(mixed.map(str::to_owned));
    }
    if let Some(label) = &table.baseline {
        below.extend(unrelated(table, label));
    }
    below
}

/// Tells whether a condition means something to what a line measured.
fn measures(line: &Line, of: Of) -> bool {
    let is = |there: fn(&Summary) -> bool| line.steps.iter().all(|step| there(step));
    match of {
        Of::All => true,
        Of::Tables => !is(|step| step.suite.is_some()),
        Of::Sweeps => !is(|step| step.suite.is_some()) && !is(|step| step.load.is_some()),
    }
}

/// Names the columns that have cells, but none of the baseline; and tells of a cell beside one of the
/// baseline that has no ratio to it.
fn unrelated(table: &Table, label: &str) -> Vec<String> {
    let base = table.line(label);
    let (mut lacking, mut by_zero) = (Vec::new(), false);
    for (at, column) in table.columns.iter().enumerate() {
        let mut cells = table.lines.iter().filter_map(|line| line.cells[at].as_ref());
        if base.is_some_and(|line| line.cells[at].is_some()) {
            by_zero |= cells.any(|cell| cell.relative.is_none());
        } else if cells.next().is_some() {
            lacking.push(column.to_string());
        }
    }
    let mut said = Vec::new();
    if !lacking.is_empty() {
        let label = escape::line(label);
        said.push(format!(
            "{label} has no cell at {}: nothing to relate to there",
            lacking.join(", ")
        ));
    }
    said.extend(by_zero.then(|| NO_RATIO.to_owned()));
    said
}
