//! A client that sees packets, for what a driver would hide.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// `LONG_PASSWORD`, `PROTOCOL_41`, `TRANSACTIONS`, `SECURE_CONNECTION`, `PLUGIN_AUTH`.
pub(crate) const FLAGS: u32 = 0x0008_A201;
pub(crate) const DEPRECATE_EOF: u32 = 0x0100_0000;
/// Long enough on a busy machine for an answer that does come.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing must come to count as silence.
const SILENCE: Duration = Duration::from_millis(150);

/// What a read brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Packet(u8, Vec<u8>),
    End,
    Reset,
    Silence,
}

pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
}

impl Raw {
    /// A connection whose greeting was not read yet.
    pub(crate) fn bare(port: u16) -> Raw {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Raw { stream }
    }

    /// A connection that is logged in.
    pub(crate) fn new(port: u16) -> Raw {
        Self::with_flags(port, FLAGS)
    }

    pub(crate) fn with_flags(port: u16, flags: u32) -> Raw {
        let mut raw = Self::bare(port);
        let (sequence, greeting) = raw.packet();
        assert_eq!((sequence, greeting[0]), (0, 10));
        raw.log_in(flags);
        assert_eq!(raw.packet(), (2, OK.to_vec()));
        raw
    }

    pub(crate) fn log_in(&mut self, flags: u32) {
        let mut login = flags.to_le_bytes().to_vec();
        login.extend([0, 0, 0, 1, 45]);
        login.extend([0; 23]);
        login.extend(b"x\0\0mysql_native_password\0");
        self.send(1, &login);
    }

    pub(crate) fn send(&mut self, sequence: u8, payload: &[u8]) {
        self.stream.write_all(&framed(sequence, payload)).unwrap();
    }

    pub(crate) fn query(&mut self, sql: &str) {
        self.send(0, &command(3, sql.as_bytes()));
    }

    /// Prepares and returns (statement, columns, parameters); reads all of the answer.
    pub(crate) fn prepare(&mut self, sql: &str) -> (u32, u16, u16) {
        self.send(0, &command(0x16, sql.as_bytes()));
        let (_, p) = self.packet();
        assert_eq!(p[0], 0, "{p:?}");
        let id = u32::from_le_bytes(p[1..5].try_into().unwrap());
        let number = |i: usize| u16::from_le_bytes(p[i..i + 2].try_into().unwrap());
        let (columns, parameters) = (number(5), number(7));
        for n in [parameters, columns] {
            // An EOF ends each list that is there.
            for _ in 0..n + u16::from(n > 0) {
                self.packet();
            }
        }
        (id, columns, parameters)
    }

    pub(crate) fn execute(&mut self, id: u32) {
        let mut body = id.to_le_bytes().to_vec();
        body.extend([0, 1, 0, 0, 0]);
        self.send(0, &command(0x17, &body));
    }

    pub(crate) fn packet(&mut self) -> (u8, Vec<u8>) {
        match self.see(PATIENCE) {
            Seen::Packet(sequence, payload) => (sequence, payload),
            other => panic!("no packet: {other:?}"),
        }
    }

    pub(crate) fn packets(&mut self, n: usize) -> Vec<(u8, Vec<u8>)> {
        (0..n).map(|_| self.packet()).collect()
    }

    /// The rows' payloads of a result set that ends its columns with EOF.
    pub(crate) fn rows(&mut self) -> Vec<Vec<u8>> {
        let (_, count) = self.packet();
        for _ in 0..=count[0] {
            self.packet();
        }
        let mut rows = Vec::new();
        loop {
            let (_, payload) = self.packet();
            if payload.first() == Some(&0xFE) && payload.len() < 9 {
                return rows;
            }
            rows.push(payload);
        }
    }

    pub(crate) fn silent(&mut self) -> bool {
        self.see(SILENCE) == Seen::Silence
    }

    /// What comes next, be it the end.
    pub(crate) fn next(&mut self) -> Seen {
        self.see(PATIENCE)
    }

    /// Exactly so many bytes.
    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = vec![0; n];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn see(&mut self, patience: Duration) -> Seen {
        self.stream.set_read_timeout(Some(patience)).unwrap();
        let mut header = [0; 4];
        match self.stream.read_exact(&mut header) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Seen::End,
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return Seen::Reset,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Seen::Silence,
            Err(e) => panic!("{e}"),
        }
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        Seen::Packet(header[3], self.bytes(length))
    }
}

/// An OK packet without affected rows.
pub(crate) const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];

/// An OK packet with (few) affected rows.
pub(crate) fn ok(affected: u8) -> Vec<u8> {
    vec![0, affected, 0, 2, 0, 0, 0]
}

/// The default canned `c` as a text row's payload.
pub(crate) fn canned_row() -> Vec<u8> {
    let mut row = vec![119];
    row.extend(loadgen::canned::Row::default().content);
    row
}

pub(crate) fn command(code: u8, body: &[u8]) -> Vec<u8> {
    let mut payload = vec![code];
    payload.extend(body);
    payload
}

pub(crate) fn framed(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = u32::try_from(payload.len()).unwrap().to_le_bytes();
    let mut bytes = vec![a, b, c, sequence];
    bytes.extend(payload);
    bytes
}

/// Code, SQLSTATE and message of an error packet.
pub(crate) fn error(payload: &[u8]) -> (u16, String, String) {
    assert_eq!((payload[0], payload[3]), (0xFF, b'#'), "{payload:?}");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (u16::from_le_bytes([payload[1], payload[2]]), text(&payload[4..9]), text(&payload[9..]))
}
