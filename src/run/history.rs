//! The data of a server: those that are known, and the steps that wrote to them. A description of data begins with
//! their kind: the schema of tables, or a script.

use crate::workload::Schema;

pub(super) struct History {
    /// Steps that wrote to any of the data since these were filled; None if unknown.
    written_by: Option<Vec<String>>,
    held: Vec<String>,
    /// Data that these steps did not write to.
    clean: Vec<String>,
}

impl History {
    pub(super) fn new(written_by: Option<Vec<String>>, held: Vec<String>) -> Self {
        History { written_by, held, clean: Vec::new() }
    }

    pub(super) fn written_by(&self) -> Option<&[String]> {
        self.written_by.as_deref()
    }

    pub(super) fn held(&self) -> &[String] {
        &self.held
    }

    /// Returns whether nothing wrote to these data since they were filled.
    pub(super) fn is_clean(&self, wanted: &str) -> bool {
        self.written_by.as_ref().is_some_and(Vec::is_empty) || has(&self.clean, wanted)
    }

    /// Returns whether tables of other rows are in the place of these, such as those of another run.
    pub(super) fn has_other(&self, wanted: &str) -> bool {
        has_other(&self.held, wanted)
    }

    fn are_all_clean(&self) -> bool {
        self.held.iter().all(|held| self.is_clean(held))
    }

    /// Returns the steps that wrote to the data of a run; `are_all` if it uses these alone.
    pub(super) fn writers(&self, used: &[String], are_all: bool) -> Option<Vec<String>> {
        let is_clean = !used.is_empty()
            && used.iter().all(|used| self.is_clean(used))
            && (are_all || self.are_all_clean());
        if is_clean { Some(Vec::new()) } else { self.written_by.clone() }
    }

    /// Notes data, in place of others of their kind.
    pub(super) fn hold(&mut self, held: String) {
        add(&mut self.held, held);
    }

    /// Notes that data were filled anew. If no data but those held can be there (`knows_all`) and all are clean,
    /// the writers are forgotten.
    pub(super) fn renew(&mut self, filled: String, knows_all: bool) {
        add(&mut self.held, filled.clone());
        add(&mut self.clean, filled);
        if knows_all && self.are_all_clean() {
            self.written_by = Some(Vec::new());
        }
    }

    /// Notes a step that wrote: to tables of one schema, if that is known, or to any data.
    pub(super) fn add_writer(&mut self, title: &str, only: Option<Schema>) {
        if self.written_by.as_ref().is_some_and(Vec::is_empty) {
            self.clean.clone_from(&self.held);
        }
        self.clean.retain(|data| only.is_some_and(|schema| !is_of(data, schema.prefix())));
        let known = self.written_by.get_or_insert_default();
        if !known.iter().any(|known| known == title) {
            known.push(title.to_owned());
        }
    }
}

/// Returns whether two descriptions are of data of one kind.
pub(super) fn is_of(held: &str, other: &str) -> bool {
    held.split(' ').next() == other.split(' ').next()
}

/// Splits a description of tables into their number and the rest.
fn split_tables(data: &str) -> Option<(u32, &str)> {
    let (count, rest) = data.split_once(' ')?.1.split_once(" x ")?;
    Some((count.parse().ok()?, rest))
}

/// Returns whether these data are among all: fewer tables of the same rows are, too.
pub(super) fn has(all: &[String], wanted: &str) -> bool {
    all.iter().filter(|known| is_of(known, wanted)).any(|known| {
        match (split_tables(known), split_tables(wanted)) {
            (Some((count, rest)), Some((fewer, same))) => rest == same && fewer <= count,
            _ => known == wanted,
        }
    })
}

/// Returns whether tables of this kind are among all that have other rows.
pub(super) fn has_other(all: &[String], wanted: &str) -> bool {
    let rest = |data: &str| split_tables(data).map(|(_, rest)| rest.to_owned());
    all.iter().any(|known| is_of(known, wanted) && rest(known) != rest(wanted))
}

/// Adds data in place of others of their kind, unless they are there.
pub(super) fn add(all: &mut Vec<String>, data: String) {
    if !has(all, &data) {
        all.retain(|known| !is_of(known, &data));
        all.push(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SBTEST: &str = "sbtest 4 x 100 rows, seed 1, -";
    const MORE: &str = "sbtest 8 x 100 rows, seed 1, -";
    const PHPTEST: &str = "phptest 4 x 100 rows, seed 1, -";
    const SCRIPT: &str = "script:tpcc.lua scale=1, texts , file 00";

    fn held(written_by: Option<Vec<String>>, data: &[&str]) -> History {
        History::new(written_by, data.iter().map(|&data| data.to_owned()).collect())
    }

    fn writers(history: &History, used: &str, are_all: bool) -> Option<Vec<String>> {
        history.writers(&[used.to_owned()], are_all)
    }

    #[test]
    fn tables_of_one_kind_stay_clean_when_a_step_writes_to_those_of_another() {
        let mut history = held(Some(Vec::new()), &[SBTEST, PHPTEST]);
        history.add_writer("update-index", Some(Schema::Sbtest));
        assert!(!history.is_clean(SBTEST) && history.is_clean(PHPTEST));
        assert_eq!(writers(&history, PHPTEST, true), Some(Vec::new()));
        let known = Some(vec!["update-index".to_owned()]);
        assert_eq!(writers(&history, PHPTEST, false), known, "it may use the others, too");
        // Filled again, they stay so until something writes again.
        history.renew(SBTEST.to_owned(), false);
        assert!(history.is_clean(SBTEST) && history.is_clean(PHPTEST));
        assert_eq!(writers(&history, PHPTEST, false), Some(Vec::new()));
        history.add_writer("update-index", Some(Schema::Sbtest));
        assert!(!history.is_clean(SBTEST) && history.is_clean(PHPTEST));
        // Nobody knows the tables of a script.
        history.add_writer("tpcc", None);
        assert!(!history.is_clean(SBTEST) && !history.is_clean(PHPTEST));
        assert_eq!(history.written_by(), Some(&["update-index".to_owned(), "tpcc".to_owned()][..]));
    }

    #[test]
    fn writers_are_forgotten_when_all_data_are_filled_again() {
        let mut history = held(Some(vec!["tpcc".to_owned()]), &[SBTEST, SCRIPT]);
        history.renew(SBTEST.to_owned(), true);
        assert!(history.is_clean(SBTEST) && !history.is_clean(SCRIPT));
        assert_eq!(history.written_by(), Some(&["tpcc".to_owned()][..]));
        history.hold("script:tpcc.lua (unfinished)".to_owned());
        history.renew(SCRIPT.to_owned(), true);
        assert_eq!(history.held(), [SBTEST, SCRIPT]);
        assert_eq!(history.written_by(), Some(&[][..]));
    }

    #[test]
    fn more_tables_stay_written_to_when_fewer_are_filled_again() {
        let mut history = held(Some(vec!["insert".to_owned()]), &[MORE]);
        history.renew(SBTEST.to_owned(), true);
        assert!(history.is_clean(SBTEST) && !history.is_clean(MORE));
        assert_eq!(history.held(), [MORE]);
        history.renew(MORE.to_owned(), true);
        assert!(history.is_clean(SBTEST) && history.is_clean(MORE));
        // Other rows replace those that were there.
        let other = SBTEST.replace("100", "200");
        assert!(history.has_other(&other) && !history.has_other(SBTEST));
        assert!(!history.has_other(PHPTEST));
        history.renew(other, true);
        assert!(history.has_other(SBTEST) && history.has_other(MORE));
        history.add_writer("insert", Some(Schema::Phptest));
        assert!(!history.is_clean(SBTEST) && !history.is_clean(MORE));
    }

    #[test]
    fn data_of_a_server_are_not_clean_when_their_history_is_unknown() {
        let mut history = held(None, &[]);
        assert_eq!(history.writers(&[], false), None);
        assert_eq!(writers(&history, SCRIPT, false), None);
        history.hold(SBTEST.to_owned());
        assert_eq!(writers(&history, SBTEST, true), None);
        history.renew(SBTEST.to_owned(), false);
        assert_eq!(writers(&history, SBTEST, true), Some(Vec::new()));
        assert!(!history.is_clean(PHPTEST), "it may be there");
    }
}
