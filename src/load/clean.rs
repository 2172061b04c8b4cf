//! Drops exactly what prepare made.

use std::collections::BTreeMap;

use mysql_async::Opts;

use super::set_up::{control, drop_table};
use super::survey::Survey;
use crate::error::Result;
use crate::mysql::dataset::names;
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::server;
use crate::mysql::session::Session;
use crate::plan::limits;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::workload::Schema;

/// Tables by kind and number; no kind without a table.
pub type Numbers = BTreeMap<Schema, Vec<u32>>;

/// What cleanup did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// Tables that were dropped.
    pub dropped: Numbers,
    /// Tables of such names that are not prepare's: they stay.
    pub left: Numbers,
}

/// The tables' names, in few words.
pub fn named(tables: &Numbers) -> String {
    let some: Vec<String> =
        tables.iter().map(|(schema, numbers)| names(*schema, numbers.clone())).collect();
    some.join(", ")
}

/// The tables that carry loadgen's mark, finished or not; `load`'s own only where `loaded` wants them.
///
/// # Errors
///
/// Usage: no database. Server: none, or silence. Interrupted.
pub async fn marked(
    target: &ConnectOptions,
    opts: &Opts,
    loaded: bool,
    stop: &Stop,
) -> Result<Numbers> {
    let liveness = Liveness::new(target, opts);
    let looking = async {
        let mut session = Session::open(target, opts, None).await?;
        let _waits = liveness.waits(&session);
        let mine = if loaded { Survey::ours } else { Survey::prepared };
        let (ours, _) = look(&mut session, target, mine).await?;
        session.close(limits::COURTESY).await;
        Ok(ours)
    };
    liveness.during(stop, looking).await
}

/// Ours and those without a mark, of every kind.
async fn look(
    session: &mut Session,
    target: &ConnectOptions,
    ours_of: fn(&Survey) -> Vec<u32>,
) -> Result<(Numbers, Numbers)> {
    let (mut ours, mut others) = (Numbers::new(), Numbers::new());
    for schema in Schema::ALL {
        let survey = Survey::take(session, &target.database, schema).await?;
        for (list, found) in [(&mut ours, ours_of(&survey)), (&mut others, survey.foreign())] {
            if !found.is_empty() {
                list.insert(schema, found);
            }
        }
    }
    Ok((ours, others))
}

/// Drops the tables that carry prepare's mark, and nothing else. `opts` are [`ConnectOptions::opts`] of
/// `target`.
///
/// # Errors
///
/// Usage: no database. Server: none, or silence. Failed: a table cannot be dropped. Interrupted: the tables
/// dropped so far are gone.
pub async fn cleanup(
    target: &ConnectOptions,
    opts: &Opts,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Cleaned> {
    let liveness = Liveness::new(target, opts);
    let cleaned = liveness.during(stop, clean(target, opts, &liveness, progress)).await?;
    progress.clear();
    progress.note(&match cleaned.dropped.len() {
        0 => format!("no table of prepare's in {}", target.database),
        _ => format!("dropped {}", named(&cleaned.dropped)),
    });
    if !cleaned.left.is_empty() {
        progress.note(&format!("left alone, not made by prepare: {}", named(&cleaned.left)));
    }
    Ok(cleaned)
}

async fn clean(
    target: &ConnectOptions,
    opts: &Opts,
    liveness: &Liveness,
    progress: &mut Progress,
) -> Result<Cleaned> {
    let mut session = control(target, opts, progress).await?;
    let _waits = liveness.waits(&session);
    if let Some(warning) = server::exposure(&mut session, target).await? {
        progress.warn(&warning.to_string());
    }
    let (dropped, left) = look(&mut session, target, Survey::ours).await?;
    let all: Vec<String> = dropped
        .iter()
        .flat_map(|(schema, numbers)| numbers.iter().map(|number| schema.name(*number)))
        .collect();
    for (done, name) in all.iter().enumerate() {
        progress.update(|| format!("dropping: {done} of {} tables", all.len()));
        drop_table(&mut session, name).await?;
    }
    session.close(limits::COURTESY).await;
    Ok(Cleaned { dropped, left })
}
