//! How the numbers of a page were obtained: the command, the host, and what the server counted.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::escape::{clip, markup};
use super::notes::label;
use super::page::number;
use super::table::Table;
use crate::stats;
use crate::summary::{Summary, VerdictKind, counter};
use crate::terms::{Rate, Spread, StatementMode, named};

/// Characters of a text.
pub(super) const TEXT_MAX: usize = 80;
const PLACES_MAX: usize = 2;
/// How much more or less than the window the server's counters may cover to be held against it.
const COVERED_MORE_MAX: f64 = 0.01;

pub(super) fn plan(steps: &[&Summary]) -> Markup {
    let first = steps[0];
    let (program, server, client) = (&first.loadgen, &first.server, &first.client);
    let revision = program.revision.as_deref().unwrap_or("unknown");
    let port = server.port.map_or(String::new(), |port| format!(":{port}"));
    let by = format!("{} (revision {revision}), {} build", program.version, program.profile);
    let driver = format!("driver {} {}", first.driver.name, first.driver.version);
    let at = format!("at {}{port} by {}", server.host, server.transport);
    let cores = format!("{} cores, {}", client.cores, client.kernel);
    let facts = [
        ("run", format!("{}, first step {}", first.run_id, first.started_at)),
        ("program", format!("loadgen {by}, {driver}")),
        ("server", format!("{} {} {at}", server.version, server.version_comment)),
        ("client", format!("{}, {}, {cores}", client.host, client.cpu)),
    ];
    html! {
        h4 { (label(&first.label)) ", " (markup(&clip(&first.workload.name, TEXT_MAX))) }
        dl {
            dt { "command" }
            dd { code { (markup(&command(steps))) } }
            @for (name, text) in &facts { dt { (name) } dd { (markup(text)) } }
        }
    }
}

/// Returns the command that would ask for the same as one invocation, as far as its summaries know it:
/// what differs from its default, and what the numbers depend on most.
fn command(steps: &[&Summary]) -> String {
    let first = steps[0];
    if let Some(of) = &first.experiment {
        return format!("loadgen run of the profile {} at scale {}", of.profile, of.scale);
    }
    let (plan, workload) = (&first.plan, &first.workload);
    let clients: BTreeSet<u32> = steps.iter().map(|step| step.plan.clients).collect();
    let rates: BTreeSet<Rate> = steps.iter().filter_map(|step| step.cell().rate).collect();
    let seconds = |s: f64| format!("{s}s");
    // Without --spread, clients are pinned where the tables divide them all.
    let divided = clients.iter().all(|clients| clients % plan.tables.max(1) == 0);
    let spread = if divided { Spread::Pinned } else { Spread::Random };
    let usual = |step: &Summary| step.client.cores.clamp(1, step.plan.clients.max(1));
    let threads = steps.iter().find(|step| step.plan.engine_threads != usual(step));
    let conditions = first.conditions.as_ref();
    let before = conditions.and_then(|conditions| conditions.before.as_ref());
    let class = conditions.and_then(|conditions| conditions.expected_class);
    let flags = [
        ("tables", Some(plan.tables.to_string())),
        ("rows", Some(plan.rows.to_string())),
        ("clients", Some(listed(&clients, ","))),
        ("warmup", Some(seconds(plan.warmup_s))),
        ("time", plan.time_s.map(seconds)),
        ("ops", plan.ops.map(|ops| ops.to_string())),
        ("rate", (!rates.is_empty()).then(|| listed(&rates, ","))),
        ("arrival", plan.arrival.map(|arrival| arrival.to_string())),
        ("repeat", (plan.repeats > 1).then(|| plan.repeats.to_string())),
        ("statements", (workload.mode == StatementMode::Text).then(|| "text".to_owned())),
        ("distribution", Some(workload.distribution.clone())),
        ("spread", (workload.spread != spread).then(|| workload.spread.to_string())),
        ("engine-threads", threads.map(|step| step.plan.engine_threads.to_string())),
    ];
    let last = [
        ("seed", Some(plan.seed.to_string())),
        ("warm", before.map(|before| before.warm.clone()).filter(|warm| warm != "none")),
        ("ahi", before.map(|before| before.ahi.clone()).filter(|ahi| ahi != "as-is")),
        ("expect-class", class.map(|class| class.to_string())),
    ];
    let mut words = vec!["loadgen".to_owned(), workload.name.clone()];
    let flags = flags.into_iter().chain(plan.flags()).chain(last);
    let flags = flags.filter_map(|(name, value)| Some([format!("--{name}"), value?]));
    words.extend(flags.flatten());
    let options = workload.options.iter();
    words.extend(options.map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))));
    let settle = before.and_then(|before| before.settle.as_ref());
    words.extend(settle.map(|settle| format!("--settle={}s", settle.limit_s)));
    words.extend(["--label".to_owned(), first.label.clone()]);
    words.iter().map(|word| quoted(word)).collect::<Vec<String>>().join(" ")
}

pub(super) fn listed<T: ToString>(items: &BTreeSet<T>, separator: &str) -> String {
    items.iter().map(T::to_string).collect::<Vec<String>>().join(separator)
}

/// Returns a word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Tells whether the server counted the same, whose the numbers are, how busy the client was, what it
/// could have done, and where it ran.
pub(super) fn behind(table: &Table) -> String {
    let steps: Vec<&Summary> = table.lines.iter().flat_map(|line| &line.steps).copied().collect();
    let mut kinds: BTreeMap<VerdictKind, usize> = BTreeMap::new();
    for verdict in steps.iter().filter_map(|step| step.verdict.as_ref()) {
        *kinds.entry(verdict.kind).or_default() += 1;
    }
    let kinds: Vec<String> =
        kinds.iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    let verdicts =
        (!kinds.is_empty()).then(|| format!("verdicts on the steps: {}", kinds.join(", ")));
    let ceiling = |step: &&Summary| {
        let ceiling = step.client.share.as_ref()?.ceiling.as_ref()?;
        Some(100.0 * step.totals.qps / ceiling.qps).filter(|part| part.is_finite())
    };
    let ceiling = match range(steps.iter().filter_map(ceiling), 0) {
        Some(parts) => format!("the client did {parts}% of what its calibration says it can"),
        None => "the client's ceiling is not known (loadgen calibrate measures it)".to_owned(),
    };
    let facts = [Some(counts(&steps)), verdicts, busy(&steps), Some(ceiling), place(&steps)];
    facts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Tells the server's count of statements in percent of the client's, over what the readings cover.
fn counts(steps: &[&Summary]) -> String {
    let (mut shares, mut reason) = (Vec::new(), "no step completed".to_owned());
    for step in steps {
        match share(step) {
            Ok(share) => shares.push(share),
            Err(why) => reason = why,
        }
    }
    let some = format!(" ({} of {} steps)", shares.len(), steps.len());
    let some = if shares.len() < steps.len() { &some } else { "" };
    match range(shares.into_iter(), 1) {
        Some(share) => format!("the server counted {share}% of the client's statements{some}"),
        None => {
            format!("the server's count of statements is not held against the client's: {reason}")
        }
    }
}

fn share(step: &Summary) -> std::result::Result<f64, String> {
    let status = step.server.status.as_ref().ok_or("its counters could not be read")?;
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

/// Returns the smallest and the largest, once where they look the same; nothing of nothing.
fn range(values: impl Iterator<Item = f64>, decimals: usize) -> Option<String> {
    let spread = stats::spread(&values.collect::<Vec<f64>>())?;
    let (low, high) = (format!("{:.decimals$}", spread.min), format!("{:.decimals$}", spread.max));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

fn busy(steps: &[&Summary]) -> Option<String> {
    let busiest = |step: &&Summary| {
        let looked: Vec<f64> = match &step.client.share {
            Some(share) => share.threads.iter().map(|thread| thread.busy).collect(),
            None => step.client.threads.iter().map(|thread| thread.busy).collect(),
        };
        looked.into_iter().max_by(f64::total_cmp).map(|busy| busy * 100.0)
    };
    let busy = range(steps.iter().filter_map(busiest), 0)?;
    let cost = range(steps.iter().filter_map(|step| step.client.us_per_op), 1);
    let cost = cost.map_or(String::new(), |cost| format!(", {cost} µs CPU an op"));
    Some(format!("the client's busiest thread was {busy}% busy{cost}"))
}

fn place(steps: &[&Summary]) -> Option<String> {
    let place = |step: &&Summary| {
        let (client, server) = (&step.client, &step.server);
        let on = format!("{} ({} cores)", clip(&client.host, TEXT_MAX), client.cores);
        if client.same_host {
            format!("client and server on {on}, by {}", clip(&server.transport, TEXT_MAX))
        } else {
            format!("client on {on}, server {}", clip(&server.host, TEXT_MAX))
        }
    };
    let places: BTreeSet<String> = steps.iter().map(place).collect();
    let away = steps.iter().filter(|step| !step.client.same_host);
    let trip = range(away.filter_map(|step| step.client.rtt_us), 0);
    let trip = trip.map_or(String::new(), |trip| format!(", round trip {trip} µs"));
    let named = named(places.into_iter().collect(), PLACES_MAX, ", and ");
    (!steps.is_empty()).then(|| named + &trip)
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
