//! Everything about one workload.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::chart::{self, Chart, Shown};
use super::super::escape::{clip, markup};
use super::super::figure::named;
use super::super::layout;
use super::super::notes::noted;
use super::super::settings::label;
use super::super::table::{self, Column, Table};
use super::super::{Layout, Metric, Options, notes, settings};
use super::table::{Best, ratios, table};
use super::{LEGEND_MAX, charts, of_page, origin, strips};
use crate::error::Result;
use crate::summary::{Outcome, Summary};

/// With so many labels, the charts of each are folded away.
const OPEN_MAX: usize = 6;
/// As are more charts by percentile than these.
const CURVES_MAX: usize = 12;
/// With more steps than this, timelines show the rate alone.
const RATES_ONLY_FROM: usize = 400;
/// More rows of errors than these are folded away.
const ERRORS_MAX: usize = 12;
/// Longest class of an error, and longest message, characters.
const CLASS_MAX: usize = 40;
const TEXT_MAX: usize = 200;
/// Columns of the table that a row of errors names.
const NAMED_MAX: usize = 8;

/// Said where there is an open loop.
const TIMES: &str = "Service times run from the call to its return; response times from the intended \
                     instant, which only columns with @, at an asked rate, have. Where no time is \
                     named, these show the response time, all others the service time.";

pub(super) struct Sections<'a> {
    steps: &'a [&'a Summary],
    options: &'a Options,
    tables: &'a [Table<'a>],
    labels: &'a [&'a str],
    vertices: usize,
    timelines: &'static [Shown],
}

impl<'a> Sections<'a> {
    pub(super) fn new(
        steps: &'a [&'a Summary],
        options: &'a Options,
        tables: &'a [Table<'a>],
        labels: &'a [&'a str],
    ) -> Sections<'a> {
        let lines = tables.iter().flat_map(Table::all).count();
        let timelines: &[Shown] =
            if lines > RATES_ONLY_FROM { &[Shown::Rate] } else { &[Shown::Rate, Shown::P99] };
        let vertices = chart::vertices_each(lines * timelines.len());
        Sections { steps, options, tables, labels, vertices, timelines }
    }

    /// Makes the section of one table, which has neither footnotes nor ratios yet.
    pub(super) fn workload(&self, of: &Table) -> Result<Markup> {
        let labels = self.labels;
        let plain = noted(of.clone());
        let best = Best::of(&plain)?;
        let (related, remarks) = ratios(&plain, self.tables, self.options)?;
        let mut numbers = chart::over_clients(&plain, labels);
        numbers.extend(related.iter().flat_map(|related| chart::relative(related, labels)));
        let costs = ["server-cpu", "cpu"].into_iter().filter_map(named).map(Metric::Figure);
        let costs = self.charts(plain.workload, costs)?;
        Ok(html! {
            section {
                h2 { (markup(plain.workload)) }
                (charts(&numbers, labels))
                (table(&plain, &best, labels))
                p.behind { "Behind it: " (markup(&origin::behind(&plain))) "." }
                @for line in settings::below(&plain) { p.faint { (markup(&line)) } }
                @if let Some(related) = &related { (table(related, &best, labels)) }
                @for remark in &remarks { p.faint { (markup(remark)) } }
                (errors(&plain, labels))
                @if plain.all().any(|step| !step.outages.is_empty()) {
                    @for page in self.pages(&plain, Layout::Outages)? { (of_page(&page, true)) }
                }
                (self.latency(&plain)?)
                @if !costs.is_empty() {
                    h3 { "Cost of an op" }
                    (charts(&costs, labels))
                }
                @let pages = self.pages(of, Layout::PerOp)?;
                @if !pages.is_empty() {
                    details.print {
                        summary { "Cost of an op, number by number" }
                        @for page in &pages { (of_page(page, false)) }
                        @for line in layout::COSTS { p.faint { (line) } }
                    }
                }
                (self.timelines(&plain))
            }
        })
    }

    /// Another layout of one table.
    fn pages(&self, table: &Table, layout: Layout) -> Result<Vec<super::Page>> {
        // A baseline of another workload relates nothing here.
        let there = |base: &String| table.line(base).is_some();
        let baseline = self.options.baseline.clone().filter(there);
        let options = Options { layout, baseline, ..self.options.clone() };
        layout::pages(std::slice::from_ref(table), &options)
    }

    /// Charts of other metrics over the clients.
    fn charts(
        &self,
        workload: &str,
        metrics: impl IntoIterator<Item = Metric>,
    ) -> Result<Vec<Chart>> {
        let steps = self.steps.iter().filter(|step| step.workload.name == workload);
        let steps: Vec<&Summary> = steps.copied().collect();
        let mut charts = Vec::new();
        for metric in metrics {
            let options = Options { metric, ..self.options.clone() };
            for table in table::tables(&steps, &options)? {
                charts.extend(chart::over_clients(&table, self.labels));
            }
        }
        Ok(charts)
    }

    /// Over the clients, and by percentile.
    fn latency(&self, table: &Table) -> Result<Markup> {
        let open = table.columns.iter().any(|column| column.rate.is_some());
        let names: &[&str] = if open {
            &["response-p50", "response-p99", "service-p50", "service-p99"]
        } else {
            &["p50", "p99"]
        };
        let metrics = names.iter().map(|name| name.parse().expect("a metric"));
        let over = self.charts(table.workload, metrics)?;
        let by = chart::percentiles(table, self.labels)?;
        let fold = by.len() > CURVES_MAX || self.labels.len() > LEGEND_MAX;
        Ok(html! {
            @if !over.is_empty() {
                h3 { "Latency" }
                @if open { p.faint { (TIMES) } }
                (charts(&over, self.labels))
            }
            @if !by.is_empty() {
                details.print open[!fold] {
                    summary { "By percentile: each further nine takes the same length" }
                    p.faint {
                        "Medians of the repeats' percentiles, from their histograms, up to the last one "
                        "with ten values beyond it in every repeat."
                    }
                    (charts(&by, self.labels))
                }
            }
        })
    }

    /// Returns the course of every step, a fold for each label.
    fn timelines(&self, table: &Table) -> Markup {
        let fold = table.lines.len() > OPEN_MAX;
        let of = |shown: &Shown| chart::timelines(table, self.labels, *shown, self.vertices);
        let each: Vec<Vec<Vec<Chart>>> = self.timelines.iter().map(of).collect();
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
                @if !self.timelines.contains(&Shown::P99) { " With so many steps, the rate alone." }
            }
            @for (at, line) in table.lines.iter().enumerate() {
                @if each.iter().any(|by_line| !by_line[at].is_empty()) {
                    details open[!fold] class={ "s" (chart::position(self.labels, line.label)) } {
                        summary { (label(line.label)) }
                        @for by_line in &each { (strips(&by_line[at], self.labels)) }
                    }
                }
            }
        }
    }
}

/// Errors of one code, or steps that ended in one way.
struct Row {
    /// The code, else the class; none for steps that did not complete.
    what: Option<String>,
    count: u64,
    /// The first message, or how the steps ended.
    text: String,
    /// Steps of each column.
    steps: BTreeMap<Column, usize>,
}

/// Returns the table, where there is anything to tell.
fn errors(table: &Table, labels: &[&str]) -> Markup {
    let lines = table.lines.iter().map(|line| {
        let steps: Vec<&Summary> = line.all().collect();
        (line.label, rows(&steps))
    });
    let lines: Vec<(&str, Vec<Row>)> = lines.filter(|(_, rows)| !rows.is_empty()).collect();
    let many = lines.iter().map(|(_, rows)| rows.len()).sum::<usize>() > ERRORS_MAX;
    html! {
        @if !lines.is_empty() {
            details.print open[!many] {
                summary { "Errors, and steps that did not complete" }
                div.scroll { table {
                    thead { tr {
                        th.text { "label" } th.text { "error" } th { "count" }
                        th.text { "in steps at clients" } th.text { "first message" }
                    } }
                    tbody { @for (label, rows) in &lines { @for row in rows {
                        tr class={ "s" (chart::position(labels, label)) } {
                            th.text { (self::label(label)) }
                            td.text { (row.what.as_deref().unwrap_or("did not complete")) }
                            td { @if row.what.is_some() { (row.count) } }
                            td.text.long { (places(&row.steps)) }
                            td.text.long { (markup(&row.text)) }
                        }
                    } } }
                } }
            }
        }
    }
}

/// In the order in which they were met, steps that did not complete last.
fn rows(steps: &[&Summary]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut add = |what: Option<String>, count: u64, text: String, step: &Summary| {
        // How a step ended is told by its text alone.
        let same = |row: &&mut Row| row.what == what && (what.is_some() || row.text == text);
        let at = step.cell();
        match rows.iter_mut().find(same) {
            Some(row) => {
                row.count = row.count.saturating_add(count);
                *row.steps.entry(at).or_default() += 1;
            }
            None => rows.push(Row { what, count, text, steps: BTreeMap::from([(at, 1)]) }),
        }
    };
    for step in steps {
        for error in &step.totals.errors {
            let class = || markup(&clip(&error.class, CLASS_MAX));
            let what = error.code.map_or_else(class, |code| code.to_string());
            add(Some(what), error.count, clip(&error.message, TEXT_MAX), step);
        }
    }
    for step in steps.iter().filter(|step| step.outcome != Outcome::Completed) {
        add(None, 0, notes::ending(step), step);
    }
    rows
}

/// `8 (3 steps), 16`.
fn places(steps: &BTreeMap<Column, usize>) -> String {
    let one = |(column, count): (&Column, &usize)| match count {
        1 => column.to_string(),
        count => format!("{column} ({count} steps)"),
    };
    let mut named: Vec<String> = steps.iter().take(NAMED_MAX).map(one).collect();
    if steps.len() > NAMED_MAX {
        named.push(format!("and {} more", steps.len() - NAMED_MAX));
    }
    named.join(", ")
}
