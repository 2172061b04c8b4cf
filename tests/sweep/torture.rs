//! Real servers that are killed, stopped, locked and closed while a sweep runs.

use std::io::Read;
use std::process::Child;
use std::time::{Duration, Instant};

use loadgen::summary::{ErrorClass, ErrorCount, Outcome, Summary};
use nix::sys::signal::Signal;

use super::servers::{prepared, sum_of_k};
use crate::common::program::{Ended, Results, command, wait};
use crate::common::restarting::{Restarting, until};
use crate::common::{at_once, local, query, try_query};

/// A sweep on a server, while something happens to that.
struct Sweep {
    results: Results,
    started: Instant,
    child: Child,
}

impl Sweep {
    fn start(server: &Restarting, user: &str, words: &str) -> Sweep {
        let (results, started) = (Results::new(), Instant::now());
        let socket = server.sandbox.socket.to_str().expect("a path").to_owned();
        let connection = ["-S", &socket, "-u", user];
        let child = command(words, &connection, &results).spawn().expect("runs");
        Sweep { results, started, child }
    }

    fn ended(self) -> Ended {
        wait(self.child, self.started, &self.results)
    }

    /// Waits until some more updates were done; panics with what the program said if it ended.
    fn until_busy(&mut self, server: &Restarting) {
        let mut first = None;
        until("a busy server", || {
            if self.child.try_wait().expect("a child").is_some() {
                let mut said = String::new();
                let stderr = self.child.stderr.as_mut().expect("piped");
                stderr.read_to_string(&mut said).expect("UTF-8");
                panic!("the sweep ended: {said}");
            }
            let now = counted(server, "Com_update");
            now > *first.get_or_insert(now) + 50
        });
    }

    fn finished_steps(&self) -> usize {
        self.results.summaries().len()
    }
}

/// The server's count of a statement so far, since its start; 0 while it is not there.
fn counted(server: &Restarting, what: &str) -> u64 {
    let rows = try_query(&server.sandbox, &format!("SHOW GLOBAL STATUS LIKE '{what}'"));
    rows.unwrap_or_default().first().and_then(|row| row.get(1)?.parse().ok()).unwrap_or(0)
}

fn error<'a>(summary: &'a Summary, class: &ErrorClass) -> Option<&'a ErrorCount> {
    summary.totals.errors.iter().find(|error| error.class == *class)
}

/// What every sweep here must come to.
fn all_well(ended: &Ended, steps: usize) {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.summaries.len(), steps, "{}", ended.stderr);
    for summary in &ended.summaries {
        assert_eq!(summary.outcome, Outcome::Completed);
        assert!(summary.totals.ops > 0, "{}", ended.stderr);
    }
}

fn restarting() -> Restarting {
    Restarting::new(prepared(&local(), &[]))
}

/// An account without privileges that root alone has: read-only mode and limits are for it.
fn plain_account(server: &Restarting) {
    for sql in [
        "CREATE USER app@localhost",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON sbtest.* TO app@localhost",
    ] {
        query(&server.sandbox, sql);
    }
}

#[test]
fn a_sweep_outlives_two_restarts_and_tells_the_outages() {
    at_once(|server| outlives_two_restarts(Restarting::new(prepared(server, &[]))));
}

fn outlives_two_restarts(mut server: Restarting) {
    let before = sum_of_k(&server.sandbox);
    // A rate, for four servers that are driven to their limit leave no time for the one that starts.
    let words = "update-index --tables 4 --clients 4,8 --rate 200 --warmup 0 --time 40s \
                 --interval 200ms --on-error reconnect --op-timeout 60s";
    let mut sweep = Sweep::start(&server, "root", words);
    for step in 0..2 {
        until("the step", || sweep.finished_steps() == step);
        sweep.until_busy(&server);
        // Uptime counts whole seconds: one that was started just before would look the same.
        std::thread::sleep(Duration::from_secs(4));
        server.kill();
        server.start();
        sweep.until_busy(&server);
        if step == 0 {
            until("the first step's end", || sweep.finished_steps() == 1);
        }
    }
    let results = sweep.results.dir().to_owned();
    let report = |format: &str| {
        let program = env!("CARGO_BIN_EXE_loadgen");
        let words = ["report", "--layout", "outages", "--format", format];
        let output = std::process::Command::new(program).args(words).arg(&results).output();
        String::from_utf8(output.expect("runs").stdout).expect("UTF-8")
    };
    let Sweep { results: kept, started, child } = sweep;
    let ended = wait(child, started, &kept);
    all_well(&ended, 2);
    for summary in &ended.summaries {
        let clients = u64::from(summary.plan.clients);
        assert_eq!(summary.outages.len(), 1, "{:?}", summary.outages);
        let outage = &summary.outages[0];
        let back = outage.first_success_s.expect("it came back");
        assert!(outage.first_error_s <= outage.last_error_s && outage.last_error_s <= back);
        assert!(outage.gap_s > 0.1 && outage.gap_s < 36.0, "{outage:?}");
        assert!(outage.errors >= clients, "{outage:?}");
        assert!(outage.recovered_s.is_none_or(|s| s >= back), "{outage:?}");
        assert_eq!(summary.totals.reconnects, clients, "{:?}", summary.totals);
        assert_eq!(error(summary, &ErrorClass::Lost).map(|e| e.count), Some(clients));
        // Those that the outage met, and those that the drain of a slow host gave up.
        let given_up = summary.totals.abandoned.min(clients);
        assert!(summary.totals.in_doubt <= clients + given_up, "{:?}", summary.totals);
        assert!(summary.warnings.iter().any(|w| w.code == "outages"));
        // Of whole seconds.
        let status = summary.server.status.as_ref().expect("it was there again");
        let restarted_s = status.restarted_s.expect("it is another process");
        // In whole seconds, of two clocks, and asked on a busy host.
        let between = (outage.first_error_s - 4.0)..(back + 4.0);
        assert!(between.contains(&restarted_s), "{restarted_s}: {outage:?}");
        assert!(status.deltas["Com_update"] > 0, "{:?}", status.deltas);
        assert!(summary.warnings.iter().any(|w| w.code == "restarted"));
    }
    // Every acknowledged update is there, and at most those in doubt beside them.
    let ledger = || ended.summaries.iter().flat_map(|summary| &summary.ledger);
    let (acknowledged, doubts): (i64, u64) =
        (ledger().map(|l| l.k_added).sum(), ledger().map(|l| l.in_doubt).sum());
    let added = sum_of_k(&server.sandbox) - before - acknowledged;
    assert!((0..=doubts.cast_signed()).contains(&added), "{added} of {doubts}");
    let text = report("text");
    assert!(text.starts_with("update-index: outages, 2 in 2 steps"), "{text}");
    assert_eq!(report("csv").lines().count(), 3);
}

#[test]
fn a_stopped_server_costs_the_ops_in_flight_and_no_more() {
    let server = restarting();
    let words = "update-index --tables 4 --clients 8 --warmup 0 --time 8s --interval 200ms \
                 --on-error reconnect --op-timeout 300ms";
    let mut sweep = Sweep::start(&server, "root", words);
    sweep.until_busy(&server);
    server.signal(Signal::SIGSTOP);
    // Nobody can be asked meanwhile: this is the length of the outage.
    std::thread::sleep(Duration::from_millis(1500));
    server.signal(Signal::SIGCONT);
    let ended = sweep.ended();
    all_well(&ended, 1);
    let summary = ended.only();
    assert!(summary.totals.abandoned >= 8, "{:?}", summary.totals);
    assert_eq!(summary.totals.in_doubt, summary.totals.abandoned);
    assert!(summary.totals.reconnects >= 8);
    // Each at its age, a lower bound of its time.
    assert!(summary.latency.service.max_us.is_some_and(|us| us >= 300e3));
    // A busy machine may have short ones besides.
    let outage = summary.outages.iter().max_by(|a, b| a.gap_s.total_cmp(&b.gap_s));
    let outage = outage.expect("an outage");
    assert!(outage.gap_s > 1.0 && outage.first_success_s.is_some(), "{outage:?}");
    assert!(outage.first_error.contains("--op-timeout"), "{outage:?}");
}

#[test]
fn a_hang_ends_the_step_unless_it_may_reconnect() {
    let server = restarting();
    let words = "update-index --tables 4 --clients 4 --warmup 0 --time 2m --op-timeout 5s";
    let mut sweep = Sweep::start(&server, "root", words);
    sweep.until_busy(&server);
    server.signal(Signal::SIGSTOP);
    let ended = sweep.ended();
    server.signal(Signal::SIGCONT);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.took < Duration::from_mins(1), "{:?}", ended.took);
    assert!(ended.stderr.contains(" 5s"), "{}", ended.stderr);
    assert_eq!(ended.only().outcome, Outcome::Aborted);
}

#[test]
fn a_read_only_server_is_counted_and_comes_back() {
    let server = restarting();
    plain_account(&server);
    let words = "update-index --tables 4 --clients 4 --warmup 0 --time 8s --interval 200ms \
                 --on-error continue";
    let mut sweep = Sweep::start(&server, "app", words);
    sweep.until_busy(&server);
    query(&server.sandbox, "SET GLOBAL read_only = 1");
    let asked = counted(&server, "Com_stmt_execute");
    std::thread::sleep(Duration::from_millis(500));
    until("refusals", || counted(&server, "Com_stmt_execute") > asked + 50);
    query(&server.sandbox, "SET GLOBAL read_only = 0");
    let ended = sweep.ended();
    all_well(&ended, 1);
    let summary = ended.only();
    assert_eq!(error(summary, &ErrorClass::ReadOnly).and_then(|e| e.code), Some(1290));
    assert_eq!((summary.totals.reconnects, summary.totals.in_doubt), (0, 0));
    let outage = summary.outages.first().expect("nobody could write");
    assert_eq!(outage.code, Some(1290));
    assert!(outage.first_success_s.is_some() && outage.gap_s >= 0.4, "{outage:?}");
}

#[test]
fn killed_sessions_come_back_as_the_server_lets_them() {
    let server = restarting();
    plain_account(&server);
    let words = "update-index --tables 4 --clients 4 --warmup 0 --time 12s --on-error reconnect";
    let mut sweep = Sweep::start(&server, "app", words);
    sweep.until_busy(&server);
    let of_app = "SELECT id FROM information_schema.processlist WHERE user = 'app'";
    query(&server.sandbox, "ALTER USER app@localhost WITH MAX_USER_CONNECTIONS 2");
    let ids = query(&server.sandbox, of_app);
    for id in &ids {
        query(&server.sandbox, &format!("KILL {}", id[0]));
    }
    sweep.until_busy(&server);
    std::thread::sleep(Duration::from_millis(300));
    query(&server.sandbox, "ALTER USER app@localhost WITH MAX_USER_CONNECTIONS 0");
    until("all clients", || query(&server.sandbox, of_app).len() >= 4);
    let ended = sweep.ended();
    all_well(&ended, 1);
    let summary = ended.only();
    assert_eq!(summary.totals.reconnects, 4, "{:?}", summary.totals.errors);
    let refused = error(summary, &ErrorClass::Connect).expect("too many connections");
    assert!(refused.count > 0 && [1203, 1226].map(Some).contains(&refused.code), "{refused:?}");
}

#[test]
fn connections_that_the_server_closes_for_silence_are_opened_again() {
    let server = restarting();
    query(&server.sandbox, "SET GLOBAL wait_timeout = 1");
    // Every two seconds for each client.
    let words = "update-index --tables 4 --clients 4 --rate 2 --arrival uniform --warmup 0 \
                 --time 5s --on-error reconnect";
    let ended = Sweep::start(&server, "root", words).ended();
    all_well(&ended, 1);
    let summary = ended.only();
    assert!(summary.totals.reconnects > 0, "{:?}", summary.totals);
    let all = summary.totals.ops + summary.totals.errors.iter().map(|e| e.count).sum::<u64>();
    assert!(all >= summary.totals.intended.expect("a rate"), "{:?}", summary.totals);
}

#[test]
fn deadlocks_and_lock_waits_are_counted_under_the_default_policy() {
    let server = restarting();
    query(&server.sandbox, "SET GLOBAL innodb_lock_wait_timeout = 1");
    let words = "write-only --tables 4 --rows 20 --clients 16 --warmup 0 --time 3s";
    let ended = Sweep::start(&server, "root", words).ended();
    all_well(&ended, 1);
    let deadlocks = error(ended.only(), &ErrorClass::Session).expect("16 clients on 20 rows");
    assert!(deadlocks.count > 0, "{deadlocks:?}");

    let mut sweep =
        Sweep::start(&server, "root", "update-index --tables 4 --clients 4 --warmup 0 --time 8s");
    sweep.until_busy(&server);
    // Holds all rows of a table for longer than the timeout.
    query(
        &server.sandbox,
        "BEGIN NOT ATOMIC START TRANSACTION; UPDATE sbtest.sbtest1 SET k = k; DO SLEEP(4); \
         COMMIT; END",
    );
    let ended = sweep.ended();
    all_well(&ended, 1);
    let waits = error(ended.only(), &ErrorClass::Session).expect("lock wait timeouts");
    assert_eq!(waits.code, Some(1205));
    assert_eq!(ended.only().totals.in_doubt, 0);
}
