//! What a command asks for. Decides and counts; sends nothing.

use std::collections::HashMap;
use std::rc::Rc;

use super::fault::{Action, Event, looked_at};
use super::replies::{AnswerKind, Dialect};
use super::shared::Shared;
use super::wire::{self, SqlError};

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

/// Statements that one connection may hold: a server's default for all of them together.
const STATEMENTS_MAX: usize = 16_382;

/// What a connection knows of its statements. Numbers are never used again, so that a client
/// that uses a closed statement gets an error.
pub(crate) struct Commands {
    pub(crate) shared: Rc<Shared>,
    pub(crate) deprecate_eof: bool,
    last: u32,
    known: HashMap<u32, Prepared>,
}

struct Prepared {
    plan: AnswerKind,
    /// The beginning of its text; kept only if a fault may ask for it.
    sql: Rc<[u8]>,
}

/// What is to be done.
pub(crate) enum Response {
    Nothing,
    Quit,
    Answer {
        plan: AnswerKind,
        dialect: Dialect,
        action: Option<Action>,
    },
    /// These packets.
    Reply(Vec<u8>, Option<Action>),
}

impl Commands {
    pub(crate) fn new(shared: Rc<Shared>) -> Commands {
        Commands { shared, deprecate_eof: false, last: 0, known: HashMap::new() }
    }

    /// Decides what a command gets.
    pub(crate) fn decide(&mut self, payload: &[u8]) -> Response {
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
                Response::Nothing
            }
            STMT_SEND_LONG_DATA => Response::Nothing,
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
                Response::Quit
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
        if shared.replies.is_error(plan) {
            let dialect = Dialect { binary: false, deprecate_eof: self.deprecate_eof };
            return Response::Answer { plan, dialect, action };
        }
        if shared.replies.is_local(plan) {
            let message = "This command is not supported in the prepared statement protocol yet";
            return self.refuse(1295, "HY000", message);
        }
        let Some(parameters) = parameters(sql) else {
            let message = "Prepared statement contains too many placeholders";
            return self.refuse(1390, "HY000", message);
        };
        if self.known.len() >= STATEMENTS_MAX {
            let message = "Can't create more than max_prepared_stmt_count statements (current \
                           value: 16382)";
            return self.refuse(1461, "42000", message);
        }
        let kept = if shared.faults.is_empty() { &[] } else { looked_at(sql) };
        self.last = self.last.wrapping_add(1);
        self.known.insert(self.last, Prepared { plan, sql: Rc::from(kept) });
        let reply = shared.replies.prepared(plan, self.last, parameters, self.deprecate_eof);
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

/// Counts the `?` outside quotes; `None` above the protocol's 65,535.
fn parameters(sql: &[u8]) -> Option<u16> {
    let mut count = 0_u32;
    let mut quote = None;
    let mut bytes = sql.iter();
    while let Some(&byte) = bytes.next() {
        match (quote, byte) {
            (Some(b'"' | b'\''), b'\\') => _ = bytes.next(),
            (Some(open), _) if byte == open => quote = None,
            (None, b'"' | b'\'' | b'`') => quote = Some(byte),
            (None, b'?') => count += 1,
            _ => {}
        }
    }
    u16::try_from(count).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_are_counted_outside_quotes() {
        assert_eq!(parameters(b"a=? AND b='?' AND c=\"\\\"?\" AND `?`=? "), Some(2));
        assert_eq!(parameters(b"'it''s ?' ?"), Some(1));
        assert_eq!(parameters(b"'open ?"), Some(0));
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
