//! How the numbers of a page were obtained: the command, the host, and what the server counted.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::escape::{clip, markup};
use super::notes::{label, listed};
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
    let port = server.port.map_or_else(String::new, |port| format!(":{port}"));
    let by = format!("{} (revision {revision}), {} build", program.version, program.profile);
    let at = format!("at {}{port} by {}", server.host, server.transport);
    let (driver, cores) = (&first.driver, format!("{} cores, {}", client.cores, client.kernel));
    let facts = [
        ("run", format!("{}, first step {}", first.run_id, first.started_at)),
        ("program", format!("loadgen {by}, driver {} {}", driver.name, driver.version)),
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
    let threads = steps.iter().map(|step| (step.plan.engine_threads, usual(step)));
    let threads = threads.filter(|(threads, usual)| threads != usual).map(|(threads, _)| threads);
    let before = first.conditions.as_ref().and_then(|conditions| conditions.before.as_ref());
    let class = first.conditions.as_ref().and_then(|conditions| conditions.expected_class);
    let mut words = vec!["loadgen".to_owned(), workload.name.clone()];
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [format!("--{name}"), value]));
    };
    flag("tables", Some(plan.tables.to_string()));
    flag("rows", Some(plan.rows.to_string()));
    flag("clients", Some(listed(&clients, ",")));
    flag("warmup", Some(seconds(plan.warmup_s)));
    flag("time", plan.time_s.map(seconds));
    flag("ops", plan.ops.map(|ops| ops.to_string()));
    flag("rate", (!rates.is_empty()).then(|| listed(&rates, ",")));
    flag("arrival", plan.arrival.map(|arrival| arrival.to_string()));
    flag("repeat", (plan.repeats > 1).then(|| plan.repeats.to_string()));
    flag("statements", (workload.mode == StatementMode::Text).then(|| "text".to_owned()));
    flag("distribution", Some(workload.distribution.clone()));
    flag("spread", (workload.spread != spread).then(|| workload.spread.to_string()));
    flag("engine-threads", threads.map(|threads| threads.to_string()).next());
    plan.flags().into_iter().for_each(|(name, value)| flag(name, value));
    flag("seed", Some(plan.seed.to_string()));
    flag("warm", before.map(|before| before.warm.clone()).filter(|warm| warm != "none"));
    flag("ahi", before.map(|before| before.ahi.clone()).filter(|ahi| ahi != "as-is"));
    flag("expect-class", class.map(|class| class.to_string()));
    let options = workload.options.iter();
    words.extend(options.map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))));
    let settle = before.and_then(|before| before.settle.as_ref());
    words.extend(settle.map(|settle| format!("--settle={}s", settle.limit_s)));
    words.extend(["--label".to_owned(), first.label.clone()]);
    words.iter().map(|word| quoted(word)).collect::<Vec<String>>().join(" ")
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
    let of = |value: &dyn Fn(&Summary) -> Option<f64>, decimals| {
        range(steps.iter().filter_map(|step| value(step)), decimals)
    };
    let mut facts = vec![counts(&steps)];
    let mut kinds: BTreeMap<VerdictKind, usize> = BTreeMap::new();
    for verdict in steps.iter().filter_map(|step| step.verdict.as_ref()) {
        *kinds.entry(verdict.kind).or_default() += 1;
    }
    if !kinds.is_empty() {
        let kinds = kinds.iter().map(|(kind, count)| format!("{count} {}", kind.name()));
        facts.push(format!("verdicts on the steps: {}", kinds.collect::<Vec<_>>().join(", ")));
    }
    let busiest = |step: &Summary| {
        let shares = step.client.share.iter().flat_map(|s| &s.threads).map(|thread| thread.busy);
        let looks = step.client.threads.iter().filter(|_| step.client.share.is_none());
        let busy = shares.chain(looks.map(|thread| thread.busy)).max_by(f64::total_cmp);
        busy.map(|busy| busy * 100.0)
    };
    let cost = of(&|step| step.client.us_per_op, 1);
    let cost = cost.map_or_else(String::new, |cost| format!(", {cost} µs CPU an op"));
    let busy = of(&busiest, 0);
    facts.extend(busy.map(|busy| format!("the client's busiest thread was {busy}% busy{cost}")));
    let part = |step: &Summary| {
        let ceiling = step.client.share.as_ref()?.ceiling.as_ref()?;
        Some(100.0 * step.totals.qps / ceiling.qps).filter(|part| part.is_finite())
    };
    facts.push(match of(&part, 0) {
        Some(parts) => format!("the client did {parts}% of what its calibration says it can"),
        None => "the client's ceiling is not known (loadgen calibrate measures it)".to_owned(),
    });
    let trip = of(&|step| step.client.rtt_us.filter(|_| !step.client.same_host), 0);
    let trip = trip.map_or_else(String::new, |trip| format!(", round trip {trip} µs"));
    let places: BTreeSet<String> = steps.iter().map(|step| place(step)).collect();
    let places = named(places.into_iter().collect(), PLACES_MAX, ", and ");
    facts.extend((!steps.is_empty()).then(|| places + &trip));
    facts.join("; ")
}

fn place(step: &Summary) -> String {
    let on = format!("{} ({} cores)", clip(&step.client.host, TEXT_MAX), step.client.cores);
    if step.client.same_host {
        format!("client and server on {on}, by {}", clip(&step.server.transport, TEXT_MAX))
    } else {
        format!("client on {on}, server {}", clip(&step.server.host, TEXT_MAX))
    }
}

/// Tells the server's count of statements in percent of the client's, over what the readings cover.
fn counts(steps: &[&Summary]) -> String {
    let (shares, reasons): (Vec<_>, Vec<_>) =
        steps.iter().map(|s| share(s)).partition(Result::is_ok);
    let some = format!(" ({} of {} steps)", shares.len(), steps.len());
    let some = if reasons.is_empty() { "" } else { &some };
    if let Some(share) = range(shares.into_iter().flatten(), 1) {
        return format!("the server counted {share}% of the client's statements{some}");
    }
    let none = Err("no step completed".to_owned());
    let reason = reasons.into_iter().last().unwrap_or(none).expect_err("no share");
    format!("the server's count of statements is not held against the client's: {reason}")
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
