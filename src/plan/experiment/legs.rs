//! Cells in groups that share a server and its data.

use super::{Cell, Experiment};

/// Cells of one part on one subject in one repeat: one sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leg {
    /// Position of the subject.
    pub subject: usize,
    /// Position of the part.
    pub part: usize,
    /// From 1.
    pub repeat: u32,
    /// Positions of its cells.
    pub cells: Vec<usize>,
    /// Whether the server is taken anew: another label, another repeat (unless the experiment
    /// leaves it running), or data that was written to and can be brought back.
    pub fresh: bool,
    /// Parts that wrote to the data since the server was taken anew, by title.
    pub written_by: Vec<String>,
}

impl Experiment {
    /// The legs of the cells that are wanted, in the order of execution.
    pub(crate) fn legs(&self, wanted: impl Fn(&Cell) -> bool) -> Vec<Leg> {
        let mut legs: Vec<Leg> = Vec::new();
        for (at, cell) in self.cells.iter().enumerate().filter(|(_, cell)| wanted(cell)) {
            if let Some(last) = legs.last_mut()
                && (last.subject, last.repeat, last.part) == (cell.subject, cell.repeat, cell.part)
            {
                last.cells.push(at);
                continue;
            }
            let mut leg = Leg {
                subject: cell.subject,
                part: cell.part,
                repeat: cell.repeat,
                cells: vec![at],
                fresh: true,
                written_by: Vec::new(),
            };
            if let Some(last) = legs.last()
                && last.subject == cell.subject
                && (last.repeat == cell.repeat || !self.restart)
            {
                let mut written_by = last.written_by.clone();
                if let Some(part) = self.parts.get(last.part).filter(|part| part.writes()) {
                    written_by.push(part.title.clone());
                }
                let renews = self.subjects.get(cell.subject).is_some_and(super::Subject::renews);
                leg.fresh = renews && !written_by.is_empty();
                leg.written_by = if leg.fresh { Vec::new() } else { written_by };
            }
            legs.push(leg);
        }
        legs
    }
}
