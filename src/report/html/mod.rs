//! One page with everything: tables, charts, what stands behind them. It needs no network and no
//! script; the script adds values below the pointer and shorthands for the switches.

mod behind;
mod best;
mod command;
mod errors;
mod figure;
mod origin;
mod ratios;
mod section;
mod sheet;
mod table;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::chart;
use super::escape::markup;
use super::layout;
use super::pivot::Table;
use super::{Layout, Options, baseline, counted, svg};
use crate::error::Result;
use crate::summary::Summary;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// With more labels than this, the switches have a search, and no chart its own legend.
const LEGEND_MAX: usize = 12;

/// The page of some steps.
///
/// # Errors
///
/// Those of [`super::render`].
pub fn page(steps: &[&Summary], options: &Options) -> Result<String> {
    let tables = counted(steps, options)?;
    if let Some(label) = &options.baseline {
        baseline::known(&tables, "--baseline", label)?;
    }
    let labels = chart::labels(&tables);
    let scene = section::Scene::new(steps, options, &tables, &labels);
    let sections: Result<Vec<Markup>> =
        tables.iter().map(|table| section::workload(&scene, table)).collect();
    let sections = sections?;
    let settings = settings(&tables, options)?;
    let style = format!("{}\n{STYLE}\n{}", svg::of_page(), switched(&labels));
    let body = html! {
        header {
            h1 { "loadgen report" }
            p.faint { (origin::headline(&tables)) }
        }
        (switches(&labels))
        main {
            @for section in sections { (section) }
            section #settings { (settings) }
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

/// A switch for each label. Without it nothing of the label is shown, wherever it is.
fn switches(labels: &[&str]) -> Markup {
    let many = labels.len() > LEGEND_MAX;
    html! {
        fieldset #switches class=[many.then_some("many")] {
            legend { (labels.len()) @if labels.len() == 1 { " label" } @else { " labels" } }
            div.keys {
                @for (at, label) in labels.iter().enumerate() {
                    span.key {
                        input type="checkbox" id={ "l" (at) } checked autocomplete="off";
                        (figure::key(at, label))
                    }
                }
            }
        }
    }
}

/// The rules by which a switch works, one a label.
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

/// What tells the labels from each other.
fn settings(tables: &[Table], options: &Options) -> Result<Markup> {
    let options = Options { layout: Layout::Settings, baseline: None, ..options.clone() };
    let pages = layout::pages(tables, &options)?;
    Ok(html! {
        h2 { "Settings that differ" }
        @for page in &pages { (sheet::page(page, false)) }
    })
}
