//! Charts: first as data, axes, lines, shaded spans, without pixels; then as SVG, inside a page or as a
//! file for a write-up. What tells lines apart is colour, marker and dashes, never colour alone.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::escape;
use super::histogram::{EACH_NINE, NINES_MAX, curve_us, nines, shares};
use super::labels::{Labels, position};
use super::metric::MS;
use super::names::label;
use super::table::{LabelRow, TableCell, WorkloadTable};
use super::value::{decimals, number};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::Summary;
use crate::terms::{self, Cell};

const TICKS: f64 = 5.0;

/// A value this many times the usual ones is cut.
const BURST_MIN: f64 = 3.0;
/// Marks a value above the plot, at its upper edge.
const CUT: &str = "l-4,7h8z";

#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// A workload, or a label of it; one line.
    pub of: String,
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    pub spans: Vec<Span>,
    /// A value that all is to be seen against.
    pub rule: Option<f64>,
    pub across: Option<fn(f64) -> String>,
    /// Words the value of a point without details; likewise.
    pub up: Option<fn(f64) -> String>,
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
    pub marked: bool,
    /// Apart, because most points have none.
    pub detail: Option<Box<Detail>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Detail {
    /// The 95 % interval of the value, then the smallest and largest repeat.
    pub bounds: [Bounds; 2],
    pub text: String,
}

impl Point {
    /// The 95 % interval, and the range of the runs.
    fn bounds(&self) -> [Bounds; 2] {
        self.detail.as_ref().map_or([None; 2], |detail| detail.bounds)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub shade: Shade,
    pub from: f64,
    pub to: f64,
}

pub(crate) type Shade = (&'static str, &'static str);

/// Before the window, or after it.
pub(super) const UNCOUNTED: Shade = ("uncounted", "warm-up and drain, not counted");
pub(super) const OUTAGE: Shade = ("outage", "outage, until the rate was back");
pub(super) const ERRORS: Shade = ("errors", "errors");

impl Chart {
    pub(super) fn new(
        table: &WorkloadTable,
        title: String,
        x: Axis,
        y: Axis,
        series: Vec<Series>,
    ) -> Chart {
        let of = escape::line(table.workload);
        Chart { of, title, x, y, series, spans: Vec::new(), rule: None, across: None, up: None }
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points)
    }
}

pub(crate) fn drawn(charts: &[Chart]) -> BTreeSet<usize> {
    charts.iter().flat_map(|chart| &chart.series).map(|series| series.label).collect()
}

pub(crate) fn bars(charts: &[Chart]) -> Option<&'static str> {
    let any = charts.iter().flat_map(Chart::points).any(|point| point.bounds() != [None, None]);
    any.then_some("Bars with caps: 95 % interval. Thin bars: smallest to largest run.")
}

pub(crate) fn at(column: &Cell) -> String {
    let rate = column.rate.map_or_else(String::new, |rate| format!(" at {rate} ops/s"));
    terms::clients(column.clients) + &rate
}

/// Nothing but a baseline itself is no chart.
pub(crate) fn over_clients(table: &WorkloadTable, labels: &Labels) -> Vec<Chart> {
    let mut groups: BTreeMap<Option<u32>, Vec<Cell>> = BTreeMap::new();
    for column in &table.columns {
        groups.entry(column.rate.map(|_| column.clients)).or_default().push(*column);
    }
    let charts = groups.iter().map(|(clients, columns)| group(table, labels, *clients, columns));
    charts.flatten().collect()
}

fn group(
    table: &WorkloadTable,
    labels: &Labels,
    open: Option<u32>,
    columns: &[Cell],
) -> Option<Chart> {
    let base = table.baseline.as_deref();
    let across = |column: &Cell| column.per_s().unwrap_or(f64::from(column.clients));
    let (unit, name) = match (base, table.metric.unit()) {
        (Some(_), _) => (1.0, "ratio, higher is better"),
        (None, (unit, name, _)) => (unit, name),
    };
    let decimals = if base.is_some() { 3 } else { table.metric.decimals(table.numbers()) };
    let of_line = |line: &LabelRow| {
        let point = |column: &Cell| {
            let cell = line.at(column)?;
            let (y, bounds) = (table.number(cell)? / unit, bounds(table, cell, unit));
            let mut text = number(y, decimals);
            let [shown, runs] = bounds_in_words(bounds, decimals);
            text.extend(shown.map(|interval| format!(" {interval}")));
            text.extend(runs.map(|range| format!(" ({range} of {})", cell.spread.n)));
            let detail = Some(Box::new(Detail { bounds, text }));
            y.is_finite().then(|| Point { x: across(column), y, marked: true, detail })
        };
        let points = columns.iter().filter_map(point).collect();
        Series { label: position(labels, line.label), points }
    };
    let mut series: Vec<Series> = table.lines.iter().map(of_line).collect();
    series.retain(|series| !series.points.is_empty());
    series.iter().find(|series| base != Some(labels[series.label]))?;
    let ends = series.iter().flat_map(|series| &series.points).flat_map(|point| {
        let [interval, range] = point.bounds();
        let (low, high) = range.or(interval).unwrap_or((point.y, point.y));
        [point.y, low, high]
    });
    let mut y = Axis::around(name, if base.is_some() { 1.0 } else { 0.0 }, ends);
    if y.from > 0.0 {
        y.name.push_str("; the axis does not begin at 0");
    }
    let mut title = table.metric.in_loop(open.is_some()).name();
    title.extend(base.map(|base| format!(" relative to {}", label(base))));
    title.extend(open.map(|of| format!(", open loop of {}", terms::clients(of))));
    let (name, value_text): (_, fn(f64) -> String) = match open {
        Some(_) => ("asked ops a second", |rate| format!("{rate} ops/s asked")),
        None => ("clients", |clients| terms::clients(clients as u64)),
    };
    let x = Axis::measured(name, &columns.iter().map(across).collect::<Vec<f64>>());
    let chart = Chart::new(table, title, x, y, series);
    Some(Chart { rule: base.map(|_| 1.0), across: Some(value_text), ..chart })
}

pub(crate) type Bounds = Option<(f64, f64)>;

pub(crate) fn bounds(table: &WorkloadTable, cell: &TableCell, unit: f64) -> [Bounds; 2] {
    let spread = &cell.spread;
    let bounds = match table.baseline {
        Some(_) => [cell.relative_interval, None],
        None => [cell.interval, (spread.n > 1).then_some((spread.min, spread.max))],
    };
    bounds.map(|bounds| bounds.map(|(low, high)| (low / unit, high / unit)))
}

pub(crate) fn bounds_in_words(
    [interval, range]: [Bounds; 2],
    decimals: usize,
) -> [Option<String>; 2] {
    let shown = |value| number(value, decimals);
    [
        interval.map(|(low, high)| format!("[{}, {}]", shown(low), shown(high))),
        range.map(|(low, high)| format!("{}..{}", shown(low), shown(high))),
    ]
}

/// Ends at the last percentile beyond which the repeat with the fewest values has enough of them.
pub(crate) fn percentiles(table: &WorkloadTable, labels: &Labels) -> Result<Vec<Chart>> {
    let mut charts = Vec::new();
    let mut all: BTreeMap<Cell, Vec<Series>> = BTreeMap::new();
    for line in &table.lines {
        for (column, steps) in line.steps_by_column() {
            let (label, points) = (position(labels, line.label), curve(&steps)?);
            if !points.is_empty() {
                all.entry(column).or_default().push(Series { label, points });
            }
        }
    }
    for (column, series) in all {
        let what = if column.rate.is_some() { "response time" } else { "service time" };
        let points = || series.iter().flat_map(|series| &series.points);
        let x = Axis::percentiles(points().map(|point| point.x).fold(0.9, f64::max));
        let y = Axis::decades(&format!("{what}, ms (logarithmic)"), points().map(|point| point.y));
        let chart = Chart::new(table, format!("{what}, {}", at(&column)), x, y, series);
        let up = |ms| number(ms, decimals([ms]));
        charts.push(Chart { across: Some(percentile), up: Some(up), ..chart });
    }
    Ok(charts)
}

fn curve(steps: &[&Summary]) -> Result<Vec<Point>> {
    let mut curves = Vec::new();
    for step in steps.iter().filter(|step| step.latency.own().count > 0) {
        curves.extend(curve_us(step.latency.own()).map_err(|why| {
            Error::data(format!("the histogram of step {}: {why}", escape::clip(&step.step_id, 60)))
                .hint("tables do without it: --format text")
        })?);
    }
    let count = curves.iter().map(|curve| curve.len()).min().unwrap_or(0);
    let points = shares().take(count).enumerate().filter_map(|(i, x)| {
        let values = curves.iter().map(|curve| curve[i] / MS);
        let y = stats::median(&values.collect::<Vec<f64>>())?;
        // Markers at whole nines, so that lines are told apart without colour.
        let marked = i > 0 && i % EACH_NINE == 0;
        Some(Point { x, y, marked, detail: None })
    });
    Ok(points.collect())
}

/// `p99.9`, with so many digits that it is told from its neighbours.
fn percentile(share: f64) -> String {
    let nines = -(1.0 - share).max(1e-12).log10();
    // Rounding must not turn a whole nine into less.
    let text = format!("{:.*}", (nines + 1e-6) as usize, share * 100.0);
    let text = if text.contains('.') { text.trim_end_matches('0') } else { &text };
    format!("p{}", text.trim_end_matches('.'))
}

fn logarithmic(value: f64) -> f64 {
    value.max(f64::MIN_POSITIVE).log10()
}

/// Shares of all values below 1, as in HDR plots.
fn tail(share: f64) -> f64 {
    -logarithmic(1.0 - share.clamp(0.0, 1.0))
}

/// Bounds, and what values are warped to: its equal differences are equal lengths.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub name: String,
    pub from: f64,
    pub to: f64,
    warp: fn(f64) -> f64,
    pub ticks: Vec<(f64, String)>,
}

fn ends(values: impl Iterator<Item = f64>) -> Bounds {
    let finite = values.filter(|value| value.is_finite()).map(|value| (value, value));
    finite.reduce(|(low, high), (one, other)| (low.min(one), high.max(other)))
}

impl Axis {
    pub(crate) fn at(&self, value: f64) -> f64 {
        let [value, from, to] = [value, self.from, self.to].map(self.warp);
        let at = (value - from) / (to - from);
        if at.is_nan() { 0.0 } else { at.clamp(0.0, 1.0) }
    }

    /// Makes an axis of round numbers around a value and all others, none below zero.
    pub(super) fn around(name: &str, centre: f64, values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = ends(values.chain([centre])).expect("the centre at least");
        // Ratios do not end at the axis; zero does.
        let room = if centre > 0.0 { ((high - low) / 10.0).max(centre * 0.02) } else { 0.0 };
        let (low, high) = ((low - room).max(0.0), high + room);
        let high = if high.is_finite() && high > low { high } else { low + 1.0 };
        let step = nice((high - low) / TICKS);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let decimals = if step >= 1.0 { 0 } else { (-step.log10()).ceil() as usize };
        // A handful whatever the values, because the step is their range over five.
        let count = (last - first).clamp(1.0, 4.0 * TICKS) as u32;
        let places = (0..=count).map(|i| (first + f64::from(i)) * step);
        let ticks: Vec<(f64, String)> = places.map(|at| (at, short(at, decimals))).collect();
        let (from, to) = (ticks[0].0, ticks[count as usize].0);
        Axis { name: name.to_owned(), from, to, warp: |value| value, ticks }
    }

    /// A few values that are much higher do not make the others flat: they are cut; the name says how high they are.
    pub(super) fn of_bulk(name: &str, mut values: Vec<f64>) -> Axis {
        values.sort_by(f64::total_cmp);
        let most = values.last().copied().unwrap_or_default();
        let usual = values.get(values.len() * 95 / 100).copied().unwrap_or(most);
        if most <= usual * BURST_MIN || usual <= 0.0 {
            return Axis::around(name, 0.0, values.into_iter());
        }
        let name = format!("{name} (▲ up to {})", short(most, decimals([most])));
        let bulk = values.into_iter().filter(|value| *value <= usual * BURST_MIN);
        Axis::around(&name, 0.0, bulk)
    }

    fn decades(name: &str, values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = ends(values.map(f64::log10)).unwrap_or((0.0, 1.0));
        let first = low.floor() as i32;
        let last = (high.ceil() as i32).max(first + 1);
        // Within two decades 2 and 5 help to read.
        let between: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let (from, to) = (10_f64.powi(first), 10_f64.powi(last));
        let places = (first..=last).flat_map(|power| between.iter().map(move |m| (power, *m)));
        let places = places.map(|(power, m)| (m * 10_f64.powi(power), (-power).max(0) as usize));
        let ticks = places.filter(|(at, _)| *at <= to).map(|(at, digits)| (at, short(at, digits)));
        Axis { name: name.to_owned(), from, to, warp: logarithmic, ticks: ticks.collect() }
    }

    fn measured(name: &str, values: &[f64]) -> Axis {
        let (low, high) = ends(values.iter().copied()).unwrap_or((1.0, 1.0));
        // A single value stands in the middle.
        let (from, to) = if low < high { (low, high) } else { (low / 2.0, low * 2.0) };
        // A rate that is asked for has three decimals at most.
        let scales = [1.0, 10.0, 100.0];
        let is_whole = |scale: &f64| {
            values.iter().all(|value| (value * scale - (value * scale).round()).abs() < 1e-6)
        };
        let decimals = scales.iter().position(is_whole).unwrap_or(scales.len());
        let ticks = values.iter().map(|at| (*at, short(*at, decimals))).collect();
        Axis { name: name.to_owned(), from, to, warp: logarithmic, ticks }
    }

    fn percentiles(share: f64) -> Axis {
        let places = [0.0, 0.5].into_iter().chain((1..=NINES_MAX).map(|n| nines(n as f64)));
        let ticks = places.filter(|at| *at <= share).map(|at| (at, percentile(at)[1..].to_owned()));
        let (name, ticks) = ("percentile".to_owned(), ticks.collect());
        Axis { name, from: 0.0, to: share, warp: tail, ticks }
    }

    /// Makes an axis from zero that ends where the values end: for times.
    pub(super) fn elapsed(name: &str, end: f64) -> Axis {
        let mut axis = Axis::around(name, 0.0, [end].into_iter());
        if end.is_finite() && end > 0.0 {
            axis.ticks.retain(|(at, _)| *at <= end);
            axis.to = end;
        }
        axis
    }
}

/// Returns the next of 1, 2, 5, 10 … times a power of ten.
fn nice(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let power = if power.is_finite() && power > 0.0 { power } else { 1.0 };
    let of = |factor: f64| factor * power;
    [1.0, 2.0, 5.0].map(of).into_iter().find(|nice| *nice >= step * 0.999).unwrap_or(of(10.0))
}

/// Returns a number with `k`, `M` or `G` where that leaves it short; of 1024 digits say more.
fn short(value: f64, decimals: usize) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let unit = units.into_iter().find(|(unit, _)| value.abs() >= *unit);
    let whole = |scaled: f64, digits: i32| {
        let scaled = scaled * 10_f64.powi(digits);
        (scaled - scaled.round()).abs() < 1e-9
    };
    let found = unit.and_then(|(unit, suffix)| {
        let digits = (0..=2).find(|digits| whole(value / unit, *digits))?;
        Some(number(value / unit, digits as usize) + suffix)
    });
    found.unwrap_or_else(|| number(value, decimals))
}

pub(crate) type Size = (f64, f64);

pub(crate) const MARGIN: f64 = 12.0;
/// Width of a character of a tick, about.
pub(crate) const CHAR: f64 = 6.6;
const APART: f64 = 8.0;
const CAP: f64 = 3.0;
/// From the bars of one line to those of the next, and of all together.
const BARS_APART: f64 = 3.0;
const BARS_MAX: f64 = 14.0;
/// Room at both sides of what was measured at some places only.
const INSET: f64 = 10.0;
const SPAN_MIN: f64 = 1.5;
/// A line of what stands below the charts.
pub(crate) const LINE: f64 = 20.0;

/// Dashes and gaps of a line, as `stroke-dasharray` takes them.
const DASHES: [Option<&str>; 5] =
    [None, Some("6 3"), Some("2 3"), Some("9 3 2 3"), Some("9 3 2 3 2 3")];
/// Paths around a point: circle, square, triangle, diamond, reversed triangle, cross, plus, hourglass.
const MARKERS: [&str; 8] = [
    "m-3.2,0a3.2,3.2 0 1 0 6.4,0a3.2,3.2 0 1 0 -6.4,0z",
    "m-2.8,-2.8h5.6v5.6h-5.6z",
    "m0,-4l3.6,6.4h-7.2z",
    "m0,-4l3.8,4l-3.8,4l-3.8,-4z",
    "m0,4l3.6,-6.4h-7.2z",
    "m-3,-3l6,6m0,-6l-6,6",
    "m-4,0h8m-4,-4v8",
    "m-3.2,-3.2h6.4l-6.4,6.4h6.4z",
];

pub(crate) fn class(label: usize) -> String {
    format!("c{}", label % MARKERS.len())
}

/// Returns marker and dashes of a label. Eight differ in everything, and 320 in something.
fn marker_and_dashes(label: usize) -> (&'static str, Option<&'static str>) {
    let round = label / MARKERS.len();
    let marker = MARKERS[(label + round / DASHES.len()) % MARKERS.len()];
    (marker, DASHES[round % DASHES.len()])
}

/// The style of a page: colours on white and on black, rules of drawings, then those of pages alone.
pub(crate) const STYLE: &str = include_str!("html/style.css");

/// Returns a piece of a label's line with its marker, 28 by 12.
pub(crate) fn sample(label: usize) -> Markup {
    let (marker, dashes) = marker_and_dashes(label);
    html! {
        path.l d="M1,6H27" stroke-dasharray=[dashes] {}
        path.m d={ "M14,6" (marker) } {}
    }
}

/// A chart and the rectangle of its values, in pixels.
#[derive(Clone, Copy)]
pub(crate) struct Plot<'a> {
    chart: &'a Chart,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    /// Between the rectangle's sides and the first and last point: bars stand beside those.
    inset: f64,
}

impl Plot<'_> {
    pub(crate) fn new(chart: &Chart, size: Size) -> Plot<'_> {
        let widest = chart.y.ticks.iter().map(|(_, text)| text.chars().count()).max();
        let left = widest.unwrap_or(1) as f64 * CHAR + 12.0;
        let inset = if chart.across.is_some() { INSET } else { 0.0 };
        Plot { chart, left, right: size.0 - 14.0, top: 22.0, bottom: size.1 - 38.0, inset }
    }

    pub(crate) fn x(&self, value: f64) -> f64 {
        let width = self.right - self.left - 2.0 * self.inset;
        self.left + self.inset + self.chart.x.at(value) * width
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.chart.y.at(value) * (self.bottom - self.top)
    }

    fn level(&self, y: f64) -> String {
        format!("M{},{}H{}", px(self.left), px(y), px(self.right))
    }

    /// Returns the ticks across that do not touch each other; the last one is always there.
    fn spaced(&self) -> Vec<(f64, &str)> {
        let half = |text: &str| text.chars().count() as f64 * CHAR / 2.0;
        let mut kept: Vec<(f64, &str)> = Vec::new();
        for (at, text) in self.chart.x.ticks.iter().rev() {
            let x = self.x(*at);
            if kept.last().is_none_or(|(next, of)| x + half(text) + APART <= next - half(of)) {
                kept.push((x, text));
            }
        }
        kept
    }
}

/// Returns a coordinate with a tenth of a pixel.
pub(crate) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

pub(crate) fn draw(chart: &Chart, size: Size) -> Markup {
    let plot = Plot::new(chart, size);
    let across = plot.spaced();
    let levels: String = chart.y.ticks.iter().map(|(at, _)| plot.level(plot.y(*at))).collect();
    // The bars of each line stand at their own distance from the points, so that none hides another.
    let of = chart.series.len() as f64;
    let aside = |at: usize| ((at as f64 + 0.5) / of - 0.5) * (of * BARS_APART).min(BARS_MAX);
    let feet = across.iter().map(|(x, _)| format!("M{},{}v4", px(*x), px(plot.bottom)));
    html! {
        @for span in &chart.spans {
            @let (from, to) = (plot.x(span.from), plot.x(span.to));
            @let width = (to - from).max(SPAN_MIN);
            rect class=(span.shade.0) x=(px(from.min(plot.right - width))) y=(px(plot.top))
                width=(px(width)) height=(px(plot.bottom - plot.top)) {}
        }
        path.grid d={ (levels) (feet.collect::<String>()) } {}
        path.axis d=(plot.level(plot.bottom)) {}
        @for (at, text) in &chart.y.ticks {
            text.end x=(px(plot.left - 6.0)) y=(px(plot.y(*at) + 4.0)) { (text) }
        }
        @for (x, text) in across { text.mid x=(px(x)) y=(px(plot.bottom + 16.0)) { (text) } }
        text.name x="2" y="12" { (chart.y.name) }
        text.name.mid x=(px(f64::midpoint(plot.left, plot.right))) y=(px(size.1 - 5.0)) { (chart.x.name) }
        @if let Some(value) = chart.rule { path.rule d=(plot.level(plot.y(value))) {} }
        @for (at, series) in chart.series.iter().enumerate() { (line(plot, series, aside(at))) }
    }
}

fn line(plot: Plot, series: &Series, aside: f64) -> Markup {
    let (marker, dashes) = marker_and_dashes(series.label);
    let points = &series.points;
    let place = |point: &Point| format!("{},{}", px(plot.x(point.x)), px(plot.y(point.y)));
    let bars = |which: usize, cap: f64| -> String {
        let bar = |point: &Point| {
            let x = plot.x(point.x) + aside;
            let (low, high) = point.bounds()[which]?;
            let [low, high] = [low, high].map(|at| px(plot.y(at)));
            let (left, right, x) = (px(x - cap), px(x + cap), px(x));
            let caps = format!("M{left},{high}H{right}M{left},{low}H{right}");
            Some(format!("M{x},{high}V{low}{}", if cap > 0.0 { &caps } else { "" }))
        };
        points.iter().filter_map(bar).collect()
    };
    let (intervals, spread) = (bars(0, CAP), bars(1, 0.0));
    let path = points.iter().map(place).collect::<Vec<String>>().join(" ");
    // A dot: a line needs an end.
    let dot = if points.len() == 1 { "h0" } else { "" };
    let marked = points.iter().filter(|point| point.marked);
    let markers = marked.map(|point| format!("M{}{marker}", place(point)));
    let cut = points.iter().filter(|point| point.y > plot.chart.y.to);
    let cut = cut.map(|point| format!("M{},{}{CUT}", px(plot.x(point.x)), px(plot.top)));
    let markers: String = markers.chain(cut).collect();
    let text = |point: &Point| match &point.detail {
        Some(detail) => Some(detail.text.clone()),
        None => Some((plot.chart.up?)(point.y)),
    };
    let texts: Vec<String> = points.iter().filter_map(text).collect();
    let texts = (!texts.is_empty()).then(|| texts.join("|"));
    html! {
        g class={ "s" (series.label) " " (class(series.label)) } data-v=[texts] {
            @if !spread.is_empty() { path.e d=(spread) {} }
            @if !intervals.is_empty() { path.i d=(intervals) {} }
            path.l d={ "M" (path) (dot) } stroke-dasharray=[dashes] {}
            @if !markers.is_empty() { path.m d=(markers) {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_are_named_as_finely_as_they_lie() {
        let named = [0.0, 0.5, 0.9, 0.99, 0.999, 0.999_99].map(percentile);
        assert_eq!(named, ["p0", "p50", "p90", "p99", "p99.9", "p99.999"]);
    }

    #[test]
    fn an_error_names_what_does_without_the_histogram_when_that_is_damaged() {
        let mut step = Summary::sound();
        step.latency.service.histogram = "AAAA".to_owned();
        let error = curve(&[&step]).expect_err("it is damaged");
        assert!(!error.hints().is_empty());
    }

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers_that_reach_around_the_values() {
        let axis = Axis::around("QPS", 0.0, [26747.0, 114_046.0].into_iter());
        assert_eq!(texts(&axis), ["0", "50k", "100k", "150k"]);
        assert!((axis.at(75_000.0) - 0.5).abs() < 1e-12);
        // 1.15 times 100 is less than 115.
        let ratio = Axis::around("ratio", 1150.0, [1010.0, 1200.0].into_iter());
        assert_eq!(texts(&ratio), ["950", "1k", "1.05k", "1.1k", "1.15k", "1.2k", "1.25k"]);
        let small = Axis::around("ms", 0.0, [0.31, 0.07].into_iter());
        assert_eq!(texts(&small), ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        let ratio = Axis::around("ratio", 1.0, [0.93, 1.02].into_iter());
        assert_eq!(texts(&ratio), ["0.90", "0.95", "1.00", "1.05"]);
        assert_eq!(texts(&Axis::around("errors", 0.0, std::iter::empty()))[0], "0.0");
    }

    #[test]
    fn a_burst_does_not_make_the_bulk_flat() {
        let mut values = vec![1000.0; 60];
        assert!(Axis::of_bulk("", values.clone()).to >= 1000.0);
        values[20] = 50_000.0;
        let axis = Axis::of_bulk("", values.clone());
        assert!((1000.0..=3000.0).contains(&axis.to), "{}", axis.to);
        // Less than that, or more than a few of them, is no burst.
        values[20] = 2500.0;
        assert!(Axis::of_bulk("", values.clone()).to >= 2500.0);
        values[..6].fill(50_000.0);
        assert!(Axis::of_bulk("", values).to >= 50_000.0);
        assert!(Axis::of_bulk("", Vec::new()).to > 0.0);
        let mut small = vec![0.05; 60];
        small[20] = 0.4;
        assert_eq!(Axis::of_bulk("ms", small).name, "ms (▲ up to 0.400)");
    }

    #[test]
    fn an_axis_names_what_was_measured() {
        let axis = Axis::measured("clients", &[8.0, 16.0, 256.0, 4096.0, 10_000.0]);
        assert_eq!(texts(&axis), ["8", "16", "256", "4096", "10k"]);
        let at = axis.at(16.0);
        assert!((at - 1.0 / (10_000_f64 / 8.0).log2()).abs() < 1e-12, "{at}");
        assert!((Axis::measured("clients", &[64.0]).at(64.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn each_nine_of_a_percentile_takes_the_same_length() {
        let axis = Axis::percentiles(nines(4.0));
        let at = [0.0, 0.9, 0.99, 0.999, 0.9999].map(|share| (axis.at(share) * 4e9).round());
        assert_eq!(at.map(|at: f64| at as i64), [0, 1, 2, 3, 4].map(|at| at * 1_000_000_000));
        assert_eq!(texts(&axis), ["0", "50", "90", "99", "99.9", "99.99"]);
    }

    #[test]
    fn decades_hold_their_values() {
        let axis = Axis::decades("ms", [0.07, 9.0].into_iter());
        assert_eq!(texts(&axis), ["0.01", "0.1", "1", "10"]);
        let close = Axis::decades("ms", [0.2, 3.0].into_iter());
        assert_eq!(texts(&close), ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
    }

    #[test]
    fn a_time_axis_ends_with_the_time() {
        let axis = Axis::elapsed("s", 70.2);
        assert_eq!((axis.from, axis.to), (0.0, 70.2));
        assert_eq!(texts(&axis), ["0", "20", "40", "60"]);
    }

    proptest! {
        #[test]
        fn no_value_leaves_the_axis(values in prop::collection::vec(any::<f64>(), 0..9), at: f64) {
            let all = || values.iter().copied();
            let positive: Vec<f64> = all().filter(|v| *v > 0.0 && v.is_finite()).collect();
            for axis in [
                Axis::around("", 0.0, all()),
                Axis::around("", 1.0, all()),
                Axis::decades("", all()),
                Axis::measured("", &positive),
                Axis::elapsed("", at),
                Axis::percentiles(1.0 - 1e-6),
            ] {
                let on = axis.at(at);
                prop_assert!((0.0..=1.0).contains(&on), "{axis:?} {on}");
                prop_assert!(axis.ticks.len() < 800);
            }
        }
    }

    #[test]
    fn many_labels_look_different() {
        let styles: BTreeSet<_> =
            (0..320).map(|label| (class(label), marker_and_dashes(label))).collect();
        assert_eq!(styles.len(), 320);
        let first: BTreeSet<&str> = (0..8).map(|label| marker_and_dashes(label).0).collect();
        assert_eq!(first.len(), 8);
    }
}
