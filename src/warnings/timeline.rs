//! The window over time: whether it kept its level, and whether it was long enough to tell.

use super::thresholds::{CHANGE_MIN, CHANGE_P_MAX, ERROR_MAX, INTERVALS_MIN};
use super::{Said, percent};
use crate::stats::{Change, change, relative_error};
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
    let (first, then) = series(step);
    if first.values.len() < INTERVALS_MIN {
        let which = if step.plan.rate.is_some() { "with an answer" } else { "of the timeline" };
        said.warn(
            "too_short",
            format!(
                "the window of {} s has {} whole interval{} {which}: too few to tell its noise",
                decimals(step.measured_s),
                first.values.len(),
                if first.values.len() == 1 { "" } else { "s" }
            ),
        );
        return;
    }
    let all = || [Some(&first), then.as_ref()].into_iter().flatten();
    if let Some((series, change)) = all().find_map(|series| Some((series, series.change()?))) {
        let what = series.what;
        let by = percent((change.after / change.before.max(f64::MIN_POSITIVE) - 1.0).abs());
        let up = if change.after > change.before { "rose" } else { "fell" };
        let (code, message) = if change.drift {
            ("drift", format!("{what} {up} all the time, by {by} from the first part to the last"))
        } else {
            let at = decimals(series.second(change.at));
            (
                "level_change",
                format!("{what} {up} by {by}, {at} s into the window, and stayed there"),
            )
        };
        said.warn(code, message);
        return;
    }
    let told = then.unwrap_or(first);
    if let Some(error) = relative_error(&told.values).filter(|error| *error > ERROR_MAX) {
        // A rate that may as well be 0 is not known at all.
        let known = if error < 1.0 {
            format!("known to ±{} only", percent(error))
        } else {
            "not known".to_owned()
        };
        let (window, what) = (decimals(step.measured_s), told.what);
        let text =
            format!("the window of {window} s is too short for its noise: {what} is {known}");
        said.warn("too_short", text);
    }
}

/// Rates of nothing say nothing, whatever became of the ops.
fn nothing_completed(step: &Summary, said: &mut Said) {
    let (issued, given_up) = (step.latency.service.count, step.totals.abandoned);
    let became = [
        (issued.saturating_sub(given_up), "ended after it"),
        (step.latency.failed.count, "failed"),
        (step.latency.in_doubt.unwrap_or(step.totals.in_doubt), "are in doubt"),
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

/// What the whole intervals tell; one may have had no answer, and then tells nothing of times.
struct Series {
    what: &'static str,
    values: Vec<f64>,
    /// Where the interval of each begins, seconds into the window.
    starts_s: Vec<f64>,
}

impl Series {
    /// A change that matters.
    fn change(&self) -> Option<Change> {
        change(&self.values).filter(|change| {
            let level = change.before.max(change.after);
            change.p <= CHANGE_P_MAX && (change.after - change.before).abs() > CHANGE_MIN * level
        })
    }

    /// The instant of a part of the series.
    fn second(&self, part: f64) -> f64 {
        let at = (part * self.values.len() as f64).round() as usize;
        self.starts_s.get(at).copied().unwrap_or(0.0)
    }
}

/// Ops a second. Of an open loop, whose rate is given, the median times: the service's, and the
/// response's, unless it is known already that these grew because the rate was too high.
fn series(step: &Summary) -> (Series, Option<Series>) {
    let measured: Vec<&Interval> =
        step.timeline.iter().filter(|entry| entry.phase == Phase::Measure).collect();
    let longest = measured.iter().map(|entry| entry.length_s).fold(0.0, f64::max);
    let begin_s = measured.first().map_or(0.0, |entry| entry.start_s);
    let of = |what, value: fn(&Interval) -> Option<f64>| {
        let whole = measured.iter().filter(|e| e.length_s >= WHOLE * longest && longest > 0.0);
        let (starts_s, values) =
            whole.filter_map(|entry| Some((entry.start_s - begin_s, value(entry)?))).unzip();
        Series { what, values, starts_s }
    };
    if step.plan.rate.is_none() {
        return (of("the rate", |entry| Some(entry.ops as f64 / entry.length_s)), None);
    }
    let sustained = step.warnings.iter().all(|warning| warning.code != "target_not_sustained");
    let response = of("the median response time", |entry| entry.response_p50_us);
    let service = of("the median service time", |entry| entry.p50_us);
    (service, Some(response).filter(|series| sustained && !series.values.is_empty()))
}

fn decimals(seconds: f64) -> String {
    let text = format!("{seconds:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}
