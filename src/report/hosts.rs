//! The hosts of steps with clients on several (`--hosts`): what each did, and what its clock is worth.

use super::columns::{Rows, Sheet};
use super::escape::{self, clip};
use super::names::label;
use super::page::Page;
use super::table::WorkloadTable;
use crate::summary::{ClientHost, Summary, VerdictKind};
use crate::terms;
use crate::terms::units::rate_decimals;

/// Longest name of a host that is shown, characters.
const NAME_MAX: usize = 40;
const ABOUT: [&str; 2] = [
    "CPU, delay (the highest percentile that is known) and verdict are of each host's own client",
    "clock is the bound of the error of the window's edges on that host",
];

/// Returns the hosts of a workload's steps; those that did not complete are in it, too.
pub(crate) fn page(table: &WorkloadTable) -> Page {
    let steps = table.steps_of_lines();
    let all = steps.iter().flat_map(|(_, step)| step.hosts.iter().map(|host| (*step, host)));
    let rows: Vec<(&Summary, &ClientHost)> = all.collect();
    let (many, steps) = (rows.len(), terms::counted(steps.len() as u64, "step"));
    let title = format!("{}: hosts, {many} in {steps}", escape::line(table.workload));
    if rows.is_empty() {
        return Page::new(title, Sheet::default(), Vec::new());
    }
    let late = |host: &ClientHost| host.share.as_ref()?.turns.turn_delay_tail_us;
    let rate = |(step, host): &(&Summary, &ClientHost)| {
        // The ops of a host that was lost are not known.
        let is_known = host.ops > 0 || host.share.is_some() || host.clients == 0;
        (is_known && step.measured_s > 0.0).then(|| host.ops as f64 / step.measured_s)
    };
    let decimals = rate_decimals(rows.iter().filter_map(rate));
    let sheet = Rows::new(rows)
        .shown("clients", |(step, _)| step.cell().to_string())
        .place(table.workload, |(step, _)| step.cell())
        .filed("label", |(step, _)| step.label.as_str())
        .filed("step_id", |(step, _)| step.step_id.as_str())
        .filed("rank", |(_, host)| u64::from(host.rank))
        .both("host", "host", |(_, host)| {
            (host.name.clone(), clip(&escape::line(&host.name), NAME_MAX))
        })
        .both("own", "host_clients", |(_, host)| u64::from(host.clients))
        .both("threads", "threads", |(_, host)| u64::from(host.threads))
        .both("ops/s", "ops_per_s", |row| rate(row).map(|rate| (rate, decimals)))
        .both("CPU us/op", "client_cpu_us", |(_, host)| host.us_per_op.map(|us| (us, 1)))
        .both("delay us", "turn_delay_us", |(_, host)| late(host).map(|us| (us, 0)))
        .both("RTT us", "rtt_us", |(_, host)| host.rtt_us.map(|us| (us, 0)))
        .both("clock us", "clock_error_us", |(_, host)| (host.clock.error_us, 1))
        .both("verdict", "verdict", |(_, host)| host.verdict.map(VerdictKind::name))
        .text("label", |(step, _)| label(&step.label))
        .sheet();
    Page::new(title, sheet, ABOUT.map(str::to_owned).into())
}
