//! Suites of external commands.

use std::fs;
use std::path::Path;

use loadgen::error::Kind;
use loadgen::plan::knobs::{SuiteSpec, SuiteTest};
use loadgen::sandbox::Sandbox;
use loadgen::stop::Stop;
use loadgen::summary::Outcome;

use super::{Db, Measured, Measuring, SANDBOXES};
use crate::common;

fn test(name: &str, script: &str) -> SuiteTest {
    let run = ["sh", "-c", script].map(str::to_owned).to_vec();
    SuiteTest { name: name.to_owned(), run, dir: None }
}

fn measure(tests: Vec<SuiteTest>, dir: &Path, stop: &Stop) -> Measured {
    measure_on(&SANDBOXES[0].1, tests, dir, stop)
}

fn measure_on(sandbox: &Sandbox, tests: Vec<SuiteTest>, dir: &Path, stop: &Stop) -> Measured {
    let db = Db::new(sandbox);
    let spec = SuiteSpec { name: "of sh".to_owned(), tests };
    db.measure(Measuring::Suite(&spec), dir, stop)
        .unwrap_or_else(|error| panic!("{}", error.render()))
}

#[test]
fn tests_are_timed_and_find_the_server() {
    let dir = tempfile::tempdir().expect("a directory");
    let spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let place = "echo $LOADGEN_SOCKET,$LOADGEN_USER,$LOADGEN_DATABASE,$LOADGEN_PORT.; \
                 cat $LOADGEN_DEFAULTS_FILE; stat -L -c %a $LOADGEN_DEFAULTS_FILE; \
                 cp $LOADGEN_DEFAULTS_FILE copy";
    let mut here = test("place", place);
    here.dir = Some(dir.path().to_owned());
    let tests = vec![test("sleep", "sleep 0.2"), test("spin", spin), here];
    let measured = measure(tests, dir.path(), &Stop::default());
    assert!(measured.error.is_none(), "{:?}", measured.error);
    let summary = measured.summary;
    assert_eq!((summary.outcome, &*summary.workload.name), (Outcome::Completed, "suite-of sh"));
    assert_eq!((summary.plan.time_s, summary.plan.ops, summary.totals.ops), (None, None, 3));
    let suite = summary.suite.as_ref().expect("a suite");
    let names: Vec<(&str, &str)> = suite.tests.iter().map(|t| (&*t.name, &*t.status)).collect();
    assert_eq!(names, [("sleep", "ok"), ("spin", "ok"), ("place", "ok")]);
    let total: f64 = suite.tests.iter().map(|t| t.wall_s).sum();
    assert!((summary.measured_s - total).abs() < 1e-9 && suite.tests[0].wall_s >= 0.2);
    // Children of other tests, which end meanwhile, are counted as well.
    assert!(suite.tests[1].user_s > 0.01, "{suite:?}");
    assert!(summary.client.user_s >= suite.tests[1].user_s);

    let output = fs::read_to_string(dir.path().join(suite.output.as_ref().expect("a file")));
    let output = output.expect("the output");
    let socket = SANDBOXES[0].1.socket.display().to_string();
    assert!(output.contains("== place: "), "{output}");
    assert!(
        output.contains(&format!("\n{socket},root,test_")) && output.contains(",.\n"),
        "{output}"
    );
    assert!(
        output.contains(&format!("[client]\nsocket=\"{socket}\"\nuser=\"root\"\n600\n")),
        "{output}"
    );
    assert!(dir.path().join("copy").exists(), "it ran in its directory");
}

#[test]
fn a_failing_test_is_named_and_the_others_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut missing = test("missing", "");
    missing.run = vec!["/nonexistent/program".to_owned()];
    let tests = vec![test("bad", "echo why >&2; exit 3"), missing, test("good", "true")];
    let measured = measure(tests, dir.path(), &Stop::default());
    let error = measured.error.expect("it failed");
    assert_eq!(error.kind(), Kind::Failed);
    for of in ["2 of 3", "bad", "missing"] {
        assert!(error.to_string().contains(of), "{of}: {error}");
    }
    let summary = measured.summary;
    assert_eq!((summary.outcome, summary.totals.ops), (Outcome::Aborted, 1));
    assert!(summary.reason.is_some_and(|reason| reason.contains("bad")));
    let suite = summary.suite.expect("a suite");
    assert_eq!((&*suite.tests[0].status, &*suite.tests[2].status), ("exit 3", "ok"));
    assert!(suite.tests[1].status.starts_with("not started"), "{:?}", suite.tests[1]);
    let output = fs::read_to_string(dir.path().join(suite.output.expect("a file")));
    assert!(output.expect("the output").contains("why\n"));
}

#[test]
fn a_suite_is_no_result_when_a_variable_is_set_meanwhile() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (ready, set) = (at("ready"), at("set"));
    let sandbox = common::sandbox(&common::local(), &[]);
    let waits = format!("touch {ready}; until [ -e {set} ]; do sleep 0.05; done");
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !Path::new(&ready).exists() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            common::query(&sandbox, "SET GLOBAL innodb_io_capacity = 321");
            fs::write(&set, "").expect("written");
        });
        measure_on(&sandbox, vec![test("waits", &waits)], dir.path(), &Stop::default())
    });
    assert_eq!(measured.summary.outcome, Outcome::ServerChanged);
    let error = measured.error.expect("it is no result");
    assert_eq!(error.kind().exit_code(), 1);
    for of in ["innodb_io_capacity", "200", "321"] {
        assert!(error.to_string().contains(of), "{of}: {error}");
    }
}

#[test]
fn an_interruption_ends_the_test_and_the_suite() {
    let dir = tempfile::tempdir().expect("a directory");
    let ready = dir.path().join("ready");
    let stop = Stop::default();
    let asker = {
        let (stop, ready) = (stop.clone(), ready.clone());
        std::thread::spawn(move || {
            while !ready.exists() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            stop.ask(Kind::Interrupted);
        })
    };
    let endless = format!("touch {}; sleep 1000", ready.display());
    let measured =
        measure(vec![test("endless", &endless), test("next", "true")], dir.path(), &stop);
    asker.join().expect("asked");
    assert_eq!(measured.error.map(|e| e.kind()), Some(Kind::Interrupted));
    let summary = measured.summary;
    assert_eq!(summary.outcome, Outcome::Interrupted);
    let tests = summary.suite.expect("a suite").tests;
    assert_eq!((tests.len(), &*tests[0].status), (1, "interrupted"));
}
