//! Whether the effects of a workload's statements tell what they write. Where they do not, its
//! summaries say so, and verify does not judge by their ledgers.

use super::{Effect, Kind, Statement, Workload};

/// What SQL that changes rows begins with.
const WRITING: [&str; 6] = ["UPDATE", "INSERT", "DELETE", "REPLACE", "TRUNCATE", "LOAD"];
/// And SQL that begins or ends a transaction.
const CONTROL: [&str; 6] = ["BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "XA"];
/// Characters of a statement in the reason.
const SHOWN: usize = 200;

impl Workload {
    /// Whether a run changes rows.
    pub(crate) fn writes(&self) -> bool {
        self.statements().any(Statement::writes)
    }

    /// Why a ledger does not tell what a run with these options writes, if so.
    pub(crate) fn unfollowed(&self) -> Option<String> {
        if !self.writes() {
            return None;
        }
        let untold = |statement: &Statement| {
            let why = statement.unfollowed(self.schema.prefix())?;
            let sql: String = statement.sql.chars().take(SHOWN).collect();
            Some(format!("'{sql}' {why}"))
        };
        self.statements().find_map(untold)
    }
}

impl Statement {
    fn writes(&self) -> bool {
        let writing = matches!(self.kind, Kind::Update | Kind::Insert | Kind::Delete);
        writing || self.effect != Effect::None || WRITING.contains(&self.first_word().as_str())
    }

    /// Upper case.
    fn first_word(&self) -> String {
        let mut sql = self.sql.trim_start();
        while let Some((_, rest)) = sql.strip_prefix("/*").and_then(|sql| sql.split_once("*/")) {
            sql = rest.trim_start();
        }
        let word = sql.split(|c: char| !c.is_ascii_alphabetic()).next();
        word.unwrap_or_default().to_ascii_uppercase()
    }

    /// `prefix` is that of the tables' names.
    fn unfollowed(&self, prefix: &str) -> Option<&'static str> {
        let (sql, word) = (self.sql.to_ascii_uppercase(), self.first_word());
        if CONTROL.contains(&word.as_str()) || (word == "SET" && sql.contains("AUTOCOMMIT")) {
            return Some("begins or ends transactions itself");
        }
        let ours = self.sql.contains("{table}");
        if self.effect == Effect::None {
            let ours = ours || self.sql.contains(prefix);
            return (ours && self.writes()).then_some("gives no effect");
        }
        let ignored = matches!(self.effect, Effect::InsertK(_)) && self.list.is_some();
        if !ours {
            Some("does not say {table}")
        } else if word == "REPLACE" || sql.contains("ON DUPLICATE KEY") {
            Some("does not tell rows that came from rows that were changed")
        } else if ignored && sql.contains("IGNORE") {
            Some("does not tell which of its rows came")
        } else if sql.trim_end().trim_end_matches(';').contains(';') {
            Some("is several statements")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;

    fn of(kind: &str, sql: &str, effect: &str) -> Workload {
        let text = format!(
            "name = 'x'\nabout = 'y'\n[[transaction]]\n[[transaction.statement]]\nkind = '{kind}'\n\
             sql = '{sql}'\nexpect = 'any'\n{effect}"
        );
        Workload::parse(&text, "w").unwrap_or_else(|e| panic!("{}", e.render()))
    }

    #[test]
    fn what_is_built_in_is_followed() {
        for workload in builtin() {
            assert_eq!(workload.unfollowed(), None, "{}", workload.name);
        }
    }

    #[test]
    fn what_an_effect_does_not_tell_is_said() {
        let add = "effect = { add_k = 1 }";
        for (kind, sql, effect, says) in [
            ("update", "UPDATE {table} SET k = k + 1", add, None),
            ("update", "UPDATE {table} SET k = k + 1;", add, None),
            ("update", "UPDATE {table} SET pad = 1", "", Some("gives no effect")),
            ("other", " replace into sbtest1 (id) VALUES (1)", "", Some("gives no effect")),
            ("insert", "INSERT INTO visits VALUES (1)", "", None),
            ("update", "UPDATE sbtest1 SET k = k + 1", add, Some("does not say {table}")),
            ("update", "UPDATE {table} SET k = 1; DO 1", add, Some("is several statements")),
            ("other", "START TRANSACTION READ ONLY", "", None),
            ("other", "OPTIMIZE TABLE {table}", "", None),
            ("select", "/* update */ SELECT c FROM {table}", "", None),
        ] {
            let why = of(kind, sql, effect).unfollowed();
            assert_eq!(why.is_some(), says.is_some(), "{sql}: {why:?}");
            assert!(why.unwrap_or_default().ends_with(says.unwrap_or_default()), "{sql}");
        }
        assert!(of("other", "TRUNCATE {table}", "").writes());
        assert!(!of("other", "CALL p()", "").writes());
    }
}
