//! The command line: clap structs, and one thin file a verb.

mod calibrate;
mod canned;
mod cleanup;
mod compare;
mod completions;
mod explain;
mod load;
mod options;
mod prepare;
mod recheck;
mod report;
mod run;
mod sysbench;
mod verify;
mod workload;
mod workloads;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Args, Command, FromArgMatches};

use crate::error::{Error, Result, line, plain};
use crate::mysql::options::handover::{hand_over, masked};
use crate::observe::process::require_descriptors;
use crate::plan::units::parse_duration;
use crate::progress::{Progress, say};
use crate::run::warn;
use crate::stop::Stop;
use crate::stop::groups;
use crate::summary::{self, Loaded};
use crate::workload::builtin;

/// Flags of what is shown while waiting.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct DisplayArgs {
    /// How often progress is shown [default: 1s on a terminal, 10s otherwise]
    #[arg(long, value_name = "DURATION", value_parser = progress)]
    pub progress: Option<Duration>,

    /// Warnings and errors only
    #[arg(long)]
    pub quiet: bool,
}

/// Flags of verbs that do one thing with a server.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    pub display: DisplayArgs,

    #[command(flatten)]
    pub connection: crate::mysql::options::ConnectionArgs,
}

impl DisplayArgs {
    fn progress(&self) -> Progress {
        Progress::new(self.quiet, self.progress)
    }
}

fn progress(text: &str) -> std::result::Result<Duration, String> {
    let every = parse_duration(text)?;
    if every < Duration::from_millis(100) {
        return Err("progress is shown every 100ms at most".to_owned());
    }
    Ok(every)
}

/// Reads summaries, and names what is left out.
fn load(paths: &[PathBuf], skip_bad: bool) -> Result<Loaded> {
    let loaded = summary::load(paths, skip_bad)?;
    for (path, reason) in &loaded.skipped {
        warn(&format!("skipped {}: {reason}", path.display()));
    }
    Ok(loaded)
}

const AFTER: &str = "\
Examples:
  loadgen prepare --tables 8 --rows 16M
  loadgen point-select --tables 8 --clients 8..256 --label 8.4.3
  loadgen report results/ --baseline 8.4.3

Every command has its own --help.";

/// The whole command line. Every built-in workload is a verb.
pub(crate) fn command() -> Command {
    let mut command = Command::new("loadgen")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A load generator for MySQL-compatible servers")
        .after_help(AFTER)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .max_term_width(100)
        .subcommand(
            verb::<prepare::PrepareArgs>("prepare", "Create and fill tables").display_order(0),
        );
    for (order, workload) in builtin().into_iter().enumerate() {
        let (name, about) = (workload.name.clone(), workload.about.clone());
        let verb = verb::<workload::WorkloadArgs>(name, about)
            .visible_aliases(workload.aliases.clone())
            .display_order(order + 1);
        command = command.subcommand(options::add(verb, &workload));
    }
    let others = [
        Command::new("workloads").about("List the workloads with their SQL and expected outcome"),
        verb::<run::RunArgs>("run", "Run an experiment from its profile"),
        verb::<load::LoadArgs>("load", "Reload a table and time it"),
        verb::<report::ReportArgs>("report", "Turn summaries into tables"),
        verb::<compare::CompareArgs>("compare", "Compare two labels with statistics"),
        verb::<calibrate::CalibrateArgs>(
            "calibrate",
            "Measure what this host can generate at most",
        ),
        verb::<recheck::RecheckArgs>("recheck", "Run again what is not decided"),
        verb::<explain::ExplainArgs>("explain", "Split a difference of two labels into its parts"),
        verb::<verify::VerifyArgs>("verify", "Check that the tables hold what was written"),
        verb::<cleanup::CleanupArgs>("cleanup", "Drop the tables that prepare made"),
        verb::<completions::CompletionsArgs>("completions", "Print completions for a shell"),
        verb::<canned::CannedArgs>("canned", "Serve canned answers, for benches").hide(true),
    ];
    for (order, other) in others.into_iter().enumerate() {
        command = command.subcommand(other.display_order(100 + order));
    }
    help_without_h(command)
}

/// Gives the command and all below it a `--help` without `-h`, which is `--host`.
#[must_use]
pub fn help_without_h(command: Command) -> Command {
    let help = Arg::new("help").long("help").action(ArgAction::Help).help("Print help");
    command.disable_help_flag(true).arg(help).mut_subcommands(help_without_h)
}

/// Reads the command line and does what it says.
pub fn main(args: Vec<OsString>) -> Result<u8> {
    let mut command = command();
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

/// Listens to signals for what does more than read and print.
fn dispatch(verb: &str, matches: &clap::ArgMatches) -> Result<()> {
    let usage = |e: clap::Error| Error::usage(e.to_string());
    macro_rules! args {
        ($args:ty) => {
            <$args>::from_arg_matches(matches).map_err(usage)?
        };
    }
    match verb {
        "workloads" => workloads::run(),
        "prepare" => prepare::run(args!(prepare::PrepareArgs), &listen()?),
        "load" => load::run(args!(load::LoadArgs), &listen()?),
        "cleanup" => cleanup::run(&args!(cleanup::CleanupArgs), &listen()?),
        "run" => run::run(args!(run::RunArgs), &listen()?),
        "recheck" => recheck::run(args!(recheck::RecheckArgs), &listen()?),
        "verify" => verify::run(&args!(verify::VerifyArgs), &listen()?),
        "report" => report::run(&args!(report::ReportArgs)),
        "compare" => compare::run(&args!(compare::CompareArgs)),
        "explain" => explain::run(args!(explain::ExplainArgs)),
        "completions" => completions::run(&args!(completions::CompletionsArgs)),
        "calibrate" => calibrate::run(&args!(calibrate::CalibrateArgs), &listen()?),
        "canned" => canned::run(&args!(canned::CannedArgs), &listen()?),
        workload => match builtin().into_iter().find(|w| w.name == workload) {
            Some(workload) => {
                let options = options::given(&workload, matches);
                let args = args!(workload::WorkloadArgs);
                workload::run(workload.with_options(&options)?, args, &listen()?)
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
    command.try_get_matches_from_mut(args).map_err(|error| told(error, breaks))
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
fn told(mut error: clap::Error, breaks: bool) -> u8 {
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
        let _ = error.print();
    }
    let after =
        |flag| format!("{flag} goes after a command that connects: loadgen point-select {flag}");
    if let Some(hint) = misplaced.map(after).or_else(|| sysbench::explain(&error)) {
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

/// A verb and its flags. The text comes last: a struct's rustdoc would become the help.
fn verb<A: Args>(name: impl Into<clap::builder::Str>, about: impl Into<StyledStr>) -> Command {
    A::augment_args(Command::new(name)).about(about).long_about(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn the_help_says_what_each_verb_does() {
        let help = command().render_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in [
            "prepare Create and fill tables",
            "point-select SELECT one row by primary key [alias: oltp_point_select]",
            "report Turn summaries into tables",
            "cleanup Drop the tables that prepare made",
        ] {
            assert!(help.contains(line), "{line}: {help}");
        }
        assert!(!help.contains("canned"), "it is no command for users");
    }

    #[test]
    fn every_name_of_a_workload_is_a_verb() {
        for workload in builtin() {
            for verb in workload.aliases.iter().chain([&workload.name]) {
                let matches = command().try_get_matches_from(["loadgen", verb.as_str()]);
                let matches = matches.expect(verb);
                assert_eq!(matches.subcommand_name(), Some(workload.name.as_str()));
            }
        }
    }
}
