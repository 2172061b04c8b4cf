//! Errors by code: counted, never dropped, never silently retried.

use crate::error::{Error, Kind, plain};
use crate::mysql::session::Failure;
use crate::summary::ErrorCount;

/// Errors after which the session and the step go on: record changed since read (1020), duplicate
/// key (1062: two clients that put the same row back), lock wait timeout (1205), deadlock (1213).
const SESSION_CODES: [u16; 4] = [1020, 1062, 1205, 1213];
/// Different errors kept apart at most; a server that makes up codes must not fill memory.
const KINDS_MAX: usize = 1000;

/// Why an op has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpError {
    /// The server or the connection.
    Failure(Failure),
    /// An answer that is not what the workload says.
    Wrong(String),
    /// The driver panicked.
    Driver(String),
}

impl OpError {
    /// Whether the client can go on with this session.
    pub(crate) fn keeps_session(&self) -> bool {
        matches!(self, OpError::Failure(Failure::Server { code, .. }) if SESSION_CODES.contains(code))
    }

    /// The error of a step that it ends; clients count from 0.
    pub(crate) fn ends(&self, client: u32) -> Error {
        let text = format!("client {client}: {self}");
        match self {
            OpError::Failure(Failure::Lost(_)) => Error::new(Kind::Failed, text).hint(
                "did the server end, restart, or close idle connections? its error log tells",
            ),
            OpError::Wrong(_) => Error::new(Kind::Failed, text)
                .hint("the tables are not what this workload needs; loadgen prepare makes them"),
            OpError::Failure(Failure::Server { .. }) | OpError::Driver(_) => {
                Error::new(Kind::Failed, text)
            }
        }
    }

    fn count(&self) -> ErrorCount {
        let (code, sqlstate, class, message) = match self {
            OpError::Failure(Failure::Server { code, sqlstate, message }) => {
                let class = if self.keeps_session() { "session" } else { "server" };
                (Some(*code), Some(sqlstate.clone()), class, message)
            }
            OpError::Failure(Failure::Lost(what)) => (None, None, "lost", what),
            OpError::Wrong(what) => (None, None, "wrong", what),
            OpError::Driver(what) => (None, None, "driver", what),
        };
        ErrorCount { code, sqlstate, class: class.to_owned(), message: plain(message), count: 1 }
    }
}

impl std::fmt::Display for OpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpError::Failure(failure) => failure.fmt(f),
            OpError::Wrong(what) => write!(f, "wrong answer: {what}"),
            OpError::Driver(what) => write!(f, "the driver panicked on an answer: {what}"),
        }
    }
}

/// Counts by class and code; the text is that of the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Errors(Vec<ErrorCount>);

impl Errors {
    pub(crate) fn add(&mut self, error: &OpError) {
        self.add_count(error.count());
    }

    fn add_count(&mut self, new: ErrorCount) {
        let same = |old: &&mut ErrorCount| old.code == new.code && old.class == new.class;
        let full = self.0.len() >= KINDS_MAX;
        if let Some(old) = self.0.iter_mut().find(same) {
            old.count += new.count;
        } else if !full {
            self.0.push(new);
        } else if let Some(last) = self.0.last_mut() {
            // More codes than there are: they count with the last.
            last.count += new.count;
        }
    }

    pub(crate) fn merge(&mut self, other: Errors) {
        other.0.into_iter().for_each(|e| self.add_count(e));
    }

    /// The most frequent first.
    pub(crate) fn into_counts(mut self) -> Vec<ErrorCount> {
        self.0.sort_by_key(|e| (std::cmp::Reverse(e.count), e.code));
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: u16) -> OpError {
        OpError::Failure(Failure::Server {
            code,
            sqlstate: "40001".to_owned(),
            message: format!("text of {code} \u{1b}[2J"),
        })
    }

    #[test]
    fn codes_are_counted_and_only_session_errors_keep_the_session() {
        let mut errors = Errors::default();
        errors.add(&server(1290));
        errors.add(&server(1213));
        let mut more = Errors::default();
        more.add(&server(1213));
        more.add(&OpError::Failure(Failure::Lost("reset".to_owned())));
        more.add(&OpError::Wrong("0 rows".to_owned()));
        errors.merge(more);
        let counts = errors.into_counts();
        assert_eq!((counts[0].code, counts[0].count), (Some(1213), 2));
        assert_eq!(counts.len(), 4);
        assert!(!counts[0].message.contains('\u{1b}'));
        assert!([1020, 1062, 1205].into_iter().all(|code| server(code).keeps_session()));
        assert!(!server(1290).keeps_session());
        assert!(!OpError::Wrong(String::new()).keeps_session());
    }

    #[test]
    fn a_server_that_makes_up_codes_does_not_fill_memory() {
        let mut errors = Errors::default();
        (0..5000).for_each(|code| errors.add(&server(code)));
        let counts = errors.into_counts();
        assert_eq!(counts.len(), KINDS_MAX);
        assert_eq!(counts.iter().map(|c| c.count).sum::<u64>(), 5000);
    }
}
