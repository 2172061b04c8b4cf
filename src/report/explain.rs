//! Where the time of an op went: the difference of two labels in parts that add up.
//!
//! In a closed loop each client has one op under way at any instant, so clients / ops a second is
//! the time of an op, and of this time the CPU of client and server and the reads of the disks are
//! known. As `new / base - 1` of the rates is `-(change of the time) / (time of the new one)`, the
//! same quotient of each part is its share of the change, and the shares add up.

use super::baseline::known;
use super::compare::comparable;
use super::escape::{self, clip};
use super::figure::named;
use super::layout::{at_clients, below, noted, record};
use super::metric::Metric;
use super::number::number;
use super::page::{self, Body, Field, Grid, Page};
use super::pivot::{self, Cell, Column, Table};
use super::settings::{self, Difference};
use super::{Format, Options, text};
use crate::error::{Error, Result};
use crate::stats;
use crate::summary::Summary;

/// Microseconds in a second.
const US: f64 = 1e6;
/// Differing settings that a text names.
const NAMED_MAX: usize = 24;
/// Longest value of one, characters.
const VALUE_MAX: usize = 40;

/// The parts that are known: what a table calls them, and the metric in microseconds an op.
const PARTS: [(&str, &str); 3] =
    [("client CPU", "cpu"), ("server CPU", "server-cpu"), ("disk reads", "read-time")];

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
    /// Nothing where one of both does not know it: then it is in the rest.
    us: Option<(f64, f64)>,
}

/// One workload and number of clients.
struct Split {
    column: Column,
    /// Statements a second.
    qps: (f64, f64),
    /// Time of an op, microseconds.
    cycle_us: (f64, f64),
    parts: Vec<Part>,
    /// Reads of InnoDB an op.
    reads: Option<(f64, f64)>,
}

/// Splits the difference of two labels, for every workload and number of clients that both have.
///
/// # Errors
///
/// Usage for a label that is not there; data where the two were measured under other conditions
/// (without `force`), have nothing in common, or for what [`super::render`] refuses.
pub fn explain(steps: &[&Summary], contrast: &Contrast) -> Result<String> {
    let options = Options { metric: Metric::Qps, latest: contrast.latest, ..Options::default() };
    let all = pivot::tables(steps, &options)?;
    known(&all, "the base", &contrast.base)?;
    known(&all, "the new label", &contrast.new)?;
    let labels = [contrast.base.as_str(), contrast.new.as_str()];
    let mut pages = Vec::new();
    let mut open = false;
    for table in all.iter().map(|table| noted(table.of_labels(&labels))) {
        if !contrast.force {
            comparable(&table)?;
        }
        let [base, new] = table.lines.as_slice() else { continue };
        for (column, cells) in table.columns.iter().zip(base.cells.iter().zip(&new.cells)) {
            let (Some(one), Some(other)) = cells else { continue };
            open |= column.rate.is_some();
            if column.rate.is_none()
                && let Some(split) = split(*column, one, other)?
            {
                pages.push(page(&table, &split, one, other));
            }
        }
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
    page::render(&pages, "explain", contrast.format)
}

fn split(column: Column, base: &Cell, new: &Cell) -> Result<Option<Split>> {
    let both = |name: &str| -> Result<Option<(f64, f64)>> {
        let Some(figure) = named(name) else { return Ok(None) };
        let metric = Metric::Figure(figure);
        Ok(median(base, &metric)?.zip(median(new, &metric)?))
    };
    let rates = median(base, &Metric::Tps)?.zip(median(new, &Metric::Tps)?);
    let Some((one, other)) = rates.filter(|(one, other)| *one > 0.0 && *other > 0.0) else {
        return Ok(None);
    };
    let cycle = |tps: f64| f64::from(column.clients) * US / tps;
    let cycle_us = (cycle(one), cycle(other));
    let mut parts = Vec::new();
    for (name, metric) in PARTS {
        parts.push(Part { name, us: both(metric)? });
    }
    let sum = |of: fn(&(f64, f64)) -> f64| -> f64 {
        parts.iter().filter_map(|part| part.us.as_ref()).map(of).sum()
    };
    let rest = (cycle_us.0 - sum(|us| us.0), cycle_us.1 - sum(|us| us.1));
    parts.push(Part { name: "rest", us: Some(rest) });
    let qps = (base.spread.median, new.spread.median);
    Ok(Some(Split { column, qps, cycle_us, parts, reads: both("innodb-reads")? }))
}

/// The median over a cell's runs.
fn median(cell: &Cell, metric: &Metric) -> Result<Option<f64>> {
    let values: Result<Vec<Option<f64>>> = cell.steps.iter().map(|s| metric.value(s)).collect();
    Ok(stats::median(&values?.into_iter().flatten().collect::<Vec<f64>>()))
}

impl Split {
    /// What a change of the time of an op is of the rate, percent.
    fn percent(&self, change_us: f64) -> f64 {
        -100.0 * change_us / self.cycle_us.1
    }
}

fn page(table: &Table, split: &Split, base: &Cell, new: &Cell) -> Page {
    let label =
        |at: usize| table.lines.get(at).map_or_else(String::new, |line| text::label(line.label));
    let us = |value: f64| number(value, 1);
    let row = |name: &str, values: Option<(f64, f64)>| match values {
        None => vec![
            name.to_owned(),
            "-".to_owned(),
            "-".to_owned(),
            "unknown".to_owned(),
            "-".to_owned(),
        ],
        Some((one, other)) => vec![
            name.to_owned(),
            us(one),
            us(other),
            signed(other - one, 1),
            signed(split.percent(other - one), 1),
        ],
    };
    let mut rows: Vec<Vec<String>> =
        split.parts.iter().map(|part| row(part.name, part.us)).collect();
    rows.push(row("time of an op", Some(split.cycle_us)));
    let head = ["microseconds an op", &label(0), &label(1), "change", "% of QPS"];
    let differing = differing(base, new);
    let mut lines = remarks(split);
    lines.extend(named_settings(&differing));
    lines.extend(below(table));
    let (one, other) = split.qps;
    Page {
        title: vec![format!(
            "{} at {}: QPS {} with {}, {} with {}: {} %",
            escape::line(table.workload),
            at_clients(&split.column),
            number(one, 0),
            label(0),
            number(other, 0),
            label(1),
            signed(100.0 * (other / one - 1.0), 1),
        )],
        body: Body::Grid(Grid {
            head: head.map(str::to_owned).to_vec(),
            texts: vec![0],
            rows,
            ..Grid::default()
        }),
        below: lines,
        records: records(table, split, &differing),
    }
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
    lines.push(
        "rest: what an op waits for besides, locks, commits, the network, and CPUs that others use"
            .to_owned(),
    );
    lines
}

/// The settings of the two that differ, those that both have first.
fn differing(base: &Cell, new: &Cell) -> Vec<Difference> {
    let (Some(one), Some(other)) = (base.steps.first(), new.steps.first()) else {
        return Vec::new();
    };
    let mut all = settings::plan_differences(one, other);
    all.extend(settings::server_differences(one, other));
    all
}

/// One line of what differs.
fn named_settings(differing: &[Difference]) -> Vec<String> {
    let one_sided = |d: &&Difference| d.first == settings::ABSENT || d.second == settings::ABSENT;
    let both: Vec<&Difference> = differing.iter().filter(|d| !one_sided(d)).collect();
    let alone = differing.len() - both.len();
    if differing.is_empty() {
        return vec!["no setting differs".to_owned()];
    }
    let shown = both.iter().take(NAMED_MAX).map(|d| {
        let clip = |text: &str| clip(text, VALUE_MAX);
        format!("{} {} and {}", clip(&d.name), clip(&d.first), clip(&d.second))
    });
    let mut said: Vec<String> = shown.collect();
    if both.len() > NAMED_MAX {
        said.push(format!("{} more", both.len() - NAMED_MAX));
    }
    if alone > 0 {
        said.push(format!("{alone} that only one of them has"));
    }
    vec![format!("settings that differ: {}", said.join("; "))]
}

/// A row for each part, and the whole.
fn records(table: &Table, split: &Split, differing: &[Difference]) -> Vec<page::Record> {
    let label = |at: usize| table.lines.get(at).map_or("", |line| line.label).to_owned();
    let pairs: Vec<(String, String)> = differing
        .iter()
        .map(|d| (d.name.clone(), format!("{} -> {}", d.first, d.second)))
        .collect();
    let parts = split.parts.iter().map(|part| (part.name, part.us));
    let whole = std::iter::once(("time of an op", Some(split.cycle_us)));
    let of_part = |(name, us): (&str, Option<(f64, f64)>)| {
        let mut record = record(table, &split.column);
        // The metric is that of the whole table.
        record.retain(|(name, _)| !matches!(*name, "metric" | "unit"));
        let change = us.map(|(one, other)| other - one);
        record.extend([
            ("base", Field::Text(label(0))),
            ("new", Field::Text(label(1))),
            ("base_qps", Field::Number(Some(split.qps.0))),
            ("new_qps", Field::Number(Some(split.qps.1))),
            ("part", Field::Text(name.to_owned())),
            ("base_us", Field::Number(us.map(|us| us.0))),
            ("new_us", Field::Number(us.map(|us| us.1))),
            ("change_us", Field::Number(change)),
            ("qps_percent", Field::Number(change.map(|change| split.percent(change)))),
            ("differing", Field::Pairs(pairs.clone())),
        ]);
        record
    };
    parts.chain(whole).map(of_part).collect()
}
