//! What a command asks for. Decides and counts; sends nothing.

use std::collections::HashMap;
use std::rc::Rc;

use super::fault::Action;
use super::shared::Shared;
use super::sql::{self, AnswerKind};
use super::wire::SqlError;

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

/// The prepared statements of a connection. Numbers are never used again, so that a client
/// that uses a closed statement gets an error.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    last: u32,
    known: HashMap<u32, Prepared>,
}

#[derive(Debug)]
struct Prepared {
    plan: AnswerKind,
    /// The beginning of its text; kept only if a fault may ask for it.
    sql: Rc<[u8]>,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// No answer.
    Nothing,
    /// The client says goodbye.
    Quit,
    /// OK.
    Ok,
    /// The packet that ends a result set.
    Eof,
    /// An error.
    Refuse(SqlError),
    /// A statement's answer.
    Answer { plan: AnswerKind, binary: bool, action: Option<Action> },
    /// The description of a new statement.
    Describe { plan: AnswerKind, id: u32, parameters: u16, action: Option<Action> },
}

/// Decides what a command gets.
pub(crate) fn decide(shared: &Shared, statements: &mut Statements, payload: &[u8]) -> Response {
    let Some((&command, body)) = payload.split_first() else {
        return refuse(shared, 1835, "HY000", "Malformed communication packet");
    };
    let counts = &shared.counters;
    match command {
        STMT_EXECUTE => execute(shared, statements, body),
        QUERY => {
            counts.queries.add(1);
            let plan = shared.replies.plan(body);
            answer(shared, plan, false, shared.faults.statement(body))
        }
        STMT_PREPARE => prepare(shared, statements, body),
        STMT_CLOSE => {
            counts.closes.add(1);
            if let Some(id) = statement_id(body) {
                statements.known.remove(&id);
            }
            Response::Nothing
        }
        STMT_SEND_LONG_DATA => Response::Nothing,
        STMT_RESET => match statement_id(body) {
            Some(id) if statements.known.contains_key(&id) => Response::Ok,
            id => unknown_statement(shared, id, "mysql_stmt_reset"),
        },
        PING => {
            counts.pings.add(1);
            Response::Ok
        }
        INIT_DB => Response::Ok,
        SET_OPTION => Response::Eof,
        RESET_CONNECTION | CHANGE_USER => {
            counts.resets.add(1);
            statements.known.clear();
            Response::Ok
        }
        QUIT => {
            counts.quits.add(1);
            Response::Quit
        }
        _ => refuse(shared, 1047, "08S01", "Unknown command"),
    }
}

fn execute(shared: &Shared, statements: &Statements, body: &[u8]) -> Response {
    let id = statement_id(body);
    let Some(statement) = id.and_then(|id| statements.known.get(&id)) else {
        return unknown_statement(shared, id, "mysqld_stmt_execute");
    };
    shared.counters.executes.add(1);
    answer(shared, statement.plan, true, shared.faults.statement(&statement.sql))
}

fn answer(shared: &Shared, plan: AnswerKind, binary: bool, action: Option<Action>) -> Response {
    match plan {
        AnswerKind::Canned => shared.counters.selects.add(1),
        AnswerKind::Changed => shared.counters.changes.add(1),
        _ => {}
    }
    Response::Answer { plan, binary, action }
}

fn prepare(shared: &Shared, statements: &mut Statements, sql: &[u8]) -> Response {
    shared.counters.prepares.add(1);
    let action = shared.faults.prepare(sql);
    let plan = shared.replies.plan(sql);
    if shared.replies.is_error(plan) {
        return Response::Answer { plan, binary: false, action };
    }
    if shared.replies.is_local(plan) {
        return refuse(
            shared,
            1295,
            "HY000",
            "This command is not supported in the prepared statement protocol yet",
        );
    }
    let Some(parameters) = sql::parameters(sql) else {
        return refuse(shared, 1390, "HY000", "Prepared statement contains too many placeholders");
    };
    if statements.known.len() >= STATEMENTS_MAX {
        return refuse(
            shared,
            1461,
            "42000",
            "Can't create more than max_prepared_stmt_count statements (current value: 16382)",
        );
    }
    let kept = if shared.faults.is_empty() { &[] } else { sql::looked_at(sql) };
    statements.last = statements.last.wrapping_add(1);
    let id = statements.last;
    statements.known.insert(id, Prepared { plan, sql: Rc::from(kept) });
    Response::Describe { plan, id, parameters, action }
}

fn statement_id(body: &[u8]) -> Option<u32> {
    body.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn unknown_statement(shared: &Shared, id: Option<u32>, place: &str) -> Response {
    let id = id.unwrap_or(0);
    let message = format!("Unknown prepared statement handler ({id}) given to {place}");
    refuse(shared, 1243, "HY000", &message)
}

fn refuse(shared: &Shared, code: u16, sqlstate: &str, message: &str) -> Response {
    shared.counters.refused.add(1);
    Response::Refuse(SqlError::new(code, sqlstate, message))
}
