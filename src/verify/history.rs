//! What the runs since prepare left in a table, as far as they tell.

use std::collections::BTreeMap;

use crate::summary::{Doubt, LedgerEntry, Place, Record, Summary};
use crate::workload::table::Mark;

/// What is known of the runs: nothing here connects anywhere.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    pub summaries: &'a [&'a Summary],
    /// What steps without a summary left: names and records.
    pub records: &'a [(String, Record)],
    /// Whether what was written on another server counts too: this one is its replica, or has
    /// its data.
    pub elsewhere: bool,
}

/// What was written to one table since it became ready.
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

/// A table's name, and the identity of its content.
pub(super) type Known = (String, String);

impl Evidence<'_> {
    /// Tells the history of a table at this place since it got its mark.
    pub(super) fn of(&self, here: &Place, table: &str, mark: &Mark) -> History {
        let Some(id) = mark.id.map(|id| format!("{id:x}")) else {
            let why = "an older loadgen prepared it, whose ledgers do not say whose they are";
            return History::unknown(why);
        };
        let mut history = History::default();
        for summary in self.summaries {
            let unfollowed = summary.workload.unfollowed.as_deref();
            let its = |entry: &&LedgerEntry| {
                let its = entry.table == table && entry.table_id.as_ref() == Some(&id);
                its && (changes(entry) || unfollowed.is_some())
            };
            for entry in summary.ledger.iter().filter(its) {
                let (step, place) = (&summary.step_id, place(summary));
                if let Some(why) = unfollowed {
                    let name = &summary.workload.name;
                    history.unknown.push(format!(
                        "step {step} ({name}) wrote what its ledger does not tell: {why}"
                    ));
                }
                if self.is_another(&place, here) {
                    history.unknown.push(format!(
                        "step {step} wrote to a copy of it at {place}, this one is at {here}"
                    ));
                }
                history.custom |= !summary.workload.built_in;
                history.add(entry);
            }
        }
        for (name, record) in self.records {
            let told = |summary: &&Summary| summary.record.as_ref() == Some(name);
            if record.tables.get(table) == Some(&id) && !self.summaries.iter().any(told) {
                history.custom |= !record.built_in;
                history.unknown.push(format!(
                    "step {} ({}) of {} left no summary",
                    record.step_id, record.what, record.begun_at
                ));
            }
        }
        history
    }

    /// Counts the steps that wrote to other tables than these.
    pub(super) fn strangers(&self, tables: &[Known]) -> usize {
        let other = |summary: &&&Summary| wrote(summary).iter().any(|it| !tables.contains(it));
        self.summaries.iter().filter(other).count()
    }

    fn is_another(&self, place: &Place, here: &Place) -> bool {
        place.differs(here) && !self.elsewhere
    }

    /// Finds tables that steps here wrote to beside one of these, and that are none of these: each with
    /// one such step.
    pub(super) fn missing(&self, here: &Place, tables: &[Known]) -> BTreeMap<String, String> {
        let summaries = self.summaries.iter().map(|s| (&s.step_id, place(s), wrote(s)));
        let records = self.records.iter().map(|(_, record)| {
            let wrote = record.tables.clone().into_iter().collect();
            (&record.step_id, record.place.clone(), wrote)
        });
        let mut missing = BTreeMap::new();
        for (step, place, wrote) in summaries.chain(records) {
            if self.is_another(&place, here) || !wrote.iter().any(|it| tables.contains(it)) {
                continue;
            }
            let gone = |(name, id): &Known| {
                !id.is_empty() && !tables.iter().any(|(known, _)| known == name)
            };
            missing.extend(wrote.into_iter().filter(gone).map(|(name, _)| (name, step.clone())));
        }
        missing
    }
}

fn place(summary: &Summary) -> Place {
    Place::of(&summary.server.variables, summary.server.database.as_deref())
}

/// Lists the tables that a step wrote to; of old versions' the identity is empty.
fn wrote(summary: &Summary) -> Vec<Known> {
    let known =
        |entry: &LedgerEntry| (entry.table.clone(), entry.table_id.clone().unwrap_or_default());
    summary.ledger.iter().filter(|entry| changes(entry)).map(known).collect()
}

fn changes(entry: &LedgerEntry) -> bool {
    [entry.updates, entry.inserts, entry.deletes, entry.in_doubt].iter().any(|n| *n > 0)
}

impl History {
    pub(super) fn unknown(why: &str) -> History {
        History { unknown: vec![why.to_owned()], ..History::default() }
    }

    /// Adds what a step wrote. A file may say anything.
    fn add(&mut self, entry: &LedgerEntry) {
        for (sum, more) in [
            (&mut self.steps, 1),
            (&mut self.updates, entry.updates),
            (&mut self.inserts, entry.inserts),
            (&mut self.deletes, entry.deletes),
            (&mut self.in_doubt, entry.in_doubt),
            (&mut self.k_taken, entry.k_taken),
            (&mut self.k_unknown, entry.k_unknown),
            (&mut self.untraced, entry.untraced),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.k_added += i128::from(entry.k_added);
        self.doubt.add(&entry.doubt.unwrap_or_default());
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

    fn evidence<'a>(summaries: &'a [&'a Summary], records: &'a [(String, Record)]) -> Evidence<'a> {
        Evidence { summaries, records, elsewhere: false }
    }

    fn mark(id: u32) -> Mark {
        Mark { id: Some(id), ..Mark::filling(1, 1) }
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
        let all = evidence(&summaries, &[]);
        let history = all.of(&here, "sbtest1", &mark(0x5f));
        assert_eq!((history.steps, history.k_added, history.updates), (2, 10, 10));
        assert!(history.custom);
        let own = Evidence { summaries: &summaries[..1], ..all };
        assert!(!own.of(&here, "sbtest1", &mark(0x5f)).custom, "whatever its title");
        assert!(history.unknown.is_empty());
        assert_eq!(all.of(&here, "sbtest1", &mark(0x60)), History::default(), "filled again");
        assert_eq!(all.of(&here, "sbtest2", &mark(0x5f)), History::default());
        let names = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(n, i)| ((*n).to_owned(), (*i).to_owned())).collect()
        };
        assert_eq!(all.strangers(&names(&[("sbtest1", "5f"), ("sbtest2", "60")])), 0);
        assert_eq!(all.strangers(&names(&[("sbtest1", "5f"), ("sbtest2", "61")])), 2);
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
        let history = evidence(&[&told], &[]).of(&here, "sbtest1", &mark(0x5f));
        let says = "step aa-1 (point-select) wrote what its ledger does not tell: 'UPDATE' gives";
        assert!(history.unknown[0].starts_with(says), "{:?}", history.unknown);
        told.workload.unfollowed = None;
        assert_eq!(evidence(&[&told], &[]).of(&here, "sbtest1", &mark(0x5f)), History::default());
    }

    #[test]
    fn a_table_that_is_gone_is_missed_where_others_of_its_step_are_left() {
        let step = step(1, "db1");
        let here = here();
        let steps = [&step];
        let all = evidence(&steps, &[]);
        let names = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(n, i)| ((*n).to_owned(), (*i).to_owned())).collect()
        };
        let missing = all.missing(&here, &names(&[("sbtest1", "5f")]));
        assert_eq!(missing.into_iter().collect::<Vec<_>>(), names(&[("sbtest2", "aa-1")]));
        for known in [&[("sbtest1", "5f"), ("sbtest2", "61")][..], &[("sbtest1", "77")]] {
            assert!(all.missing(&here, &names(known)).is_empty(), "prepared again: {known:?}");
        }
        let copy = Place { hostname: Some("db2".to_owned()), ..Place::default() };
        assert!(all.missing(&copy, &names(&[("sbtest1", "5f")])).is_empty(), "of a part alone");
        let tables = names(&[("sbtest1", "5f"), ("sbtest3", "62")]).into_iter().collect();
        let record = Record::new("aa-2".into(), "update-index".into(), true, here.clone(), tables);
        let records = [("aa-2-00000000".to_owned(), record)];
        let killed = Evidence { records: &records, ..all };
        assert!(killed.missing(&here, &names(&[("sbtest1", "5f")])).contains_key("sbtest3"));
    }

    #[test]
    fn a_copy_of_the_data_has_another_history() {
        let steps = [step(1, "db1"), step(2, "db2")];
        let summaries: Vec<&Summary> = steps.iter().collect();
        let here = here();
        let all = evidence(&summaries, &[]);
        assert!(
            all.of(&here, "sbtest1", &mark(0x5f)).unknown[0].contains("step aa-2 wrote to a copy")
        );
        let moved = Evidence { elsewhere: true, ..all };
        assert!(moved.of(&here, "sbtest1", &mark(0x5f)).unknown.is_empty());
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
        let known = evidence(&summaries, &records[..1]);
        assert!(known.of(&nowhere, "sbtest1", &mark(0x5f)).unknown.is_empty());
        let killed = evidence(&summaries, &records);
        let history = killed.of(&nowhere, "sbtest1", &mark(0x5f));
        assert_eq!((history.unknown.len(), history.custom), (1, true));
        assert!(
            killed.of(&nowhere, "sbtest2", &mark(0x60)).unknown.is_empty(),
            "it did not write to that"
        );
        assert!(
            killed.of(&nowhere, "sbtest1", &mark(0x77)).unknown.is_empty(),
            "nor since it was filled again"
        );
    }
}
