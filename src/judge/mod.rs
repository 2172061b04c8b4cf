//! What numbers are worth: what two of them must share to be of the same thing, what a reader of a
//! step must know, and whether its number is the server's. Their thresholds are in one file.
//!
//! Above its figure: the table of conditions has a line for each field of a summary.

mod calibration;
pub(crate) mod conditions;
pub(crate) mod thresholds;
mod verdict;
mod warnings;

pub(crate) use calibration::{
    CALIBRATION, CalibratedHost, Calibration, CalibrationStep, calibrate,
};
pub(crate) use conditions::{
    ABSENT, CONDITIONS, Condition, Difference, Knowledge, OVERHEADS, Of, Shown, Weight,
    by_knowledge, conditions, differences, differences_in, fingerprint_differences, known_of,
    of_hosts, unknown,
};
pub(crate) use verdict::verdict;
pub(crate) use warnings::{
    changed_after, changed_when, in_debt, is_another, left, levels_in_words, no_result, warnings,
};

use crate::summary::Summary;
use crate::terms::Class;

/// Tells where a step's pages came from: by those that were read and the sizes, else by the sizes alone;
/// None where neither is known.
pub(crate) fn class(step: &Summary) -> Option<Class> {
    let statements = step.totals.qps / step.totals.tps;
    let by_size = class_by_size(step.data_bytes(), step.server.buffer_pool_bytes);
    match step.counter_per_op("Innodb_buffer_pool_reads") {
        Some(misses) if statements.is_finite() && statements > 0.0 => {
            let is_read = misses / statements >= thresholds::MISSES_MIN;
            // First touches of what the pool can hold say nothing of storage.
            Some(match (is_read, by_size) {
                (false, _) => Class::Cached,
                (true, Some(Class::Cached)) => Class::Cold,
                (true, _) => Class::IoBound,
            })
        }
        _ => by_size,
    }
}

/// Gives the class that sizes alone suggest, which is all that is known before a run: data that do
/// not fit into the buffer pool have to be read.
pub(crate) fn class_by_size(data_bytes: Option<u64>, pool_bytes: Option<u64>) -> Option<Class> {
    Some(if data_bytes? > pool_bytes? { Class::IoBound } else { Class::Cached })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_suggest_a_class() {
        assert_eq!(class_by_size(Some(29), Some(4)), Some(Class::IoBound));
        assert_eq!(class_by_size(Some(29), Some(64)), Some(Class::Cached));
        assert_eq!(class_by_size(None, Some(64)), None);
    }

    #[test]
    fn misses_outweigh_sizes() {
        let text = include_str!("../../tests/fixtures/summary.json");
        let mut summary: Summary = serde_json::from_str(text).expect("a summary");
        assert_eq!(class(&summary), Some(Class::IoBound), "no counter of InnoDB's: by size");
        let status = summary.server.status.as_mut().expect("there");
        status.deltas.insert("Innodb_buffer_pool_read_requests".to_owned().into(), 3_000_000);
        assert_eq!(class(&summary), Some(Class::Cached), "the counter did not move");
        let status = summary.server.status.as_mut().expect("there");
        status.deltas.insert("Innodb_buffer_pool_reads".to_owned().into(), 540_000);
        assert_eq!(class(&summary), Some(Class::IoBound));
        let misses = summary.counter_per_op("Innodb_buffer_pool_reads").expect("known");
        assert!((misses - 0.9).abs() < 1e-4, "{misses}");
    }

    #[test]
    fn data_that_fit_and_were_read_are_cold() {
        struct Case {
            data: Option<u64>,
            pool: Option<u64>,
            reads: i64,
            class: Class,
        }
        let (small, large) = (Some(330 << 10), Some(8 << 20));
        for Case { data, pool, reads, class } in [
            Case { data: small, pool: large, reads: 540_000, class: Class::Cold },
            Case { data: large, pool: large, reads: 540_000, class: Class::Cold },
            Case { data: small, pool: large, reads: 0, class: Class::Cached },
            Case { data: large, pool: small, reads: 540_000, class: Class::IoBound },
            Case { data: None, pool: large, reads: 540_000, class: Class::IoBound },
            Case { data: large, pool: small, reads: 0, class: Class::Cached },
        ] {
            let text = include_str!("../../tests/fixtures/summary.json");
            let mut step: Summary = serde_json::from_str(text).expect("a summary");
            (step.plan.tables, step.plan.rows) = (1, 1000);
            (step.server.data_bytes, step.server.buffer_pool_bytes) = (data, pool);
            let status = step.server.status.as_mut().expect("there");
            status.deltas.insert("Innodb_buffer_pool_read_requests".to_owned().into(), 3_000_000);
            status.deltas.insert("Innodb_buffer_pool_reads".to_owned().into(), reads);
            assert_eq!(super::class(&step), Some(class), "{data:?} in {pool:?}, {reads} reads");
        }
    }
}
