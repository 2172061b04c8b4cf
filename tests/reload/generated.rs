//! Rows that are made on the fly.

use loadgen::plan::knobs::{INSERT_BYTES, InsertMode, LoadSpec};
use loadgen::stop::Stop;
use loadgen::summary::{Outcome, Summary};
use loadgen::workload::rows::proves;

use super::program::{code, loadgen};
use super::{Db, EXTENDED, counted, everywhere, everywhere_alone, generated};
use crate::common;

const ROWS: u64 = 3000;

fn check(db: &Db, summary: &Summary) {
    assert_eq!(summary.outcome, Outcome::Completed);
    assert_eq!((summary.plan.time_s, summary.plan.ops), (None, None), "it ran to its end");
    let load = summary.load.as_ref().expect("a load");
    assert_eq!((load.rows, summary.totals.rows, load.verified), (ROWS, ROWS, true));
    assert_eq!(summary.totals.ops, load.statements);
    assert_eq!(summary.latency.service.count, load.statements);
    assert!(summary.measured_s > 0.0 && load.rows_per_s > 0.0);
    assert!(load.bytes > ROWS * 180 && load.bytes < ROWS * 230, "{} bytes", load.bytes);
    assert!(summary.client.user_s + summary.client.sys_s > 0.0);
    assert!(summary.server.data_bytes.is_some_and(|bytes| bytes > ROWS * 100));
    assert_eq!(db.one("SELECT COUNT(*) FROM {db}.sbtest1"), ROWS.to_string());
    assert_eq!(db.comment("sbtest1"), format!("loadgen:1 seed=1 rows={ROWS} state=loaded"));
    assert_eq!(
        db.one(
            "SELECT COUNT(*) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '{db}' \
             AND TABLE_NAME = 'sbtest1' AND INDEX_NAME = 'k_1'"
        ),
        "1"
    );
    for row in common::query(db.sandbox, &format!("SELECT id, c FROM {}.sbtest1", db.name)) {
        let id = row[0].parse().expect("a number");
        assert!(proves(1, id, row[1].as_bytes()), "row {id}");
    }
}

#[test]
fn each_mode_loads_every_row_and_says_how_many_statements_that_took() {
    everywhere_alone(|db| {
        let extended = db.load(&generated(ROWS, EXTENDED));
        check(db, &extended);
        assert_eq!(extended.workload.name, "load");
        assert_eq!(extended.load.as_ref().and_then(|l| l.insert_bytes), Some(INSERT_BYTES));
        assert_eq!(counted(&extended, "Com_insert"), 1);

        // The same table again: it is loadgen's own.
        let small = db.load(&generated(ROWS, InsertMode::Extended { bytes: 64 << 10 }));
        check(db, &small);
        let inserts = counted(&small, "Com_insert");
        assert!((9..=10).contains(&inserts), "{inserts} of 64 KiB");
        assert_eq!(counted(&small, "Com_drop_table"), 2, "one off the clock, one in the dump");

        let single = db.load(&generated(ROWS, InsertMode::Single));
        check(db, &single);
        assert_eq!(counted(&single, "Com_insert"), ROWS.cast_signed());
        assert_eq!(single.workload.name, "load-single");

        let load_data = db.load(&generated(ROWS, InsertMode::LoadData));
        check(db, &load_data);
        assert_eq!((counted(&load_data, "Com_load"), counted(&load_data, "Com_insert")), (1, 0));
        assert_eq!(load_data.load.as_ref().and_then(|l| l.mode.as_deref()), Some("load-data"));
    });
}

#[test]
fn last_rows_stay_when_the_sessions_of_a_server_do_not_commit_by_themselves() {
    let sandbox = common::sandbox(&common::local(), &[("autocommit", "0")]);
    let db = Db::new(&sandbox);
    check(&db, &db.load(&generated(ROWS, InsertMode::LoadData)));
}

#[test]
fn several_tables_come_one_after_the_other() {
    everywhere(|db| {
        let spec = LoadSpec { tables: 3, ..generated(500, EXTENDED) };
        let summary = db.load(&spec);
        assert_eq!((summary.plan.tables, summary.plan.rows), (3, 500));
        let tables = &summary.load.as_ref().expect("a load").tables;
        let names: Vec<(&str, u64)> = tables.iter().map(|t| (&*t.table, t.rows)).collect();
        assert_eq!(names, [("sbtest1", 500), ("sbtest2", 500), ("sbtest3", 500)]);
    });
}

#[test]
fn the_charset_on_the_wire_is_recorded() {
    everywhere(|db| {
        for charset in ["latin1", "utf8mb4"] {
            let spec = LoadSpec { charset: Some(charset.to_owned()), ..generated(200, EXTENDED) };
            let summary = db.load(&spec);
            let load = summary.load.as_ref().expect("a load");
            assert_eq!(load.charset, charset);
            for name in ["client", "connection", "results"] {
                let variable = format!("character_set_{name}");
                assert_eq!(load.character_sets.get(&variable).map(String::as_str), Some(charset));
            }
            for name in
                ["client", "connection", "database", "filesystem", "results", "server", "system"]
            {
                assert!(summary.server.variables.contains_key(&format!("character_set_{name}")));
            }
        }
        let nonsense = LoadSpec { charset: Some("latin17".to_owned()), ..generated(1, EXTENDED) };
        let error = db.load_until(&nonsense, &Stop::default()).expect_err("no such set");
        assert!(error.to_string().contains("latin17"), "{error}");
    });
}

#[test]
fn a_load_refuses_what_prepare_made_when_it_is_not_forced() {
    everywhere(|db| {
        db.prepare(3, 100);
        let whole = "SELECT COUNT(*), SUM(k) FROM {db}.sbtest3";
        let before = db.one(whole);
        let dir = tempfile::tempdir().expect("a directory");
        let said = |args: &[&str]| {
            let args = [&["--tables", "3", "--rows", "50"], args].concat();
            code(&loadgen(db, dir.path(), &args).output().expect("runs"))
        };
        let (status, text) = said(&[]);
        assert_eq!(status, Some(4), "{text}");
        for part in ["`sbtest1`, `sbtest2`, `sbtest3`", "--force"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!((db.one(whole), db.comment("sbtest1").contains("ready")), (before, true));
        let (status, text) = said(&["--force"]);
        assert_eq!(status, Some(0), "{text}");
        // Its own tables are another matter.
        let (status, text) = said(&["--repeat", "2"]);
        assert_eq!(status, Some(0), "{text}");
        assert_eq!(db.comment("sbtest3"), "loadgen:1 seed=1 rows=50 state=loaded");
        db.prepare(3, 50);
        assert_eq!(db.one("SELECT COUNT(*) FROM {db}.sbtest3"), "50", "prepare takes it as it is");

        common::query(db.sandbox, &format!("ALTER TABLE {}.sbtest2 COMMENT = 'mine'", db.name));
        let (status, text) = said(&["--force"]);
        assert_eq!(status, Some(4), "{text}");
        assert!(text.contains("`sbtest2`"), "{text}");
        assert_eq!(db.one("SELECT COUNT(*) FROM {db}.sbtest1"), "50");
    });
}

#[test]
fn what_the_server_does_not_take_is_refused_before() {
    everywhere_alone(|db| {
        let packet: u64 = db.one("SELECT @@max_allowed_packet").parse().expect("a number");
        let spec = generated(1, InsertMode::Extended { bytes: packet + 1 });
        let error = db.load_until(&spec, &Stop::default()).expect_err("too long");
        assert_eq!(error.kind().exit_code(), 3);
        assert!(error.to_string().contains("max_allowed_packet"), "{error}");

        common::query(db.sandbox, "SET GLOBAL local_infile = 0");
        let refused = db.load_until(&generated(1, InsertMode::LoadData), &Stop::default());
        common::query(db.sandbox, "SET GLOBAL local_infile = 1");
        let error = refused.expect_err("not allowed").render();
        assert!(error.contains("local_infile"), "{error}");
    });
}

#[test]
fn rows_are_refused_before_a_table_is_dropped_when_new_tables_are_binary() {
    everywhere(|db| {
        db.load(&generated(10, EXTENDED));
        let sql = format!("ALTER DATABASE {} CHARACTER SET binary", db.name);
        common::query(db.sandbox, &sql);
        let refused = db.load_until(&generated(10, EXTENDED), &Stop::default());
        assert_eq!(refused.expect_err("refused").kind().exit_code(), 2);
        assert_eq!(db.one("SELECT COUNT(*) FROM {db}.sbtest1"), "10");
    });
}
