//! One page with everything: tables, charts, what stands behind them. It needs no network and no
//! script; the script adds values below the pointer and shorthands for the switches.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::chart::{self, Chart, P99, RATE, bounds, position};
use super::compare::{ASKED_FOR, Ratio, is_asked_for, related};
use super::escape::{clip, markup};
use super::layout;
use super::notes::{self, Note, label, listed, mark, noted};
use super::origin::{TEXT_MAX, behind, plan};
use super::page::{self, Page, Rows, Sheet};
use super::svg::{self, Plot, Size, px};
use super::table::{self, Cell, Column, Item, Line, Table, in_time, known, merit};
use super::{Layout, Options, counted, relative};
use crate::error::Result;
use crate::summary::{Outcome, Summary, VerdictKind};
use crate::terms::{self, named};

const SCRIPT: &str = include_str!("html/script.js");
/// More than these are folded away, and labels have a search in place of a legend of each chart.
const MANY: usize = 12;
/// With more steps than this, timelines show the rate alone.
const RATES_ONLY_FROM: usize = 400;
/// As wide as a phone: letters stay readable there, and grow on a wider screen.
const USUAL: Size = (420.0, 280.0);
/// Timelines are many, each of one label: they have no legend.
const LOW: Size = (420.0, 170.0);
/// Characters of a message, and of a line of a table.
const MESSAGE_MAX: usize = 200;
const LINE_MAX: usize = 30;

/// Said where there is an open loop.
const TIMES: &str = "Service times run from the call to its return; response times from the intended \
                     instant, which only columns with @, at an asked rate, have. Where no time is \
                     named, these show the response time, all others the service time.";
const COURSE: &str = "Intervals of the timeline, repeats over each other. Grey: warm-up and drain, not \
                      counted. Red: operations failed; light red: an outage, until the rate was back. \
                      Steps at as many clients have one scale, whatever the label. Long timelines are \
                      thinned out, extremes kept; no p99 of fewer than 1,000 operations is shown.";
const BY_PERCENTILE: &str = "By percentile: each further nine takes the same length";
const CURVES: &str = "Medians of the repeats' percentiles, from their histograms, up to the last one \
                      with ten values beyond it in every repeat.";
const BEST: &str = "Bold on grey: the best median of a column, and all that its runs do not tell from \
                    it (the 95 % interval of their ratio holds 1); of too few runs for an interval, \
                    the best median alone.";
const SMALL: &str = "Small: [ ] the 95 % interval of the median; a..b the smallest and the largest \
                     run, too few for an interval.";
const SMALL_RATIOS: &str = "Small: 95 % interval of the ratio from the runs of both labels, each by \
                            itself, not corrected for the number of cells; loadgen compare decides.";
const ORIGIN: &str = "A cell is the median of its repeats: the run is the unit of every statistic. \
                      Intervals of medians are by order statistics, those of ratios Hodges and \
                      Lehmann's on logarithms. Rates count what succeeded in the measured window; \
                      percentiles come from a histogram of every operation, three digits exact.";

/// Returns the page of some steps.
pub fn page(steps: &[&Summary], options: &Options) -> Result<String> {
    let tables = counted(steps, options)?;
    if let Some(label) = &options.baseline {
        known(&tables, "--baseline", label)?;
    }
    let labels = chart::labels(&tables);
    let mut steps: Vec<&Summary> = tables.iter().flat_map(Table::all).collect();
    steps.sort_by_cached_key(|step| in_time(step));
    let shown = Shown { options, tables: &tables, labels: &labels, steps: &steps };
    let sections = tables.iter().map(|table| shown.workload(table)).collect::<Result<Vec<_>>>()?;
    let plain = Options { layout: Layout::Settings, baseline: None, ..options.clone() };
    let apart = layout::pages(&tables, &plain)?;
    let body = html! {
        header { h1 { "loadgen report" } p.faint { (shown.headline()) } }
        // Without its switch nothing of a label is shown, wherever it is.
        fieldset #switches class=[(labels.len() > MANY).then_some("many")] {
            legend { (terms::counted(labels.len() as u64, "label")) }
            div.keys { @for (at, label) in labels.iter().enumerate() { span.key {
                input type="checkbox" id={ "l" (at) } checked autocomplete="off";
                (key(at, label))
            } } }
        }
        main {
            @for section in sections { (section) }
            section #settings {
                h2 { "Settings that differ" }
                @for page in &apart { (of_page(page, false)) }
            }
            (shown.origin())
        }
        footer { p.faint {
            "Made by loadgen " (env!("CARGO_PKG_VERSION"))
            " from the summaries alone. Colours: Okabe and Ito."
        } }
    };
    // Asked of the switches alone: of the whole page it would be walked through for each rule.
    let switched = (0..labels.len()).map(|at| {
        let off = format!("#switches:has(#l{at}:not(:checked))~main");
        format!(
            "{off} .s{at}{{display:none}}{off} .k{at},#l{at}:not(:checked)+.k{at}{{opacity:.45}}\n"
        )
    });
    let style = svg::STYLE.to_owned() + &switched.collect::<String>();
    let workloads: Vec<&str> = tables.iter().map(|table| table.workload).collect();
    Ok(document(&format!("{} - loadgen report", workloads.join(", ")), &style, &body))
}

/// Whatever comes from a summary is text here: nothing but this style and this script may do
/// anything, and nothing is fetched.
fn document(title: &str, style: &str, body: &Markup) -> String {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; \
         form-action 'none'",
        hash(style),
        hash(SCRIPT)
    );
    let document = html! {
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
            body { (body) script { (PreEscaped(SCRIPT)) } }
        }
    };
    format!("{}\n", document.into_string())
}

/// Returns a label with a sample of its line; it switches the label.
fn key(at: usize, label: &str) -> Markup {
    html! {
        label for={ "l" (at) } class={ "k" (at) } {
            svg class={ "sample " (svg::class(at)) } viewBox="0 0 28 12" aria-hidden="true" {
                (svg::sample(at))
            }
            " " (notes::label(label))
        }
    }
}

fn charts(charts: &[Chart], labels: &[&str], size: Size) -> Markup {
    html! {
        @if !charts.is_empty() { div.charts {
            @for chart in charts { (figure(chart, labels, size)) }
        } }
        @if chart::has_bars(charts) { p.faint { (chart::BARS) } }
    }
}

fn figure(chart: &Chart, labels: &[&str], size: Size) -> Markup {
    let plot = Plot::of(chart, size);
    let places = chart.across.map(|said| {
        let mut places: Vec<f64> = chart.points().map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let places = places.iter().map(|x| format!("{}:{}", px(plot.x(*x)), said(*x)));
        places.collect::<Vec<String>>().join("|")
    });
    // What the script computes values from, where they are not said.
    let [left, right, top, bottom] = [plot.left, plot.right, plot.top, plot.bottom].map(px);
    let (x, y) = (chart.x.to, chart.y.to);
    let scales = places.is_none().then(|| format!("{left} {right} {top} {bottom} {x} {y}"));
    let drawn = chart::drawn(std::slice::from_ref(chart));
    html! {
        figure {
            figcaption { (markup(&chart.title)) }
            svg.chart viewBox={ "0 0 " (px(size.0)) " " (px(size.1)) } role="img"
                aria-label=(markup(&format!("{}: {}", chart.of, chart.title)))
                data-x=[&places] data-t=[scales] { (svg::draw(chart, size)) }
            @if places.is_some() && drawn.len() <= MANY {
                div.keys { @for at in drawn { (key(at, labels[at])) } }
            }
        }
    }
}

/// Folds something away that print shows all the same.
fn fold(open: bool, head: &str, what: &Markup) -> Markup {
    html! { details.print open[open] { summary { (head) } (what) } }
}

/// Writes a list or a table with its title; what belongs below it, where that is wanted.
fn of_page(page: &Page, below: bool) -> Markup {
    let sheets: Vec<&Sheet> = page.shown().collect();
    let list = sheets.first().filter(|sheet| sheet.list);
    html! {
        p.title { @for line in &page.title { (markup(line)) " " } }
        @if let Some(list) = list {
            ul { @for cells in list.texts() { li { (markup(&cells.concat())) } } }
        } @else { (of_sheets(&sheets, &[])) }
        @if below { @for line in page.remarks() { p.faint { (markup(line)) } } }
    }
}

/// Writes sheets of the same columns as a table: numbers to the right, texts to the left. Rows with a
/// label go with its switch.
fn of_sheets(sheets: &[&Sheet], labels: &[usize]) -> Markup {
    let side = |column: &page::Column, text: &str| {
        column.left.then_some(if text.len() > LINE_MAX { "text long" } else { "text" })
    };
    html! {
        @if let Some(first) = sheets.first() { div.scroll { table {
            thead { tr { @for (column, head) in first.shown().zip(first.heads()) {
                th class=[side(column, "")] scope="col" { (markup(&head)) }
            } } }
            @for sheet in sheets { tbody {
                @if let Some(rule) = &sheet.rule {
                    tr { th.text.rule colspan=(first.shown().count()) { (markup(rule.trim_start_matches("--- "))) } }
                }
                @for (at, cells) in sheet.texts().enumerate() {
                    tr class=[labels.get(at).map(|label| format!("s{label}"))] {
                        @for (column, cell) in first.shown().zip(cells) {
                            td class=[side(column, &cell)] { (markup(&cell)) }
                        }
                    }
                }
            } }
        } } }
    }
}

/// Everything that a page shows.
struct Shown<'a> {
    options: &'a Options,
    tables: &'a [Table<'a>],
    labels: &'a [&'a str],
    /// Those that did not complete, too: what they were asked is worth knowing.
    steps: &'a [&'a Summary],
}

impl Shown<'_> {
    /// Makes the section of one table, which has neither footnotes nor ratios yet.
    fn workload(&self, of: &Table) -> Result<Markup> {
        let (labels, plain) = (self.labels, noted(of.clone()));
        let (related, remarks) = self.ratios(&plain);
        let mut numbers = chart::over_clients(&plain, labels);
        numbers.extend(related.iter().flat_map(|related| chart::over_clients(related, labels)));
        let costs = self.charts(&plain, &["server-cpu", "cpu"])?;
        let is_open = plain.columns.iter().any(Column::is_open);
        let times: &[&str] = if is_open {
            &["response-p50", "response-p99", "service-p50", "service-p99"]
        } else {
            &["p50", "p99"]
        };
        let times = self.charts(&plain, times)?;
        let curves = chart::percentiles(&plain, labels)?;
        let unfolded = curves.len() <= MANY && labels.len() <= MANY;
        let per_op = self.pages(of, Layout::PerOp)?;
        Ok(html! { section {
            h2 { (markup(plain.workload)) }
            (charts(&numbers, labels, USUAL))
            (main_table(&plain, labels))
            p.behind { "Behind it: " (markup(&behind(&plain))) "." }
            @for line in notes::below(&plain) { p.faint { (markup(&line)) } }
            @if let Some(related) = &related { (main_table(related, labels)) }
            @for remark in &remarks { p.faint { (markup(remark)) } }
            (errors(&plain, labels))
            @if plain.all().any(|step| !step.outages.is_empty()) {
                @for page in self.pages(&plain, Layout::Outages)? { (of_page(&page, true)) }
            }
            @if !times.is_empty() {
                h3 { "Latency" }
                @if is_open { p.faint { (TIMES) } }
                (charts(&times, labels, USUAL))
            }
            @if !curves.is_empty() { (fold(unfolded, BY_PERCENTILE, &html! {
                p.faint { (CURVES) }
                (charts(&curves, labels, USUAL))
            })) }
            @if !costs.is_empty() {
                h3 { "Cost of an op" }
                (charts(&costs, labels, USUAL))
            }
            @if !per_op.is_empty() { (fold(false, "Cost of an op, number by number", &html! {
                @for page in &per_op { (of_page(page, false)) }
                @for line in relative::LEGEND { p.faint { (line) } }
            })) }
            (self.timelines(&plain))
        } })
    }

    /// Relates a workload to the label that was asked for, else to the first that was measured, and
    /// tells what else is to be said of it.
    fn ratios<'t>(&self, plain: &Table<'t>) -> (Option<Table<'t>>, Vec<String>) {
        let first = || plain.lines.iter().find(|line| !line.steps.is_empty()).map(|l| l.label);
        let base = self.options.baseline.as_deref().or_else(first);
        let is_other = |base: &&str| plain.lines.iter().any(|line| line.label != *base);
        let Some(base) = base.filter(is_other) else { return (None, Vec::new()) };
        let Some(table) = related(plain, self.tables, base) else {
            return (None, vec![format!("No ratios: {} was not measured here.", label(base))]);
        };
        let mut remarks = notes::unrelated(&table);
        remarks.extend((table.columns.len() < plain.columns.len()).then(|| ASKED_FOR.to_owned()));
        let mut others = table.lines.iter().filter(|line| line.label != base);
        let has = |cell: &Cell| cell.relative.is_some();
        let any = others.any(|line| line.cells.values().any(has));
        remarks.extend((!any).then(|| format!("No other label has a ratio to {}.", label(base))));
        (any.then_some(table), remarks)
    }

    fn pages(&self, table: &Table, layout: Layout) -> Result<Vec<Page>> {
        // A baseline of another workload relates nothing here.
        let baseline = self.options.baseline.clone().filter(|base| table.line(base).is_some());
        let options = Options { layout, baseline, ..self.options.clone() };
        layout::pages(std::slice::from_ref(table), &options)
    }

    fn charts(&self, table: &Table, metrics: &[&str]) -> Result<Vec<Chart>> {
        let steps: Vec<&Summary> = table.all().collect();
        let mut charts = Vec::new();
        for metric in metrics {
            let options = Options { metric: metric.parse()?, ..self.options.clone() };
            let tables = table::tables(&steps, &options)?;
            charts.extend(tables.iter().flat_map(|of| chart::over_clients(of, self.labels)));
        }
        Ok(charts)
    }

    /// Draws the course of every step, a fold for each label.
    fn timelines(&self, table: &Table) -> Markup {
        let steps = self.steps.len();
        let courses = if steps > RATES_ONLY_FROM { &[&RATE][..] } else { &[&RATE, &P99] };
        let vertices = chart::vertices_each(steps * courses.len());
        let of = |course: &&_| chart::timelines(table, self.labels, course, vertices);
        let each: Vec<Vec<Vec<Chart>>> = courses.iter().map(of).collect();
        let mut lines: Vec<(usize, &Line)> = table.lines.iter().enumerate().collect();
        lines.retain(|(at, _)| each.iter().any(|lines| !lines[*at].is_empty()));
        html! { @if !lines.is_empty() {
            h3 { "In the course of each step" }
            p.faint { (COURSE) @if courses.len() == 1 { " With so many steps, the rate alone." } }
            @for (at, line) in lines {
                @let of = position(self.labels, line.label);
                details open[table.lines.len() <= MANY] class={ "s" (of) } {
                    summary { (label(line.label)) }
                    @for lines in &each { (charts(&lines[at], self.labels, LOW)) }
                }
            }
        } }
    }

    fn headline(&self) -> String {
        let ends = self.steps.first().into_iter().chain(self.steps.last());
        let ends: BTreeSet<String> = ends.map(|step| instant(&step.started_at)).collect();
        let counts = [(self.tables.len(), "workload"), (self.labels.len(), "label")];
        let [workloads, labels] = counts.map(|(count, of)| terms::counted(count as u64, of));
        let steps = terms::counted(self.steps.len() as u64, "step");
        markup(&format!("{workloads}, {labels}, {steps}, {}", listed(&ends, " to ")))
    }

    /// Tells how each number was obtained: the invocations behind the page, and their steps.
    fn origin(&self) -> Markup {
        let mut invocations: BTreeMap<_, Vec<&Summary>> = BTreeMap::new();
        for step in self.steps {
            let of = (&step.run_id, &step.label, &step.workload.name);
            invocations.entry(of).or_default().push(step);
        }
        let mut invocations: Vec<Vec<&Summary>> = invocations.into_values().collect();
        invocations.sort_by_cached_key(|steps| in_time(steps[0]));
        let place = |step: &Summary| position(self.labels, &step.label);
        let places: Vec<usize> = self.steps.iter().map(|step| place(step)).collect();
        let sheet = Rows::new(self.steps)
            .text("step", |step| clip(&step.step_id, TEXT_MAX))
            .text("label", |step| label(&step.label))
            .text("workload", |step| clip(&step.workload.name, TEXT_MAX))
            .shown("clients", |step| step.cell().to_string())
            .shown("repeat", |step| step.plan.repeat_index)
            .text("started", |step| instant(&step.started_at))
            .shown("seconds", |step| (step.measured_s, 1))
            .shown("ops", |step| step.totals.ops)
            .shown("errors", |step| super::metric::errors(step))
            .shown("QPS", |step| (step.totals.qps, 0))
            .text("outcome", |step| clip(&notes::ending(step), TEXT_MAX))
            .sheet();
        html! { section #origin {
            h2 { "How the numbers were obtained" }
            p.faint { (ORIGIN) }
            (fold(false, &format!("Plans: {}", invocations.len()), &html! {
                @for steps in &invocations {
                    div class={ "plan s" (place(steps[0])) } { (plan(steps)) }
                }
            }))
            (fold(false, &format!("Steps: {}", places.len()), &of_sheets(&[&sheet], &places)))
        } }
    }
}

fn instant(text: &str) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(instant) => instant.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => clip(text, TEXT_MAX),
    }
}

/// Returns the positions, line and column, of the best of each column: of the best median, and of all
/// that the runs do not tell from it. There is none without a choice, or of what was asked for.
fn best(table: &Table) -> BTreeSet<(usize, Column)> {
    let mut best = BTreeSet::new();
    let merit = |cell: &Cell| merit(&table.metric, cell.spread.median);
    for column in table.columns.iter().filter(|column| !is_asked_for(table, column)) {
        let cells = table.items().filter(|item| item.column == *column);
        let cells: Vec<Item> = cells.filter(|item| merit(item.cell).is_finite()).collect();
        let top = cells.iter().max_by(|a, b| merit(a.cell).total_cmp(&merit(b.cell)));
        let Some(top) = top.filter(|_| cells.len() > 1) else { continue };
        for item in &cells {
            let interval =
                Ratio::of([top.cell, item.cell], table.metric, 1.0).and_then(|r| r.bounds());
            let is_level = interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high);
            if is_level || merit(item.cell).total_cmp(&merit(top.cell)).is_eq() {
                best.insert((item.at, *column));
            }
        }
    }
    best
}

/// Returns a workload's numbers, one label a line, with their title, what marks and small numbers mean,
/// and the footnotes of what is no ratio.
fn main_table(table: &Table, labels: &[&str]) -> Markup {
    let (best, is_related) = (best(table), table.baseline.is_some());
    // Two digits after the point would often hide a ratio's interval.
    let decimals = if is_related { 3 } else { table.metric.decimals(table.shown()) };
    // The 95 % interval, and what the runs lie between: too few for an interval have the latter alone.
    let small = |cell: &Cell| chart::bounds_shown(bounds(table, cell, 1.0), decimals);
    let of_small = if is_related { SMALL_RATIOS } else { SMALL };
    let mut legend: Vec<&str> = Vec::new();
    legend.extend((!best.is_empty()).then_some(BEST));
    legend.extend(table.cells().any(|cell| small(cell) != [None, None]).then_some(of_small));
    let (title, shown_decimals) = (markup(&notes::title(table)), layout::decimals(table));
    let doubt = |cell: &Cell| {
        let mut verdicts = cell.steps.iter().filter_map(|step| step.verdict.as_ref());
        verdicts.any(|verdict| verdict.kind != VerdictKind::Ok)
    };
    html! {
        p.title { (title) }
        div.scroll { table.main aria-label=(title) {
            thead {
                tr {
                    th.text scope="col" rowspan="2" { "label" }
                    th.over scope="colgroup" colspan=(table.columns.len()) { (layout::CLIENTS) }
                }
                tr { @for column in &table.columns { th scope="col" { (column.to_string()) } } }
            }
            tbody { @for (line, of) in table.lines.iter().enumerate() {
                @let base = table.baseline.as_deref() == Some(of.label);
                tr class={ "s" (position(labels, of.label)) @if base { " base" } } {
                    th.text scope="row" { (label(of.label)) (signs(table, line, None)) }
                    @for column in &table.columns {
                        @let cell = of.cells.get(column);
                        @let number = layout::number(table, cell, shown_decimals).shown;
                        td class=[best.contains(&(line, *column)).then_some("best")] {
                            @if cell.is_some_and(doubt) { u { (number) } } @else { (number) }
                            (signs(table, line, Some(column)))
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
        @if !is_related { @for (at, note) in table.notes.iter().enumerate() {
            p.note { (mark(at)) " " (markup(&note.text)) }
        } }
    }
}

/// Returns the signs of the notes that hold for everything that a line shows, or of those that hold for
/// one column alone.
fn signs(table: &Table, line: usize, column: Option<&Column>) -> Markup {
    let here = |note: &Note| {
        note.places.get(&line).is_some_and(|columns| {
            let throughout = table.lines[line].cells.keys().all(|shown| columns.contains(shown));
            column.map_or(throughout, |column| !throughout && columns.contains(column))
        })
    };
    let notes = table.notes.iter().enumerate().filter(|(_, note)| here(note));
    let signs = notes::signs(notes.map(|(at, _)| at));
    html! { @if !signs.is_empty() { " " sup { (signs.trim_start()) } } }
}

/// Returns the table of errors by their code, else their class, and of steps that did not complete by how
/// they ended, where there are any.
fn errors(table: &Table, labels: &[&str]) -> Markup {
    // By line, how it ended, and code: the count, the first message, the steps of each column.
    let mut rows: BTreeMap<_, (u64, String, BTreeMap<Column, usize>)> = BTreeMap::new();
    for (label, step) in table.lines.iter().flat_map(|of| of.all().map(|step| (of.label, step))) {
        let of_step = step.totals.errors.iter().map(|error| {
            let class = || clip(&error.class, TEXT_MAX);
            let code = error.code.map_or_else(class, |code| code.to_string());
            (None, code, error.count, clip(&error.message, MESSAGE_MAX))
        });
        let ended = (step.outcome != Outcome::Completed).then(|| notes::ending(step));
        let ended = ended.map(|how| (Some(how.clone()), "did not complete".to_owned(), 1, how));
        for (ended, code, count, message) in of_step.chain(ended) {
            let of = (position(labels, label), ended, code);
            let row = rows.entry(of).or_insert((0, message, BTreeMap::new()));
            row.0 = row.0.saturating_add(count);
            *row.2.entry(step.cell()).or_default() += 1;
        }
    }
    let places = |steps: &BTreeMap<Column, usize>| {
        let one = |(column, steps): (&Column, &usize)| match steps {
            1 => column.to_string(),
            steps => format!("{column} ({steps} steps)"),
        };
        named(steps.iter().map(one).collect(), MANY, ", ")
    };
    let of: Vec<usize> = rows.keys().map(|(line, ..)| *line).collect();
    let sheet = Rows::new(rows)
        .text("label", |((line, ..), _)| label(labels[*line]))
        .text("error", |((_, _, code), _)| code.clone())
        .shown("count", |(_, (count, ..))| *count)
        .text("in steps at clients", |(_, (_, _, steps))| places(steps))
        .text("first message", |(_, (_, message, _))| message.clone())
        .sheet();
    let head = "Errors, and steps that did not complete";
    html! { @if !of.is_empty() { (fold(of.len() <= MANY, head, &of_sheets(&[&sheet], &of))) } }
}
