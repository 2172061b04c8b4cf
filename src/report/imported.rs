//! What was imported, in reports: its notes, and what of its conditions is known. It has no other part
//! in what is told of measured steps.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::columns::{Rows, Sheet};
use super::distinct::push_new;
use super::escape;
use super::metric::Metric;
use super::names::{instant, label, some};
use super::note::Note;
use super::table::{LabelRow, TableCell, WorkloadTable};
use crate::error::{Error, Result, VALUE_MAX, clip, told_apart};
use crate::judge::{Difference, Weight};
use crate::summary::{Imported, Summary, TEXT_MAX};
use crate::terms::units::rate_decimals;
use crate::terms::{self, Cell, Finding, finding, joined};

/// The same in a table.
const CELL_MAX: usize = 60;

/// Refuses a metric that no imported output has, and nothing else.
pub(super) fn not_printed(tables: &[WorkloadTable], imported: &[&Imported]) -> Error {
    let mut percentiles: Vec<String> = Vec::new();
    for of in imported.iter().filter_map(|run| run.latency.percentile) {
        push_new(&mut percentiles, format!("p{}", of.percentile));
    }
    let metrics: Vec<String> = tables.iter().map(|table| table.metric.to_string()).collect();
    let there = ["qps", "tps", "errors", "retried", "mean", "min", "max"].map(str::to_owned);
    let there = there.into_iter().chain(percentiles).collect::<Vec<_>>().join(", ");
    let metric = metrics.first().expect("a table of these runs");
    Error::data(format!("the imported outputs have no {metric}"))
        .hint(format!("--metric takes what they have: {there}"))
}

/// Tells whether an imported run lacks the number of its table.
pub(super) fn any_lacks(tables: &[WorkloadTable]) -> bool {
    let lacks = |table: &WorkloadTable| {
        let of = |run: &&Imported| table.metric_at(&run.cell()).printed(run).is_none();
        table.runs().imported.iter().any(of)
    };
    tables.iter().any(lacks)
}

/// Returns what a reader of a run's numbers must know.
pub(super) fn findings(table: &WorkloadTable, run: &Imported) -> Vec<(Cell, Finding)> {
    let file = clip(&run.source.file, TEXT_MAX);
    let mut said = vec![finding!(Imported, clip(&run.program(), VALUE_MAX), file)];
    let metric = table.metric_at(&run.cell());
    if metric.printed(run).is_none() {
        said.push(finding!(NotPrinted, metric.to_string(), what_is_printed(metric, run)));
    }
    said.extend(run.warnings.iter().map(Finding::from));
    said.into_iter().map(|said| (run.cell(), said)).collect()
}

/// Names what an imported run has instead of a metric.
fn what_is_printed(metric: Metric, run: &Imported) -> String {
    match run.latency.percentile {
        _ if metric.percentile().is_none() => "none".to_owned(),
        Some(of) => format!("p{} alone", of.percentile),
        None => "no percentile".to_owned(),
    }
}

/// Returns the conditions of a line that its runs tell.
pub(super) fn conditions(line: &LabelRow) -> impl Iterator<Item = (String, Json)> {
    let first = |name| line.imported.iter().find_map(|run| run.condition(name));
    let known = CONDITIONS.iter().map(move |(name, _)| (*name, first(name)));
    let options = line.imported.iter().find_map(|run| run.options.as_ref()).map(|options| {
        let options = options.iter().map(|(name, value)| Some(format!("{name} {value}")));
        joined(options, " and ").unwrap_or_else(|| "none".to_owned())
    });
    let all = known.chain([("options", options)]);
    all.filter_map(|(name, value)| {
        Some((name.replace(", ", "_").replace(' ', "_"), vec![Json::from(value?)].into()))
    })
}

/// Counts the runs of all tables; nothing where there are none.
pub(super) fn counted(tables: &[WorkloadTable]) -> Option<String> {
    let count: usize = tables.iter().map(|table| table.runs().imported.len()).sum();
    (count > 0).then(|| terms::counted(count as u64, "imported run"))
}

/// Tells where the runs come from.
pub(super) fn origin(tables: &[WorkloadTable]) -> Sheet {
    let runs = tables.iter().flat_map(|table| table.runs().imported);
    let runs: Vec<&Imported> = runs.collect();
    let decimals = rate_decimals(runs.iter().map(|run| run.totals.qps));
    Rows::new(runs)
        .text("label", |run| label(&run.label))
        .text("workload", |run| escape::clip(&run.workload, CELL_MAX))
        .shown("clients", |run| run.cell().to_string())
        .text("printed by", |run| escape::clip(&run.program(), CELL_MAX))
        .text("file", |run| escape::clip(&run.source.file, CELL_MAX))
        .shown("run", |run| run.source.run)
        .text("started", |run| instant(&run.started_at))
        .shown("seconds", |run| (run.measured_s, 1))
        .shown("ops", |run| run.totals.ops)
        .shown("errors", |run| run.totals.failed())
        .shown("retried", |run| run.totals.began_again())
        .shown("QPS", |run| (run.totals.qps, decimals))
        .sheet()
}

/// The conditions that imported runs may know, in the order of importance.
const CONDITIONS: [(&str, Weight); 6] = [
    ("tables", Weight::Operation),
    ("rows", Weight::Operation),
    ("distribution", Weight::Operation),
    ("statements", Weight::Operation),
    ("reads, writes and others an op", Weight::Operation),
    ("version", Weight::Server),
];

/// Said of an option that one of two command lines has, and the other one leaves as it is usual.
const USUAL: &str = "(usual)";

type Options = BTreeMap<String, String>;

/// Lists the conditions in which two cells differ, of which one was imported at least.
pub(super) fn differences(one: &TableCell, other: &TableCell) -> Vec<Difference> {
    if one.imported.is_empty() && other.imported.is_empty() {
        return Vec::new();
    }
    let known = CONDITIONS.iter().filter_map(|(name, weight)| {
        let (first, second) = (one.condition(name)?, other.condition(name)?);
        difference((*name).to_owned(), first, second, *weight)
    });
    let options = options(one).zip(options(other)).map(|(mut one_has, mut other_has)| {
        // A measured workload has no options of other programs.
        if !one.steps.is_empty() || !other.steps.is_empty() {
            one_has.retain(|name, _| other_has.contains_key(name));
            other_has.retain(|name, _| one_has.contains_key(name));
        }
        of_options(&one_has, &other_has)
    });
    known.chain(options.into_iter().flatten()).collect()
}

fn difference(name: String, first: String, second: String, weight: Weight) -> Option<Difference> {
    (first != second).then_some(Difference { name, first, second, weight })
}

/// Gives the options of a cell's runs; none where nothing tells.
fn options(cell: &TableCell) -> Option<Options> {
    let measured = cell.steps.first().map(|step| {
        let options = step.workload.options.iter();
        options.map(|(name, value)| (name.clone(), value.to_string())).collect()
    });
    measured.or_else(|| cell.imported.iter().find_map(|run| run.options.clone()))
}

/// Lists the options in which two runs differ.
fn of_options(one: &Options, other: &Options) -> Vec<Difference> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let of = |name: &String| {
        let value = |all: &Options| all.get(name).cloned().unwrap_or_else(|| USUAL.to_owned());
        difference(format!("option {name}"), value(one), value(other), Weight::Operation)
    };
    names.into_iter().filter_map(of).collect()
}

/// Tells what an imported line, or one beside an imported first one, does not share with the first.
pub(super) fn of_line(line: &LabelRow, first: &LabelRow) -> Option<Note> {
    let there = first.cell()?;
    let cells = line.cells().filter(|_| !std::ptr::eq(line, first));
    let mut found: Vec<Difference> = Vec::new();
    // Versions are what labels stand for.
    let differing = cells.flat_map(|cell| differences(there, cell));
    differing.filter(|of| of.weight > Weight::Server).for_each(|of| push_new(&mut found, of));
    let texts = found.iter().map(|of| {
        let (one, other) = told_apart(&of.first, &of.second);
        format!("{} {other} instead of {one}", of.name)
    });
    let finding = finding!(Conditions, some(texts.collect(), ", "));
    (!found.is_empty()).then(|| Note { doubtful: true, ..Note::new(finding, &found) })
}

/// Refuses imported runs of one cell that are not of the same, and a cell that was measured, too.
pub(super) fn agree(steps: &[&Summary], imported: &[&Imported]) -> Result<()> {
    let Some(first) = imported.first() else { return Ok(()) };
    let (label, workload) = (clip(&first.label, VALUE_MAX), clip(&first.workload, VALUE_MAX));
    let cell = format!("'{label}' of {workload} at {}", terms::clients(first.clients));
    let hint = "import them again, each configuration under a --label of its own";
    if !steps.is_empty() {
        let file = clip(&first.source.file, TEXT_MAX);
        let text = format!("{cell} was measured, and imported, too: {file}");
        return Err(Error::data(text).hint(hint));
    }
    let refused = |(Difference { name, first, second, .. }, files): Found| {
        let (one, two) = told_apart(&first, &second);
        let files = files.join(" and ");
        let text = format!("{cell} was imported with {name} {one} and {two}, from {files}");
        Err(Error::data(text).hint(hint))
    };
    for (name, _) in CONDITIONS {
        known_alike(
            imported,
            |run| run.condition(name),
            |one, two| difference(name.to_owned(), one.clone(), two.clone(), Weight::Operation),
        )
        .map_or(Ok(()), &refused)?;
    }
    let differing = |one: &Options, two: &Options| of_options(one, two).into_iter().next();
    known_alike(imported, |run| run.options.clone(), differing).map_or(Ok(()), &refused)
}

/// A difference between two runs, and their files.
type Found = (Difference, [String; 2]);

/// Compares what is known of runs with the first that knows it; returns the first difference.
fn known_alike<T>(
    runs: &[&Imported],
    known: impl Fn(&Imported) -> Option<T>,
    differing: impl Fn(&T, &T) -> Option<Difference>,
) -> Option<Found> {
    let mut all = runs.iter().filter_map(|run| Some((run, known(run)?)));
    let (first, one) = all.next()?;
    all.find_map(|(other, two)| {
        let files = [first, other].map(|run| clip(&run.source.file, TEXT_MAX));
        Some((differing(&one, &two)?, files))
    })
}
