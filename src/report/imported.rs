//! Imported runs in reports: where they come from, and how a row differs from them.

use super::columns::{Rows, Sheet};
use super::distinct::push_new;
use super::escape;
use super::names::{instant, label, list_some, value_instead};
use super::note::Note;
use super::run::Run;
use super::table::{LabelRow, WorkloadTable};
use crate::error::Error;
use crate::judge::{Difference, Weight};
use crate::summary::Imported;
use crate::terms::finding;
use crate::terms::units::rate_decimals;

/// Characters of a text in the table of imported runs.
const CELL_MAX: usize = 60;

pub(super) fn not_printed(tables: &[WorkloadTable], runs: &[Run]) -> Error {
    let mut percentiles: Vec<String> = Vec::new();
    let imported = runs.iter().filter_map(|run| run.imported());
    for of in imported.filter_map(|run| run.latency.percentile) {
        push_new(&mut percentiles, format!("p{}", of.percentile));
    }
    let there = ["qps", "tps", "errors", "retried", "mean", "min", "max"].map(str::to_owned);
    let there = there.into_iter().chain(percentiles).collect::<Vec<_>>().join(", ");
    let metric = tables.first().expect("a table of these runs").metric;
    Error::data(format!("the imported outputs have no {metric}"))
        .hint(format!("--metric takes what they have: {there}"))
}

pub(super) fn any_lacks(tables: &[WorkloadTable]) -> bool {
    let lacks = |table: &WorkloadTable, run: &Run| {
        let metric = table.metric_at(&run.cell());
        run.imported().is_some() && metric.finding(*run).is_some()
    };
    tables.iter().any(|table| table.runs().iter().any(|run| lacks(table, run)))
}

pub(super) fn origin(runs: &[&Imported]) -> Sheet {
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

/// Notes what an imported line, or one beside an imported first line, does not share with the first.
pub(super) fn differing_line(line: &LabelRow, first: &LabelRow) -> Option<Note> {
    let mut found: Vec<Difference> = Vec::new();
    let cells = line.cells().filter(|_| !std::ptr::eq(line, first));
    let first = first.cell()?;
    for cell in cells.filter(|cell| first.is_imported() || cell.is_imported()) {
        // Labels stand for versions.
        let differences = first.differences(cell).into_iter();
        let differences = differences.filter(|of| of.weight > Weight::Server);
        differences.for_each(|of| push_new(&mut found, of));
    }
    let texts = found.iter().map(value_instead).collect();
    let finding = finding!(Conditions, list_some(texts, ", "));
    (!found.is_empty()).then(|| Note { doubtful: true, ..Note::new(finding, &found) })
}
