//! Each rule alone against those of loadgen, through a step on a canned server.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::watch;

use super::errors::{Failures, OpError, abort_error};
use super::job::tests::a_plan;
use super::*;
use crate::canned::{
    Action, Answer, At, Auth, Canned, Counts, Fault, Listen, Row, Script, Service,
};
use crate::mysql::{ConnectOptions, Failure};
use crate::observe::Times;
use crate::plan::knobs::Knobs;
use crate::plan::{AfterError, AtEnd, Group, Ignored, OnError, Rules, StopAt};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::workload::{Workload, named};

pub(super) struct Ran {
    pub step: Result<MeasuredStep>,
    pub counts: Counts,
    pub seen: Watched,
}

impl Ran {
    pub(super) fn step(&self) -> &MeasuredStep {
        self.step.as_ref().unwrap_or_else(|error| panic!("{error}"))
    }

    pub(super) fn errors(&self) -> u64 {
        self.step().counted.errors.iter().map(|error| error.count).sum()
    }
}

#[derive(Default)]
pub(super) struct Watched {
    pub ends: Cell<usize>,
    /// Those after the run.
    pub late: Cell<usize>,
    busy_max: Cell<u64>,
}

impl Observer for Watched {
    fn started(&self) {}

    fn interval(&self, _: &RecordedInterval, queue: QueueLength) {
        self.busy_max.set(self.busy_max.get().max(queue.busy));
    }

    fn end(&self, reason: &EndReason) {
        let late = matches!(reason, EndReason::Client(action, _) if action.is_late());
        self.late.set(self.late.get() + usize::from(late));
        self.ends.set(self.ends.get() + 1);
    }
}

pub(super) fn plan_of(workload: &str, clients: u32, stop: StopAt) -> Plan {
    let workload = named(workload).expect(workload);
    let policy = crate::plan::Policy { on_error: OnError::Continue, ..Default::default() };
    Plan { workload, policy, engine_threads: Some(1), ..a_plan(0, clients, stop) }
}

/// Makes a group from the value of `--beside`.
fn beside(plan: &Plan, words: &str) -> Group {
    let knobs = Knobs { groups: vec![words.parse().expect("a group")], ..Knobs::default() };
    knobs.resolve(plan.workload.clone(), 7).expect("a plan").groups.remove(0)
}

/// Runs a step with loadgen's rules, and once more with one of them changed.
fn both(plan: &Plan, script: fn() -> Script, change: impl FnOnce(&mut Rules)) -> [Ran; 2] {
    let mut changed = Rules::loadgen();
    change(&mut changed);
    [Rules::loadgen(), changed].map(|rules| measure(&Plan { rules, ..plan.clone() }, script()))
}

pub(super) fn measure(plan: &Plan, script: Script) -> Ran {
    measure_with(plan, script, None)
}

fn measure_with(plan: &Plan, script: Script, elsewhere: Option<&Elsewhere<'_>>) -> Ran {
    let server = Canned::start(script, Listen::Port(0)).expect("a server");
    let target = ConnectOptions::canned(server.port());
    let link = ServerLink::to(target, &Stop::default()).expect("options");
    let seen = Watched::default();
    let pinned = plan.workload.table_a_client;
    let step = plan.steps().remove(0);
    let context = StepContext {
        plan,
        step: &step,
        spread: if pinned { Spread::Pinned } else { Spread::Random },
        tables: Tables { schema: plan.workload.schema, count: 1, rows: 100, ..Tables::default() },
        link: &link,
        server: None,
        probe: None,
        log: None,
        first_write: &|| Ok(()),
        window: watch::Sender::new(None),
        observer: Some(&seen),
        elsewhere,
        later: None,
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let step = runtime.block_on(run_step(&context, &mut None, &mut Progress::new(true, None)));
    // Commands without an answer are counted when the server comes to them.
    while server.counts().open > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ran { step, counts: server.counts(), seen }
}

fn each(statements: u64, action: Action) -> Script {
    Script { faults: vec![Fault::new(At::EachStatement(statements), action)], ..Script::default() }
}

fn with_max() -> Script {
    Script { answers: vec![Answer::value("MAX(id)", "MAX(id)", "100")], ..Script::default() }
}

const SECOND: StopAt = StopAt::Time(Duration::from_secs(1));

#[test]
fn op_begins_again_when_its_error_is_ignored() {
    let plan = plan_of("point-select", 1, StopAt::Ops(10));
    let deadlocks = || each(3, Action::error(1213, "40001", "Deadlock"));
    let [ours, theirs] = both(&plan, deadlocks, |rules| {
        rules.after_error = AfterError::Restart(Ignored::Codes(vec![1213]));
    });
    assert_eq!((ours.errors(), ours.step().counted.timeline.window.ops), (3, 7));
    assert_eq!((theirs.errors(), theirs.step().counted.timeline.window.ops), (0, 10));
}

#[test]
fn op_goes_on_over_another_connection_when_the_loss_is_ignored() {
    let plan = plan_of("point-select", 1, StopAt::Ops(5));
    let closes = || Script {
        faults: vec![Fault::new(At::Statement(3), Action::Close)],
        ..Script::default()
    };
    let [ours, theirs] = both(&plan, closes, |rules| {
        rules.after_error = AfterError::Restart(Ignored::All);
    });
    assert_eq!((ours.step().outcome, ours.errors()), (Outcome::Aborted, 1));
    assert_eq!((theirs.step().outcome, theirs.errors()), (Outcome::Completed, 0));
    assert_eq!(theirs.step().counted.timeline.window.ops, 5);
}

#[test]
fn op_counts_by_its_end_when_the_end_finishes_what_has_begun() {
    let plan = plan_of("point-select", 1, StopAt::Time(Duration::from_millis(200)));
    let slow =
        || Script { service: Service::Constant(Duration::from_millis(600)), ..Script::default() };
    let [ours, theirs] =
        both(&plan, slow, |rules| rules.at_end = AtEnd::Finish { grace: None, by_end: true });
    assert_eq!(ours.step().counted.timeline.window.ops, 0);
    assert_eq!(theirs.step().counted.timeline.window.ops, 1);
    let short = AtEnd::Finish { grace: Some(Duration::from_millis(50)), by_end: true };
    // An answer that a thread which stood still cannot find in time.
    let later = Script { service: Service::Constant(Duration::from_secs(5)), ..Script::default() };
    let cut = measure(&Plan { rules: Rules { at_end: short, ..Rules::loadgen() }, ..plan }, later);
    assert_eq!((cut.step().counted.timeline.window.ops, cut.step().unfinished()), (0, 1));
}

#[test]
fn response_times_of_a_group_beside_have_no_arrival_of_the_warm_up_when_ops_end_the_step() {
    let plan = plan_of("point-select", 1, StopAt::Ops(20));
    let groups = vec![beside(&plan, "point-select,name=reader,clients=1,rate=200,arrival=uniform")];
    let plan = Plan { warmup: Duration::from_millis(200), groups, ..plan };
    // The warm-up serves ten of its 40 arrivals at most.
    let slow =
        Script { service: Service::Constant(Duration::from_millis(20)), ..Script::default() };
    let ran = measure(&plan, slow);
    let MeasuredGroup { counted, counts, .. } = &ran.step().groups[0];
    let times = counted.timeline.window.paced.as_ref().expect("an open loop");
    let arrivals = counts.paced.expect("an open loop");
    assert!(arrivals.warmup_left > 0 && arrivals.intended > 0, "{arrivals:?}");
    assert_eq!(times.response.count(), arrivals.intended);
}

#[cfg(feature = "lua")]
#[test]
fn sleeps_and_times_of_a_group_beside_end_before_thread_done_when_ops_end_the_step() {
    let text = "local ffi = require('ffi')
    ffi.cdef('int usleep(unsigned int);')
    local con = sysbench.sql.driver():connect()
    function event(tid)
        con:query('SELECT 1')
        ffi.C.sb_event_stop(tid)
        ffi.C.usleep(30000000)
    end
    function thread_done() ffi.C.usleep(1500000) end";
    let plan = plan_of("point-select", 1, StopAt::Ops(4));
    let read = crate::plan::ReadScript {
        script: Arc::new(crate::plan::Script::of_text(text)),
        after_error: AfterError::Policy,
        distribution: plan.distribution,
        statements: plan.statements,
    };
    let beside = beside(&plan, "point-select,name=writer,clients=1");
    let groups = vec![Group { read: Some(read), ..beside }];
    let began = Instant::now();
    let ran = measure(&Plan { groups, ..plan }, Script::default());
    let whole_s = began.elapsed().as_secs_f64();
    let entries = &ran.step().groups[0].counted.timeline.entries;
    let end_s = entries.iter().map(|of| of.start_s + of.length_s).fold(0.0, f64::max);
    assert!(end_s > 0.0 && end_s + 1.5 <= whole_s, "{end_s} of {whole_s}");
}

#[test]
fn all_clients_share_the_ops_when_these_have_a_number() {
    for (ops, threads) in [(10, 1), (10, 2), (3000, 1), (3000, 2)] {
        let plan = plan_of("point-select", 3, StopAt::Time(Duration::from_mins(1)));
        let rules = Rules { shared_ops: Some(ops), ..Rules::loadgen() };
        let ran =
            measure(&Plan { rules, engine_threads: Some(threads), ..plan }, Script::default());
        assert_eq!((ran.counts.executes, ran.errors()), (ops, 0));
    }
}

#[test]
fn observer_has_the_queues_of_all_threads_when_several_work() {
    let stop = StopAt::Time(Duration::from_millis(1500));
    let plan = plan_of("point-select", 2, stop);
    let plan = Plan { rates: vec![1000.0], engine_threads: Some(2), ..plan };
    let slow =
        Script { service: Service::Constant(Duration::from_millis(20)), ..Script::default() };
    assert_eq!(measure(&plan, slow).seen.busy_max.get(), 2);
}

#[test]
fn client_opens_another_connection_when_it_has_done_its_ops() {
    let plan = plan_of("point-select", 1, StopAt::Ops(6));
    let again = Plan { reconnect_every: Some(2), ..plan.clone() };
    let rules = Rules { shared_ops: Some(6), ..Rules::loadgen() };
    let shared = Plan { rules, stop: StopAt::Time(Duration::from_mins(1)), ..again.clone() };
    // Nobody knows yet that an op that clients share was the last.
    for (plan, log_ins) in [(plan, None), (again, Some(2)), (shared, Some(3))] {
        let ran = measure(&plan, Script::default());
        let window = &ran.step().counted.timeline.window;
        assert_eq!((ran.counts.connections, ran.counts.executes), (1 + log_ins.unwrap_or(0), 6));
        assert_eq!((window.ops, window.connect.as_ref().map(|of| of.count())), (6, log_ins));
        assert_eq!(ran.step().counts.failures.reconnects, 0, "none was lost");
    }
}

#[test]
fn clients_log_in_again_after_different_ops_unless_a_rule_says_together() {
    let plan = Plan { reconnect_every: Some(4), ..plan_of("point-select", 2, StopAt::Ops(16)) };
    let [ours, theirs] = both(&plan, Script::default, |rules| rules.log_in_together = true);
    // 2, 4 and 2 ops, and 4 and 4; or 4 and 4 of each.
    assert_eq!((ours.counts.connections, theirs.counts.connections), (3 + 2, 2 + 2));
}

#[test]
fn log_in_that_is_refused_is_an_error_that_the_policy_decides_on() {
    let plan = Plan { reconnect_every: Some(2), ..plan_of("point-select", 1, StopAt::Ops(6)) };
    let full = || {
        let refusal = Action::error(1040, "08004", "Too many connections");
        Script { faults: vec![Fault::new(At::Connect(2), refusal)], ..Script::default() }
    };
    let ran = measure(&plan, full());
    let window = &ran.step().counted.timeline.window;
    assert_eq!((ran.step().outcome, window.ops, ran.errors()), (Outcome::Completed, 6, 1));
    assert_eq!(ran.step().counted.errors[0].class, crate::terms::ErrorClass::Connect);
    // The first one lasts until it succeeds: its pause is 10 ms at least.
    let log_ins = window.connect.as_ref().expect("log-ins");
    assert_eq!(log_ins.count(), 2);
    assert!(log_ins.max_us().is_some_and(|max| max >= 10_000.0), "{:?}", log_ins.max_us());
    let policy = crate::plan::Policy { on_error: OnError::Abort, ..plan.policy };
    let ran = measure(&Plan { policy, ..plan }, full());
    assert_eq!((ran.step().outcome, ran.errors()), (Outcome::Aborted, 1));
    let error = ran.step().error.as_ref().expect("the refusal").to_string();
    assert!(error.contains("logging in again at 127.0.0.1:"), "{error}");
}

#[test]
fn no_log_in_follows_the_last_op_of_an_open_loop() {
    let plan = Plan {
        reconnect_every: Some(2),
        rates: vec![1000.0],
        ..plan_of("point-select", 1, StopAt::Ops(6))
    };
    let ran = measure(&plan, Script::default());
    assert_eq!((ran.counts.connections, ran.counts.executes), (1 + 2, 6));
}

#[test]
fn lost_connection_is_not_opened_again_after_the_last_op() {
    let closes = || Script {
        faults: vec![Fault::new(At::Statement(5), Action::Close)],
        ..Script::default()
    };
    let policy = crate::plan::Policy { on_error: OnError::Reconnect, ..Default::default() };
    let of_ops = |ops| Plan { policy, ..plan_of("point-select", 1, StopAt::Ops(ops)) };
    let open = Plan { rates: vec![1000.0], ..of_ops(5) };
    for (plan, connections) in [(of_ops(5), 1), (open, 1), (of_ops(6), 2)] {
        let ran = measure(&plan, closes());
        assert_eq!((ran.step().outcome, ran.errors()), (Outcome::Completed, 1));
        assert_eq!(ran.counts.connections, connections);
    }
}

#[test]
fn op_that_waits_for_a_log_in_has_that_time_in_its_response_time() {
    let slow = Duration::from_millis(200);
    let script = Script {
        faults: vec![Fault::new(At::Connect(2), Action::Stall(slow))],
        ..Script::default()
    };
    let plan = Plan {
        reconnect_every: Some(5),
        rates: vec![100.0],
        arrival: crate::plan::Arrival::Uniform,
        ..plan_of("point-select", 1, StopAt::Ops(10))
    };
    let ran = measure(&plan, script);
    let window = &ran.step().counted.timeline.window;
    let paced = window.paced.as_ref().expect("an open loop");
    let at_least = |max: Option<f64>, ms: f64| max.is_some_and(|max| max >= ms * 1e3);
    assert!(at_least(window.connect.as_ref().expect("a log-in").max_us(), 200.0));
    // The arrival after it comes within 10 ms, and a full host does no more than lengthen that.
    assert!(at_least(paced.response.max_us(), 180.0) && at_least(paced.wait.max_us(), 180.0));
}

#[test]
fn error_says_so_when_the_client_has_no_port_left() {
    let plan = plan_of("point-select", 1, SECOND);
    let blames_ports = |lost: Failure| {
        let hints = abort_error(0, &OpError::from(lost), &plan).hints().concat();
        hints.contains("TIME_WAIT")
    };
    let from = |number: i32| {
        Failure::from(mysql_async::Error::from(std::io::Error::from_raw_os_error(number)))
    };
    // EADDRNOTAVAIL; ECONNREFUSED.
    assert_eq!([99, 111].map(|number| blames_ports(from(number))), [true, false]);
    assert!(!blames_ports(Failure::lost("no local port is left, says a server")));
}

#[test]
fn step_ends_when_more_arrivals_wait_than_the_queue_holds() {
    let plan = plan_of("point-select", 2, SECOND);
    let plan = Plan { rates: vec![1000.0], engine_threads: Some(2), ..plan };
    let slow =
        || Script { service: Service::Constant(Duration::from_millis(20)), ..Script::default() };
    // Of 900 that wait in the end each thread has half.
    let [ours, theirs] = both(&plan, slow, |rules| rules.queue_max = Some(500));
    assert_eq!((ours.step().outcome, ours.seen.ends.get()), (Outcome::Completed, 0));
    assert_eq!(theirs.step().outcome, Outcome::Aborted);
    assert!(theirs.seen.ends.get() > 0);
}

#[test]
fn observer_has_the_refusal_when_it_is_to_be_raw() {
    let plan = plan_of("point-select", 1, SECOND);
    let closed = || Script { auth: Auth::Deny, ..Script::default() };
    let [ours, theirs] = both(&plan, closed, |rules| rules.raw_refusals = true);
    assert!(ours.step.is_err_and(|error| !error.hints().is_empty()));
    assert!(theirs.step.is_err_and(|error| error.hints().is_empty()));
    assert_eq!((ours.seen.ends.get(), theirs.seen.ends.get()), (0, 1));
}

#[test]
fn begin_and_commit_are_prepared_when_all_is() {
    let plan = plan_of("write-only", 1, StopAt::Ops(2));
    let [ours, theirs] = both(&plan, Script::default, |rules| rules.prepare_all = true);
    assert_eq!((ours.counts.prepares, ours.counts.queries), (4, 4));
    assert_eq!((theirs.counts.prepares, theirs.counts.queries), (6, 0));
}

#[test]
fn bulk_statement_grows_by_a_row_when_an_op_is_one() {
    let plan = plan_of("bulk-insert", 1, StopAt::Ops(10));
    let [ours, theirs] = both(&plan, with_max, |rules| rules.row_an_op = true);
    assert_eq!((ours.counts.changes, theirs.counts.changes), (10, 1));
    assert_eq!(theirs.step().counted.timeline.window.rows, 10);
}

#[test]
fn step_ends_when_a_bulk_statement_fails_though_its_error_is_ignored() {
    let after_error = AfterError::Restart(Ignored::All);
    let rules = Rules { row_an_op: true, after_error, ..Rules::loadgen() };
    let plan = Plan { rules, ..plan_of("bulk-insert", 1, StopAt::Ops(10)) };
    for action in [Action::error(1213, "40001", "Deadlock"), Action::Close] {
        // The first statement goes when the next row does not fit, or behind the last event.
        for (bytes, late) in [(60, 0), (524_287, 1)] {
            let options = [("bulk_bytes".to_owned(), bytes)].into();
            let workload = plan.workload.clone().with_options(&options).expect("an option of it");
            let faults = vec![Fault::new(At::EachStatement(1), action.clone()).only("INSERT")];
            let script = Script { faults, ..with_max() };
            let ran = measure(&Plan { workload, ..plan.clone() }, script);
            assert_eq!((ran.seen.ends.get(), ran.seen.late.get()), (1, late), "{action:?}");
        }
    }
}

#[test]
fn largest_id_is_not_asked_for_when_ids_begin_at_one() {
    let unique = include_str!("../../profiles/workloads/insert-unique.toml");
    let workload = Workload::parse(unique, "insert-unique").expect("a workload");
    let plan = Plan { workload, ..plan_of("insert", 1, StopAt::Ops(5)) };
    let [ours, theirs] = both(&plan, with_max, |rules| rules.ids_from_one = true);
    assert_eq!((ours.counts.queries, theirs.counts.queries), (1, 0));
    assert_eq!((ours.counts.executes, theirs.counts.executes), (5, 5));
}

#[test]
fn answer_is_counted_and_not_judged_when_answers_count() {
    let plan = plan_of("point-select", 1, StopAt::Ops(4));
    let empty = || Script { row: Row { count: 0, ..Row::default() }, ..Script::default() };
    let [ours, theirs] = both(&plan, empty, |rules| rules.count_answers = true);
    assert_eq!(ours.errors(), 4);
    assert!(ours.step().counted.timeline.window.events.is_none());
    let events = theirs.step().counted.timeline.window.events.as_deref().expect("counts");
    assert_eq!((events.reads, events.unexpected, events.events), (4, 4, 4));
    assert_eq!(theirs.errors(), 0);
}

#[test]
fn failed_transaction_is_left_open_when_errors_do_not_roll_back() {
    let plan = plan_of("write-only", 1, StopAt::Ops(1));
    let timeout = || {
        let timeout = Action::error(1205, "HY000", "Lock wait timeout exceeded");
        let fault = Fault::new(At::EachStatement(1), timeout).only("UPDATE");
        Script { faults: vec![fault], ..Script::default() }
    };
    let [ours, theirs] = both(&plan, timeout, |rules| rules.roll_back = false);
    assert_eq!((ours.errors(), theirs.errors()), (1, 1));
    assert_eq!(
        (ours.counts.queries, theirs.counts.queries),
        (2, 1),
        "BEGIN and ROLLBACK, or BEGIN"
    );
}

#[test]
fn statement_has_a_time_when_the_server_answered_it_well() {
    let timeout = Action::error(1205, "HY000", "Lock wait timeout exceeded");
    let fault = Fault::new(At::EachStatement(1), timeout).only("SET c=");
    let script = Script { faults: vec![fault], ..Script::default() };
    let ran = measure(&plan_of("write-only", 1, StopAt::Ops(1)), script);
    let times = ran.step().counted.timeline.window.by_statement.iter().map(Times::count);
    assert_eq!((times.collect::<Vec<u64>>(), ran.errors()), (vec![1, 0, 0, 0], 1));
}

#[test]
fn statements_are_closed_before_the_connection_when_they_are_to_be() {
    let plan = plan_of("point-select", 1, StopAt::Ops(1));
    let [ours, theirs] = both(&plan, Script::default, |rules| rules.close_statements = true);
    assert_eq!((ours.counts.closes, theirs.counts.closes), (0, 1));
}

/// Runs a step of two clients of another process, which says this before it is told the start, and this
/// after it; returns the start, too.
fn run_elsewhere(said: [Vec<ThreadEvent>; 2]) -> (Ran, Option<jiff::Timestamp>) {
    let (said, origin) = (Mutex::new(Some(said)), Arc::new(Mutex::new(None)));
    let open = |setups: &[Arc<StepSetup>]| {
        let [before, after] = said.lock().expect("whole").take().expect("it opens once");
        let (setup, origin) = (Arc::clone(&setups[0]), Arc::clone(&origin));
        tokio::spawn(async move {
            let tell = |event| {
                let message = ThreadMessage { thread: 0, group: MEASURED, event };
                setup.events.send(message).expect("the step listens");
            };
            before.into_iter().for_each(tell);
            let mut go = setup.go.clone();
            let go = go.wait_for(|go| !matches!(go, Go::Wait)).await;
            let Ok(Go::Start(ns)) = go.map(|go| *go) else { return };
            let left = setup.opening + Duration::from_nanos(ns) - Instant::now();
            *origin.lock().expect("whole") = Some(jiff::Timestamp::now() + left);
            after.into_iter().for_each(tell);
        });
    };
    let (names, lead, none) = (vec!["c1".to_owned()], Duration::from_mins(1), Duration::ZERO);
    let elsewhere = Elsewhere { names, clock_error: none, lead, notice: none, open: &open };
    let plan = plan_of("point-select", 2, SECOND);
    let ran = measure_with(&plan, Script::default(), Some(&elsewhere));
    let origin = *origin.lock().expect("whole");
    (ran, origin)
}

#[test]
fn step_begins_at_its_start_and_names_the_host_of_an_error() {
    let wrong = OpError::Wrong("0 rows".to_owned());
    let mut failures = Failures::default();
    failures.count(wrong.count());
    let counts = ThreadCounts { ops_by_client: vec![0, 0], failures, ..Default::default() };
    let after = vec![ThreadEvent::Abort(1, wrong), ThreadEvent::Done(Box::new(counts))];
    let (ran, origin) = run_elsewhere([vec![ThreadEvent::Opened, ThreadEvent::Opened], after]);
    let step = ran.step();
    // Not at the instant at which the start was agreed on, a minute before it.
    let off = origin.expect("it was told").duration_since(step.counted.started_at);
    assert!(off.abs() < jiff::SignedDuration::from_secs(20), "{off}");
    assert_eq!(step.counted.errors[0].message, "c1: 0 rows");
    let error = step.error.as_ref().expect("it was aborted").to_string();
    assert!(step.outcome == Outcome::Aborted && error.starts_with("c1: "), "{error}");
}

#[test]
fn step_has_lost_a_host_when_that_goes_while_connections_open() {
    let lost = ThreadEvent::Lost(Error::failed("gone"));
    let (ran, origin) = run_elsewhere([vec![ThreadEvent::Opened, lost], Vec::new()]);
    let step = ran.step();
    assert_eq!((step.outcome, step.counted.measured_s, origin), (Outcome::RankLost, 0.0, None));
    assert_eq!(step.error.as_ref().map(Error::kind), Some(Kind::Failed));
}
