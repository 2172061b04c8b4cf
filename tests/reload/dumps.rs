//! Files that mysqldump wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use loadgen::plan::knobs::LoadSpec;
use loadgen::stop::Stop;
use loadgen::summary::Outcome;
use loadgen::workload::rows::{Row, Rows};

use super::program::{code, loadgen};
use super::{Db, EXTENDED, dump, everywhere, fixture, generated};
use crate::common;

/// A file with this text.
fn written(dir: &Path, text: &[u8]) -> PathBuf {
    let path = dir.join("x.sql");
    fs::write(&path, text).expect("written");
    path
}

fn hex(db: &Db, sql: &str) -> Vec<Vec<String>> {
    common::query(db.sandbox, &sql.replace("{db}", &db.name))
}

#[test]
fn every_value_arrives_as_it_was_dumped() {
    everywhere(|db| {
        for _ in 0..2 {
            let summary = db.load(&dump(&fixture("dump.sql")));
            let load = summary.load.as_ref().expect("a load");
            assert_eq!((load.rows, load.verified, &*load.charset), (7, true, "utf8mb4"));
            assert_eq!(load.file.as_deref().map(Path::new), Some(&*fixture("dump.sql")));
            assert_eq!(summary.workload.name, "load-dump-dump");
            let tables: Vec<(&str, u64)> =
                load.tables.iter().map(|t| (&*t.table, t.rows)).collect();
            assert_eq!(tables, [("odd`name;", 5), ("plain", 2)]);
        }
        let text = "SELECT id, HEX(CONVERT(`a'b` USING utf8mb4)), HEX(`c\"d`), HEX(b) \
                    FROM {db}.`odd``name;` ORDER BY id";
        let upper = |text: &str| {
            let pairs: Vec<String> = text.bytes().map(|b| format!("{b:02X}")).collect();
            pairs.concat()
        };
        let expected = [
            (upper("plain"), upper("semi;colon"), "00FF27225C".to_owned()),
            (upper("it's \"quoted\""), upper("back\\slash\nline"), "NULL".to_owned()),
            (upper("-- no comment"), upper("/* none */ # either"), String::new()),
            (upper("größe 漢字 🎉"), upper("`tick`;"), "1A0D0A".to_owned()),
            ("NULL".to_owned(), upper("ends with backslash\\"), upper("/*!40101 x */")),
        ];
        for (row, (id, (a, c, b))) in hex(db, text).into_iter().zip((1..).zip(expected)) {
            assert_eq!(row, [id.to_string(), a, c, b]);
        }
        assert_eq!(db.comment("plain"), "loadgen:1 load=dump");
    });
}

#[test]
fn a_dump_in_latin1_says_so_itself() {
    everywhere(|db| {
        let asked = Some("utf8mb4".to_owned());
        let summary = db.load(&LoadSpec { charset: asked, ..dump(&fixture("dump-latin1.sql")) });
        assert_eq!(summary.load.as_ref().expect("a load").charset, "latin1");
        assert!(summary.warnings.iter().any(|w| w.code == "charset"), "{:?}", summary.warnings);
        assert_eq!(hex(db, "SELECT HEX(v) FROM {db}.plain WHERE id = 1"), [["E9"]]);
    });
}

struct BadDump {
    bad: &'static str,
    code: i32,
    says: &'static str,
}

const GOOD: &str =
    "CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB;\nINSERT INTO t VALUES (1);\n";

#[test]
fn faults_name_file_and_line_and_what_came_before_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases = [
        BadDump { bad: "INSERT INTO t VALUES (1);\n", code: 1, says: "line 3: error 1062" },
        BadDump { bad: "INSERT INTO u VALUES (1);\n", code: 1, says: "line 3: error 1146" },
    ];
    everywhere(|db| {
        for BadDump { bad, code, says } in &cases {
            let path = written(dir.path(), format!("{GOOD}{bad}").as_bytes());
            let (error, summary) = db.fails(&dump(&path));
            assert_eq!(i32::from(error.kind().exit_code()), *code, "{error}");
            assert!(error.to_string().contains(says), "{bad}: {error}");
            assert_eq!(summary.outcome, Outcome::Aborted);
            assert_eq!(summary.totals.rows, 1, "{bad}");
            assert_eq!(db.one("SELECT COUNT(*) FROM {db}.t"), "1");
            // Half a load is loadgen's own all the same.
            assert_eq!(db.comment("t"), "loadgen:1 load=dump");
        }
        let missing = db.load_until(&dump(&dir.path().join("none.sql")), &Stop::default());
        assert_eq!(missing.expect_err("no file").kind().exit_code(), 2);
    });
}

/// What no dump of tables has.
const REFUSED: [BadDump; 9] = [
    BadDump { bad: "INSERT INTO t VALUES (2", code: 4, says: "line 3: a statement without end" },
    BadDump { bad: "'\\'", code: 4, says: "line 3: a statement without end" },
    BadDump { bad: "DELIMITER ;;\nCREATE TRIGGER x;;\n", code: 4, says: "line 3: not in a dump" },
    BadDump { bad: "\n\nDROP DATABASE mysql;\n", code: 4, says: "line 5: not in a dump" },
    BadDump { bad: "/*!40101 SET NAMES gbk */;\n", code: 4, says: "line 3: not in a dump" },
    BadDump { bad: "SET PASSWORD = '';\n", code: 4, says: "line 3: not in a dump" },
    BadDump { bad: "SET GLOBAL general_log = 1;\n", code: 4, says: "line 3: not in a dump" },
    BadDump { bad: "ALTER TABLE t RENAME TO x.t;\n", code: 4, says: "line 3: not in a dump" },
    BadDump { bad: "INSERT INTO t SELECT 2;\n", code: 4, says: "line 3: not in a dump" },
];

#[test]
fn a_file_that_is_refused_is_refused_before_anything_of_it_is_loaded() {
    let dir = tempfile::tempdir().expect("a directory");
    everywhere(|db| {
        db.load(&dump(&written(dir.path(), GOOD.replace("(1)", "(7)").as_bytes())));
        for BadDump { bad, code, says } in &REFUSED {
            let path =
                written(dir.path(), format!("DROP TABLE IF EXISTS t;{GOOD}{bad}").as_bytes());
            let refused = db.load_until(&dump(&path), &Stop::default()).expect_err(bad);
            assert_eq!(i32::from(refused.kind().exit_code()), *code, "{refused}");
            assert!(refused.to_string().contains(&format!("x.sql: {says}")), "{bad}: {refused}");
            assert_eq!(db.one("SELECT id FROM {db}.t"), "7", "{bad}");
        }
    });
}

#[test]
fn standard_input_is_judged_as_it_comes() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = &Db::new(&super::SANDBOXES[0].1);
    for BadDump { bad, code: status, says } in &REFUSED {
        let path = written(dir.path(), format!("{GOOD}{bad}").as_bytes());
        let input = fs::File::open(path).expect("a file");
        let out =
            loadgen(db, dir.path(), &["--from-dump", "-"]).stdin(input).output().expect("runs");
        let (found, text) = code(&out);
        assert_eq!(found, Some(*status), "{bad}: {text}");
        assert!(text.contains(says), "{bad}: {text}");
        assert_eq!(db.one("SELECT id FROM {db}.t"), "1", "{bad}");
    }
}

#[test]
fn what_is_about_the_server_is_left_out_and_every_load_is_alike() {
    let dir = tempfile::tempdir().expect("a directory");
    let head = "SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;\nSET @@SESSION.SQL_LOG_BIN= 0;\n\
                SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '0b344008-e92b-11f1-aeee-02fc00000001:1';\n\
                CHANGE MASTER TO MASTER_LOG_FILE='b.1', MASTER_LOG_POS=4;\n";
    let foot = "SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN;\n";
    let path = written(dir.path(), format!("{head}{GOOD}{foot}").as_bytes());
    everywhere(|db| {
        for _ in 0..2 {
            let summary = db.load(&dump(&path));
            let load = summary.load.as_ref().expect("a load");
            assert_eq!(load.left_out, ["GTID_PURGED", "SQL_LOG_BIN", "the place in a binary log"]);
            assert_eq!((load.statements, load.rows, load.read_before), (2, 1, true));
            assert!(summary.warnings.iter().any(|w| w.code == "unsent"), "{:?}", summary.warnings);
        }
    });
}

#[test]
fn a_dump_with_foreign_keys_goes_in_again() {
    everywhere(|db| {
        for _ in 0..2 {
            let summary = db.load(&dump(&fixture("dumps/mysqldump-5.5.sql")));
            assert_eq!(summary.load.as_ref().expect("a load").tables.len(), 4);
            assert_eq!(db.one("SELECT p FROM {db}.child"), "1");
        }
    });
}

#[test]
fn a_dump_is_read_as_it_was_written_when_the_server_has_other_modes() {
    let dir = tempfile::tempdir().expect("a directory");
    let modes = [("sql-mode", "NO_BACKSLASH_ESCAPES,ANSI_QUOTES,STRICT_ALL_TABLES")];
    let sandbox = common::sandbox(&common::local(), &modes);
    let db = Db::new(&sandbox);
    let sql = "CREATE TABLE t (a VARCHAR(20)) ENGINE=InnoDB;\n\
               INSERT INTO t VALUES ('it\\'s; -- x'),(\"\\\"\");\n";
    db.load(&dump(&written(dir.path(), sql.as_bytes())));
    assert_eq!(hex(&db, "SELECT a FROM {db}.t ORDER BY a DESC"), [["it's; -- x"], ["\""]]);
}

#[test]
fn a_load_is_no_result_when_its_dump_has_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    everywhere(|db| {
        for text in ["", "-- mysqldump: Got error: 2002\n"] {
            let (error, summary) = db.fails(&dump(&written(dir.path(), text.as_bytes())));
            assert_eq!(error.kind().exit_code(), 4, "{error}");
            assert_eq!(summary.outcome, Outcome::Aborted);
        }
    });
}

#[test]
fn tables_of_somebody_else_are_not_touched() {
    let dir = tempfile::tempdir().expect("a directory");
    everywhere(|db| {
        let setup = [
            "CREATE TABLE {db}.t (id INT PRIMARY KEY)",
            "INSERT INTO {db}.t VALUES (7)",
            "CREATE VIEW {db}.v AS SELECT 1 AS one",
        ];
        for sql in setup {
            common::query(db.sandbox, &sql.replace("{db}", &db.name));
        }
        for sql in [
            "DROP TABLE IF EXISTS `t`;",
            "DROP TABLE t;",
            "INSERT INTO t VALUES (8);",
            "REPLACE INTO `t` VALUES (7);",
            "LOCK TABLES `t` WRITE;",
            "/*!40000 ALTER TABLE `t` DISABLE KEYS */;",
            "CREATE TABLE IF NOT EXISTS t (id INT);",
            "DROP TABLE IF EXISTS `v`;",
        ] {
            let (error, _) = db.fails(&dump(&written(dir.path(), sql.as_bytes())));
            assert_eq!(error.kind().exit_code(), 4, "{sql}: {error}");
            assert!(
                ["`t`", "`v`"].iter().any(|of| error.to_string().contains(of)),
                "{sql}: {error}"
            );
        }
        assert_eq!(db.one("SELECT id FROM {db}.t"), "7");
        assert_eq!(db.one("SELECT one FROM {db}.v"), "1");
    });
}

#[test]
fn the_mark_in_a_dump_comes_back_when_the_rows_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let dumped = |table: &str, rows: u64, added: u64| {
        let tuple = |id: u64| {
            let Row { k, c, pad, .. } = Rows::new(1, 1, rows).row(id);
            let [c, pad] = [&c[..], &pad[..]].map(String::from_utf8_lossy);
            format!("({id},{},'{c}','{pad}')", k + added)
        };
        let sql = format!(
            "DROP TABLE IF EXISTS {table};\nCREATE TABLE {table} (id INT PRIMARY KEY, \
             k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL) ENGINE=InnoDB \
             COMMENT='loadgen:1 seed=1 rows={rows} state=ready';\n\
             INSERT INTO {table} VALUES {},{};\n",
            tuple(1),
            tuple(2)
        );
        written(dir.path(), sql.as_bytes())
    };
    everywhere(|db| {
        for (table, rows, added, comment, why) in [
            ("sbtest1", 2, 0, "loadgen:1 seed=1 rows=2 state=loaded", "as filled"),
            ("sbtest1", 2, 1, "loadgen:1 load=dump", "a run wrote to it"),
            ("sbtest1", 3, 0, "loadgen:1 load=dump", "it lacks a row"),
            ("sbtest2", 2, 0, "loadgen:1 load=dump", "another table's rows"),
            ("t", 2, 0, "loadgen:1 load=dump", "no table of prepare's"),
        ] {
            db.load(&dump(&dumped(table, rows, added)));
            assert_eq!(db.comment(table), comment, "{why}");
        }
    });
}

#[test]
fn a_dump_leaves_what_prepare_made_when_it_is_not_forced() {
    let dir = tempfile::tempdir().expect("a directory");
    let create = "CREATE TABLE sbtest1 (id INT PRIMARY KEY) ENGINE=InnoDB;";
    let drop = format!("DROP TABLE IF EXISTS `sbtest1`;\n{create}");
    everywhere(|db| {
        db.prepare(1, 100);
        for sql in [&drop, create, "INSERT INTO sbtest1 VALUES (101, 1, '', '');"] {
            let (error, _) = db.fails(&dump(&written(dir.path(), sql.as_bytes())));
            assert_eq!(error.kind().exit_code(), 4, "{sql}: {error}");
            assert!(error.render().contains("--force"), "{sql}: {}", error.render());
        }
        assert_eq!(db.one("SELECT COUNT(*) FROM {db}.sbtest1"), "100");
        let path = written(dir.path(), drop.as_bytes());
        let out =
            loadgen(db, dir.path(), &["--force", "--from-dump", path.to_str().expect("plain")])
                .output()
                .expect("runs");
        assert_eq!(code(&out).0, Some(0), "{}", code(&out).1);
        db.load(&dump(&path));
        assert_eq!(db.comment("sbtest1"), "loadgen:1 load=dump");
    });
}

/// What this machine's own mysqldump writes.
#[test]
fn a_dump_of_today_goes_round() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path)
        .flat_map(|dir| [dir.join("mariadb-dump"), dir.join("mysqldump")])
        .find(|program| program.exists());
    let Some(program) = program else {
        return common::skipped("neither mariadb-dump nor mysqldump in PATH");
    };
    let dir = tempfile::tempdir().expect("a directory");
    let db = &Db::new(&super::SANDBOXES[0].1);
    db.load(&generated(5000, EXTENDED));
    let sum = "SELECT SUM(CRC32(CONCAT(id, k, c, pad))) FROM {db}.sbtest1";
    let before = db.one(sum);
    for extended in ["--extended-insert", "--skip-extended-insert"] {
        let out = Command::new(&program)
            .args(["--no-defaults", "--opt", extended, "-uroot", "-S"])
            .arg(&db.sandbox.socket)
            .arg(&db.name)
            .output()
            .expect("it runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let summary = db.load(&dump(&written(dir.path(), &out.stdout)));
        assert_eq!(summary.totals.rows, 5000);
        assert_eq!(
            (db.one(sum), db.comment("sbtest1").contains("state=loaded")),
            (before.clone(), true)
        );
    }
}
