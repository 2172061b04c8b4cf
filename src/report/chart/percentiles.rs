//! Latency by percentile, as HDR plots have it: each further nine takes the same length.

use super::super::escape;
use super::super::histogram::Curve;
use super::super::number;
use super::super::pivot::{Column, Table, among};
use super::{Axis, Chart, Point, Series, at, position};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::Summary;

/// Points of each further nine.
const EACH_NINE: i32 = 5;
/// Nines that a histogram of 64-bit counts could tell.
const NINES_MAX: i32 = 9;
/// Microseconds in a millisecond.
const MS: f64 = 1e3;

/// A chart for each column: the medians of the repeats' percentiles, up to the last one beyond which
/// the repeat with the fewest values has enough of them.
///
/// # Errors
///
/// A damaged histogram, by the name of its step.
pub(crate) fn percentiles(table: &Table, labels: &[&str]) -> Result<Vec<Chart>> {
    let mut charts = Vec::new();
    for column in &table.columns {
        let mut series = Vec::new();
        for line in &table.lines {
            let points = curve(&among(column, &line.steps))?;
            if !points.is_empty() {
                series.push(Series { label: position(labels, line.label), points });
            }
        }
        if !series.is_empty() {
            charts.push(chart(table, column, series));
        }
    }
    Ok(charts)
}

fn chart(table: &Table, column: &Column, series: Vec<Series>) -> Chart {
    let what = if column.rate.is_some() { "response time" } else { "service time" };
    let points = || series.iter().flat_map(|series| &series.points);
    let share = points().map(|point| point.x).fold(0.9, f64::max);
    Chart {
        of: escape::line(table.workload),
        title: format!("{what}, {}", at(column)),
        x: Axis::percentiles("percentile", share),
        y: Axis::decades(format!("{what}, ms (logarithmic)"), points().map(|point| point.y)),
        series,
        spans: Vec::new(),
        rule: None,
        across: Some(percentile),
    }
}

/// `p99.9`, with so many digits that it is told from its neighbours.
fn percentile(share: f64) -> String {
    let nines = -(1.0 - share).max(1e-12).log10();
    // What is a whole nine but for rounding counts as one.
    let text = format!("{:.*}", (nines + 1e-6) as usize, share * 100.0);
    let text = if text.contains('.') { text.trim_end_matches('0') } else { &text };
    format!("p{}", text.trim_end_matches('.'))
}

/// The medians over the repeats.
fn curve(steps: &[&Summary]) -> Result<Vec<Point>> {
    let mut curves = Vec::new();
    for step in steps.iter().filter(|step| step.latency.own().count > 0) {
        let curve = Curve::read(&step.latency.own().histogram).map_err(|why| {
            Error::data(format!("the histogram of step {}: {why}", escape::clip(&step.step_id, 60)))
        })?;
        curves.extend(curve);
    }
    let Some(count) = curves.iter().map(Curve::count).min() else { return Ok(Vec::new()) };
    let shares = (0..=EACH_NINE * NINES_MAX)
        .map(|i| (i, 1.0 - 10_f64.powf(-f64::from(i) / f64::from(EACH_NINE))))
        .take_while(|(_, share)| (1.0 - share) * count as f64 >= stats::BEYOND_MIN as f64);
    let points = shares.filter_map(|(i, share)| {
        let values: Vec<f64> =
            curves.iter().map(|curve| curve.percentile_us(share * 100.0) / MS).collect();
        let y = stats::median(&values)?;
        let said = number::number(y, number::decimals([y]));
        // Markers at whole nines, so that lines are told apart without colour.
        let marked = i > 0 && i % EACH_NINE == 0;
        Some(Point { x: share, y, range: None, interval: None, marked, said })
    });
    Ok(points.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_named_as_finely_as_they_lie() {
        let named = [0.0, 0.5, 0.9, 0.99, 0.999, 0.999_99].map(percentile);
        assert_eq!(named, ["p0", "p50", "p90", "p99", "p99.9", "p99.999"]);
    }
}
