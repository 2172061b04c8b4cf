//! The verb for a script that is written for sysbench.

use super::workload::{self, WorkloadArgs};
use crate::error::{Error, Result};
use crate::plan::value::{RowsOrAuto, Whole};
use crate::plan::{OnError, StatementMode};
use crate::sysbench::NativeScript;

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The script is code that runs as you: read it first. An operation is one call of its event(). Options
of the script go behind --: loadgen lua tpcc.lua --clients 8..64 -- --tables=1 --scale=10; so does
sysbench's --rand-type. Errors that --mysql-ignore-errors lists (1213, 1020 and 1205 unless it is
given) begin an operation again, with --on-error continue all do.")]
pub(crate) struct LuaArgs {
    /// The script: a file, or a module of the working directory or LUA_PATH
    #[arg(value_name = "FILE")]
    pub file: String,

    /// Run this command of the script, such as prepare or cleanup, with as many threads as clients
    #[arg(long, value_name = "NAME")]
    pub command: Option<String>,

    #[command(flatten)]
    pub workload: WorkloadArgs,

    /// Options of the script, such as --tables=8
    #[arg(last = true, value_name = "OPTION")]
    pub options: Vec<String>,
}

pub(super) fn lua(args: LuaArgs) -> Result<()> {
    let LuaArgs { file, command, workload: mut args, options } = args;
    let knobs = &mut args.knobs;
    let refused = [
        (knobs.tables.is_some(), "--tables", "-- --tables=N, if the script has this option"),
        (knobs.rows.is_some(), "--rows", "-- --table-size=N, if the script has this option"),
        (knobs.spread.is_some(), "--spread", "the script chooses the table"),
        (knobs.distribution.is_some(), "--distribution", "-- --rand-type=NAME"),
        (knobs.warm.is_some(), "--warm", "it reads the tables of loadgen prepare"),
        (knobs.ahi.is_some(), "--ahi", "it reads the tables of loadgen prepare"),
    ];
    if let Some((_, flag, hint)) = refused.into_iter().find(|(is_given, ..)| *is_given) {
        return Err(Error::usage(format!("{flag} is not for scripts")).hint(hint));
    }
    if args.hosts.hosts.is_some() || args.ranks.ranks.is_some() {
        return Err(Error::usage("scripts run on one host: --hosts and --ranks cannot run them yet")
            .hint("leave them out"));
    }
    (knobs.tables, knobs.rows) = (Some(Whole(0)), Some(RowsOrAuto(Some(0))));
    let text = knobs.statements == Some(StatementMode::Text);
    let goes_on = knobs.on_error.is_some_and(|policy| policy != OnError::Abort);
    let threads = knobs.clients().into_iter().max().unwrap_or(1);
    let script = NativeScript::parse(&file, &options, threads, text, goes_on)?;
    if let Some(command) = command {
        return workload::command(script, &command, args.measure);
    }
    workload::run_script(script, args)
}
