//! Numbers beside the same relative to one label: as the fourth published text has them; what an op
//! costs, in the form in which Mark Callaghan publishes it; suites of external commands, test by
//! test, as sql-bench's runs are published; and what changes from one label to another.

use super::super::compare::{common, nothing_in_common, of_two};
use super::super::metric::named;
use super::super::notes::{
    self, at_clients, codes, footing, label, mark, marked, marks, signs, title,
};
use super::super::page::{Page, Rows, Sheet, Value, number, ratio_decimals};
use super::super::table::{Column, Line, NO_RATIO, Table, ratio, speed};
use super::super::{Metric, Options, escape};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::SuiteTest;

/// The note of a step that explains its label: `--note note=TEXT`.
const REMARK: &str = "note";

pub(super) fn relative(mut table: Table, baseline: Option<&str>) -> Page {
    let has_number = |line: &&Line| line.cell().is_some();
    let first = table.lines.iter().find(has_number).unwrap_or(&table.lines[0]);
    let base = baseline.unwrap_or(first.label).to_owned();
    // Here the baseline may be missing though other pages have it: then nothing relates.
    let there = table.lines.iter().filter(has_number).any(|line| line.label == base);
    if there {
        table.relate(&base);
    }
    // The title tells the metric itself, and not its ratio.
    table.baseline = None;
    let (short, _) = table.metric.short();
    let shown_base = escape::line(&base);
    let how = if table.metric.higher_is_better() {
        format!("{short} / {short}-for-{shown_base}")
    } else {
        format!("{short}-for-{shown_base} / {short}")
    };
    let mut below = footing(&table);
    if !there {
        below.push(format!("{shown_base} has no number here: nothing to relate to"));
    } else if table.cells().any(|cell| cell.relative.is_none()) {
        below.push(NO_RATIO.to_owned());
    }
    let title = format!("{}; {}", title(&table), at_clients(&table.columns[0]));
    let title = vec![title, format!("Relative-perf is {how}")];
    Page { title, sheets: vec![relative_sheet(&table, &base)], below, ..Page::default() }
}

fn relative_sheet(table: &Table, base: &str) -> Sheet {
    let column = table.columns[0];
    let decimals = table.metric.decimals(table.shown());
    let ratios = ratio_decimals(table.cells().filter_map(|cell| cell.relative));
    Rows::new(table.lines.iter().enumerate())
        .place_and_metric(table, |_| column)
        .both("", "label", |(_, line)| Value::Label(line.label.to_owned(), label(line.label)))
        .left()
        .both(table.metric.short().0, "value", |(_, line)| {
            line.cell().map(|cell| (cell.spread.median, decimals))
        })
        .filed("baseline", |_| base)
        .both("Relative-perf", "relative", |(_, line)| {
            // As published: the baseline is 1, and what merely equals it 1.00.
            let decimals = if line.label == base { 0 } else { ratios };
            line.cell().and_then(|cell| cell.relative).map(|relative| (relative, decimals))
        })
        // The signs of footnotes end the line: numbers follow the label alone.
        .shown("", |(at, line)| {
            let remark = line.steps.iter().find_map(|step| step.notes.get(REMARK));
            let remark = remark.map_or_else(String::new, |n| format!(" -> {}", escape::line(n)));
            (marks(table, *at) + &remark).trim().to_owned()
        })
        .left()
        .filed("notes", |(at, _)| codes(table, &[*at], &column))
        .sheet()
}

/// Head, names in files (absolute and relative), metric and decimals of what an op costs.
const COSTS: [(&str, [&str; 2], &str, usize); 8] = [
    ("cpu/o", ["server_cpu_us", "server_cpu_relative"], "server-cpu", 1),
    ("ccpu/o", ["client_cpu_us", "client_cpu_relative"], "cpu", 1),
    ("cs/o", ["context_switches", "context_switches_relative"], "cs", 3),
    ("r/o", ["innodb_reads", "innodb_reads_relative"], "innodb-reads", 3),
    ("rKB/o", ["read_kb", "read_relative"], "rkb", 2),
    ("wKB/o", ["written_kb", "written_relative"], "wkb", 2),
    ("miss/o", ["misses", "misses_relative"], "miss", 3),
    ("o/s", ["ops_per_s", "ops_relative"], "tps", 0),
];

pub(crate) const LEGEND: [&str; 3] = [
    "cpu/o: CPU of the server's process alone, microseconds an op (not of the whole host); \
     ccpu/o: the client's; cs/o: context switches of the server's process",
    "r/o: InnoDB's reads; rKB/o, wKB/o: KB that the server's process read from and wrote to \
     storage; miss/o: pages that were not in the buffer pool; o/s: ops a second",
    "relative numbers are number / first: of costs, less is better",
];

const OF_ZERO: &str = "- among the relative numbers: the first is 0 or was not measured";

struct Costs {
    at: usize,
    absolute: Vec<Option<f64>>,
    relative: Vec<Option<f64>>,
}

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
    let mut lines: Vec<String> = LEGEND.map(str::to_owned).to_vec();
    let mut pairs = rows.iter().flat_map(|row| row.absolute.iter().zip(&row.relative));
    if first.is_some() && pairs.any(|(value, ratio)| value.is_some() && ratio.is_none()) {
        lines.push(OF_ZERO.to_owned());
    }
    lines.extend(footing(table));
    let to = baseline.map_or_else(|| "first result".to_owned(), escape::line);
    let rule = Some(format!("--- relative to {to}"));
    let others: Vec<&Costs> = rows.iter().filter(|row| Some(row.at) != base).collect();
    let mut sheets = vec![absolute_costs(table, &rows)];
    if !others.is_empty() {
        sheets.push(Sheet { rule, ..relative_costs(table, others) });
    }
    let clients = at_clients(&table.columns[0]);
    let title = vec![format!("{}: cost of an op; {clients}", escape::line(table.workload))];
    Ok(Page { title, sheets, below: lines, ..Page::default() })
}

/// With so many decimals; a 0 has none.
fn cost(value: Option<f64>, decimals: usize) -> Option<(f64, usize)> {
    value.map(|value| (value, if value == 0.0 { 0 } else { decimals }))
}

fn absolute_costs(table: &Table, rows: &[Costs]) -> Sheet {
    let column = table.columns[0];
    let mut rows =
        Rows::new(rows).place(table, |_| column).filed("label", |row| table.lines[row.at].label);
    for (at, (head, names, _, decimals)) in COSTS.iter().enumerate() {
        rows = rows.both(*head, names[0], |row| cost(row.absolute[at], *decimals));
    }
    rows = rows.shown("dbms", |row| marked(table, row.at)).left();
    for (at, (_, names, ..)) in COSTS.iter().enumerate() {
        rows = rows.filed(names[1], |row| row.relative[at]);
    }
    rows.filed("notes", |row| codes(table, &[row.at], &column)).sheet()
}

fn relative_costs(table: &Table, rows: Vec<&Costs>) -> Sheet {
    let mut rows = Rows::new(rows);
    for (at, (head, ..)) in COSTS.iter().enumerate() {
        rows = rows.shown(*head, |row| cost(row.relative[at], 2));
    }
    rows.shown("dbms", |row| marked(table, row.at)).left().sheet()
}

fn costs(line: &Line) -> Result<Vec<Option<f64>>> {
    let median = |name: &str| {
        let metric = Metric::Figure(named(name).expect("a cost is a figure"));
        Ok(stats::median(&metric.values(&line.steps)?))
    };
    COSTS.iter().map(|(_, _, name, _)| median(name)).collect()
}

const TOTAL: &str = "total";

/// The sums of wall, user and system seconds; of several runs their medians.
type Times = [f64; 3];

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
    times: Times,
    relative: Option<f64>,
}

fn suite(table: &Table) -> Page {
    let of_labels: Vec<Vec<(&str, Times)>> = table.lines.iter().map(tests).collect();
    // In the order of the first label that has them; the sums come last.
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in of_labels.iter().flatten() {
        if !names.contains(name) && *name != TOTAL {
            names.push(name);
        }
    }
    names.push(TOTAL);
    let found = |name: &str, at: usize| -> Option<Times> {
        of_labels[at].iter().find(|(known, _)| *known == name).map(|(_, times)| *times)
    };
    let mut by_zero = false;
    let mut rows = Vec::new();
    for name in names {
        let first = found(name, 0);
        for at in 0..table.lines.len() {
            let Some(times) = found(name, at) else { continue };
            let relative = first.and_then(|first| ratio(first[0], times[0]));
            by_zero |= first.is_some() && relative.is_none();
            rows.push(Test { name, at, times, relative });
        }
    }
    let decimals = table.metric.decimals(rows.iter().map(|row| row.times[0]));
    let of = |row: &Test| table.lines[row.at].label;
    let sheet = Rows::new(rows)
        .filed("workload", |_| table.workload)
        .both("test", "test", |row| Value::Label(row.name.to_owned(), escape::line(row.name)))
        .left()
        .both("label", "label", |row| Value::Label(of(row).to_owned(), label(of(row))))
        .left()
        .both("wall s", "wall_s", |row| (row.times[0], decimals))
        .both("user s", "user_s", |row| (row.times[1], decimals))
        .both("sys s", "sys_s", |row| (row.times[2], decimals))
        .both("Relative-perf", "relative", |row| {
            let decimals = |ratio| if row.at == 0 { 0 } else { ratio_decimals([ratio]) };
            row.relative.map(|ratio| (ratio, decimals(ratio)))
        })
        .shown("", |row| marks(table, row.at).trim().to_owned())
        .left()
        .sheet();
    let first = label(table.lines[0].label);
    let how = format!("Relative-perf is Seconds-for-{first} / Seconds");
    let mut below = footing(table);
    below.extend(by_zero.then(|| NO_RATIO.to_owned()));
    Page { title: vec![title(table), how], sheets: vec![sheet], below, ..Page::default() }
}

/// Of each test of a label, and of their sum, the medians over its runs.
fn tests<'a>(line: &Line<'a>) -> Vec<(&'a str, Times)> {
    let runs: Vec<&[SuiteTest]> =
        line.steps.iter().filter_map(|step| Some(step.suite.as_ref()?.tests.as_slice())).collect();
    let seconds: [fn(&SuiteTest) -> f64; 3] =
        [|test| test.wall_s, |test| test.user_s, |test| test.sys_s];
    let times = |name: Option<&str>| {
        seconds.map(|value| {
            let sum = |run: &&[SuiteTest]| {
                let picked = || run.iter().filter(|test| name.is_none_or(|name| test.name == name));
                picked().next().map(|_| picked().map(value).sum())
            };
            stats::median(&runs.iter().filter_map(sum).collect::<Vec<f64>>()).unwrap_or(0.0)
        })
    };
    let mut found: Vec<(&str, Times)> = Vec::new();
    for test in runs.iter().copied().flatten() {
        if !found.iter().any(|(name, _)| *name == test.name) {
            found.push((&test.name, times(Some(&test.name))));
        }
    }
    found.push((TOTAL, times(None)));
    found
}

/// From here on the decimals of a percentage say nothing.
const WHOLE_FROM: f64 = 10.0;

struct Pair {
    column: Column,
    from: f64,
    to: f64,
    /// Percent; none where it would be a division by 0.
    change: Option<f64>,
}

fn labels(options: &Options) -> [&str; 2] {
    [&options.from, &options.to].map(|label| label.as_deref().expect("--from and --to are there"))
}

/// Returns the tables of the two labels only, and what changes there; without those that lack one.
fn pairs<'a>(
    tables: &[Table<'a>],
    options: &Options,
    change: fn(&Table, f64, f64) -> Option<f64>,
) -> Result<Vec<(Table<'a>, Vec<Pair>)>> {
    let labels = labels(options);
    let tables = of_two(tables, ["--from", "--to"], labels)?.into_iter().map(|table| {
        let pair = |(column, [from, to]): (Column, [&super::Cell; 2])| {
            let (from, to) = (from.spread.median, to.spread.median);
            Pair { column, from, to, change: change(&table, from, to) }
        };
        let pairs: Vec<Pair> = common(&table).into_iter().map(pair).collect();
        (table, pairs)
    });
    let found: Vec<_> = tables.filter(|(_, pairs)| !pairs.is_empty()).collect();
    if found.is_empty() { Err(nothing_in_common(labels, "")) } else { Ok(found) }
}

pub(super) fn delta(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    let found = pairs(tables, options, |table, from, to| {
        Some((speed(&table.metric, from, to)? - 1.0) * 100.0)
    })?;
    let (marks, mut below) = shared(&found);
    if found.iter().any(|(_, pairs)| divides_by_zero(pairs)) {
        below.push(NO_RATIO.to_owned());
    }
    let rows = found.iter().zip(&marks).map(|((table, pairs), marks)| (table, pairs, marks));
    let shown = Rows::new(rows)
        .shown("workload", |(table, ..)| escape::line(table.workload))
        .left()
        .shown("change", |(_, pairs, _)| {
            extremes(pairs).map(|((_, low), (_, high))| range(low, high))
        })
        .shown("least at", |(_, pairs, _)| extremes(pairs).map(|((pair, _), _)| at(pair)))
        .shown("most at", |(_, pairs, _)| extremes(pairs).map(|(_, (pair, _))| at(pair)))
        .shown("of", |(table, pairs, marks)| {
            let columns: Vec<String> = pairs.iter().map(at).collect();
            format!("{} at {}{marks}", table.metric.short().0, columns.join(", "))
        })
        .left();
    let records = found.iter().map(|(table, pairs)| {
        let rows = records(table, pairs).filed("change_percent", |pair| pair.change);
        rows.filed("notes", |pair| codes(table, &[0, 1], &pair.column)).sheet()
    });
    let sheets = std::iter::once(shown.sheet()).chain(records).collect();
    let [from, to] = labels(options).map(escape::line);
    let title = vec![format!("from {from} to {to}: change in percent, more being better")];
    Ok(vec![Page { title, sheets, below, ..Page::default() }])
}

fn at(pair: &Pair) -> String {
    pair.column.to_string()
}

/// Returns the signs of each workload, and the lines below all: the same of many is said once.
fn shared(found: &[(Table, Vec<Pair>)]) -> (Vec<String>, Vec<String>) {
    let mut notes: Vec<&str> = Vec::new();
    // Each with the workloads that it is about.
    let mut conditions: Vec<(String, Vec<String>)> = Vec::new();
    let mut marks = Vec::new();
    for (table, _) in found {
        let workload = escape::line(table.workload);
        for line in notes::below(table) {
            match conditions.iter_mut().find(|(known, _)| *known == line) {
                Some((_, workloads)) => workloads.push(workload.clone()),
                None => conditions.push((line, vec![workload.clone()])),
            }
        }
        let here: Vec<&str> = table.notes.iter().map(|note| note.text.as_str()).collect();
        let new: Vec<&str> = here.iter().filter(|text| !notes.contains(text)).copied().collect();
        notes.extend(new);
        marks.push(signs((0..notes.len()).filter(|at| here.contains(&notes[*at]))));
    }
    let alone = conditions.len() == 1;
    let conditions = conditions.into_iter().map(|(line, workloads)| match workloads.len() {
        _ if alone => line,
        1 => format!("{}: {line}", workloads[0]),
        _ => format!("{} and others: {line}", workloads[0]),
    });
    let notes = notes.iter().enumerate().map(|(at, text)| format!("{} {text}", mark(at)));
    (marks, notes.chain(conditions).collect())
}

pub(super) fn overhead(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    let found = pairs(tables, options, |table, from, to| {
        // What is lost of a rate, and what is added to a time.
        let more = (ratio(to, from)? - 1.0) * 100.0;
        Some(if table.metric.higher_is_better() { -more } else { more })
    })?;
    Ok(found.iter().map(|(table, pairs)| cost_page(table, pairs)).collect())
}

fn cost_page(table: &Table, pairs: &[Pair]) -> Page {
    let decimals = table.metric.decimals(pairs.iter().flat_map(|pair| [pair.from, pair.to]));
    let sheet = records(table, pairs)
        .shown("clients", |pair| at(pair))
        .shown(marked(table, 0), |pair| (pair.from, decimals))
        .shown(marked(table, 1), |pair| (pair.to, decimals))
        .both("cost %", "cost_percent", |pair| pair.change.map(|change| (change, 1)))
        .filed("notes", |pair| codes(table, &[0, 1], &pair.column))
        .sheet();
    let (short, _) = table.metric.short();
    let mut lines = Vec::new();
    if let Some(((_, low), (most, high))) = extremes(pairs) {
        let share = if table.metric.higher_is_better() { "less" } else { "more" };
        lines.push(format!(
            "{} costs {} ({share} {short} than {}), most at {}",
            label(table.lines[1].label),
            range_with(low, high, 1),
            label(table.lines[0].label),
            at_clients(&most.column)
        ));
    }
    lines.extend(divides_by_zero(pairs).then(|| NO_RATIO.to_owned()));
    lines.extend(footing(table));
    let title = format!("{}: cost in percent of {short}", escape::line(table.workload));
    Page::of(title, sheet, lines)
}

fn records<'p>(table: &Table, pairs: &'p [Pair]) -> Rows<&'p Pair> {
    Rows::new(pairs)
        .place_and_metric(table, |pair| pair.column)
        .filed("from", |_| table.lines[0].label)
        .filed("to", |_| table.lines[1].label)
        .filed("from_value", |pair| pair.from)
        .filed("to_value", |pair| pair.to)
}

type Change<'a> = (&'a Pair, f64);

/// Returns the least and the largest change, of equal ones at the fewest clients.
fn extremes(pairs: &[Pair]) -> Option<(Change<'_>, Change<'_>)> {
    let changes = || pairs.iter().filter_map(|pair| Some((pair, pair.change?)));
    let by = |a: &Change, b: &Change| a.1.total_cmp(&b.1);
    Some((changes().min_by(by)?, changes().rev().max_by(by)?))
}

fn divides_by_zero(pairs: &[Pair]) -> bool {
    pairs.iter().any(|pair| pair.change.is_none())
}

/// Returns `5-16%`; whole percents, as published, where they are large enough.
fn range(least: f64, most: f64) -> String {
    let whole = least.abs().max(most.abs()) >= WHOLE_FROM;
    range_with(least, most, usize::from(!whole))
}

fn range_with(least: f64, most: f64, decimals: usize) -> String {
    let (low, high) = (number(least, decimals), number(most, decimals));
    // A hyphen between signs would be a third one.
    let to = if low.starts_with('-') { " to " } else { "-" };
    if low == high { format!("{low}%") } else { format!("{low}{to}{high}%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_has_a_figure() {
        for (head, _, name, _) in COSTS {
            assert_eq!(named(name).map(|figure| figure.name), Some(name), "{head}");
        }
    }

    #[test]
    fn ranges_read_like_the_published_ones() {
        assert_eq!(range(5.2, 15.8), "5-16%");
        assert_eq!(range(30.0, 39.0), "30-39%");
        assert_eq!(range(2.52, 9.43), "2.5-9.4%");
        assert_eq!(range(12.1, 12.4), "12%");
        assert_eq!(range(-15.0, -11.0), "-15 to -11%");
        assert_eq!(range(-3.04, 5.0), "-3.0 to 5.0%");
        assert_eq!(range(-0.01, 0.01), "0.0%");
    }
}
