//! Errors of servers: what they mean to the client that got one, and to one that wants in; and what an
//! examination finds.

use std::fmt;

use mysql_async::IoError;

use crate::error::{Error, Result, clip};
use crate::terms::Finding;

/// Characters of a server's message that are kept; servers' own have some hundred.
pub(super) const MESSAGE_MAX: usize = 2000;
/// What to do about a connection that is lost.
pub const LOST: &str =
    "did the server end, restart, or close idle connections? its error log tells";

/// Classes of errors that a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Clients that meet on a row: counted under every policy, the session goes on.
    Session,
    /// The server takes no writes.
    ReadOnly,
    /// It takes no more connections, or no more of this account.
    Full,
    /// The statement was killed, or was too slow for the server's own limit.
    Interrupted,
    /// The server ends the session: it shuts down, or somebody killed it.
    Ended,
    /// The same for its long silence: what was sent after that was never read.
    Idle,
    /// It failed while it committed, and does not say what of it lasts.
    Commit,
    /// A proxy, or a layer above the storage, lost the answer of what is behind it.
    Behind,
    /// Any other.
    Server,
}

pub(crate) fn class(code: u16) -> Class {
    match code {
        // Record changed since read; duplicate key (two clients that put the same row back); lock
        // wait timeout; deadlock.
        1020 | 1062 | 1205 | 1213 => Class::Session,
        // --read-only and its like; a read-only transaction; read-only mode.
        1290 | 1792 | 1836 => Class::ReadOnly,
        // Too many connections; of this account; or another limit of the account.
        1040 | 1203 | 1226 => Class::Full,
        // Killed query; max_statement_time (MariaDB); max_execution_time (MySQL).
        1317 | 1969 | 3024 => Class::Interrupted,
        // Shutdown; aborted connections; offline mode; killed connection (MariaDB, MySQL).
        1053 | 1077..=1080 | 1152 | 1184 | 1927 | 3032 | 3169 => Class::Ended,
        4031 => Class::Idle,
        // The binary log cannot be written; an error during COMMIT; logging is impossible; Group
        // Replication's hook.
        1026 | 1180 | 1598 | 3100 => Class::Commit,
        // Those of a client library, which ProxySQL and MaxScale are to their servers; TiDB's
        // "execution result undetermined".
        2000..=2999 | 8501 => Class::Behind,
        _ => Class::Server,
    }
}

/// No memory or no thread for one more; a log-in that was cut off on the way.
const BUSY: [u16; 7] = [1037, 1041, 1135, 1158, 1159, 1160, 1161];
/// What is behind it is gone: of a Galera node the others; of MySQL Router, ProxySQL and TiDB's SQL
/// layer the server (a client library's: cannot connect, gone away, lost).
const ALONE: [u16; 8] = [1047, 2003, 2006, 2013, 2055, 9001, 9002, 9005];

/// Tells whether a server that answers a log-in, or the preparing of a session, with this error may let
/// it in a little later without anybody's doing: it starts, shuts down, is full.
pub(crate) fn may_pass(code: u16) -> bool {
    match class(code) {
        // Those that hold the locks go on, as do those who kill.
        Class::Session | Class::Interrupted | Class::Full | Class::Ended | Class::Idle => true,
        Class::ReadOnly | Class::Commit => false,
        Class::Server | Class::Behind => BUSY.contains(&code) || ALONE.contains(&code),
    }
}

impl Class {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Session => "session",
            Class::ReadOnly => "read_only",
            Class::Full => "full",
            Class::Interrupted => "interrupted",
            Class::Ended => "ended",
            Class::Idle => "idle",
            Class::Commit => "commit",
            Class::Behind => "behind",
            Class::Server => "server",
        }
    }

    /// Tells whether the session lives on.
    pub(crate) fn keeps_session(self) -> bool {
        !matches!(self, Class::Ended | Class::Idle)
    }

    /// Tells whether a write that got this answer may have been done all the same: a kill that arrives
    /// after the commit takes the answer's place.
    pub(crate) fn leaves_doubt(self) -> bool {
        matches!(self, Class::Interrupted | Class::Ended | Class::Commit | Class::Behind)
    }
}

/// Why a statement has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server said no; the session goes on.
    Server {
        code: u16,
        sqlstate: String,
        /// Its text on one line, without control characters.
        message: String,
    },
    /// The connection is gone, or cannot be trusted any more: what the server did is unknown.
    Lost(String),
}

/// What a question gets that only the server can fail, or the way to it.
pub type Asked<T> = std::result::Result<T, Failure>;

impl Failure {
    fn lost(why: &str) -> Failure {
        Failure::Lost(clip(why, MESSAGE_MAX))
    }

    /// Tells whether another session may do better a little later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Failure::Server { code, .. } => may_pass(*code),
            Failure::Lost(_) => true,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Server { code, sqlstate, message } => {
                write!(f, "error {code} ({sqlstate}): {message}")
            }
            Failure::Lost(what) => write!(f, "connection lost: {what}"),
        }
    }
}

impl From<mysql_async::Error> for Failure {
    fn from(error: mysql_async::Error) -> Self {
        match error {
            mysql_async::Error::Server(e) => Failure::Server {
                code: e.code,
                sqlstate: clip(&e.state, 5),
                message: clip(&e.message, MESSAGE_MAX),
            },
            // Without what the driver puts in front of it, twice.
            mysql_async::Error::Io(IoError::Io(e)) => Failure::lost(&e.to_string()),
            other => Failure::lost(&other.to_string()),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let error = match failure {
            Failure::Server { .. } => Error::failed(failure.to_string()),
            Failure::Lost(_) => Error::server(failure.to_string()).hint(LOST),
        };
        error.passing(failure.may_pass())
    }
}

/// Collects what is wrong instead of stopping at the first thing.
#[derive(Debug, Default)]
pub(super) struct Findings {
    problems: Vec<(String, String)>,
    warnings: Vec<Finding>,
}

impl Findings {
    pub(super) fn problem(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push((message.into(), hint.into()));
    }

    /// Takes note of a problem, and gives None in place of what it keeps from being.
    pub(super) fn refuse<T>(
        &mut self,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Option<T> {
        self.problem(message, hint);
        None
    }

    pub(super) fn warn(&mut self, found: Finding) {
        self.warnings.push(found);
    }

    /// Takes note of a question that the server refused, and passes a lost connection on.
    pub(super) fn asked<T>(
        &mut self,
        asked: Asked<T>,
        what: &str,
        hint: impl FnOnce(u16) -> String,
    ) -> Asked<Option<T>> {
        let failure = match asked {
            Ok(answer) => return Ok(Some(answer)),
            Err(failure) => failure,
        };
        let Failure::Server { code, .. } = failure else { return Err(failure) };
        self.problem(format!("{what}: {failure}"), hint(code));
        Ok(None)
    }

    /// Gives the warnings, or one error with all the problems and their hints.
    pub(super) fn conclude(self) -> Result<Vec<Finding>> {
        let message = match self.problems.as_slice() {
            [] => return Ok(self.warnings),
            [(only, _)] => only.clone(),
            several => {
                let listed =
                    several.iter().zip(1..).map(|((what, _), i)| format!("\n  {i}. {what}"));
                let listed = listed.collect::<String>();
                format!("{} things keep this from running:{listed}", several.len())
            }
        };
        let add = |error: Error, hint: String| {
            if error.hints().contains(&hint) { error } else { error.hint(hint) }
        };
        let hints = self.problems.into_iter().map(|(_, hint)| hint);
        Err(hints.fold(Error::server(message), add))
    }
}

#[cfg(test)]
mod class_tests {
    use super::*;

    #[test]
    fn every_code_of_the_policy_has_its_class() {
        let of = |codes: &[u16], expected| {
            for code in codes {
                assert_eq!(class(*code), expected, "{code}");
            }
        };
        of(&[1020, 1062, 1205, 1213], Class::Session);
        of(&[1290, 1792, 1836], Class::ReadOnly);
        of(&[1040, 1203, 1226], Class::Full);
        of(&[1317, 1969, 3024], Class::Interrupted);
        of(&[1053, 1927, 3169], Class::Ended);
        of(&[4031], Class::Idle);
        of(&[1180, 1598, 3100], Class::Commit);
        of(&[2003, 2006, 2013, 2055, 8501], Class::Behind);
        of(&[1064, 1146, 0, u16::MAX], Class::Server);
    }

    #[test]
    fn what_waiting_does_not_mend_is_told_from_what_it_does() {
        for code in [1040, 1203, 1226, 1053, 1077, 3032, 1205, 1317, 1135, 1159, 1047, 2003, 9001] {
            assert!(may_pass(code), "{code}");
        }
        // Account, database, tables, rights, statements, log-in methods, host, locked, expired, TLS.
        for code in [
            1045, 1698, 1044, 1049, 1146, 1142, 1143, 1054, 1064, 1461, 1251, 1524, 1129, 1130,
            3118, 4151, 1820, 1862, 3159, 1115, 1290, 2059, 0,
        ] {
            assert!(!may_pass(code), "{code}");
        }
    }

    #[test]
    fn only_what_may_have_been_done_is_in_doubt() {
        assert!(
            class(1180).leaves_doubt() && class(1317).leaves_doubt() && class(1053).leaves_doubt()
        );
        assert!(class(2013).leaves_doubt() && class(2013).keeps_session());
        assert!(!class(4031).leaves_doubt() && !class(1290).leaves_doubt());
        assert!(class(1317).keeps_session() && !class(1927).keeps_session());
    }
}

#[cfg(test)]
mod findings_tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn one_problem_is_the_message() {
        let mut findings = Findings::default();
        findings.warn(crate::terms::finding!(MixedDataSeeds));
        findings.problem("too few", "more");
        let error = findings.conclude().expect_err("a problem");
        assert_eq!(error.kind(), Kind::Server);
        assert_eq!(error.render(), "error: too few\n\nhint: more\n");
    }

    #[test]
    fn several_are_counted_and_hints_given_once() {
        let mut findings = Findings::default();
        findings.problem("a is missing", "prepare");
        findings.problem("b is missing", "prepare");
        findings.problem("c is small", "raise c");
        let error = findings.conclude().expect_err("problems");
        assert_eq!(
            error.render(),
            "error: 3 things keep this from running:\n  1. a is missing\n  2. b is missing\n  \
             3. c is small\n\nhint: prepare\nhint: raise c\n"
        );
    }

    #[test]
    fn only_a_lost_connection_ends_the_examination() {
        let mut findings = Findings::default();
        let said = Failure::Server { code: 1142, sqlstate: "42000".into(), message: "no".into() };
        assert!(findings.asked::<()>(Err(said), "sbtest1", |code| format!("hint {code}")).is_ok());
        let lost = Failure::Lost("gone".to_owned());
        assert_eq!(findings.asked::<()>(Err(lost.clone()), "x", |_| String::new()), Err(lost));
        let error = findings.conclude().expect_err("a problem");
        assert_eq!(error.to_string(), "sbtest1: error 1142 (42000): no");
        assert_eq!(error.hints(), ["hint 1142"]);
    }
}
