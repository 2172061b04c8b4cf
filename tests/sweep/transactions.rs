//! A user's own workload, several statements in a transaction, through the library.

use std::time::Duration;

use loadgen::engine::{self, StepContext};
use loadgen::mysql::dataset::Tables;
use loadgen::mysql::options::{Address, ConnectOptions, Ssl};
use loadgen::mysql::session::{ServerLink, Session};
use loadgen::observe::times::Times;
use loadgen::plan::{Arrival, Order, Plan, Spread, SpreadChoice, StatementMode, Step, StopAt};
use loadgen::plan::{OnError, Policy, Rules};
use loadgen::progress::Progress;
use loadgen::stop::Stop;
use loadgen::summary::Outcome;
use loadgen::workload::distribution::Distribution;
use loadgen::workload::{Schema, Workload};

use crate::common::program::canned;
use loadgen::canned::{Action, At, Fault};

const OWN: &str = r#"
name = "mine"
about = "two statements in a transaction, and now and then a lone select"

[[transaction]]
weight = 3
begin = true
[[transaction.statement]]
kind = "select"
sql = "SELECT c FROM {table} WHERE id = ?"
params = [{ key = "default" }]
expect = { rows = 1 }
[[transaction.statement]]
kind = "update"
sql = "UPDATE {table} SET k = k + 2 WHERE id = ?"
params = [{ key = "zipf:0.8" }]
expect = { affected = 1 }
effect = { add_k = 2 }

[[transaction]]
[[transaction.statement]]
kind = "select"
sql = "SELECT c FROM {table} WHERE id = ?"
params = [{ key = "default" }]
expect = { rows = 1 }
"#;

fn plan(ops: u64) -> Plan {
    Plan {
        workload: Workload::parse(OWN, "own.toml").expect("a workload"),
        tables: None,
        rows: None,
        clients: vec![4],
        spread: SpreadChoice::Auto,
        warmup: Duration::ZERO,
        stop: StopAt::Ops(ops),
        rates: Vec::new(),
        arrival: Arrival::Poisson,
        think: None,
        reconnect_every: None,
        repeats: 1,
        order: Order::Ascending,
        distribution: Distribution::Uniform,
        statements: StatementMode::Prepared,
        seed: 9,
        engine_threads: Some(2),
        host_threads: Vec::new(),
        charset: None,
        interval: Duration::from_secs(1),
        before: loadgen::plan::Before::default(),
        interval_log: None,
        policy: Policy::default(),
        rules: Rules::loadgen(),
        script: None,
        groups: Vec::new(),
    }
}

fn run(plan: &Plan, port: u16) -> engine::MeasuredStep {
    let target = ConnectOptions {
        address: Address::Tcp { host: "127.0.0.1".to_owned(), port },
        others: Vec::new(),
        user: "x".to_owned(),
        password: loadgen::mysql::options::Secret::default(),
        database: "sbtest".to_owned(),
        ssl: Ssl::default(),
        connect_timeout: Duration::from_secs(5),
    };
    let link = ServerLink::to(target, &Stop::default()).expect("options");
    let step = Step {
        number: 1,
        place: 1,
        of: 1,
        clients: 4,
        rate: None,
        repeat: 1,
        attempt: 1,
        search: None,
    };
    let context = StepContext {
        plan,
        step: &step,
        spread: Spread::Pinned,
        tables: Tables { schema: Schema::Sbtest, count: 4, rows: 100, ..Tables::default() },
        first_write: &|| Ok(()),
        window: tokio::sync::watch::channel(None).0,
        observer: None,
        elsewhere: None,
        later: None,
        link: &link,
        server: None,
        probe: None,
        log: None,
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut control = Some(Session::open(&link, None).await.expect("a session"));
        let mut progress = Progress::new(true, None);
        engine::run_step(&context, &mut control, &mut progress).await.expect("a run")
    })
}

#[test]
fn transactions_count_as_one_op_and_their_statements_each() {
    let server = canned(Vec::new());
    let run = run(&plan(4000), server.port());
    assert_eq!(run.outcome, Outcome::Completed, "{:?}", run.error);
    let window = &run.counted.timeline.window;
    assert_eq!(window.ops, 4000);
    let pairs = run.ledger.iter().map(|l| l.updates).sum::<u64>();
    // Three of four ops are the transaction: BEGIN, two statements, COMMIT.
    assert!((pairs as f64 / 4000.0 - 0.75).abs() < 0.05, "{pairs}");
    assert_eq!(window.statements, 4 * pairs + (4000 - pairs));
    assert_eq!(run.ledger.iter().map(|l| l.k_added).sum::<i64>(), 2 * pairs.cast_signed());
    let timed: Vec<u64> =
        run.counted.timeline.window.by_statement.iter().map(Times::count).collect();
    assert_eq!(timed, [pairs, pairs, 4000 - pairs]);
}

#[test]
fn a_refused_statement_rolls_its_transaction_back() {
    let timeout = Action::error(1205, "HY000", "Lock wait timeout exceeded");
    let server = canned(vec![Fault::new(At::EachStatement(50), timeout).only("UPDATE")]);
    let run = run(&plan(2000), server.port());
    assert_eq!(run.outcome, Outcome::Completed, "{:?}", run.error);
    let errors: u64 = run.counted.errors.iter().map(|e| e.count).sum();
    assert!(errors > 10, "{errors}");
    assert_eq!(run.counted.timeline.window.ops + errors, 2000);
    let updates = run.ledger.iter().map(|l| l.updates).sum::<u64>();
    assert_eq!(run.ledger.iter().map(|l| l.k_added).sum::<i64>(), 2 * updates.cast_signed());
    assert_eq!(run.ledger.iter().map(|l| l.in_doubt).sum::<u64>(), 0);
}

#[test]
fn only_a_lost_commit_leaves_a_doubt() {
    for (text, doubts) in [("UPDATE", 0), ("COMMIT", 1)] {
        let server = canned(vec![Fault::new(At::Statement(100), Action::Close).only(text)]);
        let run = run(&plan(100_000), server.port());
        assert_eq!(run.outcome, Outcome::Aborted);
        assert_eq!(run.ledger.iter().map(|l| l.in_doubt).sum::<u64>(), doubts, "{text}");
    }
}

#[test]
fn a_doubt_outlives_a_rollback_that_fails() {
    const COMMIT: &[u8] = b"\x23\0\0\x01\xff\x9c\x04#HY000Got error 28 during COMMIT";
    const IDLE: &[u8] = b"\x0d\0\0\0\xff\xbf\x0f#HY000Idle";
    let refused = Action::error(1290, "HY000", "not now");
    for faults in [
        vec![
            Fault::new(At::Statement(100), Action::Garbage(COMMIT.to_vec())).only("COMMIT"),
            Fault::new(At::Statement(1), refused).only("ROLLBACK"),
        ],
        // The ROLLBACK is not sent: the server has ended the session meanwhile.
        vec![
            Fault::new(At::Statement(100), Action::Garbage([COMMIT, IDLE].concat())).only("COMMIT"),
        ],
    ] {
        let server = canned(faults);
        let policy = Policy { on_error: OnError::Reconnect, ..Policy::default() };
        let run = run(&Plan { policy, ..plan(2000) }, server.port());
        assert_eq!(run.outcome, Outcome::Completed, "{:?}", run.error);
        assert_eq!(run.ledger.iter().map(|l| l.in_doubt).sum::<u64>(), 1);
        let codes: Vec<_> = run.counted.errors.iter().map(|e| (e.code, e.count)).collect();
        assert_eq!(codes, [(Some(1180), 1)]);
        // What its transaction left open went with its connection.
        assert_eq!(server.counts().connections, 4 + 1 + 1, "clients, control, and one again");
    }
}
