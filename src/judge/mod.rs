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
#[cfg(test)]
pub(crate) use conditions::FREE;
pub(crate) use conditions::{
    ABSENT, CONDITIONS, Condition, Difference, Knowledge, OVERHEADS, Of, Shown, Weight,
    by_knowledge, conditions, differences, differences_in, fingerprint_differences, known_of,
    of_hosts, unknown,
};
pub(crate) use verdict::verdict;
pub(crate) use warnings::{
    changed_after, changed_when, in_debt, is_another, known_to, left, levels_in_words, no_result,
    warnings,
};

use crate::summary::Summary;
use crate::terms::Class;

/// Tells whether a step was cached or IO-bound: by the pages that were read, else by the sizes; None
/// where neither is known.
pub(crate) fn class(step: &Summary) -> Option<Class> {
    let statements = step.totals.qps / step.totals.tps;
    match step.counter_per_op("Innodb_buffer_pool_reads") {
        Some(misses) if statements.is_finite() && statements > 0.0 => {
            let io = misses / statements >= thresholds::MISSES_MIN;
            Some(if io { Class::IoBound } else { Class::Cached })
        }
        _ => class_by_size(step.data_bytes(), step.server.buffer_pool_bytes),
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
        status.deltas.insert("Innodb_buffer_pool_read_requests".to_owned(), 3_000_000);
        assert_eq!(class(&summary), Some(Class::Cached), "the counter did not move");
        let status = summary.server.status.as_mut().expect("there");
        status.deltas.insert("Innodb_buffer_pool_reads".to_owned(), 540_000);
        assert_eq!(class(&summary), Some(Class::IoBound));
        let misses = summary.counter_per_op("Innodb_buffer_pool_reads").expect("known");
        assert!((misses - 0.9).abs() < 1e-4, "{misses}");
    }
}
