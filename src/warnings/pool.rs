//! The buffer pool and what InnoDB has still to do.

use super::thresholds::{
    CHECKPOINT_AGE_MAX, DEVIATIONS, DIRTY_MAX, FREE_PAGES_MAX, HISTORY_MAX, MISSES_CHANGE_MAX,
    RESTORED_S, SETTLED_DIRTY, SETTLED_HISTORY,
};
use super::{Said, percent};
use crate::summary::{Class, Conditions, Levels, Phase, Sample, Settled, Summary};

pub(super) fn look(step: &Summary, said: &mut Said) {
    let conditions = step.conditions.as_ref();
    let io = step.server.class == Some(Class::IoBound);
    let fits = step.data_bytes().zip(step.server.buffer_pool_bytes).filter(|(d, pool)| d <= pool);
    match (fits, conditions) {
        (Some((data, pool)), _) if io => said.warn(
            "cold_pool",
            format!(
                "the data ({} MiB) fit into the buffer pool ({} MiB), but pages were read: it was \
                 cold, or others used it",
                data >> 20,
                pool >> 20
            ),
        ),
        (None, Some(conditions)) if io => warming(step, conditions, said),
        _ => {}
    }
    let Some(conditions) = conditions else { return };
    unexpected(step, conditions, said);
    let settle = conditions.before.as_ref().and_then(|before| before.settle.as_ref());
    if let Some(settle) = settle.filter(|settle| !settle.complete) {
        unsettled(settle, said);
    }
    if let Some(levels) = &conditions.at_start {
        restored(levels, said);
        debt(step, levels, said);
    }
}

/// What `--settle` waits for, by what the server tells.
pub(crate) struct Left {
    /// Whether there is more of it than `--settle` is content with.
    pub(crate) more: bool,
    /// What it does not tell.
    pub(crate) unknown: Vec<&'static str>,
}

/// What is left to flush and to purge.
pub(crate) fn left(levels: &Levels) -> Left {
    let dirty = levels.pool_dirty_pages.zip(levels.pool_pages);
    let dirty = dirty.map(|(dirty, pages)| dirty as f64 > SETTLED_DIRTY * pages as f64);
    let history = levels.history_list_length.map(|length| length > SETTLED_HISTORY);
    let all = [("dirty pages", dirty), ("history list", history)];
    Left {
        more: all.iter().any(|(_, over)| *over == Some(true)),
        unknown: all.iter().filter(|(_, over)| over.is_none()).map(|(name, _)| *name).collect(),
    }
}

/// `12 dirty pages, a history list of 3`, as far as the server tells.
pub(crate) fn levels_in_words(levels: &Levels) -> String {
    let dirty = levels.pool_dirty_pages.map(|pages| format!("{pages} dirty pages"));
    let history = levels.history_list_length.map(|n| format!("a history list of {n}"));
    let known: Vec<String> = [dirty, history].into_iter().flatten().collect();
    known.join(", ")
}

fn unsettled(settle: &Settled, said: &mut Said) {
    if left(&settle.last).more {
        let (took, levels) = (settle.took_s, levels_in_words(&settle.last));
        said.warn("not_settled", format!("--settle gave up after {took:.0} s: {levels}"));
    }
    if !settle.unknown.is_empty() {
        said.warn(
            "settle_unknown",
            format!(
                "the server does not tell {}, which --settle would wait for: whether it had \
                 settled is not known",
                settle.unknown.join(" and ")
            ),
        );
    }
}

/// A pool that is smaller than the data: it is warm when it is full and misses no more and no
/// less than before.
fn warming(step: &Summary, conditions: &Conditions, said: &mut Said) {
    let (Some(first), Some(last)) = (conditions.window.first(), conditions.window.last()) else {
        return;
    };
    let pages = conditions.at_start.as_ref().and_then(|levels| levels.pool_pages);
    if let Some((free, pages)) = first.pool_free_pages.zip(pages.filter(|pages| *pages > 0)) {
        let part = free as f64 / pages as f64;
        if part > FREE_PAGES_MAX {
            let left = last.pool_free_pages.unwrap_or(free) as f64 / pages as f64;
            said.warn(
                "warming_pool",
                format!(
                    "the buffer pool was still filling: {} of it was free when the window began, \
                     {} when it ended",
                    percent(part),
                    percent(left)
                ),
            );
            return;
        }
    }
    let third = |from: usize| -> Option<(f64, f64)> {
        let (a, b) = (conditions.window.get(from)?, conditions.window.get(from + 1)?);
        let misses = b.pool_reads?.checked_sub(a.pool_reads?)? as f64;
        Some((misses, ops_between(step, a, b)))
    };
    let Some(((early, early_ops), (late, late_ops))) = third(0).zip(third(2)) else { return };
    if early_ops <= 0.0 || late_ops <= 0.0 {
        return;
    }
    let (first, last) = (early / early_ops, late / late_ops);
    // Of two counts of one rate: the variance of a count is the count.
    let chance = (early / early_ops.powi(2) + late / late_ops.powi(2)).sqrt();
    let most = first.max(last);
    if (first - last).abs() > MISSES_CHANGE_MAX * most && (first - last).abs() > DEVIATIONS * chance
    {
        let how = if first > last { "still warming" } else { "losing what it held" };
        said.warn(
            "warming_pool",
            format!(
                "the buffer pool was {how}: {first:.3} misses an op in the first third of the \
                 window, {last:.3} in the last"
            ),
        );
    }
}

/// Ops between two readings, by the timeline.
fn ops_between(step: &Summary, first: &Sample, last: &Sample) -> f64 {
    let measured = || step.timeline.iter().filter(|entry| entry.phase == Phase::Measure);
    let Some(origin) = measured().map(|entry| entry.start_s).next() else { return 0.0 };
    let (from, to) = (origin + first.at_s, origin + last.at_s);
    let part = |start: f64, length: f64| {
        let common = (start + length).min(to) - start.max(from);
        if length > 0.0 { (common / length).clamp(0.0, 1.0) } else { 0.0 }
    };
    measured().map(|entry| entry.ops as f64 * part(entry.start_s, entry.length_s)).sum()
}

fn unexpected(step: &Summary, conditions: &Conditions, said: &mut Said) {
    let (Some(wanted), Some(found)) = (conditions.expected_class, step.server.class) else {
        return;
    };
    if wanted != found {
        let size = |bytes: Option<u64>| {
            bytes.map_or_else(|| "unknown".to_owned(), |bytes| format!("{} MiB", bytes >> 20))
        };
        said.warn(
            "unexpected_class",
            format!(
                "expected to be {wanted}, and was {found}: data {}, buffer pool {}",
                size(step.data_bytes()),
                size(step.server.buffer_pool_bytes)
            ),
        );
    }
}

/// A pool that the server filled from a file: another state than that of a server without one.
fn restored(levels: &Levels, said: &mut Said) {
    let Some(load) = &levels.pool_load else { return };
    let lower = load.to_ascii_lowercase();
    let clipped: String = load.chars().take(100).collect();
    if lower.starts_with("loaded ") || lower.starts_with("loading buffer pool") {
        said.warn(
            "restored_pool",
            format!(
                "the server was still restoring its buffer pool when the step began: {clipped}"
            ),
        );
    } else if lower.contains("load completed")
        && levels.uptime_s.is_some_and(|uptime| uptime <= RESTORED_S)
        // Tables that were made since then were not in the file. Both are whole seconds, read one
        // after the other.
        && levels.tables_age_s.zip(levels.uptime_s).is_some_and(|(age, up)| age > up + 1)
    {
        said.warn(
            "restored_pool",
            format!("the server restored its buffer pool from a file at its start: {clipped}"),
        );
    }
}

/// The size of InnoDB's log, which a checkpoint's age stays below.
fn log_bytes(step: &Summary) -> Option<u64> {
    let number = |name: &str| step.server.variables.get(name)?.parse::<u64>().ok();
    let files = number("innodb_log_files_in_group").unwrap_or(1);
    number("innodb_redo_log_capacity")
        .or_else(|| number("innodb_log_file_size")?.checked_mul(files))
}

/// What the test before left to be written and purged, which this one pays for.
fn debt(step: &Summary, levels: &Levels, said: &mut Said) {
    let mut debts = Vec::new();
    if let Some((dirty, pages)) = levels.pool_dirty_pages.zip(levels.pool_pages)
        && pages > 0
        && dirty as f64 > DIRTY_MAX * pages as f64
    {
        debts.push(format!(
            "{} of the buffer pool's pages were dirty",
            percent(dirty as f64 / pages as f64)
        ));
    }
    let most = levels.checkpoint_age_max_bytes.or_else(|| log_bytes(step));
    if let Some((age, most)) = levels.checkpoint_age_bytes.zip(most)
        && age as f64 > CHECKPOINT_AGE_MAX * most as f64
        && most > 0
    {
        debts.push(format!(
            "the checkpoint's age was {} of the most it may be",
            percent(age as f64 / most as f64)
        ));
    }
    if let Some(history) = levels.history_list_length.filter(|length| *length > HISTORY_MAX) {
        debts.push(format!("the history list held {history} transactions"));
    }
    if !debts.is_empty() {
        said.warn("debt", format!("before the step began, {}: --settle waits", debts.join(", ")));
    }
}
