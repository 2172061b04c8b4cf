//! Charts of the intervals of steps: rate and latency over time.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use super::chart::{Axis, Chart, ERRORS, OUTAGE, Point, Series, Span, UNCOUNTED, at};
use super::escape;
use super::labels::{Labels, position};
use super::metric::MS;
use super::names::label;
use super::table::{LabelRow, WorkloadTable};
use crate::stats::is_scarce;
use crate::summary::{Group, Interval, Outage, Phase, Summary};
use crate::terms::Cell;

/// Vertices of all timelines of a page: more would make it too large to open at once.
const VERTICES: usize = 60_000;
/// Vertices of a line: below it says nothing, above nobody could tell them apart.
const EACH_MIN: usize = 16;
const EACH_MAX: usize = 400;
/// A shorter share of the longest interval is the rest of a phase, with a handful of ops.
const WHOLE: f64 = 0.2;

pub(crate) struct Course {
    names: [&'static str; 2],
    value: fn(&Interval) -> Option<f64>,
}

pub(crate) const RATE_COURSES: &[Course] = &[Course {
    names: ["ops/s"; 2],
    value: |interval| Some(interval.ops as f64 / interval.length_s),
}];
/// The p99, which an interval with too few ops does not have, and the longest time, which each has.
pub(crate) const TIME_COURSES: &[Course] = &[
    Course {
        names: ["p99 service time, ms", "p99 response time, ms"],
        value: |interval| {
            let us = interval.response_p99_us.or(interval.p99_us);
            us.filter(|_| !is_scarce(99.0, interval.ops)).map(|us| us / MS)
        },
    },
    Course {
        names: ["longest service time, ms", "longest response time, ms"],
        value: |interval| interval.response_max_us.or(interval.max_us).map(|us| us / MS),
    },
];

/// The group that a chart shows: the measured one, or the one beside it that has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ChartedGroup<'a> {
    Measured,
    Beside(&'a str),
}

impl ChartedGroup<'_> {
    fn group(self, step: &Summary) -> Option<&Group> {
        let ChartedGroup::Beside(name) = self else { return None };
        step.groups.iter().find(|group| group.name == name)
    }

    fn intervals(self, step: &Summary) -> &[Interval] {
        match self {
            ChartedGroup::Measured => &step.timeline,
            ChartedGroup::Beside(_) => self.group(step).map_or(&[], |group| &group.timeline),
        }
    }

    fn outages(self, step: &Summary) -> &[Outage] {
        match self {
            ChartedGroup::Measured => &step.outages,
            ChartedGroup::Beside(_) => self.group(step).map_or(&[], |group| &group.outages),
        }
    }

    /// Names a course; a group may have had a rate with one label only.
    fn name(self, course: &Course, column: &Cell, steps: &[&Summary]) -> String {
        let rates = steps.iter().filter_map(|step| self.group(step)).map(|group| group.rate);
        let open: BTreeSet<bool> = match self {
            ChartedGroup::Measured => BTreeSet::from([column.is_open()]),
            ChartedGroup::Beside(_) => rates.map(|rate| rate.is_some()).collect(),
        };
        let names: BTreeSet<&str> =
            open.into_iter().map(|open| course.names[usize::from(open)]).collect();
        names.into_iter().collect::<Vec<_>>().join(" or ")
    }

    fn title(self, column: &Cell) -> String {
        match self {
            ChartedGroup::Measured => at(column),
            ChartedGroup::Beside(name) => {
                format!("group {}, beside {}", escape::line(name), at(column))
            }
        }
    }
}

/// Lists the measured group, then the others that have intervals.
fn list_groups<'t>(table: &'t WorkloadTable) -> Vec<ChartedGroup<'t>> {
    let groups = table.all_steps().flat_map(|step| &step.groups);
    let groups = groups.filter(|group| !group.timeline.is_empty());
    let names: BTreeSet<&str> = groups.map(|group| group.name.as_str()).collect();
    iter::once(ChartedGroup::Measured).chain(names.into_iter().map(ChartedGroup::Beside)).collect()
}

/// Returns the first course that at least half of the intervals with ops have, else the last one.
fn choose_course<'a>(courses: &'a [Course], steps: &[&Summary], of: ChartedGroup) -> &'a Course {
    let intervals =
        || steps.iter().flat_map(|step| of.intervals(step)).filter(|interval| interval.ops > 0);
    let is_usual = |course: &&Course| {
        let known = intervals().filter(|interval| (course.value)(interval).is_some());
        known.count() * 2 >= intervals().count()
    };
    let last = courses.last().expect("a chart shows something");
    courses.iter().find(is_usual).unwrap_or(last)
}

/// Divides the vertices among the lines of so many steps, and of the groups beside them.
pub(crate) fn vertices_each<'s>(steps: impl Iterator<Item = &'s Summary>, courses: usize) -> usize {
    let lines = steps.map(|step| 1 + step.groups.len()).sum::<usize>() * courses;
    (VERTICES / lines.max(1)).clamp(EACH_MIN, EACH_MAX)
}

/// Draws also repeats that did not complete: errors and outages matter most there. A column has one scale.
pub(crate) fn timelines(
    table: &WorkloadTable,
    labels: &Labels,
    courses: &'static [Course],
    vertices: usize,
) -> impl Fn(&LabelRow) -> Vec<Chart> {
    let mut steps_of: BTreeMap<Cell, Vec<&Summary>> = BTreeMap::new();
    for step in table.all_steps() {
        steps_of.entry(step.cell()).or_default().push(step);
    }
    let all = list_groups(table);
    let scale = |(column, steps): (&Cell, &Vec<&Summary>), of: ChartedGroup| {
        let course = choose_course(courses, steps, of);
        let values = steps.iter().flat_map(|step| points(step, of, course)).flatten();
        let name = of.name(course, column, steps);
        (course, Axis::of_bulk(&name, values.map(|point| point.y).collect()))
    };
    let mut scales: BTreeMap<(Cell, ChartedGroup), (&Course, Axis)> = BTreeMap::new();
    for column in &steps_of {
        scales.extend(all.iter().map(|of| ((*column.0, *of), scale(column, *of))));
    }
    move |line| {
        let position = position(labels, line.label);
        let name = format!("{}, {}", escape::line(table.workload), label(line.label));
        let mut charts = Vec::new();
        for (column, of_column) in line.by_column() {
            let steps: Vec<&Summary> = of_column.steps().collect();
            let parts = [(&steps, ""), (&of_column.left_out, ", did not complete")];
            for ((steps, ended), of) in
                parts.into_iter().flat_map(|part| all.iter().map(move |of| (part, *of)))
            {
                // A column that was imported has no steps.
                let Some((course, y)) = scales.get(&(column, of)) else { continue };
                let runs = steps.iter().flat_map(|step| runs(&points(step, of, course), vertices));
                let series = runs.map(|points| Series { label: position, points }).collect();
                // A dip of a group is below that of the measured one.
                let both = [ChartedGroup::Measured, of];
                let timelines = steps.iter().flat_map(|step| both.map(|of| of.intervals(step)));
                let end = timelines.flatten().map(end_s).fold(0.0, f64::max);
                let x = Axis::elapsed("seconds from the start of the step", end);
                let title = of.title(&column) + ended;
                let chart = Chart::new(table, title, x, y.clone(), series);
                charts.push(Chart { of: name.clone(), spans: spans(steps, of, end), ..chart });
            }
        }
        charts.retain(|chart| !chart.series.is_empty());
        charts
    }
}

fn end_s(interval: &Interval) -> f64 {
    interval.start_s + interval.length_s
}

fn points(step: &Summary, of: ChartedGroup, what: &Course) -> Vec<Option<Point>> {
    let timeline = of.intervals(step);
    let longest = timeline.iter().map(|interval| interval.length_s).fold(0.0, f64::max);
    let whole = |interval: &&Interval| {
        interval.length_s > longest * WHOLE && interval.phase != Phase::Drain
    };
    let point = |interval: &Interval| {
        let (x, y) = (interval.start_s + interval.length_s / 2.0, (what.value)(interval)?);
        (x.is_finite() && y.is_finite()).then(|| Point { x, y, ..Point::default() })
    };
    timeline.iter().filter(whole).map(point).collect()
}

/// Thins a line by the smallest and the largest of each part; it ends where a part has none.
fn runs(points: &[Option<Point>], vertices: usize) -> Vec<Vec<Point>> {
    let size = if points.len() <= vertices { 1 } else { points.len().div_ceil(vertices / 2) };
    let extremes = |part: &[Option<Point>]| {
        let there = || part.iter().flatten().enumerate();
        let least = there().min_by(|a, b| a.1.y.total_cmp(&b.1.y));
        let most = there().max_by(|a, b| a.1.y.total_cmp(&b.1.y));
        let both: BTreeMap<usize, &Point> = least.into_iter().chain(most).collect();
        both.into_values().cloned().collect::<Vec<Point>>()
    };
    let parts: Vec<Vec<Point>> = points.chunks(size).map(extremes).collect();
    parts.split(Vec::is_empty).map(<[Vec<Point>]>::concat).filter(|run| !run.is_empty()).collect()
}

fn spans(steps: &[&Summary], of: ChartedGroup, end: f64) -> Vec<Span> {
    let first = steps.iter().map(|step| of.intervals(step)).find(|all| !all.is_empty());
    let uncounted = first.into_iter().flatten().filter(|interval| interval.phase != Phase::Measure);
    let failed =
        steps.iter().flat_map(|step| of.intervals(step)).filter(|interval| interval.errors > 0);
    let shades = uncounted.map(|of| (UNCOUNTED, of)).chain(failed.map(|of| (ERRORS, of)));
    let mut spans: Vec<Span> = Vec::new();
    for (shade, interval) in shades {
        let (from, to) = (interval.start_s, end_s(interval));
        // One span of intervals that follow each other.
        match spans.last_mut().filter(|last| last.shade == shade && last.from <= from) {
            Some(last) if from <= last.to + 1e-6 => last.to = to.max(last.to),
            _ => spans.push(Span { shade, from, to }),
        }
    }
    // Until the rate was back, else until somebody was served, else to the end.
    spans.extend(steps.iter().flat_map(|step| of.outages(step)).map(|outage| {
        let to = outage.recovered_s.or(outage.first_success_s).unwrap_or(end);
        Span { shade: OUTAGE, from: outage.first_error_s, to }
    }));
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
            p99_us: Some(1000.0),
            max_us: Some(2000.0),
            ..Interval::counted(Phase::Measure, 0.0, 999)
        };
        let values = |interval: &Interval| {
            let [rate, p99, longest] = [&RATE_COURSES[0], &TIME_COURSES[0], &TIME_COURSES[1]];
            [rate, p99, longest].map(|course| (course.value)(interval))
        };
        assert_eq!(values(&interval), [Some(999.0), None, Some(2.0)]);
        interval.ops = 1000;
        assert_eq!(values(&interval)[1], Some(1.0));
    }
}
