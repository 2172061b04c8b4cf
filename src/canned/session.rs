//! One connection of the server, and the state that all connections share.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mysql_common::constants::CapabilityFlags;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::script::{Action, Auth, ERROR, Event, Faults, Script, Service, SqlError, looked_at};
use super::wire::{self, AnswerKind, Dialect, HEADER, Input, PAYLOAD_MAX, Replies};
use crate::observe::Timer;
use crate::workload::pieces;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accepted connections, refused ones included.
    pub connections: u64,
    pub open: u64,
    pub open_max: u64,
    pub sessions: u64,
    pub queries: u64,
    pub prepares: u64,
    /// `COM_STMT_EXECUTE` of a statement that exists.
    pub executes: u64,
    pub closes: u64,
    pub pings: u64,
    /// `COM_RESET_CONNECTION` and `COM_CHANGE_USER`.
    pub resets: u64,
    pub quits: u64,
    /// Statements (of `queries` and `executes`) for the canned row.
    pub selects: u64,
    /// Statements (of `queries` and `executes`) that change one row.
    pub changes: u64,
    /// Commands answered with an error that no script asked for.
    pub refused: u64,
    pub faults: u64,
    /// Commands but a goodbye on connections whose answer a fault has broken.
    pub used_again: u64,
    /// Bytes that clients streamed for LOAD DATA LOCAL.
    pub local_bytes: u64,
}

pub(crate) struct Shared {
    pub(crate) script: Script,
    replies: Replies,
    faults: Faults,
    /// True without faults and service times: nothing ever waits.
    calm: bool,
    counts: Arc<Mutex<Counts>>,
    stalled_until: Cell<Option<Instant>>,
}

impl Shared {
    pub(crate) fn new(script: Script, counts: Arc<Mutex<Counts>>) -> Self {
        let faults = Faults::new(&script.faults);
        Shared {
            replies: Replies::new(&script),
            calm: faults.is_empty() && script.service == Service::Instant,
            faults,
            counts,
            stalled_until: Cell::new(None),
            script,
        }
    }

    /// Updates the counts; readers are rare, so the lock is free.
    pub(crate) fn count<T>(&self, count: impl FnOnce(&mut Counts) -> T) -> T {
        count(&mut self.counts.lock().expect("no count panics"))
    }

    fn fault(&self, event: Event<'_>) -> Option<Action> {
        self.faults.fire(event).inspect(|_| self.count(|counts| counts.faults += 1))
    }

    async fn wait_for_stall(&self) {
        while let Some(until) = self.stalled_until.get() {
            if Instant::now() >= until {
                self.stalled_until.set(None);
                return;
            }
            tokio::time::sleep_until(until.into()).await;
        }
    }
}

const QUIT: u8 = 0x01;
const INIT_DB: u8 = 0x02;
const QUERY: u8 = 0x03;
const PING: u8 = 0x0E;
const CHANGE_USER: u8 = 0x11;
const STMT_PREPARE: u8 = 0x16;
const STMT_EXECUTE: u8 = 0x17;
const STMT_SEND_LONG_DATA: u8 = 0x18;
const STMT_CLOSE: u8 = 0x19;
const STMT_RESET: u8 = 0x1A;
const SET_OPTION: u8 = 0x1B;
const RESET_CONNECTION: u8 = 0x1F;

/// Most statements of one connection: a server's default for all of them together.
const STATEMENTS_MAX: usize = 16_382;

/// A connection's statements. Numbers are never reused, so that a closed statement gives an error.
struct Commands {
    shared: Rc<Shared>,
    deprecate_eof: bool,
    last: u32,
    known: HashMap<u32, Prepared>,
}

struct Prepared {
    plan: AnswerKind,
    /// The beginning of its text, if a fault may ask for it.
    sql: Rc<[u8]>,
}

enum Response {
    Answer { plan: AnswerKind, dialect: Dialect, action: Option<Action> },
    Reply(Vec<u8>, Option<Action>),
}

impl Commands {
    fn decide(&mut self, payload: &[u8]) -> Response {
        let Some((&command, body)) = payload.split_first() else {
            return self.refuse(1835, "HY000", "Malformed communication packet");
        };
        let id = || body.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let shared = &self.shared;
        match command {
            STMT_EXECUTE => match id().and_then(|id| self.known.get(&id)) {
                Some(Prepared { plan, sql }) => self.answer(*plan, true, sql),
                None => self.unknown(id(), "mysqld_stmt_execute"),
            },
            QUERY => self.answer(shared.replies.plan(body), false, body),
            STMT_PREPARE => self.prepare(body),
            STMT_CLOSE => {
                shared.count(|counts| counts.closes += 1);
                id().map(|id| self.known.remove(&id));
                Response::Reply(Vec::new(), None)
            }
            STMT_SEND_LONG_DATA => Response::Reply(Vec::new(), None),
            STMT_RESET if id().is_some_and(|id| self.known.contains_key(&id)) => done(),
            STMT_RESET => self.unknown(id(), "mysql_stmt_reset"),
            PING => {
                shared.count(|counts| counts.pings += 1);
                done()
            }
            INIT_DB => done(),
            SET_OPTION => packet(&wire::eof(self.deprecate_eof)),
            RESET_CONNECTION | CHANGE_USER => {
                shared.count(|counts| counts.resets += 1);
                self.known.clear();
                done()
            }
            QUIT => {
                shared.count(|counts| counts.quits += 1);
                Response::Reply(Vec::new(), Some(Action::Close))
            }
            _ => self.refuse(1047, "08S01", "Unknown command"),
        }
    }

    fn answer(&self, plan: AnswerKind, binary: bool, sql: &[u8]) -> Response {
        self.shared.count(|counts| {
            counts.executes += u64::from(binary);
            counts.queries += u64::from(!binary);
            counts.selects += u64::from(plan == AnswerKind::CANNED);
            counts.changes += u64::from(plan == AnswerKind::CHANGED);
        });
        let dialect = Dialect { binary, deprecate_eof: self.deprecate_eof };
        Response::Answer { plan, dialect, action: self.shared.fault(Event::Statement(sql)) }
    }

    fn prepare(&mut self, sql: &[u8]) -> Response {
        let shared = &self.shared;
        shared.count(|counts| counts.prepares += 1);
        let action = shared.fault(Event::Prepare(sql));
        let plan = shared.replies.plan(sql);
        if shared.replies.is(plan, ERROR) {
            let dialect = Dialect { binary: false, deprecate_eof: self.deprecate_eof };
            return Response::Answer { plan, dialect, action };
        }
        if shared.replies.is(plan, wire::LOCAL) {
            let message = "This command is not supported in the prepared statement protocol yet";
            return self.refuse(1295, "HY000", message);
        }
        let Some(parameters) = parameters(sql) else {
            return self.refuse(1390, "HY000", "Prepared statement contains too many placeholders");
        };
        if self.known.len() >= STATEMENTS_MAX {
            let message = "Can't create more than max_prepared_stmt_count statements (current \
                           value: 16382)";
            return self.refuse(1461, "42000", message);
        }
        let kept = if shared.faults.is_empty() { &[] } else { looked_at(sql) };
        self.last = self.last.wrapping_add(1);
        self.known.insert(self.last, Prepared { plan, sql: Rc::from(kept) });
        let reply = shared.replies.prepare_answer(plan, self.last, parameters, self.deprecate_eof);
        Response::Reply(reply, action)
    }

    fn unknown(&self, id: Option<u32>, place: &str) -> Response {
        let id = id.unwrap_or(0);
        let message = format!("Unknown prepared statement handler ({id}) given to {place}");
        self.refuse(1243, "HY000", &message)
    }

    fn refuse(&self, code: u16, sqlstate: &str, message: &str) -> Response {
        self.shared.count(|counts| counts.refused += 1);
        packet(&SqlError::new(code, sqlstate, message).payload(false))
    }
}

fn done() -> Response {
    packet(&wire::ok(0))
}

fn packet(payload: &[u8]) -> Response {
    Response::Reply(wire::packet(1, payload), None)
}

/// Counts a statement's parameters; `None` above the protocol's 65,535.
fn parameters(sql: &[u8]) -> Option<u16> {
    u16::try_from(pieces(&String::from_utf8_lossy(sql)).len() - 1).ok()
}

/// `LONG_PASSWORD`, `FOUND_ROWS`, `LONG_FLAG`, `CONNECT_WITH_DB`, `LOCAL_FILES`, `IGNORE_SPACE`,
/// `PROTOCOL_41`, `INTERACTIVE`, `TRANSACTIONS`, `SECURE_CONNECTION`, `MULTI_STATEMENTS`, `MULTI_RESULTS`,
/// `PS_MULTI_RESULTS`, `PLUGIN_AUTH`, `CONNECT_ATTRS` and `PLUGIN_AUTH_LENENC_CLIENT_DATA`.
const OFFERED: u32 = 0x3F_A78F;

/// Always the same: no password is checked.
const NONCE: &[u8; 20] = b"canned-nonce-20bytes";
/// Answers beyond this are sent before more requests are read.
const UNSENT_MAX: usize = 64 << 10;

fn session_ended() -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}

pub(crate) struct Session {
    pub(crate) shared: Rc<Shared>,
    socket: TcpStream,
    input: Input,
    out: Vec<u8>,
    /// A fault has broken an answer: nothing that follows can be understood.
    broken: bool,
    id: u32,
    commands: Commands,
    random: Xoshiro256PlusPlus,
    /// For service times: tokio ticks once a millisecond.
    timer: Option<Timer>,
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
        let (commands, known) = (Rc::clone(&shared), HashMap::new());
        Session {
            random: Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(u64::from(id))),
            commands: Commands { shared: commands, deprecate_eof: false, last: 0, known },
            shared,
            socket,
            input: Input::default(),
            out: Vec::new(),
            broken: false,
            id,
            timer: None,
        }
    }

    pub(crate) async fn greet(&mut self) -> io::Result<()> {
        let shared = Rc::clone(&self.shared);
        if shared.count(|counts| counts.open) > u64::from(shared.script.connections_max) {
            shared.count(|counts| counts.refused += 1);
            let error = SqlError::new(1040, "08004", "Too many connections");
            return self.refuse(0, &error, true).await;
        }
        let action = shared.fault(Event::Connect);
        shared.wait_for_stall().await;
        let greeting = wire::packet(0, &greeting(&shared.script, self.id));
        // Packets for the client after its log-in.
        let mut asked = match &shared.script.auth {
            Auth::Switch(plugin) => vec![auth_switch(plugin, NONCE)],
            Auth::Native | Auth::Deny => Vec::new(),
        };
        match &action {
            Some(Action::Error(error)) => return self.refuse(0, error, true).await,
            Some(Action::KeyExchange(nonce, key)) => {
                asked = vec![auth_switch("caching_sha2_password", nonce), vec![1, 4], key.clone()];
            }
            _ => {}
        }
        let hangs = action == Some(Action::HangAtAuth);
        match action {
            Some(action) => self.deliver(greeting, action).await?,
            None => self.out.extend(greeting),
        }
        if hangs {
            self.drain().await?;
            return Err(session_ended());
        }
        self.log_in(asked).await
    }

    async fn log_in(&mut self, asked: Vec<Vec<u8>>) -> io::Result<()> {
        let (mut sequence, login) = self.packet().await?;
        let flags = login.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let flags = CapabilityFlags::from_bits_truncate(flags);
        let knows_4_1 = flags.contains(CapabilityFlags::CLIENT_PROTOCOL_41);
        // TLS is not offered: a client that asks for it all the same cannot be understood.
        if !knows_4_1 || flags.contains(CapabilityFlags::CLIENT_SSL) {
            self.shared.count(|counts| counts.refused += 1);
            let error = SqlError::new(1043, "08S01", "Bad handshake");
            return self.refuse(sequence.wrapping_add(1), &error, true).await;
        }
        self.commands.deprecate_eof = self.shared.script.deprecate_eof
            && flags.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        for payload in asked {
            self.out.extend(wire::packet(sequence.wrapping_add(1), &payload));
            (sequence, _) = self.packet().await?;
        }
        if self.shared.script.auth == Auth::Deny {
            self.shared.count(|counts| counts.refused += 1);
            let error = SqlError::new(1045, "28000", "Access denied (using password: YES)");
            return self.refuse(sequence.wrapping_add(1), &error, false).await;
        }
        self.out.extend(wire::packet(sequence.wrapping_add(1), &wire::ok(0)));
        self.flush().await
    }

    async fn packet(&mut self) -> io::Result<(u8, Vec<u8>)> {
        self.flush().await?;
        loop {
            if let Some((sequence, payload)) = self.input.next_command() {
                return Ok((sequence, payload.to_vec()));
            }
            self.input.fill(&mut self.socket).await?;
        }
    }

    pub(crate) async fn serve(&mut self) -> io::Result<()> {
        loop {
            while let Some((_, command)) = self.input.next_command() {
                if self.broken && command != [QUIT] {
                    self.shared.count(|counts| counts.used_again += 1);
                }
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
            Response::Reply(reply, None) => self.out.extend(reply),
            Response::Reply(reply, Some(action)) => self.deliver(reply, action).await?,
            Response::Answer { plan, dialect, action } => {
                if !self.shared.calm {
                    self.take_time().await?;
                }
                let replies = &self.shared.replies;
                let mut local = replies.is(plan, wire::LOCAL);
                let usual = replies.bytes(plan, dialect);
                match action {
                    None => self.out.extend_from_slice(usual),
                    Some(action) => {
                        let twisted = replies.faulty_answer(&action, plan, dialect);
                        let other = matches!(action, Action::Garbage(_) | Action::Error(_));
                        local &= twisted.is_none() && !other;
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
        // Earlier answers must not wait for this one.
        self.flush().await?;
        let timer = match &self.timer {
            Some(timer) => timer,
            None => self.timer.insert(Timer::new()?),
        };
        timer.set(deadline);
        timer.expired().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.socket.write_all(&self.out).await?;
            self.out.clear();
        }
        Ok(())
    }

    /// Sends an error and ends the session. An `early` one replaces the greeting.
    async fn refuse(&mut self, sequence: u8, error: &SqlError, early: bool) -> io::Result<()> {
        self.out.extend(wire::packet(sequence, &error.payload(early)));
        self.flush().await?;
        Err(session_ended())
    }

    /// Discards input until the client goes; returns its length.
    async fn drain(&mut self) -> io::Result<u64> {
        tokio::io::copy(&mut self.socket, &mut tokio::io::sink()).await
    }

    /// Sends an answer changed by a fault; some faults end the session.
    async fn deliver(&mut self, mut reply: Vec<u8>, action: Action) -> io::Result<()> {
        // The fault does not concern earlier answers.
        self.flush().await?;
        match &action {
            Action::Stall(time) => tokio::time::sleep(*time).await,
            Action::StallAll(time) => {
                self.shared.stalled_until.set(Instant::now().checked_add(*time));
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
            Action::ThenClose(bytes) => reply.extend_from_slice(bytes),
            Action::WrongLength(by) => relabel(&mut reply, *by, 0),
            Action::WrongSequence => relabel(&mut reply, 0, 7),
            Action::Error(error) => reply = wire::packet(1, &error.payload(false)),
            _ => {}
        }
        self.socket.write_all(&reply).await?;
        match action {
            Action::Close | Action::HalfPacketThenClose | Action::ThenClose(_) => {
                return Err(session_ended());
            }
            Action::Reset => {
                self.socket.set_zero_linger()?;
                return Err(session_ended());
            }
            Action::HalfClose => self.socket.shutdown().await?,
            Action::HalfPacketThenStall => {}
            Action::Garbage(_)
            | Action::WrongLength(_)
            | Action::WrongSequence
            | Action::HugeColumnCount(_) => {
                self.broken = true;
                return Ok(());
            }
            _ => return Ok(()),
        }
        let more_than_goodbye = self.drain().await? > (HEADER + 1) as u64;
        self.shared.count(|counts| counts.used_again += u64::from(more_than_goodbye));
        Err(session_ended())
    }

    /// Sends the waiting request, reads the stream up to its empty packet, and answers OK with the number of lines.
    async fn take_file(&mut self) -> io::Result<()> {
        self.flush().await?;
        let (mut length, mut lines) = (0, 0);
        loop {
            let ended = self.input.take(|part| {
                length += part.len();
                lines += newlines(part);
                self.shared.count(|counts| counts.local_bytes += part.len() as u64);
            });
            match ended {
                None => self.input.fill(&mut self.socket).await?,
                Some(_) if length > 0 => length = 0,
                Some(sequence) => {
                    self.out.extend(wire::packet(sequence.wrapping_add(1), &wire::ok(lines)));
                    return Ok(());
                }
            }
        }
    }
}

/// Draws from the exponential distribution with 64 random bits.
fn exponential(mean: Duration, bits: u64) -> Duration {
    // 53 bits make a number in [0, 1); its complement is never zero.
    let uniform = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    mean.mul_f64(-libm::log1p(-uniform))
}

fn half(reply: &[u8]) -> usize {
    wire::header(reply).map_or(0, |(length, _)| HEADER + length / 2)
}

fn relabel(reply: &mut [u8], longer: i32, later: u8) {
    let Some((length, sequence)) = wire::header(reply) else { return };
    let length = (length as u32).saturating_add_signed(longer).min(PAYLOAD_MAX as u32);
    reply[..HEADER - 1].copy_from_slice(&length.to_le_bytes()[..HEADER - 1]);
    reply[HEADER - 1] = sequence.wrapping_add(later);
}

#[allow(clippy::naive_bytecount, reason = "the compiler makes vector code of it")]
fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

fn greeting(script: &Script, id: u32) -> Vec<u8> {
    let mut flags = CapabilityFlags::from_bits_truncate(OFFERED);
    flags.set(CapabilityFlags::CLIENT_DEPRECATE_EOF, script.deprecate_eof);
    let [low_0, low_1, high_0, high_1] = flags.bits().to_le_bytes();
    let [status_0, status_1] = wire::AUTOCOMMIT.to_le_bytes();
    let (first, second) = NONCE.split_at(8);
    let nonce_length = NONCE.len() as u8 + 1;
    [
        b"\x0A",
        script.version.as_bytes(),
        &[0],
        &id.to_le_bytes(),
        first,
        &[0, low_0, low_1, wire::CHARSET, status_0, status_1, high_0, high_1, nonce_length],
        &[0; 10],
        second,
        b"\0mysql_native_password\0",
    ]
    .concat()
}

fn auth_switch(plugin: &str, nonce: &[u8]) -> Vec<u8> {
    let end: &[u8] = if nonce.is_empty() { b"" } else { b"\0" };
    [b"\xFE", plugin.as_bytes(), b"\0", nonce, end].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    }

    #[test]
    fn parameters_are_counted_up_to_the_protocols_limit() {
        assert_eq!(parameters(&vec![b'?'; 65_535]), Some(65_535));
        assert_eq!(parameters(&vec![b'?'; 65_536]), None);
    }

    proptest! {
        #[test]
        fn no_statement_panics(sql in prop::collection::vec(any::<u8>(), 0..200), marks in 0_usize..50) {
            let _ = parameters(&sql);
            let text = format!("SELECT '?' + \"?\" {}", "?,".repeat(marks));
            prop_assert_eq!(parameters(text.as_bytes()), u16::try_from(marks).ok());
        }
    }
}
