//! The client's side of LOAD DATA LOCAL: counted, not kept.

use std::io;

use super::session::{Flow, Session};
use super::wire::{self, HEADER, PAYLOAD_MAX};

impl Session {
    /// Sends the request that waits in `out`, takes the stream up to its empty packet, and
    /// answers OK with the number of lines.
    pub(crate) async fn take_file(&mut self) -> io::Result<Flow> {
        self.flush().await?;
        let mut lines = 0;
        // The packet's payload that is still to come; a full packet's successor may be empty.
        let mut left = 0;
        let mut full = false;
        loop {
            let available = self.input.available();
            if left > 0 && !available.is_empty() {
                let taken = available.get(..left).unwrap_or(available);
                lines += newlines(taken);
                let n = taken.len();
                left -= n;
                self.shared.counters.local_bytes.add(n as u64);
                self.input.consume(n);
            } else if let (0, Some((length, sequence))) = (left, wire::header(available)) {
                self.input.consume(HEADER);
                if length == 0 && !full {
                    self.out.extend(wire::packet(sequence.wrapping_add(1), &wire::ok(lines)));
                    return Ok(Flow::Continue);
                }
                left = length;
                full = length == PAYLOAD_MAX;
            } else if self.input.fill(&mut self.socket).await? == 0 {
                return Ok(Flow::End);
            }
        }
    }
}

#[allow(clippy::naive_bytecount, reason = "the compiler makes vector code of it")]
fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}
