//! Charts as data: scales, ticks, series, shaded spans. What draws them knows nothing of
//! summaries, and what makes them knows no pixels.

mod percentiles;
mod rates;
mod scale;
mod style;
mod timeline;

pub(crate) use percentiles::percentiles;
pub(crate) use rates::{over_clients, relative};
pub(crate) use scale::{Axis, Scale};
pub(crate) use style::{COLOURS, Marker, Style};
pub(crate) use timeline::{Pulse, timelines, vertices_each};

use super::pivot::{Column, Table};
use super::text;

/// A chart, and everything that is to be read on it.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// What it is of: a workload, or a label of it; one line.
    pub(crate) of: String,
    /// What it shows; one line.
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) spans: Vec<Span>,
    /// A value that everything is to be seen against, such as a ratio of 1.
    pub(crate) rule: Option<f64>,
    /// How the values across are said; none where pixels tell them well enough.
    pub(crate) across: Option<fn(f64) -> String>,
}

impl Chart {
    /// Whether there is anything to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// All values across that have a point, in their order.
    pub(crate) fn places(&self) -> Vec<f64> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let mut places: Vec<f64> = points.map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }
}

/// One line of a chart.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Which label it is of: a position in [`labels`].
    pub(crate) label: usize,
    /// From left to right.
    pub(crate) points: Vec<Point>,
}

/// One point of a line.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Smallest and largest of the repeats, where there are several.
    pub(crate) range: Option<(f64, f64)>,
    /// The 95 % interval, where there are enough repeats for one.
    pub(crate) interval: Option<(f64, f64)>,
    /// Whether the label's marker stands here.
    pub(crate) marked: bool,
    /// The value in full; empty where the drawing tells it well enough.
    pub(crate) said: String,
}

/// What the bars at the points of some charts are; nothing where there are none.
pub(crate) fn bars(charts: &[Chart]) -> Option<&'static str> {
    let points = || charts.iter().flat_map(|chart| &chart.series).flat_map(|s| &s.points);
    let ranges = points().any(|point| point.range.is_some());
    match (ranges, points().any(|point| point.interval.is_some())) {
        (false, false) => None,
        (true, false) => Some("Thin bars: smallest to largest run."),
        (false, true) => Some("Bars with caps: 95 % interval."),
        (true, true) => Some("Bars with caps: 95 % interval. Thin bars: smallest to largest run."),
    }
}

/// A part of the time in which something held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub(crate) kind: SpanKind,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// Why a span is shaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Before the window, or after it: not counted.
    Uncounted,
    /// Nobody was served.
    Outage,
    /// Operations failed.
    Errors,
}

impl SpanKind {
    /// For legends.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SpanKind::Uncounted => "warm-up and drain, not counted",
            SpanKind::Outage => "outage, until the rate was back",
            SpanKind::Errors => "errors",
        }
    }
}

/// The labels of all tables, each once, in the order of their lines: a label's position decides
/// its colour, its marker and its dashes everywhere.
pub(crate) fn labels<'a>(tables: &[Table<'a>]) -> Vec<&'a str> {
    let mut labels: Vec<&str> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for line in tables.iter().flat_map(|table| &table.lines) {
        if known.insert(line.label) {
            labels.push(line.label);
        }
    }
    labels
}

/// A label's position; they come from the same tables.
pub(crate) fn position(labels: &[&str], label: &str) -> usize {
    labels.iter().position(|known| *known == label).unwrap_or(0)
}

/// A label as people see it.
pub(crate) fn shown(label: &str) -> String {
    text::label(label)
}

/// `8 clients`, and the rate that was asked of them.
fn at(column: &Column) -> String {
    let noun = if column.clients == 1 { "client" } else { "clients" };
    match column.rate {
        None => format!("{} {noun}", column.clients),
        Some(rate) => format!("{} {noun} at {rate} ops/s", column.clients),
    }
}
