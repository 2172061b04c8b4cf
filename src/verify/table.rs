//! One table: what is read of it, and what its rows are held against.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use mysql_async::{Row, Value};

use super::counts::{self, Index};
use super::history::History;
use super::verdict::Found;
use crate::error::Result;
use crate::mysql::control::{Asked, explain, one, rows};
use crate::mysql::session::Session;
use crate::workload::Schema;
use crate::workload::rows::Filler;
use crate::workload::rows::{PAD_LEN, Rows, is_digits, proves};
use crate::workload::table::{Mark, State, quoted};

const PASSWORD: (&str, usize) = ("password", 32);

/// A table that prepare made, and what is known of it.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: Schema,
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) mark: Mark,
    pub(super) history: History,
    /// The rows' own first.
    pub(super) indexes: Vec<Index>,
}

/// The indexes of the tables of a kind, each table's own rows first.
pub(super) async fn indexes(
    session: &mut Session,
    schema: Schema,
) -> Result<BTreeMap<u32, Vec<Index>>> {
    let sql = format!(
        "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS \
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE '{}%' AND INDEX_TYPE = 'BTREE' \
         AND SEQ_IN_INDEX = 1 AND INDEX_NAME <> 'PRIMARY'",
        schema.prefix()
    );
    let rows = rows::<3>(session, &sql).await.map_err(|f| explain(&f, "list the indexes"))?;
    let mut indexes: BTreeMap<u32, Vec<Index>> = BTreeMap::new();
    for [table, name, column] in rows {
        // An index on an expression has no column.
        let k = column.is_some_and(|column| column.eq_ignore_ascii_case("k"));
        if let (Some(number), Some(name)) = (table.and_then(|t| schema.number(&t)), name) {
            indexes.entry(number).or_default().push(Index { name, k });
        }
    }
    Ok(indexes)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Filled,
    /// Another one that loadgen makes.
    Rewritten,
    Wrong,
}

impl Table {
    /// `indexes` without that of the rows themselves.
    pub(super) fn new(
        schema: Schema,
        number: u32,
        mark: Mark,
        indexes: Vec<Index>,
        history: History,
    ) -> Table {
        let primary = Index { name: "PRIMARY".to_owned(), k: has_k(schema) };
        let indexes = std::iter::once(primary).chain(indexes).collect();
        Table { schema, number, name: schema.name(number), mark, history, indexes }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.mark.state == State::Ready
    }

    /// Sums the `k` that the rows of these ids were filled with.
    pub(super) fn k_start(&self, first: u64, last: u64) -> i128 {
        if self.schema != Schema::Sbtest {
            return 0;
        }
        let rows = Rows::new(self.mark.seed, self.number, self.mark.rows);
        (first..=last).map(|id| i128::from(rows.k(id))).sum()
    }

    /// Asks for the greatest id that there is of those that prepare filled; 0 without any. Whatever the
    /// mark says, there is nothing to read beyond it.
    pub(super) async fn last(&self, session: &mut Session) -> Asked<u64> {
        let greatest = one(session, &format!("SELECT MAX(id) FROM {}", quoted(&self.name))).await?;
        Ok(counts::number(greatest.as_deref())?.clamp(0, i128::from(self.mark.rows)) as u64)
    }

    pub(super) async fn read(
        &self,
        session: &mut Session,
        range: &str,
        read: &AtomicU64,
        found: &mut Found,
    ) -> Asked<()> {
        let columns = self.schema.columns().join(", ");
        let sql = format!("SELECT {columns} FROM {} WHERE {range}", quoted(&self.name));
        let mut judge = Contents::new(self);
        found.k = has_k(self.schema).then_some(0);
        session
            .read(&sql, |row| {
                read.fetch_add(1, Ordering::Relaxed);
                judge.take(&row, found);
            })
            .await
    }
}

fn has_k(schema: Schema) -> bool {
    schema != Schema::Phptest
}

/// Holds the rows of a table against what they must be.
struct Contents<'a> {
    table: &'a Table,
    /// Whether all that wrote to it since is known, and built in.
    known: bool,
    inserted: bool,
    rows: Rows,
    filler: Option<Filler>,
    line: Vec<u8>,
}

impl Contents<'_> {
    fn new(table: &Table) -> Contents<'_> {
        let Table { schema, number, mark: Mark { seed, rows, .. }, ref history, .. } = *table;
        let inserts = [history.inserts, history.doubt.rows_added, history.doubt.rows_unknown];
        Contents {
            table,
            known: history.unknown.is_empty() && !history.custom,
            inserted: inserts.iter().any(|n| *n > 0),
            rows: Rows::new(seed, number, rows),
            filler: Filler::new(schema, seed, number, rows),
            line: Vec::new(),
        }
    }

    fn take(&mut self, row: &Row, found: &mut Found) {
        found.rows += 1;
        let id = number(row, 0).and_then(|id| u64::try_from(id).ok());
        if let Some(k) = &mut found.k {
            *k += i128::from(number(row, 1).unwrap_or(0));
        }
        let Some(id) = id.filter(|id| (1..=self.table.mark.rows).contains(id)) else {
            found.strange += u64::from(self.known && !self.is_inserted(id, row));
            return;
        };
        found.filled += 1;
        let content = match self.table.schema {
            Schema::Sbtest => {
                let filled = self.rows.row(id);
                found.k_filled += i128::from(filled.k);
                self.of_sbtest(id, (&filled.c, &filled.pad), (text(row, 2), text(row, 3)))
            }
            Schema::Phptest => self.of_phptest(id, row),
            // Those are empty when they are made.
            Schema::Bulk => Content::Filled,
        };
        match content {
            Content::Filled => {}
            Content::Rewritten => found.rewritten += u64::from(self.known),
            Content::Wrong => found.is_wrong(id),
        }
    }

    /// A `c` proves itself, whoever set it. Only what is built in is known to set no other `pad`.
    /// Both are given as they were filled, and as they are.
    fn of_sbtest(&self, id: u64, filled: (&[u8], &[u8]), own: (&[u8], &[u8])) -> Content {
        if own == filled {
            return Content::Filled;
        }
        let (c, pad) = own;
        let pad_is_right = pad == filled.1 || !self.known || is_pad(pad);
        if self.proves(id, c, self.inserted) && pad_is_right {
            Content::Rewritten
        } else {
            Content::Wrong
        }
    }

    /// Where AUTO_INCREMENT gives the id, `c` was made before anybody knew it. Servers that forget
    /// their counter when they stop go on behind the greatest id that is left, a filled one's too.
    fn proves(&self, id: u64, c: &[u8], inserted: bool) -> bool {
        let proves = |id| proves(self.table.number, id, c);
        proves(id) || (inserted && proves(0))
    }

    /// Nothing proves itself: as it was filled, but for what the two updates set.
    fn of_phptest(&mut self, id: u64, row: &Row) -> Content {
        let Some(filler) = self.filler.filter(|_| self.known) else {
            return Content::Filled;
        };
        self.line.clear();
        filler.line(&mut self.line, id);
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let mut content = Content::Filled;
        let columns =
            self.table.schema.columns().into_iter().zip(line.split(|byte| *byte == b'\t'));
        for (at, (column, filled)) in columns.enumerate() {
            let own = field(row, at);
            if own == filled {
                continue;
            }
            if column != PASSWORD.0 || own.len() != PASSWORD.1 || !is_digits(own) {
                return Content::Wrong;
            }
            content = Content::Rewritten;
        }
        // One write in doubt may have set it in any number of rows.
        if self.table.history.in_doubt > 0 { Content::Filled } else { content }
    }

    /// Whether a workload inserts such a row, with an id that none was filled with.
    fn is_inserted(&self, id: Option<u64>, row: &Row) -> bool {
        let Some(id) = id else { return false };
        match self.table.schema {
            Schema::Sbtest => self.proves(id, text(row, 2), true) && is_pad(text(row, 3)),
            Schema::Bulk => field(row, 0) == field(row, 1),
            Schema::Phptest => false,
        }
    }
}

fn is_pad(pad: &[u8]) -> bool {
    pad.len() == PAD_LEN
        && pad.chunks(12).all(|group| match group.split_at_checked(11) {
            Some((digits, rest)) => is_digits(digits) && matches!(rest, [] | [b'-']),
            None => false,
        })
}

impl Found {
    fn is_wrong(&mut self, id: u64) {
        self.wrong += 1;
        self.first_wrong = Some(self.first_wrong.map_or(id, |first| first.min(id)));
    }

    pub(super) fn add(&mut self, part: &Found) {
        self.rows += part.rows;
        self.filled += part.filled;
        self.k = match (self.k, part.k) {
            (Some(sum), Some(k)) => Some(sum + k),
            (sum, k) => sum.or(k),
        };
        self.k_filled += part.k_filled;
        self.k_start += part.k_start;
        self.wrong += part.wrong;
        self.first_wrong = self.first_wrong.into_iter().chain(part.first_wrong).min();
        self.rewritten += part.rewritten;
        self.strange += part.strange;
    }
}

fn field(row: &Row, column: usize) -> &[u8] {
    match row.as_ref(column) {
        Some(Value::Bytes(bytes)) => bytes,
        _ => &[],
    }
}

/// Some SQL modes pad what they return.
fn text(row: &Row, column: usize) -> &[u8] {
    field(row, column).trim_ascii_end()
}

fn number(row: &Row, column: usize) -> Option<i64> {
    std::str::from_utf8(field(row, column)).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Doubt;
    use crate::workload::rows::{pad, proven};

    #[test]
    fn an_inserted_row_may_have_the_id_of_a_filled_one() {
        let mark = Mark::ready(7, 100, None);
        let of =
            |history: &History| Table::new(Schema::Sbtest, 1, mark, Vec::new(), history.clone());
        let inserted = History { inserts: 1, ..History::default() };
        let filled = Rows::new(7, 1, 100).row(100);
        let filled = (&filled.c[..], &filled.pad[..]);
        let content = |history: &History, c: &[u8]| {
            Contents::new(&of(history)).of_sbtest(100, filled, (c, &pad(|| 5)))
        };
        // Of no id, for AUTO_INCREMENT gives it.
        let free = proven(1, 0, || 9);
        assert_eq!(content(&inserted, &free), Content::Rewritten);
        assert_eq!(content(&History::default(), &free), Content::Wrong, "nobody inserted");
        assert_eq!(content(&inserted, &proven(1, 99, || 9)), Content::Wrong);
        let doubt = Doubt { rows_added: 1, ..Doubt::default() };
        let maybe = History { in_doubt: 1, doubt, ..History::default() };
        assert_eq!(content(&maybe, &free), Content::Rewritten);
    }

    #[test]
    fn a_pad_is_five_groups_of_digits() {
        let mut pad = pad(|| 7_777_777_777_777_777_777);
        assert!(is_pad(&pad));
        for (at, byte) in [(0, b'x'), (11, b'0'), (58, b'-')] {
            let before = std::mem::replace(&mut pad[at], byte);
            assert!(!is_pad(&pad), "{at}");
            pad[at] = before;
        }
        assert!(!is_pad(&pad[..58]) && !is_pad(b""));
    }
}
