//! What is to be done with the tables, piece by piece.

use std::collections::VecDeque;

/// Ids of a chunk.
const CHUNK: std::ops::RangeInclusive<u64> = 10_000..=1_000_000;

/// Of the table at this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// What the server counts and sums by each index.
    Count(usize),
    /// Rows of these ids.
    Rows(usize, u64, u64),
    /// Rows of the ids that prepare filled none with.
    Others(usize),
    /// Whether it still counts the same.
    Again(usize),
}

impl Task {
    pub(super) fn slot(self) -> usize {
        let (Task::Count(slot) | Task::Rows(slot, ..) | Task::Others(slot) | Task::Again(slot)) =
            self;
        slot
    }
}

/// Tasks that wait. Rows of a table are one of them, of which chunks are cut when somebody asks:
/// a mark may speak of any number of rows.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    list: VecDeque<Task>,
    /// Ids of a chunk; 0 where there are none.
    chunk: u64,
}

impl Tasks {
    /// One for each table.
    pub(super) fn whole(tasks: impl Iterator<Item = Task>) -> Tasks {
        Tasks { list: tasks.collect(), chunk: 0 }
    }

    /// All rows of tables, given with their greatest ids, for so many connections.
    pub(super) fn chunks(tables: &[(usize, u64)], jobs: u64) -> Tasks {
        let all = tables.iter().fold(0_u64, |sum, (_, last)| sum.saturating_add(*last));
        let chunk = (all / jobs.saturating_mul(8).max(1)).clamp(*CHUNK.start(), *CHUNK.end());
        let rows = |(slot, last): &(usize, u64)| {
            let filled = (*last > 0).then_some(Task::Rows(*slot, 1, *last));
            filled.into_iter().chain([Task::Others(*slot)])
        };
        Tasks { list: tables.iter().flat_map(rows).collect(), chunk }
    }

    pub(super) fn next(&mut self) -> Option<Task> {
        let task = self.list.pop_front()?;
        let Task::Rows(slot, first, last) = task else { return Some(task) };
        let next = first.saturating_add(self.chunk);
        if next > last {
            return Some(task);
        }
        self.list.push_front(Task::Rows(slot, next, last));
        Some(Task::Rows(slot, first, next - 1))
    }

    /// How often there is a next one.
    pub(super) fn left(&self) -> u64 {
        let pieces = |task: &Task| match task {
            Task::Rows(_, first, last) => (last - first) / self.chunk.max(1) + 1,
            Task::Count(_) | Task::Others(_) | Task::Again(_) => 1,
        };
        self.list.iter().map(pieces).fold(0, u64::saturating_add)
    }

    /// That, in words.
    pub(super) fn waiting(&self) -> String {
        format!("{} {} wait", self.left(), if self.chunk > 0 { "chunks" } else { "tables" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_cut_as_they_are_taken_and_cover_all_ids() {
        let mut tasks = Tasks::chunks(&[(0, 25_000), (2, 0), (5, 20_000)], 4);
        assert_eq!((tasks.left(), tasks.list.len()), (8, 5));
        assert_eq!(tasks.waiting(), "8 chunks wait");
        let mut taken = Vec::new();
        while let Some(task) = tasks.next() {
            taken.push(task);
            assert_eq!(tasks.left() + taken.len() as u64, 8);
        }
        let expected = [
            Task::Rows(0, 1, 10_000),
            Task::Rows(0, 10_001, 20_000),
            Task::Rows(0, 20_001, 25_000),
            Task::Others(0),
            Task::Others(2),
            Task::Rows(5, 1, 10_000),
            Task::Rows(5, 10_001, 20_000),
            Task::Others(5),
        ];
        assert_eq!(taken, expected);
    }

    #[test]
    fn a_mark_that_speaks_of_any_number_of_rows_fills_no_memory() {
        let mut tasks = Tasks::chunks(&[(0, u64::MAX), (1, u64::MAX)], 16);
        assert_eq!(tasks.next(), Some(Task::Rows(0, 1, 1_000_000)));
        assert_eq!(tasks.list.len(), 4);
        assert!(tasks.left() > 1_000_000_000);
    }

    #[test]
    fn tables_that_wait_are_no_chunks() {
        let mut tasks = Tasks::whole((0..3).map(Task::Again));
        assert_eq!(tasks.next(), Some(Task::Again(0)));
        assert_eq!((tasks.left(), tasks.waiting().as_str()), (2, "2 tables wait"));
    }
}
