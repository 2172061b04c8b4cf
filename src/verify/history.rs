//! What the runs since prepare left in a table, as far as they tell.

use std::collections::BTreeMap;

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
    pub(super) k_taken: u64,
    pub(super) k_unknown: u64,
    pub(super) untraced: u64,
    pub(super) doubt: Doubt,
    /// Whether a workload of somebody's own wrote to it, whose contents may be anything.
    pub(super) custom: bool,
    /// Why nothing can be said, if so.
    pub(super) unknown: Vec<String>,
}

impl<'a> Archive<'a> {
    /// The history of the table of this name and identity.
    pub(super) fn of(&self, table: &str, id: &str) -> History {
        let mut history = History::default();
        for summary in self.summaries {
            let unfollowed = summary.workload.unfollowed.as_deref();
            let its = |entry: &&LedgerEntry| {
                let its = entry.table == table && entry.table_id.as_deref() == Some(id);
                its && (changes(entry) || unfollowed.is_some())
            };
            for entry in summary.ledger.iter().filter(its) {
                if let Some(why) = unfollowed {
                    let (step, name) = (&summary.step_id, &summary.workload.name);
                    history.cannot(format!(
                        "step {step} ({name}) wrote what its ledger does not tell: {why}"
                    ));
                }
                let place = place(summary);
                if self.is_another(&place) {
                    history.cannot(format!(
                        "step {} wrote to a copy of it at {place}, this one is at {}",
                        summary.step_id, self.here
                    ));
                }
                history.steps += 1;
                history.custom |= !summary.workload.built_in;
                // A file may say anything.
                for (sum, more) in [
                    (&mut history.updates, entry.updates),
                    (&mut history.inserts, entry.inserts),
                    (&mut history.deletes, entry.deletes),
                    (&mut history.in_doubt, entry.in_doubt),
                    (&mut history.k_taken, entry.k_taken),
                    (&mut history.k_unknown, entry.k_unknown),
                    (&mut history.untraced, entry.untraced),
                ] {
                    *sum = sum.saturating_add(more);
                }
                history.k_added += i128::from(entry.k_added);
                history.doubt.add(&entry.doubt.unwrap_or_default());
            }
        }
        for (name, record) in self.records {
            let its = record.tables.get(table).is_some_and(|its| its == id);
            let told = |summary: &&Summary| summary.record.as_ref() == Some(name);
            if its && !self.summaries.iter().any(told) {
                history.custom |= !record.built_in;
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

    fn is_another(&self, place: &Place) -> bool {
        place.differs(self.here) && !self.elsewhere
    }

    /// Tables that steps here wrote to beside one of these, and that are none of these: each with one
    /// such step.
    pub(super) fn missing(&self, tables: &[(String, String)]) -> BTreeMap<String, String> {
        let here = |name: &str| tables.iter().any(|(n, _)| n == name);
        let ours = |(name, id): &(&str, &str)| tables.iter().any(|(n, i)| n == name && i == id);
        let mut missing = BTreeMap::new();
        let mut beside = |step: &str, wrote: &[(&str, &str)]| {
            if wrote.iter().any(ours) {
                let gone = wrote.iter().filter(|(name, _)| !here(name));
                missing.extend(gone.map(|(name, _)| ((*name).to_owned(), step.to_owned())));
            }
        };
        for summary in self.summaries.iter().filter(|s| !self.is_another(&place(s))) {
            let wrote = summary.ledger.iter().filter(|entry| changes(entry));
            let named = |entry: &'a LedgerEntry| Some((&*entry.table, entry.table_id.as_deref()?));
            beside(&summary.step_id, &wrote.filter_map(named).collect::<Vec<_>>());
        }
        for (_, record) in self.records.iter().filter(|(_, r)| !self.is_another(&r.place)) {
            let may = record.tables.iter().map(|(name, id)| (&**name, &**id));
            beside(&record.step_id, &may.collect::<Vec<_>>());
        }
        missing
    }
}

fn place(summary: &Summary) -> Place {
    Place::of(&summary.server.variables, summary.server.database.as_deref())
}

fn changes(entry: &LedgerEntry) -> bool {
    [entry.updates, entry.inserts, entry.deletes, entry.in_doubt].iter().any(|n| *n > 0)
}

impl History {
    /// For this reason nobody can say what the table must hold.
    pub(super) fn cannot(&mut self, why: String) {
        self.unknown.push(why);
    }

    /// Whether ids may have been changed, or what is beyond `k` in rows, by a workload of
    /// somebody's own.
    pub(super) fn rewrites(&self) -> bool {
        self.custom && (self.untraced > 0 || self.in_doubt > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step that updated two tables.
    fn step(number: u32, hostname: &str) -> Summary {
        let text = include_str!("../../tests/fixtures/summary.json");
        let mut summary: Summary = serde_json::from_str(text).expect("a summary");
        summary.step_id = format!("aa-{number}");
        summary.workload.built_in = true;
        summary.record = Some(format!("aa-{number}-00000000"));
        summary.server.variables.insert("hostname".to_owned(), hostname.to_owned());
        let entry = |table: &str, id: &str| {
            let text = format!(
                "{{\"table\": \"{table}\", \"table_id\": \"{id}\", \"updates\": 5, \"inserts\": 0, \
                 \"deletes\": 0, \"in_doubt\": 0, \"k_added\": 5}}"
            );
            serde_json::from_str::<LedgerEntry>(&text).expect("an entry")
        };
        summary.ledger = vec![entry("sbtest1", "5f"), entry("sbtest2", "60")];
        summary
    }

    fn archive<'a>(
        summaries: &'a [&'a Summary],
        records: &'a [(String, Record)],
        here: &'a Place,
    ) -> Archive<'a> {
        Archive { summaries, records, here, elsewhere: false }
    }

    fn here() -> Place {
        Place { hostname: Some("db1".to_owned()), ..Place::default() }
    }

    #[test]
    fn ledgers_of_other_contents_say_nothing_of_a_table() {
        let mut steps = [step(1, "db1"), step(2, "db1")];
        steps[1].workload.built_in = false;
        let summaries: Vec<&Summary> = steps.iter().collect();
        let here = here();
        let archive = archive(&summaries, &[], &here);
        let history = archive.of("sbtest1", "5f");
        assert_eq!((history.steps, history.k_added, history.updates), (2, 10, 10));
        assert!(history.custom);
        let own = Archive { summaries: &summaries[..1], ..archive };
        assert!(!own.of("sbtest1", "5f").custom, "whatever its title");
        assert!(history.unknown.is_empty());
        assert_eq!(archive.of("sbtest1", "60"), History::default(), "filled again");
        assert_eq!(archive.of("sbtest2", "5f"), History::default());
        let names = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(n, i)| ((*n).to_owned(), (*i).to_owned())).collect()
        };
        assert_eq!(archive.strangers(&names(&[("sbtest1", "5f"), ("sbtest2", "60")])), 0);
        assert_eq!(archive.strangers(&names(&[("sbtest1", "5f"), ("sbtest2", "61")])), 2);
    }

    #[test]
    fn what_a_ledger_does_not_tell_is_not_judged_by_it() {
        let mut told = step(1, "db1");
        told.workload.unfollowed = Some("'UPDATE' gives no effect".to_owned());
        // Of nothing that it counts.
        for entry in &mut told.ledger {
            (entry.updates, entry.k_added) = (0, 0);
        }
        let here = here();
        let history = archive(&[&told], &[], &here).of("sbtest1", "5f");
        let says = "step aa-1 (point-select) wrote what its ledger does not tell: 'UPDATE' gives";
        assert!(history.unknown[0].starts_with(says), "{:?}", history.unknown);
        told.workload.unfollowed = None;
        assert_eq!(archive(&[&told], &[], &here).of("sbtest1", "5f"), History::default());
    }

    #[test]
    fn a_table_that_is_gone_is_missed_where_others_of_its_step_are_left() {
        let step = step(1, "db1");
        let here = here();
        let steps = [&step];
        let archive = archive(&steps, &[], &here);
        let names = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(n, i)| ((*n).to_owned(), (*i).to_owned())).collect()
        };
        let missing = archive.missing(&names(&[("sbtest1", "5f")]));
        assert_eq!(missing.into_iter().collect::<Vec<_>>(), names(&[("sbtest2", "aa-1")]));
        for all in [&[("sbtest1", "5f"), ("sbtest2", "61")][..], &[("sbtest1", "77")]] {
            assert!(archive.missing(&names(all)).is_empty(), "prepared again: {all:?}");
        }
        let copy = Place { hostname: Some("db2".to_owned()), ..Place::default() };
        let elsewhere = Archive { here: &copy, ..archive };
        assert!(elsewhere.missing(&names(&[("sbtest1", "5f")])).is_empty(), "of a part alone");
        let tables = names(&[("sbtest1", "5f"), ("sbtest3", "62")]).into_iter().collect();
        let record = Record::new("aa-2".into(), "update-index".into(), true, here.clone(), tables);
        let records = [("aa-2-00000000".to_owned(), record)];
        let killed = Archive { records: &records, ..archive };
        assert!(killed.missing(&names(&[("sbtest1", "5f")])).contains_key("sbtest3"));
    }

    #[test]
    fn a_copy_of_the_data_has_another_history() {
        let steps = [step(1, "db1"), step(2, "db2")];
        let summaries: Vec<&Summary> = steps.iter().collect();
        let here = here();
        let archive = archive(&summaries, &[], &here);
        assert!(archive.of("sbtest1", "5f").unknown[0].contains("step aa-2 wrote to a copy"));
        let moved = Archive { elsewhere: true, ..archive };
        assert!(moved.of("sbtest1", "5f").unknown.is_empty());
    }

    #[test]
    fn a_record_without_its_summary_is_a_step_that_nobody_knows() {
        let steps = [step(1, "db1")];
        let tables = [("sbtest1".to_owned(), "5f".to_owned())];
        let record = Record::new("aa-1".into(), "update".into(), false, here(), tables.into());
        // The same step was killed once, and then ran to its end.
        let records = ["aa-1-00000000", "aa-1-11111111"].map(|n| (n.to_owned(), record.clone()));
        let nowhere = Place::default();
        let summaries: Vec<&Summary> = steps.iter().collect();
        let known = archive(&summaries, &records[..1], &nowhere);
        assert!(known.of("sbtest1", "5f").unknown.is_empty());
        let killed = archive(&summaries, &records, &nowhere);
        let history = killed.of("sbtest1", "5f");
        assert_eq!((history.unknown.len(), history.custom), (1, true));
        assert!(killed.of("sbtest2", "60").unknown.is_empty(), "it did not write to that");
        assert!(killed.of("sbtest1", "77").unknown.is_empty(), "nor since it was filled again");
    }
}
