//! The record of a step that writes, from before its first write to its durable summary.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::engine::Tables;
use crate::error::Result;
use crate::summary::{Place, Record, Recorded, Server, Store, Summary};

/// See the module.
pub(super) struct Begin<'a> {
    store: &'a Store,
    /// Tables' names and identities, where they have one.
    tables: BTreeMap<String, String>,
    record: Option<Record>,
    made: RefCell<Option<Recorded>>,
}

impl<'a> Begin<'a> {
    /// `ids` are the identities of the first tables, in order: none of a step that writes nothing.
    pub(super) fn new(store: &'a Store, tables: Tables, ids: &[Option<u32>]) -> Begin<'a> {
        let name = |number: u32| tables.schema.name(number);
        // As in the table's COMMENT.
        let known = (1..).zip(ids).filter_map(|(n, id)| id.map(|id| (name(n), format!("{id:x}"))));
        Begin { store, tables: known.collect(), record: None, made: RefCell::default() }
    }

    /// What the record says of a step; `what` it does is for people.
    pub(super) fn of(
        mut self,
        step_id: String,
        what: String,
        built_in: bool,
        server: &Server,
    ) -> Begin<'a> {
        let place = Place::of(&server.variables, server.database.as_deref());
        let tables = self.tables.clone();
        let record = || Record::new(step_id, what, built_in, place, tables);
        self.record = (!self.tables.is_empty()).then(record);
        self
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
