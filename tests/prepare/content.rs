//! What is in the tables.

use std::collections::BTreeSet;
use std::process::Command;

use loadgen::plan::experiment::{Dataset, Method};
use loadgen::workload::rows::Rows;

use super::{Db, by, everywhere, job};

/// Three chunks a table.
const ROWS: u64 = 12_345;

fn assert_rows(db: &Db, table: u32, rows: u64, data_seed: u32) {
    let source = Rows::new(data_seed, table, rows);
    let found = db.query(&format!("SELECT id, k, c, pad FROM {{}}sbtest{table} ORDER BY id"));
    assert_eq!(found.len() as u64, rows);
    for (found, id) in found.iter().zip(1..) {
        let row = source.row(id);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(*found, [id.to_string(), row.k.to_string(), text(&row.c), text(&row.pad)]);
    }
}

#[test]
fn both_ways_make_the_same_tables_of_the_rows_that_the_seed_says() {
    everywhere(|db| {
        let seeded = Dataset { data_seed: 7, ..job(2, ROWS) };
        let done = db.prepare(&by(Method::LoadData, seeded.clone())).unwrap();
        assert_eq!((done.tables, done.filled, done.rows), (2, 2, 2 * ROWS));
        assert_eq!(done.method, Some(Method::LoadData));
        let other = Db::new(db.sandbox);
        let done = other.prepare(&by(Method::Insert, seeded)).unwrap();
        assert_eq!(done.method, Some(Method::Insert));
        for table in [1, 2] {
            assert_rows(db, table, ROWS, 7);
            assert_eq!(db.checksum(table), other.checksum(table));
            assert_eq!(db.comment(table), format!("loadgen:1 seed=7 rows={ROWS} state=ready"));
            assert_eq!(other.comment(table), db.comment(table));
        }
        assert_ne!(db.checksum(1), db.checksum(2), "each table has rows of its own");
    });
}

#[test]
fn one_row_is_a_table_too() {
    everywhere(|db| {
        db.prepare(&job(1, 1)).unwrap();
        assert_rows(db, 1, 1, 1);
    });
}

/// The DDL as sysbench 1.0.20 has it, for machines without sysbench.
const SYSBENCH: [&str; 2] = [
    "CREATE TABLE {}sbtest1(id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, \
     c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) \
     /*! ENGINE = innodb */",
    "CREATE INDEX k_1 ON {}sbtest1(k)",
];

fn sysbench(db: &Db) {
    let made = Command::new("sysbench")
        .args(["oltp_point_select", "--mysql-user=root", "--tables=1", "--table-size=10"])
        .arg(format!("--mysql-socket={}", db.sandbox.socket.display()))
        .arg(format!("--mysql-db={}", db.name))
        .arg("prepare")
        .output()
        .is_ok_and(|output| output.status.success());
    if !made {
        for sql in SYSBENCH {
            db.query(sql);
        }
    }
}

/// SHOW CREATE TABLE without what may differ: the counter and the mark.
fn shape(db: &Db) -> String {
    let sql = db.query("SHOW CREATE TABLE {}sbtest1").remove(0).remove(1);
    let words = sql.split_whitespace();
    let same = words.take_while(|word| !word.starts_with("COMMENT="));
    same.filter(|word| !word.starts_with("AUTO_INCREMENT=")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_schema_is_sysbenchs() {
    everywhere(|db| {
        db.prepare(&job(1, 10)).unwrap();
        let theirs = Db::new(db.sandbox);
        sysbench(&theirs);
        assert_eq!(shape(db), shape(&theirs));
        assert_eq!(db.indexes(1), theirs.indexes(1));
        assert_eq!(db.info(1, "ENGINE"), "InnoDB");
    });
}

#[test]
fn the_next_id_of_a_table_is_free() {
    // A workload may insert without an id.
    everywhere(|db| {
        for fill in [Method::LoadData, Method::Insert] {
            let made = Db::new(db.sandbox);
            made.prepare(&by(fill, job(1, 10))).unwrap();
            made.query("INSERT INTO {}sbtest1 (k, c, pad) VALUES (1, '', '')");
            assert_eq!(made.one("SELECT MAX(id) FROM {}sbtest1"), "11");
        }
    });
}

#[test]
fn large_tables_have_wide_ids() {
    // Not filled, of course: an interruption leaves the empty table.
    everywhere(|db| {
        let stop = loadgen::stop::Stop::default();
        let kind = loadgen::error::Kind::Interrupted;
        let asked = stop.clone();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while db.tables().is_empty() {}
                asked.ask(kind);
            });
            let error = db.prepare_until(&job(1, 10_000_000_000), &stop).unwrap_err();
            assert_eq!(error.kind(), kind);
        });
        let types: BTreeSet<String> = db
            .query(&format!(
                "SELECT DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{}' \
                 AND COLUMN_NAME IN ('id', 'k')",
                db.name
            ))
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(types.into_iter().collect::<Vec<_>>(), ["bigint"]);
        assert_eq!(db.comment(1), "loadgen:1 seed=1 rows=10000000000 state=filling");
    });
}

#[test]
fn the_character_set_is_the_one_asked_for() {
    everywhere(|db| {
        let charset = |name: &str| Some(name.to_owned());
        db.prepare(&Dataset { charset: charset("latin1"), ..job(1, 10) }).unwrap();
        assert!(db.info(1, "TABLE_COLLATION").starts_with("latin1"));
        // Either spelling of the three-byte one, on every server.
        for name in ["utf8", "utf8mb3", "UTF8MB4"] {
            let made = Db::new(db.sandbox);
            made.prepare(&Dataset { charset: charset(name), ..job(1, 10) }).unwrap();
            assert!(made.info(1, "TABLE_COLLATION").starts_with("utf8"), "{name}");
            assert_rows(&made, 1, 10, 1);
            let again = made.prepare(&Dataset { charset: charset(name), ..job(1, 10) }).unwrap();
            assert_eq!(again.filled, 0, "{name} is what it has");
        }
        // Two bytes a character: the rows are converted, not copied.
        for fill in [Method::LoadData, Method::Insert] {
            let made = Db::new(db.sandbox);
            made.prepare(&by(fill, Dataset { charset: charset("ucs2"), ..job(1, 10) })).unwrap();
            assert_rows(&made, 1, 10, 1);
        }
    });
}
