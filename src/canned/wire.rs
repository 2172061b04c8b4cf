//! Packets: how they are framed, the few kinds that the server builds, and the commands that come
//! out of what a client sends, in bounded memory.

use std::io;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::error::{Error, Result};

/// The longest payload of one packet; longer ones go on in the next.
pub(crate) const PAYLOAD_MAX: usize = 0xFF_FFFF;
/// A packet's length (3 bytes) and sequence number (1).
pub(crate) const HEADER: usize = 4;

/// `SERVER_STATUS_AUTOCOMMIT`.
pub(crate) const AUTOCOMMIT: u16 = 2;
/// `utf8mb4_general_ci`.
pub(crate) const CHARSET: u8 = 45;

/// Of a longer command the rest is read and thrown away.
pub(crate) const KEPT: usize = 256 << 10;
/// The first size of a read buffer: 10,000 connections must fit in memory.
const SMALL: usize = 1 << 10;

/// Packets with their headers, numbered upwards from `sequence`.
pub(crate) struct Packets {
    pub(crate) bytes: Vec<u8>,
    sequence: u8,
}

impl Packets {
    pub(crate) fn starting_at(sequence: u8) -> Self {
        Packets { bytes: Vec::new(), sequence }
    }

    /// Adds a payload, in several packets if it needs them.
    pub(crate) fn push(&mut self, payload: &[u8]) {
        let mut rest = payload;
        loop {
            let (part, after) = rest.split_at(rest.len().min(PAYLOAD_MAX));
            let [a, b, c, _] = (part.len() as u32).to_le_bytes();
            self.bytes.extend_from_slice(&[a, b, c, self.sequence]);
            self.bytes.extend_from_slice(part);
            self.sequence = self.sequence.wrapping_add(1);
            if part.len() < PAYLOAD_MAX {
                return;
            }
            rest = after;
        }
    }
}

pub(crate) fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut packets = Packets::starting_at(sequence);
    packets.push(payload);
    packets.bytes
}

/// Reads the payload length and the sequence number of a packet's header.
pub(crate) fn header(bytes: &[u8]) -> Option<(usize, u8)> {
    let &[a, b, c, sequence] = bytes.first_chunk::<HEADER>()?;
    Some((u32::from_le_bytes([a, b, c, 0]) as usize, sequence))
}

pub(crate) fn put_int(out: &mut Vec<u8>, n: u64) {
    let (mark, width) = match n {
        0..=250 => return out.push(n as u8),
        251..=0xFFFF => (0xFC, 2),
        0x1_0000..=0xFF_FFFF => (0xFD, 3),
        _ => (0xFE, 8),
    };
    out.push(mark);
    out.extend_from_slice(&n.to_le_bytes()[..width]);
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_int(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// An error as a server sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    pub code: u16,
    /// The SQLSTATE, five bytes.
    pub sqlstate: String,
    pub message: String,
}

impl SqlError {
    pub(crate) fn new(code: u16, sqlstate: &str, message: &str) -> Self {
        SqlError { code, sqlstate: sqlstate.to_owned(), message: message.to_owned() }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.sqlstate.len() == 5 {
            return Ok(());
        }
        let (code, sqlstate) = (self.code, &self.sqlstate);
        Err(Error::usage(format!("canned error {code}: SQLSTATE '{sqlstate}' has not five bytes")))
    }

    /// Makes the payload; an `early` one, before the client has said what it understands, has no SQLSTATE.
    pub(crate) fn payload(&self, early: bool) -> Vec<u8> {
        let [low, high] = self.code.to_le_bytes();
        let mut out = vec![0xFF, low, high];
        if !early {
            out.push(b'#');
            out.extend_from_slice(self.sqlstate.as_bytes());
        }
        out.extend_from_slice(self.message.as_bytes());
        out
    }
}

fn ok_like(mark: u8, affected: u64) -> Vec<u8> {
    let mut out = vec![mark];
    put_int(&mut out, affected);
    put_int(&mut out, 0); // last insert id
    out.extend_from_slice(&AUTOCOMMIT.to_le_bytes());
    out.extend_from_slice(&[0, 0]); // warnings
    out
}

pub(crate) fn ok(affected: u64) -> Vec<u8> {
    ok_like(0x00, affected)
}

/// Makes the end of columns (never after `CLIENT_DEPRECATE_EOF`) or of rows.
pub(crate) fn eof(deprecate_eof: bool) -> Vec<u8> {
    if deprecate_eof {
        return ok_like(0xFE, 0);
    }
    let [low, high] = AUTOCOMMIT.to_le_bytes();
    vec![0xFE, 0, 0, low, high] // 0, 0: warnings
}

/// Makes the definition of a CHAR(120) column.
pub(crate) fn column(name: &str) -> Vec<u8> {
    const STRING: u8 = 0xFE;
    let mut out = Vec::new();
    // Catalog, schema, table twice, name twice.
    for part in ["def", "", "", "", name, name] {
        put_string(&mut out, part.as_bytes());
    }
    out.push(0x0C);
    out.extend_from_slice(&u16::from(CHARSET).to_le_bytes());
    out.extend_from_slice(&480_u32.to_le_bytes());
    out.extend_from_slice(&[STRING, 0, 0, 0, 0, 0]); // type, flags, decimals, filler
    out
}

/// Makes a row of the text or of the binary protocol; `None` is NULL.
pub(crate) fn row(values: &[Option<Vec<u8>>], binary: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if binary {
        // A zero, and a bitmap of the NULLs that starts at bit 2.
        out.resize(1 + (values.len() + 2).div_ceil(8), 0);
    }
    for (i, value) in values.iter().enumerate() {
        match value {
            Some(bytes) => put_string(&mut out, bytes),
            None if binary => out[1 + (i + 2) / 8] |= 1 << ((i + 2) % 8),
            None => out.push(0xFB),
        }
    }
    out
}

/// The read buffer of a connection: bytes in, whole commands out.
pub(crate) struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The last read filled the buffer, so more is likely waiting than fits.
    crowded: bool,
    /// What is left of the packet that is coming, whether another one continues it, and its number.
    coming: Option<(usize, bool, u8)>,
    /// The command so far, at most [`KEPT`] bytes of it.
    command: Vec<u8>,
}

impl Input {
    pub(crate) fn new() -> Self {
        let (buffer, command) = (vec![0; SMALL], Vec::new());
        Input { buffer, start: 0, end: 0, crowded: false, coming: None, command }
    }

    /// Reads once; an error at the client's end.
    pub(crate) async fn fill(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        let n = socket.read(self.room()).await?;
        self.filled(n);
        if n == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Makes room for the next read: never none.
    fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.end == self.buffer.len() && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        // Grows with what arrives, never with what a header announces.
        if self.end == self.buffer.len() || self.crowded {
            let size = (self.buffer.len() * 2).min(KEPT + HEADER);
            self.buffer.resize(size, 0);
        }
        &mut self.buffer[self.end..]
    }

    fn filled(&mut self, n: usize) {
        self.end += n;
        self.crowded = self.end == self.buffer.len();
    }

    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(crate) fn consume(&mut self, n: usize) {
        self.start += n;
    }

    /// Takes the next whole command, if it is here, with the number of its last packet.
    pub(crate) fn next_command(&mut self) -> Option<(u8, &[u8])> {
        loop {
            if let None | Some((0, true, _)) = self.coming {
                let (length, sequence) = header(self.available())?;
                if self.coming.is_none() {
                    self.command.clear();
                }
                self.start += HEADER;
                self.coming = Some((length, length == PAYLOAD_MAX, sequence));
            }
            let (left, more, sequence) = self.coming?;
            let here = &self.buffer[self.start..self.end];
            let taken = &here[..here.len().min(left)];
            let wanted = taken.len().min(KEPT - self.command.len());
            self.command.extend_from_slice(&taken[..wanted]);
            self.start += taken.len();
            let left = left - taken.len();
            self.coming = Some((left, more, sequence));
            if left > 0 {
                return None;
            }
            if !more {
                break;
            }
        }
        let (_, _, sequence) = self.coming.take()?;
        Some((sequence, &self.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_the_shortest_form() {
        let encoded = |n| {
            let mut out = Vec::new();
            put_int(&mut out, n);
            out
        };
        assert_eq!(encoded(250), [250]);
        assert_eq!(encoded(251), [0xFC, 251, 0]);
        assert_eq!(encoded(0x1_0000), [0xFD, 0, 0, 1]);
        assert_eq!(encoded(1 << 40), [0xFE, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_full_packet_is_followed_by_another() {
        let bytes = packet(255, &vec![7; PAYLOAD_MAX]);
        assert_eq!(header(&bytes), Some((PAYLOAD_MAX, 255)));
        assert_eq!(bytes.get(HEADER + PAYLOAD_MAX..), Some(&[0, 0, 0, 0][..]));
    }

    #[test]
    fn nulls_are_marked_in_both_protocols() {
        let values = [None, Some(b"ab".to_vec())];
        assert_eq!(row(&values, false), [0xFB, 2, b'a', b'b']);
        assert_eq!(row(&values, true), [0, 0b100, 2, b'a', b'b']);
    }

    /// Feeds bytes in pieces, as reads of that size would, and collects the commands.
    fn commands(bytes: &[u8], piece: usize) -> Vec<(usize, u8, u8)> {
        let mut input = Input::new();
        let mut seen = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = input.room();
            let n = piece.min(room.len()).min(rest.len());
            room[..n].copy_from_slice(&rest[..n]);
            input.filled(n);
            rest = &rest[n..];
            while let Some((sequence, payload)) = input.next_command() {
                seen.push((payload.len(), payload.first().copied().unwrap_or(0), sequence));
            }
            assert!(input.buffer.len() <= KEPT + HEADER);
        }
        seen
    }

    #[test]
    fn commands_come_out_whole_however_they_arrive() {
        let mut bytes = Vec::new();
        for (byte, size) in [(1, 1), (2, 0), (3, 5_000), (4, KEPT), (5, KEPT + 1), (6, 3)] {
            bytes.extend(packet(byte, &vec![byte; size]));
        }
        let expected = [(1, 1, 1), (0, 0, 2), (5_000, 3, 3), (KEPT, 4, 4), (KEPT, 5, 5), (3, 6, 6)];
        for piece in [1, 7, 1_000, usize::MAX] {
            assert_eq!(commands(&bytes, piece), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn a_command_of_several_packets_is_one() {
        let mut bytes = packet(0, &vec![9; PAYLOAD_MAX + 10]);
        bytes.extend(packet(0, &vec![8; PAYLOAD_MAX]));
        bytes.extend(packet(0, b"x"));
        let expected = [(KEPT, 9, 1), (KEPT, 8, 1), (1, b'x', 0)];
        assert_eq!(commands(&bytes, 100_000), expected);
    }
}
