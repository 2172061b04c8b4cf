//! One connection. The only file on the hot path that touches the driver.
//!
//! A query future that is dropped before its answer leaves the answer in the connection, and
//! the next query returns it (see `docs/dev/driver.md`). So whoever gives up on a query drops the
//! whole `Session`, and one that is used all the same refuses.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Value};

use super::connect::{self, ServerLink};
pub use super::errors::{Asked, Failure, LOST};
use super::options::ConnectOptions;
use crate::error::{Error, Result, plain};
use crate::stop::within;
use crate::terms::units;

/// The chunks of a LOAD DATA LOCAL; each becomes one packet. An `Err` would end the stream
/// as if it were whole, and the server would keep the rows so far: drop the session instead.
pub(crate) type Infile = BoxStream<'static, std::io::Result<Bytes>>;

/// Bytes of one answer off the hot path that are kept: InnoDB's monitor has a mebibyte.
const ANSWER_MAX: usize = 64 << 20;

/// An open connection and its prepared statements. Handles of one session mean nothing to
/// another: the driver would run whatever has that id there.
pub struct Session {
    conn: Conn,
    statements: Vec<mysql_async::Statement>,
    /// An answer is due: a future that was dropped, or a broken connection, leaves it set.
    waiting: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub rows: u64,
    pub affected: u64,
    pub first: Option<Row>,
}

impl Answer {
    /// Reads the first column of the first row.
    pub fn content(&self) -> Option<&[u8]> {
        match self.first.as_ref()?.as_ref(0)? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Reads the first column of the first row as a whole number, text or not.
    pub fn number(&self) -> Option<u64> {
        match self.first.as_ref()?.as_ref(0)? {
            Value::UInt(n) => Some(*n),
            Value::Int(n) => u64::try_from(*n).ok(),
            Value::Bytes(bytes) => std::str::from_utf8(bytes.trim_ascii_end()).ok()?.parse().ok(),
            _ => None,
        }
    }
}

impl Session {
    /// Connects and authenticates within the target's limit, then sets the character set if one
    /// is given.
    pub async fn open(link: &ServerLink, charset: Option<&str>) -> Result<Session> {
        let conn = connect::connect(&link.target, &link.opts).await?;
        Session::begun(conn, &link.target, charset).await.map_err(|failure| {
            Error::server(format!("--charset {}: {failure}", charset.unwrap_or_default()))
                .passing(failure.may_pass())
        })
    }

    /// Does the same for a server that has let such a session in before: why not now, without hints.
    pub async fn open_again(link: &ServerLink, charset: Option<&str>) -> Asked<Session> {
        let conn = connect::try_connect(&link.target, &link.opts).await?;
        Session::begun(conn, &link.target, charset).await
    }

    async fn begun(conn: Conn, target: &ConnectOptions, charset: Option<&str>) -> Asked<Session> {
        let mut session = Session { conn, statements: Vec::new(), waiting: false };
        let Some(charset) = charset else { return Ok(session) };
        let limit = target.connect_timeout;
        let set = within(limit, async move {
            session.execute(&format!("SET NAMES {}", quoted_text(charset))).await?;
            Ok(session)
        });
        set.await.unwrap_or_else(|| {
            let limit = units::duration(limit);
            Err(Failure::Lost(format!("SET NAMES was not answered within {limit}")))
        })
    }

    /// Tells whether it can be asked something.
    pub(crate) fn is_usable(&self) -> bool {
        !self.waiting
    }

    /// Drops a session whose answer nobody waits for any more. Within a runtime the driver would wait
    /// for the rest of an answer, maybe for ever, to say goodbye.
    pub(crate) fn abandon(self) {
        // Where there is no thread to be had it is dropped here.
        let _ = std::thread::Builder::new().spawn(move || drop(self));
    }

    pub fn id(&self) -> u32 {
        self.conn.id()
    }

    pub async fn prepare(&mut self, sql: &str) -> Asked<usize> {
        begin(&mut self.waiting)?;
        let prepared = self.conn.prep(sql).await;
        let statement = self.end(prepared)?;
        self.statements.push(statement);
        Ok(self.statements.len() - 1)
    }

    pub async fn run_prepared(&mut self, handle: usize, params: Vec<Value>) -> Asked<Answer> {
        let Some(statement) = self.statements.get(handle) else {
            return Err(Failure::Lost(format!("no statement {handle} in this session")));
        };
        begin(&mut self.waiting)?;
        let mut answer = Answer::default();
        let params = if params.is_empty() { Params::Empty } else { Params::Positional(params) };
        let outcome = async {
            let result = self.conn.exec_iter(statement, params).await?;
            result.for_each_and_drop(|row| answer.take(row)).await
        };
        let outcome = outcome.await;
        self.end(outcome)?;
        answer.affected = self.conn.affected_rows();
        Ok(answer)
    }

    /// Runs SQL that may be in any character set: one round trip.
    pub async fn run_text(&mut self, sql: impl AsRef<[u8]>) -> Asked<Answer> {
        let mut answer = Answer::default();
        self.read(sql, |row| answer.take(row)).await?;
        answer.affected = self.conn.affected_rows();
        Ok(answer)
    }

    /// Runs SQL off the hot path and returns the rows affected.
    pub async fn execute(&mut self, sql: &str) -> Asked<u64> {
        Ok(self.run_text(sql).await?.affected)
    }

    /// Runs SQL off the hot path and returns all rows as text, NULL as None.
    pub async fn query(&mut self, sql: &str) -> Asked<Vec<Vec<Option<String>>>> {
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        let take = |row: Row| {
            bytes = bytes.saturating_add(size(&row));
            if bytes <= ANSWER_MAX {
                rows.push(texts(&row));
            }
        };
        self.read(sql, take).await?;
        if bytes > ANSWER_MAX {
            self.waiting = true;
            return Err(Failure::Lost(format!("an answer of more than {} MiB", ANSWER_MAX >> 20)));
        }
        Ok(rows)
    }

    /// Runs SQL and hands its rows on as they come: answers larger than memory.
    pub(crate) async fn read(&mut self, sql: impl AsRef<[u8]>, take: impl FnMut(Row)) -> Asked<()> {
        begin(&mut self.waiting)?;
        let outcome =
            async { self.conn.query_iter(sql.as_ref()).await?.for_each_and_drop(take).await };
        let outcome = outcome.await;
        self.end(outcome)
    }

    fn end<T>(&mut self, outcome: mysql_async::Result<T>) -> Asked<T> {
        let outcome = outcome.map_err(Failure::from);
        self.waiting = matches!(outcome, Err(Failure::Lost(_)));
        outcome
    }

    pub(crate) fn warnings(&self) -> u16 {
        self.conn.get_warnings()
    }

    /// LOAD DATA LOCAL: sends only this stream, whatever file the server asks for. The handler
    /// stays armed when the server refuses, so the session is consumed then.
    pub async fn load_data(mut self, sql: &str, infile: Infile) -> Asked<(Session, u64)> {
        // The driver wants a handler that is Sync, which a boxed stream is not.
        let infile = std::sync::Mutex::new(infile);
        self.conn.set_infile_handler(async move {
            Ok(infile.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
        });
        let affected = self.execute(sql).await?;
        Ok((self, affected))
    }

    /// Says goodbye, for at most `limit`.
    pub async fn close(self, limit: Duration) {
        let _ = within(limit, self.conn.disconnect()).await;
    }
}

/// Refuses a session whose last answer was never read, or that broke: the driver itself would
/// return the answer of before.
fn begin(waiting: &mut bool) -> Asked<()> {
    if std::mem::replace(waiting, true) {
        return Err(Failure::Lost("the answer before was given up on".to_owned()));
    }
    Ok(())
}

impl Answer {
    fn take(&mut self, row: Row) {
        self.rows += 1;
        if self.first.is_none() {
            self.first = Some(row);
        }
    }
}

fn size(row: &Row) -> usize {
    let bytes = |i| match row.as_ref(i) {
        Some(Value::Bytes(bytes)) => bytes.len(),
        _ => 0,
    };
    (0..row.len()).map(|i| bytes(i) + size_of::<Option<String>>()).sum::<usize>() + size_of::<Row>()
}

fn texts(row: &Row) -> Vec<Option<String>> {
    (0..row.len())
        .map(|i| match row.as_ref(i) {
            None | Some(Value::NULL) => None,
            Some(Value::Bytes(bytes)) => Some(plain(&String::from_utf8_lossy(bytes))),
            Some(other) => Some(other.as_sql(true)),
        })
        .collect()
}

/// Makes a string literal of a name or an option. Not of data: under NO_BACKSLASH_ESCAPES a backslash
/// would be two.
pub(crate) fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
