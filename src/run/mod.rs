//! The one pipeline of everything that measures.

mod before;
mod beside;
pub(crate) mod calibrate;
mod conditions;
mod existing;
mod expect;
pub(crate) mod gate;
mod in_profile;
mod kept;
mod kept_data;
mod legs;
pub(crate) mod measure;
mod null_server;
mod order;
pub(crate) mod profile;
mod profile_report;
mod reach;
pub(crate) mod recheck;
pub(crate) mod record;
mod resume;
mod servers;
mod settle;
mod slo;
pub mod steps;
pub(crate) mod tables;
mod timed;
mod told;
pub(crate) mod verify;

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use crate::error::{Error, Result, indented, plain, ranked};
use crate::mysql::options::ConnectionArgs;
use crate::progress::{Progress, say};
use crate::sandbox::{Sandbox, Spec};
use crate::stop::Stop;
use crate::summary::{Store, Summary, to_json};

/// Options of a server's program.
pub(crate) type ServerOptions = Vec<(String, Option<String>)>;

/// What all verbs that measure share.
pub(crate) struct Invocation<'a> {
    pub(crate) progress: Progress,
    pub(crate) stop: &'a Stop,
    /// Directory of the summaries.
    pub(crate) out: PathBuf,
    /// File of the calibration, if it is not the usual one.
    pub(crate) calibration: Option<PathBuf>,
}

/// The server that the flags name.
pub(crate) struct Place {
    pub(crate) connection: ConnectionArgs,
    /// A private server's program, None in it for that of PATH, and its options.
    pub(crate) sandbox: Option<(Option<PathBuf>, ServerOptions)>,
    /// Words that go before a command which reads its host.
    pub(crate) probe: Option<String>,
}

fn start(spec: &Spec, stop: &Stop, progress: &mut Progress) -> Result<Sandbox> {
    Sandbox::start(spec, &mut |text| progress.note(text), &|| stop.asked().is_some())
}

/// Says that the numbers of a debug build are slow.
fn warn_of_debug_build(progress: &mut Progress) {
    if cfg!(debug_assertions) {
        progress.warn("this is a debug build; its numbers are not for comparing");
    }
}

pub(crate) fn warn(text: &str) {
    say(&indented(&format!("warning: {text}")));
}

/// Data goes to standard output, and nothing else does. What a terminal would act upon is escaped
/// here at the latest.
pub(crate) fn print_data(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(plain(text).as_bytes()).and_then(|()| out.flush()) {
        // `loadgen … | head` has what it wanted.
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::failed(format!("standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Writes a summary, or prints it where it cannot be written: nothing measured is lost.
pub(crate) fn keep(store: &Store, summary: &Summary, progress: &mut Progress) -> Result<()> {
    match store.write(summary) {
        Ok(_) => Ok(()),
        Err(error) => conclude([Err(error), print_data(&to_json(summary))], progress),
    }
}

/// The worst of what went wrong, to end with. The rest is told here: none hides another.
pub(crate) fn conclude(
    all: impl IntoIterator<Item = Result<()>>,
    progress: &mut Progress,
) -> Result<()> {
    let (worst, others) = ranked(all.into_iter().filter_map(Result::err));
    for other in others {
        let hints = other.hints().iter().map(|hint| format!("\nhint: {hint}"));
        progress.warn(&format!("{other}{}", hints.collect::<String>()));
    }
    worst.map_or(Ok(()), Err)
}

/// Columns of the terminal that standard output is; none where it is something else.
pub(crate) fn terminal() -> Option<usize> {
    let term = console::Term::stdout();
    term.is_term().then(|| usize::from(term.size().1))
}

/// The runtime of everything that is not an engine thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::failed(format!("cannot make a runtime: {e}")))
}

pub(crate) fn random() -> Result<u64> {
    getrandom::u64().map_err(|e| Error::failed(format!("no random number to be had: {e}")))
}
