//! What a reader of a step must know beside its numbers: errors, outages, whether an open loop kept
//! its rate. All sentences of the engine, and their thresholds.

use super::Run;
use super::live_line::millis;
use super::pacing::{LATE, PacingCounts};
use super::step::StepContext;
use crate::error::plain;
use crate::observe::host;
use crate::plan::{Arrival, Step, units};
use crate::summary::identity::after;
use crate::summary::{Interval, Phase, SettingChange, Warning};

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
) -> Vec<Warning> {
    let mut found = of_any(run, context);
    found.extend(after(changed));
    if let (Some(rate), Some(counts)) = (step.rate, &run.counts.paced) {
        let most = rate * context.plan.warmup.as_secs_f64() / LATE as f64;
        let response = run.timeline.paced.as_ref().map(|paced| &paced.response);
        let usual_us = response.and_then(|response| response.percentile_us(99.0));
        found.extend(of_warmup(counts, most.max(f64::from(step.clients)), usual_us));
        found.extend(not_sustained(run, context, step, rate, counts));
    }
    // What an op cost on the server's host is of the time from its first reading on.
    let first_s = run.probed.as_ref().map(|probed| probed.first_s);
    if let Some(first_s) = first_s.filter(|s| *s > LATE_READING * run.measured_s) {
        let text = format!(
            "the server's host was first read {first_s:.1} s after the window's start: what an op \
             cost there is of the rest of it"
        );
        found.push(warning("late_reading", text));
    }
    found
}

fn warning(code: &str, message: String) -> Warning {
    Warning { code: code.to_owned(), message }
}

fn of_any(run: &Run, context: &StepContext<'_>) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut warn = |code: &str, message: String| found.push(warning(code, message));
    if cfg!(debug_assertions) {
        warn("debug_build", "measured with a debug build of loadgen".to_owned());
    }
    if let Some(root) = host::recorded() {
        let root = plain(&root.display().to_string());
        warn(
            "recorded_host",
            format!("{} is set: the client's host was read below {root}", host::ROOT_VARIABLE),
        );
    }
    let of_ops = run.errors.iter().filter(|e| e.class != "connect");
    let errors: u64 = of_ops.map(|e| e.count).sum();
    if errors > 0 {
        warn("errors", format!("{errors} ops failed; they are not in the rates"));
    }
    let abandoned = run.abandoned();
    if abandoned > 0 {
        let when = match context.plan.policy.op_timeout {
            Some(limit) => format!("within {} or ", units::duration(limit)),
            None => String::new(),
        };
        let text = format!("{abandoned} ops got no answer {when}by the end of the drain");
        warn("abandoned", text);
    }
    let reconnects = run.counts.failures.reconnects;
    if reconnects > 0 {
        warn("reconnects", format!("{reconnects} connections were lost and opened again"));
    }
    if !run.outages.is_empty() {
        let longest = run.outages.iter().map(|o| o.gap_s).fold(0.0, f64::max);
        let (n, noun) = (run.outages.len(), if run.outages.len() == 1 { "time" } else { "times" });
        let text = format!("nobody was served {n} {noun}, for up to {longest:.1} s");
        warn("outages", text);
    }
    if run.status.is_none() {
        warn("no_status", "the server's status counters could not be read".to_owned());
    }
    let untouched = run.counts.accounts.iter().any(|account| account.ops == 0);
    if context.tables.count > 1 && untouched && run.timeline.window.ops > 0 {
        warn("unused_tables", "some tables were not touched in the window".to_owned());
    }
    found
}

fn not_sustained(
    run: &Run,
    context: &StepContext<'_>,
    step: &Step,
    rate: f64,
    counts: &PacingCounts,
) -> Option<Warning> {
    let waiting = waiting(counts);
    let grew = grew(&run.timeline.entries);
    let even = context.plan.arrival == Arrival::Uniform;
    let there = run.measured_s > 0.0 && backlog(waiting, counts.intended, step.clients, even, grew);
    there.then(|| {
        let how = if grew { ", more and more of them" } else { "" };
        let text = format!(
            "target not sustained: {} of {}/s; {} arrivals waited at the end{how}",
            grouped(run.timeline.window.ops as f64 / run.measured_s),
            grouped(rate),
            grouped(waiting)
        );
        warning("target_not_sustained", text)
    })
}

/// Tells what the window took over from its warm-up, if that is worth a word: some arrivals always wait
/// by chance, so it takes more than `most` of them, or a wait that is longer than is usual later.
fn of_warmup(counts: &PacingCounts, most: f64, usual_us: Option<f64>) -> Option<Warning> {
    let left = counts.warmup_left as f64;
    let late_us = counts.warmup_late as f64 / 1e3;
    let waited =
        format!("{} arrivals of the warm-up still waited when the window began", grouped(left));
    let (code, message) = if left > most {
        ("warmup_backlog", waited)
    } else if usual_us.is_some_and(|usual_us| late_us > usual_us) {
        let late = millis(late_us);
        let so = "its first response times have this in them";
        ("warmup_late", format!("{waited}, for up to {late}: {so}"))
    } else {
        return None;
    };
    Some(warning(code, message))
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

/// Writes a number with its thousands apart; below 100 with a decimal.
fn grouped(number: f64) -> String {
    if number < 100.0 {
        let text = format!("{number:.1}");
        return text.strip_suffix(".0").unwrap_or(&text).to_owned();
    }
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in
            [(0.5, "0.5"), (9.0, "9"), (100.0, "100"), (9120.4, "9,120"), (1e7, "10,000,000")]
        {
            assert_eq!(grouped(number), text);
        }
    }

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
        assert_eq!(late.code, "warmup_late");
        assert!(late.message.starts_with("5 arrivals") && late.message.contains("80.00 ms"));
        assert_eq!(of(65, 80).expect("too many").code, "warmup_backlog");
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
