//! What stands around a table: its title, the conditions and remarks.

use super::baseline::NO_RATIO;
use super::escape;
use super::escape::clip;
use super::notes::{by_column, conditions};
use super::pivot::{Line, Table};
use super::settings::VALUE_MAX;
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
    let steps = || table.lines.iter().flat_map(|l| &l.cells).flatten().map(|c| c.spread.n);
    let medians = match (steps().min(), steps().max()) {
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
    if let Some(paced) = table.columns.iter().find(|column| column.rate.is_some()) {
        let (clients, rate) = (terms::clients(paced.clients), paced.per_s().unwrap_or_default());
        below.push(format!("{paced}: {clients}, {rate} ops a second asked of all together"));
    }
    below.extend(which_time(table));
    below.extend(unrelated(table));
    below.extend(divides_by_zero(table).then(|| NO_RATIO.to_owned()));
    below
}

/// Which time the columns have where some are closed loops and some open ones.
fn which_time(table: &Table) -> Option<String> {
    let rates = || table.columns.iter().map(|column| column.rate);
    let mixed = rates().any(|rate| rate.is_some()) && rates().any(|rate| rate.is_none());
    mixed.then(|| table.metric.of_closed_loops())?.map(str::to_owned)
}

/// Whether a condition means something to what a line measured.
fn measures(line: &Line, of: Of) -> bool {
    let is = |there: fn(&Summary) -> bool| line.steps.iter().all(|step| there(step));
    match of {
        Of::All => true,
        Of::Tables => !is(|step| step.suite.is_some()),
        Of::Sweeps => !is(|step| step.suite.is_some()) && !is(|step| step.load.is_some()),
    }
}

/// Whether a cell beside one of the baseline has no ratio to it.
fn divides_by_zero(table: &Table) -> bool {
    let Some(label) = &table.baseline else { return false };
    let base = table.lines.iter().find(|line| line.label == label);
    let Some(base) = base.map(|line| &line.cells) else { return false };
    let mut lines = table.lines.iter().flat_map(|line| base.iter().zip(&line.cells));
    lines.any(|(base, cell)| {
        base.is_some() && cell.as_ref().is_some_and(|cell| cell.relative.is_none())
    })
}

/// Names the columns that have cells, but none of the baseline.
fn unrelated(table: &Table) -> Option<String> {
    let label = table.baseline.as_ref()?;
    let base = table.lines.iter().find(|line| line.label == label);
    let lacks = |at: usize| base.is_none_or(|line| line.cells.get(at).is_none_or(Option::is_none));
    let columns: Vec<String> = table
        .columns
        .iter()
        .enumerate()
        .filter(|(at, _)| {
            let mut cells = table.lines.iter().filter_map(|line| line.cells.get(*at)?.as_ref());
            lacks(*at) && cells.next().is_some()
        })
        .map(|(_, column)| column.to_string())
        .collect();
    (!columns.is_empty()).then(|| {
        let label = escape::line(label);
        format!("{label} has no cell at {}: nothing to relate to there", columns.join(", "))
    })
}
