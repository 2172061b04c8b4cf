//! The requests of a script, over sessions: connections and statements by number, and the values of statements.

use std::time::Duration;

use mlua::Value as Lua;

use super::job::literals_into;
use crate::lua::{Reply, Request, is_null};
use crate::mysql::wire::{Inbox, KeptResult, LeanSession, Params, Value, Want};
use crate::mysql::{Failure, ServerLink, connect_error};
use crate::plan::{Ignored, limits};
use crate::stop::within;
use crate::workload::pieces;

/// Statements that a server runs as text only.
const UNPREPARABLE: u16 = 1295;
/// Errors of the client library: no connection, a lost one, a statement that is not prepared.
const NO_CONNECTION: u16 = 2002;
const LOST: u16 = 2013;
const NOT_PREPARED: u16 = 2030;
/// The pause between two attempts to open a connection again.
const PAUSE: Duration = Duration::from_millis(20);

/// Where connections go, and the session that is there already, if any.
pub(crate) struct Server<'a> {
    pub link: &'a ServerLink,
    pub inbox: &'a Inbox,
    pub ignored: &'a Ignored,
    pub text_statements: bool,
    pub first: Option<&'a mut LeanSession>,
}

/// The kinds of answers since they were taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AnswersSeen {
    pub reads: u64,
    pub writes: u64,
    pub others: u64,
    pub rows: u64,
    pub reconnects: u64,
}

/// The connections of one state of a script.
#[derive(Default)]
pub(crate) struct Connections {
    /// The number of each, from 0; the session of the first may be that of a client.
    opened: Vec<Opened>,
    statements: Vec<Prepared>,
    params: Params,
    pub seen: AnswersSeen,
    /// The last error that is to be ignored, and whether it was of the client's own session.
    pub failure: Option<(Failure, bool)>,
}

enum Opened {
    /// It has the client's own session.
    First {
        at: Reading,
    },
    Own {
        session: Box<LeanSession>,
        at: Reading,
    },
    Closed,
}

/// The place in the last answer: the result, and its next row.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    result: usize,
    row: usize,
}

struct Prepared {
    connection: usize,
    /// None where it is sent as text.
    handle: Option<u32>,
    pieces: Vec<String>,
    closed: bool,
}

fn failed(failure: &Failure, ignored: &Ignored) -> Reply {
    let (code, state, text) = match failure {
        Failure::Server { code, sqlstate, message } => (*code, sqlstate.clone(), message.clone()),
        Failure::Lost(_) => {
            (LOST, "HY000".to_owned(), "Lost connection to server during query".to_owned())
        }
    };
    Reply::Failed { code, state, text, listed: ignored.has(code) }
}

fn refused(code: u16, text: &str) -> Reply {
    Reply::Failed { code, state: "HY000".to_owned(), text: text.to_owned(), listed: false }
}

impl Connections {
    /// Does a request to the server, or waits.
    pub(crate) async fn perform(&mut self, server: &mut Server<'_>, request: Request) -> Reply {
        match request {
            Request::Connect => Box::pin(self.connect(server)).await,
            Request::Query(at, sql) => {
                let Some(session) = self.session(server, at) else { return closed() };
                session.text().extend_from_slice(&sql.as_bytes());
                let sent = session.query(Want::Rows).await;
                self.answer(server, at, sent.map(|answer| (answer.rows, answer.affected)))
            }
            Request::Prepare(at, sql) => self.prepare(server, at, &sql.to_string_lossy()).await,
            Request::Execute(at, number, kinds, values) => {
                self.execute(server, (at, number), &kinds.as_bytes(), &values).await
            }
            Request::Close(at, number) => self.close(server, at, number).await,
            Request::Fetch(at) => self.fetch(server, at),
            Request::Disconnect(at) => {
                self.forget_statements(at);
                // The client's own session stays open until its end.
                if let Some(opened) = self.opened.get_mut(at)
                    && !matches!(opened, Opened::First { .. })
                    && let Opened::Own { session, .. } = std::mem::replace(opened, Opened::Closed)
                {
                    Box::pin(session.close(limits::COURTESY)).await;
                }
                Reply::Nothing
            }
            Request::Reconnect(at) => {
                Box::pin(self.reopen(server, at)).await;
                Reply::Nothing
            }
            Request::Sleep(time) => {
                tokio::time::sleep(time).await;
                Reply::Nothing
            }
            Request::Count(kind) => {
                match kind {
                    0 => self.seen.others += 1,
                    1 => self.seen.reads += 1,
                    2 => self.seen.writes += 1,
                    _ => {}
                }
                Reply::Nothing
            }
            Request::HasMore(at) => Reply::Switch(self.next_result(server, at).is_some()),
            Request::Further(at) => self.go_on(server, at),
            Request::Next(_) => Reply::Switch(false),
            Request::Restart => Reply::Nothing,
        }
    }

    fn session<'a>(
        &'a mut self,
        server: &'a mut Server<'_>,
        at: usize,
    ) -> Option<&'a mut LeanSession> {
        match self.opened.get_mut(at)? {
            Opened::First { .. } => server.first.as_deref_mut(),
            Opened::Own { session, .. } => Some(session),
            Opened::Closed => None,
        }
    }

    async fn connect(&mut self, server: &mut Server<'_>) -> Reply {
        match LeanSession::open_again(server.link, server.inbox, None).await {
            Ok(session) => {
                self.opened
                    .push(Opened::Own { session: Box::new(session), at: Reading::default() });
                Reply::Number(self.opened.len() - 1)
            }
            Err(failure) => {
                refused(NO_CONNECTION, &connect_error(&server.link.target.address, &failure))
            }
        }
    }

    /// Takes the session of the first connection that is open: it becomes the client's own.
    pub(crate) fn take_first(&mut self) -> Option<LeanSession> {
        let is_open = |opened: &&mut Opened| matches!(opened, Opened::Own { .. });
        let opened = self.opened.iter_mut().find(is_open)?;
        match std::mem::replace(opened, Opened::First { at: Reading::default() }) {
            Opened::Own { session, .. } => Some(*session),
            Opened::First { .. } | Opened::Closed => None,
        }
    }

    /// Returns whether the client's own session is a connection of the script's.
    pub(crate) fn has_first(&self) -> bool {
        self.opened.iter().any(|opened| matches!(opened, Opened::First { .. }))
    }

    /// Forgets what was prepared over the client's own session.
    pub(crate) fn forget_first(&mut self) {
        let is_first = |opened: &Opened| matches!(opened, Opened::First { .. });
        if let Some(at) = self.opened.iter().position(is_first) {
            self.forget_statements(at);
        }
    }

    /// Opens a connection again, however long it takes.
    async fn reopen(&mut self, server: &mut Server<'_>, at: usize) {
        self.forget_statements(at);
        let fresh = loop {
            match LeanSession::open_again(server.link, server.inbox, None).await {
                Ok(session) => break session,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        self.seen.reconnects += 1;
        match (self.opened.get_mut(at), server.first.as_deref_mut()) {
            (Some(Opened::First { .. }), Some(first)) => *first = fresh,
            (Some(opened), _) => {
                *opened = Opened::Own { session: Box::new(fresh), at: Reading::default() }
            }
            (None, _) => {}
        }
    }

    /// Opens the connections again that an error has lost, but for the client's own.
    pub(crate) async fn reopen_lost(&mut self, server: &mut Server<'_>) {
        for at in 0..self.opened.len() {
            let is_lost =
                matches!(&self.opened[at], Opened::Own { session, .. } if !session.is_usable());
            if is_lost {
                Box::pin(self.reopen(server, at)).await;
            }
        }
    }

    /// Forgets what was prepared over a connection.
    fn forget_statements(&mut self, at: usize) {
        for statement in self.statements.iter_mut().filter(|known| known.connection == at) {
            statement.closed = true;
        }
    }

    async fn prepare(&mut self, server: &mut Server<'_>, at: usize, sql: &str) -> Reply {
        let text = server.text_statements;
        let Some(session) = self.session(server, at) else { return closed() };
        let prepared = if text { Ok(None) } else { session.prepare(sql).await.map(Some) };
        let handle = match prepared {
            Ok(handle) => handle,
            Err(Failure::Server { code: UNPREPARABLE, .. }) => None,
            Err(failure) => return failed(&failure, server.ignored),
        };
        let pieces = pieces(sql).into_iter().map(str::to_owned).collect();
        self.statements.push(Prepared { connection: at, handle, pieces, closed: false });
        Reply::Number(self.statements.len() - 1)
    }

    async fn execute(
        &mut self,
        server: &mut Server<'_>,
        (at, number): (usize, usize),
        kinds: &[u8],
        values: &[Lua],
    ) -> Reply {
        let known = self.statements.get(number).filter(|known| !known.closed);
        let Some(handle) = known.map(|known| known.handle) else {
            return refused(NOT_PREPARED, "Statement not prepared");
        };
        let mut params = std::mem::take(&mut self.params);
        params.clear(values.len());
        for (place, (value, kind)) in values.iter().zip(kinds).enumerate() {
            set_value(&mut params, place, value, *kind, handle.is_none());
        }
        let sent = if let Some(handle) = handle {
            let Some(session) = self.session(server, at) else { return closed() };
            session.execute(handle, &params, Want::Rows).await
        } else {
            let mut sql = Vec::new();
            literals_into(&mut sql, &self.statements[number].pieces, &params);
            let Some(session) = self.session(server, at) else { return closed() };
            session.text().extend_from_slice(&sql);
            session.query(Want::Rows).await
        };
        self.params = params;
        self.answer(server, at, sent.map(|answer| (answer.rows, answer.affected)))
    }

    async fn close(&mut self, server: &mut Server<'_>, at: usize, number: usize) -> Reply {
        let known = self.statements.get_mut(number).filter(|known| !known.closed);
        let Some(statement) = known else { return Reply::Nothing };
        statement.closed = true;
        if let Some(handle) = statement.handle
            && let Some(session) = self.session(server, at)
        {
            // Nothing answers it: a lost connection shows at the next request.
            let _ = session.close_statement(handle).await;
        }
        Reply::Nothing
    }

    fn reading(&mut self, at: usize) -> Option<&mut Reading> {
        match self.opened.get_mut(at)? {
            Opened::First { at } | Opened::Own { at, .. } => Some(at),
            Opened::Closed => None,
        }
    }

    fn fetch(&mut self, server: &mut Server<'_>, at: usize) -> Reply {
        let Some(Reading { result, row }) = self.reading(at).copied() else { return closed() };
        let Some(session) = self.session(server, at) else { return closed() };
        match session.answer().row(result, row) {
            Ok(Some((cells, next))) => {
                self.reading(at).into_iter().for_each(|place| place.row = next);
                Reply::Row(cells)
            }
            Ok(None) => Reply::NoRow(String::new()),
            Err(why) => Reply::NoRow(why.to_owned()),
        }
    }

    /// Returns the result of the last answer behind the current one, and its number.
    fn next_result(&mut self, server: &mut Server<'_>, at: usize) -> Option<(usize, KeptResult)> {
        let number = self.reading(at)?.result + 1;
        Some((number, self.session(server, at)?.answer().result(number)?))
    }

    /// Goes on to the next result of the last answer, and counts it.
    fn go_on(&mut self, server: &mut Server<'_>, at: usize) -> Reply {
        let Some((number, result)) = self.next_result(server, at) else {
            return Reply::Switch(false);
        };
        let reading = Reading { result: number, row: result.begin };
        self.reading(at).into_iter().for_each(|place| *place = reading);
        self.count(result.columns, result.rows, result.affected)
    }

    fn count(&mut self, columns: usize, rows: u64, affected: u64) -> Reply {
        let kind = match (columns, affected) {
            (1.., _) => &mut self.seen.reads,
            (0, 1..) => &mut self.seen.writes,
            (0, 0) => &mut self.seen.others,
        };
        *kind += 1;
        self.seen.rows += rows;
        Reply::Answer { columns: columns as u64, rows: if columns > 0 { rows } else { affected } }
    }

    /// Counts an answer, or keeps its error.
    fn answer(
        &mut self,
        server: &mut Server<'_>,
        at: usize,
        sent: Result<(u64, u64), Failure>,
    ) -> Reply {
        let is_first = matches!(self.opened.get(at), Some(Opened::First { .. }));
        match sent {
            Ok((rows, affected)) => {
                let first = self.session(server, at).and_then(|session| session.answer().result(0));
                self.reading(at).into_iter().for_each(|place| *place = Reading::default());
                self.count(first.map_or(0, |first| first.columns), rows, affected)
            }
            Err(failure) => {
                let reply = failed(&failure, server.ignored);
                self.failure = Some((failure, is_first));
                reply
            }
        }
    }

    /// Says goodbye over all connections but the client's own.
    pub(crate) async fn close_all(self) {
        for opened in self.opened {
            if let Opened::Own { session, .. } = opened {
                let _ = within(limits::COURTESY, session.close(limits::COURTESY)).await;
            }
        }
    }
}

fn closed() -> Reply {
    refused(LOST, "the connection is closed")
}

/// Sets a value as its parameter was bound; text has its backslashes doubled where it becomes a literal.
fn set_value(params: &mut Params, at: usize, value: &Lua, kind: u8, literal: bool) {
    match value {
        value if is_null(value) => {}
        Lua::Integer(number) if kind != b's' => params.set(at, Value::Int(*number)),
        Lua::Number(number) if kind == b'i' => params.set(at, Value::Int(*number as i64)),
        // The server reads the number from its text.
        Lua::Number(number) => {
            params.set_bytes(at, |out| out.extend_from_slice(number.to_string().as_bytes()));
        }
        Lua::String(text) => params.set_bytes(at, |out| {
            for byte in &*text.as_bytes() {
                if literal && *byte == b'\\' {
                    out.push(b'\\');
                }
                out.push(*byte);
            }
        }),
        _ => {}
    }
}
