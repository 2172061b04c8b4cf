//! Judges numbers: the conditions that two must share to be comparable, the findings that a reader of
//! a step must know, and the verdict whether its number is the server's. Their thresholds are in one file.

mod calibration;
pub(crate) mod conditions;
pub(crate) mod thresholds;
mod verdict;
mod warnings;

pub(crate) use calibration::{CALIBRATION, CalibratedHost, Calibration, CalibrationStep};
pub(crate) use conditions::{
    ABSENT, CONDITIONS, Condition, Difference, HeldBy, Knowledge, OVERHEADS, ShownIn, Weight,
    by_knowledge, conditions, differences, differences_in, fingerprint_differences, is_private,
    known_of, of_hosts, unknown,
};
pub(crate) use verdict::used_by_others;
pub(crate) use warnings::{
    changed_after, changed_when, in_debt, is_another, left, levels_in_words, no_result,
};

use crate::summary::{Judgement, Summary};
use crate::terms::Class;

const MISSES: &str = "Innodb_buffer_pool_reads";

/// Judges a step by its summary, in which that is all that is missing.
pub(crate) fn judge_step(step: &Summary) -> Judgement {
    let class = class(step);
    let findings = match &step.conditions {
        Some(known) => warnings::warnings(step, class, known),
        // Loads and suites are timed by whatever they run: there are no conditions to hold them to.
        None => warnings::small_log(step).into_iter().collect(),
    };
    let (verdict, hosts) = match step.hosts.as_slice() {
        [] => (verdict::verdict(step, &findings), Vec::new()),
        _ => verdict::of_hosts(step, &findings),
    };
    Judgement { class, findings, verdict, hosts }
}

/// Judges by the pages that were read and the sizes, else by the sizes alone; None where neither is known.
fn class(step: &Summary) -> Option<Class> {
    if step.load.is_some() || step.suite.is_some() {
        return class_by_size(step.server.data_bytes, step.server.buffer_pool_bytes);
    }
    let misses = if step.groups.is_empty() {
        let per_op = step.counter_per_op(MISSES);
        per_op.map(|misses| misses * step.totals.tps / step.totals.qps)
    } else {
        step.counter_per_s(MISSES).map(|misses| misses / step.qps_of_all())
    };
    let by_size = class_by_size(step.data_bytes(), step.server.buffer_pool_bytes);
    let Some(misses) = misses.filter(|misses| misses.is_finite()) else { return by_size };
    Some(match by_size {
        _ if misses < thresholds::MISSES_MIN => Class::Cached,
        // First touches of what the pool can hold say nothing of storage.
        Some(Class::Cached) => Class::Cold,
        _ => Class::IoBound,
    })
}

/// Returns the class that sizes alone suggest: data that do not fit into the buffer pool have to be read.
fn class_by_size(data_bytes: Option<u64>, pool_bytes: Option<u64>) -> Option<Class> {
    Some(if data_bytes? > pool_bytes? { Class::IoBound } else { Class::Cached })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Group, VerdictKind};

    #[test]
    fn sizes_suggest_a_class() {
        assert_eq!(class_by_size(Some(29), Some(4)), Some(Class::IoBound));
        assert_eq!(class_by_size(Some(29), Some(64)), Some(Class::Cached));
        assert_eq!(class_by_size(None, Some(64)), None);
    }

    #[test]
    fn one_core_is_no_plural() {
        let mut step = Summary::sound();
        step.client.cores = 1;
        let client = conditions(&step).into_iter().find(|(name, ..)| name == "client CPU");
        assert_eq!(client.expect("it is one").1, "1 core of Some CPU @ 2.60GHz");
    }

    #[test]
    fn a_load_is_judged_by_its_size_alone() {
        let mut summary = Summary::sound();
        (summary.server.data_bytes, summary.server.buffer_pool_bytes) = (Some(1), Some(64 << 30));
        summary.load = Some(crate::summary::Load::default());
        let judged = judge_step(&summary);
        assert_eq!((judged.class, judged.verdict), (Some(Class::Cached), None));
        assert!(judged.findings.is_empty());
    }

    #[test]
    fn a_sweep_has_the_judgement_of_its_summary() {
        let mut summary = Summary::sound();
        summary.conditions = Some(crate::summary::Conditions::default());
        summary.client.share = Some(crate::summary::Share::default());
        (summary.warnings, summary.totals.ops) = (Vec::new(), 0);
        let judgement = judge_step(&summary);
        let Judgement { class, findings, verdict, .. } = &judgement;
        assert_eq!(*class, Some(Class::IoBound));
        assert_eq!(findings[0].code(), Some(crate::terms::Code::NothingCompleted));
        assert_eq!(verdict.as_ref().map(|verdict| verdict.kind), Some(VerdictKind::Ok));
        let judged = summary.judged(judgement);
        assert!(judged.is_warned(crate::terms::Code::NothingCompleted) && judged.verdict.is_some());
    }

    #[test]
    fn misses_outweigh_sizes() {
        let mut summary = Summary::sound();
        assert_eq!(class(&summary), Some(Class::IoBound), "no counter of InnoDB's: by size");
        let status = summary.server.status.as_mut().expect("there");
        status.deltas.insert("Innodb_buffer_pool_read_requests".to_owned().into(), 3_000_000);
        assert_eq!(class(&summary), Some(Class::Cached), "the counter did not move");
        let status = summary.server.status.as_mut().expect("there");
        status.deltas.insert("Innodb_buffer_pool_reads".to_owned().into(), 540_000);
        assert_eq!(class(&summary), Some(Class::IoBound));
        let misses = summary.counter_per_op(MISSES).expect("known");
        assert!((misses - 0.9).abs() < 1e-4, "{misses}");
        let mut group = Group::default();
        group.totals.qps = summary.totals.qps;
        summary.groups = vec![group];
        assert_eq!(class(&summary), Some(Class::IoBound), "of the statements of all groups");
        summary.groups[0].totals.qps *= 1e6;
        assert_eq!(class(&summary), Some(Class::Cached), "few of them missed");
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
            let mut step = Summary::sound();
            (step.plan.tables, step.plan.rows) = (1, 1000);
            (step.server.data_bytes, step.server.buffer_pool_bytes) = (data, pool);
            let status = step.server.status.as_mut().expect("there");
            status.deltas.insert("Innodb_buffer_pool_read_requests".to_owned().into(), 3_000_000);
            status.deltas.insert("Innodb_buffer_pool_reads".to_owned().into(), reads);
            assert_eq!(super::class(&step), Some(class), "{data:?} in {pool:?}, {reads} reads");
        }
    }
}
