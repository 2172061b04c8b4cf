use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::workload::sql::Splitter;

/// Judges the last of some statements, which are those of one file.
fn seen(file: &[&str]) -> Result<(DumpPart, String), String> {
    let mut judge = Judge::new(Some("utf8mb4"));
    let mut last = Err("no statement".to_owned());
    for sql in file {
        let judged = judge.judge(sql.as_bytes());
        last = judged.map(|seen| (seen.kind, unquoted(&sql.as_bytes()[seen.name]).expect("UTF-8")));
        last.clone()?;
    }
    last
}

#[test]
fn statements_of_dumps_are_known() {
    for (sql, kind, name) in [
        ("DROP TABLE IF EXISTS `sbtest1`", DumpPart::Drop, "sbtest1"),
        ("DROP TABLE IF EXISTS `a` /* x */", DumpPart::Drop, "a"),
        ("DROP TABLE t", DumpPart::Touch, "t"),
        ("CREATE TABLE `a``b` (\n  `id` int)", DumpPart::Create, "a`b"),
        ("create table if not exists t2(id int)", DumpPart::Create, "t2"),
        ("CREATE TABLE /*!32312 IF NOT EXISTS*/ `t` (id int)", DumpPart::Create, "t"),
        (
            "CREATE TABLE t (a int) ENGINE=InnoDB /*!50100 PARTITION BY HASH (a) (PARTITION p ENGINE = InnoDB) */",
            DumpPart::Create,
            "t",
        ),
        (
            "CREATE TABLE t (a int CHECK (a LIKE 'x'), engine varchar(9)) ENGINE MyISAM",
            DumpPart::Create,
            "t",
        ),
        ("INSERT INTO `sbtest1` VALUES (1)", DumpPart::Insert, "sbtest1"),
        ("INSERT  IGNORE INTO `s` VALUES (1)", DumpPart::Insert, "s"),
        ("REPLACE DELAYED t (a) VALUES (1)", DumpPart::Insert, "t"),
        ("INSERT INTO \"t\" VALUES (1)", DumpPart::Insert, "t"),
        (
            "INSERT INTO t (id, value) VALUES (-1,NULL),(0x00,_binary 'a;b\\''),(X'00',b'1')",
            DumpPart::Insert,
            "t",
        ),
        (
            "INSERT INTO t VALUES (1e-5,CONVERT(\"[1]\" USING UTF8MB4)) -- x\n,(-1.5,CAST('' AS JSON))",
            DumpPart::Insert,
            "t",
        ),
        (
            "INSERT INTO `t` VALUES (1) ON DUPLICATE KEY UPDATE `a` = VALUES(`a`), b=b",
            DumpPart::Insert,
            "t",
        ),
        ("INSERT INTO größe VALUES (1)", DumpPart::Insert, "größe"),
        ("LOCK TABLES `sbtest1` WRITE", DumpPart::Touch, "sbtest1"),
        ("/*!40000 ALTER TABLE `sbtest1` DISABLE KEYS */", DumpPart::Touch, "sbtest1"),
        (
            "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a,b) REFERENCES u (a,b), ADD KEY k (a)",
            DumpPart::Touch,
            "t",
        ),
        (
            "/*!80002 ANALYZE TABLE `t` UPDATE HISTOGRAM ON `c` WITH 8 BUCKETS */",
            DumpPart::Touch,
            "t",
        ),
        ("UNLOCK TABLES", DumpPart::Other, ""),
        ("/*!40101 SET NAMES utf8mb4 */", DumpPart::Names, "utf8mb4"),
        ("SET NAMES 'latin1'", DumpPart::Names, "latin1"),
        ("/*!40101 SET character_set_client = utf8 */", DumpPart::Other, ""),
        ("/*!40101 SET @saved_cs_client     = @@character_set_client */", DumpPart::Other, ""),
        (
            "/*M!100616 SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY, NOTE_VERBOSITY=0 */",
            DumpPart::Other,
            "",
        ),
        ("SET @@session.sql_mode = 'ANSI', LOCAL time_zone := '+00:00'", DumpPart::Other, ""),
        ("set autocommit=0", DumpPart::Other, ""),
        ("commit", DumpPart::Other, ""),
        (
            "SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ 'a:1,\nb:2'",
            DumpPart::LeftOut(LeftOut::GtidPurged),
            "",
        ),
        ("SET SQL_LOG_BIN=0", DumpPart::LeftOut(LeftOut::SqlLogBin), ""),
        ("SET @X = @@SESSION.SQL_LOG_BIN", DumpPart::LeftOut(LeftOut::SqlLogBin), ""),
        ("SET GLOBAL gtid_slave_pos='0-1-2'", DumpPart::LeftOut(LeftOut::Replication), ""),
        ("STOP ALL SLAVES", DumpPart::LeftOut(LeftOut::Replication), ""),
        ("START SLAVE", DumpPart::LeftOut(LeftOut::Replication), ""),
        ("STOP REPLICA FOR CHANNEL 'x'", DumpPart::LeftOut(LeftOut::Replication), ""),
        (
            "CHANGE MASTER TO MASTER_LOG_FILE='b', MASTER_LOG_POS=4",
            DumpPart::LeftOut(LeftOut::Replication),
            "",
        ),
    ] {
        assert_eq!(seen(&[sql]), Ok((kind, name.to_owned())), "{sql}");
    }
}

#[test]
fn statements_that_a_dump_of_tables_does_not_have_are_refused() {
    for (sql, part) in [
        ("DROP DATABASE sbtest", "DROP DATABASE"),
        ("CREATE DATABASE /*!32312 IF NOT EXISTS*/ `x`", "CREATE DATABASE"),
        ("/*!50001 CREATE VIEW `v` AS SELECT 1 */", "views"),
        ("/*!50003 CREATE*/ /*!50017 DEFINER=`r`@`h`*/ /*!50003 TRIGGER t BEFORE */", "triggers"),
        ("CREATE DEFINER=`r`@`h` PROCEDURE p() SELECT 1", "routines"),
        ("CREATE SEQUENCE s", "sequences"),
        ("DROP TABLE IF EXISTS a, b", "more than one"),
        ("DROP TABLE IF EXISTS other.a", "another database"),
        ("INSERT INTO `other` . `a` VALUES (1)", "another database"),
        ("INSERT INTO VALUES", "without VALUES"),
        ("DELIMITER ", "DELIMITER: triggers and routines"),
        ("USE `mysql`", "USE: a load stays"),
        ("DELETE FROM t", "DELETE"),
        ("TRUNCATE TABLE t", "TRUNCATE"),
        ("START GROUP_REPLICATION", "START"),
        ("DROP SEQUENCE IF EXISTS `s`", "sequences"),
        ("\\. /etc/passwd", "outside of quotes"),
        ("INSERT INTO `unclosed VALUES", "a quote without end"),
        ("", "no statement"),
        // These take something from outside of the table.
        ("CREATE TABLE t SELECT 1", "without columns"),
        ("CREATE TABLE t LIKE other.x", "without columns"),
        ("CREATE TABLE t (LIKE other.x)", "LIKE"),
        ("CREATE TABLE t (a int) AS SELECT 1", "SELECT"),
        ("CREATE TABLE t (a int) TABLE other.x", "TABLE"),
        ("CREATE TABLE t (a int) VALUES ROW(LOAD_FILE('/x'))", "ROW"),
        ("CREATE TABLE t (a int) ENGINE=FEDERATED CONNECTION='mysql://h/d/t'", "ENGINE"),
        ("CREATE TABLE t (a int) ENGINE 'CONNECT' FILE_NAME='/etc/passwd'", "ENGINE"),
        ("CREATE TABLE t (a int) DATA DIRECTORY='/tmp'", "DIRECTORY"),
        ("CREATE TABLE t (a int, FOREIGN KEY (a) REFERENCES other.u (a))", "another database"),
        ("ALTER TABLE `t` RENAME TO other.t", "RENAME"),
        ("ALTER TABLE `t` ADD KEY (a), RENAME u", "RENAME"),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "TABLE"),
        ("ALTER TABLE t DROP a", "DROP"),
        ("LOCK TABLES a WRITE, other.b WRITE", "no dump has"),
        ("INSERT INTO t SELECT LOAD_FILE('/etc/passwd')", "SELECT"),
        ("INSERT INTO t (SELECT 1)", "a list of columns"),
        ("INSERT INTO t SET a = 1", "SET"),
        ("INSERT INTO t VALUES (LOAD_FILE('/etc/passwd'))", "LOAD_FILE"),
        ("INSERT INTO t VALUES (`LOAD_FILE`('/etc/passwd'))", "LOAD_FILE"),
        ("INSERT INTO t VALUES ((SELECT 1))", "SELECT"),
        ("INSERT INTO t VALUES (@@version)", "@@version"),
        (
            "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a=`load_file` /* */ ('/x')",
            "load_file",
        ),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a=(SELECT 1)", "SELECT"),
        ("INSERT INTO t VALUES (1) RETURNING sleep(9)", "RETURNING"),
        ("INSERT INTO t VALUES (1); DROP TABLE u", "DROP"),
    ] {
        let why = seen(&[sql]).expect_err(sql);
        assert!(why.contains(part), "{sql}: {why}");
    }
}

#[test]
fn a_dump_sets_nothing_but_what_dumps_set() {
    for file in [
        &["SET PASSWORD = 'x'"][..],
        &["SET PASSWORD FOR 'root'@'localhost' = PASSWORD('x')"],
        &["SET GLOBAL general_log_file = '/tmp/x'"],
        &["SET GLOBAL INNODB_STATS_AUTO_RECALC=OFF"],
        &["SET @@global.sql_mode = ''"],
        &["SET PERSIST max_connections = 1"],
        &["SET @@PERSIST_ONLY.max_connections = 1"],
        &["SET SESSION time_zone='+00:00', GLOBAL time_zone='+00:00'"],
        &["SET DEFAULT ROLE x TO y"],
        &["SET ROLE ALL"],
        &["SET STATEMENT sql_mode='' FOR DROP DATABASE x"],
        &["SET TRANSACTION READ ONLY"],
        &["SET max_statement_time = 1"],
        &["SET hot.key_buffer_size = 1"],
        &["SET sql_mode = (SELECT 1)"],
        &["SET sql_mode = CONCAT('a', 'b')"],
        &["SET time_zone = LOAD_FILE('/etc/passwd')"],
        &["SET @a = (SELECT password FROM mysql.user)"],
        &["SET @a = @@global.datadir"],
        &["SET SQL_LOG_BIN=0, FOREIGN_KEY_CHECKS=0"],
        &["SET SQL_LOG_BIN=0, GLOBAL general_log=1"],
        &["SET NAMES utf8, GLOBAL general_log=1"],
        // Only whole, so that one server does not take half of it.
        &["SET time_zone /*!99999 = '+00:00', GLOBAL general_log */ = 1"],
    ] {
        assert!(seen(file).is_err(), "{file:?}");
    }
}

#[test]
fn the_server_reads_the_statements_that_were_judged() {
    for file in [
        // Character sets whose characters have quotes in them, under any name.
        &["/*!40101 SET NAMES gbk */"][..],
        &["SET NAMES 'BIG5'"],
        &["SET NAMES 'gb\\k'"],
        &["/*!40101 SET character_set_client = sjis */"],
        &["SET character_set_client = 28"],
        &["SET @@session.character_set_client = DEFAULT"],
        &["SET CHARACTER SET cp932"],
        &["SET CHARSET 'gb18030'"],
        &["SET collation_connection = gbk_chinese_ci"],
        &["SET @c = 'gbk'", "SET character_set_client = @c"],
        &["SET @c = @@collation_connection", "SET character_set_client = @c"],
        &["SET character_set_client = @nobody_set_it"],
        // Backslashes that escape nothing.
        &["/*!40101 SET sql_mode = 'ansi,no_backslash_escapes' */"],
        &["SET sql_mode = 1048576"],
        &["SET @m = 1048576", "SET sql_mode = @m"],
        &["SET sql_mode = 'NO_BACK' 'SLASH_ESCAPES'"],
        &["SET sql_mode = 'NO_BACK\\SLASH_ESCAPES'"],
        &["SET sql_mode = 0x4e4f5f4241434b534c4153485f45534341504553"],
        &["SET sql_mode = @@global.sql_mode"],
        &["SET @m = @@time_zone", "/*!99999 SET @m = @@sql_mode */"],
        &["SET sql_mode = 'ANSI'", "INSERT INTO \"a\\\" VALUES (1)"],
        // Comments that some servers enter and others do not.
        &["/*!99999 INSERT INTO t VALUES ( */ DROP DATABASE x /*!99999 ) */"],
        &["INSERT INTO t /*!99999 VALUES (1) */ /*!50000 SELECT 1 */"],
        &["CREATE TABLE t (a int) COMMENT 'x' /*!99999 COMMENT ' */ SELECT 1 /*!99999 ' */"],
        &["CREATE TABLE a /*!99999 (a int) */ . b (c int)"],
        &["CREATE TABLE t (/*!99999 a int CHECK ( */ LIKE x /*!99999 )*/)"],
        &["ALTER TABLE t /*!99999 ADD a int COMMENT */ RENAME u"],
        &["ALTER TABLE t ADD a int DEFAULT 1 /*!99999 -- */, RENAME u"],
        &["INSERT /*+ SET_VAR(sql_mode='') */ INTO t VALUES (1)"],
        &["INSERT INTO t VALUES (1 --\u{b} '\n,2)"],
        &["INSERT INTO t\u{b}SELECT 1"],
        // A name that is another one in the file's character set.
        &["SET NAMES latin1", "DROP TABLE IF EXISTS `größe`"],
    ] {
        let why = seen(file).expect_err("it is refused");
        assert!(!why.is_empty(), "{file:?}");
    }
}

#[test]
fn the_switch_of_myrocks_is_left_out_and_other_prepared_statements_are_refused() {
    let own = [
        "/*!50717 SELECT COUNT(*) INTO @rocksdb_has_p_s_session_variables FROM \
         INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'performance_schema' */",
        "/*!50717 SET @rocksdb_get_is_supported = IF (@rocksdb_has_p_s_session_variables, \
         'SELECT 1 WHERE VARIABLE_NAME=\\'rocksdb_bulk_load\\'', 'SELECT 0') */",
        "/*!50717 PREPARE s FROM @rocksdb_get_is_supported */",
        "/*!50717 EXECUTE s */",
        "/*!50717 DEALLOCATE PREPARE s */",
    ];
    for end in 1..=own.len() {
        let expected = Ok((DumpPart::LeftOut(LeftOut::RocksDb), String::new()));
        assert_eq!(seen(&own[..end]), expected, "{}", own[end - 1]);
    }
    for file in [
        &["PREPARE s FROM @x"][..],
        &["PREPARE s FROM 'DROP DATABASE x'"],
        &["EXECUTE s"],
        &["SET GLOBAL rocksdb_x = @rocksdb_y"],
        &["SELECT 1 INTO @x"],
    ] {
        assert!(seen(file).is_err(), "{file:?}");
    }
}

fn fixtures(dir: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(dir);
    let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("one").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    assert!(files.len() > 5, "{files:?}");
    files
}

/// Judges a file's statements; an error says why one is refused.
fn judged(path: &Path) -> Result<Vec<DumpPart>, String> {
    let file = File::open(path).expect("a file");
    let mut statements = Splitter::new(file, "x.sql", 1 << 20);
    let (mut judge, mut kinds) = (Judge::new(None), Vec::new());
    loop {
        match statements.next_statement() {
            Ok(Some(statement)) => {
                let why = |why| format!("line {}: {why}", statement.line);
                kinds.push(judge.judge(statement.sql).map_err(why)?.kind);
            }
            Ok(None) => return Ok(kinds),
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[test]
fn dumps_of_real_programs_are_taken_whole() {
    for path in fixtures("dumps") {
        let kinds = judged(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let count = |kind| kinds.iter().filter(|one| **one == kind).count();
        assert!(count(DumpPart::Create) > 0 && count(DumpPart::Insert) > 0, "{}", path.display());
        let left_out: BTreeSet<LeftOut> = kinds
            .iter()
            .filter_map(
                |kind| if let DumpPart::LeftOut(about) = kind { Some(*about) } else { None },
            )
            .collect();
        let name = path.file_name().expect("a name").to_string_lossy();
        let expected = match &*name {
            name if name.ends_with("source-data.sql") => {
                &[LeftOut::GtidPurged, LeftOut::SqlLogBin, LeftOut::Replication][..]
            }
            name if name.ends_with("master-data.sql") => &[LeftOut::Replication],
            name if name.starts_with("mysqldump-9.7") => &[LeftOut::GtidPurged, LeftOut::SqlLogBin],
            _ => &[],
        };
        assert!(left_out.iter().eq(expected), "{name}: {left_out:?}");
    }
}

#[test]
fn dumps_with_more_than_tables_are_refused_for_what_they_hold() {
    for path in fixtures("dumps/refused") {
        let why = judged(&path).expect_err("it is refused");
        let name = path.file_name().expect("a name").to_string_lossy();
        let object = name.split('-').next().expect("one");
        let object = if object == "databases" { "DATABASE" } else { object };
        assert!(why.contains(object), "{name}: {why}");
    }
}

proptest! {
    #[test]
    fn no_statement_panics(
        parts in prop::collection::vec(prop::sample::select(vec![
            "SET ", "@", "@@", "a", "=", "'", "\"", "`", ",", "(", ")", "/*!50000 ", "/*M!", "*/", "--", " ", "\n",
            "INSERT INTO t VALUES ", "CREATE TABLE t ", "ALTER TABLE t ", "ON DUPLICATE KEY UPDATE ", "1", ".",
            "IFNULL(", "sql_mode", "NAMES ", "\\", ";", "ENGINE", "REFERENCES ", "LOCK TABLES ", "\u{e9}", "AS ",
        ]), 0..14),
    ) {
        let sql = parts.concat();
        if let Ok(seen) = Judge::new(None).judge(sql.as_bytes()) {
            prop_assert!(sql.as_bytes().get(seen.name).is_some());
        }
    }
}
