//! Suites of external commands, test by test, as sql-bench's runs are published.

use super::escape;
use super::layout::mark;
use super::notes::{label, push_new, title};
use super::page::{Page, Rows, ratio_decimals};
use super::table::{Line, NO_RATIO, Table, ratio};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::{Suite, SuiteTest};

const TOTAL: &str = "total";

/// The sums of wall, user and system seconds; of several runs their medians.
type Times = [f64; 3];

/// Returns a page for each table that has suites.
pub(crate) fn pages<'s>(tables: impl Iterator<Item = Table<'s>>) -> Result<Vec<Page>> {
    let pages: Vec<Page> = tables.filter_map(|table| suite(&table)).collect();
    if pages.is_empty() {
        return Err(Error::data("there is no suite of commands among these summaries")
            .hint("a profile's run makes one: suite = { name = \"…\", tests = [ … ] }"));
    }
    Ok(pages)
}

fn suite(table: &Table) -> Option<Page> {
    // In the order of the first label that has them; the sums come last.
    let steps = table.lines.iter().flat_map(|line| &line.steps);
    let mut suites = steps.filter_map(|step| step.suite.as_ref()).peekable();
    let mut names: Vec<&str> = Vec::new();
    suites.peek()?;
    suites.flat_map(|suite| &suite.tests).for_each(|test| push_new(&mut names, &test.name));
    names.retain(|name| *name != TOTAL);
    names.push(TOTAL);
    let mut rows = Vec::new();
    for name in names {
        let first = times(&table.lines[0], name);
        for (at, line) in table.lines.iter().enumerate() {
            let relative = |times: Times| first.map(|first| ratio(first[0], times[0]));
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
            relative.flatten().map(|of| (of, if *at == 0 { 0 } else { ratio_decimals([of]) }))
        })
        .text("", |(_, at, ..)| mark(table, *at))
        .sheet();
    let how = format!("Relative-perf is Seconds-for-{} / Seconds", label(of(0)));
    let below = by_zero.then(|| NO_RATIO.to_owned()).into_iter().collect();
    let title = vec![title(table), how];
    Some(Page { title, sheets: vec![sheet], below, ..Page::default() }.footed(table))
}

/// Returns the medians over a label's runs of the times of a test, or of the sum of all.
fn times(line: &Line, name: &str) -> Option<Times> {
    let median = |seconds: fn(&SuiteTest) -> f64| {
        let sum = |run: &Suite| {
            // A test of this name hides the sum.
            let sums = name == TOTAL && run.tests.iter().all(|test| test.name != TOTAL);
            let picked = run.tests.iter().filter(|test| sums || test.name == name);
            picked.map(seconds).reduce(|sum, s| sum + s)
        };
        let runs = line.steps.iter().filter_map(|step| sum(step.suite.as_ref()?));
        stats::median(&runs.collect::<Vec<f64>>())
    };
    Some([median(|test| test.wall_s)?, median(|test| test.user_s)?, median(|test| test.sys_s)?])
}
