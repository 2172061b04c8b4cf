//! What summaries say of a server, held against real ones: tables, identity, settings, counters.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::common;
use crate::common::{sandbox, servers};
use loadgen::mysql::control;
use std::time::Duration;

use crate::common::databases::run;
use crate::common::restarting::{Restarting, until};
use crate::common::sessions::{
    execute, fill, link, measured, on, open, own_table, root, run_prepared, target, tcp,
};
use loadgen::mysql::dataset::discover;
use loadgen::mysql::options::{Address, SslMode};
use loadgen::mysql::preflight::{self, Needs, Ready, Writes};
use loadgen::mysql::server;
use loadgen::mysql::session::Session;
use loadgen::mysql::status;
use loadgen::mysql::wire::Value;
use loadgen::observe::host;
use loadgen::observe::probe::FarEnd;
use loadgen::workload::Schema;
use loadgen::workload::table::State;

#[test]
fn tables_are_found_as_they_are() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        on(&server.name, &sandbox.version);
        run(async {
            let mut session = root(&sandbox.socket, "").await;
            let nothing = discover(&mut session, "no_such_database", Schema::Sbtest).await.unwrap();
            assert_eq!((nothing.contiguous(), nothing.tables.len()), (0, 0));
            execute(&mut session, &["CREATE DATABASE `odd``name`", "USE `odd``name`"]).await;
            make_tables(&mut session).await;
            // Another database's tables are not these.
            execute(&mut session, &["USE sbtest", "CREATE TABLE sbtest9 (id INT)"]).await;
            let found = discover(&mut session, "odd`name", Schema::Sbtest).await.unwrap();
            let numbers: Vec<u32> = found.tables.keys().copied().collect();
            assert_eq!(numbers, [1, 2, 4, 5, 6]);
            assert_eq!(found.contiguous(), 2);
            let marks: Vec<_> = found.tables.values().map(|t| t.mark.map(|m| m.state)).collect();
            assert_eq!(marks, [Some(State::Ready), None, Some(State::Filling), None, None]);
            let engines: Vec<_> = found.tables.values().map(|t| t.engine.as_deref()).collect();
            assert_eq!(
                engines,
                [Some("InnoDB"), Some("MyISAM"), Some("InnoDB"), None, Some("InnoDB")]
            );
            let why: Vec<_> = found
                .tables
                .values()
                .map(|t| t.unusable(Schema::Sbtest).unwrap_or_default())
                .collect();
            assert!(why[..3].iter().all(String::is_empty), "{why:?}");
            assert!(why[3].contains("view") && why[4].ends_with(" id"), "{why:?}");
            assert!(!found.tables[&5].is_table());
            let indexed: Vec<_> =
                found.tables.values().map(|t| t.is_indexed(Schema::Sbtest)).collect();
            assert_eq!(indexed, [true, false, true, false, false]);

            // The session's own database is another one.
            let needs = Needs {
                database: "odd`name",
                schema: Schema::Sbtest,
                tables: Some(2),
                rows: None,
                seed: 1,
                clients_max: 1,
                clients_here: 1,
                statements: &|_| (0, 1),
                rows_there: true,
                statements_beside: &|_| 0,
                clients_beside: 0,
                addresses: 1,
                writes: Writes::None,
                begins: false,
                quiet_max: Duration::ZERO,
            };
            let Ready { dataset, warnings, .. } =
                preflight::check(&mut session, &needs).await.unwrap();
            assert_eq!(
                (dataset.tables.count, dataset.tables.rows, dataset.tables.own),
                (2, 300, false)
            );
            assert_eq!(warnings.len(), 2, "engines differ, k is not indexed: {warnings:?}");
            sizes_are_fresh(&mut session).await;
        });
    }
}

#[test]
fn tables_of_other_options_or_indexes_have_another_format() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        on(&server.name, &sandbox.version);
        run(async {
            let mut session = root(&sandbox.socket, "sbtest").await;
            own_table(&mut session, 1, 100, State::Ready).await;
            let mut formats = Vec::new();
            for change in [
                "ANALYZE TABLE sbtest1",
                "ALTER TABLE sbtest1 ADD INDEX extra (c)",
                "ALTER TABLE sbtest1 DROP INDEX extra, ADD INDEX extra (c(7), pad)",
                "ALTER TABLE sbtest1 PARTITION BY HASH(id) PARTITIONS 4",
            ] {
                execute(&mut session, &[change]).await;
                let found = discover(&mut session, "sbtest", Schema::Sbtest).await.unwrap();
                let format = found.tables[&1].format.clone();
                assert!(!formats.contains(&format), "after {change}: {formats:?}");
                formats.push(format);
            }
            assert!(formats[0].contains("PRIMARY BTREE (id)"), "{formats:?}");
            assert!(formats[2].contains("(c(7), pad)"), "{formats:?}");
        });
    }
}

async fn make_tables(session: &mut Session) {
    own_table(session, 1, 300, State::Ready).await;
    own_table(session, 4, 300, State::Filling).await;
    let columns = "k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL";
    let foreign = format!(
        "CREATE TABLE sbtest2 (id INT PRIMARY KEY, {columns}) ENGINE=MyISAM \
         COMMENT='loadgen:2 seed=1 rows=300 state=ready'"
    );
    let heap = format!("CREATE TABLE sbtest6 (id INT NOT NULL, {columns}) ENGINE=InnoDB");
    execute(
        session,
        &[
            &foreign,
            &heap,
            "CREATE VIEW sbtest5 AS SELECT * FROM sbtest1",
            "CREATE TABLE sbtest (id INT)",
            "CREATE TABLE sbtest07 (id INT)",
            "CREATE TABLE sbtest8_old (id INT)",
        ],
    )
    .await;
    fill(session, 2, 1..=300).await;
}

/// MySQL 8 would answer with the sizes of a day ago.
async fn sizes_are_fresh(session: &mut Session) {
    execute(session, &["USE sbtest", "DROP TABLE sbtest9"]).await;
    own_table(session, 1, 100, State::Ready).await;
    let small = discover(session, "sbtest", Schema::Sbtest).await.unwrap().tables[&1].bytes;
    fill(session, 1, 101..=20_000).await;
    execute(session, &["ANALYZE TABLE sbtest1"]).await;
    let large = discover(session, "sbtest", Schema::Sbtest).await.unwrap().tables[&1].bytes;
    // A row of sysbench's takes about 200 bytes.
    assert!(small > 0 && large > small + 19_900 * 180, "{small} {large}");
}

#[test]
fn a_server_is_who_it_is() {
    for server in servers() {
        let sandbox = sandbox(&server, &[("report-password", "hunter2")]);
        on(&server.name, &sandbox.version);
        run(async {
            let there = target(Address::Socket(sandbox.socket.clone()), "root", "sbtest");
            let mut session = open(&there).await;
            let over_socket =
                server::fingerprint(&mut session, &link(&there), Some(7)).await.unwrap();
            let facts = &over_socket.server;
            assert_eq!((facts.host.as_str(), facts.port), ("localhost", None));
            assert_eq!((facts.transport.as_str(), facts.tls_cipher.as_deref()), ("socket", None));
            assert!(sandbox.version.starts_with(&facts.version), "{}", facts.version);
            // What the build advertises is in the variable alone.
            assert!(facts.variables["version_comment"].starts_with(&facts.version_comment));
            assert_eq!(facts.data_bytes, Some(7));
            let pool = facts.variables["innodb_buffer_pool_size"].parse().unwrap();
            assert_eq!(facts.buffer_pool_bytes, Some(pool));
            assert!(pool >= 1 << 20 && facts.variables.len() > 300, "{}", facts.variables.len());
            let here = host::facts(host::ROOT.as_ref());
            assert!(over_socket.same_host);
            assert_eq!(facts.host_facts.as_ref().map(|h| &h.kernel), Some(&here.facts.kernel));
            let text = serde_json::to_string(facts).unwrap();
            assert!(!text.contains("hunter2") && text.contains("(withheld)"));

            let there = target(tcp(sandbox.port), "root", "sbtest");
            let (mut direct, port) = (open(&there).await, Some(sandbox.port));
            let over_tcp = server::fingerprint(&mut direct, &link(&there), None).await.unwrap();
            assert!(over_tcp.same_host, "a direct connection to this host");
            assert_eq!((over_tcp.server.transport.as_str(), over_tcp.server.port), ("tcp", port));
            assert_eq!(over_tcp.driver, over_socket.driver);

            // MySQL 8 and later make themselves certificates; the others have none here.
            if facts.variables.get("ssl_cert").is_some_and(|path| !path.is_empty()) {
                let mut wanted = target(tcp(sandbox.port), "root", "sbtest");
                wanted.ssl.mode = SslMode::Required;
                let mut encrypted = open(&wanted).await;
                let seen = server::fingerprint(&mut encrypted, &link(&wanted), None).await;
                assert!(seen.unwrap().server.tls_cipher.is_some_and(|name| name.len() > 5));
            }

            let forwarder = forward(format!("127.0.0.1:{}", sandbox.port));
            let there = target(tcp(forwarder), "root", "sbtest");
            let mut far = open(&there).await;
            let seen = server::fingerprint(&mut far, &link(&there), None).await.unwrap();
            assert!(seen.same_host, "the server's end of the forwarder's connection is here");
            assert!(seen.server.host_facts.is_some());
        });
    }
}

/// A network namespace of its own, as a container has one, behind an address of this host's.
struct Namespace(String);

impl Namespace {
    /// None where this account may not make one.
    fn new(address: &str, gateway: &str) -> Option<Namespace> {
        let name = format!("lg{}", std::process::id());
        let namespace = Namespace(name.clone());
        let inside = format!("-n {name}");
        let made = [
            format!("netns add {name}"),
            format!("link add {name}a type veth peer name {name}b netns {name}"),
            format!("addr add {gateway}/30 dev {name}a"),
            format!("link set {name}a up"),
            format!("{inside} addr add {address}/30 dev {name}b"),
            format!("{inside} link set {name}b up"),
            format!("{inside} link set lo up"),
        ];
        made.iter().all(|words| ip(words)).then_some(namespace)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.0));
    }
}

fn ip(words: &str) -> bool {
    let done = Command::new("ip").args(words.split(' ')).output();
    done.is_ok_and(|output| output.status.success())
}

#[test]
fn a_server_in_a_container_of_this_host_shares_it() {
    let (address, gateway) = ("10.213.117.2", "10.213.117.1");
    let Some(namespace) = Namespace::new(address, gateway) else {
        return common::skipped("needs iproute2 and the right to make network namespaces");
    };
    let sandbox = sandbox(&common::local(), &[]);
    common::query(&sandbox, &format!("CREATE USER 'guest'@'{gateway}'"));
    let words = std::fs::read(format!("/proc/{}/cmdline", sandbox.pid)).unwrap();
    let words = words.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(std::ffi::OsStr::from_bytes).collect();
    let mut first = Restarting::new(sandbox);
    first.kill();
    let mut server = Command::new("ip");
    server.args(["netns", "exec", &namespace.0]).args(words);
    server.arg(format!("--bind-address={address}")).stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    let port = first.sandbox.port;
    until("the server's start", || TcpStream::connect((address, port)).is_ok());
    let forwarder = forward(format!("{address}:{port}"));
    let seen = ["10.213.117.2", "127.0.0.1"].iter().zip([port, forwarder]).map(|(host, port)| {
        let there = Address::Tcp { host: (*host).to_owned(), port };
        run(async {
            let there = target(there, "guest", "");
            let mut session = open(&there).await;
            server::fingerprint(&mut session, &link(&there), None).await
        })
    });
    let seen: Vec<_> = seen.collect();
    server.kill().unwrap();
    server.wait().unwrap();
    for seen in seen {
        let seen = seen.unwrap();
        assert!(seen.same_host, "{:?}", seen.server.host);
        assert_eq!(seen.whereabouts.far_end, FarEnd::Here(Some(server.id())));
    }
}

/// Forwards connections, as an SSH tunnel or a container's published port does.
fn forward(to: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let pump = |mut from: TcpStream, mut to: TcpStream| {
            thread::spawn(move || {
                let mut buffer = [0; 16384];
                while let Ok(n @ 1..) = from.read(&mut buffer) {
                    if to.write_all(&buffer[..n]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Write);
            })
        };
        while let Ok((client, _)) = listener.accept() {
            let server = TcpStream::connect(&to).unwrap();
            pump(client.try_clone().unwrap(), server.try_clone().unwrap());
            pump(server, client);
        }
    });
    port
}

#[test]
fn settings_and_counters_are_the_servers_own() {
    for server in servers() {
        let sandbox = sandbox(&server, &[("log-bin", "binlog"), ("server-id", "7")]);
        on(&server.name, &sandbox.version);
        run(async {
            let mut control = root(&sandbox.socket, "sbtest").await;
            own_table(&mut control, 1, 100, State::Ready).await;
            let there = target(Address::Socket(sandbox.socket.clone()), "root", "sbtest");
            let mut client = measured(&there).await;
            let select = client.prepare("SELECT c FROM sbtest1 WHERE id = ?").await.unwrap();
            let update = client.prepare("UPDATE sbtest1 SET k=k+1 WHERE id = ?").await.unwrap();

            let before = control::variables(&mut control).await.unwrap();
            let start = Instant::now();
            let first = status::read(&mut control).await.unwrap();
            for id in 1..=100 {
                let answer = run_prepared(&mut client, select, &[Value::Int(id)]).await.unwrap();
                assert_eq!(answer.rows, 1);
            }
            for id in 1..=50 {
                run_prepared(&mut client, update, &[Value::Int(id)]).await.unwrap();
            }
            let last = status::read(&mut control).await.unwrap();
            let delta = status::delta(&first, &last, start);
            // The second reading is a question too.
            for (name, expected) in [
                ("Questions", 151),
                ("Com_stmt_execute", 150),
                ("Com_select", 100),
                ("Com_update", 50),
                ("Com_stmt_prepare", 0),
                ("Handler_update", 50),
            ] {
                let seen = delta.deltas.get(name).copied().unwrap_or(0);
                assert_eq!(seen, expected, "{name}");
            }
            assert!(delta.deltas["Bytes_received"] > 0 && delta.deltas["Handler_read_key"] > 0);
            assert!(0.0 < delta.first_s && delta.first_s < delta.last_s, "{delta:?}");

            let after = control::variables(&mut control).await.unwrap();
            assert_eq!(control::changed(&before, &after), [], "nobody set anything");
            execute(&mut control, &["SET GLOBAL innodb_flush_log_at_trx_commit = 2"]).await;
            let set = control::variables(&mut control).await.unwrap();
            let changes = control::changed(&before, &set);
            assert_eq!(changes.len(), 1, "{changes:?}");
            assert_eq!(changes[0].name, "innodb_flush_log_at_trx_commit");
            assert_eq!(
                (changes[0].before.as_deref(), changes[0].after.as_deref()),
                (Some("1"), Some("2"))
            );
        });
    }
}
