//! The cells of an experiment in the order of execution: their keys, which of them are wanted, and
//! the legs that they make.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Beside, Cell, Dataset, Experiment, Leg, Part, Source, Subject, What};
use crate::error::{Error, Result};
use crate::plan::profile::Turns;
use crate::plan::timed::{LoadSpec, SuiteSpec};
use crate::plan::value::Clients;
use crate::plan::{Plan, shuffle};
use crate::workload::random::{mix, name_part, seed_of};

/// Makes all cells: labels and repeats as the profile wants them, in each the runs.
pub(super) fn cells(experiment: &Experiment, seed: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (repeat, subject) in visits(experiment, seed) {
        for (part, of_part) in experiment.parts.iter().enumerate() {
            if repeat > of_part.repeats || !of_part.subjects.contains(&subject) {
                continue;
            }
            let steps = match &of_part.what {
                What::Sweep(plan, _) => plan.cells(repeat),
                What::Load(_) | What::Suite(_) => vec![(1, None)],
            };
            for (clients, rate) in steps {
                let server = &experiment.subjects[subject];
                let key = key(&experiment.name, server, of_part, (clients, rate, repeat));
                cells.push(Cell { subject, part, clients, rate, repeat, key });
            }
        }
    }
    cells
}

pub(super) fn count(part: &Part) -> u64 {
    let steps = match &part.what {
        What::Sweep(plan, _) => plan.count_steps(),
        What::Load(_) | What::Suite(_) => u64::from(part.repeats),
    };
    steps.saturating_mul(part.subjects.len() as u64)
}

/// Orders labels and repeats. But for [`Turns::InTurn`], repeats are outermost, so that drift and
/// the luck of a restart do not hide inside a cell.
fn visits(experiment: &Experiment, seed: u64) -> Vec<(u32, usize)> {
    let repeats = experiment.parts.iter().map(|part| part.repeats).max().unwrap_or(0);
    let subjects = 0..experiment.subjects.len();
    if experiment.order == Turns::InTurn {
        return subjects.flat_map(|s| (1..=repeats).map(move |repeat| (repeat, s))).collect();
    }
    let in_repeat = |repeat: u32| {
        let mut subjects: Vec<usize> = subjects.clone().collect();
        match experiment.order {
            // What comes later in each repeat would otherwise be the same label every time.
            Turns::Interleaved if repeat.is_multiple_of(2) => subjects.reverse(),
            Turns::Shuffled => shuffle(&mut subjects, seed_of(&[seed, u64::from(repeat)])),
            Turns::InTurn | Turns::Interleaved => {}
        }
        subjects.into_iter().map(move |subject| (repeat, subject))
    };
    (1..=repeats).flat_map(in_repeat).collect()
}

/// Groups the cells that are wanted, in the order of execution.
pub(super) fn legs(experiment: &Experiment, wanted: impl Fn(&Cell) -> bool) -> Vec<Leg> {
    let mut legs: Vec<Leg> = Vec::new();
    for (at, cell) in experiment.cells.iter().enumerate().filter(|(_, cell)| wanted(cell)) {
        let Cell { subject, part, repeat, .. } = *cell;
        if let Some(last) = legs.last_mut()
            && (last.subject, last.repeat, last.part) == (subject, repeat, part)
        {
            last.cells.push(at);
            continue;
        }
        let mut leg =
            Leg { subject, part, repeat, cells: vec![at], fresh: true, written_by: Vec::new() };
        if let Some(last) = legs.last()
            && last.subject == subject
            && (last.repeat == repeat || !experiment.restart)
        {
            let mut written_by = last.written_by.clone();
            let before = &experiment.parts[last.part];
            written_by.extend(before.writes().then(|| before.title.clone()));
            leg.fresh = experiment.subjects[subject].renews() && !written_by.is_empty();
            leg.written_by = if leg.fresh { Vec::new() } else { written_by };
        }
        legs.push(leg);
    }
    legs
}

type Called = fn(&Experiment, &Cell) -> Vec<String>;

/// Names what `--only` picks cells by; a label goes with or without its program's name.
const KEYS: [(&str, Called); 4] = [
    ("label", |experiment, cell| {
        let subject = &experiment.subjects[cell.subject];
        vec![subject.label.clone(), subject.name.clone()]
    }),
    ("workload", |experiment, cell| vec![experiment.parts[cell.part].title.clone()]),
    ("clients", |_, cell| vec![cell.clients.to_string()]),
    ("repeat", |_, cell| vec![cell.repeat.to_string()]),
];

/// `--only KEY=VALUE,…`: a part of the cells; of several all must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Only {
    /// A place in [`KEYS`].
    key: usize,
    values: Vec<String>,
}

impl std::str::FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = || "label=…, workload=…, clients=… or repeat=…".to_owned();
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let key = KEYS.iter().position(|(known, _)| *known == name).ok_or_else(form)?;
        let values = if ["clients", "repeat"].contains(&name) {
            value.parse::<Clients>()?.0.iter().map(u32::to_string).collect()
        } else {
            value.split(',').map(|name| name.trim().to_owned()).collect()
        };
        Ok(Only { key, values })
    }
}

/// Keeps the cells that all conditions let through.
///
/// # Errors
///
/// Usage: a value that is in no cell.
pub(super) fn keep(experiment: &mut Experiment, conditions: &[Only]) -> Result<()> {
    let mut cells = experiment.cells.clone();
    for Only { key, values } in conditions {
        let (name, of) = KEYS[*key];
        let known = experiment.cells.iter().flat_map(|cell| of(experiment, cell));
        let known: BTreeSet<String> = known.filter(|value| !value.is_empty()).collect();
        if let Some(value) = values.iter().find(|value| !known.contains(*value)) {
            let message = format!("--only {name}={value}: the profile has no such {name}");
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::usage(message).hint(format!("it has {known}")));
        }
        cells.retain(|cell| of(experiment, cell).iter().any(|value| values.contains(value)));
    }
    experiment.cells = cells;
    if experiment.cells.is_empty() {
        return Err(Error::usage("--only leaves nothing to measure"));
    }
    Ok(())
}

/// Goes up where [`ResumeKey`] changes its meaning.
const VERSION: u32 = 2;

/// What makes two measurements the same, in every invocation. Repeats and numbers of clients may be
/// added later: each is in the key of its own cells only.
#[derive(Serialize)]
struct ResumeKey<'a> {
    version: u32,
    profile: &'a str,
    label: &'a str,
    server: Option<ServerKey<'a>>,
    run: RunKey<'a>,
    clients: u32,
    rate: Option<f64>,
    repeat: u32,
}

/// A private server as loadgen sets it up; of one that is there only its owner knows.
#[derive(Serialize)]
struct ServerKey<'a> {
    program: Option<String>,
    options: &'a [(String, Option<String>)],
}

#[derive(Serialize)]
enum RunKey<'a> {
    Sweep { plan: &'a Plan, dataset: &'a Dataset, commands: &'a [Beside] },
    Load { title: &'a str, load: &'a LoadSpec },
    Suite { title: &'a str, suite: &'a SuiteSpec },
}

fn key(
    profile: &str,
    subject: &Subject,
    part: &Part,
    (clients, rate, repeat): (u32, Option<f64>, u32),
) -> String {
    let server = match &subject.source {
        Source::Existing(_) => None,
        Source::Sandbox(private) => Some(ServerKey {
            program: private.program.as_ref().map(|path| path.display().to_string()),
            options: &private.options,
        }),
    };
    let (title, label) = (part.title.as_str(), subject.label.as_str());
    let run = match &part.what {
        What::Sweep(plan, dataset) => RunKey::Sweep { plan, dataset, commands: &part.commands },
        What::Load(load) => RunKey::Load { title, load },
        What::Suite(suite) => RunKey::Suite { title, suite },
    };
    let key = ResumeKey { version: VERSION, profile, label, server, run, clients, rate, repeat };
    let text = serde_json::to_string(&key).expect("its texts and numbers are JSON");
    format!("{VERSION}-{:016x}", mix(name_part(&text)))
}

/// Tells a key that this version makes from an earlier one's.
pub(crate) fn is_current(key: &str) -> bool {
    key.split_once('-').is_some_and(|(version, _)| version == VERSION.to_string())
}
