//! Servers that speak, or end a session, while nobody asks; and answers that come in pieces.

use std::time::Duration;

use loadgen::canned::{Action, Answer, At, Canned, Fault, Listen, Script};
use loadgen::mysql::session::Failure;
use loadgen::mysql::wire::{self, LeanSession};
use loadgen::summary::ErrorClass;

use crate::common::databases::{everywhere, run};
use crate::common::program::{canned, run_canned};
use crate::common::proxy::Proxy;
use crate::common::query;
use crate::common::restarting::until;
use crate::common::sessions::{measured, run_prepared, target, tcp};

const ENDED: &str = "the server closed the connection";

/// Past the moment at which tokio hears of what has arrived.
async fn settled() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

fn code(outcome: &Result<wire::Answer, Failure>) -> Option<u16> {
    match outcome {
        Err(Failure::Server { code, .. }) => Some(*code),
        _ => None,
    }
}

#[test]
fn nothing_is_sent_when_the_server_has_ended_the_session_before() {
    everywhere(|db| {
        let tells = db.sandbox.version.starts_with(['8', '9']);
        for kills in [false, true] {
            let way = Proxy::to(db.sandbox.port);
            run(async {
                let mut session = measured(&target(tcp(way.port), "root", "")).await;
                if !kills {
                    session.run_text("SET SESSION wait_timeout = 1").await.expect("it may");
                }
                session.run_text("SELECT CONNECTION_ID()").await.expect("an answer");
                let id = session.number().expect("a number");
                if kills {
                    std::thread::scope(|s| {
                        s.spawn(|| query(db.sandbox, &format!("KILL {id}"))).join()
                    })
                    .expect("killed");
                }
                until("the session's end", || way.ended() == 1);
                settled().await;
                let said = way.seen();
                let outcome = session.run_text("SELECT 1").await;
                if tells && !kills {
                    assert_eq!(code(&outcome), Some(4031), "{outcome:?}");
                } else {
                    assert_eq!(outcome, Err(Failure::lost(ENDED)));
                }
                assert_eq!(way.seen(), said, "it was sent all the same");
                assert!(!session.is_usable());
            });
        }
    });
}

fn start(script: Script) -> Canned {
    Canned::start(script, Listen::Port(0)).expect("a free port")
}

/// A server whose first answer has this fault, and a session.
async fn first_answer(action: Action) -> (Canned, LeanSession) {
    let faults = vec![Fault::new(At::Statement(1), action)];
    let server = start(Script { faults, ..Script::default() });
    let session = measured(&target(tcp(server.port()), "x", "")).await;
    (server, session)
}

/// Packets with their numbers.
fn packets(packets: &[(u8, &[u8])]) -> Vec<u8> {
    let framed = |(number, payload): &(u8, &[u8])| {
        let length = u8::try_from(payload.len()).expect("a short one");
        [&[length, 0, 0, *number], *payload].concat()
    };
    packets.iter().flat_map(framed).collect()
}

const IDLE: &[u8] = b"\xff\xbf\x0f#HY000The client was disconnected by the server";
const SHUTDOWN: &[u8] = b"\xff\x1d\x04#08S01Server shutdown in progress";
const UPDATE: &str = "UPDATE t SET k = 1";

#[test]
fn an_error_that_came_before_a_command_is_told_and_the_command_is_not_sent() {
    for number in [0, 1, 2] {
        run(async {
            let behind = packets(&[(number, IDLE)]);
            let (server, mut session) = first_answer(Action::ThenClose(behind)).await;
            assert_eq!(session.run_text(UPDATE).await.expect("the answer stands").affected, 1);
            let outcome = session.run_text(UPDATE).await;
            assert_eq!(code(&outcome), Some(4031), "{number}: {outcome:?}");
            assert!(!session.is_usable());
            assert_eq!(server.counts().queries, 1, "{number}: it was sent");
        });
    }
    for behind in
        [vec![], packets(&[(2, b"\0\0\0\x02\0\0\0")]), packets(&[(0, IDLE)])[..9].to_vec()]
    {
        run(async {
            let (server, mut session) = first_answer(Action::ThenClose(behind.clone())).await;
            session.run_text(UPDATE).await.expect("the answer stands");
            until("the session's end", || server.counts().open == 0);
            settled().await;
            let outcome = session.run_text(UPDATE).await;
            assert!(matches!(outcome, Err(Failure::Lost(_))), "{behind:?}: {outcome:?}");
            assert_eq!((server.counts().queries, session.is_usable()), (1, false), "{behind:?}");
        });
    }
}

#[test]
fn an_error_in_the_place_of_an_answer_ends_the_session_when_its_number_is_another() {
    for number in [0, 1, 7] {
        run(async {
            let (_server, mut session) =
                first_answer(Action::Garbage(packets(&[(number, SHUTDOWN)]))).await;
            let outcome = session.run_text(UPDATE).await;
            assert_eq!(code(&outcome), Some(1053), "{number}: {outcome:?}");
            assert_eq!(session.is_usable(), number == 1, "{number}");
        });
    }
    run(async {
        let (_server, mut session) = first_answer(Action::WrongSequence).await;
        let outcome = session.run_text(UPDATE).await;
        assert!(matches!(outcome, Err(Failure::Lost(_))), "{outcome:?}");
    });
}

#[test]
fn several_results_are_one_answer_when_the_server_says_that_more_follow() {
    const MORE: &[u8] = b"\0\x01\0\x0a\0\0\0";
    const LAST: &[u8] = b"\0\x02\0\x02\0\0\0";
    for (answer, seen) in
        [(&[(1, MORE), (2, MORE), (3, LAST)][..], Ok(2)), (&[(1, MORE), (2, SHUTDOWN)], Err(1053))]
    {
        run(async {
            let (_server, mut session) = first_answer(Action::Garbage(packets(answer))).await;
            let outcome = session.run_text(UPDATE).await;
            let code = code(&outcome).unwrap_or(0);
            assert_eq!(outcome.map(|answer| answer.affected).map_err(|_| code), seen);
            assert!(session.is_usable());
        });
    }
}

#[test]
fn answers_are_the_same_when_every_byte_comes_by_itself() {
    let seen = |slow: bool, deprecate_eof: bool| {
        let slowly = |at| Fault::new(at, Action::OneByteAtATime);
        let faults =
            [At::EachStatement(1), At::Prepare(1), At::Prepare(2), At::Prepare(3), At::Connect(1)];
        let server = start(Script {
            answers: vec![
                Answer::rows("many", &["a", "b"], &[&[Some("17"), None], &[None, Some("x")]]),
                Answer::error("broken", 1213, "40001", "Deadlock found"),
            ],
            faults: if slow { faults.map(slowly).to_vec() } else { Vec::new() },
            deprecate_eof,
            ..Script::default()
        });
        run(async {
            let mut session = measured(&target(tcp(server.port()), "x", "")).await;
            let mut seen = Vec::new();
            for sql in [UPDATE, "SELECT many", "SELECT c FROM t WHERE id = 1", "SELECT broken"] {
                let text = session.run_text(sql).await;
                seen.push((text, session.first().map(<[u8]>::to_vec)));
                let outcome = match session.prepare(sql).await {
                    Ok(id) => run_prepared(&mut session, id, &[]).await,
                    Err(failure) => Err(failure),
                };
                seen.push((outcome, session.first().map(<[u8]>::to_vec)));
                assert!(session.is_usable());
            }
            seen
        })
    };
    for deprecate_eof in [false, true] {
        let whole = seen(false, deprecate_eof);
        assert_eq!(whole[2].1.as_deref(), Some(b"17".as_slice()), "{whole:?}");
        assert_eq!(seen(true, deprecate_eof), whole);
    }
}

#[test]
fn an_error_out_of_turn_costs_its_op_and_no_other() {
    const DEADLOCK: &[u8] = b"\xff\xbd\x04#40001Deadlock";
    let out_of_turn = Action::Garbage(packets(&[(0, DEADLOCK)]));
    let server = canned(vec![Fault::new(At::Statement(300), out_of_turn)]);
    let ended = run_canned("update --tables 8 --clients 1 --ops 500 --on-error reconnect", &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let totals = &ended.only().totals;
    assert_eq!((totals.ops, totals.reconnects, totals.in_doubt), (499, 1, 0), "{totals:?}");
    assert_eq!((totals.errors.len(), totals.errors[0].code), (1, Some(1213)));
}

#[test]
fn an_error_before_a_command_leaves_no_doubt_in_the_ledger() {
    for (error, class) in [(IDLE, ErrorClass::Idle), (SHUTDOWN, ErrorClass::Ended)] {
        for number in [0, 1] {
            let ends = Action::ThenClose(packets(&[(number, error)]));
            let server = canned(vec![Fault::new(At::Statement(300), ends)]);
            let words = "update --tables 8 --clients 1 --ops 500 --on-error reconnect";
            let ended = run_canned(words, &server);
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            let totals = &ended.only().totals;
            assert_eq!((totals.ops, totals.reconnects, totals.in_doubt), (499, 1, 0), "{totals:?}");
            assert_eq!((totals.errors[0].count, &totals.errors[0].class), (1, &class));
            let ledger = &ended.only().ledger;
            let known: i64 = ledger.iter().map(|table| table.k_added).sum();
            assert_eq!((known, ledger.iter().map(|table| table.in_doubt).sum::<u64>()), (499, 0));
            assert_eq!(server.counts().executes, 499, "the server got no other");
        }
    }
}
