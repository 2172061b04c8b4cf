//! How each number was obtained: the invocations behind the page, and their steps.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::super::escape::{clip, markup};
use super::super::pivot::{Line, Table};
use super::super::{chart, notes, number, select};
use super::command::command;
use crate::summary::Summary;

/// Longest text of a file, characters.
const TEXT_MAX: usize = 80;

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
            td { (chart::shown(&step.label)) }
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
            h4 { (chart::shown(&first.label)) ", " (markup(&clip(&first.workload.name, TEXT_MAX))) }
            dl { @for (name, text) in &facts {
                dt { (name) }
                dd { @if *name == "command" { code { (markup(text)) } } @else { (markup(text)) } }
            } }
        }
    }
}
