//! A workload's verb.

use std::time::Duration;

use super::workload::{Rows, WorkloadArgs};
use crate::error::{Error, Result};
use crate::plan::policy::Policy;
use crate::plan::{Plan, StopAt, defaults, units};
use crate::run::sweep::{self, Asked, random};
use crate::run::{Invocation, print_data};
use crate::stop::Stop;
use crate::workload::Workload;

pub(super) fn run(workload: Workload, args: WorkloadArgs, stop: &Stop) -> Result<()> {
    let plan = plan(workload, &args)?;
    let asked = Asked { gates: args.gates, slo: args.slo, slo_resolution: args.slo_resolution };
    if args.list {
        return print_data(&sweep::list(&plan, &asked, args.seed.is_none())?);
    }
    let invocation = Invocation {
        progress: args.display.progress(),
        stop,
        out: args.out,
        connection: args.connection,
        sandbox: args.sandbox.server(),
        probe: args.probe,
        calibration: args.calibration,
    };
    sweep::run(plan, &asked, invocation)
}

/// Flags → Plan.
pub(super) fn plan(workload: Workload, args: &WorkloadArgs) -> Result<Plan> {
    let default = |text: &str| units::parse_duration(text).map_err(Error::usage);
    let stop = match (args.ops, args.time) {
        (Some(ops), _) => StopAt::Ops(ops),
        (None, Some(time)) => StopAt::Time(time),
        (None, None) => StopAt::Time(default(defaults::TIME)?),
    };
    if let Some(log) = args.interval_log.as_ref().filter(|log| log.exists()) {
        return Err(Error::usage(format!("--interval-log: {} is there already", log.display()))
            .hint("another name: nothing is written over"));
    }
    if stop == StopAt::Time(Duration::ZERO) {
        return Err(Error::usage("--time 0 measures nothing").hint("--time 60s, or --ops N"));
    }
    let warmup = match (args.warmup, stop) {
        (Some(warmup), _) => warmup,
        (None, StopAt::Ops(_)) => Duration::ZERO,
        (None, StopAt::Time(_)) => default(defaults::WARMUP)?,
    };
    let seed = match args.seed {
        Some(seed) => seed,
        // 53 bits, so that every reader of JSON sees the same number.
        None => random()? >> 11,
    };
    let rates = match &args.rate {
        Some(rates) => rates.clone(),
        None if args.slo.is_empty() => Vec::new(),
        None => vec![defaults::SLO_START],
    };
    if args.arrival.is_some() && rates.is_empty() {
        return Err(Error::usage("--arrival is for an open loop").hint("--rate, or --slo"));
    }
    let plan = Plan {
        workload,
        label: args.label.clone(),
        notes: args.notes.clone(),
        tables: args.tables,
        rows: match args.rows {
            Rows::Auto => None,
            Rows::Number(n) => Some(n),
        },
        clients: args.clients.clone(),
        spread: args.spread,
        warmup,
        stop,
        rates,
        arrival: args.arrival.unwrap_or_default(),
        repeats: args.repeat,
        order: args.order,
        distribution: args.distribution,
        statements: args.statements,
        seed,
        engine_threads: args.engine_threads,
        charset: args.charset.clone(),
        out: args.out.clone(),
        interval: args.interval,
        interval_log: args.interval_log.clone(),
        before: args.before.before(),
        policy: Policy {
            on_error: args.on_error,
            errors_max: args.max_errors,
            op_timeout: args.op_timeout,
        },
    };
    plan.check_steps()?;
    // Where the tables are given, what they forbid needs no server to be said.
    match plan.tables {
        Some(tables) => plan.spread_over(tables).map(|_| plan),
        None => Ok(plan),
    }
}
