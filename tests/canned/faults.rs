//! Every fault, by its bytes on the wire.

use std::io::Read as _;
use std::time::{Duration, Instant};

use loadgen::canned::{Action, Answer, At, Canned, Fault, Listen, Script};

use super::raw::{FLAGS, OK, Raw, Seen, canned_row, error, framed, ok};

const SELECT: &str = "SELECT c FROM t";
const UPDATE: &str = "UPDATE t SET k=1";

fn start(faults: Vec<Fault>) -> Canned {
    Canned::start(Script { faults, ..Script::default() }, Listen::Port(0)).unwrap()
}

/// A server whose first statement goes wrong, and a client that is logged in.
fn first(action: Action) -> (Canned, Raw) {
    let server = start(vec![Fault::new(At::Statement(1), action)]);
    let raw = Raw::new(server.port());
    (server, raw)
}

/// The same for its first connection.
fn connecting(action: Action) -> (Canned, Raw) {
    let server = start(vec![Fault::new(At::Connect(1), action)]);
    let raw = Raw::bare(server.port());
    (server, raw)
}

/// The connection works, and other ones too.
fn goes_on(server: &Canned, raw: &mut Raw) {
    raw.query(UPDATE);
    assert_eq!(raw.packet(), (1, ok(1)));
    others_go_on(server);
}

fn others_go_on(server: &Canned) {
    let mut other = Raw::new(server.port());
    other.query(SELECT);
    assert_eq!(other.rows(), [canned_row()]);
    assert_eq!(server.counts().faults, 1);
}

#[test]
fn stall_holds_one_connection() {
    let time = Duration::from_secs(2);
    // A busy host may hold the others for as long: not each time.
    let meanwhile = (0..3).any(|_| {
        let (server, mut raw) = first(Action::Stall(time));
        let start = Instant::now();
        raw.query(UPDATE);
        others_go_on(&server);
        let meanwhile = start.elapsed() < time;
        assert_eq!(raw.packet(), (1, ok(1)));
        assert!(start.elapsed() >= time);
        goes_on(&server, &mut raw);
        meanwhile
    });
    assert!(meanwhile, "the others waited, too");
}

#[test]
fn stall_all_holds_every_connection_and_the_greeting() {
    let time = Duration::from_secs(1);
    let (server, mut raw) = first(Action::StallAll(time));
    let mut other = Raw::new(server.port());
    let start = Instant::now();
    raw.query(UPDATE);
    // Once the fault has fired.
    while server.counts().faults == 0 {
        std::thread::yield_now();
    }
    other.send(0, &[0x0E]);
    let mut late = Raw::bare(server.port());
    for (raw, sequence) in [(&mut late, 0), (&mut other, 1), (&mut raw, 1)] {
        assert_eq!(raw.packet().0, sequence);
        assert!(start.elapsed() >= time);
    }
    goes_on(&server, &mut raw);
}

#[test]
fn close_and_reset() {
    let (server, mut raw) = first(Action::Close);
    raw.query(UPDATE);
    assert_eq!(raw.next(), Seen::End);
    others_go_on(&server);
    let (server, mut raw) = first(Action::Reset);
    raw.query(UPDATE);
    assert_eq!(raw.next(), Seen::Reset);
    others_go_on(&server);
}

#[test]
fn half_close_ends_one_direction() {
    let (server, mut raw) = first(Action::HalfClose);
    raw.query(UPDATE);
    assert_eq!(raw.next(), Seen::End);
    // What is sent now is still taken: no reset comes back.
    raw.query(UPDATE);
    assert_eq!(raw.next(), Seen::End);
    others_go_on(&server);
}

#[test]
fn half_packets() {
    let (server, mut raw) = first(Action::HalfPacketThenStall);
    raw.query(UPDATE);
    // The length says seven, three come.
    assert_eq!(raw.bytes(7), [7, 0, 0, 1, 0, 1, 0]);
    assert!(raw.silent());
    raw.query(UPDATE);
    assert!(raw.silent());
    others_go_on(&server);
    let (server, mut raw) = first(Action::HalfPacketThenClose);
    raw.query(UPDATE);
    assert_eq!(raw.bytes(7), [7, 0, 0, 1, 0, 1, 0]);
    assert_eq!(raw.next(), Seen::End);
    others_go_on(&server);
}

#[test]
fn one_byte_at_a_time() {
    // Bytes that a busy host is late to read come together: not each time.
    let mut reads = Vec::new();
    while reads.last().is_none_or(|reads| *reads <= 5) {
        assert!(reads.len() < 5, "{reads:?} reads");
        reads.push(reads_of_one_byte_at_a_time());
    }
}

/// In how many pieces the answer came.
fn reads_of_one_byte_at_a_time() -> u32 {
    let (server, mut raw) = first(Action::OneByteAtATime);
    raw.query(SELECT);
    let mut normal = Raw::new(server.port());
    normal.query(SELECT);
    let expected = {
        let mut bytes = vec![0; 4096];
        let n = normal.stream.read(&mut bytes).unwrap();
        bytes.truncate(n);
        bytes
    };
    let (mut seen, mut reads) = (Vec::<u8>::new(), 0);
    while seen.len() < expected.len() {
        let mut bytes = [0; 4096];
        let n = raw.stream.read(&mut bytes).unwrap();
        assert_ne!(n, 0);
        seen.extend(&bytes[..n]);
        reads += 1;
    }
    assert_eq!(seen, expected);
    goes_on(&server, &mut raw);
    reads
}

#[test]
fn garbage_and_wrong_headers() {
    let (server, mut raw) = first(Action::Garbage(b"HTTP/1.1 400".to_vec()));
    raw.query(UPDATE);
    assert_eq!(raw.bytes(12), b"HTTP/1.1 400");
    goes_on(&server, &mut raw);
    for (by, length) in [(5, 12), (-3, 4), (-100, 0)] {
        let (server, mut raw) = first(Action::WrongLength(by));
        raw.query(UPDATE);
        assert_eq!(raw.bytes(4), [length, 0, 0, 1]);
        assert_eq!(raw.bytes(7), ok(1));
        goes_on(&server, &mut raw);
    }
    let (server, mut raw) = first(Action::WrongSequence);
    raw.query(UPDATE);
    assert_eq!(raw.packet(), (8, ok(1)));
    goes_on(&server, &mut raw);
    assert_eq!(server.counts().used_again, 1);
}

struct Refusal {
    code: u16,
    state: &'static str,
    message: &'static str,
}

#[test]
fn errors_keep_their_bytes() {
    let errors = [
        Refusal { code: 1213, state: "40001", message: "Deadlock found" },
        Refusal { code: 1205, state: "HY000", message: "Lock wait timeout exceeded" },
        Refusal { code: 1290, state: "HY000", message: "read-only" },
        Refusal { code: 1064, state: "42000", message: "near '\u{1b}[2J\u{1b}]0;owned\u{7}'" },
    ];
    for Refusal { code, state, message } in errors {
        let (server, mut raw) = first(Action::error(code, state, message));
        raw.query(UPDATE);
        assert_eq!(error(&raw.packet().1), (code, state.to_owned(), message.to_owned()));
        goes_on(&server, &mut raw);
    }
}

#[test]
fn other_answers_than_asked_for() {
    for (count, rows) in [(0, vec![]), (2, vec![canned_row(); 2])] {
        for sql in [SELECT, UPDATE] {
            let (server, mut raw) = first(Action::RowsInstead(count));
            raw.query(sql);
            assert_eq!(raw.rows(), rows);
            goes_on(&server, &mut raw);
        }
    }
    for sql in [SELECT, UPDATE] {
        let (server, mut raw) = first(Action::AffectedInstead(2));
        raw.query(sql);
        assert_eq!(raw.packet(), (1, ok(2)));
        goes_on(&server, &mut raw);
    }
    let (server, mut raw) = first(Action::RowContent(b"wrong".to_vec()));
    let (id, ..) = raw.prepare(SELECT);
    raw.execute(id);
    assert_eq!(raw.rows(), [b"\0\0\x05wrong"]);
    goes_on(&server, &mut raw);
}

#[test]
fn oversized_rows_and_huge_counts() {
    let size = 17 << 20;
    let (server, mut raw) = first(Action::OversizedRow(size));
    raw.query(SELECT);
    let packets = raw.packets(6);
    let (first_part, second_part) = (&packets[3].1, &packets[4].1);
    assert_eq!(first_part.len(), 0xFF_FFFF);
    // The value's length takes nine bytes.
    assert_eq!(first_part.len() + second_part.len(), size + 9);
    assert_eq!(packets[5].0, 6);
    goes_on(&server, &mut raw);
    let (server, mut raw) = first(Action::HugeColumnCount(1 << 40));
    raw.query(SELECT);
    assert_eq!(raw.packet(), (1, vec![0xFE, 0, 0, 0, 0, 0, 1, 0, 0]));
    assert!(raw.silent());
    goes_on(&server, &mut raw);
}

#[test]
fn hanging_before_and_after_the_login() {
    let (server, mut raw) = connecting(Action::Garbage(Vec::new()));
    assert!(raw.silent());
    others_go_on(&server);
    let (server, mut raw) = connecting(Action::HangAtAuth);
    raw.packet();
    raw.log_in(FLAGS);
    assert!(raw.silent());
    others_go_on(&server);
    assert_eq!(server.counts().sessions, 1);
}

struct KeyExchange {
    action: Action,
    nonce: usize,
    key: Option<Vec<u8>>,
}

#[test]
fn key_exchanges_that_break_clients() {
    let key = b"\x01-----BEGIN PUBLIC KEY-----".to_vec();
    let cases = [
        KeyExchange { action: Action::KeyExchange(b"", Vec::new()), nonce: 0, key: None },
        KeyExchange {
            action: Action::KeyExchange(&[b'n'; 20], Vec::new()),
            nonce: 21,
            key: Some(Vec::new()),
        },
        KeyExchange {
            action: Action::KeyExchange(&[b'n'; 20], key.clone()),
            nonce: 21,
            key: Some(key),
        },
    ];
    for KeyExchange { action, nonce, key } in cases {
        let (server, mut raw) = connecting(action);
        raw.packet();
        raw.log_in(FLAGS);
        let (_, switch) = raw.packet();
        assert!(switch.starts_with(b"\xFEcaching_sha2_password\0"));
        assert_eq!(switch.len(), 23 + nonce);
        raw.send(3, b"hash");
        assert_eq!(raw.packet(), (4, vec![1, 4]));
        raw.send(5, &[2]);
        let (sequence, sent) = raw.packet();
        assert_eq!(sequence, 6);
        assert!(key.is_none_or(|key| key == sent), "{sent:?}");
        raw.send(7, b"encrypted");
        assert_eq!(raw.packet(), (8, OK.to_vec()));
        goes_on(&server, &mut raw);
    }
}

#[test]
fn general_faults_at_the_greeting() {
    let (server, mut raw) = connecting(Action::error(1040, "08004", "Too many connections"));
    assert_eq!(raw.packet(), (0, b"\xFF\x10\x04Too many connections".to_vec()));
    assert_eq!(raw.next(), Seen::End);
    others_go_on(&server);
    let (server, mut raw) = connecting(Action::Close);
    assert_eq!(raw.next(), Seen::End);
    others_go_on(&server);
    let (server, mut raw) = connecting(Action::WrongSequence);
    assert_eq!(raw.packet().0, 7);
    raw.log_in(FLAGS);
    assert_eq!(raw.packet(), (2, OK.to_vec()));
    goes_on(&server, &mut raw);
}

#[test]
fn a_local_file_is_taken_after_a_stall_and_not_after_an_error() {
    let load = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t";
    let faults = vec![
        Fault::new(At::Statement(1), Action::Stall(Duration::from_millis(50))),
        Fault::new(At::Statement(2), Action::error(1290, "HY000", "secure_file_priv")),
    ];
    let answers = vec![Answer::local_infile("LOAD", "x")];
    let script = Script { faults, answers, ..Script::default() };
    let server = Canned::start(script, Listen::Port(0)).unwrap();
    let mut raw = Raw::new(server.port());
    raw.query(load);
    assert_eq!(raw.packet(), (1, b"\xFBx".to_vec()));
    raw.send(2, b"1\n");
    raw.send(3, b"");
    assert_eq!(raw.packet(), (4, ok(1)));
    raw.query(load);
    assert_eq!(error(&raw.packet().1).0, 1290);
    raw.query(UPDATE);
    assert_eq!(raw.packet(), (1, ok(1)));
}

#[test]
fn triggers() {
    let deadlock = || Action::error(1213, "40001", "Deadlock");
    let server = start(vec![
        Fault::new(At::EachStatement(3), deadlock()).only("update"),
        Fault::new(At::Prepare(2), Action::error(1461, "42000", "enough")),
        Fault::new(At::EachConnect(2), Action::Close),
    ]);
    let mut raw = Raw::new(server.port());
    assert_eq!(Raw::bare(server.port()).next(), Seen::End);
    let (id, ..) = raw.prepare(UPDATE);
    raw.send(0, b"\x16SELECT 1");
    assert_eq!(error(&raw.packet().1).0, 1461);
    let mut failed = Vec::new();
    for i in 1..=9 {
        raw.query(SELECT);
        assert_eq!(raw.rows(), [canned_row()]);
        if i % 2 == 0 {
            raw.execute(id);
        } else {
            raw.query(UPDATE);
        }
        if raw.packet().1[0] == 0xFF {
            failed.push(i);
        }
    }
    assert_eq!(failed, [3, 6, 9]);
    assert_eq!(server.counts().faults, 5);

    let time = Duration::from_millis(300);
    let started = Instant::now();
    let server = start(vec![Fault::new(At::After(time), deadlock())]);
    let mut raw = Raw::new(server.port());
    loop {
        raw.query(UPDATE);
        if raw.packet().1[0] == 0xFF {
            break;
        }
    }
    assert!(started.elapsed() >= time);
    goes_on(&server, &mut raw);
}

#[test]
fn what_came_before_a_fault_is_answered() {
    let server = start(vec![Fault::new(At::Statement(3), Action::Close)]);
    let mut raw = Raw::new(server.port());
    let request = framed(0, b"\x03UPDATE t SET k=1");
    std::io::Write::write_all(&mut raw.stream, &request.repeat(3)).unwrap();
    assert_eq!(raw.packet(), (1, ok(1)));
    assert_eq!(raw.packet(), (1, ok(1)));
    assert_eq!(raw.next(), Seen::End);
}
