//! Charts as data: scales, ticks, series, shaded spans. What draws them knows nothing of
//! summaries, and what makes them knows no pixels.

use super::histogram::Curve;
use super::notes::label;
use super::page::{self, number};
use super::table::{Cell, Column, Line, Table, among};
use super::{Metric, escape};
use crate::error::{Error, Result};
use crate::stats::{self, is_scarce};
use crate::summary::{Interval, Phase, Summary};
use crate::terms::clients;

/// Points of each further nine.
const EACH_NINE: i32 = 5;
/// Nines that a histogram of 64-bit counts could tell.
const NINES_MAX: i32 = 9;
const MS: f64 = 1e3;

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
    Uncounted,
    Outage,
    Errors,
}

impl SpanKind {
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
    let any = |of: fn(&Point) -> bool| charts.iter().flat_map(Chart::points).any(of);
    match (any(|point| point.range.is_some()), any(|point| point.interval.is_some())) {
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

pub(crate) fn position(labels: &[&str], label: &str) -> usize {
    labels.iter().position(|known| *known == label).expect("a label of these tables")
}

fn at(column: &Column) -> String {
    let rate = column.rate.map(|rate| format!(" at {rate} ops/s"));
    clients(column.clients) + &rate.unwrap_or_default()
}

/// Makes a chart of the closed loops over their clients, and for each number of clients one of the open
/// loops over the rates that were asked.
fn over(
    table: &Table,
    labels: &[&str],
    point: &dyn Fn(&Cell) -> Option<Point>,
    finish: &dyn Fn(Metric, Chart) -> Option<Chart>,
) -> Vec<Chart> {
    let group = |column: &Column| column.rate.map(|_| column.clients);
    let chart = |columns: &[Column]| {
        let of = group(&columns[0]);
        let across = |column: &Column| column.per_s().unwrap_or(f64::from(column.clients));
        let series = table.lines.iter().map(|line| {
            let points = table.columns.iter().zip(&line.cells).filter_map(|(column, cell)| {
                let point = cell.as_ref().filter(|_| columns.contains(column)).and_then(point)?;
                let x = across(column);
                point.y.is_finite().then(|| Point { x, marked: true, ..point })
            });
            Series { label: position(labels, line.label), points: points.collect() }
        });
        let series = series.filter(|series| !series.points.is_empty()).collect();
        let name = if of.is_some() { "asked ops a second" } else { "clients" };
        let x = Axis::doublings(name, &columns.iter().map(across).collect::<Vec<f64>>());
        let y = Axis::from_zero("", std::iter::empty());
        let title = of.map_or_else(String::new, |n| format!(", open loop of {n} clients"));
        let said: fn(f64) -> String = match of {
            Some(_) => |rate| format!("{rate} ops/s asked"),
            None => |count| clients(count as u64),
        };
        let chart = Chart { across: Some(said), ..Chart::new(table, title, x, y, series) };
        finish(table.metric.in_loop(of.is_some()), chart)
    };
    // Sorted columns: those of a group follow each other.
    let charts = table.columns.chunk_by(|a, b| group(a) == group(b)).filter_map(chart);
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

/// Vertices of all timelines of a page: more would make it too large to open at once.
const VERTICES: usize = 60_000;
/// Vertices of a line that nobody could tell apart.
const EACH_MAX: usize = 400;
/// Vertices below which a line says nothing.
const EACH_MIN: usize = 16;
/// An interval shorter than this share of the longest is the rest at the end of a phase: its rate
/// is of a handful of ops.
const WHOLE: f64 = 0.2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Rate,
    P99,
}

impl Shown {
    fn name(self, paced: bool) -> &'static str {
        match (self, paced) {
            (Shown::Rate, _) => "ops/s",
            (Shown::P99, false) => "p99 service time, ms",
            (Shown::P99, true) => "p99 response time, ms",
        }
    }

    /// None of an interval with too few ops to have such a percentile.
    fn value(self, interval: &Interval) -> Option<f64> {
        match self {
            Shown::Rate => Some(interval.ops as f64 / interval.length_s),
            Shown::P99 if is_scarce(99.0, interval.ops) => None,
            Shown::P99 => interval.response_p99_us.or(interval.p99_us).map(|us| us / MS),
        }
    }
}

pub(crate) fn vertices_each(lines: usize) -> usize {
    (VERTICES / lines.max(1)).clamp(EACH_MIN, EACH_MAX)
}

/// Makes for each line of the table a chart of each column that it has timelines in, and one of its
/// steps that did not complete: there, errors and outages matter most. Those of one column have one
/// scale, so that labels can be compared.
pub(crate) fn timelines(
    table: &Table,
    labels: &[&str],
    what: Shown,
    vertices: usize,
) -> Vec<Vec<Chart>> {
    let scale = |column: &Column| {
        let steps = table.all();
        let steps = steps.filter(|step| step.cell() == *column);
        let points = steps.flat_map(|step| points(step, what)).flatten();
        Axis::from_zero(what.name(column.rate.is_some()), points.map(|point| point.y)).sparse()
    };
    let scales: Vec<Axis> = table.columns.iter().map(scale).collect();
    let of_line = |line: &Line| {
        let chart = |title: String, y: &Axis, steps: &[&Summary]| {
            let runs = steps.iter().flat_map(|step| runs(&points(step, what), vertices));
            let at = position(labels, line.label);
            let series = runs.map(|points| Series { label: at, points }).collect();
            let end = steps.iter().flat_map(|step| &step.timeline).map(end_s).fold(0.0, f64::max);
            let x = Axis::elapsed("seconds from the start of the step", end);
            let of = format!("{}, {}", escape::line(table.workload), label(line.label));
            let chart = Chart::new(table, title, x, y.clone(), series);
            Chart { of, spans: spans(steps, end), ..chart }
        };
        let charts = table.columns.iter().zip(&scales).flat_map(|(column, y)| {
            let ended = format!("{}, did not complete", at(column));
            [
                chart(at(column), y, &among(column, &line.steps)),
                chart(ended, y, &among(column, &line.left_out)),
            ]
        });
        charts.filter(|chart| !chart.series.is_empty()).collect()
    };
    table.lines.iter().map(of_line).collect()
}

fn end_s(interval: &Interval) -> f64 {
    interval.start_s + interval.length_s
}

fn points(step: &Summary, what: Shown) -> Vec<Option<Point>> {
    let longest = step.timeline.iter().map(|interval| interval.length_s).fold(0.0, f64::max);
    let whole = |interval: &&Interval| {
        interval.length_s > longest * WHOLE && interval.phase != Phase::Drain
    };
    let point = |interval: &Interval| {
        let (x, y) = (interval.start_s + interval.length_s / 2.0, what.value(interval)?);
        (x.is_finite() && y.is_finite()).then(|| Point { x, y, ..Point::default() })
    };
    step.timeline.iter().filter(whole).map(point).collect()
}

/// Lines of at most about so many points together, by the smallest and the largest of each part.
/// One ends where a part has none.
fn runs(points: &[Option<Point>], vertices: usize) -> Vec<Vec<Point>> {
    let size =
        if points.len() <= vertices { 1 } else { points.len().div_ceil((vertices / 2).max(1)) };
    let parts: Vec<Vec<Point>> = points.chunks(size).map(extremes).collect();
    parts.split(Vec::is_empty).map(<[Vec<Point>]>::concat).filter(|run| !run.is_empty()).collect()
}

fn extremes(points: &[Option<Point>]) -> Vec<Point> {
    let there = || points.iter().flatten().enumerate();
    let least = there().min_by(|a, b| a.1.y.total_cmp(&b.1.y));
    let most = there().max_by(|a, b| a.1.y.total_cmp(&b.1.y));
    let mut both: Vec<(usize, &Point)> = least.into_iter().chain(most).collect();
    both.sort_unstable_by_key(|(at, _)| *at);
    both.dedup_by_key(|(at, _)| *at);
    both.into_iter().map(|(_, point)| point.clone()).collect()
}

/// Warm-up and drain of the first step, and what went wrong in any of them.
fn spans(steps: &[&Summary], end: f64) -> Vec<Span> {
    let phase = |phase: Phase| {
        let mut those = steps.first()?.timeline.iter().filter(|interval| interval.phase == phase);
        let first = those.next()?;
        let to = those.map(end_s).fold(end_s(first), f64::max);
        Some(Span { kind: SpanKind::Uncounted, from: first.start_s, to })
    };
    let mut spans: Vec<Span> =
        [Phase::Warmup, Phase::Drain].into_iter().filter_map(phase).collect();
    // Until the rate was back, else until somebody was served, else to the end.
    spans.extend(steps.iter().flat_map(|step| &step.outages).map(|outage| {
        let to = outage.recovered_s.or(outage.first_success_s).unwrap_or(end);
        Span { kind: SpanKind::Outage, from: outage.first_error_s, to }
    }));
    spans.extend(steps.iter().flat_map(|step| errors(step)));
    spans
}

fn errors(step: &Summary) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for interval in step.timeline.iter().filter(|interval| interval.errors > 0) {
        let (from, to) = (interval.start_s, end_s(interval));
        match spans.last_mut() {
            Some(last) if from <= last.to + 1e-6 => last.to = to.max(last.to),
            _ => spans.push(Span { kind: SpanKind::Errors, from, to }),
        }
    }
    spans
}

const TICKS: f64 = 5.0;

/// The way in which values lie along an axis. Bounds are finite, and the first is below the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    /// Equal differences are equal lengths.
    Linear(f64, f64),
    /// Equal ratios are equal lengths; bounds above zero.
    Log(f64, f64),
    /// Shares of all values below 1, as in HDR plots: log(1/(1-share)), from 0 up to this share.
    Tail(f64),
}

impl Scale {
    pub(crate) fn end(self) -> f64 {
        match self {
            Scale::Linear(_, end) | Scale::Log(_, end) | Scale::Tail(end) => end,
        }
    }

    /// Tells where a value lies, 0 at the axis's start and 1 at its end.
    pub(crate) fn at(self, value: f64) -> f64 {
        let tail = |share: f64| -(1.0 - share.clamp(0.0, 1.0)).max(f64::MIN_POSITIVE).log10();
        let at = match self {
            Scale::Linear(from, to) => (value - from) / (to - from),
            Scale::Log(from, to) => {
                (value.max(f64::MIN_POSITIVE) / from).log10() / (to / from).log10()
            }
            Scale::Tail(to) => tail(value) / tail(to),
        };
        if at.is_nan() { 0.0 } else { at.clamp(0.0, 1.0) }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) text: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) scale: Scale,
    pub(crate) ticks: Vec<Tick>,
}

impl Axis {
    /// From zero to a round number above all values.
    pub(crate) fn from_zero(name: impl Into<String>, values: impl Iterator<Item = f64>) -> Axis {
        let max = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let max = if max > 0.0 { max } else { 1.0 };
        Axis::round(name, 0.0, max)
    }

    /// Every other tick, for a low chart; the first and the last stay.
    pub(crate) fn sparse(mut self) -> Axis {
        let last = self.ticks.len().saturating_sub(1);
        // So many steps between ticks as divide the axis evenly, else only its ends.
        let every = [2, 3].into_iter().find(|n| last.is_multiple_of(*n)).unwrap_or(last).max(1);
        let mut at = 0..;
        if last > 2 {
            self.ticks.retain(|_| at.next().is_some_and(|at: usize| at.is_multiple_of(every)));
        }
        self
    }

    /// Round numbers around all values, without zero: for ratios, whose zero is 1.
    pub(crate) fn around(
        name: impl Into<String>,
        centre: f64,
        values: impl Iterator<Item = f64>,
    ) -> Axis {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((centre, centre), |(low, high), value| (low.min(value), high.max(value)));
        let room = ((high - low) / 10.0).max(centre * 0.02);
        Axis::round(name, (low - room).max(0.0), high + room)
    }

    fn round(name: impl Into<String>, low: f64, high: f64) -> Axis {
        let step = nice((high - low) / TICKS);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let decimals = if step >= 1.0 { 0 } else { (-step.log10()).ceil() as usize };
        // A handful whatever the values, because the step is their range over five.
        let count = (last - first).clamp(1.0, 4.0 * TICKS) as u32;
        let ticks = (0..=count).map(|i| {
            let at = (first + f64::from(i)) * step;
            Tick { at, text: short(at, decimals) }
        });
        let scale = Scale::Linear(first * step, (first + f64::from(count)) * step);
        Axis { name: name.into(), scale, ticks: ticks.collect() }
    }

    /// Logarithmic, from a power of ten to another, around all values above zero.
    pub(crate) fn decades(name: impl Into<String>, values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let last = last.max(first + 1);
        let decade = |power: i32| 10_f64.powi(power);
        // Within three decades 2 and 5 help to read.
        let between: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut ticks = Vec::new();
        for power in first..=last {
            let decimals = usize::try_from(-power).unwrap_or(0);
            let values = between.iter().map(|m| m * decade(power));
            let values = values.filter(|at| *at <= decade(last));
            ticks.extend(values.map(|at| Tick { at, text: short(at, decimals) }));
        }
        Axis { name: name.into(), scale: Scale::Log(decade(first), decade(last)), ticks }
    }

    /// Logarithmic, ticks where something was measured.
    pub(crate) fn doublings(name: impl Into<String>, values: &[f64]) -> Axis {
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(*v), high.max(*v)));
        // A single value stands in the middle.
        let scale = match (low, high) {
            (low, high) if low < high => Scale::Log(low, high),
            (low, _) if low.is_finite() => Scale::Log(low / 2.0, low * 2.0),
            _ => Scale::Log(1.0, 2.0),
        };
        let decimals = usize::from(values.iter().any(|value| value.fract() != 0.0));
        let ticks = values.iter().map(|at| Tick { at: *at, text: short(*at, decimals) });
        Axis { name: name.into(), scale, ticks: ticks.collect() }
    }

    /// Percentiles up to the share that so many values can tell.
    pub(crate) fn percentiles(name: impl Into<String>, share: f64) -> Axis {
        const NAMED: [(f64, &str); 9] = [
            (0.0, "0"),
            (0.5, "50"),
            (0.9, "90"),
            (0.99, "99"),
            (0.999, "99.9"),
            (0.9999, "99.99"),
            (0.99999, "99.999"),
            (0.999_999, "99.9999"),
            (0.999_999_9, "99.99999"),
        ];
        let ticks = NAMED.iter().filter(|(at, _)| *at <= share);
        let ticks = ticks.map(|(at, text)| Tick { at: *at, text: (*text).to_owned() });
        Axis { name: name.into(), scale: Scale::Tail(share), ticks: ticks.collect() }
    }

    pub(crate) fn elapsed(name: impl Into<String>, end: f64) -> Axis {
        let end = if end.is_finite() && end > 0.0 { end } else { 1.0 };
        let round = Axis::round(name, 0.0, end);
        let ticks = round.ticks.into_iter().filter(|tick| tick.at <= end);
        Axis { scale: Scale::Linear(0.0, end), ticks: ticks.collect(), ..round }
    }
}

/// Returns the next of 1, 2, 5, 10 … times a power of ten.
fn nice(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let power = if power.is_finite() && power > 0.0 { power } else { 1.0 };
    let of = |factor: f64| factor * power;
    [1.0, 2.0, 5.0].map(of).into_iter().find(|nice| *nice >= step * 0.999).unwrap_or(of(10.0))
}

/// Returns a number with `k`, `M` or `G` where that leaves it short.
pub(crate) fn short(value: f64, decimals: usize) -> String {
    for (unit, suffix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        let scaled = value / unit;
        if scaled.abs() >= 1.0 {
            let whole = |digits: i32| (scaled * 10_f64.powi(digits)).fract().abs() < 1e-9;
            let fits = (0..=2).find(|digits| whole(*digits));
            // As 1024 is: digits say more than a unit.
            return fits.map_or_else(
                || number(value, decimals),
                |digits| format!("{}{suffix}", number(scaled, digits as usize)),
            );
        }
    }
    number(value, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_named_as_finely_as_they_lie() {
        let named = [0.0, 0.5, 0.9, 0.99, 0.999, 0.999_99].map(percentile);
        assert_eq!(named, ["p0", "p50", "p90", "p99", "p99.9", "p99.999"]);
    }

    fn plain(x: f64, y: f64) -> Point {
        Point { x, y, ..Point::default() }
    }

    #[test]
    fn thinning_keeps_the_extremes_and_their_order() {
        let mut points: Vec<Option<Point>> =
            (0..1000).map(|i| Some(plain(f64::from(i), 100.0))).collect();
        points[333] = Some(plain(333.0, 0.0));
        points[777] = Some(plain(777.0, 900.0));
        let runs = |vertices| super::runs(&points, vertices);
        let few = runs(60).concat();
        assert!(few.len() <= 60, "{}", few.len());
        let at = |y: f64| few.iter().find(|point| point.y.total_cmp(&y).is_eq()).map(|p| p.x);
        assert_eq!((at(0.0), at(900.0)), (Some(333.0), Some(777.0)));
        assert!(few.is_sorted_by(|a, b| a.x <= b.x));
        assert_eq!((runs(60).len(), runs(1000).len(), runs(1000)[0].len()), (1, 1, 1000));
    }

    #[test]
    fn a_line_has_a_gap_where_there_are_no_points() {
        let mut points: Vec<Option<Point>> =
            (0..10).map(|i| Some(plain(f64::from(i), 1.0))).collect();
        (points[3], points[4], points[9]) = (None, None, None);
        let lengths: Vec<usize> = runs(&points, 100).iter().map(Vec::len).collect();
        assert_eq!(lengths, [3, 4]);
        assert!(runs(&[None, None], 100).is_empty());
    }

    #[test]
    fn a_percentile_of_few_ops_is_no_point() {
        let mut interval = Interval {
            phase: Phase::Measure,
            start_s: 0.0,
            length_s: 1.0,
            ops: 999,
            errors: 0,
            p50_us: Some(500.0),
            p99_us: Some(1000.0),
            max_us: Some(2000.0),
            response_p50_us: None,
            response_p99_us: None,
            response_max_us: None,
        };
        assert_eq!(
            (Shown::P99.value(&interval), Shown::Rate.value(&interval)),
            (None, Some(999.0))
        );
        interval.ops = 1000;
        assert_eq!(Shown::P99.value(&interval), Some(1.0));
    }

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers_that_reach_around_the_values() {
        let axis = Axis::from_zero("QPS", [26747.0, 114_046.0].into_iter());
        assert_eq!(texts(&axis), ["0", "50k", "100k", "150k"]);
        assert_eq!(axis.scale, Scale::Linear(0.0, 150_000.0));
        let small = Axis::from_zero("ms", [0.31, 0.07].into_iter());
        assert_eq!(texts(&small), ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        let ratio = Axis::around("ratio", 1.0, [0.93, 1.02].into_iter());
        assert_eq!(texts(&ratio), ["0.90", "0.95", "1.00", "1.05"]);
        assert_eq!(texts(&axis.sparse()), ["0", "150k"]);
        assert_eq!(texts(&small.sparse()), ["0.0", "0.2", "0.4"]);
        assert_eq!(texts(&Axis::from_zero("errors", std::iter::empty()))[0], "0.0");
    }

    #[test]
    fn doublings_name_what_was_measured() {
        let axis = Axis::doublings("clients", &[8.0, 16.0, 256.0, 4096.0, 10_000.0]);
        assert_eq!(texts(&axis), ["8", "16", "256", "4096", "10k"]);
        let at = axis.scale.at(16.0);
        assert!((at - 1.0 / (10_000_f64 / 8.0).log2()).abs() < 1e-12, "{at}");
        assert!((Axis::doublings("clients", &[64.0]).scale.at(64.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn each_nine_of_a_percentile_takes_the_same_length() {
        let scale = Scale::Tail(0.9999);
        let at = [0.0, 0.9, 0.99, 0.999, 0.9999].map(|share| (scale.at(share) * 4.0).round());
        assert_eq!(
            at.map(|at: f64| (at * 1e9).round() as i64),
            [0, 1, 2, 3, 4].map(|at| at * 1_000_000_000)
        );
        assert_eq!(texts(&Axis::percentiles("percentile", 0.9999)).last(), Some(&"99.99"));
    }

    #[test]
    fn decades_hold_their_values() {
        let axis = Axis::decades("ms", [0.07, 9.0].into_iter());
        assert_eq!(axis.scale, Scale::Log(0.01, 10.0));
        assert_eq!(texts(&axis), ["0.01", "0.1", "1", "10"]);
        let close = Axis::decades("ms", [0.2, 3.0].into_iter());
        assert_eq!(texts(&close), ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
    }

    #[test]
    fn a_time_axis_ends_with_the_time() {
        let axis = Axis::elapsed("s", 70.2);
        assert_eq!(axis.scale, Scale::Linear(0.0, 70.2));
        assert_eq!(texts(&axis), ["0", "20", "40", "60"]);
    }

    proptest! {
        #[test]
        fn no_value_leaves_the_axis(values in prop::collection::vec(any::<f64>(), 0..9), at: f64) {
            let all = || values.iter().copied();
            let positive: Vec<f64> = all().filter(|v| *v > 0.0 && v.is_finite()).collect();
            for axis in [
                Axis::from_zero("", all()),
                Axis::around("", 1.0, all()),
                Axis::decades("", all()),
                Axis::doublings("", &positive),
                Axis::elapsed("", at),
                Axis::percentiles("", 1.0 - 1e-6),
            ] {
                let on = axis.scale.at(at);
                prop_assert!((0.0..=1.0).contains(&on), "{axis:?} {on}");
                prop_assert!(axis.ticks.len() < 800);
            }
        }
    }
}
