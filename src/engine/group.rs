//! The groups of a step's clients: their jobs, and what the step's side knows of each.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::errors::OutageWatch;
use super::job::{Job, OtherGroups, RowChanges, engine_threads, row_changes};
use super::setup::{StepSetup, ThreadCounts};
use super::{Counted, StepContext};
use crate::error::Result;
use crate::mysql::Tables;
use crate::observe::{Cost, Ns, RecordedInterval, Timeline, seconds};
use crate::plan::{Plan, Step};
use crate::summary::TableOps;

/// Compiles the jobs of all groups, the measured one first.
pub(super) fn compile_jobs(context: &StepContext<'_>) -> Result<Vec<Arc<Job>>> {
    let StepContext { plan, step, tables, .. } = *context;
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
    let mut jobs = vec![(Job::new(plan, context.spread, tables_of(0), step), None)];
    for (at, (group, plan)) in (1..).zip(plan.groups.iter().zip(&beside)) {
        let step = Step { clients: group.clients, rate: group.rate, ..*step };
        let job = Job::new(plan, plan.spread_over(tables.count)?, tables_of(at), &step);
        jobs.push((job, Some(group.name.as_str())));
    }
    let mut all = Vec::with_capacity(jobs.len());
    for (at, (job, name)) in jobs.into_iter().enumerate() {
        others.changes = changes(at);
        let clients = job.step.clients;
        all.push(Arc::new(job.among(others, name, step)));
        others.first_client = others.first_client.saturating_add(clients);
    }
    Ok(all)
}

/// A group of clients as the step's side sees it.
pub(super) struct GroupSeen {
    pub setup: Arc<StepSetup>,
    pub timeline: Timeline,
    pub ops: u64,
    pub errors: u64,
    pub outages: OutageWatch,
    /// Sources that have not ended.
    running: BTreeSet<usize>,
    done: Vec<ThreadCounts>,
}

impl GroupSeen {
    pub(super) fn new(setup: Arc<StepSetup>) -> GroupSeen {
        let (job, threads) = (&setup.job, setup.sources);
        let pause = job.plan.think.map_or(0, |think| think.as_nanos() as Ns);
        let entry = job.plan.interval.as_nanos() as Ns;
        let mut timeline = Timeline::new(threads, job.timed_statements, entry);
        timeline.window.connect = job.plan.reconnect_every.map(|_| Box::default());
        let outages = OutageWatch::new(threads, pause);
        let (running, done) = ((0..threads).collect(), Vec::new());
        GroupSeen { timeline, ops: 0, errors: 0, outages, running, done, setup }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn runs_in(&self, source: usize) -> bool {
        self.running.contains(&source)
    }

    pub(super) fn end(&mut self, source: usize, counts: ThreadCounts) -> Vec<RecordedInterval> {
        self.running.remove(&source);
        self.done.push(counts);
        self.timeline.thread_done(source)
    }

    /// Merges what its threads counted; those with clients of it may be lost.
    pub(super) fn take_counts(&mut self) -> ThreadCounts {
        let merged = std::mem::take(&mut self.done).into_iter().reduce(ThreadCounts::merge);
        let mut counts = merged.unwrap_or_default();
        if counts.ops_by_client.is_empty() {
            counts.ops_by_client.push(0);
        }
        counts.ledger.truncate(self.setup.job.tables.count as usize);
        counts
    }

    pub(super) fn count(
        self,
        (started_at, cost): (jiff::Timestamp, Cost),
        measured: Ns,
        counts: &mut ThreadCounts,
    ) -> Counted {
        let by_table = counts.ledger.iter().zip(&counts.ops_by_table);
        let per_table =
            by_table.map(|(of, ops)| TableOps { table: of.table.clone(), ops: *ops }).collect();
        Counted {
            started_at,
            measured_s: seconds(measured),
            cost,
            timeline: self.timeline,
            errors: counts.failures.take_errors(),
            per_table,
        }
    }

    pub(super) fn lose(&mut self, source: usize) -> Vec<RecordedInterval> {
        self.running.remove(&source);
        self.outages.report(source, (Ns::MAX, 0), Vec::new(), Ns::MAX);
        self.timeline.thread_done(source)
    }
}
