//! One page with everything: tables, charts, what stands behind them. It needs no network and no
//! script; the script adds values below the pointer and shorthands for the switches.

mod origin;
mod section;
mod table;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::chart::{self, Chart, Scale};
use super::escape::markup;
use super::layout;
use super::page::{Column, Page, Sheet};
use super::settings;
use super::svg::{self, Plot, Size, Style, px};
use super::table::{Table, known};
use super::{Layout, Options, counted};
use crate::error::Result;
use crate::summary::Summary;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// With more labels than this, the switches have a search, and no chart its own legend.
const LEGEND_MAX: usize = 12;
/// As wide as a phone: letters stay readable there, and grow on a wider screen.
const USUAL: Size = (420.0, 280.0);
/// Timelines are many.
const LOW: Size = (420.0, 170.0);

/// Returns the page of some steps.
///
/// # Errors
///
/// Those of [`super::render`].
pub fn page(steps: &[&Summary], options: &Options) -> Result<String> {
    let tables = counted(steps, options)?;
    if let Some(label) = &options.baseline {
        known(&tables, "--baseline", label)?;
    }
    let labels = chart::labels(&tables);
    let all = section::Sections::new(steps, options, &tables, &labels);
    let sections = tables.iter().map(|table| all.workload(table)).collect::<Result<Vec<_>>>()?;
    let legend = legend(&tables, options)?;
    let style = format!("{}\n{STYLE}\n{}", svg::of_page(), switched(&labels));
    let body = html! {
        header {
            h1 { "loadgen report" }
            p.faint { (origin::headline(&tables)) }
        }
        (switches(&labels))
        main {
            @for section in sections { (section) }
            section #settings { (legend) }
            (origin::section(&tables))
        }
        footer { p.faint {
            "Made by loadgen " (env!("CARGO_PKG_VERSION"))
            " from the summaries alone. Colours: Okabe and Ito."
        } }
    };
    Ok(document(&title(&tables), &style, &body))
}

/// Whatever comes from a summary is text here: nothing but this style and this script may do
/// anything, and nothing is fetched.
fn document(title: &str, style: &str, body: &Markup) -> String {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; \
         form-action 'none'",
        hash(style),
        hash(SCRIPT)
    );
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "loadgen " (env!("CARGO_PKG_VERSION")) };
                link rel="icon" href="data:,";
                title { (markup(title)) }
                style { (PreEscaped(style)) }
            }
            body {
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    format!("{}\n", document.into_string())
}

fn title(tables: &[Table]) -> String {
    let workloads: Vec<&str> = tables.iter().map(|table| table.workload).collect();
    format!("{} - loadgen report", workloads.join(", "))
}

/// Returns a switch for each label. Without it nothing of the label is shown, wherever it is.
fn switches(labels: &[&str]) -> Markup {
    let many = labels.len() > LEGEND_MAX;
    html! {
        fieldset #switches class=[many.then_some("many")] {
            legend { (labels.len()) @if labels.len() == 1 { " label" } @else { " labels" } }
            div.keys {
                @for (at, label) in labels.iter().enumerate() {
                    span.key {
                        input type="checkbox" id={ "l" (at) } checked autocomplete="off";
                        (key(at, label))
                    }
                }
            }
        }
    }
}

/// Returns the rules by which a switch works, one a label.
fn switched(labels: &[&str]) -> String {
    let rules = (0..labels.len()).map(|at| {
        // Asked of the switches alone: of the whole page it would be walked through for each rule.
        let off = format!("#switches:has(#l{at}:not(:checked))~main");
        format!(
            "{off} .s{at}{{display:none}}{off} .k{at},#l{at}:not(:checked)+.k{at}{{opacity:.45}}\n"
        )
    });
    rules.collect()
}

/// Tells what tells the labels from each other.
fn legend(tables: &[Table], options: &Options) -> Result<Markup> {
    let options = Options { layout: Layout::Settings, baseline: None, ..options.clone() };
    let pages = layout::pages(tables, &options)?;
    Ok(html! {
        h2 { "Settings that differ" }
        @for page in &pages { (of_page(page, false)) }
    })
}

/// Charts beside each other where there is room.
fn charts(charts: &[Chart], labels: &[&str]) -> Markup {
    html! {
        @if !charts.is_empty() {
            div.charts { @for chart in charts { (figure(chart, labels, USUAL, true)) } }
            @if let Some(bars) = chart::bars(charts) { p.faint { (bars) } }
        }
    }
}

/// Low ones without a legend: they are all of one label.
fn strips(charts: &[Chart], labels: &[&str]) -> Markup {
    html! { div.charts { @for chart in charts { (figure(chart, labels, LOW, false)) } } }
}

fn figure(chart: &Chart, labels: &[&str], size: Size, legend: bool) -> Markup {
    let drawn = chart.drawn();
    let plot = Plot::of(chart, size);
    let across = chart.across.map(|said| {
        let places = chart.places();
        let said = places.iter().map(|x| format!("{}:{}", px(plot.x(&chart.x, *x)), said(*x)));
        said.collect::<Vec<String>>().join("|")
    });
    // What the script computes values from, where they are not said.
    let inverse = match (chart.across, chart.x.scale, chart.y.scale) {
        (None, Scale::Linear(_, x), Scale::Linear(_, y)) => {
            let Plot { left, right, top, bottom, .. } = plot;
            Some(format!("{} {} {} {} {x} {y}", px(left), px(right), px(top), px(bottom)))
        }
        _ => None,
    };
    // Those without a legend stand below the heading of their label.
    let name = if legend { format!("{}: {}", chart.of, chart.title) } else { chart.title.clone() };
    html! {
        figure {
            figcaption { (markup(&chart.title)) }
            svg.chart viewBox={ "0 0 " (px(size.0)) " " (px(size.1)) } role="img"
                aria-label=(markup(&name)) data-x=[across] data-t=[inverse] {
                (svg::draw(chart, size))
            }
            @if legend && drawn.len() <= LEGEND_MAX {
                div.keys { @for at in &drawn { (key(*at, labels[*at])) } }
            }
        }
    }
}

/// Returns a label with a sample of its line; it switches the label.
fn key(at: usize, label: &str) -> Markup {
    let colour = Style::of(at).colour;
    html! {
        label for={ "l" (at) } class={ "k" (at) } {
            svg class={ "sample c" (colour) } viewBox="0 0 28 12" aria-hidden="true" {
                (svg::sample(at))
            }
            " " (settings::label(label))
        }
    }
}

/// Returns a list or a table with its title; what belongs below it, where that is wanted.
fn of_page(page: &Page, below: bool) -> Markup {
    html! {
        p.title { @for line in &page.title { (markup(line)) " " } }
        @if let Some(first) = page.shown().next() {
            @if first.list {
                ul { @for cells in first.texts() { li { (markup(&cells.concat())) } } }
            } @else {
                (of_sheets(page, first))
            }
        }
        @if below { @for line in page.remarks() { p.faint { (markup(line)) } } }
    }
}

/// Numbers to the right, texts to the left.
fn of_sheets(page: &Page, first: &Sheet) -> Markup {
    let text = |column: &Column| column.left.then_some("text");
    html! {
        div.scroll { table {
            thead { tr { @for column in first.shown() {
                th class=[text(column)] scope="col" { (markup(column.head.as_deref().unwrap_or(""))) }
            } } }
            @for sheet in page.shown() { tbody {
                @if let Some(rule) = &sheet.rule {
                    tr { th.text.rule colspan=(first.shown().count()) { (markup(rule.trim_start_matches("--- "))) } }
                }
                @for cells in sheet.texts() {
                    tr { @for (column, cell) in first.shown().zip(cells) {
                        td class=[text(column)] { (markup(&cell)) }
                    } }
                }
            } }
        } }
    }
}
