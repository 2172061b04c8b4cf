//! Footnotes: findings, and the cells that they are about.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Deref;

use crate::judge::Difference;
use crate::terms::{Cell, Finding, Rank, merge};

/// Stands at the numbers and labels that a note makes doubtful.
pub(crate) const MARK: &str = "*";

#[derive(Debug, Clone)]
pub(crate) struct Note {
    pub(crate) finding: Finding,
    pub(crate) text: String,
    /// Positions of the lines that it is about, and the columns in which it holds there.
    pub(crate) places: BTreeMap<usize, BTreeSet<Cell>>,
    pub(crate) differs: Vec<Difference>,
    /// It makes what it is about doubtful: that is marked.
    pub(crate) doubtful: bool,
}

/// The footnotes of a table in their order, and those of each line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Footnotes {
    all: Vec<Note>,
    of_lines: HashMap<usize, Vec<usize>>,
}

impl Deref for Footnotes {
    type Target = [Note];

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Footnotes {
    pub(super) fn new(all: Vec<Note>) -> Footnotes {
        let mut of_lines: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, note) in all.iter().enumerate() {
            for line in note.places.keys() {
                of_lines.entry(*line).or_default().push(at);
            }
        }
        Footnotes { all, of_lines }
    }

    pub(super) fn of_line(&self, line: usize) -> impl Iterator<Item = (usize, &Note)> {
        self.of_lines.get(&line).into_iter().flatten().map(|at| (*at, &self.all[*at]))
    }
}

/// Makes notes of what is found in steps: one of each code and group, by the first line.
pub(crate) fn grouped(found: impl IntoIterator<Item = (usize, Cell, Finding)>) -> Vec<Note> {
    // Its name and its group.
    type Kind = (String, Option<String>);
    let mut groups: BTreeMap<Kind, (Vec<Finding>, BTreeMap<_, BTreeSet<_>>)> = BTreeMap::new();
    for (at, column, finding) in found {
        let (name, beside) = finding.kind();
        let group = groups.entry((name.to_owned(), beside.map(str::to_owned))).or_default();
        group.0.push(finding);
        group.1.entry(at).or_default().insert(column);
    }
    let note = |(found, places): (Vec<Finding>, _)| Note {
        places,
        ..Note::new(merge(&found).swap_remove(0), [])
    };
    groups.into_values().map(note).collect()
}

impl Note {
    pub(super) fn new<'d>(
        finding: Finding,
        differs: impl IntoIterator<Item = &'d Difference>,
    ) -> Note {
        Note {
            text: finding.to_string(),
            places: BTreeMap::new(),
            differs: differs.into_iter().cloned().collect(),
            doubtful: finding.code().is_some_and(|code| code.rank() <= Rank::Doubt),
            finding,
        }
    }

    pub(crate) fn marks(&self, line: usize, column: Option<&Cell>) -> bool {
        let here = |columns: &BTreeSet<Cell>| column.is_none_or(|of| columns.contains(of));
        self.doubtful && self.places.get(&line).is_some_and(here)
    }
}

pub(crate) fn in_full(notes: &[Note]) -> Vec<String> {
    let line = |note: &Note| match note.finding.advice() {
        "" => format!("{MARK} {}", note.text),
        advice => format!("{MARK} {}; {advice}", note.text),
    };
    notes.iter().map(line).collect()
}
