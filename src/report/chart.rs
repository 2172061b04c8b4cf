//! Charts as data: scales, ticks, series, shaded spans. What draws them knows nothing of
//! summaries, and what makes them knows no pixels.

mod scale;
mod timeline;

pub(crate) use scale::{Axis, Scale};
pub(crate) use timeline::{Shown, timelines, vertices_each};

use super::histogram::Curve;
use super::page;
use super::settings::label;
use super::table::{Cell, Column, Table, among};
use super::{Metric, escape};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::Summary;

/// Points of each further nine.
const EACH_NINE: i32 = 5;
/// Nines that a histogram of 64-bit counts could tell.
const NINES_MAX: i32 = 9;
const MS: f64 = 1e3;

/// A chart, and everything that is to be read on it.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// A workload, or a label of it; one line.
    pub of: String,
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    pub spans: Vec<Span>,
    /// A value that everything is to be seen against, such as a ratio of 1.
    pub rule: Option<f64>,
    /// Says a value across; none where pixels tell it well enough.
    pub across: Option<fn(f64) -> String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// A position in [`labels`].
    pub label: usize,
    pub points: Vec<Point>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Point {
    pub x: f64,
    pub y: f64,
    /// Smallest and largest of the repeats, where there are several.
    pub range: Option<(f64, f64)>,
    /// The 95 % interval, where there are enough repeats for one.
    pub interval: Option<(f64, f64)>,
    /// The label's marker stands here.
    pub marked: bool,
    /// The value in full; empty where the drawing tells it well enough.
    pub said: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub kind: SpanKind,
    pub from: f64,
    pub to: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Before the window, or after it.
    Uncounted,
    Outage,
    Errors,
}

impl SpanKind {
    /// Returns the class of its shade, and its name in a legend.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            SpanKind::Uncounted => ("uncounted", "warm-up and drain, not counted"),
            SpanKind::Outage => ("outage", "outage, until the rate was back"),
            SpanKind::Errors => ("errors", "errors"),
        }
    }
}

impl Chart {
    fn new(table: &Table, title: String, x: Axis, y: Axis, series: Vec<Series>) -> Chart {
        let of = escape::line(table.workload);
        Chart { of, title, x, y, series, spans: Vec::new(), rule: None, across: None }
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points)
    }

    pub(crate) fn places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self.points().map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    pub(crate) fn drawn(&self) -> Vec<usize> {
        let mut drawn: Vec<usize> = self.series.iter().map(|series| series.label).collect();
        drawn.sort_unstable();
        drawn.dedup();
        drawn
    }
}

/// Says what the bars at the points of some charts are; nothing where there are none.
pub(crate) fn bars(charts: &[Chart]) -> Option<&'static str> {
    let points = || charts.iter().flat_map(Chart::points);
    let ranges = points().any(|point| point.range.is_some());
    match (ranges, points().any(|point| point.interval.is_some())) {
        (false, false) => None,
        (true, false) => Some("Thin bars: smallest to largest run."),
        (false, true) => Some("Bars with caps: 95 % interval."),
        (true, true) => Some("Bars with caps: 95 % interval. Thin bars: smallest to largest run."),
    }
}

/// The labels of all tables, each once, in the order of their lines: a label's position decides
/// its colour, its marker and its dashes everywhere.
pub(crate) fn labels<'a>(tables: &[Table<'a>]) -> Vec<&'a str> {
    let mut known = std::collections::HashSet::new();
    let lines = tables.iter().flat_map(|table| &table.lines);
    lines.map(|line| line.label).filter(|label| known.insert(*label)).collect()
}

/// Returns a label's position; they come from the same tables.
pub(crate) fn position(labels: &[&str], label: &str) -> usize {
    labels.iter().position(|known| *known == label).expect("a label of these tables")
}

/// `8 clients`, and the rate that was asked of them.
fn at(column: &Column) -> String {
    let clients = crate::terms::clients(column.clients);
    match column.rate {
        None => clients,
        Some(rate) => format!("{clients} at {rate} ops/s"),
    }
}

/// Columns of one chart: positions, and the number of clients where the rate varies.
type Group = (Option<u32>, Vec<usize>);

/// Closed loops in one chart, and open ones in one for each number of clients.
fn groups(table: &Table) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let clients = column.rate.map(|_| column.clients);
        match groups.iter_mut().find(|(known, _)| *known == clients) {
            Some((_, columns)) => columns.push(at),
            None => groups.push((clients, vec![at])),
        }
    }
    groups
}

/// Makes a chart for each group of columns over their clients, or over the rates that were asked.
fn over(
    table: &Table,
    labels: &[&str],
    point: &dyn Fn(&Cell) -> Option<Point>,
    finish: &dyn Fn(Metric, Chart) -> Option<Chart>,
) -> Vec<Chart> {
    let chart = |(clients, columns): Group| {
        let open = clients.is_some();
        let across = |at: usize| {
            let column = &table.columns[at];
            column.per_s().unwrap_or(f64::from(column.clients))
        };
        let series = table.lines.iter().map(|line| {
            let points = columns.iter().filter_map(|at| {
                let point = point(line.cells[*at].as_ref()?)?;
                point.y.is_finite().then(|| Point { x: across(*at), marked: true, ..point })
            });
            Series { label: position(labels, line.label), points: points.collect() }
        });
        let series = series.filter(|series| !series.points.is_empty()).collect();
        let name = if open { "asked ops a second" } else { "clients" };
        let x = Axis::doublings(name, &columns.iter().map(|at| across(*at)).collect::<Vec<f64>>());
        let y = Axis::from_zero("", std::iter::empty());
        let title = clients.map_or_else(String::new, |n| format!(", open loop of {n} clients"));
        let said: fn(f64) -> String = if open {
            |rate| format!("{rate} ops/s asked")
        } else {
            |clients| format!("{clients} {}", if clients < 1.5 { "client" } else { "clients" })
        };
        let chart = Chart { across: Some(said), ..Chart::new(table, title, x, y, series) };
        finish(table.metric.in_loop(open), chart)
    };
    let charts = groups(table).into_iter().filter_map(chart);
    charts.filter(|chart| !chart.series.is_empty()).collect()
}

fn bracket(interval: Option<(f64, f64)>, one: &dyn Fn(f64) -> String) -> String {
    let text = |(low, high): (f64, f64)| format!(" [{}, {}]", one(low), one(high));
    interval.map_or_else(String::new, text)
}

/// Draws the table's numbers with their spread and intervals from zero, times in milliseconds.
pub(crate) fn over_clients(table: &Table, labels: &[&str]) -> Vec<Chart> {
    let scale = if table.metric.unit() == "us" { MS } else { 1.0 };
    let decimals = table.metric.decimals(table.shown().map(|value| value / scale));
    let one = |value: f64| page::number(value / scale, decimals);
    let scaled = |(low, high): (f64, f64)| (low / scale, high / scale);
    let point = |cell: &Cell| {
        let spread = &cell.spread;
        let range = (spread.n > 1).then_some((spread.min, spread.max));
        let of = |(low, high)| format!(" ({}..{} of {})", one(low), one(high), spread.n);
        let said = one(spread.median)
            + &bracket(cell.interval, &one)
            + &range.map_or_else(String::new, of);
        let (range, interval) = (range.map(scaled), cell.interval.map(scaled));
        Some(Point { y: spread.median / scale, range, interval, said, ..Point::default() })
    };
    over(table, labels, &point, &|metric, chart| {
        let highest = chart.points().map(|point| point.range.map_or(point.y, |(_, max)| max));
        let y = Axis::from_zero(with_unit(&metric), highest);
        Some(Chart { title: metric.name() + &chart.title, y, ..chart })
    })
}

fn with_unit(metric: &Metric) -> String {
    match metric.unit() {
        "us" => format!("{}, ms", metric.name()),
        "us/op" => format!("{}, µs", metric.name()),
        "statements/s" | "ops/s" => metric.name(),
        unit => format!("{}, {unit}", metric.name()),
    }
}

/// Draws the ratios of a table that relates to a baseline, higher being better, around a line at 1.
/// Where there is nothing but the baseline itself there is no chart.
pub(crate) fn relative(table: &Table, labels: &[&str]) -> Vec<Chart> {
    let Some(base) = table.baseline.as_deref() else { return Vec::new() };
    let one = |ratio: f64| page::number(ratio, 3);
    let point = |cell: &Cell| {
        let (y, interval) = (cell.relative?, cell.relative_interval);
        Some(Point { y, interval, said: one(y) + &bracket(interval, &one), ..Point::default() })
    };
    over(table, labels, &point, &|metric, chart| {
        let base_at = position(labels, base);
        chart.series.iter().find(|series| series.label != base_at)?;
        let values = chart.points().flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        let mut y = Axis::around("ratio, higher is better", 1.0, values);
        if y.ticks.first().is_some_and(|tick| tick.at > 0.0) {
            y.name.push_str("; the axis does not begin at 0");
        }
        let title = format!("{} relative to {}{}", metric.name(), label(base), chart.title);
        Some(Chart { title, y, rule: Some(1.0), ..chart })
    })
}

/// Draws latency by percentile, as HDR plots have it: each further nine takes the same length. A
/// chart for each column: the medians of the repeats' percentiles, up to the last one beyond which
/// the repeat with the fewest values has enough of them.
///
/// # Errors
///
/// A damaged histogram, by the name of its step.
pub(crate) fn percentiles(table: &Table, labels: &[&str]) -> Result<Vec<Chart>> {
    let mut charts = Vec::new();
    for column in &table.columns {
        let mut series = Vec::new();
        for line in &table.lines {
            let points = curve(&among(column, &line.steps))?;
            if !points.is_empty() {
                series.push(Series { label: position(labels, line.label), points });
            }
        }
        if series.is_empty() {
            continue;
        }
        let what = if column.rate.is_some() { "response time" } else { "service time" };
        let points = || series.iter().flat_map(|series| &series.points);
        let share = points().map(|point| point.x).fold(0.9, f64::max);
        let x = Axis::percentiles("percentile", share);
        let y = Axis::decades(format!("{what}, ms (logarithmic)"), points().map(|point| point.y));
        let chart = Chart::new(table, format!("{what}, {}", at(column)), x, y, series);
        charts.push(Chart { across: Some(percentile), ..chart });
    }
    Ok(charts)
}

/// `p99.9`, with so many digits that it is told from its neighbours.
fn percentile(share: f64) -> String {
    let nines = -(1.0 - share).max(1e-12).log10();
    // What is a whole nine but for rounding counts as one.
    let text = format!("{:.*}", (nines + 1e-6) as usize, share * 100.0);
    let text = if text.contains('.') { text.trim_end_matches('0') } else { &text };
    format!("p{}", text.trim_end_matches('.'))
}

/// Returns the medians over the repeats.
fn curve(steps: &[&Summary]) -> Result<Vec<Point>> {
    let mut curves = Vec::new();
    for step in steps.iter().filter(|step| step.latency.own().count > 0) {
        let curve = Curve::read(&step.latency.own().histogram).map_err(|why| {
            Error::data(format!("the histogram of step {}: {why}", escape::clip(&step.step_id, 60)))
        })?;
        curves.extend(curve);
    }
    let Some(count) = curves.iter().map(Curve::count).min() else { return Ok(Vec::new()) };
    let shares = (0..=EACH_NINE * NINES_MAX)
        .map(|i| (i, 1.0 - 10_f64.powf(-f64::from(i) / f64::from(EACH_NINE))))
        .take_while(|(_, share)| (1.0 - share) * count as f64 >= stats::BEYOND_MIN as f64);
    let points = shares.filter_map(|(i, x)| {
        let values = curves.iter().map(|curve| curve.percentile_us(x * 100.0) / MS);
        let y = stats::median(&values.collect::<Vec<f64>>())?;
        let said = page::number(y, page::decimals([y]));
        // Markers at whole nines, so that lines are told apart without colour.
        Some(Point { x, y, marked: i > 0 && i % EACH_NINE == 0, said, ..Point::default() })
    });
    Ok(points.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_named_as_finely_as_they_lie() {
        let named = [0.0, 0.5, 0.9, 0.99, 0.999, 0.999_99].map(percentile);
        assert_eq!(named, ["p0", "p50", "p90", "p99", "p99.9", "p99.999"]);
    }
}
