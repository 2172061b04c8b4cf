//! Charts as SVG: inside a page, or as a file for a write-up.

mod draw;
mod legend;
mod marker;
mod paint;

pub(crate) use draw::{Plot, Size, chart, px};
pub(crate) use legend::sample;
pub(crate) use paint::of_page;

use maud::{Markup, PreEscaped, html};

use super::chart::{self, Chart, Pulse};
use super::compare::{ASKED_FOR, is_asked_for};
use super::escape::markup;
use super::pivot::{Line, Table};
use super::{Options, counted, escape, notes};
use crate::error::{Error, Result};
use crate::summary::Summary;

/// One chart of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Picture {
    /// The numbers over the clients, with the spread of the repeats
    #[default]
    Qps,
    /// The same relative to one label (--baseline, else the first)
    Relative,
    /// Latency by percentile
    Latency,
    /// Ops a second in the course of each step
    Timeline,
}

/// Charts beside each other in a file.
const ABREAST: usize = 2;
/// Below this, one chart takes all of the width.
const WIDE: Size = Size { width: 720.0, height: 420.0 };
/// Each of several.
const SMALL: Size = Size { width: 460.0, height: 300.0 };
/// Around everything.
const MARGIN: f64 = 12.0;
/// A chart's own title.
const TITLE: f64 = 26.0;
/// A line of what stands below everything.
const NOTE: f64 = 18.0;

/// A standalone file.
///
/// # Errors
///
/// Those of [`super::render`]; nothing to draw.
pub fn picture(steps: &[&Summary], options: &Options, what: Picture) -> Result<String> {
    let tables = counted(steps, options)?;
    let labels = chart::labels(&tables);
    let mut charts = Vec::new();
    for table in &tables {
        charts.extend(of_table(table, &tables, &labels, options, what)?);
    }
    if charts.is_empty() {
        let mut columns =
            tables.iter().flat_map(|table| table.columns.iter().map(move |c| (table, c)));
        let hint = if what == Picture::Relative && columns.any(|(table, c)| is_asked_for(table, c))
        {
            ASKED_FOR
        } else {
            "another --chart, or --format text for what they hold"
        };
        return Err(Error::data("there is nothing to draw in these summaries").hint(hint));
    }
    Ok(file(&charts, &labels, &differences(&tables)))
}

/// What lines do not share with the first one of their table, or within themselves. By their servers'
/// settings labels differ anyway.
fn differences(tables: &[Table]) -> Vec<String> {
    const SAID: [&str; 5] =
        ["conditions", "overheads", "other_queues", "unknown_conditions", "invocations"];
    let mut said = Vec::new();
    for table in tables {
        let notes = notes::notes(table);
        for note in notes.iter().filter(|note| SAID.contains(&note.code.as_str())) {
            let lines = note.places.keys().filter_map(|at| table.lines.get(*at));
            let labels: Vec<&str> = lines.map(|line| line.label).collect();
            let text = format!("{}, {}: {}", table.workload, labels.join(", "), note.text);
            said.push(markup(&text));
        }
    }
    said
}

/// A text in lines of so many characters at most, but for longer words.
fn wrapped(text: &str, chars_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= chars_max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
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
            let first = table.lines.first().map_or("", |line| line.label);
            let base = options.baseline.as_deref().unwrap_or(first);
            super::baseline::known(tables, "--baseline", base)?;
            let related = super::baseline::related(table, tables, base)?;
            related.map_or_else(Vec::new, |related| chart::relative(&related, labels))
        }
        Picture::Latency => chart::percentiles(table, labels)?,
        Picture::Timeline => {
            let each = chart::vertices_each(table.lines.iter().flat_map(Line::all).count());
            chart::timelines(table, labels, Pulse::Rate, each).concat()
        }
    })
}

/// Charts in a grid, and below them what tells the labels apart.
fn file(charts: &[Chart], labels: &[&str], notes: &[String]) -> String {
    let (size, abreast) = if charts.len() == 1 { (WIDE, 1) } else { (SMALL, ABREAST) };
    let cell = Size { width: size.width + MARGIN, height: size.height + TITLE + MARGIN };
    let width = MARGIN + cell.width * abreast as f64;
    let rows = charts.len().div_ceil(abreast);
    let mut used: Vec<usize> =
        charts.iter().flat_map(|chart| &chart.series).map(|series| series.label).collect();
    used.sort_unstable();
    used.dedup();
    let below = MARGIN + cell.height * rows as f64;
    let named: Vec<(usize, &str)> =
        used.iter().filter_map(|at| Some((*at, *labels.get(*at)?))).collect();
    let (key, height) = legend::key(&named, &spans(charts), width - 2.0 * MARGIN);
    let chars = ((width - 2.0 * MARGIN) / (draw::CHAR + 1.0)) as usize;
    let notes = notes.iter().flat_map(|note| wrapped(note, chars));
    let notes: Vec<String> =
        chart::bars(charts).map(str::to_owned).into_iter().chain(notes).collect();
    let noted = |at: usize| below + height + TITLE + NOTE * at as f64;
    let height = match notes.len() {
        0 => below + height,
        some => noted(some - 1),
    } + MARGIN;
    let place = |at: usize| {
        let x = MARGIN + cell.width * (at % abreast) as f64;
        let y = MARGIN + cell.height * (at / abreast) as f64;
        format!("translate({},{})", px(x), px(y))
    };
    let drawing: Markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(px(width)) height=(px(height))
            viewBox={ "0 0 " (px(width)) " " (px(height)) } {
            title { (charts.first().map_or_else(String::new, full)) }
            style { (PreEscaped(paint::of_file())) }
            rect width="100%" height="100%" fill="#ffffff" {}
            @for (at, of) in charts.iter().enumerate() {
                g transform=(place(at)) {
                    text.title x="2" y="15" { (fitting(&full(of), size.width)) }
                    g transform={ "translate(0," (px(TITLE)) ")" } { (draw::chart(of, size)) }
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

/// The kinds of spans that anything shows.
fn spans(charts: &[Chart]) -> Vec<chart::SpanKind> {
    let mut kinds: Vec<chart::SpanKind> = Vec::new();
    for span in charts.iter().flat_map(|chart| &chart.spans) {
        if !kinds.contains(&span.kind) {
            kinds.push(span.kind);
        }
    }
    kinds
}

/// A title that needs no heading around it.
fn full(chart: &Chart) -> String {
    markup(&format!("{}: {}", chart.of, chart.title))
}

/// A title that ends before its chart does.
fn fitting(title: &str, width: f64) -> String {
    escape::clip(title, (width / (draw::CHAR + 1.0)) as usize)
}
