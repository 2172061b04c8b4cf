//! Tables that prepare makes: made, dropped, verified.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use super::before::ServerLink;
use super::{print_data, runtime};
use crate::engine::readings::aside;
use crate::error::{Error, Kind, Result, line};
use crate::load::{self, Numbers};
use crate::mysql::{ConnectOptions, ConnectionArgs, resolve};
use crate::plan::experiment::Dataset;
use crate::progress::Progress;
use crate::stop::{Stop, or_stop};
use crate::summary;
use crate::terms;
use crate::verify::{Checked, Evidence, Verdict};
use crate::workload::Schema;

/// Fills what is missing; asks before it drops, unless `yes`.
pub(crate) fn prepare(
    job: &Dataset,
    yes: bool,
    connection: &ConnectionArgs,
    progress: Progress,
    stop: &Stop,
) -> Result<()> {
    on_server(connection, progress, stop, async |link, progress| {
        let named = |made: &Numbers| first(made, job.schema, job.tables);
        agree_to_drop(link, yes || !job.force, true, named).await?;
        load::prepare(&link.target, &link.opts, job, stop, progress).await.map(|_| ())
    })
}

/// Drops all tables that prepare made; asks before, unless `yes`.
pub(crate) fn cleanup(
    yes: bool,
    connection: &ConnectionArgs,
    progress: Progress,
    stop: &Stop,
) -> Result<()> {
    on_server(connection, progress, stop, async |link, progress| {
        agree_to_drop(link, yes, true, load::named).await?;
        load::cleanup(&link.target, &link.opts, stop, progress).await.map(|_| ())
    })
}

/// Holds the tables against what prepare and the runs since left there.
pub(crate) fn verify(
    paths: &[PathBuf],
    elsewhere: bool,
    connection: &ConnectionArgs,
    progress: Progress,
    stop: &Stop,
) -> Result<()> {
    // Records first: a step that ends meanwhile is then in both, or in the summaries alone.
    let records = summary::records(paths)?;
    let loaded = summary::collect(paths)?;
    if let Some((path, reason)) = loaded.skipped.first() {
        let text = format!("{}: {reason}: what it stands for is not known", path.display());
        return Err(Error::new(Kind::Undecided, text)
            .hint("move it away if loadgen did not write it, or if it is a copy"));
    }
    let steps = loaded.steps();
    let evidence = Evidence { summaries: &steps, records: &records, elsewhere };
    let checked = on_server(connection, progress, stop, async |link, progress| {
        crate::verify::verify(&link.target, &link.opts, &evidence, stop, progress).await
    })?;
    print_data(&lines(&checked))?;
    conclusion(&checked)
}

/// Does something on the server that the flags name.
fn on_server<T>(
    connection: &ConnectionArgs,
    mut progress: Progress,
    stop: &Stop,
    doing: impl AsyncFnOnce(&ServerLink<'_>, &mut Progress) -> Result<T>,
) -> Result<T> {
    let target = find(connection, &mut progress)?;
    let done = runtime()?.block_on(async {
        let link = ServerLink::new(&target, stop).await?;
        Box::pin(doing(&link, &mut progress)).await
    });
    progress.clear();
    done
}

pub(super) fn find(connection: &ConnectionArgs, progress: &mut Progress) -> Result<ConnectOptions> {
    let (target, warnings) = resolve::find(connection)?;
    for warning in &warnings {
        progress.warn(warning);
    }
    Ok(target)
}

pub(super) fn first(made: &Numbers, schema: Schema, tables: u32) -> String {
    let made = made.get(&schema).into_iter().flatten().copied();
    let made: Vec<u32> = made.filter(|table| *table <= tables).collect();
    if made.is_empty() { String::new() } else { load::named(&[(schema, made)].into()) }
}

/// Asks on a terminal whether those of the marked tables that are `named` may be dropped, also those
/// that a load made if `loaded`; any answer but yes is an error that nothing was done. Elsewhere
/// nothing is looked for.
pub(super) async fn agree_to_drop(
    link: &ServerLink<'_>,
    yes: bool,
    loaded: bool,
    named: impl FnOnce(&Numbers) -> String,
) -> Result<()> {
    let ServerLink { target, opts, stop } = link;
    if yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(());
    }
    let tables = named(&load::marked(target, opts, loaded, stop).await?);
    if tables.is_empty() {
        return Ok(());
    }
    let question = line(&format!("Drop {tables} at {target}? [y/N] "));
    let mut err = io::stderr();
    let _ = err.write_all(question.as_bytes()).and_then(|()| err.flush());
    // On a thread of its own, so that a signal ends the wait; the thread ends with the process.
    let reading = aside(|| io::stdin().lines().next());
    match or_stop(stop, async { Ok(reading.await) }).await? {
        Ok(Some(Ok(yes))) if ["y", "yes"].contains(&yes.trim().to_ascii_lowercase().as_str()) => {
            Ok(())
        }
        _ => Err(Error::failed("nothing was dropped").hint("--yes does not ask")),
    }
}

fn lines(checked: &[Checked]) -> String {
    let width = checked.iter().map(|one| one.table.len()).max().unwrap_or(0);
    let told = |one: &Checked| {
        let said = match &one.verdict {
            Verdict::Ok => format!("ok: {}", inside(one)),
            Verdict::Lost(n, what) => format!("LOST {n}: {what}; {}", inside(one)),
            Verdict::Damaged(n, what) => format!("DAMAGED {n}: {what}"),
            Verdict::Index(n, what) => format!("INDEX {n}: {what}; {}", inside(one)),
            Verdict::Undecided(why) => format!("undecided: {why}"),
        };
        format!("{:width$}  {}\n", one.table, line(&said))
    };
    checked.iter().map(told).collect()
}

fn inside(one: &Checked) -> String {
    let k = one.k.map_or_else(String::new, |k| format!(", sum of k {k}"));
    let doubt = match one.in_doubt {
        0 => String::new(),
        n => format!(", {} in doubt", terms::counted(n, "write")),
    };
    format!("{} rows{k} after {}{doubt}", one.rows, terms::counted(one.steps, "step"))
}

/// Makes the error of the worst that was found.
fn conclusion(checked: &[Checked]) -> Result<()> {
    let meaning = |one: &Checked| -> (u8, Kind, &str, &[&str]) {
        match one.verdict {
            Verdict::Damaged(..) => {
                let hints = &["CHECK TABLE, and the server's error log"];
                (0, Kind::Data, "hold what nobody wrote", hints)
            }
            Verdict::Lost(..) => {
                let hints = &[
                    "durable is innodb_flush_log_at_trx_commit=1, on a disk that keeps its word",
                    "did something else write to them, or a run whose --out is not named here?",
                ];
                (1, Kind::Data, "lost what was acknowledged", hints)
            }
            Verdict::Index(..) => {
                let hints =
                    &["keep the data directory as evidence; ALTER TABLE … FORCE builds the \
                               indexes anew"];
                (2, Kind::Data, "have an index that disagrees with their rows", hints)
            }
            Verdict::Undecided(_) => {
                let hints = &["loadgen prepare --force begins a new history"];
                (3, Kind::Undecided, "cannot be judged", hints)
            }
            Verdict::Ok => (u8::MAX, Kind::Failed, "", &[]),
        }
    };
    let bad = checked.iter().filter(|one| one.verdict != Verdict::Ok);
    let Some((worst, kind, what, hints)) = bad.map(meaning).min_by_key(|found| found.0) else {
        return Ok(());
    };
    let n = checked.iter().filter(|one| meaning(one).0 == worst).count();
    let error = Error::new(kind, format!("{n} of {} tables {what}", checked.len()));
    Err(hints.iter().fold(error, |error, hint| error.hint(*hint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(table: &str, verdict: Verdict) -> Checked {
        let (rows, k) = (10, Some(55));
        Checked { table: table.to_owned(), verdict, rows, k, steps: 1, in_doubt: 2 }
    }

    #[test]
    fn a_line_a_table_and_the_worst_decides() {
        let all = [
            checked("sbtest9", Verdict::Ok),
            checked("sbtest10", Verdict::Lost(3, "3 rows are missing".to_owned())),
            checked("bulk1", Verdict::Undecided("why \u{1b}[2J".to_owned())),
            checked("bulk2", Verdict::Index(2, "k_1 has 12 rows".to_owned())),
        ];
        let text = lines(&all);
        let lines: Vec<&str> = text.lines().collect();
        let inside = "10 rows, sum of k 55 after 1 step, 2 writes in doubt";
        assert_eq!(lines[0], format!("sbtest9   ok: {inside}"));
        assert_eq!(lines[1], format!("sbtest10  LOST 3: 3 rows are missing; {inside}"));
        assert_eq!(lines[2], "bulk1     undecided: why \\u{1b}[2J");
        let code = |all: &[Checked]| conclusion(all).err().map(|e| e.kind().exit_code());
        assert_eq!(code(&all), Some(4));
        assert_eq!(lines[3], format!("bulk2     INDEX 2: k_1 has 12 rows; {inside}"));
        assert_eq!(code(&all[2..]), Some(4));
        assert_eq!(code(&[all[0].clone(), all[2].clone()]), Some(98));
        assert_eq!(code(&all[..1]), None);
    }
}
