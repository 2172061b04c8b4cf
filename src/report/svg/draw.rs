//! One chart as SVG elements. Colours and widths are classes: see [`super::paint`].

use std::fmt::Write;

use maud::{Markup, html};

use super::super::chart::{Axis, Chart, Point, Scale, Series, Span, SpanKind, Style};
use super::super::escape::markup;
use super::marker;

/// Width of a character of a tick, about.
pub(crate) const CHAR: f64 = 6.6;
/// Blank between two texts of an axis.
const APART: f64 = 8.0;
/// Half the width of the caps of an interval.
const CAP: f64 = 3.0;
/// From the bars of one line to those of the next, and of all together.
const BARS_APART: f64 = 3.0;
const BARS_MAX: f64 = 14.0;
/// Room at both sides of what was measured at some places only.
const INSET: f64 = 10.0;
/// Narrowest span that is seen.
const SPAN_MIN: f64 = 1.5;

/// What a chart takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The rectangle that the axes enclose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plot {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    /// Between the rectangle's sides and the first and last point: bars stand beside those.
    inset: f64,
}

impl Plot {
    /// Room for the texts of the axes around it.
    pub(crate) fn of(chart: &Chart, size: Size) -> Plot {
        let widest = chart.y.ticks.iter().map(|tick| tick.text.chars().count()).max();
        let left = widest.unwrap_or(1) as f64 * CHAR + 12.0;
        let inset = if matches!(chart.x.scale, Scale::Log(..)) { INSET } else { 0.0 };
        Plot { left, right: size.width - 14.0, top: 22.0, bottom: size.height - 38.0, inset }
    }

    pub(crate) fn x(self, axis: &Axis, value: f64) -> f64 {
        self.left + self.inset + axis.scale.at(value) * (self.right - self.left - 2.0 * self.inset)
    }

    pub(crate) fn y(self, axis: &Axis, value: f64) -> f64 {
        self.bottom - axis.scale.at(value) * (self.bottom - self.top)
    }
}

/// A coordinate with a tenth of a pixel.
pub(crate) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Everything within a chart's size.
pub(crate) fn chart(chart: &Chart, size: Size) -> Markup {
    let plot = Plot::of(chart, size);
    let middle = f64::midpoint(plot.left, plot.right);
    html! {
        @for span in &chart.spans { (shade(chart, plot, *span)) }
        (grid(chart, plot))
        text.name x="2" y="12" { (chart.y.name) }
        text.name.mid x=(px(middle)) y=(px(size.height - 5.0)) { (chart.x.name) }
        @if let Some(value) = chart.rule {
            path.rule d={ "M" (px(plot.left)) "," (px(plot.y(&chart.y, value))) "H" (px(plot.right)) } {}
        }
        @for (at, series) in chart.series.iter().enumerate() {
            (line(chart, plot, series, aside(at, chart.series.len())))
        }
    }
}

/// Grid, axes and the values that they name.
fn grid(chart: &Chart, plot: Plot) -> Markup {
    let mut lines = String::new();
    for tick in &chart.y.ticks {
        let _ = write!(
            lines,
            "M{},{}H{}",
            px(plot.left),
            px(plot.y(&chart.y, tick.at)),
            px(plot.right)
        );
    }
    let across = spaced(chart, plot);
    for (x, _) in &across {
        let _ = write!(lines, "M{},{}v4", px(*x), px(plot.bottom));
    }
    html! {
        path.grid d=(lines) {}
        path.axis d={ "M" (px(plot.left)) "," (px(plot.bottom)) "H" (px(plot.right)) } {}
        @for tick in &chart.y.ticks {
            text.end x=(px(plot.left - 6.0)) y=(px(plot.y(&chart.y, tick.at) + 4.0)) { (tick.text) }
        }
        @for (x, text) in across {
            text.mid x=(px(x)) y=(px(plot.bottom + 16.0)) { (text) }
        }
    }
}

/// The ticks across that do not touch each other; the last one is always there.
fn spaced(chart: &Chart, plot: Plot) -> Vec<(f64, &str)> {
    let half = |text: &str| text.chars().count() as f64 * CHAR / 2.0;
    let mut kept: Vec<(f64, &str)> = Vec::new();
    for tick in chart.x.ticks.iter().rev() {
        let (x, text) = (plot.x(&chart.x, tick.at), tick.text.as_str());
        let free = kept.last().is_none_or(|(next, of)| x + half(text) + APART <= next - half(of));
        if free {
            kept.push((x, text));
        }
    }
    kept
}

fn shade(chart: &Chart, plot: Plot, span: Span) -> Markup {
    let (from, to) = (plot.x(&chart.x, span.from), plot.x(&chart.x, span.to));
    let width = (to - from).max(SPAN_MIN);
    let from = from.min(plot.right - width);
    html! {
        rect class=(class(span.kind)) x=(px(from)) y=(px(plot.top)) width=(px(width))
            height=(px(plot.bottom - plot.top)) {}
    }
}

/// The class of a span's shade.
pub(crate) fn class(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Uncounted => "uncounted",
        SpanKind::Outage => "outage",
        SpanKind::Errors => "errors",
    }
}

/// How far the bars of a line stand beside its points, so that those of several lines do not hide
/// each other.
fn aside(at: usize, of: usize) -> f64 {
    ((at as f64 + 0.5) / of as f64 - 0.5) * (of as f64 * BARS_APART).min(BARS_MAX)
}

/// A label's line: the spread and the intervals of its points, the line, the markers.
fn line(chart: &Chart, plot: Plot, series: &Series, aside: f64) -> Markup {
    let style = Style::of(series.label);
    let place = |point: &Point| (plot.x(&chart.x, point.x), plot.y(&chart.y, point.y));
    let mut path = String::new();
    let mut markers = String::new();
    let (mut spread, mut intervals) = (String::new(), String::new());
    for point in &series.points {
        let (x, y) = place(point);
        let _ = write!(path, "{}{},{}", if path.is_empty() { "M" } else { " " }, px(x), px(y));
        if point.marked {
            marker::put(&mut markers, style.marker, x, y);
        }
        let bar = |(low, high)| (px(plot.y(&chart.y, low)), px(plot.y(&chart.y, high)));
        let x = x + aside;
        if let Some((low, high)) = point.range.map(bar) {
            let _ = write!(spread, "M{},{high}V{low}", px(x));
        }
        if let Some((low, high)) = point.interval.map(bar) {
            let (left, right, x) = (px(x - CAP), px(x + CAP), px(x));
            let _ =
                write!(intervals, "M{left},{high}H{right}M{x},{high}V{low}M{left},{low}H{right}");
        }
    }
    if series.points.len() == 1 {
        // A dot: a line needs an end.
        path.push_str("h0");
    }
    let said: Vec<&str> = series.points.iter().map(|point| point.said.as_str()).collect();
    let said = said.join("|");
    let class = format!("s{} c{}", series.label, style.colour);
    html! {
        g class=(class) data-v=[(said.len() > said.matches('|').count()).then_some(markup(&said))] {
            @if !spread.is_empty() { path.e d=(spread) {} }
            @if !intervals.is_empty() { path.i d=(intervals) {} }
            path.l d=(path) stroke-dasharray=[(!style.dashes.is_empty()).then_some(style.dashes)] {}
            @if !markers.is_empty() { path.m d=(markers) {} }
        }
    }
}
