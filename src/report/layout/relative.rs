//! Absolute and relative numbers side by side, as the fourth published text has them.

use super::super::baseline::{NO_RATIO, relate};
use super::super::number::ratio_decimals;
use super::super::page::{Page, Sheet, Value, both, filed, shown};
use super::super::pivot::{Line, Table};
use super::super::{caption, escape, notes};
use super::{Row, at_clients, below, codes, label, place_and_metric, rows};
use crate::error::Result;

/// The note of a step that explains its label: `--note note=TEXT`.
const REMARK: &str = "note";

/// The page of one workload and number of clients.
pub(super) fn page(table: Table, baseline: Option<&str>) -> Result<Page> {
    let has_number = |line: &&Line| line.cell().is_some();
    let first = table.lines.iter().find(has_number).or(table.lines.first());
    let base = baseline.or(first.map(|line| line.label)).unwrap_or("").to_owned();
    // Here the baseline may be missing though other pages have it: then nothing relates.
    let there = table.lines.iter().filter(has_number).any(|line| line.label == base);
    let mut tables = [table];
    if there {
        relate(&mut tables, &base)?;
    }
    let [mut table] = tables;
    // The title tells the metric itself, and not its ratio.
    table.baseline = None;
    let (short, _) = table.metric.short();
    let shown_base = escape::line(&base);
    let how = if table.metric.higher_is_better() {
        format!("{short} / {short}-for-{shown_base}")
    } else {
        format!("{short}-for-{shown_base} / {short}")
    };
    let mut below = below(&table);
    if !there {
        below.push(format!("{shown_base} has no number here: nothing to relate to"));
    } else if table.lines.iter().filter_map(Line::cell).any(|cell| cell.relative.is_none()) {
        below.push(NO_RATIO.to_owned());
    }
    let title = format!("{}; {}", caption::title(&table), at_clients(&table.columns[0]));
    let title = vec![title, format!("Relative-perf is {how}")];
    Ok(Page { title, sheets: vec![sheet(&table, &base)], below, ..Page::default() })
}

fn sheet(table: &Table, base: &str) -> Sheet {
    let column = table.columns[0];
    let cells = || table.lines.iter().filter_map(Line::cell);
    let decimals = table.metric.decimals(cells().map(|cell| cell.spread.median));
    let ratios = ratio_decimals(cells().filter_map(|cell| cell.relative));
    let mut columns = place_and_metric(table, |_: &Row| column);
    columns.extend([
        both("", "label", |(_, line): &Row| Value::Label(line.label.to_owned(), label(line.label)))
            .left(),
        both(table.metric.short().0, "value", |(_, line): &Row| {
            line.cell().map(|cell| (cell.spread.median, decimals))
        }),
        filed("baseline", |_: &Row| base),
        both("Relative-perf", "relative", |(_, line): &Row| {
            // As published: the baseline is 1, and what merely equals it 1.00.
            let decimals = if line.label == base { 0 } else { ratios };
            line.cell().and_then(|cell| cell.relative).map(|relative| (relative, decimals))
        }),
        // The signs of footnotes end the line: numbers follow the label alone.
        shown("", |(at, line): &Row| {
            format!("{} {}", notes::marks(table, *at).trim(), remark(line)).trim().to_owned()
        })
        .left(),
        filed("notes", |(at, _): &Row| codes(table, &[*at], &column)),
    ]);
    Sheet::of(columns, rows(table))
}

/// What the note of a label's steps says, where it has one.
fn remark(line: &Line) -> String {
    let note = line.steps.iter().find_map(|step| step.notes.get(REMARK));
    note.map_or_else(String::new, |note| format!("-> {}", escape::line(note)))
}
