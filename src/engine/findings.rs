//! What a reader of a step must know beside its numbers: errors, outages, whether an open loop kept
//! its rate. All sentences of the engine, and their thresholds.

use super::Run;
use super::live_line::millis;
use super::pacing::{LATE, PacingCounts};
use super::step::StepContext;
use crate::error::plain;
use crate::judge::changed_after;
use crate::observe::host;
use crate::plan::{Arrival, Step, units};
use crate::summary::{Interval, Phase, SettingChange};
use crate::terms::Value::{Grouped, Number};
use crate::terms::{Code, Finding, finding};

/// A rate is not sustained where more than this part of the window's arrivals waits at its end.
const BACKLOG_MAX: f64 = 0.01;
/// A backlog grows where every interval of the last third has a larger median response time than
/// any of the first third. Fewer intervals a third tell nothing.
const THIRD_MIN: usize = 2;
/// A share of the window from which on a reading inside it is worth a word.
const LATE_READING: f64 = 0.05;

/// Finds what must be said of a step. `changed` are the server's settings that differ after it.
pub(super) fn of_step(
    run: &Run,
    context: &StepContext<'_>,
    step: &Step,
    changed: Option<&[SettingChange]>,
) -> Vec<Finding> {
    let mut found = of_any(run, context);
    found.extend(changed_after(changed));
    if let (Some(rate), Some(counts)) = (step.rate, &run.counts.paced) {
        let most = rate * context.plan.warmup.as_secs_f64() / LATE as f64;
        let response = run.timeline.window.paced.as_ref().map(|paced| &paced.response);
        let usual_us = response.and_then(|response| response.percentile_us(99.0));
        found.extend(of_warmup(counts, most.max(f64::from(step.clients)), usual_us));
        found.extend(not_sustained(run, context, step, rate, counts));
    }
    // What an op cost on the server's host is of the time from its first reading on.
    let first_s = run.probed.as_ref().map(|probed| probed.first_s);
    if let Some(first_s) = first_s.filter(|s| *s > LATE_READING * run.measured_s) {
        found.push(finding!(LateReading, Number(first_s, 1)));
    }
    found
}

fn of_any(run: &Run, context: &StepContext<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    if cfg!(debug_assertions) {
        found.push(finding!(DebugBuild));
    }
    if let Some(root) = host::recorded() {
        let root = plain(&root.display().to_string());
        found.push(finding!(RecordedHost, host::ROOT_VARIABLE, root));
    }
    let of_ops = run.errors.iter().filter(|e| e.class != "connect");
    let errors: u64 = of_ops.map(|e| e.count).sum();
    if errors > 0 {
        found.push(finding!(Errors, errors));
    }
    let abandoned = run.abandoned();
    if abandoned > 0 {
        found.push(match context.plan.policy.op_timeout {
            Some(limit) => finding!(GivenUp, abandoned, units::duration(limit)),
            None => finding!(Abandoned, abandoned),
        });
    }
    let reconnects = run.counts.failures.reconnects;
    if reconnects > 0 {
        found.push(finding!(Reconnects, reconnects));
    }
    if !run.outages.is_empty() {
        let longest = run.outages.iter().map(|o| o.gap_s).fold(0.0, f64::max);
        let (n, noun) = (run.outages.len(), if run.outages.len() == 1 { "time" } else { "times" });
        found.push(finding!(Outages, format!("{n} {noun}"), Number(longest, 1)));
    }
    if run.status.is_none() {
        found.push(finding!(NoStatus));
    }
    let untouched = run.counts.accounts.iter().any(|account| account.ops == 0);
    if context.tables.count > 1 && untouched && run.timeline.window.ops > 0 {
        found.push(finding!(UnusedTables));
    }
    found
}

fn not_sustained(
    run: &Run,
    context: &StepContext<'_>,
    step: &Step,
    rate: f64,
    counts: &PacingCounts,
) -> Option<Finding> {
    let waiting = waiting(counts);
    let grew = grew(&run.timeline.entries);
    let even = context.plan.arrival == Arrival::Uniform;
    let there = run.measured_s > 0.0 && backlog(waiting, counts.intended, step.clients, even, grew);
    there.then(|| {
        let code = if grew { Code::Growing } else { Code::NotSustained };
        let tps = run.timeline.window.ops as f64 / run.measured_s;
        Finding { code, values: [tps, rate, waiting].map(Grouped).to_vec() }
    })
}

/// Tells what the window took over from its warm-up, if that is worth a word: some arrivals always wait
/// by chance, so it takes more than `most` of them, or a wait that is longer than is usual later.
fn of_warmup(counts: &PacingCounts, most: f64, usual_us: Option<f64>) -> Option<Finding> {
    let left = counts.warmup_left as f64;
    let late_us = counts.warmup_late as f64 / 1e3;
    if left > most {
        Some(finding!(WarmupBacklog, Grouped(left)))
    } else if usual_us.is_some_and(|usual_us| late_us > usual_us) {
        Some(finding!(WarmupLate, Grouped(left), millis(late_us)))
    } else {
        None
    }
}

/// Says whether so many arrivals wait for another reason than chance. Random ones come in bursts of the
/// root of their number; evenly spaced ones do not, nor do waits that grow follow from bursts.
fn backlog(waiting: f64, intended: u64, clients: u32, even: bool, grew: bool) -> bool {
    let part = BACKLOG_MAX * intended as f64;
    let chance = 3.0 * (intended as f64).sqrt();
    let more = part.max(f64::from(clients));
    (waiting > part && waiting > chance)
        || (even && waiting > more)
        || (grew && waiting > more.min(chance))
}

fn waiting(counts: &PacingCounts) -> f64 {
    counts.behind.max(counts.backlog as f64)
}

fn grew(timeline: &[Interval]) -> bool {
    let measured = timeline.iter().filter(|entry| entry.phase == Phase::Measure);
    let medians: Vec<f64> = measured.filter_map(|entry| entry.response_p50_us).collect();
    let third = medians.len() / 3;
    if third < THIRD_MIN {
        return false;
    }
    let (first, last) = (medians.iter().take(third), medians.iter().rev().take(third));
    let largest = first.copied().fold(0.0, f64::max);
    last.copied().fold(f64::INFINITY, f64::min) > largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_warm_up_leaves_is_told_where_it_is_much_or_late() {
        let of = |warmup_left, late_ms: u64| {
            let warmup_late = late_ms * 1_000_000;
            let counts = PacingCounts { warmup_left, warmup_late, ..PacingCounts::default() };
            of_warmup(&counts, 64.0, Some(2_000.0))
        };
        assert_eq!(of(0, 0), None);
        assert_eq!(of(5, 1), None, "as others do");
        let late = of(5, 80).expect("later than they");
        assert_eq!(late.code, Code::WarmupLate);
        let text = late.to_string();
        assert!(text.starts_with("5 arrivals") && text.contains("80.00 ms"));
        assert_eq!(of(65, 80).expect("too many").code, Code::WarmupBacklog);
    }

    fn entry(response_p50_us: f64) -> Interval {
        Interval {
            phase: Phase::Measure,
            start_s: 0.0,
            length_s: 1.0,
            ops: 1,
            errors: 0,
            p50_us: None,
            p99_us: None,
            max_us: None,
            response_p50_us: Some(response_p50_us),
            response_p99_us: None,
            response_max_us: None,
        }
    }

    #[test]
    fn what_waits_is_no_chance_where_it_is_even_or_grows() {
        // Ten seconds at 106 a second of a server that does 98.
        assert!(backlog(78.0, 1_060, 8, true, false));
        assert!(backlog(78.0, 1_060, 8, false, true));
        assert!(!backlog(78.0, 1_060, 8, false, false), "a burst may do that");
        assert!(backlog(98.0, 1_060, 8, false, false));
        assert!(!backlog(10.0, 1_060, 8, true, true), "less than a hundredth");
        assert!(!backlog(78.0, 1_060, 80, true, true), "one a client");
        assert!(!backlog(990.0, 100_000, 8, true, false));
        assert!(backlog(990.0, 100_000, 8, true, true), "more than by chance, and growing");
    }

    #[test]
    fn a_backlog_grows_only_where_the_end_is_worse_than_all_of_the_beginning() {
        let growing: Vec<Interval> = (1..=12).map(|i| entry(f64::from(i))).collect();
        assert!(grew(&growing));
        assert!(grew(&growing[..6]));
        assert!(!grew(&growing[..5]), "too few to tell");
        let mut stall = vec![entry(1.0); 12];
        stall[10] = entry(1e6);
        assert!(!grew(&stall), "one stall that was made good");
    }
}
