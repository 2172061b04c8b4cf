//! The layouts beside the plain table: what each makes of the tables.

mod change;
mod list;
mod outages;
mod relative;
mod versions;

pub(crate) use relative::LEGEND as COSTS;
pub(crate) use versions::{CLIENTS, decimals, json, number, spread};

use clap::ValueEnum;

use super::baseline::known;
use super::notes::{self, Places, mark};
use super::page::{Column, Page, Value, filed};
use super::table::{self, Line, Table, metric_at};
use super::{Options, caption, escape};
use crate::error::{Error, Result};
use crate::terms;

/// How the numbers are laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Layout {
    /// Clients across, one label a line
    #[default]
    Versions,
    /// A list for each number of clients, best first
    List,
    /// Absolute and relative to one label (--baseline, else the first)
    Relative,
    /// Range of the change between two labels (--from, --to) in each workload, percent
    Delta,
    /// Cost of what --to has and --from has not, for each number of clients, percent
    Overhead,
    /// What an op costs the server and the client, absolute and relative
    PerOp,
    /// The best number of each label, and the clients it was reached at
    Peak,
    /// Times without service: gaps, first success, back to 95 % of the earlier rate
    Outages,
    /// Suites of commands, test by test: wall, user and system seconds
    Suite,
    /// What tells the labels from each other, by the server's variables
    Settings,
}

impl Layout {
    /// As on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value().expect("no layout is hidden");
        value.get_name().to_owned()
    }

    /// Refuses labels that a layout does nothing with, and the lack of those that it needs.
    pub(crate) fn check(self, options: &Options) -> Result<()> {
        let name = self.name();
        let compares = matches!(self, Layout::Delta | Layout::Overhead);
        if compares && (options.from.is_none() || options.to.is_none()) {
            return Err(Error::usage(format!("--layout {name} compares two labels"))
                .hint("--from LABEL --to LABEL names them"));
        }
        if !compares && (options.from.is_some() || options.to.is_some()) {
            return Err(Error::usage(format!("--layout {name} takes no --from and --to"))
                .hint("--layout delta and --layout overhead do; --baseline relates all labels"));
        }
        if options.spread && self != Layout::Versions {
            return Err(Error::usage(format!("--layout {name} takes no --spread"))
                .hint("--layout versions, the default, does"));
        }
        let relates = matches!(self, Layout::Versions | Layout::Relative | Layout::PerOp);
        if !relates && options.baseline.is_some() {
            return Err(Error::usage(format!("--layout {name} takes no --baseline"))
                .hint("--layout versions, relative and per-op do"));
        }
        Ok(())
    }
}

/// Makes the pages of a layout. The tables have neither footnotes nor ratios yet.
pub(crate) fn pages(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    let baseline = options.baseline.as_deref();
    if let Some(label) = baseline {
        known(tables, "--baseline", label)?;
    }
    let slices = || tables.iter().flat_map(Table::by_column).map(noted);
    match options.layout {
        Layout::Versions => versions::pages(tables, options),
        Layout::List => Ok(list::list(&slices().collect::<Vec<Table>>())),
        Layout::Peak => Ok(list::peak(tables)),
        Layout::Relative => slices().map(|table| relative::relative(table, baseline)).collect(),
        Layout::PerOp => slices().map(|table| relative::per_op(&table, baseline)).collect(),
        Layout::Delta => change::delta(tables, options),
        Layout::Overhead => change::overhead(tables, options),
        Layout::Outages => Ok(tables.iter().map(outages::page).collect()),
        Layout::Suite => relative::suites(slices()),
        Layout::Settings => Ok(vec![list::settings(tables)]),
    }
}

/// A line and its position.
pub(super) type Row<'t, 's> = (usize, &'t Line<'s>);

pub(super) fn rows<'t, 's>(table: &'t Table<'s>) -> impl Iterator<Item = Row<'t, 's>> {
    table.lines.iter().enumerate()
}

/// Fills in the footnotes.
pub(crate) fn noted(mut table: Table) -> Table {
    table.notes = notes::notes(&table);
    table
}

/// Returns the footnotes of a table, a line each.
pub(super) fn footnotes(table: &Table) -> Vec<String> {
    let notes = table.notes.iter().enumerate();
    notes.map(|(at, note)| format!("{} {}", mark(at), note.text)).collect()
}

/// Footnotes and conditions of a table.
pub(crate) fn below(table: &Table) -> Vec<String> {
    let conditions = caption::below(table).into_iter().filter(|line| !line.is_empty());
    footnotes(table).into_iter().chain(conditions).collect()
}

/// Returns a label that can be seen.
pub(crate) fn label(label: &str) -> String {
    if label.trim().is_empty() { "(no label)".to_owned() } else { escape::line(label) }
}

/// Returns a label with the signs of its footnotes.
pub(crate) fn marked(table: &Table, at: usize) -> String {
    let shown = table.lines.get(at).map_or_else(String::new, |line| label(line.label));
    shown + &notes::marks(table, at)
}

/// Returns the label of a line, for people with the signs of its footnotes.
pub(super) fn marked_label(table: &Table, at: usize) -> Value {
    Value::Label(table.lines[at].label.to_owned(), marked(table, at))
}

/// `8 clients`, at a rate where there is one.
pub(crate) fn at_clients(column: &table::Column) -> String {
    let clients = terms::clients(column.clients);
    match column.rate {
        None => clients,
        Some(rate) => format!("{clients} asking {rate} ops a second of all together"),
    }
}

/// Returns the codes of the footnotes that hold for a column, in any of these lines.
pub(crate) fn codes(table: &Table, lines: &[usize], column: &table::Column) -> Value {
    let here = |places: &Places| {
        let mut of_lines = lines.iter().filter_map(|line| places.get(line));
        of_lines.any(|columns| columns.contains(column))
    };
    let marked = table.notes.iter().filter(|note| here(&note.places));
    let codes: Vec<&str> = marked.map(|note| note.code.as_str()).collect();
    codes.join(" ").into()
}

/// Returns the columns that begin every record: the workload, and where in its table the row is.
pub(crate) fn place<'a, T: 'a>(
    table: &'a Table,
    of: impl Fn(&T) -> table::Column + Copy + 'a,
) -> Vec<Column<'a, T>> {
    vec![
        filed("workload", |_| table.workload),
        filed("clients", move |row| of(row).clients),
        filed("rate", move |row| of(row).per_s()),
    ]
}

/// Returns the same with the metric of the table.
pub(crate) fn place_and_metric<'a, T: 'a>(
    table: &'a Table,
    of: impl Fn(&T) -> table::Column + Copy + 'a,
) -> Vec<Column<'a, T>> {
    let mut columns = place(table, of);
    columns.push(filed("metric", move |row| metric_at(&of(row), table).to_string()));
    columns.push(filed("unit", |_| table.metric.unit()));
    columns
}
