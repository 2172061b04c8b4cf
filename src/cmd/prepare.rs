//! `loadgen prepare`: create and fill tables.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use mysql_async::Opts;
use tokio::runtime::Runtime;

use crate::cli::ServerArgs;
use crate::cli::connection::ConnectionArgs;
use crate::cli::workload;
use crate::cmd::runtime;
use crate::error::{Error, Kind, Result};
use crate::load::{self, Fill, Job, Numbers};
use crate::mysql::resolve;
use crate::mysql::target::Target;
use crate::mysql::tls;
use crate::plan::{defaults, names};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::workload::Schema;

/// Create the tables and fill them.
#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
Rows are made from the data seed, the table and the id alone. An interrupted fill is completed by
the same command; on finished tables it ends at once. Tables that prepare did not make are never
touched.

Examples:
  loadgen prepare --tables 8 --rows 16M
  loadgen prepare --tables 8 --rows 16M --data-seed 2 --force
  loadgen prepare --schema phptest --rows 1M")]
pub(crate) struct PrepareArgs {
    /// Which tables: sbtest (sysbench's), phptest (the suite of 2007) or bulk (of bulk-insert)
    #[arg(long, value_name = "NAME", hide_possible_values = true, default_value_t, value_enum)]
    pub schema: Schema,

    /// Tables: sbtest1 to sbtestN, for one
    #[arg(long, value_name = "N", default_value_t = defaults::TABLES, value_parser = workload::tables)]
    pub tables: u32,

    /// Rows of each table, up to 10G [default: 10k; bulk has none]
    #[arg(long, value_name = "N", value_parser = workload::row_count)]
    pub rows: Option<u64>,

    /// Seed of the rows' content
    #[arg(long, value_name = "N", default_value_t = defaults::DATA_SEED)]
    pub data_seed: u32,

    /// How the rows get there: auto, load-data (LOAD DATA LOCAL) or insert
    #[arg(long, value_name = "METHOD", hide_possible_values = true, default_value_t, value_enum)]
    pub fill: Fill,

    /// Connections that fill [default: two a core of this machine, 2 to 16]
    #[arg(long, value_name = "N")]
    pub jobs: Option<u32>,

    /// Character set of the tables [default: the server's]
    #[arg(long, value_name = "NAME", value_parser = names::charset)]
    pub charset: Option<String>,

    /// Drop the tables that prepare made, whatever they hold, and fill them again
    #[arg(long)]
    pub force: bool,

    /// Do not ask before dropping
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub server: ServerArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &PrepareArgs, stop: &Stop) -> Result<()> {
    let (mut progress, at) = reach(&args.server, stop)?;
    let rows = match args.rows {
        Some(rows) => rows,
        None if args.schema.filled() => {
            workload::row_count(defaults::ROWS).map_err(Error::usage)?
        }
        None => 0,
    };
    let job = Job {
        schema: args.schema,
        tables: args.tables,
        rows,
        data_seed: args.data_seed,
        fill: args.fill,
        jobs: args.jobs,
        charset: args.charset.clone(),
        force: args.force,
        passing: false,
    };
    if args.force && !args.yes && on_terminal() {
        let ours = at.runtime.block_on(load::marked(&at.target, &at.opts, true, stop))?;
        let ours = ours.get(&job.schema).cloned().unwrap_or_default();
        let ours: Vec<u32> = ours.into_iter().filter(|table| *table <= job.tables).collect();
        let ours = if ours.is_empty() { Numbers::new() } else { [(job.schema, ours)].into() };
        agree_to_drop(&load::named(&ours), &at.target, stop)?;
    }
    let preparing = load::prepare(&at.target, &at.opts, &job, stop, &mut progress);
    let done = at.runtime.block_on(preparing);
    progress.clear();
    done.map(|_| ())
}

/// What a verb needs that does one thing with a server.
pub(super) struct Reached {
    pub(super) runtime: Runtime,
    pub(super) target: Target,
    /// [`Target::opts`] of it.
    pub(super) opts: Opts,
}

/// The server that the flags name.
pub(super) fn find(connection: &ConnectionArgs, progress: &mut Progress) -> Result<Target> {
    let (target, warnings) = resolve::find(connection)?;
    for warning in &warnings {
        progress.warn(warning);
    }
    Ok(target)
}

/// The same, its encryption decided.
pub(super) fn reach(args: &ServerArgs, stop: &Stop) -> Result<(Progress, Reached)> {
    let mut progress = Progress::new(args.display.quiet, args.display.progress);
    let target = find(&args.connection, &mut progress)?;
    let runtime = runtime()?;
    let target = runtime.block_on(or_stop(stop, tls::settle(&target)))?;
    let opts = target.opts()?;
    Ok((progress, Reached { runtime, target, opts }))
}

/// What the server answers, unless interrupted first.
pub(super) async fn or_stop<T>(stop: &Stop, asking: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        kind = stop.wait() => Err(Error::new(kind, "interrupted")),
        answer = asking => answer,
    }
}

/// Whether there is somebody to ask.
pub(super) fn on_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, if there is something; any answer but yes is an error that nothing was done.
pub(super) fn agree_to_drop(tables: &str, target: &Target, stop: &Stop) -> Result<()> {
    if tables.is_empty() {
        return Ok(());
    }
    let question = crate::error::line(&format!("Drop {tables} at {target}? [y/N] "));
    let mut err = std::io::stderr();
    let _ = err.write_all(question.as_bytes()).and_then(|()| err.flush());
    // Read on a thread of its own, so that a signal ends the wait; the thread ends with the
    // process.
    let (sender, answers) = mpsc::channel();
    std::thread::spawn(move || {
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        let _ = sender.send(read.map(|_| answer.trim().to_ascii_lowercase()));
    });
    let answer = loop {
        stop.check()?;
        match answers.recv_timeout(Duration::from_millis(50)) {
            Err(RecvTimeoutError::Timeout) => {}
            answer => break answer,
        }
    };
    match answer {
        Ok(Ok(yes)) if yes == "y" || yes == "yes" => Ok(()),
        _ => Err(Error::new(Kind::Failed, "nothing was dropped").hint("--yes does not ask")),
    }
}
