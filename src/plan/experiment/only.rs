//! `--only KEY=VALUE,…`: a part of the cells.

use std::collections::BTreeSet;

use super::{Cell, Experiment, Subject};
use crate::error::{Error, Result};
use crate::plan::value::Clients;

/// One condition; of several all must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Only {
    /// These labels, with or without their program's name.
    Label(Vec<String>),
    /// These runs, by the title of their table.
    Workload(Vec<String>),
    Clients(Vec<u32>),
    Repeat(Vec<u32>),
}

impl std::str::FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = || "label=…, workload=…, clients=… or repeat=…".to_owned();
        let (key, value) = text.split_once('=').ok_or_else(form)?;
        let numbers = |text: &str| text.parse::<Clients>().map(|list| list.0);
        let names = || value.split(',').map(|name| name.trim().to_owned()).collect();
        match key {
            "label" => Ok(Only::Label(names())),
            "workload" => Ok(Only::Workload(names())),
            "clients" => Ok(Only::Clients(numbers(value)?)),
            "repeat" => {
                numbers(value).map(Only::Repeat).map_err(|e| e.replace("clients", "repeats"))
            }
            _ => Err(form()),
        }
    }
}

/// Keeps the cells that all conditions let through.
///
/// # Errors
///
/// Usage: a value that is in no cell.
pub(super) fn keep(experiment: &mut Experiment, conditions: &[Only]) -> Result<()> {
    for only in conditions {
        check_values(experiment, only)?;
    }
    let cells = std::mem::take(&mut experiment.cells);
    let kept = |cell: &Cell| conditions.iter().all(|only| holds(experiment, only, cell));
    experiment.cells = cells.into_iter().filter(kept).collect();
    if experiment.cells.is_empty() {
        return Err(Error::usage("--only leaves nothing to measure"));
    }
    Ok(())
}

fn holds(experiment: &Experiment, only: &Only, cell: &Cell) -> bool {
    match only {
        Only::Label(labels) => {
            let subject = &experiment.subjects[cell.subject];
            labels.iter().any(|label| *label == subject.label || *label == subject.name)
        }
        Only::Workload(titles) => titles.contains(&experiment.parts[cell.part].title),
        Only::Clients(clients) => clients.contains(&cell.clients),
        Only::Repeat(repeats) => repeats.contains(&cell.repeat),
    }
}

fn check_values(experiment: &Experiment, only: &Only) -> Result<()> {
    let numbers = |list: &[u32]| list.iter().map(u32::to_string).collect::<Vec<String>>();
    let (key, wanted, known): (&str, Vec<String>, BTreeSet<String>) = match only {
        Only::Label(labels) => {
            let both = |s: &Subject| [s.label.clone(), s.name.clone()];
            ("label", labels.clone(), experiment.subjects.iter().flat_map(both).collect())
        }
        Only::Workload(titles) => {
            let known = experiment.parts.iter().map(|part| part.title.clone());
            ("workload", titles.clone(), known.collect())
        }
        Only::Clients(clients) => {
            let known = experiment.cells.iter().map(|cell| cell.clients.to_string());
            ("clients", numbers(clients), known.collect())
        }
        Only::Repeat(repeats) => {
            let known = experiment.cells.iter().map(|cell| cell.repeat.to_string());
            ("repeat", numbers(repeats), known.collect())
        }
    };
    match wanted.iter().find(|value| !known.contains(*value)) {
        Some(value) => {
            let known: Vec<String> = known.into_iter().filter(|k| !k.is_empty()).collect();
            let message = format!("--only {key}={value}: the profile has no such {key}");
            Err(Error::usage(message).hint(format!("it has {}", known.join(", "))))
        }
        None => Ok(()),
    }
}
