//! What measured clients send: the bytes that mysql_async sends for the same, for every built-in
//! workload; and what servers count of it.

use std::process::Command;
use std::time::Duration;

use loadgen::workload::{Schema, builtin};

use super::both::{self, Both, QUIT, commands};
use crate::common::databases::{everywhere, run};
use crate::common::program;
use crate::common::proxy::Proxy;
use crate::common::restarting::until;
use crate::common::sessions::on;
use crate::common::{query, sandbox, servers};

/// Mysql_async asks for LOCAL_FILES, a measured session does not.
const LOCAL_FILES: u8 = 0x80;

/// Runs the program with these words over a way.
fn loadgen(words: &str, way: &Proxy, database: &str) {
    let port = way.port.to_string();
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "root", "-D", database];
    let ended = program::run(&format!("{words} --ssl-mode DISABLED"), &connection);
    assert_eq!(ended.code, 0, "{words}: {}", ended.stderr);
}

fn prepare(words: &str, port: u16, database: &str) {
    let port = port.to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["prepare", "--no-defaults", "-h", "127.0.0.1", "-u", "root", "-D", database])
        .args(["--ssl-mode", "DISABLED", "-P", &port])
        .args(words.split_whitespace())
        .output();
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The commands of the measured client that last used a way, which said goodbye.
fn of_the_client(way: &Proxy) -> Vec<Vec<u8>> {
    until("the end of every connection", || way.ended() == way.seen().0);
    let said = way.said();
    let measured = said.iter().filter(|said| said.len() > 4 && said[4] & LOCAL_FILES == 0);
    let mut sent = measured.map(|said| commands(said)).max_by_key(Vec::len).expect("a client");
    assert_eq!(sent.pop().expect("commands"), QUIT);
    sent
}

/// Runs every built-in workload, and both sessions on copies of its tables after it.
fn every_workload(statements: &str) {
    everywhere(|db| {
        let copies = both::databases(db);
        for words in ["--rows 1000", "--schema phptest --rows 10000", "--schema bulk"] {
            prepare(words, db.sandbox.port, &db.name);
        }
        let tables = ["sbtest1", "phptest1", "bulk1"];
        for (copy, table) in copies.iter().flat_map(|copy| tables.map(|table| (copy, table))) {
            let (from, to) = (format!("{}.{table}", db.name), format!("{}.{table}", copy.name));
            query(db.sandbox, &format!("CREATE TABLE {to} LIKE {from}"));
            query(db.sandbox, &format!("INSERT INTO {to} SELECT * FROM {from} ORDER BY id"));
        }
        let mut workloads = builtin();
        // It leaves holes, which no other one likes.
        workloads.sort_by_key(|workload| workload.name == "delete");
        let way = Proxy::to(db.sandbox.port);
        for workload in workloads {
            let mut words = format!("{} --statements {statements}", workload.name);
            words += " --ops 200 --seed 7 --clients 1";
            if workload.schema == Schema::Bulk {
                words += " --bulk-bytes 10k";
            }
            way.lay(db.sandbox.port);
            loadgen(&words, &way, &db.name);
            let recorded = of_the_client(&way);
            assert!(recorded.len() >= 200, "{words}: {} commands", recorded.len());
            run(async {
                let mut both = Both::new(copies.each_ref()).await;
                for command in &recorded {
                    let command = both.decoded(command);
                    both.ask(&command).await.unwrap_or_else(|failure| panic!("{words}: {failure}"));
                }
                both::assert_same(&both.sent_the_same(), &recorded, &words);
            });
        }
        for table in tables {
            let of = |name: &str| {
                query(db.sandbox, &format!("CHECKSUM TABLE {name}.{table}"))[0][1].clone()
            };
            let sums = [&db.name, &copies[0].name, &copies[1].name].map(|name| of(name));
            assert!(sums.iter().all(|sum| *sum == sums[0] && sum != "NULL"), "{table}: {sums:?}");
        }
    });
}

#[test]
fn prepared_statements_are_the_bytes_of_mysql_async_when_any_workload_runs() {
    every_workload("prepared");
}

#[test]
fn text_statements_are_the_bytes_of_mysql_async_when_any_workload_runs() {
    every_workload("text");
}

const COUNTERS: [&str; 7] = [
    "Com_select",
    "Com_update",
    "Com_stmt_prepare",
    "Com_stmt_execute",
    "Com_stmt_close",
    "Questions",
    "Aborted_clients",
];

/// What a server must count of a connection, the goodbye included.
fn counts(said: &[u8]) -> [i64; 7] {
    let of = commands(said);
    let prepared: Vec<&[u8]> = of.iter().filter(|c| c[0] == 0x16).map(|c| &c[1..]).collect();
    let mut counts = [0; 7];
    for command in &of {
        let sql = match command[0] {
            0x03 => &command[1..],
            0x17 => prepared[usize::from(command[1])],
            _ => b"",
        };
        let begins = |word: &[u8]| i64::from(sql.len() > 6 && sql[..6].eq_ignore_ascii_case(word));
        let is = |code| i64::from(command[0] == code);
        let one = [begins(b"SELECT"), begins(b"UPDATE"), is(0x16), is(0x17), is(0x19)];
        counts.iter_mut().zip(one).for_each(|(count, one)| *count += one);
        counts[5] += is(0x03) + is(0x17) + is(0x01);
    }
    counts[6] = i64::from(of.last().is_none_or(|last| *last != QUIT));
    counts
}

#[test]
fn a_server_counts_what_was_sent_when_a_run_of_so_many_ops_ends() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        on(&server.name, &sandbox.version);
        prepare("--rows 1000", sandbox.port, "sbtest");
        let counted = || {
            let rows = query(&sandbox, "SHOW GLOBAL STATUS");
            COUNTERS.map(|name| {
                let row = rows.iter().find(|row| row[0] == name).expect(name);
                row[1].parse::<i64>().expect("a number")
            })
        };
        let way = Proxy::to(sandbox.port);
        for words in ["point-select", "update-index --statements text", "read-write"] {
            way.lay(sandbox.port);
            let before = counted();
            loadgen(&format!("{words} --ops 200 --seed 7"), &way, "sbtest");
            of_the_client(&way);
            let mut expected = before;
            for said in way.said() {
                let one = counts(&said);
                expected.iter_mut().zip(one).for_each(|(sum, one)| *sum += one);
            }
            // To look is a question, and a goodbye. A server may count a connection that closes late, or,
            // as MySQL 5.6, twice.
            let goodbyes = i64::try_from(way.said().len()).expect("a few");
            // MySQL 5.5 does not count a SELECT of a variable that it does not know.
            let unknown = if sandbox.version.starts_with("5.5") { 3 } else { 0 };
            let most = [unknown, 0, 0, 0, 0, goodbyes, 0];
            let near = |seen: [i64; 7], expected: [i64; 7]| {
                (0..7).all(|i| (seen[i] - expected[i]).abs() <= most[i])
            };
            let mut seen = before;
            for _ in 0..1000 {
                expected[5] += 2;
                seen = counted();
                if near(seen, expected) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let told = format!("{}, {words}: {COUNTERS:?}", server.name);
            assert!(near(seen, expected), "{told}: {seen:?} instead of {expected:?}");
        }
    }
}
