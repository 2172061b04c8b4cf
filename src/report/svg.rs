//! Charts as SVG: inside a page, or as a file for a write-up. What tells lines apart is colour,
//! marker and dashes, never colour alone.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};

use super::chart::{self, Chart, Point, Series, Shade};
use super::compare::{ASKED_FOR, is_asked_for, related};
use super::escape::{clip, markup};
use super::notes::{label, noted};
use super::table::{Table, known};
use super::{Options, Picture, counted};
use crate::error::{Error, Result};
use crate::summary::Summary;

pub(crate) type Size = (f64, f64);

/// One chart takes all of the width of a file.
const WIDE: Size = (720.0, 420.0);
const SMALL: Size = (460.0, 300.0);
const MARGIN: f64 = 12.0;
const TITLE: f64 = 26.0;
/// Width of a character of a tick, about.
const CHAR: f64 = 6.6;
const APART: f64 = 8.0;
const CAP: f64 = 3.0;
/// From the bars of one line to those of the next, and of all together.
const BARS_APART: f64 = 3.0;
const BARS_MAX: f64 = 14.0;
/// Room at both sides of what was measured at some places only.
const INSET: f64 = 10.0;
const SPAN_MIN: f64 = 1.5;
/// A line of what stands below the charts.
const LINE: f64 = 20.0;
const SAMPLE: &str = "36";
const LABEL_MAX: usize = 48;

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

/// Returns the class of a label's colour.
pub(crate) fn class(label: usize) -> String {
    format!("c{}", label % MARKERS.len())
}

/// Returns marker and dashes of a label. Eight differ in everything, and 320 in something.
fn look(label: usize) -> (&'static str, Option<&'static str>) {
    let round = label / MARKERS.len();
    let marker = MARKERS[(label + round / DASHES.len()) % MARKERS.len()];
    (marker, DASHES[round % DASHES.len()])
}

/// The style of a page: colours on white and on black, rules of drawings, then those of pages alone.
pub(crate) const STYLE: &str = include_str!("html/style.css");

/// Returns the rules of a file, without variables, which not every reader of SVG knows.
fn rules_of_file() -> String {
    let between = |text: &'static str, from, to| {
        text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).expect("both parts").0
    };
    let rules = between(STYLE, "/* Drawings: */\n", "/* Pages alone: */").to_owned();
    let colours = between(STYLE, ":root{", "}").split(';').filter_map(|of| of.split_once(':'));
    colours
        .fold(rules, |rules, (name, value)| rules.replace(&format!("var({})", name.trim()), value))
}

/// Draws a standalone file; nothing to draw is an error.
pub fn picture(steps: &[&Summary], options: &Options, what: Picture) -> Result<String> {
    let tables = counted(steps, options)?;
    let labels = chart::labels(&tables);
    let mut charts = Vec::new();
    for table in &tables {
        charts.extend(match what {
            Picture::Qps => chart::over_clients(table, &labels),
            Picture::Relative => {
                let base = options.baseline.as_deref().unwrap_or(table.lines[0].label);
                known(&tables, "--baseline", base)?;
                let related = related(table, &tables, base).into_iter();
                related.flat_map(|table| chart::over_clients(&table, &labels)).collect()
            }
            Picture::Latency => chart::percentiles(table, &labels)?,
            Picture::Timeline => {
                let each = chart::vertices_each(table.all().count());
                chart::timelines(table, &labels, &chart::RATE, each).concat()
            }
        });
    }
    if charts.is_empty() {
        let of = |table: &Table| table.columns.iter().any(|column| is_asked_for(table, column));
        let hint = if what == Picture::Relative && tables.iter().any(of) {
            ASKED_FOR
        } else {
            "another --chart, or --format text for what they hold"
        };
        return Err(Error::data("there is nothing to draw in these summaries").hint(hint));
    }
    let mut notes: Vec<String> = Vec::new();
    notes.extend(chart::has_bars(&charts).then(|| chart::BARS.to_owned()));
    notes.extend(tables.into_iter().flat_map(differences));
    Ok(file(&charts, &labels, &notes))
}

/// Tells what lines do not share with the first one, or within themselves, but for servers' settings.
fn differences(table: Table) -> Vec<String> {
    const SAID: [&str; 5] =
        ["conditions", "overheads", "other_queues", "unknown_conditions", "invocations"];
    let table = noted(table);
    let notes = table.notes.iter().filter(|note| SAID.contains(&note.code.as_str()));
    let said = notes.map(|note| {
        let labels: Vec<&str> = note.places.keys().map(|at| table.lines[*at].label).collect();
        format!("{}, {}: {}", table.workload, labels.join(", "), note.text)
    });
    said.collect()
}

/// Draws charts in a grid, and below them what tells the labels apart, the kinds of spans, and notes.
fn file(charts: &[Chart], labels: &[&str], notes: &[String]) -> String {
    let (size, abreast) = if charts.len() == 1 { (WIDE, 1) } else { (SMALL, 2) };
    let cell = (size.0 + MARGIN, size.1 + TITLE + MARGIN);
    let (inner, rows) = (cell.0 * abreast as f64 - MARGIN, charts.len().div_ceil(abreast));
    let chars = |width: f64| (width / (CHAR + 1.0)) as usize;
    let drawn = chart::drawn(charts).into_iter().map(|at| {
        let sample = html! { g class=(class(at)) { (sample(at)) } };
        (Some(sample), clip(&label(labels[at]), LABEL_MAX))
    });
    let spans = charts.iter().flat_map(|chart| &chart.spans);
    let shades: BTreeSet<Shade> = spans.map(|span| span.shade).collect();
    let shades = shades.into_iter().rev().map(|(class, name)| {
        let sample = html! { rect class=(class) x="1" width="26" height="12" {} };
        (Some(sample), name.to_owned())
    });
    let notes = notes.iter().flat_map(|note| wrapped(note, chars(inner))).map(|note| (None, note));
    let lines: Vec<(Option<Markup>, String)> = drawn.chain(shades).chain(notes).collect();
    let below = |at: usize| MARGIN + cell.1 * rows as f64 + LINE * at as f64;
    let (width, height) = (px(inner + 2.0 * MARGIN), px(below(lines.len()) + MARGIN));
    let full = |chart: &Chart| markup(&format!("{}: {}", chart.of, chart.title));
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } {
            title { (full(&charts[0])) }
            style { (PreEscaped(rules_of_file())) }
            rect width="100%" height="100%" fill="#ffffff" {}
            @for (at, of) in charts.iter().enumerate() {
                @let (x, y) = (cell.0 * (at % abreast) as f64, cell.1 * (at / abreast) as f64);
                (moved(MARGIN + x, MARGIN + y, &html! {
                    text.title x="2" y="15" { (clip(&full(of), chars(size.0))) }
                    (moved(0.0, TITLE, &draw(of, size)))
                }))
            }
            @for (at, (sample, text)) in lines.iter().enumerate() {
                (moved(MARGIN, below(at), &html! {
                    @if let Some(sample) = sample { (sample) }
                    text x=(if sample.is_some() { SAMPLE } else { "0" }) y="10" { (markup(text)) }
                }))
            }
        }
    };
    format!("{}\n", drawing.into_string())
}

fn moved(x: f64, y: f64, what: &Markup) -> Markup {
    html! { g transform={ "translate(" (px(x)) "," (px(y)) ")" } { (what) } }
}

/// Returns a text in lines of so many characters at most, but for longer words.
fn wrapped(text: &str, chars_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let fits = |line: &&mut String| (line.chars().chain(word.chars()).count()) < chars_max;
        match lines.last_mut().filter(fits) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns a piece of a label's line with its marker, 28 by 12.
pub(crate) fn sample(label: usize) -> Markup {
    let (marker, dashes) = look(label);
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
    /// Leaves room for the texts of the axes around it.
    pub(crate) fn of(chart: &Chart, size: Size) -> Plot<'_> {
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

    /// Returns a line from side to side.
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
    let plot = Plot::of(chart, size);
    let across = plot.spaced();
    let levels: String = chart.y.ticks.iter().map(|(at, _)| plot.level(plot.y(*at))).collect();
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
        @for (at, series) in chart.series.iter().enumerate() { (line(plot, series, aside(at, chart))) }
    }
}

/// Tells how far the bars of a line stand beside its points: they hide no other's.
fn aside(at: usize, chart: &Chart) -> f64 {
    let of = chart.series.len() as f64;
    ((at as f64 + 0.5) / of - 0.5) * (of * BARS_APART).min(BARS_MAX)
}

fn line(plot: Plot, series: &Series, aside: f64) -> Markup {
    let (marker, dashes) = look(series.label);
    let points = &series.points;
    let place = |point: &Point| format!("{},{}", px(plot.x(point.x)), px(plot.y(point.y)));
    let bars = |which: usize, cap: f64| -> String {
        let bar = |point: &Point| {
            let x = plot.x(point.x) + aside;
            let (low, high) = point.bounds[which]?;
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
    let markers: String = marked.map(|point| format!("M{}{marker}", place(point))).collect();
    let said: Vec<&str> = points.iter().map(|point| point.said.as_str()).collect();
    let said = (!said.concat().is_empty()).then(|| markup(&said.join("|")));
    html! {
        g class={ "s" (series.label) " " (class(series.label)) } data-v=[said] {
            @if !spread.is_empty() { path.e d=(spread) {} }
            @if !intervals.is_empty() { path.i d=(intervals) {} }
            path.l d={ "M" (path) (dot) } stroke-dasharray=[dashes] {}
            @if !markers.is_empty() { path.m d=(markers) {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_labels_look_different() {
        let looks: BTreeSet<_> = (0..320).map(|label| (class(label), look(label))).collect();
        assert_eq!(looks.len(), 320);
        let first: BTreeSet<&str> = (0..8).map(|label| look(label).0).collect();
        assert_eq!(first.len(), 8);
    }

    #[test]
    fn every_colour_has_a_value() {
        assert!(!rules_of_file().contains("var("), "{}", rules_of_file());
        for used in STYLE.split("var(--").skip(1) {
            let name = used.split(')').next().expect("a name");
            assert_eq!(STYLE.matches(&format!("--{name}:")).count(), 2, "{name} in both schemes");
        }
    }
}
