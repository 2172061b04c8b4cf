//! Gates: whether what was measured is as it must be. A cell is judged by all of its repeats; what
//! cannot be known is neither held nor failed.

use std::fmt;
use std::ops::RangeBounds;

use super::layout::{at_clients, below, label, marked, noted, place};
use super::metric::{Metric, Time, errors, with_longer};
use super::number::number;
use super::page::{self, Page, Sheet, Value, both, filed, shown};
use super::table::{self, Cell, Column, Line, Table, missing};
use super::{Options, escape, write};
use crate::error::Result;
use crate::stats::{self, enough};
use crate::summary::Summary;
use crate::terms::{Gate, Percentile, Property, Quantity};

/// A number, or why it is not known.
pub(crate) type Known = std::result::Result<f64, String>;

/// How a gate ended.
#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    Holds(f64),
    Fails(f64),
    /// The number is not known, but it is above this one.
    FailsAbove(f64),
    /// With the reason.
    Undecided(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Holds(_) => f.write_str("holds"),
            Verdict::Fails(_) | Verdict::FailsAbove(_) => f.write_str("FAILS"),
            Verdict::Undecided(why) => write!(f, "undecided: {why}"),
        }
    }
}

/// All gates of some steps.
#[derive(Debug, Clone, Default)]
pub struct Gates {
    /// The table; ends with a line end.
    pub text: String,
    /// How many hold.
    pub held: usize,
    /// Those that failed, a line each.
    pub failed: Vec<String>,
    /// Those that are not decided, a line each.
    pub undecided: Vec<String>,
    /// Whether one of them is a percentile of too few answers.
    pub scarce: bool,
}

/// The runs behind a cell.
struct Runs<'t, 's> {
    /// None where no step completed.
    cell: Option<&'t Cell<'s>>,
    /// Those that did not complete.
    left_out: Vec<&'s Summary>,
}

impl<'t, 's> Runs<'t, 's> {
    fn of(line: &'t Line<'s>, at: usize, column: &Column) -> Option<Runs<'t, 's>> {
        let cell = line.cells.get(at).and_then(Option::as_ref);
        let here = line.left_out.iter().filter(|step| step.cell() == *column);
        let runs = Runs { cell, left_out: here.copied().collect() };
        (cell.is_some() || !runs.left_out.is_empty()).then_some(runs)
    }

    fn completed(&self) -> &[&'s Summary] {
        self.cell.map_or(&[], |cell| cell.steps.as_slice())
    }

    /// Those that count for a quantity.
    fn counted(&self, quantity: Quantity) -> Vec<&'s Summary> {
        let mut steps = self.completed().to_vec();
        if is_of_errors(quantity) {
            steps.extend(&self.left_out);
        }
        steps
    }

    /// Why nothing holds for all runs.
    fn missing(&self) -> Option<String> {
        match missing(self.completed(), &self.left_out) {
            _ if self.completed().is_empty() => Some("no step completed".to_owned()),
            (0, _) => None,
            (missing, all) => Some(format!("{missing} of {all} runs did not complete")),
        }
    }
}

/// Judges every cell of the steps by every gate.
///
/// # Errors
///
/// Those of [`super::render`] for steps that do not belong together, and a damaged histogram.
pub fn gates(steps: &[&Summary], wanted: &[Gate], options: &Options) -> Result<Gates> {
    let mut gates = Gates::default();
    let mut pages = Vec::new();
    for table in table::tables(steps, options)? {
        let table = noted(table);
        pages.push(page(&table, wanted, &mut gates)?);
    }
    gates.text = write(&pages, "gates", options.format)?;
    Ok(gates)
}

/// A gate and how it ended at a cell.
struct Row<'t> {
    at: usize,
    column: Column,
    gate: &'t Gate,
    runs: usize,
    verdict: Verdict,
}

fn page(table: &Table, wanted: &[Gate], gates: &mut Gates) -> Result<Page> {
    let mut rows = Vec::new();
    for (line_at, line) in table.lines.iter().enumerate() {
        for (at, column) in table.columns.iter().enumerate() {
            let Some(of_cell) = Runs::of(line, at, column) else { continue };
            for gate in wanted {
                let verdict = judge(gate, &of_cell)?;
                let counted = of_cell.counted(gate.quantity);
                let runs = counted.len();
                let row = Row { at: line_at, column: *column, gate, runs, verdict };
                gates.count(table, &row, &counted);
                rows.push(row);
            }
        }
    }
    let mut lines = vec![what(table)];
    lines.extend(below(table));
    let title = format!("{}: gates", escape::line(table.workload));
    Ok(Page::of(title, Sheet::of(columns(table), rows), lines))
}

fn columns<'a>(table: &'a Table) -> Vec<page::Column<'a, Row<'a>>> {
    let mut columns = vec![shown("clients", |row: &Row| row.column.to_string())];
    columns.extend(place(table, |row: &Row| row.column));
    columns.extend([
        filed("label", |row: &Row| table.lines[row.at].label),
        both("gate", "gate", |row: &Row| row.gate.text.as_str()).left(),
        shown("it is", |row: &Row| verdict_shown(row.gate, &row.verdict)),
        filed("value", |row: &Row| match row.verdict {
            Verdict::Holds(value) | Verdict::Fails(value) | Verdict::FailsAbove(value) => {
                Some(value)
            }
            Verdict::Undecided(_) => None,
        }),
        filed("unit", |row: &Row| unit(row.gate.quantity)),
        both("runs", "runs", |row: &Row| row.runs),
        both("verdict", "verdict", |row: &Row| {
            let word = match row.verdict {
                Verdict::Holds(_) => "holds",
                Verdict::Fails(_) | Verdict::FailsAbove(_) => "fails",
                Verdict::Undecided(_) => "undecided",
            };
            Value::Label(word.to_owned(), row.verdict.to_string())
        })
        .left(),
        shown("label", |row: &Row| marked(table, row.at)).left(),
        filed("reason", |row: &Row| match &row.verdict {
            Verdict::Holds(_) | Verdict::Fails(_) => String::new(),
            Verdict::FailsAbove(_) => "the value is a lower bound".to_owned(),
            Verdict::Undecided(why) => why.clone(),
        }),
    ]);
    columns
}

impl Gates {
    fn count(&mut self, table: &Table, row: &Row, counted: &[&Summary]) {
        let (gate, verdict) = (row.gate, &row.verdict);
        let found = if let Verdict::Undecided(_) = verdict {
            format!("is {verdict}")
        } else {
            let what = in_words(gate.quantity, counted);
            format!(
                "{verdict}, {what} is {}{}",
                verdict_shown(gate, verdict),
                repeats(gate.quantity, row.runs)
            )
        };
        let told = format!(
            "{} at {}, {}: {} {found}",
            escape::line(table.workload),
            at_clients(&row.column),
            label(table.lines[row.at].label),
            gate.text,
        );
        match verdict {
            Verdict::Holds(_) => self.held += 1,
            Verdict::Fails(_) | Verdict::FailsAbove(_) => self.failed.push(told),
            Verdict::Undecided(_) => {
                self.scarce |= counted.iter().any(|step| scarce(gate.quantity, step).is_some());
                self.undecided.push(told);
            }
        }
    }
}

/// What the numbers are.
fn what(table: &Table) -> String {
    let open = table.columns.iter().filter(|column| column.rate.is_some()).count();
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

fn judge(gate: &Gate, runs: &Runs) -> Result<Verdict> {
    let steps = runs.counted(gate.quantity);
    let verdict = match number_over(gate.quantity, &steps)? {
        Err(why) => match broken_below(gate, &steps)? {
            Some(value) => Verdict::FailsAbove(value),
            None => Verdict::Undecided(why),
        },
        Ok(value) if gate.range.contains(&value) => Verdict::Holds(value),
        Ok(value) => Verdict::Fails(value),
    };
    // Errors that are too many already become no fewer by what is missing.
    let certain = match verdict {
        Verdict::Undecided(_) => true,
        Verdict::Fails(_) => is_of_errors(gate.quantity),
        Verdict::Holds(_) | Verdict::FailsAbove(_) => false,
    };
    Ok(match runs.missing() {
        Some(why) if !certain => Verdict::Undecided(why),
        _ => verdict,
    })
}

/// Whether one step holds it as a service level, and its number; nothing where that is not
/// known. A failed op is slower than any level.
///
/// # Errors
///
/// A damaged histogram.
pub fn holds(gate: &Gate, step: &Summary) -> Result<(Option<bool>, Option<f64>)> {
    let value = match with_failed(gate, step)? {
        None => number_of(gate.quantity, step)?.ok(),
        value => value,
    };
    if value.is_none()
        && let Some(value) = broken_below(gate, &[step])?
    {
        return Ok((Some(false), Some(value)));
    }
    Ok((value.map(|value| gate.range.contains(&value)), value))
}

/// Whether some answer of a step is within it: else more of them would not make it hold.
pub(crate) fn may_hold(gate: &Gate, step: &Summary) -> bool {
    let within = |us: f64| gate.range.contains(&us);
    match gate.quantity {
        Quantity::Latency(_) => step.latency.own().min_us.is_some_and(within),
        _ => true,
    }
}

/// The latency of a level from above over all ops, those that were not done being the slowest:
/// infinite where it is one of them; nothing where there are none, or the latency is no
/// percentile.
fn with_failed(gate: &Gate, step: &Summary) -> Result<Option<f64>> {
    let Quantity::Latency(property) = gate.quantity else { return Ok(None) };
    let (apart, given_up) = (failed(step), given_up(step));
    let none = apart == 0 && given_up == 0;
    if none || step.measured_s <= 0.0 || !gate.range.contains(&0.0) {
        return Ok(None);
    }
    match property {
        Property::Percentile(percentile) => with_longer(percentile, apart, given_up, step),
        Property::Max => Ok(Some(f64::INFINITY)),
        _ => Ok(None),
    }
}

/// Where a percentile has too few values beyond it, the highest that has enough: if that is
/// too high already, so is this one.
fn broken_below(gate: &Gate, steps: &[&Summary]) -> Result<Option<f64>> {
    let Quantity::Latency(Property::Percentile(percentile)) = gate.quantity else {
        return Ok(None);
    };
    if !gate.range.contains(&0.0) {
        return Ok(None);
    }
    for lower in percentile.lower() {
        let quantity = Quantity::Latency(Property::Percentile(lower));
        if let Ok(value) = number_over(quantity, steps)? {
            return Ok((!gate.range.contains(&value)).then_some(value));
        }
    }
    Ok(None)
}

/// The number with its unit.
fn verdict_shown(gate: &Gate, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Holds(value) | Verdict::Fails(value) => quantity_shown(gate.quantity, *value),
        Verdict::FailsAbove(value) => format!("above {}", quantity_shown(gate.quantity, *value)),
        Verdict::Undecided(_) => "-".to_owned(),
    }
}

/// What a number of several runs is of them.
fn repeats(quantity: Quantity, runs: usize) -> String {
    match (quantity, runs) {
        (_, 0 | 1) => String::new(),
        (Quantity::Qps | Quantity::Tps | Quantity::Latency(_), _) => {
            format!(" (median of {runs} runs)")
        }
        _ => format!(" (of {runs} runs together)"),
    }
}

fn is_of_errors(quantity: Quantity) -> bool {
    matches!(quantity, Quantity::Errors | Quantity::ErrorShare)
}

/// The percentile that a step has too few answers for, and how many it has.
fn scarce(quantity: Quantity, step: &Summary) -> Option<(Percentile, u64)> {
    let Quantity::Latency(property) = quantity else { return None };
    Metric::Time(Time::Own, property).scarce(step)
}

/// The number of one step.
fn number_of(quantity: Quantity, step: &Summary) -> Result<Known> {
    if step.measured_s <= 0.0 {
        return Ok(Err("nothing was measured".to_owned()));
    }
    if let Some((percentile, count)) = scarce(quantity, step) {
        let needs = enough(percentile.0);
        return Ok(Err(format!("{percentile} needs {needs} answers, and there are {count}")));
    }
    let value = match quantity {
        Quantity::Qps => Metric::Qps.value(step)?,
        Quantity::Tps => Metric::Tps.value(step)?,
        Quantity::Latency(property) => Metric::Time(Time::Own, property).value(step)?,
        Quantity::Errors => known_errors(&[step]),
        Quantity::ErrorShare => share(&[step]),
    };
    Ok(value.ok_or_else(|| "no op was answered".to_owned()))
}

/// The number of a cell's steps.
fn number_over(quantity: Quantity, steps: &[&Summary]) -> Result<Known> {
    let value = match quantity {
        Quantity::Qps | Quantity::Tps | Quantity::Latency(_) => {
            let mut values = Vec::new();
            for step in steps {
                match number_of(quantity, step)? {
                    Ok(value) => values.push(value),
                    Err(why) => return Ok(Err(why)),
                }
            }
            stats::median(&values).ok_or_else(|| "no step completed".to_owned())
        }
        Quantity::Errors => known_errors(steps).ok_or_else(|| "no op was answered".to_owned()),
        Quantity::ErrorShare => share(steps).ok_or_else(|| "no op was answered".to_owned()),
    };
    Ok(value)
}

/// What the number of some steps is: of a latency, which time; of errors, which phases.
fn in_words(quantity: Quantity, steps: &[&Summary]) -> &'static str {
    let any = |of: fn(&Summary) -> bool| steps.iter().any(|step| of(step));
    match quantity {
        Quantity::Qps | Quantity::Tps => "it",
        Quantity::Latency(_) if any(|step| step.latency.response.is_some()) => "the response time",
        Quantity::Latency(_) => "the service time",
        Quantity::Errors => "the number of all phases",
        Quantity::ErrorShare
            if any(|s| {
                s.latency.abandoned.is_none() && s.totals.in_doubt.max(s.totals.abandoned) > 0
            }) =>
        {
            "the failed share of the window's ops, with what was in doubt or given up in any \
             phase (an older version wrote the summaries),"
        }
        Quantity::ErrorShare => "the failed share of the window's ops",
    }
}

/// A number with its unit, for people.
pub(crate) fn quantity_shown(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Qps | Quantity::Tps => format!("{}/s", number(value, usize::from(value < 100.0))),
        Quantity::Latency(_) => format!("{} ms", number(value / 1e3, 3)),
        Quantity::Errors => number(value, 0),
        Quantity::ErrorShare => format!("{} %", number(value * 100.0, 3)),
    }
}

fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Qps => Metric::Qps.unit(),
        Quantity::Tps => Metric::Tps.unit(),
        Quantity::Latency(_) => "us",
        Quantity::Errors => Metric::Errors.unit(),
        Quantity::ErrorShare => "share",
    }
}

/// Ops of a step's window that were not done, as a share of all; nothing without any.
pub fn failed_share(step: &Summary) -> Option<f64> {
    share(&[step])
}

/// Bad ops of the windows as a share of all; nothing without any.
pub(super) fn share(steps: &[&Summary]) -> Option<f64> {
    let count = |of: fn(&Summary) -> u64| steps.iter().map(|step| of(step) as f64).sum::<f64>();
    // What was given up is among the times with its age.
    let all = count(failed) + count(|step| step.latency.own().count);
    let bad = count(failed) + count(given_up);
    (all > 0.0).then(|| (bad / all).min(1.0))
}

/// Errors of all phases; nothing where there was nothing to fail.
fn known_errors(steps: &[&Summary]) -> Option<f64> {
    let idle = |step: &&Summary| failed_share(step).is_none() && step.totals.ops == 0;
    let all: f64 = steps.iter().map(|step| errors(step) as f64).sum();
    (all > 0.0 || !steps.iter().all(idle)).then_some(all)
}

/// Ops of the window that failed or are in doubt, which are not among the times. Older summaries
/// know all phases' doubts only.
fn failed(step: &Summary) -> u64 {
    let in_doubt = step.latency.in_doubt.unwrap_or(step.totals.in_doubt);
    step.latency.failed.count.saturating_add(in_doubt)
}

/// Ops of the window that were given up, and arrivals that were never issued: both are among the
/// times. Older summaries know those of all phases only.
fn given_up(step: &Summary) -> u64 {
    let issued = step.latency.abandoned;
    issued.map_or(step.totals.abandoned, |issued| issued.saturating_add(step.latency.unissued()))
}
