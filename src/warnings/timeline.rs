//! The window over time: whether it kept its level, and whether it was long enough to tell.

use super::thresholds::{CHANGE_MIN, CHANGE_P_MAX, ERROR_MAX, INTERVALS_MIN};
use super::{Said, percent};
use crate::stats::{change, relative_error};
use crate::summary::{Interval, Outcome, Phase, Summary};

/// An interval counts if it has this part of the longest one's length: the ends may be cut.
const WHOLE: f64 = 0.9;

pub(super) fn look(step: &Summary, said: &mut Said) {
    if step.measured_s > 0.0 && step.totals.ops == 0 {
        return nothing_completed(step, said);
    }
    if step.outcome != Outcome::Completed || step.timeline.is_empty() {
        return;
    }
    let (what, values) = series(step);
    if values.len() < INTERVALS_MIN {
        said.warn(
            "too_short",
            format!(
                "the window of {} s has {} whole interval{} of the timeline: too few to tell its \
                 noise",
                decimals(step.measured_s),
                values.len(),
                if values.len() == 1 { "" } else { "s" }
            ),
        );
        return;
    }
    let found = change(&values).filter(|change| {
        let level = change.before.max(change.after);
        change.p <= CHANGE_P_MAX && (change.after - change.before).abs() > CHANGE_MIN * level
    });
    if let Some(change) = found {
        let by = percent((change.after / change.before.max(f64::MIN_POSITIVE) - 1.0).abs());
        let up = if change.after > change.before { "rose" } else { "fell" };
        let (code, message) = if change.drift {
            ("drift", format!("{what} {up} all the time, by {by} from the first part to the last"))
        } else {
            let at = decimals(change.at * step.measured_s);
            (
                "level_change",
                format!("{what} {up} by {by}, {at} s into the window, and stayed there"),
            )
        };
        said.warn(code, message);
        return;
    }
    if step.plan.rate.is_none()
        && let Some(error) = relative_error(&values).filter(|error| *error > ERROR_MAX)
    {
        said.warn(
            "too_short",
            format!(
                "the window of {} s is too short for its noise: the rate is known to ±{} only",
                decimals(step.measured_s),
                percent(error)
            ),
        );
    }
}

/// Rates of nothing say nothing, whatever became of the ops.
fn nothing_completed(step: &Summary, said: &mut Said) {
    let (issued, given_up) = (step.latency.service.count, step.totals.abandoned);
    let became = [
        (issued.saturating_sub(given_up), "ended after it"),
        (step.latency.failed.count, "failed"),
        (given_up, "got no answer"),
    ];
    let became: Vec<String> =
        became.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if !became.is_empty() {
        let (window, became) = (decimals(step.measured_s), became.join(", "));
        let message = format!(
            "no op was completed in the window of {window} s, so its rates say nothing: {became}"
        );
        said.warn("nothing_completed", message);
    }
}

/// Ops a second of the whole intervals; of an open loop, whose rate is given, the median service
/// time.
fn series(step: &Summary) -> (&'static str, Vec<f64>) {
    let measured: Vec<&Interval> =
        step.timeline.iter().filter(|entry| entry.phase == Phase::Measure).collect();
    let longest = measured.iter().map(|entry| entry.length_s).fold(0.0, f64::max);
    let whole = measured.into_iter().filter(|e| e.length_s >= WHOLE * longest && longest > 0.0);
    if step.plan.rate.is_some() {
        return ("the median service time", whole.filter_map(|entry| entry.p50_us).collect());
    }
    ("the rate", whole.map(|entry| entry.ops as f64 / entry.length_s).collect())
}

fn decimals(seconds: f64) -> String {
    let text = format!("{seconds:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}
