//! What the server counts and sums by each index of a table, and whether they agree.

use crate::mysql::control::{Asked, one, optional};
use crate::mysql::session::{Failure, Session};
use crate::workload::table::quoted;

/// The server's number for "there is no such index", or none that may be used.
const NO_INDEX: u16 = 1176;

/// Rows, and the sum of `k` where that is in the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) rows: u64,
    pub(super) k: Option<i128>,
}

/// An index that can be counted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    /// Empty for whichever the server takes.
    pub(super) name: String,
    /// Whether `k` is in it.
    pub(super) k: bool,
}

/// By each index; the rows' own, which has all columns, is the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts(pub(super) Vec<(Index, Count)>);

impl Index {
    /// Of the rows themselves.
    pub(super) fn primary(k: bool) -> Index {
        Index { name: "PRIMARY".to_owned(), k }
    }

    pub(super) async fn count(&self, session: &mut Session, table: &str) -> Asked<Count> {
        let by = match self.name.as_str() {
            "" => String::new(),
            name => format!(" FORCE INDEX ({})", quoted(name)),
        };
        // A COUNT(*) alone may be answered without the index.
        let sum = if self.k { "SUM(k)" } else { "SUM(1)" };
        let sql = format!("SELECT COUNT(*), {sum} FROM {}{by}", quoted(table));
        let answer = session.query(&sql).await?;
        let mut fields = answer.into_iter().flatten();
        let mut number = || fields.next().flatten().and_then(|text| text.parse::<i128>().ok());
        let rows = number().and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        // No rows have no sum.
        Ok(Count { rows, k: self.k.then(|| number().unwrap_or(0)) })
    }
}

impl Count {
    /// Whether both can be of the same rows.
    pub(super) fn agrees(&self, other: &Count) -> bool {
        let same_k = self.k.zip(other.k).is_none_or(|(one, other)| one == other);
        self.rows == other.rows && same_k
    }

    fn differs_by(&self, other: &Count) -> u64 {
        self.rows.abs_diff(other.rows).max(1)
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows", self.rows)?;
        self.k.map_or(Ok(()), |k| write!(f, " with a sum of k of {k}"))
    }
}

impl Counts {
    /// Counts by all indexes as they are at one instant, whatever is written or rolled back
    /// meanwhile: within [`snapshot`].
    pub(super) async fn take(
        session: &mut Session,
        table: &str,
        indexes: &[Index],
    ) -> Asked<Counts> {
        let mut counts = Vec::with_capacity(indexes.len());
        for index in indexes {
            match index.count(session, table).await {
                Ok(count) => counts.push((index.clone(), count)),
                // Dropped meanwhile, or hidden from the optimizer.
                Err(Failure::Server { code: NO_INDEX, .. }) => {}
                Err(failure) => return Err(failure),
            }
        }
        if let ([], Some(first)) = (counts.as_slice(), indexes.first()) {
            let any = Index { name: String::new(), k: first.k };
            let count = any.count(session, table).await?;
            counts.push((any, count));
        }
        Ok(Counts(counts))
    }

    /// By the index that tells most and is the cheapest to read again: the last ones are narrow.
    pub(super) fn narrow(&self) -> Option<&(Index, Count)> {
        self.0.iter().rfind(|(index, _)| index.k).or(self.0.last())
    }

    /// The rows themselves.
    pub(super) fn rows(&self) -> Count {
        self.0.first().map(|(_, count)| *count).unwrap_or_default()
    }

    /// The first index that disagrees with the rows: by how many of them, and in words.
    pub(super) fn torn(&self) -> Option<(u64, String)> {
        let rows = self.rows();
        let (index, count) = self.0.iter().find(|(_, count)| !count.agrees(&rows))?;
        let what = format!("index {} has {count}, the table has {rows}", index.name);
        Some((count.differs_by(&rows), what))
    }

    /// The same of rows that were read and are not those that the server counts.
    pub(super) fn against(&self, read: &Count) -> Option<(u64, String)> {
        let rows = self.rows();
        let what = || format!("the server counts {rows}, and returns {read}");
        (!rows.agrees(read)).then(|| (rows.differs_by(read), what()))
    }
}

/// What is read until COMMIT is as it was at this instant.
pub(super) async fn snapshot(session: &mut Session) -> Asked<()> {
    session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT").await.map(|_| ())
}

/// What CHECK TABLE says, on one line.
pub(super) async fn check_table(session: &mut Session, table: &str) -> Asked<String> {
    let said = match session.query(&format!("CHECK TABLE {}", quoted(table))).await {
        Ok(lines) => lines,
        Err(refused @ Failure::Server { .. }) => return Ok(format!("CHECK TABLE: {refused}")),
        Err(lost) => return Err(lost),
    };
    // Table, operation, kind of message, message.
    let text = |line: Vec<Option<String>>| line.into_iter().nth(3).flatten();
    let lines: Vec<String> = said.into_iter().filter_map(text).collect();
    Ok(format!("CHECK TABLE: {}", lines.join("; ")))
}

/// Transactions that were open when the server started: it rolls them back beside its work, but
/// for those that XA prepared. None where it does not say.
pub(super) async fn recovered(session: &mut Session) -> Asked<Option<u64>> {
    let sql = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0";
    let answer = optional(one(session, sql).await)?;
    Ok(answer.flatten().and_then(|n| n.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(&str, u64, Option<i128>)]) -> Counts {
        let of = |(name, rows, k): &(&str, u64, Option<i128>)| {
            (Index { name: (*name).to_owned(), k: k.is_some() }, Count { rows: *rows, k: *k })
        };
        Counts(all.iter().map(of).collect())
    }

    #[test]
    fn an_index_that_disagrees_is_named() {
        let whole = counts(&[("PRIMARY", 9, Some(50)), ("k_1", 9, Some(50)), ("c", 9, None)]);
        assert_eq!(whole.torn(), None);
        let more = counts(&[("PRIMARY", 9, Some(50)), ("k_1", 12, Some(70))]);
        let (by, what) = more.torn().expect("found");
        assert_eq!(by, 3);
        assert_eq!(
            what,
            "index k_1 has 12 rows with a sum of k of 70, the table has 9 rows with a sum of k of 50"
        );
        assert_eq!(whole.narrow().map(|(index, _)| index.name.as_str()), Some("k_1"));
        let moved = counts(&[("PRIMARY", 9, Some(50)), ("k_1", 9, Some(51))]);
        assert_eq!(moved.torn().map(|(by, _)| by), Some(1));
        assert_eq!(
            counts(&[("PRIMARY", 9, None), ("email", 8, None)]).torn().map(|t| t.0),
            Some(1)
        );
    }

    #[test]
    fn rows_that_are_not_returned_are_counted() {
        let counts = counts(&[("PRIMARY", 9, Some(50))]);
        assert_eq!(counts.against(&Count { rows: 9, k: Some(50) }), None);
        let (by, what) = counts.against(&Count { rows: 7, k: Some(40) }).expect("found");
        assert!(by == 2 && what.contains("returns 7 rows"), "{what}");
    }
}
