//! Searches the highest rate that holds a service level (`--slo`), by steps of an open loop.

use super::{print_data, to_step_summary};
use crate::error::{Error, Kind, Result};
use crate::plan::search::{STEPS_MAX, Search, operations_needed};
use crate::plan::value::RATE_MAX;
use crate::plan::{Arrival, Plan, Step, units};
use crate::report::{probe, searches};
use crate::summary::{RateSearch, Summary};
use crate::terms::Gate;

/// The searches of a sweep, one for each number of clients and repeat.
pub(super) struct Slo {
    gates: Vec<Gate>,
    searches: Vec<OneSearch>,
    measured: Vec<(u32, f64)>,
}

struct OneSearch {
    clients: u32,
    number: u32,
    search: Search,
}

/// Describes a search for its steps' summaries, without the step's number.
pub(super) fn describe_search(level: &[Gate], start: f64, resolution: f64) -> RateSearch {
    let level = level.iter().map(|gate| gate.text.clone()).collect();
    RateSearch { level, number: 0, start, resolution }
}

/// Refuses one that never holds enough ops for a level's percentiles; warns if only rates above the first fill it.
pub(super) fn check_window(level: &[Gate], plan: &Plan) -> Result<Option<String>> {
    let (needed, gate) = operations_needed(level);
    let Some(gate) = gate else { return Ok(None) };
    let count = units::count(needed);
    let time = plan.stop.time().expect("--slo is refused beside --ops").as_secs_f64();
    let expected = expect_arrivals(needed, plan.arrival);
    let least = expected / time;
    let longer = |rate: f64| format!("--time {}s", (expected / rate).ceil());
    if least > RATE_MAX as f64 {
        let text = format!(
            "--slo {gate} needs {count} operations a step, and no rate makes that many in {time} s"
        );
        return Err(Error::usage(text).hint(longer(RATE_MAX as f64)));
    }
    let first = plan.rates.first().copied().filter(|rate| *rate < least);
    Ok(first.map(|first| {
        format!(
            "--slo {gate} needs {count} operations a step: in {time} s only rates of {least:.0}/s \
             or more make that many. The search begins at {first}/s; {} is enough there",
            longer(first)
        )
    }))
}

/// Returns the mean number of arrivals of a window that seldom has fewer than these: random ones vary by its root.
fn expect_arrivals(needed: u64, arrival: Arrival) -> f64 {
    let needed = needed as f64;
    match arrival {
        Arrival::Poisson => f64::midpoint(3.0, (9.0 + 4.0 * needed).sqrt()).powi(2),
        Arrival::Uniform => needed,
    }
}

impl Slo {
    pub(super) fn new(plan: &Plan, level: &[Gate], start: f64, resolution: f64) -> Slo {
        let search = |step: Step| OneSearch {
            clients: step.clients,
            number: step.repeat,
            search: Search::of_level(start, resolution, level, plan.stop.time()),
        };
        let closed = Plan { rates: Vec::new(), ..plan.clone() };
        let searches = closed.steps().into_iter().map(search).collect();
        Slo { gates: level.to_vec(), searches, measured: Vec::new() }
    }

    /// Finds the current search and its next rate. Earlier searches have ended, later ones have not begun.
    fn current(&mut self) -> Option<(&mut OneSearch, f64)> {
        self.searches.iter_mut().find_map(|one| one.search.next().map(|rate| (one, rate)))
    }

    pub(super) fn next(&mut self, measured: &[Summary]) -> Result<Option<Step>> {
        self.learn(measured)?;
        let of = (self.searches.len() * STEPS_MAX) as u32;
        let Some((one, rate)) = self.current() else { return Ok(None) };
        let (clients, search) = (one.clients, Some(one.number));
        // The keys of a step follow from its repeat: a rate that comes again needs another one.
        let same = |step: &&(u32, f64)| step.0 == clients && step.1.total_cmp(&rate).is_eq();
        let repeat = self.measured.iter().filter(same).count() as u32 + 1;
        let number = self.measured.len() as u32 + 1;
        Ok(Some(Step { search, ..Step::new(number, of, (clients, Some(rate)), repeat) }))
    }

    fn learn(&mut self, measured: &[Summary]) -> Result<()> {
        // A step that could not begin has no summary.
        let Some(step) = measured.get(self.measured.len()) else { return Ok(()) };
        let held = probe(&self.gates, step)?.held;
        let (one, rate) = self.current().expect("a rate was asked for");
        one.search.tell(rate, held);
        let step = (one.clients, rate);
        self.measured.push(step);
        Ok(())
    }

    pub(super) fn print_result(&self, measured: &[Summary]) -> Result<()> {
        let Some(found) = searches(measured)?.into_iter().next() else { return Ok(()) };
        let ending = found.ending();
        print_data(&(ending.lines.join("\n") + "\n"))?;
        to_step_summary(|| Ok(ending.lines.join("\n\n") + "\n"));
        let level: Vec<&str> = self.gates.iter().map(|gate| gate.text.as_str()).collect();
        let level = level.join(" and ");
        if !ending.none.is_empty() {
            let text = format!("no rate holds {level} at {}", ending.none.join(", "));
            // The search itself goes down: a lower first rate finds no more.
            let hint = if ending.scarce {
                "a longer --time, as lower rates have too few answers to tell; or another level"
            } else {
                "another level, or more --clients"
            };
            return Err(Error::new(Kind::Gate, text).hint(hint));
        }
        if ending.open.is_empty() {
            return Ok(());
        }
        let text = format!("whether {level} holds is not known at {}", ending.open.join(", "));
        let hint =
            "use a longer --time for more samples, or a coarser --slo-resolution to finish sooner";
        Err(Error::new(Kind::Undecided, text).hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plan::StopAt;
    use crate::plan::knobs::Knobs;
    use crate::workload::builtin;

    #[test]
    fn a_time_that_is_called_enough_is_so_when_chance_brings_fewer_arrivals() {
        let level: Vec<Gate> = vec!["p99<5ms".parse().expect("a gate")];
        let mut plan = Knobs::default().resolve(builtin().remove(0), 7).expect("a plan");
        plan.rates = vec![100.0];
        let mut told = |arrival: Arrival, seconds: u64| {
            (plan.arrival, plan.stop) = (arrival, StopAt::Time(Duration::from_secs(seconds)));
            check_window(&level, &plan).expect("some rate has so many")
        };
        assert_eq!(told(Arrival::Uniform, 10), None);
        assert_eq!(
            (told(Arrival::Poisson, 10).is_some(), told(Arrival::Poisson, 11)),
            (true, None)
        );
        let even = told(Arrival::Uniform, 9).expect("900 of 1,000");
        assert!(even.ends_with("--time 10s is enough there"), "{even}");
        // 1,100 less three times its root.
        let random = told(Arrival::Poisson, 9).expect("900 of 1,000");
        assert!(random.ends_with("--time 11s is enough there"), "{random}");
    }
}
