//! Statements: what they send, how their lists are written out, and what can be wrong with them.

use serde::{Deserialize, Serialize};

use super::expect::{self, Effect, Expect};
use super::options::{Amount, Options, ensure, known};
use super::param::{self, Param};

/// Parameters of a prepared statement: the protocol's limit.
const PARAMS_MAX: u64 = 65_535;
/// Beginnings of SQL that changes rows.
const WRITING: [&str; 6] = ["UPDATE", "INSERT", "DELETE", "REPLACE", "TRUNCATE", "LOAD"];
/// Beginnings of SQL that begins or ends a transaction.
const CONTROL: [&str; 6] = ["BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "XA"];
const SHOWN: usize = 200;

/// One round trip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statement {
    pub kind: Kind,
    /// `{table}` stands for the table, `{list}` for the list, `?` for a parameter.
    pub sql: String,
    /// One for each `?` outside of the list, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<List>,
    /// So many times in an op, each with values of its own; once if left away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Amount>,
    /// Repeated together with the statement before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_previous: bool,
    #[serde(deserialize_with = "expect::or_any")]
    pub expect: Expect,
    /// With this option on, it is no error if there are fewer rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_if: Option<String>,
    #[serde(default, skip_serializing_if = "Effect::is_none")]
    pub effect: Effect,
}

/// What stands for `{list}`: `each`, so many times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// The text, with `?` for parameters.
    pub each: String,
    #[serde(default = "comma")]
    pub join: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Amount>,
    /// Or as many as fit into a statement of so many bytes, which is sent as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Amount>,
    /// One for each `?` of `each`; they refer to each other only.
    #[serde(default)]
    pub params: Vec<Param>,
}

fn comma() -> String {
    ", ".to_owned()
}

/// What a statement is to the server's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Select,
    Update,
    Insert,
    Delete,
    Other,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expanded {
    /// With `{table}` still in it. A list of so many bytes stands there once.
    pub sql: String,
    /// One for each `?`, referring to each other.
    pub params: Vec<Param>,
}

impl Kind {
    /// Gives its name in the summary.
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

impl List {
    /// Counts how often it stands there; one of so many bytes once.
    pub(crate) fn rows(&self, options: &Options) -> usize {
        self.times.as_ref().map_or(1, |times| times.value(options)) as usize
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        param::check(&self.each, &self.params, options)?;
        let previous = self.params.iter().any(|p| matches!(p, Param::Previous(_)));
        ensure(!previous, "a list knows no statement before")?;
        match (&self.times, &self.bytes) {
            (None, Some(bytes)) => bytes.check(options),
            (Some(times), None) => {
                times.check(options)?;
                ensure(self.rows(options) > 0, "a list of nothing is no SQL")?;
                let params = times.value(options) * self.params.len() as u64;
                let many = format_args!("{params} parameters are more than {PARAMS_MAX}");
                ensure(params <= PARAMS_MAX, many)
            }
            _ => Err("a list has either times or bytes".to_owned()),
        }
    }
}

impl Statement {
    /// Tells whether it is sent as text, whatever `--statements` says.
    pub(crate) fn is_text(&self) -> bool {
        self.list.as_ref().is_some_and(|list| list.bytes.is_some())
    }

    /// Shows the SQL: what a list holds stands there once.
    pub(crate) fn told(&self, options: &Options) -> String {
        let Some(list) = &self.list else { return self.sql.clone() };
        let count = match &list.bytes {
            Some(bytes) => format!("as many as fit into {} bytes", bytes.value(options)),
            None => format!("{} of them", list.rows(options)),
        };
        self.sql.replace("{list}", &format!("{}{} … {count}", list.each, list.join))
    }

    pub(crate) fn expanded(&self, options: &Options) -> Expanded {
        let Some(list) = &self.list else {
            return Expanded { sql: self.sql.clone(), params: self.params.clone() };
        };
        let (times, before, each) = (list.rows(options), self.before_list(), list.params.len());
        let sql = self.sql.replace("{list}", &vec![list.each.as_str(); times].join(&list.join));
        let own = |of: usize| if of > before { of + times * each } else { of };
        let (head, tail) = self.params.split_at(before);
        let mut params: Vec<Param> = head.iter().map(|p| p.moved(own)).collect();
        for time in 0..times {
            let place = |of: usize| of + before + time * each;
            params.extend(list.params.iter().map(|p| p.moved(place)));
        }
        params.extend(tail.iter().map(|p| p.moved(own)));
        Expanded { sql, params }
    }

    pub(crate) fn before_list(&self) -> usize {
        let (head, _) = self.sql.split_once("{list}").expect("a list has its place");
        head.matches('?').count()
    }

    /// Finds what its form alone does not say. `before` is the statement before it.
    pub(super) fn check(
        &self,
        before: Option<&Statement>,
        options: &Options,
    ) -> Result<(), String> {
        param::check(&self.sql, &self.params, options)?;
        match (&self.list, self.sql.matches("{list}").count()) {
            (None, 0) => {}
            (Some(list), 1) => list.check(options)?,
            (None, _) => return Err("{list} stands for a list, and there is none".to_owned()),
            (Some(_), n) => return Err(format!("a list has one {{list}}, not {n}")),
        }
        self.check_previous(before)?;
        self.repeat.iter().try_for_each(|repeat| repeat.check(options))?;
        self.missing_if.iter().try_for_each(|name| known(name, options))?;
        self.expect.check(options)?;
        let keyed = self.params.iter().any(|p| matches!(p, Param::Key(_)));
        ensure(keyed || self.expect.content.is_none(), "content needs a key parameter")?;
        let changes = self.kind == Kind::Select && self.effect != Effect::None;
        ensure(!changes, "a select changes nothing")?;
        let Effect::InsertK(of) = self.effect else { return Ok(()) };
        let params = self.list.as_ref().map_or(&self.params, |list| &list.params);
        let param = of
            .checked_sub(1)
            .and_then(|at| params.get(at))
            .ok_or_else(|| format!("insert_k = {of} is no parameter (they are counted from 1)"))?;
        ensure(param.is_counted(), format_args!("insert_k = {of}: parameter {of} holds no number"))
    }

    fn check_previous(&self, before: Option<&Statement>) -> Result<(), String> {
        if self.with_previous {
            ensure(before.is_some(), "with_previous, but there is no statement before")?;
            ensure(self.repeat.is_none(), "with_previous is repeated as the statement before")?;
        }
        for param in &self.params {
            let Param::Previous(of) = param else { continue };
            // Without it, the statement before may not run, or not in between.
            let needs = format_args!("previous = {of} needs with_previous = true");
            ensure(self.with_previous, needs)?;
            let there = |b: &Statement| b.list.is_none() && (1..=b.params.len()).contains(of);
            let none = format_args!("previous = {of} is no parameter of the statement before");
            ensure(before.is_some_and(there), none)?;
        }
        Ok(())
    }

    pub(super) fn writes(&self) -> bool {
        let writing = matches!(self.kind, Kind::Update | Kind::Insert | Kind::Delete);
        writing || self.effect != Effect::None || WRITING.contains(&self.first_word().as_str())
    }

    fn first_word(&self) -> String {
        let mut sql = self.sql.trim_start();
        while let Some((_, rest)) = sql.strip_prefix("/*").and_then(|sql| sql.split_once("*/")) {
            sql = rest.trim_start();
        }
        let letters = sql.chars().take_while(char::is_ascii_alphabetic);
        letters.map(|c| c.to_ascii_uppercase()).collect()
    }

    /// Tells why its effect does not say what it writes; `prefix` is that of the tables' names.
    pub(super) fn unfollowed(&self, prefix: &str) -> Option<String> {
        let (sql, word) = (self.sql.to_ascii_uppercase(), self.first_word());
        let none = self.effect == Effect::None;
        let ours = self.sql.contains("{table}");
        let listed = matches!(self.effect, Effect::InsertK(_)) && self.list.is_some();
        let why =
            if CONTROL.contains(&word.as_str()) || (word == "SET" && sql.contains("AUTOCOMMIT")) {
                "begins or ends transactions itself"
            } else if none && (ours || self.sql.contains(prefix)) && self.writes() {
                "gives no effect"
            } else if none {
                return None;
            } else if !ours {
                "does not say {table}"
            } else if word == "REPLACE" || sql.contains("ON DUPLICATE KEY") {
                "does not tell rows that came from rows that were changed"
            } else if listed && sql.contains("IGNORE") {
                "does not tell which of its rows came"
            } else if sql.trim_end().trim_end_matches(';').contains(';') {
                "is several statements"
            } else {
                return None;
            };
        Some(format!("'{}' {why}", self.sql.chars().take(SHOWN).collect::<String>()))
    }
}
