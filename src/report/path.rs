//! The path that a search for the highest rate took, and what it found.

use super::alike::as_one;
use super::escape;
use super::gate::quantity_shown;
use super::layout::label;
use super::notes::mark;
use super::number::number;
use super::page::{Page, Sheet, shown};
use super::text::text;
use crate::stats;
use crate::summary::{Summary, VerdictKind, Warning};
use crate::terms::{self, Gate};

#[derive(Debug, Clone)]
pub struct Probe {
    pub clients: u32,
    /// Which of the searches, from 1.
    pub search: u32,
    pub rate: f64,
    /// Ops a second that were answered well.
    pub achieved: f64,
    /// The numbers of the conditions, in their order.
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

/// The table of the probes, with a line below for each number of clients. `first` is the first
/// step's summary.
pub fn path(first: &Summary, probes: &[Probe], found: &[Search], slo: &[Gate]) -> String {
    let notes = Notes::of(probes);
    let mut columns = vec![
        shown("clients", |probe: &&Probe| probe.clients),
        shown("search", |probe: &&Probe| probe.search),
        shown("rate", |probe: &&Probe| probe.rate.to_string()),
        shown("achieved", |p: &&Probe| (p.achieved, usize::from(p.achieved < 100.0))),
    ];
    columns.extend(slo.iter().enumerate().map(|(at, gate)| {
        shown(gate.text.clone(), move |probe: &&Probe| {
            probe.numbers[at].map(|value| match value {
                value if value.is_infinite() => "failed".to_owned(),
                value => quantity_shown(gate.quantity, value),
            })
        })
    }));
    let held = |probe: &&Probe| {
        let held = match probe.held {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        };
        let why = probe.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        format!("{held}{why}{}", notes.marks(&[probe]))
    };
    columns.push(shown("held", held).left());
    let level: Vec<&str> = slo.iter().map(|gate| gate.text.as_str()).collect();
    let level = level.join(" and ");
    let mut below = below(found, probes, &level, &notes);
    below.extend(notes.lines());
    let title = format!(
        "{}: the highest rate that holds {level}; {}",
        escape::line(&first.workload.name),
        label(&first.label)
    );
    text(&[Page::of(title, Sheet::of(columns, probes), below)], None)
}

/// Footnotes of the probes by code, in the order in which these need them.
struct Notes<'a>(Vec<(&'a str, Vec<&'a str>)>);

impl Notes<'_> {
    fn of(probes: &[Probe]) -> Notes<'_> {
        let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
        for remark in probes.iter().flat_map(|probe| &probe.remarks) {
            match notes.iter_mut().find(|(code, _)| *code == remark.code) {
                Some((_, messages)) => messages.push(&remark.message),
                None => notes.push((&remark.code, vec![&remark.message])),
            }
        }
        Notes(notes)
    }

    /// Returns the signs of these probes, each after a blank.
    fn marks(&self, probes: &[&Probe]) -> String {
        let remarks = || probes.iter().flat_map(|probe| &probe.remarks);
        let marked = self.0.iter().enumerate();
        let marked = marked.filter(|(_, (code, _))| remarks().any(|remark| remark.code == *code));
        marked.flat_map(|(at, _)| [" ".to_owned(), mark(at)]).collect()
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let notes = self.0.iter().enumerate();
        notes.map(|(at, (_, messages))| format!("{} {}", mark(at), as_one(messages)))
    }
}

/// A line for each number of clients, in the order of the searches, with the signs of the steps at
/// the rates that were found.
fn below(found: &[Search], probes: &[Probe], level: &str, notes: &Notes) -> Vec<String> {
    let mut lines: Vec<(u32, String)> = Vec::new();
    for Search { clients, .. } in found {
        if lines.iter().any(|(known, _)| known == clients) {
            continue;
        }
        let here: Vec<&Search> = found.iter().filter(|s| s.clients == *clients).collect();
        let rates: Vec<f64> = here.iter().filter_map(|search| search.rate).collect();
        let of = match (stats::spread(&rates), here.len()) {
            (None, _) => format!("no rate held {level}"),
            (Some(one), 1) => format!("{}/s", one.median),
            (Some(spread), n) => format!(
                "{}/s, the median of {n} searches ({} to {}{})",
                number(spread.median, usize::from(spread.median < 100.0)),
                spread.min,
                spread.max,
                if spread.n < n { format!("; {} found none", n - spread.n) } else { String::new() }
            ),
        };
        let mut remarks: Vec<String> =
            here.iter().flat_map(|search| &search.remarks).map(|r| format!("; {r}")).collect();
        remarks.dedup();
        let behind = |probe: &&Probe| {
            let search = here.get((probe.search as usize).wrapping_sub(1));
            let rate = search.and_then(|search| search.rate);
            probe.clients == *clients
                && rate.is_some_and(|rate| rate.total_cmp(&probe.rate).is_eq())
        };
        let marks = notes.marks(&probes.iter().filter(behind).collect::<Vec<&Probe>>());
        let line = format!("{}: {of}{}{marks}", terms::clients(*clients), remarks.concat());
        lines.push((*clients, line));
    }
    lines.into_iter().map(|(_, line)| line).collect()
}
