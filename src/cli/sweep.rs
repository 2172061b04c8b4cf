//! A workload's verb.

use super::workload::WorkloadArgs;
use crate::error::{Error, Result};
use crate::plan::knobs::Knobs;
use crate::run::sweep::{self, Asked, random};
use crate::run::{Invocation, print_data};
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
    let asked = Asked { gates, slo, slo_resolution: slo_resolution.unwrap_or(0.05) };
    if args.list {
        return print_data(&sweep::list(&plan, &asked, seed.is_none())?);
    }
    let invocation = Invocation {
        progress: args.display.progress(),
        stop,
        out: plan.out.clone(),
        connection: args.connection,
        sandbox: args.sandbox.server(),
        probe: args.probe,
        calibration: args.calibration,
    };
    sweep::run(plan, &asked, invocation)
}
