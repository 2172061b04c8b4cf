//! The script of a canned server: its answers and faults.

use std::cell::Cell;
use std::time::{Duration, Instant};

pub(crate) const ERROR: u8 = 0xFF;

/// A `c` of sysbench's format: ten groups of eleven digits, 119 bytes.
const SYSBENCH_C: &[u8] = b"68487932199-96439406143-93774651418-41631865787-96406072701-\
20604855487-25459966574-28203206787-41238978918-19503783441";

pub struct Script {
    pub version: String,
    pub row: Row,
    /// Answers to particular statements; the first match wins.
    pub answers: Vec<Answer>,
    pub service: Service,
    pub faults: Vec<Fault>,
    pub auth: Auth,
    pub deprecate_eof: bool,
    /// Most connections at once; more are refused with error 1040. Each needs a descriptor.
    pub connections_max: u32,
}

impl Default for Script {
    fn default() -> Self {
        Script {
            version: "8.0.0-canned".to_owned(),
            row: Row::default(),
            answers: Vec::new(),
            service: Service::Instant,
            faults: Vec::new(),
            auth: Auth::Native,
            deprecate_eof: true,
            // The smallest usual hard limit of descriptors (4096) allows this many.
            connections_max: 4_000,
        }
    }
}

/// The canned rows: one CHAR column, every row the same.
#[derive(Debug, Clone)]
pub struct Row {
    pub column: String,
    pub content: Vec<u8>,
    pub count: usize,
}

impl Default for Row {
    fn default() -> Self {
        Row { column: "c".to_owned(), content: SYSBENCH_C.to_vec(), count: 1 }
    }
}

#[derive(Debug, Clone)]
pub struct Answer {
    /// The text, in any ASCII case; the empty text matches everything.
    pub matches: String,
    pub reply: Reply,
}

impl Answer {
    pub(crate) fn new(matches: impl Into<String>, reply: Reply) -> Self {
        Answer { matches: matches.into(), reply }
    }

    pub fn value(matches: impl Into<String>, column: &str, value: &str) -> Self {
        Self::rows(matches, &[column], &[&[Some(value)]])
    }

    pub fn rows(matches: impl Into<String>, columns: &[&str], rows: &[&[Option<&str>]]) -> Self {
        let columns = columns.iter().map(|&c| c.to_owned()).collect();
        let bytes = |text: &str| text.as_bytes().to_vec();
        let row = |row: &&[Option<&str>]| row.iter().map(|value| value.map(bytes)).collect();
        Self::new(matches, Reply::Rows { columns, rows: rows.iter().map(row).collect() })
    }

    pub fn ok(matches: impl Into<String>, affected: u64) -> Self {
        Self::new(matches, Reply::Ok { affected })
    }

    pub fn error(matches: impl Into<String>, code: u16, sqlstate: &str, message: &str) -> Self {
        Self::new(matches, Reply::Error(SqlError::new(code, sqlstate, message)))
    }

    pub fn local_infile(matches: impl Into<String>, file: &str) -> Self {
        Self::new(matches, Reply::LocalInfile { file: file.to_owned() })
    }
}

#[derive(Debug, Clone)]
pub enum Reply {
    /// A result set of text columns, `None` is NULL.
    Rows {
        columns: Vec<String>,
        rows: Vec<Vec<Option<Vec<u8>>>>,
    },
    Ok {
        affected: u64,
    },
    /// An error; preparing such a statement fails with it.
    Error(SqlError),
    /// A LOCAL INFILE request: the stream is thrown away and answered with its lines as affected rows.
    /// Error 1295 when prepared.
    LocalInfile {
        file: String,
    },
}

/// The time from a request's arrival (or the connection's previous answer) to its answer. Connections
/// do not wait for each other; only statements take time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Instant,
    Constant(Duration),
    /// Exponentially distributed; each connection has a stream of its own.
    Exponential {
        mean: Duration,
        seed: u64,
    },
}

/// The log-in method. Any password is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    Native,
    Switch(String),
    Deny,
}

/// Longest part of a statement that is matched: a bulk INSERT must not be searched for each answer.
const LOOKED_AT: usize = 4096;

pub(crate) fn looked_at(sql: &[u8]) -> &[u8] {
    &sql[..sql.len().min(LOOKED_AT)]
}

/// Returns whether a text contains a lower-case word, in any ASCII case.
pub(crate) fn contains(text: &[u8], lower: &[u8]) -> bool {
    let Some((&first, rest)) = lower.split_first() else { return true };
    let upper = first.to_ascii_uppercase();
    text.iter().enumerate().any(|(i, &byte)| {
        (byte == first || byte == upper)
            && text
                .get(i + 1..i + 1 + rest.len())
                .is_some_and(|after| after.eq_ignore_ascii_case(rest))
    })
}

/// The time of a fault. Counts start at 1 and run over all connections, for each fault; a statement is
/// a `COM_QUERY` or a `COM_STMT_EXECUTE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    Statement(u64),
    EachStatement(u64),
    Connect(u64),
    EachConnect(u64),
    Prepare(u64),
    /// At the first statement after this time since the start.
    After(Duration),
}

/// The effect of a fault on the answer to what fired it: statement, prepare or greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Stall(Duration),
    /// No connection is answered or greeted for this long.
    StallAll(Duration),
    Close,
    /// Resets the connection (RST) instead of an answer; closes a socket.
    Reset,
    /// Closes the server's half of the connection instead of an answer; the client's stays open until
    /// it goes.
    HalfClose,
    HalfPacketThenStall,
    HalfPacketThenClose,
    /// Sends the answer in writes of one byte, a millisecond apart so that each is read by itself.
    OneByteAtATime,
    /// Sends these bytes, headers and all, instead of the answer.
    Garbage(Vec<u8>),
    /// The first header announces this many bytes more (or fewer) than follow.
    WrongLength(i32),
    WrongSequence,
    /// Sends an error instead of the answer; instead of a greeting without SQLSTATE, and closes the
    /// connection.
    Error(SqlError),
    RowsInstead(usize),
    AffectedInstead(u64),
    RowContent(Vec<u8>),
    /// Sends one row with a value of this many bytes; 16 MiB and more go in several packets.
    OversizedRow(usize),
    /// Announces this many columns and ends. `1 << 40` makes `mysql_async` 0.37.1 reserve memory for
    /// all, which aborts the client.
    HugeColumnCount(u64),
    /// Sends the answer and these bytes, headers and all, and closes the connection.
    ThenClose(Vec<u8>),
    HangAtAuth,
    /// Goes through a full `caching_sha2_password` exchange with this nonce and this packet, which may
    /// be empty, as the server's key.
    KeyExchange(&'static [u8], Vec<u8>),
}

impl Action {
    pub fn error(code: u16, sqlstate: &str, message: &str) -> Self {
        Action::Error(SqlError::new(code, sqlstate, message))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub at: At,
    /// Limits the count to statements and prepares that contain this text, in any ASCII case.
    pub only: Option<String>,
    pub action: Action,
}

impl Fault {
    pub fn new(at: At, action: Action) -> Self {
        Fault { at, only: None, action }
    }

    #[must_use]
    pub fn only(mut self, text: impl Into<String>) -> Self {
        self.only = Some(text.into());
        self
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Event<'a> {
    Statement(&'a [u8]),
    Prepare(&'a [u8]),
    Connect,
}

/// The script's faults with their counts; texts in lower case.
pub(crate) struct Faults {
    armed: Vec<(Fault, Cell<u64>)>,
    started: Instant,
}

impl Faults {
    pub(crate) fn new(faults: &[Fault]) -> Self {
        let armed = faults.iter().cloned().map(|mut fault| {
            fault.only.iter_mut().for_each(|text| text.make_ascii_lowercase());
            (fault, Cell::new(0))
        });
        Faults { armed: armed.collect(), started: Instant::now() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.armed.is_empty()
    }

    /// Counts an event; the first fault that fires acts.
    pub(crate) fn fire(&self, event: Event<'_>) -> Option<Action> {
        // Faults hidden by another one count, too.
        let fires = |(fault, seen): &&(Fault, Cell<u64>)| self.fires(fault, seen, event);
        let fired = self.armed.iter().filter(fires).map(|(fault, _)| &fault.action);
        fired.fold(None, |first, next| first.or(Some(next))).cloned()
    }

    fn fires(&self, fault: &Fault, seen: &Cell<u64>, event: Event<'_>) -> bool {
        let concerns = |sql: &[u8]| {
            fault.only.as_ref().is_none_or(|text| contains(looked_at(sql), text.as_bytes()))
        };
        let counts = match (fault.at, event) {
            (At::Connect(_) | At::EachConnect(_), Event::Connect) => true,
            (At::Statement(_) | At::EachStatement(_), Event::Statement(sql))
            | (At::Prepare(_), Event::Prepare(sql)) => concerns(sql),
            (At::After(time), Event::Statement(sql)) => {
                concerns(sql) && self.started.elapsed() >= time
            }
            _ => false,
        };
        seen.set(seen.get() + u64::from(counts));
        counts
            && match fault.at {
                At::Statement(n) | At::Connect(n) | At::Prepare(n) => seen.get() == n,
                At::EachStatement(n) | At::EachConnect(n) => seen.get().is_multiple_of(n),
                At::After(_) => seen.get() == 1,
            }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    pub code: u16,
    pub sqlstate: String,
    pub message: String,
}

impl SqlError {
    pub(crate) fn new(code: u16, sqlstate: &str, message: &str) -> Self {
        SqlError { code, sqlstate: sqlstate.to_owned(), message: message.to_owned() }
    }

    /// Makes the payload; an `early` one, before the client's capabilities are known, has no SQLSTATE.
    pub(crate) fn payload(&self, early: bool) -> Vec<u8> {
        let state = if early { String::new() } else { format!("#{}", self.sqlstate) };
        let texts = [state.as_bytes(), self.message.as_bytes()].concat();
        [&[ERROR], self.code.to_le_bytes().as_slice(), &texts].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_counts_only_what_concerns_it() {
        let armed = Faults::new(&[
            Fault::new(At::Statement(2), Action::Close).only("update"),
            Fault::new(At::EachStatement(3), Action::Reset),
        ]);
        let fired: Vec<_> =
            ["UPDATE t", "SELECT 1", "SELECT 1", "x UPDATE", "SELECT 1", "SELECT 1"]
                .iter()
                .map(|sql| armed.fire(Event::Statement(sql.as_bytes())))
                .collect();
        let expected =
            [None, None, Some(Action::Reset), Some(Action::Close), None, Some(Action::Reset)];
        assert_eq!(fired, expected);
        assert_eq!(armed.fire(Event::Prepare(b"UPDATE")), None);
        assert_eq!(armed.fire(Event::Connect), None);
    }

    #[test]
    fn a_hidden_fault_counts_all_the_same() {
        let armed = Faults::new(&[
            Fault::new(At::Statement(1), Action::Close),
            Fault::new(At::EachStatement(2), Action::Reset),
        ]);
        assert_eq!(armed.fire(Event::Statement(b"a")), Some(Action::Close));
        assert_eq!(armed.fire(Event::Statement(b"b")), Some(Action::Reset));
    }

    #[test]
    fn contains_needs_the_whole_word() {
        assert!(contains(b"aab", b"ab"));
        assert!(contains(b"xAB", b"ab"));
        assert!(!contains(b"xa", b"ab"));
        assert!(contains(b"", b""));
    }
}
