//! The layouts of tables: what each takes, and what it makes of them.

mod change;
mod list;
mod relative;
mod versions;

pub(crate) use relative::LEGEND as COSTS;
pub(crate) use versions::{CLIENTS, decimals, json, number, spread};

use super::notes::{mark, marks, noted};
use super::page::{Page, Value};
use super::settings::{self, label};
use super::table::{Cell, Column, Line, Table, known};
use super::{Layout, Options};
use crate::error::{Error, Result};

/// Refuses labels that a layout does nothing with, and the lack of those that it needs.
pub(crate) fn check(options: &Options) -> Result<()> {
    let layout = options.layout;
    let refused =
        |what: &str, hint: &str| Err(Error::usage(format!("--layout {layout} {what}")).hint(hint));
    if layout.compares() && (options.from.is_none() || options.to.is_none()) {
        return refused("compares two labels", "--from LABEL --to LABEL names them");
    }
    if !layout.compares() && (options.from.is_some() || options.to.is_some()) {
        let hint = "--layout delta and --layout overhead do; --baseline relates all labels";
        return refused("takes no --from and --to", hint);
    }
    if options.spread && layout != Layout::Versions {
        return refused("takes no --spread", "--layout versions, the default, does");
    }
    if !layout.relates() && options.baseline.is_some() {
        return refused("takes no --baseline", "--layout versions, relative and per-op do");
    }
    Ok(())
}

/// Makes the pages of a layout. The tables have neither footnotes nor ratios yet.
pub(crate) fn pages(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    let baseline = options.baseline.as_deref();
    if let Some(label) = baseline {
        known(tables, "--baseline", label)?;
    }
    let slices = || tables.iter().flat_map(Table::by_column).map(noted);
    match options.layout {
        Layout::Versions => Ok(versions::pages(tables, options)),
        Layout::List => Ok(list::list(&slices().collect::<Vec<Table>>())),
        Layout::Peak => Ok(tables.iter().map(|table| list::peak(&noted(table.clone()))).collect()),
        Layout::Outages => Ok(tables.iter().map(list::outages).collect()),
        Layout::Settings => Ok(vec![list::settings(tables)]),
        Layout::Relative => Ok(slices().map(|table| relative::relative(table, baseline)).collect()),
        Layout::PerOp => slices().map(|table| relative::per_op(&table, baseline)).collect(),
        Layout::Suite => relative::suites(slices()),
        Layout::Delta => change::delta(tables, options),
        Layout::Overhead => change::overhead(tables, options),
    }
}

/// A cell of a table with its line and column.
#[derive(Clone, Copy)]
pub(crate) struct Item<'t, 's> {
    pub at: usize,
    pub line: &'t Line<'s>,
    pub column: Column,
    pub cell: &'t Cell<'s>,
}

/// Returns what was measured, line by line.
pub(crate) fn items<'t, 's>(table: &'t Table<'s>) -> impl Iterator<Item = Item<'t, 's>> {
    table.lines.iter().enumerate().flat_map(move |(at, line)| {
        let cells = table.columns.iter().zip(&line.cells);
        cells.filter_map(move |(column, cell)| {
            Some(Item { at, line, column: *column, cell: cell.as_ref()? })
        })
    })
}

/// Returns the footnotes of a table, a line each.
pub(super) fn footnotes(table: &Table) -> Vec<String> {
    let notes = table.notes.iter().enumerate();
    notes.map(|(at, note)| format!("{} {}", mark(at), note.text)).collect()
}

/// Returns footnotes and conditions of a table.
pub(crate) fn below(table: &Table) -> Vec<String> {
    [footnotes(table), settings::below(table)].concat()
}

/// Returns the label of a line with the signs of its footnotes.
pub(crate) fn marked(table: &Table, at: usize) -> String {
    label(table.lines[at].label) + &marks(table, at)
}

/// Returns the codes of the footnotes that hold for a column, in any of these lines.
pub(crate) fn codes(table: &Table, lines: &[usize], column: &Column) -> Value {
    let notes = table.notes.iter().filter(|note| {
        let mut of_lines = lines.iter().filter_map(|line| note.places.get(line));
        of_lines.any(|columns| columns.contains(column))
    });
    notes.map(|note| note.code.as_str()).collect::<Vec<&str>>().join(" ").into()
}
