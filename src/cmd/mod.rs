//! One file a verb, each `run(args)`.

mod before;
mod board;
pub(crate) mod calibrate;
pub(crate) mod canned;
pub(crate) mod cleanup;
pub(crate) mod compare;
pub(crate) mod completions;
mod conditions;
pub(crate) mod explain;
mod gate;
pub mod load;
pub(crate) mod prepare;
mod record;
pub(crate) mod report;
pub(crate) mod run;
mod settle;
mod slo;
mod steps;
pub mod suite;
pub(crate) mod sweep;
pub mod timed;
pub(crate) mod verify;
pub(crate) mod workloads;

use std::ffi::OsString;
use std::io::{ErrorKind, Write};

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue};

use crate::cli;
use crate::error::{Error, Result, indented, line, plain, ranked};
use crate::groups;
use crate::handover::{hand_over, masked};
use crate::observe::process::require_descriptors;
use crate::progress::{Progress, say};
use crate::stop::Stop;
use crate::summary::{Store, Summary, to_json};
use crate::workload::builtin;

/// Reads the command line and does what it says.
pub fn main(args: Vec<OsString>) -> Result<u8> {
    let mut command = cli::command();
    // What is wrong is told before the hand-over, which puts other words into the place of some.
    if let Some(typed) = masked(args.clone(), &command)?
        && let Err(code) = parsed(&mut command, typed)
    {
        return Ok(code);
    }
    let args = hand_over(args, &command, warn)?;
    let matches = match parsed(&mut command, args) {
        Ok(matches) => matches,
        Err(code) => return Ok(code),
    };
    let Some((verb, matches)) = matches.subcommand() else { return Ok(2) };
    dispatch(verb, matches).map(|()| 0)
}

/// What only reads and prints leaves signals to the system; the rest listens to them.
fn dispatch(verb: &str, matches: &clap::ArgMatches) -> Result<()> {
    let usage = |e: clap::Error| Error::usage(e.to_string());
    macro_rules! args {
        ($args:ty) => {
            &<$args>::from_arg_matches(matches).map_err(usage)?
        };
    }
    match verb {
        "workloads" => workloads::run(),
        "prepare" => prepare::run(args!(prepare::PrepareArgs), &listen()?),
        "load" => load::run(args!(load::LoadArgs), &listen()?),
        "cleanup" => cleanup::run(args!(cleanup::CleanupArgs), &listen()?),
        "run" => run::run(args!(run::RunArgs), &listen()?),
        "recheck" => run::recheck::run(args!(run::recheck::RecheckArgs), &listen()?),
        "verify" => verify::run(args!(verify::VerifyArgs), &listen()?),
        "report" => report::run(args!(report::ReportArgs)),
        "compare" => compare::run(args!(compare::CompareArgs)),
        "explain" => explain::run(args!(explain::ExplainArgs)),
        "completions" => completions::run(args!(completions::CompletionsArgs)),
        "calibrate" => calibrate::run(args!(calibrate::CalibrateArgs), &listen()?),
        "canned" => canned::run(args!(canned::CannedArgs), &listen()?),
        workload => match builtin().into_iter().find(|w| w.name == workload) {
            Some(workload) => {
                let options = cli::options::given(&workload, matches);
                let args = args!(cli::workload::WorkloadArgs);
                sweep::run(workload.with_options(&options)?, args, &listen()?)
            }
            None => Err(Error::usage(format!("'{workload}' is no command"))),
        },
    }
}

fn listen() -> Result<Stop> {
    require_descriptors()?;
    let stop = Stop::default();
    stop.listen(at_once).map_err(|e| Error::failed(format!("cannot listen to signals: {e}")))?;
    Ok(stop)
}

/// The command line, or the exit status once what clap has to say is said.
fn parsed(
    command: &mut clap::Command,
    args: Vec<OsString>,
) -> std::result::Result<clap::ArgMatches, u8> {
    // What is wrong with one of these is told on one line, so that none can look like our own.
    let breaks = args.iter().any(|arg| arg.as_encoded_bytes().contains(&b'\n'));
    command.try_get_matches_from_mut(args).map_err(|error| explained(error, breaks))
}

/// The flag of a connection that stands where none is.
fn misplaced(error: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return None };
    let unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
    ["--password", "--password-fd", "--url"].into_iter().find(|flag| unknown && given == flag)
}

/// Takes the value out of an error of a flag for which a password is easily typed: -P for -p.
fn unsay_password(error: &mut clap::Error) {
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let flag = of(ContextKind::InvalidArg);
    let asked = ["--port ", "--password-fd "].iter().any(|asked| flag.starts_with(asked));
    let number = of(ContextKind::InvalidValue).bytes().all(|byte| byte.is_ascii_digit());
    if asked && !number {
        error.insert(ContextKind::InvalidValue, ContextValue::String("…".to_owned()));
    }
}

/// Help and version are data; a wrong flag is an error with a hint where there is one.
fn explained(mut error: clap::Error, breaks: bool) -> u8 {
    unsay_password(&mut error);
    let misplaced = misplaced(&error);
    if misplaced.is_some() {
        // How to pass it as something else is not what anybody wants of these.
        error.remove(ContextKind::Suggested);
    }
    let code = if error.use_stderr() { 2 } else { 0 };
    let text = error.render().to_string();
    if error.use_stderr() {
        // It repeats what was given, which may be anything.
        let text = text.trim_end();
        say(&if breaks { line(text) } else { plain(text) });
    } else {
        // A closed pipe is no reason to fail.
        let _ = error.print();
    }
    let after =
        |flag| format!("{flag} goes after a command that connects: loadgen point-select {flag}");
    if let Some(hint) = misplaced.map(after).or_else(|| cli::explain(&error)) {
        say(&format!("\nhint: {hint}"));
    }
    code
}

/// A second signal: nothing is waited for, not even for whoever reads standard error. A
/// sandbox's keeper sees that this process is gone and takes the server away.
fn at_once(code: u8) -> ! {
    groups::kill_all();
    #[expect(clippy::exit, reason = "the second signal ends the process")]
    std::process::exit(i32::from(code))
}

fn warn(text: &str) {
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
