//! `loadgen run FILE`: an experiment from its servers to its tables.
//!
//! ```text
//! FILE ─▶ Profile ─▶ Experiment ─▶ legs: server taken, tables prepared, one sweep ─▶ report
//! ```

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::legs::Legs;
use super::{Invocation, conclude, existing, gate, print_data, profile_report, random, resume};
use crate::error::{Error, Result, worst};
use crate::plan::experiment::{Cell, Experiment, Overrides, Part};
use crate::plan::profile::Profile;
use crate::progress::Progress;
use crate::summary::{Outcome, Summary};

/// Bytes of a profile at most: a dump that is given by mistake is not read to its end.
const PROFILE_MAX: u64 = 4 << 20;

/// Measures what a profile asks for and is not measured yet; without a seed with a random one.
pub(crate) fn run(
    file: &Path,
    mut overrides: Overrides,
    seed: Option<u64>,
    list: bool,
    mut invocation: Invocation<'_>,
) -> Result<()> {
    let profile = read(file)?;
    // Before hours of measuring, not after.
    profile_report::check(&profile)?;
    existing::check(&profile)?;
    // 53 bits, so that every reader of JSON sees the same number.
    overrides.seed = seed.map_or_else(|| random().map(|seed| seed >> 11), Ok)?;
    let mut experiment = Experiment::new(&profile, &overrides)?;
    // Not there yet before the first step.
    let earlier = if overrides.out.is_dir() {
        let paths = std::slice::from_ref(&overrides.out);
        resume::find(paths, &experiment, overrides.force, &mut invocation.progress)?
    } else {
        resume::Earlier::default()
    };
    if let (Some(run), None) = (&earlier.run, seed) {
        // One seed for all labels, also for those that are measured later.
        overrides.seed = run.seed;
        experiment = Experiment::new(&profile, &overrides)?;
    }
    let wanted = |cell: &Cell| !earlier.has(&cell.key);
    if list {
        return print_data(&experiment.list(wanted));
    }
    let todo = experiment.legs(wanted);
    say_what_is_there(&experiment, &earlier, &mut invocation.progress);
    let (mut measured, mut errors) = (Vec::new(), Vec::new());
    if !todo.is_empty() {
        let done = earlier.done.values();
        let mut legs = Legs::new(&experiment, &mut invocation, earlier.run.as_ref(), done)?;
        errors = legs.run(&todo);
        measured = legs.summaries;
    }
    let mut progress = invocation.progress;
    progress.clear();
    let mut fell = earlier.fell;
    fell.extend(measured.iter().filter(|s| s.outcome != Outcome::Completed).cloned());
    let all: Vec<Summary> = together(earlier.done, measured).into_values().collect();
    let printed = profile_report::print(&experiment, &all);
    let judged = judge(&experiment, &all.iter().chain(&fell).collect::<Vec<_>>(), &mut progress);
    // Those of the legs are told already.
    conclude([worst(errors).map_or(Ok(()), Err), printed, judged], &mut progress)
}

/// The profile in a file.
pub(super) fn read(path: &Path) -> Result<Profile> {
    let origin = path.display().to_string();
    let refused =
        |why: &dyn Display| Error::usage(format!("{origin}: {why}")).hint("name a profile");
    let mut text = String::new();
    let file = File::open(path).map_err(|e| refused(&e))?;
    file.take(PROFILE_MAX + 1).read_to_string(&mut text).map_err(|e| refused(&e))?;
    if text.len() as u64 > PROFILE_MAX {
        return Err(refused(&format!("it is larger than {} MiB", PROFILE_MAX >> 20)));
    }
    Profile::parse(&text, &origin)
}

/// Holds the tables of all runs against their gates: what did not complete hides no errors.
fn judge(experiment: &Experiment, all: &[&Summary], progress: &mut Progress) -> Result<()> {
    let of = |part: &Part| all.iter().copied().filter(|s| s.workload.name == part.title).collect();
    let parts = experiment.parts.iter();
    gate::check(parts.map(|part| (of(part), part.gates.as_slice())), progress)
}

fn say_what_is_there(experiment: &Experiment, earlier: &resume::Earlier, progress: &mut Progress) {
    let of = experiment.cells.len();
    let done = experiment.cells.iter().filter(|cell| earlier.has(&cell.key)).count();
    if done == of {
        progress.note(&format!("all {of} steps are measured already"));
    } else if done > 0 {
        progress.note(&format!("{done} of {of} steps are measured already and skipped"));
    }
}

/// What is there of each cell: its newest summary.
pub(super) fn together(
    mut done: HashMap<String, Summary>,
    measured: Vec<Summary>,
) -> HashMap<String, Summary> {
    for summary in measured {
        let key = summary.experiment.as_ref().map(|experiment| experiment.key.clone());
        if let (Some(key), Outcome::Completed) = (key, summary.outcome) {
            done.insert(key, summary);
        }
    }
    done
}
