//! The driver's traps (docs/dev/driver.md): each is provoked, and our session is shown to avoid it.
//!
//! Where the driver itself is asked, the test says what it does today; when a new version
//! behaves, that test fails and the page needs an update.

use std::time::{Duration, Instant};

use crate::common::databases::run;
use crate::common::sessions::{
    execute, link, measured, on, open, own_table, root, run_prepared, socket, target, tcp,
};
use crate::common::{local, sandbox, servers};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use loadgen::canned::{Action, Answer, At, Canned, Fault, Listen, Script};
use loadgen::error::Kind;
use loadgen::mysql::options::{ConnectOptions, Secret};
use loadgen::mysql::session::{Failure, ServerLink, Session};
use loadgen::mysql::wire::{Inbox, LeanSession};
use loadgen::stop::Stop;
use loadgen::workload::table::State;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder};

fn canned(script: Script) -> Canned {
    Canned::start(script, Listen::Port(0)).unwrap()
}

fn with_fault(at: At, action: Action) -> Canned {
    canned(Script { faults: vec![Fault::new(at, action)], ..Script::default() })
}

fn to(server: &Canned) -> ConnectOptions {
    target(tcp(server.port()), "root", "sbtest")
}

/// The driver as it is when nobody states its options.
fn careless(port: u16) -> Opts {
    OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(port).user(Some("root")).into()
}

/// Waits no longer than that; what is dropped then is the subject of the test.
#[expect(clippy::disallowed_methods, reason = "the trap itself")]
async fn give_up<T>(after: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(after, future).await.ok()
}

async fn one(session: &mut Session, sql: &str) -> String {
    let rows = session.query(sql).await.unwrap_or_else(|failure| panic!("{sql}: {failure}"));
    rows[0][0].clone().unwrap()
}

/// Gives up on an answer once the server was asked and is silent.
async fn give_up_unanswered<T>(server: &Canned, future: impl Future<Output = T>) {
    let asked = async {
        while server.counts().faults == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        biased;
        () = asked => {}
        _ = future => panic!("the server stalls"),
    }
}

fn is_lost<T: std::fmt::Debug>(outcome: &Result<T, Failure>) {
    assert!(matches!(outcome, Err(Failure::Lost(_))), "{outcome:?}");
}

#[test]
fn an_answer_given_up_on_never_answers_the_next_question() {
    let stalling = || {
        canned(Script {
            answers: vec![Answer::value("111", "a", "111"), Answer::value("222", "a", "222")],
            faults: vec![
                Fault::new(At::Statement(1), Action::Stall(Duration::from_secs(2))).only("111"),
            ],
            ..Script::default()
        })
    };
    run(async {
        let server = stalling();
        let mut conn = Conn::new(to(&server).opts(None).unwrap()).await.unwrap();
        give_up_unanswered(&server, conn.query_first::<String, _>("SELECT 111")).await;
        let answer: Option<String> = conn.query_first("SELECT 222").await.unwrap();
        assert_eq!(answer.as_deref(), Some("111"), "the driver is off by one answer");

        let server = stalling();
        let mut session = open(&to(&server)).await;
        give_up_unanswered(&server, session.query("SELECT 111")).await;
        is_lost(&session.query("SELECT 222").await);

        let server = stalling();
        let mut session = measured(&to(&server)).await;
        give_up_unanswered(&server, session.run_text("SELECT 111")).await;
        assert!(!session.is_usable());
        is_lost(&session.run_text("SELECT 222").await);
        is_lost(&session.prepare("SELECT 222").await);
        let mut session = measured(&to(&server)).await;
        let id = session.prepare("SELECT 222").await.unwrap();
        assert_eq!(run_prepared(&mut session, id, &[]).await.unwrap().rows, 1);
    });
}

#[test]
fn a_connection_stays_where_it_was_asked_to_go() {
    let real = sandbox(&local(), &[]);
    let path = real.socket.to_str().unwrap().to_owned();
    let columns = ["@@max_allowed_packet", "@@wait_timeout", "@@socket"];
    let row: [Option<&str>; 3] = [Some("16777216"), Some("28800"), Some(&path)];
    let elsewhere = canned(Script {
        answers: vec![
            Answer::rows("@@socket", &columns, &[&row]),
            Answer::value("VERSION()", "v", "8.4.0"),
        ],
        ..Script::default()
    });
    run(async {
        let mut conn = Conn::new(careless(elsewhere.port())).await.unwrap();
        let version: Option<String> = conn.query_first("SELECT VERSION()").await.unwrap();
        assert!(version.unwrap().contains("MariaDB"), "the driver went to the local socket");

        let asked = elsewhere.counts().queries;
        let mut session = open(&to(&elsewhere)).await;
        assert_eq!(elsewhere.counts().queries, asked + 1, "its settings, and no hidden query");
        assert_eq!(one(&mut session, "SELECT VERSION()").await, "8.4.0");
    });
}

#[test]
fn forty_statements_of_a_measured_session_all_run() {
    let real = sandbox(&local(), &[]);
    run(async {
        let mut session = measured(&target(socket(&real.socket), "root", "")).await;
        let mut ids = Vec::new();
        for n in 0..40 {
            ids.push((n, session.prepare(&format!("SELECT {n}")).await.unwrap()));
        }
        for (n, id) in ids {
            assert_eq!(run_prepared(&mut session, id, &[]).await.unwrap().rows, 1);
            assert_eq!(session.number(), Some(n));
        }
    });
}

const LOAD: &str = "LOAD DATA LOCAL INFILE 'x' INTO TABLE sbtest1 (id, k, c, pad)";

fn lines(ids: std::ops::RangeInclusive<u32>) -> Bytes {
    ids.fold(String::new(), |text, id| text + &format!("{id}\t1\tc\tp\n")).into()
}

/// Asks until the answer is as expected.
async fn becomes(session: &mut Session, sql: &str, expected: &str) {
    let began = Instant::now();
    loop {
        let seen = one(session, sql).await;
        if seen == expected {
            return;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{sql}: {seen}, not {expected}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Counts what other transactions have not committed, too, until it is as expected.
async fn rows_become(session: &mut Session, expected: &str) {
    let dirty = "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED";
    execute(session, &[dirty]).await;
    becomes(session, "SELECT COUNT(*) FROM sbtest1", expected).await;
}

#[test]
fn a_load_that_is_given_up_leaves_nothing() {
    for server in servers() {
        let real = sandbox(&server, &[]);
        on(&server.name, &real.version);
        run(async {
            let mut control = root(&real.socket, "sbtest").await;
            execute(&mut control, &["SET GLOBAL local_infile = 1"]).await;
            own_table(&mut control, 1, 1, State::Filling).await;

            let broken = [Ok(lines(1..=500)), Err(std::io::Error::other("no more"))];
            let session = root(&real.socket, "sbtest").await;
            let outcome = session.load_data(LOAD, stream::iter(broken).boxed()).await;
            assert!(outcome.is_err(), "the stream broke");
            rows_become(&mut control, "500").await;
            execute(&mut control, &["COMMIT", "DELETE FROM sbtest1"]).await;

            let endless = stream::iter([Ok(lines(1..=500))]).chain(stream::pending()).boxed();
            let session = root(&real.socket, "sbtest").await;
            let mut load = Box::pin(session.load_data(LOAD, endless));
            tokio::select! {
                _ = &mut load => panic!("the stream has no end"),
                () = rows_become(&mut control, "500") => {}
            }
            drop(load);
            rows_become(&mut control, "0").await;
        });
    }
}

#[test]
fn a_server_gets_no_file_that_it_was_not_promised() {
    let curious = || {
        canned(Script {
            answers: vec![Answer::local_infile("t9", "/etc/passwd")],
            ..Script::default()
        })
    };
    run(async {
        let server = curious();
        let mut conn = Conn::new(to(&server).opts(None).unwrap()).await.unwrap();
        conn.set_infile_handler(async { Ok(stream::iter([Ok(lines(1..=1))]).boxed()) });
        assert!(matches!(conn.query_drop("LOAD DATA refused").await, Err(Error::Server(_))));
        conn.query_drop("SELECT c FROM t9").await.unwrap();
        assert!(server.counts().local_bytes > 0, "the driver's handler stays armed");

        // Ours is consumed by a refused load; another session has no handler at all.
        let server = curious();
        let session = open(&to(&server)).await;
        let refused = session.load_data(LOAD, stream::iter([Ok(lines(1..=1))]).boxed()).await;
        assert!(matches!(refused.err(), Some(Failure::Server { code: 3948, .. })));
        let mut session = open(&to(&server)).await;
        is_lost(&session.query("SELECT c FROM t9").await);
        assert_eq!(server.counts().local_bytes, 0);
    });
}

#[test]
fn a_hostile_login_is_an_error_and_the_process_lives() {
    let panics = [
        Action::KeyExchange(b"", Vec::new()),
        Action::KeyExchange(&[b'n'; 20], Vec::new()),
        Action::KeyExchange(&[b'n'; 20], b"\x01no key".to_vec()),
    ];
    let others = [
        Action::Garbage(Vec::new()),
        Action::HangAtAuth,
        Action::Garbage(vec![0xff; 64]),
        Action::Garbage(vec![1, 0, 0, 0, 10]),
        Action::HalfPacketThenClose,
        // Of protocol 9 (servers before 3.21).
        Action::Garbage(b"\x17\0\0\0\x093.20.32a\0\x01\0\0\0scramble\0".to_vec()),
        Action::Reset,
    ];
    run(async {
        for (i, action) in panics.into_iter().chain(others).enumerate() {
            let server = with_fault(At::Connect(2), action.clone());
            let mut target = to(&server);
            target.password = Secret::new("marker-pw");
            open(&target).await.close(Duration::from_secs(1)).await;
            // What hangs is waited for; the others have their time on a busy machine, too.
            let hurried =
                ConnectOptions { connect_timeout: Duration::from_millis(500), ..target.clone() };
            let link = ServerLink::to(hurried, &Stop::default()).unwrap();
            let error = Session::open(&link, None).await.err().expect("hostile");
            assert_eq!(error.kind(), Kind::Server, "{action:?}");
            assert!(!format!("{error:?}{}", error.render()).contains("marker-pw"), "{action:?}");
            open(&target).await;
            if i < 3 {
                let server = with_fault(At::Connect(1), action.clone());
                target.address = to(&server).address;
                let driver = tokio::spawn(Conn::new(target.opts(None).unwrap())).await;
                assert!(driver.is_err_and(|e| e.is_panic()), "{action:?}: the driver panics");
            }
        }
    });
}

#[test]
fn a_hostile_answer_ends_the_session() {
    let broken = [
        Action::Garbage(vec![0xff; 64]),
        Action::Garbage(vec![5, 0, 0, 1, 1, 2, 3, 4, 5]),
        Action::WrongLength(7),
        Action::WrongLength(-1),
        Action::WrongSequence,
        Action::HalfPacketThenClose,
        Action::Close,
        Action::Reset,
    ];
    run(async {
        for action in broken {
            // The first statement sets what own sessions need.
            let server = with_fault(At::Statement(2), action.clone());
            let mut session = open(&to(&server)).await;
            let outcome = give_up(Duration::from_secs(1), session.query("SELECT c FROM t")).await;
            // A length that is too large leaves the driver waiting: the watchdog's case.
            assert!(!matches!(outcome, Some(Ok(_))), "{action:?}: {outcome:?}");
            is_lost(&session.query("SELECT c FROM t").await);
        }
        let two = b"\x07\0\0\x01\0\0\0\x02\0\0\0\x07\0\0\x02\0\0\0\x02\0\0\0".to_vec();
        let server = with_fault(At::Statement(2), Action::Garbage(two));
        let mut session = open(&to(&server)).await;
        session.query("SELECT c FROM t").await.expect("an OK");
        is_lost(&session.query("SELECT c FROM t").await);
    });
}

#[test]
fn the_server_goes_on_with_what_its_client_gave_up() {
    let real = sandbox(&local(), &[]);
    run(async {
        let mut control = root(&real.socket, "sbtest").await;
        own_table(&mut control, 1, 1, State::Ready).await;
        let mut holder = root(&real.socket, "sbtest").await;
        let lock = ["START TRANSACTION", "SELECT k FROM sbtest1 WHERE id = 1 FOR UPDATE"];
        execute(&mut holder, &lock).await;
        let mut session = root(&real.socket, "sbtest").await;
        let kept_waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                            WHERE INFO LIKE 'UPDATE sbtest1%'";
        tokio::select! {
            _ = session.execute("UPDATE sbtest1 SET k = k + 1 WHERE id = 1") => panic!("locked"),
            () = becomes(&mut control, kept_waiting, "1") => {}
        }
        drop(session);
        assert_eq!(one(&mut control, "SELECT k FROM sbtest1").await, "1");
        execute(&mut holder, &["ROLLBACK"]).await;
        // If the update did not happen, it would not have to be counted as in doubt.
        becomes(&mut control, "SELECT k FROM sbtest1", "2").await;
    });
}

#[test]
fn sessions_are_what_they_claim_on_every_server() {
    for server in servers() {
        let real = sandbox(&server, &[]);
        on(&server.name, &real.version);
        run(async {
            let address = target(tcp(real.port), "root", "sbtest");
            let mut session = open(&address).await;
            own_table(&mut session, 1, 10, State::Ready).await;
            // An unchanged value is a row found, not a row changed.
            let same = "UPDATE sbtest1 SET k = k WHERE id = 1";
            assert_eq!(session.execute(same).await.unwrap(), 1);
            let mut client = measured(&address).await;
            assert_eq!(client.run_text(same).await.unwrap().affected, 1);
            let several = client.run_text("DO 1; DO 2").await;
            assert!(matches!(several, Err(Failure::Server { code: 1064, .. })), "{several:?}");
            assert_eq!(one(&mut session, "SELECT @@session.autocommit").await, "1");

            // The negotiated features cannot be asked for, but the driver's Debug shows them.
            let conn = Conn::new(address.opts(None).unwrap()).await.unwrap();
            let negotiated = format!("{conn:?}");
            let shorter = client.capabilities() == ["deprecate_eof"];
            assert_eq!(shorter, negotiated.contains("CLIENT_DEPRECATE_EOF"), "{negotiated}");

            let charset = "SELECT @@character_set_client";
            assert!(one(&mut session, charset).await.starts_with("utf8"));
            let link = link(&address);
            let mut latin = Session::open(&link, Some("latin1")).await.unwrap();
            assert_eq!(one(&mut latin, charset).await, "latin1");
            let unknown = Session::open(&link, Some("klingon")).await;
            assert!(unknown.err().unwrap().to_string().contains("--charset klingon"));
            let inbox = Inbox::default();
            let mut latin = LeanSession::open(&link, &inbox, Some("latin1")).await.unwrap();
            latin.run_text(charset).await.unwrap();
            assert_eq!(latin.first(), Some(b"latin1".as_slice()));
            let unknown = LeanSession::open(&link, &inbox, Some("klingon")).await;
            assert!(unknown.err().unwrap().to_string().contains("--charset klingon"));
        });
    }
}

#[test]
fn only_the_driver_prints_passwords() {
    let mut target = target(tcp(3306), "root", "sbtest");
    target.password = Secret::new("marker-pw");
    assert!(format!("{:?}", target.opts(None).unwrap()).contains("marker-pw"));
    assert!(!format!("{target:?} {target}").contains("marker-pw"));
}
