//! Where the time of an op went: the difference of two labels in parts that add up.
//!
//! In a closed loop each client has one op under way at any instant, so clients / ops a second is
//! the time of an op, and of this time the CPU of client and server and the server's reads of the
//! disks are known. As `new / base - 1` of the rates is `-(change of the time) / (time of the new
//! one)`, the same quotient of each part is its share of the change, and the shares add up.

use super::baseline::known;
use super::compare::{self, Row, chance, comparable, judged};
use super::escape::{self, clip};
use super::figure::{named, own_read_us, read_us, server_cpu_us};
use super::layout::{at_clients, below, label, marked, noted, place};
use super::metric::Metric;
use super::number::number;
use super::page::{self, Page, Sheet, Value, both, filed, shown};
use super::settings;
use super::table::{self, Cell, Column, Table};
use super::{Format, Options, write};
use crate::error::{Error, Result};
use crate::judge::{self, ABSENT, Difference};
use crate::stats;
use crate::summary::Summary;
use crate::terms;

/// Microseconds in a second.
const US: f64 = 1e6;
/// Differing settings that a text names.
const NAMED_MAX: usize = 24;
/// Part of the time of an op from which on reads of others are told.
const OTHERS_MIN: f64 = 0.01;

/// What the last part is.
const REST: &str =
    "rest: what an op waits for besides, locks, commits, the network, and CPUs that others use";
/// What stands behind the intervals.
const INTERVALS: &str =
    "95 % interval of a change: Hodges-Lehmann over the runs, four at least, not corrected";

/// What a part is of a step, microseconds an op.
type OfStep = fn(&Summary) -> Option<f64>;

/// The parts that are known, as a table calls them.
const PARTS: [(&str, OfStep); 3] = [
    ("client CPU", |step| step.client.us_per_op),
    ("server CPU", server_cpu_us),
    ("disk reads", own_read_us),
];

/// Two labels.
#[derive(Debug, Clone)]
pub struct Contrast {
    /// The label that is compared against.
    pub base: String,
    /// The label that is compared.
    pub new: String,
    /// Explain also what was measured under other conditions.
    pub force: bool,
    /// Of each label and workload only the newest invocation.
    pub latest: bool,
    /// The output format.
    pub format: Format,
}

/// A part of the time of an op, microseconds, with both labels.
struct Part {
    name: &'static str,
    /// Medians; nothing where one of both does not know it: then it is in the rest.
    us: Option<(f64, f64)>,
    /// Within which its change lies, where there are enough runs.
    interval: Option<(f64, f64)>,
}

/// One workload and number of clients.
struct Split {
    column: Column,
    /// Statements a second.
    qps: (f64, f64),
    /// The parts that are known, the rest, and the time of an op, which is all of them.
    parts: Vec<Part>,
    /// The time of an op.
    cycle_us: (f64, f64),
    /// Reads of InnoDB an op.
    reads: Option<(f64, f64)>,
    /// Time that the disks read for others, an op.
    others: Option<(f64, f64)>,
}

/// Splits the difference of two labels, for every workload and number of clients that both have.
///
/// # Errors
///
/// Usage for a label that is not there; data where the two were measured under other conditions
/// (without `force`), have nothing in common, or for what [`super::render`] refuses.
pub fn explain(steps: &[&Summary], contrast: &Contrast) -> Result<String> {
    let options = Options { metric: Metric::Qps, latest: contrast.latest, ..Options::default() };
    let all = table::tables(steps, &options)?;
    known(&all, "the base", &contrast.base)?;
    known(&all, "the new label", &contrast.new)?;
    let labels = [contrast.base.as_str(), contrast.new.as_str()];
    let tables: Vec<Table> = all.iter().map(|table| noted(table.of_labels(&labels))).collect();
    if !contrast.force {
        tables.iter().try_for_each(comparable)?;
    }
    // What a difference must be to matter is not asked here.
    let judged = judged(&tables, 0.0, 0)?;
    let (mut pages, mut idle): (Vec<Page>, Vec<String>) = (Vec::new(), Vec::new());
    let mut open = false;
    for (table, pairs) in tables.iter().zip(&judged.rows) {
        let [base, new] = table.lines.as_slice() else { continue };
        let (first, mut said) = (pages.len(), None);
        for (column, cells) in table.columns.iter().zip(base.cells.iter().zip(&new.cells)) {
            let (Some(one), Some(other)) = cells else { continue };
            open |= column.rate.is_some();
            if column.rate.is_some() {
                continue;
            }
            if let Some(split) = split(*column, one, other)? {
                let pair = pairs.iter().find(|pair| pair.column == *column);
                let differing = differing(one, other);
                let mut page = page(table, &split, pair, &differing);
                // The settings of most cells are those of the one before.
                let settings = named_settings(&differing);
                if said.as_ref() != Some(&settings) {
                    page.below.push(settings.clone());
                    said = Some(settings);
                }
                pages.push(page);
            } else {
                idle.push(format!(
                    "{} at {}: 0 ops a second are not explained",
                    escape::line(table.workload),
                    at_clients(column)
                ));
            }
        }
        if let Some(last) = pages.get_mut(first..).and_then(<[Page]>::last_mut) {
            last.below.extend(below(table));
        }
    }
    if let Some(last) = pages.last_mut() {
        last.below.append(&mut idle);
        last.below.extend([REST, INTERVALS].map(str::to_owned));
    }
    if let Some(first) = idle.first() {
        return Err(Error::data(first.clone()).hint("loadgen report shows the steps"));
    }
    if pages.is_empty() {
        let labels = labels.map(escape::line).join(" and ");
        let text = format!("{labels} have no workload and number of clients in common");
        let error = Error::data(if open {
            format!("{text} but in an open loop, where the rate is what was asked for")
        } else {
            text
        });
        return Err(error.hint("loadgen report shows what each of them has"));
    }
    write(&pages, "explain", contrast.format)
}

fn split(column: Column, base: &Cell, new: &Cell) -> Result<Option<Split>> {
    let both = |metric: &Metric| -> Result<(Runs, Runs)> {
        Ok((values(base, metric)?, values(new, metric)?))
    };
    let cycle = |tps: &Option<f64>| {
        let tps = tps.filter(|tps| *tps > 0.0)?;
        Some(f64::from(column.clients) * US / tps)
    };
    let rates = both(&Metric::Tps)?;
    let cycles = (rates.0.iter().map(cycle).collect(), rates.1.iter().map(cycle).collect());
    let (Some(one), Some(other)) = (median(&rates.0), median(&rates.1)) else { return Ok(None) };
    if one <= 0.0 || other <= 0.0 {
        return Ok(None);
    }
    let runs =
        |cell: &Cell, part: OfStep| -> Runs { cell.steps.iter().map(|step| part(step)).collect() };
    let mut known: Vec<(&'static str, (Runs, Runs))> =
        PARTS.map(|(name, part)| (name, (runs(base, part), runs(new, part)))).into();
    let of = |name: &'static str, runs: &(Runs, Runs)| Part {
        name,
        us: median(&runs.0).zip(median(&runs.1)),
        interval: interval((base, &runs.0), (new, &runs.1)),
    };
    let mut parts: Vec<Part> = known.iter().map(|(name, runs)| of(name, runs)).collect();
    // What only one of both knows is in the rest of both.
    known.retain(|(name, _)| parts.iter().any(|part| part.name == *name && part.us.is_some()));
    let rest_of = |cycles: &Runs, part: &dyn Fn(&(Runs, Runs)) -> &Runs| -> Runs {
        let rest = |(run, cycle): (usize, &Option<f64>)| {
            let mut others = known.iter().map(|(_, runs)| *part(runs).get(run)?);
            others.try_fold((*cycle)?, |rest, value| Some(rest - value?))
        };
        cycles.iter().enumerate().map(rest).collect()
    };
    let rest = (rest_of(&cycles.0, &|runs| &runs.0), rest_of(&cycles.1, &|runs| &runs.1));
    let cycle_us = (f64::from(column.clients) * US / one, f64::from(column.clients) * US / other);
    let sum = |of: fn(&(f64, f64)) -> f64| -> f64 {
        parts.iter().filter_map(|part| part.us.as_ref()).map(of).sum()
    };
    // The difference of medians, so that the parts add up.
    let us = (cycle_us.0 - sum(|us| us.0), cycle_us.1 - sum(|us| us.1));
    parts.push(Part { us: Some(us), ..of("rest", &rest) });
    parts.push(Part { us: Some(cycle_us), ..of("time of an op", &cycles) });
    let reads = named("innodb-reads").map(|figure| both(&Metric::Figure(figure))).transpose()?;
    let reads = reads.and_then(|(one, other)| median(&one).zip(median(&other)));
    let for_others: OfStep = |step| Some(read_us(step)? - own_read_us(step)?);
    let others = median(&runs(base, for_others)).zip(median(&runs(new, for_others)));
    let qps = (base.spread.median, new.spread.median);
    Ok(Some(Split { column, qps, parts, cycle_us, reads, others }))
}

/// A number of each run of a cell, where it has one.
type Runs = Vec<Option<f64>>;

fn values(cell: &Cell, metric: &Metric) -> Result<Runs> {
    cell.steps.iter().map(|step| metric.value(step)).collect()
}

fn median(runs: &Runs) -> Option<f64> {
    stats::median(&runs.iter().copied().flatten().collect::<Vec<f64>>())
}

/// The 95 % interval of a change.
fn interval(one: (&Cell, &Runs), other: (&Cell, &Runs)) -> Option<(f64, f64)> {
    let known = |runs: &Runs| runs.iter().copied().flatten().collect::<Vec<f64>>();
    let (a, b) = (known(one.1), known(other.1));
    compare::shift((one.0, &a), (other.0, &b), 1.0)?.0.interval
}

impl Split {
    /// What a change of the time of an op is of the rate, percent.
    fn percent(&self, change_us: f64) -> f64 {
        -100.0 * change_us / self.cycle_us.1
    }
}

fn page(table: &Table, split: &Split, pair: Option<&Row>, differing: &[Difference]) -> Page {
    let (one, other) = split.qps;
    let title = format!(
        "{} at {}: QPS {} with {}, {} with {}: {} %",
        escape::line(table.workload),
        at_clients(&split.column),
        number(one, 0),
        label(table.lines[0].label),
        number(other, 0),
        label(table.lines[1].label),
        signed(100.0 * (other / one - 1.0), 1),
    );
    let below = pair.and_then(|pair| chance("QPS", pair)).into_iter().chain(remarks(split));
    Page::of(
        title,
        Sheet::of(columns(table, split, pair, differing), &split.parts),
        below.collect(),
    )
}

/// A row for each part, and the whole.
fn columns<'a>(
    table: &'a Table,
    split: &'a Split,
    pair: Option<&'a Row>,
    differing: &'a [Difference],
) -> Vec<page::Column<'a, &'a Part>> {
    let settings: Vec<(String, String)> = differing
        .iter()
        .map(|d| (d.name.clone(), format!("{} -> {}", d.first, d.second)))
        .collect();
    let change = |part: &&Part| part.us.map(|(one, other)| other - one);
    let percent = move |part: &&Part| change(part).map(|change| split.percent(change));
    let between = |(low, high)| format!("{} to {}", signed(low, 1), signed(high, 1));
    let pair = pair.and_then(|row| Some((row, row.ratio.as_ref()?)));
    let runs = pair.map_or((0, 0), |(row, _)| row.runs);
    let interval = pair.and_then(|(_, ratio)| ratio.shift.interval);
    let mut columns = place(table, |_: &&Part| split.column);
    columns.extend([
        filed("base", |_: &&Part| table.lines[0].label),
        filed("new", |_: &&Part| table.lines[1].label),
        filed("base_qps", |_: &&Part| split.qps.0),
        filed("new_qps", |_: &&Part| split.qps.1),
        both("microseconds an op", "part", |part: &&Part| part.name).left(),
        both(marked(table, 0), "base_us", |part: &&Part| part.us.map(|us| (us.0, 1))),
        both(marked(table, 1), "new_us", |part: &&Part| part.us.map(|us| (us.1, 1))),
        shown("change", move |part: &&Part| {
            change(part).map_or("unknown".to_owned(), |change| signed(change, 1))
        }),
        shown("95 % interval", move |part: &&Part| part.us.and(part.interval).map(between)),
        shown("% of QPS", move |part: &&Part| percent(part).map(|percent| signed(percent, 1))),
        filed("change_us", change),
        filed("qps_percent", percent),
        filed("differing", move |_: &&Part| Value::Pairs(settings.clone())),
        filed("change_low_us", |part: &&Part| part.interval.map(|i| i.0)),
        filed("change_high_us", |part: &&Part| part.interval.map(|i| i.1)),
        filed("base_runs", move |_: &&Part| runs.0),
        filed("new_runs", move |_: &&Part| runs.1),
        filed("ratio_low", move |_: &&Part| interval.map(|i| i.0.exp())),
        filed("ratio_high", move |_: &&Part| interval.map(|i| i.1.exp())),
        filed("p_corrected", move |_: &&Part| pair.map(|(_, ratio)| ratio.p)),
    ]);
    columns
}

/// A number that always has its sign.
fn signed(value: f64, decimals: usize) -> String {
    let text = number(value, decimals);
    let positive = text.bytes().any(|b| (b'1'..=b'9').contains(&b)) && !text.starts_with('-');
    if positive { format!("+{text}") } else { text }
}

/// What is not among the parts, and what a reader must know of them.
fn remarks(split: &Split) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some((one, other)) = split.reads {
        lines.push(format!("InnoDB reads an op: {} and {}", number(one, 3), number(other, 3)));
    }
    let matters = |us: f64, cycle_us: f64| us > OTHERS_MIN * cycle_us;
    if let Some((one, other)) = split.others
        && (matters(one, split.cycle_us.0) || matters(other, split.cycle_us.1))
    {
        let (one, other) = (number(one, 1), number(other, 1));
        lines.push(format!("disk reads for others, by their bytes: {one} and {other} us an op"));
    }
    let busy = |name: &str| {
        let part = split.parts.iter().find(|part| part.name == name)?;
        let (one, other) = part.us?;
        let clients = f64::from(split.column.clients);
        let cores = |us: f64, cycle: f64| number(us * clients / cycle, 2);
        let (one, other) = (cores(one, split.cycle_us.0), cores(other, split.cycle_us.1));
        Some(format!("{} {one} and {other}", name.trim_end_matches(" CPU")))
    };
    let busy: Vec<String> = ["server CPU", "client CPU"].into_iter().filter_map(busy).collect();
    if !busy.is_empty() {
        lines.push(format!("cores busy: {}", busy.join("; ")));
    }
    let unknown: Vec<&str> =
        split.parts.iter().filter(|part| part.us.is_none()).map(|part| part.name).collect();
    if !unknown.is_empty() {
        lines.push(format!("not known and in the rest: {}", unknown.join(", ")));
    }
    let most = split.parts.iter().filter_map(|part| Some((part.us?, part.name)));
    let least = most.clone().find(|((one, other), _)| *one < 0.0 || *other < 0.0);
    if let Some((_, name)) = least {
        lines.push(format!(
            "{name} is below 0: CPU or reads beside the ops (purge, flushing, read-ahead) are counted \
             as the ops' own"
        ));
    }
    lines
}

/// The settings of the two that differ, those that both have first.
fn differing(base: &Cell, new: &Cell) -> Vec<Difference> {
    let (Some(one), Some(other)) = (base.steps.first(), new.steps.first()) else {
        return Vec::new();
    };
    // Class and durability follow from counters and variables.
    let follows = |d: &Difference| ["class", "durability"].contains(&d.name.as_str());
    let all = judge::differences(one, other).into_iter();
    all.filter(|difference| !follows(difference)).collect()
}

/// One line of what differs.
fn named_settings(differing: &[Difference]) -> String {
    let one_sided = |d: &&Difference| d.first == ABSENT || d.second == ABSENT;
    let both: Vec<&Difference> = differing.iter().filter(|d| !one_sided(d)).collect();
    let alone = differing.len() - both.len();
    if differing.is_empty() {
        return "no setting differs".to_owned();
    }
    let shown = both.iter().map(|d| {
        let (one, other) = settings::told_apart(&d.first, &d.second);
        format!("{} {one} and {other}", clip(&d.name, settings::VALUE_MAX))
    });
    let mut said = terms::named(shown.collect(), NAMED_MAX, "; ");
    if alone > 0 {
        let joint = if said.is_empty() { "" } else { "; " };
        said += &format!("{joint}{alone} that only one of them has");
    }
    format!("settings that differ: {said}")
}
