//! The client's share of a step: what its threads saw of themselves, and who used the host.

use std::time::Duration;

use super::Run;
use super::crew::engine_threads;
use super::mirror::{Seen, Turns};
use crate::error::Result;
use crate::observe::host::Host;
use crate::observe::times::Times;
use crate::plan::{Plan, Step};
use crate::stats;
use crate::summary::{CalibrationStep, Share, ThreadShare, TurnDelay};

/// The summary's form.
pub(super) fn share(run: &Run, host: &Host) -> Result<Share> {
    Ok(Share {
        threads: run.threads.iter().map(thread).collect(),
        turns: all_turns(run)?,
        host_cores: Some(host.cores_online).filter(|cores| *cores > 0),
        host_busy: run.cores.busy,
        other_load: run.cores.others,
        steal: run.cores.steal,
        server_cpu_s: run.cores.server_s,
        throttled_s: run.cores.throttled_s,
        ceiling: None,
    })
}

fn thread(seen: &Seen) -> ThreadShare {
    ThreadShare {
        busy: seen.busy,
        wall_s: seen.wall.as_secs_f64(),
        cpu_s: seen.ran.as_ref().map(Duration::as_secs_f64),
        spun_s: seen.spun.as_secs_f64(),
        descheduled_s: seen.waited.as_ref().map(Duration::as_secs_f64),
        turns: turn_delay(&seen.turns),
    }
}

/// Of all threads together.
fn all_turns(run: &Run) -> Result<TurnDelay> {
    let mut all = Turns::new()?;
    for thread in &run.threads {
        all.merge(&thread.turns);
    }
    Ok(turn_delay(&all))
}

fn turn_delay(turns: &Turns) -> TurnDelay {
    let probes = turns.delay.count();
    let tail = stats::highest_known(probes);
    let at = |times: &Times| times.percentile_us(f64::from(tail?));
    TurnDelay {
        probes,
        turn_delay_p50_us: turns.delay.percentile_us(50.0),
        turn_delay_p99_us: turns.delay.percentile_us(99.0),
        turn_delay_max_us: turns.delay.max_us(),
        own_delay_p99_us: turns.own.percentile_us(99.0),
        tail_percentile: tail,
        turn_delay_tail_us: at(&turns.delay),
        own_delay_tail_us: at(&turns.own),
    }
}

/// What a step against canned answers says about this host.
pub(crate) fn calibrated(run: &Run, plan: &Plan, step: &Step) -> Result<CalibrationStep> {
    let window = run.timeline.window;
    let per_s = |n: u64| if run.measured_s > 0.0 { n as f64 / run.measured_s } else { 0.0 };
    let cpu_us = (run.user + run.sys).as_secs_f64() * 1e6;
    let us_per_op = if window.ops > 0 { cpu_us / window.ops as f64 } else { 0.0 };
    let threads = engine_threads(plan, step.clients);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at_most = threads.min(cores) as f64 * 1e6;
    let turns = all_turns(run)?;
    Ok(CalibrationStep {
        clients: step.clients,
        engine_threads: threads as u32,
        measured_s: run.measured_s,
        qps: per_s(window.statements),
        us_per_op,
        busy: run.threads.iter().map(|t| t.busy).fold(0.0, f64::max),
        tail_percentile: turns.tail_percentile,
        turn_delay_tail_us: turns.turn_delay_tail_us,
        other_load: run.cores.others,
        steal: run.cores.steal,
        ceiling_qps: if us_per_op > 0.0 { at_most / us_per_op } else { 0.0 },
    })
}
