//! Pages: one or more sheets of values with their title, conditions and notes, which every layout makes.

use serde_json::{Map, Value as Json};

use super::columns::Sheet;
use super::options::Notes;
use super::table::WorkloadTable;
use super::{note, notes};

/// One or more tables under a title. People see the columns with a head, files those with a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    pub title: Vec<String>,
    pub title_below: bool,
    pub sheets: Vec<Sheet>,
    pub below: Vec<String>,
    pub conditions: Conditions,
    pub notes: Vec<String>,
}

/// The conditions of a page's tables, and the same with all that `--notes` shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    pub short: Vec<String>,
    pub full: Vec<String>,
}

impl Page {
    pub(crate) fn new(title: String, sheet: Sheet, below: Vec<String>) -> Page {
        Page { title: vec![title], sheets: vec![sheet], below, ..Page::default() }
    }

    pub(crate) fn footed(mut self, table: &WorkloadTable) -> Page {
        self.below.extend(notes::below(table));
        self.conditions.short.extend(notes::conditions_in_short(table));
        self.conditions.full.extend(notes::conditions_in_full(table));
        self.notes.extend(note::in_full(&table.notes));
        self
    }

    pub(crate) fn visible_sheets(&self) -> impl Iterator<Item = &Sheet> {
        self.sheets.iter().filter(|sheet| sheet.visible_columns().next().is_some())
    }

    /// Lists the lines below a page. A line that the next page has, too, stands there.
    pub(super) fn list_below(&self, notes: &Notes, next: Option<&Page>) -> Vec<String> {
        let all = |page: &Page| match notes {
            Notes::All => [&page.notes[..], &page.conditions.full, &page.below].concat(),
            Notes::Brief | Notes::Later => [&page.below[..], &page.conditions.short].concat(),
        };
        let (mut lines, next) = (all(self), next.map_or_else(Vec::new, all));
        lines.retain(|line| !next.contains(line));
        lines
    }
}

pub(crate) fn records(pages: &[Page]) -> Vec<Map<String, Json>> {
    let records = pages.iter().flat_map(|page| &page.sheets).flat_map(|sheet| {
        let record = |row: usize| {
            let filed = sheet.file_columns();
            let fields = filed.map(|(name, of)| (name.to_owned(), of.values[row].filed.clone()));
            fields.collect::<Map<_, _>>()
        };
        (0..sheet.rows).map(record).filter(|record| !record.is_empty())
    });
    records.collect()
}
