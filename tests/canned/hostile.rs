//! Clients that do not keep to the protocol: the server goes on serving the others.

use std::io::Write as _;

use loadgen::canned::{Canned, Counts, Listen, Script};

use super::raw::{FLAGS, OK, Raw, Seen, canned_row, command, framed};

fn start() -> Canned {
    Canned::start(Script::default(), Listen::Port(0)).unwrap()
}

fn still_serves(server: &Canned) {
    let mut raw = Raw::new(server.port());
    raw.query("SELECT c FROM t");
    assert_eq!(raw.rows(), [canned_row()]);
}

#[test]
fn a_login_that_is_none_is_refused() {
    let server = start();
    for login in [&b""[..], b"x", &0_u32.to_le_bytes(), &(FLAGS | 0x800).to_le_bytes()] {
        let mut raw = Raw::bare(server.port());
        raw.packet();
        raw.send(1, login);
        assert_eq!(raw.packet(), (2, b"\xFF\x13\x04Bad handshake".to_vec()), "{login:?}");
        assert_eq!(raw.next(), Seen::End);
    }
    assert_eq!(server.counts().sessions, 0);
    still_serves(&server);
}

#[test]
fn any_bytes_at_any_moment_leave_the_server_standing() {
    let server = start();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..200 {
        let mut raw =
            if round % 2 == 0 { Raw::new(server.port()) } else { Raw::bare(server.port()) };
        let mut bytes = Vec::new();
        for _ in 0..20 {
            let size = random() % 40;
            let noise: Vec<u8> = (0..size).map(|_| random() as u8).collect();
            if random() % 4 == 0 {
                bytes.extend(noise);
            } else {
                // A whole packet of a command, with noise for a body.
                bytes.extend(framed(random() as u8, &command((random() % 0x20) as u8, &noise)));
            }
        }
        // The server may have ended the connection already.
        let _ = raw.stream.write_all(&bytes);
    }
    still_serves(&server);
}

#[test]
fn long_commands_are_read_and_forgotten() {
    let server = start();
    let mut raw = Raw::new(server.port());
    let mut insert = b"INSERT INTO t VALUES ".to_vec();
    insert.resize(20 << 20, b'x');
    // Two packets: 2^24 - 1 bytes and the rest.
    let payload = command(3, &insert);
    let (first, second) = payload.split_at(0xFF_FFFF);
    raw.send(0, first);
    raw.send(1, second);
    assert_eq!(raw.packet(), (1, vec![0, 1, 0, 2, 0, 0, 0]));
    // An announced length alone reserves nothing and breaks nothing.
    let mut liar = Raw::new(server.port());
    liar.stream.write_all(&[0xFF, 0xFF, 0xFF, 0, 3]).unwrap();
    drop(liar);
    let placeholders = "?,".repeat(70_000);
    raw.send(0, &command(0x16, placeholders.as_bytes()));
    assert_eq!(raw.packet().1[..3], [0xFF, 0x6E, 0x05]); // 1390
    still_serves(&server);
}

#[test]
fn statements_are_bounded() {
    let server = start();
    let mut raw = Raw::new(server.port());
    for _ in 0..16_382 {
        raw.prepare("DO 1");
    }
    raw.send(0, &command(0x16, b"DO 1"));
    assert_eq!(raw.packet().1[..3], [0xFF, 0xB5, 0x05]); // 1461
    raw.send(0, &command(0x19, &1_u32.to_le_bytes()));
    raw.prepare("DO 1");
}

#[test]
fn a_client_that_does_not_read_stops_only_itself() {
    let server = start();
    let mut deaf = Raw::new(server.port());
    let requests: Vec<u8> = framed(0, &command(3, b"SELECT c FROM t")).repeat(2_000);
    deaf.stream.set_nonblocking(true).unwrap();
    // Until neither side takes more.
    while deaf.stream.write(&requests).is_ok() {
        still_serves(&server);
    }
    still_serves(&server);
    let Counts { queries, .. } = server.counts();
    drop(deaf);
    let mut raw = Raw::new(server.port());
    raw.send(0, &[0x0E]);
    assert_eq!(raw.packet(), (1, OK.to_vec()));
    assert!(queries > 2_000, "{queries}");
}
