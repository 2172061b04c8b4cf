//! Steps of one cell must be the same measurement; and what tells two labels from each other.

use super::escape::clip;
use crate::error::{Error, Result};
pub(crate) use crate::error::{VALUE_MAX, told_apart};
use crate::judge::{self, Difference, Weight};
use crate::summary::Summary;
use crate::terms;

/// Differences that an error names.
const NAMED_MAX: usize = 10;

/// Paths of a build's own files: two builds of one version differ in nothing else.
pub(crate) const BUILD: &[&str] =
    &["basedir", "character_sets_dir", "lc_messages_dir", "plugin_dir", "tmpdir"];

/// The settings of the second step that the first has not, for a legend: its variables but for
/// those that follow from others, and how it was spoken to.
pub(crate) fn legend(first: &Summary, second: &Summary) -> Vec<Difference> {
    let differences = judge::differences(first, second);
    let variables = &second.server.variables;
    let known =
        |name: &str| first.server.variables.contains_key(name) || variables.contains_key(name);
    let spoken = |name: &str| ["statements", "transport", "TLS"].contains(&name);
    let schema = differences.iter().any(|d| d.name == "performance_schema");
    // Without it, the sizes that it would have are others, or not there.
    let follows = |name: &str| schema && name.starts_with("performance_schema_");
    let counts = |d: &Difference| {
        let name = d.name.as_str();
        spoken(name) || (known(name) && !BUILD.contains(&name) && !follows(name))
    };
    differences.into_iter().filter(counts).collect()
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
    let named: Vec<String> = differences
        .iter()
        .take(NAMED_MAX)
        .map(|d| {
            let (one, other) = told_apart(&d.first, &d.second);
            format!("\n  {}: {one} / {other}", clip(&d.name, VALUE_MAX))
        })
        .collect();
    let more = differences.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
    let same_run = first.run_id == second.run_id;
    let error = Error::data(format!(
        "'{}' of {} at {} was measured {} with different settings, in steps {} ({}) and \
         {} ({}):{}{more}",
        clip(&first.label, VALUE_MAX),
        clip(&first.workload.name, VALUE_MAX),
        terms::clients(first.plan.clients),
        if same_run { "in one invocation" } else { "by several invocations" },
        clip(&first.step_id, VALUE_MAX),
        clip(&first.started_at, VALUE_MAX),
        clip(&second.step_id, VALUE_MAX),
        clip(&second.started_at, VALUE_MAX),
        named.concat(),
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
        for (path, why) in judge::FREE {
            let row = format!("| `{path}` | {why} |");
            assert!(text.contains(&row), "docs/report.md lacks the row {row}");
        }
    }
}
