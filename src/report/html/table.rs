//! The table of a workload: one label a line, the best of each column and what is marked visible;
//! and the same relative to one label.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::super::compare::{ASKED_FOR, interval as ratio_interval, is_asked_for, related};
use super::super::escape::markup;
use super::super::layout;
use super::super::notes::{self, mark};
use super::super::page::number;
use super::super::settings::{self, label};
use super::super::table::{Cell, Column, Table};
use super::super::{Options, chart};
use crate::error::Result;
use crate::summary::VerdictKind;

/// Digits after the point of a ratio's interval: two would often hide it.
const RATIO_DECIMALS: usize = 3;

/// The best of each column: the positions of its lines, and whether the runs are enough to tell it from
/// all others. None where there is no choice, or where the number is what was asked for.
pub(super) struct Best(BTreeMap<Column, (BTreeSet<usize>, bool)>);

impl Best {
    pub(super) fn of(table: &Table) -> Result<Best> {
        let mut best = BTreeMap::new();
        let found = table.columns.iter().enumerate().filter(|(_, c)| !is_asked_for(table, c));
        for (at, column) in found {
            let cells = table.lines.iter().enumerate();
            let cells = cells.filter_map(|(line, of)| Some((line, of.cells[at].as_ref()?)));
            let cells: Vec<(usize, &Cell)> =
                cells.filter(|(_, cell)| cell.spread.median.is_finite()).collect();
            let top = cells.iter().max_by(|(_, a), (_, b)| {
                let (a, b) = (a.spread.median, b.spread.median);
                if table.metric.higher_is_better() { a.total_cmp(&b) } else { b.total_cmp(&a) }
            });
            let Some((_, top)) = top.filter(|_| cells.len() > 1) else { continue };
            let (mut lines, mut told) = (BTreeSet::new(), true);
            for (line, cell) in &cells {
                let interval = ratio_interval(top, cell, &table.metric, 1.0)?;
                told &= interval.is_some();
                let equal = cell.spread.median.total_cmp(&top.spread.median).is_eq();
                if equal || interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high) {
                    lines.insert(*line);
                }
            }
            best.insert(*column, (lines, told));
        }
        Ok(Best(best))
    }

    fn holds(&self, column: &Column, line: usize) -> bool {
        self.0.get(column).is_some_and(|(lines, _)| lines.contains(&line))
    }

    /// Tells what the mark means in a table.
    fn legend(&self, columns: &[Column]) -> Option<String> {
        const ALL: &str =
            "and all that its runs do not tell from it (the 95 % interval of their ratio holds 1)";
        let marked: Vec<(&Column, bool)> =
            columns.iter().filter_map(|column| Some((column, self.0.get(column)?.1))).collect();
        let untold = marked.iter().filter(|(_, told)| !told);
        let untold: Vec<String> = untold.map(|(column, _)| column.to_string()).collect();
        let best = "Bold on grey: the best median of a column";
        Some(match (marked.len(), untold.len()) {
            (0, _) => return None,
            (_, 0) => format!("{best}, {ALL}."),
            (marked, untold) if marked == untold => {
                format!("{best}; the runs are too few to tell whether it is more than chance.")
            }
            _ => format!("{best}, {ALL}; at {} the runs are too few to tell.", untold.join(", ")),
        })
    }
}

/// The numbers of a workload relative to the label that was asked for, else to the first one that was
/// measured: the columns in which another label has a ratio, and what is to be said of the others.
pub(super) fn ratios<'a>(
    plain: &Table<'a>,
    all: &[Table],
    options: &Options,
) -> Result<(Option<Table<'a>>, Vec<String>)> {
    let first = || plain.lines.iter().find(|line| !line.steps.is_empty()).map(|l| l.label);
    let Some(base) = options.baseline.as_deref().or_else(first) else { return Ok((None, vec![])) };
    if plain.lines.iter().all(|line| line.label == base) {
        return Ok((None, vec![]));
    }
    let shown = label(base);
    let Some(mut table) = related(plain, all, base)? else {
        return Ok((None, vec![format!("No ratios: {shown} was not measured here.")]));
    };
    let asked_for = (table.columns.len() < plain.columns.len()).then(|| ASKED_FOR.to_owned());
    if table.columns.is_empty() {
        return Ok((None, asked_for.into_iter().collect()));
    }
    let mut remarks = settings::unrelated(&table);
    remarks.extend(asked_for);
    let has = |at: usize, of_base: bool| {
        let mut lines = table.lines.iter().filter(|line| (line.label == base) == of_base);
        lines.any(|line| line.cells[at].as_ref().is_some_and(|cell| cell.relative.is_some()))
    };
    let kept: Vec<bool> = (0..table.columns.len()).map(|at| has(at, false)).collect();
    let alone = (0..kept.len()).filter(|at| !kept[*at] && has(*at, true));
    let alone: Vec<String> = alone.map(|at| table.columns[at].to_string()).collect();
    table.keep(&|at| kept[at]);
    if table.columns.is_empty() {
        remarks.push(format!("No ratios: no other label has a number where {shown} has one."));
        return Ok((None, remarks));
    }
    if !alone.is_empty() {
        remarks.push(format!("no other label than {shown} has a cell at {}", alone.join(", ")));
    }
    Ok((Some(table), remarks))
}

/// Returns the table with its title, what its marks and small numbers mean, and its footnotes.
pub(super) fn table(table: &Table, best: &Best, labels: &[&str]) -> Markup {
    let shown_decimals = layout::decimals(table);
    let legend: Vec<String> =
        best.legend(&table.columns).into_iter().chain(small_legend(table)).collect();
    let related = table.baseline.is_some();
    let decimals = if related { RATIO_DECIMALS } else { table.metric.decimals(table.shown()) };
    html! {
        @let title = markup(&settings::title(table));
        p.title { (title) }
        div.scroll { table.main aria-label=(title) {
            thead {
                tr {
                    th.text scope="col" rowspan="2" { "label" }
                    th.over scope="colgroup" colspan=(table.columns.len()) { (layout::CLIENTS) }
                }
                tr { @for column in &table.columns { th scope="col" { (column.to_string()) } } }
            }
            tbody { @for (line, of) in table.lines.iter().enumerate() {
                @let at = chart::position(labels, of.label);
                @let base = table.baseline.as_deref() == Some(of.label);
                tr class={ "s" (at) @if base { " base" } } {
                    th.text scope="row" { (label(of.label)) (signs(table, line, None)) }
                    @for (column, cell) in table.columns.iter().zip(&of.cells) {
                        @let shown = layout::number(table, cell.as_ref(), shown_decimals).text();
                        @let leads = cell.is_some() && best.holds(column, line);
                        @let doubt = cell.as_ref().is_some_and(doubtful);
                        td class=[leads.then_some("best")] {
                            @if doubt { u { (shown) } } @else { (shown) }
                            (signs(table, line, Some(column)))
                            @if let Some(cell) = cell { (small(table, cell, decimals)) }
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

/// Tells whether a verdict says that the number is not simply the server's.
fn doubtful(cell: &Cell) -> bool {
    let verdicts = cell.steps.iter().filter_map(|step| step.verdict.as_ref());
    verdicts.into_iter().any(|verdict| verdict.kind != VerdictKind::Ok)
}

/// What the runs say about a number: its 95 % interval, or what they lie between where they are
/// too few for one.
fn small(table: &Table, cell: &Cell, decimals: usize) -> Markup {
    let spread = &cell.spread;
    let shown = |value| number(value, decimals);
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

/// Returns the 95 % interval of what a cell shows.
fn interval(table: &Table, cell: &Cell) -> Option<(f64, f64)> {
    if table.baseline.is_some() { cell.relative_interval } else { cell.interval }
}

/// Tells what the small numbers are, where there are any.
fn small_legend(table: &Table) -> Option<String> {
    let intervals = table.cells().any(|cell| interval(table, cell).is_some());
    if table.baseline.is_some() {
        let said = "Small: 95 % interval of the ratio from the runs of both labels, each by itself, not \
                    corrected for the number of cells; loadgen compare decides.";
        return intervals.then(|| said.to_owned());
    }
    let ranges = table.cells().any(|cell| cell.spread.n > 1 && cell.interval.is_none());
    let intervals = intervals.then_some("[ ] the 95 % interval of the median");
    let ranges = ranges.then_some("a..b the smallest and the largest run, too few for an interval");
    let said: Vec<&str> = intervals.into_iter().chain(ranges).collect();
    (!said.is_empty()).then(|| format!("Small: {}.", said.join("; ")))
}

/// Returns the signs of the notes that hold for everything that a line shows, or of those that hold for
/// one column alone.
fn signs(table: &Table, line: usize, column: Option<&Column>) -> Markup {
    let of = &table.lines[line];
    let here = |note: &notes::Note| {
        let Some(columns) = note.places.get(&line) else { return false };
        let mut shown = table.columns.iter().zip(&of.cells).filter(|(_, cell)| cell.is_some());
        let throughout = shown.all(|(column, _)| columns.contains(column));
        column.map_or(throughout, |column| !throughout && columns.contains(column))
    };
    let notes = table.notes.iter().enumerate().filter(|(_, note)| here(note));
    let signs: Vec<String> = notes.map(|(at, _)| mark(at)).collect();
    html! {
        @if !signs.is_empty() {
            @if column.is_none() { " " }
            sup class=[column.map(|_| "marked")] { (signs.join(" ")) }
        }
    }
}
