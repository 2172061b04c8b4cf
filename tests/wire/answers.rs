//! Answers of every form: a measured session sees of them what mysql_async does.

use loadgen::mysql::session::Failure;
use loadgen::mysql::wire::Want;
use mysql_async::Value;

use super::both::{Command, Seen, beside, databases, params};
use crate::common::databases::{everywhere, run};
use crate::common::sessions::{measured, target, tcp};

/// Each column with its least, its greatest and no value.
const KINDS: [(&str, [&str; 3]); 22] = [
    ("TINYINT", ["-128", "127", "NULL"]),
    ("TINYINT UNSIGNED", ["0", "255", "NULL"]),
    ("SMALLINT", ["-32768", "32767", "NULL"]),
    ("SMALLINT UNSIGNED", ["0", "65535", "NULL"]),
    ("MEDIUMINT", ["-8388608", "8388607", "NULL"]),
    ("MEDIUMINT UNSIGNED", ["0", "16777215", "NULL"]),
    ("INT", ["-2147483648", "2147483647", "NULL"]),
    ("INT UNSIGNED", ["0", "4294967295", "NULL"]),
    ("BIGINT", ["-9223372036854775808", "9223372036854775807", "NULL"]),
    ("BIGINT UNSIGNED", ["0", "18446744073709551615", "NULL"]),
    ("YEAR", ["1901", "2155", "NULL"]),
    ("FLOAT", ["-1.5", "0.25", "NULL"]),
    ("DOUBLE", ["-1e300", "1e-300", "NULL"]),
    ("DECIMAL(20,0)", ["-17", "17", "NULL"]),
    ("BIT(9)", ["b'0'", "b'111111111'", "NULL"]),
    ("CHAR(10)", ["''", "'17  '", "NULL"]),
    ("VARBINARY(10)", ["''", "x'fbfcfdfeff00'", "NULL"]),
    ("TEXT", ["'18446744073709551615'", "'18446744073709551616'", "NULL"]),
    ("ENUM('a','b')", ["'a'", "'b'", "NULL"]),
    ("DATE", ["'1000-01-01'", "'9999-12-31'", "NULL"]),
    ("DATETIME", ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "NULL"]),
    ("TIME", ["'-838:59:59'", "'00:00:00'", "NULL"]),
];

/// One after the other, in the database of each session.
const STATEMENTS: [&str; 29] = [
    "INSERT INTO many SELECT a.n * 100 + b.n * 10 + c.n, REPEAT('x', 300) FROM ten a, ten b, ten c \
     WHERE a.n < 3",
    "SELECT * FROM many",
    "SELECT id FROM many WHERE id BETWEEN 100 AND 199 ORDER BY id",
    "SELECT id FROM many WHERE id < 0",
    "SELECT NULL, 1 FROM many",
    "UPDATE many SET c = 'y' WHERE id < 100",
    "UPDATE many SET c = 'y' WHERE id < 100",
    "UPDATE many SET c = 'z' WHERE id < 0",
    "DELETE FROM many WHERE id = 299",
    "INSERT INTO many VALUES (300, 'a'), (301, NULL), (302, '')",
    "SELECT c FROM many WHERE id >= 300 ORDER BY id DESC",
    "REPLACE INTO many VALUES (300, 'b')",
    "BEGIN",
    "COMMIT",
    "SET @a = 17",
    "SELECT @a, '17', 17.0, -17",
    "CALL two()",
    "CALL none()",
    "CALL fails()",
    "SHOW WARNINGS",
    // Refused: at once, when prepared, behind the definitions, among the rows.
    "INSERT INTO many VALUES (300, 'twice')",
    "SELEC",
    "SELECT * FROM nowhere",
    "SELECT (SELECT 1 UNION SELECT 2)",
    "SELECT IF(id < 250, c, (SELECT id FROM ten_more)) FROM many ORDER BY id",
    "SELECT IF(id < 250, REPEAT('x', 5000), (SELECT n FROM ten)) FROM many",
    "SELECT 1, 2 UNION SELECT 3",
    "SELECT IF(n < 9, REPEAT('y', 100000), (SELECT n FROM ten)) FROM ten",
    "SELECT 1",
];

const TABLES: [&str; 7] = [
    "CREATE TABLE many (id INT PRIMARY KEY, c VARCHAR(300))",
    "CREATE TABLE ten (n INT PRIMARY KEY)",
    "INSERT INTO ten VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
    "CREATE PROCEDURE none() BEGIN END",
    "CREATE PROCEDURE two() BEGIN SELECT n, 'one' FROM ten; UPDATE many SET c = 'w' WHERE id < 5; \
     SELECT 'two' FROM many; UPDATE many SET c = 'v' WHERE id < 3; END",
    "CREATE PROCEDURE fails() BEGIN SELECT n FROM ten; SELECT 1; \
     SELECT (SELECT n FROM ten) FROM ten; END",
    "SET sql_mode = 'STRICT_TRANS_TABLES'",
];

fn code(outcome: &Result<Seen, Failure>) -> Option<u16> {
    match outcome {
        Err(Failure::Server { code, .. }) => Some(*code),
        _ => None,
    }
}

#[test]
fn cells_of_every_type_are_read_as_mysql_async_does_when_they_come_first() {
    beside(async |both| {
        for (kind, values) in KINDS {
            let rows: Vec<String> = (0..).zip(values).map(|(i, v)| format!("({i}, {v})")).collect();
            let fill = format!("INSERT INTO kinds VALUES {}", rows.join(", "));
            let create = format!("CREATE TABLE kinds (id INT PRIMARY KEY, v {kind})");
            for sql in [&create, &fill] {
                both.run(sql).await;
            }
            for id in 0..3 {
                for seen in
                    both.ask_both_ways(&format!("SELECT v FROM kinds WHERE id = {id}")).await
                {
                    assert_eq!(seen.expect(kind).first.is_none(), id == 2, "{kind}");
                }
            }
            both.run("DROP TABLE kinds").await;
        }
    });
}

#[test]
fn answers_of_every_form_are_read_as_mysql_async_does_when_both_ask() {
    beside(async |both| {
        for sql in TABLES {
            both.run(sql).await;
        }
        let mut refused = Vec::new();
        for sql in STATEMENTS {
            let [text, prepared] = both.ask_both_ways(sql).await;
            refused.extend([code(&text), code(&prepared)].into_iter().flatten());
        }
        // Twice each; the procedure that fails, too.
        let [twice, more_rows, no_table] =
            [1062, 1242, 1146].map(|of| refused.iter().filter(|code| **code == of).count());
        assert!(twice >= 2 && more_rows >= 6 && no_table >= 2, "{refused:?}");
        for columns in [250, 251, 4096, 4097] {
            let sql = format!("SELECT 1{}", ", 1".repeat(columns - 1));
            for seen in both.ask_both_ways(&sql).await {
                assert!(seen.is_ok() || columns > 4096, "{columns}: {seen:?}");
            }
        }
        let returning = "INSERT INTO ten VALUES (10), (11) RETURNING n, 'new'";
        let [text, prepared] = both.ask_both_ways(returning).await;
        match &text {
            Ok(seen) => assert_eq!(seen.rows, 2),
            Err(_) => assert_eq!(code(&text), Some(1064), "the server has none"),
        }
        assert!(code(&prepared).is_some(), "a syntax error, or the same rows again");
    });
}

/// Lengths at which their encoding, the number of reads, or that of packets changes.
const LENGTHS: [usize; 14] = [
    0,
    250,
    251,
    252,
    255,
    4_096,
    4_097,
    65_535,
    65_536,
    70_000,
    (1 << 24) - 5,
    (1 << 24) - 1,
    1 << 24,
    17 << 20,
];

#[test]
fn long_texts_are_the_bytes_of_mysql_async_when_sent_and_the_same_when_read() {
    beside(async |both| {
        let ask = "SELECT ?, LENGTH(?), ? IS NULL".to_owned();
        both.ask(&Command::Prepare(ask)).await.expect("prepared");
        for length in LENGTHS {
            let cell = format!("SELECT REPEAT('x', {length}), 1 UNION ALL SELECT 'y', 2");
            for seen in both.ask_both_ways(&cell).await {
                let seen = seen.expect("an answer");
                let first = seen.first.map(|first| first.len());
                assert_eq!((seen.rows, first), (2, Some(length.min(4096))), "{length}");
            }
            let text = Value::Bytes(vec![b'x'; length]);
            // The driver sends longer ones ahead, in packets of their own.
            if length < 1 << 20 {
                let values = vec![text.clone(), text, Value::NULL];
                both.ask(&Command::Execute(0, values)).await.expect("an answer");
            }
            let sql = format!("SELECT LENGTH('{}')", "x".repeat(length));
            let seen = both.ask(&Command::Text(sql.into())).await.expect("an answer");
            assert_eq!(seen.number, Some(length as u64));
        }
        for value in [Value::Int(i64::MIN), Value::UInt(u64::MAX), Value::Int(-1), Value::NULL] {
            let values = vec![value, Value::Int(1), Value::UInt(1)];
            both.ask(&Command::Execute(0, values)).await.expect("an answer");
        }
    });
}

#[test]
fn a_long_parameter_arrives_whole_when_it_takes_several_packets() {
    everywhere(|db| {
        let [db, _] = databases(db);
        run(async {
            let mut session = measured(&target(tcp(db.sandbox.port), "root", &db.name)).await;
            let id = session.prepare("SELECT LENGTH(?)").await.expect("prepared");
            for length in LENGTHS {
                let params = params(&[Value::Bytes(vec![b'x'; length])]);
                session.execute(id, &params, Want::First).await.expect("an answer");
                assert_eq!(session.number(), Some(length as u64));
            }
        });
    });
}

/// Mysql_async asks for both, so it is no measure here.
#[test]
fn files_and_second_statements_are_refused_by_the_server_when_a_client_sends_them() {
    everywhere(|db| {
        run(async {
            let mut session = measured(&target(tcp(db.sandbox.port), "root", &db.name)).await;
            session.run_text("CREATE TABLE t (a TEXT)").await.expect("it may");
            for (sql, codes) in [
                ("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t", &[1148, 3948, 4166][..]),
                ("SELECT 1; SELECT 2", &[1064]),
            ] {
                let refused = session.run_text(sql).await;
                let code = refused.as_ref().err().map(|failure| match failure {
                    Failure::Server { code, .. } => *code,
                    Failure::Lost(_) => 0,
                });
                assert!(code.is_some_and(|code| codes.contains(&code)), "{sql}: {refused:?}");
                assert!(session.is_usable());
            }
        });
    });
}
