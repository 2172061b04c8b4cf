//! The searches of `--slo`: what each of their steps came to, and the highest rate that held.

use std::collections::BTreeMap;
use std::time::Duration;

use super::columns::Rows;
use super::escape;
use super::gate::{found_in_words, holds, may_hold, quantity_in_words};
use super::metric::failed_share;
use super::names::label;
use super::note::{grouped, in_full};
use super::page::Page;
use super::run::Run;
use super::value::PageValue;
use crate::error::{Error, Result};
use crate::judge::thresholds::LEVEL_FAILED_MAX;
use crate::plan::search::{Found, STEPS_MAX, Search};
use crate::stats::{self, Spread};
use crate::summary::{Outcome, Summary, VerdictKind};
use crate::terms::units::rate_decimals;
use crate::terms::{self, Cell, Code, Gate, Quantity};

pub(crate) struct Probe<'s> {
    step: &'s Summary,
    /// The number of each condition, where it is known, infinite where ops failed; true where it is a lower bound.
    numbers: Vec<Option<(f64, bool)>>,
    /// All of them hold, and the rate was kept; none where that is not known.
    pub held: Option<bool>,
    why: Option<String>,
    /// Too few answers, some of which are within the level.
    scarce: bool,
}

pub(crate) fn probe<'s>(level: &[Gate], step: &'s Summary) -> Result<Probe<'s>> {
    let judged = level.iter().map(|gate| holds(gate, step)).collect::<Result<Vec<_>>>()?;
    let held: Vec<Option<bool>> = judged.iter().map(|(held, ..)| *held).collect();
    let number = |(_, number, is_bound): &(_, Option<f64>, bool)| Some(((*number)?, *is_bound));
    let numbers: Vec<Option<(f64, bool)>> = judged.iter().map(number).collect();
    let mut why = lost(step);
    let fails = why.is_some() || held.contains(&Some(false));
    let held = if fails { Some(false) } else { (!held.contains(&None)).then_some(true) };
    let held = held.filter(|_| is_answer(step));
    if why.is_none() && numbers.iter().flatten().any(|(number, _)| number.is_infinite()) {
        why = failed_share(&[step]).map(failed);
    }
    let is_open = held.is_none() && is_answer(step);
    let scarce = is_open && level.iter().all(|gate| may_hold(gate, step));
    Ok(Probe { step, numbers, held, why, scarce })
}

impl Probe<'_> {
    fn show_number(&self, at: usize, gate: &Gate) -> Option<String> {
        self.numbers[at].map(|(value, is_bound)| match value {
            value if value.is_infinite() => "failed".to_owned(),
            value => found_in_words(gate, value, is_bound),
        })
    }
}

/// Returns whether it tells something of its rate: what a signal cut short, or is no result, does not.
fn is_answer(step: &Summary) -> bool {
    matches!(step.outcome, Outcome::Completed | Outcome::Aborted)
}

/// Words why a step does not hold whatever its latencies are.
fn lost(step: &Summary) -> Option<String> {
    if step.outcome != Outcome::Completed {
        return Some("it did not complete".to_owned());
    }
    if step.is_warned(Code::NotSustained) {
        return Some("not sustained".to_owned());
    }
    let share = failed_share(&[step])?;
    (share > LEVEL_FAILED_MAX).then(|| failed(share))
}

fn failed(share: f64) -> String {
    format!("{} failed", quantity_in_words(Quantity::ErrorShare, share))
}

/// A search at a number of clients, rebuilt from its steps.
struct SearchSteps<'s> {
    search: Search,
    probes: Vec<Probe<'s>>,
}

/// The searches of a workload, a label, an invocation and a level, by clients and number.
pub(crate) struct Searches<'s> {
    first: &'s Summary,
    level: Vec<Gate>,
    all: BTreeMap<(u32, u32), SearchSteps<'s>>,
}

#[derive(Default)]
pub(crate) struct Ending {
    pub lines: Vec<String>,
    pub none: Vec<String>,
    pub open: Vec<String>,
    /// No rate held, and the lowest ones had too few answers to tell.
    pub scarce: bool,
}

pub(crate) fn searches<'s>(
    steps: impl IntoIterator<Item = &'s Summary>,
) -> Result<Vec<Searches<'s>>> {
    let mut steps: Vec<&Summary> = steps.into_iter().collect();
    steps.sort_by_cached_key(|step| Run::Measured(step).sort_key());
    let mut found: Vec<Searches> = Vec::new();
    for step in steps {
        let (Some(of), Some(rate)) = (&step.plan.search, step.plan.rate) else { continue };
        let key = |step: &'s Summary| (&step.run_id, &step.label, &step.workload.name);
        let is_same = |known: &Searches<'s>| {
            let level = known.level.iter().map(|gate| &gate.text);
            key(known.first) == key(step) && level.eq(&of.level)
        };
        let at = found.iter().position(is_same).unwrap_or(found.len());
        if at == found.len() {
            let level = of.level.iter().map(|text| parsed(text, step)).collect::<Result<_>>()?;
            found.push(Searches { first: step, level, all: BTreeMap::new() });
        }
        let Searches { level, all, .. } = &mut found[at];
        let probe = probe(level, step)?;
        let time = step.plan.time_s.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let new = || SearchSteps {
            search: Search::of_level(of.start, of.resolution, level, time),
            probes: Vec::new(),
        };
        let one = all.entry((step.plan.clients, of.number)).or_insert_with(new);
        if is_answer(step) {
            one.search.tell(rate, probe.held);
        }
        one.probes.push(probe);
    }
    Ok(found)
}

fn parsed(text: &str, step: &Summary) -> Result<Gate> {
    text.parse().map_err(|why| {
        let (id, text) = (escape::line(&step.step_id), escape::line(text));
        Error::data(format!("step {id} is of a search for '{text}', which is no condition: {why}"))
    })
}

impl SearchSteps<'_> {
    fn remarks(&self, found: &Found, is_alone: bool) -> Vec<String> {
        let noisy = "noisy: one rate both held and failed; a longer --time tells more";
        let end = match self.search.next() {
            Some(_) if is_alone => Some("cut short".to_owned()),
            Some(_) => Some("a search was cut short".to_owned()),
            None if found.confirmed => None,
            None => Some(format!("not confirmed within {STEPS_MAX} steps")),
        };
        let few = found.unknown.map(|rate| format!("too few answers at {rate}/s to tell"));
        let limited = found.failed.and_then(|failed| limited(&self.probes, failed));
        [found.noisy.then(|| noisy.to_owned()), limited, end, few].into_iter().flatten().collect()
    }

    fn is_open(&self, found: &Found) -> bool {
        let scarce = self.probes.iter().any(|probe| probe.scarce);
        let all_failed = found.rate.is_none() && found.failed.is_some() && !scarce;
        !found.confirmed || (found.unknown.is_some() && !all_failed)
    }
}

fn limited(probes: &[Probe], failed: f64) -> Option<String> {
    let there = probes.iter().filter(|probe| {
        probe.held == Some(false)
            && probe.step.plan.rate.is_some_and(|rate| rate.total_cmp(&failed).is_eq())
    });
    let kind = there.filter_map(|probe| probe.step.verdict.as_ref()).map(|of| of.kind).max()?;
    (kind >= VerdictKind::ClientBound)
        .then(|| format!("{} at {failed}/s: the server may hold more", kind.name()))
}

impl Searches<'_> {
    fn level(&self) -> String {
        self.level.iter().map(|gate| gate.text.as_str()).collect::<Vec<&str>>().join(" and ")
    }

    pub(crate) fn ending(&self) -> Ending {
        let mut ending = Ending::default();
        let mut by_clients: BTreeMap<u32, Vec<(&SearchSteps, Found)>> = BTreeMap::new();
        for ((clients, _), one) in &self.all {
            by_clients.entry(*clients).or_default().push((one, one.search.found()));
        }
        for (clients, here) in by_clients {
            let (open, settled): (Vec<_>, Vec<_>) =
                here.iter().partition(|(one, found)| one.is_open(found));
            let cell = |(_, found): &&(&SearchSteps, Found)| {
                Cell::new(clients, found.unknown.or(found.rate)).told()
            };
            ending.open.extend(open.iter().map(cell));
            let mut nothing = settled.iter().filter(|(_, found)| found.rate.is_none()).peekable();
            ending.none.extend(nothing.peek().map(|_| terms::clients(clients)));
            ending.scarce |= nothing.any(|(_, found)| found.unknown.is_some());
            ending.lines.push(self.line(clients, &here, !open.is_empty()));
        }
        ending
    }

    fn line(&self, clients: u32, here: &[(&SearchSteps, Found)], open: bool) -> String {
        let (level, at) = (self.level(), format!("at {}", terms::clients(clients)));
        let (ended, cut): (Vec<&(&SearchSteps, Found)>, Vec<_>) =
            here.iter().partition(|(one, _)| one.search.next().is_none());
        let list_rates = |of: &[&(&SearchSteps, Found)]| -> Vec<f64> {
            of.iter().filter_map(|(_, found)| found.rate).collect()
        };
        // A search that was cut short counts only where no other one has an answer.
        let settled = ended.iter().any(|(one, found)| found.rate.is_some() || !one.is_open(found));
        let rates = list_rates(if settled { &ended } else { &cut });
        let mut remarks: Vec<String> = Vec::new();
        if let [(_, found)] = here {
            remarks.extend(
                found.failed.filter(|_| found.rate.is_some()).map(|r| format!("{r}/s failed")),
            );
        }
        remarks.extend(here.iter().flat_map(|(one, found)| one.remarks(found, here.len() == 1)));
        remarks.dedup();
        let probes = here.iter().flat_map(|(one, _)| &one.probes);
        let lowest = probes.filter_map(|probe| probe.step.plan.rate).reduce(f64::min);
        let text = match stats::spread(&rates) {
            Some(Spread { n, min, median, max }) if here.len() > 1 => {
                let (median, all) = (quantity_in_words(Quantity::Tps, median), here.len());
                let of = format!("the median of {n} of {all} searches, {min} to {max}");
                remarks.insert(0, of);
                format!("Highest rate with {level} {at}: {median}")
            }
            Some(one) => format!("Highest rate with {level} {at}: {}/s", one.median),
            None => {
                let tried = lowest.map(|rate| format!("lowest tried {rate}/s"));
                remarks.splice(0..0, tried);
                if open {
                    format!("Not known whether a rate holds {level} {at}")
                } else {
                    format!("No rate held {level} {at}")
                }
            }
        };
        if remarks.is_empty() { text } else { format!("{text} ({})", remarks.join("; ")) }
    }

    fn page(&self) -> Page {
        let steps = || {
            let all = self.all.iter();
            all.flat_map(|((_, number), one)| one.probes.iter().map(move |p| (*number, p, one)))
        };
        let notes = grouped(steps().enumerate().flat_map(|(at, (_, probe, _))| {
            let column = Cell::new(probe.step.plan.clients, probe.step.plan.rate);
            let findings = Run::Measured(probe.step).findings().into_iter();
            findings.map(move |finding| (at, column, finding))
        }));
        let mark = |at: usize| {
            if notes.iter().any(|note| note.marks(at, None)) { " *" } else { "" }
        };
        let achieved = rate_decimals(steps().map(|(_, probe, _)| probe.step.totals.tps));
        let mut rows = Rows::new(steps().enumerate())
            .filed("workload", |_| self.first.workload.name.as_str())
            .filed("label", |_| self.first.label.as_str())
            .filed("level", |_| self.level())
            .both("clients", "clients", |(_, (_, probe, _))| probe.step.plan.clients)
            .both("search", "search", |(_, (number, ..))| *number)
            .shown("rate", |(_, (_, probe, _))| probe.step.plan.rate.map(|rate| rate.to_string()))
            .filed("rate", |(_, (_, probe, _))| probe.step.plan.rate)
            .both("achieved", "achieved", |(_, (_, probe, _))| (probe.step.totals.tps, achieved));
        for (at, gate) in self.level.iter().enumerate() {
            rows = rows.shown(&gate.text, |(_, (_, probe, _))| probe.show_number(at, gate));
        }
        let sheet = rows
            .text("held", |(at, (_, probe, _))| {
                let held = probe.held.map_or("?", |held| if held { "yes" } else { "no" });
                let why = probe.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
                format!("{held}{why}{}", mark(*at))
            })
            .filed("held", |(_, (_, probe, _))| PageValue::from(probe.held))
            .filed("highest", |(_, (_, probe, one))| {
                one.search.found().rate == probe.step.plan.rate
            })
            .filed("why", |(_, (_, probe, _))| probe.why.clone())
            .filed("step_id", |(_, (_, probe, _))| probe.step.step_id.as_str())
            .sheet();
        let of =
            format!("{}, {}", escape::line(&self.first.workload.name), label(&self.first.label));
        let title = std::iter::once(of).chain(self.ending().lines).collect();
        Page { title, sheets: vec![sheet], notes: in_full(&notes), ..Page::default() }
    }
}

pub(super) fn pages<'s>(steps: impl IntoIterator<Item = &'s Summary>) -> Result<Vec<Page>> {
    let found = searches(steps)?;
    if found.is_empty() {
        return Err(Error::data("no step of these summaries is of a search for a rate")
            .hint("--slo makes one: loadgen point-select --clients 32 --slo 'p99<10ms'"));
    }
    Ok(found.iter().map(Searches::page).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_a_condition_is_a_bound_when_it_is_of_a_lower_percentile() {
        let level: [Gate; 1] = ["p99<20ms".parse().expect("a condition")];
        let mut step = Summary::sound();
        for (count, shown) in [(5000, "143.917 ms"), (591, "above 133.890 ms")] {
            let times = &mut step.latency.service;
            (times.count, times.p95_us, times.p99_us) = (count, Some(133_890.0), Some(143_917.0));
            let probe = probe(&level, &step).expect("a probe");
            assert_eq!(probe.show_number(0, &level[0]).as_deref(), Some(shown));
        }
    }
}
