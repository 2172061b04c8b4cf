//! The tables at the end of a run, as `loadgen report` makes them.

use clap::{Args, FromArgMatches};
use toml::Spanned;

use crate::cmd::print_data;
use crate::cmd::report::ReportArgs;
use crate::error::{Error, Result, line};
use crate::plan::experiment::Experiment;
use crate::plan::profile::Profile;
use crate::plan::profile::value::Names;
use crate::progress::say;
use crate::report::{self, Options};
use crate::summary::Summary;

/// The layout and the metric of a report without any.
const USUAL: &str = "";

/// Whether all names are known.
///
/// # Errors
///
/// Usage, with line and column.
pub(super) fn check(profile: &Profile) -> Result<()> {
    let report = &profile.report;
    for (names, flag) in [(&report.layout, "--layout"), (&report.metric, "--metric")] {
        for name in names.iter().flat_map(|names| &names.0) {
            options(&[flag, name.as_ref()]).map_err(|what| profile.refuse(name.span(), what))?;
            if compares(name.as_ref()) && (report.from.is_none() || report.to.is_none()) {
                let what = format!("{} compares two labels: from and to", name.as_ref());
                return Err(profile.refuse(name.span(), what));
            }
        }
    }
    Ok(())
}

/// Prints what the profile asks for.
///
/// # Errors
///
/// Data: nothing was measured, or it does not belong together.
pub(super) fn print(experiment: &Experiment, summaries: &[Summary]) -> Result<()> {
    if summaries.is_empty() {
        return Ok(());
    }
    let mut printed = String::new();
    let steps: Vec<&Summary> = summaries.iter().collect();
    let rendered = render(experiment, &steps, &mut printed);
    // What can be shown is, whatever else cannot.
    print_data(&printed)?;
    rendered
}

fn render(experiment: &Experiment, steps: &[&Summary], printed: &mut String) -> Result<()> {
    let report = &experiment.report;
    for layout in names(report.layout.as_ref()) {
        let metrics = match layout {
            // These have columns of their own.
            "per-op" | "suite" | "settings" => vec![USUAL],
            _ => names(report.metric.as_ref()),
        };
        for change in changes(experiment, layout, steps) {
            for metric in &metrics {
                let words = words(experiment, layout, metric, change, steps);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let options = options(&words).map_err(Error::usage)?;
                let table = report::render(steps, &options)?;
                if !printed.is_empty() {
                    printed.push('\n');
                }
                printed.push_str(&table);
            }
        }
    }
    Ok(())
}

/// What a layout is printed for: each pair of labels that it compares, or once without any.
fn changes<'a>(
    experiment: &'a Experiment,
    layout: &str,
    steps: &[&Summary],
) -> Vec<Option<&'a (String, String)>> {
    if !compares(layout) {
        return vec![None];
    }
    let there = |(from, to): &&(String, String)| {
        let absent = [from, to].into_iter().find(|label| !is_there(steps, label));
        if let Some(absent) = absent {
            say(&line(&format!("layout {layout} is left out: '{absent}' was not measured")));
        }
        absent.is_none()
    };
    // With one program the first label is the last one, too.
    let changes = experiment.changes.iter().filter(|(from, to)| from != to);
    changes.filter(there).map(Some).collect()
}

fn named(label: Option<&Spanned<String>>) -> Option<&str> {
    label.map(|label| label.as_ref().as_str())
}

/// With `--only`, or after an interruption, not every label is.
fn is_there(steps: &[&Summary], label: &str) -> bool {
    steps.iter().any(|step| step.label == label)
}

fn names(names: Option<&Names>) -> Vec<&str> {
    match names {
        Some(names) if !names.0.is_empty() => names.texts().collect(),
        _ => vec![USUAL],
    }
}

/// The flags of `loadgen report` that say the same.
fn words(
    experiment: &Experiment,
    layout: &str,
    metric: &str,
    change: Option<&(String, String)>,
    steps: &[&Summary],
) -> Vec<String> {
    let mut words = Vec::new();
    let mut flag = |name: &str, value: &str| {
        if value != USUAL {
            words.push(format!("{name}={value}"));
        }
    };
    flag("--layout", layout);
    flag("--metric", metric);
    let report = &experiment.report;
    let baseline = named(report.baseline.as_ref()).filter(|label| is_there(steps, label));
    if matches!(layout, USUAL | "relative" | "per-op") {
        flag("--baseline", baseline.unwrap_or(USUAL));
    }
    if let Some((from, to)) = change {
        flag("--from", from);
        flag("--to", to);
    }
    for label in report.order.iter().flat_map(Names::texts).filter(|l| is_there(steps, l)) {
        flag("--order", label);
    }
    words
}

/// Layouts of two labels.
fn compares(layout: &str) -> bool {
    matches!(layout, "delta" | "overhead")
}

fn options(words: &[&str]) -> std::result::Result<Options, String> {
    let command = ReportArgs::augment_args(clap::Command::new("report").no_binary_name(true));
    let words = words.iter().copied().chain(["--", "a path"]);
    let matches = command.try_get_matches_from(words);
    let args = matches.and_then(|matches| ReportArgs::from_arg_matches(&matches));
    args.map(|args| args.options()).map_err(|e| {
        let text = e.to_string();
        let first = text.lines().next().unwrap_or_default();
        first.trim_start_matches("error: ").to_owned()
    })
}
