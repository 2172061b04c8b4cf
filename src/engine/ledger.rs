//! What acknowledged writes change, by table, in all phases.

use crate::summary::LedgerEntry;
use crate::workload::{Effect, table};

/// One table's account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) updates: u64,
    pub(crate) in_doubt: u64,
    pub(crate) k_added: i64,
    /// Ops of the window, for `totals.per_table`.
    pub(crate) ops: u64,
}

impl Account {
    /// An acknowledged write.
    pub(crate) fn apply(&mut self, effect: Effect, affected: u64) {
        match effect {
            Effect::None => {}
            Effect::SetC => self.updates += affected,
            Effect::AddK(n) => {
                self.updates += affected;
                let rows = i64::try_from(affected).unwrap_or(i64::MAX);
                self.k_added = self.k_added.saturating_add(n.saturating_mul(rows));
            }
        }
    }

    /// A write whose answer never came.
    pub(crate) fn doubt(&mut self, effect: Effect) {
        if effect != Effect::None {
            self.in_doubt += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: &Account) {
        self.updates += other.updates;
        self.in_doubt += other.in_doubt;
        self.k_added = self.k_added.saturating_add(other.k_added);
        self.ops += other.ops;
    }

    /// The summary's form; `table` counts from 0.
    pub(crate) fn entry(&self, table: u32) -> LedgerEntry {
        LedgerEntry {
            table: table::name(table + 1),
            updates: self.updates,
            inserts: 0,
            deletes: 0,
            in_doubt: self.in_doubt,
            k_added: self.k_added,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_and_doubtful_writes_are_kept_apart() {
        let mut account = Account::default();
        account.apply(Effect::AddK(2), 3);
        account.apply(Effect::SetC, 1);
        account.apply(Effect::None, 7);
        account.doubt(Effect::AddK(2));
        account.doubt(Effect::None);
        let mut sum = Account { ops: 5, ..Account::default() };
        sum.merge(&account);
        let entry = sum.entry(0);
        assert_eq!((entry.table.as_str(), entry.updates, entry.k_added), ("sbtest1", 4, 6));
        assert_eq!((entry.in_doubt, sum.ops), (1, 5));
    }
}
