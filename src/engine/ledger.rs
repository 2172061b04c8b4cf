//! The ledger: what acknowledged writes change, by table, in all phases.
//!
//! A write is acknowledged when the answer says so that makes it last: its own with autocommit,
//! that of COMMIT otherwise. One whose answer never came is in doubt, whatever the server did.

use super::job::Job;
use crate::summary::{Doubt, LedgerEntry};
use crate::workload::{Effect, Schema};

/// Writes that are in doubt if the answer to a call never comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Pending {
    /// Nothing: no call, or one whose effects are rolled back with its connection.
    #[default]
    Nothing,
    /// A statement that commits itself, by its place in the job, on a table from 0.
    Statement(u32, usize),
    /// So many writes of a table, and what they may have done: those of a COMMIT, for one.
    Known(u32, u32, Doubt),
}

impl Pending {
    pub(crate) fn doubt(self, job: &Job) -> Option<(u32, u32, Doubt)> {
        match self {
            Pending::Nothing => None,
            Pending::Known(table, writes, doubt) => (writes > 0).then_some((table, writes, doubt)),
            Pending::Statement(table, index) => {
                let statement = &job.compiled.statements[index];
                let doubt = in_doubt(statement.effect, statement.check.affected_max(0));
                (statement.effect != Effect::None).then_some((table, 1, doubt))
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub effect: Effect,
    pub affected: u64,
    /// The sum of `k` of the rows that the statement sent, where the effect knows it.
    pub k: i64,
}

impl Change {
    /// Bounds what it did, if its COMMIT is in doubt.
    pub(crate) fn doubt(&self) -> Doubt {
        let mut doubt = in_doubt(self.effect, Some(self.affected));
        if matches!(self.effect, Effect::InsertK(_)) {
            doubt.k_unknown = 0;
            let side = if self.k < 0 { &mut doubt.k_removed } else { &mut doubt.k_added };
            *side = self.k.unsigned_abs();
        }
        doubt
    }
}

/// Bounds what a statement may have done that affects so many rows at most; None is without a bound.
pub(crate) fn in_doubt(effect: Effect, affected: Option<u64>) -> Doubt {
    let mut doubt = Doubt::default();
    match (effect, affected) {
        (Effect::None | Effect::Update | Effect::SetC, _) => {}
        (Effect::AddK(n), rows) => {
            let side = if n < 0 { &mut doubt.k_removed } else { &mut doubt.k_added };
            *side = n.unsigned_abs().saturating_mul(rows.unwrap_or(u64::MAX));
        }
        (Effect::Insert | Effect::InsertK(_), Some(rows)) => {
            (doubt.rows_added, doubt.k_unknown) = (rows, 1);
        }
        (Effect::Delete, Some(rows)) => (doubt.rows_removed, doubt.k_unknown) = (rows, 1),
        (Effect::Insert | Effect::InsertK(_) | Effect::Delete, None) => {
            (doubt.rows_unknown, doubt.k_unknown) = (1, 1);
        }
    }
    doubt
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub entry: LedgerEntry,
    /// Ops of the window, for `totals.per_table`.
    pub ops: u64,
}

impl Account {
    /// Opens that of a table, which counts from 0.
    pub(crate) fn new(schema: Schema, table: u32) -> Account {
        let entry = LedgerEntry { table: schema.name(table + 1), ..LedgerEntry::default() };
        Account { entry, ops: 0 }
    }

    pub(crate) fn apply(&mut self, change: Change) {
        let (entry, affected) = (&mut self.entry, change.affected);
        match change.effect {
            Effect::None => {}
            Effect::Update | Effect::SetC | Effect::AddK(0) => {
                entry.updates += affected;
                entry.untraced += affected;
            }
            Effect::AddK(n) => {
                entry.updates += affected;
                if n < 0 {
                    let taken = n.unsigned_abs().saturating_mul(affected);
                    entry.k_taken = entry.k_taken.saturating_add(taken);
                }
                let rows = i64::try_from(affected).unwrap_or(i64::MAX);
                entry.k_added = entry.k_added.saturating_add(n.saturating_mul(rows));
            }
            Effect::Insert => {
                entry.inserts += affected;
                entry.k_unknown += affected;
            }
            Effect::InsertK(_) => {
                entry.inserts += affected;
                if affected > 0 {
                    entry.k_added = entry.k_added.saturating_add(change.k);
                }
            }
            Effect::Delete => {
                entry.deletes += affected;
                entry.k_unknown += affected;
            }
        }
    }

    pub(crate) fn doubt(&mut self, writes: u32, doubt: &Doubt) {
        self.entry.in_doubt += u64::from(writes);
        self.entry.doubt.get_or_insert_default().add(doubt);
    }

    pub(crate) fn merge(&mut self, other: &Account) {
        let (sum, more) = (&mut self.entry, &other.entry);
        sum.k_added = sum.k_added.saturating_add(more.k_added);
        if let Some(doubt) = &more.doubt {
            sum.doubt.get_or_insert_default().add(doubt);
        }
        for (sum, more) in [
            (&mut sum.updates, more.updates),
            (&mut sum.inserts, more.inserts),
            (&mut sum.deletes, more.deletes),
            (&mut sum.in_doubt, more.in_doubt),
            (&mut sum.k_unknown, more.k_unknown),
            (&mut sum.k_taken, more.k_taken),
            (&mut sum.untraced, more.untraced),
            (&mut self.ops, other.ops),
        ] {
            *sum = sum.saturating_add(more);
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
        let mut account = Account::new(Schema::Sbtest, 0);
        account.apply(change(Effect::AddK(2), 3, 0));
        account.apply(change(Effect::SetC, 1, 0));
        account.apply(change(Effect::None, 7, 0));
        account.apply(change(Effect::AddK(-3), 2, 0));
        account.apply(change(Effect::AddK(0), 4, 0));
        account.doubt(1, &in_doubt(Effect::AddK(2), Some(1)));
        let mut sum = Account { ops: 5, ..Account::new(Schema::Sbtest, 0) };
        sum.merge(&account);
        let entry = &sum.entry;
        assert_eq!((entry.table.as_str(), entry.updates, entry.k_added), ("sbtest1", 10, 0));
        assert_eq!((entry.k_taken, entry.in_doubt, entry.k_unknown, sum.ops), (6, 1, 0, 5));
        assert_eq!(entry.untraced, 5, "of c, and those that add nothing");
        assert_eq!(entry.doubt, Some(Doubt { k_added: 2, ..Doubt::default() }));
    }

    #[test]
    fn a_doubt_has_bounds_where_the_workload_gives_them() {
        let none = Doubt::default();
        for (effect, affected, doubt) in [
            (Effect::SetC, None, none),
            (Effect::AddK(-3), Some(2), Doubt { k_removed: 6, ..none }),
            // However many rows: no k came or went, and the other side has its bound.
            (Effect::AddK(1), None, Doubt { k_added: u64::MAX, ..none }),
            (Effect::AddK(-3), None, Doubt { k_removed: u64::MAX, ..none }),
            (Effect::Insert, Some(5), Doubt { rows_added: 5, k_unknown: 1, ..none }),
            (Effect::InsertK(1), None, Doubt { rows_unknown: 1, k_unknown: 1, ..none }),
            (Effect::Delete, Some(1), Doubt { rows_removed: 1, k_unknown: 1, ..none }),
        ] {
            assert_eq!(in_doubt(effect, affected), doubt, "{effect:?}");
        }
        // A statement that was answered is known; only whether it lasts is not.
        let known = change(Effect::InsertK(2), 1, 40).doubt();
        assert_eq!(known, Doubt { rows_added: 1, k_added: 40, ..none });
    }
}
