//! The record of a step that writes, from before its first write to its durable summary.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::engine::{Identity, Tables};
use crate::error::{Error, Kind, Result, line};
use crate::plan::{Plan, Step};
use crate::summary::{self, Place, Record, Recorded, Store, Summary};
use crate::terms;

/// See the module.
pub(super) struct Begin<'a> {
    store: &'a Store,
    /// Tables' names and identities, where they have one.
    tables: BTreeMap<String, String>,
    record: Option<Record>,
    made: RefCell<Option<Recorded>>,
}

impl<'a> Begin<'a> {
    /// Makes ready what the record says. `ids` are the identities of the first tables, in order: none
    /// of a step that writes nothing, which leaves no record.
    pub(super) fn new(
        store: &'a Store,
        plan: &Plan,
        tables: Tables,
        ids: &[Option<u32>],
        identity: &Identity,
        step: &Step,
    ) -> Begin<'a> {
        let name = |number: u32| tables.schema.name(number);
        // As in the table's COMMENT.
        let known = (1..).zip(ids).filter_map(|(n, id)| id.map(|id| (name(n), format!("{id:x}"))));
        let tables: BTreeMap<String, String> = known.collect();
        let server = &identity.server;
        let place = Place::of(&server.variables, server.database.as_deref());
        let what = format!("{}, {}", plan.workload.name, terms::clients(step.clients));
        let id = identity.step_id(step);
        let mut record = Record::new(id, what, plan.workload.built_in, place, tables.clone());
        record.label = Some(identity.label.clone());
        let record = (!tables.is_empty()).then_some(record);
        Begin { store, tables, record, made: RefCell::default() }
    }

    /// Called before the first write.
    pub(super) fn first_write(&self) -> Result<()> {
        if let Some(record) = &self.record {
            *self.made.borrow_mut() = Some(self.store.begin(record)?);
        }
        Ok(())
    }

    /// Puts into a summary what verify needs.
    pub(super) fn sign(&self, summary: &mut Summary) {
        summary.record = self.made.borrow().as_ref().map(Recorded::name);
        for entry in &mut summary.ledger {
            entry.table_id = self.tables.get(&entry.table).cloned();
        }
    }

    /// The summary is durable.
    pub(super) fn settled(self) {
        if let Some(made) = self.made.into_inner() {
            made.superseded();
        }
    }
}

/// Steps in these directories that were begun and left no summary, a line each; with `latest` those
/// that began after all of their label.
pub(crate) fn unfinished(paths: &[PathBuf], steps: &[&Summary], latest: bool) -> Vec<String> {
    let dirs: Vec<PathBuf> = paths.iter().filter(|path| path.is_dir()).cloned().collect();
    let records = match summary::records(&dirs) {
        Ok(records) => records,
        Err(error) => return vec![error.to_string()],
    };
    let at = |text: &str| text.parse::<Timestamp>().ok();
    let counts = |record: &Record| {
        let of_label = |step: &&&Summary| record.label.as_ref().is_none_or(|l| *l == step.label);
        let newest = steps.iter().filter(of_label).filter_map(|step| at(&step.started_at)).max();
        let later = at(&record.begun_at).is_none_or(|begun| Some(begun) > newest);
        (!latest || later) && !steps.iter().any(|step| step.step_id == record.step_id)
    };
    let told = |record: &Record| {
        let label = record.label.as_ref().map_or_else(String::new, |label| format!(", {label}"));
        let what = line(&format!("{}{label}", record.what));
        format!("{what}: a step began at {} and left no summary", line(&record.begun_at))
    };
    records.iter().map(|(_, record)| record).filter(|record| counts(record)).map(told).collect()
}

/// Whether every step that was begun has a summary.
///
/// # Errors
///
/// Undecided: the others, by [`unfinished`].
pub(crate) fn decided(unfinished: &[String]) -> Result<()> {
    if unfinished.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::Undecided, unfinished.join("; "))
        .hint("its loadgen was killed, or is at work; without its .begun file it does not count"))
}
