//! A number of each cell over the clients, or over the rates that were asked of them.

use super::super::baseline::speed;
use super::super::metric::Metric;
use super::super::number;
use super::super::pivot::{Cell, Column, Line, Table};
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
            Some(_) => column.rate.unwrap_or_default(),
        }
    }

    fn axis(&self, columns: &[Column]) -> Axis {
        let values: Vec<f64> =
            self.columns.iter().filter_map(|at| columns.get(*at)).map(|c| self.across(c)).collect();
        let name = if self.clients.is_some() { "asked ops a second" } else { "clients" };
        Axis::doublings(name, &values)
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

/// How a metric's values are drawn: times in milliseconds, everything else as it is.
fn unit(metric: &Metric) -> (f64, String) {
    match metric.unit() {
        "us" => (MS, format!("{}, ms", metric.name())),
        "us/op" => (1.0, format!("{}, µs", metric.name())),
        "statements/s" | "ops/s" => (1.0, metric.name()),
        unit => (1.0, format!("{}, {unit}", metric.name())),
    }
}

/// The table's numbers with their spread: a chart of the closed loops, and one for each open
/// loop. Their axis begins at zero.
pub(crate) fn over_clients(table: &Table, labels: &[&str]) -> Vec<Chart> {
    let (scale, name) = unit(&table.metric);
    let decimals = table.metric.decimals(table.shown().map(|value| value / scale));
    let value = |value: f64| value / scale;
    let said = |cell: &Cell| {
        let one = |of: f64| number::number(value(of), decimals);
        let spread = &cell.spread;
        let range = (spread.n > 1)
            .then(|| format!(" ({}..{} of {})", one(spread.min), one(spread.max), spread.n));
        format!("{}{}", one(spread.median), range.unwrap_or_default())
    };
    let point = |cell: &Cell| {
        let spread = &cell.spread;
        let range = (spread.n > 1).then(|| (value(spread.min), value(spread.max)));
        Some((value(spread.median), range, said(cell)))
    };
    let draw = |group: &Group| {
        let series = series(table, group, labels, &|_, _, cell| point(cell));
        let y = Axis::from_zero(name.clone(), highest(&series));
        let title = format!("{}{}", table.metric.name(), group.title());
        chart(table, group, title, y, series)
    };
    groups(table).iter().map(draw).filter(|chart| !chart.is_empty()).collect()
}

/// The same relative to one label, higher being better, around a line at 1.
pub(crate) fn relative(table: &Table, base: &str, labels: &[&str]) -> Vec<Chart> {
    let Some(reference) = table.lines.iter().find(|line| line.label == base) else {
        return Vec::new();
    };
    let point = |_: &Line, at: usize, cell: &Cell| {
        let base = reference.cells.get(at)?.as_ref()?.spread.median;
        let ratio = speed(&table.metric, base, cell.spread.median)?;
        Some((ratio, None, number::number(ratio, 3)))
    };
    let draw = |group: &Group| {
        let series = series(table, group, labels, &point);
        let values = series.iter().flat_map(|series| &series.points).map(|point| point.y);
        let mut y = Axis::around("ratio, higher is better", 1.0, values);
        if y.ticks.first().is_some_and(|tick| tick.at > 0.0) {
            y.name.push_str("; the axis does not begin at 0");
        }
        let base = super::shown(base);
        let title = format!("{} relative to {base}{}", table.metric.name(), group.title());
        Chart { rule: Some(1.0), ..chart(table, group, title, y, series) }
    };
    groups(table).iter().map(draw).filter(|chart| !chart.is_empty()).collect()
}

type Drawn = (f64, Option<(f64, f64)>, String);

fn series(
    table: &Table,
    group: &Group,
    labels: &[&str],
    point: &dyn Fn(&Line, usize, &Cell) -> Option<Drawn>,
) -> Vec<Series> {
    let lines = table.lines.iter().map(|line| {
        let points = group.columns.iter().filter_map(|at| {
            let column = table.columns.get(*at)?;
            let (y, range, said) = point(line, *at, line.cells.get(*at)?.as_ref()?)?;
            y.is_finite().then(|| Point { x: group.across(column), y, range, marked: true, said })
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
