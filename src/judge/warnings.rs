//! What a reader of a step's numbers must know, told from its summary alone. docs/warnings.md has
//! every code with its meaning, threshold and source.

use super::thresholds::{
    CHANGE_MIN, CHANGE_P_MAX, CHECKPOINT_AGE_MAX, CLOCK_LOSS_MAX, DEVIATIONS, DIRTY_MAX, ERROR_MAX,
    FREE_PAGES_MAX, HALF_ON_MIN, HISTORY_MAX, HOTTEST_MAX, INTERVALS_MIN, LINK_MAX,
    MISSES_CHANGE_MAX, RESTORED_S, SETTLED_DIRTY, SETTLED_HISTORY, SWAPPED_MAX, WHOLE_INTERVAL,
};
use crate::stats::{Change, change, relative_error};
use crate::summary::{
    Conditions, HostState, Interval, Levels, Outcome, Phase, Sample, Settled, Summary, counter,
};
use crate::terms::Value::{Number, Seconds, Share};
use crate::terms::{Class, Code, Finding, finding};

const QUOTED_MAX: usize = 120;

/// Finds what is to be said of a step beside what its run said already.
pub(crate) fn warnings(step: &Summary) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(pool(step));
    if let Some(conditions) = &step.conditions {
        before(step, conditions, &mut found);
    }
    found.extend(query_cache(step));
    server(step, &mut found);
    found.extend(window(step));
    found.extend(skew(step));
    hosts(step, &mut found);
    found
}

fn pool(step: &Summary) -> Option<Finding> {
    if step.server.class != Some(Class::IoBound) {
        return None;
    }
    match step.data_bytes().zip(step.server.buffer_pool_bytes) {
        Some((data, pool)) if data <= pool => Some(finding!(ColdPool, data >> 20, pool >> 20)),
        _ => warming(step, step.conditions.as_ref()?),
    }
}

fn before(step: &Summary, conditions: &Conditions, found: &mut Vec<Finding>) {
    found.extend(unexpected(step, conditions));
    let settle = conditions.before.as_ref().and_then(|before| before.settle.as_ref());
    if let Some(settle) = settle.filter(|settle| !settle.complete) {
        unsettled(settle, found);
    }
    if let Some(levels) = &conditions.at_start {
        found.extend(restored(levels));
        found.extend(debt(step, levels));
    }
}

/// What `--settle` waits for, by what the server tells.
pub(crate) struct Left {
    /// Says that there is more of it than `--settle` is content with.
    pub(crate) more: bool,
    pub(crate) unknown: Vec<&'static str>,
}

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
    [dirty, history].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn unsettled(settle: &Settled, found: &mut Vec<Finding>) {
    if left(&settle.last).more {
        let levels = levels_in_words(&settle.last);
        found.push(finding!(NotSettled, Number(settle.took_s, 0), levels));
    }
    if !settle.unknown.is_empty() {
        found.push(finding!(SettleUnknown, settle.unknown.join(" and ")));
    }
}

/// Looks at a pool that is smaller than the data: it is warm when it is full and misses no more and
/// no less than before.
fn warming(step: &Summary, conditions: &Conditions) -> Option<Finding> {
    let (first, last) = conditions.window.first().zip(conditions.window.last())?;
    let pages = conditions.at_start.as_ref().and_then(|levels| levels.pool_pages);
    if let Some((free, pages)) = first.pool_free_pages.zip(pages.filter(|pages| *pages > 0)) {
        let part = |free: u64| free as f64 / pages as f64;
        if part(free) > FREE_PAGES_MAX {
            let left = part(last.pool_free_pages.unwrap_or(free));
            return Some(finding!(FillingPool, Share(part(free)), Share(left)));
        }
    }
    let third = |from: usize| -> Option<(f64, f64)> {
        let (a, b) = (conditions.window.get(from)?, conditions.window.get(from + 1)?);
        let misses = b.pool_reads?.checked_sub(a.pool_reads?)? as f64;
        Some((misses, ops_between(step, a, b)))
    };
    let ((early, early_ops), (late, late_ops)) = third(0).zip(third(2))?;
    if early_ops <= 0.0 || late_ops <= 0.0 {
        return None;
    }
    let (first, last) = (early / early_ops, late / late_ops);
    // Of two counts of one rate: the variance of a count is the count.
    let chance = (early / early_ops.powi(2) + late / late_ops.powi(2)).sqrt();
    let least = (MISSES_CHANGE_MAX * first.max(last)).max(DEVIATIONS * chance);
    let code = if first > last { Code::WarmingPool } else { Code::CoolingPool };
    let values = vec![Number(first, 3), Number(last, 3)];
    ((first - last).abs() > least).then_some(Finding { code, values })
}

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

fn unexpected(step: &Summary, conditions: &Conditions) -> Option<Finding> {
    let (wanted, found) = conditions.expected_class.zip(step.server.class)?;
    let [data, pool] = [step.data_bytes(), step.server.buffer_pool_bytes].map(|bytes| {
        bytes.map_or_else(|| "unknown".to_owned(), |bytes| format!("{} MiB", bytes >> 20))
    });
    (wanted != found)
        .then(|| finding!(UnexpectedClass, wanted.to_string(), found.to_string(), data, pool))
}

/// Looks for a pool that the server filled from a file: another state than that of a server without
/// one.
fn restored(levels: &Levels) -> Option<Finding> {
    let load = levels.pool_load.as_ref()?;
    let lower = load.to_ascii_lowercase();
    let clipped: String = load.chars().take(QUOTED_MAX).collect();
    if lower.starts_with("loaded ") || lower.starts_with("loading buffer pool") {
        return Some(finding!(RestoringPool, clipped));
    }
    let recently = levels.uptime_s.is_some_and(|uptime| uptime <= RESTORED_S);
    // Tables that were made since then were not in the file. Both are whole seconds, read one
    // after the other.
    let older = levels.tables_age_s.zip(levels.uptime_s).is_some_and(|(age, up)| age > up + 1);
    let restored = lower.contains("load completed") && recently && older;
    restored.then(|| finding!(RestoredPool, clipped))
}

fn log_bytes(step: &Summary) -> Option<u64> {
    let number = |name: &str| variable(step, name)?.parse::<u64>().ok();
    let files = number("innodb_log_files_in_group").unwrap_or(1);
    number("innodb_redo_log_capacity")
        .or_else(|| number("innodb_log_file_size")?.checked_mul(files))
}

/// Tells what the test before left to be written and purged, which this one pays for.
fn debt(step: &Summary, levels: &Levels) -> Option<Finding> {
    let above = |part: Option<(u64, u64)>, limit: f64| {
        let (part, of) = part.filter(|(_, of)| *of > 0)?;
        Some(part as f64 / of as f64).filter(|part| *part > limit).map(Share)
    };
    let most = levels.checkpoint_age_max_bytes.or_else(|| log_bytes(step));
    let dirty = above(levels.pool_dirty_pages.zip(levels.pool_pages), DIRTY_MAX);
    let age = above(levels.checkpoint_age_bytes.zip(most), CHECKPOINT_AGE_MAX);
    let history = levels.history_list_length.filter(|length| *length > HISTORY_MAX);
    let debts = [
        dirty.map(|part| format!("{part} of the buffer pool's pages were dirty")),
        age.map(|part| format!("the checkpoint's age was {part} of the most it may be")),
        history.map(|length| format!("the history list held {length} transactions")),
    ];
    let debts: Vec<String> = debts.into_iter().flatten().collect();
    (!debts.is_empty()).then(|| finding!(Debt, debts.join(", ")))
}

fn variable<'a>(step: &'a Summary, name: &str) -> Option<&'a str> {
    step.server.variables.get(name).map(String::as_str)
}

fn server(step: &Summary, found: &mut Vec<Finding>) {
    let on = |name: &str| matches!(variable(step, name), Some("ON" | "1"));
    let every = variable(step, "long_query_time").and_then(|v| v.parse::<f64>().ok()) == Some(0.0);
    // They cost more than some differences that are measured.
    let logs = [
        (on("general_log"), "the general log"),
        (on("slow_query_log") && every, "the slow query log (long_query_time 0)"),
    ];
    let logs: Vec<&str> = logs.iter().filter(|(on, _)| *on).map(|(_, what)| *what).collect();
    if !logs.is_empty() {
        found.push(finding!(Instrumented, logs.join(" and ")));
    }
    let wrong = || step.totals.errors.iter().filter(|error| error.class == "wrong");
    let count: u64 = wrong().map(|error| error.count).sum();
    if let Some(first) = wrong().next() {
        let message: String = first.message.chars().take(QUOTED_MAX).collect();
        found.push(finding!(WrongAnswers, count, message));
    }
    let restarted_s = step.server.status.as_ref().and_then(|status| status.restarted_s);
    found.extend(restarted_s.map(|at_s| finding!(Restarted, Number(at_s.max(0.0), 0))));
}

/// Looks for a cache of answers: what it answers, nobody computed.
fn query_cache(step: &Summary) -> Option<Finding> {
    let on = variable(step, "query_cache_type").is_some_and(|v| !matches!(v, "OFF" | "0"));
    let bytes = variable(step, "query_cache_size").and_then(|v| v.parse::<u64>().ok());
    let kib = bytes.filter(|bytes| on && *bytes > 0)? >> 10;
    let hits = step.status().and_then(|status| counter(status, &["Qcache_hits"]));
    Some(match hits {
        Some(hits) => finding!(QueryCacheHits, kib, Number(hits, 0)),
        None => finding!(QueryCache, kib),
    })
}

/// Tells whether the window kept its level, and was long enough to tell.
fn window(step: &Summary) -> Option<Finding> {
    if step.measured_s > 0.0 && step.totals.ops == 0 {
        return nothing_completed(step);
    }
    if step.outcome != Outcome::Completed || step.timeline.is_empty() {
        return None;
    }
    let length = Seconds(step.measured_s);
    let (first, then) = series(step);
    if first.values.len() < INTERVALS_MIN {
        let which = if step.plan.rate.is_some() { "with an answer" } else { "of the timeline" };
        let plural = if first.values.len() == 1 { "" } else { "s" };
        let which = format!("whole interval{plural} {which}");
        return Some(finding!(TooFewIntervals, length, first.values.len() as u64, which));
    }
    let all = || [Some(&first), then.as_ref()].into_iter().flatten();
    if let Some((series, change)) = all().find_map(|series| Some((series, series.change()?))) {
        let by = (change.after / change.before.max(f64::MIN_POSITIVE) - 1.0).abs();
        let up = if change.after > change.before { "rose" } else { "fell" };
        return Some(if change.drift {
            finding!(Drift, series.what, up, Share(by))
        } else {
            let at = Seconds(series.second(change.at));
            finding!(LevelChange, series.what, up, Share(by), at)
        });
    }
    let told = then.unwrap_or(first);
    let error = relative_error(&told.values).filter(|error| *error > ERROR_MAX)?;
    // A rate that may as well be 0 is not known at all.
    Some(if error < 1.0 {
        finding!(TooShort, length, told.what, Share(error))
    } else {
        finding!(TooNoisy, length, told.what)
    })
}

/// Says what became of the ops, as rates of nothing say nothing.
fn nothing_completed(step: &Summary) -> Option<Finding> {
    let (issued, given_up) = (step.latency.service.count, step.totals.abandoned);
    let became = [
        (issued.saturating_sub(given_up), "ended after it"),
        (step.latency.failed.count, "failed"),
        (step.latency.in_doubt.unwrap_or(step.totals.in_doubt), "are in doubt"),
        (given_up, "got no answer"),
    ];
    let became: Vec<String> =
        became.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let length = Seconds(step.measured_s);
    (!became.is_empty()).then(|| finding!(NothingCompleted, length, became.join(", ")))
}

/// What the whole intervals tell; one may have had no answer, and then tells nothing of times.
struct Series {
    what: &'static str,
    values: Vec<f64>,
    /// Where the interval of each begins, seconds into the window.
    starts_s: Vec<f64>,
}

impl Series {
    fn change(&self) -> Option<Change> {
        change(&self.values).filter(|change| {
            let level = change.before.max(change.after);
            change.p <= CHANGE_P_MAX && (change.after - change.before).abs() > CHANGE_MIN * level
        })
    }

    fn second(&self, part: f64) -> f64 {
        let at = (part * self.values.len() as f64).round() as usize;
        self.starts_s[at.min(self.starts_s.len() - 1)]
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
        let whole =
            measured.iter().filter(|e| e.length_s >= WHOLE_INTERVAL * longest && longest > 0.0);
        let (starts_s, values) =
            whole.filter_map(|entry| Some((entry.start_s - begin_s, value(entry)?))).unzip();
        Series { what, values, starts_s }
    };
    if step.plan.rate.is_none() {
        return (of("the rate", |entry| Some(entry.ops as f64 / entry.length_s)), None);
    }
    let sustained = !step.is_warned(Code::NotSustained);
    let response = of("the median response time", |entry| entry.response_p50_us);
    let service = of("the median service time", |entry| entry.p50_us);
    (service, Some(response).filter(|series| sustained && !series.values.is_empty()))
}

fn skew(step: &Summary) -> Option<Finding> {
    let keys = step.conditions.as_ref()?.keys.as_ref()?;
    (keys.hottest_share > HOTTEST_MAX || keys.half_on_share < HALF_ON_MIN).then(|| {
        finding!(
            Skew,
            keys.distribution.as_str(),
            Share(keys.half_on_share),
            Share(keys.hottest_share),
            Number(keys.distinct, 0),
            Number(keys.rows, 0),
        )
    })
}

fn hosts(step: &Summary, found: &mut Vec<Finding>) {
    let Some(conditions) = &step.conditions else { return };
    let client = if step.client.same_host { "the host" } else { "the client's host" };
    for (whose, state) in
        [(client, &conditions.client_host), ("the server's host", &conditions.server_host)]
    {
        if let Some(state) = state {
            host(step, whose, state, found);
        }
    }
    // The window's readings are all under load, so that an idle core's clock does not count.
    let mut clocks = conditions.window.iter().filter_map(|sample| sample.client_mhz);
    if let (Some(first), Some(last)) = (clocks.next(), clocks.next_back())
        && last < first * (1.0 - CLOCK_LOSS_MAX)
    {
        found.push(finding!(CpuFrequency, client, Number(first, 0), Number(last, 0)));
    }
}

fn host(step: &Summary, whose: &str, state: &HostState, found: &mut Vec<Finding>) {
    let policies: u32 = state.governors.values().sum();
    let others = state.governors.iter().filter(|(name, _)| *name != "performance");
    let others: Vec<String> =
        others.map(|(name, count)| format!("{name} ({count} of {policies})")).collect();
    if !others.is_empty() {
        found.push(finding!(CpuGovernor, whose, others.join(", ")));
    }
    if let Some(times) = state.throttled.filter(|times| *times > 0) {
        found.push(finding!(CpuThrottled, whose, times));
    }
    if let Some(pages) = state.swapped_pages.filter(|pages| *pages > SWAPPED_MAX) {
        found.push(finding!(Swapping, whose, pages));
    }
    for link in state.links.iter().filter(|_| state.covered_s > 0.0) {
        let bytes = link.rx_bytes.max(link.tx_bytes) as f64;
        let used = bytes * 8.0 / 1e6 / state.covered_s / link.mbit_per_s as f64;
        if used >= LINK_MAX {
            let name = link.name.as_str();
            found.push(finding!(NetworkFull, name, whose, Share(used), link.mbit_per_s));
        }
    }
    // The server's process is known on its own host only.
    let interleaved = variable(step, "innodb_numa_interleave").is_some_and(|value| value != "OFF");
    if let Some(nodes) = state.server_numa_nodes.filter(|nodes| *nodes > 1 && !interleaved) {
        found.push(finding!(NumaUnbound, nodes));
    }
}

#[cfg(test)]
mod tests;
