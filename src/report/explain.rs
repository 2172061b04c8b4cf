//! Where the time of an op went: the difference of two labels in parts that add up.
//!
//! In a closed loop each client has one op under way at any instant, so clients / ops a second is
//! the time of an op, and of this time the CPU of client and server and the server's reads of the
//! disks are known. As `new / base - 1` of the rates is `-(change of the time) / (time of the new
//! one)`, the same quotient of each part is its share of the change, and the shares add up.

use super::compare::{self, Question, Row, comparable, nothing_in_common, of_two};
use super::metric::{named, own_read_us, read_us, server_cpu_us};
use super::notes::{at_clients, both_values, footing, label, marked};
use super::page::{Page, Rows, Sheet, Value, number};
use super::table::{Cell, tables};
use super::{Metric, Options, escape, write};
use crate::error::{Error, Result};
use crate::judge::{self, ABSENT, Difference};
use crate::stats;
use crate::summary::Summary;
use crate::terms;

const US: f64 = 1e6;
/// Differing settings that a text names.
const NAMED_MAX: usize = 24;
/// Part of the time of an op from which on reads of others are told.
const OTHERS_MIN: f64 = 0.01;

/// What the last part is, and what stands behind the intervals.
const BELOW: [&str; 2] = [
    "rest: what an op waits for besides, locks, commits, the network, and CPUs that others use",
    "95 % interval of a change: Hodges-Lehmann over the runs, four at least, not corrected",
];

type OfStep = fn(&Summary) -> Option<f64>;

/// The parts that are known, as a table calls them: what each is of a step, microseconds an op.
const PARTS: [(&str, OfStep); 3] = [
    ("client CPU", |step| step.client.us_per_op),
    ("server CPU", server_cpu_us),
    ("disk reads", own_read_us),
];

struct Part {
    name: &'static str,
    /// Medians; nothing where one of both does not know it: then it is in the rest.
    us: Option<[f64; 2]>,
    /// Within which its change lies, where there are enough runs.
    interval: Option<(f64, f64)>,
}

struct Split<'r, 't, 's> {
    row: &'r Row<'t, 's>,
    cells: [&'t Cell<'s>; 2],
    /// The parts that are known, the rest, and the time of an op, which is all of them.
    parts: Vec<Part>,
    cycle_us: [f64; 2],
    differing: Vec<Difference>,
}

/// Splits the difference of two labels, for every workload and number of clients that both have.
pub fn explain(steps: &[&Summary], question: &Question) -> Result<String> {
    let options = Options { metric: Metric::QPS, latest: question.latest, ..Options::default() };
    let all = tables(steps, &options)?;
    let labels = [question.base.as_str(), question.new.as_str()];
    let tables = of_two(&all, ["the base", "the new label"], labels)?;
    if !question.force {
        tables.iter().try_for_each(comparable)?;
    }
    // What a difference must be to matter is not asked here.
    let (rows, _) = compare::rows(&tables, labels, 0.0, 0)?;
    let both = |row: &&Row| row.cells.iter().all(Option::is_some);
    let (open, closed): (Vec<&Row>, Vec<&Row>) =
        rows.iter().filter(both).partition(|row| row.column.is_open());
    let (mut pages, mut idle): (Vec<Page>, Vec<String>) = (Vec::new(), Vec::new());
    for rows in closed.chunk_by(|one, other| std::ptr::eq(one.table, other.table)) {
        let (first, mut said) = (pages.len(), String::new());
        for row in rows {
            let Some(split) = Split::of(row) else {
                let (workload, at) = (escape::line(row.table.workload), at_clients(&row.column));
                idle.push(format!("{workload} at {at}: 0 ops a second are not explained"));
                continue;
            };
            let mut page = split.page();
            // The settings of most cells are those of the one before.
            let settings = named_settings(&split.differing);
            if said != settings {
                page.below.push(settings.clone());
                said = settings;
            }
            pages.push(page);
        }
        if let Some(last) = pages[first..].last_mut() {
            last.below.extend(footing(rows[0].table));
        }
    }
    let Some(last) = pages.last_mut() else {
        return Err(match idle.into_iter().next() {
            Some(first) => Error::data(first).hint("loadgen report shows the steps"),
            None if open.is_empty() => nothing_in_common(labels, ""),
            None => nothing_in_common(
                labels,
                " but in an open loop, where the rate is what was asked for",
            ),
        });
    };
    last.below.append(&mut idle);
    last.below.extend(BELOW.map(str::to_owned));
    Ok(write(&pages, "explain", question.format, None))
}

fn runs(cells: [&Cell; 2], of: &dyn Fn(&Summary) -> Option<f64>) -> [Vec<f64>; 2] {
    cells.map(|cell| cell.steps.iter().filter_map(|step| of(step)).collect())
}

fn medians(cells: [&Cell; 2], of: &dyn Fn(&Summary) -> Option<f64>) -> Option<[f64; 2]> {
    let [one, other] = runs(cells, of).map(|runs| stats::median(&runs));
    Some([one?, other?])
}

fn part(name: &'static str, cells: [&Cell; 2], of: &dyn Fn(&Summary) -> Option<f64>) -> Part {
    let [one, other] = runs(cells, of);
    let shift = compare::shift(cells, [&one, &other], 1.0);
    Part { name, us: medians(cells, of), interval: shift.and_then(|(shift, _)| shift.interval) }
}

impl<'r, 't, 's> Split<'r, 't, 's> {
    /// Splits a row of a closed loop; nothing where a label did nothing.
    fn of(row: &'r Row<'t, 's>) -> Option<Split<'r, 't, 's>> {
        let cells = row.cells.map(|cell| cell.expect("both have the cell"));
        let busy = f64::from(row.column.clients) * US;
        let tps = |step: &Summary| (step.measured_s > 0.0).then_some(step.totals.tps);
        let rates = medians(cells, &tps)?;
        if rates.iter().any(|rate| *rate <= 0.0) {
            return None;
        }
        let cycle = |step: &Summary| tps(step).filter(|tps| *tps > 0.0).map(|tps| busy / tps);
        let mut parts = Vec::from(PARTS.map(|(name, of)| part(name, cells, &of)));
        // What only one of both knows is in the rest of both.
        let known = PARTS.iter().zip(&parts).filter(|(_, part)| part.us.is_some());
        let known: Vec<_> = known.map(|((_, of), _)| of).collect();
        let rest =
            |step: &Summary| known.iter().try_fold(cycle(step)?, |rest, of| Some(rest - of(step)?));
        let cycle_us = rates.map(|rate| busy / rate);
        // The difference of medians, so that the parts add up.
        let sum = |at: usize| parts.iter().filter_map(|part| Some(part.us?[at])).sum::<f64>();
        let us = Some([cycle_us[0] - sum(0), cycle_us[1] - sum(1)]);
        let rest = Part { us, ..part("rest", cells, &rest) };
        let whole = Part { us: Some(cycle_us), ..part("time of an op", cells, &cycle) };
        parts.extend([rest, whole]);
        Some(Split { row, cells, parts, cycle_us, differing: differing(cells) })
    }

    fn page(&self) -> Page {
        let (table, row) = (self.row.table, self.row);
        let [one, other] = self.cells.map(|cell| cell.spread.median);
        let title = format!(
            "{} at {}: QPS {} with {}, {} with {}: {} %",
            escape::line(table.workload),
            at_clients(&row.column),
            number(one, 0),
            label(table.lines[0].label),
            number(other, 0),
            label(table.lines[1].label),
            signed(100.0 * (other / one - 1.0), 1),
        );
        let below = row.chance("QPS").into_iter().chain(self.remarks());
        Page::of(title, self.sheet(), below.collect())
    }

    fn sheet(&self) -> Sheet {
        let (table, row) = (self.row.table, self.row);
        let told = |d: &Difference| (d.name.clone(), format!("{} -> {}", d.first, d.second));
        let settings = Value::Pairs(self.differing.iter().map(told).collect());
        let change = |part: &&Part| part.us.map(|[one, other]| other - one);
        // What a change of the time of an op is of the rate.
        let percent = |part: &&Part| Some(-100.0 * change(part)? / self.cycle_us[1]);
        let between = |(low, high)| format!("{} to {}", signed(low, 1), signed(high, 1));
        let runs = row.ratio.as_ref().map_or([0, 0], |_| row.runs);
        let bounds = row.ratio.as_ref().and_then(compare::Ratio::bounds);
        Rows::new(&self.parts)
            .place(table, |_| row.column)
            .filed("base", |_| table.lines[0].label)
            .filed("new", |_| table.lines[1].label)
            .filed("base_qps", |_| self.cells[0].spread.median)
            .filed("new_qps", |_| self.cells[1].spread.median)
            .both("microseconds an op", "part", |part| part.name)
            .left()
            .both(marked(table, 0), "base_us", |part| part.us.map(|us| (us[0], 1)))
            .both(marked(table, 1), "new_us", |part| part.us.map(|us| (us[1], 1)))
            .shown("change", |part| {
                change(part).map_or("unknown".to_owned(), |change| signed(change, 1))
            })
            .shown("95 % interval", |part| part.us.and(part.interval).map(between))
            .shown("% of QPS", |part| percent(part).map(|percent| signed(percent, 1)))
            .filed("change_us", change)
            .filed("qps_percent", percent)
            .filed("differing", |_| settings.clone())
            .filed("change_low_us", |part| part.interval.map(|i| i.0))
            .filed("change_high_us", |part| part.interval.map(|i| i.1))
            .filed("base_runs", |_| runs[0])
            .filed("new_runs", |_| runs[1])
            .filed("ratio_low", |_| bounds.map(|bounds| bounds[0]))
            .filed("ratio_high", |_| bounds.map(|bounds| bounds[1]))
            .filed("p_corrected", |_| row.ratio.as_ref().map(|ratio| ratio.p))
            .sheet()
    }

    fn remarks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let reads = named("innodb-reads").expect("a figure").value;
        lines.extend(medians(self.cells, &reads).map(|reads| {
            let [one, other] = reads.map(|reads| number(reads, 3));
            format!("InnoDB reads an op: {one} and {other}")
        }));
        let others = medians(self.cells, &|step| Some(read_us(step)? - own_read_us(step)?));
        let matters = |us: [f64; 2]| (0..2).any(|at| us[at] > OTHERS_MIN * self.cycle_us[at]);
        lines.extend(others.filter(|us| matters(*us)).map(|us| {
            let [one, other] = us.map(|us| number(us, 1));
            format!("disk reads for others, by their bytes: {one} and {other} us an op")
        }));
        let busy = ["server CPU", "client CPU"].into_iter().filter_map(|name| {
            let us = self.parts.iter().find(|part| part.name == name)?.us?;
            let clients = f64::from(self.row.column.clients);
            let cores = |at: usize| number(us[at] * clients / self.cycle_us[at], 2);
            Some(format!("{} {} and {}", name.trim_end_matches(" CPU"), cores(0), cores(1)))
        });
        let busy: Vec<String> = busy.collect();
        lines.extend((!busy.is_empty()).then(|| format!("cores busy: {}", busy.join("; "))));
        let unknown: Vec<&str> =
            self.parts.iter().filter(|part| part.us.is_none()).map(|part| part.name).collect();
        if !unknown.is_empty() {
            lines.push(format!("not known and in the rest: {}", unknown.join(", ")));
        }
        let below = |part: &&Part| part.us.is_some_and(|us| us.iter().any(|us| *us < 0.0));
        lines.extend(self.parts.iter().find(below).map(|part| {
            format!(
                "{} is below 0: CPU or reads beside the ops (purge, flushing, read-ahead) are \
                 counted as the ops' own",
                part.name
            )
        }));
        lines
    }
}

fn signed(value: f64, decimals: usize) -> String {
    let text = number(value, decimals);
    let positive = text.bytes().any(|b| (b'1'..=b'9').contains(&b)) && !text.starts_with('-');
    if positive { format!("+{text}") } else { text }
}

fn differing(cells: [&Cell; 2]) -> Vec<Difference> {
    let mut all = judge::differences(cells[0].steps[0], cells[1].steps[0]);
    // Class and durability follow from counters and variables.
    all.retain(|difference| !["class", "durability"].contains(&difference.name.as_str()));
    all
}

fn named_settings(differing: &[Difference]) -> String {
    if differing.is_empty() {
        return "no setting differs".to_owned();
    }
    let (alone, both): (Vec<&Difference>, Vec<&Difference>) =
        differing.iter().partition(|d| d.first == ABSENT || d.second == ABSENT);
    let both = terms::named(both.into_iter().map(both_values).collect(), NAMED_MAX, "; ");
    let alone = (!alone.is_empty()).then(|| format!("{} that only one of them has", alone.len()));
    let said: Vec<String> =
        [Some(both).filter(|both| !both.is_empty()), alone].into_iter().flatten().collect();
    format!("settings that differ: {}", said.join("; "))
}
