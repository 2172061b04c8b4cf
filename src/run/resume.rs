//! What is measured already: summaries of earlier invocations of the same experiment.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use crate::error::{Error, Kind, Result};
use crate::plan::experiment::{Experiment, is_current};
use crate::progress::Progress;
use crate::summary::{self, Outcome, Summary};

/// Earlier invocations.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The newest completed summary of each cell, by its key.
    pub(super) done: HashMap<String, Summary>,
    /// Steps of cells that did not complete.
    pub(super) fell: Vec<Summary>,
    /// The run that is continued.
    pub(super) run: Option<Continued>,
}

/// An earlier run.
#[derive(Debug, Clone)]
pub(super) struct Continued {
    pub(super) id: String,
    /// Of its keys.
    pub(super) seed: u64,
    /// The highest number of its steps.
    pub(super) last_step: u32,
}

impl Earlier {
    /// Whether a cell is measured.
    pub(super) fn has(&self, key: &str) -> bool {
        self.done.contains_key(key)
    }
}

/// Looks through files and directories of summaries; what is none is named and left out.
///
/// # Errors
///
/// One of them cannot be read. Data, without `force`: an earlier version made other keys.
pub(super) fn find(
    paths: &[PathBuf],
    experiment: &Experiment,
    force: bool,
    progress: &mut Progress,
) -> Result<Earlier> {
    let loaded = match summary::load(paths, true) {
        Ok(loaded) => loaded,
        // No summaries are no error here.
        Err(error) if error.kind() == Kind::Data => return Ok(Earlier::default()),
        Err(error) => return Err(error),
    };
    for (path, reason) in &loaded.skipped {
        progress.warn(&format!("skipped {}: {reason}", path.display()));
    }
    let wanted: HashSet<&str> = experiment.all.iter().map(|cell| cell.key.as_str()).collect();
    let key = |summary: &Summary| {
        let key = &summary.experiment.as_ref()?.key;
        wanted.contains(key.as_str()).then(|| key.clone())
    };
    let all: Vec<Summary> = loaded.summaries.into_iter().map(|(_, summary)| summary).collect();
    let older = |summary: &&Summary| {
        let of = summary.experiment.as_ref();
        of.is_some_and(|of| of.profile == experiment.name && !is_current(&of.key))
    };
    let older = all.iter().filter(older).count();
    if older > 0 && !force {
        let name = &experiment.name;
        return Err(Error::data(format!(
            "'{name}' was measured here by an earlier version of loadgen, which gave cells other \
             keys (summaries: {older})"
        ))
        .hint("another directory (--out), or loadgen run --force to measure them again"));
    }
    let newest = all.iter().filter(|s| key(s).is_some()).max_by_key(|s| &s.started_at);
    let number = |summary: &Summary| summary.step_id.rsplit('-').next()?.parse::<u32>().ok();
    let run = newest.map(|newest| {
        let of_run = all.iter().filter(|summary| summary.run_id == newest.run_id);
        Continued {
            id: newest.run_id.clone(),
            seed: newest.plan.seed,
            last_step: of_run.filter_map(number).max().unwrap_or(0),
        }
    });
    let mut done: HashMap<String, Summary> = HashMap::new();
    let mut fell = Vec::new();
    for summary in all {
        let Some(key) = key(&summary) else { continue };
        if summary.outcome != Outcome::Completed {
            fell.push(summary);
            continue;
        }
        if done.get(&key).is_none_or(|other| other.started_at < summary.started_at) {
            done.insert(key, summary);
        }
    }
    Ok(Earlier { done, fell, run })
}
