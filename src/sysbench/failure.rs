//! sysbench's lines for what a server, or the way to it, fails: the messages of one error, in order.
//!
//! They name functions and scripts of sysbench 1.0.20. The number of the script's line is 0: no script runs.

use super::arguments::script_of;
use super::settings::{Command, Settings, Test};
use crate::engine::ClientAction;
use crate::mysql::{Failure, connect_error};

/// Fatal, after the lines of a client that cannot begin its run.
pub(crate) const INIT_FAILED: &str = "Thread initialization failed!";

pub(crate) fn lines(settings: &Settings, action: &ClientAction, failure: &Failure) -> Vec<String> {
    let (code, state, text) = match failure {
        Failure::Server { code, sqlstate, message } => (*code, &**sqlstate, &**message),
        // The client library's error.
        Failure::Lost(_) => (2013, "HY000", "Lost connection to server during query"),
    };
    let of_query = |call: &str, sql: &str| {
        vec![format!("{call} returned error {code} ({text}) for query '{sql}'")]
    };
    // An error that is to be ignored has no line, though the rows are lost.
    let of_bulk = |sql: &str| {
        if settings.ignored.has(code) { Vec::new() } else { of_query("mysql_drv_query()", sql) }
    };
    let error = format!("SQL error, errno = {code}, state = '{state}': {text}");
    let (mut lines, why) = match action {
        ClientAction::Connect => (
            vec![
                format!("unable to connect to MySQL server {}, aborting...", settings.server),
                format!("error {}", connect_error(&settings.connect.address, failure)),
            ],
            "connection creation failed",
        ),
        ClientAction::Prepare => {
            let error = format!("MySQL error: {code} \"{text}\"");
            (vec!["mysql_stmt_prepare() failed".to_owned(), error], "SQL API error")
        }
        ClientAction::Execute(sql) => (of_query("mysql_stmt_execute()", sql), &*error),
        ClientAction::Query(sql) => (of_query("mysql_drv_query()", sql), &*error),
        ClientAction::Rows(sql) => (of_bulk(sql), "db_bulk_insert_next() failed"),
        ClientAction::Script(_, words) => return vec![words.clone()],
        ClientAction::Rest(sql) => (of_bulk(sql), "db_bulk_insert_done() failed"),
    };
    lines.push(script_line(settings, action, why));
    lines
}

pub(crate) fn driver_lines(settings: &Settings, fault: &str) -> Vec<String> {
    let why = "failed to initialize the DB driver";
    let mut lines = vec![fault.to_owned(), script_line(settings, &ClientAction::Connect, why)];
    lines.extend((settings.command == Command::Run).then(|| INIT_FAILED.to_owned()));
    lines
}

pub(crate) fn one_table_line(settings: &Settings) -> String {
    let why = "this benchmark does not support --tables > 1";
    script_error("cleanup", script_of(settings.test), why)
}

fn script_line(settings: &Settings, action: &ClientAction, why: &str) -> String {
    let Settings { command, test, .. } = *settings;
    let begins = matches!(action, ClientAction::Connect | ClientAction::Prepare);
    let function = match command {
        Command::Run if begins => "thread_init",
        Command::Run if matches!(action, ClientAction::Rest(_)) => "thread_done",
        Command::Run => "thread_run",
        Command::Cleanup => "cleanup",
        Command::Prepare if test == Test::BulkInsert => "prepare",
        Command::Prepare | Command::Prewarm => "sysbench.cmdline.call_command",
    };
    let own = match test {
        Test::BulkInsert => true,
        Test::RandomPoints | Test::RandomRanges => command == Command::Run,
        Test::Insert | Test::Delete => command == Command::Run && !begins,
        _ => false,
    };
    script_error(function, script_of(if own { test } else { Test::Common }), why)
}

fn script_error(function: &str, script: &str, why: &str) -> String {
    format!("`{function}' function failed: /usr/share/sysbench/{script}.lua:0: {why}")
}

#[cfg(test)]
mod tests {
    use super::super::settings::Ignored;
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

    struct EndReason {
        host: &'static str,
        socket: Option<&'static str>,
        why: &'static str,
        lines: [&'static str; 2],
    }

    #[test]
    fn connection_error_is_libmariadbs_when_no_server_is_there() {
        let refused = "Connection refused (os error 111)";
        for EndReason { host, socket, why, lines: expected } in [
            EndReason {
                host: "127.0.0.1",
                socket: None,
                why: refused,
                lines: [
                    "unable to connect to MySQL server on host '127.0.0.1', port 3306, aborting...",
                    "error 2002: Can't connect to server on '127.0.0.1' (115)",
                ],
            },
            EndReason {
                host: "nosuch.invalid",
                socket: None,
                why: "failed to lookup address information: Name or service not known",
                lines: [
                    "unable to connect to MySQL server on host 'nosuch.invalid', port 3306, \
                     aborting...",
                    "error 2005: Unknown server host 'nosuch.invalid' (-2)",
                ],
            },
            EndReason {
                host: "localhost",
                socket: Some("/nonexistent/s"),
                why: "No such file or directory (os error 2)",
                lines: [
                    "unable to connect to MySQL server on socket '/nonexistent/s', aborting...",
                    "error 2002: Can't connect to local server through socket '/nonexistent/s' (2)",
                ],
            },
            EndReason {
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
            let found = lines(&asked, &ClientAction::Connect, &Failure::lost(why));
            assert_eq!(found[..2], expected);
            assert_eq!(
                found[2],
                "`thread_init' function failed: /usr/share/sysbench/oltp_common.lua:0: \
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
                            /usr/share/sysbench/oltp_common.lua:0";
        for Sent { test, command, sql, place } in [
            run(Test::ReadOnly, "BEGIN", "oltp_common.lua:0"),
            run(Test::PointSelect, "SELECT c FROM sbtest2 WHERE id=?", "oltp_common.lua:0"),
            run(Test::ReadOnly, "SELECT c FROM sbtest2 WHERE id BETWEEN ? AND ?", ".lua:0"),
            run(Test::ReadOnly, "SELECT SUM(k) FROM sbtest2 WHERE id BETWEEN 1 AND 2", ".lua:0"),
            run(Test::UpdateIndex, "UPDATE sbtest2 SET k=k+1 WHERE id=?", "oltp_common.lua:0"),
            run(Test::WriteOnly, "UPDATE sbtest2 SET c=? WHERE id=?", "oltp_common.lua:0"),
            run(Test::WriteOnly, "DELETE FROM sbtest2 WHERE id=?", "oltp_common.lua:0"),
            run(Test::Delete, "DELETE FROM sbtest2 WHERE id=?", "oltp_delete.lua:0"),
            run(Test::Insert, "INSERT INTO sbtest2 (id, k) VALUES (0, 1)", "oltp_insert.lua:0"),
            run(Test::RandomPoints, "        SELECT id, k", "select_random_points.lua:0"),
            other(Command::Prepare, "CREATE TABLE sbtest2(", call_command),
            other(Command::Prewarm, "ANALYZE TABLE sbtest2", "call_command' function failed"),
            other(Command::Cleanup, "DROP TABLE IF EXISTS sbtest2", "`cleanup' function failed"),
        ] {
            let found =
                lines(&of(test, command), &ClientAction::Execute(sql.to_owned()), &missing());
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
        let lost = Failure::lost("the server closed the connection");
        let found = lines(&usual(), &ClientAction::Query("COMMIT".to_owned()), &lost);
        assert_eq!(
            found[0],
            "mysql_drv_query() returned error 2013 (Lost connection to server during query) for \
             query 'COMMIT'"
        );
        assert!(found[1].contains(":0: SQL error, errno = 2013, state = 'HY000': "));
    }

    #[test]
    fn prepared_and_bulk_statements_have_their_own_lines_when_they_fail() {
        assert_eq!(
            lines(&usual(), &ClientAction::Prepare, &missing()),
            [
                "mysql_stmt_prepare() failed",
                "MySQL error: 1146 \"Table 'sbtest.sbtest2' doesn't exist\"",
                "`thread_init' function failed: /usr/share/sysbench/oltp_common.lua:0: SQL API \
                 error"
            ]
        );
        let prepare = of(Test::Common, Command::Prepare);
        let found = lines(&prepare, &ClientAction::Rest("INSERT".to_owned()), &missing());
        let place = "/usr/share/sysbench/oltp_common.lua:0: db_bulk_insert_done() failed";
        assert!(found[1].ends_with(place), "{found:?}");
        let run = of(Test::BulkInsert, Command::Run);
        let found = lines(&run, &ClientAction::Rows("INSERT".to_owned()), &missing());
        let place = "/usr/share/sysbench/bulk_insert.lua:0: db_bulk_insert_next() failed";
        assert_eq!(found[1], format!("`thread_run' function failed: {place}"));
        let ignored = Settings { ignored: Ignored::All, ..run };
        let found = lines(&ignored, &ClientAction::Rows("INSERT".to_owned()), &missing());
        assert_eq!(found, [format!("`thread_run' function failed: {place}")]);
    }
}
