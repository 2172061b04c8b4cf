//! Makes reports of runs: a pure function that connects nowhere.
//!
//! ```text
//! runs ─▶ tables of cells (tables) ─▶ footnotes (notes) ─▶ pages (layout, compare …) ─▶ text | markdown | csv | json (writers)
//!                                                     └─▶ charts (chart) ─▶ svg (picture) | all in one page (html)
//! ```
//!
//! A table is one workload: the numbers of clients across, one label a line. A cell is the
//! median over the repeats of one invocation; the run is the unit, and nothing averages
//! percentiles. Steps of several invocations share a cell only when plan and settings agree.

mod answer;
mod bars;
mod calibration;
mod chart;
mod ci;
mod columns;
mod command;
mod compare;
mod compared_cell;
mod delta;
mod distinct;
mod doubt;
mod escape;
mod explain;
mod gate;
mod histogram;
mod hosts;
mod html;
mod imported;
mod json;
mod labels;
mod latency;
mod layout;
mod legend;
mod metric;
mod names;
mod note;
mod notes;
mod options;
mod page;
mod parts;
mod picture;
mod pool;
mod question;
mod ratio;
mod run;
mod settings;
mod slo;
mod suites;
mod summary_lines;
mod table;
mod tables;
mod timeline;
mod transactions;
mod value;
mod workloads;
mod writers;

pub(crate) use calibration::calibration;
pub(crate) use command::quoted;
pub use compare::{Comparison, compare};
pub use doubt::{Doubt, doubtful};
pub use explain::explain;
pub use gate::{Gates, gates, holds};
pub use html::page;
pub(crate) use latency::render_latency;
pub use metric::{FIGURES, Metric, failed_share};
pub use options::{Notes, Options};
pub use picture::picture;
pub use question::{Question, base_and_new, pair};
pub use run::{Run, Runs};

use crate::error::{Error, Result};
pub use crate::terms::{Format, Layout, Picture};
pub(crate) use parts::{Histograms, Parts};
pub(crate) use pool::NEWEST_SETTINGS;
pub(crate) use slo::{probe, searches};
use table::WorkloadTable;

/// Returns the report of some runs, as text that ends with a line end.
pub fn render<'a>(runs: impl Into<Runs<'a>>, options: &Options) -> Result<String> {
    options.check_metrics()?;
    let tables = tables::tables_to_show(&runs.into(), options)?;
    let tables: Vec<WorkloadTable> = tables.into_iter().map(notes::noted).collect();
    let series = matches!(options.format, Format::Bencher | Format::Gha);
    let spread = series || options.spread && matches!(options.format, Format::Csv | Format::Json);
    if options.format == Format::Gha {
        one_direction(&tables)?;
    }
    if !spread && options.layout == Layout::Versions && options.format == Format::Json {
        return Ok(layout::json(&tables, options));
    }
    let name = if spread { "spread".to_owned() } else { options.layout.to_string() };
    let mut pages = if spread { Vec::new() } else { layout::pages(&tables, options)? };
    pages.extend(tables.iter().filter(|_| spread || options.spread).map(layout::spread));
    if series && tables.iter().all(|table| table.items().next().is_none()) {
        return Err(Error::data(format!(
            "there is no value of {} in these summaries",
            options.metric
        ))
        .hint("loadgen report shows what there is; a percentile takes enough operations"));
    }
    let lines = lines_below(&tables, options)?;
    Ok(writers::write(&pages, &name, options.format, options.terminal, (&options.notes, &lines)))
}

/// Refuses numbers of which some are better bigger and some smaller: one file has one kind.
fn one_direction(tables: &[WorkloadTable]) -> Result<()> {
    let up = |table: &&WorkloadTable| table.metric.higher_is_better();
    let (up, down): (Vec<_>, Vec<_>) = tables.iter().partition(up);
    let (Some(up), Some(down)) = (up.first(), down.first()) else { return Ok(()) };
    let [up, down] = [up, down].map(|table| table.metric.to_string());
    Err(Error::usage(format!("--format gha: bigger is better of {up}, smaller of {down}"))
        .hint(format!("a file each: --metric {up}, and --metric {down}")))
}

fn lines_below(tables: &[WorkloadTable], options: &Options) -> Result<Vec<String>> {
    let below =
        |tables: &[WorkloadTable]| summary_lines::below(tables, &options.notes, &options.source);
    Ok(match options.layout {
        Layout::Settings => below(&[]),
        layout if layout.compares() => below(&delta::of_pair(tables, options)?),
        _ => below(tables),
    })
}

pub fn closing<'a>(runs: impl Into<Runs<'a>>, options: &Options) -> Result<String> {
    let tables = tables::tables(&runs.into(), options)?;
    let tables: Vec<WorkloadTable> = tables.into_iter().map(notes::noted).collect();
    let lines = lines_below(&tables, options)?;
    let written = |line: String| match options.format {
        Format::Markdown => format!("\n{}\n", escape::paragraph(&line)),
        _ => line + "\n",
    };
    Ok(lines.into_iter().map(written).collect())
}
