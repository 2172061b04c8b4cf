//! A number of each cell over the clients, or over the rates that were asked of them.

use super::super::metric::Metric;
use super::super::number;
use super::super::pivot::{Cell, Column, Table};
use super::{Axis, Chart, Point, Series, position};

/// Microseconds in a millisecond.
const MS: f64 = 1e3;

/// Columns that belong into one chart, and what varies among them.
struct Group {
    /// Positions in the table's columns.
    columns: Vec<usize>,
    /// Number of clients where the rate varies.
    clients: Option<u32>,
}

impl Group {
    fn across(&self, column: &Column) -> f64 {
        match self.clients {
            None => f64::from(column.clients),
            Some(_) => column.per_s().unwrap_or_default(),
        }
    }

    fn axis(&self, columns: &[Column]) -> Axis {
        let values: Vec<f64> =
            self.columns.iter().filter_map(|at| columns.get(*at)).map(|c| self.across(c)).collect();
        let name = if self.clients.is_some() { "asked ops a second" } else { "clients" };
        Axis::doublings(name, &values)
    }

    /// What its columns hold.
    fn metric(&self, table: &Table) -> Metric {
        table.metric.in_loop(self.clients.is_some())
    }

    fn title(&self) -> String {
        self.clients.map_or_else(String::new, |n| format!(", open loop of {n} clients"))
    }

    fn said(&self) -> fn(f64) -> String {
        match self.clients {
            None => {
                |clients| format!("{clients} {}", if clients < 1.5 { "client" } else { "clients" })
            }
            Some(_) => |rate| format!("{rate} ops/s asked"),
        }
    }
}

/// Closed loops in one chart, and open ones in one for each number of clients.
fn groups(table: &Table) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let clients = column.rate.map(|_| column.clients);
        match groups.iter_mut().find(|group| group.clients == clients) {
            Some(group) => group.columns.push(at),
            None => groups.push(Group { columns: vec![at], clients }),
        }
    }
    groups
}

/// What a metric's values are divided by where they are drawn: times are in milliseconds.
fn scale(metric: &Metric) -> f64 {
    if metric.unit() == "us" { MS } else { 1.0 }
}

/// The name with the unit in which it is drawn.
fn with_unit(metric: &Metric) -> String {
    match metric.unit() {
        "us" => format!("{}, ms", metric.name()),
        "us/op" => format!("{}, µs", metric.name()),
        "statements/s" | "ops/s" => metric.name(),
        unit => format!("{}, {unit}", metric.name()),
    }
}

/// The table's numbers with their spread and intervals: a chart of the closed loops, and one for each open
/// loop. Their axis begins at zero.
pub(crate) fn over_clients(table: &Table, labels: &[&str]) -> Vec<Chart> {
    let scale = scale(&table.metric);
    let decimals = table.metric.decimals(table.shown().map(|value| value / scale));
    let value = |value: f64| value / scale;
    let said = |cell: &Cell| {
        let one = |of: f64| number::number(value(of), decimals);
        let spread = &cell.spread;
        let range = (spread.n > 1)
            .then(|| format!(" ({}..{} of {})", one(spread.min), one(spread.max), spread.n));
        let median = one(spread.median);
        format!("{median}{}{}", bracket(cell.interval, &one), range.unwrap_or_default())
    };
    let point = |cell: &Cell| {
        let spread = &cell.spread;
        let range = (spread.n > 1).then(|| (value(spread.min), value(spread.max)));
        let interval = cell.interval.map(|(low, high)| (value(low), value(high)));
        Some(Drawn { y: value(spread.median), range, interval, said: said(cell) })
    };
    let draw = |group: &Group| {
        let series = series(table, group, labels, &point);
        let metric = group.metric(table);
        let y = Axis::from_zero(with_unit(&metric), highest(&series));
        let title = format!("{}{}", metric.name(), group.title());
        chart(table, group, title, y, series)
    };
    groups(table).iter().map(draw).filter(|chart| !chart.is_empty()).collect()
}

/// The ratios of a table that relates to a baseline, higher being better, around a line at 1. Where
/// there is nothing but the baseline itself there is no chart.
pub(crate) fn relative(table: &Table, labels: &[&str]) -> Vec<Chart> {
    let Some(base) = table.baseline.as_deref() else { return Vec::new() };
    let one = |ratio: f64| number::number(ratio, 3);
    let point = |cell: &Cell| {
        let (y, interval) = (cell.relative?, cell.relative_interval);
        Some(Drawn { y, range: None, interval, said: one(y) + &bracket(interval, &one) })
    };
    let draw = |group: &Group| {
        let series = series(table, group, labels, &point);
        let of_others = series.iter().any(|series| series.label != position(labels, base));
        let series = if of_others { series } else { Vec::new() };
        let values = series.iter().flat_map(|series| &series.points).flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        let mut y = Axis::around("ratio, higher is better", 1.0, values);
        if y.ticks.first().is_some_and(|tick| tick.at > 0.0) {
            y.name.push_str("; the axis does not begin at 0");
        }
        let base = super::shown(base);
        let title = format!("{} relative to {base}{}", group.metric(table).name(), group.title());
        Chart { rule: Some(1.0), ..chart(table, group, title, y, series) }
    };
    groups(table).iter().map(draw).filter(|chart| !chart.is_empty()).collect()
}

/// What is drawn of a cell.
struct Drawn {
    y: f64,
    range: Option<(f64, f64)>,
    interval: Option<(f64, f64)>,
    said: String,
}

/// An interval behind its number.
fn bracket(interval: Option<(f64, f64)>, one: &dyn Fn(f64) -> String) -> String {
    let text = |(low, high): (f64, f64)| format!(" [{}, {}]", one(low), one(high));
    interval.map_or_else(String::new, text)
}

fn series(
    table: &Table,
    group: &Group,
    labels: &[&str],
    point: &dyn Fn(&Cell) -> Option<Drawn>,
) -> Vec<Series> {
    let lines = table.lines.iter().map(|line| {
        let points = group.columns.iter().filter_map(|at| {
            let column = table.columns.get(*at)?;
            let Drawn { y, range, interval, said } = point(line.cells.get(*at)?.as_ref()?)?;
            let x = group.across(column);
            y.is_finite().then_some(Point { x, y, range, interval, marked: true, said })
        });
        Series { label: position(labels, line.label), points: points.collect() }
    });
    lines.filter(|series| !series.points.is_empty()).collect()
}

/// The upper ends of all points.
fn highest(series: &[Series]) -> impl Iterator<Item = f64> {
    let points = series.iter().flat_map(|series| &series.points);
    points.map(|point| point.range.map_or(point.y, |(_, max)| max))
}

fn chart(table: &Table, group: &Group, title: String, y: Axis, series: Vec<Series>) -> Chart {
    Chart {
        of: super::super::escape::line(table.workload),
        title,
        x: group.axis(&table.columns),
        y,
        series,
        spans: Vec::new(),
        rule: None,
        across: Some(group.said()),
    }
}
