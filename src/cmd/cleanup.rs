//! `loadgen cleanup`: drop the tables that prepare made.

use crate::cli::DisplayArgs;
use crate::cli::connection::ConnectionArgs;
use crate::cmd::prepare::{agree_to_drop, find, on_terminal, or_stop};
use crate::cmd::runtime;
use crate::error::Result;
use crate::load;
use crate::mysql::tls;
use crate::progress::Progress;
use crate::stop::Stop;

/// Drop the tables that prepare made.
#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The tables are known by the mark that prepare leaves in their COMMENT; others of the same names,
such as sysbench's, stay.")]
pub struct CleanupArgs {
    /// Do not ask before dropping
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it as the command's help")]
    pub display: DisplayArgs,

    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it as the command's help")]
    pub connection: ConnectionArgs,
}

/// Runs the verb.
pub fn run(args: &CleanupArgs, stop: &Stop) -> Result<()> {
    let mut progress = Progress::new(args.display.quiet, args.display.progress);
    let target = find(&args.connection, &mut progress)?;
    let runtime = runtime()?;
    let target = runtime.block_on(or_stop(stop, tls::settle(&target)))?;
    let opts = target.opts()?;
    if !args.yes && on_terminal() {
        let ours = runtime.block_on(or_stop(stop, load::marked(&target, &opts)))?;
        agree_to_drop(&ours, &target, stop)?;
    }
    let done = runtime.block_on(load::cleanup(&target, &opts, stop, &mut progress));
    progress.clear();
    done.map(|_| ())
}
