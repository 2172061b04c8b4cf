//! `loadgen explain`: where the time of an op went.

use std::path::PathBuf;

use crate::error::Result;
use crate::report::{Format, Question, explain};
use crate::run::print_data;

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
At a number of clients in a closed loop, clients / ops a second is the time of an op. It is split into
the CPU of client and server, the reads of the disks, and the rest; docs/explain.md says how.")]
pub(crate) struct ExplainArgs {
    /// The label that is compared against
    #[arg(value_name = "BASE")]
    pub base: String,
    /// The label that is compared
    #[arg(value_name = "NEW")]
    pub new: String,
    /// Summaries, or directories of them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Explain also what was measured on other tables or by other statements
    #[arg(long)]
    pub force: bool,
    /// Of each label and workload only the newest invocation
    #[arg(long)]
    pub latest: bool,
    /// Leave out damaged and foreign files, and name them
    #[arg(long)]
    pub skip_bad: bool,
}

/// Prints the parts on standard output.
pub(super) fn run(args: ExplainArgs) -> Result<()> {
    let loaded = super::load(&args.paths, args.skip_bad)?;
    let question = Question {
        base: args.base,
        new: args.new,
        force: args.force,
        latest: args.latest,
        format: args.format,
        ..Question::default()
    };
    print_data(&explain(&loaded.steps(), &question)?)
}
