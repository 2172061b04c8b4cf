//! One connection: read, decide, answer.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::command::{self, Statements, Step};
use super::fault::Action;
use super::input::Input;
use super::replies::Dialect;
use super::script::{Service, SqlError};
use super::server::Shared;
use super::socket::Socket;
use super::sql::Plan;
use super::{greet, wire};

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

    /// Serves it to its end. Every failure is the client's going away, which needs no report.
    pub(crate) async fn run(mut self) {
        if let Ok(Flow::Continue) = greet::greet(&mut self).await {
            self.shared.counters.sessions.add(1);
            let _ = self.serve().await;
        }
    }

    async fn serve(&mut self) -> io::Result<()> {
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

    async fn carry_out(&mut self, step: Step) -> io::Result<Flow> {
        if !self.shared.calm {
            self.shared.wait_for_stall().await;
        }
        match step {
            Step::Nothing => {}
            Step::Quit => return Ok(Flow::End),
            Step::Ok => self.push(&wire::ok(0)),
            Step::Eof => self.push(&wire::eof(self.deprecate_eof)),
            Step::Refuse(error) => self.push(&wire::error(&error)),
            Step::Answer { plan, binary, action } => {
                let dialect = Dialect { binary, deprecate_eof: self.deprecate_eof };
                if !self.shared.calm {
                    self.take_time().await?;
                }
                return self.answer(plan, dialect, action).await;
            }
            Step::Describe { plan, id, parameters, action } => {
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
        plan: Plan,
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
}

/// A draw from the exponential distribution, from 64 random bits.
fn exponential(mean: Duration, bits: u64) -> Duration {
    // 53 bits make a number in [0, 1); its complement is never zero.
    let uniform = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    mean.mul_f64(-libm::log1p(-uniform))
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
}
