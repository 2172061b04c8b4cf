//! The cells of an experiment in the order of execution, and the legs that they make.

use super::key::key;
use super::{Cell, Experiment, Leg, Part, What};
use crate::plan::profile::Turns;
use crate::plan::shuffle;
use crate::workload::random::seed_of;

/// Makes all cells: labels and repeats as the profile wants them, in each the runs.
pub(super) fn cells(experiment: &Experiment, seed: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (repeat, subject) in visits(experiment, seed) {
        for (part, of_part) in experiment.parts.iter().enumerate() {
            if repeat > of_part.repeats || !of_part.subjects.contains(&subject) {
                continue;
            }
            for (clients, rate) in steps(of_part, repeat) {
                let server = &experiment.subjects[subject];
                let key = key(&experiment.name, server, of_part, (clients, rate, repeat));
                cells.push(Cell { subject, part, clients, rate, repeat, key });
            }
        }
    }
    cells
}

/// Counts the cells of a part without making them.
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

/// Lists the numbers of clients and the rates in the order of one repeat.
fn steps(part: &Part, repeat: u32) -> Vec<(u32, Option<f64>)> {
    match &part.what {
        What::Sweep(plan, _) => {
            let steps = plan.steps().into_iter().filter(|step| step.repeat == repeat);
            steps.map(|step| (step.clients, step.rate)).collect()
        }
        What::Load(_) | What::Suite(_) => vec![(1, None)],
    }
}

/// Groups the cells that are wanted, in the order of execution.
pub(super) fn legs(experiment: &Experiment, wanted: impl Fn(&Cell) -> bool) -> Vec<Leg> {
    let mut legs: Vec<Leg> = Vec::new();
    for (at, cell) in experiment.cells.iter().enumerate().filter(|(_, cell)| wanted(cell)) {
        if let Some(last) = legs.last_mut()
            && (last.subject, last.repeat, last.part) == (cell.subject, cell.repeat, cell.part)
        {
            last.cells.push(at);
            continue;
        }
        let mut leg = Leg {
            subject: cell.subject,
            part: cell.part,
            repeat: cell.repeat,
            cells: vec![at],
            fresh: true,
            written_by: Vec::new(),
        };
        if let Some(last) = legs.last()
            && last.subject == cell.subject
            && (last.repeat == cell.repeat || !experiment.restart)
        {
            let mut written_by = last.written_by.clone();
            let before = &experiment.parts[last.part];
            written_by.extend(before.writes().then(|| before.title.clone()));
            leg.fresh = experiment.subjects[cell.subject].renews() && !written_by.is_empty();
            leg.written_by = if leg.fresh { Vec::new() } else { written_by };
        }
        legs.push(leg);
    }
    legs
}
