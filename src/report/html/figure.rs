//! A chart on the page, with its legend.

use maud::{Markup, html};

use super::super::chart::{self, Chart, Scale, Style};
use super::super::escape::markup;
use super::super::svg::{self, Plot, Size, px};
use super::LEGEND_MAX;

/// As wide as a phone: letters stay readable there, and grow on a wider screen.
const USUAL: Size = Size { width: 420.0, height: 280.0 };
/// Timelines are many.
const LOW: Size = Size { width: 420.0, height: 170.0 };

/// Charts beside each other where there is room.
pub(super) fn charts(charts: &[Chart], labels: &[&str]) -> Markup {
    html! {
        @if !charts.is_empty() {
            div.charts { @for chart in charts { (figure(chart, labels, USUAL, true)) } }
            @if let Some(bars) = chart::bars(charts) { p.faint { (bars) } }
        }
    }
}

/// Low ones without a legend: they are all of one label.
pub(super) fn strips(charts: &[Chart], labels: &[&str]) -> Markup {
    html! { div.charts { @for chart in charts { (figure(chart, labels, LOW, false)) } } }
}

fn figure(chart: &Chart, labels: &[&str], size: Size, legend: bool) -> Markup {
    let mut drawn: Vec<usize> = chart.series.iter().map(|series| series.label).collect();
    drawn.sort_unstable();
    drawn.dedup();
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
            svg.chart viewBox={ "0 0 " (px(size.width)) " " (px(size.height)) } role="img"
                aria-label=(markup(&name)) data-x=[across] data-t=[inverse] {
                (svg::chart(chart, size))
            }
            @if legend && drawn.len() <= LEGEND_MAX {
                div.keys { @for at in &drawn { (key(*at, labels.get(*at).copied().unwrap_or(""))) } }
            }
        }
    }
}

/// A label with a sample of its line; it switches the label.
pub(super) fn key(at: usize, label: &str) -> Markup {
    let colour = Style::of(at).colour;
    html! {
        label for={ "l" (at) } class={ "k" (at) } {
            svg class={ "sample c" (colour) } viewBox="0 0 28 12" aria-hidden="true" {
                (svg::sample(at))
            }
            " " (chart::shown(label))
        }
    }
}
