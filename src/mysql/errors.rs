//! Errors of servers, and their meaning for a client and for a log-in.

use std::fmt;
use std::io::ErrorKind;

use mysql_async::{DriverError, IoError, ServerError};
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::ErrPacket;
use serde::{Deserialize, Serialize};

use crate::error::{Error, clip};
use crate::terms::ErrorClass;

/// Longest message kept, characters; servers' own have some hundred.
pub(super) const MESSAGE_MAX: usize = 2000;
pub const LOST: &str =
    "did the server end, restart, or close idle connections? its error log tells";
pub(super) const NO_PORT: &str = "a closed connection keeps its local port for a minute \
     (TIME_WAIT): raise --reconnect-every, widen net.ipv4.ip_local_port_range, or use a socket \
     (-S); another cause: this host has no address of the server's family (IPv4 or IPv6)";

/// The codes of each class; all others are `ErrorClass::Server`.
static CLASSES: [(ErrorClass, &[u16]); 8] = [
    // Record changed since read; duplicate key (two clients that put the same row back); lock wait timeout; deadlock;
    // Group Replication has undone what another member changed first.
    (ErrorClass::Session, &[1020, 1062, 1205, 1213, 3101]),
    // --read-only and its like; a read-only transaction; read-only mode.
    (ErrorClass::ReadOnly, &[1290, 1792, 1836]),
    // Too many connections; of this account; or another limit of the account.
    (ErrorClass::Full, &[1040, 1203, 1226]),
    // Killed query; max_statement_time (MariaDB); max_execution_time (MySQL).
    (ErrorClass::Interrupted, &[1317, 1969, 3024]),
    // Shutdown; aborted connections; offline mode; killed connection (MariaDB, MySQL).
    (ErrorClass::Ended, &[1053, 1077, 1078, 1079, 1080, 1152, 1184, 1927, 3032, 3169]),
    (ErrorClass::Idle, &[4031]),
    // The binary log cannot be written; an error during COMMIT; logging is impossible; Group Replication's hook.
    (ErrorClass::Commit, &[1026, 1180, 1598, 3100]),
    // TiDB's "execution result undetermined".
    (ErrorClass::Behind, &[8501]),
];

pub(crate) fn class(code: u16) -> ErrorClass {
    // Codes of client libraries: ProxySQL and MaxScale are clients of their servers.
    if (2000..=2999).contains(&code) {
        return ErrorClass::Behind;
    }
    let known = CLASSES.iter().find(|(_, codes)| codes.contains(&code));
    known.map_or(ErrorClass::Server, |(class, _)| class.clone())
}

/// No memory or no thread for another connection; a log-in that was cut off.
const BUSY: [u16; 7] = [1037, 1041, 1135, 1158, 1159, 1160, 1161];
/// A node or a proxy whose servers are gone: Galera, MySQL Router, ProxySQL, TiDB's SQL layer.
const ALONE: [u16; 8] = [1047, 2003, 2006, 2013, 2055, 9001, 9002, 9005];

/// A log-in or a set-up may succeed later by itself: the server starts, shuts down or is full.
pub(crate) fn may_pass(code: u16) -> bool {
    match class(code) {
        // Locks are released and KILLs end.
        ErrorClass::Session
        | ErrorClass::Interrupted
        | ErrorClass::Full
        | ErrorClass::Ended
        | ErrorClass::Idle => true,
        ErrorClass::ReadOnly | ErrorClass::Commit => false,
        _ => BUSY.contains(&code) || ALONE.contains(&code),
    }
}

/// Reads an error packet; before the log-in it has no SQLSTATE.
pub(super) fn server_error(packet: &[u8]) -> Option<ServerError> {
    let read = |flags| ParseBuf(packet).parse::<ErrPacket<'_>>(flags).ok();
    match read(CapabilityFlags::CLIENT_PROTOCOL_41).or_else(|| read(CapabilityFlags::empty()))? {
        ErrPacket::Error(error) => Some(error.into()),
        ErrPacket::Progress(_) => None,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The server refused; the session can still be used.
    Server {
        code: u16,
        sqlstate: String,
        /// Its text on one line, without control characters.
        message: String,
    },
    /// The connection is gone or out of step: the statement's effect is unknown.
    Lost(Loss),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    pub why: String,
    /// This host had no port for the connection.
    no_port: bool,
}

impl Loss {
    /// Returns what to look at.
    pub(crate) fn hint(&self) -> &'static str {
        if self.no_port { NO_PORT } else { LOST }
    }
}

/// The result of a request that only the server or the network can fail.
pub type Asked<T> = std::result::Result<T, Failure>;

/// Turns a server's refusal into None; a lost connection stays an error.
pub(crate) fn optional<T>(asked: Asked<T>) -> Asked<Option<T>> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::Server { .. }) => Ok(None),
        Err(lost @ Failure::Lost(_)) => Err(lost),
    }
}

impl Failure {
    pub fn lost(why: impl Into<String>) -> Failure {
        Failure::Lost(Loss { why: clip(&why.into(), MESSAGE_MAX), no_port: false })
    }

    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Failure::Server { code, .. } => may_pass(*code),
            Failure::Lost(_) => true,
        }
    }

    pub(super) fn explain(&self, what: &str) -> Error {
        let error = Error::server(format!("{what}: {self}")).passing(self.may_pass());
        if let Failure::Lost(loss) = self { error.hint(loss.hint()) } else { error }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Server { code, sqlstate, message } => {
                write!(f, "error {code} ({sqlstate}): {message}")
            }
            Failure::Lost(loss) => write!(f, "connection lost: {}", loss.why),
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
            // Without the driver's prefix, which comes twice.
            mysql_async::Error::Io(IoError::Io(e)) if e.kind() == ErrorKind::AddrNotAvailable => {
                let why = clip(&format!("no local port is left: {e}"), MESSAGE_MAX);
                Failure::Lost(Loss { why, no_port: true })
            }
            mysql_async::Error::Io(IoError::Io(e)) => Failure::lost(e.to_string()),
            // Only a log-in fails like that.
            mysql_async::Error::Driver(DriverError::UnexpectedPacket { .. }) => {
                Failure::lost("the log-in's answer is no MySQL protocol")
            }
            other => Failure::lost(other.to_string()),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let error = match failure {
            Failure::Server { .. } => Error::failed(failure.to_string()),
            Failure::Lost(ref loss) => Error::server(failure.to_string()).hint(loss.hint()),
        };
        error.passing(failure.may_pass())
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
        of(&[1020, 1062, 1205, 1213, 3101], ErrorClass::Session);
        of(&[1290, 1792, 1836], ErrorClass::ReadOnly);
        of(&[1040, 1203, 1226], ErrorClass::Full);
        of(&[1317, 1969, 3024], ErrorClass::Interrupted);
        of(&[1053, 1927, 3169], ErrorClass::Ended);
        of(&[4031], ErrorClass::Idle);
        of(&[1180, 1598, 3100], ErrorClass::Commit);
        of(&[2000, 2003, 2006, 2013, 2055, 2999, 8501], ErrorClass::Behind);
        of(&[1064, 1146, 0, u16::MAX], ErrorClass::Server);
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
