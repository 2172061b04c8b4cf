//! Reaching real servers: accounts, transports, encryption, and what goes wrong.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::common::certificates::Certificates;
use crate::common::databases::run;
use crate::common::{Server, local, query, sandbox, servers};
use clap::{Args, FromArgMatches};
use loadgen::cli::help_without_h;
use loadgen::error::{Error, Kind, Result};
use loadgen::mysql::options::{
    Address, ConnectOptions, ConnectionArgs, Env, Secret, Ssl, SslMode, resolve,
};
use loadgen::mysql::server;
use loadgen::mysql::session::{ServerLink, Session, reach};
use loadgen::mysql::wire::{Inbox, LeanSession};
use loadgen::sandbox::Sandbox;
use loadgen::stop::Stop;

/// Told past the capture of libtest: what did not run must be seen.
fn skipped(test: &str, server: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "connect: SKIPPED {test} on {server}: {why}");
}

fn tcp(sandbox: &Sandbox, user: &str, password: &str) -> ConnectOptions {
    ConnectOptions {
        address: Address::Tcp { host: "127.0.0.1".into(), port: sandbox.port },
        others: Vec::new(),
        user: user.into(),
        password: Secret::new(password),
        database: "sbtest".into(),
        ssl: Ssl::default(),
        connect_timeout: Duration::from_secs(20),
    }
}

fn socket(sandbox: &Sandbox, user: &str, password: &str) -> ConnectOptions {
    let address = Address::Socket(sandbox.socket.clone());
    ConnectOptions { address, ..tcp(sandbox, user, password) }
}

fn with_ssl(target: &ConnectOptions, mode: SslMode, ca: Option<&Path>) -> ConnectOptions {
    let ssl = Ssl { mode, ca: ca.map(Path::to_owned), ..Ssl::default() };
    ConnectOptions { ssl, ..target.clone() }
}

fn link(target: &ConnectOptions) -> Result<ServerLink> {
    ServerLink::to(target.clone(), &Stop::default())
}

/// What PREFERRED becomes.
fn settled(target: &ConnectOptions) -> ConnectOptions {
    run(reach(target, &Stop::default())).unwrap().target
}

/// The first row of a query, as text.
async fn ask_async(target: &ConnectOptions, sql: &str) -> Result<Vec<String>> {
    let mut session = Session::open(&link(target)?, None).await?;
    let row = session.query(sql).await.unwrap().remove(0);
    session.close(Duration::from_secs(5)).await;
    Ok(row.into_iter().map(Option::unwrap).collect())
}

fn ask(target: &ConnectOptions, sql: &str) -> Result<Vec<String>> {
    run(ask_async(target, sql))
}

/// Empty without encryption.
fn cipher(target: &ConnectOptions) -> Result<String> {
    ask(target, "SHOW SESSION STATUS LIKE 'Ssl_cipher'").map(|mut row| row.remove(1))
}

/// Whether it is MariaDB, and its version.
fn version(sandbox: &Sandbox) -> (bool, (u32, u32)) {
    let text = query(sandbox, "SELECT VERSION()").remove(0).remove(0);
    let mut numbers = text.split(['.', '-']).map_while(|part| part.parse().ok());
    (text.contains("MariaDB"), (numbers.next().unwrap(), numbers.next().unwrap()))
}

/// rustls and the library of an old server share no version of TLS.
fn speaks_tls(server: &Server, sandbox: &Sandbox, test: &str) -> bool {
    let (mariadb, version) = version(sandbox);
    let speaks = version >= if mariadb { (10, 4) } else { (8, 0) };
    if !speaks {
        skipped(test, &server.name, "its TLS is too old");
    }
    speaks
}

#[test]
fn accounts_log_in_over_every_transport() {
    let servers = servers();
    for name in ["mysql-8.0", "mysql-9.7"] {
        if !servers.iter().any(|server| server.name == name) {
            skipped("log-in", name, "not in LOADGEN_TEST_SERVERS");
        }
    }
    for server in servers {
        let certificates = Certificates::new();
        certificates.sign("good", "DNS:localhost", 2);
        certificates.install("good");
        let sandbox = sandbox(&server, &certificates.options());
        let (mariadb, version) = version(&sandbox);
        let mut plugins = Vec::new();
        if mariadb || version < (8, 0) {
            plugins.push(("native", "IDENTIFIED BY"));
        } else {
            plugins.push(("sha2", "IDENTIFIED WITH caching_sha2_password BY"));
            match version {
                (8, _) => plugins.push(("native", "IDENTIFIED WITH mysql_native_password BY")),
                _ => skipped("mysql_native_password", &server.name, "9.x has no such plugin"),
            }
        }
        if !plugins.iter().any(|(name, _)| *name == "sha2") {
            skipped("caching_sha2_password", &server.name, "it has no such plugin");
        }
        let tls = speaks_tls(&server, &sandbox, "log-in over TLS");
        for (name, by) in plugins {
            query_all(
                &sandbox,
                &[
                    format!("CREATE USER '{name}'@'%' {by} 'p@:/#ü'"),
                    format!("CREATE USER 'empty_{name}'@'%' {by} ''"),
                    format!("GRANT ALL ON sbtest.* TO '{name}'@'%'"),
                    format!("GRANT ALL ON sbtest.* TO 'empty_{name}'@'%'"),
                ],
            );
            let over_tcp = tcp(&sandbox, name, "p@:/#ü");
            // Leads to this host, and is no loopback address.
            let address = Address::Tcp { host: "0.0.0.0".to_owned(), port: sandbox.port };
            let elsewhere = ConnectOptions { address, ..over_tcp.clone() };
            assert_eq!(run(warned(&elsewhere)), name == "sha2", "{}", server.name);
            let mut targets = vec![over_tcp.clone(), socket(&sandbox, name, "p@:/#ü")];
            if tls {
                targets.push(with_ssl(&over_tcp, SslMode::Required, None));
            }
            for target in targets {
                assert!(!run(warned(&target)), "{} {target:?}", server.name);
                // Twice: caching_sha2_password takes another way while its cache is cold.
                for log_in in [logs_in, measured_logs_in] {
                    query_all(&sandbox, &["FLUSH PRIVILEGES".to_owned()]);
                    log_in(&server, &target);
                    log_in(&server, &target);
                }
                let wrong =
                    ConnectOptions { password: Secret::new("wrong-marker"), ..target.clone() };
                let error = ask(&wrong, "SELECT 1").unwrap_err();
                refused_without_the_secret(&error, "wrong-marker");
                let without = ConnectOptions { password: Secret::default(), ..target.clone() };
                assert!(ask(&without, "SELECT 1").unwrap_err().hints()[0].contains("-p"));
                let empty = ConnectOptions { user: format!("empty_{name}"), ..without };
                logs_in(&server, &empty);
            }
        }
    }
}

/// Whether the user is told that the password could be got.
async fn warned(target: &ConnectOptions) -> bool {
    let mut session = Session::open(&link(target).unwrap(), None).await.unwrap();
    server::exposure(&mut session, target).await.unwrap().is_some()
}

fn query_all(sandbox: &Sandbox, statements: &[String]) {
    for statement in statements {
        query(sandbox, statement);
    }
}

/// It is this account, over the transport and with the encryption that the target names, and
/// the driver asked the server nothing by itself.
fn logs_in(server: &Server, target: &ConnectOptions) {
    let fail = |e: Error| -> Vec<String> { panic!("{} {target}: {}", server.name, e.render()) };
    let user = ask(target, "SELECT CURRENT_USER()").unwrap_or_else(fail);
    assert_eq!(user, [format!("{}@%", target.user)], "{} {target:?}", server.name);
    let host =
        ask(target, "SELECT HOST FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()")
            .unwrap_or_else(fail);
    assert_eq!(host[0].contains(':'), target.transport() == "tcp", "{}: {host:?}", server.name);
    let encrypted = !cipher(target).unwrap().is_empty();
    assert_eq!(encrypted, target.ssl.mode != SslMode::Disabled, "{} {target:?}", server.name);
    let questions = ask(target, "SHOW SESSION STATUS LIKE 'Questions'").unwrap();
    // What own sessions set, and this one.
    assert_eq!(questions[1], "2", "{}: hidden queries", server.name);
}

/// The same for a session of a measured client.
fn measured_logs_in(server: &Server, target: &ConnectOptions) {
    run(async {
        let link = link(target).unwrap();
        let opened = LeanSession::open(&link, &Inbox::default(), None).await;
        let mut session = opened.unwrap_or_else(|e| panic!("{} {}", server.name, e.render()));
        session.run_text("SELECT CURRENT_USER()").await.unwrap();
        let user = format!("{}@%", target.user);
        assert_eq!(session.first(), Some(user.as_bytes()), "{} {target:?}", server.name);
    });
}

fn refused_without_the_secret(error: &Error, secret: &str) {
    assert_eq!(error.kind(), Kind::Server);
    let shown = format!("{}{error:?}", error.render());
    assert!(
        !shown.contains(secret) && shown.contains("1045") && !error.hints().is_empty(),
        "{shown}"
    );
}

struct Refusals {
    certificate: &'static str,
    by_authority: &'static str,
    by_identity: &'static str,
}

/// What becomes of each mode with each certificate, as MySQL documents them: the words of a refusal,
/// or none where the connection is encrypted. A name in the subject alone (CN) is MySQL's fallback,
/// and none of rustls': it is refused, not taken.
const MATRIX: [Refusals; 5] = [
    // VERIFY_CA, VERIFY_IDENTITY; REQUIRED and PREFERRED look at none of them.
    Refusals { certificate: "good", by_authority: "", by_identity: "" },
    Refusals {
        certificate: "self-signed",
        by_authority: "TLS (ssl-mode",
        by_identity: "TLS (ssl-mode",
    },
    Refusals { certificate: "wrong-name", by_authority: "", by_identity: "not valid for name" },
    Refusals { certificate: "cn-only", by_authority: "", by_identity: "not valid for any names" },
    Refusals { certificate: "expired", by_authority: "expired", by_identity: "expired" },
];

#[test]
fn each_ssl_mode_does_what_it_says() {
    for server in servers() {
        let certificates = Certificates::new();
        certificates.sign("good", "DNS:localhost", 2);
        certificates.sign("wrong-name", "DNS:elsewhere.example", 2);
        certificates.sign("cn-only", "", 2);
        certificates.sign("expired", "DNS:localhost", 0);
        certificates.sign("client", "", 2);
        certificates.self_sign("self-signed", "DNS:localhost");
        certificates.install("good");
        let sandbox = sandbox(&server, &certificates.options());
        if !speaks_tls(&server, &sandbox, "ssl modes") {
            continue;
        }
        let mariadb = version(&sandbox).0;
        let reload = if mariadb { "FLUSH SSL" } else { "ALTER INSTANCE RELOAD TLS" };
        let (ca, other) = (certificates.path("ca.pem"), certificates.path("other-ca.pem"));
        let by_ip = tcp(&sandbox, "root", "");
        let address = Address::Tcp { host: "localhost".into(), port: sandbox.port };
        let by_name = ConnectOptions { address, ..by_ip.clone() };
        let encrypts = |target: &ConnectOptions, mode, ca: Option<&Path>| {
            cipher(&with_ssl(target, mode, ca)).map(|cipher| !cipher.is_empty())
        };
        let refused = |target: &ConnectOptions, mode, ca: &Path| {
            encrypts(target, mode, Some(ca)).expect_err(&server.name).to_string()
        };
        for Refusals { certificate, by_authority, by_identity } in MATRIX {
            if certificate == "expired" {
                if !mariadb {
                    skipped("an expired certificate", &server.name, "it does not serve one");
                    continue;
                }
                std::thread::sleep(Duration::from_millis(1100));
            }
            certificates.install(certificate);
            query(&sandbox, reload);
            let name = format!("{}, {certificate}", server.name);
            assert!(!encrypts(&by_name, SslMode::Disabled, None).unwrap(), "{name}");
            assert!(encrypts(&by_name, SslMode::Required, None).unwrap(), "{name}");
            let preferred = with_ssl(&by_name, SslMode::Preferred, None);
            assert_eq!(settled(&preferred).ssl.mode, SslMode::Required, "{name}");
            for (mode, refusal) in
                [(SslMode::VerifyCa, by_authority), (SslMode::VerifyIdentity, by_identity)]
            {
                match (encrypts(&by_name, mode, Some(&ca)), refusal) {
                    (Ok(encrypted), "") => assert!(encrypted, "{name} {mode}"),
                    (Err(error), why) if !why.is_empty() => {
                        assert!(error.to_string().contains(why), "{name} {mode}: {error}");
                        assert_eq!(error.kind(), Kind::Server);
                    }
                    (seen, why) => panic!("{name} {mode}: {seen:?}, not '{why}'"),
                }
                // Signed by somebody else, whatever it says.
                let error = refused(&by_name, mode, &other);
                assert!(error.contains("TLS (ssl-mode"), "{name} {mode}: {error}");
            }
        }
        certificates.install("good");
        query(&sandbox, reload);
        assert!(encrypts(&by_ip, SslMode::VerifyCa, Some(&ca)).unwrap());
        let error = refused(&by_ip, SslMode::VerifyIdentity, &ca);
        assert!(error.contains("127.0.0.1") && error.contains("not valid for name"), "{error}");
        assert!(refused(&by_name, SslMode::VerifyCa, &other).contains("UnknownIssuer"));
        client_certificate(&certificates, &sandbox);
    }
}

fn client_certificate(certificates: &Certificates, sandbox: &Sandbox) {
    query_all(
        sandbox,
        &[
            "CREATE USER 'certified'@'%' REQUIRE X509".to_owned(),
            "GRANT ALL ON sbtest.* TO 'certified'@'%'".to_owned(),
        ],
    );
    let without = with_ssl(&tcp(sandbox, "certified", ""), SslMode::Required, None);
    assert!(ask(&without, "SELECT 1").unwrap_err().to_string().contains("1045"));
    let mut with = without.clone();
    with.ssl.cert = Some(certificates.path("client.pem"));
    with.ssl.key = Some(certificates.path("client.key"));
    assert!(!cipher(&with).unwrap().is_empty());
    with.ssl.key = Some(certificates.path("ca.key"));
    let error = ask(&with, "SELECT 1").unwrap_err();
    assert_eq!(error.kind(), Kind::Usage, "{error}");
}

/// The certificates that MySQL 8 and MariaDB 11.4 make for themselves encrypt; what verifies
/// them is known here for each, so that a change is noticed.
#[test]
fn certificates_that_servers_make_for_themselves() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        let (mariadb, version) = version(&sandbox);
        if version < if mariadb { (11, 4) } else { (8, 0) } {
            skipped("certificates of its own", &server.name, "it makes none");
            continue;
        }
        let target = tcp(&sandbox, "root", "");
        let tls = with_ssl(&target, SslMode::Required, None);
        let required = cipher(&tls).unwrap_or_else(|e| panic!("{}: {}", server.name, e.render()));
        assert!(!required.is_empty(), "{}", server.name);
        if !mariadb {
            let ca = sandbox.dir().join("data").join("ca.pem");
            let verified = cipher(&with_ssl(&target, SslMode::VerifyCa, Some(&ca)));
            assert!(!verified.unwrap_or_else(|e| panic!("{}", e.render())).is_empty());
            let error = cipher(&with_ssl(&target, SslMode::VerifyIdentity, Some(&ca))).unwrap_err();
            assert!(error.to_string().contains("not valid for"), "{error}");
        }
    }
}

#[test]
fn without_tls_only_preferred_falls_back() {
    let server = local();
    let sandbox = sandbox(&server, &[("skip-ssl", "1")]);
    let target = tcp(&sandbox, "root", "");
    let plain = settled(&with_ssl(&target, SslMode::Preferred, None));
    assert_eq!(plain.ssl.mode, SslMode::Disabled);
    assert_eq!(cipher(&plain).unwrap(), "");
    let error = cipher(&with_ssl(&target, SslMode::Required, None)).unwrap_err();
    assert_eq!(error.kind(), Kind::Server);
    assert!(error.hints()[0].contains("DISABLED"), "{error:?}");
    // Other failures are no reason to fall back.
    let wrong =
        ConnectOptions { user: "nobody".into(), ..with_ssl(&target, SslMode::Preferred, None) };
    assert!(ask(&settled(&wrong), "SELECT 1").is_err());
}

/// The options that a step opens all its connections with, again and again: none of them comes
/// about in plain text because the server, or whoever is in its place now, offers nothing else.
#[test]
fn a_required_run_never_falls_back() {
    let sandbox = sandbox(&local(), &[("skip-ssl", "1")]);
    let plain = tcp(&sandbox, "root", "");
    run(async {
        for mode in [SslMode::Required, SslMode::VerifyCa] {
            let ca = Path::new("/etc/ssl/certs/ca-certificates.crt");
            let ca = (mode == SslMode::VerifyCa && ca.exists()).then_some(ca);
            let target = with_ssl(&plain, mode, ca);
            let Ok(link) = link(&target) else { continue };
            for _ in 0..3 {
                let again = Session::open_again(&link, None).await;
                assert!(again.is_err(), "{mode}: in plain text");
            }
        }
        let opened = Session::open_again(&link(&plain).unwrap(), None).await;
        assert!(opened.is_ok(), "the server is there");
    });
}

#[test]
fn updates_report_the_rows_that_they_found() {
    let sandbox = sandbox(&local(), &[]);
    run(async {
        let link = link(&tcp(&sandbox, "root", "")).unwrap();
        let mut session = Session::open(&link, None).await.unwrap();
        session.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT)").await.unwrap();
        session.execute("INSERT INTO t VALUES (1, 1)").await.unwrap();
        for (sql, rows) in [
            ("UPDATE t SET k = k + 1 WHERE id = 1", 1),
            ("UPDATE t SET k = 2 WHERE id = 1", 1),
            ("UPDATE t SET k = 2 WHERE id = 2", 0),
        ] {
            assert_eq!(session.execute(sql).await.unwrap(), rows, "{sql}");
        }
    });
}

#[test]
fn errors_of_a_server_that_is_there_say_what_to_do() {
    let sandbox = sandbox(&local(), &[]);
    let target = tcp(&sandbox, "root", "");
    let missing = target.with_database("nowhere");
    let error = ask(&missing, "SELECT 1").unwrap_err();
    assert!(error.to_string().contains("1049"), "{error}");
    assert!(error.hints()[0].contains("CREATE DATABASE `nowhere`"), "{error:?}");
    assert_eq!(
        ask(&target.with_database(""), "SELECT IFNULL(DATABASE(), 'none')").unwrap(),
        ["none"]
    );

    let stopped = {
        let address = Address::Socket(sandbox.socket.clone());
        drop(sandbox);
        ConnectOptions { address, password: Secret::new("marker"), ..target }
    };
    let error = ask(&stopped, "SELECT 1").unwrap_err();
    assert_eq!(error.kind(), Kind::Server);
    assert!(!format!("{error:?}").contains("marker") && !error.hints().is_empty(), "{error:?}");
}

struct Line<'a> {
    args: Vec<&'a str>,
    mode: u32,
    user: &'a str,
    transport: &'a str,
    warnings: usize,
}

#[test]
fn from_the_command_line_to_a_session() {
    let sandbox = sandbox(&local(), &[]);
    query_all(
        &sandbox,
        &[
            "CREATE USER 'filed'@'%' IDENTIFIED BY 'p;w#\\\"'".to_owned(),
            "GRANT ALL ON sbtest.* TO 'filed'@'%'".to_owned(),
        ],
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.cnf");
    let (path, socket) = (file.to_str().unwrap(), sandbox.socket.to_str().unwrap());
    let text = format!("[client]\nsocket={socket}\nuser=filed\npassword='p;w#\\\"' # of filed\n");
    std::fs::write(&file, text).unwrap();
    let port = sandbox.port;
    let url = format!("mysql://filed:p%3Bw%23%22@127.0.0.1:{port}/sbtest");
    for Line { args, mode, user, transport, warnings } in [
        Line {
            args: vec!["--defaults-file", path],
            mode: 0o600,
            user: "filed@%",
            transport: "socket",
            warnings: 0,
        },
        Line {
            args: vec!["--defaults-file", path],
            mode: 0o644,
            user: "filed@%",
            transport: "socket",
            warnings: 1,
        },
        Line {
            args: vec!["--defaults-file", path, "-S", socket, "-u", "root", "--password="],
            mode: 0o600,
            user: "root@",
            transport: "socket",
            warnings: 0,
        },
        Line {
            args: vec!["--defaults-file", path, "-S", socket, "-u", "root"],
            mode: 0o666,
            user: "root@",
            transport: "socket",
            warnings: 1,
        },
        Line {
            args: vec!["--no-defaults", "--url", &url],
            mode: 0o600,
            user: "filed@%",
            transport: "tcp",
            warnings: 0,
        },
        Line {
            args: vec!["--no-defaults", "--url", &url, "-S", socket],
            mode: 0o600,
            user: "filed@%",
            transport: "socket",
            warnings: 0,
        },
    ] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let command = help_without_h(ConnectionArgs::augment_args(clap::Command::new("x")));
        let matches = command.get_matches_from([&["x"], &args[..]].concat());
        let parsed = ConnectionArgs::from_arg_matches(&matches).unwrap();
        let resolved = resolve::resolve(&parsed, &Env::real());
        let resolve::Resolved { target, warnings: warned, .. } =
            resolved.unwrap_or_else(|e| panic!("{args:?}: {e}"));
        assert_eq!(warned.len(), warnings, "{args:?} {warned:?}");
        assert_eq!(target.transport(), transport, "{args:?}");
        let current =
            ask(&target, "SELECT CURRENT_USER()").unwrap_or_else(|e| panic!("{args:?}: {e}"));
        assert!(current[0].starts_with(user), "{args:?}: {current:?}");
    }
}
