//! Workloads as data, key distributions, tables and their deterministic rows.
//!
//! A workload is a TOML file, built in (`profiles/workloads/`) or a user's.
//! docs/reference/workload-keys.md is generated from the comments.

pub mod distribution;
mod options;
pub mod random;
pub mod rows;
mod script;
pub mod sql;
mod statement;
pub mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Error, Result};

pub(crate) use distribution::{Distribution, Sampler, coverage};
use options::{Amount, check_option, ensure};
pub(crate) use options::{OPTION_MAX, Options, Setting};
pub(crate) use random::{Permutation, Stream, mix, name_part, seed_of};
pub(crate) use rows::{Filler, PAD_LEN, Rows, is_digits, proves};
pub(crate) use script::{script, script_of_file};
pub(crate) use sql::{check_query, pieces};
pub(crate) use statement::{
    Const, Content, Count, Effect, KeySource, Param, Statement, StatementKind, may_write_beside,
    writes_elsewhere,
};
pub use table::Schema;
pub(crate) use table::{LOADED, Mark, ROWS_MAX, State, TABLES_MAX, quoted};

const PASSES_MAX: u64 = 100_000;
const FORM: &str =
    "the form is that of profiles/workloads/*.toml, told in docs/reference/workload-keys.md";

/// A workload: statements, parameters, expected outcomes. Readers other than [`Workload::parse`] call
/// `check`, so that errors can say where it stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Required: printable ASCII characters without spaces
    #[serde(default)]
    pub name: String,
    /// True for loadgen's own, whatever the title.
    #[serde(skip)]
    pub(crate) built_in: bool,
    /// Other names
    #[serde(default, skip_serializing)]
    pub(crate) aliases: Vec<String>,
    /// Description
    #[serde(default, skip_serializing)]
    pub(crate) about: String,
    /// The tables that `prepare` makes: `sbtest` (default), `phptest` or `bulk`
    #[serde(default)]
    pub schema: Schema,
    /// Each client has a table of its own
    #[serde(default)]
    pub(crate) table_a_client: bool,
    /// `name = 10` (a number), `name = false` (a switch) or `{ default = 10, about = "…" }`. Wherever a number is
    /// wanted in a statement, the name of an option does too
    #[serde(default, deserialize_with = "options::declared")]
    pub(crate) options: Options,
    /// Required: `[[workload.transaction]]`, at least one; an operation draws one by weight
    #[serde(default, rename = "transaction")]
    pub(crate) transactions: Vec<Transaction>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transaction {
    /// Frequency relative to the others [default: 1]
    #[serde(default = "statement::default_one")]
    pub weight: u32,
    /// `true`, or `{ unless = "OPTION" }`: its statements stand between BEGIN and COMMIT, and an error rolls all of
    /// them back; `false` by default
    #[serde(default = "autocommit")]
    pub begin: Begin,
    /// An option: with it each kind of statement draws its own table once an operation, not the operation one for all;
    /// a statement with `with_previous` has that of the one before
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_each_if: Option<String>,
    /// Required: `[[workload.transaction.statement]]`, at least one: one round trip and one statement each
    #[serde(default, rename = "statement")]
    pub statements: Vec<Statement>,
}

/// The choice of BEGIN before and COMMIT after the statements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "true, false or { unless = \"OPTION\" }")]
pub(crate) enum Begin {
    Always(bool),
    Unless { unless: String },
}

fn autocommit() -> Begin {
    Begin::Always(false)
}

macro_rules! files {
    ($($name:literal)+) => {
        [$(include_str!(concat!("../../profiles/workloads/", $name, ".toml"))),+]
    };
}

/// Files of one workload each, in the order of `loadgen workloads`.
const FILES: [&str; 11] = files![
    "point-select" "update-index" "update-non-index" "read-only" "write-only" "read-write"
    "insert" "delete" "random-points" "random-ranges" "bulk-insert"
];

/// The suite of 2007, as `[[workload]]`.
const SUITE: &str = include_str!("../../profiles/workloads/phptest.toml");

/// Finds a built-in workload by name, alias or sysbench's script path.
pub(crate) fn named(word: &str) -> Option<Workload> {
    let script = word.strip_suffix(".lua").and_then(|path| path.rsplit('/').next());
    let name = script.unwrap_or(word).replace('_', "-");
    let is = |known: &String| known.replace('_', "-") == name;
    builtin().into_iter().find(|workload| is(&workload.name) || workload.aliases.iter().any(is))
}

/// Reads the built-in workloads, in the order of `loadgen workloads`.
pub fn builtin() -> Vec<Workload> {
    let suite: Result<BTreeMap<String, Vec<Workload>>, _> = toml::from_str(SUITE);
    let mut suite = suite.unwrap_or_else(|e| panic!("the suite of 2007: {e}"));
    let suite = suite.remove("workload").expect("a list of workloads");
    let read = FILES.iter().map(|text| toml::from_str(text).unwrap_or_else(|e| panic!("{e}")));
    let checked = |workload: Workload| {
        workload.check().unwrap_or_else(|what| panic!("workload '{}': {what}", workload.name));
        Workload { built_in: true, ..workload }
    };
    read.chain(suite).map(checked).collect()
}

impl Workload {
    /// Reads and checks a workload; `origin` names the file in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Workload> {
        let read = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_owned());
        let checked = read.and_then(|read: Workload| {
            let checked = read.check().map_err(|what| format!("workload '{}': {what}", read.name));
            checked.map(|()| read)
        });
        checked.map_err(|what| Error::usage(format!("{origin}: {what}")).hint(FORM))
    }

    /// Reads one that was written down: unlike those of a file, its options have values.
    pub(crate) fn read_written<'de, D: Deserializer<'de>>(from: D) -> Result<Workload, D::Error> {
        let mut written = serde_json::Map::deserialize(from)?;
        let options =
            written.remove("options").ok_or_else(|| D::Error::missing_field("options"))?;
        let options: Options = serde_json::from_value(options).map_err(D::Error::custom)?;
        let read = serde_json::from_value(written.into());
        read.map(|read| Workload { options, ..read }).map_err(D::Error::custom)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let missing = self.missing();
        ensure(missing.is_empty(), format_args!("missing: {}", missing.join(", ")))?;
        let named = self.name.bytes().all(|b| b.is_ascii_graphic());
        ensure(named, "a name is of printable ASCII characters without spaces")?;
        options::check_options(&self.options)?;
        let weighted = self.transactions.iter().any(|t| t.weight > 0);
        ensure(weighted, "the weights of the transactions add up to 0")?;
        self.transactions.iter().try_for_each(|t| self.check_transaction(t))
    }

    pub(crate) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        missing.extend(self.name.is_empty().then(|| "name".to_owned()));
        missing.extend(self.transactions.is_empty().then(|| "[[transaction]]".to_owned()));
        for (n, transaction) in (1..).zip(&self.transactions) {
            let none = transaction.statements.is_empty();
            missing.extend(none.then(|| format!("[[statement]] of transaction {n}")));
            for (nth, _) in (1..).zip(&transaction.statements).filter(|(_, s)| s.sql.is_empty()) {
                missing.push(format!("sql of statement {nth} of transaction {n}"));
            }
        }
        missing
    }

    fn check_transaction(&self, transaction: &Transaction) -> Result<(), String> {
        let statements = &transaction.statements;
        if let Begin::Unless { unless } = &transaction.begin {
            check_option(unless, &self.options)?;
        }
        transaction.table_each_if.iter().try_for_each(|name| check_option(name, &self.options))?;
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

    /// Sets options; switches take 0 and 1.
    pub(crate) fn with_options(mut self, values: &BTreeMap<String, u64>) -> Result<Workload> {
        let set = options::set_options(&mut self.options, values).and_then(|()| self.check());
        set.map_err(|what| Error::usage(format!("{}: {what}", self.name)))?;
        Ok(self)
    }

    pub(crate) fn repeat(&mut self, times: u64) {
        let statements = self.transactions.iter_mut().flat_map(|t| &mut t.statements);
        statements.for_each(|statement| statement.repeat = Some(Amount::Number(times)));
    }

    pub(crate) fn leave_out(&mut self, options: &[&str]) {
        let of = |s: &Statement| matches!(&s.repeat, Some(Amount::Option(name)) if options.contains(&name.as_str()));
        self.transactions.iter_mut().for_each(|t| t.statements.retain(|s| !of(s)));
    }

    /// Returns the transactions as in a file: equal definitions and options do the same work.
    pub(crate) fn definition(&self) -> serde_json::Value {
        let mut transactions = self.transactions.clone();
        for transaction in &mut transactions {
            // Off equals a workload without the option.
            transaction.table_each_if.take_if(|name| !self.is_on(name));
        }
        serde_json::to_value(&transactions).expect("a workload is plain data")
    }

    pub(crate) fn table_each(&self, transaction: &Transaction) -> bool {
        transaction.table_each_if.as_ref().is_some_and(|name| self.is_on(name))
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

    /// Returns whether BEGIN is sent with these options, even as a statement of its own.
    pub(crate) fn has_begin(&self) -> bool {
        self.transactions.iter().any(|transaction| self.begins(transaction))
            || self.statements().any(Statement::is_begin)
    }

    pub(crate) fn names_tables(&self) -> bool {
        self.table_a_client || self.has_table() || self.largest_table().is_some()
    }

    /// Returns the largest table number in the statements' own text, such as 3 of `sbtest3`.
    pub(crate) fn largest_table(&self) -> Option<u32> {
        let prefix = self.schema.prefix();
        let largest = |sql: &str| {
            let behind = sql.match_indices(prefix).map(|(at, _)| &sql[at + prefix.len()..]);
            let number = behind.filter_map(|rest| {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                rest[..digits].parse().ok().filter(|number| (1..=TABLES_MAX).contains(number))
            });
            number.max()
        };
        self.statements().filter_map(|s| largest(&s.expanded(&self.options).0)).max()
    }

    pub(crate) fn defines(&self) -> bool {
        self.statements().any(Statement::defines) && self.statements().count() > 1
    }

    /// Returns whether a statement leaves the table's name to loadgen.
    pub(crate) fn has_table(&self) -> bool {
        self.statements().any(|s| s.expanded(&self.options).0.contains("{table}"))
    }

    pub(crate) fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.transactions.iter().flat_map(|t| self.running(t)).map(|(statement, _)| statement)
    }

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

    /// Lists the positions in [`Workload::running`] in the order of one op.
    pub(crate) fn passes(&self, transaction: &Transaction) -> Vec<usize> {
        let (mut passes, mut at) = (Vec::new(), 0);
        for together in self.running(transaction).chunk_by(|_, (next, _)| next.with_previous) {
            let (begin, (_, repeat)) = (at, together[0]);
            at += together.len();
            (0..repeat).for_each(|_| passes.extend(begin..at));
        }
        passes
    }

    /// Counts the statements that a client prepares for each table: equal SQL once, text statements not at all.
    pub(crate) fn prepared(&self) -> u32 {
        let kept = self.statements().filter(|statement| !statement.is_text());
        kept.map(|s| s.expanded(&self.options).0).collect::<BTreeSet<String>>().len() as u32
    }

    /// Finds the distribution of most keys of an op, and the keys that an op draws from it; None
    /// without keys. `usual` is that of `--distribution`.
    pub(crate) fn keys_per_op(&self, usual: Distribution) -> Option<(Distribution, f64)> {
        let weights: f64 = self.transactions.iter().map(|t| f64::from(t.weight)).sum();
        let mut drawn: Vec<(Distribution, f64)> = Vec::new();
        for transaction in &self.transactions {
            let part = f64::from(transaction.weight) / weights;
            for (statement, repeat) in self.running(transaction) {
                let (_, params) = statement.expanded(&self.options);
                for param in &params {
                    let (Param::Key(source)
                    | Param::Slice(source)
                    | Param::RangeStart { distribution: source, .. }) = param
                    else {
                        continue;
                    };
                    let (distribution, n) = (source.0.unwrap_or(usual), part * repeat as f64);
                    match drawn.iter_mut().find(|(of, _)| *of == distribution) {
                        Some((_, sum)) => *sum += n,
                        None => drawn.push((distribution, n)),
                    }
                }
            }
        }
        drawn.into_iter().filter(|(_, n)| *n > 0.0).max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// Refuses tables too small for a range, or for a row.
    pub(crate) fn fits(&self, rows: u64) -> Result<()> {
        let params = self.statements().flat_map(|s| s.expanded(&self.options).1);
        let faults = params.filter_map(|param| match param {
            Param::RangeStart { len, .. } => {
                let len = len.value(&self.options);
                let what = format!("ranges of {len} rows do not fit into tables of {rows}");
                (len > rows).then_some((len, what))
            }
            Param::Row { per, plus } => {
                let id = Param::row(per, plus, rows);
                let what = format!("row {id} is not in tables of {rows} rows");
                (!(1..=rows).contains(&id)).then_some((id, what))
            }
            _ => None,
        });
        let Some((_, what)) = faults.max() else { return Ok(()) };
        Err(Error::usage(format!("{}: {what}", self.name))
            .hint("larger tables (prepare --rows), or a smaller range where it is an option"))
    }

    pub(crate) fn writes(&self) -> bool {
        self.statements().any(Statement::writes)
    }

    /// Returns whether it writes, or nobody knows: a procedure may, read or not.
    pub(crate) fn may_write(&self) -> bool {
        self.statements().any(Statement::may_write)
    }

    /// Returns why verify cannot judge by the ledger of such a run, if so.
    pub(crate) fn unfollowed(&self) -> Option<String> {
        let mut untold = self.statements().map(|s| s.unfollowed(self.schema.prefix()));
        untold.find_map(|untold| untold).filter(|_| self.may_write())
    }
}

#[cfg(test)]
mod tests;
