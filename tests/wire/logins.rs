//! Log-ins of measured sessions, as mysql_async has them: every kind of account over every transport,
//! caches that are cold, nonces by the thousand, a server that comes back.

use std::time::Duration;

use loadgen::mysql::options::{ConnectOptions, Secret, Ssl, SslMode};
use loadgen::mysql::session::{Failure, Session, reach};
use loadgen::mysql::wire::{Inbox, LeanSession};
use loadgen::sandbox::Sandbox;
use loadgen::stop::Stop;
use nix::sys::signal::Signal;

use crate::common::certificates::Certificates;
use crate::common::databases::{everywhere, run};
use crate::common::proxy::Proxy;
use crate::common::restarting::{Restarting, until};
use crate::common::sessions::{link, measured, on, socket, target, tcp};
use crate::common::{at_once, local, query, sandbox, servers, skipped, try_query};

/// Longer than a nonce, by which servers hide it.
const PASSWORD: &str = "p@:/#ü and twenty more bytes than there are in a nonce";

/// MySQL since 8.0, which has other kinds of accounts.
fn is_mysql_8(server: &Sandbox) -> bool {
    server.version.starts_with(['8', '9'])
}

/// Makes accounts of every kind that the server has, one of each without a password; their names.
fn accounts(server: &Sandbox) -> Vec<&'static str> {
    let kinds = if is_mysql_8(server) {
        vec![
            ("native", "WITH mysql_native_password"),
            ("sha2", "WITH caching_sha2_password"),
            ("sha256", "WITH sha256_password"),
        ]
    } else {
        vec![("native", "")]
    };
    let mut made = Vec::new();
    for (name, with) in kinds {
        let create = |user: &str, password: &str| {
            try_query(
                server,
                &format!("CREATE USER '{user}'@'%' IDENTIFIED {with} BY '{password}'"),
            )
        };
        match create(name, PASSWORD).and_then(|_| create(&format!("{name}_empty"), "")) {
            Ok(_) => made.push(name),
            Err(error) => skipped(&format!("{name} on {}: {error}", server.version)),
        }
    }
    made
}

fn with(target: &ConnectOptions, user: &str, password: &str) -> ConnectOptions {
    ConnectOptions { user: user.into(), password: Secret::new(password), ..target.clone() }
}

/// The account that a measured session gets into, or the error as users see it.
async fn ours(target: &ConnectOptions) -> Result<String, String> {
    let opened = LeanSession::open(&link(target), &Inbox::default(), None).await;
    let mut session = opened.map_err(|error| error.render())?;
    session.run_text("SELECT CURRENT_USER()").await.expect("an answer");
    Ok(String::from_utf8(session.first().expect("a name").to_vec()).expect("a name"))
}

/// The same of mysql_async.
async fn theirs(target: &ConnectOptions) -> Result<String, String> {
    let opened = Session::open(&link(target), None).await;
    let mut session = opened.map_err(|error| error.render())?;
    let rows = session.query("SELECT CURRENT_USER()").await.expect("an answer");
    Ok(rows[0][0].clone().expect("a name"))
}

/// Plain TCP, a socket, and TLS where we speak what the server does.
fn transports(server: &Sandbox) -> Vec<ConnectOptions> {
    let plain = target(tcp(server.port), "root", "");
    let ssl = Ssl { mode: SslMode::Required, ..Ssl::default() };
    let tls = ConnectOptions { ssl, ..plain.clone() };
    let (ours, theirs) = run(async { (ours(&tls).await, theirs(&tls).await) });
    assert_eq!(ours.is_ok(), theirs.is_ok(), "{ours:?} {theirs:?}");
    let mut all = vec![plain, target(socket(&server.socket), "root", "")];
    match ours {
        Ok(_) => all.push(tls),
        Err(error) => skipped(&format!("TLS on {}: {error}", server.version)),
    }
    all
}

#[test]
fn accounts_of_every_kind_get_in_and_are_refused_as_through_mysql_async() {
    for server in servers() {
        let certificates = Certificates::new();
        certificates.sign("good", "DNS:localhost", 2);
        certificates.install("good");
        let sandbox = sandbox(&server, &certificates.options());
        on(&server.name, &sandbox.version);
        let accounts = accounts(&sandbox);
        let by = format!("IDENTIFIED BY '{PASSWORD}'");
        let locks =
            try_query(&sandbox, &format!("CREATE USER locked@'%' {by} ACCOUNT LOCK")).is_ok();
        for to in transports(&sandbox) {
            for &name in &accounts {
                let account = with(&to, name, PASSWORD);
                let is_in = Ok(format!("{name}@%"));
                for driver in [false, true] {
                    // The second one finds the password in the server's cache.
                    query(&sandbox, "FLUSH PRIVILEGES");
                    for _ in 0..2 {
                        let got = if driver { run(theirs(&account)) } else { run(ours(&account)) };
                        assert_eq!(got, is_in, "{account:?}");
                    }
                }
                let empty = with(&to, &format!("{name}_empty"), "");
                assert_eq!(run(ours(&empty)), Ok(format!("{name}_empty@%")), "{empty:?}");
                for (refused, code) in [
                    (with(&to, name, "wrong"), "1045"),
                    (with(&to, name, ""), "1045"),
                    (with(&empty, &empty.user, "wrong"), "1045"),
                    (account.with_database("nowhere"), "1044"),
                ] {
                    is_refused(&refused, code);
                }
            }
            is_refused(&to.with_database("nowhere"), "1049");
            // MySQL makes up which plugin an account has that is not there.
            for n in 0..16 {
                is_refused(&with(&to, &format!("nobody{n}"), PASSWORD), "1045");
            }
            if locks {
                let code = if is_mysql_8(&sandbox) { "3118" } else { "4151" };
                is_refused(&with(&to, "locked", PASSWORD), code);
            }
        }
        if is_mysql_8(&sandbox) {
            let ssl = Ssl { mode: SslMode::Preferred, ..Ssl::default() };
            for n in 0..16 {
                let nobody = format!("nobody{n}");
                let nobody =
                    ConnectOptions { ssl: ssl.clone(), ..target(tcp(sandbox.port), &nobody, "") };
                let settled = run(reach(&nobody, &Stop::default()));
                assert!(settled.err().expect("nobody").to_string().contains("1045"));
            }
        }
    }
}

/// Both are told the same.
fn is_refused(target: &ConnectOptions, code: &str) {
    let ours = run(ours(target)).expect_err("refused");
    assert!(ours.contains(&format!("({code})")) && !ours.contains(PASSWORD), "{target:?}: {ours}");
    assert_eq!(Err(ours), run(theirs(target)), "{target:?}");
}

/// An account of MariaDB's, whose methods have passwords of their own.
struct Account {
    name: &'static str,
    /// The file with its plugin, where that is not built in.
    library: Option<&'static str>,
    via: &'static str,
    passwords: &'static [&'static str],
}

const METHODS: [Account; 7] = [
    Account {
        name: "ed25519",
        library: Some("auth_ed25519"),
        via: "ed25519 USING PASSWORD('one')",
        passwords: &["one"],
    },
    Account {
        name: "ed25519_native",
        library: Some("auth_ed25519"),
        via: "ed25519 USING PASSWORD('one') OR mysql_native_password USING PASSWORD('two')",
        passwords: &["one", "two"],
    },
    Account {
        name: "parsec",
        library: Some("auth_parsec"),
        via: "parsec USING PASSWORD('one')",
        passwords: &["one"],
    },
    Account {
        name: "parsec_native",
        library: Some("auth_parsec"),
        via: "parsec USING PASSWORD('one') OR mysql_native_password USING PASSWORD('two')",
        passwords: &["one", "two"],
    },
    Account {
        name: "old_native",
        library: None,
        via: "mysql_old_password USING '0123456789abcdef' \
              OR mysql_native_password USING PASSWORD('two')",
        passwords: &["two"],
    },
    Account {
        name: "native_twice",
        library: None,
        via: "mysql_native_password USING PASSWORD('one') \
              OR mysql_native_password USING PASSWORD('two')",
        passwords: &["one", "two"],
    },
    Account {
        name: "socket_native",
        library: None,
        via: "unix_socket OR mysql_native_password USING PASSWORD('two')",
        passwords: &["two"],
    },
];

#[test]
fn accounts_of_several_methods_get_in_when_one_of_them_does() {
    for server in servers() {
        let certificates = Certificates::new();
        certificates.sign("good", "DNS:localhost", 2);
        certificates.install("good");
        // Of this machine's server: its package of plugins may not be installed.
        let plugins = std::env::var("LOADGEN_TEST_PLUGINS").unwrap_or_default();
        let mut options = certificates.options().to_vec();
        if server.name == local().name && !plugins.is_empty() {
            options.push(("plugin-dir", &plugins));
        }
        let sandbox = sandbox(&server, &options);
        on(&server.name, &sandbox.version);
        let to = transports(&sandbox);
        for Account { name, library, via, passwords } in METHODS {
            let loaded = library.map_or(Ok(Vec::new()), |library| {
                let sql = format!("INSTALL SONAME '{library}'");
                let known = try_query(&sandbox, &sql);
                known.or_else(|error| {
                    if error.to_string().contains("1968") { Ok(Vec::new()) } else { Err(error) }
                })
            });
            let create = format!("CREATE USER {name}@'%' IDENTIFIED VIA {via}");
            if let Err(error) = loaded.and_then(|_| try_query(&sandbox, &create)) {
                skipped(&format!("{name} on {}: {error}", sandbox.version));
                continue;
            }
            for to in &to {
                // MariaDB 11.8 loses the connection where parsec fails over TLS and another method follows;
                // its own client sees that, too.
                let breaks = name == "parsec_native" && to.ssl.mode != SslMode::Disabled;
                for password in &passwords[..if breaks { 1 } else { passwords.len() }] {
                    let account = with(to, name, password);
                    let is_in = Ok(format!("{name}@%"));
                    assert_eq!(run(ours(&account)), is_in, "{account:?}");
                    assert_eq!(run(theirs(&account)), is_in, "{account:?}");
                }
                if breaks {
                    continue;
                }
                is_refused(&with(to, name, "wrong"), "1045");
            }
        }
    }
}

/// A session that we log in for the driver takes and gives as much as others do.
#[test]
fn a_session_of_a_second_method_carries_large_answers_and_opens_again() {
    let sandbox = sandbox(&local(), &[]);
    let Account { name, via, passwords, .. } = &METHODS[4];
    query(&sandbox, &format!("CREATE USER {name}@'%' IDENTIFIED VIA {via}"));
    let link = link(&with(&target(socket(&sandbox.socket), "", ""), name, passwords[0]));
    run(async {
        let mut session = Session::open(&link, None).await.unwrap_or_else(|e| panic!("{e}"));
        for _ in 0..2 {
            let text = "x".repeat(3_000_000);
            let rows =
                session.query(&format!("SELECT '{text}', CURRENT_USER()")).await.expect("a row");
            assert_eq!(rows, [[Some(text), Some(format!("{name}@%"))]]);
            let refused = session.query("SELECT nothing").await;
            assert!(matches!(refused, Err(Failure::Server { code: 1054, .. })), "{refused:?}");
            session.close(Duration::from_mins(1)).await;
            session = Session::open_again(&link, None).await.expect("a log-in");
        }
        let root = target(socket(&sandbox.socket), "root", "");
        let mut root =
            Session::open(&crate::common::sessions::link(&root), None).await.expect("a log-in");
        root.execute(format!("KILL {}", session.id())).await.expect("killed");
        assert!(matches!(
            session.query("SELECT 1").await,
            Err(Failure::Lost(_) | Failure::Server { code: 1927, .. })
        ));
        session.close(Duration::from_mins(1)).await;
        root.close(Duration::from_mins(1)).await;
    });
    let aborted = query(&sandbox, "SHOW GLOBAL STATUS LIKE 'Aborted_clients'");
    assert_eq!(aborted[0][1], "1", "only who was killed did not say goodbye");
}

#[test]
fn a_thousand_nonces_let_in_when_the_password_is_right() {
    everywhere(|db| {
        for name in accounts(db.sandbox) {
            let account = with(&target(socket(&db.sandbox.socket), "", ""), name, PASSWORD);
            // Each of these computes with RSA.
            let log_ins = if name == "sha256" { 20 } else { 1000 };
            run(async {
                let (link, inbox, mut opened) = (link(&account), Inbox::default(), 0);
                while opened < log_ins {
                    match LeanSession::open_again(&link, &inbox, None).await {
                        Ok(session) => {
                            opened += 1;
                            session.close(Duration::from_secs(1)).await;
                        }
                        // The server is behind with the ends of those before.
                        Err(Failure::Server { code: 1040, .. }) => {
                            tokio::time::sleep(Duration::from_millis(10)).await;
                        }
                        Err(failure) => panic!("{name}, log-in {opened}: {failure}"),
                    }
                }
            });
            if name != "sha2" {
                continue;
            }
            let way = Proxy::to(db.sandbox.port);
            let account = ConnectOptions { address: tcp(way.port), ..account };
            for _ in 0..20 {
                query(db.sandbox, "FLUSH PRIVILEGES");
                let [cold, cached] = [(), ()].map(|()| {
                    let before = way.seen().1;
                    run(measured(&account));
                    way.seen().1 - before
                });
                // The password, sealed with a key of 2,048 bits, and the question for that key.
                assert_eq!(cold - cached, 4 + 256 + 4 + 1);
            }
        }
    });
}

#[test]
fn a_session_is_told_of_a_shutdown_and_opens_again_when_the_server_is_back() {
    at_once(|server| {
        let mut server = Restarting::new(sandbox(server, &[]));
        let way = Proxy::to(server.sandbox.port);
        for name in accounts(&server.sandbox) {
            way.lay(server.sandbox.port);
            let link = link(&with(&target(tcp(way.port), "", ""), name, PASSWORD));
            let inbox = Inbox::default();
            run(async {
                let opened = LeanSession::open_again(&link, &inbox, None).await;
                let mut session = opened.expect("a log-in");
                server.signal(Signal::SIGTERM);
                until("the session's end", || way.ended() == 1);
                tokio::time::sleep(Duration::from_millis(10)).await;
                let said = way.seen();
                match session.run_text("SELECT 1").await {
                    Err(Failure::Lost(loss)) => {
                        assert_eq!(loss.why, "the server closed the connection");
                    }
                    Err(Failure::Server { code, .. }) => {
                        assert!(matches!(code, 1053 | 1927), "{code}");
                    }
                    Ok(_) => panic!("{name}: an answer of a server that has ended"),
                }
                assert_eq!(way.seen(), said, "{name}: it was sent all the same");
                assert!(!session.is_usable());
                server.kill();
                server.start();
                until("the server", || server.answers());
                let mut session = loop {
                    match LeanSession::open_again(&link, &inbox, None).await {
                        Ok(session) => break session,
                        Err(Failure::Lost(_)) => {
                            tokio::time::sleep(Duration::from_millis(10)).await;
                        }
                        Err(refused) => panic!("{name}: {refused}"),
                    }
                };
                session.run_text("SELECT CURRENT_USER()").await.expect("an answer");
                assert_eq!(session.first(), Some(format!("{name}@%").as_bytes()));
            });
        }
    });
}
