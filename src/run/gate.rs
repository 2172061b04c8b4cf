//! Conditions of the command line and of profiles, held against what was measured, and steps that left
//! nothing to hold.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::error::{Error, Kind, Result, line};
use crate::progress::Progress;
use crate::report::{self, Gates, Options};
use crate::summary::{self, Record, Summary};
use crate::terms::Gate;

/// Judges what a sweep or the runs of a profile measured, each by its own conditions.
pub(crate) fn check<'a>(
    measured: impl Iterator<Item = (Vec<&'a Summary>, &'a [Gate])>,
    progress: &mut Progress,
) -> Result<()> {
    let mut all = Gates::default();
    for (summaries, gates) in measured.filter(|(_, gates)| !gates.is_empty()) {
        let judged = report::gates(&summaries, gates, &Options::default())?;
        all.held += judged.held;
        all.failed.extend(judged.failed);
        all.undecided.extend(judged.undecided);
        all.scarce |= judged.scarce;
    }
    verdict(&all)?;
    if all.held > 0 {
        progress.note(&format!("{} of {} gates hold", all.held, all.held));
    }
    Ok(())
}

pub(crate) fn verdict(gates: &Gates) -> Result<()> {
    let Gates { held, failed, undecided, scarce, .. } = gates;
    let all = held + failed.len() + undecided.len();
    let listed = |(lines, what): (&Vec<String>, &str)| {
        let n = lines.len();
        (n > 0).then(|| format!("{n} of {all} gates {what}:\n  {}", lines.join("\n  ")))
    };
    let parts = [(failed, "failed"), (undecided, "are undecided")].into_iter().filter_map(listed);
    let text = parts.collect::<Vec<_>>().join("\n");
    match (failed.is_empty(), undecided.is_empty(), scarce) {
        (true, true, _) => Ok(()),
        (false, ..) => Err(Error::new(Kind::Gate, text)),
        (.., true) => Err(Error::new(Kind::Undecided, text)
            .hint("a longer --time gives more answers to judge by")),
        (.., false) => Err(Error::new(Kind::Undecided, text)
            .hint("loadgen report has a footnote for each run that did not complete")),
    }
}

/// Steps in these directories that were begun and left no summary, a line each; with `latest` those
/// that began after all of their label.
pub(crate) fn unfinished(paths: &[PathBuf], steps: &[&Summary], latest: bool) -> Vec<String> {
    let dirs: Vec<PathBuf> = paths.iter().filter(|path| path.is_dir()).cloned().collect();
    let records = match summary::records(&dirs) {
        Ok(records) => records,
        Err(error) => return vec![error.to_string()],
    };
    let at = |text: &str| text.parse::<Timestamp>().ok();
    let counts = |record: &Record| {
        let of_label = |step: &&&Summary| record.label.as_ref().is_none_or(|l| *l == step.label);
        let newest = steps.iter().filter(of_label).filter_map(|step| at(&step.started_at)).max();
        let later = at(&record.begun_at).is_none_or(|begun| Some(begun) > newest);
        (!latest || later) && !steps.iter().any(|step| step.step_id == record.step_id)
    };
    let told = |record: &Record| {
        let label = record.label.as_ref().map_or_else(String::new, |label| format!(", {label}"));
        let what = line(&format!("{}{label}", record.what));
        format!("{what}: a step began at {} and left no summary", line(&record.begun_at))
    };
    records.iter().map(|(_, record)| record).filter(|record| counts(record)).map(told).collect()
}

pub(crate) fn decided(unfinished: &[String]) -> Result<()> {
    if unfinished.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::Undecided, unfinished.join("; "))
        .hint("its loadgen was killed, or is at work; without its .begun file it does not count"))
}
