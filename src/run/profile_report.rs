//! The tables at the end of a run, as `loadgen report` makes them.

use clap::ValueEnum as _;

use super::{print_data, terminal};
use crate::error::{Error, Result, line};
use crate::plan::experiment::Experiment;
use crate::plan::profile::{Names, Profile};
use crate::progress::say;
use crate::report::{self, Layout, Metric, Options};
use crate::summary::Summary;

/// Refuses names that are not known.
///
/// # Errors
///
/// Usage, with line and column.
pub(super) fn check(profile: &Profile) -> Result<()> {
    let report = &profile.report;
    for (n, name) in report.metric.iter().flat_map(|names| &names.0).enumerate() {
        let wrong = |what: String| profile.refuse(&format!("report/metric/{n}"), what);
        name.parse::<Metric>().map_err(|what| wrong(what.to_string()))?;
    }
    for (n, name) in report.layout.iter().flat_map(|names| &names.0).enumerate() {
        let wrong = |what: String| profile.refuse(&format!("report/layout/{n}"), what);
        if layout(name).map_err(wrong)?.compares() && (report.from.is_none() || report.to.is_none())
        {
            return Err(wrong(format!("{name} compares two labels: from and to")));
        }
    }
    Ok(())
}

fn layout(name: &str) -> std::result::Result<Layout, String> {
    Layout::from_str(name, false).map_err(|_| {
        let known: Vec<String> =
            Layout::value_variants().iter().map(|layout| layout.to_string()).collect();
        format!("there is no layout '{name}', but {}", known.join(", "))
    })
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
    let mut layouts: Vec<Layout> = Vec::new();
    for name in report.layout.iter().flat_map(Names::texts) {
        layouts.push(layout(name).map_err(Error::usage)?);
    }
    if layouts.is_empty() {
        layouts.push(Layout::default());
    }
    let mut metrics: Vec<Metric> = Vec::new();
    for name in report.metric.iter().flat_map(Names::texts) {
        metrics.push(name.parse()?);
    }
    if metrics.is_empty() {
        metrics.push(Metric::default());
    }
    let usual = [Metric::default()];
    for layout in layouts {
        let metrics = match layout {
            // These have columns of their own.
            Layout::PerOp | Layout::Suite | Layout::Settings => &usual[..],
            _ => &metrics,
        };
        for change in changes(experiment, layout, steps) {
            for metric in metrics {
                let options = options(experiment, layout, metric, change, steps);
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
    layout: Layout,
    steps: &[&Summary],
) -> Vec<Option<&'a (String, String)>> {
    if !layout.compares() {
        return vec![None];
    }
    let there = |(from, to): &&(String, String)| {
        let absent = [from, to].into_iter().find(|label| !is_there(steps, label));
        if let Some(absent) = absent {
            say(&line(&format!("layout {} is left out: '{absent}' was not measured", layout)));
        }
        absent.is_none()
    };
    // With one program the first label is the last one, too.
    let changes = experiment.changes.iter().filter(|(from, to)| from != to);
    changes.filter(there).map(Some).collect()
}

/// With `--only`, or after an interruption, not every label is.
fn is_there(steps: &[&Summary], label: &str) -> bool {
    steps.iter().any(|step| step.label == label)
}

fn options(
    experiment: &Experiment,
    layout: Layout,
    metric: &Metric,
    change: Option<&(String, String)>,
    steps: &[&Summary],
) -> Options {
    let report = &experiment.report;
    let there = |label: &&str| is_there(steps, label);
    let related = layout.relates();
    Options {
        metric: *metric,
        layout,
        baseline: report
            .baseline
            .as_deref()
            .filter(|label| related && there(label))
            .map(str::to_owned),
        from: change.map(|(from, _)| from.clone()),
        to: change.map(|(_, to)| to.clone()),
        order: report
            .order
            .iter()
            .flat_map(Names::texts)
            .filter(there)
            .map(str::to_owned)
            .collect(),
        terminal: terminal(),
        ..Options::default()
    }
}
