//! Workloads as data; key distributions; tables and their deterministic rows.
//!
//! A workload is a TOML file, the same form for the built-in ones (`profiles/workloads/`,
//! compiled in) and for those that users write; `docs/workloads.md` tells all of it.

pub(crate) mod coverage;
pub mod distribution;
mod expect;
pub(crate) mod options;
pub(crate) mod param;
pub mod phptest;
pub mod random;
pub mod rows;
mod statement;
pub mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use options::{ensure, known};

pub(crate) use expect::{Content, Effect};
pub(crate) use options::{Options, Setting};
pub(crate) use param::Param;
pub(crate) use statement::{List, Statement};
pub use table::Schema;

const PASSES_MAX: u64 = 100_000;
const FORM: &str = "the form is that of profiles/workloads/*.toml, told in docs/workloads.md";

/// Statements, parameters, and the outcome that each must have. Whoever reads one otherwise than by
/// [`Workload::parse`] checks it, so that an error can say where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    pub name: String,
    /// It is one of loadgen's own, whatever its title.
    #[serde(skip)]
    pub(crate) built_in: bool,
    #[serde(default, skip_serializing)]
    pub(crate) aliases: Vec<String>,
    #[serde(skip_serializing)]
    pub(crate) about: String,
    #[serde(default)]
    pub schema: Schema,
    #[serde(default)]
    pub(crate) table_a_client: bool,
    #[serde(default)]
    pub(crate) options: Options,
    /// An op draws one by weight.
    #[serde(rename = "transaction")]
    pub(crate) transactions: Vec<Transaction>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transaction {
    #[serde(default = "one")]
    pub weight: u32,
    #[serde(default)]
    pub begin: Begin,
    #[serde(rename = "statement")]
    pub statements: Vec<Statement>,
}

fn one() -> u32 {
    1
}

/// The BEGIN before and the COMMIT after the statements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "true, false or { unless = \"OPTION\" }")]
pub(crate) enum Begin {
    Always(bool),
    Unless { unless: String },
}

impl Default for Begin {
    fn default() -> Self {
        Begin::Always(false)
    }
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../profiles/workloads/", $name)))),*]
    };
}

/// One workload each, in the order of `loadgen workloads`.
const FILES: [(&str, &str); 11] = files![
    "point-select.toml",
    "update-index.toml",
    "update-non-index.toml",
    "read-only.toml",
    "write-only.toml",
    "read-write.toml",
    "insert.toml",
    "delete.toml",
    "random-points.toml",
    "random-ranges.toml",
    "bulk-insert.toml",
];

/// Then those of the suite of 2007, as `[[workload]]`.
const SUITE: (&str, &str) = files!["phptest.toml"][0];

/// Reads the built-in workloads, in the order of `loadgen workloads`.
pub fn builtin() -> Vec<Workload> {
    let (name, text) = SUITE;
    let mut suite: BTreeMap<String, Vec<Workload>> =
        toml::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let suite = suite.remove("workload").expect("a list of workloads");
    let all = FILES.iter().map(|(name, text)| Workload::parse(text, name));
    all.chain(suite.into_iter().map(|workload| workload.checked().map_err(Error::usage)))
        .map(|read| read.unwrap_or_else(|e| panic!("a built-in workload: {}", e.render())))
        .map(|workload| Workload { built_in: true, ..workload })
        .collect()
}

impl Workload {
    /// Reads and checks a workload; `origin` names the file in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Workload> {
        let read: std::result::Result<Workload, _> = toml::from_str(text);
        let read = read.map_err(|e| e.to_string().trim_end().to_owned());
        read.and_then(Workload::checked)
            .map_err(|what| Error::usage(format!("{origin}: {what}")).hint(FORM))
    }

    fn checked(self) -> std::result::Result<Workload, String> {
        self.check().map_err(|what| format!("workload '{}': {what}", self.name))?;
        Ok(self)
    }

    /// Finds what is wrong beyond its form.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        let named = !self.name.is_empty() && self.name.bytes().all(|b| b.is_ascii_graphic());
        ensure(named, "a name is of printable ASCII characters without spaces")?;
        options::check(&self.options)?;
        ensure(!self.transactions.is_empty(), "a workload needs a [[transaction]]")?;
        let weighted = self.transactions.iter().any(|t| t.weight > 0);
        ensure(weighted, "the weights of the transactions add up to 0")?;
        self.transactions.iter().try_for_each(|t| self.check_transaction(t))
    }

    fn check_transaction(&self, transaction: &Transaction) -> std::result::Result<(), String> {
        let statements = &transaction.statements;
        ensure(!statements.is_empty(), "a transaction needs a [[transaction.statement]]")?;
        if let Begin::Unless { unless } = &transaction.begin {
            known(unless, &self.options)?;
        }
        let mut before = None;
        for statement in statements {
            let checked = statement.check(before, &self.options);
            checked.map_err(|what| format!("statement '{}': {what}", statement.sql))?;
            before = Some(statement);
        }
        let passes: u64 = self.running(transaction).iter().map(|(_, repeat)| repeat).sum();
        let nothing = passes == 0 && !self.begins(transaction);
        ensure(!nothing, "with these options a transaction has no statement left")?;
        let many = format_args!("{passes} statements in one op are more than {PASSES_MAX}");
        ensure(passes <= PASSES_MAX, many)
    }

    /// Sets these options; switches take 0 and 1.
    pub(crate) fn with_options(mut self, values: &BTreeMap<String, u64>) -> Result<Workload> {
        let set = options::set(&mut self.options, values).and_then(|()| self.check());
        set.map_err(|what| Error::usage(format!("{}: {what}", self.name)))?;
        Ok(self)
    }

    /// Gives the transactions as in a file: workloads of the same definition and options do the same.
    pub(crate) fn definition(&self) -> serde_json::Value {
        serde_json::to_value(&self.transactions).expect("a workload is plain data")
    }

    pub(crate) fn is_on(&self, option: &str) -> bool {
        self.options[option].value != 0
    }

    pub(crate) fn begins(&self, transaction: &Transaction) -> bool {
        match &transaction.begin {
            Begin::Always(always) => *always,
            Begin::Unless { unless } => !self.is_on(unless),
        }
    }

    /// Tells whether what runs with these options names tables that `prepare` makes.
    pub(crate) fn names_tables(&self) -> bool {
        let prefix = self.schema.prefix();
        let named = |sql: &str| {
            let mut ends = sql.match_indices(prefix).map(|(at, _)| at + prefix.len());
            let digit = |at: usize| sql.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
            sql.contains("{table}") || ends.any(digit)
        };
        self.table_a_client || self.statements().any(|s| named(&s.expanded(&self.options).sql))
    }

    /// Lists the statements of all transactions that run with these options.
    pub(crate) fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.transactions.iter().flat_map(|t| self.running(t)).map(|(statement, _)| statement)
    }

    /// Lists the statements that run with these options, and how often each does.
    pub(crate) fn running<'a>(&'a self, transaction: &'a Transaction) -> Vec<(&'a Statement, u64)> {
        let mut running = Vec::new();
        let mut repeat = 1;
        for statement in &transaction.statements {
            if !statement.with_previous {
                repeat = statement.repeat.as_ref().map_or(1, |n| n.value(&self.options));
            }
            if repeat > 0 {
                running.push((statement, repeat));
            }
        }
        running
    }

    /// Lists the places in [`Workload::running`] in the order of one op.
    pub(crate) fn passes(&self, transaction: &Transaction) -> Vec<usize> {
        let (mut passes, mut at) = (Vec::new(), 0);
        for together in self.running(transaction).chunk_by(|_, (next, _)| next.with_previous) {
            let (begin, (_, repeat)) = (at, together[0]);
            at += together.len();
            (0..repeat).for_each(|_| passes.extend(begin..at));
        }
        passes
    }

    /// Counts the statements that a client prepares for each table: those with the same SQL once,
    /// those that are always text not at all.
    pub(crate) fn prepared(&self) -> u32 {
        let kept = self.statements().filter(|statement| !statement.is_text());
        let all: BTreeSet<String> = kept.map(|s| s.expanded(&self.options).sql).collect();
        all.len() as u32
    }

    /// Refuses tables of so many rows where a range does not fit into them.
    pub(crate) fn fits(&self, rows: u64) -> Result<()> {
        let params = self.statements().flat_map(|s| &s.params);
        let lengths = params.filter_map(|param| match param {
            Param::RangeStart { len, .. } => Some(len.value(&self.options)),
            _ => None,
        });
        let Some(len) = lengths.max().filter(|len| *len > rows) else { return Ok(()) };
        let name = &self.name;
        Err(Error::usage(format!("{name}: ranges of {len} rows do not fit into tables of {rows}"))
            .hint("larger tables (prepare --rows), or a smaller range where it is an option"))
    }

    pub(crate) fn writes(&self) -> bool {
        self.statements().any(Statement::writes)
    }

    /// Tells why verify cannot judge by the ledger of a run with these options, if so.
    pub(crate) fn unfollowed(&self) -> Option<String> {
        let mut untold = self.statements().map(|s| s.unfollowed(self.schema.prefix()));
        untold.find_map(|untold| untold).filter(|_| self.writes())
    }
}

#[cfg(test)]
mod tests;
