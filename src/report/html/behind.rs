//! What stands behind the numbers of a table, in one line: whether the server counted the same,
//! whose the numbers are, how busy the client was, what it could have done, and where it ran.

use std::collections::{BTreeMap, BTreeSet};

use super::super::escape::clip;
use super::super::number::number;
use super::super::pivot::Table;
use crate::summary::{Summary, VerdictKind, counter};

/// How much more or less than the window the server's counters may cover to be held against it.
const COVERED_MORE_MAX: f64 = 0.01;

/// Longest name of a host, characters.
const NAME_MAX: usize = 60;

/// The line below a table.
pub(super) fn line(table: &Table) -> String {
    let steps: Vec<&Summary> = table.lines.iter().flat_map(|line| &line.steps).copied().collect();
    let facts = [
        Some(counted(&steps)),
        verdicts(&steps),
        busy(&steps),
        Some(ceiling(&steps)),
        place(&steps),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The server's count of statements in percent of the client's, over what the readings cover.
fn counted(steps: &[&Summary]) -> String {
    let told: Vec<Result<f64, String>> = steps.iter().map(|step| share(step)).collect();
    let shares: Vec<f64> = told.iter().flatten().copied().collect();
    if shares.is_empty() {
        // Of different reasons one is told.
        let why = told.into_iter().find_map(Result::err).unwrap_or_default();
        return format!("the server's count of statements is not held against the client's: {why}");
    }
    let some = if shares.len() < steps.len() {
        format!(" ({} of {} steps)", shares.len(), steps.len())
    } else {
        String::new()
    };
    format!("the server counted {}% of the client's statements{some}", range(&shares, 1))
}

/// The same of one step, or why not.
fn share(step: &Summary) -> Result<f64, String> {
    let Some(status) = &step.server.status else {
        return Err("its counters could not be read".to_owned());
    };
    let covered = step.covered_s(status.first_s).ok_or("nothing was measured")?;
    // Where the readings cover much more, the rate outside the window is not known.
    if (covered - step.measured_s).abs() > step.measured_s * COVERED_MORE_MAX {
        let off = number(status.first_s.abs(), 2);
        let how = if status.first_s < 0.0 { "before" } else { "after" };
        return Err(format!("its counters were read {off} s {how} the window's start"));
    }
    let counted = step.status().and_then(|status| counter(status, &["Questions"]));
    let counted = counted.ok_or("its counters were reset within the window")?;
    let share = 100.0 * counted / (step.totals.qps * covered);
    if share.is_finite() { Ok(share) } else { Err("the client had no answer".to_owned()) }
}

/// Smallest and largest, once where they look the same.
fn range(values: &[f64], decimals: usize) -> String {
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    let (low, high) = (format!("{low:.decimals$}"), format!("{high:.decimals$}"));
    if low == high { low } else { format!("{low} to {high}") }
}

/// How many steps have which verdict.
fn verdicts(steps: &[&Summary]) -> Option<String> {
    let mut kinds: BTreeMap<VerdictKind, usize> = BTreeMap::new();
    for verdict in steps.iter().filter_map(|step| step.verdict.as_ref()) {
        *kinds.entry(verdict.kind).or_default() += 1;
    }
    let named: Vec<String> =
        kinds.iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    (!named.is_empty()).then(|| format!("verdicts on the steps: {}", named.join(", ")))
}

/// The busiest of a step's engine threads, and the CPU of an op.
fn busy(steps: &[&Summary]) -> Option<String> {
    let busiest = |step: &&Summary| {
        let looked: Vec<f64> = match &step.client.share {
            Some(share) => share.threads.iter().map(|thread| thread.busy).collect(),
            None => step.client.threads.iter().map(|thread| thread.busy).collect(),
        };
        looked.into_iter().max_by(f64::total_cmp).map(|busy| busy * 100.0)
    };
    let shares: Vec<f64> = steps.iter().filter_map(busiest).collect();
    let costs: Vec<f64> = steps.iter().filter_map(|step| step.client.us_per_op).collect();
    let cost = (!costs.is_empty()).then(|| format!(", {} µs CPU an op", range(&costs, 1)));
    (!shares.is_empty()).then(|| {
        let cost = cost.unwrap_or_default();
        format!("the client's busiest thread was {}% busy{cost}", range(&shares, 0))
    })
}

/// What part of what this host can generate was asked of it.
fn ceiling(steps: &[&Summary]) -> String {
    let part = |step: &&Summary| {
        let ceiling = step.client.share.as_ref()?.ceiling.as_ref()?;
        let part = 100.0 * step.totals.qps / ceiling.qps;
        part.is_finite().then_some(part)
    };
    let parts: Vec<f64> = steps.iter().filter_map(part).collect();
    if parts.is_empty() {
        "the client's ceiling is not known (loadgen calibrate measures it)".to_owned()
    } else {
        format!("the client did {}% of what its calibration says it can", range(&parts, 0))
    }
}

/// Where client and server ran.
fn place(steps: &[&Summary]) -> Option<String> {
    let places: BTreeSet<String> = steps
        .iter()
        .map(|step| {
            let client = &step.client;
            let on = format!("{} ({} cores)", clip(&client.host, NAME_MAX), client.cores);
            if client.same_host {
                format!("client and server on {on}, by {}", clip(&step.server.transport, NAME_MAX))
            } else {
                format!("client on {on}, server {}", clip(&step.server.host, NAME_MAX))
            }
        })
        .collect();
    let away = steps.iter().filter(|step| !step.client.same_host);
    let trips: Vec<f64> = away.filter_map(|step| step.client.rtt_us).collect();
    let trip = (!trips.is_empty()).then(|| format!(", round trip {} µs", range(&trips, 0)));
    let mut places = places.into_iter();
    let first = places.next()?;
    let more = match places.count() {
        0 => String::new(),
        1 => ", and one more place".to_owned(),
        more => format!(", and {more} more places"),
    };
    Some(format!("{first}{more}{}", trip.unwrap_or_default()))
}
