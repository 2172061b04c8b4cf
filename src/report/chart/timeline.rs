//! What happened in the course of a step, interval by interval: its repeats over each other.

use super::super::escape;
use super::super::table::{Column, Line, Table, among};
use super::{Axis, Chart, MS, Point, Series, Span, SpanKind, at, position};
use crate::stats::is_scarce;
use crate::summary::{Interval, Phase, Summary};

/// Vertices of all timelines of a page: more would make it too large to open at once.
const VERTICES: usize = 60_000;
/// Vertices of a line that nobody could tell apart.
const EACH_MAX: usize = 400;
/// Vertices below which a line says nothing.
const EACH_MIN: usize = 16;
/// An interval shorter than this share of the longest is the rest at the end of a phase: its rate
/// is of a handful of ops.
const WHOLE: f64 = 0.2;

/// A number that a timeline shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Ops a second.
    Rate,
    /// 99th percentile of the time.
    P99,
}

impl Shown {
    fn name(self, paced: bool) -> &'static str {
        match (self, paced) {
            (Shown::Rate, _) => "ops/s",
            (Shown::P99, false) => "p99 service time, ms",
            (Shown::P99, true) => "p99 response time, ms",
        }
    }

    /// None of an interval with too few ops to have such a percentile.
    fn value(self, interval: &Interval) -> Option<f64> {
        match self {
            Shown::Rate => Some(interval.ops as f64 / interval.length_s),
            Shown::P99 if is_scarce(99.0, interval.ops) => None,
            Shown::P99 => interval.response_p99_us.or(interval.p99_us).map(|us| us / MS),
        }
    }
}

/// Vertices that each line gets when there are so many.
pub(crate) fn vertices_each(lines: usize) -> usize {
    (VERTICES / lines.max(1)).clamp(EACH_MIN, EACH_MAX)
}

/// Makes for each line of the table a chart of each column that it has timelines in, and one of its
/// steps that did not complete: there, errors and outages matter most. Those of one column have one
/// scale, so that labels can be compared.
pub(crate) fn timelines(
    table: &Table,
    labels: &[&str],
    what: Shown,
    vertices: usize,
) -> Vec<Vec<Chart>> {
    let scale = |column: &Column| {
        let steps = table.all();
        let steps = steps.filter(|step| step.cell() == *column);
        let points = steps.flat_map(|step| points(step, what)).flatten();
        Axis::from_zero(what.name(column.rate.is_some()), points.map(|point| point.y)).sparse()
    };
    let scales: Vec<Axis> = table.columns.iter().map(scale).collect();
    let of_line = |line: &Line| {
        let chart = |title: String, y: &Axis, steps: &[&Summary]| {
            let runs = steps.iter().flat_map(|step| runs(&points(step, what), vertices));
            let label = position(labels, line.label);
            let series = runs.map(|points| Series { label, points }).collect();
            let end = steps.iter().flat_map(|step| &step.timeline).map(end_s).fold(0.0, f64::max);
            let x = Axis::elapsed("seconds from the start of the step", end);
            let of = format!("{}, {}", escape::line(table.workload), super::label(line.label));
            let chart = Chart::new(table, title, x, y.clone(), series);
            Chart { of, spans: spans(steps, end), ..chart }
        };
        let charts = table.columns.iter().zip(&scales).flat_map(|(column, y)| {
            let ended = format!("{}, did not complete", at(column));
            [
                chart(at(column), y, &among(column, &line.steps)),
                chart(ended, y, &among(column, &line.left_out)),
            ]
        });
        charts.filter(|chart| !chart.series.is_empty()).collect()
    };
    table.lines.iter().map(of_line).collect()
}

fn end_s(interval: &Interval) -> f64 {
    interval.start_s + interval.length_s
}

/// Returns one point an interval, at its middle, where it has a value.
fn points(step: &Summary, what: Shown) -> Vec<Option<Point>> {
    let longest = step.timeline.iter().map(|interval| interval.length_s).fold(0.0, f64::max);
    let whole = |interval: &&Interval| {
        interval.length_s > longest * WHOLE && interval.phase != Phase::Drain
    };
    let point = |interval: &Interval| {
        let (x, y) = (interval.start_s + interval.length_s / 2.0, what.value(interval)?);
        (x.is_finite() && y.is_finite()).then(|| Point { x, y, ..Point::default() })
    };
    step.timeline.iter().filter(whole).map(point).collect()
}

/// Lines of at most about so many points together, by the smallest and the largest of each part.
/// One ends where a part has none.
fn runs(points: &[Option<Point>], vertices: usize) -> Vec<Vec<Point>> {
    let size =
        if points.len() <= vertices { 1 } else { points.len().div_ceil((vertices / 2).max(1)) };
    let parts: Vec<Vec<Point>> = points.chunks(size).map(extremes).collect();
    parts.split(Vec::is_empty).map(<[Vec<Point>]>::concat).filter(|run| !run.is_empty()).collect()
}

/// Returns the smallest and the largest, in their order.
fn extremes(points: &[Option<Point>]) -> Vec<Point> {
    let there = || points.iter().flatten().enumerate();
    let least = there().min_by(|a, b| a.1.y.total_cmp(&b.1.y));
    let most = there().max_by(|a, b| a.1.y.total_cmp(&b.1.y));
    let mut both: Vec<(usize, &Point)> = least.into_iter().chain(most).collect();
    both.sort_unstable_by_key(|(at, _)| *at);
    both.dedup_by_key(|(at, _)| *at);
    both.into_iter().map(|(_, point)| point.clone()).collect()
}

/// Warm-up and drain of the first step, and what went wrong in any of them.
fn spans(steps: &[&Summary], end: f64) -> Vec<Span> {
    let phase = |phase: Phase| {
        let mut those = steps.first()?.timeline.iter().filter(|interval| interval.phase == phase);
        let first = those.next()?;
        let to = those.map(end_s).fold(end_s(first), f64::max);
        Some(Span { kind: SpanKind::Uncounted, from: first.start_s, to })
    };
    let mut spans: Vec<Span> =
        [Phase::Warmup, Phase::Drain].into_iter().filter_map(phase).collect();
    // Until the rate was back, else until somebody was served, else to the end.
    spans.extend(steps.iter().flat_map(|step| &step.outages).map(|outage| {
        let to = outage.recovered_s.or(outage.first_success_s).unwrap_or(end);
        Span { kind: SpanKind::Outage, from: outage.first_error_s, to }
    }));
    spans.extend(steps.iter().flat_map(|step| errors(step)));
    spans
}

fn errors(step: &Summary) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for interval in step.timeline.iter().filter(|interval| interval.errors > 0) {
        let (from, to) = (interval.start_s, end_s(interval));
        match spans.last_mut() {
            Some(last) if from <= last.to + 1e-6 => last.to = to.max(last.to),
            _ => spans.push(Span { kind: SpanKind::Errors, from, to }),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(x: f64, y: f64) -> Point {
        Point { x, y, ..Point::default() }
    }

    #[test]
    fn thinning_keeps_the_extremes_and_their_order() {
        let mut points: Vec<Option<Point>> =
            (0..1000).map(|i| Some(plain(f64::from(i), 100.0))).collect();
        points[333] = Some(plain(333.0, 0.0));
        points[777] = Some(plain(777.0, 900.0));
        let runs = |vertices| super::runs(&points, vertices);
        let few = runs(60).concat();
        assert!(few.len() <= 60, "{}", few.len());
        let at = |y: f64| few.iter().find(|point| point.y.total_cmp(&y).is_eq()).map(|p| p.x);
        assert_eq!((at(0.0), at(900.0)), (Some(333.0), Some(777.0)));
        assert!(few.is_sorted_by(|a, b| a.x <= b.x));
        assert_eq!((runs(60).len(), runs(1000).len(), runs(1000)[0].len()), (1, 1, 1000));
    }

    #[test]
    fn a_line_has_a_gap_where_there_are_no_points() {
        let mut points: Vec<Option<Point>> =
            (0..10).map(|i| Some(plain(f64::from(i), 1.0))).collect();
        (points[3], points[4], points[9]) = (None, None, None);
        let lengths: Vec<usize> = runs(&points, 100).iter().map(Vec::len).collect();
        assert_eq!(lengths, [3, 4]);
        assert!(runs(&[None, None], 100).is_empty());
    }

    #[test]
    fn a_percentile_of_few_ops_is_no_point() {
        let mut interval = Interval {
            phase: Phase::Measure,
            start_s: 0.0,
            length_s: 1.0,
            ops: 999,
            errors: 0,
            p50_us: Some(500.0),
            p99_us: Some(1000.0),
            max_us: Some(2000.0),
            response_p50_us: None,
            response_p99_us: None,
            response_max_us: None,
        };
        assert_eq!(
            (Shown::P99.value(&interval), Shown::Rate.value(&interval)),
            (None, Some(999.0))
        );
        interval.ops = 1000;
        assert_eq!(Shown::P99.value(&interval), Some(1.0));
    }
}
