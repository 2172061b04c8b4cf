//! Packets: how they are framed, and the few kinds that the server builds.

use crate::error::{Error, Result};

/// The longest payload of one packet; longer ones go on in the next.
pub(crate) const PAYLOAD_MAX: usize = 0xFF_FFFF;
/// A packet's length (3 bytes) and sequence number (1).
pub(crate) const HEADER: usize = 4;

/// `SERVER_STATUS_AUTOCOMMIT`.
pub(crate) const AUTOCOMMIT: u16 = 2;
/// `utf8mb4_general_ci`.
pub(crate) const CHARSET: u8 = 45;

/// Packets with their headers, numbered upwards.
#[derive(Debug)]
pub(crate) struct Packets {
    bytes: Vec<u8>,
    sequence: u8,
}

impl Packets {
    /// No packet yet; the first one gets this number.
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

    /// The bytes for the wire.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// One payload as packets.
pub(crate) fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut packets = Packets::starting_at(sequence);
    packets.push(payload);
    packets.into_bytes()
}

/// The payload length and the sequence number of a packet's header.
pub(crate) fn header(bytes: &[u8]) -> Option<(usize, u8)> {
    let &[a, b, c, sequence] = bytes.first_chunk::<HEADER>()?;
    Some((u32::from_le_bytes([a, b, c, 0]) as usize, sequence))
}

/// A length-encoded integer.
pub(crate) fn put_int(out: &mut Vec<u8>, n: u64) {
    let bytes = n.to_le_bytes();
    let (mark, width) = match n {
        0..=250 => return out.push(n as u8),
        251..=0xFFFF => (0xFC, 2),
        0x1_0000..=0xFF_FFFF => (0xFD, 3),
        _ => (0xFE, 8),
    };
    out.push(mark);
    out.extend(bytes.iter().take(width));
}

/// A length-encoded string.
pub(crate) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_int(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// An error as a server sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// The number, such as 1213.
    pub code: u16,
    /// The SQLSTATE, five bytes.
    pub sqlstate: String,
    /// The message, sent as it is.
    pub message: String,
}

impl SqlError {
    /// An error of these parts.
    pub(crate) fn new(code: u16, sqlstate: &str, message: &str) -> Self {
        SqlError { code, sqlstate: sqlstate.to_owned(), message: message.to_owned() }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.sqlstate.len() == 5 {
            return Ok(());
        }
        Err(Error::usage(format!(
            "canned error {}: SQLSTATE '{}' has not five bytes",
            self.code, self.sqlstate
        )))
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

/// OK.
pub(crate) fn ok(affected: u64) -> Vec<u8> {
    ok_like(0x00, affected)
}

/// The end of columns (never after `CLIENT_DEPRECATE_EOF`) or of rows.
pub(crate) fn eof(deprecate_eof: bool) -> Vec<u8> {
    if deprecate_eof {
        return ok_like(0xFE, 0);
    }
    let mut out = vec![0xFE, 0, 0]; // warnings
    out.extend_from_slice(&AUTOCOMMIT.to_le_bytes());
    out
}

/// An error of the 4.1 protocol.
pub(crate) fn error(error: &SqlError) -> Vec<u8> {
    let mut out = vec![0xFF];
    out.extend_from_slice(&error.code.to_le_bytes());
    out.push(b'#');
    out.extend_from_slice(error.sqlstate.as_bytes());
    out.extend_from_slice(error.message.as_bytes());
    out
}

/// An error before the client has said what it understands: without SQLSTATE.
pub(crate) fn early_error(error: &SqlError) -> Vec<u8> {
    let mut out = vec![0xFF];
    out.extend_from_slice(&error.code.to_le_bytes());
    out.extend_from_slice(error.message.as_bytes());
    out
}

/// The definition of a CHAR(120) column.
pub(crate) fn column(name: &str) -> Vec<u8> {
    const STRING: u8 = 0xFE;
    let mut out = Vec::new();
    put_string(&mut out, b"def");
    for part in ["", "", "", name, name] {
        put_string(&mut out, part.as_bytes()); // schema, table twice, name twice
    }
    out.push(0x0C);
    out.extend_from_slice(&u16::from(CHARSET).to_le_bytes());
    out.extend_from_slice(&480_u32.to_le_bytes());
    out.extend_from_slice(&[STRING, 0, 0, 0, 0, 0]); // type, flags, decimals, filler
    out
}

/// A row of the text protocol; `None` is NULL.
pub(crate) fn text_row<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        match value {
            Some(bytes) => put_string(&mut out, bytes),
            None => out.push(0xFB),
        }
    }
    out
}

/// A row of the binary protocol.
pub(crate) fn binary_row<'a>(values: impl Iterator<Item = Option<&'a [u8]>> + Clone) -> Vec<u8> {
    let mut out = vec![0x00];
    // The bitmap of a result's row starts at bit 2.
    let mut nulls = vec![0_u8; (values.clone().count() + 2).div_ceil(8)];
    for (i, value) in values.clone().enumerate() {
        if let (None, Some(byte)) = (value, nulls.get_mut((i + 2) / 8)) {
            *byte |= 1 << ((i + 2) % 8);
        }
    }
    out.extend(nulls);
    for bytes in values.flatten() {
        put_string(&mut out, bytes);
    }
    out
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
        let values = || [None, Some(&b"ab"[..])].into_iter();
        assert_eq!(text_row(values()), [0xFB, 2, b'a', b'b']);
        assert_eq!(binary_row(values()), [0, 0b100, 2, b'a', b'b']);
    }
}
