//! The command line: clap structs, no logic.

pub mod argv;
pub mod connection;
mod sysbench;
pub mod workload;

use std::time::Duration;

use clap::{Args, Command};

use crate::cmd;
use crate::plan::units::parse_duration;
use crate::workload::builtin;

pub use sysbench::explain;

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
pub fn command() -> Command {
    let mut command = Command::new("loadgen")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A load generator for MySQL-compatible servers")
        .after_help(AFTER)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .max_term_width(100)
        .subcommand(cmd::prepare::PrepareArgs::augment_args(
            Command::new("prepare").about("Create and fill tables").display_order(0),
        ));
    for (order, workload) in builtin().into_iter().enumerate() {
        let verb = Command::new(workload.name)
            .about(workload.about)
            .visible_aliases(workload.aliases)
            .display_order(order + 1);
        command = command.subcommand(workload::WorkloadArgs::augment_args(verb));
    }
    let others = [
        cmd::cleanup::CleanupArgs::augment_args(
            Command::new("cleanup").about("Drop the tables that prepare made"),
        ),
        Command::new("workloads").about("List the workloads with their SQL and expected outcome"),
        cmd::report::ReportArgs::augment_args(
            Command::new("report").about("Turn summaries into tables"),
        ),
        cmd::completions::CompletionsArgs::augment_args(
            Command::new("completions").about("Print completions for a shell"),
        ),
        cmd::canned::CannedArgs::augment_args(
            Command::new("canned")
                .about("Serve canned answers, for benches and calibration")
                .hide(true),
        ),
    ];
    for (order, other) in others.into_iter().enumerate() {
        command = command.subcommand(other.display_order(100 + order));
    }
    argv::help_without_h(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
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
