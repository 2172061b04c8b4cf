//! Fills that did not come to their end.

use std::process::Stdio;

use loadgen::error::Kind;
use loadgen::plan::experiment::{Dataset, Method};
use loadgen::stop::Stop;
use loadgen::workload::Schema;

use super::refusing::{loadgen, texts};
use super::{Db, by, everywhere, job};

/// Eight chunks over one connection, three of 5,000 rows over more.
const ROWS: u64 = 100_000;

/// Interrupts a fill as soon as some rows are in. On a busy machine it may be over by then: not each
/// time.
fn interrupt(db: &Db, job: &Dataset) {
    let in_time = (0..5).any(|_| {
        let stop = Stop::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while db.tables().is_empty() || db.count(1) == 0 {}
                stop.ask(Kind::Interrupted);
            });
            let Err(error) = db.prepare_until(job, &stop) else { return };
            assert_eq!(error.kind(), Kind::Interrupted);
            assert!(error.render().contains("again completes"), "{}", error.render());
        });
        let in_time = db.count(1) < job.rows;
        if !in_time {
            db.query("DROP TABLE {}sbtest1");
        }
        in_time
    });
    assert!(in_time, "never before the last row");
}

#[test]
fn an_interrupted_fill_is_completed() {
    everywhere(|db| {
        db.prepare(&job(1, ROWS)).unwrap();
        for fill in [Method::LoadData, Method::Insert] {
            let broken = Db::new(db.sandbox);
            interrupt(&broken, &Dataset { jobs: Some(1), ..by(fill, job(1, ROWS)) });
            assert!(broken.comment(1).ends_with("state=filling"));
            assert!((1..ROWS).contains(&broken.count(1)));
            // With other chunks than before.
            let done = broken.prepare(&by(fill, job(1, ROWS))).unwrap();
            assert_eq!((done.filled, done.rows + done.found), (1, ROWS));
            assert!(done.rows > 0 && done.found > 0, "{done:?}");
            assert_eq!(broken.checksum(1), db.checksum(1));
            assert_eq!(broken.indexes(1), db.indexes(1));
            assert!(broken.comment(1).ends_with("state=ready"));
        }
    });
}

#[test]
fn an_interrupted_fill_with_other_parameters_begins_again() {
    everywhere(|db| {
        interrupt(db, &Dataset { jobs: Some(1), ..job(1, ROWS) });
        let other = Dataset { data_seed: 2, ..job(1, 6000) };
        db.prepare(&other).unwrap();
        assert_eq!(db.comment(1), "loadgen:1 seed=2 rows=6000 state=ready");
        let fresh = Db::new(db.sandbox);
        fresh.prepare(&other).unwrap();
        assert_eq!(db.checksum(1), fresh.checksum(1));
    });
}

#[test]
fn the_suite_of_2007_is_completed_too() {
    let suite = |fill| Dataset { schema: Schema::Phptest, ..by(fill, job(1, 12_345)) };
    everywhere(|db| {
        db.prepare(&suite(Method::LoadData)).unwrap();
        let checksum = |db: &Db| db.query("CHECKSUM TABLE {}phptest1").remove(0).remove(1);
        let whole = checksum(db);
        let mark = "COMMENT = 'loadgen:1 seed=1 rows=12345 state=filling'";
        for damage in [
            "DELETE FROM {}phptest1 WHERE id > 7000",
            "ALTER TABLE {}phptest1 DROP KEY country_id, DROP KEY email",
            "DELETE FROM {}phptest1 WHERE country_id = 7",
        ] {
            db.query(damage);
            db.query(&format!("ALTER TABLE {{}}phptest1 {mark}"));
            db.prepare(&suite(Method::Insert)).unwrap();
            assert_eq!(checksum(db), whole, "{damage}");
            let keys = db.query("SHOW KEYS FROM {}phptest1").len();
            assert_eq!(keys, 5, "id, email, and three columns");
        }
    });
}

/// Kills (SIGKILL) a prepare as soon as the server is at such a statement of its; not where it was
/// too fast to be seen.
fn kill_in(db: &Db, args: &[&str], statement: &str) -> bool {
    let mut child = loadgen(db, args).stderr(Stdio::null()).spawn().unwrap();
    let at_it = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
         WHERE DB = '{}' AND INFO LIKE '{statement}%'",
        db.name
    );
    while db.one(&at_it) == "0" {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    true
}

#[test]
fn a_prepare_completes_when_it_follows_a_kill_at_once() {
    let args = ["prepare", "--tables", "2", "--rows", "100k", "--jobs", "4", "--fill"];
    everywhere(|db| {
        let mut whole = None;
        for (fill, statement) in [
            ("load-data", "LOAD DATA LOCAL INFILE"),
            ("insert", "INSERT INTO"),
            ("load-data", "CREATE INDEX"),
        ] {
            let args = [&args[..], &[fill]].concat();
            let mut tries = (0..10).map(|_| Db::new(db.sandbox));
            let broken = tries.find(|broken| kill_in(broken, &args, statement));
            let broken = broken.unwrap_or_else(|| panic!("{statement} was never seen"));
            let again = loadgen(&broken, &args).output().unwrap();
            assert_eq!(again.status.code(), Some(0), "{statement}: {}", texts(&again).1);
            let sums = [1, 2].map(|table| {
                assert!(broken.comment(table).ends_with("state=ready"));
                (broken.count(table), broken.checksum(table), broken.indexes(table).len())
            });
            assert_eq!(sums[0].0, 100_000);
            assert_eq!(*whole.get_or_insert_with(|| sums.clone()), sums, "{statement}");
            broken.query(&format!("DROP DATABASE {}", broken.name));
        }
    });
}

#[test]
fn a_row_that_goes_during_the_fill_is_missed_and_comes_back() {
    everywhere(|db| {
        let job = Dataset { jobs: Some(1), ..job(1, ROWS) };
        // On a busy machine the fill may be over by then: not each time.
        let missed = (0..5).find_map(|_| {
            let error = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while db.tables().is_empty() || db.count(1) == 0 {}
                    db.query("DELETE FROM {}sbtest1 WHERE id = 7");
                });
                db.prepare(&job).err()
            });
            if error.is_none() {
                db.query("DROP TABLE {}sbtest1");
            }
            error
        });
        let error = missed.expect("never before the last row");
        assert_eq!(error.kind(), Kind::Data);
        assert!(["sbtest1", "99999"].iter().all(|of| error.to_string().contains(of)), "{error}");
        assert!(db.comment(1).ends_with("state=filling"));
        db.prepare(&job).unwrap();
        assert_eq!(db.count(1), ROWS);
    });
}

/// A finished table as a fill would leave it that was killed at some point.
fn broken(db: &Db, table: u32, damage: &[&str]) {
    let mark = "loadgen:1 seed=1 rows=20000 state=filling";
    db.query(&format!("ALTER TABLE {{}}sbtest{table} COMMENT = '{mark}'"));
    for sql in damage {
        db.query(&sql.replace("TABLE_", &format!("{{}}sbtest{table}")));
    }
}

#[test]
fn whatever_is_missing_is_found() {
    const LAST: u32 = 6;
    everywhere(|db| {
        db.prepare(&job(LAST, 20_000)).unwrap();
        let whole: Vec<String> = (1..=LAST).map(|table| db.checksum(table)).collect();
        // The index alone; some chunks; single rows at the seams and inside; everything; the
        // mark alone.
        broken(db, 1, &["DROP INDEX k_1 ON TABLE_"]);
        broken(db, 2, &["DELETE FROM TABLE_ WHERE id BETWEEN 5001 AND 10000 OR id > 15000"]);
        broken(db, 3, &["DELETE FROM TABLE_ WHERE id IN (1, 5000, 5001, 12345, 20000)"]);
        broken(db, 4, &["DELETE FROM TABLE_", "DROP INDEX k_4 ON TABLE_"]);
        broken(db, 5, &[]);
        let indexes = db.indexes(LAST);
        let done = db.prepare(&job(LAST, 20_000)).unwrap();
        assert_eq!(done.filled, 5);
        for table in 1..=LAST {
            assert_eq!(db.checksum(table), whole[table as usize - 1], "sbtest{table}");
            assert!(db.comment(table).ends_with("state=ready"));
            assert_eq!(db.indexes(table).len(), indexes.len());
        }
    });
}

#[test]
fn rows_that_prepare_did_not_write_are_found() {
    everywhere(|db| {
        db.prepare(&job(1, 20_000)).unwrap();
        broken(db, 1, &["INSERT INTO TABLE_ (id, k, c, pad) VALUES (20001, 1, '', '')"]);
        let error = db.prepare(&job(1, 20_000)).unwrap_err();
        assert_eq!(error.kind(), Kind::Data);
        assert!(error.to_string().contains(" 20001"), "{error}");
        assert!(db.comment(1).ends_with("state=filling"));
        assert_eq!(db.prepare(&Dataset { force: true, ..job(1, 20_000) }).unwrap().filled, 1);
    });
}

#[test]
fn rows_that_the_server_leaves_out_are_an_error() {
    everywhere(|db| {
        db.prepare(&job(1, 6000)).unwrap();
        let mark = "loadgen:1 seed=1 rows=6000 state=filling";
        // k repeats. LOAD DATA LOCAL then skips rows with no more than a warning.
        db.query("DELETE FROM {}sbtest1");
        db.query(&format!("ALTER TABLE {{}}sbtest1 ADD UNIQUE (k), COMMENT = '{mark}'"));
        for fill in [Method::LoadData, Method::Insert] {
            let error = db.prepare(&by(fill, job(1, 6000))).unwrap_err();
            assert_eq!(error.kind(), Kind::Failed);
            let text = error.to_string();
            // MySQL 5.5 keeps the reason to itself.
            let why = ["Duplicate entry", "the server took"].iter().any(|why| text.contains(why));
            assert!(text.contains("filling sbtest1") && why, "{text}");
            assert_eq!(db.comment(1), mark);
        }
    });
}
