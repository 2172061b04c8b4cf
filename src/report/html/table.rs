//! The table of a workload: one label a line, the best of each column and what is marked visible.

use maud::{Markup, html};

use super::super::escape::markup;
use super::super::notes::{self, mark};
use super::super::pivot::{Cell, Table};
use super::super::{caption, chart, number, text};
use crate::summary::VerdictKind;

/// The table with its title and its footnotes.
pub(super) fn table(table: &Table, labels: &[&str]) -> Markup {
    let cells = text::cells(table);
    let best: Vec<Option<usize>> = (0..table.columns.len()).map(|at| best(table, at)).collect();
    let related = table.baseline.is_some();
    html! {
        @let title = markup(&caption::title(table));
        p.title { (title) }
        div.scroll { table.main aria-label=(title) {
            thead { tr {
                th.text scope="col" { "label" }
                @for column in &table.columns { th scope="col" { (column.to_string()) } }
            } }
            tbody { @for (line, texts) in cells.iter().enumerate() {
                @if let Some(of) = table.lines.get(line) {
                    @let at = chart::position(labels, of.label);
                    @let base = table.baseline.as_deref() == Some(of.label);
                    tr class={ "s" (at) @if base { " base" } } {
                        th.text scope="row" { (chart::shown(of.label)) (whole_line(table, line)) }
                        @for (column, shown) in texts.iter().enumerate() {
                            @let cell = of.cells.get(column).and_then(Option::as_ref);
                            @let leads = best.get(column).copied().flatten() == Some(line);
                            td class=[class(leads, cell.is_some_and(doubtful))] {
                                (shown) (marks(table, line, column))
                                @if let (false, Some(cell)) = (related, cell) { (spread(table, cell)) }
                            }
                        }
                    }
                }
            } }
        } }
        @if !related { @for (at, note) in table.notes.iter().enumerate() {
            p.note { (mark(at)) " " (markup(&note.text)) }
        } }
    }
}

/// The line with the best number of a column, where there is a choice.
fn best(table: &Table, column: usize) -> Option<usize> {
    let number = |line: usize| {
        let cell = table.lines.get(line)?.cells.get(column)?.as_ref()?;
        table.number(cell).filter(|value| value.is_finite())
    };
    let have: Vec<(usize, f64)> =
        (0..table.lines.len()).filter_map(|line| Some((line, number(line)?))).collect();
    let higher = table.metric.higher_is_better() || table.baseline.is_some();
    let turned = |value: f64| if higher { value } else { -value };
    let best = have.iter().max_by(|(_, a), (_, b)| turned(*a).total_cmp(&turned(*b)))?;
    (have.len() > 1).then_some(best.0)
}

/// The class of a cell.
fn class(best: bool, doubt: bool) -> Option<&'static str> {
    match (best, doubt) {
        (false, false) => None,
        (true, false) => Some("best"),
        (false, true) => Some("doubt"),
        (true, true) => Some("best doubt"),
    }
}

/// Whether a verdict says that the number is not simply the server's.
fn doubtful(cell: &Cell) -> bool {
    let verdicts = cell.steps.iter().filter_map(|step| step.verdict.as_ref());
    verdicts.into_iter().any(|verdict| verdict.kind != VerdictKind::Ok)
}

/// The smallest and the largest of the repeats.
fn spread(table: &Table, cell: &Cell) -> Markup {
    let spread = &cell.spread;
    let decimals = table.metric.decimals(table.shown());
    let shown = |value| number::number(value, decimals);
    html! { @if spread.n > 1 { small { (shown(spread.min)) ".." (shown(spread.max)) } } }
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

fn marks(table: &Table, line: usize, column: usize) -> Markup {
    let Some(column) = table.columns.get(column) else { return html! {} };
    let here = |note: &notes::Note| {
        note.places.get(&line).is_some_and(|columns| columns.contains(column))
            && !holds_throughout(table, note, line)
    };
    let notes = table.notes.iter().enumerate().filter(|(_, note)| here(note));
    let signs: Vec<String> = notes.map(|(at, _)| mark(at)).collect();
    html! { @if !signs.is_empty() { sup.marked { (signs.join(" ")) } } }
}
