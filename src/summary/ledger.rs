//! What acknowledged writes leave in the tables, and what writes without an answer may.

use serde::{Deserialize, Serialize};

/// What the acknowledged writes of a step add to one table, all phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LedgerEntry {
    /// Table name.
    pub table: String,
    /// Identity of the table's content, from the mark that `prepare` leaves in its COMMENT: 1 to
    /// 8 hexadecimal digits; null for tables that loadgen did not make, and from old versions.
    #[serde(default)]
    pub table_id: Option<String>,
    /// Acknowledged updates.
    pub updates: u64,
    /// Acknowledged inserts.
    pub inserts: u64,
    /// Acknowledged deletes.
    pub deletes: u64,
    /// Writes whose outcome is unknown.
    pub in_doubt: u64,
    /// What acknowledged writes added to the sum of `k`, as far as they know it.
    pub k_added: i64,
    /// Rows that were deleted or inserted with a `k` that nobody read: the sum of `k` can be told
    /// from `k_added` where this is 0.
    #[serde(default)]
    pub k_unknown: u64,
    /// What of `k_added` acknowledged writes took off. Losses of such and of others cancel out.
    #[serde(default)]
    pub k_taken: u64,
    /// Acknowledged updates that change neither the rows nor the sum of `k`.
    #[serde(default)]
    pub untraced: u64,
    /// What the writes in doubt may have changed; null where there are none.
    #[serde(default)]
    pub doubt: Option<Doubt>,
}

/// Bounds of what writes in doubt changed: each of them did all of its part or nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Doubt {
    /// Rows added at most.
    pub rows_added: u64,
    /// Rows removed at most.
    pub rows_removed: u64,
    /// The most that the sum of `k` grew.
    pub k_added: u64,
    /// The most that it shrank.
    pub k_removed: u64,
    /// Writes of these that add or remove any number of rows.
    pub rows_unknown: u64,
    /// Writes of these that change the sum of `k` by nobody knows how much.
    pub k_unknown: u64,
}

impl Doubt {
    /// Both.
    pub(crate) fn add(&mut self, other: &Doubt) {
        let Doubt { rows_added, rows_removed, k_added, k_removed, rows_unknown, k_unknown } = self;
        for (sum, more) in [
            (rows_added, other.rows_added),
            (rows_removed, other.rows_removed),
            (k_added, other.k_added),
            (k_removed, other.k_removed),
            (rows_unknown, other.rows_unknown),
            (k_unknown, other.k_unknown),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}
