//! What follows from what a summary holds: the server's counters by operation.

use super::{Status, Summary, Warning};
use crate::mysql::facts::SINCE_FLUSH;
use crate::terms::{Cell, Code, Finding, Spread};

/// No row of any workload's tables takes less: InnoDB's header and two numbers.
const ROW_MIN_BYTES: u64 = 16;

impl Summary {
    /// Adds findings, as sentences.
    pub(crate) fn warn(&mut self, found: impl IntoIterator<Item = Finding>) {
        self.warnings.extend(found.into_iter().map(Warning::from));
    }

    pub(crate) fn is_warned(&self, code: Code) -> bool {
        self.warnings.iter().any(|warning| warning.is(code))
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.server.variables.get(name).map(String::as_str)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

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
