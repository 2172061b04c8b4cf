//! One connection: read, decide, answer.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::command::{Commands, Response};
use super::fault::Action;
use super::script::Service;
use super::shared::Shared;
use super::wire::{self, HEADER, Input, PAYLOAD_MAX, SqlError};

/// Answers beyond this are sent before more requests are looked at.
const UNSENT_MAX: usize = 64 << 10;

/// Makes the error that ends a session in good order.
pub(crate) fn over() -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}

/// A connection and what the server knows about it.
pub(crate) struct Session {
    pub(crate) shared: Rc<Shared>,
    pub(crate) socket: TcpStream,
    pub(crate) input: Input,
    /// Answers that are not sent yet.
    pub(crate) out: Vec<u8>,
    pub(crate) id: u32,
    pub(crate) commands: Commands,
    random: Xoshiro256PlusPlus,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.count(|counts| counts.open -= 1);
    }
}

impl Session {
    pub(crate) fn new(shared: Rc<Shared>, socket: TcpStream) -> Self {
        let id = shared.count(|counts| {
            counts.connections += 1;
            counts.open += 1;
            counts.open_max = counts.open_max.max(counts.open);
            counts.connections as u32
        });
        let seed = match shared.script.service {
            Service::Exponential { seed, .. } => seed,
            Service::Instant | Service::Constant(_) => 0,
        };
        Session {
            random: Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(u64::from(id))),
            commands: Commands::new(Rc::clone(&shared)),
            shared,
            socket,
            input: Input::new(),
            out: Vec::new(),
            id,
        }
    }

    /// Answers commands until the client goes.
    pub(crate) async fn serve(&mut self) -> io::Result<()> {
        loop {
            while let Some((_, command)) = self.input.next_command() {
                let response = self.commands.decide(command);
                self.carry_out(response).await?;
                if self.out.len() > UNSENT_MAX {
                    self.flush().await?;
                }
            }
            self.flush().await?;
            self.input.fill(&mut self.socket).await?;
        }
    }

    async fn carry_out(&mut self, response: Response) -> io::Result<()> {
        if !self.shared.calm {
            self.shared.wait_for_stall().await;
        }
        match response {
            Response::Nothing => {}
            Response::Quit => {
                self.flush().await?;
                return Err(over());
            }
            Response::Reply(reply, None) => self.out.extend(reply),
            Response::Reply(reply, Some(action)) => self.deliver(reply, action).await?,
            Response::Answer { plan, dialect, action } => {
                if !self.shared.calm {
                    self.take_time().await?;
                }
                let replies = &self.shared.replies;
                let mut local = replies.is_local(plan);
                let usual = replies.bytes(plan, dialect);
                match action {
                    None => self.out.extend_from_slice(usual),
                    Some(action) => {
                        local &= action.keeps_the_answer();
                        let twisted = replies.twisted(&action, plan, dialect);
                        self.deliver(twisted.unwrap_or_else(|| usual.to_vec()), action).await?;
                    }
                }
                if local {
                    self.take_file().await?;
                }
            }
        }
        Ok(())
    }

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

    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.socket.write_all(&self.out).await?;
            self.out.clear();
        }
        Ok(())
    }

    /// Sends an error as the greeting's place would hold it, and ends the session.
    pub(crate) async fn refuse_early(&mut self, sequence: u8, error: &SqlError) -> io::Result<()> {
        self.out.extend(wire::packet(sequence, &error.payload(true)));
        self.flush().await?;
        Err(over())
    }

    /// Reads and forgets until the client goes, and ends the session.
    pub(crate) async fn drain(&mut self) -> io::Result<()> {
        tokio::io::copy(&mut self.socket, &mut tokio::io::sink()).await?;
        Err(over())
    }

    /// Sends an answer as a fault wants it; some faults end the session.
    pub(crate) async fn deliver(&mut self, mut reply: Vec<u8>, action: Action) -> io::Result<()> {
        // What was answered before is not part of the fault.
        self.flush().await?;
        match &action {
            Action::Stall(time) => tokio::time::sleep(*time).await,
            Action::StallAll(time) => {
                self.shared.stall(*time);
                self.shared.wait_for_stall().await;
            }
            Action::Close | Action::Reset | Action::HalfClose => reply.clear(),
            Action::HalfPacketThenStall | Action::HalfPacketThenClose => {
                reply.truncate(half(&reply));
            }
            Action::OneByteAtATime => {
                for byte in reply.drain(..) {
                    self.socket.write_all(&[byte]).await?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            Action::Garbage(bytes) => reply.clone_from(bytes),
            Action::WrongLength(by) => relabel(&mut reply, *by, 0),
            Action::WrongSequence => relabel(&mut reply, 0, 7),
            Action::Error(error) => reply = wire::packet(1, &error.payload(false)),
            Action::TrailingPackets(count) => {
                let last = last_sequence(&reply);
                for i in 1..=*count {
                    reply.extend(wire::packet(last.wrapping_add(i as u8), &wire::ok(0)));
                }
            }
            _ => {}
        }
        self.socket.write_all(&reply).await?;
        match action {
            Action::Close | Action::HalfPacketThenClose => return Err(over()),
            Action::Reset => {
                self.socket.set_zero_linger()?;
                return Err(over());
            }
            Action::HalfClose => self.socket.shutdown().await?,
            Action::HalfPacketThenStall => {}
            _ => return Ok(()),
        }
        self.drain().await
    }

    /// Sends the request that waits in `out`, takes the stream up to its empty packet, and
    /// answers OK with the number of lines.
    async fn take_file(&mut self) -> io::Result<()> {
        self.flush().await?;
        // Of the packet that is coming; a full packet's successor may be empty.
        let (mut left, mut full) = (0, false);
        let mut lines = 0;
        loop {
            let here = self.input.available();
            if left > 0 && !here.is_empty() {
                let taken = &here[..here.len().min(left)];
                let n = taken.len();
                lines += newlines(taken);
                left -= n;
                self.shared.count(|counts| counts.local_bytes += n as u64);
                self.input.consume(n);
            } else if let (0, Some((length, sequence))) = (left, wire::header(here)) {
                self.input.consume(HEADER);
                if length == 0 && !full {
                    self.out.extend(wire::packet(sequence.wrapping_add(1), &wire::ok(lines)));
                    return Ok(());
                }
                left = length;
                full = length == PAYLOAD_MAX;
            } else {
                self.input.fill(&mut self.socket).await?;
            }
        }
    }
}

/// Draws from the exponential distribution, by 64 random bits.
fn exponential(mean: Duration, bits: u64) -> Duration {
    // 53 bits make a number in [0, 1); its complement is never zero.
    let uniform = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    mean.mul_f64(-libm::log1p(-uniform))
}

/// Counts the bytes of the header and half of the payload of the first packet.
fn half(reply: &[u8]) -> usize {
    wire::header(reply).map_or(0, |(length, _)| HEADER + length / 2)
}

fn relabel(reply: &mut [u8], longer: i32, later: u8) {
    let Some((length, sequence)) = wire::header(reply) else { return };
    let length = (length as u32).saturating_add_signed(longer).min(PAYLOAD_MAX as u32);
    reply[..HEADER - 1].copy_from_slice(&length.to_le_bytes()[..HEADER - 1]);
    reply[HEADER - 1] = sequence.wrapping_add(later);
}

fn last_sequence(mut reply: &[u8]) -> u8 {
    let mut last = 0;
    while let Some((length, sequence)) = wire::header(reply) {
        last = sequence;
        reply = &reply[HEADER + length..];
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
        assert_eq!(half(&reply), 6);
        relabel(&mut reply, 2, 1);
        assert_eq!(reply, [6, 0, 0, 2, b'a', b'b', b'c', b'd']);
        relabel(&mut [], 0, 0);
        reply = wire::packet(3, b"x");
        reply.extend(wire::packet(4, b""));
        assert_eq!(last_sequence(&reply), 4);
    }
}
