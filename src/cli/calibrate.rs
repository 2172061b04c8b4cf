//! `loadgen calibrate`: what this host can generate at most.

use std::path::PathBuf;
use std::time::Duration;

use super::DisplayArgs;
use crate::error::{Error, Result};
use crate::plan::knobs::Knobs;
use crate::plan::units::parse_duration;
use crate::plan::value::{Clients, Length, Whole};
use crate::plan::{Plan, defaults};
use crate::report::Format;
use crate::run::calibration;
use crate::stop::Stop;
use crate::workload::builtin;

/// Before each window: clients are there and caches are warm.
const WARMUP: Duration = Duration::from_millis(300);
const WORKLOAD: &str = "point-select";
/// Engine threads at most, as elsewhere.
const THREADS_MAX: u32 = 1024;

/// Measure what this host can generate at most.
#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The same engine runs prepared point selects against a server of canned answers in another process. The
result is kept, and later runs on this host are held against it (docs/verdicts.md).")]
pub(crate) struct CalibrateArgs {
    /// Concurrent clients, a step each: 64 or 1,2,4 or 8..256 (doubling)
    #[arg(long, value_name = "LIST", default_value = defaults::CALIBRATE_CLIENTS, value_parser = clients)]
    pub clients: std::vec::Vec<u32>,

    /// Operating system threads of the client, steps of their own [default: 1 and the cores]
    #[arg(long, value_name = "LIST", value_parser = threads)]
    pub engine_threads: Option<std::vec::Vec<u32>>,

    /// Length of each measured window
    #[arg(long, value_name = "DURATION", default_value = defaults::CALIBRATE_TIME, value_parser = window)]
    pub time: Duration,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,

    /// Where the result is kept [default: LOADGEN_CALIBRATION, else
    /// loadgen/calibration.json in XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub display: DisplayArgs,
}

fn clients(text: &str) -> std::result::Result<Vec<u32>, String> {
    text.parse().map(|Clients(list)| list)
}

fn threads(text: &str) -> std::result::Result<Vec<u32>, String> {
    let threads = clients(text)?;
    match threads.iter().find(|n| **n > THREADS_MAX) {
        Some(n) => Err(format!("{n} engine threads are more than {THREADS_MAX}")),
        None => Ok(threads),
    }
}

fn window(text: &str) -> std::result::Result<Duration, String> {
    let window = parse_duration(text)?;
    if window < Duration::from_millis(100) || window > Duration::from_hours(1) {
        return Err(format!("'{text}' is not between 100ms and 1h"));
    }
    Ok(window)
}

pub(super) fn run(args: &CalibrateArgs, stop: &Stop) -> Result<()> {
    let (threads, kept) = (args.engine_threads.as_deref(), args.calibration.as_deref());
    calibration::run(&plan(args)?, threads, kept, args.format, args.display.progress(), stop)
}

/// The plan of the workload's verb, with its defaults.
fn plan(args: &CalibrateArgs) -> Result<Plan> {
    let workload = builtin().into_iter().find(|workload| workload.name == WORKLOAD);
    let workload = workload.ok_or_else(|| Error::failed(format!("there is no {WORKLOAD}")))?;
    let knobs = Knobs {
        tables: Some(Whole(1)),
        clients: Some(Clients(args.clients.clone())),
        warmup: Some(Length(WARMUP)),
        time: Some(Length(args.time)),
        ..Knobs::default()
    };
    // Each step has a seed of its own.
    knobs.resolve(workload, 0)
}
