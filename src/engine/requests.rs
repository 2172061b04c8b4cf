//! The requests of a script, over sessions: connections and statements by number, and the values of statements.
//!
//! A number belongs to the script's object until that is closed, or nobody has it any more.

use std::time::Duration;

use tokio::sync::Semaphore;

use super::errors::OpError;
use super::job::literals_into;
use super::setup::ThreadEvent;
use super::sleeps::Sleeps;
use super::state::{ClientState, SleepsEnd, ThreadState};
use crate::lua::{Argument, Reply, Request};
use crate::mysql::wire::{Answer, Inbox, KeptResult, LeanSession, Params, Value, Want};
use crate::mysql::{Failure, ServerLink, class, connect_error};
use crate::observe::Ns;
use crate::plan::{Ignored, limits};
use crate::workload::pieces;

/// Statements that a server runs as text only.
const UNPREPARABLE: u16 = 1295;
/// Errors of the client library.
const NO_CONNECTION: u16 = 2002;
const GONE: u16 = 2006;
const LOST: u16 = 2013;
const TOO_LARGE: u16 = 2020;
const NOT_PREPARED: u16 = 2030;
const NOT_BOUND: u16 = 2031;
/// The pause between two attempts to open a connection again.
const PAUSE: Duration = Duration::from_millis(20);
/// A sleep that is cut short still lasts this long: else a script that polls would spin.
const LEAST_SLEEP: Duration = Duration::from_millis(1);

/// The server of a script's connections, and the client in whose name they are opened.
pub(crate) struct Server<'a> {
    pub link: &'a ServerLink,
    pub inbox: &'a Inbox,
    pub ignored: &'a Ignored,
    pub text_statements: bool,
    pub sleeps: &'a Sleeps,
    pub sleeps_end: SleepsEnd,
    pub logins: Option<&'a Semaphore>,
    /// None outside the loop of a client.
    pub client: Option<(&'a ThreadState, &'a ClientState)>,
    /// Connections that the script closes stay until all clients have ended: their counters are read before.
    pub defers_goodbyes: bool,
}

/// Counts of answers and errors by kind, since they were read last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AnswersSeen {
    pub reads: u64,
    pub writes: u64,
    pub others: u64,
    pub rows: u64,
    pub errors: u64,
    pub reconnects: u64,
    /// Those that the script counts itself.
    pub events: u64,
}

/// The connections of one state of a script.
#[derive(Default)]
pub(crate) struct Connections {
    /// None where a number is free.
    opened: Vec<Option<Opened>>,
    statements: Vec<Option<Prepared>>,
    leaving: Vec<LeanSession>,
    params: Params,
    pub seen: AnswersSeen,
    /// The last error of an answer.
    pub failure: Option<OpError>,
}

struct Opened {
    /// None once it is closed.
    session: Option<Box<LeanSession>>,
    at: Reading,
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
    parameters: usize,
    /// The text between its parameters, where it is sent as that.
    pieces: Vec<Vec<u8>>,
    /// Its connection is lost or closed.
    lost: bool,
}

/// Puts something at the first free place.
fn place<T>(list: &mut Vec<Option<T>>, item: T) -> usize {
    let at = list.iter().position(Option::is_none).unwrap_or_else(|| {
        list.push(None);
        list.len() - 1
    });
    list[at] = Some(item);
    at
}

fn refused(code: u16, text: &str) -> Reply {
    Reply::Failed { code, state: "HY000".to_owned(), text: text.to_owned(), listed: false }
}

fn failed(failure: Failure, gone: bool, listed: bool) -> Reply {
    let (code, text) = match failure {
        Failure::Server { code, sqlstate, message } => {
            return Reply::Failed { code, state: sqlstate, text: message, listed };
        }
        Failure::Lost(_) if gone => (GONE, "Server has gone away"),
        Failure::Lost(_) => (LOST, "Lost connection to server during query"),
    };
    Reply::Failed { code, state: "HY000".to_owned(), text: text.to_owned(), listed }
}

fn closed() -> Reply {
    refused(GONE, "the connection is closed")
}

impl Server<'_> {
    async fn open(&self) -> Result<LeanSession, Failure> {
        let _permit = match self.logins {
            Some(logins) => Some(logins.acquire().await.expect("nobody closes it")),
            None => None,
        };
        LeanSession::open_again(self.link, self.inbox, None).await
    }

    /// Opens one again, however long it takes. A client that is given up meanwhile stays offline.
    async fn open_again(&self) -> LeanSession {
        let offline = |is: bool| self.client.iter().for_each(|(_, state)| state.offline.set(is));
        offline(true);
        let session = loop {
            match self.open().await {
                Ok(session) => break session,
                Err(failure) => {
                    if let Some((thread, state)) = self.client {
                        thread.refused_reconnect(state, failure);
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
        };
        offline(false);
        if let Some((thread, _)) = self.client {
            thread.tell(ThreadEvent::Reopened);
            thread.failures.borrow_mut().reconnects += 1;
        }
        session
    }

    fn now(&self) -> Ns {
        self.client.map_or(0, |(thread, _)| thread.now())
    }

    /// Records the time of a statement that has just been answered: those behind the last event are in none.
    fn time_statement(&self, kind: usize, sent: Ns) {
        if let Some((thread, client)) = self.client.filter(|_| !self.defers_goodbyes) {
            let times = (sent, thread.now());
            thread.recorder.borrow_mut().statement(kind, client.measured.get(), times);
        }
    }

    /// Returns whether the time is over: an event that meets an error ends then.
    pub(super) fn is_over(&self) -> bool {
        self.client.is_some_and(|(thread, _)| thread.now() >= thread.ends_at())
    }

    async fn sleep(&self, time: Duration) {
        let Some((thread, _)) = self.client else { return self.sleeps.sleep(time).await };
        let _asleep = Asleep::begin(thread);
        let pauses = thread.pauses.as_ref().filter(|_| self.sleeps_end != SleepsEnd::ByThemselves);
        let Some(pauses) = pauses else { return self.sleeps.sleep(time).await };
        let begun = thread.now();
        let whole = begun.saturating_add(time.as_nanos() as Ns);
        let end = if self.sleeps_end == SleepsEnd::AtOnce { begun } else { whole };
        if pauses.until(end, || thread.now()).await < whole {
            self.sleeps.sleep(time.min(LEAST_SLEEP)).await;
        }
    }
}

/// A client that sleeps, also until its sleep is given up.
struct Asleep<'a>(&'a ThreadState);

impl Asleep<'_> {
    fn begin(thread: &ThreadState) -> Asleep<'_> {
        thread.sleeping.set(thread.sleeping.get() + 1);
        Asleep(thread)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.sleeping.set(self.0.sleeping.get() - 1);
    }
}

impl Connections {
    /// Does a request to the server, or waits.
    pub(crate) async fn perform(
        &mut self,
        server: &Server<'_>,
        request: Request,
        arguments: &mut Vec<Argument>,
    ) -> Reply {
        match request {
            Request::Connect => return Box::pin(self.connect(server)).await,
            Request::Query(at, sql) => {
                let Some(session) = self.session(at) else { return closed() };
                let gone = !session.is_usable();
                session.text().extend_from_slice(&sql);
                // Each client that waits would hold its text twice.
                drop(sql);
                let begun = server.now();
                let sent = session.query(Want::Rows).await;
                return self.answer(server, (at, gone), begun, sent).await;
            }
            Request::Prepare(at, sql) => return self.prepare(server, at, &sql).await,
            Request::Execute(at, number) => {
                return self.execute(server, (at, number), arguments).await;
            }
            Request::Close(at, number) => self.close(at, number).await,
            Request::Fetch(at) => return self.fetch(at),
            Request::Free(at) if self.session(at).is_none() => return closed(),
            Request::Free(at) => self.free(at),
            Request::Disconnect(at) => self.disconnect(server, at).await,
            Request::Forget(at) => {
                self.disconnect(server, at).await;
                self.opened.get_mut(at).into_iter().for_each(|place| *place = None);
            }
            Request::Reconnect(at) => Box::pin(self.reopen(server, at)).await,
            Request::Sleep(time) => server.sleep(time).await,
            Request::Count(kind) => self.count(kind),
            Request::HasMore(at) => return Reply::Switch(self.next_result(at).is_some()),
            Request::Further(at) => return self.go_on(at),
            Request::Next { .. } => return Reply::Switch(false),
            Request::Start | Request::Stop | Request::Restart(_) => {}
        }
        Reply::Nothing
    }

    /// Counts one more of a kind, in the order of sysbench's counters.
    fn count(&mut self, kind: u32) {
        let seen = &mut self.seen;
        let counter = match kind {
            0 => &mut seen.others,
            1 => &mut seen.reads,
            2 => &mut seen.writes,
            3 => &mut seen.events,
            4 => &mut seen.errors,
            5 => &mut seen.reconnects,
            _ => return,
        };
        *counter += 1;
    }

    fn session(&mut self, at: usize) -> Option<&mut LeanSession> {
        self.opened.get_mut(at)?.as_mut()?.session.as_deref_mut()
    }

    async fn connect(&mut self, server: &Server<'_>) -> Reply {
        match server.open().await {
            Ok(session) => {
                let opened = Opened { session: Some(Box::new(session)), at: Reading::default() };
                Reply::Number(place(&mut self.opened, opened))
            }
            Err(failure) => {
                refused(NO_CONNECTION, &connect_error(&server.link.target.address, &failure))
            }
        }
    }

    async fn disconnect(&mut self, server: &Server<'_>, at: usize) {
        self.lose_statements(at, true);
        let opened = self.opened.get_mut(at).and_then(Option::as_mut);
        match opened.and_then(|opened| opened.session.take()) {
            Some(session) if server.defers_goodbyes => self.leaving.push(*session),
            Some(session) => Box::pin(session.close(limits::COURTESY)).await,
            None => {}
        }
    }

    /// Opens a connection again. First the old one goes: the server may have none to spare.
    async fn reopen(&mut self, server: &Server<'_>, at: usize) {
        self.lose_statements(at, false);
        let opened = self.opened.get_mut(at).and_then(Option::as_mut);
        let Some(session) = opened.and_then(|opened| opened.session.take()) else { return };
        session.close(limits::COURTESY).await;
        let session = server.open_again().await;
        self.seen.reconnects += 1;
        self.opened[at] = Some(Opened { session: Some(Box::new(session)), at: Reading::default() });
    }

    /// Forgets the statements of a connection. Those that are sent as text stay, unless it is closed for good.
    fn lose_statements(&mut self, at: usize, all: bool) {
        let known = self.statements.iter_mut().flatten();
        for statement in known.filter(|known| known.connection == at) {
            if all || statement.handle.is_some() {
                statement.lost = true;
                statement.pieces = Vec::new();
            }
        }
    }

    async fn prepare(&mut self, server: &Server<'_>, at: usize, sql: &[u8]) -> Reply {
        let Some(session) = self.session(at) else { return closed() };
        let gone = !session.is_usable();
        let text = server.text_statements;
        let prepared = if text { Ok(None) } else { session.prepare(sql).await.map(Some) };
        let (handle, parameters, pieces) = match prepared {
            Ok(Some(handle)) => (Some(handle), session.answer().parameters.into(), Vec::new()),
            Ok(None) | Err(Failure::Server { code: UNPREPARABLE, .. }) => {
                let pieces = pieces_of(sql);
                (None, pieces.len() - 1, pieces)
            }
            Err(failure) => return failed(failure, gone, false),
        };
        let statement = Prepared { connection: at, handle, parameters, pieces, lost: false };
        Reply::Number(place(&mut self.statements, statement))
    }

    async fn execute(
        &mut self,
        server: &Server<'_>,
        (at, number): (usize, usize),
        arguments: &mut Vec<Argument>,
    ) -> Reply {
        let Connections { opened, statements, params, .. } = self;
        let known = statements.get(number).and_then(Option::as_ref).filter(|known| !known.lost);
        let (Some(statement), Some(Some(Opened { session: Some(session), .. }))) =
            (known, opened.get_mut(at))
        else {
            self.seen.errors += 1;
            return refused(NOT_PREPARED, "Statement not prepared");
        };
        if arguments.len() != statement.parameters {
            self.seen.errors += 1;
            let text = "No data supplied for parameters in prepared statement";
            return refused(NOT_BOUND, text);
        }
        params.clear(statement.parameters);
        let literal = statement.handle.is_none();
        let mut each = arguments.iter().enumerate();
        if !each.all(|(place, argument)| set_value(params, place, argument, literal)) {
            self.seen.errors += 1;
            return refused(TOO_LARGE, "Got packet bigger than 'max_allowed_packet' bytes");
        }
        arguments.clear();
        let (gone, begun) = (!session.is_usable(), server.now());
        let sent = if let Some(handle) = statement.handle {
            session.execute(handle, params, Want::Rows).await
        } else {
            literals_into(session.text(), &statement.pieces, params);
            session.query(Want::Rows).await
        };
        self.answer(server, (at, gone), begun, sent).await
    }

    async fn close(&mut self, at: usize, number: usize) {
        let known = self.statements.get_mut(number);
        let statement = known.and_then(|known| known.take_if(|known| known.connection == at));
        if let Some(Prepared { handle: Some(handle), lost: false, .. }) = statement
            && let Some(session) = self.session(at)
        {
            // Nothing answers it: a lost connection shows at the next request.
            let _ = session.close_statement(handle).await;
        }
    }

    fn fetch(&mut self, at: usize) -> Reply {
        let Some(Some(Opened { session: Some(session), at: place })) = self.opened.get_mut(at)
        else {
            return closed();
        };
        match session.answer().row(place.result, place.row) {
            Ok(Some((cells, next))) => {
                place.row = next;
                Reply::Row(cells)
            }
            Ok(None) => {
                self.free(at);
                Reply::NoRow(String::new())
            }
            Err(why) => Reply::NoRow(why.to_owned()),
        }
    }

    /// Returns the result of the last answer behind the current one, and its number.
    fn next_result(&mut self, at: usize) -> Option<(usize, KeptResult)> {
        let Opened { session, at } = self.opened.get_mut(at)?.as_mut()?;
        let number = at.result + 1;
        Some((number, session.as_mut()?.answer().result(number)?))
    }

    /// Goes on to the next result of the last answer, and counts it.
    fn go_on(&mut self, at: usize) -> Reply {
        let Some((number, result)) = self.next_result(at) else { return Reply::Switch(false) };
        let reading = Reading { result: number, row: result.begin };
        self.opened[at].iter_mut().for_each(|opened| opened.at = reading);
        self.count_result(result.columns, result.rows, result.affected)
    }

    /// Gives up the rows of the last answer, unless further results have some.
    fn free(&mut self, at: usize) {
        if self.next_result(at).is_none()
            && let Some(session) = self.session(at)
        {
            session.answer().free_rows();
        }
    }

    fn count_result(&mut self, columns: usize, rows: u64, affected: u64) -> Reply {
        let AnswersSeen { reads, writes, others, .. } = &mut self.seen;
        *[reads, writes, others][kind_of(columns, affected)] += 1;
        self.seen.rows += rows;
        Reply::Answer { columns: columns as u64, rows: if columns > 0 { rows } else { affected } }
    }

    /// Counts an answer, or its error. A connection that an ignored error has lost is opened again at once.
    async fn answer(
        &mut self,
        server: &Server<'_>,
        (at, gone): (usize, bool),
        begun: Ns,
        sent: Result<Answer, Failure>,
    ) -> Reply {
        match sent {
            Ok(Answer { rows, affected, .. }) => {
                let first = self.session(at).and_then(|session| session.answer().result(0));
                let columns = first.map_or(0, |first| first.columns);
                server.time_statement(kind_of(columns, affected), begun);
                self.opened[at].iter_mut().for_each(|opened| opened.at = Reading::default());
                self.count_result(columns, rows, affected)
            }
            Err(failure) => self.fail(server, at, gone, failure).await,
        }
    }

    async fn fail(
        &mut self,
        server: &Server<'_>,
        at: usize,
        gone: bool,
        failure: Failure,
    ) -> Reply {
        let error = OpError::from(failure.clone());
        if let Some((thread, _)) = server.client {
            thread.see_error(thread.now(), &error);
        }
        self.failure = Some(error);
        let code = match &failure {
            Failure::Server { code, .. } => *code,
            Failure::Lost(_) if gone => GONE,
            Failure::Lost(_) => LOST,
        };
        let is_over = Ignored::is_lost(code)
            || !class(code).keeps_session()
            || self.session(at).is_none_or(|session| !session.is_usable());
        if !is_over || !server.ignored.has_lost() {
            self.seen.errors += 1;
            return failed(failure, gone, server.ignored.has(code));
        }
        Box::pin(self.reopen(server, at)).await;
        // Scripts prepare again after a code of a lost connection.
        let failure =
            if Ignored::is_lost(code) { failure } else { Failure::lost(failure.to_string()) };
        failed(failure, gone, true)
    }

    /// Ends with the sessions that are still to be closed.
    pub(crate) fn into_sessions(self) -> impl Iterator<Item = LeanSession> {
        let open = self.opened.into_iter().flatten().filter_map(|opened| opened.session);
        self.leaving.into_iter().chain(open.map(|session| *session))
    }

    pub(crate) async fn close_all(self) {
        for session in self.into_sessions() {
            session.close(limits::COURTESY).await;
        }
    }
}

/// Returns the place of a result among [`super::job::KINDS`].
fn kind_of(columns: usize, affected: u64) -> usize {
    match (columns, affected) {
        (1.., _) => 0,
        (0, 1..) => 1,
        (0, 0) => 2,
    }
}

/// Splits a statement at its parameters. All bytes that are no ASCII count alike.
fn pieces_of(sql: &[u8]) -> Vec<Vec<u8>> {
    let ascii: String =
        sql.iter().map(|b| if b.is_ascii() { char::from(*b) } else { 'x' }).collect();
    let mut rest = sql;
    let piece = |piece: &str| {
        let (of_piece, behind) = rest.split_at(piece.len());
        rest = behind.get(1..).unwrap_or_default();
        of_piece.to_vec()
    };
    pieces(&ascii).into_iter().map(piece).collect()
}

/// Sets a value; text has its backslashes doubled where it becomes a literal. Returns whether there is room for it.
fn set_value(params: &mut Params, at: usize, value: &Argument, literal: bool) -> bool {
    match value {
        Argument::Null => {}
        Argument::Int(number) => params.set(at, Value::Int(*number)),
        Argument::Double(number) => params.set(at, Value::Double(number.to_bits())),
        Argument::Text(text) => {
            if !params.has_room(text.len()) {
                return false;
            }
            params.set_bytes(at, |out| {
                for byte in text {
                    if literal && *byte == b'\\' {
                        out.push(b'\\');
                    }
                    out.push(*byte);
                }
            });
        }
    }
    true
}
