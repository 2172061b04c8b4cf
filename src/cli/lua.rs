//! The verb for a script that is written for sysbench, and what reads the scripts of profiles.

#[cfg(feature = "lua")]
use super::shared::listen;
use super::workload::WorkloadArgs;
#[cfg(feature = "lua")]
use super::workload::{MeasureArgs, sweep};
use crate::error::{Error, Result};
#[cfg(feature = "lua")]
use crate::hosts::ClientHosts;
use crate::mysql::ServerLink;
#[cfg(feature = "lua")]
use crate::mysql::{Env, resolve};
use crate::plan::Plan;
use crate::plan::profile::script::ScriptPart;
#[cfg(feature = "lua")]
use crate::plan::value::{RowsOrAuto, Whole};
#[cfg(feature = "lua")]
use crate::plan::{OnError, StatementMode};
#[cfg(feature = "lua")]
use crate::run::runtime;
use crate::run::scripts::ReadScripts;
#[cfg(feature = "lua")]
use crate::sysbench::{Asked, NativeScript, Output};

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
    if let Some((key, why)) = args.workload.knobs.not_for_scripts() {
        return Err(Error::usage(format!("--{} is not for scripts", key.replace('_', "-")))
            .hint(format!("{why}; its options follow --")));
    }
    run(args)
}

/// Reads the scripts that profiles name.
pub(super) struct ProfileScripts;

#[cfg(not(feature = "lua"))]
fn no_lua() -> Error {
    Error::usage("this loadgen was built without Lua")
        .hint("cargo build without --no-default-features has it")
}

#[cfg(not(feature = "lua"))]
fn run(_: LuaArgs) -> Result<()> {
    Err(no_lua())
}

#[cfg(not(feature = "lua"))]
impl ReadScripts for ProfileScripts {
    fn plan(&self, _: &ScriptPart, _: &Plan) -> Result<Plan> {
        Err(no_lua())
    }

    fn run_command(&self, _: &ScriptPart, _: (&str, u32), _: &ServerLink) -> Result<()> {
        Err(no_lua())
    }
}

#[cfg(feature = "lua")]
impl ReadScripts for ProfileScripts {
    fn plan(&self, script: &ScriptPart, plan: &Plan) -> Result<Plan> {
        let asked = Asked {
            threads: plan.clients_max(),
            database: None,
            text: plan.statements == StatementMode::Text,
            goes_on: plan.policy.on_error != OnError::Abort,
        };
        let script = NativeScript::of_profile(script, asked)?;
        let read = script.read(!plan.rates.is_empty())?;
        Ok(script.plan(plan.clone(), read))
    }

    fn run_command(
        &self,
        script: &ScriptPart,
        (name, threads): (&str, u32),
        link: &ServerLink,
    ) -> Result<()> {
        let database = Some(link.target.database.as_str()).filter(|name| !name.is_empty());
        let asked = Asked { threads, database, text: false, goes_on: false };
        let script = NativeScript::of_profile(script, asked)?;
        let target = link.target.clone();
        runtime()?.block_on(script.run_command(name, target, Output::Stderr, &link.stop))
    }
}

#[cfg(feature = "lua")]
fn run(args: LuaArgs) -> Result<()> {
    let LuaArgs { file, command, workload: mut args, options } = args;
    let knobs = &mut args.knobs;
    (knobs.tables, knobs.rows) = (Some(Whole(0)), Some(RowsOrAuto(Some(0))));
    let asked = Asked {
        threads: knobs.clients().into_iter().max().unwrap_or(1),
        database: args.measure.connection.database.as_deref(),
        text: knobs.statements == Some(StatementMode::Text),
        goes_on: knobs.on_error.is_some_and(|policy| policy != OnError::Abort),
    };
    if file == "-" && args.clients.ranks.ranks.is_some() {
        return Err(Error::usage("--ranks: standard input comes to one rank alone")
            .hint("name a file that all ranks have"));
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
    sweep(script.workload(), args, |plan| script.plan(plan, read))
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
