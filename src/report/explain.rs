//! The time of an operation in parts: the difference of two labels, in parts that add up.
//!
//! `new / base - 1` of the rates is `-(change of the time of an op) / (time of the new one)`: the same
//! quotient of each part is its share of the change, and the shares add up.

use super::columns::{Rows, Sheet};
use super::compared_cell::{self, ComparedCell};
use super::metric::{Metric, find_figure, own_read_us, read_us, server_cpu_us};
use super::names::{both_values, cell_named, label};
use super::notes::marked;
use super::page::Page;
use super::question::{Question, nothing_in_common};
use super::ratio::{Ratio, shift};
use super::run::differences;
use super::summary_lines;
use super::table::TableCell;
use super::value::{PageValue, number, signed, small_number};
use super::writers::write;
use crate::error::{Error, Result};
use crate::judge::{ABSENT, Difference};
use crate::stats;
use crate::summary::Summary;
use crate::terms::{self, joined, units};

const US: f64 = 1e6;
const NAMED_MAX: usize = 24;
/// Part of the time of an op from which on reads of others are told.
const OTHERS_MIN: f64 = 0.01;

const BELOW: [&str; 2] = [
    "rest: what an op waits for besides, locks, commits, the network, and CPUs that others use",
    "95 % interval of a change: Hodges-Lehmann over the runs, four at least, not corrected",
];

type OfStep = fn(&Summary) -> Option<f64>;

/// The parts that are known, as a table calls them: what each is of a step, microseconds an op.
const PARTS: [(&str, OfStep); 3] = [
    ("client CPU", |step| step.client.us_per_op),
    ("server CPU", |step| server_cpu_us(alone(step)?)),
    ("disk reads", |step| own_read_us(alone(step)?)),
];

/// Returns a step without groups beside, whose work takes no time of a measured op.
fn alone(step: &Summary) -> Option<&Summary> {
    step.groups.is_empty().then_some(step)
}

struct TimePart {
    name: &'static str,
    /// Medians; nothing where one of both does not know it: then it is in the rest.
    us: Option<[f64; 2]>,
    /// Within which its change lies, where there are enough runs.
    interval: Option<(f64, f64)>,
}

struct Split<'r, 't, 's> {
    row: &'r ComparedCell<'t, 's>,
    cells: [&'t TableCell<'s>; 2],
    /// The parts that are known, the rest, and the time of an op, which is all of them.
    parts: Vec<TimePart>,
    cycle_us: [f64; 2],
    differing: Vec<Difference>,
}

pub fn explain(steps: &[&Summary], question: &Question) -> Result<String> {
    let contrasts = question.contrasts(&steps.into(), Metric::QPS)?.noted();
    let rows = compared_cell::rows(&contrasts, question);
    let both = |row: &&ComparedCell| row.cells.iter().all(Option::is_some);
    let (mut pages, mut idle): (Vec<Page>, Vec<String>) = (Vec::new(), Vec::new());
    for rows in &rows {
        let (first, mut last_settings) = (pages.len(), String::new());
        for row in rows.iter().filter(both).filter(|row| !row.column.is_open()) {
            let Some(split) = Split::new(row) else {
                let cell = cell_named(row.table.workload, &row.column);
                idle.push(format!("{cell}: 0 ops a second are not explained"));
                continue;
            };
            let mut page = split.page();
            // The settings of most cells are those of the one before.
            let settings = settings_in_words(&split.differing);
            if last_settings != settings {
                page.below.push(settings.clone());
                last_settings = settings;
            }
            pages.push(page);
        }
        if pages.len() > first {
            let last = pages.pop().expect("a page");
            pages.push(last.footed(rows[0].table));
        }
    }
    let Some(last) = pages.last_mut() else {
        let but = " in a closed loop (in an open loop the rate is what was asked for)";
        let [base, new] = question.base_and_new();
        let any = rows.iter().flatten().any(|row| both(&row));
        return Err(match idle.into_iter().next() {
            Some(first) => Error::data(first).hint("loadgen report shows the steps"),
            None => nothing_in_common(base, &[new], if any { but } else { "" }),
        });
    };
    last.below.append(&mut idle);
    last.below.extend(BELOW.map(str::to_owned));
    let lines = summary_lines::below(&contrasts.tables, &question.notes, &question.source);
    Ok(write(&pages, "explain", question.format, None, (&question.notes, &lines)))
}

fn part(
    name: &'static str,
    cells: [&TableCell; 2],
    of: &dyn Fn(&Summary) -> Option<f64>,
) -> TimePart {
    let runs = |cell: &TableCell| cell.steps().filter_map(of).collect::<Vec<f64>>();
    let [one, other] = cells.map(runs);
    let us = stats::median(&one).zip(stats::median(&other)).map(|(one, other)| [one, other]);
    let shift = shift(cells, [&one, &other], 1.0);
    TimePart { name, us, interval: shift.and_then(|(shift, _)| shift.interval) }
}

impl<'r, 't, 's> Split<'r, 't, 's> {
    /// Splits a row of a closed loop; nothing where a label did nothing.
    fn new(row: &'r ComparedCell<'t, 's>) -> Option<Split<'r, 't, 's>> {
        let cells = row.cells.map(|cell| cell.expect("both have the cell"));
        let busy = f64::from(row.column.clients) * US;
        let tps = |step: &Summary| (step.measured_s > 0.0).then_some(step.totals.tps);
        let rates = part("", cells, &tps).us.filter(|of| of.iter().all(|rate| *rate > 0.0))?;
        let cycle = |step: &Summary| Some(busy / tps(step).filter(|tps| *tps > 0.0)?);
        let mut parts = Vec::from(PARTS.map(|(name, of)| part(name, cells, &of)));
        // A part that only one label knows is in the rest of both.
        let known = PARTS.iter().zip(&parts).filter(|(_, part)| part.us.is_some());
        let known: Vec<_> = known.map(|((_, of), _)| of).collect();
        let rest =
            |step: &Summary| known.iter().try_fold(cycle(step)?, |rest, of| Some(rest - of(step)?));
        let cycle_us = rates.map(|rate| busy / rate);
        // The difference of medians, so that the parts add up.
        let sum = |at: usize| parts.iter().filter_map(|part| Some(part.us?[at])).sum::<f64>();
        let us = Some([cycle_us[0] - sum(0), cycle_us[1] - sum(1)]);
        let rest = TimePart { us, ..part("rest", cells, &rest) };
        let whole = TimePart { us: Some(cycle_us), ..part("time of an op", cells, &cycle) };
        parts.extend([rest, whole]);
        // Class and durability follow from counters and variables.
        let mut differing = differences(cells[0].runs[0], cells[1].runs[0]);
        differing.retain(|d| !["class", "durability"].contains(&d.name.as_str()));
        Some(Split { row, cells, parts, cycle_us, differing })
    }

    fn page(&self) -> Page {
        let (table, row) = (self.row.table, self.row);
        let [one, other] = self.cells.map(|cell| cell.spread.median);
        let title = format!(
            "{}: QPS {} with {}, {} with {}: {} %",
            cell_named(table.workload, &row.column),
            units::rate(one),
            label(table.lines[0].label),
            units::rate(other),
            label(table.lines[1].label),
            signed(100.0 * (other / one - 1.0), 1),
        );
        let found =
            |of| format!("QPS new/base over all pairs of runs, as `loadgen compare` has it: {of}");
        let below = row.found().map(found).into_iter().chain(self.remarks());
        Page::new(title, self.sheet(), below.collect())
    }

    fn sheet(&self) -> Sheet {
        let (table, row) = (self.row.table, self.row);
        let change_of = |d: &Difference| (d.name.clone(), format!("{} -> {}", d.first, d.second));
        let settings = PageValue::from(self.differing.iter().map(change_of).collect::<Vec<_>>());
        let change = |part: &&TimePart| part.us.map(|[one, other]| other - one);
        // A change of the time of an operation as a share of the rate.
        let percent = |part: &&TimePart| Some(-100.0 * change(part)? / self.cycle_us[1]);
        // Below a millisecond a part is a few microseconds.
        let decimals = if self.cycle_us.iter().any(|us| *us < 1e3) { 4 } else { 3 };
        let ms = |us: f64| signed(us / 1e3, decimals);
        let between = |(low, high)| format!("{} to {}", ms(low), ms(high));
        let side = |part: &&TimePart, at: usize| part.us.map(|us| (us[at] / 1e3, decimals));
        let runs = row.ratio.as_ref().map_or([0, 0], |_| row.runs());
        let bounds = row.ratio.as_ref().and_then(Ratio::bounds);
        Rows::new(&self.parts)
            .place(table.workload, |_| row.column)
            .filed("base", |_| table.lines[0].label)
            .filed("new", |_| table.lines[1].label)
            .filed("base_qps", |_| self.cells[0].spread.median)
            .filed("new_qps", |_| self.cells[1].spread.median)
            .both("ms an op", "part", |part| part.name)
            .shown(&marked(table, 0), |part| side(part, 0))
            .filed("base_us", |part| part.us.map(|us| us[0]))
            .shown(&marked(table, 1), |part| side(part, 1))
            .filed("new_us", |part| part.us.map(|us| us[1]))
            .shown("change", |part| change(part).map_or("unknown".to_owned(), ms))
            .shown("95 % interval", |part| part.us.and(part.interval).map(between))
            .shown("% of QPS", |part| percent(part).map(|of| signed(of, 1)))
            .filed("change_us", change)
            .filed("qps_percent", percent)
            .filed("differing", |_| settings.clone())
            .filed("change_low_us", |part| part.interval.map(|i| i.0))
            .filed("change_high_us", |part| part.interval.map(|i| i.1))
            .filed("base_runs", |_| runs[0])
            .filed("new_runs", |_| runs[1])
            .filed("ratio_low", |_| bounds.map(|(low, _)| low))
            .filed("ratio_high", |_| bounds.map(|(_, high)| high))
            .filed("p_corrected", |_| row.ratio.as_ref().map(|ratio| ratio.p))
            .sheet()
    }

    fn remarks(&self) -> impl Iterator<Item = String> {
        let medians = |of: &dyn Fn(&Summary) -> Option<f64>| part("", self.cells, of).us;
        let texts = |[one, other]: [f64; 2], decimals| {
            format!("{} and {}", number(one, decimals), number(other, decimals))
        };
        let reads =
            medians(&|step| (find_figure("innodb-reads").expect("a figure").value)(alone(step)?));
        let reads = reads.map(|reads| reads.map(|reads| small_number(reads, 3)).join(" and "));
        let reads = reads.map(|reads| format!("InnoDB reads an op: {reads}"));
        let matters = |us: &[f64; 2]| (0..2).any(|at| us[at] > OTHERS_MIN * self.cycle_us[at]);
        let others =
            medians(&|step| Some(read_us(alone(step)?)? - own_read_us(step)?)).filter(matters);
        let remark = |ms: String| format!("disk reads for others, by their bytes: {ms} ms an op");
        let others = others.map(|us| remark(texts(us.map(|us| us / 1e3), 4)));
        let clients = f64::from(self.row.column.clients);
        let busy = [(1, "server"), (0, "client")].map(|(part, name)| {
            let us = self.parts[part].us?;
            let cores = [0, 1].map(|at| us[at] * clients / self.cycle_us[at]);
            Some(format!("{name} {}", texts(cores, 2)))
        });
        let busy = joined(busy, "; ").map(|busy| format!("cores busy: {busy}"));
        let unknown = |part: &TimePart| part.us.is_none().then(|| part.name.to_owned());
        let unknown = joined(self.parts.iter().map(unknown), ", ");
        let unknown = unknown.map(|parts| format!("not known and in the rest: {parts}"));
        let is_below = |part: &&TimePart| part.us.is_some_and(|us| us.iter().any(|us| *us < 0.0));
        let below = self.parts.iter().find(is_below).map(|part| {
            format!(
                "{} is below 0: CPU or reads beside the ops (purge, flushing, read-ahead) are \
                 counted as the ops' own",
                part.name
            )
        });
        [reads, others, busy, unknown, below].into_iter().flatten()
    }
}

fn settings_in_words(differing: &[Difference]) -> String {
    let (alone, both): (Vec<&Difference>, Vec<&Difference>) =
        differing.iter().partition(|d| d.first == ABSENT || d.second == ABSENT);
    let both = terms::named(both.into_iter().map(both_values).collect(), NAMED_MAX, "; ");
    let alone = (!alone.is_empty()).then(|| format!("{} that only one of them has", alone.len()));
    let named = joined([Some(both).filter(|both| !both.is_empty()), alone], "; ");
    named.map_or("no setting differs".to_owned(), |named| format!("settings that differ: {named}"))
}
