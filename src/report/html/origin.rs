//! How each number was obtained: the invocations behind the page, and their steps.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::super::escape::{clip, markup};
use super::super::notes::label;
use super::super::page::{Rows, number};
use super::super::table::{Table, in_time};
use super::super::{chart, notes};
use super::grid;
use crate::stats::spread;
use crate::summary::{Summary, VerdictKind, counter};
use crate::terms::{Rate, Spread, StatementMode};

/// Longest text of a file, and longest name of a host, characters.
const TEXT_MAX: usize = 80;
const NAME_MAX: usize = 60;
/// How much more or less than the window the server's counters may cover to be held against it.
const COVERED_MORE_MAX: f64 = 0.01;

pub(super) fn headline(tables: &[Table]) -> String {
    let steps = all(tables);
    let starts = || steps.iter().map(|step| step.started_at.as_str());
    let ends: BTreeSet<&str> = starts().min().into_iter().chain(starts().max()).collect();
    let when: Vec<String> = ends.into_iter().map(instant).collect();
    let many = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    markup(&format!(
        "{}, {}, {}, {}",
        many(tables.len(), "workload"),
        many(chart::labels(tables).len(), "label"),
        many(steps.len(), "step"),
        when.join(" to ")
    ))
}

fn all<'a>(tables: &[Table<'a>]) -> Vec<&'a Summary> {
    tables.iter().flat_map(Table::all).collect()
}

/// Returns an instant to the second; as it stands where it is none.
fn instant(text: &str) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(instant) => instant.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => clip(text, TEXT_MAX),
    }
}

fn invocations<'a>(tables: &[Table<'a>]) -> Vec<Vec<&'a Summary>> {
    let mut by: BTreeMap<(&str, &str, &str), Vec<&Summary>> = BTreeMap::new();
    for step in all(tables) {
        by.entry((&step.run_id, &step.label, &step.workload.name)).or_default().push(step);
    }
    let mut invocations: Vec<Vec<&Summary>> = by.into_values().collect();
    invocations.iter_mut().for_each(|steps| steps.sort_by_key(|step| in_time(step)));
    invocations.sort_by_key(|steps| in_time(steps[0]));
    invocations
}

pub(super) fn section(tables: &[Table]) -> Markup {
    let labels = chart::labels(tables);
    let invocations = invocations(tables);
    let steps: Vec<&Summary> = invocations.iter().flatten().copied().collect();
    let errors = |step: &Summary| -> u64 {
        step.totals.errors.iter().fold(0, |sum, error| sum.saturating_add(error.count))
    };
    let sheet = Rows::new(&steps)
        .shown("step", |step| clip(&step.step_id, TEXT_MAX))
        .shown("label", |step| label(&step.label))
        .shown("workload", |step| clip(&step.workload.name, TEXT_MAX))
        .shown("clients", |step| step.cell().to_string())
        .shown("repeat", |step| step.plan.repeat_index)
        .shown("started", |step| instant(&step.started_at))
        .shown("seconds", |step| (step.measured_s, 1))
        .shown("ops", |step| step.totals.ops)
        .shown("errors", |step| errors(step))
        .shown("QPS", |step| (step.totals.qps, 0))
        .shown("outcome", |step| clip(&notes::ending(step), TEXT_MAX))
        .left()
        .sheet();
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
                summary { "Steps: " (steps.len()) }
                (grid(&[&sheet], Some("steps"), &|row| Some(chart::position(&labels, &steps[row].label))))
            }
        }
    }
}

fn plan(steps: &[&Summary], labels: &[&str]) -> Markup {
    let first = steps[0];
    let (program, driver, server, client) =
        (&first.loadgen, &first.driver, &first.server, &first.client);
    let revision = program.revision.as_ref().map_or(String::new(), |r| format!(" ({r})"));
    let port = server.port.map_or(String::new(), |port| format!(":{port}"));
    let seeds: BTreeSet<u64> = steps.iter().map(|step| step.plan.seed).collect();
    let program = format!("loadgen {}{revision}, {} build", program.version, program.profile);
    let build = format!("{} {} at {}{port}", server.version, server.version_comment, server.host);
    let host = format!("{}, {}, {} cores", client.host, client.cpu, client.cores);
    let facts = [
        ("program", format!("{program}, driver {} {}", driver.name, driver.version)),
        ("server", format!("{build} by {}", server.transport)),
        ("client", format!("{host}, {}", client.kernel)),
        ("seed", listed(&seeds).replace(',', ", ")),
        ("run", format!("{}, first step {}", first.run_id, first.started_at)),
    ];
    html! {
        div class={ "plan s" (chart::position(labels, &first.label)) } {
            h4 { (label(&first.label)) ", " (markup(&clip(&first.workload.name, TEXT_MAX))) }
            dl {
                dt { "command" } dd { code { (markup(&command(steps))) } }
                @for (name, text) in &facts { dt { (name) } dd { (markup(text)) } }
            }
        }
    }
}

/// The command that would ask for the same as the steps of one invocation, as far as their summaries
/// know it: what differs from its default, and what the numbers depend on most. Where to connect is
/// left to the reader.
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
        ("clients", Some(listed(&clients))),
        ("warmup", Some(seconds(plan.warmup_s))),
        ("time", plan.time_s.map(seconds)),
        ("ops", plan.ops.map(|ops| ops.to_string())),
        ("rate", (!rates.is_empty()).then(|| listed(&rates))),
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
    for (name, value) in flags.into_iter().chain(plan.flags()).chain(last) {
        words.extend(value.into_iter().flat_map(|value| [format!("--{name}"), value]));
    }
    let options = workload.options.iter();
    words.extend(options.map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))));
    let settle = before.and_then(|before| before.settle.as_ref());
    words.extend(settle.map(|settle| format!("--settle={}s", settle.limit_s)));
    words.extend(["--label".to_owned(), first.label.clone()]);
    words.iter().map(|word| quoted(word)).collect::<Vec<String>>().join(" ")
}

fn listed<T: ToString>(numbers: &BTreeSet<T>) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<String>>().join(",")
}

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
    let Some(shares) = range(told.iter().flatten().copied(), 1) else {
        // Of different reasons one is told.
        let why = told.into_iter().find_map(Result::err).unwrap_or_default();
        return format!("the server's count of statements is not held against the client's: {why}");
    };
    let some = match told.iter().flatten().count() {
        some if some < steps.len() => format!(" ({some} of {} steps)", steps.len()),
        _ => String::new(),
    };
    format!("the server counted {shares}% of the client's statements{some}")
}

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

/// Smallest and largest, once where they look the same; nothing of nothing.
fn range(values: impl Iterator<Item = f64>, decimals: usize) -> Option<String> {
    let values: Vec<f64> = values.collect();
    let (low, high) = spread(&values).map(|spread| (spread.min, spread.max))?;
    let (low, high) = (format!("{low:.decimals$}"), format!("{high:.decimals$}"));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

fn verdicts(steps: &[&Summary]) -> Option<String> {
    let mut kinds: BTreeMap<VerdictKind, usize> = BTreeMap::new();
    for verdict in steps.iter().filter_map(|step| step.verdict.as_ref()) {
        *kinds.entry(verdict.kind).or_default() += 1;
    }
    let named: Vec<String> =
        kinds.iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    (!named.is_empty()).then(|| format!("verdicts on the steps: {}", named.join(", ")))
}

fn busy(steps: &[&Summary]) -> Option<String> {
    let busiest = |step: &&Summary| {
        let looked: Vec<f64> = match &step.client.share {
            Some(share) => share.threads.iter().map(|thread| thread.busy).collect(),
            None => step.client.threads.iter().map(|thread| thread.busy).collect(),
        };
        Some(spread(&looked)?.max * 100.0)
    };
    let busy = range(steps.iter().filter_map(busiest), 0)?;
    let cost = range(steps.iter().filter_map(|step| step.client.us_per_op), 1);
    let cost = cost.map_or(String::new(), |cost| format!(", {cost} µs CPU an op"));
    Some(format!("the client's busiest thread was {busy}% busy{cost}"))
}

/// Tells what part of what this host can generate was asked of it.
fn ceiling(steps: &[&Summary]) -> String {
    let part = |step: &&Summary| {
        let ceiling = step.client.share.as_ref()?.ceiling.as_ref()?;
        let part = 100.0 * step.totals.qps / ceiling.qps;
        part.is_finite().then_some(part)
    };
    range(steps.iter().filter_map(part), 0).map_or_else(
        || "the client's ceiling is not known (loadgen calibrate measures it)".to_owned(),
        |parts| format!("the client did {parts}% of what its calibration says it can"),
    )
}

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
    let trip = range(away.filter_map(|step| step.client.rtt_us), 0);
    let trip = trip.map_or(String::new(), |trip| format!(", round trip {trip} µs"));
    let first = places.first()?;
    let more = match places.len() - 1 {
        0 => String::new(),
        1 => ", and one more place".to_owned(),
        more => format!(", and {more} more places"),
    };
    Some(format!("{first}{more}{trip}"))
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
