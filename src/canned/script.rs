//! What the server shall say: data, and the check that it makes sense.

use std::time::Duration;

use super::fault::Fault;
use super::wire::SqlError;
use crate::error::{Error, Result};

/// A `c` of sysbench's format: ten groups of eleven digits, 119 bytes.
const SYSBENCH_C: &[u8] = b"68487932199-96439406143-93774651418-41631865787-96406072701-\
20604855487-25459966574-28203206787-41238978918-19503783441";

/// Everything that a canned server says and does.
#[derive(Debug, Clone)]
pub struct Script {
    /// The version in the greeting.
    pub version: String,
    /// What a `SELECT … FROM t` returns.
    pub row: Row,
    /// Answers to particular statements; the first match wins.
    pub answers: Vec<Answer>,
    /// How long a statement takes.
    pub service: Service,
    /// What goes wrong, and when; of several that fire at once the first one counts.
    pub faults: Vec<Fault>,
    /// How a client is let in.
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
        for answer in &self.answers {
            answer.check()?;
        }
        for fault in &self.faults {
            fault.check()?;
        }
        Ok(())
    }
}

/// The canned rows: one CHAR column, every row the same.
#[derive(Debug, Clone)]
pub struct Row {
    /// The column's name.
    pub column: String,
    /// The value of each row.
    pub content: Vec<u8>,
    /// Rows a SELECT.
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
    /// The answer.
    pub reply: Reply,
}

impl Answer {
    /// Any reply.
    pub(crate) fn new(matches: impl Into<String>, reply: Reply) -> Self {
        Answer { matches: matches.into(), reply }
    }

    /// One row with one column.
    pub fn value(matches: impl Into<String>, column: &str, value: &str) -> Self {
        Self::rows(matches, &[column], &[&[Some(value)]])
    }

    /// Rows of text.
    pub fn rows(matches: impl Into<String>, columns: &[&str], rows: &[&[Option<&str>]]) -> Self {
        let columns = columns.iter().map(|&c| c.to_owned()).collect();
        let rows = rows
            .iter()
            .map(|row| row.iter().map(|value| value.map(str::to_owned)).collect())
            .collect();
        Self::new(matches, Reply::Rows { columns, rows })
    }

    /// OK with this many affected rows.
    pub fn ok(matches: impl Into<String>, affected: u64) -> Self {
        Self::new(matches, Reply::Ok { affected })
    }

    /// An error.
    pub fn error(matches: impl Into<String>, code: u16, sqlstate: &str, message: &str) -> Self {
        Self::new(matches, Reply::Error(SqlError::new(code, sqlstate, message)))
    }

    /// A request for a local file.
    pub fn local_infile(matches: impl Into<String>, file: &str) -> Self {
        Self::new(matches, Reply::LocalInfile { file: file.to_owned() })
    }

    fn check(&self) -> Result<()> {
        let name = &self.matches;
        match &self.reply {
            Reply::Rows { columns, rows } => {
                if columns.is_empty() {
                    return Err(Error::usage(format!("canned answer '{name}' has no column")));
                }
                if rows.iter().any(|row| row.len() != columns.len()) {
                    return Err(Error::usage(format!(
                        "canned answer '{name}' has a row without {} values",
                        columns.len()
                    )));
                }
                Ok(())
            }
            Reply::Error(error) => error.check(),
            Reply::Ok { .. } | Reply::LocalInfile { .. } => Ok(()),
        }
    }
}

/// The answer to a statement.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A result set of text columns, `None` is NULL.
    Rows {
        /// Names of the columns.
        columns: Vec<String>,
        /// One value a column in each row.
        rows: Vec<Vec<Option<String>>>,
    },
    /// OK.
    Ok {
        /// Affected rows.
        affected: u64,
    },
    /// An error; preparing such a statement fails with it.
    Error(SqlError),
    /// A LOCAL INFILE request, as LOAD DATA LOCAL gets it: the stream is counted and thrown
    /// away, and answered with its number of lines as affected rows. Error 1295 when prepared.
    LocalInfile {
        /// The file that the client is asked for.
        file: String,
    },
}

/// How long each statement takes: from the arrival of the request (or the answer before it on
/// that connection) to its answer. Connections do not wait for each other. Preparing, pings and
/// the like take no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// As fast as the machine allows.
    Instant,
    /// The same time for each.
    Constant(Duration),
    /// Exponentially distributed; each connection draws from a stream of its own.
    Exponential {
        /// The mean.
        mean: Duration,
        /// Makes the streams repeatable.
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
    /// Refused with error 1045.
    Deny,
}
