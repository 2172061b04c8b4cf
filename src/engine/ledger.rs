//! What acknowledged writes change, by table, in all phases.

use crate::summary::LedgerEntry;
use crate::workload::{Effect, Schema};

/// What one statement changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) effect: Effect,
    /// Rows affected.
    pub(crate) affected: u64,
    /// The sum of `k` of the rows that the statement sent, where the effect knows it.
    pub(crate) k: i64,
}

/// One table's account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) updates: u64,
    pub(crate) inserts: u64,
    pub(crate) deletes: u64,
    pub(crate) in_doubt: u64,
    pub(crate) k_added: i64,
    /// Rows that came or went with a `k` that is not known.
    pub(crate) k_unknown: u64,
    /// Ops of the window, for `totals.per_table`.
    pub(crate) ops: u64,
}

impl Account {
    /// An acknowledged write.
    pub(crate) fn apply(&mut self, change: Change) {
        let affected = change.affected;
        match change.effect {
            Effect::None => {}
            Effect::Update | Effect::SetC => self.updates += affected,
            Effect::AddK(n) => {
                self.updates += affected;
                let rows = i64::try_from(affected).unwrap_or(i64::MAX);
                self.k_added = self.k_added.saturating_add(n.saturating_mul(rows));
            }
            Effect::Insert => {
                self.inserts += affected;
                self.k_unknown += affected;
            }
            Effect::InsertK(_) => {
                self.inserts += affected;
                if affected > 0 {
                    self.k_added = self.k_added.saturating_add(change.k);
                }
            }
            Effect::Delete => {
                self.deletes += affected;
                self.k_unknown += affected;
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Account) {
        self.updates += other.updates;
        self.inserts += other.inserts;
        self.deletes += other.deletes;
        self.k_unknown += other.k_unknown;
        self.in_doubt += other.in_doubt;
        self.k_added = self.k_added.saturating_add(other.k_added);
        self.ops += other.ops;
    }

    /// The summary's form; `table` counts from 0.
    pub(crate) fn entry(&self, schema: Schema, table: u32) -> LedgerEntry {
        LedgerEntry {
            table: schema.name(table + 1),
            updates: self.updates,
            inserts: self.inserts,
            deletes: self.deletes,
            in_doubt: self.in_doubt,
            k_added: self.k_added,
            k_unknown: self.k_unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(effect: Effect, affected: u64, k: i64) -> Change {
        Change { effect, affected, k }
    }

    #[test]
    fn acknowledged_and_doubtful_writes_are_kept_apart() {
        let mut account = Account::default();
        account.apply(change(Effect::AddK(2), 3, 0));
        account.apply(change(Effect::SetC, 1, 0));
        account.apply(change(Effect::None, 7, 0));
        account.in_doubt += 1;
        let mut sum = Account { ops: 5, ..Account::default() };
        sum.merge(&account);
        let entry = sum.entry(Schema::Sbtest, 0);
        assert_eq!((entry.table.as_str(), entry.updates, entry.k_added), ("sbtest1", 4, 6));
        assert_eq!((entry.in_doubt, entry.k_unknown, sum.ops), (1, 0, 5));
    }

    #[test]
    fn rows_that_come_and_go_are_counted_and_so_is_a_k_that_nobody_knows() {
        let mut account = Account::default();
        account.apply(change(Effect::InsertK(2), 1, 40));
        account.apply(change(Effect::InsertK(2), 0, 99));
        account.apply(change(Effect::Insert, 3, 0));
        account.apply(change(Effect::Delete, 1, 0));
        let entry = account.entry(Schema::Bulk, 6);
        assert_eq!((entry.table.as_str(), entry.inserts, entry.deletes), ("bulk7", 4, 1));
        assert_eq!((entry.k_added, entry.k_unknown), (40, 4));
    }
}
