//! The faults of one connection under a script: nothing hangs, and no session is used again after a broken answer.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loadgen::canned::{Action, At, Canned, Counts, Fault};
use loadgen::summary::{ErrorClass, Outcome, Summary};

use super::network::cases;
use crate::common::program::{Results, canned, command};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lua/faults.lua");
/// The words of the script's statements: a text, one that is prepared, one whose rows are fetched, a bulk insert.
const KINDS: [&str; 4] = ["asked", "executed", "fetched", "stored"];
/// Processes at once; each of them waits most of its time.
const AT_ONCE: usize = 28;

#[derive(Debug, Clone)]
struct Case {
    action: Action,
    kinds: Vec<&'static str>,
    drop_in: bool,
    /// All errors begin the event again.
    ignores: bool,
}

#[derive(Debug)]
#[expect(dead_code, reason = "a failure shows all")]
struct Ran {
    status: i32,
    output: String,
    took: Duration,
    summary: Option<Summary>,
    counts: Counts,
}

fn run(case: &Case) -> Ran {
    let fault = |(at, kind): (u64, &&str)| {
        Fault::new(At::Statement(20 * at), case.action.clone()).only(*kind)
    };
    let server = canned((1..).zip(&case.kinds).map(fault).collect());
    let results = Results::new();
    let port = server.port().to_string();
    let mut command = if case.drop_in {
        drop_in(&port, &results)
    } else {
        let words = format!("lua {SCRIPT} --clients 4 --ops 400 --warmup 0 --op-timeout 6s");
        let mut native = command(&words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], &results);
        native.arg("--");
        native
    };
    if case.ignores {
        command.arg("--mysql-ignore-errors=all");
    }
    if case.drop_in {
        command.arg("run");
    }
    let began = Instant::now();
    let output = command.output().expect("it runs");
    let took = began.elapsed();
    let text = [output.stdout, output.stderr].concat();
    Ran {
        status: output.status.code().unwrap_or(-1),
        output: String::from_utf8_lossy(&text).into_owned(),
        took,
        summary: results.summaries().pop(),
        counts: last_counts(&server),
    }
}

fn drop_in(port: &str, results: &Results) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command
        .args(["sysbench", SCRIPT, "--mysql-host=127.0.0.1", "--mysql-user=x"])
        .arg(format!("--mysql-port={port}"))
        .args(["--threads=4", "--events=400", "--time=8", "--forced-shutdown=2"])
        .arg(format!("--loadgen-out={}", results.dir().display()))
        .env_remove("MYSQL_PWD")
        .env("LOADGEN_CALIBRATION", "/nonexistent")
        .stdin(Stdio::null());
    command
}

/// The counts when the server has seen all connections end.
fn last_counts(server: &Canned) -> Counts {
    let began = Instant::now();
    while server.counts().open > 0 && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    server.counts()
}

fn run_all(cases: &[Case]) -> Vec<Ran> {
    let mut ran = Vec::new();
    for some in cases.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let running: Vec<_> = some.iter().map(|case| scope.spawn(|| run(case))).collect();
            ran.extend(running.into_iter().map(|thread| thread.join().expect("no panic")));
        });
    }
    ran
}

#[test]
fn nothing_hangs_and_no_broken_session_is_used_again_under_a_script() {
    let mut all = Vec::new();
    for (at, (action, _)) in cases().into_iter().enumerate() {
        for (place, kind) in KINDS.into_iter().enumerate() {
            let drop_in = (at + place) % 2 == 0;
            all.push(Case { action: action.clone(), kinds: vec![kind], drop_in, ignores: false });
        }
        for drop_in in [true, false] {
            // A bulk insert that fails is an error of the script's.
            let kinds = KINDS[..3].to_vec();
            all.push(Case { action: action.clone(), kinds, drop_in, ignores: true });
        }
    }
    for (case, ran) in all.iter().zip(run_all(&all)) {
        check(case, &ran);
    }
}

fn check(case: &Case, ran: &Ran) {
    let told = format!("{case:?}: {ran:#?}");
    assert!(ran.took < Duration::from_secs(100), "{told}");
    assert!(ran.counts.faults > 0 && ran.counts.used_again == 0, "{told}");
    let summary = ran.summary.as_ref().unwrap_or_else(|| panic!("no summary: {told}"));
    let totals = &summary.totals;
    let (gave_up, aborted) = (totals.abandoned > 0, summary.outcome == Outcome::Aborted);
    let status = match (aborted, gave_up) {
        (true, _) => 1,
        // Only a forced shutdown gives up what the drain would.
        (false, true) => 2,
        (false, false) => 0,
    };
    assert_eq!(ran.status, status, "{told}");
    let only = |class| totals.errors.iter().all(|error| error.class == class);
    let whole = matches!(case.action, Action::OneByteAtATime | Action::OversizedRow(_));
    if whole {
        // A script cannot fetch such a row.
        assert!(totals.reconnects == 0 && only(ErrorClass::Wrong), "{told}");
        assert!(!aborted || gave_up || case.kinds.contains(&"fetched"), "{told}");
    } else if case.ignores {
        assert!(totals.reconnects > 0 || gave_up, "{told}");
        assert!(only(ErrorClass::Lost) && (!aborted || gave_up), "{told}");
    } else {
        assert!(totals.reconnects == 0 && (aborted || gave_up), "{told}");
        assert!(totals.errors.iter().map(|error| error.count).sum::<u64>() <= 1, "{told}");
    }
}
