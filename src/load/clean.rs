//! Drops exactly what prepare made.

use mysql_async::Opts;

use super::set_up::{control, drop_table};
use super::survey::Survey;
use crate::error::{Error, Result};
use crate::mysql::dataset::names;
use crate::mysql::session::Session;
use crate::mysql::target::Target;
use crate::plan::limits;
use crate::progress::Progress;
use crate::stop::Stop;

/// What cleanup did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// Tables that were dropped, by number.
    pub dropped: Vec<u32>,
    /// Tables of such names that are not prepare's, by number: they stay.
    pub left: Vec<u32>,
}

/// The numbers of the tables that carry prepare's mark, finished or not.
///
/// # Errors
///
/// Usage: no database. Server: none, or no answer.
pub async fn marked(target: &Target, opts: &Opts) -> Result<Vec<u32>> {
    let mut session = Session::open(target, opts, None).await?;
    let survey = Survey::take(&mut session, &target.database).await?;
    session.close(limits::COURTESY).await;
    Ok(survey.ours())
}

/// Drops the tables that carry prepare's mark, and nothing else. `opts` are [`Target::opts`] of
/// `target`.
///
/// # Errors
///
/// Usage: no database. Server: none. Failed: a table cannot be dropped. Interrupted: the tables
/// dropped so far are gone.
pub async fn cleanup(
    target: &Target,
    opts: &Opts,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Cleaned> {
    let cleaned = tokio::select! {
        biased;
        kind = stop.wait() => Err(Error::new(kind, "interrupted")),
        cleaned = clean(target, opts, progress) => cleaned,
    }?;
    progress.clear();
    progress.note(&match cleaned.dropped.len() {
        0 => format!("no table of prepare's in {}", target.database),
        _ => format!("dropped {}", names(cleaned.dropped.clone())),
    });
    if !cleaned.left.is_empty() {
        progress.note(&format!("left alone, not made by prepare: {}", names(cleaned.left.clone())));
    }
    Ok(cleaned)
}

async fn clean(target: &Target, opts: &Opts, progress: &mut Progress) -> Result<Cleaned> {
    let mut session = control(target, opts).await?;
    let survey = Survey::take(&mut session, &target.database).await?;
    let cleaned = Cleaned { dropped: survey.ours(), left: survey.foreign() };
    for (done, number) in cleaned.dropped.iter().enumerate() {
        progress.update(|| format!("dropping: {done} of {} tables", cleaned.dropped.len()));
        drop_table(&mut session, *number).await?;
    }
    session.close(limits::COURTESY).await;
    Ok(cleaned)
}
