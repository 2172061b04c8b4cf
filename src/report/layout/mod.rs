//! The layouts beside the plain table: what each makes of the tables.

mod change;
mod legend;
mod list;
mod outages;
mod per_op;
mod relative;
mod suite;

pub(crate) use per_op::LEGEND as COSTS;

use super::notes::{self, Places, mark};
use super::page::{Field, Page, Record};
use super::pivot::{Column, Table, metric_at};
use super::{Options, caption, text};
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
    pub(crate) fn name(self) -> &'static str {
        match self {
            Layout::Versions => "versions",
            Layout::List => "list",
            Layout::Relative => "relative",
            Layout::Delta => "delta",
            Layout::Overhead => "overhead",
            Layout::PerOp => "per-op",
            Layout::Peak => "peak",
            Layout::Outages => "outages",
            Layout::Suite => "suite",
            Layout::Settings => "settings",
        }
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

/// The pages of a layout. The tables have neither footnotes nor ratios yet.
pub(crate) fn pages(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    match options.layout {
        Layout::Versions => Ok(Vec::new()),
        Layout::List => Ok(list::list(tables)),
        Layout::Peak => Ok(list::peak(tables)),
        Layout::Relative => relative::pages(tables, options.baseline.as_deref()),
        Layout::PerOp => per_op::pages(tables, options.baseline.as_deref()),
        Layout::Delta => change::delta(tables, options),
        Layout::Overhead => change::overhead(tables, options),
        Layout::Outages => Ok(outages::pages(tables)),
        Layout::Suite => suite::pages(tables),
        Layout::Settings => Ok(vec![legend::page(tables)]),
    }
}

/// Fills in the footnotes.
pub(super) fn noted(mut table: Table) -> Table {
    table.notes = notes::notes(&table);
    table
}

/// Footnotes and conditions of a table.
pub(super) fn below(table: &Table) -> Vec<String> {
    let notes = table.notes.iter().enumerate();
    let mut below: Vec<String> =
        notes.map(|(at, note)| format!("{} {}", mark(at), note.text)).collect();
    below.extend(caption::below(table).into_iter().filter(|line| !line.is_empty()));
    below
}

/// A label with the signs of its footnotes.
pub(super) fn marked(table: &Table, at: usize) -> String {
    let label = table.lines.get(at).map_or_else(String::new, |line| text::label(line.label));
    label + &notes::marks(table, at)
}

/// `8 clients`, at a rate where there is one.
pub(super) fn at_clients(column: &Column) -> String {
    let clients = terms::clients(column.clients);
    match column.rate {
        None => clients,
        Some(rate) => format!("{clients} asking {rate} ops a second of all together"),
    }
}

/// The end of every record with a number: the codes of the footnotes that hold for it, in any of
/// these lines.
pub(super) fn codes(table: &Table, lines: &[usize], column: &Column) -> (&'static str, Field) {
    let here = |places: &Places| {
        let mut of_lines = lines.iter().filter_map(|line| places.get(line));
        of_lines.any(|columns| columns.contains(column))
    };
    let marked = table.notes.iter().filter(|note| here(&note.places));
    let codes: Vec<&str> = marked.map(|note| note.code.as_str()).collect();
    ("notes", Field::Text(codes.join(" ")))
}

/// The beginning of every record.
pub(super) fn record(table: &Table, column: &Column) -> Record {
    vec![
        ("workload", Field::Text(table.workload.to_owned())),
        ("clients", Field::Count(u64::from(column.clients))),
        ("rate", Field::Number(column.per_s())),
        ("metric", Field::Text(metric_at(column, table).to_string())),
        ("unit", Field::Text(table.metric.unit().to_owned())),
    ]
}
