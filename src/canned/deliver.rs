//! Answers that go wrong on their way.

use std::io;
use std::time::Duration;

use super::fault::Action;
use super::session::{Flow, Session};
use super::wire::{self, HEADER};

impl Session {
    /// Sends an answer as a fault wants it.
    pub(crate) async fn deliver(&mut self, mut reply: Vec<u8>, action: Action) -> io::Result<Flow> {
        // What was answered before is not part of the fault.
        self.flush().await?;
        self.shared.counters.faults.add(1);
        match action {
            Action::Stall(time) => {
                tokio::time::sleep(time).await;
                self.socket.write_all(&reply).await?;
            }
            Action::StallAll(time) => {
                self.shared.stall(time);
                self.shared.wait_for_stall().await;
                self.socket.write_all(&reply).await?;
            }
            Action::Close => return Ok(Flow::End),
            Action::Reset => {
                self.socket.reset_on_drop()?;
                return Ok(Flow::End);
            }
            Action::HalfClose => {
                self.socket.finish().await?;
                self.socket.drain().await?;
                return Ok(Flow::End);
            }
            Action::HalfPacketThenStall => {
                self.socket.write_all(half(&reply)).await?;
                self.socket.drain().await?;
                return Ok(Flow::End);
            }
            Action::HalfPacketThenClose => {
                self.socket.write_all(half(&reply)).await?;
                return Ok(Flow::End);
            }
            Action::OneByteAtATime => {
                for byte in reply {
                    self.socket.write_all(&[byte]).await?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            Action::Garbage(bytes) => self.socket.write_all(&bytes).await?,
            Action::WrongLength(by) => {
                relabel(&mut reply, |length, sequence| {
                    (length.saturating_add_signed(by), sequence)
                });
                self.socket.write_all(&reply).await?;
            }
            Action::WrongSequence => {
                relabel(&mut reply, |length, sequence| (length, sequence.wrapping_add(7)));
                self.socket.write_all(&reply).await?;
            }
            Action::Error(error) => {
                self.socket.write_all(&wire::packet(1, &wire::error(&error))).await?;
            }
            Action::TrailingPackets(count) => {
                let last = last_sequence(&reply);
                for i in 1..=count {
                    reply.extend(wire::packet(last.wrapping_add(i as u8), &wire::ok(0)));
                }
                self.socket.write_all(&reply).await?;
            }
            Action::RowsInstead(_)
            | Action::AffectedInstead(_)
            | Action::RowContent(_)
            | Action::OversizedRow(_)
            | Action::HugeColumnCount(_)
            | Action::HangAtGreeting
            | Action::HangAtAuth
            | Action::EmptyAuthSwitchNonce
            | Action::PublicKey(_)
            | Action::Protocol9Greeting
            | Action::Pre41Greeting => self.socket.write_all(&reply).await?,
        }
        Ok(Flow::Continue)
    }
}

/// The header and half of the payload of the first packet.
fn half(reply: &[u8]) -> &[u8] {
    let length = wire::header(reply).map_or(0, |(length, _)| length);
    reply.get(..HEADER + length / 2).unwrap_or(reply)
}

/// Writes another header over the first one.
fn relabel(reply: &mut [u8], change: impl Fn(u32, u8) -> (u32, u8)) {
    let Some((length, sequence)) = wire::header(reply) else { return };
    let (length, sequence) = change(length as u32, sequence);
    let [a, b, c, _] = length.min(0xFF_FFFF).to_le_bytes();
    if let Some(header) = reply.first_chunk_mut::<HEADER>() {
        *header = [a, b, c, sequence];
    }
}

/// The number of the last packet.
fn last_sequence(mut reply: &[u8]) -> u8 {
    let mut last = 0;
    while let Some((length, sequence)) = wire::header(reply) {
        last = sequence;
        reply = reply.get(HEADER + length..).unwrap_or_default();
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_bent_and_nothing_else() {
        let mut reply = wire::packet(1, b"abcd");
        assert_eq!(half(&reply), [4, 0, 0, 1, b'a', b'b']);
        relabel(&mut reply, |length, sequence| (length + 2, sequence + 1));
        assert_eq!(reply, [6, 0, 0, 2, b'a', b'b', b'c', b'd']);
        relabel(&mut [], |length, sequence| (length, sequence));
        reply = wire::packet(3, b"x");
        reply.extend(wire::packet(4, b""));
        assert_eq!(last_sequence(&reply), 4);
    }
}
