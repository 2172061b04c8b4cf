//! The table of a workload: one label a line, the best of each column and what is marked visible.

use maud::{Markup, html};

use super::super::escape::markup;
use super::super::notes::{self, mark};
use super::super::pivot::{Cell, Column, Table};
use super::super::{caption, chart, number, text};
use super::best::Best;
use crate::summary::VerdictKind;

/// Digits after the point of a ratio's interval: two would often hide it.
const RATIO_DECIMALS: usize = 3;

/// The table with its title, what its marks and small numbers mean, and its footnotes.
pub(super) fn table(table: &Table, best: &Best, labels: &[&str]) -> Markup {
    let cells = text::cells(table);
    let legend: Vec<String> =
        best.legend(&table.columns).into_iter().chain(small_legend(table)).collect();
    let related = table.baseline.is_some();
    let decimals = if related { RATIO_DECIMALS } else { table.metric.decimals(table.shown()) };
    html! {
        @let title = markup(&caption::title(table));
        p.title { (title) }
        div.scroll { table.main aria-label=(title) {
            thead {
                tr {
                    th.text scope="col" rowspan="2" { "label" }
                    th.over scope="colgroup" colspan=(table.columns.len()) { (text::HEADER) }
                }
                tr { @for column in &table.columns { th scope="col" { (column.to_string()) } } }
            }
            tbody { @for (line, texts) in cells.iter().enumerate() {
                @if let Some(of) = table.lines.get(line) {
                    @let at = chart::position(labels, of.label);
                    @let base = table.baseline.as_deref() == Some(of.label);
                    tr class={ "s" (at) @if base { " base" } } {
                        th.text scope="row" { (chart::shown(of.label)) (whole_line(table, line)) }
                        @for ((column, shown), cell) in table.columns.iter().zip(texts).zip(&of.cells) {
                            @let leads = cell.is_some() && best.holds(column, line);
                            @let doubt = cell.as_ref().is_some_and(doubtful);
                            td class=[leads.then_some("best")] {
                                @if doubt { u { (shown) } } @else { (shown) }
                                (marks(table, line, column))
                                @if let Some(cell) = cell { (small(table, cell, decimals)) }
                            }
                        }
                    }
                }
            } }
        } }
        @if !legend.is_empty() { p.faint { (legend.join(" ")) } }
        @if !related { @for (at, note) in table.notes.iter().enumerate() {
            p.note { (mark(at)) " " (markup(&note.text)) }
        } }
    }
}

/// Whether a verdict says that the number is not simply the server's.
fn doubtful(cell: &Cell) -> bool {
    let verdicts = cell.steps.iter().filter_map(|step| step.verdict.as_ref());
    verdicts.into_iter().any(|verdict| verdict.kind != VerdictKind::Ok)
}

/// What the runs say about a number: its 95 % interval, or what they lie between where they are
/// too few for one.
fn small(table: &Table, cell: &Cell, decimals: usize) -> Markup {
    let spread = &cell.spread;
    let shown = |value| number::number(value, decimals);
    let range = || format!("{}..{}", shown(spread.min), shown(spread.max));
    match (interval(table, cell), &table.baseline) {
        (Some((low, high)), None) => html! {
            small title={ (spread.n) " runs: " (range()) } { "[" (shown(low)) ", " (shown(high)) "]" }
        },
        (Some((low, high)), Some(_)) => html! { small { "[" (shown(low)) ", " (shown(high)) "]" } },
        (None, None) if spread.n > 1 => html! { small { (range()) } },
        (None, _) => html! {},
    }
}

/// The 95 % interval of what a cell shows.
fn interval(table: &Table, cell: &Cell) -> Option<(f64, f64)> {
    if table.baseline.is_some() { cell.relative_interval } else { cell.interval }
}

/// What the small numbers are, where there are any.
fn small_legend(table: &Table) -> Option<String> {
    let cells = || table.lines.iter().flat_map(|line| &line.cells).flatten();
    let intervals = cells().any(|cell| interval(table, cell).is_some());
    if table.baseline.is_some() {
        return intervals.then(|| {
            "Small: 95 % interval of the ratio from the runs of both labels, each by itself, not \
             corrected for the number of cells; loadgen compare decides."
                .to_owned()
        });
    }
    let ranges = cells().any(|cell| cell.spread.n > 1 && cell.interval.is_none());
    let said: Vec<&str> = [
        intervals.then_some("[ ] the 95 % interval of the median"),
        ranges.then_some("a..b the smallest and the largest run, too few for an interval"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!said.is_empty()).then(|| format!("Small: {}.", said.join("; ")))
}

/// Whether a note holds for everything that a line shows.
fn holds_throughout(table: &Table, note: &notes::Note, line: usize) -> bool {
    let (Some(columns), Some(of)) = (note.places.get(&line), table.lines.get(line)) else {
        return false;
    };
    let shown = table.columns.iter().zip(&of.cells).filter(|(_, cell)| cell.is_some());
    shown.map(|(column, _)| column).all(|column| columns.contains(column))
}

fn whole_line(table: &Table, line: usize) -> Markup {
    let notes = table.notes.iter().enumerate();
    let signs =
        notes.filter(|(_, note)| holds_throughout(table, note, line)).map(|(at, _)| mark(at));
    let signs: Vec<String> = signs.collect();
    html! { @if !signs.is_empty() { " " sup { (signs.join(" ")) } } }
}

fn marks(table: &Table, line: usize, column: &Column) -> Markup {
    let here = |note: &notes::Note| {
        note.places.get(&line).is_some_and(|columns| columns.contains(column))
            && !holds_throughout(table, note, line)
    };
    let notes = table.notes.iter().enumerate().filter(|(_, note)| here(note));
    let signs: Vec<String> = notes.map(|(at, _)| mark(at)).collect();
    html! { @if !signs.is_empty() { sup.marked { (signs.join(" ")) } } }
}
