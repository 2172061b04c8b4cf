//! Which steps share a cell: those that are the same measurement. Others are refused.

use std::collections::BTreeMap;

use super::names::both_values;
use super::run::{Run, differences, steps_among};
use crate::error::{Error, Result, VALUE_MAX, clip, told_apart};
use crate::judge::{self, Difference, Knowledge, Weight};
use crate::summary::{Imported, Summary, TEXT_MAX};
use crate::terms;

const DIFFERENCES_MAX: usize = 10;
const NEWEST: &str = "--latest takes each label's newest invocation only";
pub(crate) const NEWEST_SETTINGS: &str = "--latest takes the newest of these settings only";

/// Steps of one cell that agree, invocation by invocation.
#[derive(Default)]
pub(crate) struct Pool<'a> {
    /// The first of each kind of knowledge: who differs from none of these differs from no other.
    firsts: Vec<(Knowledge<'a>, &'a Summary)>,
    /// The values of each condition of the hosts that all invocations have, with a step of each; empty
    /// where none knows one.
    hosts: Vec<Values<'a>>,
}

type Values<'a> = BTreeMap<String, &'a Summary>;

/// Refuses runs of one cell that are not the same measurement.
pub(crate) fn agree(runs: &[Run]) -> Result<()> {
    agree_steps(steps_among(runs))?;
    agree_imported(runs)
}

pub(crate) fn agree_steps<'a>(steps: impl Iterator<Item = &'a Summary>) -> Result<()> {
    let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
    let mut invocations: Vec<Vec<&Summary>> = Vec::new();
    for step in steps {
        let at = *positions.entry(&step.run_id).or_insert(invocations.len());
        invocations.resize_with(invocations.len().max(at + 1), Vec::new);
        invocations[at].push(step);
    }
    let mut pool = Pool::default();
    invocations.iter().try_for_each(|steps| pool.add(steps))
}

/// Refuses imported runs of a cell that was measured, or that differ in what their outputs tell.
fn agree_imported(runs: &[Run]) -> Result<()> {
    let imported: Vec<&Imported> = runs.iter().filter_map(|run| run.imported()).collect();
    let Some(first) = imported.first() else { return Ok(()) };
    let (label, workload) = (clip(&first.label, VALUE_MAX), clip(&first.workload, VALUE_MAX));
    let cell = format!("'{label}' of {workload} at {}", terms::clients(first.clients));
    let file = |run: &Imported| clip(&run.source.file, TEXT_MAX);
    let refused = |text| {
        let hint = "import them again, each configuration under a --label of its own";
        Err(Error::data(text).hint(hint))
    };
    if imported.len() < runs.len() {
        return refused(format!("{cell} was measured, and imported, too: {}", file(first)));
    }
    for (at, other) in imported.iter().enumerate() {
        for one in &imported[..at] {
            let differences = differences(Run::Imported(one), Run::Imported(other));
            if let Some(Difference { name, first, second, .. }) = differences.first() {
                let (first, second) = told_apart(first, second);
                let files = [file(one), file(other)].join(" and ");
                return refused(format!(
                    "{cell} was imported with {name} {first} and {second}, from {files}"
                ));
            }
        }
    }
    Ok(())
}

impl<'a> Pool<'a> {
    /// Adds the steps of an invocation; refuses all of them where one does not agree.
    pub(crate) fn add(&mut self, run: &[&'a Summary]) -> Result<()> {
        self.check(run)?;
        self.take(run);
        Ok(())
    }

    /// Its hosts may change; with those of each other invocation it must share a value.
    pub(crate) fn check(&self, run: &[&'a Summary]) -> Result<()> {
        self.check_settings(run)?;
        for (here, new) in self.hosts.iter().zip(of_hosts(run)) {
            let shared = here.keys().any(|value| new.contains_key(value));
            if let Some((one, other)) = here.values().next().zip(new.values().next())
                && !shared
            {
                refuse(one, other, Weight::Noted)?;
            }
        }
        Ok(())
    }

    /// Checks the settings alone: the steps are of an invocation that is here, and its hosts may change.
    pub(crate) fn check_settings(&self, run: &[&'a Summary]) -> Result<()> {
        let own = run.iter().map(|step| (judge::known_of(step), *step));
        let mut firsts: Vec<&(Knowledge, &Summary)> = self.firsts.iter().collect();
        let own: Vec<(Knowledge, &Summary)> = own.collect();
        for one in &own {
            for (_, first) in &firsts {
                refuse(first, one.1, Weight::Host)?;
            }
            if !firsts.iter().any(|(known, _)| *known == one.0) {
                firsts.push(one);
            }
        }
        Ok(())
    }

    pub(crate) fn take(&mut self, run: &[&'a Summary]) {
        for step in run {
            let known = judge::known_of(step);
            if !self.firsts.iter().any(|(other, _)| *other == known) {
                self.firsts.push((known, step));
            }
        }
        let new = of_hosts(run);
        if self.hosts.is_empty() {
            self.hosts = new;
            return;
        }
        for (here, new) in self.hosts.iter_mut().zip(new) {
            if here.is_empty() {
                *here = new;
            } else if !new.is_empty() {
                here.retain(|value, _| new.contains_key(value));
            }
        }
    }
}

fn of_hosts<'a>(steps: &[&'a Summary]) -> Vec<Values<'a>> {
    let mut all: Vec<Values> = Vec::new();
    for step in steps {
        let values = judge::of_hosts(step);
        all.resize_with(values.len(), Values::new);
        for (held, value) in all.iter_mut().zip(values) {
            held.extend(value.map(|value| (value, *step)));
        }
    }
    all
}

fn refuse(first: &Summary, second: &Summary, than: Weight) -> Result<()> {
    let mut differences = judge::differences(first, second);
    differences.retain(|difference| difference.weight > than);
    if differences.is_empty() { Ok(()) } else { Err(refusal(first, second, &differences)) }
}

fn refusal(first: &Summary, second: &Summary, differences: &[Difference]) -> Error {
    let [one, other] = [first, second].map(|step| {
        format!("{} ({})", clip(&step.step_id, VALUE_MAX), clip(&step.started_at, VALUE_MAX))
    });
    let (label, workload) = (clip(&first.label, VALUE_MAX), clip(&first.workload.name, VALUE_MAX));
    let at = terms::clients(first.plan.clients);
    let named = differences.iter().map(both_values).collect();
    let named = terms::named(named, DIFFERENCES_MAX, "\n  ");
    let newest = if first.run_id == second.run_id { NEWEST_SETTINGS } else { NEWEST };
    Error::data(format!(
        "'{label}' of {workload} at {at} was measured with different settings, in steps {one} and \
         {other}:\n  {named}"
    ))
    .hint(newest)
    .hint("or give each configuration a label of its own (--label)")
}
