//! Workloads as data; key distributions; tables and their deterministic rows.
//!
//! A workload is a TOML file, the same form for the built-in ones (`profiles/workloads/`,
//! compiled in) and for those that users write:
//!
//! ```toml
//! name = "point-select"
//! aliases = ["oltp_point_select"]
//! about = "SELECT one row by primary key"
//!
//! [[transaction]]                       # one op is one pass of one of these
//! weight = 1                            # drawn by weight where there are several
//! begin = false                         # BEGIN … COMMIT around it; without: autocommit
//!
//! [[transaction.statement]]             # one round trip each
//! kind = "select"
//! sql = "SELECT c FROM {table} WHERE id = ?"
//! params = [{ key = "default" }]        # --distribution; or its own: { key = "zipf:0.9" }
//! expect = { rows = 1, content = "c" }  # or { affected = 1 }, or "any"
//! effect = "none"                       # or { add_k = 1 }, "set_c": feeds the ledger
//! ```

pub mod distribution;
mod permutation;
pub mod random;
pub mod rows;
pub mod table;

use serde::Deserialize;

use crate::error::{Error, Result};
use distribution::Distribution;

/// What is run: statements, parameters, and the outcome that each must have.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The verb.
    pub name: String,
    /// Other names for it, sysbench's for one.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line for `--help`.
    pub about: String,
    /// At least one; an op draws one by weight.
    #[serde(rename = "transaction")]
    pub transactions: Vec<Transaction>,
}

/// The statements of one op.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// Share among the transactions.
    #[serde(default = "one")]
    pub weight: u32,
    /// BEGIN before and COMMIT after the statements.
    #[serde(default)]
    pub begin: bool,
    /// In order.
    #[serde(rename = "statement")]
    pub statements: Vec<Statement>,
}

/// One round trip.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// What it is to the server's counters.
    pub kind: Kind,
    /// `{table}` stands for the table, `?` for a parameter.
    pub sql: String,
    /// One for each `?`, in order.
    #[serde(default)]
    pub params: Vec<Param>,
    /// What every answer is held against.
    pub expect: Expect,
    /// What a success changes.
    #[serde(default)]
    pub effect: Effect,
}

/// What a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Returns rows.
    Select,
    /// Changes rows.
    Update,
}

impl Kind {
    /// As in the summary.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Select => "select",
            Kind::Update => "update",
        }
    }
}

/// Where a parameter's value comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Param {
    /// An id of the table, drawn anew.
    Key(KeySource),
    /// A self-proving value of `c` for the id of another parameter, counted from 1.
    COf(usize),
}

/// Which distribution a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum KeySource {
    /// That of `--distribution`.
    Default,
    /// Its own, whatever the command line says.
    Own(Distribution),
}

impl TryFrom<String> for KeySource {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        if text == "default" {
            return Ok(KeySource::Default);
        }
        text.parse().map(KeySource::Own)
    }
}

/// What an answer must be; anything else is an error, not a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", untagged, deny_unknown_fields)]
pub enum Expect {
    /// Exactly so many rows.
    Rows {
        /// How many.
        rows: u64,
        /// Whether the first column is a `c` that must prove itself (tables of loadgen only).
        #[serde(default)]
        content: Option<Content>,
    },
    /// Exactly so many rows affected.
    Affected {
        /// How many.
        affected: u64,
    },
}

/// What the first column of an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// The self-proving `c` of the row whose id is the statement's first key.
    C,
}

impl std::fmt::Display for Expect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expect::Rows { rows, content } => {
                write!(f, "{rows} row{}", if *rows == 1 { "" } else { "s" })?;
                if content.is_some() { f.write_str(", c proves itself") } else { Ok(()) }
            }
            Expect::Affected { affected } => write!(f, "{affected} affected"),
        }
    }
}

/// What a success adds to the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing.
    #[default]
    None,
    /// The sum of `k` grows by so much.
    AddK(i64),
    /// One row's `c` has another proving value.
    SetC,
}

fn one() -> u32 {
    1
}

impl Workload {
    /// Reads and checks a workload; `origin` names the file in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Workload> {
        let workload: Workload = toml::from_str(text).map_err(|e| {
            Error::usage(format!("{origin}: {}", e.to_string().trim_end()))
                .hint("the form is that of profiles/workloads/*.toml")
        })?;
        workload.check().map_err(|what| Error::usage(format!("{origin}: {what}")))?;
        Ok(workload)
    }

    /// What its form alone does not say; the text names what is wrong.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        if self.transactions.is_empty() {
            return Err("a workload needs a [[transaction]]".to_owned());
        }
        if self.transactions.iter().map(|t| u64::from(t.weight)).sum::<u64>() == 0 {
            return Err("the weights of the transactions add up to 0".to_owned());
        }
        for statement in self.transactions.iter().flat_map(|t| &t.statements) {
            statement.check().map_err(|what| format!("statement '{}': {what}", statement.sql))?;
        }
        match self.transactions.iter().find(|t| t.statements.is_empty()) {
            Some(_) => Err("a transaction needs a [[transaction.statement]]".to_owned()),
            None => Ok(()),
        }
    }

    /// All statements in order, as (transaction, statement within it).
    pub fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.transactions.iter().flat_map(|t| &t.statements)
    }

    /// Whether a run changes rows.
    pub fn writes(&self) -> bool {
        self.statements().any(|s| s.kind != Kind::Select)
    }
}

impl Statement {
    fn check(&self) -> std::result::Result<(), String> {
        let marks = self.sql.matches('?').count();
        if marks != self.params.len() {
            return Err(format!("{marks} `?` but {} params", self.params.len()));
        }
        for param in &self.params {
            if let Param::COf(n) = param {
                let of = n.checked_sub(1).and_then(|i| self.params.get(i));
                if !matches!(of, Some(Param::Key(_))) {
                    return Err(format!("c_of = {n} names no key parameter (counted from 1)"));
                }
            }
        }
        let keyed = self.params.iter().any(|p| matches!(p, Param::Key(_)));
        if matches!(self.expect, Expect::Rows { content: Some(_), .. }) && !keyed {
            return Err("content needs a key parameter".to_owned());
        }
        Ok(())
    }
}

/// The built-in workloads, in the order of `loadgen workloads`.
pub fn builtin() -> Vec<Workload> {
    const FILES: [(&str, &str); 3] = [
        ("point-select.toml", include_str!("../../profiles/workloads/point-select.toml")),
        ("update-index.toml", include_str!("../../profiles/workloads/update-index.toml")),
        ("update-non-index.toml", include_str!("../../profiles/workloads/update-non-index.toml")),
    ];
    // A test parses them all, so nothing is lost here.
    FILES.iter().filter_map(|(name, text)| Workload::parse(text, name).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_ones_parse_and_have_their_names() {
        let names: Vec<String> = builtin().into_iter().map(|w| w.name).collect();
        assert_eq!(names, ["point-select", "update-index", "update-non-index"]);
    }

    #[test]
    fn errors_point_at_the_line() {
        let text = "name = \"x\"\nabout = \"y\"\ntransacton = 1\n";
        let error = Workload::parse(text, "my.toml").expect_err("a misspelt key");
        let shown = error.to_string();
        assert!(shown.contains("my.toml") && shown.contains("line 3"), "{shown}");
    }

    #[test]
    fn contradictions_are_refused() {
        let with = |sql: &str, params: &str, expect: &str| {
            let text = format!(
                "name = 'x'\nabout = 'y'\n[[transaction]]\n[[transaction.statement]]\n\
                 kind = 'select'\nsql = '{sql}'\nparams = {params}\nexpect = {expect}\n"
            );
            Workload::parse(&text, "w").map(|_| ()).map_err(|e| e.to_string())
        };
        let key = "[{ key = 'default' }]";
        assert_eq!(with("SELECT ?", key, "{ rows = 1 }"), Ok(()));
        for (sql, params, expect) in [
            ("SELECT ?, ?", key, "{ rows = 1 }"),
            ("SELECT ?", "[{ c_of = 1 }]", "{ rows = 1 }"),
            ("SELECT ?, ?", "[{ c_of = 0 }, { key = 'default' }]", "{ rows = 1 }"),
            ("SELECT ?", "[{ key = 'gauss' }]", "{ rows = 1 }"),
            ("SELECT 1", "[]", "{ rows = 1, content = 'c' }"),
            ("SELECT 1", "[]", "{ cows = 1 }"),
            ("SELECT 1", "[]", "{ rows = -1 }"),
        ] {
            assert!(with(sql, params, expect).is_err(), "{sql} {params} {expect}");
        }
    }
}
