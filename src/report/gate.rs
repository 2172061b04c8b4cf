//! Gates: whether what was measured is as it must be. A cell is judged by all of its repeats; what
//! cannot be known is neither held nor failed.

use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};

use super::columns::{Rows, Sheet};
use super::distinct::push_new;
use super::labels::{labels, require_label};
use super::metric::{
    Metric, Time, answers_needed, errors, failed, failed_share, given_up, with_longer,
};
use super::names::{cell_named, label};
use super::notes::{marked, noted};
use super::options::Options;
use super::page::Page;
use super::table::{WorkloadTable, among, missing};
use super::tables::tables;
use super::value::{PageValue, number};
use super::writers::write;
use super::{escape, summary_lines};
use crate::error::Result;
use crate::stats;
use crate::summary::Summary;
use crate::terms::{self, Cell, Format, Gate, Property, Quantity, units};

const NO_OP: &str = "no op was answered";
const NO_LOG_IN: &str = "no client logged in in the window";
/// Digits that a number may have beyond the usual ones.
const DIGITS_MAX: usize = 6;
const WHAT: &str = "medians over the runs, of errors their sum; latency is the response time of open loops \
                    (with a rate), the service time of others; errors are those of all phases, their share is \
                    the window's";

#[derive(Debug, Clone, Default)]
pub struct Gates {
    pub text: String,
    /// The gates as they were written, each once. A check is one of them in one cell.
    pub gates: BTreeSet<String>,
    pub held: Vec<String>,
    pub failed: Vec<String>,
    pub undecided: Vec<String>,
    /// One of them is a percentile of too few answers.
    pub scarce: bool,
}

struct GateLine<'t, 's> {
    at: usize,
    column: Cell,
    gate: &'t Gate,
    runs: Vec<&'s Summary>,
    /// It is of an open loop.
    is_open: bool,
    /// Some run has answers, and too few for it.
    is_scarce: bool,
    found: GateOutcome,
}

struct GateOutcome {
    held: Option<bool>,
    value: Option<f64>,
    /// The reason, where it is not known; or that the value is only a bound.
    why: String,
}

pub fn gates(steps: &[&Summary], wanted: &[Gate], options: &Options) -> Result<Gates> {
    let mut gates = Gates::default();
    let mut pages = Vec::new();
    let strict = Options { strict: options.strict || !options.latest, ..options.clone() };
    let tables: Vec<WorkloadTable> =
        tables(&steps.into(), &strict)?.into_iter().map(noted).collect();
    let labels = labels(&tables);
    options.order.iter().try_for_each(|label| require_label(&labels, "--order", label))?;
    let mut once: Vec<Gate> = Vec::new();
    for gate in wanted {
        push_new(&mut once, gate.clone());
    }
    for table in &tables {
        let rows = rows(table, &once)?;
        for row in &rows {
            gates.count(table, row);
        }
        let title = format!("{}: gates", escape::line(table.workload));
        let mut page = Page::new(title, sheet(table, rows, options.format), Vec::new());
        page.notes.push(WHAT.to_owned());
        pages.push(page.footed(table));
    }
    let lines = summary_lines::below(&tables, &options.notes, &options.source);
    gates.text = write(&pages, "gates", options.format, None, (&options.notes, &lines));
    Ok(gates)
}

fn rows<'t, 's>(table: &WorkloadTable<'s>, wanted: &'t [Gate]) -> Result<Vec<GateLine<'t, 's>>> {
    let mut rows = Vec::new();
    for (at, line) in table.lines.iter().enumerate() {
        // Those without a window, too, which fill no cell.
        let steps: Vec<&Summary> = line.steps().collect();
        for column in &table.columns {
            let completed = among(column, &steps);
            let left_out = among(column, &line.left_out);
            let (missing, all) = missing(&completed, &left_out);
            let lacking = match completed.len() {
                0 => "no step completed".to_owned(),
                _ => format!("{missing} of {all} runs did not complete"),
            };
            let any = !completed.is_empty() || !left_out.is_empty();
            for gate in wanted.iter().filter(|_| any) {
                let of_errors = metric(gate.quantity).is_none();
                let counted = if of_errors { &left_out[..] } else { &[] };
                let runs = [&completed[..], counted].concat();
                let (mut found, is_open, is_scarce) = judge_runs(gate, &runs)?;
                // Errors become no fewer by what is missing: too many are too many, and enough are enough.
                let (most, least) = ((Bound::Unbounded, gate.range.1), gate.range);
                let has_no_end = gate.quantity == Quantity::Errors && most.1 == Bound::Unbounded;
                let stays =
                    |value: f64| !most.contains(&value) || has_no_end && least.contains(&value);
                let is_sure = of_errors && found.value.is_some_and(stays);
                if missing > 0 && found.held.is_some() && !is_sure {
                    found = GateOutcome::compare(gate, Err(lacking.clone()));
                }
                let column = *column;
                rows.push(GateLine { at, column, gate, runs, is_open, is_scarce, found });
            }
        }
    }
    Ok(rows)
}

impl GateOutcome {
    fn compare(gate: &Gate, value: Result<f64, String>) -> GateOutcome {
        let known = value.as_ref().ok().copied();
        let held = known.map(|value| gate.range.contains(&value));
        GateOutcome { held, value: known, why: value.err().unwrap_or_default() }
    }

    fn is_bound(&self) -> bool {
        self.value.is_some() && !self.why.is_empty()
    }
}

/// Judges runs, or a group beside of each; says whether it is of an open loop, and has too few answers.
fn judge_runs(gate: &Gate, runs: &[&Summary]) -> Result<(GateOutcome, bool, bool)> {
    let groups: Vec<Summary>;
    let mut judged = runs.to_vec();
    if let Some(name) = gate.group {
        groups = runs.iter().filter_map(|run| run.of_group(name)).collect();
        if groups.len() < runs.len() {
            let none = format!("there is no group {name}");
            return Ok((GateOutcome::compare(gate, Err(none)), false, false));
        }
        judged = groups.iter().collect();
    }
    let scarce = |step: &&Summary| metric(gate.quantity)?.scarce(step);
    let is_scarce = judged.iter().filter_map(scarce).any(|(_, answers)| answers > 0);
    let is_open = judged.iter().any(|run| run.latency.response.is_some());
    Ok((judge(gate, &judged)?, is_open, is_scarce))
}

fn judge(gate: &Gate, runs: &[&Summary]) -> Result<GateOutcome> {
    let over =
        |quantity| median_or_sum(quantity, runs).map(|value| GateOutcome::compare(gate, value));
    let found = over(gate.quantity)?;
    let Quantity::Latency(Property::Percentile(p)) = gate.quantity else { return Ok(found) };
    // If a percentile has too few values beyond it, and one that has enough is too high already, so is this one.
    for lower in p.lower().filter(|_| found.held.is_none() && gate.range.contains(&0.0)) {
        let found = over(Quantity::Latency(Property::Percentile(lower)))?;
        if found.held == Some(false) {
            return Ok(GateOutcome { why: "the value is a lower bound".to_owned(), ..found });
        }
    }
    Ok(found)
}

fn sheet(table: &WorkloadTable, rows: Vec<GateLine>, format: Format) -> Sheet {
    // Markdown has no exit status to look at.
    let [yes, no, unknown] =
        if format == Format::Markdown { ["✓ ", "✗ ", "? "] } else { [""; 3] };
    Rows::new(rows)
        .shown("clients", |row| row.column.to_string())
        .place(table.workload, |row| row.column)
        .filed("label", |row| table.lines[row.at].label)
        .both("gate", "gate", |row| row.gate.text.as_str())
        .shown("it is", GateLine::value_in_words)
        .filed("value", |row| row.found.value)
        .filed("unit", |row| match row.gate.quantity {
            Quantity::ErrorShare => "share",
            quantity => metric(quantity).unwrap_or(Metric::ERRORS).figure().unit,
        })
        .both("runs", "runs", |row| row.runs.len())
        .both("verdict", "verdict", |row| match row.found.held {
            Some(true) => PageValue::from(("holds".to_owned(), format!("{yes}holds"))),
            Some(false) => ("fails".to_owned(), format!("{no}FAILS")).into(),
            None => {
                ("undecided".to_owned(), format!("{unknown}undecided: {}", row.found.why)).into()
            }
        })
        .text("label", |row| marked(table, row.at))
        .filed("reason", |row| row.found.why.clone())
        .filed("sentence", GateLine::verdict_sentence)
        .sheet()
}

impl GateLine<'_, '_> {
    fn value_in_words(&self) -> Option<String> {
        Some(found_in_words(self.gate, self.found.value?, self.found.is_bound()))
    }

    fn verdict_sentence(&self) -> String {
        let verdict = match self.found.held {
            Some(true) => "holds",
            Some(false) => "FAILS",
            None => return format!("is undecided: {}", self.found.why),
        };
        let (quantity, runs) = (self.gate.quantity, self.runs.len());
        let value = self.value_in_words().expect("what is decided has a value");
        let (value, pooled) = match metric(quantity) {
            Some(metric) => {
                let metric = metric.in_loop(self.is_open);
                (format!("{} is {value}", metric.name()), "median of")
            }
            None if quantity == Quantity::Errors => {
                let count = self.found.value.map_or(0, |count| count as u64);
                (format!("{} of all phases", terms::counted(count, "error")), "together in")
            }
            None => (format!("{} is {value}", share_in_words(&self.runs)), "together in"),
        };
        let pooled = if runs > 1 { format!(" ({pooled} {runs} runs)") } else { String::new() };
        format!("{verdict}, {value}{pooled}")
    }
}

impl Gates {
    fn count(&mut self, table: &WorkloadTable, row: &GateLine) {
        let sentences = match row.found.held {
            Some(true) => &mut self.held,
            Some(false) => &mut self.failed,
            None => &mut self.undecided,
        };
        self.gates.insert(row.gate.text.clone());
        let (cell, label) =
            (cell_named(table.workload, &row.column), label(table.lines[row.at].label));
        sentences.push(format!("{cell}, {label}: {} {}", row.gate.text, row.verdict_sentence()));
        self.scarce |= row.found.held.is_none() && row.is_scarce;
    }
}

/// Returns whether a step holds it, and its number; None where that is not known. A failed op is slower than any level.
/// The last is true where the number is only a lower bound.
pub fn holds(gate: &Gate, step: &Summary) -> Result<(Option<bool>, Option<f64>, bool)> {
    if step.measured_s <= 0.0 {
        return Ok((None, None, false));
    }
    let found = match with_failed(gate, step)? {
        Some(value) => GateOutcome::compare(gate, Ok(value)),
        None => judge(gate, &[step])?,
    };
    let is_bound = found.is_bound();
    Ok((found.held, found.value, is_bound))
}

/// Returns true if some answer of a step is within it: else more of them would not make it hold.
pub(crate) fn may_hold(gate: &Gate, step: &Summary) -> bool {
    let within = |us: f64| gate.range.contains(&us);
    match gate.quantity {
        Quantity::Latency(_) => step.latency.own().min_us.is_some_and(within),
        _ => true,
    }
}

/// Ops that were not done are the slowest: infinite where it is one of them; none where it is no percentile.
fn with_failed(gate: &Gate, step: &Summary) -> Result<Option<f64>> {
    let (apart, given_up) = (failed(step), given_up(step));
    match gate.quantity {
        _ if (apart == 0 && given_up == 0) || !gate.range.contains(&0.0) => Ok(None),
        Quantity::Latency(Property::Percentile(p)) => with_longer(p, apart, given_up, step),
        Quantity::Latency(Property::Max) => Ok(Some(f64::INFINITY)),
        _ => Ok(None),
    }
}

fn metric(quantity: Quantity) -> Option<Metric> {
    match quantity {
        Quantity::Qps => Some(Metric::QPS),
        Quantity::Tps => Some(Metric::TPS),
        Quantity::Latency(property) => Some(Metric::Time(Time::Own, property)),
        Quantity::Connect(property) => Some(Metric::Time(Time::Connect, property)),
        Quantity::Errors | Quantity::ErrorShare => None,
    }
}

fn median_or_sum(quantity: Quantity, steps: &[&Summary]) -> Result<Result<f64, String>> {
    let Some(metric) = metric(quantity) else {
        let errors = quantity == Quantity::Errors;
        let value = if errors { known_errors(steps) } else { failed_share(steps) };
        return Ok(value.ok_or_else(|| NO_OP.to_owned()));
    };
    let mut values = Vec::new();
    for step in steps {
        let Some(value) = metric.value(*step)? else {
            return Ok(Err(match metric.scarce(step) {
                _ if step.measured_s <= 0.0 => "nothing was measured".to_owned(),
                Some((property, count)) if count > 0 => {
                    let needs = answers_needed(property);
                    format!("{property} needs {needs} answers, and there are {count}")
                }
                _ if matches!(quantity, Quantity::Connect(_)) => NO_LOG_IN.to_owned(),
                _ => NO_OP.to_owned(),
            }));
        };
        values.push(value);
    }
    Ok(stats::median(&values).ok_or_else(|| "no step completed".to_owned()))
}

pub(crate) fn quantity_in_words(quantity: Quantity, value: f64) -> String {
    round_in_words(quantity, value, 0).1
}

pub(crate) fn found_in_words(gate: &Gate, value: f64, is_bound: bool) -> String {
    let above = if is_bound { "above " } else { "" };
    format!("{above}{}", judged_in_words(gate, value))
}

/// Words a number that a gate is held against: with more digits where the rounded one is on the other side.
fn judged_in_words(gate: &Gate, value: f64) -> String {
    let held = gate.range.contains(&value);
    // Microseconds of milliseconds may differ from it in the last bit.
    let is_it = |shown: f64| (shown - value).abs() <= 4.0 * f64::EPSILON * value.abs();
    let mut all = (0..=DIGITS_MAX).map(|digits| round_in_words(gate.quantity, value, digits));
    let alike = all.find(|(shown, _)| is_it(*shown) || gate.range.contains(shown) == held);
    alike.map_or_else(|| quantity_in_words(gate.quantity, value), |(_, text)| text)
}

/// Returns a number as it is shown with so many digits more than usual, and its words.
fn round_in_words(quantity: Quantity, value: f64, digits: usize) -> (f64, String) {
    let (times, by, decimals, unit) = match quantity {
        Quantity::Qps | Quantity::Tps => (1.0, 1.0, units::rate_decimals([value]), "/s"),
        Quantity::Latency(_) | Quantity::Connect(_) => (1.0, 1e3, 3, " ms"),
        Quantity::Errors => (1.0, 1.0, 0, ""),
        Quantity::ErrorShare => (100.0, 1.0, 3, " %"),
    };
    let scaled = value * times / by;
    let text = number(scaled, decimals + digits);
    (text.parse::<f64>().unwrap_or(scaled) * by / times, text + unit)
}

/// Words the share of failed operations; older summaries know less.
fn share_in_words(steps: &[&Summary]) -> String {
    let knows_less = |step: &&Summary| {
        step.latency.abandoned.is_none() && step.totals.in_doubt.max(step.totals.abandoned) > 0
    };
    let older = ", with what was in doubt or given up in any phase (an older version wrote the \
                 summaries),";
    let older = if steps.iter().any(knows_less) { older } else { "" };
    format!("the failed share of the window's ops{older}")
}

fn known_errors(steps: &[&Summary]) -> Option<f64> {
    let all: f64 = steps.iter().map(|step| errors(step) as f64).sum();
    let idle = failed_share(steps).is_none() && steps.iter().all(|step| step.totals.ops == 0);
    (all > 0.0 || !idle).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(text: &str) -> Gate {
        text.parse().expect(text)
    }

    #[test]
    fn gate_is_checked_once_when_it_is_given_twice() {
        let (step, wanted) = (Summary::sound(), ["qps>1", "qps>1"].map(gate));
        let found = gates(&[&step], &wanted, &Options::default()).expect("a step");
        assert_eq!(found.held.len() + found.failed.len() + found.undecided.len(), 1, "{found:?}");
    }

    #[test]
    fn order_of_gates_is_refused_when_it_names_no_label() {
        let order = vec!["typo".to_owned()];
        let options = Options { order, ..Options::default() };
        let found = gates(&[&Summary::sound()], &[gate("qps>1")], &options);
        assert_eq!(found.expect_err("no such label").kind().exit_code(), 2);
    }

    #[test]
    fn number_has_all_digits_when_it_is_the_bound_of_its_gate() {
        assert_eq!(judged_in_words(&gate("p50<0.023103ms"), 23.103), "0.023103 ms");
        assert_eq!(judged_in_words(&gate("p50<=0.023103ms"), 23.103), "0.023 ms");
        assert_eq!(judged_in_words(&gate("p50<23.1us"), 23.103), "0.023103 ms");
    }
}
