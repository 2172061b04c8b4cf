//! Tables that prepare makes: made, dropped.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use mysql_async::Opts;
use tokio::runtime::Runtime;

use super::runtime;
use crate::error::{Error, Kind, Result};
use crate::load::{self, Job, Numbers};
use crate::mysql::options::ConnectionArgs;
use crate::mysql::resolve;
use crate::mysql::target::Target;
use crate::mysql::tls;
use crate::progress::Progress;
use crate::stop::{Stop, or_stop};

/// Fills what is missing; asks before it drops, unless `yes`.
pub(crate) fn prepare(
    job: &Job,
    yes: bool,
    connection: &ConnectionArgs,
    mut progress: Progress,
    stop: &Stop,
) -> Result<()> {
    let at = reach(connection, &mut progress, stop)?;
    if job.force && !yes && on_terminal() {
        let ours = at.runtime.block_on(load::marked(&at.target, &at.opts, true, stop))?;
        let ours = ours.get(&job.schema).into_iter().flatten().copied();
        let ours: Vec<u32> = ours.filter(|table| *table <= job.tables).collect();
        let ours = if ours.is_empty() { Numbers::new() } else { [(job.schema, ours)].into() };
        agree_to_drop(&load::named(&ours), &at.target, stop)?;
    }
    let done = at.runtime.block_on(load::prepare(&at.target, &at.opts, job, stop, &mut progress));
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
    let at = reach(connection, &mut progress, stop)?;
    if !yes && on_terminal() {
        let ours = at.runtime.block_on(load::marked(&at.target, &at.opts, true, stop))?;
        agree_to_drop(&load::named(&ours), &at.target, stop)?;
    }
    let done = at.runtime.block_on(load::cleanup(&at.target, &at.opts, stop, &mut progress));
    progress.clear();
    done.map(|_| ())
}

/// What a verb needs that does one thing with a server.
pub(super) struct Reached {
    pub(super) runtime: Runtime,
    pub(super) target: Target,
    /// [`Target::opts`] of it.
    pub(super) opts: Opts,
}

/// The server that the flags name.
pub(super) fn find(connection: &ConnectionArgs, progress: &mut Progress) -> Result<Target> {
    let (target, warnings) = resolve::find(connection)?;
    for warning in &warnings {
        progress.warn(warning);
    }
    Ok(target)
}

/// The same, its encryption decided.
pub(super) fn reach(
    connection: &ConnectionArgs,
    progress: &mut Progress,
    stop: &Stop,
) -> Result<Reached> {
    let target = find(connection, progress)?;
    let runtime = runtime()?;
    let target = runtime.block_on(or_stop(stop, tls::settle(&target)))?;
    let opts = target.opts()?;
    Ok(Reached { runtime, target, opts })
}

/// Whether there is somebody to ask.
pub(super) fn on_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, if there is something; any answer but yes is an error that nothing was done.
pub(super) fn agree_to_drop(tables: &str, target: &Target, stop: &Stop) -> Result<()> {
    if tables.is_empty() {
        return Ok(());
    }
    let question = crate::error::line(&format!("Drop {tables} at {target}? [y/N] "));
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
