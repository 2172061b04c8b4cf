//! Gates: whether what was measured is as it must be. A cell is judged by all of its repeats; what
//! cannot be known is neither held nor failed. And the path of a search for the highest rate that holds.

use std::ops::RangeBounds;

use super::metric::{Metric, Time, errors, with_longer};
use super::notes::{as_one, at_clients, footing, label, mark, marked, noted, signs};
use super::page::{Page, Rows, Sheet, Value, number};
use super::table::{Column, Table, among, missing, tables};
use super::{Format, Options, escape, write};
use crate::error::Result;
use crate::stats::{self, enough};
use crate::summary::{Summary, VerdictKind, Warning};
use crate::terms::{self, Gate, Percentile, Property, Quantity};

const NO_OP: &str = "no op was answered";

#[derive(Debug, Clone, Default)]
pub struct Gates {
    pub text: String,
    pub held: usize,
    pub failed: Vec<String>,
    pub undecided: Vec<String>,
    /// One of them is a percentile of too few answers.
    pub scarce: bool,
}

struct Row<'t, 's> {
    at: usize,
    column: Column,
    gate: &'t Gate,
    /// The runs that count.
    runs: Vec<&'s Summary>,
    verdict: Verdict,
}

struct Verdict {
    /// None where it is not known.
    held: Option<bool>,
    value: Option<f64>,
    /// The reason, where it is not known; or that the value is only a bound.
    why: String,
}

/// Judges every cell of the steps by every gate.
pub fn gates(steps: &[&Summary], wanted: &[Gate], options: &Options) -> Result<Gates> {
    let mut gates = Gates::default();
    let mut pages = Vec::new();
    for table in tables(steps, options)? {
        let table = noted(table);
        let rows = rows(&table, wanted)?;
        for row in &rows {
            gates.count(&table, row);
        }
        let lines = [vec![what(&table)], footing(&table)].concat();
        let title = format!("{}: gates", escape::line(table.workload));
        pages.push(Page::of(title, sheet(&table, rows), lines));
    }
    gates.text = write(&pages, "gates", options.format, None);
    Ok(gates)
}

fn rows<'t, 's>(table: &Table<'s>, wanted: &'t [Gate]) -> Result<Vec<Row<'t, 's>>> {
    let mut rows = Vec::new();
    for (at, line) in table.lines.iter().enumerate() {
        for (column, cell) in table.columns.iter().zip(&line.cells) {
            let completed: &[&Summary] = cell.as_ref().map_or(&[], |cell| &cell.steps);
            let left_out = among(column, &line.left_out);
            let missing = match missing(completed, &left_out) {
                _ if completed.is_empty() => Some("no step completed".to_owned()),
                (0, _) => None,
                (missing, all) => Some(format!("{missing} of {all} runs did not complete")),
            };
            for gate in wanted.iter().filter(|_| cell.is_some() || !left_out.is_empty()) {
                let mut runs = completed.to_vec();
                if is_of_errors(gate.quantity) {
                    runs.extend(&left_out);
                }
                let verdict = judge(gate, &runs, missing.as_deref())?;
                rows.push(Row { at, column: *column, gate, runs, verdict });
            }
        }
    }
    Ok(rows)
}

fn judge(gate: &Gate, runs: &[&Summary], missing: Option<&str>) -> Result<Verdict> {
    let verdict = match over(gate.quantity, runs)? {
        Ok(value) => {
            let held = gate.range.contains(&value);
            Verdict { held: Some(held), value: Some(value), why: String::new() }
        }
        Err(why) => match broken_below(gate, runs)? {
            Some(value) => {
                let why = "the value is a lower bound".to_owned();
                Verdict { held: Some(false), value: Some(value), why }
            }
            None => Verdict { held: None, value: None, why },
        },
    };
    // Errors that are too many already become no fewer by what is missing.
    let certain = match verdict.held {
        None => true,
        held => held == Some(false) && is_of_errors(gate.quantity),
    };
    Ok(match missing.filter(|_| !certain) {
        Some(why) => Verdict { held: None, value: None, why: why.to_owned() },
        None => verdict,
    })
}

impl Row<'_, '_> {
    fn ended(&self) -> String {
        match self.verdict.held {
            Some(true) => "holds".to_owned(),
            Some(false) => "FAILS".to_owned(),
            None => format!("undecided: {}", self.verdict.why),
        }
    }

    fn shown(&self) -> Option<String> {
        let above = if self.verdict.why.is_empty() { "" } else { "above " };
        Some(format!("{above}{}", quantity_shown(self.gate.quantity, self.verdict.value?)))
    }
}

fn sheet(table: &Table, rows: Vec<Row>) -> Sheet {
    Rows::new(rows)
        .shown("clients", |row| row.column.to_string())
        .place(table, |row| row.column)
        .filed("label", |row| table.lines[row.at].label)
        .both("gate", "gate", |row| row.gate.text.as_str())
        .left()
        .shown("it is", Row::shown)
        .filed("value", |row| row.verdict.value)
        .filed("unit", |row| match row.gate.quantity {
            Quantity::Latency(_) => "us",
            Quantity::Qps => Metric::QPS.unit(),
            Quantity::Tps => Metric::TPS.unit(),
            Quantity::Errors => Metric::ERRORS.unit(),
            Quantity::ErrorShare => "share",
        })
        .both("runs", "runs", |row| row.runs.len())
        .both("verdict", "verdict", |row| {
            let word = match row.verdict.held {
                Some(true) => "holds",
                Some(false) => "fails",
                None => "undecided",
            };
            Value::Label(word.to_owned(), row.ended())
        })
        .left()
        .shown("label", |row| marked(table, row.at))
        .left()
        .filed("reason", |row| row.verdict.why.clone())
        .sheet()
}

impl Gates {
    fn count(&mut self, table: &Table, row: &Row) {
        let (quantity, ended, runs) = (row.gate.quantity, row.ended(), row.runs.len());
        let of = match metric(quantity) {
            _ if runs < 2 => String::new(),
            Some(_) => format!(" (median of {runs} runs)"),
            None => format!(" (of {runs} runs together)"),
        };
        let found = row.shown().map_or_else(
            || format!("is {ended}"),
            |value| format!("{ended}, {} is {value}{of}", in_words(quantity, &row.runs)),
        );
        let told = format!(
            "{} at {}, {}: {} {found}",
            escape::line(table.workload),
            at_clients(&row.column),
            label(table.lines[row.at].label),
            row.gate.text,
        );
        match row.verdict.held {
            Some(true) => self.held += 1,
            Some(false) => self.failed.push(told),
            None => {
                self.scarce |= row.runs.iter().any(|step| scarce(quantity, step).is_some());
                self.undecided.push(told);
            }
        }
    }
}

fn what(table: &Table) -> String {
    let open = table.columns.iter().filter(|column| column.is_open()).count();
    let latency = match open {
        0 => "service time, of closed loops",
        open if open == table.columns.len() => "response time, of open loops",
        _ => "response time in the open loops (with @), service time in the others",
    };
    format!(
        "medians over the runs, of errors their sum; latency is {latency}; errors are those of all \
         phases, their share is the window's"
    )
}

/// Tells whether one step holds it as a service level, and its number; nothing where that is not
/// known. A failed op is slower than any level.
pub fn holds(gate: &Gate, step: &Summary) -> Result<(Option<bool>, Option<f64>)> {
    let value = match with_failed(gate, step)? {
        None if step.measured_s > 0.0 => over(gate.quantity, &[step])?.ok(),
        value => value,
    };
    Ok(match value {
        Some(value) => (Some(gate.range.contains(&value)), Some(value)),
        None => match broken_below(gate, &[step])? {
            Some(value) => (Some(false), Some(value)),
            None => (None, None),
        },
    })
}

/// Tells whether some answer of a step is within it: else more of them would not make it hold.
pub(crate) fn may_hold(gate: &Gate, step: &Summary) -> bool {
    let within = |us: f64| gate.range.contains(&us);
    match gate.quantity {
        Quantity::Latency(_) => step.latency.own().min_us.is_some_and(within),
        _ => true,
    }
}

/// Returns the latency of a level from above over all ops, those that were not done being the
/// slowest: infinite where it is one of them; nothing where there are none, or the latency is no
/// percentile.
fn with_failed(gate: &Gate, step: &Summary) -> Result<Option<f64>> {
    let (apart, given_up) = (failed(step), given_up(step));
    let none = apart == 0 && given_up == 0;
    if none || step.measured_s <= 0.0 || !gate.range.contains(&0.0) {
        return Ok(None);
    }
    match gate.quantity {
        Quantity::Latency(Property::Percentile(p)) => with_longer(p, apart, given_up, step),
        Quantity::Latency(Property::Max) => Ok(Some(f64::INFINITY)),
        _ => Ok(None),
    }
}

/// Where a percentile has too few values beyond it, returns the highest that has enough: if that is
/// too high already, so is this one.
fn broken_below(gate: &Gate, steps: &[&Summary]) -> Result<Option<f64>> {
    let Quantity::Latency(Property::Percentile(percentile)) = gate.quantity else {
        return Ok(None);
    };
    for lower in percentile.lower().filter(|_| gate.range.contains(&0.0)) {
        if let Ok(value) = over(Quantity::Latency(Property::Percentile(lower)), steps)? {
            return Ok((!gate.range.contains(&value)).then_some(value));
        }
    }
    Ok(None)
}

fn metric(quantity: Quantity) -> Option<Metric> {
    match quantity {
        Quantity::Qps => Some(Metric::QPS),
        Quantity::Tps => Some(Metric::TPS),
        Quantity::Latency(property) => Some(Metric::Time(Time::Own, property)),
        Quantity::Errors | Quantity::ErrorShare => None,
    }
}

fn is_of_errors(quantity: Quantity) -> bool {
    metric(quantity).is_none()
}

fn scarce(quantity: Quantity, step: &Summary) -> Option<(Percentile, u64)> {
    metric(quantity)?.scarce(step)
}

fn over(quantity: Quantity, steps: &[&Summary]) -> Result<std::result::Result<f64, String>> {
    let Some(metric) = metric(quantity) else {
        let errors = quantity == Quantity::Errors;
        let value = if errors { known_errors(steps) } else { share(steps) };
        return Ok(value.ok_or_else(|| NO_OP.to_owned()));
    };
    let mut values = Vec::new();
    for step in steps {
        if step.measured_s <= 0.0 {
            return Ok(Err("nothing was measured".to_owned()));
        }
        if let Some((percentile, count)) = metric.scarce(step) {
            let needs = enough(percentile.0);
            return Ok(Err(format!("{percentile} needs {needs} answers, and there are {count}")));
        }
        let Some(value) = metric.value(step)? else { return Ok(Err(NO_OP.to_owned())) };
        values.push(value);
    }
    Ok(stats::median(&values).ok_or_else(|| "no step completed".to_owned()))
}

/// Says what the number of some steps is: of a latency, which time; of errors, which phases.
fn in_words(quantity: Quantity, steps: &[&Summary]) -> &'static str {
    let any = |of: fn(&Summary) -> bool| steps.iter().any(|step| of(step));
    let older = |step: &Summary| {
        let lost = step.totals.in_doubt.max(step.totals.abandoned);
        step.latency.abandoned.is_none() && lost > 0
    };
    match quantity {
        Quantity::Qps | Quantity::Tps => "it",
        Quantity::Latency(_) if any(|step| step.latency.response.is_some()) => "the response time",
        Quantity::Latency(_) => "the service time",
        Quantity::Errors => "the number of all phases",
        Quantity::ErrorShare if any(older) => {
            "the failed share of the window's ops, with what was in doubt or given up in any \
             phase (an older version wrote the summaries),"
        }
        Quantity::ErrorShare => "the failed share of the window's ops",
    }
}

pub(crate) fn quantity_shown(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Qps | Quantity::Tps => format!("{}/s", number(value, usize::from(value < 100.0))),
        Quantity::Latency(_) => format!("{} ms", number(value / 1e3, 3)),
        Quantity::Errors => number(value, 0),
        Quantity::ErrorShare => format!("{} %", number(value * 100.0, 3)),
    }
}

pub fn failed_share(step: &Summary) -> Option<f64> {
    share(&[step])
}

pub(super) fn share(steps: &[&Summary]) -> Option<f64> {
    let count = |of: fn(&Summary) -> u64| steps.iter().map(|step| of(step) as f64).sum::<f64>();
    // What was given up is among the times with its age.
    let all = count(failed) + count(|step| step.latency.own().count);
    let bad = count(failed) + count(given_up);
    (all > 0.0).then(|| (bad / all).min(1.0))
}

fn known_errors(steps: &[&Summary]) -> Option<f64> {
    let idle = |step: &&Summary| failed_share(step).is_none() && step.totals.ops == 0;
    let all: f64 = steps.iter().map(|step| errors(step) as f64).sum();
    (all > 0.0 || !steps.iter().all(idle)).then_some(all)
}

/// Counts the ops of the window that failed or are in doubt, which are not among the times. Older
/// summaries know all phases' doubts only.
fn failed(step: &Summary) -> u64 {
    let in_doubt = step.latency.in_doubt.unwrap_or(step.totals.in_doubt);
    step.latency.failed.count.saturating_add(in_doubt)
}

/// Counts the ops of the window that were given up, and arrivals that were never issued: both are
/// among the times. Older summaries know those of all phases only.
fn given_up(step: &Summary) -> u64 {
    let issued = step.latency.abandoned;
    issued.map_or(step.totals.abandoned, |issued| issued.saturating_add(step.latency.unissued()))
}

#[derive(Debug, Clone)]
pub struct Probe {
    pub clients: u32,
    /// Which of the searches, from 1.
    pub search: u32,
    pub rate: f64,
    /// Ops a second that were answered well.
    pub achieved: f64,
    pub numbers: Vec<Option<f64>>,
    /// All of them hold, and the rate was kept; none where that is not known.
    pub held: Option<bool>,
    /// Why it did not, besides the numbers.
    pub why: Option<String>,
    pub remarks: Vec<Warning>,
    pub verdict: Option<VerdictKind>,
}

#[derive(Debug, Clone)]
pub struct Search {
    pub clients: u32,
    /// The highest rate that holds; nothing where none does.
    pub rate: Option<f64>,
    pub remarks: Vec<String>,
}

/// Makes the table of the probes, with a line below for each number of clients. `first` is the first
/// step's summary.
pub fn path(first: &Summary, probes: &[Probe], found: &[Search], slo: &[Gate]) -> String {
    let notes = notes(probes);
    let mut rows = Rows::new(probes)
        .shown("clients", |probe| probe.clients)
        .shown("search", |probe| probe.search)
        .shown("rate", |probe| probe.rate.to_string())
        .shown("achieved", |probe| (probe.achieved, usize::from(probe.achieved < 100.0)));
    for (at, gate) in slo.iter().enumerate() {
        rows = rows.shown(gate.text.clone(), |probe| {
            probe.numbers[at].map(|value| match value {
                value if value.is_infinite() => "failed".to_owned(),
                value => quantity_shown(gate.quantity, value),
            })
        });
    }
    let sheet = rows
        .shown("held", |probe| {
            let held = match probe.held {
                Some(true) => "yes",
                Some(false) => "no",
                None => "?",
            };
            let why = probe.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            format!("{held}{why}{}", marks(&notes, &[probe]))
        })
        .left()
        .sheet();
    let level = slo.iter().map(|gate| gate.text.as_str()).collect::<Vec<&str>>().join(" and ");
    let mut below = below(found, probes, &level, &notes);
    let lines = notes.iter().enumerate();
    below.extend(lines.map(|(at, (_, said))| format!("{} {}", mark(at), as_one(said))));
    let title = format!(
        "{}: the highest rate that holds {level}; {}",
        escape::line(&first.workload.name),
        label(&first.label)
    );
    write(&[Page::of(title, sheet, below)], "path", Format::Text, None)
}

type Notes<'a> = Vec<(&'a str, Vec<String>)>;

fn notes(probes: &[Probe]) -> Notes<'_> {
    let mut notes: Notes = Vec::new();
    for remark in probes.iter().flat_map(|probe| &probe.remarks) {
        match notes.iter_mut().find(|(code, _)| *code == remark.code) {
            Some((_, messages)) => messages.push(remark.message.clone()),
            None => notes.push((&remark.code, vec![remark.message.clone()])),
        }
    }
    notes
}

fn marks(notes: &Notes, probes: &[&Probe]) -> String {
    let has = |code: &str| {
        probes.iter().flat_map(|probe| &probe.remarks).any(|remark| remark.code == code)
    };
    signs((0..notes.len()).filter(|at| has(notes[*at].0)))
}

/// Returns a line for each number of clients, in the order of the searches, with the signs of the
/// steps at the rates that were found.
fn below(found: &[Search], probes: &[Probe], level: &str, notes: &Notes) -> Vec<String> {
    let mut clients: Vec<u32> = Vec::new();
    for search in found {
        super::notes::push_new(&mut clients, search.clients);
    }
    let line = |clients: u32| {
        let here: Vec<&Search> = found.iter().filter(|s| s.clients == clients).collect();
        let rates: Vec<f64> = here.iter().filter_map(|search| search.rate).collect();
        let of = match (stats::spread(&rates), here.len()) {
            (None, _) => format!("no rate held {level}"),
            (Some(one), 1) => format!("{}/s", one.median),
            (Some(spread), n) => {
                let none = n - spread.n;
                format!(
                    "{}/s, the median of {n} searches ({} to {}{})",
                    number(spread.median, usize::from(spread.median < 100.0)),
                    spread.min,
                    spread.max,
                    if none > 0 { format!("; {none} found none") } else { String::new() }
                )
            }
        };
        let mut remarks: Vec<&String> = here.iter().flat_map(|search| &search.remarks).collect();
        remarks.dedup();
        let remarks: String = remarks.into_iter().flat_map(|remark| ["; ", remark]).collect();
        let behind = |probe: &&Probe| {
            let search = here.get(probe.search as usize - 1).filter(|_| probe.clients == clients);
            let rate = search.and_then(|search| search.rate);
            rate.is_some_and(|rate| rate.total_cmp(&probe.rate).is_eq())
        };
        let marks = marks(notes, &probes.iter().filter(behind).collect::<Vec<&Probe>>());
        format!("{}: {of}{remarks}{marks}", terms::clients(clients))
    };
    clients.into_iter().map(line).collect()
}
