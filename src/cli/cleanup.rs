//! `loadgen cleanup`: drop the tables that prepare made.

use super::ServerArgs;
use crate::error::Result;
use crate::run::tables;
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

pub(super) fn run(args: &CleanupArgs, stop: &Stop) -> Result<()> {
    tables::cleanup(args.yes, &args.server.connection, args.server.display.progress(), stop)
}
