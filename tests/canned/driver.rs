//! The driver against the canned server: what works, and that no fault hangs the test.

use std::future::Future;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use loadgen::canned::{Action, Answer, At, Auth, Canned, Fault, Listen, Row, Script};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, OptsBuilder};

const SELECT: &str = "SELECT c FROM sbtest1 WHERE id=?";
const UPDATE: &str = "UPDATE sbtest1 SET k=k+1 WHERE id=?";

fn start(script: Script) -> Canned {
    Canned::start(script, Listen::Port(0)).unwrap()
}

fn options(server: &Canned) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(server.port())
        .user(Some("x"))
        .pass(Some("any"))
        .prefer_socket(false)
        .max_allowed_packet(Some(1 << 20))
        .wait_timeout(Some(28_800))
        .stmt_cache_size(0)
}

async fn connect(server: &Canned) -> Conn {
    Conn::new(options(server)).await.unwrap()
}

/// Bounds what the driver does; what is cut off is never used again. What is to end may take its
/// time on a busy machine.
#[expect(clippy::disallowed_methods, reason = "the connection is dropped with the future")]
async fn within<T>(ends: bool, work: impl Future<Output = T>) -> Option<T> {
    let limit = Duration::from_secs(if ends { 60 } else { 2 });
    tokio::time::timeout(limit, work).await.ok()
}

fn content() -> String {
    String::from_utf8(Row::default().content).unwrap()
}

#[tokio::test]
async fn selects_and_updates_of_both_protocols() {
    for deprecate_eof in [false, true] {
        let server = start(Script { deprecate_eof, ..Script::default() });
        let mut conn = connect(&server).await;
        assert_eq!(conn.server_version(), (8, 0, 0));
        let c: Vec<String> = conn.query("SELECT c FROM sbtest1 WHERE id=1").await.unwrap();
        assert_eq!(c, [content()]);
        conn.query_drop("UPDATE sbtest1 SET k=k+1 WHERE id=1").await.unwrap();
        assert_eq!(conn.affected_rows(), 1);
        let select = conn.prep(SELECT).await.unwrap();
        let update = conn.prep(UPDATE).await.unwrap();
        assert_eq!((select.num_params(), select.num_columns()), (1, 1));
        for id in 1..=3 {
            let c: Vec<String> = conn.exec(&select, (id,)).await.unwrap();
            assert_eq!(c, [content()]);
            conn.exec_drop(&update, (id,)).await.unwrap();
            assert_eq!(conn.affected_rows(), 1);
        }
        conn.ping().await.unwrap();
        conn.close(select).await.unwrap();
        conn.disconnect().await.unwrap();
        // A goodbye has no answer to wait for.
        while server.counts().open > 0 {
            tokio::task::yield_now().await;
        }
        let counts = server.counts();
        assert_eq!((counts.connections, counts.queries, counts.prepares), (1, 2, 2));
        assert_eq!((counts.executes, counts.closes, counts.quits), (6, 1, 1));
        assert_eq!((counts.selects, counts.changes), (4, 4));
    }
}

#[tokio::test]
async fn answers_arrive_as_written() {
    let server = start(Script {
        answers: vec![
            Answer::rows("@@", &["a", "b"], &[&[Some("1"), None]]),
            Answer::error("broken", 1146, "42S02", "Table 'broken' doesn't exist"),
        ],
        ..Script::default()
    });
    let mut conn = connect(&server).await;
    let text: (u32, Option<String>) = conn.query_first("SELECT @@a, @@b").await.unwrap().unwrap();
    assert_eq!(text, (1, None));
    let binary: (String, Option<String>) =
        conn.exec_first("SELECT @@a, @@b", ()).await.unwrap().unwrap();
    assert_eq!(binary, ("1".to_owned(), None));
    match conn.prep("SELECT 1 FROM broken").await {
        Err(Error::Server(e)) => assert_eq!((e.code, &*e.state), (1146, "42S02")),
        other => panic!("{other:?}"),
    }
    conn.ping().await.unwrap();
}

#[tokio::test]
async fn the_driver_switches_plugins() {
    for plugin in ["mysql_native_password", "caching_sha2_password"] {
        let server = start(Script { auth: Auth::Switch(plugin.into()), ..Script::default() });
        connect(&server).await.ping().await.unwrap();
    }
    let server = start(Script { auth: Auth::Deny, ..Script::default() });
    match Conn::new(options(&server)).await {
        Err(Error::Server(e)) => assert_eq!(e.code, 1045),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_local_file_streams_or_is_refused() {
    let script = Script { answers: vec![Answer::local_infile("LOAD", "x")], ..Script::default() };
    let server = start(script);
    let mut conn = connect(&server).await;
    let lines = (0..1_000).map(|i| Ok(bytes::Bytes::from(format!("{i}\trow\n"))));
    conn.set_infile_handler(async { Ok(stream::iter(lines).boxed()) });
    conn.query_drop("LOAD DATA LOCAL INFILE 'x' INTO TABLE t").await.unwrap();
    assert_eq!(conn.affected_rows(), 1_000);
    assert_eq!(server.counts().local_bytes, 2_890 + 5 * 1_000);
    assert!(conn.query_drop("LOAD DATA LOCAL INFILE 'x' INTO TABLE t").await.is_err());
}

/// What becomes of one statement under a fault: true for an answer as it should be, none for none.
async fn statement(action: Action, ends: bool) -> Option<bool> {
    let server =
        start(Script { faults: vec![Fault::new(At::Statement(1), action)], ..Script::default() });
    let mut conn = connect(&server).await;
    let outcome = within(ends, async {
        let select = conn.prep(SELECT).await?;
        conn.exec::<String, _, _>(&select, (1,)).await
    });
    outcome.await.map(|rows| rows.is_ok_and(|rows| rows == [content()]))
}

#[tokio::test]
async fn statement_faults_reach_the_driver() {
    let cases = [
        (Action::Stall(Duration::from_millis(50)), Some(true)),
        (Action::StallAll(Duration::from_millis(50)), Some(true)),
        (Action::OneByteAtATime, Some(true)),
        (Action::Close, Some(false)),
        (Action::Reset, Some(false)),
        (Action::HalfPacketThenStall, None),
        (Action::HalfPacketThenClose, Some(false)),
        (Action::Garbage(b"\x05\x00\x00\x01\xFFabcd".to_vec()), Some(false)),
        (Action::WrongSequence, Some(false)),
        (Action::WrongLength(5), Some(false)),
        (Action::WrongLength(-1), Some(false)),
        (Action::error(1213, "40001", "Deadlock"), Some(false)),
        (Action::RowsInstead(0), Some(false)),
        (Action::RowsInstead(2), Some(false)),
        (Action::AffectedInstead(1), Some(false)),
        (Action::RowContent(b"other".to_vec()), Some(false)),
        (Action::OversizedRow(2 << 20), Some(false)),
    ];
    for (action, expected) in cases {
        let seen = statement(action.clone(), expected.is_some()).await;
        assert_eq!(seen, expected, "{action:?}");
    }
}

#[tokio::test]
async fn packets_after_an_answer_spoil_the_next_one() {
    let two = b"\x07\0\0\x01\0\0\0\x02\0\0\0\x07\0\0\x02\0\0\0\x02\0\0\0".to_vec();
    let faults = vec![Fault::new(At::Statement(1), Action::Garbage(two))];
    let server = start(Script { faults, ..Script::default() });
    let mut conn = connect(&server).await;
    conn.query_drop("UPDATE t SET k=1").await.unwrap();
    let next = within(true, conn.query::<String, _>("SELECT c FROM t")).await;
    assert!(next.is_some_and(|rows| rows.is_err()));
}

#[tokio::test]
async fn connecting_faults_reach_the_driver() {
    let cases = [
        (Action::Stall(Duration::from_millis(50)), Some("ok")),
        (Action::OneByteAtATime, Some("ok")),
        (Action::Close, Some("error")),
        (Action::Reset, Some("error")),
        (Action::error(1040, "08004", "Too many connections"), Some("error")),
        (Action::Garbage(Vec::new()), None),
        (Action::HangAtAuth, None),
        (Action::KeyExchange(b"", Vec::new()), Some("panic")),
        (Action::KeyExchange(&[b'n'; 20], Vec::new()), Some("panic")),
        (Action::KeyExchange(&[b'n'; 20], b"\x01no key".to_vec()), Some("panic")),
    ];
    for (action, expected) in cases {
        let server = start(Script {
            faults: vec![Fault::new(At::Connect(1), action.clone())],
            ..Script::default()
        });
        let connecting = std::panic::AssertUnwindSafe(Conn::new(options(&server)));
        let seen = within(expected.is_some(), connecting.catch_unwind()).await;
        let seen = seen.map(|outcome| match outcome {
            Ok(Ok(_)) => "ok",
            Ok(Err(_)) => "error",
            Err(_) => "panic",
        });
        assert_eq!(seen, expected, "{action:?}");
    }
}
