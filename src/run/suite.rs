//! One suite of external commands → one summary.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::plan::timed::SuiteSpec;
use crate::progress::Progress;
use crate::run::sweep::random;
use crate::run::timed::{Measured, Scene, Turn, count};
use crate::suite;
use crate::summary;

/// Runs the commands once; what they print goes to a new file in `dir`.
///
/// # Errors
///
/// Before the first test. What fails later is in [`Measured::error`].
pub async fn measure(
    scene: &Scene<'_>,
    spec: &SuiteSpec,
    turn: &Turn,
    dir: &Path,
    progress: &mut Progress,
) -> Result<Measured> {
    let start = scene.start().await?;
    let (name, output) = output(dir, &scene.identity.label, spec, turn)?;
    let (began, started_at) = (Instant::now(), jiff::Timestamp::now());
    // It blocks this thread, and there is nothing else for it to do.
    let mut ran = suite::run(spec, &scene.target, &output, scene.stop, progress)?;
    let finish = scene.finish(&start, began).await;
    let title = Some(turn.title.clone().unwrap_or_else(|| format!("suite-{}", spec.name)));
    let mut summary =
        scene.frame(&Turn { title, ..turn.clone() }, start, finish, &mut ran.error)?;
    let sum = |of: fn(&summary::SuiteTest) -> f64| ran.tests.iter().map(of).sum::<f64>();
    summary.started_at = started_at.to_string();
    summary.measured_s = sum(|test| test.wall_s);
    let good = ran.tests.iter().filter(|test| test.status == "ok").count() as u64;
    count(&mut summary, good, 0, sum(|test| test.user_s), sum(|test| test.sys_s));
    summary.suite = Some(summary::Suite { tests: ran.tests, output: Some(name) });
    Ok(Measured { summary, error: ran.error })
}

/// A new file beside the summaries.
fn output(dir: &Path, label: &str, spec: &SuiteSpec, turn: &Turn) -> Result<(String, File)> {
    let safe = |text: &str| -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "+-.=@".contains(c) { c } else { '_' };
        text.chars().take(64).map(safe).collect()
    };
    let name = format!(
        "{}_suite-{}_n{}_{:016x}.output",
        safe(label),
        safe(&spec.name),
        turn.repeat,
        random()?
    );
    let file = OpenOptions::new().write(true).create_new(true).open(dir.join(&name));
    let file = file.map_err(|e| Error::failed(format!("{}: {e}", dir.join(&name).display())))?;
    Ok((name, file))
}
