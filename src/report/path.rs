//! The path that a search for the highest rate took, and what it found.

use super::gate::quantity_shown;
use super::notes::{as_one, mark, signs};
use super::page::{Page, Rows, number};
use super::settings::label;
use super::{Format, escape, write};
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

/// Footnotes: codes with what they say, in the order in which probes need them.
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
    found.iter().for_each(|search| super::notes::push_new(&mut clients, search.clients));
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
        let remarks: String = remarks.iter().map(|remark| format!("; {remark}")).collect();
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
