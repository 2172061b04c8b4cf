//! One connection: read, decide, answer.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::command::{self, Response, Statements};
use super::fault::Action;
use super::input::{Input, Socket};
use super::replies::Dialect;
use super::script::Service;
use super::shared::Shared;
use super::sql::AnswerKind;
use super::wire::{self, HEADER, PAYLOAD_MAX, SqlError};

/// Answers beyond this are sent before more requests are looked at.
const UNSENT_MAX: usize = 64 << 10;

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    End,
}

/// A connection and what the server knows about it.
pub(crate) struct Session {
    pub(crate) shared: Rc<Shared>,
    pub(crate) socket: Socket,
    pub(crate) input: Input,
    /// Answers that are not sent yet.
    pub(crate) out: Vec<u8>,
    /// The connection's number.
    pub(crate) id: u32,
    pub(crate) deprecate_eof: bool,
    statements: Statements,
    random: Xoshiro256PlusPlus,
}

impl Drop for Session {
    fn drop(&mut self) {
        let open = &self.shared.counters.open;
        open.set(open.get().saturating_sub(1));
    }
}

impl Session {
    /// A connection that was just accepted.
    pub(crate) fn new(shared: Rc<Shared>, socket: Socket) -> Self {
        let counts = &shared.counters;
        counts.connections.add(1);
        counts.open.add(1);
        counts.open_max.set(counts.open_max.get().max(counts.open.get()));
        let id = counts.connections.get() as u32;
        let seed = match shared.script.service {
            Service::Exponential { seed, .. } => seed,
            Service::Instant | Service::Constant(_) => 0,
        };
        Session {
            random: Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(u64::from(id))),
            shared,
            socket,
            input: Input::new(),
            out: Vec::new(),
            id,
            deprecate_eof: false,
            statements: Statements::default(),
        }
    }

    /// Answers commands until the client goes.
    pub(crate) async fn serve(&mut self) -> io::Result<()> {
        loop {
            while let Some(frame) = self.input.next_frame() {
                let payload = self.input.payload(&frame);
                let step = command::decide(&self.shared, &mut self.statements, payload);
                if self.carry_out(step).await? == Flow::End {
                    return self.flush().await;
                }
                if self.out.len() > UNSENT_MAX {
                    self.flush().await?;
                }
            }
            self.flush().await?;
            if self.input.fill(&mut self.socket).await? == 0 {
                return Ok(());
            }
        }
    }

    async fn carry_out(&mut self, step: Response) -> io::Result<Flow> {
        if !self.shared.calm {
            self.shared.wait_for_stall().await;
        }
        match step {
            Response::Nothing => {}
            Response::Quit => return Ok(Flow::End),
            Response::Ok => self.push(&wire::ok(0)),
            Response::Eof => self.push(&wire::eof(self.deprecate_eof)),
            Response::Refuse(error) => self.push(&wire::error(&error)),
            Response::Answer { plan, binary, action } => {
                let dialect = Dialect { binary, deprecate_eof: self.deprecate_eof };
                if !self.shared.calm {
                    self.take_time().await?;
                }
                return self.answer(plan, dialect, action).await;
            }
            Response::Describe { plan, id, parameters, action } => {
                let reply = self.shared.replies.prepared(plan, id, parameters, self.deprecate_eof);
                if let Some(action) = action {
                    return self.deliver(reply, action).await;
                }
                self.out.extend_from_slice(&reply);
            }
        }
        Ok(Flow::Continue)
    }

    async fn answer(
        &mut self,
        plan: AnswerKind,
        dialect: Dialect,
        action: Option<Action>,
    ) -> io::Result<Flow> {
        let replies = &self.shared.replies;
        let mut local = replies.is_local(plan);
        if let Some(action) = action {
            local &= action.keeps_the_answer();
            let reply = replies
                .twisted(&action, plan, dialect)
                .unwrap_or_else(|| replies.bytes(plan, dialect).to_vec());
            if self.deliver(reply, action).await? == Flow::End {
                return Ok(Flow::End);
            }
        } else {
            self.out.extend_from_slice(replies.bytes(plan, dialect));
        }
        if local { self.take_file().await } else { Ok(Flow::Continue) }
    }

    /// The statement's service time.
    async fn take_time(&mut self) -> io::Result<()> {
        let time = match self.shared.script.service {
            Service::Instant => return Ok(()),
            Service::Constant(time) => time,
            Service::Exponential { mean, .. } => exponential(mean, self.random.next_u64()),
        };
        let Some(deadline) = Instant::now().checked_add(time) else { return Ok(()) };
        // What was answered before must not wait for this one.
        self.flush().await?;
        self.shared.clock.sleep_until(deadline).await;
        Ok(())
    }

    fn push(&mut self, payload: &[u8]) {
        self.out.extend(wire::packet(1, payload));
    }

    /// Sends what is not sent yet.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.socket.write_all(&self.out).await?;
            self.out.clear();
        }
        Ok(())
    }

    /// Sends an error as the greeting's place would hold it.
    pub(crate) async fn refuse_early(&mut self, sequence: u8, error: &SqlError) -> io::Result<()> {
        self.out.extend(wire::packet(sequence, &wire::early_error(error)));
        self.flush().await
    }

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

    /// Sends the request that waits in `out`, takes the stream up to its empty packet, and
    /// answers OK with the number of lines.
    async fn take_file(&mut self) -> io::Result<Flow> {
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

/// A draw from the exponential distribution, from 64 random bits.
fn exponential(mean: Duration, bits: u64) -> Duration {
    // 53 bits make a number in [0, 1); its complement is never zero.
    let uniform = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    mean.mul_f64(-libm::log1p(-uniform))
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

#[allow(clippy::naive_bytecount, reason = "the compiler makes vector code of it")]
fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_times_have_their_mean() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mean = Duration::from_micros(200);
        let n = 100_000;
        let sum: Duration = (0..n).map(|_| exponential(mean, random.next_u64())).sum();
        let measured = sum.as_secs_f64() / f64::from(n);
        assert!((measured / 200e-6 - 1.0).abs() < 0.01, "{measured}");
        assert_eq!(exponential(mean, 0), Duration::ZERO);
        assert!(exponential(mean, u64::MAX) < mean * 40);
    }

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
