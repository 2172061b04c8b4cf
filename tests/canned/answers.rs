//! What the server answers when nothing goes wrong, packet by packet.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use loadgen::canned::{Answer, Auth, Canned, Listen, Row, Script, Service};

use super::raw::{DEPRECATE_EOF, FLAGS, OK, Raw, Seen, canned_row, command, error, framed, ok};

fn start(script: Script) -> Canned {
    Canned::start(script, Listen::Port(0)).unwrap()
}

#[test]
fn both_protocols_and_both_dialects() {
    let server = start(Script::default());
    let mut old = Raw::new(server.port());
    old.query("SELECT c FROM sbtest1 WHERE id=5");
    assert_eq!(old.rows(), [canned_row()]);
    let (id, columns, parameters) = old.prepare("SELECT c FROM sbtest1 WHERE id=? AND 1=?");
    assert_eq!((columns, parameters), (1, 2));
    old.execute(id);
    let binary: Vec<u8> = [&[0, 0], &canned_row()[..]].concat();
    assert_eq!(old.rows(), std::slice::from_ref(&binary));

    let mut new = Raw::with_flags(server.port(), FLAGS | DEPRECATE_EOF);
    new.query("SELECT c FROM sbtest1 WHERE id=5");
    let packets = new.packets(4);
    assert_eq!(packets[2], (3, canned_row()));
    assert_eq!(packets[3], (4, vec![0xFE, 0, 0, 2, 0, 0, 0]));
    new.send(0, &command(0x16, b"SELECT c FROM t WHERE id=?"));
    assert_eq!(new.packets(3)[0].1, [0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]);
    new.execute(1);
    assert_eq!(new.packets(4)[2], (3, binary));

    // What was not offered is not done, even if a client asks for it.
    let server = start(Script { deprecate_eof: false, ..Script::default() });
    let mut asking = Raw::with_flags(server.port(), FLAGS | DEPRECATE_EOF);
    asking.query("SELECT c FROM sbtest1 WHERE id=5");
    assert_eq!(asking.rows(), [canned_row()]);
}

#[test]
fn each_command_gets_its_answer() {
    let server = start(Script::default());
    let mut raw = Raw::new(server.port());
    let mut answer = |payload: &[u8]| {
        raw.send(0, payload);
        raw.packet()
    };
    assert_eq!(answer(&[0x0E]), (1, OK.to_vec())); // PING
    assert_eq!(answer(&command(2, b"db")), (1, OK.to_vec())); // INIT_DB
    assert_eq!(answer(&[0x1B, 0, 0]), (1, vec![0xFE, 0, 0, 2, 0])); // SET_OPTION
    assert_eq!(answer(&command(3, b"UPDATE t SET k=1")).1, ok(1));
    assert_eq!(answer(&command(3, b"insert into t values (1)")).1, ok(1));
    assert_eq!(answer(&command(3, b"SET NAMES utf8")).1, ok(0));
    assert_eq!(error(&answer(&command(3, b"LOAD DATA LOCAL INFILE 'x'")).1).0, 3948);
    assert_eq!(error(&answer(&[0x1C]).1), (1047, "08S01".into(), "Unknown command".into()));
    assert_eq!(error(&answer(&[]).1).0, 1835);
    assert_eq!(error(&answer(&[0x17, 9, 0, 0, 0]).1).0, 1243);
    assert_eq!(error(&answer(&[0x17]).1).0, 1243);

    let (id, columns, parameters) = raw.prepare("UPDATE t SET k=k+1 WHERE id=?");
    assert_eq!((columns, parameters), (0, 1));
    raw.send(0, &[0x18, 1, 0, 0, 0, 0, 0, b'x']); // SEND_LONG_DATA: no answer
    raw.execute(id);
    assert_eq!(raw.packet(), (1, ok(1)));
    raw.send(0, &[0x1A, 1, 0, 0, 0]); // STMT_RESET
    assert_eq!(raw.packet(), (1, OK.to_vec()));
    raw.send(0, &[0x19, 1, 0, 0, 0]); // STMT_CLOSE: no answer
    raw.execute(id);
    assert_eq!(error(&raw.packet().1).0, 1243);
    let (next, ..) = raw.prepare("SELECT 1");
    assert_ne!(next, id, "numbers are not used again");
    raw.send(0, &[0x1F]); // RESET_CONNECTION
    assert_eq!(raw.packet(), (1, OK.to_vec()));
    raw.execute(next);
    assert_eq!(error(&raw.packet().1).0, 1243);
    raw.send(0, &[0x01]); // QUIT
    assert_eq!(raw.next(), Seen::End);

    let counts = server.counts();
    assert_eq!((counts.connections, counts.sessions, counts.quits), (1, 1, 1));
    assert_eq!((counts.queries, counts.prepares, counts.executes), (4, 2, 1));
    assert_eq!((counts.closes, counts.pings, counts.resets), (1, 1, 1));
    assert_eq!((counts.selects, counts.changes, counts.refused), (0, 3, 6));
}

#[test]
fn answers_win_over_the_canned_ones() {
    let script = Script {
        row: Row { column: "c".into(), content: b"abc".to_vec(), count: 3 },
        answers: vec![
            Answer::value("@@autocommit", "@@autocommit", "1"),
            Answer::rows("from pairs", &["a", "b"], &[&[Some("x"), None], &[None, Some("")]]),
            Answer::ok("update many", 7),
            Answer::error("from missing", 1146, "42S02", "no such table"),
        ],
        ..Script::default()
    };
    let server = start(script);
    let mut raw = Raw::new(server.port());
    raw.query("select @@AutoCommit");
    assert_eq!(raw.rows(), [b"\x011"]);
    raw.query("SELECT * FROM Pairs");
    assert_eq!(raw.rows(), [vec![1, b'x', 0xFB], vec![0xFB, 0]]);
    let (id, columns, _) = raw.prepare("SELECT * FROM pairs");
    assert_eq!(columns, 2);
    raw.execute(id);
    assert_eq!(raw.rows(), [vec![0, 0b1000, 1, b'x'], vec![0, 0b0100, 0]]);
    raw.query("UPDATE MANY rows");
    assert_eq!(raw.packet().1, ok(7));
    for code in [3, 0x16] {
        raw.send(0, &command(code, b"SELECT 1 FROM missing"));
        let (code, state, message) = error(&raw.packet().1);
        assert_eq!((code, &*state, &*message), (1146, "42S02", "no such table"));
    }
    raw.query("SELECT c FROM t");
    assert_eq!(raw.rows(), vec![b"\x03abc"; 3]);
    raw.query("SELECT 1");
    assert_eq!(raw.rows(), [b"\x011"]);
    raw.query("SHOW STATUS");
    assert_eq!(raw.rows(), Vec::<Vec<u8>>::new());
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = start(Script::default());
    let mut raw = Raw::new(server.port());
    let count = 2_000;
    let mut requests = Vec::new();
    for _ in 0..count {
        requests.extend(framed(0, &command(3, b"SELECT c FROM t")));
        requests.extend(framed(0, &command(3, b"UPDATE t SET k=1")));
    }
    let mut writer = raw.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&requests));
    for _ in 0..count {
        assert_eq!(raw.rows(), [canned_row()]);
        assert_eq!(raw.packet().1, ok(1));
    }
    writing.join().unwrap().unwrap();
    assert_eq!(server.counts().queries, 2 * count);
}

#[test]
fn a_local_file_is_asked_for_and_counted() {
    let script = Script {
        answers: vec![Answer::local_infile("LOAD DATA", "rows.txt")],
        ..Script::default()
    };
    let server = start(script);
    let mut raw = Raw::new(server.port());
    raw.query("LOAD DATA LOCAL INFILE 'rows.txt' INTO TABLE t");
    assert_eq!(raw.packet(), (1, b"\xFBrows.txt".to_vec()));
    raw.send(2, b"1\tx\n2\t");
    let long = [vec![b'y'; 1_000_000], b"\n3\tz\n".to_vec()].concat();
    raw.send(3, &long);
    raw.send(4, b"");
    assert_eq!(raw.packet(), (5, ok(3)));
    assert_eq!(server.counts().local_bytes, 6 + long.len() as u64);
    // A client that refuses sends the empty packet at once, and the connection goes on.
    raw.query("load data local infile 'other' into table t");
    raw.packet();
    raw.send(2, b"");
    assert_eq!(raw.packet(), (3, ok(0)));
    raw.send(0, &command(0x16, b"LOAD DATA LOCAL INFILE 'x' INTO TABLE t"));
    assert_eq!(error(&raw.packet().1).0, 1295);
}

#[test]
fn a_stream_of_full_packets_is_one_stream() {
    let script = Script { answers: vec![Answer::local_infile("LOAD", "x")], ..Script::default() };
    let server = start(script);
    let mut raw = Raw::new(server.port());
    raw.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t");
    raw.packet();
    raw.send(2, &vec![b'\n'; 0xFF_FFFF]);
    raw.send(3, b""); // ends that packet, not the stream
    raw.send(4, b"\n");
    raw.send(5, b"");
    let (sequence, payload) = raw.packet();
    // 2^24 lines.
    assert_eq!((sequence, &payload[..5]), (6, &[0, 0xFE, 0, 0, 0][..]));
    assert_eq!(server.counts().local_bytes, 1 << 24);
}

#[test]
fn logging_in_has_variants() {
    let switch =
        start(Script { auth: Auth::Switch("caching_sha2_password".into()), ..Script::default() });
    let mut raw = Raw::bare(switch.port());
    raw.packet();
    raw.log_in(FLAGS);
    let (sequence, request) = raw.packet();
    assert_eq!(sequence, 2);
    assert!(request.starts_with(b"\xFEcaching_sha2_password\0"));
    assert_eq!(request.len(), 1 + 22 + 21);
    raw.send(3, b"whatever");
    assert_eq!(raw.packet(), (4, OK.to_vec()));

    let deny = start(Script { auth: Auth::Deny, ..Script::default() });
    let mut raw = Raw::bare(deny.port());
    raw.packet();
    raw.log_in(FLAGS);
    assert_eq!(error(&raw.packet().1).0, 1045);
    assert_eq!(raw.next(), Seen::End);
    assert_eq!(deny.counts().sessions, 0);
}

#[test]
fn too_many_connections_are_refused() {
    let server = start(Script { connections_max: 2, ..Script::default() });
    let first = Raw::new(server.port());
    let mut second = Raw::new(server.port());
    let mut third = Raw::bare(server.port());
    assert_eq!(third.packet(), (0, b"\xFF\x10\x04Too many connections".to_vec()));
    assert_eq!(third.next(), Seen::End);
    drop(first);
    // The server notices the end before it is asked for an answer, or soon after.
    while server.counts().open > 1 {
        second.query("SET x=1");
        second.packet();
    }
    Raw::new(server.port());
    assert_eq!(server.counts().open_max, 3);
}

#[test]
fn a_thousand_connections_are_held() {
    let server = start(Script::default());
    let mut clients: Vec<Raw> = (0..1_000).map(|_| Raw::new(server.port())).collect();
    for raw in &mut clients {
        raw.query("SELECT c FROM t");
    }
    for raw in &mut clients {
        assert_eq!(raw.rows(), [canned_row()]);
    }
    assert_eq!(server.counts().open, 1_000);
}

#[test]
fn service_time_passes_on_each_connection_by_itself() {
    let time = Duration::from_millis(100);
    let server = start(Script { service: Service::Constant(time), ..Script::default() });
    let count = 300;
    let mut clients: Vec<Raw> = (0..count).map(|_| Raw::new(server.port())).collect();
    let start = Instant::now();
    for raw in &mut clients {
        raw.query("SELECT c FROM t");
        raw.query("UPDATE t SET k=1");
    }
    for raw in &mut clients {
        assert_eq!(raw.rows(), [canned_row()]);
        assert_eq!(raw.packet().1, ok(1));
    }
    assert!(start.elapsed() >= 2 * time);
    // One after the other they would need a minute.
    assert!(start.elapsed() < count * time, "{:?}", start.elapsed());
    let mean = Duration::from_micros(500);
    let server = self::start(Script {
        service: Service::Exponential { mean, seed: 3 },
        ..Script::default()
    });
    let mut raw = Raw::new(server.port());
    let start = Instant::now();
    for _ in 0..200 {
        raw.query("UPDATE t SET k=1");
        assert_eq!(raw.packet().1, ok(1));
    }
    // The sum of 200 draws is within a third of its mean in all but one of 10^5 streams, and
    // this stream is always the same.
    assert!(start.elapsed() >= mean * 133, "{:?}", start.elapsed());
}

#[test]
fn a_unix_socket_serves_and_goes_away() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("canned.sock");
    let server = Canned::start(Script::default(), Listen::Socket(path.clone())).unwrap();
    assert_eq!(server.port(), 0);
    let mut stream = UnixStream::connect(&path).unwrap();
    let mut header = [0; 4];
    std::io::Read::read_exact(&mut stream, &mut header).unwrap();
    assert_eq!(header[3], 0);
    let taken = Canned::start(Script::default(), Listen::Socket(path.clone())).unwrap_err();
    assert!(taken.to_string().contains("canned.sock"), "{taken}");
    assert!(path.exists(), "a refused server must not take the other one's socket away");
    drop(server);
    assert!(!path.exists());
}

#[test]
fn starting_and_stopping() {
    let server = start(Script::default());
    let port = server.port();
    let taken = Canned::start(Script::default(), Listen::Port(port)).unwrap_err();
    assert!(taken.to_string().contains(&port.to_string()), "{taken}");
    let too_many = Script { connections_max: u32::MAX, ..Script::default() };
    let refused = Canned::start(too_many, Listen::Port(0)).unwrap_err();
    assert!(refused.to_string().contains("descriptors"), "{refused}");
    let mut raw = Raw::new(port);
    drop(server);
    assert!(matches!(raw.next(), Seen::End | Seen::Reset));
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}
