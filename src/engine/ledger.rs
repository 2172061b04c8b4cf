//! The ledger: what acknowledged writes change, by table, in all phases.
//!
//! A write is acknowledged when the answer says so that makes it last: its own with autocommit,
//! that of COMMIT otherwise. One whose answer never came is in doubt, whatever the server did.

use super::job::Job;
use crate::summary::{Doubt, LedgerEntry};
use crate::workload::Effect;

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
                let statement = &job.statements[index];
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
        match self.effect {
            Effect::InsertK(_) => Doubt { rows_added: self.affected, ..of_k(self.k, 1) },
            effect => in_doubt(effect, Some(self.affected)),
        }
    }

    pub(crate) fn enter(self, entry: &mut LedgerEntry) {
        let affected = self.affected;
        match self.effect {
            Effect::None => {}
            Effect::Update | Effect::SetC | Effect::AddK(0) => {
                entry.updates += affected;
                entry.untraced += affected;
            }
            Effect::AddK(n) => {
                entry.updates += affected;
                entry.k_taken = entry.k_taken.saturating_add(of_k(n, affected).k_removed);
                let rows = i64::try_from(affected).unwrap_or(i64::MAX);
                entry.k_added = entry.k_added.saturating_add(n.saturating_mul(rows));
            }
            Effect::Insert => {
                entry.inserts += affected;
                entry.k_unknown += affected;
            }
            Effect::InsertK(_) => {
                entry.inserts += affected;
                let k = if affected > 0 { self.k } else { 0 };
                entry.k_added = entry.k_added.saturating_add(k);
            }
            Effect::Delete => {
                entry.deletes += affected;
                entry.k_unknown += affected;
            }
        }
    }
}

/// Bounds what a statement may have done that affects so many rows at most; None is without a bound.
pub(crate) fn in_doubt(effect: Effect, affected: Option<u64>) -> Doubt {
    let none = Doubt::default();
    match (effect, affected) {
        (Effect::None | Effect::Update | Effect::SetC, _) => none,
        (Effect::AddK(n), rows) => of_k(n, rows.unwrap_or(u64::MAX)),
        (_, None) => Doubt { rows_unknown: 1, k_unknown: 1, ..none },
        (Effect::Delete, Some(rows)) => Doubt { rows_removed: rows, k_unknown: 1, ..none },
        (Effect::Insert | Effect::InsertK(_), Some(rows)) => {
            Doubt { rows_added: rows, k_unknown: 1, ..none }
        }
    }
}

fn of_k(k: i64, rows: u64) -> Doubt {
    let most = k.unsigned_abs().saturating_mul(rows);
    let (k_added, k_removed) = if k < 0 { (0, most) } else { (most, 0) };
    Doubt { k_added, k_removed, ..Doubt::default() }
}

pub(crate) fn add_doubt(entry: &mut LedgerEntry, writes: u32, doubt: &Doubt) {
    entry.in_doubt += u64::from(writes);
    entry.doubt.get_or_insert_default().add(doubt);
}

/// Adds fields of one struct to those of another one.
macro_rules! add {
    ($sum:expr, $more:expr; $($field:ident),+) => {
        $($sum.$field = $sum.$field.saturating_add($more.$field);)+
    };
}
pub(super) use add;

pub(crate) fn merge(sum: &mut LedgerEntry, more: &LedgerEntry) {
    if let Some(doubt) = &more.doubt {
        sum.doubt.get_or_insert_default().add(doubt);
    }
    add!(sum, more; k_added, updates, inserts, deletes, in_doubt, k_unknown, k_taken, untraced);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(effect: Effect, affected: u64, k: i64) -> Change {
        Change { effect, affected, k }
    }

    #[test]
    fn acknowledged_and_doubtful_writes_are_kept_apart() {
        let mut sum = LedgerEntry::default();
        let mut entry = LedgerEntry::default();
        for (effect, affected) in [
            (Effect::AddK(2), 3),
            (Effect::SetC, 1),
            (Effect::None, 7),
            (Effect::AddK(-3), 2),
            (Effect::AddK(0), 4),
        ] {
            change(effect, affected, 0).enter(&mut entry);
        }
        add_doubt(&mut entry, 1, &in_doubt(Effect::AddK(2), Some(1)));
        merge(&mut sum, &entry);
        let entry = &sum;
        assert_eq!((entry.updates, entry.k_added, entry.k_taken), (10, 0, 6));
        assert_eq!((entry.in_doubt, entry.k_unknown), (1, 0));
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
