//! Labels told from each other by the settings of their servers.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::columns::{Rows, Sheet};
use super::escape::{self, clip};
use super::names::label;
use super::notes::legend;
use super::page::Page;
use super::table::WorkloadTable;
use crate::error::{VALUE_MAX, told_apart};
use crate::judge::{ABSENT, Difference};
use crate::summary::Summary;
use crate::terms::named;

const SETTINGS_MAX: usize = 12;

pub(super) fn page(tables: &[WorkloadTable]) -> Page {
    let lines =
        tables.iter().flat_map(|table| &table.lines).filter(|line| line.steps().next().is_some());
    // The first step of a label stands for it.
    let mut labels: Vec<LabelSteps> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for line in lines {
        let at = *places.entry(line.label).or_insert(labels.len());
        if at == labels.len() {
            labels.push((line.label, Vec::new()));
        }
        labels[at].1.extend(line.steps());
    }
    let mixed = |steps: &[&Summary]| {
        let is_mixed = steps.iter().any(|step| !legend(steps[0], step).is_empty());
        if is_mixed { "; its runs differ, this is the first" } else { "" }
    };
    let described = describe_labels(&labels);
    let sheet = Rows::new(labels.iter().zip(described))
        .shown("", |((of, steps), (text, ..))| format!("{} - {text}{}", label(of), mixed(steps)))
        .filed("label", |((label, _), _)| *label)
        .filed("version", |((_, steps), _)| steps[0].server.version.as_str())
        .filed("version_comment", |((_, steps), _)| steps[0].server.version_comment.as_str())
        .filed("same_as", |(_, (_, same_as, _))| *same_as)
        .filed("settings", |(_, (.., settings))| settings.clone())
        .sheet();
    let title = "labels, by the settings of their servers".to_owned();
    Page { title_below: true, ..Page::new(title, Sheet { list: true, ..sheet }, Vec::new()) }
}

type LabelSteps<'a> = (&'a str, Vec<&'a Summary>);

fn build(step: &Summary) -> (&str, &str) {
    (&step.server.version, &step.server.version_comment)
}

/// Labels that others of their build are held against at most: all with all would take hours where there are many.
const MODELS_MAX: usize = 16;

#[derive(Default)]
struct Build<'l, 'a> {
    labels: Vec<&'l LabelSteps<'a>>,
    /// The first of each kind of settings, [`MODELS_MAX`] at most.
    models: Vec<&'l LabelSteps<'a>>,
}

type Description<'a> = (String, &'a str, Vec<(String, String)>);

/// Describes labels by the settings of their servers: those that the earlier label with the fewest other
/// settings has not; of the first of a build, all in which labels of it differ. Labels of which no two have
/// one build are compared all the same.
fn describe_labels<'a>(labels: &[LabelSteps<'a>]) -> Vec<Description<'a>> {
    let all: HashSet<(&str, &str)> = labels.iter().map(|label| build(label.1[0])).collect();
    let are_apart = all.len() == labels.len();
    let build = |step: &'a Summary| if are_apart { ("", "") } else { build(step) };
    let mut builds: HashMap<(&str, &str), Build> = HashMap::new();
    for label in labels {
        builds.entry(build(label.1[0])).or_default().labels.push(label);
    }
    let mut described = Vec::new();
    for label in labels {
        let step = label.1[0];
        let of = builds.get_mut(&build(step)).expect("all are there");
        let mut nearest: Option<(&str, Vec<Difference>)> = None;
        for (name, others) in &of.models {
            let found = legend(others[0], step);
            let is_nearer = |(_, least): &(_, Vec<_>)| found.len() < least.len();
            if nearest.as_ref().is_none_or(is_nearer) {
                nearest = Some((name, found));
            }
            if nearest.as_ref().is_some_and(|(_, least)| least.is_empty()) {
                break;
            }
        }
        let is_alike = nearest.as_ref().is_some_and(|(_, found)| found.is_empty());
        if !is_alike && of.models.len() < MODELS_MAX {
            of.models.push(label);
        }
        described.push(describe_label(step, nearest.as_ref(), &of.labels));
    }
    described
}

fn describe_label<'a>(
    step: &Summary,
    nearest: Option<&(&'a str, Vec<Difference>)>,
    of_build: &[&LabelSteps<'a>],
) -> Description<'a> {
    // A long value is cut to the part that differs, else it looks like the other one.
    let differs = |d: &Difference| (d.name.clone(), told_apart(&d.first, &d.second).1);
    let value = |d: Difference| (d.name, d.second);
    let (settings, texts): (Vec<_>, Vec<_>) = if let Some((_, found)) = nearest {
        found.iter().map(|d| (value(d.clone()), differs(d))).unzip()
    } else {
        let found = of_build.iter().flat_map(|(_, others)| legend(others[0], step));
        let found = found.filter(|d| d.second != ABSENT).map(value);
        let found = found.collect::<BTreeMap<String, String>>().into_iter();
        found.map(|of| (of.clone(), of)).unzip()
    };
    let pair = |(name, value): &(String, String)| {
        format!("{}={}", clip(name, VALUE_MAX), clip(value, VALUE_MAX))
    };
    let pairs = named(texts.iter().map(pair).collect(), SETTINGS_MAX, ", ");
    let but = |how| if pairs.is_empty() { String::new() } else { format!(" {how} {pairs}") };
    let Some((name, _)) = nearest else {
        let (version, comment) = build(step);
        let build = format!("{} {}", escape::line(version), clip(comment, VALUE_MAX));
        return (format!("{}{}", build.trim_end(), but("with")), "", settings);
    };
    (format!("same as {}{}", escape::line(name), but("except")), name, settings)
}
