//! Suites of external commands, test by test, as sql-bench's runs are published: wall, user and
//! system seconds, and in total.

use super::super::baseline::{NO_RATIO, ratio};
use super::super::number::ratio_decimals;
use super::super::page::{Page, Sheet, Value, both, filed, shown};
use super::super::pivot::{Line, Table};
use super::super::{caption, escape, notes};
use super::{below, label};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::SuiteTest;

/// The row of the sums.
const TOTAL: &str = "total";

/// Of one test, or of all, seconds.
#[derive(Debug, Clone, Copy)]
struct Times {
    wall: f64,
    user: f64,
    sys: f64,
}

/// The tests of one label, in their order.
type Tests = Vec<(String, Times)>;

/// A table for each suite.
pub(super) fn pages<'s>(tables: impl Iterator<Item = Table<'s>>) -> Result<Vec<Page>> {
    let suites = tables.filter(|table| {
        let mut steps = table.lines.iter().flat_map(|line| &line.steps);
        steps.any(|step| step.suite.is_some())
    });
    let pages: Vec<Page> = suites.map(|table| one(&table)).collect();
    if pages.is_empty() {
        return Err(Error::data("there is no suite of commands among these summaries")
            .hint("a profile's run makes one: suite = { name = \"…\", tests = [ … ] }"));
    }
    Ok(pages)
}

struct Row<'a> {
    name: &'a str,
    at: usize,
    label: &'a str,
    times: Times,
    relative: Option<f64>,
}

fn one(table: &Table) -> Page {
    let of_labels: Vec<Tests> = table.lines.iter().map(tests).collect();
    // In the order of the first label that has them; the sums come last.
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in of_labels.iter().flatten() {
        if !names.contains(&name.as_str()) && name != TOTAL {
            names.push(name);
        }
    }
    names.push(TOTAL);
    let found = |name: &str, at: usize| -> Option<Times> {
        of_labels[at].iter().find(|(known, _)| known == name).map(|(_, times)| *times)
    };
    let mut by_zero = false;
    let mut rows = Vec::new();
    for name in names {
        let first = found(name, 0);
        for (at, line) in table.lines.iter().enumerate() {
            let Some(times) = found(name, at) else { continue };
            let relative = first.and_then(|first| ratio(first.wall, times.wall));
            by_zero |= first.is_some() && relative.is_none();
            rows.push(Row { name, at, label: line.label, times, relative });
        }
    }
    let decimals = table.metric.decimals(of_labels.iter().flatten().map(|(_, times)| times.wall));
    let seconds = |head, name, of: fn(&Times) -> f64| {
        both(head, name, move |row: &Row| (of(&row.times), decimals))
    };
    let columns = vec![
        filed("workload", |_: &Row| table.workload),
        both("test", "test", |row: &Row| Value::Label(row.name.to_owned(), escape::line(row.name)))
            .left(),
        both("label", "label", |row: &Row| Value::Label(row.label.to_owned(), label(row.label)))
            .left(),
        seconds("wall s", "wall_s", |times| times.wall),
        seconds("user s", "user_s", |times| times.user),
        seconds("sys s", "sys_s", |times| times.sys),
        both("Relative-perf", "relative", |row: &Row| {
            let decimals = |ratio| if row.at == 0 { 0 } else { ratio_decimals([ratio]) };
            row.relative.map(|ratio| (ratio, decimals(ratio)))
        }),
        shown("", |row: &Row| notes::marks(table, row.at).trim().to_owned()).left(),
    ];
    let first = table.lines.first().map_or_else(String::new, |line| label(line.label));
    let title =
        vec![caption::title(table), format!("Relative-perf is Seconds-for-{first} / Seconds")];
    let mut below = below(table);
    below.extend(by_zero.then(|| NO_RATIO.to_owned()));
    Page { title, sheets: vec![Sheet::of(columns, rows)], below, ..Page::default() }
}

/// Of each test of a label, and of their sum, the medians over its runs.
fn tests(line: &Line) -> Tests {
    let runs: Vec<&[SuiteTest]> =
        line.steps.iter().filter_map(|step| Some(step.suite.as_ref()?.tests.as_slice())).collect();
    let times = |pick: &dyn Fn(&SuiteTest) -> bool| {
        let sum = |value: fn(&SuiteTest) -> f64| {
            let picked = |run: &&[SuiteTest]| run.iter().filter(|test| pick(test)).count() > 0;
            let sums = runs.iter().filter(|run| picked(run));
            let sums = sums.map(|run| run.iter().filter(|test| pick(test)).map(value).sum());
            stats::median(&sums.collect::<Vec<f64>>()).unwrap_or(0.0)
        };
        Times { wall: sum(|t| t.wall_s), user: sum(|t| t.user_s), sys: sum(|t| t.sys_s) }
    };
    let mut found: Tests = Vec::new();
    for test in runs.iter().copied().flatten() {
        if !found.iter().any(|(name, _)| *name == test.name) {
            found.push((test.name.clone(), times(&|other: &SuiteTest| other.name == test.name)));
        }
    }
    found.push((TOTAL.to_owned(), times(&|_| true)));
    found
}
