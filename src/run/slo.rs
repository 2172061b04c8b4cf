//! `--slo`: the highest rate that holds a service level, by steps of an open loop.

use super::print_data;
use crate::error::{Error, Kind, Result};
use crate::judge::thresholds::LEVEL_FAILED_MAX;
use crate::plan::search::{STEPS_MAX, Search};
use crate::plan::{Plan, Step};
use crate::report::{self, Probe, quantity_shown};
use crate::summary::{Outcome, Summary, VerdictKind};
use crate::terms::{self, Cell, Code, Gate, Quantity};

/// The searches of a sweep, one for each number of clients and repeat.
pub(super) struct Slo {
    gates: Vec<Gate>,
    searches: Vec<OneSearch>,
    probes: Vec<Probe>,
}

struct OneSearch {
    clients: u32,
    number: u32,
    search: Search,
    /// It met too few answers, some of which are within the level.
    scarce: bool,
}

impl Slo {
    pub(super) fn new(plan: &Plan, level: &[Gate], start: f64, resolution: f64) -> Slo {
        let search = |step: Step| OneSearch {
            clients: step.clients,
            number: step.repeat,
            search: Search::new(start, resolution),
            scarce: false,
        };
        let closed = Plan { rates: Vec::new(), ..plan.clone() };
        let searches = closed.steps().into_iter().map(search).collect();
        Slo { gates: level.to_vec(), searches, probes: Vec::new() }
    }

    /// Finds the search at hand, and its next rate: searches before it have none, later ones begin.
    fn here(&mut self) -> Option<(&mut OneSearch, f64)> {
        self.searches.iter_mut().find_map(|one| one.search.next().map(|rate| (one, rate)))
    }

    pub(super) fn next(&mut self, measured: &[Summary]) -> Result<Option<Step>> {
        self.learn(measured)?;
        let of = (self.searches.len() * STEPS_MAX) as u32;
        let Some((one, rate)) = self.here() else { return Ok(None) };
        let clients = one.clients;
        // The keys of a step follow from its repeat: no rate is asked for the same twice.
        let same = |probe: &&Probe| probe.clients == clients && probe.rate.total_cmp(&rate).is_eq();
        let repeat = self.probes.iter().filter(same).count() as u32 + 1;
        let number = self.probes.len() as u32 + 1;
        Ok(Some(Step { number, place: number, of, clients, rate: Some(rate), repeat }))
    }

    fn learn(&mut self, measured: &[Summary]) -> Result<()> {
        // A step that could not begin has no summary.
        let Some(step) = measured.get(self.probes.len()) else { return Ok(()) };
        let judged = self.gates.iter().map(|gate| report::holds(gate, step));
        let (holds, numbers): (Vec<Option<bool>>, Vec<Option<f64>>) =
            judged.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let mut why = lost(step);
        let fails = why.is_some() || holds.contains(&Some(false));
        let held = if fails { Some(false) } else { (!holds.contains(&None)).then_some(true) };
        if why.is_none() && numbers.iter().flatten().any(|number| number.is_infinite()) {
            why = report::failed_share(&[step]).map(failed);
        }
        let may_hold = self.gates.iter().all(|gate| report::may_hold(gate, step));
        let (one, rate) = self.here().expect("a rate was asked for");
        one.scarce |= held.is_none() && may_hold;
        one.search.tell(rate, held);
        let (clients, search) = (one.clients, one.number);
        self.probes.push(Probe {
            clients,
            search,
            rate,
            achieved: step.totals.tps,
            numbers,
            held,
            why,
            remarks: report::remarks(step),
            verdict: step.verdict.as_ref().map(|verdict| verdict.kind),
        });
        Ok(())
    }

    /// Prints what was found, of a search that was cut short, too.
    pub(super) fn tell(mut self, measured: &[Summary]) -> Result<()> {
        self.learn(measured)?;
        let Some(first) = measured.first() else { return Ok(()) };
        let (mut searches, mut none, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for OneSearch { clients, number, search, scarce } in &self.searches {
            let here = |probe: &&Probe| (probe.clients, probe.search) == (*clients, *number);
            let probes: Vec<&Probe> = self.probes.iter().filter(here).collect();
            if probes.is_empty() {
                break;
            }
            let found = search.found();
            let noisy = "noisy: a rate held and failed, or one held above one that failed; \
                         majorities decided";
            let end = match search.next() {
                Some(_) => Some("cut short".to_owned()),
                None if found.confirmed => None,
                None => Some(format!("not confirmed within {STEPS_MAX} steps")),
            };
            let remarks = [
                found.noisy.then(|| noisy.to_owned()),
                found.failed.and_then(|failed| limited(&probes, failed)),
                end,
                found.unknown.map(|rate| format!("too few answers at {rate}/s to tell")),
            ];
            let rate_failed = found.rate.is_none() && found.failed.is_some() && !scarce;
            if !found.confirmed || (found.unknown.is_some() && !rate_failed) {
                open.push(Cell::new(*clients, found.unknown.or(found.rate)).told());
            } else if found.rate.is_none() {
                none.push(terms::clients(*clients));
            }
            let remarks = remarks.into_iter().flatten().collect();
            searches.push(report::Search { clients: *clients, rate: found.rate, remarks });
        }
        print_data(&report::path(first, &self.probes, &searches, &self.gates))?;
        let level: Vec<&str> = self.gates.iter().map(|gate| gate.text.as_str()).collect();
        let level = level.join(" and ");
        if !none.is_empty() {
            let text = format!("no rate holds {level} at {}", none.join(", "));
            let hint = "a lower --rate to begin with, or another level";
            return Err(Error::new(Kind::Gate, text).hint(hint));
        }
        if open.is_empty() {
            return Ok(());
        }
        let text = format!("whether {level} holds is not known at {}", open.join(", "));
        let hint = "a longer --time gives more answers, a coarser --slo-resolution is sooner done";
        Err(Error::new(Kind::Undecided, text).hint(hint))
    }
}

/// Names a client that may be why the lowest rate that failed did.
fn limited(search: &[&Probe], failed: f64) -> Option<String> {
    let there = search
        .iter()
        .filter(|probe| probe.held == Some(false) && probe.rate.total_cmp(&failed).is_eq());
    let kind = there.filter_map(|probe| probe.verdict).max()?;
    (kind >= VerdictKind::ClientBound)
        .then(|| format!("{} at {failed}/s, which failed: the server may hold more", kind.name()))
}

/// Says why a step counts as failed whatever its latencies are.
fn lost(step: &Summary) -> Option<String> {
    if step.outcome != Outcome::Completed {
        return Some("it did not complete".to_owned());
    }
    if step.is_warned(Code::NotSustained) {
        return Some("not sustained".to_owned());
    }
    let failed_share = report::failed_share(&[step])?;
    (failed_share > LEVEL_FAILED_MAX).then(|| failed(failed_share))
}

fn failed(share: f64) -> String {
    format!("{} failed", quantity_shown(Quantity::ErrorShare, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_may_be_the_limit_is_named() {
        let probe = |rate, held, verdict| Probe {
            clients: 8,
            search: 1,
            rate,
            achieved: rate,
            numbers: Vec::new(),
            held: Some(held),
            why: None,
            remarks: Vec::new(),
            verdict: Some(verdict),
        };
        let of = |last: Probe| {
            let below = probe(200.0, true, VerdictKind::ClientBound);
            limited(&[&below, &last], 400.0).unwrap_or_default()
        };
        assert_eq!(
            of(probe(400.0, false, VerdictKind::ClientBound)),
            "client-bound at 400/s, which failed: the server may hold more"
        );
        assert!(of(probe(400.0, false, VerdictKind::SharedHost)).starts_with("shared-host at"));
        assert_eq!(of(probe(400.0, false, VerdictKind::Noisy)), "");
        assert_eq!(of(probe(400.0, true, VerdictKind::ClientBound)), "", "it held");
        assert_eq!(of(probe(800.0, false, VerdictKind::ClientBound)), "", "another one");
    }
}
