//! `loadgen calibrate`: what this host can generate at most, with the same engine against the
//! canned server in another process.

pub(crate) mod kept;
mod null;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as _, FromArgMatches as _};
use tokio::sync::watch;

use self::null::NullServer;
use crate::cli::DisplayArgs;
use crate::cli::workload::WorkloadArgs;
use crate::cmd::{print_data, runtime, sweep};
use crate::engine::{self, Stage, Tables};
use crate::error::{Error, Result};
use crate::mysql::target::Target;
use crate::observe::host;
use crate::observe::probe::{Probe, Whereabouts};
use crate::observe::process::raise_descriptor_limit;
use crate::plan::units::parse_duration;
use crate::plan::{self, Plan, Spread, Step, defaults};
use crate::progress::Progress;
use crate::report::{self, Format};
use crate::stop::Stop;
use crate::summary::{CALIBRATION, Calibration, CalibrationStep};
use crate::words;
use crate::workload::{Schema, builtin};

/// Before each window: clients are there and caches are warm.
const WARMUP: Duration = Duration::from_millis(300);
/// What it runs.
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
    #[arg(long, value_name = "LIST", default_value = defaults::CALIBRATE_CLIENTS, value_parser = plan::clients::parse)]
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

fn threads(text: &str) -> std::result::Result<Vec<u32>, String> {
    let threads = plan::clients::parse(text)?;
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

/// Measures, keeps and prints.
pub(crate) fn run(args: &CalibrateArgs, stop: &Stop) -> Result<()> {
    let mut progress = Progress::new(args.display.quiet, args.display.progress);
    if cfg!(debug_assertions) {
        progress.warn("this is a debug build; its numbers are not for comparing");
    }
    // Before the work: half a minute should not end at a directory that cannot be written.
    let path = kept::prepare(args.calibration.as_deref())?;
    raise_descriptor_limit()?;
    let steps = steps(args);
    let clients_max = args.clients.iter().copied().max().unwrap_or(1);
    let server = NullServer::start(clients_max)?;
    let started_at = jiff::Timestamp::now();
    let mut measured = Vec::with_capacity(steps.len());
    for (number, (clients, threads)) in (1..).zip(&steps) {
        stop.check()?;
        let step = Step {
            number,
            place: number,
            of: steps.len() as u32,
            clients: *clients,
            rate: None,
            repeat: 1,
        };
        let plan = plan(args, *clients, *threads)?;
        let one = runtime()?.block_on(measure(&plan, &step, server.port(), stop, &mut progress))?;
        progress.note(&format!(
            "{} on {threads} engine thread{}: {:.0} QPS, {:.1} us CPU an op",
            words::clients(*clients),
            if *threads == 1 { "" } else { "s" },
            one.qps,
            one.us_per_op
        ));
        measured.push(one);
    }
    progress.clear();
    let noisy = measured.iter().filter(|step| step.disturbed().is_some()).count();
    if noisy > 0 {
        progress.warn(&format!(
            "this host was not idle in {noisy} of {} steps, which later runs will not use: calibrate \
             it when it is",
            measured.len()
        ));
    }
    let calibration = Calibration {
        schema: CALIBRATION.to_owned(),
        loadgen: engine::program(),
        host: kept::this_host(Path::new(host::ROOT)),
        started_at: started_at.to_string(),
        ended_at: jiff::Timestamp::now().to_string(),
        steps: measured,
    };
    print_data(&report::calibration(&calibration, args.format)?)?;
    kept::keep(&path, &calibration)?;
    progress.note(&format!("kept in {}", path.display()));
    Ok(())
}

/// Numbers of clients, and of threads that these can use, without duplicates.
fn steps(args: &CalibrateArgs) -> Vec<(u32, u32)> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let threads = args.engine_threads.clone().unwrap_or_else(|| vec![1, cores]);
    let mut steps: Vec<(u32, u32)> = Vec::new();
    for threads in threads {
        for clients in &args.clients {
            let step = (*clients, threads.min(*clients));
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
    }
    steps
}

/// The plan of the workload's verb, with its defaults.
fn plan(args: &CalibrateArgs, clients: u32, threads: u32) -> Result<Plan> {
    let workload = builtin().into_iter().find(|workload| workload.name == WORKLOAD);
    let workload = workload.ok_or_else(|| Error::failed(format!("there is no {WORKLOAD}")))?;
    let words = [WORKLOAD, "--tables", "1", "--clients", "1"];
    let parsed = WorkloadArgs::augment_args(clap::Command::new(WORKLOAD))
        .disable_help_flag(true)
        .try_get_matches_from(words)
        .and_then(|matches| WorkloadArgs::from_arg_matches(&matches));
    let flags = WorkloadArgs {
        clients: vec![clients],
        engine_threads: Some(threads),
        warmup: Some(WARMUP),
        time: Some(args.time),
        ..parsed.map_err(|e| Error::failed(e.to_string()))?
    };
    sweep::plan(workload, &flags)
}

async fn measure(
    plan: &Plan,
    step: &Step,
    port: u16,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<CalibrationStep> {
    let target = Target::canned(port);
    let stage = Stage {
        plan,
        spread: Spread::Pinned,
        tables: Tables {
            schema: Schema::Sbtest,
            count: 1,
            rows: 1_000_000,
            held: None,
            own: false,
        },
        opts: target.opts()?,
        target: &target,
        server: None,
        // So that what the server uses is not other load.
        probe: Some(Probe::local(&Whereabouts { port: Some(port), ..Whereabouts::default() })),
        stop,
        log: None,
        // It only reads.
        first_write: &|| Ok(()),
        window: watch::channel(None).0,
    };
    let run = engine::run_step(&stage, step, &mut None, progress).await?;
    let measured = engine::calibrated(&run, plan, step)?;
    match run.error {
        Some(error) => Err(error),
        None if measured.qps > 0.0 => Ok(measured),
        None => Err(Error::failed("the canned server has answered nothing")),
    }
}
