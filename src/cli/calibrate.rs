//! `loadgen calibrate`: what this host can generate at most.

use std::path::PathBuf;
use std::time::Duration;

use super::{DisplayArgs, listen};
use crate::error::Result;
use crate::plan::defaults;
use crate::plan::knobs::Knobs;
use crate::plan::value::{Clients, Length, Whole};
use crate::report::Format;
use crate::run::calibration;
use crate::workload::builtin;

/// Before each window: clients are there and caches are warm.
const WARMUP: Duration = Duration::from_millis(300);
const WORKLOAD: &str = "point-select";
/// Engine threads at most, as elsewhere.
const THREADS_MAX: u32 = 1024;

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The same engine runs prepared point selects against a server of canned answers in another process. The
result is kept, and later runs on this host are held against it (docs/verdicts.md).")]
pub(crate) struct CalibrateArgs {
    /// Concurrent clients, a step each: 64 or 1,2,4 or 8..256 (doubling)
    #[arg(long, value_name = "LIST", default_value = defaults::CALIBRATE_CLIENTS)]
    pub clients: Clients,

    /// Operating system threads of the client, steps of their own [default: 1 and the cores]
    #[arg(long, value_name = "LIST", value_parser = threads)]
    pub engine_threads: Option<Clients>,

    /// Length of each measured window
    #[arg(long, value_name = "DURATION", default_value = defaults::CALIBRATE_TIME, value_parser = window)]
    pub time: Length<100>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,

    /// Where the result is kept [default: LOADGEN_CALIBRATION, else
    /// loadgen/calibration.json in XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    #[command(flatten)]
    pub display: DisplayArgs,
}

fn threads(text: &str) -> std::result::Result<Clients, String> {
    let threads: Clients = text.parse()?;
    match threads.0.iter().find(|n| **n > THREADS_MAX) {
        Some(n) => Err(format!("{n} engine threads are more than {THREADS_MAX}")),
        None => Ok(threads),
    }
}

fn window(text: &str) -> std::result::Result<Length<100>, String> {
    let window: Length<100> = text.parse()?;
    let fits = (window.0 <= Duration::from_hours(1)).then_some(window);
    fits.ok_or_else(|| format!("'{text}' is longer than 1h"))
}

pub(super) fn run(args: CalibrateArgs) -> Result<()> {
    let workload = builtin().into_iter().find(|workload| workload.name == WORKLOAD);
    // The plan of the workload's verb, with its defaults.
    let knobs = Knobs {
        tables: Some(Whole(1)),
        clients: Some(args.clients),
        warmup: Some(Length(WARMUP)),
        time: Some(Length(args.time.0)),
        ..Knobs::default()
    };
    // Each step has a seed of its own.
    let plan = knobs.resolve(workload.expect("it is built in"), 0)?;
    let threads = args.engine_threads.as_ref().map(|threads| threads.0.as_slice());
    let (kept, progress) = (args.calibration.as_deref(), args.display.progress());
    calibration::run(&plan, threads, kept, args.format, progress, &listen()?)
}
