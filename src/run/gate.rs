//! Conditions of the command line and of profiles, held against what was measured.

use crate::error::{Error, Kind, Result};
use crate::progress::Progress;
use crate::report::{self, Gates, Options};
use crate::summary::Summary;
use crate::terms::Gate;

/// Judges what a sweep or the runs of a profile measured, each by its own conditions.
///
/// # Errors
///
/// Gate (99): one failed. Undecided (98): one is not known. Each is named with its number.
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

/// The error of gates that failed or are undecided.
pub(crate) fn verdict(gates: &Gates) -> Result<()> {
    let all = gates.held + gates.failed.len() + gates.undecided.len();
    let listed = |what: &str, lines: &[String]| {
        let lines: Vec<String> = lines.iter().map(|line| format!("\n  {line}")).collect();
        let lines = lines.concat();
        format!("{what}:{lines}")
    };
    let undecided = || {
        let what = format!("{} of {all} gates are undecided", gates.undecided.len());
        listed(&what, &gates.undecided)
    };
    if gates.failed.is_empty() && gates.undecided.is_empty() {
        return Ok(());
    }
    if gates.failed.is_empty() {
        return Err(Error::new(Kind::Undecided, undecided()).hint(if gates.scarce {
            "a longer --time gives more answers to judge by"
        } else {
            "loadgen report has a footnote for each run that did not complete"
        }));
    }
    let mut text = listed(&format!("{} of {all} gates failed", gates.failed.len()), &gates.failed);
    if !gates.undecided.is_empty() {
        text = format!("{text}\n{}", undecided());
    }
    Err(Error::new(Kind::Gate, text))
}
