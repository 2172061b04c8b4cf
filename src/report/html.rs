//! One page with everything: tables, charts, what stands behind them. It needs no network and no
//! script; the script adds values below the pointer and shorthands for the switches.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::chart::{self, Chart, Plot, Size, bounds, px};
use super::columns::{CLIENTS, PageColumn, Rows, Sheet};
use super::command::command;
use super::compare::answers;
use super::escape::{clip, markup, markup_owned};
use super::labels::{self, Labels, base_of, first_measured, position};
use super::legend::legend;
use super::names::{self, instant, label};
use super::note::{self, MARK};
use super::notes::{self, is_all_marked, is_marked, noted_with};
use super::options::Options;
use super::page::Page;
use super::ratio::{Ratio, Ratios, explain_asked_for, is_asked_for};
use super::run::{Run, Runs, ending};
use super::table::{Item, LabelRow, TableCell, WorkloadTable, is_comparable, merit};
use super::tables::{self, tables_to_show};
use super::timeline::{self, RATE_COURSES, TIME_COURSES};
use super::value::number;
use super::{imported, layout, metric, settings, summary_lines};
use crate::error::Result;
use crate::stats;
use crate::summary::{Imported, Outcome, Summary, VerdictKind, counter};
use crate::terms::units::rate_decimals;
use crate::terms::{self, Cell, named};

const SCRIPT: &str = include_str!("html/script.js");
/// More than these are folded away, and labels have a search in place of a legend of each chart.
const MANY: usize = 12;
/// With more steps than this, timelines show the rate alone.
const RATES_ONLY_FROM: usize = 400;
/// As wide as a phone: letters stay readable there, and grow on a wider screen.
const USUAL: Size = (420.0, 280.0);
/// Timelines are many, each of one label: they have no legend.
const LOW: Size = (420.0, 170.0);
/// Characters of a message, of a line of a table, and of another text.
const MESSAGE_MAX: usize = 200;
const LINE_MAX: usize = 30;
const TEXT_MAX: usize = 80;
const PLACES_MAX: usize = 2;
/// A table of more columns is not put beside a chart.
const BESIDE_MAX: usize = 6;
/// The most by which the time that the server's counters cover may differ from the window.
const COVERED_MORE_MAX: f64 = 0.01;

const TIMES: &str = "Service times run from the request to its answer; response times from the intended \
                     instant, which only columns with a rate have. Where no time is \
                     named, these show the response time, all others the service time.";
const COURSE: &str = "Intervals of the timeline, repeats over each other. Grey: warm-up and drain, \
                      not counted. Red: operations failed; light red: an outage, until the rate \
                      was back. Steps at as many clients have one scale, whatever the label; a \
                      group beside has its own. Long timelines are thinned out, extremes kept. An \
                      interval of fewer than 1,000 operations has no p99; where most have fewer, \
                      the chart shows the longest time instead.";
const CURVES: &str = "Medians of the repeats' percentiles, from their histograms, up to the last one \
                      with ten values beyond it in every repeat.";
const BEST: &str = "Bold on grey: the best median of a column, and each median with no proven \
                    difference from it (the 95 % interval of their ratio includes 1); with too few \
                    runs for an interval, the best median alone.";
const SMALL: &str = "Small: [ ] the 95 % interval of the median; a..b the smallest and the largest \
                     run, too few for an interval.";
const SMALL_RATIOS: &str = "Small: 95 % interval of the ratio from the runs of both labels, each by \
                            itself, not corrected for the number of cells; loadgen compare decides.";
const ORIGIN: &str = "A cell is the median of its repeats: the run is the unit of every statistic. \
                      Intervals of medians are by order statistics, those of ratios Hodges and \
                      Lehmann's on logarithms. Rates count what succeeded in the measured window; \
                      percentiles come from a histogram of every operation, three digits exact.";

pub fn page<'a>(runs: impl Into<Runs<'a>>, options: &Options) -> Result<String> {
    let runs = runs.into();
    let tables = tables_to_show(&runs, options)?;
    let tables: Vec<_> = tables.into_iter().map(|table| noted_with(table, true)).collect();
    let labels = labels::labels(&tables);
    let base = options.baseline.as_deref().or_else(|| first_measured(&tables));
    let mut steps: Vec<&Summary> = tables.iter().flat_map(WorkloadTable::all_steps).collect();
    steps.sort_by_cached_key(|step| Run::Measured(step).sort_key());
    let shown: Vec<Run> = tables.iter().flat_map(|table| table.runs().to_vec()).collect();
    let imported: Vec<&Imported> = shown.iter().filter_map(|run| run.imported()).collect();
    let ends = steps.first().into_iter().chain(steps.last());
    let mut ends: Vec<String> = ends.map(|step| instant(&step.started_at)).collect();
    ends.dedup();
    let ratios = &Ratios::new(&tables);
    let page =
        ReportPage { options, base, tables: &tables, ratios, labels: &labels, steps: &steps };
    let counts = page.counts(imported.len());
    let body = html! {
        header {
            h1 { "loadgen report" }
            @for line in answers(&runs, options, base) { p.result { (line) } }
            p.faint { (counts.join(", ")) @if !ends.is_empty() { ", " (ends.join(" to ")) } }
        }
        (switches(&labels, &counts[1]))
        main {
            // All notes are on the page.
            @for line in summary_lines::short(&tables).lines { p.note { (line) } }
            // A part of many labels is large: it is made only when the one before is written.
            @for (at, table) in tables.iter().enumerate() { section {
                (page.numbers(at))
                @for part in ReportPage::DETAILS { (part(&page, at)?) }
                @for part in page.timelines(table) { (part) }
            } }
            section #settings {
                h2 { "Settings that differ" }
                (of_page(&settings::page(&tables)))
            }
            (page.origin(&imported))
        }
        footer { p.faint {
            "Made by loadgen " (env!("CARGO_PKG_VERSION"))
            " from the summaries alone. Colours: Okabe and Ito."
        } }
    };
    let style = chart::STYLE.to_owned() + &switch_rules(labels.len());
    let workloads: Vec<&str> = tables.iter().map(|table| table.workload).collect();
    let title = format!("{} - loadgen report", workloads.join(", "));
    Ok(document(&title, &style, body.into_string()))
}

fn switch_rules(labels: usize) -> String {
    // The selector begins at the switches: else a browser walks through the whole page for each rule.
    let rule = |at: usize| {
        let off = format!("#switches:has(#l{at}:not(:checked))~main");
        format!(
            "{off} .s{at}{{display:none}}{off} .k{at},#l{at}:not(:checked)+.k{at}{{opacity:.45}}\n"
        )
    };
    (0..labels).map(rule).collect()
}

/// Whatever comes from a summary is text: only this style and this script act, and nothing is fetched.
fn document(title: &str, style: &str, body: String) -> String {
    let mut document = markup_owned(body);
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; \
         form-action 'none'",
        hash(style),
        hash(SCRIPT)
    );
    let around = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "loadgen " (env!("CARGO_PKG_VERSION")) };
                link rel="icon" href="data:,";
                title { (markup(title)) }
                style { (PreEscaped(style)) }
            }
            body { script { (PreEscaped(SCRIPT)) } }
        }
    }
    .into_string();
    // The body may be large: it is not copied.
    let (head, end) = around.split_at(around.find("<script>").expect("it is there"));
    document.insert_str(0, head);
    document.push_str(end);
    document.push('\n');
    document
}

/// Makes the switches of the labels: without its own nothing of a label is shown, wherever it is.
fn switches(labels: &Labels, counted: &str) -> Markup {
    html! {
        fieldset #switches class=[(labels.len() > MANY).then_some("many")] {
            legend { (counted) }
            div.keys { @for (at, label) in labels.iter().enumerate() { span.key {
                input type="checkbox" id={ "l" (at) } checked autocomplete="off";
                (key(at, label))
            } } }
        }
    }
}

fn key(at: usize, label: &str) -> Markup {
    html! {
        label for={ "l" (at) } class={ "k" (at) } {
            svg class={ "sample " (chart::class(at)) } viewBox="0 0 28 12" aria-hidden="true" {
                (chart::sample(at))
            }
            " " (names::label(label))
        }
    }
}

fn charts(charts: &[Chart], labels: &Labels, size: Size) -> Markup {
    html! {
        @if !charts.is_empty() { div.charts {
            @for chart in charts { (figure(chart, labels, size)) }
        } }
        @if let Some(bars) = chart::bars(charts) { p.faint { (bars) } }
    }
}

fn figure(chart: &Chart, labels: &Labels, size: Size) -> Markup {
    let plot = Plot::new(chart, size);
    let places = chart.across.map(|value_text| {
        let mut places: Vec<f64> = chart.points().map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let places = places.iter().map(|x| format!("{}:{}", px(plot.x(*x)), value_text(*x)));
        places.collect::<Vec<String>>().join("|")
    });
    // The script computes values from these where the page does not have them.
    let [left, right, top, bottom] = [plot.left, plot.right, plot.top, plot.bottom].map(px);
    let (x, y) = (chart.x.to, chart.y.to);
    let scales = places.is_none().then(|| format!("{left} {right} {top} {bottom} {x} {y}"));
    let drawn = chart::drawn(std::slice::from_ref(chart));
    let has_legend = places.is_some() && drawn.len() <= MANY;
    let named: Vec<(usize, &str)> = drawn.into_iter().map(|at| (at, labels[at])).collect();
    let (entries, height) = legend(if has_legend { &named } else { &[] }, size);
    html! {
        figure {
            figcaption { (chart.title) }
            svg.chart viewBox={ "0 0 " (px(size.0)) " " (px(size.1 + height)) } role="img"
                aria-label={ (chart.of) ": " (chart.title) }
                data-x=[&places] data-t=[scales] data-b=(bottom) {
                (chart::draw(chart, size))
                @for entry in entries { (entry) }
            }
        }
    }
}

/// Folds something away that print shows all the same.
fn fold(open: bool, head: &str, what: &Markup) -> Markup {
    html! { details.print open[open] { summary { (head) } (what) } }
}

fn of_page(page: &Page) -> Markup {
    let sheets: Vec<&Sheet> = page.visible_sheets().collect();
    let list = sheets.first().filter(|sheet| sheet.list);
    html! {
        p.title { @for line in &page.title { (line) " " } }
        @if let Some(list) = list {
            ul { @for cells in list.texts() { li { (cells.concat()) } } }
        } @else { (of_sheets(&sheets, &[])) }
    }
}

/// Numbers to the right, texts to the left. Rows with a label go with its switch.
fn of_sheets(sheets: &[&Sheet], labels: &[usize]) -> Markup {
    let side = |column: &PageColumn, text: &str| {
        column.left.then_some(if text.len() > LINE_MAX { "text long" } else { "text" })
    };
    html! {
        @if let Some(first) = sheets.first() { div.scroll { table {
            thead { tr { @for (column, head) in first.visible_columns().zip(first.heads()) {
                th class=[side(column, "")] scope="col" { (head) }
            } } }
            @for sheet in sheets { tbody {
                @if let Some(rule) = &sheet.rule {
                    tr { th.text.rule colspan=(first.visible_columns().count()) { (rule.trim_start_matches("--- ")) } }
                }
                @for (at, cells) in sheet.texts().enumerate() {
                    tr class=[labels.get(at).map(|label| format!("s{label}"))] {
                        @for (column, cell) in first.visible_columns().zip(cells) {
                            td class=[side(column, &cell)] { (cell) }
                        }
                    }
                }
            } }
        } } }
    }
}

struct ReportPage<'a> {
    options: &'a Options,
    /// The label that the answers and the ratios are about.
    base: Option<&'a str>,
    tables: &'a [WorkloadTable<'a>],
    ratios: &'a Ratios<'a, 'a>,
    labels: &'a Labels<'a>,
    /// Those that did not complete, too: what they were asked is worth knowing.
    steps: &'a [&'a Summary],
}

impl<'a> ReportPage<'a> {
    fn counts(&self, imported: usize) -> Vec<String> {
        let [tables, labels, steps] = [self.tables.len(), self.labels.len(), self.steps.len()];
        let mut counts = vec![(tables, "workload"), (labels, "label"), (steps, "step")];
        counts.extend((imported > 0).then_some((imported, "imported run")));
        let counted = |(count, noun): (usize, &str)| terms::counted(count as u64, noun);
        counts.into_iter().map(counted).collect()
    }

    fn origin(&self, imported: &[&Imported]) -> Markup {
        html! {
            section #origin {
                h2 { "How the numbers were obtained" }
                p.faint { (ORIGIN) }
                @if !imported.is_empty() {
                    @let sheet = imported::origin(imported);
                    (fold(false, &format!("Imported: {}", imported.len()), &of_sheets(&[&sheet], &[])))
                }
                (self.plans())
                (self.step_list())
            }
        }
    }

    /// The parts of the section of one table that follow its numbers, but for its timelines.
    const DETAILS: [fn(&Self, usize) -> Result<Markup>; 4] =
        [Self::latency, Self::curves, Self::costs, Self::per_op];

    fn numbers(&self, at: usize) -> Markup {
        let (labels, plain) = (self.labels, &self.tables[at]);
        let (related, remarks) = self.ratios(at);
        let mut numbers = chart::over_clients(plain, labels);
        numbers.extend(related.iter().flat_map(|related| chart::over_clients(related, labels)));
        html! {
            h2 { (plain.workload) }
            @let beside = numbers.len() == 1 && plain.columns.len() <= BESIDE_MAX;
            div class=[beside.then_some("beside")] {
                div { (charts(&numbers, labels, USUAL)) }
                div { (main_table(plain, labels)) }
            }
            p.behind { "Behind it: " (behind(plain)) "." }
            @for line in notes::conditions_in_short(plain).iter().chain(&notes::below(plain)) {
                p.faint { (line) }
            }
            @let full: Vec<String> = note::in_full(&plain.notes);
            @let full = full.into_iter().chain(notes::conditions_in_full(plain));
            (fold(false, "All notes and conditions", &html! { @for note in full { p.note { (note) } } }))
            @if let Some(related) = &related { (main_table(related, labels)) }
            @for remark in &remarks { p.faint { (remark) } }
            (errors(plain, labels))
            @if plain.all_steps().any(|step| !step.outages.is_empty()) {
                @let page = layout::outages(plain);
                (of_page(&page))
                @for line in &page.below { p.faint { (line) } }
            }
        }
    }

    fn latency(&self, at: usize) -> Result<Markup> {
        let is_open = self.tables[at].columns.iter().any(Cell::is_open);
        let metrics = ["response-p50", "response-p99", "service-p50", "service-p99"];
        let drawn = self.charts(&self.tables[at], &metrics)?;
        Ok(self.folded(true, "Latency", is_open.then_some(TIMES), &drawn))
    }

    fn curves(&self, at: usize) -> Result<Markup> {
        let drawn = chart::percentiles(&self.tables[at], self.labels)?;
        let few = drawn.len() <= MANY && self.labels.len() <= MANY;
        let head = "By percentile: each further nine takes the same length";
        Ok(self.folded(few, head, Some(CURVES), &drawn))
    }

    fn costs(&self, at: usize) -> Result<Markup> {
        let drawn = self.charts(&self.tables[at], &["server-cpu", "cpu"])?;
        Ok(self.folded(true, "Cost of an op", None, &drawn))
    }

    fn per_op(&self, at: usize) -> Result<Markup> {
        let of = &self.tables[at];
        // A baseline of another workload relates nothing here.
        let baseline = self.options.baseline.as_deref().filter(|base| of.line(base).is_some());
        let page = |of| layout::per_op(of, baseline, at, self.ratios);
        let columns = of.by_column().into_iter().filter(WorkloadTable::has_runs);
        let pages: Vec<Page> = columns.map(page).collect::<Result<_>>()?;
        Ok(html! {
            @if !pages.is_empty() { (fold(false, "Cost of an op, number by number", &html! {
                @for page in &pages { (of_page(page)) }
                @for line in layout::LEGEND { p.faint { (line) } }
            })) }
        })
    }

    fn folded(&self, open: bool, head: &str, note: Option<&str>, drawn: &[Chart]) -> Markup {
        html! { @if !drawn.is_empty() { (fold(open, head, &html! {
            @if let Some(note) = note { p.faint { (note) } }
            (charts(drawn, self.labels, USUAL))
        })) } }
    }

    /// Relates a workload to the label that was asked for, else to the page's base where it was measured.
    fn ratios(&self, at: usize) -> (Option<WorkloadTable<'a>>, Vec<String>) {
        let plain = &self.tables[at];
        let base = self.options.baseline.as_deref().or_else(|| base_of(plain, self.base));
        let is_other = |base: &&str| plain.lines.iter().any(|line| line.label != *base);
        let Some(base) = base.filter(is_other) else { return (None, Vec::new()) };
        let Some(table) = self.ratios.related(at, plain, base) else {
            return (None, vec![format!("No ratios: {} was not measured here.", label(base))]);
        };
        let mut remarks = notes::unrelated(&table);
        let is_cut = table.columns.len() < plain.columns.len();
        remarks.extend(is_cut.then(|| explain_asked_for(table.metric)));
        let any = table.items().any(|of| of.line.label != base && of.cell.relative.is_some());
        remarks.extend((!any).then(|| format!("No other label has a ratio to {}.", label(base))));
        (any.then_some(table), remarks)
    }

    fn charts(&self, table: &WorkloadTable, metrics: &[&str]) -> Result<Vec<Chart>> {
        let steps = table.runs();
        let mut charts = Vec::new();
        for metric in metrics {
            let options = Options { metric: metric.parse()?, ..self.options.clone() };
            let tables = tables::tables(&steps, &options)?;
            charts.extend(tables.iter().flat_map(|of| chart::over_clients(of, self.labels)));
        }
        Ok(charts)
    }

    fn timelines<'t>(&'t self, table: &'t WorkloadTable<'a>) -> impl Iterator<Item = Markup> {
        let steps = self.steps.len();
        let courses: &[_] =
            if steps > RATES_ONLY_FROM { &[RATE_COURSES] } else { &[RATE_COURSES, TIME_COURSES] };
        let vertices = timeline::vertices_each(self.steps.iter().copied(), courses.len());
        let draw = |course: &&'static _| timeline::timelines(table, self.labels, course, vertices);
        let each: Vec<_> = courses.iter().map(draw).collect();
        let fold = move |line: &LabelRow| {
            let drawn: Vec<Vec<Chart>> = each.iter().map(|draw| draw(line)).collect();
            let of = position(self.labels, line.label);
            drawn.iter().any(|charts| !charts.is_empty()).then(|| {
                html! {
                    details open[table.lines.len() <= MANY] class={ "s" (of) } {
                        summary { (label(line.label)) }
                        @for drawn in &drawn { (charts(drawn, self.labels, LOW)) }
                    }
                }
            })
        };
        let mut folds = table.lines.iter().filter_map(fold).peekable();
        let head = folds.peek().map(|_| html! {
            h3 { "In the course of each step" }
            p.faint { (COURSE) @if courses.len() == 1 { " With so many steps, the rate alone." } }
        });
        head.into_iter().chain(folds)
    }

    fn step_list(&self) -> Markup {
        let place = |step: &&Summary| position(self.labels, &step.label);
        let places: Vec<usize> = self.steps.iter().map(place).collect();
        let decimals = rate_decimals(self.steps.iter().map(|step| step.totals.qps));
        let sheet = Rows::new(self.steps)
            .text("step", |step| clip(&step.step_id, TEXT_MAX))
            .text("label", |step| label(&step.label))
            .text("workload", |step| clip(&step.workload.name, TEXT_MAX))
            .shown("clients", |step| step.cell().to_string())
            .shown("repeat", |step| step.plan.repeat_index)
            .text("started", |step| instant(&step.started_at))
            .shown("seconds", |step| (step.measured_s, 1))
            .shown("ops", |step| step.totals.ops)
            .shown("errors", |step| metric::errors(step))
            .shown("QPS", |step| (step.totals.qps, decimals))
            .text("outcome", |step| clip(&ending(step), TEXT_MAX))
            .sheet();
        fold(false, &format!("Steps: {}", places.len()), &of_sheets(&[&sheet], &places))
    }

    fn plans(&self) -> Markup {
        let mut invocations: Vec<Vec<&Summary>> = Vec::new();
        let mut places: HashMap<_, usize> = HashMap::new();
        for step in self.steps {
            let of = (&step.run_id, &step.label, &step.workload.name);
            let at = *places.entry(of).or_insert(invocations.len());
            invocations.resize_with(invocations.len().max(at + 1), Vec::new);
            invocations[at].push(step);
        }
        let place = |steps: &Vec<&Summary>| position(self.labels, &steps[0].label);
        let invoked: Vec<usize> = invocations.iter().map(place).collect();
        let plans = Rows::new(invocations)
            .text("label", |steps| label(&steps[0].label))
            .text("workload", |steps| clip(&steps[0].workload.name, TEXT_MAX))
            .text("command", |steps| command(steps))
            .text("run", |steps| steps[0].run_id.as_str())
            .text("first step", |steps| steps[0].started_at.as_str())
            .text("loadgen", |steps| {
                let of = &steps[0].loadgen;
                let revision = of.revision.as_deref().unwrap_or("unknown");
                format!("{} (revision {revision}), {} build", of.version, of.profile)
            })
            .text("driver", |of| format!("{} {}", of[0].driver.name, of[0].driver.version))
            .text("server", |steps| {
                let of = &steps[0].server;
                format!("{} {}, {} by {}", of.version, of.version_comment, of.host, of.transport)
            })
            .shown("port", |steps| steps[0].server.port.map(u32::from))
            .text("client", |steps| {
                let of = &steps[0].client;
                let cores = terms::counted(of.cores, "core");
                format!("{}, {}, {cores}, {}", of.host, of.cpu, of.kernel)
            })
            .sheet();
        fold(false, &format!("Plans: {}", invoked.len()), &of_sheets(&[&plans], &invoked))
    }
}

/// Finds also those that the runs do not tell from the best median. None without a choice, or for one that was asked for.
fn best(table: &WorkloadTable) -> BTreeSet<(usize, Cell)> {
    let mut best = BTreeSet::new();
    let merit = |cell: &TableCell| merit(&table.metric, cell.spread.median);
    let mut columns: BTreeMap<Cell, Vec<Item>> = BTreeMap::new();
    for item in table.items().filter(|item| merit(item.cell).is_finite()) {
        columns.entry(item.column).or_default().push(item);
    }
    columns.retain(|column, _| !is_asked_for(table, column));
    for (column, cells) in &columns {
        let top = cells.iter().max_by(|a, b| merit(a.cell).total_cmp(&merit(b.cell)));
        let Some(top) = top.filter(|_| cells.len() > 1) else { continue };
        if cells.iter().any(|item| !is_comparable(table.metric, [top.cell, item.cell])) {
            continue;
        }
        for item in cells {
            let interval =
                Ratio::between([top.cell, item.cell], table.metric, 1.0).and_then(|r| r.bounds());
            let is_level = interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high);
            if is_level || merit(item.cell).total_cmp(&merit(top.cell)).is_eq() {
                best.insert((item.at, *column));
            }
        }
    }
    best
}

fn main_table(table: &WorkloadTable, labels: &Labels) -> Markup {
    let (best, is_related) = (best(table), table.baseline.is_some());
    // Two digits after the point would often hide a ratio's interval.
    let decimals = if is_related { 3 } else { table.metric.decimals(table.numbers()) };
    // The 95 % interval, and what the runs lie between: too few for an interval have the latter alone.
    let unit = if is_related { 1.0 } else { table.metric.unit().0 };
    let small = |cell: &TableCell| chart::bounds_in_words(bounds(table, cell, unit), decimals);
    let of_small = if is_related { SMALL_RATIOS } else { SMALL };
    let mut legend: Vec<&str> = Vec::new();
    legend.extend((!best.is_empty()).then_some(BEST));
    legend.extend(table.cells().any(|cell| small(cell) != [None, None]).then_some(of_small));
    let ratios = table.baseline.as_ref().map(|label| notes::title_of_ratios(table, label));
    let title = ratios.unwrap_or_else(|| notes::title(table));
    let shown_decimals = layout::decimals(table);
    let doubt = |cell: &TableCell| {
        let mut verdicts = cell.steps().filter_map(|step| step.verdict.as_ref());
        verdicts.any(|verdict| verdict.kind != VerdictKind::Ok)
    };
    html! {
        p.title { (title) }
        div.scroll { table.main aria-label=(title) {
            thead {
                tr {
                    th.text scope="col" rowspan="2" { "label" }
                    th.over scope="colgroup" colspan=(table.columns.len()) { (CLIENTS) }
                }
                tr { @for column in &table.columns { th scope="col" { (column.to_string()) } } }
            }
            tbody { @for (line, of) in table.lines.iter().enumerate() {
                @let base = table.baseline.as_deref() == Some(of.label);
                tr class={ "s" (position(labels, of.label)) @if base { " base" } } {
                    th.text scope="row" { (label(of.label)) @if is_all_marked(table, line) { (star()) } }
                    @for column in &table.columns {
                        @let cell = of.at(column);
                        @let number = layout::number(table, cell, shown_decimals).shown;
                        td class=[best.contains(&(line, *column)).then_some("best")] {
                            @if cell.is_some_and(doubt) { u { (number) } } @else { (number) }
                            @if !is_all_marked(table, line) && is_marked(table, line, Some(column)) {
                                (star())
                            }
                            @if let Some(([interval, range], cell)) = cell.map(|cell| (small(cell), cell)) {
                                @let runs = |range| format!("{} runs: {range}", cell.spread.n);
                                @let title = interval.as_ref().and(range.clone()).map(runs);
                                @if let Some(text) = interval.or(range) { small title=[title] { (text) } }
                            }
                        }
                    }
                }
            } }
        } }
        @if !legend.is_empty() { p.faint { (legend.join(" ")) } }
    }
}

fn star() -> Markup {
    html! { sup { (MARK) } }
}

/// Errors by code, else class; steps that did not complete by how they ended.
fn errors(table: &WorkloadTable, labels: &Labels) -> Markup {
    type Places<'s> = BTreeMap<Cell, BTreeSet<&'s str>>;
    // By line, how it ended, and code: the count, the first message, the columns of the steps.
    let mut rows: BTreeMap<_, (u64, String, Places)> = BTreeMap::new();
    for (label, step) in
        table.lines.iter().flat_map(|of| of.all_steps().map(|step| (of.label, step)))
    {
        let own = step.totals.errors.iter().map(|error| (error, String::new()));
        let beside = step.groups.iter().flat_map(|group| {
            let of_group = format!(" (group {})", clip(&group.name, TEXT_MAX));
            group.totals.errors.iter().map(move |error| (error, of_group.clone()))
        });
        let of_step = own.chain(beside).map(|(error, of_group)| {
            let class = || clip(&error.class.to_string(), TEXT_MAX);
            let code = error.code.map_or_else(class, |code| code.to_string());
            (None, code + &of_group, error.count, clip(&error.message, MESSAGE_MAX))
        });
        let ended = (step.outcome != Outcome::Completed).then(|| ending(step));
        let ended = ended.map(|how| (Some(how.clone()), "did not complete".to_owned(), 1, how));
        for (ended, code, count, message) in of_step.chain(ended) {
            let of = (position(labels, label), ended, code);
            let row = rows.entry(of).or_insert((0, message, Places::new()));
            row.0 = row.0.saturating_add(count);
            row.2.entry(step.cell()).or_default().insert(&step.step_id);
        }
    }
    let of: Vec<usize> = rows.keys().map(|(line, ..)| *line).collect();
    let sheet = Rows::new(rows)
        .text("label", |((line, ..), _)| label(labels[*line]))
        .text("error", |((_, _, code), _)| code.clone())
        .shown("count", |(_, (count, ..))| *count)
        .text("in steps at clients", |(_, (_, _, places))| {
            let places = places.iter().map(|(column, steps)| match steps.len() {
                1 => column.to_string(),
                many => format!("{column} ({many} steps)"),
            });
            named(places.collect(), MANY, ", ")
        })
        .text("first message", |(_, (_, message, _))| message.clone())
        .sheet();
    let head = "Errors, and steps that did not complete";
    html! { @if !of.is_empty() { (fold(of.len() <= MANY, head, &of_sheets(&[&sheet], &of))) } }
}

fn behind(table: &WorkloadTable) -> String {
    let steps: Vec<&Summary> = table.lines.iter().flat_map(LabelRow::steps).collect();
    if steps.is_empty() && table.has_runs() {
        return "what other programs printed, and nothing else".to_owned();
    }
    let of = |value: &dyn Fn(&Summary) -> Option<f64>, decimals| {
        range(steps.iter().filter_map(|step| value(step)), decimals)
    };
    let mut kinds: BTreeMap<VerdictKind, usize> = BTreeMap::new();
    for verdict in steps.iter().filter_map(|step| step.verdict.as_ref()) {
        *kinds.entry(verdict.kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let busiest = |step: &Summary| {
        let shares = step.client.share.iter().flat_map(|s| &s.threads).map(|thread| thread.busy);
        let looks = step.client.threads.iter().filter(|_| step.client.share.is_none());
        let busy = shares.chain(looks.map(|thread| thread.busy)).max_by(f64::total_cmp);
        busy.map(|busy| busy * 100.0)
    };
    let part = |step: &Summary| {
        let ceiling = step.client.share.as_ref()?.ceiling.as_ref()?;
        Some(100.0 * step.qps_of_all() / ceiling.qps).filter(|part| part.is_finite())
    };
    let ceiling = match of(&part, 0) {
        Some(parts) => format!("the client did {parts}% of what its calibration says it can"),
        None => "the client's ceiling is not known (loadgen calibrate measures it)".to_owned(),
    };
    let place = |step: &&Summary| {
        let (client, server) = (&step.client, &step.server);
        let cores = terms::counted(client.cores, "core");
        let on = format!("{} ({cores})", clip(&client.host, TEXT_MAX));
        if client.same_host {
            format!("client and server on {on}, by {}", clip(&server.transport, TEXT_MAX))
        } else {
            format!("client on {on}, server {}", clip(&server.host, TEXT_MAX))
        }
    };
    let places: BTreeSet<String> = steps.iter().map(place).collect();
    let trip = of(
        &|step| step.client.rtt_us.filter(|_| !step.client.same_host).map(|us| us / metric::MS),
        3,
    );
    let facts = [
        Some(counts(&steps)),
        (!kinds.is_empty()).then(|| format!("verdicts on the steps: {}", kinds.join(", "))),
        of(&busiest, 0).map(|busy| format!("the client's busiest thread was {busy}% busy")),
        of(&|step| step.client.us_per_op, 1)
            .map(|cost| format!("the client cost {cost} µs CPU an op")),
        Some(ceiling),
        (!steps.is_empty()).then(|| named(places.into_iter().collect(), PLACES_MAX, ", and ")),
        trip.map(|trip| format!("round trip {trip} ms")),
    ];
    facts.into_iter().flatten().collect::<Vec<String>>().join("; ")
}

/// Words the server's count of statements in percent of the client's, over the time of the readings.
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

fn share(step: &Summary) -> Result<f64, String> {
    if !step.addresses.is_empty() {
        return Err("of several addresses the first alone was asked".to_owned());
    }
    let status = step.server.status.as_ref().ok_or("its counters could not be read")?;
    let covered = step.covered_s(status.first_s).ok_or("nothing was measured")?;
    // If the readings cover much more, the rate outside the window is not known.
    if (covered - step.measured_s).abs() > step.measured_s * COVERED_MORE_MAX {
        let off = number(status.first_s.abs(), 2);
        let how = if status.first_s < 0.0 { "before" } else { "after" };
        return Err(format!("its counters were read {off} s {how} the window's start"));
    }
    let counted = step.status().and_then(|status| counter(status, "Questions"));
    // Some servers that are not MySQL's own have no such counter.
    let has_counter = status.restarted_s.is_some() || status.deltas.contains_key("Questions");
    let counted = counted.ok_or(if has_counter {
        "its counters were reset within the window"
    } else {
        "it counts no statements"
    })?;
    let share = 100.0 * counted / (step.qps_of_all() * covered);
    if share.is_finite() { Ok(share) } else { Err("the client had no answer".to_owned()) }
}

fn range(values: impl Iterator<Item = f64>, decimals: usize) -> Option<String> {
    let spread = stats::spread(&values.collect::<Vec<f64>>())?;
    let (low, high) = (format!("{:.decimals$}", spread.min), format!("{:.decimals$}", spread.max));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::histogram::encode;
    use crate::summary::{ErrorClass, ErrorCount, Group};

    #[test]
    fn errors_of_a_group_beside_have_a_row_of_their_own() {
        let lost = |count| ErrorCount { class: ErrorClass::Lost, count, ..ErrorCount::default() };
        let mut step = Summary::sound();
        step.totals.errors = vec![lost(7)];
        let mut group = Group { name: "writer".to_owned(), ..Group::default() };
        group.totals.errors = vec![lost(3)];
        step.groups = vec![group];
        let tables = tables::tables(&Runs::from(&[&step]), &Options::default()).expect("a table");
        let shown = errors(&tables[0], &labels::labels(&tables)).into_string();
        for row in ["lost</td><td>7<", "lost (group writer)</td><td>3<"] {
            assert!(shown.contains(row), "{shown}");
        }
    }

    #[test]
    fn page_says_that_costs_have_the_work_of_groups_beside() {
        let mut step = Summary::sound();
        step.groups = vec![Group { name: "writer".to_owned(), ..Group::default() }];
        let latency = &mut step.latency;
        for times in [&mut latency.service, &mut latency.failed] {
            times.histogram = encode(&[1_000]);
        }
        let shown = page(Runs::from(&[&step]), &Options::default()).expect("a page");
        assert!(shown.contains("with the work of group writer"), "{shown}");
    }

    #[test]
    fn counters_were_not_reset_when_the_server_counts_no_statements() {
        let mut step = Summary::sound();
        let status = step.server.status.as_mut().expect("there");
        status.deltas.insert("Questions".to_owned().into(), -5);
        let reset = share(&step);
        step.server.status.as_mut().expect("there").deltas.remove("Questions");
        let absent = share(&step);
        assert!(reset.is_err() && absent.is_err() && reset != absent, "{reset:?} {absent:?}");
    }
}
