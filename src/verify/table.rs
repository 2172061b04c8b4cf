//! One table: what is read of it, and what its rows are held against.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use mysql_async::{Row, Value};

use super::history::History;
use super::verdict::Found;
use crate::error::Result;
use crate::mysql::{Asked, Session, explain, rows};
use crate::workload::Schema;
use crate::workload::rows::{Filler, PAD_LEN, Rows, is_digits, proves};
use crate::workload::table::{Mark, State, quoted};

/// Digits that an update of phptest's sets as the password.
const PASSWORD_LEN: usize = 32;

/// Rows, and the sum of `k` where that is in the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) rows: u64,
    pub(super) k: Option<i128>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    /// Empty for whichever the server takes.
    pub(super) name: String,
    pub(super) k: bool,
}

impl Count {
    pub(super) fn agrees(&self, other: &Count) -> bool {
        let same_k = self.k.zip(other.k).is_none_or(|(one, other)| one == other);
        self.rows == other.rows && same_k
    }

    pub(super) fn differs_by(&self, other: &Count) -> u64 {
        self.rows.abs_diff(other.rows).max(1)
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows", self.rows)?;
        self.k.map_or(Ok(()), |k| write!(f, " with a sum of k of {k}"))
    }
}

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

/// Lists the indexes of the tables of a kind, but for that of the rows themselves.
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

pub(super) fn has_k(schema: Schema) -> bool {
    schema != Schema::Phptest
}

/// Holds the rows of a table against what they must be.
struct Contents<'a> {
    table: &'a Table,
    columns: Vec<&'static str>,
    /// Whether all that wrote to it since is known, and built in.
    known: bool,
    inserted: bool,
    /// None where tables are empty when they are made.
    filler: Option<Filler>,
    line: Vec<u8>,
}

impl Contents<'_> {
    fn new(table: &Table) -> Contents<'_> {
        let Table { schema, number, mark: Mark { seed, rows, .. }, ref history, .. } = *table;
        let inserts = [history.inserts, history.doubt.rows_added, history.doubt.rows_unknown];
        Contents {
            table,
            columns: schema.columns(),
            known: history.unknown.is_empty() && !history.custom,
            inserted: inserts.iter().any(|n| *n > 0),
            filler: Filler::new(schema, seed, number, rows),
            line: Vec::new(),
        }
    }

    fn take(&mut self, row: &Row, found: &mut Found) {
        let Table { schema, ref mark, ref history, .. } = *self.table;
        // Some SQL modes pad a CHAR that they return.
        let own = |column| match row.as_ref(column) {
            Some(Value::Bytes(bytes)) if schema == Schema::Sbtest => bytes.trim_ascii_end(),
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        };
        let number = |column| std::str::from_utf8(own(column)).ok()?.parse::<i64>().ok();
        found.rows += 1;
        if let Some(k) = &mut found.k {
            *k += i128::from(number(1).unwrap_or(0));
        }
        let id = number(0).and_then(|id| u64::try_from(id).ok());
        let Some(id) = id.filter(|id| (1..=mark.rows).contains(id)) else {
            // One that a workload inserted proves itself.
            let inserted = id.is_some_and(|id| match schema {
                Schema::Sbtest => self.proves(id, own(2), true) && is_pad(own(3)),
                Schema::Bulk => own(0) == own(1),
                Schema::Phptest => false,
            });
            found.strange += u64::from(self.known && !inserted);
            return;
        };
        found.filled += 1;
        if let Some(Filler::Sbtest(rows)) = &self.filler {
            found.k_filled += i128::from(rows.k(id));
        }
        // One write in doubt may have set a password in any number of rows.
        let any = schema == Schema::Phptest && history.in_doubt > 0;
        match self.content(id, own) {
            Content::Filled => {}
            Content::Rewritten => found.rewritten += u64::from(self.known && !any),
            Content::Wrong => found.is_wrong(id),
        }
    }

    /// Holds the columns against those that were filled, but for `k`, which is summed. A `c` proves
    /// itself, whoever set it; only what is built in is known to set nothing of another form.
    fn content<'r>(&mut self, id: u64, own: impl Fn(usize) -> &'r [u8]) -> Content {
        let Some(filler) = self.filler else { return Content::Filled };
        self.line.clear();
        filler.line(&mut self.line, id);
        let line = self.line.strip_suffix(b"\n").expect("a line ends");
        let mut content = Content::Filled;
        let filled = line.split(|byte| *byte == b'\t');
        for (at, (column, filled)) in self.columns.iter().zip(filled).enumerate() {
            let own = own(at);
            if own == filled {
                continue;
            }
            let explained = match *column {
                "id" | "k" => continue,
                "c" => self.proves(id, own, self.inserted),
                _ if !self.known => true,
                "pad" => is_pad(own),
                "password" => own.len() == PASSWORD_LEN && is_digits(own),
                _ => false,
            };
            if !explained {
                return Content::Wrong;
            }
            content = Content::Rewritten;
        }
        content
    }

    /// Where AUTO_INCREMENT gives the id, `c` was made before anybody knew it. Servers that forget
    /// their counter when they stop go on behind the greatest id that is left, a filled one's too.
    fn proves(&self, id: u64, c: &[u8], inserted: bool) -> bool {
        let proves = |id| proves(self.table.number, id, c);
        proves(id) || (inserted && proves(0))
    }
}

fn is_pad(pad: &[u8]) -> bool {
    let group = |group: &[u8]| group.len() == 11 && is_digits(group);
    pad.len() == PAD_LEN && pad.split(|byte| *byte == b'-').all(group)
}

impl Found {
    pub(super) fn count(&self) -> Count {
        Count { rows: self.rows, k: self.k }
    }

    fn is_wrong(&mut self, id: u64) {
        self.wrong += 1;
        self.first_wrong = Some(self.first_wrong.map_or(id, |first| first.min(id)));
    }

    pub(super) fn add(&mut self, part: &Found) {
        self.rows += part.rows;
        self.filled += part.filled;
        self.k = self.k.into_iter().chain(part.k).reduce(|sum, k| sum + k);
        self.k_filled += part.k_filled;
        self.k_start += part.k_start;
        self.wrong += part.wrong;
        self.first_wrong = self.first_wrong.into_iter().chain(part.first_wrong).min();
        self.rewritten += part.rewritten;
        self.strange += part.strange;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Doubt;
    use crate::workload::rows::{pad, proven};

    #[test]
    fn an_inserted_row_may_have_the_id_of_a_filled_one() {
        let mark = Mark::ready(7, 100, None);
        let of = |history: &History| Table {
            schema: Schema::Sbtest,
            number: 1,
            name: "sbtest1".to_owned(),
            mark,
            history: history.clone(),
            indexes: Vec::new(),
        };
        let inserted = History { inserts: 1, ..History::default() };
        let filled = Rows::new(7, 1, 100).row(100);
        let (k, pad) = (filled.k.to_string(), pad(|| 5));
        let content = |history: &History, c: &[u8]| {
            Contents::new(&of(history)).content(100, |at| [b"100", k.as_bytes(), c, &pad][at])
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
