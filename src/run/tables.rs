//! Tables that prepare makes: made, dropped.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use mysql_async::Opts;

use super::runtime;
use crate::error::{Error, Kind, Result, line};
use crate::load::{self, Job, Numbers};
use crate::mysql::connect;
use crate::mysql::options::{ConnectOptions, ConnectionArgs, resolve};
use crate::progress::Progress;
use crate::stop::{Stop, or_stop};
use crate::workload::Schema;

/// Fills what is missing; asks before it drops, unless `yes`.
pub(crate) fn prepare(
    job: &Job,
    yes: bool,
    connection: &ConnectionArgs,
    mut progress: Progress,
    stop: &Stop,
) -> Result<()> {
    let (target, opts) = reach(connection, &mut progress, stop)?;
    let done = runtime()?.block_on(async {
        if job.force && !yes {
            let marked = load::marked(&target, &opts, true, stop);
            let named = async { Ok(first(&marked.await?, job.schema, job.tables)) };
            Box::pin(agree_to_drop(named, &target, stop)).await?;
        }
        load::prepare(&target, &opts, job, stop, &mut progress).await
    });
    progress.clear();
    done.map(|_| ())
}

/// Drops all tables that prepare made; asks before, unless `yes`.
pub(crate) fn cleanup(
    yes: bool,
    connection: &ConnectionArgs,
    mut progress: Progress,
    stop: &Stop,
) -> Result<()> {
    let (target, opts) = reach(connection, &mut progress, stop)?;
    let done = runtime()?.block_on(async {
        if !yes {
            let marked = load::marked(&target, &opts, true, stop);
            let named = async { Ok(load::named(&marked.await?)) };
            Box::pin(agree_to_drop(named, &target, stop)).await?;
        }
        load::cleanup(&target, &opts, stop, &mut progress).await
    });
    progress.clear();
    done.map(|_| ())
}

/// Names the tables of one kind up to a number.
pub(super) fn first(made: &Numbers, schema: Schema, tables: u32) -> String {
    let made = made.get(&schema).into_iter().flatten().copied();
    let made: Vec<u32> = made.filter(|table| *table <= tables).collect();
    if made.is_empty() { String::new() } else { load::named(&[(schema, made)].into()) }
}

/// Finds the server that the flags name.
pub(super) fn find(connection: &ConnectionArgs, progress: &mut Progress) -> Result<ConnectOptions> {
    let (target, warnings) = resolve::find(connection)?;
    for warning in &warnings {
        progress.warn(warning);
    }
    Ok(target)
}

/// Finds it, and decides its encryption.
pub(super) fn reach(
    connection: &ConnectionArgs,
    progress: &mut Progress,
    stop: &Stop,
) -> Result<(ConnectOptions, Opts)> {
    let target = find(connection, progress)?;
    let target = runtime()?.block_on(or_stop(stop, connect::settle_tls(&target)))?;
    let opts = target.opts()?;
    Ok((target, opts))
}

/// Asks on a terminal whether these may be dropped; any answer but yes is an error that nothing was
/// done. Elsewhere nothing is looked for.
pub(super) async fn agree_to_drop(
    tables: impl Future<Output = Result<String>>,
    target: &ConnectOptions,
    stop: &Stop,
) -> Result<()> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(());
    }
    let tables = tables.await?;
    if tables.is_empty() {
        return Ok(());
    }
    let question = line(&format!("Drop {tables} at {target}? [y/N] "));
    let mut err = std::io::stderr();
    let _ = err.write_all(question.as_bytes()).and_then(|()| err.flush());
    // Read on a thread of its own, so that a signal ends the wait; the thread ends with the
    // process.
    let (sender, answers) = mpsc::channel();
    std::thread::spawn(move || {
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        let _ = sender.send(read.map(|_| answer.trim().to_ascii_lowercase()));
    });
    let answer = loop {
        stop.check()?;
        match answers.recv_timeout(Duration::from_millis(50)) {
            Err(RecvTimeoutError::Timeout) => {}
            answer => break answer,
        }
    };
    match answer {
        Ok(Ok(yes)) if yes == "y" || yes == "yes" => Ok(()),
        _ => Err(Error::new(Kind::Failed, "nothing was dropped").hint("--yes does not ask")),
    }
}
