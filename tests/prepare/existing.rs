//! What prepare and cleanup do about tables that are there.

use loadgen::error::Kind;
use loadgen::load;
use loadgen::mysql::session::{ServerLink, Session};
use loadgen::plan::experiment::Dataset;
use loadgen::progress::Progress;
use loadgen::stop::Stop;
use loadgen::workload::Schema;
use loadgen::workload::random::name_part;

use super::{Db, SANDBOXES, everywhere, job, run};

#[test]
fn finished_tables_are_left_as_they_are() {
    everywhere(|db| {
        db.prepare(&job(2, 100)).unwrap();
        // A scan would notice, and a workload's updates must not make prepare begin again.
        db.query("UPDATE {}sbtest1 SET k = k + 1 WHERE id = 5");
        db.query("DELETE FROM {}sbtest2 WHERE id = 7");
        let before = (db.checksum(1), db.checksum(2));
        let again = db.prepare(&job(2, 100)).unwrap();
        assert_eq!((again.filled, again.rows, again.method), (0, 0, None));
        assert_eq!((db.checksum(1), db.checksum(2)), before);
    });
}

#[test]
fn more_tables_are_added_to_finished_ones() {
    everywhere(|db| {
        db.prepare(&job(1, 100)).unwrap();
        assert_eq!(db.prepare(&job(3, 100)).unwrap().filled, 2);
        assert_eq!((db.count(1), db.count(3)), (100, 100));
    });
}

#[test]
fn everything_in_the_way_is_named_and_nothing_is_made() {
    everywhere(|db| {
        db.prepare(&job(2, 100)).unwrap();
        db.query("CREATE TABLE {}sbtest3 (id INT PRIMARY KEY) COMMENT 'precious'");
        db.query("CREATE VIEW {}sbtest4 AS SELECT 1 AS one");
        let before = (db.tables(), db.checksum(1));
        let error = db.prepare(&Dataset { data_seed: 2, ..job(5, 100) }).unwrap_err();
        assert_eq!(error.kind(), Kind::Data);
        let text = error.render();
        for part in [
            "sbtest1, sbtest2: 100 rows with data seed 1, asked for 100 rows with data seed 2",
            "sbtest3: not made by loadgen prepare",
            "sbtest4: no table",
            "--force",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let forced = Dataset { force: true, ..job(5, 100) };
        let text = db.prepare(&forced).unwrap_err().render();
        assert!(text.contains("sbtest3") && !text.contains("sbtest1,"), "{text}");
        assert_eq!((db.tables(), db.checksum(1)), before);
        assert_eq!(db.comment(3), "precious");
    });
}

#[test]
fn another_character_set_is_refused_too() {
    everywhere(|db| {
        db.prepare(&Dataset { charset: Some("latin1".to_owned()), ..job(1, 100) }).unwrap();
        let other = Dataset { charset: Some("utf8mb4".to_owned()), ..job(1, 100) };
        let error = db.prepare(&other).unwrap_err();
        assert_eq!(error.kind(), Kind::Data);
        assert!(error.to_string().contains("latin1") && error.to_string().contains("utf8mb4"));
        // Without the flag the table's own is fine.
        assert_eq!(db.prepare(&job(1, 100)).unwrap().filled, 0);
    });
}

#[test]
fn force_fills_again_what_prepare_made() {
    everywhere(|db| {
        db.prepare(&job(1, 6000)).unwrap();
        let fresh = db.checksum(1);
        db.query("UPDATE {}sbtest1 SET k = k + 1");
        assert_ne!(db.checksum(1), fresh);
        assert_eq!(db.prepare(&Dataset { force: true, ..job(1, 6000) }).unwrap().filled, 1);
        assert_eq!(db.checksum(1), fresh);
        db.prepare(&Dataset { force: true, data_seed: 9, ..job(1, 50) }).unwrap();
        assert_eq!((db.count(1), db.comment(1).contains("seed=9")), (50, true));
    });
}

#[test]
fn tables_that_stay_empty_count_as_filled_when_they_are_made_anew() {
    let db = &Db::new(&SANDBOXES[0].1);
    let bulk = Dataset { schema: Schema::Bulk, ..job(2, 0) };
    assert_eq!(db.prepare(&bulk).unwrap().filled, 2);
    assert_eq!(db.prepare(&bulk).unwrap().filled, 0);
    assert_eq!(db.prepare(&Dataset { force: true, ..bulk }).unwrap().filled, 2);
}

#[test]
fn cleanup_drops_what_prepare_made_and_nothing_else() {
    everywhere(|db| {
        db.prepare(&job(12, 10)).unwrap();
        db.query("ALTER TABLE {}sbtest2 COMMENT = 'loadgen:1 seed=1 rows=10 state=filling'");
        db.query("ALTER TABLE {}sbtest3 COMMENT = 'mine now'");
        db.query("ALTER TABLE {}sbtest4 COMMENT = 'loadgen:2 seed=1 rows=10 state=ready'");
        db.query("CREATE TABLE {}sbtest (id INT) COMMENT 'loadgen:1 seed=1 rows=1 state=ready'");
        db.query("CREATE TABLE {}sbtest13 (id INT)");
        db.query("CREATE VIEW {}sbtest14 AS SELECT 1 AS one");
        let (dropped, left) = db.cleanup().unwrap();
        assert_eq!(dropped[&Schema::Sbtest], [1, 2, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(left[&Schema::Sbtest], [3, 4, 13, 14]);
        assert_eq!(db.tables(), ["sbtest", "sbtest13", "sbtest14", "sbtest3", "sbtest4"]);
        assert!(db.cleanup().unwrap().0.is_empty());
    });
}

#[test]
fn two_at_a_time_are_one_too_many() {
    // On one server: it waits for the lock for some seconds.
    let db = &Db::new(&SANDBOXES[0].1);
    let link = ServerLink::to(db.target(), &Stop::default()).unwrap();
    run(async {
        // What another prepare does first.
        let key = name_part(&db.name);
        let mut other = Session::open(&link, None).await.unwrap();
        other.execute(&format!("DO GET_LOCK('loadgen.{key:016x}', 0)")).await.unwrap();
        let mut progress = Progress::new(true, None);
        let error = load::prepare(&link, &job(1, 10), &mut progress).await;
        let text = error.unwrap_err().render();
        assert!(text.contains(&format!("connection {}", other.id())), "{text}");
        let error = load::cleanup(&link, &mut progress).await;
        assert_eq!(error.unwrap_err().kind(), Kind::Server);
    });
    assert_eq!(db.tables(), [""; 0]);
    assert_eq!(Db::new(db.sandbox).prepare(&job(1, 10)).unwrap().filled, 1, "elsewhere it may");
}
