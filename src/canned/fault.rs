//! Faults: when (At), what (Action), and the counting that decides which one fires.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::sql;
use super::wire::SqlError;
use crate::error::{Error, Result};

/// When a fault fires. Counts start at 1 and run over all connections, for each fault on its
/// own; a statement is a `COM_QUERY` or a `COM_STMT_EXECUTE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// At the n-th statement.
    Statement(u64),
    /// At each n-th statement.
    EachStatement(u64),
    /// At the n-th connection.
    Connect(u64),
    /// At each n-th connection.
    EachConnect(u64),
    /// At the n-th `COM_STMT_PREPARE`.
    Prepare(u64),
    /// At the first statement that arrives when this time has passed since the start.
    After(Duration),
}

/// What goes wrong. The effects are on the answer to what fired the fault: the statement's
/// answer, the prepare's, or the greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// This connection answers that much later.
    Stall(Duration),
    /// Nothing is answered on any connection, nor greeted, for that long.
    StallAll(Duration),
    /// The connection is closed instead of an answer.
    Close,
    /// The connection is reset (RST) instead of an answer; on a socket it is closed.
    Reset,
    /// The server's half of the connection is closed instead of an answer; the client's stays open
    /// until it goes.
    HalfClose,
    /// Half of the answer's first packet, then nothing more until the client goes.
    HalfPacketThenStall,
    /// Half of the answer's first packet, then the connection is closed.
    HalfPacketThenClose,
    /// The answer in writes of one byte, a millisecond apart so that each is read by itself.
    OneByteAtATime,
    /// These bytes, headers and all, instead of the answer.
    Garbage(Vec<u8>),
    /// The answer's first header announces that many bytes more (or fewer) than follow.
    WrongLength(i32),
    /// The answer's first packet has a wrong sequence number.
    WrongSequence,
    /// An error instead of the answer; at a connection it takes the greeting's place, without
    /// SQLSTATE as servers do it, and the connection is closed.
    Error(SqlError),
    /// A result set of that many rows, whatever was asked.
    RowsInstead(usize),
    /// OK with that many affected rows, whatever was asked.
    AffectedInstead(u64),
    /// One row with this content.
    RowContent(Vec<u8>),
    /// One row with a value of that many bytes; 16 MiB and more go in several packets.
    OversizedRow(usize),
    /// A result set that announces that many columns and ends there. `1 << 40` makes
    /// `mysql_async` 0.37.1 reserve memory for all of them, which aborts the client's process.
    HugeColumnCount(u64),
    /// That many OK packets more after the answer.
    TrailingPackets(usize),
    /// Accepts and says nothing.
    HangAtGreeting,
    /// Greets, and leaves the client's login unanswered.
    HangAtAuth,
    /// Asks for `caching_sha2_password` with a nonce of no bytes, and for the password under
    /// the server's key: a client that computes modulo the nonce's length fails.
    EmptyAuthSwitchNonce,
    /// Goes through a full `caching_sha2_password` exchange with this packet, which may be
    /// empty, as the server's key.
    PublicKey(Vec<u8>),
    /// The greeting of protocol 9 (servers before 3.21).
    Protocol9Greeting,
    /// The greeting of a server 4.0.30: protocol 10 without `CLIENT_PROTOCOL_41`; the login is
    /// refused with error 1251.
    Pre41Greeting,
}

/// The moments that an action makes sense at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Any,
    Statement,
    Connect,
}

impl Action {
    /// A server's error.
    pub fn error(code: u16, sqlstate: &str, message: &str) -> Self {
        Action::Error(SqlError::new(code, sqlstate, message))
    }

    /// Whether the answer, on time or not, is the one that was asked for.
    pub(crate) fn keeps_the_answer(&self) -> bool {
        matches!(
            self,
            Action::Stall(_)
                | Action::StallAll(_)
                | Action::OneByteAtATime
                | Action::WrongLength(_)
                | Action::WrongSequence
                | Action::TrailingPackets(_)
        )
    }

    fn scope(&self) -> Scope {
        match self {
            Action::Stall(_)
            | Action::StallAll(_)
            | Action::Close
            | Action::Reset
            | Action::HalfClose
            | Action::HalfPacketThenStall
            | Action::HalfPacketThenClose
            | Action::OneByteAtATime
            | Action::Garbage(_)
            | Action::WrongLength(_)
            | Action::WrongSequence
            | Action::Error(_)
            | Action::TrailingPackets(_) => Scope::Any,
            Action::RowsInstead(_)
            | Action::AffectedInstead(_)
            | Action::RowContent(_)
            | Action::OversizedRow(_)
            | Action::HugeColumnCount(_) => Scope::Statement,
            Action::HangAtGreeting
            | Action::HangAtAuth
            | Action::EmptyAuthSwitchNonce
            | Action::PublicKey(_)
            | Action::Protocol9Greeting
            | Action::Pre41Greeting => Scope::Connect,
        }
    }
}

/// One thing that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at: At,
    /// Only statements (or prepares) that contain this text count, without regard to ASCII
    /// case; so setting-up queries can be left alone.
    pub only: Option<String>,
    /// What.
    pub action: Action,
}

impl Fault {
    /// A fault for all statements.
    pub fn new(at: At, action: Action) -> Self {
        Fault { at, only: None, action }
    }

    /// The same fault, counting only statements that contain the text.
    #[must_use]
    pub fn only(mut self, text: impl Into<String>) -> Self {
        self.only = Some(text.into());
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        let scope = match self.at {
            At::Statement(0)
            | At::EachStatement(0)
            | At::Connect(0)
            | At::EachConnect(0)
            | At::Prepare(0) => {
                return Err(Error::usage(format!("canned fault {:?}: counts start at 1", self.at)));
            }
            At::Statement(_) | At::EachStatement(_) | At::After(_) => Scope::Statement,
            At::Connect(_) | At::EachConnect(_) => Scope::Connect,
            At::Prepare(_) => Scope::Any,
        };
        if let Action::Error(error) = &self.action {
            error.check()?;
        }
        let wanted = self.action.scope();
        if wanted == Scope::Any || wanted == scope {
            return Ok(());
        }
        Err(Error::usage(format!("canned fault {:?} cannot happen at {:?}", self.action, self.at)))
    }
}

/// The script's faults with what they have counted.
#[derive(Debug)]
pub(crate) struct Faults {
    armed: Vec<Armed>,
    started: Instant,
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    only: Option<Vec<u8>>,
    seen: Cell<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Event<'a> {
    Statement(&'a [u8]),
    Prepare(&'a [u8]),
    Connect,
}

impl Faults {
    pub(crate) fn new(faults: &[Fault], started: Instant) -> Self {
        let armed = faults
            .iter()
            .map(|fault| Armed {
                fault: fault.clone(),
                only: fault.only.as_ref().map(|text| text.to_ascii_lowercase().into_bytes()),
                seen: Cell::new(0),
            })
            .collect();
        Faults { armed, started }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.armed.is_empty()
    }

    /// A statement is executed.
    pub(crate) fn statement(&self, sql: &[u8]) -> Option<Action> {
        self.fire(Event::Statement(sql))
    }

    /// A statement is prepared.
    pub(crate) fn prepare(&self, sql: &[u8]) -> Option<Action> {
        self.fire(Event::Prepare(sql))
    }

    /// A client has connected.
    pub(crate) fn connect(&self) -> Option<Action> {
        self.fire(Event::Connect)
    }

    fn fire(&self, event: Event<'_>) -> Option<Action> {
        let mut action = None;
        for armed in &self.armed {
            // Every fault counts, also those that another one hides.
            if armed.fires(event, self.started) && action.is_none() {
                action = Some(armed.fault.action.clone());
            }
        }
        action
    }
}

impl Armed {
    fn fires(&self, event: Event<'_>, started: Instant) -> bool {
        let counts = match (self.fault.at, event) {
            (At::Connect(_) | At::EachConnect(_), Event::Connect) => true,
            (At::Statement(_) | At::EachStatement(_), Event::Statement(sql))
            | (At::Prepare(_), Event::Prepare(sql)) => self.concerns(sql),
            (At::After(time), Event::Statement(sql)) => {
                self.concerns(sql) && started.elapsed() >= time
            }
            _ => false,
        };
        if !counts {
            return false;
        }
        let seen = self.seen.get().saturating_add(1);
        self.seen.set(seen);
        match self.fault.at {
            At::Statement(n) | At::Connect(n) | At::Prepare(n) => seen == n,
            At::EachStatement(n) | At::EachConnect(n) => seen.is_multiple_of(n),
            At::After(_) => seen == 1,
        }
    }

    fn concerns(&self, sql: &[u8]) -> bool {
        self.only.as_ref().is_none_or(|text| sql::contains(sql::looked_at(sql), text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(list: &[Fault]) -> Faults {
        Faults::new(list, Instant::now())
    }

    #[test]
    fn each_fault_counts_only_what_concerns_it() {
        let armed = faults(&[
            Fault::new(At::Statement(2), Action::Close).only("update"),
            Fault::new(At::EachStatement(3), Action::Reset),
        ]);
        let fired: Vec<_> =
            ["UPDATE t", "SELECT 1", "SELECT 1", "x UPDATE", "SELECT 1", "SELECT 1"]
                .iter()
                .map(|sql| armed.statement(sql.as_bytes()))
                .collect();
        let expected =
            [None, None, Some(Action::Reset), Some(Action::Close), None, Some(Action::Reset)];
        assert_eq!(fired, expected);
        assert_eq!(armed.prepare(b"UPDATE"), None);
        assert_eq!(armed.connect(), None);
    }

    #[test]
    fn a_hidden_fault_counts_all_the_same() {
        let armed = faults(&[
            Fault::new(At::Statement(1), Action::Close),
            Fault::new(At::EachStatement(2), Action::Reset),
        ]);
        assert_eq!(armed.statement(b"a"), Some(Action::Close));
        assert_eq!(armed.statement(b"b"), Some(Action::Reset));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let greeting = Fault::new(At::Statement(1), Action::HangAtGreeting);
        assert!(greeting.check().is_err_and(|e| e.to_string().contains("HangAtGreeting")));
        assert!(Fault::new(At::Connect(1), Action::RowsInstead(0)).check().is_err());
        assert!(Fault::new(At::Prepare(1), Action::RowsInstead(0)).check().is_err());
        assert!(Fault::new(At::EachStatement(0), Action::Close).check().is_err());
        assert!(Fault::new(At::Prepare(1), Action::error(1, "HY0", "")).check().is_err());
        assert!(Fault::new(At::Prepare(1), Action::Close).check().is_ok());
        assert!(Fault::new(At::After(Duration::ZERO), Action::RowsInstead(2)).check().is_ok());
    }
}
