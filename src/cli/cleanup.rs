//! `loadgen cleanup`: drop the tables that prepare made.

use super::{ServerArgs, listen};
use crate::error::Result;
use crate::run::measure;

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

pub(super) fn run(args: CleanupArgs) -> Result<()> {
    let CleanupArgs { yes, server: ServerArgs { display, connection } } = args;
    measure::cleanup(yes, &connection, display.progress(), &listen()?)
}
