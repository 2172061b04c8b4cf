//! The text below the table of a sweep: percentiles, operations done and failed of each cell,
//! and the shape of the last one.

use std::collections::{BTreeMap, BTreeSet};

use super::bars::bar;
use super::columns::{PageColumn, Rows, Sheet};
use super::histogram::Curve;
use super::metric::{self, MS, Metric, Time};
use super::names::listed;
use super::options::Notes;
use super::page::Page;
use super::run::Run;
use super::value::{self, PageValue};
use super::{escape, writers};
use crate::error::{Error, Result, clip};
use crate::stats;
use crate::summary::Summary;
use crate::terms::{self, Cell, Format, Percentile, Property, joined};

const PERCENTILES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];
const BINS: i32 = 10;

/// Rows at most: a report tells the percentiles of more cells.
const ROWS_MAX: usize = 40;

type CellSteps<'a> = Vec<&'a Summary>;

type Key<'a> = (&'a str, &'a str, Cell);

/// Nothing where nothing was measured, or too many cells were; the histogram only where it has room.
pub(crate) fn render_latency(
    steps: &[&Summary],
    (rows, columns): (usize, usize),
) -> Result<String> {
    let mut cells: BTreeMap<Key, CellSteps> = BTreeMap::new();
    for step in steps {
        let key = (step.workload.name.as_str(), step.label.as_str(), step.cell());
        cells.entry(key).or_default().push(step);
    }
    let Some(((workload, label, cell), last)) =
        cells.last_key_value().filter(|_| cells.len() <= ROWS_MAX)
    else {
        return Ok(String::new());
    };
    let several = several_names(&cells);
    let names = several.into_iter().zip([workload, label]).filter(|(several, _)| *several);
    let whose: String = names.map(|(_, name)| format!(", {}", escape::line(name))).collect();
    let named = terms::clients(cell.clients) + &whose;
    let at = cell.rate.map_or_else(String::new, |rate| format!(", {rate}/s"));
    let written = |pages: &[Page]| {
        writers::write(pages, "latency", Format::Text, Some(columns), (&Notes::Later, &[]))
    };
    // The line before it, and that of the shell's prompt.
    let fits = |text: &str| text.lines().count() + 2 <= rows;
    let mut pages = vec![tabulate(&cells, head_table(&cells), columns)?];
    let table = written(&pages);
    if let Some(sheet) = count_by_time(last)? {
        let title = format!("The operations of {named}{at} by {} time, ms", name_time(last[0]));
        pages.push(Page::new(clip(&title, columns - 1), sheet, Vec::new()));
    }
    let both = written(&pages);
    Ok(if fits(&both) { both } else { table })
}

fn several_names(cells: &BTreeMap<Key, CellSteps>) -> [bool; 2] {
    let distinct = |of: fn(&Key) -> String| cells.keys().map(of).collect::<BTreeSet<_>>().len() > 1;
    [distinct(|key| key.0.to_owned()), distinct(|key| key.1.to_owned())]
}

fn name_time(step: &Summary) -> &'static str {
    if step.latency.response.is_some() { "response" } else { "service" }
}

fn head_table(cells: &BTreeMap<Key, CellSteps>) -> String {
    let times: BTreeSet<&str> = cells.values().flatten().map(|step| name_time(step)).collect();
    let name = match (times.contains("response"), times.contains("service")) {
        (true, true) => "Response time with a rate, else service time,",
        (true, false) => "Response time",
        _ => "Service time",
    };
    let counts: BTreeSet<usize> = cells.values().map(Vec::len).collect();
    let ends: BTreeSet<usize> = counts.first().into_iter().chain(counts.last()).copied().collect();
    let runs = format!(", medians of {} runs, max of all", listed(&ends, " to "));
    format!("{name} in ms{}", if counts.last() > Some(&1) { &runs } else { "" })
}

fn tabulate(cells: &BTreeMap<Key, CellSteps>, title: String, columns: usize) -> Result<Page> {
    let mut rows = Rows::new(cells).shown("clients", |((.., cell), _)| cell.clients);
    if cells.keys().any(|(.., cell)| cell.rate.is_some()) {
        let rate = |cell: &Cell| cell.rate.map(|rate| (rate.per_s(), rate.to_string()));
        rows = rows.shown("rate/s", |((.., cell), _)| rate(cell));
    }
    for p in PERCENTILES {
        let metric = Metric::Time(Time::Own, Property::Percentile(Percentile(p)));
        let mut values: BTreeMap<&Key, Option<f64>> = BTreeMap::new();
        for (key, runs) in cells {
            let runs: Vec<Run> = runs.iter().copied().map(Run::Measured).collect();
            values.insert(key, stats::median(&metric.values(&runs)?));
        }
        let decimals = metric.decimals(values.values().flatten().copied());
        let shown = |key: &Key| values[key].map(|value| metric.page_value(value, decimals));
        rows = rows.shown(&format!("p{p}"), |(key, _)| PageValue::from(shown(key)));
    }
    let max =
        |runs: &CellSteps| runs.iter().filter_map(|run| run.latency.own().max_us).reduce(f64::max);
    let decimals = value::decimals(cells.values().filter_map(max).map(|us| us / MS));
    rows = rows
        .shown("max", |(_, runs)| max(runs).map(|us| (us / MS, decimals)))
        .shown("done", |(_, runs)| add_up(runs, |run| run.totals.ops))
        .shown("failed", |(_, runs)| add_up(runs, metric::errors));
    let sheets = split(&rows.sheet(), cells, columns);
    Ok(Page { title: vec![title], sheets, ..Page::default() })
}

/// Names stand above their rows: beside them a line would not fit into a terminal.
fn split(sheet: &Sheet, cells: &BTreeMap<Key, CellSteps>, columns: usize) -> Vec<Sheet> {
    let several = several_names(cells);
    let keys: Vec<&Key> = cells.keys().collect();
    let mut from = 0;
    let part = |keys: &[&Key]| {
        let names = several.into_iter().zip([keys[0].0, keys[0].1]);
        let names = names.filter(|(several, _)| *several).map(|(_, name)| Some(escape::line(name)));
        let (rows, rule) = (keys.len(), joined(names, ", ").map(|names| clip(&names, columns - 1)));
        let cut = |column: &PageColumn| {
            let values = column.values[from..from + rows].to_vec();
            PageColumn { values, ..column.clone() }
        };
        let cut = Sheet {
            rule,
            rows,
            columns: sheet.columns.iter().map(cut).collect(),
            ..Sheet::default()
        };
        from += rows;
        cut
    };
    keys.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)).map(part).collect()
}

fn add_up(runs: &CellSteps, of: fn(&Summary) -> u64) -> u64 {
    runs.iter().map(|run| of(run)).fold(0, u64::saturating_add)
}

/// Counts the operations of some runs by their time; each row is as much longer than the last.
fn count_by_time(runs: &CellSteps) -> Result<Option<Sheet>> {
    let read = |run: &&Summary| {
        let curve = Curve::read(&run.latency.own().histogram);
        curve.map_err(|why| Error::data(format!("the histogram of {}: {why}", run.step_id)))
    };
    let curves: Vec<Curve> =
        runs.iter().filter_map(|run| read(run).transpose()).collect::<Result<_>>()?;
    let ranges = curves.iter().map(Curve::range);
    let Some((low, high)) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
        return Ok(None);
    };
    let step = (high as f64 / low as f64).powf(1.0 / f64::from(BINS));
    let mut edges: Vec<u64> = (1..BINS).map(|n| (low as f64 * step.powi(n)) as u64).collect();
    edges.push(high);
    edges.dedup();
    let mut from = 0;
    let bins: Vec<(f64, u64)> = edges
        .into_iter()
        .map(|to| {
            let end = if to == high { u64::MAX } else { to };
            let count = curves.iter().map(|curve| curve.count_between(from, end)).sum();
            from = to + 1;
            (to as f64 / 1e6, count)
        })
        .collect();
    let most = bins.iter().map(|(_, count)| *count).max().unwrap_or(0) as f64;
    let decimals = value::decimals(bins.iter().map(|(ms, _)| *ms));
    let drawn = bins.iter().map(|(_, count)| bar(Some(*count as f64), most)).collect();
    let sheet = Rows::new(bins)
        .shown("up to", |(ms, _)| (*ms, decimals))
        .shown("operations", |(_, count)| *count)
        .sheet();
    Ok(Some(Sheet { drawn, ..sheet }))
}

#[cfg(test)]
mod tests {
    use super::super::histogram::encode;
    use super::*;

    fn step(clients: u32, values_ns: &[u64]) -> Summary {
        let mut step = Summary::sound();
        step.latency.service.histogram = encode(values_ns);
        step.latency.service.count = values_ns.len() as u64;
        step.latency.service.max_us = values_ns.iter().max().map(|ns| *ns as f64 / 1e3);
        step.plan.clients = clients;
        step.totals.ops = values_ns.len() as u64;
        step
    }

    #[test]
    fn every_operation_is_in_one_row_of_the_histogram() {
        let spread: Vec<u64> = (0..1000).map(|n| 20_000 + n * n * 977).collect();
        for values in [&[5][..], &[1, 1, 2], &[0, 3_600_000_000_000], &spread] {
            let (one, other) = (step(1, values), step(1, &[70_000]));
            let sheet = count_by_time(&vec![&one, &other]).expect("sound").expect("not empty");
            let counts: Vec<u64> =
                sheet.texts().map(|row| row[1].parse().expect("a count")).collect();
            assert_eq!(counts.iter().sum::<u64>(), values.len() as u64 + 1, "{counts:?}");
            assert!(counts.len() <= BINS as usize && sheet.drawn.len() == counts.len());
        }
        assert!(count_by_time(&vec![&step(1, &[])]).expect("sound").is_none());
    }

    #[test]
    fn a_cell_has_the_median_of_its_runs_their_largest_time_and_all_operations() {
        let times: Vec<u64> = vec![1_000_000; 2000];
        let mut runs = [1, 2, 3].map(|n| {
            let mut run = step(8, &times);
            run.latency.service.p50_us = Some(f64::from(n) * 1000.0);
            run.latency.service.max_us = Some(f64::from(n) * 5000.0);
            run
        });
        runs[0].totals.abandoned = 4;
        let other = step(1, &times[..20]);
        let cells: Vec<&Summary> = runs.iter().chain([&other]).collect();
        let text = render_latency(&cells, (24, 80)).expect("sound");
        assert!(
            text.starts_with("Service time in ms, medians of 1 to 3 runs, max of all\n"),
            "{text}"
        );
        let rows: Vec<Vec<&str>> =
            text.lines().skip(2).take(2).map(|row| row.split_whitespace().collect()).collect();
        let shown = |row: usize| [0, 1, 6, 7, 8, 9].map(|at| rows[row][at]);
        assert_eq!(shown(1), ["8", "2.000", "-", "15.00", "6000", "4"], "{text}");
        assert_eq!((rows[0][0], rows[0][4], rows[0][8]), ("1", "-", "20"), "{text}");
        assert_eq!(render_latency(&[], (24, 80)).expect("nothing"), "");
    }

    #[test]
    fn percentile_is_unknown_when_one_repeat_has_too_few_operations() {
        let times: Vec<u64> = vec![1_000_000; 2000];
        let runs = [step(8, &times), step(8, &times[..500])];
        let text = render_latency(&runs.iter().collect::<Vec<_>>(), (24, 80)).expect("sound");
        let row: Vec<&str> = text.lines().nth(2).expect("a row").split_whitespace().collect();
        assert_eq!((row[3], row[4], row[8]), ("0.950", "-", "2500"), "{text}");
    }

    #[test]
    fn heading_names_both_times_when_some_steps_have_a_rate() {
        let (closed, mut open) = (step(8, &[1_000_000]), step(8, &[1_000_000]));
        open.latency.response = Some(open.latency.service.clone());
        open.plan.rate = Some(100.0);
        for (steps, heading) in [
            (vec![&closed], "Service time in ms"),
            (vec![&open], "Response time in ms"),
            (vec![&closed, &open], "Response time with a rate, else service time, in ms"),
        ] {
            let text = render_latency(&steps, (24, 80)).expect("sound");
            assert_eq!(text.lines().next(), Some(heading), "{text}");
        }
    }

    #[test]
    fn heading_has_the_fewest_and_the_most_runs_of_a_cell() {
        let [one, other] = [1, 8].map(|clients| step(clients, &[1_000_000]));
        for (steps, heading) in [
            (vec![&one, &one, &other], "Service time in ms, medians of 1 to 2 runs, max of all"),
            (vec![&one, &one, &other, &other], "Service time in ms, medians of 2 runs, max of all"),
        ] {
            let text = render_latency(&steps, (24, 80)).expect("sound");
            assert_eq!(text.lines().next(), Some(heading), "{text}");
        }
    }

    #[test]
    fn labels_and_workloads_have_rows_of_their_own() {
        let mut steps = vec![step(8, &[1_000_000]); 3];
        "other".clone_into(&mut steps[1].label);
        "another".clone_into(&mut steps[2].workload.name);
        let all: Vec<&Summary> = steps.iter().collect();
        let text = render_latency(&all, (30, 80)).expect("sound");
        let rows = || text.lines().skip(2).take_while(|line| !line.is_empty());
        assert_eq!(rows().count(), 6, "{text}");
        assert_eq!(rows().filter(|row| row.ends_with(", other")).count(), 1, "{text}");
        // Long names are cut, and what has no room is left out.
        "x".repeat(200).clone_into(&mut steps[1].label);
        let all: Vec<&Summary> = steps.iter().collect();
        for (height, whole) in [(30, true), (24, true), (16, false)] {
            let text = render_latency(&all, (height, 80)).expect("sound");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.lines().count() < height, "{text}");
            assert_eq!(text.contains("\n\n"), whole, "{text}");
        }
        let many: Vec<Summary> = (1..=50).map(|clients| step(clients, &[1_000_000])).collect();
        let many: Vec<&Summary> = many.iter().collect();
        assert_eq!(render_latency(&many, (24, 120)).expect("too many"), "");
    }
}
