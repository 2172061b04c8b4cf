//! The second contract, `loadgen.imported/1`: one run by the text of another program.
//!
//! Values that the text lacks are null, never 0. Nothing takes such a run for a summary.
//! `docs/imported.schema.json` is generated from these types and tested.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Program, Warning};
use crate::terms::{Cell, StatementMode, contract};

/// The `schema` value of imported runs.
pub(crate) const IMPORTED: &str = "loadgen.imported/1";
/// Relative difference of statements an op from the workload's, by a fork or an ignored error.
const STATEMENTS_OFF: f64 = 0.02;

contract! {
    /// One run in the output of another program.
    pub struct Imported {
        /// Always `loadgen.imported/1`.
        pub schema: String,
        /// The program that read it.
        pub loadgen: Program,
        /// One import: 16 hexadecimal digits.
        pub import_id: String,
        pub source: TextSource,
        /// The row of the table: `--label`, else the server's version, else the file's name.
        pub label: String,
        /// `--note K=V`.
        pub notes: BTreeMap<String, String>,
        /// The table: loadgen's name of the workload, such as `read-only`.
        pub workload: String,
        /// Tables used; null where nothing tells.
        pub tables: Option<u32>,
        /// Rows a table; null where nothing tells.
        pub rows: Option<u64>,
        /// As on the command line, such as `uniform`; null where nothing tells.
        pub distribution: Option<String>,
        /// Server-side prepared statements or text; null where nothing tells.
        #[cfg_attr(test, schemars(with = "Option<String>"))]
        pub statements: Option<StatementMode>,
        /// Options of its command line that decide on the work, by their names in loadgen where the workload
        /// has them: those with all their values, of others what is not as usual; null where nothing tells.
        #[serde(default)]
        pub options: Option<BTreeMap<String, String>>,
        /// As the user told it; null where nobody did.
        pub server_version: Option<String>,
        /// As the user told it, else the time of the file; RFC 3339 in UTC.
        pub started_at: String,
        /// Concurrent clients, one connection each.
        pub clients: u32,
        /// Asked ops a second over all clients; null for a closed loop.
        pub rate: Option<f64>,
        /// Warm-up before the window, seconds; null where the text tells none.
        pub warmup_s: Option<f64>,
        /// Seed of the key streams; null where it was the time.
        pub seed: Option<u64>,
        /// Length of the run, seconds.
        pub measured_s: f64,
        pub totals: ImportedTotals,
        /// Response time where there is a rate, else service time.
        pub latency: ImportedLatency,
        /// The distribution of work over the clients; null if the text ends before it.
        pub fairness: Option<Fairness>,
        pub timeline: Vec<ImportedInterval>,
        /// Findings that a reader of the numbers must know.
        pub warnings: Vec<Warning>,
    }

    /// The text that a run comes from.
    pub struct TextSource {
        /// `sysbench`.
        pub program: String,
        /// Its version; null where the text does not tell.
        pub version: Option<String>,
        /// The file as it was given.
        pub file: String,
        /// The file's SHA-256, hexadecimal.
        pub sha256: String,
        /// The run's number in the file, from 1.
        pub run: u32,
    }

    /// Counts, and rates as they are printed.
    pub struct ImportedTotals {
        /// Transactions.
        pub ops: u64,
        /// Statements; of sysbench 0.4, which counts BEGIN and COMMIT that it does not send, reads and
        /// writes alone.
        pub statements: u64,
        /// Transactions a second.
        pub tps: f64,
        /// Statements a second, likewise.
        pub qps: f64,
        /// Statements that returned rows.
        pub reads: u64,
        /// Statements that changed rows.
        pub writes: u64,
        /// The other statements, as they are printed.
        pub others: u64,
        /// Transactions that failed for good: 0, for one such ends a run. Where `retried` is not there
        /// an older version wrote the file, and this is what `retried` is now.
        pub errors: u64,
        /// Errors that were ignored: the transaction began again. Of 0.4, deadlocks. Null from older
        /// versions.
        pub retried: Option<u64>,
        /// Lost connections that were opened again; null from 0.4.
        pub reconnects: Option<u64>,
    }

    /// Latency as it is printed; null without ops.
    pub struct ImportedLatency {
        /// The sum by the ops.
        pub mean_us: Option<f64>,
        pub min_us: Option<f64>,
        pub max_us: Option<f64>,
        /// The sum over all ops, seconds.
        pub sum_s: f64,
        /// The one percentile that was asked for; null where none was.
        pub percentile: Option<ImportedPercentile>,
        /// The histogram in its order; empty where it was not asked for.
        pub histogram: Vec<ImportedBucket>,
    }

    /// A percentile, known to 0.9 % and maybe above the largest time there was.
    #[derive(Copy)]
    pub struct ImportedPercentile {
        /// 1 to 100.
        pub percentile: u32,
        pub value_us: f64,
    }

    #[derive(Copy)]
    pub struct ImportedBucket {
        /// The centre of its times; small neighbours print alike.
        pub value_us: f64,
        pub count: u64,
    }

    /// Averages over the clients, and deviations from them.
    #[derive(Copy)]
    pub struct Fairness {
        pub ops_mean: f64,
        pub ops_stddev: f64,
        /// Sum of a client's latencies, seconds.
        pub time_mean_s: f64,
        pub time_stddev_s: f64,
    }

    /// A line about the time since the one before.
    #[derive(Copy)]
    pub struct ImportedInterval {
        /// Its end, seconds from the start; of 1.1, from the end of the warm-up.
        pub end_s: f64,
        pub clients: u32,
        pub tps: f64,
        /// Null before 1.0.
        pub qps: Option<f64>,
        pub reads_per_s: Option<f64>,
        pub writes_per_s: Option<f64>,
        /// Null before 1.0.
        pub others_per_s: Option<f64>,
        /// Null where no op ended, or none was asked for.
        pub percentile: Option<ImportedPercentile>,
        pub errors_per_s: Option<f64>,
        pub reconnects_per_s: Option<f64>,
        /// Arrivals that waited; null for a closed loop.
        pub queued: Option<u64>,
        /// Ops that ran; null for a closed loop.
        pub running: Option<u64>,
    }
}

impl ImportedTotals {
    /// Counts transactions that failed for good.
    pub(crate) fn failed(&self) -> u64 {
        self.retried.map_or(0, |_| self.errors)
    }

    pub(crate) fn began_again(&self) -> u64 {
        self.retried.unwrap_or(self.errors)
    }

    /// Counts an op's reads, writes and others; None if they differ between ops.
    pub(crate) fn each_op(&self) -> Option<[u64; 3]> {
        let each = |count: u64| {
            let each = count as f64 / self.ops as f64;
            let is_whole = (each - each.round()).abs() <= each.round() * STATEMENTS_OFF;
            is_whole.then_some(each.round() as u64)
        };
        Some([each(self.reads)?, each(self.writes)?, each(self.others)?])
    }
}

impl Imported {
    pub(crate) fn cell(&self) -> Cell {
        Cell::new(self.clients, self.rate)
    }

    /// Names the program and the version that printed it.
    pub(crate) fn program(&self) -> String {
        let TextSource { program, version, .. } = &self.source;
        version.as_ref().map_or_else(|| program.clone(), |version| format!("{program} {version}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_version_when_an_older_one_wrote_the_file() {
        let totals = |retried, errors| ImportedTotals { errors, retried, ..Default::default() };
        let old = totals(None, 7);
        assert_eq!((old.failed(), old.began_again()), (0, 7), "it knew no other name");
        let new = totals(Some(7), 0);
        assert_eq!((new.failed(), new.began_again()), (0, 7));
    }
}
