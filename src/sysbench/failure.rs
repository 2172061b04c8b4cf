//! sysbench's lines for what a server, or the way to it, fails: the messages of one error, in order.
//!
//! The places in the stock scripts are those of sysbench 1.0.20.

use super::settings::{Command, Settings, Test};
use crate::mysql::Failure;
use crate::mysql::options::Address;

/// Fatal, after the lines of a client that cannot begin its run.
pub(crate) const INIT_FAILED: &str = "Thread initialization failed!";

/// Calls of sysbench's driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// Text, and all DDL.
    Query,
    Execute,
    /// An INSERT of many rows, sent because the next row does not fit.
    BulkNext,
    /// The last one of such.
    BulkDone,
}

const COMMON: &str = "oltp_common.lua";

/// The script that a test has of its own.
fn script(test: Option<Test>) -> &'static str {
    match test {
        Some(Test::BulkInsert) => "bulk_insert.lua",
        Some(Test::RandomPoints) => "select_random_points.lua",
        Some(Test::RandomRanges) => "select_random_ranges.lua",
        Some(Test::Insert) => "oltp_insert.lua",
        Some(Test::Delete) => "oltp_delete.lua",
        _ => COMMON,
    }
}

/// The lines of the scripts that send a statement: the test that has its own, how the statement begins,
/// and what it holds. The first that fits counts.
const SENT: [(Option<Test>, &str, &str, u32); 21] = [
    (Some(Test::BulkInsert), "CREATE", "", 23),
    (Some(Test::BulkInsert), "DROP", "", 54),
    (Some(Test::RandomPoints), "SELECT id", "", 71),
    (Some(Test::RandomRanges), "SELECT count", "", 76),
    (Some(Test::Insert), "INSERT", "", 61),
    (Some(Test::Delete), "DELETE", "", 33),
    (None, "SET tmp_table_size", "", 103),
    (None, "SET max_heap_table_size", "", 104),
    (None, "ANALYZE", "", 110),
    (None, "SELECT AVG", "", 111),
    (None, "SELECT COUNT(*)", "", 116),
    (None, "CREATE TABLE", "", 197),
    (None, "CREATE INDEX", "", 238),
    (None, "DROP", "", 392),
    (None, "BEGIN", "", 405),
    (None, "COMMIT", "", 409),
    (None, "SELECT", "WHERE id=", 419),
    (None, "SELECT", "", 432),
    (None, "UPDATE", "SET k=", 458),
    (None, "UPDATE", "", 469),
    (None, "DELETE", "", 487),
];
const SENT_INSERT: u32 = 488;

fn sent(settings: &Settings, sql: &str) -> (&'static str, u32) {
    let fits = |(test, begins, holds, _): &&(Option<Test>, &str, &str, u32)| {
        test.is_none_or(|test| test == settings.test)
            && sql.trim_start().starts_with(begins)
            && sql.contains(holds)
    };
    SENT.iter().find(fits).map_or((COMMON, SENT_INSERT), |(test, .., line)| (script(*test), *line))
}

/// The function that calls a script.
fn caller(settings: &Settings) -> &'static str {
    match (settings.command, settings.test) {
        (Command::Run, _) => "thread_run",
        (Command::Cleanup, _) => "cleanup",
        (Command::Prepare, Test::BulkInsert) => "prepare",
        _ => "sysbench.cmdline.call_command",
    }
}

fn failed(function: &str, (script, line): (&str, u32), why: &str) -> String {
    format!("`{function}' function failed: /usr/share/sysbench/{script}:{line}: {why}")
}

/// Tells number, state and text, as the client library has them.
fn error(failure: &Failure) -> (u16, &str, &str) {
    match failure {
        Failure::Server { code, sqlstate, message } => (*code, sqlstate, message),
        Failure::Lost(_) => (2013, "HY000", "Lost connection to server during query"),
    }
}

/// Makes the lines of a connection that cannot be opened.
pub(crate) fn connect_lines(settings: &Settings, failure: &Failure) -> Vec<String> {
    let (function, place) = connecting(settings);
    vec![
        format!("unable to connect to MySQL server {}, aborting...", settings.server),
        format!("error {}", connect_error(settings, failure)),
        failed(function, place, "connection creation failed"),
    ]
}

/// Makes the lines of a driver that cannot be used.
pub(crate) fn driver_lines(settings: &Settings, fault: &str) -> Vec<String> {
    // The scripts take the driver in the line before.
    let (function, (script, line)) = connecting(settings);
    let why = "failed to initialize the DB driver";
    let mut lines = vec![fault.to_owned(), failed(function, (script, line - 1), why)];
    lines.extend((settings.command == Command::Run).then(|| INIT_FAILED.to_owned()));
    lines
}

/// Where the scripts connect.
fn connecting(settings: &Settings) -> (&'static str, (&'static str, u32)) {
    let function = if settings.command == Command::Run { "thread_init" } else { caller(settings) };
    let own = Some(settings.test);
    let place = match (settings.command, settings.test) {
        (Command::Run, Test::BulkInsert) => (script(own), 12),
        (Command::Run, Test::RandomPoints) => (script(own), 34),
        (Command::Run, Test::RandomRanges) => (script(own), 36),
        (Command::Cleanup, Test::BulkInsert) => (script(own), 50),
        (_, Test::BulkInsert) => (script(own), 19),
        (Command::Run, _) => (COMMON, 349),
        (Command::Cleanup, _) => (COMMON, 388),
        (Command::Prewarm, _) => (COMMON, 98),
        (Command::Prepare, _) => (COMMON, 83),
    };
    (function, place)
}

/// Writes the error of a connection as libmariadb does, whose number for TCP is that of a connection
/// that is still being opened.
fn connect_error(settings: &Settings, failure: &Failure) -> String {
    const IN_PROGRESS: i32 = 115;
    let why = match failure {
        Failure::Server { code, message, .. } => return format!("{code}: {message}"),
        Failure::Lost(why) => why,
    };
    let number = why.rsplit_once("(os error ").and_then(|(_, rest)| rest.strip_suffix(')'));
    let number = number.and_then(|number| number.parse::<i32>().ok());
    match (&settings.connect.address, number) {
        (Address::Socket(path), Some(number)) => {
            let path = path.display();
            format!("2002: Can't connect to local server through socket '{path}' ({number})")
        }
        (Address::Tcp { host, .. }, Some(_)) => {
            format!("2002: Can't connect to server on '{host}' ({IN_PROGRESS})")
        }
        (Address::Tcp { host, .. }, None) if why.starts_with("failed to lookup address") => {
            format!("2005: Unknown server host '{host}' (-2)")
        }
        _ => format!("2013: Lost connection to server at 'handshake': {why}"),
    }
}

/// Makes the lines of a statement that cannot be prepared; the command is `run`.
pub(crate) fn prepare_lines(settings: &Settings, failure: &Failure, sql: &str) -> Vec<String> {
    let place = match (settings.test, sql) {
        (_, "BEGIN") => (COMMON, 275),
        (_, "COMMIT") => (COMMON, 279),
        (Test::RandomPoints, _) => (script(Some(settings.test)), 38),
        (Test::RandomRanges, _) => (script(Some(settings.test)), 42),
        _ => (COMMON, 284),
    };
    let (code, _, text) = error(failure);
    vec![
        "mysql_stmt_prepare() failed".to_owned(),
        format!("MySQL error: {code} \"{text}\""),
        failed("thread_init", place, "SQL API error"),
    ]
}

/// Makes the lines of a statement of the stock scripts, which ends the command.
pub(crate) fn statement_lines(
    settings: &Settings,
    failure: &Failure,
    call: Call,
    sql: &str,
) -> Vec<String> {
    let (code, state, text) = error(failure);
    let of_run = settings.command == Command::Run;
    let bulk = |line| if of_run { (script(Some(Test::BulkInsert)), line) } else { (COMMON, line) };
    let last = match call {
        Call::Query | Call::Execute => {
            let why = format!("SQL error, errno = {code}, state = '{state}': {text}");
            failed(caller(settings), sent(settings, sql), &why)
        }
        Call::BulkNext => {
            let place = bulk(if of_run { 38 } else { 230 });
            failed(caller(settings), place, "db_bulk_insert_next() failed")
        }
        Call::BulkDone => {
            let function = if of_run { "thread_done" } else { caller(settings) };
            let place = bulk(if of_run { 42 } else { 233 });
            failed(function, place, "db_bulk_insert_done() failed")
        }
    };
    let name = if call == Call::Execute { "mysql_stmt_execute()" } else { "mysql_drv_query()" };
    vec![format!("{name} returned error {code} ({text}) for query '{sql}'"), last]
}

/// Makes the line of a cleanup that takes one table only.
pub(crate) fn one_table_line(settings: &Settings) -> String {
    let line = if settings.test == Test::RandomPoints { 27 } else { 29 };
    let why = "this benchmark does not support --tables > 1";
    failed(caller(settings), (script(Some(settings.test)), line), why)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{usual, usual_with};
    use super::*;

    fn missing() -> Failure {
        Failure::Server {
            code: 1146,
            sqlstate: "42S02".to_owned(),
            message: "Table 'sbtest.sbtest2' doesn't exist".to_owned(),
        }
    }

    fn of(test: Test, command: Command) -> Settings {
        Settings { test, command, ..usual() }
    }

    struct Refused {
        host: &'static str,
        socket: Option<&'static str>,
        why: &'static str,
        lines: [&'static str; 2],
    }

    #[test]
    fn connection_error_is_libmariadbs_when_no_server_is_there() {
        let refused = "Connection refused (os error 111)";
        for Refused { host, socket, why, lines } in [
            Refused {
                host: "127.0.0.1",
                socket: None,
                why: refused,
                lines: [
                    "unable to connect to MySQL server on host '127.0.0.1', port 3306, aborting...",
                    "error 2002: Can't connect to server on '127.0.0.1' (115)",
                ],
            },
            Refused {
                host: "nosuch.invalid",
                socket: None,
                why: "failed to lookup address information: Name or service not known",
                lines: [
                    "unable to connect to MySQL server on host 'nosuch.invalid', port 3306, \
                     aborting...",
                    "error 2005: Unknown server host 'nosuch.invalid' (-2)",
                ],
            },
            Refused {
                host: "localhost",
                socket: Some("/nonexistent/s"),
                why: "No such file or directory (os error 2)",
                lines: [
                    "unable to connect to MySQL server on socket '/nonexistent/s', aborting...",
                    "error 2002: Can't connect to local server through socket '/nonexistent/s' (2)",
                ],
            },
            Refused {
                host: "localhost",
                socket: None,
                why: refused,
                lines: [
                    "unable to connect to MySQL server on host 'localhost', port 3306, aborting...",
                    "error 2002: Can't connect to local server through socket \
                     '/run/mysqld/mysqld.sock' (111)",
                ],
            },
        ] {
            let socket = socket.map_or_else(String::new, |path| format!("--mysql-socket={path}"));
            let asked = usual_with(&format!("--mysql-host={host} {socket}"));
            let found = connect_lines(&asked, &Failure::Lost(why.to_owned()));
            assert_eq!(found[..2], lines);
            assert_eq!(
                found[2],
                "`thread_init' function failed: /usr/share/sysbench/oltp_common.lua:349: \
                 connection creation failed"
            );
        }
    }

    struct Sent {
        test: Test,
        command: Command,
        sql: &'static str,
        place: &'static str,
    }

    #[test]
    fn failed_statement_names_its_place_in_the_stock_script_when_it_ends_a_command() {
        let run = |test, sql, place| Sent { test, command: Command::Run, sql, place };
        let other = |command, sql, place| Sent { test: Test::ReadWrite, command, sql, place };
        let call_command = "`sysbench.cmdline.call_command' function failed: \
                            /usr/share/sysbench/oltp_common.lua:197";
        for Sent { test, command, sql, place } in [
            run(Test::ReadOnly, "BEGIN", "oltp_common.lua:405"),
            run(Test::PointSelect, "SELECT c FROM sbtest2 WHERE id=?", "oltp_common.lua:419"),
            run(Test::ReadOnly, "SELECT c FROM sbtest2 WHERE id BETWEEN ? AND ?", ".lua:432"),
            run(Test::ReadOnly, "SELECT SUM(k) FROM sbtest2 WHERE id BETWEEN 1 AND 2", ".lua:432"),
            run(Test::UpdateIndex, "UPDATE sbtest2 SET k=k+1 WHERE id=?", "oltp_common.lua:458"),
            run(Test::WriteOnly, "UPDATE sbtest2 SET c=? WHERE id=?", "oltp_common.lua:469"),
            run(Test::WriteOnly, "DELETE FROM sbtest2 WHERE id=?", "oltp_common.lua:487"),
            run(Test::Delete, "DELETE FROM sbtest2 WHERE id=?", "oltp_delete.lua:33"),
            run(Test::Insert, "INSERT INTO sbtest2 (id, k) VALUES (0, 1)", "oltp_insert.lua:61"),
            run(Test::RandomPoints, "        SELECT id, k", "select_random_points.lua:71"),
            other(Command::Prepare, "CREATE TABLE sbtest2(", call_command),
            other(Command::Prewarm, "ANALYZE TABLE sbtest2", "call_command' function failed"),
            other(Command::Cleanup, "DROP TABLE IF EXISTS sbtest2", "`cleanup' function failed"),
        ] {
            let found = statement_lines(&of(test, command), &missing(), Call::Execute, sql);
            let why = "Table 'sbtest.sbtest2' doesn't exist";
            let first =
                format!("mysql_stmt_execute() returned error 1146 ({why}) for query '{sql}'");
            assert_eq!(found[0], first);
            assert!(found[1].contains(place), "{sql}: {}", found[1]);
            let end = format!(": SQL error, errno = 1146, state = '42S02': {why}");
            assert!(found[1].ends_with(&end), "{}", found[1]);
        }
    }

    #[test]
    fn lost_connection_has_the_client_librarys_number_when_a_statement_was_sent() {
        let lost = Failure::Lost("the server closed the connection".to_owned());
        let found = statement_lines(&usual(), &lost, Call::Query, "COMMIT");
        assert_eq!(
            found[0],
            "mysql_drv_query() returned error 2013 (Lost connection to server during query) for \
             query 'COMMIT'"
        );
        assert!(found[1].contains(":409: SQL error, errno = 2013, state = 'HY000': "));
    }

    #[test]
    fn prepared_and_bulk_statements_have_their_own_lines_when_they_fail() {
        assert_eq!(
            prepare_lines(&usual(), &missing(), "SELECT c FROM sbtest2 WHERE id=?"),
            [
                "mysql_stmt_prepare() failed",
                "MySQL error: 1146 \"Table 'sbtest.sbtest2' doesn't exist\"",
                "`thread_init' function failed: /usr/share/sysbench/oltp_common.lua:284: SQL API \
                 error"
            ]
        );
        let prepare = of(Test::Common, Command::Prepare);
        let lines = statement_lines(&prepare, &missing(), Call::BulkDone, "INSERT");
        let place = "/usr/share/sysbench/oltp_common.lua:233: db_bulk_insert_done() failed";
        assert!(lines[1].ends_with(place), "{lines:?}");
        let run = of(Test::BulkInsert, Command::Run);
        let lines = statement_lines(&run, &missing(), Call::BulkNext, "INSERT");
        let place = "/usr/share/sysbench/bulk_insert.lua:38: db_bulk_insert_next() failed";
        assert_eq!(lines[1], format!("`thread_run' function failed: {place}"));
    }
}
