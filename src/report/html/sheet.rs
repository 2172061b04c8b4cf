//! The pages of the other layouts as HTML.

use maud::{Markup, html};

use super::super::escape::markup;
use super::super::page::{Body, Grid, Page};

/// A list or a table with its title; what belongs below it, where that is wanted.
pub(super) fn page(page: &Page, below: bool) -> Markup {
    html! {
        p.title { @for line in &page.title { (markup(line)) " " } }
        @match &page.body {
            Body::Bullets(items) => ul { @for item in items { li { (markup(item)) } } },
            Body::Grid(grid) => (table(grid)),
        }
        @if below { @for line in &page.below { p.faint { (markup(line)) } } }
    }
}

/// Numbers to the right, texts to the left.
pub(super) fn table(grid: &Grid) -> Markup {
    let text = |at: usize| grid.texts.contains(&at).then_some("text");
    let row = |cells: &Vec<String>| {
        html! {
            tr { @for (at, cell) in cells.iter().enumerate() {
                td class=[text(at)] { (markup(cell)) }
            } }
        }
    };
    html! {
        div.scroll { table {
            thead { tr { @for (at, head) in grid.head.iter().enumerate() {
                th class=[text(at)] scope="col" { (markup(head)) }
            } } }
            tbody { @for cells in &grid.rows { (row(cells)) } }
            @if let Some((rule, rows)) = &grid.more {
                tbody {
                    tr { th.text.rule colspan=(grid.head.len()) { (markup(rule.trim_start_matches("--- "))) } }
                    @for cells in rows { (row(cells)) }
                }
            }
        } }
    }
}
