//! Charts as SVG: inside a page, or as a file for a write-up. What tells lines apart is colour,
//! marker and dashes, never colour alone.

use maud::{Markup, PreEscaped, html};

use super::chart::{self, Axis, Chart, Point, Scale, Series, Shown, Span, SpanKind, Tick};
use super::compare::{ASKED_FOR, is_asked_for};
use super::escape::{self, clip, markup};
use super::notes::label;
use super::notes::noted;
use super::table::{Table, known};
use super::{Options, Picture, counted};
use crate::error::{Error, Result};
use crate::summary::Summary;

pub(crate) type Size = (f64, f64);

const ABREAST: usize = 2;
/// Below this, one chart takes all of the width.
const WIDE: Size = (720.0, 420.0);
const SMALL: Size = (460.0, 300.0);
const MARGIN: f64 = 12.0;
const TITLE: f64 = 26.0;
/// A line of what stands below everything.
const NOTE: f64 = 18.0;
/// Width of a character of a tick, about.
const CHAR: f64 = 6.6;
const APART: f64 = 8.0;
const CAP: f64 = 3.0;
/// From the bars of one line to those of the next, and of all together.
const BARS_APART: f64 = 3.0;
const BARS_MAX: f64 = 14.0;
/// Room at both sides of what was measured at some places only.
const INSET: f64 = 10.0;
/// Narrowest span that is seen.
const SPAN_MIN: f64 = 1.5;
const LINE: f64 = 20.0;
const SAMPLE: f64 = 36.0;
/// Longest label that the legend shows, characters.
const LABEL_MAX: usize = 48;

/// Okabe and Ito's palette for all kinds of colour vision (<https://jfly.uni-koeln.de/color/>):
/// on white, and lighter of the same hue on black.
const COLOURS: [(&str, &str); 8] = [
    ("#0072b2", "#4ba3e3"),
    ("#e69f00", "#f0b429"),
    ("#009e73", "#1fc99a"),
    ("#d55e00", "#ff8a3d"),
    ("#cc79a7", "#e59bc4"),
    ("#56b4e9", "#9bd7ff"),
    ("#000000", "#f2f2f2"),
    ("#8a7d00", "#f0e442"),
];
/// Dashes and gaps of a line, as `stroke-dasharray` takes them.
const DASHES: [Option<&str>; 5] =
    [None, Some("6 3"), Some("2 3"), Some("9 3 2 3"), Some("9 3 2 3 2 3")];

/// Paths around a point, each from where it begins: circle, square, triangle, diamond, reversed
/// triangle, cross, plus, hourglass.
type Marker = &'static [(f64, f64, &'static str)];
const MARKERS: [Marker; 8] = [
    &[(-3.2, 0.0, "a3.2,3.2 0 1 0 6.4,0a3.2,3.2 0 1 0 -6.4,0z")],
    &[(-2.8, -2.8, "h5.6v5.6h-5.6z")],
    &[(0.0, -4.0, "l3.6,6.4h-7.2z")],
    &[(0.0, -4.0, "l3.8,4l-3.8,4l-3.8,-4z")],
    &[(0.0, 4.0, "l3.6,-6.4h-7.2z")],
    &[(-3.0, -3.0, "l6,6"), (3.0, -3.0, "l-6,6")],
    &[(-4.0, 0.0, "h8"), (0.0, -4.0, "v8")],
    &[(-3.2, -3.2, "h6.4l-6.4,6.4h6.4z")],
];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub colour: usize,
    marker: Marker,
    dashes: Option<&'static str>,
}

impl Style {
    /// Of the label at this position. Eight differ in everything, and 320 in something.
    pub(crate) fn of(label: usize) -> Style {
        let round = label / COLOURS.len();
        Style {
            colour: label % COLOURS.len(),
            marker: MARKERS[(label + round / DASHES.len()) % MARKERS.len()],
            dashes: DASHES[round % DASHES.len()],
        }
    }

    fn marker(self, x: f64, y: f64) -> String {
        let path =
            |(dx, dy, path): &(f64, f64, &str)| format!("M{},{}{path}", px(x + dx), px(y + dy));
        self.marker.iter().map(path).collect()
    }
}

/// Rules of everything that is drawn; colours are `var(--NAME)`.
const RULES: &str = include_str!("chart.css");

/// A colour's name, on white and on black.
const PAINT: [(&str, &str, &str); 6] = [
    ("paper", "#ffffff", "#16181d"),
    ("ink", "#1b1f24", "#e6e8eb"),
    ("faint", "#59636e", "#9aa4af"),
    ("grid", "#dfe3e8", "#31363e"),
    ("shade", "#eef0f3", "#23272e"),
    ("error", "#c62828", "#ff6b6b"),
];

fn paint(dark: bool) -> impl Iterator<Item = (String, &'static str)> {
    let named =
        PAINT.iter().map(|(name, on_white, on_black)| ((*name).to_owned(), on_white, on_black));
    let lines = COLOURS.iter().enumerate();
    let lines = lines.map(|(at, (on_white, on_black))| (format!("c{at}"), on_white, on_black));
    let all = named.chain(lines);
    all.map(move |(name, on_white, on_black)| (name, if dark { *on_black } else { *on_white }))
}

fn rules() -> String {
    let classes = (0..COLOURS.len()).map(|at| format!(".c{at}{{color:var(--c{at})}}"));
    format!("{}\n{RULES}", classes.collect::<String>())
}

/// Returns the rules of a page, which follow the reader's scheme.
pub(crate) fn of_page() -> String {
    let scheme = |dark| -> String {
        paint(dark).map(|(name, colour)| format!("--{name}:{colour};")).collect()
    };
    let (light, dark) = (scheme(false), scheme(true));
    let dark = format!("@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}");
    format!(":root{{{light}}}{dark}{}", rules())
}

/// Returns the rules of a file: its colours are written out, because not every reader of SVG knows
/// variables.
fn of_file() -> String {
    paint(false)
        .fold(rules(), |rules, (name, colour)| rules.replace(&format!("var(--{name})"), colour))
}

pub fn picture(steps: &[&Summary], options: &Options, what: Picture) -> Result<String> {
    let tables = counted(steps, options)?;
    let labels = chart::labels(&tables);
    let mut charts = Vec::new();
    for table in &tables {
        charts.extend(of_table(table, &tables, &labels, options, what)?);
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
    Ok(file(&charts, &labels, tables.into_iter().flat_map(differences)))
}

/// Returns what lines do not share with the first one of their table, or within themselves. By their
/// servers' settings labels differ anyway.
fn differences(table: Table) -> Vec<String> {
    const SAID: [&str; 5] =
        ["conditions", "overheads", "other_queues", "unknown_conditions", "invocations"];
    let table = noted(table);
    let notes = table.notes.iter().filter(|note| SAID.contains(&note.code.as_str()));
    let said = notes.map(|note| {
        let labels: Vec<&str> = note.places.keys().map(|at| table.lines[*at].label).collect();
        markup(&format!("{}, {}: {}", table.workload, labels.join(", "), note.text))
    });
    said.collect()
}

fn of_table(
    table: &Table,
    tables: &[Table],
    labels: &[&str],
    options: &Options,
    what: Picture,
) -> Result<Vec<Chart>> {
    Ok(match what {
        Picture::Qps => chart::over_clients(table, labels),
        Picture::Relative => {
            let base = options.baseline.as_deref().unwrap_or(table.lines[0].label);
            known(tables, "--baseline", base)?;
            let related = super::compare::related(table, tables, base)?;
            related.map_or_else(Vec::new, |related| chart::relative(&related, labels))
        }
        Picture::Latency => chart::percentiles(table, labels)?,
        Picture::Timeline => {
            let each = chart::vertices_each(table.all().count());
            chart::timelines(table, labels, Shown::Rate, each).concat()
        }
    })
}

/// Charts in a grid, and below them what tells the labels apart.
fn file(charts: &[Chart], labels: &[&str], notes: impl Iterator<Item = String>) -> String {
    let (size, abreast) = if charts.len() == 1 { (WIDE, 1) } else { (SMALL, ABREAST) };
    let cell = (size.0 + MARGIN, size.1 + TITLE + MARGIN);
    let width = MARGIN + cell.0 * abreast as f64;
    let below = MARGIN + cell.1 * charts.len().div_ceil(abreast) as f64;
    let (key, height) = legend(charts, labels, width - 2.0 * MARGIN);
    let chars = ((width - 2.0 * MARGIN) / (CHAR + 1.0)) as usize;
    let bars = chart::bars(charts).map(str::to_owned);
    let notes: Vec<String> =
        bars.into_iter().chain(notes.flat_map(|note| wrapped(&note, chars))).collect();
    let noted = |at: usize| below + height + TITLE + NOTE * at as f64;
    let height = notes.len().checked_sub(1).map_or(below + height, noted) + MARGIN;
    let place = |at: usize| {
        let x = MARGIN + cell.0 * (at % abreast) as f64;
        let y = MARGIN + cell.1 * (at / abreast) as f64;
        format!("translate({},{})", px(x), px(y))
    };
    // A title that needs no heading around it.
    let full = |chart: &Chart| markup(&format!("{}: {}", chart.of, chart.title));
    let fitting = |chart: &Chart| escape::clip(&full(chart), (size.0 / (CHAR + 1.0)) as usize);
    let drawing: Markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(px(width)) height=(px(height))
            viewBox={ "0 0 " (px(width)) " " (px(height)) } {
            title { (charts.first().map_or_else(String::new, full)) }
            style { (PreEscaped(of_file())) }
            rect width="100%" height="100%" fill="#ffffff" {}
            @for (at, of) in charts.iter().enumerate() {
                g transform=(place(at)) {
                    text.title x="2" y="15" { (fitting(of)) }
                    g transform={ "translate(0," (px(TITLE)) ")" } { (draw(of, size)) }
                }
            }
            g transform={ "translate(" (px(MARGIN)) "," (px(below)) ")" } { (key) }
            @for (at, note) in notes.iter().enumerate() {
                text.name x=(px(MARGIN)) y=(px(noted(at))) { (note) }
            }
        }
    };
    format!("{}\n", drawing.into_string())
}

/// Returns a text in lines of so many characters at most, but for longer words.
fn wrapped(text: &str, chars_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("a line");
        if last.is_empty() || last.chars().count() + 1 + word.chars().count() <= chars_max {
            let blank = if last.is_empty() { "" } else { " " };
            last.extend([blank, word]);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

pub(crate) fn sample(label: usize) -> Markup {
    let style = Style::of(label);
    html! {
        path.l d="M1,6H27" stroke-dasharray=[style.dashes] {}
        path.m d=(style.marker(14.0, 6.0)) {}
    }
}

/// Samples and labels in columns, with the kinds of spans that are shown, and how high they are.
fn legend(charts: &[Chart], labels: &[&str], width: f64) -> (Markup, f64) {
    let mut used: Vec<usize> = charts.iter().flat_map(Chart::drawn).collect();
    used.sort_unstable();
    used.dedup();
    let mut kinds: Vec<SpanKind> = Vec::new();
    for span in charts.iter().flat_map(|chart| &chart.spans) {
        if !kinds.contains(&span.kind) {
            kinds.push(span.kind);
        }
    }
    let shade =
        |kind: SpanKind| html! { rect class=(kind.names().0) x="1" width="26" height="12" {} };
    let line = |at: usize| html! { g class={ "c" (Style::of(at).colour) } { (sample(at)) } };
    let names = used.into_iter().map(|at| (clip(&label(labels[at]), LABEL_MAX), line(at)));
    let kinds = kinds.into_iter().map(|kind| (kind.names().1.to_owned(), shade(kind)));
    let entries: Vec<(String, Markup)> = names.chain(kinds).collect();
    let widest = entries.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let column = SAMPLE + widest as f64 * CHAR + 20.0;
    let abreast = ((width / column) as usize).clamp(1, entries.len().max(1));
    let rows = entries.len().div_ceil(abreast).max(1);
    // Down first: neighbours in the tables are neighbours here.
    let place = |at: usize| ((at / rows) as f64 * column, (at % rows) as f64 * LINE);
    let drawing = html! {
        @for (at, (name, sample)) in entries.iter().enumerate() {
            @let (x, y) = place(at);
            g transform={ "translate(" (px(x)) "," (px(y)) ")" } {
                (sample)
                text x=(px(SAMPLE)) y="10" { (markup(name)) }
            }
        }
    };
    (drawing, if entries.is_empty() { 0.0 } else { rows as f64 * LINE })
}

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
        Plot { left, right: size.0 - 14.0, top: 22.0, bottom: size.1 - 38.0, inset }
    }

    pub(crate) fn x(self, axis: &Axis, value: f64) -> f64 {
        self.left + self.inset + axis.scale.at(value) * (self.right - self.left - 2.0 * self.inset)
    }

    pub(crate) fn y(self, axis: &Axis, value: f64) -> f64 {
        self.bottom - axis.scale.at(value) * (self.bottom - self.top)
    }
}

pub(crate) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

pub(crate) fn draw(chart: &Chart, size: Size) -> Markup {
    let plot = Plot::of(chart, size);
    let middle = f64::midpoint(plot.left, plot.right);
    html! {
        @for span in &chart.spans { (shade(chart, plot, *span)) }
        (grid(chart, plot))
        text.name x="2" y="12" { (chart.y.name) }
        text.name.mid x=(px(middle)) y=(px(size.1 - 5.0)) { (chart.x.name) }
        @if let Some(value) = chart.rule {
            path.rule d={ "M" (px(plot.left)) "," (px(plot.y(&chart.y, value))) "H" (px(plot.right)) } {}
        }
        @for (at, series) in chart.series.iter().enumerate() {
            (line(chart, plot, series, aside(at, chart.series.len())))
        }
    }
}

fn grid(chart: &Chart, plot: Plot) -> Markup {
    let (left, right, bottom) = (px(plot.left), px(plot.right), px(plot.bottom));
    let y = |tick: &Tick| plot.y(&chart.y, tick.at);
    let across = spaced(chart, plot);
    let ticks = chart.y.ticks.iter().map(|tick| format!("M{left},{}H{right}", px(y(tick))));
    let below = across.iter().map(|(x, _)| format!("M{},{bottom}v4", px(*x)));
    html! {
        path.grid d=(ticks.chain(below).collect::<String>()) {}
        path.axis d={ "M" (left) "," (bottom) "H" (right) } {}
        @for tick in &chart.y.ticks {
            text.end x=(px(plot.left - 6.0)) y=(px(y(tick) + 4.0)) { (tick.text) }
        }
        @for (x, text) in across {
            text.mid x=(px(x)) y=(px(plot.bottom + 16.0)) { (text) }
        }
    }
}

/// Returns the ticks across that do not touch each other; the last one is always there.
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
        rect class=(span.kind.names().0) x=(px(from)) y=(px(plot.top)) width=(px(width))
            height=(px(plot.bottom - plot.top)) {}
    }
}

/// How far the bars of a line stand beside its points, so that those of several lines do not hide
/// each other.
fn aside(at: usize, of: usize) -> f64 {
    ((at as f64 + 0.5) / of as f64 - 0.5) * (of as f64 * BARS_APART).min(BARS_MAX)
}

/// Returns a label's line: the spread and the intervals of its points, the line, the markers.
fn line(chart: &Chart, plot: Plot, series: &Series, aside: f64) -> Markup {
    let style = Style::of(series.label);
    let place = |point: &Point| (plot.x(&chart.x, point.x), plot.y(&chart.y, point.y));
    // Where a bar of a point stands, and its ends.
    let bar = |point: &Point, (low, high): (f64, f64)| {
        let [low, high] = [low, high].map(|value| px(plot.y(&chart.y, value)));
        (place(point).0 + aside, low, high)
    };
    let each = |of: &dyn Fn(&Point) -> Option<String>| -> Option<String> {
        let drawn: String = series.points.iter().filter_map(of).collect();
        (!drawn.is_empty()).then_some(drawn)
    };
    let vertex = |point: &Point| {
        let (x, y) = place(point);
        format!("{},{}", px(x), px(y))
    };
    let vertices: Vec<String> = series.points.iter().map(vertex).collect();
    // A line needs an end: a lone vertex is a dot.
    let dot = if vertices.len() == 1 { "h0" } else { "" };
    let spread = each(&|point| {
        let (x, low, high) = bar(point, point.range?);
        Some(format!("M{},{high}V{low}", px(x)))
    });
    let intervals = each(&|point| {
        let (x, low, high) = bar(point, point.interval?);
        let [left, x, right] = [x - CAP, x, x + CAP].map(px);
        Some(format!("M{left},{high}H{right}M{x},{high}V{low}M{left},{low}H{right}"))
    });
    let markers = each(&|point| {
        let (x, y) = place(point);
        point.marked.then(|| style.marker(x, y))
    });
    let said: Vec<&str> = series.points.iter().map(|point| point.said.as_str()).collect();
    let said = said.iter().any(|said| !said.is_empty()).then(|| markup(&said.join("|")));
    html! {
        g class={ "s" (series.label) " c" (style.colour) } data-v=[said] {
            @if let Some(spread) = spread { path.e d=(spread) {} }
            @if let Some(intervals) = intervals { path.i d=(intervals) {} }
            path.l d={ "M" (vertices.join(" ")) (dot) } stroke-dasharray=[style.dashes] {}
            @if let Some(markers) = markers { path.m d=(markers) {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn many_labels_look_different() {
        let looks: BTreeSet<String> = (0..320).map(|i| format!("{:?}", Style::of(i))).collect();
        assert_eq!(looks.len(), 320);
        let first: BTreeSet<String> =
            (0..8).map(|i| format!("{:?}", Style::of(i).marker)).collect();
        assert_eq!(first.len(), 8);
    }

    #[test]
    fn every_colour_has_a_value() {
        assert!(!of_file().contains("var("), "{}", of_file());
        let page = of_page();
        for used in page.split("var(--").skip(1) {
            let name = used.split(')').next().expect("a name");
            assert_eq!(page.matches(&format!("--{name}:")).count(), 2, "{name} in both schemes");
        }
    }
}
