//! The command line: clap structs, no logic.

pub mod argv;
pub(crate) mod before;
pub mod connection;
pub(crate) mod options;
mod sysbench;
pub(crate) mod workload;

use std::time::Duration;

use clap::builder::StyledStr;
use clap::{Args, Command};

use crate::cmd;
use crate::plan::units::parse_duration;
use crate::workload::builtin;

pub(crate) use sysbench::explain;

/// What is shown while waiting.
#[derive(clap::Args, Debug, Clone)]
pub struct DisplayArgs {
    /// How often progress is shown [default: 1s on a terminal, 10s otherwise]
    #[arg(long, value_name = "DURATION", value_parser = progress)]
    pub progress: Option<Duration>,

    /// Warnings and errors only
    #[arg(long)]
    pub quiet: bool,
}

/// What verbs take that do one thing with a server.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    pub display: DisplayArgs,

    #[command(flatten)]
    pub connection: connection::ConnectionArgs,
}

fn progress(text: &str) -> Result<Duration, String> {
    let every = parse_duration(text)?;
    if every < Duration::from_millis(100) {
        return Err("progress is shown every 100ms at most".to_owned());
    }
    Ok(every)
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
            verb::<cmd::prepare::PrepareArgs>("prepare", "Create and fill tables").display_order(0),
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
        verb::<cmd::run::RunArgs>("run", "Run an experiment from its profile"),
        verb::<cmd::load::LoadArgs>("load", "Reload a table and time it"),
        verb::<cmd::report::ReportArgs>("report", "Turn summaries into tables"),
        verb::<cmd::compare::CompareArgs>("compare", "Compare two labels with statistics"),
        verb::<cmd::calibrate::CalibrateArgs>(
            "calibrate",
            "Measure what this host can generate at most",
        ),
        verb::<cmd::run::recheck::RecheckArgs>("recheck", "Run again what is not decided"),
        verb::<cmd::explain::ExplainArgs>(
            "explain",
            "Split a difference of two labels into its parts",
        ),
        verb::<cmd::verify::VerifyArgs>("verify", "Check that the tables hold what was written"),
        verb::<cmd::cleanup::CleanupArgs>("cleanup", "Drop the tables that prepare made"),
        verb::<cmd::completions::CompletionsArgs>("completions", "Print completions for a shell"),
        verb::<cmd::canned::CannedArgs>("canned", "Serve canned answers, for benches").hide(true),
    ];
    for (order, other) in others.into_iter().enumerate() {
        command = command.subcommand(other.display_order(100 + order));
    }
    argv::help_without_h(command)
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
