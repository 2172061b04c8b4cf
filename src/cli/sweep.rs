//! A workload's verb.

use super::workload::WorkloadArgs;
use crate::error::{Error, Result};
use crate::plan::knobs::Knobs;
use crate::run::measure::{self, Asked};
use crate::run::steps::Job;
use crate::run::{Invocation, Place, print_data, random};
use crate::stop::Stop;
use crate::workload::Workload;

pub(super) fn run(workload: Workload, args: WorkloadArgs, stop: &Stop) -> Result<()> {
    let knobs = args.knobs.clone();
    if let Some(log) = knobs.interval_log.as_ref().filter(|log| log.exists()) {
        return Err(Error::usage(format!("--interval-log: {} is there already", log.display()))
            .hint("another name: nothing is written over"));
    }
    // 53 bits, so that every reader of JSON sees the same number.
    let plan = knobs.resolve(workload, random()? >> 11)?;
    let Knobs { gates, slo, slo_resolution, seed, .. } = args.knobs;
    let asked = Asked {
        job: Job::Sweep(&plan),
        label: plan.label.clone(),
        notes: plan.notes.clone(),
        repeats: plan.repeats,
        gates,
        slo,
        slo_resolution: slo_resolution.unwrap_or(0.05),
        yes: false,
    };
    if args.list {
        return print_data(&measure::list(&asked, &plan.out, seed.is_none())?);
    }
    let progress = args.display.progress();
    let place =
        Place { connection: args.connection, sandbox: args.sandbox.server(), probe: args.probe };
    let (out, calibration) = (plan.out.clone(), args.calibration);
    measure::run(&asked, place, Invocation { progress, stop, out, calibration })
}
