//! The path that a search for the highest rate took, and what it found.

use super::number::number;
use super::page::{self, Body, Grid, Page};
use super::{Format, Gate, escape, text};
use crate::error::Result;
use crate::stats;
use crate::summary::Summary;

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
///
/// # Errors
///
/// None: the text needs no writer.
pub fn path(first: &Summary, probes: &[Probe], found: &[Search], slo: &[Gate]) -> Result<String> {
    let mut head: Vec<String> = ["clients", "search", "rate", "achieved"].map(str::to_owned).into();
    head.extend(slo.iter().map(|gate| gate.condition.clone()));
    head.push("held".to_owned());
    let last = head.len() - 1;
    let row = |probe: &Probe| {
        let mut cells = vec![
            probe.clients.to_string(),
            probe.search.to_string(),
            probe.rate.to_string(),
            number(probe.achieved, usize::from(probe.achieved < 100.0)),
        ];
        cells.extend(slo.iter().zip(&probe.numbers).map(|(gate, value)| {
            value.map_or_else(|| text::NOTHING.to_owned(), |value| gate.quantity.shown(value))
        }));
        let held = match probe.held {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        };
        let why = probe.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        cells.push(format!("{held}{why}"));
        cells
    };
    let level: Vec<&str> = slo.iter().map(|gate| gate.condition.as_str()).collect();
    let level = level.join(" and ");
    let page = Page {
        title: vec![format!(
            "{}: the highest rate that holds {level}; {}",
            escape::line(&first.workload.name),
            text::label(&first.label)
        )],
        body: Body::Grid(Grid {
            head,
            texts: vec![last],
            rows: probes.iter().map(row).collect(),
            ..Grid::default()
        }),
        below: below(found, &level),
        records: Vec::new(),
    };
    page::render(&[page], "path", Format::Text)
}

/// A line for each number of clients, in the order of the searches.
fn below(found: &[Search], level: &str) -> Vec<String> {
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
        let noun = if clients == 1 { "client" } else { "clients" };
        let of = match (stats::spread(&rates), here.len()) {
            (None, _) => format!("no rate holds {level}"),
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
        lines.push(format!("{clients} {noun}: {of}{remarks}"));
    }
    lines
}
