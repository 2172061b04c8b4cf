//! `loadgen cleanup`: drop the tables that prepare made.

use crate::cli::ServerArgs;
use crate::cmd::prepare::{agree_to_drop, on_terminal, reach};
use crate::error::Result;
use crate::load;
use crate::stop::Stop;

/// Drop the tables that prepare made.
#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The tables are known by the mark that prepare leaves in their COMMENT; others of the same names,
such as sysbench's, stay.")]
pub(crate) struct CleanupArgs {
    /// Do not ask before dropping
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub server: ServerArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &CleanupArgs, stop: &Stop) -> Result<()> {
    let (mut progress, at) = reach(&args.server, stop)?;
    if !args.yes && on_terminal() {
        let ours = at.runtime.block_on(load::marked(&at.target, &at.opts, true, stop))?;
        agree_to_drop(&load::named(&ours), &at.target, stop)?;
    }
    let done = at.runtime.block_on(load::cleanup(&at.target, &at.opts, stop, &mut progress));
    progress.clear();
    done.map(|_| ())
}
