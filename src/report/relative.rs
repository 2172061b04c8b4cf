//! Numbers beside the same relative to one label: as the fourth published text has them; what an op
//! costs, in the form in which Mark Callaghan publishes it; suites of external commands, test by
//! test, as sql-bench's runs are published; and what changes from one label to another.

use super::compare::{common, nothing_in_common, of_two};
use super::metric::named;
use super::notes::{
    self, at_clients, codes, entry, footing, label, mark, marked, marks, push_new, signs, some,
    title,
};
use super::page::{Page, Rows, Sheet, number, ratio_decimals};
use super::table::{Cell, Column, Line, NO_RATIO, Table, merit, ratio, speed};
use super::{Metric, Options, escape};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::{Suite, SuiteTest};

/// The note of a step that explains its label: `--note note=TEXT`.
const REMARK: &str = "note";

pub(super) fn relative(mut table: Table, baseline: Option<&str>) -> Page {
    let measured = table.lines.iter().find(|line| line.cell().is_some());
    let base = baseline.unwrap_or(measured.unwrap_or(&table.lines[0]).label).to_owned();
    table.relate(&base);
    let below = footing(&table);
    // The title tells the metric itself, and not its ratio.
    table.baseline = None;
    let (column, (short, _), shown_base) =
        (table.columns[0], table.metric.short(), escape::line(&base));
    let of_base = format!("{short}-for-{shown_base}");
    let [over, under] =
        if table.metric.higher_is_better() { [&short, &of_base] } else { [&of_base, &short] };
    let decimals = table.metric.decimals(table.shown());
    let ratios = ratio_decimals(table.cells().filter_map(|cell| cell.relative));
    let sheet = Rows::new(table.lines.iter().enumerate())
        .place_and_metric(&table, |_| column)
        .both("", "label", |(_, line)| (line.label.to_owned(), label(line.label)))
        .both(&short, "value", |(_, line)| Some((line.cell()?.spread.median, decimals)))
        .filed("baseline", |_| base.as_str())
        // As published: the baseline is 1, and what merely equals it 1.00.
        .both("Relative-perf", "relative", |(_, line)| {
            Some((line.cell()?.relative?, if line.label == base { 0 } else { ratios }))
        })
        // The signs of footnotes end the line: numbers follow the label alone.
        .text("", |(at, line)| {
            let remark = line.steps.iter().find_map(|step| step.notes.get(REMARK));
            let remark = remark.map_or_else(String::new, |n| format!(" -> {}", escape::line(n)));
            (marks(&table.notes, &[*at]) + &remark).trim().to_owned()
        })
        .filed("notes", |(at, _)| codes(&table, &[*at], &column))
        .sheet();
    let title = format!("{}; {}", title(&table), at_clients(&column));
    let title = vec![title, format!("Relative-perf is {over} / {under}")];
    Page { title, sheets: vec![sheet], below, ..Page::default() }
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

pub(super) fn per_op(table: &Table, baseline: Option<&str>) -> Result<Page> {
    let metrics = COSTS.map(|(_, _, name, _)| Metric::Figure(named(name).expect("a figure")));
    let cost = |line: &Line, of: Metric| Ok(stats::median(&of.values(&line.steps)?));
    let costs = |line: &Line| metrics.iter().map(|of| cost(line, *of)).collect();
    let costs: Vec<Vec<Option<f64>>> = table.lines.iter().map(costs).collect::<Result<_>>()?;
    let base = match baseline {
        Some(label) => table.lines.iter().position(|line| line.label == label),
        None => Some(0),
    };
    // There is no such number where the first is 0 and this one is not.
    let relative = |line: usize, at: usize| ratio(costs[line][at]?, costs[base?][at]?);
    let lines = 0..costs.len();
    let lacks = |line: usize, at: usize| costs[line][at].is_some() && relative(line, at).is_none();
    let by_zero = lines.clone().any(|line| (0..COSTS.len()).any(|at| lacks(line, at)));
    let mut below = LEGEND.map(str::to_owned).to_vec();
    below.extend((base.is_some() && by_zero).then(|| NO_RATIO.to_owned()));
    below.extend(footing(table));
    // A 0 has no decimals.
    let shown =
        |value: Option<f64>, decimals| Some((value?, if value? == 0.0 { 0 } else { decimals }));
    let column = table.columns[0];
    let mut all = Rows::new(lines.clone())
        .place(table, |_| column)
        .filed("label", |line| table.lines[*line].label);
    let mut others = Rows::new(lines.filter(|line| Some(*line) != base));
    for (at, (head, names, _, decimals)) in COSTS.iter().enumerate() {
        all = all.both(head, names[0], |line| shown(costs[*line][at], *decimals));
        others = others.shown(head, |line| shown(relative(*line, at), 2));
    }
    all = all.text("dbms", |line| marked(table, *line));
    for (at, (_, names, ..)) in COSTS.iter().enumerate() {
        all = all.filed(names[1], |line| relative(*line, at));
    }
    let all = all.filed("notes", |line| codes(table, &[*line], &column)).sheet();
    let to = baseline.map_or_else(|| "first result".to_owned(), escape::line);
    let rule = Some(format!("--- relative to {to}"));
    let others = Sheet { rule, ..others.text("dbms", |line| marked(table, *line)).sheet() };
    let sheets = if others.rows > 0 { vec![all, others] } else { vec![all] };
    let of = escape::line(table.workload);
    let title = vec![format!("{of}: cost of an op; {}", at_clients(&column))];
    Ok(Page { title, sheets, below, ..Page::default() })
}

const TOTAL: &str = "total";

/// The sums of wall, user and system seconds; of several runs their medians.
type Times = [f64; 3];

pub(super) fn suites<'s>(tables: impl Iterator<Item = Table<'s>>) -> Result<Vec<Page>> {
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
        .text("", |(_, at, ..)| marks(&table.notes, &[*at]).trim().to_owned())
        .sheet();
    let how = format!("Relative-perf is Seconds-for-{} / Seconds", label(of(0)));
    let mut below = footing(table);
    below.extend(by_zero.then(|| NO_RATIO.to_owned()));
    Some(Page { title: vec![title(table), how], sheets: vec![sheet], below, ..Page::default() })
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

/// From here on the decimals of a percentage say nothing.
const WHOLE_FROM: f64 = 10.0;

struct Pair {
    column: Column,
    from: f64,
    to: f64,
    /// Percent; none where it would be a division by 0.
    change: Option<f64>,
}

/// Returns the tables of the two labels only, and what changes there; without those that lack one.
fn pairs<'a>(
    tables: &[Table<'a>],
    options: &Options,
    change: fn(&Table, f64, f64) -> Option<f64>,
) -> Result<Vec<(Table<'a>, Vec<Pair>)>> {
    let labels = [&options.from, &options.to];
    let labels = labels.map(|label| label.as_deref().expect("--from and --to are there"));
    let tables = of_two(tables, ["--from", "--to"], labels)?.into_iter().map(|table| {
        let pair = |(column, cells): (Column, [&Cell; 2])| {
            let [from, to] = cells.map(|cell| cell.spread.median);
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
    below.extend(no_ratio(found.iter().flat_map(|(_, pairs)| pairs)));
    let rows = found.iter().zip(&marks).map(|((table, pairs), marks)| (table, pairs, marks));
    let shown = Rows::new(rows)
        .text("workload", |(table, ..)| escape::line(table.workload))
        .shown("change", |(_, pairs, _)| extremes(pairs).map(|[low, high]| range(low.1, high.1)))
        .shown("least at", |(_, pairs, _)| extremes(pairs).map(|[low, _]| low.0.to_string()))
        .shown("most at", |(_, pairs, _)| extremes(pairs).map(|[_, high]| high.0.to_string()))
        .text("of", |(table, pairs, marks)| {
            let columns: Vec<String> = pairs.iter().map(|pair| pair.column.to_string()).collect();
            format!("{} at {}{marks}", table.metric.short().0, columns.join(", "))
        });
    let records = found.iter().map(|(table, pairs)| {
        let rows = records(table, pairs).filed("change_percent", |pair| pair.change);
        rows.filed("notes", |pair| codes(table, &[0, 1], &pair.column)).sheet()
    });
    let sheets = std::iter::once(shown.sheet()).chain(records).collect();
    let [from, to] = [0, 1].map(|at| label(found[0].0.lines[at].label));
    let title = vec![format!("from {from} to {to}: change in percent, more being better")];
    Ok(vec![Page { title, sheets, below, ..Page::default() }])
}

/// Returns the signs of each workload, and the lines below all: the same of many is said once.
fn shared(found: &[(Table, Vec<Pair>)]) -> (Vec<String>, Vec<String>) {
    let (mut notes, mut conditions): (Vec<&str>, Vec<(String, Vec<String>)>) = Default::default();
    for (table, _) in found {
        table.notes.iter().for_each(|note| push_new(&mut notes, &note.text));
        for line in notes::below(table) {
            entry(&mut conditions, line).push(escape::line(table.workload));
        }
    }
    let signs_of = |(table, _): &(Table, _)| {
        let has = |text: &str| table.notes.iter().any(|note| note.text == text);
        signs((0..notes.len()).filter(|at| has(notes[*at])))
    };
    let marks = found.iter().map(signs_of).collect();
    let notes = notes.iter().enumerate().map(|(at, text)| format!("{} {text}", mark(at)));
    let conditions = conditions.into_iter().map(|(line, of)| format!("{}: {line}", some(of, ", ")));
    (marks, notes.chain(conditions).collect())
}

pub(super) fn overhead(tables: &[Table], options: &Options) -> Result<Vec<Page>> {
    // What is lost of a rate, and what is added to a time.
    let found = pairs(tables, options, |table, from, to| {
        Some(merit(&table.metric, ratio(to, from)? - 1.0) * -100.0)
    })?;
    Ok(found.iter().map(|(table, pairs)| cost_page(table, pairs)).collect())
}

fn cost_page(table: &Table, pairs: &[Pair]) -> Page {
    let decimals = table.metric.decimals(pairs.iter().flat_map(|pair| [pair.from, pair.to]));
    let sheet = records(table, pairs)
        .shown("clients", |pair| pair.column.to_string())
        .shown(&marked(table, 0), |pair| (pair.from, decimals))
        .shown(&marked(table, 1), |pair| (pair.to, decimals))
        .both("cost %", "cost_percent", |pair| pair.change.map(|change| (change, 1)))
        .filed("notes", |pair| codes(table, &[0, 1], &pair.column))
        .sheet();
    let (short, _) = table.metric.short();
    let mut lines = Vec::new();
    if let Some([(_, low), (most, high)]) = extremes(pairs) {
        let share = if table.metric.higher_is_better() { "less" } else { "more" };
        let [from, to] = [0, 1].map(|at| label(table.lines[at].label));
        let (range, most) = (range(low, high), at_clients(&most));
        lines.push(format!("{to} costs {range} ({share} {short} than {from}), most at {most}"));
    }
    lines.extend(no_ratio(pairs));
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

/// Returns the least and the largest change, of equal ones at the fewest clients.
fn extremes(pairs: &[Pair]) -> Option<[(Column, f64); 2]> {
    let changes = || pairs.iter().filter_map(|pair| Some((pair.column, pair.change?)));
    let by = |a: &(Column, f64), b: &(Column, f64)| a.1.total_cmp(&b.1);
    Some([changes().min_by(by)?, changes().rev().max_by(by)?])
}

fn no_ratio<'p>(pairs: impl IntoIterator<Item = &'p Pair>) -> Option<String> {
    pairs.into_iter().any(|pair| pair.change.is_none()).then(|| NO_RATIO.to_owned())
}

/// Returns `5-16%`; whole percents, as published, where they are large enough.
fn range(least: f64, most: f64) -> String {
    let decimals = usize::from(least.abs().max(most.abs()) < WHOLE_FROM);
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
