//! What the server shall say: data, and the check that it makes sense.

use std::time::Duration;

use super::fault::Fault;
use super::wire::SqlError;
use crate::error::{Error, Result};

/// A `c` of sysbench's format: ten groups of eleven digits, 119 bytes.
const SYSBENCH_C: &[u8] = b"68487932199-96439406143-93774651418-41631865787-96406072701-\
20604855487-25459966574-28203206787-41238978918-19503783441";

/// Everything that a canned server says and does.
pub struct Script {
    pub version: String,
    /// What a `SELECT … FROM t` returns.
    pub row: Row,
    /// Answers to particular statements; the first match wins.
    pub answers: Vec<Answer>,
    pub service: Service,
    pub faults: Vec<Fault>,
    pub auth: Auth,
    /// Offers `CLIENT_DEPRECATE_EOF`; each client that wants it gets it.
    pub deprecate_eof: bool,
    /// More connections than this at once are refused with error 1040. The process needs a
    /// descriptor for each.
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
            // What the smallest usual hard limit of descriptors (4096) allows.
            connections_max: 4_000,
        }
    }
}

impl Script {
    /// Refuses what would make no sense on the wire.
    pub(crate) fn check(&self) -> Result<()> {
        if self.version.contains('\0') {
            return Err(Error::usage("canned server: the version holds a NUL"));
        }
        self.answers.iter().try_for_each(Answer::check)?;
        self.faults.iter().try_for_each(Fault::check)
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

/// What a statement that contains a text is answered with.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The text, matched without regard to ASCII case; the empty text matches everything.
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
        let rows = rows
            .iter()
            .map(|row| row.iter().map(|value| value.map(str::to_owned)).collect())
            .collect();
        Self::new(matches, Reply::Rows { columns, rows })
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

    fn check(&self) -> Result<()> {
        match &self.reply {
            Reply::Rows { columns, rows } => {
                let wide = columns.len();
                if wide > 0 && rows.iter().all(|row| row.len() == wide) {
                    return Ok(());
                }
                let rows = format!("canned answer '{}': {wide} columns", self.matches);
                Err(Error::usage(format!("{rows}, and rows with as many values, are needed")))
            }
            Reply::Error(error) => error.check(),
            Reply::Ok { .. } | Reply::LocalInfile { .. } => Ok(()),
        }
    }
}

#[derive(Debug, Clone)]
pub enum Reply {
    /// A result set of text columns, `None` is NULL.
    Rows {
        columns: Vec<String>,
        rows: Vec<Vec<Option<String>>>,
    },
    Ok {
        affected: u64,
    },
    /// An error; preparing such a statement fails with it.
    Error(SqlError),
    /// A LOCAL INFILE request, as LOAD DATA LOCAL gets it: the stream is counted and thrown
    /// away, and answered with its number of lines as affected rows. Error 1295 when prepared.
    LocalInfile {
        file: String,
    },
}

/// How long each statement takes: from the arrival of the request (or the answer before it on
/// that connection) to its answer. Connections do not wait for each other. Preparing, pings and
/// the like take no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Instant,
    Constant(Duration),
    /// Exponentially distributed; each connection draws from a stream of its own.
    Exponential {
        mean: Duration,
        seed: u64,
    },
}

/// How a client is let in. No password is ever checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// `mysql_native_password`, any answer is right.
    Native,
    /// Asks the client to switch to this plugin; any answer is right.
    Switch(String),
    Deny,
}
