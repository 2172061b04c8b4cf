//! `loadgen verify`: the tables hold what prepare and the runs since left there.

use std::path::PathBuf;

use super::{ServerArgs, listen};
use crate::error::Result;
use crate::run::measure;

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
Reads every row of the tables that prepare made. Name all directories that runs since then wrote
to: a write that no summary tells of looks like another program's. Exit status: 0 all there,
4 something is lost or damaged or an index disagrees, 98 something cannot be judged (docs/faults.md says what and why).

Example:
  loadgen verify results/ --socket /run/mysqld/mysqld.sock")]
pub(crate) struct VerifyArgs {
    /// Summaries, or directories of them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Count also what was written on another server: this one is its replica or has its data
    #[arg(long)]
    pub elsewhere: bool,

    #[command(flatten)]
    pub server: ServerArgs,
}

pub(super) fn run(args: VerifyArgs) -> Result<()> {
    let VerifyArgs { paths, elsewhere, server: ServerArgs { display, connection } } = args;
    measure::verify(&paths, elsewhere, &connection, display.progress(), &listen()?)
}
