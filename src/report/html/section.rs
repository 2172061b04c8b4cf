//! Everything about one workload.

use maud::{Markup, html};

use super::super::chart::{self, Chart, Pulse};
use super::super::figure::named;
use super::super::layout;
use super::super::metric::Metric;
use super::super::pivot::{self, Line, Table};
use super::super::{Layout, Options, caption, escape, notes};
use super::best::Best;
use super::ratios::Ratios;
use super::{LEGEND_MAX, behind, errors, figure, sheet, table};
use crate::error::Result;
use crate::summary::Summary;

/// With so many labels, the charts of each are folded away.
const OPEN_MAX: usize = 6;
/// As are more charts by percentile than these.
const CURVES_MAX: usize = 12;
/// With more steps than this, timelines show the rate alone.
const PULSES_MAX: usize = 400;

/// Said where there is an open loop.
const TIMES: &str = "Service times run from the call to its return; response times from the intended \
                     instant, which only columns with @, at an asked rate, have. Where no time is \
                     named, these show the response time, all others the service time.";

/// What all sections share.
pub(super) struct Scene<'a> {
    steps: &'a [&'a Summary],
    options: &'a Options,
    /// Of all workloads.
    tables: &'a [Table<'a>],
    labels: &'a [&'a str],
    /// Vertices of each timeline.
    vertices: usize,
    pulses: &'static [Pulse],
}

impl<'a> Scene<'a> {
    pub(super) fn new(
        steps: &'a [&'a Summary],
        options: &'a Options,
        tables: &'a [Table<'a>],
        labels: &'a [&'a str],
    ) -> Scene<'a> {
        let lines = tables.iter().flat_map(|table| &table.lines).flat_map(Line::all).count();
        let pulses: &[Pulse] =
            if lines > PULSES_MAX { &[Pulse::Rate] } else { &[Pulse::Rate, Pulse::P99] };
        let vertices = chart::vertices_each(lines * pulses.len());
        Scene { steps, options, tables, labels, vertices, pulses }
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
    let best = Best::of(&plain)?;
    let Ratios { table: related, remarks } = Ratios::of(&plain, scene.tables, scene.options)?;
    let mut charts = chart::over_clients(&plain, labels);
    charts.extend(related.iter().flat_map(|related| chart::relative(related, labels)));
    let latency = latency(scene, &plain)?;
    let costs = scene.charts(plain.workload, &costs())?;
    Ok(html! {
        section {
            h2 { (escape::markup(plain.workload)) }
            (figure::charts(&charts, labels))
            (table::table(&plain, &best, labels))
            p.behind { "Behind it: " (escape::markup(&behind::line(&plain))) "." }
            @for line in caption::below(&plain) { p.faint { (escape::markup(&line)) } }
            @if let Some(related) = &related { (table::table(related, &best, labels)) }
            @for remark in &remarks { p.faint { (escape::markup(remark)) } }
            (errors::errors(&plain, labels))
            (outages(scene, &plain)?)
            (latency)
            @if !costs.is_empty() {
                h3 { "Cost of an op" }
                (figure::charts(&costs, labels))
            }
            (per_op(scene, of)?)
            (timelines(scene, &plain))
        }
    })
}

fn costs() -> Vec<Metric> {
    ["server-cpu", "cpu"].into_iter().filter_map(named).map(Metric::Figure).collect()
}

/// Over the clients, and by percentile.
fn latency(scene: &Scene, table: &Table) -> Result<Markup> {
    let open = table.columns.iter().any(|column| column.rate.is_some());
    let names: &[&str] = if open {
        &["response-p50", "response-p99", "service-p50", "service-p99"]
    } else {
        &["p50", "p99"]
    };
    let metrics: Result<Vec<Metric>> = names.iter().map(|name| name.parse()).collect();
    let over = scene.charts(table.workload, &metrics?)?;
    let by = chart::percentiles(table, scene.labels)?;
    let fold = by.len() > CURVES_MAX || scene.labels.len() > LEGEND_MAX;
    Ok(html! {
        @if !over.is_empty() {
            h3 { "Latency" }
            @if open { p.faint { (TIMES) } }
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
            details.print {
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
    let of = |pulse: &Pulse| chart::timelines(table, scene.labels, *pulse, scene.vertices);
    let each: Vec<Vec<Vec<Chart>>> = scene.pulses.iter().map(of).collect();
    if each.iter().flatten().all(Vec::is_empty) {
        return html! {};
    }
    html! {
        h3 { "In the course of each step" }
        p.faint {
            "Intervals of the timeline from the start of the warm-up, repeats over each other. "
            "Grey: warm-up and drain, not counted. Red: operations failed; light red: an outage, until "
            "the rate was back. "
            "Steps at as many clients have one scale, whatever the label; other numbers of clients "
            "have their own. Long timelines are thinned out; their extremes are kept. "
            "A p99 of an interval with fewer than 1,000 operations is left out."
            @if !scene.pulses.contains(&Pulse::P99) { " With so many steps, the rate alone." }
        }
        @for (at, line) in table.lines.iter().enumerate() {
            @let charts = || each.iter().filter_map(move |by_line| by_line.get(at));
            @if charts().any(|charts| !charts.is_empty()) {
                details open[!fold] class={ "s" (chart::position(scene.labels, line.label)) } {
                    summary { (chart::shown(line.label)) }
                    @for charts in charts() { (figure::strips(charts, scene.labels)) }
                }
            }
        }
    }
}

/// Times without service, where there were any.
fn outages(scene: &Scene, table: &Table) -> Result<Markup> {
    let mut steps = table.lines.iter().flat_map(Line::all);
    if steps.all(|step| step.outages.is_empty()) {
        return Ok(html! {});
    }
    let options = Options { layout: Layout::Outages, ..scene.options.clone() };
    let pages = layout::pages(std::slice::from_ref(table), &options)?;
    Ok(html! { @for page in &pages { (sheet::page(page, true)) } })
}
