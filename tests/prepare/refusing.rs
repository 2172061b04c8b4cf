//! Servers that refuse something, have odd settings, or go away; and the program itself.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use loadgen::error::Kind;
use loadgen::plan::experiment::{Dataset, Method};

use super::{Db, by, job};
use crate::common;

/// What a server may be set to, none of which must matter. Statements of at most 16 KiB.
const ODD: [(&str, &str); 6] = [
    ("local-infile", "0"),
    ("autocommit", "0"),
    ("default-storage-engine", "MyISAM"),
    ("sql-mode", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO"),
    ("max-allowed-packet", "16384"),
    ("character-set-server", "ucs2"),
];

pub(crate) fn loadgen(db: &Db, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command
        .args(args)
        .args(["--no-defaults", "-u", "root", "-D", &db.name, "-S"])
        .arg(&db.sandbox.socket)
        .stdin(Stdio::null());
    command
}

pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn without_local_infile_it_inserts_and_says_how_to_be_faster() {
    let sandbox = common::sandbox(&common::local(), &ODD);
    let db = Db::new(&sandbox);
    let error = db.prepare(&by(Method::LoadData, job(1, 12_000))).unwrap_err();
    assert_eq!(error.kind(), Kind::Server);
    assert!(error.render().contains("SET GLOBAL local_infile = 1"), "{}", error.render());

    assert_eq!(db.tables(), [""; 0], "nothing was made");

    // One line an interval in a pipe; nothing on standard output.
    let args = ["prepare", "--tables", "2", "--rows", "12k", "--progress", "100ms"];
    let output = loadgen(&db, &args).output().unwrap();
    let (out, err) = texts(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(0), ""), "{err}");
    for part in ["INSERT", "local_infile", "12k"] {
        assert!(err.contains(part), "{part}: {err}");
    }
    let again = loadgen(&db, &["prepare", "--tables", "2", "--rows", "12k"]).output().unwrap();
    assert!(again.status.success() && texts(&again).1.contains("sbtest1, sbtest2"));
    assert_eq!(db.prepare(&job(2, 12_000)).unwrap().filled, 0, "nothing is left to do");
    assert!(texts(&again).1.contains("--force"));

    // The same rows by the other way, on the same odd server.
    let inserted = db.checksum(2);
    db.query("SET GLOBAL local_infile = 1");
    let done = db.prepare(&Dataset { force: true, ..job(2, 12_000) }).unwrap();
    assert_eq!(done.method, Some(Method::LoadData));
    assert_eq!(db.checksum(2), inserted);
    assert_eq!(db.info(2, "ENGINE"), "InnoDB");

    let output = loadgen(&db, &["cleanup", "--yes", "--quiet"]).output().unwrap();
    assert_eq!((output.status.code(), texts(&output)), (Some(0), (String::new(), String::new())));
    assert_eq!(db.tables(), [""; 0]);
}

#[test]
fn accounts_without_rights_are_told_which_ones() {
    let sandbox = common::sandbox(&common::local(), &[]);
    let db = Db::new(&sandbox);
    db.query("CREATE USER reader@localhost");
    db.query(&format!("GRANT SELECT ON {}.* TO reader@localhost", db.name));
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(["prepare", "--no-defaults", "-u", "reader", "-D", &db.name, "-S"]);
    let output = command.arg(&sandbox.socket).output().unwrap();
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    let is_hint = |line: &str| line.starts_with("hint: ") && line.contains("CREATE");
    assert!(err.contains("1142") && err.lines().any(is_hint), "{err}");

    db.query(&format!("GRANT ALL ON {}.* TO reader@localhost", db.name));
    db.query("SET GLOBAL read_only = 1");
    let output = command.output().unwrap();
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("SET GLOBAL read_only = 0"), "{err}");
}

#[test]
fn a_missing_database_is_not_made_and_the_hint_makes_it() {
    let sandbox = common::sandbox(&common::local(), &[]);
    let mut db = Db::new(&sandbox);
    db.name = "nowhere".to_owned();
    for verb in ["prepare", "cleanup"] {
        let output = loadgen(&db, &[verb]).output().unwrap();
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(3), "{err}");
        assert!(err.contains("1049") && err.contains("hint: CREATE DATABASE `nowhere`"), "{err}");
    }
}

#[test]
fn usage_is_checked_before_anything_is_made() {
    let sandbox = common::sandbox(&common::local(), &[]);
    let db = Db::new(&sandbox);
    for (wrong, named) in [
        (Dataset { tables: 0, ..job(1, 1) }, "--tables"),
        (Dataset { tables: 100_001, ..job(1, 1) }, "--tables"),
        (Dataset { rows: 0, ..job(1, 1) }, "--rows"),
        (Dataset { rows: 10_000_000_001, ..job(1, 1) }, "--rows"),
        (Dataset { jobs: Some(0), ..job(1, 1) }, "--jobs"),
        (Dataset { jobs: Some(257), ..job(1, 1) }, "--jobs"),
        (Dataset { charset: Some("klingon".to_owned()), ..job(1, 1) }, "klingon"),
        (Dataset { charset: Some("binary".to_owned()), ..job(1, 1) }, "binary"),
        (Dataset { charset: Some("x'; DROP".to_owned()), ..job(1, 1) }, "--charset"),
    ] {
        let error = db.prepare(&wrong).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    assert_eq!(db.tables(), [""; 0]);
}

#[test]
fn a_full_tablespace_is_said_and_the_table_stays_unfinished() {
    let full = [
        ("innodb-data-file-path", "ibdata1:12M:autoextend:max:20M"),
        ("innodb-file-per-table", "0"),
    ];
    let sandbox = common::sandbox(&common::local(), &full);
    let db = Db::new(&sandbox);
    let error = db.prepare(&job(2, 40_000)).unwrap_err();
    assert_eq!(error.kind(), Kind::Failed);
    assert!(error.render().contains("disk full"), "{}", error.render());
    assert!(db.comment(1).ends_with("state=filling") || db.comment(2).ends_with("state=filling"));
}

#[test]
fn a_server_that_goes_away_ends_the_fill() {
    let sandbox = common::sandbox(&common::local(), &[]);
    let db = Db::new(&sandbox);
    let fill = loadgen(&db, &["prepare", "--rows", "100M"]);
    let mut fill = { fill }.stderr(Stdio::piped()).spawn().unwrap();
    while db.tables().is_empty() || db.count(1) == 0 {
        assert_eq!(fill.try_wait().unwrap(), None);
    }
    drop(sandbox);
    let began = Instant::now();
    while fill.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_mins(1), "it waits for a dead server");
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = fill.wait_with_output().unwrap();
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("filling sbtest1") && err.contains("connection lost"), "{err}");
}

/// VmHWM of a prepare in KiB, read just before its end as nearly as possible.
fn peak_kib(db: &Db, rows: &str) -> u64 {
    let args = ["prepare", "--force", "--jobs", "2", "--quiet", "--rows", rows];
    let mut child = loadgen(db, &args).spawn().unwrap();
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = kib.unwrap_or(0).max(peak);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success());
    peak
}

#[test]
fn memory_does_not_grow_with_the_rows() {
    let sandbox = common::sandbox(&common::local(), &[]);
    let db = Db::new(&sandbox);
    for infile in ["0", "1"] {
        db.query(&format!("SET GLOBAL local_infile = {infile}"));
        let (mut few, mut many) = (0, u64::MAX);
        // A busy machine lets us look too early for the peak: not each time.
        for _ in 0..3 {
            (few, many) = (few.max(peak_kib(&db, "20k")), many.min(peak_kib(&db, "320k")));
            if many < few + 8 * 1024 {
                break;
            }
        }
        // 300,000 rows are 57 MiB.
        assert!(few > 0 && many < few + 8 * 1024, "{few} KiB, then {many} KiB");
    }
}
