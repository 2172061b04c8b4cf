//! One page with everything: tables, charts, what stands behind them. It needs no network and no
//! script; the script adds values below the pointer and shorthands for the switches.

mod origin;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::chart::{self, Chart, Shown};
use super::compare::{ASKED_FOR, interval as ratio_interval, is_asked_for, related};
use super::escape::{clip, markup};
use super::layout::{self, Item, items};
use super::metric::named as named_figure;
use super::notes::{self, label, mark, noted};
use super::page::{self, Page, Rows, Sheet, number};
use super::svg::{self, Plot, Size, Style, px};
use super::table::{self, Cell, Column, Line, Table, known};
use super::{Layout, Metric, Options, counted};
use crate::error::Result;
use crate::summary::{Outcome, Summary, VerdictKind};
use crate::terms::named;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// With more labels than this, the switches have a search, and no chart its own legend.
const LEGEND_MAX: usize = 12;
/// As wide as a phone: letters stay readable there, and grow on a wider screen.
const USUAL: Size = (420.0, 280.0);
const LOW: Size = (420.0, 170.0);

pub fn page(steps: &[&Summary], options: &Options) -> Result<String> {
    let tables = counted(steps, options)?;
    if let Some(label) = &options.baseline {
        known(&tables, "--baseline", label)?;
    }
    let labels = chart::labels(&tables);
    let all = Sections::new(steps, options, &tables, &labels);
    let sections = tables.iter().map(|table| all.workload(table)).collect::<Result<Vec<_>>>()?;
    let legend = legend(&tables, options)?;
    let style = format!("{}\n{STYLE}\n{}", svg::of_page(), switched(&labels));
    let body = html! {
        header {
            h1 { "loadgen report" }
            p.faint { (origin::headline(&tables)) }
        }
        (switches(&labels))
        main {
            @for section in sections { (section) }
            section #settings { (legend) }
            (origin::section(&tables))
        }
        footer { p.faint {
            "Made by loadgen " (env!("CARGO_PKG_VERSION"))
            " from the summaries alone. Colours: Okabe and Ito."
        } }
    };
    Ok(document(&title(&tables), &style, &body))
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
            body {
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    format!("{}\n", document.into_string())
}

fn title(tables: &[Table]) -> String {
    let workloads: Vec<&str> = tables.iter().map(|table| table.workload).collect();
    format!("{} - loadgen report", workloads.join(", "))
}

/// Returns a switch for each label. Without it nothing of the label is shown, wherever it is.
fn switches(labels: &[&str]) -> Markup {
    let many = labels.len() > LEGEND_MAX;
    html! {
        fieldset #switches class=[many.then_some("many")] {
            legend { (labels.len()) @if labels.len() == 1 { " label" } @else { " labels" } }
            div.keys {
                @for (at, label) in labels.iter().enumerate() {
                    span.key {
                        input type="checkbox" id={ "l" (at) } checked autocomplete="off";
                        (key(at, label))
                    }
                }
            }
        }
    }
}

fn switched(labels: &[&str]) -> String {
    let rules = (0..labels.len()).map(|at| {
        // Asked of the switches alone: of the whole page it would be walked through for each rule.
        let off = format!("#switches:has(#l{at}:not(:checked))~main");
        format!(
            "{off} .s{at}{{display:none}}{off} .k{at},#l{at}:not(:checked)+.k{at}{{opacity:.45}}\n"
        )
    });
    rules.collect()
}

fn legend(tables: &[Table], options: &Options) -> Result<Markup> {
    let options = Options { layout: Layout::Settings, baseline: None, ..options.clone() };
    let pages = layout::pages(tables, &options)?;
    Ok(html! {
        h2 { "Settings that differ" }
        @for page in &pages { (of_page(page, false)) }
    })
}

fn charts(charts: &[Chart], labels: &[&str]) -> Markup {
    html! {
        @if !charts.is_empty() {
            div.charts { @for chart in charts { (figure(chart, labels, USUAL, true)) } }
            @if let Some(bars) = chart::bars(charts) { p.faint { (bars) } }
        }
    }
}

fn strips(charts: &[Chart], labels: &[&str]) -> Markup {
    html! { div.charts { @for chart in charts { (figure(chart, labels, LOW, false)) } } }
}

fn figure(chart: &Chart, labels: &[&str], size: Size, legend: bool) -> Markup {
    let drawn = chart.drawn();
    let plot = Plot::of(chart, size);
    let across = chart.across.map(|said| {
        let places = chart.places();
        let said = places.iter().map(|x| format!("{}:{}", px(plot.x(&chart.x, *x)), said(*x)));
        said.collect::<Vec<String>>().join("|")
    });
    // What the script computes values from, where they are not said.
    let inverse = across.is_none().then(|| {
        let ends = [plot.left, plot.right, plot.top, plot.bottom].map(px).join(" ");
        format!("{ends} {} {}", chart.x.scale.end(), chart.y.scale.end())
    });
    // Those without a legend stand below the heading of their label.
    let name = if legend { format!("{}: {}", chart.of, chart.title) } else { chart.title.clone() };
    html! {
        figure {
            figcaption { (markup(&chart.title)) }
            svg.chart viewBox={ "0 0 " (px(size.0)) " " (px(size.1)) } role="img"
                aria-label=(markup(&name)) data-x=[across] data-t=[inverse] {
                (svg::draw(chart, size))
            }
            @if legend && drawn.len() <= LEGEND_MAX {
                div.keys { @for at in &drawn { (key(*at, labels[*at])) } }
            }
        }
    }
}

/// Returns a label with a sample of its line; it switches the label.
fn key(at: usize, label: &str) -> Markup {
    let colour = Style::of(at).colour;
    html! {
        label for={ "l" (at) } class={ "k" (at) } {
            svg class={ "sample c" (colour) } viewBox="0 0 28 12" aria-hidden="true" {
                (svg::sample(at))
            }
            " " (notes::label(label))
        }
    }
}

/// Returns a list or a table with its title; what belongs below it, where that is wanted.
fn of_page(page: &Page, below: bool) -> Markup {
    let sheets: Vec<&Sheet> = page.shown().collect();
    html! {
        p.title { @for line in &page.title { (markup(line)) " " } }
        @if sheets.first().is_some_and(|first| first.list) {
            ul { @for cells in sheets[0].texts() { li { (markup(&cells.concat())) } } }
        } @else if !sheets.is_empty() {
            (grid(&sheets, None, &|_| None))
        }
        @if below { @for line in page.remarks() { p.faint { (markup(line)) } } }
    }
}

/// Returns tables of the same columns as one: numbers to the right, texts to the left. Rows that are of
/// a label go with its switch.
fn grid(sheets: &[&Sheet], class: Option<&str>, of: &dyn Fn(usize) -> Option<usize>) -> Markup {
    let columns: Vec<&page::Column> = sheets[0].shown().collect();
    let text = |column: &page::Column| column.left.then_some("text");
    html! {
        div.scroll { table class=[class] {
            thead { tr { @for column in &columns {
                th class=[text(column)] scope="col" { (markup(column.head.as_deref().unwrap_or(""))) }
            } } }
            @for sheet in sheets { tbody {
                @if let Some(rule) = &sheet.rule {
                    tr { th.text.rule colspan=(columns.len()) { (markup(rule.trim_start_matches("--- "))) } }
                }
                @for (row, cells) in sheet.texts().enumerate() {
                    tr class=[of(row).map(|label| format!("s{label}"))] {
                        @for (column, cell) in columns.iter().zip(cells) {
                            td class=[text(column)] { (markup(&cell)) }
                        }
                    }
                }
            } }
        } }
    }
}

/// With so many labels, the charts of each are folded away.
const OPEN_MAX: usize = 6;
const CURVES_MAX: usize = 12;
/// With more steps than this, timelines show the rate alone.
const RATES_ONLY_FROM: usize = 400;
const ERRORS_MAX: usize = 12;
/// Longest class of an error, and longest message, characters.
const CLASS_MAX: usize = 40;
const TEXT_MAX: usize = 200;
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
        let costs = ["server-cpu", "cpu"].into_iter().filter_map(named_figure).map(Metric::Figure);
        let costs = self.charts(plain.workload, costs)?;
        Ok(html! {
            section {
                h2 { (markup(plain.workload)) }
                (charts(&numbers, labels))
                (table(&plain, &best, labels))
                p.behind { "Behind it: " (markup(&origin::behind(&plain))) "." }
                @for line in notes::below(&plain) { p.faint { (markup(&line)) } }
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

    fn pages(&self, table: &Table, layout: Layout) -> Result<Vec<Page>> {
        // A baseline of another workload relates nothing here.
        let there = |base: &String| table.line(base).is_some();
        let baseline = self.options.baseline.clone().filter(there);
        let options = Options { layout, baseline, ..self.options.clone() };
        layout::pages(std::slice::from_ref(table), &options)
    }

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

struct Row<'a> {
    label: &'a str,
    /// The code, else the class; none for steps that did not complete.
    what: Option<String>,
    count: u64,
    /// The first message, or how the steps ended.
    text: String,
    steps: BTreeMap<Column, usize>,
}

fn errors(table: &Table, labels: &[&str]) -> Markup {
    let rows: Vec<Row> = table.lines.iter().flat_map(rows).collect();
    let many = rows.len() > ERRORS_MAX;
    let at: Vec<_> = rows.iter().map(|row| chart::position(labels, row.label)).collect();
    let sheet = Rows::new(rows)
        .shown("label", |row| label(row.label))
        .left()
        .shown("error", |row| row.what.clone().unwrap_or_else(|| "did not complete".to_owned()))
        .left()
        .shown("count", |row| row.what.as_ref().map_or_else(String::new, |_| row.count.to_string()))
        .shown("in steps at clients", |row| places(&row.steps))
        .left()
        .shown("first message", |row| row.text.clone())
        .left()
        .sheet();
    html! {
        @if sheet.rows > 0 {
            details.print open[!many] {
                summary { "Errors, and steps that did not complete" }
                (grid(&[&sheet], Some("ends"), &|row| Some(at[row])))
            }
        }
    }
}

/// Returns the rows of a label in the order in which they were met, steps that did not complete last.
fn rows<'a>(line: &Line<'a>) -> Vec<Row<'a>> {
    let errors = line.all().flat_map(|step| {
        step.totals.errors.iter().map(move |error| {
            let what = error.code.map_or_else(|| clip(&error.class, CLASS_MAX), |c| c.to_string());
            (step.cell(), Some(what), error.count, clip(&error.message, TEXT_MAX))
        })
    });
    let ended = line.all().filter(|step| step.outcome != Outcome::Completed);
    let ended = ended.map(|step| (step.cell(), None, 0, notes::ending(step)));
    let mut rows: Vec<Row> = Vec::new();
    for (at, what, count, text) in errors.chain(ended) {
        // How a step ended is told by its text alone.
        let same = |row: &Row| row.what == what && (what.is_some() || row.text == text);
        let known = rows.iter().position(same).unwrap_or_else(|| {
            let (label, steps) = (line.label, BTreeMap::new());
            rows.push(Row { label, what: what.clone(), count: 0, text: text.clone(), steps });
            rows.len() - 1
        });
        let row = &mut rows[known];
        row.count = row.count.saturating_add(count);
        *row.steps.entry(at).or_default() += 1;
    }
    rows
}

fn places(steps: &BTreeMap<Column, usize>) -> String {
    let one = |(column, count): (&Column, &usize)| match count {
        1 => column.to_string(),
        count => format!("{column} ({count} steps)"),
    };
    named(steps.iter().map(one).collect(), NAMED_MAX, ", ")
}

const RATIO_DECIMALS: usize = 3;

/// The best of each column: the positions of its lines, and whether the runs are enough to tell it from
/// all others. None where there is no choice, or where the number is what was asked for.
pub(super) struct Best(BTreeMap<Column, (BTreeSet<usize>, bool)>);

impl Best {
    pub(super) fn of(table: &Table) -> Result<Best> {
        let mut best = BTreeMap::new();
        let all: Vec<Item> =
            items(table).filter(|item| item.cell.spread.median.is_finite()).collect();
        for column in table.columns.iter().filter(|column| !is_asked_for(table, column)) {
            let items = || all.iter().filter(|item| item.column == *column);
            let median = |item: &&Item| item.cell.spread.median;
            let top = items().max_by(|a, b| {
                let order = median(a).total_cmp(&median(b));
                if table.metric.higher_is_better() { order } else { order.reverse() }
            });
            let Some(top) = top.filter(|_| items().count() > 1) else { continue };
            let (mut lines, mut told) = (BTreeSet::new(), true);
            for item in items() {
                let interval = ratio_interval(top.cell, item.cell, &table.metric, 1.0)?;
                told &= interval.is_some();
                let equal = median(&item).total_cmp(&median(&top)).is_eq();
                if equal || interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high) {
                    lines.insert(item.at);
                }
            }
            best.insert(*column, (lines, told));
        }
        Ok(Best(best))
    }

    fn holds(&self, column: &Column, line: usize) -> bool {
        self.0.get(column).is_some_and(|(lines, _)| lines.contains(&line))
    }

    fn legend(&self, columns: &[Column]) -> Option<String> {
        const ALL: &str =
            "and all that its runs do not tell from it (the 95 % interval of their ratio holds 1)";
        let marked: Vec<(&Column, bool)> =
            columns.iter().filter_map(|column| Some((column, self.0.get(column)?.1))).collect();
        let untold = marked.iter().filter(|(_, told)| !told);
        let untold: Vec<String> = untold.map(|(column, _)| column.to_string()).collect();
        let means = match (marked.len(), untold.len()) {
            (0, _) => return None,
            (_, 0) => format!(", {ALL}."),
            (marked, untold) if marked == untold => {
                "; the runs are too few to tell whether it is more than chance.".to_owned()
            }
            _ => format!(", {ALL}; at {} the runs are too few to tell.", untold.join(", ")),
        };
        Some(format!("Bold on grey: the best median of a column{means}"))
    }
}

/// Returns the numbers of a workload relative to the label that was asked for, else to the first one that
/// was measured: the columns in which another label has a ratio, and what is to be said of the others.
pub(super) fn ratios<'a>(
    plain: &Table<'a>,
    all: &[Table],
    options: &Options,
) -> Result<(Option<Table<'a>>, Vec<String>)> {
    let first = || plain.lines.iter().find(|line| !line.steps.is_empty()).map(|l| l.label);
    let base = options.baseline.as_deref().or_else(first);
    let Some(base) = base.filter(|base| plain.lines.iter().any(|line| line.label != *base)) else {
        return Ok((None, vec![]));
    };
    let shown = label(base);
    let Some(mut table) = related(plain, all, base)? else {
        return Ok((None, vec![format!("No ratios: {shown} was not measured here.")]));
    };
    let asked_for = (table.columns.len() < plain.columns.len()).then(|| ASKED_FOR.to_owned());
    if table.columns.is_empty() {
        return Ok((None, asked_for.into_iter().collect()));
    }
    let mut remarks = notes::unrelated(&table);
    remarks.extend(asked_for);
    let has = |at: usize, of_base: bool| {
        let mut lines = table.lines.iter().filter(|line| (line.label == base) == of_base);
        lines.any(|line| line.cells[at].as_ref().is_some_and(|cell| cell.relative.is_some()))
    };
    let kept: Vec<bool> = (0..table.columns.len()).map(|at| has(at, false)).collect();
    let alone = (0..kept.len()).filter(|at| !kept[*at] && has(*at, true));
    let alone: Vec<String> = alone.map(|at| table.columns[at].to_string()).collect();
    table.keep(&|at| kept[at]);
    if table.columns.is_empty() {
        remarks.push(format!("No ratios: no other label has a number where {shown} has one."));
        return Ok((None, remarks));
    }
    let alone = (!alone.is_empty()).then(|| alone.join(", "));
    remarks.extend(alone.map(|at| format!("no other label than {shown} has a cell at {at}")));
    Ok((Some(table), remarks))
}

/// Returns the table with its title, what its marks and small numbers mean, and its footnotes.
pub(super) fn table(table: &Table, best: &Best, labels: &[&str]) -> Markup {
    let shown_decimals = layout::decimals(table);
    let legend: Vec<String> =
        best.legend(&table.columns).into_iter().chain(small_legend(table)).collect();
    let related = table.baseline.is_some();
    let decimals = if related { RATIO_DECIMALS } else { table.metric.decimals(table.shown()) };
    html! {
        @let title = markup(&notes::title(table));
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
                @let at = chart::position(labels, of.label);
                @let base = table.baseline.as_deref() == Some(of.label);
                tr class={ "s" (at) @if base { " base" } } {
                    th.text scope="row" { (label(of.label)) (signs(table, line, None)) }
                    @for (column, cell) in table.columns.iter().zip(&of.cells) {
                        @let shown = layout::number(table, cell.as_ref(), shown_decimals).text();
                        @let leads = cell.is_some() && best.holds(column, line);
                        @let doubt = cell.as_ref().is_some_and(doubtful);
                        td class=[leads.then_some("best")] {
                            @if doubt { u { (shown) } } @else { (shown) }
                            (signs(table, line, Some(column)))
                            @if let Some(cell) = cell { (small(table, cell, decimals)) }
                        }
                    }
                }
            } }
        } }
        @if !legend.is_empty() { p.faint { (legend.join(" ")) } }
        @if !related { @for (at, note) in table.notes.iter().enumerate() {
            p.note { (mark(at)) " " (markup(&note.text)) }
        } }
    }
}

fn doubtful(cell: &Cell) -> bool {
    let verdicts = cell.steps.iter().filter_map(|step| step.verdict.as_ref());
    verdicts.into_iter().any(|verdict| verdict.kind != VerdictKind::Ok)
}

/// What the runs say about a number: its 95 % interval, or what they lie between where they are
/// too few for one.
fn small(table: &Table, cell: &Cell, decimals: usize) -> Markup {
    let spread = &cell.spread;
    let shown = |value| number(value, decimals);
    let range = format!("{}..{}", shown(spread.min), shown(spread.max));
    let plain = table.baseline.is_none();
    let title = plain.then(|| format!("{} runs: {range}", spread.n));
    html! {
        @if let Some((low, high)) = interval(table, cell) {
            small title=[title] { "[" (shown(low)) ", " (shown(high)) "]" }
        } @else if plain && spread.n > 1 {
            small { (range) }
        }
    }
}

fn interval(table: &Table, cell: &Cell) -> Option<(f64, f64)> {
    if table.baseline.is_some() { cell.relative_interval } else { cell.interval }
}

fn small_legend(table: &Table) -> Option<String> {
    let intervals = table.cells().any(|cell| interval(table, cell).is_some());
    let ranges = table.cells().any(|cell| cell.spread.n > 1 && cell.interval.is_none());
    let said = match (table.baseline.is_some(), intervals, ranges) {
        (true, true, _) => {
            "95 % interval of the ratio from the runs of both labels, each by itself, not corrected \
             for the number of cells; loadgen compare decides."
        }
        (false, true, true) => {
            "[ ] the 95 % interval of the median; a..b the smallest and the largest run, too few for \
             an interval."
        }
        (false, true, false) => "[ ] the 95 % interval of the median.",
        (false, false, true) => "a..b the smallest and the largest run, too few for an interval.",
        _ => return None,
    };
    Some(format!("Small: {said}"))
}

/// Returns the signs of the notes that hold for everything that a line shows, or of those that hold for
/// one column alone.
fn signs(table: &Table, line: usize, column: Option<&Column>) -> Markup {
    let of = &table.lines[line];
    let here = |note: &notes::Note| {
        let Some(columns) = note.places.get(&line) else { return false };
        let mut shown = table.columns.iter().zip(&of.cells).filter(|(_, cell)| cell.is_some());
        let throughout = shown.all(|(column, _)| columns.contains(column));
        column.map_or(throughout, |column| !throughout && columns.contains(column))
    };
    let notes = table.notes.iter().enumerate().filter(|(_, note)| here(note));
    let signs: Vec<String> = notes.map(|(at, _)| mark(at)).collect();
    html! {
        @if !signs.is_empty() {
            @if column.is_none() { " " }
            sup class=[column.map(|_| "marked")] { (signs.join(" ")) }
        }
    }
}
