//! Everything about one workload.

use maud::{Markup, html};

use super::super::chart::{self, Chart, Pulse};
use super::super::figure::named;
use super::super::layout;
use super::super::metric::Metric;
use super::super::pivot::{self, Table};
use super::super::{Layout, Options, baseline, caption, escape, notes};
use super::{LEGEND_MAX, behind, figure, sheet, table};
use crate::error::Result;
use crate::summary::{Outcome, Summary};

/// With so many labels, the charts of each are folded away.
const OPEN_MAX: usize = 6;
/// As are more charts by percentile than these.
const CURVES_MAX: usize = 12;
/// With more steps than this, timelines show the rate alone.
const PULSES_MAX: usize = 400;

/// What all sections share.
pub(super) struct Scene<'a> {
    steps: &'a [&'a Summary],
    options: &'a Options,
    labels: &'a [&'a str],
    /// Vertices of each timeline.
    vertices: usize,
    pulses: &'static [Pulse],
}

impl<'a> Scene<'a> {
    pub(super) fn new(
        steps: &'a [&'a Summary],
        options: &'a Options,
        tables: &[Table],
        labels: &'a [&'a str],
    ) -> Scene<'a> {
        let lines: usize =
            tables.iter().flat_map(|table| &table.lines).map(|line| line.steps.len()).sum();
        let pulses: &[Pulse] =
            if lines > PULSES_MAX { &[Pulse::Rate] } else { &[Pulse::Rate, Pulse::P99] };
        let vertices = chart::vertices_each(lines * pulses.len());
        Scene { steps, options, labels, vertices, pulses }
    }

    /// The table of this workload with another metric in its cells.
    fn table(&self, workload: &str, metric: Metric) -> Result<Option<Table<'a>>> {
        let options = Options { metric, ..self.options.clone() };
        let of: Vec<&Summary> =
            self.steps.iter().filter(|step| step.workload.name == workload).copied().collect();
        Ok(pivot::tables(&of, &options)?.into_iter().next())
    }

    /// Charts of other metrics over the clients.
    fn charts(&self, workload: &str, metrics: &[Metric]) -> Result<Vec<Chart>> {
        let mut charts = Vec::new();
        for metric in metrics {
            if let Some(table) = self.table(workload, metric.clone())? {
                charts.extend(chart::over_clients(&table, self.labels));
            }
        }
        Ok(charts)
    }
}

/// The section of one table, which has neither footnotes nor ratios yet.
pub(super) fn workload(scene: &Scene, of: &Table) -> Result<Markup> {
    let labels = scene.labels;
    let mut plain = of.clone();
    plain.notes = notes::notes(&plain);
    let base = base(scene, &plain);
    let mut related = [plain.clone()];
    if let Some(base) = &base {
        baseline::relate(&mut related, base)?;
    }
    let [related] = related;
    let unrelated: Vec<String> =
        caption::below(&related).into_iter().skip(caption::below(&plain).len()).collect();
    let related = with_ratios(related);
    let rates = chart::over_clients(&plain, labels);
    let ratios = base.as_ref().map_or_else(Vec::new, |base| chart::relative(&plain, base, labels));
    let latency = latency(scene, &plain)?;
    let costs = scene.charts(plain.workload, &costs())?;
    let timed = plain.lines.iter().flat_map(|line| &line.steps).any(|s| !s.timeline.is_empty());
    Ok(html! {
        section {
            h2 { (escape::markup(plain.workload)) }
            (figure::charts(&[rates, ratios].concat(), labels))
            (table::table(&plain, labels))
            p.behind { "Behind it: " (escape::markup(&behind::line(&plain))) "." }
            @for line in caption::below(&plain) { p.faint { (escape::markup(&line)) } }
            @if base.is_some() && !related.columns.is_empty() {
                (table::table(&related, labels))
                @for line in unrelated { p.faint { (escape::markup(&line)) } }
            }
            (errors(&plain, labels))
            (outages(scene, &plain)?)
            (latency)
            @if !costs.is_empty() {
                h3 { "Cost of an op" }
                (figure::charts(&costs, labels))
            }
            (per_op(scene, of)?)
            @if timed { (timelines(scene, &plain)) }
        }
    })
}

/// Without the columns in which nothing has a ratio.
fn with_ratios(mut table: Table) -> Table {
    let has = |at: usize| {
        let mut cells = table.lines.iter().filter_map(|line| line.cells.get(at)?.as_ref());
        cells.any(|cell| cell.relative.is_some())
    };
    let kept: Vec<bool> = (0..table.columns.len()).map(has).collect();
    let mut keep = kept.iter();
    table.columns.retain(|_| keep.next().is_some_and(|kept| *kept));
    for line in &mut table.lines {
        let mut keep = kept.iter();
        line.cells.retain(|_| keep.next().is_some_and(|kept| *kept));
    }
    table
}

/// The label that others are related to; none where there is nothing to relate.
fn base(scene: &Scene, table: &Table) -> Option<String> {
    let asked = scene.options.baseline.as_deref();
    let first = || table.lines.iter().find(|line| !line.steps.is_empty()).map(|line| line.label);
    let base = asked.or_else(first)?;
    let there = table.lines.iter().any(|line| line.label == base);
    (table.lines.len() > 1 && there).then(|| base.to_owned())
}

fn costs() -> Vec<Metric> {
    ["server-cpu", "cpu"].into_iter().filter_map(named).map(Metric::Figure).collect()
}

/// Over the clients, and by percentile.
fn latency(scene: &Scene, table: &Table) -> Result<Markup> {
    let open = table.columns.iter().any(|column| column.rate.is_some());
    let names: &[&str] =
        if open { &["p50", "p99", "response-p50", "response-p99"] } else { &["p50", "p99"] };
    let metrics: Result<Vec<Metric>> = names.iter().map(|name| name.parse()).collect();
    let over = scene.charts(table.workload, &metrics?)?;
    let by = chart::percentiles(table, scene.labels)?;
    let fold = by.len() > CURVES_MAX || scene.labels.len() > LEGEND_MAX;
    Ok(html! {
        @if !over.is_empty() {
            h3 { "Latency" }
            (figure::charts(&over, scene.labels))
        }
        @if !by.is_empty() {
            details.print open[!fold] {
                summary { "By percentile: each further nine takes the same length" }
                p.faint {
                    "Medians of the repeats' percentiles, from their histograms, up to the last one "
                    "with ten values beyond it in every repeat."
                }
                (figure::charts(&by, scene.labels))
            }
        }
    })
}

/// What an op cost the server and the client, number by number.
fn per_op(scene: &Scene, table: &Table) -> Result<Markup> {
    let options = Options { layout: Layout::PerOp, ..scene.options.clone() };
    // A baseline of another workload relates nothing here.
    let base = options.baseline.clone().filter(|b| table.lines.iter().any(|l| l.label == b));
    let options = Options { baseline: base, ..options };
    let pages = layout::pages(std::slice::from_ref(table), &options)?;
    Ok(html! {
        @if !pages.is_empty() {
            details {
                summary { "Cost of an op, number by number" }
                @for page in &pages { (sheet::page(page, false)) }
                @for line in layout::COSTS { p.faint { (line) } }
            }
        }
    })
}

/// The course of every step, a fold for each label.
fn timelines(scene: &Scene, table: &Table) -> Markup {
    let fold = table.lines.len() > OPEN_MAX;
    html! {
        h3 { "In the course of each step" }
        p.faint {
            "Intervals of the timeline from the start of the warm-up, repeats over each other. "
            "Grey: warm-up and drain, not counted. Red: operations failed; light red: an outage, until "
            "the rate was back. "
            "Long timelines are thinned out; their extremes are kept."
            @if !scene.pulses.contains(&Pulse::P99) { " With so many steps, the rate alone." }
        }
        @for (at, line) in table.lines.iter().enumerate() {
            @let of = |pulse: &Pulse| {
                chart::timelines(table, at, scene.labels, *pulse, scene.vertices)
            };
            @let each: Vec<Vec<Chart>> = scene.pulses.iter().map(of).collect();
            @if each.iter().any(|charts| !charts.is_empty()) {
                details open[!fold] class={ "s" (chart::position(scene.labels, line.label)) } {
                    summary { (chart::shown(line.label)) }
                    @for charts in &each { (figure::strips(charts, scene.labels)) }
                }
            }
        }
    }
}

/// Times without service, where there were any.
fn outages(scene: &Scene, table: &Table) -> Result<Markup> {
    let mut steps = table.lines.iter().flat_map(|line| line.steps.iter().chain(&line.left_out));
    if steps.all(|step| step.outages.is_empty()) {
        return Ok(html! {});
    }
    let options = Options { layout: Layout::Outages, ..scene.options.clone() };
    let pages = layout::pages(std::slice::from_ref(table), &options)?;
    Ok(html! { @for page in &pages { (sheet::page(page, true)) } })
}

/// Errors by label and code.
fn errors(table: &Table, labels: &[&str]) -> Markup {
    let steps = table.lines.iter().flat_map(|line| {
        line.steps.iter().chain(&line.left_out).map(move |step| (line.label, *step))
    });
    let failed: Vec<(&str, &Summary)> = steps
        .filter(|(_, step)| !step.totals.errors.is_empty() || step.outcome != Outcome::Completed)
        .collect();
    html! {
        @if !failed.is_empty() {
            details {
                summary { "Errors, and steps that did not complete: " (failed.len()) " steps" }
                div.scroll { table {
                    thead { tr {
                        th.text { "label" } th { "clients" } th.text { "error" } th { "count" }
                        th.text { "first message" }
                    } }
                    tbody { @for (label, step) in failed {
                        @let class = format!("s{}", chart::position(labels, label));
                        @for error in &step.totals.errors {
                            tr class=(class) {
                                th.text { (chart::shown(label)) }
                                td { (step.plan.clients) }
                                td.text {
                                    @if let Some(code) = error.code { (code) } @else { (escape::clip(&error.class, 40)) }
                                }
                                td { (error.count) }
                                td.text { (escape::markup(&escape::clip(&error.message, 200))) }
                            }
                        }
                        @if step.outcome != Outcome::Completed {
                            tr class=(class) {
                                th.text { (chart::shown(label)) }
                                td { (step.plan.clients) }
                                td.text colspan="3" { (escape::markup(&notes::ending(step))) }
                            }
                        }
                    } }
                } }
            }
        }
    }
}
