//! Steps, loads and suites as they are told when they have ended.

use crate::engine;
use crate::plan::units;
use crate::stats::is_scarce;
use crate::summary::{Summary, VerdictKind};
use crate::terms;

/// One step, as a line that stays: an open loop's with the response time, a closed one has no
/// other than the service time.
pub(super) fn step(summary: &Summary) -> String {
    let (totals, plan) = (&summary.totals, &summary.plan);
    let ms = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), engine::millis);
    let errors: u64 = totals.errors.iter().map(|e| e.count).sum();
    let mark = summary.outcome.mark();
    let verdict = summary.verdict.as_ref().map(|verdict| verdict.kind);
    let verdict = match verdict.filter(|kind| *kind != VerdictKind::Ok) {
        Some(kind) => format!(", {}", kind.name()),
        None => String::new(),
    };
    let rate = plan.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
    let (name, times) = match &summary.latency.response {
        Some(response) => ("response", response),
        None => ("service", &summary.latency.service),
    };
    let percentile = |p: f64, us: Option<f64>| ms(us.filter(|_| !is_scarce(p, times.count)));
    let more = [
        (totals.abandoned, "abandoned"),
        (totals.in_doubt, "in doubt"),
        (totals.reconnects, "reconnects"),
        (summary.outages.len() as u64, "outages"),
    ];
    let more = more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {n} {what}"));
    let more: String = more.collect();
    format!(
        "{} {}{rate}: {:.0} QPS, {name} time p50 {}, p99 {}, max {}, {errors} errors{more}\
         {verdict}{mark}",
        summary.workload.name,
        terms::clients(plan.clients),
        totals.qps,
        percentile(50.0, times.p50_us),
        percentile(99.0, times.p99_us),
        ms(times.max_us),
    )
}

/// One load, as a line that stays.
pub(super) fn load(summary: &Summary) -> String {
    let mark = summary.outcome.mark();
    let (per_s, statements) =
        summary.load.as_ref().map_or((0.0, 0), |load| (load.rows_per_s, load.statements));
    format!(
        "{}: {} rows in {:.3} s, {per_s:.0} rows/s, {statements} statements, client CPU {:.2} s \
         user {:.2} s system{mark}",
        summary.workload.name,
        units::count(summary.totals.rows),
        summary.measured_s,
        summary.client.user_s,
        summary.client.sys_s,
    )
}

/// One suite, as a line that stays.
pub(super) fn suite(summary: &Summary) -> String {
    let tests = summary.suite.as_ref().map_or(0, |suite| suite.tests.len());
    let mark = summary.outcome.mark();
    format!(
        "{}: {} of {tests} tests in {:.3} s, CPU {:.2} s user {:.2} s system{mark}",
        summary.workload.name,
        summary.totals.ops,
        summary.measured_s,
        summary.client.user_s,
        summary.client.sys_s,
    )
}
