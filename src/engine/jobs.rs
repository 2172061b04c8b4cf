//! The jobs of all groups of a step, each with what the others change.

use std::sync::Arc;

use super::job::{Job, OtherGroups, RowChanges, engine_threads, row_changes};
use crate::error::Result;
use crate::mysql::Tables;
use crate::plan::{Plan, Spread, Step};

/// Compiles the jobs of all groups, the measured one first.
pub(super) fn compile_jobs(
    plan: &Plan,
    step: &Step,
    spread: Spread,
    tables: Tables,
) -> Result<Vec<Arc<Job>>> {
    let mut others = OtherGroups {
        first_client: 0,
        clients_in_all: step.clients.saturating_add(plan.clients_beside()),
        threads: engine_threads(plan, step.clients),
        changes: RowChanges::default(),
    };
    let beside: Vec<Plan> = plan.groups.iter().map(|group| plan.of_group(group)).collect();
    let plans = std::iter::once(plan).chain(&beside);
    let scripts: Vec<bool> = plans.map(|plan| plan.script.is_some()).collect();
    let changes = |at: usize| {
        let not_own = plan.workloads().enumerate().filter(|(other, _)| *other != at);
        let changes = row_changes(not_own.map(|(_, workload)| workload), &tables);
        // Nobody knows what a script writes.
        let by_script =
            scripts.iter().enumerate().any(|(other, is_script)| other != at && *is_script);
        RowChanges { any: changes.any || by_script, ..changes }
    };
    let tables_of = |at: usize| {
        // A script names its tables itself, and the step's are those of the other groups.
        let count = if scripts[at] { 0 } else { tables.count };
        // Where others insert, nobody knows how many rows are there.
        Tables { count, held: tables.held.filter(|_| !changes(at).more), ..tables }
    };
    let measured = plan.workload.name.as_str();
    let mut jobs = vec![(Job::new(plan, spread, tables_of(0), step), None)];
    for (at, (group, plan)) in (1..).zip(plan.groups.iter().zip(&beside)) {
        let step = Step { clients: group.clients, rate: group.rate, ..*step };
        let job = Job::new(plan, plan.spread_over(tables.count)?, tables_of(at), &step);
        jobs.push((job, Some([measured, group.name.as_str()])));
    }
    let mut all = Vec::with_capacity(jobs.len());
    for (at, (job, of)) in jobs.into_iter().enumerate() {
        others.changes = changes(at);
        let clients = job.step.clients;
        all.push(Arc::new(job.among(others, of, step)));
        others.first_client = others.first_client.saturating_add(clients);
    }
    Ok(all)
}
