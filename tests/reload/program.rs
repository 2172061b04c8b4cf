//! The program from the outside: standard input, signals, a server that dies.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use loadgen::summary::{ErrorClass, Outcome, Summary};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Db, SANDBOXES, fixture};
use crate::common;

pub(crate) fn loadgen(db: &Db, out: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(["load", "--no-defaults", "-uroot", "--label", "x", "-D", &db.name, "-S"]);
    command.arg(&db.sandbox.socket).arg("--out").arg(out).args(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn summaries(dir: &Path) -> Vec<Summary> {
    let files = fs::read_dir(dir).expect("the directory").map(|entry| entry.expect("entry").path());
    let json = files.filter(|path| path.extension().is_some_and(|e| e == "json"));
    json.map(|path| {
        serde_json::from_str(&fs::read_to_string(path).expect("readable")).expect("a summary")
    })
    .collect()
}

/// Waits until the load has begun to fill its table: a count of its rows would wait for the lock.
fn wait_for_rows(db: &Db, child: &mut Child) {
    let until = Instant::now() + Duration::from_mins(1);
    // A load tries whether it may before it makes the table.
    let filling = "SELECT (SELECT COUNT(*) FROM information_schema.TABLES \
                   WHERE TABLE_SCHEMA = '{db}' AND TABLE_NAME = 'sbtest1') * \
                   (SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '{db}' \
                   AND (INFO LIKE 'INSERT INTO%' OR INFO LIKE 'LOAD DATA%'))";
    while db.one(filling) == "0" {
        assert!(child.try_wait().expect("a child").is_none(), "it ended early");
        assert!(Instant::now() < until, "no rows yet");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn code(out: &Output) -> (Option<i32>, String) {
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn standard_input_is_a_dump_and_the_plan_connects_nowhere() {
    let (db, dir) = (Db::new(&SANDBOXES[0].1), tempfile::tempdir().expect("a directory"));
    let dump = File::open(fixture("dump.sql")).expect("the fixture");
    let out = loadgen(&db, dir.path(), &["--from-dump", "-"]).stdin(dump).output().expect("runs");
    assert_eq!(code(&out).0, Some(0), "{}", code(&out).1);
    let summaries = summaries(dir.path());
    assert_eq!((summaries.len(), summaries[0].totals.rows), (1, 7));
    let load = summaries[0].load.as_ref().expect("a load");
    assert_eq!((load.file.as_deref(), load.read_before), (Some("-"), false));

    let list = ["--list", "--rows", "16M", "--mode", "single", "--host", "db.invalid"];
    let out = Command::new(env!("CARGO_BIN_EXE_loadgen")).arg("load").args(list).output();
    let out = out.expect("runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && text.contains("16M") && text.contains("single"), "{text}");
    for wrong in [
        ["--from-dump", "x", "--mode", "single"],
        ["--mode", "single", "--insert-bytes", "10k"],
        ["--insert-bytes", "10", "--rows", "1"],
        ["--from-dump", "-", "--repeat", "2"],
    ] {
        let out = loadgen(&db, dir.path(), &wrong).output().expect("runs");
        assert_eq!(code(&out).0, Some(2), "{wrong:?}: {}", code(&out).1);
    }
}

struct Ending {
    mode: &'static str,
    signal: Signal,
    status: i32,
}

#[test]
fn a_signal_ends_it_soon_and_what_was_measured_is_saved() {
    let (db, dir) = (Db::new(&SANDBOXES[0].1), tempfile::tempdir().expect("a directory"));
    for Ending { mode, signal, status } in [
        Ending { mode: "extended", signal: Signal::SIGINT, status: 130 },
        Ending { mode: "single", signal: Signal::SIGTERM, status: 143 },
        Ending { mode: "load-data", signal: Signal::SIGINT, status: 130 },
    ] {
        let out = dir.path().join(mode);
        let args = ["--rows", "100M", "--mode", mode];
        let mut child = loadgen(&db, &out, &args).spawn().expect("it starts");
        wait_for_rows(&db, &mut child);
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it lives");
        let asked = Instant::now();
        let done = child.wait_with_output().expect("it ends");
        assert!(asked.elapsed() < Duration::from_mins(1), "{mode}");
        assert_eq!(code(&done).0, Some(status), "{mode}: {}", code(&done).1);
        let summaries = summaries(&out);
        assert_eq!(summaries.len(), 1, "{mode}: {}", code(&done).1);
        assert_eq!(summaries[0].outcome, Outcome::Interrupted);
        assert!(summaries[0].load.as_ref().is_some_and(|load| !load.verified));
        assert!(db.comment("sbtest1").contains("state=loading"), "{mode}");
        common::query(db.sandbox, &format!("DROP TABLE {}.sbtest1", db.name));
    }
}

#[test]
fn a_server_that_dies_ends_it_with_its_status() {
    let sandbox = common::sandbox(&common::local(), &[]);
    let (db, dir) = (Db::new(&sandbox), tempfile::tempdir().expect("a directory"));
    let mut child = loadgen(&db, dir.path(), &["--rows", "100M"]).spawn().expect("it starts");
    wait_for_rows(&db, &mut child);
    kill(Pid::from_raw(sandbox.pid.cast_signed()), Signal::SIGKILL).expect("it lives");
    let died = Instant::now();
    let done = child.wait_with_output().expect("it ends");
    assert!(died.elapsed() < Duration::from_mins(1));
    let (status, text) = code(&done);
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("sbtest1"), "{text}");
    let summaries = summaries(dir.path());
    assert_eq!(summaries.len(), 1, "{text}");
    assert_eq!(summaries[0].outcome, Outcome::Aborted);
    assert!(summaries[0].server.status.is_none());
    assert_eq!(summaries[0].totals.errors.first().map(|e| &e.class), Some(&ErrorClass::Lost));
}
