//! What a table was measured under: its title, the conditions below it, the settings by which labels
//! differ; and the refusal to pool steps that are not the same measurement.

use super::escape::{clip, line as shown_line};
use super::notes::{by_column, conditions};
use super::table::{Column, Line, NO_RATIO, Table};
use crate::error::{Error, Result, VALUE_MAX, told_apart};
use crate::judge::{self, CONDITIONS, Difference, Of, Shown, Weight};
use crate::summary::Summary;
use crate::terms;

/// Differences that an error names.
const NAMED_MAX: usize = 10;

/// Paths of a build's own files: two builds of one version differ in nothing else.
pub(crate) const BUILD: &[&str] =
    &["basedir", "character_sets_dir", "lc_messages_dir", "plugin_dir", "tmpdir"];

/// Makes a title of workload, metric, unit, direction, and what a cell is of.
pub(crate) fn title(table: &Table) -> String {
    let unit = match &table.baseline {
        None => format!(", {}", table.metric.unit_in_words()),
        Some(label) => {
            let how = if table.metric.higher_is_better() { "value/base" } else { "base/value" };
            format!(" relative to {}, {how}: higher is better", shown_line(label))
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
    format!("{}: {}{unit}{medians}", shown_line(table.workload), table.metric.name())
}

/// Returns the lines below a table: conditions of its first line, and what its columns need explained.
pub(crate) fn below(table: &Table) -> Vec<String> {
    let mut below = Vec::new();
    if let Some(line) = table.lines.iter().find(|line| !line.steps.is_empty()) {
        let said = conditions(&line.steps).into_iter().filter_map(|(name, values)| {
            let known = CONDITIONS.iter().find(|condition| condition.name == name);
            let (shown, of) = known.map_or((Shown::Differing, Of::All), |c| (c.shown, c.of));
            let option = name.strip_prefix("option ");
            let usual = match shown {
                Shown::Always => false,
                Shown::Unless(usual) => values == [usual],
                Shown::Differing | Shown::ByClients | Shown::Apart => option.is_none(),
            };
            let name_shown = clip(option.unwrap_or(&name), VALUE_MAX);
            (!usual && measures(line, of))
                .then(|| format!("{name_shown} {}", by_column(line, &name, &values)))
        });
        below.push(said.collect::<Vec<String>>().join(", "));
    }
    let paced = table.columns.iter().find_map(|column| Some((column, column.rate?)));
    if let Some((column, rate)) = paced {
        let clients = terms::clients(column.clients);
        below.push(format!("{column}: {clients}, {rate} ops a second asked of all together"));
        // Which time the columns have where some are closed loops and some open ones.
        let mixed = table.columns.iter().any(|column| !column.is_open());
        let which = table.metric.of_closed_loops().filter(|_| mixed);
        below.extend(which.map(str::to_owned));
    }
    below.extend(unrelated(table));
    below.retain(|line| !line.is_empty());
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
pub(crate) fn unrelated(table: &Table) -> Vec<String> {
    let Some(label) = &table.baseline else { return Vec::new() };
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
    let label = shown_line(label);
    let lacking = (!lacking.is_empty()).then(|| {
        format!("{label} has no cell at {}: nothing to relate to there", lacking.join(", "))
    });
    lacking.into_iter().chain(by_zero.then(|| NO_RATIO.to_owned())).collect()
}

/// Returns `8 clients`, at a rate where there is one.
pub(crate) fn at_clients(column: &Column) -> String {
    let rate = column.rate.map(|rate| format!(" asking {rate} ops a second of all together"));
    terms::clients(column.clients) + &rate.unwrap_or_default()
}

/// Returns a label that can be seen.
pub(crate) fn label(label: &str) -> String {
    if label.trim().is_empty() { "(no label)".to_owned() } else { shown_line(label) }
}

/// Returns the settings of the second step that the first has not, for a legend: its variables but for
/// those that follow from others, and how it was spoken to.
pub(crate) fn legend(first: &Summary, second: &Summary) -> Vec<Difference> {
    let mut differences = judge::differences(first, second);
    let variables = [first, second].map(|step| &step.server.variables);
    // Without the schema, the sizes that it would have are others, or not there.
    let schema = differences.iter().any(|d| d.name == "performance_schema");
    differences.retain(|difference| {
        let name = difference.name.as_str();
        let known = variables.iter().any(|variables| variables.contains_key(name));
        let follows = schema && name.starts_with("performance_schema_") || BUILD.contains(&name);
        ["statements", "transport", "TLS"].contains(&name) || (known && !follows)
    });
    differences
}

/// Refuses to pool steps that are not the same measurement.
pub(crate) fn agree(steps: &[&Summary]) -> Result<()> {
    let groups = judge::by_knowledge(steps);
    let within = groups.iter().flat_map(|(first, all)| all.iter().map(move |step| (*first, *step)));
    let between = groups.iter().enumerate().flat_map(|(at, (one, _))| {
        groups.iter().skip(at + 1).map(move |(other, _)| (*one, *other))
    });
    for (first, other) in between.chain(within) {
        let mut differences = judge::differences(first, other);
        differences.retain(|d| d.weight > Weight::Noted);
        if !differences.is_empty() {
            return Err(refusal(first, other, &differences));
        }
    }
    Ok(())
}

fn refusal(first: &Summary, second: &Summary, differences: &[Difference]) -> Error {
    let named = differences.iter().map(|d| {
        let (one, other) = told_apart(&d.first, &d.second);
        format!("{}: {one} / {other}", clip(&d.name, VALUE_MAX))
    });
    let step = |step: &Summary| {
        let (id, at) = (clip(&step.step_id, VALUE_MAX), clip(&step.started_at, VALUE_MAX));
        format!("{id} ({at})")
    };
    let same_run = first.run_id == second.run_id;
    let error = Error::data(format!(
        "'{}' of {} at {} was measured {} with different settings, in steps {} and {}:\n  {}",
        clip(&first.label, VALUE_MAX),
        clip(&first.workload.name, VALUE_MAX),
        terms::clients(first.plan.clients),
        if same_run { "in one invocation" } else { "by several invocations" },
        step(first),
        step(second),
        terms::named(named.collect(), NAMED_MAX, "\n  "),
    ));
    if same_run {
        error.hint("name the files of one of them only, or give them labels of their own (--label)")
    } else {
        error
            .hint("--latest takes the newest invocation of each label only")
            .hint("or give each configuration a label of its own (--label)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_lists_what_does_not_count() {
        let text = include_str!("../../docs/report.md");
        let all =
            judge::FREE.iter().flat_map(|(why, paths)| paths.split(' ').map(move |p| (p, why)));
        for (path, why) in all {
            let row = format!("| `{path}` | {why} |");
            assert!(text.contains(&row), "docs/report.md lacks the row {row}");
        }
    }
}
