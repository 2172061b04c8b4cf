//! The verb for a script that is written for sysbench.

#[cfg(not(feature = "lua"))]
use super::scripts::no_lua;
#[cfg(feature = "lua")]
use super::shared::listen;
use super::workload::WorkloadArgs;
#[cfg(feature = "lua")]
use super::workload::{MeasureArgs, sweep};
use crate::error::{Error, Result};
#[cfg(feature = "lua")]
use crate::hosts::ClientHosts;
#[cfg(feature = "lua")]
use crate::mysql::{Env, resolve};
use crate::plan::group::find_builtin;
#[cfg(feature = "lua")]
use crate::plan::{OnError, StatementMode};
#[cfg(feature = "lua")]
use crate::run::runtime;
#[cfg(feature = "lua")]
use crate::sysbench::{Asked, NativeScript, Output};

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The script is code that runs as you: read it first. An operation is one call of its event(). Options
of the script go behind --: loadgen lua tpcc.lua --clients 8..64 -- --warehouses=10; so does
sysbench's --rand-type. After an error of --mysql-ignore-errors (default: 1213, 1020 and 1205) the
operation begins again; with --on-error continue it begins again after every error.")]
pub(crate) struct LuaArgs {
    /// The script: a file, or a module of the working directory or LUA_PATH
    #[arg(value_name = "FILE")]
    pub file: String,

    /// Run this command of the script, such as prepare or cleanup, with as many threads as clients
    // Other settings of scripts have errors that say more, and --out may stand in all commands of a job.
    #[arg(
        long, value_name = "NAME",
        conflicts_with_all = ["list", "label", "notes", "probe", "calibration", "openmetrics",
            "others_max", "warmup", "time", "ops", "repeat", "order", "seed", "engine_threads",
            "charset", "interval", "interval_log", "rate", "arrival", "think", "groups", "slo",
            "slo_resolution", "gates", "max_errors", "op_timeout", "warm", "ahi", "settle",
            "expect_class"]
    )]
    pub command: Option<String>,

    #[command(flatten)]
    pub workload: WorkloadArgs,

    /// Options of the script, such as --tables=8
    // Else it stands below the heading of the connection.
    #[arg(last = true, value_name = "OPTION", help_heading = None::<&str>)]
    pub options: Vec<String>,
}

pub(super) fn lua(mut args: LuaArgs) -> Result<()> {
    let knobs = args.workload.knobs.of_script(&find_builtin).map_err(|(key, why)| {
        Error::usage(format!("--{} is not for scripts", key.replace('_', "-")))
            .hint(format!("{why}; its options follow --"))
    });
    args.workload.knobs = knobs?;
    run(args)
}

#[cfg(not(feature = "lua"))]
fn run(_: LuaArgs) -> Result<()> {
    Err(no_lua())
}

#[cfg(feature = "lua")]
fn run(args: LuaArgs) -> Result<()> {
    let LuaArgs { file, command, workload: args, options } = args;
    let knobs = &args.knobs;
    let asked = Asked {
        threads: knobs.clients().into_iter().max().unwrap_or(1),
        database: args.measure.connection.database.as_deref(),
        text: knobs.statements == Some(StatementMode::Text),
        goes_on: knobs.on_error.is_some_and(|policy| policy != OnError::Abort),
        by_keys: false,
    };
    if file == "-" && args.clients.ranks.ranks.is_some() {
        return Err(Error::usage("--ranks: standard input comes to one rank alone")
            .hint("name a file that all ranks have"));
    }
    if command.as_deref() == Some("run") {
        return Err(Error::usage("--command run: a run is measured, without --command")
            .hint("leave it out; loadgen sysbench FILE run runs a command of the script's own"));
    }
    let script = NativeScript::parse(&file, None, &options, asked)?;
    match command {
        Some(command) => {
            // One host runs it, whoever has the clients later.
            let hosts = args.clients.ranks.wanted(args.clients.hosts)?;
            if hosts.as_ref().is_some_and(ClientHosts::are_led_elsewhere) {
                return Ok(());
            }
            run_command(script, &command, &args.measure)
        }
        None => measure(&script, args),
    }
}

/// Measures a script; with `--list`, nothing of it is run.
#[cfg(feature = "lua")]
fn measure(script: &NativeScript, args: WorkloadArgs) -> Result<()> {
    let knobs = &args.knobs;
    let is_paced = knobs.rate.is_some() || !knobs.slo.is_empty();
    let read = if args.measure.list { script.unread()? } else { script.read(is_paced)? };
    sweep(script.workload(), args, Some(read))
}

#[cfg(feature = "lua")]
fn run_command(script: NativeScript, name: &str, args: &MeasureArgs) -> Result<()> {
    if !args.sandbox.is_empty() {
        return Err(Error::usage("--command: a private server ends with the command")
            .hint("--host or --socket names a server that stays"));
    }
    let (mut progress, stop) = (args.display.progress(), listen()?);
    let connect = resolve::find(&args.connection, Env::real(), &stop, &mut progress)?;
    progress.clear();
    runtime()?.block_on(script.run_command(name, connect, Output::Stdout, &stop))
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn distribution_is_refused_when_the_script_alone_decides_on_it() {
        let of = |more: &str| {
            let words = format!("loadgen lua a.lua {more}");
            let matches = crate::cli::command().0.try_get_matches_from(words.split_whitespace());
            let matches = matches.expect("its form");
            let (_, matches) = matches.subcommand().expect("a verb");
            let knobs = LuaArgs::from_arg_matches(matches).expect("its flags").workload.knobs;
            knobs.of_script(&find_builtin).map(drop).map_err(|(key, _)| key)
        };
        for more in ["", "--distribution uniform --beside update-index"] {
            assert_eq!(of(more), Ok(()), "{more}");
        }
        for name in ["uniform", "zipf:1"] {
            assert_eq!(of(&format!("--distribution {name}")), Err("distribution"), "{name}");
        }
    }

    #[test]
    #[cfg(feature = "lua")]
    fn run_is_refused_as_a_command_of_a_script() {
        let words = "loadgen lua a.lua --command run".split(' ');
        let matches = crate::cli::command().0.try_get_matches_from(words).expect("its form");
        let (_, matches) = matches.subcommand().expect("a verb");
        let refused = lua(LuaArgs::from_arg_matches(matches).expect("its flags"));
        assert!(refused.is_err_and(|error| error.to_string().contains("--command run")));
    }

    #[test]
    fn command_of_a_script_is_refused_when_a_flag_of_a_measurement_is_given() {
        let refused = |more: &str| {
            let words = format!("loadgen lua a.lua --command prepare {more}");
            let parser = crate::cli::command().0;
            parser.try_get_matches_from(words.split_whitespace()).err().map(|e| e.kind())
        };
        for more in ["--out x", "--clients 8 --statements text", "--hosts a,b"] {
            assert_eq!(refused(more), None, "{more}");
        }
        for more in [
            "--list",
            "--time 5",
            "--repeat 3",
            "--gate p99<5ms",
            "--slo p99<5ms",
            "--beside update-index,clients=2",
            "--openmetrics 9464",
            "--interval-log a.hlog",
        ] {
            assert_eq!(refused(more), Some(ErrorKind::ArgumentConflict), "{more}");
        }
    }
}
