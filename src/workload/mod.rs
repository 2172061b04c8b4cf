//! Workloads as data; key distributions; tables and their deterministic rows.
//!
//! A workload is a TOML file, the same form for the built-in ones (`profiles/workloads/`,
//! compiled in) and for those that users write; `docs/workloads.md` has all of it:
//!
//! ```toml
//! name = "point-select"
//! aliases = ["oltp_point_select"]
//! about = "SELECT one row by primary key"
//!
//! [options]                             # each is a flag too: --points N
//! points = 1
//!
//! [[transaction]]                       # one op is one pass of one of these
//! weight = 1                            # drawn by weight where there are several
//! begin = false                         # BEGIN … COMMIT around it; without: autocommit
//!
//! [[transaction.statement]]             # one round trip each
//! kind = "select"
//! repeat = "points"
//! sql = "SELECT c FROM {table} WHERE id=?"
//! params = [{ key = "default" }]        # --distribution; or its own: { key = "zipf:0.9" }
//! expect = { rows = 1, content = "c" }  # or { affected = 1 }, or "any"
//! effect = "none"                       # or { add_k = 1 }, "set_c" …: feeds the ledger
//! ```

mod builtin;
mod check;
pub(crate) mod coverage;
pub mod distribution;
mod expand;
pub(crate) mod expect;
pub(crate) mod filler;
mod follow;
pub(crate) mod options;
pub(crate) mod param;
mod permutation;
pub mod phptest;
pub mod random;
pub mod rows;
pub(crate) mod schema;
pub mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use builtin::builtin;
pub(crate) use expect::{Content, Effect, Expect};
pub(crate) use options::{Amount, Options, Setting};
pub(crate) use param::Param;
pub use schema::Schema;

/// What is run: statements, parameters, and the outcome that each must have. Whoever reads one
/// otherwise than by [`Workload::parse`] checks it, so that an error can say where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The verb, or a title.
    pub name: String,
    /// Whether it is one of loadgen's own, whatever its title.
    #[serde(skip)]
    pub built_in: bool,
    /// Other names for it, sysbench's for one.
    #[serde(default, skip_serializing)]
    pub aliases: Vec<String>,
    /// One line for `--help`.
    #[serde(skip_serializing)]
    pub about: String,
    /// The tables that it runs on.
    #[serde(default)]
    pub schema: Schema,
    /// Whether each client has a table of its own.
    #[serde(default)]
    pub table_a_client: bool,
    /// Numbers and switches that the statements refer to.
    #[serde(default)]
    pub options: Options,
    /// At least one; an op draws one by weight.
    #[serde(rename = "transaction")]
    pub transactions: Vec<Transaction>,
}

/// The statements of one op.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// Share among the transactions.
    #[serde(default = "one")]
    pub weight: u32,
    /// BEGIN before and COMMIT after the statements.
    #[serde(default)]
    pub begin: Begin,
    /// In order.
    #[serde(rename = "statement")]
    pub statements: Vec<Statement>,
}

/// Whether a transaction has a BEGIN and a COMMIT: `true`, `false`, or
/// `{ unless = "skip_trx" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "true, false or { unless = \"OPTION\" }")]
pub enum Begin {
    /// It has, or has not.
    Always(bool),
    /// It has, unless this option is on.
    Unless {
        /// The option.
        unless: String,
    },
}

impl Default for Begin {
    fn default() -> Self {
        Begin::Always(false)
    }
}

/// One round trip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// What it is to the server's counters.
    pub kind: Kind,
    /// `{table}` stands for the table, `{list}` for the list, `?` for a parameter.
    pub sql: String,
    /// One for each `?` outside of the list, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// A part of the SQL that is there several times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<List>,
    /// So many times in an op, each with values of its own; once if left away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Amount>,
    /// Whether it belongs to the statement before it: repeated together with that one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_previous: bool,
    /// What every answer is held against.
    pub expect: Expect,
    /// With this option on, rows may be missing: then it is no error if there are fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_if: Option<String>,
    /// What a success changes.
    #[serde(default, skip_serializing_if = "Effect::is_none")]
    pub effect: Effect,
}

/// What stands for `{list}`: `each`, so many times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The text, with `?` for parameters.
    pub each: String,
    /// Between two of them.
    #[serde(default = "comma")]
    pub join: String,
    /// So many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Amount>,
    /// Or as many as fit into a statement of so many bytes; it is sent as text then, whatever
    /// `--statements` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Amount>,
    /// One for each `?` of `each`; they refer to each other only.
    #[serde(default)]
    pub params: Vec<Param>,
}

fn comma() -> String {
    ", ".to_owned()
}

fn one() -> u32 {
    1
}

/// What a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Returns rows.
    Select,
    /// Changes rows.
    Update,
    /// Adds rows.
    Insert,
    /// Removes rows.
    Delete,
    /// Something else.
    Other,
}

impl Kind {
    /// As in the summary.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Select => "select",
            Kind::Update => "update",
            Kind::Insert => "insert",
            Kind::Delete => "delete",
            Kind::Other => "other",
        }
    }
}

impl Workload {
    /// Reads and checks a workload; `origin` names the file in errors.
    ///
    /// # Errors
    /// Usage: line and column, or the statement, and what is wrong there.
    pub fn parse(text: &str, origin: &str) -> Result<Workload> {
        let workload: Workload = toml::from_str(text).map_err(|e| bad_toml(&e, origin))?;
        workload.checked(origin)
    }

    fn checked(self, origin: &str) -> Result<Workload> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(what) => {
                Err(Error::usage(format!("{origin}: workload '{}': {what}", self.name)).hint(FORM))
            }
        }
    }

    /// The same workload with these options set; switches take 0 and 1.
    ///
    /// # Errors
    /// Usage: an unknown option, or nothing left to run.
    pub(crate) fn with_options(mut self, values: &BTreeMap<String, u64>) -> Result<Workload> {
        let set = options::set(&mut self.options, values).and_then(|()| self.check());
        set.map_err(|what| Error::usage(format!("{}: {what}", self.name)))?;
        Ok(self)
    }

    /// The transactions in the form of a workload's file, options not put in, and without what is
    /// as usual: two workloads of the same definition and options do the same.
    ///
    /// # Panics
    /// Never: the types have string keys only.
    pub(crate) fn definition(&self) -> serde_json::Value {
        serde_json::to_value(&self.transactions).expect("a workload is plain data")
    }

    /// Whether this option is there and on.
    pub(crate) fn is_on(&self, name: Option<&str>) -> bool {
        let setting = name.and_then(|name| self.options.get(name));
        setting.is_some_and(|setting| setting.value != 0)
    }

    /// Whether a transaction has a BEGIN and a COMMIT.
    pub(crate) fn begins(&self, transaction: &Transaction) -> bool {
        match &transaction.begin {
            Begin::Always(always) => *always,
            Begin::Unless { unless } => !self.is_on(Some(unless)),
        }
    }

    /// Whether what runs with these options names tables that `prepare` makes.
    pub(crate) fn names_tables(&self) -> bool {
        let prefix = self.schema.prefix();
        let named = |sql: &str| {
            let ends = sql.match_indices(prefix).map(|(at, _)| at + prefix.len());
            let digit = |at: usize| sql.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
            sql.contains("{table}") || ends.into_iter().any(digit)
        };
        self.table_a_client || self.statements().any(|s| named(&s.expanded(&self.options).sql))
    }

    /// The statements that run with these options, those of all transactions in order.
    pub(crate) fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.transactions.iter().flat_map(|t| self.running(t)).map(|(statement, _)| statement)
    }

    /// The statements of a transaction that run with these options, and how often each does.
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

    /// The places in [`Workload::running`] in the order of one op.
    pub(crate) fn passes(&self, transaction: &Transaction) -> Vec<usize> {
        let running = self.running(transaction);
        let mut passes = Vec::new();
        let mut at = 0;
        while let Some((_, repeat)) = running.get(at) {
            let rest = running.iter().skip(at + 1);
            let end = at + 1 + rest.take_while(|(statement, _)| statement.with_previous).count();
            for _ in 0..*repeat {
                passes.extend(at..end);
            }
            at = end;
        }
        passes
    }

    /// Statements that a client prepares for each table: those with the same SQL once, those
    /// that are always text not at all.
    pub(crate) fn prepared(&self) -> u32 {
        let all: BTreeSet<String> = self
            .statements()
            .filter(|statement| !statement.is_text())
            .map(|statement| statement.expanded(&self.options).sql)
            .collect();
        all.len() as u32
    }

    /// Whether tables of so many rows are enough.
    ///
    /// # Errors
    /// Usage: a range that does not fit.
    pub(crate) fn fits(&self, rows: u64) -> Result<()> {
        let params = self.statements().flat_map(|s| &s.params);
        let longest = params.filter_map(|param| match param {
            Param::RangeStart(start) => Some(start.len.value(&self.options)),
            _ => None,
        });
        match longest.max() {
            Some(len) if len > rows => Err(Error::usage(format!(
                "{}: ranges of {len} rows do not fit into tables of {rows}",
                self.name
            ))
            .hint("larger tables (prepare --rows), or a smaller range where it is an option")),
            _ => Ok(()),
        }
    }
}

fn bad_toml(error: &toml::de::Error, origin: &str) -> Error {
    Error::usage(format!("{origin}: {}", error.to_string().trim_end())).hint(FORM)
}

const FORM: &str = "the form is that of profiles/workloads/*.toml, told in docs/workloads.md";

#[cfg(test)]
mod tests;
