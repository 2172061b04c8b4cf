//! Findings that a reader of a step's numbers must know, from its summary alone, and which server was
//! measured. docs/user/notes.md has every code, its meaning and what to do.

use std::str::FromStr;

use super::thresholds::{
    CHANGE_MIN, CHANGE_P_MAX, CHECKPOINT_AGE_MAX, CLOCK_LOSS_MAX, DEVIATIONS, DIRTY_MAX, ERROR_MAX,
    FREE_PAGES_KEPT, FREE_PAGES_MAX, HALF_ON_MIN, HISTORY_MAX, HOTTEST_MAX, INTERVALS_MIN,
    LINK_MAX, LOG_FILL_S, LOG_FILLS_MIN, MISSES_CHANGE_MAX, RANK_LATE, RANK_PAUSED_S, RANK_SKEW,
    RANK_UNEVEN, RESTORED_S, SETTLED_DIRTY, SETTLED_HISTORY, SWAPPED_MAX, UNMATCHED_MAX,
    WHOLE_INTERVAL,
};
use crate::error::{Error, VALUE_MAX, clip, told_apart};
use crate::stats::{Change, change, relative_error};
use crate::summary::{
    ClientHost, Conditions, Group, HostState, Interval, Latency, Levels, Outcome, Phase, Server,
    SettingChange, Settled, Summary, Totals, counter,
};
use crate::terms::{Class, Code, ErrorClass, Finding, finding, is_identity, joined};

const QUOTED_MAX: usize = 120;
/// Characters of the changes that an error or a warning names: a note shows as many.
const NAMED_MAX: usize = 240;
/// Variables whose change shows another server, such as the replica that took over.
const ANOTHER: &str =
    "version version_comment server_uuid server_uid hostname port datadir pid_file socket";
/// The default of innodb_redo_log_capacity, bytes.
const REDO_USUAL: u64 = 100 << 20;
/// The size of all redo log files by default, bytes, where that variable is.
const REDO_FILES_USUAL: u64 = 96 << 20;

pub(super) fn warnings(
    step: &Summary,
    class: Option<Class>,
    conditions: &Conditions,
) -> Vec<Finding> {
    let mut found: Vec<Finding> = pool(step, class, conditions).into_iter().collect();
    found.extend(unexpected(step, class, conditions));
    let settle = conditions.before.as_ref().and_then(|before| before.settle.as_ref());
    let settle = settle.filter(|settle| !settle.complete);
    found.extend(settle.into_iter().flat_map(unsettled).flatten());
    if let Some(levels) = &conditions.at_start {
        found.extend(restored(levels));
        found.extend(debt(&step.server, levels));
    }
    found.extend(small_log(step));
    found.extend(query_cache(step));
    found.extend(unmatched(step));
    found.extend(server(step).into_iter().flatten());
    found.extend(window(step));
    found.extend(skew(conditions));
    hosts(step, conditions, &mut found);
    ranks(step, &mut found);
    found.extend(step.groups.iter().filter_map(|group| idle_group(step.measured_s, group)));
    found
}

fn ranks(step: &Summary, found: &mut Vec<Finding>) {
    let hosts = &step.hosts;
    let is_twin = |host: &&ClientHost| {
        let same = hosts.iter().filter(|other| other.boot_id == host.boot_id);
        host.boot_id.is_some() && same.count() > 1
    };
    let twins = hosts.iter().filter(is_twin).map(|host| Some(host.name.clone()));
    found.extend(joined(twins, ", ").map(|twins| finding!(RanksShareHost, twins)));
    for host in hosts {
        let (name, error_us) = (host.name.as_str(), host.clock.error_us);
        let part = error_us / 1e6 / step.measured_s;
        if host.threads > 0 && part.is_finite() && part > RANK_SKEW {
            found.push(finding!(RankSkew, name, error_us, part));
        }
        if host.late_us / 1e6 > step.plan.warmup_s * RANK_LATE {
            found.push(finding!(RankLate, name, host.late_us));
        }
        if host.paused_s > RANK_PAUSED_S {
            found.push(finding!(RankPaused, name, host.paused_s));
        }
    }
    found.extend(uneven(hosts));
}

fn uneven(hosts: &[ClientHost]) -> Option<Finding> {
    let each = |host: &&ClientHost| host.ops as f64 / f64::from(host.clients);
    let some = || hosts.iter().filter(|host| host.clients > 0 && host.share.is_some());
    let least = some().min_by(|one, other| each(one).total_cmp(&each(other)))?;
    let most = some().max_by(|one, other| each(one).total_cmp(&each(other)))?;
    let fewer = 1.0 - each(&least) / each(&most);
    // The variance of a count is the count.
    let deviation = |host: &ClientHost| (host.ops as f64).sqrt() / f64::from(host.clients);
    let noise = DEVIATIONS * deviation(least).hypot(deviation(most)) / each(&most);
    (fewer > RANK_UNEVEN && fewer > noise)
        .then(|| finding!(RankUneven, least.name.as_str(), most.name.as_str(), fewer))
}

fn pool(step: &Summary, class: Option<Class>, conditions: &Conditions) -> Option<Finding> {
    match class? {
        Class::Cached => None,
        Class::Cold => {
            let (data, pool) = step.data_bytes().zip(step.server.buffer_pool_bytes)?;
            Some(finding!(ColdPool, data, pool))
        }
        Class::IoBound => warming(step, conditions),
    }
}

/// The things that `--settle` waits for, by what the server tells.
pub(crate) struct Left {
    /// True if there is more of it than `--settle` accepts.
    pub(crate) more: bool,
    pub(crate) unknown: Vec<&'static str>,
}

pub(crate) fn left(levels: &Levels) -> Left {
    let dirty = levels.pool_dirty_pages.zip(levels.pool_pages);
    let dirty = dirty.map(|(dirty, pages)| dirty as f64 > SETTLED_DIRTY * pages as f64);
    let history = levels.history_list_length.map(|length| length > SETTLED_HISTORY);
    let unknown = [("dirty pages", dirty), ("history list", history)].into_iter();
    Left {
        more: dirty == Some(true) || history == Some(true),
        unknown: unknown.filter(|(_, over)| over.is_none()).map(|(name, _)| name).collect(),
    }
}

/// `12 dirty pages, a history list of 3`, as far as the server tells.
pub(crate) fn levels_in_words(levels: &Levels) -> String {
    let dirty = levels.pool_dirty_pages.map(|pages| format!("{pages} dirty pages"));
    let history = levels.history_list_length.map(|n| format!("a history list of {n}"));
    joined([dirty, history], ", ").unwrap_or_default()
}

fn unsettled(settle: &Settled) -> [Option<Finding>; 2] {
    let (took, levels) = (settle.took_s, levels_in_words(&settle.last));
    let unknown = settle.unknown.join(" and ");
    [
        left(&settle.last).more.then(|| finding!(NotSettled, took, levels)),
        (!unknown.is_empty()).then(|| finding!(SettleUnknown, unknown)),
    ]
}

/// A pool that is smaller than the data is warm when it is full and misses no more and no less than before.
fn warming(step: &Summary, conditions: &Conditions) -> Option<Finding> {
    let window = &conditions.window;
    let (first, last) = window.first().zip(window.last())?;
    let pages = conditions.at_start.as_ref().and_then(|levels| levels.pool_pages);
    let part = |pages_free: u64| Some(pages_free as f64 / pages.filter(|pages| *pages > 0)? as f64);
    // The page cleaner keeps as many free as it scans.
    let kept = number::<u64>(&step.server, "innodb_lru_scan_depth").unwrap_or(0);
    let instances = number::<u64>(&step.server, "innodb_buffer_pool_instances").unwrap_or(1).max(1);
    let kept = part(kept.saturating_mul(instances)).unwrap_or(0.0);
    let free_max = FREE_PAGES_MAX.max(kept * FREE_PAGES_KEPT);
    let free = first.pool_free_pages.and_then(part);
    let left = last.pool_free_pages.and_then(part);
    // Misses an op, and the variance of these: the variance of a count is the count.
    let third = |from: usize| -> Option<(f64, f64)> {
        let (a, b) = (window.get(from)?, window.get(from + 1)?);
        let misses = b.pool_reads?.checked_sub(a.pool_reads?)? as f64;
        let ops = step.ops_between(a.at_s, b.at_s);
        (ops > 0.0).then(|| (misses / ops, misses / ops.powi(2)))
    };
    let (early, late) = (third(0), third(2));
    let state = if free.is_some_and(|free| free > free_max) {
        "still filling"
    } else {
        let ((first, early), (last, late)) = early.zip(late)?;
        let least = (MISSES_CHANGE_MAX * first.max(last)).max(DEVIATIONS * (early + late).sqrt());
        if (first - last).abs() <= least {
            return None;
        }
        if first > last { "still warming" } else { "losing what it held" }
    };
    let [early, late] = [early, late].map(|misses| misses.map(|(misses, _)| misses));
    Some(finding!(WarmingPool, state, free, left, early, late))
}

fn unexpected(step: &Summary, class: Option<Class>, conditions: &Conditions) -> Option<Finding> {
    let (wanted, found) = conditions.expected_class.zip(class)?;
    let (data, pool) = (step.data_bytes(), step.server.buffer_pool_bytes);
    (wanted != found).then(|| finding!(UnexpectedClass, wanted.name(), found.name(), data, pool))
}

/// Looks for a pool that the server filled from a file: another state than that of a server without one.
fn restored(levels: &Levels) -> Option<Finding> {
    let load = levels.pool_load.as_ref()?;
    let lower = load.to_ascii_lowercase();
    let clipped: String = load.chars().take(QUOTED_MAX).collect();
    if lower.starts_with("loaded ") || lower.starts_with("loading buffer pool") {
        return Some(finding!(RestoredPool, "was still restoring", clipped));
    }
    let (age, up) = levels.tables_age_s.zip(levels.uptime_s)?;
    // Tables that were made since then were not in the file. Both are whole seconds, read one after the other.
    let restored = lower.contains("load completed") && up <= RESTORED_S && age > up + 1;
    restored.then(|| finding!(RestoredPool, "had restored", clipped))
}

/// Returns true if a step that began at these levels would pay for what was written before.
pub(crate) fn in_debt(server: &Server, levels: &Levels) -> bool {
    debt(server, levels).is_some()
}

/// Returns what the test before left to be written and purged, which this one pays for.
fn debt(server: &Server, levels: &Levels) -> Option<Finding> {
    let above = |part: Option<(u64, u64)>, limit: f64| {
        let (part, of) = part.filter(|(_, of)| *of > 0)?;
        Some(part as f64 / of as f64 * 100.0).filter(|percent| *percent > limit * 100.0)
    };
    let most = levels.checkpoint_age_max_bytes.or_else(|| log_bytes(server));
    let dirty = above(levels.pool_dirty_pages.zip(levels.pool_pages), DIRTY_MAX);
    let age = above(levels.checkpoint_age_bytes.zip(most), CHECKPOINT_AGE_MAX);
    let history = levels.history_list_length.filter(|length| *length > HISTORY_MAX);
    let debts = [
        dirty.map(|percent| format!("{percent:.0} % of the buffer pool's pages were dirty")),
        age.map(|percent| format!("the checkpoint's age was {percent:.0} % of the most")),
        history.map(|length| format!("the history list held {length} transactions")),
    ];
    joined(debts, ", ").map(|debts| finding!(Debt, debts))
}

fn log_bytes(server: &Server) -> Option<u64> {
    let files = number(server, "innodb_log_files_in_group").unwrap_or(1);
    let in_files = number::<u64>(server, "innodb_log_file_size");
    let in_files = in_files.and_then(|size| size.checked_mul(files));
    // A server that was given files alone has their size, and leaves the capacity's variable at its default.
    let given_files = in_files.filter(|bytes| *bytes != REDO_FILES_USUAL);
    let capacity = number::<u64>(server, "innodb_redo_log_capacity");
    capacity.filter(|bytes| *bytes != REDO_USUAL || given_files.is_none()).or(in_files)
}

/// Looks for a redo log that limited the writes. Its default differs by a factor of ten from version to version.
pub(super) fn small_log(step: &Summary) -> Option<Finding> {
    let capacity = log_bytes(&step.server).filter(|bytes| *bytes > 0)?;
    let status = step.status()?;
    let written = counter(status, "Innodb_os_log_written")?;
    let times = written / capacity as f64;
    let time_s = step.covered_s(status.first_s)? / times;
    let is_small = times >= LOG_FILLS_MIN && time_s < LOG_FILL_S;
    is_small.then(|| finding!(SmallLog, capacity, time_s, times.round() as u64))
}

fn number<T: FromStr>(server: &Server, name: &str) -> Option<T> {
    server.variables.get(name)?.parse().ok()
}

fn server(step: &Summary) -> [Option<Finding>; 3] {
    let on = |name: &str| matches!(step.variable(name), Some("ON" | "1"));
    // NONE outweighs the other places.
    let places = step.variable("log_output").unwrap_or_default();
    let is_nowhere = places.split(',').any(|place| place == "NONE");
    let every = number(&step.server, "long_query_time") == Some(0.0);
    // They cost more than some differences that are measured.
    let logs = [
        on("general_log").then(|| "the general log".to_owned()),
        (on("slow_query_log") && every)
            .then(|| "the slow query log (long_query_time 0)".to_owned()),
    ];
    let wrong = || step.totals.errors.iter().filter(|error| error.class == ErrorClass::Wrong);
    let count: u64 = wrong().map(|error| error.count).sum();
    let message = |text: &String| text.chars().take(QUOTED_MAX).collect::<String>();
    let restarted_s = step.server.status.as_ref().and_then(|status| status.restarted_s);
    [
        joined(logs, " and ").filter(|_| !is_nowhere).map(|logs| finding!(Instrumented, logs)),
        wrong().next().map(|first| finding!(WrongAnswers, count, message(&first.message))),
        restarted_s.map(|at_s| finding!(Restarted, at_s.max(0.0))),
    ]
}

/// Looks for a cache of answers: what it answers, nobody computed.
fn query_cache(step: &Summary) -> Option<Finding> {
    let on = step.variable("query_cache_type").is_some_and(|v| !matches!(v, "OFF" | "0"));
    let bytes: Option<u64> = number(&step.server, "query_cache_size");
    let bytes = bytes.filter(|bytes| on && *bytes > 0)?;
    let hits = step.status().and_then(|status| counter(status, "Qcache_hits"));
    Some(finding!(QueryCache, bytes, hits))
}

/// Looks for statements that found nothing to change: they cost less than those that did.
fn unmatched(step: &Summary) -> Option<Finding> {
    // SQL of one's own may well look for rows that are rarely there, as those that have expired.
    let count = step.totals.unmatched.filter(|_| step.workload.built_in)?;
    let part = count as f64 / step.totals.statements as f64;
    (part > UNMATCHED_MAX).then(|| finding!(Unmatched, count, part))
}

fn window(step: &Summary) -> Option<Finding> {
    if step.measured_s > 0.0 && step.totals.ops == 0 {
        return Some(nothing_completed((&step.totals, &step.latency), step.measured_s, None));
    }
    if step.outcome != Outcome::Completed || step.timeline.is_empty() {
        return None;
    }
    let all = series(step);
    let (last, known) = (all.last().expect("one series at least"), all[0].values.len());
    let too_short =
        |error: Option<f64>| finding!(TooShort, step.measured_s, known, last.what, error);
    if known < INTERVALS_MIN {
        return Some(too_short(None));
    }
    if let Some((series, change)) = all.iter().find_map(|series| Some((series, series.change()?))) {
        // A rate of 0 is known to less than one op in the window; times are never 0.
        let least =
            if step.plan.rate.is_none() { 1.0 / step.measured_s } else { f64::MIN_POSITIVE };
        let by = (change.after / change.before.max(least) - 1.0).abs();
        let up = if change.after > change.before { "rose" } else { "fell" };
        return Some(if change.drift {
            finding!(Drift, series.what, up, by)
        } else {
            finding!(LevelChange, series.what, up, by, series.second(change.at))
        });
    }
    // A rate that may as well be 0 is not known at all.
    let error = relative_error(&last.values).filter(|error| *error > ERROR_MAX)?;
    Some(too_short(Some(error.min(1.0))))
}

/// Words what became of the operations: a rate of nothing says nothing.
fn nothing_completed(
    (totals, latency): (&Totals, &Latency),
    length_s: f64,
    group: Option<&str>,
) -> Finding {
    let (issued, given_up) = (latency.service.count, totals.abandoned);
    // Those given up may also be of the warm-up, or never issued.
    let unanswered = latency.abandoned.unwrap_or(given_up);
    let became = [
        (issued.saturating_sub(unanswered), "ended after it"),
        (latency.failed.count, "failed"),
        (latency.in_doubt.unwrap_or(totals.in_doubt), "stayed in doubt"),
        (given_up, "got no answer"),
    ];
    let became = became.map(|(n, what)| (n > 0).then(|| format!("{n} {what}")));
    // Clients may wait all the time for what they began in the warm-up.
    let none = if totals.intended == Some(0) { "none arrived" } else { "none began" };
    let became = joined(became, ", ").unwrap_or_else(|| none.to_owned());
    finding!(NothingCompleted, length_s, became, group)
}

/// A group whose clients ended in the warm-up has no window of its own.
fn idle_group(step_s: f64, group: &Group) -> Option<Finding> {
    let Group { name, totals, latency, measured_s, .. } = group;
    let length_s = if *measured_s > 0.0 { *measured_s } else { step_s };
    let is_idle = length_s > 0.0 && totals.ops == 0;
    is_idle.then(|| nothing_completed((totals, latency), length_s, Some(name)))
}

/// The values of the whole intervals; one may have had no answer, and then tells nothing of times.
struct Series {
    what: &'static str,
    values: Vec<f64>,
    /// The beginning of each interval, seconds into the window.
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

/// Ops a second; of an open loop, whose rate is given, the median times: the service's, and the
/// response's, unless it is known already that these grew because the rate was too high.
fn series(step: &Summary) -> Vec<Series> {
    let measured = || step.timeline.iter().filter(|entry| entry.phase == Phase::Measure);
    let longest = measured().map(|entry| entry.length_s).fold(0.0, f64::max);
    let begin_s = measured().next().map_or(0.0, |entry| entry.start_s);
    let of = |what, value: fn(&Interval) -> Option<f64>| {
        let whole = measured().filter(|e| e.length_s >= WHOLE_INTERVAL * longest && longest > 0.0);
        let (starts_s, values) =
            whole.filter_map(|entry| Some((entry.start_s - begin_s, value(entry)?))).unzip();
        Series { what, values, starts_s }
    };
    if step.plan.rate.is_none() {
        return vec![of("the rate", |entry| Some(entry.ops as f64 / entry.length_s))];
    }
    let mut all = vec![of("the median service time", |entry| entry.p50_us)];
    let response = of("the median response time", |entry| entry.response_p50_us);
    if !step.is_warned(Code::NotSustained) && !response.values.is_empty() {
        all.push(response);
    }
    all
}

fn skew(conditions: &Conditions) -> Option<Finding> {
    let keys = conditions.keys.as_ref()?;
    let (hottest, half) = (keys.hottest_share, keys.half_on_share);
    let skewed = hottest > HOTTEST_MAX || half < HALF_ON_MIN;
    let distribution = keys.distribution.as_str();
    skewed.then(|| finding!(Skew, distribution, half, hottest, keys.distinct, keys.rows))
}

fn hosts(step: &Summary, conditions: &Conditions, found: &mut Vec<Finding>) {
    let client = if step.client.same_host { "the host" } else { "the client's host" };
    let hosts = [(client, &conditions.client_host), ("the server's host", &conditions.server_host)];
    for (whose, state) in hosts {
        found.extend(state.iter().flat_map(|state| host(step, whose, state)));
    }
    for one in &step.hosts {
        found.extend(one.state.iter().flat_map(|state| host(step, &one.name, state)));
    }
    // The window's readings are all under load, so that an idle core's clock does not count.
    let mut clocks = conditions.window.iter().filter_map(|sample| sample.client_mhz);
    if let (Some(first), Some(last)) = (clocks.next(), clocks.next_back())
        && last < first * (1.0 - CLOCK_LOSS_MAX)
    {
        found.push(finding!(CpuFrequency, client, first, last));
    }
}

fn host(step: &Summary, whose: &str, state: &HostState) -> Vec<Finding> {
    let policies: u32 = state.governors.values().sum();
    let others = state.governors.iter().map(|(name, count)| {
        (name != "performance").then(|| format!("{name} ({count} of {policies})"))
    });
    let others = joined(others, ", ").map(|others| finding!(CpuGovernor, whose, others));
    let mut found: Vec<Finding> = others.into_iter().collect();
    let throttled = state.throttled.filter(|times| *times > 0);
    found.extend(throttled.map(|times| finding!(CpuThrottled, whose, times)));
    let swapped = state.swapped_pages.filter(|pages| *pages > SWAPPED_MAX);
    found.extend(swapped.map(|pages| finding!(Swapping, whose, pages)));
    for link in state.links.iter().filter(|_| state.covered_s > 0.0) {
        let bytes = link.rx_bytes.max(link.tx_bytes) as f64;
        let used = bytes * 8.0 / 1e6 / state.covered_s / link.mbit_per_s as f64;
        if used >= LINK_MAX {
            found.push(finding!(NetworkFull, link.name.as_str(), whose, used, link.mbit_per_s));
        }
    }
    // The server's process is known on its own host only.
    let interleaved = step.variable("innodb_numa_interleave").is_some_and(|value| value != "OFF");
    let nodes = state.server_numa_nodes.filter(|nodes| *nodes > 1 && !interleaved);
    found.extend(nodes.map(|nodes| finding!(NumaUnbound, nodes)));
    found
}

pub(crate) fn is_another(changed: &[SettingChange]) -> bool {
    changed.iter().any(shows_another)
}

fn shows_another(change: &SettingChange) -> bool {
    ANOTHER.split(' ').any(|name| name == change.name)
}

/// Words why a step during which this changed is no result.
pub(crate) fn no_result(changed: &[SettingChange]) -> Option<Error> {
    let conditions = changed.iter().filter(|change| !is_identity(&change.name));
    // The version first.
    let (first, rest): (Vec<_>, Vec<_>) = conditions.partition(|change| shows_another(change));
    let conditions = [first, rest].concat();
    let hint = if is_another(changed) {
        "another server answers at this address: give each a label of its own"
    } else {
        "leave the server's variables alone while it is measured, and measure again"
    };
    let error = || Error::failed(format!("the server changed: {}", named(&conditions))).hint(hint);
    (!conditions.is_empty()).then(error)
}

/// Finds what changed by the look after a step; None where the server did not tell.
pub(crate) fn changed_after(changed: Option<&[SettingChange]>) -> Vec<Finding> {
    match changed {
        Some(changed) => changed_when(changed, "during the step"),
        None => vec![finding!(ServerUnknown)],
    }
}

pub(crate) fn changed_when(changed: &[SettingChange], when: &str) -> Vec<Finding> {
    let (another, settings): (Vec<_>, Vec<_>) = changed.iter().partition(|c| shows_another(c));
    let another = (!another.is_empty()).then(|| finding!(ServerReplaced, when, named(&another)));
    let other = (!settings.is_empty()).then(|| finding!(SettingsChanged, when, named(&settings)));
    another.into_iter().chain(other).collect()
}

/// `name: before / after`, and how many more.
fn named(changed: &[&SettingChange]) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
    let mut named = String::new();
    for (at, change) in changed.iter().enumerate() {
        let (before, after) = told_apart(&value(&change.before), &value(&change.after));
        let comma = if at > 0 { ", " } else { "" };
        let text = format!("{comma}{}: {before} / {after}", clip(&change.name, VALUE_MAX));
        if at > 0 && named.chars().count() + text.chars().count() > NAMED_MAX {
            return format!("{named}, and {} more", changed.len() - at);
        }
        named.push_str(&text);
    }
    named
}

#[cfg(test)]
mod tests;
