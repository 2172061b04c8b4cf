//! Summaries become tables: a pure function that connects nowhere.
//!
//! ```text
//! steps ─▶ cells (table) ─▶ footnotes (notes) ─▶ pages (layout, compare …) ─▶ text | markdown | csv | json | html
//!                                           └─▶ charts (chart) ─▶ svg | html
//! ```
//!
//! A table is one workload: the numbers of clients across, one label a line. A cell is the
//! median over the repeats of one invocation; the run is the unit, and nothing averages
//! percentiles. Steps of several invocations share a cell only when plan and settings agree.
//!
//! Above its figure: charts and the interactive page draw what no other writer has.

mod answer;
mod brief;
mod calibration;
mod chart;
mod ci;
mod command;
mod compare;
mod delta;
mod doubt;
mod escape;
mod explain;
mod gate;
mod histogram;
mod html;
mod imported;
mod latency;
mod layout;
mod legend;
mod metric;
mod notes;
mod page;
mod parts;
mod picture;
mod pool;
mod ratio;
mod settings;
mod slo;
mod suites;
mod table;
mod timeline;

pub use brief::Notes;
pub(crate) use calibration::calibration;
pub(crate) use command::quoted;
pub use compare::{Comparison, Question, base_and_new, compare, pair};
pub use doubt::{Doubt, doubtful};
pub use explain::explain;
pub use gate::{Gates, gates, holds};
pub use html::page;
pub(crate) use latency::render_latency;
pub use metric::{FIGURES, Metric, failed_share};
pub use notes::remarks;
pub use picture::picture;

use crate::error::{Error, Result};
use crate::summary::Reported;
pub use crate::terms::{Format, Layout, Picture};
use page::write;
pub(crate) use parts::{Histograms, Parts};
pub(crate) use pool::NEWEST_SETTINGS;
pub(crate) use slo::{probe, searches};

#[expect(clippy::struct_excessive_bools, reason = "each is a flag by itself")]
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub metric: Metric,
    /// Further ones: a table each, behind those of the first.
    pub also: Vec<Metric>,
    pub layout: Layout,
    pub format: Format,
    /// All labels are related to it; where two are compared, the new one is.
    pub baseline: Option<String>,
    /// The label that is compared with the baseline.
    pub new: Option<String>,
    /// Labels in the order of their lines; others follow by the time of their first step.
    pub order: Vec<String>,
    /// Of each label and workload only the newest invocation.
    pub latest: bool,
    /// Refuse a label whose invocations clash: else the newest one is shown.
    pub strict: bool,
    pub partial: bool,
    /// Columns of the terminal that the text goes to, which then has small bars; none elsewhere.
    pub terminal: Option<usize>,
    /// Where all notes are.
    pub notes: Notes,
    /// The paths of the summaries, as they were typed.
    pub source: String,
    /// Show also how the runs of each cell spread.
    pub spread: bool,
}

/// Returns the tables of some steps, as text that ends with a line end.
pub fn render<'a>(steps: impl Into<Reported<'a>>, options: &Options) -> Result<String> {
    let tables = counted(&steps.into(), options)?;
    let series = matches!(options.format, Format::Bencher | Format::Gha);
    let filed = matches!(options.format, Format::Csv | Format::Json);
    let spread = series || options.spread && filed;
    if options.format == Format::Gha {
        one_direction(&tables)?;
    }
    let name = if spread { "spread".to_owned() } else { options.layout.to_string() };
    let mut pages = if spread { Vec::new() } else { layout::pages(&tables, options)? };
    if !spread && options.layout == Layout::Versions && options.format == Format::Json {
        return Ok(layout::json(&tables, options));
    }
    pages.extend(tables.iter().filter(|_| spread || options.spread).map(layout::spread));
    if series && tables.iter().all(|table| table.items().next().is_none()) {
        return Err(Error::data(format!(
            "there is no value of {} in these summaries",
            options.metric
        ))
        .hint("loadgen report shows what there is; a percentile takes enough operations"));
    }
    let lines = remarks_of(&tables, options)?;
    Ok(write(&pages, &name, options.format, options.terminal, (&options.notes, &lines)))
}

/// Refuses numbers of which some are better bigger and some smaller: one file has one kind.
fn one_direction(tables: &[table::Table]) -> Result<()> {
    let up = |table: &&table::Table| table.metric.higher_is_better();
    let (up, down): (Vec<_>, Vec<_>) = tables.iter().partition(up);
    let (Some(up), Some(down)) = (up.first(), down.first()) else { return Ok(()) };
    let [up, down] = [up, down].map(|table| table.metric.to_string());
    Err(Error::usage(format!("--format gha: bigger is better of {up}, smaller of {down}"))
        .hint(format!("a file each: --metric {up}, and --metric {down}")))
}

/// Returns what is said of some tables in short, in whatever layout they are.
fn remarks_of(tables: &[table::Table], options: &Options) -> Result<Vec<String>> {
    let shown = match options.layout {
        Layout::Settings => Vec::new(),
        layout if layout.compares() => delta::of_pair(tables, options)?,
        _ => tables.iter().cloned().map(notes::noted).collect(),
    };
    Ok(brief::below(&shown, &options.notes, &options.source))
}

/// Returns the lines that end a report of some steps, each with its line end.
pub fn closing<'a>(steps: impl Into<Reported<'a>>, options: &Options) -> Result<String> {
    let lines = remarks_of(&table::tables(&steps.into(), options)?, options)?;
    let written = |line: String| match options.format {
        Format::Markdown => format!("\n{}\n", escape::markdown(&line)),
        _ => line + "\n",
    };
    Ok(lines.into_iter().map(written).collect())
}

fn counted<'a>(steps: &Reported<'a>, options: &Options) -> Result<Vec<table::Table<'a>>> {
    layout::check(options)?;
    let metrics = std::iter::once(&options.metric).chain(&options.also);
    let of_metric =
        |metric: &Metric| table::tables(steps, &Options { metric: *metric, ..options.clone() });
    let tables: Vec<table::Table> =
        metrics.map(of_metric).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    // Where invocations clash, the newest is the result, also if nothing of it completed.
    let shows = |line: &table::Line| line.is_shown() || line.clashing > 0;
    let shown = tables.iter().flat_map(|table| &table.lines).any(shows);
    if !shown && !matches!(options.layout, Layout::Outages | Layout::Slo) {
        let began = steps.measured.len();
        return Err(Error::data(format!("no step completed, of {began} that began"))
            .hint("--partial shows what they measured before they ended"));
    }
    let printed = options.layout.has_metric() && !steps.imported.is_empty();
    if printed && tables.iter().all(|table| table.items().next().is_none()) {
        return Err(imported::not_printed(&tables, &steps.imported));
    }
    Ok(tables)
}
