//! Suites of external commands, test by test, as sql-bench's runs are published.

use super::columns::Rows;
use super::distinct::push_new;
use super::escape;
use super::metric::Metric;
use super::names::label;
use super::notes::{mark, title};
use super::page::Page;
use super::ratio::{Ratio, Ratios};
use super::table::{LabelRow, NO_RATIO, WorkloadTable, ratio};
use super::value::{ratio_decimals, small_number};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::{Suite, SuiteTest};

const TOTAL: &str = "total";

/// The sums of wall, user and system seconds; of several runs their medians.
type Times = [f64; 3];

pub(crate) fn require_some(pages: Vec<Page>) -> Result<Vec<Page>> {
    if pages.is_empty() {
        return Err(Error::data("there is no suite of commands among these summaries")
            .hint("a profile's run makes one: suite = { name = \"…\", tests = [ … ] }"));
    }
    Ok(pages)
}

pub(crate) fn page(table: &WorkloadTable, place: usize, ratios: &Ratios) -> Option<Page> {
    // In the order of the first label that has them; the sums come last.
    let steps = table.lines.iter().flat_map(LabelRow::steps);
    let mut suites = steps.filter_map(|step| step.suite.as_ref()).peekable();
    let mut names: Vec<&str> = Vec::new();
    suites.peek()?;
    suites.flat_map(|suite| &suite.tests).for_each(|test| push_new(&mut names, &test.name));
    names.retain(|name| *name != TOTAL);
    names.push(TOTAL);
    // A label may come first of which no step completed.
    let base = table.first_with_runs()?;
    let mut rows = Vec::new();
    for name in names {
        let first = &table.lines[base];
        for (at, line) in table.lines.iter().enumerate() {
            let related = || relative(table, [first, line], name, place, ratios);
            let of_medians = |times: Times| Some(ratio(self::times(first, name)?[0], times[0]));
            let relative = |times| of_medians(times).map(|of| related().or(of));
            rows.extend(times(line, name).map(|times| (name, at, times, relative(times))));
        }
    }
    let by_zero = rows.iter().any(|(.., relative)| *relative == Some(None));
    let decimals = table.metric.decimals(rows.iter().map(|(.., times, _)| times[0]));
    let of = |at: usize| table.lines[at].label;
    let sheet = Rows::new(rows)
        .filed("workload", |_| table.workload)
        .both("test", "test", |(name, ..)| ((*name).to_owned(), escape::line(name)))
        .both("label", "label", |(_, at, ..)| (of(*at).to_owned(), label(of(*at))))
        .both("wall s", "wall_s", |(.., times, _)| (times[0], decimals))
        .both("user s", "user_s", |(.., times, _)| (times[1], decimals))
        .both("sys s", "sys_s", |(.., times, _)| (times[2], decimals))
        .both("Relative-perf", "relative", |(_, at, _, relative)| {
            relative.flatten().map(|of| {
                (of, small_number(of, if *at == base { 0 } else { ratio_decimals([of]) }))
            })
        })
        .text("", |(_, at, ..)| mark(table, *at))
        .sheet();
    let how = format!("Relative-perf is Seconds-for-{} / Seconds", label(of(base)));
    let below = by_zero.then(|| NO_RATIO.to_owned()).into_iter().collect();
    let title = vec![title(table), how];
    Some(Page { title, sheets: vec![sheet], below, ..Page::default() }.footed(table))
}

/// Returns the ratio of the wall times of a test, as comparisons have it; none where a run has no logarithm.
fn relative(
    table: &WorkloadTable,
    [first, line]: [&LabelRow; 2],
    name: &str,
    place: usize,
    ratios: &Ratios,
) -> Option<f64> {
    let walls = [first, line].map(|line| seconds(line, name, |test| test.wall_s));
    let times = ratios.times(place, [first.label, line.label], &table.columns[0]);
    let cells = [first.cell()?, line.cell()?];
    let runs = walls.each_ref().map(Vec::as_slice);
    Ratio::of_values(cells, runs, Metric::SECONDS, times).map(|ratio| ratio.estimate())
}

fn times(line: &LabelRow, name: &str) -> Option<Times> {
    let median = |of: fn(&SuiteTest) -> f64| stats::median(&seconds(line, name, of));
    Some([median(|test| test.wall_s)?, median(|test| test.user_s)?, median(|test| test.sys_s)?])
}

/// Returns seconds of a test, or of the sum of all, in each of a label's runs that has it.
fn seconds(line: &LabelRow, name: &str, of: fn(&SuiteTest) -> f64) -> Vec<f64> {
    let sum = |run: &Suite| {
        // A test of this name hides the sum.
        let sums = name == TOTAL && run.tests.iter().all(|test| test.name != TOTAL);
        let picked = run.tests.iter().filter(|test| sums || test.name == name);
        picked.map(of).reduce(|sum, s| sum + s)
    };
    line.steps().filter_map(|step| sum(step.suite.as_ref()?)).collect()
}
