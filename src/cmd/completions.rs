//! `loadgen completions SHELL`.

use clap_complete::Shell;

use crate::cli;
use crate::cmd::print_data;
use crate::error::Result;

/// Which shell.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Prints the completions.
pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "loadgen", &mut script);
    print_data(&String::from_utf8_lossy(&script))
}
