//! One kind of chart as a file of its own, for a write-up.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};

use super::chart::{
    CHAR, Chart, LINE, MARGIN, STYLE, Shade, Size, bars, class, draw, drawn, over_clients,
    percentiles, px, sample,
};
use super::escape::{clip, markup};
use super::labels::{Labels, base_of, first_measured, labels};
use super::names::label;
use super::notes::noted;
use super::options::Options;
use super::ratio::{Ratios, explain_asked_for, is_asked_for};
use super::run::Runs;
use super::table::WorkloadTable;
use super::tables::tables_to_show;
use super::timeline::{RATE_COURSES, TIME_COURSES, timelines, vertices_each};
use crate::error::{Error, Result};
use crate::terms::{Code, Picture, Raised};

const WIDE: Size = (720.0, 420.0);
const SMALL: Size = (460.0, 300.0);
const TITLE: f64 = 26.0;
/// Room of the sample before a label.
const SAMPLE: f64 = 36.0;
/// Characters of a workload and a label that also a long title leaves.
const NAME_MIN: usize = 20;

/// Returns the rules of a file, without variables, which not every reader of SVG knows.
fn rules_of_file() -> String {
    let between = |text: &'static str, from, to| {
        text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).expect("both parts").0
    };
    let rules = between(STYLE, "/* Drawings: */", "/* Pages alone: */").replace('\n', "");
    let colours = between(STYLE, ":root{", "}").split(';').filter_map(|of| of.split_once(':'));
    colours.fold(rules, |of, (name, value)| of.replace(&format!("var({})", name.trim()), value))
}

/// Draws a standalone file; nothing to draw is an error.
pub fn picture<'a>(runs: impl Into<Runs<'a>>, options: &Options, what: Picture) -> Result<String> {
    let tables = tables_to_show(&runs.into(), options)?;
    let labels = labels(&tables);
    let (ratios, base) = (Ratios::new(&tables), first_measured(&tables));
    let mut charts = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        charts.extend(match what {
            Picture::Qps => over_clients(table, &labels),
            Picture::Relative => {
                let base = options.baseline.as_deref().or_else(|| base_of(table, base));
                let related = base.and_then(|base| ratios.related(at, table, base)).into_iter();
                related.flat_map(|table| over_clients(&table, &labels)).collect()
            }
            Picture::Latency => percentiles(table, &labels)?,
            Picture::Timeline => {
                let vertices = vertices_each(table.all_steps(), 2);
                let draw = |courses| timelines(table, &labels, courses, vertices);
                let drawn = |courses| table.lines.iter().flat_map(draw(courses)).collect();
                interleave(drawn(RATE_COURSES), drawn(TIME_COURSES))
            }
        });
    }
    if charts.is_empty() {
        let of =
            |table: &WorkloadTable| table.columns.iter().any(|column| is_asked_for(table, column));
        let asked_for = what == Picture::Relative && tables.iter().any(of);
        let error = Error::data("there is nothing to draw in these summaries")
            .hint("another --chart, or --format text for what they hold");
        return Err(if asked_for { error.hint(explain_asked_for(options.metric)) } else { error });
    }
    let mut notes: Vec<String> = Vec::new();
    notes.extend(bars(&charts).map(str::to_owned));
    notes.extend(tables.into_iter().flat_map(differences));
    Ok(file(&charts, &labels, &notes))
}

fn interleave(rates: Vec<Chart>, times: Vec<Chart>) -> Vec<Chart> {
    let mut times = times.into_iter().peekable();
    let mut charts = Vec::new();
    for rate in rates {
        let beside = times.next_if(|time| (&time.of, &time.title) == (&rate.of, &rate.title));
        charts.push(rate);
        charts.extend(beside);
    }
    charts.extend(times);
    charts
}

/// Lists the notes of what differs between lines, or within one, without those of servers' settings.
fn differences(table: WorkloadTable) -> Vec<String> {
    let table = noted(table);
    let is_shown = |code: Code| code.raised() == Raised::OfLabel && code != Code::Settings;
    let notes = table.notes.iter().filter(|note| note.finding.code().is_some_and(is_shown));
    let lines = notes.map(|note| {
        let labels: Vec<&str> = note.places.keys().map(|at| table.lines[*at].label).collect();
        format!("{}, {}: {}", table.workload, labels.join(", "), note.text)
    });
    lines.collect()
}

fn file(charts: &[Chart], labels: &Labels, notes: &[String]) -> String {
    let (size, abreast) = if charts.len() == 1 { (WIDE, 1) } else { (SMALL, 2) };
    let cell = (size.0 + MARGIN, size.1 + TITLE + MARGIN);
    let (inner, rows) = (cell.0 * abreast as f64 - MARGIN, charts.len().div_ceil(abreast));
    let chars = |width: f64| (width / (CHAR + 1.0)) as usize;
    let drawn = drawn(charts).into_iter().map(|at| {
        let sample = html! { g class=(class(at)) { (sample(at)) } };
        let text = label(labels[at]);
        // Letters of other scripts may be twice as wide.
        let each = if text.is_ascii() { 1 } else { 2 };
        (Some(sample), clip(&text, chars(inner - SAMPLE) / each))
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
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } {
            title { (write_heading(&charts[0], usize::MAX)) }
            style { (PreEscaped(rules_of_file())) }
            rect width="100%" height="100%" fill="#ffffff" {}
            @for (at, of) in charts.iter().enumerate() {
                @let (x, y) = (cell.0 * (at % abreast) as f64, cell.1 * (at / abreast) as f64);
                (moved(MARGIN + x, MARGIN + y, &html! {
                    text.title x="2" y="15" { (write_heading(of, chars(size.0))) }
                    (moved(0.0, TITLE, &draw(of, size)))
                }))
            }
            @for (at, (sample, text)) in lines.iter().enumerate() {
                (moved(MARGIN, below(at), &html! {
                    @if let Some(sample) = sample { (sample) }
                    text x=(px(if sample.is_some() { SAMPLE } else { 0.0 })) y="10" { (text) }
                }))
            }
        }
    };
    markup(&drawing.into_string()) + "\n"
}

/// Cuts the workload and the label, not the clients behind them, by which charts of one label are told apart.
fn write_heading(chart: &Chart, chars_max: usize) -> String {
    let room = chars_max.saturating_sub(chart.title.chars().count() + ": …".chars().count());
    let room = room.max(NAME_MIN);
    clip(&format!("{}: {}", clip(&chart.of, room), chart.title), chars_max)
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

#[cfg(test)]
mod tests {
    use super::super::chart::Axis;
    use super::*;

    #[test]
    fn a_heading_keeps_the_clients_when_the_label_is_long() {
        let axis = || Axis::elapsed("s", 1.0);
        let headed = |of: &str, title: &str| {
            let chart = Chart {
                of: of.to_owned(),
                title: title.to_owned(),
                x: axis(),
                y: axis(),
                series: Vec::new(),
                spans: Vec::new(),
                rule: None,
                across: None,
                up: None,
            };
            write_heading(&chart, 60)
        };
        let long = format!("point-select, {}", "x".repeat(80));
        let [few, many] = ["8 clients", "64 clients"].map(|at| headed(&long, at));
        assert!(few.ends_with("…: 8 clients") && many.ends_with("…: 64 clients"), "{few} {many}");
        assert_eq!([&few, &many].map(|text| text.chars().count()), [60; 2]);
        assert_eq!(headed("a", "8 clients"), "a: 8 clients");
        assert!(headed("point-select", &long).starts_with("point-select: "));
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
