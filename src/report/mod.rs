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

mod calibration;
mod chart;
mod compare;
mod escape;
mod explain;
mod gate;
mod histogram;
mod html;
mod layout;
mod metric;
mod notes;
mod page;
mod table;

pub(crate) use calibration::calibration;
pub use chart::picture;
pub use compare::{Comparison, Doubt, Question, compare, doubtful};
pub use explain::explain;
pub use gate::{Gates, failed_share, gates, holds};
pub use gate::{Probe, Search, path};
pub(crate) use gate::{may_hold, quantity_shown};
pub use html::page;
#[cfg(test)]
pub(crate) use metric::FIGURES;
pub use metric::Metric;
pub use notes::remarks;

use crate::error::{Error, Result};
use crate::summary::Summary;
pub use crate::terms::{Format, Layout, Picture};
use page::write;

#[derive(Debug, Clone, Default)]
pub struct Options {
    pub metric: Metric,
    pub layout: Layout,
    pub format: Format,
    pub baseline: Option<String>,
    /// Where a change or a cost begins: the label without it.
    pub from: Option<String>,
    /// The label with it.
    pub to: Option<String>,
    /// Labels in the order of their lines; others follow by the time of their first step.
    pub order: Vec<String>,
    /// Of each label and workload only the newest invocation.
    pub latest: bool,
    pub partial: bool,
    /// Columns of the terminal that the text goes to, which then has small bars; none elsewhere.
    pub terminal: Option<usize>,
    /// Show also how the runs of each cell spread.
    pub spread: bool,
}

/// Returns the tables of some steps, as text that ends with a line end.
pub fn render(steps: &[&Summary], options: &Options) -> Result<String> {
    let tables = counted(steps, options)?;
    let spread = options.spread && matches!(options.format, Format::Csv | Format::Json);
    let name = if spread { "spread".to_owned() } else { options.layout.to_string() };
    let mut pages = if spread { Vec::new() } else { layout::pages(&tables, options)? };
    if !spread && options.layout == Layout::Versions && options.format == Format::Json {
        return Ok(layout::json(&tables, options));
    }
    pages.extend(tables.iter().filter(|_| options.spread).map(layout::spread));
    Ok(write(&pages, &name, options.format, options.terminal))
}

fn counted<'a>(steps: &[&'a Summary], options: &Options) -> Result<Vec<table::Table<'a>>> {
    layout::check(options)?;
    let tables = table::tables(steps, options)?;
    let completed = tables.iter().flat_map(|table| &table.lines).any(|line| !line.steps.is_empty());
    if !completed && options.layout != Layout::Outages {
        return Err(Error::data(format!("none of {} steps completed", steps.len()))
            .hint("--partial shows what they measured before they ended"));
    }
    Ok(tables)
}
