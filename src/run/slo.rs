//! `--slo`: the highest rate that holds a service level, by steps of an open loop.

use super::print_data;
use crate::error::{Error, Kind, Result};
use crate::plan::search::{Answer, STEPS_MAX, Search};
use crate::plan::{Plan, Step};
use crate::report::{self, Probe, quantity_shown};
use crate::summary::{Outcome, Summary, VerdictKind};
use crate::terms::{self, Code, Gate, Quantity};

/// A level does not hold where a larger part of the ops fails, whatever it is about: what is refused
/// at once is fast.
const FAILED_MAX: f64 = 0.01;

/// The searches of a sweep, one for each number of clients and repeat.
pub(super) struct Slo {
    gates: Vec<Gate>,
    start: f64,
    resolution: f64,
    searches: Vec<(u32, u32)>,
    /// The search at hand, and the rate that is being measured.
    search: Search,
    asked: Option<f64>,
    done: Vec<report::Search>,
    probes: Vec<Probe>,
    /// The search at hand met too few answers, some of which are within the level.
    scarce: bool,
    none: Vec<String>,
    open: Vec<String>,
}

impl Slo {
    /// Makes one search for each step of a closed loop of the plan.
    pub(super) fn new(plan: &Plan, level: &[Gate], start: f64, resolution: f64) -> Slo {
        let closed = Plan { rates: Vec::new(), ..plan.clone() };
        Slo {
            gates: level.to_vec(),
            start,
            resolution,
            searches: closed.steps().iter().map(|step| (step.clients, step.repeat)).collect(),
            search: Search::new(start, resolution),
            asked: None,
            done: Vec::new(),
            probes: Vec::new(),
            scarce: false,
            none: Vec::new(),
            open: Vec::new(),
        }
    }

    fn here(&self) -> Option<(u32, u32)> {
        self.searches.get(self.done.len()).copied()
    }

    pub(super) fn next(&mut self, measured: &[Summary]) -> Result<Option<Step>> {
        self.learn(measured)?;
        while let Some((clients, _)) = self.here() {
            let Some(rate) = self.search.next() else {
                self.end();
                continue;
            };
            self.asked = Some(rate);
            let (number, of) = (self.probes.len() as u32 + 1, self.searches.len() * STEPS_MAX);
            // The keys of a step follow from its repeat: no rate is asked for the same twice.
            let same =
                |probe: &&Probe| probe.clients == clients && probe.rate.total_cmp(&rate).is_eq();
            let repeat = self.probes.iter().filter(same).count() as u32 + 1;
            let (rate, of) = (Some(rate), of as u32);
            return Ok(Some(Step { number, place: number, of, clients, rate, repeat }));
        }
        Ok(None)
    }

    fn learn(&mut self, measured: &[Summary]) -> Result<()> {
        // A step that could not begin has no summary: the last one is of the rate before.
        let new = measured.get(self.probes.len());
        let (Some(rate), Some(step)) = (self.asked.take(), new) else { return Ok(()) };
        let judged: Vec<(Option<bool>, Option<f64>)> =
            self.gates.iter().map(|gate| report::holds(gate, step)).collect::<Result<_>>()?;
        let (holds, numbers): (Vec<Option<bool>>, Vec<Option<f64>>) = judged.into_iter().unzip();
        let mut why = lost(step);
        let held = if why.is_some() || holds.contains(&Some(false)) {
            Some(false)
        } else {
            (!holds.contains(&None)).then_some(true)
        };
        if why.is_none() && numbers.iter().flatten().any(|number| number.is_infinite()) {
            why = report::failed_share(step).map(failed);
        }
        self.scarce |= held.is_none() && self.gates.iter().all(|gate| report::may_hold(gate, step));
        let answer = match held {
            Some(true) => Answer::Held,
            Some(false) => Answer::Failed,
            None => Answer::Unknown,
        };
        self.search.tell(rate, answer);
        let (clients, search) = self.here().expect("a rate was asked for");
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

    fn end(&mut self) {
        let here = self.here().expect("there is a search to end");
        let (clients, found) = (here.0, self.search.found());
        let mut remarks = Vec::new();
        if found.noisy {
            remarks.push(
                "noisy: a rate held and failed, or one held above one that failed; majorities \
                 decided"
                    .to_owned(),
            );
        }
        let of_search = self.probes.iter().filter(|probe| (probe.clients, probe.search) == here);
        remarks.extend(found.failed.and_then(|failed| limited(of_search, failed)));
        let at = |rate: Option<f64>| rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
        if self.search.next().is_some() {
            remarks.push("cut short".to_owned());
        } else if !found.confirmed {
            remarks.push(format!("not confirmed within {STEPS_MAX} steps"));
        }
        if found.unknown.is_some() {
            remarks.push(format!("too few answers{} to tell", at(found.unknown)));
        }
        let none = found.rate.is_none() && found.failed.is_some() && !self.scarce;
        self.scarce = false;
        if !found.confirmed || (found.unknown.is_some() && !none) {
            self.open.push(terms::clients(clients) + &at(found.unknown.or(found.rate)));
        } else if found.rate.is_none() {
            self.none.push(terms::clients(clients));
        }
        self.done.push(report::Search { clients, rate: found.rate, remarks });
        self.search = Search::new(self.start, self.resolution);
    }

    pub(super) fn tell(mut self, measured: &[Summary], whole: bool) -> Result<()> {
        self.learn(measured)?;
        let (Some(first), Some(last)) = (measured.first(), self.probes.last()) else {
            return Ok(());
        };
        if !whole && self.here() == Some((last.clients, last.search)) {
            self.end();
        }
        print_data(&report::path(first, &self.probes, &self.done, &self.gates))?;
        let level: Vec<&str> = self.gates.iter().map(|gate| gate.text.as_str()).collect();
        let level = level.join(" and ");
        if !self.none.is_empty() {
            let text = format!("no rate holds {level} at {}", self.none.join(", "));
            return Err(
                Error::new(Kind::Gate, text).hint("a lower --rate to begin with, or another level")
            );
        }
        if self.open.is_empty() {
            return Ok(());
        }
        let text = format!("whether {level} holds is not known at {}", self.open.join(", "));
        Err(Error::new(Kind::Undecided, text)
            .hint("a longer --time gives more answers to judge by, a coarser --slo-resolution is sooner done"))
    }
}

/// Names a client that may be why the lowest rate that failed did.
fn limited<'a>(search: impl Iterator<Item = &'a Probe>, failed: f64) -> Option<String> {
    let there =
        search.filter(|probe| probe.held == Some(false) && probe.rate.total_cmp(&failed).is_eq());
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
    let failed_share = report::failed_share(step)?;
    (failed_share > FAILED_MAX).then(|| failed(failed_share))
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
            limited([below, last].iter(), 400.0).unwrap_or_default()
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
