//! Counts of ops in the timeline of a step.

use crate::observe::recorder::{Interval, Phase};

/// Counts the ops between two times, in seconds from the window's start; takes a part of a cut interval.
pub(super) fn count_ops_between(timeline: &[Interval], from_s: f64, to_s: f64) -> f64 {
    let measured = timeline.iter().find(|entry| entry.phase == Phase::Measure);
    let origin = measured.map_or(0.0, |entry| entry.start_s);
    let overlap = |entry: &Interval| {
        let from = (entry.start_s - origin).max(from_s);
        let to = (entry.start_s - origin + entry.length_s).min(to_s);
        ((to - from) / entry.length_s).clamp(0.0, 1.0)
    };
    let lasts = |entry: &&Interval| entry.phase != Phase::Drain && entry.length_s > 0.0;
    timeline.iter().filter(lasts).map(|entry| entry.ops as f64 * overlap(entry)).sum()
}

/// Keeps the intervals within `near_s` seconds of the window's start, and merges those of the window that are later.
pub(super) fn shorten(timeline: &[Interval], near_s: f64) -> Vec<Interval> {
    let of = |phase| timeline.iter().filter(move |entry| entry.phase == phase).cloned();
    let Some(start_s) = of(Phase::Measure).next().map(|entry| entry.start_s) else {
        return Vec::new();
    };
    let is_near = |entry: &Interval| entry.start_s + entry.length_s > start_s - near_s;
    let (near, later): (Vec<_>, Vec<_>) =
        of(Phase::Measure).partition(|entry| entry.start_s <= start_s + near_s);
    let later = later.into_iter().reduce(|all, entry| Interval {
        length_s: entry.start_s + entry.length_s - all.start_s,
        ops: all.ops.saturating_add(entry.ops),
        ..all
    });
    of(Phase::Warmup).filter(is_near).chain(near).chain(later).collect()
}
