//! Numbers beside the same relative to one label: as the fourth published text has them; what an op
//! costs, in the form in which Mark Callaghan publishes it; and suites of external commands, test by
//! test, as sql-bench's runs are published.

use super::super::baseline::{NO_RATIO, ratio, relate};
use super::super::figure::named;
use super::super::number::ratio_decimals;
use super::super::page::{Page, Sheet, Value, both, filed, shown};
use super::super::table::{Line, Table};
use super::super::{Metric, caption, escape, notes};
use super::{Row, at_clients, below, codes, label, marked, place, place_and_metric, rows};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::SuiteTest;

/// The note of a step that explains its label: `--note note=TEXT`.
const REMARK: &str = "note";

/// Returns the page of one workload and number of clients.
pub(super) fn relative(table: Table, baseline: Option<&str>) -> Result<Page> {
    let has_number = |line: &&Line| line.cell().is_some();
    let first = table.lines.iter().find(has_number).or(table.lines.first());
    let base = baseline.or(first.map(|line| line.label)).unwrap_or("").to_owned();
    // Here the baseline may be missing though other pages have it: then nothing relates.
    let there = table.lines.iter().filter(has_number).any(|line| line.label == base);
    let mut tables = [table];
    if there {
        relate(&mut tables, &base)?;
    }
    let [mut table] = tables;
    // The title tells the metric itself, and not its ratio.
    table.baseline = None;
    let (short, _) = table.metric.short();
    let shown_base = escape::line(&base);
    let how = if table.metric.higher_is_better() {
        format!("{short} / {short}-for-{shown_base}")
    } else {
        format!("{short}-for-{shown_base} / {short}")
    };
    let mut below = below(&table);
    if !there {
        below.push(format!("{shown_base} has no number here: nothing to relate to"));
    } else if table.lines.iter().filter_map(Line::cell).any(|cell| cell.relative.is_none()) {
        below.push(NO_RATIO.to_owned());
    }
    let title = format!("{}; {}", caption::title(&table), at_clients(&table.columns[0]));
    let title = vec![title, format!("Relative-perf is {how}")];
    Ok(Page { title, sheets: vec![relative_sheet(&table, &base)], below, ..Page::default() })
}

fn relative_sheet(table: &Table, base: &str) -> Sheet {
    let column = table.columns[0];
    let cells = || table.lines.iter().filter_map(Line::cell);
    let decimals = table.metric.decimals(cells().map(|cell| cell.spread.median));
    let ratios = ratio_decimals(cells().filter_map(|cell| cell.relative));
    let mut columns = place_and_metric(table, |_: &Row| column);
    columns.extend([
        both("", "label", |(_, line): &Row| Value::Label(line.label.to_owned(), label(line.label)))
            .left(),
        both(table.metric.short().0, "value", |(_, line): &Row| {
            line.cell().map(|cell| (cell.spread.median, decimals))
        }),
        filed("baseline", |_: &Row| base),
        both("Relative-perf", "relative", |(_, line): &Row| {
            // As published: the baseline is 1, and what merely equals it 1.00.
            let decimals = if line.label == base { 0 } else { ratios };
            line.cell().and_then(|cell| cell.relative).map(|relative| (relative, decimals))
        }),
        // The signs of footnotes end the line: numbers follow the label alone.
        shown("", |(at, line): &Row| {
            format!("{} {}", notes::marks(table, *at).trim(), remark(line)).trim().to_owned()
        })
        .left(),
        filed("notes", |(at, _): &Row| codes(table, &[*at], &column)),
    ]);
    Sheet::of(columns, rows(table))
}

/// Tells what the note of a label's steps says, where it has one.
fn remark(line: &Line) -> String {
    let note = line.steps.iter().find_map(|step| step.notes.get(REMARK));
    note.map_or_else(String::new, |note| format!("-> {}", escape::line(note)))
}

struct Cost {
    head: &'static str,
    /// In files, absolute and relative.
    names: [&'static str; 2],
    metric: &'static str,
    decimals: usize,
}

macro_rules! costs {
    ($($head:literal $name:literal $unit:literal = $metric:literal .$decimals:literal),* $(,)?) => {
        [$(Cost {
            head: $head,
            names: [concat!($name, $unit), concat!($name, "_relative")],
            metric: $metric,
            decimals: $decimals,
        }),*]
    };
}

const COLUMNS: [Cost; 8] = costs![
    "cpu/o" "server_cpu" "_us" = "server-cpu" .1,
    "ccpu/o" "client_cpu" "_us" = "cpu" .1,
    "cs/o" "context_switches" "" = "cs" .3,
    "r/o" "innodb_reads" "" = "innodb-reads" .3,
    "rKB/o" "read" "_kb" = "rkb" .2,
    "wKB/o" "written" "_kb" = "wkb" .2,
    "miss/o" "misses" "" = "miss" .3,
    "o/s" "ops" "_per_s" = "tps" .0,
];

pub(crate) const LEGEND: [&str; 3] = [
    "cpu/o: CPU of the server's process alone, microseconds an op (not of the whole host); \
     ccpu/o: the client's; cs/o: context switches of the server's process",
    "r/o: InnoDB's reads; rKB/o, wKB/o: KB that the server's process read from and wrote to \
     storage; miss/o: pages that were not in the buffer pool; o/s: ops a second",
    "relative numbers are number / first: of costs, less is better",
];

/// Said where it occurs.
const OF_ZERO: &str = "- among the relative numbers: the first is 0 or was not measured";

/// The costs of a line, absolute and relative.
struct Costs {
    at: usize,
    absolute: Vec<Option<f64>>,
    relative: Vec<Option<f64>>,
}

/// Returns the page of one workload and number of clients.
pub(super) fn per_op(table: &Table, baseline: Option<&str>) -> Result<Page> {
    let costs = table.lines.iter().map(costs).collect::<Result<Vec<Vec<Option<f64>>>>>()?;
    let base = match baseline {
        Some(label) => table.lines.iter().position(|line| line.label == label),
        None => Some(0),
    };
    let first = base.map(|at| costs[at].clone());
    let row = |(at, absolute): (usize, Vec<Option<f64>>)| {
        // There is no such number where the first is 0 and this one is not.
        let relative = |(at, value): (usize, &Option<f64>)| ratio((*value)?, first.as_ref()?[at]?);
        Costs { at, relative: absolute.iter().enumerate().map(relative).collect(), absolute }
    };
    let rows: Vec<Costs> = costs.into_iter().enumerate().map(row).collect();
    let mut below: Vec<String> = LEGEND.map(str::to_owned).to_vec();
    let mut pairs = rows.iter().flat_map(|row| row.absolute.iter().zip(&row.relative));
    if first.is_some() && pairs.any(|(value, ratio)| value.is_some() && ratio.is_none()) {
        below.push(OF_ZERO.to_owned());
    }
    below.extend(super::below(table));
    let rule = match baseline {
        None => "--- relative to first result".to_owned(),
        Some(label) => format!("--- relative to {}", escape::line(label)),
    };
    let others: Vec<&Costs> = rows.iter().filter(|row| Some(row.at) != base).collect();
    let mut sheets = vec![absolute_costs(table, &rows)];
    if !others.is_empty() {
        sheets.push(Sheet { rule: Some(rule), ..relative_costs(table, others) });
    }
    let clients = at_clients(&table.columns[0]);
    let title = vec![format!("{}: cost of an op; {clients}", escape::line(table.workload))];
    Ok(Page { title, sheets, below, ..Page::default() })
}

/// With so many decimals; a 0 has none.
fn cost(value: Option<f64>, decimals: usize) -> Option<(f64, usize)> {
    value.map(|value| (value, if value == 0.0 { 0 } else { decimals }))
}

fn absolute_costs(table: &Table, rows: &[Costs]) -> Sheet {
    let column = table.columns[0];
    let costs = || COLUMNS.iter().enumerate();
    let mut columns = place(table, |_: &&Costs| column);
    columns.push(filed("label", |row: &&Costs| table.lines[row.at].label));
    columns.extend(costs().map(|(at, of)| {
        both(of.head, of.names[0], move |row: &&Costs| cost(row.absolute[at], of.decimals))
    }));
    columns.push(shown("dbms", |row: &&Costs| marked(table, row.at)).left());
    columns
        .extend(costs().map(|(at, of)| filed(of.names[1], move |row: &&Costs| row.relative[at])));
    columns.push(filed("notes", |row: &&Costs| codes(table, &[row.at], &column)));
    Sheet::of(columns, rows)
}

fn relative_costs(table: &Table, rows: Vec<&Costs>) -> Sheet {
    let column =
        |(at, of): (usize, &Cost)| shown(of.head, move |row: &&Costs| cost(row.relative[at], 2));
    let mut columns: Vec<_> = COLUMNS.iter().enumerate().map(column).collect();
    columns.push(shown("dbms", |row: &&Costs| marked(table, row.at)).left());
    Sheet::of(columns, rows)
}

/// Returns the medians of a line's steps, column by column.
fn costs(line: &Line) -> Result<Vec<Option<f64>>> {
    let median = |metric: &Metric| -> Result<Option<f64>> {
        let values: Result<Vec<Option<f64>>> =
            line.steps.iter().map(|step| metric.value(step)).collect();
        Ok(stats::median(&values?.into_iter().flatten().collect::<Vec<f64>>()))
    };
    COLUMNS.iter().map(|cost| median(&of_column(cost.metric))).collect()
}

fn of_column(name: &str) -> Metric {
    named(name).map_or(Metric::Tps, Metric::Figure)
}

const TOTAL: &str = "total";

#[derive(Debug, Clone, Copy)]
struct Times {
    wall: f64,
    user: f64,
    sys: f64,
}

/// The tests of one label, in their order.
type Tests = Vec<(String, Times)>;

pub(super) fn suites<'s>(tables: impl Iterator<Item = Table<'s>>) -> Result<Vec<Page>> {
    let with_suite = tables.filter(|table| {
        let mut steps = table.lines.iter().flat_map(|line| &line.steps);
        steps.any(|step| step.suite.is_some())
    });
    let pages: Vec<Page> = with_suite.map(|table| suite(&table)).collect();
    if pages.is_empty() {
        return Err(Error::data("there is no suite of commands among these summaries")
            .hint("a profile's run makes one: suite = { name = \"…\", tests = [ … ] }"));
    }
    Ok(pages)
}

struct Test<'a> {
    name: &'a str,
    at: usize,
    label: &'a str,
    times: Times,
    relative: Option<f64>,
}

fn suite(table: &Table) -> Page {
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
            rows.push(Test { name, at, label: line.label, times, relative });
        }
    }
    let decimals = table.metric.decimals(of_labels.iter().flatten().map(|(_, times)| times.wall));
    let seconds = |head, name, of: fn(&Times) -> f64| {
        both(head, name, move |row: &Test| (of(&row.times), decimals))
    };
    let columns = vec![
        filed("workload", |_: &Test| table.workload),
        both("test", "test", |row: &Test| {
            Value::Label(row.name.to_owned(), escape::line(row.name))
        })
        .left(),
        both("label", "label", |row: &Test| Value::Label(row.label.to_owned(), label(row.label)))
            .left(),
        seconds("wall s", "wall_s", |times| times.wall),
        seconds("user s", "user_s", |times| times.user),
        seconds("sys s", "sys_s", |times| times.sys),
        both("Relative-perf", "relative", |row: &Test| {
            let decimals = |ratio| if row.at == 0 { 0 } else { ratio_decimals([ratio]) };
            row.relative.map(|ratio| (ratio, decimals(ratio)))
        }),
        shown("", |row: &Test| notes::marks(table, row.at).trim().to_owned()).left(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_metric() {
        for cost in COLUMNS {
            assert_eq!(of_column(cost.metric).to_string(), cost.metric, "{}", cost.head);
        }
    }
}
