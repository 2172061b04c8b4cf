//! The path that a search for the highest rate took, and what it found.

use super::alike::as_one;
use super::layout::label;
use super::notes::mark;
use super::number::number;
use super::page::{Page, Sheet, shown};
use super::text::text;
use super::{Gate, escape};
use crate::stats;
use crate::summary::{Summary, VerdictKind, Warning};
use crate::terms;

/// One step of a search.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Concurrent clients.
    pub clients: u32,
    /// Which of the searches, from 1.
    pub search: u32,
    /// Ops a second asked for.
    pub rate: f64,
    /// Ops a second that were answered well.
    pub achieved: f64,
    /// The numbers of the conditions, in their order.
    pub numbers: Vec<Option<f64>>,
    /// Whether all of them hold, and the rate was kept; nothing where that is not known.
    pub held: Option<bool>,
    /// Why it did not, besides the numbers.
    pub why: Option<String>,
    /// What a reader of its numbers must know.
    pub remarks: Vec<Warning>,
    /// Whether they are the server's.
    pub verdict: Option<VerdictKind>,
}

/// What one search found.
#[derive(Debug, Clone)]
pub struct Search {
    /// Concurrent clients.
    pub clients: u32,
    /// The highest rate that holds; nothing where none does.
    pub rate: Option<f64>,
    /// What must be said of it.
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
        shown(gate.condition.clone(), move |probe: &&Probe| {
            probe.numbers[at].map(|value| match value {
                value if value.is_infinite() => "failed".to_owned(),
                value => gate.quantity.shown(value),
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
    let level: Vec<&str> = slo.iter().map(|gate| gate.condition.as_str()).collect();
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
struct Notes(Vec<(String, Vec<String>)>);

impl Notes {
    fn of(probes: &[Probe]) -> Notes {
        let mut notes: Vec<(String, Vec<String>)> = Vec::new();
        for remark in probes.iter().flat_map(|probe| &probe.remarks) {
            match notes.iter_mut().find(|(code, _)| *code == remark.code) {
                Some((_, messages)) => messages.push(remark.message.clone()),
                None => notes.push((remark.code.clone(), vec![remark.message.clone()])),
            }
        }
        Notes(notes)
    }

    /// The signs of these probes, each after a blank.
    fn marks(&self, probes: &[&Probe]) -> String {
        let has = |code: &str| {
            probes.iter().any(|probe| probe.remarks.iter().any(|remark| remark.code == code))
        };
        let marked = self.0.iter().enumerate().filter(|(_, (code, _))| has(code));
        marked.flat_map(|(at, _)| [" ".to_owned(), mark(at)]).collect()
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().enumerate().map(|(at, (_, messages))| {
            let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
            format!("{} {}", mark(at), as_one(&messages))
        })
    }
}

/// A line for each number of clients, in the order of the searches, with the signs of the steps at
/// the rates that were found.
fn below(found: &[Search], probes: &[Probe], level: &str, notes: &Notes) -> Vec<String> {
    let mut clients: Vec<u32> = Vec::new();
    for search in found {
        if !clients.contains(&search.clients) {
            clients.push(search.clients);
        }
    }
    let mut lines = Vec::new();
    for clients in clients {
        let here: Vec<&Search> = found.iter().filter(|s| s.clients == clients).collect();
        let rates: Vec<f64> = here.iter().filter_map(|search| search.rate).collect();
        let of = match (stats::spread(&rates), here.len()) {
            (None, _) => format!("no rate held {level}"),
            (Some(_), 1) => format!("{}/s", rates.first().copied().unwrap_or_default()),
            (Some(spread), n) => format!(
                "{}/s, the median of {n} searches ({} to {}{})",
                number(spread.median, usize::from(spread.median < 100.0)),
                spread.min,
                spread.max,
                if spread.n < n { format!("; {} found none", n - spread.n) } else { String::new() }
            ),
        };
        let mut remarks: Vec<&str> =
            here.iter().flat_map(|search| &search.remarks).map(String::as_str).collect();
        remarks.dedup();
        let remarks: Vec<String> = remarks.iter().map(|remark| format!("; {remark}")).collect();
        let remarks = remarks.concat();
        let behind: Vec<&Probe> = (1..)
            .zip(&here)
            .flat_map(|(search, here)| {
                probes.iter().filter(move |probe| {
                    (probe.clients, probe.search) == (clients, search)
                        && here.rate.is_some_and(|rate| rate.total_cmp(&probe.rate).is_eq())
                })
            })
            .collect();
        lines.push(format!("{}: {of}{remarks}{}", terms::clients(clients), notes.marks(&behind)));
    }
    lines
}
