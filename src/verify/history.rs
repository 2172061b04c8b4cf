//! What the runs since prepare left in a table, as far as they tell.

use crate::summary::{Doubt, LedgerEntry, Place, Record, Summary};

/// Everything that was found of runs: nothing here connects anywhere.
#[derive(Debug, Clone, Copy)]
pub(super) struct Archive<'a> {
    pub(super) summaries: &'a [&'a Summary],
    /// Names and records of steps that began to write.
    pub(super) records: &'a [(String, Record)],
    /// The server's own place.
    pub(super) here: &'a Place,
    /// Whether what was written at another place counts too.
    pub(super) elsewhere: bool,
}

/// Of one table, since it became ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct History {
    /// Steps that wrote to it, or may have.
    pub(super) steps: u64,
    pub(super) updates: u64,
    pub(super) inserts: u64,
    pub(super) deletes: u64,
    pub(super) in_doubt: u64,
    pub(super) k_added: i128,
    pub(super) k_unknown: u64,
    pub(super) untraced: u64,
    pub(super) doubt: Doubt,
    /// Why nothing can be said, if so.
    pub(super) unknown: Vec<String>,
}

impl Archive<'_> {
    /// The history of the table of this name and identity.
    pub(super) fn of(&self, table: &str, id: &str) -> History {
        let mut history = History::default();
        for summary in self.summaries {
            let its =
                |entry: &LedgerEntry| entry.table == table && entry.table_id.as_deref() == Some(id);
            for entry in summary.ledger.iter().filter(|entry| its(entry) && changes(entry)) {
                let place = Place::of(&summary.server.variables);
                if place.differs(self.here) && !self.elsewhere {
                    history.cannot(format!(
                        "step {} wrote to a copy of it at {place}, this one is at {}",
                        summary.step_id, self.here
                    ));
                }
                history.steps += 1;
                history.updates += entry.updates;
                history.inserts += entry.inserts;
                history.deletes += entry.deletes;
                history.in_doubt += entry.in_doubt;
                history.k_added += i128::from(entry.k_added);
                history.k_unknown += entry.k_unknown;
                history.untraced += entry.untraced;
                history.doubt.add(&entry.doubt.unwrap_or_default());
            }
        }
        for (name, record) in self.records {
            let its = record.tables.get(table).is_some_and(|its| its == id);
            let told = |summary: &&Summary| summary.record.as_ref() == Some(name);
            if its && !self.summaries.iter().any(told) {
                history.cannot(format!(
                    "step {} ({}) of {} left no summary",
                    record.step_id, record.what, record.begun_at
                ));
            }
        }
        history
    }

    /// Steps that wrote to other tables than these names and identities.
    pub(super) fn strangers(&self, tables: &[(String, String)]) -> usize {
        let ours = |name: &str, id: &str| tables.iter().any(|(n, i)| n == name && i == id);
        let wrote = |summary: &&&Summary| {
            let mut entries = summary.ledger.iter();
            entries.any(|entry| {
                let id = entry.table_id.as_deref().unwrap_or_default();
                changes(entry) && !ours(&entry.table, id)
            })
        };
        self.summaries.iter().filter(wrote).count()
    }
}

fn changes(entry: &LedgerEntry) -> bool {
    entry.updates + entry.inserts + entry.deletes + entry.in_doubt > 0
}

impl History {
    fn cannot(&mut self, why: String) {
        self.unknown.push(why);
    }
}
