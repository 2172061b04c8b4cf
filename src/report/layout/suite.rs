//! Suites of external commands, test by test, as sql-bench's runs are published: wall, user and
//! system seconds, and in total.

use super::super::baseline::{NO_RATIO, ratio};
use super::super::number::{number, ratio_decimals};
use super::super::page::{Body, Field, Grid, Page};
use super::super::pivot::{Line, Table};
use super::super::{caption, escape, notes, text};
use super::{below, noted};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::SuiteTest;

/// The row of the sums.
const TOTAL: &str = "total";

/// Of one test, or of all, seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    wall: f64,
    user: f64,
    sys: f64,
}

/// The tests of one label, in their order.
type Tests = Vec<(String, Times)>;

/// A table for each suite.
pub(super) fn pages(tables: &[Table]) -> Result<Vec<Page>> {
    let suites = tables.iter().flat_map(Table::by_column).filter(|table| {
        let mut steps = table.lines.iter().flat_map(|line| &line.steps);
        steps.any(|step| step.suite.is_some())
    });
    let pages: Vec<Page> = suites.map(|table| one(&noted(table))).collect();
    if pages.is_empty() {
        return Err(Error::data("there is no suite of commands among these summaries")
            .hint("a profile's run makes one: suite = { name = \"…\", tests = [ … ] }"));
    }
    Ok(pages)
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
        let tests = of_labels.get(at)?;
        tests.iter().find(|(known, _)| known == name).map(|(_, times)| *times)
    };
    let wall = || of_labels.iter().flatten().map(|(_, times)| times.wall);
    let decimals = table.metric.decimals(wall());
    let mut grid = Grid {
        head: ["test", "label", "wall s", "user s", "sys s", "Relative-perf", ""]
            .map(str::to_owned)
            .to_vec(),
        texts: vec![0, 1, 6],
        ..Grid::default()
    };
    let mut records = Vec::new();
    let mut by_zero = false;
    for name in names {
        let first = found(name, 0);
        for (at, line) in table.lines.iter().enumerate() {
            let Some(times) = found(name, at) else { continue };
            let relative = first.and_then(|first| ratio(first.wall, times.wall));
            by_zero |= first.is_some() && relative.is_none();
            let shown = relative.map(|relative| {
                number(relative, if at == 0 { 0 } else { ratio_decimals([relative]) })
            });
            grid.rows.push(vec![
                escape::line(name),
                text::label(line.label),
                number(times.wall, decimals),
                number(times.user, decimals),
                number(times.sys, decimals),
                shown.unwrap_or_else(|| text::NOTHING.to_owned()),
                notes::marks(table, at).trim().to_owned(),
            ]);
            records.push(vec![
                ("workload", Field::Text(table.workload.to_owned())),
                ("test", Field::Text(name.to_owned())),
                ("label", Field::Text(line.label.to_owned())),
                ("wall_s", Field::Number(Some(times.wall))),
                ("user_s", Field::Number(Some(times.user))),
                ("sys_s", Field::Number(Some(times.sys))),
                ("relative", Field::Number(relative)),
            ]);
        }
    }
    let first = table.lines.first().map_or_else(String::new, |line| text::label(line.label));
    let mut below = below(table);
    below.extend(by_zero.then(|| NO_RATIO.to_owned()));
    Page {
        title: vec![
            caption::title(table),
            format!("Relative-perf is Seconds-for-{first} / Seconds"),
        ],
        body: Body::Grid(grid),
        below,
        records,
    }
}

/// Of each test of a label, and of their sum, the medians over its runs.
fn tests(line: &Line) -> Tests {
    let runs: Vec<&[SuiteTest]> =
        line.steps.iter().filter_map(|step| Some(step.suite.as_ref()?.tests.as_slice())).collect();
    let median = |of: &dyn Fn(&[SuiteTest]) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
        stats::median(&values).unwrap_or_default()
    };
    let times = |pick: &dyn Fn(&SuiteTest) -> bool| {
        let sum = |value: fn(&SuiteTest) -> f64| {
            median(&|run: &[SuiteTest]| {
                let mut picked = run.iter().filter(|test| pick(test)).peekable();
                picked.peek()?;
                Some(picked.map(value).sum())
            })
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
