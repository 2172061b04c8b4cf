//! How each number was obtained: the invocations behind the page, and their steps.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::super::escape::{clip, markup};
use super::super::layout::label;
use super::super::pivot::{Line, Table};
use super::super::{chart, notes, number, select};
use crate::summary::{Summary, VerdictKind, counter};
use crate::terms::{OnError, Spread, StatementMode};

/// Longest text of a file, and longest name of a host, characters.
const TEXT_MAX: usize = 80;
const NAME_MAX: usize = 60;
/// How much more or less than the window the server's counters may cover to be held against it.
const COVERED_MORE_MAX: f64 = 0.01;

/// Labels, steps, and when.
pub(super) fn headline(tables: &[Table]) -> String {
    let steps = all(tables);
    let labels = chart::labels(tables).len();
    let mut starts: Vec<&str> = steps.iter().map(|step| step.started_at.as_str()).collect();
    starts.sort_unstable();
    let when = match (starts.first(), starts.last()) {
        (Some(first), Some(last)) if first != last => {
            format!(", {} to {}", instant(first), instant(last))
        }
        (Some(first), _) => format!(", {}", instant(first)),
        _ => String::new(),
    };
    let many = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    markup(&format!(
        "{}, {}, {}{when}",
        many(tables.len(), "workload"),
        many(labels, "label"),
        many(steps.len(), "step")
    ))
}

/// Those that did not complete, too: what they were asked is worth knowing.
fn all<'a>(tables: &[Table<'a>]) -> Vec<&'a Summary> {
    tables.iter().flat_map(|table| &table.lines).flat_map(Line::all).collect()
}

/// An instant to the second; as it stands where it is none.
fn instant(text: &str) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(instant) => instant.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => clip(text, TEXT_MAX),
    }
}

/// One invocation's steps of one label and workload, by time.
type Invocation<'a> = Vec<&'a Summary>;

fn invocations<'a>(tables: &[Table<'a>]) -> Vec<Invocation<'a>> {
    let mut by: BTreeMap<(&str, &str, &str), Invocation> = BTreeMap::new();
    for step in all(tables) {
        by.entry((&step.run_id, &step.label, &step.workload.name)).or_default().push(step);
    }
    let mut invocations: Vec<Invocation> = by.into_values().collect();
    for steps in &mut invocations {
        steps.sort_by_key(|step| select::in_time(step));
    }
    invocations.sort_by_key(|steps| steps.first().map(|step| select::in_time(step)));
    invocations
}

/// The section.
pub(super) fn section(tables: &[Table]) -> Markup {
    let labels = chart::labels(tables);
    let invocations = invocations(tables);
    html! {
        section #origin {
            h2 { "How the numbers were obtained" }
            p.faint {
                "A cell is the median of its repeats; the run is the unit of every statistic. Below it "
                "stands its 95 % interval by order statistics, or of fewer than six runs, which have "
                "none, the smallest and the largest. Intervals of ratios are Hodges and Lehmann's on "
                "logarithms, each by itself, not corrected for their number; loadgen compare decides. "
                "Rates count the operations that succeeded in the measured window; percentiles come "
                "from a histogram of every operation (three significant digits), never from averages."
            }
            details.print {
                summary { "Plans: " (invocations.len()) }
                @for steps in &invocations { (plan(steps, &labels)) }
            }
            details.print {
                summary { "Steps: " (all(tables).len()) }
                div.scroll { table.steps {
                    thead { tr {
                        th { "step" } th { "label" } th { "workload" } th { "clients" }
                        th { "repeat" } th { "started" } th { "seconds" } th { "ops" }
                        th { "errors" } th { "QPS" } th.text { "outcome" }
                    } }
                    tbody { @for steps in &invocations { @for step in steps { (row(step, &labels)) } } }
                } }
            }
        }
    }
}

fn row(step: &Summary, labels: &[&str]) -> Markup {
    let errors: u64 = step.totals.errors.iter().fold(0, |sum, e| sum.saturating_add(e.count));
    html! {
        tr class={ "s" (chart::position(labels, &step.label)) } {
            td { (markup(&clip(&step.step_id, TEXT_MAX))) }
            td { (label(&step.label)) }
            td { (markup(&clip(&step.workload.name, TEXT_MAX))) }
            td { (step.plan.clients) @if let Some(rate) = step.plan.rate { "@" (rate) } }
            td { (step.plan.repeat_index) }
            td { (markup(&instant(&step.started_at))) }
            td { (number::number(step.measured_s, 1)) }
            td { (step.totals.ops) }
            td { (errors) }
            td { (number::number(step.totals.qps, 0)) }
            td.text.long { (markup(&clip(&notes::ending(step), TEXT_MAX))) }
        }
    }
}

/// What was run with what, on what.
fn plan(steps: &[&Summary], labels: &[&str]) -> Markup {
    let Some(first) = steps.first() else { return html! {} };
    let (program, server, client) = (&first.loadgen, &first.server, &first.client);
    let revision = program.revision.as_deref().map(|r| format!(" ({r})")).unwrap_or_default();
    let port = server.port.map(|port| format!(":{port}")).unwrap_or_default();
    let seeds: BTreeSet<u64> = steps.iter().map(|step| step.plan.seed).collect();
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let facts = [
        ("command", command(steps)),
        (
            "program",
            format!(
                "loadgen {}{revision}, {} build, driver {} {}",
                program.version, program.profile, first.driver.name, first.driver.version
            ),
        ),
        (
            "server",
            format!(
                "{} {} at {}{port} by {}",
                server.version, server.version_comment, server.host, server.transport
            ),
        ),
        (
            "client",
            format!("{}, {}, {} cores, {}", client.host, client.cpu, client.cores, client.kernel),
        ),
        ("seed", seeds.join(", ")),
        ("run", format!("{}, first step {}", first.run_id, first.started_at)),
    ];
    html! {
        div class={ "plan s" (chart::position(labels, &first.label)) } {
            h4 { (label(&first.label)) ", " (markup(&clip(&first.workload.name, TEXT_MAX))) }
            dl { @for (name, text) in &facts {
                dt { (name) }
                dd { @if *name == "command" { code { (markup(text)) } } @else { (markup(text)) } }
            } }
        }
    }
}

/// The command that would ask for the same as the steps of one invocation, as far as their summaries
/// know it; where to connect is left to the reader.
fn command(steps: &[&Summary]) -> String {
    let Some(first) = steps.first() else { return String::new() };
    if let Some(experiment) = &first.experiment {
        return format!(
            "loadgen run of the profile {} at scale {}",
            experiment.profile, experiment.scale
        );
    }
    let mut words = vec!["loadgen".to_owned(), first.workload.name.clone()];
    for (name, value) in flags(steps).into_iter().chain(before(first)) {
        words.extend([format!("--{name}"), value]);
    }
    words.extend(options(first));
    words.extend(["--label".to_owned(), first.label.clone()]);
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

type Flags = Vec<(&'static str, String)>;

/// What differs from its default, and what the numbers depend on most.
fn flags(steps: &[&Summary]) -> Flags {
    let Some(first) = steps.first() else { return Flags::new() };
    let (plan, workload) = (&first.plan, &first.workload);
    let mut clients: Vec<u32> = steps.iter().map(|step| step.plan.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let mut rates: Vec<f64> = steps.iter().filter_map(|step| step.plan.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let listed = |numbers: Vec<String>| numbers.join(",");
    let seconds = |s: f64| format!("{s}s");
    // Without --spread, clients are pinned where the tables divide them all.
    let divided = clients.iter().all(|clients| clients % plan.tables.max(1) == 0);
    let spread = if divided { Spread::Pinned } else { Spread::Random };
    let usual = |step: &Summary| step.client.cores.clamp(1, step.plan.clients.max(1));
    let threads = steps.iter().find(|step| step.plan.engine_threads != usual(step));
    let some = |name: &'static str, value: Option<String>| value.map(|value| (name, value));
    [
        Some(("tables", plan.tables.to_string())),
        Some(("rows", plan.rows.to_string())),
        Some(("clients", listed(clients.iter().map(u32::to_string).collect()))),
        Some(("warmup", seconds(plan.warmup_s))),
        some("time", plan.time_s.map(seconds)),
        some("ops", plan.ops.map(|ops| ops.to_string())),
        (!rates.is_empty()).then(|| ("rate", listed(rates.iter().map(f64::to_string).collect()))),
        some("arrival", plan.arrival.map(|arrival| arrival.to_string())),
        (plan.repeats > 1).then(|| ("repeat", plan.repeats.to_string())),
        (workload.mode == StatementMode::Text).then(|| ("statements", "text".to_owned())),
        Some(("distribution", workload.distribution.clone())),
        (workload.spread != spread).then(|| ("spread", workload.spread.to_string())),
        some("engine-threads", threads.map(|step| step.plan.engine_threads.to_string())),
        some("charset", plan.charset.clone()),
        (plan.on_error != OnError::Abort).then(|| ("on-error", plan.on_error.to_string())),
        some("max-errors", plan.max_errors.clone()),
        some("op-timeout", plan.op_timeout_s.map(seconds)),
        Some(("seed", plan.seed.to_string())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What was done before each step, and what was expected of the data.
fn before(step: &Summary) -> Flags {
    let Some(conditions) = &step.conditions else { return Flags::new() };
    let mut flags = Flags::new();
    if let Some(before) = &conditions.before {
        let usual = [("warm", &before.warm, "none"), ("ahi", &before.ahi, "as-is")];
        let other = usual.into_iter().filter(|(_, value, usual)| value.as_str() != *usual);
        flags.extend(other.map(|(name, value, _)| (name, value.clone())));
    }
    flags.extend(conditions.expected_class.map(|class| ("expect-class", class.to_string())));
    flags
}

/// Those whose values must stand behind `=`.
fn options(step: &Summary) -> Vec<String> {
    let words = step
        .workload
        .options
        .iter()
        .map(|(name, value)| format!("--{}={value}", name.replace('_', "-")));
    let settle = step.conditions.as_ref().and_then(|of| of.before.as_ref()?.settle.as_ref());
    words.chain(settle.map(|settle| format!("--settle={}s", settle.limit_s))).collect()
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// What stands behind the numbers of a table, in one line: whether the server counted the same,
/// whose the numbers are, how busy the client was, what it could have done, and where it ran.
pub(super) fn behind(table: &Table) -> String {
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
        let off = number::number(status.first_s.abs(), 2);
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

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_shell_reads_a_word_as_it_is() {
        assert_eq!(
            ["8.4.3", "it's", "a b", "", "$(x)"].map(quoted),
            ["8.4.3", r"'it'\''s'", "'a b'", "''", "'$(x)'"]
        );
    }
}
