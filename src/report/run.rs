//! A run of a report: a step that loadgen measured, or a run that another program's output tells of.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use jiff::Timestamp;

use crate::error::{VALUE_MAX, clip};
use crate::judge::{self, CONDITIONS, Difference, Weight};
use crate::summary::{
    Imported, Loaded, Outcome, Summary, TEXT_MAX, Verdict, VerdictKind, in_queues,
};
use crate::terms::{Cell, Code, Finding, finding, joined};

#[derive(Debug, Clone, Copy)]
pub enum Run<'a> {
    Measured(&'a Summary),
    Imported(&'a Imported),
}

#[derive(Debug, Clone, Default)]
pub struct Runs<'a>(Vec<Run<'a>>);

impl<'a> Deref for Runs<'a> {
    type Target = [Run<'a>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a> Runs<'a> {
    /// Returns those of the newest invocation, or import, of each label and workload.
    #[must_use]
    pub fn newest(&self) -> Runs<'a> {
        let of = |run: &Run<'a>| (run.workload(), run.label(), run.imported().is_some());
        let mut runs = self.0.clone();
        runs.sort_by_cached_key(|run| run.sort_key());
        let newest: BTreeMap<_, &str> =
            runs.iter().map(|run| (of(run), run.invocation())).collect();
        runs.retain(|run| newest[&of(run)] == run.invocation());
        Runs(runs)
    }
}

impl<'a> FromIterator<Run<'a>> for Runs<'a> {
    fn from_iter<I: IntoIterator<Item = Run<'a>>>(runs: I) -> Self {
        Runs(runs.into_iter().collect())
    }
}

impl<'a, T: AsRef<[&'a Summary]> + ?Sized> From<&T> for Runs<'a> {
    fn from(steps: &T) -> Runs<'a> {
        steps.as_ref().iter().copied().map(Run::Measured).collect()
    }
}

impl<'a> From<&'a Loaded> for Runs<'a> {
    fn from(loaded: &'a Loaded) -> Runs<'a> {
        let measured = loaded.summaries.iter().map(|(_, step)| Run::Measured(step));
        let imported = loaded.imported.iter().map(|(_, run)| Run::Imported(run));
        measured.chain(imported).collect()
    }
}

impl<'a> From<&'a Summary> for Run<'a> {
    fn from(step: &'a Summary) -> Run<'a> {
        Run::Measured(step)
    }
}

type ImportedValue = fn(&Imported) -> Option<String>;

/// Conditions that imported runs may know, in the order of importance, by their names in measured steps.
const KNOWN_OF_IMPORTED: [(&str, Weight, ImportedValue); 6] = [
    ("tables", Weight::Operation, |run| run.tables.map(|tables| tables.to_string())),
    ("rows", Weight::Operation, |run| run.rows.map(|rows| rows.to_string())),
    ("distribution", Weight::Operation, |run| run.distribution.clone()),
    ("statements", Weight::Operation, |run| run.statements.map(|mode| mode.to_string())),
    ("reads, writes and others an op", Weight::Operation, |run| {
        run.totals.each_op().map(|each| each.map(|n| n.to_string()).join("/"))
    }),
    ("version", Weight::Server, |run| run.server_version.clone()),
];

/// Stands for an option that only one of two command lines has.
const DEFAULT_VALUE: &str = "(usual)";

type Options = BTreeMap<String, String>;

impl<'a> Run<'a> {
    pub fn label(self) -> &'a str {
        match self {
            Run::Measured(step) => &step.label,
            Run::Imported(run) => &run.label,
        }
    }

    pub fn workload(self) -> &'a str {
        match self {
            Run::Measured(step) => &step.workload.name,
            Run::Imported(run) => &run.workload,
        }
    }

    pub fn cell(self) -> Cell {
        match self {
            Run::Measured(step) => step.cell(),
            Run::Imported(run) => run.cell(),
        }
    }

    fn invocation(self) -> &'a str {
        match self {
            Run::Measured(step) => &step.run_id,
            Run::Imported(run) => &run.import_id,
        }
    }

    pub(crate) fn started_at(self) -> &'a str {
        match self {
            Run::Measured(step) => &step.started_at,
            Run::Imported(run) => &run.started_at,
        }
    }

    /// Orders by the beginning (last where it is no instant), then by what tells those of one instant apart.
    pub(crate) fn sort_key(self) -> (Timestamp, &'a str, u32) {
        let at = self.started_at().parse().unwrap_or(Timestamp::MAX);
        match self {
            Run::Measured(step) => (at, &step.step_id, 0),
            Run::Imported(run) => (at, &run.source.sha256, run.source.run),
        }
    }

    pub fn measured(self) -> Option<&'a Summary> {
        if let Run::Measured(step) = self { Some(step) } else { None }
    }

    pub fn imported(self) -> Option<&'a Imported> {
        if let Run::Imported(run) = self { Some(run) } else { None }
    }

    pub(crate) fn is_complete(self) -> bool {
        self.measured().is_none_or(|step| step.outcome == Outcome::Completed)
    }

    pub(crate) fn has_response_time(self) -> bool {
        match self {
            Run::Measured(step) => step.latency.response.is_some(),
            Run::Imported(run) => run.rate.is_some(),
        }
    }

    pub(crate) fn note(self, name: &str) -> Option<&'a str> {
        let notes = match self {
            Run::Measured(step) => &step.notes,
            Run::Imported(run) => &run.notes,
        };
        notes.get(name).map(String::as_str)
    }

    /// Operations, or rows of a load, of a run that did all that it was asked for; none where the time ended it.
    pub(crate) fn fixed_work(self) -> Option<u64> {
        match self {
            Run::Measured(step) => {
                let is_whole = step.plan.time_s.is_none() && self.is_complete();
                // A script may end itself before.
                let is_early = |ops: &u64| step.workload.script.is_some() && step.totals.ops < *ops;
                let is_whole = is_whole && !step.plan.ops.as_ref().is_some_and(is_early);
                is_whole.then(|| step.plan.ops.unwrap_or(step.totals.rows))
            }
            // The output does not tell what was asked for.
            Run::Imported(run) => Some(run.totals.ops),
        }
    }

    /// Returns a condition by its name, and the server's version; none where nothing tells.
    pub(crate) fn condition(self, name: &str) -> Option<String> {
        match self {
            Run::Measured(step) if name == "version" => Some(step.server.version.clone()),
            Run::Measured(step) => {
                (CONDITIONS.iter().find(|known| known.name == name)?.value)(step)
            }
            Run::Imported(run) => {
                (KNOWN_OF_IMPORTED.iter().find(|(known, ..)| *known == name)?.2)(run)
            }
        }
    }

    pub(crate) fn options(self) -> Option<Options> {
        match self {
            Run::Measured(step) => {
                let options = step.workload.options.iter();
                Some(options.map(|(name, value)| (name.clone(), value.to_string())).collect())
            }
            Run::Imported(run) => run.options.clone(),
        }
    }

    /// Returns the finding of what an op costs where groups beside had a part of it.
    pub(crate) fn costs_beside(self) -> Option<Finding> {
        // Of several addresses no cost is known.
        let step = self.measured().filter(|step| step.addresses.is_empty())?;
        let names = step.groups.iter().map(|group| Some(format!("group {}", group.name)));
        Some(finding!(CostsBeside, joined(names, ", ")?))
    }

    pub(crate) fn findings(self) -> Vec<Finding> {
        let step = match self {
            Run::Measured(step) => step,
            Run::Imported(run) => {
                let file = clip(&run.source.file, TEXT_MAX);
                let imported = finding!(Imported, clip(&run.program(), VALUE_MAX), file);
                return std::iter::once(imported)
                    .chain(run.warnings.iter().map(Finding::from))
                    .collect();
            }
        };
        let shared = step.verdict.as_ref().is_some_and(|of| of.kind == VerdictKind::SharedHost);
        let same_host = step.client.same_host && !shared && !step.is_warned(Code::SameHost);
        let queues = step.plan.queues.filter(|queues| *queues > 1);
        let debug = step.loadgen.profile != "release" && !step.is_warned(Code::DebugBuild);
        let own = [
            (!self.is_complete()).then(|| finding!(Partial, ending(step))),
            step.verdict.as_ref().and_then(Verdict::finding),
            same_host.then(|| finding!(SameHost)),
            queues.map(|queues| finding!(Queues, in_queues(queues, step.workload.spread))),
            debug.then(|| finding!(DebugBuild)),
        ];
        own.into_iter().flatten().chain(step.warnings.iter().map(Finding::from)).collect()
    }
}

pub(crate) fn steps_among<'a>(runs: &[Run<'a>]) -> impl Iterator<Item = &'a Summary> + Clone {
    runs.iter().filter_map(|run| run.measured())
}

pub(crate) fn ending(step: &Summary) -> String {
    let outcome = step.outcome.name();
    // The reason of an interruption is its name.
    let reason = step.reason.iter().filter(|reason| *reason != outcome);
    let reason = reason.map(|reason| format!(", {}", clip(reason, TEXT_MAX)));
    outcome.to_owned() + &reason.collect::<String>()
}

/// Returns the runs that stand for all: of steps the first of each kind of knowledge.
pub(crate) fn by_knowledge<'a>(runs: &[Run<'a>]) -> Vec<Run<'a>> {
    let steps: Vec<&Summary> = steps_among(runs).collect();
    let firsts = judge::by_knowledge(&steps).into_iter().map(Run::Measured);
    firsts.chain(runs.iter().filter(|run| run.imported().is_some()).copied()).collect()
}

/// Lists the conditions in which two runs differ; of imported ones those that both know.
pub(crate) fn differences(one: Run, other: Run) -> Vec<Difference> {
    if let [Some(one), Some(other)] = [one, other].map(Run::measured) {
        return judge::differences(one, other);
    }
    let known = KNOWN_OF_IMPORTED.iter().filter_map(|(name, weight, _)| {
        let (first, second) = (one.condition(name)?, other.condition(name)?);
        difference((*name).to_owned(), first, second, *weight)
    });
    let options = one.options().zip(other.options()).map(|(mut first, mut second)| {
        // A measured workload has no options of other programs.
        if [one, other].iter().any(|run| run.measured().is_some()) {
            first.retain(|name, _| second.contains_key(name));
            second.retain(|name, _| first.contains_key(name));
        }
        option_differences(&first, &second)
    });
    known.chain(options.into_iter().flatten()).collect()
}

fn difference(name: String, first: String, second: String, weight: Weight) -> Option<Difference> {
    (first != second).then_some(Difference { name, first, second, weight })
}

fn option_differences(one: &Options, other: &Options) -> Vec<Difference> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let value = |all: &Options, name: &str| {
        all.get(name).cloned().unwrap_or_else(|| DEFAULT_VALUE.to_owned())
    };
    let differing = |name: &String| {
        let (first, second) = (value(one, name), value(other, name));
        difference(format!("option {name}"), first, second, Weight::Operation)
    };
    names.into_iter().filter_map(differing).collect()
}

pub(crate) fn imported_conditions(runs: &[Run]) -> impl Iterator<Item = (String, String)> {
    let imported: Vec<&Imported> = runs.iter().filter_map(|run| run.imported()).collect();
    let known = KNOWN_OF_IMPORTED.map(|(name, _, value)| {
        let value = imported.iter().find_map(|run| value(run));
        (name.replace(", ", "_").replace(' ', "_"), value)
    });
    let options = imported.iter().find_map(|run| run.options.as_ref());
    let options = ("options".to_owned(), options.map(options_in_words));
    known.into_iter().chain([options]).filter_map(|(name, value)| Some((name, value?)))
}

/// Returns `NAME VALUE and NAME VALUE`, or `none`.
pub(crate) fn options_in_words<V: std::fmt::Display>(options: &BTreeMap<String, V>) -> String {
    let options: Vec<String> = options.iter().map(|(k, v)| format!("{k} {v}")).collect();
    if options.is_empty() { "none".to_owned() } else { options.join(" and ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Script;

    #[test]
    fn work_of_a_script_is_not_known_when_it_ended_itself() {
        let mut step = Summary { outcome: Outcome::Completed, ..Summary::default() };
        (step.plan.time_s, step.plan.ops, step.totals.ops) = (None, Some(100), 60);
        assert_eq!(Run::Measured(&step).fixed_work(), Some(100));
        step.workload.script = Some(Script::default());
        assert_eq!(Run::Measured(&step).fixed_work(), None);
        step.totals.ops = 100;
        assert_eq!(Run::Measured(&step).fixed_work(), Some(100));
    }

    #[test]
    fn ending_is_said_once_when_its_reason_has_the_same_name() {
        let (outcome, reason) = (Outcome::Interrupted, Some("interrupted".to_owned()));
        let step = Summary { outcome, reason, ..Summary::default() };
        assert_eq!(ending(&step), "interrupted");
    }
}
