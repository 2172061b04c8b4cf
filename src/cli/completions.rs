//! `loadgen completions SHELL`.

use clap_complete::Shell;

use crate::cli;
use crate::error::Result;
use crate::run::print_data;

#[derive(clap::Args, Debug, Clone)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

pub(super) fn run(CompletionsArgs { shell }: CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "loadgen", &mut script);
    print_data(&String::from_utf8_lossy(&script))
}
