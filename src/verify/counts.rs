//! What the server counts and sums by each index of a table, and whether they agree.

use crate::mysql::control::{Asked, one, optional, rows};
use crate::mysql::errors::Failure;
use crate::mysql::session::Session;
use crate::workload::table::quoted;

/// The server's number for "there is no such index", or none that may be used.
const NO_INDEX: u16 = 1176;

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

/// By each index; the rows' own, which has all columns, is the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts(pub(super) Vec<(Index, Count)>);

/// Reads a whole number that the server answers; none where it has no rows to tell it of.
pub(super) fn number(text: Option<&str>) -> Asked<i128> {
    let number = text.map_or(Some(0), |text| text.parse().ok());
    number.ok_or_else(|| Failure::Lost("an answer that is no number".to_owned()))
}

impl Index {
    pub(super) async fn count(&self, session: &mut Session, table: &str) -> Asked<Count> {
        let by = match self.name.as_str() {
            "" => String::new(),
            name => format!(" FORCE INDEX ({})", quoted(name)),
        };
        // A COUNT(*) alone may be answered without the index.
        let sum = if self.k { "SUM(k)" } else { "SUM(1)" };
        let sql = format!("SELECT COUNT(*), {sum} FROM {}{by}", quoted(table));
        let [count, sum] = rows::<2>(session, &sql).await?.pop().unwrap_or_default();
        let rows = number(count.as_deref())?.max(0) as u64;
        Ok(Count { rows, k: if self.k { Some(number(sum.as_deref())?) } else { None } })
    }
}

impl Count {
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
        if counts.is_empty() {
            let any = Index { name: String::new(), k: indexes[0].k };
            let count = any.count(session, table).await?;
            counts.push((any, count));
        }
        Ok(Counts(counts))
    }

    /// Finds the index that tells most and is the cheapest to read again: the last ones are narrow.
    pub(super) fn narrow(&self) -> &(Index, Count) {
        let narrow = self.0.iter().rfind(|(index, _)| index.k).or(self.0.last());
        narrow.expect("counted by one index at least")
    }

    pub(super) fn rows(&self) -> Count {
        self.0[0].1
    }

    /// Finds the first index that disagrees with the rows, or that what was read is not what the server
    /// counts: by how many rows, and in words.
    pub(super) fn torn(&self, read: &Count) -> Option<(u64, String)> {
        let rows = self.rows();
        if let Some((index, count)) = self.0.iter().find(|(_, count)| !count.agrees(&rows)) {
            let what = format!("index {} has {count}, the table has {rows}", index.name);
            return Some((count.differs_by(&rows), what));
        }
        let what = || format!("the server counts {rows}, and returns {read}");
        (!rows.agrees(read)).then(|| (rows.differs_by(read), what()))
    }
}

/// What is read until COMMIT is as it was at this instant.
pub(super) async fn snapshot(session: &mut Session) -> Asked<()> {
    session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT").await.map(drop)
}

pub(super) async fn check_table(session: &mut Session, table: &str) -> Asked<String> {
    let said = match rows::<4>(session, &format!("CHECK TABLE {}", quoted(table))).await {
        Ok(lines) => lines.into_iter().filter_map(|[.., text]| text).collect::<Vec<_>>().join("; "),
        Err(refused @ Failure::Server { .. }) => refused.to_string(),
        Err(lost) => return Err(lost),
    };
    Ok(format!("CHECK TABLE: {said}"))
}

/// Counts transactions that were open when the server started: it rolls them back beside its work, but
/// for those that XA prepared. 0 where it does not say.
pub(super) async fn recovered(session: &mut Session) -> Asked<u64> {
    let sql = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0";
    let answer = optional(one(session, sql).await)?.flatten();
    Ok(number(answer.as_deref())?.max(0) as u64)
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
        let torn = |counts: &Counts| counts.torn(&counts.rows());
        assert_eq!(torn(&whole), None);
        let more = counts(&[("PRIMARY", 9, Some(50)), ("k_1", 12, Some(70))]);
        let (by, what) = torn(&more).expect("found");
        assert_eq!(by, 3);
        assert_eq!(
            what,
            "index k_1 has 12 rows with a sum of k of 70, the table has 9 rows with a sum of k of 50"
        );
        assert_eq!(whole.narrow().0.name, "k_1");
        let moved = counts(&[("PRIMARY", 9, Some(50)), ("k_1", 9, Some(51))]);
        assert_eq!(torn(&moved).map(|(by, _)| by), Some(1));
        assert_eq!(
            torn(&counts(&[("PRIMARY", 9, None), ("email", 8, None)])).map(|t| t.0),
            Some(1)
        );
    }

    #[test]
    fn rows_that_are_not_returned_are_counted() {
        let counts = counts(&[("PRIMARY", 9, Some(50))]);
        assert_eq!(counts.torn(&Count { rows: 9, k: Some(50) }), None);
        let (by, what) = counts.torn(&Count { rows: 7, k: Some(40) }).expect("found");
        assert!(by == 2 && what.contains("returns 7 rows"), "{what}");
    }
}
