//! What this host can generate at most, with the same engine against the canned server in another
//! process.

use std::path::Path;

use tokio::sync::watch;

use super::null_server::NullServer;
use super::{kept, print_data, random, runtime, warn_of_debug_build};
use crate::engine::{self, StepContext, Tables};
use crate::error::{Error, Result};
use crate::judge::{CALIBRATION, Calibration, CalibrationStep};
use crate::mysql::options::ConnectOptions;
use crate::observe::host;
use crate::observe::probe::{Probe, Whereabouts};
use crate::observe::process::raise_descriptor_limit;
use crate::plan::{Plan, Spread, Step};
use crate::progress::Progress;
use crate::report::{self, Format};
use crate::stop::Stop;
use crate::terms;
use crate::workload::Schema;

/// Measures, keeps and prints.
pub(crate) fn run(
    plan: &Plan,
    threads: Option<&[u32]>,
    calibration: Option<&Path>,
    format: Format,
    mut progress: Progress,
    stop: &Stop,
) -> Result<()> {
    warn_of_debug_build(&mut progress);
    // Before the work: half a minute should not end at a directory that cannot be written.
    let path = kept::prepare(calibration)?;
    raise_descriptor_limit()?;
    let steps = steps(&plan.clients, threads);
    let server = NullServer::start(plan.clients_max())?;
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
        let plan = Plan {
            clients: vec![*clients],
            engine_threads: Some(*threads),
            seed: random()? >> 11,
            ..plan.clone()
        };
        let one = runtime()?.block_on(measure(&plan, &step, server.port(), stop, &mut progress))?;
        progress.note(&format!(
            "{} on {threads} engine thread{}: {:.0} QPS, {:.1} us CPU an op",
            terms::clients(*clients),
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
    print_data(&report::calibration(&calibration, format))?;
    kept::keep(&path, &calibration)?;
    progress.note(&format!("kept in {}", path.display()));
    Ok(())
}

/// Numbers of clients, and of threads that these can use, without duplicates.
fn steps(clients: &[u32], threads: Option<&[u32]>) -> Vec<(u32, u32)> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let usual = [1, cores];
    let mut steps: Vec<(u32, u32)> = Vec::new();
    for threads in threads.unwrap_or(&usual) {
        for clients in clients {
            let step = (*clients, *threads.min(clients));
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
    }
    steps
}

async fn measure(
    plan: &Plan,
    step: &Step,
    port: u16,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<CalibrationStep> {
    let target = ConnectOptions::canned(port);
    let context = StepContext {
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
    let run = engine::run_step(&context, step, &mut None, progress).await?;
    let measured = engine::calibrated(&run, plan, step);
    match run.error {
        Some(error) => Err(error),
        None if measured.qps > 0.0 => Ok(measured),
        None => Err(Error::failed("the canned server has answered nothing")),
    }
}
