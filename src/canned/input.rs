//! What a client sends: bytes in, whole commands out, bounded memory.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::wire::{self, HEADER, PAYLOAD_MAX};

/// Of a longer command the rest is read and thrown away.
pub(crate) const KEPT: usize = 256 << 10;
/// The first size of the buffer: 10,000 connections must fit in memory.
const SMALL: usize = 1 << 10;

/// The read buffer of a connection.
#[derive(Debug)]
pub(crate) struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The last read filled the buffer, so more is likely waiting than fits.
    crowded: bool,
    long: Option<Long>,
    kept: Vec<u8>,
}

/// A command that does not fit into the buffer.
#[derive(Debug)]
struct Long {
    left: usize,
    /// Another packet continues this one.
    more: bool,
    sequence: u8,
}

/// A whole command, to be looked at with [`Input::payload`] before the next read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    start: usize,
    end: usize,
    long: bool,
    /// The number of its last packet.
    pub(crate) sequence: u8,
}

impl Input {
    pub(crate) fn new() -> Self {
        Input {
            buffer: vec![0; SMALL],
            start: 0,
            end: 0,
            crowded: false,
            long: None,
            kept: Vec::new(),
        }
    }

    /// Reads once; 0 at the client's end.
    pub(crate) async fn fill(&mut self, socket: &mut Socket) -> io::Result<usize> {
        self.make_room();
        let Some(room) = self.buffer.get_mut(self.end..) else { return Ok(0) };
        let n = socket.read(room).await?;
        self.crowded = n == room.len();
        self.end += n;
        Ok(n)
    }

    fn make_room(&mut self) {
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
            self.buffer.resize(size.max(self.buffer.len()), 0);
        }
    }

    /// What has been read and not yet consumed.
    pub(crate) fn available(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Forgets the first `n` available bytes.
    pub(crate) fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
    }

    /// The next whole command, if it is here.
    pub(crate) fn next_frame(&mut self) -> Option<Frame> {
        if self.long.is_none() {
            let (length, sequence) = wire::header(self.available())?;
            if length <= KEPT {
                let start = self.start + HEADER;
                let end = start + length;
                if end > self.end {
                    return None;
                }
                self.start = end;
                return Some(Frame { start, end, long: false, sequence });
            }
            self.kept.clear();
            self.consume(HEADER);
            self.long = Some(Long { left: length, more: length == PAYLOAD_MAX, sequence });
        }
        self.next_long()
    }

    fn next_long(&mut self) -> Option<Frame> {
        loop {
            let long = self.long.as_mut()?;
            let here = self.buffer.get(self.start..self.end).unwrap_or_default();
            let taken = here.get(..long.left).unwrap_or(here);
            let wanted = taken.len().min(KEPT.saturating_sub(self.kept.len()));
            self.kept.extend(taken.iter().take(wanted));
            long.left -= taken.len();
            self.start += taken.len();
            if long.left > 0 {
                return None;
            }
            if !long.more {
                let sequence = long.sequence;
                self.long = None;
                return Some(Frame { start: 0, end: 0, long: true, sequence });
            }
            let (left, sequence) = wire::header(self.available())?;
            self.consume(HEADER);
            self.long = Some(Long { left, more: left == PAYLOAD_MAX, sequence });
        }
    }

    /// The bytes of a frame, at most [`KEPT`] of them.
    pub(crate) fn payload(&self, frame: &Frame) -> &[u8] {
        if frame.long {
            return &self.kept;
        }
        self.buffer.get(frame.start..frame.end).unwrap_or_default()
    }
}

/// A client's socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Reads once; 0 at the end. Less than asked for costs one system call only.
    pub(crate) async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(room).await,
            Socket::Unix(stream) => stream.read(room).await,
        }
    }

    /// Writes all of it.
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.write_all(bytes).await,
            Socket::Unix(stream) => stream.write_all(bytes).await,
        }
    }

    /// Makes the coming drop a reset instead of an orderly end, where there is such a thing.
    pub(crate) fn reset_on_drop(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_zero_linger(),
            Socket::Unix(_) => Ok(()),
        }
    }

    /// Closes the direction to the client.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.shutdown().await,
            Socket::Unix(stream) => stream.shutdown().await,
        }
    }

    /// Reads and forgets until the client goes.
    pub(crate) async fn drain(&mut self) -> io::Result<()> {
        let mut room = [0; 512];
        while self.read(&mut room).await? > 0 {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds bytes in pieces, as reads of that size would, and collects the commands.
    fn commands(bytes: &[u8], piece: usize) -> Vec<(usize, u8, u8)> {
        let mut input = Input::new();
        let mut seen = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            input.make_room();
            let room = input.buffer.len() - input.end;
            let n = piece.min(room).min(rest.len());
            input.buffer[input.end..input.end + n].copy_from_slice(&rest[..n]);
            input.crowded = n == room;
            input.end += n;
            rest = &rest[n..];
            while let Some(frame) = input.next_frame() {
                let payload = input.payload(&frame);
                seen.push((payload.len(), payload.first().copied().unwrap_or(0), frame.sequence));
            }
            assert!(input.buffer.len() <= KEPT + HEADER);
        }
        seen
    }

    #[test]
    fn commands_come_out_whole_however_they_arrive() {
        let mut bytes = Vec::new();
        for (byte, size) in [(1, 1), (2, 0), (3, 5_000), (4, KEPT), (5, KEPT + 1), (6, 3)] {
            bytes.extend(wire::packet(byte, &vec![byte; size]));
        }
        let expected = [(1, 1, 1), (0, 0, 2), (5_000, 3, 3), (KEPT, 4, 4), (KEPT, 5, 5), (3, 6, 6)];
        for piece in [1, 7, 1_000, usize::MAX] {
            assert_eq!(commands(&bytes, piece), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn a_command_of_several_packets_is_one() {
        let mut bytes = wire::packet(0, &vec![9; PAYLOAD_MAX + 10]);
        bytes.extend(wire::packet(0, &vec![8; PAYLOAD_MAX]));
        bytes.extend(wire::packet(0, b"x"));
        let expected = [(KEPT, 9, 1), (KEPT, 8, 1), (1, b'x', 0)];
        assert_eq!(commands(&bytes, 100_000), expected);
    }
}
