//! Which rows are filled by whom and when. Pure: numbers in, numbers out.
//!
//! A table is filled in chunks of ids, each in one transaction. Chunks are dealt out one at
//! a time, so memory does not grow with the rows, and a chunk is what an interruption costs.

/// Rows of a chunk at most: below the transaction limits of Galera (131,072 rows in old
/// versions) and Group Replication (150 MB), and about half a second of one connection.
const ROWS_MAX: u64 = 100_000;
/// Rows of a chunk at least: below this the round trips and commits begin to show.
const ROWS_MIN: u64 = 5_000;
/// Chunks a connection should get, so that all end at about the same time.
const CHUNKS_A_JOB: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Its table's place in the list that the [`Chunks`] were made for.
    pub(super) slot: usize,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Chunk {
    pub(super) fn rows(&self) -> u64 {
        self.last - self.first + 1
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Fill these rows.
    Fill(Chunk),
    /// All rows of this table are in: build its index, check it, mark it.
    Finish(usize),
}

/// Decides the rows of a chunk for so many tables of so many rows, filled by so many connections.
pub(super) fn chunk_rows(tables: u64, rows: u64, jobs: u64) -> u64 {
    (tables * rows / (jobs * CHUNKS_A_JOB)).clamp(ROWS_MIN, ROWS_MAX)
}

/// A table that is begun and not given to be finished.
struct Begun {
    slot: usize,
    given: u64,
    /// Chunks dealt out and not done: as many connections are at work on the table.
    open: u32,
}

/// Who fills what. A connection keeps to a table while it has chunks (rows come in order of
/// the key, and the index is built while the pages are still cached), then takes a fresh
/// table, then helps with another.
pub(super) struct Chunks {
    tables: usize,
    rows: u64,
    chunk_rows: u64,
    /// Connections at most on one table.
    crowd: u32,
    /// Slots from here on are untouched.
    fresh: usize,
    /// Never more than there are connections.
    begun: Vec<Begun>,
}

impl Chunks {
    pub(super) fn new(tables: usize, rows: u64, chunk_rows: u64, crowd: u32) -> Chunks {
        Chunks { tables, rows, chunk_rows, crowd, fresh: 0, begun: Vec::new() }
    }

    /// Deals out work to a connection whose last chunk was of slot `mine`; None when nothing is left
    /// that it could do.
    pub(super) fn next(&mut self, mine: Option<usize>) -> Option<Task> {
        let chunks = self.rows.div_ceil(self.chunk_rows);
        if let Some(at) = self.begun.iter().position(|it| it.open == 0 && it.given == chunks) {
            return Some(Task::Finish(self.begun.swap_remove(at).slot));
        }
        let room = |it: &&mut Begun| it.given < chunks && it.open < self.crowd;
        let table = match self.begun.iter_mut().filter(room).find(|it| Some(it.slot) == mine) {
            Some(own) => own,
            None if self.fresh < self.tables => {
                self.begun.push(Begun { slot: self.fresh, given: 0, open: 0 });
                self.fresh += 1;
                self.begun.last_mut()?
            }
            None => self.begun.iter_mut().filter(room).min_by_key(|it| it.open)?,
        };
        let first = table.given * self.chunk_rows + 1;
        table.given += 1;
        table.open += 1;
        let last = (first + self.chunk_rows - 1).min(self.rows);
        Some(Task::Fill(Chunk { slot: table.slot, first, last }))
    }

    pub(super) fn done(&mut self, chunk: Chunk) {
        let table = self.begun.iter_mut().find(|it| it.slot == chunk.slot);
        table.expect("a table is begun while a chunk of it is open").open -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::table::{ROWS_MAX as TABLE_ROWS_MAX, TABLES_MAX};

    /// Deals chunks out to connections that each finish their task in turn.
    fn play(chunks: &mut Chunks, jobs: usize) -> Vec<Task> {
        let mut at: Vec<Option<Task>> = vec![None; jobs];
        let mut mine = vec![None; jobs];
        let mut log = Vec::new();
        loop {
            let mut idle = true;
            for job in 0..jobs {
                if let Some(Task::Fill(chunk)) = at[job].take() {
                    mine[job] = Some(chunk.slot);
                    chunks.done(chunk);
                }
                at[job] = chunks.next(mine[job]);
                log.extend(at[job]);
                idle &= at[job].is_none();
            }
            if idle {
                return log;
            }
        }
    }

    fn check_complete(log: &[Task], tables: usize, rows: u64) {
        for table in 0..tables {
            let mut chunks: Vec<Chunk> = log
                .iter()
                .filter_map(|t| match t {
                    Task::Fill(c) if c.slot == table => Some(*c),
                    _ => None,
                })
                .collect();
            chunks.sort_by_key(|c| c.first);
            let mut next = 1;
            for chunk in chunks {
                assert_eq!(chunk.first, next, "no gap and no overlap");
                next = chunk.last + 1;
            }
            assert_eq!(next, rows + 1);
            let at = |wanted: &Task| log.iter().filter(|t| *t == wanted).count();
            assert_eq!(at(&Task::Finish(table)), 1);
        }
    }

    #[test]
    fn every_row_is_filled_once_and_every_table_finished_once() {
        for tables in [1, 2, 3, 8] {
            for jobs in [1, 2, 3, 5, 16] {
                for rows in [1, 9, 10, 11, 100, 101] {
                    for crowd in [1, 2, u32::MAX] {
                        let mut chunks = Chunks::new(tables, rows, 10, crowd);
                        check_complete(&play(&mut chunks, jobs), tables, rows);
                    }
                }
            }
        }
    }

    #[test]
    fn connections_spread_over_tables_and_keep_to_theirs() {
        let mut chunks = Chunks::new(4, 100, 10, u32::MAX);
        let tasks: Vec<_> = (0..6).filter_map(|_| chunks.next(None)).collect();
        let slots: Vec<usize> =
            tasks.iter().map(|t| if let Task::Fill(c) = t { c.slot } else { 99 }).collect();
        assert_eq!(slots[..4], [0, 1, 2, 3]);
        assert_ne!(slots[4], slots[5], "helpers spread too");
        let Some(Task::Fill(chunk)) = chunks.next(Some(2)) else { panic!("there is work") };
        assert_eq!(chunk.slot, 2);
    }

    #[test]
    fn no_more_connections_than_allowed_meet_in_a_table() {
        let mut chunks = Chunks::new(2, 1000, 10, 2);
        let given = (0..9).filter_map(|_| chunks.next(None)).count();
        assert_eq!(given, 4);
    }

    #[test]
    fn the_index_comes_before_other_tables_and_after_the_last_open_chunk() {
        let mut chunks = Chunks::new(2, 20, 10, u32::MAX);
        let (Some(Task::Fill(a)), Some(Task::Fill(other))) = (chunks.next(None), chunks.next(None))
        else {
            panic!("two tables")
        };
        let Some(Task::Fill(b)) = chunks.next(Some(a.slot)) else { panic!("a second chunk") };
        assert_eq!(b.slot, a.slot);
        chunks.done(b);
        assert!(!matches!(chunks.next(Some(other.slot)), Some(Task::Finish(_))), "a is open");
        chunks.done(a);
        assert_eq!(chunks.next(Some(a.slot)), Some(Task::Finish(a.slot)));
    }

    #[test]
    fn ten_billion_rows_in_every_table_take_no_memory() {
        let tables = u64::from(TABLES_MAX);
        let chunk = chunk_rows(tables, TABLE_ROWS_MAX, 16);
        assert_eq!(chunk, ROWS_MAX);
        let mut chunks = Chunks::new(TABLES_MAX as usize, TABLE_ROWS_MAX, chunk, 1);
        let mut last = 0;
        for _ in 0..TABLE_ROWS_MAX.div_ceil(chunk) {
            let Some(Task::Fill(c)) = chunks.next(Some(0)) else { panic!("more chunks") };
            last = c.last;
            chunks.done(c);
        }
        assert_eq!(last, TABLE_ROWS_MAX);
        assert_eq!(chunks.next(Some(0)), Some(Task::Finish(0)));
        assert!(matches!(chunks.next(Some(0)), Some(Task::Fill(c)) if c.slot == 1));
    }

    #[test]
    fn chunks_shrink_so_that_every_connection_has_work() {
        assert_eq!(chunk_rows(8, 200_000, 4), 50_000);
        assert_eq!(chunk_rows(1, 200_000, 4), 6_250);
        assert_eq!(chunk_rows(1, 10_000, 4), 5_000);
        assert_eq!(chunk_rows(1, 1, 1), ROWS_MIN);
    }
}
