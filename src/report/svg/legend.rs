//! What tells the labels of a file apart.

use maud::{Markup, html};

use super::super::chart::{self, SpanKind, Style};
use super::super::escape::{clip, markup};
use super::draw::{CHAR, class, px};
use super::marker;

/// A line of the legend.
const LINE: f64 = 20.0;
/// The sample before a label, with the blank behind it.
const SAMPLE: f64 = 36.0;
/// Longest label that is shown, characters.
const LABEL_MAX: usize = 48;

/// A piece of a label's line with its marker, 28 by 12.
pub(crate) fn sample(label: usize) -> Markup {
    let style = Style::of(label);
    let mut shape = String::new();
    marker::put(&mut shape, style.marker, 14.0, 6.0);
    html! {
        path.l d="M1,6H27" stroke-dasharray=[(!style.dashes.is_empty()).then_some(style.dashes)] {}
        path.m d=(shape) {}
    }
}

/// Samples and labels in columns, and how high they are.
pub(crate) fn key(labels: &[(usize, &str)], spans: &[SpanKind], width: f64) -> (Markup, f64) {
    let names = labels.iter().map(|(at, label)| (Some(*at), clip(&chart::shown(label), LABEL_MAX)));
    let spans = spans.iter().map(|kind| (None, kind.name().to_owned(), Some(*kind)));
    let entries: Vec<(Option<usize>, String, Option<SpanKind>)> =
        names.map(|(at, name)| (at, name, None)).chain(spans).collect();
    let widest = entries.iter().map(|(_, name, _)| name.chars().count()).max().unwrap_or(0);
    let column = SAMPLE + widest as f64 * CHAR + 20.0;
    let abreast = ((width / column) as usize).clamp(1, entries.len().max(1));
    let rows = entries.len().div_ceil(abreast);
    // Down first: neighbours in the tables are neighbours here.
    let place = |at: usize| ((at / rows.max(1)) as f64 * column, (at % rows.max(1)) as f64 * LINE);
    let drawing = html! {
        @for (at, (label, name, span)) in entries.iter().enumerate() {
            @let (x, y) = place(at);
            g transform={ "translate(" (px(x)) "," (px(y)) ")" } {
                @if let Some(label) = label {
                    g class={ "c" (Style::of(*label).colour) } { (sample(*label)) }
                }
                @if let Some(kind) = span {
                    rect class=(class(*kind)) x="1" width="26" height="12" {}
                }
                text x=(px(SAMPLE)) y="10" { (markup(name)) }
            }
        }
    };
    (drawing, rows as f64 * LINE)
}
