//! Errors of servers: what they mean to the client that got one, and to one that wants in.

use std::fmt;

use mysql_async::{DriverError, IoError, ServerError};
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::ErrPacket;

use crate::error::{Error, clip};
use crate::terms::ErrorClass;

/// Characters of a server's message that are kept; servers' own have some hundred.
pub(super) const MESSAGE_MAX: usize = 2000;
/// Advice about a lost connection.
pub const LOST: &str =
    "did the server end, restart, or close idle connections? its error log tells";

/// The codes of each class; any other code is of the server.
static CLASSES: [(ErrorClass, &[u16]); 8] = [
    // Record changed since read; duplicate key (two clients that put the same row back); lock
    // wait timeout; deadlock.
    (ErrorClass::Session, &[1020, 1062, 1205, 1213]),
    // --read-only and its like; a read-only transaction; read-only mode.
    (ErrorClass::ReadOnly, &[1290, 1792, 1836]),
    // Too many connections; of this account; or another limit of the account.
    (ErrorClass::Full, &[1040, 1203, 1226]),
    // Killed query; max_statement_time (MariaDB); max_execution_time (MySQL).
    (ErrorClass::Interrupted, &[1317, 1969, 3024]),
    // Shutdown; aborted connections; offline mode; killed connection (MariaDB, MySQL).
    (ErrorClass::Ended, &[1053, 1077, 1078, 1079, 1080, 1152, 1184, 1927, 3032, 3169]),
    (ErrorClass::Idle, &[4031]),
    // The binary log cannot be written; an error during COMMIT; logging is impossible; Group
    // Replication's hook.
    (ErrorClass::Commit, &[1026, 1180, 1598, 3100]),
    // TiDB's "execution result undetermined".
    (ErrorClass::Behind, &[8501]),
];

pub(crate) fn class(code: u16) -> ErrorClass {
    // Those of a client library, which ProxySQL and MaxScale are to their servers.
    if (2000..=2999).contains(&code) {
        return ErrorClass::Behind;
    }
    let known = CLASSES.iter().find(|(_, codes)| codes.contains(&code));
    known.map_or(ErrorClass::Server, |(class, _)| class.clone())
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
        ErrorClass::Session
        | ErrorClass::Interrupted
        | ErrorClass::Full
        | ErrorClass::Ended
        | ErrorClass::Idle => true,
        ErrorClass::ReadOnly | ErrorClass::Commit => false,
        _ => BUSY.contains(&code) || ALONE.contains(&code),
    }
}

const READ_ONLY: &str = "the server is read-only: SET GLOBAL read_only = 0 (super_read_only), start it without \
                         innodb_read_only or innodb_force_recovery, or take another server";
const RIGHTS: &str = "the account lacks a right: GRANT it, or -u names another account";
const LOCKED: &str = "another session holds a lock on it: SHOW PROCESSLIST says which";
const TIME_LIMIT: &str =
    "the server's time limit for a statement ended it: max_statement_time, or max_execution_time";
const LARGE: &str = "SET GLOBAL max_allowed_packet: the statement, or its answer, is larger";
const FULL_DISK: &str = "is the server's disk full (data, redo log, tmpdir)?";

/// What to do about an error, by its codes, and whether a statement that got it once gets it each time.
const ADVICE: [(&[u16], &str, bool); 17] = [
    (
        &[1064, 1149, 1193, 1235, 1305, 1630],
        "this server does not take the SQL: is it of another version, or its sql_mode another one?",
        true,
    ),
    (&[1046], "-D names the database", true),
    (
        &[1051, 1054, 1091, 1109, 1136, 1146, 1176],
        "the tables are not those of the statement",
        true,
    ),
    (&[1044, 1142, 1143, 1227, 1370, 1410], RIGHTS, true),
    (&[1048, 1264, 1265, 1292, 1364, 1366, 1406], "a value does not fit its column", true),
    (&[1104], "SET GLOBAL max_join_size, or sql_big_selects = 1: the statement reads more", true),
    (&[1153, 1162, 1301], LARGE, true),
    (&[1461], "SET GLOBAL max_prepared_stmt_count, or --statements text", true),
    // ER_READ_ONLY_MODE and what old versions say; ER_OPTION_PREVENTS_STATEMENT is judged by its text.
    (&[1015, 1036, 1836, 1874], READ_ONLY, false),
    (
        &[1792],
        "transactions are read-only by default: SET GLOBAL tx_read_only = 0, or transaction_read_only",
        false,
    ),
    (&[1205, 1213, 3572], LOCKED, false),
    (&[1317], "somebody ended it by KILL", false),
    (&[1969, 3024], TIME_LIMIT, false),
    (&[3, 1021, 1026, 1030, 1114], FULL_DISK, false),
    (&[1037, 1038, 1041, 1135], "the server has no memory, or no thread, left", false),
    (
        &[126, 127, 144, 145, 1033, 1034, 1035, 1194, 1195, 1712, 1877],
        "CHECK TABLE says what is damaged",
        true,
    ),
    (&[1040, 1203, 1226], "a limit on connections, or of the account, is reached", false),
];

/// Tells whether the server takes no writes. Of 1290 the text names which option keeps a statement back.
fn is_read_only(code: u16, message: &str) -> bool {
    let text = message.to_ascii_lowercase().replace('_', "-");
    code != 1290 || text.contains("read-only") || text.contains("read only")
}

/// Says what to do about an error of a server's, where its code tells.
pub(crate) fn advice(code: u16, message: &str) -> Option<&'static str> {
    if code == 1290 {
        let option = "an option of the server's, which the error names, keeps the statement back";
        return Some(if is_read_only(code, message) { READ_ONLY } else { option });
    }
    ADVICE.iter().find(|(codes, ..)| codes.contains(&code)).map(|(_, advice, _)| *advice)
}

/// Tells whether every statement of its kind gets this error again.
pub(crate) fn recurs(code: u16, message: &str) -> bool {
    let known = ADVICE.iter().find(|(codes, ..)| codes.contains(&code));
    known.map_or_else(|| !is_read_only(code, message), |(.., recurs)| *recurs)
}

/// Reads an error packet; before the log-in it has no SQLSTATE.
pub(super) fn server_error(packet: &[u8]) -> Option<ServerError> {
    let read = |flags| ParseBuf(packet).parse::<ErrPacket<'_>>(flags).ok();
    match read(CapabilityFlags::CLIENT_PROTOCOL_41).or_else(|| read(CapabilityFlags::empty()))? {
        ErrPacket::Error(error) => Some(error.into()),
        ErrPacket::Progress(_) => None,
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

/// The result of a request that only the server or the network can fail.
pub type Asked<T> = std::result::Result<T, Failure>;

/// Makes None of what this server has not; a lost connection stays an error.
pub(crate) fn optional<T>(asked: Asked<T>) -> Asked<Option<T>> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::Server { .. }) => Ok(None),
        Err(lost @ Failure::Lost(_)) => Err(lost),
    }
}

impl Failure {
    pub(super) fn lost(why: &str) -> Failure {
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
            // Only a log-in fails like that.
            mysql_async::Error::Driver(DriverError::UnexpectedPacket { .. }) => {
                Failure::lost("the log-in's answer is no MySQL protocol")
            }
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
        of(&[1020, 1062, 1205, 1213], ErrorClass::Session);
        of(&[1290, 1792, 1836], ErrorClass::ReadOnly);
        of(&[1040, 1203, 1226], ErrorClass::Full);
        of(&[1317, 1969, 3024], ErrorClass::Interrupted);
        of(&[1053, 1927, 3169], ErrorClass::Ended);
        of(&[4031], ErrorClass::Idle);
        of(&[1180, 1598, 3100], ErrorClass::Commit);
        of(&[2003, 2006, 2013, 2055, 8501], ErrorClass::Behind);
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
    fn an_error_has_the_advice_of_its_code_and_of_the_option_that_it_names() {
        struct Case {
            code: u16,
            message: &'static str,
            advice: Option<&'static str>,
            recurs: bool,
        }
        let option =
            "The MariaDB server is running with the --secure-file-priv option so it cannot …";
        for Case { code, message, advice, recurs } in [
            Case {
                code: 1290,
                message: "… the --read-only option …",
                advice: Some(READ_ONLY),
                recurs: false,
            },
            Case {
                code: 1290,
                message: "… --super-read-only …",
                advice: Some(READ_ONLY),
                recurs: false,
            },
            Case {
                code: 1290,
                message: "innodb_read_only",
                advice: Some(READ_ONLY),
                recurs: false,
            },
            Case { code: 1836, message: "", advice: Some(READ_ONLY), recurs: false },
            Case { code: 1153, message: "", advice: Some(LARGE), recurs: true },
            Case { code: 1142, message: "", advice: Some(RIGHTS), recurs: true },
            Case { code: 1969, message: "", advice: Some(TIME_LIMIT), recurs: false },
            Case { code: 3024, message: "", advice: Some(TIME_LIMIT), recurs: false },
            Case { code: 1213, message: "", advice: Some(LOCKED), recurs: false },
            Case { code: 9999, message: "", advice: None, recurs: false },
        ] {
            assert_eq!(super::advice(code, message), advice, "{code} {message}");
            assert_eq!(super::recurs(code, message), recurs, "{code} {message}");
        }
        let advice = super::advice(1290, option);
        assert!(advice.is_some_and(|advice| advice != READ_ONLY) && super::recurs(1290, option));
        let mut codes: Vec<u16> = ADVICE.iter().flat_map(|(codes, ..)| *codes).copied().collect();
        codes.sort_unstable();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "a code has one advice: {codes:?}");
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
