//! Threads of a step, and the part of them that another process than the step's runs: the step hands
//! its channels to who reaches that process, which there starts the threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use super::jobs::compile_jobs;
use super::pacing::StepWindow;
use super::setup::{Go, MEASURED, StepSetup, ThreadEvent, ThreadMessage, tick};
use super::thread::{self, GroupShare};
use crate::error::{Error, Result};
#[cfg(feature = "lua")]
use crate::lua::share_unique;
use crate::mysql::{ServerLink, Tables};
use crate::observe::Ns;
use crate::plan::{Plan, Spread, Step, Unwritten, limits};
use crate::stop::within;
use crate::terms::named;

/// Names of hosts that the live line has.
const NAMES_MAX: usize = 3;

/// The other processes that run all threads of a step; each is one source of events.
pub struct Elsewhere<'a> {
    pub(crate) names: Vec<String>,
    /// The bound of the error of the worst clock.
    pub(crate) clock_error: Duration,
    pub(crate) lead: Duration,
    /// The time in which the last thread sees a moved window, beside `NOTICE`.
    pub(crate) notice: Duration,
    /// Takes the set-ups of all groups, the measured one first, when the connections are to be opened.
    pub(crate) open: &'a dyn Fn(&[Arc<StepSetup>]),
}

impl Elsewhere<'_> {
    pub(super) fn describe(&self) -> String {
        let (names, ms) =
            (named(self.names.clone(), NAMES_MAX, ", "), self.clock_error.as_secs_f64() * 1e3);
        format!("{names} (clocks within {ms:.3} ms)")
    }
}

/// The part of a group that some threads have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupPart {
    pub clients: usize,
    pub timed_statements: usize,
}

impl GroupPart {
    /// Returns the part that threads have, by their numbers.
    pub(crate) fn of(setup: &StepSetup, threads: &[usize]) -> GroupPart {
        let clients = threads.iter().map(|thread| setup.job.clients_of(*thread).len()).sum();
        GroupPart { clients, timed_statements: setup.job.timed_statements }
    }
}

/// The plan of a step, for another process.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum OrderedPlan {
    /// Without its seed.
    Whole(Box<Plan>, Unwritten),
    /// One of its own words, by its hash.
    Own { hash: String, engine_threads: Option<u32> },
}

impl OrderedPlan {
    pub(crate) fn whole(plan: &Plan) -> OrderedPlan {
        let (plan, unwritten) = plan.away().to_written();
        OrderedPlan::Whole(Box::new(plan), unwritten)
    }
}

/// The facts of a step that another process needs for its part of the threads.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartOrder {
    pub plan: OrderedPlan,
    pub seed: u64,
    pub step: Step,
    pub spread: Spread,
    pub tables: Tables,
    /// The threads by their numbers among all.
    pub threads: Vec<usize>,
    pub logins: usize,
    /// The first number of its sequence for `unique` of scripts, and the distance to the next one.
    pub process: (u32, u32),
    pub interval: Ns,
    pub warm_check: Ns,
    pub window: StepWindow,
}

/// The threads of a step in this process, which another one leads.
pub(crate) struct Part {
    /// The measured one first.
    groups: Vec<Arc<StepSetup>>,
    pub go: watch::Sender<Go>,
    pub window: watch::Sender<StepWindow>,
    pub events: mpsc::UnboundedReceiver<ThreadMessage>,
    handles: Vec<JoinHandle<()>>,
    beside: JoinSet<()>,
}

impl Part {
    /// Starts the threads; the first client of all logs in at `opening`.
    pub(crate) fn start(
        plan: Plan,
        order: &PartOrder,
        link: ServerLink,
        opening: Instant,
    ) -> Result<Part> {
        let plan = Plan { seed: order.seed, ..plan };
        #[cfg(feature = "lua")]
        share_unique(order.process);
        let (go, window) = (watch::Sender::new(Go::Wait), watch::Sender::new(order.window));
        let (told, events) = mpsc::unbounded_channel();
        let jobs = compile_jobs(&plan, &order.step, order.spread, order.tables)?;
        let setup = StepSetup {
            group: MEASURED,
            job: Arc::clone(&jobs[0]),
            sources: order.threads.len(),
            link,
            logins: Arc::new(Semaphore::new(order.logins)),
            interval: order.interval,
            opening,
            warm_check: order.warm_check,
            go: go.subscribe(),
            window: window.subscribe(),
            grants: Vec::new(),
            events: told,
            names: Arc::default(),
            script_log: None,
        };
        let groups = setup.of_all(&jobs);
        let handles = spawn(&groups, &order.threads)?;
        let mut beside = JoinSet::new();
        beside.spawn(tick(window.clone()));
        Ok(Part { groups, go, window, events, handles, beside })
    }

    fn measured(&self) -> &StepSetup {
        &self.groups[usize::from(MEASURED)]
    }

    pub(crate) fn threads(&self) -> usize {
        self.measured().sources
    }

    /// Counts the statements of each group that have times of their own.
    pub(crate) fn timed_statements(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().map(|group| group.job.timed_statements)
    }

    pub(crate) fn warmup(&self) -> Duration {
        self.measured().job.plan.warmup
    }

    pub(crate) fn opening(&self) -> Instant {
        self.measured().opening
    }

    pub(crate) async fn end(mut self) {
        self.go.send_replace(Go::Cancel);
        join(self.handles).await;
        self.beside.shutdown().await;
    }
}

/// Starts threads by their numbers among all of the step's, each with its share of every group's clients.
pub(super) fn spawn(groups: &[Arc<StepSetup>], numbers: &[usize]) -> Result<Vec<JoinHandle<()>>> {
    let start = |(index, number): (usize, &usize)| {
        let share = |setup: &Arc<StepSetup>| GroupShare {
            setup: Arc::clone(setup),
            clients: setup.job.clients_of(*number),
        };
        let groups: Vec<GroupShare> = groups.iter().map(share).collect();
        let run = move || {
            let run = AssertUnwindSafe(|| thread::run(&groups, index));
            // Else the step would wait for its end.
            if let Err(error) = catch_unwind(run).unwrap_or_else(|_| Err(broken())) {
                groups[0].setup.tell(index, ThreadEvent::Broken(error));
            }
        };
        std::thread::Builder::new().name(format!("engine-{index}")).spawn(run).map_err(|e| {
            Error::failed(format!("cannot start engine thread {index}: {e}"))
                .hint("raise the limit on processes (ulimit -u), or use --engine-threads 1")
        })
    };
    numbers.iter().enumerate().map(start).collect()
}

pub(super) fn broken() -> Error {
    Error::failed(
        "an engine thread stopped unexpectedly (this is a bug in loadgen: please report it)",
    )
}

/// Waits until the threads have ended; those that hang are left behind.
pub(super) async fn join(handles: Vec<JoinHandle<()>>) {
    let ended = async {
        while !handles.iter().all(JoinHandle::is_finished) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(limits::COURTESY, ended).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::knobs::Knobs;
    use crate::plan::{
        AfterError, Group, Ignored, Policy, ReadScript, Rules, Script, StatementMode,
    };
    use crate::workload::{Distribution, Workload, builtin};

    /// Returns it without what other processes do not get.
    fn as_sent(workload: &Workload) -> Workload {
        let text = serde_json::to_string(workload).expect("plain data");
        let mut written = serde_json::Deserializer::from_str(&text);
        let read = Workload::read_written(&mut written).expect(&text);
        Workload { built_in: workload.built_in, ..read }
    }

    fn script() -> Arc<Script> {
        Arc::new(Script::of_text("").away())
    }

    #[test]
    fn order_is_read_back_as_equal_when_it_is_written_down() {
        let groups = ["insert,rate=0.1", "delete"].map(|group| group.parse().expect("a group"));
        let knobs = Knobs { groups: groups.into(), ..Knobs::default() };
        let groups = knobs.resolve(builtin().remove(0), 7).expect("a plan").groups;
        for workload in builtin() {
            let plan = Knobs::default().resolve(workload, 7).expect("a plan");
            let after_error = AfterError::Restart(Ignored::Codes(vec![1213]));
            let read = || ReadScript {
                script: script(),
                after_error: after_error.clone(),
                distribution: Distribution::Zipf(0.99),
                statements: StatementMode::Text,
            };
            let of_group = |group: &Group| {
                let read = (group.name.as_str() == "delete").then(read);
                Group { workload: as_sent(&group.workload), read, ..group.clone() }
            };
            let plan = Plan {
                workload: as_sent(&plan.workload),
                groups: groups.iter().map(of_group).collect(),
                distribution: Distribution::Zipf(0.99),
                think: Some(Duration::from_millis(3)),
                reconnect_every: Some(7),
                policy: Policy { op_timeout: Some(Duration::from_secs(1)), ..plan.policy },
                clients: Vec::new(),
                repeats: 0,
                seed: 0,
                rules: Rules::loadgen(),
                ..plan
            };
            let plan = plan.run_script(read());
            let step = plan.steps().first().copied();
            let step = step.unwrap_or(Step::new(1, 1, (8, Some(0.1 + 0.2)), 1));
            let order = PartOrder {
                plan: OrderedPlan::whole(&plan),
                seed: u64::MAX,
                step,
                spread: Spread::Random,
                tables: Tables { count: 8, rows: 100, held: Some(100), ..Tables::default() },
                threads: vec![1, 3],
                logins: 16,
                process: (1, 3),
                interval: 1,
                warm_check: 2,
                window: StepWindow { start: 0, end: Ns::MAX, early: false, last: 5 },
            };
            let text = serde_json::to_string(&order).expect("plain data");
            assert_eq!(serde_json::from_str::<PartOrder>(&text).expect(&text), order);
            let OrderedPlan::Whole(sent, unwritten) = &order.plan else { panic!("{text}") };
            assert_eq!(sent.with_unwritten(unwritten), plan);
        }
    }
}
