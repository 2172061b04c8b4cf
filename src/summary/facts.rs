//! What follows from what a summary holds: durability in one cell, and the server's counters by
//! operation.

use std::collections::BTreeMap;

use super::{Status, Summary};
use crate::terms::{Cell, Spread};

/// No row of any workload's tables takes less: InnoDB's header and two numbers.
const ROW_MIN_BYTES: u64 = 16;

impl Summary {
    pub(crate) fn cell(&self) -> Cell {
        Cell::new(self.plan.clients, self.plan.rate)
    }

    /// The size of the data. A server whose statistics are of a time when the tables were empty
    /// knows none.
    pub(crate) fn data_bytes(&self) -> Option<u64> {
        let least = u64::from(self.plan.tables).saturating_mul(self.plan.rows);
        self.server.data_bytes.filter(|bytes| *bytes >= least.saturating_mul(ROW_MIN_BYTES))
    }

    /// What two readings cover, seconds, the first being so many after the window's start: from
    /// it to the window's end. Before a window without a warm-up, and after any, the server idles.
    pub(crate) fn covered_s(&self, first_s: f64) -> Option<f64> {
        let lead_s = if self.plan.warmup_s > 0.0 { -first_s } else { 0.0 };
        let covered_s = self.measured_s + lead_s;
        (self.measured_s > 0.0 && covered_s > 0.0).then_some(covered_s)
    }

    /// A cost between two readings, by the ops that the server did in that time.
    pub(crate) fn per_op(&self, cost: f64, first_s: f64) -> Option<f64> {
        let ops = self.covered_s(first_s)? * self.totals.tps;
        (ops > 0.0).then(|| cost / ops)
    }

    /// The server's counters over the window; None where they were not read, or it began to count
    /// anew meanwhile.
    pub(crate) fn status(&self) -> Option<&Status> {
        self.server.status.as_ref().filter(|status| status.restarted_s.is_none())
    }

    /// A counter of `SHOW GLOBAL STATUS` by the op, under the first of its names that this
    /// server has; see [`counter`].
    pub(crate) fn counter_per_op(&self, names: &[&str]) -> Option<f64> {
        let status = self.status()?;
        self.per_op(counter(status, names)?, status.first_s)
    }

    /// The same by the second.
    pub(crate) fn counter_per_s(&self, names: &[&str]) -> Option<f64> {
        let status = self.status()?;
        Some(counter(status, names)? / self.covered_s(status.first_s)?)
    }
}

/// The seconds since FLUSH STATUS, in `SHOW GLOBAL STATUS`; since the start where there was none.
pub(crate) const SINCE_FLUSH: &str = "Uptime_since_flush_status";

/// Whether FLUSH STATUS came between the readings: a counter that it reset may have grown beyond
/// what it was before.
fn flushed(status: &Status) -> bool {
    let grew = |name: &str| status.deltas.get(name);
    grew(SINCE_FLUSH).zip(grew("Uptime")).is_some_and(|(since, up)| since < up)
}

/// What a counter grew by. Only changes are kept, so one that is absent did not change; but
/// without any of InnoDB's, the server has none. One that was reset is not known: FLUSH STATUS
/// leaves InnoDB's alone.
pub(crate) fn counter(status: &Status, names: &[&str]) -> Option<f64> {
    if flushed(status) && !names.iter().all(|name| name.starts_with("Innodb_")) {
        return None;
    }
    if let Some(delta) = names.iter().find_map(|name| status.deltas.get(*name)) {
        return (*delta >= 0).then_some(*delta as f64);
    }
    let known = |prefix: &str| {
        status.deltas.keys().chain(status.gauges.keys()).any(|name| name.starts_with(prefix))
    };
    let family = |name: &str| name.split_once('_').map_or(name, |(first, _)| first).to_owned();
    names.iter().any(|name| known(&family(name))).then_some(0.0)
}

/// Several arrival queues in words, and how to have one.
pub(crate) fn in_queues(queues: u32, spread: Spread) -> String {
    let (of, one) =
        if spread == Spread::Pinned { (" and table", " --spread random") } else { ("", "") };
    format!("{queues} queues, one an engine thread{of}; one queue: --engine-threads 1{one}")
}

/// What a commit waits for, in one cell: the binary log (`bl0`, or `bl1` with `sync_binlog` as
/// `bl1s0`), the doublewrite buffer (`dw0`, `dw1`, or the name of another mode), InnoDB's log at
/// commit (`trx2`) and how files are flushed, joined by slashes. What a server has no variable
/// for is `?`; None if it has none of them.
pub fn durability(variables: &BTreeMap<String, String>) -> Option<String> {
    let get = |name: &str| variables.get(name).map(String::as_str);
    let known = ["log_bin", "innodb_doublewrite", "innodb_flush_log_at_trx_commit"];
    if known.iter().all(|name| get(name).is_none()) {
        return None;
    }
    let binlog = match get("log_bin") {
        None => "bl?".to_owned(),
        Some("OFF" | "0") => "bl0".to_owned(),
        Some(_) => format!("bl1s{}", get("sync_binlog").unwrap_or("?")),
    };
    let doublewrite = match get("innodb_doublewrite") {
        None => "?".to_owned(),
        Some("OFF" | "0") => "0".to_owned(),
        Some("ON" | "1" | "DETECT_AND_RECOVER") => "1".to_owned(),
        // DETECT_ONLY of MySQL 8.0.30, fast of MariaDB 11: half of it.
        Some(mode) => format!("-{}", mode.to_ascii_lowercase()),
    };
    let commit = get("innodb_flush_log_at_trx_commit").unwrap_or("?");
    Some(format!("{binlog}/dw{doublewrite}/trx{commit}/{}", flush_method(&get)))
}

fn flush_method<'a>(get: &impl Fn(&str) -> Option<&'a str>) -> &'a str {
    match get("innodb_flush_method") {
        // Before 5.6.7 the default has no name; it is fsync.
        Some("") => "fsync",
        Some(method) => method,
        // MariaDB 11 has switches in its place.
        None => match get("innodb_data_file_buffering") {
            Some("OFF") => "O_DIRECT",
            Some(_) => "fsync",
            None => "?",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Option<String> {
        durability(&pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn durability_of_every_generation() {
        let five_five = [
            ("log_bin", "OFF"),
            ("sync_binlog", "0"),
            ("innodb_doublewrite", "OFF"),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_flush_method", ""),
        ];
        assert_eq!(of(&five_five).as_deref(), Some("bl0/dw0/trx2/fsync"));
        let nine = [
            ("log_bin", "ON"),
            ("sync_binlog", "1"),
            ("innodb_doublewrite", "DETECT_AND_RECOVER"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_flush_method", "O_DIRECT"),
        ];
        assert_eq!(of(&nine).as_deref(), Some("bl1s1/dw1/trx1/O_DIRECT"));
        let half = [("innodb_doublewrite", "DETECT_ONLY"), ("log_bin", "1")];
        assert_eq!(of(&half).as_deref(), Some("bl1s?/dw-detect_only/trx?/?"));
        let maria = [
            ("log_bin", "OFF"),
            ("innodb_doublewrite", "fast"),
            ("innodb_flush_log_at_trx_commit", "3"),
            ("innodb_data_file_buffering", "OFF"),
        ];
        assert_eq!(of(&maria).as_deref(), Some("bl0/dw-fast/trx3/O_DIRECT"));
        assert_eq!(of(&[("port", "3306")]), None);
    }

    fn fixture() -> Summary {
        serde_json::from_str(include_str!("../../tests/fixtures/summary.json")).expect("a summary")
    }

    #[test]
    fn readings_before_the_window_cover_more_than_it() {
        let mut summary = fixture();
        assert_eq!(summary.covered_s(-0.5), Some(60.5));
        summary.plan.warmup_s = 0.0;
        assert_eq!(summary.covered_s(-0.5), Some(60.0), "nothing ran before");
        summary.measured_s = 0.0;
        assert_eq!(summary.covered_s(-0.5), None);
    }

    #[test]
    fn counters_of_a_part_of_the_window_are_no_figure() {
        let mut summary = fixture();
        assert!(summary.counter_per_s(&["Questions"]).is_some());
        summary.server.status.as_mut().expect("there").restarted_s = Some(12.0);
        assert_eq!(summary.counter_per_s(&["Questions"]), None);
        assert_eq!(summary.counter_per_op(&["Questions"]), None);
    }

    #[test]
    fn a_counter_that_flush_status_reset_says_nothing_though_it_grew() {
        let mut summary = fixture();
        assert!(summary.counter_per_s(&["Questions"]).is_some());
        let status = summary.server.status.as_mut().expect("there");
        status.deltas.extend([("Uptime".to_owned(), 60), (SINCE_FLUSH.to_owned(), 60)]);
        assert!(summary.counter_per_s(&["Questions"]).is_some(), "nobody flushed");
        let status = summary.server.status.as_mut().expect("there");
        status.deltas.insert("Innodb_data_reads".to_owned(), 5);
        for since in [0, 59, -5000] {
            let status = summary.server.status.as_mut().expect("there");
            status.deltas.insert(SINCE_FLUSH.to_owned(), since);
            assert_eq!(summary.counter_per_s(&["Questions"]), None, "{since}");
            assert!(summary.counter_per_s(&["Innodb_data_reads"]).is_some(), "it stays");
        }
    }

    #[test]
    fn a_counter_that_fell_says_nothing() {
        let mut summary = fixture();
        let status = summary.server.status.as_mut().expect("there");
        status.deltas.insert("Innodb_data_reads".to_owned(), -5);
        assert_eq!(summary.counter_per_s(&["Innodb_data_reads"]), None);
    }
}
